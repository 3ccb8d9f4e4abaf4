//! Queries and updates of the flow state by a compiled region. After a region, the state is the same as after its
//! single instructions.

use reconverge_simt::Mask;

use super::{Flow, Frame, InLoop};

impl Flow {
    /// Returns how many more iterations the innermost loop can start, if the compiled region may run them.
    ///
    /// Returns `None` if no loop is open, if the loop is not of the kind `al`, or if a lane waits after CONTINUE.
    #[inline]
    pub(crate) fn rounds(&self, al: bool) -> Option<u32> {
        let Frame { count, al: register, continued, .. } = self.loops.last()?;
        (register.is_some() == al && continued.is_empty()).then(|| u32::from(count.saturating_sub(1)))
    }

    /// Continues at `pc` with the lanes `active`, after `rounds` iterations of the innermost loop that each added
    /// `step` to aL. The lanes `broke` have left the loop.
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
    /// Returns whether the instruction ends an iteration.
    pub(crate) const fn ends(&self) -> bool {
        self.end
    }

    /// Returns whether the loop of the instruction has aL; `None` for a CONTINUE.
    pub(crate) const fn al(&self) -> Option<bool> {
        self.al
    }

    /// Returns whether uncovered lanes do not vote.
    pub(crate) const fn ignores_uncovered(&self) -> bool {
        self.ignore_uncovered
    }

    /// Returns the value that the instruction adds to aL.
    pub(crate) const fn step(&self) -> i8 {
        self.step
    }
}
