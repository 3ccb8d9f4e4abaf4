//! Lowers loads, stores and atomic operations.

use std::ops::Range;

use super::super::bodies::ToC;
use super::super::lanes::handler;
use super::super::operands::Place;
use super::super::words::{Kind, Mover, Transfer, mover};
use super::arithmetic::place_of;
use super::{Access, Last, Lower, Lowering};
use crate::inst::{Arith, Base, Dst, Inst, Mem, Memory, Operand, Space};
use crate::lane::Width;
use crate::lane::atomic::Atomic64;
use crate::lane::interpolate::Position;

impl Lower<'_> {
    /// Lowers a load, store or atomic operation for a set of lanes.
    pub(super) fn memory(&mut self, op: &Memory, inst: &Inst, set: usize) -> Option<Lowering> {
        let last = match *op {
            Memory::Ld => return self.load(inst, set),
            Memory::Interp { position } => return self.interp(inst, position, set),
            Memory::St => match self.store_output(inst, set) {
                Some(lowering) => return Some(lowering),
                None => self.store(inst, set, false),
            },
            Memory::StUnlock => self.store(inst, set, true),
            Memory::LdLock => self.load_lock(inst, set),
            Memory::Atom64 { atomic } | Memory::Red64 { atomic } => self.atomic64(atomic, inst, set),
            Memory::Atom { atomic, signed } | Memory::Red { atomic, signed } => {
                self.atomic(Kind::Atomic { atomic, signed }, inst, set)
            }
        };
        last.map(Lowering::Last)
    }

    pub(super) fn access(&mut self, transfer: Transfer, after: Range<usize>) -> Last {
        self.lowered.accesses.push(Access { transfer, after: after.start as u32..after.end as u32 });
        Last::Memory(self.lowered.accesses.len() as u32 - 1)
    }

    fn load(&mut self, inst: &Inst, set: usize) -> Option<Lowering> {
        let Operand::Mem(mem) = inst.src[0] else { return None };
        if self.is_uniform(&mem) {
            // The load becomes a move. Loads do not write flags.
            let inst = Inst { cdst: None, ..*inst };
            return self.arithmetic(&Arith::Mov { width: Width::B32 }, &inst, set);
        }
        let rows = match inst.dst {
            Dst::R32(register) | Dst::R64(register) | Dst::R128(register) => {
                [0, 1, 2, 3].map(|step| self.target(register.saturating_add(step)))
            }
            _ => return None,
        };
        // The load writes only the registers of its destination.
        let named = match inst.dst {
            Dst::R64(_) => 2,
            Dst::R128(_) => 4,
            _ => 1,
        };
        let moved = mem.access.bytes().div_ceil(4);
        if moved != named {
            return None;
        }
        let transfer = self.transfer(&mem, rows, set)?;
        let end = self.lowered.operations.len();
        Some(Lowering::Last(self.access(transfer, end..end)))
    }

    /// Lowers a store. If `unlock` is set, the store also releases a lock.
    fn store(&mut self, inst: &Inst, set: usize, unlock: bool) -> Option<Last> {
        let Operand::Mem(mem) = inst.src[0] else { return None };
        let (rows, shift) = match inst.src[1] {
            Operand::R32(register) | Operand::R64(register) | Operand::R128(register) => {
                let row = |step: u8| match inst.src[1] {
                    Operand::R64(_) => register.wrapping_add(step),
                    _ => register.saturating_add(step),
                };
                ([0, 1, 2, 3].map(|step| self.register(row(step))), 0)
            }
            Operand::R16(half) => ([self.register(half.register()); 4], if half.is_high() { 16 } else { 0 }),
            _ => return None,
        };
        let given = match inst.src[1] {
            Operand::R64(_) => 8,
            Operand::R128(_) => 16,
            Operand::R16(_) => 2,
            _ => 4,
        };
        if mem.access.bytes() > given {
            return None;
        }
        let mut transfer = self.transfer(&mem, rows, set)?;
        let kind = if unlock { Kind::StoreUnlock { shift } } else { Kind::Store { shift } };
        // If races are checked, the reference interpreter executes the unlock. It also records the order that the lock
        // imposes on accesses.
        if unlock && (mem.space != Space::Shared || self.context.checks.is_some()) {
            return None;
        }
        self.becomes(&mut transfer, kind);
        let end = self.lowered.operations.len();
        Some(self.access(transfer, end..end))
    }

    /// Lowers a store of a register to a word of o[] at a constant address.
    fn store_output(&mut self, inst: &Inst, set: usize) -> Option<Lowering> {
        let (Operand::Mem(mem), Operand::R32(register)) = (inst.src[0], inst.src[1]) else { return None };
        if mem.space != Space::Output || !self.is_stage_word(&mem) {
            return None;
        }
        let (write, operation) = self.to_output(self.register(register), place_of(&mem) as u16, false, set);
        self.push(write, operation);
        Some(Lowering::Straight)
    }

    /// Lowers a load of a word of s[]. The load also takes the lock of the word. In the transfer's list of rows, the
    /// row of the flags follows the row of the word. (section 4)
    fn load_lock(&mut self, inst: &Inst, set: usize) -> Option<Last> {
        let (Operand::Mem(mem), Dst::R32(register)) = (inst.src[0], inst.dst) else { return None };
        if mem.space != Space::Shared || mem.access.bytes() > 4 || self.context.checks.is_some() {
            return None;
        }
        let flags = self.temporary(0);
        let mut transfer = self.transfer(&mem, [self.target(register), flags, flags, flags], set)?;
        self.becomes(&mut transfer, Kind::LoadLock);
        let start = self.lowered.operations.len();
        if let Some(cdst) = inst.cdst {
            let mut write = self.operation(self.sink(), set);
            (write.src[0], write.cdst) = (flags, cdst);
            self.push(handler::<ToC>(self.level), write);
        }
        Some(self.access(transfer, start..self.lowered.operations.len()))
    }

    /// Lowers an atomic operation or a reduction on two words of g[].
    fn atomic64(&mut self, atomic: Atomic64, inst: &Inst, set: usize) -> Option<Last> {
        let Operand::Mem(mem) = inst.src[0] else { return None };
        let [dst, dst_high] = match inst.dst {
            Dst::R64(register) => [self.target(register), self.target(register.saturating_add(1))],
            Dst::None | Dst::Discard => [self.sink(); 2],
            _ => return None,
        };
        if mem.access.bytes() != 8 || !matches!(mem.space, Space::Global(_)) || inst.cdst.is_some() {
            return None;
        }
        let mut operation = self.operation(dst, set);
        let mut high = [self.zero(); 3];
        for number in [1, 2] {
            match inst.src[number] {
                operand @ (Operand::None | Operand::R64(_)) => {
                    self.source(operand, number, &mut operation, &mut high)?;
                }
                _ => return None,
            }
        }
        let [_, src2, src3] = operation.src;
        let mut transfer = self.transfer(&mem, [dst, src2, src3, self.zero()], set)?;
        transfer.upper = [dst_high, high[1], high[2]];
        self.becomes(&mut transfer, Kind::Atomic64(atomic));
        let end = self.lowered.operations.len();
        Some(self.access(transfer, end..end))
    }

    /// Lowers an atomic operation or a reduction on a word of g[].
    fn atomic(&mut self, kind: Kind, inst: &Inst, set: usize) -> Option<Last> {
        let Operand::Mem(mem) = inst.src[0] else { return None };
        let dst = match inst.dst {
            Dst::R32(register) => self.target(register),
            Dst::None | Dst::Discard => self.sink(),
            _ => return None,
        };
        if mem.access.bytes() != 4 || !matches!(mem.space, Space::Global(_)) || inst.cdst.is_some() {
            return None;
        }
        let mut operation = self.operation(dst, set);
        for number in [1, 2] {
            match inst.src[number] {
                operand @ (Operand::None | Operand::R32(_) | Operand::Imm(_)) => {
                    self.source(operand, number, &mut operation, &mut [self.zero(); 3])?;
                }
                _ => return None,
            }
        }
        let [_, src2, src3] = operation.src;
        let mut transfer = self.transfer(&mem, [dst, src2, src3, self.zero()], set)?;
        self.becomes(&mut transfer, kind);
        let end = self.lowered.operations.len();
        Some(self.access(transfer, end..end))
    }

    /// Changes a transfer, which was created as a load, to another kind.
    pub(super) fn becomes(&self, transfer: &mut Transfer, kind: Kind) {
        transfer.kind = kind;
        transfer.mover = self.mover(kind, &transfer.mem);
    }

    /// Returns a transfer with an address per lane, or `None` if the memory space has no fast path.
    pub(super) fn transfer(&mut self, mem: &Mem, rows: [Place; 4], set: usize) -> Option<Transfer> {
        match mem.space {
            Space::Const(_) | Space::Shared => {
                if mem.access.bytes() > 4 {
                    return None;
                }
            }
            Space::Attribute | Space::Varying if mem.access.bytes() == 4 => {}
            Space::Local | Space::Global(_) => {}
            Space::Attribute | Space::Primitive | Space::Varying | Space::Output => return None,
        }
        if mem.increment || matches!(mem.base, Base::A(5..)) {
            return None;
        }
        let base = match mem.base {
            Base::R(register) => Some(self.register(register)),
            Base::A(_) => None,
        };
        let kind = Kind::Load { position: Position::Centre };
        let (upper, set, pc, mover) = ([self.sink(); 3], set as u8, self.pc, self.mover(kind, mem));
        Some(Transfer { kind, mem: *mem, base, rows, upper, set, pc, mover })
    }

    fn mover(&self, kind: Kind, mem: &Mem) -> Mover {
        mover(kind, mem.space, mem.access, self.level, self.context.checks.is_some())
    }
}
