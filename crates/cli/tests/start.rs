//! Follows docs/start.md in a fresh clone: from `check` to a program whose lanes diverge, and the page of its run.
//!
//! The page contains the files to save and the commands to type. `documents.rs` compares their output. The command is
//! the one under test, or the one that RECONVERGE_INSTALLED names, such as the installation in `.ci/run`.

use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::Value;

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").canonicalize().unwrap()
}

fn page() -> String {
    std::fs::read_to_string(root().join("docs/start.md")).unwrap()
}

/// Returns the lines to type in blocks of one kind: the commands of transcripts, and every line of other blocks.
fn typed<'a>(page: &'a str, kind: &str) -> Vec<&'a str> {
    let begin = format!("```{kind}\n");
    let blocks = page.split(&begin).skip(1).filter_map(|from| from.split("```").next());
    blocks.flat_map(str::lines).filter(|line| kind != "console" || line.starts_with("$ ")).collect()
}

/// Returns a fresh clone of the committed files, or a copy of the folder if it is not under version control.
fn fresh_clone() -> PathBuf {
    let clone = Path::new(env!("CARGO_TARGET_TMPDIR")).join("fresh-clone");
    let _ = std::fs::remove_dir_all(&clone);
    let repository = format!("file://{}", root().display());
    let cloned =
        Command::new("git").args(["clone", "--quiet", "--depth", "1", &repository]).arg(&clone).status();
    if !cloned.is_ok_and(|status| status.success()) {
        eprintln!("no clone: the steps run in an empty folder");
        std::fs::create_dir_all(&clone).unwrap();
    }
    clone
}

#[test]
fn the_page_installs_the_command_that_the_repository_has() {
    let page = page();
    assert_eq!(typed(&page, "sh"), ["cargo install --path crates/cli"]);
    let manifest = std::fs::read_to_string(root().join("crates/cli/Cargo.toml")).unwrap();
    assert!(manifest.contains("[[bin]]\nname = \"reconverge\"\n"));
}

#[test]
fn every_step_to_a_first_program_and_its_page_works_in_a_fresh_clone() {
    let (clone, page) = (fresh_clone(), page());
    let command = std::env::var_os("RECONVERGE_INSTALLED");
    let command = command.unwrap_or_else(|| env!("CARGO_BIN_EXE_reconverge").into());
    let files = reconverge_testkit::files_to_save(&page);
    assert_eq!(files.iter().map(|(name, _)| *name).collect::<Vec<_>>(), ["first.s", "first.toml"]);
    for (name, content) in &files {
        std::fs::write(clone.join(name), content).unwrap();
    }
    let mut said = Vec::new();
    for line in typed(&page, "console") {
        let words: Vec<&str> = line.split_whitespace().collect();
        assert_eq!(words[..2], ["$", "reconverge"], "{line}");
        let arguments = words[2..].iter().map(|word| word.trim_matches('"'));
        let output = Command::new(&command).current_dir(&clone).args(arguments).output().unwrap();
        let error = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(0), "{line}\n{error}");
        said.push(words[2]);
    }
    assert_eq!(said, ["check", "lint", "run", "run", "trace", "check"]);

    // The report is one self-contained file with the run.
    let report = std::fs::read_to_string(clone.join("first.html")).unwrap();
    assert!(report.starts_with("<!doctype html>"));
    for attribute in ["src=\"http", "href=\"http", "src=\"/", "@import"] {
        assert!(!report.contains(attribute), "{attribute}");
    }
    let (_, data) = report.split_once("<script id=\"runs\" type=\"application/json\">").unwrap();
    let runs: Value = serde_json::from_str(data.split_once("</script>").unwrap().0).unwrap();
    let run = &runs[0];
    assert_eq!((&run["isa"], &run["lanes"]), (&"tesla".into(), &12.into()));
    assert_eq!(run["steps"]["count"], 118);
    // Thread 7 has the number 8, and the greatest common divisor of 12 and 8 is 4.
    assert_eq!(run["outcome"]["outputs"][0]["rows"][7][0], "4");
    let texts: Vec<&str> = run["listing"]
        .as_array()
        .unwrap()
        .iter()
        .filter_map(|line| line["written"]["text"].as_str())
        .collect();
    assert!(texts.iter().any(|text| text.contains("then this lane leaves the loop")), "{texts:?}");
}
