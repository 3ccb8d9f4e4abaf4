//! Campaigns of several processes in one folder, and shards that are damaged.
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

/// The files of a folder with their contents, hidden ones too.
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

/// Changes pages, footer and checksum: no status 0 with other numbers, and no panic.
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
        assert!(text(&output.stderr).contains("K/N with K from 1 to N fits here"), "{part}");
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

/// One process waits for the shard of another, and takes it over when that one is killed.
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
    // The first was a zombie until here.
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
