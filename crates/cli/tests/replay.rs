//! Tests of `reconverge replay`.

#![cfg(target_os = "linux")]

mod driver;

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use driver::{fresh, has_driver, on_driver, reconverge, refuses, text};
use serde_json::Value;

/// The word of a literal in a program of `frames.c`, and its replacement: 0.3515625 and 0.5.
const PATCH: &str = "3eb40000:3f000000";

/// Returns a command that replays a trace without the environment variables that `reconverge replay` reads.
fn replay(trace: &Path, chip: &str, arguments: &[&str]) -> Command {
    let mut command = on_driver("replay");
    command.arg(trace).args(["--chip", chip]).args(arguments);
    command
}

/// Records a trace of `frames.c` with these arguments, drawn by llvmpipe. If something is not installed, prints a
/// message and returns `None`.
fn recorded(folder: &Path, arguments: &[&str]) -> Option<PathBuf> {
    if !has_driver() {
        return None;
    }
    if Command::new("apitrace").arg("help").output().is_err() {
        println!("skipped: apitrace is not installed: apt-get install apitrace");
        return None;
    }
    let (program, trace) = (folder.join("frames"), folder.join("frames.trace"));
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/replay/frames.c");
    let mut compiler = Command::new("cc");
    compiler.arg("-o").arg(&program).arg(source).args(["-l:libEGL.so.1", "-l:libGLESv2.so.2"]);
    let compiled = compiler.output();
    let Ok(compiled) = compiled else {
        println!("skipped: cc is not installed: apt-get install gcc libc6-dev");
        return None;
    };
    if text(&compiled.stderr).contains("libGLESv2.so.2") {
        println!("skipped: libGLESv2.so.2 is not installed: apt-get install libgles2");
        return None;
    }
    assert!(compiled.status.success(), "{}", text(&compiled.stderr));
    let mut command = Command::new("apitrace");
    command.args(["trace", "--api=egl", "-o"]).arg(&trace).arg(&program).args(arguments);
    command.env("EGL_PLATFORM", "surfaceless").env("LIBGL_ALWAYS_SOFTWARE", "true");
    let output = command.output().unwrap();
    assert!(output.status.success() && trace.exists(), "{}", text(&output.stderr));
    Some(trace)
}

/// Returns the number of the first call in a trace that contains this text.
fn call_with(trace: &Path, words: &str) -> u64 {
    let output = Command::new("apitrace").args(["dump", "--color=never"]).arg(trace).output().unwrap();
    let dump = text(&output.stdout);
    let line = dump.lines().find(|line| line.contains(words)).unwrap();
    line.split(' ').next().unwrap().parse().unwrap()
}

/// Returns standard output of a replay as JSON, and checks the exit status. Returns `None` if the driver compiles to
/// other words.
fn answer(output: &Output, status: i32) -> Option<Value> {
    let said = text(&output.stderr);
    if said.contains("these words do not occur in any shader of a draw") {
        println!("skipped: this Mesa compiles the shader to other words");
        return None;
    }
    assert_eq!(output.status.code(), Some(status), "{said}");
    Some(serde_json::from_slice(&output.stdout).unwrap())
}

/// The pixel shares of frames that agree.
const ALL_AGREE: &str = "pixels: 100.000 % agree, 0.000 % at edges, 0.000 % within 16/255, 0.000 % by more\n";

#[test]
fn a_trace_that_is_drawn_as_on_llvmpipe_agrees() {
    let Some(trace) = recorded(&fresh("replay-agrees"), &[]) else { return };
    for chip in ["rv770", "gt215", "rv515"] {
        let output = replay(&trace, chip, &[]).output().unwrap();
        let expected = format!("3 frames compared, all agree\n{ALL_AGREE}");
        assert_eq!(text(&output.stdout), expected, "{}", text(&output.stderr));
        assert_eq!(output.status.code(), Some(0));
    }
    let alone = replay(&trace, "rv770", &["--compare", "none", "--json"]).output().unwrap();
    let alone = answer(&alone, 0).unwrap();
    assert_eq!((&alone["frames"], &alone["resets"]), (&3.into(), &0.into()), "{alone}");
    assert!(alone["seconds"].as_f64().unwrap() > 0.);
    refuses(
        &replay(&trace, "rv770", &["--frames", "1-3"]).output().unwrap(),
        &["--frames 1-3: the trace has frames 0 to 2"],
    );
}

/// A word of one program is replaced on its way to the chip. In the second frame that differs, its draw is the first
/// difference, in the texture. The draw that shows the texture differs after it.
#[test]
fn the_first_frame_and_the_first_draw_that_differ_are_named_and_captured() {
    let folder = fresh("replay-differs");
    let Some(trace) = recorded(&folder, &[]) else { return };
    let pictures = folder.join("pictures");
    let arguments = ["--patch", PATCH, "--json", "--all", "--output", pictures.to_str().unwrap()];
    let Some(found) = answer(&replay(&trace, "rv770", &arguments).output().unwrap(), 1) else { return };

    let (frame, draw) = (&found["first_frame"], &found["first_draw"]);
    assert_eq!((&found["compared"], &found["differ"]), (&3.into(), &2.into()), "{found}");
    assert_eq!((&frame["frame"], &frame["function"]), (&1.into(), &"eglSwapBuffers".into()));
    assert_eq!(draw["call"], call_with(&trace, "first = 4, count = 4)"), "{found}");
    assert_eq!(draw["text"], "glDrawArrays(mode = GL_TRIANGLE_STRIP, first = 4, count = 4)");
    assert_eq!((&found["draws"], &found["draws_differ"]), (&4.into(), &2.into()));
    // The lower left 8x4 pixels of 16x16, counted from the top.
    assert_eq!((&draw["x"], &draw["y"]), (&serde_json::json!([0, 7]), &serde_json::json!([12, 15])));
    let first = serde_json::json!({"x": 0, "y": 12, "chip": [128, 0, 255], "reference": [90, 0, 255]});
    assert_eq!((&draw["pixels"], &draw["first"]), (&32.into(), &first));

    // The launch file contains only this draw. The pixel of a framebuffer object is counted from the bottom.
    let captured = &found["captured"];
    assert_eq!(captured["pixel"], serde_json::json!([0, 3]), "{captured}");
    assert_eq!(captured["draws"].as_array().map(Vec::len), Some(1), "{captured}");
    let file = captured["file"].as_str().unwrap();
    let quad = reconverge(&["run", file, "--pixel", "0,3", "--json"]);
    let quad: Value = serde_json::from_slice(&quad.stdout).unwrap();
    assert_eq!(quad["outputs"]["pixel0"][0], serde_json::json!([0.5, 0.0, 1.0, 1.0]), "{quad}");
    assert_eq!(captured["command"], format!("reconverge debug {file} --pixel 0,3"));

    let call = draw["call"].as_u64().unwrap();
    for name in ["frame-0001", "frame-0002", &format!("call-{call:06}")] {
        for side in ["rv770", "llvmpipe", "difference"] {
            let picture = fs::read(pictures.join(format!("{name}.{side}.ppm"))).unwrap();
            assert!(picture.starts_with(b"P6\n"), "{name}");
        }
    }
    assert!(!pictures.join("frame-0000.rv770.ppm").exists());

    // Without --all, the search ends at the frame. With a higher tolerance, nothing differs.
    let output = replay(&trace, "rv770", &["--patch", PATCH]).output().unwrap();
    let lines = text(&output.stdout);
    assert!(lines.contains("frame 1, call ") && lines.contains("2 frames compared, 1 differ\n"), "{lines}");
    for option in [["--tolerance", "40"], ["--pixels", "128"]] {
        let output = replay(&trace, "rv770", &[&["--patch", PATCH], &option[..]].concat()).output().unwrap();
        assert_eq!(output.status.code(), Some(0), "{option:?}: {}", text(&output.stdout));
    }
}

#[test]
fn draws_of_a_trace_without_frames_are_compared() {
    let Some(trace) = recorded(&fresh("replay-frameless"), &["without"]) else { return };
    let output = replay(&trace, "gt215", &[]).output().unwrap();
    assert_eq!(text(&output.stdout), "10 draws compared, all agree\n", "{}", text(&output.stderr));
    assert!(
        text(&output.stderr)
            .contains("the trace does not contain a frame; pictures are taken after each of its 10 draws")
    );
    refuses(
        &replay(&trace, "gt215", &["--frames", "0"]).output().unwrap(),
        &["the trace does not contain a frame"],
    );
    let output = replay(&trace, "rv770", &["--patch", PATCH, "--json"]).output().unwrap();
    let Some(found) = answer(&output, 1) else { return };
    assert_eq!(found["first_draw"]["call"], call_with(&trace, "first = 4, count = 4)"), "{found}");
    assert_eq!(found["first_frame"], Value::Null);
}

/// Returns a file that replaces a trace, and a search path on which scripts replace apitrace's programs.
fn scripts(name: &str, api: &str, eglretrace: &str) -> (PathBuf, String) {
    let folder = fresh(name);
    let trace = folder.join("a.trace");
    fs::write(&trace, "").unwrap();
    let info = format!("{{\"ContainerVersion\": 6, \"API\": \"{api}\"}}");
    let apitrace = format!(
        "case $1 in info) echo '{info}';; *) echo '7 eglSwapBuffers()'; echo '9 eglSwapBuffers()';; esac"
    );
    for (name, script) in [("apitrace", apitrace.as_str()), ("eglretrace", eglretrace)] {
        let path = folder.join(name);
        fs::write(&path, format!("#!/bin/sh\n{script}\n")).unwrap();
        fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).unwrap();
    }
    let path = format!("{}:{}", folder.display(), std::env::var("PATH").unwrap());
    (trace, path)
}

#[test]
fn what_cannot_be_replayed_is_refused_by_name() {
    let (trace, path) = scripts("replay-refused", "Direct3D 9", "");
    let refused = |path: &str| replay(&trace, "rv770", &[]).env("PATH", path).output().unwrap();
    refuses(&refused(&path), &["a.trace: expected a trace of OpenGL or OpenGL ES, found Direct3D 9"]);
    refuses(&refused("/nonexistent"), &["apitrace: apt-get install apitrace"]);
    let missing = trace.with_file_name("missing.trace");
    refuses(&replay(&missing, "rv770", &[]).output().unwrap(), &["missing.trace: No such file"]);
    refuses(&replay(&trace, "rv7700", &[]).output().unwrap(), &["unknown --chip `rv7700`"]);
    refuses(&replay(&trace, "rv770", &["--frames", "2-1"]).output().unwrap(), &["expected N or N-M"]);
    let (trace, path) = scripts("replay-unknown", "Unknown API", "");
    let output = replay(&trace, "rv770", &["--json"]).env("PATH", path).output().unwrap();
    refuses(&output, &["found Unknown API"]);
    let error: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert!(error["error"].as_str().unwrap().contains("Unknown API"));
    if Command::new("apitrace").arg("help").output().is_ok() {
        refuses(&replay(&trace, "rv770", &[]).output().unwrap(), &["a.trace: expected a trace of apitrace"]);
    }
}

#[test]
fn a_replay_that_fails_on_one_side_is_named() {
    if !has_driver() {
        return;
    }
    let picture = "printf 'P6\\n#7\\n1 1\\n255\\nabc'";
    let larger = "printf 'P6\\n#7\\n2 1\\n255\\nabcdef'";
    let on_chip = |script: &str, other: &str| {
        format!("if [ -n \"$RECONVERGE_DRM_CHIP\" ]; then {script}; else {other}; fi")
    };
    let cases = [
        (
            "killed",
            on_chip("echo '7: warning: x' >&2; kill -SEGV $$", picture),
            "ended with signal 11 (SIGSEGV)\n7: warning: x",
        ),
        ("exits", on_chip(picture, "exit 3"), "the replay on llvmpipe ended with exit status: 3"),
        ("missing", on_chip("true", picture), "frame 0 (call 7): a picture on llvmpipe, but none on rv770"),
        (
            "sizes",
            on_chip(larger, picture),
            "call 7: the picture has 2x1 pixels on rv770, but 1x1 on llvmpipe",
        ),
        (
            "text",
            on_chip(picture, "echo text"),
            "the replay on llvmpipe: expected a picture (PNM), found `text`",
        ),
        ("cut", on_chip("printf 'P6\\n#7\\n2 1\\n255\\na'", picture), "the picture of call 7 is truncated"),
    ];
    for (name, script, words) in cases {
        let (trace, path) = scripts(&format!("replay-{name}"), "OpenGL + GLX/WGL/CGL", &script);
        refuses(&replay(&trace, "rv770", &[]).env("PATH", path).output().unwrap(), &[words]);
    }
    let (trace, path) = scripts("replay-one-picture", "OpenGL + GLX/WGL/CGL", picture);
    let output = replay(&trace, "rv770", &[]).env("PATH", path).output().unwrap();
    assert_eq!(text(&output.stdout), format!("1 frame compared, all agree\n{ALL_AGREE}"));
    assert!(
        text(&output.stderr)
            .contains("warning: 1 frame without a picture on either renderer; the first is frame 1")
    );
}
