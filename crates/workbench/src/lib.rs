//! The one interface behind every front end: machines, programs from files, launches, runs.
//!
//! * [`machine()`]: a [`Machine`] by name: its chips, text, explanations, findings.
//! * [`open()`]: a file's bytes to programs with their machine.
//! * [`formats`]: programs to files; [`contents`]: what a file holds; [`edit`]: one instruction, alone or changed in its
//!   program.
//! * [`launch`], [`manifest`]: launch files and run manifests; [`mod@r500`], [`mod@r700`], [`mod@tesla`]: the three
//!   machines, each with its own part of a launch.
//! * [`choose`]: one pixel or vertex of a launch.
//! * [`session`]: a launch that is ready, and what a run leaves.
//! * [`trace`], [`stats`]: what happens in a run, with the group that it happens to; counts by instruction.
//! * [`graph`]: the control flow of a program, drawn.
//! * [`taint`]: how exact the values are that decide.
//! * [`mod@lint`]: where a program breaks a rule of its machine.
//! * [`faults`]: the words of a group's flow state that a fault can change.
//! * [`trapped`]: what is to be seen where a program trapped.
//! * [`kernels`]: the divergent kernels that `bench` runs.
//! * [`mod@array`], [`values`]: the numbers that go in and come out.
//!
//! Nothing here reads files or prints.

#![forbid(unsafe_code)]

pub mod array;
pub mod choose;
pub mod contents;
pub mod debugger;
pub mod edit;
pub mod faults;
pub mod formats;
pub mod graph;
pub mod kernels;
pub mod launch;
pub mod lint;
pub mod listing;
pub mod machine;
pub mod manifest;
pub mod micro;
pub mod open;
pub mod r500;
pub mod r700;
pub mod report;
pub mod request;
pub mod result;
pub mod session;
pub mod stats;
pub mod suite;
pub mod taint;
pub mod tesla;
pub mod trace;
pub mod trapped;
pub mod values;

pub use listing::{Listing, Style};
pub use machine::{Machine, Target, machine, round_trip, round_trip_image};
pub use open::{Known, Opened, open};
pub use session::{Outcome, Session};
