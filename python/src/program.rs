//! Files to programs, and what can be read of a program.

use std::path::Path;
use std::sync::Arc;

use numpy::IntoPyArray;
use pyo3::prelude::*;
use reconverge_container::Endian;
use reconverge_isa::source::suggest;
use reconverge_isa::{Isa, program};
use reconverge_workbench::contents::contents;
use reconverge_workbench::graph::Drawing;
use reconverge_workbench::machine::Machine;
use reconverge_workbench::target::{self, TargetError};
use reconverge_workbench::{Known, Opened, Style, Target, lint};
use serde_json::json;

use crate::errors;

/// A program of a file, with what it shares with the others of the file.
#[pyclass(frozen, module = "reconverge._native")]
pub(crate) struct Program {
    pub(crate) opened: Arc<Opened>,
    pub(crate) number: usize,
    /// The text of the file, where it is a source.
    pub(crate) source: Option<Arc<str>>,
}

/// The value of a name, or an exception with what would fit.
///
/// # Errors
/// A name of none.
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

/// Every program of a file's bytes, and the warnings of the assembler as JSON. A source includes files from the folder of `title`.
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
    let endian = endian.map(|name| named("endian", name, &Endian::ALL.map(|endian| (endian.name(), endian))));
    let known = Known {
        isa: isa_named(isa)?,
        chip,
        stage: stage_named(stage)?,
        endian: endian.transpose()?,
        ..Known::default()
    };
    let folder = Path::new(title).parent().unwrap_or(Path::new(""));
    let known = match is_source {
        true => known.with_included(data, &mut |name| {
            std::fs::read(folder.join(name)).map_err(|error| error.to_string())
        }),
        false => known,
    };
    let opened = reconverge_workbench::open(data, is_source, &known);
    let opened = opened.map_err(|error| match error {
        // The workbench names options of the command line.
        reconverge_workbench::open::OpenError::Target(TargetError::Unknown(_)) => errors::wrong(format!(
            "{title}: which machine is this for? Give isa=\"r500\", \"r700\" or \"tesla\", or chip="
        )),
        error => errors::open(title, data, &error),
    })?;
    let source = is_source.then(|| String::from_utf8_lossy(data).into_owned());
    let warnings = errors::diagnostics(&opened.warnings, source.as_deref().unwrap_or_default());
    Ok((programs(opened, source), warnings.to_string()))
}

/// The programs of what was opened.
pub(crate) fn programs(opened: Opened, source: Option<String>) -> Vec<Program> {
    let (opened, source) = (Arc::new(opened), source.map(Arc::from));
    let program = |number| Program { opened: opened.clone(), number, source: source.clone() };
    (0..opened.image.programs.len()).map(program).collect()
}

/// One instruction explained, as JSON: by its words or its text.
///
/// # Errors
/// Words that are no instruction, or a target that cannot be.
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
    let isa = isa.ok_or_else(|| errors::wrong("which machine is this for? Give isa= or chip="))?;
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

/// The machine that a chip belongs to.
#[pyfunction]
pub(crate) fn isa_of_chip(chip: &str) -> Option<&'static str> {
    target::isa_of_chip(chip).map(Isa::name)
}

/// The chips of a machine with their other names.
///
/// # Errors
/// An unknown machine.
#[pyfunction]
pub(crate) fn chips(isa: &str) -> PyResult<Vec<(&'static str, Vec<&'static str>)>> {
    let isa = named("isa", isa, &Isa::ALL.map(|isa| (isa.name(), isa)))?;
    Ok(target::chips(isa).into_iter().map(|chip| (chip.name, chip.aliases.to_vec())).collect())
}

/// A line of a listing: address, words, label, text, depth, notes, number of its line.
type Line = (Option<u32>, Vec<u32>, Option<String>, String, usize, Vec<String>, usize);

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
        self.source.as_deref()
    }

    /// The words in memory order.
    fn words<'py>(&self, py: Python<'py>) -> Bound<'py, PyAny> {
        self.program().words.clone().into_pyarray(py).into_any()
    }

    /// An address as listings write it.
    fn spelled(&self, address: u32) -> String {
        self.target().isa.spelled(address)
    }

    /// The text, which the assembler takes back; with its heading.
    #[pyo3(signature = (hex=false, structure=false, idioms=false, notes=false))]
    fn text(&self, hex: bool, structure: bool, idioms: bool, notes: bool) -> PyResult<String> {
        let listing = self.listing(Style { hex, structure, idioms, notes, ..Style::default() })?;
        Ok(self.machine().heading(self.target(), self.program()) + &listing.text)
    }

    /// The lines of the text that has the flow constructs.
    fn lines(&self) -> PyResult<Vec<Line>> {
        let listing = self.listing(Style { structure: true, notes: true, ..Style::default() })?;
        let lines = listing.lines(&self.program().words).into_iter();
        let line = |line: reconverge_workbench::listing::Line| {
            let code = line.code();
            (line.address, line.words, line.label, code, line.depth, line.notes, line.source_line)
        };
        Ok(lines.map(line).collect())
    }

    /// The instruction at an address explained, as JSON.
    fn explain(&self, address: u32) -> PyResult<String> {
        let explained = self.machine().explain_at(self.target(), self.program(), address);
        Ok(json!(explained.map_err(|error| errors::explain(&error))?).to_string())
    }

    /// What the file states about the program, as JSON.
    fn contents(&self) -> PyResult<String> {
        let contents = contents(&self.opened).map_err(|error| errors::target(&error))?;
        Ok(json!(contents.programs.get(self.number)).to_string())
    }

    /// Where the program breaks a rule of its machine, as JSON.
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

    /// The control flow as an SVG picture.
    fn svg(&self, title: &str) -> PyResult<String> {
        let drawing = Drawing::of(title, self.target(), self.program(), None);
        Ok(drawing.map_err(|error| errors::target(&error))?.svg())
    }
}

/// Whether a file of this name holds assembler source.
pub(crate) fn is_source(path: &Path) -> bool {
    path.to_str().is_some_and(reconverge_workbench::open::is_source)
}
