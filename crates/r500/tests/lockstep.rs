//! Runs a program with long divergence on every engine, level and number of host threads.

use std::sync::Arc;

use reconverge_r500::launch::{Environment, Hardware, Input, Launch};
use reconverge_r500::run::{run, run_watched};
use reconverge_r500::setup::Setup;
use reconverge_r500::text::assemble;
use reconverge_simt::{Engine, FlowStep, FlowTrace, Mode, Options, Path, RunError, Shares, Watch};
use reconverge_testkit::everywhere;

/// Returns the mandel kernel and a launch for pixels of its picture, beginning at the start of a row.
fn mandel(lanes: usize, row: usize, group_width: usize) -> (Arc<Setup>, Launch) {
    let source = include_str!("../../workbench/kernels/mandel.r500.s");
    let setup = Arc::new(Setup::new(&assemble(source).expect("it assembles").program).expect("a program"));
    let centre = |pixel: usize| (pixel as f32 + 0.5).to_bits();
    let values = (0..lanes).map(|lane| [centre(lane % 1024), centre(row + lane / 1024), 0, 0]).collect();
    let hardware = Hardware { group_width, ..Hardware::default() };
    let environment = Environment { hardware, ..Environment::default() }.into();
    (setup, Launch { environment, lanes, inputs: vec![Input { temp: 0, values }], columns: Vec::new() })
}

/// A row of the picture in the middle of the set, with a smaller group at its end.
#[test]
fn the_mandel_kernel_is_the_same_everywhere() {
    for group_width in [16, 48, 64] {
        let (setup, launch) = mandel(1_000, 500, group_width);
        let on = |engine, level, log: Option<&mut _>| {
            let options = Options { engine, level, ..Options::default() };
            match log {
                Some(log) => run_watched(&setup, &launch, &options, Watch::of(log)),
                None => run(&setup, &launch, &options),
            }
        };
        let outcome = everywhere(on, |result| format!("{group_width}: {result:?}")).expect("it runs");
        let mut trace = FlowTrace::default();
        run_watched(&setup, &launch, &Options::default(), Watch::of(&mut trace)).expect("it runs");
        let ran = trace.steps.iter().map(|step| match step {
            FlowStep::Ran { count, .. } => u64::from(*count),
            FlowStep::Event(_) => 0,
        });
        assert_eq!(ran.sum::<u64>(), outcome.statistics.instructions);
    }
}

/// JUMP_FUNC 0xd5 jumps for either ALU result if its boolean is false, but it still reads the ALU result.
#[test]
fn an_endloop_that_looks_at_a_spent_alu_result_traps_in_strict_mode_on_every_engine() {
    let source = include_str!("../../workbench/kernels/mandel.r500.s")
        .replace("\nloop int[0]\n", "\nloop int[0] -> behind\nbody:\n")
        .replace("break if alu\n", "break if alu -> behind\n")
        .replace("\nendloop int[0]\n", "\nFC ENDLOOP FUNC=0xd5 ANY INT=0 -> body\nbehind:\n");
    let setup = Arc::new(Setup::new(&assemble(&source).expect("it assembles").program).expect("a program"));
    let (plain, launch) = mandel(128, 500, 16);
    let on = |setup: &Arc<Setup>, options: &Options, log: Option<&mut _>| match log {
        Some(log) => run_watched(setup, &launch, options, Watch::of(log)),
        None => run(setup, &launch, options),
    };
    let [strict, lenient] = [Mode::Strict, Mode::Lenient].map(|mode| {
        everywhere(
            |engine, level, log| on(&setup, &Options { engine, level, mode, ..Options::default() }, log),
            |result| format!("{mode}: {result:?}"),
        )
    });
    match strict {
        Err(RunError::Trap(trap)) => assert!(trap.to_string().contains("reads an ALU result"), "{trap}"),
        other => panic!("{other:?}"),
    }
    assert_eq!(lenient, on(&plain, &Options { mode: Mode::Lenient, ..Options::default() }, None));
}

#[test]
fn lockstep_runs_the_fast_engine_by_all_its_paths() {
    let (setup, launch) = mandel(1_000, 500, 16);
    let mut shares = Shares::default();
    let options = Options { engine: Engine::Lockstep, ..Options::default() };
    let outcome = run_watched(&setup, &launch, &options, Watch::of(&mut shares)).expect("it runs");
    println!("{shares}");
    assert_eq!(shares.total(), outcome.statistics.instructions);
    for path in [Path::Chain, Path::Block, Path::Part] {
        assert!(shares.of(path) > 0, "{shares}");
    }
    assert_eq!(shares.of(Path::Other), 0, "{shares}");
}

/// The calling thread pool determines the number of threads. The results do not depend on it.
#[test]
fn any_number_of_threads_gives_the_same() {
    let (setup, launch) = mandel(20_000, 0, 16);
    let on = |threads| {
        let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().expect("a pool");
        pool.install(|| run(&setup, &launch, &Options::default()))
    };
    let expected = on(1);
    assert!(expected.is_ok());
    for threads in [2, 3, 7] {
        assert_eq!(on(threads), expected, "{threads} threads");
    }
}
