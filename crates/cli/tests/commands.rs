//! The output and the exit status of the command line.

use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use reconverge_workbench::array::{Array, Dtype};

/// A folder for one test, in which commands run.
struct Folder(PathBuf);

impl Folder {
    fn new(name: &str) -> Folder {
        let path = Path::new(env!("CARGO_TARGET_TMPDIR")).join(name);
        let _ = std::fs::remove_dir_all(&path);
        std::fs::create_dir_all(&path).unwrap();
        Folder(path)
    }

    fn write(&self, name: &str, content: impl AsRef<[u8]>) -> &Folder {
        std::fs::write(self.0.join(name), content).unwrap();
        self
    }

    fn run(&self, arguments: &str) -> Output {
        let mut command = Command::new(env!("CARGO_BIN_EXE_reconverge"));
        command.current_dir(&self.0).args(arguments.split_whitespace()).output().unwrap()
    }

    /// Runs a wrong command. It must end with status 2 and this message, and must not print to standard output.
    #[track_caller]
    fn refuses(&self, arguments: &str, message: &str) {
        let output = self.run(arguments);
        assert_eq!(text(&output.stderr).trim_end(), message);
        assert_eq!((output.status.code(), text(&output.stdout)), (Some(2), String::new()));
    }

    /// Runs a command that must end with this status, and returns standard output.
    #[track_caller]
    fn answers(&self, arguments: &str, status: i32) -> String {
        let output = self.run(arguments);
        assert_eq!(output.status.code(), Some(status), "{}", text(&output.stderr));
        text(&output.stdout)
    }
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8(bytes.to_vec()).unwrap()
}

const MOVE: &str = ".isa r500\nOUT out[A].rgb = MAX*off src0.rgb, src0.rgb : src0=temp[0]\n  + out[A].a = MAX*off src0.a, src0.a : src0=temp[0]\n";

#[test]
fn what_dis_prints_asm_takes_back() {
    let folder = Folder::new("round-trip");
    folder.write("a.hex", "00078001\n08020000\n08020000\n1c440220\n1c60c003\n00000005\n");
    let listing = folder.answers("dis a.hex --isa r500", 0);
    assert_eq!(listing, MOVE);
    folder.write("a.s", &listing);
    folder.answers("asm a.s -o b.hex --format hex32", 0);
    let same = |a: &str, b: &str| {
        assert_eq!(std::fs::read(folder.0.join(a)).unwrap(), std::fs::read(folder.0.join(b)).unwrap())
    };
    same("a.hex", "b.hex");
    folder.answers("asm a.s -o b.elf", 0);
    let from_elf = folder.answers("dis b.elf", 0);
    assert!(from_elf.ends_with(MOVE.trim_start_matches(".isa r500\n")), "{from_elf}");
    folder.answers("asm a.s -o b.bin", 0);
    assert_eq!(folder.answers("dis b.bin --isa r500", 0), MOVE);
}

#[test]
fn explain_names_every_bit() {
    let out = Folder::new("explain").answers("explain --isa r500 402 0 0a000f00 50000", 0);
    for part in [
        "if alu else -> 5",
        "27:26  B_OP1              INCR",
        "on a jump: the counters of lanes that are off increase by 1",
        "source: CTM guide",
    ] {
        assert!(out.contains(part), "{part} is missing in\n{out}");
    }
}

#[test]
fn run_takes_values_from_the_command_line() {
    let folder = Folder::new("run");
    folder.write("a.s", MOVE);
    let out = folder.answers("run a.s --input temp0=0..4 --json", 0);
    let json: serde_json::Value = serde_json::from_str(&out).unwrap();
    assert_eq!(json["outputs"]["color0"][3], serde_json::json!([3.0, 0.0, 0.0, 0.0]));
    assert_eq!((&json["warp_instructions"], &json["lane_instructions"]), (&1.into(), &4.into()));
    assert_eq!(json["fidelity"]["MAX"]["fidelity"], "specified");
    folder.answers("run a.s --input temp0=0..4 --out color0=out.npy", 0);
    let array = Array::from_npy(&std::fs::read(folder.0.join("out.npy")).unwrap()).unwrap();
    assert_eq!((array.dtype, array.shape), (Dtype::F32, vec![4, 4]));
}

#[test]
fn a_trap_is_the_programs_fault() {
    let folder = Folder::new("trap");
    folder.write("a.s", ".isa r500\nif alu\nendif\nOUT nop\n");
    let output = folder.run("run a.s");
    let message = "a.s: trap at 0, group from lane 0, lanes 0: JUMP_FUNC reads an ALU result that no instruction since the last FC has written";
    let stderr = text(&output.stderr);
    assert_eq!((output.status.code(), stderr.lines().next()), (Some(1), Some(message)));
    assert_eq!(stderr.lines().nth(1), Some("  a.s:2: if alu"));
    folder.answers("run a.s --mode lenient", 0);
}

#[test]
fn the_built_in_corpus_passes() {
    let out = Folder::new("check").answers("check --json", 0);
    let json: serde_json::Value = serde_json::from_str(&out).unwrap();
    assert_eq!((&json["failed"], &json["unsupported"]), (&0.into(), &0.into()));
    assert!(json["passed"].as_u64().unwrap() >= 60 && json["failures"].as_array().unwrap().is_empty());
}

/// Runs the command that the last line of `check` suggests between `prefix` and `end`. Quoted arguments do not
/// contain spaces.
#[track_caller]
fn follow(folder: &Folder, answer: &str, prefix: &str, end: &str) -> String {
    let last = answer.lines().last().unwrap();
    let (_, from) = last.split_once(prefix).unwrap_or_else(|| panic!("{last}"));
    let suggested = from.split_once(end).unwrap_or_else(|| panic!("{last}")).0.replace('"', "");
    folder.answers(suggested.strip_prefix("reconverge ").unwrap(), 0)
}

#[test]
fn check_of_the_built_in_corpus_concludes_with_the_programs_of_each_machine_and_the_engine() {
    let folder = Folder::new("conclusion");
    let json: serde_json::Value = serde_json::from_str(&folder.answers("check --json", 0)).unwrap();
    let of = |machine: &str| {
        let is_of = |case: &&serde_json::Value| case["file"].as_str().unwrap().starts_with(machine);
        json["results"].as_array().unwrap().iter().filter(is_of).count()
    };
    let programs = format!(
        "{} programs ({} for ATI R500, {} for AMD R600 and R700, {} for NVIDIA Tesla)",
        json["cases"],
        of("r500/"),
        of("r700/"),
        of("tesla/")
    );
    let one = "1 program (1 for AMD R600 and R700)";
    for (arguments, programs, engine) in [
        ("check --engine fast", programs.as_str(), "the fast engine"),
        (
            "check --engine lockstep --filter loop-aL",
            one,
            "the reference interpreter and the fast engine in lockstep",
        ),
        ("check --engine reference --filter loop-aL", one, "the reference interpreter"),
    ] {
        let answer = folder.answers(arguments, 0);
        let conclusion = format!("\n{programs} ran on {engine}, and every result was correct.\n");
        assert!(answer.contains(&conclusion), "{arguments}: {answer}");
    }
}

#[test]
fn the_command_that_check_suggests_works_with_the_samples_and_without_any_file() {
    let folder = Folder::new("suggestion");
    let meaning = follow(
        &folder,
        &folder.answers("check --filter loop-aL", 0),
        "explain one instruction: ",
        ". For all",
    );
    assert!(meaning.contains("meaning:"), "{meaning}");

    let samples = folder.0.join("docs/samples");
    std::fs::create_dir_all(&samples).unwrap();
    let collatz = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/samples/collatz.s");
    std::fs::copy(collatz, samples.join("collatz.s")).unwrap();
    let steps =
        follow(&folder, &folder.answers("check --filter loop-aL", 0), "watch lanes diverge: ", ", then open");
    assert!(steps.starts_with("steps: u32 [12]\n"), "{steps}");
    assert!(folder.0.join("collatz.html").is_file());
}

/// `cargo run` starts the command by a relative path. The command may not be installed then.
#[cfg(unix)]
#[test]
fn check_suggests_the_relative_path_with_which_it_was_started() {
    let folder = Folder::new("relative");
    std::os::unix::fs::symlink(env!("CARGO_BIN_EXE_reconverge"), folder.0.join("tool")).unwrap();
    let output = Command::new("./tool")
        .current_dir(&folder.0)
        .args(["check", "--filter", "loop-aL"])
        .output()
        .unwrap();
    let answer = text(&output.stdout);
    assert!(answer.ends_with("For all commands: ./tool --help.\n"), "{answer}");
}

#[test]
fn check_explains_the_finding_of_the_built_in_corpus() {
    let folder = Folder::new("finding");
    let answer = folder.answers("check", 0);
    assert!(answer.contains("; 1 strict finding\n"), "{answer}");
    assert!(answer.contains("\nA finding is not a failure: "), "{answer}");
    let without = folder.answers("check --filter loop-aL", 0);
    assert!(without.contains("; 0 strict findings\n") && !without.contains("not a failure"), "{without}");
}

#[test]
fn check_of_a_path_of_a_failing_corpus_or_with_quiet_ends_with_the_counts() {
    let folder = Folder::new("no-conclusion");
    folder.write("a.hex", "00078001\n08020000\n08020000\n1c440220\n1c60c003\n00000005\n");
    // Only in strict mode is the finding a trap that fails its case.
    for (arguments, status) in
        [("check a.hex --isa r500", 0), ("check --quiet", 0), ("check --mode strict", 1)]
    {
        let answer = folder.answers(arguments, status);
        let last = answer.lines().last().unwrap();
        assert!(last.contains(" failed, ") && last.contains("strict finding"), "{arguments}: {answer}");
    }
}

#[test]
fn check_says_no_when_a_case_fails() {
    let folder = Folder::new("check-fails");
    folder.write("a.s", MOVE);
    folder.write("a.toml", "isa = \"r500\"\nprogram = \"a.s\"\nlanes = 1\ninput = [{ temp = 0, values = [1, 2, 3, 4] }]\n[[expect]]\noutput = \"color0\"\nvalues = [[1, 2, 3, 5]]\n");
    let out = folder.answers("check a.toml", 1);
    assert!(
        out.contains(
            "FAILED   a.toml: strict: expect color0: 1 of 4 numbers differs: lane 0 .a: expected 5, found 4"
        ),
        "{out}"
    );
    folder.write("known.json", folder.answers("check a.toml --json", 1));
    folder.answers("check a.toml --baseline known.json --junit report.xml", 0);
    let report = std::fs::read_to_string(folder.0.join("report.xml")).unwrap();
    assert!(report.contains("failures=\"1\""), "{report}");
}

#[test]
fn a_truncated_program_is_refused() {
    let folder = Folder::new("truncated");
    folder.write("a.hex", "00078001\n08020000\n");
    folder.refuses(
        "run a.hex --isa r500",
        "error: a.hex: 2 words are not a whole number of instructions: the last one has 2 of 6 words",
    );
    folder.write("a.s", MOVE).answers("asm a.s -o a.elf", 0);
    let elf = std::fs::read(folder.0.join("a.elf")).unwrap();
    folder.write("cut.elf", &elf[..100]);
    let output = folder.run("dis cut.elf");
    assert_eq!(output.status.code(), Some(2));
    assert!(text(&output.stderr).starts_with("error: cut.elf: "), "{}", text(&output.stderr));
}

#[test]
fn a_wrong_chip_or_machine_is_refused() {
    let folder = Folder::new("chip");
    folder.write("a.hex", "00078001\n08020000\n08020000\n1c440220\n1c60c003\n00000005\n").write("a.s", MOVE);
    folder.refuses("dis a.hex --isa r500 --chip RV770", "error: a.hex: RV770 is a chip of r700, not of r500");
    folder.refuses(
        "dis a.hex",
        "error: a.hex: unknown machine; state it with --isa r500, r700 or tesla, or --chip",
    );
    folder.refuses(
        "asm a.s -o b.hex --isa tesla",
        "error: this source is for r500, not for tesla\n --> a.s:1:1\n  |\n1 | .isa r500\n  | ^^^^^^^^^\n  |\n  = help: omit --isa, or use --isa r500",
    );
}

#[test]
fn an_unknown_field_value_is_refused_with_what_fits() {
    let folder = Folder::new("field");
    folder.write("a.s", ".isa r500\nOUT nop {RGB_PRED_SEL=RRRG}\n");
    folder.refuses(
        "asm a.s -o b.hex",
        "error: unknown value `RRRG` for RGB_PRED_SEL\n --> a.s:2:23\n  |\n2 | OUT nop {RGB_PRED_SEL=RRRG}\n  |                       ^^^^\n  |\n  = help: did you mean `RRRR`? expected one of NONE, RGBA, RRRR, GGGG, BBBB, AAAA",
    );
}

#[test]
fn more_than_512_instructions_are_refused() {
    let folder = Folder::new("slots");
    folder.write("a.s", format!(".isa r500\n{}", "OUT nop\n".repeat(513)));
    folder.refuses(
        "asm a.s -o b.hex",
        "error: 513 instructions do not fit: R500 has 512 instruction slots\n   --> a.s:514:1\n    |\n514 | OUT nop\n    | ^^^^^^^ the first instruction that does not fit\n    |\n    = help: shorten the program; the hardware cannot load more",
    );
    folder.write("a.hex", "00000005\n00000000\n00000000\n00000000\n00000000\n00000000\n".repeat(513));
    folder.refuses(
        "run a.hex --isa r500",
        "error: a.hex: 513 instructions from slot 0 do not fit into the 512 instruction slots",
    );
}

#[test]
fn missing_inputs_are_refused() {
    let folder = Folder::new("missing");
    folder.write("a.s", MOVE);
    folder.refuses(
        "run a.s --input temp0=nowhere.npy",
        "error: a.s: input temp[0]: nowhere.npy: No such file or directory (os error 2); name a .npy, .json or .bin:TYPE file, or give values like 0..64, 1,2,3 or f32[64]",
    );
    folder
        .refuses("run nowhere.hex --isa r500", "error: nowhere.hex: No such file or directory (os error 2)");
    folder.write("tex.s", ".isa r500\nTEX temp[0].rgba = LD tex[3], temp[0].rgaa\nOUT nop\n");
    folder.refuses(
        "run tex.s",
        "error: tex.s: the program fetches from unit 3 (slot 0), to which nothing is bound: state it with --texture UNIT=FILE, or in a [[texture]] table of the launch file",
    );
}

#[test]
fn a_nan_is_refused_where_integers_are_wanted() {
    let folder = Folder::new("nan");
    let array = Array::from_words(Dtype::F32, vec![4], [1.0f32, f32::NAN, 3.0, 4.0].map(f32::to_bits));
    folder.write("nan.npy", array.to_npy());
    folder.write("a.s", ".isa r500\nTEX temp[1].r = LD tex[0], temp[0].rgba UNSCALED\nOUT out[A].rgb = MAX*off src0.rgb, src0.rgb : src0=temp[1]\n");
    folder.refuses(
        "run a.s --domain 1x1 --buf in0=nan.npy:UINT8_4:1x1 --buf out0=FLOAT32_1:1x1",
        "error: a.s: ctm.input 0: nan.npy: element 1 is NaN, which u8 cannot hold: give an array of u8, or replace the NaN",
    );
}

#[test]
fn wrong_usage_ends_with_two() {
    let folder = Folder::new("usage");
    for arguments in
        ["", "dis", "frobnicate", "check --engine warp", "explain --isa r500 xyz", "explain --isa vax 0"]
    {
        assert_eq!(folder.run(arguments).status.code(), Some(2), "{arguments}");
    }
    assert_eq!(folder.run("--help").status.code(), Some(0));
    assert_eq!(folder.run("check nowhere").status.code(), Some(2));
}

/// The sample of the documents with a second kernel.
const ADD: &str = concat!(include_str!("../../../docs/samples/vec.s"), ".kernel nothing\n    exit nop\n");

#[test]
fn a_kernel_runs_from_a_cubin_with_arrays_from_files() {
    let folder = Folder::new("tesla-run");
    folder.write("vec.s", ADD);
    folder.answers("asm vec.s -o vec.cubin", 0);
    let input = Array::from_words(Dtype::I32, vec![256], (0..256u32).map(|index| index * index));
    folder.write("in.npy", input.to_npy());
    let printed = folder.answers(
        "run vec.cubin --kernel add --grid 4 --block 64 --buf a=in.npy --buf out=i32[256] --arg n=-5 --out out=out.npy",
        0,
    );
    assert!(
        printed.contains("80 group instructions, 2560 lane instructions, 0 divergent branches"),
        "{printed}"
    );
    let output = Array::from_npy(&std::fs::read(folder.0.join("out.npy")).unwrap()).unwrap();
    let expected =
        Array::from_words(Dtype::I32, vec![256], (0..256u32).map(|index| (index * index).wrapping_sub(5)));
    assert_eq!(output, expected);
    // The order on the command line is the order of the parameters. Here the number is in the position of the
    // address.
    let output = folder.run("run vec.cubin --kernel add --arg n=-5 --buf a=in.npy --buf out=i32[256]");
    assert_eq!(output.status.code(), Some(1));
    assert!(text(&output.stderr).contains("outside every buffer"), "{}", text(&output.stderr));
}

#[test]
fn a_tesla_program_survives_every_format() {
    let folder = Folder::new("tesla-round-trip");
    folder.write("vec.s", ADD);
    folder.answers("asm vec.s -o vec.cubin", 0);
    folder.write("again.s", folder.answers("dis vec.cubin", 0));
    folder.answers("asm again.s -o again.cubin", 0);
    let file = |name: &str| std::fs::read(folder.0.join(name)).unwrap();
    assert_eq!(file("vec.cubin"), file("again.cubin"));
    folder.write("one.s", folder.answers("dis vec.cubin --kernel add --hex --structure", 0));
    folder.answers("asm one.s -o one.bin", 0);
    folder.write("two.s", folder.answers("dis one.bin --isa tesla", 0));
    folder.answers("asm two.s -o two.bin", 0);
    assert_eq!(file("one.bin"), file("two.bin"));
    folder.refuses(
        "asm vec.s -o vec.hex",
        "error: vec.s: hex: expected one program, found 2; use --format cubin",
    );
    folder.refuses(
        "run vec.cubin",
        "error: vec.cubin: several programs; choose one with --kernel: add, nothing",
    );
}

#[test]
fn parameters_are_checked_against_the_kernel() {
    let folder = Folder::new("tesla-params");
    folder.write("k.s", ".isa tesla\n.kernel k\n.param 0x0 8\n.param 0x8 2\n    exit nop\n");
    folder.refuses(
        "run k.s --buf a=0..4",
        "error: k.s: k: expected 2 parameters (8 bytes at s[0x10], 2 bytes at s[0x18]), found 1 parameter; the order \
         of --buf and --arg is the order of the parameters",
    );
    folder.refuses(
        "run k.s --buf a=0..4 --arg n=70000",
        "error: k.s: param n: expected 2 bytes as the kernel declares, found 4",
    );
    folder.refuses(
        "run k.s --buf a=0..4 --arg n=1 --lanes 4",
        "error: k.s: lanes: for VP, GP and FP programs; this is a CP program",
    );
    folder.refuses("run k.s --domain 4x4", "error: --domain is not for tesla programs");
    folder.answers("run k.s --buf a=0..4 --arg n=7", 0);
}

#[test]
fn explain_names_every_bit_of_a_tesla_instruction() {
    let folder = Folder::new("tesla-explain");
    let printed = folder.answers("explain --isa tesla 10000003 00000280", 0);
    for line in [
        "(lg $c0) bra 0x0",
        "  |0001|0|0000000000000000|000000000|11|",
        "   11:7  condition          lg",
        "source: docs/tesla.md, section 9.3; row c.bra",
    ] {
        assert!(printed.contains(line), "{printed}");
    }
    folder.refuses(
        "explain --isa tesla 10000003",
        "error: expected 2 words when bit 0 is set for an instruction of tesla, found 1",
    );
    folder.refuses(
        "explain --isa tesla ffffffff ffffffff",
        "error: ffffffff ffffffff on G80 in CP: no instruction has these bits",
    );
}

#[test]
fn check_judges_vectors_row_by_row() {
    let folder = Folder::new("tesla-vectors");
    let table = "op,chip,mode,w0,w1,src1,src2,src3,cc_in,result,cc_out\n\
                 cvt neg u16 u8 a,any,,a0001039,200087c0,80000000,-,-,-,00000000,1\n\
                 cvt u16 u16 a,any,,a0001039,000007c0,80000001,-,-,-,00000002,0\n";
    folder.write("cvt_i2i.csv", table);
    let printed = folder.answers("check cvt_i2i.csv", 1);
    assert!(
        printed.contains("FAILED   cvt_i2i.csv cvt_i2i:3 cvt u16 u16 a: 1 0 instead of 2 0"),
        "{printed}"
    );
    assert!(printed.contains("2 cases: 1 passed, 1 failed, 0 unsupported, 0 skipped"), "{printed}");
}

/// One block stores lane numbers, which the manifest expects.
fn manifest(instructions: u32) -> String {
    format!(
        r#"{{"schema": 1, "id": "lanes", "isa": "tesla", "arch": "sm_10", "binary": "lanes.hex",
            "launches": [{{"kernel": null, "grid": [1, 1], "block": [4, 1, 1], "dynamic_shared_bytes": 0,
              "params": [{{"name": "out", "kind": "buffer", "offset": 0, "bytes": 4, "buffer": "out"}}]}}],
            "buffers": [{{"name": "out", "address": 4096, "bytes": 16, "init": "zero"}}],
            "expect": [{{"buffer": "out", "offset": 0, "bytes": 16, "elem": "u32", "file": "out.bin",
              "tolerance": {{"exact": true}}}}],
            "thread_instructions": {instructions}}}"#
    )
}

#[test]
fn a_run_manifest_is_judged_by_bytes_and_counts() {
    let folder = Folder::new("tesla-manifest");
    folder.write(
        "lanes.s",
        ".isa tesla\n shl b32 $r1 $r0 0x2\n add b32 $r1 b32 s[0x10] $r1\n exit st b32 g14[$r1] $r0\n",
    );
    folder.answers("asm lanes.s -o lanes.hex", 0);
    let bytes = |last: u8| {
        [0u8, 1, 2, last].into_iter().flat_map(|lane| u32::from(lane).to_le_bytes()).collect::<Vec<u8>>()
    };
    folder.write("out.bin", bytes(3)).write("run.json", manifest(12));
    assert!(folder.answers("check run.json", 0).contains("1 case: 1 passed"));
    assert!(folder.answers("run run.json", 0).contains("out: u32 [4]"));
    folder.write("out.bin", bytes(9));
    assert!(folder.answers("check run.json", 1).contains("expect out: 1 of 4 u32 elements differs: element 3 (byte 12): expected 9 (0x00000009), found 3 (0x00000003)"));
    folder.write("out.bin", bytes(3)).write("run.json", manifest(13));
    assert!(folder.answers("check run.json", 1).contains("expected 13 thread instructions, found 12"));
}

#[test]
fn a_launch_file_may_be_json() {
    let folder = Folder::new("r700-json");
    folder.write("add.s", ".isa r700\n.chip RV770\nALU:\n  0 x: ADD_INT R0.x, R0.x, 1\nEXPORT_DONE: PIXEL[0], R0.x___ END_OF_PROGRAM\n");
    let launch = |expected: u32| {
        format!(
            r#"{{"isa": "r700", "program": "add.s", "output_type": "u32", "input": [{{"gpr": 0, "values": {{"type": "u32", "list": [[5], [6]]}}}}],
                "expect": [{{"output": "pixel0", "values": [[6, 0, 0, 0], [{expected}, 0, 0, 0]]}}]}}"#
        )
    };
    folder.write("add.json", launch(7));
    assert!(
        folder
            .answers("run add.json", 0)
            .starts_with("pixel0: u32 [2, 4]\n     0  6 0 0 0\n     1  7 0 0 0\n")
    );
    assert!(folder.answers("check add.json", 0).contains("1 case: 1 passed"));
    folder.write("add.json", launch(8));
    assert!(
        folder
            .answers("check add.json", 1)
            .contains("expect pixel0: 1 of 8 numbers differs: lane 1 .x: expected 8, found 7")
    );
}

#[test]
fn a_malformed_program_is_a_finding_beside_its_round_trip() {
    let folder = Folder::new("r700-malformed");
    // A clause whose last group does not have LAST.
    folder.write("bad.hex", "00000002\na0000000\n00000000\n80200000\n001f0000\n00001910\n");
    let printed = folder.answers("check bad.hex --isa r700", 0);
    assert!(printed.contains("finding  bad.hex: at 0: the clause ends inside a group"), "{printed}");
}

/// The test does not depend on the processor, because the code is compiled for one level.
#[test]
fn verbose_says_what_compiling_took_and_why_the_fast_engine_ran() {
    let bench = |options: &[&str]| {
        let command = ["bench", "--isa", "r500", "--kernel", "scale", "--threads", "1", "--runs", "1"];
        let out =
            Command::new(env!("CARGO_BIN_EXE_reconverge")).args(command).args(options).output().unwrap();
        assert!(out.status.success());
        String::from_utf8(out.stderr).unwrap()
    };
    let said = bench(&["--level", "baseline", "--verbose"]);
    assert_eq!(said.matches("the fast engine ran instead of the compiled one").count(), 1, "{said}");
    assert_eq!(bench(&["--level", "baseline"]), "");
    assert_eq!(bench(&["--engine", "fast", "--level", "baseline", "--verbose"]), "");
    let said = bench(&["--verbose"]);
    let alternatives = ["note: 1 program compiled in ", "the fast engine ran instead of the compiled one"];
    assert_eq!(alternatives.map(|text| said.matches(text).count()).iter().sum::<usize>(), 1, "{said}");
}

#[test]
fn dis_of_a_launch_file_prints_the_program_that_it_names() {
    let folder = Folder::new("dis-launch");
    folder.write("a.s", "exit nop\n");
    folder.write("a.toml", "isa = \"tesla\"\nprogram = \"a.s\"\n");
    let printed = folder.answers("dis a.toml", 0);
    assert_eq!(printed, folder.answers("dis a.s --isa tesla", 0));
    folder.write("b.toml", "isa = \"tesla\"\n");
    folder.refuses(
        "dis b.toml",
        "error: b.toml: missing `program` in the launch file; add a line such as program = \"shader.s\"",
    );
}

#[test]
fn bench_times_launch_files_and_compares_what_they_expect() {
    let folder = Folder::new("bench-launch");
    folder.write("a.s", "mov b32 $r1 b32 s[0x10]\nmov b32 $r0 0x7\nst b32 g14[$r1] $r0\nexit nop");
    let launch = |expected: u32| {
        format!(
            "isa = \"tesla\"\nprogram = \"a.s\"\nblock = [1, 1, 1]\nparam = [{{ name = \"o\", buffer = \"u32[1]\" }}]\n\
             [[expect]]\noutput = \"o\"\nvalues = [{expected}]\n"
        )
    };
    folder.write("a.toml", launch(7));
    folder.write("b.toml", launch(8));
    let out = folder.answers("bench a.toml --runs 2 --json", 0);
    let json: serde_json::Value = serde_json::from_str(&out).unwrap();
    assert_eq!((&json["kernel"], &json["golden_ok"]), (&"a.toml".into(), &true.into()));
    let out = folder.answers("bench a.toml b.toml --threads 1", 1);
    assert!(out.lines().any(|line| line.contains("a.toml") && line.ends_with("right")), "{out}");
    assert!(out.lines().any(|line| line.contains("b.toml") && line.ends_with("WRONG")), "{out}");
    let out = folder.answers("bench a.toml --runs 1", 0);
    assert!(out.contains("matches the file's expectation"), "{out}");
    folder.refuses("bench c.toml", "error: c.toml: No such file or directory (os error 2)");
}

#[test]
fn bench_takes_turns_between_numbers_of_threads() {
    let folder = Folder::new("bench");
    let out = folder.answers("bench --isa tesla --kernel mandel --threads 1,2 --runs 1 --json", 0);
    let json: serde_json::Value = serde_json::from_str(&out).unwrap();
    let results = json["results"].as_array().unwrap();
    assert_eq!(results.iter().map(|result| &result["threads"]).collect::<Vec<_>>(), [1, 2]);
    for result in results {
        assert_eq!((&result["golden"], &result["golden_ok"]), (&"cc8eda81".into(), &true.into()));
        assert_eq!(
            (&result["isa"], &result["kernel"], &result["engine"]),
            (&"tesla".into(), &"mandel".into(), &"compiled".into())
        );
        assert!(result["cpu_s"].as_f64().unwrap() > 0.0 && result["wall_s"].as_f64().unwrap() > 0.0);
        assert_eq!(result["warp_instructions"], results[0]["warp_instructions"]);
    }
    // With one iteration, the speedup is the ratio of the two times. It has a separate name, and the first result
    // does not have one.
    let seconds = |result: &serde_json::Value| result["wall_s"].as_f64().unwrap();
    let speedup = results[1]["speedup"].as_f64().unwrap();
    assert!((speedup - seconds(&results[0]) / seconds(&results[1])).abs() < 1e-9, "{out}");
    // The report contains the speedup that the machine allows.
    assert!(results[1]["machine_speedup"].as_f64().unwrap() > 0., "{out}");
    for only_of_others in ["speedup", "machine_speedup"] {
        assert!(results[0].get(only_of_others).is_none(), "{out}");
    }
    // With one number of threads, the answer is one object.
    let out =
        folder.answers("bench --isa tesla --kernel mandel --threads 1 --level baseline --runs 1 --json", 0);
    let json: serde_json::Value = serde_json::from_str(&out).unwrap();
    assert_eq!((&json["threads"], &json["golden_ok"]), (&1.into(), &true.into()));
    folder.refuses(
        "bench --threads 0",
        "error: invalid value '0' for '--threads <N>': 0 is not in 1..=65535\n\nFor more information, try '--help'.",
    );
    folder.refuses(
        "bench --isa r500 --kernel collatz",
        "error: kernel `collatz` is not available for r500, only for r700 and tesla",
    );
    folder.refuses(
        "bench --isa r500 --kernel scal",
        "error: unknown kernel `scal`: did you mean `scale`? expected one of lit, mandel, newton, options, scale, stencil4",
    );
    let list = folder.answers("bench --isa r500 --list", 0);
    assert_eq!(
        list.lines().nth(1).unwrap(),
        "r500   scale        262144 lanes  A picture of 128 x 128 texels brought to 512 x 512 pixels by a bilinear filter, \
         clamped to the edge, one lane a pixel"
    );
}

/// A log of Mesa's r600 with a pixel program and a vertex program, and with a program for another chip.
const LOG: &str = "Mesa: info: a message\nFRAG\n  0: END\nbytecode 8 dw -- 2 gprs -- 1 nstack -------------\nshader 0 -- 7\n\
    0000 00000002 80800000  TEX 1 @4\n 0004 00000010 F00D1000 68800000   SAMPLE R0.xyzw, R0.xyzw\n\
    0002 C0000000 94200688  EXPORT_DONE        PIXEL 0     R0.xyzw      ES:3 EOP \n--------------------------------------\n\
    PIGLIT: pass\n===== SHADER #4 ==== PS/REDWOOD/EVERGREEN =====\n===== 2 dw ===== 1 gprs ===== 0 stack ====\n\
    0000  c0000000 95200688 EXPORT_DONE        PIXEL 0     R0.xyzw  EOP\n===== SHADER_END ====\n\
    ===== SHADER #5 ==== VS/RV730/R700 =====\n===== 4 dw ===== 2 gprs ===== 1 stack ====\n\
    0000  c000a03c 94000688 EXPORT_DONE POS 60 R1.xyzw\n0002  c0004000 94200688 EXPORT_DONE PARAM 0 R0.xyzw EOP\n\
    ===== SHADER_END ====\n";

#[test]
fn every_shader_of_a_log_is_listed_and_each_is_checked_linted_shown_and_run() {
    let folder = Folder::new("driver-log");
    folder.write("a.log", LOG);
    let listed = folder.run("list a.log");
    assert_eq!(listed.status.code(), Some(0), "{}", text(&listed.stderr));
    let lines: Vec<String> = text(&listed.stdout)
        .lines()
        .map(|line| line.split_whitespace().collect::<Vec<_>>().join(" "))
        .collect();
    assert_eq!(
        lines,
        [
            "log: 2 programs",
            "program machine chip stage words instructions registers stack",
            "shader0 r700 rv730 pixel 8 3 2 (needs 1) 1 (needs 0)",
            "SHADER5 r700 rv730 vertex 4 2 2 1 (needs 0)",
        ]
    );
    assert!(
        text(&listed.stderr).contains("line 11: SHADER4 is for REDWOOD (EVERGREEN)"),
        "{}",
        text(&listed.stderr)
    );
    assert!(folder.answers("check a.log", 0).contains("2 passed"));
    assert!(text(&folder.run("lint a.log").stdout).contains("2 programs"));
    assert!(folder.answers("dis a.log", 0).contains(".program SHADER5"));
    let pixel = folder.answers("dis a.log --kernel shader0", 0);
    assert!(pixel.contains("SAMPLE R0.xyzw, R0.xyzw, t0, s0") && pixel.contains(".gprs 2"), "{pixel}");
    let run = folder.answers("run a.log --kernel SHADER5 --lanes 1 --input R0=1,2,3,4 --input R1=5,6,7,8", 0);
    assert!(run.contains("5.0 6.0 7.0 8.0") && run.contains("1.0 2.0 3.0 4.0"), "{run}");
    let fetch = "run a.log --kernel shader0 --lanes 4 --texture 0=1,2,3,4:2x2 --input R0=0";
    assert!(folder.answers(fetch, 0).contains("pixel0"));
    // A chip on the command line makes a family precise. If the chip does not fit, no program remains.
    folder.write("b.log", &LOG[..LOG.find("=====").unwrap()]);
    assert!(folder.answers("list b.log --chip rv710", 0).contains("rv710"));
    folder.refuses(
        "list b.log --chip rv630",
        "error: b.log: this is a program for r700, not for rv630: omit --chip, or use --chip r700",
    );
    folder.refuses("list a.log --format c", "error: a.log: an array with machine code is missing: expected an array \
                                             such as `unsigned char name[] = { 0x7f, … };`, found 0 integer arrays \
                                             and 0 strings with contents");
    for format in ["log", "listing", "dump"] {
        assert!(folder.answers(&format!("list a.log --format {format}"), 0).contains("2 programs"));
    }
}

#[test]
fn a_log_of_other_chips_only_is_refused_with_their_name() {
    let folder = Folder::new("other-chips");
    let other = &LOG[LOG.find("===== SHADER #4").unwrap()..LOG.find("===== SHADER #5").unwrap()];
    folder.write("a.log", other);
    folder.write("b.txt", "0000 00000002 80400000 CF_TC_EG 1 @4\n0002 00000000 80200000 CF_END_EG\n");
    for isa in ["", " --isa r700"] {
        folder.refuses(&format!("list a.log{isa}"), "error: a.log: line 1: SHADER4 is for REDWOOD (EVERGREEN), which is not supported: expected R500, R600, R700 or Tesla");
        folder.refuses(&format!("dis b.txt{isa}"), "error: b.txt: line 1: `CF_TC_EG` is for Evergreen or Cayman, which is not supported: expected R500, R600, R700 or Tesla");
    }
}

#[test]
fn programs_of_two_families_in_one_log_are_each_read_as_their_own() {
    let folder = Folder::new("two-families");
    // In R600, MOV and SETGT_DX10 have other opcodes.
    let alu = |name: &str, word: &str| {
        format!(
            "===== SHADER #{} ==== PS/{name} =====\n===== 6 dw ===== 1 gprs ===== 0 stack ====\n0000  00000002 a0000000 ALU 1 @4\n \
             0004  800000fe {word}  x: MOV R0.x, PV.x\n0002  c0000000 94200688 EXPORT_DONE PIXEL 0 R0.xyzw EOP\n===== SHADER_END ====\n",
            name.len()
        )
    };
    folder.write(
        "a.log",
        alu("RV730/R700", "00000c90") + &alu("RV630/R600", "00001910") + &alu("R600/R600", "00001910"),
    );
    assert!(folder.answers("list a.log", 0).contains("rv630"));
    for kernel in ["SHADER10:1", "SHADER10:7", "SHADER9"] {
        let listing = folder.answers(&format!("dis a.log --kernel {kernel}"), 0);
        assert!(listing.contains("MOV"), "{kernel}: {listing}");
    }
    assert!(folder.answers("check a.log", 0).contains("3 passed"));
    folder.refuses(
        "dis a.log",
        "error: a.log: expected programs for one chip, found rv730 and rv630; choose a program with --kernel or a chip with --chip",
    );
    assert!(folder.answers("dis a.log --chip rv630", 0).contains(".chip rv630"));
}

#[test]
fn a_listing_of_mesa_without_a_header_has_the_fourth_word_of_its_last_fetch() {
    let folder = Folder::new("last-fetch");
    for (text, words) in [
        (
            "0000  00000002 80800000  TEX 1 @4\n 0004  00000010 f00d1000 68800000   SAMPLE\n0002  00000000 94200688  EXPORT_DONE\n",
            8,
        ),
        (
            "0000  00000003 a0040000  ALU 2 @6\n 0006  801fa000 00400110 x: MUL_IEEE R2.x, R0.x, L.x\n 0008  3e000000\n\
             0002  00000000 80000000  NOP\n0004  00000000 94200688  EXPORT_DONE\n",
            10,
        ),
    ] {
        folder.write("a.txt", text);
        let listed = folder.answers("list a.txt --isa r700 --json", 0);
        assert!(
            listed.contains(&format!("\"words\": {words}")) || listed.contains(&format!("\"words\":{words}")),
            "{listed}"
        );
        assert!(folder.answers("lint a.txt --isa r700 --stage pixel", 0).contains("1 program"));
    }
}

#[test]
fn the_text_of_llvm_is_read_although_its_name_ends_like_a_source() {
    let folder = Folder::new("llvm-text");
    let llvm = "\t.section\t.AMDGPU.config\n\t.long\t165968\n\t.long\t1\n\t.text\nps:      ; @ps\n\
        \tEXPORT T0.XYZW       ; encoding: [0x00,0x00,0x00,0xc0,0x88,0x06,0x20,0x94]\n.Lfunc_end0:\n";
    folder.write("a.s", llvm);
    let listed = folder.answers("list a.s", 0);
    assert!(listed.starts_with("log: 1 program\n") && listed.contains("pixel"), "{listed}");
    assert!(folder.answers("check a.s", 0).contains("1 passed"));
    folder.write("b.s", llvm.replace("165968", "165956"));
    let refused = text(&folder.run("list b.s --isa r700").stderr);
    assert!(refused.contains("ps is for Evergreen or Cayman"), "{refused}");
}
