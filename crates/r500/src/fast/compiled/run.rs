//! Entry and exit of a region: sets up its state, then updates the group.

// Compiled code is called and calls back. Each use states its assumptions.
#![allow(unsafe_code)]

use std::ops::Range;

use reconverge_jit::{Arrival, Ended, Machine, Passed, Ran, State};
use reconverge_simt::{Level, Mask};

use super::{After, Compiled, Own};
use crate::fast::lanes::{Lanes, State as Lent, choose};
use crate::fast::lower::Lowered;
use crate::fast::operands::Set;
use crate::flow::Flow;
use crate::group::after_fc;

/// The group and the program that a region changes.
pub(in crate::fast) struct Work<'a, 'w> {
    pub(in crate::fast) lowered: &'a Lowered,
    pub(in crate::fast) level: Level,
    pub(in crate::fast) lanes: &'a mut Lanes<'w>,
    pub(in crate::fast) flow: &'a mut Flow,
    pub(in crate::fast) divergent_branches: &'a mut u64,
    /// Number of runs, indexed by block.
    pub(in crate::fast) runs: &'a mut [u64],
    pub(in crate::fast) budget: &'a mut u64,
    pub(in crate::fast) lane_instructions: &'a mut u64,
}

/// Position of the group after a region.
pub(in crate::fast) enum Exit {
    /// The group is at its program counter.
    Here,
    /// The operations of this block have run; it has not been counted, and its flow has not been executed.
    Behind(u32),
    /// The group is at the flow instruction of this block, with which all active lanes exit the loop. The block has
    /// been counted.
    Left(u32),
}

/// The compiled engine of this machine.
#[derive(Debug)]
pub(in crate::fast) struct R500;

impl Machine for R500 {
    /// Two vectors of sixteen lanes hide less latency than four of eight: newton gains 7 %, mandel loses 7 % (an AMD EPYC).
    const LEVEL: reconverge_jit::Level = reconverge_jit::Level::Avx2;

    /// The number of a block.
    type At = u32;
    type Call = Range<u32>;
    type Region = Own;
    type Context<'a, 'w>
        = (&'a Lowered, Level, &'a mut Lanes<'w>)
    where
        'w: 'a;

    fn call(call: &Range<u32>, active: u64, _: &mut State, context: &mut Self::Context<'_, '_>) -> bool {
        let (lowered, level, lanes) = context;
        if lanes.set(Set::ACTIVE).0 != active {
            choose(*level, lanes, Set::ACTIVE, Mask(active));
        }
        for operation in &lowered.operations[call.start as usize..call.end as usize] {
            // SAFETY: the operations were compiled for the level of the engine.
            unsafe { operation.handlers[0](lanes, operation) };
        }
        true
    }
}

/// Returns the region that begins at a block, if it can run now.
#[inline(always)]
pub(in crate::fast) fn region(compiled: &Compiled, block: u32, budget: u64, flow: &Flow) -> Option<u32> {
    let number = compiled.starting_at(block)?;
    let region = compiled.region(number);
    let in_place = match region.own.in_loop {
        None => true,
        Some(it) => flow.rounds(it.al).is_some_and(|rounds| rounds > 0 || !region.repeats),
    };
    let covered = !region.own.ignores_uncovered || (flow.active() - flow.covered()).is_empty();
    (u64::from(region.most) <= budget && flow.active().any() && in_place && covered).then_some(number)
}

/// Runs a region for the active lanes.
#[inline(never)]
pub(in crate::fast) fn run(compiled: &Compiled, number: u32, work: Work<'_, '_>) -> Exit {
    let Work { lowered, level, lanes, flow, divergent_branches, runs, budget, lane_instructions } = work;
    let region = compiled.region(number);
    let Own { after, in_loop, .. } = region.own;
    let rounds = match in_loop {
        Some(it) if region.repeats => flow.rounds(it.al).unwrap_or(0),
        _ => u32::MAX,
    };
    // The fast engine runs the last iteration.
    let entry = Arrival { rounds, budget: *budget, active: flow.active().0 };
    let rows = lanes.row_bytes();
    let mut calls = (lowered, level, lanes);
    let mut issued = 0;
    let count = |ran: Ran<'_, u32>| {
        for block in ran.at {
            runs[*block as usize] += ran.times;
        }
        issued += ran.instructions;
        *lane_instructions += ran.lane_instructions;
    };
    // SAFETY: regions exist only if the processor has the level; they were traced for the layout of these rows, which
    // contain the mask.
    let passed = unsafe { compiled.enter(number, entry, |_| {}, rows, &mut calls, count) };
    let Passed { ended, rounds, active, left, divergent } = passed;
    *divergent_branches += divergent;
    *budget -= issued;
    let (.., lanes) = calls;
    if issued > 0 && in_loop.is_some() {
        let Lent { alu_result, alu_result_valid, .. } = &mut **lanes;
        after_fc(alu_result, alu_result_valid);
    }
    let first = |block: u32| lowered.blocks[block as usize].first;
    let (pc, exit) = match ended {
        Ended::Budget => (region.pc as u16, Exit::Here),
        Ended::Exit => match after {
            After::Before(slot) => (slot, Exit::Here),
            After::Behind(block) => (first(block), Exit::Behind(block)),
        },
        Ended::Left(step) | Ended::Stopped(_, step) | Ended::Bailed(step) => {
            let block = region.at(step);
            // The region has already cleared these lanes in the row.
            choose(level, lanes, Set::ACTIVE, Mask(active));
            (first(block) + lowered.blocks[block as usize].size - 1, Exit::Left(block))
        }
    };
    flow.stay(pc, Mask(active), Mask(left), (rounds, in_loop.map_or(0, |it| it.step)));
    exit
}
