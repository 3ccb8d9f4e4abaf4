//! A program with what it starts from: runs, counts, reports.

use std::collections::HashMap;
use std::num::NonZeroUsize;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

use pyo3::prelude::*;
use pyo3::types::{PyDict, PyList};
use reconverge_isa::{Isa, program};
use reconverge_simt::{Engine, Lane, Options};
use reconverge_workbench::Error;
use reconverge_workbench::array::{Array, Dtype};
use reconverge_workbench::launch::{LaunchFile, choose_program};
use reconverge_workbench::listing::Style;
use reconverge_workbench::open::open_named;
use reconverge_workbench::report::{Bounds, Report, Subject, page};
use reconverge_workbench::result::RunResult;
use reconverge_workbench::session::Stepping;
use reconverge_workbench::naming;
use reconverge_workbench::stats::Profile;
use reconverge_workbench::trace::Recorded;
use reconverge_workbench::trapped::look;
use reconverge_workbench::values::{Files, Stated};
use reconverge_workbench::{Known, Opened, kernels as built_in};
use serde_json::{Value, json};
use toml::Table;

use crate::array::{FromNumpy, to_numpy};
use crate::errors;
use crate::observe::observe;
use crate::program::{Program, is_source, named, programs};
use crate::session::Session;

/// The page that reports are written with.
const PAGE: &str = include_str!("../../crates/cli/assets/report.html");

/// Names of registers and memory, as [`Launch::naming`] returns them.
type Naming = (Vec<(String, u32, u32, String)>, HashMap<u32, (Vec<String>, Option<String>)>);

/// A program with what it starts from, ready to run any number of times.
#[pyclass(frozen, module = "reconverge._native")]
pub(crate) struct Launch {
    session: reconverge_workbench::Session,
    opened: Arc<Opened>,
    number: usize,
    source: Option<Arc<str>>,
    /// The fields of its launch file, as they are written there; `None` for a launch without a file.
    fields: Option<Table>,
    /// What must come out, where a launch file says so.
    expects: Option<(LaunchFile, Beside)>,
    options: Options,
    title: String,
    /// What numbers without a stated type were read as.
    typed: Vec<String>,
}

/// Files and arrays that a launch names.
#[derive(Debug, Default)]
struct Beside {
    folder: PathBuf,
    /// Whether a file names them, which may name files of its folder only.
    inside: bool,
    arrays: HashMap<String, (Array, Stated)>,
    typed: Mutex<Vec<String>>,
}

impl Beside {
    fn path(&self, name: &str) -> Result<PathBuf, String> {
        let path = self.folder.join(name);
        if self.inside {
            let real = |path: &Path| path.canonicalize().map_err(|error| error.to_string());
            let (found, folder) = (real(&path)?, real(&self.folder)?);
            if !found.starts_with(&folder) {
                return Err(format!(
                    "it is outside {}; outside=True reads it all the same",
                    folder.display()
                ));
            }
            if !found.is_file() {
                return Err("it is no regular file".to_owned());
            }
        }
        Ok(path)
    }
}

impl Files for Beside {
    fn read(&self, name: &str) -> Result<Vec<u8>, String> {
        std::fs::read(self.path(name)?).map_err(|error| error.to_string())
    }

    fn array(&self, name: &str) -> Option<(&Array, Stated)> {
        self.arrays.get(name).map(|(array, stated)| (array, *stated))
    }

    fn typed(&self, place: &str, dtype: Dtype) {
        let text = format!("{place} {dtype}");
        let mut typed = self.typed.lock().unwrap_or_else(PoisonError::into_inner);
        if !typed.contains(&text) {
            typed.push(text);
        }
    }
}

/// A launch of a program: the fields of a launch file as JSON, then options as the command line has them. Values that name
/// an array are that array.
///
/// # Errors
/// A launch that does not fit the program or the machine.
#[pyfunction]
pub(crate) fn launch(
    program: &Program,
    title: String,
    fields: &str,
    options: Vec<(String, String)>,
    arrays: Vec<FromNumpy<'_>>,
) -> PyResult<Launch> {
    let mut launch = LaunchFile::parse(fields).map_err(errors::wrong)?;
    for (option, value) in options {
        launch.set(&option, &value).map_err(errors::run)?;
    }
    launch.common.chip =
        program.target().chip.as_ref().map(|chip| chip.name.clone()).or(launch.common.chip.take());
    launch.common.stage =
        launch.common.stage.take().or(program.target().stage.map(|stage| stage.name().to_owned()));
    let folder = PathBuf::from(".");
    let arrays = arrays.iter().map(FromNumpy::read).collect::<PyResult<_>>()?;
    let beside = Beside { folder, arrays, ..Beside::default() };
    Launch::new(program, launch, beside, title)
}

/// The launch that a launch file describes, with its program. `changes` are fields as JSON that replace those of the file;
/// their values that name an array are that array.
///
/// # Errors
/// A file that is no launch file, or what it names cannot be read.
#[pyfunction]
pub(crate) fn launch_file(
    path: PathBuf,
    outside: bool,
    changes: &str,
    arrays: Vec<FromNumpy<'_>>,
) -> PyResult<(Program, Launch)> {
    let title = path.display().to_string();
    let wrong = |why: String| errors::wrong(format!("{title}: {why}"));
    let text = std::fs::read_to_string(&path).map_err(|error| wrong(error.to_string()))?;
    let fields = LaunchFile::fields(&text).map_err(|error| wrong(error.to_string()))?;
    let mut changed = fields.clone();
    changed.extend(LaunchFile::fields(changes).map_err(errors::wrong)?);
    let launch = LaunchFile::of(&changed).map_err(|error| wrong(error.to_string()))?;
    let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty());
    let folder = folder.map_or_else(|| PathBuf::from("."), Path::to_path_buf);
    let arrays = arrays.iter().map(FromNumpy::read).collect::<PyResult<_>>()?;
    let beside = Beside { folder, inside: !outside, arrays, ..Beside::default() };
    let name = launch.common.program.clone();
    let name =
        name.ok_or_else(|| wrong("it names no program: add a line such as program = \"a.s\"".to_owned()))?;
    let file = beside.path(&name).map_err(|why| wrong(format!("{name}: {why}")))?;
    let bytes = std::fs::read(&file).map_err(|error| wrong(format!("{name}: {error}")))?;
    let stage = launch.stage().map_err(errors::run)?;
    let known = Known { isa: Some(launch.isa), chip: launch.common.chip.clone(), stage, ..Known::default() };
    let opened = open_named(&name, &bytes, known, &mut |included| {
        std::fs::read(beside.path(included)?).map_err(|error| error.to_string())
    });
    let opened = opened.map_err(|error| errors::open(&name, &bytes, &error))?;
    let program = choose_program(&opened.image, launch.common.kernel.as_deref()).map_err(errors::run)?;
    let number = opened.image.programs.iter().position(|known| std::ptr::eq(known, program)).unwrap_or(0);
    let source = is_source(&file).then(|| String::from_utf8_lossy(&bytes).into_owned());
    let program = programs(opened, source).swap_remove(number);
    let launch = Launch { fields: Some(fields), ..Launch::new(&program, launch, beside, title)? };
    Ok((program, launch))
}

/// Returns a value of a launch file as Python's own: text, number, bool, list or dict.
fn field<'py>(py: Python<'py>, value: &toml::Value) -> PyResult<Bound<'py, PyAny>> {
    Ok(match value {
        toml::Value::String(text) => text.into_pyobject(py)?.into_any(),
        toml::Value::Integer(number) => number.into_pyobject(py)?.into_any(),
        toml::Value::Float(number) => number.into_pyobject(py)?.into_any(),
        toml::Value::Boolean(value) => value.into_pyobject(py)?.to_owned().into_any(),
        // No field of a launch is a time.
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

/// The names and machines of the built-in kernels.
#[pyfunction]
pub(crate) fn kernels() -> Vec<(&'static str, &'static str)> {
    built_in::KERNELS.iter().map(|kernel| (kernel.name, kernel.isa.name())).collect()
}

/// A launch of the first lanes of a built-in kernel.
///
/// # Errors
/// No such kernel, or a number of lanes that it does not run with.
#[pyfunction]
pub(crate) fn kernel(name: &str, isa: &str, lanes: u32) -> PyResult<(Program, Launch)> {
    let isa = named("isa", isa, &Isa::ALL.map(|isa| (isa.name(), isa)))?;
    let kernel = built_in::find(isa, name).ok_or_else(|| {
        let known: Vec<String> = kernels().iter().map(|(name, isa)| format!("{name} of {isa}")).collect();
        errors::wrong(format!("no kernel {name} of {isa}: there is {}", known.join(", ")))
    })?;
    let session = kernel.prepare(lanes).map_err(errors::wrong)?;
    let opened = kernel.open().map_err(|error| errors::open(name, kernel.source.as_bytes(), &error))?;
    let program = programs(opened, Some(kernel.source.to_owned())).swap_remove(0);
    let launch = Launch {
        session,
        opened: program.opened.clone(),
        number: program.number,
        source: program.source.clone(),
        fields: None,
        expects: None,
        options: Options::default(),
        title: format!("{name} ({isa})"),
        typed: Vec::new(),
    };
    Ok((program, launch))
}

impl Launch {
    fn new(program: &Program, launch: LaunchFile, beside: Beside, title: String) -> PyResult<Launch> {
        let session =
            launch.prepare(&program.opened.image, program.program(), &beside).map_err(errors::run)?;
        let typed = std::mem::take(&mut *beside.typed.lock().unwrap_or_else(PoisonError::into_inner));
        Ok(Launch {
            session,
            opened: program.opened.clone(),
            number: program.number,
            source: program.source.clone(),
            options: launch.options(&Options::default()).map_err(errors::run)?,
            title,
            typed,
            fields: None,
            expects: launch.expects_something().then_some((launch, beside)),
        })
    }

    fn program(&self) -> &program::Program {
        &self.opened.image.programs[self.number]
    }

    /// The options with an engine and a number of threads.
    fn with(&self, engine: Option<&str>, jobs: Option<usize>, other: Engine) -> PyResult<Options> {
        let engine = match engine {
            None => other,
            Some(name) => named("engine", name, &Engine::ALL.map(|engine| (engine.name(), engine)))?,
        };
        Ok(Options { engine, jobs: jobs.and_then(NonZeroUsize::new), ..self.options })
    }

    /// What is seen at a trap, added to it.
    fn looked(&self, error: Error, options: &Options) -> Error {
        let Error::Trap(mut trapped) = error else { return error };
        trapped.line = self.opened.line(self.program(), trapped.pc);
        look(&mut trapped, &self.opened.target, self.program(), &self.session, options);
        Error::Trap(trapped)
    }

    fn stepping(&self, options: &Options) -> PyResult<Stepping> {
        self.session.start(options).map_err(errors::run)
    }
}

#[pymethods]
impl Launch {
    #[getter]
    fn title(&self) -> &str {
        &self.title
    }

    /// What numbers without a stated type were read as.
    #[getter]
    fn typed(&self) -> Vec<String> {
        self.typed.clone()
    }

    /// The fields of its launch file, as they are written there; `None` for a launch without a file.
    fn fields<'py>(&self, py: Python<'py>) -> PyResult<Option<Bound<'py, PyDict>>> {
        self.fields.as_ref().map(|table| dict(py, table)).transpose()
    }

    /// The buffers of Tesla's global memory: name, first byte, one past the last. Other machines have none.
    fn buffers(&self) -> PyResult<Vec<(String, u64, u64)>> {
        let stepping = self.stepping(&self.with(None, None, Engine::Fast)?)?;
        let buffers = stepping.buffers("g", 0, Lane(0)).into_iter();
        Ok(buffers.map(|(name, range)| (name, range.start, range.end)).collect())
    }

    /// Runs to the end: outputs by name, and the rest as JSON.
    #[pyo3(signature = (engine=None, jobs=None))]
    fn run<'py>(
        &self,
        py: Python<'py>,
        engine: Option<&str>,
        jobs: Option<usize>,
    ) -> PyResult<(Bound<'py, PyDict>, String)> {
        let options = self.with(engine, jobs, Engine::Compiled)?;
        let ran = {
            let session = self.session.copy();
            py.detach(|| {
                let outcome = session.run(&options).map_err(|error| self.looked(error, &options))?;
                Ok(RunResult::of(&*outcome))
            })
        };
        let mut result = ran.map_err(errors::run)?;
        if let Some((launch, beside)) = &self.expects {
            for expected in &launch.common.expect {
                result.compare(expected, None, beside).map_err(|error| errors::run(error.into()))?;
            }
            if let Some(trap) = &launch.common.trap {
                result.mismatches.push(format!("must trap with `{trap}`, but ended"));
            }
        }
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
            "mismatches": result.mismatches,
        });
        let outputs = PyDict::new(py);
        for (name, array) in result.outputs {
            outputs.set_item(name, to_numpy(py, array)?)?;
        }
        Ok((outputs, rest.to_string()))
    }

    /// Names for events: the machine's registers (name, number of the first, how many, channels), and by address the memory
    /// that an instruction loads from and stores to.
    fn naming(&self) -> PyResult<Naming> {
        let options = self.with(None, None, Engine::Fast)?;
        let program = self.program();
        let target = self.opened.target.for_program(&self.opened.image, program);
        let accessed = naming::accessed(&target, program).map_err(|error| errors::target(&error))?;
        let registers = naming::registers(&self.stepping(&options)?.registers());
        let registers = registers.into_iter().map(|of| (of.name, of.first, of.count, of.channels));
        let spaces = accessed.into_iter().map(|(pc, of)| (pc, (of.loads, of.stores)));
        Ok((registers.collect(), spaces.collect()))
    }

    /// Counts by instruction, as JSON.
    #[pyo3(signature = (memory=true))]
    fn stats(&self, py: Python<'_>, memory: bool) -> PyResult<String> {
        let options = self.with(None, None, Engine::Fast)?;
        let (target, program) = (&self.opened.target, self.program());
        let machine = target.machine();
        let style = Style { structure: true, ..Style::default() };
        let listing = machine.disassemble(target, program, style).map_err(|error| errors::target(&error))?;
        let conventions = machine.conventions(target, program).map_err(|error| errors::target(&error))?;
        let memory = memory && conventions.have_accesses();
        let rule = match conventions.coalescing {
            Ok(rule) => rule.name(),
            Err(why) => why,
        };
        let stepping = self.stepping(&options)?;
        let width = stepping.lanes(0).len().max(1) as u32;
        let mut profile = Profile::new(width).by(conventions, &stepping.depths(0));
        let groups_per_block = stepping.groups_per_block();
        drop(stepping);
        let recorded = if memory { Recorded::Data } else { Recorded::Flow };
        let session = self.session.copy();
        let ran = py.detach(|| session.run_traced(&options, recorded, &mut profile).map(drop));
        ran.map_err(|error| errors::run(self.looked(error, &options)))?;
        profile.end();
        Ok(profile.to_json(&listing.instructions(&program.words), memory, rule, groups_per_block).to_string())
    }

    /// The page of a run. A trap ends the record and is part of it.
    fn report(&self, py: Python<'_>) -> PyResult<String> {
        let options = self.with(None, None, Engine::Fast)?;
        let (title, opened, source) = (self.title.as_str(), &*self.opened, self.source.as_deref());
        let subject = Subject { title, opened, program: self.program(), source };
        let report = py.detach(|| Report::of(subject, &self.session, &options, Bounds::default()));
        page(PAGE, &[report.map_err(errors::run)?]).map_err(errors::wrong)
    }

    /// The launch before its first instruction.
    #[pyo3(signature = (engine=None))]
    fn start(&self, engine: Option<&str>) -> PyResult<Session> {
        let options = self.with(engine, None, Engine::Fast)?;
        Ok(Session::new(self.stepping(&options)?))
    }

    /// Runs and hands what happens to a function, in batches of columns; gives whether the run came to its end.
    ///
    /// `kinds` has a bit for each kind of event that is wanted, `limit` is how many events are handed on at most.
    #[pyo3(signature = (function, kinds, batch, limit=None))]
    fn observe(
        &self,
        py: Python<'_>,
        function: Py<PyAny>,
        kinds: u16,
        batch: usize,
        limit: Option<u64>,
    ) -> PyResult<bool> {
        let options = self.with(None, None, Engine::Fast)?;
        observe(py, self.session.copy(), &options, &function, kinds, batch, limit)
            .map_err(|ended| ended.raised(|error| self.looked(error, &options)))
    }
}
