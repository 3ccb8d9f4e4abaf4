//! The tests: where they are, and which of them run.

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail};
use reconverge_simt::random::Random;
use walkdir::WalkDir;

use super::Piglit;

/// The folder of Debian's package, below the folder of libraries of the architecture.
const FOLDER: &str = "piglit";

/// The command that installs the package.
const INSTALL: &str = "apt-get install piglit";

/// The folders of tests, below both `tests` and `generated_tests`.
const VERSIONS: [&str; 3] =
    ["spec/glsl-1.10/execution", "spec/glsl-1.20/execution", "spec/glsl-1.30/execution"];

/// A test: its name and its file.
#[derive(Clone, Debug)]
pub(super) struct Test {
    pub(super) name: String,
    pub(super) file: PathBuf,
}

/// The folder of piglit's files.
pub(super) fn root(given: Option<&Path>) -> Result<PathBuf> {
    let is_root = |folder: &Path| folder.join("bin/shader_runner").is_file();
    if let Some(folder) = given {
        if !is_root(folder) {
            bail!("--piglit {}: bin/shader_runner is not there", crate::shown::path(&folder));
        }
        // Tests run in folders of their own.
        return folder.canonicalize().with_context(|| crate::shown::path(&folder));
    }
    let mut folders = vec![PathBuf::from("/usr/lib")];
    folders.extend(fs::read_dir("/usr/lib").into_iter().flatten().flatten().map(|entry| entry.path()));
    match folders.into_iter().map(|folder| folder.join(FOLDER)).find(|folder| is_root(folder)) {
        Some(folder) => Ok(folder),
        None => bail!("piglit is not installed: `{INSTALL}` installs it, and --piglit names it elsewhere"),
    }
}

/// The tests that the arguments ask for, in the order of their names.
pub(super) fn chosen(args: &Piglit, root: &Path) -> Result<Vec<Test>> {
    let mut tests = Vec::new();
    for folder in ["tests", "generated_tests"] {
        let base = root.join(folder);
        for version in VERSIONS {
            for entry in WalkDir::new(base.join(version)).into_iter().flatten() {
                let file = entry.into_path();
                if file.extension().is_none_or(|extension| extension != "shader_test") {
                    continue;
                }
                let Some(name) = file.strip_prefix(&base).ok().map(|path| path.with_extension("")) else {
                    continue;
                };
                let name = name.to_string_lossy().replace('/', "@").to_lowercase();
                tests.push(Test { name, file });
            }
        }
    }
    tests.sort_by(|one, other| one.name.cmp(&other.name));
    let all = tests.len();
    if let Some(wanted) = &args.tests {
        tests.retain(|test| wanted.is_match(&test.name));
    }
    if let Some(count) = args.sample {
        let mut random = Random::new(args.seed);
        for place in 0..count.min(tests.len()) {
            let left = (tests.len() - place) as u32;
            tests.swap(place, place + random.below(left) as usize);
        }
        tests.truncate(count);
        tests.sort_by(|one, other| one.name.cmp(&other.name));
    }
    if tests.is_empty() {
        bail!("no test is left of the {all} in {}", crate::shown::path(&root));
    }
    Ok(tests)
}
