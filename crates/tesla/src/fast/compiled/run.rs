//! Entry and exit of a region: sets up its state, then updates the warp.

// Code is called and calls back; each use states its assumptions.
#![allow(unsafe_code)]

use reconverge_jit::{Ended, FLUSH, Held, Machine, Ran, State};
use reconverge_simt::wide::spread;
use reconverge_simt::{Mask, Statistics};

use super::code::{A, C};
use super::{Access, After, At, Call, Compiled, Gone, Is, Own};
use crate::fast::lanes::{ACTIVE, Lanes};
use crate::fast::lower::Lowered;
use crate::fast::words::Reach;
use crate::flow::{Flow, WARP};

/// Regions, and a state to run them with.
pub(in crate::fast) struct Runner<'a> {
    compiled: &'a Compiled,
    held: Held,
}

/// The warp and the program that a region changes.
pub(in crate::fast) struct Work<'a, 'w> {
    pub(in crate::fast) lowered: &'a Lowered,
    pub(in crate::fast) lanes: &'a mut Lanes<'w>,
    pub(in crate::fast) memory: &'a mut dyn Reach,
    pub(in crate::fast) flow: &'a mut Flow,
    pub(in crate::fast) statistics: &'a mut Statistics,
    /// Number of runs of each block.
    pub(in crate::fast) runs: &'a mut [u64],
    pub(in crate::fast) budget: &'a mut u32,
    /// The active lanes.
    pub(in crate::fast) active: &'a mut u32,
}

/// Position of the warp after a region.
pub(in crate::fast) enum Exit {
    /// The warp is before this block, which may run in a region.
    Before(u32),
    /// The warp is at the flow of this block, which has not been executed.
    Behind(u32),
    /// The warp is at the load or store at the end of this block, which some lane cannot execute.
    Refused(u32),
    /// The warp is before this block, which runs without a region.
    Apart(u32),
}

/// Data that calls use.
pub(in crate::fast) struct Calls<'a, 'w> {
    lowered: &'a Lowered,
    lanes: &'a mut Lanes<'w>,
    memory: &'a mut dyn Reach,
}

/// The compiled engine of this machine.
#[derive(Debug)]
pub(in crate::fast) struct Tesla;

impl Machine for Tesla {
    type At = At;
    type Call = Call;
    type Region = Own;
    type Context<'a, 'w>
        = Calls<'a, 'w>
    where
        'w: 'a;

    /// Two vectors of sixteen lanes hide less latency than four of eight: mandel gains 4 %, collatz loses 8 % (an AMD EPYC).
    const LEVEL: reconverge_jit::Level = reconverge_jit::Level::Avx2;
    const MODE: u32 = FLUSH;
    const JOINS: bool = true;
    const HEXADECIMAL: bool = true;

    fn call(call: &Call, active: u64, state: &mut State, context: &mut Calls<'_, '_>) -> bool {
        let Calls { lowered, lanes, memory } = context;
        lanes.sets[ACTIVE] = active as u32;
        give_registers(state, lanes, call.registers);
        let execute = |lanes: &mut Lanes<'_>, start: u32, end: u32| {
            for (handler, operation) in &lowered.operations[start as usize..end as usize] {
                // SAFETY: operations were lowered for the level of the engine.
                unsafe { handler(lanes, operation) };
            }
        };
        execute(lanes, call.operations.start, call.operations.end);
        let mut done = true;
        if let Access(Some(access)) = call.access {
            let access = &lowered.accesses[access as usize];
            // SAFETY: as above.
            done = unsafe { (access.transfer.mover)(lanes, *memory, &access.transfer) };
            if done {
                execute(lanes, access.after.start, access.after.end);
            }
        }
        take_registers(state, lanes, call.registers);
        done
    }
}

impl<'a> Runner<'a> {
    pub(in crate::fast) fn new(compiled: &'a Compiled) -> Self {
        Runner { compiled, held: Held::take() }
    }

    /// Returns the region that begins at a block, if it may run now.
    #[inline(always)]
    pub(in crate::fast) fn region(&self, block: u32, budget: u32, flow: &Flow) -> Option<u32> {
        let number = self.compiled.starting_at(block)?;
        let region = self.compiled.region(number);
        let each = if region.own.branches { flow.active().count() as usize } else { 0 };
        (region.most <= budget && flow.has_room_for(region.own.entries + each)).then_some(number)
    }

    /// Runs a region for the active lanes.
    #[inline(never)]
    pub(in crate::fast) fn run(&mut self, number: u32, work: Work<'_, '_>) -> Exit {
        let Runner { compiled, held } = self;
        let Work { lowered, lanes, memory, flow, statistics, runs, budget, active } = work;
        let (region, state) = (compiled.region(number), held.state());
        let Own { after, registers, .. } = region.own;
        // If a whole warp writes a register first, its value at entry does not matter.
        let unknown = if *active == u32::MAX { registers.fresh } else { 0 };
        take_registers(state, lanes, registers.touched & !unknown);
        (state.budget, state.rounds, state.active) = (*budget as i32, u32::MAX, (*active).into());
        let rows = lanes.rows.bytes();
        state.set_window(lanes.shared.bytes_mut());
        let mut calls = Calls { lowered, lanes, memory };
        let (mut broke, mut returned) = (0, 0);
        let count = |ran: Ran<'_, At>| {
            for at in ran.at {
                runs[at.block as usize] += ran.times;
            }
            statistics.instructions += ran.instructions;
            statistics.lane_instructions += ran.lane_instructions;
        };
        let left = |at: At, lanes: u64| match at.is {
            Is::Exit(Gone::Breaks) => broke |= lanes,
            Is::Exit(Gone::Returns) => returned |= lanes,
            Is::Exit(Gone::Branches { next }) => flow.branch_off(next, Mask(lanes)),
            Is::Exit(Gone::Waits) | Is::Block | Is::Access => {}
        };
        // SAFETY: regions exist only if the processor has the level; they were traced for the layout of these rows, which
        // contain the mask, and for a window of these bytes.
        let ended = unsafe { compiled.run(number, state, rows, &mut calls, count, left) };
        let Calls { lanes, .. } = calls;
        // Before any instruction has run, the registers whose entry values do not matter are undefined.
        if state.budget as u32 != *budget || ended != Ended::Bailed(0) {
            give_registers(state, lanes, registers.written);
        }
        *budget = state.budget as u32;
        *active = state.active as u32;
        statistics.divergent_branches += std::mem::take(&mut state.divergent);
        lanes.sets[ACTIVE] = *active;
        if let Ended::Left(_) = ended {
            // The code has cleared these lanes in the row.
            lanes.row_mut(lanes.tables.mask).0 = spread((*active).into());
        }
        if broke | returned != 0 || flow.active() != Mask(state.active) {
            flow.stay(Mask(state.active), Mask(broke), Mask(returned));
        }
        match ended {
            Ended::Budget => Exit::Before(region.at(0).block),
            Ended::Exit => match after {
                After::Before(block) => Exit::Before(block),
                After::Behind(block) => Exit::Behind(block),
            },
            Ended::Left(step) => Exit::Behind(region.at(step).block),
            Ended::Stopped(_, step) => Exit::Refused(region.at(step).block),
            Ended::Bailed(step) => match region.at(step) {
                At { block, is: Is::Access } => Exit::Refused(block),
                At { block, .. } => Exit::Apart(block),
            },
        }
    }
}

impl Lanes<'_> {
    /// Returns `$a1` to `$a4`, for writing.
    fn a_mut(&mut self, register: u8) -> &mut [u16; WARP] {
        &mut self.a[usize::from(register.wrapping_sub(1) & 3)]
    }

    /// Returns the flags of a `$c`, for writing; only the low four bits of each may be set.
    fn c_mut(&mut self, register: u8) -> &mut [u8; WARP] {
        &mut self.c[usize::from(register & 3)]
    }
}

/// Copies the `$c` and `$a` selected by the bits to the state, as words. `$c0` is the first bit, `$a1` the fifth.
#[inline]
fn take_registers(state: &mut State, lanes: &Lanes<'_>, registers: u32) {
    if registers != 0 {
        // SAFETY: regions exist only if the processor has the level.
        unsafe { take_registers_of(state, lanes, registers) };
    }
}

/// Copies the selected registers from the state back to the lanes.
#[inline]
fn give_registers(state: &State, lanes: &mut Lanes<'_>, registers: u32) {
    if registers != 0 {
        // SAFETY: regions exist only if the processor has the level.
        unsafe { give_registers_of(state, lanes, registers) };
    }
}

/// Implements [`take_registers`] with vectors of the level.
#[cfg_attr(target_arch = "x86_64", target_feature(enable = "avx2"))]
unsafe fn take_registers_of(state: &mut State, lanes: &Lanes<'_>, registers: u32) {
    #[inline(always)]
    fn widen<T: Copy + Into<u32>>(to: &mut [u32; WARP], from: &[T; WARP]) {
        to.iter_mut().zip(from).for_each(|(to, from)| *to = (*from).into());
    }
    for register in (0..8).filter(|register| registers >> register & 1 != 0) {
        if register < 4 {
            widen(state.own_mut::<WARP>(C + register), lanes.c(register as u8));
        } else {
            widen(state.own_mut::<WARP>(A + register - 4), &lanes.a(register as u8 - 3));
        }
    }
}

/// Implements [`give_registers`] with vectors of the level.
#[cfg_attr(target_arch = "x86_64", target_feature(enable = "avx2"))]
unsafe fn give_registers_of(state: &State, lanes: &mut Lanes<'_>, registers: u32) {
    for register in (0..8).filter(|register| registers >> register & 1 != 0) {
        if register < 4 {
            let (to, from) = (lanes.c_mut(register as u8), state.own::<WARP>(C + register));
            to.iter_mut().zip(from).for_each(|(to, from)| *to = *from as u8);
        } else {
            let (to, from) = (lanes.a_mut(register as u8 - 3), state.own::<WARP>(A + register - 4));
            to.iter_mut().zip(from).for_each(|(to, from)| *to = *from as u16);
        }
    }
}
