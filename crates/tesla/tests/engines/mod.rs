//! Runs on every engine.

use reconverge_isa::Program;
use reconverge_simt::{Engine, Level, Options, Watch};
use reconverge_tesla::launch::{Launch, Outcome, RunError};
use reconverge_tesla::run;
use reconverge_testkit::everywhere;

/// Returns the options for each way to execute: the reference interpreter, the fast engine and the compiled one on
/// every level that the processor has, and each of these in lockstep with the first.
#[allow(dead_code)]
pub(crate) fn ways(options: &Options) -> Vec<Options> {
    let mut ways = vec![
        Options { engine: Engine::Reference, ..*options },
        Options { engine: Engine::Lockstep, ..*options },
    ];
    for level in Level::available() {
        for engine in [Engine::Fast, Engine::Compiled, Engine::LockstepCompiled] {
            ways.push(Options { engine, level: Some(level), ..*options });
        }
    }
    ways
}

/// Executes [`run::run`] on every engine.
#[allow(dead_code)]
pub(crate) fn run(launch: Launch, program: &Program, options: &Options) -> Result<Outcome, RunError> {
    let attempt = |engine, level, told: Option<&mut _>| {
        let options = Options { engine, level, ..*options };
        match told {
            Some(told) => run::run_watched(program, launch.clone(), &options, Watch::of(told)),
            None => run::run(program, launch.clone(), &options),
        }
    };
    let shown = |result: &Result<Outcome, RunError>| match result {
        Ok(outcome) => format!("{:?}, {:?}, {:08x?}", outcome.statistics, outcome.report, outcome.lanes),
        Err(error) => error.to_string(),
    };
    everywhere(attempt, shown)
}
