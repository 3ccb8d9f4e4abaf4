//! Implements the workbench's interface for AMD R700 and R600. This file converts programs to text, and text to
//! programs. [`mod@launch`] runs launches.

pub mod launch;
mod stats;

use std::sync::Arc;

use reconverge_container::Written;
use reconverge_isa::forms::Form;
use reconverge_isa::graph::Graph;
use reconverge_isa::lint::{Finding, MALFORMED, Rule};
use reconverge_isa::program::{ConstantBlock, Image, Stage};
use reconverge_isa::source::{Diagnostic, DirectiveRow, program_line};
use reconverge_isa::{Isa, Program, Span};
use reconverge_r700::chip::Chip;
use reconverge_r700::code::{CfOp, Code, CodeFault, CodeOptions};
use reconverge_r700::explain::{self, Reading};
use reconverge_r700::flow::StackUse;
use reconverge_r700::graph::graph;
use reconverge_r700::lint::{Components, Known, lint_with};
use reconverge_r700::stack::stack_needed;
use reconverge_r700::text;
use reconverge_r700::uses::{registers_needed, uses};
use reconverge_simt::uses::UsesAt;
use serde::Deserialize as _;

use crate::listing::{Listing, Style};
use crate::machine::{
    Assembled, ExplainError, ExplainedField, Explanation, Machine, Needs, OTHER_ORDER, alone, line_at,
    swapped,
};
use crate::request::MachineLaunch;
use crate::stats::Conventions;
use crate::target::{Target, TargetError};

pub use launch::Launch;

/// The R700 machine. R600 chips are also chips of this machine.
#[derive(Clone, Copy, Debug)]
pub struct R700;

impl Machine for R700 {
    fn isa(&self) -> Isa {
        Isa::R700
    }

    fn heading(&self, target: &Target, program: &Program) -> String {
        let name = program.name.as_deref().map(|name| program_line(Some(name)));
        format!(".isa {}\n{}", target.isa, name.unwrap_or_default())
    }

    fn disassemble(&self, target: &Target, program: &Program, style: Style) -> Result<Listing, TargetError> {
        let Style { hex, structure, amd, .. } = style;
        let syntax = if amd { text::Syntax::Amd } else { text::Syntax::Own };
        let mut text = directives(program);
        let options = text::Options { hex, structure, start: program.base, syntax };
        let mut printed = text::disassemble(&program.words, target.r700(), options);
        printed.marks.iter_mut().for_each(|mark| mark.end += text.len());
        text += &printed.text;
        Listing { text, marks: printed.marks }.checked()
    }

    /// The text states the machine and the chip once. A `.program` line precedes each program. A single program without
    /// a name has no `.program` line.
    fn image_text(&self, target: &Target, image: &Image, style: Style) -> Result<String, TargetError> {
        let chip = target.r700();
        let name = target.chip_name().unwrap_or(chip.name).to_ascii_lowercase();
        let mut text = format!(".isa {}\n.chip {name}\n", target.isa);
        let line = format!(".chip {}\n", chip.name);
        let several = image.programs.len() > 1;
        for program in &image.programs {
            text += if several { "\n" } else { "" };
            if several || program.name.is_some() {
                text += &program_line(program.name.as_deref());
            }
            text += &self.disassemble(target, program, style)?.text.replacen(&line, "", 1);
        }
        Ok(text)
    }

    fn assemble(&self, target: &Target, source: &str) -> Result<Assembled, Vec<Diagnostic>> {
        let (mut programs, mut chip_name, mut lines) = (Vec::new(), None, Vec::new());
        let mut warnings = Vec::new();
        for assembled in text::assemble_all(source, target.r700())? {
            let mut program = Program { name: assembled.name, ..Program::from_words(assembled.words) };
            for (name, values) in &assembled.state {
                directive(name, values, &mut program)
                    .map_err(|why| vec![Diagnostic::error(Span::default(), format!(".{name}: {why}"))])?;
            }
            warnings.extend(too_little(assembled.chip, &program, source));
            chip_name = assembled.chip_name.or_else(|| Some(assembled.chip.name.to_owned()));
            programs.push(program);
            lines.push(assembled.lines);
            warnings.extend(assembled.warnings);
        }
        let assembled = Assembled::of(target.isa, chip_name.as_deref(), programs, lines)?;
        Ok(Assembled { warnings, ..assembled })
    }

    fn forms(&self, target: &Target, mnemonic: &str) -> Vec<Form> {
        reconverge_r700::forms::forms(mnemonic, target.r700())
    }

    fn mnemonics(&self) -> Vec<&'static str> {
        reconverge_r700::forms::mnemonics()
    }

    fn directives(&self) -> Vec<DirectiveRow> {
        text::DIRECTIVES.to_vec()
    }

    fn keeps(&self, program: &Program, back: &Program) -> bool {
        let kept = |program: &Program| {
            let Program { stage, base, state, constants, resources, .. } = program.clone();
            (stage, base, state, constants, resources)
        };
        kept(back) == kept(program)
    }

    /// Two words can be a control-flow instruction or an instruction of an ALU clause. Four words are a fetch. 2n words
    /// are an ALU group with its literals. The explanation contains every legal interpretation.
    fn explain(&self, target: &Target, words: &[u32]) -> Result<Explanation, ExplainError> {
        let readings = explain::readings(words, target.r700());
        let several = readings.len() > 1;
        let all = readings.into_iter().map(|reading| explanation(reading, several)).reduce(join);
        let wanted =
            "2 words (control flow, ALU), 4 words (fetch), or the words of an ALU group with its literals";
        all.ok_or(ExplainError::Count { isa: target.isa, wanted, found: words.len() })
    }

    /// The address determines whether the words are control flow, a slot of an ALU group, or a fetch.
    fn explain_at(
        &self,
        target: &Target,
        program: &Program,
        address: u32,
    ) -> Result<Explanation, ExplainError> {
        let Some(reading) = explain::at(&program.words, program.base, target.r700(), address) else {
            let listing = self.disassemble(target, program, Style::default())?;
            let lines = listing.lines(&program.words);
            line_at(&lines, target.isa, address)?;
            let why = format!("the words at {address} are data that no instruction reaches");
            return Err(ExplainError::NoInstruction(why));
        };
        let mut explained = explanation(reading, false);
        let here = self.lint(target, program)?.into_iter().filter(|finding| finding.pc == address);
        explained.findings.extend(here.map(|finding| format!("{}: {}", finding.rule.name, finding.message)));
        Ok(explained)
    }

    /// If `text` is a fetch or an operation of an ALU group, the program contains a clause with `text`. The method
    /// assembles `text` in each kind of clause. If all attempts fail, the method returns the errors of one attempt. No
    /// other attempt parsed more of `text`.
    fn one(&self, target: &Target, text: &str) -> Result<(Program, u32), Vec<Diagnostic>> {
        const CONTEXTS: [&str; 4] = ["", "ALU: KCACHE0(CB0:0-31) KCACHE1(CB1:0-31)\n", "TEX:\n", "VTX:\n"];
        let mut furthest: Option<Vec<Diagnostic>> = None;
        for context in CONTEXTS {
            let errors = match alone(self, target, context, text) {
                Ok(found) => return Ok(found),
                Err(errors) => errors,
            };
            let reach = |errors: &Vec<Diagnostic>| errors.first().map(|error| error.span.start);
            if furthest.as_ref().is_none_or(|most| reach(&errors) >= reach(most)) {
                furthest = Some(errors);
            }
        }
        Err(furthest.unwrap_or_default())
    }

    fn faults(&self, target: &Target, program: &Program) -> Result<Vec<Finding>, TargetError> {
        let code = Code::new(&program.words, program.base, CodeOptions::new(target.r700()));
        let finding =
            |(pc, fault): (u32, &CodeFault)| Finding { rule: &MALFORMED, pc, message: fault.to_string() };
        Ok(code.faults().map(finding).collect())
    }

    /// R600 and R700 share most encodings. A program for one family therefore usually also decodes as a program for the
    /// second family. Only malformed parts show which family the program is for.
    fn mistaken(&self, target: &Target, program: &Program) -> Option<String> {
        let code =
            |chip: Chip, program: &Program| Code::new(&program.words, program.base, CodeOptions::new(chip));
        // Words that are not a program often decode as instructions. So the function accepts words only under three
        // conditions: the words contain an export, have no malformed parts, and have no findings for a control-flow
        // word.
        let sound = |chip: Chip, program: &Program| {
            let code = code(chip, program);
            let plain = |addr: u32| {
                let words = program.words.get(2 * addr as usize..2 * addr as usize + 2);
                let clean = |reading: Reading| {
                    reading.title == "control flow" && reading.findings.is_empty() && !reading.unread
                };
                words.is_some_and(|words| explain::readings(words, chip).into_iter().any(clean))
            };
            let acts =
                code.instructions().any(|(_, cf)| matches!(cf.op, CfOp::Export(..) | CfOp::Memory(..)));
            acts && code.faults().next().is_none() && code.instructions().all(|(addr, _)| plain(addr))
        };
        let own = target.r700();
        code(own, program).faults().next()?;
        let r600 = Chip::named("r600").filter(|r600| target.chip.is_none() && sound(*r600, program));
        match r600 {
            Some(r600) => {
                Some(format!("the words are a valid program of the R600 family; use --chip {}", r600.name))
            }
            None => sound(own, &swapped(program)).then(|| OTHER_ORDER.to_owned()),
        }
    }

    fn lint(&self, target: &Target, program: &Program) -> Result<Vec<Finding>, TargetError> {
        let stage = program.stage.or(target.stage);
        let known = Known {
            start: program.base,
            stage,
            inputs: inputs(stage, program),
            stack_size: program.resources.stack,
            registers: program.resources.registers,
        };
        Ok(lint_with(&program.words, target.r700(), &known))
    }

    fn rules(&self) -> Vec<&'static Rule> {
        std::iter::once(&MALFORMED).chain(reconverge_r700::lint::RULES).collect()
    }

    fn graph(&self, target: &Target, program: &Program) -> Result<Graph, TargetError> {
        let code = Code::new(&program.words, program.base, CodeOptions::new(target.r700()));
        Ok(graph(&code, program.base))
    }

    fn uses(&self, target: &Target, program: &Program) -> Result<UsesAt, TargetError> {
        Ok(uses(&Code::new(&program.words, program.base, CodeOptions::new(target.r700()))))
    }

    fn write(
        &self,
        target: &Target,
        image: &Image,
        format: &str,
    ) -> Option<Result<Written<Vec<u8>>, reconverge_container::Error>> {
        if format != "gsh" {
            return None;
        }
        let other = target.chip_name().filter(|_| target.r700() != Chip::RV770);
        Some(match other {
            Some(chip) => Err(reconverge_container::Error::Unwritable {
                format: "gsh",
                what: format!("a program for {chip}"),
                remedy: "the Wii U has an RV770; `.chip latte` fits",
            }),
            None => reconverge_container::gsh::write(image),
        })
    }

    fn conventions(&self, target: &Target, program: &Program) -> Result<Conventions, TargetError> {
        stats::conventions(target.r700(), program)
    }

    fn needs(&self, target: &Target, program: &Program) -> Needs {
        needs(target.r700(), program)
    }

    fn containers(&self) -> &'static [&'static str] {
        &["gsh"]
    }

    fn launch(&self, fields: toml::Deserializer<'_>) -> Result<Arc<dyn MachineLaunch>, toml::de::Error> {
        Ok(Arc::new(Launch::deserialize(fields)?))
    }
}

fn needs(chip: Chip, program: &Program) -> Needs {
    let code = Code::new(&program.words, program.base, CodeOptions::new(chip));
    let each = StackUse::subentries_an_entry(chip.wave_width);
    let stack = stack_needed(&code, program.base).map(|needed| needed.entries(each));
    Needs { registers: Some(registers_needed(&code)), stack }
}

/// Returns warnings if a source declares fewer registers or fewer stack entries than its instructions need.
fn too_little(chip: Chip, program: &Program, source: &str) -> Vec<Diagnostic> {
    let declared = &program.resources;
    if declared.registers.is_none() && declared.stack.is_none() {
        return Vec::new();
    }
    let needs = needs(chip, program);
    let mut found = Vec::new();
    for (name, what, declared, needed) in [
        (".gprs", "registers", declared.registers, needs.registers),
        (".stack", "entries of the stack", declared.stack, needs.stack),
    ] {
        if let (Some(declared), Some(needed)) = (declared, needed)
            && needed > declared
        {
            let span = source.find(name).map_or(Span::default(), |at| directive_at(source, at));
            let message = format!("the program needs {needed} {what}, {declared} are declared");
            found.push(Diagnostic::warning(span, message).help(format!("write `{name} {needed}`")));
        }
    }
    found
}

/// Returns the span of the directive that starts at `at`. The span includes the operands of the directive.
fn directive_at(source: &str, at: usize) -> Span {
    let line = source[at..].split(['\n', ';']).next().unwrap_or_default();
    Span::new(at, at + line.trim_end().len())
}

/// Returns the registers that have a value when the program starts. A vertex program has R0. A pixel program has the
/// interpolated registers and the position. If the stage and the state registers do not determine the registers with a
/// value, returns `None`. (Mesa `r600d.h`, SPI_PS_IN_CONTROL_0)
fn inputs(stage: Option<Stage>, program: &Program) -> Option<Components> {
    match stage? {
        Stage::Vertex => Some(Components::NONE.with(0)),
        Stage::Pixel => {
            let control = program.state("SPI_PS_IN_CONTROL_0")?;
            // SPI_PS_IN_CONTROL_1 can add registers for the front face, the fixed-point position and the pixel index.
            // If SPI_PS_IN_CONTROL_1 is not 0, the inputs are unknown.
            if program.state("SPI_PS_IN_CONTROL_1").is_some_and(|other| other != 0) {
                return None;
            }
            let interpolated = (0..control as u8 & 0x3f).fold(Components::NONE, Components::with);
            let position = control >> 8 & 1 != 0;
            Some(if position { interpolated.with((control >> 10 & 31) as u8) } else { interpolated })
        }
        Stage::Compute | Stage::Geometry | Stage::GsCopy | Stage::Fragment | Stage::Fetch => None,
    }
}

/// Converts one interpretation of words to an explanation. If `titled` is set, each line starts with the title of the
/// interpretation.
fn explanation(reading: Reading, titled: bool) -> Explanation {
    let title = if titled { format!("{}: ", reading.title) } else { String::new() };
    let lines = |lines: Vec<String>| lines.into_iter().map(|line| title.clone() + &line).collect::<Vec<_>>();
    let field = |field: explain::Explained| ExplainedField {
        word: title.clone() + field.format,
        index: field.word,
        name: field.field.to_ascii_uppercase(),
        hi: field.hi,
        lo: field.lo,
        value: u64::from(field.value),
        text: field.text,
        doc: field.doc.to_owned(),
    };
    Explanation {
        words: reading.words,
        text: lines(reading.text).join("\n"),
        fields: reading.fields.into_iter().map(field).collect(),
        meaning: lines(reading.meaning),
        flow: lines(reading.flow),
        findings: lines(reading.findings),
        source: title.clone() + reading.source,
    }
}

/// Combines the explanations of two interpretations of the same words.
fn join(mut first: Explanation, second: Explanation) -> Explanation {
    first.text += &format!("\n{}", second.text);
    first.source += &format!("\n{}", second.source);
    first.fields.extend(second.fields);
    first.meaning.extend(second.meaning);
    first.flow.extend(second.flow);
    first.findings.extend(second.findings);
    first
}

/// Parses a directive of a source, and adds the data of the directive to the program.
fn directive(name: &str, values: &[u32], program: &mut Program) -> Result<(), String> {
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
            _ => return Err(format!("unexpected {} numbers", values.len())),
        },
    }
    Ok(())
}

/// Returns the directives that describe a program. [`directive`] parses these directives.
fn directives(program: &Program) -> String {
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
        let bank = match block.bank {
            launch::CONSTANT_FILE => "file".to_owned(),
            bank => bank.to_string(),
        };
        text += &format!(".const {bank} {}{}\n", block.offset / 4, words.collect::<String>());
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
