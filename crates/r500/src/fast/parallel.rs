//! Runs the groups of a launch on the host's threads. Each group writes the outputs of the group's lanes. The engine
//! adds up the counts of all groups. If several groups trap, the launch reports the trap of the group with the lowest
//! lane numbers. So the results do not depend on the number of threads.
//!
//! If a launch has no observer, several groups run together. Their number is the number of groups that fit in a row.
//! The engine then calls an operation once for all groups in the row: see [`Fast::run_together`]. If a group traps, the
//! launch starts again and runs one group at a time.

use std::ops::Range;
use std::sync::Arc;

use reconverge_simt::workers::try_hand_out;
use reconverge_simt::{FlowView, Lane, Mask, Observer, Options, Shares, Silent, stop};

use super::{Fast, GroupRoom, lockstep};
use crate::group::{Group, OUTPUTS};
use crate::launch::{Launch, RunError, trapped};
use crate::outputs::{Outcome, Outputs, Totals};
use crate::setup::Setup;

/// Number of groups per task. Outputs store one bit per lane in words of 64 lanes. With this number of groups per task,
/// two tasks never write to one word.
const BATCH: usize = 64;

/// The state of a host thread. The state contains a group that the thread reuses, and the counts of the groups that the
/// thread has run.
struct Worker<'a> {
    fast: &'a Fast,
    launch: &'a Launch,
    /// Number of lanes that run together, in one or several groups.
    width: usize,
    room: Box<GroupRoom>,
    /// Whether to count instructions and operations. Otherwise, the totals stay empty.
    counts: bool,
    totals: Totals,
}

/// The reason why a worker stopped.
enum Failed {
    /// A group trapped.
    Run(RunError),
    /// The groups cannot run together. The launch must run one group at a time.
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
    /// Prepares a worker. The launch must have passed [`Launch::check`].
    fn new(
        fast: &'a Fast,
        setup: &Arc<Setup>,
        launch: &'a Launch,
        options: &Options,
        (width, counts): (usize, bool),
    ) -> Self {
        let mut room = fast.room(setup, launch, options);
        if counts {
            room.group.issued.fill(0);
        }
        Worker { fast, launch, width, room, counts, totals: Totals::default() }
    }

    /// Runs the groups of the lanes in `span` until all groups have ended or a [stop] is requested. Returns the outputs
    /// of the lanes in `span`.
    fn run<O: Observer>(&mut self, span: Range<usize>, observer: &mut O) -> Result<Outputs, Failed> {
        let mut outputs = Outputs::new(span.len(), self.fast.outputs());
        let is_together = self.is_together();
        let Worker { fast, launch, width, room, counts, totals } = self;
        let (width, GroupRoom { group, runs }) = (*width, &mut **room);
        for first_lane in span.clone().step_by(width) {
            let lanes = width.min(span.end - first_lane);
            // A quad may contain lanes that were never launched. Derivatives read such lanes. So the registers of lanes
            // that were never launched must be zero.
            let cleared = if lanes == width { fast.cleared() } else { fast.written() };
            let all = (Mask::first(lanes), width);
            let reads = |row| fast.reads(row);
            launch.restart(group, first_lane, all, cleared, reads, Some(fast.level));
            if O::ENABLED {
                observer.group(first_lane / width);
            }
            if is_together {
                let ended = |group: &Group| {
                    if *counts {
                        let place = group.lanes.lowest().map_or(0, Lane::index);
                        totals.add_finding(group, first_lane + place);
                    }
                };
                let ran = fast.run_together(group, runs, ended);
                ran.ok_or(Failed::Alone)?;
                totals.statistics.add(&group.statistics());
            } else {
                while group.flow.issue().is_some() && !stop::asked() {
                    let ended = fast.run(group, runs, stop::SLICE, observer);
                    ended.map_err(|trap| Failed::Run(trapped(first_lane, trap)))?;
                }
                if *counts {
                    totals.add_counts(group, first_lane);
                }
            }
            outputs.put(group, first_lane - span.start, lanes);
        }
        Ok(outputs)
    }

    /// Returns whether several groups run together.
    fn is_together(&self) -> bool {
        self.width > self.launch.width()
    }

    /// Returns the counts of all groups that this worker has run.
    fn finish(mut self) -> Totals {
        if self.counts {
            let GroupRoom { group, runs } = &mut *self.room;
            self.fast.settle(group, runs, self.width / self.launch.width());
            if self.width > self.launch.width() {
                self.totals.statistics.instructions = group.issued.iter().sum();
            }
            self.totals.report = group.report();
        }
        self.fast.keep(self.room, self.launch);
        self.totals
    }
}

/// Runs a launch that has passed [`Launch::check`]. `counts` states whether to count instructions and operations.
pub(crate) fn run(
    fast: &Fast,
    setup: &Arc<Setup>,
    launch: &Launch,
    options: &Options,
    counts: bool,
) -> Result<Outcome, RunError> {
    let alone = launch.width();
    match run_at(fast, setup, launch, options, (fast.most_lanes(), counts)) {
        Err(Failed::Alone) => run_at(fast, setup, launch, options, (alone, counts)),
        done => done,
    }
    .map_err(Failed::error)
}

/// Runs a launch. `width` is the number of lanes that run together. `counts` states whether to count instructions and
/// operations.
fn run_at(
    fast: &Fast,
    setup: &Arc<Setup>,
    launch: &Launch,
    options: &Options,
    (width, counts): (usize, bool),
) -> Result<Outcome, Failed> {
    let batch = BATCH * launch.width();
    let workers = if launch.lanes <= batch { 1 } else { options.workers() };
    let worker = || Worker::new(fast, setup, launch, options, (width, counts));
    if workers == 1 {
        let mut worker = worker();
        let outputs = worker.run(0..launch.lanes, &mut Silent)?;
        return Ok(worker.finish().with(outputs));
    }
    let parts = (0..launch.lanes).step_by(batch).map(|first| first..launch.lanes.min(first + batch));
    let done = try_hand_out(workers, parts, worker, |worker, part| worker.run(part, &mut Silent))?;
    let mut totals = Totals::default();
    done.workers.into_iter().for_each(|worker| totals.add(&worker.finish()));
    Ok(totals.with(Outputs::joined(done.results)))
}

/// Runs a launch that has passed [`Launch::check`], one group at a time in order. Reports flow events to the observer.
pub(crate) fn run_in_order<O: Observer>(
    fast: &Fast,
    setup: &Arc<Setup>,
    launch: &Launch,
    options: &Options,
    observer: &mut O,
) -> Result<Outcome, RunError> {
    let mut worker = Worker::new(fast, setup, launch, options, (launch.width(), true));
    let outputs = worker.run(0..launch.lanes, observer).map_err(Failed::error)?;
    Ok(worker.finish().with(outputs))
}

/// Runs a launch on both engines. The groups run one at a time, in the order of their numbers. The launch must have
/// passed [`Launch::check`]. Reports to the observer which paths of the fast engine executed the instructions.
pub(crate) fn run_in_lockstep<O: Observer>(
    fast: &Fast,
    setup: &Arc<Setup>,
    launch: &Launch,
    options: &Options,
    observer: &mut O,
) -> Result<Outcome, RunError> {
    let mut outputs = Outputs::new(launch.lanes, 0..OUTPUTS);
    let (mut totals, mut shares) = (Totals::default(), Shares::default());
    for first_lane in (0..launch.lanes).step_by(launch.width()) {
        let lanes = launch.width().min(launch.lanes - first_lane);
        let start = || launch.group(setup, options, first_lane, Mask::first(lanes));
        let made = |extent| Fast::compiled(setup, launch, options, None, extent);
        let group = lockstep::run(fast, setup, first_lane, start, made, &mut shares)?;
        totals.add_group(&group, first_lane);
        outputs.put(&group, first_lane, lanes);
    }
    shares.announce(observer);
    Ok(totals.with(outputs))
}

#[cfg(test)]
mod tests {
    use reconverge_simt::compiling::Extent;

    use super::*;
    use crate::launch::{Environment, Hardware, Input};

    /// Computes a Mandelbrot set. The loop has the form that Mesa's compiler emits: each BREAK is inside a branch.
    const BREAKS: &str = "
.state US_CONFIG 0x2
.state US_PIXSIZE 0x3
.state US_FC_CTRL FULL_FC_EN=FULL
.int 0 255 0 0
ALU temp[1].rg = MAD src0.000, src0.110, src0.000 : src0=#0.0078125
loop int[0] all ignore_uncovered -> end
body:
ALU temp[3]._, alu_result[GE].r = MAD src0.b00, src0.111, -src0.a00 : src0=temp[0]
  + MAD src0.r, src0.r, src0.r : src0=#40
if alu ignore_uncovered -> less
break pop=1 ignore_uncovered -> behind
endif -> less
less:
ALU temp[1].b = MAD src0.00a, src0.00r, src0.000 : src0=temp[1]
  + temp[0].a = MAD src0.g, src0.g, src0.0 : src0=#2
ALU temp[2].r = MAD src0.r00, src0.r00, -src0.a00 : src0=temp[1]
  + MAD src0.r, src0.r, src0.r : src0=temp[0]
ALU temp[2].g = MAD src0.0b0, src1.0g0, src0.000 : src0=temp[1] src1=temp[1]
ALU temp[1].rg = MAD src0.rg0, src0.110, src1.rg0 : src0=temp[2] src1=temp[0]
ALU temp[1].b = DP3 src0.rg0, src0.rg0 : src0=temp[1]
ALU temp[3]._, alu_result[LT].r = MAD src0.a00, src0.111, -src0.b00 : src0=temp[1]
  + MAD src0.r, src0.r, src0.r : src0=#4
if alu ignore_uncovered -> inside
break pop=1 ignore_uncovered -> behind
endif -> inside
inside:
ALU temp[0].b = MAD src0.00b, src0.001, src0.001 : src0=temp[0]
end:
endloop int[0] ignore_uncovered -> body
behind:
OUT out[A].rgb = MAD src0.bbb, src0.111, src0.000 : src0=temp[0]
";

    /// Runs a program. `together` is the number of lanes that run together, in one or several groups. `extent` selects
    /// the part of the program to compile.
    fn ran_of(
        source: &str,
        (group_width, together): (usize, usize),
        lanes: usize,
        watchdog: u64,
        extent: Option<Extent>,
    ) -> Result<Outcome, Failed> {
        let program = crate::text::assemble(source).expect("it assembles").program;
        let setup = Arc::new(Setup::new(&program).expect("a program"));
        let at = |lane: usize, from: f32| (from + lane as f32 / 300.0).to_bits();
        let values = (0..lanes).map(|lane| [at(lane, -2.0), at(lane / 7, -0.2), 0, 0]).collect();
        let hardware = Hardware { group_width, ..Hardware::default() };
        let environment = Environment { hardware, ..Environment::default() }.into();
        let launch =
            Launch { environment, lanes, inputs: vec![Input { temp: 0, values }], ..Launch::default() };
        let options = Options { watchdog, ..Options::default() };
        let mut fast = Fast::lowered(&setup, &launch, &options, None, false);
        if let Some(extent) = extent {
            fast = fast.with_code(extent);
        }
        assert!(together == group_width || fast.runs_together());
        run_at(&fast, &setup, &launch, &options, (together, true))
    }

    fn ran(group_width: usize, lanes: usize, together: usize, watchdog: u64) -> Result<Outcome, Failed> {
        ran_of(BREAKS, (group_width, together), lanes, watchdog, None)
    }

    /// In this program, operations with templates precede and follow operations without templates. This occurs within
    /// one instruction and across instructions.
    const STRAIGHT: &str = "
.state US_PIXSIZE 0x3
ALU temp[1].rg = MAD src0.rg0, src0.rg0, src0.110 : src0=temp[0]
  + temp[1].a = RSQ src0.r : src0=temp[0]
ALU temp[2].r = DP3 src0.rga, src0.rga : src0=temp[1]
  + MAD src0.0, src0.0, src0.0 : src0=temp[1]
ALU temp[2].rg = MAD src0.rr0, src0.rr0, src1.aa0 : src0=temp[2] src1=temp[1]
  + temp[2].a = SIN src0.g : src0=temp[2] src1=temp[1]
ALU temp[0].rg = MAX src0.rg0, src1.ga0 : src0=temp[0] src1=temp[2]
  + MAD src0.0, src0.0, src0.0 : src0=temp[0] src1=temp[2]
OUT out[A].rgb = MAD src0.rrr, src1.rga, src0.ggg : src0=temp[0] src1=temp[2]
  + out[A].a = MAX src1.r, src1.a : src0=temp[0] src1=temp[2]
";

    #[test]
    fn groups_run_together_as_code_and_count_as_alone() {
        for (width, together, lanes) in [(16, 64, 1000), (20, 60, 310), (16, 64, 17)] {
            let [alone, code, code_alone] =
                [(width, None), (together, Some(())), (width, Some(()))].map(|(at, code)| {
                    let extent = code.map(|()| Extent::Throughout);
                    ran_of(STRAIGHT, (width, at), lanes, 100, extent).ok()
                });
            assert!(alone.is_some());
            assert_eq!(code, alone, "{width}");
            assert_eq!(code_alone, alone, "{width}");
        }
    }

    #[test]
    fn groups_that_part_and_meet_give_what_they_give_alone() {
        for (width, together, lanes) in [(16, 64, 1000), (4, 64, 777), (20, 60, 310), (16, 32, 17)] {
            let [alone, both] = [width, together].map(|at| ran(width, lanes, at, 1 << 20).ok());
            assert_eq!(both, alone, "{width}");
            let statistics = alone.expect("it ends").statistics;
            assert!(statistics.divergent_branches > 10 || lanes < 20, "{statistics:?}");
        }
    }

    #[test]
    fn lanes_leave_loops_in_code_and_count_as_in_blocks() {
        for (width, lanes) in [(16, 1000), (48, 777)] {
            let [blocks, code] = [None, Some(Extent::Throughout)]
                .map(|extent| ran_of(BREAKS, (width, width), lanes, 1 << 20, extent).ok());
            assert!(blocks.is_some());
            assert_eq!(code, blocks, "{width}");
        }
    }

    #[test]
    fn a_group_that_traps_runs_alone() {
        assert!(matches!(ran(16, 200, 16, 100), Err(Failed::Run(RunError::Trap(_)))));
        assert!(matches!(ran(16, 200, 64, 100), Err(Failed::Alone)));
    }
}
