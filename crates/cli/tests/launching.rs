//! Launches: names of parameters, and invalid keys of launch files.

use std::path::{Path, PathBuf};
use std::process::{Command, Output};

fn folder(name: &str, files: &[(&str, &str)]) -> PathBuf {
    let path = Path::new(env!("CARGO_TARGET_TMPDIR")).join("launching").join(name);
    let _ = std::fs::remove_dir_all(&path);
    std::fs::create_dir_all(&path).unwrap();
    files.iter().for_each(|(file, text)| std::fs::write(path.join(file), text).unwrap());
    path
}

fn ends(folder: &Path, arguments: &str) -> (i32, String, String) {
    let mut command = Command::new(env!("CARGO_BIN_EXE_reconverge"));
    let Output { status, stdout, stderr } =
        command.current_dir(folder).args(arguments.split_whitespace()).output().unwrap();
    let text = |bytes| String::from_utf8(bytes).unwrap();
    (status.code().unwrap(), text(stdout), text(stderr))
}

/// Each thread adds `n` to its element of `a` and stores the sum in `out`.
const NAMED: &str = ".isa tesla\n.kernel k\n.reg 4\n.shared 28\n.param s[0x10] 4 a\n.param s[0x14] 4 out\n.param s[0x18] 4 n\n\
    shl b32 $r1 $r0 0x2\nadd b32 $r2 b32 s[a] $r1\nld b32 $r2 g14[$r2]\nmov b32 $r3 b32 s[n]\nadd b32 $r2 $r2 $r3\n\
    add b32 $r1 b32 s[out] $r1\nexit st b32 g14[$r1] $r2\n";

#[test]
fn names_of_parameters_decide_and_their_order_does_not() {
    let folder = folder("named", &[("k.s", NAMED)]);
    let (status, text, error) =
        ends(&folder, "run k.s --block 3 --arg n=10 --buf out=u32[3] --buf a=1,2,3 --json");
    assert_eq!(status, 0, "{error}");
    let answer: serde_json::Value = serde_json::from_str(&text).unwrap();
    let numbers = |name: &str| answer["outputs"][name].clone();
    assert_eq!(numbers("out"), serde_json::json!([11, 12, 13]));
    assert_eq!(numbers("a"), serde_json::json!([1, 2, 3]));
    let launch = "isa = \"tesla\"\nprogram = \"k.s\"\nblock = [3]\n\
        param = [{ name = \"out\", buffer = \"u32[3]\" }, { name = \"n\", value = 10 }, { name = \"a\", buffer = \"1,2,3\" }]\n\
        [[expect]]\noutput = \"out\"\nvalues = [11, 12, 13]\n";
    std::fs::write(folder.join("l.toml"), launch).unwrap();
    let (status, text, error) = ends(&folder, "check l.toml");
    assert_eq!(status, 0, "{text}{error}");
}

#[test]
fn a_parameter_of_another_name_is_refused_with_the_one_that_was_meant() {
    let folder = folder("unknown", &[("k.s", NAMED)]);
    let (status, _, error) = ends(&folder, "run k.s --block 3 --buf a=1,2,3 --buf uot=u32[3] --arg n=1");
    assert_eq!(status, 2);
    assert_eq!(
        error,
        "error: k.s: unknown parameter `uot`: the parameters are a, out, n; did you mean `out`?\n"
    );
    let (status, _, error) = ends(&folder, "run k.s --block 3 --buf a=1,2,3 --buf a=u32[3] --arg n=1");
    assert_eq!(status, 2);
    assert_eq!(error, "error: k.s: param a: expected one value, found two\n");
}

#[test]
fn a_parameter_without_a_value_is_named() {
    let folder = folder("missing", &[("k.s", NAMED)]);
    for (given, missing) in
        [("", "s[0x10], parameter a"), ("--buf a=1,2,3 --arg n=1", "s[0x14], parameter out")]
    {
        let (status, _, error) = ends(&folder, &format!("run k.s --block 3 {given}"));
        assert_eq!(status, 2);
        assert!(error.starts_with(&format!("error: k.s: {missing}, has no value: add --buf ")), "{error}");
    }
}

#[test]
fn unknown_keys_have_their_file_and_line_a_suggestion_and_all_that_fit() {
    let launch = "isa = \"tesla\"\nprogram = \"k.s\"\nblcok = [3]\n";
    let json = "{\n  \"isa\": \"tesla\",\n  \"program\": \"k.s\",\n  \"blcok\": [3]\n}\n";
    let campaign = "kernel = \"collatz\"\nisa = \"tesla\"\nlanes = 256\ninjection = 5\n";
    let manifest = "{\n  \"id\": \"a\", \"isa\": \"tesla\", \"arch\": \"sm_10\", \"binary\": \"k.cubin\",\n  \"launches\": [],\n  \"bufers\": [],\n  \"buffers\": []\n}\n";
    let files =
        [("k.s", NAMED), ("l.toml", launch), ("l.json", json), ("c.toml", campaign), ("m.json", manifest)];
    let folder = folder("keys", &files);
    let all = ["block", "expect", "isa", "program", "trap", "watchdog"];
    for (command, place, meant, keys) in [
        ("run l.toml", "l.toml:3: unknown key `blcok`", "`block`", &all[..]),
        ("run l.json", "l.json:4: unknown key `blcok`", "`block`", &all),
        ("campaign c.toml", "c.toml:4: unknown key `injection`", "`injections`", &["filter", "sweep", "isa"]),
        (
            "run m.json",
            "m.json:4: at bufers: unknown key `bufers`",
            "`buffers`",
            &["expect", "thread_instructions"],
        ),
    ] {
        let (status, _, error) = ends(&folder, command);
        assert_eq!(status, 2, "{command}");
        assert!(
            error.starts_with(&format!("error: {place}: did you mean {meant}? the keys are ")),
            "{command}: {error}"
        );
        for key in keys {
            assert!(error.contains(&format!(" {key}")), "{command}: {key}: {error}");
        }
    }
    let (status, text, _) = ends(&folder, "check l.toml");
    assert_eq!(status, 1);
    assert!(text.contains("FAILED   l.toml:3: unknown key `blcok`: did you mean `block`?"), "{text}");
}

#[test]
fn a_trap_stands_in_place_of_expectations_and_has_a_text() {
    let launch = "isa = \"tesla\"\nprogram = \"k.s\"\n";
    let expect = "[[expect]]\noutput = \"out\"\nvalues = [1]\nabs = inf\n";
    let both = format!("{launch}trap = \"race\"\n[[expect]]\nholds = \"instructions <= 1\"\n");
    let files = [
        ("k.s", NAMED),
        ("both.toml", &both),
        ("empty.toml", &format!("{launch}trap = \"\"\n")),
        ("any.toml", &format!("{launch}{expect}")),
    ];
    let folder = folder("trap", &files);
    for (file, why) in [
        ("both.toml", "expected either trap or [[expect]]"),
        ("empty.toml", "the text is empty"),
        ("any.toml", "abs: inf: expected a finite number"),
    ] {
        let (status, text, _) = ends(&folder, &format!("check {file}"));
        assert!(status == 1 && text.contains(why), "{file}: {text}");
    }
}

#[test]
fn check_names_every_condition_that_does_not_hold_and_the_instruction_of_a_wrong_trap() {
    let launch = "isa = \"tesla\"\nprogram = \"k.s\"\nblock = [3]\n";
    let program = ".isa tesla\n.kernel k\n.reg 4\n    mov b32 $r1 0x7\n    exit st b32 g14[$r1] $r0\n";
    let two = "[[expect]]\nholds = \"instructions <= 1\"\n[[expect]]\nholds = \"groups >= 9\"\n";
    let quiet = program.replace("st b32 g14[$r1] $r0", "nop");
    let files = [
        ("k.s", program),
        ("trap.toml", &format!("{launch}trap = \"race\"\n")),
        ("q.s", &quiet),
        ("two.toml", &format!("{launch}{two}").replace("k.s", "q.s")),
    ];
    let folder = folder("every", &files);
    let (status, text, _) = ends(&folder, "check trap.toml");
    assert!(
        status == 1 && text.contains("but: trap at 0x8") && text.contains("k.s:5: exit st b32"),
        "{text}"
    );
    let (status, text, _) = ends(&folder, "check two.toml");
    assert!(status == 1 && text.contains("instructions <= 1: does not hold"), "{text}");
    assert!(text.contains("groups >= 9: does not hold"), "{text}");
}

/// Regression: `run` printed `./carol.s:10`, and `check` printed `line 7:` for a message that is `uk.toml:7:` in
/// `run`.
#[test]
fn every_command_names_a_file_in_the_same_way() {
    let launch = "isa = \"tesla\"\nprogram = \"k.s\"\nblock = [3]\nparam = [{ name = \"out\", value = 7 }, { name = \"n\", \
        value = 1 }, { name = \"a\", value = 7 }]\n[[expect]]\noutput = \"out\"\nvalues = [1]\n";
    let unknown = format!("{launch}blcok = [3]\n");
    let folder = folder("names", &[("k.s", NAMED), ("l.toml", launch), ("uk.toml", &unknown)]);
    std::fs::create_dir(folder.join("dir")).unwrap();
    std::fs::write(folder.join("dir/k.s"), NAMED).unwrap();
    std::fs::write(folder.join("dir/l.toml"), launch).unwrap();
    let trapped = "ld b32 $r2 g14[$r2]";
    for (file, place) in [
        ("l.toml", "k.s:10"),
        ("./l.toml", "k.s:10"),
        ("dir/l.toml", "dir/k.s:10"),
        ("./dir/l.toml", "dir/k.s:10"),
    ] {
        let (status, _, error) = ends(&folder, &format!("run {file}"));
        assert_eq!(status, 1, "{error}");
        assert!(error.contains(&format!("\n  {place}: {trapped}\n")), "{file}: {error}");
        let (status, text, _) = ends(&folder, &format!("check {file}"));
        assert_eq!(status, 1);
        assert!(text.contains(&format!("; {place}: {trapped}\n")), "{file}: {text}");
    }
    let (_, text, _) = ends(&folder, "check .");
    assert!(!text.contains("./"), "{text}");
    for (command, start) in [("run uk.toml", "error: uk.toml:8: "), ("check uk.toml", "FAILED   uk.toml:8: ")]
    {
        let (_, text, error) = ends(&folder, command);
        let said = format!("{text}{error}");
        assert!(said.starts_with(&format!("{start}unknown key `blcok` in `expect`")), "{command}: {said}");
    }
}

/// For a text that is not a launch, `run` and `check` print one sentence with the file and the line.
#[test]
fn a_file_that_is_no_launch_is_refused_in_one_sentence_with_its_line() {
    let files = [
        ("k.s", NAMED),
        ("list.json", "[1, 2]\n"),
        ("text.json", "\"x\"\n"),
        ("open.json", "{\"isa\": \"tesla\",\n\"program\": \n"),
        ("open.toml", "isa = \"tesla\"\nprogram = \"k.s\"\nblock = \n"),
        ("param.toml", "isa = \"tesla\"\nprogram = \"k.s\"\nblock = [3]\n[[param]]\nvalue = 3\n"),
    ];
    let folder = folder("no-launch", &files);
    for (file, message) in [
        ("list.json", "1: expected a JSON object with the keys of a launch file, found an array"),
        ("text.json", "1: expected a JSON object with the keys of a launch file, found a string"),
        ("open.json", "3: not JSON: EOF while parsing a value (column 0)"),
        ("open.toml", "3: not TOML: "),
        ("param.toml", "4: missing key `name` in `param`"),
    ] {
        let (status, _, error) = ends(&folder, &format!("run {file}"));
        assert_eq!(status, 2);
        assert!(error.starts_with(&format!("error: {file}:{message}")), "{error}");
        assert_eq!(error.lines().count(), 1, "{error}");
        let (status, text, _) = ends(&folder, &format!("check {file}"));
        assert_eq!(status, 1);
        assert!(text.starts_with(&format!("FAILED   {file}:{message}")), "{text}");
    }
}

#[test]
fn a_campaign_that_is_given_as_a_launch_is_called_one() {
    let campaign = "kernel = \"collatz\"\nisa = \"tesla\"\nlanes = 64\ninjections = 5\n";
    let folder = folder("campaign", &[("c.toml", campaign)]);
    for command in ["trace c.toml --print", "stats c.toml", "run c.toml"] {
        let (status, _, error) = ends(&folder, command);
        assert_eq!(status, 2);
        assert!(error.starts_with("error: c.toml: expected a launch file, found a campaign file"), "{error}");
        assert!(error.contains("--experiment N"), "{error}");
    }
}

/// A source without `.param` that reads s[0x10].
#[test]
fn a_word_of_an_undeclared_parameter_without_a_value_is_called_that() {
    let first = ".isa tesla\n.kernel k\nmov b32 $r1 b32 s[0x10]\nmov b32 $r2 b32 s[0x14]\nexit nop\n";
    let shared = ".isa tesla\n.kernel k\n.param s[0x10] 4 n\nmov b32 $r1 b32 s[0x20]\nexit nop\n";
    let launch =
        "isa = \"tesla\"\nprogram = \"first.s\"\nblock = [12]\n[[expect]]\noutput = \"a\"\nvalues = [1]\n";
    let folder = folder("undeclared", &[("first.s", first), ("shared.s", shared), ("l.toml", launch)]);
    let remedy = "add --buf NAME=VALUES for a buffer or --arg NAME=VALUE for a number";
    for (given, place, count) in [("", "s[0x10]", "none"), ("--arg a=1:u32", "s[0x14]", "1 value")] {
        let (status, _, error) = ends(&folder, &format!("run first.s --block 12 {given}"));
        assert_eq!(status, 1);
        assert!(error.contains(&format!("\n  {place} is a parameter without a value, unless")), "{error}");
        assert!(error.contains(&format!("the launch gives {count}; {remedy}")), "{error}");
    }
    let (_, text, _) = ends(&folder, "check l.toml");
    assert!(
        text.contains("; s[0x10] is a parameter without a value, unless") && text.contains(remedy),
        "{text}"
    );
    // The parameters are declared here, so the word is shared memory.
    let (status, _, error) = ends(&folder, "run shared.s --block 12 --arg n=1:u32");
    assert_eq!(status, 1);
    assert!(!error.contains("parameter"), "{error}");
}
