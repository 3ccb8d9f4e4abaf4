//! One line of a source. A line has a text, and each part of this text has an origin. The module also replaces names in
//! the text.

use std::collections::HashMap;

use super::expression::{self, Reach, Value, Wrong, precedence};
use crate::source::{number_len, word_len};

/// A range of a file that is the origin of a part of a line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Part {
    pub(super) at: usize,
    pub(super) len: usize,
    /// Whether the text of the part equals the text of the range in the file, byte for byte.
    pub(super) verbatim: bool,
}

/// The text of a line. `parts` holds the start and origin of each part.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Shown {
    pub(super) text: String,
    pub(super) parts: Vec<(usize, Part)>,
}

impl Shown {
    /// Returns text that occurs at offset `at` of a file.
    pub(super) fn verbatim(text: &str, at: usize) -> Shown {
        Shown { text: text.to_owned(), parts: vec![(0, Part { at, len: text.len(), verbatim: true })] }
    }

    /// Returns text that replaces a part of a file.
    pub(super) fn replaced(text: String, part: Part) -> Shown {
        Shown { text, parts: vec![(0, Part { verbatim: false, ..part })] }
    }

    fn empty() -> Shown {
        Shown { text: String::new(), parts: Vec::new() }
    }

    /// Returns the origin of the line. Omits space at both ends of the line. If the line has several origins, the
    /// returned range extends from the first origin to the last origin.
    pub(super) fn all(&self) -> Part {
        let start = self.text.len() - self.text.trim_start().len();
        self.part(start, self.text.trim_end().len().max(start))
    }

    /// Returns the origin of bytes `start` to `end`.
    pub(super) fn part(&self, start: usize, end: usize) -> Part {
        let place = |at: usize| {
            let index = self.parts.partition_point(|(start, _)| *start <= at).max(1) - 1;
            let (begin, part) = *self.parts.get(index)?;
            Some((part.at + if part.verbatim { (at - begin).min(part.len) } else { 0 }, part))
        };
        let Some((first, part)) = place(start) else { return Part { at: 0, len: 0, verbatim: false } };
        let end = match place(end.saturating_sub(1).max(start)) {
            Some((last, part)) if part.verbatim => last + usize::from(end > start),
            Some((_, part)) => part.at + part.len,
            None => first,
        };
        Part { at: first, len: end.saturating_sub(first), verbatim: part.verbatim }
    }

    /// Returns bytes `start` to `end` of the line.
    pub(super) fn cut(&self, start: usize, end: usize) -> Shown {
        let mut out = Shown::empty();
        out.push(self, start, end);
        out
    }

    /// Returns this line followed by another line.
    pub(super) fn followed_by(mut self, more: &Shown) -> Shown {
        self.push(more, 0, more.text.len());
        self
    }

    /// Appends bytes `start` to `end` of another line.
    fn push(&mut self, from: &Shown, start: usize, end: usize) {
        if start >= end {
            return;
        }
        let base = self.text.len();
        let first = from.parts.partition_point(|(begin, _)| *begin <= start).max(1) - 1;
        for (begin, part) in from.parts[first..].iter().take_while(|(begin, _)| *begin < end) {
            let skipped = start.saturating_sub(*begin);
            let part = match part.verbatim {
                true => Part { at: part.at + skipped, len: part.len.saturating_sub(skipped), verbatim: true },
                false => *part,
            };
            self.parts.push((base + begin.saturating_sub(start), part));
        }
        self.text.push_str(&from.text[start..end]);
    }

    /// Appends a text that replaces a part of a file.
    fn put(&mut self, text: &str, part: Part) {
        self.parts.push((self.text.len(), Part { verbatim: false, ..part }));
        self.text.push_str(text);
    }
}

/// Returns the length in bytes of the label at the start of a line. The length includes the colon of the label: `name:`
/// or `@name:`. Returns 0 if the line has no label.
pub(super) fn label(text: &str) -> usize {
    let trimmed = text.trim_start();
    let name = trimmed.strip_prefix('@').unwrap_or(trimmed);
    let len = word_len(name);
    match len > 0 && name[len..].starts_with(':') {
        true => text.len() - name.len() + len + 1,
        false => 0,
    }
}

/// Splits a text at the commas that are outside brackets. Removes the space at both ends of each part.
pub(super) fn arguments(text: &str) -> Vec<&str> {
    argument_places(text, 0).into_iter().map(|(start, end)| &text[start..end]).collect()
}

/// Returns the range of each text that [`arguments`] returns, from byte `from` of the line on.
pub(super) fn argument_places(text: &str, from: usize) -> Vec<(usize, usize)> {
    let mut places = Vec::new();
    let (mut depth, mut start, mut quoted) = (0_i32, from, false);
    let trimmed = |start: usize, end: usize| {
        let inside = &text[start..end];
        let begin = start + inside.len() - inside.trim_start().len();
        (begin, begin + inside.trim().len())
    };
    for (at, byte) in text.bytes().enumerate().skip(from) {
        match byte {
            b'"' => quoted = !quoted,
            _ if quoted => {}
            b'(' | b'[' | b'{' => depth += 1,
            b')' | b']' | b'}' => depth -= 1,
            b',' if depth <= 0 => {
                places.push(trimmed(start, at));
                start = at + 1;
            }
            _ => {}
        }
    }
    let last = trimmed(start, text.len());
    if !places.is_empty() || last.0 < last.1 {
        places.push(last);
    }
    places
}

/// Replaces `\NAME` in a line for each name that has a value. If the result becomes longer than `most` bytes, the
/// replacement ends early.
pub(super) fn filled(line: &Shown, values: &[(String, Shown)], most: usize) -> Shown {
    let text = &line.text;
    let mut out = Shown::empty();
    let mut copied = 0;
    for (at, _) in text.match_indices('\\') {
        let rest = &text[at + 1..];
        let len = if rest.starts_with('@') { 1 } else { word_len(rest) };
        let Some((_, value)) = values.iter().find(|(name, _)| *name == rest[..len]) else { continue };
        out.push(line, copied, at);
        out.push(value, 0, value.text.len());
        copied = at + 1 + len;
        if out.text.len() > most {
            return out;
        }
    }
    out.push(line, copied, text.len());
    out
}

/// Returns the first `\NAME` that was not replaced, and its origin.
pub(super) fn unknown_parameter(line: &Shown) -> Option<(String, Part)> {
    let text = &line.text;
    text.match_indices('\\').find_map(|(at, _)| {
        let len = word_len(&text[at + 1..]);
        (len > 0).then(|| (text[at + 1..at + 1 + len].to_owned(), line.part(at, at + 1 + len)))
    })
}

/// Replaces the constants, expressions and aliases in a line. If the result becomes longer than `most` bytes, the
/// replacement ends early.
pub(super) fn resolved(
    line: &Shown,
    constant: &dyn Fn(&str) -> Option<Value>,
    aliases: &HashMap<String, String>,
    most: usize,
) -> Result<Shown, Wrong> {
    let text = line.text.as_str();
    let bytes = text.as_bytes();
    let mut out = Shown::empty();
    let (mut copied, mut at) = (0, 0);
    let mut quoted = false;
    while at < bytes.len() {
        let byte = bytes[at];
        if byte == b'"' {
            quoted = !quoted;
        }
        if quoted || !byte.is_ascii() {
            at += 1;
            continue;
        }
        let rest = &text[at..];
        // The text `\(…)` is always an expression.
        if rest.starts_with("\\(") {
            let read = expression::read(&rest[1..closing(rest)], Reach::Whole, constant);
            let read =
                read.map_err(|wrong| Wrong { at: wrong.at + at + 1, end: wrong.end + at + 1, ..wrong })?;
            let end = at + 1 + read.len;
            out.push(line, copied, at);
            out.put(&read.value.to_string(), line.part(at, end));
            (copied, at) = (end, end);
            continue;
        }
        let before = text[..at].bytes().next_back();
        // Whether this position is inside a word, such as a component, a register or a label.
        let inside = before.is_some_and(|byte| byte.is_ascii_alphanumeric() || b"_.$@%\\#".contains(&byte));
        let word = word_len(rest);
        let starts_name = word > 0 && !byte.is_ascii_digit();
        if inside {
            at += word.max(1);
            continue;
        }
        if starts_name && rest[word..].starts_with(':') && text[..at].trim().trim_end_matches('@').is_empty()
        {
            at += word;
            continue;
        }
        if starts_name && let Some(alias) = aliases.get(&rest[..word]) {
            out.push(line, copied, at);
            out.put(alias, line.part(at, at + word));
            at += word;
            copied = at;
            if out.text.len() > most {
                return Ok(out);
            }
            continue;
        }
        let signed = matches!(byte, b'-' | b'~') && !is_binary(text, at);
        if !(starts_name || signed || byte.is_ascii_digit() || byte == b'(') {
            at += 1;
            continue;
        }
        let read = expression::read(rest, reach(text, at), constant).ok();
        // Parentheses without an operator inside are part of the machine's syntax.
        let read = read.filter(|read| {
            let end = at + read.len;
            // The assembler also computes an expression without names if a part of the expression is an argument of a
            // macro. The assembler does not compute a range of R700 after a colon, such as `0-15`.
            let replaced = line.parts.iter().any(|(start, part)| !part.verbatim && (at..end).contains(start));
            let computed = replaced && read.operator && before != Some(b':');
            (read.names || computed) && (byte != b'(' || read.operator)
        });
        match read {
            Some(read) => {
                out.push(line, copied, at);
                out.put(&read.value.to_string(), line.part(at, at + read.len));
                at += read.len;
                copied = at;
            }
            None if byte.is_ascii_digit() => at += number_len(rest).max(1),
            None => at += word.max(1),
        }
    }
    out.push(line, copied, text.len());
    Ok(out)
}

/// Returns the offset after the parenthesis that closes the first opening parenthesis of a text. If the first opening
/// parenthesis is not closed, returns the length of the text.
fn closing(text: &str) -> usize {
    let mut depth = 0;
    for (at, byte) in text.bytes().enumerate() {
        match byte {
            b'(' => depth += 1,
            b')' if depth == 1 => return at + 1,
            b')' => depth -= 1,
            _ => {}
        }
    }
    text.len()
}

/// Returns whether the sign at an offset has an operand on its left.
fn is_binary(text: &str, at: usize) -> bool {
    let before = text[..at].trim_end();
    let spaced = before.len() < at;
    let behind = text[at + 1..].starts_with(char::is_whitespace);
    let operand =
        before.bytes().next_back().is_some_and(|byte| byte.is_ascii_alphanumeric() || b"_)]".contains(&byte));
    operand && spaced == behind
}

/// Returns the reach of an expression at an offset. The reach depends on the operator before the expression. This
/// operator may bind more strongly than the operators of the expression.
fn reach(text: &str, at: usize) -> Reach {
    let before = text[..at].trim_end();
    let operator = before.bytes().next_back().and_then(precedence);
    match operator.filter(|_| is_binary(text, before.len().saturating_sub(1))) {
        // After `+`, the whole expression can be computed first, because the order of additions does not change the
        // sum.
        Some(_) if before.ends_with('+') => Reach::Within,
        Some(precedence) => Reach::Behind(precedence),
        None => Reach::Within,
    }
}
