//! Definition of an instruction set as data, which all tools read.
//!
//! A machine's encoding is written in one place, as data:
//!
//! * [`mod@word`]: a word of named bit fields, written the way a register manual prints it ([`word!`], [`names!`]).
//!   One block declares a plain struct, `pack`, `unpack` and the fields as data, over which the text, the bit picture
//!   of `explain`, the documentation and the exhaustive tests iterate.
//! * [`row`]: an instruction set as rows of parts; [`read`] decodes, describes and prints by them, [`mod@write`] parses
//!   and encodes.
//! * [`source`]: parts of an assembler that all machines share: spans, a cursor over a line, diagnostics as data with
//!   a suggestion of the text that would fit.
//! * [`mod@expand`]: constants, expressions, included files and macros of a source, for all machines.
//! * [`forms`]: the legal forms of a mnemonic, from the rows of a table.
//! * [`program`]: machine code with the facts that its container states; the type that containers produce and
//!   machines run.
//! * [`graph`]: the control flow of a program; [`lint`]: requirements of the documents on a program.
//! * [`limits`]: limits on the host resources that input may request.
//! * [`sets`]: sets of numbers, and sets of few items.
//! * [`mod@choices`]: enums whose values have names ([`choices!`]).

#![forbid(unsafe_code)]

pub mod choices;
pub mod expand;
pub mod forms;
pub mod graph;
pub mod limits;
pub mod lint;
pub mod listing;
pub mod program;
pub mod read;
mod reader;
pub mod row;
pub mod sets;
pub mod source;
pub mod word;
pub mod write;

pub use listing::Mark;
pub use program::{Image, Isa, Program};
pub use source::{Diagnostic, Span};
pub use word::{Field, FieldValue, Name, WordError, WordInfo};
