//! The functions of the C library that open the node and use it.
//!
//! The C library declares `open`, `openat` and `ioctl` with arguments that may be absent. Rust cannot define such
//! functions. With all arguments present they are found in the same registers by the calling conventions of Linux on
//! x86-64 and aarch64; one that the caller left out is passed on as it was found, and looked at by neither side.

use std::ffi::{CStr, c_char, c_int, c_uint, c_ulong, c_void};
use std::panic::{AssertUnwindSafe, catch_unwind};

use reconverge_gpu::device::Driver;

use crate::device;
use crate::ioctls::{Errno, Request};
use crate::messages::say_once;
use crate::node::{self, Node};
use crate::nouveau;
use crate::radeon;
use crate::real;
use crate::screen;

/// The path of the node.
pub(crate) const PATH: &CStr = c"/dev/dri/renderD128";
/// The path by which programs open it that have a screen. It is the same node.
pub(crate) const CARD: &CStr = c"/dev/dri/card0";

/// Whether a path is that of the node, and a node is asked for.
///
/// # Safety
/// The path is null or a C string.
unsafe fn is_node(path: *const c_char) -> bool {
    // Without an allocation up to here: memory managers open files too.
    // SAFETY: not null, so a C string.
    !path.is_null() && [PATH, CARD].contains(&unsafe { CStr::from_ptr(path) }) && device::chosen().is_some()
}

/// Gives what a function of the C library gives: zero or more, or -1 and `errno`.
fn answer(result: Result<c_int, Errno>) -> c_int {
    result.unwrap_or_else(|errno| {
        real::set_errno(errno.0);
        -1
    })
}

/// `open`.
///
/// # Safety
/// As for the function of the C library.
#[cfg_attr(not(test), unsafe(no_mangle))]
pub unsafe extern "C" fn open(path: *const c_char, flags: c_int, mode: c_uint) -> c_int {
    // SAFETY: the caller's promises are those of the function that is called.
    unsafe { if is_node(path) { answer(node::open()) } else { real::OPEN.call(path, flags, mode) } }
}

/// `open64`.
///
/// # Safety
/// As for the function of the C library.
#[cfg_attr(not(test), unsafe(no_mangle))]
pub unsafe extern "C" fn open64(path: *const c_char, flags: c_int, mode: c_uint) -> c_int {
    // SAFETY: the caller's promises are those of the function that is called.
    unsafe { if is_node(path) { answer(node::open()) } else { real::OPEN64.call(path, flags, mode) } }
}

/// `openat`.
///
/// # Safety
/// As for the function of the C library.
#[cfg_attr(not(test), unsafe(no_mangle))]
pub unsafe extern "C" fn openat(folder: c_int, path: *const c_char, flags: c_int, mode: c_uint) -> c_int {
    // SAFETY: the caller's promises are those of the function that is called.
    unsafe { if is_node(path) { answer(node::open()) } else { real::OPENAT.call(folder, path, flags, mode) } }
}

/// `openat64`.
///
/// # Safety
/// As for the function of the C library.
#[cfg_attr(not(test), unsafe(no_mangle))]
pub unsafe extern "C" fn openat64(folder: c_int, path: *const c_char, flags: c_int, mode: c_uint) -> c_int {
    // SAFETY: the caller's promises are those of the function that is called.
    unsafe {
        if is_node(path) { answer(node::open()) } else { real::OPENAT64.call(folder, path, flags, mode) }
    }
}

/// `__open_2`: `open` without a mode, as programs built with `_FORTIFY_SOURCE` call it.
///
/// # Safety
/// As for the function of the C library.
#[cfg_attr(not(test), unsafe(no_mangle))]
pub unsafe extern "C" fn __open_2(path: *const c_char, flags: c_int) -> c_int {
    // SAFETY: the caller's promises are those of the function that is called.
    unsafe { open(path, flags, 0) }
}

/// `__open64_2`: `open64` without a mode, as programs built with `_FORTIFY_SOURCE` call it.
///
/// # Safety
/// As for the function of the C library.
#[cfg_attr(not(test), unsafe(no_mangle))]
pub unsafe extern "C" fn __open64_2(path: *const c_char, flags: c_int) -> c_int {
    // SAFETY: the caller's promises are those of the function that is called.
    unsafe { open64(path, flags, 0) }
}

/// `fstat`.
///
/// # Safety
/// As for the function of the C library.
#[cfg_attr(not(test), unsafe(no_mangle))]
pub unsafe extern "C" fn fstat(descriptor: c_int, status: *mut libc::stat) -> c_int {
    // SAFETY: the caller's promises are those of the function that is called.
    let result = unsafe { real::fstat(descriptor, status) };
    if result == 0 && node::of(descriptor).is_some() {
        // SAFETY: the call has just filled the structure.
        unsafe { ((*status).st_mode, (*status).st_rdev) = (MODE, libc::makedev(MAJOR, MINOR)) };
    }
    result
}

/// `fstat64`.
///
/// # Safety
/// As for the function of the C library.
#[cfg_attr(not(test), unsafe(no_mangle))]
pub unsafe extern "C" fn fstat64(descriptor: c_int, status: *mut libc::stat64) -> c_int {
    // SAFETY: the caller's promises are those of the function that is called.
    let result = unsafe { real::fstat64(descriptor, status) };
    if result == 0 && node::of(descriptor).is_some() {
        // SAFETY: the call has just filled the structure.
        unsafe { ((*status).st_mode, (*status).st_rdev) = (MODE, libc::makedev(MAJOR, MINOR)) };
    }
    result
}

/// What the node is: a character device that everyone may read and write.
const MODE: libc::mode_t = libc::S_IFCHR | 0o666;
/// The device number of graphics devices.
const MAJOR: c_uint = 226;
/// Of these, the first render node.
const MINOR: c_uint = 128;

/// `ioctl`.
///
/// # Safety
/// As for the function of the C library.
#[cfg_attr(not(test), unsafe(no_mangle))]
pub unsafe extern "C" fn ioctl(descriptor: c_int, request: c_ulong, argument: *mut c_void) -> c_int {
    let asked = Request(request);
    match asked.of_drm().then(|| node::of(descriptor)).flatten() {
        Some(node) => {
            // SAFETY: the caller promises an argument that the request's layout describes.
            let ask = |()| unsafe { asked_of(node, asked, argument) };
            answer(node.usable().and_then(ask).map(|()| 0))
        }
        // SAFETY: the caller's promises are those of the function that is called.
        None => unsafe { real::ioctl(descriptor, request, argument) },
    }
}

/// Answers a request to the node; a panic of ours is an error of the request.
///
/// # Safety
/// The argument is null or what the request's layout describes.
unsafe fn asked_of(node: &Node, request: Request, argument: *mut c_void) -> Result<(), Errno> {
    // SAFETY: the caller's promise.
    let answer = AssertUnwindSafe(|| unsafe {
        if let Some(answer) = screen::answer(node, request, argument) {
            return answer;
        }
        match node.device().board.driver {
            Driver::Nv50 => nouveau::answer(node, request, argument),
            _ => radeon::answer(node, request, argument),
        }
    });
    catch_unwind(answer).unwrap_or_else(|_| {
        say_once(&format!("{request}: a mistake of this program, please report it; the request is refused"));
        Err(Errno(libc::EIO))
    })
}
