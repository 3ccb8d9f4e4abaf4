//! Files that launch files, manifests and command lines name.
//!
//! A launch file may come from an untrusted source. So each file that a launch file names must be a regular file inside
//! one folder. Otherwise, this module does not read the file. For a launch file, this folder is the folder of the
//! launch file. For a manifest, this folder is the parent of the manifest's folder. For `check`, this folder is the
//! folder that the user passes. The user names the files on the command line, so these files are not restricted.

use std::cell::RefCell;
use std::path::{Path, PathBuf};

use reconverge_isa::limits::MEMORY;
use reconverge_workbench::array::Dtype;
use reconverge_workbench::values::Files;

use crate::files::read_bounded;
use crate::messages::note;

/// Two folders. The names of files in a launch are relative to one folder. The other folder must contain these files.
#[derive(Clone, Debug, Default)]
pub(crate) struct Beside {
    folder: PathBuf,
    /// Whether a launch file or a manifest contains the names of the files. If not, the command line contains the
    /// names.
    by_file: bool,
    /// The folder that must contain the files. If the value is `None`, the files may be anywhere.
    root: Option<PathBuf>,
    /// The types that the launch chose for numbers without a stated type. Each entry has the name of the input and the
    /// type.
    types: RefCell<Vec<(String, Dtype)>>,
}

impl Beside {
    /// Returns a `Beside` for files that the command line names. Names are relative to the working directory, and files
    /// may be anywhere.
    pub(crate) fn here() -> Beside {
        Beside::default()
    }

    /// Returns a `Beside` for files that the launch file or manifest `file` names. Names are relative to the folder of
    /// `file`. If `root` is `Some`, each name must refer to a regular file inside this folder.
    pub(crate) fn file(file: &Path, root: Option<PathBuf>) -> Beside {
        Beside { folder: folder_of(file), by_file: true, root, types: RefCell::default() }
    }

    /// Returns the path of a file, or an error if reading the file is not allowed.
    pub(crate) fn path(&self, name: &str) -> Result<PathBuf, String> {
        let path = self.folder.join(name);
        if self.by_file { allowed(&path, self.root.as_deref()) } else { Ok(path) }
    }

    /// Returns a text that lists the types that were assumed for numbers without a stated type. Returns `None` if all
    /// numbers had a stated type.
    pub(crate) fn types(&self) -> Option<String> {
        let types = self.types.borrow();
        let list: Vec<String> = types.iter().map(|(place, dtype)| format!("{place} {dtype}")).collect();
        (!list.is_empty()).then(|| {
            format!(
                "assumed types of numbers: {}; state others with a suffix :f32, :u32, :i32 or :bits",
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

/// Returns the folder that contains a file.
pub(crate) fn folder_of(file: &Path) -> PathBuf {
    match file.parent() {
        Some(folder) if !folder.as_os_str().is_empty() => folder.to_path_buf(),
        _ => PathBuf::from("."),
    }
}

/// Returns the path if it refers to a regular file. If `root` is `Some`, the file must also be inside this folder.
pub(crate) fn allowed(path: &Path, root: Option<&Path>) -> Result<PathBuf, String> {
    let real = |path: &Path| path.canonicalize().map_err(|error| error.to_string());
    let found = real(path)?;
    let root = root.map(real).transpose()?;
    if let Some(root) = root.filter(|root| !found.starts_with(root)) {
        return Err(format!("the file is outside {}; --allow-outside permits it", crate::shown::path(&root)));
    }
    match found.metadata() {
        Ok(about) if about.is_file() => Ok(path.to_path_buf()),
        Ok(_) => Err("not a regular file".to_owned()),
        Err(error) => Err(error.to_string()),
    }
}
