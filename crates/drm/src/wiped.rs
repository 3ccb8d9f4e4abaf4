//! A page that reads as zeros in each copy of the process. A copy may be the result of `fork` or `clone`.

use std::ptr::null_mut;
use std::sync::atomic::{AtomicPtr, AtomicU32, Ordering};

/// The words of the page. In a copy of the process, all words are zero until the copy writes to the page.
pub(crate) struct Wiped {
    /// The value is 1 in a process that uses the node, see [`copied`](crate::fork::copied).
    pub(crate) mark: AtomicU32,
    /// The value is 1 in the process that created the page if the kernel clears copies of the page.
    pub(crate) is_original: AtomicU32,
}

static PAGE: AtomicPtr<Wiped> = AtomicPtr::new(null_mut());

/// Returns the page, if [`begin`] has created the page.
pub(crate) fn page() -> Option<&'static Wiped> {
    // SAFETY: if the pointer is not null, the pointer is the address of a page that is never unmapped.
    unsafe { PAGE.load(Ordering::Acquire).as_ref() }
}

/// Creates the page. Returns whether the kernel clears the page in copies of the process. A process must call this
/// function only once.
pub(crate) fn begin() -> bool {
    const BYTES: usize = 4096;
    // SAFETY: the kernel chooses the address of a new page. The call of `madvise` does not change the page in this
    // process. Zeros are valid values of the words.
    unsafe {
        let access = libc::PROT_READ | libc::PROT_WRITE;
        let page = libc::mmap(null_mut(), BYTES, access, libc::MAP_PRIVATE | libc::MAP_ANONYMOUS, -1, 0);
        if page == libc::MAP_FAILED {
            return false;
        }
        let wipes = libc::madvise(page, BYTES, libc::MADV_WIPEONFORK) == 0;
        let page = page.cast::<Wiped>();
        (*page).is_original.store(wipes.into(), Ordering::Relaxed);
        PAGE.store(page, Ordering::Release);
        wipes
    }
}
