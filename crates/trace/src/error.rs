//! What can be wrong with a file.

use thiserror::Error;

use crate::VERSION;

/// A trace that cannot be written or read.
#[derive(Debug, Error)]
pub enum Error {
    /// The first bytes are not those of a trace.
    #[error("this is no trace: it does not begin with RTRACE (`reconverge trace LAUNCH -o FILE` writes one)")]
    NotATrace,
    /// The line ends of the first bytes are not there.
    #[error("the trace's line ends were changed, as by a transfer in text mode: transfer it as binary")]
    LineEnds,
    /// The format is of another version.
    #[error(
        "the trace has version {found} of the format; this program reads version {VERSION}: record it again"
    )]
    Version {
        /// Its version.
        found: u16,
    },
    /// The bytes are not what was written.
    #[error("the trace is damaged at byte {at}: {what}")]
    Damaged {
        /// Where the section begins.
        at: u64,
        /// What is wrong there.
        what: String,
    },
    /// The file ends before its header does.
    #[error("the trace breaks off at byte {at}, before its first record")]
    NoHeader {
        /// Its size.
        at: u64,
    },
    /// An instruction that the header's listing does not have.
    #[error("the program runs an instruction at {pc:#x}, which its listing does not have")]
    UnknownInstruction {
        /// Its address.
        pc: u32,
    },
    /// Reading or writing failed.
    #[error(transparent)]
    Io(#[from] std::io::Error),
}
