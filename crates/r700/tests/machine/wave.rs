//! Tests the wavefront as a machine: steps, events, views, snapshots, counts.

use std::sync::Arc;

use crate::engines::run;
use reconverge_isa::Program;
use reconverge_r700::cause::Cause;
use reconverge_r700::code::Code;
use reconverge_r700::run::run_watched;
use reconverge_r700::wave::Wave;
use reconverge_r700::words::Op2;
use reconverge_simt::Fidelity;
use reconverge_simt::Options;
use reconverge_simt::{
    Event, FlowView, Issue, Lane, Machine, Mask, Mode, Recorder, Silent, Step, Watch, Why,
};

use crate::*;

/// Returns the if/else of the notes: R1.x = R0.x > 0 ? 1.0 : 0.5, then R1 to pixel 0. Compilers emit the same shape.
fn if_else() -> Program {
    Program::from_words(vec![
        0x0000_0008,
        0xa400_0000,
        0x0000_0003,
        0x8500_0000,
        0x0000_0009,
        0xa000_0000,
        0x0000_0005,
        0x8680_0001, //
        0x0000_000a,
        0xa800_0000,
        0x0000_8000,
        0x9420_0688,
        0,
        0,
        0,
        0, //
        0x801f_0000,
        0x0000_108c,
        0x8000_00f9,
        0x0020_0c90,
        0x8000_00fc,
        0x0020_0c90,
    ])
}

fn three_lanes(values: [f32; 3]) -> Launch {
    let mut launch = launch();
    launch.lanes = 3;
    launch.inputs[0].values = values.iter().map(|value| floats([*value, 0.0, 0.0, 0.0])).collect();
    launch.environment_mut().stack_size = Some(1);
    launch
}

fn wave(program: &Program, launch: &Launch) -> Wave {
    let launch = Arc::new(launch.clone());
    let code = Code::new(&program.words, launch.environment.start, launch.environment.code_options());
    Wave::new(Arc::new(code), None, launch, Options::default(), 0)
}

#[test]
fn both_sides_of_an_if_run_for_their_lanes() {
    let outcome = strict(&if_else(), &three_lanes([1.0, -1.0, 2.0])).unwrap();
    let values: Vec<f32> = pixels(&outcome).iter().map(|value| f32::from_bits(value[0])).collect();
    assert_eq!(values, [1.0, 0.5, 1.0]);
    assert_eq!((outcome.stack_needed, outcome.statistics.divergent_branches), (1, 1));
}

#[test]
fn instructions_are_control_flow_and_groups_and_lanes_are_counted_with_them() {
    // All lanes take the same side: PUSH_BEFORE + group, JUMP, ALU + group, ELSE (jumps), EXPORT.
    let outcome = strict(&if_else(), &three_lanes([1.0; 3])).unwrap();
    assert_eq!((outcome.statistics.instructions, outcome.statistics.lane_instructions), (7, 21));
}

#[test]
fn a_step_is_a_control_flow_instruction_or_a_group() {
    let mut wave = wave(&if_else(), &three_lanes([1.0, -1.0, 2.0]));
    let mut seen = Vec::new();
    loop {
        seen.extend(wave.issue().map(|issue| (issue.pc, issue.mask.0)));
        if wave.step(&mut Silent).unwrap() == Step::Done {
            break;
        }
    }
    assert_eq!(seen, [(0, 7), (8, 7), (1, 5), (2, 5), (9, 5), (3, 5), (4, 2), (10, 2), (5, 7)]);
}

#[test]
fn the_view_says_why_a_lane_waits() {
    let mut wave = wave(&if_else(), &three_lanes([1.0, -1.0, 2.0]));
    for _ in 0..2 {
        wave.step(&mut Silent).unwrap();
    }
    assert_eq!(wave.issue(), Some(Issue { pc: 1, mask: Mask(0b101) }));
    assert_eq!((wave.why(Lane(0)), wave.why(Lane(1))), (Why::Active, Why::Branch { depth: 0 }));
    assert_eq!(FlowView::stack(&wave)[0].mask, Some(Mask(0b111)));
}

#[test]
fn events_tell_divergence_and_reconvergence() {
    let mut recorder = Recorder::default();
    run_watched(&if_else(), &three_lanes([1.0, -1.0, 2.0]), &Options::default(), Watch::of(&mut recorder))
        .unwrap();
    let events = recorder.events;
    assert!(events.contains(&Event::Push { kind: "PUSH" }));
    assert!(events.contains(&Event::Diverge { taken: Mask(0b101), not: Mask(0b010) }));
    assert!(events.contains(&Event::Reconverge { mask: Mask(0b111) }));
    assert!(events.contains(&Event::Pop { kind: "PUSH" }));
    let half = 0.5f32.to_bits();
    assert!(events.contains(&Event::Write { lane: Lane(1), register: 4, value: half }));
}

#[test]
fn a_copy_is_a_snapshot() {
    let mut wave = wave(&if_else(), &three_lanes([1.0, -1.0, 2.0]));
    for _ in 0..4 {
        wave.step(&mut Silent).unwrap();
    }
    let mut copy = wave.clone();
    for machine in [&mut wave, &mut copy] {
        while machine.step(&mut Silent).unwrap() == Step::Running {}
    }
    assert_eq!(wave.register(1, 0, Lane(1)), copy.register(1, 0, Lane(1)));
    assert_eq!(wave.statistics(), copy.statistics());
}

#[test]
fn lanes_beyond_a_wavefront_run_in_further_ones() {
    let mut launch = three_lanes([0.0; 3]);
    launch.lanes = 150;
    launch.inputs[0].values = (0..150).map(|lane| floats([lane as f32 - 75.0, 0.0, 0.0, 0.0])).collect();
    for chip in ["rv770", "rv730"] {
        launch.environment_mut().chip = Chip::named(chip).unwrap();
        let outcome = strict(&if_else(), &launch).unwrap();
        for (lane, value) in pixels(&outcome).iter().enumerate() {
            assert_eq!(f32::from_bits(value[0]), if lane > 75 { 1.0 } else { 0.5 }, "lane {lane} on {chip}");
        }
        assert_eq!(outcome.killed.len(), 150);
    }
}

#[test]
fn lanes_that_are_not_covered_export_nothing() {
    let mut launch = three_lanes([1.0; 3]);
    launch.covered = Some(vec![true, false, true]);
    let outcome = strict(&if_else(), &launch).unwrap();
    assert_eq!(outcome.killed, [false, true, false]);
    assert_eq!(pixels(&outcome)[1], [0; 4]);
}

#[test]
fn an_endless_loop_meets_the_watchdog() {
    // LOOP_START_DX10 @3; NOP; LOOP_END @1; end.
    let program = Program::from_words(vec![3, 0x8300_0000, 0, 0x8000_0000, 1, 0x8280_0000, 0, 0x8020_0000]);
    let options = Options { watchdog: 1000, ..Options::default() };
    let trap = run(&program, &launch(), &options).unwrap_err();
    assert_eq!(trap.cause, Cause::Watchdog(1000));
}

#[test]
fn running_off_the_end_is_a_trap_with_its_address() {
    let trap = strict(&Program::from_words(vec![0, 0x8000_0000]), &launch()).unwrap_err();
    assert_eq!(trap.pc, 1);
    assert!(matches!(trap.cause, Cause::Code(_)));
    assert!(strict(&Program::from_words(vec![]), &launch()).is_err());
}

#[test]
fn the_fidelity_report_counts_by_exactness() {
    let slots = [
        alu(Op2::RECIP_IEEE).to(0, 0).a(ONE, 0).last().words(),
        alu(Op2::MOV).to(0, 1).a(PS, 0).last().words(),
    ];
    let report = strict(&one_clause(&slots), &launch()).unwrap().fidelity.report;
    assert_eq!(report.operations[&"RECIP_IEEE"], (Fidelity::Approximate, 1));
    assert_eq!(report.operations[&"MOV"], (Fidelity::Exact, 1));
}

#[test]
fn random_words_never_panic() {
    let mut seed = 0x9e37_79b9_7f4a_7c15u64;
    println!("seed {seed:#x}");
    let mut next = || {
        seed ^= seed << 13;
        seed ^= seed >> 7;
        seed ^= seed << 17;
        seed as u32
    };
    for round in 0..20_000 {
        // Addresses are small enough to hit the program; opcodes are random.
        let mut words: Vec<u32> = (0..48).map(|_| next()).collect();
        for pair in words.chunks_exact_mut(2).take(8) {
            pair[0] &= 0xffc0_0017;
            pair[1] &= if round % 2 == 0 { 0x3fbf_ffff } else { 0x2fe3_fc1f };
        }
        let options =
            Options { mode: Mode::ALL[usize::from(round % 3 != 0)], watchdog: 200, ..Options::default() };
        let _ = run(&Program::from_words(words), &launch(), &options);
    }
}
