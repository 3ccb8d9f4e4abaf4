//! Machine code with what its container told about it.
//!
//! Containers produce an [`Image`], machines consume its [`Program`]s. The type is one for all three machines:
//! a fact that a container does not tell is `None` or empty, never a guess.

use std::fmt;
use std::str::FromStr;

use thiserror::Error;

/// The three machines.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Isa {
    /// ATI R500 fragment processor.
    R500,
    /// AMD R700, and R600 as a chip option.
    R700,
    /// NVIDIA G80 to GT21x.
    Tesla,
}

impl Isa {
    /// All machines, in the order of their names.
    pub const ALL: [Isa; 3] = [Isa::R500, Isa::R700, Isa::Tesla];

    /// The name used on the command line and in case files.
    pub const fn name(self) -> &'static str {
        match self {
            Isa::R500 => "r500",
            Isa::R700 => "r700",
            Isa::Tesla => "tesla",
        }
    }
}

impl fmt::Display for Isa {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// A machine name that is not one of [`Isa::ALL`].
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("unknown machine `{0}`: expected r500, r700 or tesla")]
pub struct UnknownIsa(pub String);

impl FromStr for Isa {
    type Err = UnknownIsa;

    fn from_str(text: &str) -> Result<Self, UnknownIsa> {
        Isa::ALL.into_iter().find(|isa| isa.name() == text).ok_or_else(|| UnknownIsa(text.to_owned()))
    }
}

/// Contents of a constant bank that come with a program.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ConstantBlock {
    /// Bank or segment number.
    pub bank: u32,
    /// First byte in the bank.
    pub offset: u32,
    /// The bytes, little endian words as in memory.
    pub bytes: Vec<u8>,
}

/// A parameter that a container declares for a kernel.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Param {
    /// Its name, where the container has one.
    pub name: Option<String>,
    /// First byte in the parameter area.
    pub offset: u32,
    /// Size in bytes.
    pub bytes: u32,
}

/// What a container says a program needs. `None` where it does not say.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Resources {
    /// Registers a lane.
    pub registers: Option<u32>,
    /// Shared memory a block, bytes, parameters included as the container counts them.
    pub shared_bytes: Option<u32>,
    /// Local memory a lane, bytes.
    pub local_bytes: Option<u32>,
    /// Barriers.
    pub barriers: Option<u32>,
    /// Entries of the flow-control stack.
    pub stack: Option<u32>,
    /// Bytes of parameters.
    pub param_bytes: Option<u32>,
}

/// One program of an image.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Program {
    /// Kernel name, where there is one.
    pub name: Option<String>,
    /// The code as 32-bit words in memory order.
    pub words: Vec<u32>,
    /// Address of the first word in the machine's own unit (R500: slots; R700: 64-bit words; Tesla: bytes).
    pub base: u32,
    /// State registers by their manual's name, in the container's order.
    pub state: Vec<(String, u32)>,
    /// Constants that come with the program.
    pub constants: Vec<ConstantBlock>,
    /// Parameters, in order of their offset.
    pub params: Vec<Param>,
    /// What the program needs.
    pub resources: Resources,
}

impl Program {
    /// A program of which only the words are known.
    pub fn from_words(words: Vec<u32>) -> Self {
        Program { words, ..Program::default() }
    }

    /// The value of a state register, by its manual's name.
    pub fn state(&self, name: &str) -> Option<u32> {
        self.state.iter().find(|(known, _)| known == name).map(|(_, value)| *value)
    }
}

/// The content of one file.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Image {
    /// The container format: `hex32`, `bin`, `cubin-text`, `cubin-elf32`, `ctm-elf`, …
    pub format: &'static str,
    /// The machine, where the container tells.
    pub isa: Option<Isa>,
    /// The chip or architecture name, where the container tells.
    pub chip: Option<String>,
    /// The programs, in the file's order.
    pub programs: Vec<Program>,
    /// Things a person should know: sections passed over, fields of unknown meaning.
    pub notes: Vec<String>,
}
