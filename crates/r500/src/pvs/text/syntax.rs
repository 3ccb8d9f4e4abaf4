//! The small spellings that printing and parsing share, each written once.

use reconverge_isa::word::{Field, FieldValue};

use crate::pvs::inst::{Op, WORDS};
use crate::pvs::words::*;

/// Names of the words of an instruction in braces.
pub(super) const WORD_NAMES: [&str; WORDS] = ["OP", "A", "B", "C"];

/// Name of a destination file.
pub(super) const fn destination(file: DstType) -> &'static str {
    ["t", "a", "o", "ox", "at", "i"][file as usize]
}

/// Name of a source file.
pub(super) const fn source(file: SrcType) -> &'static str {
    ["t", "i", "c", "at"][file as usize]
}

/// Letter of a channel or literal.
pub(super) const fn letter(select: Select) -> char {
    ['x', 'y', 'z', 'w', '0', '1', 'r', '_'][select as usize]
}

/// Letters of the channels of a destination, and of the components of A0.
pub(super) const CHANNELS: [char; 4] = ['x', 'y', 'z', 'w'];

/// Suffix of an operation whose result is clamped.
pub(super) const SATURATE: &str = "_SAT";

/// The operation of a name.
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

/// The names of all operations.
pub(super) fn operations() -> impl Iterator<Item = &'static str> + Clone {
    [VeOp::NAMES, MeOp::NAMES, MacroOp::NAMES].into_iter().flatten().map(|name| name.text)
}

/// What an operand that the operation ignores holds: the register of the operand before it, and zeros. Compilers write
/// that; where there is no operand before it, 0. (docs/r500-vertex.md, 4.1)
pub(super) const fn ignored(before: Option<u32>) -> u32 {
    match before {
        // REG_TYPE, OFFSET and the address mode with its component stay.
        Some(word) => word & 0xe000_1ff3 | 0x0124_8000,
        None => 0,
    }
}

/// The words of an instruction as the assembler makes them without braces: `given` where an operand is in the text.
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

/// The fields of a word of an instruction.
pub(super) fn fields(word: usize, dual: bool) -> &'static [Field] {
    layout(dual)[word].fields
}
