//! Accessible pages between inaccessible pages, allocated with `mmap`.

use std::ptr::NonNull;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{LazyLock, Mutex};

/// Number of inaccessible bytes before a list, and also after a list. This number is larger than a 16-bit address plus
/// a 16-bit offset.
const GUARD: usize = 128 << 10;

/// Maximum number of mappings in a process. The system allows about 65,000 memory areas per process. Each mapping
/// consists of three areas.
const MOST: usize = 4096;

/// Maximum number of unused mappings that the process keeps for later lists. `KEPT_BYTES` is the maximum size of such a
/// mapping in bytes.
const KEPT: usize = 64;
const KEPT_BYTES: usize = 256 << 10;

/// Number of mappings in the process.
static MAPPED: AtomicUsize = AtomicUsize::new(0);

static PAGE: LazyLock<usize> = LazyLock::new(|| {
    // SAFETY: the call only returns a number.
    usize::try_from(unsafe { libc::sysconf(libc::_SC_PAGESIZE) }).unwrap_or(4096)
});

/// Unused mappings of earlier lists. On an AMD EPYC, creating a mapping and its pages takes about 30 µs. Reusing a
/// mapping takes 0.03 µs longer than allocating memory on the heap.
///
/// Callers only try to lock this mutex and do not wait for the lock. If a thread held the lock during a fork, no thread
/// of the child process ever releases the lock.
static SPARE: Mutex<Vec<Mapping>> = Mutex::new(Vec::new());

/// Pages of a list. After the pages are dropped, a later list can reuse their mapping.
pub(crate) struct Pages(Option<Mapping>);

/// Accessible pages between inaccessible pages.
struct Mapping {
    /// Pointer to the inaccessible bytes before the accessible bytes.
    base: NonNull<u8>,
    /// Number of accessible bytes.
    bytes: usize,
}

impl Pages {
    /// Returns pages for `bytes` zero bytes. Returns `None` if the system provides no pages between inaccessible pages.
    pub(crate) fn new(bytes: usize) -> Option<Pages> {
        let bytes = bytes.checked_next_multiple_of(*PAGE)?;
        if let Some(mapping) = spare(bytes) {
            // SAFETY: the bytes of the mapping are writable. No reference to the bytes exists.
            unsafe { mapping.first().write_bytes(0, bytes) };
            return Some(Pages(Some(mapping)));
        }
        Some(Pages(Some(Mapping::new(bytes)?)))
    }

    /// Returns the address of the first accessible byte.
    pub(crate) fn first(&self) -> NonNull<u8> {
        self.0.as_ref().map_or(NonNull::dangling(), Mapping::first)
    }

    /// Returns the address of the last `bytes` accessible bytes.
    ///
    /// The pages must have at least `bytes` accessible bytes.
    pub(crate) fn end(&self, bytes: usize) -> NonNull<u8> {
        let all = self.0.as_ref().map_or(bytes, |mapping| mapping.bytes);
        // SAFETY: the pages have at least `bytes` bytes.
        unsafe { self.first().add(all - bytes) }
    }
}

impl Drop for Pages {
    fn drop(&mut self) {
        let Some(mapping) = self.0.take() else { return };
        if mapping.bytes <= KEPT_BYTES
            && let Ok(mut spare) = SPARE.try_lock()
        {
            if spare.len() == KEPT {
                spare.remove(0);
            }
            spare.push(mapping);
        }
    }
}

/// Returns an unused mapping with this number of bytes, or `None` if there is no such mapping.
fn spare(bytes: usize) -> Option<Mapping> {
    let mut spare = SPARE.try_lock().ok()?;
    let place = spare.iter().rposition(|mapping| mapping.bytes == bytes)?;
    Some(spare.remove(place))
}

// SAFETY: a mapping is the only owner of the mapped bytes. Any thread may access the bytes.
unsafe impl Send for Mapping {}

impl Mapping {
    fn new(bytes: usize) -> Option<Mapping> {
        let size = bytes.checked_add(2 * GUARD)?;
        if MAPPED.fetch_add(1, Ordering::Relaxed) >= MOST {
            MAPPED.fetch_sub(1, Ordering::Relaxed);
            return None;
        }
        let flags = libc::MAP_PRIVATE | libc::MAP_ANON | libc::MAP_NORESERVE;
        // SAFETY: the system chooses an unused address, so the new mapping does not replace any memory.
        let base = unsafe { libc::mmap(std::ptr::null_mut(), size, libc::PROT_NONE, flags, -1, 0) };
        let base = if base == libc::MAP_FAILED { None } else { NonNull::new(base.cast::<u8>()) };
        let Some(base) = base else {
            MAPPED.fetch_sub(1, Ordering::Relaxed);
            return None;
        };
        let mapping = Mapping { base, bytes };
        let access = libc::PROT_READ | libc::PROT_WRITE;
        // SAFETY: the pages belong to the mapping, and no reference to the pages exists yet.
        let changed = unsafe { libc::mprotect(mapping.first().as_ptr().cast(), bytes, access) };
        (changed == 0).then_some(mapping)
    }

    /// Returns the address of the first accessible byte.
    fn first(&self) -> NonNull<u8> {
        // SAFETY: the mapping is larger than the guard.
        unsafe { self.base.add(GUARD) }
    }
}

impl Drop for Mapping {
    fn drop(&mut self) {
        // SAFETY: `new` mapped this range, and no references to this range remain.
        unsafe { libc::munmap(self.base.as_ptr().cast(), self.bytes + 2 * GUARD) };
        MAPPED.fetch_sub(1, Ordering::Relaxed);
    }
}
