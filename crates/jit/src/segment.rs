//! The code of a node. The code consists of a strip, which runs for each vector of a group, and of a call, which runs
//! after all strips.
//!
//! A [`Segment`] has a fast path and a slow path. The fast path handles strips in which no lane leaves and no value
//! needs special treatment. If a guard of the fast path fails, the fast path bails out before its first store, and the
//! slow path recomputes the strip.

use crate::called::Callee;
use crate::strip::Strip;

/// Straight-line code for all strips of a group, then a call.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Segment {
    /// Strip that runs for all vectors before the first effect of the segment. If a lane of the slow path is outside
    /// the window, this strip bails out of the segment.
    pub(crate) check: Option<Strip>,
    /// Fast path: a strip for the case that no lane leaves and no value needs special treatment.
    pub(crate) fast: Option<Strip>,
    /// Slow path: a strip for all cases.
    pub(crate) exact: Strip,
    /// The call after the strips: the called function and its argument. The call is for the active lanes.
    pub(crate) call: Option<(Callee, u32)>,
}

impl Segment {
    /// Returns a segment without a call: an optional fast path, and a slow path.
    ///
    /// If a lane of the slow path accesses a word outside the window, the segment bails out before any effect. A lane
    /// that has left on the slow path may still be active on the fast path. For such a lane, the fast path omits
    /// accesses outside the window.
    pub(crate) fn new(fast: Option<Strip>, exact: Strip) -> Segment {
        Segment { check: exact.check(), fast, exact, call: None }
    }

    /// Returns a segment like [`Segment::new`], with one exception. If the only effect of the segment on memory is one
    /// store, the segment does not check all strips before the store. If a lane of a strip is outside the window, this
    /// strip bails out, although earlier strips have already stored. These stores are correct, because the instruction
    /// is executed again. The second execution stores the same values, or it traps at the lane outside the window after
    /// the lower lanes have stored.
    pub(crate) fn restarting(fast: Strip, exact: Strip) -> Segment {
        if !fast.only_stores() || !exact.only_stores() {
            return Segment::new(Some(fast), exact);
        }
        let (fast, exact) = (fast.with_guarded_spans(), exact.with_guarded_spans());
        Segment { check: None, fast: Some(fast), exact, call: None }
    }

    /// Returns the strips of the segment.
    pub(crate) fn strips(&self) -> impl Iterator<Item = &Strip> {
        self.check.iter().chain(&self.fast).chain([&self.exact])
    }
}
