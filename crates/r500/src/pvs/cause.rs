//! Causes of traps in vertex programs.

use reconverge_isa::limits::INSTRUCTIONS;
use reconverge_isa::word::WordError;
use thiserror::Error;

use super::flow::Undefined;
use super::violations::Violation;

/// The reason why a program was stopped. A cause with the mark "(Strict)" occurs only in strict mode.
#[derive(Clone, Debug, PartialEq, Error)]
pub enum Cause {
    /// A field has a code without a meaning.
    #[error("not an instruction: {0}")]
    NoMeaning(WordError),
    /// The documents forbid a combination of fields. (Strict)
    #[error("{0}")]
    Forbidden(Violation),
    /// The program counter is at a slot without an instruction.
    #[error("slot {0} holds no instruction")]
    EmptySlot(u16),
    /// The documents do not define the result of the flow control. (Strict)
    #[error("{0}")]
    Flow(#[from] Undefined),
    /// An address is outside its register file. In lenient mode, reads return zero, and writes are dropped. (Strict)
    #[error("{file}{register} lies outside the file of {size}")]
    OutsideFile {
        /// Name of the register file in assembly text.
        file: &'static str,
        /// The register number, after adding the address register.
        register: i32,
        /// Number of registers in the file.
        size: usize,
    },
    /// An instruction reads A0 before any instruction has written A0. In lenient mode, A0 is then 0. (Strict)
    #[error("A0 is read before it is written")]
    UnwrittenAddress,
    /// An address uses aL outside any loop. In lenient mode, aL is then 0. (Strict)
    #[error("aL is read outside any loop")]
    NoLoopIndex,
    /// The program has executed more instructions than the watchdog allows.
    #[error("watchdog: no end after {0} instructions; {more}", more = INSTRUCTIONS.remedy())]
    Watchdog(u64),
}
