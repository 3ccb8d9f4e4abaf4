//! Reads and runs the cases that the command `check` compares, in every file format.
//!
//! * [`read()`] recognises the format of a file by its content, and returns the [`Case`]s in the file. A [`Folder`]
//!   reads other files in the folder of this file and in the parent folders.
//! * [`Case::judge`] runs a case, compares the results with the expected results, and returns a [`Verdict`].
//! * [`summary`] counts the verdicts of many cases.
//! * [`opened`] finds a case by name, and returns the program and the launches of the case.
//!
//! Each format has a module. [`corpus`] has shader cases with expected results of lanes. [`listing`] has words with a
//! listing, without expected results. [`vectors`] has tables of single instructions with expected results. [`manifest`]
//! has run manifests. [`launch`] has launch files. [`binary`] has bare words and containers that must survive the
//! conversion to text and back. Several of these modules use [`hex`] for words in JSON and [`expect`] for the
//! comparison of lanes.

#![forbid(unsafe_code)]

pub mod binary;
pub mod corpus;
pub mod expect;
pub mod hex;
pub mod launch;
pub mod listing;
pub mod manifest;
mod modes;
pub mod opened;
pub mod r500;
pub mod r700;
mod schemas;
pub mod summary;
pub mod tesla;
#[cfg(test)]
mod tests;
pub mod vectors;

use std::collections::HashMap;
use std::fmt;
use std::io::Read;
use std::sync::{Arc, Mutex, PoisonError};

use reconverge_isa::Isa;
use reconverge_isa::limits::FILE;
use reconverge_simt::{Mode, Options, Shares};
use thiserror::Error;

pub use opened::{OpenCaseError, OpenedCase, find};
pub use summary::{Known, Outcome, Status, Summary};

/// The result of a case.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// All results are as expected. `findings` are problems that strict mode reports. A finding does not make the case
    /// fail.
    Passed {
        /// One line per finding.
        findings: Vec<String>,
    },
    /// A result is not as expected. The field is the reason.
    Failed(String),
    /// The case needs a feature that is not implemented.
    Unsupported(String),
    /// The case has nothing to compare. The field is the reason.
    Skipped(String),
    /// The case did not end within the time limit.
    Timeout(String),
}

impl Verdict {
    /// The verdict of a case that passed without findings.
    pub const PASSED: Verdict = Verdict::Passed { findings: Vec::new() };
}

/// Settings for running cases.
#[derive(Clone, Debug, Default)]
pub struct Settings {
    /// The mode in which cases run. If the mode is `None`, cases run in both modes. With `None`, a trap in strict mode
    /// is a finding if lenient mode returns the expected result.
    pub mode: Option<Mode>,
    /// Options of the runs. The field `options.mode` has no effect.
    pub options: Options,
    /// Number of instructions that the fast engine ran, for each [`Path`](reconverge_simt::Path). The numbers are sums
    /// over all lockstep runs.
    pub shares: Arc<Mutex<Shares>>,
}

impl Settings {
    pub(crate) fn count(&self, shares: &Shares) {
        self.shares.lock().unwrap_or_else(PoisonError::into_inner).add(shares);
    }
}

/// One program to run and compare.
#[derive(Clone, Debug)]
pub struct Case {
    /// File of the case.
    pub file: String,
    /// Name of the case in the file.
    pub name: String,
    /// Type and contents.
    pub kind: CaseKind,
}

/// Type and contents of a case.
#[derive(Clone, Debug)]
pub enum CaseKind {
    /// An R500 shader with the expected results of its lanes.
    R500(Box<r500::R500Case>),
    /// An R700 shader with the expected results of its lanes.
    R700(Box<r700::R700Case>),
    /// An R700 program compiled by LLVM, with expected exports.
    Llvm(Box<r700::LlvmCase>),
    /// A Tesla shader with the expected results of its lanes.
    Tesla(Box<tesla::TeslaCase>),
    /// One row of the arithmetic vectors.
    Vector(Box<vectors::VectorCase>),
    /// A run manifest and the program of the manifest.
    Manifest(Box<manifest::ManifestCase>),
    /// A launch file and the program of the launch file.
    Launch(Box<launch::LaunchCase>),
    /// Words that must not change in the conversion to text and back.
    RoundTrip(Box<binary::RoundTrip>),
    /// A case that has nothing to compare. The field is the reason.
    Skip(String),
    /// A case that needs a feature that is not implemented.
    Unsupported(String),
    /// A file that does not contain a readable case. The field is the reason.
    Broken(String),
}

impl Case {
    /// Returns a case that always fails, for a file that does not contain a readable case. The case has the name of the
    /// file.
    pub fn broken(file: &str, why: String) -> Case {
        let name = file.rsplit(['/', '\\']).next().unwrap_or(file).to_owned();
        Case { file: file.to_owned(), name, kind: CaseKind::Broken(why) }
    }

    /// Returns a name that is unique among all files. Baselines use this name. The name is `FILE:NAME`, or `FILE` if
    /// the name of the case is the name of the file.
    pub fn id(&self) -> String {
        id(&self.file, &self.name)
    }

    /// Runs the case, and compares the results with the expected results.
    pub fn judge(&self, settings: &Settings) -> Verdict {
        match &self.kind {
            CaseKind::R500(case) => case.judge(settings),
            CaseKind::R700(case) => case.judge(settings),
            CaseKind::Llvm(case) => case.judge(settings),
            CaseKind::Tesla(case) => case.judge(settings),
            CaseKind::Vector(case) => case.judge(settings),
            CaseKind::Manifest(case) => case.judge(settings),
            CaseKind::Launch(case) => case.judge(settings),
            CaseKind::RoundTrip(program) => program.judge(),
            CaseKind::Skip(why) => Verdict::Skipped(why.clone()),
            CaseKind::Unsupported(why) => Verdict::Unsupported(why.clone()),
            CaseKind::Broken(why) => Verdict::Failed(why.clone()),
        }
    }
}

/// Returns `FILE:NAME`, or `FILE` if the name of the case is the name of the file.
pub(crate) fn id(file: &str, name: &str) -> String {
    match file.rsplit(['/', '\\']).next() == Some(name) {
        true => file.to_owned(),
        false => format!("{file}:{name}"),
    }
}

/// Access to files in the folder of a case file and in the parent folders. The libraries of this project do not open
/// files themselves.
pub trait Folder: fmt::Debug + Send + Sync {
    /// Returns the bytes of the file at a path relative to the folder.
    ///
    /// # Errors
    /// If the file cannot be read, returns the reason. The reason does not contain the file's name.
    fn read(&self, relative: &str) -> Result<Vec<u8>, String>;
    /// Searches the parent folders for a file `name`. The search starts with the folder of the original file. Returns
    /// two values. The first value is the path of the original file relative to the folder that has `name`. The second
    /// value is the bytes of `name`.
    fn above(&self, name: &str) -> Option<(String, Vec<u8>)>;
}

/// A [`Folder`] without files.
#[derive(Clone, Copy, Debug)]
pub struct NoFolder;

impl Folder for NoFolder {
    fn read(&self, _: &str) -> Result<Vec<u8>, String> {
        Err("no such file".to_owned())
    }

    fn above(&self, _: &str) -> Option<(String, Vec<u8>)> {
        None
    }
}

/// An error in a file.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum ReadError {
    /// The content of the file does not have a known format.
    #[error("{file}: expected a case file, launch file, run manifest, vector table or program: {why}")]
    Unknown {
        /// The file.
        file: String,
        /// The reader tries the known formats one after another. The reason why the content does not have the last
        /// format that the reader tried.
        why: String,
    },
    /// The file ends early, or its compression is damaged.
    #[error("{file}: {why}")]
    Damaged {
        /// The file.
        file: String,
        /// The problem.
        why: String,
    },
    /// A line that is not a case.
    #[error("{file}:{line}: {why}")]
    Line {
        /// The file.
        file: String,
        /// Line number, from 1.
        line: usize,
        /// The problem.
        why: String,
    },
}

/// Returns the cases of a file. Each case has a unique name. `path` is the path of the file for messages. `isa` is the
/// machine of bare words, if the caller has determined this machine.
///
/// # Errors
/// See [`ReadError`].
pub fn read(
    path: &str,
    bytes: &[u8],
    folder: &Arc<dyn Folder>,
    isa: Option<Isa>,
) -> Result<Vec<Case>, ReadError> {
    let mut cases = recognise(path, bytes, folder, isa)?;
    name_apart(path, &mut cases);
    Ok(cases)
}

/// Renames cases so that each name is unique. A case without a name gets the name of the file. If several cases have
/// the same name, the second case gets the suffix `#2`, the third case gets `#3`, and so on.
fn name_apart(path: &str, cases: &mut [Case]) {
    let mut seen: HashMap<String, usize> = HashMap::with_capacity(cases.len());
    for case in cases {
        if case.name.is_empty() {
            case.name = path.rsplit(['/', '\\']).next().unwrap_or(path).to_owned();
        }
        let times = seen.entry(case.name.clone()).or_default();
        *times += 1;
        if *times > 1 {
            case.name = format!("{}#{times}", case.name);
        }
    }
}

/// Returns the cases of a file. The cases have the names that the file states.
fn recognise(
    path: &str,
    bytes: &[u8],
    folder: &Arc<dyn Folder>,
    isa: Option<Isa>,
) -> Result<Vec<Case>, ReadError> {
    let unpacked;
    let bytes = if bytes.starts_with(&[0x1f, 0x8b]) {
        unpacked = gunzip(path, bytes)?;
        &unpacked[..]
    } else {
        bytes
    };
    let first_line = bytes.split(|byte| *byte == b'\n').next().unwrap_or_default();
    if let Ok(serde_json::Value::Object(first)) = serde_json::from_slice(first_line) {
        if first.contains_key("program") && first.contains_key("runs") {
            return schemas::read(path, bytes);
        }
        if first.contains_key("words") && first.contains_key("expect") {
            return schemas::read_llvm(path, bytes);
        }
        if first.contains_key("disasm") || first.contains_key("listing") {
            return listing::read(path, bytes);
        }
    }
    if let Some(cases) = launch::read(path, bytes, folder) {
        return cases;
    }
    if let Some(cases) = manifest::read(path, bytes, folder) {
        return cases;
    }
    if first_line.starts_with(vectors::HEADER) {
        return vectors::read(path, bytes);
    }
    binary::read(path, bytes, &**folder, isa)
}

fn gunzip(path: &str, bytes: &[u8]) -> Result<Vec<u8>, ReadError> {
    let damaged = |why: String| ReadError::Damaged { file: path.to_owned(), why };
    let mut unpacked = Vec::new();
    flate2::read::MultiGzDecoder::new(bytes)
        .take(FILE.get().saturating_add(1))
        .read_to_end(&mut unpacked)
        .map_err(|error| damaged(format!("damaged gzip data: {error}")))?;
    if unpacked.len() as u64 > FILE.get() {
        return Err(damaged(format!("unpacked, {}", FILE.exceeded())));
    }
    Ok(unpacked)
}

/// Parses the lines of a JSON Lines file. Lines are numbered from 1. The function skips empty lines.
fn json_lines<'a, T: serde::Deserialize<'a>>(
    path: &'a str,
    bytes: &'a [u8],
) -> impl Iterator<Item = Result<T, ReadError>> + 'a {
    bytes.split(|byte| *byte == b'\n').enumerate().filter(|(_, line)| !line.trim_ascii().is_empty()).map(
        move |(index, line)| {
            serde_json::from_slice(line).map_err(|error| ReadError::Line {
                file: path.to_owned(),
                line: index + 1,
                why: error.to_string(),
            })
        },
    )
}
