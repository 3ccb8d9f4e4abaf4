//! The files of the suite. `00_test_list.txt` lists files and other lists.
//!
//! A line in a list names a file or another list, relative to the folder of the list. `--min-version V` and
//! `--max-version V` before the name limit the versions of WebGL. If a line that names a list has such limits, the
//! limits also apply to the entries of the named list. `js/webgl-test-harness.js` in the suite describes the format.

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail};
use reconverge_simt::random::Random;

use super::Webgl;

/// The top-level list.
const LIST: &str = "00_test_list.txt";

/// Maximum nesting of lists. In the suite, lists are nested six levels deep.
const DEPTH: usize = 32;

/// A version of WebGL as numbers.
type Version = [u32; 3];

/// Returns the newest version of WebGL that has the major number `major`. The command runs the suite with this version.
const fn tested(major: u8) -> Version {
    match major {
        1 => [1, 0, 4],
        _ => [2, 0, 1],
    }
}

/// Returns the folder of the suite's list.
///
/// # Errors
/// Returns an error if the folder does not contain a list.
pub(super) fn root(given: &Path) -> Result<PathBuf> {
    let folders = [given.to_path_buf(), given.join("sdk/tests")];
    match folders.iter().find(|folder| folder.join(LIST).is_file()) {
        Some(folder) => folder.canonicalize().with_context(|| crate::shown::path(folder)),
        None => bail!(
            "--suite {}: {LIST} not found; get the suite with `git clone https://github.com/KhronosGroup/WebGL`",
            crate::shown::path(given)
        ),
    }
}

/// Returns the files to run, in the order of the lists. If the command runs only a sample, the files are in the order
/// of their names.
///
/// # Errors
/// Returns an error if a list cannot be read or parsed, or if no file is selected.
pub(super) fn chosen(args: &Webgl, root: &Path) -> Result<Vec<String>> {
    let mut files = Vec::new();
    let bounds = Bounds { least: [1, 0, 0], most: None };
    read(root, LIST, bounds, tested(args.version), 0, &mut files)?;
    let all = files.len();
    if let Some(wanted) = &args.tests {
        files.retain(|file| wanted.is_match(file));
    }
    if let Some(count) = args.sample {
        Random::new(args.seed).choose(&mut files, count);
        files.sort();
    }
    if files.is_empty() {
        bail!("the options do not select any of the {all} for version {} of WebGL", args.version);
    }
    Ok(files)
}

/// The versions to which a file or a list applies.
#[derive(Clone, Copy)]
struct Bounds {
    least: Version,
    most: Option<Version>,
}

/// Adds the files of a list.
fn read(
    root: &Path,
    list: &str,
    bounds: Bounds,
    version: Version,
    depth: usize,
    files: &mut Vec<String>,
) -> Result<()> {
    if depth > DEPTH {
        bail!("{list}: expected at most {DEPTH} nested lists");
    }
    let path = root.join(list);
    let text = fs::read_to_string(&path).with_context(|| crate::shown::path(&path))?;
    let folder = list.rfind('/').map_or("", |slash| &list[..=slash]);
    for (number, line) in text.lines().enumerate() {
        let line = line.trim();
        if line.is_empty() || ["#", ";", "//"].iter().any(|comment| line.starts_with(comment)) {
            continue;
        }
        let (name, bounds) =
            entry(line, bounds).with_context(|| format!("{}:{}", crate::shown::path(&path), number + 1))?;
        let name = format!("{folder}{name}");
        if name.ends_with(".txt") {
            read(root, &name, bounds, version, depth + 1, files)?;
        } else if version >= bounds.least && bounds.most.is_none_or(|most| version <= most) {
            files.push(name);
        }
    }
    Ok(())
}

/// Returns the name in a line, and the version limits of this line.
fn entry(line: &str, mut bounds: Bounds) -> Result<(String, Bounds)> {
    let mut words = line.split_whitespace();
    let mut name = Vec::new();
    while let Some(word) = words.next() {
        let mut number =
            || words.next().and_then(numbers).with_context(|| format!("{word} without a version"));
        match word {
            "--min-version" => bounds.least = number()?,
            "--max-version" => bounds.most = Some(number()?),
            "--slow" => {}
            _ if word.starts_with("--") => bail!("unknown option `{word}`"),
            _ => name.push(word),
        }
    }
    Ok((name.join(" "), bounds))
}

/// Returns the numbers of a version.
fn numbers(text: &str) -> Option<Version> {
    let mut version = [0; 3];
    let mut parts = text.split('.');
    for number in &mut version {
        match parts.next() {
            Some(part) => *number = part.parse().ok()?,
            None => break,
        }
    }
    parts.next().is_none().then_some(version)
}

#[cfg(test)]
mod unit {
    use super::*;

    /// Creates a folder of lists.
    fn lists(name: &str, files: &[(&str, &str)]) -> PathBuf {
        let root = std::env::temp_dir().join(format!("reconverge-webgl-{name}-{}", std::process::id()));
        for (file, text) in files {
            let path = root.join(file);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, text).unwrap();
        }
        root
    }

    fn files(root: &Path, version: Version) -> Result<Vec<String>> {
        let mut files = Vec::new();
        read(root, LIST, Bounds { least: [1, 0, 0], most: None }, version, 0, &mut files).map(|()| files)
    }

    #[test]
    fn lists_hand_their_bounds_on() {
        let root = lists(
            "bounds",
            &[
                (LIST, "// comment\na/00_test_list.txt\n--min-version 2.0.0 b/00_test_list.txt\n"),
                (
                    "a/00_test_list.txt",
                    "one.html\n--min-version 1.0.4 two.html\n--max-version 1.9.9 three.html?q=1\n",
                ),
                ("b/00_test_list.txt", "four.html\n--slow --min-version 2.0.2 five.html\n"),
            ],
        );
        assert_eq!(files(&root, [1, 0, 4]).unwrap(), ["a/one.html", "a/two.html", "a/three.html?q=1"]);
        assert_eq!(files(&root, [1, 0, 3]).unwrap(), ["a/one.html", "a/three.html?q=1"]);
        assert_eq!(files(&root, [2, 0, 1]).unwrap(), ["a/one.html", "a/two.html", "b/four.html"]);
        fs::remove_dir_all(root).unwrap();
    }

    #[test]
    fn what_a_list_says_wrongly_is_named_with_its_line() {
        let root = lists("wrong", &[(LIST, "one.html\n--fast two.html\n")]);
        let error = format!("{:#}", files(&root, [1, 0, 4]).unwrap_err());
        assert!(error.ends_with("00_test_list.txt:2: unknown option `--fast`"), "{error}");
        fs::write(root.join(LIST), "--min-version two.html\n").unwrap();
        assert!(
            format!("{:#}", files(&root, [1, 0, 4]).unwrap_err()).contains("--min-version without a version")
        );
        fs::write(root.join(LIST), "00_test_list.txt\n").unwrap();
        assert!(format!("{:#}", files(&root, [1, 0, 4]).unwrap_err()).contains("nested lists"));
        fs::remove_dir_all(root).unwrap();
    }
}
