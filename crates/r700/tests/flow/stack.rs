//! Tests the costs of stack entries, and the view of the flow from outside.

use crate::*;

// The stack. MAN p. 51; the first push counts as three subentries: Mesa, LLVM.

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
    match flow.alu_enter(AluForm::ALU_PUSH_BEFORE, false) {
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

/// Returns the cost of one instruction on an empty stack: whole entries and subentries.
fn cost(width: u8, step: impl FnOnce(&mut Flow)) -> (u32, u32) {
    let mut setup = FlowSetup::new(width, ALL);
    setup.loop_constants[0] = LoopConstant(1);
    let mut flow = Flow::new(setup);
    step(&mut flow);
    (flow.stack_use().full, flow.stack_use().sub)
}

#[test]
fn every_instruction_that_pushes_has_its_cost() {
    let to = Control::to(9);
    // The condition keeps a lane, so that the push forms do not jump.
    let no_lane = Control { cond: Condition::False, ..to };
    for width in [16, 32, 64] {
        assert_eq!(cost(width, |flow| flow.push_(&to).unwrap()), (0, 3));
        assert_eq!(cost(width, |flow| flow.push_else(&no_lane).unwrap()), (0, 3));
        assert_eq!(cost(width, |flow| flow.pop_push(&to).unwrap()), (0, 3));
        assert_eq!(cost(width, |flow| flow.pop_push_else(&no_lane).unwrap()), (0, 3));
        assert_eq!(cost(width, |flow| push_if(flow, ALL)), (0, 3));
        assert_eq!(cost(width, |flow| flow.push_(&whole_quads(to)).unwrap()), (1, 0));
        assert_eq!(cost(width, |flow| flow.push_else(&whole_quads(no_lane)).unwrap()), (1, 0));
        assert_eq!(cost(width, |flow| flow.pop_push(&whole_quads(to)).unwrap()), (1, 0));
        let enter = |flow: &mut Flow| assert_eq!(flow.alu_enter(AluForm::ALU_PUSH_BEFORE, true), Ok(ALL));
        assert_eq!(cost(width, enter), (1, 0));
        assert_eq!(cost(width, |flow| flow.loop_start(&to).unwrap()), (1, 0));
        assert_eq!(cost(width, |flow| flow.loop_start_no_al(&to).unwrap()), (1, 0));
        assert_eq!(cost(width, |flow| flow.loop_start_dx10(&to).unwrap()), (1, 0));
        assert_eq!(cost(width, |flow| flow.call(&to).unwrap()), (0, if width == 16 { 2 } else { 1 }));
    }
}

#[test]
fn subentries_share_entries_as_the_chip_is_wide() {
    // Three loops and six pushes: 3 + (6 + 2) / 8 or / 4.
    let costs = || [[Cost::Loop; 3].as_slice(), &[Cost::Push; 6]].concat();
    for (width, entries) in [(16, 4), (32, 4), (64, 5)] {
        let used = StackUse::of(costs(), width);
        assert_eq!(used.entries(StackUse::subentries_an_entry(width)), entries, "{width} lanes");
    }
}

#[test]
fn loops_and_calls_overflow_as_pushes_do() {
    let full = || Flow::new(FlowSetup { stack_size: Some(0), ..dx9_setup() });
    type Step = fn(&mut Flow, &Control) -> Result<(), FlowFault>;
    let steps: [Step; 6] = [
        Flow::push_,
        Flow::loop_start,
        Flow::loop_start_no_al,
        Flow::loop_start_dx10,
        Flow::call,
        Flow::call_fs,
    ];
    for step in steps {
        let mut flow = full();
        let fault = step(&mut flow, &I2).unwrap_err();
        assert!(matches!(fault, FlowFault::StackOverflow { needed: 1, declared: 0, .. }), "{fault}");
        assert_eq!((flow.entries().len(), flow.pc()), (0, 0));
    }
}

#[test]
fn what_has_been_popped_makes_room() {
    let mut flow = Flow::new(FlowSetup { stack_size: Some(1), ..setup() });
    for _ in 0..10 {
        push_if(&mut flow, ALL);
        flow.pop(&Control::to(0).pop(1)).unwrap();
        let body = flow.pc() + 1;
        flow.loop_start_dx10(&Control::to(9)).unwrap();
        flow.loop_break(&Control::to(8)).unwrap();
        flow.loop_end(&Control::to(body)).unwrap();
    }
    assert_eq!(flow.stack_needed(), 1);
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

#[test]
fn the_depth_is_in_entries_of_those_declared() {
    for (stack_size, room) in [(None, None), (Some(5), Some(5))] {
        let mut flow = Flow::new(FlowSetup { stack_size, ..setup() });
        push_if(&mut flow, ALL);
        push_if(&mut flow, ALL);
        flow.loop_start_dx10(&Control::to(9)).unwrap();
        let depths: Vec<_> = flow.depths().iter().map(|depth| (depth.of, depth.used, depth.room)).collect();
        assert_eq!(depths, [("STACK_SIZE", 2, room)]);
    }
}

#[test]
fn more_stack_than_can_be_declared_is_a_fault_in_either_mode() {
    // With 64 lanes, an entry has four subentries, and the pushes need two more.
    for (strict, stack_size) in [(true, None), (false, None), (false, Some(1))] {
        let mut flow = Flow::new(FlowSetup { strict, stack_size, ..FlowSetup::new(64, ALL) });
        for _ in 0..4 * FlowSetup::MOST_STACK - 2 {
            flow.push_(&Control::to(0)).unwrap();
        }
        let before = (flow.pc(), flow.entries().len());
        assert_eq!(flow.push_(&Control::to(0)), Err(FlowFault::StackTooDeep { needed: 256 }));
        assert_eq!((flow.pc(), flow.entries().len()), before);
    }
}
