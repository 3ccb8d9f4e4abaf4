//! Questions on which the documents are silent, unclear or contradictory. For each, a case separates its
//! interpretation from the others. The list is compared with docs/tesla.md.

use std::sync::Arc;

use reconverge_isa::Program;
use reconverge_simt::memory::{Buffer, Memory};
use reconverge_simt::texture::{Image, Level, Sampler, Shape};
use reconverge_simt::{FlowView, Lane, Mask, Mode, Options, Silent, Why};
use reconverge_tesla::barrier::{Barriers, Count};
use reconverge_tesla::flow::{Fault, Flow, Join, Limits};
use reconverge_tesla::inst::{Arith, Chip, Condition, Stage};
use reconverge_tesla::lane::convert::{Integer, Size};
use reconverge_tesla::lane::float::{Saturate, add, mad};
use reconverge_tesla::lane::interpolate::{Interpolant, Position, interp};
use reconverge_tesla::lane::{Flags, Modifiers, Rounding, Width};
use reconverge_tesla::launch::{Compute, Launch, Outcome, RunError};
use reconverge_tesla::meaning::{self, Modes, Operands};
use reconverge_tesla::run::run;
use reconverge_tesla::spaces::{Constants, Shared, aligned};
use reconverge_tesla::state::{Emitted, Warp};
use reconverge_tesla::text::assemble;
use reconverge_tesla::texture::{Read, Request, Textures, read};
use reconverge_tesla::trap::Cause;
use reconverge_testkit::page_is_current;

/// Section in docs/tesla.md, subject, interpretation, place in the crate, and test of a question. The
/// interpretation is one constant or function at that place, marked **Open**.
type Question = (&'static str, &'static str, &'static str, &'static str, fn());

#[rustfmt::skip]
const QUESTIONS: &[Question] = &[
    ("13.1", "condition codes 0x14 to 0x1b", "never true", "inst::Condition",
        unassigned_condition_codes_are_never_true),
    ("13.2", "which side of a divergent `bra` runs first", "the taken one", "flow::TAKEN_SIDE_RUNS_FIRST",
        the_taken_side_runs_first),
    ("13.3", "a JOINAT token met while unwinding", "resume at its address, leave it", "Flow::joinat_while_unwinding",
        unwinding_resumes_at_a_joinat_and_leaves_it),
    ("13.4", "`join` with an empty stack", "underflow; nothing in lenient mode", "Flow::join_without_token",
        a_join_without_a_token_underflows_or_does_nothing),
    ("13.5", "`break` and no BREAK token", "underflow; the lane ends in lenient mode", "Flow::broken_at_the_end",
        a_break_without_a_token_underflows_or_ends_the_lane),
    ("9.5", "`break` in a subroutine, out of a loop of the caller", "mismatch; in lenient mode, `break` unwinds the stack through the call", "Flow::break_through_call",
        a_break_through_a_call_mismatches_or_unwinds_it),
    ("13.6", "a limited call beyond the limit", "skipped", "Flow::call_beyond_limit",
        a_limited_call_beyond_the_limit_is_skipped),
    ("9.1", "whether the 16 entries on chip come in addition to the configured memory", "they do", "Limits::stack_size_log",
        entries_on_chip_come_in_addition_to_the_memory),
    ("13.7", "barriers and warps that have ended", "they no longer count", "barrier.rs",
        a_barrier_does_not_wait_for_ended_warps),
    ("13.8", "`bra c[]` with lanes that disagree", "trap; in lenient mode, the target of the lowest lane", "Flow::uniform_target",
        lanes_that_name_different_targets_trap_or_follow_the_lowest),
    ("9.1", "depth of the stack when it is not specified", "4096", "flow::DEFAULT_STACK_ENTRIES",
        a_stack_of_unspecified_depth_has_4096_entries),
    ("9.8", "control flow between quadon and quadpop", "trap", "Flow::control_inside_quadon",
        control_flow_between_quadon_and_quadpop_is_a_fault),
    ("13.9", "`$a5` to `$a7`", "trap; 0 in lenient mode", "access.rs",
        a5_to_a7_trap_or_read_zero),
    ("13.10", "flags of `vote` and `ld lock`", "S for yes, Z for no", "reference::truth",
        yes_is_s_and_no_is_z),
    ("13.11", "a discarded fragment", "continues as a helper", "Flow::discard",
        a_discarded_lane_stays_active),
    ("13.12", "component of `texgather`", "red", "texture::GATHERED_COMPONENT",
        texgather_gives_red),
    ("13.13", "rounding of interpolation", "each operation of the plane to nearest", "lane::interpolate",
        a_plane_is_rounded_after_each_operation),
    ("13.15", "zero wins in the long `mad`", "as in the short one", "lane::float",
        zero_wins_in_mad),
    ("13.16", "f32 rounding codes 1 and 2", "down and up, graded *recommended*", "lane::float",
        rounding_codes_1_and_2_are_down_and_up),
    ("13.18", "unaligned addresses", "low bits count as zero", "spaces::aligned",
        an_unaligned_address_loses_its_low_bits),
    ("13.19", "registers and memory at the start", "zero", "state.rs, spaces.rs",
        registers_and_shared_memory_start_at_zero),
    ("13.22", "post-increment of a lane that is predicated off", "its `$a` stays", "access::increment",
        a_lane_that_is_predicated_off_keeps_its_address_register),
    ("1.7", "c[] beyond its contents", "zero", "spaces.rs",
        constants_beyond_their_contents_read_zero),
    ("6.4", "`cvt neg s32 s32` of -2^31", "saturates where flags are written, wraps elsewhere", "meaning::negated",
        negation_saturates_only_where_flags_are_written),
    ("4", "how words share the locks of s[]", "each word has its own", "spaces.rs",
        each_word_has_its_own_lock),
    ("6.10", "`emit restart` in one instruction", "a vertex, then the end of the strip", "reference.rs",
        emit_and_restart_are_a_vertex_and_the_end_of_the_strip),
    ("4", "lanes of one instruction that store to the same byte", "the highest lane's value stays", "access::store",
        of_lanes_that_store_to_one_byte_the_highest_wins),
];

#[test]
fn every_open_question_shows_its_reading() {
    for (.., test) in QUESTIONS {
        test();
    }
}

#[test]
fn the_table_of_open_questions_is_current() {
    let mut table = String::from("| | question | interpretation | in |\n|---|---|---|---|\n");
    for (section, subject, reading, place, _) in QUESTIONS {
        table += &format!("| {section} | {subject} | {reading} | `{place}` |\n");
    }
    page_is_current("tesla.md", Some("open questions"), &table);
}

fn warp(lanes: u64, mode: Mode) -> Flow {
    Flow::new(0, Mask(lanes), Limits::default(), mode)
}

fn at(flow: &Flow) -> (u32, u64) {
    (flow.pc(), flow.active().0)
}

/// Returns the words of a buffer at 0x1000, whose address is the first parameter, after a block of `threads`
/// threads.
fn outcome(source: &str, threads: u32, mode: Mode) -> Result<Vec<u32>, RunError> {
    let assembled =
        assemble(source, Chip::Gt215, Stage::Compute).unwrap_or_else(|e| panic!("{source}\n{e:?}"));
    let program = Program { words: assembled.words(), ..Program::default() };
    let mut compute = Compute::of(&program, Chip::Gt215).unwrap();
    compute.block = [threads, 1, 1];
    compute.params = 0x1000u32.to_le_bytes().to_vec();
    compute.memory = Memory::new(vec![Buffer::new(0x1000, vec![0; 64])]).unwrap();
    let outcome: Outcome = run(&program, Launch::Compute(compute), &Options { mode, ..Options::default() })?;
    let words = outcome.memory.at(0x1000).unwrap().bytes.as_chunks::<4>().0.iter();
    Ok(words.map(|word| u32::from_le_bytes(*word)).collect())
}

fn unassigned_condition_codes_are_never_true() {
    assert!((0x14..0x1c).all(|code| Condition::from_code(code).table() == 0));
}

fn the_taken_side_runs_first() {
    let mut flow = warp(0b11, Mode::Strict);
    flow.bra(0x80, 0x08, Mask(0b10), &mut Silent).unwrap();
    assert_eq!(at(&flow), (0x80, 0b10));
}

fn unwinding_resumes_at_a_joinat_and_leaves_it() {
    let mut flow = warp(0b11, Mode::Strict);
    flow.joinat(0x30, 0x08, &mut Silent).unwrap();
    flow.bra(0x30, 0x10, Mask(0b10), &mut Silent).unwrap();
    assert_eq!(flow.join(&mut Silent), Ok(Join::Away));
    flow.exit(&mut Silent).unwrap();
    assert_eq!((at(&flow), flow.tokens().len()), ((0x30, 0b10), 1));
}

fn a_join_without_a_token_underflows_or_does_nothing() {
    assert_eq!(warp(1, Mode::Strict).join(&mut Silent), Err(Fault::StackUnderflow));
    assert_eq!(warp(1, Mode::Lenient).join(&mut Silent), Ok(Join::Run));
}

fn a_break_without_a_token_underflows_or_ends_the_lane() {
    assert_eq!(warp(1, Mode::Strict).break_(Mask(1), 8, &mut Silent), Err(Fault::StackUnderflow));
    let mut flow = warp(1, Mode::Lenient);
    flow.break_(Mask(1), 8, &mut Silent).unwrap();
    assert!(flow.finished());
}

fn a_break_through_a_call_mismatches_or_unwinds_it() {
    let broken = |mode| {
        let mut flow = warp(1, mode);
        flow.breakaddr(0x40, 0x08, &mut Silent).unwrap();
        flow.call(0x100, 0x10, &mut Silent).unwrap();
        flow.break_(Mask(1), 0x108, &mut Silent).map(|_| at(&flow))
    };
    assert_eq!(broken(Mode::Strict), Err(Fault::StackMismatch));
    assert_eq!(broken(Mode::Lenient), Ok((0x40, 1)));
}

fn a_limited_call_beyond_the_limit_is_skipped() {
    let limits = Limits { calls: Some(0), ..Limits::default() };
    let mut flow = Flow::new(0, Mask(1), limits, Mode::Strict);
    flow.call_lim(0x100, 0x08, &mut Silent).unwrap();
    assert_eq!((flow.pc(), flow.tokens().len()), (0x08, 0));
}

fn entries_on_chip_come_in_addition_to_the_memory() {
    assert_eq!([0, 4].map(Limits::stack_size_log), [16, 16 + 8]);
}

fn a_barrier_does_not_wait_for_ended_warps() {
    let mut barriers = Barriers::new(2);
    barriers.bar(0, 0, (true, true), Count::All, None);
    barriers.finish(1, None);
    assert_eq!(barriers.waits_for(0), None);
}

fn lanes_that_name_different_targets_trap_or_follow_the_lowest() {
    let target = |lane: Lane| 8 * u32::from(lane.0);
    assert_eq!(warp(0b110, Mode::Strict).uniform_target(target), Err(Fault::TargetsDiffer));
    assert_eq!(warp(0b110, Mode::Lenient).uniform_target(target), Ok(8));
}

fn a_stack_of_unspecified_depth_has_4096_entries() {
    let mut flow = warp(1, Mode::Strict);
    let pushed = (0..5000).take_while(|_| flow.joinat(8, 8, &mut Silent).is_ok()).count();
    assert_eq!(pushed, 4096);
}

fn control_flow_between_quadon_and_quadpop_is_a_fault() {
    let mut flow = warp(1, Mode::Strict);
    flow.quadon(8, &mut Silent).unwrap();
    assert_eq!(flow.bra(8, 8, Mask(1), &mut Silent), Err(Fault::QuadonActive));
}

fn a5_to_a7_trap_or_read_zero() {
    for register in 5..8 {
        let source = format!(
            "mov b32 $r1 b32 s[0x10]\nmov b32 $r2 0x7\nmov $r2 $a{register}\nexit st b32 g14[$r1] $r2"
        );
        let trapped = outcome(&source, 1, Mode::Strict);
        let Err(RunError::Trap(trap)) = trapped else { panic!("{source}") };
        assert_eq!(trap.trap.cause, Cause::NoAddressRegister(register));
        assert_eq!(outcome(&source, 1, Mode::Lenient).unwrap()[0], 0);
    }
}

fn yes_is_s_and_no_is_z() {
    use reconverge_tesla::reference::truth;
    assert_eq!([truth(true), truth(false)], [Flags::S, Flags::Z]);
}

fn a_discarded_lane_stays_active() {
    let mut flow = warp(0b11, Mode::Strict);
    flow.discard(Mask(0b01), 8);
    assert_eq!((flow.why(Lane(0)), flow.dead().has(Lane(0))), (Why::Active, true));
}

fn texgather_gives_red() {
    let levels = vec![Level { width: 1, height: 1, depth: 1, texels: vec![[5, 6, 7, 8]].into() }];
    let image = Arc::new(Image::new(Shape::D2, levels).unwrap());
    let mut textures = Textures::default();
    textures.bind(0, image, Sampler::default());
    let request = Request {
        read: Read::Gather,
        texture: 0,
        sampler: 0,
        quad: &[[0; 4]; 4],
        count: 2,
        place: 0,
        offset: [0; 3],
        derivatives: false,
        cube: false,
    };
    assert_eq!(read(&textures, &request), Ok([5; 4]));
}

fn a_plane_is_rounded_after_each_operation() {
    let (dx, dy, x) = (1.0 + f32::EPSILON, -1.0, 1.0 + f32::EPSILON);
    let of = Interpolant { base: 0.0, dx, dy, flat: 0 };
    let found = f32::from_bits(interp(of, Position::Centre, [x, 1.0], [0.0; 2], None));
    assert_eq!(found, dx * x - 1.0);
    assert_ne!(f64::from(found), f64::from(dx) * f64::from(x) - 1.0);
}

fn zero_wins_in_mad() {
    let [infinity, one] = [f32::INFINITY, 1.0].map(f32::to_bits);
    assert_eq!(mad(0, infinity, one, false, Saturate::No, true).0, one);
}

fn rounding_codes_1_and_2_are_down_and_up() {
    assert_eq!([1, 2].map(|code| Rounding::ALL[code]), [Rounding::Down, Rounding::Up]);
    let [one, tiny] = [1.0, f32::EPSILON / 4.0].map(f32::to_bits);
    let sum = |rounding| f32::from_bits(add(one, tiny, rounding, Saturate::No).0);
    assert_eq!([Rounding::Down, Rounding::Up].map(sum), [1.0, 1.0 + f32::EPSILON]);
}

fn an_unaligned_address_loses_its_low_bits() {
    assert_eq!([aligned(0x13, 4), aligned(0x13, 2), aligned(0x1f, 16)], [0x10, 0x12, 0x10]);
}

fn registers_and_shared_memory_start_at_zero() {
    let warp = Warp::new(warp(1, Mode::Strict), 0, 4, 16);
    assert_eq!((warp.r(Lane(0), 3), warp.a(Lane(0), 1), warp.c(Lane(0), 0)), (0, 0, 0));
    let mut local = [1; 4];
    warp.read_local(Lane(0), 0, &mut local).unwrap();
    assert_eq!((local, Shared::new(8).read(4, 4)), ([0; 4], Some(0)));
}

fn a_lane_that_is_predicated_off_keeps_its_address_register() {
    let source = "mov b32 $r1 b32 s[0x10]\nshl b32 $r2 $r0 0x2\nadd b32 $r1 $r1 $r2\nmov b32 $r3 0x10\n\
                  shl $a1 $r3 0x0\nset $c0 # e u32 $r0 $r63\n(s $c0) mov b32 $r5 b32 s[$a1++0x4]\nmov $r6 $a1\n\
                  exit st b32 g14[$r1] $r6";
    assert_eq!(outcome(source, 2, Mode::Strict).unwrap()[..2], [0x14, 0x10]);
}

fn constants_beyond_their_contents_read_zero() {
    let mut constants = Constants::new();
    assert!(constants.place(0, 0, &[1, 2, 3, 4]));
    assert_eq!((constants.read(0, 2, 4), constants.read(0, 4, 4)), (0x403, 0));
}

fn negation_saturates_only_where_flags_are_written() {
    let s32 = Integer { size: Size::B32, signed: true };
    let op = Arith::I2I { to: s32, register: Width::B32, from: s32 };
    let negated = |writes_flags| {
        let modifiers = [Modifiers::NEG, Modifiers::NONE, Modifiers::NONE];
        let operands = Operands { src: [1 << 31, 0, 0], modifiers, carry: Flags::NONE, writes_flags };
        meaning::value(&op, &operands, Chip::G80, Modes::default()).0
    };
    assert_eq!([negated(true), negated(false)], [0x7fff_ffff, 0x8000_0000]);
}

fn each_word_has_its_own_lock() {
    let mut shared = Shared::new(0x400);
    assert!((0..0x100).all(|word| shared.lock(4 * word, word)));
    shared.unlock(0);
    assert!(shared.lock(0, 1) && !shared.lock(4, 0));
}

fn emit_and_restart_are_a_vertex_and_the_end_of_the_strip() {
    use reconverge_tesla::launch::{Geometry, Setup};
    let source = "mov b32 o[0x0] $r63\nexit emit restart";
    let assembled = assemble(source, Chip::Gt215, Stage::Geometry).unwrap_or_else(|e| panic!("{e:?}"));
    let program = Program { words: assembled.words(), ..Program::default() };
    let launch = Geometry {
        setup: Setup::new(Chip::Gt215).into(),
        lanes: 1,
        inputs: Default::default(),
        vertices: Vec::new(),
    };
    let outcome = run(&program, Launch::Geometry(launch), &Options::default()).unwrap();
    assert_eq!(outcome.lanes.get(0).unwrap().emitted, [Emitted::Vertex(vec![0]), Emitted::Restart]);
}

fn of_lanes_that_store_to_one_byte_the_highest_wins() {
    let source = "mov b32 $r1 b32 s[0x10]\nexit st b32 g14[$r1] $r0";
    assert_eq!(outcome(source, 20, Mode::Strict).unwrap()[0], 19);
}
