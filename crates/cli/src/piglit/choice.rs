//! The tests of piglit, and the selection of tests to run.

use std::collections::HashSet;
use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail};
use reconverge_simt::random::Random;
use walkdir::WalkDir;

use super::test::{AUTO_FBO, Sharing, Test};
use super::{Piglit, profile};

/// The folder of Debian's package, inside the architecture's library folder.
const FOLDER: &str = "piglit";

/// The command that installs the package.
const INSTALL: &str = "apt-get install piglit";

/// The folders of tests, inside both `tests` and `generated_tests`.
const VERSIONS: [&str; 3] =
    ["spec/glsl-1.10/execution", "spec/glsl-1.20/execution", "spec/glsl-1.30/execution"];

/// The selected tests.
pub(super) struct Chosen {
    /// The tests to run, in the order of their names.
    pub(super) tests: Vec<Test>,
    /// The names of all tests, including tests that are not selected.
    pub(super) all: HashSet<String>,
}

/// Returns the folder of piglit's files.
pub(super) fn root(given: Option<&Path>) -> Result<PathBuf> {
    let is_root = |folder: &Path| folder.join("bin/shader_runner").is_file();
    if let Some(folder) = given {
        if !is_root(folder) {
            bail!("--piglit {}: bin/shader_runner not found", crate::shown::path(&folder));
        }
        // Tests run in different folders, so the path must be absolute.
        return folder.canonicalize().with_context(|| crate::shown::path(&folder));
    }
    let mut folders = vec![PathBuf::from("/usr/lib")];
    folders.extend(fs::read_dir("/usr/lib").into_iter().flatten().flatten().map(|entry| entry.path()));
    match folders.into_iter().map(|folder| folder.join(FOLDER)).find(|folder| is_root(folder)) {
        Some(folder) => Ok(folder),
        None => bail!("piglit not found; install it with `{INSTALL}`, or name its folder with --piglit"),
    }
}

/// Returns the tests that the arguments select. `platform` is the window system for tests of a profile.
pub(super) fn chosen(args: &Piglit, root: &Path, platform: &str) -> Result<Chosen> {
    let mut tests = match &args.profile {
        Some(profile) => profile::tests(root, profile, platform)?,
        None => execution_tests(root),
    };
    tests.sort_by(|one, other| one.name.cmp(&other.name));
    let all: HashSet<String> = tests.iter().map(|test| test.name.clone()).collect();
    if let Some(wanted) = &args.tests {
        tests.retain(|test| wanted.is_match(&test.name));
    }
    if let Some(count) = args.sample {
        Random::new(args.seed).choose(&mut tests, count);
        tests.sort_by(|one, other| one.name.cmp(&other.name));
    }
    if let Some(part) = args.shard {
        tests = part.of(tests);
    }
    if tests.is_empty() {
        bail!("the options do not select any of the {} in {}", all.len(), crate::shown::path(&root));
    }
    Ok(Chosen { tests, all })
}

/// Returns the GLSL 1.10 to 1.30 execution tests.
fn execution_tests(root: &Path) -> Vec<Test> {
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
                let stem = file.file_stem().unwrap_or_default().to_string_lossy().into_owned();
                tests.push(Test {
                    name,
                    program: "shader_runner".to_owned(),
                    arguments: vec![file.into()],
                    options: AUTO_FBO,
                    shared: Some(Sharing { stem, needs: String::new() }),
                    ..Test::default()
                });
            }
        }
    }
    tests
}
