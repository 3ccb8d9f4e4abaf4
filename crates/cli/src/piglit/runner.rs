//! The tests: found, run, judged.

use std::collections::{BTreeMap, HashMap};
use std::env;
use std::ffi::OsStr;
use std::fs::{self, File, OpenOptions};
use std::io::Write;
use std::os::unix::process::ExitStatusExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};
use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use quick_junit::{NonSuccessKind, Report, TestCase, TestCaseStatus, TestSuite};
use reconverge_output::random_name;
use reconverge_simt::random::Random;
use serde::Serialize;
use walkdir::WalkDir;

use super::Piglit;
use crate::args::Answer;
use crate::drm::board;
use crate::drm::named_counts;
use crate::drm::setup::{Build, Setup};
use crate::messages::{answer_as, counted, quiet};
use crate::shown::{listed, unlisted};
use crate::{check, files, interrupt};

/// The folder of Debian's package, below the folder of libraries of the architecture.
const FOLDER: &str = "piglit";

/// What installs it.
const INSTALL: &str = "apt-get install piglit";

/// The folders of tests, below both `tests` and `generated_tests`.
const VERSIONS: [&str; 3] =
    ["spec/glsl-1.10/execution", "spec/glsl-1.20/execution", "spec/glsl-1.30/execution"];

/// How many failures are shown.
const SHOWN: usize = 20;

/// How often a running test is looked at.
const POLL: Duration = Duration::from_millis(2);

reconverge_isa::choices! {
    /// Status of a test that ended, in the words of deqp-runner.
    #[derive(PartialOrd, Ord)]
    pub(super) enum Status {
        Pass = "Pass",
        Warn = "Warn",
        Skip = "Skip",
        Fail = "Fail",
        Crash = "Crash",
        Timeout = "Timeout",
    }
}

impl Status {
    /// Whether it counts against the chip.
    const fn fails(self) -> bool {
        matches!(self, Status::Fail | Status::Crash | Status::Timeout)
    }
}

/// A test: its name and its file.
#[derive(Clone, Debug)]
pub(super) struct Test {
    pub(super) name: String,
    file: PathBuf,
}

/// How a test went.
#[derive(Clone, Debug)]
pub(super) struct Outcome {
    pub(super) status: Status,
    seconds: f64,
    pub(super) why: String,
    /// What the chip does not do, by name.
    unknown: BTreeMap<String, u64>,
    /// Programs and surfaces that could not be written.
    lost: BTreeMap<String, u64>,
}

/// How many tests ended in each way.
#[derive(Clone, Copy, Debug, Default, Serialize)]
struct Counts {
    total: usize,
    pass: usize,
    fail: usize,
    crash: usize,
    timeout: usize,
    skip: usize,
    warn: usize,
}

impl Counts {
    fn of(outcomes: &[Outcome]) -> Counts {
        let count = |status| outcomes.iter().filter(|outcome| outcome.status == status).count();
        let [pass, warn, skip, fail, crash, timeout] = Status::ALL.map(count);
        Counts { total: outcomes.len(), pass, fail, crash, timeout, skip, warn }
    }

    fn text(&self) -> String {
        let Counts { pass, fail, crash, timeout, skip, warn, .. } = self;
        format!(
            "{pass} passed, {fail} failed, {crash} crashed, {timeout} timed out, {skip} skipped, {warn} warned"
        )
    }
}

/// The answer of `--json`.
#[derive(Serialize)]
struct Answered<'a> {
    chip: &'a str,
    #[serde(flatten)]
    counts: Counts,
    control: Counts,
    /// Tests that pass although nothing is drawn.
    undrawn: Vec<&'a str>,
    failures: Vec<Failure<'a>>,
    /// Of the failures, those that the baseline does not have.
    unexpected: usize,
    /// Tests of the baseline that pass.
    fixed: Vec<&'a str>,
    unknown: BTreeMap<&'a str, u64>,
    /// Ctrl-C ended the run: so many tests have not run, at least not as a control.
    #[serde(skip_serializing_if = "Option::is_none")]
    interrupted: Option<usize>,
    seconds: f64,
}

#[derive(Serialize)]
struct Failure<'a> {
    test: &'a str,
    status: &'static str,
    why: &'a str,
}

pub(super) fn run(args: &Piglit) -> Result<Answer> {
    let board = board(&args.chip)?;
    let root = root(args.piglit.as_deref())?;
    let tests = chosen(args, &root)?;
    let baseline = args.baseline.as_deref().map(check::baseline).transpose()?.unwrap_or_default();
    let driver = args.driver.as_deref().map(Build::new).transpose()?.flatten();
    let executed = Setup::new(board, true, driver.clone())?.with(&args.shaders)?;
    executed.check_renderer()?;
    let control = Setup::new(board, false, driver)?;
    if let Some(folder) = &args.output {
        fs::create_dir_all(folder).with_context(|| crate::shown::path(&folder))?;
    }

    interrupt::watch();
    let start = Instant::now();
    let progress = progress(2 * tests.len() as u64);
    let runner = Runner { args, root: &root, tests: &tests, progress: &progress };
    let outcomes = runner.all(&executed, "results.csv")?;
    let undrawn = runner.all(&control, "control.csv")?;
    progress.finish_and_clear();
    // After Ctrl-C some tests have not run, and more of them not as a control.
    let not_run = undrawn.iter().filter(|control| control.is_none()).count();
    let ran = tests.into_iter().zip(outcomes).zip(undrawn);
    let ran = ran.filter_map(|((test, outcome), control)| Some((test, (outcome?, control))));
    let (tests, outcomes): (Vec<Test>, Vec<(Outcome, Option<Outcome>)>) = ran.unzip();
    let (outcomes, undrawn): (Vec<Outcome>, Vec<Option<Outcome>>) = outcomes.into_iter().unzip();
    let controls: Vec<Outcome> = undrawn.iter().flatten().cloned().collect();

    let unknown = summed(outcomes.iter().map(|outcome| &outcome.unknown));
    let lost = summed(outcomes.iter().map(|outcome| &outcome.lost));
    let both = || tests.iter().zip(&outcomes);
    let failing: Vec<(&Test, &Outcome)> = both().filter(|(_, outcome)| outcome.status.fails()).collect();
    let unexpected = failing.iter().filter(|(test, _)| !baseline.contains(&test.name)).count();
    let passes =
        |(test, outcome): &(&Test, &Outcome)| outcome.status == Status::Pass && baseline.contains(&test.name);
    let answered = Answered {
        chip: board.chip,
        counts: Counts::of(&outcomes),
        control: Counts::of(&controls),
        undrawn: both()
            .zip(&undrawn)
            .filter(|((_, outcome), control)| {
                let passes = |control: &Outcome| control.status == Status::Pass;
                outcome.status == Status::Pass && control.as_ref().is_some_and(passes)
            })
            .map(|((test, _), _)| &*test.name)
            .collect(),
        failures: failing
            .iter()
            .map(|(test, outcome)| Failure {
                test: &test.name,
                status: outcome.status.name(),
                why: &outcome.why,
            })
            .collect(),
        unexpected,
        fixed: both().filter(passes).map(|(test, _)| &*test.name).collect(),
        unknown,
        interrupted: (not_run > 0).then_some(not_run),
        seconds: start.elapsed().as_secs_f64(),
    };
    if let Some(folder) = args.output.as_ref().filter(|_| not_run == 0) {
        let list = |(test, outcome): &(&Test, &Outcome)| {
            format!("{},{}\n", listed(&test.name), outcome.status.name())
        };
        files::write(&folder.join("failures.csv"), failing.iter().map(list).collect::<String>().as_bytes())?;
        files::write(&folder.join("junit.xml"), junit(board.chip, &tests, &outcomes)?.as_bytes())?;
    }
    answer_as(args.json, &answered, |answered| show(answered, args.baseline.is_some()));
    if not_run > 0 {
        let left = counted(not_run as u64, "test");
        let resume = if args.output.is_some() { "; --resume goes on from here" } else { "" };
        tell!("interrupted: {left} did not run{resume}");
        return Ok(Answer::Status(interrupt::STATUS as u8));
    }
    if !lost.is_empty() {
        bail!("not completely written: {}", named_counts(&lost));
    }
    Ok(if unexpected == 0 && answered.fixed.is_empty() { Answer::Yes } else { Answer::No })
}

/// The sums of counts by their names.
fn summed<'a>(counts: impl Iterator<Item = &'a BTreeMap<String, u64>>) -> BTreeMap<&'a str, u64> {
    let mut sums: BTreeMap<&str, u64> = BTreeMap::new();
    counts.flatten().for_each(|(name, count)| *sums.entry(name).or_default() += count);
    sums
}

fn show(answered: &Answered<'_>, has_baseline: bool) {
    for Failure { test, status, why } in answered.failures.iter().take(SHOWN) {
        say!("{status:8} {test}{}{why}", if why.is_empty() { "" } else { ": " });
    }
    if answered.failures.len() > SHOWN {
        let more = counted((answered.failures.len() - SHOWN) as u64, "more failure");
        say!("… {more} (--output or --json has them)");
    }
    for test in &answered.fixed {
        say!("PASSES   {test}: the baseline says that it fails: take it out");
    }
    for (name, count) in &answered.unknown {
        say!("{count:6} x not known to the chip: {name}");
    }
    say!("{}: {}", counted(answered.counts.total as u64, "test"), answered.counts.text());
    say!("control, nothing executed: {}", answered.control.text());
    if !answered.undrawn.is_empty() {
        say!("{} of those that pass also pass with nothing executed:", answered.undrawn.len());
        for test in &answered.undrawn {
            say!("  {test}");
        }
    }
    if has_baseline {
        say!(
            "{} of the failures are not in the baseline; {} of it now pass",
            answered.unexpected,
            answered.fixed.len()
        );
    }
}

/// The folder of piglit's files.
pub(super) fn root(given: Option<&Path>) -> Result<PathBuf> {
    let is_root = |folder: &Path| folder.join("bin/shader_runner").is_file();
    if let Some(folder) = given {
        if !is_root(folder) {
            bail!("--piglit {}: bin/shader_runner is not there", crate::shown::path(&folder));
        }
        // Tests run in folders of their own.
        return folder.canonicalize().with_context(|| crate::shown::path(&folder));
    }
    let mut folders = vec![PathBuf::from("/usr/lib")];
    folders.extend(fs::read_dir("/usr/lib").into_iter().flatten().flatten().map(|entry| entry.path()));
    match folders.into_iter().map(|folder| folder.join(FOLDER)).find(|folder| is_root(folder)) {
        Some(folder) => Ok(folder),
        None => bail!("piglit is not installed: `{INSTALL}` installs it, and --piglit names it elsewhere"),
    }
}

/// The tests that the arguments ask for, in the order of their names.
pub(super) fn chosen(args: &Piglit, root: &Path) -> Result<Vec<Test>> {
    let mut tests = Vec::new();
    for folder in ["tests", "generated_tests"] {
        let base = root.join(folder);
        for version in VERSIONS {
            for entry in WalkDir::new(base.join(version)).into_iter().flatten() {
                let file = entry.into_path();
                if file.extension().is_none_or(|extension| extension != "shader_test") {
                    continue;
                }
                let Some(name) = file.strip_prefix(&base).ok().map(|path| path.with_extension("")) else {
                    continue;
                };
                let name = name.to_string_lossy().replace('/', "@").to_lowercase();
                tests.push(Test { name, file });
            }
        }
    }
    tests.sort_by(|one, other| one.name.cmp(&other.name));
    let all = tests.len();
    if let Some(wanted) = &args.tests {
        tests.retain(|test| wanted.is_match(&test.name));
    }
    if let Some(count) = args.sample {
        let mut random = Random::new(args.seed);
        for place in 0..count.min(tests.len()) {
            let left = (tests.len() - place) as u32;
            tests.swap(place, place + random.below(left) as usize);
        }
        tests.truncate(count);
        tests.sort_by(|one, other| one.name.cmp(&other.name));
    }
    if tests.is_empty() {
        bail!("no test is left of the {all} in {}", crate::shown::path(&root));
    }
    Ok(tests)
}

pub(super) struct Runner<'a> {
    pub(super) args: &'a Piglit,
    pub(super) root: &'a Path,
    pub(super) tests: &'a [Test],
    pub(super) progress: &'a ProgressBar,
}

impl Runner<'_> {
    /// Tests at once.
    pub(super) fn jobs(&self) -> usize {
        let processors = thread::available_parallelism().map_or(1, usize::from);
        self.args.jobs.map_or(processors, usize::from)
    }

    /// Runs all tests in these surroundings, until Ctrl-C; those that a list in the output folder has from before are taken
    /// from it.
    fn all(&self, setup: &Setup, list: &str) -> Result<Vec<Option<Outcome>>> {
        let path = self.args.output.as_ref().map(|folder| folder.join(list));
        let before = match &path {
            Some(path) if self.args.resume => earlier(path)?,
            _ => HashMap::new(),
        };
        let file = match &path {
            Some(path) => {
                let mut options = OpenOptions::new();
                options.create(true).append(self.args.resume).write(true).truncate(!self.args.resume);
                Some(options.open(path).with_context(|| crate::shown::path(&path))?)
            }
            None => None,
        };
        let (next, file) = (AtomicUsize::new(0), Mutex::new(file));
        let outcomes: Mutex<Vec<Option<Outcome>>> = Mutex::new(vec![None; self.tests.len()]);
        let failed: Mutex<Option<anyhow::Error>> = Mutex::new(None);
        let work = || {
            loop {
                let place = next.fetch_add(1, Ordering::Relaxed);
                let Some(test) = self.tests.get(place).filter(|_| !interrupt::asked()) else { return };
                let outcome = match before.get(&test.name) {
                    Some(outcome) => outcome.clone(),
                    None => match self.one(setup, test).and_then(|outcome| {
                        if let Some(file) = &mut *file.lock().unwrap_or_else(PoisonError::into_inner) {
                            let (name, status) = (listed(&test.name), outcome.status.name());
                            writeln!(file, "{name},{status},{:.3}", outcome.seconds)?;
                        }
                        Ok(outcome)
                    }) {
                        Ok(outcome) => outcome,
                        Err(_) if interrupt::asked() => return,
                        Err(error) => {
                            failed.lock().unwrap_or_else(PoisonError::into_inner).get_or_insert(error);
                            // The others end early.
                            next.store(self.tests.len(), Ordering::Relaxed);
                            return;
                        }
                    },
                };
                outcomes.lock().unwrap_or_else(PoisonError::into_inner)[place] = Some(outcome);
                self.progress.inc(1);
            }
        };
        thread::scope(|scope| (0..self.jobs()).for_each(|_| drop(scope.spawn(work))));
        if let Some(error) = failed.into_inner().unwrap_or_else(PoisonError::into_inner) {
            return Err(error);
        }
        Ok(outcomes.into_inner().unwrap_or_else(PoisonError::into_inner))
    }

    /// Runs a test in a folder of its own.
    fn one(&self, setup: &Setup, test: &Test) -> Result<Outcome> {
        self.in_folder(|folder| self.inside(setup, test, folder, &[]))
    }

    /// Does something in a new folder, which is removed afterwards.
    pub(super) fn in_folder<T>(&self, work: impl FnOnce(&Path) -> Result<T>) -> Result<T> {
        let folder = env::temp_dir().join(format!("reconverge-piglit-{}", random_name()?));
        fs::create_dir(&folder).with_context(|| crate::shown::path(&folder))?;
        let done = work(&folder);
        let _ = fs::remove_dir_all(&folder);
        done
    }

    /// Runs a test in this folder, with these variables in its environment.
    pub(super) fn inside(
        &self,
        setup: &Setup,
        test: &Test,
        folder: &Path,
        variables: &[(&str, &OsStr)],
    ) -> Result<Outcome> {
        let runner = self.root.join("bin/shader_runner");
        let place = || crate::shown::path(&runner);
        let (output, report) = (folder.join("output"), folder.join("report"));
        let write = || File::create(&output).with_context(|| crate::shown::path(&output));
        let mut command = Command::new(&runner);
        setup.apply_with(&mut command, &[self.root.join("lib")]);
        command.env("PIGLIT_SOURCE_DIR", self.root);
        command.env("RECONVERGE_DRM_REPORT", &report).envs(variables.iter().copied());
        // As many tests as processors run at once.
        command.env("RAYON_NUM_THREADS", "1");
        command.arg(&test.file).args(["-auto", "-fbo"]).current_dir(folder);
        command.stdin(Stdio::null()).stdout(write()?);
        command.stderr(OpenOptions::new().append(true).open(&output).with_context(place)?);
        let start = Instant::now();
        let mut child = command.spawn().with_context(place)?;
        let status = loop {
            if let Some(status) = child.try_wait().with_context(place)? {
                break Some(status);
            }
            if interrupt::asked() {
                let _ = child.kill();
                child.wait().with_context(place)?;
                bail!("interrupted");
            }
            if start.elapsed() >= self.args.timeout.0 {
                let _ = child.kill();
                child.wait().with_context(place)?;
                break None;
            }
            thread::sleep(POLL);
        };
        let seconds = start.elapsed().as_secs_f64();
        let text = String::from_utf8_lossy(&fs::read(&output).unwrap_or_default()).into_owned();
        let signal = status.and_then(|status| status.signal());
        let status = match (status, verdict(&text)) {
            (None, _) => Status::Timeout,
            (Some(_), Some(verdict)) if signal.is_none() => verdict,
            _ => Status::Crash,
        };
        let why = match status {
            Status::Pass | Status::Skip | Status::Warn => String::new(),
            _ => why(&text, signal),
        };
        let report = fs::read_to_string(&report).unwrap_or_default();
        let (unknown, lost) = (named(&report, "unknown"), named(&report, "lost"));
        Ok(Outcome { status, seconds, why, unknown, lost })
    }
}

/// The verdict of a test's last `PIGLIT:` line.
fn verdict(text: &str) -> Option<Status> {
    let line = text.lines().rev().find_map(|line| line.strip_prefix("PIGLIT:"))?;
    let value: serde_json::Value = serde_json::from_str(line.trim()).ok()?;
    match value["result"].as_str()? {
        "pass" => Some(Status::Pass),
        "warn" => Some(Status::Warn),
        "skip" => Some(Status::Skip),
        "fail" => Some(Status::Fail),
        _ => Some(Status::Crash),
    }
}

/// Why a test failed: what the chip said, else what the test said first.
fn why(text: &str, signal: Option<i32>) -> String {
    if let Some(line) = text.lines().find_map(|line| line.strip_prefix("reconverge: ")) {
        return line.to_owned();
    }
    if let Some(signal) = signal {
        return format!("ended by signal {signal}");
    }
    let said = text.lines().filter(|line| !line.starts_with("PIGLIT:") && !line.trim().is_empty());
    said.take(3).map(str::trim).collect::<Vec<_>>().join("; ")
}

/// Returns the counts that the reports of a test's processes have in a field.
fn named(text: &str, field: &str) -> BTreeMap<String, u64> {
    let mut found = BTreeMap::new();
    for line in text.lines() {
        let Ok(value) = serde_json::from_str::<serde_json::Value>(line) else { continue };
        for (name, count) in value[field].as_object().into_iter().flatten() {
            let largest: &mut u64 = found.entry(name.clone()).or_default();
            // A process reports again and again, with what it has counted so far.
            *largest = (*largest).max(count.as_u64().unwrap_or(0));
        }
    }
    found
}

/// The text of a file; an empty one if there is no file.
pub(super) fn text_of(path: &Path) -> Result<String> {
    match fs::read_to_string(path) {
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(String::new()),
        read => read.with_context(|| crate::shown::path(&path)),
    }
}

/// The outcomes in a list of an earlier run; a line that was cut off is not one.
fn earlier(path: &Path) -> Result<HashMap<String, Outcome>> {
    let text = text_of(path)?;
    let whole = text.lines().filter_map(|line| {
        let (rest, seconds) = line.rsplit_once(',')?;
        let (name, status) = rest.rsplit_once(',')?;
        let status = Status::ALL.into_iter().find(|known| known.name() == status)?;
        let (seconds, why) = (seconds.parse().ok()?, String::new());
        let outcome = Outcome { status, seconds, why, unknown: BTreeMap::new(), lost: BTreeMap::new() };
        Some((unlisted(name), outcome))
    });
    Ok(whole.collect())
}

/// A bar on a terminal; nothing elsewhere.
pub(super) fn progress(tests: u64) -> ProgressBar {
    let hidden = quiet() || !std::io::IsTerminal::is_terminal(&std::io::stderr());
    let target = if hidden { ProgressDrawTarget::hidden() } else { ProgressDrawTarget::stderr() };
    let bar = ProgressBar::with_draw_target(Some(tests), target);
    if let Ok(style) = ProgressStyle::with_template("{bar:40} {pos}/{len} runs {elapsed}, {eta} left") {
        bar.set_style(style);
    }
    bar
}

fn junit(chip: &str, tests: &[Test], outcomes: &[Outcome]) -> Result<String> {
    let mut report = Report::new("reconverge piglit");
    let mut suite = TestSuite::new(chip);
    for (test, outcome) in tests.iter().zip(outcomes) {
        let mut status = match outcome.status {
            Status::Pass | Status::Warn => TestCaseStatus::success(),
            Status::Skip => TestCaseStatus::skipped(),
            Status::Fail => TestCaseStatus::non_success(NonSuccessKind::Failure),
            Status::Crash | Status::Timeout => TestCaseStatus::non_success(NonSuccessKind::Error),
        };
        if outcome.status.fails() {
            status.set_message(format!("{} {}", outcome.status.name(), outcome.why));
        }
        let mut case = TestCase::new(listed(&test.name), status);
        case.set_time(Duration::from_secs_f64(outcome.seconds));
        suite.add_test_case(case);
    }
    report.add_test_suite(suite);
    report.to_string().context("the JUnit report")
}

#[cfg(test)]
mod unit {
    use super::*;

    #[test]
    fn the_last_verdict_counts() {
        let text = "Probe color at (1,1)\nPIGLIT: {\"result\": \"pass\" }\nPIGLIT: {\"result\": \"fail\" }\n";
        assert_eq!(verdict(text), Some(Status::Fail));
        assert_eq!(why(text, None), "Probe color at (1,1)");
        assert_eq!(verdict("nothing"), None);
    }

    #[test]
    fn what_the_chip_said_comes_first() {
        let text = "Mesa: error\nreconverge: draw 3: pixel shader: trap at 4\n";
        assert_eq!(why(text, Some(6)), "draw 3: pixel shader: trap at 4");
        assert_eq!(why("Mesa: error", Some(6)), "ended by signal 6");
    }

    #[test]
    fn what_is_not_known_is_counted_once_a_process() {
        let text = "{\"unknown\": {\"packet 0x34\": 2}}\n{\"unknown\": {\"packet 0x34\": 5}}\ncut off {";
        assert_eq!(named(text, "unknown"), BTreeMap::from([("packet 0x34".to_owned(), 5)]));
    }
}
