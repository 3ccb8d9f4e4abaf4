//! One run is a run on every engine.

use reconverge_isa::Program;
use reconverge_r700::launch::{self, Launch, Options, Outcome};
use reconverge_r700::reference::Cause;
use reconverge_simt::Trap;
use reconverge_testkit::everywhere;

/// [`launch::run`] on every engine.
pub(crate) fn run(program: &Program, launch: &Launch, options: &Options) -> Result<Outcome, Trap<Cause>> {
    let run = |engine, level, told: Option<&mut _>| {
        let options = Options { engine, level, ..*options };
        match told {
            Some(told) => launch::run_observed(program, launch, &options, told),
            None => launch::run(program, launch, &options),
        }
    };
    let shown = |result: &Result<Outcome, Trap<Cause>>| match result {
        Ok(outcome) => format!("{:?}, {:?}", outcome.statistics, outcome.fidelity),
        Err(trap) => trap.to_string(),
    };
    everywhere(run, shown)
}
