//! Completions at a position in a source.

use std::collections::{BTreeSet, HashSet};

use reconverge_isa::forms::Form;
use reconverge_isa::source::DirectiveRow;
use reconverge_isa::{Isa, Span};
use reconverge_workbench::Target;
use reconverge_workbench::machine;
use reconverge_workbench::target::{ChipName, chips};

use crate::analysis::Analysis;
use crate::choice::ChosenBy;
use crate::hover::of_forms;
use crate::lexemes::{LexedLine, Lexeme, LexemeKind, lex};
use crate::names::NameSort;
use crate::vocabulary::{FormPiece, pieces, pieces_in, vocabulary};

/// Kind of a proposal.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ProposalSort {
    /// A mnemonic.
    Mnemonic,
    /// An example of a form of a mnemonic, which the user can edit.
    Form,
    /// A directive.
    Directive,
    /// A word of an instruction, or a value of a directive.
    Word,
    /// A register.
    Register,
    /// A name that the source defines.
    Name(NameSort),
}

/// A text that is valid at a position.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Proposal {
    /// Kind of the proposal.
    pub sort: ProposalSort,
    /// The text that a list shows.
    pub label: String,
    /// A remark next to the label; may be empty.
    pub detail: String,
    /// The part of the source that is replaced.
    pub span: Span,
    /// The replacement.
    pub text: String,
}

/// Number of unused registers that are proposed after the last register that the source uses.
const MORE_REGISTERS: u32 = 2;

/// Maximum number of registers of one kind that are proposed.
const MOST_REGISTERS: u32 = 128;

/// Returns the forms of a mnemonic in Markdown, or `None` if the word is not a mnemonic.
pub fn mnemonic_help(isa: Isa, mnemonic: &str) -> Option<String> {
    let forms = machine(isa).forms(&Target::of(isa), mnemonic);
    (!forms.is_empty()).then(|| of_forms(&forms))
}

/// A position in a line at which texts are proposed.
struct Spot<'a> {
    /// The lexemes of the line up to the position.
    before: LexedLine,
    /// The text of the line up to the position.
    text: &'a str,
    /// The part of the current word that precedes the position.
    typed: &'a str,
    /// The part of the source that a proposal replaces.
    span: Span,
}

impl Spot<'_> {
    /// Returns the lexemes of the statement that precede the word at the position.
    fn statement(&self) -> &[Lexeme] {
        let statement = self.before.statement(self.text);
        let kept =
            statement.iter().take_while(|lexeme| lexeme.span.start < self.text.len() - self.typed.len());
        &statement[..kept.count()]
    }

    fn before_word(&self) -> Option<char> {
        self.text[..self.text.len() - self.typed.len()].chars().next_back()
    }
}

impl Analysis {
    /// Returns the texts that are valid at an offset in bytes.
    pub fn complete(&self, offset: usize) -> Vec<Proposal> {
        let mut offset = offset.min(self.text().len());
        while !self.text().is_char_boundary(offset) {
            offset -= 1;
        }
        let start = self.line_at(offset).span.start;
        let text = &self.text()[start..offset];
        let typed_from = text
            .rfind(|c: char| !(c.is_ascii_alphanumeric() || c == '_' || c == '$'))
            .map_or(0, |at| at + text[at..].chars().next().map_or(1, char::len_utf8));
        let Some(before) = lex(text, Some(self.isa())).pop() else { return Vec::new() };
        if before.comment().is_some() || before.lexemes.last().is_some_and(|last| is_open_text(*last, text)) {
            return Vec::new();
        }
        let spot =
            Spot { before, text, typed: &text[typed_from..], span: Span::new(start + typed_from, offset) };
        let mut found = self.proposals(&spot, offset);
        let mut known = HashSet::new();
        found.retain(|proposal| known.insert((proposal.label.clone(), proposal.text.clone())));
        found
    }

    fn proposals(&self, spot: &Spot<'_>, offset: usize) -> Vec<Proposal> {
        let statement = spot.statement();
        let directive = statement.first().filter(|first| first.kind == LexemeKind::Directive);
        match spot.before_word() {
            Some('.') if statement.len() <= 1 && directive.is_none() => return self.directives(spot),
            Some('.') => return Vec::new(),
            Some('@') => return self.names_of(spot, offset, &[NameSort::Label], ""),
            Some('\\') => return self.names_of(spot, offset, &[NameSort::MacroParameter], ""),
            _ => {}
        }
        if let Some(directive) = directive {
            let row = vocabulary(self.isa()).directive(directive.text(spot.text));
            let mut found = row.map(|row| self.values(spot, row)).unwrap_or_default();
            found.extend(self.names_of(spot, offset, &[NameSort::Constant], ""));
            return found;
        }
        let words = vocabulary(self.isa());
        let mnemonics: Vec<&str> = statement
            .iter()
            .map(|lexeme| lexeme.text(spot.text))
            .filter(|word| words.mnemonics.contains(word))
            .collect();
        let last = statement.last().map(|last| last.text(spot.text));
        let mut found = Vec::new();
        // The operation follows `=` after a destination (R500), or the colon of a slot (R700).
        let inside = self.isa() == Isa::R500 && last == Some("=")
            || self.isa() == Isa::R700 && last == Some(":") && mnemonics.is_empty();
        if mnemonics.is_empty() || inside {
            if self.is_blank() {
                return self.machines(spot);
            }
            found.extend(self.mnemonics(spot, !inside));
            if !inside {
                found.extend(self.names_of(spot, offset, &[NameSort::Macro], ""));
            }
            return found;
        }
        for mnemonic in mnemonics.iter().rev() {
            found.extend(self.operands(spot, mnemonic, offset));
        }
        if self.in_brackets(spot) {
            // Inside an address, only the registers are valid.
            found
                .retain(|proposal| proposal.sort == ProposalSort::Register && proposal.text.starts_with('$'));
        }
        found.extend(self.names_of(spot, offset, &[NameSort::Constant, NameSort::Alias], ""));
        // Names and registers come before the words of the mnemonic.
        found.sort_by_key(|proposal| match proposal.sort {
            ProposalSort::Name(_) => 0,
            ProposalSort::Register => 1,
            _ => 2,
        });
        if let ([mnemonic], [only]) = (mnemonics.as_slice(), statement) {
            let start = spot.span.start - (spot.text.len() - spot.typed.len() - only.span.start);
            let span = Span::new(start, spot.span.end);
            found.extend(self.examples(mnemonic, span).filter(|_| spot.typed.is_empty()));
        }
        if self.in_brackets(spot) {
            found.extend(self.names_of(spot, offset, &[NameSort::Parameter, NameSort::Variable], ""));
        }
        found
    }

    /// Returns whether nothing states the machine, and the text has too few words to identify the machine.
    fn is_blank(&self) -> bool {
        let own = &self.files[0];
        let words = |line: &LexedLine| line.statement(&own.text).len();
        self.chosen_by() == ChosenBy::Fewest && own.lines.iter().map(words).sum::<usize>() <= 1
    }

    /// Returns a proposal of the line `.isa` for each machine.
    fn machines(&self, spot: &Spot<'_>) -> Vec<Proposal> {
        let line = |isa: Isa| Proposal {
            sort: ProposalSort::Directive,
            label: format!(".isa {isa}"),
            detail: "the machine of the text".to_owned(),
            span: spot.span,
            text: format!(".isa {isa}\n"),
        };
        Isa::ALL.into_iter().map(line).collect()
    }

    fn in_brackets(&self, spot: &Spot<'_>) -> bool {
        spot.text.matches('[').count() > spot.text.matches(']').count()
    }

    /// Returns an example of each form of a mnemonic as a proposal.
    fn examples(&self, mnemonic: &str, span: Span) -> impl Iterator<Item = Proposal> {
        let example = move |form: Form| Proposal {
            sort: ProposalSort::Form,
            label: form.text,
            detail: form.about,
            span,
            text: form.example,
        };
        self.forms(mnemonic).into_iter().map(example)
    }

    fn directives(&self, spot: &Spot<'_>) -> Vec<Proposal> {
        let span = Span::new(spot.span.start - 1, spot.span.end);
        let proposal = |row: &DirectiveRow| Proposal {
            sort: ProposalSort::Directive,
            label: row.name.to_owned(),
            detail: format!("{}: {}", row.operands, row.about).trim_start_matches(": ").to_owned(),
            span,
            text: row.name.to_owned(),
        };
        vocabulary(self.isa()).directives.iter().map(proposal).collect()
    }

    /// Returns the words that are values of a directive.
    fn values(&self, spot: &Spot<'_>, row: &DirectiveRow) -> Vec<Proposal> {
        let mut found = Vec::new();
        if row.name == ".chip" {
            let names = chips(self.isa()).into_iter().flat_map(ChipName::names);
            found.extend(names.map(|name| self.word(spot, name, "chip")));
        }
        for operand in row.operands.split([' ', ',']) {
            let words = operand.split('|').filter(|word| operand.contains('|') || *word == self.isa().name());
            let plain = words
                .filter(|word| !word.is_empty() && word.bytes().all(|byte| byte.is_ascii_alphanumeric()));
            found.extend(plain.map(|word| self.word(spot, word, row.about)));
        }
        found
    }

    fn word(&self, spot: &Spot<'_>, text: &str, detail: &str) -> Proposal {
        Proposal {
            sort: ProposalSort::Word,
            label: text.to_owned(),
            detail: detail.to_owned(),
            span: spot.span,
            text: text.to_owned(),
        }
    }

    /// If `leading`, returns the mnemonics that start a line. Otherwise, returns the mnemonics that follow a slot or a
    /// destination. If the word at the start of a line is a complete mnemonic, also returns examples of the mnemonic's
    /// forms.
    fn mnemonics(&self, spot: &Spot<'_>, leading: bool) -> Vec<Proposal> {
        let mut found = Vec::new();
        for entry in vocabulary(self.isa()).entries.iter().filter(|entry| entry.leads == leading) {
            let text = entry.written();
            found.push(Proposal {
                sort: ProposalSort::Mnemonic,
                label: entry.name.to_owned(),
                detail: entry.form.clone(),
                span: spot.span,
                text: text.to_owned(),
            });
        }
        if leading && spot.statement().is_empty() && !spot.typed.is_empty() {
            found.extend(self.examples(spot.typed, spot.span));
        }
        found
    }

    /// Returns the words, registers and labels that occur in the forms of a mnemonic.
    fn operands(&self, spot: &Spot<'_>, mnemonic: &str, offset: usize) -> Vec<Proposal> {
        let mut found = Vec::new();
        let mnemonics = &vocabulary(self.isa()).mnemonics;
        let forms = self.forms(mnemonic);
        let nexts = self.next_parts(spot, &forms);
        for (form, next) in forms.iter().zip(nexts) {
            let all = match next {
                Some(parts) => parts.iter().flat_map(|part| pieces_in(part)).collect(),
                None => pieces(form),
            };
            for piece in all {
                match piece {
                    FormPiece::Fixed(word) if word == mnemonic => {}
                    FormPiece::Fixed(word) if is_placeholder(&word, self.isa(), mnemonics) => {}
                    FormPiece::Fixed(word) => found.push(self.word(spot, &word, mnemonic)),
                    FormPiece::Numbered(prefix, suffix) => {
                        found.extend(self.registers(spot, &prefix, &suffix))
                    }
                    FormPiece::Bracketed(name, choices) => {
                        let fits = |choice: &&String| {
                            choice.len() > 1
                                && !choice.contains(['@', '-', '+'])
                                && !is_placeholder(choice, self.isa(), mnemonics)
                        };
                        let texts = choices.iter().filter(fits).map(|choice| format!("{name}({choice})"));
                        found.extend(texts.map(|text| self.word(spot, &text, mnemonic)));
                        let labels = choices.iter().any(|choice| choice == "@LABEL");
                        if labels {
                            found.extend(self.labelled(spot, &name, offset));
                        }
                    }
                    FormPiece::LabelName => found.extend(self.names_of(spot, offset, &[NameSort::Label], "")),
                }
            }
        }
        found
    }

    /// Returns, for each form, the parts that may follow the parts written so far. The list is empty for a form that
    /// does not fit the written parts. If no form fits, all entries are `None`. All entries are also `None` if the
    /// machine's forms do not consist of separate parts.
    fn next_parts(&self, spot: &Spot<'_>, forms: &[Form]) -> Vec<Option<Vec<String>>> {
        let none = || vec![None; forms.len()];
        if self.isa() != Isa::Tesla || self.in_brackets(spot) {
            return none();
        }
        let start = spot.before.statement(spot.text).first().map_or(0, |first| first.span.start);
        let end = spot.text.len() - spot.typed.len();
        let written = parts_of(&spot.text[start.min(end)..end]);
        let nexts: Vec<Vec<String>> = forms.iter().map(|form| following(form, &written)).collect();
        match nexts.iter().all(Vec::is_empty) {
            true => none(),
            false => nexts.into_iter().map(Some).collect(),
        }
    }

    /// Returns `ADDR(@label)` for each label (R700).
    fn labelled(&self, spot: &Spot<'_>, name: &str, offset: usize) -> Vec<Proposal> {
        let labels = self.names_of(spot, offset, &[NameSort::Label], "");
        let attribute = |label: Proposal| {
            let text = format!("{name}(@{})", label.label);
            Proposal { label: text.clone(), text, ..label }
        };
        labels.into_iter().map(attribute).collect()
    }

    /// Returns numbered registers: the registers up to the highest register in the source, and a few more.
    fn registers(&self, spot: &Spot<'_>, prefix: &str, suffix: &str) -> Vec<Proposal> {
        let used = self.used(prefix);
        let count = used.last().map_or(0, |last| last + 1);
        let proposal = |number: u32| {
            let text = format!("{prefix}{number}{suffix}");
            Proposal {
                sort: ProposalSort::Register,
                label: text.clone(),
                detail: if used.contains(&number) { "in use" } else { "not in use" }.to_owned(),
                span: spot.span,
                text,
            }
        };
        (0..(count + MORE_REGISTERS).min(MOST_REGISTERS)).map(proposal).collect()
    }

    /// Returns the numbers that follow a prefix in the source. For example, the number in `R3` with the prefix `R` is
    /// 3.
    fn used(&self, prefix: &str) -> BTreeSet<u32> {
        let text = self.text();
        let fresh =
            |at: &usize| !text[..*at].ends_with(|c: char| c.is_ascii_alphanumeric() || c == '_' || c == '$');
        let number = |at: usize| {
            let rest = &text[at + prefix.len()..];
            let digits = rest.find(|c: char| !c.is_ascii_digit()).unwrap_or(rest.len());
            rest[..digits].parse().ok().filter(|number| *number < MOST_REGISTERS)
        };
        text.match_indices(prefix).map(|(at, _)| at).filter(fresh).filter_map(number).collect()
    }

    fn names_of(&self, spot: &Spot<'_>, offset: usize, sorts: &[NameSort], detail: &str) -> Vec<Proposal> {
        let known = self.names.known_at(offset).filter(|definition| sorts.contains(&definition.sort));
        let proposal = |definition: &crate::names::Definition| {
            let value = self.constant(definition).map(|constant| format!("= {}", constant.value));
            let detail = if detail.is_empty() { definition.sort.noun() } else { detail };
            Proposal {
                sort: ProposalSort::Name(definition.sort),
                label: definition.name.clone(),
                detail: value.unwrap_or_else(|| detail.to_owned()),
                span: spot.span,
                text: definition.name.clone(),
            }
        };
        known.map(proposal).collect()
    }
}

/// Splits a text at the spaces outside brackets.
fn parts_of(text: &str) -> Vec<&str> {
    let (mut parts, mut depth, mut start) = (Vec::new(), 0_i32, 0);
    for (at, byte) in text.bytes().enumerate() {
        match byte {
            b'(' | b'[' | b'<' => depth += 1,
            b')' | b']' | b'>' => depth -= 1,
            b' ' | b'\t' if depth <= 0 => {
                parts.push(&text[start..at]);
                start = at + 1;
            }
            _ => {}
        }
    }
    parts.push(&text[start..]);
    parts.retain(|part| !part.is_empty());
    parts
}

/// Returns the parts of a form that may follow the written parts. Replaces names in angle brackets by the meanings of
/// the names (Tesla).
fn following(form: &Form, written: &[&str]) -> Vec<String> {
    let mut parts: Vec<(String, bool)> = Vec::new();
    for part in parts_of(&form.text) {
        let inside = part.strip_prefix('[').and_then(|rest| rest.strip_suffix(']'));
        let named = inside.unwrap_or(part);
        let place = form.places.iter().find(|(name, _)| name.as_str() == named);
        let text = place.map_or(named, |(_, text)| text.as_str());
        parts.push((text.to_owned(), inside.is_some()));
    }
    // `ends` holds positions in the form. At each position, the written parts that have been read so far may end.
    let mut ends: BTreeSet<usize> = BTreeSet::from([0]);
    let mut at = 0;
    while at < written.len() {
        let mut next = BTreeSet::new();
        let mut taken = 1;
        for from in &ends {
            for (index, (part, is_optional)) in parts.iter().enumerate().skip(*from) {
                if let Some(count) = fits(part, &written[at..]) {
                    next.insert(index + 1);
                    taken = taken.max(count);
                }
                if !is_optional {
                    break;
                }
            }
        }
        (ends, at) = (next, at + taken);
    }
    let mut found = Vec::new();
    for from in ends {
        for (part, is_optional) in &parts[from..] {
            found.push(part.clone());
            if !is_optional {
                break;
            }
        }
    }
    found
}

/// Returns the number of written parts that match the part `part` of a form. A memory operand with its type consists of
/// two written parts. A part that is not a memory operand matches one written part. Returns `None` if the first written
/// part does not match.
fn fits(part: &str, written: &[&str]) -> Option<usize> {
    let first = *written.first()?;
    let is_word = |text: &str| text.bytes().all(|byte| byte.is_ascii_alphanumeric());
    let alternatives = || alternatives(part);
    if is_word(first) && !first.starts_with(|c: char| c.is_ascii_digit()) {
        if alternatives().any(|choice| choice == first) {
            return Some(1);
        }
        // The word is either the type of a memory operand, as in `u8 s[…]`, or a name for `LABEL` or `IMMEDIATE`.
        let typed = alternatives().any(|choice| choice.split(' ').next() == Some(first));
        let is_name = alternatives().any(|choice| matches!(choice, "LABEL" | "IMMEDIATE"));
        return if typed { Some(written.len().min(2)) } else { is_name.then_some(1) };
    }
    let head = |text: &str| text.bytes().take_while(u8::is_ascii_alphabetic).count();
    let is_register = first.starts_with('$');
    let letters = first.trim_start_matches('$');
    let letters = &letters[..head(letters)];
    let same = |choice: &str| {
        let choice = choice.rsplit(' ').next().unwrap_or(choice);
        let bare = choice.trim_start_matches('$');
        let start = bare.split(['N', '[']).next().unwrap_or(bare);
        choice.starts_with('$') == is_register && start == letters && !start.is_empty()
    };
    let is_number = first.starts_with(|c: char| c.is_ascii_digit() || c == '-');
    let number = || alternatives().any(|choice| choice.bytes().all(|byte| byte.is_ascii_uppercase()));
    let bracketed = first.starts_with('(') && part.starts_with('(') || first == "#" && part.contains('#');
    (alternatives().any(same) || is_number && number() || bracketed).then_some(1)
}

/// Splits a part of a form into its alternatives, at each `|` outside brackets.
fn alternatives(part: &str) -> impl Iterator<Item = &str> {
    let mut depth = 0_i32;
    part.split(move |c: char| {
        match c {
            '(' | '[' => depth += 1,
            ')' | ']' => depth -= 1,
            _ => {}
        }
        depth == 0 && c == '|'
    })
}

/// Returns whether a text in quotation marks is not closed yet.
fn is_open_text(lexeme: Lexeme, text: &str) -> bool {
    let inside = lexeme.text(text);
    lexeme.kind == LexemeKind::Text && (inside.len() < 2 || !inside.ends_with('"'))
}

/// Returns whether a word of a form is a placeholder. In Tesla's forms, placeholders are in capital letters. In R500's
/// and R700's forms, placeholders are words such as SRC0, MASK or OPERAND.
fn is_placeholder(word: &str, isa: Isa, mnemonics: &HashSet<&'static str>) -> bool {
    const PLACEHOLDERS: [&str; 14] = [
        "MASK", "SSSS", "OPERAND", "SOURCE", "OP", "SRC0", "SRC1", "SRC2", "FIRST", "LAST", "CBN", "BYTES",
        "LABEL", "DST",
    ];
    let capital = word.chars().all(|c| c.is_ascii_uppercase() || c.is_ascii_digit() || c == '_');
    match isa {
        Isa::Tesla => capital,
        Isa::R500 | Isa::R700 => PLACEHOLDERS.contains(&word) || mnemonics.contains(word),
    }
}
