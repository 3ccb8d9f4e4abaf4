//! Messages about a source: assembler errors and warnings, findings of the rules, and how the machine was chosen.

use reconverge_isa::lint::Severity;
use reconverge_isa::source::{Level, closest, proposed};
use reconverge_isa::{Diagnostic, Span};

use crate::analysis::Analysis;
use crate::choice::ChosenBy;
use crate::lexemes::LexedLine;

/// Changes that are tried for one question, at most. Each assembles the text.
const MOST_TRIES: usize = 16;

/// Severity of a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MarkerLevel {
    /// The text is invalid, or a program breaks a rule and traps.
    Error,
    /// The text probably does not have the intended meaning, or its behaviour is undefined.
    Warning,
    /// The text is valid but probably not intended.
    Note,
    /// A remark about the analysis itself.
    Hint,
}

/// A position in the source or in a file that it includes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FilePlace {
    /// Path of the file relative to the folder of the source; `None` for the source itself.
    pub file: Option<String>,
    /// The span in the file.
    pub span: Span,
}

/// A message about a part of the source.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Marker {
    /// The part.
    pub span: Span,
    /// Severity of the message.
    pub level: MarkerLevel,
    /// Name of the violated rule, for findings.
    pub rule: Option<&'static str>,
    /// The message with its advice.
    pub message: String,
    /// Other positions, each with a message.
    pub related: Vec<(FilePlace, String)>,
    /// The text that the advice suggests.
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
    /// The new text.
    pub text: String,
}

impl Analysis {
    /// Returns the messages about the source, in text order.
    pub fn markers(&self) -> Vec<Marker> {
        let mut found = self.assembler_markers();
        found.extend(self.found_by_rules());
        found.sort_by_key(|marker| marker.span.start);
        found.dedup();
        found
    }

    /// Returns the messages except for the findings of the rules.
    fn assembler_markers(&self) -> Vec<Marker> {
        let mut found: Vec<Marker> = Vec::new();
        found.extend(self.expansion_errors.iter().map(|error| self.marker(error, None)));
        let warnings = self.assembled().map_or(&[][..], |assembled| &assembled.warnings);
        for diagnostic in self.plain_errors().iter().chain(warnings) {
            let plain = diagnostic.span.start;
            let placed = match &self.expanded {
                Some(expanded) => expanded.in_source(diagnostic.clone()),
                None => diagnostic.clone(),
            };
            found.push(self.marker(&placed, Some(plain)));
        }
        found.extend(self.chosen_machine());
        found.sort_by_key(|marker| marker.span.start);
        found.dedup();
        found
    }

    /// Returns the changes that remove the messages within a part of the text. Each change was tried: the changed
    /// source does not have the message.
    pub fn remedies(&self, part: Span) -> Vec<Remedy> {
        let touches = |marker: &Marker| marker.span.start <= part.end && part.start <= marker.span.end;
        let before = self.assembler_markers();
        let (mut found, mut tries) = (Vec::new(), 0);
        for marker in before.iter().filter(|marker| touches(marker)) {
            for (span, text) in self.replacements(marker) {
                tries += 1;
                if tries > MOST_TRIES {
                    return found;
                }
                if self.mends(marker, &before, span, &text) {
                    let old = &self.text()[span.start..span.end];
                    let title = match old.is_empty() {
                        true => format!("Insert `{}`", text.trim()),
                        false => format!("Replace `{old}` by `{text}`"),
                    };
                    found.push(Remedy { title, marker: marker.clone(), span, text });
                    break;
                }
            }
        }
        found
    }

    /// Returns the replacements for a message's proposal: for its whole span, and for each similar word in the span.
    fn replacements(&self, marker: &Marker) -> Vec<(Span, String)> {
        let Some(proposal) = &marker.proposal else { return Vec::new() };
        if marker.level == MarkerLevel::Hint {
            return vec![(Span::default(), proposal.clone())];
        }
        let span = marker.span;
        let Some(old) = self.text().get(span.start..span.end) else { return Vec::new() };
        let is_word = |c: char| c.is_ascii_alphanumeric() || c == '_' || c == '$';
        let mut found = Vec::new();
        let words = old.split(|c| !is_word(c)).filter(|word| !word.is_empty());
        for word in words.filter(|word| closest(word, [proposal.as_str()]).is_some()) {
            let start = span.start + (word.as_ptr() as usize - old.as_ptr() as usize);
            found.push((Span::new(start, start + word.len()), proposal.clone()));
        }
        found.push((span, proposal.clone()));
        found
    }

    /// Whether a change removes a message without adding one of the same severity.
    fn mends(&self, marker: &Marker, before: &[Marker], span: Span, text: &str) -> bool {
        let changed = format!("{}{text}{}", &self.text()[..span.start], &self.text()[span.end..]);
        let after = self.again(&changed).assembler_markers();
        let count = |all: &[Marker], level| all.iter().filter(|other| other.level == level).count();
        let gone = !after
            .iter()
            .any(|other| other.message == marker.message && other.span.start == marker.span.start);
        gone && count(&after, marker.level) < count(before, marker.level)
            && (marker.level == MarkerLevel::Error
                || count(&after, MarkerLevel::Error) <= count(before, MarkerLevel::Error))
    }

    /// Returns the marker of an assembler message. A message about an included file is placed on the line that
    /// includes the file. `plain` is the position in the text that the assembler reads.
    fn marker(&self, diagnostic: &Diagnostic, plain: Option<usize>) -> Marker {
        let mut message = diagnostic.message.clone();
        if let Some(help) = &diagnostic.help {
            message += &format!("\n{help}");
        }
        let level = match diagnostic.level {
            Level::Error => MarkerLevel::Error,
            Level::Warning => MarkerLevel::Warning,
        };
        let mut related = Vec::new();
        let mut span = diagnostic.span;
        if let Some((span, what)) = diagnostic.related.as_deref() {
            related.push((FilePlace { file: None, span: *span }, (*what).to_owned()));
        }
        if let Some(file) = &diagnostic.file {
            related.push((FilePlace { file: Some(file.name.clone()), span }, diagnostic.message.clone()));
            span = match plain {
                Some(plain) => self.statement_at(self.in_source(plain)),
                None => self.include_of(&file.name),
            };
        }
        let proposal = diagnostic.help.as_deref().and_then(proposed).filter(|_| diagnostic.file.is_none());
        Marker {
            span: self.shown(span),
            level,
            rule: None,
            message,
            related,
            proposal: proposal.map(str::to_owned),
        }
    }

    /// Returns a span inside the text. It has at least one character if its line has one.
    fn shown(&self, span: Span) -> Span {
        let text = self.text();
        let mut start = span.start.min(text.len());
        while !text.is_char_boundary(start) {
            start -= 1;
        }
        let mut end = span.end.clamp(start, text.len());
        while !text.is_char_boundary(end) {
            end += 1;
        }
        if start < end {
            return Span::new(start, end);
        }
        let next = text[start..].chars().next().filter(|next| !matches!(next, '\n' | '\r'));
        Span::new(start, start + next.map_or(0, char::len_utf8))
    }

    /// Returns the span of the statement on the line at a byte.
    pub(crate) fn statement_at(&self, offset: usize) -> Span {
        let line = self.line_at(offset);
        match (line.statement(self.text()), line.span) {
            ([first, .., last], _) => Span::new(first.span.start, last.span.end),
            ([only], _) => only.span,
            ([], span) => span,
        }
    }

    /// Returns the line that includes a file. If other files include it, returns the first `.include`.
    fn include_of(&self, name: &str) -> Span {
        let own = &self.files[0];
        let includes = own.lines.iter().filter(|line| line.directive(&own.text) == Some(".include"));
        let mut includes = includes.map(|line| line.span);
        let named = includes.clone().find(|span| own.text[span.start..span.end].contains(name));
        named.or_else(|| includes.next()).unwrap_or_default()
    }

    fn found_by_rules(&self) -> Vec<Marker> {
        let marker = |(program, finding): &(usize, reconverge_isa::lint::Finding)| {
            let own = self
                .instructions()
                .iter()
                .filter(|found| found.program == *program && found.address <= finding.pc);
            let at = own.max_by_key(|found| found.address).map_or(0, |found| found.at);
            let rule = finding.rule;
            let fix = if rule.fix.is_empty() { String::new() } else { format!("\nfix: {}", rule.fix) };
            Marker {
                span: self.shown(self.statement_at(at)),
                level: match rule.severity {
                    Severity::Error => MarkerLevel::Error,
                    Severity::Warning => MarkerLevel::Warning,
                    Severity::Note => MarkerLevel::Note,
                },
                rule: Some(rule.name),
                message: format!("{}\nrule: {} ({}){fix}", finding.message, rule.demands, rule.source),
                related: Vec::new(),
                proposal: None,
            }
        };
        self.findings().iter().map(marker).collect()
    }

    /// Returns the hint about the machine, if neither the source nor the settings state it.
    fn chosen_machine(&self) -> Option<Marker> {
        let isa = self.isa();
        let own = &self.files[0];
        let is_code =
            |line: &LexedLine| !line.statement(&own.text).is_empty() && line.directive(&own.text).is_none();
        let has_code = own.lines.iter().any(is_code);
        (self.chosen_by() == ChosenBy::Fewest && has_code).then(|| Marker {
            span: self.shown(Span::default()),
            level: MarkerLevel::Hint,
            rule: None,
            message: format!(
                "nothing states the machine: the assembler of {isa} finds the fewest errors\nwrite `.isa {isa}` in the first line"
            ),
            related: Vec::new(),
            proposal: Some(format!(".isa {isa}\n")),
        })
    }
}
