//! What every SIMT machine has, and nothing that only one of them has.
//!
//! * [`mask`]: sets of lanes.
//! * [`machine`]: how a front end issues and looks: [`FlowView`], [`Machine`], traps.
//! * [`observe`]: events, and observers that cost nothing when nobody looks.
//! * [`float`]: rounding, flushing and NaN, stated for each function.
//!
//! How lanes diverge and come together again is not here: each machine's `flow.rs` has its own way.

pub mod float;
pub mod machine;
pub mod mask;
pub mod observe;
pub mod texture;

pub use machine::{FlowView, Issue, Machine, StackRow, Step, Trap, Why};
pub use mask::{Lane, Mask};
pub use observe::{Event, Observer, Recorder, Silent, Statistics};
