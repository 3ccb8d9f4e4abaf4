//! CUDA fat binaries: an archive of cubins and PTX texts.
//!
//! ```text
//! wrapper (may be absent)  u32 0x466243b1, u32 version, pointer to the header, pointer to a name
//! header                   u32 0xba55ed50, u16 version, u16 header size, u64 bytes of all members
//! member                   u16 kind (1 PTX, 2 ELF), u16 version, u32 header size, u64 payload size, … then payload
//! ```
//! (cuobjdump's output; gdev.) The older format of CUDA 1.x and 2.x has the magic number 0x1ee55a01. The older format
//! is a structure of host pointers, which a reader of a file cannot follow. In the older format, the cubins are in
//! separate arrays of a C source, see [`c`](crate::c).

use reconverge_isa::Image;

use crate::bytes::Bytes;
use crate::error::{Unread, counted};
use crate::{Error, Format, Hints, cubin_elf, cubin_text, merge};

const WRAPPER: u32 = 0x4662_43b1;
pub(crate) const HEADER: u32 = 0xba55_ed50;
const OLD: u32 = 0x1ee5_5a01;
/// Flags of a compressed member. Each compression method has one flag.
const COMPRESSED: u64 = 0x3000;
/// Number of bytes of a member's header that are read.
const MEMBER_BYTES: u32 = 0x40;

/// Returns whether the first bytes are the magic number of a fat binary.
pub(crate) fn starts_like(bytes: &[u8]) -> bool {
    Bytes::of(bytes).u32("", 0).is_ok_and(|magic| [WRAPPER, HEADER, OLD].contains(&magic))
}

/// Returns the length that the header states, if the header is valid.
pub(crate) fn length(bytes: &[u8]) -> Option<usize> {
    let file = Bytes::of(bytes);
    let header = file.u16("", 6).ok().filter(|header| *header >= 16)?;
    let members = file.u64("", 8).ok()?;
    usize::try_from(members).ok()?.checked_add(usize::from(header))
}

/// Reads all cubins of a fat binary. Members that cannot be read are skipped, each with a note. Four kinds of members
/// cannot be read: PTX, code of later chips, compressed members, and damaged members. If no member can be read, the
/// function returns the error of the first member.
///
/// Each member becomes a module of the image. The name of the module consists of the member's number and architecture.
pub fn load(bytes: &[u8]) -> Result<Image, Error> {
    let file = Bytes::of(bytes);
    let start = match file.u32("the magic number", 0)? {
        HEADER => 0,
        WRAPPER => behind_wrapper(file)?,
        OLD => {
            return Err(Error::Unsupported {
                at: 0,
                what: "the fat binary of CUDA 1.x and 2.x (magic 0x1ee55a01), a table of host pointers,",
                remedy: "give the cubin text it points to, or the C source that nvcc --keep leaves",
            });
        }
        found => return Err(Error::value("the magic number", 0, found, "0xba55ed50 or 0x466243b1")),
    };
    let mut image = Image { format: Format::Fatbin.name(), ..Image::default() };
    let header = u64::from(file.u16("the header", start + 6)?);
    if header < 16 {
        return Err(Error::value("the header's size", start + 6, header, "at least 16"));
    }
    let total = file.u64("the header", start + 8)?;
    let members = start + header;
    file.slice("the members", members, total)?;
    let end = members + total;
    let mut at = members;
    let mut number = 0;
    let mut unread = Unread::default();
    while at < end {
        number += 1;
        match member(file, at, end, number, &mut image, &mut unread) {
            Ok(next) => at = next,
            // If the length of this member is unknown, the start of the next member is also unknown.
            Err(error) => {
                unread.push(error);
                break;
            }
        }
    }
    let remedy = format!("the fat binary has {}, none with machine code", counted(number, "member"));
    unread.settle(&mut image, "a cubin", remedy)?;
    Ok(image)
}

fn behind_wrapper(file: Bytes<'_>) -> Result<u64, Error> {
    // The wrapper contains a pointer to the header of the fat binary. In a linked file, this pointer is an address of
    // the host. In a dump, the pointer is an offset or has no meaning. If the pointer has no meaning, the header
    // directly follows the wrapper.
    let pointer = file.u64("the wrapper", 8)?;
    let found = [pointer, 24, 16].into_iter().find(|at| file.u32("the header", *at) == Ok(HEADER));
    found.ok_or(Error::Unsupported {
        at: 8,
        what: "a fat binary wrapper whose header is not in this file",
        remedy: "give the section it points to (.nv_fatbin), which starts with 0xba55ed50",
    })
}

/// Reads one member and returns the offset of the following member.
fn member(
    file: Bytes<'_>,
    at: u64,
    end: u64,
    number: usize,
    image: &mut Image,
    unread: &mut Unread,
) -> Result<u64, Error> {
    const MEMBER: &str = "a member's header";
    let kind = file.u16(MEMBER, at)?;
    let header = file.u32(MEMBER, at + 4)?;
    let payload = file.u64(MEMBER, at + 8)?;
    if header < MEMBER_BYTES {
        let expected = format!("at least {MEMBER_BYTES:#x}");
        return Err(Error::value("the size of a member's header", at, header, expected));
    }
    file.slice(MEMBER, at, u64::from(header))?;
    let sm = file.u32(MEMBER, at + 28)?;
    let flags = file.u64(MEMBER, at + 40)?;
    let start = at + u64::from(header);
    let data = file.slice("a member", start, payload)?;
    let next = start + payload;
    if next > end {
        let second = "the end of the members that the header gives";
        return Err(Error::overlap(format!("member {number}"), second, end));
    }
    let name = format!("member {number}, sm_{sm}");
    match kind {
        1 => image.notes.push(format!("{name}: PTX text, not machine code, was skipped")),
        2 if flags & COMPRESSED != 0 => unread.push(Error::Compressed { at, name, flags }),
        2 => {
            let loaded = if data.starts_with(b"\x7fELF") {
                cubin_elf::load(data)
            } else {
                crate::need_text(data).and_then(cubin_text::load)
            };
            let loaded = match loaded {
                Ok(loaded) => loaded,
                Err(source) => {
                    unread.push(Error::Member { name, at: start, source: Box::new(source) });
                    return Ok(next);
                }
            };
            if loaded.chip.as_deref().is_some_and(|chip| chip != format!("sm_{sm}")) {
                image
                    .notes
                    .push(format!("{name}: the cubin itself says {}", loaded.chip.as_deref().unwrap_or("")));
            }
            merge(image, &Hints::default(), &name, loaded, |place| place.shift(start as usize));
        }
        other => image.notes.push(format!("{name}: kind {other} has no known meaning and was skipped")),
    }
    Ok(next)
}
