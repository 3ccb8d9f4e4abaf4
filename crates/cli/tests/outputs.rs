//! Outputs that cannot be written, and lists with names that look like lines.
#![cfg(unix)]

use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

const KERNEL: &str = ".isa tesla\n.chip sm_10\n.kernel k\n.reg 4\n  exit nop\n";

/// A launch that fails because it does not expect anything.
const FAILS: &str = "isa = \"tesla\"\nprogram = \"k.s\"\n";

fn folder(name: &str, files: &[(&str, &str)]) -> PathBuf {
    let path = Path::new(env!("CARGO_TARGET_TMPDIR")).join("outputs").join(name);
    let _ = std::fs::remove_dir_all(&path);
    std::fs::create_dir_all(&path).unwrap();
    files.iter().for_each(|(file, text)| std::fs::write(path.join(file), text).unwrap());
    path
}

fn shell(folder: &Path, redirected: &str) -> Output {
    let mut command = Command::new("sh");
    command.current_dir(folder).env("R", env!("CARGO_BIN_EXE_reconverge")).args(["-c", redirected]);
    command.output().unwrap()
}

const ANSWERS: [&str; 19] = [
    "list k.s",
    "list k.s --json",
    "dis k.s",
    "explain --isa tesla 10000001 00000780",
    "lint k.s",
    "lint --rules",
    "cfg k.s",
    "run k.s",
    "run k.s --json",
    "check l.toml",
    "check l.toml --json",
    "stats l.toml",
    "trace l.toml --print",
    "asm k.s -o -",
    "campaign c.toml --describe",
    "debug l.toml --batch script",
    "completions bash",
    "--help",
    "--version",
];

#[test]
fn an_answer_that_cannot_be_written_is_status_2_with_a_message() {
    let campaign = "kernel = \"mandel\"\nisa = \"r500\"\nlanes = 16\ninjections = 2\n";
    let files = [("k.s", KERNEL), ("l.toml", FAILS), ("c.toml", campaign), ("script", "where\n")];
    let folder = folder("closed", &files);
    let mut places = vec![">&-"];
    places.extend(Path::new("/dev/full").exists().then_some(">/dev/full"));
    for arguments in ANSWERS {
        for place in &places {
            let output = shell(&folder, &format!("$R {arguments} {place}"));
            let message = String::from_utf8_lossy(&output.stderr);
            assert_eq!(output.status.code(), Some(2), "{arguments} {place}: {message}");
            assert!(message.contains("error: standard output: "), "{arguments} {place}: {message}");
        }
    }
    // A command without an answer does not need an output. The null device is not a closed stream, even if it is also
    // open for reading.
    for works in ["$R asm k.s -o out.hex >&-", "$R list k.s >/dev/null", "$R list k.s <>/dev/null >&0"] {
        assert_eq!(shell(&folder, works).status.code(), Some(0), "{works}");
    }
}

#[test]
fn a_reader_that_goes_away_ends_the_command_quietly() {
    let folder = folder("gone", &[("k.s", KERNEL)]);
    for arguments in [&["list", "k.s"][..], &["list", "k.s", "--json"], &["dis", "k.s"], &["--help"]] {
        let mut command = Command::new(env!("CARGO_BIN_EXE_reconverge"));
        let (reader, writer) = std::io::pipe().unwrap();
        drop(reader);
        let child =
            command.current_dir(&folder).args(arguments).stdout(writer).stderr(Stdio::piped()).spawn();
        let output = child.unwrap().wait_with_output().unwrap();
        assert_eq!((output.status.code(), output.stderr), (Some(0), Vec::new()), "{arguments:?}");
    }
}

/// Names that contain a newline, start a comment, have outer spaces, or start an escape.
const NAMES: [&str; 6] = ["a\nb.toml,Pass,0", "#c", " d ", "e\\nf", "g\th\r", "i\x1b[2J"];

#[test]
fn a_name_takes_one_line_of_each_list_and_is_read_back() {
    let folder = folder("lists", &[("k.s", KERNEL)]);
    for name in NAMES {
        std::fs::write(folder.join(format!("{name}.toml")), FAILS).unwrap();
    }
    let run = |arguments: &[&str]| {
        Command::new(env!("CARGO_BIN_EXE_reconverge")).current_dir(&folder).args(arguments).output().unwrap()
    };
    let files: Vec<String> = NAMES.iter().map(|name| format!("{name}.toml")).collect();
    let mut arguments = vec!["check", "--results", "r.csv", "--write-baseline", "b.csv", "--junit", "j.xml"];
    arguments.extend(files.iter().map(String::as_str));
    assert_eq!(run(&arguments).status.code(), Some(1));
    for list in ["r.csv", "b.csv"] {
        let text = std::fs::read_to_string(folder.join(list)).unwrap();
        assert_eq!(text.lines().count(), NAMES.len(), "{text}");
        assert!(text.lines().all(|line| line.split(',').any(|field| field == "Fail")), "{text}");
        assert!(!text.contains('\x1b') && !text.lines().any(|line| line.starts_with(['#', ' '])), "{text}");
        // Each failure is in the baseline, so the check passes.
        let mut again = vec!["check", "--baseline", list];
        again.extend(files.iter().map(String::as_str));
        let output = run(&again);
        assert_eq!(output.status.code(), Some(0), "{}", String::from_utf8_lossy(&output.stdout));
    }
    let report = std::fs::read_to_string(folder.join("j.xml")).unwrap();
    assert!(report.contains("a\\nb.toml,Pass,0.toml") && report.contains("i\\u{1b}[2J"), "{report}");
}

/// Links are planted at every name that a predictable partial file could have. None of them is followed.
#[test]
fn an_output_file_is_not_written_through_a_planted_link() {
    let folder = folder("planted", &[("k.s", KERNEL), ("victim", "precious")]);
    // `exec` keeps the shell's process number for the command.
    let script = "for n in 0 1 2; do ln -s victim .out.hex.$$.$n.part; done; exec $R asm k.s -o out.hex";
    let output = shell(&folder, script);
    assert_eq!(output.status.code(), Some(0), "{}", String::from_utf8_lossy(&output.stderr));
    assert_eq!(std::fs::read(folder.join("victim")).unwrap(), b"precious");
    assert!(folder.join("out.hex").is_file());
}
