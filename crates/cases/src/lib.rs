//! Every case schema, read and run: what `check` compares.
//!
//! * [`read()`] recognises a file by its content and gives its [`Case`]s; files beside it come through [`Folder`].
//! * [`Case::judge`] runs one and compares: a [`Verdict`].
//! * [`summary`] adds verdicts up.
//! * [`opened`]: one case by name, as a program and its launches.
//!
//! One module a schema: [`corpus`] (shader cases with expected lanes), [`listing`] (words with a listing, no
//! expectation), [`vectors`] (arithmetic), [`manifest`] (run manifests), [`launch`] (launch files), [`binary`] (bare
//! words and containers, round trip). [`hex`] (words in JSON)
//! and [`expect`] (comparing lanes) serve several of them.

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

/// What came of a case.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// Everything is as expected. `findings` are things a strict reading objects to all the same.
    Passed {
        /// One line each.
        findings: Vec<String>,
    },
    /// Something is not as expected.
    Failed(String),
    /// The case needs something that is not implemented.
    Unsupported(String),
    /// There is nothing to compare, for the reason given.
    Skipped(String),
    /// It had not ended when its time was used up.
    Timeout(String),
}

impl Verdict {
    /// Passed, with nothing to add.
    pub const PASSED: Verdict = Verdict::Passed { findings: Vec::new() };
}

/// How cases run.
#[derive(Clone, Debug, Default)]
pub struct Settings {
    /// Only this mode; `None` runs both, and a strict trap is a finding when lenient mode gives the result.
    pub mode: Option<Mode>,
    /// How the cases run; the mode in it is not looked at.
    pub options: Options,
    /// Adds up the fast engine's instructions by path, of runs in lockstep.
    pub shares: Arc<Mutex<Shares>>,
}

impl Settings {
    pub(crate) fn count(&self, shares: &Shares) {
        self.shares.lock().unwrap_or_else(PoisonError::into_inner).add(shares);
    }
}

/// One thing to run and compare.
#[derive(Clone, Debug)]
pub struct Case {
    /// Its file.
    pub file: String,
    /// Its name in that file.
    pub name: String,
    /// What it is.
    pub kind: CaseKind,
}

/// What a case is.
#[derive(Clone, Debug)]
pub enum CaseKind {
    /// An R500 shader with expected lanes.
    R500(Box<r500::R500Case>),
    /// An R700 shader with expected lanes.
    R700(Box<r700::R700Case>),
    /// An R700 program of LLVM's with expected exports.
    Llvm(Box<r700::LlvmCase>),
    /// A Tesla shader with expected lanes.
    Tesla(Box<tesla::TeslaCase>),
    /// One row of the arithmetic vectors.
    Vector(Box<vectors::VectorCase>),
    /// A run manifest with its program.
    Manifest(Box<manifest::ManifestCase>),
    /// A launch file with its program.
    Launch(Box<launch::LaunchCase>),
    /// Words that must survive the round trip through text.
    RoundTrip(Box<binary::RoundTrip>),
    /// Nothing to compare, and why.
    Skip(String),
    /// Needs something that is not implemented.
    Unsupported(String),
    /// A file that holds no case that can be read, and why.
    Broken(String),
}

impl Case {
    /// A file without a case that can be read: it fails under its own name.
    pub fn broken(file: &str, why: String) -> Case {
        let name = file.rsplit(['/', '\\']).next().unwrap_or(file).to_owned();
        Case { file: file.to_owned(), name, kind: CaseKind::Broken(why) }
    }

    /// The name among all files, as baselines have it: `FILE:NAME`, or the file alone where the case has its name.
    pub fn id(&self) -> String {
        id(&self.file, &self.name)
    }

    /// Runs the case.
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

/// `FILE:NAME`, or the file alone where the case has its name.
pub(crate) fn id(file: &str, name: &str) -> String {
    match file.rsplit(['/', '\\']).next() == Some(name) {
        true => file.to_owned(),
        false => format!("{file}:{name}"),
    }
}

/// Files beside the one that is read, by path relative to it. Libraries do no file access themselves.
pub trait Folder: fmt::Debug + Send + Sync {
    /// The bytes of a file.
    ///
    /// # Errors
    /// Why they cannot be had, for people, without the file's name.
    fn read(&self, relative: &str) -> Result<Vec<u8>, String>;
    /// The path of the file being read, relative to the closest folder above it that holds `name`, with the
    /// bytes of that `name`.
    fn above(&self, name: &str) -> Option<(String, Vec<u8>)>;
}

/// No files beside.
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

/// A file that is not what it seems to be.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum ReadError {
    /// Nothing here recognises the content.
    #[error("{file}: not a case file, a launch file, a run manifest, a vector table or a program: {why}")]
    Unknown {
        /// The file.
        file: String,
        /// What was tried last.
        why: String,
    },
    /// The file ends early, or its compression is damaged.
    #[error("{file}: {why}")]
    Damaged {
        /// The file.
        file: String,
        /// What is wrong.
        why: String,
    },
    /// A line is not a case.
    #[error("{file}:{line}: {why}")]
    Line {
        /// The file.
        file: String,
        /// One-based.
        line: usize,
        /// What is wrong.
        why: String,
    },
}

/// The cases of a file, each with a name of its own. `path` is for messages; `isa` is what the caller knows about bare
/// words.
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

/// A case without a name gets that of its file; the second of a name gets `#2` behind it.
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

/// The cases of a file, as it names them.
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

/// The lines of a JSON Lines file, numbered from 1, without empty ones.
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
