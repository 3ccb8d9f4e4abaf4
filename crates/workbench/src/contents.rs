//! Contents of a program file as data. The contents are the programs, the requirements of the programs, and the data
//! that the programs share.

use reconverge_isa::program::{ConstantBlock, Param, Place, Program, Sampler, Variable};
use serde::Serialize;

use crate::listing::Style;
use crate::machine::Machine;
use crate::open::Opened;
use crate::target::{Target, TargetError};
use crate::tesla::names::demangled;

/// Contents of a file.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Contents {
    /// The container format.
    pub format: &'static str,
    /// The programs, in the file's order.
    pub programs: Vec<ProgramContents>,
    /// Data that programs share.
    pub modules: Vec<ModuleContents>,
    /// Notes on the parts of the file that were skipped.
    pub notes: Vec<String>,
}

/// A program with the properties that its container states. A field is `None` or empty if the container does not state
/// the property.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct ProgramContents {
    /// Name of the program.
    pub name: Option<String>,
    /// Name as written in the source, if `name` is mangled.
    pub demangled: Option<String>,
    /// The machine.
    pub isa: &'static str,
    /// Name of the chip in the container.
    pub chip: Option<String>,
    /// The pipeline stage.
    pub stage: Option<&'static str>,
    /// Index of the program's module.
    pub module: Option<usize>,
    /// Number of 32-bit words of code.
    pub words: usize,
    /// Number of instructions in the listing.
    pub instructions: usize,
    /// Address of the first instruction, in the machine's address unit.
    pub base: u32,
    /// Number of registers per lane that the container states.
    pub registers: Option<u32>,
    /// Number of registers per lane that the instructions need. (R700)
    #[serde(skip_serializing_if = "Option::is_none")]
    pub registers_needed: Option<u32>,
    /// Bytes of shared memory per block.
    pub shared: Option<u32>,
    /// Bytes of local memory per lane.
    pub local: Option<u32>,
    /// Number of stack entries that the container states.
    pub stack: Option<u32>,
    /// Number of stack entries that the instructions need. (R700)
    #[serde(skip_serializing_if = "Option::is_none")]
    pub stack_needed: Option<u32>,
    /// Number of barriers.
    pub barriers: Option<u32>,
    /// Parameters, ordered by offset.
    pub parameters: Vec<Parameter>,
    /// Size of all parameters in bytes.
    pub parameter_bytes: Option<u32>,
    /// Constants that only this program can read.
    pub constants: Vec<Data>,
    /// State registers.
    pub state: Vec<State>,
    /// Textures.
    pub samplers: Vec<Unit>,
}

/// Data that the programs of one compilation share.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct ModuleContents {
    /// Name of the module.
    pub name: Option<String>,
    /// Chip of the module.
    pub chip: Option<String>,
    /// Constants that all programs of the module can read.
    pub constants: Vec<Data>,
    /// Textures that all programs of the module can use.
    pub samplers: Vec<Unit>,
    /// Global variables of the module.
    pub variables: Vec<Named>,
}

/// A parameter.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Parameter {
    /// Name of the parameter.
    pub name: Option<String>,
    /// Offset of the first byte in the parameter memory.
    pub offset: u32,
    /// Size in bytes.
    pub bytes: u32,
}

/// Contents of a constant bank.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Data {
    /// Number of the constant bank.
    pub bank: u32,
    /// Offset of the first byte in the bank.
    pub offset: u32,
    /// Number of bytes.
    pub bytes: usize,
}

/// A state register.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct State {
    /// The register's name in the manual.
    pub register: String,
    /// Value of the register.
    pub value: u32,
}

/// A texture.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Unit {
    /// Name of the texture.
    pub name: String,
    /// Number of the texture unit.
    pub unit: u32,
}

/// A variable.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Named {
    /// Name of the variable.
    pub name: String,
    /// Size in bytes.
    pub bytes: u32,
    /// Memory space: `constant` or `global`.
    pub space: &'static str,
}

/// Returns the contents of a file.
///
/// # Errors
/// Returns an error if a program cannot be disassembled. For example, the machine may not have the program's pipeline
/// stage.
pub fn contents(opened: &Opened) -> Result<Contents, TargetError> {
    let Opened { target, image, .. } = opened;
    let machine = target.machine();
    let programs = image.programs.iter().map(|program| {
        let module = image.module_of(program);
        let chip = module.and_then(|module| module.chip.clone()).or_else(|| image.chip.clone());
        of_program(
            machine,
            &target.for_program(image, program),
            program,
            chip,
            module.map(|_| program.module),
        )
    });
    let modules = image.modules.iter().map(|module| ModuleContents {
        name: module.name.clone(),
        chip: module.chip.clone(),
        constants: data(&module.constants),
        samplers: units(&module.samplers),
        variables: module.variables.iter().map(named).collect(),
    });
    Ok(Contents {
        format: image.format,
        programs: programs.collect::<Result<_, _>>()?,
        modules: modules.collect(),
        notes: image.notes.clone(),
    })
}

fn of_program(
    machine: &dyn Machine,
    target: &Target,
    program: &Program,
    chip: Option<String>,
    module: Option<usize>,
) -> Result<ProgramContents, TargetError> {
    let lines = machine.disassemble(target, program, Style::default())?.lines(&program.words);
    let is_instruction = |line: &&crate::listing::Line| line.address.is_some() && !line.text.starts_with('.');
    let parameter = |param: &Param| {
        let Param { name, offset, bytes } = param.clone();
        Parameter { name, offset, bytes }
    };
    let resources = &program.resources;
    let needs = machine.needs(target, program);
    Ok(ProgramContents {
        name: program.name.clone(),
        demangled: program.name.as_deref().and_then(demangled),
        isa: target.isa.name(),
        chip: chip.or_else(|| target.chip_name().map(str::to_owned)),
        stage: program.stage.or(target.stage).map(|stage| stage.name()),
        module,
        words: program.words.len(),
        instructions: lines.iter().filter(is_instruction).count(),
        base: program.base,
        registers: resources.registers,
        registers_needed: needs.registers,
        shared: resources.shared_bytes,
        local: resources.local_bytes,
        stack: resources.stack,
        stack_needed: needs.stack,
        barriers: resources.barriers,
        parameters: program.params.iter().map(parameter).collect(),
        parameter_bytes: resources.param_bytes,
        constants: data(&program.constants),
        state: program.state.iter().cloned().map(|(register, value)| State { register, value }).collect(),
        samplers: units(&program.samplers),
    })
}

fn named(Variable { name, bytes, place }: &Variable) -> Named {
    let space = match place {
        Place::Constant { .. } => "constant",
        Place::Global { .. } => "global",
    };
    Named { name: name.clone(), bytes: *bytes, space }
}

fn data(blocks: &[ConstantBlock]) -> Vec<Data> {
    let of = |ConstantBlock { bank, offset, bytes }: &ConstantBlock| Data {
        bank: *bank,
        offset: *offset,
        bytes: bytes.len(),
    };
    blocks.iter().map(of).collect()
}

fn units(samplers: &[Sampler]) -> Vec<Unit> {
    samplers.iter().map(|sampler| Unit { name: sampler.name.clone(), unit: sampler.unit }).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::open::{Known, open};

    #[test]
    fn a_file_lists_its_programs_with_what_they_need() {
        let source = ".isa tesla\n.chip sm_11\n.kernel _Z3addPfi\n.reg 4\n.shared 28\n.local 8\n.param 0x0 4\n.param 0x4 4\n\
                      .const 1 0x0 0x3f000000\nshort mov b32 $r0 b32 s[0x10]\nnop\nexit nop\n";
        let source = source.replace("short mov b32 $r0 b32 s[0x10]\n", "mov b32 $r0 b32 s[0x10]\n");
        let opened = open(source.as_bytes(), true, &Known::default()).unwrap();
        let contents = contents(&opened).unwrap();
        let [program] = &contents.programs[..] else { panic!("{contents:?}") };
        assert_eq!(program.demangled.as_deref(), Some("add(float*, int)"));
        assert_eq!((program.isa, program.stage), ("tesla", Some("compute")));
        assert_eq!((program.registers, program.shared, program.local), (Some(4), Some(28), Some(8)));
        assert_eq!(program.parameters.iter().map(|param| param.offset).collect::<Vec<_>>(), [0, 4]);
        assert_eq!(program.instructions, 3);
        assert_eq!(program.words, opened.image.programs[0].words.len());
    }

    #[test]
    fn only_mangled_names_are_demangled() {
        assert_eq!(demangled("add"), None);
        assert_eq!(demangled("_Zwrong"), None);
        assert_eq!(demangled("_Z5scalePff"), Some("scale(float*, float)".to_owned()));
    }
}
