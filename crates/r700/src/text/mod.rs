//! Program text: words to text ([`disassemble`]) and back ([`assemble`]), exact inverses of one another.
//!
//! Every bit of every word is either shown by the syntax of its instruction, or by an attribute when it differs
//! from what is usual, or (reserved bits, fields the opcode does not read) by `BITS(…)`. What no instruction
//! reaches is written as `.word`. `docs/r700-syntax.md` describes the text.

mod asm;
mod attr;
mod dis;

pub use asm::DIRECTIVES;
pub use asm::{Assembled, assemble, assemble_all, is_amd};
pub use dis::{Disassembly, Options, Syntax, disassemble, disassemble_into};
pub(crate) use dis::{Home, home, instruction};

use crate::code::{self, is_op3, literal_pairs};
use crate::ports::{alu_row, op2_row, op2_shift, slots};

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

/// ALU operations that AMD's text calls otherwise: its name, ours. (decaf-emu, latte-assembler; AMD's disassemblers print
/// those that end in `_e`)
#[rustfmt::skip]
const AMD_OPERATIONS: [(&str, &str); 13] = [
    ("MUL_e", "MUL_IEEE"), ("MULADD_e", "MULADD_IEEE"), ("DOT4_e", "DOT4_IEEE"), ("EXP_e", "EXP_IEEE"),
    ("LOG_e", "LOG_IEEE"), ("LOG_sat", "LOG_CLAMPED"), ("RCP_e", "RECIP_IEEE"), ("RCP_sat", "RECIP_CLAMPED"),
    ("RCP_FF", "RECIP_FF"), ("RSQ_e", "RECIPSQRT_IEEE"), ("RSQ_sat", "RECIPSQRT_CLAMPED"),
    ("RSQ_FF", "RECIPSQRT_FF"), ("SQRT_e", "SQRT_IEEE"),
];
