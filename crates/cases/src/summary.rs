//! Counts of verdicts, and the cases that failed.

use std::collections::{BTreeMap, HashSet};
use std::time::Duration;

use reconverge_simt::{Path, Shares};
use regex_lite::Regex;
use serde::Serialize;

use crate::{Case, Verdict};

/// A case and its verdict.
#[derive(Clone, Debug, Serialize)]
pub struct Outcome {
    /// The file.
    pub file: String,
    /// The case.
    pub name: String,
    /// The reason for the verdict. The text is empty if the case passed without findings.
    pub why: String,
}

impl Outcome {
    /// Returns the id of the case, which is unique among all files. The id is the same as [`Case::id`].
    pub fn id(&self) -> String {
        crate::id(&self.file, &self.name)
    }

    /// Returns the names of the file and the case, for messages.
    pub fn place(&self) -> String {
        let (file, name) = (&self.file, &self.name);
        if self.id() == *file { file.clone() } else { format!("{file} {name}") }
    }
}

reconverge_isa::choices! {
    /// Status of a case, in the terms of deqp-runner.
    #[derive(Serialize)]
    pub enum Status {
        /// The result is as expected.
        Pass = "Pass",
        /// The result is not as expected, or the case needs a feature that is not implemented.
        Fail = "Fail",
        /// The case did not end within the time limit.
        Timeout = "Timeout",
        /// The case has nothing to compare.
        Skip = "Skip",
        /// The case fails, and the baseline lists the case.
        ExpectedFail = "ExpectedFail",
        /// The case passes, although the baseline lists the case as failing.
        #[serde(rename = "UnexpectedImprovement(Pass)")]
        UnexpectedPass = "UnexpectedImprovement(Pass)",
        /// The case fails, and the baseline lists the case as flaky.
        Flake = "Flake",
    }
}

/// The status of a case, and the duration of the case's run.
#[derive(Clone, Debug, Serialize)]
pub struct Timed {
    /// The file.
    pub file: String,
    /// The case.
    pub name: String,
    /// Status of the case.
    pub status: Status,
    /// Duration in seconds.
    pub seconds: f64,
}

/// Failures of one kind.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Reason {
    /// The common reason of these failures, as text. The text does not have numbers.
    pub reason: String,
    /// Number of failures.
    pub count: usize,
}

/// The failures that the baseline lists. These failures are expected.
#[derive(Clone, Debug, Default)]
pub struct Known {
    /// Ids of cases that are known to fail.
    pub failing: HashSet<String>,
    /// Patterns for the ids of flaky cases, which fail in some runs.
    pub flaky: Vec<Regex>,
}

/// All verdicts of a check.
#[derive(Clone, Debug, Default, Serialize)]
pub struct Summary {
    /// Number of all cases, including skipped cases.
    pub cases: usize,
    /// Number of cases with the expected result.
    pub passed: usize,
    /// Number of cases whose result is not as expected.
    pub failed: usize,
    /// Number of cases that need a feature that is not implemented.
    pub unsupported: usize,
    /// Number of cases with nothing to compare.
    pub skipped: usize,
    /// Number of cases that failed and are known to be flaky. `failed` does not include these cases.
    pub flaky: usize,
    /// Number of failed and unsupported cases that the baseline lists.
    pub expected_failures: usize,
    /// The failed and the unsupported cases.
    pub failures: Vec<Outcome>,
    /// The failures grouped by reason. The most frequent reason comes first.
    pub reasons: Vec<Reason>,
    /// Cases that pass, but that the baseline lists as failures.
    pub unexpected_passes: Vec<Outcome>,
    /// The flaky cases that failed.
    pub flakes: Vec<Outcome>,
    /// Findings of the cases that passed.
    pub findings: Vec<Outcome>,
    /// The reasons why cases were skipped. Each reason occurs once per file.
    pub skips: Vec<Outcome>,
    /// Every case with its duration.
    pub results: Vec<Timed>,
    /// Number of instructions that the fast engine ran on each path. The map is empty if the check did not run in
    /// lockstep.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub paths: BTreeMap<&'static str, u64>,
    /// Ids of the failures that the baseline lists.
    #[serde(skip)]
    known: HashSet<String>,
}

impl Summary {
    /// Completes the summary after the last case. Sorts the reasons by frequency, and copies the numbers in `shares` to
    /// `paths`.
    pub fn finish(&mut self, shares: &Shares) {
        self.reasons.sort_by_key(|reason| std::cmp::Reverse(reason.count));
        let ran = Path::ALL.into_iter().filter(|path| shares.of(*path) > 0);
        self.paths = ran.map(|path| (path.name(), shares.of(path))).collect();
    }

    /// Adds the verdict of a case. The case ran for `time`.
    pub fn add(&mut self, case: &Case, verdict: Verdict, time: Duration, known: &Known) {
        let outcome = |why| Outcome { file: case.file.clone(), name: case.name.clone(), why };
        let id = case.id();
        self.cases += 1;
        let status = match verdict {
            Verdict::Passed { findings } => {
                self.passed += 1;
                self.findings.extend(findings.into_iter().map(outcome));
                if known.failing.contains(&id) {
                    self.unexpected_passes.push(outcome(String::new()));
                    Status::UnexpectedPass
                } else {
                    Status::Pass
                }
            }
            Verdict::Skipped(why) => {
                self.skipped += 1;
                if !self.skips.iter().any(|skip| skip.file == case.file && skip.why == why) {
                    self.skips.push(outcome(why));
                }
                Status::Skip
            }
            Verdict::Failed(why) | Verdict::Timeout(why) | Verdict::Unsupported(why)
                if known.flaky.iter().any(|flaky| flaky.is_match(&id)) =>
            {
                self.flaky += 1;
                self.flakes.push(outcome(why));
                Status::Flake
            }
            failure => {
                let (why, status) = match failure {
                    Verdict::Unsupported(why) => {
                        self.unsupported += 1;
                        (format!("unsupported: {why}"), Status::Fail)
                    }
                    Verdict::Timeout(why) => {
                        self.failed += 1;
                        (why, Status::Timeout)
                    }
                    Verdict::Failed(why) | Verdict::Skipped(why) => {
                        self.failed += 1;
                        (why, Status::Fail)
                    }
                    Verdict::Passed { .. } => unreachable!("it did not fail"),
                };
                self.count_reason(reason(&why));
                self.failures.push(outcome(why));
                if known.failing.contains(&id) {
                    self.expected_failures += 1;
                    self.known.insert(id);
                    Status::ExpectedFail
                } else {
                    status
                }
            }
        };
        let seconds = (time.as_secs_f64() * 1e6).round() / 1e6;
        self.results.push(Timed { file: case.file.clone(), name: case.name.clone(), status, seconds });
    }

    fn count_reason(&mut self, reason: String) {
        match self.reasons.iter_mut().find(|known| known.reason == reason) {
            Some(known) => known.count += 1,
            None => self.reasons.push(Reason { reason, count: 1 }),
        }
    }

    /// Returns whether the baseline lists a failure.
    pub fn is_expected(&self, outcome: &Outcome) -> bool {
        self.known.contains(&outcome.id())
    }

    /// Returns whether the results match the baseline. The results match if the baseline lists every case that fails,
    /// and if every case in the baseline still fails.
    pub fn is_good(&self) -> bool {
        self.failures.len() == self.expected_failures && self.unexpected_passes.is_empty()
    }
}

/// Removes the numbers from the reason of a failure.
fn reason(why: &str) -> String {
    let why = why.split_once(" differ").map_or(why, |(before, _)| before);
    let mut words = Vec::new();
    for word in why.split_whitespace().take(24) {
        let hex = word.trim_matches(|letter: char| !letter.is_alphanumeric());
        let digits = hex.starts_with(|letter: char| letter.is_ascii_digit())
            || hex.len() == 8 && hex.bytes().all(|digit| digit.is_ascii_hexdigit());
        let word = if digits { "#" } else { word };
        if words.last() != Some(&word) || !digits {
            words.push(word);
        }
    }
    words.join(" ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn failures_that_differ_in_numbers_have_one_reason() {
        let wrong = |lane: u32| {
            format!("strict: expect color0: {lane} of 64 numbers differ: lane {lane} .x: expected 1, found 2")
        };
        assert_eq!(reason(&wrong(3)), reason(&wrong(7)));
        assert_eq!(reason("trap at 0x20 (d00e040d 80c00780), lanes 0: no code"), "trap at # lanes # no code");
    }

    #[test]
    fn a_baseline_sorts_failures_and_reports_what_passes_now() {
        let known = Known {
            failing: ["x.toml:a", "x.toml:b"].map(str::to_owned).into(),
            flaky: vec![Regex::new("flak.$").unwrap()],
        };
        let mut summary = Summary::default();
        let mut add = |name: &str, verdict| {
            let kind = crate::CaseKind::Skip(String::new());
            let case = Case { file: "x.toml".to_owned(), name: name.to_owned(), kind };
            summary.add(&case, verdict, Duration::from_millis(2), &known);
            summary.is_good()
        };
        assert!(add("a", Verdict::Failed("no".to_owned())));
        assert!(add("flaky", Verdict::Failed("no".to_owned())));
        assert!(!add("b", Verdict::PASSED));
        assert!(!add("c", Verdict::Timeout("late".to_owned())));
        assert_eq!((summary.failed, summary.expected_failures, summary.flaky), (2, 1, 1));
        assert_eq!(summary.unexpected_passes[0].id(), "x.toml:b");
        let statuses: Vec<&str> = summary.results.iter().map(|result| result.status.name()).collect();
        assert_eq!(statuses, ["ExpectedFail", "Flake", "UnexpectedImprovement(Pass)", "Timeout"]);
        assert_eq!(summary.results[0].seconds, 0.002);
    }
}
