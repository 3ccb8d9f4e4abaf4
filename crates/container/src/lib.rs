//! Shader binaries in their containers: bytes to [`Image`]s of [`Program`](reconverge_isa::Program)s, and back.
//!
//! To read a file, start with [`load`]. [`load`] detects the format of the file from the contents and calls the module
//! for this format. Each module has a function `load`. If this project can write the format, the module also has a
//! function `write` ([`hex`], [`bin`], [`cubin_text`], [`ctm_elf`]). [`formats`] lists the formats for help texts.
//! [`patch`] changes words of a program and keeps all other bytes of the file.
//!
//! All input is treated as hostile. Every length and offset is checked against the actual data, and no input causes a
//! panic. Memory use is limited to a small multiple of the file's size. For compressed data, memory use is limited to a
//! fixed number of bytes. Data without a known meaning is skipped with a note in [`Image::notes`].
//!
//! The crate does not access files. The functions of this crate take bytes and return values.

#![forbid(unsafe_code)]

pub mod bin;
mod bytes;
pub mod c;
pub mod cal_elf;
pub mod ctm_elf;
pub mod cubin_elf;
pub mod cubin_text;
pub mod diff;
pub mod dump;
mod elf;
pub mod embedded;
mod error;
pub mod fatbin;
pub mod gsh;
mod gzip;
pub mod hex;
mod limits;
pub mod log;
mod magic;
mod patch;
pub mod r600_elf;
mod rpl;

use std::collections::{HashMap, HashSet};
use std::str::FromStr;

use reconverge_isa::program::CodeAt;
use reconverge_isa::{Image, Isa};

use crate::bytes::Bytes;
pub use crate::error::Error;
pub use crate::patch::patch;

reconverge_isa::choices! {
    /// Formats that can be read.
    #[derive(Hash)]
    pub enum Format {
        /// Words as text.
        Hex32 = "hex32",
        /// Words as bytes.
        Bin = "bin",
        /// Text cubin of CUDA 1.x and 2.x.
        CubinText = "cubin-text",
        /// ELF cubin of CUDA 3.x to 6.x, 32 bits.
        CubinElf32 = "cubin-elf32",
        /// ELF cubin of CUDA 3.x to 6.x, 64 bits.
        CubinElf64 = "cubin-elf64",
        /// CUDA's archive of cubins.
        Fatbin = "fatbin",
        /// C source with a dumped file in an array or a string.
        C = "c",
        /// Object file of LLVM's R600 target.
        R600Elf = "r600-elf",
        /// Shader file of the Wii U.
        Gsh = "gsh",
        /// ATI CTM executable.
        CtmElf = "ctm-elf",
        /// AMD CAL image.
        CalElf = "cal-elf",
        /// A file of another kind that contains images.
        Embedded = "embedded",
        /// A compressed file. The decompressed contents have one of the formats in this enum.
        Gzip = "gzip",
        /// A pasted listing or hex dump.
        Dump = "dump",
        /// Output of drivers and compilers that contains shaders.
        Log = "log",
        /// A diff of text files.
        Diff = "diff",
    }
}

impl Format {
    /// Returns a description of the format in one line.
    pub const fn description(self) -> &'static str {
        match self {
            Format::Hex32 => "text, 32-bit words of eight hexadecimal digits, # starts a comment",
            Format::Bin => "raw 32-bit words, little endian",
            Format::CubinText => "text cubin of CUDA 1.x and 2.x (sm_10 to sm_13)",
            Format::CubinElf32 => "32-bit ELF cubin of CUDA 3.x to 6.x (sm_10 to sm_13)",
            Format::CubinElf64 => "64-bit ELF cubin of CUDA 3.x to 6.x (sm_10 to sm_13)",
            Format::Fatbin => "CUDA fat binary with uncompressed cubins",
            Format::C => "C or C++ source with one of the other formats in integer arrays or strings",
            Format::R600Elf => "ELF object of LLVM's R600 target (R600, R700)",
            Format::Gsh => "Wii U shader file (Gfx2 container)",
            Format::CtmElf => "ATI CTM executable (R500)",
            Format::CalElf => "AMD CAL image (R600, R700)",
            Format::Embedded => {
                "executable, library, object, archive or other file with images inside (OpenCL binaries too)"
            }
            Format::Gzip => "one of the other formats, compressed",
            Format::Diff => "unified diff of files with one of the text formats (the new side, or --old)",
            Format::Dump => {
                "words in a listing or hex dump (Mesa's, envydis, cuobjdump -sass, xxd, hexdump, od)"
            }
            Format::Log => {
                "shaders in a log of Mesa's r300, r600 or nouveau, or in LLVM's text with encodings"
            }
        }
    }
}

impl FromStr for Format {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self, Error> {
        Format::ALL
            .into_iter()
            .find(|format| format.name() == text)
            .ok_or_else(|| Error::UnknownFormat(text.to_owned()))
    }
}

/// Returns the name and the one-line description of every format, for help texts.
pub fn formats() -> impl Iterator<Item = (&'static str, &'static str)> {
    Format::ALL.into_iter().map(|format| (format.name(), format.description()))
}

/// Facts about a file that are not in the file.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Hints {
    /// The format in which to read the file. If this field is `None`, the content of the file determines the format.
    pub format: Option<Format>,
    /// The machine, for formats that do not name a machine.
    pub isa: Option<Isa>,
    /// The chip, for formats that do not name a chip.
    pub chip: Option<String>,
    /// The byte order of raw words, and of arrays whose contents do not show the byte order. The default is little
    /// endian.
    pub endian: Option<Endian>,
    /// Macros that are defined for a C source: `NAME`, `NAME=VALUE` or `NAME(x)=VALUE`.
    pub defines: Vec<String>,
    /// Whether to read the old side of a diff instead of the new side.
    pub old: bool,
}

reconverge_isa::choices! {
    /// The byte order of a word, or of an array's element.
    ///
    /// The enum is exhaustive, so that callers can match both byte orders. There will not be a third byte order.
    #[derive(Hash)]
    pub enum Endian {
        /// Least significant byte first.
        Little = "little",
        /// Most significant byte first.
        Big = "big",
    }
}

/// A written file, with notes about omitted data.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Written<T> {
    /// The content of the file.
    pub content: T,
    /// Notes about data that the format cannot represent.
    pub notes: Vec<String>,
}

/// Returns the format of a file. The content of the file determines the format.
///
/// Magic numbers and first tokens are checked first. Some files have a known kind but are not shader code. If such a
/// file contains an image, the format of the file is [`Format::Embedded`]. Otherwise, the result is an error that names
/// the kind. Any other text is [`Format::Hex32`], and any other data is [`Format::Bin`]. If the file does not have this
/// format, [`load`] returns an error.
pub fn recognise(bytes: &[u8]) -> Result<Format, Error> {
    if bytes.is_empty() {
        return Err(Error::Empty);
    }
    if let Some(format) = recognise_marked(bytes)? {
        return Ok(format);
    }
    // The order of these checks matters. A diff can change a file of any format, so diffs are checked first. Any text
    // can surround a driver's dump, so dumps of drivers are checked second. The lines of a C declaration can look like
    // a hex dump, so the function checks for C sources before hex dumps.
    Ok(match as_text(bytes) {
        Some(text) if hex::load(text).is_ok() && !dump::is_addressed(text) => Format::Hex32,
        Some(text) if diff::looks_like(text) => Format::Diff,
        _ if log::looks_like(bytes) => Format::Log,
        Some(text) if c::declares_array(text) => Format::C,
        Some(text) if dump::looks_like(text) => Format::Dump,
        Some(text) if hex::starts_like(text) => Format::Hex32,
        Some(text) if c::looks_like(text) => Format::C,
        Some(_) => Format::Hex32,
        None => {
            magic::refuse(bytes)?;
            if embedded::has_image(bytes) { Format::Embedded } else { Format::Bin }
        }
    })
}

/// Returns the format if a magic number or the first tokens of a cubin determine the format.
fn recognise_marked(bytes: &[u8]) -> Result<Option<Format>, Error> {
    if bytes.starts_with(b"\x7fELF") {
        return elf::recognise(bytes).map(Some);
    }
    if bytes.starts_with(magic::GZIP) {
        return Ok(Some(Format::Gzip));
    }
    if magic::host(bytes).is_some() {
        return Ok(Some(Format::Embedded));
    }
    if fatbin::starts_like(bytes) {
        return Ok(Some(Format::Fatbin));
    }
    if bytes.starts_with(gsh::MAGIC) {
        return Ok(Some(Format::Gsh));
    }
    Ok(as_text(bytes).filter(|text| cubin_text::starts_like(text)).map(|_| Format::CubinText))
}

/// Returns the bytes as text, without the zero bytes at the end. (Arrays of a C dump are padded with zero bytes.)
fn as_text(bytes: &[u8]) -> Option<&str> {
    let len = bytes.iter().rposition(|byte| *byte != 0).map_or(0, |last| last + 1);
    let text = std::str::from_utf8(&bytes[..len]).ok().filter(|text| !text.is_empty())?;
    let plain = !text.contains(|c: char| c.is_control() && !c.is_ascii_whitespace());
    plain.then_some(text)
}

/// Reads a file of any format.
///
/// `hints` has facts about the file that are not in the file. A hint that contradicts the file is ignored with a note.
pub fn load(bytes: &[u8], hints: &Hints) -> Result<Image, Error> {
    let format = match hints.format {
        Some(format) => format,
        None => recognise(bytes)?,
    };
    let mut image = load_as(bytes, format, hints)?;
    match (image.isa, hints.isa) {
        (None, isa) => image.isa = isa,
        (Some(found), Some(hint)) if found != hint => {
            image.notes.push(format!("the file is for {found}; the given {hint} is ignored"));
        }
        (Some(_), _) => {}
    }
    match (&image.chip, &hints.chip) {
        (None, chip) if image.modules.iter().all(|module| module.chip.is_none()) => {
            image.chip.clone_from(chip)
        }
        (Some(found), Some(hint)) if found != hint => {
            image.notes.push(format!("the file is for {found}; the given {hint} is ignored"));
        }
        (_, _) => {}
    }
    if matches!(image.isa, Some(Isa::R500 | Isa::R700)) {
        tell_apart(&mut image);
        settle(&mut image);
    }
    Ok(image)
}

/// Renames programs so that their names are unique. If several programs have the same name, the function adds the name
/// of the module as a prefix. If the names are still not unique, the function adds a number as a suffix. (Text cubins
/// have modules, and the names in a module are unique.)
fn tell_apart(image: &mut Image) {
    let mut uses: HashMap<String, usize> = HashMap::new();
    for name in image.programs.iter().filter_map(|program| program.name.as_ref()) {
        *uses.entry(name.clone()).or_default() += 1;
    }
    let mut taken: HashSet<String> = uses.keys().cloned().collect();
    uses.retain(|_, programs| std::mem::take(programs) > 1);
    for program in &mut image.programs {
        let Some(name) = &program.name else { continue };
        let Some(number) = uses.get_mut(name) else { continue };
        let module = image.modules.get(program.module).and_then(|module| module.name.as_ref());
        let mut new = module.map_or_else(|| name.clone(), |module| format!("{module}, {name}"));
        while !taken.insert(new.clone()) {
            new = format!("{name}{number}");
            *number += 1;
        }
        program.name = Some(new);
    }
}

/// If a program states a register several times, keeps only the last value. The result is the same as in a driver that
/// writes all values in the stated order.
fn settle(image: &mut Image) {
    for program in &mut image.programs {
        let mut places: HashMap<String, (usize, bool)> = HashMap::new();
        let mut state: Vec<(String, u32)> = Vec::with_capacity(program.state.len());
        for (register, value) in program.state.drain(..) {
            match places.get_mut(&register) {
                Some((place, noted)) => {
                    if !std::mem::replace(noted, true) {
                        let note = format!("{register} is stated more than once: the last value is used");
                        image.notes.push(note);
                    }
                    state[*place].1 = value;
                }
                None => {
                    places.insert(register.clone(), (state.len(), false));
                    state.push((register, value));
                }
            }
        }
        program.state = state;
    }
}

fn load_as(bytes: &[u8], format: Format, hints: &Hints) -> Result<Image, Error> {
    match format {
        Format::Hex32 => hex::load(need_text(bytes)?),
        Format::Bin => bin::load(bytes, hints.endian.unwrap_or(Endian::Little)),
        Format::CubinText => cubin_text::load(need_text(bytes)?),
        Format::CubinElf32 | Format::CubinElf64 => {
            cubin_elf::load(bytes).and_then(|image| match image.format == format.name() {
                true => Ok(image),
                false => Err(Error::OtherFormat { found: image.format, asked: format.name() }),
            })
        }
        Format::Fatbin => fatbin::load(bytes),
        Format::C => c::load(need_text(bytes)?, hints),
        Format::R600Elf => r600_elf::load(bytes),
        Format::Gsh => gsh::load(bytes),
        Format::CtmElf => ctm_elf::load(bytes),
        Format::CalElf => cal_elf::load(bytes),
        Format::Embedded => embedded::load(bytes, hints),
        Format::Gzip => gzip::load(bytes, hints),
        Format::Log => log::load(bytes, hints),
        Format::Dump if log::looks_like(bytes) => log::load(bytes, hints),
        Format::Dump => {
            let text = need_text(bytes)?;
            // A log may contain a C declaration and a dump with addresses. The function does not read such a text as a
            // C source.
            if c::declares_array(text) && !dump::is_addressed(text) {
                return Err(Error::OtherFormat { found: Format::C.name(), asked: format.name() });
            }
            dump::load(text, hints)
        }
        Format::Diff => diff::load(need_text(bytes)?, hints),
    }
}

/// Returns the bytes as text, or an error at the first byte that is not text.
fn need_text(bytes: &[u8]) -> Result<&str, Error> {
    if bytes.is_empty() {
        return Err(Error::Empty);
    }
    let len = bytes.iter().rposition(|byte| *byte != 0).map_or(0, |last| last + 1);
    std::str::from_utf8(&bytes[..len]).map_err(|error| {
        let at = error.valid_up_to() as u64;
        let found = Bytes::of(bytes).u8("text", at).unwrap_or(0);
        Error::value("a byte of a text", at, found, "UTF-8 text: is the format right?")
    })
}

/// Adds a member's programs and modules to the image of the container. `place` converts an offset in the member into an
/// offset in the container. If the hints name a machine and the member is for a different machine, the function skips
/// the member and adds a note.
fn merge(image: &mut Image, hints: &Hints, name: &str, mut member: Image, place: impl Fn(&mut CodeAt)) {
    if let (Some(found), Some(asked)) = (member.isa, hints.isa)
        && found != asked
    {
        image.notes.push(format!("{name} is for {found}, not for {asked}, and was skipped"));
        return;
    }
    let first = image.modules.len();
    if member.modules.is_empty() {
        // Each program has the index of a module. So if a member has no modules, the function adds one module for this
        // member.
        member
            .modules
            .push(reconverge_isa::program::Module { chip: member.chip.clone(), ..Default::default() });
    }
    for module in &mut member.modules {
        module.name.get_or_insert_with(|| name.to_owned());
    }
    for program in &mut member.programs {
        program.module += first;
        place(&mut program.code_at);
    }
    let was_empty = image.programs.is_empty();
    image.isa = if was_empty || image.isa == member.isa { member.isa } else { None };
    image.chip = if was_empty || image.chip == member.chip { member.chip } else { None };
    image.modules.append(&mut member.modules);
    image.programs.append(&mut member.programs);
    image.notes.extend(member.notes.iter().map(|note| format!("{name}: {note}")));
}
