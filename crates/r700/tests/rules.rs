//! Tests every rule of `rules.rs` with a program, or with the function concerned, that distinguishes its interpretation
//! from the others.

mod engines;

use engines::run;
use reconverge_isa::{FieldValue, Program};
use reconverge_r700::cause::Cause;
use reconverge_r700::chip::{Chip, Family};
use reconverge_r700::code::{Code, CodeFault, CodeOptions, ExportKind};
use reconverge_r700::flow::{FlowFault, LoopConstant};
use reconverge_r700::lane;
use reconverge_r700::launch::{Input, Launch, Stage};
use reconverge_r700::lint;
use reconverge_r700::meaning::{self, Unit};
use reconverge_r700::outcome::Outcome;
use reconverge_r700::rules::{RULES, Rule};
use reconverge_r700::text::assemble;
use reconverge_r700::texture::{Texture, TextureSampler};
use reconverge_r700::words::{MemDsrDword1, Op2, Op3};
use reconverge_simt::Options;
use reconverge_simt::texture::{Filter, Image, Level, MipFilter, Sampler, Shape};
use reconverge_simt::{Engine, Fidelity, Mode, Trap};
use reconverge_testkit::shared;

/// Options of lenient mode.
const LENIENT: Options = Options {
    mode: Mode::Lenient,
    engine: Engine::Fast,
    level: None,
    watchdog: 1 << 28,
    jobs: None,
    always_ahead: false,
    race_check: true,
};

/// Returns the test of each rule; a rule without one does not compile.
fn test_of(rule: Rule) -> fn() {
    match rule {
        Rule::LOCK_LOOP_INDEX_COUNTS_LINES => lock_loop_index_adds_al_to_the_line,
        Rule::TYPE_2_AND_3_BY_FAMILY => type_2_reads_on_r600_and_acknowledges_on_r700,
        Rule::POP_KEEPS_BREAKS => a_break_inside_an_if_survives_the_pop,
        Rule::DX10_LOOP_HAS_NO_COUNT => a_dx10_loop_ends_by_breaks_or_at_the_limit,
        Rule::POP_ONLY_WHEN_JUMPING => a_jump_not_taken_leaves_its_entry_for_the_pop,
        Rule::ALU_PUSH_BEFORE_ALWAYS_PUSHES => push_without_active_lanes_jumps_and_alu_push_before_pushes,
        Rule::EXECUTE_MASK_FROM_THE_NEXT_GROUP => the_execute_mask_acts_from_the_next_group_on,
        Rule::CONSTANT_READ_PORTS => a_group_of_many_constants_runs_and_is_a_finding,
        Rule::EVERGREEN_NUMBERS_ARE_RESERVED => evergreen_numbers_have_no_meaning,
        Rule::FLT_TO_INT_SATURATES => flt_to_int_saturates_and_makes_nan_zero,
        Rule::R600_SIN_TAKES_RADIANS => sin_takes_revolutions_and_on_r600_radians,
        Rule::TRANSCENDENTALS_ARE_ROUNDED_ONCE => transcendentals_are_rounded_once_and_called_approximate,
        Rule::PRED_SET_WRITES_ZERO_FOR_TRUE => pred_set_gives_zero_where_it_executes,
        Rule::DOUBLES_TAKE_THE_HIGH_HALF_FIRST => {
            the_lower_slot_of_a_double_takes_high_halves_and_gives_the_low_one
        }
        Rule::LDEXP_64_TAKES_THE_DOUBLE_FIRST => {
            ldexp_64_takes_the_double_first_unless_the_launch_says_otherwise
        }
        Rule::CUBE_SC_SIGN => sc_is_minus_z_on_plus_x,
        Rule::LOD_BIAS_IN_EIGHTHS => a_lod_bias_of_eight_is_one_level,
        Rule::ARRAY_SIZE_IS_THE_LAST_ELEMENT => an_array_size_of_one_has_two_elements,
        Rule::DATA_SHARE_WORDS_ARE_OURS => data_share_words_are_of_this_project_and_global_ones_have_none,
        Rule::PUSH_ELSE_INVERTS => push_else_keeps_the_lanes_that_fail,
        Rule::WHOLE_QUAD_REVIVES_BRANCHES_ONLY => whole_quad_mode_does_not_bring_broken_lanes_back,
        Rule::PREDICATE_STARTS_TRUE => the_predicate_of_a_new_clause_is_one,
        Rule::MUL_LIT_TESTS_SRC1 => mul_lit_tests_its_second_source,
        Rule::SHIFTS_USE_FIVE_BITS => a_shift_by_33_is_one_by_1,
        Rule::BAD_INDEX_READS_R0 => a_bad_index_reads_r0_and_writes_nothing,
        Rule::MUL_LIT_IS_TRANS_ONLY => mul_lit_runs_in_slot_t_only,
        Rule::SUMS_GO_LEFT_TO_RIGHT => dot4_adds_from_x_to_w_and_muladd_64_rounds_once,
        Rule::GRADIENTS_ARE_COARSE => both_rows_of_a_quad_have_the_gradient_of_the_first,
        Rule::MOVA_GPR_INT_IS_EARLY_R600 => r700_has_no_mova_gpr_int,
        Rule::KILL_JUMPS_WHEN_NONE_IS_VALID => kill_jumps_when_no_lane_is_valid,
        Rule::INDEXED_WRITES_ARE_SEEN_IN_THE_GROUP => {
            an_indexed_write_is_seen_behind_it_and_a_plain_one_is_not
        }
        Rule::GLOBAL_REGISTERS_ARE_COLUMNS => global_registers_hand_values_from_wavefront_to_wavefront,
        Rule::KEEP_GRADIENTS_TAKES_THE_QUADS => keep_gradients_serves_explicit_gradients,
        Rule::GET_LERP_GIVES_FOUR_WEIGHTS => get_lerp_gives_the_weights_that_sample_mixes_with,
        Rule::CUBEMAP_INDEX_IS_THE_ELEMENT => set_cubemap_index_chooses_the_element,
        Rule::MAX_DX10_GIVES_THE_NUMBER => max_dx10_and_min_dx10_give_the_number,
    }
}

#[test]
fn every_rule_shows_its_reading() {
    for info in RULES {
        test_of(info.rule)();
    }
}

#[test]
fn every_disagreement_of_the_notes_is_a_rule() {
    let Some(path) = shared("spec/r700.md") else { return };
    let notes = std::fs::read_to_string(path).expect("it exists");
    let rows =
        notes.lines().filter_map(|line| line.strip_prefix("| D")?.split_once(" |")?.0.parse::<u8>().ok());
    let numbers: Vec<u8> = rows.collect();
    assert_eq!(numbers, (1..=30).collect::<Vec<u8>>());
    for number in numbers {
        let info = RULES.iter().find(|info| info.rule.number() == number).expect("a rule with this number");
        assert!(info.question.ends_with('?') && info.reading.ends_with('.') && info.why.ends_with('.'));
    }
}

fn words_of(source: &str, chip: Chip) -> Vec<u32> {
    match assemble(source, chip) {
        Ok(assembled) => assembled.words,
        Err(faults) => panic!("{}: {}", &source[faults[0].span.start..faults[0].span.end], faults[0]),
    }
}

/// Returns four lanes of a pixel program: R0 is the lane number as float, then as integer, 0, 0.
fn launch() -> Launch {
    let mut launch = Launch::new(Chip::RV770, Stage::Pixel, 4);
    launch.environment_mut().num_gprs = 8;
    let values = (0..4u32).map(|lane| [(lane as f32).to_bits(), lane, 0, 0]).collect();
    launch.inputs.push(Input { gpr: 0, values });
    launch
}

fn try_run(source: &str, launch: &Launch, options: &Options) -> Result<Outcome, Trap<Cause>> {
    run(&Program::from_words(words_of(source, launch.environment.chip)), launch, options)
}

fn strict(source: &str, launch: &Launch) -> Outcome {
    try_run(source, launch, &Options::default()).unwrap_or_else(|trap| panic!("{trap}\n{source}"))
}

fn lenient(source: &str, launch: &Launch) -> Outcome {
    try_run(source, launch, &LENIENT).unwrap_or_else(|trap| panic!("{trap}\n{source}"))
}

fn fault(source: &str, launch: &Launch) -> Cause {
    try_run(source, launch, &Options::default()).expect_err(source).cause
}

/// Returns component x of pixel 0 as integers.
fn x_of(outcome: &Outcome) -> Vec<u32> {
    outcome.export(ExportKind::Pixel, 0).expect("pixel 0").values.iter().map(|value| value[0]).collect()
}

/// Returns component x of pixel 0 as floats.
fn float_x_of(outcome: &Outcome) -> Vec<f32> {
    x_of(outcome).into_iter().map(f32::from_bits).collect()
}

fn floats(values: [f32; 4]) -> [u32; 4] {
    values.map(f32::to_bits)
}

/// Exports R1 to pixel 0.
const EXPORT: &str = "EXPORT_DONE: PIXEL[0], R1.xyzw END_OF_PROGRAM\n";

#[test]
fn lock_loop_index_adds_al_to_the_line() {
    let mut launch = launch();
    launch.environment_mut().resources.constant_buffers[0] = (0..64 * 4).map(|dword| dword / 4).collect();
    // One iteration, aL = 2.
    launch.environment_mut().resources.loop_constants[0] = LoopConstant(0x0000_2001);
    let source = format!(
        "LOOP_START: ADDR(@out)\nALU: KCACHE0(CB0:0-31+aL)\n 0 x: MOV R1.x, KC0[3].x\nLOOP_END: ADDR(1)\n@out:\n{EXPORT}"
    );
    let outcome = strict(&source, &launch);
    assert_eq!(x_of(&outcome), [2 * 16 + 3; 4]);
    assert!(outcome.fidelity.rules.contains(&Rule::LOCK_LOOP_INDEX_COUNTS_LINES));
}

#[test]
fn type_2_reads_on_r600_and_acknowledges_on_r700() {
    let source = format!("MEM_SCRATCH: WRITE_ACK[0], R1.xyzw ELEM_SIZE(3)\n{EXPORT}");
    let words = words_of(&source, Chip::RV770);
    assert_eq!(words, words_of(&source.replace("WRITE_ACK", "READ"), Chip::named("r600").unwrap()));
    let mut launch = launch();
    launch.inputs.push(Input { gpr: 1, values: vec![[7; 4]; 4].into() });
    let program = Program::from_words(words);
    let r700 = run(&program, &launch, &Options::default()).unwrap();
    assert_eq!((x_of(&r700), r700.memory.scratch[0].as_slice()), (vec![7; 4], &[7; 4][..]));
    launch.environment_mut().chip = Chip::named("r600").unwrap();
    let r600 = run(&program, &launch, &Options::default()).unwrap();
    assert_eq!((x_of(&r600), r600.memory.scratch.len()), (vec![0; 4], 0));
    for outcome in [r600, r700] {
        assert!(outcome.fidelity.rules.contains(&Rule::TYPE_2_AND_3_BY_FAMILY));
    }
}

#[test]
fn a_break_inside_an_if_survives_the_pop() {
    // Lanes count up from their number; those above 1 leave.
    let source = format!(
        "LOOP_START_DX10: ADDR(@out)
         @body:
         ALU_PUSH_BEFORE:\n 0 x: PRED_SETGT _.x, R0.x, 1.0 UPDATE_EXEC_MASK
         JUMP: ADDR(@after) POP_CNT(1)
         LOOP_BREAK: ADDR(@end)
         POP: ADDR(@after) POP_CNT(1)
         @after:
         ALU:\n 1 x: ADD R0.x, R0.x, 1.0\n y: ADD_INT R1.y, R1.x, 1\n 2 x: MOV R1.x, PV.y
         @end:
         LOOP_END: ADDR(@body)
         @out:\n{EXPORT}"
    );
    let outcome = strict(&source, &launch());
    assert_eq!(x_of(&outcome), [2, 1, 0, 0]);
    assert!(outcome.fidelity.rules.contains(&Rule::POP_KEEPS_BREAKS));
}

#[test]
fn a_dx10_loop_ends_by_breaks_or_at_the_limit() {
    let mut launch = launch();
    launch.environment_mut().resources.loop_constants[0] = LoopConstant(1);
    let source = format!(
        "LOOP_START_DX10: ADDR(@out)\n@body:\nALU:\n 0 x: ADD_INT R1.x, R1.x, 1
         ALU_BREAK:\n 1 x: PRED_SETGT_INT _.x, 6, R1.x UPDATE_EXEC_MASK\nLOOP_END: ADDR(@body)\n@out:\n{EXPORT}"
    );
    let outcome = strict(&source, &launch);
    assert_eq!(x_of(&outcome), [6; 4]);
    assert!(outcome.fidelity.rules.contains(&Rule::DX10_LOOP_HAS_NO_COUNT));
    for (limit, rounds) in [(3, 3), (0, 0), (9, 6)] {
        launch.environment_mut().dx10_loop_limit = Some(limit);
        assert_eq!(x_of(&strict(&source, &launch)), [rounds; 4], "limit {limit}");
    }
}

#[test]
fn a_jump_not_taken_leaves_its_entry_for_the_pop() {
    let source = format!(
        "ALU_PUSH_BEFORE:\n 0 x: PRED_SETGT _.x, R0.x, 1.0 UPDATE_EXEC_MASK
         JUMP: ADDR(@after) POP_CNT(1)\nALU_POP_AFTER:\n 1 x: MOV R1.x, 1\n@after:\n{EXPORT}"
    );
    let outcome = strict(&source, &launch());
    assert_eq!(x_of(&outcome), [0, 0, 1, 1]);
    assert!(outcome.fidelity.rules.contains(&Rule::POP_ONLY_WHEN_JUMPING));
    // If the JUMP is taken, it pops, so no lane is missing at the export.
    let outcome = strict(&source.replace("R0.x, 1.0", "R0.x, 9.0f"), &launch());
    assert_eq!(x_of(&outcome), [0; 4]);
}

#[test]
fn push_without_active_lanes_jumps_and_alu_push_before_pushes() {
    let none = "ALU_PUSH_BEFORE:\n 0 x: PRED_SETGT _.x, R0.x, 9.0f UPDATE_EXEC_MASK\n";
    let alu = format!("{none}{none}POP: POP_CNT(2)\nALU:\n 1 x: MOV R1.x, 1\n{EXPORT}");
    let push =
        format!("{none}PUSH: ADDR(@on) POP_CNT(1)\nPOP: POP_CNT(7)\n@on:\nALU:\n 1 x: MOV R1.x, 1\n{EXPORT}");
    for source in [alu, push] {
        let outcome = strict(&source, &launch());
        assert_eq!(x_of(&outcome), [1; 4]);
        assert!(outcome.fidelity.rules.contains(&Rule::ALU_PUSH_BEFORE_ALWAYS_PUSHES));
    }
}

#[test]
fn the_execute_mask_acts_from_the_next_group_on() {
    let source = format!(
        "ALU_PUSH_BEFORE:\n 0 x: PRED_SETGT _.x, R0.x, 1.0 UPDATE_EXEC_MASK\n y: MOV R1.y, 1\n 1 x: MOV R1.x, 1
         POP: POP_CNT(1)\n{EXPORT}"
    );
    assert_eq!(fault(&source, &launch()), Cause::ExecuteMaskNotLast);
    let outcome = lenient(&source, &launch());
    let values = &outcome.export(ExportKind::Pixel, 0).unwrap().values;
    assert_eq!(*values, [[0, 1, 0, 0], [0, 1, 0, 0], [1, 1, 0, 0], [1, 1, 0, 0]]);
    assert!(outcome.fidelity.rules.contains(&Rule::EXECUTE_MASK_FROM_THE_NEXT_GROUP));
}

#[test]
fn a_group_of_many_constants_runs_and_is_a_finding() {
    let mut launch = launch();
    launch.environment_mut().resources.constant_buffers[0] = (0..64).collect();
    let source = format!(
        "ALU: KCACHE0(CB0:0-15)\n 0 x: ADD_INT R1.x, KC0[0].x, KC0[1].x\n y: ADD_INT R1.y, KC0[2].x, KC0[3].x\n{EXPORT}"
    );
    let pixels = &strict(&source, &launch).exports[0].values;
    assert_eq!(pixels[0], [4, 8 + 12, 0, 0]);
    let found = lint::lint(&words_of(&source, Chip::RV770), Chip::RV770);
    assert_eq!(found.iter().map(|finding| finding.rule.name).collect::<Vec<_>>(), ["constant-port"]);
}

#[test]
fn evergreen_numbers_have_no_meaning() {
    let of = |slot: [u32; 2]| {
        let words = [2, 0xa000_0000, 0, 0x8020_0000, slot[0], slot[1]];
        let code = Code::new(&words, 0, CodeOptions::new(Chip::RV770));
        code.faults().next().map(|(_, fault)| fault.clone())
    };
    for number in 0x54..=0x5c_u32 {
        let unknown = CodeFault::Unknown { field: "ALU_INST", number };
        assert_eq!(of([1 << 31, number << 7]), Some(unknown), "OP2 {number:#x}");
    }
    for number in 4..8_u32 {
        assert!(Op3::from_bits(number, 5).is_none());
        assert!(matches!(of([1 << 31, number << 13]), Some(CodeFault::Word(_))), "OP3 {number}");
    }
    assert_eq!(of([1 << 31, 0x19 << 7]), None, "MOV has one");
}

#[test]
fn flt_to_int_saturates_and_makes_nan_zero() {
    let cases = [(3e9_f32, i32::MAX), (-3e9, i32::MIN), (f32::NAN, 0), (f32::INFINITY, i32::MAX), (-1.9, -1)];
    for (value, wanted) in cases {
        assert_eq!(lane::flt_to_int(value.to_bits()) as i32, wanted, "{value}");
    }
    for (value, wanted) in [(5e9_f32, u32::MAX), (-1.0, 0), (f32::NAN, 0), (3e9, 3_000_000_000)] {
        assert_eq!(lane::flt_to_uint(value.to_bits()), wanted, "{value}");
    }
    let outcome = strict(&format!("ALU:\n 0 t: FLT_TO_INT R1.x, R0.x\n{EXPORT}"), &launch());
    assert!(outcome.fidelity.rules.contains(&Rule::FLT_TO_INT_SATURATES));
}

#[test]
fn sin_takes_revolutions_and_on_r600_radians() {
    let source = format!("ALU:\n 0 t: SIN R1.x, 0.25f\n{EXPORT}");
    assert_eq!(float_x_of(&strict(&source, &launch())), [1.0; 4]);
    let mut launch = launch();
    launch.environment_mut().chip = Chip::named("r600").unwrap();
    let outcome = strict(&source, &launch);
    assert_eq!(float_x_of(&outcome), [0.247_403_96; 4]);
    assert!(outcome.fidelity.rules.contains(&Rule::R600_SIN_TAKES_RADIANS));
}

#[test]
fn transcendentals_are_rounded_once_and_called_approximate() {
    let outcome = strict(&format!("ALU:\n 0 t: SQRT_IEEE R1.x, 2.0f\n{EXPORT}"), &launch());
    assert_eq!(float_x_of(&outcome), [std::f32::consts::SQRT_2; 4]);
    assert_eq!(
        outcome
            .fidelity
            .report
            .operations
            .values()
            .filter(|(fidelity, _)| *fidelity == Fidelity::Approximate)
            .count(),
        1
    );
    assert!(outcome.fidelity.rules.contains(&Rule::TRANSCENDENTALS_ARE_ROUNDED_ONCE));
}

#[test]
fn pred_set_gives_zero_where_it_executes() {
    let outcome = strict(&format!("ALU:\n 0 x: PRED_SETGT R1.x, R0.x, 1.0\n{EXPORT}"), &launch());
    assert_eq!(float_x_of(&outcome), [1.0, 1.0, 0.0, 0.0]);
    assert!(outcome.fidelity.rules.contains(&Rule::PRED_SET_WRITES_ZERO_FOR_TRUE));
}

/// Returns a launch whose R`gpr`.xy is this double in every lane, low half in x.
fn with_double(mut launch: Launch, gpr: u8, value: f64) -> Launch {
    let bits = value.to_bits();
    launch.inputs.push(Input { gpr, values: vec![[bits as u32, (bits >> 32) as u32, 0, 0]; 4].into() });
    launch
}

/// Returns R1.xy of lane 0 as a double.
fn double_of(outcome: &Outcome) -> f64 {
    let [low, high, ..] = outcome.export(ExportKind::Pixel, 0).expect("pixel 0").values[0];
    f64::from_bits(u64::from(high) << 32 | u64::from(low))
}

#[test]
fn the_lower_slot_of_a_double_takes_high_halves_and_gives_the_low_one() {
    let launch = with_double(with_double(launch(), 2, 1.1), 3, 2.25);
    let source = format!("ALU:\n 0 x: ADD_64 R1.x, R2.y, R3.y\n y: ADD_64 R1.y, R2.x, R3.x\n{EXPORT}");
    let outcome = strict(&source, &launch);
    assert_eq!(double_of(&outcome), 1.1 + 2.25);
    assert!(outcome.fidelity.rules.contains(&Rule::DOUBLES_TAKE_THE_HIGH_HALF_FIRST));
}

#[test]
fn ldexp_64_takes_the_double_first_unless_the_launch_says_otherwise() {
    let mut launch = with_double(launch(), 2, 1.5);
    let source = format!("ALU:\n 0 x: LDEXP_64 R1.x, R2.y, 3\n y: LDEXP_64 R1.y, R2.x, 3\n{EXPORT}");
    let outcome = strict(&source, &launch);
    assert_eq!(double_of(&outcome), 12.0);
    assert!(outcome.fidelity.rules.contains(&Rule::LDEXP_64_TAKES_THE_DOUBLE_FIRST));
    let swapped = format!("ALU:\n 0 x: LDEXP_64 R1.x, 3, R2.y\n y: LDEXP_64 R1.y, 3, R2.x\n{EXPORT}");
    launch.environment_mut().ldexp_64_integer_first = true;
    assert_eq!(double_of(&strict(&swapped, &launch)), 12.0);
}

#[test]
fn sc_is_minus_z_on_plus_x() {
    let cube =
        |[x, y, z]: [f32; 3]| lane::cube(floats([z, z, x, y]), floats([y, x, z, z])).map(f32::from_bits);
    // tc, sc, 2 ma, face
    assert_eq!(cube([4.0, 2.0, 1.0]), [-2.0, -1.0, 8.0, 0.0]);
    assert_eq!(cube([-4.0, 2.0, 1.0]), [-2.0, 1.0, -8.0, 1.0]);
}

/// Returns a launch of four lanes with the given R2 and texture 0, whose texel n of level l is n + 100 l.
fn textured(shape: Shape, sizes: &[[u32; 3]], r2: [[f32; 4]; 4], sampler: Sampler) -> Launch {
    let mut launch = launch();
    launch.inputs.push(Input { gpr: 2, values: r2.map(floats).into() });
    let level = |(number, &[width, height, depth]): (usize, &[u32; 3])| {
        let texel = |texel: u32| floats([(texel + 100 * number as u32) as f32; 4]);
        Level { width, height, depth, texels: (0..width * height * depth).map(texel).collect() }
    };
    let image = Image::new(shape, sizes.iter().enumerate().map(level).collect()).unwrap();
    launch.environment_mut().resources.textures.insert(0, Texture::floats(image));
    launch
        .environment_mut()
        .resources
        .samplers
        .insert(0, TextureSampler { sampler, ..TextureSampler::default() });
    launch
}

fn linear() -> Sampler {
    Sampler { mag: Filter::Linear, min: Filter::Linear, mip: MipFilter::Linear, ..Sampler::default() }
}

#[test]
fn a_lod_bias_of_eight_is_one_level() {
    let sizes = [[4, 4, 1], [2, 2, 1], [1, 1, 1]];
    let launch =
        textured(Shape::D2, &sizes, [[0.0; 4]; 4], Sampler { mip: MipFilter::Nearest, ..Sampler::default() });
    for (bias, level) in [(0, 0.0), (8, 100.0), (16, 200.0)] {
        let source = format!("TEX:\n SAMPLE_LZ R1.xyzw, R2.xyzw, t0, s0 LOD_BIAS({bias})\n{EXPORT}");
        let outcome = strict(&source, &launch);
        assert_eq!(float_x_of(&outcome), [level; 4], "bias {bias}");
        assert!(outcome.fidelity.rules.contains(&Rule::LOD_BIAS_IN_EIGHTHS));
    }
}

#[test]
fn an_array_size_of_one_has_two_elements() {
    let source = |at: u32| {
        format!(
            "ALU:\n 0 x: MOV R2.x, {at}\nMEM_SCRATCH: WRITE_IND[0], R0.xyzw INDEX_GPR(2) ELEM_SIZE(3) ARRAY_SIZE(1)\n{EXPORT}"
        )
    };
    let outcome = strict(&source(1), &launch());
    assert_eq!(outcome.memory.scratch[3].len(), 8);
    assert!(outcome.fidelity.rules.contains(&Rule::ARRAY_SIZE_IS_THE_LAST_ELEMENT));
    assert!(matches!(fault(&source(2), &launch()), Cause::MemoryBounds { what: "MEM_SCRATCH", .. }));
    assert!(lenient(&source(2), &launch()).memory.scratch.is_empty());
}

#[test]
fn data_share_words_are_of_this_project_and_global_ones_have_none() {
    let source =
        format!("TEX:\n LOCAL_DS_WRITE R0 DST_STRIDE(4)\n LOCAL_DS_READ R1.xyzw, R2.x SRC_Y(Y)\n{EXPORT}");
    let outcome = strict(&source, &launch());
    assert_eq!(x_of(&outcome), [0; 4], "lane 0's entry");
    assert!(outcome.fidelity.rules.contains(&Rule::DATA_SHARE_WORDS_ARE_OURS));
    assert!(MemDsrDword1::INFO.field("MUX_CNTL").is_some(), "the one field whose word the manual names");
    for (op, name) in [(6, "GLOBAL_DS_WRITE"), (7, "GLOBAL_DS_READ")] {
        let words = vec![2, 0x8080_0000, 0, 0x8020_0000, 2 | op << 8, 0, 0, 0];
        let trap = run(&Program::from_words(words), &launch(), &Options::default()).unwrap_err();
        assert_eq!(trap.cause, Cause::Code(CodeFault::Undocumented { name }));
        assert!(trap.cause.to_string().contains(name));
    }
}

#[test]
fn push_else_keeps_the_lanes_that_fail() {
    // Every lane passes, so none stays active: PUSH_ELSE jumps, with its entry on the stack.
    let body = "ALU:\n 0 x: MOV R1.x, 1\n@on:\nPOP: POP_CNT(1)\n";
    let source = format!("PUSH_ELSE: ADDR(@on)\n{body}{EXPORT}");
    let outcome = strict(&source, &launch());
    assert_eq!(x_of(&outcome), [0; 4]);
    assert!(outcome.fidelity.rules.contains(&Rule::PUSH_ELSE_INVERTS));
    // No lane passes, so all stay active.
    let source = format!("PUSH_ELSE: ADDR(@on) COND(FALSE)\n{body}{EXPORT}");
    assert_eq!(x_of(&strict(&source, &launch())), [1; 4]);
}

#[test]
fn whole_quad_mode_does_not_bring_broken_lanes_back() {
    // Lane 3 breaks, lanes 1 and 2 fail an `if`. PUSH in WHOLE_QUAD_MODE resumes only those two.
    let source = format!(
        "LOOP_START_DX10: ADDR(@out)\n@body:
         ALU_BREAK:\n 0 x: PRED_SETGT _.x, 3.0f, R0.x UPDATE_EXEC_MASK
         ALU:\n 1 x: PRED_SETE _.x, R0.x, 0 UPDATE_EXEC_MASK
         PUSH: ADDR(@in) WHOLE_QUAD\n@in:
         ALU:\n 2 x: MOV R1.x, 1
         LOOP_BREAK: ADDR(@end)\n@end:\nLOOP_END: ADDR(@body)\n@out:\n{EXPORT}"
    );
    let outcome = strict(&source, &launch());
    assert_eq!(x_of(&outcome), [1, 1, 1, 0]);
    assert!(outcome.fidelity.rules.contains(&Rule::WHOLE_QUAD_REVIVES_BRANCHES_ONLY));
}

#[test]
fn the_predicate_of_a_new_clause_is_one() {
    let source = format!(
        "ALU:\n 0 x: PRED_SETGT _.x, R0.x, 9.0f UPDATE_PRED
         ALU:\n 1 x: MOV R1.x, 1 PRED(ONE)\n 2 x: MOV R1.x, -1 PRED(ZERO)\n{EXPORT}"
    );
    let outcome = strict(&source, &launch());
    assert_eq!(x_of(&outcome), [1; 4]);
    assert!(outcome.fidelity.rules.contains(&Rule::PREDICATE_STARTS_TRUE));
    let source = source.replace("\n         ALU:\n", "\n");
    let outcome = strict(&source, &launch());
    assert_eq!(x_of(&outcome), [u32::MAX; 4]);
    assert!(!outcome.fidelity.rules.contains(&Rule::PREDICATE_STARTS_TRUE), "the clause wrote it");
}

#[test]
fn mul_lit_tests_its_second_source() {
    let mul_lit =
        |a: f32, b: f32, c: f32| f32::from_bits(lane::mul_lit(a.to_bits(), b.to_bits(), c.to_bits()));
    for special in [f32::NEG_INFINITY, f32::NAN, -f32::MAX] {
        assert_eq!(mul_lit(2.0, special, 1.0), -f32::MAX);
    }
    assert_eq!(mul_lit(f32::NEG_INFINITY, 2.0, 1.0), f32::NEG_INFINITY);
    assert_eq!(mul_lit(2.0, 3.0, 0.0), -f32::MAX);
    assert_eq!(mul_lit(2.0, 3.0, 1.0), 6.0);
    assert_eq!(meaning::op3(Op3::MUL_LIT).rule, Some(Rule::MUL_LIT_TESTS_SRC1));
}

#[test]
fn a_shift_by_33_is_one_by_1() {
    assert_eq!(
        [lane::lshl_int(3, 33), lane::lshr_int(8, 33), lane::ashr_int(0x8000_0000, 32)],
        [6, 4, 0x8000_0000]
    );
    let outcome = strict(&format!("ALU:\n 0 x: LSHL_INT R1.x, 1, 33\n{EXPORT}"), &launch());
    assert_eq!(x_of(&outcome), [2; 4]);
    assert!(outcome.fidelity.rules.contains(&Rule::SHIFTS_USE_FIVE_BITS));
}

#[test]
fn a_bad_index_reads_r0_and_writes_nothing() {
    // AR = 100; eight registers are declared.
    let source = format!(
        "ALU:\n 0 x: MOVA_INT _.x, 100\n 1 x: MOV R1.x, R[1+AR.x].y\n 2 y: MOV R[1+AR.x].y, 1\n{EXPORT}"
    );
    assert_eq!(fault(&source, &launch()), Cause::Register { register: 101, declared: 8 });
    let outcome = lenient(&source, &launch());
    assert_eq!(x_of(&outcome), [0, 1, 2, 3], "R0.y");
    assert!(outcome.fidelity.rules.contains(&Rule::BAD_INDEX_READS_R0));
}

#[test]
fn mul_lit_runs_in_slot_t_only() {
    for code in [Op3::MUL_LIT, Op3::MUL_LIT_M2, Op3::MUL_LIT_M4, Op3::MUL_LIT_D2] {
        assert_eq!(meaning::op3(code).unit, Unit::Trans);
    }
    let two =
        format!("ALU:\n 0 ?: MUL_LIT_M2 R1.x, 1.0, 1.0, 1.0\n ?: MUL_LIT_M4 R1.y, 1.0, 1.0, 1.0\n{EXPORT}");
    assert_eq!(fault(&two, &launch()), Cause::Code(CodeFault::SlotTaken { slot: 't' }));
}

#[test]
fn dot4_adds_from_x_to_w_and_muladd_64_rounds_once() {
    let ones = floats([1.0; 4]);
    assert_eq!(f32::from_bits(lane::dot4(floats([1e8, 1.0, -1e8, 1.0]), ones)), 1.0);
    assert_eq!(f32::from_bits(lane::dot4_ieee(floats([1.0, -1e8, 1e8, 1.0]), ones)), 1.0);
    // (1 + 2^-52)^2 - 1 - 2^-51 is 2^-104, or 0 if the product is rounded first.
    let near = 1.0 + f64::EPSILON;
    let mut launch = with_double(with_double(launch(), 2, near), 3, -(1.0 + 2.0 * f64::EPSILON));
    let source = format!(
        "ALU:\n 0 x: MULADD_64 R1.x, R2.y, R2.y, R3.y\n y: MULADD_64 R1.y, R2.y, R2.y, R3.y
         z: MULADD_64 R1.z, R2.y, R2.y, R3.y\n w: MULADD_64 R1.w, R2.x, R2.x, R3.x\n{EXPORT}"
    );
    let outcome = strict(&source, &launch);
    assert_eq!(double_of(&outcome), f64::EPSILON * f64::EPSILON);
    assert!(outcome.fidelity.rules.contains(&Rule::SUMS_GO_LEFT_TO_RIGHT));
    launch.environment_mut().fused_muladd_64 = false;
    assert_eq!(double_of(&strict(&source, &launch)), 0.0);
}

#[test]
fn both_rows_of_a_quad_have_the_gradient_of_the_first() {
    let r2 = [[0.0, 0.0, 0.0, 0.0], [1.0, 0.0, 0.0, 0.0], [10.0, 0.0, 0.0, 0.0], [30.0, 0.0, 0.0, 0.0]];
    let launch = textured(Shape::D2, &[[1, 1, 1]], r2, Sampler::default());
    for (name, wanted) in [("GET_GRADIENTS_H", 1.0), ("GET_GRADIENTS_V", 10.0)] {
        let outcome = strict(&format!("TEX:\n {name} R1.xyzw, R2.xyzw, t0, s0\n{EXPORT}"), &launch);
        assert_eq!(float_x_of(&outcome), [wanted; 4]);
        assert!(outcome.fidelity.rules.contains(&Rule::GRADIENTS_ARE_COARSE));
    }
}

#[test]
fn r700_has_no_mova_gpr_int() {
    assert!(meaning::op2(Op2::MOVA_GPR_INT, Family::R700).is_none());
    let source = format!("ALU:\n 0 t: MOVA_GPR_INT _.x, 1\n 1 x: MOV R1.x, R[0+aL].y\n{EXPORT}");
    let unknown = CodeFault::Unknown { field: "ALU_INST", number: 0x60 };
    assert_eq!(fault(&source, &launch()), Cause::Code(unknown));
    let mut launch = launch();
    launch.environment_mut().chip = Chip::named("r600").unwrap();
    launch.inputs.push(Input { gpr: 1, values: vec![[9; 4]; 4].into() });
    let outcome = strict(&source, &launch);
    assert_eq!(x_of(&outcome), [9; 4]);
    assert!(outcome.fidelity.rules.contains(&Rule::MOVA_GPR_INT_IS_EARLY_R600));
    // Each lane uses its own index.
    launch.inputs[1].values = (0..4).map(|lane| [lane, 0, 0, 0]).collect();
    launch.inputs.push(Input { gpr: 2, values: vec![[7; 4]; 4].into() });
    let source = "ALU:\n 0 t: MOVA_GPR_INT _.x, R1.x\n 1 x: MOV R3.x, 0\n 2 x: MOV R1.x, R[1+AR.x].x\n";
    let outcome = strict(&format!("{source}{EXPORT}"), &launch);
    assert_eq!(x_of(&outcome), [0, 7, 0, 0]);
}

#[test]
fn kill_jumps_when_no_lane_is_valid() {
    // The POP would trap, but KILL jumps over it.
    let source = format!("KILL: ADDR(@out)\nPOP: POP_CNT(1)\n@out:\n{EXPORT}");
    let outcome = strict(&source, &launch());
    assert_eq!(outcome.killed, [true; 4]);
    assert!(outcome.fidelity.rules.contains(&Rule::KILL_JUMPS_WHEN_NONE_IS_VALID));
    let one_is_left = source.replace("KILL:", "ALU:\n 0 x: PRED_SETE _.x, R0.x, 0 UPDATE_EXEC_MASK\nKILL:");
    let trap = fault(&one_is_left, &launch());
    assert_eq!(trap, Cause::Flow(FlowFault::StackEmpty { op: "POP" }));
}

#[test]
fn an_indexed_write_is_seen_behind_it_and_a_plain_one_is_not() {
    let source = |write: &str| {
        format!(
            "ALU:\n 0 x: MOVA_INT _.x, 0\n 1 x: MOV {write}, 1\n y: MOV R1.y, R2.x\n 2 x: MOV R1.x, R1.y\n{EXPORT}"
        )
    };
    let outcome = strict(&source("R[2+AR.x].x"), &launch());
    assert_eq!(x_of(&outcome), [1; 4]);
    assert!(outcome.fidelity.rules.contains(&Rule::INDEXED_WRITES_ARE_SEEN_IN_THE_GROUP));
    assert_eq!(x_of(&strict(&source("R2.x"), &launch())), [0; 4]);
}

#[test]
fn global_registers_hand_values_from_wavefront_to_wavefront() {
    // Global register 1 counts; 66 lanes are two wavefronts.
    let mut launch = launch();
    launch.lanes = 66;
    launch.global = vec![[[0; 64]; 4], [[5; 64]; 4]];
    let source = format!(
        "ALU:\n 0 x: ADD_INT R[1+GLOBAL].x, R[1+GLOBAL].x, 1\n 1 x: MOV R1.x, R[1+GLOBAL].x\n{EXPORT}"
    );
    let outcome = strict(&source, &launch);
    let x = x_of(&outcome);
    assert_eq!((x[0], x[63], x[64], x[65]), (6, 6, 7, 7));
    assert_eq!((outcome.memory.global[1][0][1], outcome.memory.global[1][0][2]), (7, 6));
    assert!(outcome.fidelity.rules.contains(&Rule::GLOBAL_REGISTERS_ARE_COLUMNS));
    // AR.x is added in the other mode. Operands that are not indexed remain the lane's own.
    let by_ar =
        format!("ALU:\n 0 x: MOVA_INT _.x, 1\n 1 x: ADD_INT R1.x, R[0+GLOBAL_AR.x].x, R0.y\n{EXPORT}");
    assert_eq!(x_of(&strict(&by_ar, &launch))[..4], [5, 6, 7, 8]);
    launch.global.truncate(1);
    assert_eq!(fault(&source, &launch), Cause::GlobalRegister { register: 1, declared: 1 });
    // A read returns R0.x instead of the register, and the write is dropped.
    assert_eq!(float_x_of(&lenient(&source, &launch))[..4], [0.0, 1.0, 2.0, 3.0]);
    launch.environment_mut().chip = Chip::named("r600").unwrap();
    let unknown = CodeFault::Unknown { field: "INDEX_MODE", number: 5 };
    assert_eq!(fault(&source, &launch), Cause::Code(unknown));
}

#[test]
fn keep_gradients_serves_explicit_gradients() {
    // A pixel is two texels wide in one direction, so level 1 is read. All lanes sample the same coordinates, and lane
    // 3 has the same position as lane 0.
    let sampler = Sampler { mip: MipFilter::Nearest, ..Sampler::default() };
    let source = format!(
        "TEX:\n KEEP_GRADIENTS R3.____, R2.xyzw, t0, s0\n SAMPLE_G R1.xyzw, R4.xyzw, t0, s0\n{EXPORT}"
    );
    let sizes = [[4, 4, 1], [2, 2, 1], [1, 1, 1]];
    let [origin, right, below] = [[0.0; 4], [0.5, 0.0, 0.0, 0.0], [0.0, 0.5, 0.0, 0.0]];
    for quad in [[origin, right, origin, origin], [origin, origin, below, origin]] {
        let launch = textured(Shape::D2, &sizes, quad, sampler);
        assert_eq!(float_x_of(&strict(&source, &launch)), [100.0; 4]);
    }
    let mut launch = textured(Shape::D2, &sizes, [origin, right, below, origin], sampler);
    let outcome = strict(&source, &launch);
    assert!(outcome.fidelity.rules.contains(&Rule::KEEP_GRADIENTS_TAKES_THE_QUADS));
    // The gradients do not outlive the clause.
    assert_eq!(fault(&source.replace("\n SAMPLE_G", "\nTEX:\n SAMPLE_G"), &launch), Cause::Gradients);
    launch.environment_mut().chip = Chip::named("r600").unwrap();
    let unknown = CodeFault::Unknown { field: "TEX_INST", number: 10 };
    assert_eq!(fault(&source, &launch), Cause::Code(unknown));
}

#[test]
fn get_lerp_gives_the_weights_that_sample_mixes_with() {
    // Texel coordinates 1.75 and 1.125: a quarter and five eighths of the way to the next texel centre.
    let r2 = [[1.75 / 4.0, 1.125 / 2.0, 0.0, 0.5]; 4];
    let launch = textured(Shape::D2, &[[4, 2, 1], [2, 1, 1]], r2, linear());
    let source = format!("TEX:\n GET_LERP R1.xyzw, R2.xyzw, t0, s0\n{EXPORT}");
    let outcome = strict(&source, &launch);
    let weights = outcome.export(ExportKind::Pixel, 0).unwrap().values[0].map(f32::from_bits);
    assert_eq!(weights, [0.25, 0.625, 0.0, 0.0], "equal coordinates in the quad are the largest level");
    assert!(outcome.fidelity.rules.contains(&Rule::GET_LERP_GIVES_FOUR_WEIGHTS));
    let biased = source.replace("s0\n", "s0 LOD_BIAS(4)\n");
    // A quad one texel apart has level 0; a bias of 4/8 is half a level.
    let mut apart = launch.clone();
    apart.inputs[1].values = [[0.4375, 0.5625], [0.6875, 0.5625], [0.4375, 1.0625], [0.6875, 1.0625]]
        .map(|[x, y]| floats([x, y, 0.0, 0.0]))
        .into();
    let outcome = strict(&biased, &apart);
    let weights = outcome.export(ExportKind::Pixel, 0).unwrap().values[0].map(f32::from_bits);
    assert_eq!(weights, [0.25, 0.625, 0.0, 0.5]);
}

#[test]
fn set_cubemap_index_chooses_the_element() {
    // Face 2, element 0 by the coordinates; element 1 by the index in x.
    let r2 = [[1.25, 1.25, 2.0, 0.0]; 4];
    let mut launch = textured(Shape::CubeArray, &[[2, 2, 12]], r2, Sampler::default());
    launch.inputs.push(Input { gpr: 3, values: vec![floats([1.0, 0.0, 0.0, 0.0]); 4].into() });
    let plain = format!("TEX:\n SAMPLE_LZ R1.xyzw, R2.xyzw, t0, s0\n{EXPORT}");
    let first = float_x_of(&strict(&plain, &launch))[0];
    let set = plain.replace("TEX:\n", "TEX:\n SET_CUBEMAP_INDEX R4.____, R3.xyzw, t0, s0\n");
    let outcome = strict(&set, &launch);
    assert_eq!(float_x_of(&outcome), [first + 24.0; 4]);
    assert!(outcome.fidelity.rules.contains(&Rule::CUBEMAP_INDEX_IS_THE_ELEMENT));
    let later = set.replace("\n SAMPLE", "\nTEX:\n SAMPLE");
    assert_eq!(float_x_of(&strict(&later, &launch)), [first; 4]);
}

/// The operands are those of piglit's tests. All engines run them: `tests/fast.rs` compares these.
#[test]
fn max_dx10_and_min_dx10_give_the_number() {
    let (nan, two) = (lane::NAN, 2f32.to_bits());
    for choose in [lane::max_dx10, lane::min_dx10] {
        assert_eq!([choose(nan, two), choose(two, nan)], [two; 2]);
    }
    for name in ["MAX_DX10", "MIN_DX10"] {
        for operands in ["0x7fc00000, 2.0f", "2.0f, 0x7fc00000"] {
            let outcome = strict(&format!("ALU:\n 0 x: {name} R1.x, {operands}\n{EXPORT}"), &launch());
            assert_eq!(x_of(&outcome), [two; 4], "{name} {operands}");
            assert!(outcome.fidelity.rules.contains(&Rule::MAX_DX10_GIVES_THE_NUMBER));
        }
    }
}
