//! Locks of the library around a fork of the program.
//!
//! A fork first takes all locks of the library, in the order of [`each`], so that the child finds nothing half changed. It
//! waits until submissions of other threads are executed. Threads that are about to begin one wait for the fork. The wait
//! is limited to [`LONGEST`]. If it is over, the fork continues, and all requests of the child fail with `EIO`. The fork
//! does not wait for a lock of its own thread, which a signal handler may have interrupted in the middle of a request.
//!
//! `vfork`, `posix_spawn` and plain `clone` do not call these functions. There, [`Lock`](crate::lock::Lock) finds that its
//! holder does not exist.
//!
//! The memory of the buffers is shared by parent and child, as a file that both have open is. Handles, counts and the chip
//! are copies. [`copied`] detects a copy. A fork stores all fills that are outstanding. A copy by plain `clone` drops its own
//! list of fills, because its parent stores them.

use std::cell::Cell;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::time::{Duration, Instant};

use crate::libdrm;
use crate::lock::{AroundFork, thread_id};
use crate::mapped;
use crate::messages;
use crate::node;
use crate::wiped;

/// The time for which a fork waits for requests of other threads.
pub(crate) const LONGEST: Duration = Duration::from_secs(5);

/// Forks that are under way.
static FORKING: AtomicU32 = AtomicU32::new(0);

thread_local! {
    /// Which locks the thread has taken for the fork that is under way, a bit for each, and its id.
    static TAKEN: Cell<(u32, u32)> = const { Cell::new((0, 0)) };
}

/// All locks, in the order in which a thread that needs several takes them.
fn each(mut visit: impl FnMut(u32, &dyn AroundFork)) {
    visit(0, &node::OPENING);
    if let Some(node) = node::opened() {
        visit(1, node);
        visit(2, &node.device().watch.counts);
    }
    visit(3, &libdrm::GIVEN);
    visit(4, &messages::SAID);
}

extern "C" fn before() {
    FORKING.fetch_add(1, Ordering::Relaxed);
    let begun = Instant::now();
    let mut taken = 0;
    each(|number, lock| {
        if lock.before(LONGEST.saturating_sub(begun.elapsed())) {
            taken |= 1 << number;
        }
    });
    TAKEN.set((taken, thread_id()));
    // With the locks: a buffer that is created now is created before or after the fork.
    mapped::count_fork();
}

extern "C" fn in_parent() {
    let (taken, _) = TAKEN.get();
    // A lock may be missing. Buffers that another thread has created meanwhile belong to the child as well.
    mapped::count_fork();
    each(|number, lock| lock.in_parent(taken & 1 << number != 0));
    FORKING.fetch_sub(1, Ordering::Relaxed);
}

extern "C" fn in_child() {
    let (taken, parent_thread) = TAKEN.get();
    each(|number, lock| lock.in_child(taken & 1 << number != 0, parent_thread));
    FORKING.store(0, Ordering::Relaxed);
    if let Some(page) = wiped::page() {
        page.mark.store(0, Ordering::Relaxed);
        page.is_original.store(0, Ordering::Relaxed);
    }
}

/// Registers the functions above for each fork. Further calls do nothing.
pub(crate) fn begin() {
    static BEGUN: AtomicBool = AtomicBool::new(false);
    if BEGUN.swap(true, Ordering::Relaxed) {
        return;
    }
    mapped::begin();
    if !wiped::begin() {
        // Copies by `clone` are not detected, and `in_child` clears the page for `fork` only.
        mapped::note_copy();
    }
    claim();
    // SAFETY: the functions live as long as this library, which is not unloaded before the process ends.
    unsafe { libc::pthread_atfork(Some(before), Some(in_parent), Some(in_child)) };
}

/// Waits while another thread forks. Not for a thread that holds a lock of [`each`].
pub(crate) fn wait() {
    if FORKING.load(Ordering::Relaxed) == 0 {
        return;
    }
    let begun = Instant::now();
    while FORKING.load(Ordering::Relaxed) != 0 && begun.elapsed() < LONGEST {
        std::thread::sleep(Duration::from_micros(50));
    }
}

/// Whether the node is used by several processes, which are copies of one. They share the memory of the buffers.
pub(crate) fn has_copies() -> bool {
    // Without a mark, a copy would not be detected.
    wiped::page().is_none() || mapped::copies().is_none_or(|copies| copies != 0)
}

/// Whether this process is a copy that has not used the node since the fork.
pub(crate) fn copied() -> bool {
    wiped::page().is_some_and(|page| page.mark.load(Ordering::Relaxed) == 0)
}

/// Marks this process as one that uses the node.
pub(crate) fn claim() {
    // A copy by `clone` calls no functions before.
    mapped::count_fork();
    if let Some(page) = wiped::page() {
        page.mark.store(1, Ordering::Relaxed);
    }
}
