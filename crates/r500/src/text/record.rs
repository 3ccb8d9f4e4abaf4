//! The records that lines of a source become.

use reconverge_isa::Field;
use reconverge_isa::source::{Diagnostic, Span};

use super::syntax::UNUSED_SOURCE;
use crate::inst::WORDS;
use crate::words::*;

/// A record and its place in the text.
pub(super) struct Record {
    pub(super) words: [u32; WORDS],
    pub(super) span: Span,
    /// What decides JUMP_ADDR.
    pub(super) target: Target,
    /// What both halves read.
    pub(super) reads: Reads,
}

pub(super) enum Target {
    /// It is in the words.
    Fixed,
    Label(String, Span),
    /// The construct's partner decides; also the integer constant, unless the text says it.
    Structure {
        /// The text says it.
        int: bool,
    },
}

/// What the operands of an instruction read, and which sources its lines mention.
#[derive(Default)]
pub(super) struct Reads {
    /// RGB (0) or alpha (1) address word, source, place in the text.
    pub(super) operands: Vec<(usize, usize, Span)>,
    pub(super) declared: [[bool; 3]; 2],
}

impl Reads {
    /// An operand whose source is stated nowhere would silently read inline code 0, or temp\[0\] where the half with its
    /// source is left out or `nop`.
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

/// A field of US_FC_ADDR.
pub(super) fn addr_field(name: &str) -> &'static Field {
    match FcAddr::INFO.field(name) {
        Some(field) => field,
        None => unreachable!("US_FC_ADDR has a field {name}"),
    }
}
