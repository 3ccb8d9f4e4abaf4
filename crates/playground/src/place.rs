//! Positions in a text, counted in UTF-16 code units as in a browser.

use reconverge_isa::Span;
use reconverge_isa::source::Diagnostic;
use serde::Serialize;

/// A message about a part of a text.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct SourcePlace {
    /// `error`, `warning` or `info`.
    pub severity: &'static str,
    /// First UTF-16 code unit of the part.
    pub from: usize,
    /// One past the last UTF-16 code unit of the part.
    pub to: usize,
    /// Line, counted from 1.
    pub line: usize,
    /// A description of the problem. If the expected text is known, the description ends with this text.
    pub message: String,
    /// Name of the violated rule. If the message is not a finding of lint, this field is `None`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub rule: Option<&'static str>,
    /// Fixes for the problem.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub fixes: Vec<SourceFix>,
}

/// A fix: a part of the source, and the replacement of this part.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct SourceFix {
    /// A short name of the fix.
    pub title: String,
    /// First UTF-16 code unit of the part to replace.
    pub from: usize,
    /// One past the last UTF-16 code unit of the part to replace.
    pub to: usize,
    /// The new text.
    pub text: String,
}

/// Returns the number of UTF-16 code units before the byte at index `byte` of a text.
pub(crate) fn units(text: &str, byte: usize) -> usize {
    text[..text.floor_char_boundary(byte)].encode_utf16().count()
}

/// Returns the index of the byte after the first `units` UTF-16 code units. If the text has fewer code units, returns
/// the end of the text.
pub(crate) fn byte(text: &str, units: usize) -> usize {
    let mut left = units;
    let at = text.char_indices().find(|(_, character)| match left.checked_sub(character.len_utf16()) {
        Some(rest) => {
            left = rest;
            false
        }
        None => true,
    });
    at.map_or(text.len(), |(at, _)| at)
}

/// Returns a message about a part of a text.
pub(crate) fn place(text: &str, span: Span, severity: &'static str, message: String) -> SourcePlace {
    SourcePlace {
        severity,
        from: units(text, span.start),
        to: units(text, span.end),
        line: span.line_column(text).0,
        message,
        rule: None,
        fixes: Vec::new(),
    }
}

/// Returns a message for the page about an error of the assembler.
pub(crate) fn error_at(source: &str, error: &Diagnostic) -> SourcePlace {
    place(source, error.span, "error", error.to_string())
}
