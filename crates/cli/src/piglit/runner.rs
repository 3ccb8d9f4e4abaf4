//! `reconverge piglit` without `--compare`: runs the tests and reports their results.

use std::collections::{BTreeMap, HashSet};
use std::env;
use std::fs;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};
use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use quick_junit::{NonSuccessKind, Report, TestCase, TestCaseStatus, TestSuite};
use serde::Serialize;

use super::Piglit;
use super::against::{Agreement, Compared, Disagreement, FailsList};
use super::choice::{Chosen, chosen, root};
use super::groups::Groups;
use super::lists::List;
use super::outcome::{Outcome, Reported, Status};
use super::process::Runner;
use super::test::Test;
use crate::args::Answer;
use crate::drm::board;
use crate::drm::named_counts;
use crate::drm::setup::{Build, Setup};
use crate::messages::{answer_as, counted, quiet};
use crate::shown::listed;
use crate::{check, files, interrupt};

/// Maximum number of failures that are shown.
const SHOWN: usize = 20;

/// Maximum number of differences from the results of a real chip that the report shows. The report shows at most this
/// number of tests that fail only on the emulated chip. The same maximum applies to the tests that fail only on the
/// real chip.
const SHOWN_DIFFERENT: usize = 500;

/// Minimum duration of a slow test in seconds.
const SLOW: f64 = 5.;

/// Maximum number of slow tests that are shown.
const SHOWN_SLOW: usize = 10;

/// The window system for the tests of a profile, unless PIGLIT_PLATFORM names another window system. Mesa's CI also
/// uses this window system.
const PLATFORM: &str = "gbm";

/// Number of tests with each status.
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
    fn of(statuses: impl Iterator<Item = Status> + Clone) -> Counts {
        let count = |status| statuses.clone().filter(|other| *other == status).count();
        let [pass, warn, skip, fail, crash, timeout] = Status::ALL.map(count);
        Counts { total: statuses.clone().count(), pass, fail, crash, timeout, skip, warn }
    }

    fn text(&self) -> String {
        let Counts { pass, fail, crash, timeout, skip, warn, .. } = self;
        format!(
            "{pass} passed, {fail} failed, {crash} crashed, {timeout} timed out, {skip} skipped, {warn} warned"
        )
    }
}

/// The output of `--json`.
#[derive(Serialize)]
struct Answered<'a> {
    chip: &'a str,
    #[serde(flatten)]
    counts: Counts,
    #[serde(skip_serializing_if = "Option::is_none")]
    control: Option<Counts>,
    /// Tests that also pass in the control, in which nothing is drawn.
    undrawn: Vec<&'a str>,
    failures: Vec<Failure<'a>>,
    /// Number of failures that the baseline does not list.
    unexpected: usize,
    /// Tests that pass, but that the baseline lists as failures.
    fixed: Vec<&'a str>,
    unknown: BTreeMap<String, u64>,
    /// Number of tests with a missing result because of Ctrl-C. Either the test or the control of the test did not run.
    #[serde(skip_serializing_if = "Option::is_none")]
    interrupted: Option<usize>,
    seconds: f64,
    #[serde(flatten)]
    profile: Option<ProfileAnswer<'a>>,
}

/// Additional fields of the answer for a profile.
#[derive(Serialize)]
struct ProfileAnswer<'a> {
    profile: &'a str,
    /// The window system.
    platform: &'a str,
    /// For each reason, the number of tests that the command skipped and did not start.
    skipped: BTreeMap<&'a str, usize>,
    subtests: SubtestsAnswer,
    /// Slow tests, the slowest first.
    slow: Vec<SlowTest<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    against: Option<Compared>,
}

/// The results of subtests.
#[derive(Serialize)]
struct SubtestsAnswer {
    #[serde(flatten)]
    counts: Counts,
    failures: Vec<SubtestFailure>,
    /// Number of failures that the baseline does not list.
    unexpected: usize,
    /// Subtests that pass, but that the baseline lists as failures.
    fixed: Vec<String>,
}

#[derive(Serialize)]
struct SubtestFailure {
    test: String,
    status: &'static str,
}

#[derive(Serialize)]
struct SlowTest<'a> {
    test: &'a str,
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
    args.errata.check(board)?;
    let root = root(args.piglit.as_deref())?;
    let platform = env::var("PIGLIT_PLATFORM").unwrap_or_else(|_| PLATFORM.to_owned());
    let Chosen { tests, all: names } = chosen(args, &root, &platform)?;
    let against = args.against.as_deref().map(FailsList::read).transpose()?;
    let baseline = args.baseline.as_deref().map(check::baseline).transpose()?.unwrap_or_default();
    let driver = args.driver.as_deref().map(Build::new).transpose()?.flatten();
    let executed = Setup::new(board, true, driver.clone())?;
    let executed = executed.with_errata(&args.errata).with(&args.shaders)?;
    executed.check_renderer()?;
    let control = Setup::new(board, false, driver)?;
    let [executed, control] = [executed, control].map(|setup| match &args.profile {
        Some(_) => setup.with_platform(&platform),
        None => setup,
    });
    let has_control = args.profile.is_none() || args.control;
    if let Some(folder) = &args.output {
        fs::create_dir_all(folder).with_context(|| crate::shown::path(&folder))?;
    }

    interrupt::watch();
    let start = Instant::now();
    let progress = progress((1 + u64::from(has_control)) * tests.len() as u64);
    let all = |setup: &Setup, executes: bool, list: &str| {
        let list = match &args.output {
            Some(folder) => List::open(&folder.join(list), args.resume, &names)?,
            None => List::default(),
        };
        let (runner, tests) = (Runner { args, root: &root }, &*tests);
        Groups { runner, setup, tests, baseline: &baseline, executes, progress: &progress }.run(list)
    };
    let (outcomes, Reported { unknown, lost }) = all(&executed, true, "results.csv")?;
    let undrawn = match has_control {
        true => all(&control, false, "control.csv")?.0,
        false => vec![None; tests.len()],
    };
    progress.finish_and_clear();
    // After Ctrl-C, some tests have not run. All controls run after all tests. So a test may have run although the
    // control of the test has not run.
    let last = if has_control { &undrawn } else { &outcomes };
    let not_run = last.iter().filter(|outcome| outcome.is_none()).count();
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
    let subtests = || {
        both().flat_map(|(test, outcome)| {
            outcome.subtests.iter().map(|(name, status)| (format!("{}@{name}", test.name), *status))
        })
    };
    let profile = args.profile.as_deref().map(|profile| ProfileAnswer {
        profile,
        platform: &platform,
        skipped: both().filter_map(|(test, _)| test.skipped.as_deref()).fold(
            BTreeMap::new(),
            |mut counts, reason| {
                *counts.entry(reason).or_default() += 1;
                counts
            },
        ),
        subtests: subtests_answer(subtests(), &baseline),
        slow: slow(both()),
        against: against.zip(args.against.as_ref()).map(|(list, file)| {
            let results = both().map(|(test, outcome)| (&*test.name, outcome));
            list.compare(crate::shown::path(file), results, &names)
        }),
    });
    let unexpected_subtests = profile.as_ref().map_or(0, |profile| profile.subtests.unexpected);
    let fixed_subtests = profile.as_ref().is_some_and(|profile| !profile.subtests.fixed.is_empty());
    let answered = Answered {
        chip: board.chip,
        counts: Counts::of(outcomes.iter().map(|outcome| outcome.status)),
        control: has_control.then(|| Counts::of(controls.iter().map(|outcome| outcome.status))),
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
        profile,
    };
    if let Some(folder) = args.output.as_ref().filter(|_| not_run == 0) {
        let line = |name: &str, status: Status| format!("{},{}\n", listed(name), status.name());
        let mut list: String =
            failing.iter().map(|(test, outcome)| line(&test.name, outcome.status)).collect();
        list.extend(
            subtests().filter(|(_, status)| status.fails()).map(|(name, status)| line(&name, status)),
        );
        files::write(&folder.join("failures.csv"), list.as_bytes())?;
        files::write(&folder.join("junit.xml"), junit(board.chip, &tests, &outcomes)?.as_bytes())?;
    }
    answer_as(args.json, &answered, |answered| show(answered, args.baseline.is_some()));
    if not_run > 0 {
        let left = counted(not_run as u64, "test");
        let resume = if args.output.is_some() { "; use --resume to continue" } else { "" };
        tell!("interrupted: {left} did not run{resume}");
        return Ok(Answer::Status(interrupt::STATUS as u8));
    }
    if !lost.is_empty() {
        bail!("incompletely written: {}", named_counts(&lost));
    }
    let is_expected = unexpected + unexpected_subtests == 0 && answered.fixed.is_empty() && !fixed_subtests;
    Ok(if is_expected { Answer::Yes } else { Answer::No })
}

/// Returns the results of subtests by name.
fn subtests_answer(
    subtests: impl Iterator<Item = (String, Status)> + Clone,
    baseline: &HashSet<String>,
) -> SubtestsAnswer {
    let failing = subtests.clone().filter(|(_, status)| status.fails());
    let failures: Vec<_> =
        failing.map(|(test, status)| SubtestFailure { test, status: status.name() }).collect();
    SubtestsAnswer {
        counts: Counts::of(subtests.clone().map(|(_, status)| status)),
        unexpected: failures.iter().filter(|failure| !baseline.contains(&failure.test)).count(),
        failures,
        fixed: subtests
            .filter(|(name, status)| *status == Status::Pass && baseline.contains(name))
            .map(|(name, _)| name)
            .collect(),
    }
}

/// Returns the slow tests, the slowest first.
fn slow<'a>(results: impl Iterator<Item = (&'a Test, &'a Outcome)>) -> Vec<SlowTest<'a>> {
    let slow = results.filter(|(_, outcome)| outcome.seconds >= SLOW);
    let mut slow: Vec<_> =
        slow.map(|(test, outcome)| SlowTest { test: &test.name, seconds: outcome.seconds }).collect();
    slow.sort_by(|one, other| other.seconds.total_cmp(&one.seconds));
    slow
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
        say!("PASSES   {test}: the baseline lists it as a failure; remove it from the baseline");
    }
    for (name, count) in &answered.unknown {
        say!("{count:6} x unknown to the chip: {name}");
    }
    say!("{}: {}", counted(answered.counts.total as u64, "test"), answered.counts.text());
    if let Some(control) = &answered.control {
        say!("control, on a chip that executes no commands: {}", control.text());
    }
    if !answered.undrawn.is_empty() {
        say!("{} of the passing tests also pass if the chip executes no commands:", answered.undrawn.len());
        for test in &answered.undrawn {
            say!("  {test}");
        }
    }
    if has_baseline {
        say!(
            "{} of the failures are not in the baseline; {} of the tests in the baseline now pass",
            answered.unexpected,
            answered.fixed.len()
        );
    }
    if let Some(profile) = &answered.profile {
        show_profile(profile, has_baseline);
    }
}

fn show_profile(answered: &ProfileAnswer<'_>, has_baseline: bool) {
    let ProfileAnswer { skipped, subtests, slow, against, .. } = answered;
    for (reason, count) in skipped {
        say!("{} skipped without being started: {reason}", counted(*count as u64, "test"));
    }
    say!("{}: {}", counted(subtests.counts.total as u64, "subtest"), subtests.counts.text());
    for test in &subtests.fixed {
        say!("PASSES   {test}: the baseline lists it as a failure; remove it from the baseline");
    }
    if has_baseline {
        let (unexpected, fixed) = (subtests.unexpected, subtests.fixed.len());
        say!(
            "{unexpected} of the failing subtests are not in the baseline; {fixed} of the subtests in the baseline \
             now pass"
        );
    }
    if !slow.is_empty() {
        say!("{} took {SLOW} s or more:", counted(slow.len() as u64, "test"));
    }
    for SlowTest { test, seconds } in slow.iter().take(SHOWN_SLOW) {
        say!("{seconds:6.1} s {test}");
    }
    if slow.len() > SHOWN_SLOW {
        say!("… {} (--json has them)", counted((slow.len() - SHOWN_SLOW) as u64, "more test"));
    }
    let Some(Compared { file, commands, subtests, not_run, unknown, .. }) = against else { return };
    show_agreement(file, "command", commands);
    show_agreement(file, "subtest", subtests);
    say!(
        "{} in {file} were not run, and {unknown} are not in the profile (--json names them)",
        counted_entries(*not_run)
    );
}

/// Returns `1 entry` or `2 entries`.
fn counted_entries(count: usize) -> String {
    if count == 1 { "1 entry".to_owned() } else { format!("{count} entries") }
}

/// Prints the agreement of commands or subtests with the results of a real chip.
fn show_agreement(file: &str, what: &str, agreement: &Agreement) {
    let Agreement { agree, executed, percent, fails_here, fails_there } = agreement;
    for (differences, where_to) in [(fails_here, "fails here only"), (fails_there, "fails there only")] {
        for Disagreement { test, here, .. } in differences.iter().take(SHOWN_DIFFERENT) {
            say!("{where_to:17} {here:8} {test}");
        }
        if differences.len() > SHOWN_DIFFERENT {
            let more = (differences.len() - SHOWN_DIFFERENT) as u64;
            say!("… {} that {where_to} (--json has them)", counted(more, &format!("more {what}")));
        }
    }
    let percent = percent.map(|percent| format!(", {percent:.2} %")).unwrap_or_default();
    say!(
        "{agree} of {} agree with {file}{percent}: {} fail only on the emulated chip, {} only on the real chip",
        counted(*executed as u64, &format!("executed {what}")),
        fails_here.len(),
        fails_there.len()
    );
}

/// Returns a progress bar, which is visible on a terminal only.
pub(super) fn progress(tests: u64) -> ProgressBar {
    let hidden = quiet() || !std::io::IsTerminal::is_terminal(&std::io::stderr());
    let target = if hidden { ProgressDrawTarget::hidden() } else { ProgressDrawTarget::stderr() };
    let bar = ProgressBar::with_draw_target(Some(tests), target);
    if let Ok(style) = ProgressStyle::with_template("{bar:40} {pos}/{len} runs {elapsed}, {eta} left") {
        bar.set_style(style);
    }
    bar
}

/// Returns the status of a test case in the JUnit report.
fn judged(status: Status) -> TestCaseStatus {
    match status {
        Status::Pass | Status::Warn => TestCaseStatus::success(),
        Status::Skip => TestCaseStatus::skipped(),
        Status::Fail => TestCaseStatus::non_success(NonSuccessKind::Failure),
        Status::Crash | Status::Timeout => TestCaseStatus::non_success(NonSuccessKind::Error),
    }
}

fn junit(chip: &str, tests: &[Test], outcomes: &[Outcome]) -> Result<String> {
    let mut report = Report::new("reconverge piglit");
    let mut suite = TestSuite::new(chip);
    for (test, outcome) in tests.iter().zip(outcomes) {
        let mut status = judged(outcome.status);
        if outcome.status.fails() {
            status.set_message(format!("{} {}", outcome.status.name(), outcome.why));
        }
        let mut case = TestCase::new(listed(&test.name), status);
        case.set_time(Duration::from_secs_f64(outcome.seconds));
        suite.add_test_case(case);
        for (name, status) in &outcome.subtests {
            suite.add_test_case(TestCase::new(listed(&format!("{}@{name}", test.name)), judged(*status)));
        }
    }
    report.add_test_suite(suite);
    report.to_string().context("the JUnit report")
}
