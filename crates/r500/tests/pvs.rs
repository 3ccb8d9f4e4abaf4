//! The vertex unit: text round trips, the rules of docs/r500-vertex.md by name, and comparisons of both engines.

use std::sync::Arc;

use reconverge_isa::Program;
use reconverge_r500::pvs::cause::Cause;
use reconverge_r500::pvs::fast::Fast;
use reconverge_r500::pvs::inst::decode;
use reconverge_r500::pvs::launch::{Environment, Input, Launch, RunError};
use reconverge_r500::pvs::outputs::Outcome;
use reconverge_r500::pvs::run::{Loaded, run};
use reconverge_r500::pvs::setup::Setup;
use reconverge_r500::pvs::text::{Listing, assemble, disassemble};
use reconverge_simt::{Engine, Mode, Options, Watch};
use reconverge_testkit::Random;
use reconverge_testkit::vertex::{any_record, launch, one_in, program, word};

fn setup(source: &str) -> Arc<Setup> {
    Arc::new(Setup::new(&assemble(source).unwrap_or_else(|errors| panic!("{errors:?}")).program).unwrap())
}

fn vector(values: [f32; 4]) -> [u32; 4] {
    values.map(f32::to_bits)
}

fn options(engine: Engine, mode: Mode) -> Options {
    Options { engine, mode, watchdog: 20_000, ..Options::default() }
}

/// Runs a program in lockstep.
fn outcome(source: &str, inputs: &[[f32; 4]], mode: Mode) -> Result<Outcome, RunError> {
    let input = Input { register: 0, values: inputs.iter().copied().map(vector).collect() };
    let launch = Launch { vertices: inputs.len(), inputs: vec![input], ..Launch::default() };
    run(&setup(source), &launch, &options(Engine::Lockstep, mode))
}

/// Returns o0 of each vertex.
#[track_caller]
fn o0(source: &str, inputs: &[[f32; 4]]) -> Vec<[f32; 4]> {
    let outcome = outcome(source, inputs, Mode::Strict).unwrap_or_else(|error| panic!("{error}"));
    outcome.outputs.values(0).unwrap().iter().map(|value| value.map(f32::from_bits)).collect()
}

#[track_caller]
fn trap(source: &str) -> Cause {
    match outcome(source, &[[1.0; 4]], Mode::Strict) {
        Err(RunError::Trap(trap)) => trap.trap.cause,
        other => panic!("{other:?}"),
    }
}

const INPUT: [f32; 4] = [1.0, -2.0, 3.0, 0.5];

// ---- Text

#[test]
fn any_words_survive_the_text() {
    let seed = 0x5eed_0521;
    println!("seed {seed:#x}");
    let mut random = Random::new(seed);
    for round in 0..20_000 {
        let mut words = any_record(&mut random).to_vec();
        words.extend((0..round % 3).map(|_| word(&mut random)));
        let program = Program::from_words(words);
        for listing in [Listing::default(), Listing { hex: true, structure: true, idioms: false }] {
            let text = disassemble(&program, listing);
            let back = assemble(&text).unwrap_or_else(|errors| panic!("{text}{errors:?}"));
            assert_eq!(back.program.words, program.words, "{text}");
        }
    }
}

/// Most of the words have a meaning.
#[test]
fn every_operation_survives_the_text() {
    for (kind, count) in [(0, 29), (1 << 6, 29), (1 << 7, 2)] {
        for code in 0..count {
            for rest in [0, 0x00f0_0203 & !0x3f, 0x0f30_8280 & !0xff, 1 << 28 | 0x0310_0000] {
                let words = [kind | code | rest & !0xff, 0x00d1_0001, 0x1e92_4023, 0x0249_2068];
                if decode(&words).is_err() {
                    continue;
                }
                let program = Program::from_words(words.to_vec());
                let text = disassemble(&program, Listing::default());
                assert_eq!(assemble(&text).unwrap().program.words, words, "{text}");
            }
        }
    }
}

// ---- Rules of docs/r500-vertex.md

/// Section 2.2: fetch, select, absolute value, negate. Literals are also negated.
#[test]
fn operands_are_selected_then_made_absolute_then_negated() {
    assert_eq!(o0("VE_ADD o0 = -|i0|.yxzw, i0.0\n", &[INPUT]), [[-2.0, -1.0, -3.0, -0.5]]);
    assert_eq!(o0("VE_ADD o0 = i0.x-y1-1, i0.0\n", &[INPUT]), [[1.0, 2.0, 1.0, -1.0]]);
}

/// Section 2.1: REG_TYPE 3.
#[test]
fn out_repl_x_replicates_the_x_result() {
    let source = "VE_ADD o0 = i0.0, i0.0\nVE_ADD ox0.yw = i0.zxyw, i0.0\n";
    assert_eq!(o0(source, &[INPUT]), [[0.0, 3.0, 0.0, 3.0]]);
}

/// Section 2.1: VE_SAT of the vector engine, ME_SAT of the math engine.
#[test]
fn each_engine_has_its_own_clamp() {
    assert_eq!(o0("VE_ADD_SAT o0 = i0, i0.0\n", &[INPUT]), [[1.0, 0.0, 1.0, 0.5]]);
    assert_eq!(o0("ME_RECIP_DX_SAT o0 = i0.w\n", &[INPUT]), [[1.0; 4]]);
    assert_eq!(o0("ME_RECIP_DX o0 = i0.w {OP.VE_SAT=1}\n", &[INPUT]), [[2.0; 4]]);
    let dual = "VE_ADD t0 = i0, i0\n  + ME_RECIP_DX_SAT at0.x = i0.w\nVE_ADD o0 = t0.x, at0.x\n";
    assert_eq!(o0(dual, &[INPUT]), [[3.0; 4]]);
}

/// Section 2.3: both halves read before either writes; the math half writes last.
#[test]
fn a_dual_instruction_reads_before_it_writes_and_its_math_half_writes_last() {
    let source = "VE_ADD at0 = i0, i0.0\nVE_ADD at0 = at0.w, at0.0\n  + ME_MULTIPLY at0.z = at0.xy\nVE_ADD o0 = at0, i0.0\n";
    assert_eq!(o0(source, &[INPUT]), [[0.5, 0.5, -2.0, 0.5]]);
}

/// Section 3.1, one row each.
#[test]
fn vector_operations() {
    let with = |op: &str| o0(&format!("{op}\n"), &[INPUT])[0];
    assert_eq!(with("VE_DOT_PRODUCT o0 = i0, i0"), [14.25; 4]);
    assert_eq!(with("VE_MULTIPLY_ADD o0 = i0, i0, i0"), [2.0, 2.0, 12.0, 0.75]);
    assert_eq!(with("VE_DISTANCE_VECTOR o0 = i0, i0"), [1.0, 4.0, 3.0, 0.5]);
    assert_eq!(with("VE_FRACTION o0 = i0.wwyx"), [0.5, 0.5, 0.0, 0.0]);
    assert_eq!(with("VE_MAXIMUM o0 = i0, i0.x"), [1.0, 1.0, 3.0, 1.0]);
    assert_eq!(with("VE_MINIMUM o0 = i0, i0.x"), [1.0, -2.0, 1.0, 0.5]);
    assert_eq!(with("VE_SET_GREATER_THAN_EQUAL o0 = i0, i0.x"), [1.0, 0.0, 1.0, 0.0]);
    assert_eq!(with("VE_SET_LESS_THAN o0 = i0, i0.x"), [0.0, 1.0, 0.0, 1.0]);
    assert_eq!(with("VE_SET_GREATER_THAN o0 = i0, i0.x"), [0.0, 0.0, 1.0, 0.0]);
    assert_eq!(with("VE_SET_EQUAL o0 = i0, i0.x"), [1.0, 0.0, 0.0, 0.0]);
    assert_eq!(with("VE_SET_NOT_EQUAL o0 = i0, i0.x"), [0.0, 1.0, 1.0, 1.0]);
    assert_eq!(with("VE_MULTIPLYX2_ADD o0 = i0, i0, i0.1"), [3.0, 9.0, 19.0, 1.5]);
    assert_eq!(with("VE_COND_MUX_EQ o0 = i0.0x0x, i0, i0.1"), [1.0, 1.0, 3.0, 1.0]);
    assert_eq!(with("VE_COND_MUX_GT o0 = i0, i0, i0.1"), [1.0, 1.0, 3.0, 0.5]);
    assert_eq!(with("VE_COND_MUX_GTE o0 = i0.0yzw, i0, i0.1"), [1.0, 1.0, 3.0, 0.5]);
    // VE_MULTIPLY_CLAMP returns C.w if C.w < A.w * B.w, C.x if C.x >= A.x * B.x, or else the product.
    assert_eq!(with("VE_MULTIPLY_CLAMP o0 = i0.y__w, i0.y__w, i0.x__0"), [0.0; 4]);
    assert_eq!(with("VE_MULTIPLY_CLAMP o0 = i0.y__w, i0.y__w, i0.z__1"), [4.0; 4]);
}

/// Section 3.1: unselected channels keep their value. (Q7)
#[test]
fn conditional_writes_keep_the_other_channels() {
    let source = "VE_ADD t0 = i0.1, i0.0\nVE_COND_WRITE_GT t0 = i0, i0.z\nVE_ADD o0 = t0, i0.0\n";
    assert_eq!(o0(source, &[INPUT]), [[3.0, 1.0, 3.0, 3.0]]);
}

/// Section 3.2: the math engine reads w; POWER has its exponent in C, D7.
#[test]
fn the_math_engine_reads_w() {
    assert_eq!(o0("ME_RECIP_DX o0 = i0\n", &[INPUT]), [[2.0; 4]]);
    assert_eq!(o0("ME_POWER_FUNC_FF o0 = i0.z, i0.-y\n", &[INPUT]), [[9.0; 4]]);
    assert_eq!(o0("ME_LIGHT_COEFF_DX o0 = i0.w, i0.w, i0.z\n", &[INPUT]), [[1.0, 0.5, 0.125, 1.0]]);
}

/// Section 4.3: a constant outside 0 to PVS_MAX_CONST_ADDR is zero. Its index in the file is the base plus the
/// number.
#[test]
fn constants_have_a_base_and_a_limit() {
    let state = ".state VAP_PVS_CONST_CNTL PVS_CONST_BASE_OFFSET=4 PVS_MAX_CONST_ADDR=1\n\
                 .const 4 1.0 2.0 3.0 4.0\n.const 5 5.0 6.0 7.0 8.0\n.const 6 9.0 9.0 9.0 9.0\n.const 3 9.0 9.0 9.0 9.0\n";
    let relative = format!("{state}VE_FLT2FIX_DX a0.x = i0.x___\nVE_ADD o0 = c[1+a0.x], c[1+a0.x].0\n");
    let inputs = [0.5, -0.5, -1.5, 1.0, -300.0].map(|x| [x, 0.0, 0.0, 0.0]);
    let one = [5.0, 6.0, 7.0, 8.0];
    assert_eq!(o0(&relative, &inputs), [one, [1.0, 2.0, 3.0, 4.0], [0.0; 4], [0.0; 4], [0.0; 4]]);
    assert_eq!(o0(&format!("{state}VE_ADD o0 = c2, c2.0\n"), &[INPUT]), [[0.0; 4]]);
}

/// Section 4.3 and Q12.
#[test]
fn a0_has_four_components_of_floors() {
    let source = ".const 3 7.0 0.0 0.0 0.0\nVE_FLT2FIX_DX a0 = i0\nVE_ADD o0 = c[5+a0.y].x, i0.0\n";
    assert_eq!(o0(source, &[INPUT]), [[7.0; 4]]);
    let rounded = ".const 1 7.0 0.0 0.0 0.0\nVE_FLT2FIX_DX_RND a0.w = i0\nVE_ADD o0 = c[0+a0.w].x, i0.0\n";
    assert_eq!(o0(rounded, &[INPUT]), [[7.0; 4]]);
    assert_eq!(o0("VE_FLT2FIX_DX o0 = i0\n", &[INPUT]), [[1.0, -2.0, 3.0, 0.0]]);
}

/// Section 3: predication gates writes and predicate updates. (Q5)
#[test]
fn predicates_gate_writes_and_predicates() {
    let source = "ME_PRED_SET_GT t0.w = i0.x\n(p) VE_ADD t1 = i0.1, i0.0\n(!p) VE_ADD t1 = i0.z, i0.0\n\
                  (p) ME_PRED_SET_CLR t0.w\n(p) VE_ADD t1 = i0.w, i0.0\nVE_ADD o0 = t1, t0.w\n";
    // If x > 0, the predicate is cleared, and the counter is the largest number. Otherwise the predicate stays false,
    // and the counter is 1.
    let found = o0(source, &[INPUT, [-1.0, 0.0, 3.0, 0.5]]);
    assert_eq!(found, [[f32::MAX; 4], [4.0; 4]]);
}

/// Section 5.5: the counter of nested branches.
#[test]
fn a_nested_branch_runs_as_structured_code_says() {
    // if (x > 0) { r = 1; if (y > 0) r = 2; else r = 3; } else r = 4;
    let source = "ME_PRED_SET_GT t0.w = i0.x\n(p) VE_ADD t1.x = i0.1, i0.0\n\
                  VE_PRED_SET_GT_PUSH t0.w = t0, i0.y\n(p) VE_ADD t1.x = i0.1, i0.1\n\
                  ME_PRED_SET_INV t0.w = t0\n(p) VE_MULTIPLY_ADD t1.x = i0.1, i0.z, i0.0\nME_PRED_SET_POP t0.w = t0\n\
                  ME_PRED_SET_INV t0.w = t0\n(p) VE_ADD t1.x = i0.z, i0.1\nME_PRED_SET_POP t0.w = t0\nVE_ADD o0 = t1.x, i0.0\n";
    let input = |x: f32, y: f32| [x, y, 3.0, 0.0];
    let found = o0(source, &[input(1.0, 1.0), input(1.0, -1.0), input(-1.0, 1.0), input(-1.0, -1.0)]);
    assert_eq!(found.iter().map(|o| o[0]).collect::<Vec<_>>(), [2.0, 3.0, 4.0, 4.0]);
}

/// Section 9.4: words and state that a driver wrote for
/// `for (i = 0; i < n; i++) { r = r * c + d; if (r.x > 5.) break; }`.
#[test]
fn a_compiled_loop_with_a_break_gives_what_its_source_says() {
    #[rustfmt::skip]
    let words = vec![
        0x0010_0003, 0x01ff_8000, 0x0124_8000, 0x0124_8000,
        0x00f0_2003, 0x00d1_0001, 0x0124_8001, 0x0124_8001,
        0x0080_8055, 0x0124_8000, 0x0124_8000, 0x0124_8000,
        0x0000_0000, 0x0000_0000, 0x0000_0000, 0x0000_0000,
        0x0c10_4009, 0x01ff_0000, 0x01ff_0042, 0x0124_8042,
        0x0080_8012, 0x00ff_e080, 0x003f_e040, 0x0124_8040,
        0x0c80_8046, 0x0124_8000, 0x0124_8000, 0x0124_8000,
        0x0080_805b, 0x00db_6080, 0x0124_8080, 0x0124_8080,
        0x0cf0_6003, 0x00d1_0022, 0x0124_8022, 0x0124_8022,
        0x0cf0_2004, 0x00d1_0020, 0x00d1_0002, 0x00d1_0060,
        0x0c10_400a, 0x01ff_2062, 0x01ff_0020, 0x0124_8020,
        0x0080_8012, 0x00ff_e080, 0x003f_e040, 0x0124_8040,
        0x0c80_8046, 0x0124_8000, 0x0124_8000, 0x0124_8000,
        0x0080_805b, 0x00db_6080, 0x0124_8080, 0x0124_8080,
        0x0c10_0003, 0x01ff_0000, 0x01ff_a000, 0x0124_8000,
        0x0000_0000, 0x0000_0000, 0x0000_0000, 0x0000_0000,
        0x00f0_0203, 0x00d1_0001, 0x0124_8001, 0x0124_8001,
        0x00f0_2203, 0x00d1_0020, 0x0124_8020, 0x0124_8020,
    ];
    let state = [
        ("VAP_PVS_FLOW_CNTL_OPC", 2),
        ("VAP_PVS_FLOW_CNTL_ADDRS_LW_0", 0x00ff_0003),
        ("VAP_PVS_FLOW_CNTL_ADDRS_UW_0", 0x0004_000e),
        ("VAP_PVS_FLOW_CNTL_LOOP_INDEX_0", 0x100),
        ("VAP_PVS_CODE_CNTL_0", 0x0110_4000),
        ("VAP_PVS_CODE_CNTL_1", 0x10),
        ("VAP_PVS_CONST_CNTL", 0x0003_0000),
    ];
    let state = state.map(|(name, value)| (name.to_owned(), value)).to_vec();
    let setup = Arc::new(Setup::new(&Program { words, state, ..Program::default() }).unwrap());
    let (c, d) = ([1.5, 0.5, 1.0, 2.0], [0.25, 1.0, -1.0, 0.0]);
    for n in [0, 1, 4, 9] {
        let inputs: Vec<[f32; 4]> = (0..70).map(|v| [v as f32 / 10.0 - 3.0, 1.0, v as f32, -1.0]).collect();
        let launch = Launch {
            vertices: inputs.len(),
            inputs: vec![Input { register: 0, values: inputs.iter().copied().map(vector).collect() }],
            environment: Environment {
                constants: vec![
                    (0, vector(c)),
                    (1, vector(d)),
                    (2, vector([n as f32, 0.0, 0.0, 0.0])),
                    (3, vector([0.0, 5.0, 0.0, 0.0])),
                ],
            }
            .into(),
        };
        let outcome = run(&setup, &launch, &options(Engine::Lockstep, Mode::Strict)).unwrap();
        assert_eq!(outcome.outputs.values(0).unwrap()[7], vector(inputs[7]));
        for (input, found) in inputs.iter().zip(outcome.outputs.values(1).unwrap()) {
            let mut r = *input;
            for _ in 0..n {
                r = [0, 1, 2, 3].map(|channel| r[channel] * c[channel] + d[channel]);
                if r[0] > 5.0 {
                    break;
                }
            }
            assert_eq!(found.map(f32::from_bits), r, "n = {n}, {input:?}");
        }
    }
}

/// Sections 5.3 and 5.4: aL as an index, and a call in the loop.
#[test]
fn a_loop_indexes_constants_and_calls_a_subroutine() {
    let source = ".state VAP_PVS_CODE_CNTL_0 PVS_LAST_INST=4\n.state VAP_PVS_FLOW_CNTL_OPC 0xe\n\
                  .state VAP_PVS_FLOW_CNTL_ADDRS_LW_0 PVS_FC_LOOP_CNT_JMP_INST=3\n\
                  .state VAP_PVS_FLOW_CNTL_ADDRS_UW_0 PVS_FC_LAST_INST=3 PVS_FC_RTN_INST=1\n\
                  .state VAP_PVS_FLOW_CNTL_LOOP_INDEX_0 PVS_FC_LOOP_INIT_VAL=1 PVS_FC_LOOP_STEP_VAL=2\n\
                  .state VAP_PVS_FLOW_CNTL_ADDRS_LW_1 PVS_FC_ACT_ADRS=2 PVS_FC_LOOP_CNT_JMP_INST=5\n\
                  .state VAP_PVS_FLOW_CNTL_ADDRS_UW_1 PVS_FC_LAST_INST=5 PVS_FC_RTN_INST=3\n\
                  .const 1 1.0 0.0 0.0 0.0\n.const 3 10.0 0.0 0.0 0.0\n.const 5 100.0 0.0 0.0 0.0\n\
                  VE_ADD t0 = i0.0, i0.0\nVE_ADD t0.x = t0.x, c[0+aL].x\nVECTOR_NO_OP\nVECTOR_NO_OP\n\
                  VE_ADD o0 = t0, i0.0\nVE_ADD t0.y = t0.y, i0.1\n";
    assert_eq!(o0(source, &[INPUT]), [[111.0, 3.0, 0.0, 0.0]]);
}

#[test]
fn strict_mode_names_what_the_documents_forbid() {
    assert_eq!(trap("VE_ADD o0 = c[0+a0.x], i0.0\n"), Cause::UnwrittenAddress);
    assert_eq!(trap("VE_ADD o0 = c[0+aL], i0.0\n"), Cause::NoLoopIndex);
    assert_eq!(trap("VE_ADD o40 = i0, i0.0\n"), Cause::OutsideFile { file: "o", register: 40, size: 32 });
    assert_eq!(trap("VE_ADD o0 = t200, i0.0\n"), Cause::OutsideFile { file: "t", register: 200, size: 128 });
    assert_eq!(
        trap(".state VAP_PVS_CODE_CNTL_0 PVS_LAST_INST=9\nVE_ADD o0 = i0, i0.0\n"),
        Cause::EmptySlot(1)
    );
    assert!(matches!(trap("VE_ADD o0 = c0, c1\n"), Cause::Forbidden(_)));
    assert!(matches!(trap(".word 0x3f 0 0 0\n"), Cause::NoMeaning(_)));
    let forever = ".state VAP_PVS_FLOW_CNTL_OPC 1\nVECTOR_NO_OP\nVECTOR_NO_OP\n";
    assert_eq!(trap(forever), Cause::Watchdog(20_000));
}

/// Q11: reads outside a file return zero, and writes are dropped.
#[test]
fn lenient_mode_reads_zero_and_drops_writes_outside_a_file() {
    let source = "VE_ADD o40 = i0, i0.0\nVE_ADD o0 = t200, i0.1\nVE_ADD o1 = c0, c1\n";
    let outcome = outcome(source, &[INPUT], Mode::Lenient).unwrap();
    assert_eq!(outcome.outputs.values(0).unwrap(), [vector([1.0; 4])]);
    assert_eq!((outcome.outputs.written(1), outcome.outputs.written(8)), (15, 0));
}

// ---- Engines

#[test]
fn random_programs_run_the_same_on_both_engines() {
    let seed = 0x5eed_0522;
    println!("seed {seed:#x}");
    let mut random = Random::new(seed);
    let (mut ended, mut fast) = (0, 0);
    for round in 0..600 {
        let program = program(&mut random);
        let setup = Arc::new(Setup::new(&program).unwrap());
        let launch = launch(&mut random, [3, 64, 100][round % 3]);
        let mode = [Mode::Lenient, Mode::Lenient, Mode::Strict][round / 3 % 3];
        let text = || disassemble(&program, Listing { structure: true, ..Listing::default() });
        let lockstep = run(&setup, &launch, &options(Engine::Lockstep, mode));
        if let Err(RunError::Differ(difference)) = &lockstep {
            panic!("{}{difference}", text());
        }
        let reference = run(&setup, &launch, &options(Engine::Reference, mode));
        assert_eq!(run(&setup, &launch, &options(Engine::Fast, mode)), reference, "{}", text());
        assert_eq!(lockstep, reference, "{}", text());
        ended += usize::from(reference.is_ok());
        fast += usize::from(Fast::new(&setup, &options(Engine::Fast, mode)).by_reference().count() == 0);
    }
    assert!(ended > 300 && fast > 30, "{ended} end, {fast} are fast throughout");
}

/// A vertex does not depend on the others.
#[test]
fn a_vertex_alone_leaves_what_it_leaves_among_others() {
    let seed = 0x5eed_0523;
    println!("seed {seed:#x}");
    let mut random = Random::new(seed);
    for _ in 0..40 {
        let setup = Arc::new(Setup::new(&program(&mut random)).unwrap());
        let launch = launch(&mut random, 5000);
        let options = options(Engine::Fast, Mode::Lenient);
        let all = run(&setup, &launch, &options).unwrap();
        for vertex in [0, 63, 64, 4999] {
            let inputs = launch
                .inputs
                .iter()
                .map(|input| Input { values: [input.values[vertex]].into(), ..input.clone() });
            let environment = launch.environment.clone();
            let alone = Launch { environment, vertices: 1, inputs: inputs.collect() };
            let alone = run(&setup, &alone, &options).unwrap();
            for output in 0..32 {
                let Some(expected) = alone.outputs.values(output) else { continue };
                assert_eq!(
                    all.outputs.values(output).unwrap()[vertex],
                    expected[0],
                    "o{output} of vertex {vertex}"
                );
            }
        }
    }
}

// ---- Generated programs

/// An expression over inputs and constants. Its program evaluates it in post order, with one temporary per level.
enum Tree {
    Input(u8),
    Constant(u8),
    Node(&'static str, Vec<Tree>),
}

fn tree(random: &mut Random, depth: u32) -> Tree {
    const OPERATIONS: [(&str, usize); 8] = [
        ("VE_ADD", 2),
        ("VE_MULTIPLY", 2),
        ("VE_MAXIMUM", 2),
        ("VE_MINIMUM", 2),
        ("VE_SET_LESS_THAN", 2),
        ("VE_FRACTION", 1),
        ("VE_DOT_PRODUCT", 2),
        ("MACRO_OP_2CLK_MADD", 3),
    ];
    if depth == 0 || one_in(5, random) {
        let number = (random.next() % 4) as u8;
        return if one_in(2, random) { Tree::Input(number) } else { Tree::Constant(number) };
    }
    let (name, operands) = OPERATIONS[random.next() as usize % OPERATIONS.len()];
    Tree::Node(name, (0..operands).map(|_| tree(random, depth - 1)).collect())
}

impl Tree {
    /// Emits code that computes the value in temporary `into`. Temporaries above it are free.
    fn compile(&self, into: usize, out: &mut String) {
        match self {
            Tree::Input(number) => out.push_str(&format!("VE_ADD t{into} = i{number}, i{number}.0\n")),
            Tree::Constant(number) => out.push_str(&format!("VE_ADD t{into} = c{number}, c{number}.0\n")),
            Tree::Node(name, operands) => {
                for (place, operand) in operands.iter().enumerate() {
                    operand.compile(into + place, out);
                }
                let sources: Vec<String> =
                    (0..operands.len()).map(|place| format!("t{}", into + place)).collect();
                out.push_str(&format!("{name} t{into} = {}\n", sources.join(", ")));
            }
        }
    }

    /// Returns the value, computed from the meaning of each operation.
    fn value(&self, inputs: &[[f32; 4]], constants: &[[f32; 4]]) -> [f32; 4] {
        let (name, operands) = match self {
            // A move is an addition of zero, which turns -0 into +0.
            Tree::Input(number) => return inputs[usize::from(*number)].map(|x| x + 0.0),
            Tree::Constant(number) => return constants[usize::from(*number)].map(|x| x + 0.0),
            Tree::Node(name, operands) => (*name, operands),
        };
        let of: Vec<[f32; 4]> = operands.iter().map(|operand| operand.value(inputs, constants)).collect();
        let each = |function: &dyn Fn(usize) -> f32| [0, 1, 2, 3].map(function);
        match name {
            "VE_ADD" => each(&|n| of[0][n] + of[1][n]),
            "VE_MULTIPLY" => each(&|n| of[0][n] * of[1][n]),
            "VE_MAXIMUM" => each(&|n| if of[0][n] <= of[1][n] { of[1][n] } else { of[0][n] }),
            "VE_MINIMUM" => each(&|n| if of[0][n] >= of[1][n] { of[1][n] } else { of[0][n] }),
            "VE_SET_LESS_THAN" => each(&|n| f32::from(u8::from(of[0][n] < of[1][n]))),
            "VE_FRACTION" => each(&|n| of[0][n] - of[0][n].floor()),
            "VE_DOT_PRODUCT" => {
                let [x, y, z, w] = [0, 1, 2, 3].map(|n| of[0][n] * of[1][n]);
                [x + y + z + w; 4]
            }
            _ => each(&|n| of[0][n] * of[1][n] + of[2][n]),
        }
    }
}

#[test]
fn generated_programs_equal_their_trees() {
    let seed = 0x5eed_0524;
    println!("seed {seed:#x}");
    let mut random = Random::new(seed);
    for _ in 0..200 {
        let tree = tree(&mut random, 5);
        let mut source = String::new();
        tree.compile(0, &mut source);
        source.push_str("VE_ADD o0 = t0, t0.0\n");
        let mut value = || [0, 1, 2, 3].map(|_| (random.next() % 256) as f32 / 16.0 - 8.0);
        let constants: Vec<[f32; 4]> = (0..4).map(|_| value()).collect();
        let inputs: Vec<Vec<[f32; 4]>> = (0..66).map(|_| (0..4).map(|_| value()).collect()).collect();
        let launch = Launch {
            vertices: inputs.len(),
            inputs: (0..4)
                .map(|n| Input {
                    register: n,
                    values: inputs.iter().map(|vertex| vector(vertex[usize::from(n)])).collect(),
                })
                .collect(),
            environment: Environment {
                constants: (0..4).zip(constants.iter().copied().map(vector)).collect(),
            }
            .into(),
        };
        let outcome = run(&setup(&source), &launch, &options(Engine::Lockstep, Mode::Strict)).unwrap();
        for (vertex, found) in inputs.iter().zip(outcome.outputs.values(0).unwrap()) {
            let expected = tree.value(vertex, &constants).map(|x| x + 0.0);
            let found = found.map(f32::from_bits);
            let same = (0..4).all(|n| found[n] == expected[n] || (found[n].is_nan() && expected[n].is_nan()));
            assert!(same, "{source}{vertex:?}: {found:?}, expected {expected:?}");
        }
    }
}

/// The next launch reuses a group that has ended. Registers, A0 and predicates are those of a new group.
#[test]
fn a_launch_leaves_nothing_to_the_next_one_of_its_program() {
    let seed = 0x5eed_0529;
    println!("seed {seed:#x}");
    let mut random = Random::new(seed);
    let mut ended = 0;
    for round in 0..300 {
        let setup = Arc::new(Setup::new(&program(&mut random)).unwrap());
        let mode = random.one_of(&[Mode::Lenient, Mode::Lenient, Mode::Strict]);
        let options = options(Engine::Fast, mode);
        let mut loaded = Loaded::of(&setup, &Arc::default(), &options);
        for number in 0..8 {
            let vertices = 1 + random.below(100) as usize;
            let mut launch = launch(&mut random, vertices);
            // Fewer inputs than in the previous launch, or none.
            launch.inputs.truncate(random.one_of(&[4, 4, 2, 0]));
            loaded = loaded.with_environment(&launch.environment);
            let found = loaded.run_watched(launch.clone(), Watch::Nothing);
            assert_eq!(found, run(&setup, &launch, &options), "round {round}, launch {number}");
            let (mut left, mut inputs) = (vec![[[0; 4]; 16]; vertices], 0);
            for input in &launch.inputs {
                inputs |= 1 << input.register;
                left.iter_mut()
                    .zip(&*input.values)
                    .for_each(|(to, from)| to[usize::from(input.register)] = *from);
            }
            let ran = loaded.run_vectors(&mut left, inputs);
            assert_eq!(ran.as_ref().err(), found.as_ref().err(), "round {round}, launch {number}: in place");
            for output in (0..16).filter(|_| ran.is_ok()) {
                let expected = found.as_ref().ok().and_then(|found| found.outputs.values(output));
                let expected = expected.map_or(vec![[0; 4]; vertices], <[_]>::to_vec);
                let left: Vec<_> = left.iter().map(|vectors| vectors[output]).collect();
                assert_eq!(left, expected, "round {round}, launch {number}, o{output}");
            }
            ended += usize::from(found.is_ok());
        }
    }
    assert!(ended > 900, "{ended}");
}
