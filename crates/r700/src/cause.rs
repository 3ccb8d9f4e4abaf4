//! The causes of traps.

use reconverge_isa::limits::INSTRUCTIONS;
use reconverge_simt::Mask;
use thiserror::Error;

use crate::code::CodeFault;
use crate::control::Stage;
use crate::flow::FlowFault;
use crate::words::KcacheMode;

/// Why a program traps.
#[derive(Clone, Debug, PartialEq, Error)]
pub enum Cause {
    /// The words have no meaning.
    #[error(transparent)]
    Code(#[from] CodeFault),
    /// The flow is malformed.
    #[error(transparent)]
    Flow(#[from] FlowFault),
    /// CALL_FS without the code of a fetch program.
    #[error("CALL_FS has no fetch program to go to")]
    NoFetchProgram,
    /// A register outside the allocation (strict mode; lenient: reads give R0, writes are dropped).
    #[error("register {register} is outside the {declared} that NUM_GPRS declares")]
    Register {
        /// The register, after indexing.
        register: i32,
        /// NUM_GPRS.
        declared: u8,
    },
    /// AR was not written in this clause (strict mode; lenient: 0).
    #[error("AR.{0} is used, but no MOVA of this clause has written it")]
    AddressRegister(char),
    /// aL is used outside every DX9 loop (strict mode; lenient: 0).
    #[error("aL is used outside every loop that has an index")]
    LoopIndex,
    /// A global register that the launch does not have (strict mode; lenient: reads give R0, writes are dropped).
    #[error("global register {register} is outside the {declared} of the launch")]
    GlobalRegister {
        /// The register, after indexing.
        register: i32,
        /// How many there are.
        declared: usize,
    },
    /// PV or PS of a slot that the group before did not use (strict mode; lenient: the older value).
    #[error("{0} is read, but the group before has not defined it")]
    Previous(&'static str),
    /// A constant that the clause has not locked (strict mode; lenient: 0).
    #[error("constant {index} of kcache set {set} is read, but its mode is {mode}")]
    NotLocked {
        /// Set 0 or 1.
        set: u8,
        /// The constant, from the window's start.
        index: u8,
        /// KCACHE_MODE.
        mode: KcacheMode,
    },
    /// A group follows an UPDATE_EXECUTE_MASK in the same clause (strict mode).
    #[error("a group follows UPDATE_EXECUTE_MASK in the same clause")]
    ExecuteMaskNotLast,
    /// An instruction of another program kind (strict mode; lenient: it runs).
    #[error("{name} does not belong in a {stage:?} program")]
    WrongStage {
        /// The instruction.
        name: &'static str,
        /// The program's kind.
        stage: Stage,
    },
    /// A fetch from a resource that is not bound (strict mode; lenient: zeros).
    #[error("{what} {id} is not bound")]
    NoResource {
        /// What kind.
        what: &'static str,
        /// Its number.
        id: u8,
    },
    /// A SAMPLE_*_G without SET_GRADIENTS in its clause (strict mode; lenient: zeros).
    #[error("gradients are used, but no SET_GRADIENTS of this clause has loaded them")]
    Gradients,
    /// A DATA_FORMAT that a buffer fetch cannot convert.
    #[error("data format {0} has no conversion")]
    Format(u32),
    /// A store outside its buffer (strict mode; lenient: dropped).
    #[error("{what} of lanes {lanes} is outside its buffer")]
    MemoryBounds {
        /// The instruction.
        what: &'static str,
        /// The lanes.
        lanes: Mask,
    },
    /// The wavefront has issued as many instructions as the watchdog allows.
    #[error("watchdog: no end after {0} instructions; {more}", more = INSTRUCTIONS.remedy())]
    Watchdog(u64),
}
