//! Errors of trace files.

use thiserror::Error;

use crate::VERSION;

/// A trace that cannot be written or read.
#[derive(Debug, Error)]
pub enum Error {
    /// The first bytes of the file are not the first bytes of a trace.
    #[error("expected a trace, which begins with RTRACE; record one with `reconverge trace LAUNCH -o FILE`")]
    NotATrace,
    /// Something has changed the line endings in the first bytes of the file.
    #[error(
        "the line ends of the trace were changed, probably by a transfer in text mode; transfer it as binary"
    )]
    LineEnds,
    /// The file has another version of the format.
    #[error("expected version {VERSION} of the trace format, found {found}; record the trace again")]
    Version {
        /// Version of the file.
        found: u16,
    },
    /// The bytes of the file are not the bytes that were written.
    #[error("the trace is damaged at byte {at}: {what}")]
    Damaged {
        /// Offset of the damaged section in the file, in bytes.
        at: u64,
        /// The problem.
        what: String,
    },
    /// The file ends inside its header.
    #[error("the trace is truncated at byte {at}, before its first record")]
    NoHeader {
        /// Size of the file, in bytes.
        at: u64,
    },
    /// An instruction is not in the header's listing.
    #[error("the program runs an instruction at {pc:#x}, which is not in its listing")]
    UnknownInstruction {
        /// Address of the instruction.
        pc: u32,
    },
    /// Reading or writing failed.
    #[error(transparent)]
    Io(#[from] std::io::Error),
}
