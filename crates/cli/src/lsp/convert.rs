//! Positions and names in the protocol's notation.

use std::path::{Path, PathBuf};

use lsp_types::{
    CompletionItemKind, DiagnosticSeverity, Position, PositionEncodingKind, Range, SemanticTokenModifier,
    SemanticTokenType, SymbolKind,
};
use reconverge_isa::Span;
use reconverge_language::{Colour, ColumnUnit, LineStarts, MarkerLevel, NameSort, ProposalSort};

/// Returns the column unit for a client. The unit is UTF-8 if the client supports UTF-8. Otherwise, the unit is UTF-16.
pub(super) fn unit_of(encodings: Option<&[PositionEncodingKind]>) -> ColumnUnit {
    match encodings.is_some_and(|all| all.contains(&PositionEncodingKind::UTF8)) {
        true => ColumnUnit::Utf8,
        false => ColumnUnit::Utf16,
    }
}

/// Returns the protocol's name for a unit.
pub(super) fn encoding(unit: ColumnUnit) -> PositionEncodingKind {
    match unit {
        ColumnUnit::Utf8 => PositionEncodingKind::UTF8,
        ColumnUnit::Utf16 => PositionEncodingKind::UTF16,
    }
}

/// A text with its lines, and the client's column unit.
#[derive(Clone, Copy)]
pub(super) struct TextPlaces<'a> {
    pub(super) text: &'a str,
    pub(super) lines: &'a LineStarts,
    pub(super) unit: ColumnUnit,
}

impl TextPlaces<'_> {
    pub(super) fn position(self, offset: usize) -> Position {
        let (line, column) = self.lines.position(self.text, offset, self.unit);
        Position::new(line as u32, column as u32)
    }

    pub(super) fn range(self, span: Span) -> Range {
        Range::new(self.position(span.start), self.position(span.end))
    }

    pub(super) fn offset(self, position: Position) -> usize {
        self.lines.offset(self.text, position.line as usize, position.character as usize, self.unit)
    }

    /// Converts a range to bytes. A range whose end precedes its start is empty.
    pub(super) fn span(self, range: Range) -> Span {
        let start = self.offset(range.start);
        Span::new(start, self.offset(range.end).max(start))
    }
}

/// Converts a Markdown text of this server to plain text, without formatting marks.
pub(super) fn plain_text(markdown: &str) -> String {
    let (mut out, mut escaped) = (String::new(), false);
    let is_mark = |line: &&str| !line.starts_with("```") && !line.starts_with("|---");
    for line in markdown.lines().filter(is_mark) {
        for character in line.trim_end().chars() {
            let is_plain = std::mem::take(&mut escaped) || !matches!(character, '\\' | '`' | '*');
            escaped = !is_plain && character == '\\';
            out.extend(is_plain.then_some(character));
        }
        out.push('\n');
    }
    out
}

pub(super) fn severity(level: MarkerLevel) -> DiagnosticSeverity {
    match level {
        MarkerLevel::Error => DiagnosticSeverity::ERROR,
        MarkerLevel::Warning => DiagnosticSeverity::WARNING,
        MarkerLevel::Note => DiagnosticSeverity::INFORMATION,
        MarkerLevel::Hint => DiagnosticSeverity::HINT,
    }
}

pub(super) fn symbol_kind(sort: NameSort) -> SymbolKind {
    match sort {
        NameSort::Program => SymbolKind::FUNCTION,
        NameSort::Label => SymbolKind::KEY,
        NameSort::Constant => SymbolKind::CONSTANT,
        NameSort::Alias | NameSort::Variable => SymbolKind::VARIABLE,
        NameSort::Macro => SymbolKind::METHOD,
        NameSort::MacroParameter | NameSort::Parameter => SymbolKind::TYPE_PARAMETER,
    }
}

pub(super) fn item_kind(sort: ProposalSort) -> CompletionItemKind {
    match sort {
        ProposalSort::Mnemonic | ProposalSort::Directive => CompletionItemKind::KEYWORD,
        ProposalSort::Form => CompletionItemKind::SNIPPET,
        ProposalSort::Word => CompletionItemKind::ENUM_MEMBER,
        ProposalSort::Register => CompletionItemKind::FIELD,
        ProposalSort::Name(sort) => match sort {
            NameSort::Label => CompletionItemKind::REFERENCE,
            NameSort::Constant => CompletionItemKind::CONSTANT,
            NameSort::Macro | NameSort::Program => CompletionItemKind::FUNCTION,
            NameSort::Alias | NameSort::Variable | NameSort::MacroParameter | NameSort::Parameter => {
                CompletionItemKind::VARIABLE
            }
        },
    }
}

/// Returns the token types, in the order of [`Colour::ALL`].
pub(super) fn token_types() -> Vec<SemanticTokenType> {
    let of = |colour: Colour| match colour {
        Colour::Comment => SemanticTokenType::COMMENT,
        Colour::Directive => SemanticTokenType::DECORATOR,
        Colour::Mnemonic => SemanticTokenType::KEYWORD,
        Colour::Label => SemanticTokenType::new("label"),
        Colour::Constant => SemanticTokenType::ENUM_MEMBER,
        Colour::Alias | Colour::Register => SemanticTokenType::VARIABLE,
        Colour::Macro => SemanticTokenType::MACRO,
        Colour::Parameter => SemanticTokenType::PARAMETER,
        Colour::Modifier => SemanticTokenType::PROPERTY,
        Colour::Number => SemanticTokenType::NUMBER,
        Colour::Text => SemanticTokenType::STRING,
    };
    Colour::ALL.map(of).to_vec()
}

/// The token modifiers that the server uses.
pub(super) const TOKEN_MODIFIERS: [SemanticTokenModifier; 1] = [SemanticTokenModifier::DECLARATION];

/// Returns the path of a `file:` URI.
pub(super) fn path_of(uri: &str) -> Option<PathBuf> {
    let rest = uri.strip_prefix("file://")?;
    let path = &rest[rest.find('/')?..];
    let mut bytes = Vec::with_capacity(path.len());
    let mut left = path.as_bytes();
    while let Some((first, rest)) = left.split_first() {
        let digits = rest.get(..2).and_then(|digits| std::str::from_utf8(digits).ok());
        let byte = digits.filter(|_| *first == b'%').and_then(|digits| u8::from_str_radix(digits, 16).ok());
        bytes.push(byte.unwrap_or(*first));
        left = if byte.is_some() { &rest[2..] } else { rest };
    }
    let path = String::from_utf8(bytes).ok()?;
    // `/C:/…` is a Windows path.
    let drive = path.as_bytes().get(2) == Some(&b':');
    Some(PathBuf::from(if drive { &path[1..] } else { &path }))
}

/// Returns the `file:` URI of a path.
pub(super) fn uri_of(path: &Path) -> String {
    let text = path.to_string_lossy().replace('\\', "/");
    let mut uri = String::from(if text.starts_with('/') { "file://" } else { "file:///" });
    for byte in text.bytes() {
        match byte {
            b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'/' | b'-' | b'_' | b'.' | b'~' | b':' => {
                uri.push(char::from(byte));
            }
            other => uri.push_str(&format!("%{other:02X}")),
        }
    }
    uri
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_path_and_its_uri_are_inverse() {
        for path in ["/a/b c/é%.s", "/x.s"] {
            assert_eq!(path_of(&uri_of(Path::new(path))).as_deref(), Some(Path::new(path)));
        }
        assert_eq!(path_of("file:///c%3A/a.s"), Some(PathBuf::from("c:/a.s")));
        assert_eq!(path_of("untitled:Untitled-1"), None);
    }
}
