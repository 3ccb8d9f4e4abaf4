//! What a disassembler notes beside its text, so that front ends can show lines with their addresses and words.

use std::ops::Range;

/// The end of an instruction in a listing.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Mark {
    /// The byte of the text behind it; the text from the mark before belongs to the instruction.
    pub end: usize,
    /// Its address in the machine's own unit.
    pub address: u32,
    /// Which words of the program it stands for.
    pub words: Range<usize>,
    /// How many flow constructs it lies in, when the listing shows structure.
    pub depth: usize,
}
