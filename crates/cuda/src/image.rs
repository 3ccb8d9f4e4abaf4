//! Images of modules. This file reads an image from an address or a file, and returns the programs for the chip.

use std::ffi::c_void;

use reconverge_container::{self as container, Error as Unreadable, Format, Hints};
use reconverge_isa::Program;
use reconverge_isa::program::Module;

use crate::messages::say_once;
use crate::status::CudaError;

/// Maximum size of an image in bytes.
const LARGEST: usize = 1 << 30;

/// The programs of an image that one chip can run. The module contains the common data of these programs.
#[derive(Clone, Debug)]
pub(crate) struct Parsed {
    pub(crate) module: Module,
    pub(crate) programs: Vec<Program>,
    /// Minor number of the compute capability for which the programs were compiled.
    pub(crate) minor: u32,
}

/// Copies bytes of the host up to the first byte that cannot be read. Returns the number of copied bytes.
pub(crate) fn readable(address: usize, to: &mut [u8]) -> usize {
    let local = libc::iovec { iov_base: to.as_mut_ptr().cast(), iov_len: to.len() };
    let remote = libc::iovec { iov_base: address as *mut c_void, iov_len: to.len() };
    // SAFETY: the kernel checks the addresses of `remote`, and `local` describes a slice.
    let count =
        unsafe { libc::process_vm_readv(libc::getpid(), &raw const local, 1, &raw const remote, 1, 0) };
    match usize::try_from(count) {
        Ok(count) => count,
        Err(_) if std::io::Error::last_os_error().raw_os_error() == Some(libc::EFAULT) => 0,
        // A sandbox may forbid `process_vm_readv`.
        Err(_) => {
            // SAFETY: the program promises that this range is memory of the program.
            unsafe { to.as_mut_ptr().copy_from_nonoverlapping(address as *const u8, to.len()) };
            to.len()
        }
    }
}

fn bytes_at(address: usize, count: usize) -> Result<Vec<u8>, CudaError> {
    if count > LARGEST || address.checked_add(count).is_none() {
        return Err(CudaError::INVALID_IMAGE);
    }
    let mut bytes = vec![0; count];
    let mut done = 0;
    while done < count {
        // The loop copies one page at a time. If a part of the range is not mapped, the kernel may copy nothing of the
        // range.
        let here = address + done;
        let part = (count - done).min(4096 - here % 4096);
        if readable(here, &mut bytes[done..done + part]) != part {
            return Err(CudaError::INVALID_IMAGE);
        }
        done += part;
    }
    Ok(bytes)
}

fn number(bytes: &[u8], at: usize, width: usize) -> u64 {
    let mut word = [0; 8];
    word[..width].copy_from_slice(&bytes[at..at + width]);
    u64::from_le_bytes(word)
}

/// Returns the size of an ELF file in bytes. The size is derived from the header and the section table of the file.
fn elf_size(address: usize) -> Result<usize, CudaError> {
    let header = bytes_at(address, 64)?;
    let wide = header[4] == 2;
    let field = |narrow: (usize, usize), wide_field: (usize, usize)| {
        let (at, width) = if wide { wide_field } else { narrow };
        number(&header, at, width)
    };
    let (segments, sections) = (field((0x1c, 4), (0x20, 8)), field((0x20, 4), (0x28, 8)));
    let half = |narrow, wide_at| field((narrow, 2), (wide_at, 2));
    let (segment, segment_count) = (half(0x2a, 0x36), half(0x2c, 0x38));
    let (section, section_count) = (half(0x2e, 0x3a), half(0x30, 0x3c));
    let end =
        |start: u64, size: u64, count: u64| start.checked_add(size * count).ok_or(CudaError::INVALID_IMAGE);
    let tables = [end(segments, segment, segment_count)?, end(sections, section, section_count)?];
    let mut size = tables.into_iter().max().unwrap_or(0).max(if wide { 64 } else { 52 });
    let least = if wide { 0x40 } else { 0x28 };
    if section >= least && size <= LARGEST as u64 {
        let table = bytes_at(address.wrapping_add(sections as usize), (section * section_count) as usize)?;
        for entry in table.chunks_exact(section as usize) {
            let (start, bytes) = match wide {
                true => (number(entry, 0x18, 8), number(entry, 0x20, 8)),
                false => (number(entry, 0x10, 4), number(entry, 0x14, 4)),
            };
            // Sections of type `NOBITS` have no bytes in the file.
            if number(entry, 4, 4) != 8 {
                size = size.max(end(start, bytes, 1)?);
            }
        }
    }
    usize::try_from(size).map_err(|_| CudaError::INVALID_IMAGE)
}

/// Returns the bytes of an image. The program passes only the address of the image. Therefore, the function derives the
/// size from the contents.
pub(crate) fn at(address: usize) -> Result<Vec<u8>, CudaError> {
    image_at(address, false)
}

/// Returns the bytes of an image. If `is_wrapped` is true, a wrapper refers to the image. Such an image must not be
/// another wrapper.
fn image_at(address: usize, is_wrapped: bool) -> Result<Vec<u8>, CudaError> {
    const WRAPPER: u64 = 0x4662_43b1;
    const FATBIN: u64 = 0xba55_ed50;
    if address == 0 {
        return Err(CudaError::INVALID_VALUE);
    }
    let mut start = [0; 4];
    if readable(address, &mut start) == 4 {
        if &start == b"\x7fELF" {
            return bytes_at(address, elf_size(address)?);
        }
        match number(&start, 0, 4) {
            // nvcc writes the wrapper. The fields of the wrapper are the magic number, the version, and the address of
            // the archive.
            WRAPPER if is_wrapped => return Err(CudaError::INVALID_IMAGE),
            WRAPPER => return image_at(number(&bytes_at(address, 16)?, 8, 8) as usize, true),
            FATBIN => {
                let header = bytes_at(address, 16)?;
                let size = number(&header, 6, 2).checked_add(number(&header, 8, 8));
                let size =
                    size.and_then(|size| usize::try_from(size).ok()).ok_or(CudaError::INVALID_IMAGE)?;
                return bytes_at(address, size);
            }
            _ => {}
        }
    }
    // If an image has none of these headers, the image is a text that ends with a zero byte.
    let mut text = Vec::new();
    while text.len() < LARGEST {
        let Some(here) = address.checked_add(text.len()) else { break };
        let mut part = vec![0; 4096 - here % 4096];
        let count = readable(here, &mut part);
        if let Some(end) = part[..count].iter().position(|byte| *byte == 0) {
            text.extend_from_slice(&part[..end]);
            return Ok(text);
        }
        if count < part.len() {
            break;
        }
        text.append(&mut part);
    }
    Err(CudaError::INVALID_IMAGE)
}

/// Whether a text is PTX. The first directive of PTX is `.version`.
fn is_ptx(bytes: &[u8]) -> bool {
    let text = String::from_utf8_lossy(&bytes[..bytes.len().min(65536)]);
    text.lines()
        .map(str::trim)
        .find(|line| !line.is_empty() && !line.starts_with("//"))
        .is_some_and(|line| line.starts_with(".version"))
}

/// Whether a text cubin names an architecture later than Tesla.
fn is_for_another_chip(bytes: &[u8]) -> bool {
    let text = String::from_utf8_lossy(&bytes[..bytes.len().min(4096)]);
    let mut words =
        text.split(|c: char| c.is_whitespace() || "{}".contains(c)).filter(|word| !word.is_empty());
    let architecture = words.find(|word| *word == "architecture").and_then(|_| words.next());
    architecture.and_then(|name| name.strip_prefix("sm_")?.parse::<u32>().ok()).is_some_and(|sm| sm > 13)
}

/// Returns the CUDA error for an image that cannot be read. If a member of an archive cannot be read, returns the error
/// for the member.
fn of_unreadable(error: &Unreadable) -> CudaError {
    match error {
        Unreadable::OtherChip { .. } | Unreadable::Missing { .. } | Unreadable::Compressed { .. } => {
            CudaError::NO_BINARY_FOR_GPU
        }
        Unreadable::Member { source, .. } => of_unreadable(source),
        _ => CudaError::INVALID_IMAGE,
    }
}

/// Returns the number N from the name `sm_1N` of an architecture.
fn minor(chip: Option<&str>) -> u32 {
    chip.and_then(|chip| chip.strip_prefix("sm_1")?.parse().ok()).unwrap_or(0)
}

/// Reads an image. If the image is an archive with several cubins for the chip, chooses the cubin with the highest
/// compute capability. `most` is the minor number of the chip's compute capability.
///
/// # Errors
/// Returns `CUDA_ERROR_NO_BINARY_FOR_GPU` if the image has no code for the chip. Returns
/// `CUDA_ERROR_JIT_COMPILER_NOT_FOUND` if the image is PTX. Returns `CUDA_ERROR_INVALID_IMAGE` if the image is invalid
/// for a different reason. A message explains the cause.
pub(crate) fn parse(bytes: &[u8], most: u32) -> Result<Parsed, CudaError> {
    if is_ptx(bytes) {
        say_once("cannot load PTX, because it has to be compiled: expected a cubin for sm_10 to sm_13");
        return Err(CudaError::JIT_COMPILER_NOT_FOUND);
    }
    let refused = |error: Unreadable| {
        say_once(&format!("the image cannot be loaded: {error}"));
        if is_for_another_chip(bytes) { CudaError::NO_BINARY_FOR_GPU } else { of_unreadable(&error) }
    };
    let format = container::recognise(bytes).map_err(refused)?;
    if !matches!(format, Format::CubinText | Format::CubinElf32 | Format::CubinElf64 | Format::Fatbin) {
        say_once("the image is neither a cubin for sm_10 to sm_13 nor a fat binary");
        return Err(CudaError::INVALID_IMAGE);
    }
    let hints = Hints { format: Some(format), ..Hints::default() };
    let image = container::load(bytes, &hints).map_err(refused)?;
    let numbered = image.modules.iter().enumerate();
    let fitting = numbered.filter(|(_, module)| minor(module.chip.as_deref()) <= most);
    let Some((index, module)) = fitting.max_by_key(|(_, module)| minor(module.chip.as_deref())) else {
        say_once(&format!("the image has no program for sm_10 to sm_1{most}; --chip chooses another chip"));
        return Err(CudaError::NO_BINARY_FOR_GPU);
    };
    let programs = image.programs.iter().filter(|program| program.module == index).cloned().collect();
    Ok(Parsed { module: module.clone(), programs, minor: minor(module.chip.as_deref()) })
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEXT: &str =
        "architecture {sm_11}\ncode {\n name = k\n reg = 2\n bincode { 0x30000003 0x00000780 }\n}\n";

    #[test]
    fn a_text_cubin_is_read_to_its_zero_byte() {
        let bytes = format!("{TEXT}\0behind it");
        let read = at(bytes.as_ptr() as usize).unwrap();
        assert_eq!(read, TEXT.as_bytes());
        let parsed = parse(&read, 2).unwrap();
        assert_eq!((parsed.programs.len(), parsed.minor), (1, 1));
    }

    #[test]
    fn images_that_cannot_run_have_the_documented_errors() {
        let error = |bytes: &[u8], most| parse(bytes, most).unwrap_err();
        assert_eq!(error(TEXT.as_bytes(), 0), CudaError::NO_BINARY_FOR_GPU);
        assert_eq!(error(b"// c\n.version 1.4\n.target sm_13\n", 3), CudaError::JIT_COMPILER_NOT_FOUND);
        assert_eq!(error(b"nothing of the kind", 3), CudaError::INVALID_IMAGE);
        assert_eq!(error(b"\x7fELF", 3), CudaError::INVALID_IMAGE);
        assert_eq!(error(TEXT.replace("sm_11", "sm_20").as_bytes(), 3), CudaError::NO_BINARY_FOR_GPU);
        assert_eq!(error(&TEXT.as_bytes()[..TEXT.len() - 8], 3), CudaError::INVALID_IMAGE);
    }

    #[test]
    fn a_wrapper_of_a_wrapper_is_no_image() {
        let mut words = [0x4662_43b1_u64, 0];
        words[1] = words.as_ptr() as u64;
        assert_eq!(at(words.as_ptr() as usize), Err(CudaError::INVALID_IMAGE));
    }

    #[test]
    fn a_header_that_states_too_much_is_no_image() {
        let mut header = [0xff_u8; 64];
        header[..4].copy_from_slice(b"\x7fELF");
        for class in [1, 2] {
            header[4] = class;
            assert_eq!(at(header.as_ptr() as usize), Err(CudaError::INVALID_IMAGE), "class {class}");
        }
        header[..4].copy_from_slice(&0xba55_ed50_u32.to_le_bytes());
        assert_eq!(at(header.as_ptr() as usize), Err(CudaError::INVALID_IMAGE));
    }

    #[test]
    fn addresses_without_memory_are_no_image() {
        assert_eq!(at(0), Err(CudaError::INVALID_VALUE));
        assert_eq!(at(0x10), Err(CudaError::INVALID_IMAGE));
        assert_eq!(at(usize::MAX - 2), Err(CudaError::INVALID_IMAGE));
    }
}
