//! The words of a machine's assembler syntax: mnemonics, forms, directives and registers. The words come from the
//! machine's tables.

use std::collections::HashSet;
use std::sync::OnceLock;

use reconverge_isa::Isa;
use reconverge_isa::expand;
use reconverge_isa::forms::Form;
use reconverge_isa::source::DirectiveRow;
use reconverge_workbench::{Target, machine};

/// The words of a machine's assembler syntax.
#[derive(Debug)]
pub(crate) struct Vocabulary {
    /// All mnemonics.
    pub(crate) mnemonics: HashSet<&'static str>,
    /// The mnemonics, sorted. Each mnemonic has the position in a line at which the mnemonic is valid.
    pub(crate) entries: Vec<MnemonicEntry>,
    /// Directives of this machine, and directives that all machines share.
    pub(crate) directives: Vec<DirectiveRow>,
    /// Prefixes of numbered registers: `$r`, `R`, `temp[`.
    pub(crate) registers: HashSet<String>,
}

/// A mnemonic.
#[derive(Debug)]
pub(crate) struct MnemonicEntry {
    /// The mnemonic.
    pub(crate) name: &'static str,
    /// Text of the mnemonic's first form.
    pub(crate) form: String,
    /// Whether the mnemonic starts a line. Otherwise, the mnemonic follows a slot (R700) or a destination (R500).
    pub(crate) leads: bool,
}

impl MnemonicEntry {
    /// Returns the mnemonic as a program spells it. A control-flow instruction of R700 has a colon after the mnemonic.
    pub(crate) fn written(&self) -> &str {
        match self.form.strip_prefix(self.name).is_some_and(|rest| rest.starts_with(':')) {
            true => &self.form[..self.name.len() + 1],
            false => self.name,
        }
    }
}

/// Returns the words of a machine. The tables are read by the first call.
pub(crate) fn vocabulary(isa: Isa) -> &'static Vocabulary {
    static ALL: [OnceLock<Vocabulary>; 3] = [const { OnceLock::new() }; 3];
    ALL[isa as usize].get_or_init(|| {
        let machine = machine(isa);
        let mnemonics: HashSet<&'static str> = machine.mnemonics().into_iter().collect();
        let target = Target::of(isa);
        let (mut registers, mut entries) = (HashSet::new(), Vec::new());
        for mnemonic in machine.mnemonics() {
            let forms = machine.forms(&target, mnemonic);
            let form = forms.first().map(|form| form.text.clone()).unwrap_or_default();
            let after = form.strip_prefix(mnemonic);
            let ends =
                after.is_some_and(|rest| !rest.starts_with(|c: char| c.is_ascii_alphanumeric() || c == '_'));
            let leads = ends || isa == Isa::Tesla;
            entries.push(MnemonicEntry { name: mnemonic, form, leads });
            for form in forms {
                for piece in pieces(&form) {
                    if let FormPiece::Numbered(prefix, _) = piece
                        && !mnemonics.contains(prefix.as_str())
                    {
                        registers.insert(prefix);
                    }
                }
            }
        }
        let directives = machine.directives().into_iter().chain(expand::directives()).collect();
        Vocabulary { mnemonics, entries, directives, registers }
    })
}

impl Vocabulary {
    /// Returns the directive with a name.
    pub(crate) fn directive(&self, name: &str) -> Option<&DirectiveRow> {
        self.directives.iter().find(|row| row.name == name)
    }

    /// Returns whether a word is a register. A register is a word that begins with `$`, a known prefix with a number,
    /// or a known name before `[`. `next` is the character after the word.
    pub(crate) fn is_register(&self, word: &str, next: Option<char>) -> bool {
        if next == Some('[') && self.registers.contains(&format!("{word}[")) {
            return true;
        }
        if word.starts_with('$') {
            return true;
        }
        let digits = word.find(|c: char| c.is_ascii_digit());
        digits.is_some_and(|at| at > 0 && self.registers.contains(&word[..at]))
    }
}

/// A part of a form's text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum FormPiece {
    /// A word that is part of the text.
    Fixed(String),
    /// The text before a number and the text after the number: `$rN`, `temp[N]`, `$rNl`.
    Numbered(String, String),
    /// A name with alternatives in parentheses: `NAME(A|B)`.
    Bracketed(String, Vec<String>),
    /// A label.
    LabelName,
}

/// Returns the pieces of a form. The pieces are from the text of the form, and from the meanings of the form's names in
/// angle brackets.
pub(crate) fn pieces(form: &Form) -> Vec<FormPiece> {
    let mut found = Vec::new();
    for text in std::iter::once(form.text.as_str()).chain(form.places.iter().map(|(_, text)| text.as_str())) {
        pieces_of(text, &mut found);
    }
    found
}

/// Returns the pieces of one part of a form's text.
pub(crate) fn pieces_in(part: &str) -> Vec<FormPiece> {
    let mut found = Vec::new();
    pieces_of(part, &mut found);
    found
}

fn pieces_of(text: &str, found: &mut Vec<FormPiece>) {
    let is_word = |c: char| c.is_ascii_alphanumeric() || c == '_' || c == '$';
    let mut rest = text;
    let mut before = ' ';
    while let Some(at) = rest.find(is_word) {
        // A name in angle brackets, such as `<kind of source 1>`, is a placeholder in a form. Instructions do not
        // contain such names.
        if let Some(open) = rest[..at].rfind('<')
            && let Some(close) = rest[open..].find('>')
        {
            (rest, before) = (&rest[open + close + 1..], '>');
            continue;
        }
        before = rest[..at].chars().next_back().unwrap_or(before);
        let len = rest[at..].find(|c| !is_word(c)).unwrap_or(rest.len() - at);
        let (word, after) = (&rest[at..at + len], &rest[at + len..]);
        let component = before == '.' || before == '<';
        rest = after;
        let last_before = std::mem::replace(&mut before, word.chars().next_back().unwrap_or(' '));
        if component || last_before == '#' {
            continue;
        }
        if let Some(inside) = after.strip_prefix('(')
            && let Some((inside, behind)) = inside.split_once(')')
            && word.chars().any(|c| c.is_ascii_uppercase())
            && word.len() > 1
        {
            let choices = inside.split('|').filter(|choice| !choice.is_empty());
            found.push(FormPiece::Bracketed(word.to_owned(), choices.map(str::to_owned).collect()));
            rest = behind;
            continue;
        }
        if after.starts_with("[N]") || after.starts_with("[N+") {
            found.push(FormPiece::Numbered(format!("{word}["), "]".to_owned()));
            rest = &after[2..];
            continue;
        }
        if word == "LABEL" {
            found.push(FormPiece::LabelName);
            continue;
        }
        // A short prefix and a number: `$rN`, `RN`, `$rNl`.
        if let Some((prefix, suffix)) = word.split_once('N')
            && (prefix.starts_with('$') && prefix.len() > 1 || prefix.len() == 1)
            && suffix.chars().all(|c| c.is_ascii_lowercase())
            && suffix.len() <= 1
        {
            found.push(FormPiece::Numbered(prefix.to_owned(), suffix.to_owned()));
            continue;
        }
        // A register in an example of a form. `R0` is such a register.
        let digits = word.trim_start_matches(|c: char| c.is_ascii_uppercase());
        if word.len() - digits.len() == 1
            && !digits.is_empty()
            && digits.bytes().all(|byte| byte.is_ascii_digit())
        {
            found.push(FormPiece::Numbered(word[..1].to_owned(), String::new()));
            continue;
        }
        let number = word.starts_with(|c: char| c.is_ascii_digit());
        let placeholder = word.len() == 1 || after.starts_with('=');
        if !number && !placeholder {
            found.push(FormPiece::Fixed(word.to_owned()));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(text: &str) -> Vec<FormPiece> {
        let mut found = Vec::new();
        pieces_of(text, &mut found);
        found
    }

    #[test]
    fn the_text_of_a_form_names_its_words() {
        use FormPiece::*;
        let fixed = |text: &str| Fixed(text.to_owned());
        let numbered = |prefix: &str, suffix: &str| Numbered(prefix.to_owned(), suffix.to_owned());
        assert_eq!(
            of("add [sat] b32 $rN $rNl"),
            [fixed("add"), fixed("sat"), fixed("b32"), numbered("$r", ""), numbered("$r", "l")]
        );
        assert_eq!(of("bra LABEL"), [fixed("bra"), LabelName]);
        let omod = Bracketed("OMOD".to_owned(), vec!["M2".to_owned(), "M4".to_owned()]);
        let register = || numbered("R", "");
        assert_eq!(
            of("MUL R0.x, RN.x [OMOD(M2|M4)] [CLAMP]"),
            [fixed("MUL"), register(), register(), omod, fixed("CLAMP")]
        );
        assert_eq!(of("temp[N].MASK"), [numbered("temp[", "]")]);
        assert_eq!(of("mov b16 <kind of source 1> $rN"), [fixed("mov"), fixed("b16"), numbered("$r", "")]);
    }

    #[test]
    fn every_machine_has_mnemonics_directives_and_registers() {
        for (isa, register) in [(Isa::R500, "temp["), (Isa::R700, "R"), (Isa::Tesla, "$r")] {
            let words = vocabulary(isa);
            assert!(words.registers.contains(register), "{isa}: {:?}", words.registers);
            assert!(
                words.mnemonics.len() > 50
                    && words.directive(".equ").is_some()
                    && words.directive(".isa").is_some()
            );
        }
    }
}
