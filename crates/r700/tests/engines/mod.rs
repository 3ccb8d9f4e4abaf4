//! Runs a program on every engine.

use reconverge_isa::Program;
use reconverge_r700::cause::Cause;
use reconverge_r700::launch::Launch;
use reconverge_r700::outcome::Outcome;
use reconverge_r700::run::{self, RunError};
use reconverge_simt::{Options, Trap, Watch};
use reconverge_testkit::everywhere;

/// Runs [`run::run`] on every engine.
pub(crate) fn run(program: &Program, launch: &Launch, options: &Options) -> Result<Outcome, Trap<Cause>> {
    let on = |engine, level, observer: Option<&mut _>| {
        let options = Options { engine, level, ..*options };
        match observer {
            Some(observer) => run::run_watched(program, launch, &options, Watch::of(observer)),
            None => run::run(program, launch, &options),
        }
    };
    let shown = |result: &Result<Outcome, RunError>| match result {
        Ok(outcome) => format!("{:?}, {:?}", outcome.statistics, outcome.fidelity),
        Err(error) => error.to_string(),
    };
    everywhere(on, shown).map_err(|error| match error {
        RunError::Trap(trap) => trap.trap,
        RunError::Launch(_) | RunError::Differ(_) | RunError::Fault(_) => panic!("{error}"),
    })
}
