//! Functions for compiled code that read and change the flow state. Each function replaces a sequence of instructions.
//! The function makes the changes that the instructions would make.

use super::{Entry, Flow, LoopKind};

impl Flow {
    /// Returns the address of the innermost loop's body, and the number of further iterations that can start. If the
    /// loop has no limit, the number is `u32::MAX`.
    ///
    /// Returns `None` if the innermost entry of the stack is not a loop. Also returns `None` if some lane is inactive
    /// and has not left the loop.
    #[inline]
    pub(crate) fn rounds(&self) -> Option<(u32, u32)> {
        let Some(Entry::Loop { body, .. }) = self.stack.last() else { return None };
        let states = &self.states;
        // The four sets of lanes are disjoint. So if every lane is active or inactive-break, no lane is
        // inactive-continue or inactive-branch.
        if states.inactive_break != !states.active {
            return None;
        }
        let registers = self.registers?;
        let rounds = match registers.kind {
            LoopKind::Dx10 if registers.trip == 0 => u32::MAX,
            LoopKind::Dx9 | LoopKind::Repeat | LoopKind::Dx10 => registers.trip.saturating_sub(1),
        };
        Some((*body, rounds))
    }

    /// Records that LOOP_END has jumped back `rounds` times.
    #[inline]
    pub(crate) fn has_repeated(&mut self, rounds: u32) {
        let Some(registers) = self.registers.as_mut().filter(|_| rounds > 0) else { return };
        match registers.kind {
            LoopKind::Dx9 => {
                registers.trip -= rounds;
                let steps = registers.step.wrapping_mul(rounds as i32);
                registers.index = registers.index.map(|index| index.wrapping_add(steps));
            }
            LoopKind::Repeat => registers.trip -= rounds,
            // If the trip count is 0, the number of iterations is not limited. Such a trip count must stay 0.
            LoopKind::Dx10 => registers.trip = registers.trip.saturating_sub(rounds),
        }
    }

    /// Returns whether the current subroutine has an open loop. LOOP_BREAK and LOOP_CONTINUE need such a loop.
    #[inline]
    pub(crate) fn is_in_loop(&self) -> bool {
        self.loop_entry().is_some()
    }

    /// Returns how many more branch entries fit on the stack.
    #[inline]
    pub(crate) fn room(&self) -> u32 {
        let used = self.stack.counts().and_pushes(1).stack_use(self.setup.wave_width);
        let subentries = self.stack_limit().saturating_sub(used.full) * self.subentries_an_entry();
        (subentries + 1).saturating_sub(used.sub)
    }

    /// Records that `pushes` branch entries were pushed and popped again.
    #[inline]
    pub(crate) fn has_held(&mut self, pushes: u32) {
        let used = self.stack.counts().and_pushes(pushes).stack_use(self.setup.wave_width);
        self.deepest = self.deepest.max(used.entries(self.subentries_an_entry()));
    }

    /// Sets the program counter.
    #[inline]
    pub(crate) fn continue_at(&mut self, pc: u32) {
        self.pc = pc;
    }
}

#[cfg(test)]
mod tests {
    use reconverge_simt::Mask;

    use super::*;
    use crate::flow::{AluForm, Control, FlowSetup, LoopConstant};

    /// Returns the flow state of 64 lanes in the first iteration of a loop. The body of the loop begins at address 1.
    fn in_loop(limit: Option<u32>) -> Flow {
        let setup = FlowSetup { dx10_loop_limit: limit, ..FlowSetup::new(64, !Mask::NONE) };
        let mut flow = Flow::new(setup);
        flow.loop_start_dx10(&Control::to(9)).unwrap();
        flow
    }

    #[test]
    fn iterations_are_those_of_the_innermost_entry() {
        let mut flow = in_loop(None);
        assert_eq!(flow.rounds(), Some((1, u32::MAX)));
        flow.alu_enter(AluForm::ALU, false).unwrap();
        flow.alu_leave(AluForm::ALU).unwrap();
        assert_eq!((flow.pc(), flow.rounds()), (2, Some((1, u32::MAX))));
        // If the innermost entry of the stack is a branch entry, no iteration of the loop can end.
        let mut flow = in_loop(None);
        flow.push_(&Control::to(9)).unwrap();
        assert_eq!(flow.rounds(), None);
    }

    #[test]
    fn iterations_are_counted_with_every_lane_active_or_out_of_the_loop() {
        for (form, rounds) in
            [(AluForm::ALU_BREAK, Some((1, u32::MAX))), (AluForm::ALU_CONTINUE, None), (AluForm::ALU, None)]
        {
            let mut flow = in_loop(None);
            flow.update_execute_mask(form, Mask(0b0101));
            assert_eq!(flow.rounds(), rounds, "{form:?}");
        }
    }

    #[test]
    fn the_last_round_does_not_lead_back() {
        for (limit, rounds) in [(1, 0), (2, 1), (7, 6)] {
            assert_eq!(in_loop(Some(limit)).rounds(), Some((1, rounds)));
        }
    }

    #[test]
    fn a_loop_around_a_call_is_none_of_the_subroutine() {
        let mut flow = Flow::new(FlowSetup::new(64, Mask(0xf)));
        assert!(!flow.is_in_loop());
        flow.loop_start_dx10(&Control::to(9)).unwrap();
        flow.push_(&Control::to(9)).unwrap();
        assert!(flow.is_in_loop());
        flow.call(&Control { call_count: 1, ..Control::to(20) }).unwrap();
        assert!(!flow.is_in_loop());
    }

    /// With wavefronts of 64 lanes, one entry has four subentries, so two entries have eight subentries. Six pushes
    /// need eight subentries: six subentries for the pushes, and two extra subentries.
    #[test]
    fn conditionals_need_the_stack_that_pushes_need() {
        let mut flow = Flow::new(FlowSetup { stack_size: Some(2), ..FlowSetup::new(64, Mask(0xf)) });
        flow.push_(&Control::to(9)).unwrap();
        assert_eq!(flow.room(), 5);
        flow.has_held(5);
        assert_eq!(flow.stack_needed(), 2);
        flow.has_held(0);
        assert_eq!(flow.stack_needed(), 2);
        // In lenient mode or without a declared STACK_SIZE, the limit is the largest size that STACK_SIZE can declare.
        for (stack_size, strict) in [(None, true), (Some(2), false)] {
            let flow = Flow::new(FlowSetup { stack_size, strict, ..FlowSetup::new(64, Mask(0xf)) });
            let room = flow.room();
            for (pushes, fits) in [(room, true), (room + 1, false)] {
                let mut flow = flow.clone();
                let pushed = (0..pushes).try_for_each(|_| flow.push_(&Control::to(9)));
                assert_eq!(pushed.is_ok(), fits, "{pushes}");
            }
        }
    }

    /// Lane 0 leaves the loop. Then the loop jumps back twice.
    #[test]
    fn counted_iterations_leave_what_the_instructions_leave() {
        type Start = fn(&mut Flow, &Control) -> Result<(), crate::flow::FlowFault>;
        let starts: [Start; 3] = [Flow::loop_start, Flow::loop_start_no_al, Flow::loop_start_dx10];
        for (start, limit) in [(starts[0], None), (starts[1], None), (starts[2], None), (starts[2], Some(9))]
        {
            let mut setup = FlowSetup { dx10_loop_limit: limit, ..FlowSetup::new(64, Mask(0xf)) };
            setup.loop_constants[0] = LoopConstant(5 | 7 << 12 | 3 << 24);
            let mut flow = Flow::new(setup);
            start(&mut flow, &Control::to(9)).unwrap();
            let mut passed = flow.clone();
            flow.update_execute_mask(AluForm::ALU_BREAK, Mask(0b0001));
            flow.loop_end(&Control::to(1)).unwrap();
            flow.loop_end(&Control::to(1)).unwrap();
            passed.update_execute_mask(AluForm::ALU_BREAK, Mask(0b0001));
            passed.has_repeated(2);
            assert_eq!(passed, flow);
            passed.has_repeated(0);
            passed.continue_at(3);
            assert_eq!((passed.pc(), passed.loop_registers()), (3, flow.loop_registers()));
        }
    }
}
