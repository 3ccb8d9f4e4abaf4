//! Tests of `reconverge piglit`: its verdicts on the exit status and the output of tests.

#![cfg(target_os = "linux")]

mod driver;

use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

use driver::{LIBRARY, has_driver, refuses, text};

/// A shader_runner whose tests are shell scripts. They call `result` with their verdict. Several tests share a
/// process and its variables. The program prints the lines of the real one, and adds its number of tests to the file
/// `processes`.
const RUNNER: &str = r#"#!/bin/sh
result() {
    if [ -n "$several" ]; then line="{\"subtest\": {\"$name\" : \"$1\"}}"; else line="{\"result\": \"$1\" }"; fi
    echo "PIGLIT: $line"
}
tests=0
for argument; do
    case $argument in -report-subtests) several=yes;; -*) ;; *) tests=$((tests + 1));; esac
done
echo "$tests" >> "$PIGLIT_SOURCE_DIR/processes"
number=0
for file; do
    case $file in -*) continue;; esac
    name=$(basename "$file" .shader_test)
    number=$((number + 1))
    [ -z "$several" ] || echo "PIGLIT TEST: $number - $name" >&2
    . "$file"
done
[ -z "$at_end" ] || kill -11 $$
"#;

/// A folder with piglit's layout, on which `reconverge piglit` runs.
struct Piglit(PathBuf);

impl Piglit {
    fn new(name: &str, tests: &[(&str, &str)]) -> Piglit {
        let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join(name);
        let _ = std::fs::remove_dir_all(&folder);
        std::fs::create_dir_all(folder.join("bin")).unwrap();
        let runner = folder.join("bin/shader_runner");
        std::fs::write(&runner, RUNNER).unwrap();
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

    fn command(&self, arguments: &[&str]) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_reconverge"));
        command.env("RECONVERGE_DRM_LIBRARY", &*LIBRARY).args(["piglit", "--chip", "rv770", "--piglit"]);
        command.arg(&self.0).args(arguments).stdin(Stdio::null());
        command
    }

    fn run(&self, arguments: &[&str]) -> Output {
        self.command(arguments).output().unwrap()
    }

    /// Returns the number of tests of each process so far, in the order of their starts.
    fn processes(&self) -> Vec<usize> {
        let lines = std::fs::read_to_string(self.0.join("processes")).unwrap();
        lines.lines().map(|line| line.parse().unwrap()).collect()
    }

    fn forget_processes(&self) {
        std::fs::remove_file(self.0.join("processes")).unwrap();
    }

    fn json(&self, arguments: &[&str]) -> serde_json::Value {
        let output = self.run(&[arguments, &["--json"]].concat());
        serde_json::from_slice(&output.stdout).unwrap_or_else(|_| panic!("{}", text(&output.stderr)))
    }
}

const PASS: &str = "result pass";
const FAIL: &str = "echo Probe color at 1,1\necho '  Observed: 0 0 0'\nresult fail";
/// Passes if the chip executes; otherwise observes zeros.
const DRAWS: &str =
    "if [ $RECONVERGE_DRM_EXECUTE = yes ]; then result pass; else echo '  Observed: 0 0 0'; result fail; fi";

#[test]
fn a_piglit_that_is_not_there_is_named_with_what_installs_it() {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join("no-piglit");
    refuses(&Piglit(folder).run(&[]), &["no-piglit: bin/shader_runner not found"]);
    let none = Piglit::new("piglit-empty", &[]);
    refuses(&none.run(&[]), &["the options do not select any of the 0"]);
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
        ("skips", "echo 'PIGLIT: {\"result\": \"skip\" }'; exit"),
        ("warns", "result warn"),
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
        ("Probe color at 1,1; Observed: 0 0 0".to_owned(), "ended by signal 11".to_owned())
    );
}

#[test]
fn groups_have_the_verdicts_of_tests_alone_and_go_on_after_a_crash() {
    if !has_driver() {
        return;
    }
    let all = [
        ("a", DRAWS),
        ("b-crashes", "kill -11 $$"),
        ("c-fails", FAIL),
        (
            "d-hangs",
            "[ $RECONVERGE_DRM_EXECUTE = none ] || exec sleep 60\necho '  Observed: 0 0 0'; result fail",
        ),
        ("e", DRAWS),
        ("f-exits", "echo 'PIGLIT: {\"result\": \"skip\" }'; exit"),
        ("g", DRAWS),
        ("h", DRAWS),
    ];
    let piglit = Piglit::new("piglit-groups", &all);
    let asked = ["--jobs", "1", "--timeout", "3"];
    let mut found = piglit.json(&asked);
    // Groups of five and three. In the first group, a process ends in b, which runs again alone, and the next process
    // ends in d.
    assert_eq!(piglit.processes()[..9], [5, 1, 3, 1, 1, 1, 3, 1, 2]);
    // Without execution, c and d fail, and these verdicts count.
    assert_eq!(piglit.processes()[9..], [5, 1, 3, 3, 1, 2]);
    let baseline = piglit.0.join("baseline");
    let known = ["b-crashes,Crash", "c-fails,Fail", "d-hangs,Timeout"];
    let known = known.map(|line| format!("spec@glsl-1.10@execution@{line}\n"));
    std::fs::write(&baseline, known.concat()).unwrap();
    piglit.forget_processes();
    piglit.json(&[&asked[..], &["--baseline", baseline.to_str().unwrap()]].concat());
    assert_eq!(piglit.processes(), [1, 1, 1, 5, 1, 2, 1, 1, 1, 5, 1, 2], "tests of the baseline run alone");
    piglit.forget_processes();
    let isolated = piglit.json(&[&asked[..], &["--isolate"]].concat());
    assert_eq!(piglit.processes(), [1; 16]);
    found["seconds"] = isolated["seconds"].clone();
    assert_eq!(found, isolated);
}

#[test]
fn what_other_tests_leave_in_a_process_does_not_decide() {
    if !has_driver() {
        return;
    }
    let all = [
        ("a", &*format!("left=yes\n{DRAWS}")),
        ("b-fails-after-others", &*format!("if [ -n \"$left\" ]; then result fail; else {DRAWS}; fi")),
        ("c-passes-after-others", &*format!("if [ -n \"$left\" ]; then result pass; else {DRAWS}; fi")),
        (
            "d-expects-zeros",
            "if [ -n \"$left\" ]; then echo '  Observed: 0 9 0'; result fail; else result pass; fi",
        ),
    ];
    let found = Piglit::new("piglit-left", &all).json(&["--jobs", "1"]);
    assert_eq!((&found["pass"], &found["fail"]), (&4.into(), &0.into()));
    assert_eq!(found["control"]["fail"], 3);
    assert_eq!(found["undrawn"], serde_json::json!(["spec@glsl-1.10@execution@d-expects-zeros"]));
}

#[test]
fn a_crash_at_the_end_of_a_process_is_that_of_its_last_test() {
    if !has_driver() {
        return;
    }
    let crashes = format!("{DRAWS}\nat_end=crash");
    let piglit = Piglit::new("piglit-crash-at-end", &[("a", DRAWS), ("b", &crashes)]);
    let found = piglit.json(&["--jobs", "1"]);
    assert_eq!((&found["pass"], &found["crash"]), (&1.into(), &1.into()));
    assert_eq!(piglit.processes(), [2, 1, 2, 1]);
}

#[test]
fn each_test_of_a_group_has_the_time_of_the_timeout() {
    if !has_driver() {
        return;
    }
    // Together, four of them exceed the timeout, which has room for a busy machine.
    let slow = format!("[ $RECONVERGE_DRM_EXECUTE = none ] || sleep 2\n{DRAWS}");
    let piglit = Piglit::new("piglit-slow", &["a", "b", "c", "d"].map(|name| (name, &*slow)));
    let output = piglit.0.join("output");
    piglit.json(&["--jobs", "1", "--timeout", "6", "--output", output.to_str().unwrap()]);
    assert_eq!(piglit.processes(), [4, 4]);
    let results = std::fs::read_to_string(output.join("results.csv")).unwrap();
    let seconds = results.lines().map(|line| line.rsplit_once(',').unwrap().1.parse::<f64>().unwrap());
    assert!(seconds.clone().all(|seconds| (1.5..6.).contains(&seconds)), "{results}");
    assert_eq!(seconds.count(), 4);
}

#[test]
fn tests_that_ctrl_c_ends_are_reported_as_far_as_they_ran() {
    if !has_driver() {
        return;
    }
    let mark = Path::new(env!("CARGO_TARGET_TMPDIR")).join("piglit-interrupted-runs");
    let _ = std::fs::remove_file(&mark);
    let sleeps = format!("echo $$ > {}; exec sleep 60", mark.display());
    let piglit = Piglit::new("piglit-interrupted", &[("a", PASS), ("b", &sleeps)]);
    let output = piglit.0.join("output");
    let mut command = piglit.command(&["--jobs", "1", "--json", "--output", output.to_str().unwrap()]);
    let mut child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    while !mark.exists() {
        assert!(child.try_wait().unwrap().is_none(), "it runs until it is interrupted");
        std::thread::sleep(std::time::Duration::from_millis(20));
    }
    assert!(Command::new("kill").args(["-INT", &child.id().to_string()]).status().unwrap().success());
    let ended = child.wait_with_output().unwrap();
    assert_eq!(ended.status.code(), Some(130), "{}", text(&ended.stderr));
    assert!(text(&ended.stderr).contains("interrupted: 2 tests did not run; use --resume to continue"));
    let found: serde_json::Value = serde_json::from_slice(&ended.stdout).unwrap();
    assert_eq!((&found["total"], &found["pass"], &found["interrupted"]), (&1.into(), &1.into(), &2.into()));
    assert!(!output.join("junit.xml").exists());
    assert_eq!(piglit.processes(), [2], "Ctrl-C was in the middle of a group");
    let results = std::fs::read_to_string(output.join("results.csv")).unwrap();
    assert!(results.starts_with("spec@glsl-1.10@execution@a,Pass,") && results.lines().count() == 1);
    let sleeps = std::fs::read_to_string(&mark).unwrap();
    assert!(!Path::new("/proc").join(sleeps.trim()).exists(), "the process of the group has ended");
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
    // A resumed run uses the verdict in the folder, although the test now passes.
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

#[test]
fn files_that_tests_could_not_write_are_an_error() {
    if !has_driver() {
        return;
    }
    let lost = format!("echo '{{\"lost\": {{\"programs\": 2}}}}' > \"$RECONVERGE_DRM_REPORT\"\n{PASS}");
    let piglit = Piglit::new("piglit-lost", &[("one", &lost), ("two", PASS)]);
    refuses(&piglit.run(&[]), &["incompletely written: programs (2)"]);
    // A test that runs again alone is counted once, whether the process of its group ended normally or not.
    for (name, ends) in [("piglit-lost-fails", "result fail"), ("piglit-lost-crashes", "kill -11 $$")] {
        let fails = lost.replace(PASS, ends);
        let piglit = Piglit::new(name, &[("a", &fails), ("b", PASS)]);
        refuses(&piglit.run(&["--jobs", "1"]), &["incompletely written: programs (2)"]);
        assert_eq!(piglit.processes()[..2], [2, 1]);
    }
}

/// A program whose first argument is a script. It adds its arguments to the file `arguments`.
const PROGRAM: &str = r#"#!/bin/sh
result() { echo "PIGLIT: {\"result\": \"$1\" }"; }
subtest() { echo "PIGLIT: {\"subtest\": {\"$1\" : \"$2\"}}"; }
echo "$@" >> "$PIGLIT_SOURCE_DIR/arguments"
eval "$1"
"#;

/// Returns an element of a profile.
fn element(kind: &str, name: &str, options: &[(&str, &str)]) -> String {
    let escaped = |text: &str| text.replace('&', "&amp;").replace('"', "&quot;").replace('>', "&gt;");
    let options = options.iter().map(|(name, value)| {
        let value = escaped(value);
        format!("<option name=\"{name}\" value=\"{value}\" />")
    });
    format!("<Test type=\"{kind}\" name=\"{name}\">{}</Test>", options.collect::<String>())
}

/// Returns the element of a test with [`PROGRAM`]. Scripts must not contain `'`.
fn gl(name: &str, script: &str, further: &[(&str, &str)]) -> String {
    let command = format!("['program', '{}']", script.replace('\\', "\\\\"));
    element("gl", name, &[&[("command", &*command), ("run_concurrent", "True")], further].concat())
}

/// Creates a piglit with a profile `mine`. It names the profile `gl`, with these elements, and the profile `shaders`,
/// with these shader tests.
fn with_profiles(name: &str, elements: &[String], shaders: &[(&str, &str)]) -> Piglit {
    let piglit = Piglit::new(name, shaders);
    let program = piglit.0.join("bin/program");
    std::fs::copy(piglit.0.join("bin/shader_runner"), &program).unwrap();
    std::fs::write(&program, PROGRAM).unwrap();
    let tests = piglit.0.join("tests");
    std::fs::create_dir_all(&tests).unwrap();
    let list = |elements: &[String]| format!("<PiglitTestList>{}</PiglitTestList>", elements.concat());
    let packed = std::fs::File::create(tests.join("gl.xml.gz")).unwrap();
    let mut packed = flate2::write::GzEncoder::new(packed, flate2::Compression::fast());
    std::io::Write::write_all(&mut packed, list(elements).as_bytes()).unwrap();
    packed.finish().unwrap();
    let shaders: Vec<String> = shaders
        .iter()
        .map(|(name, _)| {
            let command = format!("['shader_runner', 'tests/spec/glsl-1.10/execution/{name}.shader_test']");
            // The version is the only need.
            let version = if name.ends_with("-core") { "1.5" } else { "1.1" };
            let options = [("command", &*command), ("run_concurrent", "True"), ("shader_version", version)];
            element("shader", &format!("Shaders@{name}"), &options)
        })
        .collect();
    std::fs::write(tests.join("shaders.xml"), list(&shaders)).unwrap();
    let profiles = "<PiglitMetaProfile><Profile>gl</Profile><Profile>shaders</Profile></PiglitMetaProfile>";
    std::fs::write(tests.join("mine.meta.xml"), profiles).unwrap();
    piglit
}

#[test]
fn profiles_lists_and_errata_that_mean_nothing_are_refused() {
    let piglit = with_profiles("piglit-no-profile", &[], &[("a", PASS)]);
    refuses(
        &piglit.run(&["--profile", "mime"]),
        &["unknown --profile `mime`: did you mean `mine`? expected one of gl, mine, shaders"],
    );
    let errata = |list: &str| piglit.run(&["--errata", list]);
    refuses(&errata("none,x"), &["--errata: ", "found `none,x`"]);
    refuses(&errata("signed-rgtc"), &["expected integer-border"]);
    refuses(&piglit.run(&["--profile", "../tests/mine"]), &["unknown --profile"]);
    refuses(&piglit.run(&["--profile", "gl"]), &["the options do not select any of the 0"]);
    refuses(&piglit.run(&["--against", "list"]), &["--profile"]);
    refuses(&piglit.run(&["--profile", "mine", "--shard", "3/2"]), &["K/N with K from 1 to N"]);
    let against = |text: &str| {
        let list = piglit.0.join("list");
        std::fs::write(&list, text).unwrap();
        piglit.run(&["--profile", "mine", "--against", list.to_str().unwrap()])
    };
    refuses(&against("# nothing\n\n"), &["list: expected lines NAME,STATUS or NAME, found none"]);
    std::fs::write(piglit.0.join("tests/mine.meta.xml"), "<P><Profile>mine</Profile></P>").unwrap();
    refuses(&piglit.run(&["--profile", "mine"]), &["--profile mine: the profile contains itself"]);
    std::fs::write(piglit.0.join("tests/mine.meta.xml"), "<P><Test/>").unwrap();
    refuses(&piglit.run(&["--profile", "mine"]), &["tests/mine.meta.xml: "]);
    std::fs::write(piglit.0.join("tests/gl.xml.gz"), "plain").unwrap();
    refuses(&piglit.run(&["--profile", "gl"]), &["tests/gl.xml.gz: "]);
}

/// The rules, lists and names are those of deqp-runner.
#[test]
fn commands_of_a_profile_end_in_every_way_and_have_subtests() {
    if !has_driver() {
        return;
    }
    let parts = "subtest 2D pass; subtest \"3D, depth\" fail; subtest rect skip; result pass";
    let piglit = with_profiles(
        "piglit-profile",
        &[
            gl("Spec@Passes, at once", "result pass", &[]),
            gl("window", "result pass", &[("exclude_platforms", "['glx']")]).replace("\"True\"", "\"False\""),
            gl("parts", parts, &[]),
            gl("gbm", "[ $PIGLIT_PLATFORM$EGL_PLATFORM = gbm ] && result pass", &[]),
            gl("node", "[ $WAFFLE_GBM_DEVICE = /dev/dri/renderD128 ] && result pass", &[]),
            gl("relative", "[ -e tests/gl.xml.gz ] && touch file && result pass", &[]),
            gl("says-nothing", "true", &[]),
            gl("crashes", "result pass; kill -11 $$", &[]),
            gl("status", "result pass; exit 3", &[]),
            gl("fails", "result fail; exit 1", &[]),
            gl("hangs", "sleep 60; result pass", &[]),
            gl("skips", "result skip", &[]),
            gl("glx", "result pass", &[("require_platforms", "['glx']")]),
            gl("not-gbm", "result pass", &[("exclude_platforms", "['gbm']")]),
            gl("gone", "result pass", &[]).replace("'program'", "'no-program'"),
            element("cl", "cl", &[("command", "['program']")]),
        ],
        &[("a", PASS), ("b", FAIL)],
    );
    let output = piglit.0.join("output");
    let list = output.to_str().unwrap();
    let against = piglit.0.join("against");
    std::fs::write(&against, "# chip\nfails,Fail\ngbm,Fail\nskips\nparts@2D,Fail\nold,Crash\n").unwrap();
    let options =
        ["--profile", "mine", "--timeout", "2", "--output", list, "--against", against.to_str().unwrap()];
    let found = piglit.json(&options);
    let counts = |value: &serde_json::Value| {
        ["total", "pass", "fail", "crash", "timeout", "skip", "warn"]
            .map(|name| value[name].as_u64().unwrap())
    };
    assert_eq!(counts(&found), [18, 7, 2, 3, 1, 5, 0], "{found}");
    assert_eq!(counts(&found["subtests"]), [3, 1, 1, 0, 0, 1, 0]);
    assert_eq!(
        found["subtests"]["failures"],
        serde_json::json!([{"test": "parts@3D- depth", "status": "Fail"}])
    );
    assert_eq!((&found["profile"], &found["platform"]), (&"mine".into(), &"gbm".into()));
    assert!(found.get("control").is_none() && !output.join("control.csv").exists());
    let reasons = serde_json::json!({
        "only for the platform glx": 1, "not for the platform gbm": 1,
        "program not found in piglit": 1, "tests of the type cl do not use OpenGL": 1,
    });
    assert_eq!(found["skipped"], reasons);
    let arguments = std::fs::read_to_string(piglit.0.join("arguments")).unwrap();
    assert!(arguments.contains("result pass -auto\n") && arguments.contains("result pass -auto -fbo\n"));

    let found = &found["against"];
    let json = |text: &str| serde_json::from_str::<serde_json::Value>(text).unwrap();
    assert_eq!(
        (&found["agree"], &found["executed"], &found["percent"]),
        (&7.into(), &13.into(), &json("53.84"))
    );
    assert_eq!(found["fails_there"], json(r#"[{"test": "gbm", "here": "Pass", "there": "Fail"}]"#));
    let here = found["fails_here"].as_array().unwrap().iter().map(|entry| entry["test"].as_str().unwrap());
    assert_eq!(here.collect::<Vec<_>>(), ["crashes", "hangs", "says-nothing", "shaders@b", "status"]);
    assert_eq!(
        (&found["not_run_tests"], &found["unknown_tests"]),
        (&json(r#"["skips"]"#), &json(r#"["old"]"#))
    );
    assert_eq!(found["subtests"]["fails_there"][0]["test"], "parts@2D");
    assert_eq!((&found["subtests"]["agree"], &found["subtests"]["executed"]), (&0.into(), &2.into()));

    // The lists are in deqp-runner's order: subtests precede their test.
    let results = std::fs::read_to_string(output.join("results.csv")).unwrap();
    let statuses = results.lines().map(|line| line.rsplit_once(',').unwrap().0);
    let statuses = statuses.collect::<Vec<_>>().join("\n");
    let lines = "parts@2D,Pass\nparts@3D- depth,Fail\nparts@rect,Skip\nparts,Pass";
    assert!(statuses.contains(lines) && statuses.contains("spec@passes- at once,Pass"), "{results}");
    let failures = std::fs::read_to_string(output.join("failures.csv")).unwrap();
    assert!(failures.ends_with("status,Crash\nparts@3D- depth,Fail\n"), "{failures}");
    assert!(std::fs::read_to_string(output.join("junit.xml")).unwrap().contains("name=\"parts@3D- depth\""));

    // None of these tests runs again, and their failures serve as a baseline.
    std::fs::remove_file(piglit.0.join("arguments")).unwrap();
    let baseline = piglit.0.join("baseline");
    std::fs::write(&baseline, failures + "parts@2D,Fail\n").unwrap();
    let again = [&options[..], &["--resume", "--baseline", baseline.to_str().unwrap()]].concat();
    let output = piglit.run(&again);
    let said = text(&output.stdout);
    assert!(!piglit.0.join("arguments").exists());
    assert_eq!(output.status.code(), Some(1), "{said}");
    for line in [
        "18 tests: 7 passed, 2 failed, 3 crashed, 1 timed out, 5 skipped, 0 warned",
        "1 test skipped without being started: only for the platform glx",
        "3 subtests: 1 passed, 1 failed, 0 crashed, 0 timed out, 1 skipped, 0 warned",
        "PASSES   parts@2D: the baseline lists it as a failure",
        "0 of the failing subtests are not in the baseline; 1 of the subtests in the baseline now pass",
        "fails here only   Timeout  hangs",
        "fails there only  Pass     gbm",
        "fails there only  Pass     parts@2D",
        "against, 53.84 %: 5 fail only on the emulated chip, 1 only on the real chip",
        "1 entry in",
    ] {
        assert!(said.contains(line), "{line}: {said}");
    }
}

#[test]
fn shader_tests_of_a_profile_share_processes_with_their_like() {
    if !has_driver() {
        return;
    }
    let skips = "echo 'PIGLIT: {\"result\": \"skip\" }'; exit";
    let all = [
        ("a", DRAWS),
        ("b-skips", skips),
        ("c", DRAWS),
        ("d-core", DRAWS),
        ("e-fails", FAIL),
        ("f-core", "result skip"),
        ("g", DRAWS),
    ];
    let piglit = with_profiles("piglit-profile-groups", &[], &all);
    let found = piglit.json(&["--profile", "shaders", "--jobs", "1"]);
    assert_eq!((&found["pass"], &found["fail"], &found["skip"]), (&4.into(), &1.into(), &2.into()));
    // Five tests of one version, of which the second skips by ending the process. The failure runs again alone.
    assert_eq!(piglit.processes(), [5, 3, 1, 2]);
    piglit.forget_processes();
    let found = piglit.json(&["--profile", "shaders", "--jobs", "1", "--isolate", "--control"]);
    assert_eq!(piglit.processes(), [1; 14]);
    assert_eq!((&found["control"]["fail"], &found["control"]["skip"]), (&5.into(), &2.into()));
}

#[test]
fn shards_of_a_profile_are_disjoint_and_complete() {
    if !has_driver() {
        return;
    }
    let elements: Vec<String> = (0..7).map(|number| gl(&format!("t{number}"), "result pass", &[])).collect();
    let piglit = with_profiles("piglit-shards", &elements, &[("a", PASS), ("b", PASS)]);
    let output = piglit.0.join("output");
    let run = |shard: &str, further: &[&str]| -> Vec<String> {
        let options = ["--profile", "mine", "--shard", shard, "--output", output.to_str().unwrap()];
        let run = piglit.run(&[&options[..], further].concat());
        assert_eq!(run.status.code(), Some(0), "{}", text(&run.stderr));
        let results = std::fs::read_to_string(output.join("results.csv")).unwrap();
        let mut names: Vec<_> =
            results.lines().map(|line| line.split_once(',').unwrap().0.to_owned()).collect();
        names.sort();
        names
    };
    let shards = ["1/3", "2/3", "3/3"].map(|shard| run(shard, &[]));
    assert_eq!(shards.each_ref().map(Vec::len), [3; 3]);
    assert_eq!(run("2/3", &[]), shards[1]);
    let mut together = shards.concat();
    together.sort();
    let all = run("1/1", &[]);
    assert_eq!((&together, all.len()), (&all, 9));
    // Shards may share one folder.
    let of_two: Vec<_> = ["1/2", "2/2"].into_iter().zip([&[][..], &["--resume"]]).collect();
    let filled: Vec<_> = of_two.into_iter().map(|(shard, further)| run(shard, further)).collect();
    assert_eq!((filled[0].len(), &filled[1]), (5, &all));
}

#[test]
fn slow_tests_of_a_profile_are_named() {
    if !has_driver() {
        return;
    }
    let piglit = with_profiles("piglit-profile-slow", &[gl("waits", "sleep 5.2; result pass", &[])], &[]);
    let output = piglit.0.join("output");
    let options = ["--profile", "gl", "--output", output.to_str().unwrap()];
    let said = text(&piglit.run(&options).stdout);
    assert!(said.contains("1 test took 5 s or more:\n   5."), "{said}");
    let found = piglit.json(&[&options[..], &["--resume"]].concat());
    assert_eq!((&found["slow"][0]["test"], found["slow"].as_array().unwrap().len()), (&"waits".into(), 1));
}

/// Alternate runs store different bytes in the second pixel.
const TURNS: &str = r#"turn=$PIGLIT_SOURCE_DIR/turn
if [ -e "$turn" ]; then rm "$turn"; found=b; else : > "$turn"; found=a; fi
cat > surfaces.jsonl <<END
{"draw": 1, "targets": [{"name": "color0", "format": "8_8_8_8 unorm", "bytes": 4, "pitch": 2, "rows": 1, "digest": "$found"}], "programs": {"pixel": "0000000$found"}}
END
[ -z "$RECONVERGE_DRM_SURFACES_OF" ] || printf "same$found$found$found$found" > draw-1.color0.bin
result pass"#;

#[test]
fn the_first_draw_that_differs_between_two_drivers_is_named_with_its_pixels() {
    if !has_driver() {
        return;
    }
    let piglit = Piglit::new("piglit-compare", &[("differs", TURNS), ("same", PASS)]);
    let asked = ["--jobs", "1", "--compare", "installed", "installed"];
    let found = piglit.json(&asked);
    let first = serde_json::json!({
        "draws": [1, 1], "surface": "color0", "format": "8_8_8_8 unorm", "pixels": 1,
        "named": [{"x": 1, "y": 0, "values": ["61616161", "62626262"]}],
        "programs": [{"pixel": "0000000a"}, {"pixel": "0000000b"}],
    });
    assert_eq!((&found["tests"], &found["paired"], &found["draws"]), (&2.into(), &2.into(), &1.into()));
    let differences = found["differences"].as_array().unwrap();
    assert_eq!((differences.len(), &differences[0]["first"]), (1, &first));
    assert_eq!(piglit.run(&asked).status.code(), Some(1));
    refuses(&piglit.run(&["--compare", "installed", "no-mesa"]), &["no-mesa: "]);
}
