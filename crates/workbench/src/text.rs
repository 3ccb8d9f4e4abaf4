//! Text of programs, whatever the machine: disassemble, assemble, explain, and the round trip that proves them.

use reconverge_isa::source::Diagnostic;
use reconverge_isa::{Isa, Program, Span};
use thiserror::Error;

/// What decides how words are read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Target {
    /// The machine.
    pub isa: Isa,
    /// The chip, where it matters and is known.
    pub chip: Option<String>,
}

/// A chip name that belongs to none of the machines.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum TargetError {
    /// Nothing tells the machine.
    #[error("which machine is this for? Say --isa r500, r700 or tesla{}", hint(.0))]
    Unknown(&'static str),
    /// The machine is known but this build cannot do it.
    #[error("machine {0} is not implemented")]
    NotImplemented(Isa),
}

fn hint(more: &str) -> String {
    if more.is_empty() { String::new() } else { format!(", or {more}") }
}

/// Chips whose name tells the machine. Names compare without regard to case.
#[rustfmt::skip]
const CHIPS: &[(Isa, &[&str])] = &[
    (Isa::R500,  &["R500", "R520", "RV515", "RV530", "R580", "RV560", "RV570"]),
    (Isa::R700,  &["R600", "RV610", "RV620", "RV630", "RV635", "RV670", "RS780", "RS880",
                   "R700", "RV710", "RV730", "RV740", "RV770", "RV790", "LATTE"]),
    (Isa::Tesla, &["G80", "G84", "G86", "G92", "G94", "G96", "G98", "GT200", "MCP77", "MCP79", "GT215", "GT216",
                   "GT218", "MCP89", "NV50", "SM_10", "SM_11", "SM_12", "SM_13"]),
];

/// The machine that a chip belongs to.
pub fn isa_of_chip(chip: &str) -> Option<Isa> {
    let known = |names: &&[&str]| names.iter().any(|name| name.eq_ignore_ascii_case(chip));
    CHIPS.iter().find(|(_, names)| known(names)).map(|(isa, _)| *isa)
}

/// The machine that an assembler source is for: its `.isa` or `.chip` line.
pub fn isa_of_source(source: &str) -> Option<Isa> {
    reconverge_isa::source::lines(source).find_map(|(_, line)| {
        let (name, value) = line.trim().split_once(char::is_whitespace)?;
        match name {
            ".isa" => value.trim().parse().ok(),
            ".chip" => isa_of_chip(value.trim()),
            _ => None,
        }
    })
}

/// How to print.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Listing {
    /// Adds addresses and words.
    pub hex: bool,
    /// Indents and labels flow constructs.
    pub structure: bool,
}

/// The text of a program, which [`assemble`] takes back.
///
/// # Errors
/// A machine that is not implemented.
pub fn disassemble(target: &Target, program: &Program, listing: Listing) -> Result<String, TargetError> {
    let Listing { hex, structure } = listing;
    match target.isa {
        Isa::R500 => {
            let listing = reconverge_r500::text::Listing { hex, structure };
            Ok(reconverge_r500::text::disassemble(program, listing))
        }
        Isa::R700 => {
            let options = reconverge_r700::text::Options { hex, structure };
            let chip = r700_chip(target.chip.as_deref());
            // The text is that of the words; what a container told besides stands before it for people.
            let mut text = state_comments(program);
            text += &reconverge_r700::text::disassemble(&program.words, chip, options).text;
            Ok(text)
        }
        isa @ Isa::Tesla => Err(TargetError::NotImplemented(isa)),
    }
}

fn state_comments(program: &Program) -> String {
    program.state.iter().map(|(name, value)| format!("; {name} = {value:#010x}\n")).collect()
}

/// The R700 chip of this name. The Wii U's graphics processor, Latte, has RV770's encoding; a name that is none of the
/// machine's is refused before.
fn r700_chip(name: Option<&str>) -> reconverge_r700::chip::Chip {
    name.and_then(reconverge_r700::chip::Chip::named).unwrap_or(reconverge_r700::chip::Chip::RV770)
}

/// What a source says.
#[derive(Clone, Debug, PartialEq)]
pub struct Assembly {
    /// The machine, and the chip where the source says.
    pub target: Target,
    /// The program.
    pub program: Program,
    /// What is allowed but probably not meant.
    pub warnings: Vec<Diagnostic>,
}

/// The program of a source text. `chip` is for sources that do not say theirs.
///
/// # Errors
/// Everything that is wrong with it.
pub fn assemble(isa: Isa, chip: Option<&str>, source: &str) -> Result<Assembly, Vec<Diagnostic>> {
    if let Some(said) = isa_of_source(source).filter(|said| *said != isa) {
        let at = source.find(".isa").or_else(|| source.find(".chip")).unwrap_or(0);
        let end = source[at..].find('\n').map_or(source.len(), |len| at + len);
        let error =
            Diagnostic::error(Span::new(at, end), format!("this source is for {said}, not for {isa}"))
                .help(format!("leave --isa out, or say --isa {said}"));
        return Err(vec![error]);
    }
    match isa {
        Isa::R500 => {
            let assembled = reconverge_r500::text::assemble(source)?;
            let target = Target { isa, chip: assembled.chip };
            Ok(Assembly { target, program: assembled.program, warnings: assembled.warnings })
        }
        Isa::R700 => {
            let assembled = reconverge_r700::text::assemble(source, r700_chip(chip))?;
            let target = Target { isa, chip: Some(assembled.chip.name.to_owned()) };
            Ok(Assembly { target, program: Program::from_words(assembled.words), warnings: Vec::new() })
        }
        isa @ Isa::Tesla => {
            let error = Diagnostic::error(Span::default(), TargetError::NotImplemented(isa).to_string());
            Err(vec![error])
        }
    }
}

/// One field of an explained instruction.
#[derive(Clone, Debug, PartialEq, Eq, serde::Serialize)]
pub struct ExplainedField {
    /// The word's name in the manual.
    pub word: String,
    /// Number of the word in the instruction.
    pub index: usize,
    /// The field's name in the manual.
    pub name: String,
    /// Highest bit.
    pub hi: u8,
    /// Lowest bit.
    pub lo: u8,
    /// The value, right-aligned.
    pub value: u64,
    /// The value in words.
    pub text: String,
    /// What the field means; may be empty.
    pub doc: String,
}

/// One instruction explained.
#[derive(Clone, Debug, PartialEq, Eq, serde::Serialize)]
pub struct Explained {
    /// The words.
    pub words: Vec<u32>,
    /// As the disassembler prints it.
    pub text: String,
    /// Its fields.
    pub fields: Vec<ExplainedField>,
    /// What it does to the flow of lanes.
    pub flow: Vec<String>,
    /// What the documents forbid about it.
    pub findings: Vec<String>,
    /// Where it is documented.
    pub source: String,
}

/// Words that are not one instruction.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum ExplainError {
    /// The number of words is wrong.
    #[error("an {isa} instruction has {wanted}, not {found}")]
    Count {
        /// The machine.
        isa: Isa,
        /// What would fit.
        wanted: &'static str,
        /// Words given.
        found: usize,
    },
    /// The machine.
    #[error(transparent)]
    Target(#[from] TargetError),
}

/// Explains one instruction. A trailing run of words may be left out where they are zero.
///
/// # Errors
/// A number of words that no instruction has.
pub fn explain(target: &Target, words: &[u32]) -> Result<Explained, ExplainError> {
    match target.isa {
        Isa::R500 => {
            if words.is_empty() || words.len() > 6 {
                let wanted = "1 to 6 words (missing ones are 0)";
                return Err(ExplainError::Count { isa: target.isa, wanted, found: words.len() });
            }
            let mut record = [0; 6];
            record[..words.len()].copy_from_slice(words);
            let explained = reconverge_r500::text::explain(&record);
            let field = |field: reconverge_r500::text::FieldText| ExplainedField {
                word: field.word_name.to_owned(),
                index: field.word,
                name: field.name,
                hi: field.hi,
                lo: field.lo,
                value: u64::from(field.value),
                text: field.text,
                doc: field.doc.to_owned(),
            };
            Ok(Explained {
                words: record.to_vec(),
                text: explained.text,
                fields: explained.fields.into_iter().map(field).collect(),
                flow: explained.flow,
                findings: explained.findings,
                source: explained.source.to_owned(),
            })
        }
        Isa::R700 => Ok(explain_r700(target, words)?),
        isa @ Isa::Tesla => Err(TargetError::NotImplemented(isa).into()),
    }
}

/// Two words stand for a control-flow instruction (an ALU instruction looks the same: it is shown behind it), four for a
/// fetch.
fn explain_r700(target: &Target, words: &[u32]) -> Result<Explained, ExplainError> {
    use reconverge_r700::explain::Place;
    let chip = r700_chip(target.chip.as_deref());
    let places: &[(&str, Place)] = match words.len() {
        2 => &[("control flow: ", Place::ControlFlow), ("ALU clause: ", Place::Alu)],
        4 => &[("", Place::Fetch)],
        found => {
            let wanted = "2 words (control flow, ALU) or 4 (fetch)";
            return Err(ExplainError::Count { isa: target.isa, wanted, found });
        }
    };
    let mut fields = Vec::new();
    for (what, place) in places {
        fields.extend(reconverge_r700::explain::explain(words, *place, chip).into_iter().map(|field| {
            ExplainedField {
                word: format!("{what}{}", field.format),
                index: field.word,
                name: field.field.to_ascii_uppercase(),
                hi: field.hi,
                lo: field.lo,
                value: u64::from(field.value),
                text: field.text,
                doc: String::new(),
            }
        }));
    }
    Ok(Explained {
        words: words.to_vec(),
        text: words.iter().map(|word| format!("{word:08x}")).collect::<Vec<_>>().join(" "),
        fields,
        flow: Vec::new(),
        findings: Vec::new(),
        source: "R700-Family Instruction Set Architecture, chapter 8 (microcode formats)".to_owned(),
    })
}

/// Words to text and back: the words must be the same, and on R500, whose text has them, state and constants.
///
/// # Errors
/// The first difference, in words.
pub fn round_trip(target: &Target, program: &Program) -> Result<(), String> {
    let text = disassemble(target, program, Listing::default()).map_err(|error| error.to_string())?;
    let back = assemble(target.isa, target.chip.as_deref(), &text).map_err(|errors| {
        let error = &errors[0];
        let (line, column) = error.span.line_column(&text);
        format!("round trip: line {line}, column {column} of the listing does not assemble: {error}")
    })?;
    if back.program.words != program.words {
        let differ = back.program.words.iter().zip(&program.words).position(|(back, word)| back != word);
        let at = differ.unwrap_or(back.program.words.len().min(program.words.len()));
        return Err(format!(
            "round trip: word {at} comes back as {:08x?}, was {:08x?}",
            back.program.words.get(at),
            program.words.get(at)
        ));
    }
    // The texts of the other machines are those of the words alone.
    let with_state = target.isa == Isa::R500;
    if with_state && (back.program.state != program.state || back.program.constants != program.constants) {
        return Err("round trip: state or constants differ".to_owned());
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_chip_tells_its_machine() {
        assert_eq!(isa_of_chip("rv770"), Some(Isa::R700));
        assert_eq!(isa_of_chip("sm_11"), Some(Isa::Tesla));
        assert_eq!(isa_of_chip("GF100"), None);
        assert_eq!(isa_of_source("; x\n.chip R580\nOUT nop"), Some(Isa::R500));
        assert_eq!(isa_of_source(".isa tesla"), Some(Isa::Tesla));
    }

    #[test]
    fn a_source_for_another_machine_is_refused() {
        let errors = assemble(Isa::R500, None, ".chip RV770\n").unwrap_err();
        assert_eq!(
            errors[0].to_string(),
            "this source is for r700, not for r500 (leave --isa out, or say --isa r700)"
        );
    }
}
