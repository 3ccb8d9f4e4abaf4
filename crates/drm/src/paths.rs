//! The paths of the node for programs that look at them and open nothing: `/dev/dri/card0`, `/dev/dri/renderD128`, and their
//! folder.
//!
//! Functions of the C library that describe a path give what the kernel gives for a device; all others ask the C library.

use std::ffi::{CStr, c_char, c_int, c_uint, c_void};

use crate::device;
use crate::files::{CARD, PATH, describe};
use crate::real::{self, Symbol, call};
use crate::user;

/// The folder of the node.
const FOLDER: &CStr = c"/dev/dri";

/// What a path is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Named {
    /// The node with the screen.
    Card,
    /// The node without.
    Render,
    /// The folder of both.
    Folder,
}

impl Named {
    /// Returns what is at a path, if a chip is selected. Allocates nothing up to there: memory managers open files too.
    pub(crate) fn at(path: *const c_char) -> Option<Named> {
        let address = path.expose_provenance() as u64;
        // Nearly all paths end here.
        if !user::is_start(address, FOLDER.to_bytes()) {
            return None;
        }
        let is = |text: &CStr| user::is_start(address, text.to_bytes_with_nul());
        let named = if is(PATH) {
            Named::Render
        } else if is(CARD) {
            Named::Card
        } else if is(FOLDER) || is(c"/dev/dri/") {
            Named::Folder
        } else {
            return None;
        };
        device::chosen().is_some().then_some(named)
    }
}

const _: () = assert!(size_of::<libc::stat>() == size_of::<libc::stat64>(), "the structures are the same");

/// Gives a description of a path to a function that asks for one, or -1.
///
/// # Safety
/// The address is one of a structure to fill.
unsafe fn described(named: Named, status: *mut libc::stat) -> c_int {
    if status.is_null() {
        real::set_errno(libc::EFAULT);
        return -1;
    }
    // SAFETY: the caller's promise. All bytes zero is a value of this plain structure.
    unsafe {
        *status = std::mem::zeroed();
        describe(named, &mut *status);
    }
    0
}

/// Functions that describe a path.
macro_rules! describing {
    ($($(#[$doc:meta])* $name:ident, $symbol:literal;)*) => {$(
        $(#[$doc])*
        ///
        /// # Safety
        /// As for the function of the C library.
        #[cfg_attr(not(test), unsafe(no_mangle))]
        pub unsafe extern "C-unwind" fn $name(path: *const c_char, status: *mut libc::stat) -> c_int {
            static REAL: Symbol = Symbol::new($symbol);
            match Named::at(path) {
                // SAFETY: the caller's promises are those of the function that is called.
                Some(named) => unsafe { described(named, status) },
                None => call!(
                    REAL.address(),
                    fn(*const c_char, *mut libc::stat) -> c_int,
                    (path, status), else real::missing()
                ),
            }
        }
    )*};
}

describing! {
    /// `stat`.
    stat, c"stat";
    /// `stat64`.
    stat64, c"stat64";
    /// `lstat`.
    lstat, c"lstat";
    /// `lstat64`.
    lstat64, c"lstat64";
}

/// Functions that describe a path beside a folder.
macro_rules! describing_at {
    ($($(#[$doc:meta])* $name:ident, $symbol:literal;)*) => {$(
        $(#[$doc])*
        ///
        /// # Safety
        /// As for the function of the C library.
        #[cfg_attr(not(test), unsafe(no_mangle))]
        pub unsafe extern "C-unwind" fn $name(
            folder: c_int,
            path: *const c_char,
            status: *mut libc::stat,
            flags: c_int,
        ) -> c_int {
            static REAL: Symbol = Symbol::new($symbol);
            match Named::at(path) {
                // SAFETY: the caller's promises are those of the function that is called.
                Some(named) => unsafe { described(named, status) },
                None => call!(
                    REAL.address(),
                    fn(c_int, *const c_char, *mut libc::stat, c_int) -> c_int,
                    (folder, path, status, flags), else real::missing()
                ),
            }
        }
    )*};
}

describing_at! {
    /// `fstatat`.
    fstatat, c"fstatat";
    /// `fstatat64`.
    fstatat64, c"fstatat64";
}

/// `statx`: the fields of `stat`.
///
/// # Safety
/// As for the function of the C library.
#[cfg_attr(not(test), unsafe(no_mangle))]
pub unsafe extern "C-unwind" fn statx(
    folder: c_int,
    path: *const c_char,
    flags: c_int,
    mask: c_uint,
    status: *mut libc::statx,
) -> c_int {
    static REAL: Symbol = Symbol::new(c"statx");
    let Some(named) = Named::at(path) else {
        return call!(
            REAL.address(),
            fn(c_int, *const c_char, c_int, c_uint, *mut libc::statx) -> c_int,
            (folder, path, flags, mask, status), else real::missing()
        );
    };
    if status.is_null() {
        real::set_errno(libc::EFAULT);
        return -1;
    }
    // SAFETY: all bytes zero are values of these plain structures, and the address is one of a structure to fill.
    unsafe {
        let mut plain: libc::stat = std::mem::zeroed();
        describe(named, &mut plain);
        *status = std::mem::zeroed();
        let status = &mut *status;
        status.stx_mask = libc::STATX_TYPE | libc::STATX_MODE | libc::STATX_NLINK | libc::STATX_INO;
        (status.stx_mode, status.stx_ino, status.stx_nlink) = (plain.st_mode as u16, plain.st_ino, 1);
        (status.stx_rdev_major, status.stx_rdev_minor) =
            (libc::major(plain.st_rdev), libc::minor(plain.st_rdev));
        (status.stx_dev_major, status.stx_dev_minor) = (libc::major(plain.st_dev), libc::minor(plain.st_dev));
    }
    0
}

/// The answer to a question about access: everyone may read and write the node, and list its folder.
fn allowed(named: Named, mode: c_int) -> c_int {
    let refused = if named == Named::Folder { libc::W_OK } else { libc::X_OK };
    if mode & refused == 0 {
        return 0;
    }
    real::set_errno(libc::EACCES);
    -1
}

/// `access`.
///
/// # Safety
/// As for the function of the C library.
#[cfg_attr(not(test), unsafe(no_mangle))]
pub unsafe extern "C-unwind" fn access(path: *const c_char, mode: c_int) -> c_int {
    static REAL: Symbol = Symbol::new(c"access");
    match Named::at(path) {
        Some(named) => allowed(named, mode),
        None => call!(REAL.address(), fn(*const c_char, c_int) -> c_int, (path, mode), else real::missing()),
    }
}

/// `faccessat`.
///
/// # Safety
/// As for the function of the C library.
#[cfg_attr(not(test), unsafe(no_mangle))]
pub unsafe extern "C-unwind" fn faccessat(
    folder: c_int,
    path: *const c_char,
    mode: c_int,
    flags: c_int,
) -> c_int {
    static REAL: Symbol = Symbol::new(c"faccessat");
    match Named::at(path) {
        Some(named) => allowed(named, mode),
        None => call!(
            REAL.address(),
            fn(c_int, *const c_char, c_int, c_int) -> c_int,
            (folder, path, mode, flags), else real::missing()
        ),
    }
}
