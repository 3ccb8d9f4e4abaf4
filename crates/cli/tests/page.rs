//! The page of `run --html` and `trace --html`: what is in it, beside what, and when it is refused.

use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use serde_json::Value;

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").canonicalize().unwrap()
}

/// Runs a command in the repository.
fn ran(arguments: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_reconverge")).current_dir(root()).args(arguments).output().unwrap()
}

/// The runs of the page that a command writes, which ends with this status.
#[track_caller]
fn page(name: &str, status: i32, arguments: &[&str]) -> Vec<Value> {
    let file = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("page-{name}.html"));
    let _ = std::fs::remove_file(&file);
    let output = ran(&[arguments, &["--html", file.to_str().unwrap()]].concat());
    assert_eq!(output.status.code(), Some(status), "{}", String::from_utf8_lossy(&output.stderr));
    let html = std::fs::read_to_string(file).unwrap();
    let (_, after) = html.split_once("<script id=\"runs\" type=\"application/json\">").unwrap();
    serde_json::from_str(after.split_once("</script>").unwrap().0).unwrap()
}

/// The message of a command that is refused.
#[track_caller]
fn refused(arguments: &[&str]) -> String {
    let output = ran(arguments);
    assert_eq!(output.status.code(), Some(2));
    String::from_utf8(output.stderr).unwrap()
}

const CLAMP: &str = "docs/samples/clamp.s --lanes 8 --input R0=0..8:f32";
const TRAP: &str = "corpus/tesla/beyond.s";

#[test]
fn a_nested_if_and_a_loop_with_break_give_the_same_on_all_machines() {
    for (program, expected) in
        [("nested-if", [13, 13, 12, 12, 12, 11, 11, 11]), ("loop-break", [0, 1, 3, 6, 10, 15, 21, 28])]
    {
        for (machine, output) in [("r500", "color0"), ("r700", "pixel0"), ("tesla", "out")] {
            let file = format!("docs/samples/{program}.{machine}.toml");
            let answer: Value = serde_json::from_slice(&ran(&["run", &file, "--json"]).stdout).unwrap();
            let rows = answer["outputs"][output].as_array().unwrap();
            let red = |row: &Value| row.get(0).unwrap_or(row).as_f64();
            let found: Vec<f64> = rows.iter().filter_map(red).collect();
            assert_eq!(found, expected.map(f64::from), "{file}");
        }
    }
}

#[test]
fn a_page_has_the_runs_that_beside_names_with_their_options() {
    let runs = page("beside", 0, &["run", "docs/samples/nested-if.tesla.toml", "--beside", CLAMP]);
    let isas: Vec<&str> = runs.iter().filter_map(|run| run["isa"].as_str()).collect();
    assert_eq!(isas, ["tesla", "r700"]);
    assert_eq!(runs[1]["lanes"], 8);
    assert_eq!(runs[0]["outcome"]["outputs"][0]["rows"][0][0], "13");
    assert_eq!(runs[0]["listing"][3]["written"]["text"], "set $c0 # ge u32 $r0 $r1    ; x >= 2?");
}

#[test]
fn a_trap_and_an_unmet_expectation_are_in_the_page() {
    let launch = [TRAP, "--block", "2", "--buf", "out=u32[1]"];
    for command in ["run", "trace"] {
        let runs = page(&format!("trap-{command}"), 1, &[&[command], launch.as_slice()].concat());
        let trap = &runs[0]["outcome"]["trap"];
        assert!(trap["message"].as_str().unwrap().contains("outside every buffer"), "{trap}");
        assert_eq!(trap["lanes"], serde_json::json!([2, 0]));
        assert!(runs[0]["steps"]["count"].as_u64().unwrap() > 0);
    }
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join("page-unmet");
    std::fs::create_dir_all(&folder).unwrap();
    std::fs::copy(root().join("docs/samples/nested-if.tesla.s"), folder.join("nested-if.tesla.s")).unwrap();
    let launch = std::fs::read_to_string(root().join("docs/samples/nested-if.tesla.toml")).unwrap();
    let file = folder.join("unmet.toml");
    std::fs::write(&file, launch.replace("values = [13", "values = [14")).unwrap();
    let runs = page("unmet", 1, &["run", file.to_str().unwrap()]);
    let text = runs[0]["outcome"]["mismatches"][0].as_str().unwrap();
    assert!(text.starts_with("expect out:"), "{text}");
}

#[test]
fn a_page_that_cannot_be_is_refused_with_the_reason() {
    let collatz = ["trace", "docs/samples/collatz.s", "--block", "12", "--buf", "steps=u32[12]"];
    let with = |more: &[&str]| refused(&[collatz.as_slice(), more].concat());
    assert!(with(&["--beside", CLAMP]).contains("--html"), "--beside alone");
    let html = ["--html", "/dev/null", "--beside"];
    let beside = |text: &str| with(&[html.as_slice(), &[text]].concat());
    assert!(beside("a.s 'b").contains("a quotation mark is not closed"));
    assert!(beside("a.s --wrong").contains("--beside 'a.s --wrong': unexpected argument '--wrong'"));
    assert!(beside("missing.s").contains("missing.s"));
    let three = [html.as_slice(), &[CLAMP, "--beside", CLAMP, "--beside", CLAMP]].concat();
    assert!(with(&three).contains("3 runs fit side by side, and 4 are asked for"));
    let small = with(&["--html", "/dev/null", "--page-limit", "1000"]);
    assert!(small.contains("--page-limit 1000: the page without a run has"), "{small}");
    let template = root().join("crates/cli/assets/report.html").metadata().unwrap().len();
    let tight = with(&["--html", "/dev/null", "--page-limit", &(template + 1000).to_string()]);
    assert!(tight.contains("the program alone takes"), "{tight}");
}
