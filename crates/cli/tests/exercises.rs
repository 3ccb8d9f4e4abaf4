//! Exercises: conditions on counts, and solutions that `check` grades.

use std::path::{Path, PathBuf};
use std::process::{Command, Output};

fn exercises() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/exercises").canonicalize().unwrap()
}

fn reconverge(folder: &Path, arguments: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_reconverge")).current_dir(folder).args(arguments).output().unwrap()
}

/// Returns the exit status, standard output and standard error.
fn ends(folder: &Path, arguments: &[&str]) -> (i32, String, String) {
    let Output { status, stdout, stderr } = reconverge(folder, arguments);
    let text = |bytes| String::from_utf8(bytes).unwrap();
    (status.code().unwrap(), text(stdout), text(stderr))
}

fn folder(name: &str) -> PathBuf {
    let path = Path::new(env!("CARGO_TARGET_TMPDIR")).join("exercises").join(name);
    let _ = std::fs::remove_dir_all(&path);
    std::fs::create_dir_all(&path).unwrap();
    path
}

/// Returns the names of the exercises, from their launch files.
fn names() -> Vec<String> {
    let files = std::fs::read_dir(exercises()).unwrap().map(|entry| entry.unwrap().path());
    let launches = files.filter(|path| path.extension().is_some_and(|extension| extension == "toml"));
    let mut names: Vec<String> =
        launches.map(|path| path.file_stem().unwrap().to_str().unwrap().to_owned()).collect();
    names.sort();
    names
}

/// Each start computes the right results and misses a limit. Each solution meets the limits. No solution is in the
/// folder of a start.
#[test]
fn every_exercise_accepts_its_solution_and_not_its_start() {
    let names = names();
    assert!(names.len() >= 6, "{names:?}");
    for name in &names {
        let launch = format!("{name}.toml");
        let (status, text, error) =
            ends(&exercises(), &["check", &launch, "--program", &format!("solutions/{name}.s")]);
        assert_eq!(status, 0, "{name}: {text}{error}");
        assert!(text.starts_with(&format!("passed   solutions/{name}.s\n")), "{text}");
        let (status, text, _) = ends(&exercises(), &["check", &launch]);
        assert_eq!(status, 1, "{name}: {text}");
        assert!(
            text.contains("the results are correct, but ") && text.contains(": does not hold, "),
            "{name}: {text}"
        );
        let page = exercises().join(format!(
            "{}.md",
            name.split_once('-').map_or("", |(first, _)| match first {
                "grade" => "grade",
                _ => name,
            })
        ));
        assert!(page.is_file(), "{}", page.display());
    }
}

/// Five solutions: correct; wrong result; correct but divergent; endless; does not assemble.
#[test]
fn one_command_grades_an_exercise_handed_in_in_five_variants() {
    let folder = folder("five");
    let source = |name: &str| std::fs::read_to_string(exercises().join(name)).unwrap();
    let correct = source("solutions/tesla-select.s");
    let endless = correct.replace("    shl b32 $r3 $r0 0x2\n", "again:\n    bra again\n");
    assert_ne!(endless, correct);
    for (name, text) in [
        ("anna.s", correct.clone()),
        ("bert.s", correct.replace("0x64", "0x65")),
        ("carol.s", source("tesla-select.s")),
        ("dora.s", endless),
        ("emil.s", correct.replace("add b32 $r2 $r0 $r0", "adds b32 $r2 $r0 $r0")),
    ] {
        std::fs::write(folder.join(name), text).unwrap();
    }
    let launch = exercises().join("tesla-select.toml");
    let all = ["anna.s", "bert.s", "carol.s", "dora.s", "emil.s"];
    let arguments = [&["check", launch.to_str().unwrap(), "--program"], &all[..]].concat();
    let start = std::time::Instant::now();
    let (status, text, error) = ends(&folder, &arguments);
    assert!(start.elapsed().as_secs() < 20, "the endless one is stopped by the watchdog");
    assert_eq!(status, 1, "{error}");
    let line = |name: &str| {
        let found = text.lines().find(|line| {
            line.split_whitespace().nth(1).is_some_and(|word| word.trim_end_matches(':') == name)
        });
        found.unwrap_or_else(|| panic!("{name}: {text}")).to_owned()
    };
    assert_eq!(line("anna.s"), "passed   anna.s");
    assert!(line("bert.s").starts_with(
        "FAILED   bert.s: strict: expect out: 16 of 32 numbers differ: element 1: expected 101, found 102"
    ));
    let divergent = "FAILED   carol.s: strict: the results are correct, but divergent_branches == 0: does not hold, divergent_branches = 1; instructions <= 10: does not hold, instructions = 11";
    assert_eq!(line("carol.s"), divergent);
    let endless = line("dora.s");
    assert!(endless.starts_with("FAILED   dora.s: strict: endless: "), "{endless}");
    assert!(endless.ends_with("; dora.s:16: bra again"), "{endless}");
    let broken =
        "FAILED   emil.s: does not assemble: emil.s:13:5: unknown instruction `adds` (did you mean `add`?";
    assert!(line("emil.s").starts_with(broken), "{text}");
    assert!(text.contains("5 cases: 1 passed, 4 failed"), "{text}");
    let (status, json, _) = ends(&folder, &[&arguments[..], &["--json"]].concat());
    let answer: serde_json::Value = serde_json::from_str(&json).unwrap();
    assert_eq!((status, answer["passed"].as_u64(), answer["failed"].as_u64()), (1, Some(1), Some(4)));
    let missing = ends(&folder, &["check", launch.to_str().unwrap(), "--program", "anna.s", "nobody.s"]);
    assert_eq!(missing.0, 1);
    assert!(missing.1.contains("FAILED   nobody.s: No such file"), "{}", missing.1);
}

/// `run` prints the conditions that hold, and ends with status 1 if one does not hold. It checks names when it reads
/// the file.
#[test]
fn conditions_on_counts_are_judged_by_run_and_check() {
    let folder = folder("conditions");
    let launch = |holds: &[&str]| {
        let text = std::fs::read_to_string(exercises().join("tesla-select.toml")).unwrap();
        let (head, _) = text.split_once("[[expect]]\nholds").unwrap();
        let holds: String = holds.iter().map(|it| format!("[[expect]]\nholds = \"{it}\"\n")).collect();
        std::fs::write(folder.join("l.toml"), format!("{head}{holds}")).unwrap();
    };
    std::fs::copy(exercises().join("tesla-select.s"), folder.join("tesla-select.s")).unwrap();
    let good = [
        "instructions <= 12",
        "lane_instructions > 0",
        "divergent_branches == 1",
        "simd_efficiency >= 0.5",
        "stack_high_water >= 1",
        "groups == 1",
        "flow_instructions >= 2",
        "alu_instructions >= 4",
        "memory_instructions == 1",
        "memory_requests == 2",
        "bytes_wanted == 128",
    ];
    launch(&good);
    let (status, text, error) = ends(&folder, &["run", "l.toml"]);
    assert_eq!(status, 0, "{text}{error}");
    for rule in good {
        assert!(text.contains(&format!("{rule}: holds, ")), "{rule}: {text}");
    }
    assert_eq!(ends(&folder, &["check", "l.toml"]).0, 0);
    launch(&["simd_efficiency >= 0.9", "groups == 1"]);
    let (status, text, error) = ends(&folder, &["run", "l.toml"]);
    assert_eq!(status, 1);
    assert!(text.contains("groups == 1: holds, groups = 1"), "{text}");
    assert!(error.contains("but simd_efficiency >= 0.9: does not hold, simd_efficiency = 0."), "{error}");
    for (rule, why) in [
        ("simd_eficiency >= 0.9", "unknown count `simd_eficiency`: did you mean `simd_efficiency`?"),
        ("instructions = 3", "expected a count, one of <=, >=, ==, !=, <, > and a number"),
    ] {
        launch(&[rule]);
        let (status, _, error) = ends(&folder, &["run", "l.toml"]);
        assert_eq!(status, 2);
        assert!(error.contains("l.toml:") && error.contains(why), "{error}");
    }
}

/// A trap of a launch file has the line and the text of the source. A trap of a case of words has the text of the
/// instruction.
#[test]
fn check_prints_the_text_of_a_trapping_instruction() {
    let folder = folder("trap");
    let source = "; two lines\n.isa tesla\n.kernel k\n.reg 2\n.shared 20\n    mov b32 $r1 0x0\n    exit st b32 g14[$r1] $r0\n";
    std::fs::write(folder.join("own.s"), source).unwrap();
    let launch = "isa = \"tesla\"\nprogram = \"own.s\"\n[[expect]]\noutput = \"out\"\nvalues = [1]\n";
    std::fs::write(folder.join("own.toml"), launch).unwrap();
    let (status, text, _) = ends(&folder, &["check", "own.toml"]);
    assert_eq!(status, 1);
    assert!(text.contains("; own.s:7: exit st b32 g14[$r1] $r0"), "{text}");
    let corpus = exercises().join("../../corpus/r500/fuzz.jsonl.gz");
    let case = ["check", corpus.to_str().unwrap(), "--filter", "fuzz-f120-l4-10411k", "--mode", "strict"];
    let (status, text, _) = ends(&folder, &case);
    assert_eq!(status, 1);
    let (_, after) = text
        .split_once("ENDLOOP with an empty loop stack; instruction: ")
        .unwrap_or_else(|| panic!("{text}"));
    assert!(after.starts_with("endloop") || after.starts_with("endrep"), "{text}");
}
