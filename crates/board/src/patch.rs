//! Replaces words of a program when the program is sent to a chip.

use std::fmt;
use std::str::FromStr;

use thiserror::Error;

/// A list of consecutive words, and the replacement for this list. A patch replaces every occurrence of the list in a
/// program.
///
/// ```
/// use reconverge_board::patch::Patch;
/// let patch: Patch = "1,80000002:3,4".parse()?;
/// let mut words = [0, 1, 0x8000_0002, 1];
/// assert_eq!((patch.apply(&mut words), words), (1, [0, 3, 4, 1]));
/// # Ok::<(), reconverge_board::patch::PatchError>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Patch {
    old: Vec<u32>,
    new: Vec<u32>,
}

/// Error for a text that is not a valid patch.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum PatchError {
    /// The text does not consist of two lists.
    #[error("expected OLD:NEW, two lists of hexadecimal words such as 80000c10:80000c11")]
    Form,
    /// An element is not a word.
    #[error("expected a word of up to 8 hexadecimal digits, found `{0}`")]
    Word(String),
    /// The lists have different lengths.
    #[error("expected lists of equal length, found {old} old words and {new} new words")]
    Lengths {
        /// Number of words to be replaced.
        old: usize,
        /// Number of words in the replacement.
        new: usize,
    },
}

impl Patch {
    /// Replaces every occurrence of the list of words in `words`. Returns the number of occurrences.
    pub fn apply(&self, words: &mut [u32]) -> u64 {
        let (mut count, mut at) = (0, 0);
        while let Some(place) = words.get_mut(at..at + self.old.len()) {
            if place == self.old {
                place.copy_from_slice(&self.new);
                (count, at) = (count + 1, at + self.old.len());
            } else {
                at += 1;
            }
        }
        count
    }
}

impl FromStr for Patch {
    type Err = PatchError;

    fn from_str(text: &str) -> Result<Patch, PatchError> {
        let (old, new) = text.split_once(':').ok_or(PatchError::Form)?;
        let words = |list: &str| {
            let word = |text: &str| {
                let digits = text.trim().trim_start_matches("0x");
                let digits =
                    Some(digits).filter(|digits| digits.chars().all(|digit| digit.is_ascii_hexdigit()));
                let word = digits.and_then(|digits| u32::from_str_radix(digits, 16).ok());
                word.ok_or_else(|| PatchError::Word(text.trim().to_owned()))
            };
            list.split(',').map(word).collect::<Result<Vec<_>, _>>()
        };
        let (old, new) = (words(old)?, words(new)?);
        if old.len() != new.len() {
            return Err(PatchError::Lengths { old: new.len(), new: old.len() });
        }
        Ok(Patch { old, new })
    }
}

impl fmt::Display for Patch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let words =
            |words: &[u32]| words.iter().map(|word| format!("{word:08x}")).collect::<Vec<_>>().join(",");
        write!(f, "{}:{}", words(&self.old), words(&self.new))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_no_patch_is_named() {
        let wrong = |text: &str| text.parse::<Patch>().unwrap_err();
        assert_eq!(wrong("80000001"), PatchError::Form);
        assert_eq!(wrong("1:x"), PatchError::Word("x".to_owned()));
        assert_eq!(wrong(":1"), PatchError::Word(String::new()));
        assert_eq!(wrong("+1:1"), PatchError::Word("+1".to_owned()));
        assert_eq!(wrong("123456789:1"), PatchError::Word("123456789".to_owned()));
        assert_eq!(wrong("1,2:3"), PatchError::Lengths { old: 1, new: 2 });
        assert_eq!("0x1, 2:a,b".parse::<Patch>().unwrap().to_string(), "00000001,00000002:0000000a,0000000b");
    }

    #[test]
    fn all_places_are_replaced_and_none_overlaps_another() {
        let patch: Patch = "1,1:2,3".parse().unwrap();
        let mut words = [1, 1, 1, 0, 1, 1];
        assert_eq!((patch.apply(&mut words), words), (2, [2, 3, 1, 0, 2, 3]));
        assert_eq!(patch.apply(&mut []), 0);
    }
}
