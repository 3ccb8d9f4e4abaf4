//! Reads values from a byte slice that may be truncated. Every access is first checked against the length of the slice.

use std::ops::Range;
use std::sync::Arc;

use reconverge_isa::Program;
use reconverge_isa::program::{CodeAt, Digits, Numbers};

use crate::Error;

/// The bytes of a file or of a member of a container. The functions of this type read bytes at an offset.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Bytes<'a> {
    bytes: &'a [u8],
    /// Offset of the first byte in the whole file, for errors.
    base: u64,
}

impl<'a> Bytes<'a> {
    /// Wraps the bytes of a whole file.
    pub(crate) fn of(bytes: &'a [u8]) -> Self {
        Bytes { bytes, base: 0 }
    }

    /// Wraps a part of a file. The part starts at offset `base`. Errors state offsets from the start of the file.
    pub(crate) fn part(bytes: &'a [u8], base: u64) -> Self {
        Bytes { bytes, base }
    }

    pub(crate) fn len(self) -> u64 {
        self.bytes.len() as u64
    }

    /// Returns `wanted` bytes starting at offset `at`.
    pub(crate) fn slice(self, what: &'static str, at: u64, wanted: u64) -> Result<&'a [u8], Error> {
        let end = at.checked_add(wanted).filter(|end| *end <= self.len());
        match end {
            Some(end) => Ok(&self.bytes[at as usize..end as usize]),
            None => Err(Error::Truncated { what, at: self.base + at, wanted, size: self.base + self.len() }),
        }
    }

    fn array<const N: usize>(self, what: &'static str, at: u64) -> Result<[u8; N], Error> {
        let mut array = [0; N];
        array.copy_from_slice(self.slice(what, at, N as u64)?);
        Ok(array)
    }

    /// Reads a byte.
    pub(crate) fn u8(self, what: &'static str, at: u64) -> Result<u8, Error> {
        Ok(u8::from_le_bytes(self.array(what, at)?))
    }

    /// Reads two bytes, little endian.
    pub(crate) fn u16(self, what: &'static str, at: u64) -> Result<u16, Error> {
        Ok(u16::from_le_bytes(self.array(what, at)?))
    }

    /// Reads four bytes, little endian.
    pub(crate) fn u32(self, what: &'static str, at: u64) -> Result<u32, Error> {
        Ok(u32::from_le_bytes(self.array(what, at)?))
    }

    /// Reads four bytes, big endian.
    pub(crate) fn u32_be(self, what: &'static str, at: u64) -> Result<u32, Error> {
        Ok(u32::from_be_bytes(self.array(what, at)?))
    }

    /// Reads eight bytes, little endian.
    pub(crate) fn u64(self, what: &'static str, at: u64) -> Result<u64, Error> {
        Ok(u64::from_le_bytes(self.array(what, at)?))
    }

    /// Returns the text from `at` up to a zero byte.
    pub(crate) fn name(self, what: &'static str, at: u64) -> Result<&'a str, Error> {
        const LIMIT: u64 = 4096;
        let bad = Error::Name { what, at: self.base.saturating_add(at), limit: LIMIT };
        let Some(rest) = usize::try_from(at).ok().and_then(|at| self.bytes.get(at..)) else {
            return Err(bad);
        };
        let near = &rest[..rest.len().min(LIMIT as usize + 1)];
        let Some(len) = near.iter().position(|byte| *byte == 0) else { return Err(bad) };
        std::str::from_utf8(&near[..len]).map_err(|_| bad)
    }
}

/// Converts `bytes`, which start at offset `at`, to little-endian words.
pub(crate) fn words(what: &'static str, at: u64, bytes: &[u8]) -> Result<Vec<u32>, Error> {
    let (words, rest) = bytes.as_chunks::<4>();
    if !rest.is_empty() {
        return Err(Error::Uneven { what, at, bytes: bytes.len() as u64, multiple: 4 });
    }
    Ok(words.iter().map(|word| u32::from_le_bytes(*word)).collect())
}

/// Splits `words` into rows of `N` words. The words start at offset `at`.
pub(crate) fn rows<'a, const N: usize>(
    what: &'static str,
    at: u64,
    words: &'a [u32],
) -> Result<&'a [[u32; N]], Error> {
    match words.as_chunks() {
        (rows, []) => Ok(rows),
        _ => Err(Error::Uneven { what, at, bytes: 4 * words.len() as u64, multiple: 4 * N as u64 }),
    }
}

/// Returns a program of little-endian words that start at offset `at` of the file.
pub(crate) fn little_endian(words: Vec<u32>, at: u64) -> Program {
    let code_at = CodeAt::Bytes { start: at as usize, big_endian: false };
    Program { code_at, ..Program::from_words(words) }
}

/// Returns the location of the words in a text. The text has one number per word.
pub(crate) fn numbers(places: Vec<Range<usize>>, digits: Digits) -> CodeAt {
    let numbers = Numbers { start: 0, places: Arc::new(places), digits, width: 4, big_endian: false };
    CodeAt::Numbers(numbers, Box::new(CodeAt::Bytes { start: 0, big_endian: false }))
}

/// Converts words to little-endian bytes.
pub(crate) fn to_bytes(words: &[u32]) -> Vec<u8> {
    words.iter().flat_map(|word| word.to_le_bytes()).collect()
}

/// Appends an element of `width` bytes to `bytes`.
pub(crate) fn push_element(bytes: &mut Vec<u8>, value: u64, width: usize, big_endian: bool) {
    let value = value.to_le_bytes();
    let element = &value[..width];
    match big_endian {
        false => bytes.extend(element),
        true => bytes.extend(element.iter().rev()),
    }
}
