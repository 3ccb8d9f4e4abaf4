//! Opens files as programs, and reads the parts of a program.

use std::path::Path;
use std::sync::Arc;

use pyo3::prelude::*;
use pyo3::types::PyBytes;
use reconverge_container::Endian;
use reconverge_isa::expand::Included;
use reconverge_isa::source::{Diagnostic, closest, suggest};
use reconverge_isa::{Isa, program};
use reconverge_simt::uses::{Role, Space, Uses};
use reconverge_workbench::contents::contents;
use reconverge_workbench::graph::Drawing;
use reconverge_workbench::machine::Machine;
use reconverge_workbench::slots::slot_name;
use reconverge_workbench::target::{self, TargetError};
use reconverge_workbench::{Known, Opened, Style, Target, lint};
use serde_json::json;

use crate::array::column;
use crate::errors;

/// A file of programs, and the properties with which the package opened the file. If Python sends a program to another
/// process, that process creates the program from this value and does not read the file.
#[derive(Debug)]
pub(crate) struct Origin {
    /// The name of the file in messages.
    pub(crate) title: String,
    pub(crate) bytes: Vec<u8>,
    pub(crate) is_source: bool,
    /// The properties that the user stated about the file, and the files that the file includes.
    pub(crate) known: Known,
}

/// A program of a file, and the data that all programs of the file share.
#[derive(Clone)]
#[pyclass(frozen, module = "reconverge._native")]
pub(crate) struct Program {
    pub(crate) opened: Arc<Opened>,
    pub(crate) number: usize,
    pub(crate) origin: Arc<Origin>,
}

/// An included file. The parts are the file's name, and the file's text or the reason why the file cannot be read.
type IncludedFile = (String, Option<String>, Option<String>);

/// A program as plain Python values. [`reopen`] converts these values to a program.
type ProgramState<'py> = (
    String,
    Bound<'py, PyBytes>,
    bool,
    Option<&'static str>,
    Option<String>,
    Option<&'static str>,
    Option<&'static str>,
    Vec<IncludedFile>,
    usize,
);

/// Returns the value of the choice that has this name. If no choice has this name, returns an exception that lists the
/// allowed names.
///
/// # Errors
/// Fails if the name is unknown.
pub(crate) fn named<T: Copy>(what: &str, name: &str, all: &[(&'static str, T)]) -> PyResult<T> {
    let found = all.iter().find(|(known, _)| *known == name).map(|(_, value)| *value);
    let names: Vec<&str> = all.iter().map(|(known, _)| *known).collect();
    found.ok_or_else(|| errors::wrong(format!("{what}: unknown value `{name}`: {}", suggest(name, names))))
}

fn isa_named(name: Option<&str>) -> PyResult<Option<Isa>> {
    name.map(|name| named("isa", name, &Isa::ALL.map(|isa| (isa.name(), isa)))).transpose()
}

fn stage_named(name: Option<&str>) -> PyResult<Option<program::Stage>> {
    name.map(|name| named("stage", name, &program::Stage::ALL.map(|stage| (stage.name(), stage)))).transpose()
}

/// Returns every program in the bytes of a file, and the warnings of the assembler as JSON. Files that a source
/// includes are in the folder of the file `title`.
///
/// # Errors
/// See [`reconverge_workbench::OpenError`].
#[pyfunction]
#[pyo3(signature = (title, data, is_source, isa=None, chip=None, stage=None, endian=None))]
pub(crate) fn open(
    title: &str,
    data: &[u8],
    is_source: bool,
    isa: Option<&str>,
    chip: Option<String>,
    stage: Option<&str>,
    endian: Option<&str>,
) -> PyResult<(Vec<Program>, String)> {
    let known = known(isa, chip, stage, endian)?;
    let folder = Path::new(title).parent().unwrap_or(Path::new(""));
    let known = match is_source {
        true => known.with_included(data, &mut |name| {
            std::fs::read(folder.join(name)).map_err(|error| error.to_string())
        }),
        false => known,
    };
    let origin = Origin { title: title.to_owned(), bytes: data.to_vec(), is_source, known };
    let (programs, warnings) = programs(origin)?;
    let source = programs.first().and_then(|program| program.opened.source.as_deref());
    let warnings = errors::diagnostics(&warnings, source.unwrap_or_default()).to_string();
    Ok((programs, warnings))
}

/// Returns the properties that the user has stated about a file.
fn known(
    isa: Option<&str>,
    chip: Option<String>,
    stage: Option<&str>,
    endian: Option<&str>,
) -> PyResult<Known> {
    let endian = endian.map(|name| named("endian", name, &Endian::ALL.map(|endian| (endian.name(), endian))));
    let (isa, stage, endian) = (isa_named(isa)?, stage_named(stage)?, endian.transpose()?);
    if let Some(name) = &chip
        && isa.is_none()
        && target::isa_of_chip(name).is_none()
    {
        return Err(no_chip(name));
    }
    Ok(Known { isa, chip, stage, endian, ..Known::default() })
}

/// Returns the error for a chip that no machine has. The message lists the chips that exist.
fn no_chip(name: &str) -> PyErr {
    let of = |isa: Isa| {
        let chips = target::chips(isa).into_iter();
        chips
            .flat_map(|chip| std::iter::once(chip.name).chain(chip.aliases.iter().copied()))
            .map(str::to_lowercase)
    };
    let all: Vec<String> = Isa::ALL.into_iter().flat_map(of).collect();
    let meant = closest(name, all.iter().map(String::as_str));
    let meant = meant.map(|meant| format!(" did you mean `{meant}`?")).unwrap_or_default();
    let list = |isa: Isa| format!("{isa}: {}", of(isa).collect::<Vec<_>>().join(", "));
    errors::wrong(format!("chip: unknown chip `{name}`;{meant} {}", Isa::ALL.map(list).join("; ")))
}

/// Returns the program for the values that [`Program::state`] returned. Does not read files.
///
/// # Errors
/// Fails if the values are not the values of a program.
#[pyfunction]
#[expect(clippy::too_many_arguments, reason = "the fields of a state")]
pub(crate) fn reopen(
    title: String,
    bytes: Vec<u8>,
    is_source: bool,
    isa: Option<&str>,
    chip: Option<String>,
    stage: Option<&str>,
    endian: Option<&str>,
    included: Vec<IncludedFile>,
    number: usize,
) -> PyResult<Program> {
    let included = included.into_iter().map(|(name, text, why)| {
        let text = text.ok_or_else(|| why.unwrap_or_default());
        Included { name, text }
    });
    let known = Known { included: included.collect(), ..known(isa, chip, stage, endian)? };
    let (mut programs, _) = programs(Origin { title, bytes, is_source, known })?;
    if number >= programs.len() {
        return Err(errors::wrong(format!("program {number}: there are {}", programs.len())));
    }
    Ok(programs.swap_remove(number))
}

/// Returns the mnemonics of a machine, sorted.
///
/// # Errors
/// Fails if the machine is unknown.
#[pyfunction]
pub(crate) fn mnemonics(isa: &str) -> PyResult<Vec<&'static str>> {
    let isa = named("isa", isa, &Isa::ALL.map(|isa| (isa.name(), isa)))?;
    Ok(reconverge_workbench::machine(isa).mnemonics())
}

/// Opens a file. Returns the programs in the file, and the warnings of the assembler.
///
/// # Errors
/// See [`reconverge_workbench::OpenError`].
pub(crate) fn programs(origin: Origin) -> PyResult<(Vec<Program>, Vec<Diagnostic>)> {
    let Origin { title, bytes, is_source, known } = &origin;
    let opened = reconverge_workbench::open(bytes, *is_source, known);
    let opened = opened.map_err(|error| match error {
        // The message of the workbench names options of the command line, so another message replaces the workbench's
        // message.
        reconverge_workbench::open::OpenError::Target(TargetError::Unknown(_)) => errors::wrong(format!(
            "{title}: unknown machine; state isa=\"r500\", \"r700\" or \"tesla\", or chip="
        )),
        error => errors::open(title, bytes, &error),
    })?;
    let (warnings, count) = (opened.warnings.clone(), opened.image.programs.len());
    let (opened, origin) = (Arc::new(opened), Arc::new(origin));
    let program = |number| Program { opened: opened.clone(), number, origin: origin.clone() };
    Ok(((0..count).map(program).collect(), warnings))
}

/// Returns the explanation of one instruction as JSON. The arguments have the words or the text of the instruction.
///
/// # Errors
/// Fails if the words are not an instruction, or if the target is invalid.
#[pyfunction]
#[pyo3(signature = (words, text, isa=None, chip=None, stage=None))]
pub(crate) fn explain(
    words: Vec<u32>,
    text: Option<&str>,
    isa: Option<&str>,
    chip: Option<&str>,
    stage: Option<&str>,
) -> PyResult<String> {
    let isa = isa_named(isa)?.or_else(|| chip.and_then(target::isa_of_chip));
    let isa = isa.ok_or_else(|| errors::wrong("unknown machine; state isa= or chip="))?;
    let target = Target::new(isa, chip).map_err(|error| errors::target(&error))?;
    let target = Target { stage: stage_named(stage)?, ..target };
    let explained = match text {
        None => target.machine().explain(&target, &words),
        Some(text) => {
            let one = target.machine().one(&target, text);
            let (program, address) = one.map_err(|messages| errors::source("text", text, &messages))?;
            target.machine().explain_at(&target, &program, address)
        }
    };
    Ok(json!(explained.map_err(|error| errors::explain(&error))?).to_string())
}

/// Returns the machine to which a chip belongs.
#[pyfunction]
pub(crate) fn isa_of_chip(chip: &str) -> Option<&'static str> {
    target::isa_of_chip(chip).map(Isa::name)
}

/// Returns the chips of a machine with their other names.
///
/// # Errors
/// Fails if the machine is unknown.
#[pyfunction]
pub(crate) fn chips(isa: &str) -> PyResult<Vec<(&'static str, Vec<&'static str>)>> {
    let isa = named("isa", isa, &Isa::ALL.map(|isa| (isa.name(), isa)))?;
    Ok(target::chips(isa).into_iter().map(|chip| (chip.name, chip.aliases.to_vec())).collect())
}

/// A line of a listing. Its parts are the address, words, label, text, depth, notes and line number.
type Line = (Option<u32>, Vec<u32>, Option<String>, String, usize, Vec<String>, usize);

/// An operation. The parts are the name, the reads with their purposes, the writes, the memories that the operation
/// loads from, the memories that it stores to, and whether a lane may keep the old value of a written register.
type OperationTuple =
    (&'static str, Vec<(String, &'static str)>, Vec<String>, Option<String>, Option<String>, bool);

/// Returns an operation as Python objects.
fn operation(isa: Isa, uses: &Uses) -> OperationTuple {
    let purpose = |role: Role| match role {
        Role::Value => "value",
        Role::Flow => "flow",
        Role::Address => "address",
        Role::Output => "output",
    };
    let memory = |space: Option<Space>| space.map(|space| space.to_string());
    let reads = uses.reads.iter().map(|read| (slot_name(isa, read.slot), purpose(read.role))).collect();
    let writes = uses.writes.iter().map(|slot| slot_name(isa, *slot)).collect();
    (uses.operation, reads, writes, memory(uses.loads), memory(uses.stores), uses.conditional)
}

impl Program {
    pub(crate) fn target(&self) -> &Target {
        &self.opened.target
    }

    pub(crate) fn machine(&self) -> &'static dyn Machine {
        self.target().machine()
    }

    pub(crate) fn program(&self) -> &program::Program {
        &self.opened.image.programs[self.number]
    }

    fn listing(&self, style: Style) -> PyResult<reconverge_workbench::Listing> {
        let listing = self.machine().disassemble(self.target(), self.program(), style);
        listing.map_err(|error| errors::target(&error))
    }
}

#[pymethods]
impl Program {
    #[getter]
    fn name(&self) -> Option<&str> {
        self.program().name.as_deref()
    }

    #[getter]
    fn isa(&self) -> &'static str {
        self.target().isa.name()
    }

    #[getter]
    fn chip(&self) -> Option<&str> {
        self.target().chip.as_ref().map(|chip| chip.name.as_str())
    }

    #[getter]
    fn stage(&self) -> Option<&'static str> {
        self.program().stage.or(self.target().stage).map(program::Stage::name)
    }

    #[getter]
    fn unit(&self) -> &'static str {
        self.target().isa.unit()
    }

    #[getter]
    fn format(&self) -> &'static str {
        self.opened.image.format
    }

    #[getter]
    fn source(&self) -> Option<&str> {
        self.opened.source.as_deref()
    }

    /// Returns the words of the program in memory order.
    fn words<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        column(py, self.program().words.clone())
    }

    /// Returns an address in the notation of listings.
    fn spelled(&self, address: u32) -> String {
        self.target().isa.spelled(address)
    }

    /// Returns the text of the program with its heading. The assembler accepts this text.
    #[pyo3(signature = (hex=false, structure=false, idioms=false, notes=false))]
    fn text(&self, hex: bool, structure: bool, idioms: bool, notes: bool) -> PyResult<String> {
        let listing = self.listing(Style { hex, structure, idioms, notes, ..Style::default() })?;
        Ok(self.machine().heading(self.target(), self.program()) + &listing.text)
    }

    /// Returns the lines of the program's text, with flow constructs.
    fn lines(&self) -> PyResult<Vec<Line>> {
        let listing = self.listing(Style { structure: true, notes: true, ..Style::default() })?;
        let lines = listing.lines(&self.program().words).into_iter();
        let line = |line: reconverge_workbench::listing::Line| {
            let code = line.code();
            (line.address, line.words, line.label, code, line.depth, line.notes, line.source_line)
        };
        Ok(lines.map(line).collect())
    }

    /// Returns the operations of each instruction, with the address of the instruction.
    fn uses(&self) -> PyResult<Vec<(u32, Vec<OperationTuple>)>> {
        let uses = self.machine().uses(self.target(), self.program());
        let uses = uses.map_err(|error| errors::target(&error))?;
        let isa = self.target().isa;
        let operations = |all: &[Uses]| all.iter().map(|uses| operation(isa, uses)).collect();
        Ok(uses.iter().map(|(address, all)| (*address, operations(all))).collect())
    }

    /// Returns the program as plain values for [`reopen`].
    fn state<'py>(&self, py: Python<'py>) -> ProgramState<'py> {
        let Origin { title, bytes, is_source, known } = &*self.origin;
        let file = |file: &Included| {
            let Included { name, text } = file.clone();
            (name, text.clone().ok(), text.err())
        };
        (
            title.clone(),
            PyBytes::new(py, bytes),
            *is_source,
            known.isa.map(Isa::name),
            known.chip.clone(),
            known.stage.map(program::Stage::name),
            known.endian.map(Endian::name),
            known.included.iter().map(file).collect(),
            self.number,
        )
    }

    /// Returns the explanation of the instruction at an address, as JSON.
    fn explain(&self, address: u32) -> PyResult<String> {
        let explained = self.machine().explain_at(self.target(), self.program(), address);
        Ok(json!(explained.map_err(|error| errors::explain(&error))?).to_string())
    }

    /// Returns the properties that the file states about the program, as JSON.
    fn contents(&self) -> PyResult<String> {
        let contents = contents(&self.opened).map_err(|error| errors::target(&error))?;
        Ok(json!(contents.programs.get(self.number)).to_string())
    }

    /// Returns the violations of the machine's rules in the program, as JSON.
    fn lint(&self) -> PyResult<String> {
        let found = lint::findings(self.target(), self.program()).map_err(|error| errors::target(&error))?;
        let finding = |found: reconverge_isa::lint::Finding| {
            json!({
                "rule": found.rule.name,
                "severity": found.rule.severity.name(),
                "pc": found.pc,
                "message": found.message,
                "source": found.rule.source,
                "fix": found.rule.fix,
            })
        };
        Ok(found.into_iter().map(finding).collect::<serde_json::Value>().to_string())
    }

    /// Returns the control flow as an SVG picture.
    fn svg(&self, title: &str) -> PyResult<String> {
        let drawing = Drawing::of(title, self.target(), self.program(), None);
        Ok(drawing.map_err(|error| errors::target(&error))?.svg())
    }
}

/// Returns whether a file with this name is an assembler source.
pub(crate) fn is_source(path: &Path) -> bool {
    path.to_str().is_some_and(reconverge_workbench::open::is_source)
}
