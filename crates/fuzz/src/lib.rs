//! Properties that must be true for any bytes. The driver searches for bytes that violate a property.
//!
//! A [`Target`] is one property. The function of a target checks bytes, and returns the checked amount or a description
//! of the violation. The function reads its bytes as [`input`] describes. [`TARGETS`] lists all targets. The targets
//! are in six modules:
//!
//! | module | input of the targets |
//! |---|---|
//! | [`decode`] | words. The targets convert the words to text, and the text to words |
//! | [`assemble`] | texts |
//! | [`files`] | containers and case schemas |
//! | [`execute`] | arbitrary words and random programs, which run on every pair of engines |
//! | [`real`] | mutated programs of the corpora, which run on every pair of engines |
//! | [`commands`] | command streams of the chips |
//!
//! [`driver`] creates numbered cases and runs the cases on threads. [`mutate`] creates half of the cases from a
//! target's seeds. [`finding`] writes findings into files. The folder `fuzz/` passes the same functions to libFuzzer.

#![forbid(unsafe_code)]

pub mod assemble;
pub mod commands;
pub mod decode;
pub mod driver;
pub mod execute;
pub mod files;
pub mod finding;
pub mod input;
pub mod mutate;
pub mod real;
pub mod repository;

use reconverge_isa::Isa;
use reconverge_simt::random::Random;

/// One property.
#[derive(Clone, Copy, Debug)]
pub struct Target {
    /// Name on the command line.
    pub name: &'static str,
    /// The machine, if the property is about one machine.
    pub isa: Option<Isa>,
    /// The property, in one sentence.
    pub about: &'static str,
    /// Unit of the amount that [`Target::check`] returns.
    pub counts: &'static str,
    /// Generates the bytes of a new case.
    pub make: fn(&mut Random) -> Vec<u8>,
    /// Returns the inputs from which mutation creates cases. If the list is empty, [`Target::make`] generates every
    /// case.
    pub seeds: fn() -> Vec<Vec<u8>>,
    /// Checks the property. A panic of the code under test is also a finding. The code of the check function itself
    /// does not panic.
    ///
    /// Returns the checked amount, in the unit of [`Target::counts`], or a description of the violation.
    pub check: fn(&[u8]) -> Result<u64, String>,
}

/// All targets, by module.
pub const TARGETS: &[&[Target]] =
    &[decode::TARGETS, assemble::TARGETS, files::TARGETS, execute::TARGETS, real::TARGETS, commands::TARGETS];

/// Returns all targets, in order.
pub fn targets() -> impl Iterator<Item = &'static Target> {
    TARGETS.iter().copied().flatten()
}

/// Returns the target with a name.
pub fn target(name: &str) -> Option<&'static Target> {
    targets().find(|target| target.name == name)
}

/// Returns no seeds, for targets without seeds.
fn no_seeds() -> Vec<Vec<u8>> {
    Vec::new()
}
