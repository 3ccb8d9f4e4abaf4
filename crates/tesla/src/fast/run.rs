//! Blocks one after another, and what control flow does between them.

use std::ops::Range;

#[cfg(target_arch = "x86_64")]
use reconverge_simt::lanes::{Avx2, Avx512};
use reconverge_simt::lanes::{Baseline, Kind, Wide};
use reconverge_simt::memory::Store;
use reconverge_simt::{Event, Mask, Observer, Statistics, Trap, for_avx2, for_avx512};

use super::Fast;
use super::lanes::{ACTIVE, Lanes};
use super::lower::{Access, Block, Conditional, Inside, Last, Lowered, Meet, NONE, Side, Test};
use super::memory;
use crate::block::Common;
use crate::flow::{
    Decision, Fault, Flow, Join, TAKEN_SIDE_RUNS_FIRST, TokenType, announce_arrival, announce_division,
    announce_push,
};
use crate::launch::Context;
use crate::reference;
use crate::state::{Parts, Warp};
use crate::trap::Cause;

/// A warp, and what it runs against.
pub(crate) struct Running<'a, G, O> {
    pub(crate) context: &'a Context,
    pub(crate) common: &'a mut Common,
    pub(crate) warp: &'a mut Warp,
    /// Which of the block's warps it is.
    pub(crate) number: usize,
    pub(crate) global: &'a mut G,
    /// Told who runs where and what the stack does; nothing here tells of data.
    pub(crate) observer: &'a mut O,
}

/// How many instructions the warp has tried, and whether the last one trapped.
pub(crate) type Ran = (u32, Result<(), Trap<Cause>>);

impl Fast {
    /// Runs a warp for at most `most` instructions, until it ends or waits at a barrier.
    pub(crate) fn run<G: Store, O: Observer>(&self, running: &mut Running<'_, G, O>, most: u32) -> Ran {
        match self.level.kind() {
            // SAFETY: every processor has the baseline.
            Kind::Baseline => unsafe { self.run_on::<Baseline, G, O>(running, most) },
            // SAFETY: a level is made only on a processor that has it.
            #[cfg(target_arch = "x86_64")]
            Kind::Avx2 => unsafe { self.run_avx2(running, most) },
            // SAFETY: a level is made only on a processor that has it.
            #[cfg(target_arch = "x86_64")]
            Kind::Avx512 => unsafe { self.run_avx512(running, most) },
            // SAFETY: there are no other levels on other processors.
            #[cfg(not(target_arch = "x86_64"))]
            Kind::Avx2 | Kind::Avx512 => unsafe { self.run_on::<Baseline, G, O>(running, most) },
        }
    }

    for_avx2! {
        unsafe fn run_avx2<G: Store, O: Observer>(&self, running: &mut Running<'_, G, O>, most: u32) -> Ran {
            // SAFETY: who calls this has the level.
            unsafe { self.run_on::<Avx2, G, O>(running, most) }
        }
    }

    for_avx512! {
        unsafe fn run_avx512<G: Store, O: Observer>(&self, running: &mut Running<'_, G, O>, most: u32) -> Ran {
            // SAFETY: who calls this has the level.
            unsafe { self.run_on::<Avx512, G, O>(running, most) }
        }
    }

    /// # Safety
    /// The processor has the level of `W`, and that of `self`.
    #[inline(always)]
    unsafe fn run_on<W: Chained, G: Store, O: Observer>(
        &self,
        running: &mut Running<'_, G, O>,
        most: u32,
    ) -> Ran {
        let mut tried = 0;
        loop {
            // SAFETY: as the caller says.
            let stop = unsafe { self.blocks_on::<W, G, O>(running, &mut tried, most) };
            let result = match stop {
                Stop::Over => return (tried, Ok(())),
                Stop::Trap(trap) => return (tried, Err(trap)),
                Stop::Unknown => running.by_reference(None),
                Stop::Refused { joined } => running.by_reference(joined),
            };
            tried += 1;
            match result {
                Ok(Waits(false)) => {}
                Ok(Waits(true)) => return (tried, Ok(())),
                Err(trap) => return (tried, Err(trap)),
            }
        }
    }

    /// Runs blocks until something else has to happen.
    ///
    /// # Safety
    /// The processor has the level of `W`, and that of `self`.
    #[inline(always)]
    unsafe fn blocks_on<W: Chained, G: Store, O: Observer>(
        &self,
        running: &mut Running<'_, G, O>,
        tried: &mut u32,
        most: u32,
    ) -> Stop {
        let Running { context, common, warp, global, observer, .. } = running;
        let lowered = &self.lowered;
        let base = context.code.base();
        let Parts { flow, rows, a, c, mut local } = warp.parts();
        let Common { shared, statistics, issued, runs, .. } = &mut **common;
        let mut lanes = Lanes::new(rows, a, c, shared, &lowered.tables);
        assert!(runs.len() == lowered.blocks.len(), "the block was made for this program");
        loop {
            let mut chain = Chain {
                lowered,
                base,
                statistics,
                runs,
                flow,
                left: most - *tried,
                number: NONE,
                first: 0,
                joined: None,
                observer: &mut **observer,
            };
            // SAFETY: as the caller says.
            let end = unsafe { W::chain(&mut chain, &mut lanes) };
            let Chain { left, number, first, joined, .. } = chain;
            *tried = most - left;
            match end {
                End::Over => return Stop::Over,
                End::Unknown => return Stop::Unknown,
                End::Fault(pc, lanes, fault) => return stop(*observer, pc, lanes, fault),
                End::Short => {}
            }

            // One block that does not run in a chain: its last instruction is a load or store or the reference
            // interpreter's, or there is no time for all of it, or it is entered in its middle.
            let active = flow.active();
            let members = active.count();
            let block = &lowered.blocks[number as usize];
            let inside = &lowered.inside[number as usize];
            let count = |statistics: &mut Statistics, instructions: u32| {
                statistics.instructions += u64::from(instructions);
                statistics.lane_instructions += u64::from(instructions * members);
            };
            let mut count_each = |statistics: &mut Statistics, some: Range<u32>| {
                count(statistics, some.end - some.start);
                for place in &inside.places[some.start as usize..some.end as usize] {
                    issued[*place] += 1;
                }
            };
            let end_of = |instructions: u32| match instructions {
                0 => block.start,
                _ => inside.ends[instructions as usize - 1],
            };
            if block.size - first > left {
                // Time for some of it, which is not the last instruction.
                let until = first + left;
                // SAFETY: the caller has the level of self, for which the operations were made.
                unsafe { execute(&mut lanes, lowered, end_of(first), end_of(until)) };
                count_each(statistics, first..until);
                announce_issues(*observer, inside, first..until, active);
                flow.advance(base + 4 * inside.places[until as usize] as u32);
                *tried = most;
                return Stop::Over;
            }
            // SAFETY: as above.
            unsafe { execute(&mut lanes, lowered, end_of(first), block.end) };
            let done = match block.last {
                Last::Reference => false,
                Last::Memory(number) => {
                    let Access { transfer, after } = &lowered.accesses[number as usize];
                    let moved = memory::transfer(context, &mut lanes, &mut local, *global, transfer);
                    if moved {
                        // SAFETY: as above.
                        unsafe { execute(&mut lanes, lowered, after.start, after.end) };
                    }
                    moved
                }
                _ => true,
            };
            let until = if done { block.size } else { block.size - 1 };
            *tried += until - first;
            if until - first == block.size {
                count(statistics, until);
                runs[number as usize] += 1;
            } else {
                count_each(statistics, first..until);
            }
            announce_issues(*observer, inside, first..until, active);
            flow.advance(block.last_pc);
            if !done {
                return Stop::Refused { joined: joined.filter(|_| block.size == 1) };
            }
            // SAFETY: as the caller says.
            let ended = unsafe { finish::<W, O>(flow, &lanes, block, None, observer) };
            match ended {
                Ok(decision) => statistics.divergent_branches += u64::from(decision == Decision::Divergent),
                Err(fault) => return stop(*observer, block.last_pc, active, fault),
            }
        }
    }
}

/// The last instruction of a block, if that is control flow, and its exit; the flow stands at it. `taken`: the lanes
/// whose predicate holds, when that is known already.
///
/// # Safety
/// The processor has the level of `W`.
#[inline(always)]
unsafe fn finish<W: Wide, O: Observer>(
    flow: &mut Flow,
    lanes: &Lanes<'_>,
    block: &Block,
    taken: Option<Mask>,
    observer: &mut O,
) -> Result<Decision, Fault> {
    // SAFETY: as the caller says.
    let executing = |guard: &Test, active: Mask| unsafe {
        taken.unwrap_or_else(|| active & Mask(guard.executing::<W>(lanes, active.0 as u32).into()))
    };
    let (next, active) = (block.next, flow.active());
    let decision = match &block.last {
        Last::Bra { target, guard } => flow.bra(*target, next, executing(guard, active), observer)?,
        Last::Next | Last::Memory(_) | Last::Reference => {
            flow.advance(next);
            Decision::Uniform
        }
        Last::Joinat { target } => flow.joinat(*target, next, observer).map(|()| Decision::Uniform)?,
        Last::Ret { guard } => flow.ret(executing(guard, active), next, observer)?,
        Last::Break { guard } => flow.break_(executing(guard, active), next, observer)?,
        Last::Breakaddr { target } => flow.breakaddr(*target, next, observer).map(|()| Decision::Uniform)?,
        Last::Call { target } => flow.call(*target, next, observer).map(|()| Decision::Uniform)?,
    };
    if block.exit {
        flow.exit(observer)?;
    }
    Ok(decision)
}

/// Blocks one after another that need nothing but rows and flow: whole ones, with time for all of each.
struct Chain<'a, O> {
    lowered: &'a Lowered,
    base: u32,
    statistics: &'a mut Statistics,
    runs: &'a mut [u64],
    flow: &'a mut Flow,
    /// Instructions that there is time for.
    left: u32,
    /// Where it ended: the block, the instruction in it, and, if that has joined already, the lanes that came to it.
    number: u32,
    first: u32,
    joined: Option<Mask>,
    observer: &'a mut O,
}

/// Why a chain ends.
enum End {
    /// The time is over, or the warp has ended.
    Over,
    /// No block has an instruction at the program counter.
    Unknown,
    /// The next block does not run in a chain.
    Short,
    /// The flow cannot go on: the address of the instruction, and the lanes that came to it.
    Fault(u32, Mask, Fault),
}

impl<O: Observer> Chain<'_, O> {
    /// # Safety
    /// The processor has the level of `W`, and that for which the program was lowered.
    #[inline(always)]
    unsafe fn run<W: Wide>(&mut self, lanes: &mut Lanes<'_>) -> End {
        let lowered = self.lowered;
        let (flow, runs, observer) = (&mut *self.flow, &mut *self.runs, &mut *self.observer);
        let mut left = self.left;
        let end = loop {
            // Here the flow has decided who goes on and where.
            let arrived = flow.active();
            if left == 0 || arrived.is_empty() {
                break End::Over;
            }
            // An address between words becomes a place beyond the end.
            let place = flow.pc().wrapping_sub(self.base).rotate_right(2) as usize;
            let mut number = lowered.starts.get(place).copied().unwrap_or(NONE);
            if number == NONE {
                // Rare: the middle of a block, after an indirect branch or a time that was over.
                let Some(&Some(entry)) = lowered.entries.get(place) else { break End::Unknown };
                (self.number, self.first) = entry;
                self.joined = None;
                // SAFETY: as the caller says.
                unsafe { lanes.choose::<W>(ACTIVE, arrived.0 as u32) };
                break End::Short;
            }
            self.first = 0;
            if lowered.blocks[number as usize].join {
                match flow.join(observer) {
                    Ok(Join::Run) => {}
                    Ok(Join::Away) => {
                        left -= 1;
                        continue;
                    }
                    Err(fault) => {
                        left -= 1;
                        break End::Fault(flow.pc(), arrived, fault);
                    }
                }
            }
            let active = flow.active().0 as u32;
            // SAFETY: as the caller says.
            unsafe { lanes.choose::<W>(ACTIVE, active) };

            // Blocks that follow each other with the same lanes; the flow's program counter stays behind.
            let mut before = left;
            let mut taken = 0;
            // The lanes that came to the latest join, before it.
            let mut came = arrived;
            let block = loop {
                // SAFETY: lowering numbers only blocks that it makes.
                let block = unsafe { lowered.blocks.get_unchecked(number as usize) };
                if block.chained > left {
                    break None;
                }
                left -= block.chained;
                // SAFETY: `blocks_on` has seen that there is a count for each block.
                unsafe { *runs.get_unchecked_mut(number as usize) += 1 };
                // SAFETY: as the caller says.
                unsafe { execute(lanes, lowered, block.start, block.end) };
                if O::ENABLED {
                    let inside = &lowered.inside[number as usize];
                    announce_issues(observer, inside, 0..block.size, Mask(active.into()));
                }
                let follower = match &block.last {
                    Last::Bra { target, guard } => {
                        // SAFETY: as the caller says.
                        taken = unsafe { guard.executing::<W>(lanes, active) };
                        match taken {
                            0 => block.fall,
                            all if all == active => {
                                if O::ENABLED && block.jump != NONE {
                                    observer.event(Event::Jump { to: *target });
                                }
                                block.jump
                            }
                            _ => NONE,
                        }
                    }
                    // Where nobody leaves, nothing waits.
                    Last::Break { guard } | Last::Ret { guard } => {
                        // SAFETY: as the caller says.
                        taken = unsafe { guard.executing::<W>(lanes, active) };
                        if taken == 0 { block.fall } else { NONE }
                    }
                    Last::Next => block.fall,
                    Last::Joinat { .. }
                        if let Some(conditional) = &lowered.conditionals[number as usize]
                            && conditional.most <= left
                            && flow.has_room_for(2) =>
                    {
                        // SAFETY: as the caller says.
                        let whole =
                            unsafe { whole::<W, O>(runs, lanes, lowered, conditional, active, observer) };
                        left -= whole.alike;
                        came = Mask(whole.last.into());
                        if let Some(sides) = whole.sides {
                            left -= conditional.meet.tried;
                            before -= conditional.meet.tried;
                            sides.count(self.statistics);
                        }
                        conditional.joins
                    }
                    Last::Joinat { target } if block.fall != NONE => {
                        match flow.joinat(*target, block.next, observer) {
                            Ok(()) => block.fall,
                            Err(_) => NONE,
                        }
                    }
                    _ => NONE,
                };
                if follower == NONE {
                    break Some(block);
                }
                number = follower;
            };
            let ran = before - left;
            self.statistics.instructions += u64::from(ran);
            self.statistics.lane_instructions += u64::from(ran * active.count_ones());
            let Some(block) = block else {
                self.number = number;
                self.joined = lowered.blocks[number as usize].join.then_some(came);
                break End::Short;
            };
            let not = active & !taken;
            if let Last::Bra { .. } = block.last
                && taken != 0
                && not != 0
                && let Some(meet) = &lowered.meets[number as usize]
                && meet.tried <= left
                && flow.meet(meet.at, Mask(meet.order(taken, not)[1].1.into()))
            {
                // SAFETY: as the caller says.
                let sides = unsafe { both::<W, O>(runs, lanes, lowered, meet, taken, not, observer) };
                left -= meet.tried;
                sides.count(self.statistics);
                continue;
            }
            flow.advance(block.last_pc);
            let known = matches!(block.last, Last::Bra { .. } | Last::Break { .. } | Last::Ret { .. });
            let known = known.then_some(Mask(taken.into()));
            // SAFETY: as the caller says.
            match unsafe { finish::<W, O>(flow, lanes, block, known, observer) } {
                Ok(Decision::Uniform) => {}
                Ok(Decision::Divergent) => self.statistics.divergent_branches += 1,
                // No control flow carries a join: who came to it is who was active.
                Err(fault) => break End::Fault(block.last_pc, Mask(active.into()), fault),
            }
        };
        self.left = left;
        end
    }
}

impl Meet {
    /// The sides in the order in which they run, and the lanes of each.
    #[inline(always)]
    fn order(&self, taken: u32, not: u32) -> [(Side, u32); 2] {
        let mut sides = [(self.taken, taken), (self.not, not)];
        if !TAKEN_SIDE_RUNS_FIRST {
            sides.reverse();
        }
        sides
    }
}

/// What ran on the two sides of a branch that divides the lanes: instructions, and those summed over lanes.
struct Sides {
    instructions: u32,
    lane_instructions: u32,
}

impl Sides {
    #[inline(always)]
    fn count(&self, statistics: &mut Statistics) {
        statistics.instructions += u64::from(self.instructions);
        statistics.lane_instructions += u64::from(self.lane_instructions);
        statistics.divergent_branches += 1;
    }
}

/// Runs one block for some lanes, which are chosen.
///
/// # Safety
/// The processor has the level for which the program was lowered; there is a count for each block.
#[inline(always)]
unsafe fn run_block<O: Observer>(
    runs: &mut [u64],
    lanes: &mut Lanes<'_>,
    lowered: &Lowered,
    number: u32,
    mask: u32,
    observer: &mut O,
) -> u32 {
    let Some(block) = lowered.blocks.get(number as usize) else { return 0 };
    // SAFETY: as the caller says.
    unsafe {
        *runs.get_unchecked_mut(number as usize) += 1;
        execute(lanes, lowered, block.start, block.end);
    }
    if O::ENABLED {
        announce_issues(observer, &lowered.inside[number as usize], 0..block.size, Mask(mask.into()));
    }
    block.size
}

/// Runs one side of a branch as far as the join; how many instructions that are.
///
/// # Safety
/// As for [`run_block`].
#[inline(always)]
unsafe fn run_side<O: Observer>(
    runs: &mut [u64],
    lanes: &mut Lanes<'_>,
    lowered: &Lowered,
    side: Side,
    mask: u32,
    observer: &mut O,
) -> u32 {
    // SAFETY: as the caller says.
    let size = unsafe { run_block(runs, lanes, lowered, side.block, mask, observer) };
    if O::ENABLED
        && let Some(Block { last: Last::Bra { target, .. }, .. }) = lowered.blocks.get(side.block as usize)
    {
        observer.event(Event::Jump { to: *target });
    }
    size
}

/// Both sides of a branch that divides the lanes, one after the other, each with its own. The lanes of the last stay
/// chosen.
///
/// # Safety
/// The processor has the level of `W`, and that for which the program was lowered; there is a count for each block.
#[inline(always)]
unsafe fn both<W: Wide, O: Observer>(
    runs: &mut [u64],
    lanes: &mut Lanes<'_>,
    lowered: &Lowered,
    meet: &Meet,
    taken: u32,
    not: u32,
    observer: &mut O,
) -> Sides {
    let [(first, goes), (second, waits)] = meet.order(taken, not);
    announce_division(observer, first.pc, Mask(goes.into()), Mask(waits.into()));
    // SAFETY: as the caller says.
    let ran = unsafe {
        lanes.choose::<W>(ACTIVE, goes);
        run_side(runs, lanes, lowered, first, goes, observer)
    };
    announce_arrival(observer, TokenType::Branch, second.pc, Mask(waits.into()));
    // SAFETY: as the caller says.
    let ran_then = unsafe {
        lanes.choose::<W>(ACTIVE, waits);
        run_side(runs, lanes, lowered, second, waits, observer)
    };
    Sides {
        instructions: ran + ran_then,
        lane_instructions: ran * goes.count_ones() + ran_then * waits.count_ones(),
    }
}

/// What ran between a `joinat` and its join.
struct Whole {
    /// Instructions that ran for all lanes alike.
    alike: u32,
    /// The lanes that came to the join last.
    last: u32,
    /// Where the branch divided the lanes: its sides.
    sides: Option<Sides>,
}

/// What follows a `joinat`: a branch, its sides and their join. The flow is as if nothing had happened.
///
/// # Safety
/// The processor has the level of `W`, and that for which the program was lowered; there is a count for each block.
#[inline(always)]
unsafe fn whole<W: Wide, O: Observer>(
    runs: &mut [u64],
    lanes: &mut Lanes<'_>,
    lowered: &Lowered,
    conditional: &Conditional,
    active: u32,
    observer: &mut O,
) -> Whole {
    let Conditional { branch, guard, meet, .. } = conditional;
    announce_push(observer, TokenType::Joinat);
    // SAFETY: as the caller says.
    let size = unsafe { run_block(runs, lanes, lowered, *branch, active, observer) };
    // SAFETY: as the caller says.
    let taken = unsafe { guard.executing::<W>(lanes, active) };
    let not = active & !taken;
    let whole = if taken == 0 || not == 0 {
        let side = if taken == 0 { meet.not } else { meet.taken };
        if O::ENABLED && taken != 0 {
            observer.event(Event::Jump { to: side.pc });
        }
        // SAFETY: as the caller says.
        let alike = size + unsafe { run_side(runs, lanes, lowered, side, active, observer) };
        Whole { alike, last: active, sides: None }
    } else {
        // SAFETY: as the caller says.
        let sides = unsafe { both::<W, O>(runs, lanes, lowered, meet, taken, not, observer) };
        // SAFETY: as the caller says.
        unsafe { lanes.choose::<W>(ACTIVE, active) };
        Whole { alike: size, last: meet.order(taken, not)[1].1, sides: Some(sides) }
    };
    announce_arrival(observer, TokenType::Joinat, meet.at, Mask(active.into()));
    whole
}

/// A level for which chains are compiled.
trait Chained: Wide {
    /// # Safety
    /// The processor has the level, and that for which the program was lowered.
    unsafe fn chain<O: Observer>(chain: &mut Chain<'_, O>, lanes: &mut Lanes<'_>) -> End;
}

impl Chained for Baseline {
    #[inline(never)]
    unsafe fn chain<O: Observer>(chain: &mut Chain<'_, O>, lanes: &mut Lanes<'_>) -> End {
        // SAFETY: as the caller says.
        unsafe { chain.run::<Baseline>(lanes) }
    }
}

#[cfg(target_arch = "x86_64")]
impl Chained for Avx2 {
    #[inline(always)]
    unsafe fn chain<O: Observer>(chain: &mut Chain<'_, O>, lanes: &mut Lanes<'_>) -> End {
        for_avx2! {
            #[inline(never)]
            unsafe fn run<O: Observer>(chain: &mut Chain<'_, O>, lanes: &mut Lanes<'_>) -> End {
                // SAFETY: as the caller says.
                unsafe { chain.run::<Avx2>(lanes) }
            }
        }
        // SAFETY: as the caller says.
        unsafe { run(chain, lanes) }
    }
}

#[cfg(target_arch = "x86_64")]
impl Chained for Avx512 {
    #[inline(always)]
    unsafe fn chain<O: Observer>(chain: &mut Chain<'_, O>, lanes: &mut Lanes<'_>) -> End {
        for_avx512! {
            #[inline(never)]
            unsafe fn run<O: Observer>(chain: &mut Chain<'_, O>, lanes: &mut Lanes<'_>) -> End {
                // SAFETY: as the caller says.
                unsafe { chain.run::<Avx512>(lanes) }
            }
        }
        // SAFETY: as the caller says.
        unsafe { run(chain, lanes) }
    }
}

/// # Safety
/// The processor has the level that the operations were made for.
#[inline(always)]
unsafe fn execute(lanes: &mut Lanes<'_>, lowered: &Lowered, start: u32, end: u32) {
    // SAFETY: lowering gives blocks only ranges of operations that it has made.
    let operations = unsafe { lowered.operations.get_unchecked(start as usize..end as usize) };
    for (handler, operation) in operations {
        // SAFETY: as the caller says.
        unsafe { handler(lanes, operation) };
    }
}

/// Announces some instructions of a block.
#[inline(always)]
fn announce_issues<O: Observer>(observer: &mut O, inside: &Inside, some: Range<u32>, mask: Mask) {
    if O::ENABLED {
        observer.issues(&inside.addresses[some.start as usize..some.end as usize], mask);
    }
}

#[cold]
fn stop<O: Observer>(observer: &mut O, pc: u32, lanes: Mask, fault: Fault) -> Stop {
    if O::ENABLED {
        observer.event(Event::Trap { mask: lanes });
    }
    Stop::Trap(Trap { pc, lanes, cause: Cause::Flow(fault) })
}

/// Why blocks do not go on.
enum Stop {
    /// The time is over, or the warp has ended.
    Over,
    /// No block has an instruction at this address.
    Unknown,
    /// The instruction at this address is the reference interpreter's; without its join where that is done, with the
    /// lanes that were active before.
    Refused { joined: Option<Mask> },
    /// The program trapped.
    Trap(Trap<Cause>),
}

/// Whether the warp waits at a barrier now.
struct Waits(bool);

impl<G: Store, O: Observer> Running<'_, G, O> {
    /// The instruction at the program counter, by the reference interpreter; `joined`: without its join, with the
    /// lanes that were active before.
    fn by_reference(&mut self, joined: Option<Mask>) -> Result<Waits, Trap<Cause>> {
        let Running { context, common, warp, global, number, observer } = self;
        match joined {
            None => reference::step(context, common, warp, *global, *observer),
            Some(arrived) => reference::step_joined(context, common, warp, *global, *observer, arrived),
        }?;
        Ok(Waits(common.barriers.waits_for(*number).is_some()))
    }
}

impl Test {
    /// The active lanes whose predicate holds. (2.2)
    ///
    /// # Safety
    /// The processor has the level of `W`.
    #[inline(always)]
    unsafe fn executing<W: Wide>(&self, lanes: &Lanes<'_>, active: u32) -> u32 {
        if self.always {
            return active;
        }
        // SAFETY: as the caller says.
        active & unsafe { W::select(&self.table, lanes.c(self.c)) }
    }
}
