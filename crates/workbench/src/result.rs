//! What a run gives back, whatever the machine.

use reconverge_simt::fidelity::Report;
use reconverge_simt::{Shares, Statistics};
use serde::Deserialize;

use crate::array::{Array, Dtype};
use crate::session::Outcome;
use crate::values::{Files, Values, ValuesError};

/// What must come out of a run.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Expected {
    /// Name of the output.
    pub output: String,
    /// The numbers.
    pub values: Values,
    /// Largest absolute difference; without it and `rel`, bits must be equal (-0 equals +0).
    #[serde(default)]
    pub abs: f64,
    /// Largest difference relative to the expected number.
    #[serde(default)]
    pub rel: f64,
}

/// What a run gives.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct RunResult {
    /// Arrays by name.
    pub outputs: Vec<(String, Array)>,
    /// Counts.
    pub statistics: Statistics,
    /// What was executed, and how exact it was.
    pub report: Report,
    /// The fast engine's instructions by path, after a run in lockstep.
    pub shares: Shares,
    /// What strict mode objects to in how the program ended.
    pub findings: Vec<String>,
    /// Expectations that were not met, in words.
    pub mismatches: Vec<String>,
}

impl RunResult {
    /// What a run leaves, before anything is compared.
    pub fn of(outcome: &dyn Outcome) -> RunResult {
        let (statistics, report) = (outcome.statistics(), outcome.report().clone());
        let findings = outcome.finding().into_iter().collect();
        RunResult {
            outputs: outcome.outputs(),
            statistics,
            report,
            shares: outcome.shares(),
            findings,
            mismatches: Vec::new(),
        }
    }

    /// Compares an output with what must come out; a difference is added to the mismatches.
    ///
    /// # Errors
    /// The expected numbers cannot be had.
    pub fn compare(&mut self, expected: &Expected, files: &dyn Files) -> Result<(), ValuesError> {
        let place = format!("expect {}", expected.output);
        let Some((_, found)) = self.outputs.iter().find(|(name, _)| *name == expected.output) else {
            let names: Vec<&str> = self.outputs.iter().map(|(name, _)| name.as_str()).collect();
            self.mismatches.push(format!("{place}: there is no such output; there is {}", names.join(", ")));
            return Ok(());
        };
        let wanted = expected.values.load_as(&place, found.dtype, files)?;
        if let Some(why) = difference(&wanted, found, expected.abs, expected.rel) {
            self.mismatches.push(format!("{place}: {why}"));
        }
        Ok(())
    }
}

pub(crate) fn difference(wanted: &Array, found: &Array, abs: f64, rel: f64) -> Option<String> {
    if wanted.len() != found.len() {
        return Some(format!("{} elements expected, {} found", wanted.len(), found.len()));
    }
    let as_f64 = |array: &Array| array.convert(Dtype::F64).map(|array| array.bytes).unwrap_or_default();
    let (w, f) = (as_f64(wanted), as_f64(found));
    let pairs = w.as_chunks::<8>().0.iter().zip(f.as_chunks::<8>().0);
    for (index, (wanted, found)) in pairs.enumerate() {
        let (wanted, found) = (f64::from_le_bytes(*wanted), f64::from_le_bytes(*found));
        let same = wanted == found
            || (wanted.is_nan() && found.is_nan())
            || (found - wanted).abs() <= abs + rel * wanted.abs();
        if !same {
            return Some(format!("element {index}: expected {wanted}, found {found}"));
        }
    }
    None
}
