//! Enters and leaves linked code, and updates the flow state at the end of the nodes of this code.

// This module calls generated code, and generated code calls functions of this module. Each unsafe block states why the
// block is sound.
#![allow(unsafe_code)]

use std::cell::Cell;
use std::mem::take;
use std::ops::Range;

use reconverge_jit::{Arrived, FLUSH_OPERANDS, Held, Left, Linked, LinkedMachine, MASK, NO_NODE, State};
use reconverge_simt::level::Task;
use reconverge_simt::wide::{Wide, spread};
use reconverge_simt::{Mask, Observer, Path, Shares, Trap};

use super::{Compiled, End, Own, PLACES};
use crate::cause::Cause;
use crate::chip::LANES;
use crate::fast::counts::Issued;
use crate::fast::lower::Work as Lowered;
use crate::fast::runner::{Runner, decide};
use crate::flow::{AluForm, Flow, FlowFault};
use crate::wave::{At, Wave};

/// The compiled engine of this machine.
#[derive(Debug)]
pub(in crate::fast) struct R700;

/// A wavefront that runs compiled code. If compiled code calls an operation or the flow control, the call gets this
/// structure as an argument.
pub(in crate::fast) struct Work<'c, 'a> {
    runner: &'c mut Runner<'a>,
    wave: &'c mut Wave,
    issued: &'c mut Issued,
    /// The run ends when the number of instructions in the wavefront's statistics reaches this number.
    end_at: u64,
    /// The budget and the number of iterations at the latest entry into compiled code.
    given: (i32, u32),
    /// For each path, the number of instructions that compiled code passed to the fast engine.
    shares: Shares,
    /// Result of the run: whether the run has ended, or a trap. The result is valid after the flow control has left
    /// compiled code.
    end: Result<bool, Trap<Cause>>,
}

impl LinkedMachine for R700 {
    type Call = Range<u32>;
    type Own = Own;
    type Context<'c, 'a, 'w>
        = Work<'c, 'a>
    where
        'a: 'c,
        'w: 'a;

    const MODE: u32 = FLUSH_OPERANDS;
    const JOINS: bool = false;
    const HOLDS: bool = true;
    const HEXADECIMAL: bool = false;

    fn call(call: &Range<u32>, state: &mut State, work: &mut Work<'_, '_>) -> bool {
        let operations = &work.runner.lowered.operations[call.start as usize..call.end as usize];
        work.runner.execute(operations, Mask(state.active));
        true
    }

    fn flow(linked: &Linked<R700>, own: &Own, state: &mut State, work: &mut Work<'_, '_>) -> u32 {
        let left = take(&mut state.leave).checked_sub(1);
        if left.is_some() {
            state.gone[0] |= state.active;
        }
        work.take_counts(state);
        if let Some(number) = left {
            work.wave.flow.continue_at(own.leaves[number as usize] + 1);
        } else {
            if let Err((pc, fault)) = work.end(own, state) {
                let active = Mask(state.active);
                let trap = work.wave.trap(pc, active, fault.into(), &mut work.shares);
                work.issued.settle(work.wave);
                work.end = Err(trap);
                return NO_NODE;
            }
            if work.wave.at != At::ControlFlow {
                work.end = Ok(true);
                return NO_NODE;
            }
        }
        let level = work.runner.level;
        level.run(Next { linked, state, work })
    }
}

impl Work<'_, '_> {
    /// Sets the active lanes, the budget and the limits for the compiled code that runs next.
    #[inline(always)]
    fn give_counts(&mut self, linked: &Linked<R700>, state: &mut State) {
        let flow = &self.wave.flow;
        let active = flow.active().0;
        *state.own_mut::<LANES>(MASK) = spread::<LANES>(active);
        let stop = self.end_at.min(self.wave.options.watchdog);
        let done = self.wave.statistics.instructions + self.issued.instructions;
        state.budget = i32::try_from(stop.saturating_sub(done)).unwrap_or(i32::MAX);
        state.active = active;
        state.room = flow.room();
        (state.body, state.rounds) = (NO_NODE, 0);
        if let Some((body, rounds)) = flow.rounds() {
            let first = self.runner.lowered.program(flow.in_fetch_program()).0 as u32;
            let node = linked.starting_at(first + body);
            (state.body, state.rounds) = (node.unwrap_or(NO_NODE), rounds);
        }
        self.given = (state.budget, state.rounds);
    }

    /// Adds the counts of compiled code to the counts of the wavefront. Updates the flow state for lanes that left a
    /// loop.
    #[inline(always)]
    fn take_counts(&mut self, state: &mut State) {
        let (budget, rounds) = self.given;
        self.issued.instructions += (budget - state.budget) as u64;
        self.issued.lane_instructions += take(&mut state.lane_instructions);
        self.wave.statistics.divergent_branches += take(&mut state.divergent);
        let gone = Mask(take(&mut state.gone[0]));
        self.wave.flow.update_execute_mask(AluForm::ALU_BREAK, gone);
        self.wave.flow.has_repeated(rounds - state.rounds);
        if let Some(most) = take(&mut state.held).checked_ilog2() {
            self.wave.flow.has_held(most);
        }
        self.given = (state.budget, state.rounds);
    }

    /// Updates the flow state at the end of a node. An error contains the address of the instruction that caused the
    /// fault.
    fn end(&mut self, own: &Own, state: &State) -> Result<(), (u32, FlowFault)> {
        match own.end {
            End::At(pc) => self.wave.flow.continue_at(pc),
            End::Clause { pc, last_pc, form, skip } => {
                self.wave.flow.continue_at(pc);
                self.wave.flow.alu_enter(form, false).map_err(|fault| (pc, fault))?;
                if let Some(word) = skip
                    && self.wave.flow.update_execute_mask(form, Mask(state.words[word as usize]))
                {
                    self.wave.statistics.divergent_branches += 1;
                }
                self.wave.flow.alu_leave(form).map_err(|fault| (last_pc, fault))?;
            }
            End::Iteration(number) => {
                let lowered = self.runner.lowered;
                let pc = number - lowered.first_of(number);
                self.wave.flow.continue_at(pc);
                if let Lowered::Flow(inst, control) = &lowered.nodes[number as usize].work {
                    decide(&mut self.wave.flow, *inst, control).map_err(|fault| (pc, fault))?;
                }
            }
            End::Cut { pc, groups } => {
                self.wave.flow.continue_at(pc);
                self.wave.at = At::Group(groups);
            }
        }
        Ok(())
    }
}

/// Returns the node that begins at the control-flow instruction `number`. If no node begins at this instruction, the
/// function returns `None`. If the budget or the flow state does not allow the node to run, the function also returns
/// `None`.
#[inline(always)]
pub(in crate::fast) fn node(linked: &Linked<R700>, number: u32, budget: u64, flow: &Flow) -> Option<u32> {
    let node = linked.starting_at(number)?;
    let fits = u64::from(linked.budget(node)) <= budget && flow.active().any();
    let in_place = !linked.own(node).in_loop || flow.is_in_loop();
    let entries = linked.entries(node);
    (fits && in_place && (entries == 0 || entries <= flow.room())).then_some(node)
}

/// Runs compiled code, beginning with the node `arrived`. Returns whether the run has ended. If a node could not run,
/// sets `refused` to the number of the node's first instruction.
///
/// # Errors
/// Returns an error if the program traps.
#[inline(never)]
pub(in crate::fast) fn run<O: Observer>(
    compiled: &Compiled,
    node: u32,
    runner: &mut Runner<'_>,
    wave: &mut Wave,
    issued: &mut Issued,
    (end_at, refused): (u64, &Cell<Option<u32>>),
    observer: &mut O,
) -> Result<bool, Trap<Cause>> {
    let linked = &*compiled.linked;
    let before = wave.statistics.instructions + issued.instructions;
    let rows = runner.lanes.frame.bytes();
    let mut counts = take(&mut runner.counts.code);
    let mut held = Held::take();
    let state = held.state();
    runner.keep_sites(state);
    if compiled.indexes {
        *state.own_mut::<LANES>(PLACES) = std::array::from_fn(|lane| 4 * lane as u32);
        // SAFETY: while generated code runs, no other code accesses the rows.
        state.set_window(unsafe { &mut *rows });
    }
    let shares = Shares::default();
    let mut work = Work { runner, wave, issued, end_at, given: (0, 0), shares, end: Ok(false) };
    let narrow = || std::ptr::slice_from_raw_parts_mut(std::ptr::null_mut(), 0);
    work.give_counts(linked, state);
    let arrived = Arrived { node, rows: [rows, narrow(), narrow()], counts: &mut counts };
    // SAFETY: compiled code exists only if the processor supports the instruction set level of the code. The code was
    // traced for the layout of these rows. The row of the active lanes is initialised.
    let left = unsafe { linked.run(arrived, |own| own.pc, state, &mut work) };
    let place = match left {
        Left::Ended => None,
        Left::Budget(node) | Left::Refused(node) | Left::Stopped(node) => Some(linked.own(node).pc),
        Left::Outside(number) => Some(number - work.runner.lowered.first_of(number)),
    };
    if let Left::Refused(node) = left {
        let first = work.runner.lowered.program(work.wave.flow.in_fetch_program()).0;
        refused.set(Some(first as u32 + linked.own(node).pc));
    }
    if let Some(pc) = place {
        work.take_counts(state);
        work.wave.flow.continue_at(pc);
    }
    let Work { runner, wave, issued, shares, end, .. } = work;
    runner.counts.code = counts;
    if O::PATHS {
        let all = wave.statistics.instructions + issued.instructions - before;
        observer.path(Path::Compiled, all - shares.total());
        shares.announce(observer);
    }
    end
}

impl Runner<'_> {
    /// Passes the memory of every site to the compiled code.
    #[inline(always)]
    fn keep_sites(&self, state: &mut State) {
        let memory = self.memory.as_deref().unwrap_or_default();
        if memory.is_empty() || state.keep_sites(Some([self.identity; 3])) {
            return;
        }
        for (site, bytes) in (0..).zip(memory) {
            // SAFETY: the bytes exist at least as long as this runner. Two runners never have the same identity.
            // Compiled code reads the bytes but never writes them.
            unsafe { state.set_site(site, 0, std::ptr::from_ref(*bytes).cast_mut()) };
        }
    }
}

/// A task that runs instructions on the fast engine up to the next node. The task is compiled for each instruction set
/// level.
struct Next<'s, 'l, 'c, 'a> {
    linked: &'s Linked<R700>,
    state: &'l mut State,
    work: &'s mut Work<'c, 'a>,
}

impl Task for Next<'_, '_, '_, '_> {
    type Output = u32;

    #[inline(always)]
    fn run<W: Wide>(self, wide: W) -> u32 {
        let Next { linked, state, work } = self;
        let Work { runner, wave, issued, end_at, shares, .. } = &mut *work;
        let node_at = |number, budget, flow: &Flow| node(linked, number, budget, flow);
        match runner.run_to_node(wide, wave, issued, *end_at, shares, node_at) {
            Ok(Some(node)) => {
                work.give_counts(linked, state);
                return node;
            }
            Ok(None) => work.end = Ok(true),
            Err(trap) => work.end = Err(trap),
        }
        NO_NODE
    }
}
