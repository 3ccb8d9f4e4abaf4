//! The Rust part of the Python package `reconverge`: the workbench, with numpy arrays as inputs and outputs.
//!
//! The Python part (`reconverge/*.py`) has the classes that users see. The Rust part does the work that needs the
//! machines. Data to read (explanations, counts, findings) is passed as JSON text. Numbers are passed without a copy,
//! as numpy arrays on buffers that Rust allocated. Runs release the interpreter's lock.
//!
//! * [`mod@program`]: opens files as programs; listings, explanations, findings, graphs.
//! * [`mod@launch`]: a program with its initial state; runs, counts, reports.
//! * [`mod@prepared`]: the parts that the runs and sessions of a launch share.
//! * [`mod@observe`]: the events of a run, in batches of arrays.
//! * [`mod@session`]: a launch that is executed step by step.
//! * [`mod@campaign`]: campaigns and their shards.
//! * [`mod@array`]: converts arrays of numpy and of the workbench. [`mod@errors`]: exceptions.
//!
//! # Features
//!
//! * `every-level` (off): vector code of the fast engine for every x86-64 processor and for AVX-512, not only for AVX2.
//! * `full` (off): `every-level`. The dependencies then have the same features as in the command, so that a build of
//!   both packages compiles them once.

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
