//! Versions, and names and descriptions of errors.

use std::ffi::{CStr, c_char, c_int, c_uint, c_void};

use crate::call::{give, offer};
use crate::driver::driver;
use crate::status::{self, CallResult, CudaError};

/// The version of CUDA whose functions `table.rs` lists.
pub(crate) const VERSION: c_int = 13050;

/// `cuDriverGetVersion`
pub(crate) unsafe fn version(version: *mut c_int) -> CallResult {
    // SAFETY: the caller passes null or a valid pointer.
    unsafe { give(version, VERSION) }
}

unsafe fn of_error(
    error: c_uint,
    to: *mut *const c_char,
    which: impl Fn((&'static CStr, &'static CStr)) -> &'static CStr,
) -> CallResult {
    if to.is_null() {
        return Err(CudaError::INVALID_VALUE);
    }
    match status::text(error) {
        // SAFETY: the caller passes null or a valid pointer.
        Some(found) => unsafe { give(to, which(found).as_ptr()) },
        None => {
            // SAFETY: the caller passes null or a valid pointer.
            unsafe { offer(to, std::ptr::null()) };
            Err(CudaError::INVALID_VALUE)
        }
    }
}

/// `cuGetErrorName`
pub(crate) unsafe fn error_name(error: c_uint, to: *mut *const c_char) -> CallResult {
    // SAFETY: the caller passes null or a valid pointer.
    unsafe { of_error(error, to, |(name, _)| name) }
}

/// `cuGetErrorString`
pub(crate) unsafe fn error_text(error: c_uint, to: *mut *const c_char) -> CallResult {
    // SAFETY: the caller passes null or a valid pointer.
    unsafe { of_error(error, to, |(_, text)| text) }
}

/// `cuGetExportTable`. NVIDIA's libraries use export tables to call each other. This library does not provide the
/// tables.
pub(crate) unsafe fn export_table(to: *mut *const c_void, id: *const [u8; 16]) -> CallResult {
    if to.is_null() || id.is_null() {
        return Err(CudaError::INVALID_VALUE);
    }
    // SAFETY: the caller passes null or a valid pointer.
    unsafe { offer(to, std::ptr::null()) };
    Err(CudaError::NOT_FOUND)
}

/// `cuProfilerStart` and `cuProfilerStop` do nothing, because this library has no profiler.
pub(crate) fn profiler() -> CallResult {
    driver().map(|_| ())
}
