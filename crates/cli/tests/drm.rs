//! Tests of `reconverge drm` and of the library that it preloads.

#![cfg(target_os = "linux")]

mod driver;

use std::io::{BufRead, BufReader, Read};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::LazyLock;

use driver::{LIBRARY, fresh, has_driver, on_driver, reconverge, refuses, text};
use reconverge_board::screen::{FRAMES, FrameHeader};

/// Returns a command of `reconverge drm` without the environment variables that it reads.
fn drm(arguments: &[&str]) -> Command {
    let mut command = on_driver("drm");
    command.args(arguments);
    command
}

#[test]
fn chips_that_are_not_emulated_are_refused_by_name() {
    let refused = |chip: &str| drm(&["--chip", chip, "--", "true"]).output().unwrap();
    refuses(&refused("rv7700"), &["unknown --chip `rv7700`", "did you mean `rv770`?", "rs880"]);
    refuses(&refused("68f9"), &["unknown --chip `68f9`"]);
    refuses(&refused("GT212"), &["--chip GT212: not implemented", "tesla"]);
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
    refuses(&refused(&folder), &["drm-full: expected an empty folder", "or new folder"]);
    refuses(&refused(&file), &["draws.jsonl: expected a folder", "or new folder"]);
    // The file is unchanged.
    assert_eq!(std::fs::read(&file).unwrap(), b"");
}

#[test]
fn what_needs_execution_is_refused_without_it() {
    let refused = |option: &str, value: &str| {
        let arguments = ["--chip", "rv770", "--execute", "none", option, value, "--", "true"];
        drm(&arguments).output().unwrap()
    };
    refuses(
        &refused("--capture", "never-made"),
        &["--capture: no shader runs with --execute none; omit --execute none"],
    );
    refuses(
        &refused("--patch", "1:2"),
        &["--patch: no shader runs with --execute none; omit --execute none"],
    );
    assert!(!Path::new("never-made").exists());
}

#[test]
fn a_patch_that_cannot_be_is_refused_with_its_form() {
    let refused = |patch: &str| drm(&["--chip", "rv770", "--patch", patch, "--", "true"]).output().unwrap();
    refuses(&refused("80100cfe"), &["expected OLD:NEW"]);
    refuses(&refused("1,2:3"), &["expected lists of equal length"]);
}

/// Returns piglit's runner of shader tests and sets its environment variables. The runner is in the folder that
/// `RECONVERGE_PIGLIT` names, or in Debian's package. Prints a message and returns `None` if piglit or Mesa's driver
/// is not installed.
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

/// Returns a command that runs a shader test on RV770 with these options of `reconverge drm`, or `None` if it cannot
/// run.
fn run_test(options: &[&str], test: &Path) -> Option<Command> {
    run_test_on("rv770", options, test)
}

fn run_test_on(chip: &str, options: &[&str], test: &Path) -> Option<Command> {
    let mut command = drm(&[&["--chip", chip], options, &["--"]].concat());
    let runner = shader_runner(&mut command)?;
    command.arg(runner).arg(test).args(["-auto", "-fbo"]);
    Some(command)
}

/// Piglit's programs that draw with geometry programs and read back transform feedback, on a Tesla chip and on an
/// R700.
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

/// Returns the shader test of docs/mesa.md.
fn ramp() -> PathBuf {
    root().join("docs/samples/mesa/ramp.shader_test")
}

/// docs/mesa.md: a word of the compiler is replaced on its way to the chip. The wrong pixel leads to that word.
#[test]
fn a_miscompile_placed_on_purpose_is_found_from_its_pixel() {
    let draws = fresh("drm-miscompile");
    let options = ["--capture", draws.to_str().unwrap(), "--patch", "80100cfe:801000fe"];
    let Some(mut command) = run_test(&options, &ramp()) else { return };
    let output = command.env("R600_DEBUG", "ps").output().unwrap();
    let said = text(&output.stderr);
    if said.contains("these words do not occur in any shader of a draw") {
        println!("skipped: this Mesa compiles the shader to other words");
        return;
    }
    // The pixel, and the compiler's listing of the instruction.
    assert_eq!(output.status.code(), Some(1), "{said}");
    let observed = "Probe color at (3,5)\n  Expected: 0.218750 0.343750 0.250000 1.000000\n  Observed: 0.219608 0.109804";
    let stdout = text(&output.stdout);
    assert!(said.contains(observed) || stdout.contains(observed), "{stdout}{said}");
    assert!(said.contains("80100CFE 20200110"), "{said}");
    assert!(said.contains("note: ") && said.contains("launch files"), "{said}");

    // The draw that stores the pixel.
    let index = std::fs::read_to_string(draws.join("draws.jsonl")).unwrap();
    let draw: serde_json::Value = serde_json::from_str(index.lines().next().unwrap()).unwrap();
    let fragment = &draw["launches"][1];
    assert_eq!((&draw["draw"], &fragment["covered"]), (&1.into(), &64.into()), "{draw}");
    let file = draws.join(fragment["file"].as_str().unwrap());
    let file = file.to_str().unwrap();

    // The quad; in the debugger, the instruction that wrote green.
    let quad = reconverge(&["run", file, "--pixel", "3,5", "--json"]);
    let quad: serde_json::Value = serde_json::from_slice(&quad.stdout).unwrap();
    assert_eq!(quad["outputs"]["pixel0"][3], serde_json::json!([0.21875, 0.109375, 0.25, 1.0]), "{quad}");
    let script = root().join("docs/samples/mesa/find.debug");
    let found = reconverge(&["debug", file, "--pixel", "3,5", "--batch", script.to_str().unwrap()]);
    let found = text(&found.stdout);
    let instruction = "(debug) back\ngroup 0, after 3 instructions: 9  2 y: MUL_IEEE R1.y, PV.x, KC0[0].x";
    assert!(found.contains(instruction), "{found}");

    // The words of the program differ from the compiler's.
    let launch = std::fs::read_to_string(file).unwrap();
    let program = launch.lines().find_map(|line| line.strip_prefix("program = \"")).unwrap();
    let program = draws.join(program.trim_end_matches('"'));
    let listing = ["dis", program.to_str().unwrap(), "--chip", "rv770", "--stage", "pixel", "--hex"];
    let listing = text(&reconverge(&listing).stdout);
    assert!(listing.contains("PV.x, KC0[0].x  ; 9: 0x801000fe 0x20200110"), "{listing}");
}

/// Textures with mip levels, a loop whose bound depends on the test, several draws, killed fragments: each captured
/// launch returns the values that the chip stored.
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
        // The compilers for the other chips turn a loop into branches.
        loops |= chip != "rv770";
        assert!(textures && loops && killed, "{chip}: {textures} {loops} {killed}");
        every_pixel_opens(&draws);
    }
}

/// Returns the index of the first vertex in a launch file for a few vertices.
fn first_vertex(file: &Path) -> String {
    let launch = std::fs::read_to_string(file).unwrap();
    let (_, list) = launch.split_once("\nvertices = { type = \"u32\", list = [[0x").unwrap();
    let (digits, _) = list.split_once(',').unwrap();
    u32::from_str_radix(digits, 16).unwrap().to_string()
}

/// Runs the middle pixel and the first vertex of each draw alone. Their results equal those of the draw.
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

/// Returns the launch files in a folder.
fn launch_files(folder: &Path) -> Vec<PathBuf> {
    let files = std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
    let mut files: Vec<PathBuf> =
        files.filter(|file| file.extension().is_some_and(|ending| ending == "toml")).collect();
    files.sort();
    files
}

/// The export is replaced by an instruction that no chip has.
#[test]
fn a_shader_that_traps_is_a_reset_for_the_program_and_named_with_its_draw() {
    let folder = fresh("drm-trap");
    let (draws, report) = (folder.join("draws"), folder.join("report.jsonl"));
    let options = ["--capture", draws.to_str().unwrap(), "--patch", "c0008000,94200a88:c0008000,ffffffff"];
    let Some(mut command) = run_test(&options, &ramp()) else { return };
    let output = command.env("RECONVERGE_DRM_REPORT", &report).output().unwrap();
    let said = text(&output.stderr);
    if said.contains("these words do not occur in any shader of a draw") {
        println!("skipped: this Mesa compiles the shader to other words");
        return;
    }
    // The program ends normally, but its pixel is not drawn.
    assert_eq!(output.status.code(), Some(1), "{said}");
    assert!(said.contains("reconverge: draw 1: pixel shader: trap at 1, "), "{said}");
    assert!(said.contains("; the chip is reset"), "{said}");
    let lines = std::fs::read_to_string(&report).unwrap();
    let last: serde_json::Value = serde_json::from_str(lines.lines().last().unwrap()).unwrap();
    assert_eq!((&last["resets"], last["patched"].as_u64() > Some(0)), (&1.into(), true), "{last}");
    // The launch file ends with the same trap.
    let ran = reconverge(&["run", draws.join("draw-0001.fragment.toml").to_str().unwrap()]);
    assert_eq!(ran.status.code(), Some(0), "{}", text(&ran.stderr));
}

#[test]
fn words_that_no_shader_has_are_said_to_be_in_none() {
    let Some(mut command) = run_test(&["--patch", "deadbeef:0"], &ramp()) else { return };
    let output = command.output().unwrap();
    assert_eq!(output.status.code(), Some(0));
    let said = text(&output.stderr);
    let warning = "warning: --patch deadbeef:00000000: these words do not occur in any shader of a draw";
    assert!(said.contains(warning), "{said}");
}

/// Two processes of one program draw at the same time. They do not affect each other, and each captures into a
/// separate folder.
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

/// A program is killed while its shader runs. The command reports the signal, and no process, file or memory remains.
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
    // The list of draws is created when the device is opened for execution.
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
    refuses(&output, &["tests/drm.rs was not loaded into any program", "cannot be preloaded"]);
}

/// Returns the folder to which `file!()` is relative.
fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

#[test]
fn a_driver_that_is_not_there_is_named_with_the_packages() {
    let mut command = drm(&["--chip", "rv770", "--", "true"]);
    let output = command.env("LIBGL_DRIVERS_PATH", "/nonexistent").output().unwrap();
    refuses(&output, &["AMD RV770", "r600_dri.so", "apt-get install libegl1 libgl1-mesa-dri libdrm-radeon1"]);
}

/// The driver is installed but does not get the device. The message names the renderer that draws instead, and the
/// program does not run.
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
    // A file that has the driver's name but is not a driver.
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

/// Options set the environment variables of the library. Without options, the variables are not set.
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

#[test]
fn errata_that_a_chip_does_not_have_are_refused_with_those_that_it_has() {
    let refused = |list: &str| drm(&["--chip", "rv515", "--errata", list, "--", "true"]).output().unwrap();
    refuses(&refused("rgtc"), &["--errata: unknown erratum `rgtc`: expected alpha-test, ", "signed-rgtc"]);
    let has =
        "--errata: the chip does not have the erratum `flat-back`: expected alpha-test, unsigned-blending, ";
    refuses(&refused("all,-flat-back"), &[has]);
    refuses(
        &refused("none,signed-rgtc"),
        &["--errata: expected all, none, NAME,NAME or all,-NAME,", "found `none,signed-rgtc`"],
    );
    if !has_driver() {
        return;
    }
    let said = |options: &[&str]| {
        let show = ["--", "sh", "-c", "echo \"$RECONVERGE_DRM_ERRATA\""];
        text(&drm(&[&["--chip", "rv515"], options, &show].concat()).output().unwrap().stdout)
    };
    assert_eq!(
        (said(&["--errata", "all,-signed-rgtc"]), said(&[])),
        ("all,-signed-rgtc\n".into(), "\n".into())
    );
    // The library reports a wrong value and does not offer a device.
    let mut wrong = drm(&["--chip", "rv515", "--", "true"]);
    let output = wrong.env("RECONVERGE_DRM_ERRATA", "rgtc").output().unwrap();
    refuses(&output, &["not with ATI RV515", "RECONVERGE_DRM_ERRATA: unknown erratum `rgtc`: expected "]);
}

/// Piglit tests that fail on the real chips, one for each family.
#[test]
fn an_erratum_decides_whether_its_test_passes() {
    for (chip, erratum, test) in [
        ("rv515", "signed-rgtc", &["rgtc-teximage-01"][..]),
        ("rv515", "smooth-lines", &["line-aa-width"]),
        ("rv770", "integer-border", &["texwrap", "GL_ARB_texture_stencil8", "bordercolor"]),
        ("gt215", "strip-adjacency", &["gl-3.2-adj-prims", "pv-first"]),
    ] {
        for (list, expected) in [(erratum.to_owned(), "fail"), (format!("all,-{erratum}"), "pass")] {
            let mut command = drm(&["--chip", chip, "--errata", &list, "--"]);
            let Some(runner) = shader_runner(&mut command) else { return };
            command.arg(runner.with_file_name(test[0])).args(&test[1..]).args(["-auto", "-fbo"]);
            let output = command.output().unwrap();
            let said = text(&output.stdout) + &text(&output.stderr);
            let result = format!("PIGLIT: {{\"result\": \"{expected}\" }}");
            assert!(said.contains(&result), "{chip} --errata {list} {test:?}: {said}");
        }
    }
}

/// The driver of each chip accepts the chip. The program is the probe, which opens the device and prints its
/// renderer.
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

/// A signal that only the command receives also ends the program.
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

/// The compiled program of scripts/drm/host.c, or `None` without a C compiler.
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

/// Returns a command that runs the host with the library preloaded and with a report. This does not need Mesa's
/// driver. The host is killed after one minute.
fn host(report: &Path, arguments: &[&str]) -> Option<Command> {
    let mut command = Command::new("timeout");
    command.args(["-s", "KILL", "60"]).arg(HOST.as_ref()?).args(arguments).stdin(Stdio::null());
    command.env("LD_PRELOAD", &*LIBRARY).env("RECONVERGE_DRM_CHIP", "rv770");
    command.env("RECONVERGE_DRM_REPORT", report);
    Some(command)
}

/// Returns the last line of each process in a report.
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
    // The exit is nearly always in the middle of a submission. The report then states that names are missing.
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
    // The first line, one line for each power of two, and the last line.
    let lines = std::fs::read_to_string(&resets).unwrap().lines().count();
    assert_eq!(lines, 15);

    assert_eq!(host(&names, &["names", "5000"]).unwrap().output().unwrap().status.code(), Some(0));
    let [last] = &reported(&names)[..] else { panic!("one process") };
    let counts = last["unanswered"].as_object().unwrap();
    assert_eq!((counts.len(), &counts["others"]), (129, &(5000 - 128).into()));
}

/// Returns the names of the files in a folder.
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
    // Two processes run one after the other.
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
    // The program presents more frames than are written.
    let output = run("host flips 10003");
    let said = text(&output.stderr);
    assert_eq!((output.status.code(), files(&folder).len()), (Some(0), 10_000), "{said}");
    assert!(said.contains("drm-frames: 3 frames shown but not written"), "{said}");
    // The disk does not have room for any frame.
    let output = run("host flips 3 8192");
    let said = text(&output.stderr);
    assert_eq!((output.status.code(), files(&folder).len()), (Some(2), 0), "{said}");
    assert_eq!(said.matches("frames are not written: File too large").count(), 1, "{said}");
    assert!(said.contains("error: incompletely written: frames (3)"), "{said}");
    let _ = std::fs::remove_dir_all(&folder);
}

#[test]
fn a_recording_has_every_frame_also_of_a_program_that_was_killed() {
    let Some(host) = HOST.as_ref().filter(|_| has_driver()) else { return };
    let folder = fresh("drm-record");
    let record = folder.join("a.y4m");
    let run = |line: &str| {
        let options = ["--chip", "rv770", "--record", record.to_str().unwrap(), "--", "sh", "-c"];
        drm(&options).arg(line.replace("host", host.to_str().unwrap())).output().unwrap()
    };
    let output = run("host video; host flips 2");
    let said = text(&output.stderr);
    assert_eq!(output.status.code(), Some(0), "{said}");
    // The colours follow BT.601.
    let header =
        |size: &str| format!("YUV4MPEG2 {size} F60:1 Ip A1:1 C444 XCOLORRANGE=LIMITED\n").into_bytes();
    let frame = |pixels: usize, color: [u8; 3]| {
        [b"FRAME\n".to_vec(), color.into_iter().flat_map(|sample| vec![sample; pixels]).collect()].concat()
    };
    let (red, blue, green, black) = ([81, 90, 240], [41, 240, 110], [145, 54, 34], [16, 128, 128]);
    for (name, size, pixels, colors) in [
        ("a.y4m", "W64 H48", 64 * 48, &[red, blue][..]),
        ("a-2.y4m", "W32 H16", 32 * 16, &[green]),
        ("a-3.y4m", "W64 H64", 64 * 64, &[black, black]),
    ] {
        let expected: Vec<_> =
            [header(size)].into_iter().chain(colors.iter().map(|color| frame(pixels, *color))).collect();
        assert!(std::fs::read(folder.join(name)).unwrap() == expected.concat(), "{name}");
        let note = format!("{name}: {} frame", colors.len());
        assert!(said.contains(&note), "{note}: {said}");
    }
    refuses(&run("true"), &["a.y4m: a.y4m exists; name a new file"]);
    // The disk does not have room for any frame.
    for name in files(&folder) {
        std::fs::remove_file(folder.join(name)).unwrap();
    }
    let output = run("host flips 3 8192");
    let said = text(&output.stderr);
    assert_eq!((output.status.code(), files(&folder).len()), (Some(2), 0), "{said}");
    assert_eq!(said.matches("a.y4m: frames are not recorded: File too large").count(), 1, "{said}");
    assert!(said.contains("error: incompletely written: recorded frames (3)"), "{said}");
}

#[test]
fn frames_reach_the_socket_of_a_window_and_a_program_outlives_it() {
    let folder = fresh("drm-window");
    // The folder has a short path, because the path of a socket has up to 107 bytes.
    let sockets = std::env::temp_dir().join(format!("reconverge-test-window-{}", std::process::id()));
    std::fs::create_dir_all(&sockets).unwrap();
    let listener = std::os::unix::net::UnixListener::bind(sockets.join(FRAMES)).unwrap();
    let run = || {
        let mut command = host(&folder.join("report"), &["flips", "3"])?;
        Some(command.env("RECONVERGE_DRM_WINDOW", &sockets).spawn().unwrap())
    };
    let Some(mut program) = run() else { return };
    // A program that fails does not connect.
    listener.set_nonblocking(true).unwrap();
    let mut next = || loop {
        let ended = program.try_wait().unwrap();
        match listener.accept() {
            Ok((stream, _)) => break stream,
            Err(_) => assert_eq!(ended, None, "the program ended before its last frame"),
        }
        std::thread::sleep(std::time::Duration::from_millis(5));
    };
    for _ in 0..3 {
        let mut bytes = Vec::new();
        next().read_to_end(&mut bytes).unwrap();
        let (header, pixels) = bytes.split_first_chunk().unwrap();
        let header = FrameHeader::from_bytes(header).unwrap();
        assert_eq!((header.size, header.resets, header.unknown), ([64, 64], 0, 0));
        assert!(pixels == [0; 4 * 64 * 64]);
    }
    assert_eq!(program.wait().unwrap().code(), Some(0));
    drop(listener);
    assert_eq!(run().unwrap().wait().unwrap().code(), Some(0));
    std::fs::remove_dir_all(sockets).unwrap();
}

#[test]
fn without_a_window_system_nothing_is_run() {
    let folder = fresh("drm-no-window");
    let mut command = drm(&["--chip", "rv770", "--screen", "window", "--", "touch", "ran"]);
    for name in ["DISPLAY", "WAYLAND_DISPLAY", "WAYLAND_SOCKET"] {
        command.env_remove(name);
    }
    let output = command.current_dir(&folder).output().unwrap();
    refuses(&output, &["neither DISPLAY nor WAYLAND_DISPLAY is set; --screen DIR and --record FILE"]);
    assert_eq!(files(&folder), [""; 0]);
}

/// Mesa's `src/amd/drm-shim/README.md`: a preloaded library and an environment variable suffice.
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
    assert!(said.contains("NOUVEAU_CHIPSET: e4: expected one of 50, 84,"), "{said}");
}
