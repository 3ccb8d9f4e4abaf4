//! The outline of a source: the programs, the names, and the parts that an editor can fold.

use reconverge_isa::{Isa, Span};

use crate::analysis::Analysis;
use crate::lexemes::LexedLine;
use crate::names::{Definition, NameSort};
use crate::vocabulary::vocabulary;

/// An entry of the outline.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OutlineEntry {
    /// Kind of the name.
    pub sort: NameSort,
    /// The name.
    pub name: String,
    /// Span of the whole construct.
    pub whole: Span,
    /// Span of the name.
    pub span: Span,
    /// Nested entries.
    pub inside: Vec<OutlineEntry>,
}

/// Lines that an editor can fold, as line numbers from 0.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FoldedLines {
    /// Number of the first line, which remains visible.
    pub first: usize,
    /// Number of the last line, which is hidden.
    pub last: usize,
    /// Whether the lines are comments.
    pub comment: bool,
}

/// A block of lines between a start word and an end word. Line numbers count from 0.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct WordBlock {
    pub(crate) first: usize,
    /// Numbers of the lines that separate branches, such as the line of `.else`.
    pub(crate) middles: Vec<usize>,
    pub(crate) last: usize,
    /// Whether the words are R500 instructions (`true`) or directives (`false`).
    pub(crate) construct: bool,
}

impl Analysis {
    /// Returns the programs with their labels, and the names that all programs share, in text order.
    pub fn outline(&self) -> Vec<OutlineEntry> {
        let entry = |definition: &Definition| OutlineEntry {
            sort: definition.sort,
            name: definition.name.clone(),
            whole: Span::new(
                definition.whole.start,
                definition.whole.end.clamp(definition.span.end, self.text().len()),
            ),
            span: definition.span,
            inside: Vec::new(),
        };
        let own = || self.names.definitions.iter().filter(|definition| definition.file == 0);
        let mut entries: Vec<OutlineEntry> =
            own().filter(|definition| definition.sort == NameSort::Program).map(entry).collect();
        let rest = own()
            .filter(|definition| !matches!(definition.sort, NameSort::Program | NameSort::MacroParameter));
        for found in rest.map(entry) {
            let program = entries.iter_mut().find(|program| {
                program.sort == NameSort::Program
                    && program.whole.start <= found.span.start
                    && found.span.end <= program.whole.end
            });
            match program {
                Some(program) => program.inside.push(found),
                None => entries.push(found),
            }
        }
        entries.sort_by_key(|entry| entry.whole.start);
        entries
    }

    /// Returns the parts that an editor can fold: programs, macros, repetitions, conditions, R700 clauses, R500
    /// constructs and comments.
    pub fn folds(&self) -> Vec<FoldedLines> {
        let mut found = self.folded_blocks();
        found.extend(self.folded_programs());
        found.extend(self.folded_comments());
        if self.isa() == Isa::R700 {
            found.extend(self.folded_clauses());
        }
        found.retain(|fold| fold.first < fold.last);
        found.sort_by_key(|fold| (fold.first, std::cmp::Reverse(fold.last)));
        found.dedup();
        found
    }

    fn own_lines(&self) -> &[LexedLine] {
        &self.files[0].lines
    }

    fn folded_blocks(&self) -> Vec<FoldedLines> {
        let mut found = Vec::new();
        for block in self.blocks() {
            let mut first = block.first;
            for middle in &block.middles {
                found.push(FoldedLines { first, last: middle.saturating_sub(1), comment: false });
                first = *middle;
            }
            found.push(FoldedLines { first, last: block.last, comment: false });
        }
        found
    }

    /// Returns the blocks that have a start word and an end word: `.macro`, `.rept`, `.if`, and R500 constructs. The
    /// end word of an R500 construct is `end` plus the start word.
    pub(crate) fn blocks(&self) -> Vec<WordBlock> {
        let text = self.text();
        let mnemonics = &vocabulary(self.isa()).mnemonics;
        let (mut open, mut found): (Vec<(String, WordBlock)>, Vec<WordBlock>) = (Vec::new(), Vec::new());
        for (number, line) in self.own_lines().iter().enumerate() {
            let statement = line.statement(text);
            let Some(first) = statement.first().map(|first| first.text(text)) else { continue };
            let end = match first {
                ".macro" => Some(".endm".to_owned()),
                ".rept" => Some(".endr".to_owned()),
                ".if" | ".ifdef" | ".ifndef" => Some(".endif".to_owned()),
                word => Some(format!("end{word}")).filter(|end| mnemonics.contains(end.as_str())),
            };
            if let Some(end) = end {
                let construct = !first.starts_with('.');
                open.push((end, WordBlock { first: number, middles: Vec::new(), last: number, construct }));
                continue;
            }
            if matches!(first, ".else" | ".elif" | "else") {
                let end = if first.starts_with('.') { ".endif" } else { "endif" };
                let innermost = open.iter_mut().rev().find(|(known, _)| known == end);
                innermost.into_iter().for_each(|(_, block)| block.middles.push(number));
                continue;
            }
            // `endif 3` closes three blocks.
            let count = statement.get(1).and_then(|count| count.text(text).parse().ok()).unwrap_or(1);
            for _ in 0..count {
                let Some(at) = open.iter().rposition(|(end, _)| end == first) else { break };
                open.truncate(at + 1);
                found.extend(open.pop().map(|(_, block)| WordBlock { last: number, ..block }));
            }
        }
        found
    }

    fn folded_programs(&self) -> Vec<FoldedLines> {
        let programs =
            self.names.definitions.iter().filter(|found| found.file == 0 && found.sort == NameSort::Program);
        let fold = |program: &Definition| {
            let first = self.lines().line(program.span.start);
            let last = self
                .lines()
                .line(program.whole.end.saturating_sub(1).clamp(program.span.start, self.text().len()));
            FoldedLines { first, last: self.last_with_code(first, last), comment: false }
        };
        programs.map(fold).collect()
    }

    /// Returns the number of the last non-empty line from line `first` to line `last`, inclusive.
    fn last_with_code(&self, first: usize, last: usize) -> usize {
        (first..=last).rev().find(|line| !self.own_lines()[*line].lexemes.is_empty()).unwrap_or(first)
    }

    fn folded_comments(&self) -> Vec<FoldedLines> {
        let lines = self.own_lines();
        let is_comment = |line: &LexedLine| line.code().is_empty() && line.comment().is_some();
        let (mut found, mut first) = (Vec::new(), 0);
        for (number, line) in lines.iter().enumerate() {
            if !is_comment(line) {
                found.push(FoldedLines { first, last: number.saturating_sub(1), comment: true });
                first = number + 1;
            }
        }
        found.push(FoldedLines { first, last: lines.len().saturating_sub(1), comment: true });
        found.retain(|fold: &FoldedLines| fold.first < fold.last);
        found
    }

    /// Returns the lines of each clause, including the clause's control-flow instruction (R700).
    fn folded_clauses(&self) -> Vec<FoldedLines> {
        let text = self.text();
        let (mut found, mut head): (Vec<FoldedLines>, Option<usize>) = (Vec::new(), None);
        let mut last = 0;
        for (number, line) in self.own_lines().iter().enumerate() {
            let statement = line.statement(text);
            let is_directive = line.directive(text).is_some_and(|name| !matches!(name, ".slot" | ".literal"));
            if statement.is_empty() {
                continue;
            }
            if is_directive || is_control(statement.iter().map(|lexeme| lexeme.text(text))) {
                found.extend(head.map(|first| FoldedLines { first, last, comment: false }));
                head = (!is_directive).then_some(number);
            }
            last = number;
        }
        found.extend(head.map(|first| FoldedLines { first, last, comment: false }));
        found
    }
}

/// Returns whether a statement is a control-flow instruction (R700). A control-flow instruction begins with an optional
/// address, a name of several letters, and a colon.
pub(crate) fn is_control<'t>(mut words: impl Iterator<Item = &'t str>) -> bool {
    let mut name = words.next().unwrap_or_default();
    if name.starts_with(|c: char| c.is_ascii_digit()) {
        name = words.next().unwrap_or_default();
    }
    name.len() > 1 && words.next() == Some(":")
}
