//! Lowers the inputs and outputs of graphics stages: a[], v[], p[] and o[] at constant addresses.

use reconverge_simt::Mode;

use super::super::lanes::{ACTIVE, Handler, handler};
use super::super::operands::{Operation, Place};
use super::super::stage::{FromInput, FromOutput, ToOutput, code};
use super::super::words::Kind;
use super::arithmetic::place_of;
use super::{Lower, Lowering, Template};
use crate::inst::{Arith, Base, Dst, Inst, Mem, Operand, Space};
use crate::lane::interpolate::Position;
use crate::lane::{Modifiers, Rounding, Width};
use crate::meaning::Modes;

impl Lower<'_> {
    /// Returns whether the operand is a word of a[], v[], p[] or o[] that every lane can read. The address of the
    /// operand must be constant. The word must exist, unless missing words read zero. The access must read the whole
    /// word.
    pub(super) fn is_stage_word(&self, mem: &Mem) -> bool {
        let word = place_of(mem) / 4;
        let lenient = self.context.mode == Mode::Lenient;
        let known = mem.base == Base::A(0) && !mem.increment && mem.access.bytes() == 4;
        known
            && match mem.space {
                Space::Attribute | Space::Varying => self.inputs.contains(word) || lenient,
                Space::Primitive => (word as usize) < self.context.vertices.len() || lenient,
                Space::Output => true,
                Space::Const(_) | Space::Shared | Space::Local | Space::Global(_) => false,
            }
    }

    /// Returns the row of an operand for which `is_stage_word` returns true.
    pub(super) fn stage_word(&mut self, mem: &Mem, number: usize) -> Option<Place> {
        let word = place_of(mem) / 4;
        match mem.space {
            Space::Primitive => {
                let value = self.context.vertices.get(word as usize).copied().unwrap_or(0);
                self.constant(value)
            }
            Space::Output => {
                let mut fetch = self.operation(self.temporary(number), ACTIVE);
                fetch.number = word;
                self.push(handler::<FromOutput>(self.level), fetch);
                Some(fetch.dst)
            }
            _ => Some(self.input_word(u16::try_from(word).ok()?, number)),
        }
    }

    /// Returns the row of an input word that the launch provides. The word is interpolated at the centre of the pixel.
    pub(super) fn input_word(&mut self, word: u16, number: usize) -> Place {
        let mut fetch = self.operation(self.temporary(number), ACTIVE);
        (fetch.number, fetch.c) = (word.into(), code(Position::Centre));
        self.push_as(handler::<FromInput>(self.level), fetch, Template::FromInput);
        fetch.dst
    }

    /// Returns an operation for a set of lanes. The operation writes a row to a word of o[]. If `half` is set, it
    /// writes the low half of the row to both halves of the word. (4)
    pub(super) fn to_output(&self, row: Place, address: u16, half: bool, set: usize) -> (Handler, Operation) {
        let mut write = self.operation(self.sink(), set);
        (write.src[0], write.number, write.narrow[0]) = (row, u32::from(address) / 4, half);
        (handler::<ToOutput>(self.level), write)
    }

    /// Lowers an interpolation at a position, multiplied by the second source. (6.7)
    pub(super) fn interp(&mut self, inst: &Inst, position: Position, set: usize) -> Option<Lowering> {
        let Operand::Mem(mem) = inst.src[0] else { return None };
        let mut fetch = self.operation(self.temporary(0), set);
        let plain = matches!(inst.src[1], Operand::None);
        let transfer = if self.is_stage_word(&mem) {
            (fetch.number, fetch.c) = (place_of(&mem) / 4, code(position));
            let own = match inst.dst {
                Dst::R32(register) if plain => Some(self.target(register)),
                _ => None,
            };
            fetch.dst = own.unwrap_or(fetch.dst);
            self.push_as(handler::<FromInput>(self.level), fetch, Template::FromInput);
            if own.is_some() {
                return Some(Lowering::Straight);
            }
            None
        } else {
            let mut transfer = self.transfer(&mem, [fetch.dst; 4], set)?;
            self.becomes(&mut transfer, Kind::Load { position });
            Some(transfer)
        };
        let after = self.lowered.operations.len();
        let mut operation = self.operation(self.sink(), set);
        // The product of an interpolation ignores the modes of the launch, and interpolations do not write flags.
        let mut times = Inst { cdst: None, ..*inst };
        times.modifiers[0] = Modifiers::NONE;
        let op = match plain {
            true => Arith::Mov { width: Width::B32 },
            false => Arith::FMul { rounding: Rounding::Nearest, sat: false },
        };
        let mut high = [self.zero(); 3];
        match inst.src[1] {
            Operand::Mem(mem) if !self.is_uniform(&mem) => return None,
            operand => self.source(operand, 1, &mut operation, &mut high)?,
        }
        operation.src[0] = fetch.dst;
        let modes = if plain {
            self.context.setup.modes
        } else {
            Modes { mul_zero_wins: false, ..self.context.setup.modes }
        };
        self.result(&op, &times, operation, high, (set, modes))?;
        Some(match transfer {
            None => Lowering::Straight,
            Some(transfer) => Lowering::Last(self.access(transfer, after..self.lowered.operations.len())),
        })
    }
}
