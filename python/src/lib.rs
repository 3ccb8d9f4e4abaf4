//! What the Python package `reconverge` has in Rust: the workbench, with numpy arrays in and out.
//!
//! The Python half (`reconverge/*.py`) has the classes that a user sees; this half does what needs the machines. Data that
//! is looked at rather than computed with (explanations, counts, findings) crosses as JSON text; numbers cross as numpy
//! arrays on buffers that Rust made, without a copy. Runs release the interpreter's lock.
//!
//! * [`mod@program`]: files to programs; listings, explanations, findings, graphs.
//! * [`mod@launch`]: a program with what it starts from; runs, counts, reports.
//! * [`mod@prepared`]: what the runs and sessions of a launch share.
//! * [`mod@observe`]: what happens in a run, in batches of arrays.
//! * [`mod@session`]: a launch that is stepped.
//! * [`mod@campaign`]: campaigns and their shards.
//! * [`mod@array`]: numpy arrays and the workbench's. [`mod@errors`]: exceptions.
//!
//! # Features
//!
//! * `every-level` (off): vector code of the fast engine for every x86-64 processor and for AVX-512, not only for AVX2.
//! * `full` (off): `every-level`, with the libraries as the command has them, so that a build of both compiles them once.

#![forbid(unsafe_code)]

mod array;
mod campaign;
mod errors;
mod launch;
mod observe;
mod prepared;
mod program;
mod session;

/// The module that `reconverge/*.py` imports.
#[pyo3::pymodule]
mod _native {
    #[pymodule_export]
    use super::campaign::Campaign;
    #[pymodule_export]
    use super::launch::{Launch, kernel, launch, launch_file, relaunch};
    #[pymodule_export]
    use super::observe::{OneEvent, event_kinds};
    #[pymodule_export]
    use super::program::{Program, chips, explain, isa_of_chip, mnemonics, open, reopen};
    #[pymodule_export]
    use super::session::{Session, Snapshot};

    /// The version of the package.
    #[pymodule_export]
    #[expect(non_upper_case_globals, reason = "Python's name")]
    const __version__: &str = env!("CARGO_PKG_VERSION");
}
