//! Images inside other files: executables, objects, libraries, archives, memory dumps, and compressed sections of Wii U
//! programs.
//!
//! The search finds an image by its header. The known headers are the ELF header of a supported machine, the header of
//! a fat binary, `Gfx2`, and the first words of a text cubin. Each image that can be loaded becomes one or more
//! modules. The names of these modules contain the offset of the image. If the image is in a member of an archive,
//! these names also contain the name of the member. A note names each image that cannot be loaded.

use memchr::memmem;
use reconverge_isa::Image;
use reconverge_isa::program::CodeAt;

use crate::error::Unread;
use crate::{Error, Format, Hints, cubin_text, elf, fatbin, gsh, load_as, magic, merge, rpl};

/// Maximum number of images that cannot be loaded. The search ends after this number of unreadable images. Without this
/// limit, the search would take a long time in a damaged or malicious file with many headers.
const MOST_UNREAD: usize = 1000;

/// The first bytes of each kind of header.
const MARKS: [&[u8]; 4] = [b"\x7fELF", &fatbin::HEADER.to_le_bytes(), gsh::MAGIC, b"architecture"];

/// Returns whether the file contains an image.
pub(crate) fn has_image(bytes: &[u8]) -> bool {
    places(bytes).into_iter().any(|at| image_at(bytes, at).is_some())
}

/// Reads all images in a file. If `hints` name a machine, the function skips images for other machines and adds a note
/// about each skipped image.
pub fn load(bytes: &[u8], hints: &Hints) -> Result<Image, Error> {
    let mut image = Image { format: Format::Embedded.name(), ..Image::default() };
    let mut unread = Unread::default();
    search(bytes, "", hints, &mut image, &mut unread);
    if rpl::starts_like(bytes) {
        for section in rpl::inflated(bytes)? {
            let name = match &section.name[..] {
                "" => format!("section {}", section.number),
                name => format!("section {name}"),
            };
            match section.content {
                Ok(content) => {
                    let first = image.programs.len();
                    search(&content, &format!("{name}, "), hints, &mut image, &mut unread);
                    image.programs[first..].iter_mut().for_each(|program| program.code_at = CodeAt::Nowhere);
                }
                Err(source) => unread.push(Error::Member { name, at: section.at, source: Box::new(source) }),
            }
        }
    }
    let what = magic::host(bytes).unwrap_or("the file");
    let isa = hints.isa.map(|isa| format!(" with programs for {isa}")).unwrap_or_default();
    let remedy = format!(
        "{what} was searched for cubins, fat binaries, CAL, CTM and R600 objects and Wii U files{isa}"
    );
    unread.settle(&mut image, "machine code", remedy)?;
    Ok(image)
}

/// Adds all images in `bytes`. `before` is a prefix for the names of the images.
fn search(bytes: &[u8], before: &str, hints: &Hints, image: &mut Image, unread: &mut Unread) {
    let members = members(bytes);
    let kernels = opencl_kernels(bytes);
    let mut free = 0;
    for at in places(bytes) {
        if at < free {
            continue;
        }
        let Some((format, length)) = image_at(bytes, at) else { continue };
        if unread.len() == MOST_UNREAD {
            image.notes.push(format!(
                "the search ended at byte {at:#x}, because too many images before it cannot be read"
            ));
            break;
        }
        let inside = members.iter().find(|member| (member.start..member.end).contains(&at));
        let name = match inside {
            Some(member) => format!("{before}offset {at:#x} ({})", member.name),
            None => format!("{before}offset {at:#x}"),
        };
        match load_as(&bytes[at..at + length], format, hints) {
            Ok(mut found) => {
                if let [program] = &mut found.programs[..]
                    && let Some((_, _, kernel)) =
                        kernels.iter().find(|(start, end, _)| (*start..*end).contains(&at))
                {
                    program.name.get_or_insert_with(|| kernel.clone());
                }
                for module in &mut found.modules {
                    module.name =
                        Some(module.name.take().map_or(name.clone(), |own| format!("{name}, {own}")));
                }
                merge(image, hints, &name, found, |place| place.shift(at));
            }
            Err(source) => unread.push(Error::Member { name, at: at as u64, source: Box::new(source) }),
        }
        free = at + extent(&bytes[at..], format, length);
    }
}

/// Returns the offsets at which a header may start, in ascending order.
fn places(bytes: &[u8]) -> Vec<usize> {
    let mut places: Vec<usize> = MARKS.iter().flat_map(|mark| memmem::find_iter(bytes, mark)).collect();
    places.sort_unstable();
    places
}

/// Returns the format of the image at an offset. Also returns the maximum number of bytes that can belong to the image.
fn image_at(bytes: &[u8], at: usize) -> Option<(Format, usize)> {
    let rest = &bytes[at..];
    if rest.starts_with(MARKS[0]) {
        // An ELF header for an unsupported machine does not begin an image. Such a header is the header of the searched
        // file itself, or of an object in an archive.
        return elf::recognise(rest)
            .ok()
            .filter(|format| *format != Format::Embedded)
            .map(|format| (format, rest.len()));
    }
    if rest.starts_with(MARKS[1]) {
        return fatbin::length(rest).map(|length| (Format::Fatbin, length.min(rest.len())));
    }
    if rest.starts_with(gsh::MAGIC) {
        // The file has a header of 32 bytes, and a block follows this header.
        return (rest.get(32..36) == Some(b"BLK{")).then_some((Format::Gsh, rest.len()));
    }
    let plain = |byte: &u8| byte.is_ascii_graphic() || byte.is_ascii_whitespace();
    let length = rest.iter().position(|byte| !plain(byte)).unwrap_or(rest.len());
    let text = str::from_utf8(&rest[..length]).ok()?;
    cubin_text::starts_like(text).then_some((Format::CubinText, length))
}

/// Returns the number of bytes that certainly belong to an image, counted from the start of the image. The search skips
/// these bytes.
fn extent(rest: &[u8], format: Format, length: usize) -> usize {
    match format {
        Format::Fatbin | Format::CubinText => length,
        _ => 4.min(rest.len()),
    }
}

/// A member of an archive.
struct Member {
    name: String,
    start: usize,
    end: usize,
}

/// Returns the members of an archive of objects or of a tar archive, up to the first unreadable header.
fn members(bytes: &[u8]) -> Vec<Member> {
    let mut members = Vec::new();
    let number = |field: &[u8], radix| {
        let text = str::from_utf8(field).ok()?;
        usize::from_str_radix(text.trim_matches(|c: char| c == '\0' || c.is_whitespace()), radix).ok()
    };
    let name = |field: &[u8]| {
        let end = field.iter().position(|byte| *byte == 0).unwrap_or(field.len());
        String::from_utf8_lossy(&field[..end]).trim_end().trim_end_matches('/').to_owned()
    };
    let objects = bytes.starts_with(b"!<arch>\n");
    let mut at: usize = if objects { 8 } else { 0 };
    // `long` is the member that holds all names of more than 15 characters.
    let mut long: &[u8] = &[];
    loop {
        let (header, size) = if objects { (60, 48..58) } else { (512, 124..136) };
        let Some(head) = bytes.get(at..at.saturating_add(header)) else { break };
        if !objects && head.get(257..262) != Some(b"ustar") {
            break;
        }
        let Some(size) = number(&head[size], if objects { 10 } else { 8 }) else { break };
        let start = at + header;
        let Some(content) = start.checked_add(size).and_then(|end| bytes.get(start..end)) else { break };
        let mut named = name(&head[..if objects { 16 } else { 100 }]);
        if objects && head.starts_with(b"// ") {
            long = content;
        } else if let Some(from) = named.strip_prefix('/').and_then(|from| from.parse::<usize>().ok()) {
            let rest = long.get(from..).unwrap_or(&[]);
            named = name(rest.split(|byte| *byte == b'\n').next().unwrap_or(&[]));
        }
        members.push(Member { name: named, start, end: start + size });
        let aligned = size.next_multiple_of(if objects { 2 } else { 512 });
        at = start.saturating_add(aligned);
    }
    members
}

/// Returns the kernels of an AMD OpenCL binary. For each kernel, the result contains the range of the kernel's image
/// and the name of the kernel. (Symbols `__OpenCL_NAME_kernel`.)
fn opencl_kernels(bytes: &[u8]) -> Vec<(usize, usize, String)> {
    let Ok(elf) = elf::read_any(bytes) else { return Vec::new() };
    let kernels = elf.symbols.iter().filter_map(|symbol| {
        let name = symbol.name.strip_prefix("__OpenCL_")?.strip_suffix("_kernel")?;
        let section = elf.sections.get(usize::from(symbol.section))?;
        let start = section.offset.checked_add(symbol.value)?;
        let end = start.checked_add(symbol.size)?;
        Some((usize::try_from(start).ok()?, usize::try_from(end).ok()?, name.to_owned()))
    });
    kernels.collect()
}
