//! The rows of operands and destinations, and the constants that are the same whenever a group runs.

use reconverge_simt::registers::Row;

use super::super::lanes::Place;
use super::{Before, Lowering};
use crate::chip::LANES;
use crate::code::{AluClause, AluOp, Operand, Source, TRANS, Window};
use crate::wave::PREVIOUS;
use crate::words::KcacheMode;

impl Lowering<'_> {
    pub(super) fn place(&self, row: usize) -> Place {
        self.lowered.layout.place(row)
    }

    pub(super) fn intermediate(&self, number: usize) -> Place {
        self.place(self.previous + PREVIOUS + number)
    }

    pub(super) fn destination(&self, op: &AluOp) -> Option<Place> {
        self.launch.register_row(op.dst_gpr.into(), op.dst_chan.into()).map(|row| self.place(row))
    }

    /// The row of an operand that can be lowered, and its modifiers: bits that stay, bits that flip.
    pub(super) fn source(
        &mut self,
        clause: &AluClause,
        source: &Source,
        before: &Before,
    ) -> (Place, u32, u32) {
        let previous =
            |slot: usize| before.register[slot].unwrap_or_else(|| self.place(self.previous + slot));
        let keep = if source.abs { 0x7fff_ffff } else { u32::MAX };
        let flip = if source.neg { 0x8000_0000 } else { 0 };
        let place = match source.operand {
            Operand::Previous(slot) => previous(slot.into()),
            Operand::PreviousScalar => previous(TRANS.into()),
            Operand::Gpr { gpr, chan } => {
                let row = self.launch.register_row(gpr.into(), chan.into());
                self.place(row.expect("only groups whose registers are there are lowered"))
            }
            Operand::Value(_) | Operand::Kcache { .. } | Operand::ConstantFile { .. } => {
                let word = self.constant(clause, source);
                self.constant_place(word.expect("only groups whose constants are known are lowered"))
            }
        };
        (place, keep, flip)
    }

    pub(super) fn constant_place(&mut self, word: u32) -> Place {
        let found = self.constants.iter().find(|(constant, _)| *constant == word);
        if let Some((_, place)) = found {
            return *place;
        }
        let place = self.lowered.layout.add();
        self.lowered.room.push(Row([word; LANES]));
        self.constants.push((word, place));
        place
    }

    /// A constant that is the same whenever the group runs.
    pub(super) fn constant(&self, clause: &AluClause, source: &Source) -> Option<u32> {
        let resources = if clause.alt_const { &self.launch.alternate } else { &self.launch.resources };
        match source.operand {
            Operand::Value(value) => Some(value),
            Operand::Kcache { set, index, chan } => {
                let Window { bank, line, mode } = clause.kcache[usize::from(set)];
                let lines = match mode {
                    KcacheMode::NOP => 0,
                    KcacheMode::LOCK_1 => 1,
                    KcacheMode::LOCK_2 => 2,
                    KcacheMode::LOCK_LOOP_INDEX => return None,
                };
                if index >= lines * 16 {
                    return if self.strict { None } else { Some(0) };
                }
                let dword = (usize::from(line) * 16 + usize::from(index)) * 4 + usize::from(chan);
                Some(resources.constant_buffers[usize::from(bank)].get(dword).copied().unwrap_or(0))
            }
            Operand::ConstantFile { .. } if source.rel => None,
            Operand::ConstantFile { index, chan } => {
                let entry = resources.constant_file.get(usize::from(index));
                Some(entry.map_or(0, |entry| entry[usize::from(chan)]))
            }
            Operand::Gpr { .. } | Operand::Previous(_) | Operand::PreviousScalar => None,
        }
    }
}
