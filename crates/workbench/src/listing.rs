//! Listings of programs, as text and as a list of lines.

use reconverge_isa::Mark;
use reconverge_isa::limits::NESTING;

use crate::target::TargetError;

/// Options for the contents and layout of a listing.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Style {
    /// Prints the address and the words of each instruction.
    pub hex: bool,
    /// Indents flow constructs, and prints labels for flow constructs.
    pub structure: bool,
    /// Prints special forms of an operation under their own names. (R500)
    pub idioms: bool,
    /// Prints the syntax of AMD's assembler. (R700)
    pub amd: bool,
    /// Adds comments after instructions. A comment has the names of operands, the values of constants, and the names of
    /// built-in variables. (Tesla)
    pub notes: bool,
}

/// A disassembled program.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Listing {
    /// The text, which the assembler accepts.
    pub text: String,
    /// For each instruction, the words of the instruction and the end of the instruction's text.
    pub(crate) marks: Vec<Mark>,
}

/// A line of a listing. The line is a directive, or an instruction with the label that precedes the instruction.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Line {
    /// Address in the machine's address unit. A directive does not have an address.
    pub address: Option<u32>,
    /// The words of the instruction or directive.
    pub words: Vec<u32>,
    /// The label before the instruction.
    pub label: Option<String>,
    /// Text of the instruction or directive, without comments and indentation. Some R500 instructions take two lines.
    pub text: String,
    /// Number of flow constructs that contain the instruction. This number is valid only with [`Style::structure`].
    pub depth: usize,
    /// The comments after the instruction.
    pub notes: Vec<String>,
    /// Line number in the listing, from 1. If the text takes several lines, `source_line` is the number of the text's
    /// first line.
    pub source_line: usize,
}

impl Line {
    /// Returns the text of the instruction or directive on one line, with single spaces between words.
    pub fn code(&self) -> String {
        self.text.split_whitespace().collect::<Vec<_>>().join(" ")
    }
}

/// The instructions of a listing, ordered by address.
#[derive(Clone, Debug, Default)]
pub struct Lines(Vec<Line>);

impl Lines {
    /// Returns the elements of `lines` that are instructions.
    pub fn of(lines: impl IntoIterator<Item = Line>) -> Lines {
        let mut lines = addressed(lines.into_iter().collect());
        lines.dedup_by_key(|line| line.address);
        Lines(lines)
    }

    /// Returns the line of the instruction at an address.
    pub fn at(&self, address: u32) -> Option<&Line> {
        let at = self.0.binary_search_by_key(&Some(address), |line| line.address).ok()?;
        self.0.get(at)
    }

    /// Returns the text of the instruction at an address, as one line. If no instruction starts at the address, returns
    /// an empty text.
    pub fn code(&self, address: u32) -> String {
        self.at(address).map(Line::code).unwrap_or_default()
    }

    /// Iterates over the lines in the order of their addresses. Each address occurs once.
    pub fn iter(&self) -> impl Iterator<Item = &Line> {
        self.0.iter()
    }
}

/// Returns the lines that have an address, ordered by address.
pub(crate) fn addressed(mut lines: Vec<Line>) -> Vec<Line> {
    lines.retain(|line| line.address.is_some());
    lines.sort_by_key(|line| line.address);
    lines
}

/// Returns an error if flow constructs are nested deeper than [`NESTING`].
pub(crate) fn check_nesting(deepest: usize) -> Result<(), TargetError> {
    NESTING.check(deepest as u64).map_err(TargetError::Exceeded)
}

impl Listing {
    /// Returns the listing unchanged if its nesting depth is allowed.
    ///
    /// # Errors
    /// Returns an error if flow constructs are nested deeper than [`NESTING`].
    pub(crate) fn checked(self) -> Result<Listing, TargetError> {
        let deepest = self.marks.iter().map(|mark| mark.depth).max().unwrap_or(0);
        check_nesting(deepest).map(|()| self)
    }

    /// Returns the instructions of the listing, ordered by address. `words` are the words of the program.
    pub fn instructions(&self, words: &[u32]) -> Lines {
        Lines::of(self.lines(words))
    }

    /// Returns the lines of the listing. `words` are the words of the program.
    pub fn lines(&self, words: &[u32]) -> Vec<Line> {
        let mut lines = Vec::new();
        let (mut start, mut number) = (0, 1);
        let ends = self.marks.iter().map(|mark| (mark.end, Some(mark)));
        for (end, mark) in ends.chain([(self.text.len(), None)]) {
            let mut line = Line::default();
            for text in self.text[start..end].lines() {
                let (code, note) =
                    text.split_once(';').map_or((text, None), |(code, note)| (code, Some(note)));
                line.notes.extend(
                    note.into_iter().flat_map(|note| note.split(" ; ")).map(|note| note.trim().to_owned()),
                );
                // If the listing shows words, a line of a Tesla listing begins with the address, `/*0010*/`.
                let address = code.strip_prefix("/*").and_then(|rest| rest.split_once("*/"));
                match address.map_or(code, |(_, code)| code).trim() {
                    "" => {}
                    label if label.ends_with(':') && !label.contains(' ') => {
                        line.label = Some(label.trim_end_matches(':').to_owned());
                    }
                    code if code.starts_with('.')
                        && ![".word", ".slot"].iter().any(|words| code.starts_with(words))
                        || mark.is_none() =>
                    {
                        let notes = std::mem::take(&mut line.notes);
                        let text = code.to_owned();
                        lines.push(Line { text, notes, source_line: number, ..Line::default() });
                    }
                    code => {
                        if line.text.is_empty() {
                            line.source_line = number;
                        } else {
                            line.text.push('\n');
                        }
                        line.text.push_str(code);
                    }
                }
                number += 1;
            }
            if let Some(mark) = mark {
                line.address = Some(mark.address);
                line.words = words.get(mark.words.clone()).unwrap_or_default().to_vec();
                line.depth = mark.depth;
                lines.push(line);
            }
            start = end;
        }
        lines
    }
}
