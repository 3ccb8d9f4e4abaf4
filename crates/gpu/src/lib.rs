//! A graphics chip as its driver sees it: command streams and memory, to pixels.
//!
//! A [`Gpu`] takes what a driver submits, one [`Submission`] after another, and executes it at once: when
//! [`Gpu::submit`] returns, everything that the commands write is in memory.

pub mod device;
mod programs;
pub mod r600;

use std::ops::Range;

use thiserror::Error;

pub use programs::ChipProgram;

/// Commands with the buffers that they name.
#[derive(Clone, Copy, Debug)]
pub struct Submission<'a> {
    /// The words of the commands.
    pub commands: &'a [u32],
    /// Where the buffers of the relocation list are in memory, in bytes, in the order of the list.
    pub buffers: &'a [Range<usize>],
}

/// Why a submission was not executed to its end. The chip is as after a reset: its next submission is executed.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum Fault {
    /// The commands cannot be read.
    #[error("malformed submission: {0}")]
    Malformed(String),
    /// A shader trapped, or ran too long.
    #[error("{0}")]
    Trap(String),
}

/// A chip that executes what is submitted.
pub trait Gpu: Send {
    /// Executes a submission against the memory that holds all buffers.
    ///
    /// # Errors
    /// See [`Fault`]; what was written before stays.
    fn submit(&mut self, memory: &mut [u8], submission: &Submission<'_>) -> Result<(), Fault>;

    /// What the submissions so far needed and this chip does not do: names, each with how often it came up.
    fn unknown(&self) -> Vec<(String, u64)>;

    /// Keeps the programs that run from now on, for [`take_programs`](Gpu::take_programs).
    fn keep_programs(&mut self);

    /// The vertex and pixel programs that ran since the last call, each only the first time that it comes up.
    fn take_programs(&mut self) -> Vec<ChipProgram>;
}
