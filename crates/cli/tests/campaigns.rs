//! Campaigns with several processes in one folder, and damaged shards.
#![cfg(unix)]

use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::time::{Duration, Instant};

fn folder(name: &str, campaign: &str) -> PathBuf {
    let path = Path::new(env!("CARGO_TARGET_TMPDIR")).join("campaigns-cli").join(name);
    let _ = std::fs::remove_dir_all(&path);
    std::fs::create_dir_all(&path).unwrap();
    std::fs::write(path.join("c.toml"), campaign).unwrap();
    path
}

fn command(folder: &Path, arguments: &str) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_reconverge"));
    command.current_dir(folder).args(["campaign", "c.toml"]).args(arguments.split_whitespace());
    command
}

fn run(folder: &Path, arguments: &str) -> Output {
    command(folder, arguments).output().unwrap()
}

fn spawn(folder: &Path, arguments: &str) -> Child {
    command(folder, arguments).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap()
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

/// Returns the files of a folder with their contents, including hidden files.
fn contents(folder: &Path) -> Vec<(String, Vec<u8>)> {
    let entries = std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap());
    let mut files: Vec<_> = entries
        .map(|entry| (entry.file_name().into_string().unwrap(), std::fs::read(entry.path()).unwrap()))
        .collect();
    files.sort();
    files
}

const SMALL: &str =
    "kernel = \"mandel\"\nisa = \"r500\"\nlanes = 16\ninjections = 40\nshard = 10\nseed = 7\n";

/// Bits of pages, footer and checksum flip. No command ends with status 0 and other numbers, and none panics.
#[test]
fn a_flipped_bit_is_named_and_the_shard_is_run_again_with_the_same_bytes() {
    let folder = folder("flipped", SMALL);
    assert_eq!(run(&folder, "-o results").status.code(), Some(0));
    let answer = run(&folder, "-o results --summary --json").stdout;
    let whole = contents(&folder.join("results"));
    let (name, bytes) = &whole[2];
    let shard = folder.join("results").join(name);
    for place in
        [0, 4, 100, bytes.len() / 2, bytes.len() - 400, bytes.len() - 60, bytes.len() - 7, bytes.len() - 1]
    {
        let mut flipped = bytes.clone();
        flipped[place] ^= 1 << (place % 8);
        for content in [&flipped[..], &bytes[..place]] {
            for arguments in ["--summary", "--summary --json", "--recheck 40"] {
                std::fs::write(&shard, content).unwrap();
                let output = run(&folder, &format!("-o results {arguments}"));
                let message = text(&output.stderr);
                assert_eq!(output.status.code(), Some(2), "{place}: {message}");
                assert!(
                    message.contains(name) && message.contains("the file is damaged"),
                    "{place}: {message}"
                );
            }
            let output = run(&folder, "-o results --json");
            let message = text(&output.stderr);
            assert_eq!(output.status.code(), Some(0), "{place}: {message}");
            assert!(
                message.contains(name) && message.contains("the shard is run again"),
                "{place}: {message}"
            );
            let found: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
            assert_eq!(found["damaged"], serde_json::json!([name]));
            assert!(contents(&folder.join("results")) == whole, "{place}");
        }
    }
    assert_eq!(run(&folder, "-o results --summary --json").stdout, answer);
}

#[test]
fn parts_of_a_campaign_are_together_the_whole_and_wrong_parts_are_usage_errors() {
    let folder = folder("parts", SMALL);
    for (part, files) in [("1/3", 2), ("3/3", 3), ("2/3", 4), ("9/9", 4)] {
        let output = run(&folder, &format!("-o parts --shard {part} --json"));
        assert_eq!(output.status.code(), Some(0), "{}", text(&output.stderr));
        let found: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
        assert_eq!(found["summary"]["finished"], serde_json::json!(10 * files));
        assert_eq!(contents(&folder.join("parts")).len(), files);
    }
    run(&folder, "-o whole");
    assert!(contents(&folder.join("parts")) == contents(&folder.join("whole")));
    for part in ["0/3", "4/3", "1/0", "1", "a/b", "-1/3", "1/3/5", "1/"] {
        let output = run(&folder, &format!("-o parts --shard={part}"));
        assert_eq!(output.status.code(), Some(2), "{part}");
        assert!(text(&output.stderr).contains("expected K/N with K from 1 to N"), "{part}");
    }
    assert_eq!(run(&folder, "-o parts --shard 1/2 --summary").status.code(), Some(2));
}

#[test]
fn processes_that_share_a_folder_divide_it_and_leave_the_bytes_of_one() {
    let folder = folder("shared", &SMALL.replace("shard = 10", "shard = 1"));
    let children =
        ["", "--jobs 1", "--shard 1/2", "--jobs 3"].map(|more| spawn(&folder, &format!("-o both {more}")));
    for child in children {
        let output = child.wait_with_output().unwrap();
        assert_eq!(output.status.code(), Some(0), "{}", text(&output.stderr));
    }
    assert_eq!(run(&folder, "-o alone").status.code(), Some(0));
    assert!(contents(&folder.join("both")) == contents(&folder.join("alone")));
}

/// A process waits for the shard of another one, and takes over the shard when the other is killed.
#[test]
fn the_shards_of_a_killed_process_are_run_by_another_that_waits_for_them() {
    let long =
        "kernel = \"collatz\"\nisa = \"r700\"\nlanes = 512\ninjections = 3000\nshard = 3000\nseed = 7\n";
    let folder = folder("killed", long);
    let mut first = spawn(&folder, "-o results --jobs 1");
    let claimed = || {
        let entries = std::fs::read_dir(folder.join("results")).into_iter().flatten().flatten();
        entries.filter(|entry| entry.file_name().to_string_lossy().ends_with(".claim")).count() == 1
    };
    let start = Instant::now();
    while !claimed() {
        assert!(start.elapsed() < Duration::from_secs(60) && first.try_wait().unwrap().is_none());
        std::thread::sleep(Duration::from_millis(1));
    }
    let second = spawn(&folder, "-o results --jobs 1");
    std::thread::sleep(Duration::from_millis(700));
    first.kill().unwrap();
    let number = first.id();
    let output = second.wait_with_output().unwrap();
    // Until this call, the first process was a zombie.
    first.wait().unwrap();
    let message = text(&output.stderr);
    assert_eq!(output.status.code(), Some(0), "{message}");
    assert!(
        message.is_empty() || message.contains(&format!("waiting for 1 shard of process {number} on ")),
        "{message}"
    );
    assert!(text(&output.stdout).starts_with("3000 of 3000 experiments"));
    assert_eq!(contents(&folder.join("results")).len(), 1);
}

/// Two processes on one folder run every experiment once, because they read the list of shards again while they run.
#[test]
fn processes_on_one_folder_run_every_experiment_once() {
    let folder = folder("once", &SMALL.replace("shard = 10", "shard = 2"));
    let children = ["--jobs 1", "--jobs 2"].map(|more| spawn(&folder, &format!("-o both --json {more}")));
    let ran = children.map(|child| {
        let output = child.wait_with_output().unwrap();
        assert_eq!(output.status.code(), Some(0), "{}", text(&output.stderr));
        let answer: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
        answer["ran"].as_u64().unwrap()
    });
    assert_eq!(ran.iter().sum::<u64>(), 40, "{ran:?}");
    let again = run(&folder, "-o both --json").stdout;
    let again: serde_json::Value = serde_json::from_slice(&again).unwrap();
    assert_eq!(again["ran"].as_u64(), Some(0));
}

/// Two hits in two experiments must not be printed as 100 % with half an interval on each side.
#[test]
fn intervals_are_printed_with_both_ends() {
    let small =
        "kernel = \"mandel\"\nisa = \"r500\"\nlanes = 16\ninjections = 2\nsites = [\"register\"]\nseed = 7\n";
    let folder = folder("intervals", small);
    let output = text(&run(&folder, "-o results").stdout);
    assert!(!output.contains('±'), "{output}");
    assert!(
        output.contains("shares in percent, with their 95.0 % confidence intervals [low, high] (Wilson)"),
        "{output}"
    );
    let shares: Vec<&str> =
        output.lines().find(|line| line.starts_with("register")).unwrap().split("  ").collect();
    let known = ["100.00 [34.24, 100.00]", "0.00 [0.00, 65.76]", "50.00 [9.45, 90.55]"];
    assert!(shares.iter().any(|share| known.contains(&share.trim())), "{output}");
    let json = run(&folder, "-o results --summary --json").stdout;
    let json: serde_json::Value = serde_json::from_slice(&json).unwrap();
    let interval = json["summary"]["sites"][0]["outcomes"][0]["interval"].as_array().unwrap();
    assert_eq!(interval.len(), 2);
}

/// For an existing folder without results, the summary is an error instead of an empty table with status 0.
#[test]
fn the_summary_of_a_folder_without_results_is_an_error() {
    let folder = folder("empty-folder", SMALL);
    std::fs::create_dir(folder.join("other")).unwrap();
    std::fs::write(folder.join("other/notes.txt"), "").unwrap();
    for arguments in ["-o other --summary", "-o other --summary --json", "-o other --recheck 3"] {
        let output = run(&folder, arguments);
        assert_eq!(output.status.code(), Some(2), "{arguments}");
        assert!(!text(&output.stdout).contains("summary\":"), "{arguments}");
        let message = text(&output.stderr);
        assert!(message.contains("other: ") && message.contains("run the campaign"), "{message}");
    }
}

/// The note names the shards that the other process currently holds, not all shards that it ever held. Each process
/// ends when the other one has finished.
#[test]
fn a_process_waits_for_the_shards_that_another_holds_and_ends_with_it() {
    let many = "kernel = \"collatz\"\nisa = \"r700\"\nlanes = 512\ninjections = 1200\nshard = 60\nseed = 7\n";
    let folder = folder("waits", many);
    let waiting = |child: std::process::Child| {
        std::thread::spawn(move || {
            let output = child.wait_with_output().unwrap();
            (output, Instant::now())
        })
    };
    let children = ["--jobs 1", "--jobs 1"].map(|more| waiting(spawn(&folder, &format!("-o both {more}"))));
    let ended = children.map(|child| child.join().unwrap());
    let times = ended.each_ref().map(|(_, time)| *time);
    for (output, _) in &ended {
        let message = text(&output.stderr);
        assert_eq!(output.status.code(), Some(0), "{message}");
        // Each process has one shard at a time.
        assert!(message.is_empty() || message.contains("waiting for 1 shard of process "), "{message}");
    }
    let apart = times[0].max(times[1]) - times[0].min(times[1]);
    assert!(apart < Duration::from_millis(1500), "{apart:?}");
}

#[test]
fn the_summary_of_a_folder_that_does_not_exist_is_an_error() {
    let folder = folder("no-folder", SMALL);
    for arguments in ["-o typo --summary", "-o typo --summary --json", "-o typo --recheck 3"] {
        let output = run(&folder, arguments);
        assert_eq!(output.status.code(), Some(2), "{arguments}");
        assert!(
            text(&output.stderr).contains("typo: folder of results not found"),
            "{}",
            text(&output.stderr)
        );
    }
}

/// A replay is shown as a description, as a page with two runs, as two different traces, and in the debugger.
#[test]
fn a_replay_is_shown_in_words_in_a_page_in_traces_and_in_the_debugger() {
    let listed = "kernel = \"collatz\"\nisa = \"tesla\"\nlanes = 256\n\
        [[fault]]\nsite = \"register\"\nstep = 40\nlane = 6\nbit = 4\nplace = \"$r3\"\n";
    let folder = folder("replay", listed);
    let output = run(&folder, "--replay 0 --html page.html --trace fault.rtrace");
    let words = text(&output.stdout);
    assert_eq!(output.status.code(), Some(0), "{words}{}", text(&output.stderr));
    assert!(words.starts_with("experiment 0: register, flip\n  before step 40, group "), "{words}");
    assert!(words.contains("$r3 of lane 6: ") && words.contains("\n  sdc"), "{words}");
    assert!(words.contains("out: ") && words.contains(": expected "), "{words}");
    let page = std::fs::read_to_string(folder.join("page.html")).unwrap();
    assert!(page.contains("c.toml, golden run") && page.contains("c.toml, experiment 0"));
    let [fault, golden] =
        ["fault.rtrace", "fault.golden.rtrace"].map(|name| std::fs::read(folder.join(name)).unwrap());
    assert_ne!(fault, golden);
    let mut debugger = command(&folder, "--replay 0 --debug");
    let mut child =
        debugger.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    std::io::Write::write_all(&mut child.stdin.take().unwrap(), b"goto 41\nquit\n").unwrap();
    let output = child.wait_with_output().unwrap();
    assert_eq!(output.status.code(), Some(0), "{}", text(&output.stderr));
    assert!(text(&output.stdout).contains("(debug) goto 41"));
    let looked = |arguments: &[&str]| {
        let mut command = Command::new(env!("CARGO_BIN_EXE_reconverge"));
        command.current_dir(&folder).args(arguments).output().unwrap()
    };
    let traced = looked(&["trace", "c.toml", "--experiment", "0", "--print"]);
    assert!(traced.status.success() && !text(&traced.stdout).contains(" writes "));
    let refused = looked(&["stats", "c.toml", "--experiment", "0", "--watchdog", "3"]);
    assert!(text(&refused.stderr).contains(
        "--watchdog: not allowed with --experiment, because the campaign file contains this setting"
    ));
    let output = run(&folder, "--replay 9");
    assert_eq!(output.status.code(), Some(2));
    assert!(text(&output.stderr).contains("experiment 9 does not exist: expected 0 to 0"));
}
