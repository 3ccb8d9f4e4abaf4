//! Machine code with the facts that its container states.
//!
//! Containers produce an [`Image`], and machines run its [`Program`]s. The type is the same for all three machines. A
//! fact that a container does not state is `None` or empty, never a guess.

use std::ops::Range;
use std::str::FromStr;
use std::sync::Arc;

use thiserror::Error;

crate::choices! {
    /// The three machines.
    #[derive(Hash, PartialOrd, Ord)]
    pub enum Isa {
        /// ATI R500 fragment processor.
        R500 = "r500",
        /// AMD R700, and R600 as a chip option.
        R700 = "r700",
        /// NVIDIA G80 to GT21x.
        Tesla = "tesla",
    }
}

impl Isa {
    /// Returns the unit of code addresses in listings and traces.
    pub const fn unit(self) -> &'static str {
        match self {
            Isa::R500 => "instructions",
            Isa::R700 => "64-bit words",
            Isa::Tesla => "bytes",
        }
    }

    /// Returns the text of a code address: hexadecimal if addresses count bytes.
    pub fn spelled(self, address: u32) -> String {
        match self {
            Isa::R500 | Isa::R700 => address.to_string(),
            Isa::Tesla => format!("{address:#x}"),
        }
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
    /// Name of the parameter, if the container has one.
    pub name: Option<String>,
    /// First byte in the parameter area.
    pub offset: u32,
    /// Size in bytes.
    pub bytes: u32,
}

/// Resources that a container declares for a program. `None` if it does not state them.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Resources {
    /// Registers per lane.
    pub registers: Option<u32>,
    /// Shared memory per block in bytes, parameters included as the container counts them.
    pub shared_bytes: Option<u32>,
    /// Local memory per lane in bytes.
    pub local_bytes: Option<u32>,
    /// Number of barriers.
    pub barriers: Option<u32>,
    /// Entries of the flow-control stack.
    pub stack: Option<u32>,
    /// Bytes of parameters.
    pub param_bytes: Option<u32>,
}

crate::choices! {
    /// Program type: the step of the pipeline that a program serves.
    #[derive(Hash)]
    pub enum Stage {
        /// A kernel.
        Compute = "compute",
        /// Vertex program.
        Vertex = "vertex",
        /// Geometry program.
        Geometry = "geometry",
        /// The program that copies a geometry program's output (R600, R700).
        GsCopy = "gs-copy",
        /// Pixel program (ATI and AMD's word).
        Pixel = "pixel",
        /// Fragment program (the same step, in the word of NVIDIA and OpenGL).
        Fragment = "fragment",
        /// Vertex fetch program (R600, R700).
        Fetch = "fetch",
    }
}

/// A name that is not one of [`Stage::ALL`].
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("unknown program type `{0}`: expected compute, vertex, geometry, gs-copy, pixel, fragment or fetch")]
pub struct UnknownStage(pub String);

impl FromStr for Stage {
    type Err = UnknownStage;

    fn from_str(text: &str) -> Result<Self, UnknownStage> {
        Stage::ALL.into_iter().find(|stage| stage.name() == text).ok_or_else(|| UnknownStage(text.to_owned()))
    }
}

/// A named texture or sampler unit.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Sampler {
    /// The texture reference's name.
    pub name: String,
    /// Number of the unit.
    pub unit: u32,
}

/// Inputs, outputs and constants that a container declares as used (notes of a CTM executable). `None` if it does not
/// state them.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Usage {
    /// Inputs used, by index.
    pub inputs: Option<Vec<u32>>,
    /// Outputs used, by index.
    pub outputs: Option<Vec<u32>>,
    /// Whether the conditional output is written.
    pub conditional_output: Option<bool>,
    /// Float constants used, by index.
    pub float_constants: Option<Vec<u32>>,
    /// Integer constants used, by index.
    pub integer_constants: Option<Vec<u32>>,
    /// Whether the program can end before its last instruction.
    pub early_exit: Option<bool>,
}

/// Position of a program's words in the file that it was read from.
///
/// The position does not affect equality of programs: all values are equal.
#[derive(Clone, Debug, Default)]
pub enum CodeAt {
    /// The program was not read from a file, or its words do not occur in the file as such (compressed data).
    #[default]
    Nowhere,
    /// The words are contiguous from this byte on.
    Bytes {
        /// Offset of the first word.
        start: usize,
        /// The byte order of each word.
        big_endian: bool,
    },
    /// The file is a text that spells bytes as numbers. The program is in those bytes.
    Numbers(Numbers, Box<CodeAt>),
}

/// The numbers of a text that spell bytes.
#[derive(Clone, Debug)]
pub struct Numbers {
    /// Offset of the text in the file.
    pub start: usize,
    /// The bytes that each number occupies, counted from the text's start.
    pub places: Arc<Vec<Range<usize>>>,
    /// Notation of the digits.
    pub digits: Digits,
    /// Bytes per number.
    pub width: usize,
    /// The order of those bytes.
    pub big_endian: bool,
}

/// Notation of the digits of a number.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Digits {
    /// Hexadecimal, with or without `0x`.
    Hexadecimal,
    /// Octal.
    Octal,
    /// C notation: octal after `0`, hexadecimal after `0x`, otherwise decimal.
    C,
}

impl PartialEq for CodeAt {
    fn eq(&self, _: &CodeAt) -> bool {
        true
    }
}

impl Eq for CodeAt {}

impl CodeAt {
    /// Shifts the position for a file in which the earlier file starts at byte `by`.
    pub fn shift(&mut self, by: usize) {
        match self {
            CodeAt::Nowhere => {}
            CodeAt::Bytes { start, .. } | CodeAt::Numbers(Numbers { start, .. }, _) => *start += by,
        }
    }
}

/// One program of an image.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Program {
    /// Kernel name, if the program has one.
    pub name: Option<String>,
    /// The pipeline step, if the container states it.
    pub stage: Option<Stage>,
    /// Index of the program's module in [`Image::modules`]; ignored if the image does not have modules.
    pub module: usize,
    /// The code as 32-bit words in memory order.
    pub words: Vec<u32>,
    /// Position of the words in the file.
    pub code_at: CodeAt,
    /// Address of the first word in the machine's own unit (R500: slots; R700: 64-bit words; Tesla: bytes).
    pub base: u32,
    /// State registers by their manual's name, in the container's order.
    pub state: Vec<(String, u32)>,
    /// Constants that come with the program.
    pub constants: Vec<ConstantBlock>,
    /// Parameters, in order of their offset.
    pub params: Vec<Param>,
    /// Textures that this program uses, if the container lists them per program.
    pub samplers: Vec<Sampler>,
    /// Resources of the program.
    pub resources: Resources,
    /// Inputs, outputs and constants that the program uses.
    pub usage: Usage,
}

impl Program {
    /// Returns a program with only these words.
    pub fn from_words(words: Vec<u32>) -> Self {
        Program { words, ..Program::default() }
    }

    /// Returns the value of a state register, by its manual's name.
    pub fn state(&self, name: &str) -> Option<u32> {
        self.state.iter().find(|(known, _)| known == name).map(|(_, value)| *value)
    }
}

/// A word of a constant bank to which the loader writes a variable's address.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Slot {
    /// Constant bank.
    pub bank: u32,
    /// Byte in the bank.
    pub offset: u32,
    /// Number that is added to the address.
    pub addend: u32,
}

/// Memory of a module's variable.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Place {
    /// The variable is in a constant bank. Its contents, if the module has them, are in [`Module::constants`].
    Constant {
        /// Number of the bank.
        bank: u32,
        /// First byte in the bank.
        offset: u32,
    },
    /// In global memory, at an address that the loader chooses and writes into the slots.
    Global {
        /// The words that receive the address.
        slots: Vec<Slot>,
        /// Initial contents. They may be shorter than the variable; the rest is zero.
        init: Vec<u8>,
    },
}

/// A variable that a module declares outside its kernels.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Variable {
    /// Name of the variable.
    pub name: String,
    /// Size in bytes.
    pub bytes: u32,
    /// Memory of the variable.
    pub place: Place,
}

/// Declarations that the programs of one compilation share.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Module {
    /// Name of the module, if it has one (`modname` of a text cubin, the member's name in an archive).
    pub name: Option<String>,
    /// Chip or architecture that the module was compiled for, if the container states it.
    pub chip: Option<String>,
    /// `abiversion` of a text cubin.
    pub abi_version: Option<u32>,
    /// Bytes of a pointer in the parameter area (the class of an ELF cubin), if the container states it.
    pub pointer_bytes: Option<u32>,
    /// Constants that all programs of the module can access.
    pub constants: Vec<ConstantBlock>,
    /// Textures declared for all programs of the module.
    pub samplers: Vec<Sampler>,
    /// Variables declared for all programs of the module.
    pub variables: Vec<Variable>,
}

/// The content of one file.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Image {
    /// The container format: `hex32`, `bin`, `cubin-text`, `cubin-elf32`, `ctm-elf`, …
    pub format: &'static str,
    /// The machine, if the container states it.
    pub isa: Option<Isa>,
    /// The chip or architecture name, if the container states it and all modules agree.
    pub chip: Option<String>,
    /// Modules that programs share; [`Program::module`] is an index into this list. Empty for formats without
    /// modules.
    pub modules: Vec<Module>,
    /// The programs, in the file's order.
    pub programs: Vec<Program>,
    /// Notes for the user: sections passed over, fields of unknown meaning.
    pub notes: Vec<String>,
}

impl Image {
    /// Returns the module of `program`, if the container has modules.
    pub fn module_of(&self, program: &Program) -> Option<&Module> {
        self.modules.get(program.module)
    }

    /// Returns an image with only this program and its module.
    pub fn only(&self, program: &Program) -> Image {
        let module = self.module_of(program).cloned();
        let chip = module.as_ref().and_then(|module| module.chip.clone()).or_else(|| self.chip.clone());
        Image {
            chip,
            modules: module.into_iter().collect(),
            programs: vec![Program { module: 0, ..program.clone() }],
            ..self.clone()
        }
    }

    /// Returns all constants that `program` starts with: those of its module, then its own.
    pub fn constants_of<'a>(&'a self, program: &'a Program) -> impl Iterator<Item = &'a ConstantBlock> {
        self.module_of(program).into_iter().flat_map(|module| &module.constants).chain(&program.constants)
    }
}
