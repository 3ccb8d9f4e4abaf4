//! From instructions to values: the templates.
//!
//! A [`Way`] is the fast or the slow path of a segment while it is made. [`Way::instruction`] states the effect of an instruction in
//! the words of [`crate::lane`], eight lanes at once. On the fast path floats may carry a NaN that is not the machine's until an
//! operation reads their bits; on the slow path every result is the machine's own.

use std::collections::HashMap;

use reconverge_jit::{Inside, One, Path, PerLane, Row, Rows, Strip, Two, Value, predicate};

use super::per_lane;
use crate::context::Context;
use crate::fast::lower::Uniform;
use crate::fast::operands::Place;
use crate::inst::{Access, Arith, Base, Condition, Dst, Guard, Inst, Mem, Memory, Op, Operand, Space};
use crate::lane::convert::{FloatSize, Integer, Size};
use crate::lane::integer::{Addition, Logic, Product};
use crate::lane::{Compare, Modifiers, Rounding, Width};
use crate::spaces::aligned;

const SIGN: u32 = 1 << 31;

/// Own rows: the flags of `$c0`, a word for each lane; `$a1` follows `$c3`.
pub(super) const C: u32 = 1;
pub(super) const A: u32 = 5;

/// What lowering knows of the program.
pub(super) struct Program<'a> {
    pub(super) context: &'a Context,
    pub(super) registers: usize,
    /// The row of the lanes that are active.
    pub(super) mask: Row,
    /// Distance of a row, in bytes.
    pub(super) stride: u32,
    /// The rows of constants at one address of c[].
    pub(super) uniforms: &'a HashMap<Uniform, Place>,
    /// Bytes of s[], which is the window.
    pub(super) shared: u32,
}

/// Flags: Z, S, C, O as truth values, the low bits of the row of a `$c`.
type Flags = [Value; 4];

/// A path of a segment while it is made.
pub(super) struct Way<'a> {
    program: &'a Program<'a>,
    rows: Rows,
    /// Whether it loads or reads s[] at all.
    loads: bool,
}

impl Path for Way<'_> {
    fn next(&self) -> Self {
        Way::new(self.program, self.rows.exact)
    }

    fn rows(&mut self) -> &mut Rows {
        &mut self.rows
    }

    fn into_rows(self) -> Rows {
        self.rows
    }
}

impl<'a> Way<'a> {
    pub(super) fn new(program: &'a Program<'a>, exact: bool) -> Self {
        let rows = Rows::on(Strip::with_window(program.shared), program.mask, exact, false);
        Way { program, rows, loads: false }
    }

    /// The `$c` and `$a` that the segment reads or writes, by bit: `$c0` first, `$a1` the fifth.
    pub(super) fn touched(&self) -> u32 {
        bits(self.rows.needed().iter().copied()) | self.writes()
    }

    /// The registers among them that it writes.
    pub(super) fn writes(&self) -> u32 {
        bits(self.rows.written())
    }

    /// The registers that it writes for all active lanes, before it needs their values at entry.
    pub(super) fn covers(&self) -> u32 {
        bits(self.rows.covered().iter().copied())
    }

    // Rows.

    fn register(&self, register: u8) -> Option<Row> {
        (usize::from(register) < self.program.registers)
            .then(|| Row::Group(u32::from(register) * self.program.stride))
    }

    // Flags.

    fn read_flags(&mut self, c: u8) -> Flags {
        self.rows.read_bits(Row::Own(C + u32::from(c)))
    }

    /// The lanes for which a guard holds, active or not; `None` if that is all.
    fn holds(&mut self, guard: Guard) -> Option<Value> {
        if guard.is_always() {
            return None;
        }
        let flags = self.read_flags(guard.c);
        Some(self.condition(guard.condition, flags))
    }

    /// The lanes for which a guard `holds`, or does not hold, active or not.
    pub(super) fn lanes(&mut self, guard: Guard, holds: bool) -> Value {
        let all = self.rows.word(u32::MAX);
        let held = self.holds(guard).unwrap_or(all);
        if holds { held } else { self.rows.not(held) }
    }

    /// A condition of flags: by its table, one flag after another.
    fn condition(&mut self, condition: Condition, flags: Flags) -> Value {
        self.table(condition.table(), 4, flags)
    }

    fn table(&mut self, table: u16, count: usize, flags: Flags) -> Value {
        if count == 0 {
            return self.rows.word(if table & 1 != 0 { u32::MAX } else { 0 });
        }
        let half = 1 << (count - 1);
        let ones = ((1u32 << half) - 1) as u16;
        let (without, with) = (table & ones, table >> half & ones);
        if without == with {
            return self.table(without, count - 1, flags);
        }
        let flag = flags[count - 1];
        if without == !with & ones {
            let other = self.table(without, count - 1, flags);
            return self.rows.two(Two::Xor, flag, other);
        }
        let (without, with) = (self.table(without, count - 1, flags), self.table(with, count - 1, flags));
        let is = |way: &Self, value: Value, word: u32| way.rows.strip.is_constant(value) == Some(word);
        if is(self, without, 0) {
            return self.rows.two(Two::And, flag, with);
        }
        if is(self, with, 0) {
            return self.rows.two(Two::AndNot, flag, without);
        }
        if is(self, with, u32::MAX) {
            return self.rows.two(Two::Or, flag, without);
        }
        self.rows.strip.select(flag, without, with)
    }

    /// The flags of a result of integers: Z and S.
    fn plain(&mut self, width: Width, result: Value) -> Flags {
        let zero = self.rows.word(0);
        let z = self.rows.two(Two::Equal, result, zero);
        [z, self.top(width, result), zero, zero]
    }

    /// The top bit where a truth value has it.
    fn top(&mut self, width: Width, value: Value) -> Value {
        self.rows.one(One::Shl(32 - width.bits() as u8), value)
    }

    // Floats.

    /// An operation reads the bits of a value.
    fn settle(&mut self, value: Value) {
        self.rows.settle(value);
    }

    /// A result of floats whose NaN may be another; on the slow path the function computes it where the test or a NaN
    /// says so.
    fn float(
        &mut self,
        value: Value,
        test: Option<Value>,
        with: PerLane,
        sources: [Value; 3],
        mask: Value,
    ) -> Value {
        if !self.rows.exact {
            if let Some(test) = test {
                self.rows.strip.guard(test);
            }
            return self.rows.raw(value);
        }
        let nan = self.rows.compare(predicate::UNORD, value, value);
        let test = match test {
            Some(test) => self.rows.two(Two::Or, test, nan),
            None => nan,
        };
        self.rows.strip.per_lane(with, value, test, mask, sources)
    }

    /// A result that is right where the test's sign is not set.
    fn unless(
        &mut self,
        value: Value,
        test: Value,
        with: PerLane,
        sources: [Value; 3],
        mask: Value,
    ) -> Value {
        if !self.rows.exact {
            self.rows.strip.guard(test);
            return value;
        }
        self.rows.strip.per_lane(with, value, test, mask, sources)
    }

    fn modified(&mut self, value: Value, abs: bool, neg: bool) -> Value {
        let mut value = value;
        let raw = self.rows.is_raw(value);
        if abs {
            let magnitude = self.rows.word(!SIGN);
            value = self.rows.two(Two::And, value, magnitude);
        }
        if neg {
            let sign = self.rows.word(SIGN);
            value = self.rows.two(Two::Xor, value, sign);
        }
        if raw { self.rows.raw(value) } else { value }
    }

    fn float_flags(&mut self, result: Value) -> Flags {
        let zero = self.rows.word(0);
        let z = self.rows.compare(predicate::EQ_UQ, result, zero);
        let s = self.rows.compare(predicate::NGE, result, zero);
        [z, s, zero, zero]
    }

    fn mad(&mut self, [a, b, c]: [Value; 3], mask: Value) -> Value {
        let (zero, sign) = (self.rows.word(0), self.rows.word(SIGN));
        let product = self.rows.two(Two::FMul, a, b);
        // What rounding left: of the other sign where it went away from zero, and then one unit too much.
        let rest = self.rows.strip.fused(true, a, b, product);
        let sign_of = self.rows.two(Two::And, product, sign);
        let against = self.rows.two(Two::Xor, rest, sign_of);
        let away = self.rows.compare(predicate::LT, against, zero);
        let cut = self.rows.two(Two::Add, product, away);
        // The rest is a normal number if the product is at least 2^-78: its last place is 2^-101 then, and that of the
        // rest 2^-125.
        const LEAST: u32 = (127 - 78) << 23;
        const INFINITY: u32 = 255 << 23;
        let twice = self.rows.two(Two::Add, product, product);
        let (from, range) = (
            self.rows.word(SIGN.wrapping_sub(2 * LEAST)),
            self.rows.word((2 * (INFINITY - LEAST) - 1) ^ SIGN),
        );
        let above = self.rows.two(Two::Add, twice, from);
        let beyond = self.rows.two(Two::Greater, above, range);
        let no_addend = self.rows.compare(predicate::EQ, c, zero);
        if !self.rows.exact {
            let sum = self.rows.two(Two::FAdd, cut, c);
            let test = self.rows.two(Two::Or, beyond, no_addend);
            return self.float(sum, Some(test), per_lane::mad(), [a, b, c], mask);
        }
        // The product is not cut where the addend is zero, and it is exact where a factor is.
        let term = self.rows.strip.select(no_addend, cut, product);
        let sum = self.rows.two(Two::FAdd, term, c);
        let (no_a, no_b) =
            (self.rows.compare(predicate::EQ, a, zero), self.rows.compare(predicate::EQ, b, zero));
        let no_factor = self.rows.two(Two::Or, no_a, no_b);
        let test = self.rows.two(Two::AndNot, no_factor, beyond);
        self.float(sum, Some(test), per_lane::mad(), [a, b, c], mask)
    }

    // Instructions.

    /// An instruction's effect. `false`, and none, if there is no template for it.
    pub(super) fn instruction(&mut self, inst: &Inst) -> bool {
        if inst.gate().is_some_and(|register| self.register(register).is_none()) {
            return true; // It vanishes. (1.4)
        }
        match &inst.op {
            Op::Idle(_) => true,
            Op::Arith(op) if inst.lanes & 15 == 15 => self.arithmetic(op, inst).is_some(),
            Op::Memory(Memory::Ld) if inst.lanes & 15 == 15 && matches!(inst.dst, Dst::R32(_)) => {
                // A load has no flags to write.
                let inst = Inst { cdst: None, ..*inst };
                self.arithmetic(&Arith::Mov { width: Width::B32 }, &inst).is_some()
            }
            _ => false,
        }
    }

    // s[].

    /// Whether words are loaded, or read at an address that is the same for all lanes.
    pub(super) fn loads(&self) -> bool {
        self.loads
    }

    /// Whether a load of each lane's own word from memory has a template, or a store to it.
    pub(super) fn reaches(&self, mem: &Mem) -> bool {
        // Words only: whether a store and a load meet is decided word by word.
        let whole = mem.access == Access::B32 && mem.offset & 3 == 0;
        let base = match mem.base {
            Base::A(1..=4) => true,
            Base::A(_) => false,
            Base::R(register) => self.register(register).is_some() && i16::try_from(mem.offset).is_ok(),
        };
        mem.space == Space::Shared && !mem.increment && whole && base && self.program.shared >= 4
    }

    /// The register of an address.
    fn base(&mut self, mem: &Mem) -> Option<Value> {
        let row = match mem.base {
            Base::A(register @ 1..=4) => Row::Own(A + u32::from(register) - 1),
            Base::A(_) => return None,
            Base::R(register) => self.register(register)?,
        };
        let base = self.rows.read(row);
        self.settle(base);
        Some(base)
    }

    /// The check of an access of s[] by lanes of a mask.
    fn inside(&mut self, mem: &Mem, mask: Value) -> Option<Inside> {
        let base = self.base(mem)?;
        self.rows.strip.inside(base, i32::from(mem.offset as i16), mask)
    }

    /// Each lane's word of s[].
    fn load(&mut self, mem: &Mem, mask: Value) -> Option<Value> {
        let inside = self.inside(mem, mask)?;
        self.loads = true;
        Some(self.rows.strip.window_load(inside))
    }

    /// A word or less of s[] at an address that is the same for all lanes, and is there. Lower bits of an address count as
    /// zero. (13.18)
    fn shared_word(&mut self, mem: &Mem) -> Option<Value> {
        let bytes = mem.access.bytes();
        let fixed = mem.space == Space::Shared && mem.base == Base::A(0) && !mem.increment && bytes <= 4;
        let at = aligned(u32::from(mem.offset as u16), bytes);
        if !fixed {
            return None;
        }
        let word = self.rows.strip.window_word(at & !3)?;
        self.loads = true;
        let word = self.rows.one(One::Shr(8 * (at & 3) as u8), word);
        Some(self.extended(word, 8 * bytes as u8, mem.access.is_signed()))
    }

    /// A store to s[]: behind everything else that the segment does. `None` if there is no template for it.
    pub(super) fn store_shared(&mut self, inst: &Inst) -> Option<()> {
        let Operand::Mem(mem) = inst.src[0] else { return None };
        let Operand::R32(register) = inst.src[1] else { return None };
        let active = self.rows.mask();
        let value = self.source(Operand::R32(register), active)?;
        self.settle(value);
        let mask = self.mask_of(inst.guard);
        let inside = self.inside(&mem, mask)?;
        self.rows.strip.window_store(inside, value);
        Some(())
    }

    /// The active lanes for which a guard holds.
    fn mask_of(&mut self, guard: Guard) -> Value {
        let mask = self.rows.mask();
        match self.holds(guard) {
            Some(predicate) => self.rows.two(Two::And, predicate, mask),
            None => mask,
        }
    }

    fn arithmetic(&mut self, op: &Arith, inst: &Inst) -> Option<()> {
        // Asked before anything is made of it.
        let writes = match inst.dst {
            Dst::None | Dst::Discard | Dst::R32(_) | Dst::R16(_) => inst.cdst.map(|c| c & 3),
            Dst::A(_) if inst.cdst.is_none() => None,
            _ => return None,
        };
        if !has_template(op, inst, writes.is_some(), self.program.context) {
            return None;
        }
        let mask = self.mask_of(inst.guard);
        let sources = [
            self.source(inst.src[0], mask)?,
            self.source(inst.src[1], mask)?,
            self.source(inst.src[2], mask)?,
        ];
        let predicate = self.holds(inst.guard);
        let (result, flags) = self.result(op, inst, sources, mask)?;
        match inst.dst {
            Dst::R32(register) => {
                let row = self.register(register)?;
                self.rows.write(row, predicate, result);
            }
            Dst::R16(half) => {
                let row = self.register(half.register())?;
                self.settle(result);
                let old = self.rows.read(row);
                self.settle(old);
                let (kept, low) =
                    (self.rows.word(0xffff << if half.is_high() { 0 } else { 16 }), self.rows.word(0xffff));
                let kept = self.rows.two(Two::And, old, kept);
                let new = match half.is_high() {
                    true => self.rows.one(One::Shl(16), result),
                    false => self.rows.two(Two::And, result, low),
                };
                let new = self.rows.two(Two::Or, kept, new);
                self.rows.write(row, predicate, new);
            }
            Dst::A(register @ 1..=4) => {
                let low = self.rows.word(0xffff);
                let value = self.rows.two(Two::And, result, low);
                self.rows.write(Row::Own(A + u32::from(register) - 1), predicate, value);
            }
            _ => {}
        }
        if let Some(c) = writes {
            self.rows.write_bits(Row::Own(C + u32::from(c)), predicate, flags?);
        }
        Some(())
    }

    /// An operand, for lanes of a mask.
    fn source(&mut self, operand: Operand, mask: Value) -> Option<Value> {
        Some(match operand {
            Operand::None => self.rows.word(0),
            Operand::R32(register) => match self.register(register) {
                Some(row) => self.rows.read(row),
                None => self.rows.word(0),
            },
            Operand::R16(half) => {
                let value = self.source(Operand::R32(half.register()), mask)?;
                self.settle(value);
                match half.is_high() {
                    true => self.rows.one(One::Shr(16), value),
                    false => {
                        let low = self.rows.word(0xffff);
                        self.rows.two(Two::And, value, low)
                    }
                }
            }
            Operand::Imm(word) => self.rows.word(word),
            Operand::A(0) => self.rows.word(0),
            Operand::A(register @ 1..=4) => self.rows.read(Row::Own(A + u32::from(register) - 1)),
            Operand::Mem(mem) => {
                if let Some(uniform) = Uniform::of(&mem) {
                    let place = self.program.uniforms.get(&uniform)?;
                    self.rows.read(Row::Group(place.number() as u32 * self.program.stride))
                } else if self.reaches(&mem) {
                    self.load(&mem, mask)?
                } else {
                    self.shared_word(&mem)?
                }
            }
            _ => return None,
        })
    }

    /// The low bits of a value, extended to 32.
    fn extended(&mut self, value: Value, bits: u8, signed: bool) -> Value {
        let up = self.rows.one(One::Shl(32 - bits), value);
        match signed {
            true => self.rows.one(One::Sar(32 - bits), up),
            false if bits == 32 => value,
            false => {
                let low = self.rows.word(u32::MAX >> (32 - bits));
                self.rows.two(Two::And, value, low)
            }
        }
    }

    fn result(
        &mut self,
        op: &Arith,
        inst: &Inst,
        [a, b, c]: [Value; 3],
        mask: Value,
    ) -> Option<(Value, Option<Flags>)> {
        let [first, second, third] = inst.modifiers;
        if !takes_floats(op) {
            for value in [a, b, c] {
                self.settle(value);
            }
        }
        let zero = self.rows.word(0);
        let (result, flags) = match *op {
            Arith::Mov { .. } | Arith::MovFromA => (a, None),
            Arith::ShlA => {
                let Operand::Imm(count) = inst.src[1] else { return None };
                (self.rows.one(One::Shl((count & 15) as u8), a), None)
            }
            Arith::AddA => (self.rows.two(Two::Add, a, b), None),
            Arith::Add { addition, width, .. } => {
                let carry = self.carry(addition, inst.guard.c);
                let (sum, flags) = self.sum(addition, width, a, b, carry);
                (sum, Some(flags))
            }
            Arith::Mul { product } => {
                let product = self.product(product, a, b);
                (product, Some(self.plain(Width::B32, product)))
            }
            Arith::Mad { product, addition, .. } => {
                let product = self.product(product, a, b);
                let carry = self.carry(addition, inst.guard.c);
                let (sum, flags) = self.sum(addition, Width::B32, product, c, carry);
                (sum, Some(flags))
            }
            Arith::Min { width, signed } | Arith::Max { width, signed } => {
                let bits = width.bits() as u8;
                let (a, b) = (self.extended(a, bits, signed), self.extended(b, bits, signed));
                let code = match (op, signed) {
                    (Arith::Min { .. }, true) => Two::MinSigned,
                    (Arith::Min { .. }, false) => Two::MinUnsigned,
                    (_, true) => Two::MaxSigned,
                    (_, false) => Two::MaxUnsigned,
                };
                let result = self.rows.two(code, a, b);
                let result = self.extended(result, bits, false);
                (result, Some(self.plain(width, result)))
            }
            Arith::Set { compare, width, signed } => {
                let bits = width.bits() as u8;
                let (a, b) = (self.extended(a, bits, signed), self.extended(b, bits, signed));
                let held = self.relation(compare, signed, a, b);
                let not = self.rows.not(held);
                (self.extended(held, bits, false), Some([not, held, zero, zero]))
            }
            Arith::Logic { logic, width, not1, not2 } => {
                let a = if not1 { self.rows.not(a) } else { a };
                let b = if not2 { self.rows.not(b) } else { b };
                let result = match logic {
                    Logic::And => self.rows.two(Two::And, a, b),
                    Logic::Or => self.rows.two(Two::Or, a, b),
                    Logic::Xor => self.rows.two(Two::Xor, a, b),
                    Logic::Mov2 => b,
                };
                let result = self.extended(result, width.bits() as u8, false);
                (result, Some(self.plain(width, result)))
            }
            Arith::Shl { width } => {
                let x = self.extended(a, width.bits() as u8, false);
                let count = self.extended(b, width.bits() as u8, false);
                let result = match self.rows.strip.is_constant(count) {
                    Some(count) => self.rows.one(One::Shl(count.min(32) as u8), x),
                    None => self.rows.two(Two::Shl, x, count),
                };
                let result = self.extended(result, width.bits() as u8, false);
                (result, self.shift_flags(width, false, x, result, count))
            }
            Arith::Shr { width, signed } => {
                let bits = width.bits() as u8;
                let x = self.extended(a, bits, false);
                let count = self.extended(b, bits, false);
                let wide = self.extended(x, bits, signed);
                let result = match (self.rows.strip.is_constant(count), signed) {
                    (Some(count), false) => self.rows.one(One::Shr(count.min(32) as u8), wide),
                    (Some(count), true) => self.rows.one(One::Sar(count.min(31) as u8), wide),
                    (None, false) => self.rows.two(Two::Shr, wide, count),
                    (None, true) => self.rows.two(Two::Sar, wide, count),
                };
                let result = self.extended(result, bits, false);
                (result, self.shift_flags(width, true, x, result, count))
            }
            Arith::FAdd { .. } | Arith::FMul { .. } => {
                let a = self.modified(a, first.abs, first.neg);
                let b = self.modified(b, second.abs, second.neg);
                let (code, with): (_, PerLane) = match op {
                    Arith::FAdd { .. } => (Two::FAdd, per_lane::add()),
                    _ => (Two::FMul, per_lane::mul()),
                };
                let value = self.rows.two(code, a, b);
                let result = self.float(value, None, with, [a, b, zero], mask);
                (result, Some(self.float_flags(result)))
            }
            Arith::FMad { .. } => {
                let a = self.modified(a, false, first.neg);
                let c = self.modified(c, third.abs, third.neg);
                let result = self.mad([a, b, c], mask);
                (result, Some(self.float_flags(result)))
            }
            Arith::FMin | Arith::FMax => {
                let a = self.modified(a, first.abs, first.neg);
                let b = self.modified(b, second.abs, second.neg);
                // Denormals become zeros, of which the negative one is less.
                let minus_zero = self.rows.word(SIGN);
                let (x, y) =
                    (self.rows.two(Two::FAdd, a, minus_zero), self.rows.two(Two::FAdd, b, minus_zero));
                let nan = self.rows.compare(predicate::UNORD, x, y);
                let (value, with): (_, PerLane) = match op {
                    Arith::FMin => {
                        let (one, other) = (self.rows.two(Two::FMin, x, y), self.rows.two(Two::FMin, y, x));
                        (self.rows.two(Two::Or, one, other), per_lane::min())
                    }
                    _ => {
                        let (one, other) = (self.rows.two(Two::FMax, x, y), self.rows.two(Two::FMax, y, x));
                        (self.rows.two(Two::And, one, other), per_lane::max())
                    }
                };
                let result = self.unless(value, nan, with, [a, b, zero], mask);
                (result, Some(self.float_flags(result)))
            }
            Arith::FSet { compare } => {
                let a = self.modified(a, first.abs, first.neg);
                let b = self.modified(b, second.abs, second.neg);
                let held = match float_predicate(compare) {
                    Some(predicate) => self.rows.compare(predicate, a, b),
                    None => self.rows.word(if compare.bits() == 0 { 0 } else { u32::MAX }),
                };
                let not = self.rows.not(held);
                (held, Some([not, held, zero, zero]))
            }
            Arith::Slct => {
                let c = self.modified(c, third.abs, third.neg);
                let positive = self.rows.compare(predicate::GE, c, zero);
                (self.rows.choose(positive, b, a), None)
            }
            Arith::I2I { from, .. } => (self.extended(a, size_bits(from.size), from.signed), None),
            Arith::I2F32 { from, .. } => {
                let x = self.extended(a, size_bits(from.size), from.signed);
                let value = self.rows.one(One::Float, x);
                match from {
                    Integer { size: Size::B32, signed: false } => {
                        (self.unless(value, x, per_lane::from_unsigned(), [x, zero, zero], mask), None)
                    }
                    _ => (value, None),
                }
            }
            Arith::F2I { signed, rounding, .. } => {
                let a = self.modified(a, first.abs, first.neg);
                let (code, with): (_, PerLane) = match (rounding, signed) {
                    (Rounding::Zero, true) => (One::Truncate, per_lane::to_signed_zero()),
                    (Rounding::Zero, false) => (One::Truncate, per_lane::to_unsigned_zero()),
                    (_, true) => (One::Nearest, per_lane::to_signed_nearest()),
                    (_, false) => (One::Nearest, per_lane::to_unsigned_nearest()),
                };
                let value = self.rows.one(code, a);
                let none = self.rows.word(SIGN);
                let test = if signed { self.rows.two(Two::Equal, value, none) } else { value };
                (self.unless(value, test, with, [a, zero, zero], mask), None)
            }
            _ => return None,
        };
        Some((result, flags))
    }

    /// The carry into an addition, as 0 or 1.
    fn carry(&mut self, addition: Addition, c: u8) -> Value {
        match addition {
            Addition::Addc => {
                let flags = self.read_flags(c);
                self.rows.one(One::Shr(31), flags[2])
            }
            _ => self.rows.word(0),
        }
    }

    /// A sum and its flags, as [`crate::lane::integer::add`] gives them.
    fn sum(&mut self, addition: Addition, width: Width, a: Value, b: Value, carry: Value) -> (Value, Flags) {
        let sum = match addition {
            Addition::Add | Addition::Addc => self.rows.two(Two::Add, a, b),
            Addition::Sub => self.rows.two(Two::Sub, a, b),
            Addition::Subr => self.rows.two(Two::Sub, b, a),
        };
        let sum = self.rows.two(Two::Add, sum, carry);
        let sum = self.extended(sum, width.bits() as u8, false);
        let (a, b) = match addition {
            Addition::Add | Addition::Addc => (a, b),
            Addition::Sub => (a, self.rows.not(b)),
            Addition::Subr => (self.rows.not(a), b),
        };
        // Only the top bit of what follows counts.
        let (both, some) = (self.rows.two(Two::And, a, b), self.rows.two(Two::Or, a, b));
        let eaten = self.rows.two(Two::AndNot, sum, some);
        let carry = self.rows.two(Two::Or, both, eaten);
        let (from_a, from_b) = (self.rows.two(Two::Xor, a, sum), self.rows.two(Two::Xor, b, sum));
        let overflow = self.rows.two(Two::And, from_a, from_b);
        let [z, s, ..] = self.plain(width, sum);
        (sum, [z, s, self.top(width, carry), self.top(width, overflow)])
    }

    fn product(&mut self, product: Product, a: Value, b: Value) -> Value {
        let (a, b) = match product {
            Product::Bits16 { signed1, signed2 } => {
                (self.extended(a, 16, signed1), self.extended(b, 16, signed2))
            }
            Product::Bits24 { signed, .. } => (self.extended(a, 24, signed), self.extended(b, 24, signed)),
        };
        self.rows.two(Two::Mul, a, b)
    }

    /// The flags of a shift by a count that is known.
    fn shift_flags(
        &mut self,
        width: Width,
        right: bool,
        x: Value,
        result: Value,
        count: Value,
    ) -> Option<Flags> {
        let (count, bits) = (self.rows.strip.is_constant(count)?, width.bits());
        let [z, s, zero, _] = self.plain(width, result);
        let carry = match count {
            count if !(1..bits).contains(&count) => zero,
            count if right => self.rows.one(One::Shl((32 - count) as u8), x),
            count => self.rows.one(One::Shl((31 - (bits - count)) as u8), x),
        };
        let overflow = match count {
            1 => {
                let changed = self.rows.two(Two::Xor, result, x);
                self.top(width, changed)
            }
            _ => zero,
        };
        Some([z, s, carry, overflow])
    }

    /// A comparison of integers.
    fn relation(&mut self, compare: Compare, signed: bool, a: Value, b: Value) -> Value {
        let least = |way: &mut Self, a: Value, b: Value| {
            // a <= b
            let code = if signed { Two::MinSigned } else { Two::MinUnsigned };
            let least = way.rows.two(code, a, b);
            way.rows.two(Two::Equal, least, a)
        };
        match compare.bits() & 7 {
            0 => self.rows.word(0),
            1 if signed => self.rows.two(Two::Greater, b, a),
            1 => {
                let not = least(self, b, a);
                self.rows.not(not)
            }
            2 => self.rows.two(Two::Equal, a, b),
            3 => least(self, a, b),
            4 if signed => self.rows.two(Two::Greater, a, b),
            4 => {
                let not = least(self, a, b);
                self.rows.not(not)
            }
            5 => {
                let equal = self.rows.two(Two::Equal, a, b);
                self.rows.not(equal)
            }
            6 => least(self, b, a),
            _ => self.rows.word(u32::MAX),
        }
    }
}

/// The `$c` and `$a` among rows, by bit.
fn bits(rows: impl Iterator<Item = Row>) -> u32 {
    rows.fold(0, |bits, row| match row {
        Row::Own(number @ C..=8) => bits | 1 << (number - C),
        _ => bits,
    })
}

fn size_bits(size: Size) -> u8 {
    match size {
        Size::B8 => 8,
        Size::B16 => 16,
        Size::B32 => 32,
    }
}

/// The comparison of floats by the host; `None` for those that always give the same.
fn float_predicate(compare: Compare) -> Option<u8> {
    Some(match compare.bits() {
        1 => predicate::LT,
        2 => predicate::EQ,
        3 => predicate::LE,
        4 => predicate::GT,
        5 => predicate::NEQ_OQ,
        6 => predicate::GE,
        7 => predicate::ORD,
        8 => predicate::UNORD,
        9 => predicate::NGE,
        10 => predicate::EQ_UQ,
        11 => predicate::NGT,
        12 => predicate::NLE,
        13 => predicate::NEQ,
        14 => predicate::NLT,
        _ => return None,
    })
}

/// Whether a NaN of other bits than the machine's gives the same.
fn takes_floats(op: &Arith) -> bool {
    match op {
        Arith::FAdd { .. } | Arith::FMul { .. } | Arith::FMad { .. } | Arith::FSet { .. } | Arith::Slct => {
            true
        }
        Arith::FMin | Arith::FMax => true,
        // Copied as it is: whoever looks at the copy settles it.
        Arith::Mov { width: Width::B32 } => true,
        _ => false,
    }
}

/// Whether there is a template for an instruction of these modifiers.
fn has_template(op: &Arith, inst: &Inst, flags: bool, context: &Context) -> bool {
    let plain = inst.modifiers == [Modifiers::NONE; 3];
    let known_count = || matches!(inst.src[1], Operand::Imm(_));
    match *op {
        Arith::Mov { .. } | Arith::MovFromA | Arith::ShlA | Arith::AddA => !flags,
        Arith::Add { sat: false, .. } | Arith::Min { .. } | Arith::Max { .. } | Arith::Set { .. } => true,
        Arith::Mad { product, sat: false, .. } | Arith::Mul { product } => {
            !matches!(product, Product::Bits24 { high: true, .. })
        }
        Arith::Logic { .. } => true,
        Arith::Shl { .. } | Arith::Shr { .. } => !flags || known_count(),
        Arith::FAdd { rounding: Rounding::Nearest, sat: false } => true,
        Arith::FMul { rounding: Rounding::Nearest, sat: false } | Arith::FMad { sat: false } => {
            !context.setup.modes.mul_zero_wins
        }
        Arith::FMin | Arith::FMax | Arith::FSet { .. } => true,
        Arith::Slct => !flags,
        Arith::I2I { to, register: Width::B32, from } => {
            plain && !flags && to.size == Size::B32 && to.signed == from.signed
        }
        Arith::I2F32 { rounding: Rounding::Nearest, sat: false, .. } => plain && !flags,
        Arith::F2I {
            to: Width::B32,
            rounding: Rounding::Nearest | Rounding::Zero,
            from: FloatSize::F32,
            ..
        } => !flags,
        _ => false,
    }
}
