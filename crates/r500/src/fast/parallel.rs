//! The threads of a launch, in parallel: each writes its own lanes' outputs, counts are sums, and of several traps the
//! one of the first thread counts, so that nothing depends on how many of the host's threads there are.

use std::iter;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use reconverge_simt::workers::hand_out;
use reconverge_simt::{Mask, Observer, Silent, Statistics, Trap};

use super::{Fast, lockstep};
use crate::cause::Cause;
use crate::group::{Group, OUTPUTS};
use crate::launch::{Launch, RunError};
use crate::outputs::{Finding, Outcome, Outputs, Part, Totals};
use crate::setup::Setup;

/// Threads of the machine that are run in one go. Parts of outputs share no word of 64 lanes, whatever their width.
const BATCH: usize = 64;

/// A thread that is used again and again.
struct Worker<'a> {
    fast: &'a Fast,
    launch: &'a Launch,
    group: Group,
    runs: Vec<u64>,
    statistics: Statistics,
    finding: Option<Finding>,
}

impl<'a> Worker<'a> {
    /// The launch must have passed [`Launch::check`].
    fn new(fast: &'a Fast, setup: &Arc<Setup>, launch: &'a Launch) -> Worker<'a> {
        let mut group = launch.without_lanes().group(setup, 0, Mask::NONE);
        fast.prepare(&mut group);
        let runs = vec![0; fast.blocks()];
        Worker { fast, launch, group, runs, statistics: Statistics::default(), finding: None }
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
            self.launch.restart(&mut self.group, first_lane, Mask::first(lanes), &self.fast.lowered.written);
            let ended = self.fast.run(&mut self.group, &mut self.runs, u64::MAX, observer);
            ended.map_err(|trap| First { first_lane, trap })?;
            self.statistics.add(&self.group.statistics());
            self.finding = Finding::first(self.finding, Finding::of(&self.group, first_lane));
            outputs.put(&self.group, first_lane, lanes);
        }
        Ok(())
    }

    /// Counts of all threads so far.
    fn finish(mut self) -> Totals {
        self.fast.settle(&mut self.group, &mut self.runs);
        Totals { statistics: self.statistics, report: self.group.report(), finding: self.finding }
    }
}

/// A trap, and the first lane of its thread.
struct First {
    first_lane: usize,
    trap: Trap<Cause>,
}

fn together(mut one: Totals, other: Totals) -> Totals {
    one.statistics.add(&other.statistics);
    one.report.add(&other.report);
    one.finding = Finding::first(one.finding, other.finding);
    one
}

/// What a launch gives: the first trap, or everything.
fn ended(trap: Option<First>, outputs: Outputs, totals: Totals) -> Result<Outcome, RunError> {
    if let Some(First { first_lane, trap }) = trap {
        return Err(RunError::Trap { first_lane, trap });
    }
    let Totals { statistics, report, finding } = totals;
    Ok(Outcome { outputs: outputs.settled(), statistics, report, finding })
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
    let counts = done.workers.into_iter().map(Worker::finish).fold(Totals::default(), together);
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
    let mut totals = Totals::default();
    let mut all = outputs.all();
    for first_lane in all.span().step_by(launch.options.group_width) {
        let lanes = launch.options.group_width.min(launch.lanes - first_lane);
        let group = launch.group(setup, first_lane, Mask::first(lanes));
        let mut twin = group.clone();
        fast.prepare(&mut twin);
        let group = lockstep::run(&fast, group, twin).map_err(|failure| failure.of_thread(first_lane))?;
        totals.statistics.add(&group.statistics());
        totals.report.add(&group.report());
        totals.finding = totals.finding.or(Finding::of(&group, first_lane));
        all.put(&group, first_lane, lanes);
    }
    ended(None, outputs, totals)
}
