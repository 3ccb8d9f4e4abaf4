//! What making host code takes, and why there is none: the same for every machine that has a compiled engine.

use std::fmt::Display;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, OnceLock};
use std::time::{Duration, Instant};

use crate::level::{Kind, Level};

/// Instructions of a program that is compiled, at most.
pub const MOST_INSTRUCTIONS: usize = 16_384;

/// Instructions of a program for which code is made, at most; loops come first. One takes some 8 us (an AMD EPYC).
pub const MOST_COMPILED: u32 = 600;

/// Groups of a launch from which on what runs once a group is worth code: an instruction of it then saves some 10 ns a group.
pub const MANY_GROUPS: usize = 512;

static PROGRAMS: AtomicU64 = AtomicU64::new(0);
static NANOSECONDS: AtomicU64 = AtomicU64::new(0);
static BYTES: AtomicU64 = AtomicU64::new(0);
static REFUSED: OnceLock<String> = OnceLock::new();

/// What compiling has taken in this process so far.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Spent {
    /// Programs that were looked at: one a launch, whether some part of it was worth code or not.
    pub programs: u64,
    /// The time for all of them.
    pub time: Duration,
    /// Bytes of code that they run.
    pub bytes: u64,
}

impl Spent {
    /// What was spent since `before`.
    pub fn since(self, before: Spent) -> Spent {
        Spent {
            programs: self.programs - before.programs,
            time: self.time.saturating_sub(before.time),
            bytes: self.bytes - before.bytes,
        }
    }
}

/// What compiling has taken so far.
pub fn spent() -> Spent {
    Spent {
        programs: PROGRAMS.load(Relaxed),
        time: Duration::from_nanos(NANOSECONDS.load(Relaxed)),
        bytes: BYTES.load(Relaxed),
    }
}

/// Why the fast engine took the place of the compiled one, the first time in this process; `None` if it never did.
pub fn refusal() -> Option<&'static str> {
    REFUSED.get().map(String::as_str)
}

/// Notes why the fast engine takes the place of the compiled one.
pub fn refuse(why: impl Display) {
    REFUSED.get_or_init(|| why.to_string());
}

/// Compiles a program of so many instructions for a level: `make` gives what runs and its bytes of code, or `None` where nothing is
/// worth it. `None` as well where there can be no code: then [`refusal`] says why.
pub fn compile<T, E: Display>(
    level: Level,
    instructions: usize,
    make: impl FnOnce() -> Result<Option<(T, usize)>, E>,
) -> Option<Arc<T>> {
    if level.kind() < Kind::Avx2 {
        refuse(format_args!("code is made for avx2, not for {}", level.name()));
        return None;
    }
    if instructions > MOST_INSTRUCTIONS {
        refuse(format_args!(
            "a program of {instructions} instructions is longer than {MOST_INSTRUCTIONS}, the most that is compiled"
        ));
        return None;
    }
    let start = Instant::now();
    let made = make();
    PROGRAMS.fetch_add(1, Relaxed);
    NANOSECONDS.fetch_add(start.elapsed().as_nanos() as u64, Relaxed);
    match made {
        Ok(made) => made.map(|(made, bytes)| {
            BYTES.fetch_add(bytes as u64, Relaxed);
            Arc::new(made)
        }),
        Err(error) => {
            refuse(error);
            None
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_too_long_is_refused_by_name_and_the_rest_is_counted() {
        let Some(level) = Level::available().into_iter().find(|level| level.kind() == Kind::Avx2) else {
            return;
        };
        let before = spent();
        let made = compile(level, 7, || Ok::<_, String>(Some(("code", 5))));
        assert_eq!(made.as_deref(), Some(&"code"));
        let spent = spent().since(before);
        assert_eq!((spent.programs, spent.bytes), (1, 5));
        let long = compile(level, MOST_INSTRUCTIONS + 1, || Ok::<_, String>(Some(("code", 5))));
        assert_eq!(long, None);
        let why = refusal().expect("it was refused");
        assert!(why.contains("16385") && why.contains("16384"), "{why}");
        assert_eq!(compile(level, 7, || Err::<Option<((), usize)>, _>("no memory")), None);
        assert_eq!(refusal(), Some(why), "the first reason stays");
    }
}
