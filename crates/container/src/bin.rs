//! Raw words without a header. The words are little endian unless the caller states another byte order. The caller also
//! states the machine.

use reconverge_isa::Image;
use reconverge_isa::program::CodeAt;

use crate::bytes::{little_endian, to_bytes, words};
use crate::{Endian, Error, Format};

/// Returns an image with one program without a name. Fails if the length is not a multiple of four.
pub fn load(bytes: &[u8], endian: Endian) -> Result<Image, Error> {
    if bytes.is_empty() {
        return Err(Error::Empty);
    }
    let mut program = little_endian(words("the file", 0, bytes)?, 0);
    if endian == Endian::Big {
        program.words.iter_mut().for_each(|word| *word = word.swap_bytes());
        program.code_at = CodeAt::Bytes { start: 0, big_endian: true };
    }
    Ok(Image { format: Format::Bin.name(), programs: vec![program], ..Image::default() })
}

/// Returns the words as the bytes of a file.
pub fn write(words: &[u32]) -> Vec<u8> {
    to_bytes(words)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_are_little_endian() {
        assert_eq!(load(&[1, 0, 0, 0x80], Endian::Little).unwrap().programs[0].words, [0x8000_0001]);
        assert_eq!(write(&[0x8000_0001]), [1, 0, 0, 0x80]);
    }

    #[test]
    fn a_length_that_is_no_multiple_of_four_is_an_error() {
        assert_eq!(
            load(&[0; 7], Endian::Little),
            Err(Error::Uneven { what: "the file", at: 0, bytes: 7, multiple: 4 })
        );
        assert_eq!(load(&[], Endian::Little), Err(Error::Empty));
    }
}
