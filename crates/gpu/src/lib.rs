//! A graphics chip as its driver sees it: it executes command streams on memory and produces pixels.
//!
//! A [`Gpu`] executes each [`Submission`] of a driver at once: when [`Gpu::submit`] returns, all results of the
//! commands are in memory.

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

/// Commands with the buffers that they use.
#[derive(Clone, Copy, Debug)]
pub struct Submission<'a> {
    /// The words of the commands.
    pub commands: &'a [u32],
    /// Byte ranges in memory of the buffers of the relocation list, in its order.
    pub buffers: &'a [Range<usize>],
}

/// Reason why a submission was not executed to its end. The chip is then in its state after a reset, and executes the
/// next submission.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum Fault {
    /// The commands cannot be read.
    #[error("malformed submission: {0}")]
    Malformed(String),
    /// A shader trapped, or ran too long.
    #[error("{0}")]
    Trap(String),
}

/// A chip that executes submissions.
pub trait Gpu: Send {
    /// Executes a submission against the memory that holds all buffers. A program may access that memory at the same time.
    /// The results of a submission then depend on the order of the accesses.
    ///
    /// # Errors
    /// See [`Fault`]. Earlier writes remain in memory.
    fn submit(&mut self, memory: Vram<'_>, submission: &Submission<'_>) -> Result<(), Fault>;

    /// Sets the parts of memory that others than the chip may write. `None` means all of memory, which is the
    /// default. At each submission, a chip checks only these parts for changes.
    fn share(&mut self, parts: Option<&[Range<usize>]>) {
        let _ = parts;
    }

    /// Notifies the chip that a part of memory has new contents, even if others may not write to it.
    fn replaced(&mut self, part: &Range<usize>) {
        let _ = part;
    }

    /// Sets the engine that runs programs.
    fn use_engine(&mut self, engine: Engine);

    /// Sets the observer of the chip.
    fn observe(&mut self, observer: Box<dyn Observer>);

    /// Executes commands that the chip itself reads from memory: the words of all segments, in order. A segment is
    /// read when it is reached, since earlier commands may write it. `buffers` lists all buffers: a compute program
    /// cannot access other memory.
    ///
    /// # Errors
    /// See [`Fault`]. A chip that receives its commands in submissions does not read any from memory.
    fn push(
        &mut self,
        memory: Vram<'_>,
        segments: &[Range<usize>],
        buffers: &[Range<usize>],
    ) -> Result<(), Fault> {
        let _ = (memory, buffers);
        Err(Fault::Malformed(format!("{} segments of memory: this chip reads none", segments.len())))
    }

    /// Returns the features that submissions have used and that this chip does not support: name and number of uses
    /// of each.
    fn unknown(&self) -> Vec<(String, u64)>;

    /// Visits each entry of [`Gpu::unknown`], in its order. The chips of this crate allocate nothing here.
    fn each_unknown(&self, visit: &mut dyn FnMut(&str, u64)) {
        self.unknown().iter().for_each(|(name, count)| visit(name, *count));
    }

    /// Returns new messages about the driver. Each describes a known fault that has occurred, with its position in
    /// the driver's source.
    fn take_remarks(&mut self) -> Vec<String> {
        Vec::new()
    }

    /// Returns the number of draws and launches so far, which is the number of the last one. A chip without draws has 0.
    fn draws(&self) -> u64 {
        0
    }
}
