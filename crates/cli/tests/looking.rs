//! `lint`: what it prints, and how it ends.

use std::path::Path;
use std::process::{Command, Output};

use serde_json::Value;

/// Runs a command in a folder of its own with these files.
fn run(folder: &str, files: &[(&str, &str)], arguments: &str) -> Output {
    let path = Path::new(env!("CARGO_TARGET_TMPDIR")).join(folder);
    std::fs::create_dir_all(&path).unwrap();
    files.iter().for_each(|(name, text)| std::fs::write(path.join(name), text).unwrap());
    let mut command = Command::new(env!("CARGO_BIN_EXE_reconverge"));
    command.current_dir(&path).args(arguments.split_whitespace()).output().unwrap()
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8(bytes.to_vec()).unwrap()
}

/// Two instructions of one group write R2.x.
const TWICE: &str = ".chip rv770\n.stage pixel\nALU:\n  0 x: ADD R2.x, R0.x, R0.y\n    t: RECIP_IEEE R2.x, R0.x\nEXPORT_DONE: PIXEL[0], R2.xxxx END_OF_PROGRAM\n";
const SOUND: &str = ".chip rv770\n.stage pixel\nEXPORT_DONE: PIXEL[0], R0.xyzw END_OF_PROGRAM\n";

#[test]
fn a_finding_has_its_place_its_rule_and_the_page() {
    let output = run("lint", &[("a.s", TWICE)], "lint a.s");
    let said = text(&output.stdout);
    assert_eq!(output.status.code(), Some(1), "{said}{}", text(&output.stderr));
    let first = said.lines().next().unwrap();
    assert!(first.starts_with("error[double-write] a.s:4, at 3: "), "{said}");
    assert!(said.contains("\n  source: MAN 4\n"), "{said}");
    assert!(said.ends_with("1 program: 1 error, 0 warnings, 0 notes\n"), "{said}");
    let output = run("lint", &[("a.s", TWICE)], "lint a.s --json");
    let found: Value = serde_json::from_slice(&output.stdout).unwrap();
    let finding = &found["findings"][0];
    assert_eq!((&finding["rule"], &finding["severity"]), (&"double-write".into(), &"error".into()));
    assert_eq!((&finding["pc"], &finding["line"]), (&3.into(), &4.into()));
    for field in ["message", "text", "source", "demands", "file"] {
        assert!(finding[field].as_str().is_some_and(|text| !text.is_empty()), "{field}: {finding}");
    }
    assert_eq!(output.status.code(), Some(1));
}

#[test]
fn a_sound_program_and_an_allowed_rule_are_no_findings() {
    let files = [("a.s", TWICE), ("b.s", SOUND)];
    let output = run("lint-allow", &files, "lint b.s");
    assert_eq!(text(&output.stdout), "1 program: 0 errors, 0 warnings, 0 notes\n");
    assert_eq!(output.status.code(), Some(0));
    let output = run("lint-allow", &files, "lint a.s b.s --allow double-write");
    assert_eq!(text(&output.stdout), "2 programs: 0 errors, 0 warnings, 0 notes; 1 allowed\n");
    assert_eq!(output.status.code(), Some(0));
    let output = run("lint-allow", &files, "lint a.s --allow double-writ");
    assert_eq!(output.status.code(), Some(2));
    let message = "error: --allow double-writ: there is no such rule: did you mean `double-write`? --rules lists them\n";
    assert_eq!(text(&output.stderr), message);
}

#[test]
fn a_launch_file_names_the_program_that_is_looked_at() {
    let launch = "isa = \"r700\"\nprogram = \"a.s\"\nlanes = 4\n";
    let output = run("lint-launch", &[("a.s", TWICE), ("a.toml", launch)], "lint a.toml");
    assert_eq!(output.status.code(), Some(1), "{}", text(&output.stderr));
    assert!(
        text(&output.stdout).starts_with("error[double-write] ./a.s:4, at 3: "),
        "{}",
        text(&output.stdout)
    );
}

#[test]
fn the_rules_of_every_machine_are_listed_with_their_source() {
    let output = run("lint-rules", &[], "lint --rules --json");
    let listed: Value = serde_json::from_slice(&output.stdout).unwrap();
    let rules = listed["rules"].as_array().unwrap();
    for isa in ["r500", "r700", "tesla"] {
        assert!(rules.iter().any(|rule| rule["isa"] == isa), "{isa}");
    }
    for rule in rules {
        for field in ["rule", "severity", "demands", "source"] {
            assert!(rule[field].as_str().is_some_and(|text| !text.is_empty()), "{field}: {rule}");
        }
    }
    let output = run("lint-rules", &[], "lint --rules --chip RV770");
    assert!(text(&output.stdout).lines().all(|line| line.starts_with("r700 ") || line.starts_with("  ")));
    assert_eq!(run("lint-rules", &[], "lint --rules --chip RV7").status.code(), Some(2));
    assert_eq!(run("lint-rules", &[], "lint").status.code(), Some(2));
}
