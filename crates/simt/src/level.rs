//! The instruction sets of the host's processor, and code that is compiled once for each instruction set.
//!
//! An engine defines each operation on whole rows once, as a loop over lanes. The compiler vectorizes this loop. The
//! code is generic over a level `W:` [`Wide`] and marked `#[inline(always)]`. This module instantiates the code in
//! functions with `#[target_feature]`, one function per level. [`Level::run`] instantiates a [`Task`], and
//! [`handlers!`](crate::handlers) instantiates the operations of a lowered program. A value of type `W` is a token. A
//! token exists only if code for its level may run, so the functions of [`Wide`] are safe. Results are the same on
//! every level.

// Functions that are compiled for a level are unsafe to call. A comment at each call states why the processor has the
// level.
#![allow(unsafe_code)]

#[cfg(target_arch = "x86_64")]
use crate::wide::Avx2;
#[cfg(all(feature = "every-level", target_arch = "x86_64"))]
use crate::wide::Avx512;
#[cfg(any(feature = "every-level", not(target_arch = "x86_64")))]
use crate::wide::Baseline;
use crate::wide::Wide;

pub use crate::wide::{Kind, Task};

/// An instruction set extension that the host's processor has. Only this module creates values of this type, and only
/// after a check of the processor. So the processor can run code that is compiled for a `Level`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Level(Kind);

impl Level {
    /// The instructions that every processor of the target has.
    pub const BASELINE: Level = Level(Kind::Baseline);

    /// The names of all levels, lowest first. The list includes levels that this processor or this build does not have.
    pub const NAMES: [&'static str; 3] = [Kind::Baseline.name(), Kind::Avx2.name(), Kind::Avx512.name()];

    /// Returns the levels that this processor and this build have, lowest first.
    pub fn available() -> Vec<Level> {
        Kind::ALL.into_iter().filter(|kind| is_built(*kind) && has(*kind)).map(Level).collect()
    }

    /// Returns the highest level that both this processor and this build have. If there is no such level
    /// ([`Level::any`]), returns the baseline.
    pub fn best() -> Level {
        let best = Kind::ALL.into_iter().rfind(|kind| is_built(*kind) && has(*kind));
        best.map_or(Level::BASELINE, Level)
    }

    /// Returns the level with a name, if this processor and this build have the level.
    pub fn from_name(name: &str) -> Option<Level> {
        Level::available().into_iter().find(|level| level.name() == name)
    }

    /// Returns the level of a token.
    pub fn of<W: Wide>(_: W) -> Level {
        Level(W::KIND)
    }

    /// Returns the kind of the level.
    pub const fn kind(self) -> Kind {
        self.0
    }

    /// Returns the name of the level: `baseline`, `avx2`, `avx512`.
    pub const fn name(self) -> &'static str {
        self.0.name()
    }

    /// Runs a task in code that is compiled for the level.
    ///
    /// ```
    /// use reconverge_simt::level::{Level, Task};
    /// use reconverge_simt::wide::Wide;
    ///
    /// struct Negative<'a>(&'a [u32; 16]);
    ///
    /// impl Task for Negative<'_> {
    ///     type Output = u64;
    ///     #[inline(always)]
    ///     fn run<W: Wide>(self, wide: W) -> u64 {
    ///         wide.signs(self.0)
    ///     }
    /// }
    ///
    /// let mut words = [0; 16];
    /// words[3] = u32::MAX;
    /// for level in Level::available() {
    ///     assert_eq!(level.run(Negative(&words)), 0b1000);
    /// }
    /// ```
    #[inline(always)]
    pub fn run<T: Task>(self, task: T) -> T::Output {
        crate::by_level!(
            self,
            Baseline.call(task),
            // SAFETY: this `Level` exists only on a processor with AVX2.
            unsafe { Avx2::assume() }.call(task),
            // SAFETY: this `Level` exists only on a processor with AVX-512.
            unsafe { Avx512::assume() }.call(task)
        )
    }

    /// Returns whether this build has code for any level of this processor. Without the feature `every-level`, a build
    /// for x86-64 has code for AVX2 only.
    ///
    /// ```
    /// assert!(cfg!(not(feature = "every-level")) || reconverge_simt::Level::any());
    /// ```
    pub fn any() -> bool {
        Kind::ALL.into_iter().any(|kind| is_built(kind) && has(kind))
    }
}

/// Returns whether this build can run a kind of level. Without the feature `every-level`, rows of [`Kind::Avx512`] are
/// computed by the code for [`Kind::Avx2`]. Code that is generated at run time uses AVX-512 in every build.
const fn is_built(kind: Kind) -> bool {
    match kind {
        Kind::Avx2 | Kind::Avx512 => cfg!(target_arch = "x86_64"),
        Kind::Baseline => cfg!(any(feature = "every-level", not(target_arch = "x86_64"))),
    }
}

/// Panics, because this build does not have code for the level. [`Options::engine`](crate::Options::engine) never
/// selects an engine that would use a level without code.
#[cold]
pub fn not_built(level: Level) -> ! {
    panic!("this build has no code for level {}; build with the feature every-level", level.name())
}

#[cfg(target_arch = "x86_64")]
fn has(kind: Kind) -> bool {
    let avx2 = || {
        is_x86_feature_detected!("avx2")
            && is_x86_feature_detected!("fma")
            && is_x86_feature_detected!("bmi1")
            && is_x86_feature_detected!("bmi2")
            && is_x86_feature_detected!("popcnt")
            && is_x86_feature_detected!("lzcnt")
    };
    match kind {
        Kind::Baseline => true,
        Kind::Avx2 => avx2(),
        Kind::Avx512 => {
            avx2()
                && is_x86_feature_detected!("avx512f")
                && is_x86_feature_detected!("avx512bw")
                && is_x86_feature_detected!("avx512cd")
                && is_x86_feature_detected!("avx512dq")
                && is_x86_feature_detected!("avx512vl")
        }
    }
}

#[cfg(not(target_arch = "x86_64"))]
fn has(kind: Kind) -> bool {
    matches!(kind, Kind::Baseline)
}

/// Compiles one function for [`Kind::Baseline`], if the build has that level.
#[cfg(any(feature = "every-level", not(target_arch = "x86_64")))]
#[macro_export]
macro_rules! for_baseline {
    ($($function:tt)*) => { $($function)* };
}

/// Stub that compiles nothing, because this build does not have [`Kind::Baseline`].
#[cfg(not(any(feature = "every-level", not(target_arch = "x86_64"))))]
#[macro_export]
macro_rules! for_baseline {
    ($($function:tt)*) => {};
}

/// Compiles one function for [`Kind::Avx2`]. The function is unsafe to call, because the processor must have the level.
///
/// The macro enables the features for which [`Level`] checks the processor. No other macro except
/// [`for_avx512`](crate::for_avx512) enables features.
#[macro_export]
macro_rules! for_avx2 {
    ($($function:tt)*) => {
        #[cfg(target_arch = "x86_64")]
        #[target_feature(enable = "avx2,fma,bmi1,bmi2,popcnt,lzcnt")]
        $($function)*
    };
}

/// Compiles one function for [`Kind::Avx512`], if the build has that level. See [`for_avx2`](crate::for_avx2).
#[cfg(all(feature = "every-level", target_arch = "x86_64"))]
#[macro_export]
macro_rules! for_avx512 {
    ($($function:tt)*) => {
        #[target_feature(enable = "avx2,fma,bmi1,bmi2,popcnt,lzcnt,avx512f,avx512bw,avx512cd,avx512dq,avx512vl")]
        $($function)*
    };
}

/// Stub that compiles nothing, because this build does not have [`Kind::Avx512`].
#[cfg(not(all(feature = "every-level", target_arch = "x86_64")))]
#[macro_export]
macro_rules! for_avx512 {
    ($($function:tt)*) => {};
}

/// Evaluates one of three expressions, for the level baseline, AVX2 or AVX-512. If the build does not have a level, the
/// expression of that level is not compiled.
#[cfg(all(feature = "every-level", target_arch = "x86_64"))]
#[macro_export]
macro_rules! by_level {
    ($level:expr, $baseline:expr, $avx2:expr, $avx512:expr) => {
        match $level.kind() {
            $crate::level::Kind::Baseline => $baseline,
            $crate::level::Kind::Avx2 => $avx2,
            $crate::level::Kind::Avx512 => $avx512,
        }
    };
}

/// Evaluates one of three expressions, depending on the level: baseline, AVX2 or AVX-512. This build compiles only the
/// expression for AVX2. The macro also evaluates this expression for AVX-512, because every processor with AVX-512 has
/// AVX2.
#[cfg(all(not(feature = "every-level"), target_arch = "x86_64"))]
#[macro_export]
macro_rules! by_level {
    ($level:expr, $baseline:expr, $avx2:expr, $avx512:expr) => {
        match $level.kind() {
            $crate::level::Kind::Avx2 | $crate::level::Kind::Avx512 => $avx2,
            $crate::level::Kind::Baseline => $crate::level::not_built($level),
        }
    };
}

/// Evaluates one of three expressions, for the level baseline, AVX2 or AVX-512. This build compiles only the expression
/// for the baseline.
#[cfg(not(target_arch = "x86_64"))]
#[macro_export]
macro_rules! by_level {
    ($level:expr, $baseline:expr, $avx2:expr, $avx512:expr) => {
        match $level.kind() {
            $crate::level::Kind::Baseline => $baseline,
            $crate::level::Kind::Avx2 | $crate::level::Kind::Avx512 => $crate::level::not_built($level),
        }
    };
}

/// Defines a function that takes a level and returns a pointer to code. A type parameter of the function selects a
/// `Body`. The pointer refers to the code of this `Body`, compiled for the level.
///
/// `Body` is a trait with `fn run<W: Wide>(wide: W, lanes: &mut Lanes, operation: &Operation)`. The implementations of
/// `Body` are marked `#[inline(always)]`. `Handler` is the type `unsafe fn(&mut Lanes, &Operation)`. Calling a handler
/// is sound if the processor has the handler's level.
///
/// ```
/// use reconverge_simt::handlers;
/// use reconverge_simt::level::Level;
/// use reconverge_simt::wide::Wide;
///
/// trait Body {
///     fn run<W: Wide>(wide: W, row: &mut [u32; 16], addend: &u32);
/// }
/// type Handler = unsafe fn(&mut [u32; 16], &u32);
///
/// handlers!(fn handler<Body>(&mut [u32; 16], &u32) -> Handler);
///
/// struct Add;
/// impl Body for Add {
///     #[inline(always)]
///     fn run<W: Wide>(_: W, row: &mut [u32; 16], addend: &u32) {
///         row.iter_mut().for_each(|word| *word += addend);
///     }
/// }
///
/// let mut row = [1; 16];
/// let add = handler::<Add>(Level::best());
/// // SAFETY: the processor has its best level.
/// unsafe { add(&mut row, &2) };
/// assert_eq!(row, [3; 16]);
/// ```
#[macro_export]
macro_rules! handlers {
    ($vis:vis fn $handler:ident<$Body:ident>(&mut $Lanes:ty, &$Operation:ty) -> $Handler:ident) => {
        /// Returns a pointer to the code of the body `B`. This code is compiled for `level`.
        $vis fn $handler<B: $Body>(level: $crate::Level) -> $Handler {
            $crate::for_baseline! {
                unsafe fn baseline<B: $Body>(lanes: &mut $Lanes, operation: &$Operation) {
                    B::run($crate::wide::Baseline, lanes, operation);
                }
            }
            $crate::for_avx2! {
                unsafe fn avx2<B: $Body>(lanes: &mut $Lanes, operation: &$Operation) {
                    // SAFETY: the engine calls this handler only on a processor with AVX2.
                    B::run(unsafe { <$crate::wide::Avx2 as $crate::wide::Wide>::assume() }, lanes, operation);
                }
            }
            $crate::for_avx512! {
                unsafe fn avx512<B: $Body>(lanes: &mut $Lanes, operation: &$Operation) {
                    // SAFETY: the engine calls this handler only on a processor with AVX-512.
                    B::run(unsafe { <$crate::wide::Avx512 as $crate::wide::Wide>::assume() }, lanes, operation);
                }
            }
            $crate::by_level!(level, baseline::<B>, avx2::<B>, avx512::<B>)
        }
    };
}
