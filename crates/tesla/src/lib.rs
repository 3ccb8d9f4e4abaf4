//! NVIDIA G80 to GT21x: CUDA sm_10 to sm_13, and vertex, geometry and fragment programs of nv50.
//!
//! | read | for |
//! |---|---|
//! | [`inst`], [`mod@decode`], [`table`], [`text`] | the instruction value, how words become one, the tables, assembly text |
//! | [`flow`], [`barrier`] | how lanes part and come together, how warps wait for each other |
//! | [`lane`] | what one lane computes |
//! | [`state`], [`spaces`], [`texture`] | registers, memory, textures |
//! | [`meaning`], [`access`] | which lane function an operation is; memory operands |
//! | [`mod@reference`] | the clear interpreter: one instruction of one warp |
//! | [`fast`] | the fast engine: whole rows at a time |
//! | [`block`], [`launch`] | who runs when; what is true before the first instruction, and what is left |
//! | [`trap`], [`fidelity`], [`mod@coverage`] | what stops a program; how exact each operation is; the list of all |

pub mod access;
pub mod barrier;
pub mod block;
pub mod code;
pub mod coverage;
pub mod decode;
pub mod draft;
pub mod explain;
pub mod fast;
pub mod fidelity;
pub mod flow;
mod grid;
pub mod inst;
pub mod lane;
pub mod launch;
pub mod meaning;
mod parts;
pub mod reference;
pub mod spaces;
pub mod state;
pub mod table;
pub mod text;
pub mod texture;
pub mod trap;
