//! The AMD R700 shader machine, with R600 as a chip option.
//!
//! A program is a list of control-flow instructions that launch clauses: straight runs of ALU groups or fetches. All
//! lanes of a wavefront share one program counter; who takes part is decided by an active mask, a state for each lane
//! and a stack of masks.
//!
//! Read in this order:
//!
//! * [`chip`]: the chips and what differs between them.
//! * [`words`]: the word formats.
//! * [`rules`]: where sources disagree, one named rule each, with the reading chosen and why.
//! * [`flow`]: the divergence machine, pure: masks, states, stack, loops, calls.
//! * [`stack`]: how much stack a program needs, without running it.
//! * [`lane`], [`lane64`]: what one lane computes, pure functions.
//! * [`meaning`]: which function an opcode is, where it runs, how exact it is.
//! * [`code`]: the program as execution wants it; its slots, literals and clauses resolved.
//! * [`reference`](mod@reference): the clear interpreter of a wavefront; `fetch`, [`texture`] and `export` are its fetch clauses and what leaves it,
//!   [`memory`] and [`format`](mod@format) what they need.
//! * [`fast`]: the second engine, whole rows at a time, with the same results.
//! * [`text`]: disassembler and assembler, exact inverses; [`mod@explain`]: one instruction field by field; [`mod@lint`]: legality.
//! * [`launch`]: what is true before the first instruction, [`launch::run`], and what is left after the last; `run` has
//!   the running.
//!
//! Documents by short name: MAN is AMD's "R700-Family Instruction Set Architecture" reference guide, by PDF page;
//! Mesa, LLVM, XF86, DECAF, CEMU and M2S are explained in [`rules`].
//!
//! ```
//! use reconverge_isa::Program;
//! use reconverge_r700::chip::Chip;
//! use reconverge_r700::code::ExportKind;
//! use reconverge_r700::launch::{Launch, Options, Stage, run};
//! // MOV R0.x, 1.0; EXPORT_DONE PIXEL 0, R0.x___
//! let words = vec![0x0000_0002, 0xa000_0000, 0xc000_0000, 0x9420_0ff8, 0x8000_00f9, 0x0000_0c90];
//! let launch = Launch::new(Chip::RV770, Stage::Pixel, 2);
//! let outcome = run(&Program::from_words(words), &launch, &Options::STRICT).unwrap();
//! assert_eq!(outcome.export(ExportKind::Pixel, 0).unwrap().values[1], [0x3f80_0000, 0, 0, 0]);
//! ```

pub mod chip;
pub mod code;
pub mod coverage;
mod decode;
pub mod explain;
mod export;
pub mod fast;
pub mod fetch;
pub mod flow;
pub mod format;
pub mod lane;
pub mod lane64;
pub mod launch;
pub mod lint;
pub mod meaning;
pub mod memory;
pub mod reference;
pub mod rules;
mod run;
pub mod stack;
pub mod text;
pub mod texture;
pub mod words;
