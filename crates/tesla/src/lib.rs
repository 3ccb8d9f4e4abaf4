//! NVIDIA G80 to GT21x: CUDA sm_10 to sm_13, and vertex, geometry and fragment programs of nv50.
//!
//! | read | for |
//! |---|---|
//! | [`inst`], [`mod@decode`], [`table`], [`text`] | the instruction value, decoding of words, the tables, assembly text |
//! | [`flow`], [`barrier`] | divergence and reconvergence of lanes, barriers between warps |
//! | [`lane`], [`meaning`] | the functions of one lane; the function of each operation |
//! | [`state`], [`spaces`], [`texture`] | registers, memory, textures |
//! | [`launch`], [`context`], [`grid`], [`block`] | a launch as data; the state that instructions access; the blocks of a launch; the turns of the warps of a block |
//! | [`mod@reference`], [`access`] | the reference interpreter, which executes one instruction of one warp; memory operands of one lane |
//! | [`fast`] | the fast engine: whole rows at a time |
//! | [`run`] | runs launches |
//! | [`mod@graph`], [`paths`], [`mod@uses`] | the possible paths of lanes, and the reads and writes of instructions, found without running the program |
//! | [`mod@lint`] | checks of a program against the documents |
//! | [`trap`], [`fidelity`] | the reasons that a program stops; the exactness of each operation |

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
mod inputs;
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
mod turns;
pub mod uses;
