//! Tests CALL, CALL_FS, RETURN, KILL.

use crate::*;

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
fn call_for_which_no_lane_passes_is_passed_over() {
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
fn call_fs_too_deep_is_passed_over_as_well() {
    for (call_count, pc) in [(32, 40), (33, 1)] {
        let mut flow = Flow::new(FlowSetup { fetch_start: Some(40), ..setup() });
        flow.call_fs(&Control { call_count, ..Control::to(0) }).unwrap();
        assert_eq!(flow.pc(), pc, "{call_count}");
    }
}

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
fn kill_jumps_when_no_lane_is_valid() {
    let mut flow = four();
    flow.kill(&Control::to(9)).unwrap();
    assert_eq!((flow.valid(), flow.pc()), (Mask::NONE, 9));
}

// Conditions and modes of calls.

#[test]
fn call_saves_no_mask() {
    let mut flow = four();
    push_if(&mut flow, Mask(0b0001));
    flow.call(&Control::to(6)).unwrap();
    flow.update_execute_mask(AluForm::ALU, Mask(0b0001));
    flow.return_(&Control::to(0)).unwrap();
    assert_eq!((flow.pc(), states(&flow).as_str()), (2, "IB IB IB IB"));
}

#[test]
fn call_with_pop_count_ignores_it_in_lenient_mode() {
    let mut flow = Flow::new(FlowSetup { strict: false, ..setup() });
    flow.call(&Control::to(6).pop(1)).unwrap();
    assert_eq!((flow.pc(), flow.entries().len()), (6, 1));
}

#[test]
fn calls_of_count_zero_have_no_depth() {
    let mut flow = four();
    for _ in 0..100 {
        flow.call(&Control::to(6)).unwrap();
    }
    assert_eq!((flow.pc(), flow.call_depth(), flow.entries().len()), (6, 0, 100));
}

#[test]
fn call_fs_for_which_no_lane_passes_or_that_is_too_deep_is_passed_over() {
    let mut flow = Flow::new(FlowSetup { fetch_start: Some(40), call_limit: 1, ..setup() });
    flow.call_fs(&Control { cond: Condition::False, ..Control::to(0) }).unwrap();
    assert_eq!(flow.pc(), 1);
    flow.call_fs(&Control { call_count: 2, ..Control::to(0) }).unwrap();
    assert_eq!((flow.pc(), flow.in_fetch_program()), (2, false));
}

#[test]
fn return_with_an_empty_stack_is_a_fault() {
    assert_eq!(four().return_(&Control::to(0)), Err(FlowFault::StackEmpty { op: "RETURN" }));
}

#[test]
fn return_in_valid_pixel_mode_waits_for_killed_lanes() {
    let mut flow = four();
    flow.call(&Control::to(6)).unwrap();
    flow.kill_lanes(Mask(0b0001));
    flow.return_(&valid_pixels(Control::to(0))).unwrap();
    assert_eq!(flow.pc(), 7, "an active lane that is not valid does not pass");
}

#[test]
fn kill_with_a_false_condition_removes_no_lane() {
    let mut flow = four();
    flow.kill(&Control { cond: Condition::Bool(0), ..Control::to(9) }).unwrap();
    assert_eq!((flow.valid(), flow.pc()), (ALL, 1));
}

#[test]
fn killed_lanes_never_come_back() {
    let mut flow = in_loop(four());
    flow.kill_lanes(Mask(0b0001));
    flow.loop_end(&Control::to(1)).unwrap();
    push_if(&mut flow, ALL);
    flow.pop(&Control::to(0).pop(1)).unwrap();
    assert_eq!((flow.valid(), flow.active()), (Mask(0b1110), ALL));
}
