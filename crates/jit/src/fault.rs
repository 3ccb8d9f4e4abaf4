//! Converts memory faults of generated code to errors. A fault is a defect of the code generator, but the process
//! continues after the fault.
//!
//! ```text
//! call --> enter: saves registers --> code --> ret ----> enter: restores registers --> Ok
//!                                      | SIGSEGV, SIGBUS          ^ also MXCSR
//!                                      +--> handler ---------------> Err
//! ```
//! The process has one handler for all faults. If the instruction pointer is in [`Watched`] code and the thread is in
//! [`call`], the handler makes [`call`] continue at the instructions that restore the registers. The handler passes any
//! other fault to the previous handler. Without a previous handler, the fault ends the process. The functions that
//! generated code calls are not watched.
//!
//! The handler exists only on Linux on x86-64. On other targets, [`call`] is a plain call.

// The signal handler abandons a stack frame. A comment at each unsafe block states why abandoning the frame is sound.
#![allow(unsafe_code)]

#[cfg(debug_assertions)]
use std::sync::LazyLock;

use crate::called::convention;
use crate::state::State;

/// A memory fault of generated code.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Fault {
    /// The accessed address, according to the system.
    pub(crate) address: usize,
    /// Address of the instruction that made the access.
    pub(crate) instruction: usize,
}

/// The function that [`call`] calls.
pub(crate) type Entry = convention!(fn(*mut State) -> u32);

#[cfg(all(target_os = "linux", target_arch = "x86_64"))]
pub(crate) use linux::{Watched, call, install};
#[cfg(not(all(target_os = "linux", target_arch = "x86_64")))]
pub(crate) use other::{Watched, call, install};

/// Returns `rows`. For tests of errors after a fault, a build with debug assertions returns an inaccessible address if
/// `RECONVERGE_FAULT` is set.
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
    /// The caller must meet the requirements of the called code.
    #[inline(always)]
    pub(crate) unsafe fn call(code: Entry, state: *mut State) -> Result<u32, Fault> {
        // SAFETY: guaranteed by the caller.
        Ok(unsafe { code(state) })
    }
}

#[cfg(all(target_os = "linux", target_arch = "x86_64"))]
mod linux;
