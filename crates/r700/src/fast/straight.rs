//! Runs straight-line programs: the wavefronts of a launch, with one list of work each and no control flow in between.
//!
//! All lanes of such a program execute all its instructions, so its counts are known before it runs. A launch with
//! exports by column runs this way: inputs and results are copied directly between columns and rows. A full-screen quad
//! with a colour ramp takes two thirds of the time (Radeon HD 4870, an AMD EPYC, AVX2).

use std::ops::Range;

use reconverge_simt::level::Task;
use reconverge_simt::wide::Wide;
use reconverge_simt::{Mask, Mode, Statistics};

use super::lower::{Exported, Exports, FetchWork, Fetches, Lowered, Register, Work};
use super::run::Runner;
use crate::chip::LANES;
use crate::code::ExportKind;
use crate::flow::{AluForm, Condition, Control};
use crate::outcome::Outcome;
use crate::wave::{Origin, Wave};
use crate::words::CfInst;

/// The control-flow instructions of a straight-line program, by number, up to its end.
#[derive(Clone, Debug)]
pub(super) struct Straight {
    nodes: Vec<usize>,
    /// Instructions per wavefront.
    instructions: u64,
}

/// Rows with which wavefronts begin, and their columns in the launch. A row without a column contains zeros.
pub(super) struct Starts<'a>(Vec<(usize, &'a [u32])>);

/// Returns whether all active lanes execute an instruction with these fields.
fn is_plain(control: &Control) -> bool {
    control.cond == Condition::Active && !control.whole_quad_mode && !control.valid_pixel_mode
}

impl Straight {
    /// Returns `None` if some part of the program is not known to run to its end for all lanes.
    pub(super) fn of(lowered: &Lowered) -> Option<Straight> {
        let (_, nodes) = lowered.program(false);
        let mut straight = Straight { nodes: Vec::new(), instructions: 0 };
        for (number, node) in nodes.iter().enumerate() {
            let runs = match &node.work {
                Work::Alu(clause) => {
                    let plain = clause.form == AluForm::ALU && !clause.whole_quad_mode && !clause.loop_index;
                    let run = clause.single.as_ref().filter(|_| plain && !clause.whole_state)?;
                    !run.masks && !run.kills && !run.by_reference && run.checks.is_empty()
                }
                Work::Fetch(clause) => {
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

    /// Returns the rows at the start of a launch, if its wavefronts can run without control flow.
    pub(super) fn starts<'a>(&self, Origin { launch, options, .. }: &'a Origin) -> Option<Starts<'a>> {
        let fits = launch.by_column && launch.covered.is_none() && launch.inputs.is_empty();
        let runs = self.instructions <= options.watchdog && options.mode != Mode::Strict;
        let read = launch.read.as_ref().filter(|_| fits && runs)?;
        let environment = &launch.environment;
        let start = |(gpr, chan): &(u8, u8)| {
            let row = environment.register_row((*gpr).into(), (*chan).into())?;
            let of = launch.columns.iter().rfind(|of| of.gpr == *gpr && of.gpr < environment.num_gprs);
            Some((row, of.map_or(&[][..], |of| &of.components[usize::from(*chan)])))
        };
        let mut starts = Vec::with_capacity(read.len());
        starts.extend(read.iter().filter_map(start));
        Some(Starts(starts))
    }
}

/// Returns whether a fetch clause only reads textures, with registers that are the same in the whole launch.
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

/// Returns whether an instruction exports a pixel, from registers that are the same in the whole launch.
fn is_fixed(exports: &Exports) -> bool {
    let is_fixed = |exported: &Exported| !matches!(exported, Exported::Row(Register::Loop(..)));
    exports.kind == ExportKind::Pixel && exports.steps.iter().flatten().flatten().all(is_fixed)
}

/// A wavefront of a straight-line program, compiled for a level.
struct StraightWave<'a, 'b> {
    runner: &'a mut Runner<'b>,
    straight: &'a Straight,
    wave: &'a mut Wave,
    active: Mask,
    /// Destination of the exports, and number of its lanes.
    outcome: &'a mut Outcome,
    lanes: usize,
    own: Range<usize>,
}

impl Task for StraightWave<'_, '_> {
    type Output = ();

    #[inline(always)]
    fn run<W: Wide>(self, wide: W) {
        let StraightWave { runner, straight, wave, active, outcome, lanes, own } = self;
        let lowered = runner.lowered();
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
                        let columns =
                            outcome.columns_mut(exports.kind, exports.base.wrapping_add(step), lanes);
                        for (column, exported) in columns.components.iter_mut().zip(exported) {
                            let column = &mut column[own.clone()];
                            match exported {
                                None => continue,
                                Some(Exported::Word(word)) => column.fill(*word),
                                Some(Exported::Row(register)) => {
                                    let Some(place) = register.place(wave, &lowered.layout) else { continue };
                                    column.copy_from_slice(&runner.lanes.row(place)[..own.len()]);
                                }
                            }
                            columns.written = true;
                        }
                    }
                }
                Work::Flow(..) => runner.count_node(*number),
                Work::Memory(_) | Work::Reference => {}
            }
        }
    }
}

impl Runner<'_> {
    /// Runs the wavefront at `place` and adds its results to an outcome of `lanes` lanes; see [`Wave::add_to`]. The
    /// wavefront need not be [restarted](Wave::restart). Returns `false` without any effect if the last quad of the
    /// wavefront is not whole.
    pub(super) fn run_straight(
        &mut self,
        straight: &Straight,
        Starts(starts): &Starts<'_>,
        (wave, place): (&mut Wave, usize),
        (outcome, lanes): (&mut Outcome, usize),
    ) -> bool {
        let (width, active) = wave.launch.wave_lanes(place);
        if !width.is_multiple_of(4) {
            return false;
        }
        for (row, column) in starts {
            let words = column.get(place..).unwrap_or_default();
            let words = &words[..words.len().min(width)];
            let row = &mut wave.registers[*row].0;
            match words.first_chunk() {
                Some(words) => *row = *words,
                None if words.is_empty() => *row = [0; LANES],
                None => {
                    *row = [0; LANES];
                    row[..words.len()].copy_from_slice(words);
                }
            }
        }
        let own = outcome.killed.len()..outcome.killed.len() + width;
        outcome.killed.resize(own.end, false);
        self.with_rows(wave, |runner, wave| {
            runner.level().run(StraightWave {
                runner,
                straight,
                wave,
                active,
                outcome: &mut *outcome,
                lanes,
                own,
            });
        });
        let (instructions, lanes) = (straight.instructions, width as u64);
        let lane_instructions = instructions * lanes;
        outcome.statistics.add(&Statistics { instructions, lane_instructions, divergent_branches: 0 });
        true
    }
}
