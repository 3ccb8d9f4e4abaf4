//! The Rust part of the Python package `reconverge`. This part is the workbench with numpy arrays as inputs and
//! outputs.
//!
//! The Python part (`reconverge/*.py`) has the classes that users see. The Rust part does the work that needs the
//! machines. The Rust part passes explanations, counts and findings as JSON text, because users only read them. The
//! Rust part passes numbers as numpy arrays without a copy. Rust allocates the buffers of these arrays. Python's
//! interpreter lock is released during runs.
//!
//! * [`mod@program`] opens files as programs. This module also has listings, explanations, findings and graphs.
//! * [`mod@launch`] has a program with its initial state, and runs, counts and reports.
//! * [`mod@prepared`] has the parts that the runs and sessions of a launch share.
//! * [`mod@observe`] passes the events of a run to hooks, in batches of arrays.
//! * [`mod@session`] has a launch that is executed step by step.
//! * [`mod@campaign`] has campaigns and their shards.
//! * [`mod@array`] converts arrays of numpy and of the workbench. [`mod@errors`] has exceptions.
//!
//! # Features
//!
//! * `every-level` (off): compiles vector code of the fast engine not only for AVX2, but also for AVX-512
//!   and for every x86-64 processor.
//! * `full` (off): includes `every-level`. With `full`, the dependencies have the same features as in the command. If
//!   cargo builds this package and the command together, it therefore compiles the dependencies only once.

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
