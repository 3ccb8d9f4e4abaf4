//! The compiled engine: regions of a program as host code. The fast engine would run the same code block by block.
//!
//! | read | for |
//! |---|---|
//! | `trace` | from blocks to regions |
//! | `code` | from operations to values |
//! | `per_lane` | per-lane slow paths |
//! | `run` | entry and exit of a region |
//!
//! At its exits, a region leaves registers, flags, flow and counts as the fast engine does, and the fast engine
//! continues there. If some operation of an instruction has no template, the region calls the operations of the
//! instruction. The fast engine runs the code that no region contains.

mod code;
mod per_lane;
mod run;
mod trace;

use std::ops::Range;

use reconverge_simt::compiling::Extent;

use super::Fast;
use crate::context::Context;
use crate::flow::WARP;

pub(super) use run::{Exit, Runner, Work};

/// The regions of a program.
pub(super) type Compiled = reconverge_jit::Compiled<run::Tesla>;

/// A region that tracing has found.
type Found = reconverge_jit::Found<run::Tesla>;

/// The wait of lanes that exit a region.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Gone {
    /// The lanes wait at a join.
    Waits,
    /// The lanes wait for the BREAK entry.
    Breaks,
    /// The lanes wait for the CALL entry.
    Returns,
    /// The lanes wait for a BRANCH entry, and continue at the address `next`.
    Branches { next: u32 },
}

/// The position of a step.
#[derive(Clone, Copy, Debug)]
pub(super) struct At {
    block: u32,
    is: Is,
}

/// Kinds of steps.
#[derive(Clone, Copy, Debug)]
enum Is {
    /// The block runs, or a segment begins before it.
    Block,
    /// A segment begins at the load or store at the end of the block.
    Access,
    /// Lanes exit at the end of the block.
    Exit(Gone),
}

/// Position at which the warp continues after a region.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum After {
    /// The warp continues at this block.
    Before(u32),
    /// The warp continues at the flow of this block, which has not been executed.
    Behind(u32),
}

/// A load or store, by number.
#[derive(Clone, Copy, Debug)]
struct Access(Option<u32>);

/// Operations of the fast engine that a region calls.
#[derive(Clone, Debug)]
pub(super) struct Call {
    operations: Range<u32>,
    access: Access,
    /// The `$c` and `$a` that they read or write, as a mask: `$c0` is the first bit, `$a1` the fifth.
    registers: u32,
}

/// The `$c` and `$a` of a region, as [`Call::registers`].
#[derive(Clone, Copy, Debug)]
struct Registers {
    /// The registers that it reads or writes.
    touched: u32,
    /// The registers that it writes.
    written: u32,
    /// The registers that its first segment writes for all active lanes before any read.
    fresh: u32,
}

/// Data that a run of a region needs.
#[derive(Clone, Copy, Debug)]
pub(super) struct Own {
    after: After,
    registers: Registers,
    /// Number of stack entries that must be free, and whether one more is needed for each lane that exits.
    entries: usize,
    branches: bool,
}

impl Fast {
    /// Compiles regions, if this host can run code.
    pub(super) fn with_passes(mut self, context: &Context, extent: Extent) -> Self {
        let lowered = &self.lowered;
        let size = lowered.blocks.iter().map(|block| block.size as usize).sum();
        let trace = || trace::regions(context, lowered, extent);
        self.compiled = Compiled::new(self.level, [size, lowered.blocks.len()], WARP, trace);
        self
    }
}
