//! Runs all tests in one environment. A process runs several tests.
//!
//! Starting the process takes most of the time of a single test, so a process runs several tests. A verdict must not
//! depend on state that earlier tests leave in the process. So if a process runs several tests, a verdict is valid only
//! in some cases. See [`Groups::decides`]. If the verdict is not valid, the test runs again alone. The tests of the
//! baseline are likely to fail, so each of these tests runs alone from the start.

use std::collections::{BTreeMap, HashSet, VecDeque};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::thread;

use anyhow::Result;
use indicatif::ProgressBar;

use super::lists::List;
use super::outcome::{Exit, Outcome, Reported, Status, observed_zeros};
use super::process::Runner;
use super::test::Test;
use crate::drm::setup::Setup;
use crate::interrupt;

/// Maximum number of tests in a group.
const LARGEST: usize = 50;
/// Minimum number of tests in a group, except for the last group.
const SMALLEST: usize = 5;

/// The tests of one run, with their environment.
pub(super) struct Groups<'a> {
    pub(super) runner: Runner<'a>,
    pub(super) setup: &'a Setup,
    pub(super) tests: &'a [Test],
    /// Names of tests that run alone from the start.
    pub(super) baseline: &'a HashSet<String>,
    /// Whether the chip executes shaders.
    pub(super) executes: bool,
    pub(super) progress: &'a ProgressBar,
}

/// State that the threads share.
struct RunState {
    /// Groups that have not started. A group is a list of the indices of its tests.
    left: VecDeque<Vec<usize>>,
    /// Outcomes of the tests that have ended, indexed by test.
    outcomes: Vec<Option<Outcome>>,
    list: List,
    reported: Reported,
    failed: Option<anyhow::Error>,
}

impl Groups<'_> {
    /// Runs all tests, unless Ctrl-C interrupts the run. If `list` contains the outcome of a test from an earlier run,
    /// the function returns this outcome and does not run the test. A test that cannot run is skipped. Returns an
    /// outcome for each test that ended, and the sums of the counts that the processes reported.
    pub(super) fn run(&self, mut list: List) -> Result<(Vec<Option<Outcome>>, Reported)> {
        let mut outcomes: Vec<_> =
            self.tests.iter().map(|test| list.before.get(&test.name).cloned()).collect();
        for (test, outcome) in self.tests.iter().zip(&mut outcomes) {
            if test.skipped.is_some() && outcome.is_none() {
                list.add(&test.name, outcome.insert(Outcome::plain(Status::Skip, 0.)))?;
            }
        }
        let left = (0..self.tests.len()).filter(|place| outcomes[*place].is_none());
        let mut alone = Vec::new();
        let mut together: BTreeMap<&str, Vec<usize>> = BTreeMap::new();
        for place in left {
            let test = &self.tests[place];
            let is_alone = self.runner.args.isolate || self.baseline.contains(&test.name);
            match &test.shared {
                Some(shared) if !is_alone => together.entry(&shared.needs).or_default().push(place),
                _ => alone.push(place),
            }
        }
        let count = alone.len() + together.values().map(Vec::len).sum::<usize>();
        self.progress.inc((self.tests.len() - count) as u64);
        let jobs = self.runner.jobs();
        let groups = together.values().flat_map(|tests| dealt(tests, jobs));
        let left = alone.into_iter().map(|place| vec![place]).chain(groups).collect();
        let shared =
            Mutex::new(RunState { left, outcomes, list, reported: Reported::default(), failed: None });
        let job = Job { groups: self, shared: &shared };
        thread::scope(|scope| (0..jobs).for_each(|_| drop(scope.spawn(|| job.work()))));
        let shared = shared.into_inner().unwrap_or_else(PoisonError::into_inner);
        match shared.failed {
            Some(error) => Err(error),
            None => Ok((shared.outcomes, shared.reported)),
        }
    }

    /// Returns whether the verdict of a test is valid if the process has also run other tests. `text` is the output of
    /// the test.
    ///
    /// A test of a profile reports a skip only if a version or an extension of OpenGL is missing. Earlier tests do not
    /// change the versions and extensions, so the skip is valid. Piglit also runs several tests in one process, and
    /// accepts the verdict of a skipped test. If the tests do not come from a profile, a skipped test runs again alone.
    ///
    /// If the chip executes shaders, only the verdict `Pass` is valid. If the chip does not execute shaders, a test
    /// reads the old content of the test's memory. If the test runs alone, this content is zeros. In a group, this
    /// content can be data of an earlier test. So in a group, the verdict `Fail` is valid only if the test observed
    /// zeros.
    fn decides(&self, verdict: Status, text: &str) -> bool {
        if verdict == Status::Skip && self.runner.is_profile() {
            return true;
        }
        match self.executes {
            true => verdict == Status::Pass,
            false => verdict == Status::Fail && observed_zeros(text),
        }
    }
}

/// Divides tests into groups of decreasing size, so that all threads end at nearly the same time.
fn dealt(mut tests: &[usize], jobs: usize) -> Vec<Vec<usize>> {
    let mut groups = Vec::new();
    while !tests.is_empty() {
        let size = (tests.len() / (2 * jobs)).clamp(SMALLEST, LARGEST).min(tests.len());
        let (group, others) = tests.split_at(size);
        groups.push(group.to_vec());
        tests = others;
    }
    groups
}

/// The work of one thread. The thread runs groups of tests.
struct Job<'a> {
    groups: &'a Groups<'a>,
    shared: &'a Mutex<RunState>,
}

/// The result of a process with several tests.
struct Ran {
    /// Number of tests that started.
    tests: usize,
    /// Indices of the tests that must run again alone.
    again: Vec<usize>,
    /// Whether the counts in the process's report were added to [`RunState`]. If the value is `true`, these counts also
    /// include the tests that run again.
    reported: bool,
}

impl Job<'_> {
    fn shared(&self) -> MutexGuard<'_, RunState> {
        self.shared.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Runs groups until no group remains.
    fn work(&self) {
        while !interrupt::asked() {
            let Some(group) = self.shared().left.pop_front() else { return };
            if let Err(error) = self.group(&group)
                && !interrupt::asked()
            {
                let mut shared = self.shared();
                shared.failed.get_or_insert(error);
                // Clears the list of waiting groups, so that all other threads end early.
                shared.left.clear();
            }
        }
    }

    /// Runs a group. If a process ends early, the remaining tests run in further processes.
    fn group(&self, mut group: &[usize]) -> Result<()> {
        while group.len() > 1 {
            let ran = self.together(group)?;
            for place in ran.again {
                self.alone(place, !ran.reported)?;
            }
            group = &group[ran.tests..];
        }
        group.iter().try_for_each(|place| self.alone(*place, true))
    }

    /// Runs tests in one process, until all tests have run or the process ends.
    fn together(&self, group: &[usize]) -> Result<Ran> {
        let Groups { runner, setup, .. } = *self.groups;
        let tests: Vec<&Test> = group.iter().map(|place| &self.groups.tests[*place]).collect();
        runner.in_folder(|folder| {
            let mut process = runner.start(setup, &tests, folder, &[])?;
            let mut ran = Ran { tests: 0, again: Vec::new(), reported: false };
            for (place, test) in group.iter().zip(&tests) {
                ran.tests += 1;
                match process.verdict(test)? {
                    Some((outcome, text)) if self.groups.decides(outcome.status, &text) => {
                        self.ended(*place, outcome)?;
                    }
                    Some(_) => ran.again.push(*place),
                    None => {
                        ran.again.push(*place);
                        break;
                    }
                }
                if process.stopped() {
                    break;
                }
            }
            // A process that crashed may have reported incomplete counts.
            if process.end()? == Exit::Done {
                self.shared().reported.add(process.reported());
                ran.reported = true;
            }
            Ok(ran)
        })
    }

    /// Runs a test alone in a process. If `counts` is set, adds the counts of the process's report to [`RunState`].
    fn alone(&self, place: usize, counts: bool) -> Result<()> {
        let Groups { runner, setup, tests, .. } = *self.groups;
        let (outcome, reported) =
            runner.in_folder(|folder| runner.alone(setup, &tests[place], folder, &[]))?;
        if counts {
            self.shared().reported.add(reported);
        }
        self.ended(place, outcome)
    }

    fn ended(&self, place: usize, outcome: Outcome) -> Result<()> {
        let mut shared = self.shared();
        shared.list.add(&self.groups.tests[place].name, &outcome)?;
        shared.outcomes[place] = Some(outcome);
        self.groups.progress.inc(1);
        Ok(())
    }
}

#[cfg(test)]
mod unit {
    use super::*;

    #[test]
    fn groups_become_smaller_and_have_all_tests_in_their_order() {
        let tests: Vec<usize> = (0..450).collect();
        let groups = dealt(&tests, 2);
        assert_eq!(groups.concat(), tests);
        let sizes: Vec<usize> = groups.iter().map(Vec::len).collect();
        assert_eq!((sizes[0], sizes[sizes.len() - 2]), (LARGEST, SMALLEST));
        assert!(sizes.is_sorted_by(|one, next| one >= next), "{sizes:?}");
        assert_eq!(dealt(&[7, 9], 8), [[7, 9]]);
    }
}
