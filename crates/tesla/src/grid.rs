//! All blocks of a launch: in order, on several threads, or on both engines in lockstep. The order that results
//! follow is told in [`crate::launch`].

use std::ops::Range;
use std::sync::atomic::{AtomicUsize, Ordering};

use reconverge_isa::Program;
use reconverge_simt::memory::{Footprint, Memory, Tracked, Written};
use reconverge_simt::workers::hand_out;
use reconverge_simt::{Engine, Observer, Silent, Statistics};

use crate::block::Block;
use crate::fast::Fast;
use crate::fast::lockstep::{self, Failure};
use crate::fidelity;
use crate::launch::{Context, LaneResult, Launch, Options, Outcome, RunError};
use crate::trap::LaunchTrap;

/// Blocks a thread that run ahead at once, at most: what they leave is committed when all of them have ended.
const AHEAD: usize = 2048;

/// Pages that blocks which run ahead at once touch, at most but for those of the last on each thread: a third of a
/// kilobyte each.
const PAGES: usize = 1 << 16;

/// Blocks that share a view of the memory where there are many.
const TOGETHER: usize = 16;

/// Executes a launch with the engine that the options name.
///
/// # Errors
/// The launch cannot be, or the program trapped: then the trap is that of the first block, in order, that did. In
/// lockstep, the engines differ.
pub fn run(launch: Launch, program: &Program, options: &Options) -> Result<Outcome, RunError> {
    let (context, mut memory) = Context::new(launch, program, options)?;
    if let (Engine::Lockstep, Some(fast)) = (options.engine, &context.fast) {
        return run_in_lockstep(&context, fast, memory);
    }
    let blocks = context.blocks();
    let mut totals = Totals::default();
    let mut next = 0;
    if options.parallel && blocks > 1 && rayon::current_num_threads() > 1 {
        next = run_ahead(&context, &mut memory, &mut totals)?;
    }
    run_in_order(&context, next..blocks, &mut memory, &mut totals, &mut Silent)?;
    Ok(totals.outcome(&context, memory))
}

/// The same in order on one thread, announcing every event. Who needs to know which warp an event belongs to steps a
/// [`Run`](crate::launch::Run). What happens to data is announced by the
/// reference interpreter, whatever the options say; who runs and what the stack does, by either engine.
///
/// # Errors
/// As [`run`].
pub fn run_observed<O: Observer>(
    launch: Launch,
    program: &Program,
    options: &Options,
    observer: &mut O,
) -> Result<Outcome, RunError> {
    let (context, mut memory) = Context::new(launch, program, options)?;
    let mut totals = Totals::default();
    run_in_order(&context, 0..context.blocks(), &mut memory, &mut totals, observer)?;
    Ok(totals.outcome(&context, memory))
}

/// What the blocks that have ended leave, together.
#[derive(Clone, Debug, Default)]
pub(crate) struct Totals {
    pub(crate) statistics: Statistics,
    /// By word of the code: how often the instruction there was issued.
    issued: Vec<u64>,
    lanes: Vec<LaneResult>,
}

impl Totals {
    /// Adds a block that has ended.
    pub(crate) fn retire(&mut self, context: &Context, block: &Block) {
        self.count(&block.common.statistics, &block.common.issued);
        self.lanes.extend(context.results(block));
    }

    /// Adds what later blocks left.
    fn add(&mut self, other: Totals) {
        self.count(&other.statistics, &other.issued);
        self.lanes.extend(other.lanes);
    }

    fn count(&mut self, statistics: &Statistics, issued: &[u64]) {
        self.statistics.add(statistics);
        self.issued.resize(self.issued.len().max(issued.len()), 0);
        self.issued.iter_mut().zip(issued).for_each(|(total, times)| *total += times);
    }

    /// What the launch leaves.
    pub(crate) fn outcome(self, context: &Context, memory: Memory) -> Outcome {
        let mut outcome =
            Outcome { memory, lanes: self.lanes, statistics: self.statistics, ..Outcome::default() };
        for (inst, times) in context.code.slots().iter().zip(self.issued) {
            if let (Ok(inst), 1..) = (inst, times) {
                let (name, grade) = fidelity::of(&inst.op);
                outcome.report.count(name, grade, times);
            }
        }
        outcome
    }
}

fn run_in_order<O: Observer>(
    context: &Context,
    blocks: Range<usize>,
    memory: &mut Memory,
    totals: &mut Totals,
    observer: &mut O,
) -> Result<(), RunError> {
    let mut spare = None;
    for number in blocks {
        let mut block = context.block_in(number, spare.take());
        block.run(context, memory, observer).map_err(RunError::Trap)?;
        totals.retire(context, &block);
        spare = Some(block);
    }
    Ok(())
}

/// Blocks that ran ahead, in order.
struct Attempt {
    blocks: Range<usize>,
    left: Totals,
    /// What they read and wrote.
    footprint: Footprint,
    end: Result<(), LaunchTrap>,
}

/// What a thread has from its blocks before: the memory of one, and how many pages some of them touched.
#[derive(Default)]
struct Spare {
    block: Option<Block>,
    pages: usize,
}

/// Some blocks, in order, against a view of the memory, which stays as it is.
fn attempt(context: &Context, blocks: Range<usize>, memory: &Memory, spare: &mut Spare) -> Attempt {
    let (mut view, mut left) = (Tracked::with_capacity(memory, spare.pages), Totals::default());
    let mut end = Ok(());
    for number in blocks.clone() {
        let mut block = context.block_in(number, spare.block.take());
        end = block.run(context, &mut view, &mut Silent);
        left.retire(context, &block);
        spare.block = Some(block);
        if end.is_err() {
            break;
        }
    }
    let footprint = view.finish();
    // Footprints are kept to the end of the batch: a large one must not make all others as large.
    spare.pages = footprint.pages().min(64);
    Attempt { blocks, left, footprint, end }
}

/// Blocks in parts that run ahead together, in order: smaller towards the end, so that no thread is left alone with
/// a large one.
fn parts(blocks: Range<usize>) -> impl Iterator<Item = Range<usize>> {
    let threads = rayon::current_num_threads();
    let mut left = blocks;
    std::iter::from_fn(move || {
        let few = (left.len() / (16 * threads)).clamp(1, TOGETHER);
        let part = left.start..left.start + few;
        (!left.is_empty()).then(|| {
            left.start = part.end;
            part
        })
    })
}

/// Runs batches of blocks ahead on the threads of the pool and commits them in order. Gives the first block that has
/// not run: behind the last, unless blocks build on each other.
fn run_ahead(context: &Context, memory: &mut Memory, totals: &mut Totals) -> Result<usize, RunError> {
    let (blocks, size) = (context.blocks(), AHEAD * rayon::current_num_threads());
    let mut next = 0;
    let mut own = Spare::default();
    while next < blocks {
        let first = next;
        let (view, pages) = (&*memory, AtomicUsize::new(0));
        let room = |_: &Range<usize>| pages.load(Ordering::Relaxed) < PAGES;
        let batch = parts(first..blocks.min(first + size)).take_while(room);
        let attempts = hand_out(rayon::current_num_threads(), batch, Spare::default, |spare, part| {
            let attempted = attempt(context, part, view, spare);
            pages.fetch_add(attempted.footprint.pages(), Ordering::Relaxed);
            attempted
        })
        .results;
        // What blocks wrote matters to those that read: often none does.
        let asks = attempts.iter().any(|attempted| attempted.footprint.reads());
        let mut written = Written::default();
        let mut saw_all = Vec::with_capacity(attempts.len());
        let mut again = 0;
        for mut attempted in attempts {
            if asks && !written.allows(&attempted.footprint) {
                // What it saw was old. It runs again in its turn; what it writes may make later ones old too.
                memory.commit(&saw_all);
                saw_all.clear();
                again += attempted.blocks.len();
                attempted = attempt(context, attempted.blocks, memory, &mut own);
            }
            let Attempt { blocks, left, footprint, end } = attempted;
            end.map_err(RunError::Trap)?;
            next = blocks.end;
            totals.add(left);
            if asks {
                written.add(&footprint);
            }
            saw_all.push(footprint);
        }
        memory.commit(&saw_all);
        if 2 * again > next - first {
            break; // Blocks that build on each other gain nothing from running ahead.
        }
    }
    Ok(next)
}

fn run_in_lockstep(context: &Context, fast: &Fast, mut memory: Memory) -> Result<Outcome, RunError> {
    let mut twin_memory = memory.clone();
    let mut totals = Totals::default();
    for number in 0..context.blocks() {
        let block = context.block(number);
        let block =
            lockstep::run(context, fast, block, &mut memory, &mut twin_memory).map_err(|failure| {
                match failure {
                    Failure::Trap(trap) => RunError::Trap(trap),
                    Failure::Differ(difference) => RunError::Differ(difference),
                }
            })?;
        totals.retire(context, &block);
    }
    Ok(totals.outcome(context, memory))
}
