//! `reconverge check`

use std::collections::BTreeSet;
use std::io::IsTerminal;
use std::path::{Path, PathBuf};
use std::sync::{Arc, PoisonError};
use std::time::Duration;

use anyhow::{Context, Result, anyhow};
use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use quick_junit::{NonSuccessKind, Report, TestCase, TestCaseStatus, TestSuite};
use rayon::prelude::*;
use reconverge_cases::{Case, Folder, ReadError, Settings, Summary, Verdict};
use reconverge_isa::Isa;
use reconverge_simt::{Mode, Shares};
use regex::Regex;

use crate::messages::{counted, note, quiet};
use crate::{Answer, EngineArgs, builtin, files};

/// Run test cases and compare; without a path, the built-in corpus of all machines
#[derive(clap::Args)]
pub(crate) struct Check {
    /// Files or folders: corpus cases, vectors, run manifests, launch files, programs
    paths: Vec<PathBuf>,
    #[command(flatten)]
    engine: EngineArgs,
    /// Threads; as many as there are processors when absent
    #[arg(short, long, value_name = "N")]
    jobs: Option<usize>,
    /// Only cases whose name matches
    #[arg(long, value_name = "REGEX")]
    filter: Option<Regex>,
    /// The --json output of an earlier check: what failed there already does not count again
    #[arg(long, value_name = "FILE")]
    baseline: Option<PathBuf>,
    /// Write a JUnit report
    #[arg(long, value_name = "FILE")]
    junit: Option<PathBuf>,
    /// Only strict or only lenient mode; both when absent, a strict trap being a finding
    #[arg(long, value_name = "MODE", value_parser = crate::mode())]
    mode: Option<Mode>,
    /// The machine of bare words, where nothing else states it
    #[arg(long, value_name = "MACHINE", value_parser = crate::isa())]
    isa: Option<Isa>,
    /// One JSON object on standard output
    #[arg(long)]
    pub(crate) json: bool,
}

pub(crate) fn run(args: &Check) -> Result<Answer> {
    let mut cases = Vec::new();
    if args.paths.is_empty() {
        cases = builtin::cases()?;
    }
    for path in &args.paths {
        read_path(path, args.isa, &mut cases)?;
    }
    if let Some(filter) = &args.filter {
        cases.retain(|case| filter.is_match(&case.name));
    }
    if let Some(jobs) = args.jobs {
        rayon::ThreadPoolBuilder::new().num_threads(jobs).build_global().context("--jobs")?;
    }
    let settings = Settings { mode: args.mode, options: args.engine.options(), shares: Arc::default() };
    let progress = progress(cases.len() as u64);
    let verdicts: Vec<Verdict> = cases
        .par_iter()
        .map(|case| {
            let verdict = case.judge(&settings);
            progress.inc(1);
            verdict
        })
        .collect();
    progress.finish_and_clear();
    if let Some(path) = &args.junit {
        files::write(path, junit(&cases, &verdicts).as_bytes())?;
    }
    let mut summary = Summary::default();
    cases.iter().zip(verdicts).for_each(|(case, verdict)| summary.add(case, verdict));
    let shares = *settings.shares.lock().unwrap_or_else(PoisonError::into_inner);
    summary.set_paths(&shares);

    let known = match &args.baseline {
        Some(path) => baseline(path)?,
        None => BTreeSet::new(),
    };
    let new_failures = summary
        .failures
        .iter()
        .filter(|failure| !known.contains(&(failure.file.clone(), failure.name.clone())))
        .count();
    if args.json {
        say!("{}", serde_json::to_string(&summary)?);
    } else {
        print(&summary, &shares);
        if args.baseline.is_some() {
            say!("{new_failures} of the failures are not in the baseline");
        }
    }
    Ok(if new_failures == 0 { Answer::Yes } else { Answer::No })
}

fn print(summary: &Summary, shares: &Shares) {
    for outcome in &summary.skips {
        say!("skipped  {}: {}", outcome.file, outcome.why);
    }
    for outcome in &summary.findings {
        say!("finding  {}: {}", outcome.place(), outcome.why);
    }
    for outcome in &summary.failures {
        say!("FAILED   {}: {}", outcome.place(), outcome.why);
    }
    say!(
        "{}: {} passed, {} failed, {} unsupported, {} skipped; {}",
        counted(summary.cases as u64, "case"),
        summary.passed,
        summary.failed,
        summary.unsupported,
        summary.skipped,
        counted(summary.findings.len() as u64, "strict finding")
    );
    if shares.total() > 0 {
        say!("the fast engine ran {shares}");
    }
}

/// A bar on a terminal, after a second; nothing elsewhere.
fn progress(cases: u64) -> ProgressBar {
    let target = if std::io::stderr().is_terminal() && !quiet() {
        ProgressDrawTarget::stderr()
    } else {
        ProgressDrawTarget::hidden()
    };
    let bar = ProgressBar::with_draw_target(Some(cases), target);
    if let Ok(style) = ProgressStyle::with_template("{bar:40} {pos}/{len} cases {elapsed}") {
        bar.set_style(style);
    }
    bar.enable_steady_tick(Duration::from_secs(1));
    bar
}

fn baseline(path: &Path) -> Result<BTreeSet<(String, String)>> {
    #[derive(serde::Deserialize)]
    struct Failure {
        file: String,
        name: String,
    }
    #[derive(serde::Deserialize)]
    struct Baseline {
        failures: Vec<Failure>,
    }
    let bytes = files::read(path)?;
    let baseline: Baseline = serde_json::from_slice(&bytes)
        .with_context(|| format!("{}: not the --json output of a check", path.display()))?;
    Ok(baseline.failures.into_iter().map(|failure| (failure.file, failure.name)).collect())
}

fn junit(cases: &[Case], verdicts: &[Verdict]) -> String {
    let mut report = Report::new("reconverge check");
    let mut suites: Vec<TestSuite> = Vec::new();
    for (case, verdict) in cases.iter().zip(verdicts) {
        let status = match verdict {
            Verdict::Passed { .. } => TestCaseStatus::success(),
            Verdict::Skipped(why) => {
                let mut status = TestCaseStatus::skipped();
                status.set_message(why.clone());
                status
            }
            Verdict::Failed(why) | Verdict::Unsupported(why) => {
                let mut status = TestCaseStatus::non_success(NonSuccessKind::Failure);
                status.set_message(why.clone());
                status
            }
        };
        if suites.last().is_none_or(|suite| suite.name.as_str() != case.file) {
            suites.push(TestSuite::new(case.file.clone()));
        }
        if let Some(suite) = suites.last_mut() {
            suite.add_test_case(TestCase::new(case.name.clone(), status));
        }
    }
    report.add_test_suites(suites);
    report.to_string().unwrap_or_default()
}

// ---- Files

/// Files that others name and that hold no case of their own.
fn is_beside(path: &Path) -> bool {
    let name = path.file_name().and_then(|name| name.to_str()).unwrap_or_default();
    let extension = path.extension().and_then(|extension| extension.to_str()).unwrap_or_default();
    name.starts_with('.')
        || name == "index.json"
        || matches!(extension, "md" | "c" | "cl" | "s" | "asm" | "npy" | "toml.lock")
}

fn read_path(path: &Path, isa: Option<Isa>, cases: &mut Vec<Case>) -> Result<()> {
    let about = std::fs::metadata(path).with_context(|| path.display().to_string())?;
    if !about.is_dir() {
        return read_file(path, isa, cases).map_err(|error| anyhow!(error));
    }
    let mut entries: Vec<PathBuf> = std::fs::read_dir(path)
        .with_context(|| path.display().to_string())?
        .map(|entry| entry.map(|entry| entry.path()))
        .collect::<Result<_, _>>()
        .with_context(|| path.display().to_string())?;
    entries.sort();
    // The files that run manifests name lie in a folder `data` beside them.
    let manifests =
        entries.iter().any(|entry| entry.extension().is_some_and(|extension| extension == "json"));
    for entry in entries {
        let is_data = manifests && entry.file_name().is_some_and(|name| name == "data");
        if is_beside(&entry) || is_data {
            continue;
        }
        if entry.is_dir() {
            read_path(&entry, isa, cases)?;
        } else if let Err(error) = read_file(&entry, isa, cases) {
            match error {
                // A folder may hold other things; a damaged case file is no such thing.
                ReadError::Unknown { .. } => note(&format!("{error}; passed over")),
                error => return Err(error.into()),
            }
        }
    }
    Ok(())
}

fn read_file(path: &Path, isa: Option<Isa>, cases: &mut Vec<Case>) -> Result<(), ReadError> {
    let name = path.display().to_string();
    let damaged = |why: String| ReadError::Damaged { file: name.clone(), why };
    let bytes = std::fs::read(path).map_err(|error| damaged(error.to_string()))?;
    let folder: Arc<dyn Folder> = Arc::new(Disk { file: path.to_owned() });
    cases.extend(reconverge_cases::read(&name, &bytes, &folder, isa)?);
    Ok(())
}

/// Files beside a file on disk.
#[derive(Debug)]
struct Disk {
    file: PathBuf,
}

impl Folder for Disk {
    fn read(&self, relative: &str) -> Option<Vec<u8>> {
        std::fs::read(self.file.parent()?.join(relative)).ok()
    }

    fn above(&self, name: &str) -> Option<(String, Vec<u8>)> {
        let file = std::path::absolute(&self.file).ok()?;
        let (folder, bytes) = file
            .ancestors()
            .skip(1)
            .find_map(|folder| Some((folder, std::fs::read(folder.join(name)).ok()?)))?;
        let relative = file.strip_prefix(folder).ok()?;
        let parts: Vec<&str> = relative.iter().filter_map(|part| part.to_str()).collect();
        Some((parts.join("/"), bytes))
    }
}
