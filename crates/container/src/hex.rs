//! `hex32`: words as text, eight hexadecimal digits each, in memory order.
//!
//! Files have one word per line, in lower case. The reader also accepts several words per line, upper case, `0x` before
//! a word, and blank lines. Comments from `#`, `;` or `//` to the end of the line are also accepted. If the first
//! comment has a form such as `# isa tesla, chip sm_11, stage fragment`, this comment states the target of the words.

use std::fmt::Write as _;

use reconverge_isa::program::Digits;
use reconverge_isa::{Image, Program};

use crate::bytes::numbers;
use crate::error::quoted;
use crate::{Error, Format};

/// Returns one program without a name, with the words of the text.
pub fn load(text: &str) -> Result<Image, Error> {
    let (mut words, mut places) = (Vec::new(), Vec::new());
    for token in tokens(text) {
        let start = token.as_ptr() as usize - text.as_ptr() as usize;
        let word = word(token).ok_or_else(|| {
            let expected = "a word of exactly eight hexadecimal digits (comments start with # or ;)";
            Error::syntax(text, start, quoted(token), expected)
        })?;
        places.push(start..start + token.len());
        words.push(word);
    }
    if words.is_empty() {
        let remedy = "the text has comments and blank lines only, expected words of eight hexadecimal digits";
        return Err(Error::missing("a word", remedy));
    }
    let stated = |name: &str| {
        let comment = text.lines().next()?.trim_start().strip_prefix('#')?;
        let facts = comment.split(',').filter_map(|fact| fact.trim().split_once(' '));
        facts.clone().next().filter(|(first, _)| *first == "isa")?;
        facts.into_iter().find(|(fact, _)| *fact == name).map(|(_, value)| value.trim())
    };
    let program = Program {
        code_at: numbers(places, Digits::Hexadecimal),
        stage: stated("stage").and_then(|stage| stage.parse().ok()),
        ..Program::from_words(words)
    };
    Ok(Image {
        format: Format::Hex32.name(),
        isa: stated("isa").and_then(|isa| isa.parse().ok()),
        chip: stated("chip").map(str::to_owned),
        programs: vec![program],
        ..Image::default()
    })
}

/// Returns the words as text. The text has one word per line, in lower case.
pub fn write(words: &[u32]) -> String {
    let mut text = String::with_capacity(words.len() * 9);
    for word in words {
        let _ = writeln!(text, "{word:08x}"); // Writing to a string cannot fail.
    }
    text
}

/// Returns whether a text starts with a word. A text that starts with a word is read in this format.
pub(crate) fn starts_like(text: &str) -> bool {
    tokens(text).next().is_some_and(|token| word(token).is_some())
}

fn uncommented(line: &str) -> &str {
    let cut = [line.find('#'), line.find(';'), line.find("//")].into_iter().flatten().min();
    &line[..cut.unwrap_or(line.len())]
}

/// Returns the tokens of all lines.
fn tokens(text: &str) -> impl Iterator<Item = &str> {
    text.lines().flat_map(|line| uncommented(line).split_whitespace())
}

fn word(token: &str) -> Option<u32> {
    let digits = token.strip_prefix("0x").unwrap_or(token);
    let fits = digits.len() == 8 && digits.bytes().all(|byte| byte.is_ascii_hexdigit());
    if fits { u32::from_str_radix(digits, 16).ok() } else { None }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn words_of(text: &str) -> Vec<u32> {
        load(text).unwrap().programs.remove(0).words
    }

    #[test]
    fn comments_blank_lines_and_several_words_a_line_are_read() {
        assert_eq!(
            words_of("# head\n\n00000001 DEADBEEF ; two\n0x00000003 // three\r\n"),
            [1, 0xdead_beef, 3]
        );
    }

    #[test]
    fn what_is_written_is_read_back() {
        let words = [0, 1, 0x8000_0000, u32::MAX];
        assert_eq!(write(&words[..2]), "00000000\n00000001\n");
        assert_eq!(words_of(&write(&words)), words);
    }

    #[test]
    fn a_wrong_word_is_an_error_with_line_and_column() {
        for (bad, token) in [
            ("1234567", "1234567"),
            ("123456789", "123456789"),
            ("1234567g", "1234567g"),
            ("+1234567", "+1234567"),
        ] {
            let text = format!("00000000\n  00000001 {bad}\n");
            let error = load(&text).unwrap_err();
            assert!(
                matches!(&error, Error::Syntax { line: 2, column: 12, found, .. } if found.contains(token)),
                "{error}"
            );
        }
    }

    #[test]
    fn a_text_without_words_is_an_error() {
        assert!(matches!(load("# nothing\n"), Err(Error::Missing { .. })));
    }
}
