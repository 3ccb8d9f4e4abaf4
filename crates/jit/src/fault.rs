//! Memory faults of generated code, as values. Such a fault is a mistake in the code, but the process continues.
//!
//! ```text
//! call --> enter: saves registers --> code --> ret ----> enter: restores registers --> Ok
//!                                      | SIGSEGV, SIGBUS          ^ also MXCSR
//!                                      +--> handler ---------------> Err
//! ```
//! A handler of the process gets all faults. If the instruction pointer is in a [`Region`] and its thread is in [`call`], the
//! handler continues that call where it restores registers. All other faults go to the handler that was there before, or end
//! the process as they would without this one. A function that code calls is not in a region.
//!
//! Linux on x86-64 only: elsewhere [`call`] only calls.

// A handler of signals, and a stack that is left: each place states why that is sound.
#![allow(unsafe_code)]

#[cfg(debug_assertions)]
use std::sync::LazyLock;

use crate::called::convention;
use crate::state::State;

/// A memory fault of generated code.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Fault {
    /// The address that the code accessed, as the system reports it.
    pub address: usize,
    /// The instruction that accessed it.
    pub instruction: usize,
}

/// What [`call`] calls.
pub(crate) type Entry = convention!(fn(*mut State) -> u32);

#[cfg(all(target_os = "linux", target_arch = "x86_64"))]
pub(crate) use linux::{Region, call, install};
#[cfg(not(all(target_os = "linux", target_arch = "x86_64")))]
pub(crate) use other::{Region, call, install};

/// Returns the rows, or in a build with debug assertions an address that cannot be accessed, if `RECONVERGE_FAULT` is set: for
/// tests of the errors that follow from a fault.
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
    pub(crate) struct Region;

    impl Region {
        pub(crate) fn new(_: &[u8]) -> Region {
            Region
        }
    }

    /// # Safety
    /// As for the code.
    #[inline(always)]
    pub(crate) unsafe fn call(code: Entry, state: *mut State) -> Result<u32, Fault> {
        // SAFETY: as the caller says.
        Ok(unsafe { code(state) })
    }
}

#[cfg(all(target_os = "linux", target_arch = "x86_64"))]
mod linux;
