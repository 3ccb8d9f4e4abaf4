//! Changes to the flow state from outside, for fault injection: what a particle that hits a latch does.
//!
//! They keep what the state itself cannot express otherwise: a lane is either active, or counting, or off for another
//! reason, never two of them.

use reconverge_simt::{Lane, Mask};

use super::{Flow, Frame};

impl Flow {
    /// Changes which lanes take part in the next instruction.
    ///
    /// A lane that goes off counts from 0, as one that the innermost branch has switched off. One that comes on stops
    /// counting. (Inferred: the documents name a counter a pixel, and say that a pixel runs when its counter is below zero.)
    pub fn set_active(&mut self, lanes: Mask) {
        let (off, on) = (self.active - lanes, lanes - self.active);
        self.counters.clear(off);
        self.branch = (self.branch | off) - on;
        self.active = lanes;
    }

    /// Lanes that a branch has switched off: those whose counters count.
    pub fn counting(&self) -> Mask {
        self.branch
    }

    /// A lane's branch counter; 0 where the lane does not count.
    pub fn counter(&self, lane: Lane) -> u8 {
        if self.branch.has(lane) { self.counters.of(lane) } else { 0 }
    }

    /// Changes the branch counter of a lane that counts; of any other nothing changes.
    pub fn set_counter(&mut self, lane: Lane, value: u8) {
        if self.branch.has(lane) {
            self.counters.set(lane, value);
        }
    }

    /// Bits of a branch counter: as many as its highest value has.
    pub fn counter_bits(&self) -> u32 {
        (u8::BITS - self.limits.branch_counter.leading_zeros()).max(1)
    }

    /// The open loops, outermost first.
    pub fn frames(&self) -> &[Frame] {
        &self.loops
    }

    /// Changes the iterations that an open loop has to go; nothing changes where there is no such loop.
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
