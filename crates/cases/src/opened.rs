//! The program and the launches of one case of a file. The commands `run`, `dis` and `explain` use this module.
//!
//! [`crate::read()`] lists the cases of a file. [`find`] returns a case by name. [`Case::open`] returns the program and
//! the launches of a case.

use reconverge_isa::source::closest;
use reconverge_isa::{Image, Program};
use reconverge_workbench::launch::LaunchFile;
use reconverge_workbench::{Opened, Target};
use thiserror::Error;

use crate::{Case, CaseKind};

/// A case's program and launches.
#[derive(Clone, Debug)]
pub struct OpenedCase {
    /// The program with its machine and chip. The image has either only this program or all programs of the file that
    /// the case names.
    pub opened: Opened,
    /// One launch for each set of constants, with all inputs. The list is empty if the case has only words. Launches do
    /// not contain the expected results. [`Case::judge`] compares the results with the expected results.
    pub launches: Vec<LaunchFile>,
}

impl OpenedCase {
    /// Returns an opened case with one program.
    pub(crate) fn of(target: Target, program: Program, launches: Vec<LaunchFile>) -> OpenedCase {
        let (isa, chip) = (Some(target.isa), target.chip_name().map(str::to_owned));
        let image = Image { format: "case", isa, chip, programs: vec![program], ..Image::default() };
        let opened = Opened { target, image, warnings: Vec::new(), lines: Vec::new(), source: None };
        OpenedCase { opened, launches }
    }
}

/// The reason why a case cannot be opened.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum OpenCaseError {
    /// No case has this name.
    #[error("unknown case `{name}` among {count}{}", .meant.as_ref().map(|meant| format!("; did you mean `{meant}`?")).unwrap_or_default())]
    NoCase {
        /// The name.
        name: String,
        /// Number of cases in the file.
        count: usize,
        /// The most similar name among the cases.
        meant: Option<String>,
    },
    /// The case does not contain a valid program.
    #[error("{name}: {why}")]
    NoProgram {
        /// The case.
        name: String,
        /// The reason.
        why: String,
    },
}

/// Returns the case with a name.
///
/// # Errors
/// Fails if no case has the name.
pub fn find<'a>(cases: &'a [Case], name: &str) -> Result<&'a Case, OpenCaseError> {
    cases.iter().find(|case| case.name == name).ok_or_else(|| OpenCaseError::NoCase {
        name: name.to_owned(),
        count: cases.len(),
        meant: closest(name, cases.iter().map(|case| case.name.as_str())).map(str::to_owned),
    })
}

impl Case {
    /// Returns a short description of the case, for lists.
    pub fn about(&self) -> String {
        let shader = |isa: &str, lanes: usize, runs: usize| {
            format!("{isa} shader, {}, {}", count(lanes, "lane"), count(runs, "run"))
        };
        match &self.kind {
            CaseKind::R500(case) => shader("r500", case.lanes, case.runs.len()),
            CaseKind::R700(case) => shader("r700", case.lanes, case.runs.len()),
            CaseKind::Llvm(case) => shader("r700", case.lanes, 1),
            CaseKind::Tesla(case) => shader("tesla", case.lanes, case.runs.len()),
            CaseKind::Vector(_) => "one tesla instruction".to_owned(),
            CaseKind::Manifest(_) => "run manifest".to_owned(),
            CaseKind::Launch(_) => "launch file".to_owned(),
            CaseKind::RoundTrip(case) => {
                format!("{} program, {}", case.target.isa, count(case.program.words.len(), "word"))
            }
            CaseKind::Skip(why) => format!("skipped: {why}"),
            CaseKind::Unsupported(why) => format!("unsupported: {why}"),
            CaseKind::Broken(why) => format!("broken: {why}"),
        }
    }

    /// Returns the program and the launches of the case.
    ///
    /// # Errors
    /// Fails if the case does not contain a program, or if the program is invalid.
    pub fn open(&self) -> Result<OpenedCase, OpenCaseError> {
        let refused = |why: String| OpenCaseError::NoProgram { name: self.name.clone(), why };
        match &self.kind {
            CaseKind::R500(case) => case.open().map_err(refused),
            CaseKind::R700(case) => case.open().map_err(refused),
            CaseKind::Llvm(case) => case.open().map_err(refused),
            CaseKind::Tesla(case) => case.open().map_err(refused),
            CaseKind::Vector(case) => case.open().map_err(refused),
            CaseKind::Launch(case) => Ok(case.open()),
            CaseKind::Manifest(case) => Ok(case.open()),
            CaseKind::RoundTrip(case) => {
                Ok(OpenedCase::of(case.target.clone(), case.program.clone(), Vec::new()))
            }
            CaseKind::Skip(why) | CaseKind::Unsupported(why) | CaseKind::Broken(why) => {
                Err(refused(why.clone()))
            }
        }
    }
}

/// Returns a number and a noun: `1 lane`, `2 lanes`.
fn count(number: usize, what: &str) -> String {
    format!("{number} {what}{}", if number == 1 { "" } else { "s" })
}
