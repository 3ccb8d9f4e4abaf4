//! Lists the emulated folders `/dev/dri` and `/dev/input`.
//!
//! The descriptor of an emulated folder refers to a real folder. This library removes the real folder right after
//! opening the real folder. The duplicates of the descriptor also refer to the real folder. The `DIR` of the C library
//! also refers to the real folder. Therefore, the C library's `dirfd`, `closedir`, `rewinddir` and `seekdir` work
//! unchanged. The real folder has no entries, so the functions in this file return the emulated entries. The file
//! offset of the descriptor is the index of the entry that the next read returns.
//!
//! The mode of the removed folder is a mark that identifies the emulated folder. `sockets.rs` marks sockets by their
//! modes. `paths.rs` resolves names relative to the descriptor.
//!
//! This library does not support the functions `glob`, `nftw`, `scandirat` and `getdents64`. This library supports
//! neither `fchdir` into an emulated folder nor paths with `..` relative to an emulated folder.

use std::ffi::{CStr, c_char, c_int, c_void};
use std::ptr::null_mut;
use std::sync::atomic::{AtomicPtr, Ordering};

use crate::ioctls::Errno;
use crate::paths::{FOLDER_SEEN, FOLDERS, NodePath, describe, entries, folder_of};
use crate::real::{self, Symbol, call};

/// Templates of paths at which a folder can be created. The library tries the templates in order until the creation of
/// a folder succeeds.
const PLACES: [&CStr; 3] = [c"/dev/shm/reconverge-XXXXXX", c"/tmp/reconverge-XXXXXX", c"./reconverge-XXXXXX"];

/// Opens an emulated folder. `flags` are the flags of `open`.
///
/// # Errors
/// `EISDIR` if the flags request more than read access. The errors of `mkdir` and `open` if the real folder cannot be
/// created.
pub(crate) fn open(folder: NodePath, flags: c_int) -> Result<c_int, Errno> {
    let mark = FOLDERS.iter().find(|(other, _)| *other == folder).map(|(_, mark)| *mark);
    let Some(mark) = mark.filter(|_| flags & (libc::O_ACCMODE | libc::O_CREAT) == libc::O_RDONLY) else {
        return Err(Errno(libc::EISDIR));
    };
    let flags = libc::O_DIRECTORY | flags & (libc::O_CLOEXEC | libc::O_NONBLOCK);
    for place in PLACES {
        let mut path = [0_u8; 32];
        path[..place.count_bytes()].copy_from_slice(place.to_bytes());
        // SAFETY: the path is a C string that ends in the six letters that `mkdtemp` replaces. `mkdtemp` writes only
        // these letters. `openat` and `rmdir` read the path. The remaining calls do not access memory. The code makes a
        // system call instead of calling `openat`, because this library replaces `openat`.
        unsafe {
            if libc::mkdtemp(path.as_mut_ptr().cast()).is_null() {
                continue;
            }
            let descriptor =
                libc::syscall(libc::SYS_openat, libc::AT_FDCWD, path.as_ptr(), flags, 0) as c_int;
            let errno = real::errno();
            libc::rmdir(path.as_ptr().cast());
            if descriptor < 0 {
                return Err(Errno(errno));
            }
            libc::fchmod(descriptor, mark);
            FOLDER_SEEN.store(true, Ordering::Relaxed);
            return Ok(descriptor);
        }
    }
    Err(Errno(real::errno()))
}

/// Fills in `entry` with the folder's entry that has this index. Returns false if the folder has no entry with this
/// index.
fn fill_entry(folder: NodePath, number: usize, entry: &mut libc::dirent) -> bool {
    let Some((name, named)) = entries(folder).get(number).copied() else { return false };
    // SAFETY: all-zero bytes are valid for this plain structure.
    let mut status: libc::stat = unsafe { std::mem::zeroed() };
    describe(named, &mut status);
    (entry.d_ino, entry.d_off) = (status.st_ino, number as libc::off_t + 1);
    entry.d_reclen = size_of::<libc::dirent>() as u16;
    entry.d_type = if named.is_folder() { libc::DT_DIR } else { libc::DT_CHR };
    for (letter, byte) in entry.d_name.iter_mut().zip(name.to_bytes_with_nul()) {
        *letter = *byte as c_char;
    }
    true
}

/// If the folder of a `DIR` is emulated, returns the folder and the descriptor of the `DIR`.
///
/// # Safety
/// The caller must meet the requirements of `dirfd`.
unsafe fn listed(list: *mut libc::DIR) -> Option<(NodePath, c_int)> {
    if !FOLDER_SEEN.load(Ordering::Relaxed) {
        return None;
    }
    // SAFETY: the caller meets the requirements of this function.
    let descriptor = unsafe { libc::dirfd(list) };
    folder_of(descriptor).map(|folder| (folder, descriptor))
}

/// Fills in the next entry of a folder. Returns the index of the entry, or `None` at the end of the folder. Leaves
/// `errno` unchanged.
fn next_entry(folder: NodePath, descriptor: c_int, entry: &mut libc::dirent) -> Option<usize> {
    // SAFETY: the system calls do not access memory of the process.
    let number = usize::try_from(unsafe { libc::lseek(descriptor, 0, libc::SEEK_CUR) }).ok()?;
    if !fill_entry(folder, number, entry) {
        return None;
    }
    // SAFETY: the system call does not access memory of the process.
    unsafe { libc::lseek(descriptor, number as libc::off_t + 1, libc::SEEK_SET) };
    Some(number)
}

fn empty_entry() -> libc::dirent {
    // SAFETY: all-zero bytes are valid for this plain structure.
    unsafe { std::mem::zeroed() }
}

/// `opendir`.
///
/// # Safety
/// The caller must meet the requirements of the function in the C library.
#[cfg_attr(not(test), unsafe(no_mangle))]
pub unsafe extern "C-unwind" fn opendir(path: *const c_char) -> *mut libc::DIR {
    static REAL: Symbol = Symbol::new(c"opendir");
    let Some(folder) = NodePath::at(path).filter(|named| named.is_folder()) else {
        return call!(REAL.address(), fn(*const c_char) -> *mut libc::DIR, (path), else null_mut());
    };
    match open(folder, libc::O_RDONLY | libc::O_CLOEXEC) {
        // SAFETY: the descriptor refers to a folder. The returned `DIR` owns the descriptor from now on.
        Ok(descriptor) => unsafe { fdopendir(descriptor) },
        Err(Errno(errno)) => {
            real::set_errno(errno);
            null_mut()
        }
    }
}

/// `fdopendir`, which also records whether the program uses an emulated folder.
///
/// # Safety
/// The caller must meet the requirements of the function in the C library.
#[cfg_attr(not(test), unsafe(no_mangle))]
pub unsafe extern "C-unwind" fn fdopendir(descriptor: c_int) -> *mut libc::DIR {
    static REAL: Symbol = Symbol::new(c"fdopendir");
    folder_of(descriptor);
    call!(REAL.address(), fn(c_int) -> *mut libc::DIR, (descriptor), else null_mut())
}

/// `readdir`. The entries of emulated folders do not change, so each entry is created once and never freed.
///
/// # Safety
/// The caller must meet the requirements of the function in the C library.
#[cfg_attr(not(test), unsafe(no_mangle))]
pub unsafe extern "C-unwind" fn readdir(list: *mut libc::DIR) -> *mut libc::dirent {
    static REAL: Symbol = Symbol::new(c"readdir");
    static MADE: [[AtomicPtr<libc::dirent>; 4]; 2] = [const { [const { AtomicPtr::new(null_mut()) }; 4] }; 2];
    // SAFETY: the caller meets the requirements of this function.
    let Some((folder, descriptor)) = (unsafe { listed(list) }) else {
        return call!(REAL.address(), fn(*mut libc::DIR) -> *mut libc::dirent, (list), else null_mut());
    };
    let mut entry = empty_entry();
    let Some(number) = next_entry(folder, descriptor, &mut entry) else { return null_mut() };
    let made = &MADE[usize::from(folder == NodePath::InputFolder)][number];
    let known = made.load(Ordering::Acquire);
    if !known.is_null() {
        return known;
    }
    let new = Box::into_raw(Box::new(entry));
    match made.compare_exchange(null_mut(), new, Ordering::AcqRel, Ordering::Acquire) {
        Ok(_) => new,
        Err(other) => {
            // SAFETY: `Box::into_raw` returned this pointer above. The pointer was not stored, because another thread
            // had already stored an entry.
            drop(unsafe { Box::from_raw(new) });
            other
        }
    }
}

/// `readdir64`: see [`readdir`].
///
/// # Safety
/// The caller must meet the requirements of the function in the C library.
#[cfg_attr(not(test), unsafe(no_mangle))]
pub unsafe extern "C-unwind" fn readdir64(list: *mut libc::DIR) -> *mut libc::dirent {
    // SAFETY: the caller meets the requirements of the called function. `dirent` and `dirent64` have the same layout.
    unsafe { readdir(list) }
}

/// `readdir_r`.
///
/// # Safety
/// The caller must meet the requirements of the function in the C library.
#[cfg_attr(not(test), unsafe(no_mangle))]
pub unsafe extern "C-unwind" fn readdir_r(
    list: *mut libc::DIR,
    entry: *mut libc::dirent,
    result: *mut *mut libc::dirent,
) -> c_int {
    static REAL: Symbol = Symbol::new(c"readdir_r");
    // SAFETY: the caller meets the requirements of this function.
    let Some((folder, descriptor)) = (unsafe { listed(list) }) else {
        return call!(
            REAL.address(),
            fn(*mut libc::DIR, *mut libc::dirent, *mut *mut libc::dirent) -> c_int,
            (list, entry, result), else libc::ENOSYS
        );
    };
    // SAFETY: the caller passes memory for an entry and for the address of an entry.
    unsafe { *result = next_entry(folder, descriptor, &mut *entry).map_or(null_mut(), |_| entry) };
    0
}

/// `readdir64_r`: see [`readdir_r`].
///
/// # Safety
/// The caller must meet the requirements of the function in the C library.
#[cfg_attr(not(test), unsafe(no_mangle))]
pub unsafe extern "C-unwind" fn readdir64_r(
    list: *mut libc::DIR,
    entry: *mut libc::dirent,
    result: *mut *mut libc::dirent,
) -> c_int {
    // SAFETY: the caller meets the requirements of the called function. `dirent` and `dirent64` have the same layout.
    unsafe { readdir_r(list, entry, result) }
}

/// `telldir`. The C library's `telldir` returns the position of the last entry that the C library has read. For an
/// emulated folder, the C library reads no entries.
///
/// # Safety
/// The caller must meet the requirements of the function in the C library.
#[cfg_attr(not(test), unsafe(no_mangle))]
pub unsafe extern "C-unwind" fn telldir(list: *mut libc::DIR) -> libc::c_long {
    static REAL: Symbol = Symbol::new(c"telldir");
    // SAFETY: the caller meets the requirements of this function.
    match unsafe { listed(list) } {
        // SAFETY: the system call does not access memory of the process.
        Some((_, descriptor)) => unsafe { libc::lseek(descriptor, 0, libc::SEEK_CUR) },
        None => call!(REAL.address(), fn(*mut libc::DIR) -> libc::c_long, (list), else -1),
    }
}

/// The type of a `scandir` argument. The argument is a function that selects entries. [`CompareEntries`] is the type of
/// another argument, which is a function that compares two entries.
type Choose = unsafe extern "C-unwind" fn(*const libc::dirent) -> c_int;
type CompareEntries =
    unsafe extern "C-unwind" fn(*mut *const libc::dirent, *mut *const libc::dirent) -> c_int;

/// Lists a folder as `scandir` does. Returns the number of entries, or -1 with `errno`.
///
/// # Safety
/// The caller must meet the requirements of `scandir`.
unsafe fn scanned(
    folder: NodePath,
    list: *mut *mut *mut libc::dirent,
    choose: Option<Choose>,
    compare: Option<CompareEntries>,
) -> c_int {
    let room = entries(folder).len();
    // SAFETY: `calloc` returns memory for the list and for each entry, or null. The program frees the list and the
    // entries. The caller passes valid functions and the address of a pointer.
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

/// Defines `scandir` and `scandir64`, which list a folder.
macro_rules! scanning {
    ($($(#[$doc:meta])* $name:ident, $symbol:literal;)*) => {$(
        $(#[$doc])*
        ///
        /// # Safety
        /// The caller must meet the requirements of the function in the C library.
        #[cfg_attr(not(test), unsafe(no_mangle))]
        pub unsafe extern "C-unwind" fn $name(
            path: *const c_char,
            list: *mut *mut *mut libc::dirent,
            choose: Option<Choose>,
            compare: Option<CompareEntries>,
        ) -> c_int {
            static REAL: Symbol = Symbol::new($symbol);
            match NodePath::at(path).filter(|named| named.is_folder()) {
                // SAFETY: the caller meets the requirements of the called function.
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
