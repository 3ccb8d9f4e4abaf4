//! The OpenCL device of a process, for the [probe](crate::probe).
//!
//! Source of the numbers: the OpenCL 1.2 specification, `cl.h`.

use std::ffi::{CStr, c_char, c_int, c_uint, c_void};
use std::ptr::null_mut;

use crate::real::call;

const DEVICE_TYPE_ALL: u64 = 0xffff_ffff;
const DEVICE_NAME: c_uint = 0x102b;
const DRIVER_VERSION: c_uint = 0x102d;

/// Returns the name and the driver's version of the first device of the first platform.
///
/// # Errors
/// OpenCL is not installed, or there is no device. The error text states the problem.
pub(crate) fn device() -> Result<(String, String), String> {
    // SAFETY: the name is a C string. Loading runs the library's constructors. An OpenCL program would run the same
    // constructors.
    let library = unsafe { libc::dlopen(c"libOpenCL.so.1".as_ptr(), libc::RTLD_NOW | libc::RTLD_GLOBAL) };
    if library.is_null() {
        return Err("libOpenCL.so.1 is not installed".to_owned());
    }
    // SAFETY: the library is open, and the name is a C string.
    let symbol = |name: &CStr| unsafe { libc::dlsym(library, name.as_ptr()) };
    let mut platform: *mut c_void = null_mut();
    let status = call!(
        symbol(c"clGetPlatformIDs"),
        fn(c_uint, *mut *mut c_void, *mut c_uint) -> c_int,
        (1, &mut platform, null_mut()), else -1
    );
    if status != 0 || platform.is_null() {
        return Err(format!("no OpenCL platform (clGetPlatformIDs returns {status})"));
    }
    let mut device: *mut c_void = null_mut();
    let status = call!(
        symbol(c"clGetDeviceIDs"),
        fn(*mut c_void, u64, c_uint, *mut *mut c_void, *mut c_uint) -> c_int,
        (platform, DEVICE_TYPE_ALL, 1, &mut device, null_mut()), else -1
    );
    if status != 0 || device.is_null() {
        return Err(format!("no OpenCL device (clGetDeviceIDs returns {status})"));
    }
    let text = |what: c_uint| {
        let mut bytes = [0_u8; 256];
        let status = call!(
            symbol(c"clGetDeviceInfo"),
            fn(*mut c_void, c_uint, usize, *mut c_char, *mut usize) -> c_int,
            (device, what, bytes.len() - 1, bytes.as_mut_ptr().cast(), null_mut()), else -1
        );
        let text = CStr::from_bytes_until_nul(&bytes).ok().filter(|_| status == 0);
        text.map(|text| text.to_string_lossy().into_owned())
    };
    text(DEVICE_NAME).zip(text(DRIVER_VERSION)).ok_or_else(|| "clGetDeviceInfo returns nothing".to_owned())
}
