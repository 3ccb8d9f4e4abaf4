//! Splits a line into tokens with their positions.

use reconverge_isa::source::parse_number;
use reconverge_isa::{Diagnostic, Span};

use super::super::attr::Attr;

pub(super) type Parse<T> = Result<T, Diagnostic>;

/// A token of a line. Spaces and commas outside brackets separate tokens.
#[derive(Clone, Copy)]
pub(super) struct Token<'a> {
    pub(super) text: &'a str,
    pub(super) span: Span,
    /// Whether a comma comes directly after the token.
    pub(super) comma: bool,
}

/// Appends the tokens of `line` to `found`. `offset` is the position of the line in the text, in bytes.
pub(super) fn tokens<'a>(line: &'a str, offset: usize, found: &mut Vec<Token<'a>>) {
    found.clear();
    let bytes = line.as_bytes();
    let mut at = 0;
    while at < bytes.len() {
        match bytes[at] {
            b',' => {
                if let Some(token) = found.last_mut() {
                    token.comma = true;
                }
                at += 1;
            }
            byte if byte.is_ascii_whitespace() => at += 1,
            _ => {
                let (from, mut depth) = (at, 0_i32);
                while let Some(&byte) = bytes.get(at) {
                    match byte {
                        b'(' | b'[' => depth += 1,
                        b')' | b']' => depth -= 1,
                        b',' if depth <= 0 => break,
                        byte if depth <= 0 && byte.is_ascii_whitespace() => break,
                        _ => {}
                    }
                    at += 1;
                }
                // AMD's text may contain a blank between one of these names and the bracket.
                if bytes[from] == b'('
                    && let Some(token) = found.last_mut().filter(|token| takes_brackets(token))
                {
                    token.text = &line[token.span.start - offset..at];
                    token.span.end = offset + at;
                    continue;
                }
                let span = Span::new(offset + from, offset + at);
                found.push(Token { text: &line[from..at], span, comma: false });
            }
        }
    }
}

fn takes_brackets(token: &Token<'_>) -> bool {
    !token.comma && matches!(token.text, "KCACHE0" | "KCACHE1" | "UPDATE_EXEC_MASK")
}

pub(super) fn wrong(token: Token<'_>, message: impl Into<String>) -> Diagnostic {
    Diagnostic::error(token.span, message).label(format!("found `{}`", token.text))
}

pub(super) fn number(token: Token<'_>, max: u32) -> Parse<u32> {
    match parse_number(token.text) {
        Some(value) if value <= u64::from(max) => Ok(value as u32),
        Some(_) => {
            Err(wrong(token, format!("the number is larger than {max}")).help(format!("expected 0 to {max}")))
        }
        None => Err(wrong(token, "a number was expected").help(format!("expected 0 to {max}"))),
    }
}

pub(super) fn chan_of(text: &str) -> Option<u32> {
    match text.as_bytes() {
        b"x" | b"X" => Some(0),
        b"y" | b"Y" => Some(1),
        b"z" | b"Z" => Some(2),
        b"w" | b"W" => Some(3),
        _ => None,
    }
}

/// Splits `NAME(inner)` into the name and the inner token. If the token is only a name, there is no inner token.
pub(super) fn call<'a>(token: Token<'a>) -> (&'a str, Option<Token<'a>>) {
    match token.text.split_once('(') {
        Some((name, rest)) => {
            let inner = rest.strip_suffix(')').unwrap_or(rest);
            let start = token.span.start + name.len() + 1 + (inner.len() - inner.trim_start().len());
            let inner = inner.trim();
            (
                name.trim_end(),
                Some(Token { text: inner, span: Span::new(start, start + inner.len()), comma: false }),
            )
        }
        None => (token.text, None),
    }
}

/// Sets an attribute to a value. Returns `false` if no table contains the attribute or if the value does not fit.
pub(super) fn set(name: &str, value: u32, tables: &[&[Attr]], words: &mut [u32]) -> bool {
    let attr = tables.iter().copied().flatten().find(|attr| attr.name == name);
    let Some(attr) = attr.filter(|attr| value <= attr.max()) else { return false };
    words[attr.word] = words[attr.word] & !attr.mask() | value << attr.lo;
    true
}
