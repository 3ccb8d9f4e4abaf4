//! Tokens of a C or C++ source, with their positions. Comments and line continuations are white space.

use crate::Error;
use crate::error::quoted;

/// The kind of a token.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    Word,
    Number,
    String,
    Character,
    /// One character of punctuation.
    Mark,
    /// A preprocessor line and the continuation lines of this line, starting at the `#`.
    Directive,
}

/// A token and its bytes in the source. If a token comes from a macro, the field has the bytes of the use of the macro.
#[derive(Clone, Copy, Debug)]
pub(super) struct Token<'a> {
    pub(super) kind: Kind,
    pub(super) text: &'a str,
    pub(super) start: usize,
    pub(super) end: usize,
}

impl Token<'_> {
    /// Returns whether this token is the punctuation character `mark`.
    pub(super) fn is(&self, mark: &str) -> bool {
        self.kind == Kind::Mark && self.text == mark
    }

    /// Returns an error at this token of `source`.
    pub(super) fn wrong(&self, source: &str, expected: impl Into<String>) -> Error {
        Error::syntax(source, self.start, quoted(self.text), expected)
    }
}

/// Splits a source into tokens.
#[derive(Clone, Copy)]
pub(super) struct Lexer<'a> {
    text: &'a str,
    at: usize,
    /// Whether the current line has only white space before `at`.
    fresh: bool,
}

impl<'a> Lexer<'a> {
    pub(super) fn new(text: &'a str) -> Lexer<'a> {
        Lexer { text, at: 0, fresh: true }
    }

    /// Returns a lexer for a part of a source. The part does not begin at the start of a line.
    pub(super) fn part(text: &'a str, start: usize, end: usize) -> Lexer<'a> {
        Lexer { text: &text[..end], at: start, fresh: false }
    }

    /// Returns the offset of the first byte that is not yet read.
    pub(super) fn at(&self) -> usize {
        self.at
    }

    fn skip_space(&mut self) {
        loop {
            let rest = &self.text[self.at..];
            let space = rest.len() - rest.trim_start().len();
            self.fresh |= rest[..space].contains('\n');
            self.at += space;
            let rest = &self.text[self.at..];
            if rest.starts_with("//") {
                self.at += line_len(rest);
            } else if rest.starts_with("/*") {
                self.at += comment_len(rest);
            } else if let Some(len) = continuation(rest) {
                self.at += len;
            } else {
                return;
            }
        }
    }
}

impl<'a> Iterator for Lexer<'a> {
    type Item = Token<'a>;

    fn next(&mut self) -> Option<Token<'a>> {
        self.skip_space();
        let rest = &self.text[self.at..];
        let first = rest.chars().next()?;
        let is_word = |c: char| c.is_alphanumeric() || c == '_' || c == '$';
        let (kind, len) = match first {
            '#' if self.fresh => (Kind::Directive, directive_len(rest)),
            '"' => (Kind::String, literal_len(rest, first)),
            '\'' => (Kind::Character, literal_len(rest, first)),
            _ if first.is_ascii_digit() => (Kind::Number, number_len(rest)),
            _ if is_word(first) => {
                let len = rest.find(|c: char| !is_word(c)).unwrap_or(rest.len());
                match (&rest[..len], rest[len..].starts_with('"')) {
                    ("R" | "u8R", true) => (Kind::String, len + raw_len(&rest[len..])),
                    ("u8", true) => (Kind::String, len + literal_len(&rest[len..], '"')),
                    _ => (Kind::Word, len),
                }
            }
            _ => (Kind::Mark, first.len_utf8()),
        };
        self.fresh = false;
        let token = Token { kind, text: &rest[..len], start: self.at, end: self.at + len };
        self.at += len;
        Some(token)
    }
}

/// Returns the length of a backslash and the following end of line.
fn continuation(text: &str) -> Option<usize> {
    let rest = text.strip_prefix('\\')?;
    ["\n", "\r\n"].into_iter().find(|end| rest.starts_with(end)).map(|end| 1 + end.len())
}

/// Returns the length of a line with its continuation lines. The length does not include the end of the last line.
fn line_len(text: &str) -> usize {
    let mut len = 0;
    for line in text.split_inclusive('\n') {
        let whole = line.trim_end_matches(['\r', '\n']);
        if !whole.ends_with('\\') {
            return len + whole.len();
        }
        len += line.len();
    }
    len
}

/// Returns the length of a comment that begins with `/*`.
fn comment_len(text: &str) -> usize {
    text.get(2..).and_then(|rest| rest.find("*/")).map_or(text.len(), |end| end + 4)
}

/// Returns the length of a preprocessor line. If a comment in the line extends over several lines, the length includes
/// all lines of the comment.
fn directive_len(text: &str) -> usize {
    let mut lexer = Lexer { text, at: 1, fresh: false };
    loop {
        let before = lexer.at;
        // The lexer would skip ends of lines together with white space and comments. So this loop itself skips white
        // space and comments, and stops at the end of the line.
        let rest = &text[before..];
        if rest.starts_with("/*") {
            lexer.at += comment_len(rest);
        } else if rest.starts_with("//") {
            return before + line_len(rest);
        } else if let Some(len) = continuation(rest) {
            lexer.at += len;
        } else {
            match rest.chars().next() {
                None | Some('\n') => return before,
                Some(c) if c.is_whitespace() => lexer.at += c.len_utf8(),
                Some(_) => {
                    let found = lexer.next();
                    lexer.at = found.map_or(text.len(), |token| token.end);
                }
            }
        }
    }
}

/// Returns the length of a preprocessor number: with suffix, separators and exponent.
fn number_len(text: &str) -> usize {
    let hexadecimal = text.starts_with("0x") || text.starts_with("0X");
    let mut before = ' ';
    for (at, c) in text.char_indices() {
        let exponent = matches!(before, 'p' | 'P') || !hexadecimal && matches!(before, 'e' | 'E');
        if !(c.is_alphanumeric() || matches!(c, '_' | '.' | '\'') || exponent && matches!(c, '+' | '-')) {
            return at;
        }
        before = c;
    }
    text.len()
}

/// Returns the length of a string or character constant. A constant without a closing quote extends to the end of the
/// line.
fn literal_len(text: &str, quote: char) -> usize {
    let mut escaped = false;
    for (at, c) in text.char_indices().skip(1) {
        match c {
            // After a backslash, the two characters `\r\n` count as one character.
            '\r' if escaped && text[at..].starts_with("\r\n") => {}
            _ if escaped => escaped = false,
            '\n' => return at,
            '\\' => escaped = true,
            _ if c == quote => return at + 1,
            _ => {}
        }
    }
    text.len()
}

/// Returns the length of a raw string. `text` starts at the opening quote. If the string is not closed, the string
/// extends to the end of the text.
fn raw_len(text: &str) -> usize {
    let Some(delimiter) = raw_delimiter(text) else { return literal_len(text, '"') };
    raw_contents(text, delimiter).map_or(text.len(), |contents| 2 * delimiter.len() + 4 + contents.len())
}

/// Returns the delimiter of a raw string. `text` starts at the opening quote.
fn raw_delimiter(text: &str) -> Option<&str> {
    const LONGEST: usize = 16;
    let len = text.bytes().skip(1).take(LONGEST + 1).position(|byte| byte == b'(')?;
    Some(&text[1..1 + len]).filter(|delimiter| !delimiter.contains([' ', ')', '\\', '\n', '"']))
}

/// Returns the contents of a raw string. `text` starts at the opening quote.
fn raw_contents<'a>(text: &'a str, delimiter: &str) -> Option<&'a str> {
    let contents = &text[delimiter.len() + 2..];
    contents.find(&format!("){delimiter}\"")).map(|len| &contents[..len])
}

/// Appends the bytes of a string constant.
pub(super) fn push_string(source: &str, token: &Token<'_>, bytes: &mut Vec<u8>) -> Result<(), Error> {
    let text = token.text.strip_prefix("u8").unwrap_or(token.text);
    if let Some(raw) = text.strip_prefix('R') {
        match raw_delimiter(raw).and_then(|delimiter| raw_contents(raw, delimiter)) {
            Some(contents) => bytes.extend(contents.bytes()),
            None => return Err(token.wrong(source, "a raw string that ends: R\"(…)\"")),
        }
        return Ok(());
    }
    let closed = text.len() >= 2 && text.ends_with('"');
    let inner = if closed { &text[1..text.len() - 1] } else { &text[1..] };
    let mut rest = inner;
    while let Some((plain, after)) = rest.split_once('\\') {
        bytes.extend(plain.bytes());
        let (value, len) = escape(after).ok_or_else(|| {
            let expected =
                "an escape sequence of C with a value of at most a byte, such as \\n, \\\", \\x7f or \\177";
            token.wrong(source, expected)
        })?;
        bytes.extend(value);
        rest = &after[len..];
    }
    bytes.extend(rest.bytes());
    match closed {
        true => Ok(()),
        false => Err(token.wrong(source, "a closing `\"` on the line on which the string starts")),
    }
}

/// Returns the byte of an escape sequence, and the length of the sequence after the backslash. If the sequence only
/// continues a line, the sequence has no byte.
pub(super) fn escape(text: &str) -> Option<(Option<u8>, usize)> {
    let digits = |text: &str, radix: u32, most: usize| {
        text.bytes().take(most).take_while(|byte| char::from(*byte).is_digit(radix)).count()
    };
    let first = text.chars().next()?;
    let simple = |byte: u8| Some((Some(byte), 1));
    match first {
        'n' => simple(b'\n'),
        't' => simple(b'\t'),
        'r' => simple(b'\r'),
        'a' => simple(7),
        'b' => simple(8),
        'f' => simple(12),
        'v' => simple(11),
        'e' => simple(27),
        '\\' | '"' | '\'' | '?' => simple(first as u8),
        '\n' => Some((None, 1)),
        '\r' if text.starts_with("\r\n") => Some((None, 2)),
        'x' => {
            let len = digits(&text[1..], 16, usize::MAX);
            let value = u8::from_str_radix(&text[1..1 + len], 16).ok()?;
            Some((Some(value), 1 + len))
        }
        '0'..='7' => {
            let len = digits(text, 8, 3);
            Some((Some(u8::from_str_radix(&text[..len], 8).ok()?), len))
        }
        _ => None,
    }
}
