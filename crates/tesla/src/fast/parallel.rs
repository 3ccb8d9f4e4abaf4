//! Runs blocks on several threads of the host. The results are the same as for blocks that run in order.
//!
//! The blocks of a batch run ahead. This means that the blocks run at the same time, before the engine has determined
//! whether one block depends on another block. A batch consists of parts, and each part has a separate view of the
//! memory ([`reconverge_simt::memory`]). After the batch has run, the engine accepts the parts of the batch in order.
//! If a part has read bytes that an earlier part has changed, the part runs again after the earlier parts. The first
//! batch is a *trial*: a few blocks that run one after another, each in a separate view. So the engine detects at little
//! cost whether blocks depend on each other. Only blocks that take long run on all threads at once. If blocks depend on each other, the blocks run in order,
//! on the memory itself. From time to time, the engine then attempts another trial. The engine also measures the time
//! per instruction, because views of the memory have a cost. If blocks that run ahead on all threads are not faster
//! than blocks that run in order on one thread, the blocks run in order. A block that runs ahead much longer than other
//! blocks may wait for a write of an earlier block. The engine stops such a block, and runs the block again after the
//! earlier blocks.

use std::ops::Range;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError};
use std::time::Instant;

use reconverge_simt::memory::{Footprint, Memory, Plan, Shadow, Tracked, Verdict, Written};
use reconverge_simt::workers::hand_out;
use reconverge_simt::{GroupTrap, Silent, Step, stop};

use crate::block::{Block, Executor};
use crate::grid::{Grid, Totals, run_blocks};
use crate::trap::Cause;

/// Maximum number of blocks per thread in a batch. The engine commits the writes of these blocks after the whole batch
/// has ended.
const AHEAD: usize = 2048;

/// Growth factor of batches. If the engine has accepted a batch, the next batch is larger by this factor.
const GROWTH: usize = 8;

/// Maximum number of pages that the blocks of a batch write. The last block on each thread may exceed this number. A
/// page has a third of a kilobyte.
const PAGES: usize = 1 << 16;

/// Maximum number of blocks in a part. The blocks of a part share a view of the memory.
const TOGETHER: usize = 16;

/// Maximum number of blocks that run in order at the start of a launch, so that the engine can measure their time. The
/// engine measures at most one sixteenth of the blocks.
const MEASURED: usize = 16;

/// Number of blocks in a trial. The first block also allocates the view, so only the time of the other blocks counts.
const TRIAL: usize = 3;

/// Time for the allocation of a view, in seconds. If the first block of a trial takes much longer, the trial ends.
const ALLOCATION: f64 = 5e-5;

/// Minimum duration, in seconds, of a batch on several threads whose time counts. Shorter batches mostly wait for
/// threads: on a virtual machine, an idle thread starts after 0.05 to 0.3 ms.
const MEASURED_TIME: f64 = 2e-4;

/// Minimum ratio between the time of blocks that run in order and the time that the batches before these blocks lost.
/// After each failed batch, the ratio is multiplied by four. So even if all batches of a launch fail, the batches lose
/// only a few hundredths of the launch's time.
const IN_ORDER: f64 = 32.0;

/// Maximum number of blocks that run in order before the engine measures their time again.
const CHECKED: usize = 1024;

/// Number of instructions that a block which runs ahead may issue in any case. After this number of instructions, the
/// engine stops the block if the block also exceeds [`LONGER`].
const PATIENCE: u64 = 1 << 18;

/// Limit for a block that runs ahead. The block may issue at most this many times the number of instructions of the
/// longest block that has ended. The limit applies after [`PATIENCE`] instructions.
const LONGER: u64 = 64;

/// The result of running some blocks ahead, in order.
struct Attempt {
    blocks: Range<usize>,
    totals: Totals,
    /// The reads and writes of the blocks.
    footprint: Footprint,
    time: f64,
    /// The result of the last block. [`Step::Running`] means that the block was stopped.
    end: Result<Step, GroupTrap<Cause>>,
}

/// Memory that a thread has used for earlier blocks and uses again.
struct Spare {
    block: Option<Box<Block>>,
    shadow: Shadow,
}

/// A launch whose blocks run ahead.
struct Ahead<'a, E> {
    executor: &'a E,
    grid: &'a Grid,
    /// Number of instructions of the longest block that has ended.
    longest: AtomicU64,
    plan: Plan,
}

impl<E: Executor> Ahead<'_, E> {
    /// Runs some blocks in order against a view of the memory. The memory under the view does not change. `in_turn`
    /// means that all earlier blocks are complete. In this case, the function never stops a block.
    fn attempt(&self, blocks: Range<usize>, memory: &Memory, in_turn: bool, spare: &mut Spare) -> Attempt {
        let Ahead { executor, grid, longest, plan } = self;
        let start = Instant::now();
        let mut view = Tracked::with(memory, plan, std::mem::take(&mut spare.shadow));
        let mut totals = Totals::with_room(grid, blocks.len());
        let mut end = Ok(Step::Done);
        for number in blocks.clone() {
            let block = grid.begin(*executor, number, &mut spare.block);
            let go_on = |issued: u64| {
                let longest = || longest.load(Ordering::Relaxed);
                in_turn || issued <= PATIENCE || longest() == 0 || issued / LONGER <= longest()
            };
            end = block.run_while(*executor, grid.context(), &mut view, &mut Silent, go_on);
            totals.retire(grid, block);
            let issued = block.common.statistics.instructions;
            if end != Ok(Step::Done) && !stop::asked() {
                break;
            }
            longest.fetch_max(issued, Ordering::Relaxed);
        }
        spare.block.iter_mut().for_each(|block| totals.take_issued(*executor, block));
        let footprint;
        (footprint, spare.shadow) = view.finish();
        Attempt { blocks, totals, footprint, time: start.elapsed().as_secs_f64(), end }
    }
}

/// Splits the blocks of a batch into parts. The last parts of the batch are smaller. So no thread runs a large part
/// while all other threads are idle.
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

/// Runs all blocks on `workers` threads of the pool. If `always` is set, blocks run ahead even if this does not save
/// time.
///
/// # Errors
/// Returns the trap of the first block that trapped, in the order of the blocks.
pub(crate) fn run<E: Executor>(
    executor: &E,
    grid: &Grid,
    memory: &mut Memory,
    totals: &mut Totals,
    (workers, always): (usize, bool),
) -> Result<(), GroupTrap<Cause>> {
    let mut ahead = Ahead { executor, grid, longest: AtomicU64::new(0), plan: Plan::new(memory) };
    let mut spares = Vec::new();
    // The size of the next batch. `None` means that the next batch is a trial.
    let (mut size, mut in_order) = (None, IN_ORDER);
    let mut rest = 0..grid.blocks();
    // Seconds per instruction and per block of blocks that run in order.
    let (mut pace, mut block_time) = (0.0, 0.0);
    // Seconds that batches have lost against blocks that run in order, since the last blocks that ran in order. Also the
    // expected loss of a trial.
    let (mut lost, mut expected) = (0.0, ALLOCATION);
    let run_in_order = |blocks: Range<usize>, memory: &mut Memory, totals: &mut Totals| {
        let (start, before, count) = (Instant::now(), totals.statistics.instructions, blocks.len());
        run_blocks(executor, grid, blocks, memory, totals, &mut Silent)?;
        let time = start.elapsed().as_secs_f64();
        Ok((time / work(totals.statistics.instructions - before, count), time / count as f64))
    };
    // The first block also warms up caches, so the time of the next blocks is measured.
    for most in [1, grid.blocks() / MEASURED] {
        let blocks = rest.start..rest.end.min(rest.start + most.min(MEASURED));
        rest.start = blocks.end;
        if !blocks.is_empty() {
            let before = totals.statistics.instructions;
            let count = blocks.len() as u64;
            (pace, block_time) = run_in_order(blocks, memory, totals)?;
            ahead.longest.fetch_max((totals.statistics.instructions - before) / count, Ordering::Relaxed);
        }
    }
    while !rest.is_empty() && !stop::asked() {
        if !always && size.is_none() && in_order * expected > block_time * rest.len() as f64 {
            break;
        }
        let is_trial = size.is_none() && block_time < MEASURED_TIME;
        let count = size.unwrap_or(if is_trial { TRIAL } else { workers });
        let batch = rest.start..rest.end.min(rest.start + count);
        let (start, before) = (Instant::now(), totals.statistics.instructions);
        let allowed = (is_trial && !always).then_some(2.0 * (ALLOCATION + block_time * workers as f64));
        let Ran { next, verdict, time, work: done } =
            ahead.batch(batch, memory, totals, workers, (&mut spares, allowed))?;
        let in_order_time = pace * work(totals.statistics.instructions - before, next - rest.start);
        lost += start.elapsed().as_secs_f64() - in_order_time;
        rest.start = next;
        let is_slow = !always && time > pace * done && (is_trial || time > MEASURED_TIME);
        match verdict {
            Verdict::Right if !is_slow => size = Some((GROWTH * count).min(AHEAD * workers)),
            Verdict::Unknown if !is_slow => size = None,
            _ if always => size = None,
            Verdict::Right | Verdict::Unknown | Verdict::Stale => {
                let mut left = in_order * lost;
                while !rest.is_empty() && left > 0.0 {
                    let most = ((left / block_time) as usize).clamp(1, CHECKED);
                    let blocks = rest.start..rest.end.min(rest.start + most);
                    let count = blocks.len() as f64;
                    rest.start = blocks.end;
                    (pace, block_time) = run_in_order(blocks, memory, totals)?;
                    left -= count * block_time;
                }
                (size, in_order, expected, lost) = (None, 4.0 * in_order, lost.max(ALLOCATION), 0.0);
            }
        }
    }
    spares.into_iter().for_each(|spare| spare.shadow.keep());
    // The rest is empty unless another trial would cost too much. After a request to stop all runs, this call only
    // creates the results that a graphics launch needs.
    run_blocks(executor, grid, rest, memory, totals, &mut Silent)
}

/// Returns the number of instructions plus the number of blocks. Launches without counts of instructions have only the
/// blocks.
fn work(instructions: u64, blocks: usize) -> f64 {
    (instructions + blocks as u64) as f64
}

/// The result of a batch.
struct Ran {
    /// The first block that has not run.
    next: usize,
    /// Decides the size of the next batch. [`Verdict::Right`] unless many blocks had to run again.
    verdict: Verdict,
    /// Seconds of some blocks of the batch on all threads, and the work of these blocks. For a trial, the time is an
    /// estimate, and includes the first block only if the trial has no other block.
    time: f64,
    work: f64,
}

impl<E: Executor> Ahead<'_, E> {
    /// Runs a batch of blocks and commits the parts of the batch in order. At least the first part is committed. A batch
    /// with a limit `allowed` is a trial. A trial starts no more blocks after this number of seconds.
    fn batch(
        &mut self,
        blocks: Range<usize>,
        memory: &mut Memory,
        totals: &mut Totals,
        workers: usize,
        (spares, allowed): (&mut Vec<Spare>, Option<f64>),
    ) -> Result<Ran, GroupTrap<Cause>> {
        let (first, start, before) = (blocks.start, Instant::now(), totals.statistics.instructions);
        let (view, pages, kept) = (&*memory, AtomicUsize::new(0), Mutex::new(std::mem::take(spares)));
        let room = |part: &Range<usize>| {
            let in_time = allowed.is_none_or(|allowed| start.elapsed().as_secs_f64() < allowed);
            part.start == first || in_time && pages.load(Ordering::Relaxed) < PAGES
        };
        let spare = || {
            let earlier = kept.lock().unwrap_or_else(PoisonError::into_inner).pop();
            earlier.unwrap_or_else(|| Spare { block: None, shadow: Shadow::kept() })
        };
        let threads = if allowed.is_some() { 1 } else { workers };
        let done = hand_out(threads, parts(blocks, workers).take_while(room), spare, |spare, part| {
            let attempted = self.attempt(part.clone(), view, part.start == first, spare);
            pages.fetch_add(attempted.footprint.pages(), Ordering::Relaxed);
            attempted
        });
        *spares = done.workers;
        let measured = done.results.iter().skip(1);
        let (time_alone, work_alone) = measured.fold((0.0, 0.0), |(time, all), attempted| {
            let instructions = attempted.totals.statistics.instructions;
            (time + attempted.time, all + work(instructions, attempted.blocks.len()))
        });
        let count: usize = done.results.iter().map(|attempted| attempted.blocks.len()).sum();
        let mut written = Written::before(done.results.iter().map(|attempted| &attempted.footprint));
        let mut accepted = Vec::with_capacity(done.results.len());
        let few = count / 4;
        let (mut next, mut stale, mut repeated) = (first, 0, 0);
        for mut attempted in done.results {
            let verdict = match attempted.end {
                // Only a request to stop all runs ends the blocks of the first part early, so their results are valid.
                Ok(Step::Running) if attempted.blocks.start != first => Verdict::Stale,
                _ => written.judge(&attempted.footprint),
            };
            if verdict != Verdict::Right {
                let blocks = attempted.blocks;
                repeated += blocks.len();
                match verdict {
                    Verdict::Stale => stale += blocks.len(),
                    _ => self.plan.learn(&written, &attempted.footprint),
                }
                if repeated > few {
                    break;
                }
                // The part runs again on the memory after the writes of the earlier parts. The part's new writes may
                // also invalidate the reads of later parts.
                memory.commit(&accepted);
                accepted.clear();
                attempted = self.attempt(blocks, memory, true, &mut spares[0]);
            }
            attempted.end?;
            next = attempted.blocks.end;
            totals.add(attempted.totals);
            written.add(&attempted.footprint);
            accepted.push(attempted.footprint);
        }
        memory.commit(&accepted);
        let verdict = match (repeated > few, stale > few) {
            (false, _) => Verdict::Right,
            (true, false) => Verdict::Unknown,
            (true, true) => Verdict::Stale,
        };
        let (time, work) = match work_alone > 0.0 && allowed.is_some() {
            true => (time_alone / workers as f64, work_alone),
            false => {
                let instructions = totals.statistics.instructions - before;
                (start.elapsed().as_secs_f64(), work(instructions, next - first))
            }
        };
        Ok(Ran { next, verdict, time, work })
    }
}
