//! `results.csv` and `control.csv`: lines `NAME,STATUS,SECONDS`, each written when its test has ended.

use std::collections::HashMap;
use std::fs::{self, File, OpenOptions};
use std::io::Write;
use std::path::Path;

use anyhow::{Context, Result};

use super::outcome::{Outcome, Status};
use crate::shown::{listed, unlisted};

/// A list of outcomes.
#[derive(Default)]
pub(super) struct List {
    /// The outcomes of an earlier run, by the names of their tests.
    pub(super) before: HashMap<String, Outcome>,
    file: Option<File>,
}

impl List {
    /// Opens a list; one that is not to be resumed is empty.
    pub(super) fn open(path: &Path, resume: bool) -> Result<List> {
        let before = if resume { earlier(path)? } else { HashMap::new() };
        let mut options = OpenOptions::new();
        options.create(true).append(resume).write(true).truncate(!resume);
        let file = options.open(path).with_context(|| crate::shown::path(&path))?;
        Ok(List { before, file: Some(file) })
    }

    /// Adds the outcome of a test.
    pub(super) fn add(&mut self, name: &str, outcome: &Outcome) -> Result<()> {
        if let Some(file) = &mut self.file {
            writeln!(file, "{},{},{:.3}", listed(name), outcome.status.name(), outcome.seconds)?;
        }
        Ok(())
    }
}

/// The outcomes in a list of an earlier run; a line that was cut off is not one.
fn earlier(path: &Path) -> Result<HashMap<String, Outcome>> {
    let text = text_of(path)?;
    let whole = text.lines().filter_map(|line| {
        let (rest, seconds) = line.rsplit_once(',')?;
        let (name, status) = rest.rsplit_once(',')?;
        let status = Status::ALL.into_iter().find(|known| known.name() == status)?;
        Some((unlisted(name), Outcome { status, seconds: seconds.parse().ok()?, why: String::new() }))
    });
    Ok(whole.collect())
}

/// The text of a file; an empty one if there is no file.
pub(super) fn text_of(path: &Path) -> Result<String> {
    match fs::read_to_string(path) {
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(String::new()),
        read => read.with_context(|| crate::shown::path(&path)),
    }
}
