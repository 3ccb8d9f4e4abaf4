//! Lowers arithmetic instructions: their sources, their code and their results.

use super::super::bodies::{FromA, FromC, General, SharedWord, ToA, ToC, Vote};
use super::super::kernels::{self, Shape};
use super::super::lanes::{ACTIVE, handler};
use super::super::operands::{GeneralOperands, Operation, Place};
use super::super::words::Transfer;
use super::{Lower, Lowering, Template, Uniform};
use crate::inst::{Arith, Base, Dst, Inst, Mem, Operand, Space, Special};
use crate::lane::Width;
use crate::lane::integer::Addition;
use crate::launch::SAMPLE_ID;
use crate::meaning::Modes;
use crate::spaces::aligned;
use reconverge_simt::Mode;

impl Lower<'_> {
    pub(super) fn arithmetic(&mut self, op: &Arith, inst: &Inst, set: usize) -> Option<Lowering> {
        let mut operation = self.operation(self.sink(), set);
        operation.c = inst.guard.c;
        let mut high = [self.zero(); 3];
        let transfer = self.sources(inst, &mut operation, &mut high, set)?;
        let after = self.lowered.operations.len();
        self.result(op, inst, operation, high, (set, self.context.setup.modes))?;
        Some(match transfer {
            None => Lowering::Straight,
            Some(transfer) => Lowering::Last(self.access(transfer, after..self.lowered.operations.len())),
        })
    }

    /// Sets the sources of an operation. If the value of a source differs between lanes, returns the transfer that
    /// loads that source. At most one source may differ between lanes.
    pub(super) fn sources(
        &mut self,
        inst: &Inst,
        operation: &mut Operation,
        high: &mut [Place; 3],
        set: usize,
    ) -> Option<Option<Transfer>> {
        let mut transfer = None;
        for number in 0..3 {
            match inst.src[number] {
                Operand::Mem(mem) if !self.is_uniform(&mem) => {
                    if transfer.is_some() {
                        return None;
                    }
                    let place = self.temporary(number);
                    transfer = Some(self.transfer(&mem, [place; 4], set)?);
                    operation.src[number] = place;
                    if mem.access.bytes() > 4 {
                        return None;
                    }
                }
                operand => self.source(operand, number, operation, high)?,
            }
        }
        Some(transfer)
    }

    /// Sets the rows of one source. Every lane must be able to read the source.
    pub(super) fn source(
        &mut self,
        operand: Operand,
        number: usize,
        operation: &mut Operation,
        high: &mut [Place; 3],
    ) -> Option<()> {
        let (low, upper) = match operand {
            Operand::None => (self.zero(), self.zero()),
            Operand::R32(register) => (self.register(register), self.zero()),
            Operand::R16(half) => {
                operation.shift[number] = if half.is_high() { 16 } else { 0 };
                operation.narrow[number] = true;
                (self.register(half.register()), self.zero())
            }
            Operand::R64(register) => (self.register(register), self.register(register.wrapping_add(1))),
            Operand::R128(_) => return None,
            Operand::Imm(value) => (self.constant(value)?, self.zero()),
            Operand::A(register) => {
                if register > 4 && self.context.mode == Mode::Strict {
                    return None; // The instruction traps.
                }
                let mut fetch = self.operation(self.temporary(number), ACTIVE);
                fetch.number = register.into();
                self.push_as(handler::<FromA>(self.level), fetch, Template::FromA);
                (fetch.dst, self.zero())
            }
            Operand::C(register) => {
                let mut fetch = self.operation(self.temporary(number), ACTIVE);
                fetch.c = register;
                self.push(handler::<FromC>(self.level), fetch);
                (fetch.dst, self.zero())
            }
            Operand::Special(special) => match special {
                Special::Physid | Special::Clock | Special::Pm(_) => return None,
                Special::Vstride => (self.constant(0x20)?, self.zero()),
                Special::Sampleid => (self.input_word(SAMPLE_ID, number), self.zero()),
                Special::Sr2 | Special::Unknown(_) => (self.zero(), self.zero()),
            },
            Operand::Mem(mem) => (self.uniform(&mem, number)?, self.zero()),
        };
        operation.src[number] = low;
        high[number] = upper;
        Some(())
    }

    /// Returns whether all lanes read the operand at the same address, and whether this address certainly exists.
    pub(super) fn is_uniform(&self, mem: &Mem) -> bool {
        let bytes = mem.access.bytes();
        let fixed = mem.base == Base::A(0) && !mem.increment && bytes <= 4;
        match mem.space {
            Space::Const(_) => Uniform::of(mem).is_some(),
            // If the launch checks races, a read of bytes after the header and the parameters must be checked for
            // races.
            Space::Shared => {
                let given = self.context.checks.map(|checks| checks.given as usize);
                fixed && (place_of(mem) + bytes) as usize <= given.unwrap_or(self.shared_bytes)
            }
            Space::Attribute | Space::Primitive | Space::Varying | Space::Output => self.is_stage_word(mem),
            Space::Local | Space::Global(_) => false,
        }
    }

    /// Returns the row of an operand that all lanes read at the same address.
    pub(super) fn uniform(&mut self, mem: &Mem, number: usize) -> Option<Place> {
        if self.is_stage_word(mem) {
            return self.stage_word(mem, number);
        }
        if let Some(uniform) = Uniform::of(mem) {
            return self.uniform_place(uniform);
        }
        let mut fetch = self.operation(self.temporary(number), ACTIVE);
        fetch.number = place_of(mem);
        fetch.shift[0] = mem.access.bytes() as u8;
        fetch.narrow[0] = mem.access.is_signed();
        self.push_as(handler::<SharedWord>(self.level), fetch, Template::SharedWord);
        Some(fetch.dst)
    }

    /// Adds the operations of an arithmetic instruction. The rows of the instruction's sources are already set.
    pub(super) fn result(
        &mut self,
        op: &Arith,
        inst: &Inst,
        mut operation: Operation,
        src_high: [Place; 3],
        (set, modes): (usize, Modes),
    ) -> Option<()> {
        let mut dst_high = self.sink();
        let on_the_way = self.temporary(3);
        let mut then = None;
        match inst.dst {
            Dst::None | Dst::Discard => {}
            Dst::R32(register) => operation.dst = self.target(register),
            Dst::R16(half) => {
                operation.dst = self.target(half.register());
                operation.dst_shift = if half.is_high() { 16 } else { 0 };
                operation.dst_narrow = true;
            }
            Dst::R64(register) => {
                operation.dst = self.target(register);
                dst_high = self.target(register.saturating_add(1));
            }
            Dst::A(register) => {
                operation.dst = on_the_way;
                let mut write = self.operation(on_the_way, set);
                (write.src[0], write.number) = (on_the_way, register.into());
                then = Some(((handler::<ToA>(self.level), write), Template::ToA));
            }
            Dst::C(register) => {
                operation.dst = on_the_way;
                let mut write = self.operation(on_the_way, set);
                (write.src[0], write.cdst) = (on_the_way, register);
                then = Some(((handler::<ToC>(self.level), write), Template::None));
            }
            Dst::Out32(address) | Dst::Out16(address) => {
                operation.dst = on_the_way;
                let half = matches!(inst.dst, Dst::Out16(_));
                then = Some((self.to_output(on_the_way, address, half, set), Template::None));
            }
            Dst::R128(_) => return None,
        }
        if let Some(cdst) = inst.cdst {
            operation.cdst = cdst;
            if matches!(inst.dst, Dst::A(_) | Dst::C(_)) {
                return None; // The order of the writes to `dst` and to `cdst` would matter.
            }
        }
        let flags = inst.cdst.is_some();
        let own = self.own_operation(op, inst, &mut operation);
        let shape = Shape {
            dst: operation.dst != self.sink() || !flags,
            flags,
            halves: operation.narrow != [false; 3] || operation.dst_narrow,
            modified: operation.keep != [u32::MAX; 3] || operation.flip != [0; 3],
        };
        let has_own_modes = modes != self.context.setup.modes;
        let code = match own.and_then(|op| kernels::choose(&op, shape, modes, self.level)) {
            Some(code) => code,
            // The instruction needs modes that differ from the modes of the launch. The general operation and the
            // compiled engine use only the modes of the launch.
            None if has_own_modes => return None,
            None => {
                operation.number = u32::try_from(self.lowered.tables.generals.len()).ok()?;
                let modifiers = inst.modifiers;
                let general = GeneralOperands { op: *op, modifiers, writes_flags: flags, src_high, dst_high };
                self.lowered.tables.generals.push(general);
                match flags {
                    true => handler::<General<true>>(self.level),
                    false => handler::<General<false>>(self.level),
                }
            }
        };
        let own = own.filter(|_| !has_own_modes);
        self.push_as(code, operation, own.map_or(Template::None, |op| Template::Arith { op, flags }));
        if let Some(((handler, operation), template)) = then {
            self.push_as(handler, operation, template);
        }
        Some(())
    }

    /// Returns the operation whose kernel executes `op`, and moves the modifiers of `op` into the operands. A move
    /// between register files becomes a plain move. Returns `None` if the operands cannot express the modifiers.
    fn own_operation(&mut self, op: &Arith, inst: &Inst, operation: &mut Operation) -> Option<Arith> {
        if matches!(inst.dst, Dst::R64(_)) {
            return None;
        }
        let [a, b, c] = inst.modifiers;
        let mut modify = |number: usize, abs: bool, neg: bool| {
            operation.keep[number] = if abs { 0x7fff_ffff } else { u32::MAX };
            operation.flip[number] = if neg { 0x8000_0000 } else { 0 };
        };
        match *op {
            Arith::FAdd { .. } | Arith::FMul { .. } | Arith::FMin | Arith::FMax | Arith::FSet { .. } => {
                modify(0, a.abs, a.neg);
                modify(1, b.abs, b.neg);
            }
            Arith::F2I { .. }
            | Arith::F2F32 { .. }
            | Arith::Rcp
            | Arith::Rsqrt
            | Arith::Lg2
            | Arith::PreSin
            | Arith::PreEx2
            | Arith::Sin
            | Arith::Cos
            | Arith::Ex2 { .. } => modify(0, a.abs, a.neg),
            // Negating a factor negates the product.
            Arith::FMad { .. } => {
                modify(0, false, a.neg);
                modify(2, c.abs, c.neg);
            }
            Arith::Slct => modify(2, c.abs, c.neg),
            Arith::Logic { logic, width, not1, not2 } => {
                operation.flip[0] = if not1 { u32::MAX } else { 0 };
                operation.flip[1] = if not2 { u32::MAX } else { 0 };
                return Some(Arith::Logic { logic, width, not1: false, not2: false });
            }
            // The sources are integers. The abs and neg of integers cannot be computed with bit masks.
            Arith::I2I { .. } | Arith::I2F32 { .. } if a.abs || a.neg => return None,
            Arith::MovFromC | Arith::MovToC | Arith::MovFromA | Arith::MovFromSpecial => {
                return Some(Arith::Mov { width: Width::B32 });
            }
            Arith::ShlA => {
                let Operand::Imm(count) = inst.src[1] else { return None };
                operation.src[1] = self.constant(count & 15)?;
                return Some(Arith::Shl { width: Width::B32, wrap: false });
            }
            Arith::AddA => {
                return Some(Arith::Add { addition: Addition::Add, width: Width::B32, sat: false });
            }
            _ => {}
        }
        Some(*op)
    }

    /// Lowers `vote`. The predicate is an operand, and every active lane receives the result. (6.10)
    pub(super) fn vote(&mut self, all: bool, inst: &Inst) -> Option<Lowering> {
        let set = self.predicate(inst);
        let mut ask = self.operation(self.temporary(0), set);
        ask.number = all.into();
        self.push(handler::<Vote>(self.level), ask);
        let mut operation = self.operation(self.sink(), ACTIVE);
        operation.src[0] = ask.dst;
        let modes = self.context.setup.modes;
        self.result(&Arith::Mov { width: Width::B32 }, inst, operation, [self.zero(); 3], (ACTIVE, modes))?;
        Some(Lowering::Straight)
    }
}

/// Returns the byte address of an operand that is not indexed.
pub(super) fn place_of(mem: &Mem) -> u32 {
    aligned(u32::from(mem.offset as u16), mem.access.bytes())
}
