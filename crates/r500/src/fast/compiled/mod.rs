//! The compiled engine: passes of a program as host code, where the fast engine would go from block to block.
//!
//! | read | for |
//! |---|---|
//! | `trace` | from blocks to passes |
//! | `code` | from operations to values |
//! | `rescue` | lanes whose numbers need care |
//! | `run` | a pass in the place of blocks |
//!
//! A pass ends where the fast engine can go on: registers, flow and counts are the machine's own then. An operation without a
//! template is the fast engine's own, called from the pass; what a pass does not reach, the fast engine runs.

mod code;
mod rescue;
mod run;
mod trace;

use std::ops::Range;
use std::sync::Arc;

use reconverge_jit::{Back, CompileError, FLUSH_OPERANDS, LANES, Passes, Plan, Row, Step};
use reconverge_simt::compiling::{Extent, accepts, compile, once};
use reconverge_simt::level::Level;

use super::Fast;
use super::lanes::Set;
use super::lower::Lowered;
use crate::group::WIDEST;

use run::callee;
pub(super) use run::{Passed, Passer, Work};

/// The function that passes call.
const CALLEE: reconverge_jit::Callee = callee;

/// Bytes of a row.
const ROW: u32 = 4 * WIDEST as u32;

/// The row of the lanes that are active.
const ACTIVE_ROW: Row = Row::Group(Set::ACTIVE.place().number() as u32 * ROW);

/// No pass.
const NONE: u32 = u32::MAX;

/// Where the group goes on behind a pass.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum After {
    /// With the instruction in this slot.
    Before(u16),
    /// With what follows the operations of this block, which have run.
    Behind(u32),
}

/// The loop that a pass is in.
#[derive(Clone, Copy, Debug)]
struct Loop {
    /// It has aL.
    al: bool,
    /// What its end adds to that.
    step: i8,
    /// The pass comes back to its beginning.
    turns: bool,
}

/// A pass as it is found.
struct Found {
    plan: Plan,
    /// By step, the block.
    at: Vec<u32>,
    /// By run, the block.
    ran: Vec<u32>,
    /// Operations of the fast engine that the pass calls.
    calls: Vec<Range<u32>>,
    after: After,
    /// The next block that no pass has.
    next: u32,
    in_loop: Option<Loop>,
    /// Some flow instruction asks covered lanes only.
    ignores_uncovered: bool,
}

/// The passes of a program.
#[derive(Debug)]
pub(super) struct Compiled {
    passes: Arc<Passes>,
    known: Vec<Known>,
    /// By block, the pass that begins there, or [`NONE`].
    starts: Vec<u32>,
}

/// What running a pass needs to know of it.
#[derive(Debug)]
struct Known {
    /// The slot where it begins.
    head: u16,
    at: Vec<u32>,
    ran: Vec<u32>,
    /// The instructions of all runs before, by run and at the end.
    before: Vec<u32>,
    calls: Vec<Range<u32>>,
    after: After,
    in_loop: Option<Loop>,
    ignores_uncovered: bool,
    /// Instructions of a turn at most, with those of a block that it leaves to be counted.
    most: u32,
}

impl Fast {
    /// Compiles passes where that can be.
    pub(super) fn with_passes(mut self, extent: Extent) -> Self {
        let size = self.lowered.blocks.iter().map(|block| usize::from(block.size)).sum();
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
        let lanes = lowered.width.clamp(1, WIDEST).next_multiple_of(LANES);
        let Some(level) = reconverge_jit::Level::from_name(level.name()) else { return Ok(None) };
        // Two vectors of sixteen lanes hide less of what instructions wait for than four of eight: newton gains 7 %, mandel loses
        // 7 % (an AMD EPYC).
        let level = level.min(reconverge_jit::Level::Avx2);
        once(reconverge_jit::prepare);
        let passes = Passes::shared(plans, level, lanes, FLUSH_OPERANDS)?;
        let size = passes.size();
        let mut starts = vec![NONE; lowered.blocks.len()];
        let mut known = Vec::new();
        for (block, found) in found {
            starts[block as usize] = known.len() as u32;
            let mut before = vec![0];
            for step in &found.plan.steps {
                if let Step::Run(size) = step {
                    before.push(before[before.len() - 1] + size);
                }
            }
            debug_assert_eq!(found.in_loop.is_some_and(|it| it.turns), found.plan.back != Back::Never);
            known.push(Known {
                head: lowered.blocks[block as usize].first,
                most: found.plan.most()
                    + match found.after {
                        After::Behind(block) if found.plan.back == Back::Never => {
                            lowered.blocks[block as usize].size.into()
                        }
                        _ => 0,
                    },
                at: found.at,
                ran: found.ran,
                before,
                calls: found.calls,
                after: found.after,
                in_loop: found.in_loop,
                ignores_uncovered: found.ignores_uncovered,
            });
        }
        Ok(Some((Compiled { passes, known, starts }, size)))
    }
}
