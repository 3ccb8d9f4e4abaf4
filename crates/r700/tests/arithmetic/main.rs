//! Tests the lane functions, and every engine's form of them, against integers and an independent soft float.
//!
//! `unary.rs` and `engines.rs` test a sample of all words. With `RECONVERGE_WORDS=all`, and a release build, they test
//! all 2^32 (docs/testing.md). `rules.rs` defines the rules by which this machine differs from IEEE 754.

mod doubles;
mod engines;
mod rules;
mod several;
mod unary;
