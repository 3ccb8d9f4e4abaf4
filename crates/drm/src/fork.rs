//! Takes and releases the locks of this library around a fork of the program.
//!
//! Before a fork, the forking thread takes all locks of the library, so that the child finds consistent data. [`each`]
//! defines the order of the locks. The forking thread thereby waits until submissions of other threads are executed.
//! Threads that are about to begin a submission wait for the end of the fork. The forking thread waits for at most
//! [`LONGEST`]. If other threads still hold locks after [`LONGEST`], the fork continues. In this case, all requests of
//! the child fail with `EIO`. The forking thread does not wait for locks that this thread already holds. For example,
//! the thread holds a lock if a signal handler interrupts a request and forks.
//!
//! The C library calls the functions of this file for `fork`, but not for `vfork`, `posix_spawn` and plain `clone`. In
//! a process that `vfork`, `posix_spawn` or `clone` has created, the thread that holds a lock may not exist.
//! [`Lock`](crate::lock::Lock) detects that the thread does not exist.
//!
//! After a fork, the parent and the child share the memory of the buffers. Both processes use the same open file of the
//! node. The child has copies of the handles, the counts and the chip. [`copied`] detects that a process is a copy.
//! Before a fork, the library stores all outstanding fills. A plain `clone` may leave fills outstanding. After a plain
//! `clone`, the child drops the child's copy of the list of fills. Only the parent stores the fills.

use std::cell::Cell;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::time::{Duration, Instant};

use crate::libdrm;
use crate::lock::{AroundFork, thread_id};
use crate::mapped;
use crate::messages;
use crate::node;
use crate::wiped;

/// Maximum time for which a fork waits for requests of other threads.
pub(crate) const LONGEST: Duration = Duration::from_secs(5);

/// Number of forks in progress.
static FORKING: AtomicU32 = AtomicU32::new(0);

thread_local! {
    /// The locks that the forking thread has taken for the current fork, and the id of the forking thread. The first
    /// word has one bit per lock.
    static TAKEN: Cell<(u32, u32)> = const { Cell::new((0, 0)) };
}

/// Calls `visit` for all locks, in a fixed order. A thread that needs several locks must take the locks in this order.
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
    // The forking thread holds the locks during the fork. Therefore, no buffer is created during the fork.
    mapped::count_fork();
}

extern "C" fn in_parent() {
    let (taken, _) = TAKEN.get();
    // If the forking thread did not get a lock, another thread may have created buffers during the fork. The child has
    // the new buffers, so this function counts the fork again.
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

/// Registers `before`, `in_parent` and `in_child`. The C library calls `before` before a fork, `in_parent` and
/// `in_child` after the fork. Only the first call of `begin` has an effect.
pub(crate) fn begin() {
    static BEGUN: AtomicBool = AtomicBool::new(false);
    if BEGUN.swap(true, Ordering::Relaxed) {
        return;
    }
    mapped::begin();
    if !wiped::begin() {
        // This code runs if the library could not create the page that the kernel clears in copies of the process. The
        // C library calls `in_child` after `fork`, but not after a plain `clone`. Without the page, this library cannot
        // detect copies after a plain `clone`. The library therefore assumes that a copy of the process exists.
        mapped::note_copy();
    }
    claim();
    // SAFETY: the functions exist until the process ends, because this library is never unloaded.
    unsafe { libc::pthread_atfork(Some(before), Some(in_parent), Some(in_child)) };
}

/// Waits while another thread forks. The calling thread must not hold a lock that [`each`] visits.
pub(crate) fn wait() {
    if FORKING.load(Ordering::Relaxed) == 0 {
        return;
    }
    let begun = Instant::now();
    while FORKING.load(Ordering::Relaxed) != 0 && begun.elapsed() < LONGEST {
        std::thread::sleep(Duration::from_micros(50));
    }
}

/// Returns whether copies of the process also use the node. The copies share the memory of the buffers with this
/// process.
pub(crate) fn has_copies() -> bool {
    // If the page of [`wiped`] does not exist, the library cannot detect a copy. The function therefore assumes that a
    // copy exists.
    wiped::page().is_none() || mapped::copies().is_none_or(|copies| copies != 0)
}

/// Returns whether this process is a copy of another process and has not used the node since the fork.
pub(crate) fn copied() -> bool {
    wiped::page().is_some_and(|page| page.mark.load(Ordering::Relaxed) == 0)
}

/// Records that this process uses the node.
pub(crate) fn claim() {
    // If `clone` created this process, the parent did not run `before`. Therefore, this function counts the fork.
    mapped::count_fork();
    if let Some(page) = wiped::page() {
        page.mark.store(1, Ordering::Relaxed);
    }
}
