//! One dump of a log, with the numbers that the dump contains.

use std::ops::Range;

use reconverge_isa::Isa;
use reconverge_isa::program::{Resources, Stage};

use super::lines::LogLine;
use crate::Error;

/// A shader in a log, read from one dump.
pub(super) struct LoggedShader {
    /// Number of the first line.
    pub(super) line: usize,
    pub(super) name: String,
    pub(super) isa: Option<Isa>,
    pub(super) stage: Option<Stage>,
    /// Class of the chip: 6, 7, E or C. Mesa's r600 driver prints these letters.
    pub(super) class: Option<char>,
    pub(super) chip: Option<String>,
    pub(super) words: Vec<u32>,
    /// Position of each word in the log, or `None` if the log does not contain the word.
    pub(super) places: Vec<Option<Range<usize>>>,
    /// Number of words that the header states.
    pub(super) expected: Option<usize>,
    pub(super) resources: Resources,
    pub(super) state: Vec<(String, u32)>,
    /// Number of lines in the dump that contain no words.
    pub(super) passed: Passed,
    pub(super) notes: Vec<String>,
    /// Error that names the missing part of the dump, if a part is missing.
    pub(super) damage: Option<Box<Error>>,
    /// Name of a chip that is not emulated.
    pub(super) foreign: Option<String>,
}

impl LoggedShader {
    pub(super) fn new(first: LogLine<'_>) -> LoggedShader {
        LoggedShader {
            line: first.number,
            name: String::new(),
            isa: None,
            stage: None,
            class: None,
            chip: None,
            words: Vec::new(),
            places: Vec::new(),
            expected: None,
            resources: Resources::default(),
            state: Vec::new(),
            passed: Passed::default(),
            notes: Vec::new(),
            damage: None,
            foreign: None,
        }
    }
}

/// Number of lines in dumps that contain no words.
#[derive(Default)]
pub(super) struct Passed {
    pub(super) count: usize,
    pub(super) first: usize,
}

impl Passed {
    pub(super) fn add(&mut self, line: LogLine<'_>) {
        if !line.text.trim().is_empty() {
            self.first = if self.count == 0 { line.number } else { self.first };
            self.count += 1;
        }
    }
}

/// Parses a word of eight hexadecimal digits.
pub(super) fn digits_of(token: &str) -> Option<u32> {
    let fits = token.len() == 8 && token.bytes().all(|byte| byte.is_ascii_hexdigit());
    if fits { u32::from_str_radix(token, 16).ok() } else { None }
}

/// Returns whether a part of a line is a number that could be a word. Text and decimal fractions are not such numbers.
pub(crate) fn is_number(token: &str) -> bool {
    let token = token.strip_prefix("0x").unwrap_or(token);
    let is_hex = token.bytes().all(|byte| byte.is_ascii_hexdigit());
    let has_digit = token.contains(|c: char| c.is_ascii_digit());
    let is_long = token.len() > 4 || token.len().is_multiple_of(2);
    // A token with many digits may be a word with a wrong character.
    let digits = token.bytes().filter(u8::is_ascii_digit).count();
    let hex = token.bytes().filter(u8::is_ascii_hexdigit).count();
    let is_word = token.len() == 8 && hex >= 6 && digits >= 3;
    let is_number =
        token.starts_with(|c: char| c.is_ascii_digit()) || is_hex && has_digit && is_long || is_word;
    is_number && !token.contains('.')
}

/// Returns an error about a dump in which a part is missing.
pub(super) fn missing(first: LogLine<'_>, what: String) -> Error {
    Error::line(first.number, first.text, format!("a whole dump: it lacks {what}"))
}
