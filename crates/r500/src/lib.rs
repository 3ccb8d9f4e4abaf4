//! The ATI R500 fragment processor ("US", unified shader; the CTM guide calls it X1K FP) and the CTM model over it.
//!
//! Read in this order: [`words`] (every bit), [`inst`] (what decode makes of them), [`flow`] (how lanes diverge
//! and come together: the heart), [`mod@lane`] (what one lane computes), [`mod@reference`] (the interpreter that puts
//! them together), [`launch`] (what is true before the first instruction), [`outputs`] (what there is behind the last).
//! [`ctm`] adds domains and memory,
//! [`texture`] fetches. [`fast`] is the second engine: the same results, whole rows at a time.
//!
//! Documents, as cited in comments:
//!
//! | short | document |
//! |-------|----------|
//! | CTM guide p. N | "ATI CTM Guide, Technical Reference Manual", version 1.01, AMD 2006, printed page N |
//! | REG | AMD R5xx 3D register reference, US, GA and FG tables |
//! | Mesa | the r300 driver of Mesa 22.3.6 |
//! | r500.md Qn, Dn | open questions and disagreements, collected in docs/r500.md |

pub mod chip;
pub mod coverage;
pub mod ctm;
pub mod fast;
pub mod fidelity;
pub mod flow;
pub mod inst;
pub mod lane;
pub mod launch;
pub mod outputs;
pub mod reference;
pub mod text;
pub mod texture;
pub mod words;
