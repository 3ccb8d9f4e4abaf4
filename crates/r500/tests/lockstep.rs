//! Both engines side by side on a program that diverges for long.

use std::sync::Arc;

use reconverge_r500::launch::{Input, Launch, Options};
use reconverge_r500::run::{run, run_observed};
use reconverge_r500::setup::Setup;
use reconverge_r500::text::assemble;
use reconverge_simt::{Engine, FlowStep, FlowTrace, Level};

/// Two rows of the picture in the middle of the set, and a thread of fewer lanes at their end.
#[test]
fn the_mandel_kernel_is_the_same_after_every_instruction() {
    let source = include_str!("../../workbench/kernels/mandel.r500.s");
    let setup = Arc::new(Setup::new(&assemble(source).expect("it assembles").program).expect("a program"));
    let lanes = 1_000;
    let centre = |pixel: usize| (pixel as f32 + 0.5).to_bits();
    let values = (0..lanes).map(|lane| [centre(lane), centre(500), 0, 0]).collect();
    let mut launch = Launch { lanes, inputs: vec![Input { temp: 0, values }], ..Launch::default() };
    for group_width in [16, 48, 64] {
        launch.options = Options { engine: Engine::Reference, group_width, ..Options::default() };
        let expected = run(&setup, &launch).expect("it runs");
        for level in Level::available() {
            for engine in [Engine::Fast, Engine::Lockstep] {
                launch.options = Options { engine, level: Some(level), ..launch.options };
                assert_eq!(run(&setup, &launch).as_ref(), Ok(&expected), "{engine}, {}", level.name());
            }
        }
    }
}

#[test]
fn the_mandel_kernel_is_told_the_same() {
    let source = include_str!("../../workbench/kernels/mandel.r500.s");
    let setup = Arc::new(Setup::new(&assemble(source).expect("it assembles").program).expect("a program"));
    let lanes = 1_000;
    let centre = |pixel: usize| (pixel as f32 + 0.5).to_bits();
    let values = (0..lanes).map(|lane| [centre(lane), centre(500), 0, 0]).collect();
    let launch = Launch { lanes, inputs: vec![Input { temp: 0, values }], ..Launch::default() };
    for group_width in [16, 48, 64] {
        let told = |options: Options| {
            let mut trace = FlowTrace::default();
            let launch = Launch { options, ..launch.clone() };
            (run_observed(&setup, &launch, &mut trace).expect("it runs"), trace)
        };
        let reference = Options { engine: Engine::Reference, group_width, ..Options::default() };
        let (outcome, trace) = told(reference);
        let ran = trace.steps.iter().map(|step| match step {
            FlowStep::Ran { count, .. } => u64::from(*count),
            FlowStep::Event(_) => 0,
        });
        assert_eq!(ran.sum::<u64>(), outcome.statistics.instructions);
        for level in Level::available() {
            let fast = Options { engine: Engine::Fast, level: Some(level), ..reference };
            assert!(told(fast) == (outcome.clone(), trace.clone()), "{group_width}, {}", level.name());
        }
    }
}

/// The pool that calls decides about threads; outcomes do not depend on how many it has.
#[test]
fn any_number_of_threads_gives_the_same() {
    let source = include_str!("../../workbench/kernels/mandel.r500.s");
    let setup = Arc::new(Setup::new(&assemble(source).expect("it assembles").program).expect("a program"));
    let lanes = 20_000;
    let centre = |pixel: usize| (pixel as f32 + 0.5).to_bits();
    let values = (0..lanes).map(|lane| [centre(lane % 1024), centre(lane / 1024), 0, 0]).collect();
    let launch = Launch { lanes, inputs: vec![Input { temp: 0, values }], ..Launch::default() };
    let on = |threads| {
        let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().expect("a pool");
        pool.install(|| run(&setup, &launch))
    };
    let expected = on(1);
    assert!(expected.is_ok());
    for threads in [2, 3, 7] {
        assert_eq!(on(threads), expected, "{threads} threads");
    }
}
