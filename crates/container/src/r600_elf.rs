//! Objects of LLVM's R600 target (`llc -march=r600 -filetype=obj`). The objects are 32-bit ELF files with machine
//! number 224.
//!
//! `.text` contains the words of all functions. `.AMDGPU.config` contains pairs of a register address and a value. The
//! first pair of each function has the resource register of the function. (LLVM, `R600AsmPrinter`; objects of LLVM 14
//! to 19.)

use reconverge_isa::program::{Resources, Stage};
use reconverge_isa::{Image, Isa, Program};

use crate::bytes::{Bytes, little_endian, rows, words};
use crate::elf::{self, Section, Symbol};
use crate::{Error, Format};

/// Machine numbers in bits 7:0 of `e_flags`, each with the name of the chip. Chips after RV770 have a different
/// instruction set.
#[rustfmt::skip]
const CHIPS: [(u32, &str); 7] = [
    (1, "r600"), (2, "rv630"), (3, "rs880"), (4, "rv670"), (5, "rv710"), (6, "rv730"), (7, "rv770"),
];

const RESOURCES_PS: u32 = 0x28850;
const RESOURCES_VS: u32 = 0x28868;
/// Local data share size, which LLVM writes for kernels. (`R600Defines.h`)
const LDS_ALLOC: u32 = 0x288e8;

/// Addresses and names of the registers that LLVM writes.
const REGISTERS: [(u32, &str); 4] = [
    (RESOURCES_PS, "SQ_PGM_RESOURCES_PS"),
    (RESOURCES_VS, "SQ_PGM_RESOURCES_VS"),
    (0x2880c, "DB_SHADER_CONTROL"),
    (LDS_ALLOC, "SQ_LDS_ALLOC"),
];

/// Returns the name of a register that LLVM writes.
pub(crate) fn register_name(address: u32) -> Option<&'static str> {
    REGISTERS.iter().find(|(known, _)| *known == address).map(|(_, name)| *name)
}

/// Decodes SQ_PGM_RESOURCES: general registers in bits 7:0, stack entries in bits 15:8.
pub(crate) fn resources_of(register: u32) -> Resources {
    Resources { registers: Some(register & 0xff), stack: Some(register >> 8 & 0xff), ..Resources::default() }
}

/// Reads an object. Each function of `.text` becomes a program.
pub fn load(bytes: &[u8]) -> Result<Image, Error> {
    let elf = elf::read(bytes, elf::MACHINE_AMDGPU)?;
    if elf.wide {
        return Err(Error::OtherChip {
            found: "a 64-bit AMDGPU object (GCN)".to_owned(),
            expected: "32 bits (R600)",
        });
    }
    let machine = elf.flags & 0xff;
    let Some((_, chip)) = CHIPS.iter().find(|(number, _)| *number == machine) else {
        return Err(Error::OtherChip {
            found: format!("AMDGPU machine number {machine} (8 to 15 are Evergreen and Cayman)"),
            expected: "1 to 7: r600, r630, rs880, rv670, rv710, rv730, rv770",
        });
    };
    let mut image = Image {
        format: Format::R600Elf.name(),
        isa: Some(Isa::R700),
        chip: Some((*chip).to_owned()),
        ..Image::default()
    };
    let Some((index, text)) = elf.sections.iter().enumerate().find(|(_, section)| section.name == ".text")
    else {
        return Err(Error::missing("the section .text", "it holds the program's words"));
    };
    if let Some(relocated) = elf.sections.iter().find(|section| {
        matches!(section.kind, elf::REL | elf::RELA) && section.info as usize == index && section.size > 0
    }) {
        return Err(Error::Relocation {
            at: relocated.offset,
            why: "of .text: R600 objects do not have relocations with a known meaning; link constant data into a buffer instead"
                .to_owned(),
        });
    }
    image.programs = functions(&elf.symbols, index, text)?;
    match elf.sections.iter().find(|section| section.name == ".AMDGPU.config") {
        Some(config) => {
            let groups = groups(&words("the section .AMDGPU.config", config.offset, config.data)?, config)?;
            if groups.len() != image.programs.len() {
                let what = "the number of resource registers in .AMDGPU.config";
                let expected = format!("{}, one for each function of .text", image.programs.len());
                return Err(Error::value(what, config.offset, groups.len() as u64, expected));
            }
            for (program, group) in image.programs.iter_mut().zip(groups) {
                configure(program, &group, &mut image.notes);
            }
        }
        None => image
            .notes
            .push("missing section .AMDGPU.config: register count and stage are unknown".to_owned()),
    }
    Ok(image)
}

/// Returns the functions of `.text`. Symbols mark the start and the end of each function. If the section has no
/// symbols, returns the whole section as one program without a name.
fn functions(symbols: &[Symbol<'_>], index: usize, text: &Section<'_>) -> Result<Vec<Program>, Error> {
    let mut functions: Vec<&Symbol<'_>> = symbols
        .iter()
        .filter(|symbol| symbol.kind == elf::FUNC && usize::from(symbol.section) == index)
        .collect();
    functions.sort_by_key(|symbol| symbol.value);
    if functions.is_empty() {
        return Ok(vec![little_endian(words("the section .text", text.offset, text.data)?, text.offset)]);
    }
    let mut programs = Vec::new();
    let mut free = 0;
    for symbol in functions {
        if symbol.value < free {
            let second = format!("function `{}`", symbol.name);
            return Err(Error::overlap("a function", second, text.offset + symbol.value));
        }
        let part = Bytes::of(text.data).slice("a function", symbol.value, symbol.size)?;
        let at = text.offset + symbol.value;
        let mut program = little_endian(words("a function", at, part)?, at);
        program.name = Some(symbol.name.to_owned());
        programs.push(program);
        // The code assumes one byte for a function without a size. Thus, no two functions have the same address.
        free = symbol.value + symbol.size.max(1);
    }
    Ok(programs)
}

/// Returns the pairs of register and value for each function. The pairs of a function start with a resource register.
fn groups(words: &[u32], section: &Section<'_>) -> Result<Vec<Vec<(u32, u32)>>, Error> {
    let mut groups: Vec<Vec<(u32, u32)>> = Vec::new();
    for [register, value] in rows("the section .AMDGPU.config", section.offset, words)? {
        match groups.last_mut() {
            Some(group) if ![RESOURCES_PS, RESOURCES_VS].contains(register) => {
                group.push((*register, *value))
            }
            Some(_) | None => groups.push(vec![(*register, *value)]),
        }
    }
    Ok(groups)
}

/// Adds registers and their values to a program. These registers determine the program type and the resources of the
/// program.
pub(crate) fn configure(program: &mut Program, group: &[(u32, u32)], notes: &mut Vec<String>) {
    for (register, value) in group {
        let name = register_name(*register);
        if name.is_none() {
            notes.push(format!("register {register:#07x} of .AMDGPU.config has no name here"));
        }
        program.state.push((name.map_or_else(|| format!("{register:#07x}"), str::to_owned), *value));
        if [RESOURCES_PS, RESOURCES_VS].contains(register) {
            program.resources = resources_of(*value);
        }
    }
    let has = |register: u32| group.iter().any(|(known, _)| *known == register);
    // For kernels, LLVM uses the resource register of the vertex stage. For kernels, LLVM also writes a data share
    // size. For vertex programs, LLVM does not write a data share size.
    program.stage = if has(RESOURCES_PS) {
        Some(Stage::Pixel)
    } else if has(LDS_ALLOC) {
        Some(Stage::Compute)
    } else if has(RESOURCES_VS) {
        Some(Stage::Vertex)
    } else {
        None
    };
}
