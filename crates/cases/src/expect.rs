//! Compares the results of lanes with the expected results. (Corpus description, "Expectation")

use reconverge_workbench::result::Differences;
use serde::Deserialize;

use crate::hex::Quad;

/// The interpretation of the four output words of a lane.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Out {
    /// Floats. -0 equals +0.
    #[default]
    Float,
    /// Words that must be equal bit for bit.
    Int,
}

/// The expected results of a run.
#[derive(Clone, Debug, Default, Deserialize)]
pub struct Expectation {
    /// One entry per lane. If an entry is `null`, the program must discard the lane.
    pub expect: Option<Vec<Option<Quad>>>,
    /// Three or four expected components. Each component of the output is clamped to 0..1 and compared with the
    /// expected component. The difference must be at most 0.01.
    pub probe: Option<Vec<f32>>,
}

/// A component of the output may differ from the same component of the probe by at most this value.
const PROBE_TOLERANCE: f32 = 0.01;

impl Expectation {
    /// Compares the outputs of the lanes with the expected results. If the program discarded a lane, the lane's entry
    /// in `lanes` is `None`.
    ///
    /// # Errors
    /// Returns a description of the first difference.
    pub fn compare(&self, out: Out, lanes: &[Option<[u32; 4]>]) -> Result<(), String> {
        match (&self.expect, &self.probe) {
            (Some(expected), _) => compare_lanes(expected, out, lanes),
            (None, Some(probe)) => compare_probe(probe, lanes),
            (None, None) => Err("missing expectation in the case".to_owned()),
        }
    }
}

fn compare_lanes(expected: &[Option<Quad>], out: Out, lanes: &[Option<[u32; 4]>]) -> Result<(), String> {
    if expected.len() != lanes.len() {
        return Err(format!("expected {} lanes, found {}", expected.len(), lanes.len()));
    }
    let mut differences = Differences::default();
    for (lane, (expected, found)) in expected.iter().zip(lanes).enumerate() {
        match (expected, found) {
            (None, None) => {}
            (None, Some(_)) => differences.add(|| format!("lane {lane} must be discarded but wrote")),
            (Some(_), None) => differences.add(|| format!("lane {lane} must write but was discarded")),
            (Some(Quad(expected)), Some(found)) => {
                for (channel, (expected, found)) in expected.iter().zip(found).enumerate() {
                    if !same(out, *expected, *found) {
                        differences.add(|| {
                            let channel = ["x", "y", "z", "w"][channel];
                            format!(
                                "lane {lane} .{channel}: expected {}, found {}",
                                show(*expected),
                                show(*found)
                            )
                        });
                    }
                }
            }
        }
    }
    differences.sentence(4 * lanes.len(), "number").map_or(Ok(()), Err)
}

fn same(out: Out, expected: u32, found: u32) -> bool {
    let (x, y) = (f32::from_bits(expected), f32::from_bits(found));
    expected == found || (out == Out::Float && x == y)
}

fn compare_probe(probe: &[f32], lanes: &[Option<[u32; 4]>]) -> Result<(), String> {
    let mut differences = Differences::default();
    for (lane, found) in lanes.iter().enumerate() {
        let Some(found) = found else {
            differences.add(|| format!("lane {lane} was discarded"));
            continue;
        };
        for (channel, (expected, bits)) in probe.iter().zip(found).enumerate() {
            let value = f32::from_bits(*bits);
            let shown = if value.is_nan() { 0.0 } else { value.clamp(0.0, 1.0) };
            if (expected - shown).abs() > PROBE_TOLERANCE {
                let channel = ["x", "y", "z", "w"][channel];
                differences
                    .add(|| format!("lane {lane} .{channel}: probe {expected}, found {}", show(*bits)));
            }
        }
    }
    differences.sentence(probe.len() * lanes.len(), "number").map_or(Ok(()), Err)
}

/// Formats a word as bits and as a float.
fn show(bits: u32) -> String {
    format!("{bits:08x} ({})", f32::from_bits(bits))
}

#[cfg(test)]
mod tests {
    use super::*;

    const ONE: u32 = 0x3f80_0000;

    #[test]
    fn floats_compare_as_numbers_and_ints_as_bits() {
        let expectation = |words| Expectation { expect: Some(vec![Some(Quad(words))]), probe: None };
        let negative_zero = [0x8000_0000, ONE, 0, 0];
        assert!(expectation([0, ONE, 0, 0]).compare(Out::Float, &[Some(negative_zero)]).is_ok());
        assert!(expectation([0, ONE, 0, 0]).compare(Out::Int, &[Some(negative_zero)]).is_err());
        assert!(expectation([ONE; 4]).compare(Out::Float, &[Some([0; 4])]).is_err());
    }

    #[test]
    fn discarded_lanes_must_be_discarded() {
        let discard = Expectation { expect: Some(vec![None]), probe: None };
        assert!(discard.compare(Out::Float, &[None]).is_ok());
        assert!(discard.compare(Out::Float, &[Some([0; 4])]).is_err());
        let write = Expectation { expect: Some(vec![Some(Quad([0; 4]))]), probe: None };
        assert!(write.compare(Out::Float, &[None]).is_err());
    }

    #[test]
    fn probes_are_clamped_and_allow_a_hundredth() {
        let probe = Expectation { expect: None, probe: Some(vec![0.0, 1.0, 0.5]) };
        let words = [-3.0f32, 7.0, 0.509, 9.0].map(f32::to_bits);
        assert!(probe.compare(Out::Float, &[Some(words)]).is_ok());
        assert!(probe.compare(Out::Float, &[Some([0.0f32, 1.0, 0.52, 1.0].map(f32::to_bits))]).is_err());
    }

    #[test]
    fn a_case_without_expectation_cannot_pass() {
        assert!(Expectation::default().compare(Out::Float, &[]).is_err());
    }
}
