//! Queries and updates of the flow state for compiled code. After a run of compiled code, the flow state equals the
//! state after an execution of the compiled instructions one at a time.

use reconverge_simt::{Mask, Mode};

use super::{Flow, Frame, InLoop, Limits, Role, Step};
use crate::words::{AOp, BOp, FcMode};

/// Bit of [`Flow::hindered`]: a branch has switched off a lane, or the counter of a lane is not 0.
const BRANCHED: u32 = 1;
/// Bit of [`Flow::hindered`]: an active lane is not covered.
const UNCOVERED: u32 = 2;
/// Bit of [`Flow::hindered`]: the innermost loop is not a LOOP, or lanes of the innermost loop wait after a CONTINUE.
const NO_LOOP: u32 = 4;
/// Bit of [`Flow::hindered`]: the innermost loop is not a REP, or lanes of the innermost loop wait after a CONTINUE.
const NO_REP: u32 = 8;

impl Flow {
    /// Returns a set of bits. A bit is set if a condition prevents compiled code from executing certain flow
    /// instructions. [`Step::needs`] returns the bits that matter for one instruction.
    #[inline]
    pub(crate) fn hindered(&self) -> u32 {
        let frame = self.loops.last().filter(|frame| frame.continued.is_empty());
        let has_al = frame.map(|frame| frame.al.is_some());
        let bit = |holds: bool, bit: u32| if holds { bit } else { 0 };
        bit(self.branch.any() || self.counters.zero() != Mask(u64::MAX), BRANCHED)
            | bit((self.active - self.covered).any(), UNCOVERED)
            | bit(has_al != Some(true), NO_LOOP)
            | bit(has_al != Some(false), NO_REP)
    }

    /// Returns how many more iterations compiled code may start in the innermost loop. If `al` is true, the loop must
    /// be a LOOP, which has aL. Otherwise, the loop must be a REP.
    ///
    /// Returns `None` in four cases: no loop is open, the innermost loop is not of the required kind, a lane waits
    /// after a CONTINUE, or an active lane is not covered.
    #[inline]
    pub(crate) fn rounds(&self, al: bool) -> Option<u32> {
        let Frame { count, al: register, continued, .. } = self.loops.last()?;
        let in_place =
            register.is_some() == al && continued.is_empty() && (self.active - self.covered).is_empty();
        in_place.then(|| u32::from(count.saturating_sub(1)))
    }

    /// Updates the state after compiled code has run. The group is now at `pc`, and the lanes `active` are active.
    /// Compiled code has started `rounds` iterations of the innermost loop, and each iteration has added `step` to aL.
    /// The lanes `broke` have left that loop.
    pub(crate) fn stay(&mut self, pc: u16, active: Mask, broke: Mask, (rounds, step): (u32, i8)) {
        (self.pc, self.active) = (pc, active);
        let Some(frame) = self.loops.last_mut().filter(|_| rounds > 0 || broke.any()) else { return };
        frame.broken |= broke;
        frame.count = frame.count.saturating_sub(rounds.min(255) as u8);
        if let Some(al) = &mut frame.al {
            *al += i32::from(step) * rounds as i32;
        }
    }
}

impl Step {
    /// Returns two votes. The first vote is the vote of a lane whose ALU result is false. The second vote is the vote
    /// of a lane whose ALU result is true. A vote of true is a vote to jump. Returns `None` if the vote also depends on
    /// the predicate.
    pub(crate) fn votes(&self) -> Option<[bool; 2]> {
        let [no, no_holds, yes, yes_holds] = self.wants.map(|want| want != 0);
        let known = self.predicate.is_none() || (no, yes) == (no_holds, yes_holds);
        known.then_some([no_holds, yes_holds])
    }

    /// Returns the bits of [`Flow::hindered`] that must be zero for compiled code to execute the instruction.
    pub(crate) fn needs(&self) -> u32 {
        let Step { inst: fc, in_loop, .. } = self;
        let counts = fc.b_else || [fc.b_op0, fc.b_op1] != [BOp::NONE; 2];
        let of_loop = match in_loop {
            // The end of an iteration needs no bits. [`Flow::rounds`] allows iterations only in a loop of the required
            // kind.
            Some(InLoop { end: true, .. }) => return 0,
            Some(InLoop { al: Some(true), .. }) => NO_LOOP,
            Some(InLoop { al: Some(false), .. }) => NO_REP,
            _ if counts => BRANCHED,
            _ => 0,
        };
        of_loop | if fc.ignore_uncovered { UNCOVERED } else { 0 }
    }

    /// Returns the slot at which the group continues after the instruction at `pc`. Assumes that no lane is off and
    /// that all lanes vote `jump`. Returns `None` if the instruction is not a branch, or if the instruction changes
    /// more than the program counter.
    pub(crate) fn passes_to(&self, pc: u16, jump: bool) -> Option<u16> {
        if self.inst.op.role() != Role::Jump || self.inst.a_op != AOp::NONE {
            return None;
        }
        let (all, limits) = (Mask(1), Limits::recommended(FcMode::FULL));
        let before = Flow::new(pc, all, all, FcMode::FULL, limits, Mode::Strict);
        let mut after = before.clone();
        after.execute(self, if jump { all } else { Mask::NONE }).ok()?;
        let to = std::mem::replace(&mut after.pc, pc);
        (after == before).then_some(to)
    }

    /// Returns the slot at which all lanes continue after the branch at `pc` and its sides. The lanes that stay at the
    /// branch run the first side, which begins at the next slot. The lanes that jump run the second side, if the branch
    /// has one. `ends` contains the last slot of each side and the flow instruction in the last slot.
    ///
    /// Assumes that no lane is off at the branch. Returns `None` if the lanes that run a side are not exactly the lanes
    /// described above. Also returns `None` if the instructions change anything except the program counter.
    pub(crate) fn meets(&self, pc: u16, ends: &[(u16, &Step)]) -> Option<u16> {
        let (all, limits) = (Mask(0b11), Limits::recommended(FcMode::FULL));
        let before = Flow::new(pc, all, all, FcMode::FULL, limits, Mode::Strict);
        let mut slot = None;
        for want in [0b00, 0b01, 0b10, 0b11].map(Mask) {
            let mut flow = before.clone();
            flow.execute(self, want).ok()?;
            let mut first = pc + 1;
            for ((end, step), lanes) in ends.iter().zip([all - want, want]) {
                let runs = flow.pc == first;
                if runs {
                    let [no, yes] = step.votes().filter(|_| flow.active == lanes)?;
                    flow.pc = *end;
                    let want = if no { Mask(u64::MAX) } else { Mask::NONE };
                    let decision = flow.execute(step, want).ok()?;
                    if no != yes || decision.diverged() {
                        return None;
                    }
                }
                if runs != lanes.any() {
                    return None;
                }
                first = end + 1;
            }
            let to = std::mem::replace(&mut flow.pc, pc);
            if flow != before || *slot.get_or_insert(to) != to {
                return None;
            }
        }
        slot
    }

    /// Returns the slot at which the lanes that vote to jump continue after the branch at `pc`. The lanes that vote to
    /// stay run the two instructions `ends`. The first is a BREAK at which the lanes leave a loop. The second is the
    /// end of the branch. Assumes that no lane is off at the branch. Returns `None` if the instructions change anything
    /// except the program counter and the lanes in the loop.
    pub(crate) fn leaves(&self, pc: u16, ends: [&Step; 2]) -> Option<u16> {
        let (all, limits) = (Mask(0b11), Limits::recommended(FcMode::FULL));
        let al = ends[0].in_loop?.al?.then_some(0);
        let mut before = Flow::new(pc, all, all, FcMode::FULL, limits, Mode::Strict);
        let (broken, continued) = (Mask::NONE, Mask::NONE);
        before.loops.push(Frame { count: 2, al, mask: all, broken, continued });
        let mut slot = None;
        for want in [0b01, 0b10, 0b11].map(Mask) {
            let mut flow = before.clone();
            flow.execute(self, want).ok()?;
            if want != all {
                for (step, place) in ends.iter().zip(1..) {
                    let [no, yes] = step.votes().filter(|_| flow.pc == pc + place)?;
                    let decision = flow.execute(step, if no { Mask(u64::MAX) } else { Mask::NONE }).ok()?;
                    if no != yes || decision.diverged() || place == 1 && flow.active.any() {
                        return None;
                    }
                }
            }
            let to = std::mem::replace(&mut flow.pc, pc);
            flow.active |= std::mem::take(&mut flow.loops.last_mut()?.broken);
            if flow != before || to == pc + 1 || *slot.get_or_insert(to) != to {
                return None;
            }
        }
        slot
    }

    /// Returns whether the instruction is a simple BREAK. At a simple BREAK, the lanes that vote to jump leave the
    /// loop, and all other active lanes stay in the loop.
    pub(crate) fn breaks(&self) -> bool {
        self.in_loop.is_some_and(|it| !it.end && it.al.is_some()) && !self.inst.jump_any
    }

    /// If the instruction ends an iteration and all lanes vote to repeat the loop, returns two properties of the loop.
    /// The first is whether the loop has aL. The second is the number that an iteration adds to aL. Otherwise, returns
    /// `None`.
    pub(crate) fn repeats(&self) -> Option<(bool, i8)> {
        let ends = self.in_loop.filter(|it| it.end && self.votes() == Some([true; 2]));
        ends.and_then(|it| Some((it.al?, it.step)))
    }
}
