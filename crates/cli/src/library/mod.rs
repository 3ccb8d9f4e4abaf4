//! The library's own items: what the crates below offer, by task, with options that can grow.
//!
//! An enum of the crates below that may get more variants is mirrored here with `#[non_exhaustive]` (`mirror!`): the workspace
//! matches its own exhaustively, and the mirror is the one place that a new variant changes.

mod error;
mod file;
mod launch;
mod mirror;
mod names;
mod observe;
mod session;

pub use error::{Error, SourceError, Trap};
pub use file::{File, OpenOptions, Program, State, TextOptions, assemble, open};
pub use launch::{Launch, Outcome, RunOptions, Values};
pub use names::{Engine, Isa, Mode, Stage};
pub use observe::{Event, Observed};
pub use session::{Session, Stop, Why};
