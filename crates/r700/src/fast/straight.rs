//! Runs straight-line programs. Each wavefront of a launch runs the same list of clauses and exports. The list has no
//! control flow.
//!
//! All lanes of a straight-line program execute all instructions, so the counts are known before the program runs. The
//! engine copies inputs from the lists of the launch to rows, and copies results from rows to lists. A full-screen quad
//! with a colour ramp takes two thirds of the time of a run with control flow (Radeon HD 4870, an AMD EPYC, AVX2).

use std::ops::Range;

use reconverge_simt::level::Task;
use reconverge_simt::wide::Wide;
use reconverge_simt::{Mask, Mode, Statistics};

use super::lower::{Clause, Exported, Exports, FetchWork, Fetches, Groups, Lowered, Register, Work};
use super::runner::Runner;
use crate::chip::LANES;
use crate::code::ExportKind;
use crate::control::Lod;
use crate::flow::{AluForm, Condition, Control};
use crate::outcome::Outcome;
use crate::wave::{Origin, Starts, Wave};
use crate::words::CfInst;

/// The numbers of the control-flow instructions of a straight-line program, from its start to its end.
#[derive(Clone, Debug)]
pub(super) struct Straight {
    nodes: Vec<usize>,
    /// Number of instructions that a wavefront issues.
    instructions: u64,
    /// Whether a texture instruction reads gradients. Some launches cannot provide gradients.
    gradients: bool,
}

/// Returns the groups of an ALU clause with only one run of groups. For all other clauses, the function returns `None`.
/// The function also returns `None` if some active lane may skip the groups or become inactive in the groups.
pub(super) fn plain_groups(clause: &Clause) -> Option<&Groups> {
    let plain = clause.form == AluForm::ALU && !clause.whole_quad_mode && !clause.loop_index;
    let run = clause.single.as_ref().filter(|_| plain && !clause.whole_state)?;
    (!run.masks && !run.kills && !run.by_reference && run.checks.is_empty()).then_some(run)
}

/// Returns whether all active lanes execute an instruction with these fields.
pub(super) fn is_plain(control: &Control) -> bool {
    control.cond == Condition::Active && !control.whole_quad_mode && !control.valid_pixel_mode
}

impl Straight {
    /// Returns the straight-line program. If the straight-line path cannot run some instruction, the function returns
    /// `None`. An example is an instruction that only some lanes may execute.
    pub(super) fn of(lowered: &Lowered) -> Option<Straight> {
        let (_, nodes) = lowered.program(false);
        let mut straight = Straight { nodes: Vec::new(), instructions: 0, gradients: false };
        for (number, node) in nodes.iter().enumerate() {
            let runs = match &node.work {
                Work::Alu(clause) => plain_groups(clause).is_some(),
                Work::Fetch(clause) => {
                    straight.gradients |= reads_gradients(lowered, clause);
                    is_plain(&clause.control) && !clause.acknowledged && samples(lowered, clause)
                }
                Work::Export(exports) => is_plain(&exports.control) && is_fixed(exports),
                Work::Flow(CfInst::NOP, control) => is_plain(control),
                Work::Flow(..) | Work::Memory(_) | Work::Reference => false,
            };
            if !runs {
                return None;
            }
            straight.nodes.push(number);
            straight.instructions += u64::from(node.most);
            if node.end {
                return Some(straight);
            }
        }
        None
    }

    /// Returns whether the wavefronts of a launch can run without control flow.
    pub(super) fn fits(&self, Origin { launch, options, .. }: &Origin) -> bool {
        let traps = self.gradients && options.mode == Mode::Strict;
        launch.covered.is_none() && self.instructions <= options.watchdog && !traps
    }
}

/// Returns whether a fetch clause reads gradients that SET_GRADIENTS instructions have set.
fn reads_gradients(lowered: &Lowered, clause: &Fetches) -> bool {
    let fetches = &lowered.fetches[clause.first as usize..][..clause.count as usize];
    fetches.iter().filter_map(|info| info.fetching.as_ref()).any(
        |fetching| matches!(&fetching.work, FetchWork::Sample(sample) if sample.kind.lod == Lod::Gradients),
    )
}

/// Returns whether a fetch clause contains only texture instructions. The registers of these instructions must not
/// change within a launch.
fn samples(lowered: &Lowered, clause: &Fetches) -> bool {
    let range = clause.first as usize..(clause.first + clause.count) as usize;
    lowered.fetches[range].iter().all(|info| {
        info.fetching.as_ref().is_some_and(|fetching| {
            let samples = matches!(
                fetching.work,
                FetchWork::Sample(_)
                    | FetchWork::Load(..)
                    | FetchWork::Gradients(_)
                    | FetchWork::SetGradients(_)
            );
            let is_fixed = |register: &Register| matches!(register, Register::Fixed(_));
            let dst = fetching.dst.iter().flatten().flatten();
            samples && fetching.src.iter().flatten().all(is_fixed) && dst.map(|(to, _)| to).all(is_fixed)
        })
    })
}

/// Returns whether an instruction exports pixels from registers that are the same in the whole launch.
fn is_fixed(exports: &Exports) -> bool {
    let is_fixed = |exported: &Exported| !matches!(exported, Exported::Row(Register::Loop(..)));
    exports.kind == ExportKind::Pixel && exports.steps.iter().flatten().flatten().all(is_fixed)
}

/// A task that runs a wavefront of a straight-line program. The task is compiled for each instruction set level.
struct StraightWave<'a, 'b> {
    runner: &'a mut Runner<'b>,
    straight: &'a Straight,
    starts: &'a Starts<'a>,
    /// Position of the wavefront's first lane in the launch, and number of lanes of the wavefront.
    place: (usize, usize),
    wave: &'a mut Wave,
    active: Mask,
    /// Destination of the exports.
    outcome: &'a mut Outcome,
    /// Number of lanes in `outcome`.
    lanes: usize,
    own: Range<usize>,
}

impl Task for StraightWave<'_, '_> {
    type Output = ();

    #[inline(always)]
    fn run<W: Wide>(self, wide: W) {
        let StraightWave { runner, straight, starts, place, wave, active, outcome, lanes, own } = self;
        let whole = place.1 == usize::from(wave.launch.environment.chip.wave_width);
        starts.fill(wide, &mut wave.registers, place, whole);
        runner.with_rows(wave, |runner, wave| {
            let (lowered, by_column) = (runner.lowered, wave.launch.by_column);
            for number in &straight.nodes {
                match &lowered.nodes[*number].work {
                    Work::Alu(clause) => {
                        if let Some(run) = &clause.single {
                            runner.run_single(clause, run, active);
                        }
                    }
                    Work::Fetch(clause) => runner.sample(wide, wave, clause, active),
                    Work::Export(exports) => {
                        for (step, exported) in (0u16..).zip(&exports.steps) {
                            let key = (exports.kind, exports.base.wrapping_add(step));
                            let rows = exported.each_ref().map(|exported| match *exported.as_ref()? {
                                Exported::Word(word) => Some(ExportSource::Word(word)),
                                Exported::Row(register) => {
                                    let place = register.place(wave, &lowered.layout)?;
                                    Some(ExportSource::Row(runner.lanes.row(place)))
                                }
                            });
                            match by_column {
                                true => put_columns(outcome, key, lanes, own.clone(), rows),
                                false => put_lanes(wide, outcome, key, lanes, own.clone(), rows),
                            }
                        }
                    }
                    Work::Flow(..) => runner.counts.nodes[*number] = true,
                    Work::Memory(_) | Work::Reference => {}
                }
            }
        });
    }
}

/// The values of an exported component.
#[derive(Clone, Copy)]
enum ExportSource<'a> {
    /// One word for all lanes.
    Word(u32),
    Row(&'a [u32; LANES]),
}

/// Stores exported components in the columns of a target.
#[inline(always)]
fn put_columns(
    outcome: &mut Outcome,
    (kind, base): (ExportKind, u16),
    lanes: usize,
    own: Range<usize>,
    rows: [Option<ExportSource<'_>>; 4],
) {
    let columns = outcome.columns_mut(kind, base, lanes);
    for (column, source) in columns.components.iter_mut().zip(rows) {
        let column = &mut column[own.clone()];
        match source {
            None => continue,
            Some(ExportSource::Word(word)) => column.fill(word),
            Some(ExportSource::Row(row)) => column.copy_from_slice(&row[..column.len()]),
        }
        columns.written = true;
    }
}

/// Stores exported components in a target. The list of the target has one entry for each lane.
#[inline(always)]
fn put_lanes<W: Wide>(
    wide: W,
    outcome: &mut Outcome,
    (kind, base): (ExportKind, u16),
    lanes: usize,
    own: Range<usize>,
    rows: [Option<ExportSource<'_>>; 4],
) {
    let exported = outcome.export_mut(kind, base, lanes);
    let (values, written) = (&mut exported.values[own.clone()], &mut exported.written[own]);
    if let [
        Some(ExportSource::Row(x)),
        Some(ExportSource::Row(y)),
        Some(ExportSource::Row(z)),
        Some(ExportSource::Row(w)),
    ] = rows
    {
        wide.vectors([x, y, z, w], values);
        written.fill(0xf);
        return;
    }
    for (chan, source) in rows.into_iter().enumerate().filter_map(|(chan, source)| Some((chan, source?))) {
        for (lane, value) in values.iter_mut().enumerate() {
            value[chan] = match source {
                ExportSource::Word(word) => word,
                ExportSource::Row(row) => row[lane],
            };
            written[lane] |= 1 << chan;
        }
    }
}

impl Runner<'_> {
    /// Runs the wavefront at `place`. Adds the wavefront's results to an outcome of `lanes` lanes, in the same way as
    /// [`Wave::add_to`]. The caller need not [restart](Wave::restart) the wavefront before the call. If the last quad
    /// of the wavefront is incomplete, this function changes nothing and returns `false`.
    pub(super) fn run_straight(
        &mut self,
        straight: &Straight,
        starts: &Starts<'_>,
        (wave, place): (&mut Wave, usize),
        (outcome, lanes): (&mut Outcome, usize),
    ) -> bool {
        let (width, active) = wave.launch.wave_lanes(place);
        if !width.is_multiple_of(4) {
            return false;
        }
        let own = outcome.killed.len()..outcome.killed.len() + width;
        outcome.killed.resize(own.end, false);
        self.level.run(StraightWave {
            runner: self,
            straight,
            starts,
            place: (place, width),
            wave,
            active,
            outcome: &mut *outcome,
            lanes,
            own,
        });
        let (instructions, lanes) = (straight.instructions, width as u64);
        let lane_instructions = instructions * lanes;
        outcome.statistics.add(&Statistics { instructions, lane_instructions, divergent_branches: 0 });
        true
    }
}
