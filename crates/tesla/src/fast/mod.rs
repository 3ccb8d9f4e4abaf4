//! The fast engine. This engine executes an instruction for all lanes of a warp at once. The instruction becomes
//! operations on rows of 32 values. Some decisions are the same in every run of a program. The engine makes such a
//! decision only once per program.
//!
//! | read | for |
//! |---|---|
//! | `lower` | from instructions to blocks of operations |
//! | `lanes` | the state and the operands of operations, and the compilation of a body for each level of vector instructions |
//! | `kernels`, `bodies` | the operations |
//! | `host_float` | f32 sums and products by the host's operation, if no lane is an exception |
//! | `sfu` | rcp, rsqrt, lg2, presin, preex2, sin, cos, ex2 without branches |
//! | `words`, `memory` | loads and stores of a warp: `words` executes the common access patterns, and `memory` executes all other patterns |
//! | `stage` | inputs and outputs of graphics stages |
//! | `texture` | texture reads and quad operations of a warp |
//! | `cleared` | the registers that the start of a warp sets to zero |
//! | `run` | blocks in order, and the control flow between them |
//! | `parallel` | blocks of a grid on several threads |
//! | `straight` | warps of fragment and vertex programs without control flow |
//! | `lockstep` | both engines side by side |
//!
//! The fast engine and the reference interpreter share [`crate::flow`], [`crate::lane`], memory and launches. Both
//! return the same registers, memory, counts and traps. If the fast engine cannot execute an instruction, the reference
//! interpreter executes the instruction.

// Calls of code for extensions of the processor are unsafe. The engine also accesses blocks without a bounds check. A
// comment at each of these calls and accesses states why it is sound.
#![allow(unsafe_code)]

mod announce;
mod bodies;
mod cleared;
mod compiled;
mod cursor;
mod host_float;
mod kernels;
mod lanes;
pub(crate) mod lockstep;
mod lower;
mod memory;
mod operands;
pub(crate) mod parallel;
mod run;
mod sfu;
mod stage;
mod straight;
mod texture;
mod words;

use std::sync::Arc;

use reconverge_simt::compiling::Extent;
use reconverge_simt::loaded::Spare;
use reconverge_simt::{Identity, Level};

use crate::block::Block;
use crate::context::Context;
use crate::grid::Grid;
use cleared::Cleared;
use compiled::Runner;
use lower::Lowered;
use straight::Straight;

/// A program lowered for a launch.
#[derive(Clone, Debug)]
pub struct Fast {
    lowered: Arc<Lowered>,
    level: Level,
    compiled: Option<Arc<compiled::Compiled>>,
    /// A block of a graphics stage that has ended and can be used again.
    spare: Spare<Box<Block>>,
    /// The straight-line forms of the program, if any. The first form is for launches with 1/w. The second form is for
    /// launches without 1/w.
    straight: [Option<Arc<Straight>>; 2],
    cleared: Arc<Cleared>,
}

impl Fast {
    /// Returns the linked code of the program, and the state for running this code in a launch. `layout` is the
    /// identity of the memory layout in the launch. Returns `None` if the program is not compiled.
    fn runner(&self, launch: &Context, layout: Option<Identity>) -> Option<Runner<'_>> {
        self.compiled.as_deref().map(|compiled| Runner::new(compiled, launch.identity, layout))
    }

    /// Lowers the program of a launch.
    pub fn of(grid: &Grid, level: Level) -> Self {
        Fast::lowered(grid, level, false)
    }

    fn lowered(grid: &Grid, level: Level, singly: bool) -> Self {
        let launch = grid.launch();
        let registers = launch.setup().registers as usize;
        let context = grid.context();
        let mut lowered =
            lower::lower(context, registers, launch.shared_bytes(), launch.inputs(), level, singly);
        let straight = [false, true].map(|ones| Straight::of(&lowered, context, ones).map(Arc::new));
        // The additional rows of the straight-line forms come after all other rows.
        let kept = straight.iter().flatten().map(|straight| straight.kept()).max();
        (0..kept.unwrap_or(0)).for_each(|_| lowered.add_row());
        let cleared = Cleared::of(context).into();
        Fast { straight, lowered: Arc::new(lowered), level, compiled: None, spare: Spare::default(), cleared }
    }

    /// Creates the compiled engine. If the host has no AVX2, or no memory for code, the result is the fast engine.
    pub(crate) fn compiled(grid: &Grid, level: Level, extent: Extent) -> Self {
        Fast::lowered(grid, level, extent.cuts_blocks()).with_linked_code(grid.context(), extent)
    }

    /// Returns the same program with host code for the parts that `extent` selects. `extent` must not cut blocks.
    pub(crate) fn with_code(&self, grid: &Grid, extent: Extent) -> Self {
        self.clone().with_linked_code(grid.context(), extent)
    }

    /// Returns whether part of the program is host code.
    fn is_compiled(&self) -> bool {
        self.compiled.is_some()
    }

    /// Returns the indices of the instructions that the reference interpreter executes.
    pub fn by_reference(&self) -> Vec<usize> {
        let blocks = self.lowered.blocks.iter().zip(&self.lowered.inside);
        let last = |(block, inside): (&lower::Block, &lower::Inside)| match block.last {
            lower::Last::Reference => inside.places.last().copied(),
            _ => None,
        };
        blocks.filter_map(last).collect()
    }
}
