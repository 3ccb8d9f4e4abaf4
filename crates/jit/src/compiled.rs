//! The compiled regions of a program, and their runs by a group: shared by the compiled engines of all machines.

// Generated code is called and calls functions: each block states its assumptions.
#![allow(unsafe_code)]

use std::fmt::Debug;
use std::ptr::null_mut;
use std::sync::Arc;

use reconverge_simt::CodeFault;
use reconverge_simt::compiling::{accepts, compile, once};

use crate::asm;
use crate::builder::{Found, ran};
use crate::level::Level;
use crate::machine::{Calls, Machine};
use crate::region::{Back, Count, Ended, Regions};
use crate::state::{Held, State};

/// No region.
const NONE: u32 = u32::MAX;

/// A compiled region.
#[derive(Debug)]
pub struct Region<M: Machine> {
    /// Position of each step.
    at: Vec<M::At>,
    /// Position of each run.
    ran: Vec<M::At>,
    /// Number of instructions of all earlier runs, for each run and at the end.
    before: Vec<u32>,
    calls: Vec<M::Call>,
    /// Address of the first instruction.
    pub pc: u32,
    /// Maximum number of instructions of an iteration.
    pub most: u32,
    /// Whether control returns to the entry of the region.
    pub repeats: bool,
    /// Data of the machine.
    pub own: M::Region,
}

/// The compiled regions of a program.
#[derive(Debug)]
pub struct Compiled<M: Machine> {
    code: Arc<Regions>,
    regions: Vec<Region<M>>,
    /// Number of the region that starts at each position of the program, or [`NONE`].
    starts: Vec<u32>,
}

/// Consecutive runs of a region that executed equally often.
#[derive(Clone, Copy, Debug)]
pub struct Ran<'a, A> {
    /// Positions of the runs.
    pub at: &'a [A],
    /// Number of times that each of them ran.
    pub times: u64,
    /// Number of instructions, summed over all times.
    pub instructions: u64,
    /// Number of instructions, summed over all times and active lanes.
    pub lane_instructions: u64,
}

/// A group at the entry of a region.
#[derive(Clone, Copy, Debug)]
pub struct Arrival {
    /// Number of iterations that may begin; `u32::MAX` for any number.
    pub rounds: u32,
    /// Number of instructions in the budget.
    pub budget: u64,
    /// The active lanes.
    pub active: u64,
}

/// A group at the exit of a region.
#[derive(Clone, Copy, Debug)]
pub struct Passed {
    /// The reason the region ended.
    pub ended: Ended,
    /// Number of iterations that began.
    pub rounds: u32,
    /// The lanes that remain active.
    pub active: u64,
    /// The lanes that exited while others stayed.
    pub left: u64,
    /// Number of branches that diverged.
    pub divergent: u64,
}

impl<M: Machine> Compiled<M> {
    /// Compiles regions of a program of `instructions` instructions and `places` positions, for groups of `lanes`
    /// lanes.
    ///
    /// Returns `None` if code cannot be compiled for this level, or if no region is worth compiling.
    pub fn new(
        level: reconverge_simt::Level,
        [instructions, places]: [usize; 2],
        lanes: usize,
        trace: impl FnOnce() -> Vec<(u32, Found<M>)>,
    ) -> Option<Arc<Compiled<M>>> {
        compile(level, instructions, || {
            let mut found = trace();
            found.retain(|(_, found)| accepts(found.plan.verify()));
            let Some(level) = Level::from_name(level.name()).filter(|_| !found.is_empty()) else {
                return Ok(None);
            };
            let (mut plans, mut regions, mut starts) = (Vec::new(), Vec::new(), vec![NONE; places]);
            for (place, Found { plan, at, calls, pc, most, own, .. }) in found {
                starts[place as usize] = regions.len() as u32;
                let (mut ran_at, mut before) = (Vec::new(), vec![0]);
                for (size, at) in ran(&plan.steps, &at) {
                    before.push(before[ran_at.len()] + size);
                    ran_at.push(at);
                }
                let repeats = plan.back != Back::Never;
                regions.push(Region { at, ran: ran_at, before, calls, pc, most, repeats, own });
                plans.push(plan);
            }
            once(asm::prepare);
            let code = Regions::shared(plans, level.min(M::LEVEL), lanes, M::MODE)?;
            let size = code.size();
            Ok::<_, crate::CompileError>(Some((Compiled { code, regions, starts }, size)))
        })
    }

    /// Returns the number of the region that begins at a position.
    #[inline(always)]
    pub fn starting_at(&self, place: u32) -> Option<u32> {
        self.starts.get(place as usize).copied().filter(|number| *number != NONE)
    }

    /// Returns a region by its number.
    #[inline(always)]
    pub fn region(&self, number: u32) -> &Region<M> {
        &self.regions[number as usize]
    }

    /// Runs a region with the state of the thread, which `prepare` completes: see [`Compiled::run`].
    ///
    /// # Safety
    /// As for [`Compiled::run`].
    #[inline]
    pub unsafe fn enter(
        &self,
        number: u32,
        Arrival { rounds, budget, active }: Arrival,
        prepare: impl FnOnce(&mut State),
        rows: *mut [u8],
        context: &mut M::Context<'_, '_>,
        count: impl FnMut(Ran<'_, M::At>),
    ) -> Passed {
        let mut held = Held::take();
        let state = held.state();
        (state.rounds, state.budget, state.active) = (rounds, budget.min(i32::MAX as u64) as i32, active);
        prepare(state);
        let mut left = 0;
        // SAFETY: guaranteed by the caller.
        let ended = unsafe { self.run(number, state, rows, context, count, |_, lanes| left |= lanes) };
        let (rounds, divergent) = (rounds.wrapping_sub(state.rounds), std::mem::take(&mut state.divergent));
        Passed { ended, rounds, active: state.active, left, divergent }
    }

    /// Runs a region for the active lanes of the state, within its budget and its number of iterations.
    ///
    /// At exit, the state has the lanes that remain active. `count` is called for the steps that ran, `left` for the
    /// lanes that exited while others stayed. A memory fault of the code ends the run of the launch.
    ///
    /// # Safety
    /// The processor has the level that the regions were compiled for. The rows have the layout that they were traced
    /// for, including the row of the active lanes, and are aligned to 32 bytes. Only calls use the rows and the
    /// state's window during the run.
    #[inline]
    pub unsafe fn run(
        &self,
        number: u32,
        state: &mut State,
        rows: *mut [u8],
        context: &mut M::Context<'_, '_>,
        mut count: impl FnMut(Ran<'_, M::At>),
        mut left: impl FnMut(M::At, u64),
    ) -> Ended {
        let region = self.region(number);
        let mut calls = Calls::<M> { calls: &region.calls, context };
        state.context = (&raw mut calls).cast();
        let counted = |Count { runs, times, lanes }: Count| {
            let size = u64::from(region.before[runs.end] - region.before[runs.start]);
            let (instructions, lane_instructions) = (size * times, size * lanes);
            count(Ran { at: &region.ran[runs], times, instructions, lane_instructions });
        };
        let left = |step: usize, lanes: u64| left(region.at[step], lanes);
        let active = state.active;
        // SAFETY: guaranteed by the caller; the context is what the callee expects.
        let ended = unsafe { self.code.run(number as usize, state, rows, active, counted, left) };
        state.context = null_mut();
        ended.unwrap_or_else(|fault| {
            state.reset();
            CodeFault { pc: region.pc, hexadecimal: M::HEXADECIMAL, address: fault.address }.unwind()
        })
    }
}

impl<M: Machine> Region<M> {
    /// Returns the position of a step.
    #[inline]
    pub fn at(&self, step: usize) -> M::At {
        self.at[step]
    }
}
