//! Pages between pages without access, from the system.

use std::ptr::NonNull;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{LazyLock, Mutex};

/// Bytes without access on either side: more than a 16-bit address and a 16-bit offset reach.
const GUARD: usize = 128 << 10;

/// Mappings of a process, at most: the system allows some 65,000 areas, and each mapping has three.
const MOST: usize = 4096;

/// Mappings that are kept for later lists, and the bytes of one, at most.
const KEPT: usize = 64;
const KEPT_BYTES: usize = 256 << 10;

/// Number of mappings.
static MAPPED: AtomicUsize = AtomicUsize::new(0);

static PAGE: LazyLock<usize> = LazyLock::new(|| {
    // SAFETY: it only asks for a number.
    usize::try_from(unsafe { libc::sysconf(libc::_SC_PAGESIZE) }).unwrap_or(4096)
});

/// Mappings that lists have used: a new one costs some 30 µs with its pages (an AMD EPYC), one of these 0.03 µs more than the
/// heap.
///
/// Nothing waits for the lock: another thread may have held it when this process was forked.
static SPARE: Mutex<Vec<Mapping>> = Mutex::new(Vec::new());

/// Pages of a list. They are kept for later lists when they are dropped.
pub(crate) struct Pages(Option<Mapping>);

/// Pages with access between pages without.
struct Mapping {
    /// The first byte without access.
    base: NonNull<u8>,
    /// Bytes with access.
    bytes: usize,
}

impl Pages {
    /// Returns pages for `bytes` zeros, or `None` if the system does not provide them.
    pub(crate) fn new(bytes: usize) -> Option<Pages> {
        let bytes = bytes.checked_next_multiple_of(*PAGE)?;
        if let Some(mapping) = spare(bytes) {
            // SAFETY: these bytes can be written, and nothing else refers to them.
            unsafe { mapping.first().write_bytes(0, bytes) };
            return Some(Pages(Some(mapping)));
        }
        Some(Pages(Some(Mapping::new(bytes)?)))
    }

    /// The first byte with access.
    pub(crate) fn first(&self) -> NonNull<u8> {
        self.0.as_ref().map_or(NonNull::dangling(), Mapping::first)
    }

    /// Address of the last `bytes` bytes with access.
    ///
    /// The pages have at least `bytes` bytes.
    pub(crate) fn end(&self, bytes: usize) -> NonNull<u8> {
        let all = self.0.as_ref().map_or(bytes, |mapping| mapping.bytes);
        // SAFETY: the pages have at least so many bytes.
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

/// A kept mapping of this size.
fn spare(bytes: usize) -> Option<Mapping> {
    let mut spare = SPARE.try_lock().ok()?;
    let place = spare.iter().rposition(|mapping| mapping.bytes == bytes)?;
    Some(spare.remove(place))
}

// SAFETY: the bytes of a mapping belong to whoever has it, on any thread.
unsafe impl Send for Mapping {}

impl Mapping {
    fn new(bytes: usize) -> Option<Mapping> {
        let size = bytes.checked_add(2 * GUARD)?;
        if MAPPED.fetch_add(1, Ordering::Relaxed) >= MOST {
            MAPPED.fetch_sub(1, Ordering::Relaxed);
            return None;
        }
        let flags = libc::MAP_PRIVATE | libc::MAP_ANON | libc::MAP_NORESERVE;
        // SAFETY: the system chooses the address, so that no other memory is replaced.
        let base = unsafe { libc::mmap(std::ptr::null_mut(), size, libc::PROT_NONE, flags, -1, 0) };
        let base = if base == libc::MAP_FAILED { None } else { NonNull::new(base.cast::<u8>()) };
        let Some(base) = base else {
            MAPPED.fetch_sub(1, Ordering::Relaxed);
            return None;
        };
        let mapping = Mapping { base, bytes };
        let access = libc::PROT_READ | libc::PROT_WRITE;
        // SAFETY: the mapping has these pages, and nothing refers to them yet.
        let changed = unsafe { libc::mprotect(mapping.first().as_ptr().cast(), bytes, access) };
        (changed == 0).then_some(mapping)
    }

    /// The first byte with access.
    fn first(&self) -> NonNull<u8> {
        // SAFETY: the mapping is larger than the guard.
        unsafe { self.base.add(GUARD) }
    }
}

impl Drop for Mapping {
    fn drop(&mut self) {
        // SAFETY: `new` has mapped so many bytes there, and nothing refers to them any more.
        unsafe { libc::munmap(self.base.as_ptr().cast(), self.bytes + 2 * GUARD) };
        MAPPED.fetch_sub(1, Ordering::Relaxed);
    }
}
