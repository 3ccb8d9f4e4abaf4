//! Marks that a disassembler returns with its text, so that front ends can show lines with their addresses and words.

use std::ops::Range;

/// The end of an instruction in a listing.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Mark {
    /// Offset in the text after the instruction, in bytes. The text from the previous mark on belongs to the
    /// instruction.
    pub end: usize,
    /// Address of the instruction, in the machine's own unit.
    pub address: u32,
    /// Words of the program that the instruction occupies.
    pub words: Range<usize>,
    /// Number of flow constructs around the instruction, if the listing shows structure.
    pub depth: usize,
}
