//! Tests the effects of ALU clauses on the flow.

use crate::*;

// ALU forms. D7 and the manual's CF_ALU chapter.

#[test]
fn a_predicate_that_skips_means_branch_continue_or_break_by_the_form() {
    for (form, state) in [
        (AluForm::ALU, State::InactiveBranch),
        (AluForm::ALU_PUSH_BEFORE, State::InactiveBranch),
        (AluForm::ALU_POP_AFTER, State::InactiveBranch),
        (AluForm::ALU_POP2_AFTER, State::InactiveBranch),
        (AluForm::ALU_CONTINUE, State::InactiveContinue),
        (AluForm::ALU_BREAK, State::InactiveBreak),
        (AluForm::ALU_ELSE_AFTER, State::InactiveBranch),
    ] {
        let mut flow = in_loop(four());
        flow.alu_enter(form, false).unwrap();
        flow.update_execute_mask(form, Mask(0b0001));
        assert_eq!(flow.state(Lane(0)), state, "{}", form.name());
        assert_eq!(flow.active(), Mask(0b1110));
    }
}

#[test]
fn a_predicate_never_changes_lanes_that_are_not_active() {
    let mut flow = in_loop(four());
    flow.update_execute_mask(AluForm::ALU_BREAK, Mask(0b0001));
    flow.update_execute_mask(AluForm::ALU_CONTINUE, ALL);
    assert_eq!(states(&flow), "IX IC IC IC");
}

#[test]
fn alu_pop_after_and_pop2_after_pop_behind_the_clause() {
    for (form, left) in [(AluForm::ALU_POP_AFTER, 1), (AluForm::ALU_POP2_AFTER, 0)] {
        let mut flow = four();
        push_if(&mut flow, Mask(0b0011));
        push_if(&mut flow, Mask(0b0001));
        assert_eq!(flow.alu_enter(form, false), Ok(Mask(0b0001)));
        flow.alu_leave(form).unwrap();
        assert_eq!((flow.entries().len(), flow.pc()), (left, 3));
        assert_eq!(flow.active(), if left == 1 { Mask(0b0011) } else { ALL });
    }
}

#[test]
fn alu_else_after_flips_and_never_jumps() {
    let mut flow = four();
    push_if(&mut flow, ALL);
    flow.alu_enter(AluForm::ALU_ELSE_AFTER, false).unwrap();
    flow.alu_leave(AluForm::ALU_ELSE_AFTER).unwrap();
    assert_eq!((states(&flow).as_str(), flow.pc(), flow.entries().len()), ("IB IB IB IB", 2, 1));
}

#[test]
fn alu_break_outside_a_loop_is_a_strict_fault() {
    let fault = FlowFault::OutsideLoop { op: "ALU_BREAK" };
    assert_eq!(four().alu_enter(AluForm::ALU_BREAK, false), Err(fault));
}

#[test]
fn a_whole_quad_clause_runs_every_lane_of_a_quad_that_has_an_active_one() {
    let mut flow = Flow::new(FlowSetup::new(64, Mask(0xff)));
    push_if(&mut flow, Mask(0b0000_0010));
    assert_eq!(flow.alu_enter(AluForm::ALU, true), Ok(Mask(0b1111)));
}

#[test]
fn alu_continue_outside_a_loop_or_in_a_subroutine_of_one_is_a_strict_fault() {
    let fault = FlowFault::OutsideLoop { op: "ALU_CONTINUE" };
    assert_eq!(four().alu_enter(AluForm::ALU_CONTINUE, false), Err(fault.clone()));
    let mut flow = in_loop(four());
    flow.call(&Control::to(5)).unwrap();
    assert_eq!(flow.alu_enter(AluForm::ALU_CONTINUE, false), Err(fault));
}

#[test]
fn a_clause_runs_killed_lanes_too() {
    let mut flow = four();
    flow.kill_lanes(Mask(0b0001));
    assert_eq!(
        flow.alu_enter(AluForm::ALU, false),
        Ok(ALL),
        "only effects outside are suppressed (MAN p. 47)"
    );
}

#[test]
fn every_clause_goes_on_to_the_next_instruction() {
    for form in [
        AluForm::ALU,
        AluForm::ALU_PUSH_BEFORE,
        AluForm::ALU_POP_AFTER,
        AluForm::ALU_POP2_AFTER,
        AluForm::ALU_CONTINUE,
        AluForm::ALU_BREAK,
        AluForm::ALU_ELSE_AFTER,
    ] {
        let mut flow = in_loop(four());
        push_if(&mut flow, ALL);
        push_if(&mut flow, Mask::NONE);
        let here = flow.pc();
        flow.alu_enter(form, false).unwrap();
        flow.alu_leave(form).unwrap();
        assert_eq!(flow.pc(), here + 1, "{}", form.name());
    }
}

#[test]
fn a_clause_that_pops_needs_branch_entries() {
    for (form, op) in [(AluForm::ALU_POP_AFTER, "ALU_POP_AFTER"), (AluForm::ALU_POP2_AFTER, "ALU_POP2_AFTER")]
    {
        assert_eq!(four().alu_leave(form), Err(FlowFault::StackEmpty { op }));
        let fault = FlowFault::WrongEntry { op, wanted: "PUSH", found: "LOOP" };
        assert_eq!(in_loop(four()).alu_leave(form), Err(fault));
    }
}

#[test]
fn alu_push_before_saves_the_lanes_before_the_predicate() {
    let mut flow = four();
    push_if(&mut flow, Mask(0b0001));
    assert_eq!(flow.entries(), [Entry::Branch { active: ALL, whole_quad: false }]);
    let mut flow = four();
    flow.alu_enter(AluForm::ALU_PUSH_BEFORE, true).unwrap();
    assert_eq!(flow.entries(), [Entry::Branch { active: ALL, whole_quad: true }]);
}

#[test]
fn an_execute_mask_parts_lanes_where_some_stop_and_some_go_on() {
    for (skip, parted) in [(Mask::NONE, false), (Mask(0b0001), true), (ALL, false), (!ALL, false)] {
        assert_eq!(four().update_execute_mask(AluForm::ALU, skip), parted, "{skip:?}");
    }
}
