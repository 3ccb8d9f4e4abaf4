//! Hints that an editor shows inside a source: addresses, words and values.

use reconverge_isa::Span;

use crate::analysis::{Analysis, InstructionAt};
use crate::names::NameSort;

/// Content of a hint.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum HintSort {
    /// The address of an instruction.
    Address,
    /// The words of an instruction.
    Words,
    /// The value of a constant or an expression.
    Value,
}

/// A text that an editor shows between two characters of the source.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct InlineHint {
    /// Offset in the source, in bytes. The text is shown before this byte.
    pub at: usize,
    /// Text of the hint.
    pub text: String,
    /// Content of the hint.
    pub sort: HintSort,
}

/// Maximum number of words that are shown per instruction.
const MOST_WORDS: usize = 6;

impl Analysis {
    /// Returns the hints for a part of the text. If the source has errors, the function omits addresses, because the
    /// addresses may depend on the lines with errors.
    pub fn hints(&self, part: Span) -> Vec<InlineHint> {
        let mut found = Vec::new();
        self.instruction_hints(part, &mut found);
        self.value_hints(part, &mut found);
        found.sort_by_key(|hint| hint.at);
        found
    }

    fn instruction_hints(&self, part: Span, found: &mut Vec<InlineHint>) {
        let all = self.instructions();
        let from = all.partition_point(|instruction| instruction.at < part.start);
        let inside = all[from..].iter().take_while(|instruction| instruction.at <= part.end);
        for instruction in inside.filter(|instruction| instruction.own) {
            if self.is_complete() {
                let text = self.isa().spelled(instruction.address);
                found.push(InlineHint { at: instruction.at, text, sort: HintSort::Address });
            }
            if let Some(text) = self.words_of(*instruction) {
                let end =
                    self.line_at(instruction.at).code().last().map_or(instruction.at, |last| last.span.end);
                found.push(InlineHint { at: end, text, sort: HintSort::Words });
            }
        }
    }

    /// Returns the words of an instruction as text.
    fn words_of(&self, instruction: InstructionAt) -> Option<String> {
        let line = self.listing(instruction.program)?.at(instruction.address)?;
        let words: Vec<String> =
            line.words.iter().take(MOST_WORDS).map(|word| format!("{word:08x}")).collect();
        (!words.is_empty()).then(|| words.join(" "))
    }

    fn value_hints(&self, part: Span, found: &mut Vec<InlineHint>) {
        let Some(expanded) = &self.expanded else { return };
        let inside = |span: Span| part.start <= span.start && span.end <= part.end;
        for constant in
            expanded.constants().iter().filter(|constant| constant.file.is_none() && inside(constant.span))
        {
            let line = self.line_at(constant.span.start);
            let value = line.statement(self.text()).iter().rfind(|lexeme| line.code_end >= lexeme.span.end);
            let written = value.map_or("", |value| value.text(self.text()));
            let text = constant.value.to_string();
            if written != text {
                let end = line.code().last().map_or(constant.span.end, |last| last.span.end);
                found.push(InlineHint { at: end, text: format!("= {text}"), sort: HintSort::Value });
            }
        }
        // Only numbers become hints. The text of an alias is shown on hover instead.
        let is_number = |text: &str| text.starts_with(|c: char| c.is_ascii_digit() || c == '-');
        for (span, text) in expanded.replaced().filter(|(span, text)| inside(*span) && is_number(text)) {
            if self
                .names
                .at(0, span.start)
                .is_none_or(|at| self.names.definitions[at.definition].sort != NameSort::Macro)
            {
                found.push(InlineHint {
                    at: span.end,
                    text: format!("= {}", text.trim()),
                    sort: HintSort::Value,
                });
            }
        }
        found.dedup();
    }
}
