//! A request to stop. After such a request, runs end early and return the results computed so far.
//!
//! A front end makes the request on Ctrl-C. The request applies to the whole process. Code that runs a launch to its
//! end polls the request between groups, and after every [`SLICE`] instructions of one group. A stopped launch returns
//! results of the usual shape: the results that its groups have computed so far, and zeros for lanes that did not run.

use std::sync::atomic::{AtomicBool, Ordering};

/// Maximum number of instructions of a group (Tesla: of a block) between two polls of the request.
pub const SLICE: u64 = 1 << 16;

static ASKED: AtomicBool = AtomicBool::new(false);

/// Requests that all runs of the process stop, including those that start later. Returns whether a stop had already
/// been requested.
pub fn ask() -> bool {
    ASKED.swap(true, Ordering::Relaxed)
}

/// Returns whether a stop has been requested.
#[inline(always)]
pub fn asked() -> bool {
    ASKED.load(Ordering::Relaxed)
}
