//! A launch in a forked child has the same results as in its parent, whatever threads the parent had.

#![cfg(target_os = "linux")]
// Processes are forked.
#![allow(unsafe_code)]

use std::time::{Duration, Instant};

use reconverge_simt::{Engine, Options, pool};
use reconverge_workbench::kernels::{KERNELS, Kernel};

/// Runs a part of [`KERNELS`] on several threads and returns the words of its results.
fn launch(kernel: &Kernel, engine: Engine) -> Vec<u32> {
    let session = kernel.prepare(1 << 11).expect("a session");
    let outcome = session.run(&Options { engine, ..Options::default() }).expect("it ends");
    kernel.counts(&*outcome).expect("counts")
}

/// Returns whether a check holds in a forked child. A child that hangs is killed, and the test fails.
fn holds_in_a_child(check: impl FnOnce() -> bool) -> bool {
    // SAFETY: the child runs the check and ends without its parent's destructors.
    let child = unsafe { libc::fork() };
    if child == 0 {
        let held = std::panic::catch_unwind(std::panic::AssertUnwindSafe(check)).unwrap_or(false);
        // SAFETY: as above.
        unsafe { libc::_exit(i32::from(!held)) };
    }
    assert!(child > 0, "no child");
    let (mut status, start) = (0, Instant::now());
    // SAFETY: the call only requests the state of the child.
    while unsafe { libc::waitpid(child, &raw mut status, libc::WNOHANG) } == 0 {
        if start.elapsed() > Duration::from_secs(60) {
            // SAFETY: the child belongs to this process, and nothing has waited for it.
            unsafe { libc::kill(child, libc::SIGKILL) };
            // SAFETY: as above.
            unsafe { libc::waitpid(child, &raw mut status, 0) };
            panic!("the child hangs");
        }
        std::thread::sleep(Duration::from_millis(2));
    }
    libc::WIFEXITED(status) && libc::WEXITSTATUS(status) == 0
}

/// Returns the kernels of all machines with their results in this process.
fn launches() -> Vec<(&'static Kernel, Engine, Vec<u32>)> {
    let pairs =
        KERNELS.iter().flat_map(|kernel| [Engine::Fast, Engine::Compiled].map(|engine| (kernel, engine)));
    pairs.map(|(kernel, engine)| (kernel, engine, launch(kernel, engine))).collect()
}

fn same(launches: &[(&'static Kernel, Engine, Vec<u32>)]) -> bool {
    launches.iter().all(|(kernel, engine, expected)| launch(kernel, *engine) == *expected)
}

#[test]
fn a_child_of_a_process_that_has_run_launches_runs_them() {
    let launches = launches();
    assert!(holds_in_a_child(|| same(&launches)));
    assert!(same(&launches), "the parent");
}

#[test]
fn a_grandchild_runs_launches() {
    let launches = launches();
    assert!(holds_in_a_child(|| same(&launches) && holds_in_a_child(|| same(&launches))));
}

#[test]
fn a_child_of_a_thread_of_the_pool_runs_launches() {
    let launches = launches();
    let launches = &launches;
    assert!(pool::install(|| holds_in_a_child(|| pool::threads() > 0 && same(launches))));
    let other = pool::pool(2).expect("a pool");
    assert!(other.install(|| holds_in_a_child(|| same(launches))));
    // Two children at once: each has the other thread's unfinished work.
    let both = || rayon::join(|| holds_in_a_child(|| same(launches)), || holds_in_a_child(|| same(launches)));
    assert_eq!(other.install(both), (true, true));
    assert!(same(launches), "the parent");
}

#[test]
fn a_pool_of_so_many_threads_is_where_a_launch_runs() {
    let inside = |threads: usize| pool::pool(threads).expect("a pool").install(pool::threads);
    assert_eq!([1, 3].map(inside), [1, 3]);
    let rayons = rayon::ThreadPoolBuilder::new().num_threads(3).build().expect("a pool");
    assert_eq!(rayons.install(|| Options::default().workers()), 3);
    assert!(holds_in_a_child(|| pool::threads() == pool::install(rayon::current_num_threads)));
}
