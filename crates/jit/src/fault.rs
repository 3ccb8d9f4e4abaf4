//! Memory faults of generated code, as values. Such a fault is a mistake in the code, but the process continues.
//!
//! ```text
//! call --> enter: saves registers --> code --> ret ----> enter: restores registers --> Ok
//!                                      | SIGSEGV, SIGBUS          ^ also MXCSR
//!                                      +--> handler ---------------> Err
//! ```
//! The process has one handler for all faults. If the instruction pointer is in [`Watched`] code and its thread is in
//! [`call`], the handler continues that call at the point that restores registers. All other faults go to the
//! previous handler, or end the process as they would without this one. A function that code calls is not such code.
//!
//! The handler exists only for Linux on x86-64. On other targets [`call`] is a plain call.

// A signal handler that abandons a stack: each block states why that is sound.
#![allow(unsafe_code)]

#[cfg(debug_assertions)]
use std::sync::LazyLock;

use crate::called::convention;
use crate::state::State;

/// A memory fault of generated code.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Fault {
    /// The address that the code accessed, as the system reports it.
    pub(crate) address: usize,
    /// The instruction that accessed it.
    pub(crate) instruction: usize,
}

/// The function that [`call`] calls.
pub(crate) type Entry = convention!(fn(*mut State) -> u32);

#[cfg(all(target_os = "linux", target_arch = "x86_64"))]
pub(crate) use linux::{Watched, call, install};
#[cfg(not(all(target_os = "linux", target_arch = "x86_64")))]
pub(crate) use other::{Watched, call, install};

/// Returns the rows. In a build with debug assertions, returns an address that cannot be accessed if
/// `RECONVERGE_FAULT` is set, to test the errors that follow from a fault.
#[inline(always)]
pub(crate) fn rows(rows: *mut u8) -> *mut u8 {
    #[cfg(debug_assertions)]
    {
        static FAULTS: LazyLock<bool> = LazyLock::new(|| std::env::var_os("RECONVERGE_FAULT").is_some());
        if *FAULTS {
            return std::ptr::without_provenance_mut(64);
        }
    }
    rows
}

#[cfg(not(all(target_os = "linux", target_arch = "x86_64")))]
mod other {
    use super::*;

    pub(crate) fn install() {}

    #[derive(Debug)]
    pub(crate) struct Watched;

    impl Watched {
        pub(crate) fn new(_: &[u8]) -> Watched {
            Watched
        }
    }

    /// # Safety
    /// As for the code.
    #[inline(always)]
    pub(crate) unsafe fn call(code: Entry, state: *mut State) -> Result<u32, Fault> {
        // SAFETY: guaranteed by the caller.
        Ok(unsafe { code(state) })
    }
}

#[cfg(all(target_os = "linux", target_arch = "x86_64"))]
mod linux;
