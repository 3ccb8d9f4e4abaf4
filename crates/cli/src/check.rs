//! `reconverge check`

use std::collections::HashSet;
use std::io::{BufWriter, Write};
use std::path::{Path, PathBuf};
use std::sync::mpsc::channel;
use std::sync::{Arc, PoisonError};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, anyhow, bail};
use quick_junit::{NonSuccessKind, Report, TestCase, TestCaseStatus, TestSuite};
use rayon::prelude::*;
use reconverge_cases::launch::HandedIn;
use reconverge_cases::{
    Case, CaseKind, Folder, Known, Outcome, ReadError, Settings, Status, Summary, Verdict,
};
use reconverge_isa::Isa;
use reconverge_isa::limits::{FILE, MEMORY};
use reconverge_simt::{Engine, Mode, Options, Shares, pool};
use reconverge_workbench::keys::{placed, plain};
use regex_lite::Regex;
use walkdir::WalkDir;

use crate::args::{Answer, EngineArgs, RaceArgs, ReadArgs};
use crate::beside::{allowed, folder_of};
use crate::messages::{answer_json, bar, counted, note, quiet};
use crate::part::Part;
use crate::shown;
use crate::timeout::Seconds;
use crate::{builtin, files, interrupt};

/// Run test cases and compare their results (default: the built-in corpus of all machines)
#[derive(clap::Args)]
pub(crate) struct Check {
    /// Files or folders with corpus cases, vectors, run manifests, launch files or programs
    paths: Vec<PathBuf>,
    /// Run each launch file with this program instead of the program that the launch file names, and print one line per
    /// program. Several programs can be given, for example to grade solutions of an exercise
    #[arg(long, value_name = "FILE", num_args = 1.., requires = "paths")]
    program: Vec<PathBuf>,
    #[command(flatten)]
    engine: EngineArgs,
    #[command(flatten)]
    races: RaceArgs,
    /// Number of threads (default: one per processor)
    #[arg(short, long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..))]
    jobs: Option<u16>,
    /// Run only cases whose name or FILE:NAME matches REGEX
    #[arg(long, value_name = "REGEX")]
    filter: Option<Regex>,
    /// Run only part K of N parts of the cases. The first part is 1
    #[arg(long, value_name = "K/N")]
    shard: Option<Part>,
    /// Stop a case after this time; a stopped case fails
    #[arg(long, value_name = "SECONDS")]
    timeout: Option<Seconds>,
    /// List of known failures. Each line of FILE is NAME,STATUS, as in deqp-runner; FILE can also be the --json output
    /// of an earlier check. A failure in FILE does not affect the exit status. A case in FILE that passes counts as a
    /// failure
    #[arg(long, value_name = "FILE")]
    baseline: Option<PathBuf>,
    /// Write the failures as a baseline
    #[arg(long, value_name = "FILE")]
    write_baseline: Option<PathBuf>,
    /// List of flaky cases. Each line is a regular expression that matches FILE:NAME of such cases. Failures of these
    /// cases do not affect the exit status
    #[arg(long, value_name = "FILE")]
    flakes: Option<PathBuf>,
    /// Write one line NAME,STATUS,SECONDS per case
    #[arg(long, value_name = "FILE")]
    results: Option<PathBuf>,
    /// Write a JUnit report
    #[arg(long, value_name = "FILE")]
    junit: Option<PathBuf>,
    /// Run only in this mode (default: both modes; a trap in strict mode is a finding)
    #[arg(long, value_name = "MODE", value_parser = crate::args::mode())]
    mode: Option<Mode>,
    /// Machine of raw words, if the file does not state the machine
    #[arg(long, value_name = "MACHINE", value_parser = crate::args::isa())]
    isa: Option<Isa>,
    #[command(flatten)]
    read: ReadArgs,
    /// Let launch files and manifests name files outside the checked folder. For a path to a single file, the checked
    /// folder is the folder of this file. For a path to a single manifest, the checked folder is the parent of the
    /// manifest's folder
    #[arg(long)]
    allow_outside: bool,
    /// One JSON object on standard output
    #[arg(long)]
    json: bool,
}

pub(crate) fn run(args: &Check) -> Result<Answer> {
    let known = known(args)?;
    let mut cases = Vec::new();
    if args.paths.is_empty() {
        cases = builtin::cases()?;
    }
    for path in &args.paths {
        match args.program.is_empty() {
            true => read_path(path, args, &mut cases)?,
            false => read_handed_in(path, args, &mut cases)?,
        }
    }
    let read = cases.len();
    if let Some(filter) = &args.filter {
        cases.retain(|case| filter.is_match(&case.name) || filter.is_match(&case.id()));
    }
    let chosen = cases.len();
    if let Some(part) = args.shard {
        cases = part.of(cases);
    }
    if cases.is_empty() {
        bail!("{}", nothing(args, read, chosen));
    }
    if let Some(jobs) = args.jobs {
        pool::set_threads(jobs.into());
    }
    let options = Options { race_check: args.races.check(), ..args.engine.options_or(Engine::Fast) };
    let settings = Settings { mode: args.mode, options, shares: Arc::default() };
    interrupt::watch();
    let progress = bar(Some(cases.len() as u64), "{bar:40} {pos}/{len} cases {elapsed}");
    let mut cases: Vec<Arc<Case>> = cases.into_iter().map(Arc::new).collect();
    let judged = |case: &Arc<Case>| {
        if interrupt::asked() {
            return None;
        }
        let start = Instant::now();
        let verdict = judge(case, &settings, args.timeout);
        progress.inc(1);
        // A case that Ctrl-C interrupted does not have a verdict.
        (!interrupt::asked()).then(|| (verdict, start.elapsed()))
    };
    let judged: Vec<Option<(Verdict, Duration)>> = pool::install(|| cases.par_iter().map(judged).collect());
    progress.finish_and_clear();
    let mut has_verdict = judged.iter().map(Option::is_some);
    cases.retain(|_| has_verdict.next() == Some(true));
    let left = judged.iter().filter(|verdict| verdict.is_none()).count();
    let verdicts: Vec<(Verdict, Duration)> = judged.into_iter().flatten().collect();
    if let Some(path) = args.junit.as_ref().filter(|_| left == 0) {
        files::write(path, junit(&cases, &verdicts).as_bytes())?;
    }
    let mut summary = Summary::default();
    for (case, (verdict, time)) in cases.iter().zip(verdicts) {
        summary.add(case, verdict, time, &known);
    }
    let shares = *settings.shares.lock().unwrap_or_else(PoisonError::into_inner);
    summary.finish(&shares);
    if left == 0 {
        write_lists(args, &cases, &summary)?;
    }
    match (args.json, left) {
        (true, 0) => answer_json(&summary),
        (true, _) => answer_json(&Partial { summary: &summary, interrupted: true, not_judged: left }),
        (false, _) => {
            if !args.program.is_empty() {
                let passed = cases.iter().zip(&summary.results).filter(|(_, it)| it.status == Status::Pass);
                passed.for_each(|(case, _)| say!("passed   {}", shown::name(&case.id())));
            }
            print(args, &summary, &shares);
        }
    }
    if args.paths.is_empty() && !args.json && left == 0 && !quiet() {
        conclude(args, &cases, &summary, settings.options.engine());
    }
    if left > 0 {
        let left = counted(left as u64, "case");
        tell!("interrupted: {left} not judged; no lists or reports are written");
        return Ok(Answer::Status(interrupt::STATUS as u8));
    }
    Ok(if summary.is_good() { Answer::Yes } else { Answer::No })
}

/// JSON output of a check that Ctrl-C interrupted.
#[derive(serde::Serialize)]
struct Partial<'a> {
    #[serde(flatten)]
    summary: &'a Summary,
    interrupted: bool,
    /// Number of cases without a verdict.
    not_judged: usize,
}

/// Returns the message for a check without any case to judge.
fn nothing(args: &Check, read: usize, chosen: usize) -> String {
    let paths: Vec<String> = args.paths.iter().map(|path| crate::shown::path(&path)).collect();
    let paths = if paths.is_empty() { "the built-in corpus".to_owned() } else { paths.join(", ") };
    match (&args.filter, args.shard) {
        (_, Some(part)) if chosen > 0 => {
            format!("no case to judge: part {part} of {} is empty", counted(chosen as u64, "case"))
        }
        (Some(filter), _) if read > 0 => {
            format!(
                "no case to judge: --filter {filter} does not match any of {} in {paths}",
                counted(read as u64, "case")
            )
        }
        _ => format!(
            "no case to judge: no case found in {paths} (cases are .jsonl.gz, .csv.gz, launch files .toml and .json, run \
             manifests, and programs; a source is judged through a launch file, or if the command line names it)"
        ),
    }
}

/// Judges a case within a time limit. If a case exceeds the limit, the thread of the case continues until the process
/// ends. A running program cannot be stopped from outside.
fn judge(case: &Arc<Case>, settings: &Settings, limit: Option<Seconds>) -> Verdict {
    let Some(Seconds(limit)) = limit else { return case.judge(settings) };
    let (sender, receiver) = channel();
    let (case, settings) = (case.clone(), settings.clone());
    std::thread::spawn(move || {
        // If the time limit has been reached, the receiver no longer exists, and sending the verdict fails. In this
        // case, the verdict is not needed.
        let _ = sender.send(case.judge(&settings));
    });
    receiver.recv_timeout(limit).unwrap_or_else(|_| {
        Verdict::Timeout(format!("timed out after {} s (--timeout)", limit.as_secs_f64()))
    })
}

/// Maximum number of failures that are printed.
const SHOWN: usize = 1000;

fn print(args: &Check, summary: &Summary, shares: &Shares) {
    for outcome in &summary.skips {
        say!("skipped  {}: {}", shown::name(&outcome.file), outcome.why);
    }
    let line = |what, outcome: &Outcome| {
        let place = outcome.place();
        // The reason may contain a line number. If the name of the case is the name of the file, this number refers to
        // a line of the file. In this case, the message has the same form as a message of `reconverge run`.
        let of_file = place == outcome.file;
        let text = if of_file { placed(&place, &outcome.why) } else { format!("{place}: {}", outcome.why) };
        say!("{what}{}", shown::lines(&text));
    };
    summary.findings.iter().for_each(|outcome| line("finding  ", outcome));
    summary.flakes.iter().for_each(|outcome| line("flake    ", outcome));
    let new = |outcome: &&Outcome| !summary.is_expected(outcome);
    summary.failures.iter().filter(new).take(SHOWN).for_each(|outcome| line("FAILED   ", outcome));
    let unexpected = summary.failures.len() - summary.expected_failures;
    if unexpected > SHOWN {
        say!("… {} (--results or --json has them)", counted((unexpected - SHOWN) as u64, "more failure"));
    }
    for outcome in &summary.unexpected_passes {
        say!(
            "PASSES   {}: the baseline lists it as a failure; remove it from the baseline",
            shown::name(&outcome.place())
        );
    }
    // With --program, the output has one line per program instead of a list of reasons.
    if summary.failures.len() > 1 && args.program.is_empty() {
        for reason in summary.reasons.iter().take(20) {
            say!("{:6} x {}", reason.count, reason.reason);
        }
    }
    let flaky = match summary.flaky {
        0 => String::new(),
        flaky => format!(", {}", counted(flaky as u64, "flake")),
    };
    say!(
        "{}: {} passed, {} failed, {} unsupported, {} skipped{flaky}; {}",
        counted(summary.cases as u64, "case"),
        summary.passed,
        summary.failed,
        summary.unsupported,
        summary.skipped,
        counted(summary.findings.len() as u64, "strict finding")
    );
    if args.baseline.is_some() {
        say!(
            "{unexpected} of the failures are not in the baseline; {} of the cases in the baseline now {}",
            summary.unexpected_passes.len(),
            if summary.unexpected_passes.len() == 1 { "passes" } else { "pass" }
        );
    }
    if shares.total() > 0 {
        say!("the fast engine ran {shares}");
    }
}

/// Prints the conclusion of a check of the built-in corpus, for readers who run the tool for the first time. The
/// conclusion states which programs ran on which engine. The conclusion also explains what a finding is. The conclusion
/// also suggests a command that the reader can try after `check`. If a case did not pass, the function prints nothing.
fn conclude(args: &Check, cases: &[Arc<Case>], summary: &Summary, engine: Engine) {
    if summary.passed < summary.cases {
        return;
    }
    let of = |isa| cases.iter().filter(|case| builtin::machine(case) == Some(isa)).count();
    let machines = Isa::ALL.map(|isa| (of(isa), maker_and_name(isa)));
    let machines = machines.iter().filter(|(count, _)| *count > 0);
    let machines: Vec<String> = machines.map(|(count, name)| format!("{count} for {name}")).collect();
    say!(
        "{} ({}) ran on {}, and every result was correct.",
        counted(cases.len() as u64, "program"),
        machines.join(", "),
        described(engine)
    );
    if !summary.findings.is_empty() && args.mode.is_none() {
        say!(
            "A finding is not a failure: the program does something that the documents of its machine leave undefined, and \
             its result was correct in lenient mode."
        );
    }
    let (command, sample) = (typed_name(), "docs/samples/collatz.s");
    if Path::new(sample).is_file() {
        say!(
            "Next, watch lanes diverge: {command} run {sample} --block 12 --buf \"steps=u32[12]\" --html collatz.html, then \
             open collatz.html in a browser."
        );
    } else {
        say!(
            "Next, explain one instruction: {command} explain 300107fd 6c00c7c8 --isa tesla. For all commands: {command} --help."
        );
    }
}

/// Returns the machine's maker and name.
const fn maker_and_name(isa: Isa) -> &'static str {
    match isa {
        Isa::R500 => "ATI R500",
        Isa::R700 => "AMD R600 and R700",
        Isa::Tesla => "NVIDIA Tesla",
    }
}

/// Returns a description of an engine that fits into a sentence.
const fn described(engine: Engine) -> &'static str {
    match engine {
        Engine::Reference => "the reference interpreter",
        Engine::Fast => "the fast engine",
        Engine::Compiled => "the compiled engine and, for code that it cannot compile, the fast engine",
        Engine::Lockstep => "the reference interpreter and the fast engine in lockstep",
        Engine::LockstepCompiled => "the reference interpreter and the compiled engine in lockstep",
    }
}

/// Returns the name of this command for a message. If the user started the command with a relative path, as `cargo run`
/// does, the name is this path. Otherwise, the name is `reconverge`.
fn typed_name() -> String {
    let path = std::env::args_os().next().map(PathBuf::from);
    let path = path.filter(|path| path.is_relative() && path.components().count() > 1);
    path.map_or_else(|| "reconverge".to_owned(), |path| shown::program(&path))
}

// ---- Lists of cases

/// Reads the baseline and the list of flaky cases.
fn known(args: &Check) -> Result<Known> {
    let failing = args.baseline.as_deref().map(baseline).transpose()?.unwrap_or_default();
    let flaky = match &args.flakes {
        None => Vec::new(),
        Some(path) => {
            let place = || crate::shown::path(&path);
            let text = String::from_utf8(files::read(path)?).with_context(place)?;
            entries(&text).map(Regex::new).collect::<Result<_, _>>().with_context(place)?
        }
    };
    Ok(Known { failing, flaky })
}

/// Returns the lines of a list that are neither empty lines nor comments.
fn entries(text: &str) -> impl Iterator<Item = &str> {
    text.lines().map(str::trim).filter(|line| !line.is_empty() && !line.starts_with('#'))
}

/// Returns the ids of the cases that a baseline lists as failing.
pub(crate) fn baseline(path: &Path) -> Result<HashSet<String>> {
    #[derive(serde::Deserialize)]
    struct Earlier {
        failures: Vec<Failure>,
    }
    #[derive(serde::Deserialize)]
    struct Failure {
        file: String,
        name: String,
    }
    let place = crate::shown::path(&path);
    let text = String::from_utf8(files::read(path)?).with_context(|| place.to_string())?;
    if text.trim_start().starts_with('{') {
        let earlier: Earlier = serde_json::from_str(&text)
            .with_context(|| format!("{place}: expected the --json output of a check"))?;
        let outcome = |Failure { file, name }| Outcome { file, name, why: String::new() }.id();
        return Ok(earlier.failures.into_iter().map(outcome).collect());
    }
    let mut failing = HashSet::new();
    for (number, line) in text.lines().enumerate() {
        let Some(line) = entries(line).next() else { continue };
        let (name, status) = named(line).ok_or_else(|| {
            anyhow!("{place}:{}: expected NAME,STATUS such as a.toml,Fail, found `{line}`", number + 1)
        })?;
        if fails(status) {
            failing.insert(shown::unlisted(name));
        }
    }
    Ok(failing)
}

/// Splits a line `NAME,STATUS` or `NAME,STATUS,SECONDS` into the name and the status. The name may contain commas.
fn named(line: &str) -> Option<(&str, &str)> {
    let (rest, last) = line.rsplit_once(',')?;
    if last.trim().parse::<f64>().is_ok() { rest.rsplit_once(',') } else { Some((rest, last)) }
}

/// Whether a status of deqp-runner means that the case is expected to fail.
fn fails(status: &str) -> bool {
    ["Fail", "Crash", "Timeout", "Missing", "ExpectedFail", "UnexpectedImprovement(Fail)"]
        .contains(&status.trim())
}

/// Writes the lists that the arguments request.
fn write_lists(args: &Check, cases: &[Arc<Case>], summary: &Summary) -> Result<()> {
    let list = |path: &Option<PathBuf>, wanted: fn(Status) -> bool, seconds: bool| -> Result<()> {
        let Some(path) = path else { return Ok(()) };
        let mut text = BufWriter::new(Vec::new());
        for (case, result) in cases.iter().zip(&summary.results).filter(|(_, result)| wanted(result.status)) {
            // The written list can serve as a baseline. In a baseline, every known failure has the status `Fail`. So an
            // expected failure is also listed as `Fail`.
            let status = match result.status {
                Status::ExpectedFail if !seconds => Status::Fail,
                status => status,
            };
            match seconds {
                true => writeln!(text, "{},{},{}", shown::listed(&case.id()), status.name(), result.seconds)?,
                false => writeln!(text, "{},{}", shown::listed(&case.id()), status.name())?,
            }
        }
        files::write(path, &text.into_inner()?)
    };
    list(&args.results, |_| true, true)?;
    let failing = |status| matches!(status, Status::Fail | Status::Timeout | Status::ExpectedFail);
    list(&args.write_baseline, failing, false)
}

fn junit(cases: &[Arc<Case>], verdicts: &[(Verdict, Duration)]) -> String {
    let mut report = Report::new("reconverge check");
    let mut suites: Vec<TestSuite> = Vec::new();
    let because = |mut status: TestCaseStatus, why: &String| {
        status.set_message(why.clone());
        status
    };
    for (case, (verdict, time)) in cases.iter().zip(verdicts) {
        let status = match verdict {
            Verdict::Passed { .. } => TestCaseStatus::success(),
            Verdict::Skipped(why) => because(TestCaseStatus::skipped(), why),
            Verdict::Failed(why) | Verdict::Unsupported(why) | Verdict::Timeout(why) => {
                because(TestCaseStatus::non_success(NonSuccessKind::Failure), why)
            }
        };
        let file = shown::listed(&case.file);
        if suites.last().is_none_or(|suite| suite.name.as_str() != file) {
            suites.push(TestSuite::new(file));
        }
        if let Some(suite) = suites.last_mut() {
            let mut test = TestCase::new(shown::listed(&case.name), status);
            test.set_time(*time);
            suite.time = Some(suite.time.unwrap_or_default() + *time);
            suite.add_test_case(test);
        }
    }
    report.add_test_suites(suites);
    report.to_string().unwrap_or_default()
}

// ---- Files

/// Returns whether the command skips a file in a folder, because the file has no cases. Such a file is, for example, a
/// document, a source, or data that another file names.
fn is_beside(path: &Path) -> bool {
    let name = path.file_name().and_then(|name| name.to_str()).unwrap_or_default();
    let extension = path.extension().and_then(|extension| extension.to_str()).unwrap_or_default();
    name.starts_with('.')
        || name == "index.json"
        || matches!(extension, "md" | "c" | "cl" | "s" | "asm" | "npy" | "npz" | "toml.lock")
}

/// Extensions of files that are skipped if their contents do not have a known format. Programs and cases have other
/// extensions, or no extension.
const OTHER_FILES: [&str; 27] = [
    "bat", "cfg", "cmake", "cu", "css", "cpp", "glsl", "h", "htm", "html", "ini", "jpg", "js", "lock", "log",
    "pdf", "png", "py", "rs", "rst", "sh", "svg", "toml", "txt", "xml", "yaml", "yml",
];

/// Adds the cases of a file or folder. If a file cannot be read, the function adds a case that fails.
fn read_path(path: &Path, args: &Check, cases: &mut Vec<Case>) -> Result<()> {
    if path == Path::new("-") {
        read_file(path, None, args, cases);
        return Ok(());
    }
    let about = std::fs::metadata(path).with_context(|| crate::shown::path(&path))?;
    if !about.is_dir() {
        read_file(path, None, args, cases);
        return Ok(());
    }
    let walk = WalkDir::new(path).follow_links(true).sort_by_file_name().into_iter();
    // The files of a run manifest are in a folder `data` next to the manifest.
    let wanted = |entry: &walkdir::DirEntry| {
        let data =
            || entry.file_type().is_dir() && entry.file_name() == "data" && has_json(entry.path().parent());
        entry.depth() == 0 || !is_beside(entry.path()) && !data()
    };
    for entry in walk.filter_entry(wanted) {
        match entry {
            Ok(entry) if entry.file_type().is_dir() => {}
            Ok(entry) => read_file(entry.path(), Some(path), args, cases),
            Err(error) if error.loop_ancestor().is_some() => note(&format!("{error}; skipped")),
            Err(error) => {
                let file = plain(error.path().unwrap_or(path)).display().to_string();
                cases.push(Case::broken(&file, error.to_string()));
            }
        }
    }
    Ok(())
}

/// Adds the cases of a launch file. The cases are added once for each program that `--program` names.
fn read_handed_in(path: &Path, args: &Check, cases: &mut Vec<Case>) -> Result<()> {
    let name = plain(path).display().to_string();
    let text = String::from_utf8(files::read(path)?).with_context(|| crate::shown::path(&path))?;
    let disk = |file: &Path| -> Arc<dyn Folder> {
        let root = (!args.allow_outside).then(|| folder_of(file));
        Arc::new(Disk { file: file.to_owned(), root })
    };
    let folder = disk(path);
    for program in &args.program {
        let beside = disk(program);
        let file = plain(program).display().to_string();
        let case = match files::read(program) {
            Ok(bytes) => {
                let handed_in = HandedIn { path: &file, bytes: &bytes, folder: &beside };
                reconverge_cases::launch::read_with(&name, &text, &folder, handed_in, args.paths.len() > 1)?
            }
            Err(error) => Case::broken(&file, format!("{:#}", error.root_cause())),
        };
        cases.push(case);
    }
    Ok(())
}

fn has_json(folder: Option<&Path>) -> bool {
    let entries = folder.and_then(|folder| std::fs::read_dir(folder).ok()).into_iter().flatten().flatten();
    entries
        .map(|entry| entry.path())
        .any(|path| path.extension().is_some_and(|extension| extension == "json"))
}

/// Adds the cases of a file. If the command found the file in a folder on the command line, `folder` is this folder. If
/// the file itself is on the command line, `folder` is `None`.
fn read_file(path: &Path, folder: Option<&Path>, args: &Check, cases: &mut Vec<Case>) {
    let name = plain(path).display().to_string();
    let content = match folder {
        // In a folder, only regular files are read. Reading a pipe or a device may never end.
        Some(_) if !path.is_file() => Err("not a regular file".to_owned()),
        _ => files::read(path).map_err(|error| format!("{:#}", error.root_cause())),
    };
    let bytes = match content {
        Ok(bytes) => bytes,
        Err(why) => return cases.push(Case::broken(&name, why)),
    };
    let disk = Disk {
        file: path.to_owned(),
        root: (!args.allow_outside).then(|| folder.map_or_else(|| folder_of(path), Path::to_path_buf)),
    };
    let disk: Arc<dyn Folder> = Arc::new(disk);
    let extension = path.extension().and_then(|extension| extension.to_str()).unwrap_or_default();
    // Every format that the command line can state is a format of programs. So if the command line states a format, the
    // function reads the file only as a file of programs.
    let read = match args.read.is_given() {
        true => {
            let known = args.read.known(reconverge_workbench::Known { isa: args.isa, ..Default::default() });
            let source = args.read.is_source(|| reconverge_workbench::open::has_source(&name, &bytes));
            reconverge_cases::binary::read_as(&name, &bytes, &*disk, source, known)
        }
        false => reconverge_cases::read(&name, &bytes, &disk, args.isa),
    };
    match read {
        Ok(read) => cases.extend(read),
        Err(ReadError::Unknown { .. }) if folder.is_some() && OTHER_FILES.contains(&extension) => {
            let why = format!("format not recognised, and the name ends in .{extension}");
            cases.push(Case { kind: CaseKind::Skip(why), ..Case::broken(&name, String::new()) });
        }
        Err(ReadError::Damaged { why, .. }) => cases.push(Case::broken(&name, why)),
        Err(ReadError::Line { line, why, .. }) => {
            cases.push(Case::broken(&name, format!("line {line}: {why}")))
        }
        Err(ReadError::Unknown { why, .. }) => {
            let what = "expected a case file, launch file, run manifest, vector table or program";
            cases.push(Case::broken(&name, format!("{what}: {why}")));
        }
    }
}

/// A file on disk, with access to the files that this file names.
#[derive(Debug)]
struct Disk {
    file: PathBuf,
    /// The folder that must contain the named files. If the value is `None`, the files may be anywhere.
    root: Option<PathBuf>,
}

impl Folder for Disk {
    fn read(&self, relative: &str) -> Result<Vec<u8>, String> {
        let folder = folder_of(&self.file);
        let path = folder.join(relative);
        let found = allowed(&path, self.root.as_deref()).or_else(|why| {
            // The path of a manifest's program is relative to the parent of the manifest's folder.
            let manifest = self.file.extension().is_some_and(|extension| extension == "json");
            if manifest { allowed(&path, Some(&folder.join(".."))).map_err(|_| why) } else { Err(why) }
        });
        files::read_bounded(&found?, &MEMORY).map_err(|error| format!("{error:#}"))
    }

    fn above(&self, name: &str) -> Option<(String, Vec<u8>)> {
        let file = std::path::absolute(&self.file).ok()?;
        let regular = |folder: &Path| {
            let path = folder.join(name);
            path.is_file().then(|| files::read_bounded(&path, &FILE).ok()).flatten()
        };
        let (folder, bytes) = file.ancestors().skip(1).find_map(|folder| Some((folder, regular(folder)?)))?;
        let relative = file.strip_prefix(folder).ok()?;
        let parts: Vec<&str> = relative.iter().filter_map(|part| part.to_str()).collect();
        Some((parts.join("/"), bytes))
    }
}
