//! Detects words that are unlikely to be fragment code, and guesses the kind of the words. Programs do not have a
//! signature, so a positive result is not a proof. A positive result is only a reason to check the file.

use crate::inst::{WORDS, decode};
use crate::violations::violations;

/// The likely contents of a file whose words do not look like fragment code.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mistaken {
    /// Fragment code in which the bytes of each word are in reverse order.
    OtherOrder,
    /// Code of the vertex processor, which has four words per instruction.
    Vertex,
}

/// Returns the likely kind of the words, if many instructions in the words are invalid or forbidden. Otherwise, returns
/// `None`.
pub fn mistaken(words: &[u32]) -> Option<Mistaken> {
    // Compilers emit few or no odd instructions. In random words, nearly every instruction is odd.
    let (odd, count) = oddities(words);
    let whole = words.len().is_multiple_of(WORDS);
    if whole && 5 * odd <= count {
        return None;
    }
    let swapped: Vec<u32> = words.iter().map(|word| word.swap_bytes()).collect();
    if whole && 5 * oddities(&swapped).0 < odd {
        Some(Mistaken::OtherOrder)
    } else if (!whole || 2 * odd > count) && is_vertex_code(words) {
        Some(Mistaken::Vertex)
    } else {
        None
    }
}

/// Returns the number of odd instructions and the number of all instructions. An odd instruction has no meaning or
/// violates the documents.
fn oddities(words: &[u32]) -> (usize, usize) {
    let (instructions, _) = words.as_chunks::<WORDS>();
    let odd = |words: &&[u32; WORDS]| decode(words).map_or(true, |inst| !violations(words, &inst).is_empty());
    (instructions.iter().filter(odd).count(), instructions.len())
}

// ---- The vertex processor (REG, PVS_OP_DST_OPERAND and PVS_SRC_OPERAND; Mesa `r300_reg.h`)

/// Number of opcodes of the vector engine, of the math engine, and of macros.
const OPCODES: [u32; 3] = [29, 28, 2];
/// Number of destination files: temporary, A0, two kinds of output, alternate temporary, input.
const DESTINATIONS: u32 = 6;

/// Returns whether all words can be instructions of the vertex processor. A vertex instruction has one word with the
/// opcode and the destination, followed by three source words.
fn is_vertex_code(words: &[u32]) -> bool {
    let (instructions, rest) = words.as_chunks::<4>();
    !instructions.is_empty() && rest.is_empty() && instructions.iter().all(is_instruction)
}

fn is_instruction([operation, a, b, c]: &[u32; 4]) -> bool {
    let (math, macros, dual) = (operation >> 6 & 1, operation >> 7 & 1, operation >> 28 & 1 == 1);
    let known = match (math, macros) {
        (0, 0) => OPCODES[0],
        (1, 0) => OPCODES[1],
        (0, 1) => OPCODES[2],
        _ => return false,
    };
    // Bit 2 of a source word is unused, except in the third source word of a dual instruction. There, bit 2 belongs to
    // the opcode.
    let spare = a & 4 | b & 4 | if dual { 0 } else { c & 4 };
    operation & 0x3f < known && operation >> 8 & 0xf < DESTINATIONS && spare == 0
}
