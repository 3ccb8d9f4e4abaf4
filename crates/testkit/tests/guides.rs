//! The examples of docs/contributing.md: each diff applies to the workspace, the machines with all diffs compile without a warning, and
//! the table states the number of places of each diff.
//!
//! The page defines the format of its diffs. A place is a hunk.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::process::Command;

const PAGE: &str = "docs/contributing.md";

/// One diff of the page.
#[derive(Debug, Default)]
struct Example {
    /// The heading above the diff.
    heading: String,
    hunks: Vec<Hunk>,
}

/// Consecutive lines of a file with their change.
#[derive(Clone, Debug, Default)]
struct Hunk {
    path: String,
    lines: Vec<Line>,
}

#[derive(Clone, Debug)]
struct Line {
    /// Line number in the page.
    number: usize,
    kind: Kind,
    text: String,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    Context,
    Added,
    Removed,
}

impl Hunk {
    /// Lines that the file has before the change.
    fn before(&self) -> Vec<&Line> {
        self.lines.iter().filter(|line| line.kind != Kind::Added).collect()
    }

    /// Lines that the file has after the change.
    fn after(&self) -> impl Iterator<Item = &str> {
        self.lines.iter().filter(|line| line.kind != Kind::Removed).map(|line| line.text.as_str())
    }

    /// Returns the text of the file with the change, or an error that names the line of the page.
    fn apply(&self, file: &str) -> Result<String, String> {
        let lines: Vec<&str> = file.split('\n').collect();
        let before = self.before();
        let starts_with = |at: usize, count: usize| {
            let there = lines.get(at..at + count);
            there.is_some_and(|there| there.iter().zip(&before).all(|(there, line)| *there == line.text))
        };
        let places: Vec<usize> = (0..lines.len()).filter(|at| starts_with(*at, before.len())).collect();
        match places[..] {
            [at] => {
                let rest = lines[at + before.len()..].iter().copied();
                let changed: Vec<&str> =
                    lines[..at].iter().copied().chain(self.after()).chain(rest).collect();
                Ok(changed.join("\n"))
            }
            [] => {
                let found = |count: &usize| (0..lines.len()).any(|at| starts_with(at, *count));
                let known = (1..before.len()).take_while(found).count();
                let Line { number, text, .. } = before[known];
                let after = if known == 0 { "" } else { " after the lines before it" };
                Err(format!("{PAGE}:{number}: {} does not have this line{after}: `{text}`", self.path))
            }
            _ => {
                let number = before[0].number;
                Err(format!("{PAGE}:{number}: {} has these lines {} times", self.path, places.len()))
            }
        }
    }
}

impl Example {
    fn files(&self) -> BTreeSet<&str> {
        self.hunks.iter().map(|hunk| hunk.path.as_str()).collect()
    }

    /// Adds a hunk, unless it is empty.
    fn close(&mut self, mut hunk: Hunk) -> Result<(), String> {
        let blank = |line: &Line| line.kind == Kind::Context && line.text.is_empty();
        while hunk.lines.pop_if(|line| blank(line)).is_some() {}
        hunk.lines = hunk.lines.into_iter().skip_while(blank).collect();
        let Some(Line { number, .. }) = hunk.lines.first() else { return Ok(()) };
        if hunk.path.is_empty() {
            return Err(format!("{PAGE}:{number}: expected `# path` before the first line of a diff"));
        }
        if hunk.before().is_empty() {
            return Err(format!("{PAGE}:{number}: a hunk without a line of the file"));
        }
        if hunk.lines.iter().all(|line| line.kind == Kind::Context) {
            return Err(format!("{PAGE}:{number}: a hunk without a change"));
        }
        self.hunks.push(hunk);
        Ok(())
    }
}

/// Returns the diffs of a page.
fn examples(page: &str) -> Result<Vec<Example>, String> {
    let mut examples = Vec::new();
    let mut heading = "";
    let mut open: Option<(Example, Hunk)> = None;
    for (number, line) in page.lines().enumerate().map(|(index, line)| (index + 1, line)) {
        let Some((example, hunk)) = &mut open else {
            if line == "```diff" {
                open = Some((Example { heading: heading.to_owned(), hunks: Vec::new() }, Hunk::default()));
            }
            heading = line.strip_prefix("### ").unwrap_or(heading);
            continue;
        };
        let (kind, text) = match line.chars().next() {
            None => (Kind::Context, line),
            Some(' ') => (Kind::Context, &line[1..]),
            Some('+') => (Kind::Added, &line[1..]),
            Some('-') => (Kind::Removed, &line[1..]),
            Some(_) => {
                let path = match line {
                    "…" | "```" => hunk.path.clone(),
                    _ => line.strip_prefix("# ").map(str::to_owned).ok_or_else(|| {
                        format!("{PAGE}:{number}: expected ` `, `+`, `-`, `# ` or `…`, found `{line}`")
                    })?,
                };
                example.close(std::mem::replace(hunk, Hunk { path, lines: Vec::new() }))?;
                if line == "```" {
                    examples.extend(open.take().map(|(example, _)| example));
                }
                continue;
            }
        };
        hunk.lines.push(Line { number, kind, text: text.to_owned() });
    }
    match open {
        Some(_) => Err(format!("{PAGE}: the last diff does not end")),
        None => Ok(examples),
    }
}

/// Compares the number of places of each example with its cell of the table. `### R500: an ALU operation` has the row `R500`
/// and the column `ALU operation`.
fn check_table(page: &str, examples: &[Example]) -> Result<(), String> {
    let cells = |line: &str| {
        let line = line.strip_prefix('|')?.strip_suffix('|')?;
        Some(line.split('|').map(|cell| cell.trim().to_owned()).collect::<Vec<_>>())
    };
    // The header begins with an empty cell.
    let mut table = page.lines().skip_while(|line| !line.starts_with("| |")).map_while(cells);
    let header = table.next().ok_or_else(|| format!("{PAGE}: no table of places"))?;
    let rows: BTreeMap<String, Vec<String>> = table.skip(1).map(|row| (row[0].clone(), row)).collect();
    if rows.len() * (header.len() - 1) != examples.len() {
        return Err(format!("{PAGE}: {} examples for a table of {} rows", examples.len(), rows.len()));
    }
    for example in examples {
        let Example { heading, hunks, .. } = example;
        let cell = heading.split_once(": ").and_then(|(machine, of)| {
            let column =
                header.iter().position(|column| !column.is_empty() && of.ends_with(column.as_str()))?;
            rows.get(machine)?.get(column)
        });
        let cell = cell.ok_or_else(|| format!("{PAGE}: no cell of the table for `{heading}`"))?;
        let most = if heading.ends_with("flow operation") { 5 } else { 4 };
        if hunks.len() > most {
            return Err(format!("{PAGE}: `{heading}`: {} places, at most {most} are allowed", hunks.len()));
        }
        let counted = format!("{} places in {} files", hunks.len(), example.files().len());
        if *cell != counted {
            return Err(format!("{PAGE}: `{heading}`: the table has `{cell}`, the diff has {counted}"));
        }
    }
    Ok(())
}

/// Applies all examples to the files of the workspace.
fn apply_all(
    examples: &[Example],
    mut read: impl FnMut(&str) -> Result<String, String>,
) -> Result<BTreeMap<String, String>, String> {
    let mut changed: BTreeMap<String, String> = BTreeMap::new();
    for hunk in examples.iter().flat_map(|example| &example.hunks) {
        let file = match changed.get(&hunk.path) {
            Some(file) => file.clone(),
            None => read(&hunk.path)?,
        };
        changed.insert(hunk.path.clone(), hunk.apply(&file)?);
    }
    Ok(changed)
}

// ---- The workspace

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

fn page() -> String {
    read(PAGE).unwrap()
}

fn read(path: &str) -> Result<String, String> {
    std::fs::read_to_string(root().join(path)).map_err(|error| format!("{path}: {error}"))
}

/// Returns the files of a folder, relative to it, without those whose names `skip` accepts.
fn files(folder: &Path, skip: &dyn Fn(&str) -> bool) -> Vec<PathBuf> {
    let mut found = Vec::new();
    let mut open = vec![PathBuf::new()];
    while let Some(at) = open.pop() {
        for entry in std::fs::read_dir(folder.join(&at)).expect("a folder") {
            let entry = entry.expect("an entry");
            let name = entry.file_name();
            if !skip(&name.to_string_lossy()) {
                let path = at.join(&name);
                if entry.path().is_dir() { open.push(path) } else { found.push(path) }
            }
        }
    }
    found
}

/// Copies the files of the workspace that cargo needs into `folder`, with the given changes.
///
/// Leaves equal files alone, so that the next run checks only the crates that have changed.
fn copy_workspace(folder: &Path, changed: &BTreeMap<String, String>) {
    let root = root();
    // Tests are not compiled, and have large files.
    let skip = |name: &str| matches!(name, "tests" | "target" | "node_modules") || name.starts_with('.');
    let mut copied: BTreeSet<PathBuf> = ["Cargo.toml", "Cargo.lock"].map(PathBuf::from).into();
    for package in ["crates", "python"] {
        copied
            .extend(files(&root.join(package), &skip).into_iter().map(|path| Path::new(package).join(path)));
    }
    std::fs::create_dir_all(folder).expect("a folder");
    for path in files(folder, &|_| false) {
        if !copied.contains(&path) {
            std::fs::remove_file(folder.join(path)).expect("a file to remove");
        }
    }
    for path in copied {
        let text = match changed.get(path.to_str().expect("a path in UTF-8")) {
            Some(text) => text.clone().into_bytes(),
            None => std::fs::read(root.join(&path)).expect("a file"),
        };
        let to = folder.join(path);
        if std::fs::read(&to).is_ok_and(|there| there == text) {
            continue;
        }
        std::fs::create_dir_all(to.parent().expect("a folder")).expect("a folder");
        std::fs::write(to, text).expect("a copy");
    }
}

#[test]
fn the_examples_of_the_guide_apply_and_compile() {
    let examples = examples(&page()).unwrap_or_else(|error| panic!("{error}"));
    let changed = apply_all(&examples, read).unwrap_or_else(|error| panic!("{error}"));
    let scratch = Path::new(env!("CARGO_TARGET_TMPDIR")).join("guides");
    let workspace = scratch.join("workspace");
    copy_workspace(&workspace, &changed);
    // The machines with all engines. Other crates have no match that names every operation, and their dependencies would double the
    // time (120 s instead of 60 s of processor time in an empty folder).
    let check = Command::new(std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into()))
        .args(["check", "--offline", "--locked", "--keep-going", "--quiet", "--message-format=short"])
        .args(["-p", "reconverge-r500", "-p", "reconverge-r700", "-p", "reconverge-tesla"])
        .arg("--target-dir")
        .arg(scratch.join("target"))
        .env("RUSTFLAGS", "-Dwarnings")
        .current_dir(&workspace)
        .output()
        .expect("cargo runs");
    let said = String::from_utf8_lossy(&check.stderr);
    assert!(check.status.success(), "the workspace with the diffs of {PAGE} does not compile:\n{said}");
}

#[test]
fn the_table_of_the_guide_counts_the_places() {
    let page = page();
    let examples = examples(&page).unwrap_or_else(|error| panic!("{error}"));
    assert_eq!(examples.len(), 6);
    check_table(&page, &examples).unwrap_or_else(|error| panic!("{error}"));
}

// ---- The parser and the comparison

const FILE: &str = "enum Op {\n    ADD,\n    SUB,\n}\n\nenum Other {\n    ADD,\n}\n";

/// Returns a page with one example of these lines.
fn page_of(diff: &str) -> String {
    format!(
        "### R500: an ALU operation\n\n| | ALU operation |\n|---|---|\n| R500 | 2 places in 1 files |\n\n```diff\n{diff}\n```\n"
    )
}

/// Returns the file after the diff.
fn applied(diff: &str) -> Result<String, String> {
    let examples = examples(&page_of(diff))?;
    let mut changed = apply_all(&examples, |path| {
        if path == "a.rs" { Ok(FILE.to_owned()) } else { Err(format!("{path}: no such file")) }
    })?;
    Ok(changed.remove("a.rs").expect("a changed file"))
}

#[test]
fn hunks_change_the_lines_that_they_name() {
    let changed =
        applied("# a.rs\n     ADD,\n-    SUB,\n+    SUBTRACT,\n }\n…\n enum Other {\n+    MUL,\n     ADD,");
    let expected = FILE.replace("SUB", "SUBTRACT").replace("Other {", "Other {\n    MUL,");
    assert_eq!(changed.as_deref(), Ok(expected.as_str()));
}

#[test]
fn blank_lines_at_the_edges_of_a_hunk_mean_nothing() {
    let changed = applied("# a.rs\n\n     SUB,\n+    MUL,\n\n…\n\n }\n\n+struct New;\n+\n enum Other {\n");
    let expected =
        FILE.replace("    SUB,", "    SUB,\n    MUL,").replace("\nenum Other", "\nstruct New;\n\nenum Other");
    assert_eq!(changed.as_deref(), Ok(expected.as_str()));
}

#[test]
fn a_line_that_the_file_does_not_have_is_an_error_with_its_place() {
    let error = applied("# a.rs\n     SUB,\n+    MUL,\n     DIV,\n }").unwrap_err();
    assert_eq!(
        error,
        format!("{PAGE}:11: a.rs does not have this line after the lines before it: `    DIV,`")
    );
    let error = applied("# a.rs\n-    DIV,\n }").unwrap_err();
    assert_eq!(error, format!("{PAGE}:9: a.rs does not have this line: `    DIV,`"));
    assert_eq!(applied("# b.rs\n-    DIV,").unwrap_err(), "b.rs: no such file");
}

#[test]
fn lines_that_the_file_has_twice_are_an_error() {
    let error = applied("# a.rs\n     ADD,\n+    MUL,").unwrap_err();
    assert_eq!(error, format!("{PAGE}:9: a.rs has these lines 2 times"));
}

#[test]
fn what_is_no_diff_is_an_error_with_its_place() {
    for (diff, error) in [
        ("# a.rs\n     SUB,\nMUL,", "10: expected ` `, `+`, `-`, `# ` or `…`, found `MUL,`"),
        ("     SUB,\n+    MUL,", "8: expected `# path` before the first line of a diff"),
        ("# a.rs\n+    MUL,", "9: a hunk without a line of the file"),
        ("# a.rs\n     SUB,", "9: a hunk without a change"),
    ] {
        assert_eq!(applied(diff).unwrap_err(), format!("{PAGE}:{error}"), "{diff}");
    }
    assert!(examples("```diff\n# a.rs\n-x").is_err());
}

#[test]
fn a_table_that_counts_other_places_is_an_error() {
    let two = page_of("# a.rs\n     SUB,\n+    MUL,\n…\n enum Other {\n+    MUL,");
    assert_eq!(check_table(&two, &examples(&two).unwrap()), Ok(()));
    let one = page_of("# a.rs\n     SUB,\n+    MUL,");
    let error = check_table(&one, &examples(&one).unwrap()).unwrap_err();
    assert!(
        error.ends_with("the table has `2 places in 1 files`, the diff has 1 places in 1 files"),
        "{error}"
    );
    let other = two.replace("### R500", "### R600");
    assert!(check_table(&other, &examples(&other).unwrap()).unwrap_err().contains("no cell"));
    let longer = two.replace("\n\n```diff", "\n| R700 | 2 places in 1 files |\n\n```diff");
    assert!(check_table(&longer, &examples(&longer).unwrap()).unwrap_err().contains("1 examples"));
}

#[test]
fn an_example_with_more_places_than_the_limit_is_an_error() {
    let places = |count: usize| {
        let diff = "\n…\n     SUB,\n+    MUL,".repeat(count);
        page_of(&format!("# a.rs{diff}")).replace("2 places", &format!("{count} places"))
    };
    assert_eq!(check_table(&places(4), &examples(&places(4)).unwrap()), Ok(()));
    let error = check_table(&places(5), &examples(&places(5)).unwrap()).unwrap_err();
    assert!(error.ends_with("5 places, at most 4 are allowed"), "{error}");
}
