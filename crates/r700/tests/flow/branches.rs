//! Tests JUMP, PUSH, ELSE, POP and their variants.

use crate::*;

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
fn alu_push_before_pushes_even_when_no_lane_is_active() {
    let mut flow = four();
    push_if(&mut flow, Mask::NONE);
    push_if(&mut flow, ALL);
    assert_eq!((flow.entries().len(), flow.pc()), (2, 2));
}

#[test]
fn whole_quad_mode_wakes_inactive_branch_lanes_only() {
    let mut flow = in_loop(four());
    flow.update_execute_mask(AluForm::ALU_BREAK, Mask(0b0001));
    flow.update_execute_mask(AluForm::ALU, Mask(0b0010));
    flow.push_(&Control { whole_quad_mode: true, ..Control::to(1) }).unwrap();
    assert_eq!(states(&flow), "IX A A A");
}

#[test]
fn whole_quad_mode_wakes_a_quad_of_which_two_or_three_lanes_are_active() {
    for lanes in 1..16 {
        let mut flow = four();
        push_if(&mut flow, Mask(lanes));
        flow.push_(&Control { whole_quad_mode: true, ..Control::to(9) }).unwrap();
        assert_eq!((flow.pc(), flow.active()), (2, ALL), "{lanes:#b}");
    }
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

#[test]
fn push_else_does_not_pop() {
    let mut flow = four();
    push_if(&mut flow, Mask(0b0111));
    flow.push_else(&Control::to(9).pop(1)).unwrap();
    assert_eq!((flow.pc(), flow.entries().len(), states(&flow).as_str()), (9, 2, "IB IB IB IB"));
}

#[test]
fn pop_push_else_pops_before_it_pushes_and_not_again() {
    let mut flow = four();
    push_if(&mut flow, Mask(0b0111));
    push_if(&mut flow, Mask(0b0011));
    flow.pop_push_else(&Control { cond: Condition::Bool(0), ..Control::to(9) }.pop(1)).unwrap();
    assert_eq!((flow.entries().len(), flow.active()), (2, Mask(0b0111)));
    flow.pop_push_else(&Control::to(9).pop(2)).unwrap();
    assert_eq!((flow.pc(), flow.entries().len(), states(&flow).as_str()), (9, 1, "IB IB IB IB"));
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
    flow.update_execute_mask(AluForm::ALU_BREAK, Mask(0b0001));
    flow.update_execute_mask(AluForm::ALU_CONTINUE, Mask(0b0010));
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
fn else_with_a_false_boolean_flips_no_lane() {
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
    for form in [AluForm::ALU, AluForm::ALU_POP_AFTER] {
        let mut flow = in_loop(four());
        push_if(&mut flow, ALL);
        flow.update_execute_mask(AluForm::ALU_BREAK, Mask(0b0001));
        flow.update_execute_mask(AluForm::ALU_CONTINUE, Mask(0b0010));
        // First as the instruction, then as the end of a clause.
        match form {
            AluForm::ALU => flow.pop(&Control::to(0).pop(1)).unwrap(),
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

// Modes, conditions and counts of branches.

#[test]
fn jump_with_a_false_boolean_jumps_and_changes_no_lane() {
    let mut flow = four();
    flow.jump(&Control { cond: Condition::Bool(0), ..Control::to(9) }).unwrap();
    assert_eq!((flow.pc(), flow.active()), (9, ALL));
    let mut flow = four();
    flow.jump(&Control { cond: Condition::NotBool(0), ..Control::to(9) }).unwrap();
    assert_eq!((flow.pc(), flow.active()), (1, ALL));
}

#[test]
fn jump_in_valid_pixel_mode_asks_for_a_valid_lane() {
    let mut flow = four();
    push_if(&mut flow, Mask(0b0001));
    flow.kill_lanes(Mask(0b0001));
    let mut other = flow.clone();
    flow.jump(&valid_pixels(Control::to(9))).unwrap();
    other.jump(&Control::to(9)).unwrap();
    assert_eq!((flow.pc(), other.pc()), (9, 2));
}

#[test]
fn a_jump_can_pop_seven_entries() {
    let mut flow = four();
    for lanes in [0b0111, 0b0011, 0b0001, 0b0001, 0b0001, 0b0001, 0] {
        push_if(&mut flow, Mask(lanes));
    }
    flow.jump(&Control::to(9).pop(7)).unwrap();
    assert_eq!((flow.pc(), flow.entries().len(), flow.active()), (9, 0, ALL));
}

#[test]
fn push_with_a_false_boolean_pushes_nothing_and_jumps() {
    let mut flow = four();
    flow.push_(&Control { cond: Condition::Bool(0), ..Control::to(9) }).unwrap();
    assert_eq!((flow.pc(), flow.entries().len(), flow.active()), (9, 0, ALL));
}

#[test]
fn push_else_in_valid_pixel_mode_keeps_the_killed_lanes() {
    let mut flow = four();
    flow.kill_lanes(Mask(0b0100));
    flow.push_else(&valid_pixels(Control::to(9))).unwrap();
    assert_eq!((flow.pc(), states(&flow).as_str()), (1, "IB IB A IB"));
}

#[test]
fn else_without_a_push_swaps_among_the_lanes_of_the_launch() {
    let mut flow = Flow::new(FlowSetup { valid: Mask(0b0111), ..setup() });
    flow.update_execute_mask(AluForm::ALU, Mask(0b0001));
    flow.else_(&Control::to(9)).unwrap();
    assert_eq!(states(&flow), "A IB IB IB");
}

#[test]
fn else_directly_in_a_loop_swaps_among_the_lanes_that_entered_it() {
    let mut flow = four();
    push_if(&mut flow, Mask(0b0011));
    flow.loop_start_dx10(&Control::to(21)).unwrap();
    flow.update_execute_mask(AluForm::ALU, Mask(0b0001));
    flow.else_(&Control::to(9)).unwrap();
    assert_eq!(states(&flow), "A IB IX IX");
}

#[test]
fn else_in_whole_quad_mode_takes_the_quads_of_the_lanes_that_pushed() {
    let mut flow = Flow::new(FlowSetup::new(64, Mask(0xfff)));
    push_if(&mut flow, Mask(0x022));
    push_if(&mut flow, Mask(0x002));
    flow.else_(&whole_quads(Control::to(9))).unwrap();
    assert_eq!(flow.active(), Mask(0x0fd), "both quads of the push, but for the lane that was on");
}

#[test]
fn both_modes_on_else_are_a_strict_fault() {
    assert_eq!(four().else_(&valid_pixels(whole_quads(Control::to(9)))), Err(FlowFault::BothModes));
}

#[test]
fn pop_of_nothing_changes_nothing_and_never_jumps() {
    let mut flow = four();
    push_if(&mut flow, Mask::NONE);
    flow.pop(&Control::to(9)).unwrap();
    assert_eq!((flow.pc(), flow.entries().len(), flow.active()), (2, 1, Mask::NONE));
}

#[test]
fn pop_with_a_false_boolean_leaves_no_lane_active() {
    let mut flow = four();
    push_if(&mut flow, Mask(0b0001));
    flow.pop(&Control { cond: Condition::Bool(0), ..Control::to(9).pop(1) }).unwrap();
    assert_eq!((flow.pc(), states(&flow).as_str()), (2, "IB IB IB IB"));
}

#[test]
fn pop_jump_jumps_when_no_lane_passes_after_the_pop() {
    let mut flow = four();
    push_if(&mut flow, Mask(0b0001));
    flow.pop_jump(&Control { cond: Condition::Bool(0), ..Control::to(9).pop(1) }).unwrap();
    assert_eq!((flow.pc(), flow.entries().len(), flow.active()), (9, 0, ALL));
}

#[test]
fn pop_push_that_no_lane_passes_pops_once_and_jumps() {
    let mut flow = four();
    push_if(&mut flow, Mask(0b0011));
    push_if(&mut flow, Mask(0b0001));
    flow.pop_push(&Control { cond: Condition::Bool(0), ..Control::to(9).pop(1) }).unwrap();
    assert_eq!((flow.pc(), flow.entries().len(), flow.active()), (9, 1, Mask(0b0011)));
}

#[test]
fn pop_push_else_saves_the_restored_mask_and_jumps_when_all_pass() {
    let mut flow = four();
    push_if(&mut flow, Mask(0b0001));
    flow.pop_push_else(&Control::to(9).pop(1)).unwrap();
    assert_eq!((flow.pc(), states(&flow).as_str()), (9, "IB IB IB IB"));
    assert_eq!(flow.entries(), [Entry::Branch { active: ALL, whole_quad: false }]);
}

#[test]
fn each_instruction_that_pops_needs_branch_entries() {
    type Step = fn(&mut Flow, &Control) -> Result<(), FlowFault>;
    let steps: [(&str, Step, Condition); 7] = [
        ("JUMP", Flow::jump, Condition::False),
        ("PUSH", Flow::push_, Condition::False),
        ("POP", Flow::pop, Condition::Active),
        ("POP_JUMP", Flow::pop_jump, Condition::Active),
        ("POP_PUSH", Flow::pop_push, Condition::Active),
        ("POP_PUSH_ELSE", Flow::pop_push_else, Condition::Active),
        ("LOOP_START", Flow::loop_start_dx10, Condition::False),
    ];
    for (op, step, cond) in steps {
        let control = Control { cond, ..Control::to(9).pop(1) };
        assert_eq!(step(&mut four(), &control), Err(FlowFault::StackEmpty { op }));
        let found = FlowFault::WrongEntry { op, wanted: "PUSH", found: "LOOP" };
        assert_eq!(step(&mut in_loop(four()), &control), Err(found));
    }
    let mut flow = four();
    flow.update_execute_mask(AluForm::ALU, Mask::NONE);
    assert_eq!(flow.else_(&Control::to(9).pop(1)), Err(FlowFault::StackEmpty { op: "ELSE" }));
}
