//! Text from input on a terminal: commands escape all characters that control a terminal.
#![cfg(target_os = "linux")]

use std::ffi::OsStr;
use std::fs::File;
use std::io::Read;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::process::Command;

use nix::pty::openpty;

/// Sets the title, clears the screen and reverses the text direction; also uses C1 characters.
const ATTACK: &str = "x\x1b]0;pwned\x07\x1b[2J\u{9b}2J\u{202e}\u{2028}\u{200b}y";

fn folder(name: &str, files: &[(&str, &str)]) -> PathBuf {
    let path = Path::new(env!("CARGO_TARGET_TMPDIR")).join("terminals").join(name);
    let _ = std::fs::remove_dir_all(&path);
    std::fs::create_dir_all(&path).unwrap();
    files.iter().for_each(|(file, text)| std::fs::write(path.join(file), text).unwrap());
    path
}

/// Runs a command whose standard streams are a terminal, and returns its output there.
fn on_a_terminal(folder: &Path, arguments: &[&OsStr]) -> String {
    let pty = openpty(None, None).unwrap();
    let mut command = Command::new(env!("CARGO_BIN_EXE_reconverge"));
    command.current_dir(folder).args(arguments).env("TERM", "xterm-256color").env_remove("NO_COLOR");
    let clone = || pty.slave.try_clone().unwrap();
    let mut child = command.stdin(clone()).stdout(clone()).stderr(clone()).spawn().unwrap();
    // After this, only the command has the terminal open.
    drop((command, pty.slave));
    let mut written = Vec::new();
    // At the end of the terminal, reading returns an error.
    let _ = File::from(pty.master).read_to_end(&mut written);
    child.wait().unwrap();
    String::from_utf8_lossy(&written).into_owned()
}

/// Returns the first sequence that controls a terminal or is hidden, except for newlines, tabs and colours.
fn obeyed(text: &str) -> Option<String> {
    let mut rest = text;
    while let Some(at) = rest.find(|character: char| {
        (character.is_control() && !"\r\n\t".contains(character))
            || ['\u{202e}', '\u{2028}', '\u{200b}'].contains(&character)
    }) {
        let sequence = &rest[at..];
        let colour = sequence.strip_prefix("\x1b[").and_then(|rest| rest.split_once('m'));
        match colour.filter(|(colour, _)| colour.bytes().all(|byte| byte.is_ascii_digit() || byte == b';')) {
            Some((_, behind)) => rest = behind,
            None => return Some(format!("{:?} in {text}", &sequence.chars().take(9).collect::<String>())),
        }
    }
    None
}

fn split(arguments: &str) -> Vec<&OsStr> {
    arguments.split(' ').map(OsStr::new).collect()
}

/// Names of kernels, buffers, files, parameters and cases, source lines, options.
#[test]
fn only_colours_of_ours_reach_a_terminal_from_any_command() {
    let kernel = format!(
        ".isa tesla\n.chip sm_10\n.kernel {ATTACK}\n.reg 4\n.shared 20\n.param 0 4\n  mov b32 $r1 0x100000\n  \
         exit st b32 g14[$r1] $r1\n"
    );
    let wrong = format!(".isa tesla\n.kernel k\n  bogus {ATTACK}\n  .{ATTACK} {ATTACK}\n");
    // TOML's escapes do not have braces.
    let toml: String = ATTACK.chars().map(|it| format!("\\u{:04x}", u32::from(it))).collect();
    let launch = format!(
        "isa = \"tesla\"\nprogram = \"k.s\"\nblock = [2]\n[[param]]\nname = \"{toml}\"\nbuffer = \"i32[2]\"\n\
         [[expect]]\noutput = \"{toml}\"\nvalues = [1, 2]\n"
    );
    let unknown = format!("isa = \"tesla\"\nprogram = \"k.s\"\n\"{toml}\" = 1\n");
    let outside = format!("isa = \"tesla\"\nprogram = \"{toml}\"\n");
    let campaign = format!("launch = \"l.toml\"\ninjections = 4\nsites = [\"{toml}\"]\n");
    let case = format!(
        "{{\"name\": \"{toml}\", \"arch\": \"r500\", \"program\": {{\"code\": [\"zz\"]}}, \"lanes\": 1, \"runs\": []}}\n"
    );
    let named = format!("{}.s", ATTACK.replace('/', ""));
    let files = [
        ("k.s", &kernel[..]),
        (&named, &kernel),
        ("wrong.s", &wrong),
        ("l.toml", &launch),
        ("unknown.toml", &unknown),
        ("outside.toml", &outside),
        ("campaign.toml", &campaign),
        ("cases.jsonl", &case),
        ("script", &format!("{ATTACK}\nbreak {ATTACK}\nprint {ATTACK}\nlist\n")),
        ("baseline", ATTACK),
    ];
    let folder = folder("all", &files);
    let mut shown = String::new();
    for arguments in [
        "list k.s",
        "list --json k.s",
        "dis k.s",
        "dis --hex --structure k.s",
        "dis wrong.s",
        "asm wrong.s -o out",
        "asm k.s -o -",
        "asm k.s -o out.hex",
        "lint k.s",
        "lint --json k.s",
        "cfg k.s -o -",
        "cfg k.s",
        "run k.s",
        "run l.toml",
        "run l.toml --json",
        "run unknown.toml",
        "run outside.toml",
        "run --kernel nothing k.s",
        "trace l.toml --print",
        "trace l.toml --print --data",
        "trace l.toml -o t.rtrace",
        "trace t.rtrace --print",
        "stats l.toml",
        "stats l.toml --json",
        "stats t.rtrace",
        "trace t.rtrace --compare t.rtrace",
        "check .",
        "check --json .",
        "check l.toml cases.jsonl",
        "check l.toml --baseline baseline",
        "cases cases.jsonl",
        "cases --json cases.jsonl",
        "campaign campaign.toml",
        "campaign campaign.toml --json",
        "debug l.toml --batch script",
        "patch k.s --kernel k --at 0 nop -o p",
        "explain --isa tesla zz",
        "explain k.s",
        "bench --list",
        "--help",
        "list --help",
    ] {
        let text = on_a_terminal(&folder, &split(arguments));
        assert_eq!(obeyed(&text), None, "{arguments}");
        shown.push_str(&text);
    }
    let attack = OsStr::new(ATTACK);
    let named = OsStr::new(&named);
    let bytes = OsStr::from_bytes(b"\x9b2J\xff\x1b[2J");
    for arguments in [
        &["list", ATTACK][..],
        &["run", ATTACK],
        &["check", ATTACK],
        &["campaign", ATTACK],
        &["trace", ATTACK, "-o", "a.rtrace"],
        &["stats", ATTACK],
        &["debug", ATTACK],
        &[ATTACK],
        &["list", "k.s", ATTACK],
        &["run", "k.s", "--engine", ATTACK],
        &["dis", "k.s", "--chip", ATTACK],
        &["dis", "k.s", "--kernel", ATTACK],
        &["run", "k.s", "--buf", ATTACK],
        &["run", "k.s", "--arg", ATTACK],
        &["run", "k.s", "--json", ATTACK],
        &["explain", "--isa", "tesla", ATTACK],
        &["explain", "--isa", ATTACK, "0"],
        &["check", "l.toml", "--filter", ATTACK],
        &["check", "l.toml", "--shard", ATTACK],
        &["--limits", ATTACK, "list", "k.s"],
        &["asm", "k.s", "-o", ATTACK],
        &["drm", "--chip", ATTACK, "--", "true"],
        &["piglit", "--chip", ATTACK],
        &["patch", "k.s", "--kernel", ATTACK, "--at", "0", "nop", "-o", "p"],
        &["cfg", "k.s", "-o", ATTACK],
        &["lint", ATTACK],
        &["trace", "l.toml", "-o", ATTACK],
    ] {
        let arguments: Vec<&OsStr> = arguments.iter().map(OsStr::new).collect();
        let text = on_a_terminal(&folder, &arguments);
        assert_eq!(obeyed(&text), None, "{arguments:?}");
        shown.push_str(&text);
    }
    for command in ["list", "dis", "run", "lint", "cfg", "explain", "stats", "check"] {
        for file in [named, bytes, attack] {
            assert_eq!(
                obeyed(&on_a_terminal(&folder, &[OsStr::new(command), file])),
                None,
                "{command} {file:?}"
            );
        }
    }
    // Names and colours are shown.
    assert!(
        shown.contains("x\\u{1b}]0;pwned\\u{7}\\u{1b}[2J\\u{9b}2J\\u{202e}\\u{2028}\\u{200b}y"),
        "{shown}"
    );
    assert!(shown.contains("\x1b[1m"), "{shown}");
}

/// A pipe receives the text of a program in the form that `asm` reads. Messages are also escaped there.
#[test]
fn text_in_a_pipe_is_as_it_was_and_messages_are_escaped_everywhere() {
    let kernel = ".isa tesla\n.chip sm_10\n.kernel \"a\x1b[2J\"\n.reg 4\n  exit nop\n";
    let folder = folder("pipe", &[("k.s", kernel)]);
    let run = |arguments: &[&str]| {
        Command::new(env!("CARGO_BIN_EXE_reconverge")).current_dir(&folder).args(arguments).output().unwrap()
    };
    let text = run(&["dis", "k.s"]).stdout;
    // The assembler's syntax has escapes for names.
    assert!(String::from_utf8_lossy(&text).contains(r#".kernel "a\u{1b}[2J""#));
    std::fs::write(folder.join("again.s"), &text).unwrap();
    assert_eq!(run(&["dis", "again.s"]).stdout, text);
    for arguments in
        [&["list", "b\x1b[2J\nerror: forged"][..], &["dis", "k.s", "--kernel", "b\x1b[2J"], &["b\x1b[2J"]]
    {
        let message = String::from_utf8(run(arguments).stderr).unwrap();
        assert!(message.contains("b\\u{1b}[2J") && !message.contains("\x1b[2J"), "{message}");
        assert!(!message.contains("\nerror: forged"), "{message}");
    }
}
