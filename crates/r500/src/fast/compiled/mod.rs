//! The compiled engine: regions of a program as host code, where the fast engine would run block after block.
//!
//! | read | for |
//! |---|---|
//! | `trace` | from blocks to regions |
//! | `code` | from operations to values |
//! | `run` | entry and exit of a region |
//!
//! At its exits a region leaves registers, flow and counts as the fast engine does, which continues there. An operation without a
//! template is a call of the fast engine's operation. The fast engine runs the code that no region contains.

mod code;
mod run;
mod trace;

use reconverge_jit::{LANES, Row};
use reconverge_simt::compiling::Extent;

use super::Fast;
use super::operands::MASK;
use crate::group::WIDEST;

pub(super) use run::{Exit, Regions, Work};

/// The regions of a program.
pub(super) type Compiled = reconverge_jit::Compiled<run::R500>;

/// A region as it is found.
type Found = reconverge_jit::Found<run::R500>;

/// Bytes of a row.
const ROW: u32 = 4 * WIDEST as u32;

/// The row of the lanes that are active.
const ACTIVE_ROW: Row = Row::Group(MASK.number() as u32 * ROW);

/// Position at which the group continues after a region.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum After {
    /// With the instruction in this slot.
    Before(u16),
    /// With the instruction after the operations of this block, which have run.
    Behind(u32),
}

/// The loop that contains a region.
#[derive(Clone, Copy, Debug)]
struct Loop {
    /// It has aL.
    al: bool,
    /// What its end adds to that.
    step: i8,
}

/// Data that is needed to run a region.
#[derive(Clone, Copy, Debug)]
pub(super) struct Own {
    after: After,
    in_loop: Option<Loop>,
    /// Some flow instruction reads the votes of covered lanes only.
    ignores_uncovered: bool,
}

impl Fast {
    /// Compiles regions, if this host can run code.
    pub(super) fn with_passes(mut self, extent: Extent) -> Self {
        let size = self.lowered.blocks.iter().map(|block| usize::from(block.size)).sum();
        let lanes = self.lowered.width.clamp(1, WIDEST).next_multiple_of(LANES);
        let sizes = [size, self.lowered.blocks.len()];
        self.compiled = Compiled::new(self.level, sizes, lanes, || trace::regions(&self.lowered, extent));
        self
    }
}
