//! The vertex unit. The documents call the vertex unit "PVS" (programmable vertex shader). The vertex unit belongs to
//! the VAP block of the chip. An instruction has four words and computes results for one vertex.
//!
//! The program runs once for each vertex, and reads and writes no data of other vertices. Flow control is the same for
//! all vertices, so vertices do not diverge. A predicate bit selects the vertices that execute an operation.
//! docs/r500-vertex.md describes the unit.
//!
//! [`setup::Setup::new`] takes a program of a driver: the words of the code store, starting at the first slot of the
//! program, and the state registers by name. [`launch::Launch`] holds the constants and the inputs of the vertices.
//! [`run::run`] returns the values of the output registers.
//!
//! | module | for |
//! |---|---|
//! | [`words`], [`inst`] | every bit, and the decoded instructions |
//! | [`mod@lane`], [`operations`] | the arithmetic of one vertex; the operations of the vector engine and the math engine |
//! | [`flow`] | flow control: descriptors, loops, subroutines |
//! | [`violations`], [`cause`] | encodings that the documents forbid, causes of traps |
//! | [`setup`] | a program in its slots with its state registers |
//! | [`mod@graph`], [`mod@uses`], [`mod@lint`] | static analysis of a program |
//! | [`group`], [`outputs`] | the state of up to 64 vertices, and their results after the last instruction |
//! | [`launch`] | the state before the first instruction |
//! | [`mod@reference`], [`mod@fast`] | the reference interpreter, and the fast engine that computes the same results for rows of vertices |
//! | [`mod@run`] | running a launch |
//! | [`text`] | disassembler, assembler, explanations |
//!
//! The crate's page lists the document names that comments use. Comments in this module also use "Mesa" for the r300
//! driver of Mesa 22.3.6. Qn and Dn stand for open questions and disagreements in docs/r500-vertex.md.

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
