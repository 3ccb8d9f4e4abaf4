//! The items that the library defines. These items group the functions of the other crates by task. Later versions may
//! add options to the option types of the library.
//!
//! Later versions of other crates may add variants to some enums. The library mirrors such enums with
//! `#[non_exhaustive]` enums (`mirror!`). The workspace matches the mirrored enums exhaustively. Users of the library
//! see a new variant only in the mirror.

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
