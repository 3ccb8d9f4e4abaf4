//! What making host code takes, and why there is none: the same for every machine that has a compiled engine.

use std::fmt::Display;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, Once, OnceLock};
use std::time::{Duration, Instant};

use reconverge_isa::sets::NumberSet;

use crate::level::{Kind, Level};

/// Instructions of a program that is compiled, at most.
pub const MOST_INSTRUCTIONS: usize = 16_384;

/// Instructions of a program for which code is made, at most; loops come first. One takes some 8 us (an AMD EPYC).
const MOST_COMPILED: u32 = 600;

/// Groups of a launch from which on what runs once a group is worth code: an instruction of it then saves some 10 ns a group.
const MANY_GROUPS: usize = 512;

/// How much of a program is compiled.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Extent {
    /// Whatever is worth it, in a launch of many groups.
    Worth,
    /// Loops that are worth it.
    Loops,
    /// Whatever can be, so that as much as possible is compared.
    Throughout,
    /// As [`Extent::Throughout`], in pieces of so many instructions at most: 1 for steps.
    Upto(u32),
    /// As [`Extent::Upto`], in pieces that consist of whole blocks, as those of the other extents do.
    Blocks(u32),
}

impl Extent {
    /// What is worth it in a launch of so many groups.
    pub fn worth(groups: usize) -> Extent {
        if groups < MANY_GROUPS { Extent::Loops } else { Extent::Worth }
    }

    /// Instructions of a piece at most.
    pub fn most(self) -> u32 {
        match self {
            Extent::Upto(most) | Extent::Blocks(most) => most,
            Extent::Worth | Extent::Loops | Extent::Throughout => u32::MAX,
        }
    }

    /// Whether a piece may end in the middle of a block.
    pub fn cuts_blocks(self) -> bool {
        matches!(self, Extent::Upto(_))
    }

    /// Whether compiling pays for what saves the dispatch of so many operations and runs `once` or in a loop.
    pub fn pays(self, gain: i32, once: bool) -> bool {
        !matches!(self, Extent::Worth | Extent::Loops) || gain > if once { 16 } else { 4 }
    }

    /// Chooses what is compiled among what `trace` finds from a place on: loops first, which begin at `heads`; then what runs once,
    /// as far as it goes, and on from there, up to `end`. `size` gives the instructions of what was found and the place behind it.
    pub fn choose<F>(
        self,
        heads: &NumberSet,
        end: u32,
        trace: impl Fn(u32) -> Option<F>,
        size: impl Fn(&F) -> (u32, u32),
    ) -> Vec<(u32, F)> {
        let mut left = match self {
            Extent::Worth | Extent::Loops => MOST_COMPILED,
            Extent::Throughout | Extent::Upto(_) | Extent::Blocks(_) => u32::MAX,
        };
        let mut take = |found: &F| {
            let rest = left.checked_sub(size(found).0);
            left = rest.unwrap_or(0);
            rest.is_some()
        };
        let mut all: Vec<_> = heads.iter().filter_map(|head| Some((head, trace(head)?))).collect();
        all.retain(|(_, found)| take(found));
        if self == Extent::Loops {
            return all;
        }
        let mut next = 0;
        while next < end {
            let place = next;
            next += 1;
            if heads.contains(place) {
                continue;
            }
            if let Some(found) = trace(place) {
                next = size(&found).1.max(next);
                if take(&found) {
                    all.push((place, found));
                }
            }
        }
        all
    }
}

static PROGRAMS: AtomicU64 = AtomicU64::new(0);
static NANOSECONDS: AtomicU64 = AtomicU64::new(0);
static LONGEST: AtomicU64 = AtomicU64::new(0);
static ONCE: AtomicU64 = AtomicU64::new(0);
static BYTES: AtomicU64 = AtomicU64::new(0);
static REJECTED: AtomicU64 = AtomicU64::new(0);
static REFUSED: OnceLock<String> = OnceLock::new();

/// What compiling has taken in this process so far.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Spent {
    /// Programs that were looked at: one a launch, whether some part of it was worth code or not.
    pub programs: u64,
    /// The time for all of them.
    pub time: Duration,
    /// The time for what a process makes once, before its first code: [`once`].
    pub once: Duration,
    /// Bytes of code that they run.
    pub bytes: u64,
    /// Pieces that the verifier of host code rejected. The fast engine runs them.
    pub rejected: u64,
}

impl Spent {
    /// What was spent since `before`.
    pub fn since(self, before: Spent) -> Spent {
        Spent {
            programs: self.programs - before.programs,
            time: self.time.saturating_sub(before.time),
            once: self.once.saturating_sub(before.once),
            bytes: self.bytes - before.bytes,
            rejected: self.rejected - before.rejected,
        }
    }
}

/// What compiling has taken so far.
pub fn spent() -> Spent {
    Spent {
        programs: PROGRAMS.load(Relaxed),
        time: Duration::from_nanos(NANOSECONDS.load(Relaxed)),
        once: Duration::from_nanos(ONCE.load(Relaxed)),
        bytes: BYTES.load(Relaxed),
        rejected: REJECTED.load(Relaxed),
    }
}

/// The time for the program of this process that took longest so far.
pub fn longest() -> Duration {
    Duration::from_nanos(LONGEST.load(Relaxed))
}

/// Why the fast engine took the place of the compiled one, the first time in this process; `None` if it never did.
pub fn refusal() -> Option<&'static str> {
    REFUSED.get().map(String::as_str)
}

/// Notes why the fast engine takes the place of the compiled one.
pub fn refuse(why: impl Display) {
    REFUSED.get_or_init(|| why.to_string());
}

/// Returns whether the verifier of host code accepts a piece. Counts a piece that it rejects, and notes why.
pub fn accepts(verified: Result<(), impl Display>) -> bool {
    if let Err(error) = &verified {
        REJECTED.fetch_add(1, Relaxed);
        refuse(format_args!("the verifier rejects a piece of code: {error}"));
    }
    verified.is_ok()
}

/// Makes what a process needs once for all its code, while its first program is compiled; does nothing later. The time is not the
/// program's.
pub fn once(make: impl FnOnce()) {
    static MADE: Once = Once::new();
    MADE.call_once(|| {
        let start = Instant::now();
        make();
        ONCE.store(start.elapsed().as_nanos() as u64, Relaxed);
    });
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
    let (start, before) = (Instant::now(), ONCE.load(Relaxed));
    let made = make();
    let once = ONCE.load(Relaxed) - before;
    PROGRAMS.fetch_add(1, Relaxed);
    let taken = (start.elapsed().as_nanos() as u64).saturating_sub(once);
    NANOSECONDS.fetch_add(taken, Relaxed);
    LONGEST.fetch_max(taken, Relaxed);
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
    fn loops_are_chosen_first_and_what_runs_once_from_where_the_last_ended() {
        // A loop at place 4; from any other place on, three places run once.
        let heads = NumberSet::from_iter([4]);
        let choose = |extent: Extent, instructions: u32| {
            let end = |place: u32| if place == 4 { 6 } else { (place + 3).min(10) };
            let all = extent.choose(&heads, 10, |place| Some(end(place)), |end| (instructions, *end));
            all.into_iter().map(|(place, _)| place).collect::<Vec<_>>()
        };
        assert_eq!(choose(Extent::Worth, 1), [4, 0, 3, 6, 9]);
        assert_eq!(choose(Extent::Loops, 1), [4]);
        assert_eq!(choose(Extent::Worth, MOST_COMPILED / 2), [4, 0], "what is too much is left out");
        assert_eq!(choose(Extent::Throughout, MOST_COMPILED), [4, 0, 3, 6, 9]);
        assert_eq!(Extent::worth(MANY_GROUPS - 1), Extent::Loops);
        assert_eq!(Extent::worth(MANY_GROUPS), Extent::Worth);
    }

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
