//! Why a vertex program stops, and what strict mode reports about one that does not.

use reconverge_isa::limits::INSTRUCTIONS;
use reconverge_isa::word::WordError;
use thiserror::Error;

use super::flow::Undefined;
use super::violations::Violation;

/// Why a program was stopped.
#[derive(Clone, Debug, PartialEq, Error)]
pub enum Cause {
    /// A code that has no meaning.
    #[error("not an instruction: {0}")]
    NoMeaning(WordError),
    /// A combination that the documents forbid. (Strict)
    #[error("{0}")]
    Forbidden(Violation),
    /// No instruction was loaded there.
    #[error("slot {0} holds no instruction")]
    EmptySlot(u16),
    /// Undefined flow control. (Strict)
    #[error("{0}")]
    Flow(#[from] Undefined),
    /// An address outside its file. (Strict; lenient: reads as zero, writes are dropped)
    #[error("{file}{register} lies outside the file of {size}")]
    OutsideFile {
        /// The file as the text writes it.
        file: &'static str,
        /// The register, with what was added to it.
        register: i32,
        /// Registers there are.
        size: usize,
    },
    /// A0 before anything was written to it. (Strict; lenient: 0)
    #[error("A0 is read before it is written")]
    UnwrittenAddress,
    /// aL outside loops. (Strict; lenient: 0)
    #[error("aL is read outside any loop")]
    NoLoopIndex,
    /// More instructions than the watchdog allows.
    #[error("watchdog: {0} instructions and no end; {more}", more = INSTRUCTIONS.remedy())]
    Watchdog(u64),
}
