//! Compute programs of OpenGL ES 3.1 on Mesa's driver and an emulated chip.
//!
//! The programs in `tests/compute` are compiled to one C program. They compare every word with a direct evaluation.
//! Mesa's driver has faults. The tests list the programs that each fault breaks, so that a failure of any other
//! program is noticed.

#![cfg(target_os = "linux")]

mod driver;

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use std::sync::LazyLock;

use driver::{fresh, has_driver, on_driver, reconverge, text};
use serde_json::Value;

/// The version of Mesa whose faults are listed here.
const MESA: &str = "Mesa 22.3.";

/// Programs that the driver miscompiles or uploads partially, with the lines that they print.
/// `tests/compute/faults.c` names the faults.
const MISCOMPILED: [&str; 3] = [
    "folded_conversion: word 0 is 0x1, expected 0x0; 1 of 1 words differ",
    "high_words: word 1 is 0x9e343d40, expected 0x9e353d40; 129 of 256 words differ",
    "long_code: word 0 is 0xcafef00d, expected 0x0; 64 of 64 words differ",
];

/// Programs whose `shared` variables overlap the hardware's words (F2), with a visible effect. In other programs the
/// variables also overlap, but the words are not used after they are overwritten.
const OVER_THE_HEADER: [&str; 8] = [
    "bitonic_sort",
    "full_block",
    "matrix_multiply",
    "odd_barrier",
    "prefix_sum",
    "shared_atomics",
    "shared_sum",
    "shared_transpose",
];

/// Programs that return to a program after another one has run (F4).
const RETURNING: [&str; 3] = ["a_b_a", "a_b_a_sizes", "programs_alternate"];

/// A program whose result depends on the memory after an image (F11). Without the option, it runs alone.
const AFTER_AN_IMAGE: &str = "image_rows";

/// A program that relies on shift counts modulo 32 (F9).
const SHIFTING: &str = "masked_shifts";

/// The option that works around the driver's faults.
const FIXED: [&str; 2] = ["--driver-fixes", "nv50-compute"];

/// The C program, or `None` if something is not installed; a message is then printed.
static SUITE: LazyLock<Option<PathBuf>> = LazyLock::new(|| {
    if !has_driver() {
        return None;
    }
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join("compute");
    std::fs::create_dir_all(&folder).unwrap();
    let sources = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/compute");
    let sources = std::fs::read_dir(sources).unwrap().map(|entry| entry.unwrap().path());
    let sources = sources.filter(|path| path.extension().is_some_and(|extension| extension == "c"));
    // Several test processes may compile the program at the same time.
    let (made, suite) = (folder.join(format!("suite-{}", std::process::id())), folder.join("suite"));
    let mut compiler = Command::new("cc");
    compiler.args(["-O1", "-o"]).arg(&made).args(sources).args(["-l:libEGL.so.1", "-l:libGLESv2.so.2"]);
    let Ok(compiled) = compiler.output() else {
        println!("skipped: cc is not installed: apt-get install gcc libc6-dev");
        return None;
    };
    let said = text(&compiled.stderr);
    for (part, packages) in
        [("EGL/egl.h", "libegl-dev"), ("GLES3/gl31.h", "libgles-dev"), ("libGLESv2.so.2", "libgles2")]
    {
        if said.contains(part) {
            println!("skipped: {part} is not installed: apt-get install {packages}");
            return None;
        }
    }
    assert!(compiled.status.success(), "{said}");
    std::fs::rename(made, &suite).unwrap();
    let version = on_chip("gt215", &[], &suite).arg("--version").output().unwrap();
    let version = text(&version.stdout);
    if !version.contains(MESA) {
        println!("skipped: the faults are those of {MESA}x, and this is {version}");
        return None;
    }
    Some(suite)
});

/// Returns a command that runs the C program with `reconverge drm` and these options.
fn on_chip(chip: &str, options: &[&str], suite: &Path) -> Command {
    let mut command = on_driver("drm");
    command.args(["--chip", chip]).args(options).arg("--").arg(suite);
    command
}

/// Returns the names of all programs.
fn names(suite: &Path) -> Vec<String> {
    let listed = text(&Command::new(suite).arg("--list").output().unwrap().stdout);
    listed.lines().map(str::to_owned).collect()
}

/// Returns the line of each failed program, by name. Checks that each of `names` has a line, and that the exit status
/// is the number of failures.
#[track_caller]
fn failures(output: &Output, names: &[String]) -> BTreeMap<String, String> {
    let (stdout, said) = (text(&output.stdout), text(&output.stderr));
    let lines: Vec<(&str, &str)> = stdout.lines().filter_map(|line| line.split_once(": ")).collect();
    assert_eq!(lines.iter().map(|(name, _)| *name).collect::<Vec<_>>(), names, "{stdout}{said}");
    let failed = lines.into_iter().filter(|(_, result)| *result != "ok");
    let failed: BTreeMap<String, String> =
        failed.map(|(name, result)| (name.to_owned(), format!("{name}: {result}"))).collect();
    assert_eq!(output.status.code(), Some(failed.len() as i32), "{stdout}{said}");
    failed
}

/// A run of all programs on GT215 with workarounds for the driver's faults.
struct Fixed {
    suite: &'static Path,
    output: Output,
    /// The folder with each program that ran.
    programs: PathBuf,
}

static ALL_FIXED: LazyLock<Option<Fixed>> = LazyLock::new(|| {
    let suite = SUITE.as_deref()?;
    let programs = fresh("compute-programs");
    let options = [&FIXED[..], &["--programs", programs.to_str().unwrap()]].concat();
    let output = on_chip("gt215", &options, suite).args(names(suite)).output().unwrap();
    Some(Fixed { suite, output, programs })
});

#[test]
fn with_the_drivers_faults_handled_every_program_passes_except_those_that_it_compiles_wrongly() {
    let Some(Fixed { suite, output, .. }) = &*ALL_FIXED else { return };
    let failed = failures(output, &names(suite));
    assert_eq!(failed.values().map(String::as_str).collect::<Vec<_>>(), MISCOMPILED);
    let said = text(&output.stderr);
    // The driver uploads only a part of the code of `long_code`.
    assert_eq!(said.matches("the chip is reset").count(), 1, "{said}");
    assert!(said.contains("compute program of 16385 words: trap at 0x10000"), "{said}");
}

/// On the emulated chip, the driver behaves as on real hardware.
#[test]
fn without_the_option_the_programs_that_the_drivers_faults_break_fail_and_the_faults_are_named() {
    let Some(suite) = SUITE.as_deref() else { return };
    let mut names = names(suite);
    names.retain(|name| name != AFTER_AN_IMAGE);
    let output = on_chip("gt215", &[], suite).args(&names).output().unwrap();
    let failed: BTreeSet<String> = failures(&output, &names).into_keys().collect();
    let miscompiled = MISCOMPILED.iter().map(|line| line.split(':').next().unwrap());
    let broken = miscompiled.chain(OVER_THE_HEADER).chain(RETURNING).chain([SHIFTING]).map(str::to_owned);
    assert_eq!(failed, broken.collect::<BTreeSet<_>>());
    let said = text(&output.stderr);
    for (fault, file) in
        [("F1: ", "nv50_screen.c"), ("F2: ", "nv50_ir_from_nir.cpp"), ("F4: ", "nv50_program.c")]
    {
        let mut lines = said.lines().filter(|line| line.contains(fault));
        assert!(lines.next().is_some_and(|line| line.contains(file)), "{fault}{file}: {said}");
        assert_eq!(lines.next(), None, "each fault is named once");
    }
    assert!(!said.contains("methods of subchannel 6"), "{said}");
}

/// The C program itself moves the variables, and the programs pass. They have no other fault.
#[test]
fn programs_with_variables_behind_the_words_of_the_hardware_pass_without_the_option() {
    let Some(suite) = SUITE.as_deref() else { return };
    let names = OVER_THE_HEADER.map(str::to_owned);
    let listed: Vec<String> = self::names(suite).into_iter().filter(|name| names.contains(name)).collect();
    let output = on_chip("gt215", &[], suite).arg("--padded").args(names).output().unwrap();
    assert_eq!(failures(&output, &listed), BTreeMap::new());
}

/// F11: for an image without layers, the driver states 65536 rows. The program's addresses do not exceed them.
#[test]
fn without_the_option_a_program_that_reaches_memory_without_buffers_is_a_reset_of_the_chip() {
    let Some(suite) = SUITE.as_deref() else { return };
    let output = on_chip("gt215", &[], suite).arg(AFTER_AN_IMAGE).output().unwrap();
    let said = text(&output.stderr);
    assert_eq!(output.status.code(), Some(1), "{said}");
    for part in ["F11: ", "nv50_compute.c", "launch 1: compute program of ", "outside every buffer"] {
        assert!(said.contains(part), "{part}: {said}");
    }
}

#[test]
fn a_chip_without_compute_refuses_the_context_and_another_one_with_it_runs_programs() {
    let Some(suite) = SUITE.as_deref() else { return };
    let output = on_chip("gt218", &FIXED, suite).arg("shared_sum").output().unwrap();
    assert_eq!(failures(&output, &["shared_sum".to_owned()]), BTreeMap::new());
    let output = on_chip("g80", &FIXED, suite).arg("shared_sum").output().unwrap();
    let said = text(&output.stderr);
    assert!(said.contains("no context of OpenGL ES 3.1"), "{said}");
    assert_eq!((output.status.code(), text(&output.stdout)), (Some(125), String::new()), "{said}");
}

/// Shared variables and barriers; an image that three launches load and store.
#[test]
fn captured_launches_run_with_the_results_of_the_chip_on_every_engine() {
    let Some(suite) = SUITE.as_deref() else { return };
    let folder = fresh("compute-capture");
    let options = [&FIXED[..], &["--capture", folder.to_str().unwrap()]].concat();
    let names = ["shared_sum", "image_update"].map(str::to_owned);
    let output = on_chip("gt215", &options, suite).args(&names).output().unwrap();
    assert_eq!(failures(&output, &names), BTreeMap::new());
    let index = std::fs::read_to_string(folder.join("draws.jsonl")).unwrap();
    let draws = index.lines().map(|line| serde_json::from_str::<Value>(line).unwrap());
    let launches = draws.map(|draw| draw["launches"][0].clone());
    // The program draws the image at the end.
    let launches: Vec<Value> = launches.filter(|launch| launch["stage"] == "compute").collect();
    let lanes: Vec<&Value> = launches.iter().map(|launch| &launch["lanes"]).collect();
    assert_eq!(lanes, [1152, 4096, 4096, 4096], "{index}");
    let files: Vec<String> = launches
        .iter()
        .map(|launch| folder.join(launch["file"].as_str().unwrap()).to_str().unwrap().to_owned())
        .collect();
    for file in &files {
        for engine in ["reference", "fast", "compiled", "lockstep", "lockstep=reference,compiled"] {
            let output = reconverge(&["run", file, "--engine", engine]);
            assert_eq!(output.status.code(), Some(0), "{file} {engine}: {}", text(&output.stderr));
        }
    }

    // A changed expected word is a difference.
    let launch = std::fs::read_to_string(&files[0]).unwrap();
    let (_, expected) = launch.split_once("[[expect]]").unwrap();
    let (_, values) = expected.split_once("values = \"").unwrap();
    let values = folder.join(values.split(':').next().unwrap());
    let mut bytes = std::fs::read(&values).unwrap();
    bytes[0] ^= 1;
    std::fs::write(&values, bytes).unwrap();
    let output = reconverge(&["run", &files[0]]);
    assert_eq!(output.status.code(), Some(1), "{}", text(&output.stdout));
}

/// Returns the compute programs in a folder.
fn compute_programs(folder: &Path) -> Vec<String> {
    let files = std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
    let mut files: Vec<String> = files.map(|path| path.to_str().unwrap().to_owned()).collect();
    files.retain(|file| file.contains("-compute-"));
    files.sort();
    files
}

/// Converts words to text and back to words, through files.
#[test]
fn text_of_a_compute_program_is_assembled_to_its_words() {
    let Some(Fixed { programs, .. }) = &*ALL_FIXED else { return };
    let folder = fresh("compute-text");
    let (hex, source) = (folder.join("program.hex"), folder.join("program.s"));
    let files = compute_programs(programs);
    assert!(files.len() > 140, "{}", files.len());
    let said = |arguments: &[&str]| {
        let output = reconverge(arguments);
        assert_eq!(output.status.code(), Some(0), "{arguments:?}: {}", text(&output.stderr));
        output.stdout
    };
    for file in &files {
        let words = said(&["asm", file]);
        std::fs::write(&hex, &words).unwrap();
        std::fs::write(&source, said(&["dis", hex.to_str().unwrap()])).unwrap();
        assert!(said(&["asm", source.to_str().unwrap()]) == words, "{file}");
    }
}

/// In every program, `lint` finds the fault that breaks `high_words`: a carry that is read and not stored. It also
/// finds F2 if a variable has a fixed address, and the end of partially uploaded code.
#[test]
fn findings_in_compute_programs_are_those_of_the_drivers_faults() {
    let Some(Fixed { programs, .. }) = &*ALL_FIXED else { return };
    let files = compute_programs(programs);
    let mut arguments = vec!["lint", "--json"];
    arguments.extend(files.iter().map(String::as_str));
    let output = reconverge(&arguments);
    let found: Value = serde_json::from_slice(&output.stdout).unwrap();
    let mut rules = BTreeSet::new();
    for finding in found["findings"].as_array().unwrap() {
        let said = ["rule", "severity", "text", "address"].map(|name| finding[name].as_str().unwrap());
        let [rule, severity, text, address] = said;
        rules.insert((rule, severity));
        let is_known = match rule {
            "unwritten" => text.starts_with("(c $c"),
            "shared-header" => text.contains("s[0x0]"),
            "malformed" => address == "0x10000",
            _ => false,
        };
        assert!(is_known, "{finding}");
    }
    let expected = [("malformed", "error"), ("shared-header", "warning"), ("unwritten", "warning")];
    assert_eq!(rules, BTreeSet::from(expected));
}
