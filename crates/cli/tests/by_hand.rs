//! Programs written by hand: constants, macros, included files, number notations, forms of mnemonics, and launch
//! options.

use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::time::{Duration, Instant};

/// A folder for one test, in which commands run.
struct Folder(PathBuf);

impl Folder {
    fn new(name: &str) -> Folder {
        let path = Path::new(env!("CARGO_TARGET_TMPDIR")).join(name);
        let _ = std::fs::remove_dir_all(&path);
        std::fs::create_dir_all(path.join("lib")).unwrap();
        Folder(path)
    }

    fn write(&self, name: &str, content: &str) -> &Folder {
        std::fs::write(self.0.join(name), content).unwrap();
        self
    }

    fn command(&self, arguments: &str) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_reconverge"));
        command.current_dir(&self.0).args(arguments.split_whitespace());
        command
    }

    /// Runs a command that must end with this status. Returns standard output and standard error.
    #[track_caller]
    fn run(&self, arguments: &str, status: i32) -> (String, String) {
        let Output { status: found, stdout, stderr } = self.command(arguments).output().unwrap();
        let text = |bytes| String::from_utf8(bytes).unwrap();
        let (out, messages) = (text(stdout), text(stderr));
        assert_eq!(found.code(), Some(status), "{out}{messages}");
        (out, messages)
    }

    /// Returns the words of a source.
    #[track_caller]
    fn words(&self, arguments: &str) -> String {
        self.run(&format!("asm {arguments} --format hex32"), 0).0
    }
}

#[test]
fn a_source_with_macros_and_files_is_the_plain_source() {
    let folder = Folder::new("by-hand-macros");
    folder.write("lib/sizes.inc", ".ifndef N\n.equ N, 4\n.endif\n.include \"more.inc\"\n");
    folder.write(
        "lib/more.inc",
        ".macro twice reg, by=N\nadd b32 \\reg, \\reg, \\by\nadd b32 \\reg, \\reg, \\by*2\n.endm\n",
    );
    folder.write("a.s", ".isa tesla\n.include \"lib/sizes.inc\"\ntwice $r0\ntwice $r1, -1\n.rept 2, i\nmov b32 $r\\(\\i+2) 0.5\n.endr\nexit nop\n");
    let plain = |n: i32| {
        format!(
            ".isa tesla\nadd b32 $r0 $r0 {n}\nadd b32 $r0 $r0 {}\nadd b32 $r1 $r1 0xffffffff\nadd b32 $r1 $r1 0xfffffffe\n\
             mov b32 $r2 0x3f000000\nmov b32 $r3 0x3f000000\nexit nop\n",
            2 * n
        )
    };
    for (option, n) in [("", 4), ("-D N=3", 3), ("-D N", 1)] {
        folder.write("plain.s", &plain(n));
        assert_eq!(folder.words(&format!("a.s {option}")), folder.words("plain.s"), "{option}");
    }
    // A launch and a listing read the same source.
    let (listing, _) = folder.run("dis a.s", 0);
    assert!(listing.contains("add b32 $r0 $r0 0x8") && !listing.contains("twice"), "{listing}");
    folder.write("a.toml", "isa = \"tesla\"\nprogram = \"a.s\"\nblock = [1]\ntrap = \"nothing\"\n");
    let (_, messages) = folder.run("check a.toml", 1);
    assert!(!messages.contains("sizes.inc"), "{messages}");
}

#[test]
fn a_message_names_the_file_of_the_line_and_what_asked_for_it() {
    let folder = Folder::new("by-hand-messages");
    folder.write("lib/bad.inc", "; first\n.macro worse op\n\\op b32 $r0 $rx\n.endm\nnup\n");
    folder.write("a.s", ".isa tesla\n.include \"lib/bad.inc\"\nworse mov\nexit nop\n");
    let (_, messages) = folder.run("asm a.s", 2);
    assert!(messages.contains("--> lib/bad.inc:5:1"), "{messages}");
    assert!(
        messages.contains("--> lib/bad.inc:3:9") || messages.contains("--> lib/bad.inc:3:13"),
        "{messages}"
    );
    assert!(messages.contains("in the macro `worse`, line 3"), "{messages}");
    folder.write("b.s", ".isa tesla\n.include \"lib/none.inc\"\nexit nop\n");
    let (_, messages) = folder.run("asm b.s", 2);
    assert!(
        messages.contains("lib/none.inc: No such file") && messages.contains("--> b.s:2:1"),
        "{messages}"
    );
    folder.write("c.s", ".isa tesla\na: nop\n.rept 1\na: nop\n.endr\n");
    let (_, messages) = folder.run("asm c.s", 2);
    assert!(messages.contains("the first is in line 2") && messages.contains("--> c.s:4:1"), "{messages}");
    // A machine that an included file states is used.
    folder
        .write("lib/head.inc", ".isa tesla\n.chip sm_11\n")
        .write("d.s", ".include \"lib/head.inc\"\nexit nop\n");
    folder.run("asm d.s", 0);
}

#[test]
fn numbers_and_names_are_read_as_people_write_them() {
    let folder = Folder::new("by-hand-numbers");
    folder.write("a.s", ".isa tesla\n.param s[0x10] 4 n\nmov b32 $r0, b32 s[n]\nmul f32 $r1, $r0, 2\ncvt u32 $r2, blockIdx.x\nexit nop\n");
    let (_, messages) = folder.run("asm a.s -o a.hex", 0);
    assert!(messages.contains("`2` is an integer, and the operation is on floats"), "{messages}");
    assert!(messages.contains("write `2.0`"), "{messages}");
    for (line, message) in [
        ("mov b32 $r0 b32 s[m]", "unknown parameter `m`"),
        ("ld b32 $r1 g14[$r2+4]", "cannot have an offset"),
        ("mul u24 $r0 $r1 0.5", "`0.5` is a float"),
        ("(lg $c0) exit nop", "`exit` is not predicated"),
        ("add b32 $r0 $r1 $q2", "as in `add b32"),
    ] {
        folder.write("b.s", &format!(".isa tesla\n.param s[0x10] 4 n\n{line}\n"));
        let (_, messages) = folder.run("asm b.s", 2);
        assert!(messages.contains(message) && !messages.contains("did you mean `0x0`"), "{line}: {messages}");
    }
}

#[test]
fn forms_have_examples_that_assemble() {
    let folder = Folder::new("by-hand-forms");
    for (machine, name) in
        [("tesla", "add"), ("r700", "MUL"), ("r700", "SAMPLE"), ("r500", "MAD"), ("r500", "loop")]
    {
        let (out, _) = folder.run(&format!("forms {name} --isa {machine} --json"), 0);
        let found: serde_json::Value = serde_json::from_str(&out).unwrap();
        let forms = found["forms"].as_array().unwrap();
        assert!(
            !forms.is_empty() && forms.iter().all(|form| form["example"].as_str().unwrap().contains(name)),
            "{out}"
        );
    }
    let (out, _) = folder.run("forms add --isa tesla --chip g80", 0);
    assert!(out.contains("add f32") && !out.contains("add f64"), "{out}");
    let (_, message) = folder.run("forms ad --isa tesla", 2);
    assert!(message.contains("did you mean `add`"), "{message}");
    let (_, message) = folder.run("forms xyzzy --isa r700", 2);
    assert!(message.contains("unknown mnemonic `xyzzy`") && !message.contains("did you mean"), "{message}");
    let (all, _) = folder.run("forms --isa r500", 0);
    assert!(all.lines().any(|name| name == "VE_ADD") && all.lines().any(|name| name == "endloop"), "{all}");
}

#[test]
fn a_launch_has_all_its_places_on_the_command_line() {
    let folder = Folder::new("by-hand-launch");
    // R700: the constant file, a loop constant and a start address.
    folder.write("c.s", ".isa r700\n00 NOP\n01 ALU: ADDR(4)\n  0 x: MOV R0.x, C[2].y\n02 EXPORT_DONE: PIXEL[0], R0.xxxx END_OF_PROGRAM\n");
    let (out, _) = folder.run("run c.s --stage pixel --const C2=(1,7.5,2,3) --start 1 --lanes 1", 0);
    assert!(out.contains("7.5"), "{out}");
    let (_, message) = folder.run("run c.s --stage pixel --const C256=1", 2);
    assert!(message.contains("C0 to C255"), "{message}");
    // One vector per lane.
    folder.write("v.s", ".isa r700\n00 EXPORT_DONE: PIXEL[0], R0.xyzw END_OF_PROGRAM\n");
    let run =
        |input: &str| folder.run(&format!("run v.s --stage pixel --lanes 4 --input R0={input} --json"), 0);
    let pixel = |json: &str| serde_json::from_str::<serde_json::Value>(json).unwrap()["outputs"].to_string();
    let (vector, quiet) = run("(.25,.5,.75,1)");
    let (single, note) = run(".25,.5,.75,1");
    let (rows, none) = run("(.25),(.5),(.75),(1)");
    assert_eq!((quiet.as_str(), none.as_str()), ("", ""));
    assert!(note.contains("each of the 4 lanes has one of the 4 numbers"), "{note}");
    assert_eq!(pixel(&single), pixel(&rows));
    assert_ne!(pixel(&single), pixel(&vector));
    // A Tesla segment.
    folder.write("g.s", ".isa tesla\n.chip sm_11\nand b32 $r0 $r0 0xffff\nshl b32 $r0 $r0 2\nld b32 $r1 g3[$r0]\nadd b32 $r1 $r1 1\nexit st b32 g3[$r0] $r1\n");
    let (out, _) = folder.run("run g.s --block 2 --segment 3=5,6", 0);
    assert!(out.contains("g3: i32 [2]") && out.contains('7'), "{out}");
    let (_, message) = folder.run("run g.s --block 2 --segment 16=5", 2);
    assert!(message.contains("g0[] to g15[]"), "{message}");
    let (_, message) = folder.run("run v.s --stage pixel --sampler 0=filter=linear", 2);
    assert!(message.contains("unknown field `filter`"), "{message}");
}

/// `--watch` assembles again when an included file changes, and continues after an error.
#[test]
fn a_source_is_watched() {
    let folder = Folder::new("by-hand-watch");
    folder
        .write("n.inc", ".equ N, 1\n")
        .write("a.s", ".isa tesla\n.include \"n.inc\"\nmov b32 $r0 N\nexit nop\n");
    let mut child = folder.command("asm a.s -o a.hex --watch").stderr(Stdio::null()).spawn().unwrap();
    let holds = |wanted: Option<&str>| {
        let start = Instant::now();
        loop {
            let found = std::fs::read_to_string(folder.0.join("a.hex")).ok();
            let fits = match (found.as_deref(), wanted) {
                (Some(found), Some(wanted)) => found.to_lowercase().contains(wanted),
                _ => false,
            };
            if fits || start.elapsed() > Duration::from_secs(60) {
                return fits;
            }
            std::thread::sleep(Duration::from_millis(50));
        }
    };
    let first = holds(Some("10018001"));
    folder.write("n.inc", ".equ N, wrong\n");
    std::thread::sleep(Duration::from_millis(600));
    folder.write("n.inc", ".equ N, 2\n");
    let second = holds(Some("10028001"));
    child.kill().unwrap();
    child.wait().unwrap();
    assert_eq!((first, second), (true, true));
    let (_, message) = folder.run("asm a.s --watch", 2);
    assert!(message.contains("-o OUT"), "{message}");
}

/// The samples of docs/writing.md return the values that their launch files expect.
#[test]
fn the_samples_of_tesla_are_right() {
    let samples = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/samples");
    let folder = Folder::new("by-hand-samples");
    for name in
        ["saxpy.tesla", "primes.tesla", "histogram.tesla", "texture.tesla", "reduction", "reduction-race"]
    {
        let (out, messages) =
            folder.run(&format!("check {}", samples.join(format!("{name}.toml")).display()), 0);
        assert!(out.contains("1 passed, 0 failed"), "{name}: {out}{messages}");
    }
}

/// A launch that states a trap passes if it ends with that trap, and `run` reports so.
#[test]
fn run_reports_the_trap_that_a_launch_states() {
    let race = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/samples/reduction-race.toml");
    let folder = Folder::new("by-hand-trap");
    let (out, _) = folder.run(&format!("run {}", race.display()), 0);
    assert!(out.starts_with("ends with the trap that the launch expects: "), "{out}");
    assert!(out.contains("race on s["), "{out}");
    let (out, _) = folder.run(&format!("run {} --json", race.display()), 0);
    assert!(out.contains("race on s[") && out.contains("\"mismatches\":[]"), "{out}");
    let (_, messages) = folder.run(&format!("run {} --no-race-check", race.display()), 1);
    assert!(messages.contains("must trap with"), "{messages}");
}
