//! Records. A record is an instruction of a source text. The labels and constructs of a record are not resolved yet.

use reconverge_isa::Field;
use reconverge_isa::source::{Diagnostic, Span};

use super::syntax::UNUSED_SOURCE;
use crate::inst::WORDS;
use crate::words::*;

/// An instruction of the source text, and its position in the text.
pub(super) struct Record {
    pub(super) words: [u32; WORDS],
    pub(super) span: Span,
    /// The way in which JUMP_ADDR is determined.
    pub(super) target: Target,
    /// The sources that the operands of both halves read.
    pub(super) reads: Reads,
}

pub(super) enum Target {
    /// The words of the record already contain the address.
    Fixed,
    Label(String, Span),
    /// The matching instruction of the same construct determines the address. If the text does not state the integer
    /// constant, the matching instruction also determines this constant.
    Structure {
        /// Whether the text states the integer constant.
        int: bool,
    },
}

/// Two sets of sources of one instruction. The operands read the sources in `operands`. The lines of the instruction
/// state the sources in `declared`.
#[derive(Default)]
pub(super) struct Reads {
    /// For each operand, the address word (0 RGB, 1 alpha), the source number, and the position in the text.
    pub(super) operands: Vec<(usize, usize, Span)>,
    pub(super) declared: [[bool; 3]; 2],
}

impl Reads {
    /// Returns an error if an operand reads a source that the text does not state. Without this error, the assembler
    /// would use inline code 0 as the source. If a half is `nop` or missing in the text, the assembler would use
    /// temp\[0\] as the source of this half.
    pub(super) fn undeclared(&self, words: &[u32; WORDS]) -> Option<Diagnostic> {
        let unused = |word: usize, number: usize| {
            let sources = words[1 + word];
            sources == 0 || sources >> (10 * number) & 0x3ff == UNUSED_SOURCE
        };
        let missing = |(word, number, _): &&(usize, usize, Span)| {
            !self.declared[*word][*number] && unused(*word, *number)
        };
        let (word, number, at) = self.operands.iter().find(missing)?;
        let (line, letters) =
            if *word == 0 { ("RGB half's", "r, g and b read") } else { ("alpha half's", "a reads") };
        Some(
            Diagnostic::error(
                *at,
                format!("src{number} is not stated: {letters} the sources of the {line} line"),
            )
            .help(format!("add `: src{number}=temp[N]`, const[N] or #VALUE there")),
        )
    }
}

/// Returns a field of US_FC_ADDR.
pub(super) fn addr_field(name: &str) -> &'static Field {
    match FcAddr::INFO.field(name) {
        Some(field) => field,
        None => unreachable!("US_FC_ADDR has a field {name}"),
    }
}
