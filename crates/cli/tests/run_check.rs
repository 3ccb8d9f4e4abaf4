//! `run` and `check`: types of numbers, limits, traps, lists of cases, files.

use std::path::{Path, PathBuf};
use std::process::{Command, Output};

/// A folder for one test, in which commands run.
struct Folder(PathBuf);

impl Folder {
    fn new(name: &str) -> Folder {
        let path = Path::new(env!("CARGO_TARGET_TMPDIR")).join("run-check").join(name);
        let _ = std::fs::remove_dir_all(&path);
        std::fs::create_dir_all(&path).unwrap();
        Folder(path)
    }

    fn write(&self, name: &str, content: impl AsRef<[u8]>) -> &Folder {
        let path = self.0.join(name);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, content).unwrap();
        self
    }

    fn run(&self, arguments: &str) -> Output {
        let mut command = Command::new(env!("CARGO_BIN_EXE_reconverge"));
        command.current_dir(&self.0).args(arguments.split_whitespace()).output().unwrap()
    }

    /// Runs a command that must end with this status. Returns standard output and standard error.
    #[track_caller]
    fn ends(&self, arguments: &str, status: i32) -> (String, String) {
        let Output { status: found, stdout, stderr } = self.run(arguments);
        let (out, error) = (String::from_utf8(stdout).unwrap(), String::from_utf8(stderr).unwrap());
        assert_eq!(found.code(), Some(status), "{arguments}\n{out}\n{error}");
        (out, error)
    }

    #[track_caller]
    fn json(&self, arguments: &str, status: i32) -> serde_json::Value {
        serde_json::from_str(&self.ends(arguments, status).0).unwrap()
    }
}

/// Colour A is temp[0].
const R500: &str = ".isa r500\nOUT out[A].rgb = MAX*off src0.rgb, src0.rgb : src0=temp[0]\n  + out[A].a = MAX*off src0.a, src0.a : src0=temp[0]\n";
/// Pixel 0 is R0.
const R700: &str = ".isa r700\n.chip RV770\nEXPORT_DONE: PIXEL[0], R0 END_OF_PROGRAM\n";
/// Red of colour 0 is v[0x4].
const FRAGMENT: &str = ".isa tesla\n.type fragment\nexit interp $r0 v[0x4]\n";

/// Returns a launch of [`R500`] on one lane that expects this value.
fn launch(expected: &str) -> String {
    format!(
        "isa = \"r500\"\nprogram = \"a.s\"\nlanes = 1\ninput = [{{ temp = 0, values = [1, 2, 3, 4] }}]\n[[expect]]\noutput = \"color0\"\nvalues = {expected}\n"
    )
}

const GOOD: &str = "[[1, 2, 3, 4]]";
const BAD: &str = "[[1, 2, 3, 5]]";

#[test]
fn numbers_without_a_type_are_floats_on_all_machines_and_their_type_is_told_once() {
    let folder = Folder::new("types");
    folder.write("r500.s", R500).write("r700.s", R700).write("tesla.s", FRAGMENT);
    for (machine, place, output, told) in [
        ("r500", "temp0", "color0", "input temp[0] f32"),
        ("r700", "R0", "pixel0", "input R0 f32"),
        ("tesla", "v1", "color0", "input 1 f32"),
    ] {
        let of = |values: &str| {
            let arguments = format!("run {machine}.s --input {place}={values} --json");
            let (out, error) = folder.ends(&arguments, 0);
            let json: serde_json::Value = serde_json::from_str(&out).unwrap();
            (json["outputs"][output][2][0].as_f64().unwrap(), error)
        };
        let (value, error) = of("0..4");
        assert_eq!(value, 2., "{machine}");
        let note = format!(
            "note: assumed types of numbers: {told}; state others with a suffix :f32, :u32, :i32 or :bits\n"
        );
        assert_eq!(error, note, "{machine}");
        let (value, error) = of("0..4:f32");
        assert_eq!((value, error.as_str()), (2., ""), "{machine}");
        // As bits, small integers are tiny floats.
        for values in ["0..4:u32", "0..4:i32", "0..4:bits"] {
            let (value, error) = of(values);
            assert!(value.abs() < 1e-40, "{machine}: {values}: {value}");
            assert_eq!(error, "", "{machine}");
        }
    }
}

#[test]
fn sixteen_numbers_for_four_lanes_are_refused() {
    let folder = Folder::new("flat");
    folder.write("a.s", R500).write("a.bin", [0u8; 64]);
    let (_, error) = folder.ends("run a.s --input temp0=0..16 --lanes 4", 2);
    assert!(
        error.contains(
            "expected 4 numbers (one per lane), 1 to 4 numbers for all lanes, or 4 rows of 4 numbers"
        ),
        "{error}"
    );
    let (_, error) = folder.ends("run a.s --input temp0=3..3", 2);
    assert!(error.contains("input temp[0]: expected at least one number, found none"), "{error}");
    // A file without rows requires the number of lanes.
    let (_, error) = folder.ends("run a.s --input temp0=a.bin:f32", 2);
    assert!(error.contains("state --lanes") && error.contains("4 with 4 per lane"), "{error}");
    folder.ends("run a.s --input temp0=a.bin:f32 --lanes 4", 0);
    let (_, error) = folder.ends("run a.s --input temp0=a.bin --lanes 4", 2);
    assert!(error.contains("state it as a.bin:f32, :u32 or :i32"), "{error}");
}

#[test]
fn limits_name_their_bound_and_option() {
    let folder = Folder::new("limits");
    folder.write("a.s", R500);
    for (arguments, bound) in [
        ("run a.s --lanes 0", "'--lanes <N>': expected a number greater than 0"),
        ("run a.s --lanes 100000000000", "lanes: expected 1 to 16777216, found 100000000000"),
        ("run a.s --jobs 0", "'--jobs <N>': 0 is not in 1..=65535"),
        ("check a.s --jobs 0", "'--jobs <N>': 0 is not in 1..=65535"),
        ("run a.s --timeout 0", "'--timeout <SECONDS>': expected a time in seconds greater than 0"),
        ("check a.s --shard 3/2", "'--shard <K/N>': expected K/N with K from 1 to N"),
    ] {
        let (_, error) = folder.ends(arguments, 2);
        assert!(error.contains(bound), "{arguments}: {error}");
    }
}

#[test]
fn types_of_a_mangled_name_are_checked() {
    let folder = Folder::new("mangled");
    // scale(float*, int, float)
    folder.write("k.s", ".isa tesla\n.chip sm_10\n.kernel _Z5scalePfif\n    exit nop\n");
    let refused = |arguments: &str, why: &str| {
        let (_, error) = folder.ends(&format!("run k.s {arguments}"), 2);
        assert!(error.contains(why), "{arguments}: {error}");
    };
    folder.ends("run k.s --buf a=0..4 --arg n=8 --arg x=2", 0);
    let json = folder.json("run k.s --buf a=0..4 --arg n=8 --arg x=2 --json", 0);
    assert_eq!(json["outputs"]["a"], serde_json::json!([0.0, 1.0, 2.0, 3.0]));
    refused(
        "--buf a=0..4:f64 --arg n=8 --arg x=2",
        "numbers of f64, but the kernel's name states a pointer to f32",
    );
    refused(
        "--buf a=0..4:i64 --arg n=8 --arg x=2",
        "numbers of i64, but the kernel's name states a pointer to f32",
    );
    refused("--buf a=0..4 --arg Size=8.5 --arg x=2", "but the kernel's name states i32");
    refused("--buf a=0..4 --arg n=8:u64 --arg x=2", "a number of u64, but the kernel's name states i32");
    refused(
        "--buf a=0..4 --buf n=8 --arg x=2",
        "a buffer, but the kernel's name states i32; give a number with --arg",
    );
    refused("--buf a=0..4 --arg n=8", "scale(float*, int, float): expected 3 parameters, found 2 parameters");
}

#[test]
fn a_stated_type_must_have_the_declared_size() {
    let folder = Folder::new("sizes");
    folder.write("k.s", ".isa tesla\n.kernel k\n.param 0x0 4\n    exit nop\n");
    folder.ends("run k.s --arg n=8", 0);
    let (_, error) = folder.ends("run k.s --arg n=8:u64", 2);
    assert!(error.contains("expected 4 bytes as the kernel declares, found 8 (u64)"), "{error}");
}

#[test]
fn a_block_that_the_chip_cannot_hold_is_refused() {
    let folder = Folder::new("chip-limits");
    folder.write("k.s", ".isa tesla\n.chip sm_10\n.kernel k\n.reg 32\n    exit nop\n");
    let (_, error) = folder.ends("run k.s --block 1024", 2);
    assert!(error.contains("1024 x 1 x 1 is 1024 threads; a block has at most 512"), "{error}");
    let (_, error) = folder.ends("run k.s --block 512", 2);
    assert!(
        error.contains("512 threads of 32 registers need 16384; a multiprocessor of G80 has 8192"),
        "{error}"
    );
    folder.ends("run k.s --block 256", 0);
}

#[test]
fn run_and_check_give_one_verdict() {
    let folder = Folder::new("verdict");
    let trap = |text: &str| {
        format!("isa = \"r500\"\nprogram = \"t.s\"\nlanes = 1\nmode = \"strict\"\ntrap = \"{text}\"\n")
    };
    folder.write("a.s", R500).write("t.s", ".isa r500\nif alu\nendif\nOUT nop\n");
    folder.write("good.toml", launch(GOOD)).write("bad.toml", launch(BAD));
    folder.write("trap.toml", trap("ALU result")).write("other.toml", trap("kcache"));
    folder.write("ends.toml", trap("kcache").replace("t.s", "a.s"));
    for (file, status) in
        [("good.toml", 0), ("bad.toml", 1), ("trap.toml", 0), ("other.toml", 1), ("ends.toml", 1)]
    {
        folder.ends(&format!("run {file}"), status);
        folder.ends(&format!("check {file}"), status);
    }
    let (_, error) = folder.ends("run ends.toml", 1);
    assert!(error.contains("must trap with `kcache`, but ended"), "{error}");
}

#[test]
fn every_file_is_judged_and_a_broken_one_fails_by_name() {
    let folder = Folder::new("broken");
    folder.write("a.s", R500).write("a.toml", launch(GOOD)).write("z.toml", launch(GOOD));
    folder.write("b.jsonl.gz", "no gzip").write("c.toml", "isa = [").write("d.bin", [1u8, 2, 3]);
    folder.write("notes.txt", "hello").write("e.hex", "zzz");
    #[cfg(unix)]
    {
        std::os::unix::fs::symlink(".", folder.0.join("loop")).unwrap();
        std::os::unix::fs::symlink("/dev/zero", folder.0.join("zero.bin")).unwrap();
    }
    let json = folder.json("check . --json", 1);
    assert_eq!(json["passed"], 2, "{json}");
    let failed: Vec<&str> = json["failures"]
        .as_array()
        .unwrap()
        .iter()
        .map(|failure| failure["file"].as_str().unwrap())
        .collect();
    for file in ["b.jsonl.gz", "c.toml", "d.bin", "e.hex"] {
        assert!(failed.iter().any(|failed| failed.ends_with(file)), "{file}: {failed:?}");
    }
    assert_eq!(json["skipped"], 1, "{json}");
}

#[test]
fn judging_nothing_is_an_error() {
    let folder = Folder::new("nothing");
    folder.write("a.s", R500).write("a.toml", launch(GOOD)).write("empty/.keep", "");
    let (_, error) = folder.ends("check . --filter nomatch", 2);
    assert!(error.contains("--filter nomatch does not match any of 1 case"), "{error}");
    let (_, error) = folder.ends("check empty", 2);
    assert!(error.contains("no case to judge: no case found in empty"), "{error}");
    let (_, error) = folder.ends("check . --shard 2/2", 2);
    assert!(error.contains("part 2 of 2 of 1 case is empty"), "{error}");
}

#[test]
fn launches_of_one_program_have_names_of_their_own() {
    let folder = Folder::new("names");
    folder.write("a.s", R500).write("x.toml", launch(BAD)).write("y.toml", launch(BAD));
    let json = folder.json("check . --json", 1);
    let names: Vec<&str> = json["failures"]
        .as_array()
        .unwrap()
        .iter()
        .map(|failure| failure["name"].as_str().unwrap())
        .collect();
    assert_eq!(names, ["x.toml", "y.toml"]);
}

#[test]
fn shards_divide_the_cases() {
    let folder = Folder::new("shards");
    folder.write("a.s", R500);
    for name in ["a", "b", "c", "d", "e"] {
        folder.write(&format!("{name}.toml"), launch(GOOD));
    }
    let of = |shard: &str| {
        let json = folder.json(&format!("check . --json --shard {shard}"), 0);
        json["results"]
            .as_array()
            .unwrap()
            .iter()
            .map(|result| result["name"].to_string())
            .collect::<Vec<_>>()
    };
    let (one, two) = (of("1/2"), of("2/2"));
    assert_eq!((one.len(), two.len()), (3, 2));
    assert!(one.iter().all(|name| !two.contains(name)));
}

#[test]
fn baselines_and_flakes_are_those_of_deqp_runner() {
    let folder = Folder::new("baseline");
    folder.write("a.s", R500).write("bad.toml", launch(BAD)).write("good.toml", launch(GOOD));
    folder.ends(
        "check bad.toml good.toml --write-baseline known.csv --results results.csv --junit junit.xml",
        1,
    );
    let read = |name: &str| std::fs::read_to_string(folder.0.join(name)).unwrap();
    assert_eq!(read("known.csv"), "bad.toml,Fail\n");
    let results = read("results.csv");
    let line = results.lines().nth(1).unwrap();
    assert!(results.starts_with("bad.toml,Fail,0.") && line.starts_with("good.toml,Pass,0."), "{results}");
    assert!(read("junit.xml").contains(" time=\"0."), "{}", read("junit.xml"));
    let (out, _) = folder.ends("check bad.toml good.toml --baseline known.csv", 0);
    assert!(
        out.contains("0 of the failures are not in the baseline; 0 of the cases in the baseline now pass"),
        "{out}"
    );
    // A passing entry of the baseline is listed, and the exit status is 1, as in deqp-runner.
    folder.write("old.csv", "# comment\nbad.toml,Fail\ngood.toml,Crash\nother.toml,Pass\n");
    let (out, _) = folder.ends("check bad.toml good.toml --baseline old.csv", 1);
    assert!(out.contains("PASSES   good.toml: the baseline lists it as a failure"), "{out}");
    let json = folder.json("check bad.toml good.toml --baseline old.csv --json", 1);
    assert_eq!(json["unexpected_passes"][0]["name"], "good.toml");
    assert_eq!((&json["failed"], &json["expected_failures"]), (&1.into(), &1.into()));
    assert_eq!(json["results"][1]["status"], "UnexpectedImprovement(Pass)");
    assert!(json["results"][0]["seconds"].as_f64().unwrap() > 0.);
    folder.write("flakes.txt", "# known\nba.\\.toml\n");
    let json = folder.json("check bad.toml good.toml --flakes flakes.txt --json", 0);
    assert_eq!((&json["failed"], &json["flaky"], &json["passed"]), (&0.into(), &1.into(), &1.into()));
    let (_, error) = folder.ends("check bad.toml --baseline a.s", 2);
    assert!(error.contains("expected NAME,STATUS"), "{error}");
}

#[test]
fn failures_have_place_count_and_a_summary_by_reason() {
    let folder = Folder::new("reasons");
    folder
        .write("a.s", R500)
        .write("x.toml", launch("[[1, 9, 9, 9]]"))
        .write("y.toml", launch("[[8, 8, 8, 8]]"));
    let (out, _) = folder.ends("check x.toml y.toml", 1);
    assert!(
        out.contains("FAILED   y.toml: strict: expect color0: 4 of 4 numbers differ: lane 0 .r: expected 8, found 1; lane 0 .g: expected 8, found 2; lane 0 .b: expected 8, found 3\n"),
        "{out}"
    );
    assert!(out.contains("     2 x strict: expect color0: # of # numbers\n"), "{out}");
}

#[test]
fn a_trap_shows_line_registers_and_the_nearest_buffer() {
    let folder = Folder::new("trap");
    let kernel = ".isa tesla\n.chip sm_13\n.kernel k\n    shl b32 $r1 $r0 0x2\n    add b32 $r2 b32 s[0x10] $r1\n\n    add b32 $r2 $r2 0x1000\n    ld b32 $r3 g14[$r2]\n    exit st b32 g14[$r2] $r3\n";
    folder.write("k.s", kernel);
    let (_, error) = folder.ends("run k.s --buf a=f32[64] --block 64", 1);
    let lines: Vec<&str> = error.lines().collect();
    assert!(lines[0].ends_with("read of 4 bytes at g14[] 0x11000: outside every buffer"), "{error}");
    assert_eq!(lines[1], "  k.s:8: ld b32 $r3 g14[$r2]");
    assert!(
        lines[2].starts_with("  lane 0: $r3 = ") && lines[3].starts_with("  lane 0: $r2 = 00011000 "),
        "{error}"
    );
    assert_eq!(lines[4], "  nearest: a, 0x10000 to 0x10100; the access begins 3840 bytes after its end");
    let json = folder.json("run k.s --buf a=f32[64] --block 64 --json", 1);
    assert_eq!(
        (&json["at"]["line"], &json["at"]["registers"]["$r2"]),
        (&8.into(), &serde_json::json!([0x11000]))
    );
    // Without a source, the message has only the instruction.
    folder.ends("asm k.s -o k.cubin", 0);
    let (_, error) = folder.ends("run k.cubin --buf a=f32[64] --block 64", 1);
    assert!(error.contains("\n  instruction: ld b32 $r3 g14[$r2]\n"), "{error}");
    // An ALU group of R700, on the line of the group.
    folder.write("r.s", ".isa r700\n.chip RV770\nNOP:\nALU:\n  0 x: MOV R0.x, R1.x\n  1 x: MOV R0.x, R0.x\n    y: MOV R0.y, KC0[3].x\nEXPORT_DONE: PIXEL[0], R0 END_OF_PROGRAM\n");
    let (_, error) = folder.ends("run r.s --input R1=1.5,2,3,4", 1);
    assert!(error.contains("\n  r.s:6: ") && error.contains("\n  lane 0: R0 = 3fc00000 "), "{error}");
    // R500.
    folder.write(
        "f.s",
        ".isa r500\nALU temp[1].rgb = MAX*off src0.rgb, src0.rgb : src0=temp[0]\nif alu\nendif\nOUT nop\n",
    );
    let (_, error) = folder.ends("run f.s --lanes 3", 1);
    assert!(error.contains("\n  f.s:3: if alu"), "{error}");
}

/// A trap showed the text of the listing next to the line of the user's source: `bra L0` instead of `bra again`.
#[test]
fn a_trap_shows_the_users_own_text_and_the_machines_registers() {
    let folder = Folder::new("own");
    let head = ".isa tesla\n.chip sm_13\n.alias address, $r2\n.macro twice\n    mov b32 $r2 0x8\n    st b32 g14[address] $r0\n.endm\n";
    for (body, text, register) in [
        ("again: bra again ; for ever\n", "bra again", ""),
        ("again: ld b32 $r1  g14[address] ; here\n    bra again\n", "ld b32 $r1 g14[address]", "$r2 = "),
        // The line of a macro call has several instructions.
        ("    twice\n", "st b32 g14[$r2] $r0", "$r2 = 00000008 "),
    ] {
        folder.write("k.s", format!("{head}{body}    exit nop\n"));
        folder.write(
            "k.toml",
            "isa = \"tesla\"\nprogram = \"k.s\"\nwatchdog = 50\n[[expect]]\nholds = \"groups == 1\"\n",
        );
        let (_, error) = folder.ends("run k.toml", 1);
        assert_eq!(error.lines().nth(1), Some(&*format!("  k.s:8: {text}")), "{error}");
        assert!(error.contains(register), "{error}");
        let (out, _) = folder.ends("check k.toml", 1);
        assert!(out.contains(&format!("; k.s:8: {text}\n")), "{out}");
    }
}

#[test]
fn launch_files_read_in_their_folder_only() {
    let folder = Folder::new("outside");
    folder.write("a.s", R500).write("in/a.s", R500);
    folder.write("in/up.toml", launch(GOOD).replace("\"a.s\"", "\"../a.s\""));
    let absolute = folder.0.join("a.s").display().to_string();
    folder.write("in/abs.toml", launch(GOOD).replace("\"a.s\"", &format!("\"{absolute}\"")));
    folder.write("in/zero.toml", launch(GOOD).replace("[1, 2, 3, 4]", "\"zero.bin:f32\""));
    folder.write("in/fine.toml", launch(GOOD));
    #[cfg(unix)]
    {
        std::os::unix::fs::symlink("/dev/zero", folder.0.join("in/zero.bin")).unwrap();
        std::os::unix::fs::symlink("../a.s", folder.0.join("in/link.s")).unwrap();
        folder.write("in/link.toml", launch(GOOD).replace("\"a.s\"", "\"link.s\""));
        let (_, error) = folder.ends("run in/link.toml", 2);
        assert!(error.contains("link.s: the file is outside "), "{error}");
        let (_, error) = folder.ends("run in/zero.toml", 2);
        assert!(error.contains("zero.bin: the file is outside "), "{error}");
        let (_, error) = folder.ends("run in/zero.toml --allow-outside", 2);
        assert!(error.contains("not a regular file"), "{error}");
    }
    for file in ["up", "abs"] {
        let (_, error) = folder.ends(&format!("run in/{file}.toml"), 2);
        assert!(error.contains("the file is outside ") && error.contains("--allow-outside"), "{error}");
        folder.ends(&format!("run in/{file}.toml --allow-outside"), 0);
        folder.ends(&format!("check in/{file}.toml"), 1);
        folder.ends(&format!("check in/{file}.toml --allow-outside"), 0);
    }
    folder.ends("run in/fine.toml", 0);
    // A file in a subfolder may name files anywhere inside the folder that is checked.
    let (out, _) = folder.ends("check . --filter up", 0);
    assert!(out.contains("1 passed"), "{out}");
}

#[test]
fn time_is_limited() {
    let folder = Folder::new("timeout");
    // A DX10 loop ends only by a break.
    folder.write("l.s", ".isa r700\n.chip RV770\n.stack 1\n00 LOOP_START_DX10: ADDR(3)\n01 NOP:\n02 LOOP_END: ADDR(1)\n03 NOP: END_OF_PROGRAM\n");
    let (_, error) = folder.ends("run l.s --mode lenient --watchdog 99999999999 --timeout 0.3", 1);
    assert!(error.contains("timed out after 0.3 s"), "{error}");
    for command in ["trace l.s -o l.rtrace", "stats l.s"] {
        let arguments = format!("{command} --mode lenient --watchdog 99999999999 --timeout 0.3");
        let (_, error) = folder.ends(&arguments, 1);
        assert!(error.contains("timed out after 0.3 s"), "{error}");
    }
    let left = std::fs::read_dir(&folder.0).unwrap().map(|entry| entry.unwrap().file_name());
    assert!(!left.into_iter().any(|name| name.to_string_lossy().contains("rtrace")), "no part of a trace");
    folder.write(
        "l.toml",
        "isa = \"r700\"\nprogram = \"l.s\"\nmode = \"lenient\"\nwatchdog = 99999999999\ntrap = \"no end\"\n",
    );
    folder.write("a.s", R500).write("a.toml", launch(GOOD));
    let json = folder.json("check . --timeout 0.5 --json", 1);
    assert_eq!((&json["passed"], &json["failed"]), (&1.into(), &1.into()));
    assert!(json["failures"][0]["why"].as_str().unwrap().starts_with("timed out after 0.5 s"), "{json}");
}

#[test]
fn rows_and_columns_of_large_outputs_are_cut() {
    let folder = Folder::new("rows");
    folder.write("a.s", R500);
    let lines = |arguments: &str| folder.ends(arguments, 0).0.lines().count();
    // A heading, the rows, the omitted rows, counts, and up to two grades of fidelity.
    let (out, _) = folder.ends("run a.s --lanes 3000", 0);
    assert!(
        out.contains("\n    63  0.0 0.0 0.0 0.0\n  … 2936 more rows (--rows all prints them)\n"),
        "{out}"
    );
    assert_eq!(lines("run a.s --lanes 3000 --rows all") - lines("run a.s --lanes 3000 --rows 0"), 2999);
    let (out, _) = folder.ends("run a.s --input temp0=1,-200.5,3 --rows 2", 0);
    assert!(
        out.contains("\n     0     1.0 0.0 0.0 0.0\n     1  -200.5 0.0 0.0 0.0\n  … 1 more row "),
        "{out}"
    );
}

#[test]
fn one_case_of_a_corpus_runs_by_name() {
    let folder = Folder::new("case");
    let case = r#"{"name": "two", "arch": "r500", "program": {"code": ["00078001 08020000 08020000 1c440220 1c60c003 00000005"]}, "lanes": 1, "inputs": [{"temp": 0, "lanes": ["3f800000400000004040000040800000"]}], "runs": [{"const": {}, "expect": [null]}]}"#;
    folder.write("x.jsonl", format!("{}\n{case}\n", case.replace("two", "one")));
    let json = folder.json("run x.jsonl --case two --json", 0);
    assert_eq!(json["outputs"]["color0"], serde_json::json!([[1.0, 2.0, 3.0, 4.0]]));
    let (_, error) = folder.ends("run x.jsonl --case tow", 2);
    assert!(error.contains("unknown case `tow` among 2; did you mean `two`?"), "{error}");
    let (_, error) = folder.ends("run x.jsonl --case two --set 1", 2);
    assert!(error.contains("--set 1: two has 1 set of constants, numbered from 0"), "{error}");
}

#[test]
fn options_that_a_launch_file_says_itself_are_refused() {
    let folder = Folder::new("options");
    folder.write("a.s", R500).write("a.toml", launch(GOOD));
    let (_, error) = folder.ends("run a.toml --lanes 8", 2);
    assert!(
        error.contains("--lanes: allowed only for a program; a launch file contains this setting"),
        "{error}"
    );
}

#[test]
fn what_is_wrong_in_a_manifest_is_named_with_its_path() {
    let folder = Folder::new("manifest");
    let manifest = r#"{"id": "x", "isa": "tesla", "arch": "sm_10", "binary": "x.hex", "buffers": [], "launches": [{"block": [1]}]}"#;
    folder.write("x.json", manifest);
    let (_, error) = folder.ends("run x.json", 2);
    assert!(error.contains("x.json: at launches[0]: missing field `grid`"), "{error}");
    let (out, _) = folder.ends("check x.json", 1);
    assert!(out.contains("FAILED   x.json: at launches[0]: missing field `grid`"), "{out}");
}

#[test]
fn a_large_output_is_printed_by_pieces() {
    let folder = Folder::new("large");
    folder.write("k.s", ".isa tesla\n.kernel k\n    exit nop\n");
    let (out, _) = folder.ends("run k.s --buf a=u8[5000] --json", 0);
    let json: serde_json::Value = serde_json::from_str(&out).unwrap();
    assert_eq!(json["outputs"]["a"].as_array().unwrap().len(), 5000);
    let (out, _) = folder.ends("run k.s --buf a=u8[5000] --rows all", 0);
    // A heading, the rows, counts and one grade of fidelity.
    assert_eq!(out.lines().count(), 5003);
    let (out, _) = folder.ends("run k.s --buf a=u8[2,100]", 0);
    assert!(out.contains(" … 84 more\n"), "{out}");
}

#[test]
fn a_reduction_without_its_barrier_is_a_race() {
    let folder = Folder::new("races");
    let samples = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/samples");
    for name in ["reduction.s", "reduction.toml", "reduction-race.s", "reduction-race.toml"] {
        folder.write(name, std::fs::read(samples.join(name)).unwrap());
    }
    // With the barrier, the sum is right. Each launch file expects the result that its run has.
    let (out, _) = folder.ends("check reduction.toml reduction-race.toml", 0);
    assert!(out.contains("2 passed") && out.contains("0 strict findings"), "{out}");
    let arguments = "--block 64 --buf in=0..64:u32 --buf sum=u32[1]";
    for engine in ["reference", "fast", "compiled", "lockstep", "lockstep=reference,compiled"] {
        let (_, error) = folder.ends(&format!("run reduction-race.s {arguments} --engine {engine}"), 1);
        for part in [
            "race on s[0x98]: write at 0x28 by thread 32 (warp 1, lane 0) and read at 0x58 by thread 0 (warp 0, lane 0), \
             without a barrier between them",
            "reduction-race.s:22: (lg $c0) mov b32 $r2 b32 s[$a2+0x18]",
            "the other access: st b32 s[$a1+0x18] $r2",
        ] {
            assert!(error.contains(part), "{engine}: {error}");
        }
    }
    for option in ["--no-race-check", "--mode lenient"] {
        let (out, _) = folder.ends(&format!("run reduction-race.s {arguments} {option}"), 0);
        assert!(out.contains("496"), "{option}: {out}");
        for command in ["stats reduction-race.s", "trace reduction-race.s -o a.rtrace"] {
            folder.ends(&format!("{command} {arguments} {option}"), 0);
        }
    }
    let off = std::fs::read_to_string(samples.join("reduction-race.toml")).unwrap();
    let off = off.replace("mode = \"strict\"", "race_check = false");
    folder.write(
        "off.toml",
        off.lines().filter(|line| !line.starts_with("trap")).collect::<Vec<_>>().join("\n"),
    );
    assert!(folder.ends("run off.toml", 0).0.contains("496"));
}
