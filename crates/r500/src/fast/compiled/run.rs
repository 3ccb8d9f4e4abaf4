//! A pass in the place of blocks: what it is given, and what the group is behind it.

// Code is called and calls back: each place states what it relies on.
#![allow(unsafe_code)]

use std::cell::Cell;

use reconverge_jit::{Count, Ended, State, StateBox};
use reconverge_simt::{CodeFault, Level, Mask};

use super::{After, Compiled, NONE};
use crate::fast::lanes::{Lanes, Set, State as Lent, choose};
use crate::fast::lower::Lowered;
use crate::flow::Flow;
use crate::group::after_fc;

thread_local! {
    /// The state of a thread, while nothing runs.
    static STATE: Cell<Option<StateBox>> = const { Cell::new(None) };
}

/// Runs passes.
#[derive(Clone, Copy, Debug)]
pub(in crate::fast) struct Passer<'a> {
    compiled: &'a Compiled,
}

/// What a pass works on besides the state.
pub(in crate::fast) struct Work<'a, 'w> {
    pub(in crate::fast) lowered: &'a Lowered,
    pub(in crate::fast) level: Level,
    pub(in crate::fast) lanes: &'a mut Lanes<'w>,
    pub(in crate::fast) flow: &'a mut Flow,
    pub(in crate::fast) divergent_branches: &'a mut u64,
    /// By block, how often it ran.
    pub(in crate::fast) runs: &'a mut [u64],
    pub(in crate::fast) budget: &'a mut u64,
    pub(in crate::fast) lane_instructions: &'a mut u64,
}

/// Where the group is behind a pass.
pub(in crate::fast) enum Passed {
    /// Where its flow says.
    On,
    /// The operations of this block have run; it has not been counted, and its flow has not been asked.
    Behind(u32),
    /// At the flow instruction of this block, with which all active lanes leave the loop. It has been counted.
    Left(u32),
}

/// What calls need.
struct Calls<'a, 'w> {
    compiled: &'a Compiled,
    pass: u32,
    lowered: &'a Lowered,
    level: Level,
    lanes: &'a mut Lanes<'w>,
}

impl<'a> Passer<'a> {
    pub(in crate::fast) fn new(compiled: &'a Compiled) -> Self {
        Passer { compiled }
    }

    /// The pass that begins at a block, if it may run now.
    #[inline(always)]
    pub(in crate::fast) fn pass(&self, block: u32, budget: u64, flow: &Flow) -> Option<u32> {
        let number = self.compiled.starts.get(block as usize).copied().filter(|number| *number != NONE)?;
        let known = &self.compiled.known[number as usize];
        let there = match known.in_loop {
            None => true,
            Some(it) => flow.rounds(it.al).is_some_and(|rounds| rounds > 0 || !it.turns),
        };
        let heard = !known.ignores_uncovered || (flow.active() - flow.covered()).is_empty();
        (u64::from(known.most) <= budget && flow.active().any() && there && heard).then_some(number)
    }

    /// Runs a pass for the active lanes.
    #[inline(never)]
    pub(in crate::fast) fn run(&self, pass: u32, work: Work<'_, '_>) -> Passed {
        let Passer { compiled } = *self;
        let Work { lowered, level, lanes, flow, divergent_branches, runs, budget, lane_instructions } = work;
        let known = &compiled.known[pass as usize];
        // A thread's state goes from run to run.
        let mut state = STATE.take().unwrap_or_else(State::new);
        let rounds = match known.in_loop {
            Some(it) if it.turns => flow.rounds(it.al).unwrap_or(0),
            _ => u32::MAX,
        };
        // The round that does not go back is the fast engine's.
        (state.rounds, state.budget) = (rounds, (*budget).min(i32::MAX as u64) as i32);
        let active = flow.active();
        let rows = lanes.row_bytes();
        let mut calls = Calls { compiled, pass, lowered, level, lanes };
        state.context = (&raw mut calls).cast();
        let (mut issued, mut broke) = (0, 0);
        let count = |Count { runs: range, times, lanes }: Count| {
            let size = u64::from(known.before[range.end] - known.before[range.start]);
            for block in &known.ran[range] {
                runs[*block as usize] += times;
            }
            issued += size * times;
            *lane_instructions += size * lanes;
        };
        let gone = |_: usize, lanes: u64| broke |= lanes;
        // SAFETY: there are passes only where the processor has the level; they were made for the layout of these rows,
        // which hold the mask; and the context is what their calls take it for.
        let ended = unsafe { compiled.passes.run(pass as usize, &mut state, rows, active.0, count, gone) };
        let ended = ended.unwrap_or_else(|fault| {
            CodeFault { pc: known.head.into(), hexadecimal: false, address: fault.address }.unwind()
        });
        state.context = std::ptr::null_mut();
        *divergent_branches += std::mem::take(&mut state.divergent);
        let done = rounds.wrapping_sub(state.rounds);
        let active = Mask(state.active);
        STATE.set(Some(state));
        *budget -= issued;
        let Calls { lanes, .. } = calls;
        if issued > 0 && known.in_loop.is_some() {
            let Lent { alu_result, alu_result_valid, .. } = &mut **lanes;
            after_fc(alu_result, alu_result_valid);
        }
        let step = known.in_loop.map_or(0, |it| it.step);
        let first = |block: u32| lowered.blocks[block as usize].first;
        let (pc, passed) = match ended {
            Ended::Budget => (known.head, Passed::On),
            Ended::Turn => match known.after {
                After::Before(slot) => (slot, Passed::On),
                After::Behind(block) => (first(block), Passed::Behind(block)),
            },
            Ended::Left(step) | Ended::Stopped(_, step) | Ended::Refused(step) => {
                let block = known.at[step];
                // The code has taken them out of the row.
                choose(level, lanes, Set::ACTIVE, active);
                (first(block) + lowered.blocks[block as usize].size - 1, Passed::Left(block))
            }
        };
        flow.stay(pc, active, Mask(broke), (done, step));
        passed
    }
}

/// Operations of the fast engine for lanes of a pass.
///
/// # Safety
/// As for [`reconverge_jit::Callee`]: the context is [`Calls`], which nothing else uses meanwhile.
pub(super) unsafe extern "sysv64" fn callee(state: *mut State, number: u32, active: u64) -> u32 {
    // SAFETY: as the caller says.
    let state = unsafe { &mut *state };
    // SAFETY: `Passer::run` has put it there for as long as the pass runs.
    let Calls { compiled, pass, lowered, level, lanes } =
        unsafe { &mut *state.context.cast::<Calls<'_, '_>>() };
    if lanes.set(Set::ACTIVE).0 != active {
        choose(*level, lanes, Set::ACTIVE, Mask(active));
    }
    let range = &compiled.known[*pass as usize].calls[number as usize];
    for operation in &lowered.operations[range.start as usize..range.end as usize] {
        // SAFETY: operations were made for the level of the engine.
        unsafe { operation.handlers[0](lanes, operation) };
    }
    0
}
