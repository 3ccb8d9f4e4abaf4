//! Entry and exit of a region: sets up its state, then updates the wavefront.

// Compiled code is called and calls back: each place states the conditions on which it depends.
#![allow(unsafe_code)]

use std::ops::Range;

use reconverge_jit::{Arrival, Ended, MASK, Machine, Passed, Ran, State};
use reconverge_simt::level::Task;
use reconverge_simt::wide::Wide;
use reconverge_simt::{Level, Mask};

use super::{At, Compiled, Own};
use crate::chip::LANES;
use crate::fast::counts::{Counts, Issued};
use crate::fast::lanes::{ACTIVE, Lanes, Operation};
use crate::fast::lower::Lowered;
use crate::flow::Flow;
use crate::wave::{At as Position, Wave};

/// The wavefront and the program that a region changes.
pub(in crate::fast) struct Work<'a, 'w> {
    pub(in crate::fast) lowered: &'a Lowered,
    pub(in crate::fast) level: Level,
    pub(in crate::fast) lanes: &'a mut Lanes<'w>,
    pub(in crate::fast) wave: &'a mut Wave,
    pub(in crate::fast) counts: &'a mut Counts,
    pub(in crate::fast) issued: &'a mut Issued,
    /// Maximum number of instructions that may run.
    pub(in crate::fast) budget: u64,
}

/// The compiled engine of this machine.
#[derive(Debug)]
pub(in crate::fast) struct R700;

impl Machine for R700 {
    type At = At;
    type Call = Range<u32>;
    type Region = Own;
    type Context<'a, 'w>
        = (&'a Lowered, Level, &'a mut Lanes<'w>)
    where
        'w: 'a;

    const LEVEL: reconverge_jit::Level = reconverge_jit::Level::Avx512;

    fn call(call: &Range<u32>, active: u64, _: &mut State, context: &mut Self::Context<'_, '_>) -> bool {
        let (lowered, level, lanes) = context;
        let operations = &lowered.operations[call.start as usize..call.end as usize];
        level.run(Execute { lanes, operations, active });
        true
    }
}

/// Returns the region that begins at a control-flow instruction, if it may run now.
#[inline(always)]
pub(in crate::fast) fn region(compiled: &Compiled, node: usize, budget: u64, flow: &Flow) -> Option<u32> {
    let number = compiled.starting_at(node as u32)?;
    let region = compiled.region(number);
    let Own { pushes, in_loop, .. } = region.own;
    let fits = u64::from(region.most) <= budget && flow.active().any();
    let in_place = match region.repeats {
        true => flow.rounds().is_some_and(|rounds| rounds > 0),
        false => !in_loop || flow.is_in_loop(),
    };
    (fits && in_place && (pushes == 0 || flow.has_room_for(pushes))).then_some(number)
}

/// Runs a region for the active lanes.
#[inline(never)]
pub(in crate::fast) fn run(compiled: &Compiled, number: u32, work: Work<'_, '_>) {
    let Work { lowered, level, lanes, wave, counts, issued, budget } = work;
    let region = compiled.region(number);
    let active = wave.flow.active();
    // The fast engine runs the last iteration.
    let rounds = if region.repeats { wave.flow.rounds().unwrap_or(0) } else { u32::MAX };
    let entry = Arrival { rounds, budget, active: active.0 };
    let prepare = |state: &mut State| {
        *state.own_mut::<LANES>(MASK) =
            std::array::from_fn(|lane| 0u32.wrapping_sub((active.0 >> lane) as u32 & 1));
    };
    let rows = lanes.frame.bytes();
    let mut depth = 0;
    let count = |ran: Ran<'_, At>| {
        for at in ran.at {
            match *at {
                At::Clause { run, depth: pushes } => {
                    counts.runs[run as usize] += ran.times;
                    depth = depth.max(pushes);
                }
                At::Node(number) => counts.nodes[number as usize] = true,
                At::After(_) => {}
            }
        }
        issued.instructions += ran.instructions;
        issued.lane_instructions += ran.lane_instructions;
    };
    // SAFETY: regions exist only if the processor has the level; they were traced for the layout of these rows, and the
    // own row of the mask holds the active lanes.
    let passed = unsafe { compiled.enter(number, entry, prepare, rows, &mut (lowered, level, lanes), count) };
    let Passed { ended, rounds, mut active, mut left, divergent } = passed;
    wave.statistics.divergent_branches += divergent;
    let pc = match ended {
        Ended::Budget => region.pc,
        Ended::Exit => region.own.after,
        Ended::Left(step) | Ended::Stopped(_, step) | Ended::Bailed(step) => {
            left |= std::mem::take(&mut active);
            match region.at(step) {
                At::After(address) => address + 1,
                At::Clause { .. } | At::Node(_) => region.own.after,
            }
        }
    };
    if depth > 0 {
        wave.flow.has_held(depth);
    }
    if let Some(groups) = region.own.cut {
        wave.at = Position::Group(groups as usize);
    }
    wave.flow.stay(pc, Mask(active), Mask(left), rounds);
}

/// Calls of operations, compiled for a level.
struct Execute<'a, 'w> {
    lanes: &'a mut Lanes<'w>,
    operations: &'a [Operation],
    active: u64,
}

impl Task for Execute<'_, '_> {
    type Output = ();

    #[inline(always)]
    fn run<W: Wide>(self, _: W) {
        self.lanes.sets[usize::from(ACTIVE)] = Mask(self.active);
        for operation in self.operations {
            // SAFETY: operations were compiled for the level of the engine.
            unsafe { (operation.run)(self.lanes, operation) };
        }
    }
}
