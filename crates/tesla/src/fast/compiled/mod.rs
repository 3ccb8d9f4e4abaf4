//! The compiled engine runs a program as linked host code. The fast engine runs the program block by block.
//!
//! | read | for |
//! |---|---|
//! | `trace` | from blocks to nodes |
//! | `code` | from operations to values |
//! | `per_lane` | per-lane slow paths |
//! | `run` | entry, exit and flow of code |
//!
//! When a node has ended, registers, flags, flow state and counts have the same values as in the fast engine. The fast
//! engine can therefore continue wherever compiled code stops. If an instruction has an operation without a template,
//! compiled code calls the fast engine's handlers for all operations of the instruction.

mod code;
mod per_lane;
mod run;
mod trace;

use std::ops::Range;
use std::sync::Arc;

use reconverge_simt::Identity;
use reconverge_simt::compiling::Extent;

use super::Fast;
use crate::context::Context;
use crate::flow::WARP;

pub(super) use run::{Exit, Runner};

/// A program as linked code.
#[derive(Debug)]
pub(super) struct Compiled {
    linked: Arc<reconverge_jit::Linked<run::Tesla>>,
    parts: Parts,
    local: LocalSites,
    identity: Identity,
}

/// A program that has been traced.
type Traced = reconverge_jit::Traced<run::Tesla>;

/// The parts of a program. A part is a list of instructions that compiled code counts together. The list holds the
/// indices of the instructions in the code.
type Parts = Vec<Vec<usize>>;

/// The row that holds, for each lane, the position of the lane's word among the words of all lanes, in bytes.
const PLACES: u32 = reconverge_jit::MASK + 1;

/// The sites through which compiled code loads from l[] and stores to l[], if any.
#[derive(Clone, Copy, Debug, Default)]
struct LocalSites {
    loads: Option<u32>,
    stores: Option<u32>,
}

/// The load or store of an instruction, if any. A load or store has a site only if compiled code accesses the memory
/// without a call.
#[derive(Clone, Copy, Debug, Default)]
struct Access {
    number: Option<u32>,
    site: Option<u32>,
}

/// Operations of the fast engine that a node calls.
#[derive(Clone, Debug)]
pub(super) struct Call {
    operations: Range<u32>,
    access: Access,
}

/// Kinds of lanes that leave a node. Lanes of the first kind wait for the BREAK entry. Lanes of the second kind wait
/// for the CALL entry.
const BROKE: u8 = 0;
const RETURNED: u8 = 1;

/// The position of a node.
#[derive(Clone, Debug)]
pub(super) struct Own {
    /// The block in which the node begins, and the index of the node's first instruction in this block.
    block: u32,
    first: u32,
    /// `ends` is the block whose control flow runs after the node. `leaves` are the blocks at whose ends some lanes
    /// leave the node.
    ends: u32,
    leaves: Vec<u32>,
}

impl Fast {
    /// Compiles the program, if this host can run generated code.
    pub(super) fn with_linked_code(mut self, context: &Context, extent: Extent) -> Self {
        let lowered = &self.lowered;
        let size = lowered.blocks.iter().map(|block| block.size as usize).sum();
        let (mut parts, mut local) = (Parts::new(), LocalSites::default());
        let level = reconverge_jit::Level::from_name(self.level.name());
        let both = level.is_some_and(|level| level.has_both(WARP));
        let linked = reconverge_jit::Linked::new(self.level, size, WARP, || {
            let traced;
            (traced, parts, local) = trace::trace(context, lowered, extent, both);
            traced
        });
        let compiled = |linked| Compiled { linked, parts, local, identity: Identity::new() };
        self.compiled = linked.map(|linked| Arc::new(compiled(linked)));
        self
    }
}

impl Compiled {
    /// Returns the number of counters that compiled code needs. The counters for the runs of the parts come first.
    pub(super) fn counts(&self) -> usize {
        self.linked.counts()
    }

    /// Adds the runs of each part to the issue counts of the part's instructions, and resets the runs to 0.
    pub(super) fn settle(&self, runs: &mut [u64], issued: &mut [u64]) {
        for (places, runs) in self.parts.iter().zip(runs) {
            let runs = std::mem::take(runs);
            places.iter().for_each(|place| issued[*place] += runs);
        }
    }
}
