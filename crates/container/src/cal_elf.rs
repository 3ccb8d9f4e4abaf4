//! AMD CAL images (R600 and R700). CAL's compiler generates these ELF files, alone or inside an OpenCL binary.
//!
//! ```text
//! ELF header              32 bits, OS ABI 100, machine 125
//! dictionary segment      a row for each encoding: machine, type, offset and size of its segments, flags
//! PT_NOTE and PT_LOAD     of each encoding; the sections .text, .data, .symtab and .strtab lie in the latter
//! ```
//! (Sources: AMD's `amuABI.h`, and Multi2Sim's reader of the same format for later chips.) An image can contain the
//! same program several times: for several chips, and in the intermediate language. Programs in the intermediate
//! language are skipped. Literal constants are not read. The register addresses in the notes are inferred, because no
//! file of this generation was available.

use reconverge_isa::program::{Module, Stage};
use reconverge_isa::{Image, Isa};

use crate::bytes::{Bytes, little_endian, rows, words};
use crate::elf::{self, Elf, Segment};
use crate::error::Unread;
use crate::r600_elf::{register_name, resources_of};
use crate::{Error, Format};

const OS_ABI: u8 = 100;
/// The note that contains pairs of a register address and a value.
const PROGRAM_INFORMATION: u32 = 1;

/// Machine numbers of the chips whose code is read. The numbers 5 to 8 stand for the intermediate language. All other
/// numbers stand for later chips.
#[rustfmt::skip]
const CHIPS: [(u32, &str); 7] = [
    (0, "r600"), (1, "rv610"), (2, "rv630"), (3, "rv670"), (4, "rv770"), (11, "rv710"), (12, "rv730"),
];

/// Program types.
const STAGES: [Stage; 5] = [Stage::Pixel, Stage::Vertex, Stage::Geometry, Stage::Fetch, Stage::Compute];

/// Reads an image. Each encoding for a chip of this generation becomes a program.
pub fn load(bytes: &[u8]) -> Result<Image, Error> {
    let elf = elf::read(bytes, elf::MACHINE_CAL)?;
    if elf.os_abi != OS_ABI {
        return Err(Error::value("the OS ABI", 7, elf.os_abi, format!("{OS_ABI} (CAL image)")));
    }
    let mut image = Image { format: Format::CalElf.name(), isa: Some(Isa::R700), ..Image::default() };
    let Some(dictionary) = elf.segments.iter().find(|segment| segment.kind == elf::PT_DICTIONARY) else {
        let remedy = format!("expected a segment of type {:#x}", elf::PT_DICTIONARY);
        return Err(Error::missing("the encoding dictionary", remedy));
    };
    let entries = words("the encoding dictionary", dictionary.offset, dictionary.data)?;
    let entries = rows::<5>("the encoding dictionary", dictionary.offset, &entries)?;
    let mut unread = Unread::default();
    for (number, [machine, kind, offset, size, _]) in (1..).zip(entries) {
        let name = format!("encoding {number}");
        let read = match CHIPS.iter().find(|(known, _)| known == machine) {
            Some((_, chip)) => encoding(&elf, &mut image, (u64::from(*offset), u64::from(*size)), *kind)
                .map(|()| (*chip).to_owned()),
            None if (5..=8).contains(machine) => {
                image.notes.push(format!("{name}: intermediate language, not machine code, was skipped"));
                continue;
            }
            None => Err(Error::OtherChip {
                found: format!("CAL machine {machine} (a later chip)"),
                expected: "0 to 4, 11 or 12: R600, RV610, RV630, RV670, RV770, RV710, RV730",
            }),
        };
        match read {
            Ok(chip) => {
                if let Some(program) = image.programs.last_mut() {
                    program.module = image.modules.len();
                }
                let name = format!("{name}, {chip}");
                image.modules.push(Module { name: Some(name), chip: Some(chip), ..Module::default() });
            }
            Err(source) => {
                unread.push(Error::Member { name, at: u64::from(*offset), source: Box::new(source) });
            }
        }
    }
    let remedy =
        format!("the image has {} encodings, but no encoding has machine code of a chip", entries.len());
    unread.settle(&mut image, "machine code", remedy)?;
    let first = image.modules[0].chip.clone();
    image.chip = first.filter(|first| image.modules.iter().all(|module| module.chip.as_ref() == Some(first)));
    Ok(image)
}

/// Adds the program of an encoding. `place` (offset, size) is the range of the encoding's segments.
fn encoding(elf: &Elf<'_>, image: &mut Image, place: (u64, u64), kind: u32) -> Result<(), Error> {
    let inside = |at: u64, (start, bytes): (u64, u64)| at >= start && at - start < bytes;
    let segment = |kind| {
        let mut segments =
            elf.segments.iter().filter(|segment| segment.kind == kind && inside(segment.offset, place));
        segments.next()
    };
    let Some(code) = segment(elf::PT_LOAD) else {
        return Err(Error::missing("the encoding's code", "expected a PT_LOAD segment in its place"));
    };
    let code = (code.offset, code.data.len() as u64);
    let text = elf.sections.iter().find(|section| section.name == ".text" && inside(section.offset, code));
    let Some(text) = text else {
        let remedy = "expected a section .text in its PT_LOAD segment";
        return Err(Error::missing("the encoding's code", remedy));
    };
    let mut program = little_endian(words("a .text section", text.offset, text.data)?, text.offset);
    program.stage = STAGES.get(kind as usize).copied();
    if program.stage.is_none() {
        image.notes.push(format!("program type {kind} has no known meaning"));
    }
    if let Some(notes) = segment(elf::PT_NOTE) {
        program.state = registers(notes)?;
    }
    for (name, value) in &program.state {
        if name.starts_with("SQ_PGM_RESOURCES") {
            program.resources = resources_of(*value);
        }
    }
    image.programs.push(program);
    Ok(())
}

/// Returns the registers of the program information. In some files, the register addresses are in bytes. In other
/// files, the addresses are in words of four bytes.
fn registers(notes: &Segment<'_>) -> Result<Vec<(String, u32)>, Error> {
    const NOTE: &str = "a note";
    let data = Bytes::part(notes.data, notes.offset);
    let mut state = Vec::new();
    let mut at = 0;
    while at < notes.data.len() as u64 {
        let name_bytes = u64::from(data.u32(NOTE, at)?);
        let bytes = u64::from(data.u32(NOTE, at + 4)?);
        let kind = data.u32(NOTE, at + 8)?;
        let start = at + 12 + name_bytes;
        let content = data.slice(NOTE, start, bytes)?;
        at = start + bytes;
        if kind != PROGRAM_INFORMATION {
            continue;
        }
        for pair in words("the program information", notes.offset + start, content)?.as_chunks::<2>().0 {
            let [address, value] = *pair;
            let name = register_name(address).or_else(|| register_name(address.wrapping_mul(4)));
            state.push((name.map_or_else(|| format!("{address:#07x}"), str::to_owned), value));
        }
    }
    Ok(state)
}
