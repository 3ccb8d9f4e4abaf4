//! A program decoded once, by address.

use crate::decode::decode;
use crate::inst::{Chip, Inst, Stage};
use crate::trap::Cause;

/// The instructions of a program at their places in the code window.
#[derive(Clone, Debug)]
pub struct Code {
    words: Vec<u32>,
    base: u32,
    /// For every word, the instruction that starts there. A branch may go to any of them.
    slots: Vec<Result<Inst, Cause>>,
}

impl Code {
    /// Decodes `words`, of which the first stands at byte address `base`, from every word on.
    ///
    /// What cannot be decoded is a trap when it is reached, not before: data may lie between instructions.
    pub fn new(words: &[u32], base: u32, stage: Stage, chip: Chip) -> Self {
        let slot = |place: usize| {
            let next = words.get(place + 1).copied();
            let inst = decode([words[place], next.unwrap_or(0)], chip, stage)
                .map_err(|error| Cause::Undecodable(error.to_string()))?;
            match (inst.form.words(), next) {
                // Two words must start at an even one. (2)
                (2, _) if !(base as usize / 4 + place).is_multiple_of(2) => {
                    Err(Cause::UnalignedLongInstruction)
                }
                (2, None) => Err(Cause::OutsideCode),
                _ => Ok(inst),
            }
        };
        let slots = (0..words.len()).map(slot).collect();
        Code { words: words.to_vec(), base, slots }
    }

    /// The place of an address among the words.
    pub fn place(&self, pc: u32) -> Option<usize> {
        let offset = pc.checked_sub(self.base)?;
        let place = (offset / 4) as usize;
        (offset.is_multiple_of(4) && place < self.slots.len()).then_some(place)
    }

    /// The address of the first word.
    pub fn base(&self) -> u32 {
        self.base
    }

    /// For every word, the instruction that starts there.
    pub fn slots(&self) -> &[Result<Inst, Cause>] {
        &self.slots
    }

    /// The instruction at an address.
    ///
    /// # Errors
    /// There is none, or it cannot be decoded.
    #[inline]
    pub fn at(&self, pc: u32) -> Result<&Inst, Cause> {
        let place = self.place(pc).ok_or(Cause::OutsideCode)?;
        self.slots[place].as_ref().map_err(Clone::clone)
    }

    /// All words.
    pub fn words(&self) -> &[u32] {
        &self.words
    }

    /// The two words at an address; 0 where there is none.
    pub fn words_at(&self, pc: u32) -> [u32; 2] {
        let place = self.place(pc);
        [0, 1].map(|next| place.and_then(|place| self.words.get(place + next)).copied().unwrap_or(0))
    }
}
