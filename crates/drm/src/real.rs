//! The functions of the C library, libdrm and libudev that this library replaces. Code of this library calls the
//! original functions through this file.

use std::ffi::{CStr, c_char, c_int, c_uint, c_ulong, c_void};
use std::ptr::null_mut;
use std::sync::atomic::{AtomicPtr, Ordering};

/// A function of another library. The address of the function is looked up at the first call.
pub(crate) struct Symbol {
    name: &'static CStr,
    found: AtomicPtr<c_void>,
}

impl Symbol {
    /// Returns a symbol with a name. Does not look up the address.
    pub(crate) const fn new(name: &'static CStr) -> Symbol {
        Symbol { name, found: AtomicPtr::new(null_mut()) }
    }

    /// Returns the address of the function in the libraries that were loaded after this library. Returns null if no
    /// later library defines the function. Does not allocate.
    pub(crate) fn address(&self) -> *mut c_void {
        let known = self.found.load(Ordering::Relaxed);
        if !known.is_null() {
            return known;
        }
        // SAFETY: the name is a C string.
        let found = unsafe { libc::dlsym(libc::RTLD_NEXT, self.name.as_ptr()) };
        self.found.store(found, Ordering::Relaxed);
        found
    }

    /// Returns the address of the function in libudev. Loads libudev if necessary.
    pub(crate) fn address_in_libudev(&self) -> *mut c_void {
        let found = self.address();
        if !found.is_null() {
            return found;
        }
        // SAFETY: names are C strings. The handle is never closed. Therefore, libudev stays loaded, and the stored
        // address stays valid.
        let found = unsafe {
            let libudev = libc::dlopen(c"libudev.so.1".as_ptr(), libc::RTLD_LAZY);
            if libudev.is_null() { null_mut() } else { libc::dlsym(libudev, self.name.as_ptr()) }
        };
        self.found.store(found, Ordering::Relaxed);
        found
    }

    /// Returns the address of the function in libdrm. After the start of the process, a library may have loaded libdrm
    /// for private use. This function also finds a private libdrm. [`Symbol::address`] does not find a private libdrm.
    pub(crate) fn address_in_libdrm(&self) -> *mut c_void {
        let found = self.address();
        if !found.is_null() {
            return found;
        }
        // SAFETY: names are C strings. The handle is never closed. Therefore, libdrm stays loaded, and the stored
        // address stays valid.
        let found = unsafe {
            let libdrm = libc::dlopen(c"libdrm.so.2".as_ptr(), libc::RTLD_LAZY | libc::RTLD_NOLOAD);
            if libdrm.is_null() { null_mut() } else { libc::dlsym(libdrm, self.name.as_ptr()) }
        };
        self.found.store(found, Ordering::Relaxed);
        found
    }
}

/// Returns `errno`, the last error of the C library in this thread.
pub(crate) fn errno() -> c_int {
    // SAFETY: the C library returns a valid address in every thread.
    unsafe { *libc::__errno_location() }
}

/// Sets `errno`, the last error of the C library in this thread.
pub(crate) fn set_errno(errno: c_int) {
    // SAFETY: the C library returns a valid address in every thread.
    unsafe { *libc::__errno_location() = errno }
}

/// Calls a [`Symbol`] with typed arguments. If no library defines the function, the result is the value after `else`.
///
/// If a thread is cancelled in a function such as `write`, the C library unwinds all frames of the thread. Therefore,
/// no caller of the function may own a value with a destructor.
macro_rules! call {
    ($symbol:expr, fn($($kind:ty),* $(; $rest:tt)?) -> $answer:ty, ($($argument:expr),*), else $missing:expr) => {{
        let address: *mut c_void = $symbol;
        if address.is_null() {
            $missing
        } else {
            type Function = unsafe extern "C-unwind" fn($($kind),* $(, $rest)?) -> $answer;
            // SAFETY: the library that defines the symbol defines the symbol as a function of this type. The caller
            // ensures that the arguments are valid.
            unsafe { std::mem::transmute::<*mut c_void, Function>(address)($($argument),*) }
        }
    }};
}
pub(crate) use call;

/// Sets `errno` to `ENOSYS` and returns -1. A function of this library has this result if no other library defines the
/// function.
pub(crate) fn missing() -> c_int {
    set_errno(libc::ENOSYS);
    -1
}

/// A function that opens a file. The arguments are a path, flags and a mode.
pub(crate) struct Opening(Symbol);

pub(crate) static OPEN: Opening = Opening(Symbol::new(c"open"));
pub(crate) static OPEN64: Opening = Opening(Symbol::new(c"open64"));

impl Opening {
    /// # Safety
    /// The caller must meet the requirements of `open`.
    pub(crate) unsafe fn call(&self, path: *const c_char, flags: c_int, mode: c_uint) -> c_int {
        call!(self.0.address(), fn(*const c_char, c_int; ...) -> c_int, (path, flags, mode), else missing())
    }
}

/// A function that opens a file relative to a folder, with flags and a mode.
pub(crate) struct OpeningAt(Symbol);

pub(crate) static OPENAT: OpeningAt = OpeningAt(Symbol::new(c"openat"));
pub(crate) static OPENAT64: OpeningAt = OpeningAt(Symbol::new(c"openat64"));

impl OpeningAt {
    /// # Safety
    /// The caller must meet the requirements of `openat`.
    pub(crate) unsafe fn call(
        &self,
        folder: c_int,
        path: *const c_char,
        flags: c_int,
        mode: c_uint,
    ) -> c_int {
        call!(
            self.0.address(),
            fn(c_int, *const c_char, c_int; ...) -> c_int,
            (folder, path, flags, mode), else missing()
        )
    }
}

/// # Safety
/// The caller must meet the requirements of `ioctl`.
pub(crate) unsafe fn ioctl(descriptor: c_int, request: c_ulong, argument: *mut c_void) -> c_int {
    static IOCTL: Symbol = Symbol::new(c"ioctl");
    call!(IOCTL.address(), fn(c_int, c_ulong; ...) -> c_int, (descriptor, request, argument), else missing())
}

/// # Safety
/// The caller must meet the requirements of `fstat`.
pub(crate) unsafe fn fstat(descriptor: c_int, status: *mut libc::stat) -> c_int {
    call!(FSTAT.address(), fn(c_int, *mut libc::stat) -> c_int, (descriptor, status), else missing())
}

static FSTAT: Symbol = Symbol::new(c"fstat");
static CLOSE: Symbol = Symbol::new(c"close");
static CLOSEFROM: Symbol = Symbol::new(c"closefrom");
static DUP2: Symbol = Symbol::new(c"dup2");
static DUP3: Symbol = Symbol::new(c"dup3");
static READ: Symbol = Symbol::new(c"read");
static READV: Symbol = Symbol::new(c"readv");
static WRITE: Symbol = Symbol::new(c"write");
static WRITEV: Symbol = Symbol::new(c"writev");
static PWRITE: Symbol = Symbol::new(c"pwrite");
static FALLOCATE: Symbol = Symbol::new(c"fallocate");

/// Runs when this library is loaded. Looks up the functions that programs call between `fork` and `exec`. In the child
/// process, a lookup could wait forever. During the fork, a thread of the parent may hold a lock that the lookup needs.
#[cfg_attr(not(test), used, unsafe(link_section = ".init_array"))]
#[cfg_attr(test, allow(dead_code))]
static WHEN_LOADED: extern "C" fn() = when_loaded;

extern "C" fn when_loaded() {
    for symbol in [&OPEN.0, &OPEN64.0, &OPENAT.0, &OPENAT64.0, &WRITE, &WRITEV, &PWRITE, &FALLOCATE] {
        symbol.address();
    }
    for symbol in [&CLOSE, &CLOSEFROM, &DUP2, &DUP3, &READ, &READV, &FSTAT] {
        symbol.address();
    }
}

/// # Safety
/// The caller must meet the requirements of `close`.
pub(crate) unsafe fn close(descriptor: c_int) -> c_int {
    call!(CLOSE.address(), fn(c_int) -> c_int, (descriptor), else missing())
}

/// Calls the system call `close_range` directly. glibc before version 2.34 has no function for this system call.
///
/// # Safety
/// The caller must meet the requirements of `close_range`.
pub(crate) unsafe fn close_range(first: c_uint, last: c_uint, flags: c_int) -> c_int {
    // SAFETY: the caller meets the requirements of this function.
    unsafe { libc::syscall(libc::SYS_close_range, first, last, flags) as c_int }
}

/// # Safety
/// The caller must meet the requirements of `closefrom`.
pub(crate) unsafe fn closefrom(first: c_int) {
    // glibc before version 2.34 has no `closefrom`. SAFETY: the caller meets the requirements of this function.
    let missing = || unsafe { _ = close_range(first.max(0) as c_uint, c_uint::MAX, 0) };
    call!(CLOSEFROM.address(), fn(c_int) -> (), (first), else missing());
}

/// # Safety
/// The caller must meet the requirements of `dup2`.
pub(crate) unsafe fn dup2(old: c_int, new: c_int) -> c_int {
    call!(DUP2.address(), fn(c_int, c_int) -> c_int, (old, new), else missing())
}

/// # Safety
/// The caller must meet the requirements of `dup3`.
pub(crate) unsafe fn dup3(old: c_int, new: c_int, flags: c_int) -> c_int {
    call!(DUP3.address(), fn(c_int, c_int, c_int) -> c_int, (old, new, flags), else missing())
}

/// # Safety
/// The caller must meet the requirements of `read`.
pub(crate) unsafe fn read(descriptor: c_int, bytes: *mut c_void, count: usize) -> isize {
    let address = READ.address();
    call!(address, fn(c_int, *mut c_void, usize) -> isize, (descriptor, bytes, count), else missing() as isize)
}

/// # Safety
/// The caller must meet the requirements of `write`.
pub(crate) unsafe fn write(descriptor: c_int, bytes: *const c_void, count: usize) -> isize {
    let address = WRITE.address();
    call!(address, fn(c_int, *const c_void, usize) -> isize, (descriptor, bytes, count), else missing() as isize)
}

/// # Safety
/// The caller must meet the requirements of `readv`.
pub(crate) unsafe fn readv(descriptor: c_int, parts: *const libc::iovec, count: c_int) -> isize {
    let address = READV.address();
    call!(address, fn(c_int, *const libc::iovec, c_int) -> isize, (descriptor, parts, count), else missing() as isize)
}

/// # Safety
/// The caller must meet the requirements of `writev`.
pub(crate) unsafe fn writev(descriptor: c_int, parts: *const libc::iovec, count: c_int) -> isize {
    let address = WRITEV.address();
    call!(address, fn(c_int, *const libc::iovec, c_int) -> isize, (descriptor, parts, count), else missing() as isize)
}

/// # Safety
/// The caller must meet the requirements of `pwrite`.
pub(crate) unsafe fn pwrite(
    descriptor: c_int,
    bytes: *const c_void,
    count: usize,
    offset: libc::off_t,
) -> isize {
    call!(
        PWRITE.address(),
        fn(c_int, *const c_void, usize, libc::off_t) -> isize,
        (descriptor, bytes, count, offset), else missing() as isize
    )
}

/// # Safety
/// The caller must meet the requirements of `fallocate`.
pub(crate) unsafe fn fallocate(
    descriptor: c_int,
    mode: c_int,
    start: libc::off_t,
    length: libc::off_t,
) -> c_int {
    call!(
        FALLOCATE.address(),
        fn(c_int, c_int, libc::off_t, libc::off_t) -> c_int,
        (descriptor, mode, start, length), else missing()
    )
}

/// Closes a descriptor of this library. The code makes a system call instead of calling `close`, because this library
/// replaces `close`.
pub(crate) fn close_own(descriptor: c_int) {
    // SAFETY: the system call does not access memory. The caller opened the descriptor and does not use the descriptor
    // again.
    unsafe { libc::syscall(libc::SYS_close, descriptor) };
}

/// Calls the system call `mmap` directly. The code does not look up the C library's `mmap`. The lookup may allocate
/// memory, and memory allocators call `mmap`.
///
/// # Safety
/// The caller must meet the requirements of `mmap`.
pub(crate) unsafe fn mmap(
    address: *mut c_void,
    length: usize,
    access: c_int,
    flags: c_int,
    descriptor: c_int,
    offset: libc::off_t,
) -> *mut c_void {
    // SAFETY: the caller meets the requirements of `mmap`. After an error, the result is -1, which is `MAP_FAILED`.
    let start = unsafe { libc::syscall(libc::SYS_mmap, address, length, access, flags, descriptor, offset) };
    std::ptr::with_exposed_provenance_mut(start as usize)
}

/// Makes the system call `munmap`, for the reason that [`mmap`] states.
///
/// # Safety
/// The caller must meet the requirements of `munmap`.
pub(crate) unsafe fn munmap(address: *mut c_void, length: usize) -> c_int {
    // SAFETY: the caller meets the requirements of this function.
    unsafe { libc::syscall(libc::SYS_munmap, address, length) as c_int }
}

/// Makes the system call `mremap`, for the reason that [`mmap`] states.
///
/// # Safety
/// The caller must meet the requirements of `mremap`.
pub(crate) unsafe fn mremap(
    address: *mut c_void,
    length: usize,
    new_length: usize,
    flags: c_int,
    new_address: *mut c_void,
) -> *mut c_void {
    // SAFETY: the caller meets the requirements of this function.
    let start = unsafe { libc::syscall(libc::SYS_mremap, address, length, new_length, flags, new_address) };
    std::ptr::with_exposed_provenance_mut(start as usize)
}

/// # Safety
/// The caller must meet the requirements of `fstat64`.
pub(crate) unsafe fn fstat64(descriptor: c_int, status: *mut libc::stat64) -> c_int {
    static FSTAT64: Symbol = Symbol::new(c"fstat64");
    call!(FSTAT64.address(), fn(c_int, *mut libc::stat64) -> c_int, (descriptor, status), else missing())
}

/// Returns the result of `fstat` for a descriptor. Leaves `errno` unchanged.
pub(crate) fn status(descriptor: c_int) -> Option<libc::stat> {
    // SAFETY: all-zero bytes are valid for this plain structure.
    let mut status: libc::stat = unsafe { std::mem::zeroed() };
    let before = errno();
    // SAFETY: `status` has the structure that `fstat` fills.
    let answer = unsafe { fstat(descriptor, &raw mut status) };
    set_errno(before);
    (answer == 0).then_some(status)
}
