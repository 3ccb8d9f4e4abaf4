//! The threads of a launch, in parallel: each writes its own lanes' outputs, counts are sums, and of several traps the
//! one of the first thread counts, so that nothing depends on how many of the host's threads there are.

use std::mem::MaybeUninit;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use rayon::prelude::*;
use reconverge_simt::fidelity::Report;
use reconverge_simt::{Lane, Mask, Statistics, Trap};

use super::{Fast, lockstep};
use crate::inst::TARGETS;
use crate::launch::{LaneOutput, Launch, Outcome, RunError, Setup};
use crate::reference::{Cause, DEPTH_ROW, Group, color_row};

/// Threads of the machine that are run in one go.
const BATCH: usize = 64;

/// A thread that is used again and again.
struct Worker<'a> {
    fast: &'a Fast,
    launch: &'a Launch,
    group: Group,
    runs: Vec<u64>,
    statistics: Statistics,
    trap: Option<(usize, Trap<Cause>)>,
    /// Channels of targets that the program may write.
    colors: Vec<(usize, usize)>,
}

impl<'a> Worker<'a> {
    /// The launch must have passed [`Launch::check`].
    fn new(fast: &'a Fast, setup: &Arc<Setup>, launch: &'a Launch) -> Worker<'a> {
        let mut group = Group::new(setup, &Launch { inputs: Vec::new(), ..launch.clone() }, 0, Mask::NONE);
        fast.prepare(&mut group);
        let all = (0..TARGETS).flat_map(|target| [0, 1, 2, 3].map(|channel| (target, channel)));
        let colors =
            all.filter(|(target, channel)| fast.lowered.written.contains(&color_row(*target, *channel)));
        Worker {
            fast,
            launch,
            group,
            runs: vec![0; fast.blocks()],
            statistics: Statistics::default(),
            trap: None,
            colors: colors.collect(),
        }
    }

    /// Runs a thread from its start to its end.
    fn run(&mut self, first_lane: usize, lanes: Mask) -> Result<(), Trap<Cause>> {
        self.group.restart(self.launch, first_lane, lanes, &self.fast.lowered.written);
        self.fast.run(&mut self.group, &mut self.runs, u64::MAX)?;
        self.statistics.add(&self.group.statistics());
        Ok(())
    }

    /// [`Group::output`] of each lane.
    fn outputs(&self, outputs: &mut [MaybeUninit<LaneOutput>]) {
        let group = &self.group;
        for (lane, output) in outputs.iter_mut().enumerate() {
            let at = Lane(lane as u8);
            let mut written = [0; TARGETS];
            for (target, channel) in &self.colors {
                let yes = group.written.color[*target][*channel].has(at);
                written[*target] |= u8::from(yes) << channel;
            }
            let value = output.write(LaneOutput {
                killed: group.killed.has(at),
                color: [[0; 4]; TARGETS],
                written,
                depth: group.written.depth.has(at).then(|| group.rows[DEPTH_ROW][lane]),
            });
            for (target, channel) in &self.colors {
                value.color[*target][*channel] = group.rows[color_row(*target, *channel)][lane];
            }
        }
    }

    /// Runs the threads of a batch, whose outputs these are, unless one before has trapped.
    fn batch(
        mut self,
        number: usize,
        outputs: &mut [MaybeUninit<LaneOutput>],
        trapped: &AtomicUsize,
    ) -> Self {
        let width = self.launch.options.group_width;
        for (thread, outputs) in outputs.chunks_mut(width).enumerate() {
            let first_lane = (number * BATCH + thread) * width;
            if trapped.load(Ordering::Relaxed) < first_lane {
                break;
            }
            if let Err(trap) = self.run(first_lane, Mask::first(outputs.len())) {
                trapped.fetch_min(first_lane, Ordering::Relaxed);
                self.trap = Some((first_lane, trap));
                break;
            }
            self.outputs(outputs);
        }
        self
    }

    /// Counts of all threads so far, and the first trap of a batch.
    fn finish(mut self) -> Done {
        self.fast.settle(&mut self.group, &mut self.runs);
        Done { statistics: self.statistics, report: self.group.report(), trap: self.trap }
    }
}

/// Counts, and the first trap.
#[derive(Default)]
struct Done {
    statistics: Statistics,
    report: Report,
    trap: Option<(usize, Trap<Cause>)>,
}

impl Done {
    fn and(mut self, other: Done) -> Done {
        self.statistics.add(&other.statistics);
        self.report.add(&other.report);
        self.trap = match (self.trap, other.trap) {
            (Some(one), Some(two)) => Some(if one.0 <= two.0 { one } else { two }),
            (one, two) => one.or(two),
        };
        self
    }
}

/// Runs a launch that has passed [`Launch::check`].
pub(crate) fn run(setup: &Arc<Setup>, launch: &Launch) -> Result<Outcome, RunError> {
    let fast = Fast::new(setup, launch);
    let width = launch.options.group_width;
    let mut lanes = Vec::with_capacity(launch.lanes);
    let outputs = &mut lanes.spare_capacity_mut()[..launch.lanes];
    // The first lane of the first thread that has trapped so far: later ones need not run any more.
    let trapped = AtomicUsize::new(usize::MAX);

    let start = || Worker::new(&fast, setup, launch);
    let done = if launch.options.parallel && launch.lanes > width {
        let batches = outputs.par_chunks_mut(BATCH * width).enumerate();
        let shares = batches.fold(start, |worker, (number, outputs)| worker.batch(number, outputs, &trapped));
        shares.map(Worker::finish).reduce(Done::default, Done::and)
    } else {
        let batches = outputs.chunks_mut(BATCH * width).enumerate();
        batches.fold(start(), |worker, (number, outputs)| worker.batch(number, outputs, &trapped)).finish()
    };
    if let Some((first_lane, trap)) = done.trap {
        return Err(RunError::Trap { first_lane, trap });
    }
    // SAFETY: no thread has trapped, so each has run and has written an output for each of its lanes, and the threads
    // have all lanes between them.
    unsafe { lanes.set_len(launch.lanes) };
    Ok(Outcome { lanes, statistics: done.statistics, report: done.report })
}

/// Runs a launch that has passed [`Launch::check`] on both engines, thread after thread.
pub(crate) fn run_in_lockstep(setup: &Arc<Setup>, launch: &Launch) -> Result<Outcome, RunError> {
    let fast = Fast::new(setup, launch);
    let mut outcome = Outcome::default();
    for first_lane in (0..launch.lanes).step_by(launch.options.group_width) {
        let lanes = launch.options.group_width.min(launch.lanes - first_lane);
        let group = Group::new(setup, launch, first_lane, Mask::first(lanes));
        let mut twin = group.clone();
        fast.prepare(&mut twin);
        let group = lockstep::run(&fast, group, twin).map_err(|failure| failure.of_thread(first_lane))?;
        outcome.statistics.add(&group.statistics());
        outcome.report.add(&group.report());
        outcome.lanes.extend((0..lanes).map(|lane| group.output(lane)));
    }
    Ok(outcome)
}
