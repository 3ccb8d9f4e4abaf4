//! The state of standard output at the start of the process.
//!
//! If a standard stream is closed at the start of the process, Rust's runtime opens `/dev/null` instead of the stream.
//! Writing to the stream then succeeds. A caller can also redirect the stream to `/dev/null`, for example with Python's
//! `subprocess.DEVNULL`. A closed stream and a redirected stream have equal flags of descriptor 1. So the flags do not
//! show that the stream was closed. Therefore this module registers a function that the loader calls before `main`. The
//! function checks the descriptor before the runtime changes the descriptor.

use std::sync::atomic::{AtomicBool, Ordering};

static WAS_CLOSED: AtomicBool = AtomicBool::new(false);

/// Returns whether descriptor 1 was closed at the start of the process.
///
/// On systems other than Linux and macOS, the result is always `false`.
pub fn standard_output_was_closed() -> bool {
    WAS_CLOSED.load(Ordering::Relaxed)
}

#[cfg(any(target_os = "linux", target_os = "macos"))]
#[expect(unsafe_code, reason = "a call of the C library, and the section of a static")]
mod early {
    use super::{Ordering, WAS_CLOSED};

    extern "C" fn look() {
        // SAFETY: F_GETFD only reads the flags of a descriptor. The call fails if the descriptor is not open.
        let flags = unsafe { libc::fcntl(1, libc::F_GETFD) };
        WAS_CLOSED.store(flags == -1, Ordering::Relaxed);
    }

    // SAFETY: before `main`, the loader calls each pointer in this section once, as a C function. `look` does not need
    // Rust's runtime. `look` only calls a C function and stores to an atomic. The C library passes arguments to `look`.
    // A C function without parameters ignores arguments.
    #[used]
    #[cfg_attr(target_os = "linux", unsafe(link_section = ".init_array"))]
    #[cfg_attr(target_os = "macos", unsafe(link_section = "__DATA,__mod_init_func"))]
    static LOOK: extern "C" fn() = look;
}
