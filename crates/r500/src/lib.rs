//! The ATI R500 fragment processor ("US", unified shader; the CTM guide calls it X1K FP), the CTM model over it, and the
//! vertex unit ([`pvs`]).
//!
//! Modules in the order of their imports, which is also one to read them in (`tests/imports.rs` holds it):
//!
//! | module | for |
//! |---|---|
//! | [`words`], [`inst`] | every bit, and what decode makes of them |
//! | [`chip`] | the names of the chips |
//! | [`flow`] | how lanes diverge and come together: the heart |
//! | [`mod@lane`], [`operations`] | what one lane computes; the operations of both units, a row each |
//! | [`violations`], [`fidelity`], [`cause`] | what the documents forbid, how exact an operation is, why a program stops |
//! | [`setup`] | a program in its slots with its state registers |
//! | [`mod@graph`], [`mod@uses`], [`mod@lint`] | a program without running it: its control flow, what instructions read and write, what is wrong |
//! | [`memory`], [`texture`] | the typed buffers of the CTM model, texture fetches |
//! | [`group`], [`outputs`] | the state of one group, and what remains after its last instruction |
//! | [`launch`] | what is true before the first instruction |
//! | [`mod@reference`], [`fast`] | the clear interpreter, and the same results for whole rows of lanes at a time |
//! | [`run`], [`ctm`] | running a launch, and a dispatch over a domain of the CTM model |
//! | [`text`] | disassembler and assembler |
//! | [`pvs`] | the vertex unit, with modules of its own |
//! | [`programs`] | a text of several programs, of both units |
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
