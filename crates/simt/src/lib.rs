//! What every SIMT machine has, and nothing that only one of them has.
//!
//! * [`mask`]: sets of lanes.
//! * [`machine`]: what a front end can do with a group: [`FlowView`], [`Machine`], traps.
//! * [`observe`]: events, and observers that cost nothing when they are off; [`watch`]: observers chosen at run time; [`course`]: what a launch issued, and where
//!   another run leaves it.
//! * [`engine`]: which of a machine's engines runs, and how: [`Options`].
//! * [`uses`]: what an instruction reads and writes, as data.
//! * [`error`]: why a launch gives no outcome: [`RunError`].
//! * [`lockstep`]: both engines of a machine, compared while they run.
//! * [`loaded`]: the forms of a program that is loaded once, and counts of that work.
//! * [`paths`]: by which paths a fast engine ran its instructions.
//! * [`guarded`]: lists of values between pages that cannot be accessed.
//! * [`registers`]: lane-major register files; [`place`]: their rows as a lowered program names them.
//! * [`level`]: which vector instructions of the host's processor may be used; code compiled once for each level.
//! * [`wide`]: what is written differently for each level.
//! * [`memory`]: buffers many groups share, and views for running groups in parallel as if in order.
//! * [`vram`]: memory of a chip that a program may access at the same time.
//! * [`pool`]: the host's threads, in forked children too; [`workers`]: pieces of work handed out to them.
//! * [`races`]: races on memory that groups share, and reads of it that nothing has written.
//! * [`stop`]: a request that all runs end early; [`limits`]: what input may ask of the host, at most.
//! * [`float`]: rounding, flushing and NaN, stated for each function.
//!
//! # Features
//!
//! * `every-level` (off): vector code for every x86-64 processor and for AVX-512; without it, for AVX2 only.
//!
//! How lanes diverge and come together again is not here: each machine's `flow.rs` has its own way.

pub mod compiling;
pub mod course;
pub mod engine;
pub mod error;
pub mod fidelity;
pub mod float;
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
pub use level::Level;
pub use machine::{Depth, FlowView, Issue, Machine, Mode, StackRow, Step, Trap, Why};
pub use mask::{Lane, Mask};
pub use observe::{Event, FlowStep, FlowTrace, LastActive, Observer, Recorder, Silent, Statistics};
pub use paths::{Path, Shares};
pub use reconverge_guarded as guarded;
pub use reconverge_isa::limits;
pub use watch::Watch;
