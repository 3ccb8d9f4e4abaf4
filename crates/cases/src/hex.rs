//! Words in JSON. Each word has eight hexadecimal digits. A string can have several words, with or without spaces
//! between the words.

use serde::Deserialize;
use serde::de::{Deserializer, Error};

/// Words from one string.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Words(pub Vec<u32>);

/// Returns the words in `text`.
///
/// # Errors
/// Fails if a character is not a hexadecimal digit, or if the number of digits is not a multiple of eight.
pub fn parse(text: &str) -> Result<Vec<u32>, String> {
    let digits: Vec<u8> = text.bytes().filter(|byte| !byte.is_ascii_whitespace()).collect();
    let (words, rest) = digits.as_chunks::<8>();
    if !rest.is_empty() {
        return Err(format!("expected words of 8 hexadecimal digits, found `{}`", shorten(text)));
    }
    words
        .iter()
        .map(|digits| {
            digits
                .iter()
                .try_fold(0, |word, digit| Some(word << 4 | char::from(*digit).to_digit(16)?))
                .ok_or_else(|| {
                    format!("expected a hexadecimal word, found `{}`", String::from_utf8_lossy(digits))
                })
        })
        .collect()
}

fn shorten(text: &str) -> String {
    text.chars().take(24).collect()
}

impl<'de> Deserialize<'de> for Words {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Words, D::Error> {
        let text = String::deserialize(deserializer)?;
        parse(&text).map(Words).map_err(D::Error::custom)
    }
}

/// One word.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Word(pub u32);

impl<'de> Deserialize<'de> for Word {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Word, D::Error> {
        match Words::deserialize(deserializer)?.0[..] {
            [word] => Ok(Word(word)),
            ref words => Err(D::Error::custom(format!("expected 1 word, found {}", words.len()))),
        }
    }
}

/// Four words, which are the channels of a register.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Quad(pub [u32; 4]);

impl<'de> Deserialize<'de> for Quad {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Quad, D::Error> {
        let words = Words::deserialize(deserializer)?.0;
        let found = words.len();
        words.try_into().map(Quad).map_err(|_| D::Error::custom(format!("expected 4 words, found {found}")))
    }
}

#[cfg(test)]
mod tests {
    use super::parse;

    #[test]
    fn words_are_eight_digits_most_significant_first() {
        assert_eq!(parse("0000000a80000000"), Ok(vec![10, 0x8000_0000]));
        assert_eq!(parse("0000000a 80000000"), Ok(vec![10, 0x8000_0000]));
        for bad in ["0000000", "0000000g", "+0000001", "äääääääää"] {
            assert!(parse(bad).is_err(), "{bad}");
        }
    }
}
