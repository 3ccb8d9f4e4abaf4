//! Defines [`Machine`], the interface through which front ends use a machine. Each machine has one static value that
//! implements the interface.

use std::fmt;
use std::ops::Range;
use std::sync::Arc;

use reconverge_container::Written;
use reconverge_isa::forms::Form;
use reconverge_isa::graph::Graph;
use reconverge_isa::lint::{Finding, Rule};
use reconverge_isa::program::Image;
use reconverge_isa::source::{Diagnostic, DirectiveRow};
use reconverge_isa::{Isa, Program, Span};
use reconverge_simt::uses::UsesAt;
use thiserror::Error;

use crate::listing::{Line, Listing, Style};
use crate::request::MachineLaunch;
use crate::stats::Conventions;
use crate::target::{Target, TargetError};

/// One of the three machines. Functions that take a [`Target`] interpret words for the target's chip and stage.
pub trait Machine: Sync + fmt::Debug {
    /// Returns the machine's identifier.
    fn isa(&self) -> Isa;

    /// Returns the lines that state the machine, chip and name of a program. A listing does not contain these lines.
    fn heading(&self, target: &Target, program: &Program) -> String;

    /// Disassembles a program. The listing has the lines and the text of the program. [`Machine::assemble`] accepts the
    /// text.
    ///
    /// # Errors
    /// Returns an error if the machine does not have the program's type.
    fn disassemble(&self, target: &Target, program: &Program, style: Style) -> Result<Listing, TargetError>;

    /// Disassembles an image. The text has the shared data of all programs first. Each program follows with its
    /// heading. [`Machine::assemble`] accepts the text.
    ///
    /// # Errors
    /// Returns an error if the machine does not have the type of one of the programs.
    fn image_text(&self, target: &Target, image: &Image, style: Style) -> Result<String, TargetError> {
        let texts = image.programs.iter().map(|program| {
            Ok(self.heading(target, program) + &self.disassemble(target, program, style)?.text)
        });
        Ok(texts.collect::<Result<Vec<_>, _>>()?.join("\n"))
    }

    /// Assembles a source text. Returns the programs in the text and the data that the programs share. If the source
    /// does not state a chip or a stage, the chip or stage of `target` applies.
    ///
    /// # Errors
    /// Returns every error in the source.
    fn assemble(&self, target: &Target, source: &str) -> Result<Assembled, Vec<Diagnostic>>;

    /// Returns the legal forms of a mnemonic in programs of the target's stage. Each form has an example. If the target
    /// does not have a stage, returns the forms for all stages. Returns an empty list for an unknown mnemonic.
    fn forms(&self, target: &Target, mnemonic: &str) -> Vec<Form>;

    /// Returns all mnemonics in sorted order.
    fn mnemonics(&self) -> Vec<&'static str>;

    /// Returns the directives of this machine. [`reconverge_isa::expand`] lists the directives that all machines share.
    fn directives(&self) -> Vec<DirectiveRow>;

    /// Returns whether `program` and `back` are equal in all properties that a listing preserves. The comparison does
    /// not include the words. `back` is the result of assembling the listing of `program`.
    fn keeps(&self, program: &Program, back: &Program) -> bool;

    /// Checks that `image` and `back` are equal in all properties that a text preserves. `back` is the result of
    /// assembling the text of `image`.
    ///
    /// # Errors
    /// Returns a description of the first difference.
    fn keeps_image(&self, image: &Image, back: &Image) -> Result<(), String> {
        if image.programs.len() != back.programs.len() {
            let [expected, found] = [image, back].map(|image| image.programs.len());
            return Err(format!("expected {expected} programs from the assembled text, found {found}"));
        }
        image.programs.iter().zip(&back.programs).enumerate().try_for_each(|(number, (program, back))| {
            let name = program.name.clone().unwrap_or_else(|| number.to_string());
            same_program(self, program, back).map_err(|why| format!("program {name}: {why}"))
        })
    }

    /// Explains one instruction.
    ///
    /// # Errors
    /// Returns an error if the number of words is wrong, or if the words do not encode an instruction.
    fn explain(&self, target: &Target, words: &[u32]) -> Result<Explanation, ExplainError>;

    /// Explains the instruction of `program` at `address`, which is in the machine's address unit. By default, the
    /// method explains the words that the listing has at that address. A machine overrides this method if the meaning
    /// of words depends on their position.
    ///
    /// # Errors
    /// Returns an error if no instruction starts at `address`, or if the words at `address` do not encode an
    /// instruction.
    fn explain_at(
        &self,
        target: &Target,
        program: &Program,
        address: u32,
    ) -> Result<Explanation, ExplainError> {
        let listing = self.disassemble(target, program, Style::default())?;
        self.explain(target, &line_at(&listing.lines(&program.words), target.isa, address)?.words)
    }

    /// Assembles one instruction. Returns a complete program with the instruction. Also returns the address of the
    /// instruction in the program.
    ///
    /// # Errors
    /// Returns the errors in the text, with their positions.
    fn one(&self, target: &Target, text: &str) -> Result<(Program, u32), Vec<Diagnostic>> {
        alone(self, target, "", text)
    }

    /// Returns the malformed parts of a program. Examples of malformed parts are a clause without an end, and words
    /// that do not encode an instruction. The text of a program preserves all words, even malformed words.
    ///
    /// # Errors
    /// Returns an error if the machine does not have the program's type.
    fn faults(&self, target: &Target, program: &Program) -> Result<Vec<Finding>, TargetError>;

    /// If the words do not look like a program of this machine, returns a hint about the possible meaning of the words.
    /// Words do not state their machine, so the hint is a guess.
    fn mistaken(&self, target: &Target, program: &Program) -> Option<String> {
        let faulty = |program: &Program| self.faults(target, program).is_ok_and(|faults| !faults.is_empty());
        (faulty(program) && !faulty(&swapped(program))).then(|| OTHER_ORDER.to_owned())
    }

    /// Returns the violations of documented rules that can be detected from the words of a program.
    ///
    /// # Errors
    /// Returns an error if the program cannot be loaded.
    fn lint(&self, target: &Target, program: &Program) -> Result<Vec<Finding>, TargetError>;

    /// Returns every rule that [`Machine::lint`] and [`Machine::faults`] check.
    fn rules(&self) -> Vec<&'static Rule>;

    /// Returns the control flow graph of a program.
    ///
    /// # Errors
    /// Returns an error if the program cannot be loaded.
    fn graph(&self, target: &Target, program: &Program) -> Result<Graph, TargetError>;

    /// For each instruction of a program, returns the registers that the instruction reads and writes. The address of
    /// the instruction is the key. If an instruction issues several operations in parallel, the result has one entry
    /// per operation.
    ///
    /// # Errors
    /// Returns an error if the program cannot be loaded.
    fn uses(&self, target: &Target, program: &Program) -> Result<UsesAt, TargetError>;

    /// Returns the bytes of a file in the container format `format`. Returns `None` if the machine does not have this
    /// format.
    ///
    /// # Errors
    /// Returns an error if the format cannot hold the image.
    fn write(
        &self,
        target: &Target,
        image: &Image,
        format: &str,
    ) -> Option<Result<Written<Vec<u8>>, reconverge_container::Error>>;

    /// Returns the properties of a program's instructions that statistics need for counting. The properties come from
    /// the machine's tables and manual.
    ///
    /// # Errors
    /// Returns an error if the program cannot be loaded.
    fn conventions(&self, target: &Target, program: &Program) -> Result<Conventions, TargetError>;

    /// Returns the numbers of registers and stack entries that a program needs, if the machine can compute the numbers.
    fn needs(&self, _target: &Target, _program: &Program) -> Needs {
        Needs::default()
    }

    /// Returns the container formats that [`Machine::write`] supports.
    fn containers(&self) -> &'static [&'static str];

    /// Parses the fields of a launch file that belong to the machine.
    ///
    /// # Errors
    /// If a field is unknown, or the value of a field has the wrong type, returns an error with the name of the field.
    fn launch(&self, fields: toml::Deserializer<'_>) -> Result<Arc<dyn MachineLaunch>, toml::de::Error>;
}

/// Hint that a program becomes valid if the bytes of each word are reversed.
pub(crate) const OTHER_ORDER: &str =
    "the bytes of each word seem to be in the other order; state it with --endian";

/// Returns the program with the bytes of each word reversed.
pub(crate) fn swapped(program: &Program) -> Program {
    Program { words: program.words.iter().map(|word| word.swap_bytes()).collect(), ..program.clone() }
}

/// Number of registers and stack entries that a program needs. Both numbers are computed from the program's words.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Needs {
    /// Number of registers per lane.
    pub registers: Option<u32>,
    /// Number of stack entries.
    pub stack: Option<u32>,
}

/// Result of assembling a source.
#[derive(Clone, Debug, PartialEq)]
pub struct Assembled {
    /// The machine with the chip, if the source states a chip.
    pub target: Target,
    /// The programs, and the data that the programs share.
    pub image: Image,
    /// Warnings about legal text that is probably a mistake.
    pub warnings: Vec<Diagnostic>,
    /// The instructions of each program. An entry has the address of an instruction, and the byte position of the
    /// instruction in the text.
    pub lines: Vec<Vec<(u32, usize)>>,
}

impl Assembled {
    /// Returns the result for a source with these programs and without shared data. `lines` has the positions of the
    /// programs' instructions. The target has a stage only if the source has a single program.
    ///
    /// # Errors
    /// Returns an error if the machine does not have this chip.
    pub(crate) fn of(
        isa: Isa,
        chip: Option<&str>,
        programs: Vec<Program>,
        lines: Vec<Vec<(u32, usize)>>,
    ) -> Result<Assembled, Vec<Diagnostic>> {
        let stage = match &programs[..] {
            [only] => only.stage,
            _ => None,
        };
        let target = Target { stage, ..Target::new(isa, chip).map_err(in_source)? };
        let (isa, chip) = (Some(isa), chip.map(str::to_owned));
        let image = Image { format: "source", isa, chip, programs, ..Image::default() };
        Ok(Assembled { target, image, warnings: Vec::new(), lines })
    }
}

pub(crate) fn same_program<M: Machine + ?Sized>(
    machine: &M,
    program: &Program,
    back: &Program,
) -> Result<(), String> {
    if back.words != program.words {
        let differ = back.words.iter().zip(&program.words).position(|(back, word)| back != word);
        let at = differ.unwrap_or(back.words.len().min(program.words.len()));
        return Err(format!(
            "word {at} of the assembled text: expected {:08x?}, found {:08x?}",
            program.words.get(at),
            back.words.get(at)
        ));
    }
    match machine.keeps(program, back) {
        true => Ok(()),
        false => {
            Err("the properties that the container states differ from those of the assembled text".to_owned())
        }
    }
}

/// Converts an error about a target to an error about the whole source.
pub(crate) fn in_source(error: TargetError) -> Vec<Diagnostic> {
    vec![Diagnostic::error(Span::default(), error.to_string())]
}

/// Assembles the text `context`, followed by `text`. `text` must be one instruction. Returns the program, and the
/// address of this instruction.
///
/// # Errors
/// Returns the errors in `text`, with their positions.
pub(crate) fn alone<M: Machine + ?Sized>(
    machine: &M,
    target: &Target,
    context: &str,
    text: &str,
) -> Result<(Program, u32), Vec<Diagnostic>> {
    let assembled = machine.assemble(target, &format!("{context}{text}\n"));
    let place = context.len()..context.len() + text.len();
    let assembled = assembled.map_err(|errors| within(errors, place))?;
    let whole = |message: String| vec![Diagnostic::error(Span::new(0, text.len()), message)];
    let Some(program) = assembled.image.programs.into_iter().next() else {
        return Err(whole("expected an instruction".to_owned()));
    };
    let listing = machine.disassemble(target, &program, Style::default());
    let lines = listing.map_err(|error| whole(error.to_string()))?.lines(&program.words);
    // The assembler may insert zeros between a clause and the control-flow instruction that starts the clause. The
    // zeros are not part of `text`.
    let behind = lines.iter().filter(|line| line.address.is_some()).skip(context.lines().count());
    let of_text: Vec<u32> = behind
        .filter(|line| line.words.iter().any(|word| *word != 0) || context.is_empty())
        .filter_map(|line| line.address)
        .collect();
    match of_text[..] {
        [address] => Ok((program, address)),
        [] => Err(whole("expected an instruction".to_owned())),
        _ => Err(whole("expected one instruction, found several".to_owned())),
    }
}

/// Returns the errors that lie inside a part of a source. The positions of these errors are relative to the part. If no
/// error lies inside the part, returns all errors, and the position of each error is the whole part.
pub(crate) fn within(errors: Vec<Diagnostic>, part: Range<usize>) -> Vec<Diagnostic> {
    let inside = |error: &Diagnostic| part.start <= error.span.start && error.span.start <= part.end;
    let any = errors.iter().any(inside);
    let place = |place: usize| place.clamp(part.start, part.end) - part.start;
    let moved = |error: Diagnostic| {
        let span = match any {
            true => Span::new(place(error.span.start), place(error.span.end)),
            false => Span::new(0, part.len()),
        };
        Diagnostic { span, ..error }
    };
    errors.into_iter().filter(|error| !any || inside(error)).map(moved).collect()
}

/// Returns the line of the instruction at an address.
///
/// # Errors
/// If no instruction starts at this address, returns an error that names the nearest instructions.
pub(crate) fn line_at(lines: &[Line], isa: Isa, address: u32) -> Result<&Line, ExplainError> {
    if let Some(line) = lines.iter().find(|line| line.address == Some(address)) {
        return Ok(line);
    }
    let starts = || lines.iter().filter_map(|line| line.address);
    let near =
        [starts().filter(|start| *start < address).max(), starts().filter(|start| *start > address).min()];
    Err(ExplainError::NoStart { isa, address, near: near.into_iter().flatten().collect() })
}

/// A field of an explained instruction.
#[derive(Clone, Debug, PartialEq, Eq, serde::Serialize)]
pub struct ExplainedField {
    /// The manual's name for the word that contains the field.
    pub word: String,
    /// Index of the word that contains the field, among the words of the instruction.
    pub index: usize,
    /// The manual's name for the field.
    pub name: String,
    /// Highest bit of the field.
    pub hi: u8,
    /// Lowest bit of the field.
    pub lo: u8,
    /// Value of the field, shifted to bit 0.
    pub value: u64,
    /// Value of the field as text.
    pub text: String,
    /// Meaning of the field. The text may be empty.
    pub doc: String,
}

/// Explanation of one instruction.
#[derive(Clone, Debug, PartialEq, Eq, serde::Serialize)]
pub struct Explanation {
    /// The words of the instruction.
    pub words: Vec<u32>,
    /// Text of the instruction from the disassembler.
    pub text: String,
    /// The fields of the instruction's words.
    pub fields: Vec<ExplainedField>,
    /// Sentences that describe the computation of the instruction.
    pub meaning: Vec<String>,
    /// Sentences that describe how the instruction affects control flow.
    pub flow: Vec<String>,
    /// The documented rules that the instruction violates.
    pub findings: Vec<String>,
    /// The document that describes the instruction.
    pub source: String,
}

/// The reason why words cannot be explained as one instruction.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum ExplainError {
    /// The number of words is wrong.
    #[error("expected {wanted} for an instruction of {isa}, found {found}")]
    Count {
        /// The machine.
        isa: Isa,
        /// Description of the legal numbers of words.
        wanted: &'static str,
        /// Number of words found.
        found: usize,
    },
    /// The words do not encode an instruction. The field is the reason.
    #[error("{0}")]
    NoInstruction(String),
    /// No instruction of the program starts at the address.
    #[error("no instruction starts at {}: {}", .isa.spelled(*.address), nearest(*.isa, .near))]
    NoStart {
        /// The machine.
        isa: Isa,
        /// The requested address.
        address: u32,
        /// The addresses of the nearest instructions before and after the requested address.
        near: Vec<u32>,
    },
    /// The target is invalid, or the program cannot be disassembled.
    #[error(transparent)]
    Target(#[from] TargetError),
}

fn nearest(isa: Isa, near: &[u32]) -> String {
    match near {
        [] => "the program has no instruction".to_owned(),
        [one] => format!("the nearest starts at {}", isa.spelled(*one)),
        _ => format!(
            "the nearest start at {}",
            near.iter().map(|at| isa.spelled(*at)).collect::<Vec<_>>().join(" and ")
        ),
    }
}
