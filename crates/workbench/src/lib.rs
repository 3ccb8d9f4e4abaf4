//! The one interface behind every front end: programs from files, text, runs, results.
//!
//! * [`open()`]: a file's bytes to programs with their machine.
//! * [`text`]: disassemble, assemble, explain, for whichever machine.
//! * [`mod@r500`]: runs on R500.
//! * [`kernels`]: the two divergent kernels that `bench` runs, for every machine.
//! * [`mod@array`], [`values`]: the numbers that go in and come out.
//!
//! Nothing here reads files or prints.

pub mod array;
pub mod kernels;
pub mod open;
pub mod r500;
pub mod result;
pub mod text;
pub mod values;

pub use open::{Opened, open};
pub use text::{Listing, Target, round_trip};
