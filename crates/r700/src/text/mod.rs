//! Program text: words to text ([`disassemble`]) and back ([`assemble`]), exact inverses of one another.
//!
//! Every bit of every word is either shown by the syntax of its instruction, or by an attribute when it differs
//! from what is usual, or (reserved bits, fields the opcode does not read) by `BITS(…)`. What no instruction
//! reaches is written as `.word`. `docs/r700-syntax.md` describes the text.

mod asm;
mod attr;
mod dis;

pub use asm::{Assembled, assemble, assemble_all};
pub use dis::{Disassembly, Options, disassemble, disassemble_into};
pub(crate) use dis::{Home, home, instruction};

use crate::chip::Family;
use crate::code::{self, is_op3, literal_pairs};
use crate::meaning::{self, Opcode, Unit};

/// The OP2 opcode with this number; one of the other family keeps its name.
fn op2_row(number: u32, family: Family) -> Option<&'static Opcode> {
    meaning::op2_row(number, family).or_else(|| meaning::op2_row(number, Family::R600))
}

/// The lowest bit of ALU_INST in an OP2 word.
const fn op2_shift(family: Family) -> u32 {
    match family {
        Family::R600 => 8,
        Family::R700 => 7,
    }
}

const CHANS: &str = "xyzw";
const SLOTS: [&str; 6] = ["x", "y", "z", "w", "t", "?"];
/// The letters of an eight-valued component select; 6 is reserved.
const SELECTS: &str = "xyzw016_";
/// INDEX_MODE as written beside a register.
const INDEXES: [&str; 8] = ["AR.x", "AR.y", "AR.z", "AR.w", "aL", "GLOBAL", "GLOBAL_AR.x", "IDX7"];
/// LITERAL among the source selectors.
const LITERAL: u32 = code::LITERAL as u32;

/// Inline constants and the two selectors without a component of their own, by selector.
const INLINE: [(u32, &str); 10] = [
    (244, "DBL_1_LSW"),
    (245, "DBL_1_MSW"),
    (246, "DBL_0_5_LSW"),
    (247, "DBL_0_5_MSW"),
    (248, "0"),
    (249, "1.0"),
    (250, "1"),
    (251, "-1"),
    (252, "0.5"),
    (255, "PS"),
];

/// What is known of the opcode of an ALU word pair; `None` for an unassigned number.
fn alu_row(word1: u32, family: Family) -> Option<&'static Opcode> {
    match is_op3(word1) {
        true => meaning::op3_row(word1 >> 13 & 31),
        false => op2_row((word1 & 0x3ffff) >> op2_shift(family), family),
    }
}

/// The slots of a group, 0 to 4 for x to t; 5 where two instructions want the same one (r700.md 4.2, vector
/// preferred).
fn slots(group: &[[u32; 2]], family: Family, into: &mut [u8; 5]) {
    let mut taken = [false; 5];
    for (&[_, word1], slot) in group.iter().zip(into) {
        let chan = (word1 >> 29 & 3) as usize;
        let wanted = match alu_row(word1, family).map(|row| row.unit) {
            Some(Unit::Trans) => 4,
            Some(Unit::Vector) => chan,
            Some(Unit::Either) | None if taken[chan] => 4,
            Some(Unit::Either) | None => chan,
        };
        *slot = if taken[wanted] { 5 } else { wanted as u8 };
        taken[wanted] = true;
    }
}
