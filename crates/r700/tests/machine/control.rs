//! Tests effects of control-flow instructions other than flow decisions: launching clauses, emitting, waiting, ending.

use reconverge_r700::cause::Cause;
use reconverge_r700::chip::Chip;
use reconverge_r700::code::ExportKind;
use reconverge_r700::flow::FlowFault;
use reconverge_r700::launch::Launch;
use reconverge_r700::text;
use reconverge_r700::wave::Wave;
use reconverge_simt::{FlowView, Machine, Mask, Silent, Step};

use crate::*;

/// Returns a launch of four lanes. R0 contains the lane number, 1, 2, 3 as integers.
fn four(stage: Stage) -> Launch {
    let mut launch = Launch::new(Chip::RV770, stage, 4);
    launch.environment_mut().num_gprs = 8;
    launch.inputs.push(Input { gpr: 0, values: (0..4).map(|lane| [lane, 1, 2, 3]).collect() });
    launch
}

fn program(source: &str) -> Program {
    let assembled = text::assemble(source, Chip::RV770);
    Program::from_words(assembled.unwrap_or_else(|faults| panic!("{}", faults[0])).words)
}

fn x_of(outcome: &Outcome) -> Vec<u32> {
    pixels(outcome).iter().map(|pixel| pixel[0]).collect()
}

const EXPORT: &str = "EXPORT_DONE: PIXEL[0], R1.xyzw END_OF_PROGRAM\n";

/// Lane 0 is killed; lanes 2 and 3 are inactive.
const KILL_0_AND_SWITCH_2_AND_3_OFF: &str = "ALU:\n 0 x: KILLE_INT _.x, R0.x, 0\n
    ALU_PUSH_BEFORE:\n 1 x: PRED_SETGT_INT _.x, R0.z, R0.x UPDATE_EXEC_MASK\n";

#[test]
fn fetch_clauses_run_for_the_lanes_that_pass() {
    // PASS copies R0 to R1.
    for (attributes, written) in [
        ("", [1, 1, 0, 0]),
        ("VALID_PIX", [0, 1, 0, 0]),
        ("WHOLE_QUAD", [1, 1, 1, 1]),
        ("COND(FALSE)", [0, 0, 0, 0]),
        ("COND(BOOL) CF_CONST(3)", [1, 1, 0, 0]),
        ("COND(NOT_BOOL) CF_CONST(3)", [0, 0, 0, 0]),
    ] {
        for name in ["TEX", "VTX", "VTX_TC", "TEX_ACK", "VTX_ACK", "VTX_TC_ACK"] {
            let source = format!(
                "{KILL_0_AND_SWITCH_2_AND_3_OFF}{name}: {attributes}\n PASS R2.xyzw, R0.xyzw, t0, s0
                 POP: POP_CNT(1)\nMEM_SCRATCH: WRITE[0], R2.xyzw ELEM_SIZE(3)\n{EXPORT}"
            );
            let mut launch = four(Stage::Pixel);
            launch.environment_mut().resources.booleans = 1 << 3;
            let outcome = strict(&program(&source), &launch).unwrap();
            let found: Vec<u32> = outcome.memory.scratch.iter().map(|scratch| scratch[1]).collect();
            assert_eq!(found, written, "{name} {attributes}");
        }
    }
}

#[test]
fn exports_go_out_for_lanes_that_pass_and_are_valid() {
    for (attributes, written) in
        [("", [0, 15, 0, 0]), ("VALID_PIX", [0, 15, 0, 0]), ("WHOLE_QUAD", [0, 15, 15, 15])]
    {
        let source = format!(
            "{KILL_0_AND_SWITCH_2_AND_3_OFF}EXPORT_DONE: PARAM[0], R0.xyzw {attributes} END_OF_PROGRAM\n"
        );
        let outcome = strict(&program(&source), &four(Stage::Pixel)).unwrap();
        assert_eq!(outcome.export(ExportKind::Param, 0).unwrap().written, written, "{attributes}");
    }
}

#[test]
fn memory_writes_of_killed_lanes_stay_inside_the_shader() {
    let source = format!(
        "{KILL_0_AND_SWITCH_2_AND_3_OFF}MEM_SCRATCH: WRITE[0], R0.xyzw ELEM_SIZE(3)
         MEM_RING: WRITE[0], R0.xyzw ELEM_SIZE(3)\n{EXPORT}"
    );
    let memory = strict(&program(&source), &four(Stage::Pixel)).unwrap().memory;
    let written = |space: &[Vec<u32>]| space.iter().map(|lane| lane.get(1) == Some(&1)).collect::<Vec<_>>();
    assert_eq!(written(&memory.scratch), [true, true, false, false]);
    assert_eq!(written(&memory.ring), [false, true, false, false]);
}

#[test]
fn fetch_whole_quad_fills_the_other_lanes_of_the_quad() {
    for (attribute, written) in [("", [1, 1, 0, 0]), ("WHOLE_QUAD", [1, 1, 1, 1])] {
        let source = format!(
            "{KILL_0_AND_SWITCH_2_AND_3_OFF}TEX:\n PASS R2.xyzw, R0.xyzw, t0, s0 {attribute}
             POP: POP_CNT(1)\nMEM_SCRATCH: WRITE[0], R2.xyzw ELEM_SIZE(3)\n{EXPORT}"
        );
        let outcome = strict(&program(&source), &four(Stage::Pixel)).unwrap();
        let found: Vec<u32> = outcome.memory.scratch.iter().map(|scratch| scratch[1]).collect();
        assert_eq!(found, written, "{attribute}");
    }
}

#[test]
fn alu_clauses_run_whole_quads_when_they_say_so() {
    for (attribute, written) in [("", [1, 1, 0, 0]), ("WHOLE_QUAD", [1, 1, 1, 1])] {
        let source = format!(
            "ALU_PUSH_BEFORE:\n 0 x: PRED_SETGT_INT _.x, R0.z, R0.x UPDATE_EXEC_MASK
             ALU: {attribute}\n 1 x: MOV R1.x, 1\nPOP: POP_CNT(1)\n{EXPORT}"
        );
        assert_eq!(x_of(&strict(&program(&source), &four(Stage::Pixel)).unwrap()), written, "{attribute}");
    }
}

#[test]
fn the_issue_of_a_whole_quad_clause_names_all_its_lanes() {
    let source = "ALU:\n 0 x: PRED_SETGT_INT _.x, R0.z, R0.x UPDATE_EXEC_MASK
                  ALU: WHOLE_QUAD\n 1 x: MOV R1.x, 1\nNOP: END_OF_PROGRAM\n";
    let mut wave = wave(source);
    for _ in 0..3 {
        wave.step(&mut Silent).unwrap();
    }
    assert_eq!(wave.issue().unwrap().mask, Mask(0b1111));
    assert_eq!(wave.flow().active(), Mask(0b0011));
}

/// Returns a wavefront before its first instruction.
fn wave(source: &str) -> Wave {
    let launch = std::sync::Arc::new(four(Stage::Pixel));
    let code = reconverge_r700::code::Code::new(&program(source).words, 0, launch.environment.code_options());
    Wave::new(std::sync::Arc::new(code), None, launch, Options::default(), 0)
}

#[test]
fn wait_ack_waits_until_as_many_are_left_as_it_says() {
    let source = "TEX_ACK:\n PASS R2.xyzw, R0.xyzw, t0, s0\nVTX_ACK:\n PASS R2.xyzw, R0.xyzw, t0, s0
                  MEM_SCRATCH: WRITE_ACK[0], R0.xyzw ELEM_SIZE(3)\nMEM_SCRATCH: WRITE[0], R0.xyzw ELEM_SIZE(3)
                  WAIT_ACK: ADDR(9)\nWAIT_ACK: ADDR(2)\nWAIT_ACK:\nNOP: END_OF_PROGRAM\n";
    let mut wave = wave(source);
    let mut seen = vec![0];
    while wave.step(&mut Silent).unwrap() == Step::Running {
        if seen.last() != Some(&wave.acknowledges()) {
            seen.push(wave.acknowledges());
        }
    }
    assert_eq!(seen, [0, 1, 2, 3, 2, 0]);
}

#[test]
fn emit_and_cut_name_the_lanes_that_pass() {
    for (name, vertex, cut) in
        [("EMIT_VERTEX", true, false), ("EMIT_CUT_VERTEX", true, true), ("CUT_VERTEX", false, true)]
    {
        for (attributes, lanes) in
            [("", 0b0011), ("VALID_PIX", 0b0010), ("WHOLE_QUAD", 0b1111), ("COND(FALSE)", 0)]
        {
            let source =
                format!("{KILL_0_AND_SWITCH_2_AND_3_OFF}{name}: {attributes}\nNOP: END_OF_PROGRAM\n");
            let emissions = strict(&program(&source), &four(Stage::Geometry)).unwrap().emissions;
            let found: Vec<_> = emissions.iter().map(|one| (one.lanes.0, one.vertex, one.cut)).collect();
            let wanted = (lanes != 0).then_some((lanes, vertex, cut));
            assert_eq!(found, Vec::from_iter(wanted), "{name} {attributes}");
        }
    }
}

#[test]
fn end_program_ends_as_a_nop_with_end_of_program_does() {
    for end in ["END_PROGRAM:", "NOP: END_OF_PROGRAM", "END_PROGRAM: END_OF_PROGRAM"] {
        let source =
            format!("ALU:\n 0 x: MOV R1.x, 7\nEXPORT_DONE: PIXEL[0], R1.xyzw\n{end}\nPOP: POP_CNT(7)\n");
        assert_eq!(x_of(&strict(&program(&source), &four(Stage::Pixel)).unwrap()), [7; 4], "{end}");
    }
}

#[test]
fn end_of_program_stops_behind_an_instruction_that_jumps() {
    let source = format!(
        "EXPORT_DONE: PIXEL[0], R0.xyzw\nJUMP: ADDR(@on) COND(FALSE) END_OF_PROGRAM\n@on:\nPOP: POP_CNT(7)\n{EXPORT}"
    );
    assert_eq!(x_of(&strict(&program(&source), &four(Stage::Pixel)).unwrap()), [0, 1, 2, 3]);
}

#[test]
fn an_overflow_says_what_the_whole_program_needs() {
    // The stack holds two loops and three pushes at the end: 2 + (3 + 2) / 4.
    let source = "LOOP_START_DX10: ADDR(@a)\nLOOP_START_DX10: ADDR(@b)\nPUSH: ADDR(@1)\n@1:\nPUSH: ADDR(@2)\n@2:
                  PUSH: ADDR(@3)\n@3:\nPOP: POP_CNT(3)\n@bb:\nLOOP_BREAK: ADDR(@be)\n@be:\nLOOP_END: ADDR(2)\n@b:
                  LOOP_BREAK: ADDR(@ae)\n@ae:\nLOOP_END: ADDR(1)\n@a:\nNOP: END_OF_PROGRAM\n";
    let mut launch = four(Stage::Pixel);
    launch.environment_mut().stack_size = Some(1);
    let cause = strict(&program(source), &launch).unwrap_err().cause;
    match &cause {
        Cause::Flow(FlowFault::StackOverflow { needed: 2, declared: 1, program: Some(4), .. }) => {}
        other => panic!("{other}"),
    }
    assert!(cause.to_string().ends_with("STACK_SIZE declares 1; the whole program needs 4"), "{cause}");
    launch.environment_mut().stack_size = Some(4);
    assert_eq!(strict(&program(source), &launch).unwrap().stack_needed, 4);
}

/// The predicate holds for lanes 0 to 3. The instruction that updates the execute mask runs only for them, and all of
/// them skip. Lanes 4 to 7 stay active.
#[test]
fn an_execute_mask_under_a_predicate_counts_as_divergent_when_the_active_lanes_part() {
    let source = format!(
        "ALU_PUSH_BEFORE:\n 0 x: PRED_SETGT _.x, (4.0f).x, R0.x UPDATE_PRED
         1 x: PRED_SETGT _.x, (0.0f).x, R0.x UPDATE_EXEC_MASK PRED(ONE)
         ALU:\n 2 x: MOV R1.x, 1\nPOP: POP_CNT(1)\n{EXPORT}"
    );
    let mut launch = four(Stage::Pixel);
    launch.lanes = 8;
    launch.inputs[0].values = (0..8u8).map(|lane| [f32::from(lane).to_bits(), 0, 0, 0]).collect();
    let outcome = strict(&program(&source), &launch).unwrap();
    assert_eq!(x_of(&outcome), [0, 0, 0, 0, 1, 1, 1, 1]);
    assert_eq!(outcome.statistics.divergent_branches, 1);
}
