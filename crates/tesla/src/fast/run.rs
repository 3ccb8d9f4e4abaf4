//! Blocks one after another, and what control flow does between them.

use std::ops::Range;

use reconverge_simt::lanes::{Baseline, Kind, Wide};
use reconverge_simt::memory::Store;
use reconverge_simt::{Mask, Silent, Trap};

use super::Fast;
use super::lanes::{ACTIVE, Handler, Lanes, Operation};
use super::lower::{Last, NONE, Test};
use super::memory;
use crate::block::Common;
use crate::flow::{Decision, Fault, Join};
use crate::launch::Context;
use crate::reference;
use crate::state::{Parts, Warp};
use crate::trap::Cause;

/// A warp, and what it runs against.
pub(crate) struct Running<'a, G> {
    pub(crate) context: &'a Context,
    pub(crate) common: &'a mut Common,
    pub(crate) warp: &'a mut Warp,
    /// Which of the block's warps it is.
    pub(crate) number: usize,
    pub(crate) global: &'a mut G,
}

/// How many instructions the warp has tried, and whether the last one trapped.
pub(crate) type Ran = (u32, Result<(), Trap<Cause>>);

impl Fast {
    /// Runs a warp for at most `most` instructions, until it ends or waits at a barrier.
    pub(crate) fn run<G: Store>(&self, running: &mut Running<'_, G>, most: u32) -> Ran {
        match self.level.kind() {
            // SAFETY: every processor has the baseline.
            Kind::Baseline => unsafe { self.run_on::<Baseline, G>(running, most) },
            // SAFETY: a level is made only on a processor that has it.
            #[cfg(target_arch = "x86_64")]
            Kind::Avx2 => unsafe { self.run_avx2(running, most) },
            // SAFETY: a level is made only on a processor that has it.
            #[cfg(target_arch = "x86_64")]
            Kind::Avx512 => unsafe { self.run_avx512(running, most) },
            // SAFETY: there are no other levels on other processors.
            #[cfg(not(target_arch = "x86_64"))]
            Kind::Avx2 | Kind::Avx512 => unsafe { self.run_on::<Baseline, G>(running, most) },
        }
    }

    #[cfg(target_arch = "x86_64")]
    #[target_feature(enable = "avx2,bmi1,bmi2,popcnt,lzcnt")]
    unsafe fn run_avx2<G: Store>(&self, running: &mut Running<'_, G>, most: u32) -> Ran {
        // SAFETY: who calls this has the level.
        unsafe { self.run_on::<reconverge_simt::lanes::Avx2, G>(running, most) }
    }

    #[cfg(target_arch = "x86_64")]
    #[target_feature(enable = "avx2,bmi1,bmi2,popcnt,lzcnt,avx512f,avx512bw,avx512cd,avx512dq,avx512vl")]
    unsafe fn run_avx512<G: Store>(&self, running: &mut Running<'_, G>, most: u32) -> Ran {
        // SAFETY: who calls this has the level.
        unsafe { self.run_on::<reconverge_simt::lanes::Avx512, G>(running, most) }
    }

    /// # Safety
    /// The processor has the level of `W`, and that of `self`.
    #[inline(always)]
    unsafe fn run_on<W: Wide, G: Store>(&self, running: &mut Running<'_, G>, most: u32) -> Ran {
        let mut tried = 0;
        loop {
            // SAFETY: as the caller says.
            let stop = unsafe { self.blocks_on::<W, G>(running, &mut tried, most) };
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
    unsafe fn blocks_on<W: Wide, G: Store>(
        &self,
        running: &mut Running<'_, G>,
        tried: &mut u32,
        most: u32,
    ) -> Stop {
        let Running { context, common, warp, global, .. } = running;
        let lowered = &self.lowered;
        let base = context.code.base();
        let Parts { flow, rows, a, c, mut local } = warp.parts();
        let Common { shared, statistics, issued, runs, .. } = &mut **common;
        let mut lanes = Lanes::new(rows, a, c, shared, &lowered.tables);
        loop {
            if *tried == most || flow.finished() {
                return Stop::Over;
            }
            // An address between words becomes a place beyond the end.
            let place = flow.pc().wrapping_sub(base).rotate_right(2) as usize;
            let mut first = 0;
            let mut number = lowered.starts.get(place).copied().unwrap_or(NONE);
            if number == NONE {
                // Rare: the middle of a block, after an indirect branch or a time that was over.
                match lowered.entries.get(place) {
                    Some(&Some(entry)) => (number, first) = entry,
                    _ => return Stop::Unknown,
                }
            }
            let arrived = flow.active();
            let mut joined = lowered.blocks[number as usize].join && first == 0;
            if joined {
                match flow.join(&mut Silent) {
                    Ok(Join::Run) => {}
                    Ok(Join::Away) => {
                        *tried += 1;
                        continue;
                    }
                    Err(fault) => return stop(tried, flow.pc(), arrived, fault),
                }
            }
            let active = flow.active();
            let members = active.count();
            // SAFETY: as the caller says.
            unsafe { lanes.choose::<W>(ACTIVE, active.0 as u32) };

            // Blocks that follow each other with the same lanes; the flow's program counter is set behind them.
            let (block, ended) = loop {
                let block = &lowered.blocks[number as usize];
                let inside = || &lowered.inside[number as usize];
                let mut count_some = |some: Range<u32>| {
                    statistics.instructions += u64::from(some.end - some.start);
                    statistics.lane_instructions += u64::from((some.end - some.start) * members);
                    for place in &inside().places[some.start as usize..some.end as usize] {
                        issued[*place] += 1;
                    }
                };
                let size = block.size - first;
                let start = if first == 0 { block.start } else { inside().ends[first as usize - 1] };
                let left = most - *tried;
                if size > left {
                    // Time for some of it, which is not the last instruction.
                    let until = first + left;
                    let end = if left == 0 { start } else { inside().ends[until as usize - 1] };
                    // SAFETY: the caller has the level of self, for which the operations were made.
                    unsafe { execute(&mut lanes, self.operations(start, end)) };
                    count_some(first..until);
                    flow.advance(base + 4 * inside().places[until as usize] as u32);
                    *tried = most;
                    return Stop::Over;
                }
                // SAFETY: as above.
                unsafe { execute(&mut lanes, self.operations(start, block.end)) };

                let mut refused = matches!(block.last, Last::Reference);
                if let Last::Memory(number) = block.last {
                    let access = &lowered.accesses[number as usize];
                    if memory::transfer(context, &mut lanes, &mut local, *global, &access.transfer) {
                        // SAFETY: as above.
                        unsafe { execute(&mut lanes, &lowered.operations[access.after.clone()]) };
                    } else {
                        refused = true;
                    }
                }
                if refused {
                    count_some(first..block.size - 1);
                    flow.advance(block.last_pc);
                    *tried += size - 1;
                    return Stop::Refused { joined: (joined && size == 1).then_some(arrived) };
                }
                *tried += size;
                if first == 0 {
                    statistics.instructions += u64::from(size);
                    statistics.lane_instructions += u64::from(size * members);
                    runs[number as usize] += 1;
                } else {
                    count_some(first..block.size);
                    first = 0;
                }

                // SAFETY: as the caller says.
                let executing = |guard: &Test| unsafe { guard.executing::<W>(&lanes, active) };
                let next = block.next;
                let decision = match &block.last {
                    Last::Next | Last::Memory(_) if block.fall != NONE => {
                        number = block.fall;
                        joined = false;
                        continue;
                    }
                    Last::Next | Last::Memory(_) => {
                        flow.advance(next);
                        Ok(Decision::Uniform)
                    }
                    Last::Bra { target, guard } => {
                        let taken = executing(guard);
                        let uniform = match taken {
                            Mask::NONE => block.fall,
                            all if all == active => block.jump,
                            _ => NONE,
                        };
                        if uniform != NONE {
                            number = uniform;
                            joined = false;
                            continue;
                        }
                        flow.advance(block.last_pc);
                        flow.bra(*target, next, taken, &mut Silent)
                    }
                    Last::Joinat { target } => {
                        flow.advance(block.last_pc);
                        let pushed = flow.joinat(*target, next, &mut Silent);
                        if pushed.is_ok() && block.fall != NONE {
                            number = block.fall;
                            joined = false;
                            continue;
                        }
                        pushed.map(|()| Decision::Uniform)
                    }
                    other => {
                        flow.advance(block.last_pc);
                        match other {
                            Last::Ret { guard } => flow.ret(executing(guard), next, &mut Silent),
                            Last::Break { guard } => flow.break_(executing(guard), next, &mut Silent),
                            Last::Breakaddr { target } => {
                                flow.breakaddr(*target, next, &mut Silent).map(|()| Decision::Uniform)
                            }
                            Last::Call { target } => {
                                flow.call(*target, next, &mut Silent).map(|()| Decision::Uniform)
                            }
                            Last::Next
                            | Last::Reference
                            | Last::Memory(_)
                            | Last::Bra { .. }
                            | Last::Joinat { .. } => Ok(Decision::Uniform),
                        }
                    }
                };
                let came = if joined && size == 1 { arrived } else { active };
                match decision {
                    Err(fault) => break (block, Err((fault, came))),
                    Ok(decision) => {
                        statistics.divergent_branches += u64::from(decision == Decision::Divergent);
                        break (block, Ok(came));
                    }
                }
            };
            let ended = match ended {
                Ok(came) if block.exit => flow.exit(&mut Silent).map_err(|fault| (fault, came)),
                Ok(_) => Ok(()),
                Err(fault) => Err(fault),
            };
            if let Err((fault, came)) = ended {
                return stop(&mut 0, block.last_pc, came, fault);
            }
        }
    }

    /// Operations of a block.
    #[inline(always)]
    fn operations(&self, start: u32, end: u32) -> &[(Handler, Operation)] {
        &self.lowered.operations[start as usize..end as usize]
    }
}

/// # Safety
/// The processor has the level that the operations were made for.
#[inline(always)]
unsafe fn execute(lanes: &mut Lanes<'_>, operations: &[(Handler, Operation)]) {
    for (handler, operation) in operations {
        // SAFETY: as the caller says.
        unsafe { handler(lanes, operation) };
    }
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

#[cold]
fn stop(tried: &mut u32, pc: u32, lanes: Mask, fault: Fault) -> Stop {
    *tried += 1;
    Stop::Trap(Trap { pc, lanes, cause: Cause::Flow(fault) })
}

/// Whether the warp waits at a barrier now.
struct Waits(bool);

impl<G: Store> Running<'_, G> {
    /// The instruction at the program counter, by the reference interpreter; `joined`: without its join, with the
    /// lanes that were active before.
    fn by_reference(&mut self, joined: Option<Mask>) -> Result<Waits, Trap<Cause>> {
        let Running { context, common, warp, global, number } = self;
        match joined {
            None => reference::step(context, common, warp, *global, &mut Silent),
            Some(arrived) => reference::step_joined(context, common, warp, *global, &mut Silent, arrived),
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
    unsafe fn executing<W: Wide>(&self, lanes: &Lanes<'_>, active: Mask) -> Mask {
        if self.always {
            return active;
        }
        // SAFETY: as the caller says.
        active & Mask(unsafe { W::select(&self.table, lanes.c(self.c)) }.into())
    }
}
