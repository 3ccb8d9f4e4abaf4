//! The outcome of a test, which is parsed from the output of the test's process. The module also defines the counts in
//! the reports of the preloaded library.

use std::collections::BTreeMap;

reconverge_isa::choices! {
    /// Status of a test that ended, in deqp-runner's terms.
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
    /// Whether the status is a failure.
    pub(super) const fn fails(self) -> bool {
        matches!(self, Status::Fail | Status::Crash | Status::Timeout)
    }
}

/// Describes how a process ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Exit {
    Done,
    /// The test belongs to a profile, and the process of the test exited with a status other than 0 and 1.
    Status(i32),
    Signal(i32),
    /// The test exceeded the timeout, and the process was killed.
    Timeout,
}

/// The outcome of a test.
#[derive(Clone, Debug)]
pub(super) struct Outcome {
    pub(super) status: Status,
    pub(super) seconds: f64,
    /// The reason for a failure. For any status that is not a failure, the text is empty.
    pub(super) why: String,
    /// The name and the reported status of each subtest.
    pub(super) subtests: Vec<(String, Status)>,
}

impl Outcome {
    /// Returns an outcome without a reason and without subtests.
    pub(super) const fn plain(status: Status, seconds: f64) -> Outcome {
        Outcome { status, seconds, why: String::new(), subtests: Vec::new() }
    }

    /// Returns the outcome of a profile's command, by the rules of deqp-runner.
    ///
    /// If the process exits with status 0 or 1, the first result in the text is the status of the command. The outcome
    /// contains only the subtests before this result in the text. The status of the command does not depend on the
    /// subtests. If the text reports the same subtest name twice, the subtest fails.
    pub(super) fn of_command(text: &str, end: Exit, seconds: f64) -> Outcome {
        let mut subtests: Vec<(String, Status)> = Vec::new();
        let mut result = None;
        for line in text.lines() {
            if let Some(word) = result_of(line) {
                result = Some(status(word));
                break;
            }
            let Some((name, word)) = subtest_of(line) else { continue };
            let name = name.replace(',', "-");
            match subtests.iter_mut().find(|(known, _)| *known == name) {
                Some((_, known)) => *known = Status::Fail,
                None => subtests.push((name, status(word))),
            }
        }
        let status = match (end, result) {
            (Exit::Timeout, _) => Status::Timeout,
            (Exit::Done, Some(result)) => result,
            _ => Status::Crash,
        };
        let why = if status.fails() { why(text, end) } else { String::new() };
        Outcome { status, seconds, why, subtests }
    }

    /// Returns the outcome of a test whose process ran no other test.
    pub(super) fn of(text: &str, end: Exit, seconds: f64) -> Outcome {
        let status = match (end, verdict(text)) {
            (Exit::Timeout, _) => Status::Timeout,
            (Exit::Done, Some(verdict)) => verdict,
            _ => Status::Crash,
        };
        let why = match status {
            Status::Pass | Status::Skip | Status::Warn => String::new(),
            _ => why(text, end),
        };
        Outcome { status, seconds, why, subtests: Vec::new() }
    }
}

/// Sums of the counts in the reports of processes, by name.
#[derive(Debug, Default)]
pub(super) struct Reported {
    /// Features that the chip does not have.
    pub(super) unknown: BTreeMap<String, u64>,
    /// Programs and surfaces that could not be written.
    pub(super) lost: BTreeMap<String, u64>,
}

impl Reported {
    /// Returns the counts of the process that wrote this report.
    pub(super) fn of(report: &str) -> Reported {
        Reported { unknown: named(report, "unknown"), lost: named(report, "lost") }
    }

    /// Adds the counts of another process.
    pub(super) fn add(&mut self, other: Reported) {
        for (sums, counts) in [(&mut self.unknown, other.unknown), (&mut self.lost, other.lost)] {
            counts.into_iter().for_each(|(name, count)| *sums.entry(name).or_default() += count);
        }
    }
}

/// Returns the verdict in the last `PIGLIT:` line.
fn verdict(text: &str) -> Option<Status> {
    let last = text.lines().rev().find(|line| line.starts_with("PIGLIT:"))?;
    Some(status(piglit(last)?["result"].as_str()?))
}

/// Returns the verdict in a line about the test `name`, in the output of a process with several tests. Returns `None`
/// if the line is not a verdict about that test.
pub(super) fn verdict_of(name: &str, line: &str) -> Option<Status> {
    Some(status(piglit(line)?["subtest"][name].as_str()?))
}

/// Returns whether the last `PIGLIT:` line reports a skip. A line `PIGLIT TEST:` starts another test.
pub(super) fn ends_with_skip(text: &str) -> bool {
    text.lines().rev().find(|line| line.contains("PIGLIT")).and_then(result_of) == Some("skip")
}

/// Returns the result in a line such as `PIGLIT: {"result": "pass" }`.
fn result_of(line: &str) -> Option<&str> {
    let (_, rest) = line.split_once("PIGLIT: {\"result\": \"")?;
    Some(rest.rsplit_once("\" }")?.0)
}

/// Returns the name and the result of the subtest in a line such as `PIGLIT: {"subtest": {"2D" : "pass"}}`. Piglit does
/// not escape the name.
fn subtest_of(line: &str) -> Option<(&str, &str)> {
    let (_, rest) = line.split_once("PIGLIT: {\"subtest\":")?;
    let (pair, _) = rest.trim_start().strip_prefix("{\"")?.rsplit_once("\"}}")?;
    let (name, word) = pair.rsplit_once('"')?;
    let name = name.trim_end().strip_suffix(':')?.trim_end().strip_suffix('"')?;
    Some((name, word))
}

/// Returns whether a failed probe observed only zeros, as in memory that was never written.
pub(super) fn observed_zeros(text: &str) -> bool {
    let mut observed = text.lines().filter_map(|line| line.trim_start().strip_prefix("Observed:")).peekable();
    let is_zero = |value: &str| value.parse() == Ok(0.);
    observed.peek().is_some() && observed.all(|values| values.split_whitespace().all(is_zero))
}

/// Returns the JSON object in a `PIGLIT:` line.
fn piglit(line: &str) -> Option<serde_json::Value> {
    serde_json::from_str(line.strip_prefix("PIGLIT:")?.trim()).ok()
}

/// Returns the status for a result word of piglit.
fn status(word: &str) -> Status {
    match word {
        "pass" => Status::Pass,
        "warn" => Status::Warn,
        "skip" => Status::Skip,
        "fail" => Status::Fail,
        "timeout" => Status::Timeout,
        _ => Status::Crash,
    }
}

/// Returns the reason for a failure. The reason is the chip's message. If the chip has no message, the reason is the
/// first message of the test.
fn why(text: &str, end: Exit) -> String {
    if let Some(line) = text.lines().find_map(|line| line.strip_prefix("reconverge: ")) {
        return line.to_owned();
    }
    if let Exit::Signal(signal) = end {
        return format!("ended by signal {signal}");
    }
    if let Exit::Status(status) = end {
        return format!("ended with status {status}");
    }
    let said = text.lines().filter(|line| !line.starts_with("PIGLIT:") && !line.trim().is_empty());
    said.take(3).map(str::trim).collect::<Vec<_>>().join("; ")
}

/// Returns the counts in one field of the reports. The reports come from all processes of a test.
fn named(text: &str, field: &str) -> BTreeMap<String, u64> {
    let mut found = BTreeMap::new();
    for line in text.lines() {
        let Ok(value) = serde_json::from_str::<serde_json::Value>(line) else { continue };
        for (name, count) in value[field].as_object().into_iter().flatten() {
            let largest: &mut u64 = found.entry(name.clone()).or_default();
            // A process appends several reports. Each report contains the counts up to that time.
            *largest = (*largest).max(count.as_u64().unwrap_or(0));
        }
    }
    found
}

#[cfg(test)]
mod unit {
    use super::*;

    #[test]
    fn the_last_verdict_counts() {
        let text = "Probe color at (1,1)\nPIGLIT: {\"result\": \"pass\" }\nPIGLIT: {\"result\": \"fail\" }\n";
        assert_eq!(verdict(text), Some(Status::Fail));
        assert_eq!(why(text, Exit::Done), "Probe color at (1,1)");
        assert_eq!(verdict("nothing"), None);
    }

    #[test]
    fn a_command_has_its_first_result_and_the_subtests_before_it() {
        let text = "PIGLIT: {\"subtest\": {\"2D, depth\" : \"fail\"}}\nPIGLIT: {\"subtest\":{\"a\"b\": \"skip\"}}\n\
                    noise PIGLIT: {\"subtest\": {\"new\" : \"notrun\"}}\nPIGLIT: {\"result\": \"pass\" }\n\
                    PIGLIT: {\"subtest\": {\"late\" : \"fail\"}}\nPIGLIT: {\"result\": \"fail\" }\n";
        let outcome = Outcome::of_command(text, Exit::Done, 0.);
        let found: Vec<_> = outcome.subtests.iter().map(|(name, status)| (&**name, *status)).collect();
        let expected = [("2D- depth", Status::Fail), ("a\"b", Status::Skip), ("new", Status::Crash)];
        assert_eq!((outcome.status, &*found), (Status::Pass, &expected[..]));
        assert_eq!(outcome.why, "");
    }

    #[test]
    fn a_command_crashes_without_a_result_or_by_its_end() {
        let pass = "PIGLIT: {\"subtest\": {\"2D\" : \"pass\"}}\nPIGLIT: {\"result\": \"pass\" }\n";
        let status = |text, end| Outcome::of_command(text, end, 0.).status;
        assert_eq!(status("PIGLIT: {\"subtest\": {\"2D\" : \"pass\"}}", Exit::Done), Status::Crash);
        assert_eq!(status(pass, Exit::Signal(11)), Status::Crash);
        assert_eq!(status(pass, Exit::Timeout), Status::Timeout);
        let crashed = Outcome::of_command(pass, Exit::Status(3), 0.);
        assert_eq!((crashed.status, &*crashed.why), (Status::Crash, "ended with status 3"));
        assert_eq!(crashed.subtests, [("2D".to_owned(), Status::Pass)], "subtests keep their statuses");
    }

    #[test]
    fn a_subtest_that_is_reported_twice_fails() {
        let line = "PIGLIT: {\"subtest\": {\"2D\" : \"pass\"}}\n";
        let text = line.repeat(2) + "PIGLIT: {\"result\": \"pass\" }";
        assert_eq!(Outcome::of_command(&text, Exit::Done, 0.).subtests, [("2D".to_owned(), Status::Fail)]);
    }

    #[test]
    fn a_process_that_skips_says_so_last() {
        let skip = "PIGLIT TEST: 1 - a\nPIGLIT: {\"result\": \"skip\" }\nMesa: bye\n";
        assert!(ends_with_skip(skip));
        assert!(!ends_with_skip(&format!("{skip}PIGLIT TEST: 2 - b\n")), "the next test had begun");
        assert!(!ends_with_skip("PIGLIT: {\"subtest\": {\"a\" : \"skip\"}}"));
    }

    #[test]
    fn a_verdict_among_several_has_the_name_of_its_test() {
        let line = "PIGLIT: {\"subtest\": {\"fs-any\" : \"warn\"}}";
        assert_eq!(verdict_of("fs-any", line), Some(Status::Warn));
        assert_eq!(verdict_of("fs-all", line), None);
        assert_eq!(verdict_of("result", "PIGLIT: {\"result\": \"skip\" }"), None);
    }

    #[test]
    fn zeros_are_told_from_other_observed_values() {
        let zeros = "  Expected: 0 255 0 255\n  Observed: 0 0 0 0\n  Observed: 0.000000 0.000000 0.000000\n";
        assert!(observed_zeros(zeros));
        assert!(!observed_zeros(&format!("{zeros}  Observed: 0.000000 0.501961 0.000000\n")));
        assert!(!observed_zeros("Expected: 0 0 0 0"), "nothing is observed");
    }

    #[test]
    fn what_the_chip_said_comes_first() {
        let text = "Mesa: error\nreconverge: draw 3: pixel shader: trap at 4\n";
        assert_eq!(why(text, Exit::Signal(6)), "draw 3: pixel shader: trap at 4");
        assert_eq!(why("Mesa: error", Exit::Signal(6)), "ended by signal 6");
    }

    #[test]
    fn what_is_not_known_is_counted_once_a_process() {
        let text = "{\"unknown\": {\"packet 0x34\": 2}}\n{\"unknown\": {\"packet 0x34\": 5}}\ncut off {";
        assert_eq!(named(text, "unknown"), BTreeMap::from([("packet 0x34".to_owned(), 5)]));
        let mut sum = Reported::of(text);
        sum.add(Reported::of(text));
        assert_eq!(sum.unknown["packet 0x34"], 10);
    }
}
