//! Words of a line, with their places.

use reconverge_isa::source::parse_number;
use reconverge_isa::{Diagnostic, Span};

use super::super::CHANS;

pub(super) type Parse<T> = Result<T, Diagnostic>;

/// A word of a line: cut at spaces and commas outside of brackets.
#[derive(Clone, Copy)]
pub(super) struct Token<'a> {
    pub(super) text: &'a str,
    pub(super) span: Span,
    /// Whether a comma follows.
    pub(super) comma: bool,
}

/// The words of `line`, which begins at byte `offset` of the text, into `found`.
pub(super) fn tokens<'a>(line: &'a str, offset: usize, found: &mut Vec<Token<'a>>) {
    found.clear();
    let (mut start, mut depth) = (None, 0_i32);
    for (at, byte) in line.bytes().enumerate().chain([(line.len(), b' ')]) {
        let cut = at == line.len() || (depth <= 0 && (byte == b',' || byte.is_ascii_whitespace()));
        if !cut {
            start = start.or(Some(at));
            depth += i32::from(matches!(byte, b'(' | b'[')) - i32::from(matches!(byte, b')' | b']'));
            continue;
        }
        if let Some(from) = start.take() {
            let span = Span::new(offset + from, offset + at);
            found.push(Token { text: &line[from..at], span, comma: false });
        }
        if byte == b','
            && let Some(token) = found.last_mut()
        {
            token.comma = true;
        }
    }
}

pub(super) fn wrong(token: Token<'_>, message: impl Into<String>) -> Diagnostic {
    Diagnostic::error(token.span, message).label(format!("found `{}`", token.text))
}

pub(super) fn number(token: Token<'_>, max: u32) -> Parse<u32> {
    match parse_number(token.text) {
        Some(value) if value <= u64::from(max) => Ok(value as u32),
        Some(_) => Err(wrong(token, format!("the number is larger than {max}"))),
        None => Err(wrong(token, "a number was expected").help(format!("0 to {max} fits here"))),
    }
}

pub(super) fn chan_of(text: &str) -> Option<u32> {
    (text.len() == 1).then(|| CHANS.find(text)).flatten().map(|at| at as u32)
}

/// `NAME(inner)`, or the name alone.
pub(super) fn call<'a>(token: Token<'a>) -> (&'a str, Option<Token<'a>>) {
    match token.text.split_once('(') {
        Some((name, rest)) => {
            let start = token.span.start + name.len() + 1;
            let inner = rest.strip_suffix(')').unwrap_or(rest);
            (name, Some(Token { text: inner, span: Span::new(start, start + inner.len()), comma: false }))
        }
        None => (token.text, None),
    }
}
