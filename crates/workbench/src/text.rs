//! Text of programs, whatever the machine: disassemble, assemble, explain, and the round trip that proves them.

use reconverge_isa::program::{ConstantBlock, Stage};
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
    /// The step of the pipeline, for programs that do not say theirs. It decides what some Tesla words mean.
    pub stage: Option<Stage>,
}

impl Target {
    /// A machine, and a chip where it is known.
    pub fn new(isa: Isa, chip: Option<&str>) -> Target {
        Target { isa, chip: chip.map(str::to_owned), stage: None }
    }
}

/// A target that cannot be.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum TargetError {
    /// Nothing tells the machine.
    #[error("which machine is this for? Say --isa r500, r700 or tesla{}", hint(.0))]
    Unknown(&'static str),
    /// The chip belongs to another machine.
    #[error("{chip} is a chip of {belongs}, not of {isa}")]
    OtherChip {
        /// The chip asked for.
        chip: String,
        /// Its machine.
        belongs: Isa,
        /// The machine of the program.
        isa: Isa,
    },
    /// No machine has such a chip.
    #[error("unknown chip `{chip}`: {help}")]
    UnknownChip {
        /// The chip asked for.
        chip: String,
        /// What fits.
        help: String,
    },
    /// Tesla has no such programs.
    #[error("{0} is no program type of tesla: compute, vertex, geometry and fragment are")]
    Stage(Stage),
}

fn hint(more: &str) -> String {
    if more.is_empty() { String::new() } else { format!(", or {more}") }
}

/// A chip as front ends know it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ChipName {
    /// Its name.
    pub name: &'static str,
    /// Other names that mean it.
    pub aliases: &'static [&'static str],
}

/// The chips of a machine, from the machine's own table.
pub fn chips(isa: Isa) -> Vec<ChipName> {
    match isa {
        Isa::R500 => {
            let named =
                |chip: &reconverge_r500::chip::Chip| ChipName { name: chip.name, aliases: chip.aliases };
            reconverge_r500::chip::CHIPS.iter().map(named).collect()
        }
        Isa::R700 => {
            let named =
                |chip: &reconverge_r700::chip::Chip| ChipName { name: chip.name, aliases: chip.aliases };
            reconverge_r700::chip::CHIPS.iter().map(named).collect()
        }
        Isa::Tesla => {
            let chips = reconverge_tesla::inst::Chip::ALL;
            chips.map(|chip| ChipName { name: chip.name(), aliases: chip.aliases() }).to_vec()
        }
    }
}

/// Whether a machine has a chip of this name. Case does not count.
fn has_chip(isa: Isa, name: &str) -> bool {
    match isa {
        Isa::R500 => reconverge_r500::chip::Chip::named(name).is_some(),
        Isa::R700 => reconverge_r700::chip::Chip::named(name).is_some(),
        Isa::Tesla => reconverge_tesla::inst::Chip::from_name(name).is_some(),
    }
}

/// The machine that a chip belongs to.
pub fn isa_of_chip(chip: &str) -> Option<Isa> {
    Isa::ALL.into_iter().find(|isa| has_chip(*isa, chip))
}

/// What fits instead of a name that no chip of a machine has.
pub(crate) fn chip_help(isa: Isa, name: &str) -> String {
    let names: Vec<&str> =
        chips(isa).into_iter().flat_map(|chip| [&[chip.name], chip.aliases].concat()).collect();
    match reconverge_isa::source::closest(name, names.iter().copied()) {
        Some(meant) => format!("did you mean `{meant}`? {isa} has {}", names.join(", ")),
        None => format!("{isa} has {}", names.join(", ")),
    }
}

impl Target {
    /// Refuses a chip that the machine does not have.
    ///
    /// # Errors
    /// The chip belongs to another machine, or to none.
    pub fn checked(self) -> Result<Target, TargetError> {
        let Some(chip) = self.chip.clone().filter(|chip| !has_chip(self.isa, chip)) else { return Ok(self) };
        Err(match isa_of_chip(&chip) {
            Some(belongs) => TargetError::OtherChip { chip, belongs, isa: self.isa },
            None => TargetError::UnknownChip { help: chip_help(self.isa, &chip), chip },
        })
    }
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
/// A program type that the machine does not have.
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
            let mut text = r700_directives(program);
            text += &reconverge_r700::text::disassemble(&program.words, chip, options).text;
            Ok(text)
        }
        Isa::Tesla => {
            use reconverge_tesla::text::{Listing, disassemble_program};
            let (chip, stage) = (tesla_chip(target.chip.as_deref()), tesla_stage(target, program)?);
            Ok(disassemble_program(program, chip, stage, Listing { hex, structure, labels: true }))
        }
    }
}

/// What stands before the text of a program in a file, as far as the text does not say it itself: machine, chip, name.
pub fn heading(target: &Target, program: &Program) -> String {
    let mut text = format!(".isa {}\n", target.isa);
    if let (Isa::R500, Some(chip)) = (target.isa, &target.chip) {
        text += &format!(".chip {chip}\n");
    }
    if let (Isa::R500 | Isa::R700, Some(name)) = (target.isa, &program.name) {
        text += &format!("; {name}\n");
    }
    text
}

/// What is malformed in a program: words that no instruction has where one is expected, clauses that do not close.
/// Such words survive the round trip all the same.
///
/// # Errors
/// A program type that the machine does not have.
pub fn malformed(target: &Target, program: &Program) -> Result<Vec<String>, TargetError> {
    Ok(match target.isa {
        // The text refuses no word, and every word of an R500 instruction has a meaning or is reported when it runs.
        Isa::R500 => Vec::new(),
        Isa::R700 => {
            let options = reconverge_r700::code::CodeOptions::new(r700_chip(target.chip.as_deref()));
            let code = reconverge_r700::code::Code::new(&program.words, program.base, options);
            code.faults().map(|(address, fault)| format!("at {address}: {fault}")).collect()
        }
        Isa::Tesla => {
            use reconverge_tesla::decode::{decode, length};
            let (chip, stage) = (tesla_chip(target.chip.as_deref()), tesla_stage(target, program)?);
            let mut found = Vec::new();
            let mut at = 0;
            while let Some(&first) = program.words.get(at) {
                let pair = [first, program.words.get(at + 1).copied().unwrap_or(0)];
                if let Err(error) = decode(pair, chip, stage) {
                    found.push(format!("at {:#x}: {:08x} {:08x}: {error}", 4 * at, pair[0], pair[1]));
                }
                at += length(first) as usize;
            }
            found
        }
    })
}

/// The R700 chip of this name. The Wii U's graphics processor, Latte, has RV770's encoding; a name that is none of the
/// machine's is refused before.
fn r700_chip(name: Option<&str>) -> reconverge_r700::chip::Chip {
    name.and_then(reconverge_r700::chip::Chip::named).unwrap_or(reconverge_r700::chip::Chip::RV770)
}

/// What a directive of an R700 source says of its program.
fn r700_directive(name: &str, values: &[u32], program: &mut Program) -> Result<(), String> {
    match (name, values) {
        ("gprs", [count]) => program.resources.registers = Some(*count),
        ("stack", [entries]) => program.resources.stack = Some(*entries),
        ("start", [address]) => program.base = *address,
        ("bool", [mask]) => program.state.push(("SQ_BOOL_CONST".to_owned(), *mask)),
        ("loop", [number @ 0..32, value]) => program.state.push((format!("SQ_LOOP_CONST_{number}"), *value)),
        ("const", [bank, first, words @ ..]) => program.constants.push(ConstantBlock {
            bank: *bank,
            offset: first.saturating_mul(4),
            bytes: words.iter().flat_map(|word| word.to_le_bytes()).collect(),
        }),
        _ => match (name.split_once(' '), values) {
            (Some(("stage", stage)), []) => {
                program.stage = Some(stage.parse().map_err(|unknown| format!("{unknown}"))?);
            }
            (Some(("state", register)), [value]) => program.state.push((register.to_owned(), *value)),
            _ => return Err(format!("{} numbers do not fit here", values.len())),
        },
    }
    Ok(())
}

/// The same the other way round.
fn r700_directives(program: &Program) -> String {
    let mut text = String::new();
    if let Some(stage) = program.stage {
        text += &format!(".stage {stage}\n");
    }
    for (name, value) in [(".gprs", program.resources.registers), (".stack", program.resources.stack)] {
        text.extend(value.map(|value| format!("{name} {value}\n")));
    }
    if program.base != 0 {
        text += &format!(".start {}\n", program.base);
    }
    for block in &program.constants {
        let words =
            block.bytes.as_chunks::<4>().0.iter().map(|word| format!(" {:#x}", u32::from_le_bytes(*word)));
        text += &format!(".const {} {}{}\n", block.bank, block.offset / 4, words.collect::<String>());
    }
    for (name, value) in &program.state {
        text += &match (name.as_str(), name.strip_prefix("SQ_LOOP_CONST_")) {
            ("SQ_BOOL_CONST", _) => format!(".bool {value:#x}\n"),
            (_, Some(number)) => format!(".loop {number} {value:#x}\n"),
            (name, None) => format!(".state {name} {value:#x}\n"),
        };
    }
    text
}

/// The Tesla chip of this name; G80, whose instructions all have, when nobody said.
fn tesla_chip(name: Option<&str>) -> reconverge_tesla::inst::Chip {
    name.and_then(reconverge_tesla::inst::Chip::from_name).unwrap_or(reconverge_tesla::inst::Chip::G80)
}

/// The CUDA target of a Tesla chip, for formats that name it.
pub fn cuda_target(target: &Target) -> &'static str {
    tesla_chip(target.chip.as_deref()).cuda_target()
}

fn tesla_stage(target: &Target, program: &Program) -> Result<reconverge_tesla::inst::Stage, TargetError> {
    let stage = program.stage.or(target.stage).unwrap_or(Stage::Compute);
    reconverge_tesla::inst::Stage::of(stage).ok_or(TargetError::Stage(stage))
}

/// What a source says.
#[derive(Clone, Debug, PartialEq)]
pub struct Assembly {
    /// The machine, and the chip where the source says.
    pub target: Target,
    /// The programs: one on R500 and R700, any number on Tesla.
    pub programs: Vec<Program>,
    /// What is allowed but probably not meant.
    pub warnings: Vec<Diagnostic>,
}

/// The programs of a source text. Chip and stage of `target` are for sources that do not say theirs.
///
/// # Errors
/// Everything that is wrong with it.
pub fn assemble(target: &Target, source: &str) -> Result<Assembly, Vec<Diagnostic>> {
    let (isa, chip) = (target.isa, target.chip.as_deref());
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
            let target = Target::new(isa, assembled.chip.as_deref());
            Ok(Assembly { target, programs: vec![assembled.program], warnings: assembled.warnings })
        }
        Isa::R700 => {
            let assembled = reconverge_r700::text::assemble(source, r700_chip(chip))?;
            let mut program = Program::from_words(assembled.words);
            for (directive, values) in &assembled.state {
                r700_directive(directive, values, &mut program).map_err(|why| {
                    vec![Diagnostic::error(Span::default(), format!(".{directive}: {why}"))]
                })?;
            }
            let target = Target { stage: program.stage, ..Target::new(isa, Some(assembled.chip.name)) };
            Ok(Assembly { target, programs: vec![program], warnings: Vec::new() })
        }
        Isa::Tesla => {
            let stage = tesla_stage(target, &Program::default())
                .map_err(|error| vec![Diagnostic::error(Span::default(), error.to_string())])?;
            let assembled = reconverge_tesla::text::assemble(source, tesla_chip(chip), stage)?;
            let stage = match assembled.stage {
                reconverge_tesla::inst::Stage::Vertex => Stage::Vertex,
                reconverge_tesla::inst::Stage::Geometry => Stage::Geometry,
                reconverge_tesla::inst::Stage::Fragment => Stage::Fragment,
                reconverge_tesla::inst::Stage::Compute => Stage::Compute,
            };
            let target = Target { stage: Some(stage), ..Target::new(isa, Some(assembled.chip.name())) };
            let mut programs = assembled.programs;
            programs.iter_mut().for_each(|program| program.stage = Some(stage));
            Ok(Assembly { target, programs, warnings: Vec::new() })
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
    #[error("an instruction of {isa} has {wanted}, not {found}")]
    Count {
        /// The machine.
        isa: Isa,
        /// What would fit.
        wanted: &'static str,
        /// Words given.
        found: usize,
    },
    /// No instruction has these bits.
    #[error("{0}")]
    NoInstruction(String),
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
        Isa::R700 => explain_r700(target, words),
        Isa::Tesla => explain_tesla(target, words),
    }
}

/// One word stands for a short instruction, two for a long one.
fn explain_tesla(target: &Target, words: &[u32]) -> Result<Explained, ExplainError> {
    use reconverge_tesla::decode::{decode, describe, length, row};
    let (chip, stage) = (tesla_chip(target.chip.as_deref()), tesla_stage(target, &Program::default())?);
    let pair = match *words {
        [first] => [first, 0],
        [first, second] => [first, second],
        _ => {
            let wanted = "1 word (short) or 2 words (long)";
            return Err(ExplainError::Count { isa: target.isa, wanted, found: words.len() });
        }
    };
    if length(pair[0]) as usize != words.len() {
        let wanted =
            if words.len() == 1 { "2 words when bit 0 is set" } else { "1 word when bit 0 is clear" };
        return Err(ExplainError::Count { isa: target.isa, wanted, found: words.len() });
    }
    let refused = |error: reconverge_isa::read::NoReading| {
        let digits: Vec<String> = words.iter().map(|word| format!("{word:08x}")).collect();
        ExplainError::NoInstruction(format!("{} on {chip} in {stage}: {error}", digits.join(" ")))
    };
    let row = row(pair, chip, stage).map_err(refused)?;
    let inst = decode(pair, chip, stage).map_err(refused)?;
    let described = describe(pair, chip, stage).map_err(refused)?;
    let joined = u64::from(pair[0]) | u64::from(pair[1]) << 32;
    let fields = described.into_iter().flat_map(|described| {
        runs(described.bits)
            .map(move |(hi, lo)| ExplainedField {
                word: "word".to_owned(),
                index: usize::from(lo / 32),
                name: described.name.to_owned(),
                hi: hi % 32,
                lo: lo % 32,
                value: joined >> lo & (u64::MAX >> (63 - (hi - lo))),
                text: described.text.clone(),
                doc: String::new(),
            })
            .collect::<Vec<_>>()
    });
    let mut fields: Vec<ExplainedField> = fields.collect();
    fields.sort_by_key(|field| (field.index, std::cmp::Reverse(field.hi)));
    let listing = reconverge_tesla::text::Listing { hex: false, structure: false, labels: false };
    let text = reconverge_tesla::text::disassemble(words, 0, chip, stage, listing);
    Ok(Explained {
        words: words.to_vec(),
        text: text.trim().to_owned(),
        fields,
        flow: reconverge_tesla::explain::flow(&inst).into_iter().map(str::to_owned).collect(),
        findings: Vec::new(),
        source: format!("docs/tesla.md, section {}; row {}", row.source, row.id),
    })
}

/// The runs of set bits, each inside one 32-bit word: highest and lowest bit.
fn runs(bits: u64) -> impl Iterator<Item = (u8, u8)> {
    let starts =
        (0..64u8).filter(move |bit| bits >> bit & 1 != 0 && (bit % 32 == 0 || bits >> (bit - 1) & 1 == 0));
    starts.map(move |lo| {
        let hi = (lo..(lo / 32 + 1) * 32).take_while(|bit| bits >> bit & 1 != 0).last().unwrap_or(lo);
        (hi, lo)
    })
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

/// Words to text and back: the words must be the same, and of what the container told, the part that the text has
/// (R500: state and constants; R700: state, registers, stack; Tesla: code address, registers, memory).
///
/// # Errors
/// The first difference, in words.
pub fn round_trip(target: &Target, program: &Program) -> Result<(), String> {
    let text = disassemble(target, program, Listing::default()).map_err(|error| error.to_string())?;
    let back = assemble(target, &text).map_err(|errors| {
        let error = &errors[0];
        let (line, column) = error.span.line_column(&text);
        format!("round trip: line {line}, column {column} of the listing does not assemble: {error}")
    })?;
    let [back] = &back.programs[..] else {
        return Err(format!("round trip: {} programs come back", back.programs.len()));
    };
    if back.words != program.words {
        let differ = back.words.iter().zip(&program.words).position(|(back, word)| back != word);
        let at = differ.unwrap_or(back.words.len().min(program.words.len()));
        return Err(format!(
            "round trip: word {at} comes back as {:08x?}, was {:08x?}",
            back.words.get(at),
            program.words.get(at)
        ));
    }
    let told = match target.isa {
        Isa::R500 => back.state == program.state && back.constants == program.constants,
        Isa::R700 => {
            back.state == program.state && back.resources == program.resources && back.base == program.base
        }
        Isa::Tesla => back.base == program.base && back.resources == program.resources,
    };
    if told { Ok(()) } else { Err("round trip: what the container told comes back differently".to_owned()) }
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
    fn every_name_of_a_chip_belongs_to_one_machine() {
        for isa in Isa::ALL {
            for name in chips(isa).into_iter().flat_map(|chip| [&[chip.name], chip.aliases].concat()) {
                let machines = Isa::ALL.into_iter().filter(|isa| has_chip(*isa, name));
                assert_eq!(machines.collect::<Vec<_>>(), [isa], "{name}");
            }
        }
        assert_eq!(["LATTE", "nva3"].map(isa_of_chip), [Some(Isa::R700), Some(Isa::Tesla)]);
    }

    #[test]
    fn an_unknown_chip_is_refused_with_what_fits() {
        let refused = |isa, chip| Target::new(isa, Some(chip)).checked().unwrap_err().to_string();
        assert_eq!(refused(Isa::R500, "rv770"), "rv770 is a chip of r700, not of r500");
        assert_eq!(
            refused(Isa::R500, "R52"),
            "unknown chip `R52`: did you mean `R520`? r500 has R520, R500, RV515, RV530, R580, RV560, RV570"
        );
    }

    #[test]
    fn bits_are_shown_in_runs_that_no_word_boundary_crosses() {
        assert_eq!(
            runs(0x0000_0003_c000_0105).collect::<Vec<_>>(),
            [(0, 0), (2, 2), (8, 8), (31, 30), (33, 32)]
        );
    }

    #[test]
    fn a_source_for_another_machine_is_refused() {
        let errors = assemble(&Target::new(Isa::R500, None), ".chip RV770\n").unwrap_err();
        assert_eq!(
            errors[0].to_string(),
            "this source is for r700, not for r500 (leave --isa out, or say --isa r700)"
        );
    }
}
