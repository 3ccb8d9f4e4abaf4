//! Tests of the commands that run programs on Mesa's drivers: `drm`, `piglit` and `webgl`.
//!
//! The library is no dependency of the command, so that these tests have cargo build it. Where Mesa's driver is not
//! installed, the tests that start a program say so and pass.

#![cfg(target_os = "linux")]

use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::sync::LazyLock;

/// The library: the one that RECONVERGE_DRM_LIBRARY names, or one built in the profile of the command.
static LIBRARY: LazyLock<PathBuf> = LazyLock::new(|| {
    if let Some(built) = std::env::var_os("RECONVERGE_DRM_LIBRARY") {
        return built.into();
    }
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
    let mut command = on_driver("drm");
    command.args(arguments);
    command
}

/// A command of `reconverge` in such surroundings.
fn on_driver(name: &str) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_reconverge"));
    for name in ["RECONVERGE_DRM_REPORT", "LD_PRELOAD", "LIBGL_DRIVERS_PATH", "EGL_PLATFORM"] {
        command.env_remove(name);
    }
    command.env("RECONVERGE_DRM_LIBRARY", &*LIBRARY).arg(name).stdin(Stdio::null());
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
    refuses(&refused("68f9"), &["--chip 68f9: no such chip"]);
    refuses(&refused("GT212"), &["--chip GT212: not yet", "tesla"]);
}

#[test]
fn a_command_is_needed() {
    refuses(&drm(&["--chip", "rv770"]).output().unwrap(), &["<COMMAND>"]);
    refuses(&drm(&["--chip", "rv770", "--"]).output().unwrap(), &["<COMMAND>"]);
}

#[test]
fn a_folder_that_cannot_take_a_capture_is_named_with_what_can() {
    let folder = fresh("drm-full");
    let file = folder.join("draws.jsonl");
    std::fs::write(&file, "").unwrap();
    let refused = |path: &Path| {
        let path = path.to_str().unwrap();
        drm(&["--chip", "rv770", "--capture", path, "--", "true"]).output().unwrap()
    };
    refuses(&refused(&folder), &["drm-full: the folder is not empty", "a new one"]);
    refuses(&refused(&file), &["draws.jsonl: it is no folder", "a new one"]);
    // Nothing of it has changed.
    assert_eq!(std::fs::read(&file).unwrap(), b"");
}

#[test]
fn what_needs_execution_is_refused_without_it() {
    let refused = |option: &str, value: &str| {
        let arguments = ["--chip", "rv770", "--execute", "none", option, value, "--", "true"];
        drm(&arguments).output().unwrap()
    };
    refuses(&refused("--capture", "never-made"), &["--capture: with --execute none no shader runs"]);
    refuses(&refused("--patch", "1:2"), &["--patch: with --execute none no shader runs"]);
    assert!(!Path::new("never-made").exists());
}

#[test]
fn a_patch_that_cannot_be_is_refused_with_its_form() {
    let refused = |patch: &str| drm(&["--chip", "rv770", "--patch", patch, "--", "true"]).output().unwrap();
    refuses(&refused("80100cfe"), &["OLD:NEW is the form"]);
    refuses(&refused("1,2:3"), &["both lists are of one length"]);
}

/// An empty folder.
fn fresh(name: &str) -> PathBuf {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join(name);
    let _ = std::fs::remove_dir_all(&folder);
    std::fs::create_dir_all(&folder).unwrap();
    folder
}

/// Piglit's runner of shader tests, with its variables: of the folder that `RECONVERGE_PIGLIT` names, or of Debian's
/// package. Says so where it or Mesa's driver is not installed.
fn shader_runner(command: &mut Command) -> Option<PathBuf> {
    if !has_driver() {
        return None;
    }
    let folders = std::fs::read_dir("/usr/lib").into_iter().flatten().flatten();
    let folders = folders.map(|entry| entry.path().join("piglit"));
    let given = std::env::var_os("RECONVERGE_PIGLIT").map(PathBuf::from);
    let found = given.into_iter().chain(folders).find(|folder| folder.join("bin/shader_runner").is_file());
    let Some(folder) = found else {
        println!(
            "skipped: piglit is not installed: apt-get install piglit, or RECONVERGE_PIGLIT names its folder"
        );
        return None;
    };
    command.env("PIGLIT_SOURCE_DIR", &folder).env("LD_LIBRARY_PATH", folder.join("lib"));
    Some(folder.join("bin/shader_runner"))
}

/// `reconverge drm` with these options on a shader test, on RV770; `None` where it cannot run.
fn run_test(options: &[&str], test: &Path) -> Option<Command> {
    run_test_on("rv770", options, test)
}

fn run_test_on(chip: &str, options: &[&str], test: &Path) -> Option<Command> {
    let mut command = drm(&[&["--chip", chip], options, &["--"]].concat());
    let runner = shader_runner(&mut command)?;
    command.arg(runner).arg(test).args(["-auto", "-fbo"]);
    Some(command)
}

/// Piglit's programs that draw by way of geometry programs and read transform feedback back, on a Tesla chip and on an R700.
#[test]
fn geometry_programs_and_transform_feedback_do_what_programs_expect() {
    let (strip, fan) = ("triangle_strip", "triangle_fan");
    for (chip, test) in [
        ("gt215", &["glsl-1.50-geometry-end-primitive", "9"][..]),
        ("gt215", &["glsl-1.50-geometry-primitive-id-restart", "GL_TRIANGLE_STRIP", "ffs"]),
        ("gt215", &["ext_transform_feedback-geometry-shaders-basic"]),
        ("gt215", &["ext_transform_feedback-tessellation", strip, "flat_first"]),
        ("gt215", &["ext_transform_feedback-tessellation", fan, "flat_first"]),
        ("rv770", &["ext_transform_feedback-tessellation", strip, "flat_first"]),
    ] {
        let mut command = drm(&["--chip", chip, "--"]);
        let Some(runner) = shader_runner(&mut command) else { return };
        command.arg(runner.with_file_name(test[0])).args(&test[1..]).args(["-auto", "-fbo"]);
        let output = command.output().unwrap();
        let said = text(&output.stdout) + &text(&output.stderr);
        assert!(said.contains("PIGLIT: {\"result\": \"pass\" }"), "{chip} {test:?}: {said}");
    }
}

/// What `reconverge` answers.
fn reconverge(arguments: &[&str]) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_reconverge"));
    command.args(arguments).stdin(Stdio::null()).output().unwrap()
}

/// The shader test of docs/mesa.md.
fn ramp() -> PathBuf {
    root().join("docs/samples/mesa/ramp.shader_test")
}

/// docs/mesa.md: the compiler's word is replaced by another on its way into the chip, and found from the wrong pixel.
#[test]
fn a_miscompile_placed_on_purpose_is_found_from_its_pixel() {
    let draws = fresh("drm-miscompile");
    let options = ["--capture", draws.to_str().unwrap(), "--patch", "80100cfe:801000fe"];
    let Some(mut command) = run_test(&options, &ramp()) else { return };
    let output = command.env("R600_DEBUG", "ps").output().unwrap();
    let said = text(&output.stderr);
    if said.contains("no shader that was drawn with has these words") {
        println!("skipped: this Mesa compiles the shader to other words");
        return;
    }
    // The pixel, and what the compiler has printed of the instruction.
    assert_eq!(output.status.code(), Some(1), "{said}");
    let observed = "Probe color at (3,5)\n  Expected: 0.218750 0.343750 0.250000 1.000000\n  Observed: 0.219608 0.109804";
    let stdout = text(&output.stdout);
    assert!(said.contains(observed) || stdout.contains(observed), "{stdout}{said}");
    assert!(said.contains("80100CFE 20200110"), "{said}");
    assert!(said.contains("note: ") && said.contains("launch files"), "{said}");

    // The draw that stores into it.
    let index = std::fs::read_to_string(draws.join("draws.jsonl")).unwrap();
    let draw: serde_json::Value = serde_json::from_str(index.lines().next().unwrap()).unwrap();
    let fragment = &draw["launches"][1];
    assert_eq!((&draw["draw"], &fragment["covered"]), (&1.into(), &64.into()), "{draw}");
    let file = draws.join(fragment["file"].as_str().unwrap());
    let file = file.to_str().unwrap();

    // The quad, and in the debugger the instruction that has written green.
    let quad = reconverge(&["run", file, "--pixel", "3,5", "--json"]);
    let quad: serde_json::Value = serde_json::from_slice(&quad.stdout).unwrap();
    assert_eq!(quad["outputs"]["pixel0"][3], serde_json::json!([0.21875, 0.109375, 0.25, 1.0]), "{quad}");
    let script = root().join("docs/samples/mesa/find.debug");
    let found = reconverge(&["debug", file, "--pixel", "3,5", "--batch", script.to_str().unwrap()]);
    let found = text(&found.stdout);
    let instruction = "(debug) back\ngroup 0, after 3 instructions: 9  2 y: MUL_IEEE R1.y, PV.x, KC0[0].x";
    assert!(found.contains(instruction), "{found}");

    // Its words, which are not the compiler's.
    let launch = std::fs::read_to_string(file).unwrap();
    let program = launch.lines().find_map(|line| line.strip_prefix("program = \"")).unwrap();
    let program = draws.join(program.trim_end_matches('"'));
    let listing = ["dis", program.to_str().unwrap(), "--chip", "rv770", "--stage", "pixel", "--hex"];
    let listing = text(&reconverge(&listing).stdout);
    assert!(listing.contains("PV.x, KC0[0].x  ; 9: 0x801000fe 0x20200110"), "{listing}");
}

/// Textures with mip levels, a loop with a bound of the test, several draws, killed fragments: what is captured of each
/// gives what the chip has stored.
#[test]
fn every_captured_launch_gives_what_the_chip_gave() {
    let folder = fresh("drm-verify");
    let (test, draws) = (folder.join("rich.shader_test"), folder.join("draws"));
    let shader = r#"
[require]
GLSL >= 1.20
SIZE 12 12
[vertex shader]
#version 120
varying vec2 place;
uniform mat2 turn;
void main() { gl_Position = gl_Vertex; place = turn * gl_Vertex.xy; }
[fragment shader]
#version 120
varying vec2 place;
uniform sampler2D image;
uniform int rounds;
void main() {
    vec4 sum = vec4(0.0);
    for (int i = 0; i < rounds; i++) { sum += texture2D(image, place * float(i + 1), float(i)) * 0.25; }
    if (fract(place.x * 3.0) < 0.2) discard;
    gl_FragColor = sum;
}
[test]
clear color 0.1 0.2 0.3 0.4
clear
uniform mat2 turn 0.8 0.6 -0.6 0.8
uniform int image 0
texture miptree 0
uniform int rounds 3
draw rect -1 -1 2 2
uniform int rounds 1
draw rect -0.5 -0.5 1 1
probe rgba 100 100 0 0 0 0
"#;
    std::fs::write(&test, shader).unwrap();
    let options = ["--capture", draws.to_str().unwrap()];
    for chip in ["rv770", "rv515", "gt215"] {
        let _ = std::fs::remove_dir_all(&draws);
        let Some(mut command) = run_test_on(chip, &options, &test) else { return };
        let output = command.output().unwrap();
        let files = launch_files(&draws);
        assert!(files.len() >= 4, "{chip}: {files:?}: {}", text(&output.stderr));
        let (mut textures, mut loops, mut killed) = (false, false, false);
        for file in &files {
            let ran = reconverge(&["run", file.to_str().unwrap(), "--rows", "0"]);
            assert_eq!(ran.status.code(), Some(0), "{}: {}", file.display(), text(&ran.stderr));
            let launch = std::fs::read_to_string(file).unwrap();
            textures |= launch.contains("levels = ") && !launch.contains("levels = 1\n");
            loops |= text(&reconverge(&["run", file.to_str().unwrap()]).stdout).contains("LOOP")
                || launch.contains("[[loop]]");
            killed |= launch.contains("output = \"killed\"");
        }
        // Compilers for the other chips make a loop of branches.
        loops |= chip != "rv770";
        assert!(textures && loops && killed, "{chip}: {textures} {loops} {killed}");
        every_pixel_opens(&draws);
    }
}

/// The index of the first vertex in a launch file of a few.
fn first_vertex(file: &Path) -> String {
    let launch = std::fs::read_to_string(file).unwrap();
    let (_, list) = launch.split_once("\nvertices = { type = \"u32\", list = [[0x").unwrap();
    let (digits, _) = list.split_once(',').unwrap();
    u32::from_str_radix(digits, 16).unwrap().to_string()
}

/// The middle of each draw and its first vertex are opened alone, and leave what they left in the draw.
fn every_pixel_opens(draws: &Path) {
    let index = std::fs::read_to_string(draws.join("draws.jsonl")).unwrap();
    for line in index.lines() {
        let draw: serde_json::Value = serde_json::from_str(line).unwrap();
        for launch in draw["launches"].as_array().unwrap() {
            let Some(file) = launch["file"].as_str() else { continue };
            let file = draws.join(file);
            let middle =
                |range: &serde_json::Value| (range[0].as_i64().unwrap() + range[1].as_i64().unwrap()) / 2;
            let (option, place) = match launch["stage"].as_str() {
                Some("vertex") => ("--vertex", first_vertex(&file)),
                _ => ("--pixel", format!("{},{}", middle(&launch["x"]), middle(&launch["y"]))),
            };
            for command in ["run", "stats"] {
                let ran = reconverge(&[command, file.to_str().unwrap(), option, &place]);
                assert_eq!(ran.status.code(), Some(0), "{command} {}: {}", file.display(), text(&ran.stderr));
            }
        }
    }
}

/// The launch files in a folder.
fn launch_files(folder: &Path) -> Vec<PathBuf> {
    let files = std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
    let mut files: Vec<PathBuf> =
        files.filter(|file| file.extension().is_some_and(|ending| ending == "toml")).collect();
    files.sort();
    files
}

/// The export becomes an instruction that no chip has.
#[test]
fn a_shader_that_traps_is_a_reset_for_the_program_and_named_with_its_draw() {
    let folder = fresh("drm-trap");
    let (draws, report) = (folder.join("draws"), folder.join("report.jsonl"));
    let options = ["--capture", draws.to_str().unwrap(), "--patch", "c0008000,94200a88:c0008000,ffffffff"];
    let Some(mut command) = run_test(&options, &ramp()) else { return };
    let output = command.env("RECONVERGE_DRM_REPORT", &report).output().unwrap();
    let said = text(&output.stderr);
    if said.contains("no shader that was drawn with has these words") {
        println!("skipped: this Mesa compiles the shader to other words");
        return;
    }
    // The program ends by itself: its pixel is not drawn.
    assert_eq!(output.status.code(), Some(1), "{said}");
    assert!(said.contains("reconverge: draw 1: pixel shader: trap at 1, "), "{said}");
    assert!(said.contains("; the chip is reset"), "{said}");
    let lines = std::fs::read_to_string(&report).unwrap();
    let last: serde_json::Value = serde_json::from_str(lines.lines().last().unwrap()).unwrap();
    assert_eq!((&last["resets"], last["patched"].as_u64() > Some(0)), (&1.into(), true), "{last}");
    // The launch file ends in the same trap.
    let ran = reconverge(&["run", draws.join("draw-0001.fragment.toml").to_str().unwrap()]);
    assert_eq!(ran.status.code(), Some(0), "{}", text(&ran.stderr));
}

#[test]
fn words_that_no_shader_has_are_said_to_be_in_none() {
    let Some(mut command) = run_test(&["--patch", "deadbeef:0"], &ramp()) else { return };
    let output = command.output().unwrap();
    assert_eq!(output.status.code(), Some(0));
    let said = text(&output.stderr);
    let warning = "warning: --patch deadbeef:00000000: no shader that was drawn with has these words";
    assert!(said.contains(warning), "{said}");
}

/// Two processes of one program draw at once: neither sees the other, and each captures into a folder of its own.
#[test]
fn two_processes_at_once_are_apart() {
    let draws = fresh("drm-two");
    let mut command = drm(&["--chip", "rv770", "--capture", draws.to_str().unwrap(), "--", "sh", "-c"]);
    let Some(runner) = shader_runner(&mut command) else { return };
    let line = format!(
        "{0} {1} -auto -fbo & {0} {1} -auto -fbo; r=$?; wait $! && exit $r",
        runner.display(),
        ramp().display()
    );
    let output = command.arg(line).output().unwrap();
    assert_eq!(output.status.code(), Some(0), "{}", text(&output.stderr));
    assert_eq!(text(&output.stdout).matches("\"result\": \"pass\"").count(), 2, "{}", text(&output.stdout));
    let [one, other] = [draws.clone(), draws.join("process-2")].map(|folder| launch_files(&folder).len());
    assert!(one > 0 && one == other, "{one} {other}");
    assert!(text(&output.stderr).contains(&format!("{} launch files", one + other)));
}

/// A program that is killed while its shader runs: its end is named, and no process, file or memory is left of it.
#[test]
fn a_killed_program_leaves_nothing() {
    let folder = fresh("drm-killed");
    let (temporary, test) = (folder.join("tmp"), folder.join("long.shader_test"));
    std::fs::create_dir(&temporary).unwrap();
    let shader = "[require]\nGLSL >= 1.20\n[vertex shader passthrough]\n[fragment shader]\n#version 120\nuniform int \
        rounds;\nvoid main() { float sum = 0.0; for (int i = 0; i < rounds; i++) { sum = sum * 0.5 + float(i); } \
        gl_FragColor = vec4(sum); }\n[test]\nuniform int rounds 100000\ndraw rect -1 -1 2 2\nprobe rgba 0 0 0 0 0 0\n";
    std::fs::write(&test, shader).unwrap();
    let draws = folder.join("draws");
    let mut command = drm(&["--chip", "rv770", "--capture", draws.to_str().unwrap(), "--", "sh", "-c"]);
    let Some(runner) = shader_runner(&mut command) else { return };
    let line = format!("echo $$; exec {} {} -auto -fbo", runner.display(), test.display());
    command.arg(line).env("TMPDIR", &temporary).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = command.spawn().unwrap();
    let mut pid = String::new();
    BufReader::new(child.stdout.as_mut().unwrap()).read_line(&mut pid).unwrap();
    let pid = pid.trim();
    // The list of draws is made when the device is opened for execution.
    while !draws.join("draws.jsonl").exists() && Path::new("/proc").join(pid).exists() {
        std::thread::sleep(std::time::Duration::from_millis(10));
    }
    let killed = Command::new("kill").args(["-s", "KILL", pid]).status().unwrap();
    assert!(killed.success());
    let output = child.wait_with_output().unwrap();
    let said = text(&output.stderr);
    assert_eq!(output.status.code(), Some(128 + 9), "{said}");
    assert!(said.contains("error: sh: ended by signal 9 (SIGKILL)"), "{said}");
    assert!(!Path::new("/proc").join(pid).exists());
    assert_eq!(std::fs::read_dir(&temporary).unwrap().count(), 0, "files are left in TMPDIR");
    let temporary = |name: &String| name.ends_with(".part");
    assert!(!files(&draws).iter().any(temporary) && !files(&draws.join("data")).iter().any(temporary));
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

/// What the library reads, as the arguments ask for it; without them it is not set.
#[test]
fn the_engine_and_the_folder_of_programs_reach_the_library() {
    let refused = drm(&["--chip", "rv770", "--engine", "quick", "--", "true"]).output().unwrap();
    refuses(&refused, &["quick", "lockstep"]);
    if !has_driver() {
        return;
    }
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join("drm-programs");
    let _ = std::fs::remove_dir_all(&folder);
    let show = "echo \"$RECONVERGE_DRM_ENGINE $RECONVERGE_DRM_PROGRAMS\"";
    let asked = ["--engine", "lockstep", "--programs", folder.to_str().unwrap()];
    let said = |options: &[&str]| {
        let output =
            drm(&[&["--chip", "rv770"], options, &["--", "sh", "-c", show]].concat()).output().unwrap();
        text(&output.stdout).trim().to_owned()
    };
    assert_eq!(said(&asked), format!("lockstep {}", folder.canonicalize().unwrap().display()));
    assert_eq!(said(&[]), "");
    let file = drm(&["--chip", "rv770", "--programs", "/dev/null/x", "--", "true"]).output().unwrap();
    refuses(&file, &["/dev/null/x"]);
}

/// Every chip has its driver start on it. The program is the probe: it opens the device and names its renderer.
#[test]
fn every_chip_is_taken_by_its_driver() {
    if !has_driver() {
        return;
    }
    for board in reconverge_board::BOARDS {
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

/// The program of scripts/drm/host.c, or `None` without a C compiler.
static HOST: LazyLock<Option<PathBuf>> = LazyLock::new(|| {
    let program = Path::new(env!("CARGO_TARGET_TMPDIR")).join("drm-host");
    let mut compiler = Command::new("cc");
    compiler.arg("-O1").arg("-o").arg(&program).arg(root().join("scripts/drm/host.c")).arg("-lpthread");
    match compiler.status() {
        Ok(status) => {
            assert!(status.success());
            Some(program)
        }
        Err(error) => {
            println!("skipped: cc: {error}");
            None
        }
    }
});

/// The host with the library loaded into it, and a report: neither needs Mesa's driver. It is killed after a minute.
fn host(report: &Path, arguments: &[&str]) -> Option<Command> {
    let mut command = Command::new("timeout");
    command.args(["-s", "KILL", "60"]).arg(HOST.as_ref()?).args(arguments).stdin(Stdio::null());
    command.env("LD_PRELOAD", &*LIBRARY).env("RECONVERGE_DRM_CHIP", "rv770");
    command.env("RECONVERGE_DRM_REPORT", report);
    Some(command)
}

/// The last line of each process in a report.
fn reported(report: &Path) -> Vec<serde_json::Value> {
    let text = std::fs::read_to_string(report).unwrap();
    let mut last = std::collections::BTreeMap::new();
    for line in text.lines() {
        let line: serde_json::Value = serde_json::from_str(line).unwrap();
        last.insert(line["opened"].as_u64().unwrap(), line);
    }
    last.into_values().collect()
}

#[test]
fn exit_in_a_signal_handler_during_a_submission_ends_the_program_and_its_report() {
    let report = fresh("drm-exit").join("report");
    let Some(mut command) = host(&report, &["exit"]) else { return };
    let output = command.output().unwrap();
    assert_eq!(output.status.code(), Some(7), "{}", text(&output.stderr));
    let [last] = &reported(&report)[..] else { panic!("one process") };
    assert!(last["submissions"].as_u64() > Some(0), "{last}");
    // Nearly always in the middle of one: then it says that names are missing.
    assert!(last["complete"].is_boolean(), "{last}");
}

#[test]
fn a_fork_while_threads_submit_leaves_a_device_that_works_in_both_processes() {
    let report = fresh("drm-forks").join("report");
    let Some(mut command) = host(&report, &["forks", "80", "7"]) else { return };
    let output = command.output().unwrap();
    let said = text(&output.stdout);
    assert_eq!(output.status.code(), Some(0), "{said}{}", text(&output.stderr));
    for kind in ["fork: 50", "clone: 10", "vfork: 10", "posix_spawn: 10"] {
        assert!(said.contains(&format!("{kind} ended, 0 hung, 0 failed")), "{said}");
    }
}

#[test]
fn a_fork_in_a_signal_handler_during_a_submission_does_not_hang() {
    let report = fresh("drm-handler").join("report");
    let Some(mut command) = host(&report, &["handler"]) else { return };
    let output = command.output().unwrap();
    assert_eq!(output.status.code(), Some(0), "{}{}", text(&output.stdout), text(&output.stderr));
}

#[test]
fn a_forked_process_reports_its_own_numbers() {
    let report = fresh("drm-child").join("report");
    let Some(mut command) = host(&report, &["child"]) else { return };
    assert_eq!(command.output().unwrap().status.code(), Some(0));
    let lines = reported(&report);
    let [parent, child] = &lines[..] else { panic!("{lines:?}") };
    assert_eq!((&parent["submissions"], &child["submissions"]), (&2.into(), &3.into()));
    assert_ne!(parent["pid"], child["pid"]);
}

#[test]
fn a_report_into_a_pipe_a_device_or_a_folder_is_refused_and_blocks_nothing() {
    let folder = fresh("drm-pipe");
    let pipe = folder.join("pipe");
    assert!(Command::new("mkfifo").arg(&pipe).status().unwrap().success());
    for (report, why) in [
        (&*pipe, "pipe: not a regular file; no report is written"),
        (Path::new("/dev/full"), "/dev/full: not a regular file"),
        (&folder, "drm-pipe: it is a folder"),
    ] {
        let Some(mut command) = host(report, &["names", "1"]) else { return };
        let output = command.output().unwrap();
        let said = text(&output.stderr);
        assert_eq!(output.status.code(), Some(0), "{said}");
        assert!(said.contains(why) && said.lines().count() == 1, "{said}");
    }
    if has_driver() {
        let output = drm(&["--chip", "rv770", "--", "true"]).env("RECONVERGE_DRM_REPORT", &pipe).output();
        refuses(&output.unwrap(), &["RECONVERGE_DRM_REPORT", "pipe: not a regular file"]);
    }
}

#[test]
fn many_resets_and_many_names_leave_a_short_report() {
    let folder = fresh("drm-short");
    let [resets, names] = ["resets", "names"].map(|name| folder.join(name));
    let Some(mut command) = host(&resets, &["resets", "5000"]) else { return };
    assert_eq!(command.output().unwrap().status.code(), Some(0));
    let [last] = &reported(&resets)[..] else { panic!("one process") };
    assert_eq!((&last["resets"], &last["complete"]), (&5000.into(), &true.into()));
    // The first line, one for each power of two, the last line.
    let lines = std::fs::read_to_string(&resets).unwrap().lines().count();
    assert_eq!(lines, 15);

    assert_eq!(host(&names, &["names", "5000"]).unwrap().output().unwrap().status.code(), Some(0));
    let [last] = &reported(&names)[..] else { panic!("one process") };
    let counts = last["unanswered"].as_object().unwrap();
    assert_eq!((counts.len(), &counts["others"]), (129, &(5000 - 128).into()));
}

/// The names of the files in a folder.
fn files(folder: &Path) -> Vec<String> {
    let names = std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().file_name());
    let mut names: Vec<String> = names.map(|name| name.into_string().unwrap()).collect();
    names.sort();
    names
}

#[test]
fn no_frame_is_lost_without_a_word() {
    let Some(host) = HOST.as_ref().filter(|_| has_driver()) else { return };
    let folder = fresh("drm-frames");
    let run = |line: &str| {
        let _ = std::fs::remove_dir_all(&folder);
        let options = ["--chip", "rv770", "--screen", folder.to_str().unwrap(), "--", "sh", "-c"];
        drm(&options).arg(line.replace("host", host.to_str().unwrap())).output().unwrap()
    };
    // Two processes, one after the other.
    let output = run("host flips 3; host flips 2");
    assert_eq!(output.status.code(), Some(0));
    let expected =
        ["frame-0001.ppm", "frame-0002.ppm", "frame-0003.ppm", "frame-p2-0001.ppm", "frame-p2-0002.ppm"];
    assert_eq!(files(&folder), expected);
    assert!(text(&output.stderr).contains("drm-frames: 5 frames"), "{}", text(&output.stderr));
    // A link that has the name of a frame.
    let victim = Path::new(env!("CARGO_TARGET_TMPDIR")).join("drm-frames-victim");
    std::fs::write(&victim, "kept").unwrap();
    let line = format!("ln -s {} {}/frame-0002.ppm; host flips 3", victim.display(), folder.display());
    run(&line);
    assert_eq!((std::fs::read(&victim).unwrap(), files(&folder).len()), (b"kept".to_vec(), 3));
    // More than are written.
    let output = run("host flips 10003");
    let said = text(&output.stderr);
    assert_eq!((output.status.code(), files(&folder).len()), (Some(0), 10_000), "{said}");
    assert!(said.contains("drm-frames: 3 frames shown and not written"), "{said}");
    // None fits on the disk.
    let output = run("host flips 3 8192");
    let said = text(&output.stderr);
    assert_eq!((output.status.code(), files(&folder).len()), (Some(2), 0), "{said}");
    assert_eq!(said.matches("frames are not written: File too large").count(), 1, "{said}");
    assert!(said.contains("error: not completely written: frames (3)"), "{said}");
    let _ = std::fs::remove_dir_all(&folder);
}

/// A shader_runner whose tests are shell scripts, which call `result` with their verdict. Several tests share a process and
/// its variables. It prints the lines of the real one, and adds its number of tests to the file `processes`.
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

/// `reconverge piglit` on a folder of piglit's shape.
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

    /// Numbers of tests of all processes so far, in the order of their starts.
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
/// Passes if the chip executes; else it observes zeros.
const DRAWS: &str =
    "if [ $RECONVERGE_DRM_EXECUTE = yes ]; then result pass; else echo '  Observed: 0 0 0'; result fail; fi";

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
    // Groups of five and three. In the first a process ends in b, which runs again alone, and the next one in d.
    assert_eq!(piglit.processes()[..9], [5, 1, 3, 1, 1, 1, 3, 1, 2]);
    // Nothing executed: c and d fail, which counts.
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
    // Four of them take longer than the timeout, which has room for a busy machine.
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
    assert!(text(&ended.stderr).contains("interrupted: 2 tests did not run; --resume goes on from here"));
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

#[test]
fn files_that_tests_could_not_write_are_an_error() {
    if !has_driver() {
        return;
    }
    let lost = format!("echo '{{\"lost\": {{\"programs\": 2}}}}' > \"$RECONVERGE_DRM_REPORT\"\n{PASS}");
    let piglit = Piglit::new("piglit-lost", &[("one", &lost), ("two", PASS)]);
    refuses(&piglit.run(&[]), &["not completely written: programs (2)"]);
    // A test that runs again alone is counted once, whether the process of its group ended by itself or not.
    for (name, ends) in [("piglit-lost-fails", "result fail"), ("piglit-lost-crashes", "kill -11 $$")] {
        let fails = lost.replace(PASS, ends);
        let piglit = Piglit::new(name, &[("a", &fails), ("b", PASS)]);
        refuses(&piglit.run(&["--jobs", "1"]), &["not completely written: programs (2)"]);
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

/// An element of a profile.
fn element(kind: &str, name: &str, options: &[(&str, &str)]) -> String {
    let escaped = |text: &str| text.replace('&', "&amp;").replace('"', "&quot;").replace('>', "&gt;");
    let options = options.iter().map(|(name, value)| {
        let value = escaped(value);
        format!("<option name=\"{name}\" value=\"{value}\" />")
    });
    format!("<Test type=\"{kind}\" name=\"{name}\">{}</Test>", options.collect::<String>())
}

/// The element of a test with [`PROGRAM`]. Scripts have no `'`.
fn gl(name: &str, script: &str, further: &[(&str, &str)]) -> String {
    let command = format!("['program', '{}']", script.replace('\\', "\\\\"));
    element("gl", name, &[&[("command", &*command), ("run_concurrent", "True")], further].concat())
}

/// A piglit whose profile `mine` names `gl`, with these elements, and `shaders`, with these shader tests.
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
fn profiles_and_lists_that_cannot_be_read_are_refused() {
    let piglit = with_profiles("piglit-no-profile", &[], &[("a", PASS)]);
    refuses(
        &piglit.run(&["--profile", "mime"]),
        &["--profile mime: no such profile; did you mean `mine`? this piglit has gl, mine, shaders"],
    );
    refuses(&piglit.run(&["--profile", "../tests/mine"]), &["no such profile"]);
    refuses(&piglit.run(&["--profile", "gl"]), &["no test is left of the 0"]);
    refuses(&piglit.run(&["--against", "list"]), &["--profile"]);
    refuses(&piglit.run(&["--profile", "mine", "--shard", "3/2"]), &["K/N with K from 1 to N"]);
    let against = |text: &str| {
        let list = piglit.0.join("list");
        std::fs::write(&list, text).unwrap();
        piglit.run(&["--profile", "mine", "--against", list.to_str().unwrap()])
    };
    refuses(&against("# nothing\n\n"), &["list: no entry; expected lines NAME,STATUS or NAME"]);
    std::fs::write(piglit.0.join("tests/mine.meta.xml"), "<P><Profile>mine</Profile></P>").unwrap();
    refuses(&piglit.run(&["--profile", "mine"]), &["--profile mine: the profile contains itself"]);
    std::fs::write(piglit.0.join("tests/mine.meta.xml"), "<P><Test/>").unwrap();
    refuses(&piglit.run(&["--profile", "mine"]), &["tests/mine.meta.xml: "]);
    std::fs::write(piglit.0.join("tests/gl.xml.gz"), "plain").unwrap();
    refuses(&piglit.run(&["--profile", "gl"]), &["tests/gl.xml.gz: "]);
}

/// The rules are those of deqp-runner, its lists and names too.
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
        "piglit has no such program": 1, "tests of the type cl do not use OpenGL": 1,
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

    // The lists, in the order of deqp-runner: subtests first.
    let results = std::fs::read_to_string(output.join("results.csv")).unwrap();
    let statuses = results.lines().map(|line| line.rsplit_once(',').unwrap().0);
    let statuses = statuses.collect::<Vec<_>>().join("\n");
    let lines = "parts@2D,Pass\nparts@3D- depth,Fail\nparts@rect,Skip\nparts,Pass";
    assert!(statuses.contains(lines) && statuses.contains("spec@passes- at once,Pass"), "{results}");
    let failures = std::fs::read_to_string(output.join("failures.csv")).unwrap();
    assert!(failures.ends_with("status,Crash\nparts@3D- depth,Fail\n"), "{failures}");
    assert!(std::fs::read_to_string(output.join("junit.xml")).unwrap().contains("name=\"parts@3D- depth\""));

    // Nothing of it runs again, and its failures are a baseline.
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
        "1 test skipped without a start: only for the platform glx",
        "3 subtests: 1 passed, 1 failed, 0 crashed, 0 timed out, 1 skipped, 0 warned",
        "PASSES   parts@2D: the baseline says that it fails",
        "0 of the failing subtests are not in the baseline; 1 of it now pass",
        "fails here only   Timeout  hangs",
        "fails there only  Pass     gbm",
        "fails there only  Pass     parts@2D",
        "against, 53.84 %: 5 fail here only, 1 there only",
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
    // Five tests of one version, of which the second skips by the end of the process. The failure runs again alone.
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
    // Shards may fill one folder.
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

/// Every other run of it leaves other bytes in the second pixel.
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

/// Runs `bench --draw` with more arguments.
fn bench(arguments: &[&str]) -> Output {
    reconverge(&[&["bench", "--draw"], arguments].concat())
}

#[test]
fn loads_are_listed_and_unknown_ones_are_refused() {
    let list = bench(&["--list"]);
    assert_eq!(list.status.code(), Some(0), "{}", text(&list.stderr));
    let names: Vec<String> = text(&list.stdout)
        .lines()
        .filter_map(|line| line.split_whitespace().next().map(str::to_owned))
        .collect();
    assert!(names.len() >= 8 && names.iter().any(|name| name == "fill"), "{names:?}");
    refuses(&bench(&["--kernel", "fil"]), &["no load `fil`", "did you mean `fill`"]);
    refuses(&bench(&["--chip", "gt2155", "--list"]), &["gt2155"]);
    refuses(&reconverge(&["bench", "--chip", "rv770"]), &["--draw"]);
}

#[test]
fn loads_are_timed_on_an_emulated_chip() {
    if !has_driver() {
        return;
    }
    let output =
        bench(&["--chip", "rv770", "--kernel", "clear", "--runs", "1", "--threads", "1,2", "--json"]);
    assert_eq!(output.status.code(), Some(0), "{}", text(&output.stderr));
    let measured: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
    let of_chip = |entry: &&serde_json::Value| entry["renderer"] == "rv770";
    let results: Vec<_> = measured["results"].as_array().unwrap().iter().filter(of_chip).collect();
    assert_eq!(results.len(), 2, "{measured}");
    assert!(results.iter().all(|entry| entry["ns"].as_f64().is_some_and(|ns| ns > 0.)), "{measured}");
    assert!(results[1]["speedup"].is_number(), "{measured}");
}

/// `reconverge webgl` with these files as the suite.
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
    refuses(&webgl("webgl-none", &[], &[]), &["no 00_test_list.txt", "KhronosGroup/WebGL"]);
    let list = [("00_test_list.txt", "--min-version 2.0.0 one.html\n")];
    refuses(&webgl("webgl-empty", &list, &[]), &["no file is left of the 0 for version 1 of WebGL"]);
    refuses(&webgl("webgl-three", &list, &["--version", "3"]), &["3"]);
    if has_driver() {
        let answered = webgl("webgl-browser", &list, &["--version", "2", "--browser", "/nonexistent"]);
        refuses(&answered, &["/nonexistent", "apt-get install chromium"]);
    }
}

/// A file that fails on the chip alone, one that fails on both, and one that does not end.
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
         h.reportResults('', !name.includes('RV770'), 'not the chip');
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
    let only = serde_json::json!([{ "file": "chip.html", "assertions": ["not the chip"] }]);
    assert_eq!(answer["only_on_chip"], only);
    assert_eq!((&answer["files"], &answer["on_chip"]["assertions"]), (&3.into(), &5.into()));
    assert_eq!((&answer["on_chip"]["failures"], &answer["control"]["failures"]), (&3.into(), &2.into()));
}

/// Mesa's `src/amd/drm-shim/README.md`: a preloaded library and a variable are enough.
#[test]
fn the_variables_of_mesas_drm_shim_choose_a_chip_without_the_command() {
    if !has_driver() {
        return;
    }
    let probe = |name: &str, value: &str| {
        let mut command = Command::new(env!("CARGO_BIN_EXE_reconverge"));
        for name in ["RECONVERGE_DRM_REPORT", "RECONVERGE_DRM_CHIP", "LIBGL_DRIVERS_PATH"] {
            command.env_remove(name);
        }
        command
            .env("LD_PRELOAD", &*LIBRARY)
            .env("EGL_PLATFORM", "surfaceless")
            .env("RECONVERGE_DRM_PROBE", "1");
        let output = command.env(name, value).arg("--version").stdin(Stdio::null()).output().unwrap();
        text(&output.stdout) + &text(&output.stderr)
    };
    for (name, value, renderer) in [
        ("RADEON_GPU_ID", "0x71c5", "ATI RV530"),
        ("RADEON_GPU_ID", "9442", "AMD RV770"),
        ("NOUVEAU_CHIPSET", "96", "NV96"),
        ("NOUVEAU_CHIPSET", "a8", "NVA8"),
        ("NOUVEAU_CHIPSET", "0xac", "NVAC"),
    ] {
        let said = probe(name, value);
        assert!(said.contains(renderer), "{name}={value}: {said}");
    }
    let said = probe("NOUVEAU_CHIPSET", "e4");
    assert!(said.contains("NOUVEAU_CHIPSET: e4: one of 50, 84,"), "{said}");
}
