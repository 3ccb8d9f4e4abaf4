//! A memory fault in generated code is an error with its position and does not end the process.

#![cfg(all(target_arch = "x86_64", target_os = "linux"))]

use std::process::Command;

use reconverge_simt::level::Kind;
use reconverge_simt::{Engine, Level};

/// Runs a command and returns its exit status and messages. With `faults`, every register access of generated code is
/// a fault, which requires debug assertions.
fn run(arguments: &str, faults: bool) -> (Option<i32>, String) {
    let mut command = Command::new(env!("CARGO_BIN_EXE_reconverge"));
    command.args(arguments.split_whitespace());
    if faults {
        command.env("RECONVERGE_FAULT", "1");
    }
    let output = command.output().unwrap();
    (output.status.code(), String::from_utf8(output.stderr).unwrap())
}

#[test]
fn a_fault_of_generated_code_is_an_internal_error_with_engine_and_address() {
    if !cfg!(debug_assertions) || Level::best().kind() < Kind::Avx2 {
        return;
    }
    for isa in ["r500", "r700", "tesla"] {
        for engine in [Engine::Compiled, Engine::LockstepCompiled] {
            let arguments = format!("bench --isa {isa} --kernel mandel --engine {engine}");
            let (status, text) = run(&arguments, true);
            assert_eq!(status, Some(2), "{arguments}: {text}");
            let fault = "internal error of the compiled engine: the generated code that starts at ";
            assert!(text.contains(fault), "{text}");
        }
    }
}

#[test]
fn a_fault_of_generated_code_names_the_program() {
    if !cfg!(debug_assertions) || Level::best().kind() < Kind::Avx2 {
        return;
    }
    let file = concat!(env!("CARGO_MANIFEST_DIR"), "/../../corpus/tesla/loop-break.toml");
    let (status, text) = run(&format!("run {file} --engine compiled"), true);
    assert_eq!(status, Some(2), "{text}");
    let fault =
        "loop-break.toml: internal error of the compiled engine: the generated code that starts at 0x20 ";
    assert!(text.contains(fault), "{text}");
    assert_eq!(run(&format!("run {file} --engine fast"), true).0, Some(0));
    assert_eq!(run(&format!("run {file} --engine compiled"), false).0, Some(0));
}
