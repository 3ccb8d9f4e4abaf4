//! One run is a run on every engine.

use reconverge_simt::{Engine, Event, Level, Observer};

/// Who runs and what the stack does, as an engine tells it: the first events, and how many there are.
#[derive(Debug, Default, PartialEq)]
pub struct Told {
    events: Vec<Event>,
    count: u64,
}

/// Events that are kept.
const MOST: u64 = 1 << 16;

impl Observer for Told {
    const ENABLED: bool = true;
    const DATA: bool = false;

    fn event(&mut self, event: Event) {
        if self.count < MOST {
            self.events.push(event);
        }
        self.count += 1;
    }
}

/// What the reference interpreter leaves, after seeing that the fast engine and both in lockstep leave the same on every
/// level of vector instructions that the processor has, and that the fast engine, when it is looked at, leaves and tells
/// the same too. `run` executes on an engine and a level, told to somebody or to nobody; `shown` says in a few words what
/// was left.
///
/// # Panics
/// Something is not the same.
pub fn everywhere<T: PartialEq>(
    run: impl Fn(Engine, Option<Level>, Option<&mut Told>) -> T,
    shown: impl Fn(&T) -> String,
) -> T {
    let mut told = Told::default();
    let expected = run(Engine::Reference, None, Some(&mut told));
    let same = |found: &T, way: &dyn Fn() -> String| {
        assert!(*found == expected, "{}: {}\nreference: {}", way(), shown(found), shown(&expected));
    };
    same(&run(Engine::Reference, None, None), &|| "reference, not looked at".to_owned());
    for level in Level::available() {
        for engine in [Engine::Fast, Engine::Lockstep] {
            same(&run(engine, Some(level), None), &|| format!("{engine}, {}", level.name()));
        }
        let mut fast = Told::default();
        let way = || format!("{}, {}, looked at", Engine::Fast, level.name());
        same(&run(Engine::Fast, Some(level), Some(&mut fast)), &way);
        if fast != told {
            let (own, reference) = (&fast.events, &told.events);
            let place = own.iter().zip(reference).position(|(own, reference)| own != reference);
            let place = place.unwrap_or(own.len().min(reference.len()));
            let some = |Told { events, count }: &Told| {
                format!("{:?} of {count}", &events[place..events.len().min(place + 4)])
            };
            panic!("{}: event {place} and on: {}\nreference: {}", way(), some(&fast), some(&told));
        }
    }
    expected
}
