//! Sites of faults and fault models.

use std::fmt;

use reconverge_isa::Isa;
use reconverge_isa::source::closest;
use reconverge_workbench::faults::Kind;
use serde::{Deserialize, Deserializer, Serialize, Serializer, de};

/// The kind of word that a fault changes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Site {
    /// A general register or address register that the program names.
    Register,
    /// A general register or address register that an instruction has just written. The instruction was active in the
    /// register's lane.
    Destination,
    /// A word of flow state.
    Flow(Kind),
    /// A 32-bit word of memory.
    Memory,
    /// A 32-bit word of the next instruction. On R700, the word belongs to the next control-flow instruction or to the
    /// clause of this instruction.
    Instruction,
}

impl Site {
    /// Returns all sites.
    pub fn all() -> impl Iterator<Item = Site> + Clone {
        let flow = Kind::ALL.into_iter().map(Site::Flow);
        [Site::Register, Site::Destination].into_iter().chain(flow).chain([Site::Memory, Site::Instruction])
    }

    /// Returns the name of the site in campaign files and results.
    pub const fn name(self) -> &'static str {
        match self {
            Site::Register => "register",
            Site::Destination => "destination",
            Site::Flow(kind) => kind.name(),
            Site::Memory => "memory",
            Site::Instruction => "instruction",
        }
    }

    /// Returns the machines that have this kind of word.
    pub const fn machines(self) -> &'static [Isa] {
        match self {
            Site::Register | Site::Destination | Site::Memory | Site::Instruction => &Isa::ALL,
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
    /// The way in which a fault changes the bits of a word.
    #[derive(PartialOrd, Ord, Hash)]
    pub enum Model {
        /// One bit flips.
        Flip = "flip",
        /// Two neighbouring bits flip.
        Double = "double",
        /// The word changes to any other value.
        Random = "random",
        /// The value of the word becomes 0.
        Zero = "zero",
        /// The same bits flip in the same register of all lanes of the group.
        WarpWide = "warp-wide",
        /// Several bits flip, anywhere in the word. The key `bits` states the number of bits.
        Bits = "bits",
        /// One bit stays 0 after the change.
        StuckAt0 = "stuck-at-0",
        /// One bit stays 1 after the change.
        StuckAt1 = "stuck-at-1",
    }
}

impl Model {
    /// Returns the value of the stuck bit. Returns `None` if the fault is not permanent.
    pub const fn stuck(self) -> Option<bool> {
        match self {
            Model::StuckAt0 => Some(false),
            Model::StuckAt1 => Some(true),
            Model::Flip | Model::Double | Model::Random | Model::Zero | Model::WarpWide | Model::Bits => None,
        }
    }
}

/// Parses a name that must be in a list. The error message suggests the most similar name.
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
            "unknown {what} `{found}`: {}expected one of {}",
            meant.unwrap_or_default(),
            list.join(", ")
        ))
    })
}

impl Serialize for Model {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(self.name())
    }
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
