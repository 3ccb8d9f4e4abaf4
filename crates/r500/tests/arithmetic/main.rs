//! The lane functions of the fragment processor and of the vertex unit against integers and an independent soft float, and
//! every engine's form of them.
//!
//! Functions of one operand go through a sample of all words; with `RECONVERGE_WORDS=all`, and a release build, through all
//! 2^32 (docs/testing.md). The rules by which the units differ from IEEE 754 are written out in `rules.rs`.

mod engines;
mod fragment;
mod rules;
mod vertex;
