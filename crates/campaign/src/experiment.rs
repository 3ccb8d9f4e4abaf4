//! One experiment. An experiment consists of the choice of a fault, the run with this fault, and the outcome of the
//! run. The choice of the fault depends only on the seed and on the number of the experiment.

use std::ops::Range;

use reconverge_simt::Watch;
use reconverge_simt::course::Follower;
use reconverge_simt::random::Random;
use reconverge_workbench::Error as LaunchError;
use reconverge_workbench::array::Array;
use reconverge_workbench::session::Stepping;

use crate::choice::Choice;
use crate::listed::ListedFault;
use crate::point::Point;
pub use crate::site::{Model, Site};
use crate::spot::{Flaw, Spot, below, faulted};

reconverge_isa::choices! {
    /// The outcome of an experiment.
    #[derive(PartialOrd, Ord, Hash)]
    pub enum Outcome {
        /// The instructions, active lanes and outputs are the same as in the golden run.
        Masked = "masked",
        /// The issued instructions or the active lanes differ from those of the golden run. The outputs do not differ.
        Diverged = "diverged",
        /// The outputs differ from the outputs of the golden run. This is silent data corruption.
        Sdc = "sdc",
        /// The program trapped.
        Trap = "trap",
        /// A group issued more instructions than the limit (fuel) allows.
        Hang = "hang",
    }
}

/// The fault and the outcome of an experiment. A record is a row of the results.
#[derive(Clone, Debug, PartialEq)]
pub struct Record {
    /// Number of the experiment.
    pub index: u64,
    /// The point of the sweep.
    pub point: u32,
    /// Site of the fault.
    pub site: Site,
    /// Fault model.
    pub model: Model,
    /// Index of the fault's instruction in the golden run, counted from 0. The fault changes the state before this
    /// instruction. Only a fault at the site `destination` changes the state after this instruction.
    pub step: u64,
    /// The group that issues the fault's instruction.
    pub group: u32,
    /// The address of the fault's instruction.
    pub pc: u32,
    /// The lane, if the changed word belongs to a lane.
    pub lane: Option<u32>,
    /// Name of the changed word: `temp[1].r`, `token 2 mask`, `g 0x100`, `word 7`.
    pub place: String,
    /// Bits of the word before the change. For a warp-wide fault, the field has the bits of the first word.
    pub before: u64,
    /// Bits of the word after the change. For a warp-wide fault, the field has the bits of the first word.
    pub after: u64,
    /// The outcome.
    pub outcome: Outcome,
    /// The name of the trap, if the program trapped.
    pub trap: Option<String>,
    /// The first step at which the issued instruction or the active lanes differ from the run without the fault.
    pub flow_step: Option<u64>,
    /// For an SDC, the largest difference between an output and the expected value of the output. The difference is
    /// infinity if the output or the expected value is not a number.
    pub error: Option<f64>,
    /// For an SDC, the number of output rows that differ from the golden run. A row is a lane, or an element of a
    /// buffer.
    pub hits: u32,
    /// The name that the outcome function returned for the experiment.
    pub class: Option<String>,
}

/// An experiment that has ended. This value is the argument of an outcome function.
#[derive(Clone, Copy, Debug)]
pub struct EndedExperiment<'a> {
    /// The experiment. The class of the experiment is not set yet.
    pub record: &'a Record,
    /// The outputs of the golden run, by name.
    pub golden: &'a [(String, Array)],
    /// The outputs of the experiment. The outputs are absent after a trap or a hang.
    pub outputs: Option<&'a [(String, Array)]>,
}

/// Returns the name of an experiment's outcome.
///
/// # Errors
/// If the outcome function returns an error, the campaign ends.
pub type Classify = dyn Fn(EndedExperiment<'_>) -> Result<String, String> + Send + Sync;

/// Number of instructions between two comparisons of the control flow with the golden run.
const LOOK: u64 = 256;

/// Number of instructions per call of the engine if the control flow is not compared.
const STRETCH: u64 = 4096;

/// An experiment at a point. An experiment has a site, a fault model, and a number in the campaign.
#[derive(Clone, Copy)]
pub(crate) struct Experiment<'a> {
    pub(crate) index: u64,
    pub(crate) seed: u64,
    pub(crate) point: u32,
    pub(crate) site: Site,
    pub(crate) model: Model,
    /// Number of bits that flip with [`Model::Bits`].
    pub(crate) bits: u32,
    /// The list entry of this fault, if the campaign has a list of faults.
    pub(crate) listed: Option<&'a ListedFault>,
    /// Function that names the outcome.
    pub(crate) classify: Option<&'a Classify>,
}

/// A chosen fault, and a launch that has run up to the step of the fault.
pub(crate) struct ChosenFault {
    /// The launch immediately before the change.
    pub(crate) stepping: Stepping,
    pub(crate) flaw: Flaw,
    /// Number of instructions that the launch issues before the instruction of the fault.
    pub(crate) step: u64,
    /// Whether the fault changes the state after the instruction of the fault. If `late` is false, the fault changes
    /// the state before this instruction.
    pub(crate) late: bool,
    pub(crate) pc: u32,
    place: String,
    before: u64,
}

impl Experiment<'_> {
    /// Chooses the fault.
    ///
    /// # Errors
    /// Fails if the site or the word does not exist at the step of the fault. Also fails if the engine fails before
    /// this step.
    pub(crate) fn choose(&self, point: &Point) -> Result<ChosenFault, LaunchError> {
        let wrong = |why: String| LaunchError::Machine(format!("experiment {}: {why}", self.index));
        let mut random = self.random();
        let step = self.step(point, &mut random).map_err(wrong)?;
        let mut stepping = point.at(step)?;
        if self.is_late() {
            stepping.advance(1, Watch::Nothing)?;
        }
        let (flaw, place, before) = self.flaw(point, step, &stepping, &mut random).map_err(wrong)?;
        let pc = point.course.stages()[step as usize].pc;
        Ok(ChosenFault { stepping, flaw, step, late: self.is_late(), pc, place, before })
    }

    fn random(&self) -> Random {
        // Because of the multiplication, the states of the random generator for neighbouring experiments differ in many
        // bits.
        let index = self.index.wrapping_mul(0xd134_2543_de82_ef95);
        Random::new(self.seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) ^ index)
    }

    fn is_late(&self) -> bool {
        self.site == Site::Destination
    }

    fn missing(&self) -> String {
        format!("the site {} does not exist", self.site)
    }

    /// Chooses the step of the fault.
    fn step(&self, point: &Point, random: &mut Random) -> Result<u64, String> {
        let instants = point.instants_of(self.site).ok_or_else(|| self.missing())?;
        match self.listed.and_then(|stated| stated.step) {
            Some(step) if instants.has(step) => Ok(step),
            Some(step) => {
                let steps = point.course.stages().len();
                Err(format!("{} at step {step}; the golden run has {steps} steps", self.missing()))
            }
            None => Ok(instants.get(below(random, instants.count()))),
        }
    }

    /// Chooses the word and the bits that the fault changes. `stepping` is the launch immediately before the change.
    /// Also returns the name and the value of the word.
    fn flaw(
        &self,
        point: &Point,
        step: u64,
        stepping: &Stepping,
        random: &mut Random,
    ) -> Result<(Flaw, String, u64), String> {
        let Experiment { site, model, bits, listed, .. } = *self;
        let missing = || self.missing();
        let stage = point.course.stages()[step as usize];
        let group =
            if self.is_late() { stage.group as usize } else { stepping.current().ok_or_else(missing)? };
        let choice = Choice { point, stepping, group, pc: stage.pc, mask: stage.mask.0 };
        let spot = match listed {
            None => choice.any(site, random).ok_or_else(missing)?,
            Some(stated) => choice.named(site, stated.place.as_deref(), stated.lane, random)?,
        };
        let before = spot.read(stepping, group, &point.program).ok_or_else(missing)?;
        let (exist, place) = (spot.bits(), spot.name(stepping));
        if let Some(lane) = listed.and_then(|stated| stated.lane).filter(|_| spot.is_mask())
            && (matches!(model, Model::Double | Model::WarpWide) || model == Model::Bits && bits > 1)
        {
            let model = model.name();
            return Err(format!(
                "model `{model}` changes several lanes of {place}, but lane = {lane} names one lane; omit lane"
            ));
        }
        let pattern = match listed {
            Some(stated) => stated.pattern(before, exist, bits, &place)?,
            None => None,
        };
        let (after, stuck) = match pattern {
            Some(pattern) => match model.stuck() {
                Some(true) => (before | pattern, pattern),
                Some(false) => (before & !pattern, pattern),
                None => (before ^ pattern, 0),
            },
            None => faulted(model, before, exist, spot.is_mask(), bits, random),
        };
        let flaw = Flaw {
            spot,
            group,
            pattern: before ^ after,
            wide: model == Model::WarpWide,
            stuck: model.stuck().map(|value| (stuck, value)),
        };
        Ok((flaw, place, before))
    }

    /// Runs the experiment.
    ///
    /// # Errors
    /// Returns the errors of [`Experiment::choose`].
    pub(crate) fn run(&self, point: &Point) -> Result<Record, LaunchError> {
        let Experiment { index, point: number, site, model, classify, .. } = *self;
        let ChosenFault { mut stepping, flaw, step, late, pc, place, before } = self.choose(point)?;
        let group = flaw.group;
        if !flaw.apply(&mut stepping, &point.program) {
            return Err(LaunchError::Machine(format!("experiment {index}: the site {site} does not exist")));
        }
        let mut record = Record {
            index,
            point: number,
            site,
            model,
            step,
            group: group as u32,
            pc,
            lane: flaw.spot.lane(),
            place,
            before,
            after: before ^ flaw.pattern,
            outcome: Outcome::Masked,
            trap: None,
            flow_step: None,
            error: None,
            hits: 0,
            class: None,
        };
        // If the groups are independent, a fault in one group does not change the results of other groups. So the
        // groups after this group do not need to run.
        let alone = !matches!(flaw.spot, Spot::Program(_)) && stepping.is_independent();
        let mut follower = Follower::new(&point.course, step as usize + usize::from(late));
        let only = alone.then_some(group);
        let ended = match flaw.stuck {
            None => go_on(&mut stepping, &mut follower, only),
            Some(_) => go_on_stuck(&mut stepping, &mut follower, only, &flaw, point),
        };
        if let Err(LaunchError::Trap(trap)) = &ended {
            follower.trap(trap.pc);
        }
        record.flow_step = follower.left().map(|step| step as u64);
        let mut outputs = None;
        match ended {
            Ok(()) => {
                let rows = alone.then(|| stepping.lanes(group));
                let found = stepping.outcome().outputs();
                let (error, hits) = difference(&point.golden, &found, rows.clone());
                (record.outcome, record.error, record.hits) = match hits {
                    0 if record.flow_step.is_some() => (Outcome::Diverged, None, 0),
                    0 => (Outcome::Masked, None, 0),
                    _ => (Outcome::Sdc, Some(error), hits),
                };
                outputs = classify.map(|_| whole(&point.golden, found, rows));
            }
            Err(LaunchError::Trap(trap)) => {
                let hangs = ["Watchdog", "Timeout"].contains(&&*trap.name);
                record.outcome = if hangs { Outcome::Hang } else { Outcome::Trap };
                record.trap = (!hangs).then_some(trap.name);
            }
            // The fault has made the launch invalid. For example, a CTM output is outside its buffer.
            Err(_) => (record.outcome, record.trap) = (Outcome::Trap, Some("Launch".to_owned())),
        }
        if let Some(classify) = classify {
            let seen =
                EndedExperiment { record: &record, golden: &point.golden, outputs: outputs.as_deref() };
            let class = classify(seen);
            let class = class.map_err(|why| {
                LaunchError::Machine(format!("experiment {index}: the outcome function: {why}"))
            })?;
            record.class = Some(class);
        }
        Ok(record)
    }
}

/// Chooses the faults of all experiments of a point in one run of the launch. Returns the index of each impossible
/// fault, with the reason why the fault is impossible.
pub(crate) fn impossible(
    experiments: &[Experiment<'_>],
    point: &Point,
) -> Result<Vec<(usize, String)>, LaunchError> {
    let (mut wrong, mut chosen) = (Vec::new(), Vec::new());
    for (place, experiment) in experiments.iter().enumerate() {
        let mut random = experiment.random();
        match experiment.step(point, &mut random) {
            Ok(step) => chosen.push((step + u64::from(experiment.is_late()), step, place, random)),
            Err(why) => wrong.push((place, why)),
        }
    }
    chosen.sort_by_key(|(issued, ..)| *issued);
    let mut run: Option<(u64, Stepping)> = None;
    for (issued, step, place, mut random) in chosen {
        let (at, stepping) = match &mut run {
            Some(run) => run,
            None => run.insert((step, point.at(step)?)),
        };
        if issued > *at {
            stepping.advance(issued - *at, Watch::Nothing)?;
            *at = issued;
        }
        if let Err(why) = experiments[place].flaw(point, step, stepping, &mut random) {
            wrong.push((place, why));
        }
    }
    wrong.sort_by_key(|(place, _)| *place);
    Ok(wrong)
}

/// Returns all outputs of a run that computed only the rows `rows`. All other rows come from the golden run.
fn whole(
    golden: &[(String, Array)],
    found: Vec<(String, Array)>,
    rows: Option<Range<usize>>,
) -> Vec<(String, Array)> {
    let Some(rows) = rows else { return found };
    let mut all = golden.to_vec();
    for (name, array) in found {
        match all.iter_mut().find(|(known, _)| *known == name) {
            Some((_, whole)) if whole.bytes.len() == array.bytes.len() => {
                let each = whole.bytes.len() / whole.rows().max(1);
                let range = rows.start * each..(rows.end * each).min(whole.bytes.len());
                whole.bytes[range.clone()].copy_from_slice(&array.bytes[range]);
            }
            Some(_) => {}
            None => all.push((name, array)),
        }
    }
    all
}

/// Runs the launch with stuck bits, one instruction at a time. If `only` names a group, the function stops at the end
/// of this group.
fn go_on_stuck(
    stepping: &mut Stepping,
    follower: &mut Follower<'_>,
    only: Option<usize>,
    flaw: &Flaw,
    point: &Point,
) -> Result<(), LaunchError> {
    while let Some(current) = stepping.current() {
        if only.is_some_and(|group| group != current) {
            follower.end_group(flaw.group);
            return Ok(());
        }
        if flaw.is_over(stepping) {
            return go_on(stepping, follower, only);
        }
        match follower.left() {
            None => stepping.advance(1, Watch::of(follower))?,
            Some(_) => stepping.advance(1, Watch::Nothing)?,
        }
        if flaw.is_touched(current, stepping.current()) {
            flaw.hold(stepping, &point.program);
        }
    }
    follower.end();
    Ok(())
}

/// Runs the launch to its end. If `only` names a group, the function stops at the end of this group, because the fault
/// does not affect other groups.
fn go_on(
    stepping: &mut Stepping,
    follower: &mut Follower<'_>,
    only: Option<usize>,
) -> Result<(), LaunchError> {
    loop {
        match (stepping.current(), only) {
            (None, _) => {
                follower.end();
                return Ok(());
            }
            (Some(current), Some(group)) if current != group => {
                follower.end_group(group);
                return Ok(());
            }
            _ if follower.left().is_none() => stepping.advance(LOOK, Watch::of(follower))?,
            _ => stepping.advance(STRETCH, Watch::Nothing)?,
        }
    }
}

/// Returns the largest difference between two sets of outputs, and the number of rows that differ. If a range is given,
/// the function compares only the rows in this range.
fn difference<'a>(
    golden: &'a [(String, Array)],
    found: &'a [(String, Array)],
    rows: Option<Range<usize>>,
) -> (f64, u32) {
    let (mut largest, mut hits) = (0f64, 0);
    let names =
        golden.iter().chain(found.iter().filter(|(name, _)| golden.iter().all(|(known, _)| known != name)));
    for (name, shape) in names {
        let of = |outputs: &'a [(String, Array)]| {
            outputs.iter().find(|(known, _)| known == name).map_or(&[][..], |(_, array)| &array.bytes)
        };
        let (golden, found) = (of(golden), of(found));
        let each = shape.bytes.len() / shape.rows().max(1);
        if each == 0 {
            continue;
        }
        let all = golden.len().max(found.len()).div_ceil(each);
        let row = |bytes: &[u8], row: usize| {
            let mut there = bytes.get(row * each..).unwrap_or_default().to_vec();
            there.resize(each, 0);
            Array { dtype: shape.dtype, shape: vec![each / shape.dtype.bytes()], bytes: there }
        };
        let same = |at: usize| {
            let range = at * each..(at + 1) * each;
            matches!((golden.get(range.clone()), found.get(range)), (Some(golden), Some(found)) if golden == found)
        };
        for at in rows.clone().unwrap_or(0..all).filter(|at| !same(*at)) {
            let (golden, found) = (row(golden, at), row(found, at));
            if golden.bytes == found.bytes {
                continue;
            }
            hits += 1;
            for element in 0..golden.len() {
                let (one, other) = (golden.number(element), found.number(element));
                let off = (one - other).abs();
                // Two equal infinities are treated as equal.
                let off = if one == other {
                    0.
                } else if off.is_nan() {
                    f64::INFINITY
                } else {
                    off
                };
                largest = largest.max(off);
            }
        }
    }
    (largest, hits)
}

#[cfg(test)]
mod tests {
    use reconverge_workbench::array::Dtype;

    use super::*;

    #[test]
    fn rows_that_differ_are_counted_and_the_largest_difference_is_kept() {
        let array = |values: &[f32]| {
            let words = values.iter().map(|value| value.to_bits());
            Array::from_words(Dtype::F32, vec![values.len() / 2, 2], words)
        };
        let named = |values: &[f32]| vec![("color0".to_owned(), array(values))];
        let golden = named(&[1., 2., 3., 4., f32::INFINITY, 6.]);
        assert_eq!(difference(&golden, &golden, None), (0., 0));
        let found = named(&[1., 2.5, 3., 4., f32::INFINITY, -6.]);
        assert_eq!(difference(&golden, &found, None), (12., 2));
        assert_eq!(difference(&golden, &found, Some(0..2)), (0.5, 1));
        let nan = named(&[1., f32::NAN, 3., 4., f32::INFINITY, 6.]);
        assert_eq!(difference(&golden, &nan, None), (f64::INFINITY, 1));
        // Outputs that were not written are treated as zeros.
        assert_eq!(difference(&golden, &[], Some(1..2)), (4., 1));
    }
}
