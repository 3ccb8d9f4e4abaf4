//! Verdicts added up.

use std::collections::BTreeMap;

use reconverge_simt::{Path, Shares};
use serde::Serialize;

use crate::{Case, Verdict};

/// A case and what came of it.
#[derive(Clone, Debug, Serialize)]
pub struct Outcome {
    /// The file.
    pub file: String,
    /// The case.
    pub name: String,
    /// The verdict in words; empty for a plain pass.
    pub why: String,
}

impl Outcome {
    /// File and case; the file alone where the case has its name.
    pub fn place(&self) -> String {
        match self.file.rsplit(['/', '\\']).next() == Some(&self.name) {
            true => self.file.clone(),
            false => format!("{} {}", self.file, self.name),
        }
    }
}

/// All verdicts of a check.
#[derive(Clone, Debug, Default, Serialize)]
pub struct Summary {
    /// All cases, passed or not; skipped ones included.
    pub cases: usize,
    /// As expected.
    pub passed: usize,
    /// Not as expected.
    pub failed: usize,
    /// Need something that is not implemented.
    pub unsupported: usize,
    /// Nothing to compare.
    pub skipped: usize,
    /// The failed and the unsupported ones.
    pub failures: Vec<Outcome>,
    /// Passed, but a strict reading objects.
    pub findings: Vec<Outcome>,
    /// Why something was skipped, once a file.
    pub skips: Vec<Outcome>,
    /// After a check in lockstep, the fast engine's instructions by path.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub paths: BTreeMap<&'static str, u64>,
}

impl Summary {
    /// Sets the fast engine's instructions by path.
    pub fn set_paths(&mut self, shares: &Shares) {
        let ran = Path::ALL.into_iter().filter(|path| shares.of(*path) > 0);
        self.paths = ran.map(|path| (path.name(), shares.of(path))).collect();
    }

    /// Adds one verdict.
    pub fn add(&mut self, case: &Case, verdict: Verdict) {
        let outcome = |why| Outcome { file: case.file.clone(), name: case.name.clone(), why };
        self.cases += 1;
        match verdict {
            Verdict::Passed { findings } => {
                self.passed += 1;
                self.findings.extend(findings.into_iter().map(outcome));
            }
            Verdict::Failed(why) => {
                self.failed += 1;
                self.failures.push(outcome(why));
            }
            Verdict::Unsupported(why) => {
                self.unsupported += 1;
                self.failures.push(outcome(format!("unsupported: {why}")));
            }
            Verdict::Skipped(why) => {
                self.skipped += 1;
                if !self.skips.iter().any(|skip| skip.file == case.file && skip.why == why) {
                    self.skips.push(outcome(why));
                }
            }
        }
    }

    /// Whether the answer is yes: nothing failed and nothing was unsupported.
    pub fn is_good(&self) -> bool {
        self.failed == 0 && self.unsupported == 0
    }
}
