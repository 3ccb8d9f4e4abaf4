//! Traces and counts of runs that end by Ctrl-C, a trap or a limit, and incomplete files.

use std::io::Cursor;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::thread::sleep;
use std::time::{Duration, Instant};

use reconverge_trace::{Reader, What};
use serde_json::Value;

/// A loop that only the watchdog ends.
const ENDLESS: &str = "
.isa tesla
.chip sm_10
.kernel endless
.reg 2
    mov b32 $r0 0x1
again:
    add b32 $r1 $r1 $r0
    bra again
";

/// A warp that diverges, and one of whose sides traps.
const TRAPS: &str = "
.isa tesla
.chip sm_10
.kernel traps
.reg 2
    and b32 $r0 $r0 0xffff
    mov b32 $r1 0x1
    and b32 $c0 # $r0 $r1
    joinat behind
    (lg $c0) bra odd
    mov b32 $r1 0x2
    bra behind
odd:
    trap
behind:
    join nop
    exit nop
";

const COLLATZ: [&str; 5] = ["../../docs/samples/collatz.s", "--block", "12", "--buf", "steps=u32[12]"];

fn reconverge() -> Command {
    Command::new(env!("CARGO_BIN_EXE_reconverge"))
}

fn ran(args: &[&str]) -> Output {
    reconverge().args(args).output().unwrap()
}

fn text(bytes: &[u8]) -> &str {
    std::str::from_utf8(bytes).unwrap()
}

/// Returns the folder of one test and the path of its program.
fn folder(test: &str, program: &str) -> (PathBuf, String) {
    let folder = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join(test);
    let _ = std::fs::remove_dir_all(&folder);
    std::fs::create_dir_all(&folder).unwrap();
    let source = folder.join("program.s");
    std::fs::write(&source, program).unwrap();
    (folder, source.display().to_string())
}

fn reader(file: &Path) -> Reader<Cursor<Vec<u8>>> {
    Reader::new(Cursor::new(std::fs::read(file).unwrap())).unwrap()
}

/// Sends Ctrl-C to a program when `ready` returns `true`, and waits for its end.
fn interrupted(mut child: Child, ready: impl Fn() -> bool) -> Output {
    let start = Instant::now();
    while !ready() && start.elapsed() < Duration::from_secs(60) {
        sleep(Duration::from_millis(50));
    }
    assert!(child.try_wait().unwrap().is_none(), "it runs until then");
    let sent = Command::new("kill").args(["-INT", &child.id().to_string()]).status().unwrap();
    assert!(sent.success());
    child.wait_with_output().unwrap()
}

fn started(args: &[&str]) -> Child {
    reconverge().args(args).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap()
}

#[cfg(unix)]
#[test]
fn a_trace_that_ctrl_c_ends_is_complete_as_far_as_it_goes() {
    let (folder, source) = folder("interrupted-trace", ENDLESS);
    let file = folder.join("endless.rtrace");
    let name = file.display().to_string();
    let unbounded = u64::MAX.to_string();
    let child = started(&["trace", &source, "--block", "8", "--watchdog", &unbounded, "-o", &name]);
    // Until the end, the file has another name.
    let long = || {
        let mut files = std::fs::read_dir(&folder).unwrap().map(|entry| entry.unwrap());
        let part = files.find(|entry| entry.path().extension().is_some_and(|it| it == "part"));
        part.is_some_and(|part| part.metadata().is_ok_and(|part| part.len() > 20_000))
    };
    let output = interrupted(child, long);
    assert_eq!(output.status.code(), Some(130), "{}", text(&output.stderr));
    assert!(text(&output.stderr).contains("interrupted"), "{}", text(&output.stderr));
    let mut reader = reader(&file);
    assert!(reader.problem().is_none());
    let end = reader.end().unwrap().clone();
    assert!(end.outcome.interrupted && end.totals.instructions > 10_000, "{end:?}");
    let ran = reader.records().map(|record| match record.unwrap().what {
        What::Ran { count, .. } => u64::from(count),
        _ => 0,
    });
    assert_eq!(ran.sum::<u64>(), end.totals.instructions);
}

#[cfg(unix)]
#[test]
fn counts_that_ctrl_c_ends_are_printed_as_far_as_they_go() {
    let (_, source) = folder("interrupted-stats", ENDLESS);
    let unbounded = u64::MAX.to_string();
    let child = started(&["stats", &source, "--block", "8", "--watchdog", &unbounded, "--json"]);
    let start = Instant::now();
    let output = interrupted(child, || start.elapsed() > Duration::from_secs(3));
    assert_eq!(output.status.code(), Some(130));
    let counts: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(counts["interrupted"], true);
    assert!(counts["totals"]["instructions"].as_u64().unwrap() > 100);
}

#[cfg(unix)]
#[test]
fn a_run_that_ctrl_c_ends_leaves_no_page_and_says_so() {
    let (folder, source) = folder("interrupted-page", ENDLESS);
    let file = folder.join("endless.html");
    let name = file.display().to_string();
    let unbounded = u64::MAX.to_string();
    let child = started(&["run", &source, "--block", "8", "--watchdog", &unbounded, "--html", &name]);
    let start = Instant::now();
    let output = interrupted(child, || start.elapsed() > Duration::from_secs(3));
    let said = text(&output.stderr);
    assert_eq!(output.status.code(), Some(130), "{said}");
    assert!(said.contains(&format!("{name}: interrupted: the page is not written")), "{said}");
    assert!(!file.exists());
    // The command that the message suggests.
    let output = ran(&["run", &source, "--block", "8", "--watchdog", "1000", "--html", &name]);
    assert_eq!(output.status.code(), Some(1), "{}", text(&output.stderr));
    assert!(std::fs::read_to_string(&file).unwrap().contains("TIMEOUT"));
}

#[cfg(unix)]
#[test]
fn a_script_of_the_debugger_that_ctrl_c_ends_says_where_it_is() {
    let (folder, source) = folder("interrupted-debug", ENDLESS);
    let script = folder.join("script");
    std::fs::write(&script, "step\ncontinue\nstep\n").unwrap();
    let script = script.display().to_string();
    let unbounded = u64::MAX.to_string();
    let launch = ["debug", &source, "--block", "8", "--watchdog", &unbounded, "--batch", &script];
    let start = Instant::now();
    let output = interrupted(started(&launch), || start.elapsed() > Duration::from_secs(3));
    let (printed, said) = (text(&output.stdout), text(&output.stderr));
    assert_eq!(output.status.code(), Some(2), "{said}");
    let place = printed.split_once("interrupted\ngroup 0, after ").unwrap_or_else(|| panic!("{printed}")).1;
    assert!(place.contains(" instructions: 0x8, ") || place.contains(" instructions: 0x10, "), "{place}");
    assert!(said.contains(&format!("{script}: line 2: interrupted")), "{said}");
}

#[test]
fn a_trap_is_in_the_counts_and_in_the_trace_with_what_ran_before_it() {
    let (folder, source) = folder("trap", TRAPS);
    let output = ran(&["stats", &source, "--block", "8", "--json"]);
    assert_eq!(output.status.code(), Some(1));
    let counts: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert!(counts["trap"].as_str().unwrap().contains("TRAP"), "{}", counts["trap"]);
    let listed = counts["instructions"].as_array().unwrap();
    assert!(listed.iter().any(|counts| counts["diverged"] == 1 && counts["class"] == "flow"), "{listed:?}");
    assert_eq!(counts["stacks"][0]["high_water"], 2, "JOINAT and BRANCH");
    assert_eq!(counts["stacks"][0]["of"], "token stack");
    let file = folder.join("traps.rtrace");
    let name = file.display().to_string();
    let output = ran(&["trace", &source, "--block", "8", "-o", &name]);
    assert_eq!(output.status.code(), Some(1));
    let mut reader = reader(&file);
    assert!(reader.end().unwrap().outcome.trap.is_some());
    let executed: u64 = listed.iter().map(|counts| counts["executed"].as_u64().unwrap()).sum();
    assert_eq!(reader.end().unwrap().totals.instructions, executed);
    assert!(reader.records().all(|record| record.is_ok()));
}

#[test]
fn a_bound_leaves_a_file_that_can_be_read_and_says_from_where_records_are_missing() {
    let (folder, source) = folder("bound", ENDLESS);
    let name = folder.join("bound.rtrace").display().to_string();
    let launch = ["trace", &source, "--block", "8", "--watchdog", "400000"];
    let output = reconverge().args(launch).args(["-o", &name, "--limit", "100"]).output().unwrap();
    assert_eq!(output.status.code(), Some(1), "the watchdog");
    assert!(text(&output.stderr).contains("has reached 100 bytes"), "{}", text(&output.stderr));
    let output = ran(&["trace", &name, "--print", "--events", "trap"]);
    assert_eq!(output.status.code(), Some(0));
    assert!(text(&output.stderr).contains("records are missing from step"), "{}", text(&output.stderr));
}

#[test]
fn of_a_damaged_file_the_blocks_that_are_whole_are_printed() {
    let (folder, source) = folder("damaged", ENDLESS);
    let file = folder.join("damaged.rtrace");
    let name = file.display().to_string();
    ran(&["trace", &source, "--block", "8", "--watchdog", "400000", "-o", &name]);
    let blocks = reader(&file).blocks().to_vec();
    assert!(blocks.len() > 2, "{}", blocks.len());
    let mut bytes = std::fs::read(&file).unwrap();
    bytes[blocks[1].offset as usize + 20] ^= 0x55;
    std::fs::write(&file, bytes).unwrap();
    let output = ran(&["trace", &name, "--print", "--events", "jump"]);
    assert_eq!(output.status.code(), Some(2));
    let said = text(&output.stderr);
    assert!(said.contains(&format!("damaged at byte {}", blocks[1].offset)), "{said}");
    let first = |line: &str| line.split_whitespace().next().and_then(|step| step.parse::<u64>().ok());
    let steps: Vec<u64> = text(&output.stdout).lines().filter_map(first).collect();
    assert!(steps.iter().any(|step| *step < blocks[1].first_step));
    assert!(steps.iter().any(|step| *step >= blocks[2].first_step), "what is behind the damage");
    assert!(!steps.iter().any(|step| (blocks[1].first_step + 1..blocks[2].first_step).contains(step)));
}

#[test]
fn the_engines_have_no_difference() {
    let output =
        reconverge().arg("stats").args(COLLATZ).args(["--compare-engine", "reference"]).output().unwrap();
    assert_eq!(output.status.code(), Some(0), "{}", text(&output.stderr));
    assert!(text(&output.stdout).contains("no step differs"), "{}", text(&output.stdout));
}

#[test]
fn two_programs_and_two_traces_have_their_first_difference_side_by_side() {
    let other = std::fs::read_to_string(COLLATZ[0]).unwrap().replace("(lg $c0) bra odd", "(e $c0) bra odd");
    let (folder, source) = folder("compared", &other);
    let args = ["stats", COLLATZ[0], "--block", "12", "--buf", "steps=u32[12]", "--watchdog", "100000"];
    let output = reconverge().args(args).args(["--compare", &source, "--json"]).output().unwrap();
    assert_eq!(output.status.code(), Some(1), "{}", text(&output.stderr));
    let found: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(found["equal"], false);
    let first = &found["first_difference"];
    assert_eq!((&first["a"]["pc"], &first["b"]["pc"]), (&0x48.into(), &0x48.into()));
    assert_eq!(first["a"]["text"], "(lg $c0) bra L60");
    assert_eq!(first["b"]["text"], "(e $c0) bra L60");
    assert!(!found["counts"].as_array().unwrap().is_empty());
    let traces = [COLLATZ[0], &source].map(|program| {
        let file = folder.join(if program == source { "b.rtrace" } else { "a.rtrace" }).display().to_string();
        let launch = ["trace", program, "--block", "12", "--buf", "steps=u32[12]", "--watchdog", "100000"];
        reconverge().args(launch).args(["-o", &file]).output().unwrap();
        file
    });
    let output = ran(&["stats", &traces[0], "--compare", &traces[1], "--json"]);
    let same: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!((output.status.code(), &same["first_difference"]), (Some(1), first));
    let output = ran(&["stats", &traces[0], "--compare", &traces[0]]);
    assert_eq!(output.status.code(), Some(0), "{}", text(&output.stdout));
}

#[test]
fn lanes_that_do_not_take_part_have_the_letter_of_why() {
    let output = reconverge().arg("trace").args(COLLATZ).arg("--print").output().unwrap();
    let printed = text(&output.stdout);
    assert!(!printed.contains('\x1b'), "no colours where none are shown");
    let lanes = |step: &str| {
        let line = printed.lines().find(|line| {
            let mut words = line.split_whitespace();
            words.next() == Some(step) && words.nth(1).is_some_and(|lanes| lanes.len() == 12)
        });
        line.unwrap().split_whitespace().nth(2).unwrap().to_owned()
    };
    // After the lanes diverge at the `if`, the lanes of the other side are parked. Lane 0 has left the loop.
    assert_eq!(lanes("17"), "kAAAAAAAAAAA");
    assert_eq!(lanes("10"), "kpApApApApAp");
}

#[test]
fn accesses_to_memory_come_together_as_the_chip_has_it() {
    let transactions = |chip: &str| {
        let source =
            std::fs::read_to_string(COLLATZ[0]).unwrap().replace(".chip sm_10", &format!(".chip {chip}"));
        let (_, source) = folder(&format!("memory-{chip}"), &source);
        let output = ran(&["stats", &source, "--block", "32", "--buf", "steps=u32[33]", "--json"]);
        let counts: Value = serde_json::from_slice(&output.stdout).unwrap();
        let memory = &counts["memory"];
        (memory["requests"].as_u64().unwrap(), memory["transactions"].as_u64().unwrap())
    };
    assert_eq!(transactions("sm_10"), (2, 2));
    assert_eq!(transactions("sm_12"), (2, 2));
}

#[test]
fn stacks_are_counted_in_the_manual_s_unit_against_what_is_there() {
    let stacks = |args: &[&str]| {
        let output = reconverge().arg("stats").args(args).arg("--json").output().unwrap();
        assert_eq!(output.status.code(), Some(0), "{}", text(&output.stderr));
        let counts: Value = serde_json::from_slice(&output.stdout).unwrap();
        let stack = |stack: &Value| {
            let of = stack["of"].as_str().unwrap().to_owned();
            (of, stack["high_water"].as_u64().unwrap(), stack["room"].as_u64().unwrap())
        };
        counts["stacks"].as_array().unwrap().iter().map(stack).collect::<Vec<_>>()
    };
    let of = |rows: &[(&str, u64, u64)]| {
        rows.iter().map(|(of, used, room)| ((*of).to_owned(), *used, *room)).collect::<Vec<_>>()
    };
    // A push uses a subentry, and two more are added. An entry has four or eight subentries, so the result is one
    // entry.
    let clamp = ["../../docs/samples/clamp.s", "--input", "R0=3..7:f32"];
    assert_eq!(stacks(&clamp), of(&[("STACK_SIZE", 1, 1)]));
    let count = ["../../docs/samples/count.s", "--input", "temp0=0..4"];
    assert_eq!(
        stacks(&count),
        of(&[("branch counter", 1, 32), ("loop stack", 1, 4), ("address stack", 0, 4)])
    );
    // BREAK, JOINAT and BRANCH.
    assert_eq!(stacks(&COLLATZ)[0].1, 3);
}

#[test]
fn every_machine_says_why_a_lane_does_not_run() {
    let letters = |args: &[&str]| {
        let output = reconverge().arg("trace").args(args).arg("--print").output().unwrap();
        let printed = text(&output.stdout).to_owned();
        let lanes = printed.lines().filter_map(|line| line.split_whitespace().nth(2).map(str::to_owned));
        let lanes = lanes.filter(|lanes| lanes.chars().all(|letter| "Abkcpxu.".contains(letter)));
        lanes.collect::<Vec<_>>().concat()
    };
    let clamp = letters(&["../../docs/samples/clamp.s", "--input", "R0=3..7:f32"]);
    assert!(clamp.contains('b') && !clamp.contains('.'), "{clamp}");
    let count = letters(&["../../docs/samples/count.s", "--input", "temp0=0..4"]);
    assert!(count.contains('k') && count.contains('b') && !count.contains('.'), "{count}");
    let collatz = letters(&COLLATZ);
    assert!(collatz.contains('k') && collatz.contains('p') && !collatz.contains('.'), "{collatz}");
}

#[test]
fn programs_of_different_machines_have_their_counts_compared() {
    let (folder, _) = folder("machines", ENDLESS);
    let file = |name: &str| folder.join(name).display().to_string();
    let (a, b) = (file("a.rtrace"), file("b.rtrace"));
    let record = |args: &[&str], to: &str| {
        reconverge().arg("trace").args(args).args(["-o", to]).output().unwrap();
    };
    record(&["../../docs/samples/clamp.s", "--input", "R0=3..7:f32"], &a);
    record(&["../../docs/samples/count.s", "--input", "temp0=0..4"], &b);
    let output = ran(&["stats", &a, "--compare", &b]);
    assert_eq!(output.status.code(), Some(1));
    assert!(text(&output.stdout).contains("only their counts are compared"), "{}", text(&output.stdout));
}

/// A Parquet file starts and ends with the same four bytes.
#[test]
fn a_trace_is_written_as_a_table() {
    let (folder, _) = folder("parquet", ENDLESS);
    let file = folder.join("collatz.parquet");
    let output =
        reconverge().arg("trace").args(COLLATZ).args(["-o", &file.display().to_string()]).output().unwrap();
    assert_eq!(output.status.code(), Some(0), "{}", text(&output.stderr));
    let written = std::fs::read(&file).unwrap();
    assert!(written.starts_with(b"PAR1") && written.ends_with(b"PAR1") && written.len() > 1000);
}

/// Includes traces with a trap and traces truncated by their limit.
#[test]
fn the_bytes_of_a_trace_do_not_depend_on_the_engine() {
    let samples = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/samples");
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join("trace-bytes");
    std::fs::create_dir_all(&folder).unwrap();
    let launches = [
        "loop-break.r500",
        "loop-break.r700",
        "loop-break.tesla",
        "nested-if.r500",
        "nested-if.r700",
        "nested-if.tesla",
    ];
    for launch in launches {
        for more in [&[][..], &["--data"], &["--limit", "1"], &["--watchdog", "20"]] {
            let bytes = |engine: &str| {
                let file = folder.join("t.rtrace");
                let mut command = Command::new(env!("CARGO_BIN_EXE_reconverge"));
                let launch = format!("{samples}/{launch}.toml");
                command.args(["trace", &launch, "--engine", engine, "-o"]).arg(&file).args(more);
                let output = command.output().unwrap();
                assert!(output.status.code() < Some(2), "{}", String::from_utf8_lossy(&output.stderr));
                std::fs::read(file).unwrap()
            };
            let wanted = bytes("fast");
            for engine in ["reference", "compiled", "lockstep", "lockstep=reference,compiled"] {
                assert!(bytes(engine) == wanted, "{launch} {more:?} {engine}");
            }
        }
    }
}
