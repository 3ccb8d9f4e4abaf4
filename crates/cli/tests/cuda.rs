//! `reconverge cuda`: programs of CUDA's driver API on the emulated chips.
//!
//! `tests/cuda/driver.c` needs a C compiler. `tests/cuda/bindings.py` needs the Python packages cuda-bindings,
//! cuda-core and numpy, in the interpreter that RECONVERGE_CUDA_PYTHON names. If the tools of a test are not
//! installed, the test prints a message and passes.

#![cfg(target_os = "linux")]

mod driver;

use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::sync::LazyLock;

use driver::{fresh, reconverge, refuses, text};

/// The path in RECONVERGE_CUDA_LIBRARY, or the path of a library that is built in the profile of the command.
static LIBRARY: LazyLock<PathBuf> =
    LazyLock::new(|| driver::built("RECONVERGE_CUDA_LIBRARY", "reconverge-cuda", "libreconverge_cuda.so"));

/// Returns a command of `reconverge cuda`.
fn on_chip(chip: &str) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_reconverge"));
    command.env("RECONVERGE_CUDA_LIBRARY", &*LIBRARY).args(["cuda", "--chip", chip]).stdin(Stdio::null());
    command.env_remove("CUDA_VISIBLE_DEVICES");
    command
}

fn tests() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/cuda")
}

/// A folder with the program and its kernels as a text cubin and as an ELF cubin, or `None` without a C compiler.
static PROGRAM: LazyLock<Option<PathBuf>> = LazyLock::new(|| {
    let folder = fresh("cuda-driver");
    std::os::unix::fs::symlink(&*LIBRARY, folder.join("libcuda.so")).unwrap();
    let mut compiler = Command::new("cc");
    compiler.args(["-O1", "-pthread", "-o"]).arg(folder.join("driver")).arg(tests().join("driver.c"));
    let Ok(status) = compiler.arg("-L").arg(&folder).arg("-lcuda").status() else {
        println!("skipped: cc is not installed: apt-get install gcc libc6-dev");
        return None;
    };
    assert!(status.success(), "driver.c");
    let source = tests().join("kernels.s");
    for (name, format) in [("kernels.cubin", "cubin"), ("kernels.elf", "cubin-elf32")] {
        let (source, output) = (source.to_str().unwrap(), folder.join(name));
        let done = reconverge(&["asm", "-q", source, "--format", format, "-o", output.to_str().unwrap()]);
        assert!(done.status.success(), "{}", text(&done.stderr));
    }
    Some(folder)
});

/// Runs a claim of the program with both kinds of cubin. The program prints the first condition that does not hold.
#[track_caller]
fn holds(claim: &str, chip: &str) {
    let Some(folder) = &*PROGRAM else { return };
    for image in ["kernels.cubin", "kernels.elf"] {
        let output = claimed(folder, claim, chip, image);
        assert!(output.status.success(), "{claim} on {chip}, {image}: {}", text(&output.stderr));
    }
}

fn claimed(folder: &Path, claim: &str, chip: &str, image: &str) -> Output {
    let minor = match chip {
        "g80" => "0",
        "g84" => "1",
        "gt200" => "3",
        _ => "2",
    };
    let mut command = on_chip(chip);
    command.current_dir(folder).env("EXPECTED_MINOR", minor).args(["--", "./driver", claim, image]);
    command.output().unwrap()
}

/// CUDA driver API: the results that each function documents.
#[test]
fn wrong_arguments_have_the_documented_errors() {
    holds("wrong_arguments_have_the_documented_errors", "gt215");
}

#[test]
fn parameters_reach_the_kernel_in_every_way() {
    holds("parameters_reach_the_kernel_in_every_way", "gt215");
}

#[test]
fn variables_of_a_module_are_memory() {
    holds("variables_of_a_module_are_memory", "gt200");
}

#[test]
fn copies_and_fills_move_the_bytes_that_they_name() {
    holds("copies_and_fills_move_the_bytes_that_they_name", "gt215");
}

#[test]
fn textures_read_linear_memory_and_arrays() {
    holds("textures_read_linear_memory_and_arrays", "gt215");
}

#[test]
fn a_kernel_reaches_mapped_memory_of_the_host() {
    holds("a_kernel_reaches_mapped_memory_of_the_host", "gt215");
}

#[test]
fn a_trap_stays_until_the_context_ends_and_is_reported() {
    holds("a_trap_stays_until_the_context_ends", "gt215");
    let Some(folder) = &*PROGRAM else { return };
    let output = claimed(folder, "a_trap_stays_until_the_context_ends", "gt215", "kernels.elf");
    let said = text(&output.stderr);
    let expected = "kernel wild: trap at 0x8";
    assert!(said.contains(expected) && said.contains("write of 4 bytes at g14[] 0x10"), "{said}");
}

#[test]
fn streams_and_events_are_in_order() {
    holds("streams_and_events_are_in_order", "gt215");
}

#[test]
fn four_threads_use_four_streams_each() {
    holds("four_threads_use_four_streams_each", "gt215");
}

#[test]
fn contexts_are_a_stack_and_the_primary_one_counts() {
    holds("contexts_are_a_stack_and_the_primary_one_counts", "gt215");
}

/// CUDA driver API, `cuDevicePrimaryCtxReset`.
#[test]
fn a_reset_does_not_release_the_primary_context() {
    holds("a_reset_does_not_release_the_primary_context", "gt215");
}

#[test]
fn hostile_arguments_are_errors() {
    holds("hostile_arguments_are_errors", "gt215");
}

#[test]
fn a_stream_frees_memory_once() {
    holds("a_stream_frees_memory_once", "gt215");
}

#[test]
fn a_context_is_usable_at_exit() {
    holds("a_context_is_usable_at_exit", "gt215");
}

#[test]
fn a_child_loses_contexts_with_busy_streams() {
    holds("a_child_loses_contexts_with_busy_streams", "gt215");
}

#[test]
fn a_context_may_end_while_threads_use_it() {
    holds("a_context_may_end_while_threads_use_it", "gt215");
}

#[test]
fn attributes_are_those_of_the_chip() {
    for chip in ["g84", "gt215", "gt200"] {
        holds("attributes_are_those_of_the_chip", chip);
    }
}

#[test]
fn a_cubin_of_a_later_chip_is_refused_by_name() {
    let Some(folder) = &*PROGRAM else { return };
    let output = claimed(folder, "attributes_are_those_of_the_chip", "g80", "kernels.elf");
    let said = text(&output.stderr);
    assert!(said.contains("no program for sm_10 to sm_10") && said.contains("is 209, expected 0"), "{said}");
}

#[test]
fn a_function_that_is_missing_is_reported_once() {
    let Some(folder) = &*PROGRAM else { return };
    let output = claimed(folder, "wrong_arguments_have_the_documented_errors", "gt215", "kernels.elf");
    let said = text(&output.stderr);
    assert_eq!(said.matches("cuGraphCreate is not supported").count(), 1, "{said}");
}

/// The claims hold with every engine.
#[test]
fn every_engine_runs_kernels() {
    let Some(folder) = &*PROGRAM else { return };
    for engine in ["reference", "compiled", "lockstep"] {
        let mut command = on_chip("gt215");
        command.current_dir(folder).args(["--engine", engine, "--", "./driver"]);
        let output =
            command.args(["parameters_reach_the_kernel_in_every_way", "kernels.elf"]).output().unwrap();
        assert!(output.status.success(), "{engine}: {}", text(&output.stderr));
    }
}

#[test]
fn the_command_ends_as_its_program_and_removes_its_folder() {
    let folder = fresh("cuda-command");
    let ends = |script: &str| {
        let mut command = on_chip("gt215");
        command.env("TMPDIR", &folder).args(["--", "sh", "-c", script]).output().unwrap()
    };
    let output = ends("ls -1 ${LD_LIBRARY_PATH%%:*}; echo $RECONVERGE_CUDA_CHIP; exit 7");
    assert_eq!(
        (output.status.code(), &text(&output.stdout)[..]),
        (Some(7), "libcuda.so\nlibcuda.so.1\nGT215\n")
    );
    let output = ends("kill -TERM $$");
    assert_eq!(output.status.code(), Some(128 + 15));
    assert_eq!(std::fs::read_dir(&folder).unwrap().count(), 0);
}

#[test]
fn wrong_chips_programs_and_libraries_are_named() {
    let refused = |chip: &str, program: &str| on_chip(chip).args(["--", program]).output().unwrap();
    refuses(&refused("gt999", "true"), &["unknown chip `gt999`"]);
    refuses(&refused("rv770", "true"), &["rv770", "r700"]);
    refuses(&refused("gt215", "./no-such-program"), &["./no-such-program"]);
    let mut command = on_chip("gt215");
    let output =
        command.env("RECONVERGE_CUDA_LIBRARY", "/nonexistent").args(["--", "true"]).output().unwrap();
    refuses(
        &output,
        &["RECONVERGE_CUDA_LIBRARY names /nonexistent", "cargo build --release -p reconverge-cuda"],
    );
}

/// Kernels that `cuda.bindings` and `cuda.core` launch return the results of `reconverge run`.
#[test]
fn python_gives_the_results_of_run() {
    let python = std::env::var("RECONVERGE_CUDA_PYTHON").unwrap_or_else(|_| "python3".to_owned());
    let has = Command::new(&python).args(["-c", "import cuda.bindings, cuda.core, numpy"]).output();
    if !has.is_ok_and(|output| output.status.success()) {
        println!(
            "skipped: {python} has no cuda-bindings, cuda-core and numpy: pip install cuda-core cuda-bindings numpy"
        );
        return;
    }
    for chip in ["gt215", "gt200"] {
        let mut command = on_chip(chip);
        command.args(["--", &python]).arg(tests().join("bindings.py")).arg(env!("CARGO_BIN_EXE_reconverge"));
        let output = command.arg(chip).output().unwrap();
        println!("{}", text(&output.stdout));
        assert!(output.status.success(), "{chip}: {}", text(&output.stderr));
    }
}
