//! What a compiled pass asks of the flow state, and what it leaves behind: the same as instruction after instruction.

use std::iter::repeat_n;

use reconverge_simt::Mask;

use super::{Entry, Flow, LoopKind, StackUse};
use crate::flow::state::Cost;

impl Flow {
    /// How often the innermost loop may still go back, `u32::MAX` where nothing limits it; `None` unless a round of it begins
    /// here, with every lane active or out of the loop.
    #[inline]
    pub(crate) fn rounds(&self) -> Option<u32> {
        let Some(Entry::Loop { body, .. }) = self.stack.last() else { return None };
        let states = &self.states;
        if *body != self.pc || states.inactive_continue.any() || states.inactive_break != !states.active {
            return None;
        }
        let registers = self.registers?;
        Some(match registers.kind {
            LoopKind::Dx10 if registers.trip == 0 => u32::MAX,
            LoopKind::Dx9 | LoopKind::Repeat | LoopKind::Dx10 => registers.trip.saturating_sub(1),
        })
    }

    /// Whether LOOP_BREAK and LOOP_CONTINUE have a loop here.
    pub(crate) fn is_in_loop(&self) -> bool {
        self.loop_entry().is_some()
    }

    /// Entries of the stack, if so many branches were pushed.
    fn needed_with(&self, pushes: u32) -> u32 {
        let costs = self.stack.iter().map(Entry::cost).chain(repeat_n(Cost::Push, pushes as usize));
        StackUse::of(costs, self.setup.wave_width).entries(self.subentries_an_entry())
    }

    /// Whether so many branches can be pushed.
    pub(crate) fn has_room_for(&self, pushes: u32) -> bool {
        !self.setup.strict
            || self.setup.stack_size.is_none_or(|declared| self.needed_with(pushes) <= declared)
    }

    /// So many branches have been pushed, and popped again.
    pub(crate) fn has_held(&mut self, pushes: u32) {
        self.deepest = self.deepest.max(self.needed_with(pushes));
    }

    /// Goes on at `pc` with these lanes, after LOOP_END has led back so often and others have left the loop.
    pub(crate) fn stay(&mut self, pc: u32, active: Mask, broke: Mask, rounds: u32) {
        self.pc = pc;
        self.states.active = active;
        self.states.inactive_break |= broke;
        let Some(registers) = self.registers.as_mut().filter(|_| rounds > 0) else { return };
        match registers.kind {
            LoopKind::Dx9 => {
                registers.trip -= rounds;
                let steps = registers.step.wrapping_mul(rounds as i32);
                registers.index = registers.index.map(|index| index.wrapping_add(steps));
            }
            LoopKind::Repeat => registers.trip -= rounds,
            // 0 is no limit.
            LoopKind::Dx10 => registers.trip = registers.trip.saturating_sub(rounds),
        }
    }
}
