//! `patch` on real binaries: one instruction changes, every other byte stays, and the patched file runs.

use std::path::{Path, PathBuf};
use std::process::Command;

use reconverge_testkit::shared;
use reconverge_workbench::{Known, Opened, Style, open};

fn reconverge(arguments: &[&str]) -> (Option<i32>, String) {
    let output = Command::new(env!("CARGO_BIN_EXE_reconverge")).args(arguments).output().unwrap();
    (output.status.code(), String::from_utf8_lossy(&output.stderr).into_owned())
}

fn folder(name: &str) -> PathBuf {
    let path = Path::new(env!("CARGO_TARGET_TMPDIR")).join(name);
    let _ = std::fs::remove_dir_all(&path);
    std::fs::create_dir_all(&path).unwrap();
    path
}

fn opened(path: &Path) -> Opened {
    open(&std::fs::read(path).unwrap(), false, &Known::default()).unwrap()
}

/// Returns every instruction of every program: program index, address and text.
fn lines(opened: &Opened) -> Vec<(usize, u32, String)> {
    let mut all = Vec::new();
    for (index, program) in opened.image.programs.iter().enumerate() {
        let listing = opened.target.machine().disassemble(&opened.target, program, Style::default()).unwrap();
        let lines = listing.lines(&program.words).into_iter();
        all.extend(lines.filter_map(|line| Some((index, line.address?, line.text))));
    }
    all
}

/// Patches the first instruction whose text these replacements change into a form of the same length. Returns the old
/// and the new text.
fn patched(file: &Path, out: &Path, replacements: &[(&str, &str)]) -> Option<(String, String)> {
    let before = opened(file);
    for (program, address, text) in lines(&before) {
        let changed = replacements.iter().find(|(from, _)| text.starts_with(from));
        let Some((from, to)) = changed else { continue };
        let new = text.replacen(from, to, 1);
        let at = address.to_string();
        let mut arguments =
            vec!["patch", file.to_str().unwrap(), "--at", &at, &new, "-o", out.to_str().unwrap(), "-q"];
        if let Some(name) = &before.image.programs[program].name {
            arguments.extend(["--kernel", name]);
        }
        if reconverge(&arguments).0 == Some(0) {
            return Some((text, new));
        }
    }
    None
}

/// Checks that one line of the listing differs, and that only the bytes of its words differ in the file.
#[track_caller]
fn only_this_changed(file: &Path, out: &Path, texts: &(String, String)) {
    let [before, after] = [file, out].map(|path| std::fs::read(path).unwrap());
    assert_eq!(before.len(), after.len(), "{}", file.display());
    let differ: Vec<usize> = (0..before.len()).filter(|at| before[*at] != after[*at]).collect();
    let (first, last) = (differ[0], differ[differ.len() - 1]);
    // Two words, as bytes or as text.
    assert!(last - first < 24, "{}: bytes {first} to {last}", file.display());
    let [before, after] = [file, out].map(|path| lines(&opened(path)));
    let differ: Vec<(&str, &str)> = before
        .iter()
        .zip(&after)
        .filter(|(before, after)| before != after)
        .map(|(before, after)| (&before.2[..], &after.2[..]))
        .collect();
    let code = |text: &str| text.split(';').next().unwrap_or_default().trim().to_owned();
    assert_eq!(differ.len(), 1, "{}: {differ:?}", file.display());
    assert_eq!((code(differ[0].0), code(differ[0].1)), (code(&texts.0), code(&texts.1)));
}

#[test]
fn one_instruction_of_real_cubins_is_patched_and_they_run() {
    let Some(binaries) = shared("binaries") else { return };
    let here = folder("patched-cubins");
    std::fs::create_dir_all(here.join("runs")).unwrap();
    #[cfg(unix)]
    std::os::unix::fs::symlink(binaries.join("runs/data"), here.join("runs/data")).unwrap();
    let mut done = Vec::new();
    let mut manifests: Vec<PathBuf> =
        std::fs::read_dir(binaries.join("runs")).unwrap().map(|entry| entry.unwrap().path()).collect();
    manifests.sort();
    for path in manifests.iter().filter(|path| path.extension().is_some_and(|ending| ending == "json")) {
        let mut manifest: serde_json::Value = serde_json::from_slice(&std::fs::read(path).unwrap()).unwrap();
        let Some(binary) = manifest["binary"].as_str().filter(|binary| binary.ends_with(".cubin")) else {
            continue;
        };
        let file = binaries.join(binary);
        if done.contains(&file) {
            continue;
        }
        let out = here.join("patched.cubin");
        let replacements = [
            ("add f32", "mul f32"),
            ("mul f32", "add f32"),
            ("add rn f32", "mul rn f32"),
            ("mul rn f32", "add rn f32"),
            ("mov b32 $r1 0x123456", "mov b32 $r1 0x654321"),
            ("mul rn ftz f32", "add rn ftz f32"),
        ];
        let Some(texts) = patched(&file, &out, &replacements) else { continue };
        only_this_changed(&file, &out, &texts);
        // The result changes (status 1), or does not depend on the instruction (status 0). The file is neither
        // damaged nor rejected.
        manifest["binary"] = "patched.cubin".into();
        std::fs::write(here.join("runs/run.json"), manifest.to_string()).unwrap();
        let (status, said) = reconverge(&[
            "run",
            here.join("runs/run.json").to_str().unwrap(),
            "-q",
            "--json",
            "--allow-outside",
            // In flacuda, a warp reads values that the next warp writes, but does not use them.
            "--no-race-check",
        ]);
        assert!(matches!(status, Some(0 | 1)) && !said.contains("trap"), "{}: {said}", file.display());
        done.push(file);
    }
    assert!(done.len() >= 10, "{done:?}");
}

#[test]
fn one_instruction_of_wii_u_files_is_patched_and_they_run() {
    let Some(binaries) = shared("binaries") else { return };
    let here = folder("patched-gsh");
    for (name, replacements) in [
        (
            "latte-wut/pos_col_shader.gsh",
            [("02 EXPORT_DONE: PARAM[0], R1.xyzw", "02 EXPORT_DONE: PARAM[0], R1.zyxw")],
        ),
        (
            "latte-sdl/wiiutextureshaderdata.gsh",
            [("z: MOV             R0.z, 0.z", "z: MOV             R0.z, 1.0")],
        ),
    ] {
        let (file, out) = (binaries.join("r700").join(name), here.join("patched.gsh"));
        let texts = patched(&file, &out, &replacements).unwrap();
        only_this_changed(&file, &out, &texts);
        let (status, said) = reconverge(&["check", out.to_str().unwrap(), "-q"]);
        assert_eq!(status, Some(0), "{said}");
    }
    let (file, out) = (binaries.join("r700/latte-wut/pos_col_shader.gsh"), here.join("red.gsh"));
    let (file, out) = (file.to_str().unwrap(), out.to_str().unwrap());
    let text = "EXPORT_DONE: PIXEL[0], R0.zyxw END_OF_PROGRAM";
    assert_eq!(
        reconverge(&["patch", file, "--kernel", "pixel", "--at", "0", text, "-o", out, "-q"]).0,
        Some(0)
    );
    let (status, said) =
        reconverge(&["run", out, "--kernel", "pixel", "--lanes", "1", "--input", "R0=1,2,3,4:f32", "-q"]);
    assert_eq!(status, Some(0), "{said}");
}
