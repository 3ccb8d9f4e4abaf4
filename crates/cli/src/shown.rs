//! Text from input, in the form in which answers and messages show the text. Characters that control a terminal or are
//! invisible are escaped.
//!
//! Names and source lines may contain any characters, for example a sequence that clears a terminal or sets the title
//! of a terminal. Messages about names and source lines may contain the same sequences. [`is_hidden`] decides which
//! characters the functions of this module escape:
//!
//! * [`name`] and [`path`] escape a name within a line. These functions also escape newlines and tabs.
//! * [`lines`] and [`styled`] escape a whole answer or message. The module `messages` passes all output to a terminal
//!   or to standard error through these functions. So all output to a terminal or to standard error is escaped.
//! * [`Json`] writes JSON strings with JSON escapes.
//! * [`listed`] converts a name to an entry of a list with one name per line. [`unlisted`] converts the entry back.

use std::borrow::Cow;
use std::fmt::Write as _;
use std::io::{self, Write};
use std::path::Path;

use reconverge_workbench::keys::plain;

/// Returns whether a character controls a terminal or is invisible. Such a character is a control character, a format
/// character (text direction, joiners, zero-width spaces), a separator of lines or paragraphs, an unassigned character,
/// or a private character.
pub(crate) fn is_hidden(character: char) -> bool {
    if character.is_ascii() {
        return character.is_ascii_control();
    }
    // The code tests the character after a letter, because a combining mark is visible only after a letter.
    // `escape_debug` uses the standard library's table of printable characters.
    let mut text = [b'a'; 5];
    let length = 1 + character.encode_utf8(&mut text[1..]).len();
    std::str::from_utf8(&text[..length]).is_ok_and(|text| text.escape_debug().nth(2).is_some())
}

/// Escapes hidden characters in Rust's notation: `\n`, `\t`, `\r`, `\u{1b}`. Characters for which `keep` returns `true`
/// are not escaped.
fn escaped(text: &str, keep: impl Fn(char) -> bool) -> Cow<'_, str> {
    let is_escaped = |character| is_hidden(character) && !keep(character);
    if !text.chars().any(is_escaped) {
        return Cow::Borrowed(text);
    }
    let mut out = String::with_capacity(text.len() + 16);
    for character in text.chars() {
        match is_escaped(character) {
            true => out.extend(character.escape_default()),
            false => out.push(character),
        }
    }
    Cow::Owned(out)
}

/// Returns a name with all hidden characters escaped, for use within a line.
pub(crate) fn name(text: &str) -> Cow<'_, str> {
    escaped(text, |_| false)
}

/// Returns the name of a file without a leading `./`, for use within a line.
pub(crate) fn path(path: &(impl AsRef<Path> + ?Sized)) -> String {
    name(&plain(path.as_ref()).to_string_lossy()).into_owned()
}

/// Returns the name of a program as the user typed it. The form matters, because `./name` is a file in the folder, but
/// `name` is found with `PATH`.
pub(crate) fn program(path: &(impl AsRef<Path> + ?Sized)) -> String {
    name(&path.as_ref().to_string_lossy()).into_owned()
}

/// Returns a text of several lines, in which hidden characters are escaped.
pub(crate) fn lines(text: &str) -> Cow<'_, str> {
    escaped(text, |character| matches!(character, '\n' | '\t'))
}

/// Escapes the hidden characters in a text of several lines, but keeps the colour sequences. The caller must first
/// escape the names in the text, because this function cannot distinguish colour sequences in names from colour
/// sequences of the caller.
pub(crate) fn styled(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(at) = rest.find('\x1b') {
        out.push_str(&lines(&rest[..at]));
        rest = &rest[at..];
        let sequence = sgr(rest).unwrap_or("");
        out.push_str(sequence);
        rest = &rest[sequence.len()..];
        if sequence.is_empty() {
            out.push_str("\\u{1b}");
            rest = &rest[1..];
        }
    }
    out.push_str(&lines(rest));
    out
}

/// Returns the colour sequence (SGR) at the start of a text. Returns `None` if the text does not start with a colour
/// sequence.
fn sgr(text: &str) -> Option<&str> {
    let rest = text.strip_prefix("\x1b[")?;
    let length = rest.find(|character: char| !character.is_ascii_digit() && character != ';')?;
    rest[length..].starts_with('m').then(|| &text[..2 + length + 1])
}

/// A JSON format in which all hidden characters are escaped.
#[derive(Debug)]
pub(crate) struct Json;

impl serde_json::ser::Formatter for Json {
    fn write_string_fragment<W: ?Sized + Write>(&mut self, writer: &mut W, fragment: &str) -> io::Result<()> {
        if !fragment.chars().any(is_hidden) {
            return writer.write_all(fragment.as_bytes());
        }
        for character in fragment.chars() {
            let mut units = [0; 2];
            match is_hidden(character) {
                true => character
                    .encode_utf16(&mut units)
                    .iter()
                    .try_for_each(|unit| write!(writer, "\\u{unit:04x}")),
                false => write!(writer, "{character}"),
            }?;
        }
        Ok(())
    }
}

/// Returns an entry for a name. Each line of the list has one entry. [`unlisted`] converts the entry back to the name.
/// Unlike in messages, backslashes are also escaped in the entry. Characters that readers of lists remove or treat as a
/// comment are also escaped.
pub(crate) fn listed(name: &str) -> String {
    let mut out = String::with_capacity(name.len());
    let last = name.chars().count().saturating_sub(1);
    for (number, character) in name.chars().enumerate() {
        let is_comment = number == 0 && character == '#';
        let is_trimmed = (number == 0 || number == last) && character.is_whitespace();
        match character {
            '\\' => out.push_str("\\\\"),
            _ if is_comment || is_trimmed => {
                let _ = write!(out, "\\u{{{:x}}}", u32::from(character));
            }
            _ if is_hidden(character) => out.extend(character.escape_default()),
            _ => out.push(character),
        }
    }
    out
}

/// Returns the name in an entry that [`listed`] wrote. Other tools do not escape backslashes in their entries. So a
/// backslash that does not start an escape is part of the name.
pub(crate) fn unlisted(entry: &str) -> String {
    let mut out = String::with_capacity(entry.len());
    let mut rest = entry;
    while let Some(at) = rest.find('\\') {
        out.push_str(&rest[..at]);
        rest = &rest[at..];
        let (character, length) = unescaped(rest).unwrap_or(('\\', 1));
        out.push(character);
        rest = &rest[length..];
    }
    out + rest
}

/// Returns the character that the escape sequence at the start of a text represents, and the length of the sequence.
fn unescaped(text: &str) -> Option<(char, usize)> {
    match text.get(1..2)? {
        "\\" => Some(('\\', 2)),
        "n" => Some(('\n', 2)),
        "r" => Some(('\r', 2)),
        "t" => Some(('\t', 2)),
        "u" => {
            let (digits, _) = text.strip_prefix("\\u{")?.split_once('}')?;
            let number = u32::from_str_radix(digits, 16).ok().filter(|_| digits.len() <= 6)?;
            Some((char::from_u32(number)?, digits.len() + 4))
        }
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Tests one character of each kind that controls a terminal or is hidden. Also tests letters, marks and symbols of
    /// several scripts.
    #[test]
    fn what_a_terminal_obeys_is_escaped_and_letters_are_not() {
        let hidden = "\0\x07\x08\n\r\t\x1b\x7f\u{80}\u{9b}\u{9d}\u{ad}\u{61c}\u{200b}\u{200c}\u{200d}\u{200e}\u{200f}\
            \u{2028}\u{2029}\u{202a}\u{202e}\u{2060}\u{2066}\u{2069}\u{feff}\u{fff9}\u{e0001}\u{e0041}";
        for character in hidden.chars() {
            assert!(is_hidden(character), "{character:?}");
            let escape = name(&character.to_string()).into_owned();
            assert!(escape.starts_with('\\') && escape.is_ascii(), "{escape}");
        }
        let shown = "aé e\u{301} ж 漢 ग\u{941} ש 😀 \\ ' \" µ±…→│";
        assert_eq!(name(shown), shown);
    }

    #[test]
    fn only_colours_pass_in_styled_text() {
        assert_eq!(styled("\x1b[1;91merror\x1b[0m: a\n"), "\x1b[1;91merror\x1b[0m: a\n");
        let attack = "\x1b]0;title\x07\x1b[2J\x1b[31\x1b";
        assert_eq!(styled(attack), "\\u{1b}]0;title\\u{7}\\u{1b}[2J\\u{1b}[31\\u{1b}");
        assert_eq!(lines("\x1b[31mred\n"), "\\u{1b}[31mred\n");
    }

    #[test]
    fn json_has_the_escapes_of_json() {
        let text = "a\x1b\u{9b}\u{202e}\u{e0041}é";
        let mut out = Vec::new();
        let mut serializer = serde_json::Serializer::with_formatter(&mut out, Json);
        serde::Serialize::serialize(text, &mut serializer).unwrap();
        let written = String::from_utf8(out).unwrap();
        assert_eq!(written, "\"a\\u001b\\u009b\\u202e\\udb40\\udc41é\"");
        assert_eq!(serde_json::from_str::<String>(&written).unwrap(), text);
    }

    #[test]
    fn any_name_comes_back_from_a_list_and_takes_one_line() {
        for name in [
            "a.toml",
            "a\nb,Pass",
            "\\n",
            "\\",
            "a\\\\u{41}",
            "#a",
            " a ",
            "\u{2028}",
            "a\tb\r",
            "",
            "é\x1b[2J",
        ] {
            let entry = listed(name);
            assert!(
                entry.lines().count() <= 1 && !entry.starts_with('#') && entry.trim() == entry,
                "{entry}"
            );
            assert!(!entry.chars().any(is_hidden), "{entry}");
            assert_eq!(unlisted(&entry), name);
        }
        // Tests an entry that another tool has written.
        assert_eq!(unlisted("dir\\file \\u{zz} \\u{110000} \\"), "dir\\file \\u{zz} \\u{110000} \\");
    }
}
