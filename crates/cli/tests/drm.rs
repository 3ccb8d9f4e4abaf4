//! `reconverge drm` and `reconverge piglit`: what they refuse, what they say, and that Mesa's driver takes the emulated device.
//!
//! The library is no dependency of the command, so that these tests have cargo build it. Where Mesa's driver is not
//! installed, the tests that start a program say so and pass.

#![cfg(target_os = "linux")]

use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::sync::LazyLock;

/// The library, built in the profile of the command.
static LIBRARY: LazyLock<PathBuf> = LazyLock::new(|| {
    let folder = Path::new(env!("CARGO_BIN_EXE_reconverge")).parent().unwrap();
    let mut cargo = Command::new(env!("CARGO"));
    cargo.args(["build", "--quiet", "-p", "reconverge-drm", "--target-dir"]).arg(folder.parent().unwrap());
    if folder.ends_with("release") {
        cargo.arg("--release");
    }
    assert!(cargo.current_dir(env!("CARGO_MANIFEST_DIR")).status().unwrap().success());
    folder.join("libreconverge_drm.so")
});

/// `reconverge drm` in surroundings without the variables that it reads.
fn drm(arguments: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_reconverge"));
    for name in ["RECONVERGE_DRM_REPORT", "LD_PRELOAD", "LIBGL_DRIVERS_PATH", "EGL_PLATFORM"] {
        command.env_remove(name);
    }
    command.env("RECONVERGE_DRM_LIBRARY", &*LIBRARY).arg("drm").args(arguments).stdin(Stdio::null());
    command
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8(bytes.to_vec()).unwrap()
}

/// The exit status is 2 and the message has these words.
#[track_caller]
fn refuses(output: &Output, words: &[&str]) {
    let said = text(&output.stderr);
    assert_eq!(output.status.code(), Some(2), "{said}");
    for word in words {
        assert!(said.contains(word), "{word}: {said}");
    }
}

/// Whether Mesa's driver is installed; says so if not.
fn has_driver() -> bool {
    let folders = std::fs::read_dir("/usr/lib").into_iter().flatten().flatten().map(|entry| entry.path());
    let found = folders
        .chain(["/usr/lib".into(), "/usr/lib64".into()])
        .any(|folder| folder.join("dri/r600_dri.so").exists());
    if !found {
        println!(
            "skipped: r600_dri.so is not installed: apt-get install libegl1 libgl1-mesa-dri libdrm-radeon1"
        );
    }
    found
}

#[test]
fn chips_that_are_not_emulated_are_refused_by_name() {
    let refused = |chip: &str| drm(&["--chip", chip, "--", "true"]).output().unwrap();
    refuses(&refused("rv7700"), &["--chip rv7700: no such chip", "did you mean `rv770`?", "rs880"]);
    refuses(&refused("9441"), &["--chip 9441: no such chip"]);
    refuses(&refused("G92"), &["--chip G92: not yet", "tesla"]);
    refuses(&refused("r580"), &["--chip r580: not yet", "r500"]);
}

#[test]
fn a_command_is_needed() {
    refuses(&drm(&["--chip", "rv770"]).output().unwrap(), &["<COMMAND>"]);
    refuses(&drm(&["--chip", "rv770", "--"]).output().unwrap(), &["<COMMAND>"]);
}

#[test]
fn draws_are_not_captured_yet() {
    let output = drm(&["--chip", "rv770", "--capture", "here", "--", "true"]).output().unwrap();
    refuses(&output, &["--capture: not yet"]);
}

#[test]
fn a_library_that_is_not_there_is_named_with_what_builds_it() {
    let mut command = drm(&["--chip", "rv770", "--", "true"]);
    let output = command.env("RECONVERGE_DRM_LIBRARY", "/nonexistent").output().unwrap();
    refuses(
        &output,
        &["RECONVERGE_DRM_LIBRARY names /nonexistent", "cargo build --release -p reconverge-drm"],
    );
}

#[test]
fn a_file_that_is_no_library_is_named() {
    let mut command = drm(&["--chip", "rv770", "--", "true"]);
    let output = command.env("RECONVERGE_DRM_LIBRARY", file!()).current_dir(root()).output().unwrap();
    refuses(&output, &["tests/drm.rs was loaded into no program", "cannot be preloaded"]);
}

/// The folder that `file!()` is relative to.
fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

#[test]
fn a_driver_that_is_not_there_is_named_with_the_packages() {
    let mut command = drm(&["--chip", "rv770", "--", "true"]);
    let output = command.env("LIBGL_DRIVERS_PATH", "/nonexistent").output().unwrap();
    refuses(&output, &["AMD RV770", "r600_dri.so", "apt-get install libegl1 libgl1-mesa-dri libdrm-radeon1"]);
}

/// The driver is there but does not get the device: what draws in its place is named, and the program is not run.
#[test]
fn a_software_renderer_is_refused() {
    if !has_driver() {
        return;
    }
    let vendors = Path::new(env!("CARGO_TARGET_TMPDIR")).join("drm-other");
    let _ = std::fs::remove_dir_all(&vendors);
    std::fs::create_dir_all(&vendors).unwrap();
    let driver = ["/usr/lib/x86_64-linux-gnu", "/usr/lib/aarch64-linux-gnu", "/usr/lib64", "/usr/lib"];
    let driver = driver
        .iter()
        .map(|folder| Path::new(folder).join("dri"))
        .find(|folder| folder.join("swrast_dri.so").exists());
    let Some(driver) = driver else {
        println!("skipped: swrast_dri.so is not installed");
        return;
    };
    // A driver of this name that is no driver.
    std::fs::write(vendors.join("r600_dri.so"), "").unwrap();
    for name in ["swrast_dri.so", "kms_swrast_dri.so"] {
        std::os::unix::fs::symlink(driver.join(name), vendors.join(name)).unwrap();
    }
    let marker = vendors.join("was-run");
    let mut command = drm(&["--chip", "rv770", "--", "touch", marker.to_str().unwrap()]);
    let output = command.env("LIBGL_DRIVERS_PATH", &vendors).output().unwrap();
    refuses(&output, &["not with AMD RV770", "LIBGL_DEBUG=verbose"]);
    assert!(!marker.exists());
}

#[test]
fn a_program_that_cannot_be_started_is_named() {
    if has_driver() {
        let output = drm(&["--chip", "rv770", "--", "/nonexistent/program"]).output().unwrap();
        refuses(&output, &["/nonexistent/program: No such file"]);
    }
}

#[test]
fn a_program_without_opengl_is_run_with_a_warning() {
    if !has_driver() {
        return;
    }
    let warning = "warning: /bin/true: the program never opened the emulated device";
    let output = drm(&["--chip", "rv770", "--", "/bin/true"]).output().unwrap();
    assert_eq!((output.status.code(), text(&output.stderr).trim()), (Some(0), warning));
    let output = drm(&["--quiet", "--chip", "rv770", "--", "/bin/true"]).output().unwrap();
    assert_eq!((output.status.code(), text(&output.stderr).trim()), (Some(0), ""));
}

#[test]
fn the_exit_status_is_that_of_the_program() {
    if !has_driver() {
        return;
    }
    let output = drm(&["--chip", "rv770", "--", "sh", "-c", "echo out; exit 7"]).output().unwrap();
    assert_eq!((output.status.code(), text(&output.stdout).trim()), (Some(7), "out"));
    let output = drm(&["--chip", "rv770", "--", "sh", "-c", "kill -SEGV $$"]).output().unwrap();
    assert_eq!(output.status.code(), Some(128 + 11));
    assert!(
        text(&output.stderr).contains("error: sh: ended by signal 11 (SIGSEGV)"),
        "{}",
        text(&output.stderr)
    );
}

/// Every chip has its driver start on it. The program is the probe: it opens the device and names its renderer.
#[test]
fn every_chip_is_taken_by_its_driver() {
    if !has_driver() {
        return;
    }
    for board in reconverge_gpu::device::BOARDS {
        let folder = Path::new(env!("CARGO_TARGET_TMPDIR"));
        let report = folder.join(format!("drm-{}.jsonl", board.chip));
        let _ = std::fs::remove_file(&report);
        let arguments =
            ["--chip", board.chip, "--execute", "none", "--", "env", "RECONVERGE_DRM_PROBE=1", "true"];
        let output = drm(&arguments).env("RECONVERGE_DRM_REPORT", &report).output().unwrap();
        assert_eq!((output.status.code(), &*text(&output.stderr)), (Some(0), ""), "{}", board.chip);
        let answer: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
        let renderer = answer["renderer"].as_str().unwrap();
        let rest = renderer.strip_prefix(&board.renderer());
        assert!(rest.is_some_and(|rest| rest.is_empty() || rest.starts_with(' ')), "{renderer}");

        let lines = std::fs::read_to_string(&report).unwrap();
        let last: serde_json::Value = serde_json::from_str(lines.lines().last().unwrap()).unwrap();
        assert_eq!(last["chip"], board.chip);
        assert_eq!((&last["executes"], &last["resets"]), (&false.into(), &0.into()), "{last}");
    }
}

/// A signal that only the command gets ends the program too.
#[test]
fn an_interrupt_ends_the_program() {
    if !has_driver() {
        return;
    }
    for (signal, status) in [("INT", 130), ("TERM", 143)] {
        let mut command = drm(&["--chip", "rv770", "--", "sh", "-c", "echo started; exec sleep 60"]);
        let mut child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        let mut line = String::new();
        BufReader::new(child.stdout.as_mut().unwrap()).read_line(&mut line).unwrap();
        assert_eq!(line, "started\n");
        let sent = Command::new("kill").args(["-s", signal, &child.id().to_string()]).status();
        assert!(sent.unwrap().success());
        let output = child.wait_with_output().unwrap();
        assert_eq!(output.status.code(), Some(status), "{}", text(&output.stderr));
        assert!(text(&output.stderr).contains(&format!("(SIG{signal})")), "{}", text(&output.stderr));
    }
}

/// `reconverge piglit` on a folder of piglit's shape, whose runner does what the tests' texts say.
struct Piglit(PathBuf);

impl Piglit {
    fn new(name: &str, tests: &[(&str, &str)]) -> Piglit {
        let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join(name);
        let _ = std::fs::remove_dir_all(&folder);
        std::fs::create_dir_all(folder.join("bin")).unwrap();
        let runner = folder.join("bin/shader_runner");
        std::fs::write(&runner, "#!/bin/sh\n. \"$1\"\n").unwrap();
        let mut permissions = std::fs::metadata(&runner).unwrap().permissions();
        std::os::unix::fs::PermissionsExt::set_mode(&mut permissions, 0o755);
        std::fs::set_permissions(&runner, permissions).unwrap();
        for (test, text) in tests {
            let file = folder.join("tests/spec/glsl-1.10/execution").join(format!("{test}.shader_test"));
            std::fs::create_dir_all(file.parent().unwrap()).unwrap();
            std::fs::write(file, text).unwrap();
        }
        Piglit(folder)
    }

    fn run(&self, arguments: &[&str]) -> Output {
        let mut command = Command::new(env!("CARGO_BIN_EXE_reconverge"));
        command.env("RECONVERGE_DRM_LIBRARY", &*LIBRARY).args(["piglit", "--chip", "rv770", "--piglit"]);
        command.arg(&self.0).args(arguments).stdin(Stdio::null()).output().unwrap()
    }

    fn json(&self, arguments: &[&str]) -> serde_json::Value {
        let output = self.run(&[arguments, &["--json"]].concat());
        serde_json::from_slice(&output.stdout).unwrap_or_else(|_| panic!("{}", text(&output.stderr)))
    }
}

const PASS: &str = "echo 'PIGLIT: {\"result\": \"pass\" }'";
const FAIL: &str = "echo Probe color at 1,1\necho 'PIGLIT: {\"result\": \"fail\" }'";

#[test]
fn a_piglit_that_is_not_there_is_named_with_what_installs_it() {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join("no-piglit");
    refuses(&Piglit(folder).run(&[]), &["no-piglit: bin/shader_runner is not there"]);
    let none = Piglit::new("piglit-empty", &[]);
    refuses(&none.run(&[]), &["no test is left of the 0"]);
}

#[test]
fn tests_end_in_every_way_and_are_counted() {
    if !has_driver() {
        return;
    }
    let all = [
        ("A/passes", PASS),
        ("fails", FAIL),
        ("crashes", "kill -11 $$"),
        ("says-nothing", "true"),
        ("hangs", "exec sleep 60"),
        ("skips", "echo 'PIGLIT: {\"result\": \"skip\" }'"),
        ("warns", "echo 'PIGLIT: {\"result\": \"warn\" }'"),
    ];
    let piglit = Piglit::new("piglit-ways", &all);
    let found = piglit.json(&["--timeout", "1"]);
    let counts = ["total", "pass", "fail", "crash", "timeout", "skip", "warn"]
        .map(|name| found[name].as_u64().unwrap());
    assert_eq!(counts, [7, 1, 1, 2, 1, 1, 1]);
    assert_eq!(found["control"]["pass"], 1);
    assert_eq!(found["undrawn"], serde_json::json!(["spec@glsl-1.10@execution@a@passes"]));
    let why = |test: &str| {
        let test = format!("spec@glsl-1.10@execution@{test}");
        let failures = found["failures"].as_array().unwrap();
        failures.iter().find(|failure| failure["test"] == test).unwrap()["why"].as_str().unwrap().to_owned()
    };
    assert_eq!(
        (why("fails"), why("crashes")),
        ("Probe color at 1,1".to_owned(), "ended by signal 11".to_owned())
    );
}

#[test]
fn a_baseline_lists_and_a_folder_that_is_gone_on_with() {
    if !has_driver() {
        return;
    }
    let piglit = Piglit::new("piglit-lists", &[("one", PASS), ("two", FAIL)]);
    let (output, baseline) = (piglit.0.join("output"), piglit.0.join("baseline"));
    let [output, list] = [&output, &baseline].map(|path| path.to_str().unwrap());
    std::fs::write(&baseline, "spec@glsl-1.10@execution@two,Fail\n").unwrap();
    let run = piglit.run(&["--baseline", list, "--output", output]);
    assert_eq!(run.status.code(), Some(0), "{}", text(&run.stderr));
    let written = std::fs::read_to_string(piglit.0.join("output/failures.csv")).unwrap();
    assert_eq!(written, "spec@glsl-1.10@execution@two,Fail\n");
    assert!(std::fs::read_to_string(piglit.0.join("output/junit.xml")).unwrap().contains("failures=\"1\""));
    // What the folder has is not run again, though the test would pass now.
    std::fs::write(piglit.0.join("tests/spec/glsl-1.10/execution/two.shader_test"), PASS).unwrap();
    let again = piglit.json(&["--baseline", list, "--output", output, "--resume"]);
    assert_eq!((&again["fail"], &again["unexpected"]), (&1.into(), &0.into()));
    let fixed = piglit.run(&["--baseline", list]);
    assert_eq!(fixed.status.code(), Some(1));
    assert!(text(&fixed.stdout).contains("PASSES   spec@glsl-1.10@execution@two"));
    // A failure that is in no baseline.
    std::fs::write(piglit.0.join("tests/spec/glsl-1.10/execution/one.shader_test"), FAIL).unwrap();
    assert_eq!(piglit.run(&["--tests", "one"]).status.code(), Some(1));
}
