//! Definition of an instruction set as data that all tools read.
//!
//! Each machine describes its encoding once, as data. The modules of this crate:
//!
//! * [`mod@word`]: a word of named bit fields. The declaration looks like the table of a register manual ([`word!`],
//!   [`names!`]). One declaration generates a plain struct, the functions `pack` and `unpack`, and the fields as data.
//!   The assembler texts, the bit pictures of `explain`, the documentation and the exhaustive tests use this data.
//! * [`row`]: an instruction set as rows of parts. From the rows, [`read`] decodes, describes and prints words, and
//!   [`mod@write`] parses and encodes text.
//! * [`source`]: the parts of an assembler that all machines share. The parts are spans, a cursor over a line, and
//!   diagnostics as data. A diagnostic contains the text that would fit.
//! * [`mod@expand`]: constants, expressions, included files and macros of a source, for all machines.
//! * [`forms`]: the legal forms of a mnemonic, from the rows of a table.
//! * [`program`]: machine code, and the facts that the container of the code states. Readers of containers produce
//!   programs, and machines run programs.
//! * [`graph`]: the control flow of a program. [`lint`]: rules for programs, from the documents of a machine.
//! * [`limits`]: limits on the host resources that input may request.
//! * [`sets`]: sets of numbers, and sets of few items.
//! * [`mod@choices`]: enums that define a name for each value ([`choices!`]).

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
