//! The lane functions against integers and an independent soft float, and every engine's form of them.
//!
//! `unary.rs` and `engines.rs` go through a sample of all words; with `RECONVERGE_WORDS=all`, and a release build, through all
//! 2^32 (docs/testing.md). The rules by which this machine differs from IEEE 754 are written out in `rules.rs`.

mod doubles;
mod engines;
mod rules;
mod several;
mod unary;
