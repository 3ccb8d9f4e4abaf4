//! How exact each executed instruction was.

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
        /// Documents are silent; a recommended reading is followed.
        Recommended = "recommended",
    }
}

/// What a run executed: for each operation how exact it is and how often it was issued.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Report {
    /// By the operation's name.
    pub operations: LiteMap<&'static str, (Fidelity, u64)>,
}

impl Report {
    /// Counts `times` issues of `operation`; an operation seen with several grades keeps the worst.
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

    /// The worst grade that occurred; `None` when nothing ran.
    pub fn worst(&self) -> Option<Fidelity> {
        self.operations.values().map(|(fidelity, _)| *fidelity).max()
    }
}
