//! Records the program's mappings of buffers. [`Memory`](crate::memory::Memory) reuses the pages of a buffer only if
//! the buffer has no mapping.
//!
//! `munmap` removes mappings from the list without a lock, because even a signal handler may call `munmap`. If a
//! mapping ends without `munmap`, or if the program unmaps only a part, the mapping stays on the list. In this case,
//! the library does not reuse the pages of the buffer.
//!
//! `mremap` moves or duplicates a mapping. After an `mremap`, and after a `munmap` that fails, the list is incomplete.
//! Therefore, the library assumes that every buffer is mapped.

use std::ffi::c_int;
use std::ptr::null_mut;
use std::sync::atomic::{AtomicBool, AtomicI32, AtomicPtr, AtomicU32, AtomicU64, AtomicUsize, Ordering};

/// Maximum number of mappings on the list. If the program has more mappings, every buffer is treated as mapped.
const MOST: usize = 1024;

/// An entry of the list. An entry whose address is 0 is free.
struct Mapping {
    address: AtomicUsize,
    length: AtomicUsize,
    /// The number of the mapped file.
    file: AtomicU64,
    /// Offset of the first mapped byte in the file.
    offset: AtomicU64,
    /// The protection of the mapping. (`PROT_READ` and others)
    access: AtomicI32,
}

/// A mapping of a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Mapped {
    pub(crate) address: usize,
    pub(crate) length: usize,
    pub(crate) offset: u64,
    pub(crate) access: c_int,
}

static MAPPINGS: [Mapping; MOST] = [const {
    Mapping {
        address: AtomicUsize::new(0),
        length: AtomicUsize::new(0),
        file: AtomicU64::new(0),
        offset: AtomicU64::new(0),
        access: AtomicI32::new(0),
    }
}; MOST];

/// Number of list entries that were used at least once. Later entries are free.
static USED: AtomicUsize = AtomicUsize::new(0);

/// Whether the program may have mappings that are not on the list.
static INCOMPLETE: AtomicBool = AtomicBool::new(false);

/// Number that increases with each fork of the program. If the number has increased since the program created a
/// mapping, a child may also have the mapping.
static FORKS: AtomicU32 = AtomicU32::new(0);

fn used() -> &'static [Mapping] {
    &MAPPINGS[..USED.load(Ordering::Acquire).min(MOST)]
}

/// Adds a mapping of a file. Callers must serialize their calls.
pub(crate) fn add(new: Mapped, file: u64) {
    let free = MAPPINGS.iter().position(|mapping| mapping.address.load(Ordering::Acquire) == 0);
    let Some(place) = free else {
        lose();
        return;
    };
    let mapping = &MAPPINGS[place];
    mapping.length.store(new.length, Ordering::Relaxed);
    mapping.file.store(file, Ordering::Relaxed);
    mapping.offset.store(new.offset, Ordering::Relaxed);
    mapping.access.store(new.access, Ordering::Relaxed);
    mapping.address.store(new.address, Ordering::Release);
    USED.fetch_max(place + 1, Ordering::Release);
}

/// Records that the program may have mappings that are not on the list.
pub(crate) fn lose() {
    INCOMPLETE.store(true, Ordering::Relaxed);
}

/// Returns whether a range of addresses overlaps with a mapping.
pub(crate) fn touches(address: usize, length: usize) -> bool {
    let end = address.saturating_add(length.max(1));
    used().iter().any(|mapping| {
        let known = mapping.address.load(Ordering::Acquire);
        known != 0 && known < end && address < known.saturating_add(mapping.length.load(Ordering::Relaxed))
    })
}

/// Removes the mappings that lie completely in a range of addresses. The program is about to unmap this range. Returns
/// whether the function removed a mapping.
pub(crate) fn remove(address: usize, length: usize) -> bool {
    let end = address.saturating_add(length);
    let mut removed = false;
    for mapping in used() {
        let known = mapping.address.load(Ordering::Acquire);
        let inside = known >= address && known.saturating_add(mapping.length.load(Ordering::Relaxed)) <= end;
        if known != 0 && inside {
            // Another thread may have removed the mapping in the meantime.
            let free = mapping.address.compare_exchange(known, 0, Ordering::AcqRel, Ordering::Relaxed);
            removed |= free.is_ok();
        }
    }
    removed
}

/// Returns whether the program may have a mapping of a file.
pub(crate) fn has(file: u64) -> bool {
    let is_of_file = |mapping: &Mapping| {
        mapping.address.load(Ordering::Acquire) != 0 && mapping.file.load(Ordering::Relaxed) == file
    };
    INCOMPLETE.load(Ordering::Relaxed) || used().iter().any(is_of_file)
}

/// Returns the mappings of a file, or `None` if the list may be incomplete.
pub(crate) fn all(file: u64) -> Option<Vec<Mapped>> {
    let mapping = |mapping: &Mapping| {
        let address = mapping.address.load(Ordering::Acquire);
        let of_file = address != 0 && mapping.file.load(Ordering::Relaxed) == file;
        of_file.then(|| Mapped {
            address,
            length: mapping.length.load(Ordering::Relaxed),
            offset: mapping.offset.load(Ordering::Relaxed),
            access: mapping.access.load(Ordering::Relaxed),
        })
    };
    (!INCOMPLETE.load(Ordering::Relaxed)).then(|| used().iter().filter_map(mapping).collect())
}

/// Returns a number that changes with each fork. A copy that a plain `clone` created changes the number when the copy
/// first uses the node.
pub(crate) fn forks() -> u32 {
    FORKS.load(Ordering::Relaxed).wrapping_add(copies().unwrap_or(0))
}

/// Increases the number that [`forks`] returns. Called around each fork of the program.
pub(crate) fn count_fork() {
    FORKS.fetch_add(1, Ordering::Relaxed);
}

/// Number of copies of the process that have used the node. The word is in memory that the process shares with its
/// copies.
static COPIES: AtomicPtr<AtomicU32> = AtomicPtr::new(null_mut());

/// Allocates the word that copies of the process will share.
pub(crate) fn begin() {
    COPIES.store(shared_page(), Ordering::Release);
}

/// Returns how many copies of the process have used the node, or `None` if the number is unknown.
pub(crate) fn copies() -> Option<u32> {
    // SAFETY: if the pointer is not null, the pointer is the address of a page that is never unmapped.
    let copies = unsafe { COPIES.load(Ordering::Acquire).as_ref() };
    copies.map(|copies| copies.load(Ordering::Relaxed))
}

/// Records that this process is a copy and uses the node.
pub(crate) fn note_copy() {
    // SAFETY: if the pointer is not null, the pointer is the address of a page that is never unmapped.
    if let Some(copies) = unsafe { COPIES.load(Ordering::Acquire).as_ref() } {
        copies.fetch_add(1, Ordering::Relaxed);
    }
}

/// Allocates a page of zeros that the process shares with its copies.
fn shared_page() -> *mut AtomicU32 {
    const BYTES: usize = 4096;
    // SAFETY: the kernel chooses the address of a new page.
    unsafe {
        let access = libc::PROT_READ | libc::PROT_WRITE;
        let page = libc::mmap(null_mut(), BYTES, access, libc::MAP_SHARED | libc::MAP_ANONYMOUS, -1, 0);
        if page == libc::MAP_FAILED { null_mut() } else { page.cast() }
    }
}
