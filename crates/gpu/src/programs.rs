//! The programs that a chip runs, kept for whoever asks: each once, in the order in which they come up.

use std::collections::HashSet;

use reconverge_isa::Isa;
use reconverge_isa::program::Stage;

/// A program as the chip reads it.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct ChipProgram {
    /// The machine.
    pub isa: Isa,
    /// The chip, as the machine's table of chips spells it.
    pub chip: &'static str,
    /// The stage.
    pub stage: Stage,
    /// The words, from its first instruction on. Zeros may follow its end.
    pub words: Vec<u32>,
}

/// The programs so far, where they are kept.
#[derive(Clone, Debug, Default)]
pub(crate) struct Programs {
    kept: bool,
    known: HashSet<ChipProgram>,
    new: Vec<ChipProgram>,
}

impl Programs {
    /// Keeps programs from now on.
    pub(crate) fn keep(&mut self) {
        self.kept = true;
    }

    /// A program runs.
    pub(crate) fn note(&mut self, program: impl FnOnce() -> ChipProgram) {
        if !self.kept {
            return;
        }
        let program = program();
        if !self.known.contains(&program) {
            self.known.insert(program.clone());
            self.new.push(program);
        }
    }

    /// Those that came up since the last call.
    pub(crate) fn take(&mut self) -> Vec<ChipProgram> {
        std::mem::take(&mut self.new)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_program_is_given_once_and_only_where_programs_are_kept() {
        let program =
            |word| ChipProgram { isa: Isa::R700, chip: "rv770", stage: Stage::Pixel, words: vec![word] };
        let mut programs = Programs::default();
        programs.note(|| program(1));
        assert_eq!(programs.take(), []);
        programs.keep();
        for word in [1, 2, 1] {
            programs.note(|| program(word));
        }
        assert_eq!(programs.take(), [program(1), program(2)]);
        programs.note(|| program(2));
        assert_eq!(programs.take(), []);
    }
}
