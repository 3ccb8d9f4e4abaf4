//! Generates host code for groups of lanes at run time, for x86-64 with AVX2 and FMA or with AVX-512.
//!
//! | read | for |
//! |---|---|
//! | `strip` | straight-line computations on the lanes of a vector |
//! | `rows` | the values that rows have at each point of a strip |
//! | `vectors` | strips that compute one vector at a time, or both vectors of a group at once |
//! | `emit` | register allocation and emission of a strip |
//! | `accesses`, `cold` | loads and stores of one word per lane, and code for rare cases |
//! | `frame`, `pool` | the registers, the start, the end and the constants of generated code |
//! | `level` | choice of vector instructions |
//! | `linked` | linked code of a program: a machine traces the program, and a group runs the code |
//! | `program` | nodes of linked code, and their counts |
//! | `segment` | the code of a node: a fast path, a slow path and a call |
//! | `state` | the state that generated code and the engine share |
//! | `verify` | proof that generated code accesses only rows, the state and the window |
//! | `cache` | a cache of generated code |
//! | `fault` | conversion of memory faults to errors |
//! | `called` | functions that generated code calls |
//! | `asm`, `pages` | an assembler, and executable memory |
//!
//! A machine traces its program node by node with a [`Linker`]. For each instruction, the machine adds operations on
//! values of rows ([`Rows`]). A node consists of straight-line code with conditionals, and of the transition to the
//! [`Next`] node. [`Linked::new`] generates code for all nodes of a program, and [`Linked::run`] runs the code.
//! Generated code jumps from node to node while all active lanes take the same path. If lanes diverge, the code calls
//! the flow control of the machine, [`LinkedMachine::flow`]. This function returns the next node. The crate does not
//! depend on any machine. The crate compiles for every target, but generates code only for x86-64.

mod accesses;
mod asm;
mod barrier;
mod cache;
mod called;
mod cold;
mod emit;
mod emitted;
mod fault;
mod frame;
mod level;
mod linked;
mod pages;
mod pool;
mod program;
mod rows;
mod segment;
mod state;
mod strip;
mod turns;
mod vectors;
mod verify;

pub use called::{LANES, PerLane};
pub use emitted::Emitted;
pub use level::Level;
pub use linked::{Arrived, Linked, LinkedMachine, Linker, Path, Traced};
pub use program::{Branch, Left, NO_NODE, Next, Target, Waits};
pub use rows::Rows;
pub use state::{EXIT, FLUSH, FLUSH_OPERANDS, Held, MASK, SITES, State, StateBox};
pub use strip::{Inside, One, Row, Strip, Two, Value, predicate};
pub use turns::{GROUPS, Meeting, Peer};
pub use verify::Rejected;

/// Reason why code cannot be generated.
#[derive(Debug, thiserror::Error)]
pub enum CompileError {
    /// The target is not x86-64.
    #[error("this build cannot generate code: the target is not x86-64")]
    Target,
    /// An instruction that cannot be encoded.
    #[error("cannot encode instruction: {0}")]
    Encoding(#[from] iced_x86::IcedError),
    /// A label without a position.
    #[error("no place for label {0}")]
    Label(usize),
    /// The verifier rejects a strip of a node.
    #[error("the verifier rejects a strip: {0}")]
    Rejected(#[from] Rejected),
    /// Executable memory cannot be allocated.
    #[error("no memory for code: {0}")]
    Memory(#[from] std::io::Error),
}
