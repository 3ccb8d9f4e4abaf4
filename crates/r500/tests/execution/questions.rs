//! Open questions of the documents. Each has an interpretation, and a program or function call that demonstrates it.

use reconverge_r500::chip::Chip;
use reconverge_r500::ctm::{Conditional, INDEX_TEMP, Scatter};
use reconverge_r500::flow::{Decision, Flow, InhibitScope, Limits, LoopConstant, Step, Undefined};
use reconverge_r500::inst::Fc;
use reconverge_r500::lane::{self, Term};
use reconverge_r500::launch::{Environment, Hardware};
use reconverge_r500::texture::Texture;
use reconverge_r500::words::{AluResultOp, CmnInst, FcAddr, FcInst, FcMode, Omod, Target};
use reconverge_simt::texture::{Image, Sampler};
use reconverge_simt::{FlowView, Lane, Mask, Why};

use super::*;

/// Number in docs/r500.md (section 10), subject, interpretation, and test of a question. Q20, about executables, is
/// in `container`.
type Question = (u8, &'static str, &'static str, fn());

#[rustfmt::skip]
const QUESTIONS: &[Question] = &[
    (1, "lanes of a group, and their order",
        "16 (R520), 48 (R580); quads TL TR BL BR; any width from 4 to 64 can be selected",
        groups_are_as_wide_as_the_chips_and_made_of_quads),
    (2, "is a killed lane uncovered",
        "yes, and it continues as a helper",
        texkill_drops_lanes_with_a_negative_component),
    (3, "where (i, j) arrives",
        "red and green of temporary 0",
        a_pair_arrives_in_red_and_green_of_temporary_0),
    (4, "effects that predication controls",
        "every side effect; NONE is always true, even if inverted",
        an_inverted_predicate_that_is_not_selected_is_true),
    (5, "registers that WRITE_INACTIVE writes",
        "temporaries",
        write_inactive_writes_temporaries_of_sleeping_lanes_only),
    (6, "relative address outside the file",
        "wraps; strict traps",
        lenient_relative_addresses_wrap),
    (7, "value that SOP and DP forward; range before OMOD",
        "the value before OMOD and clamp; one rounding after OMOD",
        sop_and_dp_take_the_other_units_value_before_its_modifiers),
    (8, "clamp of NaN",
        "+0",
        a_clamped_nan_is_zero),
    (9, "rounding",
        "exact, then nearest even once (profile R)",
        a_sum_is_rounded_once_to_the_nearest_even),
    (10, "transcendentals at the ends",
        "as IEEE functions",
        transcendentals_end_as_ieee_functions_do),
    (11, "comparisons of NaN",
        "only \"not equal\" holds",
        only_not_equal_holds_for_a_nan),
    (12, "TEXKILL of -0 and NaN",
        "the sign bit",
        the_sign_bit_kills_whatever_the_number),
    (13, "which texel a coordinate names",
        "floor",
        a_coordinate_names_the_texel_of_its_floor),
    (14, "stack sizes and counter width",
        "full 4, 4, 31; partial 0, 0, 3; can be selected",
        the_branch_counter_holds_31_in_full_and_3_in_partial_mode),
    (15, "which lanes keep a BREAK from jumping",
        "lanes of the innermost frame; the literal interpretation can be selected",
        lanes_that_were_off_before_the_loop_stop_a_break_only_in_the_literal_reading),
    (16, "value that PUSH stores",
        "the next address",
        a_call_returns_behind_itself),
    (17, "aL outside loops and inside REP",
        "0 (strict traps); REP is transparent",
        rep_leaves_the_al_of_the_loop_around_it_visible),
    (18, "where the conditional value comes from",
        "W_OMASK",
        the_w_output_is_the_conditional_value),
    (19, "numbers of the uncached TARGET variants",
        "the order of the guide's list",
        targets_number_the_uncached_variants_in_the_order_of_the_guide),
    (21, "CTM commands, tiling, integer inputs",
        "Reconverge's own equivalents; tiled layouts are rejected; v becomes v / maximum",
        integer_formats_read_and_write_normalised),
    (22, "INCR in the same instruction as B_ELSE",
        "lanes that the else switches off count up to 1",
        incr_in_the_same_instruction_counts_lanes_that_its_else_switched_off),
    (23, "BREAK and CONTINUE with INCR or JUMP_ANY",
        "INCR does not change lanes that stopped; inhibition has priority over ANY",
        inhibition_wins_over_jump_any),
    (24, "LOOP with a condition that only some lanes meet",
        "all lanes enter",
        a_conditional_loop_entry_that_stays_leaves_unwilling_lanes_active),
    (25, "ENDLOOP with a condition that only some lanes meet",
        "all lanes continue",
        a_conditional_loop_end_that_jumps_keeps_unwilling_lanes_active),
];

#[test]
fn every_question_shows_its_reading() {
    for (.., test) in QUESTIONS {
        test();
    }
}

#[test]
fn every_question_is_a_row_of_the_page() {
    let page = include_str!("../../../../docs/r500.md");
    for (number, open, reading, _) in QUESTIONS {
        let row = format!("| Q{number} | {open} | {reading} |");
        assert!(page.contains(&row), "docs/r500.md has no row {row}");
    }
}

// ---- Lanes, memory, arithmetic

#[test]
fn groups_are_as_wide_as_the_chips_and_made_of_quads() {
    assert_eq!(Hardware::default().group_width, 16);
    assert_eq!(
        ["R520", "R580"].map(|name| Chip::named(name).map(|chip| chip.group_width)),
        [Some(16), Some(48)]
    );
    // src0 of the lane to the right, and src0 of the lane below, minus src0 of the first lane.
    let source = "ALU temp[1].rgb = MDH src0.rrr, -src0.111, src0.rrr : src0=temp[0]\n  \
                  + temp[1].a = MDV src0.r, -src0.1, src0.r : src0=temp[0]\n";
    let red = temp1(
        &source.replace("MDV src0.r, -src0.1, src0.r", "MDV src0.a, -src0.1, src0.a"),
        &[[1.0, 0.0, 0.0, 1.0], [2.0, 0.0, 0.0, 2.0], [5.0, 0.0, 0.0, 5.0], [9.0, 0.0, 0.0, 9.0]],
    );
    assert_eq!(red.iter().map(|lane| (lane[0], lane[3])).collect::<Vec<_>>(), [(1.0, 4.0); 4]);
}

#[test]
fn a_pair_arrives_in_red_and_green_of_temporary_0() {
    assert_eq!(INDEX_TEMP, 0);
    let out = OUT.replace("temp[1]", "temp[0]");
    let domain = Domain { i: 2, j: 1, width: 1, height: 1 };
    let outcome = dispatched(&out, Dispatch { domain, ..dispatch(LINEAR, memory(&[])) }).unwrap();
    // Element (2, 1) of the output, whose rows are four elements of four singles.
    let place = 2048 + 16 * (4 + 2);
    let value: Vec<f32> = outcome.memory[place..place + 16]
        .chunks(4)
        .map(|word| f32::from_le_bytes(word.try_into().unwrap()))
        .collect();
    assert_eq!(value, [2.0, 1.0, 0.0, 0.0]);
}

#[test]
fn an_inverted_predicate_that_is_not_selected_is_true() {
    let found = temp1("ALU temp[1].rgb = MAX src0.111, src0.111 {RGB_PRED_INV}\n", &[[0.0; 4]]);
    assert_eq!(found[0][..3], [1.0; 3]);
}

#[test]
fn a_clamped_nan_is_zero() {
    assert_eq!(lane::clamp(f32::NAN).to_bits(), 0);
}

#[test]
fn a_sum_is_rounded_once_to_the_nearest_even() {
    // (1 + e)^2 = 1 + 2e + e^2. If the product were rounded first, it would lose e^2, and the sum would be 0.
    let next = 1.0 + f32::EPSILON;
    let terms = [Term::product(next, next, false), Term::value(-(1.0 + 2.0 * f32::EPSILON))];
    assert_eq!(lane::sum(&terms, Omod::MUL_1), f32::EPSILON * f32::EPSILON);
    // Half of the last place rounds to the even neighbour.
    let half = |x: f32| lane::sum(&[Term::value(x), Term::value(f32::EPSILON / 2.0)], Omod::MUL_1);
    assert_eq!((half(1.0), half(next)), (1.0, 1.0 + 2.0 * f32::EPSILON));
}

#[test]
fn transcendentals_end_as_ieee_functions_do() {
    const INF: f32 = f32::INFINITY;
    assert_eq!((lane::ex2(-INF), lane::ex2(INF)), (0.0, INF));
    assert_eq!((lane::ln2(0.0), lane::rcp(-0.0), lane::rsq(-0.0)), (-INF, -INF, -INF));
    assert!(lane::ln2(-1.0).is_nan() && lane::rsq(-1.0).is_nan());
}

#[test]
fn only_not_equal_holds_for_a_nan() {
    let holds = AluResultOp::ALL.iter().filter(|op| lane::compare(f32::NAN, **op));
    assert_eq!(holds.collect::<Vec<_>>(), [&AluResultOp::NE]);
}

#[test]
fn the_sign_bit_kills_whatever_the_number() {
    assert!(lane::texkill(-0.0) && lane::texkill(-f32::NAN) && !lane::texkill(f32::NAN));
}

#[test]
fn a_coordinate_names_the_texel_of_its_floor() {
    let texels = (0..4).map(|n| [(n as f32).to_bits(); 4]).collect();
    let image = Arc::new(Image::flat(4, 1, texels).unwrap());
    let textures = vec![(0, Texture { image, sampler: Sampler::default() })];
    let source = format!("TEX temp[1].rgba = LD tex[0], temp[0].rgba UNSCALED\n{OUT}");
    let environment = Environment { textures, ..Environment::default() }.into();
    let launch = Launch { environment, ..launch(&[[0.0; 4], [0.99, 0.0, 0.0, 0.0], [1.0, 0.0, 0.0, 0.0]]) };
    let outcome = on_every_engine(&source, &launch, Mode::Strict).unwrap();
    let red: Vec<f32> = outcome.lanes().map(|lane| f32::from_bits(lane.color[0][0])).collect();
    assert_eq!(red, [0.0, 0.0, 1.0]);
}

#[test]
fn the_w_output_is_the_conditional_value() {
    let buffer = Surface { base: 1024, ..LINEAR };
    let conditional =
        Conditional { buffer, test: CondTest::ALWAYS, location: CondLoc::DPP, value: 0.0, write: true };
    let source = "OUT nop\nOUT out[A].r = MAX src0.111, src0.111\n  + out.w = MAX src0.h, src0.h\n";
    let conditional = Some(conditional);
    let outcome = dispatched(source, Dispatch { conditional, ..dispatch(LINEAR, memory(&[])) }).unwrap();
    assert_eq!(outcome.memory[1024..1028], 0.5f32.to_le_bytes());
}

#[test]
fn targets_number_the_uncached_variants_in_the_order_of_the_guide() {
    let variants = [Target::A, Target::B, Target::C, Target::D].map(Scatter::from_target);
    let expected = [(true, false), (true, true), (false, false), (false, true)];
    assert_eq!(variants.map(|variant| (variant.same_index, variant.acquire)), expected);
}

#[test]
fn sop_and_dp_take_the_other_units_value_before_its_modifiers() {
    let found =
        temp1("ALU temp[1].rgb = SOP\n  + temp[1].a = RCP*8.sat src0.a : src0=#0.0078125\n", &[[0.0; 4]]);
    assert_eq!(found, [[128.0, 128.0, 128.0, 1.0]]);
    let found = temp1(
        "ALU temp[1].rgb = DP3*8.sat src0.rgb, src0.rgb : src0=temp[0]\n  + temp[1].a = DP/2\n",
        &[[1.0, 2.0, 2.0, 0.0]],
    );
    assert_eq!(found, [[1.0, 1.0, 1.0, 4.5]]);
}

/// REG, WRITE_INACTIVE; r500.md Q5.
#[test]
fn write_inactive_writes_temporaries_of_sleeping_lanes_only() {
    let source = format!(
        "ALU alu_result[LT].r = MAD src0.rrr, src0.111, -src1.rrr : src0=temp[0] src1=#1\nif alu\nALU temp[1].r = MAX src0.111, src0.111 {{WRITE_INACTIVE}}\nOUT temp[1].g = MAX src0.111, src0.111 {{RGB_OMASK=RG US_ALU_RGB_INST.TARGET=B}}\nendif\n{OUT}"
    )
    .replace("RGB_OMASK=RG", "RGB_OMASK=3");
    let lanes = outputs(&source, &[[0.0; 4], [5.0; 4]], Mode::Strict);
    let temp1: Vec<[f32; 2]> =
        lanes.iter().map(|lane| [0, 1].map(|c| f32::from_bits(lane.color[0][c]))).collect();
    assert_eq!(temp1, [[1.0, 1.0], [1.0, 0.0]]);
    assert_eq!([lanes[0].written[1], lanes[1].written[1]], [0b11, 0]);
}

/// r500.md Q12 and Q2: -0 kills, and a killed lane continues as a helper.
#[test]
fn texkill_drops_lanes_with_a_negative_component() {
    let source = format!(
        "TEX TEXKILL tex[0], temp[0].rgba\nALU temp[1].rgb = MDH src0.rrr, -src0.111, src0.rrr : src0=temp[0]\n{OUT}"
    );
    let quad = [[1.0; 4], [-0.0, 1.0, 1.0, 1.0], [1.0; 4], [1.0, 1.0, 1.0, -3.0]];
    let lanes = outputs(&source, &quad, Mode::Strict);
    assert_eq!(lanes.iter().map(|lane| lane.killed).collect::<Vec<_>>(), [false, true, false, true]);
    assert_eq!(f32::from_bits(lanes[0].color[0][0]), -1.0, "the derivative still sees lane 1");
}

/// r500.md Q6: addresses wrap.
#[test]
fn lenient_relative_addresses_wrap() {
    let source = format!(
        ".int 0 1 100 0\nloop int[0]\nALU temp[1].r = MAX src0.rrr, src0.rrr : src0=temp[28+aL]\nendloop int[0]\n{OUT}"
    );
    let lanes = outputs(&source, &[[7.0; 4]], Mode::Lenient);
    assert_eq!(f32::from_bits(lanes[0].color[0][0]), 7.0);
}

/// r500.md Q21: value / maximum, absent channels 0; outputs clamp and round.
#[test]
fn integer_formats_read_and_write_normalised() {
    let mut bytes = vec![0; 16];
    let surface = |format| Surface { format, ..LINEAR };
    let value = [1.5f32, 0.5, -1.0, f32::NAN].map(f32::to_bits);
    surface(Format::UINT8_4).store(&mut bytes, 1, 0, value).unwrap();
    assert_eq!(bytes[4..8], [255, 128, 0, 0]);
    let read = surface(Format::UINT8_4).load(&bytes, 1, 0).unwrap().map(f32::from_bits);
    assert_eq!(read, [1.0, 128.0 / 255.0, 0.0, 0.0]);
    surface(Format::UINT16_1).store(&mut bytes, 0, 0, value).unwrap();
    assert_eq!(
        surface(Format::UINT16_1).load(&bytes, 0, 0).unwrap().map(f32::from_bits),
        [1.0, 0.0, 0.0, 0.0]
    );
}

// ---- Flow, as in `flow/tests.rs`

const ALL: Mask = Mask(0b1111);
const I3: LoopConstant = LoopConstant { count: 3, start: 5, step: 2 };
const IF: u32 = 0x0200_0f00;
const IF_ELSE: u32 = 0x0a00_0f00;
const LOOP: u32 = 0x0000_0021;
const ENDLOOP_IF: u32 = 0x0000_f022;
const REP: u32 = 0x0000_0023;
const ENDREP: u32 = 0x0000_ff24;
const BREAK_IF: u32 = 0x0000_f005;
const BREAK_DEPTH_1: u32 = 0x0401_ff05;
const CALL: u32 = 0x0800_ffa0;
const RETURN: u32 = 0x0401_ff40;

fn flow() -> Flow {
    Flow::new(10, ALL, ALL, FcMode::FULL, Limits::recommended(FcMode::FULL), Mode::Strict)
}

/// Executes word 2 of an FC instruction with jump address 100 and `alu` as the ALU result.
fn decided(flow: &mut Flow, fc_inst: u32, alu: Mask) -> Result<Decision, Undefined> {
    let inst = FcInst::unpack(fc_inst).expect("a valid FC word");
    let addr = FcAddr { bool_addr: 0, int_addr: 0, jump_addr: 100, jump_global: false };
    let by_red = CmnInst::unpack(2 | 2 << 3).expect("a valid word 0");
    let step = Step::new(&by_red, &Fc { inst, addr }, (0, &[I3]), 0, FcMode::FULL);
    flow.execute(&step, step.want(alu, &[Mask::NONE; 4]))
}

fn jumps(flow: &mut Flow, fc_inst: u32, alu: Mask) -> bool {
    decided(flow, fc_inst, alu).expect("defined behaviour").jumped
}

#[test]
fn incr_in_the_same_instruction_counts_lanes_that_its_else_switched_off() {
    let mut flow = flow();
    jumps(&mut flow, IF_ELSE, Mask(0b0011));
    assert!(!jumps(&mut flow, 0x0200_0010, Mask::NONE));
    assert_eq!(flow.why(Lane(0)), Why::Branch { depth: 1 });
}

#[test]
fn rep_leaves_the_al_of_the_loop_around_it_visible() {
    let mut flow = flow();
    jumps(&mut flow, LOOP, ALL);
    jumps(&mut flow, REP, ALL);
    assert_eq!(flow.al(), 5);
    jumps(&mut flow, ENDREP, ALL);
    assert_eq!(flow.al(), 5, "ENDREP does not step it");
}

/// The recommended scope is the lanes of the innermost frame; the literal interpretation is all lanes.
#[test]
fn lanes_that_were_off_before_the_loop_stop_a_break_only_in_the_literal_reading() {
    for (scope, jumped) in [(InhibitScope::Frame, true), (InhibitScope::All, false)] {
        let mut flow = flow().with_scope(scope);
        jumps(&mut flow, IF, Mask(0b0111));
        jumps(&mut flow, LOOP, ALL);
        assert_eq!(jumps(&mut flow, BREAK_IF, ALL), jumped, "{scope:?}");
    }
}

#[test]
fn inhibition_wins_over_jump_any() {
    let mut flow = flow();
    jumps(&mut flow, LOOP, ALL);
    jumps(&mut flow, IF, Mask(0b0111));
    assert!(!jumps(&mut flow, BREAK_DEPTH_1 | 1 << 5, ALL));
}

#[test]
fn a_conditional_loop_entry_that_stays_leaves_unwilling_lanes_active() {
    let mut flow = flow();
    assert!(!jumps(&mut flow, 0x0000_0f01, Mask(0b0011)));
    assert_eq!(flow.active(), ALL);
}

#[test]
fn a_conditional_loop_end_that_jumps_keeps_unwilling_lanes_active() {
    let mut flow = flow();
    jumps(&mut flow, LOOP, ALL);
    assert!(jumps(&mut flow, ENDLOOP_IF, Mask(0b0001)));
    assert_eq!(flow.active(), ALL);
}

#[test]
fn the_branch_counter_holds_31_in_full_and_3_in_partial_mode() {
    for (fc_mode, limit) in [(FcMode::FULL, 31), (FcMode::PARTIAL, 3)] {
        let limits = Limits::recommended(fc_mode);
        let mut flow = Flow::new(0, ALL, ALL, fc_mode, limits, Mode::Strict);
        assert!(!jumps(&mut flow, IF, Mask(0b0111)));
        (0..limit).for_each(|_| assert!(!jumps(&mut flow, IF, Mask(0b0111))));
        let expected = Err(Undefined::BranchCounterOverflow { lanes: Mask(0b1000), limit });
        assert_eq!(decided(&mut flow, IF, Mask(0b0111)), expected);
    }
}

#[test]
fn a_call_returns_behind_itself() {
    let mut flow = flow();
    jumps(&mut flow, CALL, ALL);
    assert_eq!(flow.pc(), 100);
    assert!(jumps(&mut flow, RETURN, ALL));
    assert_eq!((flow.pc(), flow.active()), (11, ALL));
}
