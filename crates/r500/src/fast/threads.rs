//! The threads of a launch, in parallel: each writes its own lanes' outputs, counts are sums, and of several traps the
//! one of the first thread counts, so that nothing depends on how many of the host's threads there are.

use std::iter;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use reconverge_simt::fidelity::Report;
use reconverge_simt::workers::hand_out;
use reconverge_simt::{Mask, Observer, Silent, Statistics, Trap};

use super::{Fast, lockstep};
use crate::launch::{Launch, Outcome, RunError, Setup};
use crate::outputs::{Outputs, Part};
use crate::reference::{Cause, Group, OUTPUTS};

/// Threads of the machine that are run in one go. Parts of outputs share no word of 64 lanes, whatever their width.
const BATCH: usize = 64;

/// A thread that is used again and again.
struct Worker<'a> {
    fast: &'a Fast,
    launch: &'a Launch,
    group: Group,
    runs: Vec<u64>,
    statistics: Statistics,
}

impl<'a> Worker<'a> {
    /// The launch must have passed [`Launch::check`].
    fn new(fast: &'a Fast, setup: &Arc<Setup>, launch: &'a Launch) -> Worker<'a> {
        let mut group = Group::new(setup, &launch.without_lanes(), 0, Mask::NONE);
        fast.prepare(&mut group);
        Worker { fast, launch, group, runs: vec![0; fast.blocks()], statistics: Statistics::default() }
    }

    /// Runs the threads that these outputs belong to, as long as they start before lane `until`. Gives the first trap
    /// with the first lane of its thread.
    fn run<O: Observer>(
        &mut self,
        outputs: &mut Part<'_>,
        until: &AtomicUsize,
        observer: &mut O,
    ) -> Result<(), First> {
        let width = self.launch.options.group_width;
        for first_lane in outputs.span().step_by(width) {
            if until.load(Ordering::Relaxed) <= first_lane {
                break;
            }
            let lanes = width.min(outputs.span().end - first_lane);
            self.group.restart(self.launch, first_lane, Mask::first(lanes), &self.fast.lowered.written);
            let ended = self.fast.run(&mut self.group, &mut self.runs, u64::MAX, observer);
            ended.map_err(|trap| First { first_lane, trap })?;
            self.statistics.add(&self.group.statistics());
            outputs.put(&self.group, first_lane, lanes);
        }
        Ok(())
    }

    /// Counts of all threads so far.
    fn finish(mut self) -> Counts {
        self.fast.settle(&mut self.group, &mut self.runs);
        Counts { statistics: self.statistics, report: self.group.report() }
    }
}

/// A trap, and the first lane of its thread.
struct First {
    first_lane: usize,
    trap: Trap<Cause>,
}

/// Counts of some threads.
#[derive(Default)]
struct Counts {
    statistics: Statistics,
    report: Report,
}

impl Counts {
    fn and(mut self, other: Counts) -> Counts {
        self.statistics.add(&other.statistics);
        self.report.add(&other.report);
        self
    }
}

/// What a launch gives: the first trap, or everything.
fn ended(trap: Option<First>, outputs: Outputs, counts: Counts) -> Result<Outcome, RunError> {
    if let Some(First { first_lane, trap }) = trap {
        return Err(RunError::Trap { first_lane, trap });
    }
    let Counts { statistics, report } = counts;
    Ok(Outcome { outputs: outputs.settled(), statistics, report })
}

/// Runs a launch that has passed [`Launch::check`].
pub(crate) fn run(setup: &Arc<Setup>, launch: &Launch) -> Result<Outcome, RunError> {
    let batch = BATCH * launch.options.group_width;
    if !launch.options.parallel || rayon::current_num_threads() == 1 || launch.lanes <= batch {
        return run_in_order(setup, launch, &mut Silent);
    }
    let fast = Fast::new(setup, launch);
    let mut outputs = Outputs::new(launch.lanes, fast.outputs());
    let mut left = outputs.all();
    let trapped = AtomicUsize::new(usize::MAX);

    let work = |worker: &mut Worker<'_>, mut outputs: Part<'_>| {
        let first = worker.run(&mut outputs, &trapped, &mut Silent).err()?;
        trapped.fetch_min(first.first_lane, Ordering::Relaxed);
        Some(first)
    };
    let done = hand_out(
        rayon::current_num_threads(),
        iter::from_fn(|| left.split_off(batch)),
        || Worker::new(&fast, setup, launch),
        work,
    );
    let trap = done.results.into_iter().flatten().next();
    let counts = done.workers.into_iter().map(Worker::finish).fold(Counts::default(), Counts::and);
    ended(trap, outputs, counts)
}

/// Runs a launch that has passed [`Launch::check`] thread after thread, telling an observer who runs and what the stacks
/// do.
pub(crate) fn run_in_order<O: Observer>(
    setup: &Arc<Setup>,
    launch: &Launch,
    observer: &mut O,
) -> Result<Outcome, RunError> {
    let fast = Fast::new(setup, launch);
    let mut outputs = Outputs::new(launch.lanes, fast.outputs());
    let mut worker = Worker::new(&fast, setup, launch);
    let result = worker.run(&mut outputs.all(), &AtomicUsize::new(usize::MAX), observer);
    ended(result.err(), outputs, worker.finish())
}

/// Runs a launch that has passed [`Launch::check`] on both engines, thread after thread.
pub(crate) fn run_in_lockstep(setup: &Arc<Setup>, launch: &Launch) -> Result<Outcome, RunError> {
    let fast = Fast::new(setup, launch);
    let mut outputs = Outputs::new(launch.lanes, 0..OUTPUTS);
    let (mut statistics, mut report) = (Statistics::default(), Report::default());
    let mut all = outputs.all();
    for first_lane in all.span().step_by(launch.options.group_width) {
        let lanes = launch.options.group_width.min(launch.lanes - first_lane);
        let group = Group::new(setup, launch, first_lane, Mask::first(lanes));
        let mut twin = group.clone();
        fast.prepare(&mut twin);
        let group = lockstep::run(&fast, group, twin).map_err(|failure| failure.of_thread(first_lane))?;
        statistics.add(&group.statistics());
        report.add(&group.report());
        all.put(&group, first_lane, lanes);
    }
    Ok(Outcome { outputs: outputs.settled(), statistics, report })
}
