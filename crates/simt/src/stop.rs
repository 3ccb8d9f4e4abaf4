//! A request to stop: runs end early, and leave what they have computed.
//!
//! A front end asks on Ctrl-C. The request is for the whole process: whatever runs a launch to its end polls it between
//! groups and every [`SLICE`] instructions of one. A launch that was stopped has outcomes of the usual shape. What its
//! groups computed until then is in them; lanes that did not run have zeros.

use std::sync::atomic::{AtomicBool, Ordering};

/// Instructions of a group (Tesla: of a block) that run between two looks at the request, at most.
pub const SLICE: u64 = 1 << 16;

static ASKED: AtomicBool = AtomicBool::new(false);

/// Asks all runs of the process to stop, those that start later included. Gives whether that was asked before.
pub fn ask() -> bool {
    ASKED.swap(true, Ordering::Relaxed)
}

/// Whether runs are to stop.
#[inline(always)]
pub fn asked() -> bool {
    ASKED.load(Ordering::Relaxed)
}
