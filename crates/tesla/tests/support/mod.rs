//! One run is a run on every engine, on every level of vector instructions that the processor has.

use reconverge_isa::Program;
use reconverge_simt::{Engine, Level};
use reconverge_tesla::launch::{self, Launch, Options, Outcome, RunError};

/// The same options for each way to execute: the reference interpreter, the fast engine on every level that the
/// processor has, and both in lockstep.
#[allow(dead_code)]
pub(crate) fn ways(options: &Options) -> Vec<Options> {
    let fast = |level| Options { engine: Engine::Fast, level: Some(level), ..*options };
    let mut ways = vec![Options { engine: Engine::Reference, ..*options }];
    ways.extend(Level::available().into_iter().map(fast));
    ways.push(Options { engine: Engine::Lockstep, ..*options });
    ways
}

/// Runs a launch in every way; all must leave the same.
#[allow(dead_code)]
pub(crate) fn run(launch: Launch, program: &Program, options: &Options) -> Result<Outcome, RunError> {
    let mut results = ways(options).into_iter().map(|way| (way, launch::run(launch.clone(), program, &way)));
    let (_, reference) = results.next().expect("there is a first way");
    for (way, result) in results {
        match (&reference, &result) {
            (Ok(a), Ok(b)) => {
                assert_eq!(a.statistics, b.statistics, "{way:?}");
                assert_eq!(a.report, b.report, "{way:?}");
                assert_eq!(a.lanes, b.lanes, "{way:?}");
                assert!(a.memory == b.memory, "{way:?}: memory differs");
            }
            (Err(a), Err(b)) => assert_eq!(a, b, "{way:?}"),
            (a, b) => panic!("{way:?}: {:?}, reference {:?}", b.as_ref().err(), a.as_ref().err()),
        }
    }
    reference
}
