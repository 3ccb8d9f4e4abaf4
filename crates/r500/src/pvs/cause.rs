//! Causes of traps in vertex programs.

use reconverge_isa::limits::INSTRUCTIONS;
use reconverge_isa::word::WordError;
use thiserror::Error;

use super::flow::Undefined;
use super::violations::Violation;

/// The reason why a program was stopped.
#[derive(Clone, Debug, PartialEq, Error)]
pub enum Cause {
    /// A code without a meaning.
    #[error("not an instruction: {0}")]
    NoMeaning(WordError),
    /// A combination that the documents forbid. (Strict)
    #[error("{0}")]
    Forbidden(Violation),
    /// A slot without an instruction.
    #[error("slot {0} holds no instruction")]
    EmptySlot(u16),
    /// Undefined flow control. (Strict)
    #[error("{0}")]
    Flow(#[from] Undefined),
    /// An address outside its file. (Strict; lenient: reads as zero, writes are dropped)
    #[error("{file}{register} lies outside the file of {size}")]
    OutsideFile {
        /// Name of the file in the text.
        file: &'static str,
        /// The register number, including the relative part.
        register: i32,
        /// Number of registers in the file.
        size: usize,
    },
    /// A0 is read before any write. (Strict; lenient: 0)
    #[error("A0 is read before it is written")]
    UnwrittenAddress,
    /// aL outside loops. (Strict; lenient: 0)
    #[error("aL is read outside any loop")]
    NoLoopIndex,
    /// More instructions than the watchdog allows.
    #[error("watchdog: no end after {0} instructions; {more}", more = INSTRUCTIONS.remedy())]
    Watchdog(u64),
}
