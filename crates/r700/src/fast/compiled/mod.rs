//! The compiled engine: a program as linked host code. The fast engine would run the same code one clause after
//! another.
//!
//! | read | for |
//! |---|---|
//! | `trace` | from clauses to nodes |
//! | `code` | from operations to values |
//! | `run` | entry, exit and flow of code |
//!
//! Between two nodes, registers, flow and counts are those of the fast engine. It runs the instructions that no node
//! contains: at the end of a node, code calls it and continues with the next node. An operation without a template is
//! a call of the fast engine's operation. A vertex fetch loads from a site, which has the memory of its buffer. If lockstep must name an instruction, a node may end inside a clause. Only
//! its registers are compared then.

mod code;
mod run;
mod trace;

use std::sync::Arc;

use reconverge_jit::{MASK, Row};
use reconverge_simt::compiling::Extent;

use super::Fast;
use super::counts::Counts;
use super::lower::Bound;
use crate::chip::LANES;
use crate::flow::{AluForm, Flow};
use crate::launch::Environment;

pub(super) use run::run;

/// A program as linked code.
#[derive(Debug)]
pub(super) struct Compiled {
    linked: Arc<reconverge_jit::Linked<run::R700>>,
    parts: Parts,
    /// The vertex buffer of each site.
    buffers: Vec<Bound>,
    /// Whether code indexes registers.
    indexes: bool,
}

/// A program that has been traced.
type Traced = reconverge_jit::Traced<run::R700>;

/// The instructions of each part whose runs code counts.
type Parts = Vec<Vec<Counted>>;

/// The row of the active lanes.
const ACTIVE_ROW: Row = Row::Own(MASK);

/// The row of the place of each lane in a row, in bytes.
const PLACES_ROW: Row = Row::Own(PLACES);
const PLACES: u32 = MASK + 1;

/// Instructions that code runs and counts, by number.
#[derive(Clone, Copy, Debug)]
enum Counted {
    /// A run of groups of a clause.
    Run(u32),
    /// A control-flow instruction.
    Node(u32),
    /// An instruction of a fetch clause.
    Fetch(u32),
}

/// The flow at the end of a node.
#[derive(Clone, Copy, Debug)]
enum End {
    /// Flow continues at this address.
    At(u32),
    /// The groups of the clause at this address have run. `skip` is the word of the lanes that UPDATE_EXECUTE_MASK
    /// switches off.
    Clause { pc: u32, last_pc: u32, form: AluForm, skip: Option<u32> },
    /// An iteration ends at the LOOP_END with this number.
    Iteration(u32),
    /// This number of groups of the clause at this address have run. The reference interpreter runs the others.
    Cut { pc: u32, groups: usize },
}

/// The flow of a node.
#[derive(Clone, Debug)]
pub(super) struct Own {
    /// The address at which it begins.
    pc: u32,
    /// Whether some form of clause needs a loop, here or in a node to which code continues without the flow.
    in_loop: bool,
    /// The addresses of ALU_BREAKs after which lanes leave it.
    leaves: Vec<u32>,
    end: End,
}

impl Fast {
    /// Compiles the program, if this host can run code.
    pub(super) fn with_passes(mut self, extent: Extent) -> Self {
        let lowered = &self.lowered;
        let (mut parts, mut buffers, mut indexes) = (Parts::new(), Vec::new(), false);
        let size = lowered.nodes.len() + lowered.groups.len();
        let linked = reconverge_jit::Linked::new(self.level, size, LANES, || {
            let traced;
            (traced, parts, buffers, indexes) = trace::trace(lowered, extent);
            traced
        });
        self.compiled = linked.map(|linked| Arc::new(Compiled { linked, parts, buffers, indexes }));
        self
    }
}

impl Compiled {
    /// Returns the number of counts that code needs: runs of parts, then others.
    pub(super) fn counts(&self) -> usize {
        self.linked.counts()
    }

    /// Returns the memory of each site for launches in an environment, or `None` if code cannot load from it.
    pub(super) fn memory<'a>(&self, environment: &'a Environment) -> Option<Vec<&'a [u8]>> {
        let of_site = |bound: &Bound| {
            let bytes = &environment.bound(bound.alternate).vertex_buffers.get(&bound.id)?.bytes;
            code::FITS.contains(&bytes.len()).then_some(&bytes[..])
        };
        self.buffers.iter().map(of_site).collect()
    }

    /// Returns the node that begins at a control-flow instruction, if it may run with this budget and flow.
    #[inline(always)]
    pub(super) fn node(&self, number: u32, budget: u64, flow: &Flow) -> Option<u32> {
        run::node(&self.linked, number, budget, flow)
    }

    /// Adds the runs of parts to those of their instructions, and clears them.
    pub(super) fn settle(&self, counts: &mut Counts) {
        let Counts { runs, nodes, fetches, code, .. } = counts;
        for (counted, times) in self.parts.iter().zip(code) {
            let times = std::mem::take(times);
            for counted in counted {
                match *counted {
                    Counted::Run(run) => runs[run as usize] += times,
                    Counted::Node(number) => nodes[number as usize] |= times > 0,
                    Counted::Fetch(number) => fetches[number as usize] += times,
                }
            }
        }
    }
}
