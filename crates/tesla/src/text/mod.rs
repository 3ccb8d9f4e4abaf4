//! Text of Tesla programs: a disassembler and an assembler that are exact inverses.
//!
//! [`disassemble`] prints any words, and [`assemble`] returns the same words. If several encodings represent an
//! instruction, the text contains the encoding (`short`). If some bits do not follow from any other part of the text,
//! the function prints these bits at the end (`bits 0x... 0x...`). So no bits are lost.
//!
//! ```
//! use reconverge_tesla::inst::{Chip, Stage};
//! use reconverge_tesla::text::{Listing, assemble, disassemble};
//! let source = "    mov b32 $r1 0x1\n    (lg $c0) bra L0\n    exit nop\n";
//! let source = format!("L0:\n{source}");
//! let assembled = assemble(&source, Chip::G80, Stage::Compute).unwrap();
//! let words = assembled.words();
//! assert_eq!(words, [0x10018005, 0x00000003, 0x10000003, 0x00000280, 0xf0000001, 0xe0000781]);
//! assert_eq!(disassemble(&words, 0, Chip::G80, Stage::Compute, Listing::default()), source);
//! ```

mod asm;
mod dis;
mod forms;
mod notes;
mod state;
mod written;

pub use asm::{Assembled, DIRECTIVES, Prefix, assemble};
pub use dis::{
    Listing, Member, disassemble, disassemble_image, disassemble_marked, disassemble_program, nesting,
};
pub use forms::{forms, mnemonics};
pub use notes::{About, NamedParam};
