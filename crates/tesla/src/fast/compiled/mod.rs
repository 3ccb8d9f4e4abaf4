//! The compiled engine: passes of a program as host code, where the fast engine would go from block to block.
//!
//! | read | for |
//! |---|---|
//! | `trace` | from blocks to passes |
//! | `code` | from instructions to values |
//! | `rescue` | lanes whose numbers need care |
//! | `run` | a pass in the place of blocks |
//!
//! A pass ends where the fast engine can go on: registers, flags, flow and counts are the machine's own then. What has no
//! template is an operation of the fast engine, called from the pass; what a pass does not reach, the fast engine runs.

mod code;
mod rescue;
mod run;
mod trace;

use std::ops::Range;
use std::sync::Arc;

use reconverge_jit::{CompileError, FLUSH, Passes, Plan, Row, Step};
use reconverge_simt::compiling::{Extent, accepts, compile, once};
use reconverge_simt::level::Level;

use super::Fast;
use super::lanes::ACTIVE;
use super::lower::{Lowered, NONE, SETS};
use crate::context::Context;
use crate::flow::WARP;
use crate::inst::{Base, Mem, Space};

use code::Program;
use run::callee;
pub(super) use run::{Passed, Runner, Work};

/// The function that passes call.
const CALLEE: reconverge_jit::Callee = callee;

/// How lanes that leave a pass wait.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Gone {
    /// At a join.
    Waits,
    /// For the BREAK entry.
    Breaks,
    /// For the CALL entry.
    Returns,
    /// For a BRANCH entry, at an address.
    Branches { next: u32 },
}

/// Where the warp goes on behind a pass.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum After {
    /// With this block.
    Before(u32),
    /// With what follows this block, whose flow has not been asked.
    Behind(u32),
}

/// A load or store, by number.
#[derive(Clone, Copy, Debug)]
struct Access(Option<u32>);

/// Operations of the fast engine that a pass calls.
#[derive(Clone, Debug)]
struct Call {
    operations: Range<u32>,
    access: Access,
    /// The `$c` and `$a` that they read or write: `$c0` is the first bit, `$a1` the fifth.
    registers: u32,
}

/// The `$c` and `$a` of a pass, as [`Call::registers`].
#[derive(Clone, Copy, Debug)]
struct Registers {
    /// Those that it reads or writes.
    touched: u32,
    /// Those that it writes.
    written: u32,
    /// Those that its first segment writes for all lanes that are active, before anything reads them.
    fresh: u32,
}

/// A pass as it is found.
struct Found {
    plan: Plan,
    /// By step, the block.
    at: Vec<u32>,
    /// Steps with which segments begin at the load or store at the end of a block, not before the block.
    at_access: Vec<u32>,
    /// Steps with which lanes leave.
    gone: Vec<(u32, Gone)>,
    calls: Vec<Call>,
    after: After,
    blocks: Vec<u32>,
    registers: Registers,
    /// Entries of the stack that must be free, and whether one more for each lane that leaves.
    entries: usize,
    branches: bool,
}

/// The passes of a program.
#[derive(Debug)]
pub(super) struct Compiled {
    passes: Arc<Passes>,
    /// By pass.
    known: Vec<Known>,
    /// By block, the pass that begins there, or [`NONE`].
    starts: Vec<u32>,
}

/// What running a pass needs to know of it.
#[derive(Debug)]
struct Known {
    at: Vec<u32>,
    /// As [`Found::at_access`].
    at_access: Vec<u32>,
    /// By run, the block.
    ran: Vec<u32>,
    /// The instructions of all runs before, by run and at the end.
    before: Vec<u32>,
    gone: Vec<(u32, Gone)>,
    calls: Vec<Call>,
    after: After,
    registers: Registers,
    /// As [`Found::entries`].
    entries: usize,
    branches: bool,
    most: u32,
}

impl Fast {
    /// Compiles passes where that can be, for blocks with so many bytes of s[].
    pub(super) fn with_passes(mut self, context: &Context, shared: usize, extent: Extent) -> Self {
        let size = self.lowered.blocks.iter().map(|block| block.size as usize).sum();
        self.compiled =
            compile(self.level, size, || Compiled::of(self.level, context, &self.lowered, shared, extent));
        self
    }
}

impl Compiled {
    /// The passes of a program and the bytes of their code; `None` where nothing is worth it.
    fn of(
        level: Level,
        context: &Context,
        lowered: &Lowered,
        shared: usize,
        extent: Extent,
    ) -> Result<Option<(Compiled, usize)>, CompileError> {
        let constant = |mem: &Mem| {
            let fixed = mem.base == Base::A(0) && !mem.increment && mem.access.bytes() <= 4;
            let Space::Const(bank) = mem.space else { return None };
            fixed.then(|| {
                let at = crate::spaces::aligned(u32::from(mem.offset as u16), mem.access.bytes());
                let raw = context.setup.constants.read(bank, at, mem.access.bytes());
                crate::access::extended(raw.into(), mem.access) as u32
            })
        };
        let stride = 4 * WARP as u32;
        let mask = lowered.tables.sets[ACTIVE].number() as u32;
        // Their rows come first.
        let registers = lowered.tables.sets[ACTIVE].number() - SETS - ACTIVE;
        let program = Program {
            context,
            registers,
            extent,
            mask: Row::Group(mask * stride),
            stride,
            constant: &constant,
            shared: shared as u32,
        };
        let mut found = trace::passes(context, lowered, &program);
        found.retain(|(_, found)| accepts(found.plan.verify()));
        if found.is_empty() {
            return Ok(None);
        }
        let plans: Vec<Plan> = found.iter().map(|(_, found)| found.plan.clone()).collect();
        let Some(level) = reconverge_jit::Level::from_name(level.name()) else { return Ok(None) };
        // Two vectors of sixteen lanes hide less of what instructions wait for than four of eight: mandel gains 4 %, collatz
        // loses 8 % (an AMD EPYC).
        let level = level.min(reconverge_jit::Level::Avx2);
        once(reconverge_jit::prepare);
        let passes = Passes::shared(plans, level, WARP, FLUSH)?;
        let size = passes.size();
        let mut starts = vec![NONE; lowered.blocks.len()];
        let mut known = Vec::new();
        for (block, found) in found {
            starts[block as usize] = known.len() as u32;
            let mut before = vec![0];
            let mut ran = Vec::new();
            for (step, block) in found.plan.steps.iter().zip(&found.at) {
                if let Step::Run(size) = step {
                    before.push(before[ran.len()] + size);
                    ran.push(*block);
                }
            }
            known.push(Known {
                ran,
                before,
                most: found.plan.most(),
                at: found.at,
                at_access: found.at_access,
                gone: found.gone,
                calls: found.calls,
                after: found.after,
                registers: found.registers,
                entries: found.entries,
                branches: found.branches,
            });
        }
        Ok(Some((Compiled { passes, known, starts }, size)))
    }

    /// The pass that begins at a block.
    #[inline(always)]
    pub(super) fn at(&self, block: u32) -> Option<u32> {
        self.starts.get(block as usize).copied().filter(|number| *number != NONE)
    }
}
