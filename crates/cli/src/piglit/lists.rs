//! The lists `results.csv` and `control.csv`. Lines of these lists have the form `NAME,STATUS,SECONDS`. The line of a
//! test is written when the test ends.
//!
//! The lines of the subtests precede the line of the test. In the line of a subtest, the name is `TEST@SUBTEST`, and
//! the number of seconds is `0.000`.

use std::collections::{HashMap, HashSet};
use std::fmt::Write as _;
use std::fs::{self, File, OpenOptions};
use std::io::Write;
use std::path::Path;

use anyhow::{Context, Result};

use super::outcome::{Outcome, Status};
use crate::shown::{listed, unlisted};

/// A list of outcomes.
#[derive(Default)]
pub(super) struct List {
    /// The outcomes of an earlier run, by test name.
    pub(super) before: HashMap<String, Outcome>,
    file: Option<File>,
}

impl List {
    /// Opens a list. If `resume` is false, the list starts empty. `tests` contains the names of all tests. With these
    /// names, the function distinguishes tests from subtests.
    pub(super) fn open(path: &Path, resume: bool, tests: &HashSet<String>) -> Result<List> {
        let before = if resume { earlier(&text_of(path)?, tests) } else { HashMap::new() };
        let mut options = OpenOptions::new();
        options.create(true).append(resume).write(true).truncate(!resume);
        let file = options.open(path).with_context(|| crate::shown::path(&path))?;
        Ok(List { before, file: Some(file) })
    }

    /// Adds the outcome of a test.
    pub(super) fn add(&mut self, name: &str, outcome: &Outcome) -> Result<()> {
        if let Some(file) = &mut self.file {
            // One call writes all lines of a test and of the subtests. So if the run is killed, the file contains
            // either all of these lines or none of these lines.
            file.write_all(lines(name, outcome).as_bytes())?;
        }
        Ok(())
    }
}

/// Returns the lines of a test and its subtests.
fn lines(name: &str, outcome: &Outcome) -> String {
    let name = listed(name);
    let mut lines = String::new();
    for (subtest, status) in &outcome.subtests {
        let _ = writeln!(lines, "{name}@{},{},0.000", listed(subtest), status.name());
    }
    let _ = writeln!(lines, "{name},{},{:.3}", outcome.status.name(), outcome.seconds);
    lines
}

/// Returns the outcomes in the list of an earlier run. A truncated line is ignored.
fn earlier(text: &str, tests: &HashSet<String>) -> HashMap<String, Outcome> {
    let (mut found, mut subtests) = (HashMap::new(), Vec::new());
    for line in text.lines() {
        let Some((rest, seconds)) = line.rsplit_once(',') else { continue };
        let Some((entry, status)) = rest.rsplit_once(',') else { continue };
        let status = Status::ALL.into_iter().find(|known| known.name() == status);
        let (Some(status), Ok(seconds)) = (status, seconds.parse()) else { continue };
        let name = unlisted(entry);
        if !tests.contains(&name) {
            subtests.push((name, status));
            continue;
        }
        let mut outcome = Outcome::plain(status, seconds);
        for (subtest, status) in subtests.drain(..) {
            if let Some(subtest) = subtest.strip_prefix(&name).and_then(|rest| rest.strip_prefix('@')) {
                outcome.subtests.push((subtest.to_owned(), status));
            }
        }
        found.insert(name, outcome);
    }
    found
}

/// Returns the text of a file, or an empty text if the file does not exist.
pub(super) fn text_of(path: &Path) -> Result<String> {
    match fs::read_to_string(path) {
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(String::new()),
        read => read.with_context(|| crate::shown::path(&path)),
    }
}

#[cfg(test)]
mod unit {
    use super::*;

    #[test]
    fn subtests_come_back_with_their_test() {
        let tests = HashSet::from(["a".to_owned(), "a@b".to_owned()]);
        let mut outcome = Outcome::plain(Status::Fail, 1.5);
        outcome.subtests = vec![("2D".to_owned(), Status::Fail), (" c@d".to_owned(), Status::Pass)];
        let other = Outcome::plain(Status::Pass, 0.25);
        let text = lines("a", &outcome) + &lines("a@b", &other);
        assert_eq!(text, "a@2D,Fail,0.000\na@\\u{20}c@d,Pass,0.000\na,Fail,1.500\na@b,Pass,0.250\n");
        let found = earlier(&text, &tests);
        assert_eq!((found["a"].status, &found["a"].subtests), (Status::Fail, &outcome.subtests));
        assert_eq!((found["a@b"].seconds, found["a@b"].subtests.len()), (0.25, 0));
    }

    #[test]
    fn a_list_that_was_truncated_has_the_tests_before() {
        let tests = HashSet::from(["a".to_owned(), "b".to_owned()]);
        let found = earlier("a,Pass,0.1\nb@2D,Fail,0.000\nb,Fai", &tests);
        assert_eq!(found.keys().collect::<Vec<_>>(), ["a"]);
        let found = earlier("b@2D,Fail,0.000\na,Pass,0.1\n", &tests);
        assert!(found["a"].subtests.is_empty(), "these are of a test that did not end");
    }
}
