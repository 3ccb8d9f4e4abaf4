//! Errors of trace files.

use thiserror::Error;

use crate::VERSION;

/// A trace that cannot be written or read.
#[derive(Debug, Error)]
pub enum Error {
    /// The first bytes are not those of a trace.
    #[error("this is no trace: it does not begin with RTRACE (`reconverge trace LAUNCH -o FILE` writes one)")]
    NotATrace,
    /// The line ends among the first bytes have changed.
    #[error("the trace's line ends were changed, as by a transfer in text mode: transfer it as binary")]
    LineEnds,
    /// The file has another version of the format.
    #[error(
        "the trace has version {found} of the format; this program reads version {VERSION}: record it again"
    )]
    Version {
        /// Version of the file.
        found: u16,
    },
    /// The bytes are not those that were written.
    #[error("the trace is damaged at byte {at}: {what}")]
    Damaged {
        /// Offset of the section in the file, in bytes.
        at: u64,
        /// The problem.
        what: String,
    },
    /// The file ends before its header does.
    #[error("the trace breaks off at byte {at}, before its first record")]
    NoHeader {
        /// Size of the file, in bytes.
        at: u64,
    },
    /// An instruction is not in the header's listing.
    #[error("the program runs an instruction at {pc:#x}, which its listing does not have")]
    UnknownInstruction {
        /// Address of the instruction.
        pc: u32,
    },
    /// Reading or writing failed.
    #[error(transparent)]
    Io(#[from] std::io::Error),
}
