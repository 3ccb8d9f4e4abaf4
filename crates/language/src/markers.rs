//! Messages about a source: errors and warnings of the assembler, findings of the rules, and a hint. The hint states
//! how the analysis determined the machine.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::sync::PoisonError;

use reconverge_isa::lint::Severity;
use reconverge_isa::source::{Level, closest, proposed};
use reconverge_isa::{Diagnostic, Span};

use crate::analysis::Analysis;
use crate::choice::ChosenBy;
use crate::lexemes::LexedLine;
use crate::message::{FilePlace, Marker, MarkerLevel, Remedy, TextChange, changed};
use crate::names::NameSort;
use crate::passes::MANY;

/// Maximum number of errors that become messages. If a source has more errors, one more message shows how many are
/// omitted.
const MOST_SHOWN: usize = 1000;

/// Maximum number of messages for which one request searches remedies.
const MOST_REMEDIES: usize = 64;

/// Maximum number of times that one request for remedies assembles the source.
const MOST_TRIES: usize = 6;

/// Minimum number of errors in a foreign text ([`Analysis::is_foreign`]). A text with fewer errors is not foreign.
const FEW: usize = 4;

impl Analysis {
    /// Returns the messages about the source, in text order.
    pub fn markers(&self) -> Vec<Marker> {
        let mut found = self.assembler_markers().to_vec();
        found.extend(self.found_by_rules());
        found.sort_by_key(|marker| marker.span.start);
        found.dedup();
        found
    }

    /// Returns the messages except for the findings of the rules. These messages are computed once.
    fn assembler_markers(&self) -> &[Marker] {
        self.made_markers.get_or_init(|| self.make_markers())
    }

    fn make_markers(&self) -> Vec<Marker> {
        if self.is_foreign() {
            return self.chosen_machine().into_iter().collect();
        }
        let mut found: Vec<Marker> = Vec::new();
        found.extend(self.expansion_errors.iter().map(|error| self.marker(error, None)));
        let warnings = self.assembled().map_or(&[][..], |assembled| &assembled.warnings);
        let shown = |all: &[Diagnostic]| all.len().min(MOST_SHOWN);
        let errors = self.plain_errors();
        for diagnostic in errors[..shown(errors)].iter().chain(&warnings[..shown(warnings)]) {
            let plain = diagnostic.span.start;
            let placed = match &self.expanded {
                Some(expanded) => expanded.in_source(diagnostic.clone()),
                None => diagnostic.clone(),
            };
            found.push(self.marker(&placed, Some(plain)));
        }
        found.extend(self.chosen_machine());
        found.extend(self.left_out());
        found.sort_by_key(|marker| marker.span.start);
        found.dedup();
        found
    }

    /// Returns a message about errors that are not shown. The message is at the first error that is not shown.
    fn left_out(&self) -> Option<Marker> {
        let first = self.plain_errors().get(MOST_SHOWN)?;
        let count = self.plain_errors().len() - MOST_SHOWN;
        let at = self.in_source(first.span.start);
        Some(Marker {
            span: self.shown(Span::new(at, at)),
            level: MarkerLevel::Note,
            rule: None,
            message: format!("{count} more errors are not shown: a source has at most {MOST_SHOWN} messages"),
            related: Vec::new(),
            proposal: None,
        })
    }

    /// Returns whether the text is probably for none of the machines. In this case, nothing states a machine, and most
    /// lines have errors.
    fn is_foreign(&self) -> bool {
        let own = &self.files[0];
        let lines = own.lines.iter().filter(|line| !line.statement(&own.text).is_empty()).count();
        let errors = self.plain_errors().len();
        let many = errors * 2 > lines || self.assembled().is_none() && errors > 5 * MANY;
        self.chosen_by() == ChosenBy::Fewest && errors >= FEW && many && !self.names_machine()
    }

    /// Returns whether a line states a machine. The machine may be unknown.
    fn names_machine(&self) -> bool {
        let own = &self.files[0];
        own.lines.iter().any(|line| matches!(line.directive(&own.text), Some(".isa" | ".chip")))
    }

    /// Returns the changes that remove the messages in a part of the text. Examines only the first 64 messages of the
    /// part. To test a change, assembles the changed source. A returned change removes the message and does not add an
    /// error to the message's line.
    pub fn remedies(&self, part: Span) -> Vec<Remedy> {
        let all = self.assembler_markers();
        let touches = |marker: &Marker| marker.span.start <= part.end && part.start <= marker.span.end;
        let fits = |number: &usize| all[*number].proposal.is_some() && touches(&all[*number]);
        let asked: Vec<usize> = (0..all.len()).filter(fits).take(MOST_REMEDIES).collect();
        let mut kept = self.kept_remedies.lock().unwrap_or_else(PoisonError::into_inner);
        let new: Vec<usize> = asked.iter().copied().filter(|number| !kept.contains_key(number)).collect();
        let mut found = self.try_remedies(all, &new);
        kept.extend(new.iter().map(|number| (*number, found.remove(number))));
        asked.iter().filter_map(|number| kept.get(number).cloned().flatten()).collect()
    }

    /// Returns the remedies for the messages with these indices in `all`. Tests changes of several lines together, so
    /// that the assembler runs only a few times.
    fn try_remedies(&self, all: &[Marker], numbers: &[usize]) -> HashMap<usize, Remedy> {
        let mut found = HashMap::new();
        let mut open: BTreeMap<usize, Vec<TextChange>> = BTreeMap::new();
        for number in numbers {
            let mut replacements = self.replacements(&all[*number]);
            replacements.reverse();
            open.insert(*number, replacements);
        }
        for _ in 0..MOST_TRIES {
            let batch = self.next_batch(all, &mut open);
            if batch.is_empty() {
                break;
            }
            let changes: Vec<TextChange> = batch.iter().map(|(_, change)| change.clone()).collect();
            let after = self.again(&changed(self.text(), &changes));
            for (number, change) in batch {
                if !self.mends(&all[number], &after) {
                    continue;
                }
                open.remove(&number);
                found.insert(number, self.remedy(&all[number], change));
            }
        }
        found
    }

    /// Returns the next untested change of each message. Returns at most one change per line. A change that inserts a
    /// line is returned alone.
    fn next_batch(
        &self,
        all: &[Marker],
        open: &mut BTreeMap<usize, Vec<TextChange>>,
    ) -> Vec<(usize, TextChange)> {
        let (mut batch, mut lines) = (Vec::new(), HashSet::new());
        for (number, changes) in open.iter_mut() {
            let is_alone = all[*number].level == MarkerLevel::Hint;
            if is_alone && !batch.is_empty() || !lines.insert(self.lines().line(all[*number].span.start)) {
                continue;
            }
            batch.extend(changes.pop().map(|change| (*number, change)));
            if is_alone && !batch.is_empty() {
                break;
            }
        }
        batch
    }

    fn remedy(&self, marker: &Marker, change: TextChange) -> Remedy {
        let TextChange { span, text } = change;
        let old = &self.text()[span.start..span.end];
        let title = match old.is_empty() {
            true => format!("Insert `{}`", text.trim()),
            false => format!("Replace `{old}` by `{text}`"),
        };
        Remedy { title, marker: marker.clone(), span, text }
    }

    /// Returns changes that insert the text that a message proposes. A change replaces the whole span of the message,
    /// or a word of the span that is similar to the proposal.
    fn replacements(&self, marker: &Marker) -> Vec<TextChange> {
        let Some(proposal) = &marker.proposal else { return Vec::new() };
        if marker.level == MarkerLevel::Hint {
            return vec![TextChange { span: Span::default(), text: proposal.clone() }];
        }
        let span = marker.span;
        let Some(old) = self.text().get(span.start..span.end) else { return Vec::new() };
        let is_word = |c: char| c.is_ascii_alphanumeric() || c == '_' || c == '$';
        let mut found = Vec::new();
        let words = old.split(|c| !is_word(c)).filter(|word| !word.is_empty());
        for word in words.filter(|word| closest(word, [proposal.as_str()]).is_some()) {
            let start = span.start + (word.as_ptr() as usize - old.as_ptr() as usize);
            let span = Span::new(start, start + word.len());
            found.push(TextChange { span, text: proposal.clone() });
        }
        found.push(TextChange { span, text: proposal.clone() });
        found
    }

    /// Returns whether a change removes a message without additional errors. `after` is the analysis of the changed
    /// source. The message must be absent from `after`. The line of the message must not have more errors than before
    /// the change.
    fn mends(&self, marker: &Marker, after: &Analysis) -> bool {
        if marker.level == MarkerLevel::Hint {
            let has_hint = after.assembler_markers().iter().any(|other| other.level == MarkerLevel::Hint);
            return !has_hint && after.error_count() <= self.error_count();
        }
        let line = self.lines().line(marker.span.start);
        let of_line = |analysis: &Analysis| -> Vec<Marker> {
            let in_line = |other: &&Marker| analysis.lines().line(other.span.start) == line;
            analysis.assembler_markers().iter().filter(in_line).cloned().collect()
        };
        let (before, after) = (of_line(self), of_line(after));
        let errors = |all: &[Marker]| all.iter().filter(|other| other.level == MarkerLevel::Error).count();
        let same = |all: &[Marker]| {
            all.iter().filter(|other| other.level == marker.level && other.message == marker.message).count()
        };
        same(&after) < same(&before) && errors(&after) <= errors(&before)
    }

    /// Returns the marker for an assembler message. For a message about an included file, the marker is on the line
    /// that includes the file. `plain` is the message's offset in the text that the assembler reads.
    fn marker(&self, diagnostic: &Diagnostic, plain: Option<usize>) -> Marker {
        let mut message = diagnostic.message.clone();
        if let Some(file) = &diagnostic.file {
            message = format!("{}:{}: {message}", file.name, diagnostic.line_column("").0);
        }
        if let Some(help) = &diagnostic.help {
            message += &format!("\n{help}");
        }
        let missing = missing_label(&diagnostic.message);
        message += &missing.map(|name| self.other_program(name)).unwrap_or_default();
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
        // If the program has only one label, this label is not a useful proposal for a missing label.
        let is_meant =
            |help: &&str| diagnostic.file.is_none() && !(missing.is_some() && help.starts_with("expected `"));
        let proposal = diagnostic.help.as_deref().filter(is_meant).and_then(proposed);
        Marker {
            span: self.shown(span),
            level,
            rule: None,
            message,
            related,
            proposal: proposal.map(str::to_owned),
        }
    }

    /// Returns a remark if another program of the source has this label, otherwise an empty text.
    fn other_program(&self, name: &str) -> String {
        let is_label = |found: &&crate::names::Definition| {
            found.sort == NameSort::Label && found.name == name && found.file == 0
        };
        let found = self.names.definitions.iter().find(is_label);
        let line = found.map(|found| self.lines().line(found.span.start) + 1);
        line.map(|line| format!("\n`{name}` in line {line} is a label of another program"))
            .unwrap_or_default()
    }

    /// Returns a span inside the text. Extends an empty span by one character if the line has a character at this
    /// position.
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

    /// Returns the span of the statement on the line that contains the byte at an offset.
    pub(crate) fn statement_at(&self, offset: usize) -> Span {
        let line = self.line_at(offset);
        match (line.statement(self.text()), line.span) {
            ([first, .., last], _) => Span::new(first.span.start, last.span.end),
            ([only], _) => only.span,
            ([], span) => span,
        }
    }

    /// Returns the span of the line that includes a file. If no line of the source names the file, another included
    /// file includes the file. The function then returns the first `.include` line of the source.
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

    /// If nothing states the machine, returns a hint. The hint states that the number of errors determined the machine.
    fn chosen_machine(&self) -> Option<Marker> {
        let isa = self.isa();
        let own = &self.files[0];
        let is_code =
            |line: &LexedLine| !line.statement(&own.text).is_empty() && line.directive(&own.text).is_none();
        let has_code = own.lines.iter().any(is_code);
        let message = match self.is_foreign() {
            true => "nothing states the machine, and most lines are wrong for each machine\nwrite `.isa r500`, `.isa r700` or `.isa tesla` in the first line".to_owned(),
            false => format!(
                "nothing states the machine: the assembler of {isa} finds the fewest errors\nwrite `.isa {isa}` in the first line"
            ),
        };
        let proposal = (!self.is_foreign()).then(|| format!(".isa {isa}\n"));
        let shows = self.chosen_by() == ChosenBy::Fewest && has_code && !self.names_machine();
        shows.then(|| Marker {
            span: self.shown(Span::default()),
            level: MarkerLevel::Hint,
            rule: None,
            message,
            related: Vec::new(),
            proposal,
        })
    }
}

/// Returns the name of the label that a message reports as missing.
fn missing_label(message: &str) -> Option<&str> {
    let rest = message.strip_prefix("undefined label `")?;
    rest.split('`').next().map(|name| name.trim_start_matches('@'))
}
