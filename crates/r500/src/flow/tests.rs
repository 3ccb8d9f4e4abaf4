//! Tests of the rules of flow control. Each rule of the manual has one test.
//!
//! Tests use four lanes unless a rule needs more. The masks `T` and `F` hold the lanes whose condition is true and the
//! lanes whose condition is false. The instruction words are the canonical words of r500.md 5.5.

use reconverge_simt::random::Random;
use reconverge_simt::{Event, FlowView, Issue, Lane, Mask, Mode, Recorder, Why};

use super::{
    Decision, Flow, LeftOpen, Limits, LoopConstant, LoopStep, Step, Undefined, reads_alu_result,
    reads_boolean, reads_predicate,
};
use crate::inst::Fc;
use crate::words::{CmnInst, FcAddr, FcInst, FcMode};

const ALL: Mask = Mask(0b1111);
const FULL: Limits = Limits::recommended(FcMode::FULL);

fn flow() -> Flow {
    Flow::new(10, ALL, ALL, FcMode::FULL, FULL, Mode::Strict)
}

fn lenient() -> Flow {
    Flow::new(10, ALL, ALL, FcMode::FULL, FULL, Mode::Lenient)
}

const I3: LoopConstant = LoopConstant { count: 3, start: 5, step: 2 };

/// Returns an FC instruction with the given words 0 and 2, jump address 100 and an integer constant.
fn step_at(
    (common, fc_inst): (u32, u32),
    jump_global: bool,
    (constant, boolean): (LoopConstant, bool),
    (offset, mode): (u16, FcMode),
) -> Step {
    let inst = FcInst::unpack(fc_inst).expect("a valid FC word");
    let addr = FcAddr { bool_addr: 0, int_addr: 0, jump_addr: 100, jump_global };
    let common = CmnInst::unpack(common).expect("a valid word 0");
    Step::new(&common, &Fc { inst, addr }, (boolean.into(), &[constant]), offset, mode)
}

/// Word 0 of an FC instruction that uses the red predicate bit.
const FC_BY_RED: u32 = 2 | 2 << 3;

fn step_of(fc_inst: u32, constant: LoopConstant) -> Step {
    step_at((FC_BY_RED, fc_inst), false, (constant, false), (0, FcMode::FULL))
}

/// Returns the lanes that a JUMP_FUNC makes vote to jump.
fn wants(func: u8, alu: Mask, predicate: Mask, boolean: bool) -> Mask {
    let word = (FC_BY_RED, u32::from(func) << 8);
    let step = step_at(word, false, (I3, boolean), (0, FcMode::FULL));
    step.want(alu, &[predicate, Mask::NONE, Mask::NONE, Mask::NONE])
}

/// Executes an FC instruction whose word 2 is `fc_inst` and whose jump address is 100. `alu` is the ALU result.
fn run_with(flow: &mut Flow, fc_inst: u32, alu: Mask, constant: LoopConstant) -> Result<Decision, Undefined> {
    let step = step_of(fc_inst, constant);
    flow.execute(&step, step.want(alu, &[Mask::NONE; 4]))
}

fn run(flow: &mut Flow, fc_inst: u32, alu: Mask) -> bool {
    run_with(flow, fc_inst, alu, I3).expect("defined behaviour").jumped
}

const IF: u32 = 0x0200_0f00;
const IF_ELSE: u32 = 0x0a00_0f00;
const ELSE: u32 = 0x0401_0010;
const ENDIF: u32 = 0x0101_0020;
const LOOP: u32 = 0x0000_0021;
const ENDLOOP: u32 = 0x0000_ff22;
const REP: u32 = 0x0000_0023;
const ENDREP: u32 = 0x0000_ff24;
const BREAK_IF: u32 = 0x0000_f005;
const BREAK_DEPTH_1: u32 = 0x0401_ff05;
const CONTINUE_IF: u32 = 0x0000_f007;
const CONTINUE_DEPTH_1: u32 = 0x0401_ff07;
const CALL: u32 = 0x0800_ffa0;
const CALL_IF: u32 = 0x0800_f0a0;
const RETURN: u32 = 0x0401_ff40;
const IGNORE_UNCOVERED: u32 = 1 << 28;

// ---- JUMP_FUNC (REG)

#[test]
fn jump_func_is_indexed_by_alu_result_predicate_and_boolean() {
    for (index, (alu, predicate, boolean)) in
        (0..8).map(|index| (index, (index & 4 != 0, index & 2 != 0, index & 1 != 0)))
    {
        let mask = |yes: bool| if yes { ALL } else { Mask::NONE };
        for func in 0..=255u8 {
            let expected = mask(func >> index & 1 != 0);
            let got = wants(func, mask(alu), mask(predicate), boolean) & ALL;
            assert_eq!(got, expected, "JUMP_FUNC {func:#04x}, index {index}");
        }
    }
}

/// A JUMP_FUNC reads exactly the inputs on which its result depends.
#[test]
fn a_jump_func_reads_what_its_answer_depends_on() {
    let mask = |yes: bool| if yes { ALL } else { Mask::NONE };
    for func in 0..=255u8 {
        let answer = |alu, predicate, boolean| wants(func, mask(alu), mask(predicate), boolean) & ALL;
        let depends = |answer: &dyn Fn(bool, bool, bool) -> Mask| {
            let others = [(false, false), (false, true), (true, false), (true, true)];
            others.into_iter().any(|(a, b)| answer(false, a, b) != answer(true, a, b))
        };
        let expected = [
            depends(&|this, a, b| answer(this, a, b)),
            depends(&|this, a, b| answer(a, this, b)),
            depends(&|this, a, b| answer(a, b, this)),
        ];
        let found = [reads_alu_result(func), reads_predicate(func), reads_boolean(func)];
        assert_eq!(found, expected, "JUMP_FUNC {func:#04x}");
    }
}

#[test]
fn the_useful_jump_funcs_mean_what_the_reference_says() {
    let (alu, predicate) = (Mask(0b0011), Mask(0b0101));
    let want = |func, boolean| wants(func, alu, predicate, boolean) & ALL;
    assert_eq!(want(0x00, false), Mask::NONE);
    assert_eq!(want(0x0f, false), Mask(0b1100));
    assert_eq!(want(0xf0, false), Mask(0b0011));
    assert_eq!(want(0x33, false), Mask(0b1010));
    assert_eq!(want(0xcc, false), Mask(0b0101));
    assert_eq!((want(0x55, false), want(0x55, true)), (ALL, Mask::NONE));
    assert_eq!((want(0xaa, false), want(0xaa, true)), (Mask::NONE, ALL));
    assert_eq!(want(0xff, false), ALL);
}

#[test]
fn only_some_jump_funcs_look_at_the_alu_result() {
    for func in [0x00, 0x33, 0xcc, 0x55, 0xaa, 0xff] {
        assert!(!reads_alu_result(func), "{func:#x}");
    }
    assert!(reads_alu_result(0x0f) && reads_alu_result(0xf0) && reads_alu_result(0x80));
}

// ---- Votes (REG, JUMP_ANY; CTM guide p. 37)

#[test]
fn all_jumps_when_every_voter_wants_to() {
    let mut flow = flow();
    assert!(!run(&mut flow, 0x0000_f000, Mask(0b0111)));
    assert_eq!(flow.pc(), 11);
    assert!(run(&mut flow, 0x0000_f000, ALL));
    assert_eq!(flow.pc(), 100);
}

#[test]
fn any_jumps_when_one_voter_wants_to() {
    let mut flow = flow();
    assert!(!run(&mut flow, 0x0000_f020, Mask::NONE));
    assert!(run(&mut flow, 0x0000_f020, Mask(0b0100)));
}

#[test]
fn without_voters_all_jumps_and_any_stays() {
    let mut alone = Flow::new(10, ALL, Mask::NONE, FcMode::FULL, FULL, Mode::Strict);
    assert!(run(&mut alone, IGNORE_UNCOVERED, ALL), "ALL without voters");
    assert!(!run(&mut alone, 0x0000_ff20 | IGNORE_UNCOVERED, ALL), "ANY without voters");
}

#[test]
fn ignore_uncovered_removes_uncovered_lanes_from_the_voters() {
    let covered = Mask(0b0011);
    let mut flow = Flow::new(10, ALL, covered, FcMode::FULL, FULL, Mode::Strict);
    assert!(!run(&mut flow, 0x0000_f000, covered), "uncovered lanes vote to stay");
    assert!(run(&mut flow, 0x0000_f000 | IGNORE_UNCOVERED, covered), "they have no vote");
}

#[test]
fn uncovered_lanes_follow_the_branch_all_the_same() {
    let mut flow = Flow::new(10, ALL, Mask(0b0011), FcMode::FULL, FULL, Mode::Strict);
    assert!(!run(&mut flow, IF | IGNORE_UNCOVERED, Mask(0b0101)));
    assert_eq!(flow.active(), Mask(0b0101));
}

#[test]
fn a_killed_lane_is_uncovered_from_the_kill_on() {
    let mut flow = flow();
    flow.kill(Mask(0b0001));
    assert_eq!(flow.covered(), Mask(0b1110));
    assert_eq!(flow.active(), ALL, "the lane continues as a helper");
    assert_eq!(flow.why(Lane(0)), Why::Uncovered);
}

// ---- Branch counters (CTM guide p. 35; REG, B_OP0 and B_OP1)

#[test]
fn incr_on_stay_puts_lanes_that_wanted_to_jump_to_sleep_at_zero() {
    let mut flow = flow();
    assert!(!run(&mut flow, IF, Mask(0b0011)));
    assert_eq!(flow.active(), Mask(0b0011));
    assert_eq!(flow.why(Lane(2)), Why::Branch { depth: 0 });
}

#[test]
fn incr_on_jump_puts_lanes_that_wanted_to_stay_to_sleep() {
    let mut flow = flow();
    assert!(run(&mut flow, CALL_IF, Mask(0b0001)));
    assert_eq!(flow.active(), Mask(0b0001));
    assert_eq!(flow.why(Lane(1)), Why::Branch { depth: 0 });
}

#[test]
fn incr_adds_one_to_every_sleeping_lane() {
    let mut flow = flow();
    run(&mut flow, IF, Mask(0b0111));
    run(&mut flow, IF, Mask(0b0011));
    run(&mut flow, IF, Mask(0b0001));
    let depth = |lane| flow.why(Lane(lane));
    assert_eq!(depth(3), Why::Branch { depth: 2 });
    assert_eq!(depth(2), Why::Branch { depth: 1 });
    assert_eq!(depth(1), Why::Branch { depth: 0 });
}

#[test]
fn decr_wakes_lanes_below_zero() {
    let mut flow = flow();
    run(&mut flow, IF, Mask(0b0111));
    run(&mut flow, IF, Mask(0b0011));
    run(&mut flow, ENDIF, ALL);
    assert_eq!(flow.active(), Mask(0b0111));
    run(&mut flow, ENDIF, ALL);
    assert_eq!(flow.active(), ALL);
}

/// CTM guide p. 40, merged ENDIFs.
#[test]
fn b_pop_cnt_closes_several_constructs_at_once() {
    let mut flow = flow();
    run(&mut flow, IF, Mask(0b0111));
    run(&mut flow, IF, Mask(0b0011));
    run(&mut flow, IF, Mask(0b0001));
    run(&mut flow, 0x0100_0020 | 2 << 16, ALL);
    assert_eq!(flow.active(), Mask(0b0111), "two levels closed, one open");
    run(&mut flow, 0x0100_0020 | 1 << 16, ALL);
    assert_eq!(flow.active(), ALL);
}

/// CTM guide p. 40: the ENDIF of an inner if may be merged with the ENDIF of the outer if. A jump of the inner if goes
/// past the merged ENDIF. So the inner if itself has to close both levels when it jumps.
#[test]
fn an_inner_if_with_a_merged_endif_decrements_when_it_jumps() {
    let mut flow = flow();
    run(&mut flow, IF, Mask(0b0011));
    assert!(run(&mut flow, 0x0600_0f00 | 1 << 16, Mask::NONE));
    assert_eq!(flow.active(), ALL, "the outer if has been closed by the jump");
}

#[test]
fn a_branch_that_nobody_enters_is_jumped_over() {
    let mut flow = flow();
    assert!(run(&mut flow, IF, Mask::NONE));
    assert_eq!((flow.pc(), flow.active()), (100, ALL));
}

// ---- B_ELSE (REG; CTM guide p. 37)

#[test]
fn else_wakes_only_the_innermost_lanes() {
    let mut flow = flow();
    run(&mut flow, IF_ELSE, Mask(0b0111));
    run(&mut flow, IF_ELSE, Mask(0b0011));
    assert!(!run(&mut flow, ELSE, ALL));
    assert_eq!(flow.active(), Mask(0b0100));
    assert_eq!(flow.why(Lane(3)), Why::Branch { depth: 1 });
    assert_eq!(flow.why(Lane(0)), Why::Branch { depth: 0 });
}

#[test]
fn lanes_switched_off_by_their_own_else_vote_to_jump() {
    let mut flow = flow();
    // All lanes enter the then-part. Then the ELSE switches off every lane, so every lane votes to jump. The ELSE does
    // not reactivate any lane.
    run(&mut flow, IF_ELSE, ALL);
    assert!(run(&mut flow, ELSE, ALL));
    assert_eq!(flow.active(), ALL, "the jump decrements, so the lanes resume after the ENDIF");
}

/// r500.md 5.5: if all voters skip the then-part, the group also jumps over the ELSE.
#[test]
fn a_skipped_if_with_else_counts_one_level_for_lanes_that_were_off() {
    let mut flow = flow();
    run(&mut flow, IF, Mask(0b0011));
    assert!(run(&mut flow, IF_ELSE, Mask::NONE));
    assert_eq!(flow.active(), Mask(0b0011), "the else part runs");
    assert_eq!(flow.why(Lane(2)), Why::Branch { depth: 1 });
    run(&mut flow, ENDIF, ALL);
    assert_eq!(flow.why(Lane(2)), Why::Branch { depth: 0 });
}

/// r500.md 7, E14.
#[test]
fn if_else_endif_walks_as_in_the_worked_example() {
    let mut flow = flow();
    assert!(!run(&mut flow, 0x1a00_0f00, Mask(0b0011)));
    assert_eq!(flow.active(), Mask(0b0011));
    assert!(!run(&mut flow, ELSE, ALL));
    assert_eq!(flow.active(), Mask(0b1100));
    assert!(!run(&mut flow, ENDIF, ALL));
    assert_eq!(flow.active(), ALL);
}

// ---- Loops (CTM guide p. 37)

#[test]
fn a_loop_runs_as_often_as_its_count() {
    let mut flow = flow();
    let mut rounds = 0;
    run(&mut flow, LOOP, ALL);
    loop {
        rounds += 1;
        if !run(&mut flow, ENDLOOP, ALL) {
            break;
        }
    }
    assert_eq!(rounds, 3);
    assert!(flow.stack().is_empty());
}

#[test]
fn al_starts_at_kg_and_steps_by_kb() {
    let mut flow = flow();
    assert!(!flow.has_al());
    run(&mut flow, LOOP, ALL);
    assert_eq!(flow.al(), 5);
    run(&mut flow, ENDLOOP, ALL);
    assert_eq!(flow.al(), 7);
}

#[test]
fn al_may_become_negative() {
    let mut flow = flow();
    let down = LoopConstant { count: 3, start: 1, step: -128 };
    run_with(&mut flow, LOOP, ALL, down).unwrap();
    run_with(&mut flow, ENDLOOP, ALL, down).unwrap();
    assert_eq!(flow.al(), -127);
}

#[test]
fn a_count_of_zero_jumps_whatever_the_votes_say() {
    for op in [LOOP, REP] {
        let mut flow = flow();
        let zero = LoopConstant { count: 0, ..I3 };
        assert!(run_with(&mut flow, op, ALL, zero).unwrap().jumped);
        assert!(flow.stack().is_empty(), "nothing is pushed");
    }
}

#[test]
fn the_last_iteration_does_not_jump_back_whatever_the_votes_say() {
    let mut flow = flow();
    let once = LoopConstant { count: 1, ..I3 };
    run_with(&mut flow, REP, ALL, once).unwrap();
    assert!(!run_with(&mut flow, ENDREP, ALL, once).unwrap().jumped);
}

// ---- BREAK and CONTINUE (CTM guide p. 37)

#[test]
fn a_break_that_all_want_jumps_and_pops() {
    let mut flow = flow();
    run(&mut flow, LOOP, ALL);
    assert!(run(&mut flow, BREAK_IF, ALL));
    assert!(flow.stack().is_empty());
    assert_eq!((flow.pc(), flow.active()), (100, ALL));
}

#[test]
fn a_break_that_some_want_switches_them_off_until_the_frame_is_popped() {
    let mut flow = flow();
    run(&mut flow, LOOP, ALL);
    assert!(!run(&mut flow, BREAK_IF, Mask(0b0011)));
    assert_eq!(flow.active(), Mask(0b1100));
    assert_eq!(flow.why(Lane(0)), Why::Break);
    assert!(run(&mut flow, ENDLOOP, ALL), "the others iterate");
    assert_eq!(flow.active(), Mask(0b1100));
    assert!(run(&mut flow, BREAK_IF, ALL), "lanes that broke have no influence");
    assert_eq!(flow.active(), ALL);
}

#[test]
fn a_lane_in_a_branch_of_the_loop_stops_a_break_from_jumping() {
    let mut flow = flow();
    run(&mut flow, LOOP, ALL);
    run(&mut flow, IF, Mask(0b0011));
    assert!(!run(&mut flow, BREAK_DEPTH_1, ALL));
    assert_eq!(flow.active(), Mask::NONE);
    run(&mut flow, ENDIF, ALL);
    assert_eq!(flow.active(), Mask(0b1100));
}

#[test]
fn a_break_out_of_an_if_that_all_entered_unwinds_it() {
    let mut flow = flow();
    run(&mut flow, IF, Mask(0b0111));
    run(&mut flow, LOOP, ALL);
    run(&mut flow, IF, ALL);
    assert_eq!(flow.why(Lane(3)), Why::Branch { depth: 1 });
    assert!(run(&mut flow, BREAK_DEPTH_1, ALL));
    assert_eq!(flow.why(Lane(3)), Why::Branch { depth: 0 });
    assert_eq!(flow.active(), Mask(0b0111));
}

#[test]
fn a_lane_that_continued_stops_a_break_but_not_another_continue() {
    let mut flow = flow();
    run(&mut flow, LOOP, ALL);
    assert!(!run(&mut flow, CONTINUE_IF, Mask(0b0001)));
    assert!(!run(&mut flow.clone(), BREAK_IF, ALL));
    assert!(run(&mut flow, CONTINUE_IF, ALL));
}

#[test]
fn uncovered_lanes_do_not_stop_a_break_that_ignores_them() {
    let mut flow = flow();
    run(&mut flow, LOOP, ALL);
    run(&mut flow, IF, Mask(0b0111));
    flow.kill(Mask(0b1000));
    assert!(!run(&mut flow.clone(), BREAK_DEPTH_1, ALL));
    assert!(run(&mut flow, BREAK_DEPTH_1 | IGNORE_UNCOVERED, ALL));
}

#[test]
fn lanes_that_continued_rejoin_at_the_loop_end() {
    let mut flow = flow();
    run(&mut flow, LOOP, ALL);
    run(&mut flow, CONTINUE_IF, Mask(0b0011));
    assert_eq!(flow.why(Lane(0)), Why::Continue);
    assert_eq!(flow.active(), Mask(0b1100));
    assert!(run(&mut flow, ENDLOOP, ALL));
    assert_eq!(flow.active(), ALL);
}

#[test]
fn a_continue_that_all_want_jumps_and_unwinds_its_ifs() {
    let mut flow = flow();
    run(&mut flow, LOOP, ALL);
    run(&mut flow, IF, ALL);
    assert!(run(&mut flow, CONTINUE_DEPTH_1, ALL));
    assert_eq!((flow.pc(), flow.active()), (100, ALL));
    assert_eq!(flow.stack().len(), 1, "the frame stays");
}

#[test]
fn lanes_that_broke_out_of_an_inner_loop_wake_with_it_only() {
    let mut flow = flow();
    run(&mut flow, LOOP, ALL);
    run(&mut flow, BREAK_IF, Mask(0b0001));
    run(&mut flow, REP, ALL);
    run(&mut flow, 0x0000_f006, Mask(0b0010));
    assert!(run(&mut flow, 0x0000_f006, ALL));
    assert_eq!(flow.active(), Mask(0b1110), "lane 0 waits for the outer loop");
}

// ---- Calls (CTM guide pp. 36-37)

#[test]
fn the_address_stack_changes_only_on_a_jump() {
    let mut flow = flow();
    assert!(!run(&mut flow, CALL_IF, Mask::NONE));
    assert!(flow.stack().is_empty());
}

#[test]
fn lanes_that_were_not_called_wake_on_return() {
    let mut flow = flow();
    run(&mut flow, IF, Mask(0b0111));
    run(&mut flow, CALL_IF, Mask(0b0011));
    assert_eq!(flow.active(), Mask(0b0011));
    run(&mut flow, RETURN, ALL);
    assert_eq!(flow.active(), Mask(0b0111), "the lanes of the outer if stay off");
}

/// CTM guide p. 36: a return becomes conditional if it has INCR on stay. The conditional return adds one level, so the
/// pop count of the following return is one higher.
#[test]
fn a_conditional_return_waits_for_the_later_one() {
    let mut flow = flow();
    run(&mut flow, CALL, ALL);
    assert!(!run(&mut flow, 0x0601_f040, Mask(0b0001)), "return if, INCR on stay, DECR 1 on jump");
    assert_eq!(flow.active(), Mask(0b1110));
    assert!(run(&mut flow, 0x0402_ff40, ALL));
    assert_eq!((flow.pc(), flow.active()), (11, ALL));
}

#[test]
fn jump_addr_counts_from_the_offset_unless_global() {
    for (jump_global, pc) in [(false, 107), (true, 100)] {
        let mut flow = flow();
        let step = step_at((2, 0x0000_ff00), jump_global, (I3, false), (7, FcMode::FULL));
        flow.execute(&step, ALL).unwrap();
        assert_eq!(flow.pc(), pc);
    }
}

// ---- Undefined behavior: strict mode traps, lenient mode continues

fn strict_error(flow: &mut Flow, fc_inst: u32, alu: Mask) -> Undefined {
    run_with(flow, fc_inst, alu, I3).expect_err("undefined behaviour")
}

#[test]
fn a_fifth_open_loop_overflows_the_loop_stack() {
    let mut strict = flow();
    (0..4).for_each(|_| assert!(!run(&mut strict, LOOP, ALL)));
    assert_eq!(strict_error(&mut strict, LOOP, ALL), Undefined::LoopStackOverflow { limit: 4 });
    let mut grows = lenient();
    (0..9).for_each(|_| assert!(!run(&mut grows, LOOP, ALL)));
}

#[test]
fn an_end_of_loop_without_a_loop_underflows() {
    for word in [ENDLOOP, ENDREP, BREAK_IF, CONTINUE_IF] {
        let op = FcInst::unpack(word).unwrap().op;
        assert_eq!(strict_error(&mut flow(), word, ALL), Undefined::LoopStackUnderflow { op });
        assert!(run_with(&mut lenient(), word, ALL, I3).is_ok());
    }
}

#[test]
fn a_break_of_the_wrong_kind_is_undefined() {
    let mut flow = flow();
    run(&mut flow, REP, ALL);
    let op = crate::words::FcOp::BREAKLOOP;
    assert_eq!(strict_error(&mut flow, BREAK_IF, ALL), Undefined::LoopKind { op });
}

#[test]
fn a_fifth_open_call_overflows_the_address_stack() {
    let mut strict = flow();
    (0..4).for_each(|_| assert!(run(&mut strict, CALL, ALL)));
    assert_eq!(strict_error(&mut strict, CALL, ALL), Undefined::AddressStackOverflow { limit: 4 });
}

#[test]
fn a_return_without_a_call_underflows() {
    assert_eq!(strict_error(&mut flow(), RETURN, ALL), Undefined::AddressStackUnderflow);
    let mut lenient = lenient();
    assert!(run(&mut lenient, RETURN, ALL));
    assert_eq!(lenient.pc(), 100, "JUMP_ADDR is the target");
}

#[test]
fn even_lenient_stacks_stop_a_runaway() {
    let mut flow = lenient();
    let overflow = std::iter::repeat_with(|| run_with(&mut flow, CALL, ALL, I3)).find_map(Result::err);
    assert_eq!(overflow, Some(Undefined::AddressStackOverflow { limit: 512 }));
}

/// REG, US_FC_CTRL.
#[test]
fn partial_mode_has_neither_loops_nor_subroutines() {
    let partial = |mode| Flow::new(0, ALL, ALL, FcMode::PARTIAL, Limits::recommended(FcMode::PARTIAL), mode);
    for (word, what) in [(LOOP, "LOOP"), (CONTINUE_IF, "CONTINUE"), (CALL, "PUSH"), (RETURN, "POP")] {
        let error = strict_error(&mut partial(Mode::Strict), word, ALL);
        assert_eq!(error, Undefined::NeedsFullMode { what });
    }
    assert!(!run(&mut partial(Mode::Strict), IF, Mask(0b0001)));
    assert!(!run(&mut partial(Mode::Lenient), LOOP, ALL));
}

/// CTM guide p. 36.
#[test]
fn a_return_inside_a_dynamic_branch_leaves_lanes_behind() {
    let mut flow = flow();
    run(&mut flow, CALL, ALL);
    run(&mut flow, IF, Mask(0b0011));
    let expected = Undefined::ReturnInsideBranch { lanes: Mask(0b1100) };
    assert_eq!(strict_error(&mut flow, 0x0000_ff40, ALL), expected);
}

/// CTM guide p. 36.
#[test]
fn a_return_inside_a_loop_is_undefined() {
    let mut flow = flow();
    run(&mut flow, CALL, ALL);
    run(&mut flow, LOOP, ALL);
    assert_eq!(strict_error(&mut flow, RETURN, ALL), Undefined::ReturnInsideLoop);
}

/// r500.md D5: Mesa's BGNLOOP jumps to its own ENDLOOP if no lane is active. The ENDLOOP then pops a frame that was
/// never pushed.
#[test]
fn a_mesa_loop_reached_by_nobody_underflows() {
    let mut flow = Flow::new(10, ALL, Mask::NONE, FcMode::FULL, FULL, Mode::Strict);
    assert!(run(&mut flow, 0x1000_0001, ALL), "ALL without voters jumps to the ENDLOOP");
    let op = crate::words::FcOp::ENDLOOP;
    assert_eq!(strict_error(&mut flow, 0x1000_ff22, ALL), Undefined::LoopStackUnderflow { op });
}

/// CTM guide p. 36: lanes that a conditional return has switched off have already returned. The next return does not
/// reactivate these lanes, and strict mode does not report these lanes as missing.
#[test]
fn lanes_that_returned_early_are_not_left_behind_by_the_return_that_follows() {
    const RETURN_IF_STAYING: u32 = 0x0200_f040;
    const RETURN_SIMPLE: u32 = 0x0000_ff40;
    let mut flow = flow();
    run(&mut flow, CALL, ALL);
    assert!(!run(&mut flow, RETURN_IF_STAYING, Mask(0b0011)));
    assert_eq!(flow.active(), Mask(0b1100));
    assert!(run(&mut flow, RETURN_SIMPLE, ALL));
    assert_eq!(flow.active(), Mask(0b1100));
    // After two consecutive conditional returns, all lanes that voted to return at the first or second conditional
    // return have returned.
    let mut flow = self::flow();
    run(&mut flow, CALL, ALL);
    assert!(!run(&mut flow, RETURN_IF_STAYING, Mask(0b0001)));
    assert!(!run(&mut flow, RETURN_IF_STAYING, Mask(0b0010)));
    assert_eq!(flow.active(), Mask(0b1100));
    assert!(run(&mut flow, RETURN_SIMPLE, ALL));
    // A conditional return that neither jumps nor switches off a lane is not treated as a return.
    let mut flow = self::flow();
    run(&mut flow, CALL, ALL);
    assert!(!run(&mut flow, RETURN_SIMPLE & !0xff00 | 0xf000, Mask(0b0011)));
    assert_eq!(flow.active(), ALL);
    run(&mut flow, IF, Mask(0b1100));
    let left = Undefined::ReturnInsideBranch { lanes: Mask(0b0011) };
    assert_eq!(strict_error(&mut flow, RETURN_SIMPLE, ALL), left);
    // Lanes that an if has switched off have not returned.
    let mut flow = self::flow();
    run(&mut flow, CALL, ALL);
    run(&mut flow, IF, Mask(0b1100));
    let left = Undefined::ReturnInsideBranch { lanes: Mask(0b0011) };
    assert_eq!(strict_error(&mut flow, RETURN_SIMPLE, ALL), left);
}

/// docs/r500.md, "Counts": whether a branch diverges depends only on the lanes that are active at the vote.
#[test]
fn a_lane_that_its_own_else_switches_off_neither_wants_nor_refuses() {
    let mut flow = flow();
    run(&mut flow, IF_ELSE, Mask(0b0011));
    let decision = run_with(&mut flow, 0x0000_f010, Mask(0b0001), I3).expect("defined behaviour");
    let expected = Decision { jumped: false, wanted: Mask::NONE, unwilling: Mask(0b1100) };
    assert_eq!((decision, decision.diverged()), (expected, false));
}

/// CTM guide p. 37: a lane that B_ELSE switches off votes to jump, whether or not its condition holds.
#[test]
fn a_lane_that_its_own_else_switches_off_votes_jump_also_when_it_wants_to() {
    for want in [Mask(0b1100), Mask(0b1101), Mask(0b1111)] {
        let mut flow = flow();
        run(&mut flow, IF_ELSE, Mask(0b0011));
        let decision = run_with(&mut flow, 0x0000_f010, want, I3).expect("defined behaviour");
        assert_eq!(
            decision,
            Decision { jumped: true, wanted: Mask(0b1100), unwilling: Mask::NONE },
            "{want}"
        );
    }
}

#[test]
fn an_instruction_announces_divergence_stack_changes_waking_lanes_and_jumps_in_this_order() {
    let mut flow = flow();
    let mut events = |fc_inst, alu| {
        let step = step_of(fc_inst, I3);
        let want = step.want(alu, &[Mask::NONE; 4]) & ALL;
        let mut recorder = Recorder::default();
        flow.execute_observed(&step, want, &mut recorder).expect("defined behaviour");
        recorder.events
    };
    assert_eq!(events(LOOP, ALL), [Event::Push { kind: "LOOP" }]);
    // The lanes that leave the loop wait. All other lanes continue.
    let (leave, stay) = (Mask(0b0011), Mask(0b1100));
    assert_eq!(events(BREAK_IF, leave), [Event::Diverge { taken: stay, not: leave }]);
    let popped = [Event::Pop { kind: "BREAKLOOP" }, Event::Reconverge { mask: ALL }, Event::Jump { to: 100 }];
    assert_eq!(events(BREAK_IF, ALL), popped);
    // A call and its return are jumps. (A_OP)
    assert_eq!(events(CALL, ALL), [Event::Push { kind: "JUMP" }, Event::Jump { to: 100 }]);
    assert_eq!(events(RETURN, ALL)[..1], [Event::Pop { kind: "JUMP" }]);
}

/// A call inside a loop adds one stack entry, and its return removes the entry.
#[test]
fn both_stacks_count_for_what_an_instruction_announces() {
    let mut flow = flow();
    run(&mut flow, LOOP, ALL);
    let mut events = |fc_inst| {
        let mut recorder = Recorder::default();
        flow.execute_observed(&step_of(fc_inst, I3), ALL, &mut recorder).expect("defined behaviour");
        recorder.events
    };
    assert_eq!(events(CALL), [Event::Push { kind: "JUMP" }, Event::Jump { to: 100 }]);
    assert_eq!(events(RETURN), [Event::Pop { kind: "JUMP" }, Event::Jump { to: 12 }]);
}

#[test]
fn a_group_that_has_ended_issues_nothing_and_strict_mode_names_what_is_open() {
    let mut flow = flow();
    assert_eq!(flow.issue(), Some(Issue { pc: 10, mask: ALL }));
    run(&mut flow, LOOP, ALL);
    run(&mut flow, CALL, ALL);
    assert_eq!(flow.left_open(), None, "it has not ended");
    let closed = self::flow();
    for (mut flow, open) in [(flow, Some(LeftOpen { loops: 1, calls: 1 })), (closed, None)] {
        flow.end();
        assert_eq!((flow.issue(), flow.left_open()), (None, open));
    }
    let mut flow = lenient();
    run(&mut flow, LOOP, ALL);
    flow.end();
    assert_eq!(flow.left_open(), None);
}

/// The fast path of a loop instruction either does nothing or has the same effect as `execute`. The state, the events
/// and the position are then the same. In strict mode, the fast path does not execute anything undefined.
#[test]
fn a_step_in_a_loop_is_what_the_whole_instruction_does() {
    const BREAK_REP_IF: u32 = 0x0000_f006;
    const INSTRUCTIONS: [u32; 9] =
        [ENDLOOP, ENDREP, BREAK_IF, BREAK_REP_IF, CONTINUE_IF, BREAK_DEPTH_1, CONTINUE_DEPTH_1, IF, LOOP];
    let seed = 0x5eed_2480;
    println!("seed {seed:#x}");
    let mut random = Random::new(seed);
    let (mut next, mut back) = (0, 0);
    for _ in 0..20_000 {
        let mode = random.one_of(&[Mode::Strict, Mode::Lenient]);
        let mut flow = Flow::new(10, ALL, Mask(random.next().into()), FcMode::FULL, FULL, mode);
        for _ in 0..1 + random.below(4) {
            let word = random.one_of(&[LOOP, LOOP, REP, REP, IF, BREAK_IF, CONTINUE_IF]);
            let count = random.below(4) as u8;
            let lanes = Mask(random.next().into()) & ALL;
            let mut after = flow.clone();
            if run_with(&mut after, word, lanes, LoopConstant { count, start: 5, step: -3 }).is_ok() {
                flow = after;
            }
        }
        let word = random.one_of(&INSTRUCTIONS) | if random.once_in(3) { IGNORE_UNCOVERED } else { 0 };
        let instruction = step_at((2, word), random.once_in(2), (I3, false), (7, FcMode::FULL));
        let any = Mask(random.next().into());
        let want = random.one_of(&[Mask::NONE, ALL, any]);
        let (mut quick, mut events) = (flow.clone(), Recorder::default());
        let step = instruction.in_loop.and_then(|it| quick.step_in_loop(&it, want, &mut events));
        let Some(step) = step else {
            assert_eq!((quick, events.events.len()), (flow, 0), "{word:#010x}");
            continue;
        };
        let (mut whole, mut expected) = (flow.clone(), Recorder::default());
        let decision = whole.execute_observed(&instruction, want, &mut expected);
        assert_eq!(decision.map(|it| it.jumped), Ok(step == LoopStep::LoopBack), "{word:#010x} {flow:?}");
        assert_eq!((quick, events.events), (whole, expected.events), "{word:#010x} {flow:?}");
        match step {
            LoopStep::Next => next += 1,
            LoopStep::LoopBack => back += 1,
        }
    }
    assert!(next > 1000 && back > 100, "{next} {back}");
    // An instruction does not have a fast path in partial mode. An instruction that changes counters, changes stacks or
    // swaps lanes does not have a fast path in any mode.
    let of = |word, mode| step_at((2, word), false, (I3, false), (0, mode)).in_loop.is_some();
    assert!(of(ENDLOOP, FcMode::FULL) && !of(ENDLOOP, FcMode::PARTIAL));
    assert!(!of(ENDLOOP | 1 << 4, FcMode::FULL) && !of(BREAK_IF | 0x40, FcMode::FULL));
}

#[test]
fn a_step_of_a_loop_says_what_it_is() {
    let of = |word| {
        let step = step_at((2, word), false, (I3, false), (0, FcMode::FULL));
        (step.repeats(), step.breaks())
    };
    assert_eq!(of(ENDLOOP), (Some((true, 2)), false));
    assert_eq!(of(ENDREP), (Some((false, 2)), false));
    assert_eq!(of(ENDLOOP & !0x400), (None, false), "some lanes may not repeat the loop");
    assert_eq!(of(BREAK_IF | IGNORE_UNCOVERED), (None, true));
    assert_eq!(of(BREAK_IF | 0x40), (None, false), "it changes counters");
    assert_eq!(of(CONTINUE_IF), (None, false));
}

/// If no condition of [`Step::needs`] prevents compiled code from executing an instruction, compiled code and `execute`
/// give the same state.
#[test]
fn code_passes_instructions_as_the_flow_executes_them() {
    const INSTRUCTIONS: [u32; 8] =
        [IF, IF_ELSE, ELSE, ENDIF, BREAK_IF, 0x0000_f006, CONTINUE_IF, 0x0000_ff00];
    let seed = 0x5eed_2481;
    println!("seed {seed:#x}");
    let mut random = Random::new(seed);
    let mut passed = [0; 3];
    for _ in 0..20_000 {
        let mut flow =
            Flow::new(10, ALL, Mask(random.next().into()) | Mask(8), FcMode::FULL, FULL, Mode::Strict);
        for _ in 0..random.below(4) {
            let word = random.one_of(&[LOOP, REP, IF, ENDIF, BREAK_IF, CONTINUE_IF]);
            let (lanes, mut after) = (Mask(random.next().into()) & ALL, flow.clone());
            if run_with(&mut after, word, lanes, I3).is_ok() && after.active().any() {
                flow = after;
            }
        }
        let word = random.one_of(&INSTRUCTIONS) | if random.once_in(3) { IGNORE_UNCOVERED } else { 0 };
        let step = step_at((2, word), false, (I3, false), (0, FcMode::FULL));
        if step.needs() & flow.hindered() != 0 {
            passed[0] += 1;
            continue;
        }
        let want = Mask(random.next().into()) & flow.active();
        let mut whole = flow.clone();
        if step.breaks() && want != flow.active() {
            let pc = flow.pc() + 1;
            flow.stay(pc, flow.active() - want, want, (0, 0));
            assert!(whole.execute(&step, want).is_ok());
            assert_eq!(flow, whole, "{word:#010x}");
            passed[1] += 1;
        }
        for jump in [false, true] {
            let Some(to) = step.passes_to(flow.pc(), jump) else { continue };
            let mut whole = flow.clone();
            assert!(whole.execute(&step, if jump { flow.active() } else { Mask::NONE }).is_ok());
            let mut after = flow.clone();
            after.stay(to, flow.active(), Mask::NONE, (0, 0));
            assert_eq!(after, whole, "{word:#010x} {jump}");
            passed[2] += 1;
        }
    }
    assert!(passed.iter().all(|passed| *passed > 500), "{passed:?}");
}

/// After compiled code has run loop iterations, the state is the same as if the engine had executed the instructions of
/// these iterations one at a time.
#[test]
fn rounds_of_a_pass_are_those_of_the_instructions() {
    let mut flow = flow();
    assert_eq!(flow.rounds(true), None, "no loop is open");
    run(&mut flow, LOOP, ALL);
    assert_eq!((flow.rounds(true), flow.rounds(false)), (Some(2), None));
    let (mut passed, mut stepped) = (flow.clone(), flow.clone());
    assert!(run(&mut stepped, ENDLOOP, ALL) && run(&mut stepped, ENDLOOP, ALL));
    passed.stay(100, ALL, Mask::NONE, (2, I3.step));
    assert_eq!((&passed, passed.rounds(true)), (&stepped, Some(0)));
    // Some lanes leave the loop.
    let (mut passed, mut stepped) = (flow.clone(), flow.clone());
    assert!(!run(&mut stepped, BREAK_IF, Mask(0b0011)));
    passed.stay(stepped.pc(), Mask(0b1100), Mask(0b0011), (0, I3.step));
    assert_eq!(passed, stepped);
    // A lane waits for the next iteration.
    run(&mut flow, CONTINUE_IF, Mask(0b0001));
    assert_eq!(flow.rounds(true), None);
    let mut flow = self::flow();
    run(&mut flow, REP, ALL);
    assert_eq!((flow.rounds(true), flow.rounds(false)), (None, Some(2)));
}

// ---- Queries, and changes for fault injection

#[test]
fn what_is_open_and_how_deep_it_is_can_be_asked() {
    let mut flow = flow();
    let used = |flow: &Flow| flow.depths().iter().map(|depth| depth.used).collect::<Vec<_>>();
    assert_eq!(used(&flow), [0, 0, 0]);
    run(&mut flow, LOOP, ALL);
    run(&mut flow, IF, Mask(0b0011));
    run(&mut flow, IF, Mask(0b0001));
    // The outer if has switched off two lanes. After the inner if, the counters of these lanes are 1, so these lanes
    // are nested in two constructs.
    assert_eq!(used(&flow), [2, 1, 0]);
    let rooms = flow.depths().into_iter().map(|depth| depth.room);
    let Limits { branch_counter, loop_stack, address_stack } = FULL;
    let expected = [u32::from(branch_counter) + 1, loop_stack as u32, address_stack as u32];
    assert!(rooms.eq(expected.map(Some)), "{:?}", flow.depths());
    assert_eq!(flow.frames().iter().map(|frame| frame.count).collect::<Vec<_>>(), [3]);
    flow.set_loop_count(0, 1);
    assert_eq!(flow.frames()[0].count, 1);
    flow.set_loop_count(1, 7);
    assert_eq!(flow.frames().len(), 1);
}

#[test]
fn a_restart_covers_no_lanes_that_it_does_not_have() {
    let mut flow = flow();
    run(&mut flow, LOOP, ALL);
    flow.restart(7, Mask(0b0011), Mask(0b0110));
    assert_eq!((flow.pc(), flow.active(), flow.covered()), (7, Mask(0b0011), Mask(0b0010)));
    assert!(flow.frames().is_empty());
}

/// Compiled code executes a branch as a conditional if the choice of the jumping lanes affects only which side each
/// lane runs.
#[test]
fn lanes_meet_behind_a_branch_with_plain_sides() {
    let steps = |source: &str| {
        let program = crate::text::assemble(source).expect("it assembles").program;
        let setup = crate::setup::Setup::new(&program).expect("a program");
        let steps = setup.slots().filter_map(|(pc, slot)| Some((pc, slot.step?)));
        steps.collect::<Vec<_>>()
    };
    let compare = "ALU temp[1]._, alu_result[GE].r = MAD src0.r00, src0.111, src0.000 : src0=temp[0]\n";
    let add = "ALU temp[1].r = MAD src0.rrr, src0.111, src0.111 : src0=temp[0]\n";
    let end = "OUT out[A].rgb = MAD src0.rgb, src0.111, src0.000 : src0=temp[1]\n";
    let meets = |source: String| {
        let steps = steps(&source);
        let ends: Vec<_> = steps[1..].iter().map(|(pc, step)| (*pc, step)).collect();
        (1..=ends.len()).find_map(|count| steps[0].1.meets(steps[0].0, &ends[..count]))
    };
    assert_eq!(meets(format!("{compare}if alu\n{add}endif\n{end}")), Some(4));
    assert_eq!(meets(format!("{compare}if alu\n{add}else\n{add}{add}endif\n{end}")), Some(7));
    // A branch inside a side changes more than the active lanes.
    assert_eq!(meets(format!("{compare}if alu\n{add}if alu\n{add}endif\nendif\n{end}")), None);
}

/// In compiled code, lanes can leave a loop at a branch that contains only a BREAK.
#[test]
fn lanes_leave_a_loop_at_a_branch_with_a_break() {
    let source = |inside: &str| {
        format!(
            ".state US_FC_CTRL FULL_FC_EN=FULL\n.int 0 9 0 0\nloop int[0] -> behind\nbody:\n\
             if alu\n{inside}endif\nendloop int[0] -> body\nbehind:\n\
             OUT out[A].rgb = MAD src0.rgb, src0.111, src0.000 : src0=temp[1]\n"
        )
    };
    let leaves = |inside: &str| {
        let program = crate::text::assemble(&source(inside)).expect("it assembles").program;
        let setup = crate::setup::Setup::new(&program).expect("a program");
        let step = |pc: u16| setup.slot(pc).and_then(|slot| slot.step).expect("a flow instruction");
        step(1).leaves(1, [&step(2), &step(3)])
    };
    assert_eq!(leaves("break pop=1 ignore_uncovered -> behind\n"), Some(4));
    // No lane leaves the loop at a branch without a BREAK.
    assert_eq!(leaves("if alu\nendif\n"), None);
}
