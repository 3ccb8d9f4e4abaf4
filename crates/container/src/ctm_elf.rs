//! ATI CTM executables for the R500 ("DPP programs"). (CTM guide pp. 45-49)
//!
//! The notes that the guide defines are named "ATI DPP". The notes contain the program information, the inputs and
//! outputs, the conditional output, the float and integer constants in use, and the early exit. Only the first two
//! words of the program information are known. These words are a reserved 1 and the value for FG_DEPTH_SRC. State
//! registers and constant values are therefore in separate notes. This project defines the separate notes and names
//! these notes "Reconverge". `docs/ctm-elf.md` describes these notes. The type numbers 2 to 5 of the guide's notes are
//! inferred from the order of the notes in the guide.

use object::Endianness;
use object::elf as raw;
use object::write::elf::{FileHeader, ProgramHeader, SectionHeader, Sym, Writer};
use reconverge_isa::program::{ConstantBlock, Stage};
use reconverge_isa::{Image, Isa, Program};

use crate::bytes::{Bytes, little_endian, rows, to_bytes, words};
use crate::elf;
use crate::error::quoted;
use crate::{Error, Format, Written};

const OS_ABI: u8 = 98;
const ABI_VERSION: u8 = 1;
const FLAGS: u32 = 1;
const EXECUTABLE: u16 = 2;
/// PF_X: the segment contains code.
const PF_X: u32 = 1;

/// Name of the guide's notes, eight bytes with the terminating zero.
const ATI: &[u8] = b"ATI DPP\0";
/// Name of this project's notes.
const OWN: &[u8] = b"Reconverge\0";

mod ati {
    pub(super) const PROGRAM_INFORMATION: u32 = 1;
    pub(super) const INPUTS: u32 = 2;
    pub(super) const OUTPUTS: u32 = 3;
    pub(super) const CONDITIONAL_OUTPUT: u32 = 4;
    pub(super) const FLOAT_CONSTANTS: u32 = 5;
    pub(super) const INTEGER_CONSTANTS: u32 = 6;
    pub(super) const EARLY_EXIT: u32 = 7;
}

mod own {
    pub(super) const STATE: u32 = 1;
    pub(super) const CONSTANTS: u32 = 2;
}

/// Consecutive registers: name, address of the first register, and number of registers. If there is only one register,
/// the name of the register has no number.
struct Registers(&'static str, u32, u32);

// Sources: the register reference of the R5xx acceleration guide, and Mesa's r300 driver for the addresses of RS_*.
#[rustfmt::skip]
const REGISTERS: [Registers; 14] = [
    Registers("US_CONFIG",       0x4600, 1),
    Registers("US_PIXSIZE",      0x4604, 1),
    Registers("US_FC_BOOL_CONST", 0x4620, 1),
    Registers("US_FC_CTRL",      0x4624, 1),
    Registers("US_CODE_ADDR",    0x4630, 1),
    Registers("US_CODE_RANGE",   0x4634, 1),
    Registers("US_CODE_OFFSET",  0x4638, 1),
    Registers("US_FORMAT0",      0x4640, 16),
    Registers("US_OUT_FMT",      0x46a4, 4),
    Registers("US_W_FMT",        0x46b4, 1),
    Registers("US_FC_INT_CONST", 0x4c00, 32),
    Registers("FG_DEPTH_SRC",    0x4bd8, 1),
    Registers("RS_COUNT",        0x4300, 1),
    Registers("RS_INST_COUNT",   0x4304, 1),
];
/// The rasteriser's lists, of 16 registers each.
const LISTS: [Registers; 2] = [Registers("RS_IP", 0x4074, 16), Registers("RS_INST", 0x4320, 16)];

const DEPTH_SOURCE: &str = "FG_DEPTH_SRC";

fn registers() -> impl Iterator<Item = (String, u32)> {
    REGISTERS.iter().chain(&LISTS).flat_map(|Registers(name, first, count)| {
        (0..*count).map(move |index| {
            let name = if *count == 1 { (*name).to_owned() } else { format!("{name}_{index}") };
            (name, first + 4 * index)
        })
    })
}

/// Returns the MMIO address of a state register. `name` is the register's name in the manual, or `0x…` for a register
/// that the table does not contain.
fn register_address(name: &str) -> Option<u32> {
    let known = registers().find(|(known, _)| known == name).map(|(_, address)| address);
    known.or_else(|| name.strip_prefix("0x").and_then(|digits| u32::from_str_radix(digits, 16).ok()))
}

fn register_name(address: u32) -> String {
    let known = registers().find(|(_, known)| *known == address).map(|(name, _)| name);
    known.unwrap_or_else(|| format!("{address:#06x}"))
}

/// Reads an executable, which contains one program.
///
/// A file without this project's state note is also loaded. In this case, a note in the loaded image names the missing
/// data.
pub fn load(bytes: &[u8]) -> Result<Image, Error> {
    let elf = elf::read(bytes, elf::MACHINE_R5XX)?;
    if elf.wide {
        return Err(Error::value("the ELF class", 4, 2_u8, "1 (32 bits)"));
    }
    if (elf.os_abi, elf.abi_version) != (OS_ABI, ABI_VERSION) {
        let found = u64::from(elf.os_abi) << 8 | u64::from(elf.abi_version);
        return Err(Error::value("the OS ABI and its version", 7, found, "0x6201 (ATI, version 1)"));
    }
    if elf.kind != EXECUTABLE {
        return Err(Error::value("the ELF type", 16, elf.kind, "2 (executable)"));
    }
    if elf.flags != FLAGS {
        return Err(Error::value("e_flags", 36, elf.flags, "1 (DPP program)"));
    }
    let mut image = Image { format: Format::CtmElf.name(), isa: Some(Isa::R500), ..Image::default() };
    if elf.entry != 0 {
        image.notes.push(format!("expected the entry address 0, found {:#x}; it is ignored", elf.entry));
    }
    let (at, code) = code(&elf)?;
    let mut program =
        Program { stage: Some(Stage::Pixel), ..little_endian(words("the code", at, code)?, at) };
    if !program.words.len().is_multiple_of(6) {
        image.notes.push(format!(
            "the code has {} words, which is not a multiple of 6, the words of an instruction",
            program.words.len()
        ));
    }
    program.name =
        elf.symbols.iter().find(|symbol| symbol.kind == elf::FUNC).map(|symbol| symbol.name.to_owned());
    let mut found = Found::default();
    note_segments_apart(&elf)?;
    for segment in elf.segments.iter().filter(|segment| segment.kind == elf::PT_NOTE) {
        notes(segment.data, segment.offset, &mut program, &mut found, &mut image.notes)?;
    }
    let Some(depth_source) = found.depth_source else {
        let what = "the note with the program information (ATI DPP, type 1)";
        return Err(Error::missing(
            what,
            "the CTM guide requires this note; the PT_NOTE segment may be missing",
        ));
    };
    match program.state(DEPTH_SOURCE) {
        Some(state) if state != depth_source => {
            image.notes.push(format!(
                "FG_DEPTH_SRC is {depth_source:#x} in the program information and {state:#x} in the state note; the \
                 value of the state note is used"
            ));
        }
        Some(_) => {}
        // If a file has a state note, this note lists all state. If the state note does not list this register, the
        // zero in the program information is not a value of this register. The zero only fills the field that the guide
        // requires.
        None if found.state && depth_source == 0 => {}
        None => program.state.insert(0, (DEPTH_SOURCE.to_owned(), depth_source)),
    }
    if !found.state {
        image.notes.push(
            "no state note: US_CONFIG, US_PIXSIZE, US_FC_CTRL, US_CODE_ADDR, US_CODE_RANGE, US_CODE_OFFSET, \
             US_OUT_FMT_n, US_FC_BOOL_CONST and US_FC_INT_CONST_n are missing (where the program information has \
             them is not documented); the only assumption is that the program consists of all instructions \
             of the code"
                .to_owned(),
        );
    }
    if !found.constants && program.usage.float_constants.as_ref().is_some_and(|used| !used.is_empty()) {
        image.notes.push("float constants are used, and their values are not in this file".to_owned());
    }
    image.programs.push(program);
    Ok(image)
}

/// The facts that the notes of a file contain.
#[derive(Default)]
struct Found {
    depth_source: Option<u32>,
    state: bool,
    constants: bool,
}

/// Returns the offset and bytes of the code. If there are sections, the code is `.text`. Otherwise, the code is the
/// only executable segment.
fn code<'a>(elf: &elf::Elf<'a>) -> Result<(u64, &'a [u8]), Error> {
    let loads: Vec<_> = elf
        .segments
        .iter()
        .filter(|segment| segment.kind == elf::PT_LOAD && segment.flags & PF_X != 0)
        .collect();
    let [load] = loads[..] else {
        let remedy = format!("expected exactly one executable PT_LOAD segment, found {}", loads.len());
        return Err(Error::missing("the code", remedy));
    };
    let Some(text) = elf.sections.iter().find(|section| section.name == ".text") else {
        return Ok((load.offset, load.data));
    };
    let inside = text.kind == elf::PROGBITS
        && text.offset >= load.offset
        && text.offset + text.size <= load.offset + load.data.len() as u64;
    if !inside {
        let expected = format!("inside the PT_LOAD segment at {:#x}", load.offset);
        return Err(Error::value("the place of .text", text.offset, text.offset, expected));
    }
    Ok((text.offset, text.data))
}

/// Rejects note segments that share bytes. Without this check, reading a small file could need many times the size of
/// the file in memory.
fn note_segments_apart(elf: &elf::Elf<'_>) -> Result<(), Error> {
    let mut segments: Vec<_> = elf.segments.iter().filter(|segment| segment.kind == elf::PT_NOTE).collect();
    segments.sort_by_key(|segment| segment.offset);
    for pair in segments.windows(2) {
        if pair[0].offset + pair[0].data.len() as u64 > pair[1].offset {
            return Err(Error::overlap("a PT_NOTE segment", "the next one", pair[1].offset));
        }
    }
    Ok(())
}

fn notes(
    data: &[u8],
    base: u64,
    program: &mut Program,
    found: &mut Found,
    passed: &mut Vec<String>,
) -> Result<(), Error> {
    const NOTE: &str = "a note";
    let bytes = Bytes::part(data, base);
    let mut at = 0;
    while at < data.len() as u64 {
        let start = base + at;
        let name_bytes = u64::from(bytes.u32(NOTE, at)?);
        let desc_bytes = u64::from(bytes.u32(NOTE, at + 4)?);
        let kind = bytes.u32(NOTE, at + 8)?;
        let name = bytes.slice(NOTE, at + 12, name_bytes)?;
        let desc_at = at + 12 + name_bytes.next_multiple_of(4);
        let desc = bytes.slice(NOTE, desc_at, desc_bytes)?;
        at = desc_at + desc_bytes.next_multiple_of(4);
        let values = || words("a note's contents", base + desc_at, desc);
        let one = |values: Vec<u32>| match values[..] {
            [value] => Ok(value),
            _ => Err(Error::value("the size of a note", start, desc_bytes, "4: one word")),
        };
        let usage = &mut program.usage;
        match (name, kind) {
            (ATI, ati::PROGRAM_INFORMATION) => {
                let values = values()?;
                let [reserved, depth_source, rest @ ..] = values.as_slice() else {
                    let what = "the size of the program information";
                    let expected = "at least 8: a reserved word and FG_DEPTH_SRC";
                    return Err(Error::value(what, start, desc_bytes, expected));
                };
                if *reserved != 1 {
                    passed.push(format!(
                        "the reserved word of the program information is {reserved:#x}, expected 1"
                    ));
                }
                if !rest.is_empty() {
                    passed.push(format!(
                        "{} words of the program information after FG_DEPTH_SRC do not have a documented meaning and were skipped",
                        rest.len()
                    ));
                }
                found.depth_source = Some(*depth_source);
            }
            (ATI, ati::INPUTS) => usage.inputs = Some(values()?),
            (ATI, ati::OUTPUTS) => usage.outputs = Some(values()?),
            (ATI, ati::CONDITIONAL_OUTPUT) => usage.conditional_output = Some(flag(one(values()?)?, start)?),
            (ATI, ati::FLOAT_CONSTANTS) => usage.float_constants = Some(values()?),
            (ATI, ati::INTEGER_CONSTANTS) => usage.integer_constants = Some(values()?),
            (ATI, ati::EARLY_EXIT) => usage.early_exit = Some(flag(one(values()?)?, start)?),
            (OWN, own::STATE) => {
                let values = values()?;
                let pairs = rows::<2>("the state note", start, &values)?;
                program.state.extend(pairs.iter().map(|[address, value]| (register_name(*address), *value)));
                found.state = true;
            }
            (OWN, own::CONSTANTS) => {
                constants(&values()?, start, program)?;
                found.constants = true;
            }
            _ => passed.push(format!(
                "a note of type {kind} at byte {start:#x} has no known meaning and was skipped"
            )),
        }
    }
    Ok(())
}

fn flag(value: u32, at: u64) -> Result<bool, Error> {
    match value {
        0 => Ok(false),
        1 => Ok(true),
        found => Err(Error::value("a note's flag", at, found, "0 or 1")),
    }
}

/// Size in bytes of a constant's four components.
const VECTOR_BYTES: u32 = 16;
/// Number of float constants of the chip.
const CONSTANTS: u32 = 256;

/// Adds the entries of a note to the constants of the program. Each entry consists of an index and four words. Entries
/// with consecutive indices form one block.
fn constants(values: &[u32], at: u64, program: &mut Program) -> Result<(), Error> {
    let mut block: Option<ConstantBlock> = None;
    for [index, vector @ ..] in rows::<5>("the constants note", at, values)? {
        if *index >= CONSTANTS {
            let expected = format!("below {CONSTANTS}");
            return Err(Error::value("the index of a float constant", at, *index, expected));
        }
        let offset = index * VECTOR_BYTES;
        match &mut block {
            Some(block) if u64::from(block.offset) + block.bytes.len() as u64 == u64::from(offset) => {
                block.bytes.extend(to_bytes(vector));
            }
            _ => {
                let next = ConstantBlock { bank: 0, offset, bytes: to_bytes(vector) };
                program.constants.extend(block.replace(next));
            }
        }
    }
    program.constants.extend(block);
    Ok(())
}

/// Writes a program as an executable. [`load`] reads the executable back as the same program.
///
/// The returned notes report data that the format cannot represent. State that is not a register of the R500 is an
/// error. Constants that are not whole vectors of bank 0 are also an error.
pub fn write(program: &Program) -> Result<Written<Vec<u8>>, Error> {
    let unwritable = |what: String, remedy| Error::Unwritable { format: Format::CtmElf.name(), what, remedy };
    if let Some(name) = program.name.as_deref().filter(|name| name.contains('\0') || name.len() > 4096) {
        return Err(unwritable(
            format!("the name {}", quoted(name)),
            "up to 4096 bytes without a zero byte fit",
        ));
    }
    let mut state = Vec::new();
    for (name, value) in &program.state {
        let address = register_address(name).ok_or_else(|| {
            unwritable(
                format!("state {}", quoted(name)),
                "a register of the R500 manual fits, or 0x… with its address",
            )
        })?;
        state.extend([address, *value]);
    }
    let mut notes = Vec::new();
    let depth_source = program.state(DEPTH_SOURCE).unwrap_or(0);
    note(&mut notes, ATI, ati::PROGRAM_INFORMATION, &[1, depth_source]);
    let usage = &program.usage;
    let flag = |flag: Option<bool>| flag.map(|flag| vec![u32::from(flag)]);
    for (kind, values) in [
        (ati::INPUTS, usage.inputs.clone()),
        (ati::OUTPUTS, usage.outputs.clone()),
        (ati::CONDITIONAL_OUTPUT, flag(usage.conditional_output)),
        (ati::FLOAT_CONSTANTS, usage.float_constants.clone()),
        (ati::INTEGER_CONSTANTS, usage.integer_constants.clone()),
        (ati::EARLY_EXIT, flag(usage.early_exit)),
    ] {
        if let Some(values) = values {
            note(&mut notes, ATI, kind, &values);
        }
    }
    note(&mut notes, OWN, own::STATE, &state);
    for block in &program.constants {
        let (vectors, rest) = block.bytes.as_chunks::<16>();
        let first = block.offset / VECTOR_BYTES;
        let fits = block.bank == 0
            && block.offset % VECTOR_BYTES == 0
            && rest.is_empty()
            && !vectors.is_empty()
            && vectors.len() as u64 + u64::from(first) <= u64::from(CONSTANTS);
        if !fits {
            let what = format!(
                "{} bytes of constants at byte {} of bank {}",
                block.bytes.len(),
                block.offset,
                block.bank
            );
            return Err(unwritable(what, "expected at most 256 whole vectors of 16 bytes, in bank 0"));
        }
        let mut values = Vec::new();
        for (index, vector) in (first..).zip(vectors) {
            values.push(index);
            values.extend(vector.as_chunks::<4>().0.iter().map(|word| u32::from_le_bytes(*word)));
        }
        note(&mut notes, OWN, own::CONSTANTS, &values);
    }
    let mut left_out = Vec::new();
    if !program.params.is_empty() || !program.samplers.is_empty() || program.resources != Default::default() {
        left_out.push(
            "a CTM executable cannot represent parameters, samplers and resource counts, so the writer omits them"
                .to_owned(),
        );
    }
    if program.stage.is_some_and(|stage| stage != Stage::Pixel) {
        left_out.push(
            "a CTM executable cannot represent the stage: the file is read back as a pixel program"
                .to_owned(),
        );
    }
    let content = file(&to_bytes(&program.words), &notes, program.name.as_deref())
        .map_err(|error| unwritable(format!("the ELF file ({error})"), "a smaller program fits"))?;
    Ok(Written { content, notes: left_out })
}

fn note(notes: &mut Vec<u8>, name: &[u8], kind: u32, values: &[u32]) {
    notes.extend(to_bytes(&[name.len() as u32, 4 * values.len() as u32, kind]));
    notes.extend(name);
    notes.resize(notes.len().next_multiple_of(4), 0);
    notes.extend(to_bytes(values));
}

/// Writes the file header, two segments, the contents of the segments, and section headers. If the program has a name,
/// also writes a symbol.
fn file(text: &[u8], notes: &[u8], name: Option<&str>) -> Result<Vec<u8>, object::write::Error> {
    let mut buffer = Vec::new();
    let mut writer = Writer::new(Endianness::Little, false, &mut buffer);
    writer.reserve_file_header();
    writer.reserve_program_headers(2);
    let text_at = writer.reserve(text.len() as u64, 4);
    let notes_at = writer.reserve(notes.len() as u64, 4);
    writer.reserve_null_section_index();
    let text_name = writer.add_section_name(b".text");
    let text_index = writer.reserve_section_index();
    let note_name = writer.add_section_name(b".note");
    writer.reserve_section_index();
    let symbol_name = name.map(|name| {
        writer.reserve_null_symbol_index();
        writer.reserve_symbol_index(Some(text_index));
        writer.reserve_symtab_section_index();
        writer.reserve_strtab_section_index();
        writer.add_string(name.as_bytes())
    });
    writer.reserve_shstrtab_section_index();
    if symbol_name.is_some() {
        writer.reserve_symtab();
        writer.reserve_strtab()?;
    }
    writer.reserve_shstrtab()?;
    writer.reserve_section_headers();

    writer.write_file_header(&FileHeader {
        os_abi: raw::OsAbi(OS_ABI),
        abi_version: ABI_VERSION,
        e_type: raw::FileType(EXECUTABLE),
        e_machine: raw::Machine(elf::MACHINE_R5XX),
        e_entry: 0,
        e_flags: raw::FileFlags(FLAGS),
    })?;
    writer.write_align_program_headers();
    for (kind, flags, at, len) in
        [(elf::PT_LOAD, 4 | PF_X, text_at, text.len()), (elf::PT_NOTE, 4, notes_at, notes.len())]
    {
        writer.write_program_header(&ProgramHeader {
            p_type: raw::ProgramType(kind),
            p_flags: raw::ProgramFlags(flags),
            p_offset: at,
            p_vaddr: 0,
            p_paddr: 0,
            p_filesz: len as u64,
            p_memsz: if kind == elf::PT_LOAD { len as u64 } else { 0 },
            p_align: 4,
        });
    }
    writer.pad_until(text_at);
    writer.write(text);
    writer.pad_until(notes_at);
    writer.write(notes);
    if let Some(name) = symbol_name {
        writer.write_null_symbol();
        let st_name = writer.string_offset(Some(name));
        writer.write_symbol(&Sym {
            section: Some(text_index.0),
            st_name,
            // The symbol is a global function.
            st_info: raw::SymbolInfo(1 << 4 | elf::FUNC),
            st_other: raw::SymbolOther(0),
            st_shndx: raw::SymbolSection(0),
            st_value: 0,
            st_size: text.len() as u64,
        });
        writer.write_strtab();
    }
    writer.write_shstrtab();
    writer.write_null_section_header();
    // Flags 6 are SHF_ALLOC | SHF_EXECINSTR; type 7 is SHT_NOTE.
    for (name, kind, flags, at, len) in
        [(text_name, elf::PROGBITS, 6, text_at, text.len()), (note_name, 7, 0, notes_at, notes.len())]
    {
        let sh_name = writer.section_name_offset(Some(name));
        writer.write_section_header(&SectionHeader {
            sh_name,
            sh_type: raw::SectionType(kind),
            sh_flags: raw::SectionFlags(flags),
            sh_addr: 0,
            sh_offset: at,
            sh_size: len as u64,
            sh_link: 0,
            sh_info: 0,
            sh_addralign: 4,
            sh_entsize: 0,
        });
    }
    if symbol_name.is_some() {
        writer.write_symtab_section_header(1);
        writer.write_strtab_section_header();
    }
    writer.write_shstrtab_section_header();
    Ok(buffer)
}
