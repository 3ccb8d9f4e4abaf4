//! Wii U shader files (`.gsh`, "Gfx2"): programs for Latte, an R700.
//!
//! ```text
//! file header   "Gfx2", header size 32, version 7.x, …                        all big endian
//! block header  "BLK{", header size 32, major, minor, type, data size, id, index
//! block data    type 3, 6, 8 the registers of a vertex, pixel, geometry program;
//!               5, 7, 9 its words, 10 the copy program: little-endian words; 1 ends the file
//! ```
//! Layouts are those of the GX2 structures as wut documents them (`gfd.h`, `gx2/shaders.h`). The words agree
//! with the programs that were cut out of the same files by others.

use reconverge_isa::program::Stage;
use reconverge_isa::{Image, Isa};

use crate::bytes::{Bytes, little_endian, words};
use crate::{Error, Format};

/// First bytes of a file.
pub(crate) const MAGIC: &[u8] = b"Gfx2";
const HEADER_BYTES: u32 = 32;

/// Where a register header keeps what: word indices.
struct Layout {
    what: &'static str,
    /// Single registers.
    registers: &'static [(u64, &'static str)],
    /// A count, the first register and its name, the most there can be.
    counted: &'static [(u64, u64, &'static str, u32)],
    /// The program's size in bytes.
    size: u64,
    /// Counts of initial constant values and of loop variables, which are not read.
    unread: &'static [(u64, &'static str)],
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
    unread: &[(59, "initial constant values"), (61, "loop variables")],
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
    unread: &[(48, "initial constant values"), (50, "loop variables")],
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
    unread: &[],
};

/// The registers of the last header block, for the program block behind it.
struct Pending {
    stage: Stage,
    state: Vec<(String, u32)>,
    bytes: u32,
}

/// Reads the programs of a file, each with the registers of the header block before it.
pub fn load(bytes: &[u8]) -> Result<Image, Error> {
    const BLOCK: &str = "a block header";
    let file = Bytes(bytes);
    if file.slice("the file header", 0, 4)? != MAGIC {
        let found = u64::from(file.u32_be("the file header", 0)?);
        return Err(Error::Value {
            what: "the magic number",
            at: 0,
            found,
            expected: "0x47667832 (Gfx2)".to_owned(),
        });
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
            let found = u64::from(file.u32_be(BLOCK, at)?);
            return Err(Error::Value {
                what: "the mark of a block",
                at,
                found,
                expected: "0x424c4b7b (BLK{)".to_owned(),
            });
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
            other => image.notes.push(format!("byte {at:#x}: a block of type {other} was passed over")),
        }
        at = start + size;
    }
    if !ended {
        image.notes.push("the block that ends the file is missing".to_owned());
    }
    if image.programs.is_empty() {
        return Err(Error::Missing {
            what: "a program",
            remedy: "expected a block of type 5, 7, 9 or 10".to_owned(),
        });
    }
    Ok(image)
}

fn header_bytes(file: Bytes<'_>, at: u64) -> Result<u64, Error> {
    const HEADER: &str = "a header";
    let found = file.u32_be(HEADER, at + 4)?;
    if found < HEADER_BYTES {
        let expected = format!("at least {HEADER_BYTES}");
        return Err(Error::Value {
            what: "the size of a header",
            at: at + 4,
            found: u64::from(found),
            expected,
        });
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
    let data = Bytes(data);
    let word = |index: u64| {
        data.u32_be(layout.what, 4 * index).map_err(|_| Error::Truncated {
            what: layout.what,
            at,
            wanted: 4 * (index + 1),
            size: data.0.len() as u64,
        })
    };
    let mut state = Vec::new();
    for (index, name) in layout.registers {
        state.push(((*name).to_owned(), word(*index)?));
    }
    for (count, first, name, most) in layout.counted {
        let found = word(*count)?;
        if found > *most {
            let expected = format!("at most {most}");
            return Err(Error::Value {
                what: "the number of a header's registers",
                at: at + 4 * count,
                found: u64::from(found),
                expected,
            });
        }
        for index in 0..u64::from(found) {
            state.push((format!("{name}_{index}"), word(first + index)?));
        }
    }
    for (index, name) in layout.unread {
        if word(*index).is_ok_and(|count| count > 0) {
            notes.push(format!("{}: {name} are there and are not read", layout.what));
        }
    }
    Ok(Pending { stage, state, bytes: word(layout.size)? })
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
    // The copy program follows its geometry program, whose header has the registers of both.
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
            // SQ_PGM_RESOURCES: general registers in bits 7:0, stack entries in bits 15:8.
            if let Some((_, resources)) = header.state.first() {
                program.resources.registers = Some(resources & 0xff);
                program.resources.stack = Some(resources >> 8 & 0xff);
            }
            program.state = header.state;
        }
        None => image.notes.push(format!("byte {at:#x}: the {stage} program has no header block of its own")),
    }
    image.programs.push(program);
    Ok(())
}
