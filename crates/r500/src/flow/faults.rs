//! Changes to the flow state for fault injection. For example, a change models a particle that hits a latch.
//!
//! After a change, each lane is still in one of three states. In the first state, the lane is active. In the second
//! state, a branch has switched off the lane, and the lane's counter counts. In the third state, the lane is off, but
//! not because of a branch.

use reconverge_simt::{Lane, Mask};

use super::{Flow, Frame};

impl Flow {
    /// Sets the lanes that execute the next instruction.
    ///
    /// If this function switches off a lane, the lane's counter starts at 0, as if the innermost branch had switched
    /// off the lane. If the function activates a lane, the lane's counter stops. This behaviour is inferred. According
    /// to the documents, each pixel has one counter and runs when the counter is below zero.
    pub fn set_active(&mut self, lanes: Mask) {
        let (off, on) = (self.active - lanes, lanes - self.active);
        self.counters.clear(off);
        self.branch = (self.branch | off) - on;
        self.active = lanes;
    }

    /// Returns the lanes that a branch has switched off. The counters of all other lanes are meaningless.
    pub fn counting(&self) -> Mask {
        self.branch
    }

    /// Returns the branch counter of a lane. The result is 0 if no branch has switched off the lane.
    pub fn counter(&self, lane: Lane) -> u8 {
        if self.branch.has(lane) { self.counters.of(lane) } else { 0 }
    }

    /// Sets the branch counter of a lane that a branch has switched off. Does nothing if no branch has switched off the
    /// lane.
    pub fn set_counter(&mut self, lane: Lane, value: u8) {
        if self.branch.has(lane) {
            self.counters.set(lane, value);
        }
    }

    /// Returns the number of bits that are needed for the highest value of a branch counter.
    pub fn counter_bits(&self) -> u32 {
        (u8::BITS - self.limits.branch_counter.leading_zeros()).max(1)
    }

    /// Returns the open loops, outermost first.
    pub fn frames(&self) -> &[Frame] {
        &self.loops
    }

    /// Sets the remaining iterations of an open loop. Does nothing if `frame` does not exist.
    pub fn set_loop_count(&mut self, frame: usize, count: u8) {
        if let Some(frame) = self.loops.get_mut(frame) {
            frame.count = count;
        }
    }
}

#[cfg(test)]
mod tests {
    use reconverge_simt::Mode;

    use super::*;
    use crate::flow::Limits;
    use crate::words::FcMode;

    #[test]
    fn a_lane_that_is_switched_off_counts_from_0_and_one_that_is_switched_on_does_not_count() {
        let limits = Limits::recommended(FcMode::FULL);
        let mut flow = Flow::new(0, Mask(0xf), Mask(0xf), FcMode::FULL, limits, Mode::Strict);
        flow.set_active(Mask(0b0101));
        assert_eq!((flow.active(), flow.counting()), (Mask(0b0101), Mask(0b1010)));
        flow.set_counter(Lane(1), 19);
        flow.set_counter(Lane(0), 19);
        assert_eq!([0, 1, 3].map(|lane| flow.counter(Lane(lane))), [0, 19, 0]);
        flow.set_active(Mask(0b0111));
        assert_eq!((flow.active(), flow.counting(), flow.counter(Lane(1))), (Mask(0b0111), Mask(0b1000), 0));
        assert_eq!(flow.counter_bits(), 5);
    }
}
