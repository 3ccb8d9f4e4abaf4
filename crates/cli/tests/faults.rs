//! Impossible requests are rejected with a message on every machine.

use std::path::Path;
use std::process::{Command, Output};

use reconverge_isa::Isa;
use reconverge_workbench::kernels::KERNELS;
use reconverge_workbench::suite::WORKLOADS;
use reconverge_workbench::target::{ChipName, chips};

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

/// Returns a program that ends at once, for a chip.
fn empty(isa: Isa, chip: &str) -> String {
    let code = match isa {
        Isa::R500 => "OUT nop\n",
        Isa::R700 => "NOP: END_OF_PROGRAM\n",
        Isa::Tesla => ".type fragment\n  exit nop\n",
    };
    format!(".isa {isa}\n.chip {chip}\n{code}")
}

/// 2^63 lanes: `run` and `check` name the limit and do not allocate memory for the lanes.
#[test]
fn a_launch_of_too_many_lanes_is_refused_before_anything_is_allocated() {
    for (isa, chip) in [(Isa::R500, "R580"), (Isa::R700, "rv770"), (Isa::Tesla, "G80")] {
        let source = empty(isa, chip);
        let launch = format!(
            "isa = \"{isa}\"\nprogram = \"a.s\"\nlanes = 9223372036854775807\n[[expect]]\noutput = \"x\"\nvalues = [1]\n"
        );
        let files = [("a.s", &source[..]), ("a.toml", &launch)];
        let bound = "expected 1 to 16777216, found 9223372036854775807";
        let output = run(&format!("lanes-{isa}"), &files, "run a.toml");
        assert_eq!(output.status.code(), Some(2), "{isa}: {}", text(&output.stderr));
        assert!(text(&output.stderr).contains(bound), "{isa}: {}", text(&output.stderr));
        let output = run(&format!("lanes-{isa}"), &files, "check a.toml");
        assert_eq!(output.status.code(), Some(1), "{isa}: {}", text(&output.stderr));
        assert!(text(&output.stdout).contains(bound), "{isa}: {}", text(&output.stdout));
    }
}

/// A corpus case with 2^63 lanes fails without affecting the verdicts of other cases.
#[test]
fn a_case_of_too_many_lanes_fails_alone() {
    let case = |name: &str, lanes: u64, expect: &str| {
        format!(
            r#"{{"name": "{name}", "arch": "r500", "program": {{"code": ["00078001 08020000 08020000 1c440220 1c60c003 00000005"]}}, "lanes": {lanes}, "runs": [{{"const": {{}}, "expect": [{expect}]}}]}}"#
        )
    };
    let cases = format!(
        "{}\n{}\n",
        case("many", 1 << 63, ""),
        case("one", 1, "\"00000000000000000000000000000000\"")
    );
    let output = run("lanes-case", &[("a.jsonl", &cases)], "check a.jsonl");
    let printed = text(&output.stdout);
    assert_eq!(output.status.code(), Some(1), "{}", text(&output.stderr));
    assert!(printed.contains("many: lanes: expected 1 to 16777216, found 9223372036854775808"), "{printed}");
    assert!(printed.contains("1 passed, 1 failed"), "{printed}");
}

/// Every name and alias in the table of chips, including LATTE and the nv50 numbers.
#[test]
fn every_listed_chip_name_assembles_runs_and_disassembles() {
    for isa in Isa::ALL {
        for name in chips(isa).into_iter().flat_map(ChipName::names) {
            let source = empty(isa, name);
            let nameless =
                source.lines().filter(|line| !line.starts_with(".chip")).collect::<Vec<_>>().join("\n");
            let files = [("a.s", &source[..]), ("b.s", &nameless)];
            for arguments in ["run a.s", "dis a.s", &format!("run b.s --chip {name}")] {
                let output = run(&format!("chip-{isa}"), &files, arguments);
                assert_eq!(output.status.code(), Some(0), "{name}: {arguments}: {}", text(&output.stderr));
            }
        }
    }
}

#[test]
fn an_unknown_chip_is_refused_by_every_command() {
    let files = [
        ("a.s", &empty(Isa::R700, "rv770")[..]),
        ("a.hex", "00000000\n"),
        ("a.toml", "isa = \"r700\"\nprogram = \"a.s\"\nchip = \"nonsense\"\n"),
    ];
    for arguments in [
        "dis a.hex --isa r700 --chip nonsense",
        "explain --isa r700 --chip nonsense 0 0",
        "run a.s --chip nonsense",
        "run a.toml",
    ] {
        let output = run("unknown-chip", &files, arguments);
        assert_eq!(output.status.code(), Some(2), "{arguments}: {}", text(&output.stdout));
        let said = text(&output.stderr);
        assert!(
            said.contains("unknown chip `nonsense`: r700 has rv770, R700, RV790, LATTE"),
            "{arguments}: {said}"
        );
    }
    let output = run("unknown-chip", &files, "dis a.hex --isa r700 --chip G80");
    assert!(text(&output.stderr).contains("G80 is a chip of tesla, not of r700"));
}

/// `.asm` is the extension of a source in `run` and in `check`.
#[test]
fn an_asm_file_is_a_source_for_run_and_check() {
    let launch = "isa = \"r500\"\nprogram = \"a.asm\"\nlanes = 1\n[[expect]]\noutput = \"color0\"\nvalues = [[0, 0, 0, 0]]\n";
    let files = [
        ("a.asm", ".isa r500\nOUT out[A].rgb = MAX*off src0.rgb, src0.rgb : src0=temp[0]\n"),
        ("a.toml", launch),
    ];
    for arguments in ["run a.asm", "run a.toml", "check a.toml", "check ."] {
        let output = run("asm-source", &files, arguments);
        assert_eq!(output.status.code(), Some(0), "{arguments}: {}", text(&output.stderr));
    }
}

#[test]
fn the_page_about_performance_names_the_kernels_of_each_machine() {
    let page = include_str!("../../../docs/performance.md").to_lowercase();
    for isa in Isa::ALL {
        let counting = KERNELS.iter().filter(|kernel| kernel.isa == isa).map(|kernel| kernel.name);
        let suite = WORKLOADS.iter().filter(|work| work.isa == isa).map(|work| work.problem.name);
        let names: Vec<&str> = counting.chain(suite).collect();
        let page = page.split_whitespace().collect::<Vec<_>>().join(" ");
        let stated = [";", ")"].map(|end| format!("{isa}: {}{end}", names.join(", ")));
        assert!(stated.iter().any(|stated| page.contains(stated)), "the page does not say `{}`", stated[0]);
    }
}

/// Messages about a campaign file have the line, the key and the allowed values. Messages about a folder name its
/// campaign and the remedy.
#[test]
fn a_campaign_that_cannot_be_is_refused_with_its_remedy() {
    let kernel = "kernel = \"mandel\"\nisa = \"r500\"\nlanes = 16\ninjections = 20\nshard = 10\n";
    let files = [
        ("a.toml", kernel),
        ("b.toml", &kernel.replace("20", "30")),
        ("c.toml", &format!("{kernel}sites = [\"tokens\"]\n")),
    ];
    let output = run("campaign", &files, "campaign c.toml --json");
    assert_eq!(output.status.code(), Some(2));
    let why = text(&output.stdout);
    assert!(
        why.starts_with("{\"error\":") && why.contains("c.toml:6: ") && why.contains("did you mean `token`?"),
        "{why}"
    );
    let output = run("campaign", &files, "campaign a.toml -o results --json --jobs 2");
    assert_eq!(output.status.code(), Some(0), "{}", text(&output.stderr));
    let found: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!((&found["summary"]["finished"], &found["campaign"]["shards"]), (&20.into(), &2.into()));
    let output = run("campaign", &files, "campaign b.toml -o results");
    assert_eq!(output.status.code(), Some(2));
    let why = text(&output.stderr);
    assert!(why.contains("to another campaign") && why.contains("use another folder"), "{why}");
    let output = run("campaign", &files, "campaign a.toml -o results --recheck 20");
    assert_eq!(
        (output.status.code(), text(&output.stdout)),
        (Some(0), "20 experiments run again on the reference engine: 0 differ\n".to_owned())
    );
}

/// A file cannot grow, as on a full disk. Finished shards remain, partial files do not, and the same command
/// continues.
#[test]
#[cfg(unix)]
fn a_full_disk_keeps_the_shards_of_a_campaign_that_are_finished() {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join("campaign-full");
    let _ = std::fs::remove_dir_all(&folder);
    std::fs::create_dir_all(&folder).unwrap();
    let campaign = "kernel = \"mandel\"\nisa = \"r500\"\nlanes = 16\ninjections = 100\nshard = 50\n";
    std::fs::write(folder.join("a.toml"), campaign).unwrap();
    let ran = |limit: &str| {
        // With SIGXFSZ ignored, a write beyond the limit fails with an error.
        let script = format!("trap '' XFSZ; ulimit -f {limit}; exec \"$0\" campaign a.toml --jobs 1");
        let mut command = Command::new("sh");
        command.current_dir(&folder).args(["-c", &script, env!("CARGO_BIN_EXE_reconverge")]);
        command.output().unwrap()
    };
    let shards = || {
        let entries = std::fs::read_dir(folder.join("a.results")).unwrap().map(|entry| entry.unwrap().path());
        let mut all: Vec<_> = entries.map(|path| (path.clone(), std::fs::read(path).unwrap())).collect();
        all.sort();
        all
    };
    assert_eq!(ran("unlimited").status.code(), Some(0));
    let whole = shards();
    assert_eq!(whole.len(), 2);
    std::fs::remove_file(&whole[1].0).unwrap();
    // 512 or 1,024 bytes, less than the size of a shard.
    let output = ran("1");
    assert_eq!(output.status.code(), Some(2));
    let why = text(&output.stderr);
    assert!(why.contains("finished shards are kept; free disk space or choose another folder"), "{why}");
    assert!(shards() == whole[..1]);
    assert_eq!(ran("unlimited").status.code(), Some(0));
    assert!(shards() == whole);
}

/// After Ctrl-C, finished shards remain, and the same command runs the others.
#[test]
#[cfg(unix)]
fn ctrl_c_keeps_the_shards_of_a_campaign_that_are_finished() {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join("campaign-interrupted");
    let _ = std::fs::remove_dir_all(&folder);
    std::fs::create_dir_all(&folder).unwrap();
    let campaign = "kernel = \"mandel\"\nisa = \"r500\"\nlanes = 16\ninjections = 10000000\nshard = 50\n";
    std::fs::write(folder.join("a.toml"), campaign).unwrap();
    let mut command = Command::new(env!("CARGO_BIN_EXE_reconverge"));
    command.current_dir(&folder).args(["campaign", "a.toml"]);
    command.stdout(std::process::Stdio::null()).stderr(std::process::Stdio::piped());
    let child = command.spawn().unwrap();
    let shards = || {
        let entries = std::fs::read_dir(folder.join("a.results")).into_iter().flatten();
        entries
            .filter(|entry| entry.as_ref().unwrap().path().extension().is_some_and(|it| it == "parquet"))
            .count()
    };
    while shards() == 0 {
        std::thread::sleep(std::time::Duration::from_millis(5));
    }
    assert!(Command::new("kill").args(["-INT", &child.id().to_string()]).status().unwrap().success());
    let output = child.wait_with_output().unwrap();
    assert_eq!(output.status.code(), Some(130));
    let why = text(&output.stderr);
    assert!(why.contains("interrupted: ") && why.contains("run the same command again to continue"), "{why}");
    let mut command = Command::new(env!("CARGO_BIN_EXE_reconverge"));
    let output =
        command.current_dir(&folder).args(["campaign", "a.toml", "--summary", "--json"]).output().unwrap();
    let found: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(found["summary"]["finished"].as_u64(), Some(50 * shards() as u64));
}
