//! A pass in the place of clauses: what it is given, and what the wavefront is behind it.

// Code is called and calls back: each place states what it relies on.
#![allow(unsafe_code)]

use std::cell::Cell;

use reconverge_jit::{Count, Ended, MASK, State, StateBox};
use reconverge_simt::level::Task;
use reconverge_simt::wide::Wide;
use reconverge_simt::{CodeFault, Level, Mask};

use super::{Compiled, NONE, Ran};
use crate::chip::LANES;
use crate::fast::lanes::{ACTIVE, Lanes, Operation};
use crate::fast::lower::Lowered;
use crate::fast::run::{Counts, Issued};
use crate::flow::Flow;
use crate::wave::{At, Wave};

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
    pub(in crate::fast) wave: &'a mut Wave,
    pub(in crate::fast) counts: &'a mut Counts,
    pub(in crate::fast) issued: &'a mut Issued,
    /// Instructions that may be tried.
    pub(in crate::fast) budget: u64,
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

    /// The pass that begins at a control-flow instruction, if it may run now.
    #[inline(always)]
    pub(in crate::fast) fn pass(&self, node: usize, budget: u64, flow: &Flow) -> Option<u32> {
        let number = self.compiled.starts.get(node).copied().filter(|number| *number != NONE)?;
        let known = &self.compiled.known[number as usize];
        let fits = u64::from(known.most) <= budget && flow.active().any();
        let there = match known.turns {
            true => flow.rounds().is_some_and(|rounds| rounds > 0),
            false => !known.in_loop || flow.is_in_loop(),
        };
        (fits && there && (known.pushes == 0 || flow.has_room_for(known.pushes))).then_some(number)
    }

    /// Runs a pass for the active lanes.
    #[inline(never)]
    pub(in crate::fast) fn run(&self, pass: u32, work: Work<'_, '_>) {
        let Passer { compiled } = *self;
        let Work { lowered, level, lanes, wave, counts, issued, budget } = work;
        // A thread's state goes from run to run.
        let mut state = STATE.take().unwrap_or_else(State::new);
        let known = &compiled.known[pass as usize];
        let active = wave.flow.active();
        let rounds = if known.turns { wave.flow.rounds().unwrap_or(0) } else { u32::MAX };
        // The round that does not go back is the fast engine's.
        state.rounds = rounds;
        state.budget = budget.min(i32::MAX as u64) as i32;
        *state.own_mut::<LANES>(MASK) =
            std::array::from_fn(|lane| 0u32.wrapping_sub((active.0 >> lane) as u32 & 1));
        let rows = lanes.frame.bytes();
        let mut calls = Calls { compiled, pass, lowered, level, lanes };
        state.context = (&raw mut calls).cast();
        let (mut depth, mut broke) = (0, 0);
        let count = |Count { runs: range, times, lanes }: Count| {
            let size = u64::from(known.before[range.end] - known.before[range.start]);
            for ran in &known.ran[range] {
                match *ran {
                    Ran::Clause { run, depth: pushes } => {
                        counts.runs[run as usize] += times;
                        depth = depth.max(pushes);
                    }
                    Ran::Node(number) => counts.nodes[number as usize] = true,
                }
            }
            issued.instructions += size * times;
            issued.lane_instructions += size * lanes;
        };
        let gone = |_: usize, lanes: u64| broke |= lanes;
        // SAFETY: there are passes only where the processor has the level; they were made for the layout of these rows, and
        // the own row of the mask holds the active lanes; the context is what their calls take it for.
        let ended = unsafe { compiled.passes.run(pass as usize, &mut state, rows, active.0, count, gone) };
        let ended = ended.unwrap_or_else(|fault| {
            CodeFault { pc: known.head, hexadecimal: false, address: fault.address }.unwind()
        });
        state.context = std::ptr::null_mut();
        wave.statistics.divergent_branches += std::mem::take(&mut state.divergent);
        let done = rounds.wrapping_sub(state.rounds);
        let mut active = state.active;
        STATE.set(Some(state));
        let pc = match ended {
            Ended::Budget => known.head,
            Ended::Turn => known.after,
            Ended::Left(step) | Ended::Stopped(_, step) | Ended::Refused(step) => {
                broke |= std::mem::take(&mut active);
                known.at[step] + 1
            }
        };
        if depth > 0 {
            wave.flow.has_held(depth);
        }
        if let Some(groups) = known.cut {
            wave.at = At::Group(groups as usize);
        }
        wave.flow.stay(pc, Mask(active), Mask(broke), done);
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
    let range = &compiled.known[*pass as usize].calls[number as usize];
    let operations = &lowered.operations[range.start as usize..range.end as usize];
    level.run(Execute { lanes, operations, active });
    0
}

/// Operations as code for a level.
struct Execute<'a, 'w> {
    lanes: &'a mut Lanes<'w>,
    operations: &'a [Operation],
    active: u64,
}

impl Task for Execute<'_, '_> {
    type Output = ();

    #[inline(always)]
    fn run<W: Wide>(self, wide: W) {
        self.lanes.sets[usize::from(ACTIVE)].choose(wide, self.active);
        for operation in self.operations {
            // SAFETY: operations were made for the level of the engine.
            unsafe { (operation.run)(self.lanes, operation) };
        }
    }
}
