//! The parts of an ELF file that shader containers use. Each part is checked against the length of the file.
//!
//! Cubins of CUDA 3.x have tables and sections at unaligned offsets. The errors of this crate name byte offsets. The
//! crate `object` does not support unaligned tables and does not report byte offsets. So this module reads each field
//! of a record separately. Layouts: System V ABI, "Object Files". Only little-endian files occur.

use object::elf;

use crate::bytes::Bytes;
use crate::{Error, Format};

/// `e_machine` of ATI R500 executables (CTM guide). The ELF registry does not list this number.
pub(crate) const MACHINE_R5XX: u16 = 122;
/// `e_machine` of cubins.
pub(crate) const MACHINE_CUDA: u16 = elf::EM_CUDA.0;
/// `e_machine` of AMD CAL images.
pub(crate) const MACHINE_CAL: u16 = 125;
/// `e_machine` of LLVM's R600 and AMDGPU objects.
pub(crate) const MACHINE_AMDGPU: u16 = elf::EM_AMDGPU.0;

/// Value of the byte order field in big-endian files. Big-endian files are for other processors.
const BIG_ENDIAN: u8 = 2;

/// Section types.
pub(crate) const PROGBITS: u32 = 1;
pub(crate) const SYMTAB: u32 = 2;
pub(crate) const RELA: u32 = 4;
pub(crate) const NOBITS: u32 = 8;
pub(crate) const REL: u32 = 9;
/// Segment types.
pub(crate) const PT_LOAD: u32 = 1;
pub(crate) const PT_NOTE: u32 = 4;
/// The encoding dictionary of a CAL image.
pub(crate) const PT_DICTIONARY: u32 = 0x7000_0002;
/// Symbol types.
pub(crate) const OBJECT: u8 = 1;
pub(crate) const FUNC: u8 = 2;
pub(crate) const SECTION: u8 = 3;

/// A section and the bytes of the section (no bytes for NOBITS).
#[derive(Clone, Copy, Debug)]
pub(crate) struct Section<'a> {
    pub(crate) name: &'a str,
    pub(crate) kind: u32,
    pub(crate) flags: u64,
    pub(crate) offset: u64,
    pub(crate) size: u64,
    pub(crate) link: u32,
    pub(crate) info: u32,
    pub(crate) data: &'a [u8],
}

/// A segment and the bytes of the segment.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Segment<'a> {
    pub(crate) kind: u32,
    pub(crate) flags: u32,
    pub(crate) offset: u64,
    pub(crate) data: &'a [u8],
}

/// A symbol.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Symbol<'a> {
    pub(crate) name: &'a str,
    pub(crate) kind: u8,
    pub(crate) section: u16,
    pub(crate) value: u64,
    pub(crate) size: u64,
}

/// A relocation record of `.rel` or `.rela`.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Relocation {
    /// Offset of the record in the file.
    pub(crate) at: u64,
    pub(crate) offset: u64,
    pub(crate) symbol: u32,
    pub(crate) kind: u32,
    pub(crate) addend: Option<i64>,
}

/// The section, segment and symbol tables of an ELF file.
#[derive(Clone, Debug)]
pub(crate) struct Elf<'a> {
    pub(crate) wide: bool,
    pub(crate) os_abi: u8,
    pub(crate) abi_version: u8,
    pub(crate) kind: u16,
    pub(crate) entry: u64,
    pub(crate) flags: u32,
    pub(crate) sections: Vec<Section<'a>>,
    pub(crate) segments: Vec<Segment<'a>>,
    /// Symbols of the first symbol table. The list is empty if the file does not have a symbol table.
    pub(crate) symbols: Vec<Symbol<'a>>,
}

/// Returns the format of an ELF file. For a file of a machine that is not supported, the format is
/// [`Format::Embedded`], because the file may contain images.
pub(crate) fn recognise(bytes: &[u8]) -> Result<Format, Error> {
    let file = Bytes::of(bytes);
    if file.u8("the ELF header", 5)? == BIG_ENDIAN {
        return Ok(Format::Embedded);
    }
    let (wide, machine) = ident(file)?;
    match (machine, wide) {
        (MACHINE_CUDA, true) => Ok(Format::CubinElf64),
        (MACHINE_CUDA, false) => Ok(Format::CubinElf32),
        (MACHINE_AMDGPU, false) => Ok(Format::R600Elf),
        (MACHINE_R5XX, false) => Ok(Format::CtmElf),
        (MACHINE_CAL, false) => Ok(Format::CalElf),
        _ => Ok(Format::Embedded),
    }
}

/// Returns whether the file is a 64-bit file, and the machine of the file.
fn ident(file: Bytes<'_>) -> Result<(bool, u16), Error> {
    const HEADER: &str = "the ELF header";
    if file.slice(HEADER, 0, 4)? != b"\x7fELF" {
        let found = file.u32_be(HEADER, 0)?;
        return Err(Error::value("the magic number", 0, found, "0x7f454c46 (ELF)"));
    }
    let wide = match file.u8(HEADER, 4)? {
        1 => false,
        2 => true,
        found => return Err(Error::value("the ELF class", 4, found, "1 (32 bits) or 2 (64 bits)")),
    };
    match file.u8(HEADER, 5)? {
        1 => {}
        found => return Err(Error::value("the ELF byte order", 5, found, "1 (little endian)")),
    }
    file.slice(HEADER, 0, if wide { 64 } else { 52 })?;
    Ok((wide, file.u16(HEADER, 18)?))
}

/// Reads the tables of a file, which must be for `machine`.
pub(crate) fn read(bytes: &[u8], machine: u16) -> Result<Elf<'_>, Error> {
    let (_, found) = ident(Bytes::of(bytes))?;
    if found != machine {
        return Err(Error::value("the ELF machine", 18, found, machine.to_string()));
    }
    read_any(bytes)
}

/// Reads the tables of a file for any machine.
pub(crate) fn read_any(bytes: &[u8]) -> Result<Elf<'_>, Error> {
    const HEADER: &str = "the ELF header";
    let file = Bytes::of(bytes);
    let (wide, _) = ident(file)?;
    let reader = Reader { file, wide };
    let (tables, counts) = if wide { ([24, 32, 40, 48], 54) } else { ([24, 28, 32, 36], 42) };
    let [entry, segments, sections, flags] = tables;
    let count = |index: u64| file.u16(HEADER, counts + 2 * index);
    let mut elf = Elf {
        wide,
        os_abi: file.u8(HEADER, 7)?,
        abi_version: file.u8(HEADER, 8)?,
        kind: file.u16(HEADER, 16)?,
        entry: reader.address(HEADER, entry)?,
        flags: file.u32(HEADER, flags)?,
        sections: Vec::new(),
        segments: Vec::new(),
        symbols: Vec::new(),
    };
    let (ph_size, ph_count) = (count(0)?, count(1)?);
    let (sh_size, sh_count, sh_names) = (count(2)?, count(3)?, count(4)?);
    elf.segments = reader.segments(reader.address(HEADER, segments)?, ph_size, ph_count)?;
    elf.sections = reader.sections(reader.address(HEADER, sections)?, sh_size, sh_count, sh_names)?;
    elf.symbols = reader.symbols(&elf.sections)?;
    Ok(elf)
}

struct Reader<'a> {
    file: Bytes<'a>,
    wide: bool,
}

impl<'a> Reader<'a> {
    /// Reads an address or offset of four or eight bytes.
    fn address(&self, what: &'static str, at: u64) -> Result<u64, Error> {
        if self.wide { self.file.u64(what, at) } else { Ok(u64::from(self.file.u32(what, at)?)) }
    }

    /// Returns the offsets of `count` records of `size` bytes, starting at offset `at`. The function first checks that
    /// all records are in the file.
    fn records(
        &self,
        what: &'static str,
        at: u64,
        size: u16,
        least: u16,
        count: u16,
    ) -> Result<impl Iterator<Item = u64> + use<>, Error> {
        if count > 0 && size < least {
            return Err(Error::value(what, at, size, format!("at least {least}")));
        }
        self.file.slice(what, at, u64::from(size) * u64::from(count))?;
        Ok((0..u64::from(count)).map(move |index| at + index * u64::from(size)))
    }

    fn segments(&self, at: u64, size: u16, count: u16) -> Result<Vec<Segment<'a>>, Error> {
        const HEADER: &str = "the program headers";
        let mut segments = Vec::new();
        for at in self.records(HEADER, at, size, if self.wide { 56 } else { 32 }, count)? {
            let (flags, offset, bytes) = if self.wide { (4, 8, 32) } else { (24, 4, 16) };
            let kind = self.file.u32(HEADER, at)?;
            let flags = self.file.u32(HEADER, at + flags)?;
            let offset = self.address(HEADER, at + offset)?;
            let bytes = self.address(HEADER, at + bytes)?;
            // The reader uses only sections of these types. nvcc writes invalid addresses in some sections of other
            // types.
            let data = match kind {
                PT_LOAD | PT_NOTE => self.file.slice("a segment", offset, bytes)?,
                PT_DICTIONARY => self.file.slice("a segment", offset, bytes).unwrap_or(&[]),
                _ => &[],
            };
            segments.push(Segment { kind, flags, offset, data });
        }
        Ok(segments)
    }

    fn sections(&self, at: u64, size: u16, count: u16, names: u16) -> Result<Vec<Section<'a>>, Error> {
        const HEADER: &str = "the section headers";
        let mut sections = Vec::new();
        let mut named = Vec::new();
        for at in self.records(HEADER, at, size, if self.wide { 64 } else { 40 }, count)? {
            let [flags, offset, length, link, info] =
                if self.wide { [8, 24, 32, 40, 44] } else { [8, 16, 20, 24, 28] };
            let name = self.file.u32(HEADER, at)?;
            let kind = self.file.u32(HEADER, at + 4)?;
            let flags = self.address(HEADER, at + flags)?;
            let offset = self.address(HEADER, at + offset)?;
            let size = self.address(HEADER, at + length)?;
            let link = self.file.u32(HEADER, at + link)?;
            let info = self.file.u32(HEADER, at + info)?;
            let data = match kind {
                0 | NOBITS => &[],
                _ => self.file.slice("a section", offset, size)?,
            };
            named.push(name);
            sections.push(Section { name: "", kind, flags, offset, size, link, info, data });
        }
        if sections.is_empty() {
            return Ok(sections);
        }
        let Some(strings) = sections.get(usize::from(names)).copied() else {
            let expected = format!("an index below {count}");
            return Err(Error::value("the index of the section names", 0, names, expected));
        };
        let mut total = Total::new(self.file);
        for (section, name) in sections.iter_mut().zip(named) {
            section.name = total.name("a section's name", strings, name)?;
        }
        no_overlap(&sections)?;
        Ok(sections)
    }

    fn symbols(&self, sections: &[Section<'a>]) -> Result<Vec<Symbol<'a>>, Error> {
        const RECORD: &str = "a symbol";
        let Some(table) = sections.iter().find(|section| section.kind == SYMTAB) else {
            return Ok(Vec::new());
        };
        let size = if self.wide { 24 } else { 16 };
        let Some(strings) = sections.get(table.link as usize).copied() else {
            let expected = format!("the index of a string table, below {}", sections.len());
            return Err(Error::value("the symbol table's link", table.offset, table.link, expected));
        };
        let data = Bytes::of(table.data);
        let mut total = Total::new(self.file);
        let mut symbols = Vec::new();
        // Like linkers, this code skips a partial record at the end.
        for at in (0..table.data.len() as u64 / size).map(|index| index * size) {
            let [value, bytes, info, section] = if self.wide { [8, 16, 4, 6] } else { [4, 8, 12, 14] };
            let part = Reader { file: data, wide: self.wide };
            let kind = data.u8(RECORD, at + info)? & 15;
            // In some cubins, the name of a section symbol has an offset past the end of the string table. Names of
            // section symbols are not used.
            let name = match kind {
                OBJECT | FUNC => total.name("a symbol's name", strings, data.u32(RECORD, at)?)?,
                _ => total.name("a symbol's name", strings, data.u32(RECORD, at)?).unwrap_or(""),
            };
            symbols.push(Symbol {
                name,
                kind,
                section: data.u16(RECORD, at + section)?,
                value: part.address(RECORD, at + value)?,
                size: part.address(RECORD, at + bytes)?,
            });
        }
        Ok(symbols)
    }
}

/// Limits the total length of the names in a file. Names may share bytes of a string table. So without this limit, each
/// record of a small file could request a copy of the same long name.
struct Total {
    left: u64,
}

impl Total {
    fn new(file: Bytes<'_>) -> Self {
        Total { left: 4 * file.len() }
    }

    fn name<'a>(&mut self, what: &'static str, strings: Section<'a>, offset: u32) -> Result<&'a str, Error> {
        let at = strings.offset.saturating_add(u64::from(offset));
        let name = Bytes::part(strings.data, strings.offset).name(what, u64::from(offset))?;
        match self.left.checked_sub(name.len() as u64) {
            Some(left) => self.left = left,
            None => {
                let expected = "names with a total length of at most four times the size of the file";
                return Err(Error::value(what, at, name.len() as u64, expected));
            }
        }
        Ok(name)
    }
}

fn no_overlap(sections: &[Section<'_>]) -> Result<(), Error> {
    let mut placed: Vec<&Section<'_>> = sections.iter().filter(|section| !section.data.is_empty()).collect();
    placed.sort_by_key(|section| section.offset);
    for pair in placed.windows(2) {
        if pair[0].offset + pair[0].size > pair[1].offset {
            let [first, second] = [pair[0], pair[1]].map(|section| format!("section `{}`", section.name));
            return Err(Error::overlap(first, second, pair[1].offset));
        }
    }
    Ok(())
}

impl<'a> Elf<'a> {
    /// Returns the records of a relocation section.
    pub(crate) fn relocations(&self, section: &Section<'a>) -> Result<Vec<Relocation>, Error> {
        const RECORD: &str = "a relocation";
        let has_addend = section.kind == RELA;
        let part = Reader { file: Bytes::of(section.data), wide: self.wide };
        let field: u64 = if self.wide { 8 } else { 4 };
        let size = if has_addend { 3 * field } else { 2 * field };
        if !section.size.is_multiple_of(size) {
            let (at, bytes) = (section.offset, section.size);
            return Err(Error::Uneven { what: "a relocation section", at, bytes, multiple: size });
        }
        let mut records = Vec::new();
        for at in (0..section.size / size).map(|index| index * size) {
            let info = part.address(RECORD, at + field)?;
            let (symbol, kind) = if self.wide {
                ((info >> 32) as u32, info as u32)
            } else {
                ((info >> 8) as u32, info as u32 & 0xff)
            };
            let addend = match (has_addend, self.wide) {
                (false, _) => None,
                (true, true) => Some(part.address(RECORD, at + 16)? as i64),
                (true, false) => Some(i64::from(part.address(RECORD, at + 8)? as u32 as i32)),
            };
            let offset = part.address(RECORD, at)?;
            records.push(Relocation { at: section.offset + at, offset, symbol, kind, addend });
        }
        Ok(records)
    }
}
