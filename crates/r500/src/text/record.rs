//! The records of source lines.

use reconverge_isa::Field;
use reconverge_isa::source::{Diagnostic, Span};

use super::syntax::UNUSED_SOURCE;
use crate::inst::WORDS;
use crate::words::*;

/// A record and its position in the text.
pub(super) struct Record {
    pub(super) words: [u32; WORDS],
    pub(super) span: Span,
    /// The origin of JUMP_ADDR.
    pub(super) target: Target,
    /// The sources that both halves read.
    pub(super) reads: Reads,
}

pub(super) enum Target {
    /// The words already contain the address.
    Fixed,
    Label(String, Span),
    /// The other half of the construct determines the address. It also determines the integer constant, unless the
    /// text states it.
    Structure {
        /// The text states the integer constant.
        int: bool,
    },
}

/// The sources that the operands of an instruction read, and those that its lines mention.
#[derive(Default)]
pub(super) struct Reads {
    /// RGB (0) or alpha (1) address word, source number, position in the text.
    pub(super) operands: Vec<(usize, usize, Span)>,
    pub(super) declared: [[bool; 3]; 2],
}

impl Reads {
    /// Returns an error for an operand whose source is not stated. Without the error, it would read inline code 0, or
    /// temp\[0\] if the half with its source is omitted or `nop`.
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
