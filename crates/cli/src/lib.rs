//! A library for shader machine code of ATI R500, AMD R600/R700 and NVIDIA Tesla. The library decodes programs from
//! bytes and assembles sources. The library converts programs to text, runs programs, and reports events and state.
//!
//! * [`open()`] reads bytes, and [`assemble`] reads a source. Both functions return a [`File`] with [`Program`]s.
//! * [`Program::text`], [`Program::lines`], [`Program::explain`] and [`Program::lint`] inspect a program.
//!   [`File::write`] converts all programs of a file to another format.
//! * [`Program::launch`] and [`Program::launch_from`] return a [`Launch`], from code or from a launch file.
//! * [`Launch::run`] returns an [`Outcome`] with outputs and counts.
//! * [`Launch::observe`] passes each [`Event`] of a run to a function. [`Launch::session`] returns a [`Session`], which
//!   runs a launch step by step. A session shows registers and memory, takes snapshots, and states the reason why each
//!   lane runs or waits.
//!
//! The library does not read files and does not print. There is an example for each task. The command for the example
//! `decode` is `cargo run -p reconverge --example decode`. The other examples are `assemble`, `run`, `observe` and
//! `step`. The feature `cli` adds the command `reconverge` to this package. A program that uses the library can turn
//! the feature `cli` off:
//!
//! ```toml
//! reconverge = { version = "0.1", default-features = false }
//! ```
//!
//! # Example
//!
//! ```
//! use reconverge::{OpenOptions, RunOptions, TextOptions, assemble};
//!
//! let source = "
//! .isa tesla
//! .kernel double
//! .reg 2
//!     and b32 $r0 $r0 0xffff      ; the thread
//!     add b32 $r1 $r0 $r0
//!     shl b32 $r0 $r0 0x2
//!     add b32 $r0 b32 s[0x10] $r0 ; the buffer
//!     exit st b32 g14[$r0] $r1
//! ";
//! let program = assemble(source, &OpenOptions::default())?.only_program()?;
//! assert!(program.text(&TextOptions::default())?.contains("add b32 $r1 $r0 $r0"));
//!
//! let launch = program.launch().block(4, 1, 1)?.buffer("out", "u32[4]")?;
//! let outcome = launch.run(&RunOptions::default())?;
//! let doubled: Vec<u32> = outcome.output("out").expect("an output").words().collect();
//! assert_eq!(doubled, [0, 2, 4, 6]);
//! # Ok::<(), reconverge::Error>(())
//! ```
//!
//! # Stability
//!
//! Option types, and enums to which variants may be added, are `#[non_exhaustive]`. Options with two choices are enums
//! with named variants. Errors are enums.
//!
//! # Features
//!
//! * `cli` (default): the command `reconverge`, a binary of this package.
//! * `every-level` (off): vector code of the fast engine for every x86-64 processor and for AVX-512. Without this
//!   feature, the fast engine has vector code only for AVX2. The compiled engine always uses AVX-512 if the processor
//!   has it.
//! * `campaign` (off): the command `campaign`, with `parquet`.
//! * `parquet` (off): traces as tables of Parquet.
//! * `terminal` (off): the debugger's screen, and history and completion on its command line.
//! * `serve` (off): the command `serve`.
//! * `webgl` (off): the command `webgl`.
//! * `window` (off): the window of `drm --screen window`.
//! * `full` (off): all of the features in this list.

#![forbid(unsafe_code)]

mod library;

pub use library::{
    Engine, Error, Event, File, Isa, Launch, Mode, Observed, OpenOptions, Outcome, Program, RunOptions,
    Session, SourceError, Stage, State, Stop, TextOptions, Trap, Values, Why, assemble, open,
};

pub use reconverge_container::{Endian, Error as ContainerError, Written, formats};
pub use reconverge_isa::lint::{Finding, Rule, Severity};
pub use reconverge_isa::program::{UnknownIsa, UnknownStage};
pub use reconverge_isa::source::{Diagnostic, Level, Span};
pub use reconverge_simt::machine::{Depth, Issue, StackRow};
pub use reconverge_simt::mask::{Lane, Mask};
pub use reconverge_simt::observe::Statistics;
pub use reconverge_workbench::Error as LaunchError;
pub use reconverge_workbench::array::{Array, ArrayError, Dtype};
pub use reconverge_workbench::formats::WriteError;
pub use reconverge_workbench::launch::LaunchFileError;
pub use reconverge_workbench::listing::Line;
pub use reconverge_workbench::machine::{ExplainError, ExplainedField, Explanation};
pub use reconverge_workbench::open::OpenError;
pub use reconverge_workbench::session::{Register, RegisterClass, Snapshot, Space, SpaceOf};
pub use reconverge_workbench::target::TargetError;
pub use reconverge_workbench::values::ValuesError;
