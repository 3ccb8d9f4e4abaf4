//! Machine code with the facts that its container states.
//!
//! Readers of containers produce an [`Image`], and machines run its [`Program`]s. All three machines use the same
//! types. If a container does not state a fact, the field is `None` or empty, never a guess.

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
    /// Returns the unit in which listings and traces count code addresses.
    pub const fn unit(self) -> &'static str {
        match self {
            Isa::R500 => "instructions",
            Isa::R700 => "64-bit words",
            Isa::Tesla => "bytes",
        }
    }

    /// Returns the text of a code address: hexadecimal if the machine's addresses count bytes, otherwise decimal.
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

/// Contents of a part of a constant bank that a container provides for a program.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ConstantBlock {
    /// Number of the constant bank or segment.
    pub bank: u32,
    /// Offset of the first byte in the bank.
    pub offset: u32,
    /// The bytes in the order of memory. Words are little-endian.
    pub bytes: Vec<u8>,
}

/// A parameter that a container declares for a kernel.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Param {
    /// Name of the parameter, if the container has one.
    pub name: Option<String>,
    /// Offset of the parameter's first byte in the parameter area.
    pub offset: u32,
    /// Size of the parameter in bytes.
    pub bytes: u32,
}

/// Resources that a container declares for a program. A resource that the container does not state is `None`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Resources {
    /// Registers per lane.
    pub registers: Option<u32>,
    /// Shared memory per block in bytes, including the parameters if the container includes the parameters.
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
    /// Program type: the pipeline stage that runs the program.
    #[derive(Hash)]
    pub enum Stage {
        /// Compute kernel.
        Compute = "compute",
        /// Vertex program.
        Vertex = "vertex",
        /// Geometry program.
        Geometry = "geometry",
        /// Program that copies a geometry program's output (R600, R700).
        GsCopy = "gs-copy",
        /// Pixel program, in the terms of ATI and AMD.
        Pixel = "pixel",
        /// Fragment program. NVIDIA and OpenGL use this term for a pixel program.
        Fragment = "fragment",
        /// Vertex fetch program (R600, R700).
        Fetch = "fetch",
    }
}

/// A program type name that is not one of [`Stage::ALL`].
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
    /// Name of the texture reference.
    pub name: String,
    /// Number of the unit.
    pub unit: u32,
}

/// Inputs, outputs and constants that a program uses, according to the container of the program. For example, the notes
/// of a CTM executable state inputs, outputs and constants. A field is `None` if the container does not state the
/// field's content.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Usage {
    /// Indices of the inputs that the program reads.
    pub inputs: Option<Vec<u32>>,
    /// Indices of the outputs that the program writes.
    pub outputs: Option<Vec<u32>>,
    /// Whether the program writes the conditional output.
    pub conditional_output: Option<bool>,
    /// Indices of the float constants that the program reads.
    pub float_constants: Option<Vec<u32>>,
    /// Indices of the integer constants that the program reads.
    pub integer_constants: Option<Vec<u32>>,
    /// Whether the program can end before the last instruction.
    pub early_exit: Option<bool>,
}

/// Position of a program's words in the file that contains the program.
///
/// All values of this type compare as equal. So the position of the words does not affect whether two programs are
/// equal.
#[derive(Clone, Debug, Default)]
pub enum CodeAt {
    /// The program was not read from a file, or the file contains the words only in compressed form.
    #[default]
    Nowhere,
    /// The file contains the words contiguously.
    Bytes {
        /// Offset of the first word in the file, in bytes.
        start: usize,
        /// Whether the bytes of each word are in big-endian order.
        big_endian: bool,
    },
    /// The file contains a text that spells bytes as numbers. The program is a part of the bytes. The second value is
    /// the position of the program in the bytes.
    Numbers(Numbers, Box<CodeAt>),
}

/// Text in a file that spells bytes as numbers.
#[derive(Clone, Debug)]
pub struct Numbers {
    /// Offset of the text in the file, in bytes.
    pub start: usize,
    /// Range of the text's bytes that each number occupies, counted from the start of the text.
    pub places: Arc<Vec<Range<usize>>>,
    /// Notation of the digits.
    pub digits: Digits,
    /// Number of bytes that each number represents.
    pub width: usize,
    /// Whether the bytes that a number represents are in big-endian order.
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
    /// Adapts the position to a larger file, which contains the original file from byte `by` on.
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
    /// Program type, if the container states it.
    pub stage: Option<Stage>,
    /// Index of the program's module in [`Image::modules`]. The index is ignored if the image does not have modules.
    pub module: usize,
    /// The code as 32-bit words in memory order.
    pub words: Vec<u32>,
    /// Position of the words in the file.
    pub code_at: CodeAt,
    /// Address of the first word in the unit of the machine (R500: slots; R700: 64-bit words; Tesla: bytes).
    pub base: u32,
    /// State registers in the container's order, each with its name in the manual and its value.
    pub state: Vec<(String, u32)>,
    /// Constants that the container provides for this program.
    pub constants: Vec<ConstantBlock>,
    /// Parameters, in order of their offset.
    pub params: Vec<Param>,
    /// Textures that this program uses, if the container has a list of textures for each program.
    pub samplers: Vec<Sampler>,
    /// Resources of the program.
    pub resources: Resources,
    /// Inputs, outputs and constants that the program uses.
    pub usage: Usage,
}

impl Program {
    /// Returns a program with these words. No other facts about the program are known.
    pub fn from_words(words: Vec<u32>) -> Self {
        Program { words, ..Program::default() }
    }

    /// Returns the value of the state register with this name in the manual.
    pub fn state(&self, name: &str) -> Option<u32> {
        self.state.iter().find(|(known, _)| known == name).map(|(_, value)| *value)
    }
}

/// A word of a constant bank that the loader sets to the address of a variable.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Slot {
    /// Number of the constant bank.
    pub bank: u32,
    /// Offset of the word in the bank, in bytes.
    pub offset: u32,
    /// Number that is added to the address.
    pub addend: u32,
}

/// Memory that contains a module's variable.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Place {
    /// The variable is in a constant bank. If the module states the contents of the variable, the contents are in
    /// [`Module::constants`].
    Constant {
        /// Number of the bank.
        bank: u32,
        /// Offset of the variable's first byte in the bank.
        offset: u32,
    },
    /// The variable is in global memory. The loader selects the address of the variable and writes this address into
    /// the slots.
    Global {
        /// The words that receive the address.
        slots: Vec<Slot>,
        /// Initial contents of the variable. If the contents are shorter than the variable, the remaining bytes of the
        /// variable are zero.
        init: Vec<u8>,
    },
}

/// A variable that a module declares outside its kernels.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Variable {
    /// Name of the variable.
    pub name: String,
    /// Size of the variable in bytes.
    pub bytes: u32,
    /// Memory of the variable.
    pub place: Place,
}

/// Declarations that the programs of one compilation share.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Module {
    /// Name of the module, if known: `modname` of a text cubin, or the name of the archive member.
    pub name: Option<String>,
    /// Chip or architecture for which the module was compiled, if the container states the chip or architecture.
    pub chip: Option<String>,
    /// Value of `abiversion` in a text cubin.
    pub abi_version: Option<u32>,
    /// Size in bytes of a pointer in the parameter area, if the container states this size. In an ELF cubin, the class
    /// of the ELF file states the size.
    pub pointer_bytes: Option<u32>,
    /// Constants of the module, which all its programs can access.
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
    /// The machine of all programs, if the container states the machine.
    pub isa: Option<Isa>,
    /// The name of the chip or architecture, if the container states one name for all modules.
    pub chip: Option<String>,
    /// Modules of the programs. [`Program::module`] is an index into this list. The list is empty for formats without
    /// modules.
    pub modules: Vec<Module>,
    /// The programs, in the file's order.
    pub programs: Vec<Program>,
    /// Notes for the user about sections that were skipped and fields of unknown meaning.
    pub notes: Vec<String>,
}

impl Image {
    /// Returns the module of `program`, if the container has modules.
    pub fn module_of(&self, program: &Program) -> Option<&Module> {
        self.modules.get(program.module)
    }

    /// Returns an image that contains only this program and the module of the program.
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

    /// Returns all constants for a run of `program`: first the constants of the module, then the constants of the
    /// program.
    pub fn constants_of<'a>(&'a self, program: &'a Program) -> impl Iterator<Item = &'a ConstantBlock> {
        self.module_of(program).into_iter().flat_map(|module| &module.constants).chain(&program.constants)
    }
}
