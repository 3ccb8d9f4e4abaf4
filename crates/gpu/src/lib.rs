//! Emulates the interface between graphics chips and their drivers. A chip executes the command streams of a driver,
//! and draws pixels in memory.
//!
//! A [`Gpu`] executes each [`Submission`] of a driver immediately. When [`Gpu::submit`] returns, all results of the
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

/// Commands, and the buffers that the commands use.
#[derive(Clone, Copy, Debug)]
pub struct Submission<'a> {
    /// The words of the commands.
    pub commands: &'a [u32],
    /// The buffers of the relocation list, in the order of the list. A buffer is a range of bytes in memory.
    pub buffers: &'a [Range<usize>],
}

/// Reason for which a submission was not executed completely. After a fault, the chip has the same state as after a
/// reset, and can execute further submissions.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum Fault {
    /// The commands are malformed.
    #[error("malformed submission: {0}")]
    Malformed(String),
    /// A shader trapped, or exceeded the maximum number of instructions.
    #[error("{0}")]
    Trap(String),
}

/// A chip that executes submissions.
pub trait Gpu: Send {
    /// Executes a submission. `memory` contains all buffers. If the application accesses memory during the submission,
    /// the results depend on the order of the accesses.
    ///
    /// # Errors
    /// Returns a [`Fault`] if the submission was not executed completely. The chip's writes before the fault remain in
    /// memory.
    fn submit(&mut self, memory: Vram<'_>, submission: &Submission<'_>) -> Result<(), Fault>;

    /// Sets the parts of memory that the application or other processes may change. `None` means all of memory, which
    /// is the default. At each submission, the chip searches only these parts for changes.
    fn share(&mut self, parts: Option<&[Range<usize>]>) {
        let _ = parts;
    }

    /// Notifies the chip that a part of memory has new contents. The part may be outside of the parts that
    /// [`Gpu::share`] sets.
    fn replaced(&mut self, part: &Range<usize>) {
        let _ = part;
    }

    /// Sets the engine that runs programs.
    fn use_engine(&mut self, engine: Engine);

    /// Sets the observer of the chip.
    fn observe(&mut self, observer: Box<dyn Observer>);

    /// Executes commands. The chip reads these commands from memory. The commands are the words of all segments, in
    /// order. Commands of an earlier segment may write to a later segment. Therefore, the chip executes the earlier
    /// segments before it reads the later segment. `buffers` lists all buffers. Compute programs cannot access memory
    /// outside of these buffers.
    ///
    /// # Errors
    /// Returns a [`Fault`]. A chip that does not read commands from memory always returns a fault.
    fn push(
        &mut self,
        memory: Vram<'_>,
        segments: &[Range<usize>],
        buffers: &[Range<usize>],
    ) -> Result<(), Fault> {
        let _ = (memory, buffers);
        Err(Fault::Malformed(format!(
            "cannot read {} segments: this chip does not read commands from memory",
            segments.len()
        )))
    }

    /// Returns the unsupported features that submissions have used. An entry has the name of a feature and the number
    /// of uses.
    fn unknown(&self) -> Vec<(String, u64)>;

    /// Calls `visit` for each entry of [`Gpu::unknown`], in the order of [`Gpu::unknown`]. The chips of this crate do
    /// not allocate memory for this call.
    fn each_unknown(&self, visit: &mut dyn FnMut(&str, u64)) {
        self.unknown().iter().for_each(|(name, count)| visit(name, *count));
    }

    /// Returns the chip's messages since the last call of this function. A message describes a known fault of the
    /// driver that has occurred. The message also names the position of the fault in the driver's source.
    fn take_remarks(&mut self) -> Vec<String> {
        Vec::new()
    }

    /// Returns the number of draws and launches so far, which is also the number of the last draw or launch.
    fn draws(&self) -> u64 {
        0
    }
}
