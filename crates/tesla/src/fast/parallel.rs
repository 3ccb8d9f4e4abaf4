//! Blocks on several threads of the host, with the results of running them in order.

use std::ops::Range;
use std::sync::atomic::{AtomicUsize, Ordering};

use reconverge_simt::memory::{Footprint, Memory, Tracked, Written};
use reconverge_simt::workers::hand_out;
use reconverge_simt::{GroupTrap, Silent};

use crate::block::{Block, Executor};
use crate::grid::{Grid, Totals};
use crate::trap::Cause;

/// Blocks a thread that run ahead at once, at most: their writes are committed when all of them have ended.
const AHEAD: usize = 2048;

/// Pages that blocks which run ahead at once touch, at most but for those of the last on each thread: a third of a
/// kilobyte each.
const PAGES: usize = 1 << 16;

/// Blocks that share a view of the memory where there are many.
const TOGETHER: usize = 16;

/// Blocks that ran ahead, in order.
struct Attempt {
    blocks: Range<usize>,
    totals: Totals,
    /// What they read and wrote.
    footprint: Footprint,
    end: Result<(), GroupTrap<Cause>>,
}

/// What a thread has from its blocks before: the memory of one, and how many pages some of them touched.
#[derive(Default)]
struct Spare {
    block: Option<Block>,
    pages: usize,
}

/// Some blocks, in order, against a view of the memory, which stays as it is.
fn attempt<E: Executor>(
    executor: &E,
    grid: &Grid,
    blocks: Range<usize>,
    memory: &Memory,
    spare: &mut Spare,
) -> Attempt {
    let (mut view, mut totals) = (Tracked::with_capacity(memory, spare.pages), Totals::default());
    let mut end = Ok(());
    for number in blocks.clone() {
        let mut block = grid.block(executor, number, spare.block.take());
        end = block.run(executor, grid.context(), &mut view, &mut Silent);
        totals.retire(grid, &block);
        spare.block = Some(block);
        if end.is_err() {
            break;
        }
    }
    let footprint = view.finish();
    // Footprints are kept to the end of the batch: a large one must not make all others as large.
    spare.pages = footprint.pages().min(64);
    Attempt { blocks, totals, footprint, end }
}

/// Blocks in parts that run ahead together, in order: smaller towards the end, so that no thread is alone with a large
/// one.
fn parts(blocks: Range<usize>, workers: usize) -> impl Iterator<Item = Range<usize>> {
    let mut rest = blocks;
    std::iter::from_fn(move || {
        let few = (rest.len() / (16 * workers)).clamp(1, TOGETHER);
        let part = rest.start..rest.start + few;
        (!rest.is_empty()).then(|| {
            rest.start = part.end;
            part
        })
    })
}

/// Runs batches of blocks ahead on `workers` threads of the pool and commits them in order. Gives the first block that
/// has not run: behind the last, unless blocks build on each other.
///
/// # Errors
/// The trap of the first block, in order, that trapped.
pub(crate) fn run_ahead<E: Executor>(
    executor: &E,
    grid: &Grid,
    memory: &mut Memory,
    totals: &mut Totals,
    workers: usize,
) -> Result<usize, GroupTrap<Cause>> {
    let (blocks, size) = (grid.blocks(), AHEAD * workers);
    let mut next = 0;
    let mut own = Spare::default();
    while next < blocks {
        let first = next;
        let (view, pages) = (&*memory, AtomicUsize::new(0));
        let room = |_: &Range<usize>| pages.load(Ordering::Relaxed) < PAGES;
        let batch = parts(first..blocks.min(first + size), workers).take_while(room);
        let attempts = hand_out(workers, batch, Spare::default, |spare, part| {
            let attempted = attempt(executor, grid, part, view, spare);
            pages.fetch_add(attempted.footprint.pages(), Ordering::Relaxed);
            attempted
        })
        .results;
        // Writes matter to blocks that read: often none does.
        let any_reads = attempts.iter().any(|attempted| attempted.footprint.reads());
        let mut written = Written::default();
        let mut accepted = Vec::with_capacity(attempts.len());
        let mut repeated = 0;
        for mut attempted in attempts {
            if any_reads && !written.allows(&attempted.footprint) {
                // It read old bytes. It runs again in its turn; what it writes may make later ones old too.
                memory.commit(&accepted);
                accepted.clear();
                repeated += attempted.blocks.len();
                attempted = attempt(executor, grid, attempted.blocks, memory, &mut own);
            }
            let Attempt { blocks, totals: added, footprint, end } = attempted;
            end?;
            next = blocks.end;
            totals.add(added);
            if any_reads {
                written.add(&footprint);
            }
            accepted.push(footprint);
        }
        memory.commit(&accepted);
        if 2 * repeated > next - first {
            break; // Blocks that build on each other gain nothing from running ahead.
        }
    }
    Ok(next)
}
