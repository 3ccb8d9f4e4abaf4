//! `lint`, `cfg`, `run --exactness` and files in everyday formats: output and exit status.

use std::path::Path;
use std::process::{Command, Output};

use serde_json::Value;

/// Runs a command in a new folder with these files.
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
    let message =
        "error: unknown rule --allow `double-writ`: did you mean `double-write`? --rules lists the rules\n";
    assert_eq!(text(&output.stderr), message);
}

#[test]
fn a_launch_file_names_the_program_that_is_looked_at() {
    let launch = "isa = \"r700\"\nprogram = \"a.s\"\nlanes = 4\n";
    let output = run("lint-launch", &[("a.s", TWICE), ("a.toml", launch)], "lint a.toml");
    assert_eq!(output.status.code(), Some(1), "{}", text(&output.stderr));
    assert!(
        text(&output.stdout).starts_with("error[double-write] a.s:4, at 3: "),
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

/// Returns a program for lanes 0 to 3, whose inputs are 1 to 4. Only lane 3 takes the branch, in which R1.x becomes a
/// reciprocal. `rest` follows the branch.
fn in_lane_3(rest: &str) -> String {
    format!(
        ".chip rv770\n.stage pixel\n.gprs 4\n.stack 1\nALU_PUSH_BEFORE:\n  0 x: PRED_SETGT _.x, R0.x, 3.5f UPDATE_EXEC_MASK\n\
         ALU_POP_AFTER:\n  1 t: RECIP_IEEE R1.x, R0.x\n{rest}"
    )
}

/// Runs a program for four lanes. Returns the exit status, the report of exactness, and the messages.
fn exactness(folder: &str, source: &str, more: &str) -> (Option<i32>, Value, String) {
    let output = run(folder, &[("a.s", source)], &format!("run a.s --input R0=1..5:f32 --json {more}"));
    let said: Value = serde_json::from_slice(&output.stdout).unwrap_or_default();
    (output.status.code(), said["exactness"].clone(), text(&output.stderr))
}

#[test]
fn an_inexact_value_is_followed_to_what_it_decides_by_lane() {
    for (role, rest) in [
        (
            "flow",
            "ALU:\n  2 x: KILLGT _.x, R1.x, 9.0f\nEXPORT_DONE: PIXEL[0], R0.xxxx VALID_PIX END_OF_PROGRAM\n",
        ),
        (
            "address",
            "ALU:\n  2 x: MOVA_FLOOR _.x, R1.x\n  3 x: MOV R2.x, R[0+AR.x].x\nEXPORT_DONE: PIXEL[0], R0.xxxx END_OF_PROGRAM\n",
        ),
        ("output", "EXPORT_DONE: PIXEL[0], R1.xxxx END_OF_PROGRAM\n"),
    ] {
        let (status, found, wrong) =
            exactness(&format!("exact-{role}"), &in_lane_3(rest), "--require specified");
        let place = &found[role];
        assert_eq!(
            (&place["grade"], &place["lane"]),
            (&"approximate".into(), &3.into()),
            "{role}: {found} {wrong}"
        );
        assert_eq!(place["from"]["operation"], "RECIP_IEEE");
        assert_eq!(status, Some(1));
        assert!(
            wrong.contains("--require specified") && wrong.contains("lane 3, from RECIP_IEEE"),
            "{wrong}"
        );
        for other in ["flow", "address", "output"].into_iter().filter(|other| *other != role) {
            assert_ne!(found[other]["grade"], "approximate", "{role}: {other}");
        }
        let (status, ..) = exactness(&format!("exact-{role}"), &in_lane_3(rest), "--require approximate");
        assert_eq!(status, Some(0));
    }
}

#[test]
fn an_inexact_value_that_decides_nothing_is_no_error() {
    let rest = "ALU:\n  2 x: ADD R1.x, R0.x, R0.x\nEXPORT_DONE: PIXEL[0], R1.xxxx END_OF_PROGRAM\n";
    let (status, found, wrong) = exactness("exact-dead", &in_lane_3(rest), "--require specified");
    assert_eq!((status, &found["not_followed"]), (Some(0), &serde_json::json!([])), "{found} {wrong}");
    let (status, found, _) = exactness("exact-none", &in_lane_3(rest), "");
    assert_eq!((status, found), (Some(0), Value::Null), "without the option nothing is followed");
}

#[test]
fn what_a_killed_lane_exports_is_no_output() {
    // Lane 3, the inexact one, has 4.0 in R0.x.
    let killed = |above: &str, export: &str| {
        in_lane_3(&format!("ALU:\n  2 x: KILLGT _.x, R0.x, {above}\n{export} END_OF_PROGRAM\n"))
    };
    for (name, export) in [
        ("exact-killed", "EXPORT_DONE: PIXEL[0], R1.xxxx"),
        ("exact-killed-memory", "MEM_STREAM2: WRITE[0], R1.x___ ELEM_SIZE(0)\nNOP:"),
    ] {
        for (above, grade) in [("3.5f", "exact"), ("9.0f", "approximate")] {
            let (_, found, said) = exactness(name, &killed(above, export), "--exactness");
            assert_eq!(found["output"]["grade"], grade, "{export} above {above}: {found} {said}");
        }
    }
}

/// A reciprocal leaves the program, or has no use. A multiply-add decides an `if`.
#[test]
fn values_are_followed_on_r500() {
    let out = |register: u32| {
        format!("OUT nop {{TEX_SEM_WAIT}}\n  + out[A].a = MAX*off src0.a, src0.a : src0=temp[{register}]\n")
    };
    let follow = |name: &str, source: &str| {
        let source = format!(".isa r500\n{source}");
        let arguments =
            "run a.s --input temp0=1,1,1,1,2,2,2,2,3,3,3,3 --mode lenient --json --require specified";
        let output = run(name, &[("a.s", &source)], arguments);
        let said: Value = serde_json::from_slice(&output.stdout).unwrap_or_default();
        (output.status.code(), said["exactness"].clone(), text_of(&output))
    };
    let reciprocal = "ALU nop\n  + temp[1].a = RCP src0.a : src0=temp[0]\n".to_owned();
    let (status, found, wrong) = follow("exact-r500-out", &(reciprocal.clone() + &out(1)));
    assert_eq!((status, &found["output"]["from"]["operation"]), (Some(1), &"RCP".into()), "{wrong}");
    let (status, found, wrong) = follow("exact-r500-dead", &(reciprocal + &out(0)));
    assert_eq!((status, &found["output"]["grade"]), (Some(0), &"specified".into()), "{wrong}");
    let branch = "ALU temp[1].r = MAD src0.rrr, src0.111, src0.000 : src0=temp[0]\n\
                  ALU alu_result[GE].r = MAX src0.rrr, src0.rrr : src0=temp[1]\nif alu\nendif\n";
    let (status, found, wrong) = follow("exact-r500-if", &(branch.to_owned() + &out(0)));
    assert_eq!((status, &found["flow"]["from"]["operation"]), (Some(1), &"MAD".into()), "{wrong}");
    assert_eq!(found["output"]["grade"], "specified");
}

fn text_of(output: &Output) -> String {
    text(&output.stdout) + &text(&output.stderr)
}

const BRANCH: &str = ".chip rv770\n.stage pixel\n.gprs 1\n.stack 1\nALU_PUSH_BEFORE:\n  0 x: PRED_SETGT _.x, R0.x, 2.5f UPDATE_EXEC_MASK\nJUMP: ADDR(@else) POP_CNT(1)\nALU:\n  1 x: MUL R0.x, R0.x, 0.5f\n@else: ELSE: ADDR(@out) POP_CNT(1)\nALU_POP_AFTER:\n  2 x: MUL R0.x, R0.x, 2.0f\n@out: EXPORT_DONE: PIXEL[0], R0.xxxx END_OF_PROGRAM\n";

#[test]
fn a_graph_is_drawn_with_and_without_a_run() {
    let files = [("a.s", BRANCH), ("a.toml", "isa = \"r700\"\nprogram = \"a.s\"\nlanes = 4\n")];
    let output = run("cfg", &files, "cfg a.s");
    let dot = text(&output.stdout);
    assert!(
        dot.starts_with("digraph \"a.s\" {\n") && dot.contains("lanes may diverge"),
        "{}",
        text_of(&output)
    );
    for file in ["a.toml", "a.s"] {
        let same = text(&run("cfg", &files, &format!("cfg {file} -o -")).stdout);
        assert_eq!(same.lines().skip(1).collect::<Vec<_>>(), dot.lines().skip(1).collect::<Vec<_>>());
    }
    let output = run("cfg", &files, "cfg a.s --input R0=1..5:f32 --counts");
    let counted = text(&output.stdout);
    assert!(counted.contains("executed 1, lanes 4, diverged 1"), "{}", text_of(&output));
    assert!(counted.contains("2 lanes"), "{counted}");
}

#[test]
fn a_graph_goes_to_a_file_of_a_known_kind() {
    let files = [("a.s", BRANCH)];
    for name in ["a.dot", "a.gv", "a.svg"] {
        let output = run("cfg-files", &files, &format!("cfg a.s -o {name}"));
        assert_eq!(
            (output.status.code(), text(&output.stdout)),
            (Some(0), String::new()),
            "{}",
            text_of(&output)
        );
        let written =
            std::fs::read_to_string(Path::new(env!("CARGO_TARGET_TMPDIR")).join("cfg-files").join(name))
                .unwrap();
        assert_eq!(written.starts_with("<svg "), name.ends_with("svg"), "{written}");
    }
    let output = run("cfg-files", &files, "cfg a.s -o a.png");
    assert_eq!(text(&output.stderr), "error: a.png: expected the extension .dot, .gv or .svg\n");
    assert_eq!(output.status.code(), Some(2));
}

/// Files that are not programs.
const BROKEN: [(&str, &str, &str); 4] = [
    ("empty.bin", "", "the file is empty"),
    ("empty.s", "", "state it with --isa"),
    ("cut.bin", "\u{1}\u{0}\u{2}\u{0}\u{3}", "expected a multiple of 4"),
    ("wrong.s", ".isa tesla\n.chip sm_10\n  frob $r0\n", "wrong.s:3:3"),
];

#[test]
fn what_is_no_program_is_refused_by_name() {
    let files = BROKEN.map(|(name, text, _)| (name, text));
    for (name, _, message) in BROKEN.into_iter().chain([("missing.s", "", "No such file")]) {
        for command in ["lint", "cfg", "cfg --counts", "stats", "run --exactness"] {
            let output = run("no-program", &files, &format!("{command} {name}"));
            let said = text(&output.stderr);
            assert_eq!(output.status.code(), Some(2), "{command} {name}: {said}");
            assert!(said.starts_with("error: ") && said.contains(name) && said.contains(message), "{said}");
            assert_eq!(text(&output.stdout), "", "{command} {name}");
        }
    }
}

#[test]
fn of_a_damaged_program_every_command_names_the_word() {
    // No instruction of the chip has these bits.
    let files = [("a.s", ".isa tesla\n.chip sm_10\n.word 0xffffffff 0xffffffff\n")];
    for (command, message) in [
        ("lint", "at 0x0: ffffffff ffffffff: no instruction has these bits"),
        ("cfg", "a.s: lanes reach 0x0, which does not contain an instruction; `lint` prints the reason"),
        ("cfg --counts", "trap at 0x0 (ffffffff ffffffff)"),
        ("stats", "trap at 0x0 (ffffffff ffffffff)"),
        ("run --exactness", "trap at 0x0 (ffffffff ffffffff)"),
    ] {
        let output = run("damaged", &files, &format!("{command} a.s"));
        let said = text_of(&output);
        assert_eq!(output.status.code(), Some(1), "{command}: {said}");
        assert!(said.contains(message), "{command}: {said}");
    }
    let drawn = text(&run("damaged", &files, "cfg a.s").stdout);
    assert!(drawn.contains("0x0, entry, no instruction"), "{drawn}");
}

#[test]
fn a_grade_that_there_is_not_is_refused_with_those_there_are() {
    let output = run("wrong-grade", &[("a.s", SOUND)], "run a.s --require precise");
    let said = text(&output.stderr);
    assert_eq!(output.status.code(), Some(2), "{said}");
    assert!(said.contains("'precise' for '--require <GRADE>'"), "{said}");
    assert!(said.contains("exact, specified, approximate, recommended"), "{said}");
}

/// Two groups and a macro. Both arrays have the same name.
const C_SOURCE: &str = "#ifdef SECOND\nu32 ps[] = {\n\t0x00000000, END(0x94200688),\n};\n#else\nu32 ps[] = { 0, 0x94200688 };\n#endif\n\
    u32 vs[] = { 0x00000000, 0x94200688 };\n";

#[test]
fn a_c_source_is_read_with_macros_of_the_command_line() {
    let files = [("a.h", C_SOURCE)];
    let output = run("c-source", &files, "list a.h --isa r700");
    let said = text(&output.stderr);
    assert_eq!(output.status.code(), Some(0), "{said}");
    assert!(said.contains("lines 2 to 4 are left out (SECOND is not defined"), "{said}");
    let programs = text(&output.stdout);
    assert!(
        programs.starts_with("c: 2 programs\n") && programs.contains("\nps ") && programs.contains("\nvs ")
    );
    let output = run("c-source", &files, "dis a.h --isa r700 -D SECOND --kernel ps");
    let said = text(&output.stderr);
    assert_eq!(output.status.code(), Some(2), "{said}");
    assert!(said.contains("line 3, column 14") && said.contains("-D 'END(x)=x'"), "{said}");
    for command in ["dis a.h --kernel ps", "explain a.h@0 --kernel ps", "list a.h", "check a.h"] {
        let isa = " --isa r700 -D SECOND --define END(x)=x";
        let output = run("c-source", &files, &format!("{command}{isa}"));
        assert_eq!(output.status.code(), Some(0), "{command}: {}", text(&output.stderr));
    }
    let output = run("c-source", &files, "dis a.h --isa r700 -D 1");
    assert!(text(&output.stderr).contains("definition `1`"), "{}", text(&output.stderr));
}

#[test]
fn a_file_of_another_format_than_the_stated_one_is_an_error() {
    let files = [("a.h", C_SOURCE), ("a.txt", SOUND), ("a.hex", "00000000\n94200688\n")];
    for format in ["hex32", "cubin-text", "dump", "diff", "gsh", "r600-elf", "source"] {
        for command in ["list", "lint", "dis", "check"] {
            let output = run("format", &files, &format!("{command} a.h --isa r700 --format {format}"));
            let said = text(&output.stderr) + &text(&output.stdout);
            let status = if command == "check" { 1 } else { 2 };
            assert_eq!(output.status.code(), Some(status), "{command} {format}: {said}");
            assert!(said.contains("a.h"), "{command} {format}: {said}");
        }
    }
    for (name, format) in [("a.h", "c"), ("a.txt", "source"), ("a.hex", "hex32"), ("a.hex", "dump")] {
        for command in ["list", "dis", "check"] {
            let output = run("format", &files, &format!("{command} {name} --isa r700 --format {format}"));
            assert_eq!(output.status.code(), Some(0), "{command} {name}: {}", text(&output.stderr));
        }
    }
}

#[test]
fn either_side_of_a_diff_is_read() {
    let diff = "--- a/a.h\n+++ b/a.h\n@@ -1,1 +1,1 @@\n-u32 a[] = { 0, 0x94200688 };\n+u32 b[] = { 0, 0x94200688 };\n";
    for (option, name) in [("", "b"), (" --old", "a")] {
        let output = run("diff", &[("a.diff", diff)], &format!("list a.diff --isa r700{option}"));
        let said = text(&output.stdout);
        assert!(said.contains(&format!("\n{name} ")), "{said}{}", text(&output.stderr));
        assert!(text(&output.stderr).contains("lines are read"), "{}", text(&output.stderr));
    }
}
