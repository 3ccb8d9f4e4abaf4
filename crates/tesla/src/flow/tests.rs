//! The rules of the token stack, one test each, with up to 32 lanes. The tests directly call the methods that apply an
//! instruction's effect on the stack. Numbers such as 9.5 are sections of tesla.md.

use super::*;
use reconverge_simt::{Recorder, Silent};

fn warp(lanes: u64) -> Flow {
    Flow::new(0, Mask(lanes), Limits::default(), Mode::Strict)
}

fn lenient(lanes: u64) -> Flow {
    Flow::new(0, Mask(lanes), Limits::default(), Mode::Lenient)
}

fn at(flow: &Flow) -> (u32, u64) {
    (flow.pc(), flow.active().0)
}

fn kinds(flow: &Flow) -> Vec<(&'static str, u32, u64)> {
    flow.tokens().iter().map(|entry| (entry.token.name(), entry.pc, entry.mask.0)).collect()
}

// 9.10, first trace.
#[test]
fn a_diverging_if_else_joins_after_both_sides() {
    let mut flow = warp(0b11);
    flow.joinat(0x30, 0x08, &mut Silent).unwrap();
    assert_eq!(flow.bra(0x20, 0x10, Mask(0b01), &mut Silent), Ok(Decision::Divergent));
    assert_eq!(at(&flow), (0x20, 0b01));
    assert_eq!(kinds(&flow), [("JOINAT", 0x30, 0b11), ("BRANCH", 0x10, 0b10)]);
    assert_eq!(flow.bra(0x30, 0x30, Mask(0b01), &mut Silent), Ok(Decision::Uniform));
    assert_eq!(flow.join(&mut Silent), Ok(Join::Away));
    assert_eq!(at(&flow), (0x10, 0b10));
    flow.bra(0x30, 0x20, Mask(0b10), &mut Silent).unwrap();
    assert_eq!(flow.join(&mut Silent), Ok(Join::Run));
    assert_eq!(at(&flow), (0x30, 0b11));
    assert!(flow.tokens().is_empty());
}

// 9.10, second trace.
#[test]
fn an_exit_inside_an_if_lets_the_other_side_run_and_join_alone() {
    let mut flow = warp(0b11);
    flow.joinat(0x30, 0x08, &mut Silent).unwrap();
    flow.bra(0x20, 0x10, Mask(0b01), &mut Silent).unwrap();
    flow.exit(&mut Silent).unwrap();
    assert_eq!(at(&flow), (0x10, 0b10));
    flow.bra(0x30, 0x20, Mask(0b10), &mut Silent).unwrap();
    assert_eq!(flow.join(&mut Silent), Ok(Join::Run));
    assert_eq!(at(&flow), (0x30, 0b10));
    assert!(flow.tokens().is_empty());
}

// 9.10, third trace: lane 1 waits at the join, lane 0 exits.
#[test]
fn unwinding_resumes_at_a_joinat_and_leaves_the_entry_for_the_join_there() {
    let mut flow = warp(0b11);
    flow.joinat(0x30, 0x08, &mut Silent).unwrap();
    flow.bra(0x30, 0x10, Mask(0b10), &mut Silent).unwrap();
    assert_eq!(flow.join(&mut Silent), Ok(Join::Away));
    assert_eq!(at(&flow), (0x10, 0b01));
    flow.exit(&mut Silent).unwrap();
    assert_eq!(at(&flow), (0x30, 0b10));
    assert_eq!(kinds(&flow), [("JOINAT", 0x30, 0b11)]);
    assert_eq!(flow.join(&mut Silent), Ok(Join::Run));
    assert_eq!(at(&flow), (0x30, 0b10));
    assert!(flow.tokens().is_empty());
}

// 13.3: an entry for which no lane waits is popped, even while lanes wait for other entries.
#[test]
fn unwinding_drops_a_joinat_entry_for_which_no_lane_waits() {
    let mut flow = warp(0b11);
    flow.joinat(0x80, 0x08, &mut Silent).unwrap();
    flow.bra(0x20, 0x10, Mask(0b10), &mut Silent).unwrap();
    flow.joinat(0x30, 0x28, &mut Silent).unwrap();
    assert_eq!(at(&flow), (0x28, 0b10));
    flow.exit(&mut Silent).unwrap();
    assert_eq!(at(&flow), (0x10, 0b01));
    assert_eq!(kinds(&flow), [("JOINAT", 0x80, 0b11)]);
    flow.exit(&mut Silent).unwrap();
    assert!(kinds(&flow).is_empty());
}

#[test]
fn the_stack_shows_where_entries_continue_and_for_whom() {
    let mut flow = warp(0b0111);
    flow.joinat(0x40, 0x08, &mut Silent).unwrap();
    flow.quadon(0x10, &mut Silent).unwrap();
    let row = |row: StackRow| (row.kind, row.pc, row.mask, row.count);
    let rows: Vec<_> = flow.stack().into_iter().map(row).collect();
    let lanes = Some(Mask(0b0111));
    // A QUADON entry has lanes but no address.
    assert_eq!(rows, [("QUADON", None, lanes, None), ("JOINAT", Some(0x40), lanes, None)]);
}

// 9.5: the taken side runs first.
#[test]
fn the_taken_side_runs_first() {
    let mut flow = warp(0xf);
    flow.bra(0x80, 0x08, Mask(0x8), &mut Silent).unwrap();
    assert_eq!(at(&flow), (0x80, 0x8));
}

// 9.3: uniform branches push nothing.
#[test]
fn a_branch_that_all_or_none_take_pushes_nothing() {
    for (taken, pc) in [(0xfu64, 0x80), (0, 0x08)] {
        let mut flow = warp(0xf);
        assert_eq!(flow.bra(0x80, 0x08, Mask(taken), &mut Silent), Ok(Decision::Uniform));
        assert_eq!(at(&flow), (pc, 0xf));
        assert!(flow.tokens().is_empty());
    }
}

// 9.5: a branch without `joinat` is legal, and both sides run to their ends.
#[test]
fn a_branch_without_joinat_runs_both_sides_to_their_ends() {
    let mut flow = warp(0b11);
    flow.bra(0x20, 0x08, Mask(0b01), &mut Silent).unwrap();
    flow.exit(&mut Silent).unwrap();
    assert_eq!(at(&flow), (0x08, 0b10));
    flow.exit(&mut Silent).unwrap();
    assert!(flow.finished());
}

// 9.5: a loop with `joinat` pushes one BRANCH entry for each iteration in which lanes leave, and the join pops these
// entries one at a time.
#[test]
fn a_divergent_joinat_loop_collects_its_leavers_one_entry_at_a_time() {
    let mut flow = warp(0b111);
    flow.joinat(0x20, 0x08, &mut Silent).unwrap();
    for stay in [0b110, 0b100] {
        assert_eq!(flow.bra(0x08, 0x20, Mask(stay), &mut Silent), Ok(Decision::Divergent));
        assert_eq!(at(&flow), (0x08, stay));
    }
    flow.bra(0x08, 0x20, Mask::NONE, &mut Silent).unwrap();
    assert_eq!((flow.join(&mut Silent), at(&flow)), (Ok(Join::Away), (0x20, 0b010)));
    assert_eq!((flow.join(&mut Silent), at(&flow)), (Ok(Join::Away), (0x20, 0b001)));
    assert_eq!((flow.join(&mut Silent), at(&flow)), (Ok(Join::Run), (0x20, 0b111)));
}

// 9.5: in a loop with `breakaddr`, lanes that leave wait without an entry, and all lanes continue at the break address.
#[test]
fn a_break_loop_pushes_nothing_for_its_leavers() {
    let mut flow = warp(0b111);
    flow.breakaddr(0x40, 0x08, &mut Silent).unwrap();
    assert_eq!(flow.break_(Mask(0b001), 0x10, &mut Silent), Ok(Decision::Divergent));
    assert_eq!(at(&flow), (0x10, 0b110));
    assert_eq!(flow.break_(Mask::NONE, 0x18, &mut Silent), Ok(Decision::Uniform));
    assert_eq!(flow.tokens().len(), 1);
    flow.break_(Mask(0b110), 0x10, &mut Silent).unwrap();
    assert_eq!(at(&flow), (0x40, 0b111));
    assert!(flow.tokens().is_empty());
}

// 9.5: after a `break` inside an `if` inside a loop, the join of the `if` omits the lanes that broke.
#[test]
fn a_join_omits_lanes_that_broke() {
    let mut flow = warp(0b11);
    flow.breakaddr(0x40, 0x08, &mut Silent).unwrap();
    flow.joinat(0x30, 0x10, &mut Silent).unwrap();
    flow.bra(0x20, 0x18, Mask(0b01), &mut Silent).unwrap();
    flow.break_(Mask(0b01), 0x28, &mut Silent).unwrap();
    assert_eq!(at(&flow), (0x18, 0b10));
    flow.bra(0x30, 0x20, Mask(0b10), &mut Silent).unwrap();
    assert_eq!(flow.join(&mut Silent), Ok(Join::Run));
    assert_eq!(at(&flow), (0x30, 0b10));
    flow.break_(Mask(0b10), 0x38, &mut Silent).unwrap();
    assert_eq!(at(&flow), (0x40, 0b11));
}

// 9.6: after a divergent `ret`, the other lanes continue. When these lanes have returned as well, all lanes continue
// after the call.
#[test]
fn lanes_that_returned_wait_for_the_rest_of_the_call() {
    let mut flow = warp(0b11);
    flow.call(0x100, 0x08, &mut Silent).unwrap();
    assert_eq!(at(&flow), (0x100, 0b11));
    assert_eq!(flow.ret(Mask(0b01), 0x108, &mut Silent), Ok(Decision::Divergent));
    assert_eq!(at(&flow), (0x108, 0b10));
    flow.ret(Mask(0b10), 0x110, &mut Silent).unwrap();
    assert_eq!(at(&flow), (0x08, 0b11));
}

// 9.6: pending BRANCH paths of a function run before the CALL entry of the function is popped.
#[test]
fn a_return_runs_the_pending_branch_of_its_level_first() {
    let mut flow = warp(0b11);
    flow.call(0x100, 0x08, &mut Silent).unwrap();
    flow.bra(0x120, 0x108, Mask(0b01), &mut Silent).unwrap();
    flow.ret(Mask(0b01), 0x128, &mut Silent).unwrap();
    assert_eq!(at(&flow), (0x108, 0b10));
    flow.ret(Mask(0b10), 0x110, &mut Silent).unwrap();
    assert_eq!(at(&flow), (0x08, 0b11));
}

// 9.6: `ret` without a CALL entry ends the lane, and exited lanes do not run again.
#[test]
fn a_return_without_a_call_ends_the_lane() {
    let mut flow = warp(0b11);
    flow.ret(Mask(0b01), 0x08, &mut Silent).unwrap();
    assert_eq!(at(&flow), (0x08, 0b10));
    flow.ret(Mask(0b10), 0x10, &mut Silent).unwrap();
    assert!(flow.finished());
    assert_eq!(flow.why(Lane(0)), Why::Exited);
}

// 9.6: no pop activates exited lanes.
#[test]
fn no_entry_wakes_an_exited_lane() {
    let mut flow = warp(0b11);
    flow.breakaddr(0x40, 0x08, &mut Silent).unwrap();
    flow.call(0x100, 0x10, &mut Silent).unwrap();
    flow.bra(0x180, 0x108, Mask(0b01), &mut Silent).unwrap();
    flow.exit(&mut Silent).unwrap();
    flow.ret(Mask(0b10), 0x110, &mut Silent).unwrap();
    assert_eq!(at(&flow), (0x10, 0b10));
    flow.break_(Mask(0b10), 0x18, &mut Silent).unwrap();
    assert_eq!(at(&flow), (0x40, 0b10));
}

// 9.9: `preret` sets the return address of the indirect branch that follows.
#[test]
fn an_indirect_call_is_preret_and_an_indirect_branch() {
    let mut flow = warp(0b11);
    flow.preret(0x10, 0x08, &mut Silent).unwrap();
    assert_eq!(flow.pc(), 0x08);
    flow.bra_indirect(0xff00_0103, &mut Silent).unwrap();
    assert_eq!(flow.pc(), 0x100); // 24-bit address, low two bits 0
    flow.ret(Mask(0b11), 0x108, &mut Silent).unwrap();
    assert_eq!(at(&flow), (0x10, 0b11));
}

// 13.8
#[test]
fn differing_indirect_targets_trap_or_follow_the_lowest_lane() {
    let target = |lane: Lane| 0x100 + 8 * u32::from(lane.0);
    assert_eq!(warp(0b110).uniform_target(target), Err(Fault::TargetsDiffer));
    assert_eq!(lenient(0b110).uniform_target(target), Ok(0x108));
    assert_eq!(warp(0b110).uniform_target(|_| 8), Ok(8));
}

// 9.1 and 13.6
#[test]
fn a_limited_call_beyond_the_limit_is_skipped_and_counted_until_it_pops() {
    let limits = Limits { calls: Limits::call_limit_log(1), ..Limits::default() };
    let mut flow = Flow::new(0, Mask(1), limits, Mode::Strict);
    flow.call_lim(0x100, 0x08, &mut Silent).unwrap();
    flow.call_lim(0x200, 0x108, &mut Silent).unwrap();
    assert_eq!(flow.pc(), 0x108);
    assert_eq!(flow.tokens().len(), 1);
    flow.preret_lim(0x300, 0x110, &mut Silent).unwrap();
    assert_eq!(flow.tokens().len(), 1);
    flow.ret(Mask(1), 0x118, &mut Silent).unwrap();
    assert_eq!(flow.pc(), 0x08);
    flow.call_lim(0x100, 0x10, &mut Silent).unwrap();
    assert_eq!(flow.pc(), 0x100);
}

// 9.6: `preret` counts as a call, because it is one half of an indirect call.
#[test]
fn a_limited_preret_counts_until_it_pops() {
    let limits = Limits { calls: Limits::call_limit_log(1), ..Limits::default() };
    let mut flow = Flow::new(0, Mask(1), limits, Mode::Strict);
    flow.preret_lim(0x300, 0x08, &mut Silent).unwrap();
    flow.preret_lim(0x400, 0x10, &mut Silent).unwrap();
    assert_eq!((flow.pc(), kinds(&flow)), (0x10, vec![("CALL_LIM", 0x300, 1)]));
    flow.ret(Mask(1), 0x18, &mut Silent).unwrap();
    flow.preret_lim(0x400, 0x308, &mut Silent).unwrap();
    assert_eq!(kinds(&flow), [("CALL_LIM", 0x400, 1)]);
}

// 9.1
#[test]
fn configured_limits_are_logarithms() {
    assert_eq!([0, 1, 2, 3, 4, 13, 15].map(Limits::stack_size_log), [16, 20, 20, 20, 24, 4112, 4112]);
    assert_eq!([0, 1, 8, 15].map(Limits::call_limit_log), [Some(0), Some(1), Some(128), None]);
}

// 9.1
#[test]
fn a_full_stack_is_a_fault() {
    let mut flow = Flow::new(0, Mask(1), Limits { stack_entries: 2, calls: None }, Mode::Lenient);
    flow.joinat(8, 8, &mut Silent).unwrap();
    flow.breakaddr(8, 8, &mut Silent).unwrap();
    assert_eq!(flow.call(8, 8, &mut Silent), Err(Fault::StackLimit));
    assert_eq!(flow.tokens().len(), 2);
}

// 9.4 and 13.4
#[test]
fn a_join_without_an_entry_underflows_or_does_nothing() {
    assert_eq!(warp(1).join(&mut Silent), Err(Fault::StackUnderflow));
    let mut flow = lenient(1);
    assert_eq!(flow.join(&mut Silent), Ok(Join::Run));
    assert_eq!(at(&flow), (0, 1));
}

// 9.4
#[test]
fn a_join_on_a_break_or_call_entry_is_a_mismatch_in_both_modes() {
    for mut flow in [warp(1), lenient(1)] {
        flow.breakaddr(8, 8, &mut Silent).unwrap();
        assert_eq!(flow.join(&mut Silent), Err(Fault::StackMismatch));
        flow.call(8, 8, &mut Silent).unwrap();
        assert_eq!(flow.join(&mut Silent), Err(Fault::StackMismatch));
    }
}

// 9.5
#[test]
fn a_break_through_a_call_mismatches_or_reaches_the_loop_outside() {
    for mode in [Mode::Strict, Mode::Lenient] {
        let mut flow = Flow::new(0, Mask(0b11), Limits::default(), mode);
        flow.breakaddr(0x40, 0x08, &mut Silent).unwrap();
        flow.call(0x100, 0x10, &mut Silent).unwrap();
        let broken = flow.break_(Mask(0b11), 0x108, &mut Silent);
        match mode {
            Mode::Strict => assert_eq!(broken, Err(Fault::StackMismatch)),
            Mode::Lenient => assert_eq!((broken, at(&flow)), (Ok(Decision::Uniform), (0x40, 0b11))),
        }
    }
}

// 13.5
#[test]
fn a_break_without_a_loop_underflows_or_ends_the_lane() {
    assert_eq!(warp(1).break_(Mask(1), 8, &mut Silent), Err(Fault::StackUnderflow));
    let mut flow = lenient(1);
    assert_eq!(flow.break_(Mask(1), 8, &mut Silent), Ok(Decision::Uniform));
    assert!(flow.finished());
}

// 9.8
#[test]
fn quadon_wakes_whole_quads_and_quadpop_restores() {
    let mut flow = warp(0b0100_0000_0001);
    flow.quadon(8, &mut Silent).unwrap();
    assert_eq!(flow.active(), Mask(0xf0f));
    flow.quadpop(0x10, &mut Silent).unwrap();
    assert_eq!(at(&flow), (0x10, 0b0100_0000_0001));
}

// 9.8
#[test]
fn control_between_quadon_and_quadpop_is_a_fault() {
    let mut flow = warp(1);
    flow.quadon(8, &mut Silent).unwrap();
    assert_eq!(flow.joinat(8, 8, &mut Silent), Err(Fault::QuadonActive));
    assert_eq!(flow.bra(8, 8, Mask(1), &mut Silent), Err(Fault::QuadonActive));
    for mut flow in [warp(1), lenient(1)] {
        flow.quadon(8, &mut Silent).unwrap();
        assert_eq!(flow.quadon(8, &mut Silent), Err(Fault::QuadonActive));
        assert_eq!(flow.exit(&mut Silent), Err(Fault::QuadonActive));
    }
    assert_eq!(warp(1).quadpop(8, &mut Silent), Err(Fault::StackUnderflow));
    let mut flow = warp(1);
    flow.joinat(8, 8, &mut Silent).unwrap();
    assert_eq!(flow.quadpop(8, &mut Silent), Err(Fault::StackMismatch));
}

// 6.10
#[test]
fn a_discarded_lane_keeps_running_and_is_dead() {
    let mut flow = warp(0b11);
    flow.discard(Mask(0b01), 8);
    assert_eq!(at(&flow), (8, 0b11));
    assert!(flow.dead().has(Lane(0)) && !flow.dead().has(Lane(1)) && flow.dead().has(Lane(2)));
}

// 6.10: helpers are lanes that were launched. Other lanes of the quad stay alive.
#[test]
fn a_helper_is_dead_and_the_lanes_beside_it_are_not() {
    let mut flow = warp(0b0111);
    flow.mark_helpers(Mask(0b1100));
    assert_eq!([0, 1, 2].map(|lane| flow.dead().has(Lane(lane))), [false, false, true]);
    assert_eq!(at(&flow), (0, 0b0111));
}

// 9.6: a lane has ended if it exited, or returned without a CALL entry that waits for the lane. A lane that returned
// from a call runs again.
#[test]
fn lanes_that_exited_or_returned_past_every_call_have_ended() {
    let mut flow = warp(0b1111);
    let unlaunched = 0xffff_fff0;
    flow.bra(0x20, 0x08, Mask(0b0001), &mut Silent).unwrap();
    flow.exit(&mut Silent).unwrap();
    assert_eq!(at(&flow), (0x08, 0b1110));
    flow.ret(Mask(0b0010), 0x10, &mut Silent).unwrap();
    assert_eq!(flow.ended(), Mask(unlaunched | 0b0011));
    flow.call(0x100, 0x18, &mut Silent).unwrap();
    flow.ret(Mask(0b0100), 0x108, &mut Silent).unwrap();
    assert_eq!(flow.ended(), Mask(unlaunched | 0b0011));
}

#[test]
fn a_lane_that_returned_from_a_call_within_a_call_has_not_ended() {
    let mut flow = warp(0b11);
    flow.call(0x100, 0x08, &mut Silent).unwrap();
    flow.call(0x200, 0x108, &mut Silent).unwrap();
    flow.ret(Mask(0b01), 0x208, &mut Silent).unwrap();
    assert_eq!((at(&flow), flow.tokens().len()), ((0x208, 0b10), 2));
    assert_eq!(flow.ended(), Mask(0xffff_fffc));
}

#[test]
fn any_lane_of_a_quad_stands_for_all_four() {
    for lane in 0..32 {
        assert_eq!(whole_quads(Mask(1 << lane)), Mask(0xf << (lane & !3)), "{lane}");
    }
    assert_eq!((whole_quads(Mask::NONE), whole_quads(Mask(0x8010_0002))), (Mask::NONE, Mask(0xf0f0_000f)));
    for lanes in 1..16 {
        assert_eq!(whole_quads(Mask(lanes << 8)), Mask(0xf00), "{lanes:#b}");
    }
}

// 9.9
#[test]
fn a_fault_says_its_name_in_the_manuals_word() {
    let faults = [
        Fault::StackUnderflow,
        Fault::StackMismatch,
        Fault::QuadonActive,
        Fault::StackLimit,
        Fault::TargetsDiffer,
    ];
    let said = faults.map(|fault| fault.to_string());
    let begins =
        ["STACK_UNDERFLOW: ", "STACK_MISMATCH: ", "QUADON_ACTIVE: ", "STACK_LIMIT: ", "active lanes "];
    for (said, begin) in said.iter().zip(begins) {
        assert!(said.starts_with(begin), "{said}");
    }
}

#[test]
fn what_issues_next_and_how_full_the_stack_is_can_be_asked() {
    let mut flow = warp(0b11);
    assert_eq!(flow.launched(), Mask(0b11));
    assert_eq!(flow.issue(), Some(Issue { pc: 0, mask: Mask(0b11) }));
    let depth = |flow: &Flow| flow.depths().iter().map(|depth| (depth.of, depth.used)).collect::<Vec<_>>();
    assert_eq!(depth(&flow), [("token stack", 0)]);
    flow.joinat(0x30, 0x08, &mut Silent).unwrap();
    assert_eq!(depth(&flow), [("token stack", 1)]);
    assert_eq!(flow.depths()[0].room, u32::try_from(Limits::default().stack_entries).ok());
}

// After linked code of a node, the flow state is the same as after the instructions of the node, except for the program
// counter.
#[test]
fn lanes_that_leave_a_node_wait_as_those_that_leave_by_an_instruction() {
    let mut flow = warp(0b1111);
    flow.call(0x100, 0x08, &mut Silent).unwrap();
    flow.breakaddr(0x140, 0x108, &mut Silent).unwrap();
    flow.break_(Mask(0b0001), 0x110, &mut Silent).unwrap();
    let mut passed = flow.clone();
    flow.break_(Mask(0b0010), 0x118, &mut Silent).unwrap();
    flow.ret(Mask(0b0100), 0x120, &mut Silent).unwrap();
    passed.stay(Mask(0b1000), Mask(0b0010), Mask(0b0100));
    for flow in [flow, passed] {
        let why = [0, 1, 2, 3].map(|lane| flow.why(Lane(lane)));
        // Lane 2 waits for the return of the call, and not at the BREAK entry inside the call.
        assert_eq!(why, [Why::Break, Why::Break, Why::Parked { pc: 0x08 }, Why::Active]);
    }
}

// Checks the reason that a debugger shows for each inactive lane.
#[test]
fn every_lane_can_say_why_it_is_not_running() {
    let mut flow = warp(0b1_1111);
    flow.breakaddr(0x80, 0x08, &mut Silent).unwrap();
    flow.break_(Mask(0b0_0001), 0x10, &mut Silent).unwrap();
    flow.joinat(0x40, 0x18, &mut Silent).unwrap();
    flow.bra(0x40, 0x20, Mask(0b0_0010), &mut Silent).unwrap();
    flow.join(&mut Silent).unwrap(); // lane 1 waits at the join, lanes 2 to 4 run
    flow.bra(0x60, 0x28, Mask(0b1_1000), &mut Silent).unwrap();
    flow.call(0x100, 0x68, &mut Silent).unwrap();
    flow.ret(Mask(0b0_1000), 0x108, &mut Silent).unwrap();
    let why: Vec<Why> = (0..6).map(|lane| flow.why(Lane(lane))).collect();
    assert_eq!(
        why,
        [
            Why::Break,
            Why::Parked { pc: 0x40 },
            Why::Parked { pc: 0x28 },
            Why::Parked { pc: 0x68 },
            Why::Active,
            Why::Uncovered
        ]
    );
    let rows: Vec<_> = flow.stack().into_iter().map(|row| row.kind).collect();
    assert_eq!(rows, ["CALL", "BRANCH", "JOINAT", "BREAK"]);
}

#[test]
fn meet_is_bra_and_the_first_arrival() {
    for (broken, taken) in (0..64u64).flat_map(|broken| (0..64u64).map(move |taken| (broken, taken))) {
        let mut flow = warp(0x3f);
        flow.breakaddr(0x80, 0x08, &mut Silent).unwrap();
        flow.break_(Mask(broken), 0x10, &mut Silent).unwrap();
        flow.joinat(0x30, 0x18, &mut Silent).unwrap();
        let (taken, not) = (Mask(taken) & flow.active(), flow.active() - Mask(taken));
        if taken.is_empty() || not.is_empty() {
            continue;
        }
        let mut met = flow.clone();
        flow.bra(0x20, 0x1c, taken, &mut Silent).unwrap();
        flow.advance(0x30);
        assert_eq!(flow.join(&mut Silent), Ok(Join::Away));
        let last = flow.active();
        assert_eq!(last, if TAKEN_SIDE_RUNS_FIRST { not } else { taken });
        flow.advance(0x30);
        assert!(met.meet(0x30, last));
        assert_eq!(met, flow);
    }
}

#[test]
fn meet_leaves_to_bra_what_would_be_a_fault() {
    let limits = Limits { stack_entries: 1, calls: None };
    let mut full = Flow::new(0, Mask(3), limits, Mode::Strict);
    full.joinat(0x30, 0x08, &mut Silent).unwrap();
    let mut quad = warp(3);
    quad.quadon(0x08, &mut Silent).unwrap();
    for mut flow in [full, quad] {
        let before = flow.clone();
        assert!(!flow.meet(0x30, Mask(1)));
        assert_eq!(flow, before);
        assert!(flow.bra(0x20, 0x10, Mask(1), &mut Silent).is_err());
    }
}

#[test]
fn an_if_leaves_the_warp_as_it_was_where_two_entries_have_room() {
    for (broken, taken) in (0..64u64).flat_map(|broken| (0..64u64).map(move |taken| (broken, taken))) {
        let mut flow = warp(0x3f);
        flow.breakaddr(0x80, 0x08, &mut Silent).unwrap();
        flow.break_(Mask(broken), 0x10, &mut Silent).unwrap();
        if flow.active().is_empty() || flow.tokens().is_empty() {
            continue; // All lanes have left the loop.
        }
        flow.advance(0x30);
        let before = flow.clone();
        assert!(flow.has_room_for(2));
        flow.joinat(0x30, 0x18, &mut Silent).unwrap();
        let divides = flow.bra(0x20, 0x1c, Mask(taken), &mut Silent).unwrap() == Decision::Divergent;
        flow.advance(0x30);
        if divides {
            assert_eq!(flow.join(&mut Silent), Ok(Join::Away));
            flow.advance(0x30);
        }
        assert_eq!(flow.join(&mut Silent), Ok(Join::Run));
        assert_eq!(flow, before);
    }
}

#[test]
fn there_is_room_for_as_many_entries_as_control_flow_can_push() {
    for (entries, pushed) in (0..6).flat_map(|entries| (0..=entries).map(move |pushed| (entries, pushed))) {
        let limits = Limits { stack_entries: entries, calls: None };
        let mut flow = Flow::new(0, Mask(3), limits, Mode::Strict);
        for _ in 0..pushed {
            flow.joinat(0x30, 0x08, &mut Silent).unwrap();
        }
        for wanted in 1..8 {
            let mut pushing = flow.clone();
            let fits = (0..wanted).all(|_| pushing.joinat(0x30, 0x08, &mut Silent).is_ok());
            assert_eq!(flow.has_room_for(wanted), fits, "{wanted} to {pushed} of {entries}");
        }
    }
    let mut quad = warp(3);
    quad.quadon(0x08, &mut Silent).unwrap();
    assert!(!quad.has_room_for(1) && quad.joinat(0x30, 0x10, &mut Silent).is_err());
}

#[test]
fn what_happens_is_announced() {
    let mut seen = Recorder::default();
    let mut flow = warp(0b11);
    flow.joinat(0x30, 0x08, &mut seen).unwrap();
    flow.bra(0x20, 0x10, Mask(0b01), &mut seen).unwrap();
    flow.join(&mut seen).unwrap();
    flow.advance(0x30);
    flow.join(&mut seen).unwrap();
    assert_eq!(
        seen.events,
        [
            Event::Push { kind: "JOINAT" },
            Event::Push { kind: "BRANCH" },
            Event::Diverge { taken: Mask(0b01), not: Mask(0b10) },
            Event::Jump { to: 0x20 },
            Event::Pop { kind: "BRANCH" },
            Event::Jump { to: 0x10 },
            Event::Resume { mask: Mask(0b10) },
            Event::Pop { kind: "JOINAT" },
            Event::Reconverge { mask: Mask(0b11) },
        ]
    );
}

#[test]
fn no_lanes_reconverge_where_none_diverged() {
    let mut seen = Recorder::default();
    let mut flow = warp(0b11);
    flow.joinat(0x30, 0x08, &mut seen).unwrap();
    flow.advance(0x30);
    flow.join(&mut seen).unwrap();
    assert_eq!(seen.events, [Event::Push { kind: "JOINAT" }, Event::Pop { kind: "JOINAT" }]);
}

#[test]
fn lanes_that_leave_last_reconverge_with_those_that_left_before() {
    let mut seen = Recorder::default();
    let mut flow = warp(0b11);
    flow.breakaddr(0x30, 0x08, &mut Silent).unwrap();
    flow.break_(Mask(0b01), 0x10, &mut Silent).unwrap();
    flow.break_(Mask(0b10), 0x18, &mut seen).unwrap();
    assert_eq!(seen.events.last(), Some(&Event::Reconverge { mask: Mask(0b11) }));
    // After the first side has ended, the second side runs alone.
    let (mut seen, mut flow) = (Recorder::default(), warp(0b11));
    flow.bra(0x20, 0x10, Mask(0b01), &mut Silent).unwrap();
    flow.exit(&mut seen).unwrap();
    assert_eq!(seen.events.last(), Some(&Event::Resume { mask: Mask(0b10) }));
}

#[test]
fn a_join_ahead_of_its_instruction_is_executed_once() {
    let mut flow = warp(0b11);
    flow.joinat(0x30, 0x08, &mut Silent).unwrap();
    flow.bra(0x20, 0x10, Mask(0b01), &mut Silent).unwrap();
    assert_eq!(flow.join_leads(), Some(Join::Away));
    flow.join(&mut Silent).unwrap();
    flow.advance(0x30);
    assert_eq!(flow.join_leads(), Some(Join::Run));
    let mut seen = Recorder::default();
    flow.join_ahead(&mut seen).unwrap();
    assert_eq!(seen.events.last(), Some(&Event::Reconverge { mask: Mask(0b11) }));
    assert_eq!((flow.active(), flow.arrived(), flow.join_leads()), (Mask(0b11), Mask(0b10), None));
    assert_eq!(flow.join(&mut seen), Ok(Join::Run));
    assert_eq!((seen.events.len(), flow.arrived(), flow.tokens().len()), (2, Mask(0b11), 0));
}
