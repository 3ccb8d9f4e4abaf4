//! The page of `run --html` and `trace --html`: its content, several runs in one page, and rejected requests.

use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use std::sync::atomic::{AtomicUsize, Ordering};

use serde_json::Value;

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").canonicalize().unwrap()
}

/// Runs a command in the root of the repository.
fn ran(arguments: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_reconverge")).current_dir(root()).args(arguments).output().unwrap()
}

/// Runs a command that must end with this status, and returns the runs of the page that it writes.
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

/// Returns the message of a command that must fail with status 2.
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

/// Returns the page of a sample on one machine.
fn sample(name: &str, isa: &str) -> Value {
    /// Concurrent tests each use a different file.
    static NUMBER: AtomicUsize = AtomicUsize::new(0);
    let number = NUMBER.fetch_add(1, Ordering::Relaxed);
    let launch = format!("docs/samples/{name}.{isa}.toml");
    page(&format!("{name}-{isa}-{number}"), 0, &["trace", &launch]).remove(0)
}

/// Returns the texts of the listing.
fn texts(run: &Value) -> Vec<&str> {
    run["listing"].as_array().unwrap().iter().filter_map(|line| line["text"].as_str()).collect()
}

#[test]
fn a_page_has_the_registers_that_a_program_names_before_the_first_step() {
    // `$r0`, `$r1`, `$r2` and `$c0`; x, y, z and w of R0 and R1; r, g, b and a of temp0 and temp1.
    for (isa, registers) in [("tesla", 4), ("r700", 8), ("r500", 8)] {
        let run = sample("nested-if", isa);
        assert_eq!(run["initial"]["count"], registers, "{isa}");
        assert!(run["registers"][0]["first"].is_u64(), "{}", run["registers"]);
    }
}

#[test]
fn r700_clauses_follow_the_instruction_that_starts_them_and_a_group_is_one_line() {
    let run = sample("loop-break", "r700");
    let addresses: Vec<u64> =
        run["listing"].as_array().unwrap().iter().filter_map(|line| line["address"].as_u64()).collect();
    assert_eq!(addresses, [0, 6, 1, 2, 8, 3, 9, 11, 4, 5]);
    assert_eq!(texts(&run)[1], "0 x: MOV R1.x, 0\ny: MOV R1.y, 0");
    let depths: Vec<u64> =
        run["listing"].as_array().unwrap().iter().filter_map(|line| line["depth"].as_u64()).collect();
    assert_eq!(depths[..5], [0, 1, 0, 1, 2], "a clause lies one level deeper than its instruction");
}

#[test]
fn r500_is_listed_with_idioms_and_without_sources_that_nothing_reads() {
    let texts = |name: &str| texts(&sample(name, "r500")).join("\n");
    let text = texts("loop-break");
    assert!(text.starts_with("ALU temp[1].rgb = MUL src0.000, src0.000\n"), "{text}");
    assert!(text.contains("SUB src0.ggg, src1.rrr : src0=temp[1] src1=temp[0]"), "{text}");
    let text = texts("nested-if");
    assert!(text.contains("ALU temp[1].r = MOV src0.111\n") && !text.contains("0.0078125"), "{text}");
}

#[test]
fn each_mechanism_is_in_the_page_with_the_lanes_that_wait_for_an_entry() {
    for (isa, heading, kind, masks) in [
        ("r500", "Counters", "REP", &["entered", "broken", "continued"][..]),
        ("r700", "Masks, innermost first", "LOOP", &["before", "break IX", "continue IC"]),
        ("tesla", "Tokens, innermost first", "BREAK", &["lanes"]),
    ] {
        let run = sample("loop-break", isa);
        assert_eq!(run["mechanism"], heading);
        let rows = run["stacks"].as_array().unwrap().iter().flat_map(|rows| rows.as_array().unwrap());
        // Three lanes have left the loop.
        let waits: Vec<&Value> = rows.filter(|row| row["holds"] == serde_json::json!([7, 0])).collect();
        assert!(!waits.is_empty() && waits.iter().all(|row| row["kind"] == kind), "{isa}: {waits:?}");
        let names: Vec<&str> =
            waits[0]["masks"].as_array().unwrap().iter().filter_map(|mask| mask[0].as_str()).collect();
        assert_eq!(names, masks, "{isa}");
    }
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
    assert!(beside("a.s 'b").contains("missing closing quotation mark"));
    assert!(beside("a.s --wrong").contains("--beside 'a.s --wrong': unexpected argument '--wrong'"));
    assert!(beside("missing.s").contains("missing.s"));
    let three = [html.as_slice(), &[CLAMP, "--beside", CLAMP, "--beside", CLAMP]].concat();
    assert!(with(&three).contains("expected at most 3 runs in one page, found 4"));
    let small = with(&["--html", "/dev/null", "--page-limit", "1000"]);
    assert!(small.contains("--page-limit 1000: expected more than "), "{small}");
    let template = root().join("crates/cli/assets/report.html").metadata().unwrap().len();
    let tight = with(&["--html", "/dev/null", "--page-limit", &(template + 1000).to_string()]);
    assert!(tight.contains("the page has room for only "), "{tight}");
}
