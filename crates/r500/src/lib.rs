//! The ATI R500 fragment processor, the CTM model for this processor, and the vertex unit ([`pvs`]). The documents call
//! the fragment processor "US" (unified shader). The CTM guide calls the fragment processor "X1K FP".
//!
//! In the table, a module comes after all imported modules. `tests/imports.rs` checks this order. Readers can read the
//! modules in the order of the table:
//!
//! | module | for |
//! |---|---|
//! | [`words`], [`inst`] | every bit, and the decoded instructions |
//! | [`chip`] | the names of the chips |
//! | [`flow`] | divergence and reconvergence of lanes: the core of the machine |
//! | [`mod@lane`], [`operations`] | the arithmetic of one lane, and the table of both units' operations |
//! | [`violations`], [`fidelity`], [`cause`] | encodings that the documents forbid, accuracy of operations, causes of traps |
//! | [`setup`] | a program in its slots with its state registers |
//! | [`mod@graph`], [`mod@uses`], [`mod@lint`] | static analysis: control flow, registers that instructions read and write, findings |
//! | [`memory`], [`texture`] | the typed buffers of the CTM model, texture fetches |
//! | [`group`], [`outputs`] | the state of one group, and the results of lanes after the last instruction |
//! | [`launch`] | the state before the first instruction |
//! | [`mod@reference`], [`fast`] | the reference interpreter, and the fast engine that computes the same results for rows of lanes |
//! | [`run`], [`ctm`] | running a launch, and a dispatch over a domain of the CTM model |
//! | [`text`] | disassembler and assembler |
//! | [`pvs`] | the vertex unit, with separate modules |
//! | [`programs`] | a text with several programs, for either unit |
//!
//! Documents, as cited in comments:
//!
//! | short | document |
//! |-------|----------|
//! | CTM guide p. N | "ATI CTM Guide, Technical Reference Manual", version 1.01, AMD 2006, printed page N |
//! | REG | AMD R5xx 3D register reference, US, GA and FG tables |
//! | Mesa | the r300 driver of Mesa 22.3.6 |
//! | r500.md Qn, Dn | open questions and disagreements, collected in docs/r500.md |

pub mod cause;
pub mod chip;
pub mod ctm;
pub mod fast;
pub mod fidelity;
pub mod flow;
pub mod forms;
pub mod graph;
pub mod group;
pub mod inst;
pub mod lane;
pub mod launch;
pub mod lint;
pub mod memory;
pub mod mistaken;
pub mod operations;
pub mod outputs;
pub mod programs;
pub mod pvs;
pub mod reference;
pub mod run;
pub mod setup;
pub mod text;
pub mod texture;
pub mod uses;
pub mod violations;
pub mod words;
