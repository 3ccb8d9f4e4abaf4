//! Syntax colours of a source.

use reconverge_isa::Span;

use crate::analysis::Analysis;
use crate::lexemes::{Lexeme, LexemeKind};
use crate::names::NameSort;
use crate::vocabulary::{Vocabulary, vocabulary};

/// Kind of a part of a source. The kind selects the colour of the part.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Colour {
    /// A comment, or the address of a listing.
    Comment,
    /// A directive.
    Directive,
    /// A mnemonic.
    Mnemonic,
    /// A label.
    Label,
    /// A constant.
    Constant,
    /// An alias.
    Alias,
    /// A macro.
    Macro,
    /// A parameter.
    Parameter,
    /// A register.
    Register,
    /// A component or another word of an instruction.
    Modifier,
    /// A number.
    Number,
    /// A quoted text, or the name of a program.
    Text,
}

impl Colour {
    /// All colours, in the order of their numbers.
    pub const ALL: [Colour; 12] = [
        Colour::Comment,
        Colour::Directive,
        Colour::Mnemonic,
        Colour::Label,
        Colour::Constant,
        Colour::Alias,
        Colour::Macro,
        Colour::Parameter,
        Colour::Register,
        Colour::Modifier,
        Colour::Number,
        Colour::Text,
    ];
}

/// A coloured part.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ColouredPart {
    /// The span of the part, which is within one line.
    pub span: Span,
    /// Kind of the part.
    pub colour: Colour,
    /// Whether the part defines a name.
    pub defines: bool,
}

impl Analysis {
    /// Returns the coloured parts within a span of the text, in text order. The parts do not overlap.
    pub fn colours(&self, part: Span) -> Vec<ColouredPart> {
        let words = vocabulary(self.isa());
        let mut names = self.names.occurrences.iter().filter(|found| found.file == 0).collect::<Vec<_>>();
        names.sort_by_key(|found| found.span.start);
        let mut found = Vec::new();
        let lines = &self.files[0].lines;
        let from = lines.partition_point(|line| line.span.end < part.start);
        for line in lines[from..].iter().take_while(|line| line.span.start <= part.end) {
            let is_directive = line.directive(self.text()).is_some();
            for lexeme in &line.lexemes {
                let at = names.partition_point(|name| name.span.start < lexeme.span.start);
                let name = names.get(at).filter(|name| name.span.start == lexeme.span.start);
                let colour = match name {
                    Some(name) => Some(of_name(self.names.definitions[name.definition].sort)),
                    None => self.colour(*lexeme, words, is_directive),
                };
                let defines = name.is_some_and(|name| name.defines);
                found.extend(colour.map(|colour| ColouredPart { span: lexeme.span, colour, defines }));
            }
        }
        found
    }

    fn colour(&self, lexeme: Lexeme, words: &Vocabulary, is_directive: bool) -> Option<Colour> {
        let text = lexeme.text(self.text());
        Some(match lexeme.kind {
            LexemeKind::Comment | LexemeKind::Listing => Colour::Comment,
            LexemeKind::Directive => Colour::Directive,
            LexemeKind::Label | LexemeKind::LabelUse => Colour::Label,
            LexemeKind::Number => Colour::Number,
            LexemeKind::Text => Colour::Text,
            LexemeKind::Parameter => Colour::Parameter,
            LexemeKind::Component => Colour::Modifier,
            LexemeKind::Mark => return None,
            LexemeKind::Word if words.mnemonics.contains(text) && !is_directive => Colour::Mnemonic,
            LexemeKind::Word => {
                let next = self.text()[lexeme.span.end..].chars().next();
                if words.is_register(text, next) { Colour::Register } else { Colour::Modifier }
            }
        })
    }
}

fn of_name(sort: NameSort) -> Colour {
    match sort {
        NameSort::Label => Colour::Label,
        NameSort::Constant => Colour::Constant,
        NameSort::Alias => Colour::Alias,
        NameSort::Macro => Colour::Macro,
        NameSort::MacroParameter | NameSort::Parameter | NameSort::Variable => Colour::Parameter,
        NameSort::Program => Colour::Text,
    }
}
