//! A request to stop: runs end early and keep their results so far.
//!
//! A front end makes the request on Ctrl-C. It applies to the whole process. Code that runs a launch to its end polls
//! it between groups, and every [`SLICE`] instructions of one group. A stopped launch has outcomes of the usual
//! shape. They contain the results of its groups so far; lanes that did not run have zeros.

use std::sync::atomic::{AtomicBool, Ordering};

/// Maximum number of instructions of a group (Tesla: of a block) between two polls of the request.
pub const SLICE: u64 = 1 << 16;

static ASKED: AtomicBool = AtomicBool::new(false);

/// Requests that all runs of the process stop, including those that start later. Returns whether this was already
/// requested.
pub fn ask() -> bool {
    ASKED.swap(true, Ordering::Relaxed)
}

/// Returns whether runs are to stop.
#[inline(always)]
pub fn asked() -> bool {
    ASKED.load(Ordering::Relaxed)
}
