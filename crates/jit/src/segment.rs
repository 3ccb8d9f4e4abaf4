//! The code of a node: strips for the vectors of a group, one after another, then a call.
//!
//! A [`Segment`] has a fast path and a slow path. The fast path handles strips in which no lane leaves and no value
//! needs special treatment. If a guard fails, it bails out before the first store, and the slow path recomputes the
//! strip.

use crate::called::Callee;
use crate::strip::Strip;

/// Straight-line code for all strips of a group, then a call.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Segment {
    /// Runs for all strips before any effect. The segment bails out if a lane on the slow path is outside the window.
    pub(crate) check: Option<Strip>,
    /// Strip for the case that no lane leaves and no value needs special treatment.
    pub(crate) fast: Option<Strip>,
    /// Strip for all other cases.
    pub(crate) exact: Strip,
    /// Call after the strips for the active lanes: the function and its number.
    pub(crate) call: Option<(Callee, u32)>,
}

impl Segment {
    /// Returns a segment without a call: an optional fast path, and a slow path.
    ///
    /// The segment bails out before any effect if a lane accesses a word outside the window on the slow path. The
    /// fast path may have additional lanes that have left on the slow path. Their accesses do not reach memory
    /// unless they are inside the window.
    pub(crate) fn new(fast: Option<Strip>, exact: Strip) -> Segment {
        Segment { check: exact.check(), fast, exact, call: None }
    }

    /// Returns a segment like [`Segment::new`]. If its only effect on memory is one store, a strip in which a lane is
    /// outside bails out by itself: the strips before it have stored what the whole store stores again, or what lanes
    /// before a trap have stored.
    pub(crate) fn restarting(mut fast: Strip, mut exact: Strip) -> Segment {
        if !fast.only_stores() || !exact.only_stores() {
            return Segment::new(Some(fast), exact);
        }
        fast.guard_spans();
        exact.guard_spans();
        Segment { check: None, fast: Some(fast), exact, call: None }
    }

    /// Returns the strips of the segment.
    pub(crate) fn strips(&self) -> impl Iterator<Item = &Strip> {
        self.check.iter().chain(&self.fast).chain([&self.exact])
    }
}
