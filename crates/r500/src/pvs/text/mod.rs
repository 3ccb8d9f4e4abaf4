//! Text of vertex programs: a disassembler and an assembler that are exact inverses.
//!
//! [`disassemble`] prints any words as text, and [`assemble`] turns this text into the same words. If the ordinary
//! syntax cannot express some bits, the disassembler writes these bits in braces. So no bit is lost. Examples are
//! reserved bits, and ignored operands whose bits differ from those that compilers write. docs/r500-vertex.md describes
//! the text.
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
