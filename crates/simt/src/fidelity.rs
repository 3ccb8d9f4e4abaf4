//! Fidelity of each executed instruction.

use litemap::LiteMap;

reconverge_isa::choices! {
    /// How far a result can be trusted, best grade first.
    #[derive(PartialOrd, Ord, Hash)]
    pub enum Fidelity {
        /// The value equals the result of exact arithmetic, or the result of a model that was validated on hardware.
        Exact = "exact",
        /// The value follows the documents, but was not compared with hardware.
        Specified = "specified",
        /// The value is within a stated tolerance.
        Approximate = "approximate",
        /// The documents do not define the value. The value follows a recommended interpretation.
        Recommended = "recommended",
    }
}

/// The operations that a run executed. Each operation has a fidelity and a number of issues.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Report {
    /// For each operation's name, the worst fidelity of the operation's issues, and the number of these issues.
    pub operations: LiteMap<&'static str, (Fidelity, u64)>,
}

impl Report {
    /// Counts `times` issues of `operation`. If the issues of `operation` have different grades, the report keeps only
    /// the worst grade.
    pub fn count(&mut self, operation: &'static str, fidelity: Fidelity, times: u64) {
        if times > 0 {
            let entry = self.operations.entry(operation).or_insert((fidelity, 0));
            entry.0 = entry.0.max(fidelity);
            entry.1 += times;
        }
    }

    /// Adds the counts of another run.
    pub fn add(&mut self, other: &Report) {
        for (operation, (fidelity, times)) in &other.operations {
            self.count(operation, *fidelity, *times);
        }
    }

    /// Returns the worst grade that occurred, or `None` if no operation was executed.
    pub fn worst(&self) -> Option<Fidelity> {
        self.operations.values().map(|(fidelity, _)| *fidelity).max()
    }
}
