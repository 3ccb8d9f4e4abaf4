//! Text of vertex programs: a disassembler and an assembler that are exact inverses.
//!
//! [`disassemble`] prints any words as text, and [`assemble`] turns the text into the same words. The ordinary syntax
//! cannot express some bits. Examples are reserved bits, and bits of ignored operands with unusual values. The
//! disassembler writes such bits in braces, so no bit is lost. docs/r500-vertex.md describes the text.
//!
//! ```
//! use reconverge_r500::pvs::text::{Listing, assemble, disassemble};
//! let source = ".stage vertex\nVE_DOT_PRODUCT o0.x = i0, c0\n(p) ME_RECIP_DX t1.w = -|t0|.x\n";
//! let program = assemble(source).unwrap().program;
//! assert_eq!(program.words[..4], [0x00100201, 0x00d10001, 0x00d10002, 0x01248002]);
//! assert_eq!(disassemble(&program, Listing::default()), source);
//! ```

pub(crate) mod asm;
mod dis;
mod explain;
mod forms;
mod meaning;
mod syntax;

pub use asm::assemble;
pub use dis::{Listing, disassemble, disassemble_marked};
pub use explain::explain;
pub use forms::{forms, mnemonics};
