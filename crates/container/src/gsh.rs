//! Wii U shader files (`.gsh`, "Gfx2"): programs for Latte, an R700.
//!
//! ```text
//! file header   "Gfx2", header size 32, version 7.x, …                        all big endian
//! block header  "BLK{", header size 32, major, minor, type, data size, id, index
//! block data    type 3, 6, 8 the registers of a vertex, pixel, geometry program;
//!               5, 7, 9 its words, 10 the copy program: little-endian words; 1 ends the file
//! ```
//! The layouts follow wut's documentation of the GX2 structures (`gfd.h`, `gx2/shaders.h`). Other tools have extracted
//! programs from some files. The words of the extracted programs agree with the words that this module reads from the
//! same files.

use reconverge_isa::program::{Resources, Stage};
use reconverge_isa::{Image, Isa, Program};

use crate::bytes::{Bytes, little_endian, words};
use crate::error::quoted;
use crate::r600_elf::resources_of;
use crate::{Error, Format, Written};

/// First bytes of a file.
pub(crate) const MAGIC: &[u8] = b"Gfx2";
const HEADER_BYTES: u32 = 32;

/// Word indices of the fields in a register header.
struct Layout {
    what: &'static str,
    /// Single registers.
    registers: &'static [(u64, &'static str)],
    /// Lists of registers. Each entry has the index of the count, the index of the first register, the name of the
    /// first register, and the maximum count.
    counted: &'static [(u64, u64, &'static str, u32)],
    /// Index of the field with the program's size in bytes.
    size: u64,
    /// Fields that the reader ignores. A note reports an ignored field whose value is not 0.
    unread: &'static [(u64, &'static str)],
    /// Number of words in the structure.
    words: usize,
}

const VERTEX: Layout = Layout {
    what: "the vertex program's registers",
    registers: &[
        (0, "SQ_PGM_RESOURCES_VS"),
        (1, "VGT_PRIMITIVEID_EN"),
        (2, "SPI_VS_OUT_CONFIG"),
        (14, "PA_CL_VS_OUT_CNTL"),
        (15, "SQ_VTX_SEMANTIC_CLEAR"),
        (49, "VGT_STRMOUT_BUFFER_EN"),
        (50, "VGT_VERTEX_REUSE_BLOCK_CNTL"),
        (51, "VGT_HOS_REUSE_DEPTH"),
    ],
    counted: &[(3, 4, "SPI_VS_OUT_ID", 10), (16, 17, "SQ_VTX_SEMANTIC", 32)],
    size: 52,
    unread: &[
        (54, "shader mode"),
        (55, "uniform blocks"),
        (57, "uniform variables"),
        (59, "initial constant values"),
        (61, "loop variables"),
        (63, "samplers"),
        (65, "attributes"),
        (67, "ring item size"),
        (68, "stream output"),
    ],
    words: 77,
};

const PIXEL: Layout = Layout {
    what: "the pixel program's registers",
    registers: &[
        (0, "SQ_PGM_RESOURCES_PS"),
        (1, "SQ_PGM_EXPORTS_PS"),
        (2, "SPI_PS_IN_CONTROL_0"),
        (3, "SPI_PS_IN_CONTROL_1"),
        (37, "CB_SHADER_MASK"),
        (38, "CB_SHADER_CONTROL"),
        (39, "DB_SHADER_CONTROL"),
        (40, "SPI_INPUT_Z"),
    ],
    counted: &[(4, 5, "SPI_PS_INPUT_CNTL", 32)],
    size: 41,
    unread: &[
        (43, "shader mode"),
        (44, "uniform blocks"),
        (46, "uniform variables"),
        (48, "initial constant values"),
        (50, "loop variables"),
        (52, "samplers"),
    ],
    words: 58,
};

const GEOMETRY: Layout = Layout {
    what: "the geometry program's registers",
    registers: &[
        (0, "SQ_PGM_RESOURCES_GS"),
        (1, "VGT_GS_OUT_PRIM_TYPE"),
        (2, "VGT_GS_MODE"),
        (3, "PA_CL_VS_OUT_CNTL"),
        (4, "SQ_PGM_RESOURCES_VS"),
        (5, "SQ_GS_VERT_ITEMSIZE"),
        (6, "SPI_VS_OUT_CONFIG"),
        (18, "VGT_STRMOUT_BUFFER_EN"),
    ],
    counted: &[(7, 8, "SPI_VS_OUT_ID", 10)],
    size: 19,
    unread: &[
        (23, "shader mode"),
        (24, "uniform blocks"),
        (26, "uniform variables"),
        (28, "initial constant values"),
        (30, "loop variables"),
        (32, "samplers"),
        (34, "ring item size"),
        (35, "stream output"),
    ],
    words: 48,
};

/// Index of the word in the geometry header that contains the size of the copy program.
const COPY_SIZE: usize = 21;

/// Registers of the last header block that was read. These registers belong to the next program block.
struct Pending {
    stage: Stage,
    state: Vec<(String, u32)>,
    bytes: u32,
}

/// Reads the programs of a file. Each program gets the registers of the header block before the program.
pub fn load(bytes: &[u8]) -> Result<Image, Error> {
    const BLOCK: &str = "a block header";
    let file = Bytes::of(bytes);
    if file.slice("the file header", 0, 4)? != MAGIC {
        let found = file.u32_be("the file header", 0)?;
        return Err(Error::value("the magic number", 0, found, "0x47667832 (Gfx2)"));
    }
    let mut image = Image {
        format: Format::Gsh.name(),
        isa: Some(Isa::R700),
        chip: Some("latte".to_owned()),
        ..Image::default()
    };
    let mut at = header_bytes(file, 0)?;
    let mut pending: Option<Pending> = None;
    let mut ended = false;
    while !ended && at < bytes.len() as u64 {
        if file.slice(BLOCK, at, 4)? != b"BLK{" {
            let found = file.u32_be(BLOCK, at)?;
            return Err(Error::value("the mark of a block", at, found, "0x424c4b7b (BLK{)"));
        }
        let header = header_bytes(file, at)?;
        let kind = file.u32_be(BLOCK, at + 16)?;
        let size = u64::from(file.u32_be(BLOCK, at + 20)?);
        let start = at + header;
        let data = file.slice("a block", start, size)?;
        match kind {
            1 => ended = true,
            2 => {}
            3 => pending = Some(registers(&VERTEX, Stage::Vertex, data, start, &mut image.notes)?),
            6 => pending = Some(registers(&PIXEL, Stage::Pixel, data, start, &mut image.notes)?),
            8 => pending = Some(registers(&GEOMETRY, Stage::Geometry, data, start, &mut image.notes)?),
            5 => add(&mut image, &mut pending, Stage::Vertex, data, start)?,
            7 => add(&mut image, &mut pending, Stage::Pixel, data, start)?,
            9 => add(&mut image, &mut pending, Stage::Geometry, data, start)?,
            10 => add(&mut image, &mut pending, Stage::GsCopy, data, start)?,
            other => image.notes.push(format!("byte {at:#x}: a block of type {other} was skipped")),
        }
        at = start + size;
    }
    if !ended {
        image.notes.push("the block that ends the file is missing".to_owned());
    }
    if image.programs.is_empty() {
        return Err(Error::missing("a program", "expected a block of type 5, 7, 9 or 10"));
    }
    let names = names(&image.programs);
    for (program, name) in image.programs.iter_mut().zip(names) {
        program.name = name;
    }
    Ok(image)
}

/// Returns names for a file's programs, because the format does not store names. A name is the program type. If several
/// programs have the same type, a number, which starts at 0, follows the type.
fn names(programs: &[Program]) -> Vec<Option<String>> {
    let is = |stage: Stage| move |program: &&Program| program.stage == Some(stage);
    let name = |(index, program): (usize, &Program)| {
        let stage = program.stage?;
        let before = programs[..index].iter().filter(is(stage)).count();
        match programs.iter().filter(is(stage)).count() {
            1 => Some(stage.to_string()),
            _ => Some(format!("{stage}{before}")),
        }
    };
    programs.iter().enumerate().map(name).collect()
}

fn header_bytes(file: Bytes<'_>, at: u64) -> Result<u64, Error> {
    const HEADER: &str = "a header";
    let found = file.u32_be(HEADER, at + 4)?;
    if found < HEADER_BYTES {
        let expected = format!("at least {HEADER_BYTES}");
        return Err(Error::value("the size of a header", at + 4, found, expected));
    }
    file.slice(HEADER, at, u64::from(found))?;
    Ok(u64::from(found))
}

fn registers(
    layout: &Layout,
    stage: Stage,
    data: &[u8],
    at: u64,
    notes: &mut Vec<String>,
) -> Result<Pending, Error> {
    let data = Bytes::of(data);
    let word = |index: u64| {
        data.u32_be(layout.what, 4 * index).map_err(|_| Error::Truncated {
            what: layout.what,
            at,
            wanted: 4 * (index + 1),
            size: data.len(),
        })
    };
    let mut state = Vec::new();
    for (index, name) in layout.registers {
        state.push(((*name).to_owned(), word(*index)?));
    }
    for (count, first, name, most) in layout.counted {
        let found = word(*count)?;
        if found > *most {
            let (what, at) = ("the number of a header's registers", at + 4 * count);
            return Err(Error::value(what, at, found, format!("at most {most}")));
        }
        for index in 0..u64::from(found) {
            state.push((format!("{name}_{index}"), word(first + index)?));
        }
    }
    let there = |(index, _): &&(u64, _)| word(*index).is_ok_and(|value| value > 0);
    let unread: Vec<&str> = layout.unread.iter().filter(there).map(|(_, name)| *name).collect();
    if !unread.is_empty() {
        notes.push(format!("not read: {} next to {}", unread.join(", "), layout.what));
    }
    Ok(Pending { stage, state, bytes: word(layout.size)? })
}

/// Returns the registers of a structure. `values` contains the words of the structure before the size of the program.
/// The number of words determines the program type.
pub(crate) fn registers_of(values: &[u32]) -> Option<(Stage, Vec<(String, u32)>)> {
    let layouts = [(&VERTEX, Stage::Vertex), (&PIXEL, Stage::Pixel), (&GEOMETRY, Stage::Geometry)];
    let (layout, stage) = layouts.into_iter().find(|(layout, _)| layout.size == values.len() as u64)?;
    let rest = std::iter::repeat_n(&0, layout.words - values.len());
    let data: Vec<u8> = values.iter().chain(rest).flat_map(|word| word.to_be_bytes()).collect();
    registers(layout, stage, &data, 0, &mut Vec::new()).ok().map(|found| (stage, found.state))
}

fn add(
    image: &mut Image,
    pending: &mut Option<Pending>,
    stage: Stage,
    data: &[u8],
    at: u64,
) -> Result<(), Error> {
    let mut program = little_endian(words("a program block", at, data)?, at);
    program.stage = Some(stage);
    // The copy program follows its geometry program. The header of the geometry program contains the registers of both
    // programs.
    let header = match stage {
        Stage::GsCopy => None,
        Stage::Compute | Stage::Vertex | Stage::Geometry | Stage::Pixel | Stage::Fragment | Stage::Fetch => {
            pending.take().filter(|header| header.stage == stage)
        }
    };
    match header {
        Some(header) => {
            if u64::from(header.bytes) != data.len() as u64 {
                image.notes.push(format!(
                    "byte {at:#x}: the {stage} program has {} bytes, its header says {}",
                    data.len(),
                    header.bytes
                ));
            }
            if let Some((_, register)) = header.state.first() {
                program.resources = resources_of(*register);
            }
            program.state = header.state;
        }
        None => image
            .notes
            .push(format!("byte {at:#x}: the {stage} program does not have a separate header block")),
    }
    image.programs.push(program);
    Ok(())
}

// ---- Writing

/// Writes the file for an image. Each program of the image must state all registers of the program's header. [`load`]
/// reads the same programs from the written file.
///
/// The tables of names (uniforms, attributes, samplers) in the file are empty, because programs do not contain these
/// names.
///
/// # Errors
/// Returns an error if a header cannot represent an item, or if a program does not state a register that the header
/// requires. The error names the first such item or register.
pub fn write(image: &Image) -> Result<Written<Vec<u8>>, Error> {
    let head = [u32::from_be_bytes(*b"Gfx2"), HEADER_BYTES, 7, 1, 2, 0, 0, 0];
    let mut file: Vec<u8> = head.iter().flat_map(|word| word.to_be_bytes()).collect();
    let mut index = 0;
    let mut block = |kind: u32, data: &[u8]| {
        let head = [u32::from_be_bytes(*b"BLK{"), HEADER_BYTES, 1, 0, kind, data.len() as u32, index, 0];
        file.extend(head.iter().flat_map(|word| word.to_be_bytes()));
        file.extend(data);
        index += 1;
    };
    let names = names(&image.programs);
    for (number, (program, derived)) in image.programs.iter().zip(names).enumerate() {
        let refused = |what: String, remedy| Err(unwritable(program, what, remedy));
        for (what, there) in [
            ("a start that is not 0", program.base != 0),
            ("contents of constant buffers", !program.constants.is_empty()),
            ("parameters", !program.params.is_empty()),
            ("samplers", !program.samplers.is_empty()),
            ("the use of inputs and outputs", program.usage != Default::default()),
        ] {
            if there {
                return refused(what.to_owned(), "words and registers fit");
            }
        }
        let previous = number.checked_sub(1).and_then(|number| image.programs[number].stage);
        let (header, code) = match program.stage {
            Some(Stage::Vertex) => (Some((3, &VERTEX)), 5),
            Some(Stage::Pixel) => (Some((6, &PIXEL)), 7),
            Some(Stage::Geometry) => (Some((8, &GEOMETRY)), 9),
            Some(Stage::GsCopy) if previous == Some(Stage::Geometry) => (None, 10),
            Some(Stage::GsCopy) => {
                return refused("a gs-copy program".to_owned(), "it follows its geometry program");
            }
            Some(Stage::Compute | Stage::Fragment | Stage::Fetch) | None => {
                let stage = program.stage.map_or("no stage".to_owned(), |stage| format!("stage {stage}"));
                return refused(stage, "vertex, pixel, geometry and gs-copy fit");
            }
        };
        if let Some(name) = program.name.as_deref().filter(|name| Some(*name) != derived.as_deref()) {
            return refused(
                format!("the name {}", quoted(name)),
                "the format does not store names; remove the name",
            );
        }
        let copy = image.programs.get(number + 1).filter(|next| next.stage == Some(Stage::GsCopy));
        match header {
            Some((kind, layout)) => block(kind, &header_block(layout, program, copy)?),
            None => {
                if let Some((name, _)) = program.state.first() {
                    return refused(
                        format!("state {}", quoted(name)),
                        "its geometry program has the registers",
                    );
                }
                resources(program, None)?;
            }
        }
        block(code, &program.words.iter().flat_map(|word| word.to_le_bytes()).collect::<Vec<_>>());
    }
    block(1, &[]);
    Ok(Written { content: file, notes: Vec::new() })
}

fn unwritable(program: &Program, what: String, remedy: &'static str) -> Error {
    let of = program.name.as_ref().map(|name| format!(" of program {}", quoted(name))).unwrap_or_default();
    Error::Unwritable { format: Format::Gsh.name(), what: format!("{what}{of}"), remedy }
}

/// Returns a header block: the structure for the type of the program, and then an empty directory of pointers.
fn header_block(layout: &Layout, program: &Program, copy: Option<&Program>) -> Result<Vec<u8>, Error> {
    let mut words = vec![0; layout.words];
    let mut left: Vec<&(String, u32)> = program.state.iter().collect();
    let mut take = |name: &str| {
        let at = left.iter().position(|(known, _)| known == name)?;
        Some(left.remove(at).1)
    };
    let mut missing = Vec::new();
    for (index, name) in layout.registers {
        match take(name) {
            Some(value) => words[*index as usize] = value,
            None => missing.push(*name),
        }
    }
    for (count, first, name, most) in layout.counted {
        let values: Vec<u32> = (0..*most).map_while(|index| take(&format!("{name}_{index}"))).collect();
        words[*count as usize] = values.len() as u32;
        words[*first as usize..][..values.len()].copy_from_slice(&values);
    }
    if let Some((name, _)) = left.first() {
        let remedy = "the register is set twice, is not in the header, or follows a register of its list that is \
                      not set";
        return Err(unwritable(program, format!("state {}", quoted(name)), remedy));
    }
    if !missing.is_empty() {
        let what = format!("a program without the registers {}", missing.join(", "));
        return Err(unwritable(
            program,
            what,
            "a header contains all of these registers; set each register with .state",
        ));
    }
    resources(program, Some(words[0]))?;
    words[layout.size as usize] = program.words.len() as u32 * 4;
    if let Some(copy) = copy.filter(|_| layout.size == GEOMETRY.size) {
        words[COPY_SIZE] = copy.words.len() as u32 * 4;
    }
    let bytes = 4 * layout.words as u32;
    // The words of the directory are, in order: a mark, the size of the directory, an unknown word, the size and the
    // start of the structure, the size and the start of the names, an unknown word, the number of pointers, and the
    // offset of the pointers.
    let data = 0xd060_0000;
    words.extend([u32::from_be_bytes(*b"}BLK"), 40, 0, bytes, data, 0, data | bytes, 0, 0, data | bytes]);
    Ok(words.iter().flat_map(|word| word.to_be_bytes()).collect())
}

/// Rejects a program whose resources differ from `register`. `register` is SQ_PGM_RESOURCES of the header.
fn resources(program: &Program, register: Option<u32>) -> Result<(), Error> {
    let stated = register.map_or_else(Resources::default, resources_of);
    let Resources { registers, stack, .. } = program.resources;
    let fits = |own: Option<u32>, stated: Option<u32>| own.is_none() || own == stated;
    let others = Resources { registers: None, stack: None, ..program.resources };
    let what = if !fits(registers, stated.registers) {
        format!("{} registers", registers.unwrap_or(0))
    } else if !fits(stack, stated.stack) {
        format!("{} entries of the stack", stack.unwrap_or(0))
    } else if others != Resources::default() {
        "memory and barriers".to_owned()
    } else {
        return Ok(());
    };
    let remedy = "the header has SQ_PGM_RESOURCES: registers in bits 7:0, stack entries in bits 15:8";
    Err(unwritable(program, what, remedy))
}
