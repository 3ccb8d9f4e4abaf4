//! What a compiled pass asks of the flow state, and what it leaves behind: the same as instruction after instruction.

use reconverge_simt::Mask;

use super::{Flow, Frame, InLoop};

impl Flow {
    /// How often the innermost loop may still go back, if it is of this kind and every lane that it has is active or has left
    /// it; `None` where that is not so.
    #[inline]
    pub(crate) fn rounds(&self, al: bool) -> Option<u32> {
        let Frame { count, al: register, continued, .. } = self.loops.last()?;
        (register.is_some() == al && continued.is_empty()).then(|| u32::from(count.saturating_sub(1)))
    }

    /// Goes on at `pc` with these lanes, after the end of the innermost loop has led back so often, adding a step to aL each
    /// time, and others have left the loop.
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

impl InLoop {
    /// Whether it ends an iteration.
    pub(crate) const fn ends(&self) -> bool {
        self.end
    }

    /// Whether its loop has aL; `None` for a CONTINUE.
    pub(crate) const fn al(&self) -> Option<bool> {
        self.al
    }

    /// Whether lanes that are not covered have no vote.
    pub(crate) const fn ignores_uncovered(&self) -> bool {
        self.ignore_uncovered
    }

    /// What it adds to aL.
    pub(crate) const fn step(&self) -> i8 {
        self.step
    }
}
