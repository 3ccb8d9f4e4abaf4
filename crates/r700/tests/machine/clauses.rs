//! Tests ALU clauses: groups, slots, operands, constants, indices, predicates.

use reconverge_isa::Program;
use reconverge_r700::cause::Cause;
use reconverge_r700::chip::Chip;
use reconverge_r700::code::CodeFault;
use reconverge_r700::rules::Rule;
use reconverge_r700::words::{IndexModeR700, Omod, Op2, PredSel};

use crate::*;

#[test]
fn a_group_reads_everything_before_it_writes() {
    let swap = [alu(Op2::MOV).to(0, 0).a(0, 1).words(), alu(Op2::MOV).to(0, 1).a(0, 0).last().words()];
    let outcome = strict(&one_clause(&swap), &launch()).unwrap();
    assert_eq!(pixels(&outcome), [[1, 0, 2, 3], [11, 10, 12, 13]]);
}

#[test]
fn an_indexed_write_is_seen_by_the_slots_behind_it() {
    // R1.x = AR-indexed R1.x with AR = 0; then a plain read of R1.x in the same group.
    let slots = [
        alu(Op2::MOVA_INT).a(ZERO, 0).last().words(),
        alu(Op2::MOV).to(1, 0).a(0, 2).with(|_, high| high.dst_rel = true).words(),
        alu(Op2::MOV).to(0, 1).a(1, 0).last().words(),
    ];
    let outcome = strict(&one_clause(&slots), &launch()).unwrap();
    assert_eq!(pixels(&outcome)[0], [0, 2, 2, 3]);
    assert!(outcome.fidelity.rules.contains(&Rule::INDEXED_WRITES_ARE_SEEN_IN_THE_GROUP));
}

#[test]
fn the_second_instruction_of_a_component_runs_in_slot_t() {
    // Tool: SETGT_DX10 R1.w, PV.w, literal.x; MOV R0.w, literal.y -- here with the sources in registers.
    let slots = [
        alu(Op2::MOV).to(1, 3).a(0, 1).words(),
        alu(Op2::MOV).to(0, 3).a(0, 2).last().words(),
        alu(Op2::MOV).to(0, 0).a(PV, 3).words(),
        alu(Op2::MOV).to(0, 1).a(PS, 0).last().words(),
    ];
    let outcome = strict(&one_clause(&slots), &launch()).unwrap();
    assert_eq!(pixels(&outcome)[0], [1, 2, 2, 2]);
}

#[test]
fn without_prefer_vector_the_last_instruction_runs_in_slot_t() {
    let slots =
        [alu(Op2::MOV).to(0, 3).a(0, 1).last().words(), alu(Op2::MOV).to(0, 0).a(PS, 0).last().words()];
    let mut launch = launch();
    assert!(matches!(strict(&one_clause(&slots), &launch).unwrap_err().cause, Cause::Previous("PS")));
    launch.environment_mut().prefer_vector = false;
    assert_eq!(pixels(&strict(&one_clause(&slots), &launch).unwrap())[0], [1, 1, 2, 1]);
}

#[test]
fn two_instructions_for_one_slot_are_a_fault() {
    let slots = [alu(Op2::SIN).to(0, 0).words(), alu(Op2::COS).to(0, 1).last().words()];
    let fault = strict(&one_clause(&slots), &launch()).unwrap_err().cause;
    assert_eq!(fault, Cause::Code(CodeFault::SlotTaken { slot: 't' }));
}

#[test]
fn masked_results_still_reach_pv() {
    let slots = [
        alu(Op2::ADD_INT).slot(1).a(0, 0).b(INT_ONE, 0).last().words(),
        alu(Op2::MOV).to(0, 0).a(PV, 1).last().words(),
    ];
    assert_eq!(pixels(&strict(&one_clause(&slots), &launch()).unwrap())[1], [11, 11, 12, 13]);
}

#[test]
fn undefined_pv_traps_in_strict_mode_and_keeps_the_older_value_in_lenient_mode() {
    let slots = [
        alu(Op2::MOV).slot(2).a(0, 3).last().words(),
        alu(Op2::MOV).slot(1).a(0, 3).last().words(),
        alu(Op2::MOV).to(0, 0).a(PV, 2).last().words(),
    ];
    let program = one_clause(&slots);
    assert!(matches!(strict(&program, &launch()).unwrap_err().cause, Cause::Previous("PV.z")));
    assert_eq!(pixels(&lenient(&program, &launch()))[1], [13, 11, 12, 13]);
}

#[test]
fn literals_follow_the_group_and_take_as_many_slots_as_their_highest_component_needs() {
    let slots = [
        alu(Op2::MOV).to(0, 0).a(LITERAL, 2).last().words(),
        [5, 6],
        [7, 8],
        alu(Op2::MOV).to(0, 1).a(LITERAL, 1).last().words(),
        [9, 10],
    ];
    assert_eq!(pixels(&strict(&one_clause(&slots), &launch()).unwrap())[0], [7, 10, 2, 3]);
}

#[test]
fn a_clause_that_ends_inside_a_group_is_a_fault() {
    let program = one_clause(&[alu(Op2::MOV).to(0, 0).a(0, 1).words()]);
    assert_eq!(strict(&program, &launch()).unwrap_err().cause, Cause::Code(CodeFault::OpenGroup));
}

#[test]
fn modifiers_act_abs_then_neg_then_omod_then_clamp() {
    let mut launch = launch();
    launch.inputs[0].values = vec![floats([-0.25, -3.0, 0.0, 0.0])].into();
    launch.lanes = 1;
    let slots = [
        alu(Op2::MOV).to(0, 0).a(0, 0).with(|low, high| (high.src0_abs, low.src0_neg) = (true, true)).words(),
        alu(Op2::MOV).to(0, 1).a(0, 1).with(|_, high| (high.src0_abs, high.clamp) = (true, true)).words(),
        alu(Op2::MOV).to(0, 2).a(0, 0).with(|_, high| (high.src0_abs, high.omod) = (true, Omod::M2)).words(),
        alu(Op2::MOV).to(0, 3).a(0, 1).with(|_, high| high.clamp = true).last().words(),
    ];
    assert_eq!(pixels(&strict(&one_clause(&slots), &launch).unwrap())[0], floats([-0.25, 1.0, 0.5, 0.0]));
}

#[test]
fn kcache_windows_count_lines_and_reads_beyond_the_buffer_give_zero() {
    // Tool: MODE0 = MODE1 = LOCK_2, ADDR1 = 2 in the high word 0x0802; KC0[0].w and KC1[3].w.
    let slots = [
        alu(Op2::MOV).to(0, 0).a(0x80, 3).words(),
        alu(Op2::MOV).to(0, 1).a(0xa3, 3).words(),
        alu(Op2::MOV).to(0, 2).a(0xbf, 0).last().words(),
    ];
    let mut body = clause(8, &slots);
    (body.low, body.high) = (0x8000_0000, body.high | 0x0802);
    let program = assemble(&[Err(0), Ok(EXPORT_R0)], &[body]);
    let mut launch = launch();
    launch.environment_mut().resources.constant_buffers[0] = (0..144).collect();
    assert_eq!(pixels(&strict(&program, &launch).unwrap())[0], [3, 35 * 4 + 3, 0, 3]);
}

#[test]
fn kcache_in_loop_index_mode_adds_the_index_to_the_line() {
    // Loop constant 0: one iteration, aL = 1. Bank 0, line 1, mode 3: lines 2 and 3.
    let mut body = clause(8, &[alu(Op2::MOV).to(0, 0).a(0x80, 0).last().words()]);
    (body.low, body.high) = (0xc000_0000, body.high | 1 << 2);
    let program = assemble(&[Ok([3, 0x8200_0000]), Err(0), Ok([1, 0x8280_0000]), Ok(EXPORT_R0)], &[body]);
    let mut launch = launch();
    launch.environment_mut().resources.loop_constants[0].0 = 0x0000_1001;
    launch.environment_mut().resources.constant_buffers[0] = (0..256).collect();
    let outcome = strict(&program, &launch).unwrap();
    assert_eq!(pixels(&outcome)[0][0], 2 * 16 * 4);
    assert!(outcome.fidelity.rules.contains(&Rule::LOCK_LOOP_INDEX_COUNTS_LINES));
}

#[test]
fn unlocked_constants_trap_in_strict_mode_and_are_zero_in_lenient_mode() {
    let program = one_clause(&[alu(Op2::MOV).to(0, 0).a(0x85, 0).last().words()]);
    let mut launch = launch();
    launch.environment_mut().resources.constant_buffers[0] = vec![7; 64];
    assert!(matches!(
        strict(&program, &launch).unwrap_err().cause,
        Cause::NotLocked { set: 0, index: 5, .. }
    ));
    assert_eq!(pixels(&lenient(&program, &launch))[0][0], 0);
}

#[test]
fn the_constant_file_can_be_indexed_by_any_component_of_ar() {
    let slots = [
        alu(Op2::MOVA_INT).slot(2).a(0, 1).last().words(),
        alu(Op2::MOV)
            .to(0, 0)
            .a(256 + 3, 1)
            .with(|low, _| (low.src0_rel, low.index_mode) = (true, IndexModeR700::AR_Z))
            .last()
            .words(),
    ];
    let mut launch = launch();
    launch.environment_mut().resources.constant_file = (0..16).map(|entry| [0, entry * 100, 0, 0]).collect();
    let outcome = strict(&one_clause(&slots), &launch).unwrap();
    assert_eq!([pixels(&outcome)[0][0], pixels(&outcome)[1][0]], [400, 1400]);
}

#[test]
fn an_index_outside_the_allocation_traps_in_strict_mode_and_reads_r0_in_lenient_mode() {
    let slots = [
        alu(Op2::MOVA_INT).a(0, 0).last().words(),
        alu(Op2::MOV).to(0, 3).a(1, 1).with(|low, _| low.src0_rel = true).last().words(),
    ];
    let program = one_clause(&slots);
    let trap = strict(&program, &launch()).unwrap_err().cause;
    assert_eq!(trap, Cause::Register { register: 11, declared: 8 });
    let outcome = lenient(&program, &launch());
    assert_eq!(pixels(&outcome), [[0, 1, 2, 0], [10, 11, 12, 11]]);
}

#[test]
fn an_indexed_write_outside_is_dropped_in_lenient_mode() {
    let slots = [
        alu(Op2::MOVA_INT).a(0, 0).last().words(),
        alu(Op2::MOV).to(0, 3).a(INT_ONE, 0).with(|_, high| high.dst_rel = true).last().words(),
    ];
    let outcome = lenient(&one_clause(&slots), &launch());
    assert_eq!(pixels(&outcome), [[0, 1, 2, 1], [10, 11, 12, 13]]);
}

#[test]
fn ar_does_not_survive_its_clause() {
    let set = clause(8, &[alu(Op2::MOVA_INT).a(0, 0).last().words()]);
    let used = clause(8, &[alu(Op2::MOV).to(0, 3).a(1, 1).with(|low, _| low.src0_rel = true).last().words()]);
    let program = assemble(&[Err(0), Err(1), Ok(EXPORT_R0)], &[set, used]);
    assert_eq!(strict(&program, &launch()).unwrap_err().cause, Cause::AddressRegister('x'));
}

#[test]
fn clause_temporaries_are_the_topmost_registers() {
    let slots =
        [alu(Op2::MOV).to(127, 0).a(0, 1).last().words(), alu(Op2::MOV).to(0, 0).a(127, 0).last().words()];
    assert_eq!(pixels(&strict(&one_clause(&slots), &launch()).unwrap())[1][0], 11);
    let plain = one_clause(&[alu(Op2::MOV).to(0, 0).a(50, 0).last().words()]);
    assert!(matches!(strict(&plain, &launch()).unwrap_err().cause, Cause::Register { register: 50, .. }));
}

#[test]
fn pred_sel_chooses_by_the_predicate_and_leaves_the_other_lanes_alone() {
    let slots = [
        alu(Op2::PRED_SETE_INT).a(0, 0).b(ZERO, 0).with(|_, high| high.update_pred = true).last().words(),
        alu(Op2::MOV).to(0, 1).a(INT_ONE, 0).with(|low, _| low.pred_sel = PredSel::ZERO).words(),
        alu(Op2::MOV).to(0, 2).a(INT_ONE, 0).with(|low, _| low.pred_sel = PredSel::ONE).last().words(),
    ];
    let outcome = strict(&one_clause(&slots), &launch()).unwrap();
    assert_eq!(pixels(&outcome), [[0, 1, 1, 3], [10, 1, 12, 13]]);
}

#[test]
fn the_execute_mask_must_be_the_clauses_last_word_in_strict_mode() {
    let skip =
        alu(Op2::PRED_SETE_INT).a(0, 0).b(ZERO, 0).with(|_, high| high.update_execute_mask = true).last();
    let program = one_clause(&[skip.words(), alu(Op2::MOV).to(0, 1).a(ZERO, 0).last().words()]);
    assert_eq!(strict(&program, &launch()).unwrap_err().cause, Cause::ExecuteMaskNotLast);
    // Lenient: from the next group on, only lane 0 runs; lane 1 exports nothing.
    let outcome = lenient(&program, &launch());
    assert_eq!(pixels(&outcome), [[0, 0, 2, 3], [0; 4]]);
}

#[test]
fn pred_set_writes_zero_for_true() {
    let program = one_clause(&[alu(Op2::PRED_SETE_INT).to(0, 0).a(0, 0).b(ZERO, 0).last().words()]);
    let outcome = strict(&program, &launch()).unwrap();
    assert_eq!([pixels(&outcome)[0][0], pixels(&outcome)[1][0]], [0, 1f32.to_bits()]);
}

#[test]
fn dot4_sums_its_slots_and_needs_all_four() {
    let mut slots: Vec<[u32; 2]> =
        (0..4).map(|chan| alu(Op2::DOT4).slot(chan).a(0, chan).b(ONE, 0).words()).collect();
    let mut launch = launch();
    launch.inputs[0].values = vec![floats([1.0, 2.0, 3.0, 4.0]); 2].into();
    slots[0] = alu(Op2::DOT4).to(0, 0).a(0, 0).b(ONE, 0).words();
    slots[3] = alu(Op2::DOT4).slot(3).a(0, 3).b(ONE, 0).last().words();
    let outcome = strict(&one_clause(&slots), &launch).unwrap();
    assert_eq!(pixels(&outcome)[0][0], 10f32.to_bits());
    let fault = strict(&one_clause(&slots[1..]), &launch).unwrap_err().cause;
    assert_eq!(fault, Cause::Code(CodeFault::Incomplete { name: "DOT4" }));
}

#[test]
fn a_double_add_takes_high_halves_first_and_gives_low_halves_first() {
    // Derived in the notes: ADD_64 R3.x, R1.y, R2.y; ADD_64 R3.y, R1.x, R2.x. Then R3.xy to R0.xy.
    let slots = [
        [0x0080_4401, 0x0060_0b90],
        [0x8000_4001, 0x2060_0b90],
        alu(Op2::MOV).to(0, 0).a(3, 0).words(),
        alu(Op2::MOV).to(0, 1).a(3, 1).last().words(),
    ];
    let mut launch = launch();
    let halves = |value: f64| [value.to_bits() as u32, (value.to_bits() >> 32) as u32, 0, 0];
    launch.inputs.push(Input { gpr: 1, values: vec![halves(0.1); 2].into() });
    launch.inputs.push(Input { gpr: 2, values: vec![halves(1e10); 2].into() });
    let outcome = strict(&one_clause(&slots), &launch).unwrap();
    assert_eq!(pixels(&outcome)[1][..2], halves(0.1 + 1e10)[..2]);
    launch.environment_mut().chip = Chip::named("rv730").unwrap();
    assert!(matches!(
        strict(&one_clause(&slots), &launch).unwrap_err().cause,
        Cause::Code(CodeFault::Unknown { .. })
    ));
}

#[test]
fn cube_selects_the_face() {
    // Derived in the notes: CUBE R1.xyzw with src0 = R0.z,z,x,y and src1 = R0.y,x,z,z; into R0 here.
    let words = [
        [0x0080_0800, 0x0000_2910],
        [0x0000_0800, 0x2000_2910],
        [0x0100_0000, 0x4000_2910],
        [0x8100_0400, 0x6000_2910],
    ];
    let mut launch = launch();
    launch.inputs[0].values = vec![floats([4.0, 1.0, 2.0, 0.0]), floats([1.0, 2.0, -3.0, 0.0])].into();
    let outcome = strict(&one_clause(&words), &launch).unwrap();
    // +X: tc = -Y, sc = -Z, 2 * X, face 0. -Z: tc = -Y, sc = -X, 2 * Z, face 5.
    assert_eq!(pixels(&outcome), [floats([-1.0, -2.0, 8.0, 0.0]), floats([-2.0, -1.0, -6.0, 5.0])]);
}

#[test]
fn r600_has_its_own_positions_units_and_slots() {
    // Tool: MUL_IEEE R0.w, R0.x, R0.y is 60000210 on R600 and 60000110 on R700.
    let mut launch = launch();
    launch.inputs[0].values = vec![floats([3.0, 5.0, 0.0, 0.0]); 2].into();
    let r700 = one_clause(&[[0x8080_0000, 0x6000_0110]]);
    let r600 = one_clause(&[[0x8080_0000, 0x6000_0210]]);
    assert_eq!(pixels(&strict(&r700, &launch).unwrap())[0][3], 15f32.to_bits());
    launch.environment_mut().chip = Chip::named("rv670").unwrap();
    assert_eq!(pixels(&strict(&r600, &launch).unwrap())[0][3], 15f32.to_bits());
    // SIN in radians; 0x6E << 8.
    launch.inputs[0].values = vec![floats([1.0, 0.0, 0.0, 0.0]); 2].into();
    let sin = one_clause(&[[0x8000_0000, 0x0000_6e10]]);
    assert_eq!(pixels(&strict(&sin, &launch).unwrap())[0][0], (1f64.sin() as f32).to_bits());
    // Two shifts in one group: both need slot t.
    let shifts = one_clause(&[[0, 0x0000_7210], [0x8000_0000, 0x2000_7210]]);
    let fault = strict(&shifts, &launch).unwrap_err().cause;
    assert_eq!(fault, Cause::Code(CodeFault::SlotTaken { slot: 't' }));
}

#[test]
fn early_r600_chips_index_registers_by_al_which_mova_gpr_int_writes() {
    // MOVA_GPR_INT (0x60 << 8) of R0.y, then MOV R0.x, R0[aL].z with INDEX_MODE LOOP (4 << 26), R600 words.
    let program = one_clause(&[[0x8000_0400, 0x0000_6000], [0x9000_0a00, 0x0000_1910]]);
    let mut launch = launch();
    launch.lanes = 1;
    launch.inputs.push(Input { gpr: 1, values: vec![[0, 0, 77, 0]].into() });
    launch.environment_mut().chip = Chip::named("rv630").unwrap();
    assert_eq!(pixels(&strict(&program, &launch).unwrap())[0][0], 77);
}

#[test]
fn ldexp_has_a_switch_for_the_order_of_its_operands() {
    // R0.xy = LDEXP_64(double in R1.xy, integer in R2.x): halves swapped, integer in both slots.
    let ldexp = |slot: u8, half: u8, swapped: bool| {
        let op = alu(Op2::LDEXP_64).to(0, slot);
        if swapped { op.a(2, 0).b(1, half) } else { op.a(1, half).b(2, 0) }
    };
    let mut launch = launch();
    launch.inputs.push(Input { gpr: 1, values: vec![[0, 0x3ff0_0000, 0, 0]; 2].into() });
    launch.inputs.push(Input { gpr: 2, values: vec![[3, 0, 0, 0]; 2].into() });
    for swapped in [false, true] {
        let program = one_clause(&[ldexp(0, 1, swapped).words(), ldexp(1, 0, swapped).last().words()]);
        launch.environment_mut().ldexp_64_integer_first = swapped;
        let outcome = strict(&program, &launch).unwrap();
        assert_eq!(pixels(&outcome)[0][..2], [0, 0x4020_0000], "1.0 * 2^3");
    }
}

#[test]
fn a_reserved_selector_is_a_fault_only_where_it_is_read() {
    let unread = alu(Op2::MOV).to(0, 0).a(0, 1).b(200, 0).last();
    assert!(strict(&one_clause(&[unread.words()]), &launch()).is_ok());
    let read = alu(Op2::ADD).to(0, 0).a(0, 1).b(200, 0).last();
    let fault = strict(&one_clause(&[read.words()]), &launch()).unwrap_err().cause;
    assert_eq!(fault, Cause::Code(CodeFault::Selector { selector: 200 }));
}

#[test]
fn what_is_never_executed_need_not_have_a_meaning() {
    // JUMP over a word with CF_INST 0x1e. Lanes are active, so control reaches the word after JUMP only if JUMP falls
    // through.
    let program = Program::from_words(vec![2, 0x8500_0100, 0, 0x8f00_0000, 0, 0x8020_0000]);
    assert!(strict(&program, &launch()).is_ok(), "COND = FALSE: no lane passes, the jump is taken");
}
