//! The compiled engine. This engine runs a program as linked host code, whereas the fast engine calls a function for
//! each operation.
//!
//! | module | purpose |
//! |---|---|
//! | `trace` | converts clauses to nodes |
//! | `code` | converts operations to values of the generated code |
//! | `run` | enters and leaves compiled code, and updates the flow state |
//!
//! Between two nodes, registers, flow state and counts are the same as in the fast engine. The fast engine runs the
//! instructions that no node contains. At such an instruction, the node ends, and compiled code calls the fast engine.
//! Compiled code then continues with another node. If an operation has no template, compiled code calls the fast
//! engine's function for the operation. A vertex fetch loads from a site. A site contains the memory of one buffer.
//! Lockstep reports the instruction at which two engines differ. To find this instruction, lockstep can use a node that
//! ends inside a clause. At the end of such a node, lockstep compares only the registers.

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
use crate::flow::AluForm;
use crate::launch::Environment;

pub(super) use run::{node, run};

/// A program as linked code.
#[derive(Debug)]
pub(super) struct Compiled {
    pub(super) linked: Arc<reconverge_jit::Linked<run::R700>>,
    parts: Parts,
    /// For each site, the vertex buffer whose memory the site holds.
    buffers: Vec<Bound>,
    /// Whether compiled code accesses registers through an index.
    indexes: bool,
}

/// A program that has been traced.
type Traced = reconverge_jit::Traced<run::R700>;

/// For each part, the instructions of the part. Compiled code counts how often each part runs.
type Parts = Vec<Vec<Counted>>;

/// The row that holds the mask of the active lanes.
const ACTIVE_ROW: Row = Row::Own(MASK);

/// The row that holds, for each lane, the position of the lane's word inside a row, in bytes.
const PLACES_ROW: Row = Row::Own(PLACES);
const PLACES: u32 = MASK + 1;

/// An instruction that compiled code runs and counts.
#[derive(Clone, Copy, Debug)]
enum Counted {
    /// A run of groups of a clause. The value is the number of the run in the program.
    Run(u32),
    /// A control-flow instruction. The value is the number of the instruction in the program.
    Node(u32),
    /// An instruction of a fetch clause.
    Fetch(u32),
}

/// The change of the flow state at the end of a node.
#[derive(Clone, Copy, Debug)]
enum End {
    /// The wavefront continues at this address.
    At(u32),
    /// The groups of the clause at address `pc` have run. UPDATE_EXECUTE_MASK switches some lanes off. The node has a
    /// word with these lanes, and `skip` is the index of this word.
    Clause { pc: u32, last_pc: u32, form: AluForm, skip: Option<u32> },
    /// An iteration ends at the LOOP_END with this number.
    Iteration(u32),
    /// The first `groups` groups of the clause at address `pc` have run. The reference interpreter runs the remaining
    /// groups of this clause.
    Cut { pc: u32, groups: usize },
}

/// Data about a node. The engine uses these data to update the flow state.
#[derive(Clone, Debug)]
pub(super) struct Own {
    /// The address at which the node begins.
    pc: u32,
    /// Whether the node can run only inside a loop. The field is `true` if a clause of the node must be inside a loop.
    /// Suppose that compiled code can continue from node A with node B without a change of the flow state. If B can run
    /// only inside a loop, the field of A is also `true`.
    in_loop: bool,
    /// Addresses of the node's ALU_BREAKs. The lanes that an ALU_BREAK disables leave the node.
    leaves: Vec<u32>,
    end: End,
}

impl Fast {
    /// Compiles the program, if this host can run generated code.
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
    /// Returns the memory of each site for launches in `environment`. Returns `None` if compiled code cannot load from
    /// this memory.
    pub(super) fn memory<'a>(&self, environment: &'a Environment) -> Option<Vec<&'a [u8]>> {
        let of_site = |bound: &Bound| {
            let bytes = &environment.bound(bound.alternate).vertex_buffers.get(&bound.id)?.bytes;
            code::FITS.contains(&bytes.len()).then_some(&bytes[..])
        };
        self.buffers.iter().map(of_site).collect()
    }

    /// Adds the count of each part to the counts of the part's instructions. Then sets the counts of the parts to zero.
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
