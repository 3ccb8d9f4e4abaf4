//! Assigns rows to operands, to destinations, and to the constants that do not change between executions of a group.
//!
//! Each constant of the environment has a row. The constant's position in a bank determines the row. When the engine
//! creates a wavefront, the engine copies the constant's value to the row. Therefore, if draws differ only in
//! constants, the engine does not lower the program again.

use reconverge_simt::registers::Row;

use super::super::indexed::{ConstantByLoop, ConstantByRow, ReadByLoop, ReadByRow};
use super::super::lanes::{Bank, Constants, Place, Uniform, handler};
use super::plan::{Index, by_loop, index};
use super::{Before, INTERMEDIATE, Lowering, Template};
use crate::chip::LANES;
use crate::code::{AluClause, AluOp, Operand, Source, TRANS, Window};
use crate::wave::PREVIOUS;
use crate::words::KcacheMode;

/// A constant that does not change between executions of a group.
pub(super) enum Constant {
    /// A literal of the code.
    Word(u32),
    /// A constant of the environment.
    Uniform(Uniform),
}

impl Lowering<'_> {
    pub(super) fn place(&self, row: usize) -> Place {
        self.lowered.layout.place(row)
    }

    pub(super) fn intermediate(&self, number: usize) -> Place {
        self.place(self.previous + PREVIOUS + number)
    }

    pub(super) fn destination(&self, op: &AluOp) -> Option<Place> {
        self.environment.register_row(op.dst_gpr.into(), op.dst_chan.into()).map(|row| self.place(row))
    }

    /// Returns the row of a component of AR.
    pub(super) fn address(&self, chan: usize) -> Place {
        self.intermediate(INTERMEDIATE + chan)
    }

    /// Returns a row for an operand of the group that is being lowered.
    pub(super) fn temporary(&mut self) -> Place {
        if self.used == self.temporaries.len() {
            let place = self.lowered.layout.add();
            self.lowered.room.push(Row::ZERO);
            self.temporaries.push(place);
        }
        self.used += 1;
        self.temporaries[self.used - 1]
    }

    /// Returns the row of the index that INDEX_MODE names, or `None` if the index is aL. If the clause has not written
    /// the component of AR, the result is a row of zeros.
    pub(super) fn index_row(&mut self, op: &AluOp, before: &Before) -> Option<Place> {
        match index(op.index_mode).expect("only groups whose index is known are lowered") {
            Index::Loop => None,
            Index::Address(chan) if before.address[chan] => Some(self.address(chan)),
            Index::Address(_) => Some(self.constant_place(0)),
        }
    }

    /// Adds an operation that copies an indexed operand to a row. Returns the row.
    fn indexed_source(&mut self, clause: &AluClause, op: &AluOp, source: &Source, before: &Before) -> Place {
        let (row, number, by_row, by_loop) = match source.operand {
            Operand::Gpr { gpr, chan } => {
                let row = self.index_row(op, before);
                let number = u32::from(gpr) << 2 | u32::from(chan);
                (row, number, handler::<ReadByRow>(self.level), handler::<ReadByLoop>(self.level))
            }
            Operand::Kcache { .. }
            | Operand::ConstantFile { .. }
            | Operand::Value(_)
            | Operand::Previous(_)
            | Operand::PreviousScalar => {
                let window = matches!(source.operand, Operand::Kcache { .. });
                let row = if window { None } else { self.index_row(op, before) };
                let number = self.lowered.tables.constants.len() as u32;
                let constants = self.constants_by_index(clause, source);
                self.lowered.tables.constants.push(constants);
                (row, number, handler::<ConstantByRow>(self.level), handler::<ConstantByLoop>(self.level))
            }
        };
        let dst = self.temporary();
        let mut operation = self.operation(if row.is_some() { by_row } else { by_loop });
        (operation.dst, operation.number) = (dst, number);
        operation.src[0] = row.unwrap_or(operation.src[0]);
        let register = row.is_some() && matches!(source.operand, Operand::Gpr { .. });
        self.push(operation, if register { Template::Indexed } else { Template::None });
        dst
    }

    /// Returns the list of constants from which an index selects one constant.
    fn constants_by_index(&self, clause: &AluClause, source: &Source) -> Constants {
        let alternate = clause.alt_const;
        match source.operand {
            Operand::Kcache { set, index, chan } => {
                let Window { bank, line, .. } = clause.kcache[usize::from(set)];
                let first = (i32::from(line) * 16 + i32::from(index)) * 4 + i32::from(chan);
                Constants { alternate, bank: Bank::Buffer(bank), first, step: 64 }
            }
            Operand::ConstantFile { index, chan } => {
                Constants { alternate, bank: Bank::File(chan), first: index.into(), step: 1 }
            }
            Operand::Gpr { .. } | Operand::Value(_) | Operand::Previous(_) | Operand::PreviousScalar => {
                unreachable!("no constant that an index chooses")
            }
        }
    }

    /// Returns whether an index selects an operand.
    pub(super) fn is_indexed(clause: &AluClause, source: &Source) -> bool {
        match source.operand {
            Operand::Gpr { .. } | Operand::ConstantFile { .. } => source.rel,
            Operand::Kcache { set, .. } => by_loop(clause, set),
            Operand::Value(_) | Operand::Previous(_) | Operand::PreviousScalar => false,
        }
    }

    /// Returns the row of an operand of a lowered group. Also returns the operand's modifiers: the bits to keep, and
    /// the bits to flip.
    pub(super) fn source(
        &mut self,
        clause: &AluClause,
        op: &AluOp,
        source: &Source,
        before: &Before,
    ) -> (Place, u32, u32) {
        let previous =
            |slot: usize| before.register[slot].unwrap_or_else(|| self.place(self.previous + slot));
        let keep = if source.abs { 0x7fff_ffff } else { u32::MAX };
        let flip = if source.neg { 0x8000_0000 } else { 0 };
        let place = match source.operand {
            _ if Self::is_indexed(clause, source) => self.indexed_source(clause, op, source, before),
            Operand::Previous(slot) => previous(slot.into()),
            Operand::PreviousScalar => previous(TRANS.into()),
            Operand::Gpr { gpr, chan } => {
                let row = self.environment.register_row(gpr.into(), chan.into());
                self.place(row.expect("only groups whose registers are there are lowered"))
            }
            Operand::Value(_) | Operand::Kcache { .. } | Operand::ConstantFile { .. } => {
                match self
                    .constant(clause, source)
                    .expect("only groups whose constants are known are lowered")
                {
                    Constant::Word(word) => self.constant_place(word),
                    Constant::Uniform(uniform) => self.uniform_place(uniform),
                }
            }
        };
        (place, keep, flip)
    }

    pub(super) fn constant_place(&mut self, word: u32) -> Place {
        let found = self.lowered.constants.iter().find(|(constant, _)| *constant == word);
        if let Some((_, place)) = found {
            return *place;
        }
        let place = self.lowered.layout.add();
        self.lowered.room.push(Row([word; LANES]));
        self.lowered.constants.push((word, place));
        place
    }

    fn uniform_place(&mut self, uniform: Uniform) -> Place {
        let found = self.lowered.uniforms.iter().find(|(known, _)| *known == uniform);
        if let Some((_, place)) = found {
            return *place;
        }
        let place = self.lowered.layout.add();
        self.lowered.room.push(Row::ZERO);
        self.lowered.uniforms.push((uniform, place));
        place
    }

    /// Returns the constant that the operand reads. The constant must be the same in all executions of a group.
    /// Otherwise, the function returns `None`.
    pub(super) fn constant(&self, clause: &AluClause, source: &Source) -> Option<Constant> {
        let uniform =
            |bank, number: usize| Constant::Uniform(Uniform { alternate: clause.alt_const, bank, number });
        match source.operand {
            Operand::Value(value) => Some(Constant::Word(value)),
            Operand::Kcache { set, index, chan } => {
                let Window { bank, line, mode } = clause.kcache[usize::from(set)];
                let lines = match mode {
                    KcacheMode::NOP => 0,
                    KcacheMode::LOCK_1 => 1,
                    KcacheMode::LOCK_2 => 2,
                    KcacheMode::LOCK_LOOP_INDEX => return None,
                };
                if index >= lines * 16 {
                    return if self.strict { None } else { Some(Constant::Word(0)) };
                }
                let dword = (usize::from(line) * 16 + usize::from(index)) * 4 + usize::from(chan);
                Some(uniform(Bank::Buffer(bank), dword))
            }
            Operand::ConstantFile { .. } if source.rel => None,
            Operand::ConstantFile { index, chan } => Some(uniform(Bank::File(chan), index.into())),
            Operand::Gpr { .. } | Operand::Previous(_) | Operand::PreviousScalar => None,
        }
    }
}
