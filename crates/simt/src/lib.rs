//! Code that all SIMT machines share. No code in this crate is specific to one machine.
//!
//! * [`mask`]: sets of lanes.
//! * [`machine`]: the interface between a front end and a group: [`FlowView`], [`Machine`], traps.
//! * [`observe`]: events and observers. Observers cost nothing when they are disabled.
//! * [`watch`]: observers that are selected at run time.
//! * [`course`]: the issues of a launch. Another run is compared with these issues.
//! * [`engine`]: the choice among a machine's engines, and the options of a run: [`Options`].
//! * [`uses`]: descriptions of the registers and memory that each instruction reads and writes.
//! * [`error`]: the errors of a launch ([`RunError`]).
//! * [`lockstep`]: runs two engines of a machine and compares their results.
//! * [`loaded`]: the stored forms of a loaded program, and counts of decoded and lowered programs.
//! * [`paths`]: for each path of the fast engine, the number of instructions that the path executed.
//! * [`guarded`]: lists of values between pages that cannot be accessed.
//! * [`registers`]: lane-major register files; [`place`]: the rows to which the operations of a lowered program refer.
//! * [`level`]: levels of the host's vector instructions, and code that is compiled once for each level.
//! * [`wide`]: functions that are implemented separately for each level.
//! * [`word`]: operations on words, from which a machine writes the meaning of an instruction once.
//! * [`memory`]: buffers that many groups share, and views of these buffers. With views, groups run in parallel. The
//!   result is the same as if the groups ran one after another.
//! * [`vram`]: memory of a chip. A program may access this memory while the chip runs.
//! * [`pool`]: the host's threads, also in forked children.
//! * [`workers`]: distribution of work to the threads of the pool.
//! * [`races`]: races between groups on shared memory, and reads of shared memory before any write.
//! * [`stop`]: a request to end all runs early.
//! * [`limits`]: limits on the host resources that input may request.
//! * [`float`]: float operations with documented rounding, flushing and NaN results.
//! * [`curves`]: powers of two, logarithms and sines as polynomials.
//!
//! # Features
//!
//! * `every-level` (off): includes vector code for every x86-64 processor and for AVX-512. A build without this
//!   feature has vector code for AVX2 only.
//!
//! This crate does not implement divergence and reconvergence. The `flow.rs` of each machine implements divergence and
//! reconvergence.

pub mod compiling;
pub mod course;
pub mod curves;
pub mod engine;
pub mod error;
pub mod fidelity;
pub mod float;
pub mod identity;
pub mod level;
pub mod loaded;
pub mod lockstep;
pub mod machine;
pub mod mask;
pub mod memory;
pub mod observe;
pub mod paths;
pub mod place;
pub mod pool;
pub mod races;
pub mod random;
pub mod registers;
pub mod stop;
pub mod texture;
pub mod uses;
pub mod vram;
pub mod watch;
pub mod wide;
pub mod word;
pub mod workers;

pub use engine::{Engine, Options};
pub use error::{CodeFault, Difference, GroupId, GroupTrap, RunError};
pub use fidelity::Fidelity;
pub use identity::Identity;
pub use level::Level;
pub use machine::{Depth, FlowView, Issue, Machine, Mode, StackRow, Step, Trap, Why};
pub use mask::{Lane, Mask};
pub use observe::{Event, FlowStep, FlowTrace, LastActive, Observer, Recorder, Silent, Statistics};
pub use paths::{Path, Shares};
pub use reconverge_guarded as guarded;
pub use reconverge_isa::limits;
pub use watch::Watch;
