//! The batches of a draw: any thread shades one, and they are merged in their order, one at a time.
//!
//! ```text
//! give:   batch 7      waiting: 5 6      being shaded: 3 4      shaded: 2      merged: 0 1
//! ```
//! Memory is therefore the same with any number of threads, also if a program stops with an error: no later batch is merged. The
//! thread that draws gives batches, and shades some of them itself while many are waiting. A thread that has shaded a batch whose
//! turn has not come leaves it to the thread that is merging, and does not wait.

use std::collections::VecDeque;
use std::mem::{forget, replace, take};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};

use rayon::ScopeFifo;
use reconverge_simt::pool;
use reconverge_simt::vram::Vram;

use crate::kernels::Kernels;
use crate::merge::Merge;
use crate::shading::{Shading, Stopped};
use crate::state::{Batch, Draw, Shaded};

/// Batches for each thread that are not merged yet, at most.
const EACH: usize = 2;

/// What all threads that work on a draw share.
pub(crate) struct Batches<'a> {
    pub(crate) draw: &'a Draw,
    pub(crate) memory: Vram<'a>,
    pub(crate) program: &'a dyn Shading,
    /// What merges rows of lanes, if it can.
    pub(crate) kernels: Option<&'a Kernels<'a>>,
    /// Samples a pixel of the surfaces.
    pub(crate) samples: usize,
    /// Whether lanes that the depth test drops need not be shaded.
    pub(crate) may_skip_hidden: bool,
    /// Whether most lanes of the last batch were hidden.
    hides_most: AtomicBool,
    /// Threads that may shade batches.
    threads: usize,
    line: Mutex<Line>,
    /// Notified when a batch is merged.
    merged: Condvar,
}

/// Where the batches are.
#[derive(Default)]
struct Line {
    /// Batches that no thread has taken yet.
    waiting: VecDeque<Batch>,
    /// Those before that are not merged, in their order; `None` while one is being shaded.
    taken: VecDeque<Option<(Batch, Result<Shaded, Stopped>)>>,
    /// Number of batches that are merged.
    done: usize,
    /// Whether a thread is merging.
    is_merging: bool,
    /// Jobs that shade batches as long as some are waiting.
    helpers: usize,
    /// Samples that passed the tests.
    passed: u64,
    /// Whether no more batches are merged, and why.
    has_stopped: bool,
    stopped: Option<Stopped>,
    /// Memory for more batches.
    spare: Vec<Batch>,
}

impl Line {
    /// Number of batches that are not merged yet.
    fn outstanding(&self) -> usize {
        self.waiting.len() + self.taken.len()
    }

    /// Drops all batches that no thread has taken, and merges no more.
    fn stop(&mut self, why: Option<Stopped>) {
        self.waiting.clear();
        self.has_stopped = true;
        self.stopped = self.stopped.take().or(why);
    }
}

impl<'a> Batches<'a> {
    pub(crate) fn new(
        (draw, samples): (&'a Draw, usize),
        memory: Vram<'a>,
        program: &'a dyn Shading,
        kernels: Option<&'a Kernels<'a>>,
        may_skip_hidden: bool,
    ) -> Batches<'a> {
        Batches {
            draw,
            memory,
            program,
            kernels,
            samples,
            may_skip_hidden,
            hides_most: AtomicBool::new(false),
            threads: pool::threads(),
            line: Mutex::default(),
            merged: Condvar::new(),
        }
    }

    /// Whether most lanes were hidden when a batch was last merged.
    pub(crate) fn hides_most(&self) -> bool {
        self.hides_most.load(Ordering::Relaxed)
    }

    /// Shades and merges a batch on this thread, before all that are given later. Returns how many samples passed the tests.
    pub(crate) fn run(&self, batch: &Batch) -> Result<u64, Stopped> {
        let shaded = self.program.run(&batch.fragments)?;
        let passed = self.merge(batch, &shaded, false);
        self.program.merged(shaded);
        Ok(passed)
    }

    /// Merges a batch; `uniform`: with the results of one row for all lanes. Returns how many samples passed the tests.
    pub(crate) fn merge(&self, batch: &Batch, shaded: &Shaded, uniform: bool) -> u64 {
        let Batches { draw, samples, .. } = *self;
        let passed = Merge { draw, samples, batch, shaded, uniform }.run(self.kernels, self.memory);
        let lanes = batch.skipped + batch.fragments.lanes as u64;
        self.hides_most.store(self.may_skip_hidden && 2 * passed < lanes, Ordering::Relaxed);
        passed
    }

    /// Gives a batch to the threads of a scope, and takes the memory of another one in its place.
    ///
    /// # Errors
    /// The program has stopped.
    pub(crate) fn give<'scope>(
        &'scope self,
        batch: &mut Batch,
        scope: &ScopeFifo<'scope>,
    ) -> Result<(), Stopped> {
        let mut line = self.line();
        let next = line.spare.pop().unwrap_or_else(|| Batch::new(self.draw));
        line.waiting.push_back(replace(batch, next));
        if line.helpers + 1 < self.threads {
            line.helpers += 1;
            scope.spawn_fifo(|_| self.help());
        }
        self.work_until(line, EACH * self.threads)
    }

    /// Returns when all batches that were given are merged: how many of their samples passed the tests.
    ///
    /// # Errors
    /// The program has stopped.
    pub(crate) fn finish(&self) -> Result<u64, Stopped> {
        self.work_until(self.line(), 0)?;
        Ok(take(&mut self.line().passed))
    }

    /// Shades batches until at most so many are outstanding.
    fn work_until<'l>(&'l self, mut line: MutexGuard<'l, Line>, most: usize) -> Result<(), Stopped> {
        while line.outstanding() > most && !line.has_stopped {
            line = match line.waiting.is_empty() {
                false => self.shade(line),
                true => self.merged.wait(line).unwrap_or_else(PoisonError::into_inner),
            };
        }
        match line.has_stopped {
            // Without a reason, a thread panicked: the scope panics as well when it ends.
            true => Err(line.stopped.take().unwrap_or_else(|| Stopped(Box::new(())))),
            false => Ok(()),
        }
    }

    /// Shades batches as long as some are waiting.
    fn help(&self) {
        let mut line = self.line();
        while !line.waiting.is_empty() {
            line = self.shade(line);
        }
        line.helpers -= 1;
    }

    /// Shades the batch that has waited longest, and merges all whose turn has come.
    fn shade<'l>(&'l self, mut line: MutexGuard<'l, Line>) -> MutexGuard<'l, Line> {
        let Some(batch) = line.waiting.pop_front() else { return line };
        let number = line.done + line.taken.len();
        line.taken.push_back(None);
        drop(line);
        let panics = StopsAfterPanic(self);
        let shaded = pool::on_one_thread(|| self.program.run(&batch.fragments));
        let mut line = self.line();
        let place = number - line.done;
        line.taken[place] = Some((batch, shaded));
        if !line.is_merging {
            line.is_merging = true;
            line = self.merge_all(line);
            line.is_merging = false;
        }
        forget(panics);
        line
    }

    /// Merges the batches whose turn has come.
    fn merge_all<'l>(&'l self, mut line: MutexGuard<'l, Line>) -> MutexGuard<'l, Line> {
        while let Some((mut batch, shaded)) = line.taken.front_mut().and_then(Option::take) {
            match shaded {
                _ if line.has_stopped => {}
                Err(stopped) => line.stop(Some(stopped)),
                Ok(shaded) => {
                    drop(line);
                    let passed = self.merge(&batch, &shaded, false);
                    self.program.merged(shaded);
                    batch.clear();
                    line = self.line();
                    line.passed += passed;
                    line.spare.push(batch);
                }
            }
            line.taken.pop_front();
            line.done += 1;
            self.merged.notify_all();
        }
        line
    }

    fn line(&self) -> MutexGuard<'_, Line> {
        self.line.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Stops the draw when it is dropped: other threads do not wait for the batch of a thread that panics.
struct StopsAfterPanic<'a>(&'a Batches<'a>);

impl Drop for StopsAfterPanic<'_> {
    fn drop(&mut self) {
        self.0.line().stop(None);
        self.0.merged.notify_all();
    }
}
