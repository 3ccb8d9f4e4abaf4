//! Compares the lane functions of the fragment processor and of the vertex unit with integer arithmetic and an
//! independent soft float, and then with every engine.
//!
//! Functions of one operand are tested with a sample of all words, or with all 2^32 words if `RECONVERGE_WORDS=all`
//! is set in a release build (docs/testing.md). `rules.rs` implements the rules by which the units differ from IEEE
//! 754.

mod engines;
mod fragment;
mod rules;
mod vertex;
