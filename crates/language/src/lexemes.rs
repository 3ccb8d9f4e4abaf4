//! Source text as lines of lexemes, for all machines.
//!
//! Assemblers do not use lexemes. Editors use lexemes for operations on a text that may have errors: to find the name
//! under the cursor, to colour the text, and to align the text. The whole text consists of lexemes and of space between
//! lexemes.

use reconverge_isa::source::{number_len, word_len};
use reconverge_isa::{Isa, Span};

/// Kind of a lexeme.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LexemeKind {
    /// A directive. The lexeme includes the leading dot, as in `.equ`.
    Directive,
    /// The name in the definition of a label. The lexeme does not include `@` and the colon.
    Label,
    /// The name in a use of a label (R700). The lexeme does not include the `@` before the name.
    LabelUse,
    /// A word: letters, digits, `_` and `$`.
    Word,
    /// A component: a word directly after a dot.
    Component,
    /// A number.
    Number,
    /// A text in quotation marks, including the quotation marks.
    Text,
    /// The name of a macro parameter after `\`, without the `\`.
    Parameter,
    /// An address of a listing between `/*` and `*/` (Tesla).
    Listing,
    /// A mark: any other character.
    Mark,
    /// A comment.
    Comment,
}

/// A word, a number or another unit of a line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Lexeme {
    /// Kind of the lexeme.
    pub kind: LexemeKind,
    /// Span of the lexeme.
    pub span: Span,
}

impl Lexeme {
    /// Returns the text of the lexeme.
    pub fn text(self, source: &str) -> &str {
        &source[self.span.start..self.span.end]
    }
}

/// A line of a source, split into lexemes.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct LexedLine {
    /// The line without the line ending.
    pub span: Span,
    /// Offset of the end of the code, before the comment.
    pub code_end: usize,
    /// The lexemes in order. If the line has a comment, the comment is the last lexeme.
    pub lexemes: Vec<Lexeme>,
}

impl LexedLine {
    /// Returns the lexemes before the comment.
    pub fn code(&self) -> &[Lexeme] {
        match self.lexemes.split_last() {
            Some((last, rest)) if last.kind == LexemeKind::Comment => rest,
            _ => &self.lexemes,
        }
    }

    /// Returns the comment, if the line has one.
    pub fn comment(&self) -> Option<Lexeme> {
        self.lexemes.last().copied().filter(|last| last.kind == LexemeKind::Comment)
    }

    /// Returns the lexemes of the code after labels and the address of a listing.
    pub fn statement<'l>(&'l self, source: &str) -> &'l [Lexeme] {
        let code = self.code();
        let heads = code.iter().position(|lexeme| {
            let colon = lexeme.kind == LexemeKind::Mark && matches!(lexeme.text(source), ":" | "@");
            !matches!(lexeme.kind, LexemeKind::Label | LexemeKind::Listing) && !colon
        });
        &code[heads.unwrap_or(code.len())..]
    }

    /// Returns the directive with which the line begins, after any labels.
    pub fn directive<'s>(&self, source: &'s str) -> Option<&'s str> {
        let first = self.statement(source).first().filter(|first| first.kind == LexemeKind::Directive)?;
        Some(first.text(source))
    }

    /// Returns the lexeme that contains the byte at an offset. If a name ends at the offset and a mark starts at the
    /// offset, returns the name.
    pub fn at(&self, offset: usize) -> Option<Lexeme> {
        let inside = |lexeme: &&Lexeme| lexeme.span.start <= offset && offset < lexeme.span.end;
        let before = |lexeme: &&Lexeme| lexeme.span.end == offset;
        let is_name = |lexeme: &Lexeme| lexeme.kind != LexemeKind::Mark;
        let found = self.lexemes.iter().find(inside);
        found.filter(|lexeme| is_name(lexeme)).or_else(|| self.lexemes.iter().find(before)).or(found).copied()
    }
}

/// Splits a text into lines of lexemes. The syntax of labels is `@name:` for R700 and `name:` for R500 and Tesla.
pub fn lex(text: &str, isa: Option<Isa>) -> Vec<LexedLine> {
    let text_without = reconverge_isa::source::without_mark(text);
    let mut start = text.len() - text_without.len();
    text_without
        .split('\n')
        .map(|line| {
            let at = start;
            start += line.len() + 1;
            lex_line(line.strip_suffix('\r').unwrap_or(line), at, isa)
        })
        .collect()
}

/// Returns the length in bytes of the name at the start of `rest`. Returns 0 if no colon follows the name.
fn label_len(rest: &str) -> usize {
    let len =
        rest.bytes().position(|byte| !(byte.is_ascii_alphanumeric() || b"_$".contains(&byte))).unwrap_or(0);
    if rest[len..].starts_with(':') && !rest.starts_with(|c: char| c.is_ascii_digit()) { len } else { 0 }
}

fn lex_line(line: &str, base: usize, isa: Option<Isa>) -> LexedLine {
    let code = reconverge_isa::source::lines(line).next().map_or(line, |(_, code)| code);
    let mut lexemes: Vec<Lexeme> = Vec::new();
    let (mut at, mut heads) = (0, true);
    while at < code.len() {
        let rest = &code[at..];
        let first = rest.chars().next().unwrap_or(' ');
        if first.is_whitespace() {
            at += first.len_utf8();
            continue;
        }
        let touches = at > 0 && !code[..at].ends_with(char::is_whitespace);
        let before = if touches { code.as_bytes()[at - 1] } else { b' ' };
        let label = if heads && (isa != Some(Isa::R700) || before == b'@') { label_len(rest) } else { 0 };
        let (kind, len) = match first {
            _ if label > 0 => (LexemeKind::Label, label),
            '"' => (LexemeKind::Text, text_len(rest)),
            '/' if heads && rest.starts_with("/*") => {
                (LexemeKind::Listing, rest.find("*/").map_or(rest.len(), |end| end + 2))
            }
            '.' if heads && word_len(&rest[1..]) > 0 => (LexemeKind::Directive, 1 + word_len(&rest[1..])),
            '0'..='9' => (LexemeKind::Number, number_len(rest).max(1)),
            'a'..='z' | 'A'..='Z' | '_' | '$' => {
                let long = |byte: u8| byte.is_ascii_alphanumeric() || b"_$".contains(&byte);
                let len = rest.bytes().position(|byte| !long(byte)).unwrap_or(rest.len());
                let kind = match before {
                    b'.' => LexemeKind::Component,
                    b'@' => LexemeKind::LabelUse,
                    b'\\' => LexemeKind::Parameter,
                    _ => LexemeKind::Word,
                };
                (kind, len)
            }
            other => (LexemeKind::Mark, other.len_utf8()),
        };
        // Labels and the address of a listing may precede a statement. Any other lexeme starts the statement.
        let is_head = matches!(kind, LexemeKind::Label | LexemeKind::Listing)
            || kind == LexemeKind::Mark && matches!(first, ':' | '@');
        heads &= is_head;
        lexemes.push(Lexeme { kind, span: Span::new(base + at, base + at + len) });
        at += len;
    }
    if code.len() < line.len() {
        let span = Span::new(base + code.len(), base + line.len());
        lexemes.push(Lexeme { kind: LexemeKind::Comment, span });
    }
    LexedLine { span: Span::new(base, base + line.len()), code_end: base + code.len(), lexemes }
}

/// Returns the length in bytes of the quoted text at the start of `rest`.
fn text_len(rest: &str) -> usize {
    let mut escaped = false;
    for (at, byte) in rest.bytes().enumerate().skip(1) {
        match byte {
            b'"' if !escaped => return at + 1,
            b'\\' => escaped = !escaped,
            _ => escaped = false,
        }
    }
    rest.len()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn kinds(line: &str, isa: Isa) -> Vec<(LexemeKind, String)> {
        let lexed = &lex(line, Some(isa))[0];
        lexed.lexemes.iter().map(|lexeme| (lexeme.kind, lexeme.text(line).to_owned())).collect()
    }

    #[test]
    fn labels_are_those_of_the_machine() {
        use LexemeKind::*;
        let of = |line, isa| kinds(line, isa).into_iter().map(|(kind, _)| kind).collect::<Vec<_>>();
        assert_eq!(of("odd: bra odd", Isa::Tesla), [Label, Mark, Word, Word]);
        assert_eq!(of("@odd: JUMP: ADDR(@odd)", Isa::R700)[..4], [Mark, Label, Mark, Word]);
        assert_eq!(of("JUMP: ADDR(@odd)", Isa::R700), [Word, Mark, Word, Mark, Mark, LabelUse, Mark]);
        assert_eq!(of("/*0010*/ a: nop ; b: c", Isa::Tesla), [Listing, Label, Mark, Word, Comment]);
    }

    #[test]
    fn a_directive_stands_at_the_start_and_a_component_after_a_name() {
        use LexemeKind::*;
        assert_eq!(
            kinds(".equ N, 0x1f \"a;b", Isa::R500).iter().map(|(kind, _)| *kind).collect::<Vec<_>>(),
            [Directive, Word, Mark, Number, Text, Comment]
        );
        let parts = kinds("ADD R0.x, \\a.y", Isa::R500);
        assert_eq!((parts[3].0, parts[6].0, parts[8].0), (Component, Parameter, Component));
    }

    #[test]
    fn the_lexeme_before_a_cursor_is_the_one_under_it() {
        let line = "bra odd";
        let lexed = &lex(line, Some(Isa::Tesla))[0];
        assert_eq!(lexed.at(7).map(|found| found.text(line)), Some("odd"));
        assert_eq!(lexed.at(3).map(|found| found.text(line)), Some("bra"));
        assert_eq!(lexed.at(0).map(|found| found.text(line)), Some("bra"));
    }
}
