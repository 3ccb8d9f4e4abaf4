//! Results of a run, and the comparison of results with expected results.

use std::ops::Range;

use reconverge_simt::fidelity::Report;
use reconverge_simt::{Shares, Statistics};

use crate::array::{Array, Dtype};
use crate::session::Outcome;
use crate::values::{Files, Values, ValuesError};

/// Expected values of an output.
#[derive(Clone, Debug)]
pub struct Expected {
    /// Name of the output.
    pub output: String,
    /// The expected numbers.
    pub values: Values,
    /// Maximum absolute difference between a number and the expected number. If both `abs` and `rel` are 0, the bits
    /// must be equal. As an exception, -0 equals +0.
    pub abs: f64,
    /// Maximum difference between a number and the expected number, as a multiple of the expected number.
    pub rel: f64,
}

/// Results of a run.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct RunResult {
    /// The outputs with their names.
    pub outputs: Vec<(String, Array)>,
    /// Counts of instructions and divergences.
    pub statistics: Statistics,
    /// Report of the executed instructions and their exactness.
    pub report: Report,
    /// For each execution path of the fast engine, the number of instructions that ran on this path. The numbers are
    /// present only after a run in lockstep.
    pub shares: Shares,
    /// Problems that strict mode finds in the state at the program's end.
    pub findings: Vec<String>,
    /// Descriptions of the conditions on counts that the run met.
    pub held: Vec<String>,
    /// Descriptions of the expectations that the run did not meet.
    pub mismatches: Vec<String>,
}

impl RunResult {
    /// Returns the results of a run. These results have not been compared with expected results.
    pub fn of(outcome: &dyn Outcome) -> RunResult {
        let (statistics, report) = (outcome.statistics(), outcome.report().clone());
        let findings = outcome.finding().into_iter().collect();
        RunResult {
            outputs: outcome.outputs(),
            statistics,
            report,
            shares: outcome.shares(),
            findings,
            held: Vec::new(),
            mismatches: Vec::new(),
        }
    }

    /// Returns one byte per lane. The byte is nonzero if the lane was killed. Returns `None` if no lane was killed.
    pub fn killed(&self) -> Option<&[u8]> {
        let killed = self.outputs.iter().find(|(name, _)| name == KILLED);
        killed.map(|(_, array)| array.bytes.as_slice())
    }

    /// Compares an output with the expected numbers, and adds any difference to `mismatches`. If the launch runs only
    /// some of its lanes (`piece`), the function compares only the expected numbers of these lanes. If these lanes did
    /// not write the output, the expected numbers must be 0.
    ///
    /// # Errors
    /// Returns an error if the expected numbers cannot be loaded.
    pub fn compare(
        &mut self,
        expected: &Expected,
        piece: Option<(&Range<usize>, usize)>,
        files: &dyn Files,
    ) -> Result<(), ValuesError> {
        let place = format!("expect {}", expected.output);
        let Some((_, found)) = self.outputs.iter().find(|(name, _)| *name == expected.output) else {
            if let Some((lanes, all)) = piece {
                let wanted = expected.values.load(&place, files)?.array;
                if wanted.rows_of(lanes, all).bytes.iter().all(|byte| *byte == 0) {
                    return Ok(());
                }
            }
            let names: Vec<&str> = self.outputs.iter().map(|(name, _)| name.as_str()).collect();
            self.mismatches.push(format!("{place}: unknown output; expected one of {}", names.join(", ")));
            return Ok(());
        };
        let mut wanted = expected.values.load_as(&place, found.dtype, files)?;
        if let Some((lanes, all)) = piece {
            wanted = wanted.rows_of(lanes, all);
        }
        if let Some(why) = difference(&expected.output, &wanted, found, expected.abs, expected.rel) {
            self.mismatches.push(format!("{place}: {why}"));
        }
        Ok(())
    }
}

/// The differences between two sets of numbers. `Differences` has the number of differences, and descriptions of the
/// first differences.
#[derive(Clone, Debug, Default)]
pub struct Differences {
    count: usize,
    first: Vec<String>,
}

/// Maximum number of differences that are shown.
const SHOWN: usize = 3;

impl Differences {
    /// Adds a difference. `text` returns the description of the difference.
    pub fn add(&mut self, text: impl FnOnce() -> String) {
        self.count += 1;
        if self.first.len() < SHOWN {
            self.first.push(text());
        }
    }

    /// Returns a sentence about the differences. `of` is the number of compared numbers. Returns `None` if no numbers
    /// differ.
    pub fn sentence(&self, of: usize, what: &str) -> Option<String> {
        let differ = if self.count == 1 { "differs" } else { "differ" };
        (self.count > 0)
            .then(|| format!("{} of {of} {what}s {differ}: {}", self.count, self.first.join("; ")))
    }
}

/// Name of the output that marks the killed lanes.
pub(crate) const KILLED: &str = "killed";

/// Names of the outputs that have one row per lane. The name of an output can also be a name of this list followed by a
/// number, such as `color0`.
const BY_LANE: [&str; 9] = ["color", "depth", KILLED, "o", "others", "outputs", "param", "pixel", "pos"];

/// Describes the position of an element in an output: `lane 5 .x`, or `element 7`.
fn place(output: &str, array: &Array, index: usize) -> String {
    let kind = output.trim_end_matches(|letter: char| letter.is_ascii_digit());
    let letters = if kind == "color" { ["r", "g", "b", "a"] } else { ["x", "y", "z", "w"] };
    match (BY_LANE.contains(&kind), &array.shape[..]) {
        (true, [_]) => format!("lane {index}"),
        (true, [_, each]) if *each <= 4 => format!("lane {} .{}", index / each, letters[index % each]),
        (_, [_, ..]) if array.shape.len() > 1 => {
            let each = |(index, mut place): (usize, Vec<String>), side: &usize| {
                place.insert(0, (index % side.max(&1)).to_string());
                (index / side.max(&1), place)
            };
            let (_, place) = array.shape.iter().rev().fold((index, Vec::new()), each);
            format!("element [{}]", place.join(", "))
        }
        _ => format!("element {index}"),
    }
}

pub(crate) fn difference(output: &str, wanted: &Array, found: &Array, abs: f64, rel: f64) -> Option<String> {
    if wanted.len() != found.len() {
        return Some(format!("expected {} elements, found {}", wanted.len(), found.len()));
    }
    let as_f64 = |array: &Array| array.convert(Dtype::F64).map(|array| array.bytes).unwrap_or_default();
    let (w, f) = (as_f64(wanted), as_f64(found));
    let pairs = w.as_chunks::<8>().0.iter().zip(f.as_chunks::<8>().0);
    let mut differences = Differences::default();
    for (index, (wanted, found_bits)) in pairs.enumerate() {
        let (wanted, value) = (f64::from_le_bytes(*wanted), f64::from_le_bytes(*found_bits));
        let same = wanted == value
            || (wanted.is_nan() && value.is_nan())
            || (value - wanted).abs() <= abs + rel * wanted.abs();
        if !same {
            differences.add(|| format!("{}: expected {wanted}, found {value}", place(output, found, index)));
        }
    }
    differences.sentence(found.len(), "number")
}

/// Describes how the bits of two versions of an output differ. Returns `None` if the two versions are equal.
pub fn bits_that_differ(output: &str, wanted: &Array, found: &Array) -> Option<String> {
    if (wanted.dtype, wanted.len()) != (found.dtype, found.len()) {
        return Some(format!(
            "{output}: expected {} numbers of {}, found {} numbers of {}",
            wanted.len(),
            wanted.dtype,
            found.len(),
            found.dtype
        ));
    }
    let size = found.dtype.bytes();
    let mut differences = Differences::default();
    let pairs = wanted.bytes.chunks(size).zip(found.bytes.chunks(size)).enumerate();
    for (index, _) in pairs.filter(|(_, (wanted, found))| wanted != found) {
        differences.add(|| {
            format!(
                "{}: expected {}, found {}",
                place(output, found, index),
                wanted.text(index),
                found.text(index)
            )
        });
    }
    Some(format!("{output}: {}", differences.sentence(found.len(), "number")?))
}

/// Describes how the bits of two arrays of the same type differ. `first` is the byte offset of the first element. The
/// description uses this offset.
pub(crate) fn bit_difference(wanted: &Array, found: &Array, first: usize) -> Option<String> {
    let size = found.dtype.bytes();
    let mut differences = Differences::default();
    let pairs = wanted.bytes.chunks(size).zip(found.bytes.chunks(size));
    for (index, (wanted_bits, found_bits)) in pairs.enumerate().filter(|(_, (wanted, found))| wanted != found)
    {
        differences.add(|| {
            let hex = |bits: &[u8]| bits.iter().rev().map(|byte| format!("{byte:02x}")).collect::<String>();
            format!(
                "element {index} (byte {}): expected {} (0x{}), found {} (0x{})",
                first + index * size,
                wanted.text(index),
                hex(wanted_bits),
                found.text(index),
                hex(found_bits)
            )
        });
    }
    differences.sentence(found.len(), &format!("{} element", found.dtype))
}
