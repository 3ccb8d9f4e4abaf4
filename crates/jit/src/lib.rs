//! Host code for groups of lanes, made while a program runs: x86-64 with AVX2 and FMA, or with AVX-512.
//!
//! | read | for |
//! |---|---|
//! | `slice` | what happens to the lanes of a vector, as values |
//! | `rows` | what rows are in the middle of a slice |
//! | `emit` | which value is in which register |
//! | `level` | which vector instructions there are |
//! | `pass` | slice after slice, turn after turn; what is counted |
//! | `state` | what code and engine share |
//! | `verify` | proof that code reaches its rows and the window alone |
//! | `cache` | code that was made before |
//! | `fault` | memory faults of code, as values |
//! | `asm`, `pages` | instructions, and memory that may be executed |
//!
//! A machine gives [`Plan`]s: [`Segment`]s of [`Slice`]s, and the [`Step`]s of its flow. [`Passes::compile`] makes code of
//! them, and [`Passes::run`] runs it. The crate knows nothing of any machine.

#![cfg(target_arch = "x86_64")]

mod asm;
mod cache;
mod emit;
mod fault;
mod level;
mod pages;
mod pass;
mod rows;
mod slice;
mod state;
mod verify;

pub use fault::Fault;
pub use level::Level;
pub use pass::{
    Back, Callee, Count, Ended, FLUSH, FLUSH_OPERANDS, KEEP_DENORMALS, Pass, Passes, Plan, Segment, Step,
};
pub use rows::Rows;
pub use slice::{Inside, LANES, One, Rescue, Rescuer, Row, Slice, Two, Value, predicate};
pub use state::{BRANCHES, MASK, OWN, State, StateBox, WORDS};
pub use verify::Rejected;

/// Makes the tables of the assembler, which a process needs once: some 0.7 ms (an AMD EPYC).
pub fn prepare() {
    asm::prepare();
}

/// Why there is no code.
#[derive(Debug, thiserror::Error)]
pub enum CompileError {
    /// An instruction that cannot be encoded.
    #[error("no code for an instruction: {0}")]
    Encoding(#[from] iced_x86::IcedError),
    /// A label without a place.
    #[error("no place for label {0}")]
    Label(usize),
    /// The verifier rejects a slice.
    #[error("the verifier rejects a slice: {0}")]
    Rejected(#[from] Rejected),
    /// No memory that may be executed.
    #[error("no memory for code: {0}")]
    Memory(#[from] std::io::Error),
}
