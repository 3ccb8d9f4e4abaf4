//! The campaign file, which is TOML. Error messages state the key and the line.

use reconverge_workbench::keys::complaint;
use serde::{Deserialize, Serialize};

use crate::filter::FaultFilter;
use crate::listed::ListedFault;
pub use crate::site::{Model, Site};

/// A campaign file.
#[derive(Clone, Debug, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub struct CampaignFile {
    /// Name of the launch file, which is in the folder of the campaign file.
    pub launch: Option<String>,
    /// Name of a kernel of `reconverge bench`. The campaign runs this kernel instead of a launch file.
    pub kernel: Option<String>,
    /// The machine that runs the kernel.
    pub isa: Option<String>,
    /// Number of lanes of `mandel` and `collatz` (default: 1,024). Other kernels have a fixed number of lanes.
    pub lanes: Option<u32>,
    /// The chip. This chip replaces the chip that the launch or the program states.
    pub chip: Option<String>,
    /// The mode, `strict` or `lenient`. This mode replaces the mode that the launch states.
    pub mode: Option<String>,
    /// Seed for the choice of steps, words and bits.
    #[serde(default)]
    pub seed: u64,
    /// Number of experiments per point, divided evenly among sites and models.
    pub injections: Option<u64>,
    /// Probability that a measured rate differs from the true rate by at most the margin (default: 0.95).
    pub confidence: Option<f64>,
    /// Maximum error of the rate of an outcome at a site. This field is an alternative to `injections`. The margin
    /// determines the number of experiments.
    pub margin: Option<f64>,
    /// Sites of faults (default: all sites that the program has).
    pub sites: Option<Vec<Site>>,
    /// Fault models (default: single flips).
    #[serde(default = "one_flip")]
    pub models: Vec<Model>,
    /// Number of bits that flip with the model `bits`.
    pub bits: Option<u32>,
    /// Restricts the faults to some instructions, registers, lanes and groups.
    #[serde(default)]
    pub filter: FaultFilter,
    /// Faults that the campaign file states one by one. These faults replace `injections`.
    #[serde(default)]
    pub fault: Vec<ListedFault>,
    /// Name of a file with a list of faults. The file is a CSV file, or a Parquet file of results. The file is in the
    /// folder of the campaign file.
    pub faults: Option<String>,
    /// Limit on the number of instructions that a group issues. The limit is a multiple of the number of instructions
    /// that the longest group of the golden run issues. A group that reaches the limit is treated as hanging.
    #[serde(default = "ten")]
    pub fuel: f64,
    /// Number of experiments per shard.
    #[serde(default = "shard")]
    pub shard: u64,
    /// Keys of the launch file, or the keys `lanes`, `chip` and `mode`. Each key has a list of values. Every
    /// combination of these values is a point.
    #[serde(default)]
    pub sweep: toml::Table,
}

fn one_flip() -> Vec<Model> {
    vec![Model::Flip]
}

const fn ten() -> f64 {
    10.
}

const fn shard() -> u64 {
    5000
}

/// Maximum number of experiments in a campaign. A double can represent every number up to this maximum exactly.
pub const MOST_INJECTIONS: u64 = 1 << 40;

impl CampaignFile {
    /// Reads a campaign file.
    ///
    /// # Errors
    /// Returns the problem. The message states the line, the key, and the values that are allowed.
    pub fn parse(text: &str) -> Result<CampaignFile, String> {
        let file: CampaignFile = toml::from_str(text).map_err(|error| unreadable(&error, text))?;
        let line = |key: &str| {
            let has = |line: &str| line.split('=').next().is_some_and(|name| name.trim() == key);
            let line = text.lines().position(has).map_or(0, |line| line + 1);
            if line == 0 { key.to_owned() } else { format!("line {line}, {key}") }
        };
        let wrong = |key: &str, why: String| Err(format!("{}: {why}", line(key)));
        match (&file.launch, &file.kernel) {
            (Some(_), Some(_)) => {
                return wrong("kernel", "expected a launch file or a kernel, found both".to_owned());
            }
            (None, None) => {
                let why = "missing launch; add launch = \"FILE.toml\", or kernel and isa";
                return Err(why.to_owned());
            }
            (None, Some(_)) if file.isa.is_none() => {
                return wrong(
                    "kernel",
                    "missing machine; add isa = \"r500\", \"r700\" or \"tesla\"".to_owned(),
                );
            }
            (Some(_), None) => {
                for (key, given) in [("isa", file.isa.is_some()), ("lanes", file.lanes.is_some())] {
                    if given {
                        return wrong(
                            key,
                            "allowed only with `kernel`; the launch file already states it".to_owned(),
                        );
                    }
                }
            }
            (None, Some(_)) => {}
        }
        let listed = !file.fault.is_empty() || file.faults.is_some();
        if listed {
            let given = [
                ("injections", file.injections.is_some()),
                ("margin", file.margin.is_some()),
                ("sites", file.sites.is_some()),
                ("filter", !file.filter.is_empty()),
            ];
            if let Some((key, _)) = given.iter().find(|(_, given)| *given) {
                return wrong(
                    key,
                    "not allowed with a list of faults, which states every experiment".to_owned(),
                );
            }
        }
        match file.bits {
            Some(bits) if !(1..=64).contains(&bits) => {
                return wrong("bits", format!("{bits}: expected 1 to 64"));
            }
            None if file.models.contains(&Model::Bits) => {
                return wrong(
                    "models",
                    "missing number of bits for the model `bits`; add bits = 3".to_owned(),
                );
            }
            Some(_) if !listed && !file.models.contains(&Model::Bits) => {
                return wrong(
                    "bits",
                    "this key is only for the model `bits`; add the model to `models`".to_owned(),
                );
            }
            _ => {}
        }
        match (file.injections, file.margin) {
            (Some(_), Some(_)) => {
                return wrong("margin", "expected injections or a margin, found both".to_owned());
            }
            (None, None) if file.sweep.is_empty() && !listed => {
                let why = "missing number of experiments; add injections = 10000, margin = 0.01, or [[fault]] for each";
                return Err(why.to_owned());
            }
            (Some(injections), _) if injections > MOST_INJECTIONS => {
                return wrong("injections", format!("{injections}: expected 0 to {MOST_INJECTIONS}"));
            }
            _ => {}
        }
        let inside = |key: &str, value: Option<f64>| match value {
            Some(value) if !(value > 0. && value < 1.) => {
                Err(format!("{}: {value}: expected a number between 0 and 1", line(key)))
            }
            _ => Ok(()),
        };
        inside("confidence", file.confidence)?;
        inside("margin", file.margin)?;
        if file.margin.is_some_and(|margin| margin < 1e-5) {
            return wrong(
                "margin",
                "expected at least 0.00001; a smaller margin needs too many experiments".to_owned(),
            );
        }
        if !(1. ..=1e6).contains(&file.fuel) {
            return wrong("fuel", format!("{}: expected 1 to 1000000", file.fuel));
        }
        if !(1..=10_000_000).contains(&file.shard) {
            return wrong("shard", format!("{}: expected 1 to 10000000 experiments", file.shard));
        }
        let twice = |len: usize, distinct: usize| len != distinct || len == 0;
        let sites = file.sites.clone().unwrap_or_else(|| Site::all().collect());
        if twice(sites.len(), sites.iter().collect::<std::collections::BTreeSet<_>>().len()) {
            return wrong("sites", "expected at least one entry, and no duplicates".to_owned());
        }
        if twice(file.models.len(), file.models.iter().collect::<std::collections::BTreeSet<_>>().len()) {
            return wrong("models", "expected at least one entry, and no duplicates".to_owned());
        }
        for (key, values) in &file.sweep {
            if values.as_array().is_none_or(|values| values.is_empty()) {
                return wrong(key, "expected a list of values for a sweep, such as [1, 2]".to_owned());
            }
        }
        Ok(file)
    }
}

/// Returns the message about a text that is not a valid campaign file. The message states the line of the key, and the
/// problem.
fn unreadable(error: &toml::de::Error, text: &str) -> String {
    let Some(span) = error.span() else { return error.message().trim_end().to_owned() };
    let line = text.get(..span.start).map_or(1, |before| before.matches('\n').count() + 1);
    format!("line {line}: {}", complaint(error.message(), &[]))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_wrong_is_named_with_its_line_and_what_would_fit() {
        let wrong = |text: &str| CampaignFile::parse(text).unwrap_err();
        let kernel = "kernel = \"mandel\"\nisa = \"r500\"\ninjections = 10\n";
        assert!(CampaignFile::parse(kernel).is_ok());
        let site = wrong(&format!("{kernel}sites = [\"registers\"]\n"));
        assert!(
            site.contains("line 4") && site.contains("unknown site `registers`: did you mean `register`?"),
            "{site}"
        );
        let model = wrong(&format!("{kernel}models = [\"twist\"]\n"));
        assert!(model.contains("flip, double, random, zero, warp-wide"), "{model}");
        let field = wrong(&format!("{kernel}sheds = 1\n"));
        assert!(
            field.starts_with("line 4: unknown key `sheds`: ") && field.contains("the keys are bits, chip, "),
            "{field}"
        );
        let near = wrong(&format!("{kernel}shards = 1\n"));
        assert!(near.starts_with("line 4: unknown key `shards`: did you mean `shard`?"), "{near}");
        assert_eq!(
            wrong(&format!("{kernel}models = [\"bits\"]\n")),
            "line 4, models: missing number of bits for the model `bits`; add bits = 3"
        );
        assert!(
            wrong(&format!("{kernel}[[fault]]\nsite = \"register\"\n")).starts_with("line 3, injections")
        );
        assert_eq!(wrong(&format!("{kernel}fuel = 0.5\n")), "line 4, fuel: 0.5: expected 1 to 1000000");
        assert_eq!(
            wrong(&format!("{kernel}margin = 0.5\n")),
            "line 4, margin: expected injections or a margin, found both"
        );
        assert!(wrong("injections = 1\n").contains("missing launch"));
        assert!(
            wrong("kernel = \"mandel\"\ninjections = 1\n").starts_with("line 1, kernel: missing machine")
        );
        assert!(wrong("launch = \"a\"\n").contains("missing number of experiments"));
        assert!(
            wrong(&format!("{kernel}models = []\n")).starts_with("line 4, models: expected at least one")
        );
        assert!(
            wrong(&format!("{kernel}[sweep]\nlanes = 4\n"))
                .starts_with("line 5, lanes: expected a list of values")
        );
    }
}
