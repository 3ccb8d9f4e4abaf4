//! Verdicts added up.

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

/// All verdicts of a check.
#[derive(Clone, Debug, Default, Serialize)]
pub struct Summary {
    /// Everything judged, passed or not; skipped ones included.
    pub cases: usize,
    /// As expected.
    pub passed: usize,
    /// Not as expected.
    pub failed: usize,
    /// Need something that is not implemented.
    pub unsupported: usize,
    /// Nothing to judge.
    pub skipped: usize,
    /// The failed and the unsupported ones.
    pub failures: Vec<Outcome>,
    /// Passed, but a strict reading objects.
    pub findings: Vec<Outcome>,
    /// Why something was skipped, once a file.
    pub skips: Vec<Outcome>,
}

impl Summary {
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
