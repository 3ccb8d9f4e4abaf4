//! Runs the shards of a folder on several threads of this process. Other processes may share the folder.

use std::collections::BTreeSet;
use std::path::Path;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use crate::{Campaign, Error, Shard, Taken};

/// Time between two checks of the shards that other processes run.
const WAIT: Duration = Duration::from_millis(200);

/// Progress of a campaign, for a progress callback.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Progress {
    /// Number of experiments that this process and other processes have finished. The number includes only experiments
    /// of the shards that must run.
    pub done: u64,
    /// Number of experiments in all shards that must run.
    pub of: u64,
    /// Number of experiments that this process ran.
    pub ran: u64,
    /// The field is `Some` while this process waits for other processes. The field has the number of shards that other
    /// processes run, and the names of these processes.
    pub waiting: Option<(usize, String)>,
}

/// The state that the threads share.
struct SharedWork<'a> {
    campaign: &'a Campaign,
    folder: &'a Path,
    progress: &'a (dyn Fn(Progress) -> bool + Sync),
    of: u64,
    done: AtomicU64,
    ran: AtomicU64,
    stopped: AtomicBool,
    open: Mutex<Vec<Shard>>,
    elsewhere: Mutex<Vec<(Shard, String)>>,
    errors: Mutex<Vec<Error>>,
}

impl Campaign {
    /// Runs shards on `jobs` threads until all shards are finished. Some of the shards may run in other processes that
    /// share the folder.
    ///
    /// Calls `progress` after each experiment, from any of the threads. The function also calls `progress` while this
    /// process waits for other processes. If `progress` returns `false`, the run stops. Returns the number of
    /// experiments that this process ran, or `None` if the run was stopped. Finished shards remain in the folder.
    ///
    /// # Errors
    /// Returns the first error of [`Campaign::take_shard_while`] on any thread.
    pub fn run_shards(
        &self,
        mut shards: Vec<Shard>,
        folder: &Path,
        jobs: usize,
        progress: &(dyn Fn(Progress) -> bool + Sync),
    ) -> Result<Option<u64>, Error> {
        let of = shards.iter().map(experiments).sum();
        let jobs = jobs.clamp(1, shards.len().max(1));
        // Threads take shards from the end of the list.
        shards.reverse();
        let shared = SharedWork {
            campaign: self,
            folder,
            progress,
            of,
            done: AtomicU64::new(0),
            ran: AtomicU64::new(0),
            stopped: AtomicBool::new(false),
            open: Mutex::new(shards),
            elsewhere: Mutex::default(),
            errors: Mutex::default(),
        };
        while shared.goes_on() {
            let before = locked(&shared.open).len();
            std::thread::scope(|scope| (0..jobs).for_each(|_| drop(scope.spawn(|| shared.work()))));
            let others = std::mem::take(&mut *locked(&shared.elsewhere));
            if others.is_empty() {
                break;
            }
            // While this process ran some of the open shards, other processes may have finished shards. So this process
            // waits only if other processes run all open shards.
            let waits = others.len() == before;
            if waits && shared.goes_on() && !shared.tell(Some((others.len(), owners(&others)))) {
                break;
            }
            locked(&shared.open).extend(others.into_iter().map(|(shard, _)| shard).rev());
            if waits {
                std::thread::sleep(WAIT);
            }
        }
        if let Some(error) = locked(&shared.errors).drain(..).next() {
            return Err(error);
        }
        let finished = shared.goes_on();
        Ok(finished.then(|| shared.ran.load(Ordering::Relaxed)))
    }
}

impl SharedWork<'_> {
    fn goes_on(&self) -> bool {
        !self.stopped.load(Ordering::Relaxed)
    }

    /// Calls the progress callback. Returns `false` if the run must stop.
    fn tell(&self, waiting: Option<(usize, String)>) -> bool {
        let (done, ran) = (self.done.load(Ordering::Relaxed), self.ran.load(Ordering::Relaxed));
        let goes_on = (self.progress)(Progress { done, of: self.of, ran, waiting });
        if !goes_on {
            self.stopped.store(true, Ordering::Relaxed);
        }
        goes_on && self.goes_on()
    }

    /// Runs open shards until the list is empty.
    fn work(&self) {
        // The lock on the list is released while a shard runs.
        let next = || locked(&self.open).pop();
        while let Some(shard) = next().filter(|_| self.goes_on()) {
            let counted = |experiments: u64, own: u64| {
                self.done.fetch_add(experiments, Ordering::Relaxed);
                self.ran.fetch_add(own, Ordering::Relaxed);
                self.tell(None)
            };
            // `take_shard_while` calls this closure before each experiment. So each call after the first call means
            // that one more experiment has finished.
            let started = AtomicU64::new(0);
            let before_each = || match started.fetch_add(1, Ordering::Relaxed) {
                0 => self.goes_on(),
                _ => counted(1, 1),
            };
            match self.campaign.take_shard_while(&shard, self.folder, &before_each) {
                Ok(Taken::Ran(_)) => drop(counted(1, 1)),
                Ok(Taken::Finished(_)) => drop(counted(experiments(&shard), 0)),
                Ok(Taken::Elsewhere(by)) => locked(&self.elsewhere).push((shard, by)),
                Ok(Taken::Stopped) => return,
                Err(error) => {
                    self.stopped.store(true, Ordering::Relaxed);
                    locked(&self.errors).push(error);
                    return;
                }
            }
        }
    }
}

/// Returns a text for the user about the processes that run shards. The text is the name of a single process, or the
/// number of processes.
fn owners(shards: &[(Shard, String)]) -> String {
    let names: BTreeSet<&str> = shards.iter().map(|(_, by)| by.as_str()).collect();
    match names.len() {
        1 => names.into_iter().collect(),
        count => format!("{count} other processes"),
    }
}

/// Returns the number of experiments in a shard.
fn experiments(shard: &Shard) -> u64 {
    shard.range.end - shard.range.start
}

fn locked<T>(shared: &Mutex<T>) -> MutexGuard<'_, T> {
    shared.lock().unwrap_or_else(PoisonError::into_inner)
}
