//! A lock that cannot block a signal handler or a forked process forever.
//!
//! The lock's word is the id of the thread that holds the lock. A signal handler may interrupt the holding thread and
//! try to take the lock. In this case, the handler finds the id of the handler's thread. A process may be forked while
//! another thread holds the lock. In this case, the child finds the id of a thread that does not exist in the child. In
//! both cases, the lock returns an error instead of waiting forever.
//!
//! ```text
//!  31      | 30                          0
//!  waiters | thread that holds it, or zero
//! ```
//!
//! The mutex of the standard library would wait forever in both cases.

use std::cell::{Cell, UnsafeCell};
use std::ffi::c_int;
use std::fmt;
use std::marker::PhantomData;
use std::ops::{Deref, DerefMut};
use std::ptr::null;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, Instant};

use crate::real;
use crate::wiped;

/// This bit of the lock's word is set while a thread waits for the lock.
const WAITERS: u32 = 1 << 31;
/// The word of a lock contains this thread id if no thread of this process will release the lock. Linux uses thread ids
/// up to 2^22, so no thread has the id `NO_THREAD`.
const NO_THREAD: u32 = WAITERS - 1;
/// Time between two checks that the holder still exists.
const CHECK: Duration = Duration::from_millis(20);

/// A value that one thread at a time can use.
pub(crate) struct Lock<T> {
    word: AtomicU32,
    value: UnsafeCell<T>,
}

// SAFETY: only a `Guard` gives access to the value, and at most one `Guard` exists at a time.
unsafe impl<T: Send> Sync for Lock<T> {}

/// The reason why a lock was not taken.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Refused {
    /// The calling thread already holds the lock. The caller is a signal handler that interrupted the holder.
    Held,
    /// The holder does not exist in this process. Either the holding thread has ended, or this process was forked while
    /// a thread of the parent held the lock.
    Orphaned,
    /// The lock was not released within the time that the caller allows.
    Late,
}

impl<T> Lock<T> {
    /// Creates a lock that is free.
    pub(crate) const fn new(value: T) -> Lock<T> {
        Lock { word: AtomicU32::new(0), value: UnsafeCell::new(value) }
    }

    /// Takes the lock. Waits as long as another thread holds the lock.
    pub(crate) fn lock(&self) -> Result<Guard<'_, T>, Refused> {
        self.acquire(None).map(|()| Guard { lock: self, here: PhantomData })
    }

    /// Takes the lock. Waits up to `most` if another thread holds the lock.
    pub(crate) fn lock_within(&self, most: Duration) -> Result<Guard<'_, T>, Refused> {
        self.acquire(Some(most)).map(|()| Guard { lock: self, here: PhantomData })
    }

    /// Returns the reason why an attempt to take the lock would fail now. Does not wait.
    pub(crate) fn refusal(&self) -> Option<Refused> {
        let word = self.word.load(Ordering::Relaxed);
        match word & !WAITERS {
            0 => None,
            holder if holder == thread_id() => Some(Refused::Held),
            holder => self.is_orphaned(word, holder).then_some(Refused::Orphaned),
        }
    }

    /// Takes the lock without creating a guard. The caller must release the lock with [`Lock::release`].
    fn acquire(&self, most: Option<Duration>) -> Result<(), Refused> {
        let me = thread_id();
        let take = |as_word| self.word.compare_exchange(0, as_word, Ordering::Acquire, Ordering::Relaxed);
        if take(me).is_ok() {
            return Ok(());
        }
        let begun = Instant::now();
        let errno = real::errno();
        let answer = loop {
            let word = self.word.load(Ordering::Relaxed);
            let holder = word & !WAITERS;
            if holder == 0 {
                // The flag `WAITERS` is set because other threads may still wait.
                if take(me | WAITERS).is_ok() {
                    break Ok(());
                }
                continue;
            }
            if holder == me {
                break Err(Refused::Held);
            }
            if self.is_orphaned(word, holder) {
                break Err(Refused::Orphaned);
            }
            if most.is_some_and(|most| begun.elapsed() >= most) {
                break Err(Refused::Late);
            }
            let waited = word | WAITERS;
            if self.word.compare_exchange(word, waited, Ordering::Relaxed, Ordering::Relaxed).is_ok() {
                wait(&self.word, waited, most.map_or(CHECK, |most| most.min(CHECK)));
            }
        };
        real::set_errno(errno);
        answer
    }

    /// Returns whether the thread `holder` no longer exists and the lock still has the value `word`.
    fn is_orphaned(&self, word: u32, holder: u32) -> bool {
        !lives(holder) && self.word.load(Ordering::Relaxed) == word
    }

    fn release(&self) {
        if self.word.swap(0, Ordering::Release) & WAITERS != 0 {
            wake(&self.word);
        }
    }
}

/// The steps for a lock before and after a fork. The trait does not depend on the type of the locked value.
pub(crate) trait AroundFork {
    /// Takes the lock before a fork. Returns whether the lock was taken. The caller passes this result to `in_parent`
    /// or `in_child` as `taken`.
    fn before(&self, most: Duration) -> bool;

    /// Releases the lock in the parent if `taken` is true.
    fn in_parent(&self, taken: bool);

    /// Releases the lock in the child if `taken` is true. If `taken` is false, a thread of the parent holds the lock.
    /// If the forking thread holds the lock, the child's copy of the forking thread will release the lock. If a
    /// different thread holds the lock, the child has no copy of this thread, and the lock becomes orphaned.
    fn in_child(&self, taken: bool, parent_thread: u32);
}

impl<T> AroundFork for Lock<T> {
    fn before(&self, most: Duration) -> bool {
        self.acquire(Some(most)).is_ok()
    }

    fn in_parent(&self, taken: bool) {
        if taken {
            self.release();
        }
    }

    fn in_child(&self, taken: bool, parent_thread: u32) {
        let holder = self.word.load(Ordering::Relaxed) & !WAITERS;
        // The child has only one thread, so no thread of the child waits for the lock.
        self.word.store(
            match holder {
                0 => 0,
                _ if taken => 0,
                holder if holder == parent_thread => thread_id(),
                _ => NO_THREAD,
            },
            Ordering::Release,
        );
    }
}

impl<T: fmt::Debug> fmt::Debug for Lock<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Lock").finish_non_exhaustive()
    }
}

impl<T: Default> Default for Lock<T> {
    fn default() -> Lock<T> {
        Lock::new(T::default())
    }
}

/// Access to the value of a lock that the current thread holds. The guard cannot move to another thread.
pub(crate) struct Guard<'a, T> {
    lock: &'a Lock<T>,
    here: PhantomData<*mut T>,
}

impl<T> Deref for Guard<'_, T> {
    type Target = T;

    fn deref(&self) -> &T {
        // SAFETY: the thread with this guard holds the lock, and no second guard exists.
        unsafe { &*self.lock.value.get() }
    }
}

impl<T> DerefMut for Guard<'_, T> {
    fn deref_mut(&mut self) -> &mut T {
        // SAFETY: the thread with this guard holds the lock, and no second guard exists.
        unsafe { &mut *self.lock.value.get() }
    }
}

impl<T> Drop for Guard<'_, T> {
    fn drop(&mut self) {
        self.lock.release();
    }
}

/// Returns the id of the calling thread.
///
/// The id is cached, because a system call would increase the time of a small draw by 2 %. In a forked process, the
/// cached id is wrong. In a forked process, the page of [`wiped`] reads as zeros. If the page reads as zeros, this
/// function makes a system call and ignores the cached id.
pub(crate) fn thread_id() -> u32 {
    thread_local! {
        static KNOWN: Cell<u32> = const { Cell::new(0) };
    }
    let is_original = wiped::page().is_some_and(|page| page.is_original.load(Ordering::Relaxed) != 0);
    if is_original && KNOWN.get() != 0 {
        return KNOWN.get();
    }
    // SAFETY: the system call does not access memory of the process.
    let id = unsafe { libc::syscall(libc::SYS_gettid) as u32 };
    if is_original {
        KNOWN.set(id);
    }
    id
}

/// Returns whether this process has a thread with this id.
fn lives(thread: u32) -> bool {
    if thread == NO_THREAD {
        return false;
    }
    let errno = real::errno();
    // SAFETY: the system calls do not access memory. Signal 0 only checks whether the thread exists.
    let answer = unsafe { libc::syscall(libc::SYS_tgkill, libc::getpid(), thread as c_int, 0) };
    let gone = answer != 0 && real::errno() == libc::ESRCH;
    real::set_errno(errno);
    !gone
}

/// Waits until one of three events: another thread wakes this thread, the word differs from `value`, or the time has
/// elapsed.
fn wait(word: &AtomicU32, value: u32, most: Duration) {
    let time = libc::timespec { tv_sec: most.as_secs() as _, tv_nsec: most.subsec_nanos() as _ };
    // SAFETY: the word and the time are valid during the call.
    unsafe {
        libc::syscall(
            libc::SYS_futex,
            word.as_ptr(),
            libc::FUTEX_WAIT | libc::FUTEX_PRIVATE_FLAG,
            value,
            &raw const time,
        );
    }
}

/// Wakes one thread that waits for the word.
fn wake(word: &AtomicU32) {
    // SAFETY: the word is valid during the call. Unused arguments are null.
    unsafe {
        let wake = libc::FUTEX_WAKE | libc::FUTEX_PRIVATE_FLAG;
        libc::syscall(libc::SYS_futex, word.as_ptr(), wake, 1, null::<libc::timespec>());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_thread_at_a_time_has_the_value() {
        let lock = Lock::new(0_u64);
        std::thread::scope(|scope| {
            for _ in 0..8 {
                scope.spawn(|| {
                    for _ in 0..5_000 {
                        let mut value = lock.lock().unwrap();
                        let seen = *value;
                        std::hint::spin_loop();
                        *value = seen + 1;
                    }
                });
            }
        });
        assert_eq!(*lock.lock().unwrap(), 40_000);
    }

    #[test]
    fn a_thread_that_holds_a_lock_is_refused_and_another_one_waits_for_a_limited_time() {
        let lock = Lock::new(());
        let held = lock.lock().unwrap();
        assert_eq!(lock.lock().err(), Some(Refused::Held));
        assert_eq!(lock.refusal(), Some(Refused::Held));
        let most = Duration::from_millis(30);
        std::thread::scope(|scope| {
            scope.spawn(|| {
                assert_eq!(lock.refusal(), None);
                assert_eq!(lock.lock_within(most).err(), Some(Refused::Late));
            });
        });
        drop(held);
        assert!(lock.lock_within(most).is_ok());
    }

    #[test]
    fn a_lock_whose_holder_has_ended_is_refused() {
        let lock = Lock::new(());
        std::thread::scope(|scope| {
            scope.spawn(|| std::mem::forget(lock.lock().unwrap()));
        });
        // The kernel removes the id of an ended thread a short time after the join.
        while lock.refusal().is_none() {
            std::thread::yield_now();
        }
        assert_eq!(lock.lock().err(), Some(Refused::Orphaned));
    }

    /// Each row of the test is one state before the fork. In the four states, the lock is taken by `before`, free, held
    /// by the forking thread, or held by another thread.
    #[test]
    fn after_a_fork_a_lock_is_free_its_holders_or_orphaned() {
        let parent_thread = 5;
        for (taken, holder, then) in [
            (true, parent_thread, None),
            (false, 0, None),
            (false, parent_thread, Some(Refused::Held)),
            (false, parent_thread + 1, Some(Refused::Orphaned)),
        ] {
            let lock = Lock::new(());
            lock.word.store(holder, Ordering::Relaxed);
            lock.in_child(taken, parent_thread);
            assert_eq!(lock.refusal(), then, "{taken} {holder}");
        }
    }
}
