//! The paths of the node, of the input devices and of the terminal. The functions in this file examine a path without
//! opening the path. The paths are `/dev/dri/card0`, `/dev/dri/renderD128`, `/dev/input/event0`, `/dev/input/event1`,
//! their folders, `/dev/tty0` and `/dev/tty1`.
//!
//! For an emulated path, a function returns the result that the kernel returns for a real device. For any other path, a
//! function calls the C library's function with the same name.

use std::ffi::{CStr, c_char, c_int, c_uint, c_void};
use std::ptr::null_mut;
use std::sync::atomic::{AtomicBool, Ordering};

use crate::device;
use crate::input::InputDevice;
use crate::ioctls::{Errno, Plain};
use crate::open_files::{self, NodeKind};
use crate::real::{self, Symbol, call};
use crate::sockets::{self, Mark};
use crate::terminal;
use crate::user;

/// The path of the render node.
pub(crate) const PATH: &CStr = c"/dev/dri/renderD128";
/// Programs that use the screen open the node by this path.
pub(crate) const CARD: &CStr = c"/dev/dri/card0";

/// The paths of the input devices.
pub(crate) const KEYBOARD: &CStr = c"/dev/input/event0";
pub(crate) const POINTER: &CStr = c"/dev/input/event1";

/// The object that a path names.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum NodePath {
    /// The node, opened by the path [`CARD`].
    Card,
    /// The node, opened by the path [`PATH`].
    Render,
    /// The folder that contains the paths of the node.
    Folder,
    /// An input device.
    Input(InputDevice),
    /// The folder that contains the input devices.
    InputFolder,
    /// `/dev/tty0`: the terminal that is currently shown.
    ShownTerminal,
    /// `/dev/tty1`: the terminal with the number 1.
    Terminal,
}

/// All emulated paths. Each entry contains the object that the path names.
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
    /// Returns the object that a path names. Returns `None` if no chip is selected. Memory allocators also open files.
    /// Therefore, this function does not allocate for a path that is not emulated.
    pub(crate) fn at(path: *const c_char) -> Option<NodePath> {
        let address = path.expose_provenance() as u64;
        // This check excludes almost all paths.
        if !user::is_start(address, b"/dev/") {
            return None;
        }
        let (_, named) = PATHS.iter().find(|(text, _)| user::is_start(address, text.to_bytes_with_nul()))?;
        device::chosen().is_some().then_some(*named)
    }

    /// Returns the object that a path names. The path is absolute, or relative to the folder of a descriptor.
    pub(crate) fn beside(folder: c_int, path: *const c_char) -> Option<NodePath> {
        NodePath::at(path).or_else(|| {
            let (folder, address) = (folder_of(folder)?, path.expose_provenance() as u64);
            let is_named = |name: &CStr| user::is_start(address, name.to_bytes_with_nul());
            entries(folder).into_iter().find(|(name, _)| is_named(name)).map(|(_, named)| named)
        })
    }

    /// Returns the object that a descriptor represents. Returns `None` if the descriptor represents no object. `status`
    /// is the kernel's status of the descriptor.
    pub(crate) fn of_descriptor(descriptor: c_int, status: &libc::stat) -> Option<NodePath> {
        match status.st_mode & libc::S_IFMT {
            libc::S_IFIFO if device::chosen().is_some() => {
                open_files::adopt(descriptor).then(|| NodePath::of_node(descriptor))
            }
            libc::S_IFSOCK if device::chosen().is_some() => sockets::mark(descriptor).map(NodePath::of_mark),
            libc::S_IFDIR => folder_of(descriptor),
            _ => None,
        }
    }

    /// Returns the object that a path names. If `flags` contains `AT_EMPTY_PATH`, an empty path names the object of the
    /// descriptor `folder`.
    fn beside_or_itself(folder: c_int, path: *const c_char, flags: c_int) -> Option<NodePath> {
        let is_empty = || path.is_null() || user::is_start(path.expose_provenance() as u64, b"\0");
        if flags & libc::AT_EMPTY_PATH != 0 && is_empty() {
            return NodePath::of_descriptor(folder, &real::status(folder)?);
        }
        NodePath::beside(folder, path)
    }

    /// Returns the object that a socket with a mark represents.
    pub(crate) fn of_mark(mark: Mark) -> NodePath {
        match mark {
            Mark::Keyboard => NodePath::Input(InputDevice::Keyboard),
            Mark::Pointer => NodePath::Input(InputDevice::Pointer),
            Mark::Terminal => NodePath::Terminal,
        }
    }

    /// Returns the path by which the open file of a descriptor was opened.
    pub(crate) fn of_node(descriptor: c_int) -> NodePath {
        match open_files::kind(descriptor) {
            Some(NodeKind::Card) => NodePath::Card,
            _ => NodePath::Render,
        }
    }

    pub(crate) fn is_folder(self) -> bool {
        matches!(self, NodePath::Folder | NodePath::InputFolder)
    }
}

/// The node is a character device that everyone may read and write.
const MODE: libc::mode_t = libc::S_IFCHR | 0o666;
/// The major device number of graphics devices.
const MAJOR: c_uint = 226;
/// The minor device number of the first render node.
const MINOR: c_uint = 128;
/// The device number that `fstat` returns for the render node.
pub(crate) const NUMBER: libc::dev_t = libc::makedev(MAJOR, MINOR);
/// The device number of the node that controls the screen.
pub(crate) const CARD_NUMBER: libc::dev_t = libc::makedev(MAJOR, 0);
/// The emulated folders. Each entry also contains a mode. In `folders.rs`, a removed real folder with this mode
/// represents the emulated folder.
pub(crate) const FOLDERS: [(NodePath, libc::mode_t); 2] =
    [(NodePath::Folder, libc::S_ISVTX | 0o512), (NodePath::InputFolder, libc::S_ISVTX | 0o521)];

/// Whether this process has used a descriptor of an emulated folder. If false, functions that list a folder need not
/// check whether the folder is emulated.
pub(crate) static FOLDER_SEEN: AtomicBool = AtomicBool::new(false);

/// Returns the emulated folder that a descriptor represents. Returns `None` if the descriptor represents no emulated
/// folder. Leaves `errno` unchanged.
pub(crate) fn folder_of(descriptor: c_int) -> Option<NodePath> {
    if descriptor < 0 {
        return None;
    }
    let status = real::status(descriptor).filter(|status| status.st_nlink == 0)?;
    let (folder, _) = FOLDERS.iter().find(|(_, mark)| libc::S_IFDIR | mark == status.st_mode)?;
    FOLDER_SEEN.store(true, Ordering::Relaxed);
    Some(*folder)
}

/// Returns the entries of a folder in the order of their indices.
pub(crate) fn entries(folder: NodePath) -> [(&'static CStr, NodePath); 4] {
    let devices = match folder {
        NodePath::InputFolder => [
            (c"event0", NodePath::Input(InputDevice::Keyboard)),
            (c"event1", NodePath::Input(InputDevice::Pointer)),
        ],
        _ => [(c"card0", NodePath::Card), (c"renderD128", NodePath::Render)],
    };
    [(c".", folder), (c"..", NodePath::Folder), devices[0], devices[1]]
}

/// The major device numbers of input devices and terminals. (`include/uapi/linux/major.h`)
const INPUT_MAJOR: c_uint = 13;
const TTY_MAJOR: c_uint = 4;
/// The minor device number of `event0`. (`EVDEV_MINOR_BASE`, `drivers/input/evdev.c`)
const FIRST_EVENT: c_uint = 64;

/// Returns the device number of an input device.
pub(crate) const fn input_number(device: InputDevice) -> libc::dev_t {
    libc::makedev(INPUT_MAJOR, FIRST_EVENT + device as c_uint)
}

/// Minor device number of the file system of `/dev`. The status of every open file of a node has this number.
const DEVTMPFS: c_uint = 5;
/// Inode of the render node.
const INODE: libc::ino_t = 0x8000_0080;

/// Fills a `stat` structure with the status of an object.
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

// SAFETY: all fields of the structure are integers. The structure has fields in place of padding.
unsafe impl Plain for libc::stat {}
// SAFETY: all fields of the structure are integers. The structure has fields in place of padding.
unsafe impl Plain for libc::statx {}

/// Writes a structure to memory of the program. Returns 0, or -1 with `errno`.
fn written<T: Plain>(to: *mut T, value: &T) -> c_int {
    match user::write(to.expose_provenance() as u64, value) {
        Ok(()) => 0,
        Err(Errno(errno)) => {
            real::set_errno(errno);
            -1
        }
    }
}

/// Writes the status of an object to memory of the program. Returns 0, or -1 with `errno`.
fn described(named: NodePath, status: *mut libc::stat) -> c_int {
    let mut found = libc::stat::zeroed();
    describe(named, &mut found);
    written(status, &found)
}

/// Defines the functions that return the status of a path.
macro_rules! describing {
    ($($(#[$doc:meta])* $name:ident, $symbol:literal;)*) => {$(
        $(#[$doc])*
        ///
        /// # Safety
        /// The caller must meet the requirements of the function in the C library.
        #[cfg_attr(not(test), unsafe(no_mangle))]
        pub unsafe extern "C-unwind" fn $name(path: *const c_char, status: *mut libc::stat) -> c_int {
            static REAL: Symbol = Symbol::new($symbol);
            match NodePath::at(path) {
                Some(named) => described(named, status),
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

/// Defines the functions that return the status of a path relative to a folder.
macro_rules! describing_at {
    ($($(#[$doc:meta])* $name:ident, $symbol:literal;)*) => {$(
        $(#[$doc])*
        ///
        /// # Safety
        /// The caller must meet the requirements of the function in the C library.
        #[cfg_attr(not(test), unsafe(no_mangle))]
        pub unsafe extern "C-unwind" fn $name(
            folder: c_int,
            path: *const c_char,
            status: *mut libc::stat,
            flags: c_int,
        ) -> c_int {
            static REAL: Symbol = Symbol::new($symbol);
            match NodePath::beside_or_itself(folder, path, flags) {
                Some(named) => described(named, status),
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

/// `statx`, which returns only the fields that `stat` also has.
///
/// # Safety
/// The caller must meet the requirements of the function in the C library.
#[cfg_attr(not(test), unsafe(no_mangle))]
pub unsafe extern "C-unwind" fn statx(
    folder: c_int,
    path: *const c_char,
    flags: c_int,
    mask: c_uint,
    status: *mut libc::statx,
) -> c_int {
    static REAL: Symbol = Symbol::new(c"statx");
    let Some(named) = NodePath::beside_or_itself(folder, path, flags) else {
        return call!(
            REAL.address(),
            fn(c_int, *const c_char, c_int, c_uint, *mut libc::statx) -> c_int,
            (folder, path, flags, mask, status), else real::missing()
        );
    };
    let (mut plain, mut found) = (libc::stat::zeroed(), libc::statx::zeroed());
    describe(named, &mut plain);
    found.stx_mask = libc::STATX_TYPE | libc::STATX_MODE | libc::STATX_NLINK | libc::STATX_INO;
    (found.stx_mode, found.stx_ino, found.stx_nlink) = (plain.st_mode as u16, plain.st_ino, 1);
    (found.stx_rdev_major, found.stx_rdev_minor) = (libc::major(plain.st_rdev), libc::minor(plain.st_rdev));
    (found.stx_dev_major, found.stx_dev_minor) = (libc::major(plain.st_dev), libc::minor(plain.st_dev));
    written(status, &found)
}

/// Checks access to an object. All users may read and write a device, and list the folder of a device. Returns 0, or -1
/// with `errno`.
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
/// The caller must meet the requirements of the function in the C library.
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
/// The caller must meet the requirements of the function in the C library.
#[cfg_attr(not(test), unsafe(no_mangle))]
pub unsafe extern "C-unwind" fn faccessat(
    folder: c_int,
    path: *const c_char,
    mode: c_int,
    flags: c_int,
) -> c_int {
    static REAL: Symbol = Symbol::new(c"faccessat");
    match NodePath::beside(folder, path) {
        Some(named) => allowed(named, mode),
        None => call!(
            REAL.address(),
            fn(c_int, *const c_char, c_int, c_int) -> c_int,
            (folder, path, mode, flags), else real::missing()
        ),
    }
}

/// Defines the functions that read an extended attribute. `ls -l` requests access control lists (`acl(5)`), which the
/// devices do not have.
macro_rules! attributes {
    ($($(#[$doc:meta])* $name:ident, $symbol:literal;)*) => {$(
        $(#[$doc])*
        ///
        /// # Safety
        /// The caller must meet the requirements of the function in the C library.
        #[cfg_attr(not(test), unsafe(no_mangle))]
        pub unsafe extern "C-unwind" fn $name(
            path: *const c_char,
            name: *const c_char,
            value: *mut c_void,
            size: usize,
        ) -> isize {
            static REAL: Symbol = Symbol::new($symbol);
            if NodePath::at(path).is_some() {
                real::set_errno(libc::ENODATA);
                return -1;
            }
            call!(
                REAL.address(),
                fn(*const c_char, *const c_char, *mut c_void, usize) -> isize,
                (path, name, value, size), else real::missing() as isize
            )
        }
    )*};
}

attributes! {
    /// `getxattr`.
    getxattr, c"getxattr";
    /// `lgetxattr`.
    lgetxattr, c"lgetxattr";
}

/// Returns the canonical form of an emulated path. Stores the canonical form in `room`, or allocates memory that the
/// program frees. Returns `None` for other paths.
///
/// # Safety
/// `room` must be null or have enough bytes for the path.
unsafe fn resolved(path: *const c_char, room: *mut c_char) -> Option<*mut c_char> {
    let named = NodePath::at(path)?;
    // The table contains some paths twice: first without a slash at the end, and then with the slash.
    let (text, _) = PATHS.iter().find(|(_, other)| *other == named)?;
    // SAFETY: `room` is null or has enough bytes for the canonical form, and `text` is a C string.
    Some(unsafe {
        if room.is_null() { libc::strdup(text.as_ptr()) } else { libc::strcpy(room, text.as_ptr()) }
    })
}

/// `realpath`.
///
/// # Safety
/// The caller must meet the requirements of the function in the C library.
#[cfg_attr(not(test), unsafe(no_mangle))]
pub unsafe extern "C-unwind" fn realpath(path: *const c_char, room: *mut c_char) -> *mut c_char {
    static REAL: Symbol = Symbol::new(c"realpath");
    // SAFETY: the caller meets the requirements of the called function.
    unsafe { resolved(path, room) }.unwrap_or_else(|| {
        call!(REAL.address(), fn(*const c_char, *mut c_char) -> *mut c_char, (path, room), else null_mut())
    })
}

/// `__realpath_chk`: `realpath` into `size` bytes. Programs that are built with `_FORTIFY_SOURCE` call this function.
///
/// # Safety
/// The caller must meet the requirements of the function in the C library.
#[cfg_attr(not(test), unsafe(no_mangle))]
pub unsafe extern "C-unwind" fn __realpath_chk(
    path: *const c_char,
    room: *mut c_char,
    size: usize,
) -> *mut c_char {
    static REAL: Symbol = Symbol::new(c"__realpath_chk");
    // If `size` is less than `PATH_MAX`, the C library's function ends the program.
    let fits = size >= libc::PATH_MAX as usize;
    // SAFETY: the caller meets the requirements of the called function.
    fits.then(|| unsafe { resolved(path, room) }).flatten().unwrap_or_else(|| {
        call!(
            REAL.address(),
            fn(*const c_char, *mut c_char, usize) -> *mut c_char,
            (path, room, size), else null_mut()
        )
    })
}

/// `canonicalize_file_name`.
///
/// # Safety
/// The caller must meet the requirements of the function in the C library.
#[cfg_attr(not(test), unsafe(no_mangle))]
pub unsafe extern "C-unwind" fn canonicalize_file_name(path: *const c_char) -> *mut c_char {
    // SAFETY: the caller meets the requirements of the called function.
    unsafe { realpath(path, null_mut()) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_without_a_chip_are_those_of_the_system() {
        assert_eq!(NodePath::at(c"/dev/dri/card0".as_ptr()), None);
        // SAFETY: paths are C strings, and results are local structures.
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
        }
    }

    /// The expected numbers are these. Graphics devices have the major number 226, and render nodes start at the minor
    /// number 128. Input devices have the major number 13, and their event nodes start at the minor number 64.
    /// Terminals have the major number 4. (`Documentation/admin-guide/devices.txt`)
    #[test]
    fn a_node_is_described_as_a_device() {
        // SAFETY: all-zero bytes are valid for this plain structure.
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
