//! Files that launch files, manifests and command lines name.
//!
//! A launch file may come from somewhere else, so that what it names is read only inside one folder, and only from regular
//! files: its own folder, for a manifest the folder above, or the folder given to `check`. What the command line names,
//! its user names.

use std::cell::RefCell;
use std::path::{Path, PathBuf};

use reconverge_isa::limits::MEMORY;
use reconverge_workbench::array::Dtype;
use reconverge_workbench::values::Files;

use crate::files::read_bounded;
use crate::messages::note;

/// Where files that a request names are looked for, and where they may be.
#[derive(Clone, Debug, Default)]
pub(crate) struct Beside {
    folder: PathBuf,
    /// Whether a file names them, rather than the command line.
    by_file: bool,
    /// What they must be inside of; anywhere when absent.
    root: Option<PathBuf>,
    /// The types that numbers got without a stated one, by what they are for.
    types: RefCell<Vec<(String, Dtype)>>,
}

impl Beside {
    /// Relative to the working directory, anywhere.
    pub(crate) fn here() -> Beside {
        Beside::default()
    }

    /// Relative to the folder that holds `file`, which names them: regular files inside `root`.
    pub(crate) fn file(file: &Path, root: Option<PathBuf>) -> Beside {
        Beside { folder: folder_of(file), by_file: true, root, types: RefCell::default() }
    }

    /// The path of a file named in the request, if it may be read.
    pub(crate) fn path(&self, name: &str) -> Result<PathBuf, String> {
        let path = self.folder.join(name);
        if self.by_file { allowed(&path, self.root.as_deref()) } else { Ok(path) }
    }

    /// What numbers without a stated type are read as, for people; `None` when all state theirs.
    pub(crate) fn types(&self) -> Option<String> {
        let types = self.types.borrow();
        let list: Vec<String> = types.iter().map(|(place, dtype)| format!("{place} {dtype}")).collect();
        (!list.is_empty()).then(|| {
            format!(
                "numbers without a type are read as: {} (:f32, :u32, :i32 or :bits behind them states it)",
                list.join(", ")
            )
        })
    }
}

impl Files for Beside {
    fn read(&self, name: &str) -> Result<Vec<u8>, String> {
        read_bounded(&self.path(name)?, &MEMORY).map_err(|error| format!("{error:#}"))
    }

    fn typed(&self, place: &str, dtype: Dtype) {
        let known = (place.to_owned(), dtype);
        let mut types = self.types.borrow_mut();
        if !types.contains(&known) {
            types.push(known);
        }
    }

    fn noted(&self, text: &str) {
        note(text);
    }
}

/// The folder that holds a file.
pub(crate) fn folder_of(file: &Path) -> PathBuf {
    match file.parent() {
        Some(folder) if !folder.as_os_str().is_empty() => folder.to_path_buf(),
        _ => PathBuf::from("."),
    }
}

/// The path, if it is a regular file, and inside `root` where there is one.
pub(crate) fn allowed(path: &Path, root: Option<&Path>) -> Result<PathBuf, String> {
    let real = |path: &Path| path.canonicalize().map_err(|error| error.to_string());
    let found = real(path)?;
    let root = root.map(real).transpose()?;
    if let Some(root) = root.filter(|root| !found.starts_with(root)) {
        return Err(format!(
            "it is outside {}; --allow-outside reads it all the same",
            crate::shown::path(&root)
        ));
    }
    match found.metadata() {
        Ok(about) if about.is_file() => Ok(path.to_path_buf()),
        Ok(_) => Err("it is not a regular file".to_owned()),
        Err(error) => Err(error.to_string()),
    }
}
