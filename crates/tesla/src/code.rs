//! The instructions of a program by address, each decoded once.

use std::sync::OnceLock;

use reconverge_simt::loaded::count_decoded;

use crate::decode::decode;
use crate::inst::{Chip, Control, End, Guard, Inst, Memory, Op, Operand, Space, Stage};
use crate::trap::Cause;

/// The parameters of the search for races between accesses to s[].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SharedChecks {
    /// Number of bytes of the header and the parameters in s[], rounded up to whole words.
    pub given: u32,
    /// Whether the program stores to s[].
    pub stored: bool,
    /// Whether some store to `s[]` is narrower than a word.
    pub narrow: bool,
}

/// The instructions of a program at their addresses in the code window.
#[derive(Clone, Debug)]
pub struct Code {
    words: Vec<u32>,
    base: u32,
    stage: Stage,
    chip: Chip,
    /// For every word of the code, the instruction that starts at the word. The entry is empty until the instruction is
    /// decoded. A branch may go to any word.
    slots: Vec<OnceLock<Result<Inst, Cause>>>,
}

impl Code {
    /// Decodes the instruction that starts at each of the words. The first word is at byte address `base`.
    ///
    /// Data may be between instructions. So an undecodable word causes a trap only when control reaches the word.
    pub fn new(words: &[u32], base: u32, stage: Stage, chip: Chip) -> Self {
        let code = Code::undecoded(words, base, stage, chip);
        for place in 0..words.len() {
            code.decoded(place);
        }
        code
    }

    /// Creates the same code as [`Code::new`]. Decodes only the instructions that are reachable from the first
    /// instruction. When control reaches another instruction, that instruction is decoded.
    pub fn reachable(words: &[u32], base: u32, stage: Stage, chip: Chip) -> Self {
        count_decoded();
        let code = Code::undecoded(words, base, stage, chip);
        match code.reached() {
            Some(_) => code,
            None => Code::new(words, base, stage, chip),
        }
    }

    /// Decodes the instructions that are reachable from the first instruction. Returns those decoded instructions that
    /// are valid. Returns `None` if an indirect branch can reach every instruction.
    pub(crate) fn reached(&self) -> Option<Vec<&Inst>> {
        let (mut open, mut seen, mut reached) = (vec![self.base], vec![false; self.slots.len()], Vec::new());
        while let Some(pc) = open.pop() {
            let Some(place) = self.place(pc).filter(|place| !std::mem::replace(&mut seen[*place], true))
            else {
                continue;
            };
            let Ok(inst) = self.decoded(place) else { continue };
            reached.push(inst);
            let (always, mut falls) = (inst.guard == Guard::ALWAYS, inst.end != End::Exit);
            if let Op::Control(control) = inst.op {
                if matches!(control, Control::BraIndirect { .. }) {
                    return None;
                }
                falls &= !(always && matches!(control, Control::Bra { .. } | Control::Ret | Control::Trap));
                open.extend(control.target());
            }
            open.extend(falls.then_some(pc + inst.form.bytes()));
        }
        Some(reached)
    }

    /// Creates the same code as [`Code::new`], from instructions that are already decoded. Each instruction comes with
    /// the index of its first word. When control reaches another instruction, that instruction is decoded.
    pub fn of(words: &[u32], base: u32, (stage, chip): (Stage, Chip), insts: &[(usize, Inst)]) -> Self {
        count_decoded();
        let code = Code::undecoded(words, base, stage, chip);
        for (place, inst) in insts {
            code.slots[*place].get_or_init(|| Ok(*inst));
        }
        code
    }

    /// Returns the program after `map` has replaced each decoded instruction. The indices do not change.
    pub(crate) fn mapped(&self, map: impl Fn(usize, &Inst) -> Inst) -> Code {
        let mapped = Code::undecoded(&self.words, self.base, self.stage, self.chip);
        for (place, slot) in mapped.slots.iter().enumerate() {
            if let Some(inst) = self.slot(place) {
                slot.get_or_init(|| Ok(map(place, inst)));
            }
        }
        mapped
    }

    /// Returns the parameters of the race checks for a block. The s[] of the block starts with `given` bytes of header
    /// and parameters. Returns `None` if no instruction accesses s[].
    pub(crate) fn checks(&self, given: u32) -> Option<SharedChecks> {
        let mut checks = SharedChecks { given, stored: false, narrow: false };
        let mut accessed = false;
        for inst in self.slots().flatten() {
            let shared = inst.src.iter().filter_map(Operand::mem).find(|mem| mem.space == Space::Shared);
            let Some(mem) = shared else { continue };
            accessed = true;
            if matches!(inst.op, Op::Memory(Memory::St | Memory::StUnlock)) {
                checks.stored = true;
                checks.narrow |= mem.access.bytes() < 4;
            }
        }
        accessed.then_some(checks)
    }

    /// The stage for which the program is decoded.
    pub fn stage(&self) -> Stage {
        self.stage
    }

    /// The chip for which the program is decoded.
    pub fn chip(&self) -> Chip {
        self.chip
    }

    fn undecoded(words: &[u32], base: u32, stage: Stage, chip: Chip) -> Self {
        Code { words: words.to_vec(), base, stage, chip, slots: vec![OnceLock::new(); words.len()] }
    }

    /// Returns the instruction that starts at a word. Decodes the instruction if necessary.
    fn decoded(&self, place: usize) -> &Result<Inst, Cause> {
        self.slots[place].get_or_init(|| {
            let next = self.words.get(place + 1).copied();
            let inst = decode([self.words[place], next.unwrap_or(0)], self.chip, self.stage)
                .map_err(|error| Cause::Undecodable(error.to_string()))?;
            match (inst.form.words(), next) {
                // An instruction of two words must start at an even word. (2)
                (2, _) if !(self.base as usize / 4 + place).is_multiple_of(2) => {
                    Err(Cause::UnalignedLongInstruction)
                }
                (2, None) => Err(Cause::OutsideCode),
                _ => Ok(inst),
            }
        })
    }

    /// Returns the index of the word at an address. Returns `None` if the address is outside the code or not at the
    /// start of a word.
    pub fn place(&self, pc: u32) -> Option<usize> {
        let offset = pc.checked_sub(self.base)?;
        let place = (offset / 4) as usize;
        (offset.is_multiple_of(4) && place < self.slots.len()).then_some(place)
    }

    /// Returns the address of the first word.
    pub fn base(&self) -> u32 {
        self.base
    }

    /// Returns an entry for every word. If a valid and decoded instruction starts at the word, the entry is this
    /// instruction.
    pub fn slots(&self) -> impl Iterator<Item = Option<&Inst>> {
        (0..self.slots.len()).map(|place| self.slot(place))
    }

    /// Returns the instruction that starts at a word, if this instruction is valid and decoded.
    pub fn slot(&self, place: usize) -> Option<&Inst> {
        self.slots.get(place)?.get()?.as_ref().ok()
    }

    /// Returns the instruction at an address.
    ///
    /// # Errors
    /// The address is outside the code, or the words at the address cannot be decoded.
    #[inline]
    pub fn at(&self, pc: u32) -> Result<&Inst, Cause> {
        let place = self.place(pc).ok_or(Cause::OutsideCode)?;
        self.decoded(place).as_ref().map_err(Clone::clone)
    }

    /// Returns all words of the program.
    pub fn words(&self) -> &[u32] {
        &self.words
    }

    /// Returns the two words at an address. Words outside the code are 0.
    pub fn words_at(&self, pc: u32) -> [u32; 2] {
        let place = self.place(pc);
        [0, 1].map(|next| place.and_then(|place| self.words.get(place + next)).copied().unwrap_or(0))
    }
}
