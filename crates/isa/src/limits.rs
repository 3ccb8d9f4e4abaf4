//! Limits on the host resources that input may request, in one table.
//!
//! A launch file, a container or a listing may come from anywhere. A few bytes of an untrusted file can request any
//! amount of memory and time. Each [`Limit`] applies to the whole process. The default of a limit is far above the
//! needs of real programs, and [`Limit::set`] changes the limit. A request above a limit is an error ([`Exceeded`]).
//! The error names the limit, the value of the limit and the option that raises the limit. [`room`] tests whether the
//! host can provide an allocation whose size comes from input. If the host cannot provide the allocation, that is also
//! an error.
//!
//! Limits of the hardware are not in this module. Each machine defines the limits of its hardware.
//!
//! ```
//! use reconverge_isa::limits::LANES;
//!
//! assert_eq!(LANES.check(1 << 20), Ok(()));
//! let error = LANES.check(1 << 40).unwrap_err();
//! assert_eq!(
//!     error.to_string(),
//!     "1099511627776 lanes exceed the limit `lanes` (16777216); --limits lanes=N allows more"
//! );
//! ```

use std::fmt;
use std::sync::atomic::{AtomicU64, Ordering};

/// A limit of the process.
#[derive(Debug)]
pub struct Limit {
    /// Name in messages and on the command line.
    pub name: &'static str,
    /// Unit of the limit's value, in the plural.
    pub unit: &'static str,
    /// Description of the resource that is limited.
    pub about: &'static str,
    /// Default value.
    pub default: u64,
    /// Largest value that can be set.
    pub most: u64,
    /// The option that raises the limit. In a message, the text is followed by "allows more".
    pub raise: &'static str,
    /// Value that was set. 0 means that the default applies.
    set: AtomicU64,
}

/// Maximum number of instructions that a group (on Tesla, a block) issues. The watchdog then stops the group.
pub static INSTRUCTIONS: Limit = Limit {
    name: "instructions",
    unit: "instructions",
    about: "instructions that a group (Tesla: a block) issues before the watchdog stops it",
    default: 1 << 28,
    most: u64::MAX,
    raise: "--watchdog N, or watchdog = N in a launch file,",
    set: AtomicU64::new(0),
};

/// Maximum number of lanes of a launch. The default allows one lane for each of 4096 x 4096 pixels.
pub static LANES: Limit = Limit {
    name: "lanes",
    unit: "lanes",
    about: "lanes of a launch (a Tesla kernel may have any number of blocks, because they run one after another)",
    default: 1 << 24,
    most: 1 << 30,
    raise: "--limits lanes=N",
    set: AtomicU64::new(0),
};

/// Maximum size in bytes. The limit applies to each array, to each buffer, and to the results of a launch.
pub static MEMORY: Limit = Limit {
    name: "memory",
    unit: "bytes",
    about: "bytes of an array, a buffer, and the results of a launch",
    default: 1 << 32,
    most: 1 << 48,
    raise: "--limits memory=N",
    set: AtomicU64::new(0),
};

/// Maximum size of a trace in bytes. Later events are counted but not recorded.
pub static TRACE: Limit = Limit {
    name: "trace",
    unit: "bytes",
    about: "bytes of a trace; later events are counted but not recorded",
    default: 1 << 30,
    most: u64::MAX,
    raise: "--limit BYTES",
    set: AtomicU64::new(0),
};

/// Maximum depth of nested control-flow constructs, for lint rules and structured listings.
pub static NESTING: Limit = Limit {
    name: "nesting",
    unit: "nested constructs",
    about: "nested constructs of control flow, for lint, for listings with --structure and for counts",
    default: 1 << 10,
    most: 1 << 20,
    raise: "--limits nesting=N",
    set: AtomicU64::new(0),
};

/// Maximum size in bytes of a program, a launch file or a file of cases. The limit applies both before and after
/// decompression. For files of numbers, [`MEMORY`] is the limit.
pub static FILE: Limit = Limit {
    name: "file",
    unit: "bytes",
    about: "bytes of a program, a launch file or a file of cases, before and after decompression",
    default: 1 << 30,
    most: 1 << 48,
    raise: "--limits file=N",
    set: AtomicU64::new(0),
};

/// Maximum number of bytes or lines in a source text after the expansion of macros and repetitions.
pub static EXPANSION: Limit = Limit {
    name: "expansion",
    unit: "bytes and lines",
    about: "bytes and lines of a source with its macros and repetitions expanded",
    default: 1 << 24,
    most: 1 << 48,
    raise: "--limits expansion=N",
    set: AtomicU64::new(0),
};

/// All limits.
pub static ALL: [&Limit; 7] = [&INSTRUCTIONS, &LANES, &MEMORY, &TRACE, &NESTING, &FILE, &EXPANSION];

impl Limit {
    /// Returns the limit with a name.
    pub fn from_name(name: &str) -> Option<&'static Limit> {
        ALL.into_iter().find(|limit| limit.name == name)
    }

    /// Returns the value of the limit.
    pub fn get(&self) -> u64 {
        match self.set.load(Ordering::Relaxed) {
            0 => self.default,
            set => set,
        }
    }

    /// Returns the value of the limit as a `usize`.
    pub fn size(&self) -> usize {
        usize::try_from(self.get()).unwrap_or(usize::MAX)
    }

    /// Sets the limit for the process.
    ///
    /// # Errors
    /// Returns [`Limit::most`] if the value is 0 or larger than [`Limit::most`]. In both cases, the limit is unchanged.
    pub fn set(&self, value: u64) -> Result<(), u64> {
        if value == 0 || value > self.most {
            return Err(self.most);
        }
        self.set.store(value, Ordering::Relaxed);
        Ok(())
    }

    /// Checks that the limit allows `asked` units.
    ///
    /// # Errors
    /// Returns [`Exceeded`] if `asked` is above the limit.
    pub fn check(&'static self, asked: u64) -> Result<(), Exceeded> {
        if asked <= self.get() { Ok(()) } else { Err(Exceeded { limit: self, asked: Some(asked) }) }
    }

    /// Returns the error for input that exceeds the limit by an unknown amount.
    pub fn exceeded(&'static self) -> Exceeded {
        Exceeded { limit: self, asked: None }
    }

    /// Returns the end of a message: the way to raise the limit.
    pub fn remedy(&self) -> impl fmt::Display {
        format!("{} allows more", self.raise)
    }
}

/// A request above a limit.
#[derive(Clone, Copy, Debug)]
pub struct Exceeded {
    /// The limit.
    pub limit: &'static Limit,
    /// Requested amount, if known.
    pub asked: Option<u64>,
}

impl PartialEq for Exceeded {
    fn eq(&self, other: &Exceeded) -> bool {
        (self.limit.name, self.asked) == (other.limit.name, other.asked)
    }
}

impl Eq for Exceeded {}

impl fmt::Display for Exceeded {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Exceeded { limit, asked } = self;
        let (name, unit, value) = (limit.name, limit.unit, limit.get());
        match asked {
            Some(asked) => write!(f, "{asked} {unit} exceed the limit `{name}` ({value})")?,
            None => write!(f, "there are more {unit} than the limit `{name}` ({value}) allows")?,
        }
        write!(f, "; {}", limit.remedy())
    }
}

impl std::error::Error for Exceeded {}

/// Reason why memory cannot be allocated.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum NoRoom {
    /// The requested bytes are more than [`MEMORY`] allows.
    #[error(transparent)]
    Limit(Exceeded),
    /// The host cannot provide this number of bytes.
    #[error("no memory: {0} bytes cannot be allocated")]
    Host(u64),
}

/// Checks that [`MEMORY`] allows `bytes` bytes. Also checks that the host can now provide `times * bytes` bytes. A
/// factor above 1 accounts for copies, because a launch copies and converts its input.
///
/// Call this function before an allocation whose size comes from input. Without the call, a failed allocation ends the
/// process. The function allocates all bytes as one block and frees the block. The host provides no memory for pages
/// that are not accessed, so the test is cheap.
///
/// # Errors
/// Returns the reason why the memory cannot be allocated ([`NoRoom`]).
pub fn room(bytes: u64, times: u64) -> Result<(), NoRoom> {
    MEMORY.check(bytes).map_err(NoRoom::Limit)?;
    host_room(bytes.saturating_mul(times))
}

/// Like [`room`], checks with a test allocation that the host can now provide `bytes` bytes.
///
/// # Errors
/// Returns [`NoRoom::Host`] if the host cannot provide the bytes.
pub fn host_room(bytes: u64) -> Result<(), NoRoom> {
    /// Requests of fewer than this number of bytes are not tested.
    const SMALL: u64 = 1 << 24;
    if bytes < SMALL {
        return Ok(());
    }
    let size = usize::try_from(bytes).map_err(|_| NoRoom::Host(bytes))?;
    let mut trial = Vec::<u8>::new();
    let tried = trial.try_reserve_exact(size);
    // `black_box` prevents the compiler from removing this unused allocation.
    std::hint::black_box(&trial);
    tried.map_err(|_| NoRoom::Host(bytes))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_limit_is_found_by_its_name_and_says_how_it_is_raised() {
        for limit in ALL {
            assert_eq!(Limit::from_name(limit.name).map(|found| found.name), Some(limit.name));
            assert!(limit.default <= limit.most, "{}", limit.name);
            let message = limit.exceeded().to_string();
            for part in [limit.name, &limit.default.to_string(), limit.raise] {
                assert!(message.contains(part), "{message}");
            }
        }
        assert!(Limit::from_name("nothing").is_none());
    }

    #[test]
    fn a_limit_is_set_within_its_bounds_and_counts_what_is_equal_as_allowed() {
        static ROOMS: Limit = Limit {
            name: "rooms",
            unit: "rooms",
            about: "rooms of a house",
            default: 3,
            most: 9,
            raise: "nothing",
            set: AtomicU64::new(0),
        };
        assert_eq!((ROOMS.set(0), ROOMS.set(10), ROOMS.get()), (Err(9), Err(9), 3));
        assert_eq!(ROOMS.set(7), Ok(()));
        assert_eq!((ROOMS.get(), ROOMS.check(7)), (7, Ok(())));
        assert_eq!(ROOMS.check(8).map_err(|error| error.asked), Err(Some(8)));
    }

    #[test]
    fn bytes_that_the_host_cannot_have_are_an_error() {
        assert_eq!(room(1 << 20, 4), Ok(()));
        assert!(matches!(room(MEMORY.get() + 1, 1), Err(NoRoom::Limit(_))));
        assert_eq!(room(1 << 20, u64::MAX), Err(NoRoom::Host(u64::MAX)));
    }
}
