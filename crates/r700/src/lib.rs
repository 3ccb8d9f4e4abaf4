//! The AMD R700 shader machine. This machine can also emulate R600 chips.
//!
//! A program is a list of control-flow instructions that launch clauses. A clause is a straight-line sequence of ALU
//! groups or fetches. All lanes of a wavefront share one program counter. An active mask, a state for each lane and a
//! stack of masks determine which lanes run.
//!
//! The following list has the modules in the order of their dependencies. A module imports only modules that come
//! earlier in the list.
//!
//! * [`words`]: the word formats.
//! * [`chip`]: the chips, and the differences between chips.
//! * [`rules`]: the points on which sources disagree. Each point is a named rule, with this project's interpretation
//!   and the reason for this interpretation.
//! * [`flow`]: the divergence machine, which consists of masks, lane states, the stack, loops and calls.
//! * [`lane`], [`lane64`]: pure functions with the computations of one lane. [`format`](mod@format): numbers in memory.
//! * [`meaning`]: operation, fidelity and chips of each ALU opcode. [`control`]: operation, fidelity and chips of each
//!   control-flow instruction.
//! * [`code`]: a decoded program with assigned slots, literals and clauses. [`mod@graph`]: the control-flow graph of a
//!   program. [`stack`]: the stack size that a program needs. [`mod@uses`]: the operands and results of instructions.
//! * [`cause`]: the causes of traps.
//! * [`memory`], [`texture`], [`launch`]: the data of a launch. [`outcome`]: the outcome of a run.
//! * [`wave`]: the state of a wavefront. The module also defines how instructions, lanes and divergent branches are
//!   counted.
//! * [`reference`](mod@reference): the reference interpreter, whose code favours clarity over speed.
//! * [`fast`]: the fast engine, which computes whole rows of lanes. The results are the results of the reference
//!   interpreter.
//! * [`run`](mod@run): loads a program once, and runs any number of launches of this program.
//! * [`text`]: the disassembler and the assembler. From the disassembler's text, the assembler produces the original
//!   words. [`mod@explain`]: explains one instruction field by field.
//!   [`mod@lint`]: legality checks.
//!
//! Short names of documents: MAN is AMD's "R700-Family Instruction Set Architecture" reference guide. Citations of MAN
//! give PDF pages. [`rules`] explains the short names Mesa, LLVM, XF86, DECAF, CEMU and M2S.
//!
//! ```
//! use reconverge_isa::Program;
//! use reconverge_r700::chip::Chip;
//! use reconverge_r700::code::ExportKind;
//! use reconverge_r700::launch::{Environment, Stage};
//! use reconverge_r700::run::Loaded;
//! use reconverge_simt::Options;
//! // MOV R0.x, 1.0; EXPORT_DONE PIXEL 0, R0.x___
//! let words = vec![0x0000_0002, 0xa000_0000, 0xc000_0000, 0x9420_0ff8, 0x8000_00f9, 0x0000_0c90];
//! let environment = Environment::new(Chip::RV770, Stage::Pixel).into();
//! let loaded = Loaded::new(&Program::from_words(words), &environment, &Options::default()).unwrap();
//! let outcome = loaded.run(2, Vec::new()).unwrap();
//! assert_eq!(outcome.export(ExportKind::Pixel, 0).unwrap().values[1], [0x3f80_0000, 0, 0, 0]);
//! ```

pub mod cause;
pub mod chip;
pub mod code;
pub mod control;
pub mod explain;
pub mod fast;
pub mod flow;
pub mod format;
pub mod forms;
pub mod graph;
pub mod lane;
pub mod lane64;
pub mod launch;
pub mod lint;
pub mod meaning;
pub mod memory;
pub mod outcome;
mod ports;
pub mod reference;
pub mod rules;
pub mod run;
pub mod stack;
pub mod text;
pub mod texture;
pub mod uses;
pub mod wave;
pub mod words;
