//! Runs a launch: group after group, in pieces, or observed.

use std::ops::Range;
use std::sync::Arc;

use reconverge_simt::{Engine, Mask, Observer, Silent};

use crate::fast::parallel;
use crate::group::OUTPUTS;
use crate::launch::{Input, Launch, RunError};
use crate::outputs::{Finding, Outcome, Outputs, Totals};
use crate::setup::Setup;

/// Runs every lane of a launch.
///
/// # Errors
/// A launch that does not fit, or the first trap in the order of the threads.
pub fn run(setup: &Arc<Setup>, launch: &Launch) -> Result<Outcome, RunError> {
    launch.check()?;
    match launch.options.engine {
        Engine::Reference => run_observed(setup, launch, &mut Silent),
        Engine::Fast => parallel::run(setup, launch),
        Engine::Lockstep => parallel::run_in_lockstep(setup, launch),
    }
}

/// Runs a launch of any number of lanes in the memory that a piece of it needs.
///
/// `inputs` gives what the rasteriser wrote for a range of lanes, those of the next piece; `launch.inputs` is not looked
/// at. The piece is run as by [`run`], and `outcome` is handed what it left, with its range. A piece has `piece` lanes,
/// rounded up to whole threads, and at least one; the last has what is left. No thread sees anything of another, so that
/// the pieces are together what one run would give.
///
/// # Errors
/// Those of [`run`], of the first piece that has one: lanes are counted from the first of the launch. Pieces before it
/// have been handed on.
///
/// ```
/// use std::sync::Arc;
///
/// use reconverge_r500::launch::{Input, Launch};
/// use reconverge_r500::run::run_in_pieces;
/// use reconverge_r500::setup::Setup;
/// use reconverge_r500::text::assemble;
///
/// let source = "OUT out[A].r = MAX*off src0.rgb, src0.rgb : src0=temp[0]\n";
/// let setup = Arc::new(Setup::new(&assemble(source).unwrap().program).unwrap());
/// let launch = Launch { lanes: 1 << 12, ..Launch::default() };
/// let (mut sum, mut pieces) = (0.0, 0);
/// let totals = run_in_pieces(
///     &setup,
///     &launch,
///     1 << 10,
///     |lanes| {
///         let values = lanes.map(|lane| [(lane as f32).to_bits(), 0, 0, 0]).collect();
///         vec![Input { temp: 0, values }]
///     },
///     |_, outcome| {
///         sum += outcome.lanes().map(|lane| f32::from_bits(lane.color[0][0])).sum::<f32>();
///         pieces += 1;
///     },
/// );
/// assert_eq!((sum, pieces), (4095.0 * 2048.0, 4));
/// assert_eq!(totals.unwrap().statistics.lane_instructions, 1 << 12);
/// ```
pub fn run_in_pieces(
    setup: &Arc<Setup>,
    launch: &Launch,
    piece: usize,
    mut inputs: impl FnMut(Range<usize>) -> Vec<Input>,
    mut outcome: impl FnMut(Range<usize>, Outcome),
) -> Result<Totals, RunError> {
    launch.without_lanes().check()?;
    let piece = piece.clamp(1, launch.lanes.max(1)).next_multiple_of(launch.options.group_width);
    let mut totals = Totals::default();
    for start in (0..launch.lanes).step_by(piece) {
        let range = start..launch.lanes.min(start.saturating_add(piece));
        let launch = Launch { lanes: range.len(), inputs: inputs(range.clone()), ..launch.without_lanes() };
        let left = run(setup, &launch).map_err(|error| error.behind(start))?;
        totals.statistics.add(&left.statistics);
        totals.report.add(&left.report);
        let behind = |finding: Finding| Finding { first_lane: start + finding.first_lane, ..finding };
        totals.finding = totals.finding.or(left.finding.map(behind));
        outcome(range, left);
    }
    Ok(totals)
}

/// The same thread after thread, announcing every event. What happens to data is announced by the reference interpreter,
/// whatever the options say; who runs and what the stacks do, by either engine.
///
/// # Errors
/// A launch that does not fit, or the first trap.
pub fn run_observed<O: Observer>(
    setup: &Arc<Setup>,
    launch: &Launch,
    observer: &mut O,
) -> Result<Outcome, RunError> {
    launch.check()?;
    if launch.options.engine == Engine::Fast && !O::DATA {
        return parallel::run_in_order(setup, launch, observer);
    }
    let mut outcome = Outcome { outputs: Outputs::new(launch.lanes, 0..OUTPUTS), ..Outcome::default() };
    let mut outputs = outcome.outputs.all();
    for first_lane in (0..launch.lanes).step_by(launch.options.group_width) {
        let lanes = launch.options.group_width.min(launch.lanes - first_lane);
        let mut group = launch.group(setup, first_lane, Mask::first(lanes));
        group.run(observer).map_err(|trap| RunError::Trap { first_lane, trap })?;
        outcome.statistics.add(&group.statistics());
        outcome.report.add(&group.report());
        outcome.finding = outcome.finding.or(Finding::of(&group, first_lane));
        outputs.put(&group, first_lane, lanes);
    }
    Ok(Outcome { outputs: outcome.outputs.settled(), ..outcome })
}
