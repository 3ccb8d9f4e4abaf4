//! Tests launches of many wavefronts: on any number of threads, and in pieces.

use std::sync::Arc;

use std::ops::Range;

use reconverge_isa::Program;
use reconverge_r700::cause::Cause;
use reconverge_r700::chip::Chip;
use reconverge_r700::flow::Open;
use reconverge_r700::launch::{Columns, Environment, Input, Launch, LaunchError, Stage};
use reconverge_r700::outcome::{Exported, Outcome};
use reconverge_r700::run::{Loaded, RunError, run, run_in_pieces};
use reconverge_r700::text::assemble;
use reconverge_simt::Options;
use reconverge_simt::limits::LANES;
use reconverge_simt::{Engine, GroupTrap, Mode, Trap};

/// Lanes with R0.y produce results of every kind, lanes with R0.z are killed, and lanes with an R2.x above 1 trap.
const EVERYTHING: &str = "ALU_PUSH_BEFORE:
 0 x: PRED_SETNE_INT _.x, R0.y, 0 UPDATE_EXEC_MASK
JUMP: ADDR(@none) POP_CNT(1)
MEM_RING: WRITE[1], R0.xyzw ELEM_SIZE(3)
MEM_STREAM2: WRITE[0], R0.xyzw ELEM_SIZE(3)
EMIT_VERTEX:
EXPORT: PARAM[3], R0.xyzw
POP: POP_CNT(1)
@none:
MEM_SCRATCH: WRITE_IND[0], R0.xyzw INDEX_GPR(2) ELEM_SIZE(3) ARRAY_SIZE(1)
ALU:
 1 x: KILLGT_INT _.x, R0.z, 0
EXPORT_DONE: PIXEL[0], R0.xyzw END_OF_PROGRAM
";

/// Each lane writes its number to the scatter buffer at index R1.x, and R0 to the data share. It reads the dword that
/// the first lane has written there.
const SHARED: &str = "MEM_EXPORT: WRITE_IND[0], R0.x___ INDEX_GPR(1) ELEM_SIZE(0) ARRAY_SIZE(4095)
TEX:
 LOCAL_DS_WRITE R0 DST_STRIDE(4) WAVE_REL
 LOCAL_DS_READ R1.xyzw, R2.x SRC_Y(Y)
EXPORT_DONE: PIXEL[0], R1.xyzw END_OF_PROGRAM
";

fn program(source: &str) -> Program {
    Program::from_words(assemble(source, Chip::RV770).expect("it assembles").words)
}

/// Returns a launch of `lanes` lanes. R0.x is the lane's number. R0.y and R0.z are set in the lanes for which `leaves` and
/// `killed` hold. R2.x is above 1 in the lanes that trap.
fn launch(
    lanes: usize,
    wave: u8,
    leaves: impl Fn(usize) -> bool,
    killed: impl Fn(usize) -> bool,
    traps: &[usize],
) -> Launch {
    let chip = if wave == 64 { Chip::RV770 } else { Chip::named("rv730").expect("a chip") };
    assert_eq!(chip.wave_width, wave);
    let mut launch = Launch::new(chip, Stage::Geometry, lanes);
    (launch.environment_mut().num_gprs, launch.environment_mut().clause_temps) = (3, 0);
    let first = |lane: usize| [lane as u32, leaves(lane).into(), killed(lane).into(), 7];
    launch.inputs.push(Input { gpr: 0, values: (0..lanes).map(first).collect() });
    let index = |lane: usize| [if traps.contains(&lane) { 2 } else { lane as u32 & 1 }, 0, 0, 0];
    launch.inputs.push(Input { gpr: 2, values: (0..lanes).map(index).collect() });
    launch
}

fn on<T: Send>(threads: usize, run: impl FnOnce() -> T + Send) -> T {
    rayon::ThreadPoolBuilder::new().num_threads(threads).build().expect("a pool").install(run)
}

/// Disables the search for races, because wavefronts of these programs see the writes of others.
fn with(engine: Engine) -> Options {
    Options { engine, race_check: false, ..Options::default() }
}

type Ended = Result<Outcome, RunError>;

/// Registers and exports by column equal those by lane, with killed lanes and wavefronts of which only a part exports.
#[test]
fn columns_are_the_same_words_as_lanes() {
    let program = program(EVERYTHING);
    let lanes = 3_017;
    let by_lane = launch(lanes, 64, |lane| lane % 3 == 0 && lane > 1_500, |lane| lane.is_multiple_of(5), &[]);
    let columns = by_lane.inputs.iter().map(|input| Columns {
        gpr: input.gpr,
        components: [0, 1, 2, 3].map(|chan| Arc::new(input.values.iter().map(|value| value[chan]).collect())),
    });
    let by_column = Launch::of_columns(by_lane.environment.clone(), lanes, columns.collect(), None);
    for (engine, threads) in [(Engine::Reference, 1), (Engine::Fast, 1), (Engine::Fast, 3)] {
        let [expected, found] = [&by_lane, &by_column]
            .map(|launch| on(threads, || run(&program, launch, &with(engine))).expect("it ends"));
        assert!(found.exports.is_empty() && found.killed == expected.killed);
        assert_eq!(found.columns.len(), expected.exports.len());
        for Exported { kind, base, values, written } in &expected.exports {
            let columns = found.columns.iter().find(|columns| (columns.kind, columns.base) == (*kind, *base));
            let columns = columns.expect("the target is there");
            assert_eq!(columns.written, written.iter().any(|mask| *mask != 0));
            for (chan, column) in columns.components.iter().enumerate() {
                assert!(column.iter().eq(values.iter().map(|value| &value[chan])), "{kind:?} {base} {chan}");
            }
        }
    }
}

/// Straight-line code: clauses, texture instructions, and exports of registers and constants, some of which are
/// repeated.
const STRAIGHT: &str = "ALU:
 0 x: ADD R2.x, R0.x, R1.y
   y: MUL R2.y, R0.y, R0.z
   z: MOV R2.z, R1.x
 1 x: MULADD R3.x, PV.x, R0.y, R1.y
   t: RECIP_IEEE R3.y, R0.x
TEX:
 GET_GRADIENTS_H R4.xyzw, R2.xyzw, t0, s0
 GET_GRADIENTS_V R5.x_zw, R2.xyzw, t0, s0
EXPORT: PIXEL[1], R4.xy0_
NOP:
ALU:
 2 x: ADD R2.x, R2.x, R5.z CLAMP
EXPORT: PIXEL[1], R5.z___
EXPORT_DONE: PIXEL[0], R2.xy1w END_OF_PROGRAM
";

/// A launch by column runs straight-line code without its control flow. Its results, counts and disputed
/// interpretations equal those of a launch by lane, which runs all of the code.
#[test]
fn straight_line_code_by_column_leaves_the_same_as_by_lane() {
    let program = program(STRAIGHT);
    for (lanes, chip) in [(3_016, "rv770"), (3_016, "rv730"), (64, "rv770"), (8, "rv770"), (128, "rv730")] {
        let chip = Chip::named(chip).expect("a chip");
        let mut by_lane = Launch::new(chip, Stage::Pixel, lanes);
        let float = |number: usize| (number as f32 * 0.37 - 11.).to_bits();
        let value = |lane: usize| [float(lane), float(lane * lane % 97), float(lane % 7), 3];
        by_lane.inputs.push(Input { gpr: 0, values: (0..lanes).map(value).collect() });
        by_lane
            .inputs
            .push(Input { gpr: 1, values: (0..lanes / 2).map(|lane| [5, float(lane), 0, 0]).collect() });
        let columns = by_lane.inputs.iter().map(|input| Columns {
            gpr: input.gpr,
            components: [0, 1, 2, 3]
                .map(|chan| Arc::new(input.values.iter().map(|value| value[chan]).collect())),
        });
        let read: Arc<[(u8, u8)]> = [(0, 0), (0, 1), (0, 2), (1, 0), (1, 1), (2, 3)].into();
        let by_column = Launch::of_columns(by_lane.environment.clone(), lanes, columns.collect(), Some(read));
        let with = |engine| Options { mode: Mode::Lenient, ..with(engine) };
        let expected = run(&program, &by_lane, &with(Engine::Reference)).expect("it ends");
        for (engine, threads) in [(Engine::Fast, 1), (Engine::Fast, 3), (Engine::Compiled, 1)] {
            let found = on(threads, || run(&program, &by_column, &with(engine))).expect("it ends");
            assert_eq!(found.columns.len(), expected.exports.len());
            for Exported { kind, base, values, .. } in &expected.exports {
                let columns = found.columns.iter().find(|found| (found.kind, found.base) == (*kind, *base));
                let columns = columns.expect("the target is there");
                assert!(columns.written);
                for (chan, column) in columns.components.iter().enumerate() {
                    assert!(
                        column.iter().eq(values.iter().map(|value| &value[chan])),
                        "{base} {chan} {lanes}"
                    );
                }
            }
            let rest = Outcome { exports: expected.exports.clone(), columns: Vec::new(), ..found };
            assert!(rest == expected, "{lanes} lanes of {}: {rest:?}", chip.name);
        }
    }
}

/// The same code by lane, in each mode: all results equal those of the reference interpreter.
#[test]
fn straight_line_code_by_lane_leaves_the_same_without_control_flow() {
    let program = program(STRAIGHT);
    for (lanes, chip) in [(3_016, "rv770"), (3_013, "rv730"), (64, "rv770"), (6, "rv770"), (130, "rv730")] {
        let mut launch = Launch::new(Chip::named(chip).expect("a chip"), Stage::Pixel, lanes);
        let float = |number: usize| (number as f32 * 0.37 - 11.).to_bits();
        let value = |lane: usize| [float(lane), float(lane * lane % 97), float(lane % 7), 3];
        launch.inputs.push(Input { gpr: 0, values: (0..lanes).map(value).collect() });
        launch
            .inputs
            .push(Input { gpr: 1, values: (0..lanes / 2).map(|lane| [5, float(lane), 0, 0]).collect() });
        for mode in [Mode::Strict, Mode::Lenient] {
            let with = |engine| Options { mode, ..with(engine) };
            let expected = run(&program, &launch, &with(Engine::Reference)).expect("it ends");
            for (engine, threads) in [(Engine::Fast, 1), (Engine::Fast, 3), (Engine::Compiled, 1)] {
                let found = on(threads, || run(&program, &launch, &with(engine))).expect("it ends");
                assert!(found == expected, "{lanes} lanes of {chip}, {mode:?}, {threads} threads");
            }
        }
    }
}

/// R2 and the components of R1 that no instruction writes have their values at the start in every launch, whatever earlier
/// wavefronts of the program had there.
const READS_AT_THE_START: &str = "ALU:
 0 x: ADD R1.x, R0.x, R2.x
   y: MOV R3.y, R0.y
 1 x: MOV R2.x, R0.x
   y: MOV R2.y, R3.y
ALU_PUSH_BEFORE:
 2 x: PRED_SETGT _.x, R0.x, 0 UPDATE_EXEC_MASK
ALU:
 3 z: MOV R3.z, R0.z
POP: POP_CNT(1)
EXPORT: PIXEL[0], R1.xyzw
EXPORT_DONE: PIXEL[1], R3.xyzw END_OF_PROGRAM
";

#[test]
fn registers_of_a_launch_do_not_reach_the_next() {
    let program = program(READS_AT_THE_START);
    let environment = Environment::new(Chip::named("rv770").expect("a chip"), Stage::Pixel);
    let environment = Arc::new(environment);
    for engine in [Engine::Fast, Engine::Compiled] {
        let loaded = Loaded::new(&program, &environment, &with(engine)).expect("it fits");
        for (lanes, gprs) in
            [(200, &[0, 1, 2][..]), (64, &[1]), (130, &[0]), (64, &[0, 3]), (3, &[]), (64, &[2])]
        {
            let value = |lane: usize| [1, 2, 3, 4].map(|of| (of as f32 - lane as f32 * 0.1).to_bits());
            let input = |gpr: &u8| Input { gpr: *gpr, values: (0..lanes).map(value).collect() };
            let inputs: Vec<Input> = gprs.iter().map(input).collect();
            let launch = Launch::of(environment.clone(), lanes, inputs.clone());
            let expected = run(&program, &launch, &with(Engine::Reference)).expect("it ends");
            assert!(loaded.run(lanes, inputs).expect("it ends") == expected, "{engine:?} {lanes} {gprs:?}");
        }
    }
}

#[test]
fn what_is_left_does_not_depend_on_the_number_of_threads() {
    let program = program(EVERYTHING);
    // Effects everywhere, only in the middle, only at the end, nowhere.
    let some: [Range<usize>; 4] = [0..30_000, 9_000..9_100, 18_999..19_207, 0..0];
    for (number, some) in some.into_iter().enumerate() {
        let leaves = |lane: usize| some.contains(&lane) && !lane.is_multiple_of(3);
        let killed = |lane: usize| some.contains(&lane) && lane.is_multiple_of(5);
        let mut launch = launch(19_207, [64, 32][number & 1], leaves, killed, &[]);
        launch.covered = (number == 1).then(|| (0..launch.lanes).map(|lane| lane % 100 != 99).collect());
        let reference = run(&program, &launch, &with(Engine::Reference));
        assert_eq!(reference.as_ref().expect("it ends").exports.len(), if some.is_empty() { 1 } else { 2 });
        for threads in [1, 2, 3] {
            let found = on(threads, || run(&program, &launch, &with(Engine::Fast)));
            assert!(found == reference, "{threads} threads");
        }
    }
}

#[test]
fn the_first_trap_counts_on_any_number_of_threads() {
    let program = program(EVERYTHING);
    for traps in
        [vec![19_206], vec![100, 9_999], vec![15_000, 15_001, 8_000], vec![400, 399], vec![7_000, 7_100]]
    {
        let launch = launch(19_207, 64, |lane| lane % 2 == 0, |_| false, &traps);
        let reference: Ended = run(&program, &launch, &with(Engine::Reference));
        assert!(matches!(
            &reference,
            Err(RunError::Trap(GroupTrap { trap: Trap { cause: Cause::MemoryBounds { .. }, .. }, .. }))
        ));
        for threads in [1, 2, 3] {
            assert_eq!(on(threads, || run(&program, &launch, &with(Engine::Fast))), reference);
        }
    }
}

/// Runs [`run_in_pieces`] and joins the results of the pieces.
fn together(program: &Program, launch: &Launch, options: &Options, piece: usize) -> Ended {
    let inputs = |lanes: Range<usize>| -> Vec<Input> {
        let part = |input: &Input| Input { gpr: input.gpr, values: input.values[lanes.clone()].into() };
        launch.inputs.iter().map(part).collect()
    };
    let mut sum = Outcome::default();
    let mut next = 0;
    let done = |lanes: Range<usize>, mut left: Outcome| {
        assert_eq!((lanes.start, lanes.len()), (next, left.killed.len()), "piece after piece");
        next = lanes.end;
        for Exported { kind, base, values, written } in left.exports {
            let place = sum.exports.iter().position(|target| (target.kind, target.base) == (kind, base));
            let place = place.unwrap_or_else(|| {
                sum.exports.push(Exported { kind, base, values: Vec::new(), written: Vec::new() });
                sum.exports.len() - 1
            });
            let whole = &mut sum.exports[place];
            whole.values.resize(lanes.start, [0; 4]);
            whole.written.resize(lanes.start, 0);
            whole.values.extend(values);
            whole.written.extend(written);
        }
        sum.killed.append(&mut left.killed);
        sum.emissions.append(&mut left.emissions);
        sum.statistics.add(&left.statistics);
        let memory = [&mut sum.memory.scratch, &mut sum.memory.reduction, &mut sum.memory.ring];
        let lists = [&mut left.memory.scratch, &mut left.memory.reduction, &mut left.memory.ring];
        let memory = memory.into_iter().chain(&mut sum.memory.streams);
        for (whole, list) in memory.zip(lists.into_iter().chain(&mut left.memory.streams)) {
            if !list.is_empty() {
                whole.resize(lanes.start, Vec::new());
                whole.append(list);
            }
        }
    };
    let end = run_in_pieces(program, launch, options, piece, inputs, done)?;
    assert_eq!(end.statistics, sum.statistics);
    assert_eq!(next, launch.lanes);
    for target in &mut sum.exports {
        target.values.resize(next, [0; 4]);
        target.written.resize(next, 0);
    }
    let memory = [&mut sum.memory.scratch, &mut sum.memory.reduction, &mut sum.memory.ring];
    for list in memory.into_iter().chain(&mut sum.memory.streams).filter(|list| !list.is_empty()) {
        list.resize(next, Vec::new());
    }
    sum.exports.sort_by_key(|target| (target.kind, target.base));
    (sum.memory.scatter, sum.memory.global) = (end.memory.scatter, end.memory.global);
    Ok(Outcome { fidelity: end.fidelity, stack_needed: end.stack_needed, finding: end.finding, ..sum })
}

#[test]
fn pieces_together_equal_one_run() {
    let program = program(EVERYTHING);
    for (number, some) in [0..3_000, 1_000..1_100, 0..0].into_iter().enumerate() {
        let leaves = |lane: usize| some.contains(&lane) && !lane.is_multiple_of(3);
        let mut launch = launch(2_950, [64, 32][number & 1], leaves, |lane| lane % 7 == 0, &[]);
        launch.covered = (number == 0).then(|| (0..launch.lanes).map(|lane| lane % 100 != 99).collect());
        let whole = run(&program, &launch, &with(Engine::Reference));
        assert!(whole.is_ok());
        for piece in [0, 1, 64, 100, 1_000, 2_944, 2_950, usize::MAX] {
            for engine in Engine::ALL {
                assert!(
                    together(&program, &launch, &with(engine), piece) == whole,
                    "{piece} lanes, {engine}"
                );
            }
        }
        let long = on(2, || together(&program, &launch, &with(Engine::Fast), 64 * 40));
        assert!(long == whole, "on two threads");
    }
}

#[test]
fn what_wavefronts_share_goes_on_from_piece_to_piece() {
    let program = program(SHARED);
    // Four lanes of different wavefronts write the same dword.
    let mut launch = launch(1_000, 64, |_| true, |_| false, &[]);
    launch.inputs[1].values = vec![[0; 4]; 1_000].into();
    launch.inputs.push(Input { gpr: 1, values: (0..1_000).map(|lane| [lane % 250, 0, 0, 0]).collect() });
    launch.scatter = vec![9; 400];
    launch.global = vec![[[5; 64]; 4]];
    let whole = run(&program, &launch, &with(Engine::Reference));
    let left = whole.as_ref().expect("it ends");
    assert_eq!((left.exports[0].values[999], left.memory.scatter[249]), ([0, 1, 0, 7], 999));
    for piece in [64, 300, 1_000] {
        for engine in Engine::ALL {
            assert!(together(&program, &launch, &with(engine), piece) == whole, "{piece} lanes, {engine}");
        }
    }
}

#[test]
fn a_trap_in_a_piece_is_that_of_the_whole_run() {
    let program = program(EVERYTHING);
    let launch = launch(1_000, 64, |_| true, |_| false, &[700, 702, 900]);
    let whole = run(&program, &launch, &with(Engine::Reference));
    for piece in [64, 128, 960, 1_000] {
        for engine in Engine::ALL {
            assert_eq!(together(&program, &launch, &with(engine), piece), whole);
        }
    }
}

#[test]
fn more_lanes_than_a_launch_can_have_are_refused() {
    let program = program(EVERYTHING);
    for lanes in [1 << 63, usize::MAX, 1 << 40] {
        let mut launch = launch(64, 64, |_| false, |_| false, &[]);
        launch.lanes = lanes;
        for engine in Engine::ALL {
            let found = run(&program, &launch, &with(engine));
            let exceeded = LANES.check(lanes as u64).unwrap_err();
            assert_eq!(found, Err(RunError::Launch(LaunchError::Lanes(exceeded))), "{engine}");
        }
    }
}

#[test]
fn lanes_without_a_number_and_registers_without_one_are_refused() {
    let program = program(EVERYTHING);
    let refused = |change: fn(&mut Launch)| {
        let mut launch = launch(64, 64, |_| false, |_| false, &[]);
        change(&mut launch);
        match run(&program, &launch, &with(Engine::Fast)) {
            Err(RunError::Launch(error)) => error,
            other => panic!("{other:?}"),
        }
    };
    let first_lane = usize::MAX - 10;
    assert_eq!(
        refused(|launch| launch.first_lane = usize::MAX - 10),
        LaunchError::FirstLane { first_lane, lanes: 64 }
    );
    assert_eq!(
        refused(|launch| launch.environment_mut().num_gprs = 129),
        LaunchError::Registers { gprs: 129, clause_temps: 0 }
    );
}

#[test]
fn a_program_that_ends_with_entries_on_its_stack_says_so_and_does_not_trap() {
    let source = "ALU_PUSH_BEFORE:\n 0 x: PRED_SETNE_INT _.x, R0.y, 0 UPDATE_EXEC_MASK
        LOOP_START_DX10: ADDR(@out)\n@body:\nLOOP_BREAK: ADDR(@end)\n@end:\nLOOP_END: ADDR(@body)\n@out:
        EXPORT_DONE: PIXEL[0], R0.xyzw END_OF_PROGRAM\n";
    let launch = launch(200, 64, |lane| lane > 100, |_| false, &[]);
    for engine in Engine::ALL {
        let open =
            run(&program(source), &launch, &with(engine)).expect("it ends").finding.expect("a push is open");
        assert_eq!(open, Open { pushes: 1, loops: 0, calls: 0 });
        assert_eq!(open.to_string(), "the program ends with entries on its stack: 1 PUSH, 0 LOOP, 0 CALL");
        assert_eq!(run(&program(EVERYTHING), &launch, &with(engine)).expect("it ends").finding, None);
    }
}
