//! The campaign file: TOML, with messages that name key and line.

use std::fmt;

use reconverge_isa::Isa;
use reconverge_isa::source::closest;
use reconverge_workbench::faults::Kind;
use serde::{Deserialize, Deserializer, Serialize, Serializer, de};

/// What an experiment changes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Site {
    /// A general or address register that the program names.
    Register,
    /// A word of flow state.
    Flow(Kind),
    /// A 32-bit word of memory.
    Memory,
    /// A 32-bit word of the next instruction; on R700 of the next control-flow instruction and its clause.
    Instruction,
}

impl Site {
    /// All sites.
    pub fn all() -> impl Iterator<Item = Site> + Clone {
        let flow = Kind::ALL.into_iter().map(Site::Flow);
        std::iter::once(Site::Register).chain(flow).chain([Site::Memory, Site::Instruction])
    }

    /// Its name in campaign files and results.
    pub const fn name(self) -> &'static str {
        match self {
            Site::Register => "register",
            Site::Flow(kind) => kind.name(),
            Site::Memory => "memory",
            Site::Instruction => "instruction",
        }
    }

    /// The machines that have it.
    pub const fn machines(self) -> &'static [Isa] {
        match self {
            Site::Register | Site::Memory | Site::Instruction => &Isa::ALL,
            Site::Flow(kind) => kind.machines(),
        }
    }
}

impl Serialize for Site {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(self.name())
    }
}

reconverge_isa::choices! {
    /// Change of a fault to the bits of its site.
    #[derive(PartialOrd, Ord, Hash, Serialize)]
    #[serde(rename_all = "kebab-case")]
    pub enum Model {
        /// One bit flips.
        Flip = "flip",
        /// Two bits next to each other flip.
        Double = "double",
        /// At least one bit flips: the word becomes any other.
        Random = "random",
        /// The word becomes 0.
        Zero = "zero",
        /// The same bits flip in the same register of all lanes of the group.
        WarpWide = "warp-wide",
    }
}

/// Reads a name of a list, with a guess at what was meant.
fn named<'de, D: Deserializer<'de>, T: Copy>(
    deserializer: D,
    what: &str,
    all: impl Iterator<Item = T> + Clone,
    name: fn(T) -> &'static str,
) -> Result<T, D::Error> {
    let found = String::deserialize(deserializer)?;
    let names = || all.clone().map(name);
    all.clone().find(|one| name(*one) == found).ok_or_else(|| {
        let meant = closest(&found, names()).map(|meant| format!("did you mean `{meant}`? "));
        let list: Vec<&str> = names().collect();
        de::Error::custom(format!(
            "unknown {what} `{found}`: {}one of {} fits here",
            meant.unwrap_or_default(),
            list.join(", ")
        ))
    })
}

impl<'de> Deserialize<'de> for Site {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Site, D::Error> {
        named(deserializer, "site", Site::all(), Site::name)
    }
}

impl<'de> Deserialize<'de> for Model {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Model, D::Error> {
        named(deserializer, "fault model", Model::ALL.into_iter(), Model::name)
    }
}

impl fmt::Display for Site {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// A campaign file.
#[derive(Clone, Debug, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub struct CampaignFile {
    /// The launch file, beside this one.
    pub launch: Option<String>,
    /// Instead of a launch file: a kernel of `reconverge bench`, `mandel` or `collatz`.
    pub kernel: Option<String>,
    /// The machine that runs the kernel.
    pub isa: Option<String>,
    /// Lanes of the kernel; 1,024 when absent.
    pub lanes: Option<u32>,
    /// The chip, instead of the one that launch or program states.
    pub chip: Option<String>,
    /// `strict` or `lenient`, instead of what the launch states.
    pub mode: Option<String>,
    /// What chooses instants, places and bits.
    #[serde(default)]
    pub seed: u64,
    /// Experiments of each point, divided evenly among sites and models.
    pub injections: Option<u64>,
    /// How sure the rates are to be within the margin; 0.95 when absent.
    pub confidence: Option<f64>,
    /// Instead of a number of injections: how far the rate of an outcome at a site may be off.
    pub margin: Option<f64>,
    /// Where faults are; when absent, everywhere that the program has something.
    pub sites: Option<Vec<Site>>,
    /// What faults do; single flips when absent.
    #[serde(default = "one_flip")]
    pub models: Vec<Model>,
    /// A group that issues so many times the instructions of the longest group without a fault hangs.
    #[serde(default = "ten")]
    pub fuel: f64,
    /// Experiments of a shard.
    #[serde(default = "shard")]
    pub shard: u64,
    /// Keys of the launch file (or `lanes`, `chip`, `mode`), each with values: every combination is a point.
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

/// The most experiments of a campaign: indices are exact as doubles, too.
pub const MOST_INJECTIONS: u64 = 1 << 40;

impl CampaignFile {
    /// Reads a campaign file.
    ///
    /// # Errors
    /// What is wrong, with line, key and what would fit.
    pub fn parse(text: &str) -> Result<CampaignFile, String> {
        let file: CampaignFile =
            toml::from_str(text).map_err(|error| error.to_string().trim_end().to_owned())?;
        let line = |key: &str| {
            let has = |line: &str| line.split('=').next().is_some_and(|name| name.trim() == key);
            let line = text.lines().position(has).map_or(0, |line| line + 1);
            if line == 0 { key.to_owned() } else { format!("line {line}, {key}") }
        };
        let wrong = |key: &str, why: String| Err(format!("{}: {why}", line(key)));
        match (&file.launch, &file.kernel) {
            (Some(_), Some(_)) => {
                return wrong("kernel", "give a launch file or a kernel, not both".to_owned());
            }
            (None, None) => {
                let why = "the file names no launch: add launch = \"FILE.toml\", or kernel and isa";
                return Err(why.to_owned());
            }
            (None, Some(_)) if file.isa.is_none() => {
                return wrong("kernel", "add the machine: isa = \"r500\", \"r700\" or \"tesla\"".to_owned());
            }
            (Some(_), None) => {
                for (key, given) in [("isa", file.isa.is_some()), ("lanes", file.lanes.is_some())] {
                    if given {
                        return wrong(key, "only for a kernel; the launch file states it".to_owned());
                    }
                }
            }
            (None, Some(_)) => {}
        }
        match (file.injections, file.margin) {
            (Some(_), Some(_)) => return wrong("margin", "give injections or a margin, not both".to_owned()),
            (None, None) if file.sweep.is_empty() => {
                return Err("how many experiments? Add injections = 10000, or margin = 0.01".to_owned());
            }
            (Some(injections), _) if injections > MOST_INJECTIONS => {
                return wrong("injections", format!("{injections}: 0 to {MOST_INJECTIONS} fits here"));
            }
            _ => {}
        }
        let inside = |key: &str, value: Option<f64>| match value {
            Some(value) if !(value > 0. && value < 1.) => {
                Err(format!("{}: {value}: a number between 0 and 1 fits here", line(key)))
            }
            _ => Ok(()),
        };
        inside("confidence", file.confidence)?;
        inside("margin", file.margin)?;
        if file.margin.is_some_and(|margin| margin < 1e-5) {
            return wrong("margin", "less than 0.00001 takes too many experiments".to_owned());
        }
        if !(1. ..=1e6).contains(&file.fuel) {
            return wrong("fuel", format!("{}: 1 to 1000000 fits here", file.fuel));
        }
        if !(1..=10_000_000).contains(&file.shard) {
            return wrong("shard", format!("{}: 1 to 10000000 experiments fit here", file.shard));
        }
        let twice = |len: usize, distinct: usize| len != distinct || len == 0;
        let sites = file.sites.clone().unwrap_or_else(|| Site::all().collect());
        if twice(sites.len(), sites.iter().collect::<std::collections::BTreeSet<_>>().len()) {
            return wrong("sites", "at least one, each once".to_owned());
        }
        if twice(file.models.len(), file.models.iter().collect::<std::collections::BTreeSet<_>>().len()) {
            return wrong("models", "at least one, each once".to_owned());
        }
        for (key, values) in &file.sweep {
            if values.as_array().is_none_or(|values| values.is_empty()) {
                return wrong(key, "a sweep is over a list of values, such as [1, 2]".to_owned());
            }
        }
        Ok(file)
    }
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
        assert!(field.contains("unknown field `sheds`") && field.contains("line 4"), "{field}");
        assert_eq!(wrong(&format!("{kernel}fuel = 0.5\n")), "line 4, fuel: 0.5: 1 to 1000000 fits here");
        assert_eq!(
            wrong(&format!("{kernel}margin = 0.5\n")),
            "line 4, margin: give injections or a margin, not both"
        );
        assert!(wrong("injections = 1\n").contains("names no launch"));
        assert!(
            wrong("kernel = \"mandel\"\ninjections = 1\n").starts_with("line 1, kernel: add the machine")
        );
        assert!(wrong("launch = \"a\"\n").starts_with("how many experiments?"));
        assert!(wrong(&format!("{kernel}models = []\n")).starts_with("line 4, models: at least one"));
        assert!(
            wrong(&format!("{kernel}[sweep]\nlanes = 4\n"))
                .starts_with("line 5, lanes: a sweep is over a list")
        );
    }
}
