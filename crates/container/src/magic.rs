//! Recognises, by their first bytes, files that are not shader code. A file of raw words may contain any bytes.
//! Therefore, a loader without this module would accept every file as a program.

use crate::Error;
use crate::bytes::Bytes;

const NO_CODE: &str = "such a file does not contain shader code";
const PACKED: &str = "unpack it first";

/// Magic numbers of at least four bytes, each with the kind of the file and the remedy. The list has no magic numbers
/// of two or three bytes, because a program may begin with these bytes.
#[rustfmt::skip]
const MARKS: [(&[u8], &str, &str); 30] = [
    (b"\x89PNG",              "a PNG image",                NO_CODE),
    (b"\xff\xd8\xff\xe0",     "a JPEG image",               NO_CODE),
    (b"\xff\xd8\xff\xe1",     "a JPEG image",               NO_CODE),
    (b"GIF8",                 "a GIF image",                NO_CODE),
    (b"II*\0",                "a TIFF image",               NO_CODE),
    (b"DDS ",                 "a DirectDraw surface",       NO_CODE),
    (b"\xabKTX",              "a KTX texture",              NO_CODE),
    (b"RIFF",                 "a RIFF file (sound, film)",  NO_CODE),
    (b"OggS",                 "an Ogg file",                NO_CODE),
    (b"fLaC",                 "a FLAC file",                NO_CODE),
    (b"%PDF",                 "a PDF document",             NO_CODE),
    (b"\x93NUMPY",            "a NumPy array",              "it is an input of a run, not a program"),
    (b"SQLite format 3",      "an SQLite database",         NO_CODE),
    (b"\0asm",                "a WebAssembly module",       NO_CODE),
    (b"\xca\xfe\xba\xbe",     "a Java class or a Mach-O file for several processors", NO_CODE),
    (b"\xce\xfa\xed\xfe",     "a 32-bit Mach-O file",       NO_CODE),
    (b"\xcf\xfa\xed\xfe",     "a 64-bit Mach-O file",       NO_CODE),
    (b"BC\xc0\xde",           "LLVM bitcode",               "compile it for a chip first"),
    (b"\x03\x02\x23\x07",     "a SPIR-V module",            "compile it for a chip first"),
    (b"DXBC",                 "a DirectX shader container", "compile it for a chip first"),
    (b"\0\x03\xff\xff",       "a DirectX 9 pixel shader",   "compile it for a chip first"),
    (b"\0\x03\xfe\xff",       "a DirectX 9 vertex shader",  "compile it for a chip first"),
    (b"\xd0\xcf\x11\xe0",     "an OLE document",            NO_CODE),
    (b"PK\x03\x04",           "a zip archive",              PACKED),
    (b"PK\x05\x06",           "an empty zip archive",       NO_CODE),
    (b"BZh9",                 "a bzip2 file",               PACKED),
    (b"\xfd7zXZ",             "an xz file",                 PACKED),
    (b"\x28\xb5\x2f\xfd",     "a zstd file",                PACKED),
    (b"7z\xbc\xaf",           "a 7-Zip archive",            PACKED),
    (b"Rar!",                 "a RAR archive",              PACKED),
];

/// Returns an error if the file is of a known kind that is not shader code. The error names the kind.
pub(crate) fn refuse(bytes: &[u8]) -> Result<(), Error> {
    match MARKS.iter().find(|(mark, _, _)| bytes.starts_with(mark)) {
        Some((_, what, remedy)) => Err(Error::Unsupported { at: 0, what, remedy }),
        None => Ok(()),
    }
}

/// First bytes of a gzip file: two bytes of magic number and one byte for the compression method. Only one method is
/// defined.
pub(crate) const GZIP: &[u8] = b"\x1f\x8b\x08";

/// Returns the kind of the file if files of this kind can contain uncompressed files.
pub(crate) fn host(bytes: &[u8]) -> Option<&'static str> {
    let windows = || {
        let at = Bytes::of(bytes).u32("", 0x3c).ok()?;
        Bytes::of(bytes).slice("", u64::from(at), 4).ok().filter(|mark| *mark == b"PE\0\0")
    };
    if bytes.starts_with(b"\x7fELF") {
        Some("an ELF file of another machine")
    } else if bytes.starts_with(b"MZ") && windows().is_some() {
        Some("a Windows executable or library")
    } else if bytes.starts_with(b"MZ")
        && bytes.len() >= 0x40
        && Bytes::of(bytes).u16("", 0x18).is_ok_and(|at| (0x1c..=0x40).contains(&at))
    {
        Some("a DOS executable")
    } else if bytes.starts_with(b"!<arch>\n") {
        Some("an archive of objects")
    } else if bytes.get(257..262) == Some(b"ustar") {
        Some("a tar archive")
    } else {
        None
    }
}
