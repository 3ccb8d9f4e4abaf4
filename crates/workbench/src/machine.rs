//! A machine as front ends see it: [`Machine`], one static value each.

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

/// One of the three machines. Functions that take a [`Target`] read the words as its chip and stage have them.
pub trait Machine: Sync + fmt::Debug {
    /// Its name.
    fn isa(&self) -> Isa;

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

    /// The legal forms of a mnemonic in programs of the target's stage (of any type when absent), with an example of each; none
    /// for another word.
    fn forms(&self, target: &Target, mnemonic: &str) -> Vec<Form>;

    /// All mnemonics, sorted.
    fn mnemonics(&self) -> Vec<&'static str>;

    /// The directives of the text of the machine. The directives of all machines are in [`reconverge_isa::expand`].
    fn directives(&self) -> Vec<DirectiveRow>;

    /// Whether `back`, which comes from the listing of `program`, has what a listing keeps besides the words.
    fn keeps(&self, program: &Program, back: &Program) -> bool;

    /// Whether `back`, which comes from the text of `image`, has what such a text keeps. The error is the first
    /// difference.
    ///
    /// # Errors
    /// What differs.
    fn keeps_image(&self, image: &Image, back: &Image) -> Result<(), String> {
        if image.programs.len() != back.programs.len() {
            return Err(format!("{} programs come back, of {}", back.programs.len(), image.programs.len()));
        }
        image.programs.iter().zip(&back.programs).enumerate().try_for_each(|(number, (program, back))| {
            let name = program.name.clone().unwrap_or_else(|| number.to_string());
            same_program(self, program, back).map_err(|why| format!("program {name}: {why}"))
        })
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
        alone(self, target, "", text)
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
    fn uses(&self, target: &Target, program: &Program) -> Result<UsesAt, TargetError>;

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

    /// The registers and the entries of the stack that a program needs, where the machine can tell.
    fn needs(&self, _target: &Target, _program: &Program) -> Needs {
        Needs::default()
    }

    /// The container formats that [`Machine::write`] knows.
    fn containers(&self) -> &'static [&'static str];

    /// The machine's part of a launch file.
    ///
    /// # Errors
    /// An unknown field, or a value of another type than the field's, with its path.
    fn launch(&self, fields: toml::Deserializer<'_>) -> Result<Arc<dyn MachineLaunch>, toml::de::Error>;
}

/// What a program is whose words read well only with their bytes in the other order.
pub(crate) const OTHER_ORDER: &str =
    "the bytes of each word seem to be in the other order: --endian says which they have";

/// The program with the bytes of each word in the other order.
pub(crate) fn swapped(program: &Program) -> Program {
    Program { words: program.words.iter().map(|word| word.swap_bytes()).collect(), ..program.clone() }
}

/// Registers and stack that a program needs, as its words show it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Needs {
    /// Registers a lane.
    pub registers: Option<u32>,
    /// Entries of the stack.
    pub stack: Option<u32>,
}

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
    /// A source for a machine that states this chip, programs with the places of their instructions, and nothing that they
    /// share. The program type is that of a program alone.
    ///
    /// # Errors
    /// No chip of the machine.
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

/// What is wrong with a source as a whole.
pub(crate) fn in_source(error: TargetError) -> Vec<Diagnostic> {
    vec![Diagnostic::error(Span::default(), error.to_string())]
}

/// The last instruction of a program that `context` begins and `text`, one instruction, ends.
///
/// # Errors
/// What is wrong with the text, with places in the text.
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

/// The errors inside a part of a source, placed in the part; those of the whole where none is inside.
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
    #[error("no instruction starts at {}: {}", .isa.spelled(*.address), nearest(*.isa, .near))]
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
        [one] => format!("the nearest starts at {}", isa.spelled(*one)),
        _ => format!(
            "the nearest start at {}",
            near.iter().map(|at| isa.spelled(*at)).collect::<Vec<_>>().join(" and ")
        ),
    }
}
