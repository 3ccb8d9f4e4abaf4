//! `--against FILE`: compares results with the list of tests that fail on a real chip.
//!
//! The list is one of Mesa's `*-fails.txt` files. The list contains commands and subtests. A command that is skipped on
//! the emulated chip has no result that could be compared with the list. Both in the list and on the emulated chip, the
//! comparison treats a test with a warning as a pass.

use std::collections::{HashMap, HashSet};
use std::path::Path;

use anyhow::{Context, Result, bail};
use serde::Serialize;

use super::outcome::{Outcome, Status};
use crate::files;
use crate::shown::unlisted;

/// The list of tests that fail on a real chip.
#[derive(Debug)]
pub(super) struct FailsList {
    /// Names of the listed tests, with the status of each test. The status is `None` if the list has only the name.
    fails: HashMap<String, Option<&'static str>>,
}

/// Agreement of the results with the list, either for commands or for subtests.
#[derive(Debug, Default, Serialize)]
pub(super) struct Agreement {
    pub(super) agree: usize,
    pub(super) executed: usize,
    /// Percentage of executed tests whose results agree with the list. The field is absent if no test was executed.
    pub(super) percent: Option<f64>,
    pub(super) fails_here: Vec<Disagreement>,
    pub(super) fails_there: Vec<Disagreement>,
}

/// A test that fails on only one of two chips: the emulated chip, or the real chip of the list.
#[derive(Debug, PartialEq, Eq, Serialize)]
pub(super) struct Disagreement {
    pub(super) test: String,
    pub(super) here: &'static str,
    /// The status in the list, if the list states a status for the test.
    pub(super) there: Option<&'static str>,
}

/// The result of the comparison in the output of `--json`.
#[derive(Debug, Serialize)]
pub(super) struct Compared {
    pub(super) file: String,
    #[serde(flatten)]
    pub(super) commands: Agreement,
    pub(super) subtests: Agreement,
    /// Number of entries in the list that have no result. The test of such an entry did not run, was skipped, or did
    /// not report the subtest that the entry names.
    pub(super) not_run: usize,
    pub(super) not_run_tests: Vec<String>,
    /// Number of entries in the list whose test is not in the profile.
    pub(super) unknown: usize,
    pub(super) unknown_tests: Vec<String>,
}

impl FailsList {
    /// Reads a list.
    ///
    /// # Errors
    /// Returns an error if the file cannot be read or has no entry.
    pub(super) fn read(path: &Path) -> Result<FailsList> {
        let place = || crate::shown::path(&path);
        let text = String::from_utf8(files::read(path)?).with_context(place)?;
        let list = FailsList::of(&text);
        if list.fails.is_empty() {
            bail!("--against {}: expected lines NAME,STATUS or NAME, found none", place());
        }
        Ok(list)
    }

    fn of(text: &str) -> FailsList {
        let lines = text.lines().map(str::trim).filter(|line| !line.is_empty() && !line.starts_with('#'));
        let mut fails = HashMap::new();
        for line in lines {
            let known = |word: &str| Status::ALL.into_iter().find(|status| status.name() == word.trim());
            // The text after the last comma is a status only if this text is the name of a status. The reason is that
            // the name of a test may contain commas.
            let (name, status) = match line.rsplit_once(',').map(|(name, word)| (name, known(word))) {
                Some((name, Some(status))) => (name, Some(status)),
                _ => (line, None),
            };
            if status.is_none_or(Status::fails) {
                fails.insert(unlisted(name.trim_end()).replace(',', "-"), status.map(Status::name));
            }
        }
        FailsList { fails }
    }

    /// Compares results with the list. `all` are the names of all tests of the profile.
    pub(super) fn compare<'a>(
        &self,
        file: String,
        results: impl Iterator<Item = (&'a str, &'a Outcome)>,
        all: &HashSet<String>,
    ) -> Compared {
        let (mut commands, mut subtests) = (Agreement::default(), Agreement::default());
        let mut executed = HashSet::new();
        for (name, outcome) in results.filter(|(_, outcome)| outcome.status != Status::Skip) {
            self.one(name.to_owned(), outcome.status, &mut commands, &mut executed);
            for (subtest, status) in outcome.subtests.iter().filter(|(_, status)| *status != Status::Skip) {
                self.one(format!("{name}@{subtest}"), *status, &mut subtests, &mut executed);
            }
        }
        for agreement in [&mut commands, &mut subtests] {
            let Agreement { agree, executed, .. } = *agreement;
            // The percentage is rounded down to two decimals, so only complete agreement gives 100.
            agreement.percent =
                (agree * 10_000).checked_div(executed).map(|hundredths| hundredths as f64 / 100.);
        }
        let others = self.fails.keys().filter(|name| !executed.contains(*name)).cloned();
        let mut others: Vec<String> = others.collect();
        others.sort();
        let (not_run_tests, unknown_tests): (Vec<_>, Vec<_>) =
            others.into_iter().partition(|name| is_in(name, all));
        Compared {
            file,
            commands,
            subtests,
            not_run: not_run_tests.len(),
            not_run_tests,
            unknown: unknown_tests.len(),
            unknown_tests,
        }
    }

    /// Compares the result of one test or subtest with the list.
    fn one(&self, test: String, status: Status, agreement: &mut Agreement, executed: &mut HashSet<String>) {
        let there = self.fails.get(&test).copied();
        agreement.executed += 1;
        executed.insert(test.clone());
        let disagreement = Disagreement { test, here: status.name(), there: there.flatten() };
        match (status.fails(), there.is_some()) {
            (true, false) => agreement.fails_here.push(disagreement),
            (false, true) => agreement.fails_there.push(disagreement),
            _ => agreement.agree += 1,
        }
    }
}

/// Returns whether `name` is a test in `all`, or a subtest of a test in `all`.
fn is_in(name: &str, all: &HashSet<String>) -> bool {
    all.contains(name) || name.match_indices('@').any(|(at, _)| all.contains(&name[..at]))
}

#[cfg(test)]
mod unit {
    use super::*;

    #[test]
    fn lists_have_comments_and_names_with_and_without_statuses() {
        let list = FailsList::of("# r600\n\na@b,Fail\na, b\nc,Crash \nd,Pass\n e\n");
        let mut names: Vec<_> = list.fails.into_iter().collect();
        names.sort();
        let expected = [("a- b", None), ("a@b", Some("Fail")), ("c", Some("Crash")), ("e", None)];
        assert_eq!(names, expected.map(|(name, status)| (name.to_owned(), status)));
    }

    #[test]
    fn differences_in_both_directions_are_named_and_counted() {
        let list = FailsList::of(
            "both,Fail\nthere,Fail\nskips,Fail\nboth@2D,Fail\nboth@gone,Fail\nleft@x,Fail\nold,Fail\n",
        );
        let mut both = Outcome::plain(Status::Crash, 0.);
        both.subtests = vec![
            ("2D".to_owned(), Status::Pass),
            ("3D".to_owned(), Status::Fail),
            ("1D".to_owned(), Status::Pass),
            ("cube".to_owned(), Status::Skip),
        ];
        let plain = |status| Outcome::plain(status, 0.);
        let (there, here) = (plain(Status::Warn), plain(Status::Timeout));
        let (skips, passes) = (plain(Status::Skip), plain(Status::Pass));
        let results =
            [("both", &both), ("there", &there), ("here", &here), ("skips", &skips), ("passes", &passes)];
        let all = ["both", "there", "here", "skips", "passes", "left"];
        let all: HashSet<String> = all.into_iter().map(str::to_owned).collect();
        let found = list.compare("list".to_owned(), results.into_iter(), &all);
        let different = |test: &str, here, there| Disagreement { test: test.to_owned(), here, there };
        let Agreement { agree, executed, percent, fails_here, fails_there } = found.commands;
        assert_eq!((agree, executed, percent), (2, 4, Some(50.)));
        assert_eq!(fails_here, [different("here", "Timeout", None)]);
        assert_eq!(fails_there, [different("there", "Warn", Some("Fail"))]);
        let Agreement { agree, executed, percent, fails_here, fails_there } = found.subtests;
        assert_eq!((agree, executed, percent), (1, 3, Some(33.33)));
        assert_eq!(fails_here, [different("both@3D", "Fail", None)]);
        assert_eq!(fails_there, [different("both@2D", "Pass", Some("Fail"))]);
        assert_eq!((found.not_run, found.unknown), (3, 1));
        assert_eq!(found.not_run_tests, ["both@gone", "left@x", "skips"]);
        assert_eq!(found.unknown_tests, ["old"]);
    }

    #[test]
    fn nothing_executed_has_no_percentage() {
        let found = FailsList::of("a,Fail").compare(String::new(), std::iter::empty(), &HashSet::new());
        assert_eq!((found.commands.executed, found.commands.percent), (0, None));
    }
}
