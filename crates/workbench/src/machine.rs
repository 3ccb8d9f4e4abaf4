//! A machine as front ends see it: [`Machine`], one static value each, found by its [`Isa`] with [`machine`].

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;

use reconverge_container::Written;
use reconverge_isa::graph::Graph;
use reconverge_isa::limits::Exceeded;
use reconverge_isa::lint::{Finding, Rule};
use reconverge_isa::program::{Image, Stage};
use reconverge_isa::source::{Diagnostic, closest, lines};
use reconverge_isa::{Isa, Program, Span};
use reconverge_simt::uses::Uses;
use thiserror::Error;

use crate::edit::within;
use crate::launch::MachineLaunch;
use crate::listing::{Line, Listing, Style};
use crate::stats::Conventions;
use crate::{r500, r700, tesla};

/// One of the three machines. Functions that take a [`Target`] read the words as its chip and stage have them.
pub trait Machine: Sync + fmt::Debug {
    /// Its name.
    fn isa(&self) -> Isa;

    /// The unit of its addresses, as listings and traces count them.
    fn unit(&self) -> &'static str;

    /// An address as listings and messages write it: those that count bytes are hexadecimal.
    fn spelled(&self, address: u32) -> String {
        match self.unit() {
            "bytes" => format!("{address:#x}"),
            _ => address.to_string(),
        }
    }

    /// Its chips.
    fn chips(&self) -> Vec<ChipName>;

    /// Whether it has a chip of this name. Case does not count.
    fn has_chip(&self, name: &str) -> bool {
        self.chips().iter().any(|chip| chip.names().any(|known| known.eq_ignore_ascii_case(name)))
    }

    /// Whether two names mean one of its chips. Case does not count.
    fn same_chip(&self, one: &str, other: &str) -> bool {
        let has = |chip: ChipName, name: &str| chip.names().any(|known| known.eq_ignore_ascii_case(name));
        self.chips().into_iter().any(|chip| has(chip, one) && has(chip, other))
    }

    /// The lines before a program's listing in a file that the listing itself does not have: machine, chip, name.
    fn heading(&self, target: &Target, program: &Program) -> String;

    /// The text of a program, which [`Machine::assemble`] takes back, and its lines as data.
    ///
    /// # Errors
    /// A program type that the machine does not have.
    fn disassemble(&self, target: &Target, program: &Program, style: Style) -> Result<Listing, TargetError>;

    /// The text of an image: what its programs share and the programs, each with its heading.
    /// [`Machine::assemble`] takes it back.
    ///
    /// # Errors
    /// A program type that the machine does not have.
    fn image_text(&self, target: &Target, image: &Image, style: Style) -> Result<String, TargetError> {
        let texts = image.programs.iter().map(|program| {
            Ok(self.heading(target, program) + &self.disassemble(target, program, style)?.text)
        });
        Ok(texts.collect::<Result<Vec<_>, _>>()?.join("\n"))
    }

    /// The programs of a source text and what they share. Chip and stage of `target` are for sources that do not state
    /// theirs.
    ///
    /// # Errors
    /// Every error of the source.
    fn assemble(&self, target: &Target, source: &str) -> Result<Assembled, Vec<Diagnostic>>;

    /// Whether `back`, which comes from the listing of `program`, has what a listing keeps besides the words.
    fn keeps(&self, program: &Program, back: &Program) -> bool;

    /// Whether `back`, which comes from the text of `image`, has what such a text keeps. The error is the first
    /// difference.
    ///
    /// # Errors
    /// What differs.
    fn keeps_image(&self, image: &Image, back: &Image) -> Result<(), String> {
        same_programs(self, image, back)
    }

    /// Explains one instruction.
    ///
    /// # Errors
    /// A number of words that no instruction has, or words that are no instruction.
    fn explain(&self, target: &Target, words: &[u32]) -> Result<Explanation, ExplainError>;

    /// Explains the instruction of `program` at `address`, in the machine's own unit: the words that stand there in its
    /// listing. A machine whose words mean different things in different places overrides it.
    ///
    /// # Errors
    /// No instruction starts there, or the words are none.
    fn explain_at(
        &self,
        target: &Target,
        program: &Program,
        address: u32,
    ) -> Result<Explanation, ExplainError> {
        let listing = self.disassemble(target, program, Style::default())?;
        self.explain(target, &line_at(&listing.lines(&program.words), target.isa, address)?.words)
    }

    /// The text of one instruction as a program of its own, and the address at which it is there.
    ///
    /// # Errors
    /// What is wrong with the text, with places in the text.
    fn one(&self, target: &Target, text: &str) -> Result<(Program, u32), Vec<Diagnostic>> {
        alone(target, "", text)
    }

    /// What is malformed in a program: words that are no instruction where one is expected, clauses that do not close.
    /// Such words survive the round trip all the same.
    ///
    /// # Errors
    /// A program type that the machine does not have.
    fn faults(&self, target: &Target, program: &Program) -> Result<Vec<Finding>, TargetError>;

    /// What the words are rather than a program of this machine, as far as they show it. Raw words have no mark of their
    /// own; what this gives is a reason to ask again, not a proof.
    fn mistaken(&self, target: &Target, program: &Program) -> Option<String> {
        let faulty = |program: &Program| self.faults(target, program).is_ok_and(|faults| !faults.is_empty());
        (faulty(program) && !faulty(&swapped(program))).then(|| OTHER_ORDER.to_owned())
    }

    /// What the documents forbid in a program, as far as its words alone show it.
    ///
    /// # Errors
    /// A program that cannot be loaded.
    fn lint(&self, target: &Target, program: &Program) -> Result<Vec<Finding>, TargetError>;

    /// Every rule of [`Machine::lint`] and [`Machine::faults`].
    fn rules(&self) -> Vec<&'static Rule>;

    /// The control flow of a program.
    ///
    /// # Errors
    /// A program that cannot be loaded.
    fn graph(&self, target: &Target, program: &Program) -> Result<Graph, TargetError>;

    /// What each instruction of a program reads and writes, by its address; several where it issues several operations
    /// side by side.
    ///
    /// # Errors
    /// A program that cannot be loaded.
    fn uses(&self, target: &Target, program: &Program) -> Result<BTreeMap<u32, Vec<Uses>>, TargetError>;

    /// The bytes of a file in the machine's own container format of this name; `None` where the machine has no such
    /// format.
    ///
    /// # Errors
    /// What the format cannot hold.
    fn write(
        &self,
        target: &Target,
        image: &Image,
        format: &str,
    ) -> Option<Result<Written<Vec<u8>>, reconverge_container::Error>>;

    /// What the machine's tables and manual say about the instructions of a program, for counts.
    ///
    /// # Errors
    /// A program that cannot be loaded.
    fn conventions(&self, target: &Target, program: &Program) -> Result<Conventions, TargetError>;

    /// The container formats that [`Machine::write`] knows.
    fn containers(&self) -> &'static [&'static str];

    /// The machine's part of a launch file.
    ///
    /// # Errors
    /// An unknown field, or a value of another type than the field's, with its path.
    fn launch(&self, table: toml::Table) -> Result<Arc<dyn MachineLaunch>, toml::de::Error>;
}

/// What a program is whose words read well only with their bytes in the other order.
pub(crate) const OTHER_ORDER: &str =
    "the bytes of each word seem to be in the other order: --endian says which they have";

/// The program with the bytes of each word in the other order.
pub(crate) fn swapped(program: &Program) -> Program {
    Program { words: program.words.iter().map(|word| word.swap_bytes()).collect(), ..program.clone() }
}

static MACHINES: [&dyn Machine; 3] = [&r500::R500, &r700::R700, &tesla::Tesla];

/// The machine of a name.
pub fn machine(isa: Isa) -> &'static dyn Machine {
    MACHINES.into_iter().find(|machine| machine.isa() == isa).unwrap_or(MACHINES[0])
}

// ---- Targets

/// What decides how words are read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Target {
    /// The machine.
    pub isa: Isa,
    /// The chip, where it matters and is known.
    pub chip: Option<String>,
    /// The step of the pipeline, for programs that do not state theirs. It decides what some Tesla words mean.
    pub stage: Option<Stage>,
}

/// A chip as front ends know it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ChipName {
    /// Its name.
    pub name: &'static str,
    /// Other names that mean it.
    pub aliases: &'static [&'static str],
}

impl ChipName {
    /// The name and the aliases.
    pub fn names(self) -> impl Iterator<Item = &'static str> {
        std::iter::once(self.name).chain(self.aliases.iter().copied())
    }
}

/// A target that cannot be.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum TargetError {
    /// The program has more of something than a limit allows.
    #[error(transparent)]
    Exceeded(Exceeded),
    /// The machine is unknown.
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
    /// The machine has no such programs.
    #[error("{stage} is no program type of {isa}: {isa} has {known}")]
    Stage {
        /// The program type.
        stage: Stage,
        /// The machine.
        isa: Isa,
        /// What it has.
        known: &'static str,
    },
    /// The program cannot be loaded.
    #[error("{0}")]
    Program(String),
}

fn hint(more: &str) -> String {
    if more.is_empty() { String::new() } else { format!(", or {more}") }
}

impl Target {
    /// A machine, and a chip where it is known.
    pub fn new(isa: Isa, chip: Option<&str>) -> Target {
        Target { isa, chip: chip.map(str::to_owned), stage: None }
    }

    /// The machine.
    pub fn machine(&self) -> &'static dyn Machine {
        machine(self.isa)
    }

    /// Refuses a chip that the machine does not have.
    ///
    /// # Errors
    /// The chip belongs to another machine, or to none.
    pub fn checked(self) -> Result<Target, TargetError> {
        let machine = self.machine();
        let Some(chip) = self.chip.clone().filter(|chip| !machine.has_chip(chip)) else { return Ok(self) };
        if let Some(belongs) = isa_of_chip(&chip) {
            return Err(TargetError::OtherChip { chip, belongs, isa: self.isa });
        }
        let names: Vec<&str> = machine.chips().into_iter().flat_map(ChipName::names).collect();
        let meant = closest(&chip, names.iter().copied());
        let meant = meant.map(|meant| format!("did you mean `{meant}`? ")).unwrap_or_default();
        Err(TargetError::UnknownChip { help: format!("{meant}{} has {}", self.isa, names.join(", ")), chip })
    }
}

/// The machine that a chip belongs to. Case does not count.
pub fn isa_of_chip(chip: &str) -> Option<Isa> {
    MACHINES.into_iter().find(|machine| machine.has_chip(chip)).map(Machine::isa)
}

/// Whether two names mean one chip of a machine. Case does not count.
pub fn same_chip(isa: Isa, one: &str, other: &str) -> bool {
    machine(isa).same_chip(one, other)
}

/// The machine that an assembler source is for: its `.isa` or `.chip` line.
pub fn isa_of_source(source: &str) -> Option<Isa> {
    directives(source).find_map(|(name, value, _)| match name {
        ".isa" => value.parse().ok(),
        ".chip" => isa_of_chip(value),
        _ => None,
    })
}

/// The lines of a source that begin with a directive: its name, its first word, and the bytes of both.
fn directives(source: &str) -> impl Iterator<Item = (&str, &str, Span)> {
    lines(source).filter_map(move |(start, line)| {
        let mut words = line.split_whitespace();
        let (name, value) = (words.next().filter(|name| name.starts_with('.'))?, words.next()?);
        let at = start + (line.len() - line.trim_start().len());
        let end = start + (value.as_ptr() as usize - line.as_ptr() as usize) + value.len();
        Some((name, value, Span::new(at, end)))
    })
}

// ---- Text

/// What a source states.
#[derive(Clone, Debug, PartialEq)]
pub struct Assembled {
    /// The machine, and the chip where the source states one.
    pub target: Target,
    /// The programs and what they share.
    pub image: Image,
    /// What is allowed but probably not meant.
    pub warnings: Vec<Diagnostic>,
    /// For each program the addresses of its instructions and their places in the text.
    pub lines: Vec<Vec<(u32, usize)>>,
}

impl Assembled {
    /// A source that states programs and nothing that they share.
    pub(crate) fn of(target: Target, programs: Vec<Program>, warnings: Vec<Diagnostic>) -> Assembled {
        let (isa, chip) = (Some(target.isa), target.chip.clone());
        Assembled {
            target,
            image: Image { format: "source", isa, chip, programs, ..Image::default() },
            warnings,
            lines: Vec::new(),
        }
    }

    /// With the places of the instructions in the text.
    pub(crate) fn with_lines(self, lines: Vec<Vec<(u32, usize)>>) -> Assembled {
        Assembled { lines, ..self }
    }
}

/// The programs of a source text for the machine of `target`.
///
/// # Errors
/// Every error of the source; also a source that names another machine.
pub fn assemble(target: &Target, source: &str) -> Result<Assembled, Vec<Diagnostic>> {
    let isa = target.isa;
    if let Some(stated) = isa_of_source(source).filter(|stated| *stated != isa) {
        let at = directives(source).find(|(name, _, _)| [".isa", ".chip"].contains(name));
        let message = format!("this source is for {stated}, not for {isa}");
        let help = format!("leave --isa out, or say --isa {stated}");
        return Err(vec![Diagnostic::error(at.map_or(Span::default(), |(_, _, at)| at), message).help(help)]);
    }
    let other = |(name, stated, at): (&str, &str, Span)| {
        let asked = target.chip.as_deref().filter(|asked| !same_chip(isa, stated, asked))?;
        (name == ".chip" && isa_of_chip(stated) == Some(isa)).then(|| {
            let message = format!("this source is for {stated}, not for {asked}");
            Diagnostic::error(at, message).help(format!("leave --chip out, or say --chip {stated}"))
        })
    };
    if let Some(error) = directives(source).find_map(other) {
        return Err(vec![error]);
    }
    machine(isa).assemble(target, source)
}

/// Words to text and back: the words must be equal, and of what the container states, the part that a listing has
/// (R500: state and constants; R700: state, registers, stack; Tesla: code address, registers, memory).
///
/// # Errors
/// The first difference, in words; or a target that cannot be.
pub fn round_trip(target: &Target, program: &Program) -> Result<(), String> {
    let machine = machine(target.isa);
    let listing =
        target.clone().checked().and_then(|_| machine.disassemble(target, program, Style::default()));
    let listing = listing.map_err(|error| error.to_string())?;
    let back = assemble(target, &listing.text).map_err(|errors| {
        let error = &errors[0];
        let (line, column) = error.span.line_column(&listing.text);
        format!("round trip: line {line}, column {column} of the listing does not assemble: {error}")
    })?;
    let [back] = &back.image.programs[..] else {
        return Err(format!("round trip: {} programs come back", back.image.programs.len()));
    };
    same_program(machine, program, back).map_err(|why| format!("round trip: {why}"))
}

/// An image to text and back: the same programs, and of what they share and what the container states, the part that
/// the machine's texts have (Tesla: all of it). So for every style of text.
///
/// # Errors
/// The first difference, in words; or a target that cannot be.
pub fn round_trip_image(target: &Target, image: &Image) -> Result<(), String> {
    let machine = machine(target.isa);
    target.clone().checked().map_err(|error| error.to_string())?;
    for style in [Style::default(), Style { hex: true, structure: true, idioms: true, notes: true }] {
        let text = machine.image_text(target, image, style).map_err(|error| error.to_string())?;
        let back = assemble(target, &text).map_err(|errors| {
            let error = &errors[0];
            let (line, column) = error.span.line_column(&text);
            format!("round trip: line {line}, column {column} of the file's text does not assemble: {error}")
        })?;
        machine.keeps_image(image, &back.image).map_err(|why| format!("round trip of the file: {why}"))?;
    }
    Ok(())
}

fn same_programs<M: Machine + ?Sized>(machine: &M, image: &Image, back: &Image) -> Result<(), String> {
    if image.programs.len() != back.programs.len() {
        return Err(format!("{} programs come back, of {}", back.programs.len(), image.programs.len()));
    }
    image.programs.iter().zip(&back.programs).enumerate().try_for_each(|(number, (program, back))| {
        let name = program.name.clone().unwrap_or_else(|| number.to_string());
        same_program(machine, program, back).map_err(|why| format!("program {name}: {why}"))
    })
}

fn same_program<M: Machine + ?Sized>(machine: &M, program: &Program, back: &Program) -> Result<(), String> {
    if back.words != program.words {
        let differ = back.words.iter().zip(&program.words).position(|(back, word)| back != word);
        let at = differ.unwrap_or(back.words.len().min(program.words.len()));
        return Err(format!(
            "word {at} comes back as {:08x?}, was {:08x?}",
            back.words.get(at),
            program.words.get(at)
        ));
    }
    match machine.keeps(program, back) {
        true => Ok(()),
        false => Err("what the container states comes back differently".to_owned()),
    }
}

/// The last instruction of a program that `context` begins and `text`, one instruction, ends.
///
/// # Errors
/// What is wrong with the text, with places in the text.
pub(crate) fn alone(target: &Target, context: &str, text: &str) -> Result<(Program, u32), Vec<Diagnostic>> {
    let machine = target.machine();
    let assembled = machine.assemble(target, &format!("{context}{text}\n"));
    let place = context.len()..context.len() + text.len();
    let assembled = assembled.map_err(|errors| within(errors, place))?;
    let whole = |message: String| vec![Diagnostic::error(Span::new(0, text.len()), message)];
    let Some(program) = assembled.image.programs.into_iter().next() else {
        return Err(whole("this is no instruction".to_owned()));
    };
    let listing = machine.disassemble(target, &program, Style::default());
    let lines = listing.map_err(|error| whole(error.to_string()))?.lines(&program.words);
    // Zeros fill what lies between a clause and the instruction that launches it.
    let behind = lines.iter().filter(|line| line.address.is_some()).skip(context.lines().count());
    let of_text: Vec<u32> = behind
        .filter(|line| line.words.iter().any(|word| *word != 0) || context.is_empty())
        .filter_map(|line| line.address)
        .collect();
    match of_text[..] {
        [address] => Ok((program, address)),
        [] => Err(whole("this is no instruction".to_owned())),
        _ => Err(whole("these are several instructions: give one".to_owned())),
    }
}

/// The line at an address.
///
/// # Errors
/// No instruction starts there; the nearest that do are in the message.
pub(crate) fn line_at(lines: &[Line], isa: Isa, address: u32) -> Result<&Line, ExplainError> {
    if let Some(line) = lines.iter().find(|line| line.address == Some(address)) {
        return Ok(line);
    }
    let starts = || lines.iter().filter_map(|line| line.address);
    let near =
        [starts().filter(|start| *start < address).max(), starts().filter(|start| *start > address).min()];
    Err(ExplainError::NoStart { isa, address, near: near.into_iter().flatten().collect() })
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
pub struct Explanation {
    /// The words.
    pub words: Vec<u32>,
    /// As the disassembler prints it.
    pub text: String,
    /// Its fields.
    pub fields: Vec<ExplainedField>,
    /// What it computes, in sentences.
    pub meaning: Vec<String>,
    /// What it does to the flow of lanes.
    pub flow: Vec<String>,
    /// What the documents forbid about it.
    pub findings: Vec<String>,
    /// Where it is documented.
    pub source: String,
}

/// Words that are not one instruction.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[non_exhaustive]
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
    /// No instruction starts at an address of a program.
    #[error("no instruction starts at {}: {}", machine(*.isa).spelled(*.address), nearest(*.isa, .near))]
    NoStart {
        /// The machine.
        isa: Isa,
        /// The address asked for.
        address: u32,
        /// The addresses before and behind it at which instructions start.
        near: Vec<u32>,
    },
    /// The machine.
    #[error(transparent)]
    Target(#[from] TargetError),
}

fn nearest(isa: Isa, near: &[u32]) -> String {
    match near {
        [] => "the program has no instruction".to_owned(),
        [one] => format!("the nearest starts at {}", machine(isa).spelled(*one)),
        _ => format!(
            "the nearest start at {}",
            near.iter().map(|at| machine(isa).spelled(*at)).collect::<Vec<_>>().join(" and ")
        ),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_instruction_is_explained_where_it_stands_in_its_program() {
        let target = Target::new(Isa::Tesla, None);
        let source = "nop\nadd b32 $r0 $r1 $r2\nexit nop\n";
        let program = assemble(&target, source).unwrap().image.programs.remove(0);
        let at = |address| machine(Isa::Tesla).explain_at(&target, &program, address);
        let first = at(0).unwrap();
        let second = first.words.len() as u32 * 4;
        assert_eq!(
            at(second).unwrap().words,
            program.words[first.words.len()..][..at(second).unwrap().words.len()]
        );
        assert!(at(second).unwrap().text.contains("add"), "{:?}", at(second));
        let refused = at(2).unwrap_err().to_string();
        assert_eq!(
            refused,
            format!("no instruction starts at 0x2: the nearest start at 0x0 and {second:#x}")
        );
    }

    #[test]
    fn a_chip_or_a_source_names_its_machine() {
        assert_eq!(isa_of_chip("rv770"), Some(Isa::R700));
        assert_eq!(isa_of_chip("sm_11"), Some(Isa::Tesla));
        assert_eq!(isa_of_chip("GF100"), None);
        assert!(same_chip(Isa::Tesla, "a3", "0xA3") && same_chip(Isa::Tesla, "nva3", "GT215"));
        assert!(!same_chip(Isa::Tesla, "a3", "50") && !same_chip(Isa::Tesla, "x", "x"));
        assert_eq!(["LATTE", "nva3"].map(isa_of_chip), [Some(Isa::R700), Some(Isa::Tesla)]);
        assert_eq!(isa_of_source("; x\n.chip R580\nOUT nop"), Some(Isa::R500));
        assert_eq!(isa_of_source(".isa tesla"), Some(Isa::Tesla));
    }

    #[test]
    fn every_name_of_a_chip_belongs_to_one_machine() {
        for isa in Isa::ALL {
            for name in machine(isa).chips().into_iter().flat_map(ChipName::names) {
                let machines = Isa::ALL.into_iter().filter(|isa| machine(*isa).has_chip(name));
                assert_eq!(machines.collect::<Vec<_>>(), [isa], "{name}");
            }
        }
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
    fn a_source_for_another_machine_is_refused() {
        let errors = assemble(&Target::new(Isa::R500, None), ".chip RV770\n").unwrap_err();
        assert_eq!(
            errors[0].to_string(),
            "this source is for r700, not for r500 (leave --isa out, or say --isa r700)"
        );
    }
}
