//! Replacements for the C library functions that open and use the node.
//!
//! The C library declares `open`, `openat` and `ioctl` with arguments that may be absent. Rust cannot define functions
//! with optional arguments, so the functions in this file have all arguments. On x86-64 and aarch64, an argument uses
//! the same register whether or not the argument is optional. If the caller omits an argument, the function in this
//! file passes the value of the argument's register to the C library. Neither the caller nor the C library uses this
//! value.

use std::ffi::{CStr, c_char, c_int, c_uint, c_ulong, c_void};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::ptr::null_mut;

use reconverge_board::Driver;

use crate::device;
use crate::folders;
use crate::input::{self, InputFile};
use crate::ioctls::{Errno, Request, ScreenEvent};
use crate::mapped;
use crate::messages::say_once;
use crate::node::{self, Client};
use crate::nouveau;
use crate::open_files::{self, NodeKind};
use crate::paths::{NodePath, describe};
use crate::radeon;
use crate::real::{self, Symbol, call};
use crate::screen;
use crate::shared;
use crate::sockets::{self, Mark};
use crate::terminal;
use crate::user;

/// Opens a path of an emulated device. The path may be relative to a folder. Returns `None` if the path names no
/// emulated device.
fn opened(folder: c_int, path: *const c_char, flags: c_int) -> Option<c_int> {
    let named = NodePath::beside(folder, path)?;
    let exists = libc::O_CREAT | libc::O_EXCL;
    Some(answer(match named {
        _ if flags & exists == exists => Err(Errno(libc::EEXIST)),
        NodePath::Folder | NodePath::InputFolder => folders::open(named, flags),
        _ if flags & libc::O_DIRECTORY != 0 => Err(Errno(libc::ENOTDIR)),
        NodePath::Card => node::open(NodeKind::Card, flags),
        NodePath::Render => node::open(NodeKind::Render, flags),
        NodePath::Input(device) => input::open(device, flags),
        NodePath::Terminal | NodePath::ShownTerminal => terminal::open(flags),
    }))
}

/// Returns the result of a C function. The result of a success is zero or more. The result of an error is -1, and
/// `errno` is set.
fn answer(result: Result<c_int, Errno>) -> c_int {
    result.unwrap_or_else(|errno| {
        real::set_errno(errno.0);
        -1
    })
}

/// `open`.
///
/// # Safety
/// The caller must meet the requirements of the function in the C library.
#[cfg_attr(not(test), unsafe(no_mangle))]
pub unsafe extern "C-unwind" fn open(path: *const c_char, flags: c_int, mode: c_uint) -> c_int {
    // SAFETY: the caller meets the requirements of the called function.
    unsafe { opened(libc::AT_FDCWD, path, flags).unwrap_or_else(|| real::OPEN.call(path, flags, mode)) }
}

/// `open64`.
///
/// # Safety
/// The caller must meet the requirements of the function in the C library.
#[cfg_attr(not(test), unsafe(no_mangle))]
pub unsafe extern "C-unwind" fn open64(path: *const c_char, flags: c_int, mode: c_uint) -> c_int {
    // SAFETY: the caller meets the requirements of the called function.
    unsafe { opened(libc::AT_FDCWD, path, flags).unwrap_or_else(|| real::OPEN64.call(path, flags, mode)) }
}

/// `openat`.
///
/// # Safety
/// The caller must meet the requirements of the function in the C library.
#[cfg_attr(not(test), unsafe(no_mangle))]
pub unsafe extern "C-unwind" fn openat(
    folder: c_int,
    path: *const c_char,
    flags: c_int,
    mode: c_uint,
) -> c_int {
    // SAFETY: the caller meets the requirements of the called function.
    unsafe { opened(folder, path, flags).unwrap_or_else(|| real::OPENAT.call(folder, path, flags, mode)) }
}

/// `openat64`.
///
/// # Safety
/// The caller must meet the requirements of the function in the C library.
#[cfg_attr(not(test), unsafe(no_mangle))]
pub unsafe extern "C-unwind" fn openat64(
    folder: c_int,
    path: *const c_char,
    flags: c_int,
    mode: c_uint,
) -> c_int {
    // SAFETY: the caller meets the requirements of the called function.
    unsafe { opened(folder, path, flags).unwrap_or_else(|| real::OPENAT64.call(folder, path, flags, mode)) }
}

/// `__open_2`. Calls `open` without a mode. Programs that are built with `_FORTIFY_SOURCE` call this function.
///
/// # Safety
/// The caller must meet the requirements of the function in the C library.
#[cfg_attr(not(test), unsafe(no_mangle))]
pub unsafe extern "C-unwind" fn __open_2(path: *const c_char, flags: c_int) -> c_int {
    // SAFETY: the caller meets the requirements of the called function.
    unsafe { open(path, flags, 0) }
}

/// `__open64_2`. Calls `open64` without a mode. Programs that are built with `_FORTIFY_SOURCE` call this function.
///
/// # Safety
/// The caller must meet the requirements of the function in the C library.
#[cfg_attr(not(test), unsafe(no_mangle))]
pub unsafe extern "C-unwind" fn __open64_2(path: *const c_char, flags: c_int) -> c_int {
    // SAFETY: the caller meets the requirements of the called function.
    unsafe { open64(path, flags, 0) }
}

/// `__openat_2`. Calls `openat` without a mode. Programs that are built with `_FORTIFY_SOURCE` call this function.
///
/// # Safety
/// The caller must meet the requirements of the function in the C library.
#[cfg_attr(not(test), unsafe(no_mangle))]
pub unsafe extern "C-unwind" fn __openat_2(folder: c_int, path: *const c_char, flags: c_int) -> c_int {
    // SAFETY: the caller meets the requirements of the called function.
    unsafe { openat(folder, path, flags, 0) }
}

/// `__openat64_2`: see [`__openat_2`].
///
/// # Safety
/// The caller must meet the requirements of the function in the C library.
#[cfg_attr(not(test), unsafe(no_mangle))]
pub unsafe extern "C-unwind" fn __openat64_2(folder: c_int, path: *const c_char, flags: c_int) -> c_int {
    // SAFETY: the caller meets the requirements of the called function.
    unsafe { openat64(folder, path, flags, 0) }
}

/// Opens a path of an emulated device as a stream of the C library. Returns `None` if the path names no emulated
/// device.
///
/// # Safety
/// The caller must meet the requirements of `fopen`.
unsafe fn opened_stream(path: *const c_char, mode: *const c_char) -> Option<*mut libc::FILE> {
    NodePath::at(path)?;
    // SAFETY: the caller passes `mode` as a C string.
    let letters = unsafe { CStr::from_ptr(mode) }.to_bytes();
    let access = match letters.first() {
        Some(_) if letters.contains(&b'+') => libc::O_RDWR,
        Some(b'r') => libc::O_RDONLY,
        _ => libc::O_WRONLY,
    };
    let flags = access | if letters.contains(&b'e') { libc::O_CLOEXEC } else { 0 };
    let descriptor = opened(libc::AT_FDCWD, path, flags)?;
    // SAFETY: the caller passes `mode` as a C string.
    Some(if descriptor < 0 { null_mut() } else { unsafe { libc::fdopen(descriptor, mode) } })
}

/// `fopen`.
///
/// # Safety
/// The caller must meet the requirements of the function in the C library.
#[cfg_attr(not(test), unsafe(no_mangle))]
pub unsafe extern "C-unwind" fn fopen(path: *const c_char, mode: *const c_char) -> *mut libc::FILE {
    static REAL: Symbol = Symbol::new(c"fopen");
    // SAFETY: the caller meets the requirements of the called function.
    unsafe { opened_stream(path, mode) }.unwrap_or_else(|| {
        call!(REAL.address(), fn(*const c_char, *const c_char) -> *mut libc::FILE, (path, mode), else null_mut())
    })
}

/// `fopen64`.
///
/// # Safety
/// The caller must meet the requirements of the function in the C library.
#[cfg_attr(not(test), unsafe(no_mangle))]
pub unsafe extern "C-unwind" fn fopen64(path: *const c_char, mode: *const c_char) -> *mut libc::FILE {
    static REAL: Symbol = Symbol::new(c"fopen64");
    // SAFETY: the caller meets the requirements of the called function.
    unsafe { opened_stream(path, mode) }.unwrap_or_else(|| {
        call!(REAL.address(), fn(*const c_char, *const c_char) -> *mut libc::FILE, (path, mode), else null_mut())
    })
}

/// `fstat`.
///
/// # Safety
/// The caller must meet the requirements of the function in the C library.
#[cfg_attr(not(test), unsafe(no_mangle))]
pub unsafe extern "C-unwind" fn fstat(descriptor: c_int, status: *mut libc::stat) -> c_int {
    // SAFETY: the caller meets the requirements of the called function.
    let result = unsafe { real::fstat(descriptor, status) };
    if result == 0 {
        // SAFETY: the call has just filled the structure.
        unsafe { redescribe(descriptor, &mut *status) };
    }
    result
}

/// `fstat64`.
///
/// # Safety
/// The caller must meet the requirements of the function in the C library.
#[cfg_attr(not(test), unsafe(no_mangle))]
pub unsafe extern "C-unwind" fn fstat64(descriptor: c_int, status: *mut libc::stat64) -> c_int {
    // SAFETY: the caller meets the requirements of the called function.
    let result = unsafe { real::fstat64(descriptor, status) };
    if result == 0 {
        // SAFETY: the call has just filled the structure. `stat` and `stat64` have the same layout, which `paths`
        // asserts.
        unsafe { redescribe(descriptor, &mut *status.cast()) };
    }
    result
}

/// A descriptor of a pipe, a socket or a folder may represent an emulated path. If so, replaces `status` by the status
/// of the emulated path.
fn redescribe(descriptor: c_int, status: &mut libc::stat) {
    if let Some(named) = NodePath::of_descriptor(descriptor, status) {
        describe(named, status);
    }
}

/// Answers a request to an input device or the terminal. Returns `None` for other requests and descriptors.
fn answer_of_socket(
    descriptor: c_int,
    request: c_ulong,
    argument: *mut c_void,
) -> Option<Result<c_int, Errno>> {
    if input::is_request(request) {
        device::chosen()?;
        return input::of(descriptor).map(|device| input::answer(device, descriptor, request, argument));
    }
    if terminal::is_request(request) {
        device::chosen()?;
        return (sockets::mark(descriptor)? == Mark::Terminal).then(|| terminal::answer(request, argument));
    }
    None
}

/// `ioctl`.
///
/// # Safety
/// The caller must meet the requirements of the function in the C library.
#[cfg_attr(not(test), unsafe(no_mangle))]
pub unsafe extern "C-unwind" fn ioctl(descriptor: c_int, request: c_ulong, argument: *mut c_void) -> c_int {
    let asked = Request(request);
    if asked.of_buffers()
        && let Some(answered) = shared::answer(descriptor, asked)
    {
        return answer(answered.map(|()| 0));
    }
    if let Some(answered) = answer_of_socket(descriptor, request, argument) {
        return answer(answered);
    }
    match asked.of_drm().then(|| node::of_any(descriptor)).flatten() {
        Some(client) => {
            let ask = || client.usable().and_then(|()| asked_of(&client, descriptor, asked, argument));
            answer(user::on_stack_of(ask).map(|()| 0))
        }
        // SAFETY: the caller meets the requirements of the called function.
        None => unsafe { real::ioctl(descriptor, request, argument) },
    }
}

/// Answers a request to the node. If this library panics, the request fails with `EIO`.
fn asked_of(
    client: &Client<'_>,
    descriptor: c_int,
    request: Request,
    argument: *mut c_void,
) -> Result<(), Errno> {
    let answer = AssertUnwindSafe(|| {
        if let Some(answer) = screen::answer(client, descriptor, request, argument) {
            for event in client.events() {
                if !open_files::notify(descriptor, &event) {
                    say_once(
                        "screen: an event is lost, because the program does not read its events and the queue is full",
                    );
                }
            }
            return answer;
        }
        match client.device().board.driver {
            Driver::Nv50 => nouveau::answer(client, request, argument),
            _ => radeon::answer(client, request, argument),
        }
    });
    let answer = catch_unwind(answer).unwrap_or_else(|_| {
        say_once(&format!("{request}: internal error, please report it; the request fails"));
        Err(Errno(libc::EIO))
    });
    node::end_closed_late();
    answer
}

/// `mmap`. Memory allocators call `mmap` without a descriptor, very early in the process.
///
/// # Safety
/// The caller must meet the requirements of the function in the C library.
#[cfg_attr(not(test), unsafe(no_mangle))]
pub unsafe extern "C" fn mmap(
    address: *mut c_void,
    length: usize,
    access: c_int,
    flags: c_int,
    descriptor: c_int,
    offset: libc::off_t,
) -> *mut c_void {
    let client = if flags & libc::MAP_ANONYMOUS == 0 { node::of(descriptor) } else { None };
    let Some(client) = client else {
        // SAFETY: the caller meets the requirements of the system call.
        return unsafe { real::mmap(address, length, access, flags, descriptor, offset) };
    };
    let part = u64::try_from(offset).ok().filter(|offset| offset % 4096 == 0);
    let part = part.and_then(|start| Some(start..start.checked_add(length as u64)?));
    let mapped = part.ok_or(Errno(libc::EINVAL)).and_then(|part| client.map(part, address, access, flags));
    mapped.unwrap_or_else(|errno| {
        real::set_errno(errno.0);
        libc::MAP_FAILED
    })
}

/// `mmap64`.
///
/// # Safety
/// The caller must meet the requirements of the function in the C library.
#[cfg_attr(not(test), unsafe(no_mangle))]
pub unsafe extern "C" fn mmap64(
    address: *mut c_void,
    length: usize,
    access: c_int,
    flags: c_int,
    descriptor: c_int,
    offset: libc::off64_t,
) -> *mut c_void {
    // SAFETY: the caller meets the requirements of the called function.
    unsafe { mmap(address, length, access, flags, descriptor, offset) }
}

/// `munmap`.
///
/// # Safety
/// The caller must meet the requirements of the function in the C library.
#[cfg_attr(not(test), unsafe(no_mangle))]
pub unsafe extern "C" fn munmap(address: *mut c_void, length: usize) -> c_int {
    // The mapping is removed from the list before the system call. After the call, another mapping may already have
    // these addresses.
    let removed = mapped::remove(address.addr(), length);
    // SAFETY: the caller meets the requirements of the system call.
    let result = unsafe { real::munmap(address, length) };
    if removed && result != 0 {
        mapped::lose();
    }
    result
}

/// `mremap`. A program passes the last argument only with `MREMAP_FIXED` or `MREMAP_DONTUNMAP`. Without `MREMAP_FIXED`
/// or `MREMAP_DONTUNMAP`, the system call ignores the last argument. This function therefore always passes the last
/// argument to the system call.
///
/// # Safety
/// The caller must meet the requirements of the function in the C library.
#[cfg_attr(not(test), unsafe(no_mangle))]
pub unsafe extern "C" fn mremap(
    address: *mut c_void,
    length: usize,
    new_length: usize,
    flags: c_int,
    new_address: *mut c_void,
) -> *mut c_void {
    if mapped::touches(address.addr(), length) {
        mapped::lose();
    }
    // SAFETY: the caller meets the requirements of the system call.
    unsafe { real::mremap(address, length, new_length, flags, new_address) }
}

/// Calls a function that may close the last descriptor of an open file. If the function has closed the last descriptor,
/// frees the buffers of the open file.
///
/// A program may close a descriptor by a direct system call. In this case, the library frees the buffers when the
/// program next opens the node or creates a buffer.
fn closing(may_close: bool, call: impl FnOnce() -> c_int) -> c_int {
    let result = call();
    if may_close {
        let errno = real::errno();
        node::end_closed();
        real::set_errno(errno);
    }
    result
}

/// `close`.
///
/// # Safety
/// The caller must meet the requirements of the function in the C library.
#[cfg_attr(not(test), unsafe(no_mangle))]
pub unsafe extern "C-unwind" fn close(descriptor: c_int) -> c_int {
    // SAFETY: the caller meets the requirements of the called function.
    closing(node::of(descriptor).is_some(), || unsafe { real::close(descriptor) })
}

/// `close_range`.
///
/// # Safety
/// The caller must meet the requirements of the function in the C library.
#[cfg_attr(not(test), unsafe(no_mangle))]
pub unsafe extern "C-unwind" fn close_range(first: c_uint, last: c_uint, flags: c_int) -> c_int {
    // SAFETY: the caller meets the requirements of the called function.
    closing(true, || unsafe { real::close_range(first, last, flags) })
}

/// `closefrom`.
///
/// # Safety
/// The caller must meet the requirements of the function in the C library.
#[cfg_attr(not(test), unsafe(no_mangle))]
pub unsafe extern "C-unwind" fn closefrom(first: c_int) {
    closing(true, || {
        // SAFETY: the caller meets the requirements of the called function.
        unsafe { real::closefrom(first) };
        0
    });
}

/// `dup2`.
///
/// # Safety
/// The caller must meet the requirements of the function in the C library.
#[cfg_attr(not(test), unsafe(no_mangle))]
pub unsafe extern "C-unwind" fn dup2(old: c_int, new: c_int) -> c_int {
    // SAFETY: the caller meets the requirements of the called function.
    closing(node::of(new).is_some(), || unsafe { real::dup2(old, new) })
}

/// `dup3`.
///
/// # Safety
/// The caller must meet the requirements of the function in the C library.
#[cfg_attr(not(test), unsafe(no_mangle))]
pub unsafe extern "C-unwind" fn dup3(old: c_int, new: c_int, flags: c_int) -> c_int {
    // SAFETY: the caller meets the requirements of the called function.
    closing(node::of(new).is_some(), || unsafe { real::dup3(old, new, flags) })
}

/// Calls a function, unless the descriptor belongs to the node. If the descriptor belongs to the node, fails with the
/// error `why`.
fn refusing(descriptor: c_int, why: c_int, call: impl FnOnce() -> isize) -> isize {
    if node::of(descriptor).is_none() {
        return call();
    }
    real::set_errno(why);
    -1
}

/// Returns the maximum number of bytes that the node returns for a read of `count` bytes. A read of the node returns
/// whole events only. Returns `None` if `count` is less than the size of one event. In this case, the kernel's
/// `drm_read` waits for an event but leaves the event in the queue.
fn whole_events(count: usize) -> Option<usize> {
    let whole = count - count % size_of::<ScreenEvent>();
    (whole > 0).then_some(whole)
}

/// Waits until the node has an event, unless the file is nonblocking. Returns 0, or -1 with `errno`.
fn wait_for_event(descriptor: c_int) -> isize {
    let mut asked = libc::pollfd { fd: descriptor, events: libc::POLLIN, revents: 0 };
    // SAFETY: `fcntl` does not access memory, and `poll` accesses one local `pollfd`.
    let ready = unsafe {
        let waits = libc::fcntl(descriptor, libc::F_GETFL) & libc::O_NONBLOCK == 0;
        libc::poll(&raw mut asked, 1, if waits { -1 } else { 0 })
    };
    if ready == 0 {
        real::set_errno(libc::EAGAIN);
    }
    if ready > 0 { 0 } else { -1 }
}

/// `read`. For the node and for input devices, this function reads whole events only. If the window of an input device
/// was closed, this function returns `ENODEV`. The kernel returns the same error for a device that was removed or
/// revoked.
///
/// # Safety
/// The caller must meet the requirements of the function in the C library.
#[cfg_attr(not(test), unsafe(no_mangle))]
pub unsafe extern "C-unwind" fn read(descriptor: c_int, bytes: *mut c_void, count: usize) -> isize {
    if let Some(file) = InputFile::of(descriptor) {
        // SAFETY: the caller meets the requirements of the called function.
        return unsafe { file.read(bytes, count) };
    }
    let of_node = count > 0 && node::of(descriptor).is_some();
    let whole = if of_node { whole_events(count) } else { Some(count) };
    let Some(taken) = whole else { return wait_for_event(descriptor) };
    // SAFETY: the caller meets the requirements of `real::read`. This function requests at most as many bytes as the
    // caller.
    unsafe { real::read(descriptor, bytes, taken) }
}

/// `__read_chk`: `read` into a buffer of `room` bytes. Programs that are built with `_FORTIFY_SOURCE` call this
/// function.
///
/// # Safety
/// The caller must meet the requirements of the function in the C library.
#[cfg_attr(not(test), unsafe(no_mangle))]
pub unsafe extern "C-unwind" fn __read_chk(
    descriptor: c_int,
    bytes: *mut c_void,
    count: usize,
    room: usize,
) -> isize {
    static REAL: Symbol = Symbol::new(c"__read_chk");
    if count <= room {
        // SAFETY: the caller meets the requirements of the called function.
        return unsafe { read(descriptor, bytes, count) };
    }
    // The C library's `__read_chk` ends the program, because the buffer is too small.
    call!(
        REAL.address(),
        fn(c_int, *mut c_void, usize, usize) -> isize,
        (descriptor, bytes, count, room), else real::missing() as isize
    )
}

/// `readv`: see [`read()`].
///
/// # Safety
/// The caller must meet the requirements of the function in the C library.
#[cfg_attr(not(test), unsafe(no_mangle))]
pub unsafe extern "C-unwind" fn readv(descriptor: c_int, parts: *const libc::iovec, count: c_int) -> isize {
    let Some(file) = InputFile::of(descriptor) else {
        // SAFETY: the caller meets the requirements of the called function.
        return unsafe { real::readv(descriptor, parts, count) };
    };
    file.each_part(parts, count, |file, bytes, count| {
        // SAFETY: the caller meets the requirements of `readv`, so each part is valid memory.
        unsafe { file.read(bytes, count) }
    })
}

/// `write`. For the node, this function returns `EINVAL`, because the device does not support writes. Without this
/// check, the kernel would return `EBADF`, because the program's descriptor is the read end of a pipe. Input devices
/// accept events, and the terminal accepts text.
///
/// # Safety
/// The caller must meet the requirements of the function in the C library.
#[cfg_attr(not(test), unsafe(no_mangle))]
pub unsafe extern "C-unwind" fn write(descriptor: c_int, bytes: *const c_void, count: usize) -> isize {
    if let Some(file) = InputFile::of(descriptor) {
        return file.write(bytes, count);
    }
    if let Some((Mark::Terminal, access)) = sockets::marked(descriptor) {
        return terminal::write(access, bytes, count);
    }
    // SAFETY: the caller meets the requirements of the called function.
    refusing(descriptor, libc::EINVAL, || unsafe { real::write(descriptor, bytes, count) })
}

/// `writev`: see [`write()`].
///
/// # Safety
/// The caller must meet the requirements of the function in the C library.
#[cfg_attr(not(test), unsafe(no_mangle))]
pub unsafe extern "C-unwind" fn writev(descriptor: c_int, parts: *const libc::iovec, count: c_int) -> isize {
    if let Some(file) = InputFile::of(descriptor) {
        return file.each_part(parts, count, |file, bytes, count| file.write(bytes, count));
    }
    // SAFETY: the caller meets the requirements of the called function.
    refusing(descriptor, libc::EINVAL, || unsafe { real::writev(descriptor, parts, count) })
}

/// `pwrite`: see [`write()`].
///
/// # Safety
/// The caller must meet the requirements of the function in the C library.
#[cfg_attr(not(test), unsafe(no_mangle))]
pub unsafe extern "C-unwind" fn pwrite(
    descriptor: c_int,
    bytes: *const c_void,
    count: usize,
    offset: libc::off_t,
) -> isize {
    // SAFETY: the caller meets the requirements of the called function.
    refusing(descriptor, libc::EINVAL, || unsafe { real::pwrite(descriptor, bytes, count, offset) })
}

/// `pwrite64`: see [`write()`].
///
/// # Safety
/// The caller must meet the requirements of the function in the C library.
#[cfg_attr(not(test), unsafe(no_mangle))]
pub unsafe extern "C-unwind" fn pwrite64(
    descriptor: c_int,
    bytes: *const c_void,
    count: usize,
    offset: libc::off64_t,
) -> isize {
    // SAFETY: the caller meets the requirements of the called function.
    unsafe { pwrite(descriptor, bytes, count, offset) }
}

/// `fallocate`. For the node, this function returns `ENODEV`, as the kernel does for devices.
///
/// # Safety
/// The caller must meet the requirements of the function in the C library.
#[cfg_attr(not(test), unsafe(no_mangle))]
pub unsafe extern "C-unwind" fn fallocate(
    descriptor: c_int,
    mode: c_int,
    start: libc::off_t,
    length: libc::off_t,
) -> c_int {
    let call = || {
        // SAFETY: the caller meets the requirements of the called function.
        unsafe { real::fallocate(descriptor, mode, start, length) as isize }
    };
    refusing(descriptor, libc::ENODEV, call) as c_int
}

/// `fallocate64`: see [`fallocate`].
///
/// # Safety
/// The caller must meet the requirements of the function in the C library.
#[cfg_attr(not(test), unsafe(no_mangle))]
pub unsafe extern "C-unwind" fn fallocate64(
    descriptor: c_int,
    mode: c_int,
    start: libc::off64_t,
    length: libc::off64_t,
) -> c_int {
    // SAFETY: the caller meets the requirements of the called function.
    unsafe { fallocate(descriptor, mode, start, length) }
}
