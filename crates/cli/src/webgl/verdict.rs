//! The assertions of a file, and the comparison of two runs.

use std::collections::HashMap;

use serde::{Deserialize, Serialize};

reconverge_isa::choices! {
    /// The end of a file.
    #[derive(PartialOrd, Ord)]
    pub(super) enum FileEnd {
        /// The file said that it is done.
        Done = "done",
        /// The file exceeded the timeout.
        Timeout = "timeout",
        /// The browser ended.
        Crash = "crash",
    }
}

/// An assertion of a file, as the page sends it.
#[derive(Clone, Debug, Deserialize, PartialEq, Serialize)]
pub(super) struct Assertion {
    pub(super) text: String,
    pub(super) holds: bool,
}

/// A file that ran.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct FileVerdict {
    pub(super) end: FileEnd,
    pub(super) assertions: Vec<Assertion>,
    pub(super) seconds: f64,
}

impl FileVerdict {
    /// Returns the texts of the assertions that do not hold, and one more text if the file did not end by itself.
    pub(super) fn failures(&self) -> impl Iterator<Item = &str> {
        let end = (self.end != FileEnd::Done).then(|| self.end.name());
        self.assertions
            .iter()
            .filter(|assertion| !assertion.holds)
            .map(|assertion| &*assertion.text)
            .chain(end)
    }

    /// Number of assertions, and of the end where it is a failure.
    pub(super) fn total(&self) -> usize {
        self.assertions.len() + usize::from(self.end != FileEnd::Done)
    }

    /// Returns the failures that the control does not have. If a text is there more often than in the control, the rest of them counts.
    pub(super) fn beyond<'a>(&'a self, control: &FileVerdict) -> Vec<&'a str> {
        let mut there: HashMap<&str, usize> = HashMap::new();
        control.failures().for_each(|text| *there.entry(text).or_default() += 1);
        self.failures()
            .filter(|text| match there.get_mut(text) {
                Some(left @ 1..) => {
                    *left -= 1;
                    false
                }
                _ => true,
            })
            .collect()
    }
}

#[cfg(test)]
mod unit {
    use super::*;

    fn verdict(end: FileEnd, failures: &[&str]) -> FileVerdict {
        let assertion = |text: &&str| Assertion { text: (*text).to_owned(), holds: false };
        FileVerdict { end, assertions: failures.iter().map(assertion).collect(), seconds: 0.0 }
    }

    #[test]
    fn failures_of_the_control_do_not_count() {
        let chip = verdict(FileEnd::Timeout, &["a", "a", "b"]);
        assert_eq!(chip.beyond(&verdict(FileEnd::Done, &["a"])), ["a", "b", "timeout"]);
        assert_eq!(chip.beyond(&verdict(FileEnd::Timeout, &["b", "a", "a", "c"])), [""; 0]);
        assert_eq!(chip.total(), 4);
    }
}
