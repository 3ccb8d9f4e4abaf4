//! Tests: lanes of a case do not depend on each other, so that any of them give alone, or with some of the others,
//! what they give all together. They then diverge elsewhere, and stand at other places of their group.

use reconverge_testkit::shared;

use crate::corpus::ShaderCase;
use crate::r700::LlvmCase;
use crate::{CaseKind, NoFolder, Settings, Verdict, read};

/// A case that can be cut down to some of its lanes.
trait Lanes: Sized {
    fn count(&self) -> usize;
    /// The same with these lanes only.
    fn only(&self, lanes: &[usize]) -> Self;
    fn judge(&self) -> Verdict;
}

fn pick<T: Clone>(all: &mut Vec<T>, lanes: &[usize]) {
    *all = lanes.iter().map(|lane| all[*lane].clone()).collect();
}

macro_rules! shader_case {
    ($($machine:ident: $case:ident),*) => {$(
        impl Lanes for crate::$machine::$case {
            fn count(&self) -> usize {
                self.lanes
            }
            fn only(&self, lanes: &[usize]) -> Self {
                let mut case: ShaderCase<_, _, _> = self.clone();
                case.lanes = lanes.len();
                case.inputs.iter_mut().for_each(|input| pick(&mut input.lanes, lanes));
                for run in &mut case.runs {
                    run.expectation.expect.iter_mut().for_each(|expect| pick(expect, lanes));
                }
                case
            }
            fn judge(&self) -> Verdict {
                self.judge(&Settings::default())
            }
        }
    )*};
}

shader_case!(r500: R500Case, r700: R700Case, tesla: TeslaCase);

impl Lanes for LlvmCase {
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
    fn judge(&self) -> Verdict {
        self.judge(&Settings::default())
    }
}

/// One lane, a quarter of them and half of them pass; which, is another choice for each case.
fn holds(case: &impl Lanes, number: usize) -> Result<(), String> {
    let count = case.count();
    for size in [1, count / 4, count / 2] {
        let lanes: Vec<usize> = (0..size).map(|lane| (number + 7 * lane) % count).collect();
        if let verdict @ (Verdict::Failed(_) | Verdict::Unsupported(_)) = case.only(&lanes).judge() {
            return Err(format!("lanes {lanes:?}: {verdict:?}"));
        }
    }
    Ok(())
}

fn every_case_holds(path: &str, least: usize) {
    let Some(file) = shared(path) else { return };
    let cases = read(path, &std::fs::read(file).unwrap(), &NoFolder, None).unwrap();
    assert!(cases.len() >= least, "{} cases", cases.len());
    let judge = |(number, case): (usize, &crate::Case)| {
        let result = match &case.kind {
            CaseKind::R500(case) => holds(&**case, number),
            CaseKind::R700(case) => holds(&**case, number),
            CaseKind::Tesla(case) => holds(&**case, number),
            CaseKind::Llvm(case) => holds(&**case, number),
            other => Err(format!("{other:?} has no lanes")),
        };
        result.err().map(|why| format!("{}: {why}", case.name))
    };
    let wrong: Vec<String> = cases.iter().enumerate().filter_map(judge).collect();
    assert!(wrong.is_empty(), "{} of {} wrong, the first: {}", wrong.len(), cases.len(), wrong[0]);
}

#[test]
fn some_lanes_of_an_r500_program_give_what_they_give_among_all() {
    every_case_holds("corpus/r500/fuzz.jsonl.gz", 300);
}

#[test]
fn some_lanes_of_an_r700_program_give_what_they_give_among_all() {
    every_case_holds("corpus/r700/fuzz.jsonl.gz", 300);
}

#[test]
fn some_lanes_of_a_program_of_llvm_give_what_they_give_among_all() {
    every_case_holds("corpus/r700-llvm/exec.jsonl.gz", 600);
}

#[test]
fn some_lanes_of_a_tesla_program_give_what_they_give_among_all() {
    every_case_holds("corpus/tesla/fuzz.jsonl.gz", 300);
}
