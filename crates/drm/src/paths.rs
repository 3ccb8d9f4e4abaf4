//! The paths of the node, the input devices and the terminal for programs that look at them and open nothing:
//! `/dev/dri/card0`, `/dev/dri/renderD128`, `/dev/input/event0`, `/dev/input/event1`, their folders, `/dev/tty0` and `/dev/tty1`.
//!
//! For these paths, the functions here answer as the kernel does for a device. For other paths, they call the C library.

use std::ffi::{CStr, c_char, c_int, c_uint, c_void};
use std::ptr::null_mut;

use crate::device;
use crate::input::InputDevice;
use crate::lock::Lock;
use crate::open_files::{self, NodeKind};
use crate::real::{self, Symbol, call};
use crate::sockets::Mark;
use crate::terminal;
use crate::user;

/// The path of the node.
pub(crate) const PATH: &CStr = c"/dev/dri/renderD128";
/// The path by which programs open it that have a screen. It is the same node.
pub(crate) const CARD: &CStr = c"/dev/dri/card0";

/// The paths of the input devices.
pub(crate) const KEYBOARD: &CStr = c"/dev/input/event0";
pub(crate) const POINTER: &CStr = c"/dev/input/event1";

/// The meaning of a path.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum NodePath {
    /// The node with the screen.
    Card,
    /// The node without.
    Render,
    /// The folder of both.
    Folder,
    /// An input device.
    Input(InputDevice),
    /// The folder of input devices.
    InputFolder,
    /// The terminal that is shown, whichever that is.
    ShownTerminal,
    /// The terminal by its number.
    Terminal,
}

/// Every path with its meaning.
const PATHS: [(&CStr, NodePath); 10] = [
    (PATH, NodePath::Render),
    (CARD, NodePath::Card),
    (c"/dev/dri", NodePath::Folder),
    (c"/dev/dri/", NodePath::Folder),
    (KEYBOARD, NodePath::Input(InputDevice::Keyboard)),
    (POINTER, NodePath::Input(InputDevice::Pointer)),
    (c"/dev/input", NodePath::InputFolder),
    (c"/dev/input/", NodePath::InputFolder),
    (c"/dev/tty0", NodePath::ShownTerminal),
    (c"/dev/tty1", NodePath::Terminal),
];

impl NodePath {
    /// Returns the meaning of a path, if a chip is selected. Allocates nothing up to there: memory managers open files too.
    pub(crate) fn at(path: *const c_char) -> Option<NodePath> {
        let address = path.expose_provenance() as u64;
        // Nearly all paths end here.
        if !user::is_start(address, b"/dev/") {
            return None;
        }
        let (_, named) = PATHS.iter().find(|(text, _)| user::is_start(address, text.to_bytes_with_nul()))?;
        device::chosen().is_some().then_some(*named)
    }

    /// Returns the path that a socket with a mark stands for.
    pub(crate) fn of_mark(mark: Mark) -> NodePath {
        match mark {
            Mark::Keyboard => NodePath::Input(InputDevice::Keyboard),
            Mark::Pointer => NodePath::Input(InputDevice::Pointer),
            Mark::Terminal => NodePath::Terminal,
        }
    }

    /// Returns the path that an open file of a node was opened as.
    pub(crate) fn of_node(descriptor: c_int) -> NodePath {
        match open_files::kind(descriptor) {
            Some(NodeKind::Card) => NodePath::Card,
            _ => NodePath::Render,
        }
    }

    fn is_folder(self) -> bool {
        matches!(self, NodePath::Folder | NodePath::InputFolder)
    }
}

/// The node is a character device that everyone may read and write.
const MODE: libc::mode_t = libc::S_IFCHR | 0o666;
/// The major device number of graphics devices.
const MAJOR: c_uint = 226;
/// The minor device number of the first render node.
const MINOR: c_uint = 128;
/// The number of the node, which `fstat` gives.
pub(crate) const NUMBER: libc::dev_t = libc::makedev(MAJOR, MINOR);
/// The number of the node with the screen.
pub(crate) const CARD_NUMBER: libc::dev_t = libc::makedev(MAJOR, 0);
/// The major device numbers of input devices and terminals. (`include/uapi/linux/major.h`)
const INPUT_MAJOR: c_uint = 13;
const TTY_MAJOR: c_uint = 4;
/// The minor device number of `event0`. (`EVDEV_MINOR_BASE`, `drivers/input/evdev.c`)
const FIRST_EVENT: c_uint = 64;

/// Returns the number of an input device.
pub(crate) const fn input_number(device: InputDevice) -> libc::dev_t {
    libc::makedev(INPUT_MAJOR, FIRST_EVENT + device as c_uint)
}

/// Minor device number of the file system of devices. All open files of a node have this device, and the node's inode.
const DEVTMPFS: c_uint = 5;
/// Inode of the render node.
const INODE: libc::ino_t = 0x8000_0080;

/// Fills in the description of a path.
pub(crate) fn describe(named: NodePath, status: &mut libc::stat) {
    (status.st_dev, status.st_nlink) = (libc::makedev(0, DEVTMPFS), 1);
    (status.st_mode, status.st_rdev, status.st_ino) = match named {
        NodePath::Render => (MODE, NUMBER, INODE),
        NodePath::Card => (MODE, CARD_NUMBER, INODE + 1),
        NodePath::Folder => (libc::S_IFDIR | 0o755, 0, INODE + 2),
        NodePath::InputFolder => (libc::S_IFDIR | 0o755, 0, INODE + 3),
        NodePath::ShownTerminal => (MODE, libc::makedev(TTY_MAJOR, 0), INODE + 4),
        NodePath::Terminal => (MODE, libc::makedev(TTY_MAJOR, terminal::NUMBER), INODE + 5),
        NodePath::Input(device) => {
            (MODE, input_number(device), INODE + 6 + libc::ino_t::from(device.number()))
        }
    };
}

const _: () = assert!(size_of::<libc::stat>() == size_of::<libc::stat64>(), "the structures are the same");

/// Fills a structure with the description of a path. Returns 0, or -1 with `errno`.
///
/// # Safety
/// The address is one of a structure to fill.
unsafe fn described(named: NodePath, status: *mut libc::stat) -> c_int {
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
        /// The conditions are those of the function in the C library.
        #[cfg_attr(not(test), unsafe(no_mangle))]
        pub unsafe extern "C-unwind" fn $name(path: *const c_char, status: *mut libc::stat) -> c_int {
            static REAL: Symbol = Symbol::new($symbol);
            match NodePath::at(path) {
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

/// Functions that describe a path relative to a folder.
macro_rules! describing_at {
    ($($(#[$doc:meta])* $name:ident, $symbol:literal;)*) => {$(
        $(#[$doc])*
        ///
        /// # Safety
        /// The conditions are those of the function in the C library.
        #[cfg_attr(not(test), unsafe(no_mangle))]
        pub unsafe extern "C-unwind" fn $name(
            folder: c_int,
            path: *const c_char,
            status: *mut libc::stat,
            flags: c_int,
        ) -> c_int {
            static REAL: Symbol = Symbol::new($symbol);
            match NodePath::at(path) {
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
/// The conditions are those of the function in the C library.
#[cfg_attr(not(test), unsafe(no_mangle))]
pub unsafe extern "C-unwind" fn statx(
    folder: c_int,
    path: *const c_char,
    flags: c_int,
    mask: c_uint,
    status: *mut libc::statx,
) -> c_int {
    static REAL: Symbol = Symbol::new(c"statx");
    let Some(named) = NodePath::at(path) else {
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

/// The answer to a question about access: everyone may read and write a device, and list its folder.
fn allowed(named: NodePath, mode: c_int) -> c_int {
    let refused = if named.is_folder() { libc::W_OK } else { libc::X_OK };
    if mode & refused == 0 {
        return 0;
    }
    real::set_errno(libc::EACCES);
    -1
}

/// `access`.
///
/// # Safety
/// The conditions are those of the function in the C library.
#[cfg_attr(not(test), unsafe(no_mangle))]
pub unsafe extern "C-unwind" fn access(path: *const c_char, mode: c_int) -> c_int {
    static REAL: Symbol = Symbol::new(c"access");
    match NodePath::at(path) {
        Some(named) => allowed(named, mode),
        None => call!(REAL.address(), fn(*const c_char, c_int) -> c_int, (path, mode), else real::missing()),
    }
}

/// `faccessat`.
///
/// # Safety
/// The conditions are those of the function in the C library.
#[cfg_attr(not(test), unsafe(no_mangle))]
pub unsafe extern "C-unwind" fn faccessat(
    folder: c_int,
    path: *const c_char,
    mode: c_int,
    flags: c_int,
) -> c_int {
    static REAL: Symbol = Symbol::new(c"faccessat");
    match NodePath::at(path) {
        Some(named) => allowed(named, mode),
        None => call!(
            REAL.address(),
            fn(c_int, *const c_char, c_int, c_int) -> c_int,
            (folder, path, mode, flags), else real::missing()
        ),
    }
}

/// The entries of a folder, in the order in which they are listed.
fn entries(folder: NodePath) -> [(&'static CStr, NodePath); 4] {
    let devices = match folder {
        NodePath::InputFolder => [
            (c"event0", NodePath::Input(InputDevice::Keyboard)),
            (c"event1", NodePath::Input(InputDevice::Pointer)),
        ],
        _ => [(c"card0", NodePath::Card), (c"renderD128", NodePath::Render)],
    };
    [(c".", folder), (c"..", NodePath::Folder), devices[0], devices[1]]
}

/// Fills in the entry with a number. Returns whether there is one.
fn fill_entry(folder: NodePath, number: usize, entry: &mut libc::dirent) -> bool {
    let Some((name, named)) = entries(folder).get(number).copied() else { return false };
    // SAFETY: all bytes zero is a value of this plain structure.
    let mut status: libc::stat = unsafe { std::mem::zeroed() };
    describe(named, &mut status);
    (entry.d_ino, entry.d_off) = (status.st_ino, number as libc::off_t + 1);
    entry.d_reclen = size_of::<libc::dirent>() as u16;
    entry.d_type = if named.is_folder() { libc::DT_DIR } else { libc::DT_CHR };
    for (letter, byte) in entry.d_name.iter_mut().zip(name.to_bytes_with_nul()) {
        *letter = byte.cast_signed();
    }
    true
}

/// A listing of the folder that a program has opened.
#[repr(C)]
struct FolderListing {
    folder: NodePath,
    /// Number of the next entry.
    next: usize,
    entry: libc::dirent,
}

/// The addresses of the listings that are open.
pub(crate) static LISTINGS: Lock<Vec<usize>> = Lock::new(Vec::new());

/// Returns the listing that a program means, if it is one of ours.
fn listing(address: *mut libc::DIR) -> Option<*mut FolderListing> {
    let is_ours = LISTINGS.lock().is_ok_and(|open| open.contains(&address.addr()));
    is_ours.then_some(address.cast())
}

/// `opendir`.
///
/// # Safety
/// The conditions are those of the function in the C library.
#[cfg_attr(not(test), unsafe(no_mangle))]
pub unsafe extern "C-unwind" fn opendir(path: *const c_char) -> *mut libc::DIR {
    static REAL: Symbol = Symbol::new(c"opendir");
    let Some(folder) = NodePath::at(path).filter(|named| named.is_folder()) else {
        return call!(REAL.address(), fn(*const c_char) -> *mut libc::DIR, (path), else null_mut());
    };
    // SAFETY: all bytes zero is a value of this plain structure.
    let entry = unsafe { std::mem::zeroed() };
    let made = Box::into_raw(Box::new(FolderListing { folder, next: 0, entry }));
    let Ok(mut open) = LISTINGS.lock() else {
        real::set_errno(libc::EIO);
        return null_mut();
    };
    open.push(made.expose_provenance());
    made.cast()
}

/// `readdir`: the next entry, which the next call overwrites.
///
/// # Safety
/// The conditions are those of the function in the C library.
#[cfg_attr(not(test), unsafe(no_mangle))]
pub unsafe extern "C-unwind" fn readdir(folder: *mut libc::DIR) -> *mut libc::dirent {
    static REAL: Symbol = Symbol::new(c"readdir");
    let Some(listing) = listing(folder) else {
        return call!(REAL.address(), fn(*mut libc::DIR) -> *mut libc::dirent, (folder), else null_mut());
    };
    // SAFETY: the address is one of an open listing, which the program uses in one thread at a time.
    let listing = unsafe { &mut *listing };
    if !fill_entry(listing.folder, listing.next, &mut listing.entry) {
        return null_mut();
    }
    listing.next += 1;
    &raw mut listing.entry
}

/// `readdir64`: see [`readdir`].
///
/// # Safety
/// The conditions are those of the function in the C library.
#[cfg_attr(not(test), unsafe(no_mangle))]
pub unsafe extern "C-unwind" fn readdir64(folder: *mut libc::DIR) -> *mut libc::dirent {
    // SAFETY: the caller's promises are those of the function that is called. Both structures are the same.
    unsafe { readdir(folder) }
}

/// `rewinddir`.
///
/// # Safety
/// The conditions are those of the function in the C library.
#[cfg_attr(not(test), unsafe(no_mangle))]
pub unsafe extern "C-unwind" fn rewinddir(folder: *mut libc::DIR) {
    static REAL: Symbol = Symbol::new(c"rewinddir");
    match listing(folder) {
        // SAFETY: the address is one of an open listing.
        Some(listing) => unsafe { (*listing).next = 0 },
        None => call!(REAL.address(), fn(*mut libc::DIR) -> (), (folder), else ()),
    }
}

/// `closedir`.
///
/// # Safety
/// The conditions are those of the function in the C library.
#[cfg_attr(not(test), unsafe(no_mangle))]
pub unsafe extern "C-unwind" fn closedir(folder: *mut libc::DIR) -> c_int {
    static REAL: Symbol = Symbol::new(c"closedir");
    let Some(listing) = listing(folder) else {
        return call!(REAL.address(), fn(*mut libc::DIR) -> c_int, (folder), else real::missing());
    };
    if let Ok(mut open) = LISTINGS.lock() {
        open.retain(|address| *address != folder.addr());
    }
    // SAFETY: made by `opendir`, and taken off the list above.
    drop(unsafe { Box::from_raw(listing) });
    0
}

/// Chooses entries, and compares two. (The arguments of `scandir`)
type Choose = unsafe extern "C-unwind" fn(*const libc::dirent) -> c_int;
type CompareEntries =
    unsafe extern "C-unwind" fn(*mut *const libc::dirent, *mut *const libc::dirent) -> c_int;

/// Lists a folder as `scandir` does. Returns the number of entries, or -1 with `errno`.
///
/// # Safety
/// As for `scandir`.
unsafe fn scanned(
    folder: NodePath,
    list: *mut *mut *mut libc::dirent,
    choose: Option<Choose>,
    compare: Option<CompareEntries>,
) -> c_int {
    let room = entries(folder).len();
    // SAFETY: room for addresses, and for an entry each, which the program frees. The functions are the program's.
    unsafe {
        let all: *mut *mut libc::dirent = libc::calloc(room, size_of::<*mut libc::dirent>()).cast();
        let mut count = 0;
        for number in 0..room {
            let entry: *mut libc::dirent = libc::calloc(1, size_of::<libc::dirent>()).cast();
            if all.is_null() || entry.is_null() {
                real::set_errno(libc::ENOMEM);
                return -1;
            }
            fill_entry(folder, number, &mut *entry);
            if choose.is_none_or(|choose| choose(entry) != 0) {
                *all.add(count) = entry;
                count += 1;
            } else {
                libc::free(entry.cast());
            }
        }
        if let Some(compare) = compare {
            let chosen = std::slice::from_raw_parts_mut(all, count);
            chosen.sort_by(|one, other| {
                let (mut one, mut other) = (one.cast_const(), other.cast_const());
                compare(&raw mut one, &raw mut other).cmp(&0)
            });
        }
        *list = all;
        count as c_int
    }
}

/// Functions that list a folder.
macro_rules! scanning {
    ($($(#[$doc:meta])* $name:ident, $symbol:literal;)*) => {$(
        $(#[$doc])*
        ///
        /// # Safety
        /// The conditions are those of the function in the C library.
        #[cfg_attr(not(test), unsafe(no_mangle))]
        pub unsafe extern "C-unwind" fn $name(
            path: *const c_char,
            list: *mut *mut *mut libc::dirent,
            choose: Option<Choose>,
            compare: Option<CompareEntries>,
        ) -> c_int {
            static REAL: Symbol = Symbol::new($symbol);
            match NodePath::at(path).filter(|named| named.is_folder()) {
                // SAFETY: the caller's promises are those of the function that is called.
                Some(folder) => unsafe { scanned(folder, list, choose, compare) },
                None => call!(
                    REAL.address(),
                    fn(*const c_char, *mut *mut *mut libc::dirent, Option<Choose>, Option<CompareEntries>) -> c_int,
                    (path, list, choose, compare), else real::missing()
                ),
            }
        }
    )*};
}

scanning! {
    /// `scandir`.
    scandir, c"scandir";
    /// `scandir64`.
    scandir64, c"scandir64";
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_without_a_chip_are_those_of_the_system() {
        assert_eq!(NodePath::at(c"/dev/dri/card0".as_ptr()), None);
        // SAFETY: C strings and structures of the right kind.
        unsafe {
            let mut status: libc::stat = std::mem::zeroed();
            assert_eq!(
                (stat(c"/dev".as_ptr(), &raw mut status), status.st_mode & libc::S_IFMT),
                (0, libc::S_IFDIR)
            );
            assert_eq!(
                (access(c"/dev".as_ptr(), libc::R_OK), access(c"/none".as_ptr(), libc::R_OK)),
                (0, -1)
            );
            let folder = opendir(c"/dev".as_ptr());
            assert!(!readdir(folder).is_null());
            assert_eq!(closedir(folder), 0);
        }
    }

    /// The kernel's devices of graphics have major number 226; render nodes begin at 128. Input devices have 13, and their
    /// events begin at 64. Terminals have 4. (`Documentation/admin-guide/devices.txt`)
    #[test]
    fn a_node_is_described_as_a_device() {
        // SAFETY: all bytes zero is a value of this plain structure.
        let mut status: libc::stat = unsafe { std::mem::zeroed() };
        for (named, kind, number) in [
            (NodePath::Card, libc::S_IFCHR, [226, 0]),
            (NodePath::Render, libc::S_IFCHR, [226, 128]),
            (NodePath::Folder, libc::S_IFDIR, [0, 0]),
            (NodePath::Input(InputDevice::Keyboard), libc::S_IFCHR, [13, 64]),
            (NodePath::Input(InputDevice::Pointer), libc::S_IFCHR, [13, 65]),
            (NodePath::Terminal, libc::S_IFCHR, [4, 1]),
        ] {
            describe(named, &mut status);
            let found = [libc::major(status.st_rdev), libc::minor(status.st_rdev)];
            assert_eq!((status.st_mode & libc::S_IFMT, found), (kind, number));
        }
        assert_eq!(
            (allowed(NodePath::Card, libc::R_OK | libc::W_OK), allowed(NodePath::Card, libc::X_OK)),
            (0, -1)
        );
        assert_eq!((allowed(NodePath::Folder, libc::X_OK), allowed(NodePath::Folder, libc::W_OK)), (0, -1));
    }
}
