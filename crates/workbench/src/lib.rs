//! The interface that every front end uses. The interface provides machines, programs from files, launches and runs.
//!
//! * [`machine()`] returns a [`Machine`], which disassembles, assembles, explains and checks programs. A [`target`] is
//!   a machine with a chip and a program type.
//! * [`open()`] reads the programs in the bytes of a file, and finds the machine of the programs. [`source`] has the
//!   lines and labels of a user's source.
//! * [`formats`] writes programs to files. [`contents`] lists the contents of a file. [`edit`] replaces one instruction
//!   of a program.
//! * [`launch`] reads and runs launch files, and [`manifest`] reads and runs run manifests. [`mod@r500`], [`mod@r700`]
//!   and [`mod@tesla`] are the machines. Each machine defines the launch fields that only this machine has.
//! * [`choose`] reduces a launch to one pixel or vertex.
//! * A [`session`] is a launch that is ready to run. Running the session returns the results.
//! * [`trace`] has the events of a run with their groups. [`stats`] counts the events per instruction.
//! * [`graph`] draws the control flow of a program.
//! * [`taint`] finds inexact values that influence the control flow, an address or an output.
//! * [`mod@lint`] lists the instructions that break a rule of the machine.
//! * [`faults`] defines the words of flow state. Faults and the debugger change these words.
//! * [`trapped`] adds the context to a trap.
//! * [`kernels`] are the divergent kernels that `bench` runs.
//! * [`mod@array`] and [`values`] hold the numbers of inputs and outputs.
//!
//! This crate does not read files and does not print.
//!
//! # Tasks
//!
//! ## Assemble
//!
//! [`open()`] assembles a source. The result has the programs with their machine and chip. Errors in the source have
//! positions. All examples below use the programs of this source.
//!
//! ```
//! use reconverge_workbench::{Known, open};
//!
//! let source = "
//! .isa tesla
//! .kernel side
//! .reg 3
//!     and b32 $r0 $r0 0xffff        ; the thread: 0, 1, 2, ...
//!     mov b32 $r1 0x1
//!     mov b32 $r2 0x64              ; 100
//!     joinat next                   ; where the lanes meet
//!     and b32 $c0 # $r0 $r1         ; odd?
//!     (lg $c0) bra odd
//!     sub b32 $r2 $r2 $r0
//!     bra next
//! odd:
//!     add b32 $r2 $r2 $r0
//! next:
//!     join shl b32 $r0 $r0 0x2
//!     add b32 $r0 b32 s[0x10] $r0   ; the buffer
//!     exit st b32 g14[$r0] $r2
//! ";
//! let opened = open(source.as_bytes(), true, &Known::default())?;
//! let program = &opened.image.programs[0];
//! assert_eq!((program.name.as_deref(), program.words.len()), (Some("side"), 24));
//! assert!(open(b".isa tesla\nadd $r0\n", true, &Known::default()).is_err());
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! ## Write and load
//!
//! [`formats::write`] returns the bytes of a file. [`open()`] detects the file's format by its content.
//!
//! ```
//! # let source = "
//! # .isa tesla
//! # .kernel side
//! # .reg 3
//! #     and b32 $r0 $r0 0xffff
//! #     mov b32 $r1 0x1
//! #     mov b32 $r2 0x64
//! #     joinat next
//! #     and b32 $c0 # $r0 $r1
//! #     (lg $c0) bra odd
//! #     sub b32 $r2 $r2 $r0
//! #     bra next
//! # odd:
//! #     add b32 $r2 $r2 $r0
//! # next:
//! #     join shl b32 $r0 $r0 0x2
//! #     add b32 $r0 b32 s[0x10] $r0
//! #     exit st b32 g14[$r0] $r2
//! # ";
//! # let opened = reconverge_workbench::open(source.as_bytes(), true, &Default::default())?;
//! # let program = &opened.image.programs[0];
//! use reconverge_workbench::{Known, formats, open};
//!
//! let file = formats::write(&opened.target, &opened.image, "cubin-elf32", false)?.content;
//! let loaded = open(&file, false, &Known::default())?;
//! assert_eq!(loaded.image.format, "cubin-elf32");
//! assert_eq!(loaded.image.programs[0].words, program.words);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! ## Disassemble
//!
//! [`Machine::disassemble`] returns the text of a program. The assembler converts this text to the words of the
//! program, even if the words are not valid instructions.
//!
//! ```
//! # let source = "
//! # .isa tesla
//! # .kernel side
//! # .reg 3
//! #     and b32 $r0 $r0 0xffff
//! #     mov b32 $r1 0x1
//! #     mov b32 $r2 0x64
//! #     joinat next
//! #     and b32 $c0 # $r0 $r1
//! #     (lg $c0) bra odd
//! #     sub b32 $r2 $r2 $r0
//! #     bra next
//! # odd:
//! #     add b32 $r2 $r2 $r0
//! # next:
//! #     join shl b32 $r0 $r0 0x2
//! #     add b32 $r0 b32 s[0x10] $r0
//! #     exit st b32 g14[$r0] $r2
//! # ";
//! # let opened = reconverge_workbench::open(source.as_bytes(), true, &Default::default())?;
//! # let program = &opened.image.programs[0];
//! use reconverge_workbench::{Style, round_trip};
//!
//! let machine = opened.target.machine();
//! let text = machine.image_text(&opened.target, &opened.image, Style::default())?;
//! assert!(text.contains("(lg $c0) bra"));
//! assert_eq!(machine.assemble(&opened.target, &text).unwrap().image.programs[0].words, program.words);
//! assert!(round_trip(&opened.target, program).is_ok());
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! ## Run
//!
//! A launch describes the state in which a program starts. A caller reads a launch from a launch file. A caller can
//! also create a launch with [`launch::LaunchFile::empty`] and then change the launch. The launch may name files. The
//! caller provides these files through [`values::Files`].
//!
//! ```
//! # let source = "
//! # .isa tesla
//! # .kernel side
//! # .reg 3
//! #     and b32 $r0 $r0 0xffff
//! #     mov b32 $r1 0x1
//! #     mov b32 $r2 0x64
//! #     joinat next
//! #     and b32 $c0 # $r0 $r1
//! #     (lg $c0) bra odd
//! #     sub b32 $r2 $r2 $r0
//! #     bra next
//! # odd:
//! #     add b32 $r2 $r2 $r0
//! # next:
//! #     join shl b32 $r0 $r0 0x2
//! #     add b32 $r0 b32 s[0x10] $r0
//! #     exit st b32 g14[$r0] $r2
//! # ";
//! # let opened = reconverge_workbench::open(source.as_bytes(), true, &Default::default())?;
//! # let program = &opened.image.programs[0];
//! use reconverge_simt::Options;
//! use reconverge_workbench::{launch::LaunchFile, values::NoFiles};
//!
//! let launch = LaunchFile::parse(
//!     r#"
//!     isa = "tesla"
//!     block = [8, 1, 1]
//!     param = [{ name = "out", buffer = "u32[8]" }]
//!     "#,
//! )?;
//! let result = launch.run(&opened.image, program, &Options::default(), &NoFiles)?;
//! let (name, array) = &result.outputs[0];
//! assert_eq!((name.as_str(), array.to_json().to_string().as_str()), ("out", "[100,101,98,103,96,105,94,107]"));
//! assert_eq!(result.statistics.divergent_branches, 1);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! ## Trace
//!
//! A [`trace::Sink`] receives the events of a run. The events have the order in which the instructions were issued.
//! [`stats::Profile`] is a sink that counts events. The command line writes trace files with a sink that contains a
//! `reconverge_trace::Writer`.
//!
//! ```
//! # let source = "
//! # .isa tesla
//! # .kernel side
//! # .reg 3
//! #     and b32 $r0 $r0 0xffff
//! #     mov b32 $r1 0x1
//! #     mov b32 $r2 0x64
//! #     joinat next
//! #     and b32 $c0 # $r0 $r1
//! #     (lg $c0) bra odd
//! #     sub b32 $r2 $r2 $r0
//! #     bra next
//! # odd:
//! #     add b32 $r2 $r2 $r0
//! # next:
//! #     join shl b32 $r0 $r0 0x2
//! #     add b32 $r0 b32 s[0x10] $r0
//! #     exit st b32 g14[$r0] $r2
//! # ";
//! # let opened = reconverge_workbench::open(source.as_bytes(), true, &Default::default())?;
//! # let program = &opened.image.programs[0];
//! # let launch = reconverge_workbench::launch::LaunchFile::parse(
//! #     "isa = \"tesla\"\nblock = [8, 1, 1]\nparam = [{ name = \"out\", buffer = \"u32[8]\" }]",
//! # )?;
//! use reconverge_simt::{Event, Mask, Options};
//! use reconverge_workbench::{trace::{Recorded, Sink}, values::NoFiles};
//!
//! #[derive(Default)]
//! struct Lanes(Vec<String>);
//!
//! impl Sink for Lanes {
//!     fn issues(&mut self, _group: usize, addresses: &[u32], mask: Mask) {
//!         self.0.extend(addresses.iter().map(|address| format!("{address:#x} {mask}")));
//!     }
//!     fn event(&mut self, _group: usize, event: Event) {
//!         if let Event::Diverge { taken, not } = event {
//!             self.0.push(format!("{taken} first, then {not}"));
//!         }
//!     }
//! }
//!
//! let session = launch.prepare(&opened.image, program, &NoFiles)?;
//! let mut lanes = Lanes::default();
//! session.run_traced(&Options::default(), Recorded::Flow, &mut lanes)?;
//! assert_eq!(lanes.0[5..8], ["0x28 0-7", "1,3,5,7 first, then 0,2,4,6", "0x40 1,3,5,7"]);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! ## Debug
//!
//! A [`debugger::Debugger`] steps forward and backward. [`debugger::command::run`] executes the commands of `reconverge
//! debug`. [`session::Stepping`] is simpler than the debugger. [`session::Stepping`] does not have stops, and goes back
//! only to snapshots.
//!
//! ```
//! # let source = "
//! # .isa tesla
//! # .kernel side
//! # .reg 3
//! #     and b32 $r0 $r0 0xffff
//! #     mov b32 $r1 0x1
//! #     mov b32 $r2 0x64
//! #     joinat next
//! #     and b32 $c0 # $r0 $r1
//! #     (lg $c0) bra odd
//! #     sub b32 $r2 $r2 $r0
//! #     bra next
//! # odd:
//! #     add b32 $r2 $r2 $r0
//! # next:
//! #     join shl b32 $r0 $r0 0x2
//! #     add b32 $r0 b32 s[0x10] $r0
//! #     exit st b32 g14[$r0] $r2
//! # ";
//! # let opened = reconverge_workbench::open(source.as_bytes(), true, &Default::default())?;
//! # let program = &opened.image.programs[0];
//! # let launch = reconverge_workbench::launch::LaunchFile::parse(
//! #     "isa = \"tesla\"\nblock = [8, 1, 1]\nparam = [{ name = \"out\", buffer = \"u32[8]\" }]",
//! # )?;
//! use reconverge_simt::{Lane, Options};
//! use reconverge_workbench::debugger::{Debugger, Halt, command};
//! use reconverge_workbench::values::NoFiles;
//!
//! let session = launch.prepare(&opened.image, program, &NoFiles)?;
//! let mut debugger = Debugger::new(&session, &opened.target, program, &Options::default())?;
//! command::run(&mut debugger, "stop diverge")?;
//! assert!(matches!(command::run(&mut debugger, "continue")?.halt, Some(Halt::Stop(_))));
//! assert_eq!(debugger.why(Lane(0)), "parked: it continues at 0x30 (BRANCH on the stack)");
//! assert_eq!(debugger.back(1), Halt::There);
//! assert_eq!(debugger.spelled(debugger.issue().unwrap().pc), "0x28");
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! ## Compare
//!
//! In lockstep, two engines run one launch, and the session compares both engines during the run. A difference between
//! the engines is an error. A difference between an output and the expected output is not an error.
//! [`result::RunResult::mismatches`] lists the differences from the expected outputs.
//!
//! ```
//! # let source = "
//! # .isa tesla
//! # .kernel side
//! # .reg 3
//! #     and b32 $r0 $r0 0xffff
//! #     mov b32 $r1 0x1
//! #     mov b32 $r2 0x64
//! #     joinat next
//! #     and b32 $c0 # $r0 $r1
//! #     (lg $c0) bra odd
//! #     sub b32 $r2 $r2 $r0
//! #     bra next
//! # odd:
//! #     add b32 $r2 $r2 $r0
//! # next:
//! #     join shl b32 $r0 $r0 0x2
//! #     add b32 $r0 b32 s[0x10] $r0
//! #     exit st b32 g14[$r0] $r2
//! # ";
//! # let opened = reconverge_workbench::open(source.as_bytes(), true, &Default::default())?;
//! # let program = &opened.image.programs[0];
//! use reconverge_simt::{Engine, Options};
//! use reconverge_workbench::{launch::LaunchFile, values::NoFiles};
//!
//! let launch = LaunchFile::parse(
//!     r#"
//!     isa = "tesla"
//!     block = [2, 1, 1]
//!     param = [{ name = "out", buffer = "u32[2]" }]
//!     expect = [{ output = "out", values = [100, 99] }]
//!     "#,
//! )?;
//! let options = Options { engine: Engine::Lockstep, ..Options::default() };
//! let result = launch.run(&opened.image, program, &options, &NoFiles)?;
//! assert!(result.mismatches[0].starts_with("expect out: "));
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

#![forbid(unsafe_code)]

pub mod array;
pub mod choose;
pub mod contents;
pub mod counts;
pub mod debugger;
pub mod edit;
pub mod error;
pub mod faults;
pub mod formats;
pub mod graph;
pub mod holds;
pub mod kernels;
pub mod keys;
pub mod launch;
pub mod lint;
pub mod listing;
pub mod machine;
pub mod manifest;
pub mod micro;
pub mod naming;
pub mod open;
pub mod r500;
pub mod r700;
pub mod report;
pub mod request;
pub mod result;
pub mod session;
pub mod slots;
pub mod source;
pub mod stats;
pub mod suite;
pub mod taint;
pub mod target;
pub mod tesla;
pub mod text;
pub mod trace;
pub mod trapped;
pub mod values;

use reconverge_isa::Isa;

pub use error::Error;
pub use listing::{Listing, Style};
pub use machine::Machine;
pub use open::{Known, Opened, open};
pub use session::{Outcome, Session};
pub use target::Target;
pub use text::{assemble, round_trip, round_trip_image};

static MACHINES: [&dyn Machine; 3] = [&r500::R500, &r700::R700, &tesla::Tesla];

/// Returns the implementation of a machine.
pub fn machine(isa: Isa) -> &'static dyn Machine {
    MACHINES.into_iter().find(|machine| machine.isa() == isa).unwrap_or(MACHINES[0])
}

impl Target {
    /// Returns the implementation of the target's machine.
    pub fn machine(&self) -> &'static dyn Machine {
        machine(self.isa)
    }
}
