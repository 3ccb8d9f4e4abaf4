//! Code that all SIMT machines share. Nothing here is specific to one machine.
//!
//! * [`mask`]: sets of lanes.
//! * [`machine`]: interface between a front end and a group: [`FlowView`], [`Machine`], traps.
//! * [`observe`]: events, and observers that cost nothing when they are off; [`watch`]: observers chosen at run time;
//!   [`course`]: the issues of a launch, and the step at which another run differs.
//! * [`engine`]: which of a machine's engines runs, and how: [`Options`].
//! * [`uses`]: reads and writes of an instruction, as data.
//! * [`error`]: errors of a launch: [`RunError`].
//! * [`lockstep`]: both engines of a machine, compared while they run.
//! * [`loaded`]: the forms of a program that is loaded once, and counts of that work.
//! * [`paths`]: counts of instructions by path of the fast engine.
//! * [`guarded`]: lists of values between pages that cannot be accessed.
//! * [`registers`]: lane-major register files; [`place`]: their rows as a lowered program names them.
//! * [`level`]: levels of the host's vector instructions; code compiled once for each level.
//! * [`wide`]: functions that are implemented separately for each level.
//! * [`memory`]: buffers many groups share, and views for running groups in parallel as if in order.
//! * [`vram`]: memory of a chip that a program may access at the same time.
//! * [`pool`]: the host's threads, also in forked children; [`workers`]: pieces of work handed out to them.
//! * [`races`]: races on memory that groups share, and reads of it before any write.
//! * [`stop`]: a request that all runs end early; [`limits`]: limits on the host resources that input may request.
//! * [`float`]: rounding, flushing and NaN, stated for each function.
//!
//! # Features
//!
//! * `every-level` (off): vector code for every x86-64 processor and for AVX-512; without it, for AVX2 only.
//!
//! Divergence and reconvergence are not in this crate: each machine's `flow.rs` implements its own model.

pub mod compiling;
pub mod course;
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
