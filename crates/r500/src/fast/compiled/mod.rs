//! The compiled engine. This engine runs a program as linked host code. The code computes the results that the fast
//! engine computes.
//!
//! | module | contents |
//! |---|---|
//! | `trace` | turns blocks into nodes of linked code |
//! | `code` | emits host code for operations |
//! | `run` | enters and exits linked code, and executes its flow instructions |
//!
//! Between two nodes, compiled code and the fast engine store registers, flow state and counts in the same variables.
//! So the fast engine can continue after every exit of compiled code. If an operation of an instruction has no
//! template, compiled code calls functions of the fast engine for the instruction.

mod code;
mod run;
mod trace;

use std::ops::Range;
use std::sync::Arc;

use reconverge_jit::{LANES, Linked, Row};
use reconverge_simt::compiling::Extent;

use super::Fast;
use super::operands::MASK;
use crate::group::WIDEST;

pub(super) use run::{Exit, R500, Runner};

/// A program as linked code.
#[derive(Debug)]
pub(super) struct Compiled {
    linked: Arc<Linked<R500>>,
    /// The slots of the instructions in each part of the code. Compiled code counts how often each part runs.
    parts: Vec<Vec<Range<usize>>>,
}

/// Size of a row in bytes.
const ROW: u32 = 4 * WIDEST as u32;

/// The row of the active lanes.
const ACTIVE_ROW: Row = Row::Group(MASK.number() as u32 * ROW);

/// A loop that contains a node.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Loop {
    /// The block with which an iteration begins.
    head: u32,
    /// Whether the loop uses aL.
    al: bool,
    /// The number that an iteration adds to aL.
    step: i8,
}

/// The position of a node.
#[derive(Clone, Debug)]
pub(super) struct Own {
    /// The block in which the node begins.
    block: u32,
    /// The position of the node's first instruction in the block.
    first: u16,
    /// The innermost loop around the node.
    in_loop: Option<Loop>,
    /// The blocks with a flow instruction at which lanes may leave a loop. The second element states whether these
    /// lanes vote to jump.
    leaves: Vec<(u32, bool)>,
    /// The last block of the node.
    ends: u32,
    /// Whether compiled code has counted the flow instruction of the last block.
    is_counted: bool,
}

impl Fast {
    /// Returns this program with linked code for the parts that `extent` selects. If `extent` allows code that ends
    /// inside a block, each block of the program must have one instruction. If AVX2 or memory for code is not
    /// available, this function does not compile anything.
    pub(crate) fn with_code(&self, extent: Extent) -> Fast {
        let lowered = &*self.lowered;
        let size = lowered.blocks.iter().map(|block| usize::from(block.size)).sum();
        let lanes = if lowered.flows.is_empty() { self.most_lanes() } else { lowered.width };
        let lanes = lanes.clamp(1, WIDEST).next_multiple_of(LANES);
        let mut parts = Vec::new();
        let linked = Linked::new(self.level, size, lanes, || {
            let (traced, counted) = trace::trace(lowered, extent);
            parts = counted;
            traced
        });
        Fast { compiled: linked.map(|linked| Arc::new(Compiled { linked, parts })), ..self.clone() }
    }
}

impl Compiled {
    /// Returns the number of counters that compiled code needs. The first counters count the runs of each part of the
    /// code.
    pub(super) fn counts(&self) -> usize {
        self.linked.counts()
    }

    /// Adds the run count of each part to the issue counts of the instructions in the part. Then clears the run counts.
    /// Each counted run of a part was a run for `groups` groups at once.
    pub(super) fn settle(&self, runs: &mut [u64], issued: &mut [u64], groups: usize) {
        for (slots, runs) in self.parts.iter().zip(runs) {
            for slots in slots {
                issued[slots.clone()].iter_mut().for_each(|times| *times += *runs * groups as u64);
            }
            *runs = 0;
        }
    }
}
