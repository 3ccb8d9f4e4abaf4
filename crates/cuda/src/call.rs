//! The way into the library: every exported function passes through [`enter`].

use std::cell::Cell;
use std::collections::HashMap;
use std::ffi::{CStr, CString, c_char, c_int};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Mutex;

use crate::handles::lock;
use crate::messages::say;
use crate::status::{CallResult, CudaError};

thread_local! {
    /// Whether the null stream of the call that runs means the stream of this thread. (`_ptds`, `_ptsz`)
    static PER_THREAD: Cell<bool> = const { Cell::new(false) };
    /// Whether this thread runs a function of the program in a stream.
    static IN_HOST_FUNCTION: Cell<bool> = const { Cell::new(false) };
}

/// Runs the body of an exported function and returns its result's number. A panic does not leave the library.
pub(crate) fn enter(symbol: &str, per_thread: bool, body: impl FnOnce() -> CallResult) -> u32 {
    let before = PER_THREAD.replace(per_thread);
    let answer = catch_unwind(AssertUnwindSafe(body));
    PER_THREAD.set(before);
    match answer {
        Ok(Ok(())) => 0,
        Ok(Err(error)) => error.0,
        Err(_) => {
            say(&format!("{symbol}: a defect of this library; the call returns CUDA_ERROR_UNKNOWN"));
            CudaError::UNKNOWN.0
        }
    }
}

/// Whether the null stream means the stream of this thread.
pub(crate) fn per_thread() -> bool {
    PER_THREAD.get()
}

/// Whether this thread is in a function of the program that a stream runs.
pub(crate) fn in_host_function() -> bool {
    IN_HOST_FUNCTION.get()
}

/// Runs a function of the program that must not call CUDA.
pub(crate) fn as_host_function(function: impl FnOnce()) {
    let before = IN_HOST_FUNCTION.replace(true);
    function();
    IN_HOST_FUNCTION.set(before);
}

/// Stores a result.
///
/// # Errors
/// The address is null.
///
/// # Safety
/// The address is null or that of a `T`.
pub(crate) unsafe fn give<T>(to: *mut T, value: T) -> CallResult {
    if to.is_null() {
        return Err(CudaError::INVALID_VALUE);
    }
    // SAFETY: as above; programs need not align it.
    unsafe { to.write_unaligned(value) };
    Ok(())
}

/// Stores a result unless the address is null.
///
/// # Safety
/// The address is null or that of a `T`.
pub(crate) unsafe fn offer<T>(to: *mut T, value: T) {
    if !to.is_null() {
        // SAFETY: as above.
        unsafe { to.write_unaligned(value) };
    }
}

/// The text at an address.
///
/// # Safety
/// The address is null or that of a text that ends with a zero byte.
pub(crate) unsafe fn text<'a>(at: *const c_char) -> Result<&'a str, CudaError> {
    if at.is_null() {
        return Err(CudaError::INVALID_VALUE);
    }
    // SAFETY: as above.
    unsafe { CStr::from_ptr(at) }.to_str().map_err(|_| CudaError::NOT_FOUND)
}

/// Copies a text with its zero byte into a buffer of `room` bytes, cut if it is too long.
///
/// # Safety
/// The address is null or that of `room` bytes.
pub(crate) unsafe fn give_text(to: *mut c_char, room: c_int, text: &str) -> CallResult {
    let room = usize::try_from(room).ok().filter(|room| *room > 0).ok_or(CudaError::INVALID_VALUE)?;
    if to.is_null() {
        return Err(CudaError::INVALID_VALUE);
    }
    let count = text.len().min(room - 1);
    // SAFETY: as above, and the text has as many bytes.
    unsafe {
        to.cast::<u8>().copy_from_nonoverlapping(text.as_ptr(), count);
        to.add(count).write(0);
    }
    Ok(())
}

/// A text for the program that lasts as long as the process.
pub(crate) fn lasting(name: &str) -> *const c_char {
    static NAMES: Mutex<Option<HashMap<String, CString>>> = Mutex::new(None);
    let mut names = lock(&NAMES);
    let kept = names.get_or_insert_default().entry(name.to_owned());
    kept.or_insert_with(|| CString::new(name).unwrap_or_default()).as_ptr()
}
