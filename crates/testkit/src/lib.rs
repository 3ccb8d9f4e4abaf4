//! Tools for tests of any machine. Most of these tools generate, run and compare small structured programs.
//!
//! [`generate`] creates a program tree from a seed, and [`evaluate`] returns the expected result of each lane. The
//! tests of a machine lower the tree to the machine's idioms ([`LoweredProgram`]). The tests then run all lanes and
//! compare the results. [`Campaign`] selects the seeds. If a program fails, the campaign reports the smallest program
//! that still fails. [`everywhere`] repeats a run on every engine. [`climbing_imports`] and [`circles`] check which
//! modules of a crate import which other modules. [`page_is_current`] checks a generated page of `docs/`.
//! [`files_to_save`] returns the files that a page asks its readers to save. [`launch_samples`] returns the launches
//! for comparisons between front ends. [`LaneSteps`] collects the steps of lanes. [`textures`] generates images and
//! samplers from seeds. [`exact`] contains functions of f32 in integer arithmetic. [`each_block`] and [`special_words`]
//! return words for tests of these functions. [`shared`] and [`records`] read the collections in `shared/`.
//! [`containers`] contains files of every format.
//!
//! The items without a feature do not depend on a machine.
//!
//! # Features
//!
//! * `r500` (off): random programs for R500 and its vertex unit (`vertex`), and launches of these programs.
//! * `r700` (off): random programs for R700, and launches of these programs.
//! * `tesla` (off): random programs for Tesla, and launches of these programs.

#![forbid(unsafe_code)]

mod campaign;
pub mod containers;
mod evaluate;
mod everywhere;
pub mod exact;
mod generate;
mod imports;
mod judge;
mod pages;
#[cfg(feature = "r500")]
pub mod r500;
#[cfg(feature = "r700")]
pub mod r700;
mod safety;
mod samples;
mod shared;
mod shrink;
mod steps;
#[cfg(feature = "tesla")]
pub mod tesla;
pub mod textures;
mod tree;
#[cfg(feature = "r500")]
pub mod vertex;
mod words;

pub use campaign::{Campaign, Wrong};
pub use evaluate::{Lane, evaluate};
pub use everywhere::{EventLog, everywhere};
pub use generate::{Returns, Shape, generate, lanes};
pub use imports::{circles, climbing_imports, sources};
pub use judge::LoweredProgram;
pub use pages::{files_to_save, page_is_current};
pub use reconverge_simt::random::Random;
pub use samples::{ON_EACH_MACHINE, ON_ONE_MACHINE, launch_samples};
pub use shared::{records, shared, unpacked};
pub use steps::LaneSteps;
pub use tree::{
    Compare, Condition, MIX_MODULUS, MIX_MULTIPLIER, MOST_ROUNDS, Program, STEP_MODULUS, Statement, VARIABLES,
};
pub use words::{BLOCK, each_block, same_of_each, special_words, summand};
