//! Output files and standard output of a command.
//!
//! * [`Whole`]: an output file. The file appears only when it is complete.
//! * [`standard_output_was_closed`]: whether the process started without standard output.

mod standard;
mod whole;

pub use standard::standard_output_was_closed;
pub use whole::{Unfinished, Whole, discard_unfinished, random_name};
