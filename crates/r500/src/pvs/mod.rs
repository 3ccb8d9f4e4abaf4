//! The vertex unit ("PVS", programmable vertex shader, in the VAP block): four-word instructions on one vertex each.
//!
//! A vertex runs a program alone: inputs and constants in, outputs out. Flow is static and the same for all vertices, so
//! that nothing diverges; what depends on data is done with a predicate bit. docs/r500-vertex.md describes the unit.
//!
//! To run programs of a driver: [`setup::Setup::new`] takes the words of the code store from a slot on and the state
//! registers by their names, [`launch::Launch`] the vertices' inputs and the constants, and [`run::run`] gives the outputs
//! by register.
//!
//! | module | for |
//! |---|---|
//! | [`words`], [`inst`] | every bit, and what decode makes of them |
//! | [`mod@lane`], [`operations`] | what one vertex computes; the operations of both engines, a row each |
//! | [`flow`] | where a program goes: descriptors, loops, subroutines |
//! | [`violations`], [`cause`] | what the documents forbid, why a program stops |
//! | [`setup`] | a program in its slots with its state registers |
//! | [`mod@graph`], [`mod@uses`], [`mod@lint`] | a program without running it |
//! | [`group`], [`outputs`] | the state of up to 64 vertices, and what remains after the last instruction |
//! | [`launch`] | what is true before the first instruction |
//! | [`mod@reference`], [`mod@fast`] | the clear interpreter, and the same results for whole rows of vertices at a time |
//! | [`mod@run`] | running a launch |
//! | [`text`] | disassembler, assembler, explanations |
//!
//! Documents, beside those of the crate: Mesa is the r300 driver of Mesa 22.3.6; Qn and Dn are open questions and
//! disagreements in docs/r500-vertex.md.

pub mod cause;
pub mod fast;
pub mod flow;
pub mod graph;
pub mod group;
pub mod inst;
pub mod lane;
pub mod launch;
pub mod lint;
pub mod operations;
pub mod outputs;
pub mod reference;
pub mod run;
pub mod setup;
pub mod text;
pub mod uses;
pub mod violations;
pub mod words;
