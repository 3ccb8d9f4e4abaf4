//! A request to stop. After the request, runs end early and return the results that they have computed so far.
//!
//! A front end makes the request on Ctrl-C. The request applies to the whole process. The code that runs a launch polls
//! the request between groups, and after every [`SLICE`] instructions of one group. The results of a stopped launch
//! have the usual shape. They contain the results that the groups have computed so far, and zeros for lanes that did
//! not run.

use std::sync::atomic::{AtomicBool, Ordering};

/// Maximum number of instructions that a group (Tesla: a block) runs between two polls of the request.
pub const SLICE: u64 = 1 << 16;

static ASKED: AtomicBool = AtomicBool::new(false);

/// Requests that all runs of the process stop. The request also applies to runs that start later. Returns whether a
/// stop had already been requested.
pub fn ask() -> bool {
    ASKED.swap(true, Ordering::Relaxed)
}

/// Returns whether a stop has been requested.
#[inline(always)]
pub fn asked() -> bool {
    ASKED.load(Ordering::Relaxed)
}
