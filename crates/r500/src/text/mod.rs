//! Text of R500 programs: a disassembler and an assembler that are exact inverses.
//!
//! [`disassemble`] prints any words as text, and [`assemble`] turns the text into the same words. The ordinary syntax
//! cannot express some fields. Examples are hazard bits, reserved bits, and fields that the instruction type does not
//! use. The disassembler writes such fields in braces, so no bit is lost. docs/r500-syntax.md describes the text.
//!
//! ```
//! use reconverge_r500::text::{Listing, assemble, disassemble};
//! let source = "OUT out[A].rgb = MAX*off src0.rgb, src0.rgb : src0=temp[0] {TEX_SEM_WAIT}\n  \
//!                 + out[A].a = MAX*off src0.a, src0.a : src0=temp[0]\n";
//! let program = assemble(source).unwrap().program;
//! assert_eq!(program.words, [0x00078005, 0x08020000, 0x08020000, 0x1c440220, 0x1c60c003, 0x00000005]);
//! assert_eq!(disassemble(&program, Listing::default()), source);
//! ```

pub(crate) mod asm;
mod asm_alu;
mod asm_fc;
pub mod construct;
pub(crate) mod directives;
pub(crate) mod dis;
pub(crate) mod explain;
pub mod idioms;
mod meaning;
pub(crate) mod reading;
mod record;
mod structure;
mod syntax;

pub use asm::assemble;
pub use directives::Assembled;
pub use dis::{Listing, disassemble, disassemble_marked};
pub use explain::{Explanation, FieldText, explain};
