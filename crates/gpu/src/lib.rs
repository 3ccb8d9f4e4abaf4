//! A graphics chip as its driver sees it: command streams and memory, to pixels.
//!
//! A [`Gpu`] takes what a driver submits, one [`Submission`] after another, and executes it at once: when
//! [`Gpu::submit`] returns, everything that the commands write is in memory.

#![forbid(unsafe_code)]

mod capture;
mod chip;
mod copied;
pub mod device;
mod images;
mod kept;
pub mod launch_file;
mod numbers;
pub mod nv50;
pub mod observe;
mod pm4;
pub mod r300;
pub mod r600;
mod register;
mod sampling;
mod texels;
mod unknown;

use std::ops::Range;

use reconverge_simt::Engine;
use reconverge_simt::vram::Vram;
use thiserror::Error;

use crate::observe::Observer;

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
    /// Executes a submission against the memory that holds all buffers. A program may access that memory at the same time.
    /// The results of a submission then depend on the order of the accesses.
    ///
    /// # Errors
    /// See [`Fault`]; what was written before stays.
    fn submit(&mut self, memory: Vram<'_>, submission: &Submission<'_>) -> Result<(), Fault>;

    /// Sets the parts of memory that others than the chip may write from now on. `None` means all of memory, as at the start.
    /// A chip looks for changes in these parts at each submission, and in no others.
    fn share(&mut self, parts: Option<&[Range<usize>]>) {
        let _ = parts;
    }

    /// Notes that a part of memory has other contents, whether others may write to it or not.
    fn replaced(&mut self, part: &Range<usize>) {
        let _ = part;
    }

    /// Runs programs on an engine from now on.
    fn use_engine(&mut self, engine: Engine);

    /// Has an observer look at everything from now on.
    fn observe(&mut self, observer: Box<dyn Observer>);

    /// Executes commands that the chip itself reads from memory: the words of all segments, one behind the other. A
    /// segment is read when it is reached, since commands before it may write it. `buffers` are all that there are: a
    /// compute program reaches no memory outside of them.
    ///
    /// # Errors
    /// See [`Fault`]. A chip to which commands are given takes none from memory.
    fn push(
        &mut self,
        memory: Vram<'_>,
        segments: &[Range<usize>],
        buffers: &[Range<usize>],
    ) -> Result<(), Fault> {
        let _ = (memory, buffers);
        Err(Fault::Malformed(format!("{} segments of memory: this chip reads none", segments.len())))
    }

    /// What the submissions so far needed and this chip does not do: names, each with how often it came up.
    fn unknown(&self) -> Vec<(String, u64)>;

    /// Visits each entry of [`Gpu::unknown`], in its order. The chips of this crate allocate nothing here.
    fn each_unknown(&self, visit: &mut dyn FnMut(&str, u64)) {
        self.unknown().iter().for_each(|(name, count)| visit(name, *count));
    }

    /// Returns new messages about the driver: each names a known fault that has shown, with its place in the driver's source.
    fn take_remarks(&mut self) -> Vec<String> {
        Vec::new()
    }

    /// Returns the number of draws and launches so far, which is the number of the last one. A chip without draws has 0.
    fn draws(&self) -> u64 {
        0
    }
}
