//! Fidelity of each executed instruction.

use litemap::LiteMap;

reconverge_isa::choices! {
    /// Grade of trust in a result, best first.
    #[derive(PartialOrd, Ord, Hash)]
    pub enum Fidelity {
        /// Equal to a hardware-validated model or to exact arithmetic.
        Exact = "exact",
        /// The value follows the documents and is not validated.
        Specified = "specified",
        /// The value is within a stated tolerance.
        Approximate = "approximate",
        /// The documents are silent; the value follows a recommended interpretation.
        Recommended = "recommended",
    }
}

/// Executed operations of a run: for each operation its fidelity and the number of issues.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Report {
    /// Worst fidelity and number of issues, by name of the operation.
    pub operations: LiteMap<&'static str, (Fidelity, u64)>,
}

impl Report {
    /// Counts `times` issues of `operation`. An operation seen with several grades keeps the worst.
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

    /// Returns the worst grade that occurred; `None` if nothing ran.
    pub fn worst(&self) -> Option<Fidelity> {
        self.operations.values().map(|(fidelity, _)| *fidelity).max()
    }
}
