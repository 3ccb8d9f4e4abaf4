//! The constructs of a source text that do not depend on the machine: named constants, expressions, included files,
//! conditions, repeated lines and macros.
//!
//! [`expand`] resolves these constructs. The function returns a plain text for the machine's assembler and records the
//! origin of each part of the plain text. [`Expanded::in_source`] uses the origins to turn a message about the plain
//! text into a message about the source.
//!
//! ```
//! use reconverge_isa::expand::{Given, expand};
//!
//! let source = ".equ N, 4\n.macro twice op\n\\op R0, N*2\n\\op R1, N\n.endm\ntwice ADD\n";
//! let expanded = expand(source, &Given::default())?.expect("the text has a macro");
//! assert_eq!(expanded.text, "ADD R0, 8\nADD R1, 4\n");
//! # Ok::<(), Vec<reconverge_isa::Diagnostic>>(())
//! ```

mod expression;
mod line;
#[cfg(test)]
mod tests;

use std::collections::HashMap;
use std::sync::Arc;

pub use expression::Value;
use expression::{Reach, Wrong};
use line::{Part, Shown};

use crate::limits::EXPANSION;
use crate::source::{Diagnostic, DirectiveRow, SourceFile, Span, lines, suggest, without_mark, word_len};

/// A file that a source includes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Included {
    /// Path of the file, relative to the folder of the source. [`included_by`] returns such paths.
    pub name: String,
    /// Text of the file, or the reason why the file cannot be read.
    pub text: Result<String, String>,
}

/// Included files and constants for the expansion of a source.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Given {
    /// The files that the source includes, directly or through other included files.
    pub files: Vec<Included>,
    /// Definitions of constants. `NAME` defines the value 1, and `NAME=EXPRESSION` defines the value of the expression.
    pub defines: Vec<String>,
}

/// The directives, with their operands and descriptions.
#[rustfmt::skip]
const DIRECTIVES: [(Directive, DirectiveRow); 13] = [
    (Directive::Equ,       DirectiveRow::new(".equ", "NAME, EXPRESSION", "the following lines use the value under this name")),
    (Directive::Alias,     DirectiveRow::new(".alias", "NAME, TEXT", "the following lines use the text under this name")),
    (Directive::Include,   DirectiveRow::new(".include", "\"FILE\"", "the lines of a file")),
    (Directive::Macro,     DirectiveRow::new(".macro", "NAME PARAMETER, PARAMETER=TEXT", "begins a macro")),
    (Directive::EndMacro,  DirectiveRow::new(".endm", "", "ends a macro")),
    (Directive::Repeat,    DirectiveRow::new(".rept", "COUNT, NAME", "repeats the lines; `\\NAME` counts from 0")),
    (Directive::EndRepeat, DirectiveRow::new(".endr", "", "ends repeated lines")),
    (Directive::If,        DirectiveRow::new(".if", "EXPRESSION", "the following lines if the value is not 0")),
    (Directive::IfDefined, DirectiveRow::new(".ifdef", "NAME", "the following lines if the name is defined")),
    (Directive::IfDefined, DirectiveRow::new(".ifndef", "NAME", "the following lines if the name is not defined")),
    (Directive::Else,      DirectiveRow::new(".elif", "EXPRESSION", "the following lines if no earlier branch was taken and the value is not 0")),
    (Directive::Else,      DirectiveRow::new(".else", "", "the following lines if no earlier branch was taken")),
    (Directive::EndIf,     DirectiveRow::new(".endif", "", "ends a condition")),
];

/// Returns the directives that the source texts of all machines have.
pub fn directives() -> impl Iterator<Item = DirectiveRow> {
    DIRECTIVES.into_iter().map(|(_, row)| row)
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Directive {
    Equ,
    Alias,
    Include,
    Macro,
    EndMacro,
    Repeat,
    EndRepeat,
    If,
    IfDefined,
    Else,
    EndIf,
}

/// Returns the directive at the start of a line, the name of the directive, and the text after the name.
fn directive(line: &str) -> Option<(Directive, &str, &str)> {
    let line = line.trim_start();
    if !line.starts_with('.') {
        return None;
    }
    let (name, rest) = line.split_at(1 + word_len(&line[1..]));
    let ends = rest.chars().next().is_none_or(|next| next.is_whitespace() || next == '"' || next == '(');
    let (found, _) = DIRECTIVES.iter().find(|(_, row)| ends && row.name == name)?;
    Some((*found, name, rest))
}

/// Returns whether a text contains anything that must be expanded. For a text without constructs (a listing, for
/// example), the expansion costs only this search.
fn has_any(source: &str) -> bool {
    source.contains("\\(") || without_mark(source).split('\n').any(|line| directive(line).is_some())
}

/// Returns the paths of the files that `text` includes. `of` is the path of the file that contains `text`. If `text` is
/// the source, `of` is empty. All paths, including `of`, are relative to the folder of the source.
pub fn included_by(text: &str, of: &str) -> Vec<String> {
    let name = |(_, line)| match directive(line) {
        Some((Directive::Include, _, rest)) => Some(beside(of, quoted(rest)?)),
        _ => None,
    };
    lines(text).filter_map(name).collect()
}

/// Returns the path of a file that the file `of` includes. `name` is the name of the included file in the directive. If
/// `name` is not absolute, `name` is relative to the folder of `of`.
pub fn beside(of: &str, name: &str) -> String {
    match of.rsplit_once(['/', '\\']) {
        Some((folder, _)) if !name.starts_with('/') => format!("{folder}/{name}"),
        _ => name.to_owned(),
    }
}

/// Returns the text between the quotation marks, if the whole of `text` is in quotation marks. Otherwise, returns
/// `None`.
fn quoted(text: &str) -> Option<&str> {
    let inside = text.trim().strip_prefix('"')?.strip_suffix('"')?;
    (!inside.is_empty() && !inside.contains('"')).then_some(inside)
}

/// A source text with all directives and expressions resolved.
#[derive(Clone, Debug)]
pub struct Expanded {
    /// The plain text.
    pub text: String,
    /// Origins of the parts of the text, by ascending start.
    pieces: Vec<Piece>,
    contexts: Vec<Context>,
    files: Vec<Arc<SourceFile>>,
    constants: Vec<ConstantAt>,
}

/// A constant that `.equ` defines.
#[derive(Clone, Debug)]
pub struct ConstantAt {
    /// Name of the constant.
    pub name: String,
    /// Value of the constant.
    pub value: Value,
    /// Span of the directive.
    pub span: Span,
    /// The included file that contains the directive. `None` if the directive is in the source.
    pub file: Option<Arc<SourceFile>>,
}

#[derive(Clone, Copy, Debug)]
struct Piece {
    start: usize,
    context: usize,
    part: Part,
}

/// The origin of lines. The origin is the source, an included file, or one use of a macro or repetition.
#[derive(Clone, Debug)]
struct Context {
    /// Description of the context, such as `in the macro m,`. In a message, a line number follows the description. The
    /// number is the line that includes the file or uses the macro or repetition. The description is empty for the
    /// source.
    what: String,
    /// Index of the file that contains the context's lines. The source has index 0.
    file: usize,
    /// The enclosing context, and a part of the enclosing context's file. This part includes the file, or uses the
    /// macro or repetition, to which this context belongs.
    parent: Option<(usize, Part)>,
}

/// Resolves constants, expressions, included files, conditions, repetitions and macros of a source. Returns `None` for
/// a source without constructs.
///
/// # Errors
/// If constructs contain mistakes, returns all mistakes. Each mistake has a position in the source or in an included
/// file.
pub fn expand(source: &str, given: &Given) -> Result<Option<Expanded>, Vec<Diagnostic>> {
    if given.defines.is_empty() && !has_any(source) {
        return Ok(None);
    }
    match expand_partly(source, given) {
        (expanded, errors) if errors.is_empty() => Ok(Some(expanded)),
        (_, errors) => Err(errors),
    }
}

/// Resolves the same constructs as [`expand`], and continues after mistakes. The returned text omits the lines with
/// mistakes. The returned messages describe the mistakes.
pub fn expand_partly(source: &str, given: &Given) -> (Expanded, Vec<Diagnostic>) {
    let own = Arc::new(SourceFile { name: String::new(), text: source.to_owned() });
    let mut expander = Expander {
        given,
        out: Expanded {
            text: String::new(),
            pieces: Vec::new(),
            contexts: vec![Context { what: String::new(), file: 0, parent: None }],
            files: vec![own],
            constants: Vec::new(),
        },
        constants: HashMap::new(),
        aliases: HashMap::new(),
        macros: HashMap::new(),
        used: 0,
        calls: 0,
        full: false,
        errors: Vec::new(),
    };
    expander.defines();
    let own: Vec<Line> = whole(source);
    expander.block(&own, 0);
    (expander.out, expander.errors)
}

impl Expanded {
    /// Turns a message about the plain text into a message about the source.
    pub fn in_source(&self, diagnostic: Diagnostic) -> Diagnostic {
        let (context, span) = self.origin(diagnostic.span);
        let diagnostic = Diagnostic { span, ..diagnostic };
        let related = diagnostic.related.as_deref().map(|&(span, what)| {
            let (context, span) = self.origin(span);
            let text = &self.files[self.contexts[context].file].text;
            format!("{what} is in line {}", span.line_column(text).0)
        });
        let placed = self.placed(diagnostic, context);
        match related {
            Some(related) => Diagnostic { related: None, ..placed }.and_help(&related),
            None => placed,
        }
    }

    /// Converts an offset in the plain text to an offset in the source. If the offset is in a macro or an included
    /// file, the result is the offset of the source line that uses the macro or includes the file.
    pub fn offset_in_source(&self, offset: usize) -> usize {
        let (mut context, span) = self.origin(Span::new(offset, offset));
        let mut at = span.start;
        while let Some((parent, part)) = self.contexts[context].parent {
            (context, at) = (parent, part.at);
        }
        at
    }

    /// Returns the constants that `.equ` defines, in the order of their lines.
    pub fn constants(&self) -> &[ConstantAt] {
        &self.constants
    }

    /// Returns each part of the source that the expansion replaced, with the replacement. The parts are in the order of
    /// the plain text. Parts of included files and macros are not returned.
    pub fn replaced(&self) -> impl Iterator<Item = (Span, &str)> {
        let ends = self.pieces.iter().skip(1).map(|piece| piece.start).chain([self.text.len()]);
        let own = |piece: &Piece| piece.context == 0 && !piece.part.verbatim;
        self.pieces.iter().zip(ends).filter(move |(piece, _)| own(piece)).map(|(piece, end)| {
            (Span::new(piece.part.at, piece.part.at + piece.part.len), &self.text[piece.start..end])
        })
    }

    /// Returns where a part of the plain text comes from: the context, and the span in the context's file.
    fn origin(&self, span: Span) -> (usize, Span) {
        let index = self.pieces.partition_point(|piece| piece.start <= span.start);
        let Some(piece) = index.checked_sub(1).map(|index| self.pieces[index]) else {
            return (0, Span::default());
        };
        let part = piece.part;
        if !part.verbatim {
            return (piece.context, Span::new(part.at, part.at + part.len));
        }
        let inside = |place: usize| part.at + place.saturating_sub(piece.start).min(part.len);
        let end = self.pieces.partition_point(|piece| piece.start < span.end);
        let last = self.pieces[end.max(index) - 1];
        let end = match last.part.verbatim && last.context == piece.context {
            true => last.part.at + (span.end - last.start.min(span.end)).min(last.part.len),
            false if last.context == piece.context => last.part.at + last.part.len,
            false => part.at + part.len,
        };
        let start = inside(span.start);
        (piece.context, Span::new(start, end.max(start)))
    }

    /// Adds to a message the file that contains the message's line. Also adds the uses of macros and included files
    /// that lead to the line.
    fn placed(&self, mut diagnostic: Diagnostic, context: usize) -> Diagnostic {
        let file = self.contexts[context].file;
        if file > 0 {
            diagnostic.file = Some(self.files[file].clone());
        }
        let mut context = &self.contexts[context];
        let mut shown = 0;
        while let Some((parent, part)) = context.parent {
            let from = &self.contexts[parent];
            if !context.what.is_empty() && shown < 3 {
                let (line, _) = Span::new(part.at, part.at).line_column(&self.files[from.file].text);
                let file = match from.file {
                    0 => String::new(),
                    file => format!(" of {}", self.files[file].name),
                };
                diagnostic = diagnostic.and_help(&format!("{} line {line}{file}", context.what));
                shown += 1;
            }
            context = from;
        }
        diagnostic
    }
}

/// A line of a file, or of a macro with its parameters filled in.
#[derive(Clone, Debug)]
struct Line {
    shown: Shown,
    /// Comment at the end of the line.
    comment: Option<Shown>,
}

/// Splits the text of a file into lines.
fn whole(text: &str) -> Vec<Line> {
    let comment = |end: usize| {
        let comment = text[end..].split('\n').next().unwrap_or_default().trim_end_matches('\r');
        (!comment.is_empty()).then(|| Shown::verbatim(comment, end))
    };
    let line = |(at, line): (usize, &str)| Line {
        shown: Shown::verbatim(line, at),
        comment: comment(at + line.len()),
    };
    let mut all: Vec<Line> = lines(text).map(line).collect();
    // If the text ends with `\n`, no empty line follows this `\n`.
    if text.ends_with('\n') {
        all.pop();
    }
    all
}

/// A macro.
#[derive(Clone, Debug)]
struct Macro {
    /// Names of the parameters. A parameter can have a default text.
    parameters: Vec<(String, Option<String>)>,
    lines: Vec<Line>,
    file: usize,
}

struct Expander<'a> {
    given: &'a Given,
    out: Expanded,
    constants: HashMap<String, Value>,
    aliases: HashMap<String, String>,
    macros: HashMap<String, Arc<Macro>>,
    /// Number of bytes and lines that have been produced so far. [`EXPANSION`] limits this number.
    used: u64,
    /// Number of macro uses so far. In the next use, `\@` has this value.
    calls: usize,
    /// Whether the limit has been reached.
    full: bool,
    errors: Vec<Diagnostic>,
}

/// Maximum depth of nested macros, repetitions and files.
const DEPTH: usize = 64;

/// Number of errors after which no more lines are read.
const MOST_ERRORS: usize = 20;

/// State of a branch (`.if`, `.elif` or `.else`) of a condition.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Branch {
    /// The assembler reads the lines of this branch.
    Taken,
    /// The assembler skips the lines of this branch. The assembler may read the lines of a later branch.
    Not,
    /// The assembler skips this branch and all later branches of the condition. Either the assembler has read an
    /// earlier branch, or the assembler skips the lines around the condition.
    Done,
}

impl Expander<'_> {
    fn error(&mut self, context: usize, part: Part, message: impl Into<String>, help: &str) {
        let mut diagnostic = Diagnostic::error(Span::new(part.at, part.at + part.len), message);
        if !help.is_empty() {
            diagnostic = diagnostic.help(help);
        }
        self.errors.push(self.out.placed(diagnostic, context));
    }

    /// Returns the number of bytes that the limit still allows.
    fn left(&self) -> usize {
        usize::try_from(EXPANSION.get().saturating_sub(self.used)).unwrap_or(usize::MAX)
    }

    /// Adds `bytes` bytes and one line to the total. Returns whether the total is within the limit. If this call is the
    /// first that exceeds the limit, the function reports an error. After an error, no more lines are read.
    fn count(&mut self, bytes: usize, context: usize, part: Part) -> bool {
        self.used += bytes as u64 + 1;
        if self.used > EXPANSION.get() && !self.full {
            self.full = true;
            self.error(context, part, EXPANSION.exceeded().to_string(), "");
        }
        !self.full
    }

    fn defines(&mut self) {
        for define in &self.given.defines {
            let (name, value) = define.split_once('=').unwrap_or((define, "1"));
            let read = match is_name(name) {
                true => expression::read(value, Reach::Whole, &|name| self.constants.get(name).copied()),
                false => Err(Wrong { at: 0, end: 0, why: "`NAME` or `NAME=EXPRESSION` fits".to_owned() }),
            };
            match read {
                Ok(read) => drop(self.constants.insert(name.to_owned(), read.value)),
                Err(wrong) => {
                    let message = format!("`-D {define}` is not a constant: {}", wrong.why);
                    self.errors.push(Diagnostic::error(Span::default(), message));
                }
            }
        }
    }

    /// Reads the lines of one file, one use of a macro or one repetition.
    fn block(&mut self, lines: &[Line], context: usize) {
        let mut at = 0;
        let mut branches: Vec<(Branch, bool, Part)> = Vec::new();
        while let Some(line) = lines.get(at) {
            at += 1;
            if self.errors.len() >= MOST_ERRORS || self.full {
                return;
            }
            let text = line.shown.text.as_str();
            let part = line.shown.all();
            let taken = branches.last().is_none_or(|(branch, ..)| *branch == Branch::Taken);
            let Some((found, name, rest)) = directive(text) else {
                if taken {
                    self.plain(line, context, part);
                }
                continue;
            };
            if !self.count(0, context, part) {
                return;
            }
            let start = text.len() - rest.len();
            match found {
                Directive::If | Directive::IfDefined => {
                    let branch = match taken {
                        false => Branch::Done,
                        true if self.condition(name, line, start, context) => Branch::Taken,
                        true => Branch::Not,
                    };
                    branches.push((branch, false, part));
                }
                Directive::Else => {
                    let outer =
                        branches.len().checked_sub(2).is_none_or(|outer| branches[outer].0 == Branch::Taken);
                    let Some((branch, ended, _)) = branches.last().copied() else {
                        self.error(context, part, format!("`{name}` without `.if`"), "");
                        continue;
                    };
                    if ended {
                        self.error(context, part, format!("`{name}` after `.else`"), "");
                    }
                    let next = match branch {
                        Branch::Taken | Branch::Done => Branch::Done,
                        Branch::Not if !outer => Branch::Done,
                        Branch::Not if name == ".else" || self.condition(".if", line, start, context) => {
                            Branch::Taken
                        }
                        Branch::Not => Branch::Not,
                    };
                    if let Some(last) = branches.last_mut() {
                        (last.0, last.1) = (next, name == ".else");
                    }
                }
                Directive::EndIf => {
                    if branches.pop().is_none() {
                        self.error(context, part, "`.endif` without `.if`", "");
                    }
                }
                // The lines of a macro or repetition are collected even if the condition skips the macro or repetition.
                // The reason is that an `.endif` inside the macro or repetition does not end the condition.
                Directive::Macro | Directive::Repeat => {
                    let Some(end) = self.end_of(lines, at, found, context, part) else { return };
                    let body = &lines[at..end];
                    at = end + 1;
                    match found {
                        _ if !taken => {}
                        Directive::Macro => self.define_macro(line, start, body, context),
                        _ => self.repeat(line, start, body, context),
                    }
                }
                _ if !taken => {}
                Directive::Equ => self.equ(line, start, context),
                Directive::Alias => self.alias(line, start, context),
                Directive::Include => self.include(line, start, context),
                Directive::EndMacro => self.error(context, part, "`.endm` without `.macro`", ""),
                Directive::EndRepeat => self.error(context, part, "`.endr` without `.rept`", ""),
            }
        }
        for (_, _, part) in branches {
            self.error(context, part, "this condition has no `.endif`", "");
        }
    }

    /// Returns the index of the line that ends a macro or a repetition. The macro or repetition may contain other
    /// macros and repetitions.
    fn end_of(
        &mut self,
        lines: &[Line],
        from: usize,
        what: Directive,
        context: usize,
        part: Part,
    ) -> Option<usize> {
        let mut open = vec![what];
        for (at, line) in lines.iter().enumerate().skip(from) {
            let ends = match directive(&line.shown.text) {
                Some((inner @ (Directive::Macro | Directive::Repeat), ..)) => {
                    open.push(inner);
                    continue;
                }
                Some((Directive::EndMacro, ..)) => Directive::Macro,
                Some((Directive::EndRepeat, ..)) => Directive::Repeat,
                _ => continue,
            };
            if open.pop() != Some(ends) {
                break;
            }
            if open.is_empty() {
                return Some(at);
            }
        }
        let (begin, end) = match what {
            Directive::Macro => (".macro", ".endm"),
            _ => (".rept", ".endr"),
        };
        self.error(context, part, format!("this `{begin}` has no `{end}`"), "");
        None
    }

    /// Returns the value of the expression from byte `start` to the end of a line.
    fn value(&mut self, line: &Line, start: usize, context: usize) -> Option<Value> {
        let text = &line.shown.text[start..];
        match expression::read(text, Reach::Whole, &|name| self.constants.get(name).copied()) {
            Ok(read) => Some(read.value),
            Err(wrong) => {
                self.wrong(wrong, line, start, context);
                None
            }
        }
    }

    fn wrong(&mut self, wrong: Wrong, line: &Line, start: usize, context: usize) {
        let part = line.shown.part(start + wrong.at, start + wrong.end);
        let help = match wrong.why.split('`').nth(1).filter(|_| wrong.why.starts_with("unknown constant")) {
            Some(name) => match self.constants.is_empty() {
                true => "state it before this line: `.equ NAME, VALUE`".to_owned(),
                false => {
                    let mut names: Vec<&str> = self.constants.keys().map(String::as_str).collect();
                    names.sort_unstable();
                    suggest(name, names)
                }
            },
            None => String::new(),
        };
        self.error(context, part, wrong.why, &help);
    }

    fn condition(&mut self, name: &str, line: &Line, start: usize, context: usize) -> bool {
        if name == ".if" {
            return self.value(line, start, context).is_some_and(Value::is_true);
        }
        let asked = line.shown.text[start..].trim();
        if !is_name(asked) {
            self.error(context, line.shown.all(), format!("`{name}` takes the name of a constant"), "");
        }
        let known = self.constants.contains_key(asked) || self.aliases.contains_key(asked);
        known == (name == ".ifdef")
    }

    /// Returns the name at byte `start` of a line. Also returns the position after the name and the optional comma.
    fn name<'l>(
        &mut self,
        line: &'l Line,
        start: usize,
        context: usize,
        usage: &str,
    ) -> Option<(&'l str, usize)> {
        let text = &line.shown.text[start..];
        let trimmed = text.trim_start();
        let len = word_len(trimmed);
        let name = &trimmed[..len];
        let rest = &trimmed[len..];
        if !is_name(name) || rest.starts_with(|c: char| !c.is_whitespace() && c != ',') {
            self.error(context, line.shown.all(), "a name is missing here", usage);
            return None;
        }
        let behind = rest.trim_start();
        let behind = behind.strip_prefix(',').unwrap_or(behind);
        Some((name, line.shown.text.len() - behind.len()))
    }

    /// Executes `.equ NAME, EXPRESSION`.
    fn equ(&mut self, line: &Line, start: usize, context: usize) {
        let Some((name, behind)) = self.name(line, start, context, "expected `.equ NAME, EXPRESSION`") else {
            return;
        };
        let Some(value) = self.value(line, behind, context) else { return };
        let (part, file) = (line.shown.all(), self.out.contexts[context].file);
        let file = (file > 0).then(|| self.out.files[file].clone());
        let span = Span::new(part.at, part.at + part.len);
        self.out.constants.push(ConstantAt { name: name.to_owned(), value, span, file });
        let before = self.constants.insert(name.to_owned(), value);
        if before.is_some_and(|before| before != value) || self.aliases.contains_key(name) {
            self.error(context, line.shown.all(), format!("`{name}` already has another value"), "");
        }
    }

    /// Executes `.alias NAME, TEXT`.
    fn alias(&mut self, line: &Line, start: usize, context: usize) {
        let usage = "expected `.alias NAME, TEXT`";
        let Some((name, behind)) = self.name(line, start, context, usage) else { return };
        let text = line.shown.text[behind..].trim();
        if text.is_empty() {
            self.error(context, line.shown.all(), "the text of the alias is missing", usage);
            return;
        }
        let known = |name: &str| self.constants.get(name).copied();
        let resolved = line::resolved(&Shown::verbatim(text, 0), &known, &self.aliases, self.left());
        let text = resolved.map_or_else(|_| text.to_owned(), |shown| shown.text);
        if !self.count(text.len(), context, line.shown.all()) {
            return;
        }
        let before = self.aliases.insert(name.to_owned(), text.clone());
        if before.is_some_and(|before| before != text) || self.constants.contains_key(name) {
            self.error(context, line.shown.all(), format!("`{name}` already has another meaning"), "");
        }
    }

    /// Executes `.include "FILE"`.
    fn include(&mut self, line: &Line, start: usize, context: usize) {
        let part = line.shown.all();
        let Some(name) = quoted(&line.shown.text[start..]) else {
            self.error(context, part, "the name of a file in quotation marks is missing here", "");
            return;
        };
        let own = self.out.contexts[context].file;
        let path = beside(&self.out.files[own].name, name);
        let text = match self.given.files.iter().find(|file| file.name == path).map(|file| &file.text) {
            Some(Ok(text)) => text,
            Some(Err(why)) => return self.error(context, part, format!("{path}: {why}"), ""),
            None => return self.error(context, part, format!("{path}: no such file"), ""),
        };
        let file = match self.out.files.iter().skip(1).position(|file| file.name == path) {
            Some(known) => known + 1,
            None => {
                self.out.files.push(Arc::new(SourceFile { name: path, text: text.clone() }));
                self.out.files.len() - 1
            }
        };
        if let Some(context) = self.enter("included in".to_owned(), file, context, part) {
            self.block(&whole(text), context);
        }
    }

    /// Adds a context within another context and returns the index of the new context. Returns `None` if the contexts
    /// are nested too deeply.
    fn enter(&mut self, what: String, file: usize, parent: usize, part: Part) -> Option<usize> {
        let mut depth = 0;
        let mut around = Some(parent);
        while let Some(context) = around {
            depth += 1;
            around = self.out.contexts[context].parent.map(|(parent, _)| parent);
        }
        if depth > DEPTH {
            let message = format!("expected at most {DEPTH} nested macros, repetitions and files");
            self.error(parent, part, message, "a macro or an included file uses itself again and again");
            self.full = true;
            return None;
        }
        self.out.contexts.push(Context { what, file, parent: Some((parent, part)) });
        Some(self.out.contexts.len() - 1)
    }

    /// Executes `.macro NAME [PARAMETER[=TEXT], …]`.
    fn define_macro(&mut self, line: &Line, start: usize, body: &[Line], context: usize) {
        let usage = "expected `.macro NAME PARAMETER, PARAMETER=TEXT`";
        let Some((name, behind)) = self.name(line, start, context, usage) else { return };
        let mut parameters: Vec<(String, Option<String>)> = Vec::new();
        for parameter in line::arguments(&line.shown.text[behind..]) {
            let (name, default) = match parameter.split_once('=') {
                Some((name, default)) => (name.trim(), Some(default.trim().to_owned())),
                None => (parameter, None),
            };
            if !is_name(name) || parameters.iter().any(|(known, _)| known == name) {
                self.error(
                    context,
                    line.shown.all(),
                    format!("`{parameter}` is not a parameter, or occurs twice"),
                    usage,
                );
                return;
            }
            parameters.push((name.to_owned(), default));
        }
        let file = self.out.contexts[context].file;
        let new = Arc::new(Macro { parameters, lines: body.to_vec(), file });
        if self.macros.insert(name.to_owned(), new).is_some() {
            self.error(context, line.shown.all(), format!("the macro `{name}` is defined twice"), "");
        }
    }

    /// Executes `.rept COUNT[, NAME]`.
    fn repeat(&mut self, line: &Line, start: usize, body: &[Line], context: usize) {
        let text = &line.shown.text[start..];
        let (count, name) = match text.rsplit_once(',') {
            Some((count, name)) => (count, Some(name.trim())),
            None => (text, None),
        };
        if name.is_some_and(|name| !is_name(name)) {
            let usage = "expected `.rept COUNT, NAME`: \\NAME is the number of the repetition, from 0 on";
            return self.error(context, line.shown.all(), "a name is missing after the comma", usage);
        }
        let count = match expression::read(count, Reach::Whole, &|name| self.constants.get(name).copied()) {
            Ok(read) => read.value,
            Err(wrong) => return self.wrong(wrong, line, start, context),
        };
        let Value::Int(count @ 0..) = count else {
            return self.error(
                context,
                line.shown.all(),
                format!("expected a count of at least 0, found {count}"),
                "",
            );
        };
        let part = line.shown.all();
        let file = self.out.contexts[context].file;
        let Some(inner) = self.enter("in lines that are repeated,".to_owned(), file, context, part) else {
            return;
        };
        for number in 0..count {
            if !self.count(0, context, part) || self.errors.len() >= MOST_ERRORS {
                return;
            }
            match name {
                Some(name) => {
                    let value = [(name.to_owned(), Shown::replaced(number.to_string(), part))];
                    let Some(lines) = self.filled(body, &value, context, part) else { return };
                    self.block(&lines, inner);
                }
                None => self.block(body, inner),
            }
        }
    }

    /// Replaces the parameters in lines. Returns `None` if the resulting lines exceed the limit.
    fn filled(
        &mut self,
        lines: &[Line],
        values: &[(String, Shown)],
        context: usize,
        part: Part,
    ) -> Option<Vec<Line>> {
        let mut all = Vec::with_capacity(lines.len());
        for line in lines {
            let shown = line::filled(&line.shown, values, self.left());
            if !self.count(shown.text.len(), context, part) {
                return None;
            }
            all.push(Line { shown, comment: None });
        }
        Some(all)
    }

    /// Expands a line without a directive. The line is a use of a macro or a text for the machine's assembler.
    fn plain(&mut self, Line { shown: line, comment }: &Line, context: usize, part: Part) {
        let label = line::label(&line.text);
        let rest = &line.text[label..];
        let start = line.text.len() - rest.trim_start().len();
        let name = &line.text[start..start + word_len(&line.text[start..])];
        if let Some(found) = self.macros.get(name).cloned()
            && line.text[start + name.len()..].chars().next().is_none_or(char::is_whitespace)
        {
            if label > 0 {
                self.write(&line.cut(0, label), None, context, part);
            }
            let arguments = start + name.len();
            return self.call(name, &found, line, arguments, context);
        }
        self.write(line, comment.as_ref(), context, part);
    }

    /// Expands a use of a macro.
    fn call(&mut self, name: &str, found: &Macro, line: &Shown, behind: usize, context: usize) {
        let given = line::argument_places(&line.text, behind);
        let part = line.all();
        if given.len() > found.parameters.len() {
            let message =
                format!("the macro `{name}` has {}, not {}", parameters(found.parameters.len()), given.len());
            return self.error(context, part, message, "");
        }
        let mut values = Vec::new();
        for (index, (parameter, default)) in found.parameters.iter().enumerate() {
            let given = given.get(index).filter(|(start, end)| start < end);
            let value = match (given, default) {
                (Some(&(start, end)), _) => {
                    Shown::replaced(line.text[start..end].to_owned(), line.part(start, end))
                }
                (None, Some(default)) => Shown::replaced(default.clone(), part),
                (None, None) => {
                    return self.error(
                        context,
                        part,
                        format!("`{parameter}` of the macro `{name}` is missing"),
                        "",
                    );
                }
            };
            values.push((parameter.clone(), value));
        }
        values.push(("@".to_owned(), Shown::replaced(self.calls.to_string(), part)));
        self.calls += 1;
        let parent = context;
        let Some(context) = self.enter(format!("in the macro `{name}`,"), found.file, parent, part) else {
            return;
        };
        let Some(lines) = self.filled(&found.lines, &values, parent, part) else { return };
        let unknown = lines.iter().find_map(|line| line::unknown_parameter(&line.shown));
        // A macro or repetition inside this macro has separate parameters. The assembler replaces the parameters of the
        // inner macro or repetition later.
        let inner = lines.iter().any(|line| {
            matches!(directive(&line.shown.text), Some((Directive::Macro | Directive::Repeat, ..)))
        });
        if let Some((name, part)) = unknown.filter(|_| !inner) {
            let mut names: Vec<&str> = found.parameters.iter().map(|(name, _)| name.as_str()).collect();
            names.sort_unstable();
            return self.error(
                context,
                part,
                format!("unknown parameter `\\{name}`"),
                &suggest(&name, names),
            );
        }
        self.block(&lines, context);
    }

    /// Resolves the constants and expressions in a line. Writes the resolved line and its comment.
    fn write(&mut self, line: &Shown, comment: Option<&Shown>, context: usize, part: Part) {
        let known = |name: &str| self.constants.get(name).copied();
        let resolved = match line::resolved(line, &known, &self.aliases, self.left()) {
            // The comment is kept, because a machine's assembler may read it. In sources of latte-assembler, comments
            // contain data that the program needs.
            Ok(resolved) => match comment {
                Some(comment) => resolved.followed_by(comment),
                None => resolved,
            },
            Err(wrong) => return self.wrong(wrong, &Line { shown: line.clone(), comment: None }, 0, context),
        };
        if !self.count(resolved.text.len(), context, part) {
            return;
        }
        let out = &mut self.out;
        let base = out.text.len();
        let pieces =
            resolved.parts.iter().map(|(start, part)| Piece { start: base + start, context, part: *part });
        out.pieces.extend(pieces);
        out.text.push_str(&resolved.text);
        // Messages about missing text point at the end of the line, so the end also has an origin.
        let end = resolved.part(resolved.text.len(), resolved.text.len());
        out.pieces.push(Piece { start: out.text.len(), context, part: end });
        out.text.push('\n');
    }
}

fn parameters(count: usize) -> String {
    match count {
        1 => "1 parameter".to_owned(),
        count => format!("{count} parameters"),
    }
}

/// Returns whether a text is a name: letters, digits and `_`, with no digit first.
fn is_name(text: &str) -> bool {
    !text.is_empty() && word_len(text) == text.len() && !text.starts_with(|c: char| c.is_ascii_digit())
}
