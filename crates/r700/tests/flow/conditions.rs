//! Tests conditions, NOP, END_OF_PROGRAM.

use crate::*;

// Conditions. MAN 3.6.3, p. 49.

#[test]
fn cond_active_passes_active_lanes() {
    let mut flow = four();
    push_if(&mut flow, Mask(0b0101));
    assert_eq!(flow.test(&Control::to(0)), Ok(Mask(0b0101)));
}

#[test]
fn cond_false_passes_no_lane() {
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
