//! Blocks one after another, and what flow control does between them.

use std::ops::Range;

use reconverge_simt::{Event, FlowView, Machine, Mask, Mode, Observer, Path, Trap};

use super::Fast;
use super::compiled::{Passed, Work};
use super::lanes::{Lanes, Operation, Set, State, choose};
use super::lower::{Flow, Last, NONE};
use crate::cause::Cause;
use crate::flow::{self, LoopStep};
use crate::group::Group;
use crate::inst::SLOTS;

/// Why blocks stop.
enum Stop {
    /// The group has ended, or its instruction budget is used up.
    Over,
    /// The next instruction is the reference interpreter's.
    Reference,
    /// A flow instruction trapped.
    Trap(Trap<Cause>),
}

/// What a flow instruction did.
enum Flowed {
    /// A step of a loop.
    Loop(LoopStep),
    /// Something else; the flow knows where it goes on.
    On,
    /// It traps.
    Trap(Cause),
}

impl Fast {
    /// Runs a group that was [prepared](Fast::prepare) for at most `most` instructions. `runs` counts by block. Announces
    /// issues, divergence and stack changes; data events come from the reference interpreter only.
    ///
    /// # Errors
    /// The first trap.
    pub(crate) fn run<O: Observer>(
        &self,
        group: &mut Group,
        runs: &mut [u64],
        most: u64,
        observer: &mut O,
    ) -> Result<(), Trap<Cause>> {
        let end = group.statistics.instructions.saturating_add(most);
        while group.statistics.instructions < end && group.issue().is_some() {
            match self.run_blocks(group, runs, end, observer) {
                Stop::Over => return Ok(()),
                Stop::Reference => {
                    let before = group.statistics.instructions;
                    let stepped = group.step(observer);
                    announce_path(observer, Path::Reference, group.statistics.instructions - before);
                    stepped?;
                }
                Stop::Trap(trap) => return Err(trap),
            }
        }
        Ok(())
    }

    /// Runs blocks until something else has to happen, at the latest when the group has issued `end` instructions.
    fn run_blocks<O: Observer>(
        &self,
        group: &mut Group,
        runs: &mut [u64],
        end: u64,
        observer: &mut O,
    ) -> Stop {
        let lowered = &self.lowered;
        let strict = group.mode == Mode::Strict;
        let watchdog = group.watchdog;
        let offset = group.setup.offset;
        let Group {
            flow,
            rows,
            lanes: all,
            predicate,
            alu_result,
            alu_result_valid,
            written,
            killed,
            constants,
            memory,
            issued,
            statistics,
            ..
        } = group;
        let (all, statistics) = (*all, statistics);
        // Lanes that were never launched share a quad with some that were: they must stay as they are.
        let whole_quads = all.count().is_multiple_of(4);
        let width = 64 - all.0.leading_zeros() as usize;
        let rows = rows.with_room_mut();
        // SAFETY: the operations that run are those that were lowered with this layout.
        let mut lanes = unsafe {
            Lanes::new(
                rows,
                &lowered.layout,
                width,
                State {
                    predicate,
                    alu_result,
                    alu_result_valid,
                    written,
                    killed,
                    covered: flow.covered(),
                    constants,
                    fetches: &lowered.fetches,
                    scatters: &lowered.scatters,
                    loads: &lowered.loads,
                    memory: memory.as_deref_mut(),
                },
            )
        };
        choose(self.level, &mut lanes, Set::ALL, all);
        let (mut active, mut members, mut full) = (Mask::NONE, 0, 0);
        // Instructions that the budget allows.
        let mut budget = end.min(watchdog).saturating_sub(statistics.instructions);
        let mut lane_instructions = 0;
        let before = (budget, statistics.instructions);

        // The next block, where it is known.
        let mut number = NONE;
        let passes = self.passer();

        let stop = loop {
            if flow.active() != active {
                active = flow.active();
                members = u64::from(active.count());
                full = usize::from(active == all && whole_quads);
                choose(self.level, &mut lanes, Set::ACTIVE, active);
            }
            let mut inside = 0;
            let chained = number != NONE;
            if !chained {
                match lowered.entries.get(usize::from(flow.pc())) {
                    Some(entry) if entry.block != NONE => (number, inside) = (entry.block, entry.inside),
                    _ => break Stop::Reference,
                }
            }
            // The operations of this block have run.
            let mut ran = false;
            if !O::ENABLED
                && inside == 0
                && let Some(passes) = passes
                && let Some(pass) = passes.pass(number, budget, flow)
            {
                let divergent_branches = &mut statistics.divergent_branches;
                let (lanes, level, left) = (&mut lanes, self.level, budget);
                let (budget, lane_instructions) = (&mut budget, &mut lane_instructions);
                let work =
                    Work { lowered, level, lanes, flow, divergent_branches, runs, budget, lane_instructions };
                let passed = passes.run(pass, work);
                announce_path(observer, Path::Compiled, left - *budget);
                match passed {
                    Passed::On => {
                        number = NONE;
                        continue;
                    }
                    Passed::Behind(block) => (number, ran) = (block, true),
                    Passed::Left(at) => {
                        let block = &lowered.blocks[at as usize];
                        let Last::Flow(place) = block.last else { break Stop::Reference };
                        let Flow { fc, constant, .. } = &lowered.flows[place as usize];
                        // All that are active leave, whose row the pass has made.
                        let want = flow.active();
                        (active, number) = (want, NONE);
                        match flow.execute(&fc.inst, &fc.addr, want, *constant, offset) {
                            Ok(_) => continue,
                            Err(undefined) => {
                                break stop(observer, block.first + block.size - 1, want, undefined.into());
                            }
                        }
                    }
                }
                if flow.active() != active {
                    active = flow.active();
                    members = u64::from(active.count());
                    full = usize::from(active == all && whole_quads);
                    choose(self.level, lanes, Set::ACTIVE, active);
                }
            }
            let block = &lowered.blocks[number as usize];
            let runs_operations = !ran && (active.any() || block.inactive);
            if let Some(al) = &block.al
                && runs_operations
            {
                lanes.al = flow.al();
                if strict && !flow.has_al() || !al.contains(&lanes.al) {
                    break Stop::Reference;
                }
            }
            if ran || inside == 0 && u64::from(block.size) <= budget {
                let mut start = block.start;
                if runs_operations && let Some(split) = block.split {
                    let operations = &lowered.operations[start as usize..split as usize];
                    // SAFETY: as below.
                    unsafe { execute(&mut lanes, operations, full) };
                    if lanes.refused {
                        break Stop::Reference;
                    }
                    start = split;
                }
                if runs_operations {
                    let operations = &lowered.operations[start as usize..block.end as usize];
                    // SAFETY: the operations were made for the level of self, which this processor has.
                    unsafe { execute(&mut lanes, operations, full) };
                }
                if block.kills {
                    flow.kill(*lanes.killed);
                }
                let mut done = |observer: &mut O| {
                    let path = match block.size {
                        _ if chained => Path::Chain,
                        0 | 1 => Path::Single,
                        _ => Path::Block,
                    };
                    announce_path(observer, path, u64::from(block.size));
                    budget -= u64::from(block.size);
                    lane_instructions += u64::from(block.size) * members;
                    runs[number as usize] += 1;
                };
                let mut next = block.fall;
                match block.last {
                    Last::Flow(place) => {
                        flow.advance_by(block.size - 1);
                        let instruction = &lowered.flows[place as usize];
                        if strict && is_stale(instruction, active, &lanes) {
                            let arithmetic = block.size - 1;
                            budget -= u64::from(arithmetic);
                            lane_instructions += u64::from(arithmetic) * members;
                            let first = usize::from(block.first);
                            let arithmetic = first..first + usize::from(arithmetic);
                            announce_issues(observer, arithmetic.clone(), active);
                            announce_path(observer, Path::Part, arithmetic.len() as u64);
                            issued[arithmetic].iter_mut().for_each(|times| *times += 1);
                            break Stop::Reference;
                        }
                        announce_issues(observer, block.slots(), active);
                        let divergent = &mut statistics.divergent_branches;
                        match branch(instruction, flow, &mut lanes, offset, divergent, observer) {
                            Flowed::Loop(step) => {
                                done(observer);
                                if step == LoopStep::LoopBack {
                                    next = block.jump;
                                }
                            }
                            Flowed::On => {
                                done(observer);
                                next = NONE;
                            }
                            Flowed::Trap(cause) => {
                                done(observer);
                                break stop(observer, block.first + block.size - 1, active, cause);
                            }
                        }
                    }
                    Last::Next => {
                        announce_issues(observer, block.slots(), active);
                        flow.advance_by(block.size);
                        done(observer);
                    }
                    Last::Reference => {
                        announce_issues(observer, block.slots(), active);
                        flow.advance_by(block.size);
                        done(observer);
                        break Stop::Reference;
                    }
                }
                number = next;
                if block.ends {
                    flow.end();
                    break Stop::Over;
                }
                continue;
            }

            // In the middle of a block, or the budget does not allow all of it: one instruction.
            let pc = flow.pc();
            let last = inside + 1 == block.size;
            if budget == 0 || inside == block.size {
                break Stop::Reference;
            }
            let start = match inside {
                0 => block.start,
                _ => lowered.ends[usize::from(pc) - 1],
            };
            if runs_operations {
                let operations = &lowered.operations[start as usize..lowered.ends[usize::from(pc)] as usize];
                // SAFETY: as above.
                unsafe { execute(&mut lanes, operations, full) };
            }
            if block.kills {
                flow.kill(*lanes.killed);
            }
            let flows = match block.last {
                Last::Flow(place) if last => Some(&lowered.flows[place as usize]),
                Last::Flow(_) | Last::Next | Last::Reference => None,
            };
            if strict && flows.is_some_and(|instruction| is_stale(instruction, active, &lanes)) {
                break Stop::Reference;
            }
            announce_issues(observer, usize::from(pc)..usize::from(pc) + 1, active);
            announce_path(observer, Path::Part, 1);
            number = NONE;
            budget -= 1;
            lane_instructions += members;
            issued[usize::from(pc)] += 1;
            match flows {
                None => flow.advance(),
                Some(instruction) => {
                    let divergent = &mut statistics.divergent_branches;
                    match branch(instruction, flow, &mut lanes, offset, divergent, observer) {
                        Flowed::On | Flowed::Loop(_) => {}
                        Flowed::Trap(cause) => break stop(observer, pc, active, cause),
                    }
                }
            }
            if last && block.ends {
                flow.end();
                break Stop::Over;
            }
        };
        statistics.instructions = before.1 + (before.0 - budget);
        statistics.lane_instructions += lane_instructions;
        // A budget that is used up comes before the reference interpreter.
        let over = statistics.instructions >= end || flow.issue().is_none();
        if over && matches!(stop, Stop::Reference) { Stop::Over } else { stop }
    }
}

/// # Safety
/// The processor has the level that the operations were made for.
#[inline(always)]
unsafe fn execute(lanes: &mut Lanes<'_>, operations: &[Operation], full: usize) {
    for operation in operations {
        // SAFETY: as the caller says.
        unsafe { operation.handlers[full & 1](lanes, operation) };
    }
}

/// Addresses of instructions, as [`Observer::issues`] wants them: each slot is its own.
static ADDRESSES: [u32; SLOTS] = {
    let mut addresses = [0; SLOTS];
    let mut slot = 0;
    while slot < SLOTS {
        addresses[slot] = slot as u32;
        slot += 1;
    }
    addresses
};

/// Announces instructions that run one after another.
#[inline(always)]
fn announce_issues<O: Observer>(observer: &mut O, slots: Range<usize>, active: Mask) {
    if O::ENABLED && !slots.is_empty() {
        observer.issues(&ADDRESSES[slots], active);
    }
}

/// Announces by which path instructions ran.
#[inline(always)]
fn announce_path<O: Observer>(observer: &mut O, path: Path, instructions: u64) {
    if O::PATHS {
        observer.path(path, instructions);
    }
}

#[cold]
fn stop<O: Observer>(observer: &mut O, pc: u16, lanes: Mask, cause: Cause) -> Stop {
    if O::ENABLED {
        observer.event(Event::Trap { mask: lanes });
    }
    Stop::Trap(Trap { pc: u32::from(pc), lanes, cause })
}

/// Whether a flow instruction reads an ALU result that some lane does not have: that traps in strict mode before anything
/// is done, as in the reference interpreter.
#[inline(always)]
fn is_stale(instruction: &Flow, active: Mask, lanes: &Lanes<'_>) -> bool {
    instruction.reads_alu_result && (active - *lanes.alu_result_valid).any()
}

/// Executes the flow instruction at the program counter.
#[inline(always)]
fn branch<O: Observer>(
    instruction: &Flow,
    flow: &mut flow::Flow,
    lanes: &mut Lanes<'_>,
    offset: u16,
    divergent_branches: &mut u64,
    observer: &mut O,
) -> Flowed {
    let Flow { fc, wants, constant, predicate, in_loop, .. } = instruction;
    let holding = match *predicate {
        None => u64::MAX,
        Some((bit, false)) => lanes.predicate[bit & 3].0,
        Some((bit, true)) => !lanes.predicate[bit & 3].0,
    };
    let result = lanes.alu_result.0;
    let want = wants[0] & !result & !holding
        | wants[1] & !result & holding
        | wants[2] & result & !holding
        | wants[3] & result & holding;
    // Every FC instruction destroys the ALU result. (CTM guide p. 35)
    if let Some(in_loop) = in_loop
        && let Some(step) = flow.step_in_loop(in_loop, Mask(want), observer)
    {
        *lanes.alu_result = Mask::NONE;
        *lanes.alu_result_valid = Mask::NONE;
        return Flowed::Loop(step);
    }
    match flow.execute_observed(&fc.inst, &fc.addr, Mask(want), *constant, offset, observer) {
        Ok(decision) => {
            *lanes.alu_result = Mask::NONE;
            *lanes.alu_result_valid = Mask::NONE;
            *divergent_branches += u64::from(decision.diverged());
            Flowed::On
        }
        Err(undefined) => Flowed::Trap(undefined.into()),
    }
}
