//! The assertions of a file, and the comparison of two runs.

use std::collections::HashMap;

use serde::{Deserialize, Serialize};

reconverge_isa::choices! {
    /// Describes how the run of a file ended.
    #[derive(PartialOrd, Ord)]
    pub(super) enum FileEnd {
        /// The file reported its end.
        Done = "done",
        /// The file exceeded the timeout.
        Timeout = "timeout",
        /// The browser crashed, or the server ended the browser.
        Crash = "crash",
    }
}

/// An assertion of a file, as the page sent this assertion. The page sends equal assertions only once, together with
/// their number.
#[derive(Clone, Debug, Deserialize, PartialEq, Serialize)]
pub(super) struct Assertion {
    pub(super) text: String,
    pub(super) holds: bool,
    /// Number of equal assertions. A file of the suite can have millions of equal assertions.
    pub(super) count: u64,
}

/// A failure of a file. Equal failures are listed only once, together with the number of these failures.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub(super) struct Failures<'a> {
    pub(super) text: &'a str,
    pub(super) count: u64,
}

/// The result of a file of the suite that ran.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct FileVerdict {
    pub(super) end: FileEnd,
    pub(super) assertions: Vec<Assertion>,
    pub(super) seconds: f64,
}

impl FileVerdict {
    /// Returns the assertions that failed. If the file did not end normally, the result also has a failure that
    /// describes the end of the file.
    fn failing(&self) -> impl Iterator<Item = Failures<'_>> {
        let end = (self.end != FileEnd::Done).then(|| Failures { text: self.end.name(), count: 1 });
        let failing = self.assertions.iter().filter(|assertion| !assertion.holds);
        failing.map(|Assertion { text, count, .. }| Failures { text, count: *count }).chain(end)
    }

    /// Returns the number of failures. Each failed assertion is a failure. An abnormal end of the file is also a
    /// failure.
    pub(super) fn failures(&self) -> u64 {
        self.failing().map(|failures| failures.count).sum()
    }

    /// Returns the number of assertions. An abnormal end of the file adds 1 to this number.
    pub(super) fn total(&self) -> u64 {
        let assertions: u64 = self.assertions.iter().map(|assertion| assertion.count).sum();
        assertions + u64::from(self.end != FileEnd::Done)
    }

    /// Returns the failures that the control does not have. If a failure occurs more often on the chip than in the
    /// control, the returned count is the difference between the two counts.
    pub(super) fn beyond<'a>(&'a self, control: &FileVerdict) -> Vec<Failures<'a>> {
        let there: HashMap<&str, u64> =
            control.failing().map(|failures| (failures.text, failures.count)).collect();
        let rest = self.failing().map(|Failures { text, count }| {
            let count = count.saturating_sub(there.get(text).copied().unwrap_or_default());
            Failures { text, count }
        });
        rest.filter(|failures| failures.count > 0).collect()
    }
}

#[cfg(test)]
mod unit {
    use super::*;

    fn verdict(end: FileEnd, failures: &[(&str, u64)]) -> FileVerdict {
        let assertion =
            |&(text, count): &(&str, u64)| Assertion { text: text.to_owned(), holds: false, count };
        FileVerdict { end, assertions: failures.iter().map(assertion).collect(), seconds: 0.0 }
    }

    #[test]
    fn failures_of_the_control_do_not_count() {
        let chip = verdict(FileEnd::Timeout, &[("a", 2), ("b", 1)]);
        let beyond = |end, failures: &[(&str, u64)]| {
            let control = verdict(end, failures);
            let rest = chip.beyond(&control);
            rest.iter().map(|Failures { text, count }| format!("{text} {count}")).collect::<Vec<_>>()
        };
        assert_eq!(beyond(FileEnd::Done, &[("a", 1)]), ["a 1", "b 1", "timeout 1"]);
        assert_eq!(beyond(FileEnd::Timeout, &[("b", 1), ("a", 3), ("c", 1)]), [""; 0]);
        assert_eq!((chip.total(), chip.failures()), (4, 4));
    }
}
