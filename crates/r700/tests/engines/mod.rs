//! One run is a run on every engine, on every level of vector instructions that the processor has, and what observers
//! of flow are told is the same on all of them.

use reconverge_isa::Program;
use reconverge_r700::launch::{self, Launch, Options, Outcome};
use reconverge_r700::reference::Cause;
use reconverge_simt::{Engine, Event, Level, Observer, Trap};

/// Who runs and what the stack does: the first events, and how many there are.
#[derive(Debug, Default, PartialEq)]
struct Flow {
    events: Vec<Event>,
    count: u64,
}

impl Observer for Flow {
    const ENABLED: bool = true;
    const DATA: bool = false;

    fn event(&mut self, event: Event) {
        if self.count < 1 << 16 {
            self.events.push(event);
        }
        self.count += 1;
    }
}

/// [`launch::run`] on the reference interpreter, after seeing that the others leave the same and tell the same.
pub(crate) fn run(program: &Program, launch: &Launch, options: &Options) -> Result<Outcome, Trap<Cause>> {
    let mut told = Flow::default();
    let reference = Options { engine: Engine::Reference, ..*options };
    let reference = launch::run_observed(program, launch, &reference, &mut told);
    for level in Level::available() {
        for engine in [Engine::Lockstep, Engine::Fast] {
            let options = Options { engine, level: Some(level), ..*options };
            let same = |found: &Result<Outcome, Trap<Cause>>| {
                if *found == reference {
                    return;
                }
                let shown = |result: &Result<Outcome, Trap<Cause>>| match result {
                    Ok(outcome) => format!("{:?}, {:?}", outcome.statistics, outcome.fidelity),
                    Err(trap) => trap.to_string().chars().take(2000).collect(),
                };
                let (found, reference) = (shown(found), shown(&reference));
                panic!("{engine}, {}: {found}\nreference: {reference}", level.name());
            };
            same(&launch::run(program, launch, &options));
            if engine == Engine::Fast {
                let mut told_fast = Flow::default();
                same(&launch::run_observed(program, launch, &options, &mut told_fast));
                if told_fast != told {
                    let (a, b) = (&told.events, &told_fast.events);
                    let place = a.iter().zip(b).position(|(a, b)| a != b).unwrap_or(a.len().min(b.len()));
                    let shown =
                        |events: &[Event]| format!("{:?}", &events[place..events.len().min(place + 4)]);
                    panic!(
                        "{}: event {place} of {} is {}\nreference: of {}, {}",
                        level.name(),
                        told_fast.count,
                        shown(b),
                        told.count,
                        shown(a)
                    );
                }
            }
        }
    }
    reference
}
