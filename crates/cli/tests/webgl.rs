//! Tests of `reconverge webgl`.

#![cfg(target_os = "linux")]

mod driver;

use std::path::Path;
use std::process::{Command, Output};

use driver::{has_driver, on_driver, refuses, text};

/// Runs `reconverge webgl` with these files as the suite.
fn webgl(name: &str, files: &[(&str, &str)], arguments: &[&str]) -> Output {
    let suite = Path::new(env!("CARGO_TARGET_TMPDIR")).join(name);
    let _ = std::fs::remove_dir_all(&suite);
    std::fs::create_dir_all(&suite).unwrap();
    for (file, content) in files {
        std::fs::write(suite.join(file), content).unwrap();
    }
    let mut command = on_driver("webgl");
    command.args(["--chip", "rv770", "--suite"]).arg(&suite).args(arguments).output().unwrap()
}

#[test]
fn a_folder_that_is_no_webgl_suite_is_named() {
    refuses(&webgl("webgl-none", &[], &[]), &["00_test_list.txt not found", "KhronosGroup/WebGL"]);
    let list = [("00_test_list.txt", "--min-version 2.0.0 one.html\n")];
    refuses(
        &webgl("webgl-empty", &list, &[]),
        &["the options do not select any of the 0 for version 1 of WebGL"],
    );
    refuses(&webgl("webgl-three", &list, &["--version", "3"]), &["3"]);
    refuses(&webgl("webgl-errata", &list, &["--errata", "x"]), &["--errata: unknown erratum `x`: expected "]);
    if has_driver() {
        let answered = webgl("webgl-browser", &list, &["--version", "2", "--browser", "/nonexistent"]);
        refuses(&answered, &["/nonexistent", "apt-get install chromium"]);
    }
}

/// A file that fails only on the chip, a file that fails on both, and a file that does not end.
#[test]
fn webgl_files_that_fail_only_on_the_chip_are_named() {
    if !has_driver() {
        return;
    }
    if Command::new("chromium").arg("--version").output().is_err() {
        println!("skipped: chromium is not installed");
        return;
    }
    let page =
        |script: &str| format!("<!doctype html><script>const h = parent.webglTestHarness;{script}</script>");
    let chip = page(
        "const gl = document.createElement('canvas').getContext('webgl');
         gl.clearColor(1, 0, 0, 1);
         gl.clear(gl.COLOR_BUFFER_BIT);
         const pixel = new Uint8Array(4);
         gl.readPixels(0, 0, 1, 1, gl.RGBA, gl.UNSIGNED_BYTE, pixel);
         h.reportResults('', pixel.join() === '255,0,0,255', 'red: ' + pixel);
         const name = gl.getParameter(gl.getExtension('WEBGL_debug_renderer_info').UNMASKED_RENDERER_WEBGL);
         for (let time = 0; time < 3; time++) h.reportResults('', !name.includes('RV770'), 'not the chip');
         h.notifyFinished('');",
    );
    let files: [(&str, &str); 4] = [
        ("00_test_list.txt", "chip.html\nboth.html\nnever.html?a=1\n"),
        ("chip.html", &chip),
        ("both.html", &page("h.reportResults('', false, 'on both');h.notifyFinished('');")),
        ("never.html", &page("h.reportResults('', true, 'goes on');")),
    ];
    let output = webgl("webgl-three-files", &files, &["--timeout", "2", "--json"]);
    let said = text(&output.stderr);
    let answer: serde_json::Value = serde_json::from_slice(&output.stdout).expect(&said);
    assert_eq!(output.status.code(), Some(1), "{said}");
    let only =
        serde_json::json!([{ "file": "chip.html", "assertions": [{ "text": "not the chip", "count": 3 }] }]);
    assert_eq!(answer["only_on_chip"], only);
    assert_eq!((&answer["files"], &answer["on_chip"]["assertions"]), (&3.into(), &7.into()));
    assert_eq!((&answer["on_chip"]["failures"], &answer["control"]["failures"]), (&5.into(), &2.into()));
}
