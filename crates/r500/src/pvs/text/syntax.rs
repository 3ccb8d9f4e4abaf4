//! Spellings that the disassembler and the assembler share.

use reconverge_isa::word::{Field, FieldValue};

use crate::pvs::inst::{Op, WORDS};
use crate::pvs::words::*;

/// The names that braces use for the words of an instruction.
pub(super) const WORD_NAMES: [&str; WORDS] = ["OP", "A", "B", "C"];

/// Returns the name of a destination file.
pub(super) const fn destination(file: DstType) -> &'static str {
    ["t", "a", "o", "ox", "at", "i"][file as usize]
}

/// Returns the name of a source file.
pub(super) const fn source(file: SrcType) -> &'static str {
    ["t", "i", "c", "at"][file as usize]
}

/// Returns the letter of a channel or literal.
pub(super) const fn letter(select: Select) -> char {
    ['x', 'y', 'z', 'w', '0', '1', 'r', '_'][select as usize]
}

/// Letters of the channels of a destination, and of the components of A0.
pub(super) const CHANNELS: [char; 4] = ['x', 'y', 'z', 'w'];

/// Suffix of an operation whose result is clamped.
pub(super) const SATURATE: &str = "_SAT";

/// Returns the operation with this name.
pub(super) fn operation(name: &str) -> Option<Op> {
    fn of<T: FieldValue>(name: &str, all: &[T]) -> Option<T> {
        let place = T::NAMES.iter().position(|known| known.text == name)?;
        all.get(place).copied()
    }
    of(name, VeOp::ALL)
        .map(Op::Vector)
        .or_else(|| of(name, MeOp::ALL).map(Op::Math))
        .or_else(|| of(name, MacroOp::ALL).map(Op::Macro))
}

/// Returns the names of all operations.
pub(super) fn operations() -> impl Iterator<Item = &'static str> + Clone {
    [VeOp::NAMES, MeOp::NAMES, MacroOp::NAMES].into_iter().flatten().map(|name| name.text)
}

/// Returns the word that compilers write for an operand that the operation ignores. This word has the register of the
/// previous operand, but selects zeros. If there is no previous operand, the word is 0. (docs/r500-vertex.md, 4.1)
pub(super) const fn ignored(before: Option<u32>) -> u32 {
    match before {
        // The word keeps REG_TYPE, OFFSET, the addressing mode and the component of A0.
        Some(word) => word & 0xe000_1ff3 | 0x0124_8000,
        None => 0,
    }
}

/// Returns the words that the assembler produces for an instruction without braces. `operands` states which operands
/// are in the text.
pub(super) fn with_ignored(mut words: [u32; WORDS], operands: [bool; 3], dual: bool) -> [u32; WORDS] {
    let first = (1..WORDS).find(|word| operands[*word - 1]);
    let mut before = first.map(|word| words[word]);
    for word in 1..WORDS {
        if word == 3 && dual {
            continue;
        }
        if operands[word - 1] {
            before = Some(words[word]);
        } else {
            words[word] = ignored(before);
        }
    }
    words
}

/// Returns the fields of a word of an instruction.
pub(super) fn fields(word: usize, dual: bool) -> &'static [Field] {
    layout(dual)[word].fields
}
