//! All front ends of the command use one vocabulary: for the same launch, `run`, `trace`, `stats`, `debug`, `cfg` and
//! the page have the same steps, lanes, registers and memory.

use std::collections::BTreeMap;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

use reconverge_testkit::ON_EACH_MACHINE;
use serde_json::Value;

/// Collatz on 12 Tesla threads: 214 steps.
const COLLATZ: [&str; 5] = ["docs/samples/collatz.s", "--block", "12", "--buf", "steps=u32[12]"];

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").canonicalize().unwrap()
}

fn reconverge(arguments: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_reconverge"));
    command.current_dir(root()).args(arguments);
    command
}

/// Runs a command that must end with status 0, and returns standard output.
#[track_caller]
fn ran(arguments: &[&str]) -> String {
    let Output { status, stdout, stderr } = reconverge(arguments).output().unwrap();
    assert_eq!(status.code(), Some(0), "{arguments:?}: {}", String::from_utf8_lossy(&stderr));
    String::from_utf8(stdout).unwrap()
}

/// Returns the arguments for a launch of the samples.
fn launch(name: &str) -> Vec<String> {
    vec![format!("docs/samples/{name}.toml")]
}

/// Returns the arguments of the compared launches.
fn launches() -> Vec<Vec<String>> {
    let collatz = COLLATZ.map(str::to_owned).to_vec();
    ON_EACH_MACHINE.iter().map(|name| launch(name)).chain([collatz]).collect()
}

fn with<'a>(command: &'a str, launch: &'a [String], options: &[&'a str]) -> Vec<&'a str> {
    let launch = launch.iter().map(String::as_str);
    std::iter::once(command).chain(launch).chain(options.iter().copied()).collect()
}

/// Splits the lines of `trace --print` into step, group and rest.
fn lines(printed: &str) -> Vec<(u64, usize, String)> {
    let line = |line: &str| {
        let mut words = line.split_whitespace();
        let (step, group) = (words.next()?.parse().ok()?, words.next()?.parse().ok()?);
        Some((step, group, words.collect::<Vec<_>>().join(" ")))
    };
    printed.lines().map(|text| line(text).unwrap_or_else(|| panic!("{text}"))).collect()
}

/// Whether a line of a printed trace is an event. The other lines are instructions.
fn is_event(text: &str) -> bool {
    let words = ["diverge:", "resume:", "reconverge:", "push ", "pop ", "jump to ", "trap:", "lane "];
    words.iter().any(|word| text.starts_with(word))
}

/// Returns the active lanes of an instruction's line, from its letters A, in the notation of lane sets.
fn active(text: &str) -> String {
    let letters = text.split_whitespace().next().unwrap();
    let lanes: Vec<usize> =
        letters.char_indices().filter(|(_, letter)| *letter == 'A').map(|(lane, _)| lane).collect();
    let mut ranges: Vec<(usize, usize)> = Vec::new();
    for lane in lanes {
        match ranges.last_mut() {
            Some((_, last)) if *last + 1 == lane => *last = lane,
            _ => ranges.push((lane, lane)),
        }
    }
    let range = |(first, last): &(usize, usize)| match first == last {
        true => first.to_string(),
        false => format!("{first}-{last}"),
    };
    ranges.iter().map(range).collect::<Vec<_>>().join(",")
}

/// Runs a script of the debugger.
#[track_caller]
fn debug(launch: &[String], script: &str) -> String {
    let mut command = reconverge(&with("debug", launch, &["--batch", "-"]));
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = command.spawn().unwrap();
    child.stdin.take().unwrap().write_all(script.as_bytes()).unwrap();
    let Output { status, stdout, stderr } = child.wait_with_output().unwrap();
    assert_eq!(status.code(), Some(0), "{}", String::from_utf8_lossy(&stderr));
    String::from_utf8(stdout).unwrap()
}

/// Returns the folder of one test.
fn folder(test: &str) -> PathBuf {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("vocabulary-{test}"));
    let _ = std::fs::remove_dir_all(&folder);
    std::fs::create_dir_all(&folder).unwrap();
    folder
}

/// Returns the run of the page that `run --html` writes.
fn page(launch: &[String]) -> Value {
    let file = folder("page").join("page.html");
    ran(&with("run", launch, &["--html", file.to_str().unwrap()]));
    let html = std::fs::read_to_string(file).unwrap();
    let (_, after) = html.split_once("<script id=\"runs\" type=\"application/json\">").unwrap();
    let runs: Value = serde_json::from_str(after.split_once("</script>").unwrap().0).unwrap();
    runs[0].clone()
}

/// Fault 3: registers have the machine's names in traces of all machines.
#[test]
fn fault_3_writes_in_a_trace_name_the_register() {
    for (name, wanted) in
        [("tesla", ["$c0", "$r1"]), ("r700", ["R1.x", "R0.x"]), ("r500", ["temp1.r", "temp0.r"])]
    {
        let printed = ran(&with("trace", &launch(&format!("nested-if.{name}")), &["--data", "--print"]));
        assert!(!printed.contains("register "), "{printed}");
        let writes = lines(&printed)
            .into_iter()
            .filter_map(|(.., text)| Some(text.split_once(" writes ")?.1.split_once(": 0x")?.0.to_owned()));
        let writes: Vec<String> = writes.collect();
        assert!(wanted.iter().any(|register| writes.iter().any(|of| of == register)), "{writes:?}");
    }
}

/// Fault 3: a trace file also contains the names, in its header.
#[test]
fn fault_3_a_trace_file_prints_the_names_as_well() {
    let file = folder("file").join("a.rtrace");
    let file = file.to_str().unwrap();
    let name = launch("nested-if.tesla");
    ran(&with("trace", &name, &["--data", "-o", file]));
    let events =
        |printed: String| lines(&printed).into_iter().filter(|(.., text)| is_event(text)).collect::<Vec<_>>();
    let direct = events(ran(&with("trace", &name, &["--data", "--print"])));
    assert_eq!(events(ran(&["trace", file, "--print"])), direct);
    assert!(direct.iter().any(|(.., text)| text.contains(" writes $c0: ")));
}

/// Fault 4: the other side of a branch resumes. Nothing reconverges in a program that does not reconverge its lanes.
#[test]
fn fault_4_the_side_that_waits_resumes_and_stats_agrees() {
    let name = launch("tutorial-tesla");
    let events: Vec<_> = lines(&ran(&with("trace", &name, &["--print"])));
    let texts: Vec<&str> = events.iter().map(|(.., text)| text.as_str()).collect();
    assert!(texts.iter().any(|text| text.starts_with("resume: 0,2,4,")), "{texts:?}");
    assert!(!texts.iter().any(|text| text.starts_with("reconverge:")), "{texts:?}");
    assert!(ran(&with("stats", &name, &[])).contains(" never "));
    // In the fixed program, the lanes reconverge.
    let fixed = launch("tutorial-tesla-fixed");
    let printed = ran(&with("trace", &fixed, &["--print"]));
    assert!(printed.contains(" reconverge: 0-31\n"), "{printed}");
    assert!(!ran(&with("stats", &fixed, &[])).contains(" never "));
}

/// Fault 4: if no lanes diverge, a JOINAT pops its entry without another event.
#[test]
fn fault_4_nothing_reconverges_where_nothing_diverged() {
    let source = folder("joinat").join("joinat.s");
    let program =
        ".isa tesla\n.chip sm_10\n.kernel k\n.reg 2\njoinat behind\nnop\nbehind:\njoin nop\nexit nop\n";
    std::fs::write(&source, program).unwrap();
    let printed = ran(&["trace", source.to_str().unwrap(), "--block", "11", "--print"]);
    let events: Vec<String> =
        lines(&printed).into_iter().map(|(.., text)| text).filter(|text| is_event(text)).collect();
    assert_eq!(events, ["push JOINAT", "pop JOINAT"]);
}

/// Fault 5: `run`, `stats`, `trace`, the page and the debugger count the same number of steps.
#[test]
fn fault_5_all_front_ends_count_the_same_steps() {
    let known = [("nested-if.tesla", 20), ("collatz", 214)];
    for launch in launches() {
        let answer: Value = serde_json::from_str(&ran(&with("run", &launch, &["--json"]))).unwrap();
        let steps = answer["group_instructions"].as_u64().unwrap();
        if let Some((_, wanted)) = known.iter().find(|(name, _)| launch[0].contains(name)) {
            assert_eq!(steps, *wanted, "{launch:?}");
        }
        let counts: Value = serde_json::from_str(&ran(&with("stats", &launch, &["--json"]))).unwrap();
        assert_eq!(counts["totals"]["instructions"], steps, "{launch:?}");
        let printed = lines(&ran(&with("trace", &launch, &["--print"])));
        let issued: Vec<u64> =
            printed.iter().filter(|(.., text)| !is_event(text)).map(|(step, ..)| *step).collect();
        assert_eq!(issued, (0..steps).collect::<Vec<_>>(), "{launch:?}");
        assert_eq!(page(&launch)["steps"]["count"], steps, "{launch:?}");
        // One step before the end, an instruction is next. The last step ends the launch.
        let before = debug(&launch, &format!("step {}\nwhere\n", steps - 1));
        assert!(before.contains(&format!("after {} instruction", steps - 1)), "{launch:?}: {before}");
        let after = debug(&launch, &format!("step {}\nwhere\n", steps + 5));
        assert!(!after.contains(&format!("after {}", steps + 1)), "{launch:?}: {after}");
        assert!(after.contains(&steps.to_string()), "{launch:?}: {after}");
    }
}

/// Fault 5: `goto N` stops before the instruction that the trace has at step N, with the same lanes.
#[test]
fn fault_5_the_debugger_is_at_a_step_where_the_trace_has_it() {
    for launch in launches() {
        let printed = lines(&ran(&with("trace", &launch, &["--print"])));
        let issues: Vec<_> = printed.iter().filter(|(.., text)| !is_event(text)).collect();
        let some: Vec<_> = issues.iter().step_by(issues.len() / 12 + 1).collect();
        let script: String = some.iter().map(|(step, ..)| format!("goto {step}\nwhere\n")).collect();
        let said = debug(&launch, &script);
        let places: Vec<&str> = said.lines().filter(|line| line.starts_with("group ")).collect();
        for (step, group, text) in some {
            let address = text.split_whitespace().nth(1).unwrap();
            let head = format!("group {group}, after {step} instruction");
            let here =
                places.iter().find(|line| line.starts_with(&head) && line.contains(&format!(": {address}")));
            assert!(here.is_some(), "{launch:?}: step {step} at {address}: {said}");
        }
    }
}

/// Fault 5: an event has the step of its instruction.
#[test]
fn fault_5_an_event_has_the_step_of_its_instruction() {
    for launch in launches() {
        let printed = lines(&ran(&with("trace", &launch, &["--data", "--print"])));
        let mut last: BTreeMap<usize, u64> = BTreeMap::new();
        for (step, group, text) in printed {
            match is_event(&text) {
                true => assert_eq!(last.get(&group), Some(&step), "{launch:?}: {text}"),
                false => drop(last.insert(group, step)),
            }
        }
    }
}

/// Lane sets have one notation: an event and the next step of the trace have the same lanes.
#[test]
fn sets_of_lanes_are_written_in_one_way() {
    for name in ["nested-if.tesla", "loop-break.r700", "loop-break.r500"] {
        let printed = lines(&ran(&with("trace", &launch(name), &["--print"])));
        let mut checked = 0;
        for (place, (_, group, event)) in printed.iter().enumerate() {
            let lanes = event.strip_prefix("resume: ").or_else(|| event.strip_prefix("reconverge: "));
            let Some(lanes) = lanes else { continue };
            let mut behind = printed[place..].iter().filter(|(_, of, text)| of == group && !is_event(text));
            let Some((.., next)) = behind.next() else { continue };
            assert_eq!(active(next), lanes, "{name}");
            checked += 1;
        }
        assert!(checked > 0, "{name}: {printed:?}");
    }
}

/// Fault 13: the trap of a launch file names the program's file and its line.
#[test]
fn fault_13_a_trap_of_a_launch_file_is_at_a_line_of_the_program() {
    let folder = folder("trap");
    let program = "; a comment\n.isa tesla\n.chip sm_10\n.kernel k\n.reg 2\n\nmov b32 $r0 0x8\nst b32 g14[$r0] $r0\nexit nop\n";
    std::fs::write(folder.join("carol.s"), program).unwrap();
    std::fs::write(folder.join("carol.toml"), "isa = \"tesla\"\nprogram = \"carol.s\"\nblock = [1]\n")
        .unwrap();
    let launch = folder.join("carol.toml");
    let output = reconverge(&["run", launch.to_str().unwrap()]).output().unwrap();
    let said = String::from_utf8(output.stderr).unwrap();
    assert_eq!(output.status.code(), Some(1), "{said}");
    assert!(said.contains("carol.s:8: st b32 g14[$r0] $r0"), "{said}");
    assert!(!said.contains("carol.toml:8"), "{said}");
}

/// Fault 24: loads and stores name their memory.
#[test]
fn fault_24_loads_and_stores_name_their_memory() {
    let printed = ran(&with("trace", &launch("nested-if.tesla"), &["--data", "--print"]));
    assert!(printed.contains("lane 0 loads s[0x10]\n"), "{printed}");
    assert!(printed.contains(" at g14[0x"), "{printed}");
    let accesses = |text: &str| text.contains(" loads ") || text.contains(" stores ");
    for (.., text) in lines(&printed).iter().filter(|(.., text)| is_event(text) && accesses(text)) {
        assert!(text.contains('['), "{text}");
    }
    let stepped = debug(&launch("nested-if.tesla"), "until 0x88\nstep\nevents\nstep\nstep\nevents\n");
    assert!(stepped.contains("lane 0 loads s[0x10]\n") || stepped.contains(" at g14[0x"), "{stepped}");
    assert!(!stepped.contains("loads 0x") && !stepped.contains("at 0x1"), "{stepped}");
}

/// Returns the blocks of a graph: executed lanes, waiting lanes, and lanes on the incoming edges.
fn blocks(dot: &str) -> BTreeMap<String, (Option<u64>, u64, u64)> {
    let number = |text: &str, word: &str| -> Option<u64> {
        let rest = text.split_once(word)?.1;
        rest.split(|letter: char| !letter.is_ascii_digit()).next()?.parse().ok()
    };
    let mut blocks: BTreeMap<String, (Option<u64>, u64, u64)> = BTreeMap::new();
    for line in dot.lines().map(str::trim) {
        if let Some((name, text)) = line.split_once(" [label=").filter(|_| line.starts_with('b')) {
            match name.split_once(" -> ") {
                None => {
                    let block = blocks.entry(name.to_owned()).or_default();
                    let entry = text.contains(", entry");
                    block.0 = number(text, ", lanes ").filter(|_| !entry);
                    block.1 = number(text, ", waiting ").unwrap_or(0);
                }
                Some((_, to)) => {
                    blocks.entry(to.to_owned()).or_default().2 += number(text, ": ").unwrap_or(0)
                }
            }
        }
    }
    blocks
}

/// Fault 27: the lanes on the incoming edges of a block are the lanes that execute it and the lanes that wait.
#[test]
fn fault_27_the_lanes_into_a_block_add_up() {
    for launch in launches() {
        let dot = ran(&with("cfg", &launch, &["--counts"]));
        let blocks = blocks(&dot);
        assert!(blocks.len() > 2, "{launch:?}: {dot}");
        for (name, (lanes, waiting, into)) in blocks {
            let Some(lanes) = lanes else { continue };
            assert_eq!(into, lanes + waiting, "{launch:?}, {name}: {dot}");
        }
    }
}

/// Counts by group and by block have the same sums.
#[test]
fn counts_by_group_and_block_add_up() {
    let name = launch("reduction");
    let counts: Value = serde_json::from_str(&ran(&with("stats", &name, &["--json"]))).unwrap();
    let all = counts["totals"]["instructions"].as_u64().unwrap();
    for list in ["groups", "blocks"] {
        let listed = counts[list].as_array().unwrap();
        let sum: u64 = listed.iter().map(|of| of["instructions"].as_u64().unwrap()).sum();
        assert_eq!(sum, all, "{list}");
    }
    assert_eq!(
        (counts["groups"].as_array().unwrap().len(), counts["blocks"].as_array().unwrap().len()),
        (2, 1)
    );
    let table = ran(&with("stats", &name, &["--by", "group"]));
    assert_eq!(table.lines().count(), 3, "{table}");
    let csv = ran(&with("stats", &name, &["--by", "block", "--form", "csv"]));
    assert!(csv.lines().nth(1).unwrap().starts_with(&format!("0,{all},")), "{csv}");
    let output = reconverge(&with("stats", &launch("nested-if.r700"), &["--by", "block"])).output().unwrap();
    assert_eq!(output.status.code(), Some(2));
    assert!(String::from_utf8_lossy(&output.stderr).contains("only Tesla kernels have blocks"));
}

/// Each lane loads a word in its own bank, then every second word, then all lanes load the same word.
#[test]
fn conflicts_of_banks_are_passes() {
    let source = folder("banks").join("banks.s");
    let program = ".isa tesla\n.chip sm_10\n.kernel k\n.reg 4\n.shared 600\nand b32 $r0 $r0 0xffff\n\
        shl $a1 $r0 0x2\nshl $a2 $r0 0x3\nst b32 s[$a1+0x40] $r0\nst b32 s[$a2+0x40] $r0\n\
        mov b32 $r3 b32 s[$a1+0x40]\nmov b32 $r3 b32 s[$a2+0x40]\nmov b32 $r3 b32 s[0x40]\nexit nop\n";
    std::fs::write(&source, program).unwrap();
    let counts = ran(&["stats", source.to_str().unwrap(), "--block", "32", "--json"]);
    let counts: Value = serde_json::from_str(&counts).unwrap();
    let instructions = counts["instructions"].as_array().unwrap().iter();
    let banks: Vec<(u64, u64)> = instructions
        .filter_map(|of| Some((of["banks"]["requests"].as_u64()?, of["banks"]["passes"].as_u64()?)))
        .collect();
    assert_eq!(banks, [(2, 2), (2, 4), (2, 2), (2, 4), (2, 2)]);
    assert_eq!((&counts["banks"]["passes"], &counts["banks"]["most"]), (&14.into(), &2.into()));
}
