//! Targets take seeds from these folders of the repository: `corpus/`, and the collections in `shared/` if these
//! folders exist.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::{Arc, OnceLock};

use reconverge_cases::{Case, Folder, read};
use reconverge_testkit::shared;
use reconverge_workbench::values::Files;

/// Returns the files of `corpus/` by their path in this folder. If the sources are not available, returns no files.
pub fn corpus() -> &'static BTreeMap<String, Vec<u8>> {
    static CORPUS: OnceLock<BTreeMap<String, Vec<u8>>> = OnceLock::new();
    CORPUS.get_or_init(|| {
        let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../corpus");
        let entries = |folder: &Path| -> Vec<PathBuf> {
            let entries = std::fs::read_dir(folder).into_iter().flatten();
            entries.filter_map(|entry| Some(entry.ok()?.path())).collect()
        };
        let files = entries(&root).into_iter().flat_map(|folder| entries(&folder));
        let read = |file: PathBuf| {
            let name = file.strip_prefix(&root).ok()?.to_str()?.to_owned();
            Some((name, std::fs::read(file).ok()?))
        };
        files.filter_map(read).collect()
    })
}

/// Returns the assembler sources of the corpus for a machine.
pub fn sources(machine: &str) -> impl Iterator<Item = &'static [u8]> {
    let of = format!("{machine}/");
    let files = corpus().iter().filter(move |(name, _)| name.starts_with(&of) && name.ends_with(".s"));
    files.map(|(_, bytes)| bytes.as_slice())
}

/// Access to the files in one folder of the corpus. The string is the path of a file in this folder. Files in other
/// folders cannot be read.
#[derive(Clone, Debug)]
pub struct Beside(pub String);

impl Beside {
    fn find(&self, relative: &str) -> Result<Vec<u8>, String> {
        let folder = self.0.rsplit_once('/').map_or("", |(folder, _)| folder);
        let file = corpus().get(&format!("{folder}/{relative}"));
        file.cloned().ok_or_else(|| "it is not in the corpus".to_owned())
    }
}

impl Folder for Beside {
    fn read(&self, relative: &str) -> Result<Vec<u8>, String> {
        self.find(relative)
    }

    fn above(&self, _: &str) -> Option<(String, Vec<u8>)> {
        None
    }
}

impl Files for Beside {
    fn read(&self, name: &str) -> Result<Vec<u8>, String> {
        self.find(name)
    }
}

/// Returns the cases of a machine. The function returns the cases of the corpus and of the collections in `shared/`, if
/// these folders exist. Each case has a path. The folder of this path contains the files that the launches of the case
/// name.
pub fn cases(machine: &str) -> Vec<(String, Case)> {
    let of = format!("{machine}/");
    let mut cases = Vec::new();
    let mut add = |name: &str, bytes: &[u8]| {
        let folder: Arc<dyn Folder> = Arc::new(Beside(name.to_owned()));
        let read = read(name, bytes, &folder, None).unwrap_or_default();
        cases.extend(read.into_iter().map(|case| (name.to_owned(), case)));
    };
    for (name, bytes) in corpus().iter().filter(|(name, _)| name.starts_with(&of) && !name.ends_with(".s")) {
        add(name, bytes);
    }
    for collection in ["piglit", "flow"] {
        let name = format!("corpus/{machine}/{collection}.jsonl.gz");
        if let Some(bytes) = shared(&name).and_then(|file| std::fs::read(file).ok()) {
            add(&name, &bytes);
        }
    }
    cases
}
