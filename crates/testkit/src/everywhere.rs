//! Runs a program on every engine and compares the results.

use std::env::{VarError, var};
use std::sync::OnceLock;

use reconverge_simt::{Engine, Event, Level, Observer};

/// Records the events that an engine emits for issues, divergence and stack changes. The record consists of the first
/// events and the number of all events.
#[derive(Debug, Default, PartialEq)]
pub struct EventLog {
    events: Vec<Event>,
    count: u64,
}

/// Maximum number of events that are recorded.
const MOST: u64 = 1 << 16;

impl Observer for EventLog {
    const ENABLED: bool = true;
    const DATA: bool = false;

    fn event(&mut self, event: Event) {
        if self.count < MOST {
            self.events.push(event);
        }
        self.count += 1;
    }
}

/// Restricts campaigns with many programs to some engines and levels. `RECONVERGE_ENGINE=compiled` runs only the
/// compiled engine, alone and in lockstep. `RECONVERGE_LEVEL=avx2` runs only the level AVX2.
struct Restriction {
    engine: Option<Engine>,
    level: Option<Level>,
}

impl Restriction {
    /// Returns the restriction that the environment sets.
    fn get() -> &'static Restriction {
        static RESTRICTION: OnceLock<Restriction> = OnceLock::new();
        RESTRICTION.get_or_init(|| Restriction {
            engine: named("RECONVERGE_ENGINE", |name| Engine::from_name(name).filter(|it| !it.is_lockstep())),
            level: named("RECONVERGE_LEVEL", Level::from_name),
        })
    }

    fn has_engine(&self, engine: Engine) -> bool {
        let compiled = |engine: Engine| engine.not_compiled() != engine;
        self.engine.is_none_or(|only| compiled(only) == compiled(engine))
    }

    fn has_level(&self, level: Level) -> bool {
        self.level.is_none_or(|only| only == level)
    }
}

/// Reads an environment variable and returns the value that its text names. Returns `None` if the variable is not set.
///
/// # Panics
/// Panics if the variable has an unknown value. Without this panic, no engine would run, and the campaign would pass.
fn named<T>(variable: &str, of: impl Fn(&str) -> Option<T>) -> Option<T> {
    match var(variable) {
        Ok(name) => {
            Some(of(&name).unwrap_or_else(|| panic!("{variable}={name}: unknown or not available here")))
        }
        Err(VarError::NotPresent) => None,
        Err(error) => panic!("{variable}: {error}"),
    }
}

/// Returns the result of the reference interpreter. The function compares the result of every other engine with this
/// result.
///
/// Four kinds of runs must return the same result. Two kinds are the fast engine and the compiled engine. The remaining
/// two kinds are the fast engine and the compiled engine in lockstep with the reference interpreter. Each kind runs
/// with every level of vector instructions that the processor has. Each level runs with an observer and without an
/// observer. With an observer, the events must also be the same. `run` runs the program on an engine and a level, with
/// or without an observer. `shown` describes a result briefly.
///
/// # Panics
/// Panics if results or events differ.
pub fn everywhere<T: PartialEq>(
    run: impl Fn(Engine, Option<Level>, Option<&mut EventLog>) -> T,
    shown: impl Fn(&T) -> String,
) -> T {
    let mut log = EventLog::default();
    let expected = run(Engine::Reference, None, Some(&mut log));
    let same = |found: &T, way: &dyn Fn() -> String| {
        assert!(*found == expected, "{}: {}\nreference: {}", way(), shown(found), shown(&expected));
    };
    let only = Restriction::get();
    same(&run(Engine::Reference, None, None), &|| "reference, not observed".to_owned());
    for level in Level::available().into_iter().filter(|level| only.has_level(*level)) {
        let engines = [Engine::Fast, Engine::Compiled, Engine::Lockstep, Engine::LockstepCompiled];
        for engine in engines.into_iter().filter(|engine| only.has_engine(*engine)) {
            same(&run(engine, Some(level), None), &|| format!("{engine}, {}", level.name()));
        }
        // Compiled code does not emit events. With an observer, the compiled engine therefore runs the fast engine.
        if !only.has_engine(Engine::Fast) {
            continue;
        }
        let mut fast = EventLog::default();
        let way = || format!("{}, {}, observed", Engine::Fast, level.name());
        same(&run(Engine::Fast, Some(level), Some(&mut fast)), &way);
        if fast != log {
            let (own, reference) = (&fast.events, &log.events);
            let place = own.iter().zip(reference).position(|(own, reference)| own != reference);
            let place = place.unwrap_or(own.len().min(reference.len()));
            let some = |EventLog { events, count }: &EventLog| {
                format!("{:?} of {count}", &events[place..events.len().min(place + 4)])
            };
            panic!("{}: event {place} and on: {}\nreference: {}", way(), some(&fast), some(&log));
        }
    }
    expected
}
