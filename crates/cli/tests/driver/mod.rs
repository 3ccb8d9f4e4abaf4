//! Helpers for tests of commands that preload the driver library.
//!
//! The command does not depend on the library, so cargo builds it for the tests. If Mesa's driver is not installed,
//! the tests that start a program print a message and pass.

#![allow(dead_code, reason = "each test uses a part of it")]

use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::sync::LazyLock;

/// The path in RECONVERGE_DRM_LIBRARY, or the path of a library that is built in the profile of the command.
pub(crate) static LIBRARY: LazyLock<PathBuf> =
    LazyLock::new(|| built("RECONVERGE_DRM_LIBRARY", "reconverge-drm", "libreconverge_drm.so"));

/// Returns the path in an environment variable, or the path of a file that cargo builds in the profile of the
/// command.
pub(crate) fn built(variable: &str, package: &str, file: &str) -> PathBuf {
    if let Some(built) = std::env::var_os(variable) {
        return built.into();
    }
    let folder = Path::new(env!("CARGO_BIN_EXE_reconverge")).parent().unwrap();
    let mut cargo = Command::new(env!("CARGO"));
    cargo.args(["build", "--quiet", "-p", package, "--target-dir"]).arg(folder.parent().unwrap());
    if folder.ends_with("release") {
        cargo.arg("--release");
    }
    assert!(cargo.current_dir(env!("CARGO_MANIFEST_DIR")).status().unwrap().success());
    folder.join(file)
}

/// Returns a command of `reconverge` with the library and without the environment variables that the library reads.
pub(crate) fn on_driver(name: &str) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_reconverge"));
    for name in ["RECONVERGE_DRM_REPORT", "LD_PRELOAD", "LIBGL_DRIVERS_PATH", "EGL_PLATFORM"] {
        command.env_remove(name);
    }
    command.env("RECONVERGE_DRM_LIBRARY", &*LIBRARY).arg(name).stdin(Stdio::null());
    command
}

/// Returns the output of a program as text.
pub(crate) fn text(bytes: &[u8]) -> String {
    String::from_utf8(bytes.to_vec()).unwrap()
}

/// Asserts that the exit status is 2 and that the message contains these words.
#[track_caller]
pub(crate) fn refuses(output: &Output, words: &[&str]) {
    let said = text(&output.stderr);
    assert_eq!(output.status.code(), Some(2), "{said}");
    for word in words {
        assert!(said.contains(word), "{word}: {said}");
    }
}

/// Returns whether Mesa's driver is installed. Prints a line if it is not.
pub(crate) fn has_driver() -> bool {
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

/// Returns an empty folder inside the folder of cargo's tests.
pub(crate) fn fresh(name: &str) -> PathBuf {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join(name);
    let _ = std::fs::remove_dir_all(&folder);
    std::fs::create_dir_all(&folder).unwrap();
    folder
}

/// Runs `reconverge` and returns its output.
pub(crate) fn reconverge(arguments: &[&str]) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_reconverge"));
    command.args(arguments).stdin(Stdio::null()).output().unwrap()
}
