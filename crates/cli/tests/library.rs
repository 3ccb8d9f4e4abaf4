//! The library: its interface follows the rules, and its examples print the expected text.

use std::fs;
use std::path::{Path, PathBuf};

#[path = "../examples/assemble.rs"]
#[allow(dead_code)]
mod assemble;
#[path = "../examples/decode.rs"]
#[allow(dead_code)]
mod decode;
#[path = "../examples/observe.rs"]
#[allow(dead_code)]
mod observe;
#[path = "../examples/run.rs"]
#[allow(dead_code)]
mod run;
#[path = "../examples/step.rs"]
#[allow(dead_code)]
mod step;

type Show = fn(&mut dyn std::io::Write) -> Result<(), Box<dyn std::error::Error>>;

/// The examples with their expected output.
const EXAMPLES: [(&str, Show, &str); 5] = [
    ("assemble", assemble::show, include_str!("library/assemble.txt")),
    ("decode", decode::show, include_str!("library/decode.txt")),
    ("observe", observe::show, include_str!("library/observe.txt")),
    ("run", run::show, include_str!("library/run.txt")),
    ("step", step::show, include_str!("library/step.txt")),
];

fn package() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

fn read(path: &Path) -> String {
    fs::read_to_string(path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

#[test]
fn every_example_prints_the_same_as_before() {
    for (name, show, expected) in EXAMPLES {
        let mut printed = Vec::new();
        show(&mut printed).unwrap_or_else(|error| panic!("{name}: {error}"));
        assert_eq!(String::from_utf8(printed).expect("text"), expected, "{name}");
    }
}

#[test]
fn every_example_is_short_and_states_its_purpose() {
    let mut names = Vec::new();
    for entry in fs::read_dir(package().join("examples")).expect("examples") {
        let path = entry.expect("an entry").path();
        let name = path.file_stem().expect("a name").to_string_lossy().into_owned();
        let text = read(&path);
        assert!(text.lines().count() < 60, "{name} has {} lines", text.lines().count());
        assert!(text.starts_with("//! "), "{name} states no purpose");
        assert!(
            text.contains(&format!("cargo run -p reconverge --example {name}`")),
            "{name}: how to run it"
        );
        names.push(name);
    }
    names.sort();
    assert_eq!(names, EXAMPLES.map(|(name, ..)| name));
}

/// Adds the sources in a folder and its subfolders.
fn sources(folder: &Path, found: &mut Vec<String>) {
    for entry in fs::read_dir(folder).unwrap_or_else(|error| panic!("{}: {error}", folder.display())) {
        let path: PathBuf = entry.expect("an entry").path();
        if path.is_dir() {
            sources(&path, found);
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            found.push(read(&path));
        }
    }
}

/// Returns the modules that lib.rs re-exports from, as folders or files, each with the original names of its items.
fn exports() -> Vec<(String, Vec<String>)> {
    let text = read(&package().join("src/lib.rs"));
    let statements = text.split("\npub use ").skip(1).map(|rest| rest.split(';').next().expect("an end"));
    statements
        .map(|statement| {
            let (path, names) = match statement.split_once("::{") {
                Some((path, names)) => (path, names.trim_end_matches('}')),
                None => statement.rsplit_once("::").expect("a path"),
            };
            let name = |name: &str| name.trim().split(" as ").next().expect("a name").to_owned();
            (path.to_owned(), names.split(',').map(name).filter(|name| !name.is_empty()).collect())
        })
        .collect()
}

/// Returns the source files of the crate that a path in `pub use` names.
fn sources_of(path: &str) -> Vec<String> {
    let root = path.split("::").next().expect("a crate");
    let mut found = Vec::new();
    match root.strip_prefix("reconverge_") {
        Some(of) => sources(&package().join("..").join(of).join("src"), &mut found),
        None => sources(&package().join("src/library"), &mut found),
    }
    found
}

/// Returns the item of a declaration with its attributes and documentation: from the last blank line before it to the
/// end of its body.
fn item<'a>(source: &'a str, declaration: &str) -> Option<&'a str> {
    let at = source.find(declaration)?;
    let start = source[..at].rfind("\n\n").map_or(0, |start| start + 2);
    let end = source[at..].find("\n}").map_or(source.len(), |end| at + end);
    Some(&source[start..end])
}

/// Returns the public functions in the inherent implementations of a type: name and signature.
fn functions(source: &str, name: &str) -> Vec<String> {
    let mut found = Vec::new();
    for (at, _) in source.match_indices(&format!("\nimpl {name} {{")) {
        let end = source[at..].find("\n}").map_or(source.len(), |end| at + end);
        found.extend(signatures(&source[at..end], "    pub "));
    }
    found
}

/// Returns the signatures of the public functions at an indentation.
fn signatures(source: &str, indent: &str) -> Vec<String> {
    let starts = ["fn ", "const fn "].map(|kind| format!("\n{indent}{kind}"));
    let starts = starts.iter().flat_map(|start| source.match_indices(start.as_str()));
    starts.map(|(at, _)| source[at..].split(" {\n").next().expect("a signature").trim().to_owned()).collect()
}

/// Returns the fault of a signature: a bare `bool` parameter, or an error that is a text.
fn fault(signature: &str) -> Option<&'static str> {
    let parameters = signature.split("->").next().expect("parameters");
    let closures = signature.contains("FnMut(") || signature.contains("Fn(");
    let result = if closures { signature.rsplit("->").next() } else { signature.split("->").nth(1) };
    match () {
        () if parameters.contains(": bool") || parameters.contains("Option<bool>") => {
            Some("takes a bare bool")
        }
        () if result.is_some_and(|result| result.contains(", String>")) => {
            Some("returns a text as its error")
        }
        () => None,
    }
}

#[test]
fn the_interface_can_grow_and_has_no_bare_bools_and_no_textual_errors() {
    let (mut faults, mut enums, mut seen) = (Vec::new(), 0, 0);
    for (path, names) in exports() {
        let sources = sources_of(&path);
        for name in names {
            let declared = |kind: &str, end: &str| {
                let declaration = format!("pub {kind} {name}{end}");
                sources.iter().filter_map(|source| item(source, &declaration)).collect::<Vec<_>>()
            };
            // If several items have the name, all of them must follow the rules.
            for item in declared("enum", " {") {
                enums += 1;
                if !item.contains("#[non_exhaustive]") && !item.contains("is exhaustive") {
                    faults.push(format!(
                        "{path}::{name} cannot grow, and its documentation does not say that it `is exhaustive`"
                    ));
                }
            }
            for item in declared("struct", " {").into_iter().chain(declared("struct", "(")) {
                if name.ends_with("Options") && !item.contains("#[non_exhaustive]") {
                    faults.push(format!("{path}::{name} has options and cannot grow"));
                }
            }
            let own = sources.iter().flat_map(|source| functions(source, &name));
            let free = sources.iter().flat_map(|source| signatures(source, "pub "));
            let free = free.filter(|free| free.contains(&format!("fn {name}(")));
            for signature in own.chain(free) {
                seen += 1;
                if let Some(fault) = fault(&signature) {
                    faults.push(format!("{path}::{name}: {fault}: {signature}"));
                }
            }
        }
    }
    assert!(faults.is_empty(), "{}", faults.join("\n"));
    assert!(enums > 20 && seen > 100, "{enums} enums, {seen} functions: the interface is not found");
}

#[test]
fn a_bare_bool_and_a_textual_error_are_found() {
    assert_eq!(fault("pub fn a(&self, deep: bool) -> u32"), Some("takes a bare bool"));
    assert_eq!(fault("pub fn a(&self) -> Result<Vec<u8>, String>"), Some("returns a text as its error"));
    assert_eq!(
        fault("pub fn a(f: impl FnMut(u32) -> bool) -> Result<u32, String>"),
        Some("returns a text as its error")
    );
    assert_eq!(fault("pub fn a(&self, f: impl FnMut(u32) -> bool) -> Result<String, Error>"), None);
    assert_eq!(fault("pub fn is_empty(&self) -> bool"), None);
    let source = "\n/// A.\n#[derive(Debug)]\npub enum A {\n    X,\n}\n\nimpl A {\n    pub const fn f(self, b: bool) {\n    }\n}\n";
    assert!(!item(source, "pub enum A {").expect("an item").contains("non_exhaustive"));
    assert_eq!(functions(source, "A"), ["pub const fn f(self, b: bool)"]);
}
