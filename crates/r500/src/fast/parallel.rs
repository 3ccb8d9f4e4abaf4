//! The groups of a launch on the host's threads: each writes its own lanes' outputs, counts are sums, and of several traps
//! that of the first group counts, so that nothing depends on how many threads there are.
//!
//! Without an observer, as many groups as have room in a row run together, so that an operation is called once for all of
//! them: see [`Fast::run_together`]. Where one traps, the launch runs again, group after group.

use std::iter;
use std::sync::Arc;

use reconverge_simt::workers::try_hand_out;
use reconverge_simt::{FlowView, Lane, Mask, Observer, Options, Shares, Silent, stop};

use super::{Fast, lockstep};
use crate::group::{Group, OUTPUTS, WIDEST};
use crate::launch::{Launch, RunError, trapped};
use crate::outputs::{Outcome, Outputs, Part, Totals};
use crate::setup::Setup;

/// Groups that are run in one go. Parts of outputs share no word of 64 lanes, whatever their width.
const BATCH: usize = 64;

/// A group that is used again and again.
struct Worker<'a> {
    fast: &'a Fast,
    launch: &'a Launch,
    /// Lanes that run at once.
    width: usize,
    group: Group,
    runs: Vec<u64>,
    totals: Totals,
}

/// Why a worker gives up.
enum Failed {
    /// A group traps.
    Run(RunError),
    /// Groups cannot run together.
    Alone,
}

impl Failed {
    fn error(self) -> RunError {
        match self {
            Failed::Run(error) => error,
            Failed::Alone => unreachable!("groups that run alone can"),
        }
    }
}

impl<'a> Worker<'a> {
    /// The launch must have passed [`Launch::check`].
    fn new(fast: &'a Fast, setup: &Arc<Setup>, launch: &'a Launch, options: &Options, width: usize) -> Self {
        let group = fast.group(setup, launch, options);
        Worker { fast, launch, width, group, runs: vec![0; fast.blocks()], totals: Totals::default() }
    }

    /// Runs the groups that these outputs belong to, until runs are to [stop].
    fn run<O: Observer>(&mut self, mut outputs: Part<'_>, observer: &mut O) -> Result<(), Failed> {
        for first_lane in outputs.span().step_by(self.width) {
            let lanes = self.width.min(outputs.span().end - first_lane);
            // Lanes that were never launched may share a quad with some that were, and have zeros.
            let cleared = if lanes == self.width { self.fast.cleared() } else { self.fast.written() };
            let all = (Mask::first(lanes), self.width);
            let reads = |row| self.fast.reads(row);
            self.launch.restart(&mut self.group, first_lane, all, cleared, reads);
            if O::ENABLED {
                observer.group(first_lane / self.width);
            }
            if self.is_together() {
                let totals = &mut self.totals;
                let ended = |group: &Group| {
                    let place = group.lanes.lowest().map_or(0, Lane::index);
                    totals.add_finding(group, first_lane + place);
                };
                let ran = self.fast.run_together(&mut self.group, &mut self.runs, ended);
                ran.ok_or(Failed::Alone)?;
                totals.statistics.add(&self.group.statistics());
            } else {
                while self.group.flow.issue().is_some() && !stop::asked() {
                    let ended = self.fast.run(&mut self.group, &mut self.runs, stop::SLICE, observer);
                    ended.map_err(|trap| Failed::Run(trapped(first_lane, trap)))?;
                }
                self.totals.add_counts(&self.group, first_lane);
            }
            outputs.put(&self.group, first_lane, lanes);
        }
        Ok(())
    }

    /// Whether several groups run together.
    fn is_together(&self) -> bool {
        self.width > self.launch.width()
    }

    /// Counts of all groups so far.
    fn finish(mut self) -> Totals {
        self.fast.settle(&mut self.group, &mut self.runs);
        if self.is_together() {
            self.totals.statistics.instructions = self.group.issued.iter().sum();
        }
        let report = self.group.report();
        self.fast.keep(self.group);
        Totals { report, ..self.totals }
    }
}

/// Runs a launch that has passed [`Launch::check`].
pub(crate) fn run(
    fast: &Fast,
    setup: &Arc<Setup>,
    launch: &Launch,
    options: &Options,
) -> Result<Outcome, RunError> {
    let alone = launch.width();
    let together = if fast.runs_together() { WIDEST / alone * alone } else { alone };
    match run_at(fast, setup, launch, options, together) {
        Err(Failed::Alone) => run_at(fast, setup, launch, options, alone),
        done => done,
    }
    .map_err(Failed::error)
}

/// Runs a launch, so many lanes at once.
fn run_at(
    fast: &Fast,
    setup: &Arc<Setup>,
    launch: &Launch,
    options: &Options,
    width: usize,
) -> Result<Outcome, Failed> {
    let batch = BATCH * launch.width();
    let workers = if launch.lanes <= batch { 1 } else { options.workers() };
    let worker = || Worker::new(fast, setup, launch, options, width);
    let mut outputs = Outputs::new(launch.lanes, fast.outputs());
    if workers == 1 {
        let mut worker = worker();
        worker.run(outputs.all(), &mut Silent)?;
        return Ok(worker.finish().with(outputs));
    }
    let mut rest = outputs.all();
    let parts = iter::from_fn(|| rest.split_off(batch));
    let done = try_hand_out(workers, parts, worker, |worker, part| worker.run(part, &mut Silent))?;
    let mut totals = Totals::default();
    done.workers.into_iter().for_each(|worker| totals.add(&worker.finish()));
    Ok(totals.with(outputs))
}

/// Runs a launch that has passed [`Launch::check`] group after group, announcing flow events.
pub(crate) fn run_in_order<O: Observer>(
    fast: &Fast,
    setup: &Arc<Setup>,
    launch: &Launch,
    options: &Options,
    observer: &mut O,
) -> Result<Outcome, RunError> {
    let mut outputs = Outputs::new(launch.lanes, fast.outputs());
    let mut worker = Worker::new(fast, setup, launch, options, launch.width());
    worker.run(outputs.all(), observer).map_err(Failed::error)?;
    Ok(worker.finish().with(outputs))
}

/// Runs a launch that has passed [`Launch::check`] on both engines, group after group, and announces by which paths the
/// fast engine ran.
pub(crate) fn run_in_lockstep<O: Observer>(
    fast: &Fast,
    setup: &Arc<Setup>,
    launch: &Launch,
    options: &Options,
    observer: &mut O,
) -> Result<Outcome, RunError> {
    let mut outputs = Outputs::new(launch.lanes, 0..OUTPUTS);
    let (mut totals, mut shares) = (Totals::default(), Shares::default());
    let mut all = outputs.all();
    for first_lane in all.span().step_by(launch.width()) {
        let lanes = launch.width().min(launch.lanes - first_lane);
        let start = || launch.group(setup, options, first_lane, Mask::first(lanes));
        let made = |extent| Fast::compiled(setup, launch, options, None, extent);
        let group = lockstep::run(fast, setup, first_lane, start, made, &mut shares)?;
        totals.add_group(&group, first_lane);
        all.put(&group, first_lane, lanes);
    }
    shares.announce(observer);
    Ok(totals.with(outputs))
}
