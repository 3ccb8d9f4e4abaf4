//! Messages about a source, and changes of the source that editors apply.

use reconverge_isa::Span;

/// Severity of a marker.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MarkerLevel {
    /// The text is invalid, or a program breaks a rule and traps.
    Error,
    /// The text is valid. But the author probably meant a different text, or a program has undefined behaviour.
    Warning,
    /// A program is valid, but the author probably did not intend a part of the program.
    Note,
    /// A remark about the analysis and not about the text.
    Hint,
}

/// A span in the source or in a file that the source includes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FilePlace {
    /// Path of the file, relative to the folder of the source. `None` if the file is the source.
    pub file: Option<String>,
    /// The span in the file.
    pub span: Span,
}

/// A message about a part of the source.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Marker {
    /// The part of the source.
    pub span: Span,
    /// Severity of the message.
    pub level: MarkerLevel,
    /// Name of the violated rule, if the message is a finding.
    pub rule: Option<&'static str>,
    /// Text of the message, followed by its advice.
    pub message: String,
    /// Other positions, each with a message.
    pub related: Vec<(FilePlace, String)>,
    /// Replacement text that the advice suggests.
    pub(crate) proposal: Option<String>,
}

/// A change that removes a message.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Remedy {
    /// Description of the change.
    pub title: String,
    /// The message that the change removes.
    pub marker: Marker,
    /// The part of the text to replace.
    pub span: Span,
    /// The replacement.
    pub text: String,
}

/// A part of the text, and its replacement.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TextChange {
    /// The part to replace.
    pub span: Span,
    /// The replacement.
    pub text: String,
}

/// Returns a text after changes. The changes must not overlap.
pub fn changed(text: &str, changes: &[TextChange]) -> String {
    let mut sorted: Vec<&TextChange> = changes.iter().collect();
    sorted.sort_by_key(|change| (change.span.start, change.span.end));
    let (mut out, mut copied) = (String::new(), 0);
    for change in sorted {
        if change.span.start >= copied && change.span.end <= text.len() {
            out.push_str(&text[copied..change.span.start]);
            out.push_str(&change.text);
            copied = change.span.end;
        }
    }
    out.push_str(&text[copied..]);
    out
}
