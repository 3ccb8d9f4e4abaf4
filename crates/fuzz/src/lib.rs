//! Properties that hold for any bytes, and the driver that looks for bytes for which they do not.
//!
//! A [`Target`] is one property: a function of bytes that says what it checked, or what is wrong. It reads its bytes as
//! [`input`] describes. [`TARGETS`] lists them all: [`decode`] (words to text and back), [`assemble`] (texts), [`files`]
//! (containers and case schemas), [`execute`] (arbitrary words and random programs on every pair of engines), [`real`]
//! (mutated programs of the corpora on every pair of engines), [`commands`] (command streams of the chips).
//!
//! [`driver`] makes cases by the number, half of them by [`mutate`] from a target's seeds, runs them on threads, and
//! writes what it finds into files. The folder `fuzz/` gives the same functions to libFuzzer.

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
    /// Its name on the command line.
    pub name: &'static str,
    /// The machine, where it is about one.
    pub isa: Option<Isa>,
    /// What holds, in one sentence.
    pub about: &'static str,
    /// What [`Target::check`] counts.
    pub counts: &'static str,
    /// The bytes of a new case.
    pub make: fn(&mut Random) -> Vec<u8>,
    /// Bytes from which cases are made by mutation; none: every case is new.
    pub seeds: fn() -> Vec<Vec<u8>>,
    /// Checks the property. A panic of what it calls is a finding too; it has none of its own.
    ///
    /// Gives how much was checked, see [`Target::counts`], or what is wrong.
    pub check: fn(&[u8]) -> Result<u64, String>,
}

/// Every target.
pub const TARGETS: &[&[Target]] =
    &[decode::TARGETS, assemble::TARGETS, files::TARGETS, execute::TARGETS, real::TARGETS, commands::TARGETS];

/// Every target, one after the other.
pub fn targets() -> impl Iterator<Item = &'static Target> {
    TARGETS.iter().copied().flatten()
}

/// The target of a name.
pub fn target(name: &str) -> Option<&'static Target> {
    targets().find(|target| target.name == name)
}

/// No seeds.
fn no_seeds() -> Vec<Vec<u8>> {
    Vec::new()
}
