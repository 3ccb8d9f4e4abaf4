//! The compiled engine: passes of a program as host code, where the fast engine would go from clause to clause.
//!
//! | read | for |
//! |---|---|
//! | `trace` | from clauses to passes |
//! | `code` | from operations to values |
//! | `run` | a pass in the place of clauses |
//!
//! A pass ends between control-flow instructions: registers, flow and counts are the machine's own then, and the fast engine
//! goes on. An operation without a template is the fast engine's own, called from the pass; what a pass does not reach, the
//! fast engine runs. Where lockstep is to name an instruction, a pass may end inside a clause: only its registers count then.

mod code;
mod run;
mod trace;

use std::ops::Range;
use std::sync::Arc;

use reconverge_jit::{CompileError, FLUSH_OPERANDS, MASK, Passes, Plan, Row, Step};
use reconverge_simt::compiling::{Extent, accepts, compile, once};
use reconverge_simt::level::Level;

use super::Fast;
use super::lower::Lowered;
use crate::chip::LANES;

use run::callee;
pub(super) use run::{Passer, Work};

/// The function that passes call.
const CALLEE: reconverge_jit::Callee = callee;

/// The row of the lanes that are active.
const ACTIVE_ROW: Row = Row::Own(MASK);

/// No pass.
const NONE: u32 = u32::MAX;

/// What a run of a pass stands for.
#[derive(Clone, Copy, Debug)]
enum Ran {
    /// The run of groups of a clause, which pushes the entry of a branch at this depth, counted from 1; 0 for none.
    Clause { run: u32, depth: u32 },
    /// A control-flow instruction that only decides.
    Node(u32),
}

/// A pass as it is found.
struct Found {
    plan: Plan,
    /// By step, the address of its control-flow instruction.
    at: Vec<u32>,
    /// By run.
    ran: Vec<Ran>,
    /// Operations of the fast engine that the pass calls.
    calls: Vec<Range<u32>>,
    /// Where the wavefront goes on behind it.
    after: u32,
    /// The next control-flow instruction that no pass has.
    next: u32,
    /// Branches that are open at once, at most.
    pushes: u32,
    /// Whether some form of clause needs a loop.
    in_loop: bool,
    /// It is so many groups of a clause that has more, which are the reference interpreter's.
    cut: Option<u32>,
}

/// The passes of a program.
#[derive(Debug)]
pub(super) struct Compiled {
    passes: Arc<Passes>,
    known: Vec<Known>,
    /// By control-flow instruction, the pass that begins there, or [`NONE`].
    starts: Vec<u32>,
}

/// What running a pass needs to know of it.
#[derive(Debug)]
struct Known {
    at: Vec<u32>,
    ran: Vec<Ran>,
    /// The instructions of all runs before, by run and at the end.
    before: Vec<u32>,
    calls: Vec<Range<u32>>,
    /// Where it begins.
    head: u32,
    after: u32,
    pushes: u32,
    in_loop: bool,
    /// Whether it comes back to its beginning.
    turns: bool,
    most: u32,
    /// As [`Found::cut`].
    cut: Option<u32>,
}

impl Fast {
    /// Compiles passes where that can be.
    pub(super) fn with_passes(mut self, extent: Extent) -> Self {
        let size = self.lowered.nodes.len() + self.lowered.groups.len();
        self.compiled = compile(self.level, size, || Compiled::of(self.level, &self.lowered, extent));
        self
    }
}

impl Compiled {
    /// The passes of a program and the bytes of their code; `None` where nothing is worth it.
    fn of(
        level: Level,
        lowered: &Lowered,
        extent: Extent,
    ) -> Result<Option<(Compiled, usize)>, CompileError> {
        let mut found = trace::passes(lowered, extent);
        found.retain(|(_, found)| accepts(found.plan.verify()));
        if found.is_empty() {
            return Ok(None);
        }
        let plans: Vec<Plan> = found.iter().map(|(_, found)| found.plan.clone()).collect();
        let Some(level) = reconverge_jit::Level::from_name(level.name()) else { return Ok(None) };
        once(reconverge_jit::prepare);
        let passes = Passes::shared(plans, level, LANES, FLUSH_OPERANDS)?;
        let size = passes.size();
        let mut starts = vec![NONE; lowered.nodes.len()];
        let mut known = Vec::new();
        for (node, found) in found {
            starts[node as usize] = known.len() as u32;
            let mut before = vec![0];
            for step in &found.plan.steps {
                if let Step::Run(size) | Step::Meanwhile(size) = step {
                    before.push(before[before.len() - 1] + size);
                }
            }
            known.push(Known {
                most: found.plan.most(),
                turns: found.plan.back != reconverge_jit::Back::Never,
                head: node - lowered.first_of(node),
                at: found.at,
                ran: found.ran,
                before,
                calls: found.calls,
                after: found.after,
                pushes: found.pushes,
                in_loop: found.in_loop,
                cut: found.cut,
            });
        }
        Ok(Some((Compiled { passes, known, starts }, size)))
    }
}
