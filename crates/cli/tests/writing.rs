//! Written output: formats and their state, standard input and output, patches, listings, explanations.

use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

const EXE: &str = env!("CARGO_BIN_EXE_reconverge");

/// Returns a new folder.
fn folder(name: &str) -> PathBuf {
    let path = Path::new(env!("CARGO_TARGET_TMPDIR")).join(name);
    let _ = std::fs::remove_dir_all(&path);
    std::fs::create_dir_all(&path).unwrap();
    path
}

/// Runs a command in a folder, with `input` as standard input.
fn run(folder: &Path, arguments: &[&str], input: &[u8]) -> Output {
    let mut child = Command::new(EXE)
        .current_dir(folder)
        .args(arguments)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    child.stdin.take().unwrap().write_all(input).unwrap();
    child.wait_with_output().unwrap()
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8(bytes.to_vec()).unwrap()
}

/// Returns standard output of a command that must end with status 0.
#[track_caller]
fn answer(folder: &Path, arguments: &[&str], input: &[u8]) -> String {
    let output = run(folder, arguments, input);
    assert_eq!(output.status.code(), Some(0), "{arguments:?}: {}", text(&output.stderr));
    text(&output.stdout)
}

const LOOP: &str = ".isa r500\n.int 2 3 0 1\n.const 3 1.0 2.0 3.0 4.0\nOUT nop\n";

#[test]
fn asm_refuses_to_drop_state_and_names_the_format_that_holds_it() {
    let here = folder("drop-state");
    std::fs::write(here.join("loop.s"), LOOP).unwrap();
    let refused = run(&here, &["asm", "loop.s", "-o", "loop.hex"], b"");
    let message = "error: loop.s: hex cannot hold `.int 2 3 0 1`, `.const 3 1.0 2.0 3.0 4.0`; use --format elf, \
                   or omit it with --drop-state\n";
    assert_eq!((refused.status.code(), text(&refused.stderr)), (Some(2), message.to_owned()));
    assert!(!here.join("loop.hex").exists());
    let dropped = run(&here, &["asm", "loop.s", "-o", "loop.hex", "--drop-state"], b"");
    assert_eq!(dropped.status.code(), Some(0));
    assert!(text(&dropped.stderr).starts_with("note: loop.s: hex cannot hold `.int 2 3 0 1`"));
    let quiet = run(&here, &["asm", "loop.s", "-o", "loop.hex", "--drop-state", "--quiet"], b"");
    assert_eq!((quiet.status.code(), text(&quiet.stderr)), (Some(0), String::new()));
    answer(&here, &["asm", "loop.s", "-o", "loop.elf"], b"");
    assert_eq!(answer(&here, &["dis", "loop.elf"], b"").replace(" -0.0", " 0.0"), LOOP);
}

#[test]
fn standard_input_and_output_serve_every_command() {
    let here = folder("dash");
    let source = b".isa tesla\nmov b32 $r0 0x5\nexit nop\n";
    assert!(answer(&here, &["run", "-", "--block", "4"], source).contains("2 group instructions"));
    // Without -o, the words go to standard output, together with the machine and the chip.
    let words = answer(&here, &["asm", "-"], source);
    assert!(words.starts_with("# isa tesla, chip "), "{words}");
    assert!(answer(&here, &["dis", "-"], words.as_bytes()).contains("mov b32 $r0 0x5"));
    assert_eq!(run(&here, &["asm", "-", "--format", "bin"], source).stdout.len(), 16);
    // A text in no other format is treated as a source.
    assert!(answer(&here, &["run", "-", "--isa", "tesla"], b"exit nop\n").contains("1 group instruction"));
    assert!(answer(&here, &["list", "-"], source).contains("instructions"));
    assert!(answer(&here, &["explain", "--", "-@8"], source).starts_with("exit nop"));
    let patched = run(&here, &["patch", "-", "--at", "0", "mov b32 $r0 0x6", "-o", "-"], words.as_bytes());
    assert!(text(&patched.stdout).starts_with("# isa tesla"), "{}", text(&patched.stderr));
    assert_eq!(text(&patched.stdout).len(), words.len());
}

#[test]
fn a_reader_that_has_gone_away_is_no_error() {
    let here = folder("closed-pipe");
    std::fs::write(here.join("a.s"), format!(".isa tesla\n{}exit nop\n", "mov b32 $r0 0x5\n".repeat(20_000)))
        .unwrap();
    for arguments in
        [&["asm", "a.s", "-o", "-"][..], &["asm", "a.s"], &["asm", "a.s", "--format", "bin"], &["dis", "a.s"]]
    {
        let mut child = Command::new(EXE)
            .current_dir(&here)
            .args(arguments)
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        drop(child.stdout.take());
        let output = child.wait_with_output().unwrap();
        assert_eq!((output.status.code(), text(&output.stderr)), (Some(0), String::new()), "{arguments:?}");
    }
}

#[test]
#[cfg(target_os = "linux")]
fn a_standard_error_that_cannot_be_written_changes_nothing() {
    let here = folder("full-stderr");
    std::fs::write(here.join("loop.s"), LOOP).unwrap();
    std::fs::write(here.join("trap.s"), ".isa r500\nif alu\nendif\nOUT nop\n").unwrap();
    std::fs::write(here.join("bad.s"), ".isa r500\nnonsense\n").unwrap();
    for (arguments, status) in [
        (&["asm", "loop.s", "-o", "loop.hex"][..], 2),
        (&["asm", "loop.s", "-o", "loop.hex", "--drop-state"], 0),
        (&["asm", "bad.s"], 2),
        (&["run", "trap.s"], 1),
        (&["frobnicate"], 2),
        (&["bench", "--isa", "r500", "--kernel", "collatz"], 2),
    ] {
        let full = std::fs::File::options().write(true).open("/dev/full").unwrap();
        let output = Command::new(EXE).current_dir(&here).args(arguments).stderr(full).output().unwrap();
        assert_eq!(output.status.code(), Some(status), "{arguments:?}");
    }
}

#[test]
fn thousands_of_bad_lines_are_answered_at_once() {
    let here = folder("bad-lines");
    std::fs::write(here.join("bad.s"), format!(".isa r700\n{}", "frobnicate $r0\n".repeat(20_000))).unwrap();
    let start = std::time::Instant::now();
    let output = run(&here, &["asm", "bad.s"], b"");
    assert!(start.elapsed().as_secs() < 10, "{:?}", start.elapsed());
    let said = text(&output.stderr);
    assert_eq!((output.status.code(), said.matches("error: ").count()), (Some(2), 50), "{said}");
    assert!(said.ends_with("19950 more of 20000 in bad.s\n"), "{}", &said[said.len() - 100..]);
}

#[test]
fn an_error_is_an_object_where_the_answer_would_be_one() {
    let here = folder("json-errors");
    std::fs::write(here.join("bad.s"), ".isa r500\n  nonsense\n").unwrap();
    for arguments in [
        &["run", "nowhere.hex", "--isa", "r500", "--json"][..],
        &["run", "bad.s", "--json"],
        &["explain", "--isa", "tesla", "--json", "frob $r0"],
        &["check", "nowhere", "--json"],
        &["check", "--engine", "warp", "--json"],
        &["list", "nowhere", "--json"],
    ] {
        let output = run(&here, arguments, b"");
        let object: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
        // For a file that does not exist, `check` may answer with its verdicts instead.
        if object.get("failures").is_none() {
            assert_eq!(output.status.code(), Some(2), "{arguments:?}");
            assert!(object["error"].as_str().is_some_and(|error| !error.is_empty()), "{object}");
        }
        assert!(!output.stderr.is_empty());
    }
    let output = run(&here, &["run", "bad.s", "--json"], b"");
    let object: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(
        (&object["diagnostics"][0]["line"], &object["diagnostics"][0]["column"]),
        (&2.into(), &3.into())
    );
}

#[test]
fn colours_are_for_terminals_unless_asked_for() {
    let here = folder("colours");
    std::fs::write(here.join("bad.s"), ".isa r500\nnonsense\n").unwrap();
    let coloured = |arguments: &[&str], no_color: bool| {
        let mut command = Command::new(EXE);
        command.current_dir(&here).args(arguments).env_remove("NO_COLOR").env_remove("CLICOLOR_FORCE");
        if no_color {
            command.env("NO_COLOR", "1");
        }
        command.output().unwrap().stderr.contains(&0x1b)
    };
    assert!(!coloured(&["asm", "bad.s"], false));
    assert!(coloured(&["asm", "bad.s", "--color", "always"], false));
    assert!(!coloured(&["asm", "bad.s", "--color", "never"], false));
    assert!(!coloured(&["asm", "bad.s"], true));
}

#[test]
fn completions_and_manual_pages_name_every_command() {
    let here = folder("manual");
    for shell in ["bash", "zsh", "fish", "powershell", "elvish"] {
        let script = answer(&here, &["completions", shell], b"");
        for word in ["explain", "lockstep", "patch"] {
            assert!(script.contains(word), "{shell}: {word}");
        }
    }
    assert!(answer(&here, &["man"], b"").contains(".TH reconverge"));
    answer(&here, &["man", "pages"], b"");
    for command in ["reconverge", "reconverge-dis", "reconverge-run", "reconverge-patch"] {
        assert!(here.join("pages").join(format!("{command}.1")).exists(), "{command}");
    }
}

/// The page of commands matches the argument definitions, on any host.
#[test]
fn the_page_of_commands_is_what_man_prints() {
    let page = answer(&folder("reference"), &["man", "--markdown"], b"");
    for row in ["| [explain](#explain) |", "`reconverge dis ", "`baseline`, `avx2`, `avx512`"] {
        assert!(page.contains(row), "{row}");
    }
    reconverge_testkit::page_is_current("commands.md", None, &page);
}

/// `list` prints a table and an object. Both use the program's name in its source.
#[test]
fn list_shows_what_each_program_needs() {
    let here = folder("list");
    let source = ".isa tesla\n.chip sm_11\n.kernel _Z3addPfi\n.reg 4\n.shared 24\n.param 0x0 4\n.param 0x4 4\nexit nop\n\
                  .kernel other\nnop\nexit nop\n";
    std::fs::write(here.join("two.s"), source).unwrap();
    answer(&here, &["asm", "two.s", "-o", "two.cubin"], b"");
    let table = answer(&here, &["list", "two.cubin"], b"");
    let rows: Vec<Vec<&str>> = table.lines().map(|line| line.split_whitespace().collect()).collect();
    assert_eq!(rows[0], ["cubin-text:", "2", "programs"]);
    assert!(rows[2].starts_with(&["add(float*,", "int)", "tesla", "sm_11"]), "{table}");
    let object: serde_json::Value =
        serde_json::from_str(&answer(&here, &["list", "two.cubin", "--json"], b"")).unwrap();
    let program = &object["programs"][0];
    assert_eq!(program["name"], "_Z3addPfi");
    assert_eq!(program["demangled"], "add(float*, int)");
    assert_eq!(
        (&program["isa"], &program["chip"], &program["words"]),
        (&"tesla".into(), &"sm_11".into(), &2.into())
    );
    assert_eq!((&program["registers"], &program["shared"]), (&4.into(), &24.into()));
    assert_eq!(object["programs"][1]["instructions"], 2);
}

#[test]
fn patch_changes_one_instruction_and_keeps_every_other_byte() {
    let here = folder("patch");
    let source = ".isa tesla\n.kernel k\n.param 0x0 4\nshl b32 $r1 $r0 0x2\nadd b32 $r1 b32 s[0x10] $r1\nmov b32 $r2 0x5\nst b32 g14[$r1] $r2\nexit nop\n";
    std::fs::write(here.join("k.s"), source).unwrap();
    answer(&here, &["asm", "k.s", "-o", "k.cubin"], b"");
    let run_k = |file: &str| answer(&here, &["run", file, "--block", "2", "--buf", "out=i32[2]"], b"");
    assert!(run_k("k.cubin").contains("0  5"));
    answer(
        &here,
        &["patch", "k.cubin", "--kernel", "k", "--at", "0x10", "mov b32 $r2 0x7", "-o", "p.cubin"],
        b"",
    );
    assert!(run_k("p.cubin").contains("0  7"));
    let [before, after] = ["k.cubin", "p.cubin"].map(|name| std::fs::read(here.join(name)).unwrap());
    assert_eq!(before.len(), after.len());
    let differ = before.iter().zip(&after).filter(|(before, after)| before != after).count();
    assert!((1..=2).contains(&differ), "{differ}");
    // If the lengths differ, the message has both.
    let refused =
        run(&here, &["patch", "k.cubin", "--at", "0x10", "short mov b32 $r2 $r3", "-o", "q.cubin"], b"");
    assert_eq!(refused.status.code(), Some(2));
    let said = text(&refused.stderr);
    assert!(
        said.contains("expected 2 words, as in the old instruction `mov b32 $r2 0x5`; found 1 word"),
        "{said}"
    );
    let refused = run(&here, &["patch", "k.cubin", "--at", "0x12", "nop", "-o", "q.cubin"], b"");
    assert!(
        text(&refused.stderr).contains("no instruction starts at 0x12: the nearest start at 0x10 and 0x18")
    );
    assert!(!here.join("q.cubin").exists());
}

/// Words, text and a position in a file lead to the same explanation.
#[test]
fn explain_takes_words_text_and_places() {
    let here = folder("explain-ways");
    std::fs::write(here.join("a.s"), ".isa tesla\nmov b32 $r0 0x5\nadd b32 $r0 $r1 $r2\nexit nop\n").unwrap();
    let from_words = answer(&here, &["explain", "--isa", "tesla", "20000201", "04008780"], b"");
    assert!(from_words.starts_with("add b32 $r0 $r1 $r2\n"), "{from_words}");
    assert_eq!(answer(&here, &["explain", "add b32 $r0 $r1 $r2", "--isa", "tesla"], b""), from_words);
    assert_eq!(answer(&here, &["explain", "a.s@0x8"], b""), from_words);
    let operation = answer(&here, &["explain", "x: ADD R0.x, R1.x, R2.x", "--isa", "r700"], b"");
    assert!(operation.contains("ALU_DWORD1_OP2"), "{operation}");
}

/// The names that `cases` prints open single cases.
#[test]
fn one_case_of_a_corpus_is_listed_disassembled_and_explained() {
    let here = folder("cases");
    let corpus = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../corpus/r500/fuzz.jsonl.gz");
    let file = corpus.to_str().unwrap();
    let object: serde_json::Value =
        serde_json::from_str(&answer(&here, &["cases", file, "--json"], b"")).unwrap();
    let cases = object["cases"].as_array().unwrap();
    assert!(cases.len() > 10);
    let name = cases[3]["name"].as_str().unwrap();
    assert!(cases[3]["about"].as_str().unwrap().starts_with("r500 shader"), "{}", cases[3]);
    assert!(answer(&here, &["cases", file, "--filter", name], b"").starts_with(name));
    let text = answer(&here, &["dis", file, "--case", name], b"");
    assert!(text.starts_with(".isa r500\n"), "{text}");
    assert!(answer(&here, &["explain", &format!("{file}@0"), "--case", name], b"").contains("word 0"));
    let refused = run(&here, &["dis", file, "--case", "nonsense"], b"");
    assert_eq!(refused.status.code(), Some(2));
}
