//! Every control-flow instruction and every disputed rule of the divergence machine, one claim a test.
//!
//! The sources named are those of `flow.rs`: MAN is the R700 guide's PDF page; "compilers" means that Mesa and LLVM
//! emit code that works only so.

use reconverge_r700::flow::{
    AluForm, Condition, Control, Entry, Flow, FlowFault, FlowSetup, LoopConstant, StackUse, State,
};
use reconverge_simt::{FlowView, Issue, Lane, Mask, Why};

const ALL: Mask = Mask(0b1111);

fn setup() -> FlowSetup {
    FlowSetup::new(64, ALL)
}

/// Four valid lanes, all active, at address 0.
fn four() -> Flow {
    Flow::new(setup())
}

/// `if`: an ALU_PUSH_BEFORE whose predicate holds for `execute`.
fn push_if(flow: &mut Flow, execute: Mask) {
    let lanes = flow.alu_enter(AluForm::PushBefore, false).unwrap();
    flow.update_execute_mask(AluForm::PushBefore, lanes - execute);
    flow.alu_leave(AluForm::PushBefore).unwrap();
}

fn states(flow: &Flow) -> String {
    (0..4).map(|lane| flow.state(Lane(lane)).to_string()).collect::<Vec<_>>().join(" ")
}

/// A loop that all active lanes have entered; its LOOP_START stands at 0 and its LOOP_END at 20.
fn in_loop(mut flow: Flow) -> Flow {
    flow.loop_start_dx10(&Control::to(21)).unwrap();
    flow
}

// Conditions. MAN 3.6.3, p. 49.

#[test]
fn cond_active_passes_active_lanes() {
    let mut flow = four();
    push_if(&mut flow, Mask(0b0101));
    assert_eq!(flow.test(&Control::to(0)), Ok(Mask(0b0101)));
}

#[test]
fn cond_false_passes_nobody() {
    let control = Control { cond: Condition::False, whole_quad_mode: true, ..Control::to(0) };
    assert_eq!(four().test(&control), Ok(Mask::NONE));
}

#[test]
fn booleans_pass_all_active_lanes_or_none() {
    let flow = Flow::new(FlowSetup { booleans: 1 << 5, ..setup() });
    let test = |cond| flow.test(&Control { cond, ..Control::to(0) }).unwrap();
    assert_eq!(test(Condition::Bool(5)), ALL);
    assert_eq!(test(Condition::Bool(4)), Mask::NONE);
    assert_eq!(test(Condition::NotBool(4)), ALL);
    assert_eq!(test(Condition::NotBool(5)), Mask::NONE);
}

#[test]
fn valid_pixel_mode_leaves_killed_lanes_out() {
    let mut flow = four();
    flow.kill_lanes(Mask(0b0010));
    let control = Control { valid_pixel_mode: true, ..Control::to(0) };
    assert_eq!(flow.test(&control), Ok(Mask(0b1101)));
    assert_eq!(flow.test(&Control::to(0)), Ok(ALL), "killed lanes keep their active state (MAN p. 47)");
}

#[test]
fn whole_quad_mode_asks_for_any_lane_of_the_quad() {
    let mut flow = Flow::new(FlowSetup::new(64, Mask(0xff)));
    push_if(&mut flow, Mask(0b0100_0000));
    let control = Control { whole_quad_mode: true, ..Control::to(0) };
    assert_eq!(flow.test(&control), Ok(Mask(0xf0)));
}

#[test]
fn both_modes_trap_in_strict_mode_and_mean_valid_pixels_in_lenient_mode() {
    let control = Control { whole_quad_mode: true, valid_pixel_mode: true, ..Control::to(0) };
    assert_eq!(four().test(&control), Err(FlowFault::BothModes));
    let lenient = Flow::new(FlowSetup { strict: false, valid: Mask(0b0011), ..setup() });
    assert_eq!(lenient.test(&control), Ok(Mask(0b0011)));
}

#[test]
fn lanes_not_covered_at_launch_are_inactive_branch() {
    let flow = Flow::new(FlowSetup { valid: Mask(0b0011), ..setup() });
    assert_eq!(states(&flow), "A A IB IB");
    assert_eq!(flow.why(Lane(2)), Why::Uncovered);
}

// 0x00 NOP, END_OF_PROGRAM. MAN p. 37.

#[test]
fn nop_goes_on() {
    let mut flow = four();
    flow.nop();
    assert_eq!(flow.issue(), Some(Issue { pc: 1, mask: ALL }));
}

#[test]
fn end_of_program_stops_whatever_the_instruction_decided() {
    let mut flow = four();
    flow.jump(&Control { cond: Condition::False, ..Control::to(7) }).unwrap();
    flow.end_of_program();
    assert_eq!(flow.issue(), None);
    assert_eq!(flow.why(Lane(0)), Why::Exited);
}

// 0x04 LOOP_START, 0x05 LOOP_END. MAN p. 120.

/// Count 3, init 4, increment 2.
fn dx9() -> Flow {
    let mut setup = setup();
    setup.loop_constants[2] = LoopConstant(0x0200_4003);
    Flow::new(setup)
}

const I2: Control = Control { cf_const: 2, ..Control::to(21) };

#[test]
fn loop_start_runs_count_rounds_with_its_index() {
    let mut flow = dx9();
    flow.loop_start(&I2).unwrap();
    let mut indices = Vec::new();
    loop {
        assert_eq!(flow.pc(), 1);
        indices.push(flow.loop_index().unwrap());
        flow.loop_end(&Control { cf_const: 2, ..Control::to(1) }).unwrap();
        if flow.entries().is_empty() {
            break;
        }
    }
    assert_eq!(indices, [4, 6, 8]);
    assert_eq!((flow.pc(), flow.loop_index(), flow.active()), (2, None, ALL));
}

#[test]
fn a_loop_constant_increment_is_signed() {
    assert_eq!(LoopConstant(0xff00_4003).inc(), -1);
}

#[test]
fn loop_start_with_count_zero_jumps_pops_and_pushes_nothing() {
    let mut flow = four();
    push_if(&mut flow, Mask(0b0001));
    flow.loop_start(&Control::to(9).pop(1)).unwrap();
    assert_eq!((flow.pc(), states(&flow).as_str(), flow.entries().len()), (9, "A A A A", 0));
}

#[test]
fn loop_start_turns_lanes_outside_into_inactive_break_and_loop_end_restores_them() {
    let mut flow = four();
    push_if(&mut flow, Mask(0b0011));
    flow.loop_start_dx10(&Control::to(21)).unwrap();
    assert_eq!(states(&flow), "A A IX IX");
    assert_eq!(flow.why(Lane(2)), Why::Branch { depth: 1 });
    flow.loop_break(&Control::to(20)).unwrap();
    assert_eq!(flow.why(Lane(0)), Why::LoopDone);
    flow.loop_end(&Control::to(1)).unwrap();
    assert_eq!(states(&flow), "A A IB IB");
}

#[test]
fn loop_start_that_nobody_enters_is_jumped_over() {
    let mut flow = four();
    push_if(&mut flow, Mask::NONE);
    flow.loop_start_dx10(&Control::to(21)).unwrap();
    assert_eq!((flow.pc(), states(&flow).as_str(), flow.entries().len()), (21, "IB IB IB IB", 1));
}

#[test]
fn loop_end_wakes_continues_and_branches_but_not_breaks() {
    let mut flow = in_loop(four());
    flow.update_execute_mask(AluForm::Break, Mask(0b0001));
    flow.update_execute_mask(AluForm::Continue, Mask(0b0010));
    flow.update_execute_mask(AluForm::Alu, Mask(0b0100));
    assert_eq!(states(&flow), "IX IC IB A");
    flow.loop_end(&Control::to(1)).unwrap();
    assert_eq!((flow.pc(), states(&flow).as_str()), (1, "IX A A A"));
}

#[test]
fn loop_end_needs_its_own_entry_on_top() {
    let mut flow = in_loop(four());
    push_if(&mut flow, ALL);
    let fault = FlowFault::WrongEntry { op: "LOOP_END", wanted: "LOOP", found: "PUSH" };
    assert_eq!(flow.loop_end(&Control::to(1)), Err(fault));
    assert_eq!(four().loop_end(&Control::to(1)), Err(FlowFault::StackEmpty { op: "LOOP_END" }));
}

#[test]
fn loop_end_breaks_lanes_that_fail_its_condition() {
    let mut flow = in_loop(four());
    flow.loop_end(&Control { cond: Condition::Bool(0), ..Control::to(1) }).unwrap();
    assert_eq!((flow.entries().len(), flow.active()), (0, ALL));
}

// 0x07 LOOP_START_NO_AL.

#[test]
fn loop_start_no_al_counts_and_keeps_the_outer_index() {
    let mut flow = dx9();
    flow.loop_start(&I2).unwrap();
    flow.loop_start_no_al(&I2).unwrap();
    for left in [2, 1, 0] {
        assert_eq!(flow.loop_index(), Some(4));
        flow.loop_end(&Control { cf_const: 2, ..Control::to(2) }).unwrap();
        assert_eq!(flow.entries().len(), if left > 0 { 2 } else { 1 });
    }
}

// 0x06 LOOP_START_DX10. D4.

#[test]
fn dx10_loop_has_no_count() {
    let mut flow = four();
    flow.loop_start_dx10(&I2).unwrap();
    for _ in 0..5000 {
        flow.loop_end(&Control { cf_const: 2, ..Control::to(1) }).unwrap();
    }
    assert_eq!((flow.pc(), flow.active()), (1, ALL));
}

// 0x09 LOOP_BREAK, 0x08 LOOP_CONTINUE. Compilers; test of random programs.

#[test]
fn loop_break_inside_an_if_goes_on_while_the_else_lanes_wait() {
    let mut flow = in_loop(four());
    push_if(&mut flow, Mask(0b0011));
    let here = flow.pc();
    flow.loop_break(&Control::to(20)).unwrap();
    assert_eq!((flow.pc(), states(&flow).as_str(), flow.entries().len()), (here + 1, "IX IX IB IB", 2));
}

#[test]
fn loop_break_of_the_last_lanes_unwinds_and_jumps_to_the_loop_end() {
    let mut flow = in_loop(four());
    push_if(&mut flow, ALL);
    push_if(&mut flow, ALL);
    flow.loop_break(&Control::to(20)).unwrap();
    assert_eq!((flow.pc(), flow.entries().len()), (20, 1));
    assert!(matches!(flow.entries()[0], Entry::Loop { .. }));
}

#[test]
fn loop_continue_waits_for_the_next_round() {
    let mut flow = in_loop(four());
    push_if(&mut flow, Mask(0b0001));
    flow.loop_continue(&Control::to(20)).unwrap();
    assert_eq!((flow.state(Lane(0)), flow.why(Lane(0))), (State::InactiveContinue, Why::LoopDone));
    flow.pop(&Control::to(0).pop(1)).unwrap();
    assert_eq!(states(&flow), "IC A A A");
    flow.loop_end(&Control::to(1)).unwrap();
    assert_eq!(states(&flow), "A A A A");
}

#[test]
fn break_outside_a_loop_is_a_fault() {
    let fault = FlowFault::OutsideLoop { op: "LOOP_BREAK" };
    assert_eq!(four().loop_break(&Control::to(20)), Err(fault.clone()));
    let mut flow = in_loop(four());
    flow.call(&Control::to(5)).unwrap();
    assert_eq!(flow.loop_break(&Control::to(20)), Err(fault), "the loop is the caller's");
}

// 0x0A JUMP. D5.

#[test]
fn jump_pops_only_when_it_jumps() {
    let mut flow = four();
    push_if(&mut flow, Mask(0b0001));
    let stays = flow.pc() + 1;
    flow.jump(&Control::to(9).pop(1)).unwrap();
    assert_eq!((flow.pc(), flow.entries().len()), (stays, 1));

    let mut flow = four();
    push_if(&mut flow, Mask::NONE);
    flow.jump(&Control::to(9).pop(1)).unwrap();
    assert_eq!((flow.pc(), flow.entries().len(), flow.active()), (9, 0, ALL));
}

// 0x0B PUSH. MAN p. 53, D6.

#[test]
fn push_saves_the_active_mask_and_keeps_those_that_pass() {
    let mut flow = four();
    flow.kill_lanes(Mask(0b1000));
    flow.push_(&Control { valid_pixel_mode: true, ..Control::to(1) }).unwrap();
    assert_eq!(states(&flow), "A A A IB");
    assert_eq!(flow.entries(), [Entry::Branch { active: ALL, whole_quad: false }]);
}

#[test]
fn push_without_a_passing_lane_pushes_nothing_pops_and_jumps() {
    let mut flow = four();
    push_if(&mut flow, Mask::NONE);
    flow.push_(&Control::to(9).pop(1)).unwrap();
    assert_eq!((flow.pc(), flow.entries().len(), flow.active()), (9, 0, ALL));
}

#[test]
fn alu_push_before_pushes_even_when_nobody_is_active() {
    let mut flow = four();
    push_if(&mut flow, Mask::NONE);
    push_if(&mut flow, ALL);
    assert_eq!((flow.entries().len(), flow.pc()), (2, 2));
}

#[test]
fn whole_quad_mode_wakes_inactive_branch_lanes_only() {
    let mut flow = in_loop(four());
    flow.update_execute_mask(AluForm::Break, Mask(0b0001));
    flow.update_execute_mask(AluForm::Alu, Mask(0b0010));
    flow.push_(&Control { whole_quad_mode: true, ..Control::to(1) }).unwrap();
    assert_eq!(states(&flow), "IX A A A");
}

// 0x0C PUSH_ELSE. D20.

#[test]
fn push_else_keeps_those_that_fail_and_jumps_when_none_does() {
    let mut flow = four();
    flow.push_else(&Control::to(9)).unwrap();
    assert_eq!((flow.pc(), states(&flow).as_str(), flow.entries().len()), (9, "IB IB IB IB", 1));
    let mut flow = four();
    flow.push_else(&Control { cond: Condition::Bool(0), ..Control::to(9) }).unwrap();
    assert_eq!((flow.pc(), flow.active(), flow.entries().len()), (1, ALL, 1));
}

// 0x0D ELSE. D5.

#[test]
fn else_wakes_only_the_innermost_pixels() {
    let mut flow = four();
    push_if(&mut flow, Mask(0b0111));
    push_if(&mut flow, Mask(0b0001));
    flow.else_(&Control::to(9).pop(1)).unwrap();
    assert_eq!(states(&flow), "IB A A IB");
    assert_eq!(flow.entries().len(), 2, "nothing is popped without a jump");
}

#[test]
fn else_without_a_lane_left_pops_and_jumps() {
    let mut flow = four();
    push_if(&mut flow, ALL);
    flow.else_(&Control::to(9).pop(1)).unwrap();
    assert_eq!((flow.pc(), flow.active(), flow.entries().len()), (9, ALL, 0));
}

#[test]
fn else_leaves_breaks_and_continues_alone() {
    let mut flow = in_loop(four());
    push_if(&mut flow, Mask(0b0111));
    flow.update_execute_mask(AluForm::Break, Mask(0b0001));
    flow.update_execute_mask(AluForm::Continue, Mask(0b0010));
    flow.else_(&Control::to(9)).unwrap();
    assert_eq!(states(&flow), "IX IC IB A");
}

#[test]
fn else_in_valid_pixel_mode_does_not_wake_killed_lanes() {
    let mut flow = four();
    push_if(&mut flow, Mask(0b0001));
    flow.kill_lanes(Mask(0b1000));
    flow.else_(&Control { valid_pixel_mode: true, ..Control::to(9) }).unwrap();
    assert_eq!(states(&flow), "IB A A IB");
}

#[test]
fn else_with_a_false_boolean_flips_nobody() {
    let mut flow = four();
    push_if(&mut flow, Mask(0b0001));
    flow.else_(&Control { cond: Condition::Bool(3), ..Control::to(9) }).unwrap();
    assert_eq!(states(&flow), "A IB IB IB");
}

// 0x0E POP. MAN p. 54, D3.

#[test]
fn pop_takes_the_last_of_its_masks() {
    let mut flow = four();
    push_if(&mut flow, Mask(0b0011));
    push_if(&mut flow, Mask(0b0001));
    flow.pop(&Control::to(0).pop(2)).unwrap();
    assert_eq!((states(&flow).as_str(), flow.entries().len()), ("A A A A", 0));
}

#[test]
fn pop_keeps_breaks_and_continues() {
    for form in [AluForm::Alu, AluForm::PopAfter] {
        let mut flow = in_loop(four());
        push_if(&mut flow, ALL);
        flow.update_execute_mask(AluForm::Break, Mask(0b0001));
        flow.update_execute_mask(AluForm::Continue, Mask(0b0010));
        // Once as the instruction, once as the end of a clause.
        match form {
            AluForm::Alu => flow.pop(&Control::to(0).pop(1)).unwrap(),
            _ => flow.alu_leave(form).unwrap(),
        }
        assert_eq!((states(&flow).as_str(), flow.active()), ("IX IC A A", Mask(0b1100)));
    }
}

#[test]
fn pop_in_valid_pixel_mode_leaves_killed_lanes_off() {
    let mut flow = four();
    push_if(&mut flow, Mask(0b0001));
    flow.kill_lanes(Mask(0b1000));
    flow.pop(&Control { valid_pixel_mode: true, ..Control::to(0).pop(1) }).unwrap();
    assert_eq!(states(&flow), "A A A IB");
}

#[test]
fn pop_of_an_empty_stack_or_a_loop_is_a_fault_and_changes_nothing() {
    let mut flow = four();
    push_if(&mut flow, Mask(0b0001));
    let before = flow.clone();
    assert_eq!(flow.pop(&Control::to(0).pop(2)), Err(FlowFault::StackEmpty { op: "POP" }));
    assert_eq!(flow, before);
    let mut flow = in_loop(four());
    let fault = FlowFault::WrongEntry { op: "POP", wanted: "PUSH", found: "LOOP" };
    assert_eq!(flow.pop(&Control::to(0).pop(1)), Err(fault));
}

// 0x0F POP_JUMP, 0x10 POP_PUSH, 0x11 POP_PUSH_ELSE.

#[test]
fn pop_jump_pops_before_it_asks() {
    let mut flow = four();
    push_if(&mut flow, Mask::NONE);
    let here = flow.pc();
    flow.pop_jump(&Control::to(9).pop(1)).unwrap();
    assert_eq!((flow.pc(), flow.entries().len()), (here + 1, 0));
}

#[test]
fn pop_push_saves_the_restored_mask() {
    let mut flow = four();
    push_if(&mut flow, Mask(0b0001));
    flow.pop_push(&Control::to(9).pop(1)).unwrap();
    assert_eq!(flow.entries(), [Entry::Branch { active: ALL, whole_quad: false }]);
}

#[test]
fn pop_push_else_pops_then_inverts() {
    let mut flow = four();
    push_if(&mut flow, Mask(0b0001));
    flow.pop_push_else(&Control { cond: Condition::False, ..Control::to(9).pop(1) }).unwrap();
    assert_eq!((flow.active(), flow.entries().len()), (ALL, 1));
}

// 0x12 CALL, 0x14 RETURN. MAN p. 53.

#[test]
fn call_and_return_come_back_behind_the_call() {
    let mut flow = four();
    flow.nop();
    flow.call(&Control { call_count: 1, ..Control::to(6) }).unwrap();
    assert_eq!((flow.pc(), flow.call_depth()), (6, 1));
    flow.return_(&Control::to(0)).unwrap();
    assert_eq!((flow.pc(), flow.call_depth(), flow.entries().len()), (2, 0, 0));
}

#[test]
fn call_too_deep_is_passed_over() {
    let mut flow = four();
    for _ in 0..32 {
        flow.call(&Control { call_count: 1, ..Control::to(6) }).unwrap();
        assert_eq!(flow.pc(), 6);
    }
    flow.call(&Control { call_count: 1, ..Control::to(9) }).unwrap();
    assert_eq!((flow.pc(), flow.call_depth()), (7, 32));
}

#[test]
fn call_that_nobody_wants_is_passed_over() {
    let mut flow = four();
    flow.call(&Control { cond: Condition::False, ..Control::to(6) }).unwrap();
    assert_eq!((flow.pc(), flow.entries().len()), (1, 0));
}

#[test]
fn call_with_pop_count_is_a_strict_fault() {
    assert_eq!(four().call(&Control::to(6).pop(1)), Err(FlowFault::CallPops { pop_count: 1 }));
}

#[test]
fn return_waits_until_every_active_lane_passes() {
    let mut flow = four();
    flow.call(&Control::to(6)).unwrap();
    flow.return_(&Control { cond: Condition::Bool(0), ..Control::to(0) }).unwrap();
    assert_eq!(flow.pc(), 7);
    push_if(&mut flow, Mask::NONE);
    let fault = FlowFault::WrongEntry { op: "RETURN", wanted: "CALL", found: "PUSH" };
    assert_eq!(flow.return_(&Control::to(0)), Err(fault), "without active lanes it is vacuously true");
}

// 0x13 CALL_FS. MAN p. 37.

#[test]
fn call_fs_runs_the_hosts_fetch_program() {
    let mut flow = Flow::new(FlowSetup { fetch_start: Some(40), ..setup() });
    flow.call_fs(&Control::to(0)).unwrap();
    assert_eq!((flow.pc(), flow.in_fetch_program()), (40, true));
    assert_eq!(flow.call_fs(&Control::to(0)), Err(FlowFault::NestedFetchProgram));
    flow.return_(&Control::to(0)).unwrap();
    assert_eq!((flow.pc(), flow.in_fetch_program()), (1, false));
}

#[test]
fn call_fs_without_a_fetch_program_returns_at_once_but_needs_stack() {
    let mut flow = four();
    flow.call_fs(&Control::to(0)).unwrap();
    assert_eq!((flow.pc(), flow.entries().len(), flow.stack_needed()), (1, 0, 1));
}

// 0x18 KILL. MAN p. 47, D30.

#[test]
fn kill_clears_valid_and_keeps_active() {
    let mut flow = four();
    push_if(&mut flow, Mask(0b0001));
    flow.kill(&Control::to(9)).unwrap();
    assert_eq!((flow.valid(), flow.active(), flow.pc()), (Mask(0b1110), Mask(0b0001), 2));
}

#[test]
fn kill_jumps_when_nobody_is_valid() {
    let mut flow = four();
    flow.kill(&Control::to(9)).unwrap();
    assert_eq!((flow.valid(), flow.pc()), (Mask::NONE, 9));
}

// ALU forms. D7 and the manual's CF_ALU chapter.

#[test]
fn a_predicate_that_skips_means_branch_continue_or_break_by_the_form() {
    for (form, state) in [
        (AluForm::Alu, State::InactiveBranch),
        (AluForm::PushBefore, State::InactiveBranch),
        (AluForm::PopAfter, State::InactiveBranch),
        (AluForm::Pop2After, State::InactiveBranch),
        (AluForm::Continue, State::InactiveContinue),
        (AluForm::Break, State::InactiveBreak),
        (AluForm::ElseAfter, State::InactiveBranch),
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
    flow.update_execute_mask(AluForm::Break, Mask(0b0001));
    flow.update_execute_mask(AluForm::Continue, ALL);
    assert_eq!(states(&flow), "IX IC IC IC");
}

#[test]
fn alu_pop_after_and_pop2_after_pop_behind_the_clause() {
    for (form, left) in [(AluForm::PopAfter, 1), (AluForm::Pop2After, 0)] {
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
    flow.alu_enter(AluForm::ElseAfter, false).unwrap();
    flow.alu_leave(AluForm::ElseAfter).unwrap();
    assert_eq!((states(&flow).as_str(), flow.pc(), flow.entries().len()), ("IB IB IB IB", 2, 1));
}

#[test]
fn alu_break_outside_a_loop_is_a_strict_fault() {
    let fault = FlowFault::OutsideLoop { op: "ALU_BREAK" };
    assert_eq!(four().alu_enter(AluForm::Break, false), Err(fault));
}

#[test]
fn a_whole_quad_clause_runs_every_lane_of_a_quad_that_has_an_active_one() {
    let mut flow = Flow::new(FlowSetup::new(64, Mask(0xff)));
    push_if(&mut flow, Mask(0b0000_0010));
    assert_eq!(flow.alu_enter(AluForm::Alu, true), Ok(Mask(0b1111)));
}

// The stack. MAN p. 51; the first push counts three: Mesa, LLVM.

#[test]
fn the_stack_is_counted_in_entries_and_subentries() {
    let mut flow = four();
    assert_eq!(flow.stack_use(), StackUse { full: 0, sub: 0 });
    push_if(&mut flow, ALL);
    assert_eq!(flow.stack_use(), StackUse { full: 0, sub: 3 });
    push_if(&mut flow, ALL);
    assert_eq!(flow.stack_use(), StackUse { full: 0, sub: 4 });
    flow.loop_start_dx10(&Control::to(9)).unwrap();
    assert_eq!(flow.stack_use(), StackUse { full: 1, sub: 4 });
    flow.push_(&Control { whole_quad_mode: true, ..Control::to(9) }).unwrap();
    assert_eq!(flow.stack_use(), StackUse { full: 2, sub: 4 });
    flow.call(&Control::to(9)).unwrap();
    assert_eq!(flow.stack_use(), StackUse { full: 2, sub: 5 });
    assert_eq!(flow.stack_needed(), 4);
}

#[test]
fn an_entry_holds_eight_subentries_on_narrow_chips_and_a_call_takes_two_on_the_narrowest() {
    let mut flow = Flow::new(FlowSetup::new(16, ALL));
    flow.call(&Control::to(9)).unwrap();
    assert_eq!(flow.stack_use(), StackUse { full: 0, sub: 2 });
    for (width, entries) in [(16, 8), (32, 8), (64, 4)] {
        assert_eq!(Flow::new(FlowSetup::new(width, ALL)).subentries_an_entry(), entries);
    }
}

#[test]
fn overflow_is_a_strict_trap_that_says_what_is_needed() {
    let mut setup = FlowSetup { stack_size: Some(1), ..setup() };
    let mut flow = Flow::new(setup.clone());
    push_if(&mut flow, ALL);
    push_if(&mut flow, ALL);
    let before = flow.clone();
    match flow.alu_enter(AluForm::PushBefore, false) {
        Err(FlowFault::StackOverflow { needed, declared, .. }) => assert_eq!((needed, declared), (2, 1)),
        other => panic!("{other:?}"),
    }
    assert_eq!(flow.entries(), before.entries());
    setup.strict = false;
    let mut flow = Flow::new(setup);
    for _ in 0..3 {
        push_if(&mut flow, ALL);
    }
    assert_eq!((flow.entries().len(), flow.stack_needed()), (3, 2));
}

// The view.

#[test]
fn why_names_the_construct_that_switched_a_lane_off() {
    let mut flow = four();
    push_if(&mut flow, Mask(0b0111));
    push_if(&mut flow, Mask(0b0011));
    push_if(&mut flow, Mask(0b0001));
    let why: Vec<Why> = (0..4).map(|lane| flow.why(Lane(lane))).collect();
    let branch = |depth| Why::Branch { depth };
    assert_eq!(why, [Why::Active, branch(0), branch(1), branch(2)]);
}

#[test]
fn stack_rows_come_innermost_first_with_trip_counts() {
    let mut flow = dx9();
    flow.loop_start(&I2).unwrap();
    push_if(&mut flow, Mask(0b0011));
    flow.call(&Control::to(9)).unwrap();
    let rows = FlowView::stack(&flow);
    let kinds: Vec<_> = rows.iter().map(|row| (row.kind, row.pc, row.mask, row.count)).collect();
    assert_eq!(
        kinds,
        [
            ("CALL", Some(3), None, Some(0)),
            ("PUSH", None, Some(ALL), None),
            ("LOOP", None, Some(ALL), Some(3)),
        ]
    );
}
