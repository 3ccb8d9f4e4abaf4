//! The position of a warp in the lowered program. A cursor has the current block, controls the flow between blocks, and
//! counts blocks.
//!
//! ```text
//!            +-- Step::Block: the next block, for the same lanes
//!            v    |
//! enter --> block -- Step::Diamond: the two sides of a branch, one after the other, up to their join --> enter
//!   ^                |
//!   +---- leave ---- Step::Exit: the flow decides
//! ```
//! A [`Cursor`] has one method for each arrow of the diagram above. Both [`super::run`] and linked code use a cursor.

use std::mem::take;

use reconverge_jit::State;
use reconverge_simt::observe::together;
use reconverge_simt::wide::Wide;
use reconverge_simt::{Event, Mask, Observer, Path, Statistics};

use super::announce::Key;
use super::lanes::{ACTIVE, Lanes};
use super::lower::{self, Block, Conditional, Diamond, Last, Lowered, NONE, Side, Test};
use super::words::Reach;
use crate::barrier::Barriers;
use crate::block::SLICE;
use crate::flow::{
    Decision, Fault, Flow, Join, TAKEN_SIDE_RUNS_FIRST, TokenType, announce_arrival, announce_push,
};
use crate::state::Parts;
use crate::turns::Warps;

/// A warp, and the barriers at which this warp arrives.
pub(super) struct Arrivals<'a> {
    pub(super) barriers: &'a mut Barriers,
    /// The number of the warp.
    pub(super) warp: usize,
    /// Whether the warp waits at a barrier. A waiting warp does not run until the block selects the warp again.
    pub(super) waits: bool,
}

/// The position of a warp in the lowered program, and the state that the warp's instructions use.
pub(super) struct Cursor<'a, 'w, O> {
    pub(super) lowered: &'a Lowered,
    /// Byte address of the first word of the code.
    pub(super) base: u32,
    pub(super) lanes: &'a mut Lanes<'w>,
    pub(super) memory: &'a mut dyn Reach,
    pub(super) barriers: Arrivals<'a>,
    /// The flow state. Within a chain of blocks, the flow state is not updated: it has the program counter and the
    /// active lanes of the chain's start.
    pub(super) flow: &'a mut Flow,
    pub(super) statistics: &'a mut Statistics,
    /// Number of complete runs of each block.
    pub(super) runs: &'a mut [u64],
    pub(super) observer: &'a mut O,
    /// All warps of the block, if the engine may switch to another warp.
    pub(super) warps: Option<Warps>,
    /// Number of instructions that the warp may attempt before the next switch (`most`), and the number that remains
    /// (`budget`).
    pub(super) most: u32,
    pub(super) budget: u32,
    /// The value of `budget` when the instructions of the active lanes were last counted.
    pub(super) counted: u32,
    /// The active lanes.
    pub(super) active: u32,
    /// The next block.
    pub(super) block: u32,
    /// The lanes that most recently arrived at a block, before the join of the block.
    pub(super) arrived: Mask,
    /// For reports of paths. `announced` is the value of `budget` at the latest report. `chained` is the number of
    /// blocks since that report.
    pub(super) announced: u32,
    pub(super) chained: u32,
}

/// The reason that a chain of blocks ends.
pub(super) enum Halt {
    /// The instruction budget is used up, or the warp has ended.
    Over,
    /// No block has an instruction at the program counter.
    Unknown,
    /// The next block cannot run in a chain.
    At(Position),
    /// Control flow has faulted. `pc` is the address of the instruction, and `lanes` are the lanes that arrived at the
    /// instruction.
    Fault { pc: u32, lanes: Mask, fault: Fault },
}

/// The instruction at which a chain ends, as a block and the number of the instruction in the block.
pub(super) struct Position {
    pub(super) block: u32,
    /// Number of the instruction in the block.
    pub(super) first: u32,
    /// The lanes that arrived at the join of the instruction, if the join has been executed.
    pub(super) joined: Option<Mask>,
    /// Whether some lane cannot execute the load or store at the block's end. The warp has then executed the block from
    /// this instruction up to that load or store.
    pub(super) refused: bool,
}

/// The result of a join.
pub(super) enum Entered {
    Block,
    /// The join switched the warp to another path.
    Away,
}

/// The next step after a block.
pub(super) enum Step<'a> {
    /// Run the block with this number for the same lanes.
    Block(u32),
    /// The lanes diverge. Run both sides of the branch up to their join.
    Diamond { diamond: &'a Diamond, taken: u32 },
    /// The flow state determines the next block. If the block's last instruction has a predicate, `taken` are the lanes
    /// whose predicate is true.
    Exit { taken: u32 },
}

impl Step<'_> {
    /// Returns the step to the block with this number. If the number is [`NONE`], returns `Step::Exit`.
    #[inline(always)]
    pub(super) fn to(block: u32, taken: u32) -> Self {
        if block == NONE { Step::Exit { taken } } else { Step::Block(block) }
    }
}

impl<'a, O: Observer> Cursor<'a, '_, O> {
    /// Finds the block at the program counter, and executes the join of the block, if any.
    #[inline(always)]
    pub(super) fn enter(&mut self) -> Result<Entered, Halt> {
        self.arrived = self.flow.active();
        if self.budget == 0 || self.arrived.is_empty() || self.barriers.waits {
            return Err(Halt::Over);
        }
        // An address that is not a multiple of 4 becomes an index past the end.
        let place = self.flow.pc().wrapping_sub(self.base).rotate_right(2) as usize;
        self.block = self.lowered.starts.get(place).copied().unwrap_or(NONE);
        if self.block == NONE {
            // This case is rare: the address is in the middle of a block. Either an indirect branch goes to this
            // address, or the budget was used up and the warp stopped at this address.
            let Some(&Some((block, first))) = self.lowered.entries.get(place) else {
                return Err(Halt::Unknown);
            };
            self.lanes.activate(self.arrived.0 as u32);
            return Err(Halt::At(Position { block, first, joined: None, refused: false }));
        }
        if self.lowered.blocks[self.block as usize].join {
            self.arrived = self.flow.arrived();
            match self.flow.join(self.observer) {
                Ok(Join::Run) => {}
                Ok(Join::Away) => {
                    self.budget -= 1;
                    self.announce_path(Path::Single);
                    return Ok(Entered::Away);
                }
                Err(fault) => {
                    self.budget -= 1;
                    return Err(Halt::Fault { pc: self.flow.pc(), lanes: self.arrived, fault });
                }
            }
        }
        self.active = self.flow.active().0 as u32;
        self.lanes.activate(self.active);
        Ok(Entered::Block)
    }

    /// Executes a block for the active lanes. Returns `false` and counts nothing if some lane cannot execute the load
    /// or store at the end of the block.
    #[inline(always)]
    pub(super) fn run_block(&mut self, number: u32, block: &Block) -> bool {
        // SAFETY: the range consists of the operations of a block.
        unsafe { self.execute(block.start, block.end) };
        if !self.access(block) {
            return false;
        }
        self.budget -= block.size;
        // SAFETY: `number` is the number of a block.
        unsafe { self.count_block(number) };
        self.announce_block(number);
        if O::PATHS {
            self.chained += 1;
        }
        true
    }

    /// Updates the flow state after a block, and enters the next block of this warp.
    pub(super) fn continue_after(&mut self, block: &Block, taken: u32) -> Result<(), Halt> {
        if let Err(fault) = self.leave(block, taken) {
            return Err(Halt::Fault { pc: block.last_pc, lanes: Mask(self.active.into()), fault });
        }
        self.enter_path()
    }

    /// Enters the next block of this warp.
    fn enter_path(&mut self) -> Result<(), Halt> {
        while let Entered::Away = self.enter()? {}
        self.counted = self.budget;
        Ok(())
    }

    /// Enters the next block of this warp. If this warp waits or has ended, switches to the next warp that can run, and
    /// enters the next block of that warp.
    pub(super) fn enter_next(&mut self) -> Result<(), Halt> {
        loop {
            match self.enter_path() {
                Err(Halt::Over) if self.pass_turn() => {}
                entered => return entered,
            }
        }
    }

    /// The current warp has ended or waits at a barrier. Switches to the next warp that can run. Returns `false` if
    /// there was no switch. After `false`, the caller returns to the block of warps, and this block selects the next
    /// warp.
    pub(super) fn pass_turn(&mut self) -> bool {
        let Some(remaining) = self.may_pass() else { return false };
        let Arrivals { barriers, warp, .. } = &mut self.barriers;
        let Some(warps) = &mut self.warps else { return false };
        if self.flow.finished() {
            barriers.finish(*warp, self.lanes.shared.races_mut());
        }
        let current_runs = !self.flow.finished() && barriers.waits_for(*warp).is_none();
        let can_run = |other: usize| match other == *warp {
            true => current_runs,
            // SAFETY: the block that owns the warps is running.
            false => barriers.waits_for(other).is_none() && !unsafe { warps.has_ended(other) },
        };
        let Some(next) = (*warp + 1..warps.count()).chain(0..=*warp).find(|other| can_run(*other)) else {
            return false;
        };
        self.switch(next, remaining);
        true
    }

    /// Returns the number of instructions that the block may still issue. Returns `None` if the engine must not switch
    /// to another warp.
    fn may_pass(&self) -> Option<u64> {
        let warps = self.warps.as_ref().filter(|warps| warps.passes > 0 && self.budget > 0)?;
        let issued = self.statistics.instructions;
        let remaining = warps.watchdog.saturating_sub(issued);
        (remaining > 0 && issued > 0).then_some(remaining)
    }

    /// Switches to a warp that can run. The block may still issue `remaining` instructions.
    fn switch(&mut self, next: usize, remaining: u64) {
        let Some(warps) = &mut self.warps else { return };
        warps.passes -= 1;
        self.change_warp(next);
        self.most = SLICE.min(u32::try_from(remaining).unwrap_or(u32::MAX));
        self.budget = self.most;
        self.announced = self.budget;
    }

    /// Sets the current warp to another warp.
    fn change_warp(&mut self, next: usize) {
        let Some(warps) = &mut self.warps else { return };
        (self.barriers.warp, self.barriers.waits) = (next, false);
        // SAFETY: from this call on, the cursor and its lanes refer to this warp, and no longer refer to the previous
        // warp.
        let Parts { flow, rows, a, c, inputs, outputs, .. } = unsafe { warps.warp(next) }.parts();
        // SAFETY: all warps of a block have rows of the same layout.
        unsafe { self.lanes.change((rows, a, c), (inputs, outputs), (next as u32, flow.dead().0 as u32)) };
        self.flow = flow;
    }

    /// If compiled code has switched to another warp, makes this warp the current warp.
    #[inline(always)]
    pub(super) fn follow(&mut self, state: &State) {
        if let Some(current) = state.current().filter(|warp| *warp as u32 != self.lanes.warp) {
            self.change_warp(current);
            self.most = SLICE;
            // The warp's row of active lanes has not changed since the warp began to wait.
            (self.active, self.arrived) = (state.known as u32, Mask(state.known));
            self.lanes.sets[ACTIVE] = self.active;
        }
    }

    /// Executes the `bar` at the end of `block`. The `bar` both arrives and waits. After the `bar`, the warp continues
    /// at `node`. `waiting` has an entry for each warp that waits after this call: the active lanes, and the node at
    /// which the warp continues. If this warp does not have to wait, returns `node`. Otherwise, if `waiting` has an
    /// entry for the next warp and the next warp can run, switches to the next warp and returns the node of the entry.
    /// In all other cases, returns `None`, and the caller must [enter the next block](Self::enter_next).
    pub(super) fn wait_at_barrier(
        &mut self,
        block: &Block,
        node: u32,
        waiting: &mut [Option<(u32, u32)>],
    ) -> Option<u32> {
        let Last::Bar { barrier, count, .. } = block.last else { return None };
        self.flow.advance(block.next);
        let races = self.lanes.shared.races_mut();
        let Arrivals { barriers, warp, waits } = &mut self.barriers;
        barriers.bar(*warp, barrier, (true, true), count, races);
        if barriers.waits_for(*warp).is_none() {
            self.counted = self.budget;
            return Some(node);
        }
        *waits = true;
        if let Some(waiting) = waiting.get_mut(*warp) {
            *waiting = Some((node, self.active));
        }
        let next = if *warp + 1 == self.warps.as_ref()?.count() { 0 } else { *warp + 1 };
        let (node, active) = waiting.get(next).copied().flatten()?;
        if barriers.waits_for(next).is_some() {
            return None;
        }
        // The barrier has released the next warp.
        let remaining = self.may_pass()?;
        self.switch(next, remaining);
        // This code does not update the row of active lanes, because the row has not changed since the warp began to
        // wait.
        self.lanes.sets[ACTIVE] = active;
        (self.active, self.arrived) = (active, Mask(active.into()));
        self.counted = self.budget;
        Some(node)
    }

    /// Copies the budget, the active lanes and the number of free stack entries to the state of compiled code.
    pub(super) fn give_counts(&self, state: &mut State) {
        (state.budget, state.active) = (self.budget as i32, self.active.into());
        (state.given, state.known) = (self.budget.into(), state.active);
        state.room = self.flow.room() as u32;
    }

    /// Adds the counts of compiled code to the statistics. Copies the budget and the active lanes of compiled code to
    /// this cursor.
    pub(super) fn take_counts(&mut self, state: &mut State) {
        self.budget = state.budget as u32;
        let tried = std::mem::replace(&mut state.given, self.budget.into()) - u64::from(self.budget);
        self.statistics.instructions += tried - u64::from(take(&mut state.arrivals));
        self.statistics.lane_instructions += take(&mut state.lane_instructions);
        // This branch prevents the compiler from loading both counts with one wide load. A wide load would wait until
        // the separate stores of the two counts are complete. The wait took a fifth of the time of this function
        // (measured with the kernel `reduce` on an AMD EPYC).
        if state.divergent != 0 {
            self.statistics.divergent_branches += take(&mut state.divergent);
        }
        self.counted = self.budget;
        if state.active != u64::from(self.active) {
            // Some lanes have left the code by `break` or `ret`. All other lanes have continued. In the row of the
            // active lanes, the code has cleared the bits of the lanes that left.
            let [broke, returned] = take(&mut state.gone).map(Mask);
            self.flow.stay(Mask(state.active), broke, returned);
            self.active = state.active as u32;
            self.lanes.sets[ACTIVE] = self.active;
        }
    }

    /// Returns the step after a block that has run.
    #[inline(always)]
    pub(super) fn step<W: Wide>(&mut self, wide: W, block: &Block) -> Step<'a> {
        let lowered = self.lowered;
        match &block.last {
            Last::Next => Step::to(block.fall, 0),
            Last::Bra { target, guard } => match self.executing(wide, guard) {
                0 => Step::to(block.fall, 0),
                all if all == self.active => {
                    if O::ENABLED && block.jump != NONE {
                        self.observer.event(Event::Jump { to: *target });
                    }
                    Step::to(block.jump, all)
                }
                taken => match &lowered.diamonds[self.block as usize] {
                    Some(diamond) if diamond.tried <= self.budget && self.meet(diamond, taken) => {
                        Step::Diamond { diamond, taken }
                    }
                    _ => Step::Exit { taken },
                },
            },
            // If no lane leaves the loop or function, the flow state does not change.
            Last::Break { guard } | Last::Ret { guard } => match self.executing(wide, guard) {
                0 => Step::to(block.fall, 0),
                taken => Step::Exit { taken },
            },
            Last::Joinat { target } => match &lowered.conditionals[self.block as usize] {
                Some(conditional) if conditional.most <= self.budget && self.flow.has_room_for(2) => {
                    self.run_conditional(wide, conditional);
                    Step::Block(conditional.joins)
                }
                _ if block.fall == NONE => Step::Exit { taken: 0 },
                _ => match self.flow.joinat(*target, block.next, self.observer) {
                    Ok(()) => Step::Block(block.fall),
                    Err(_) => Step::Exit { taken: 0 },
                },
            },
            Last::Memory(_) => Step::to(block.fall, 0),
            Last::Discard { guard } => Step::Exit { taken: self.executing(wide, guard) },
            Last::Reference | Last::Breakaddr { .. } | Last::Call { .. } | Last::Bar { .. } => {
                Step::Exit { taken: 0 }
            }
        }
    }

    /// Updates the flow state after a block. If the last instruction is control flow, executes this instruction. If the
    /// block has an exit, executes the exit.
    #[inline(always)]
    pub(super) fn leave(&mut self, block: &Block, taken: u32) -> Result<(), Fault> {
        let Cursor { flow, observer, barriers, .. } = self;
        let (next, taken) = (block.next, Mask(taken.into()));
        flow.advance(block.last_pc);
        let mut decision = Decision::Uniform;
        match &block.last {
            Last::Next | Last::Memory(_) | Last::Reference => flow.advance(next),
            Last::Bra { target, .. } => decision = flow.bra(*target, next, taken, *observer)?,
            Last::Joinat { target } => flow.joinat(*target, next, *observer)?,
            Last::Discard { .. } => {
                flow.discard(taken, next);
                self.lanes.dead = flow.dead().0 as u32;
            }
            Last::Ret { .. } => decision = flow.ret(taken, next, *observer)?,
            Last::Break { .. } => decision = flow.break_(taken, next, *observer)?,
            Last::Breakaddr { target } => flow.breakaddr(*target, next, *observer)?,
            Last::Call { target } => flow.call(*target, next, *observer)?,
            // A barrier counts a warp once, whatever lanes of the warp are active. (9.7)
            Last::Bar { inc, wait, barrier, count } => {
                flow.advance(next);
                let Arrivals { barriers, warp, waits } = barriers;
                let races = self.lanes.shared.races_mut();
                barriers.bar(*warp, *barrier, (*inc, *wait), *count, races);
                *waits = barriers.waits_for(*warp).is_some();
            }
        }
        if block.exit {
            flow.exit(*observer)?;
        }
        self.statistics.divergent_branches += u64::from(decision == Decision::Divergent);
        Ok(())
    }

    /// Moves the flow state to the join of a diamond. In the flow state, the lanes of the side that runs second become
    /// the active lanes. Returns `false` if the branch faults.
    #[inline(always)]
    pub(super) fn meet(&mut self, diamond: &Diamond, taken: u32) -> bool {
        let [_, (_, last)] = diamond.order(taken, self.active & !taken);
        self.flow.meet(diamond.join, Mask(last.into()))
    }

    /// Runs the two sides of a branch that divides the active lanes. The second side runs after the first side. After
    /// this call, the lanes of the second side are the active lanes. Adds the instructions of both sides to the
    /// statistics, but does not change the budget and does not report events.
    #[inline(always)]
    pub(super) fn run_both_sides(&mut self, diamond: &Diamond, taken: u32) {
        let [(first, goes), (second, waits)] = diamond.order(taken, self.active & !taken);
        self.lanes.activate(goes);
        let ran = self.run_side(first);
        self.lanes.activate(waits);
        let ran_then = self.run_side(second);
        self.statistics.instructions += u64::from(ran + ran_then);
        self.statistics.lane_instructions +=
            u64::from(ran * goes.count_ones() + ran_then * waits.count_ones());
        self.statistics.divergent_branches += 1;
    }

    /// Runs one side of a branch up to the join, for lanes that are already activated. Returns the number of
    /// instructions of the side. Does not report events.
    #[inline(always)]
    pub(super) fn run_side(&mut self, side: Side) -> u32 {
        let Some(block) = self.lowered.blocks.get(side.block as usize) else { return 0 };
        // SAFETY: `side.block` is the number of an existing block.
        unsafe { self.execute_block(side.block, block) };
        block.size
    }

    /// Reports the two sides of the branch after the current block.
    #[inline(always)]
    pub(super) fn announce_sides(&mut self, diamond: &Diamond, taken: u32) {
        let (lowered, key) = (self.lowered, Key::Divides.of(self.block));
        let sides = diamond.order(taken, self.active & !taken);
        together(self.observer, key, Mask(self.active.into()), Mask(sides[0].1.into()), |observer| {
            lowered.announce_sides(sides, observer);
        });
    }

    /// Runs the code after a `joinat`: a branch, the two sides of the branch, and the join. The flow state does not
    /// change.
    #[inline(always)]
    pub(super) fn run_conditional<W: Wide>(&mut self, wide: W, conditional: &Conditional) {
        let Conditional { branch, guard, diamond, .. } = conditional;
        self.announce_chain(2);
        // SAFETY: all block numbers come from lowering, which has created the blocks.
        let block = unsafe { self.lowered.blocks.get_unchecked(*branch as usize) };
        self.budget -= block.size;
        // SAFETY: `branch` is the number of the block.
        unsafe { self.execute_block(*branch, block) };
        if O::PATHS {
            self.chained += 1;
        }
        let active = self.active;
        let taken = self.executing(wide, guard);
        self.announce_conditional(conditional, taken);
        self.arrived = if taken == 0 || taken == active {
            let side = if taken == 0 { diamond.not } else { diamond.taken };
            self.budget -= self.run_side(side);
            Mask(active.into())
        } else {
            self.run_both_sides(diamond, taken);
            self.lanes.activate(active);
            self.budget -= diamond.tried;
            self.counted -= diamond.tried;
            let [_, (_, last)] = diamond.order(taken, active & !taken);
            Mask(last.into())
        };
        self.announce_path(Path::Conditional);
    }

    /// Reports the events of [`run_conditional`](Self::run_conditional), after the `joinat` of the current block.
    #[inline(always)]
    pub(super) fn announce_conditional(
        &mut self,
        Conditional { branch, diamond, .. }: &Conditional,
        taken: u32,
    ) {
        let (lowered, active) = (self.lowered, self.active);
        let sides = diamond.order(taken, active & !taken);
        let (key, first) = match taken {
            0 => (Key::Falls, 0),
            _ if taken == active => (Key::Jumps, 0),
            _ => (Key::Divides, sides[0].1),
        };
        let lanes = Mask(active.into());
        let arrived = if first == 0 { lanes } else { lanes - Mask(first.into()) };
        together(self.observer, key.of(self.block), lanes, Mask(first.into()), |observer| {
            announce_push(observer, TokenType::Joinat);
            lowered.announce_block(*branch, lanes, observer);
            match key {
                Key::Falls => lowered.announce_side(diamond.not, active, observer),
                Key::Jumps => {
                    observer.event(Event::Jump { to: diamond.taken.pc });
                    lowered.announce_side(diamond.taken, active, observer);
                }
                Key::Block | Key::Divides => lowered.announce_sides(sides, observer),
            }
            announce_arrival(observer, TokenType::Joinat, diamond.join, arrived, lanes);
        });
    }

    /// Returns the active lanes whose predicate holds. (2.2)
    #[inline(always)]
    pub(super) fn executing<W: Wide>(&self, wide: W, test: &Test) -> u32 {
        if test.always {
            return self.active;
        }
        self.active & wide.select(&test.table, self.lanes.c(test.c)) as u32
    }

    /// Executes the load or store at the end of a block, if any. Then executes the operations on the loaded values.
    /// Returns `false` if some lane cannot execute the load or store.
    #[inline(always)]
    pub(super) fn access(&mut self, block: &Block) -> bool {
        let Last::Memory(number) = block.last else { return true };
        let lower::Access { transfer, after } = &self.lowered.accesses[number as usize];
        // SAFETY: transfers were lowered for the level on which `Fast` runs.
        let moved = unsafe { (transfer.mover)(self.lanes, self.memory, transfer) };
        if moved {
            // SAFETY: when lowering created this load or store, it also created these operations.
            unsafe { self.execute(after.start, after.end) };
        }
        moved
    }

    /// Executes a block without load or store for lanes that are already activated. Counts this run of the block. Does
    /// not report events.
    ///
    /// # Safety
    /// The block belongs to the lowered program and has this number.
    #[inline(always)]
    pub(super) unsafe fn execute_block(&mut self, number: u32, block: &Block) {
        // SAFETY: the operations belong to a block, and `number` is the number of this block.
        unsafe {
            self.execute(block.start, block.end);
            self.count_block(number);
        }
    }

    /// Counts one complete run of a block.
    ///
    /// # Safety
    /// The lowered program has a block with this number.
    #[inline(always)]
    pub(super) unsafe fn count_block(&mut self, number: u32) {
        // SAFETY: `number` is the number of a block. `run_blocks` checks that each block has a count.
        unsafe { *self.runs.get_unchecked_mut(number as usize) += 1 };
    }

    /// Reports a block that the active lanes have executed completely.
    #[inline(always)]
    pub(super) fn announce_block(&mut self, number: u32) {
        let (lowered, active) = (self.lowered, Mask(self.active.into()));
        together(self.observer, Key::Block.of(number), active, Mask::NONE, |observer| {
            lowered.announce_block(number, active, observer);
        });
    }

    /// Executes operations for lanes that are already activated.
    ///
    /// # Safety
    /// The lowered program has the operations from `start` to `end`.
    #[inline(always)]
    pub(super) unsafe fn execute(&mut self, start: u32, end: u32) {
        // SAFETY: the caller guarantees that the operations from `start` to `end` exist.
        let operations = unsafe { self.lowered.operations.get_unchecked(start as usize..end as usize) };
        for (handler, operation) in operations {
            // SAFETY: operations were lowered for the level on which `Fast` runs.
            unsafe { handler(self.lanes, operation) };
        }
    }

    /// Counts instructions that the active lanes have run.
    #[inline(always)]
    pub(super) fn count(&mut self, instructions: u32) {
        self.statistics.instructions += u64::from(instructions);
        self.statistics.lane_instructions += u64::from(instructions * self.active.count_ones());
    }

    /// Counts the instructions that the active lanes have run since the start of the chain. Reports the path. `last` is
    /// the last block of the chain.
    #[inline(always)]
    pub(super) fn count_chain(&mut self, last: &Block) {
        self.count(self.counted - self.budget);
        self.announce_chain(last.size);
    }

    /// Reports the path of the blocks that the warp has run since the latest report. The last block has `size`
    /// instructions.
    #[inline(always)]
    pub(super) fn announce_chain(&mut self, size: u32) {
        self.announce_path(match (self.chained, size) {
            (0 | 1, 1) => Path::Single,
            (0 | 1, _) => Path::Block,
            _ => Path::Chain,
        });
    }

    /// Reports the path of the instructions that the warp has run since the latest report.
    #[inline(always)]
    pub(super) fn announce_path(&mut self, path: Path) {
        if O::PATHS {
            self.observer.path(path, (self.announced - self.budget).into());
            (self.announced, self.chained) = (self.budget, 0);
        }
    }
}

impl Diamond {
    /// Returns the sides in the order in which the sides run. Each side has the set of its lanes.
    #[inline(always)]
    pub(super) fn order(&self, taken: u32, not: u32) -> [(Side, u32); 2] {
        let mut sides = [(self.taken, taken), (self.not, not)];
        if !TAKEN_SIDE_RUNS_FIRST {
            sides.reverse();
        }
        sides
    }
}
