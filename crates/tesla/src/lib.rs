//! NVIDIA G80 to GT21x: CUDA sm_10 to sm_13, and vertex, geometry and fragment programs of nv50.
//!
//! | read | for |
//! |---|---|
//! | [`inst`], [`mod@decode`], [`table`], [`text`] | the instruction value, how words become one, the tables, assembly text |
//! | [`flow`], [`barrier`] | how lanes diverge and reconverge, how warps wait for each other |
//! | [`lane`], [`meaning`] | what one lane computes; which of these functions an operation is |
//! | [`state`], [`spaces`], [`texture`] | registers, memory, textures |
//! | [`launch`], [`context`], [`grid`], [`block`] | a launch as data; what instructions run against; its blocks; the turns of their warps |
//! | [`mod@reference`], [`access`] | the clear interpreter: one instruction of one warp; its memory operands |
//! | [`fast`] | the fast engine: whole rows at a time |
//! | [`run`] | runs launches |
//! | [`mod@graph`], [`paths`], [`mod@uses`] | where lanes can go on, and what instructions read and write, without a run |
//! | [`mod@lint`] | what the documents forbid in a program |
//! | [`trap`], [`fidelity`] | what stops a program; how exact each operation is |

pub mod access;
pub mod arith;
pub mod barrier;
pub mod block;
pub mod code;
pub mod context;
pub mod control;
pub mod decode;
pub mod draft;
pub mod driver_fixes;
pub mod explain;
pub mod fast;
pub mod fidelity;
pub mod flow;
pub mod graph;
pub mod grid;
pub mod inst;
pub mod lane;
pub mod launch;
pub mod lint;
pub mod meaning;
mod parts;
pub mod paths;
pub mod reference;
mod results;
pub mod run;
mod sentence;
pub mod spaces;
pub mod state;
pub mod table;
pub mod text;
pub mod texture;
pub mod trap;
pub mod uses;
