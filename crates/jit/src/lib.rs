//! Host code for groups of lanes, made while a program runs: x86-64 with AVX2 and FMA, or with AVX-512.
//!
//! | read | for |
//! |---|---|
//! | `strip` | what happens to the lanes of a vector, as values |
//! | `rows` | what rows are in the middle of a strip |
//! | `emit` | which value is in which register |
//! | `level` | which vector instructions there are |
//! | `compiled` | the regions of a program, and how a group runs one: what the machines share |
//! | `builder` | a region while a machine traces it |
//! | `region` | strip after strip, iteration after iteration; what is counted |
//! | `state` | what code and engine share |
//! | `verify` | proof that code reaches its rows and the window alone |
//! | `cache` | code that was made before |
//! | `fault` | memory faults of code, as values |
//! | `called` | functions that code calls |
//! | `asm`, `pages` | instructions, and memory that may be executed |
//!
//! A machine traces its control flow with a [`Builder`] and states the meaning of its instructions on [`Rows`]. The result is a
//! [`Plan`] for each region: [`Segment`]s of [`Strip`]s, and the [`Step`]s of the flow. [`Regions::compile`] generates code for
//! plans, and [`Regions::run`] runs it. [`Compiled`] does both for a [`Machine`]. The crate contains nothing of any machine, and
//! builds for every target: only x86-64 has code.

mod asm;
mod builder;
mod cache;
mod called;
mod compiled;
mod emit;
mod fault;
mod level;
mod machine;
mod pages;
mod region;
mod rows;
mod state;
mod strip;
mod verify;

pub use builder::{Builder, Found, Path};
pub use called::{Callee, LANES, PerLane};
pub use compiled::{Arrival, Compiled, Passed, Ran, Region};
pub use fault::Fault;
pub use level::Level;
pub use machine::Machine;
pub use region::{
    Back, Count, Ended, FLUSH, FLUSH_OPERANDS, KEEP_DENORMALS, Plan, RegionCode, Regions, Segment, Step,
};
pub use rows::Rows;
pub use state::{Held, MASK, OWN, State, StateBox};
pub use strip::{Inside, One, Row, Strip, Two, Value, predicate};
pub use verify::Rejected;

/// Why there is no code.
#[derive(Debug, thiserror::Error)]
pub enum CompileError {
    /// The target is not x86-64.
    #[error("this build makes no code: it is made for x86-64")]
    Target,
    /// An instruction that cannot be encoded.
    #[error("cannot encode instruction: {0}")]
    Encoding(#[from] iced_x86::IcedError),
    /// A label without a place.
    #[error("no place for label {0}")]
    Label(usize),
    /// The verifier rejects a strip.
    #[error("the verifier rejects a strip: {0}")]
    Rejected(#[from] Rejected),
    /// No memory that may be executed.
    #[error("no memory for code: {0}")]
    Memory(#[from] std::io::Error),
}
