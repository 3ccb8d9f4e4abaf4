//! A test.

use std::ffi::OsString;

/// Options of a test that shows a window.
pub(super) const AUTO: &[&str] = &["-auto"];
/// Options of a test that shows no window.
pub(super) const AUTO_FBO: &[&str] = &["-auto", "-fbo"];

/// A test: its name in deqp-runner's lists, and its command.
#[derive(Clone, Debug, Default)]
pub(super) struct Test {
    pub(super) name: String,
    /// The program, a file in piglit's `bin`.
    pub(super) program: String,
    pub(super) arguments: Vec<OsString>,
    /// The options after the arguments.
    pub(super) options: &'static [&'static str],
    /// Variables that the test needs.
    pub(super) environment: Vec<(String, String)>,
    /// The needs of a test that can share a process.
    pub(super) shared: Option<Sharing>,
    /// The reason for which it cannot run.
    pub(super) skipped: Option<String>,
}

/// A test of `shader_runner`, which can run several in a process.
#[derive(Clone, Debug)]
pub(super) struct Sharing {
    /// The name of the test in the output of a process with several.
    pub(super) stem: String,
    /// Tests with equal needs may share a process.
    pub(super) needs: String,
}
