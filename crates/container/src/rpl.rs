//! Programs and libraries of the Wii U (`.rpx`, `.rpl`). The files are big-endian ELF files for PowerPC. Sections may
//! be compressed.
//!
//! ```text
//! e_ident[7..9]   ca fe                      the system's ABI
//! sh_flags        0x08000000                 the section is compressed:
//! section data    u32 size, then zlib data   the size is that of the contents, big endian
//! ```
//! (wut, `elf.h` and `elf2rpl`.) This module returns only the contents of the sections. The search for images examines
//! these contents, see [`embedded`](crate::embedded).

use std::io::Read;

use flate2::read::ZlibDecoder;
use reconverge_isa::limits::FILE;

use crate::Error;
use crate::bytes::Bytes;

/// Flag of a section that is compressed.
const ZLIB: u32 = 0x0800_0000;
/// Type of sections without bytes in the file.
const NOBITS: u32 = 8;

/// The contents of a compressed section.
pub(crate) struct Inflated {
    /// Number of the section.
    pub(crate) number: u16,
    /// Name of the section. The string is empty if the file does not contain the name.
    pub(crate) name: String,
    /// Offset of the compressed data in the file.
    pub(crate) at: u64,
    /// Decompressed contents of the section, or the reason why the contents cannot be read.
    pub(crate) content: Result<Vec<u8>, Error>,
}

/// Returns whether a file is a Wii U program or library.
pub(crate) fn starts_like(bytes: &[u8]) -> bool {
    // 32 bits, big endian.
    bytes.starts_with(b"\x7fELF\x01\x02") && bytes.get(7..9) == Some(&[0xca, 0xfe])
}

/// Decompresses the compressed sections of a file. [`FILE`] limits the total size of the decompressed contents.
///
/// # Errors
/// Fails if a section header is outside the file.
pub(crate) fn inflated(bytes: &[u8]) -> Result<Vec<Inflated>, Error> {
    const HEADER: &str = "the ELF header";
    const SECTION: &str = "a section header";
    let file = Bytes::of(bytes);
    let number = |what, at| -> Result<u16, Error> {
        let pair = file.slice(what, at, 2)?;
        Ok(u16::from_be_bytes([pair[0], pair[1]]))
    };
    let table = u64::from(file.u32_be(HEADER, 32)?);
    let (size, count, names) = (number(HEADER, 46)?, number(HEADER, 48)?, number(HEADER, 50)?);
    if count > 0 && size < 40 {
        return Err(Error::value("the size of a section header", 46, size, "at least 40"));
    }
    let mut room = FILE.get();
    let mut sections = Vec::new();
    let mut name_offsets = Vec::new();
    let mut plain_names: &[u8] = &[];
    for index in 0..count {
        let at = table + u64::from(index) * u64::from(size);
        file.slice(SECTION, at, 40)?;
        let field = |offset| file.u32_be(SECTION, at + offset);
        let (name, kind, flags) = (field(0)?, field(4)?, field(8)?);
        let (start, length) = (u64::from(field(16)?), u64::from(field(20)?));
        if kind == 0 || kind == NOBITS {
            continue;
        }
        if flags & ZLIB == 0 {
            if index == names {
                plain_names = file.slice("the section names", start, length)?;
            }
            continue;
        }
        let content = file.slice("a section", start, length).and_then(|data| inflate(data, start, &mut room));
        name_offsets.push(name);
        sections.push(Inflated { number: index, name: String::new(), at: start, content });
    }
    let packed = sections.iter().find(|section| section.number == names);
    let strings =
        packed.and_then(|section| section.content.clone().ok()).unwrap_or_else(|| plain_names.to_vec());
    for (section, offset) in sections.iter_mut().zip(name_offsets) {
        section.name = Bytes::of(&strings).name("a section's name", offset.into()).unwrap_or("").to_owned();
    }
    Ok(sections)
}

/// Returns the decompressed contents of a section. `room` is the number of bytes that may still be decompressed in
/// total.
fn inflate(data: &[u8], at: u64, room: &mut u64) -> Result<Vec<u8>, Error> {
    let size = u64::from(Bytes::part(data, at).u32_be("the size of a compressed section", 0)?);
    if size > *room {
        return Err(Error::Limit(FILE.exceeded()));
    }
    let mut content = Vec::new();
    // The code tries to read one byte more than the stated size, and thus detects a wrong size.
    let read = ZlibDecoder::new(&data[4..]).take(size + 1).read_to_end(&mut content);
    if read.is_err() {
        let remedy = "its data are damaged or truncated";
        return Err(Error::Unsupported { at, what: "a compressed section", remedy });
    }
    if content.len() as u64 != size {
        let expected = format!("{} (the number of bytes after decompression)", content.len());
        return Err(Error::value("the size of a compressed section", at, size, expected));
    }
    *room -= size;
    Ok(content)
}

#[cfg(test)]
pub(crate) mod tests {
    use std::io::Write as _;

    use flate2::Compression;
    use flate2::write::ZlibEncoder;
    use reconverge_isa::program::{Resources, Stage};
    use reconverge_isa::{Image, Isa, Program};

    use super::*;
    use crate::{Format, Hints, gsh};

    /// Returns a file with `sections`. The values of a section are the name, the contents, and whether `file`
    /// compresses the contents. The last section contains the names of all sections.
    fn file(sections: &[(&str, &[u8], bool)]) -> Vec<u8> {
        let names: Vec<u8> =
            sections.iter().flat_map(|(name, ..)| name.bytes().chain([0])).chain(*b".shstrtab\0").collect();
        let all = sections.iter().copied().chain([(".shstrtab", &names[..], true)]);
        let mut file = vec![0; 52];
        file[..9].copy_from_slice(b"\x7fELF\x01\x02\x01\xca\xfe");
        let mut headers = vec![0_u8; 40];
        let mut name = 0_u32;
        for (text, content, packed) in all {
            let data = match packed {
                false => content.to_vec(),
                true => {
                    let mut encoder =
                        ZlibEncoder::new((content.len() as u32).to_be_bytes().to_vec(), Compression::best());
                    encoder.write_all(content).unwrap();
                    encoder.finish().unwrap()
                }
            };
            let flags = if packed { ZLIB } else { 0 };
            let header = [name, 1, flags, 0, file.len() as u32, data.len() as u32, 0, 0, 4, 0];
            headers.extend(header.iter().flat_map(|word| word.to_be_bytes()));
            file.extend(data);
            name += text.len() as u32 + 1;
        }
        let at = file.len() as u32;
        file[32..36].copy_from_slice(&at.to_be_bytes());
        let count = sections.len() as u16 + 2;
        for (place, value) in [(16, 0xfe01), (18, 20), (46, 40), (48, count), (50, count - 1)] {
            file[place..place + 2].copy_from_slice(&u16::to_be_bytes(value));
        }
        file.extend(headers);
        file
    }

    /// Returns a shader file with one pixel program.
    fn shader(word: u32) -> Vec<u8> {
        let registers =
            ["SQ_PGM_RESOURCES_PS", "SQ_PGM_EXPORTS_PS", "SPI_PS_IN_CONTROL_0", "SPI_PS_IN_CONTROL_1"];
        let others = ["CB_SHADER_MASK", "CB_SHADER_CONTROL", "DB_SHADER_CONTROL", "SPI_INPUT_Z"];
        let state = registers.iter().chain(&others).map(|name| ((*name).to_owned(), 0x203)).collect();
        let program = Program {
            stage: Some(Stage::Pixel),
            state,
            resources: Resources { registers: Some(3), stack: Some(2), ..Resources::default() },
            ..Program::from_words(vec![0, 0x9420_0688, word, 0])
        };
        let image = Image { isa: Some(Isa::R700), programs: vec![program], ..Image::default() };
        gsh::write(&image).unwrap().content
    }

    fn read(bytes: &[u8]) -> Result<Image, Error> {
        assert_eq!(crate::recognise(bytes), Ok(Format::Embedded));
        crate::load(bytes, &Hints::default())
    }

    #[test]
    fn images_in_compressed_sections_are_read() {
        let hidden = [&[7; 60][..], &shader(1)].concat();
        let file =
            file(&[(".rodata", &hidden, true), (".data", &shader(2), false), (".text", &[0; 400], true)]);
        let image = read(&file).unwrap();
        assert_eq!((image.isa, image.chip.as_deref()), (Some(Isa::R700), Some("latte")));
        // Images outside compressed sections come first.
        let words: Vec<u32> = image.programs.iter().map(|program| program.words[2]).collect();
        assert_eq!(words, [2, 1]);
        let program = &image.programs[1];
        assert_eq!((program.state("SPI_INPUT_Z"), program.resources.stack), (Some(0x203), Some(2)));
        let module = image.module_of(program).unwrap();
        assert_eq!(module.name.as_deref(), Some("section .rodata, offset 0x3c"));
        assert_ne!(image.programs[0].name, image.programs[1].name);
        let patched = crate::patch(&file, &Hints::default(), 1, 2, &[3]).unwrap_err().to_string();
        assert!(patched.contains("compressed"), "{patched}");
    }

    #[test]
    fn a_section_that_cannot_be_unpacked_is_named() {
        let good = file(&[(".a", &shader(1), true), (".b", &shader(2), true)]);
        let start = 52;
        let note = |bytes: &[u8]| read(bytes).unwrap().notes.join("\n");
        let mut damaged = good.clone();
        damaged[start + 10] ^= 0xff;
        assert!(
            note(&damaged).contains("section .a") && note(&damaged).contains("damaged"),
            "{}",
            note(&damaged)
        );
        let mut wrong = good.clone();
        wrong[start + 3] ^= 1;
        assert!(note(&wrong).contains("the size of a compressed section"), "{}", note(&wrong));
        let mut huge = good;
        huge[start] = 0xff;
        assert!(note(&huge).contains("section .a"), "{}", note(&huge));
        let none = read(&file(&[(".a", &[1; 100], true)])).unwrap_err().to_string();
        assert!(none.contains("Wii U"), "{none}");
        let mut outside = file(&[(".a", &[1; 100], true)]);
        outside[32] = 0xff;
        assert!(matches!(read(&outside), Err(Error::Truncated { .. })));
    }
}
