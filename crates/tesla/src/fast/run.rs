//! Blocks one after another, and what control flow does between them.

use std::ops::Range;

use reconverge_simt::lanes::{Baseline, Kind, Spread, Wide};
use reconverge_simt::memory::Store;
use reconverge_simt::{Mask, Silent, Trap};

use super::Fast;
use super::bodies::CONDITIONS;
use super::lanes::{ACTIVE, Lanes};
use super::lower::{Block, Last};
use super::memory;
use crate::block::Common;
use crate::flow::{Decision, Fault, Join};
use crate::inst::Guard;
use crate::launch::Context;
use crate::reference;
use crate::state::Warp;
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

impl Block {
    /// Instructions that [`Common::runs`] counts: all that the block executes itself.
    pub(super) fn counted(&self) -> usize {
        match self.last {
            Last::Reference => self.ends.len(),
            _ => self.places.len(),
        }
    }
}

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
        unsafe { self.run_on::<reconverge_simt::lanes::Avx2, G>(running, most) }
    }

    /// # Safety
    /// The processor has the level of `W`, and that of `self`.
    #[inline(always)]
    unsafe fn run_on<W: Wide, G: Store>(&self, running: &mut Running<'_, G>, most: u32) -> Ran {
        let mut masks = [Spread::NONE; 2];
        let mut tried = 0;
        while tried < most && !running.warp.flow.finished() {
            let place = running.context.code.place(running.warp.flow.pc());
            let Some((number, first)) = place.and_then(|place| self.lowered.entries[place]) else {
                tried += 1;
                match running.by_reference(None) {
                    Ok(Waits(false)) => continue,
                    Ok(Waits(true)) => break,
                    Err(trap) => return (tried, Err(trap)),
                }
            };
            let block = &self.lowered.blocks[number as usize];
            // SAFETY: as the caller says.
            let (times, result) = unsafe {
                self.block::<W, G>(running, &mut masks, (block, number), first as usize, most - tried)
            };
            tried += times;
            match result {
                Ok(Waits(false)) => {}
                Ok(Waits(true)) => break,
                Err(trap) => return (tried, Err(trap)),
            }
        }
        (tried, Ok(()))
    }

    /// Runs a block from its instruction `first` on, as far as there is time; how many instructions were tried.
    ///
    /// # Safety
    /// The processor has the level of `W`, and that of `self`.
    #[inline(always)]
    unsafe fn block<W: Wide, G: Store>(
        &self,
        running: &mut Running<'_, G>,
        masks: &mut [Spread; 2],
        (block, number): (&Block, u32),
        first: usize,
        most: u32,
    ) -> (u32, Result<Waits, Trap<Cause>>) {
        let arrived = running.warp.flow.active();
        let joined = block.join && first == 0;
        if joined {
            match running.warp.flow.join(&mut Silent) {
                Ok(Join::Run) => {}
                Ok(Join::Away) => return (1, Ok(Waits(false))),
                Err(fault) => return (1, Err(trap(running.warp.flow.pc(), arrived, fault))),
            }
        }
        let active = running.warp.flow.active();
        masks[usize::from(ACTIVE)].set(active.0 as u32);

        let straight = block.ends.len();
        let whole = first == 0 && most as usize >= block.places.len();
        if whole {
            // SAFETY: as the caller says.
            unsafe { self.execute(block.operations.clone(), running, masks) };
        } else {
            let until = straight.min(first + most as usize);
            let end_of = |instructions: usize| match instructions {
                0 => block.operations.start,
                _ => block.ends[instructions - 1],
            };
            // SAFETY: as the caller says.
            unsafe { self.execute(end_of(first)..end_of(until), running, masks) };
            for place in &block.places[first..until] {
                running.common.count(Some(*place), active);
            }
            // Here the time is over, or nothing is left but the last instruction.
            let tried = (until - first) as u32;
            if tried == most && until < block.places.len() {
                running.warp.flow.advance(running.address(block.places[until]));
                return (tried, Ok(Waits(false)));
            }
            // SAFETY: as the caller says.
            unsafe { self.execute(end_of(until)..block.operations.end, running, masks) };
        }

        // What the block executes itself is counted together when it ran as a whole.
        let count = |running: &mut Running<'_, G>| {
            let common = &mut *running.common;
            if whole {
                common.runs[number as usize] += 1;
                let instructions = block.counted() as u64;
                common.statistics.instructions += instructions;
                common.statistics.lane_instructions += instructions * u64::from(active.count());
            } else if block.counted() > straight {
                common.count(block.places.last().copied(), active);
            }
        };
        let tried = (block.places.len() - first) as u32;
        let last = running.address(block.places[block.places.len() - 1]);
        let came = if joined && block.places.len() == 1 { arrived } else { active };
        let joined_last = (joined && straight == 0).then_some(arrived);
        // SAFETY: as the caller says.
        let holding =
            |running: &Running<'_, G>, guard: Guard| unsafe { executing::<W>(running.warp, active, guard) };

        let decision = match &block.last {
            Last::Next => {
                count(running);
                running.warp.flow.advance(block.next);
                Ok(Decision::Uniform)
            }
            Last::Reference => {
                count(running);
                running.warp.flow.advance(last);
                return (tried, running.by_reference(joined_last));
            }
            Last::Memory { transfer, after } => {
                let set = &masks[usize::from(transfer.masked)];
                let Running { context, common, warp, global, .. } = running;
                if !memory::transfer(context, common, warp, *global, transfer, set) {
                    if whole {
                        for place in &block.places[..straight] {
                            running.common.count(Some(*place), active);
                        }
                    }
                    running.warp.flow.advance(last);
                    return (tried, running.by_reference(joined_last));
                }
                // SAFETY: as the caller says.
                unsafe { self.execute(after.clone(), running, masks) };
                count(running);
                running.warp.flow.advance(block.next);
                Ok(Decision::Uniform)
            }
            control => {
                count(running);
                running.warp.flow.advance(last);
                let guarded = match control {
                    Last::Bra { guard, .. } | Last::Ret { guard } | Last::Break { guard } => {
                        holding(running, *guard)
                    }
                    _ => active,
                };
                let flow = &mut running.warp.flow;
                match *control {
                    Last::Bra { target, .. } => flow.bra(target, block.next, guarded, &mut Silent),
                    Last::Ret { .. } => flow.ret(guarded, block.next, &mut Silent),
                    Last::Break { .. } => flow.break_(guarded, block.next, &mut Silent),
                    Last::Joinat { target } => {
                        flow.joinat(target, block.next, &mut Silent).map(|()| Decision::Uniform)
                    }
                    Last::Breakaddr { target } => {
                        flow.breakaddr(target, block.next, &mut Silent).map(|()| Decision::Uniform)
                    }
                    Last::Call { target } => {
                        flow.call(target, block.next, &mut Silent).map(|()| Decision::Uniform)
                    }
                    Last::Next | Last::Reference | Last::Memory { .. } => Ok(Decision::Uniform),
                }
            }
        };
        let ended = decision.and_then(|decision| {
            if decision == Decision::Divergent {
                running.common.statistics.divergent_branches += 1;
            }
            if block.exit { running.warp.flow.exit(&mut Silent) } else { Ok(()) }
        });
        (tried, ended.map(|()| Waits(false)).map_err(|fault| trap(last, came, fault)))
    }

    /// # Safety
    /// The processor has the level of `self`.
    #[inline(always)]
    unsafe fn execute<G>(&self, range: Range<usize>, running: &mut Running<'_, G>, masks: &mut [Spread; 2]) {
        let shared = running.common.shared.bytes();
        let mut lanes = Lanes::new(running.warp.parts(), masks, shared, &self.lowered.tables);
        for (handler, operation) in &self.lowered.operations[range] {
            // SAFETY: the handlers were made for the level of self.
            unsafe { handler(&mut lanes, operation) };
        }
    }
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

    fn address(&self, place: usize) -> u32 {
        self.context.code.base() + 4 * place as u32
    }
}

/// The active lanes whose predicate holds. (2.2)
///
/// # Safety
/// The processor has the level of `W`.
#[inline(always)]
unsafe fn executing<W: Wide>(warp: &Warp, active: Mask, guard: Guard) -> Mask {
    if guard.is_always() {
        return active;
    }
    let table = &CONDITIONS[usize::from(guard.condition.code())];
    // SAFETY: as the caller says.
    let holding = unsafe { W::select(table, warp.c_row(guard.c)) };
    active & Mask(holding.into())
}

fn trap(pc: u32, lanes: Mask, fault: Fault) -> Trap<Cause> {
    Trap { pc, lanes, cause: Cause::Flow(fault) }
}
