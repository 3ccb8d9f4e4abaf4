//! Host code for groups of lanes, generated at run time: x86-64 with AVX2 and FMA, or with AVX-512.
//!
//! | read | for |
//! |---|---|
//! | `strip` | computations on the lanes of a vector, as values |
//! | `rows` | values of rows in the middle of a strip |
//! | `emit` | register allocation and emission of a strip |
//! | `level` | choice of vector instructions |
//! | `compiled` | the regions of a program, and their runs by a group: shared by the machines |
//! | `builder` | a region while a machine traces it |
//! | `linked` | a program as linked code, and its run by a group |
//! | `program` | nodes of linked code, and their counts |
//! | `region` | strips and iterations of a region, and their counts |
//! | `state` | state that code and engine share |
//! | `verify` | proof that code accesses only its rows and the window |
//! | `cache` | code that was generated before |
//! | `fault` | memory faults of code, as values |
//! | `called` | functions that code calls |
//! | `asm`, `pages` | instructions, and memory that may be executed |
//!
//! A machine traces its control flow with a [`Builder`] and states the meaning of its instructions on [`Rows`]. The
//! result is a [`Plan`] for each region: [`Segment`]s of [`Strip`]s, and the [`Step`]s of the flow.
//! [`Regions::compile`] generates code for plans, and [`Regions::run`] runs it. [`Compiled`] does both for a
//! [`Machine`]. The crate does not depend on any machine. It builds for every target, but generates code only for
//! x86-64.

mod asm;
mod builder;
mod cache;
mod called;
mod compiled;
mod emit;
mod fault;
mod level;
mod linked;
mod machine;
mod pages;
mod program;
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
pub use linked::{Arrived, Linked, LinkedMachine, Linker, Traced};
pub use machine::Machine;
pub use program::{Branch, EXIT, Left, NO_NODE, Next, Target, Waits};
pub use region::{
    Back, Count, Ended, FLUSH, FLUSH_OPERANDS, KEEP_DENORMALS, Plan, RegionCode, Regions, Segment, Step,
};
pub use rows::Rows;
pub use state::{Held, MASK, OWN, SITES, State, StateBox};
pub use strip::{Inside, One, Row, Strip, Two, Value, predicate};
pub use verify::Rejected;

/// Reason why code cannot be generated.
#[derive(Debug, thiserror::Error)]
pub enum CompileError {
    /// The target is not x86-64.
    #[error("this build makes no code: it is made for x86-64")]
    Target,
    /// An instruction that cannot be encoded.
    #[error("cannot encode instruction: {0}")]
    Encoding(#[from] iced_x86::IcedError),
    /// A label without a position.
    #[error("no place for label {0}")]
    Label(usize),
    /// The verifier rejects a strip.
    #[error("the verifier rejects a strip: {0}")]
    Rejected(#[from] Rejected),
    /// Executable memory cannot be allocated.
    #[error("no memory for code: {0}")]
    Memory(#[from] std::io::Error),
}
