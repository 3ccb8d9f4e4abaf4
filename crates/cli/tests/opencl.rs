//! Tests of `reconverge opencl`: OpenCL C through Mesa's rusticl on an emulated chip.

#![cfg(target_os = "linux")]

mod driver;

use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use driver::{fresh, on_driver, reconverge, refuses, text};

/// Returns the compiled program with kernels of many forms.
fn forms(folder: &Path) -> Option<PathBuf> {
    compiled(folder, "../../scripts/peers/forms.c")
}

/// Compiles a C program of this crate. If Mesa's OpenCL or a compiler is not installed, prints a message and returns
/// `None`.
fn compiled(folder: &Path, source: &str) -> Option<PathBuf> {
    let installed =
        ["/etc/OpenCL/vendors/rusticl.icd", "/usr/lib/clc/spirv-mesa3d-.spv", "/usr/include/CL/cl.h"];
    if let Some(absent) = installed.into_iter().find(|path| !Path::new(path).exists()) {
        println!(
            "skipped: no {absent}: apt-get install mesa-opencl-icd libclc-15 ocl-icd-opencl-dev libdrm-nouveau2"
        );
        return None;
    }
    let program = folder.join("program");
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join(source);
    let mut compiler = Command::new("cc");
    compiler.args(["-O1", "-o"]).arg(&program).arg(source).arg("-lOpenCL");
    match compiler.status() {
        Ok(status) => assert!(status.success()),
        Err(error) => {
            println!("skipped: cc: {error}");
            return None;
        }
    }
    Some(program)
}

fn opencl(options: &[&str], program: &Path, arguments: &[&str]) -> Output {
    let mut command = on_driver("opencl");
    command.env_remove("OCL_ICD_VENDORS");
    command.args(options).arg("--").arg(program).args(arguments).output().unwrap()
}

#[test]
fn chips_without_a_driver_for_opencl_are_refused() {
    let refused = on_driver("opencl").args(["--chip", "rv770", "--", "true"]).output().unwrap();
    refuses(&refused, &["--chip rv770: expected an NVIDIA chip"]);
    refuses(
        &reconverge(&["opencl", "--chip", "gt2155", "--", "true"]),
        &["unknown --chip `gt2155`", "did you mean `gt215`?"],
    );
}

#[test]
fn kernels_of_many_forms_have_the_results_of_c() {
    let folder = fresh("opencl-forms");
    let Some(program) = forms(&folder) else { return };
    for engine in [&[][..], &["--engine", "lockstep"]] {
        let output = opencl(engine, &program, &[]);
        let (said, messages) = (text(&output.stdout), text(&output.stderr));
        assert!(output.status.success(), "{said}\n{messages}");
        assert_eq!(said.lines().count(), 18, "{said}");
        assert!(said.lines().all(|line| line.contains("the same")), "{said}");
        for fault in ["F2: ", "F3: ", "F5: ", "F6: "] {
            assert!(messages.contains(fault), "{fault}{messages}");
        }
    }
}

#[test]
fn without_the_fixes_a_kernel_does_what_its_words_say() {
    let folder = fresh("opencl-silicon");
    let Some(program) = forms(&folder) else { return };
    let output = opencl(&["--no-driver-fixes"], &program, &["scalars"]);
    assert_eq!(output.status.code(), Some(1));
    assert!(text(&output.stdout).contains("differ"), "{}", text(&output.stdout));
    assert!(text(&output.stderr).contains("F2: "), "{}", text(&output.stderr));
}

#[test]
fn a_captured_launch_runs_again_and_programs_are_words_text_and_words_again() {
    let folder = fresh("opencl-captured");
    let Some(program) = forms(&folder) else { return };
    let (captured, programs) = (folder.join("captured"), folder.join("programs"));
    let [captured, programs] = [&captured, &programs].map(|folder| folder.to_str().unwrap());
    let output = opencl(&["--capture", captured, "--programs", programs], &program, &["smalls"]);
    assert!(output.status.success(), "{}", text(&output.stderr));
    let launch = Path::new(captured).join("draw-0001.compute.toml");
    let again = reconverge(&["run", launch.to_str().unwrap()]);
    assert!(again.status.success(), "{}", text(&again.stderr));
    let file = std::fs::read_dir(programs).unwrap().next().unwrap().unwrap().path();
    let checked = reconverge(&["check", file.to_str().unwrap()]);
    assert!(checked.status.success(), "{}", text(&checked.stdout));
}

/// F5: in a compute program, the words of an argument with an index are not an instruction. In a launch with the
/// driver's fixes, they are a load of s[], and `lint` accepts them.
#[test]
fn lint_accepts_an_argument_with_an_index_in_a_launch_with_fixes() {
    let folder = fresh("opencl-indexed");
    let Some(program) = forms(&folder) else { return };
    let captured = folder.join("captured");
    let output = opencl(&["--capture", captured.to_str().unwrap()], &program, &["indexed"]);
    assert!(output.status.success(), "{}", text(&output.stderr));
    let launch = captured.join("draw-0001.compute.toml");
    let found = reconverge(&["lint", launch.to_str().unwrap()]);
    // A product that loses a carry remains (F13).
    assert!(!text(&found.stdout).contains("malformed"), "{}", text(&found.stdout));
    let words = std::fs::read_to_string(&launch).unwrap().replace("driver_fixes", "# driver_fixes");
    std::fs::write(&launch, words).unwrap();
    let found = reconverge(&["lint", launch.to_str().unwrap()]);
    assert!(text(&found.stdout).contains("malformed"), "{}", text(&found.stdout));
}

/// The pairs of engines that run in lockstep.
const ENGINES: [&str; 2] = ["lockstep", "lockstep=reference,compiled"];

/// The start of a message about a difference.
const DIFFERENCE: &str = "the engines differ";

/// Checks Mesa's programs for the kernels of the suite. Their words become text and the same words again. In a launch
/// with the driver's fixes, `lint` has no finding. The engines agree with these fixes and without them.
#[test]
fn kernels_of_the_suite_are_the_same_as_text_and_on_all_engines() {
    let folder = fresh("opencl-suite");
    let Some(program) = compiled(&folder, "tests/opencl/suite.c") else { return };
    let path = |name: &str| folder.join(name).to_str().unwrap().to_owned();
    let (captured, programs) = (path("captured"), path("programs"));
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../scripts/peers/suite.cl");
    let kernels = text(&std::fs::read(&source).unwrap()).matches("kernel void").count();
    let kept = ["--capture", &captured, "--programs", &programs];
    for (engine, options) in [(ENGINES[0], &kept[..]), (ENGINES[1], &[])] {
        let options = [&["--engine", engine], options].concat();
        let output = opencl(&options, &program, &[source.to_str().unwrap()]);
        let messages = text(&output.stderr);
        assert!(output.status.success() && !messages.contains(DIFFERENCE), "{messages}");
        assert_eq!(text(&output.stdout).lines().count(), kernels);
    }

    let said = |arguments: &[&str]| {
        let output = reconverge(arguments);
        assert!(output.status.success(), "{arguments:?}: {}{}", text(&output.stdout), text(&output.stderr));
        output.stdout
    };
    let files = |folder: &str, ending: &str| {
        let files = std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
        let mut files: Vec<String> = files.map(|path| path.to_str().unwrap().to_owned()).collect();
        files.retain(|path| path.ends_with(ending));
        files.sort();
        assert_eq!(files.len(), kernels, "{folder}");
        files
    };
    let (hex, again) = (path("program.hex"), path("program.s"));
    for file in files(&programs, ".s") {
        let words = said(&["asm", &file]);
        std::fs::write(&hex, &words).unwrap();
        std::fs::write(&again, said(&["dis", &hex])).unwrap();
        assert!(said(&["asm", &again]) == words, "{file}");
    }

    let launches = files(&captured, ".compute.toml");
    let mut lint = vec!["lint"];
    lint.extend(launches.iter().map(String::as_str));
    let found = text(&said(&lint));
    assert_eq!(found.lines().last().unwrap(), format!("{kernels} programs: 0 errors, 0 warnings, 0 notes"));
    let silicon = |launch: &String, engine: &str| {
        let words = std::fs::read_to_string(launch).unwrap();
        let words = words.replace("driver_fixes = \"nv50-compute\"\n", "");
        let (words, _) = words.split_once("[[expect]]").unwrap();
        let file = launch.replace(".compute.toml", ".silicon.toml");
        std::fs::write(&file, words).unwrap();
        let output = reconverge(&["run", &file, "--engine", engine, "--rows", "1"]);
        // A kernel without its arguments may access memory outside of its buffers.
        let messages = text(&output.stderr);
        assert!(output.status.success() || messages.contains("trap"), "{file}: {messages}");
        assert!(!messages.contains(DIFFERENCE), "{file}: {messages}");
    };
    let (some, others) = launches.split_at(kernels / 2);
    std::thread::scope(|scope| {
        for (launches, engine) in [some, others].into_iter().zip(ENGINES) {
            scope.spawn(move || launches.iter().for_each(|launch| silicon(launch, engine)));
        }
    });
}
