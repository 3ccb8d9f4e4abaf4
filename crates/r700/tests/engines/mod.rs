//! One run is a run on every engine, on every level of vector instructions that the processor has.

use reconverge_isa::Program;
use reconverge_r700::launch::{self, Launch, Options, Outcome};
use reconverge_r700::reference::Cause;
use reconverge_simt::{Engine, Level, Trap};

/// [`launch::run`] on the reference interpreter, after seeing that the others leave the same.
pub(crate) fn run(program: &Program, launch: &Launch, options: &Options) -> Result<Outcome, Trap<Cause>> {
    let reference = launch::run(program, launch, &Options { engine: Engine::Reference, ..*options });
    for level in Level::available() {
        for engine in [Engine::Lockstep, Engine::Fast] {
            let found = launch::run(program, launch, &Options { engine, level: Some(level), ..*options });
            if found != reference {
                let shown = |result: &Result<Outcome, Trap<Cause>>| match result {
                    Ok(outcome) => format!("{:?}, {:?}", outcome.statistics, outcome.fidelity),
                    Err(trap) => trap.to_string().chars().take(2000).collect(),
                };
                let (found, reference) = (shown(&found), shown(&reference));
                panic!("{engine}, {}: {found}\nreference: {reference}", level.name());
            }
        }
    }
    reference
}
