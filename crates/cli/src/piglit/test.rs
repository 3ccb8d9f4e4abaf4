//! A test of piglit.

use std::ffi::OsString;

/// Options of a test that opens a window.
pub(super) const AUTO: &[&str] = &["-auto"];
/// Options of a test that does not open a window.
pub(super) const AUTO_FBO: &[&str] = &["-auto", "-fbo"];

/// A test: its name in deqp-runner's lists, and its command.
#[derive(Clone, Debug, Default)]
pub(super) struct Test {
    pub(super) name: String,
    /// The program, as a file name in piglit's `bin`.
    pub(super) program: String,
    pub(super) arguments: Vec<OsString>,
    /// The options after the arguments.
    pub(super) options: &'static [&'static str],
    /// Environment variables that the test needs.
    pub(super) environment: Vec<(String, String)>,
    /// Data for running the test together with other tests in one process. The value is `None` if the test needs its
    /// own process.
    pub(super) shared: Option<Sharing>,
    /// The reason why the test cannot run, if the test cannot run.
    pub(super) skipped: Option<String>,
}

/// Properties of a test of `shader_runner`, which can run several tests in one process.
#[derive(Clone, Debug)]
pub(super) struct Sharing {
    /// The name of the test in the output of a process with several tests.
    pub(super) stem: String,
    /// Text that identifies the needs of the test. Tests with equal texts may share a process.
    pub(super) needs: String,
}
