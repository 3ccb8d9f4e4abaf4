//! The compiled engine. It compiles regions of a program, which the fast engine would run block by block.
//!
//! | read | for |
//! |---|---|
//! | `trace` | blocks to regions |
//! | `code` | operations to values |
//! | `run` | entry and exit of a region |
//!
//! At its exits, a region leaves registers, flow and counts in the state that the fast engine expects. The fast
//! engine then continues. For an operation without a template, the region calls the fast engine's operation. The fast
//! engine also runs the code that no region contains.

mod code;
mod run;
mod trace;

use reconverge_jit::{LANES, Row};
use reconverge_simt::compiling::Extent;

use super::Fast;
use super::operands::MASK;
use crate::group::WIDEST;

pub(super) use run::{Exit, Work, region, run};

/// The regions of a program.
pub(super) type Compiled = reconverge_jit::Compiled<run::R500>;

/// A region that the tracer has found.
type Found = reconverge_jit::Found<run::R500>;

/// Bytes of a row.
const ROW: u32 = 4 * WIDEST as u32;

/// The row of the active lanes.
const ACTIVE_ROW: Row = Row::Group(MASK.number() as u32 * ROW);

/// Position at which the group continues after a region.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum After {
    /// The instruction in this slot.
    Before(u16),
    /// The instruction after the operations of this block, which have run.
    Behind(u32),
}

/// The loop that contains a region.
#[derive(Clone, Copy, Debug)]
struct Loop {
    /// Whether the loop has aL.
    al: bool,
    /// The value that the end of the loop adds to aL.
    step: i8,
}

/// Data that is needed to run a region.
#[derive(Clone, Copy, Debug)]
pub(super) struct Own {
    after: After,
    in_loop: Option<Loop>,
    /// Whether some flow instruction counts only the votes of covered lanes.
    ignores_uncovered: bool,
}

impl Fast {
    /// Returns the same program with compiled regions of an extent. Regions can end inside a block only if the
    /// program was lowered for that. Without AVX2 or memory for code, nothing is compiled.
    pub(crate) fn with_code(&self, extent: Extent) -> Fast {
        let size = self.lowered.blocks.iter().map(|block| usize::from(block.size)).sum();
        let lanes = self.lowered.width.clamp(1, WIDEST).next_multiple_of(LANES);
        let sizes = [size, self.lowered.blocks.len()];
        let compiled = Compiled::new(self.level, sizes, lanes, || trace::regions(&self.lowered, extent));
        Fast { compiled, ..self.clone() }
    }
}
