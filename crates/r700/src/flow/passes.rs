//! The interface of compiled regions to the flow state. The resulting state equals that of running the instructions one
//! by one.

use std::iter::repeat_n;

use reconverge_simt::Mask;

use super::{Entry, Flow, LoopKind, StackUse};
use crate::flow::state::Cost;

impl Flow {
    /// Returns how many more iterations the innermost loop can start; `u32::MAX` if nothing limits it.
    ///
    /// Returns `None` unless an iteration of the loop begins here and every lane is active or has left the loop.
    #[inline]
    pub(crate) fn rounds(&self) -> Option<u32> {
        let Some(Entry::Loop { body, .. }) = self.stack.last() else { return None };
        let states = &self.states;
        // The sets are disjoint. If every lane is in one of these two, no lane is in IC.
        if *body != self.pc || states.inactive_break != !states.active {
            return None;
        }
        let registers = self.registers?;
        Some(match registers.kind {
            LoopKind::Dx10 if registers.trip == 0 => u32::MAX,
            LoopKind::Dx9 | LoopKind::Repeat | LoopKind::Dx10 => registers.trip.saturating_sub(1),
        })
    }

    /// Returns whether LOOP_BREAK and LOOP_CONTINUE are inside a loop here.
    pub(crate) fn is_in_loop(&self) -> bool {
        self.loop_entry().is_some()
    }

    /// Returns the number of stack entries in use if `pushes` more branches were pushed.
    fn needed_with(&self, pushes: u32) -> u32 {
        let costs = self.stack.iter().map(Entry::cost).chain(repeat_n(Cost::Push, pushes as usize));
        StackUse::of(costs, self.setup.wave_width).entries(self.subentries_an_entry())
    }

    /// Returns whether `pushes` more branches can be pushed.
    pub(crate) fn has_room_for(&self, pushes: u32) -> bool {
        self.needed_with(pushes) <= self.stack_limit()
    }

    /// Records that `pushes` branches were pushed and popped again.
    pub(crate) fn has_held(&mut self, pushes: u32) {
        self.deepest = self.deepest.max(self.needed_with(pushes));
    }

    /// Continues at `pc` with the lanes `active`, after LOOP_END has jumped back `rounds` times and the lanes `broke`
    /// have left the loop.
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
            // 0 means no limit.
            LoopKind::Dx10 => registers.trip = registers.trip.saturating_sub(rounds),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::flow::{AluForm, Control, FlowSetup, LoopConstant};

    /// Returns all 64 lanes in the first iteration of a loop whose body begins at 1.
    fn in_loop(limit: Option<u32>) -> Flow {
        let setup = FlowSetup { dx10_loop_limit: limit, ..FlowSetup::new(64, !Mask::NONE) };
        let mut flow = Flow::new(setup);
        flow.loop_start_dx10(&Control::to(9)).unwrap();
        flow
    }

    #[test]
    fn a_pass_begins_at_the_body_of_its_loop() {
        let mut flow = in_loop(None);
        assert_eq!(flow.rounds(), Some(u32::MAX));
        flow.alu_enter(AluForm::ALU, false).unwrap();
        flow.alu_leave(AluForm::ALU).unwrap();
        assert_eq!((flow.pc(), flow.rounds()), (2, None));
        // An iteration does not begin either if the innermost entry is a branch.
        let mut flow = in_loop(None);
        flow.push_(&Control::to(9)).unwrap();
        assert_eq!(flow.rounds(), None);
    }

    #[test]
    fn a_pass_begins_with_every_lane_active_or_out_of_the_loop() {
        for (form, rounds) in
            [(AluForm::ALU_BREAK, Some(u32::MAX)), (AluForm::ALU_CONTINUE, None), (AluForm::ALU, None)]
        {
            let mut flow = in_loop(None);
            flow.update_execute_mask(form, Mask(0b0101));
            assert_eq!(flow.rounds(), rounds, "{form:?}");
        }
    }

    #[test]
    fn the_last_round_does_not_lead_back() {
        for (limit, rounds) in [(1, 0), (2, 1), (7, 6)] {
            assert_eq!(in_loop(Some(limit)).rounds(), Some(rounds));
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

    /// With 64 lanes, an entry has four subentries, and the pushes need two more.
    #[test]
    fn branches_of_a_pass_need_the_stack_that_pushes_need() {
        let mut flow = Flow::new(FlowSetup { stack_size: Some(2), ..FlowSetup::new(64, Mask(0xf)) });
        flow.push_(&Control::to(9)).unwrap();
        assert_eq!((flow.has_room_for(5), flow.has_room_for(6)), (true, false));
        flow.has_held(5);
        assert_eq!(flow.stack_needed(), 2);
        flow.has_held(0);
        assert_eq!(flow.stack_needed(), 2);
        // Without STACK_SIZE, and in lenient mode, the limit is the largest size that can be declared.
        for (stack_size, strict) in [(None, true), (Some(2), false)] {
            let flow = Flow::new(FlowSetup { stack_size, strict, ..FlowSetup::new(64, Mask(0xf)) });
            assert_eq!((flow.has_room_for(1018), flow.has_room_for(1019)), (true, false));
        }
    }

    /// Lane 0 leaves, and the loop jumps back twice.
    #[test]
    fn rounds_of_a_pass_leave_what_the_instructions_leave() {
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
            passed.stay(1, Mask(0b1110), Mask(0b0001), 2);
            assert_eq!(passed, flow);
            passed.stay(3, Mask(0b1110), Mask::NONE, 0);
            assert_eq!((passed.pc(), passed.loop_registers()), (3, flow.loop_registers()));
        }
    }
}
