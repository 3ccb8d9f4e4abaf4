//! The compiled engine. It runs regions of a program as host code instead of running one clause after another.
//!
//! | read | for |
//! |---|---|
//! | `trace` | tracing of clauses to regions |
//! | `code` | compilation of operations to values |
//! | `run` | entry and exit of a region |
//!
//! A region ends between control-flow instructions. It leaves registers, flow and counts in the same state as the fast
//! engine, which continues there. An operation without a template is compiled to a call of the fast engine's operation.
//! The fast engine runs the code that no region contains. If lockstep must name an instruction, a region may end inside
//! a clause. Only its registers are compared then.

mod code;
mod run;
mod trace;

use reconverge_jit::{MASK, Row};
use reconverge_simt::compiling::Extent;

use super::Fast;
use crate::chip::LANES;

pub(super) use run::{Work, region, run};

/// The regions of a program.
pub(super) type Compiled = reconverge_jit::Compiled<run::R700>;

/// A region that tracing has found.
type Found = reconverge_jit::Found<run::R700>;

/// The row of the active lanes.
const ACTIVE_ROW: Row = Row::Own(MASK);

/// Position of a step.
#[derive(Clone, Copy, Debug)]
pub(super) enum At {
    /// The run of groups of a clause, which pushes the entry of a branch at this depth, counted from 1; 0 for none.
    Clause { run: u32, depth: u32 },
    /// A control-flow instruction that only decides about flow.
    Node(u32),
    /// A step of the clause at this address after its groups.
    After(u32),
}

/// Data that is needed to run a region.
#[derive(Clone, Copy, Debug)]
pub(super) struct Own {
    /// Address at which the wavefront continues.
    after: u32,
    /// Maximum number of branches that are open at once.
    pushes: u32,
    /// Whether some form of clause needs a loop.
    in_loop: bool,
    /// Set if the region is only this number of groups of a longer clause. The reference interpreter runs the other
    /// groups.
    cut: Option<u32>,
}

impl Fast {
    /// Compiles regions, if this host can run generated code.
    pub(super) fn with_passes(mut self, extent: Extent) -> Self {
        let nodes = self.lowered.nodes.len();
        let sizes = [nodes + self.lowered.groups.len(), nodes];
        self.compiled = Compiled::new(self.level, sizes, LANES, || trace::regions(&self.lowered, extent));
        self
    }
}
