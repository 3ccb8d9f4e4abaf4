//! The parts of an assembler that do not depend on the machine: spans of a text, a cursor over a line, and messages as
//! data.
//!
//! A [`Diagnostic`] contains a position in the input, the text at the position, and the text that would be correct. The
//! front end is responsible for colour and layout.

use std::fmt;
use std::str::FromStr;
use std::sync::Arc;

/// A range of a source text, in bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Span {
    /// First byte.
    pub start: usize,
    /// Offset of the byte after the last byte.
    pub end: usize,
}

impl Span {
    /// Returns the span from `start` up to, but not including, `end`.
    pub const fn new(start: usize, end: usize) -> Self {
        Span { start, end }
    }

    /// Returns the line and the column in `text` at which the span starts. Both count from 1, and columns count
    /// characters.
    pub fn line_column(self, text: &str) -> (usize, usize) {
        let before = &text[..self.start.min(text.len())];
        let line = before.matches('\n').count() + 1;
        let column = before.rsplit('\n').next().unwrap_or("").chars().count() + 1;
        (line, column)
    }
}

/// Severity of a message.
///
/// The enum is exhaustive, because a text either has a meaning or does not have a meaning.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Level {
    /// The text does not have a meaning.
    Error,
    /// The text has a meaning, but the author probably meant a different text.
    Warning,
}

/// A message about a range of a source text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Diagnostic {
    /// Severity of the message.
    pub level: Level,
    /// The problem, in one sentence.
    pub message: String,
    /// The range of the text.
    pub span: Span,
    /// Short text for the range, such as the text that the assembler found. The text may be empty.
    pub label: String,
    /// Advice: the text that would fit, or that the author probably meant.
    pub help: Option<String>,
    /// A second range in the text of the message's range, and a noun for the second range. If the noun is "the first",
    /// the message contains "the first is in line 3".
    pub related: Option<Box<(Span, &'static str)>>,
    /// The included file that contains the range. `None` if the range is in the source.
    pub file: Option<Arc<SourceFile>>,
}

/// A file that a source includes.
#[derive(Debug, PartialEq, Eq)]
pub struct SourceFile {
    /// Path of the file, relative to the folder of the source.
    pub name: String,
    /// Text of the file.
    pub text: String,
}

impl Diagnostic {
    /// Returns an error at `span`.
    pub fn error(span: Span, message: impl Into<String>) -> Self {
        Diagnostic {
            level: Level::Error,
            message: message.into(),
            span,
            label: String::new(),
            help: None,
            related: None,
            file: None,
        }
    }

    /// Returns a warning at `span`.
    pub fn warning(span: Span, message: impl Into<String>) -> Self {
        Diagnostic { level: Level::Warning, ..Diagnostic::error(span, message) }
    }

    /// Sorts diagnostics by the start of their range. Diagnostics with the same start keep their order.
    pub fn sort(diagnostics: &mut [Diagnostic]) {
        diagnostics.sort_by_key(|diagnostic| diagnostic.span.start);
    }

    /// Sets the short text that is shown at the range.
    pub fn label(mut self, label: impl Into<String>) -> Self {
        self.label = label.into();
        self
    }

    /// Sets the advice of the message.
    pub fn help(mut self, help: impl Into<String>) -> Self {
        self.help = Some(help.into());
        self
    }

    /// Appends advice to the message's earlier advice.
    pub(crate) fn and_help(mut self, help: &str) -> Self {
        self.help = Some(match self.help {
            Some(known) => format!("{known}; {help}"),
            None => help.to_owned(),
        });
        self
    }

    /// Adds a second range in the text of the message's range, and a noun for the second range. If the noun is "the
    /// first", the message contains "the first is in line 3".
    pub fn related(mut self, span: Span, what: &'static str) -> Self {
        self.related = Some(Box::new((span, what)));
        self
    }

    /// Removes the related range and adds its line number in `source` to the advice. `source` is the text that contains
    /// both ranges.
    pub fn with_lines(self, source: &str) -> Self {
        match self.related.as_deref().copied() {
            Some((span, what)) => {
                let line = span.line_column(source).0;
                Diagnostic { related: None, ..self }.and_help(&format!("{what} is in line {line}"))
            }
            None => self,
        }
    }

    /// Returns the text that contains the range. If the message has an included file, the result is the text of the
    /// included file. Otherwise, the result is `source`.
    pub fn text<'a>(&'a self, source: &'a str) -> &'a str {
        self.file.as_ref().map_or(source, |file| &file.text)
    }

    /// Returns the line and the column of the range's start, in the file that contains the range. Both count from 1,
    /// and columns count characters.
    pub fn line_column(&self, source: &str) -> (usize, usize) {
        self.span.line_column(self.text(source))
    }

    /// Returns the position as `NAME:LINE:COLUMN`. NAME is the included file if the message has one, otherwise `name`.
    pub fn place(&self, name: &str, source: &str) -> String {
        let (line, column) = self.line_column(source);
        let name = self.file.as_ref().map_or(name, |file| &file.name);
        format!("{name}:{line}:{column}")
    }
}

impl fmt::Display for Diagnostic {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)?;
        if let Some(help) = &self.help {
            write!(f, " ({help})")?;
        }
        Ok(())
    }
}

/// Returns the candidate most similar to `word`. Returns `None` if no candidate is similar enough to `word`.
pub fn closest<'a>(word: &str, candidates: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    closest_of(word, &mut candidates.into_iter())
}

fn closest_of<'a>(word: &str, candidates: &mut dyn Iterator<Item = &'a str>) -> Option<&'a str> {
    let word = word.to_ascii_lowercase();
    let length = word.chars().count();
    // A short word may have one mistake, and a longer word may have two mistakes. Numbers are excluded, because
    // different numbers are often similar by chance.
    let most = if length <= 4 { 1 } else { 2 };
    let is_number = word.trim_start_matches('-').starts_with(|c: char| c.is_ascii_digit());
    let letters = letters(&word);
    candidates
        .filter(|_| !is_number && length <= LONGEST_WORD)
        // Cheap test: the distance of two words is never less than the difference of their lengths.
        .filter(|candidate| candidate.len().abs_diff(length) <= 2)
        // A cheap test comes first. A mistake adds at most one letter to the word's set of letters. A mistake also
        // removes at most one letter from the set.
        .filter(|candidate| {
            let other = self::letters(candidate);
            (letters & !other).count_ones().max((other & !letters).count_ones()) as usize <= most
        })
        .map(|candidate| (strsim::damerau_levenshtein(&word, &candidate.to_ascii_lowercase()), candidate))
        .filter(|(distance, candidate)| *distance <= most && *distance < candidate.len())
        // If two candidates have equal distances, a prefix of the word takes precedence.
        .min_by_key(|(distance, candidate)| (*distance, !word.starts_with(&candidate.to_ascii_lowercase())))
        .map(|(_, candidate)| candidate)
}

/// Maximum number of characters of a word that is compared with candidates.
const LONGEST_WORD: usize = 64;

/// Returns the set of a word's letters, with one bit per letter. Several letters may share a bit.
fn letters(word: &str) -> u64 {
    word.bytes().fold(0, |bits, byte| bits | 1 << (byte.to_ascii_lowercase() % 64))
}

/// Returns the help text for an unknown `word`. The text contains the candidate that the author probably meant, and all
/// candidates that fit.
pub fn suggest<'a>(word: &str, candidates: impl IntoIterator<Item = &'a str>) -> String {
    suggest_of(word, &mut candidates.into_iter())
}

fn suggest_of(word: &str, candidates: &mut dyn Iterator<Item = &str>) -> String {
    let list: Vec<&str> = candidates.collect();
    let fits = match list.as_slice() {
        [] => "no value is allowed here".to_owned(),
        [one] => format!("expected `{one}`"),
        many if many.len() <= 24 => format!("expected one of {}", many.join(", ")),
        many => format!("expected one of {}, …", many[..12].join(", ")),
    };
    match closest(word, list) {
        Some(meant) => format!("did you mean `{meant}`? {fits}"),
        None => fits,
    }
}

/// Returns the replacement text that the advice of a message proposes, or `None`. The replacement is the quoted text
/// after `did you mean` or `write`. If the advice names exactly one expected text, that text is the replacement.
///
/// ```
/// use reconverge_isa::source::{proposed, suggest};
/// assert_eq!(proposed(&suggest("jmup", ["jump", "loop"])), Some("jump"));
/// assert_eq!(proposed(&suggest("1", ["r500"])), Some("r500"));
/// assert_eq!(proposed("write `.gprs 4`"), Some(".gprs 4"));
/// assert_eq!(proposed(&suggest("1", ["jump", "loop"])), None);
/// ```
pub fn proposed(help: &str) -> Option<&str> {
    let quoted = |before: &str| help.split_once(before)?.1.split_once('`');
    let meant = quoted("did you mean `").or_else(|| quoted("write `"));
    let only = || help.strip_prefix("expected `")?.split_once('`').filter(|(_, rest)| rest.is_empty());
    meant.or_else(only).map(|(text, _)| text)
}

/// A directive: a line that begins with a dot.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DirectiveRow {
    /// Name of the directive, with its dot.
    pub name: &'static str,
    /// Operands in the notation of messages and documentation. The text may be empty.
    pub operands: &'static str,
    /// Meaning of the directive.
    pub about: &'static str,
    /// Whether the directive begins a program.
    pub begins_program: bool,
}

impl DirectiveRow {
    /// Returns a row for a directive that does not begin a program.
    pub const fn new(name: &'static str, operands: &'static str, about: &'static str) -> DirectiveRow {
        DirectiveRow { name, operands, about, begins_program: false }
    }

    /// Returns the row of the directive that begins a program. The operand of the directive is the name of the program.
    pub const fn program(name: &'static str) -> DirectiveRow {
        DirectiveRow { begins_program: true, ..DirectiveRow::new(name, "NAME", "begins a program") }
    }
}

/// The bytes that can be part of a word: the entry of such a byte is true. Words consist of letters, digits, `_` and
/// `$`.
const IN_WORD: [bool; 256] = {
    let mut table = [false; 256];
    let mut byte = 0;
    while byte < 128 {
        table[byte] = (byte as u8).is_ascii_alphanumeric() || byte as u8 == b'_' || byte as u8 == b'$';
        byte += 1;
    }
    table
};

/// A reader over one line or a part of a line. The cursor also has the offset of its position in the whole source.
#[derive(Clone, Debug)]
pub struct Cursor<'a> {
    text: &'a str,
    base: usize,
    at: usize,
}

impl<'a> Cursor<'a> {
    /// Returns a cursor over `text`, whose first byte is byte `base` of the source.
    pub const fn new(text: &'a str, base: usize) -> Self {
        Cursor { text, base, at: 0 }
    }

    /// Returns the text that has not been read.
    pub fn rest(&self) -> &'a str {
        &self.text[self.at..]
    }

    /// Skips white space.
    #[inline]
    pub fn skip_space(&mut self) -> &mut Self {
        self.at = self.behind_space();
        self
    }

    /// Returns the offset of the next character that is not white space. A fast path handles two cases: no white space,
    /// and a single space. Without the fast path, reading words and white space took a third of the time for writing
    /// and reading an R500 program.
    #[inline]
    fn behind_space(&self) -> usize {
        let bytes = self.text.as_bytes();
        let at = self.at + usize::from(bytes.get(self.at) == Some(&b' '));
        match bytes.get(at) {
            Some(b'!'..=b'~') => at,
            _ => self.text.len() - self.rest().trim_start().len(),
        }
    }

    /// Returns whether the unread text contains only space.
    pub fn at_end(&self) -> bool {
        self.behind_space() == self.text.len()
    }

    /// Returns the next character that is not space. The cursor does not move.
    pub fn peek(&self) -> Option<char> {
        self.text[self.behind_space()..].chars().next()
    }

    /// Skips space and reads `text`, if `text` follows. Returns whether `text` followed.
    #[inline]
    pub fn eat(&mut self, text: &str) -> bool {
        let at = self.behind_space();
        let next = self.text.as_bytes()[at..].starts_with(text.as_bytes());
        if next {
            self.at = at + text.len();
        }
        next
    }

    /// Skips space and reads `word`, if `word` follows as a whole word. A word is whole if no letter, digit, `_` or `$`
    /// follows the word. Returns whether `word` followed.
    pub fn eat_word(&mut self, word: &str) -> bool {
        let start = self.at;
        if self.word() == word && !word.is_empty() {
            true
        } else {
            self.at = start;
            false
        }
    }

    /// Reads the longest run of letters, digits, `_` and `$` after any space. The result may be empty.
    pub fn word(&mut self) -> &'a str {
        self.skip_space();
        let rest = self.rest();
        let len = rest.bytes().position(|byte| !IN_WORD[usize::from(byte)]).unwrap_or(rest.len());
        self.at += len;
        &rest[..len]
    }

    /// Reads the text up to the next white space or the end of the line.
    pub fn token(&mut self) -> &'a str {
        self.skip_space();
        let rest = self.rest();
        let len = rest.find(char::is_whitespace).unwrap_or(rest.len());
        self.at += len;
        &rest[..len]
    }

    /// Skips space and reads an unsigned number (decimal or `0x…`). If the next text is not a number of at most 64
    /// bits, returns `None` and reads nothing.
    pub fn number(&mut self) -> Option<u64> {
        let start = self.at;
        let word = self.word();
        let number = parse_number(word);
        if number.is_none() {
            self.at = start;
        }
        number
    }

    /// Returns the offset of the next character after any space, in bytes of the source.
    pub fn offset(&self) -> usize {
        self.base + self.behind_space()
    }

    /// Returns the span from `start` to the end of the text read so far. `start` is an earlier result of
    /// [`offset`](Self::offset).
    pub fn since(&self, start: usize) -> Span {
        Span::new(start, (self.base + self.at).max(start))
    }

    /// Returns the span of the next word or character, for a message.
    pub fn here(&self) -> Span {
        let mut ahead = self.clone();
        let start = ahead.offset();
        if ahead.word().is_empty() {
            let len = ahead.rest().chars().next().map_or(0, char::len_utf8);
            return Span::new(start, start + len);
        }
        Span::new(start, ahead.base + ahead.at)
    }
}

/// Parses an unsigned number, decimal or `0x…`, of at most 64 bits. `_` may separate digits.
pub fn parse_number(text: &str) -> Option<u64> {
    if text.contains('_') {
        return parse_number(&text.replace('_', ""));
    }
    let digits = text;
    match digits.strip_prefix("0x").or_else(|| digits.strip_prefix("0X")) {
        Some(hex) if !hex.is_empty() && !hex.starts_with('+') => u64::from_str_radix(hex, 16).ok(),
        Some(_) => None,
        None if digits.starts_with(|c: char| c.is_ascii_digit()) => digits.parse().ok(),
        None => None,
    }
}

/// Parses a float without a sign. The text must have a point, an exponent or the suffix `f`. `T` is `f32` or `f64`, and
/// the text is rounded directly to that type.
pub fn parse_float<T: FromStr>(text: &str) -> Option<T> {
    let plain = text.strip_suffix(['f', 'F']).unwrap_or(text);
    let is_float = plain.len() < text.len() || plain.contains(['.', 'e', 'E']);
    let known = |byte: u8| byte.is_ascii_digit() || b".eE+-".contains(&byte);
    (is_float && plain.bytes().all(known)).then(|| plain.parse().ok()).flatten()
}

/// Returns the length in bytes of the run of letters, digits and `_` at the start of a text.
pub fn word_len(text: &str) -> usize {
    text.bytes().position(|byte| !(byte.is_ascii_alphanumeric() || byte == b'_')).unwrap_or(text.len())
}

/// Returns the length in bytes of the unsigned number at the start of a text. A number consists of digits, letters,
/// `_`, points, and the sign of an exponent. Returns 0 if the text does not begin with a digit or with a point and a
/// digit.
pub fn number_len(text: &str) -> usize {
    let bytes = text.as_bytes();
    if !text.strip_prefix('.').unwrap_or(text).starts_with(|c: char| c.is_ascii_digit()) {
        return 0;
    }
    let hexadecimal = text.starts_with("0x") || text.starts_with("0X");
    let exponent = |at: usize| {
        !hexadecimal
            && at > 0
            && matches!(bytes[at - 1], b'e' | b'E')
            && bytes.get(at + 1).is_some_and(u8::is_ascii_digit)
    };
    let belongs = |at: usize| match bytes[at] {
        b'+' | b'-' => exponent(at),
        b'.' => !hexadecimal,
        byte => byte.is_ascii_alphanumeric() || byte == b'_',
    };
    (0..bytes.len()).find(|at| !belongs(*at)).unwrap_or(bytes.len())
}

/// Removes a byte order mark from the start of a text.
pub fn without_mark(text: &str) -> &str {
    text.strip_prefix('\u{feff}').unwrap_or(text)
}

/// Splits a source into lines without their comments. Returns the offset in bytes and the text of each line, in order.
///
/// A comment starts at `;` or `//` and runs to the end of the line. In texts of all three machines, `;` and `//` only
/// start comments. A byte order mark does not belong to a line.
pub fn lines(source: &str) -> impl Iterator<Item = (usize, &str)> {
    let text = without_mark(source);
    let mut offset = source.len() - text.len();
    text.split('\n').map(move |line| {
        let start = offset;
        offset += line.len() + 1;
        let line = line.strip_suffix('\r').unwrap_or(line);
        let starts = |at: &usize| line[*at..].starts_with(';') || line[*at..].starts_with("//");
        let cut = memchr::memchr2_iter(b';', b'/', line.as_bytes()).find(starts);
        (start, &line[..cut.unwrap_or(line.len())])
    })
}

/// Returns the line that begins a program in a text of several programs. The result includes the line break.
///
/// ```
/// use reconverge_isa::source::program_line;
/// assert_eq!(program_line(Some("a %")), ".program a%20%25\n");
/// assert_eq!(program_line(None), ".program\n");
/// ```
pub fn program_line(name: Option<&str>) -> String {
    let name = name.map(|name| format!(" {}", name_text(name)));
    format!(".program{}\n", name.unwrap_or_default())
}

/// Returns the name of a program in the notation of `.program`. Each byte that a token cannot contain is written as `%`
/// and two hexadecimal digits.
///
/// ```
/// use reconverge_isa::source::{name_of, name_text};
/// assert_eq!(name_text("a %"), "a%20%25");
/// assert_eq!(name_of("a%20%25").as_deref(), Some("a %"));
/// ```
pub fn name_text(name: &str) -> String {
    let plain = |byte: u8| byte.is_ascii_graphic() && !b"%;/,()[]".contains(&byte);
    let byte = |byte: u8| if plain(byte) { char::from(byte).to_string() } else { format!("%{byte:02x}") };
    name.bytes().map(byte).collect()
}

/// Returns the name for a text that [`name_text`] returned. Returns `None` if two digits do not follow a `%`, or if the
/// bytes of the name are not UTF-8.
pub fn name_of(text: &str) -> Option<String> {
    let mut parts = text.split('%');
    let mut bytes = parts.next()?.as_bytes().to_vec();
    for part in parts {
        let (digits, rest) = part.split_at_checked(2)?;
        bytes.push(u8::from_str_radix(digits, 16).ok()?);
        bytes.extend(rest.as_bytes());
    }
    String::from_utf8(bytes).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_span_knows_its_line_and_column() {
        let text = "ab\ncde\nf";
        assert_eq!(Span::new(4, 5).line_column(text), (2, 2));
        assert_eq!(Span::new(7, 8).line_column(text), (3, 1));
        assert_eq!(Span::new(99, 99).line_column(text), (3, 2));
    }

    #[test]
    fn comments_are_cut_and_offsets_kept() {
        let source = "add ; one\r\n// two\nsub // three";
        let found: Vec<_> = lines(source).collect();
        assert_eq!(found, [(0, "add "), (11, ""), (18, "sub ")]);
    }

    #[test]
    fn a_near_miss_is_suggested() {
        assert_eq!(closest("jmup", ["jump", "loop"]), Some("jump"));
        assert_eq!(closest("xyzzy", ["jump", "loop"]), None);
    }

    #[test]
    fn numbers_are_decimal_or_hexadecimal() {
        assert_eq!(parse_number("12"), Some(12));
        assert_eq!(parse_number("0x1_f"), Some(31));
        for bad in ["", "0x", "12q", "-1", "+1", "0x+1", "99999999999999999999"] {
            assert_eq!(parse_number(bad), None, "{bad}");
        }
    }

    /// The fast path and code that skips all white space give equal results for every kind of white space.
    #[test]
    fn white_space_of_any_kind_is_passed_over() {
        for space in ["", " ", "  ", "\t", " \t ", "\u{a0}", " \u{2003}", "\u{7f}"] {
            for text in ["", "mov", "é", "\u{7f}", "{"] {
                let line = format!("{space}{text}");
                let mut cursor = Cursor::new(&line, 0);
                let plain = line.len() - line.trim_start().len();
                assert_eq!(
                    (cursor.offset(), cursor.peek()),
                    (plain, line.trim_start().chars().next()),
                    "{line:?}"
                );
                assert_eq!(cursor.at_end(), line.trim().is_empty(), "{line:?}");
                assert_eq!(cursor.skip_space().rest(), line.trim_start(), "{line:?}");
            }
        }
    }

    #[test]
    fn a_cursor_points_at_what_it_did_not_understand() {
        let mut cursor = Cursor::new("  mov r1, ?", 100);
        assert_eq!(cursor.word(), "mov");
        assert_eq!(cursor.here(), Span::new(106, 108));
        assert!(cursor.eat_word("r1") && cursor.eat(",") && !cursor.eat("x"));
        assert_eq!(cursor.here(), Span::new(110, 111));
    }
}
