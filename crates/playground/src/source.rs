//! A source text: its programs, its diagnostics, and explanations of its lines.

use reconverge_isa::expand::Given;
use reconverge_isa::lint::Severity;
use reconverge_isa::source::{Diagnostic, Level, lines};
use reconverge_isa::{Isa, Span};
use reconverge_workbench::launch::{LaunchFile, choose_program};
use reconverge_workbench::lint::{findings, findings_in_launch};
use reconverge_workbench::machine::Explanation;
use reconverge_workbench::open::OpenError;
use reconverge_workbench::target::{Target, isa_of_chip};
use reconverge_workbench::text::Source;
use reconverge_workbench::values::NoFiles;
use reconverge_workbench::{Known, Opened, open};
use serde::Serialize;

use crate::error::{FaultyPart, PlayError};
use crate::launch::launch_of;

/// A message about a place of the source.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct SourcePlace {
    /// `error` or `warning`.
    pub severity: &'static str,
    /// First UTF-16 code unit, as texts of a browser are counted.
    pub from: usize,
    /// One past the last UTF-16 code unit.
    pub to: usize,
    /// Line, from 1.
    pub line: usize,
    /// Column in characters, from 1.
    pub column: usize,
    /// What is wrong, in one sentence.
    pub message: String,
    /// What would fit, or what was probably meant; may be empty.
    pub help: String,
    /// The name of the rule that is broken, for findings of lint.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub rule: Option<&'static str>,
}

/// The diagnostics of a source.
#[derive(Clone, Debug, Serialize)]
pub struct Diagnosed {
    /// The machine, if it is known.
    pub isa: Option<&'static str>,
    /// The chip that the source states.
    pub chip: Option<String>,
    /// The names of its programs.
    pub programs: Vec<String>,
    /// The messages, in the order of their places.
    pub diagnostics: Vec<SourcePlace>,
}

/// Number of UTF-16 code units before a byte of a text.
fn units(text: &str, byte: usize) -> usize {
    let end = (0..=byte.min(text.len())).rev().find(|at| text.is_char_boundary(*at)).unwrap_or(0);
    text[..end].encode_utf16().count()
}

/// Returns a diagnostic as the page shows it.
pub fn place(source: &str, diagnostic: &Diagnostic) -> SourcePlace {
    let severity = if diagnostic.level == Level::Error { "error" } else { "warning" };
    let help = diagnostic.help.clone().unwrap_or_default();
    placed(source, diagnostic.span, severity, diagnostic.message.clone(), help)
}

fn placed(source: &str, span: Span, severity: &'static str, message: String, help: String) -> SourcePlace {
    let (line, column) = span.line_column(source);
    let (from, to) = (units(source, span.start), units(source, span.end));
    SourcePlace { severity, from, to, line, column, message, help, rule: None }
}

/// The machine of a source: the one that it states, or that of the launch file.
pub(crate) fn isa_of(source: &str, launch: Option<&LaunchFile>) -> Option<Isa> {
    launch.map(|launch| launch.isa).or_else(|| Source::new(source, &Given::default()).ok()?.isa())
}

/// Opens a source for a launch, which may state machine, chip and program type.
///
/// # Errors
/// The source does not assemble, or is not for this machine or chip.
pub(crate) fn opened(source: &str, launch: Option<&LaunchFile>) -> Result<Opened, OpenError> {
    let chip = launch.and_then(|launch| launch.common.chip.clone());
    let stage = launch.and_then(|launch| launch.stage().ok().flatten());
    let isa = launch.map(|launch| launch.isa).or_else(|| isa_of_chip(chip.as_deref()?));
    open(source.as_bytes(), true, &Known { isa, chip, stage, ..Known::default() })
}

/// Returns the diagnostics of a source.
///
/// # Errors
/// The launch file cannot be read, or no program can be loaded.
pub fn diagnose(source: &str, launch: Option<&str>) -> Result<Diagnosed, PlayError> {
    // A launch file with errors says no more than the source itself.
    let launch = launch.and_then(|text| launch_of(text, source).ok());
    let isa = isa_of(source, launch.as_ref()).map(Isa::name);
    let opened = match opened(source, launch.as_ref()) {
        Ok(opened) => opened,
        Err(OpenError::Source(errors)) => {
            let diagnostics = errors.iter().map(|error| place(source, error)).collect();
            return Ok(Diagnosed { isa, chip: None, programs: Vec::new(), diagnostics });
        }
        Err(other) => {
            let PlayError { message, .. } = PlayError::open(FaultyPart::Source, source, &other);
            let first = lines(source).next().map_or(0, |(_, line)| line.len());
            let diagnostics = vec![placed(source, Span::new(0, first), "error", message, String::new())];
            return Ok(Diagnosed { isa, chip: None, programs: Vec::new(), diagnostics });
        }
    };
    let mut diagnostics: Vec<SourcePlace> =
        opened.warnings.iter().map(|warning| place(source, warning)).collect();
    diagnostics.extend(broken_rules(source, &opened, launch.as_ref()));
    diagnostics.sort_by_key(|place| place.from);
    let names = opened.image.programs.iter().filter_map(|program| program.name.clone());
    Ok(Diagnosed {
        isa: Some(opened.target.isa.name()),
        chip: opened.target.chip_name().map(str::to_owned),
        programs: names.collect(),
        diagnostics,
    })
}

/// The rules that the programs of a source break, at the lines of the instructions.
fn broken_rules(source: &str, opened: &Opened, launch: Option<&LaunchFile>) -> Vec<SourcePlace> {
    let mut places = Vec::new();
    for program in &opened.image.programs {
        let target = opened.target.for_program(&opened.image, program);
        let in_launch = launch.and_then(|launch| findings_in_launch(opened, program, launch, &NoFiles).ok());
        let Some(found) = in_launch.or_else(|| findings(&target, program).ok()) else { continue };
        for finding in found {
            let line = opened.line(program, finding.pc).unwrap_or(1);
            let severity = if finding.rule.severity == Severity::Error { "error" } else { "warning" };
            let span = line_of(source, line);
            let help = finding.rule.fix.to_owned();
            let place = placed(source, span, severity, finding.message, help);
            places.push(SourcePlace { rule: Some(finding.rule.name), ..place });
        }
    }
    places
}

/// The text of a line, from 1, without the blanks at its ends and its comment.
fn line_of(source: &str, line: usize) -> Span {
    let Some((start, text)) = lines(source).nth(line.saturating_sub(1)) else { return Span::default() };
    let code = text.split(';').next().unwrap_or_default();
    let code = if code.trim().is_empty() { text } else { code };
    let first = start + (code.len() - code.trim_start().len());
    Span::new(first, first + code.trim().len())
}

/// The explanations of a line.
#[derive(Clone, Debug, Serialize)]
pub struct LineExplained {
    /// One for each instruction of the line.
    pub instructions: Vec<ExplainedAt>,
}

/// An instruction explained, with its address.
#[derive(Clone, Debug, Serialize)]
pub struct ExplainedAt {
    /// The address as the machine's manual spells it.
    pub address: String,
    /// The explanation.
    #[serde(flatten)]
    pub explanation: Explanation,
}

/// Explains the instructions of a line.
///
/// # Errors
/// The source does not assemble.
pub fn explain(source: &str, launch: Option<&str>, line: usize) -> Result<LineExplained, PlayError> {
    let launch = launch.and_then(|text| launch_of(text, source).ok());
    let opened = opened(source, launch.as_ref())
        .map_err(|error| PlayError::open(FaultyPart::Source, source, &error))?;
    let mut instructions = Vec::new();
    for (program, addresses) in opened.image.programs.iter().zip(&opened.lines) {
        let target = opened.target.for_program(&opened.image, program);
        for (address, _) in addresses.iter().filter(|(_, of)| *of == line) {
            if let Ok(explanation) = target.machine().explain_at(&target, program, *address) {
                instructions.push(ExplainedAt { address: target.isa.spelled(*address), explanation });
            }
        }
    }
    Ok(LineExplained { instructions })
}

/// Words that fit at the start of an instruction.
#[derive(Clone, Debug, Serialize)]
pub struct MnemonicList {
    /// The mnemonics of the machine, sorted.
    pub mnemonics: Vec<&'static str>,
}

fn target_of(source: &str, launch: Option<&str>) -> Result<Target, PlayError> {
    let launch = launch.and_then(|text| launch_of(text, source).ok());
    if let Ok(opened) = opened(source, launch.as_ref()) {
        let program = choose_program(&opened.image, None).ok();
        return Ok(program
            .map_or(opened.target.clone(), |program| opened.target.for_program(&opened.image, program)));
    }
    let isa = isa_of(source, launch.as_ref());
    let isa = isa.ok_or_else(|| PlayError::of(FaultyPart::Source, "begin the source with .isa or .chip"))?;
    Ok(Target::of(isa))
}

/// Returns the mnemonics of the machine that a source is for.
///
/// # Errors
/// The machine is unknown.
pub fn complete(source: &str, launch: Option<&str>) -> Result<MnemonicList, PlayError> {
    Ok(MnemonicList { mnemonics: target_of(source, launch)?.machine().mnemonics() })
}

/// The forms of a mnemonic.
#[derive(Clone, Debug, Serialize)]
pub struct FormsOf {
    /// One text for each form, with its purpose.
    pub forms: Vec<FormText>,
}

/// A form of an instruction.
#[derive(Clone, Debug, Serialize)]
pub struct FormText {
    /// `a|b` is one of both, `[a]` may be left out, capital letters stand for numbers.
    pub text: String,
    /// An instruction of this form.
    pub example: String,
    /// Purpose; may be empty.
    pub about: String,
}

/// Returns the legal forms of a mnemonic; none for another word.
///
/// # Errors
/// The machine is unknown.
pub fn forms(source: &str, launch: Option<&str>, mnemonic: &str) -> Result<FormsOf, PlayError> {
    let target = target_of(source, launch)?;
    let forms = target.machine().forms(&target, mnemonic).into_iter();
    let forms = forms.map(|form| FormText { text: form.text, example: form.example, about: form.about });
    Ok(FormsOf { forms: forms.collect() })
}

#[cfg(test)]
mod unit {
    use super::*;

    #[test]
    fn places_count_as_a_browser_does() {
        // Two UTF-16 units of one character, of four bytes.
        let source = "; 𝄞\n.isa tesla\nexti nop\n";
        let place = &diagnose(source, None).unwrap().diagnostics[0];
        assert_eq!((place.from, place.to, place.line, place.column), (16, 20, 3, 1), "{place:?}");
    }
}
