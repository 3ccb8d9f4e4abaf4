//! One small structured program, any machine.
//!
//! [`generate`] makes a program tree from a seed, [`evaluate`] says what each lane must compute, and every machine's
//! tests lower the tree in their own idiom ([`LoweredProgram`]), run all lanes and compare. [`Campaign`] chooses the seeds and
//! reports a failure with the smallest program that still fails. [`everywhere`] makes one run a run on every engine.
//! [`climbing_imports`] and [`circles`] check how the modules of a crate import each other, [`page_is_current`] a generated
//! page of `docs/`; [`files_to_save`] are those that a page gives its readers.
//! [`launch_samples`] are the launches that every front end is compared on.
//! [`LaneSteps`] collects the steps of lanes. [`textures`] are images and samplers from seeds.
//! [`exact`] has functions of f32 in integers, [`each_block`] and [`special_words`] the words to try them on.
//! [`shared`] and [`records`] read the collections beside the repository. [`containers`] are files of every format.
//!
//! None of that knows a machine.
//!
//! # Features
//!
//! * `r500` (off): random programs of this machine and of its vertex unit (`vertex`), and launches of them.
//! * `r700` (off): the same of this machine.
//! * `tesla` (off): the same of this machine.

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
