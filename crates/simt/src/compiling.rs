//! Three facts about compiling programs: how much of each program is compiled, how much time compiling took, and why a
//! program was not compiled. All machines with a compiled engine share this module.

use std::fmt::Display;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, Once, OnceLock};
use std::time::{Duration, Instant};

use crate::level::{Kind, Level};

/// Maximum number of instructions of a program. Longer programs are not compiled.
pub const MOST_INSTRUCTIONS: usize = 16_384;

/// Maximum number of instructions that are compiled per program. Instructions in loops are compiled first. On an AMD
/// EPYC, compiling takes about 8 us per instruction.
const MOST_COMPILED: u32 = 600;

/// The engine compiles code that runs once per group only for launches with at least this many groups. Each compiled
/// instruction saves about 10 ns per group.
const MANY_GROUPS: usize = 512;

/// The parts of a program that are compiled.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Extent {
    /// Loops and other code. Code is compiled only if compiling it pays off in a launch of many groups.
    Worth,
    /// Only those loops that pay off.
    Loops,
    /// All code that can be compiled, even if compiling it does not pay off. Lockstep uses this extent to compare as
    /// much compiled code as possible.
    Throughout,
    /// All code that can be compiled. A piece of code has at most the given number of instructions, and may end within
    /// a block. The number 1 is for single steps.
    Upto(u32),
    /// All code that can be compiled. A piece of code has at most the given number of instructions, and consists of
    /// whole blocks.
    Blocks(u32),
}

impl Extent {
    /// Returns the extent for which compiling pays off in a launch of `groups` groups.
    pub fn worth(groups: usize) -> Extent {
        if groups < MANY_GROUPS { Extent::Loops } else { Extent::Worth }
    }

    /// Returns the maximum number of instructions of a piece.
    pub fn most(self) -> u32 {
        match self {
            Extent::Upto(most) | Extent::Blocks(most) => most,
            Extent::Worth | Extent::Loops | Extent::Throughout => u32::MAX,
        }
    }

    /// Returns whether a piece may end in the middle of a block.
    pub fn cuts_blocks(self) -> bool {
        matches!(self, Extent::Upto(_))
    }

    /// Returns whether compiling pays off for a part of a program. `gain` is the number of operations for which
    /// compiled code needs no dispatch. `once` states that the part does not run in a loop.
    pub fn pays(self, gain: i32, once: bool) -> bool {
        !matches!(self, Extent::Worth | Extent::Loops) || gain > if once { 16 } else { 4 }
    }

    /// Returns, for each block of a program, whether the engine compiles the block. The function selects blocks in
    /// loops first. Unless the extent is [`Extent::Loops`], the function then selects other blocks. The function skips
    /// a block that would exceed the maximum number of instructions. `sizes` contains the number of instructions of
    /// each block.
    pub fn chosen(self, sizes: &[u32], is_loop: impl Fn(usize) -> bool) -> Vec<bool> {
        let mut left = match self {
            Extent::Worth | Extent::Loops => MOST_COMPILED,
            Extent::Throughout | Extent::Upto(_) | Extent::Blocks(_) => u32::MAX,
        };
        let mut chosen = vec![false; sizes.len()];
        for loops in [true, false] {
            for (number, size) in sizes.iter().enumerate() {
                if is_loop(number) == loops && (loops || self != Extent::Loops) && *size <= left {
                    chosen[number] = true;
                    left -= size;
                }
            }
        }
        chosen
    }
}

static PROGRAMS: AtomicU64 = AtomicU64::new(0);
static NANOSECONDS: AtomicU64 = AtomicU64::new(0);
static LONGEST: AtomicU64 = AtomicU64::new(0);
static ONCE: AtomicU64 = AtomicU64::new(0);
static BYTES: AtomicU64 = AtomicU64::new(0);
static REJECTED: AtomicU64 = AtomicU64::new(0);
static REFUSED: OnceLock<String> = OnceLock::new();

/// Cost of compiling in this process.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Spent {
    /// Number of times that a program was examined for compiling. The number includes examinations after which no part
    /// of the program was worth compiling.
    pub programs: u64,
    /// Total time of all examinations, including the time for compiling.
    pub time: Duration,
    /// Time for preparing code that a process needs once, before the process compiles its first program ([`once`]).
    pub once: Duration,
    /// Bytes of code that was generated for the programs.
    pub bytes: u64,
    /// Number of programs whose code the verifier rejected. The fast engine runs a rejected program without compiled
    /// code.
    pub rejected: u64,
}

impl Spent {
    /// Returns this cost minus `before`, an earlier result of [`spent`].
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

/// Returns the cost of compiling in this process so far.
pub fn spent() -> Spent {
    Spent {
        programs: PROGRAMS.load(Relaxed),
        time: Duration::from_nanos(NANOSECONDS.load(Relaxed)),
        once: Duration::from_nanos(ONCE.load(Relaxed)),
        bytes: BYTES.load(Relaxed),
        rejected: REJECTED.load(Relaxed),
    }
}

/// Returns the longest time that this process has taken to compile a single program.
pub fn longest() -> Duration {
    Duration::from_nanos(LONGEST.load(Relaxed))
}

/// Returns the first reason why this process ran the fast engine instead of the compiled engine. Returns `None` if the
/// fast engine never replaced the compiled engine.
pub fn refusal() -> Option<&'static str> {
    REFUSED.get().map(String::as_str)
}

/// Records why the fast engine runs instead of the compiled engine.
pub fn refuse(why: impl Display) {
    REFUSED.get_or_init(|| why.to_string());
}

/// Returns whether the verifier of host code accepts a program. If the verifier rejects the program, this function
/// counts the rejection and records the reason.
pub fn accepts(verified: Result<(), impl Display>) -> bool {
    if let Err(error) = &verified {
        REJECTED.fetch_add(1, Relaxed);
        refuse(format_args!("the verifier rejects the code of a program: {error}"));
    }
    verified.is_ok()
}

/// Prepares code that a process needs only once. The process calls this function each time before it compiles a
/// program. The first call runs `make`. Later calls do nothing. The time of the preparation counts as [`Spent::once`],
/// not as time for compiling the program.
pub fn once(make: impl FnOnce()) {
    static MADE: Once = Once::new();
    MADE.call_once(|| {
        let start = Instant::now();
        make();
        ONCE.store(start.elapsed().as_nanos() as u64, Relaxed);
    });
}

/// Compiles a program of `instructions` instructions for a level of vector instructions. `make` returns the compiled
/// program and the size of the compiled program in bytes. `make` returns `None` if compiling does not pay off for any
/// part of the program. If the program cannot be compiled, `compile` returns `None`, and [`refusal`] returns the
/// reason.
pub fn compile<T, E: Display>(
    level: Level,
    instructions: usize,
    make: impl FnOnce() -> Result<Option<(T, usize)>, E>,
) -> Option<Arc<T>> {
    if level.kind() < Kind::Avx2 {
        refuse(format_args!("compiled code requires level avx2, found {}", level.name()));
        return None;
    }
    if instructions > MOST_INSTRUCTIONS {
        refuse(format_args!(
            "a program has {instructions} instructions, but at most {MOST_INSTRUCTIONS} can be compiled"
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
    fn blocks_of_loops_are_chosen_first_and_others_as_far_as_there_is_room() {
        // The third of four blocks is a loop.
        let chosen = |extent: Extent, size: u32| extent.chosen(&[size; 4], |number| number == 2);
        assert_eq!(chosen(Extent::Worth, 1), [true; 4]);
        assert_eq!(chosen(Extent::Loops, 1), [false, false, true, false]);
        let half = chosen(Extent::Worth, MOST_COMPILED / 2);
        assert_eq!(half, [true, false, true, false], "what is too much is left out");
        assert_eq!(chosen(Extent::Throughout, MOST_COMPILED), [true; 4]);
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
