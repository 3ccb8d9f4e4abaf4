//! The threads for parallel work of this process, which may be a forked child.
//!
//! A forked child has only the thread that called `fork`. The parent's pools, including rayon's global pool, have no
//! threads in the child. Work in a pool without threads never ends. All parallel work therefore starts in [`install`],
//! which uses a pool that the current process has created.

use std::cell::Cell;
use std::sync::atomic::{AtomicPtr, AtomicUsize, Ordering};

use rayon::{ScopeFifo, ThreadPool, ThreadPoolBuildError, ThreadPoolBuilder};

/// The pool that a process has created.
struct Own {
    process: u32,
    pool: ThreadPool,
}

/// The pool that was created last. The pool is never freed, because any thread may still use it. In a forked child,
/// code that drops the parent's pool would also wait for threads that do not exist.
static OWN: AtomicPtr<Own> = AtomicPtr::new(std::ptr::null_mut());

/// Number of threads of the pool. 0 means the default.
static THREADS: AtomicUsize = AtomicUsize::new(0);

thread_local! {
    /// Number of the process in which this thread became a thread of a pool. 0 means that the number is not known yet.
    static HOME: Cell<u32> = const { Cell::new(0) };

    /// Whether this thread does all of its work alone, without a pool (see [`on_one_thread`]).
    static ALONE: Cell<bool> = const { Cell::new(false) };
}

fn process() -> u32 {
    // WebAssembly has neither process numbers nor `fork`.
    if cfg!(target_family = "wasm") { 1 } else { std::process::id() }
}

/// Pool in which a thread starts parallel work.
enum Caller {
    /// The thread does all of its work alone.
    Alone,
    /// The thread belongs to a pool of this process and uses that pool.
    Here,
    /// The thread does not belong to a pool. So the thread uses the pool of the process.
    Elsewhere,
    /// The thread belongs to a pool of the parent process, but uses the pool of the current process. While a thread of
    /// a pool waits, the thread runs other work of the same pool. An orphan must not wait, because the orphan would
    /// then run work of the parent process.
    Orphan,
}

fn place() -> Caller {
    if ALONE.get() {
        return Caller::Alone;
    }
    if rayon::current_thread_index().is_none() {
        return Caller::Elsewhere;
    }
    let process = process();
    if HOME.get() == 0 {
        HOME.set(process);
    }
    if HOME.get() == process { Caller::Here } else { Caller::Orphan }
}

/// Returns the pool of this process. If the process has no pool, creates one. Returns `None` if the host does not
/// create threads.
#[allow(unsafe_code)]
fn own() -> Option<&'static ThreadPool> {
    let process = process();
    let mut known = OWN.load(Ordering::Acquire);
    loop {
        // SAFETY: the stored value is never freed or changed.
        let own: Option<&'static Own> = unsafe { known.as_ref() };
        if let Some(own) = own.filter(|own| own.process == process) {
            return Some(&own.pool);
        }
        let pool = pool(THREADS.load(Ordering::Relaxed)).ok()?;
        let made = Box::into_raw(Box::new(Own { process, pool }));
        match OWN.compare_exchange(known, made, Ordering::AcqRel, Ordering::Acquire) {
            Ok(_) => known = made,
            Err(other) => {
                // SAFETY: this loop created the value, and no other code has the value's address.
                drop(unsafe { Box::from_raw(made) });
                known = other;
            }
        }
    }
}

/// Returns a new pool of `threads` threads. If `threads` is 0, the number of threads is the default:
/// `RAYON_NUM_THREADS`, or one thread per processor.
///
/// # Errors
/// Returns an error if the host does not create the threads.
pub fn pool(threads: usize) -> Result<ThreadPool, ThreadPoolBuildError> {
    ThreadPoolBuilder::new().num_threads(threads).start_handler(|_| HOME.set(process())).build()
}

/// Sets the number of threads of the pool that [`install`] creates. 0 means the default. An existing pool keeps its
/// number of threads.
pub fn set_threads(threads: usize) {
    THREADS.store(threads, Ordering::Relaxed);
}

/// Does work in a rayon pool that has threads in this process. If this thread belongs to such a pool, the function uses
/// the pool of this thread. Otherwise, the function uses the pool of the process. The function creates the pool of the
/// process on first use, and once more in a forked child.
///
/// ```
/// use rayon::prelude::*;
///
/// let sum: u32 = reconverge_simt::pool::install(|| (1..=100u32).into_par_iter().sum());
/// assert_eq!(sum, 5050);
/// ```
pub fn install<R: Send>(work: impl FnOnce() -> R + Send) -> R {
    match place() {
        Caller::Alone | Caller::Here => work(),
        Caller::Elsewhere => match own() {
            Some(pool) => pool.install(work),
            None => work(),
        },
        Caller::Orphan => std::thread::scope(|scope| {
            let done = scope.spawn(|| install(work)).join();
            done.unwrap_or_else(|panic| std::panic::resume_unwind(panic))
        }),
    }
}

/// Does work on this thread. The work may start jobs. Other threads of the pool that [`install`] uses can run these
/// jobs. The function returns after all jobs have ended. If there are no other threads, `work` receives `None` instead
/// of a scope.
///
/// ```
/// use std::sync::atomic::{AtomicU32, Ordering};
///
/// let sum = AtomicU32::new(0);
/// reconverge_simt::pool::with_helpers(|scope| match scope {
///     Some(scope) => scope.spawn_fifo(|_| drop(sum.fetch_add(1, Ordering::Relaxed))),
///     None => drop(sum.fetch_add(1, Ordering::Relaxed)),
/// });
/// assert_eq!(sum.into_inner(), 1);
/// ```
pub fn with_helpers<'scope, R>(work: impl FnOnce(Option<&ScopeFifo<'scope>>) -> R) -> R {
    match place() {
        Caller::Here if rayon::current_num_threads() > 1 => {
            rayon::in_place_scope_fifo(|scope| work(Some(scope)))
        }
        Caller::Elsewhere => match own().filter(|pool| pool.current_num_threads() > 1) {
            Some(pool) => pool.in_place_scope_fifo(|scope| work(Some(scope))),
            None => work(None),
        },
        // An orphan does the work without other threads. While an orphan waits for other threads, it runs work of the
        // parent's pool.
        Caller::Alone | Caller::Here | Caller::Orphan => work(None),
    }
}

/// Does work entirely on this thread. During the work, [`threads`] returns 1.
///
/// ```
/// assert_eq!(reconverge_simt::pool::on_one_thread(reconverge_simt::pool::threads), 1);
/// ```
pub fn on_one_thread<R>(work: impl FnOnce() -> R) -> R {
    /// When this value is dropped, it restores the previous value of `ALONE`, even after a panic.
    struct Restored(bool);
    impl Drop for Restored {
        fn drop(&mut self) {
            ALONE.set(self.0);
        }
    }
    let _restored = Restored(ALONE.replace(true));
    work()
}

/// Returns the number of threads of the pool that [`install`] uses.
pub fn threads() -> usize {
    match place() {
        Caller::Alone => 1,
        Caller::Here => rayon::current_num_threads(),
        Caller::Elsewhere | Caller::Orphan => own().map_or(1, ThreadPool::current_num_threads),
    }
}
