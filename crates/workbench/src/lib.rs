//! The one interface behind every front end: programs from files, text, runs, results.
//!
//! * [`open()`]: a file's bytes to programs with their machine.
//! * [`text`]: disassemble, assemble, explain, for whichever machine.
//! * [`launch`], [`manifest`]: launch files and run manifests; [`mod@r500`], [`mod@r700`], [`mod@tesla`]: what each
//!   machine's launch says, and runs.
//! * [`kernels`]: the two divergent kernels that `bench` runs, for every machine.
//! * [`mod@array`], [`values`]: the numbers that go in and come out.
//!
//! Nothing here reads files or prints.

pub mod array;
pub mod kernels;
pub mod launch;
pub mod manifest;
pub mod open;
pub mod r500;
pub mod r700;
pub mod request;
pub mod result;
pub mod tesla;
pub mod text;
pub mod values;

pub use open::{Known, Opened, open};
pub use text::{Listing, Target, round_trip};
