//! Lanes do not depend on each other. On every engine, a subset of the lanes of a case must return the same results as
//! in a run of all lanes. A run of a subset diverges at different instructions than the run of all lanes. A lane also
//! has different positions in the groups of the two runs.

use std::any::Any;
use std::fmt::Debug;

use rayon::prelude::*;
use reconverge_r500::outputs::LaneOutput;
use reconverge_r700::code::ExportKind;
use reconverge_r700::launch::Stage;
use reconverge_r700::outcome::Outcome;
use reconverge_simt::{Mode, Options};
use reconverge_tesla::launch::LaneResult;
use reconverge_testkit::{EventLog, everywhere, shared};
use reconverge_workbench::Session;
use reconverge_workbench::r500::launch::{Pixels, PixelsOutcome};
use reconverge_workbench::r700::launch::{Waves, WavesOutcome};
use reconverge_workbench::tesla::launch::Grid;

use super::cases;
use crate::corpus::ShaderCase;
use crate::modes::Trouble;
use crate::r500::R500Case;
use crate::r700::{LlvmCase, R700Case};
use crate::tesla::TeslaCase;
use crate::{Case, CaseKind};

/// A case whose lanes do not depend on each other.
trait Lanes: Sized {
    /// All results of a lane.
    type Left: Debug + PartialEq;

    fn count(&self) -> usize;

    /// Returns the case with only the lanes in `lanes`.
    fn only(&self, lanes: &[usize]) -> Self;

    /// Returns the results of all lanes in all runs of the case, one run after another. Fails if the engines have
    /// different results (see [`everywhere`]), or if the results are not as expected.
    fn left(&self) -> Result<Vec<Self::Left>, String>;
}

fn pick<T: Clone>(all: &mut Vec<T>, lanes: &[usize]) {
    *all = lanes.iter().map(|lane| all[*lane].clone()).collect();
}

fn only<Program: Clone, Place: Clone, Constants: Clone>(
    case: &ShaderCase<Program, Place, Constants>,
    lanes: &[usize],
) -> ShaderCase<Program, Place, Constants> {
    let mut case = case.clone();
    case.lanes = lanes.len();
    case.inputs.iter_mut().for_each(|input| pick(&mut input.lanes, lanes));
    for run in &mut case.runs {
        run.expectation.expect.iter_mut().for_each(|expect| pick(expect, lanes));
    }
    case
}

impl Lanes for R500Case {
    /// `None` if the lane was killed. A killed lane continues as a helper and follows the path of the other lanes in
    /// its group. So the results of a killed lane depend on these other lanes. (r500.md Q2)
    type Left = Option<LaneOutput>;

    fn count(&self) -> usize {
        self.lanes
    }

    fn only(&self, lanes: &[usize]) -> Self {
        only(self, lanes)
    }

    /// Runs in lenient mode, because strict mode reports problems for some of the driver's programs.
    fn left(&self) -> Result<Vec<Option<LaneOutput>>, String> {
        use reconverge_r500::run::{run, run_watched};
        let image = self.image()?;
        let mut left = Vec::new();
        for case_run in &self.runs {
            let Pixels { setup, launch } = prepared(self.prepare(&image, case_run));
            let on = |engine, level, log: Option<&mut EventLog>| {
                let options = Options { engine, level, mode: Mode::Lenient, ..Options::default() };
                let outcome = match log {
                    Some(log) => run_watched(&setup, &launch, &options, reconverge_simt::Watch::of(log)),
                    None => run(&setup, &launch, &options),
                };
                outcome.map_err(|error| error.to_string())
            };
            let outcome = everywhere(on, |result| format!("{}: {result:?}", self.name))?;
            let outcome = PixelsOutcome { outcome };
            self.compare(case_run, &outcome)?;
            left.extend(outcome.outcome.lanes().map(|lane| (!lane.killed).then_some(lane)));
        }
        Ok(left)
    }
}

/// Returns the session as the type that the machine defines.
fn prepared<S: 'static>(session: Result<Session, Trouble>) -> S {
    let session: Box<dyn Any> = session.expect("a launch that can be").into_ready();
    *session.downcast().expect("the machine's own session")
}

impl Lanes for TeslaCase {
    type Left = LaneResult;

    fn count(&self) -> usize {
        self.lanes
    }

    fn only(&self, lanes: &[usize]) -> Self {
        only(self, lanes)
    }

    fn left(&self) -> Result<Vec<LaneResult>, String> {
        use reconverge_tesla::run::{run, run_watched};
        let image = self.image()?;
        let mut left = Vec::new();
        for case_run in &self.runs {
            let grid: Grid = prepared(self.prepare(&image, case_run));
            let on = |engine, level, log: Option<&mut EventLog>| {
                let options = Options { engine, level, ..Options::default() };
                match log {
                    Some(log) => run_watched(
                        &grid.program,
                        grid.launch.clone(),
                        &options,
                        reconverge_simt::Watch::of(log),
                    ),
                    None => run(&grid.program, grid.launch.clone(), &options),
                }
            };
            let outcome = everywhere(on, |result| format!("{}: {result:?}", self.name));
            let outcome = grid.left(outcome.map_err(|error| error.to_string())?);
            self.compare(case_run, &outcome)?;
            left.extend(outcome.outcome.lanes.iter());
        }
        Ok(left)
    }
}

/// Results of an R700 lane. The results state whether the lane was killed, and contain the lane's exports with their
/// targets.
type Exports = (bool, Vec<(ExportKind, u16, [u32; 4], u8)>);

fn exports(outcome: &Outcome) -> Vec<Exports> {
    let written = |lane: usize| {
        let targets = outcome.exports.iter().filter(|target| target.written[lane] != 0);
        targets.map(|target| (target.kind, target.base, target.values[lane], target.written[lane])).collect()
    };
    outcome.killed.iter().enumerate().map(|(lane, killed)| (*killed, written(lane))).collect()
}

/// Runs an R700 program on every engine, in strict mode.
fn run_r700(name: &str, waves: &Waves) -> Result<WavesOutcome, String> {
    use reconverge_r700::run::{run, run_watched};
    let Waves { program, launch, .. } = waves;
    let on = |engine, level, log: Option<&mut EventLog>| {
        let options = Options { engine, level, ..Options::default() };
        match log {
            Some(log) => run_watched(program, launch, &options, reconverge_simt::Watch::of(log)),
            None => run(program, launch, &options),
        }
    };
    let outcome = everywhere(on, |result| format!("{name}: {result:?}"));
    Ok(waves.left(outcome.map_err(|error| error.to_string())?))
}

impl Lanes for R700Case {
    type Left = Exports;

    fn count(&self) -> usize {
        self.lanes
    }

    fn only(&self, lanes: &[usize]) -> Self {
        only(self, lanes)
    }

    fn left(&self) -> Result<Vec<Exports>, String> {
        let image = self.image()?;
        let mut left = Vec::new();
        for case_run in &self.runs {
            let waves: Waves = prepared(self.prepare(&image, case_run));
            assert_eq!(waves.launch.environment.stage, Stage::Pixel);
            let outcome = run_r700(&self.name, &waves)?;
            self.compare(case_run, &outcome)?;
            left.extend(exports(&outcome.outcome));
        }
        Ok(left)
    }
}

impl Lanes for LlvmCase {
    type Left = Exports;

    fn count(&self) -> usize {
        self.lanes
    }

    fn only(&self, lanes: &[usize]) -> Self {
        let mut case = self.clone();
        case.lanes = lanes.len();
        case.gprs.values_mut().for_each(|values| pick(&mut values.0, lanes));
        for export in &mut case.expect.exports {
            let channels = [&mut export.x, &mut export.y, &mut export.z, &mut export.w];
            channels.into_iter().for_each(|channel| pick(&mut channel.0, lanes));
        }
        let killed = |place: &usize| self.expect.killed.contains(&lanes[*place]);
        case.expect.killed = (0..lanes.len()).filter(killed).collect();
        case
    }

    fn left(&self) -> Result<Vec<Exports>, String> {
        let waves: Waves = prepared(self.prepare(&self.image()).map_err(Trouble::Wrong));
        let outcome = run_r700(&self.id, &waves)?;
        self.compare(&outcome)?;
        Ok(exports(&outcome.outcome))
    }
}

/// Runs all lanes together, and then runs each of the sets of lanes. Fails if a lane has different results in the run
/// of all lanes and in the run of a set.
fn holds(case: &impl Lanes, sets: impl Iterator<Item = Vec<usize>>) -> Result<(), String> {
    let together = case.left()?;
    for lanes in sets {
        let apart = case.only(&lanes).left().map_err(|why| format!("lanes {lanes:?}: {why}"))?;
        let runs = together.chunks(case.count()).zip(apart.chunks(lanes.len()));
        for (together, apart) in runs {
            if let Some(place) = (0..lanes.len()).find(|place| apart[*place] != together[lanes[*place]]) {
                let (lane, apart) = (lanes[place], &apart[place]);
                return Err(format!(
                    "lane {lane} of {lanes:?} has the results {apart:x?}, but {:x?} in the run of all lanes",
                    together[lane]
                ));
            }
        }
    }
    Ok(())
}

/// Returns three sets of lanes. The first set has one lane, the second set has a quarter of the lanes, and the third
/// set has half of the lanes. The number of the case determines the lanes of each set.
fn some(number: usize, count: usize) -> impl Iterator<Item = Vec<usize>> {
    let set = move |size: usize| (0..size).map(|lane| (number + 7 * lane) % count).collect();
    [1, count / 4, count / 2].into_iter().filter(|size| *size > 0).map(set)
}

/// Returns sets of lanes. First, each lane is a set. After these sets, every 16 consecutive lanes are a set, and then
/// every 32 consecutive lanes are a set.
fn parts(count: usize) -> impl Iterator<Item = Vec<usize>> {
    [1, 16, 32].into_iter().flat_map(move |size| {
        (0..count).step_by(size).map(move |first| (first..count.min(first + size)).collect())
    })
}

fn every_case_holds(path: &str, least: usize) {
    let Some(file) = shared(path) else { return };
    let cases = cases(&file);
    assert!(cases.len() >= least, "{} cases", cases.len());
    let judge = |(number, case): (usize, &Case)| {
        let result = match &case.kind {
            CaseKind::R500(case) => holds(&**case, some(number, case.count())),
            CaseKind::R700(case) => holds(&**case, some(number, case.count())),
            CaseKind::Tesla(case) => holds(&**case, some(number, case.count())),
            CaseKind::Llvm(case) => holds(&**case, parts(case.count())),
            other => Err(format!("{other:?} has no lanes")),
        };
        result.err().map(|why| format!("{}: {why}", case.name))
    };
    let wrong: Vec<String> = cases.par_iter().enumerate().filter_map(judge).collect();
    assert!(
        wrong.is_empty(),
        "{} of {} wrong:\n{}",
        wrong.len(),
        cases.len(),
        wrong[..wrong.len().min(20)].join("\n")
    );
}

#[test]
fn r500_programs_leave_the_same_everywhere_and_in_any_company() {
    every_case_holds("corpus/r500/fuzz.jsonl.gz", 324);
    every_case_holds("corpus/r500/piglit.jsonl.gz", 465);
}

#[test]
fn r700_programs_leave_the_same_everywhere_and_in_any_company() {
    every_case_holds("corpus/r700/fuzz.jsonl.gz", 324);
    every_case_holds("corpus/r700/piglit.jsonl.gz", 528);
}

#[test]
fn programs_of_llvm_leave_the_same_everywhere_and_in_any_company() {
    every_case_holds("corpus/r700-llvm/exec.jsonl.gz", 600);
}

#[test]
fn tesla_programs_leave_the_same_everywhere_and_in_any_company() {
    every_case_holds("corpus/tesla/fuzz.jsonl.gz", 324);
    every_case_holds("corpus/tesla/piglit.jsonl.gz", 528);
}
