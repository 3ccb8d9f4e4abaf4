//! Flow control of several groups that share one flow state. The groups have one common program counter and common
//! stacks. Each group has its own lanes.
//!
//! The flow of a group depends only on the lanes of the group. One flow state is enough if all groups jump or no group
//! jumps. Otherwise, the groups that jump are split from the groups that stay. The groups are merged again when their
//! flow states differ only in their lanes.

use reconverge_simt::Mask;

use super::{Call, Flow, Frame, Step};

impl Flow {
    /// Returns the lanes of the groups that jump at the program counter. The votes of a group determine whether the
    /// group jumps. Returns all lanes if every group jumps.
    #[inline(always)]
    pub(crate) fn jumping(&self, step: &Step, want: Mask, groups: impl Iterator<Item = Mask>) -> Mask {
        let votes = self.votes(&step.inst, want);
        if votes.are_for_all(&step.inst) {
            return Mask(u64::MAX);
        }
        let jumping = groups.filter(|lanes| votes.jump(&step.inst, *lanes));
        jumping.fold(Mask::NONE, |all, lanes| all | lanes)
    }

    /// Splits off the groups that consist of `lanes`. Returns the flow state of these groups.
    pub(crate) fn part(&mut self, lanes: Mask) -> Flow {
        let mut parted = self.clone();
        parted.keep(lanes);
        self.keep(!lanes);
        parted
    }

    fn keep(&mut self, lanes: Mask) {
        let Flow { active, branch, covered, loops, calls, .. } = self;
        [active, branch, covered].into_iter().for_each(|mask| *mask &= lanes);
        loops.iter_mut().flat_map(Frame::masks_mut).for_each(|mask| *mask &= lanes);
        calls.iter_mut().flat_map(Call::masks_mut).for_each(|mask| *mask &= lanes);
    }

    /// Returns whether two flow states differ only in their lanes.
    pub(crate) fn is_where(&self, other: &Flow) -> bool {
        let frames = || self.loops.iter().zip(&other.loops);
        let calls = || self.calls.iter().zip(&other.calls);
        (self.pc, self.ended) == (other.pc, other.ended)
            && (self.loops.len(), self.calls.len()) == (other.loops.len(), other.calls.len())
            && frames().all(|(a, b)| (a.count, a.al) == (b.count, b.al))
            && calls().all(|(a, b)| (a.return_to, a.loop_depth) == (b.return_to, b.loop_depth))
    }

    /// Merges groups that were [split off](Flow::part). The flow state `other` must [match](Flow::is_where) this flow
    /// state.
    pub(crate) fn join(&mut self, mut other: Flow) {
        // The addition of counters requires that one of the two counters of each lane is 0. If no branch has switched
        // off a lane, the lane's counter may have any value. This code clears the counters of these lanes.
        self.counters.clear(!self.branch);
        other.counters.clear(!other.branch);
        self.counters.add(&other.counters);
        self.active |= other.active;
        self.branch |= other.branch;
        self.covered |= other.covered;
        let frames = self.loops.iter_mut().zip(&mut other.loops);
        let frames = frames.flat_map(|(to, from)| to.masks_mut().into_iter().zip(from.masks_mut()));
        let calls = self.calls.iter_mut().zip(&mut other.calls);
        let calls = calls.flat_map(|(to, from)| to.masks_mut().into_iter().zip(from.masks_mut()));
        frames.chain(calls).for_each(|(to, from)| *to |= *from);
    }
}

impl Frame {
    fn masks_mut(&mut self) -> [&mut Mask; 3] {
        [&mut self.mask, &mut self.broken, &mut self.continued]
    }
}

impl Call {
    fn masks_mut(&mut self) -> [&mut Mask; 2] {
        [&mut self.callers, &mut self.returned]
    }
}
