//! Conditions on the counts of a run, as in `holds = "instructions <= 16"` of an `[[expect]]` table.

use std::fmt;

use litemap::LiteMap;
use reconverge_isa::source::suggest;
use serde::Deserialize;

use crate::result::Expected;
use crate::values::Values;

reconverge_isa::choices! {
    /// A count of a run. The command `stats` defines the counts.
    #[derive(PartialOrd, Ord, Hash)]
    pub enum RunCount {
        /// Number of instructions that were issued to groups.
        Instructions = "instructions",
        /// Number of active lanes, summed over all issued instructions.
        LaneInstructions = "lane_instructions",
        /// Number of branch decisions that split the lanes of a group.
        DivergentBranches = "divergent_branches",
        /// Average share of a group's lanes that are active, from 0 to 1.
        SimdEfficiency = "simd_efficiency",
        /// Maximum depth of any stack or counter of a group.
        StackHighWater = "stack_high_water",
        /// Number of groups that ran.
        Groups = "groups",
        /// Number of ALU instructions.
        Alu = "alu_instructions",
        /// Number of interpolation instructions.
        Interpolation = "interpolation_instructions",
        /// Number of texture instructions.
        Texture = "texture_instructions",
        /// Number of memory instructions.
        Memory = "memory_instructions",
        /// Number of output instructions.
        Output = "output_instructions",
        /// Number of flow-control instructions.
        Flow = "flow_instructions",
        /// Number of instructions of any other class.
        Other = "other_instructions",
        /// Number of memory requests by groups.
        MemoryRequests = "memory_requests",
        /// Number of memory transactions that serve the memory requests.
        MemoryTransactions = "memory_transactions",
        /// Number of bytes that the memory transactions transfer.
        BytesMoved = "bytes_moved",
        /// Number of bytes that the lanes requested.
        BytesWanted = "bytes_wanted",
        /// Number of additional shared-memory passes due to bank conflicts. The number is 0 if each request takes one
        /// pass.
        BankConflicts = "bank_conflicts",
    }
}

impl RunCount {
    /// Returns whether the count is available without observing the run.
    pub const fn is_plain(self) -> bool {
        matches!(self, RunCount::Instructions | RunCount::LaneInstructions | RunCount::DivergentBranches)
    }

    /// Returns whether the run's memory accesses must be observed to compute the count.
    pub const fn is_of_memory(self) -> bool {
        matches!(
            self,
            RunCount::MemoryRequests
                | RunCount::MemoryTransactions
                | RunCount::BytesMoved
                | RunCount::BytesWanted
                | RunCount::BankConflicts
        )
    }
}

/// The counts of a run. If the machine or the chip does not define a count, the count is absent.
pub type RunCounts = LiteMap<RunCount, f64>;

reconverge_isa::choices! {
    /// Comparison of a count with a number.
    enum Comparison {
        /// The count is at most the number.
        AtMost = "<=",
        /// The count is at least the number.
        AtLeast = ">=",
        /// The count equals the number.
        Equal = "==",
        /// The count differs from the number.
        Unequal = "!=",
        /// The count is below the number.
        Less = "<",
        /// The count is above the number.
        More = ">",
    }
}

/// A condition on a count.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct CountRule {
    /// The count that is compared.
    pub count: RunCount,
    comparison: Comparison,
    number: f64,
}

impl fmt::Display for CountRule {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {} {}", self.count, self.comparison, self.number)
    }
}

impl CountRule {
    /// Parses a condition such as `instructions <= 16`.
    ///
    /// # Errors
    /// Returns an error if the text does not have the form of a condition, or if the number is malformed. If the count
    /// is unknown, the error lists all counts.
    pub fn parse(text: &str) -> Result<CountRule, String> {
        let wrong = |why: String| format!("holds = \"{text}\": {why}");
        let form = || {
            wrong(
                "expected a count, one of <=, >=, ==, !=, <, > and a number: `instructions <= 16`".to_owned(),
            )
        };
        // If two signs match at one position, such as `<` and `<=`, the parser takes the longer sign.
        let (at, comparison) = Comparison::ALL
            .into_iter()
            .filter_map(|one| Some((text.find(one.name())?, one)))
            .min_by_key(|(at, one)| (*at, std::cmp::Reverse(one.name().len())))
            .ok_or_else(form)?;
        let (name, number) = (text[..at].trim(), text[at + comparison.name().len()..].trim());
        let found = RunCount::ALL.into_iter().find(|count| count.name() == name);
        let count = found.ok_or_else(|| {
            wrong(format!("unknown count `{name}`: {}", suggest(name, RunCount::ALL.map(RunCount::name))))
        })?;
        let parsed = number.replace('_', "").parse::<f64>().ok().filter(|number| number.is_finite());
        let number = parsed.ok_or_else(|| wrong(format!("expected a number, found `{number}`")))?;
        Ok(CountRule { count, comparison, number })
    }

    /// Returns whether a number meets the condition.
    pub fn fits(&self, found: f64) -> bool {
        match self.comparison {
            Comparison::AtMost => found <= self.number,
            Comparison::AtLeast => found >= self.number,
            Comparison::Equal => found == self.number,
            Comparison::Unequal => found != self.number,
            Comparison::Less => found < self.number,
            Comparison::More => found > self.number,
        }
    }

    /// Checks the condition. Returns a sentence that states the count.
    ///
    /// # Errors
    /// If the condition is false or the count is absent, the error is a sentence that states the count.
    pub fn judge(&self, counts: &RunCounts) -> Result<String, String> {
        match counts.get(&self.count) {
            Some(found) if self.fits(*found) => {
                Ok(format!("{self}: holds, {} = {}", self.count, shown(*found)))
            }
            Some(found) => Err(format!("{self}: does not hold, {} = {}", self.count, shown(*found))),
            None => Err(format!("{self}: {} is not defined for this machine or chip", self.count)),
        }
    }
}

/// Formats a number with up to four decimals.
fn shown(number: f64) -> String {
    if number.fract() == 0. { number.to_string() } else { format!("{number:.4}") }
}

/// All `[[expect]]` tables of a launch file. The tables have expected outputs and conditions on counts.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(from = "Vec<OneExpect>")]
pub struct Expectations {
    /// The expected outputs.
    pub outputs: Vec<Expected>,
    /// The conditions on the counts of the run.
    pub holds: Vec<CountRule>,
}

impl Expectations {
    /// Returns whether the launch file does not state expectations.
    pub fn is_empty(&self) -> bool {
        self.outputs.is_empty() && self.holds.is_empty()
    }
}

impl<'a> IntoIterator for &'a Expectations {
    type Item = &'a Expected;
    type IntoIter = std::slice::Iter<'a, Expected>;

    fn into_iter(self) -> Self::IntoIter {
        self.outputs.iter()
    }
}

impl From<Vec<OneExpect>> for Expectations {
    fn from(list: Vec<OneExpect>) -> Expectations {
        let mut all = Expectations::default();
        for expectation in list {
            match expectation {
                OneExpect::Output(expected) => all.outputs.push(expected),
                OneExpect::Holds(condition) => all.holds.push(condition),
            }
        }
        all
    }
}

/// One `[[expect]]` table.
#[derive(Clone, Debug, Deserialize)]
#[serde(try_from = "ExpectFields")]
enum OneExpect {
    Output(Expected),
    Holds(CountRule),
}

/// The unchecked fields of an `[[expect]]` table.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct ExpectFields {
    output: Option<String>,
    values: Option<Values>,
    abs: Option<f64>,
    rel: Option<f64>,
    holds: Option<String>,
}

impl TryFrom<ExpectFields> for OneExpect {
    type Error = String;

    fn try_from(fields: ExpectFields) -> Result<OneExpect, String> {
        match fields {
            ExpectFields { output: Some(output), values: Some(values), abs, rel, holds: None } => {
                let (abs, rel) = (abs.unwrap_or(0.), rel.unwrap_or(0.));
                for (name, tolerance) in [("abs", abs), ("rel", rel)] {
                    if !(0. ..f64::INFINITY).contains(&tolerance) {
                        return Err(format!("{name}: {tolerance}: expected a finite number, 0 or more"));
                    }
                }
                Ok(OneExpect::Output(Expected { output, values, abs, rel }))
            }
            ExpectFields { output: None, values: None, abs: None, rel: None, holds: Some(text) } => {
                CountRule::parse(&text).map(OneExpect::Holds)
            }
            ExpectFields { holds: Some(_), .. } => {
                Err("holds excludes output and values; give output and values in another [[expect]]"
                    .to_owned())
            }
            ExpectFields { output: Some(_), values: None, .. } => Err("missing `values`".to_owned()),
            ExpectFields { output: None, values: Some(_), .. } => Err("missing `output`".to_owned()),
            _ => Err("expected either output and values, or holds".to_owned()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_condition_is_a_count_a_sign_and_a_number() {
        for (text, holds, fails) in [
            ("instructions <= 16", 16., 17.),
            ("simd_efficiency>=0.9", 0.9, 0.89),
            ("divergent_branches == 0", 0., 1.),
            ("groups != 2", 3., 2.),
            ("lane_instructions < 1_000", 999., 1000.),
            ("bytes_moved > 64", 65., 64.),
        ] {
            let condition = CountRule::parse(text).unwrap();
            assert!(condition.fits(holds) && !condition.fits(fails), "{text}");
            assert_eq!(CountRule::parse(&condition.to_string()), Ok(condition));
        }
    }

    #[test]
    fn a_wrong_condition_says_what_would_fit() {
        let wrong = |text: &str| CountRule::parse(text).unwrap_err();
        assert!(wrong("instuctions <= 16").contains(
            "unknown count `instuctions`: did you mean `instructions`? expected one of instructions, lane_instructions"
        ));
        assert!(wrong("instructions = 16").contains("expected a count, one of <=, >="));
        assert!(wrong("instructions <= many").contains("expected a number, found `many`"));
    }

    #[test]
    fn an_expectation_is_an_output_or_a_condition() {
        let read = |text: &str| {
            toml::from_str::<toml::Table>(text).unwrap()["expect"].clone().try_into::<Expectations>()
        };
        let both =
            read("[[expect]]\noutput = \"a\"\nvalues = [1]\n[[expect]]\nholds = \"groups <= 1\"\n").unwrap();
        assert_eq!((both.outputs.len(), both.holds.len(), both.is_empty()), (1, 1, false));
        for (text, why) in [
            ("[[expect]]\noutput = \"a\"\n", "missing `values`"),
            ("[[expect]]\noutput = \"a\"\nvalues = [1]\nholds = \"groups <= 1\"\n", "holds excludes output"),
            ("[[expect]]\nabs = 1.0\n", "expected either output and values, or holds"),
            ("[[expect]]\noutput = \"a\"\nvalues = [1]\nabs = inf\n", "abs: inf: expected a finite number"),
            ("[[expect]]\noutput = \"a\"\nvalues = [1]\nrel = -1.0\n", "rel: -1: expected a finite number"),
            ("[[expect]]\noutput = \"a\"\nvalues = [1]\nabs = nan\n", "abs: NaN: expected a finite number"),
        ] {
            assert!(read(text).unwrap_err().to_string().contains(why), "{text}");
        }
    }
}
