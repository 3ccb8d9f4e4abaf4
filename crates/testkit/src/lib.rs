//! One small structured program, any machine.
//!
//! [`generate`] makes a program tree from a seed, [`evaluate`] says what each lane must compute, and every machine's
//! tests lower the tree in their own idiom, run all lanes in lockstep and compare. Nothing here knows a machine.

mod evaluate;
mod generate;
mod random;
mod tree;

pub use evaluate::{Lane, evaluate};
pub use generate::{Shape, generate};
pub use random::Random;
pub use tree::{Compare, Condition, MIX_MODULUS, MIX_MULTIPLIER, Program, Statement, VARIABLES};
