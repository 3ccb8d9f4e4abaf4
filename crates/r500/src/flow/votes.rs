//! Votes at a flow instruction: which lanes vote, and whether the group jumps. (CTM guide p. 37)

use reconverge_simt::Mask;

use super::{Flow, InhibitScope, Role};
use crate::words::FcInst;

/// The votes of all lanes.
pub(super) struct Votes {
    voters: Mask,
    /// The lanes whose vote is to jump.
    pub(super) want: Mask,
    /// Lanes that are off but will still execute instructions of the loop. These lanes prevent a BREAK or CONTINUE from
    /// jumping.
    inhibiting: Mask,
}

impl Votes {
    /// Returns whether a group that consists of `lanes` jumps according to the votes. An iteration count can override
    /// this result later.
    #[inline(always)]
    pub(super) fn jump(&self, fc: &FcInst, lanes: Mask) -> bool {
        let Votes { voters, want, inhibiting } = *self;
        let voters = voters & lanes;
        let jump = if fc.jump_any { (voters & want).any() } else { (voters - want).is_empty() };
        jump && (inhibiting & lanes).is_empty()
    }

    /// Returns whether every group jumps, because all voters of all groups vote to jump.
    #[inline(always)]
    pub(super) fn are_for_all(&self, fc: &FcInst) -> bool {
        !fc.jump_any && (self.voters - self.want).is_empty() && self.inhibiting.is_empty()
    }
}

impl Flow {
    /// Returns the votes on an instruction, before the instruction changes the state.
    #[inline(always)]
    pub(super) fn votes(&self, fc: &FcInst, want: Mask) -> Votes {
        let waking = if fc.b_else { self.branch & self.counters.zero() } else { Mask::NONE };
        // The B_ELSE of the instruction may switch off lanes. The lanes that B_ELSE switches off vote to jump.
        let off_by_else = if fc.b_else { self.active } else { Mask::NONE };
        let mut voters = self.active | waking;
        if let (Role::End { .. }, Some(frame)) = (fc.op.role(), self.loops.last()) {
            voters |= frame.continued;
        }
        if fc.ignore_uncovered {
            voters &= self.covered;
        }
        Votes { voters, want: want | off_by_else, inhibiting: self.inhibiting(fc, self.branch - waking) }
    }

    /// Returns the lanes that prevent an instruction from jumping. A lane that a branch has switched off inhibits a
    /// BREAK or CONTINUE. A lane that waits for the next iteration of the innermost loop inhibits a BREAK. A lane that
    /// has left the loop by BREAK does not inhibit a jump. If neither a branch nor the loop has switched off a lane,
    /// the lane does not inhibit a jump. Inhibition overrides JUMP_ANY. (CTM guide p. 37; r500.md Q23)
    fn inhibiting(&self, fc: &FcInst, branched: Mask) -> Mask {
        let is_break = match fc.op.role() {
            Role::Break { .. } => true,
            Role::Continue => false,
            Role::Jump | Role::Begin { .. } | Role::End { .. } => return Mask::NONE,
        };
        let heard = if fc.ignore_uncovered { self.covered } else { Mask(u64::MAX) };
        let in_scope = match (self.scope, self.loops.last()) {
            (InhibitScope::Frame, Some(frame)) => frame.mask,
            (InhibitScope::Frame, None) => Mask::NONE,
            (InhibitScope::All, _) => Mask(u64::MAX),
        };
        let continued = self.loops.last().filter(|_| is_break).map_or(Mask::NONE, |frame| frame.continued);
        (branched & in_scope | continued) & heard
    }
}
