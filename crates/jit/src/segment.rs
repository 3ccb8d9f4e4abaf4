//! The code of a node: a strip and a call. The strip runs for each vector of a group. The call runs after all strips.
//!
//! A [`Segment`] has a fast path and a slow path. The fast path handles strips in which no lane leaves and no value
//! needs special treatment. If a guard fails, the fast path bails out before the first store. The slow path then
//! recomputes the strip.

use crate::called::Callee;
use crate::strip::Strip;

/// Straight-line code for all strips of a group, then a call.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Segment {
    /// Strip that runs for all vectors before the first effect of the segment. If a lane of the slow path accesses a
    /// word outside the window, this strip bails out of the segment.
    pub(crate) check: Option<Strip>,
    /// Fast path. This strip assumes that no lane leaves and no value needs special treatment.
    pub(crate) fast: Option<Strip>,
    /// Slow path: a strip for all cases.
    pub(crate) exact: Strip,
    /// The call after the strips: the called function and the argument of the call. The call is for the active lanes.
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

    /// Returns a segment like [`Segment::new`], with one exception. The exception is a segment whose only effect on
    /// memory is one store. This segment does not check all strips before the store. If a lane of a strip is outside
    /// the window, the strip bails out, although earlier strips have already stored. The earlier stores are correct,
    /// because the machine executes the instruction again. The second execution stores the same values in the lower
    /// lanes. After these lanes, the second execution may trap at the lane outside the window.
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
