//! Program text. [`disassemble`] converts words to text. [`assemble`] converts the text back to the same words.
//!
//! The text shows every bit of every word. Most bits are part of the syntax of an instruction. If a field differs from
//! its default, the text shows the field as an attribute. For reserved bits, and for fields that the opcode does not
//! read, the text contains `BITS(…)`. For words that no instruction reaches, the text contains `.word`.
//! `docs/r700-syntax.md` describes the text.

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
/// Letters for the eight values of a field that selects a component. Value 6 is reserved.
const SELECTS: &str = "xyzw016_";
/// Text of each INDEX_MODE next to a register.
const INDEXES: [&str; 8] = ["AR.x", "AR.y", "AR.z", "AR.w", "aL", "GLOBAL", "GLOBAL_AR.x", "IDX7"];
/// The source selector of a literal.
const LITERAL: u32 = code::LITERAL as u32;

/// Selectors of the inline constants and of PS, with their texts.
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

/// ALU operations with different names in AMD's text and in this project. A row has AMD's name and then the name in
/// this project. (Sources: decaf-emu, latte-assembler. AMD's disassemblers print the names that end in `_e`.)
#[rustfmt::skip]
const AMD_OPERATIONS: [(&str, &str); 13] = [
    ("MUL_e", "MUL_IEEE"), ("MULADD_e", "MULADD_IEEE"), ("DOT4_e", "DOT4_IEEE"), ("EXP_e", "EXP_IEEE"),
    ("LOG_e", "LOG_IEEE"), ("LOG_sat", "LOG_CLAMPED"), ("RCP_e", "RECIP_IEEE"), ("RCP_sat", "RECIP_CLAMPED"),
    ("RCP_FF", "RECIP_FF"), ("RSQ_e", "RECIPSQRT_IEEE"), ("RSQ_sat", "RECIPSQRT_CLAMPED"),
    ("RSQ_FF", "RECIPSQRT_FF"), ("SQRT_e", "SQRT_IEEE"),
];
