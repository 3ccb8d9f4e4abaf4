//! The marks that a disassembler returns together with its text. With these marks, front ends show lines with their
//! addresses and words.

use std::ops::Range;

/// The end of an instruction in a listing.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Mark {
    /// Offset of the end of the instruction in the text, in bytes. The text between the previous mark and this mark
    /// belongs to the instruction.
    pub end: usize,
    /// Address of the instruction, in the unit of the machine.
    pub address: u32,
    /// Indices of the program's words that the instruction occupies.
    pub words: Range<usize>,
    /// Number of control-flow constructs that enclose the instruction, if the listing shows structure.
    pub depth: usize,
}
