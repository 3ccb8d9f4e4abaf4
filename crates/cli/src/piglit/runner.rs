//! `reconverge piglit` without `--compare`: both runs, and what is reported of them.

use std::collections::BTreeMap;
use std::fs;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};
use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use quick_junit::{NonSuccessKind, Report, TestCase, TestCaseStatus, TestSuite};
use serde::Serialize;

use super::Piglit;
use super::choice::{Test, chosen, root};
use super::groups::Groups;
use super::lists::List;
use super::outcome::{Outcome, Reported, Status};
use super::process::Runner;
use crate::args::Answer;
use crate::drm::board;
use crate::drm::named_counts;
use crate::drm::setup::{Build, Setup};
use crate::messages::{answer_as, counted, quiet};
use crate::shown::listed;
use crate::{check, files, interrupt};

/// How many failures are shown.
const SHOWN: usize = 20;

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
    unknown: BTreeMap<String, u64>,
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
    let all = |setup: &Setup, executes: bool, list: &str| {
        let list = match &args.output {
            Some(folder) => List::open(&folder.join(list), args.resume)?,
            None => List::default(),
        };
        let (runner, tests) = (Runner { args, root: &root }, &*tests);
        Groups { runner, setup, tests, baseline: &baseline, executes, progress: &progress }.run(list)
    };
    let (outcomes, Reported { unknown, lost }) = all(&executed, true, "results.csv")?;
    let (undrawn, _) = all(&control, false, "control.csv")?;
    progress.finish_and_clear();
    // After Ctrl-C some tests have not run, and more of them not as a control.
    let not_run = undrawn.iter().filter(|control| control.is_none()).count();
    let ran = tests.into_iter().zip(outcomes).zip(undrawn);
    let ran = ran.filter_map(|((test, outcome), control)| Some((test, (outcome?, control))));
    let (tests, outcomes): (Vec<Test>, Vec<(Outcome, Option<Outcome>)>) = ran.unzip();
    let (outcomes, undrawn): (Vec<Outcome>, Vec<Option<Outcome>>) = outcomes.into_iter().unzip();
    let controls: Vec<Outcome> = undrawn.iter().flatten().cloned().collect();

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
