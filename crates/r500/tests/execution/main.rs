//! The behavior of whole instructions, one rule per test, in the assembler's text.

mod questions;

use std::sync::Arc;

use reconverge_r500::cause::Cause;
use reconverge_r500::ctm::{
    self, AccessError, CondLoc, CondTest, Conditional, Dispatch, Domain, Format, Surface, Tiling,
};
use reconverge_r500::flow::LeftOpen;
use reconverge_r500::launch::{Hardware, Input, Launch, RunError};
use reconverge_r500::outputs::{Finding, LaneOutput, Outcome};
use reconverge_r500::run::{run, run_watched};
use reconverge_r500::setup::Setup;
use reconverge_r500::text::assemble;
use reconverge_simt::{Engine, Level, Mode, Options, Watch};
use reconverge_testkit::everywhere;

const OUT: &str = "OUT out[A].rgb = MAX*off src0.rgb, src0.rgb : src0=temp[1] {TEX_SEM_WAIT}\n  + out[A].a = MAX*off src0.a, src0.a : src0=temp[1]\n";

fn setup(source: &str) -> Arc<Setup> {
    let assembled = assemble(source).unwrap_or_else(|errors| panic!("{errors:?}"));
    Arc::new(Setup::new(&assembled.program).unwrap())
}

fn launch(lanes: &[[f32; 4]]) -> Launch {
    let values = lanes.iter().map(|lane| lane.map(f32::to_bits)).collect();
    Launch { lanes: lanes.len(), inputs: vec![Input { temp: 0, values }], ..Launch::default() }
}

fn outputs(source: &str, lanes: &[[f32; 4]], mode: Mode) -> Vec<LaneOutput> {
    outcome(source, lanes, mode).lanes().collect()
}

fn outcome(source: &str, lanes: &[[f32; 4]], mode: Mode) -> Outcome {
    on_every_engine(source, &launch(lanes), mode).unwrap_or_else(|error| panic!("{error}"))
}

/// Executes [`run`] on every engine.
fn on_every_engine(source: &str, launch: &Launch, mode: Mode) -> Result<Outcome, RunError> {
    let setup = setup(source);
    let run = |engine, level, log: Option<&mut _>| {
        let options = Options { engine, level, mode, watchdog: 10_000, ..Options::default() };
        match log {
            Some(log) => run_watched(&setup, launch, &options, Watch::of(log)),
            None => run(&setup, launch, &options),
        }
    };
    everywhere(run, |result| format!("{source}: {result:?}"))
}

/// Executes [`ctm::run`] on every engine.
fn dispatched(source: &str, dispatch: Dispatch) -> Result<ctm::DispatchOutcome, ctm::DispatchError> {
    let setup = setup(source);
    let with = |engine, level| {
        let options = Options { engine, level, ..Options::default() };
        ctm::run(&setup, dispatch.clone(), &options)
    };
    let expected = with(Engine::Reference, None);
    for level in Level::available() {
        assert_eq!(with(Engine::Fast, Some(level)), expected, "{source}");
        assert_eq!(with(Engine::Lockstep, Some(level)), expected, "{source}");
    }
    expected
}

/// Runs `source`, and then writes temp[1] to the output. Returns its four channels for each lane.
fn temp1(source: &str, lanes: &[[f32; 4]]) -> Vec<[f32; 4]> {
    let outputs = outputs(&format!("{source}{OUT}"), lanes, Mode::Strict);
    outputs.iter().map(|lane| lane.color[0].map(f32::from_bits)).collect()
}

fn trap(source: &str) -> Cause {
    match on_every_engine(source, &launch(&[[1.0, 2.0, 3.0, 4.0]]), Mode::Strict) {
        Err(RunError::Trap(trap)) => trap.trap.cause,
        other => panic!("{other:?}"),
    }
}

/// r500.md 7, E12; REG, MDH and MDV.
#[test]
fn derivatives_are_differences_within_the_quad_for_all_four_lanes() {
    let quad = [[1.0, 10.0, 0.0, 7.0], [3.0, 20.0, 0.0, 8.0], [6.0, 40.0, 0.0, 9.0], [100.0, 0.0, 0.0, 0.0]];
    let found = temp1(
        "ALU temp[1].rgb = MDH src0.rrr, -src0.111, src0.rrr : src0=temp[0]\n  + temp[1].a = MDV src0.r, -src0.1, src0.r : src0=temp[0]\n",
        &quad,
    );
    assert_eq!(found, [[2.0, 10.0, 0.0, 2.0]; 4]);
}

/// CTM guide p. 27.
#[test]
fn the_fourth_product_of_dp4_is_the_alpha_units_whatever_its_opcode() {
    let found = temp1(
        "ALU temp[1].rgb = DP4 src0.rgb, src0.rgb : src0=temp[0]\n  + temp[1].a = MAX src0.a, src0.a : src0=temp[0]\n",
        &[[1.0, 2.0, 3.0, 4.0]],
    );
    assert_eq!(found, [[30.0, 30.0, 30.0, 4.0]]);
}

/// CTM guide p. 27: r g b come from the RGB address word, a from the alpha address word, in both units.
#[test]
fn swizzles_cross_between_the_address_words() {
    let found = temp1(
        "ALU temp[1].rgb = MAX*off src0.aar, src0.aar : src0=temp[0]\n  + temp[1].a = MAX*off src0.g, src0.g : src0=const[3]\n.const 3 0 0 0 42\n",
        &[[1.0, 2.0, 3.0, 4.0]],
    );
    assert_eq!(found, [[42.0, 42.0, 1.0, 2.0]]);
}

/// r500.md 3.1: both units read before either writes.
#[test]
fn a_swap_needs_no_temporary() {
    let found = temp1(
        "ALU temp[1].rgb = MAX*off src0.rgb, src0.rgb : src0=temp[0]\n  + temp[1].a = MAX*off src0.a, src0.a : src0=temp[0]\nALU temp[1].rgb = MAX*off src0.aaa, src0.aaa : src0=temp[1]\n  + temp[1].a = MAX*off src0.r, src0.r : src0=temp[1]\n",
        &[[1.0, 2.0, 3.0, 4.0]],
    );
    assert_eq!(found, [[4.0, 4.0, 4.0, 1.0]]);
}

/// CTM guide p. 26.
#[test]
fn presubtract_acts_before_swizzle_and_modifier() {
    let found = temp1(
        "ALU temp[1].rgb = MAX -srcp.gbr, -srcp.gbr : src0=temp[0] src1=const[0] srcp=SUB\n.const 0 10 10 10 10\n",
        &[[1.0, 2.0, 3.0, 4.0]],
    );
    assert_eq!(found[0][..3], [-8.0, -7.0, -9.0]);
}

/// CTM guide p. 31; REG.
#[test]
fn targets_of_the_two_units_may_differ_and_the_last_write_wins() {
    let source = "OUT out[B].rg = MAX*off src0.rgb, src0.rgb : src0=temp[0]\n  + out[D].a = MAX*off src0.a, src0.a : src0=temp[0]\nOUT out[B].r = MAX*off src0.ggg, src0.ggg : src0=temp[0]\n  + out.w = MAX*off src0.1, src0.1\n";
    let lane = outputs(source, &[[1.0, 2.0, 3.0, 4.0]], Mode::Strict)[0];
    assert_eq!(lane.color[1].map(f32::from_bits), [2.0, 2.0, 0.0, 0.0]);
    assert_eq!((lane.written, f32::from_bits(lane.color[3][3])), ([0, 0b11, 0, 0b1000], 4.0));
    assert_eq!(lane.depth, Some(1f32.to_bits()));
}

/// r500.md 2.1 and 3.6.
#[test]
fn predicates_gate_each_channel_by_its_own_bit() {
    let found = temp1(
        "ALU pred[GE].rgb = MAX*off src0.rgb, src0.rgb : src0=temp[0]\nALU (pred.rgba) temp[1].rgb = MAX src0.111, src0.111\nALU (!pred.rgba) temp[1].rgb = MAX src0.hhh, src0.hhh\n",
        &[[1.0, -1.0, 0.0, 0.0]],
    );
    assert_eq!(found[0][..3], [1.0, 0.5, 1.0]);
}

#[test]
fn strict_mode_names_what_is_undefined() {
    let reads = |place: &str| format!("ALU temp[1].r = MAX src0.rrr, src0.rrr : src0={place}\n{OUT}");
    assert_eq!(trap(&reads("const[0+aL]")), Cause::NoLoopRegister);
    let frame = format!(".state US_PIXSIZE 1\n{}", reads("temp[2]"));
    assert_eq!(trap(&frame), Cause::NotAllocated { temp: 2, highest: 1 });
    let loops = format!(
        ".int 0 1 100 0\nloop int[0]\n{}endloop int[0]\n{OUT}",
        reads("temp[60+aL]").replace(OUT, "")
    );
    assert_eq!(trap(&loops), Cause::RelativeAddress { file: "temp", base: 60, al: 100 });
    assert_eq!(trap("ALU nop\n"), Cause::EndIsNotOut);
    let range = ".state US_CODE_RANGE CODE_SIZE=0\n.state US_CODE_ADDR END_ADDR=1\nALU nop\nOUT nop\n";
    assert_eq!(trap(range), Cause::OutsideRange { pc: 1, start: 0, end: 0 });
    assert_eq!(trap("goto 9\nOUT nop\n"), Cause::OutsideRange { pc: 9, start: 0, end: 1 });
    assert!(matches!(trap("ALU nop {US_ALU_RGBA_INST.RGB_OP=SOP}\nOUT nop\n"), Cause::Forbidden(_)));
    assert!(matches!(trap("ALU nop {US_ALU_RGBA_INST.RGB_OP=6}\nOUT nop\n"), Cause::NoMeaning(_)));
    assert_eq!(trap("top:\ngoto top\nOUT nop\n"), Cause::Watchdog(10_000));
}

/// docs/r500.md, "Strict mode": entries on the stacks are reported, but do not stop the program.
#[test]
fn entries_on_the_stacks_at_the_end_are_a_finding_of_strict_mode() {
    let finding = |source: &str, lanes: usize, mode| outcome(source, &vec![[0.0; 4]; lanes], mode).finding;
    let in_a_loop = format!(".int 0 2 0 0\nloop int[0] -> 3\n{OUT}");
    let open = LeftOpen { loops: 1, calls: 0 };
    assert_eq!(finding(&in_a_loop, 40, Mode::Strict), Some(Finding { first_lane: 0, left_open: open }));
    assert_eq!(finding(&in_a_loop, 40, Mode::Lenient), None);
    let in_a_call = format!("call sub\nsub:\n{OUT}");
    let open = LeftOpen { loops: 0, calls: 1 };
    assert_eq!(finding(&in_a_call, 1, Mode::Strict), Some(Finding { first_lane: 0, left_open: open }));
    assert_eq!(finding(OUT, 1, Mode::Strict), None);
    // Only lanes from 32 on leave the loop, by a jump that keeps the frame.
    let some = format!(
        ".const 0 32 0 0 0\n.int 0 1 0 0\nloop int[0]\nALU alu_result[GE].r = MAD src0.r00, src0.111, -src1.r00 : \
         src0=temp[0] src1=const[0]\nFC JUMP FUNC=0xf0 -> end\nendloop int[0]\nend:\n{OUT}"
    );
    let lanes: Vec<[f32; 4]> = (0..64).map(|lane| [lane as f32; 4]).collect();
    let outcome = outcome(&some, &lanes, Mode::Strict);
    assert_eq!(outcome.finding.map(|finding| finding.first_lane), Some(32));
}

/// docs/r500.md, "Counts": every slot that is issued, the lanes active before it, and the one branch at which active
/// lanes disagree. The else switches lanes off and on, which does not count as divergence.
#[test]
fn counts_are_those_of_the_page() {
    let source = format!(
        "ALU alu_result[NE].r = MAX src0.r00, src0.r00 : src0=temp[0]\nif alu\nALU temp[1].r = MAX src0.111, src0.111\n\
         else\nALU temp[2].r = MAX src0.111, src0.111\nendif\n{OUT}"
    );
    let counts = |lanes: &[[f32; 4]]| {
        let statistics = outcome(&source, lanes, Mode::Strict).statistics;
        (statistics.instructions, statistics.lane_instructions, statistics.divergent_branches)
    };
    assert_eq!(counts(&[[1.0; 4], [0.0; 4], [1.0; 4], [0.0; 4]]), (7, 4 + 4 + 2 + 2 + 2 + 2 + 4, 1));
    // Each 16 lanes are a group. The second group has one lane.
    assert_eq!(counts(&[[1.0; 4]; 17]).2, 0);
    // An instruction that the watchdog stops is not counted.
    let options = Options { watchdog: 6, ..Options::default() };
    let stopped = run(&setup(&source), &launch(&[[1.0; 4], [0.0; 4]]), &options).unwrap_err();
    assert!(matches!(stopped, RunError::Trap(trap) if trap.trap.cause == Cause::Watchdog(6)));
    let options = Options { watchdog: 7, ..Options::default() };
    assert!(run(&setup(&source), &launch(&[[1.0; 4], [0.0; 4]]), &options).is_ok());
}

/// docs/r500.md, "Strict mode": an instruction that no lane executes has no effect. Half the lanes continue, and the
/// others break. The continued lanes keep the thread in the loop, which it executes without an active lane.
#[test]
fn an_address_outside_its_file_does_not_trap_where_no_lane_is_active() {
    let in_a_loop = |body: &str| {
        let source = format!(
            ".int 0 1 100 0\n.state US_PIXSIZE 2\nloop int[0]\n\
             ALU alu_result[NE].r = MAX src0.r00, src0.r00 : src0=temp[0]\ncontinue if alu\nbreak\n{body}\nendloop int[0]\n{OUT}"
        );
        outputs(&source, &[[1.0; 4], [0.0; 4]], Mode::Strict)
    };
    in_a_loop("ALU temp[1].r = MAX src0.rrr, src0.rrr : src0=temp[60+aL]");
    in_a_loop("ALU temp[1].r = MAX src0.rrr, src0.rrr : src0=const[200+aL]");
    in_a_loop("ALU temp[60+aL].r = MAX src0.111, src0.111");
    in_a_loop("ALU temp[3].r = MAX src0.111, src0.111");
    in_a_loop("TEX temp[1].rgba = LD tex[0], temp[60+aL].rgba");
    in_a_loop("TEX TEXKILL tex[0], temp[60+aL].rgba");
}

/// Outside a LOOP, aL does not exist. REP does not have it.
#[test]
fn al_outside_any_loop_does_not_trap_where_no_lane_is_active() {
    let source = format!(
        ".int 0 1 0 0\nrep int[0]\nALU alu_result[NE].r = MAX src0.r00, src0.r00 : src0=temp[0]\n\
         continue if alu\nbreakrep\nALU temp[1].r = MAX src0.rrr, src0.rrr : src0=temp[0+aL]\nendrep int[0]\n{OUT}"
    );
    outputs(&source, &[[1.0; 4], [0.0; 4]], Mode::Strict);
}

// ---- CTM

const LINEAR: Surface =
    Surface { base: 0, pitch: 4, height: 2, format: Format::FLOAT32_1, tiling: Tiling::LINEAR };

fn dispatch(input: Surface, memory: Vec<u8>) -> Dispatch {
    let output = Surface { base: 2048, ..LINEAR };
    Dispatch {
        memory,
        inputs: vec![(0, input)],
        outputs: [Some(Surface { format: Format::FLOAT32_4, ..output }), None, None, None],
        uncached: false,
        conditional: None,
        constants: Vec::new(),
        domain: Domain { i: 0, j: 0, width: 1, height: 1 },
        hardware: Hardware::default(),
    }
}

const FETCH: &str = "TEX temp[1].rgba = LD tex[0], temp[0].rgba UNSCALED\n";

fn memory(values: &[f32]) -> Vec<u8> {
    let mut memory: Vec<u8> = values.iter().flat_map(|value| value.to_le_bytes()).collect();
    memory.resize(4096, 0);
    memory
}

/// CTM guide p. 6: the requested element is returned last.
#[test]
fn a_two_by_two_fetch_gives_the_neighbours_and_then_the_element() {
    let input = Surface { tiling: Tiling::LINEAR_INP_2X2, ..LINEAR };
    let memory = memory(&[1.0, 2.0, 0.0, 0.0, 5.0, 6.0, 0.0, 0.0]);
    let outcome = dispatched(&format!("{FETCH}{OUT}"), dispatch(input, memory)).unwrap();
    let found: Vec<f32> = outcome.memory[2048..2064]
        .chunks(4)
        .map(|word| f32::from_le_bytes(word.try_into().unwrap()))
        .collect();
    assert_eq!(found, [2.0, 5.0, 6.0, 1.0]);
}

#[test]
fn what_the_guide_leaves_out_is_an_error_that_says_so() {
    let cause = |source: &str, input: Surface| match dispatched(
        &format!("{source}{OUT}"),
        dispatch(input, memory(&[])),
    ) {
        Err(ctm::DispatchError::Run(RunError::Trap(trap))) => trap.trap.cause,
        other => panic!("{other:?}"),
    };
    let tiled = Surface { tiling: Tiling::TILED, ..LINEAR };
    assert_eq!(cause(FETCH, tiled), AccessError::Tiled(Tiling::TILED).into());
    let several = Surface { tiling: Tiling::LINEAR_INP_2X2, format: Format::UINT8_4, ..LINEAR };
    assert_eq!(cause(FETCH, several), AccessError::Neighbours(Format::UINT8_4).into());
    assert_eq!(cause(&FETCH.replace("UNSCALED", ""), LINEAR), AccessError::Fetch("a scaled LD").into());
    assert_eq!(cause(&FETCH.replace("LD", "PROJ"), LINEAR), AccessError::Fetch("PROJ").into());
    let outside = AccessError::Outside { x: 0, y: 0, width: 4, height: 0 };
    assert_eq!(cause(FETCH, Surface { height: 0, ..LINEAR }), outside.into());
}

/// CTM guide p. 5, set_cond_loc.
#[test]
fn a_test_before_scheduling_skips_the_pair() {
    let buffer = Surface { base: 1024, ..LINEAR };
    let mut memory = memory(&[9.0; 8]);
    memory[1024..1028].copy_from_slice(&2f32.to_le_bytes());
    let conditional =
        Conditional { buffer, test: CondTest::LESS, location: CondLoc::PE, value: 1.0, write: false };
    let dispatch = Dispatch {
        conditional: Some(conditional),
        domain: Domain { i: 0, j: 0, width: 2, height: 1 },
        ..dispatch(LINEAR, memory)
    };
    let outcome = dispatched(&format!("{FETCH}{OUT}"), dispatch).unwrap();
    let out = |i: usize| f32::from_le_bytes(outcome.memory[2048 + 16 * i..2052 + 16 * i].try_into().unwrap());
    assert_eq!([out(0), out(1)], [9.0, 0.0], "1 < 2 runs, 1 < 0 does not");
}

#[test]
fn a_domain_beyond_the_bounds_is_refused_before_it_runs() {
    let too_large = |domain| dispatched(OUT, Dispatch { domain, ..dispatch(LINEAR, memory(&[])) });
    for (i, width, height) in
        [(0, 65_535, 65_535), (0, u32::MAX, u32::MAX), (0, 1 << 25, 1), (0, 1, 1 << 25), (u32::MAX, 2, 1)]
    {
        let domain = Domain { i, j: 0, width, height };
        assert_eq!(too_large(domain), Err(ctm::DispatchError::Domain(domain)));
    }
}

/// The first pair of a domain that would take hours ends the run. So pairs are not created in advance.
#[test]
fn pairs_are_made_as_they_run() {
    let domain = Domain { i: 0, j: 0, width: 1 << 20, height: 1 << 10 };
    let outcome =
        dispatched(OUT, Dispatch { domain, ..dispatch(Surface { height: 0, ..LINEAR }, memory(&[])) });
    assert!(matches!(outcome, Err(ctm::DispatchError::Access { .. })), "{outcome:?}");
}

#[test]
fn conditional_tests_compare_the_program_with_the_buffer() {
    let passing: Vec<Vec<CondTest>> = [(1.0, 2.0), (2.0, 2.0), (3.0, 2.0), (f32::NAN, 2.0)]
        .map(|(v, b)| CondTest::ALL.iter().copied().filter(|test| test.passes(v, b)).collect())
        .to_vec();
    use CondTest::*;
    assert_eq!(passing[0], [LESS, LESS_EQUAL, NOT_EQUAL, ALWAYS]);
    assert_eq!(passing[1], [LESS_EQUAL, EQUAL, GREATER_EQUAL, ALWAYS]);
    assert_eq!(passing[2], [GREATER_EQUAL, GREATER, NOT_EQUAL, ALWAYS]);
    assert_eq!(passing[3], [NOT_EQUAL, ALWAYS]);
}
