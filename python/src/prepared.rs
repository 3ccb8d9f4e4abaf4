//! A launch that is ready to run. This file has the parts that the runs and the sessions of the launch share.

use std::collections::{BTreeMap, HashMap};
use std::num::NonZeroUsize;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

use pyo3::prelude::*;
use reconverge_isa::program;
use reconverge_simt::{Engine, Options};
use reconverge_workbench::Error;
use reconverge_workbench::array::{Array, Dtype};
use reconverge_workbench::launch::LaunchFile;
use reconverge_workbench::naming::accessed;
use reconverge_workbench::session::Stepping;
use reconverge_workbench::trapped::look;
use reconverge_workbench::values::{Files, Stated};
use toml::Table;

use crate::errors;
use crate::observe::EventNames;
use crate::program::{Program, named};

/// The parts of a launch that the launch's runs and sessions share.
pub(crate) struct Core {
    pub(crate) session: reconverge_workbench::Session,
    pub(crate) program: Program,
    /// The fields of the launch file, as the file states them. `None` if the launch does not come from a file.
    pub(crate) fields: Option<Table>,
    /// The launch file that states expected results, and the files that this launch file names. `None` if no results
    /// are expected.
    pub(crate) expects: Option<(LaunchFile, Arc<Beside>)>,
    pub(crate) options: Options,
    pub(crate) title: String,
    /// The types that were chosen for numbers without a stated type.
    pub(crate) typed: Vec<String>,
}

/// Files and arrays that a launch names.
#[derive(Debug, Default)]
pub(crate) struct Beside {
    pub(crate) folder: PathBuf,
    /// Whether a launch file names the files. A launch file may name only files in the folder of the launch file.
    pub(crate) inside: bool,
    pub(crate) arrays: HashMap<String, (Array, Stated)>,
    pub(crate) typed: Mutex<Vec<String>>,
    /// The files that were read, by name.
    pub(crate) files: Mutex<BTreeMap<String, Vec<u8>>>,
    /// Whether the launch may read only the files in `files`. This restriction applies to a launch that comes from
    /// another process.
    pub(crate) sealed: bool,
}

impl Beside {
    /// Returns the path of a file that the launch names.
    pub(crate) fn path(&self, name: &str) -> Result<PathBuf, String> {
        let path = self.folder.join(name);
        if self.inside {
            let real = |path: &Path| path.canonicalize().map_err(|error| error.to_string());
            let (found, folder) = (real(&path)?, real(&self.folder)?);
            if !found.starts_with(&folder) {
                return Err(format!("the file is outside {}; outside=True permits it", folder.display()));
            }
            if !found.is_file() {
                return Err("not a regular file".to_owned());
            }
        }
        Ok(path)
    }
}

impl Files for Beside {
    fn read(&self, name: &str) -> Result<Vec<u8>, String> {
        let mut files = self.files.lock().unwrap_or_else(PoisonError::into_inner);
        match files.get(name) {
            Some(bytes) => return Ok(bytes.clone()),
            None if self.sealed => return Err("the copy of this launch does not have it".to_owned()),
            None => {}
        }
        let bytes = std::fs::read(self.path(name)?).map_err(|error| error.to_string())?;
        files.insert(name.to_owned(), bytes.clone());
        Ok(bytes)
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

impl Core {
    pub(crate) fn program(&self) -> &program::Program {
        self.program.program()
    }

    /// Returns the name of the program's file in messages.
    pub(crate) fn file(&self) -> &str {
        &self.program.origin.title
    }

    /// Returns the exception for a run that does not have a result. If the program trapped, adds the state of the
    /// program.
    pub(crate) fn failed(&self, error: Error) -> PyErr {
        errors::run_of(self.looked(error, &self.options), self.file())
    }

    /// Returns the options with this engine and this number of threads.
    pub(crate) fn with(&self, engine: Option<&str>, jobs: Option<usize>, other: Engine) -> PyResult<Options> {
        let engine = match engine {
            None => other,
            Some(name) => named("engine", name, &Engine::ALL.map(|engine| (engine.name(), engine)))?,
        };
        Ok(Options { engine, jobs: jobs.and_then(NonZeroUsize::new), ..self.options })
    }

    /// If the error is a trap, adds the state of the program to the error. Otherwise, returns the error unchanged.
    pub(crate) fn looked(&self, error: Error, options: &Options) -> Error {
        let Error::Trap(mut trapped) = error else { return error };
        look(&mut trapped, &self.program.opened, self.program(), &self.session, options);
        Error::Trap(trapped)
    }

    pub(crate) fn stepping(&self, options: &Options) -> PyResult<Stepping> {
        self.session.start(options).map_err(errors::run)
    }

    /// Returns the names of registers and memories in events.
    pub(crate) fn names(&self) -> PyResult<Arc<EventNames>> {
        let options = Options { engine: Engine::Fast, ..self.options };
        let target = self.program.target().for_program(&self.program.opened.image, self.program());
        let accessed = accessed(&target, self.program()).map_err(|error| errors::target(&error))?;
        Ok(Arc::new(EventNames::new(self.stepping(&options)?.registers(), accessed)))
    }
}
