//! Templates: the values that compiled code computes for an operation.
//!
//! A [`Way`] is the fast or the slow path of a segment during its compilation. [`Way::operation`] expresses the effect
//! of an operation of the fast engine with the functions of [`crate::lane`], eight lanes at once. On the fast path,
//! floats may carry a non-canonical NaN until an operation reads their bits. On the slow path, every result is
//! canonical.

use reconverge_jit::{Emitted, Inside, One, Path, PerLane, Row, Rows, Strip, Two, Value, predicate};
use reconverge_simt::word::Word;

use super::{PLACES, per_lane};
use crate::fast::lanes::PREDICATED;
use crate::fast::lower::{Lowered, Template, Test};
use crate::fast::operands::{Operation, Place};
use crate::fast::words::{Kind, Transfer};
use crate::flow::WARP;
use crate::inst::{Access, Arith, Base, Condition, Space};
use crate::lane::convert::{FloatSize, Integer, Size};
use crate::lane::integer::{Addition, Flagged};
use crate::lane::{Compare, Rounding, Width};
use crate::meaning::integers;

const SIGN: u32 = 1 << 31;

/// Bytes of a row.
const ROW: u32 = 4 * WARP as u32;

/// The flags Z, S, C and O, as boolean values. These flags are the low bits of the row of a `$c`.
type Flags = [Value; 4];

/// A path of a segment during compilation.
pub(super) struct Way<'a> {
    lowered: &'a Lowered,
    rows: Rows,
    /// The lanes of [`PREDICATED`], active or not.
    predicated: Option<Value>,
    /// Intermediate results of the current instruction.
    temporaries: [Option<Value>; Lowered::TEMPORARY_ROWS],
}

impl Path for Way<'_> {
    fn next(&self) -> Self {
        Way::new(self.lowered, self.rows.exact)
    }

    fn rows(&mut self) -> &mut Rows {
        &mut self.rows
    }

    fn into_rows(self) -> Rows {
        self.rows
    }
}

fn row(place: Place) -> Row {
    Row::Group(place.number() as u32 * ROW)
}

/// Returns the row of `$a1` to `$a4`.
fn address_row(register: u32) -> Option<Row> {
    matches!(register, 1..=4).then(|| Row::Halves(register - 1))
}

impl<'a> Way<'a> {
    pub(super) fn new(lowered: &'a Lowered, exact: bool) -> Self {
        let mask = row(lowered.tables.mask);
        let rows = Rows::on(Strip::with_window(lowered.shared), mask, exact, false);
        Way { lowered, rows, predicated: None, temporaries: Default::default() }
    }

    // Rows.

    /// Returns the value of a row.
    fn place(&mut self, place: Place) -> Value {
        let lowered = self.lowered;
        if let Some(word) = lowered.constant(place) {
            return self.rows.word(word);
        }
        let temporary = lowered.temporary(place).and_then(|number| self.temporaries[number]);
        temporary.unwrap_or_else(|| self.rows.read(row(place)))
    }

    /// Writes a value to a row, for the lanes of the set with number `set`.
    fn write(&mut self, place: Place, set: u8, value: Value) {
        let lowered = self.lowered;
        if let Some(number) = lowered.temporary(place) {
            self.temporaries[number] = Some(value);
        } else if lowered.is_register(place) {
            self.rows.write(row(place), self.chosen(set), value);
        }
    }

    /// Returns the lanes of a set as a mask. The mask may also contain lanes that are not active. Returns `None` if the
    /// set is all active lanes.
    fn chosen(&self, set: u8) -> Option<Value> {
        self.predicated.filter(|_| usize::from(set) == PREDICATED)
    }

    /// Returns the active lanes of a set.
    fn mask_of(&mut self, set: u8) -> Value {
        let mask = self.rows.mask();
        match self.chosen(set) {
            Some(chosen) => self.rows.two(Two::And, chosen, mask),
            None => mask,
        }
    }

    // Flags.

    fn read_flags(&mut self, c: u8) -> Flags {
        self.rows.read_bits(Row::Bytes(u32::from(c & 3)))
    }

    /// Returns the lanes, active or not, for which a test holds. If `holds` is false, returns the lanes for which the
    /// test does not hold.
    pub(super) fn lanes(&mut self, test: &Test, holds: bool) -> Value {
        let held = match test.always {
            true => self.rows.word(u32::MAX),
            false => self.condition(test.condition, test.c),
        };
        if holds { held } else { self.rows.not(held) }
    }

    /// Returns the lanes for which a condition of a `$c` is true. The generated code evaluates the condition's table
    /// flag by flag.
    fn condition(&mut self, condition: Condition, c: u8) -> Value {
        let flags = self.read_flags(c);
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

    // Floats.

    /// Returns a float result. A NaN in the result may be non-canonical. On the slow path, the lane function `with`
    /// computes two kinds of lanes: lanes whose result is a NaN, and lanes that `test` selects.
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

    /// Returns `value`. `value` is correct only in lanes in which the sign bit of `test` is clear. If the sign bit is
    /// set in some lane, the guard of the fast path fails. The slow path then computes this lane with the function
    /// `with`.
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

    fn float_flags(&mut self, result: Value) -> Flags {
        let zero = self.rows.word(0);
        let z = self.rows.compare(predicate::EQ_UQ, result, zero);
        let s = self.rows.compare(predicate::NGE, result, zero);
        [z, s, zero, zero]
    }

    fn mad(&mut self, [a, b, c]: [Value; 3], mask: Value) -> Value {
        let (zero, sign) = (self.rows.word(0), self.rows.word(SIGN));
        let product = self.rows.two(Two::FMul, a, b);
        // The remainder of the rounded product. If rounding increased the magnitude of the product, the remainder and
        // the product have opposite signs. The product is then one unit too large.
        let rest = self.rows.strip.fused(true, a, b, product);
        let sign_of = self.rows.two(Two::And, product, sign);
        let against = self.rows.two(Two::Xor, rest, sign_of);
        let away = self.rows.compare(predicate::LT, against, zero);
        let cut = self.rows.two(Two::Add, product, away);
        // The remainder is a normal number if the product is at least 2^-78. The last place of a product of this size
        // is at least 2^-101. The last place of the remainder is at least 2^-125.
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
        // If the addend is zero, the product is not truncated. If a factor is zero, the product is exact.
        let term = self.rows.strip.select(no_addend, cut, product);
        let sum = self.rows.two(Two::FAdd, term, c);
        let (no_a, no_b) =
            (self.rows.compare(predicate::EQ, a, zero), self.rows.compare(predicate::EQ, b, zero));
        let no_factor = self.rows.two(Two::Or, no_a, no_b);
        let test = self.rows.two(Two::AndNot, no_factor, beyond);
        self.float(sum, Some(test), per_lane::mad(), [a, b, c], mask)
    }

    // Operations.

    /// Adds the effect of an operation to the path. Returns `false` if the operation has no template. The path is then
    /// invalid.
    pub(super) fn operation(&mut self, operation: &Operation, template: &Template) -> bool {
        self.effect(operation, template).is_some()
    }

    fn effect(&mut self, operation: &Operation, template: &Template) -> Option<()> {
        let Operation { dst, set, number, c, .. } = *operation;
        match template {
            Template::None | Template::FromInput => return None,
            Template::Arith { op, flags } => self.arithmetic(op, operation, *flags)?,
            Template::Predicate(condition) => self.predicated = Some(self.condition(*condition, c)),
            Template::SharedWord => {
                let word = self.shared_word(operation)?;
                self.write(dst, set, word);
            }
            Template::FromA => {
                let value = match address_row(number) {
                    Some(row) => self.rows.read(row),
                    None => self.rows.word(0),
                };
                self.write(dst, set, value);
            }
            Template::ToA => {
                let (value, low) = (self.place(operation.src[0]), self.rows.word(0xffff));
                let value = self.rows.settle(value);
                let value = self.rows.two(Two::And, value, low);
                if let Some(row) = address_row(number) {
                    self.rows.write(row, self.chosen(set), value);
                }
            }
        }
        Some(())
    }

    fn arithmetic(&mut self, op: &Arith, operation: &Operation, writes_flags: bool) -> Option<()> {
        let Operation { dst, set, dst_shift, dst_narrow, .. } = *operation;
        let mask = self.mask_of(set);
        let sources = [0, 1, 2].map(|number| self.source(operation, number, takes_floats(op)));
        let (mut result, flags) = self.result(op, sources, operation.c, mask)?;
        if dst_narrow {
            let old = self.place(dst);
            result = self.rows.emit([old, result], |[old, new]| {
                let kept = old & old.same(!(0xffff << dst_shift));
                (kept | new.extended(16, false).left(new.same(dst_shift.into()))).value()
            });
        }
        self.write(dst, set, result);
        if writes_flags {
            let row = Row::Bytes(u32::from(operation.cdst & 3));
            self.rows.write_bits(row, self.chosen(set), flags?);
        }
        Some(())
    }

    /// Extracts the half of a source, if the source is a half register. Applies the modifiers of the source, and
    /// returns the result. Unless `floats` is set, a NaN result is canonical.
    fn source(&mut self, operation: &Operation, number: usize, floats: bool) -> Value {
        let Operation { src, shift, narrow, keep, flip, .. } = *operation;
        let mut value = self.place(src[number]);
        if narrow[number] || !floats {
            value = self.rows.settle(value);
        }
        if narrow[number] {
            let low = self.rows.word(0xffff);
            value = match shift[number] {
                0 => self.rows.two(Two::And, value, low),
                shift => self.rows.one(One::Shr(shift), value),
            };
        }
        let raw = self.rows.is_raw(value);
        let (keep, flip) = (self.rows.word(keep[number]), self.rows.word(flip[number]));
        value = self.rows.two(Two::And, value, keep);
        value = self.rows.two(Two::Xor, value, flip);
        if raw { self.rows.raw(value) } else { value }
    }

    // s[].

    /// Returns whether a load or store of s[] has a template. The transfer must be a load, or a store of whole words.
    pub(super) fn reaches(&self, transfer: &Transfer) -> bool {
        let mem = transfer.mem;
        let moves = match (transfer.kind, mem.access) {
            (Kind::Load { .. } | Kind::Store { .. }, Access::B32) => mem.offset & 3 == 0,
            (Kind::Load { .. }, access) => access.bytes() < 4,
            _ => false,
        };
        !self.lowered.checked
            && mem.space == Space::Shared
            && self.has_base(transfer)
            && moves
            && self.lowered.shared >= 4
    }

    /// Returns whether the base address of a transfer has a template.
    fn has_base(&self, Transfer { mem, base, .. }: &Transfer) -> bool {
        match (base, mem.base) {
            (Some(place), _) => self.lowered.is_register(*place),
            (None, Base::A(register)) => register == 0 || address_row(register.into()).is_some(),
            (None, Base::R(_)) => false,
        }
    }

    /// Returns whether a transfer to or from the memory of a site has a template. The transfer must be a load from g[],
    /// l[] or c[], or a store of whole words to g[] or l[].
    pub(super) fn reaches_site(&self, transfer: &Transfer) -> bool {
        self.has_base(transfer)
            && match (transfer.kind, transfer.mem.space) {
                (Kind::Load { .. }, Space::Global(_) | Space::Local | Space::Const(_)) => true,
                (Kind::Store { .. }, Space::Global(_) | Space::Local) => transfer.mem.access.bytes() >= 4,
                _ => false,
            }
    }

    /// Loads rows from memory, or stores rows to memory. `site` is the number of the site that has the memory. If `site`
    /// is `None`, the memory is s[]. A segment executes a store after all other operations of the segment.
    pub(super) fn transfer(&mut self, transfer: &Transfer, site: Option<u32>) -> Option<()> {
        let Transfer { mem, rows: [place, ..], set, .. } = *transfer;
        let (base, offset) = self.base(transfer)?;
        let mask = self.mask_of(set);
        let inside = |strip: &mut Strip, base, distance| match site {
            Some(site) => Some(strip.inside_site(site, base, distance, mask)),
            None => strip.inside(base, distance, mask),
        };
        let is_local = mem.space == Space::Local;
        if mem.access == Access::B32 && !is_local {
            let inside = inside(&mut self.rows.strip, base, offset)?;
            return self.move_words(transfer, place, set, inside);
        }
        let size = mem.access.bytes();
        // If an address is not a multiple of the access size, the access ignores the low bits of the address. (13.18)
        let (first, bits) = self.rows.emit([base], |[base]| {
            let address = base.plus(base.same(offset as u32));
            let bits = (address & address.same(4_u32.wrapping_sub(size))).left(address.same(3));
            ((address & address.same(!(size.max(4) - 1))).value(), bits.value())
        });
        let (first, step) = if is_local { (self.local_place(first), ROW) } else { (first, 4) };
        let inside = |word: u32| inside(&mut self.rows.strip, first, (word * step) as i32);
        let words: Vec<Inside> = (0..size.div_ceil(4)).map(inside).collect::<Option<_>>()?;
        if let Kind::Store { .. } = transfer.kind {
            let moved = words.into_iter().zip(transfer.rows);
            return moved.map(|(inside, place)| self.move_words(transfer, place, set, inside)).collect();
        }
        let mut words: Vec<Value> =
            words.into_iter().map(|inside| self.rows.strip.window_load(inside)).collect();
        if size < 4 {
            let part = self.rows.two(Two::Shr, words[0], bits);
            words[0] = self.extended(part, 8 * size, matches!(mem.access, Access::S8 | Access::S16));
        }
        words.into_iter().zip(transfer.rows).for_each(|(word, place)| self.write(place, set, word));
        Some(())
    }

    /// Returns the positions of words in the l[] of all lanes, like [`local_place`](crate::state::local_place). `first`
    /// contains the addresses of the words. Each address is the sum of a `$a` and an offset, so it has at most 17 bits, or
    /// is negative. So if an address is outside the l[] of a lane, the position is outside the l[] of all lanes.
    fn local_place(&mut self, first: Value) -> Value {
        let places = self.rows.read(Row::Own(PLACES));
        self.rows.emit([first, places], |[first, places]| {
            first.left(first.same(ROW.ilog2() - 2)).plus(places).value()
        })
    }

    /// Returns the base address of a transfer, and the offset in bytes. An address relative to a `$a` has 16 bits. If the
    /// sum of base and offset needs more bits, no memory of a site has this address.
    fn base(&mut self, transfer: &Transfer) -> Option<(Value, i32)> {
        let offset = transfer.mem.offset;
        let (base, offset) = match (transfer.base, transfer.mem.base) {
            (Some(place), _) => (self.place(place), offset),
            (None, Base::A(0)) => (self.rows.word(0), i32::from(offset as u16)),
            (None, Base::A(register)) => {
                (self.rows.read(address_row(register.into())?), i32::from(offset as i16))
            }
            (None, Base::R(_)) => return None,
        };
        Some((self.rows.settle(base), offset))
    }

    fn move_words(&mut self, transfer: &Transfer, place: Place, set: u8, inside: Inside) -> Option<()> {
        match transfer.kind {
            Kind::Load { .. } => {
                let word = self.rows.strip.window_load(inside);
                self.write(place, set, word);
            }
            Kind::Store { .. } => {
                let value = self.place(place);
                let value = self.rows.settle(value);
                self.rows.strip.window_store(inside, value);
            }
            Kind::Atomic { .. } | Kind::Atomic64(_) | Kind::LoadLock | Kind::StoreUnlock { .. } => {
                return None;
            }
        }
        Some(())
    }

    /// Reads up to one word of s[]. The address exists and is the same for all lanes.
    fn shared_word(&mut self, operation: &Operation) -> Option<Value> {
        let Operation { number: at, shift: [bytes, ..], narrow: [signed, ..], .. } = *operation;
        let word = self.rows.strip.window_word(at & !3)?;
        let word = self.rows.one(One::Shr(8 * (at & 3) as u8), word);
        Some(self.extended(word, 8 * u32::from(bytes), signed))
    }

    /// Returns the low `bits` bits of a value, extended to 32 bits.
    fn extended(&mut self, value: Value, bits: u32, signed: bool) -> Value {
        self.rows.emit([value], |[value]| value.extended(bits, signed).value())
    }

    fn result(
        &mut self,
        op: &Arith,
        sources: [Value; 3],
        carry: u8,
        mask: Value,
    ) -> Option<(Value, Option<Flags>)> {
        let [a, b, c] = sources;
        let carry = self.carry(op, carry);
        let integers = self.rows.emit([a, b, c, carry], |[a, b, c, carry]| {
            let Flagged { word, flags } = integers(op, [a, b, c], carry)?;
            Some((word.value(), Some(flags.map(Emitted::value))))
        });
        if integers.is_some() {
            return integers;
        }
        let zero = self.rows.word(0);
        let zero_wins = self.lowered.tables.modes.mul_zero_wins;
        Some(match *op {
            Arith::Mov { .. } => (a, None),
            Arith::FAdd { rounding: Rounding::Nearest, sat: false } => {
                let value = self.rows.two(Two::FAdd, a, b);
                let result = self.float(value, None, per_lane::add(), sources, mask);
                (result, Some(self.float_flags(result)))
            }
            Arith::FMul { rounding: Rounding::Nearest, sat: false } if !zero_wins => {
                let value = self.rows.two(Two::FMul, a, b);
                let result = self.float(value, None, per_lane::mul(), sources, mask);
                (result, Some(self.float_flags(result)))
            }
            Arith::FMad { sat: false } if !zero_wins => {
                let result = self.mad(sources, mask);
                (result, Some(self.float_flags(result)))
            }
            Arith::FMin | Arith::FMax => {
                // Denormals become zeros. The negative zero counts as smaller than the positive zero.
                let minus_zero = self.rows.word(SIGN);
                let (x, y) =
                    (self.rows.two(Two::FAdd, a, minus_zero), self.rows.two(Two::FAdd, b, minus_zero));
                let nan = self.rows.compare(predicate::UNORD, x, y);
                let (code, both, with): (_, _, PerLane) = match op {
                    Arith::FMin => (Two::FMin, Two::Or, per_lane::min()),
                    _ => (Two::FMax, Two::And, per_lane::max()),
                };
                let (one, other) = (self.rows.two(code, x, y), self.rows.two(code, y, x));
                let value = self.rows.two(both, one, other);
                let result = self.unless(value, nan, with, sources, mask);
                (result, Some(self.float_flags(result)))
            }
            Arith::FSet { compare } => {
                let held = match float_predicate(compare) {
                    Some(predicate) => self.rows.compare(predicate, a, b),
                    None => self.rows.word(if compare.bits() == 0 { 0 } else { u32::MAX }),
                };
                let not = self.rows.not(held);
                (held, Some([not, held, zero, zero]))
            }
            Arith::Slct => {
                let positive = self.rows.compare(predicate::GE, c, zero);
                (self.rows.choose(positive, b, a), None)
            }
            Arith::I2I { to: Integer { size: Size::B32, signed }, register: Width::B32, from }
                if signed == from.signed =>
            {
                (self.extended(a, from.size.bits(), signed), None)
            }
            Arith::I2F32 { from, rounding: Rounding::Nearest, sat: false } => {
                let x = self.extended(a, from.size.bits(), from.signed);
                let value = self.rows.one(One::Float, x);
                match from {
                    Integer { size: Size::B32, signed: false } => {
                        (self.unless(value, x, per_lane::from_unsigned(), sources, mask), None)
                    }
                    _ => (value, None),
                }
            }
            Arith::F2I { to: Width::B32, signed, rounding, from: FloatSize::F32 } => {
                let (code, with): (_, PerLane) = match (rounding, signed) {
                    (Rounding::Zero, true) => (One::Truncate, per_lane::to_signed_zero()),
                    (Rounding::Zero, false) => (One::Truncate, per_lane::to_unsigned_zero()),
                    (Rounding::Nearest, true) => (One::Nearest, per_lane::to_signed_nearest()),
                    (Rounding::Nearest, false) => (One::Nearest, per_lane::to_unsigned_nearest()),
                    (Rounding::Down | Rounding::Up, _) => return None,
                };
                let value = self.rows.one(code, a);
                let none = self.rows.word(SIGN);
                let test = if signed { self.rows.two(Two::Equal, value, none) } else { value };
                (self.unless(value, test, with, sources, mask), None)
            }
            _ => return None,
        })
    }

    /// Returns the carry into an operation, 0 or 1.
    fn carry(&mut self, op: &Arith, c: u8) -> Value {
        match op {
            Arith::Add { addition: Addition::Addc, .. } | Arith::Mad { addition: Addition::Addc, .. } => {
                let flags = self.read_flags(c);
                self.rows.one(One::Shr(31), flags[2])
            }
            _ => self.rows.word(0),
        }
    }
}

/// Returns the host's comparison of floats; `None` for comparisons with a constant result.
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

/// Returns whether the operation has the same result for a canonical and for a non-canonical NaN.
fn takes_floats(op: &Arith) -> bool {
    match op {
        Arith::FAdd { .. } | Arith::FMul { .. } | Arith::FMad { .. } | Arith::FSet { .. } | Arith::Slct => {
            true
        }
        Arith::FMin | Arith::FMax => true,
        // The copy keeps the NaN. An operation that reads the bits of the copy makes the NaN canonical first.
        Arith::Mov { width: Width::B32 } => true,
        _ => false,
    }
}
