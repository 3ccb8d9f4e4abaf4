//! Launches. A launch is a program with its initial state. This file has runs, counts and reports of launches.

use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

use numpy::IntoPyArray;
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyDict, PyList};
use reconverge_isa::Isa;
use reconverge_isa::expand::beside;
use reconverge_simt::{Engine, Lane, Options};
use reconverge_workbench::array::Array;
use reconverge_workbench::keys::placed;
use reconverge_workbench::launch::{LaunchFile, LaunchFileError, choose_program};
use reconverge_workbench::listing::Style;
use reconverge_workbench::report::{Bounds, Report, Subject, page};
use reconverge_workbench::result::RunResult;
use reconverge_workbench::stats::Profile;
use reconverge_workbench::target::Target;
use reconverge_workbench::trace::Recorded;
use reconverge_workbench::values::Stated;
use reconverge_workbench::{Known, kernels as built_in, suite};
use serde_json::{Value, json};
use toml::Table;

use crate::array::{FromNumpy, to_numpy};
use crate::errors;
use crate::observe::{FromHook, HookedRun, observe};
use crate::prepared::{Beside, Core};
use crate::program::{Origin, Program, is_source, named, programs};
use crate::session::Session;

/// The template of report pages.
const PAGE: &str = include_str!("../../crates/cli/assets/report.html");

/// A program with its initial state. The launch can run any number of times.
#[pyclass(frozen, module = "reconverge._native")]
pub(crate) struct Launch {
    core: Arc<Core>,
    recipe: Recipe,
}

/// A launch as plain Python values. [`relaunch`] converts these values to a launch.
type LaunchState<'py> = (
    String,
    String,
    Vec<(String, String)>,
    Vec<(String, &'static str, bool, Vec<usize>, Bound<'py, PyAny>)>,
    Vec<(String, Bound<'py, PyBytes>)>,
    Option<String>,
);

/// Names of registers with their numbers, and names of memories. [`Launch::naming`] returns these names.
type Naming = (Vec<(u32, String)>, Vec<String>);

/// The description from which a launch was created. If Python sends a launch to another process, that process creates
/// the launch from the description.
enum Recipe {
    /// A built-in kernel, and the number of lanes that the user requested.
    Kernel(&'static str, Isa, Option<u32>),
    /// The text of a launch file and options of the command line. The last field has the arrays and files that the text
    /// and the options name.
    Stated(String, Vec<(String, String)>, Arc<Beside>),
}

/// Returns a launch of a program. The arguments are the fields of a launch file as JSON, and options as on the command
/// line. If a value is the name of an array, the array replaces the value.
///
/// # Errors
/// Fails if the launch does not fit the program or the machine.
#[pyfunction]
pub(crate) fn launch(
    program: &Program,
    title: String,
    fields: String,
    options: Vec<(String, String)>,
    arrays: Vec<FromNumpy<'_>>,
) -> PyResult<Launch> {
    let folder = PathBuf::from(".");
    let arrays = arrays.iter().map(FromNumpy::read).collect::<PyResult<_>>()?;
    let beside = Beside { folder, arrays, ..Beside::default() };
    Launch::stated(program, title, fields, options, beside, None)
}

/// Returns the launch for the values that [`Launch::state`] returned. Does not read files.
///
/// # Errors
/// Fails in the same cases as [`launch`].
#[pyfunction]
pub(crate) fn relaunch(
    program: &Program,
    title: String,
    text: String,
    options: Vec<(String, String)>,
    arrays: Vec<FromNumpy<'_>>,
    files: Vec<(String, Vec<u8>)>,
    fields: Option<&str>,
) -> PyResult<Launch> {
    let arrays = arrays.iter().map(FromNumpy::read).collect::<PyResult<_>>()?;
    let files = Mutex::new(files.into_iter().collect());
    let beside = Beside { arrays, files, sealed: true, ..Beside::default() };
    let fields = fields.map(LaunchFile::fields).transpose().map_err(errors::wrong)?;
    Launch::stated(program, title, text, options, beside, fields)
}

/// Returns the launch that a launch file describes, and the program of the launch. `changes` are fields as JSON that
/// replace fields of the launch file. If the value of a field in `changes` is the name of an array, the array replaces
/// the value.
///
/// # Errors
/// Fails if the file is not a launch file, or if the function cannot read a file that the launch file names.
#[pyfunction]
pub(crate) fn launch_file(
    path: PathBuf,
    outside: bool,
    changes: &str,
    arrays: Vec<FromNumpy<'_>>,
) -> PyResult<(Program, Launch)> {
    let title = path.display().to_string();
    let wrong = |why: String| errors::wrong(placed(&title, &why));
    let text = std::fs::read_to_string(&path).map_err(|error| wrong(error.to_string()))?;
    let fields = LaunchFile::fields(&text).map_err(|error| wrong(error.to_string()))?;
    let changes = LaunchFile::fields(changes).map_err(errors::wrong)?;
    let text = match changes.is_empty() {
        // Without changes, the function uses the unchanged text of the launch file, so that messages refer to the lines
        // of the file.
        true => text,
        false => {
            let mut changed = fields.clone();
            changed.extend(changes);
            changed.to_string()
        }
    };
    let launch = LaunchFile::parse(&text).map_err(|error| wrong(error.to_string()))?;
    let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty());
    let folder = folder.map_or_else(|| PathBuf::from("."), Path::to_path_buf);
    let arrays = arrays.iter().map(FromNumpy::read).collect::<PyResult<_>>()?;
    let files = Beside { folder, inside: !outside, arrays, ..Beside::default() };
    let name = launch.common.program.clone();
    let name =
        name.ok_or_else(|| wrong("missing `program`; add a line such as program = \"a.s\"".to_owned()))?;
    let file = files.path(&name).map_err(|why| wrong(format!("{name}: {why}")))?;
    let bytes = std::fs::read(&file).map_err(|error| wrong(format!("{name}: {error}")))?;
    let stage = launch.stage().map_err(errors::run)?;
    let known = Known { isa: Some(launch.isa), chip: launch.common.chip.clone(), stage, ..Known::default() };
    let is_source = is_source(&file);
    let known = match is_source {
        true => known.with_included(&bytes, &mut |included| {
            std::fs::read(files.path(&beside(&name, included))?).map_err(|error| error.to_string())
        }),
        false => known,
    };
    let (mut programs, _) = programs(Origin { title: name, bytes, is_source, known })?;
    let opened = programs.first().map(|program| program.opened.clone());
    let opened = opened.ok_or_else(|| wrong("the file that `program` names has no program".to_owned()))?;
    let chosen = choose_program(&opened.image, launch.common.kernel.as_deref()).map_err(errors::run)?;
    let number = opened.image.programs.iter().position(|known| std::ptr::eq(known, chosen)).unwrap_or(0);
    let program = programs.swap_remove(number);
    let launch = Launch::stated(&program, title, text, Vec::new(), files, Some(fields))?;
    Ok((program, launch))
}

/// Returns a value of a launch file as a Python object: str, int, float, bool, list or dict.
fn field<'py>(py: Python<'py>, value: &toml::Value) -> PyResult<Bound<'py, PyAny>> {
    Ok(match value {
        toml::Value::String(text) => text.into_pyobject(py)?.into_any(),
        toml::Value::Integer(number) => number.into_pyobject(py)?.into_any(),
        toml::Value::Float(number) => number.into_pyobject(py)?.into_any(),
        toml::Value::Boolean(value) => value.into_pyobject(py)?.to_owned().into_any(),
        // No field of a launch file is a time.
        toml::Value::Datetime(time) => time.to_string().into_pyobject(py)?.into_any(),
        toml::Value::Array(values) => {
            let values: Vec<_> = values.iter().map(|value| field(py, value)).collect::<PyResult<_>>()?;
            PyList::new(py, values)?.into_any()
        }
        toml::Value::Table(table) => dict(py, table)?.into_any(),
    })
}

/// Returns the fields of a table as a dict.
fn dict<'py>(py: Python<'py>, table: &Table) -> PyResult<Bound<'py, PyDict>> {
    let dict = PyDict::new(py);
    for (name, value) in table {
        dict.set_item(name, field(py, value)?)?;
    }
    Ok(dict)
}

/// Returns a launch of a built-in kernel. For `mandel` and `collatz`, `lanes` is the number of lanes (default: 1024).
/// Each kernel of the suite has a fixed number of lanes.
///
/// # Errors
/// Fails if the kernel does not exist, or if the kernel cannot run with `lanes` lanes.
#[pyfunction]
pub(crate) fn kernel(name: &str, isa: &str, lanes: Option<u32>) -> PyResult<(Program, Launch)> {
    let isa = named("isa", isa, &Isa::ALL.map(|isa| (isa.name(), isa)))?;
    let (name, source, session) = match (built_in::find(isa, name), suite::find(isa, name), lanes) {
        (Some(kernel), ..) => (kernel.name, kernel.source, kernel.prepare(lanes.unwrap_or(built_in::ROW))),
        (None, Some(workload), None) => (workload.problem.name, workload.source, workload.prepare()),
        (None, Some(workload), Some(_)) => {
            return Err(errors::wrong(format!("lanes: {name} always has {} lanes", workload.lanes)));
        }
        (None, None, _) => return Err(errors::wrong(suite::no_kernel(isa, name))),
    };
    let session = session.map_err(errors::wrong)?;
    let title = format!("{name} ({isa})");
    let (bytes, known) = (source.as_bytes().to_vec(), Known { isa: Some(isa), ..Known::default() });
    let origin = Origin { title: title.clone(), bytes, is_source: true, known };
    let program = programs(origin)?.0.swap_remove(0);
    let core = Core {
        session,
        program: program.clone(),
        fields: None,
        expects: None,
        options: Options::default(),
        title,
        typed: Vec::new(),
    };
    Ok((program, Launch { core: Arc::new(core), recipe: Recipe::Kernel(name, isa, lanes) }))
}

/// Checks that a requested chip is the chip of the program. The words of a program are specific to the program's chip.
///
/// # Errors
/// Fails if no chip of the machine has the name `asked`, or if the program is for another chip.
fn same_chip(target: &Target, asked: &str) -> PyResult<()> {
    let other =
        Target::new(target.isa, Some(asked)).map_err(|error| errors::wrong(format!("chip: {error}")))?;
    match (&target.chip, other.chip) {
        (Some(own), Some(other)) if own.model != other.model => Err(errors::wrong(format!(
            "chip: {asked}, but the program is for {}: use chip= when the program is loaded",
            own.name
        ))),
        _ => Ok(()),
    }
}

impl Launch {
    /// Returns the launch that the text of a launch file and options describe. If the launch does not come from a file
    /// (`fields` is absent), the function adds the chip and the program type of the program's target to the launch.
    fn stated(
        program: &Program,
        title: String,
        text: String,
        options: Vec<(String, String)>,
        beside: Beside,
        fields: Option<Table>,
    ) -> PyResult<Launch> {
        let named = |error: LaunchFileError| match &fields {
            Some(_) => errors::wrong(error.at(&title)),
            None => errors::wrong(error),
        };
        let mut launch = LaunchFile::parse(&text).map_err(named)?;
        for (option, value) in &options {
            launch.set(option, value).map_err(errors::run)?;
        }
        if fields.is_none() {
            let target = program.target();
            if let Some(asked) = &launch.common.chip {
                same_chip(target, asked)?;
            }
            let chip = target.chip.as_ref().map(|chip| chip.name.clone());
            launch.common.chip = chip.or(launch.common.chip.take());
            let stage = target.stage.map(|stage| stage.name().to_owned());
            launch.common.stage = launch.common.stage.take().or(stage);
        }
        let image = &program.opened.image;
        let session = launch.prepare(image, program.program(), &beside);
        let session = session.map_err(|error| errors::prepared(error, fields.is_some()))?;
        let typed = std::mem::take(&mut *beside.typed.lock().unwrap_or_else(PoisonError::into_inner));
        let beside = Arc::new(beside);
        let core = Core {
            session,
            program: program.clone(),
            options: launch.options(&Options::default()).map_err(errors::run)?,
            title,
            typed,
            fields,
            expects: launch.expects_something().then_some((launch, beside.clone())),
        };
        Ok(Launch { core: Arc::new(core), recipe: Recipe::Stated(text, options, beside) })
    }
}

#[pymethods]
impl Launch {
    #[getter]
    fn title(&self) -> &str {
        &self.core.title
    }

    /// Returns the types that were chosen for numbers without a stated type.
    #[getter]
    fn typed(&self) -> Vec<String> {
        self.core.typed.clone()
    }

    /// Returns the fields of the launch file, as the file states them. Returns `None` if the launch does not come from
    /// a file.
    fn fields<'py>(&self, py: Python<'py>) -> PyResult<Option<Bound<'py, PyDict>>> {
        self.core.fields.as_ref().map(|table| dict(py, table)).transpose()
    }

    /// Returns the buffers in Tesla's global memory. Each tuple has the name of a buffer, the address of the first
    /// byte, and the address after the last byte. On other machines, the list is empty.
    fn buffers(&self) -> PyResult<Vec<(String, u64, u64)>> {
        let stepping = self.core.stepping(&self.core.with(None, None, Engine::Fast)?)?;
        let buffers = stepping.buffers("g", 0, Lane(0)).into_iter();
        Ok(buffers.map(|(name, range)| (name, range.start, range.end)).collect())
    }

    /// Runs the launch to its end. Returns the outputs by name. Returns all other results as JSON.
    #[pyo3(signature = (engine=None, jobs=None))]
    fn run<'py>(
        &self,
        py: Python<'py>,
        engine: Option<&str>,
        jobs: Option<usize>,
    ) -> PyResult<(Bound<'py, PyDict>, String)> {
        let options = self.core.with(engine, jobs, Engine::Compiled)?;
        let ran = {
            let session = self.core.session.copy();
            py.detach(|| {
                let outcome = session.run(&options).map_err(|error| self.core.looked(error, &options))?;
                let Some((launch, beside)) = &self.core.expects else { return Ok(RunResult::of(&*outcome)) };
                let mut result = launch.result(&*outcome, &**beside)?;
                let Core { program: Program { opened, .. }, session, .. } = &*self.core;
                launch.judge_counts(&mut result, &opened.image, self.core.program(), session, &options)?;
                let (result, mismatches) = launch.judged(Ok(result), "")?;
                Ok(RunResult { mismatches, ..result.unwrap_or_default() })
            })
        };
        let result = ran.map_err(|error| errors::run_of(error, self.core.file()))?;
        let operations = result.report.operations.iter();
        let fidelity: serde_json::Map<String, Value> = operations
            .map(|(name, (grade, times))| ((*name).to_owned(), json!([grade.name(), times])))
            .collect();
        let rest = json!({
            "instructions": result.statistics.instructions,
            "lane_instructions": result.statistics.lane_instructions,
            "divergent_branches": result.statistics.divergent_branches,
            "fidelity": fidelity,
            "findings": result.findings,
            "held": result.held,
            "mismatches": result.mismatches,
        });
        let outputs = PyDict::new(py);
        for (name, array) in result.outputs {
            outputs.set_item(name, to_numpy(py, array)?)?;
        }
        Ok((outputs, rest.to_string()))
    }

    /// Returns counts by instruction, as JSON.
    #[pyo3(signature = (memory=true))]
    fn stats(&self, py: Python<'_>, memory: bool) -> PyResult<String> {
        let options = self.core.with(None, None, Engine::Fast)?;
        let (target, program) = (self.core.program.target(), self.core.program());
        let machine = target.machine();
        let style = Style { structure: true, ..Style::default() };
        let listing = machine.disassemble(target, program, style).map_err(|error| errors::target(&error))?;
        let conventions = machine.conventions(target, program).map_err(|error| errors::target(&error))?;
        let memory = memory && conventions.have_accesses();
        let rule = match conventions.coalescing {
            Ok(rule) => rule.name(),
            Err(why) => why,
        };
        let stepping = self.core.stepping(&options)?;
        let width = stepping.lanes(0).len().max(1) as u32;
        let mut profile = Profile::new(width).by(conventions, &stepping.depths(0));
        let groups_per_block = stepping.groups_per_block();
        drop(stepping);
        let recorded = if memory { Recorded::Data } else { Recorded::Flow };
        let session = self.core.session.copy();
        let ran = py.detach(|| session.run_traced(&options, recorded, &mut profile).map(drop));
        ran.map_err(|error| self.core.failed(error))?;
        profile.end();
        Ok(profile.to_json(&listing.instructions(&program.words), memory, rule, groups_per_block).to_string())
    }

    /// Returns the report page of a run. If the program traps, the page shows the run up to the trap and the message
    /// about the trap.
    fn report(&self, py: Python<'_>) -> PyResult<String> {
        let options = self.core.with(None, None, Engine::Fast)?;
        let Core { program: Program { opened, .. }, session, title, .. } = &*self.core;
        let source = opened.source.as_deref();
        let subject = Subject { title, opened, program: self.core.program(), source };
        let report = py.detach(|| Report::of(subject, session, &options, Bounds::default()));
        page(PAGE, &[report.map_err(errors::run)?]).map_err(errors::wrong)
    }

    /// Returns a session that is before the first instruction of the launch.
    #[pyo3(signature = (engine=None))]
    fn start(&self, engine: Option<&str>) -> PyResult<Session> {
        let options = self.core.with(engine, None, Engine::Fast)?;
        Ok(Session::new(self.core.stepping(&options)?, self.core.clone()))
    }

    /// Runs the launch and passes events to hooks in batches of columns. If `batch` is 1, passes one event at a time.
    /// Returns the reason why the run ended (`end`, `limit` or `stop`), and for each hook the number of events that it
    /// received.
    ///
    /// `limit` is the maximum number of events that the hooks receive.
    #[pyo3(signature = (hooks, batch, limit=None))]
    fn observe(
        &self,
        py: Python<'_>,
        hooks: Vec<FromHook>,
        batch: usize,
        limit: Option<u64>,
    ) -> PyResult<(&'static str, Vec<u64>)> {
        let options = self.core.with(None, None, Engine::Fast)?;
        let names = self.core.names()?;
        let observed =
            observe(py, self.core.session.copy(), &options, HookedRun::new(hooks, names), batch, limit);
        observed.map_err(|ended| ended.raised(|error| self.core.failed(error)))
    }

    /// Returns the names of registers with the numbers that events use for the registers. Also returns the names of
    /// memories. In events, the first memory has the number 1, the second memory the number 2, and so on.
    fn naming(&self) -> PyResult<Naming> {
        let names = self.core.names()?;
        Ok((names.registers(), names.spaces().to_vec()))
    }

    /// Returns the name, machine and lanes of a built-in kernel, or `None` for any other launch.
    fn built_in(&self) -> Option<(&'static str, &'static str, Option<u32>)> {
        match self.recipe {
            Recipe::Kernel(name, isa, lanes) => Some((name, isa.name(), lanes)),
            Recipe::Stated(..) => None,
        }
    }

    /// Returns the launch as plain values for [`relaunch`]. Returns `None` if the launch runs a built-in kernel.
    fn state<'py>(&self, py: Python<'py>) -> PyResult<Option<LaunchState<'py>>> {
        let Recipe::Stated(text, options, beside) = &self.recipe else { return Ok(None) };
        let array = |(name, (array, stated)): (&String, &(Array, Stated))| {
            let bytes = array.bytes.clone().into_pyarray(py).into_any();
            let chosen = *stated == Stated::File;
            (name.clone(), array.dtype.name(), chosen, array.shape.clone(), bytes)
        };
        let files = beside.files.lock().unwrap_or_else(PoisonError::into_inner);
        Ok(Some((
            self.core.title.clone(),
            text.clone(),
            options.clone(),
            beside.arrays.iter().map(array).collect(),
            files.iter().map(|(name, bytes)| (name.clone(), PyBytes::new(py, bytes))).collect(),
            self.core.fields.as_ref().map(Table::to_string),
        )))
    }
}
