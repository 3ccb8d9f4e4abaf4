//! Votes on a flow instruction: who has one, and what comes of them. (CTM guide p. 37)

use reconverge_simt::Mask;

use super::{Flow, InhibitScope, Role};
use crate::words::FcInst;

/// The votes of all lanes.
pub(super) struct Votes {
    voters: Mask,
    /// The lanes that vote for a jump.
    pub(super) want: Mask,
    /// Lanes that still have to pass through the rest of the loop: they keep a break or continue from jumping.
    inhibiting: Mask,
}

impl Votes {
    /// Whether a group of these lanes jumps, before counts overrule its votes.
    #[inline(always)]
    pub(super) fn jump(&self, fc: &FcInst, lanes: Mask) -> bool {
        let Votes { voters, want, inhibiting } = *self;
        let voters = voters & lanes;
        let jump = if fc.jump_any { (voters & want).any() } else { (voters - want).is_empty() };
        jump && (inhibiting & lanes).is_empty()
    }

    /// Whether a group of any lanes jumps.
    #[inline(always)]
    pub(super) fn are_for_all(&self, fc: &FcInst) -> bool {
        !fc.jump_any && (self.voters - self.want).is_empty() && self.inhibiting.is_empty()
    }
}

impl Flow {
    /// The votes on the instruction at the program counter, which has not changed anything yet.
    #[inline(always)]
    pub(super) fn votes(&self, fc: &FcInst, want: Mask) -> Votes {
        let waking = if fc.b_else { self.branch & self.counters.zero() } else { Mask::NONE };
        // Lanes switched off by this instruction's own B_ELSE vote "jump".
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

    /// CTM guide p. 37: a lane that a branch switched off stops a BREAK or CONTINUE from jumping; a lane that
    /// waits for the innermost loop's next round stops a BREAK. Lanes that broke, or are off for other reasons,
    /// do not. Inhibition wins over JUMP_ANY. (r500.md Q23)
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
