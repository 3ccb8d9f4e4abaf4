//! Formats a source: sets the indentation, one space between words, and the columns of operands and comments.
//!
//! Labels and directives begin at the start of a line. The indentation of instructions depends on the machine. On
//! Tesla, the indentation is four spaces. On R500, the indentation grows with the nesting of constructs. On R700,
//! control-flow instructions are not indented. All lines of clauses get the indentation that the first slot has in the
//! text. Comments keep their text. Comments at the end of consecutive lines are aligned in one column.

use reconverge_isa::{Isa, Span};

use crate::analysis::Analysis;
use crate::lexemes::{LexedLine, Lexeme, LexemeKind};
use crate::message::{TextChange, changed};
use crate::outline::is_control;
use crate::vocabulary::vocabulary;

/// Number of spaces per level of indentation.
const STEP: usize = 4;

/// Maximum length in characters of an operation that determines the column of the operands (R700). Longer operations do
/// not move the column.
const WIDEST: usize = 16;

/// Directives that contain rows of numbers.
const TABLES: [&str; 4] = [".const", ".data", ".word", ".literal"];

/// A line. The code has the new layout, and the comment is separate.
struct LaidOut {
    code: String,
    comment: Option<Lexeme>,
    /// Original column of the comment, in characters.
    column: usize,
}

impl Analysis {
    /// Returns the changes that lay out the text. The function first assembles the changed text. If the programs of the
    /// changed text differ from the programs of the original text, the function returns no changes.
    pub fn format(&self) -> Vec<TextChange> {
        let lines = self.layout();
        let mut changes = Vec::new();
        for (line, new) in self.files[0].lines.iter().zip(lines) {
            if self.text()[line.span.start..line.span.end] != new {
                changes.push(TextChange { span: line.span, text: new });
            }
        }
        match changes.is_empty() || self.is_same(&changed(self.text(), &changes)) {
            true => changes,
            false => Vec::new(),
        }
    }

    /// Returns the changes of [`Analysis::format`] for the lines that a part of the text touches.
    pub fn format_part(&self, part: Span) -> Vec<TextChange> {
        let touches = |change: &TextChange| change.span.start <= part.end && part.start <= change.span.end;
        self.format().into_iter().filter(touches).collect()
    }

    fn layout(&self) -> Vec<String> {
        let depths = self.depths();
        let columns = self.operand_columns();
        let step = self.clause_step();
        let text = self.text();
        let mut number_width = 0;
        let mut lines: Vec<LaidOut> = Vec::new();
        for (index, line) in self.files[0].lines.iter().enumerate() {
            let code = self.code_of(line, (depths[index], step), columns[index], &mut number_width);
            let comment = line.comment();
            let column =
                comment.map_or(0, |comment| text[line.span.start..comment.span.start].chars().count());
            lines.push(LaidOut { code, comment, column });
        }
        with_comments(&lines, text)
    }

    /// Returns the nesting depth of R500 constructs for each line.
    fn depths(&self) -> Vec<usize> {
        let mut depths = vec![0; self.files[0].lines.len()];
        for block in self.blocks().into_iter().filter(|block| block.construct) {
            for line in block.first + 1..block.last {
                if !block.middles.contains(&line) {
                    depths[line] += 1;
                }
            }
        }
        depths
    }

    /// Returns the number of spaces before the lines of a clause (R700). The first slot of the text determines the
    /// number. If no spaces or too many spaces precede the first slot, returns [`STEP`].
    fn clause_step(&self) -> usize {
        let indents = self.files[0].lines.iter().filter_map(|line| {
            let first = line.statement(self.text()).first()?;
            slot_parts(line.statement(self.text()), self.text())?;
            Some(first.span.start - line.span.start)
        });
        indents.take(1).find(|indent| (1..=2 * STEP).contains(indent)).unwrap_or(STEP)
    }

    /// Returns whether at least two spaces separate the operation of a slot from its operands.
    fn has_column(&self, line: &LexedLine) -> bool {
        let parts = slot_parts(line.statement(self.text()), self.text());
        let before = parts.and_then(|parts| parts.operands).map(|first| &self.text()[..first.span.start]);
        before.is_some_and(|before| before.ends_with("  "))
    }

    /// Returns one width per line, for R700. In an ALU clause, this width is the width of the longest operation in the
    /// clause. Operations longer than [`WIDEST`] are ignored. The width is 0 if fewer than two spaces precede the
    /// operands on every line of the clause.
    fn operand_columns(&self) -> Vec<usize> {
        let lines = &self.files[0].lines;
        let mut columns = vec![0; lines.len()];
        if self.isa() != Isa::R700 {
            return columns;
        }
        let widths: Vec<Option<usize>> = lines.iter().map(|line| self.operation_width(line)).collect();
        let mut from = 0;
        while from < lines.len() {
            let run = widths[from..].iter().take_while(|width| width.is_some()).count();
            let widest =
                widths[from..from + run].iter().flatten().copied().filter(|width| *width <= WIDEST).max();
            let has_column = lines[from..from + run].iter().any(|line| self.has_column(line));
            columns[from..from + run].fill(widest.filter(|_| has_column).unwrap_or(0));
            from += run.max(1);
        }
        columns
    }

    /// Returns the length of a slot's operation, in characters.
    fn operation_width(&self, line: &LexedLine) -> Option<usize> {
        let parts = slot_parts(line.statement(self.text()), self.text())?;
        let end = parts.operands.map_or(line.code_end, |first| first.span.start);
        Some(self.text()[parts.operation.span.start..end].trim_end().chars().count())
    }

    /// Returns the code of a line in the new layout, without the comment.
    fn code_of(
        &self,
        line: &LexedLine,
        (depth, step): (usize, usize),
        column: usize,
        number_width: &mut usize,
    ) -> String {
        let text = self.text();
        let statement = line.statement(text);
        let Some(first) = statement.first() else {
            return self.spaced(line.code());
        };
        let heads = &line.code()[..line.code().len() - statement.len()];
        let mut out = self.spaced(heads);
        let indent = match self.isa() {
            _ if first.kind == LexemeKind::Directive && !self.in_clause(first.text(text)) => 0,
            Isa::Tesla => STEP,
            Isa::R500 => STEP * depth + 2 * usize::from(first.text(text) == "+"),
            Isa::R700 if is_control(statement.iter().map(|lexeme| lexeme.text(text))) => 0,
            // In AMD's syntax, the names of control-flow instructions do not have a colon.
            Isa::R700 if self.is_amd_control(statement) => 0,
            Isa::R700 => step,
        };
        let width = out.chars().count();
        let least = if width > 0 { width + 1 } else { 0 };
        out.push_str(&" ".repeat(indent.max(least) - width));
        match slot_parts(statement, text).filter(|_| self.isa() == Isa::R700) {
            Some(parts) => {
                match parts.number {
                    Some(number) => {
                        *number_width = number.text(text).len() + 1;
                        out.push_str(number.text(text));
                        out.push(' ');
                    }
                    None => out.push_str(&" ".repeat(*number_width)),
                }
                let end = parts.operands.map_or(line.code_end, |first| first.span.start);
                let operation = self.spaced_text(Span::new(parts.operation.span.start, end));
                out.push_str(&format!("{}: {operation:<column$} ", parts.slot.text(text)));
                if let Some(first) = parts.operands {
                    out.push_str(&self.spaced_text(Span::new(first.span.start, line.code_end)));
                }
                out.truncate(out.trim_end().len());
            }
            None => {
                *number_width = if indent == 0 { 0 } else { *number_width };
                // Numbers in a table keep their columns.
                match TABLES.contains(&first.text(text)) {
                    true => out.push_str(text[first.span.start..line.code_end].trim_end()),
                    false => out.push_str(&self.spaced(statement)),
                }
            }
        }
        out
    }

    /// Returns whether a directive is a line of a clause (R700).
    fn in_clause(&self, name: &str) -> bool {
        self.isa() == Isa::R700 && matches!(name, ".slot" | ".literal")
    }

    /// Returns whether the mnemonic of a statement in AMD's syntax is the mnemonic of a control-flow instruction.
    fn is_amd_control(&self, statement: &[Lexeme]) -> bool {
        let text = self.text();
        let word = statement
            .iter()
            .find(|lexeme| lexeme.kind == LexemeKind::Word)
            .map_or("", |word| word.text(text));
        let known = vocabulary(Isa::R700).entries.iter().find(|entry| entry.name == word);
        known.is_some_and(|entry| entry.written().ends_with(':'))
    }

    /// Returns the text of consecutive lexemes, with runs of spaces replaced by single spaces.
    fn spaced(&self, lexemes: &[Lexeme]) -> String {
        match (lexemes.first(), lexemes.last()) {
            (Some(first), Some(last)) => self.spaced_text(Span::new(first.span.start, last.span.end)),
            _ => String::new(),
        }
    }

    fn spaced_text(&self, span: Span) -> String {
        let (mut out, mut quoted, mut space) = (String::new(), false, false);
        for character in self.text()[span.start..span.end].chars() {
            quoted ^= character == '"';
            if !quoted && matches!(character, ' ' | '\t') {
                space = true;
                continue;
            }
            // Spaces before a comma are dropped.
            if std::mem::take(&mut space) && !out.is_empty() && (quoted || character != ',') {
                out.push(' ');
            }
            out.push(character);
        }
        out
    }
}

/// The parts of a slot in an ALU group (R700).
struct SlotParts {
    number: Option<Lexeme>,
    slot: Lexeme,
    operation: Lexeme,
    /// The first lexeme after the operation.
    operands: Option<Lexeme>,
}

fn slot_parts(statement: &[Lexeme], text: &str) -> Option<SlotParts> {
    let number = statement.first().copied().filter(|first| first.kind == LexemeKind::Number);
    let rest = if number.is_some() { &statement[1..] } else { statement };
    let ([slot, colon], [operation, more @ ..]) = (rest.first_chunk::<2>()?, rest.get(2..)?) else {
        return None;
    };
    let fits =
        slot.span.end - slot.span.start == 1 && slot.kind != LexemeKind::Number && colon.text(text) == ":";
    // The operation extends to the next space: `MUL*2` is one operation.
    let operands = more.iter().copied().find(|lexeme| text[..lexeme.span.start].ends_with([' ', '\t']));
    fits.then_some(SlotParts { number, slot: *slot, operation: *operation, operands })
}

/// Returns the lines with their comments. Comments at the end of consecutive lines are aligned. If the comments of
/// consecutive lines are in one column, the comments keep this column.
fn with_comments(lines: &[LaidOut], text: &str) -> Vec<String> {
    let mut out = Vec::with_capacity(lines.len());
    let mut from = 0;
    while from < lines.len() {
        let trails = |line: &&LaidOut| line.comment.is_some() && !line.code.is_empty();
        let run = lines[from..].iter().take_while(trails).count();
        if run == 0 {
            out.push(alone(&lines[from], lines[from + 1..].first(), text));
            from += 1;
            continue;
        }
        let run = &lines[from..from + run];
        let widest = run.iter().map(|line| line.code.chars().count()).max().unwrap_or(0);
        let common = run.iter().all(|line| line.column == run[0].column) && run[0].column > widest;
        let column = if common { run[0].column } else { widest + 2 };
        for line in run {
            let space = " ".repeat(column.saturating_sub(line.code.chars().count()));
            let comment = line.comment.map_or("", |comment| comment.text(text).trim_end());
            out.push(format!("{}{space}{comment}", line.code));
        }
        from += run.len();
    }
    out
}

/// Returns a line that has only code or only a comment. A comment that starts in the first column stays in that column.
/// Any other comment is indented like the next line.
fn alone(line: &LaidOut, next: Option<&LaidOut>, text: &str) -> String {
    let Some(comment) = line.comment else { return line.code.clone() };
    let code = next.map_or("", |next| next.code.as_str());
    let indent = code.len() - code.trim_start().len();
    let indent = if line.column == 0 {
        0
    } else if code.is_empty() {
        line.column
    } else {
        indent
    };
    format!("{}{}", " ".repeat(indent), comment.text(text).trim_end())
}
