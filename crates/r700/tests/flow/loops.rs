//! Tests the three loops, LOOP_BREAK and LOOP_CONTINUE.

use crate::*;

// 0x04 LOOP_START, 0x05 LOOP_END. MAN p. 120.

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
    assert_eq!(flow.why(Lane(0)), Why::Break);
    flow.loop_end(&Control::to(2)).unwrap();
    assert_eq!(states(&flow), "A A IB IB");
}

#[test]
fn loop_start_that_no_lane_enters_is_jumped_over() {
    let mut flow = four();
    push_if(&mut flow, Mask::NONE);
    flow.loop_start_dx10(&Control::to(21)).unwrap();
    assert_eq!((flow.pc(), states(&flow).as_str(), flow.entries().len()), (21, "IB IB IB IB", 1));
}

#[test]
fn loop_end_wakes_continues_and_branches_but_not_breaks() {
    let mut flow = in_loop(four());
    flow.update_execute_mask(AluForm::ALU_BREAK, Mask(0b0001));
    flow.update_execute_mask(AluForm::ALU_CONTINUE, Mask(0b0010));
    flow.update_execute_mask(AluForm::ALU, Mask(0b0100));
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
fn a_loop_end_that_does_not_lead_back_behind_its_loop_start_is_a_fault_in_strict_mode() {
    for round in 0..2 {
        let mut strict = in_loop(four());
        if round > 0 {
            strict.loop_break(&Control::to(20)).unwrap();
        }
        let fault = strict.loop_end(&Control::to(2)).unwrap_err();
        assert_eq!(fault.to_string(), "LOOP_END leads to 2, but its LOOP_START leads to 1");
        assert_eq!(strict.loop_end(&Control::to(1)), Ok(()));
    }
    let mut lenient = in_loop(Flow::new(FlowSetup { strict: false, ..setup() }));
    lenient.loop_end(&Control::to(2)).unwrap();
    assert_eq!(lenient.pc(), 2);
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

#[test]
fn a_dx10_loop_ends_after_as_many_rounds_as_its_limit() {
    for (limit, rounds) in [(1, 1), (2, 2), (5, 5)] {
        let mut flow = Flow::new(FlowSetup { dx10_loop_limit: Some(limit), ..setup() });
        flow.loop_start_dx10(&Control::to(21)).unwrap();
        let mut seen = 0;
        while !flow.entries().is_empty() {
            seen += 1;
            assert_eq!(flow.loop_registers().map(|registers| registers.trip), Some(limit + 1 - seen));
            assert_eq!(FlowView::stack(&flow)[0].count, Some(i64::from(limit + 1 - seen)));
            flow.loop_end(&Control::to(1)).unwrap();
        }
        assert_eq!((seen, flow.pc(), flow.loop_registers()), (rounds, 2, None));
    }
    let mut unlimited = in_loop(four());
    assert_eq!(FlowView::stack(&unlimited)[0].count, None);
    unlimited.loop_end(&Control::to(1)).unwrap();
    assert_eq!(unlimited.entries().len(), 1);
}

#[test]
fn a_lane_that_left_the_loop_does_not_come_back_with_its_quad() {
    let mut flow = in_loop(four());
    flow.update_execute_mask(AluForm::ALU_BREAK, Mask(0b0001));
    flow.loop_continue(&whole_quads(Control { cond: Condition::Bool(0), ..Control::to(20) })).unwrap();
    assert_eq!(states(&flow), "IX A A A", "no lane passes");
    flow.loop_continue(&whole_quads(Control::to(20))).unwrap();
    assert_eq!(states(&flow), "IX IC IC IC", "the whole quad passes, without the lane in inactive-break");
    flow.loop_end(&Control::to(1)).unwrap();
    assert_eq!(states(&flow), "IX A A A");
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
    assert_eq!((flow.state(Lane(0)), flow.why(Lane(0))), (State::InactiveContinue, Why::Continue));
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

// Modes and conditions of loops.

#[test]
fn loop_start_in_valid_pixel_mode_leaves_killed_lanes_out_until_the_loop_ends() {
    let mut flow = four();
    flow.kill_lanes(Mask(0b1000));
    flow.loop_start_dx10(&valid_pixels(Control::to(21))).unwrap();
    assert_eq!(states(&flow), "A A A IX");
    flow.loop_break(&Control::to(20)).unwrap();
    flow.loop_end(&Control::to(1)).unwrap();
    assert_eq!(states(&flow), "A A A A");
}

#[test]
fn loop_start_in_whole_quad_mode_takes_inactive_branch_lanes_in_until_the_loop_ends() {
    let mut flow = four();
    push_if(&mut flow, Mask(0b0001));
    flow.loop_start_dx10(&whole_quads(Control::to(21))).unwrap();
    assert_eq!(states(&flow), "A A A A");
    flow.loop_break(&Control::to(20)).unwrap();
    flow.loop_end(&Control::to(2)).unwrap();
    assert_eq!(states(&flow), "A IB IB IB");
}

#[test]
fn each_loop_start_with_a_false_boolean_is_jumped_over() {
    let control = Control { cond: Condition::Bool(0), ..I2 };
    for start in [Flow::loop_start, Flow::loop_start_no_al, Flow::loop_start_dx10] {
        let mut flow = dx9();
        start(&mut flow, &control).unwrap();
        assert_eq!((flow.pc(), flow.entries().len(), flow.active()), (21, 0, ALL));
    }
}

#[test]
fn loop_start_no_al_with_count_zero_is_jumped_over() {
    let mut flow = four();
    flow.loop_start_no_al(&Control::to(9)).unwrap();
    assert_eq!((flow.pc(), flow.entries().len()), (9, 0));
}

#[test]
fn loop_start_does_not_take_lanes_in_that_left_the_round_around_it() {
    let mut flow = in_loop(four());
    flow.update_execute_mask(AluForm::ALU_CONTINUE, Mask(0b0001));
    flow.loop_start_dx10(&whole_quads(Control::to(15))).unwrap();
    assert_eq!(states(&flow), "IX A A A");
    flow.loop_break(&Control::to(14)).unwrap();
    flow.loop_end(&Control::to(2)).unwrap();
    assert_eq!(states(&flow), "IC A A A", "the loop around it has its states back");
}

#[test]
fn loop_end_ignores_pop_count() {
    let mut flow = in_loop(four());
    flow.loop_end(&Control::to(1).pop(7)).unwrap();
    assert_eq!((flow.pc(), flow.entries().len()), (1, 1));
}

#[test]
fn loop_end_in_valid_pixel_mode_breaks_killed_lanes() {
    let mut flow = in_loop(four());
    flow.kill_lanes(Mask(0b0001));
    flow.loop_end(&valid_pixels(Control::to(1))).unwrap();
    assert_eq!(states(&flow), "IX A A A");
}

#[test]
fn a_dx10_loop_keeps_the_outer_index_and_gives_it_back_with_its_count() {
    let mut flow = dx9();
    flow.loop_start(&I2).unwrap();
    let outer = flow.loop_registers();
    flow.loop_start_dx10(&Control::to(9)).unwrap();
    assert_eq!(flow.loop_index(), Some(4));
    flow.loop_end(&Control::to(2)).unwrap();
    assert_eq!(flow.loop_index(), Some(4), "only a DX9 loop counts its index up");
    flow.loop_break(&Control::to(8)).unwrap();
    flow.loop_end(&Control::to(2)).unwrap();
    assert_eq!(flow.loop_registers(), outer);
}

#[test]
fn an_index_can_count_down_below_zero() {
    let mut setup = setup();
    // Count 3, init 1, increment -2.
    setup.loop_constants[2] = LoopConstant(0xfe00_1003);
    let mut flow = Flow::new(setup);
    flow.loop_start(&I2).unwrap();
    flow.loop_end(&Control { cf_const: 2, ..Control::to(1) }).unwrap();
    assert_eq!(flow.loop_index(), Some(-1));
}

#[test]
fn break_and_continue_that_no_lane_passes_go_on() {
    let no_lane = Control { cond: Condition::False, ..Control::to(20) };
    for leave in [Flow::loop_break, Flow::loop_continue] {
        let mut flow = in_loop(four());
        leave(&mut flow, &no_lane).unwrap();
        assert_eq!((flow.pc(), states(&flow).as_str()), (2, "A A A A"));
    }
}

#[test]
fn break_and_continue_in_valid_pixel_mode_leave_killed_lanes_in_the_round() {
    for (leave, wanted) in [
        (Flow::loop_break as fn(&mut Flow, &Control) -> Result<(), FlowFault>, "A IX IX IX"),
        (Flow::loop_continue, "A IC IC IC"),
    ] {
        let mut flow = in_loop(four());
        flow.kill_lanes(Mask(0b0001));
        leave(&mut flow, &valid_pixels(Control::to(20))).unwrap();
        assert_eq!((flow.pc(), states(&flow).as_str()), (2, wanted));
    }
}

#[test]
fn break_and_continue_ignore_pop_count() {
    for leave in [Flow::loop_break, Flow::loop_continue] {
        let mut flow = in_loop(four());
        push_if(&mut flow, Mask(0b0001));
        leave(&mut flow, &Control::to(20).pop(7)).unwrap();
        assert_eq!(flow.entries().len(), 2);
    }
}

#[test]
fn loop_continue_of_the_last_lanes_unwinds_and_jumps_to_the_loop_end() {
    let mut flow = in_loop(four());
    flow.update_execute_mask(AluForm::ALU_BREAK, Mask(0b0011));
    push_if(&mut flow, ALL);
    flow.loop_continue(&Control::to(20)).unwrap();
    assert_eq!((flow.pc(), flow.entries().len(), states(&flow).as_str()), (20, 1, "IX IX IC IC"));
}

#[test]
fn break_and_continue_do_not_touch_each_others_lanes() {
    let mut flow = in_loop(four());
    flow.update_execute_mask(AluForm::ALU_BREAK, Mask(0b0001));
    flow.update_execute_mask(AluForm::ALU_CONTINUE, Mask(0b0010));
    let mut other = flow.clone();
    flow.loop_break(&whole_quads(Control::to(20))).unwrap();
    assert_eq!(states(&flow), "IX IC IX IX");
    other.loop_continue(&whole_quads(Control::to(20))).unwrap();
    assert_eq!(states(&other), "IX IC IC IC");
}
