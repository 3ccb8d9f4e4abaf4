//! ELF cubins of CUDA 3.x to 6.5 for sm_10 to sm_13, in 32-bit and 64-bit files.
//!
//! Section names and attribute numbers are from the output of NVIDIA's `cuobjdump -elf` (`EIATTR_…`). gdev describes
//! the layout of sections for later chips. Twelve files of nvcc 3.0 to 6.5 agree with this layout. These twelve files
//! contain no relocations, no `.nv.global` and no `.nv.local`. So the layout of these three items is inferred.

mod write;

use std::collections::{BTreeMap, HashMap};

use reconverge_isa::program::{ConstantBlock, Module, Param, Place, Sampler, Slot, Stage, Variable};
use reconverge_isa::{Image, Isa, Program};

use crate::bytes::{Bytes, little_endian, words};
use crate::elf::{self, Elf, Section};
use crate::{Error, Format, limits};

pub use write::write;

/// The relocation that writes a 32-bit address. No other relocation has a known meaning.
const ABSOLUTE_32: u32 = 2;

/// Attributes whose value is a number. These attributes become state of the program. The names of the state are the
/// names that `cuobjdump` prints.
#[rustfmt::skip]
const NUMBERS: [(u8, &str); 8] = [
    (0x04, "EIATTR_CTAIDZ_USED"),
    (0x0a, "EIATTR_PARAM_CBANK"),
    (0x11, "EIATTR_FRAME_SIZE"),
    (0x12, "EIATTR_MIN_STACK_SIZE"),
    (0x13, "EIATTR_SAMPLER_FORCE_UNNORMALIZED"),
    (0x19, "EIATTR_CBANK_PARAM_SIZE"),
    (0x1b, "EIATTR_MAXREG_COUNT"),
    (0x1e, "EIATTR_CRS_STACK_SIZE"),
];

/// Attributes with three numbers as value: x, y and z.
const TRIPLES: [(u8, &str); 2] = [(0x05, "EIATTR_MAX_THREADS"), (0x10, "EIATTR_REQNTID")];

/// Prefixes of section names that end with the name of a kernel.
const SHARED: &str = ".nv.shared.";
const LOCAL: &str = ".nv.local.";
const INFO: &str = ".nv.info.";

/// Reads an ELF cubin of either width.
///
/// The image has one module. The programs of the module are the `.text.NAME` sections, in the order of the file.
pub fn load(bytes: &[u8]) -> Result<Image, Error> {
    let elf = elf::read(bytes, elf::MACHINE_CUDA)?;
    let format = if elf.wide { Format::CubinElf64 } else { Format::CubinElf32 };
    // e_flags bits 7:0: the SM version of the code.
    let chip = match elf.flags & 0xff {
        sm @ 10..=13 => format!("sm_{sm}"),
        sm => {
            return Err(Error::OtherChip {
                found: format!("sm_{sm}"),
                expected: "sm_10, sm_11, sm_12 or sm_13",
            });
        }
    };
    let mut image =
        Image { format: format.name(), isa: Some(Isa::Tesla), chip: Some(chip.clone()), ..Image::default() };
    let pointer_bytes = Some(if elf.wide { 8 } else { 4 });
    let mut module = Module { chip: Some(chip), pointer_bytes, ..Module::default() };
    let mut kernels: HashMap<&str, usize> = HashMap::new();
    for section in &elf.sections {
        let Some(name) = section.name.strip_prefix(".text.") else { continue };
        if kernels.insert(name, image.programs.len()).is_some() {
            return Err(Error::Duplicate { what: "kernel", name: name.to_owned() });
        }
        image.programs.push(kernel(name, section)?);
    }
    if image.programs.is_empty() {
        return Err(Error::missing("a kernel", "expected a section named .text.NAME"));
    }
    let mut debug = Vec::new();
    for section in &elf.sections {
        let name = section.name;
        let owner = |rest: &str| kernels.get(rest).copied();
        let size = |what, limit| limits::at_most(what, section.offset, section.size, limit);
        let of_kernel =
            [SHARED, LOCAL, INFO].into_iter().find_map(|start| Some((start, name.strip_prefix(start)?)));
        if let Some(rest) = name.strip_prefix(".nv.constant") {
            let (bank, rest) = rest.split_at(rest.bytes().take_while(u8::is_ascii_digit).count());
            let bank = constant_bank(bank, section)?;
            size("the size of a constant section", limits::BANK_BYTES)?;
            let block = (!section.data.is_empty()).then(|| ConstantBlock {
                bank,
                offset: 0,
                bytes: section.data.to_vec(),
            });
            match (rest.strip_prefix('.'), rest.strip_prefix('.').and_then(owner)) {
                (_, Some(kernel)) => image.programs[kernel].constants.extend(block),
                (None, None) if rest.is_empty() => module.constants.extend(block),
                (_, None) => image.notes.push(no_kernel(section)),
            }
        } else if let Some((kind, kernel)) = of_kernel {
            match (kind, owner(kernel).map(|kernel| &mut image.programs[kernel])) {
                (_, None) => image.notes.push(no_kernel(section)),
                (SHARED, Some(program)) => {
                    let bytes = size("the size of shared memory", limits::SHARED_BYTES)?;
                    program.resources.shared_bytes = Some(bytes);
                }
                (LOCAL, Some(program)) => {
                    let bytes = size("the size of local memory", limits::LOCAL_BYTES)?;
                    program.resources.local_bytes = Some(bytes);
                }
                (_, Some(program)) => attributes(&elf, section, Some(program), &mut image.notes)?,
            }
        } else if name == ".nv.info" {
            attributes(&elf, section, None, &mut image.notes)?;
        } else if is_debug(name) {
            debug.push(name);
        } else if !is_plumbing(section) {
            image.notes.push(format!("section {name} has no known meaning and was skipped"));
        }
    }
    if let [first, rest @ ..] = &debug[..] {
        let more = if rest.is_empty() { String::new() } else { format!(" and {} more", rest.len()) };
        image.notes.push(format!("debug information ({first}{more}) was skipped"));
    }
    module.variables = variables(&elf)?;
    image.modules.push(module);
    Ok(image)
}

fn no_kernel(section: &Section<'_>) -> String {
    format!("the kernel of section {} does not exist, so the section was skipped", section.name)
}

/// Returns whether a section has debug information in DWARF or in NVIDIA's format.
fn is_debug(name: &str) -> bool {
    [".debug", ".nv_debug"].iter().any(|start| name.starts_with(start))
}

/// Returns whether this code may skip a section without a message. This code may skip a section if other code reads the
/// section, or if the section contains no data of a program.
fn is_plumbing(section: &Section<'_>) -> bool {
    let name = section.name;
    name.is_empty()
        || name.starts_with(".text.")
        || name.starts_with(".rel")
        || [".shstrtab", ".strtab", ".symtab", ".nv.global", ".nv.global.init"].contains(&name)
}

fn constant_bank(digits: &str, section: &Section<'_>) -> Result<u32, Error> {
    // If the suffix is not a number or is too large for 64 bits, the bank becomes `u64::MAX`, which is not a valid
    // bank.
    let bank = digits.parse().unwrap_or(u64::MAX);
    limits::at_most("the bank of a constant section", section.offset, bank, limits::LAST_BANK)
}

fn kernel(name: &str, section: &Section<'_>) -> Result<Program, Error> {
    if section.kind != elf::PROGBITS {
        let expected = format!("{} (PROGBITS)", elf::PROGBITS);
        return Err(Error::value("the type of a .text section", section.offset, section.kind, expected));
    }
    let mut program = little_endian(words("a .text section", section.offset, section.data)?, section.offset);
    program.name = Some(name.to_owned());
    program.stage = Some(Stage::Compute);
    // sh_info bits 31:24: registers; sh_flags bits 26:20: barriers.
    let registers = u64::from(section.info >> 24);
    program.resources.registers = Some(limits::at_most(
        "the register count of a kernel",
        section.offset,
        registers,
        limits::REGISTERS,
    )?);
    let barriers = section.flags >> 20 & 0x7f;
    program.resources.barriers =
        Some(limits::at_most("the barrier count of a kernel", section.offset, barriers, limits::BARRIERS)?);
    Ok(program)
}

/// Reads a list of attribute records. In formats 1 to 3, a record consists of a format, an attribute and a value. In
/// format 4, the record contains the length of a value, and the value follows the record.
fn attributes(
    elf: &Elf<'_>,
    section: &Section<'_>,
    mut program: Option<&mut Program>,
    notes: &mut Vec<String>,
) -> Result<(), Error> {
    const RECORD: &str = "an attribute record";
    let data = Bytes::part(section.data, section.offset);
    let mut at = 0;
    let (mut unknown, mut offsets) = (Vec::new(), Vec::new());
    while at < section.data.len() as u64 {
        let format = data.u8(RECORD, at)?;
        let attribute = data.u8(RECORD, at + 1)?;
        let short = data.u16(RECORD, at + 2)?;
        let start = section.offset + at;
        at += 4;
        let immediate;
        let value: &[u8] = match format {
            1..=3 => {
                immediate = short.to_le_bytes();
                &immediate
            }
            4 => {
                let value = data.slice(RECORD, at, u64::from(short))?;
                at += u64::from(short);
                value
            }
            found => return Err(Error::value("the format of an attribute", start, found, "1 to 4")),
        };
        let known = match &mut program {
            Some(program) => attribute_of_kernel(elf, program, attribute, value, start, &mut offsets)?,
            None => false,
        };
        if !known && unknown.len() < 32 && !unknown.contains(&attribute) {
            unknown.push(attribute);
        }
    }
    if let Some(program) = program {
        if program.params.is_empty() && !offsets.is_empty() {
            program.params = parameters_of_offsets(offsets, program.resources.param_bytes);
            if program.params.is_empty() {
                notes.push(format!("{}: parameter offsets without sizes were skipped", section.name));
            }
        }
        program.params.sort_by_key(|param| param.offset);
    }
    if !unknown.is_empty() {
        let list: Vec<String> = unknown.iter().map(|attribute| format!("{attribute:#04x}")).collect();
        notes.push(format!("{}: attributes {} were skipped", section.name, list.join(", ")));
    }
    Ok(())
}

/// Returns the parameters of a kernel for a file that states only the offset of each parameter and the total size of
/// the parameters. Each parameter ends at the start of the following parameter, so the size of a parameter includes any
/// padding. Returns an empty list if the end of the last parameter is unknown.
fn parameters_of_offsets(mut offsets: Vec<u32>, all: Option<u32>) -> Vec<Param> {
    offsets.sort_unstable();
    let ends = offsets.iter().copied().skip(1).chain(all);
    let params: Vec<Param> = offsets
        .iter()
        .zip(ends)
        .filter(|(offset, end)| end > *offset)
        .map(|(&offset, end)| Param { name: None, offset, bytes: end - offset })
        .collect();
    if params.len() == offsets.len() { params } else { Vec::new() }
}

/// Adds an attribute to the program. Returns whether the attribute is known.
fn attribute_of_kernel(
    elf: &Elf<'_>,
    program: &mut Program,
    attribute: u8,
    value: &[u8],
    at: u64,
    offsets: &mut Vec<u32>,
) -> Result<bool, Error> {
    let words: Vec<u32> = value.as_chunks::<4>().0.iter().map(|word| u32::from_le_bytes(*word)).collect();
    let number = match value {
        [low, high] => Some(u32::from(u16::from_le_bytes([*low, *high]))),
        // In the value of a frame-size attribute, the first word is the index of the function. The last word is the
        // size.
        _ if words.len() <= 2 && value.len() == 4 * words.len() => words.last().copied(),
        _ => None,
    };
    match attribute {
        // EIATTR_IMAGE_SLOT: symbol of the texture reference, unit.
        0x02 => {
            let [symbol, unit] = words[..] else { return Ok(false) };
            let Some(symbol) = elf.symbols.get(symbol as usize) else {
                let expected = format!("the index of a symbol, below {}", elf.symbols.len());
                return Err(Error::value("the symbol of a texture", at, symbol, expected));
            };
            program.samplers.push(Sampler { name: symbol.name.to_owned(), unit });
        }
        // EIATTR_SMEM_PARAM_OFFSETS has one word per parameter. The low half of each word is the offset of the
        // parameter. Tools of CUDA 3.0 and 3.1 describe the parameters only with this record. Later tools also write
        // KPARAM_INFO. See `parameters_of_offsets`.
        0x0b => {
            if words.is_empty() || value.len() != 4 * words.len() || words.iter().any(|word| *word >> 16 != 0)
            {
                return Ok(false);
            }
            offsets.clone_from(&words);
        }
        // EIATTR_KPARAM_INFO. The value has three words. The first word is -1 or 0. The second word has the index (16
        // bits) and the offset (16 bits). The third word is size << 18 | flags.
        0x17 => {
            let [_, place, size] = words[..] else { return Ok(false) };
            program.params.push(Param { name: None, offset: place >> 16, bytes: size >> 18 });
        }
        // EIATTR_SMEM_PARAM_SIZE.
        0x18 => {
            let Some(number) = number else { return Ok(false) };
            program.resources.param_bytes = Some(number);
        }
        _ => {
            let named = |names: &[(u8, &'static str)]| {
                names.iter().find(|(known, _)| *known == attribute).map(|(_, name)| *name)
            };
            match (named(&NUMBERS), number, named(&TRIPLES), &words[..]) {
                (Some(name), Some(number), ..) => program.state.push((name.to_owned(), number)),
                (.., Some(name), [x, y, z]) => {
                    let axes = [("X", x), ("Y", y), ("Z", z)];
                    program.state.extend(axes.map(|(axis, value)| (format!("{name}_{axis}"), *value)));
                }
                _ => return Ok(false),
            }
        }
    }
    Ok(true)
}

/// Returns the variables of the module: named objects in constant banks and in global memory. For a variable in global
/// memory, the result also contains the constant words that hold the address of the variable.
fn variables(elf: &Elf<'_>) -> Result<Vec<Variable>, Error> {
    let mut slots = address_slots(elf)?;
    let mut variables = Vec::new();
    // The function copies the contents of variables. The total size of the copies is limited to the total size of the
    // sections. Only a file with overlapping objects exceeds this limit. Such a file is damaged.
    let mut left: u64 = elf.sections.iter().map(|section| section.data.len() as u64).sum();
    for (index, symbol) in elf.symbols.iter().enumerate() {
        if symbol.kind != elf::OBJECT && !slots.contains_key(&index) {
            continue;
        }
        let Some(section) = elf.sections.get(usize::from(symbol.section)) else { continue };
        let end = symbol.value.checked_add(symbol.size);
        let (Some(end), Ok(bytes)) = (end.filter(|end| *end <= section.size), u32::try_from(symbol.size))
        else {
            return Err(Error::Truncated {
                what: "an object of the symbol table",
                at: section.offset.saturating_add(symbol.value),
                wanted: symbol.size,
                size: section.offset.saturating_add(section.size),
            });
        };
        let place = if let Some(bank) = section.name.strip_prefix(".nv.constant") {
            let digits = bank.split('.').next().unwrap_or("");
            Place::Constant { bank: constant_bank(digits, section)?, offset: symbol.value as u32 }
        } else if section.name.starts_with(".nv.global") {
            let init = section.data.get(symbol.value as usize..end as usize).unwrap_or(&[]);
            left = left.checked_sub(init.len() as u64).ok_or_else(|| Error::Overlap {
                first: "objects of the symbol table".to_owned(),
                second: format!("object `{}`", symbol.name),
                at: section.offset.saturating_add(symbol.value),
            })?;
            Place::Global { slots: slots.remove(&index).unwrap_or_default(), init: init.to_vec() }
        } else {
            continue;
        };
        variables.push(Variable { name: symbol.name.to_owned(), bytes, place });
    }
    Ok(variables)
}

/// For each symbol, returns the words in constant banks that contain the address of the symbol. The key of the map is
/// the index of the symbol.
///
/// A relocation must write a word in a constant section, and the symbol of the relocation must be in global memory. So
/// the result of a relocation cannot depend on another relocation.
fn address_slots(elf: &Elf<'_>) -> Result<HashMap<usize, Vec<Slot>>, Error> {
    let mut slots: HashMap<usize, Vec<Slot>> = HashMap::new();
    let objects: BTreeMap<(u16, u64), usize> = elf
        .symbols
        .iter()
        .enumerate()
        .filter(|(_, symbol)| symbol.kind == elf::OBJECT)
        .map(|(index, symbol)| ((symbol.section, symbol.value), index))
        .collect();
    for section in elf.sections.iter().filter(|section| matches!(section.kind, elf::REL | elf::RELA)) {
        let wrong = |to: String| {
            Err(Error::Relocation {
                at: section.offset,
                why: format!("section {} applies to {to}", section.name),
            })
        };
        let Some(target) = elf.sections.get(section.info as usize) else {
            return wrong(format!("section {}, which does not exist", section.info));
        };
        let name = target.name;
        if matches!(target.kind, elf::REL | elf::RELA) {
            return wrong(format!("relocation section {name}: relocations may not form a chain or a cycle"));
        }
        // Relocations of debug information are skipped, because this data is not loaded.
        if is_debug(name) {
            continue;
        }
        if !name.starts_with(".nv.constant") {
            return wrong(format!("{name}: only relocations of constant banks are known"));
        }
        let digits = name.trim_start_matches(".nv.constant").split('.').next().unwrap_or("");
        let bank = constant_bank(digits, target)?;
        for record in elf.relocations(section)? {
            let bad = |why: String| Err(Error::Relocation { at: record.at, why });
            if record.kind != ABSOLUTE_32 {
                return bad(format!(
                    "has type {}: only type {ABSOLUTE_32} (32-bit address) is known",
                    record.kind
                ));
            }
            let Some(symbol) = elf.symbols.get(record.symbol as usize) else {
                return bad(format!("names symbol {}, but there are {}", record.symbol, elf.symbols.len()));
            };
            let Some(home) = elf.sections.get(usize::from(symbol.section)).filter(|_| symbol.section != 0)
            else {
                return bad(format!("names symbol `{}`, which is not defined in this file", symbol.name));
            };
            if home.name.starts_with(".nv.constant") {
                return bad(format!(
                    "puts the address of `{}` of {} into {}: expected a symbol of global memory, because relocations \
                     must not form a cycle",
                    symbol.name, home.name, target.name
                ));
            }
            if !home.name.starts_with(".nv.global") {
                return bad(format!(
                    "names symbol `{}` of {}, expected a symbol of .nv.global",
                    symbol.name, home.name
                ));
            }
            if record.offset.checked_add(4).is_none_or(|end| end > target.size) {
                return bad(format!(
                    "writes at {:#x}, but {} has {} bytes",
                    record.offset, target.name, target.size
                ));
            }
            // If a relocation record has no addend, the addend is in the word that the relocation changes.
            let there = Bytes::of(target.data).u32("a relocated word", record.offset).unwrap_or(0);
            let addend = record.addend.map_or(there, |addend| addend as u32);
            let mut slot = Slot { bank, offset: record.offset as u32, addend };
            let mut index = record.symbol as usize;
            if symbol.kind == elf::SECTION {
                // A section symbol stands for the first byte of the section, so the addend selects the object.
                let reached = symbol.value.saturating_add(u64::from(addend));
                let before = (symbol.section, 0)..=(symbol.section, reached);
                let Some((place, object)) = objects.range(before).next_back() else {
                    return bad(format!(
                        "accesses byte {reached:#x} of {}, which is outside all objects",
                        home.name
                    ));
                };
                slot.addend = (reached - place.1) as u32;
                index = *object;
            }
            slots.entry(index).or_default().push(slot);
        }
    }
    Ok(slots)
}
