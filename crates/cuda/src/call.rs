//! Entry to the library. The body of every exported function runs inside [`enter`].

use std::cell::Cell;
use std::collections::HashMap;
use std::ffi::{CStr, CString, c_char, c_int};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Mutex;

use crate::handles::lock;
use crate::messages::say;
use crate::status::{CallResult, CudaError};

thread_local! {
    /// Whether the null stream is the default stream of this thread during the current call. The value is true in
    /// functions whose symbols end in `_ptds` or `_ptsz`.
    static PER_THREAD: Cell<bool> = const { Cell::new(false) };
    /// Whether this thread currently runs a host function that the program has enqueued in a stream.
    static IN_HOST_FUNCTION: Cell<bool> = const { Cell::new(false) };
}

/// Runs the body of an exported function and returns the result of the body as a number. A panic becomes
/// `CUDA_ERROR_UNKNOWN`, so that the panic does not unwind into the program.
pub(crate) fn enter(symbol: &str, per_thread: bool, body: impl FnOnce() -> CallResult) -> u32 {
    let before = PER_THREAD.replace(per_thread);
    let answer = catch_unwind(AssertUnwindSafe(body));
    PER_THREAD.set(before);
    match answer {
        Ok(Ok(())) => 0,
        Ok(Err(error)) => error.0,
        Err(_) => {
            say(&format!(
                "{symbol}: internal error, please report it; the function returns CUDA_ERROR_UNKNOWN to the program"
            ));
            CudaError::UNKNOWN.0
        }
    }
}

/// Whether the null stream is the default stream of this thread during the current call.
pub(crate) fn per_thread() -> bool {
    PER_THREAD.get()
}

/// Whether this thread currently runs a host function that the program has enqueued in a stream.
pub(crate) fn in_host_function() -> bool {
    IN_HOST_FUNCTION.get()
}

/// Runs a host function of the program. The host function must not call CUDA.
pub(crate) fn as_host_function(function: impl FnOnce()) {
    let before = IN_HOST_FUNCTION.replace(true);
    function();
    IN_HOST_FUNCTION.set(before);
}

/// Stores a result at an address of the program.
///
/// # Errors
/// Returns an error if the address is null.
///
/// # Safety
/// The address must be null or the address of a `T`.
pub(crate) unsafe fn give<T>(to: *mut T, value: T) -> CallResult {
    if to.is_null() {
        return Err(CudaError::INVALID_VALUE);
    }
    // SAFETY: the address is not null, so the caller has passed the address of a `T`. The program need not align the
    // address.
    unsafe { to.write_unaligned(value) };
    Ok(())
}

/// Stores a result at an address that the program has passed. Does nothing if the address is null.
///
/// # Safety
/// The address must be null or the address of a `T`.
pub(crate) unsafe fn offer<T>(to: *mut T, value: T) {
    if !to.is_null() {
        // SAFETY: the address is not null, so the caller has passed the address of a `T`. The program need not align
        // the address.
        unsafe { to.write_unaligned(value) };
    }
}

/// Returns the C string at an address.
///
/// # Safety
/// The address must be null or the address of a string that ends with a zero byte.
pub(crate) unsafe fn text<'a>(at: *const c_char) -> Result<&'a str, CudaError> {
    if at.is_null() {
        return Err(CudaError::INVALID_VALUE);
    }
    // SAFETY: the address is not null, so the caller has passed the address of a string that ends with a zero byte.
    unsafe { CStr::from_ptr(at) }.to_str().map_err(|_| CudaError::NOT_FOUND)
}

/// Copies a string and a zero byte into a buffer of `room` bytes. A string that is too long is truncated.
///
/// # Safety
/// The address must be null or the address of a buffer of `room` bytes.
pub(crate) unsafe fn give_text(to: *mut c_char, room: c_int, text: &str) -> CallResult {
    let room = usize::try_from(room).ok().filter(|room| *room > 0).ok_or(CudaError::INVALID_VALUE)?;
    if to.is_null() {
        return Err(CudaError::INVALID_VALUE);
    }
    let count = text.len().min(room - 1);
    // SAFETY: the address is not null, so the buffer has `room` bytes. `count` is less than `room` and at most the
    // length of the text.
    unsafe {
        to.cast::<u8>().copy_from_nonoverlapping(text.as_ptr(), count);
        to.add(count).write(0);
    }
    Ok(())
}

/// Returns a C string that stays valid until the process ends.
pub(crate) fn lasting(name: &str) -> *const c_char {
    static NAMES: Mutex<Option<HashMap<String, CString>>> = Mutex::new(None);
    let mut names = lock(&NAMES);
    let kept = names.get_or_insert_default().entry(name.to_owned());
    kept.or_insert_with(|| CString::new(name).unwrap_or_default()).as_ptr()
}
