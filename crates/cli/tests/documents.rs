//! Runs the commands in README and docs/, and compares their output with the documents.
//!
//! Blocks marked `console` are transcripts. `TRYCMD=overwrite cargo test -p reconverge --test documents` writes the
//! current output into the documents. Review the difference afterwards.

use std::path::{Path, PathBuf};
use std::process::Command;

/// Returns the root of the repository.
fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").canonicalize().unwrap()
}

/// Returns README and the pages of docs/.
fn documents() -> Vec<PathBuf> {
    let docs = std::fs::read_dir(root().join("docs")).unwrap().map(|entry| entry.unwrap().path());
    let pages = docs.filter(|path| path.extension().is_some_and(|ending| ending == "md"));
    let mut all: Vec<PathBuf> = std::iter::once(root().join("README.md")).chain(pages).collect();
    all.sort();
    all
}

fn copy(from: &Path, to: &Path) {
    std::fs::create_dir_all(to).unwrap();
    for entry in std::fs::read_dir(from).unwrap().map(Result::unwrap) {
        let target = to.join(entry.file_name());
        match entry.file_type().unwrap().is_dir() {
            true => copy(&entry.path(), &target),
            false => drop(std::fs::copy(entry.path(), target).unwrap()),
        }
    }
}

/// Texts in transcripts and their trycmd marks: an exit status other than 0, and text that differs between runs.
const MARKS: [(&str, &str); 4] =
    [("[exit status 1]", "? 1"), ("[exit status 2]", "? 2"), ("[exit status 3]", "? 3"), ("⋯", "[..]")];

/// Returns a document in trycmd's notation.
fn with_marks(text: &str) -> String {
    MARKS.iter().fold(text.to_owned(), |text, (read, mark)| text.replace(read, mark))
}

/// Returns a document in its published form: the reverse of [`with_marks`].
fn without_marks(text: &str) -> String {
    MARKS.iter().fold(text.to_owned(), |text, (read, mark)| match mark.starts_with('?') {
        true => text.replace(&format!("\n{mark}\n"), &format!("\n{read}\n")),
        false => text.replace(mark, read),
    })
}

/// A published page does not contain the marks of its tests.
#[test]
fn no_document_shows_a_mark_of_its_tests() {
    for document in documents() {
        let text = std::fs::read_to_string(&document).unwrap();
        assert_eq!(without_marks(&text), text, "{}", document.display());
        assert_eq!(without_marks(&with_marks(&text)), text, "{}", document.display());
    }
}

/// The commands find the samples and the corpus in the repository's folders, and the files that a page asks its
/// readers to save. They write into the same folder.
#[test]
fn every_transcript_is_what_is_printed() {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join("documents");
    let _ = std::fs::remove_dir_all(&folder);
    for part in ["corpus", "docs/samples", "docs/exercises"] {
        copy(&root().join(part), &folder.join(part));
    }
    for document in documents() {
        for (name, content) in reconverge_testkit::files_to_save(&std::fs::read_to_string(document).unwrap())
        {
            std::fs::write(folder.join(name), content).unwrap();
        }
    }
    std::env::set_current_dir(&folder).unwrap();
    let cases = trycmd::TestCases::new();
    cases.register_bin("reconverge", Path::new(env!("CARGO_BIN_EXE_reconverge")));
    // trycmd reads copies with its own marks, and overwrites the copies.
    let marked = Path::new(env!("CARGO_TARGET_TMPDIR")).join("documents-with-marks");
    std::fs::create_dir_all(&marked).unwrap();
    let copies: Vec<(PathBuf, PathBuf)> = documents()
        .into_iter()
        .map(|document| (marked.join(document.file_name().unwrap()), document))
        .collect();
    for (copy, document) in &copies {
        std::fs::write(copy, with_marks(&std::fs::read_to_string(document).unwrap())).unwrap();
        cases.case(copy);
    }
    cases.run();
    for (copy, document) in &copies {
        let printed = without_marks(&std::fs::read_to_string(copy).unwrap());
        if printed != std::fs::read_to_string(document).unwrap() {
            std::fs::write(document, printed).unwrap();
        }
    }
}

/// Returns the states of eight lanes at each step, with the letters of `trace --print`.
fn states_in_trace(machine: &str) -> Vec<String> {
    let file = format!("docs/samples/nested-if.{machine}.toml");
    let mut command = Command::new(env!("CARGO_BIN_EXE_reconverge"));
    let output = command.current_dir(root()).args(["trace", &file, "--print"]).output().unwrap();
    let text = String::from_utf8(output.stdout).unwrap();
    let states = text.lines().filter_map(|line| line.split_whitespace().nth(2));
    states
        .filter(|word| word.len() == 8 && word.chars().all(|letter| "Abp".contains(letter)))
        .map(str::to_owned)
        .collect()
}

/// Returns the same states from the picture. A machine is a group of rectangles. A step is one unit wide, and a lane
/// is one unit high.
fn states_in_picture(picture: &str, machine: &str) -> Vec<String> {
    let (_, from) = picture.split_once(&format!("<g id=\"{machine}\"")).unwrap();
    let mut states: Vec<Vec<char>> = Vec::new();
    for rectangle in from.split_once("</g>").unwrap().0.split("<rect ").skip(1) {
        let of = |name: &str| {
            let (_, from) = rectangle.split_once(&format!("{name}=\"")).unwrap();
            from.split_once('"').unwrap().0
        };
        let [x, y, width, height] =
            ["x", "y", "width", "height"].map(|name| of(name).parse::<usize>().unwrap());
        let letter = of("class").chars().next().unwrap();
        states.resize(states.len().max(x + width), vec![' '; 8]);
        for step in &mut states[x..x + width] {
            step[y..y + height].fill(letter);
        }
    }
    states.iter().map(|step| step.iter().collect()).collect()
}

#[test]
fn the_picture_of_the_readme_shows_the_traces_of_the_three_machines() {
    let picture = std::fs::read_to_string(root().join("docs/images/divergence.svg")).unwrap();
    for machine in ["r500", "r700", "tesla"] {
        let states = states_in_trace(machine);
        assert!(states.len() > 10, "{machine}: {states:?}");
        assert_eq!(states_in_picture(&picture, machine), states, "{machine}");
    }
}

#[test]
fn the_readme_is_short_and_has_the_two_commands_that_do_everything() {
    let readme = std::fs::read_to_string(root().join("README.md")).unwrap();
    assert!(readme.lines().count() <= 120, "{} lines", readme.lines().count());
    for command in ["cargo run --release -- check ", "cargo test --workspace "] {
        assert!(readme.lines().any(|line| line.starts_with(command)), "{command}");
    }
}

/// A command in a block of another kind would not run. Blocks of TOML contain keys instead of commands.
#[test]
fn every_command_of_a_document_is_in_a_transcript() {
    for document in documents() {
        let text = std::fs::read_to_string(&document).unwrap();
        let mut kind = None;
        for (line, content) in text.lines().enumerate() {
            if let Some(mark) = content.trim_start().strip_prefix("```") {
                kind = match kind {
                    None => Some(mark.trim()),
                    Some(_) => None,
                };
                // trycmd treats a block without a kind as a transcript.
                assert_ne!(kind, Some(""), "{}:{}: say ```text", document.display(), line + 1);
            } else if kind.is_some_and(|kind| kind != "console" && kind != "toml") {
                let command = content.trim_start().trim_start_matches("$ ");
                let place = format!("{}:{}", document.display(), line + 1);
                assert!(!command.starts_with("reconverge "), "{place}: `{command}` is in no console block");
            }
        }
    }
}
