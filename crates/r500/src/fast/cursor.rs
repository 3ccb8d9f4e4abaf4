//! Moves groups through the blocks of a program. Several groups can run together.

use std::mem::take;
use std::ops::{ControlFlow, Range};

use reconverge_jit::State as CodeState;
use reconverge_simt::{Event, Level, Mask, Mode, Observer, Path, Silent, Trap};

use super::Fast;
use super::lanes::{Lanes, State, choose};
use super::lower::{Block, Last, Lowered, NONE};
use super::operands::Set;
use crate::cause::Cause;
use crate::flow::{self, Decision, Flow, LoopStep};
use crate::group::{Group, WIDEST, after_fc};
use crate::inst::SLOTS;

/// The reason why the engine stops running blocks.
pub(super) enum Stop {
    /// The group has ended, or the group has used up its instruction budget.
    Over,
    /// The reference interpreter has to execute the next instruction.
    Reference,
    /// A flow instruction trapped.
    Trap(Trap<Cause>),
    /// At the next instruction, some groups jump, and some groups do not jump. The mask contains the lanes of the
    /// groups that jump.
    Apart(Mask),
    /// The running groups have reached the slot at which other groups wait.
    Met,
}

/// Groups that run together, and waiting groups that will join the running groups again.
#[derive(Clone, Copy)]
pub(super) struct Company {
    /// The lanes of all groups, including the waiting groups.
    pub(super) all: Mask,
    /// The slot at which groups wait. [`NOWHERE`] if no group waits.
    pub(super) waiting: u16,
}

/// The value that stands for no slot.
pub(super) const NOWHERE: u16 = u16::MAX;

/// The result of a flow instruction.
enum Flowed {
    /// The instruction begins or ends a loop iteration. The value states where the group continues.
    Loop(LoopStep),
    /// The instruction was executed. The flow state holds the next slot.
    On,
    /// The instruction trapped.
    Trap(Cause),
}

/// The state of one or several groups during the run of a program's blocks.
pub(super) struct Cursor<'a> {
    pub(super) lowered: &'a Lowered,
    level: Level,
    /// Whether the program has linked code.
    has_code: bool,
    strict: bool,
    pub(super) lanes: Lanes<'a>,
    flow: &'a mut Flow,
    /// Number of runs of each block, followed by the counters of compiled code.
    pub(super) runs: &'a mut [u64],
    /// Number of issues of each slot.
    issued: &'a mut [u64],
    divergent_branches: &'a mut u64,
    all: Mask,
    /// Number of groups that run together.
    groups: u64,
    /// The slot at which groups wait to run together with these groups. [`NOWHERE`] if no group waits.
    waiting: u16,
    /// Whether operations may write all lanes of the chunks that the group uses.
    whole: bool,
    /// The active lanes, as stored in [`Set::ACTIVE`].
    active: Mask,
    /// Number of active lanes.
    members: u64,
    /// 1 if all lanes are active, otherwise 0.
    full: usize,
    /// Number of the next block, or [`NONE`] if the number is not known.
    pub(super) number: u32,
    /// Number of instructions that the group may still issue.
    pub(super) budget: u64,
    pub(super) lane_instructions: u64,
}

/// The position of a group in the current block.
#[derive(Clone, Copy)]
pub(super) struct Arrival {
    /// Index of the next instruction in the block.
    pub(super) inside: u16,
    /// Whether the previous block led to this block directly, without a look-up.
    chained: bool,
}

impl<'a> Cursor<'a> {
    /// Returns a cursor for a group that may issue `budget` more instructions.
    #[inline(always)]
    pub(super) fn new(
        fast: &'a Fast,
        group: &'a mut Group,
        runs: &'a mut [u64],
        company: Option<Company>,
        budget: u64,
    ) -> Self {
        let strict = group.mode == Mode::Strict;
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
        let (all, lowered) = (*all, &*fast.lowered);
        // SAFETY: all operations that run on `lanes` were lowered with the layout of the program.
        let mut lanes = unsafe {
            Lanes::new(
                rows.with_room_mut(),
                &lowered.layout,
                all,
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
        lanes.choose(Set::ALL, all);
        // Operations may write all lanes of a chunk only if no lane of the chunk belongs to a waiting group. A quad can
        // also contain lanes that were never launched. The values of lanes that were never launched must not change.
        let others = company.map_or(Mask::NONE, |company| company.all - all);
        let whole = all.count().is_multiple_of(4) && (lanes.reach() & others).is_empty();
        Cursor {
            lowered,
            level: fast.level,
            has_code: fast.is_compiled(),
            strict,
            lanes,
            flow,
            runs,
            issued,
            divergent_branches: &mut statistics.divergent_branches,
            all,
            groups: company.map_or(1, |_| u64::from(all.count()).div_ceil(lowered.width as u64)),
            waiting: company.map_or(NOWHERE, |company| company.waiting),
            whole,
            active: Mask::NONE,
            members: 0,
            full: 0,
            number: NONE,
            budget,
            lane_instructions: 0,
        }
    }

    /// Finds the next block, and returns the position of the group in the block.
    #[inline(always)]
    pub(super) fn enter(&mut self) -> ControlFlow<Stop, Arrival> {
        if self.flow.pc() == self.waiting {
            return ControlFlow::Break(Stop::Met);
        }
        self.activate();
        let chained = self.number != NONE;
        let inside = if chained { 0 } else { self.find()? };
        ControlFlow::Continue(Arrival { inside, chained })
    }

    /// Runs the current block from its start. If the block cannot run as a whole, runs one instruction of the block.
    #[inline(always)]
    pub(super) fn run<O: Observer>(
        &mut self,
        Arrival { inside, chained }: Arrival,
        observer: &mut O,
    ) -> ControlFlow<Stop> {
        let block = &self.lowered.blocks[self.number as usize];
        let operates = self.active.any() || block.inactive;
        if let Some(al) = &block.al
            && operates
        {
            self.lanes.al = self.flow.al();
            if self.strict && !self.flow.has_al() || !al.contains(&self.lanes.al) {
                return ControlFlow::Break(Stop::Reference);
            }
        }
        if inside == 0 && u64::from(block.size) <= self.budget {
            self.block(block, operates, chained, observer)
        } else {
            self.part(block, inside, operates, observer)
        }
    }

    /// Takes the active lanes from the flow state.
    #[inline(always)]
    fn activate(&mut self) {
        if self.flow.active() != self.active {
            self.choose_active(self.flow.active());
            if self.has_code {
                // Only compiled code reads the row of active lanes. So this function writes the row only if the program
                // has compiled code.
                choose(self.level, &mut self.lanes, Set::ACTIVE, self.active);
            }
        }
    }

    /// Changes the active lanes, but not the row of active lanes that compiled code reads.
    #[inline(always)]
    pub(super) fn choose_active(&mut self, active: Mask) {
        if active != self.active {
            self.active = active;
            self.members = u64::from(active.count());
            self.full = usize::from(active == self.all && self.whole);
            self.lanes.choose(Set::ACTIVE, active);
        }
    }

    /// Clears the active lanes. So the next call of [`activate`](Self::activate) writes the row of active lanes.
    pub(super) fn forget_active(&mut self) {
        self.choose_active(Mask::NONE);
    }

    /// Finds the block that contains the program counter, and returns the index of the instruction in the block.
    #[inline(always)]
    fn find(&mut self) -> ControlFlow<Stop, u16> {
        match self.lowered.entries.get(usize::from(self.flow.pc())) {
            Some(entry) if entry.block != NONE => {
                self.number = entry.block;
                ControlFlow::Continue(entry.inside)
            }
            _ => ControlFlow::Break(Stop::Reference),
        }
    }

    /// Returns whether compiled code can run instead of the current block. The code issues `budget` instructions.
    /// `needs` holds the [conditions](flow::Step::needs) under which the code can run.
    #[inline(always)]
    pub(super) fn allows(&self, budget: u32, needs: u32) -> bool {
        let judged = *self.lanes.alu_result | *self.lanes.alu_result_valid;
        u64::from(budget) <= self.budget
            && needs & self.flow.hindered() == 0
            && self.flow.active().any()
            && judged.is_empty()
    }

    /// Sets the instruction budget and the active lanes of compiled code, before compiled code runs.
    pub(super) fn give_counts(&self, state: &mut CodeState) {
        state.budget = self.budget.min(i32::MAX as u64) as i32;
        state.active = self.active.0;
        state.hindered = self.flow.hindered();
    }

    /// Returns how many more iterations compiled code may start in the innermost loop. See [`Flow::rounds`].
    pub(super) fn rounds(&self, al: bool) -> Option<u32> {
        self.flow.rounds(al)
    }

    /// Updates the state after compiled code has run. The group is at `pc`. The first element of `rounds` is the number
    /// of iterations that compiled code has started in the innermost loop. The second element is the number that each
    /// iteration has added to aL.
    pub(super) fn take_counts(&mut self, state: &mut CodeState, pc: u16, rounds: (u32, i8)) {
        self.budget -= self.budget.min(i32::MAX as u64) - state.budget as u64;
        self.lane_instructions += take(&mut state.lane_instructions);
        *self.divergent_branches += take(&mut state.divergent);
        self.choose_active(Mask(state.active));
        self.flow.stay(pc, self.active, Mask(take(&mut state.gone[0])), rounds);
        self.flow.kill(*self.lanes.killed);
    }

    /// Executes the end of block `number` and finds the next block. Compiled code has run the operations of the block.
    /// If compiled code has counted the flow instruction of the block, `taken` contains the lanes that vote to jump.
    pub(super) fn continue_after(&mut self, number: u32, taken: Option<Mask>) -> ControlFlow<Stop> {
        self.number = number;
        let block = &self.lowered.blocks[number as usize];
        match (block.last, taken) {
            (Last::Flow(place), Some(taken)) => {
                let step = &self.lowered.flows[place as usize];
                let active = self.flow.active();
                if let (true, Some([_, yes])) = (step.reads_alu_result(), step.votes()) {
                    *self.lanes.alu_result = if yes { taken } else { active - taken };
                    *self.lanes.alu_result_valid = active;
                }
                match self.branch(step, &mut Silent) {
                    Flowed::Loop(LoopStep::LoopBack) => self.number = block.jump,
                    Flowed::Loop(LoopStep::Next) => self.number = block.fall,
                    Flowed::On => self.number = NONE,
                    Flowed::Trap(cause) => {
                        return trapped(&mut Silent, block.first + block.size - 1, active, cause);
                    }
                }
            }
            (Last::Flow(_), None) => self.part(block, block.size - 1, false, &mut Silent)?,
            (Last::Reference, _) => return ControlFlow::Break(Stop::Reference),
            (Last::Next, _) if block.ends => {
                self.flow.end();
                return ControlFlow::Break(Stop::Over);
            }
            (Last::Next, _) => self.number = block.fall,
        }
        if self.number == NONE {
            self.number = self.lowered.block_at(self.flow.pc());
        }
        self.activate();
        ControlFlow::Continue(())
    }

    /// Runs a block. If `operates` is false, executes only the flow instruction of the block. The operations of the
    /// block are then skipped.
    #[inline(always)]
    fn block<O: Observer>(
        &mut self,
        block: &Block,
        operates: bool,
        chained: bool,
        observer: &mut O,
    ) -> ControlFlow<Stop> {
        if operates {
            let mut start = block.start;
            if let Some(split) = block.split {
                self.operate(start..split);
                if self.lanes.refused {
                    return ControlFlow::Break(Stop::Reference);
                }
                start = split;
            }
            self.operate(start..block.end);
        }
        if block.kills {
            self.flow.kill(*self.lanes.killed);
        }
        let mut next = block.fall;
        match block.last {
            Last::Flow(place) => {
                self.flow.advance_by(block.size - 1);
                let step = &self.lowered.flows[place as usize];
                if let Some(stop) = self.leaves(step) {
                    let first = usize::from(block.first);
                    let arithmetic = first..first + usize::from(block.size) - 1;
                    announce_issues(observer, arithmetic.clone(), self.active);
                    announce_path(observer, Path::Part, arithmetic.len() as u64);
                    self.count(arithmetic.len() as u64);
                    self.issued[arithmetic].iter_mut().for_each(|times| *times += self.groups);
                    return ControlFlow::Break(stop);
                }
                announce_issues(observer, block.slots(), self.active);
                let flowed = self.branch(step, observer);
                self.leave(block, chained, observer);
                match flowed {
                    Flowed::Loop(LoopStep::LoopBack) => next = block.jump,
                    Flowed::Loop(LoopStep::Next) => {}
                    Flowed::On => next = NONE,
                    Flowed::Trap(cause) => {
                        return trapped(observer, block.first + block.size - 1, self.active, cause);
                    }
                }
            }
            Last::Next | Last::Reference => {
                announce_issues(observer, block.slots(), self.active);
                self.flow.advance_by(block.size);
                self.leave(block, chained, observer);
                if matches!(block.last, Last::Reference) {
                    return ControlFlow::Break(Stop::Reference);
                }
            }
        }
        self.number = next;
        if block.ends {
            self.flow.end();
            return ControlFlow::Break(Stop::Over);
        }
        ControlFlow::Continue(())
    }

    /// Counts a block that has run.
    #[inline(always)]
    fn leave<O: Observer>(&mut self, block: &Block, chained: bool, observer: &mut O) {
        let path = match block.size {
            _ if chained => Path::Chain,
            0 | 1 => Path::Single,
            _ => Path::Block,
        };
        announce_path(observer, path, u64::from(block.size));
        self.count(u64::from(block.size));
        self.runs[self.number as usize] += self.groups;
    }

    #[inline(always)]
    fn count(&mut self, instructions: u64) {
        self.budget -= instructions;
        self.lane_instructions += instructions * self.members;
    }

    /// Runs one instruction of a block. The cursor calls this function in two cases: the group is inside the block, or
    /// the instruction budget is too small for the block.
    #[inline(always)]
    fn part<O: Observer>(
        &mut self,
        block: &Block,
        inside: u16,
        operates: bool,
        observer: &mut O,
    ) -> ControlFlow<Stop> {
        let pc = self.flow.pc();
        let last = inside + 1 == block.size;
        if self.budget == 0 || inside == block.size {
            return ControlFlow::Break(Stop::Reference);
        }
        if operates {
            let start = match inside {
                0 => block.start,
                _ => self.lowered.ends[usize::from(pc) - 1],
            };
            self.operate(start..self.lowered.ends[usize::from(pc)]);
        }
        if block.kills {
            self.flow.kill(*self.lanes.killed);
        }
        let step = match block.last {
            Last::Flow(place) if last => Some(&self.lowered.flows[place as usize]),
            Last::Flow(_) | Last::Next | Last::Reference => None,
        };
        if let Some(stop) = step.and_then(|step| self.leaves(step)) {
            return ControlFlow::Break(stop);
        }
        announce_issues(observer, usize::from(pc)..usize::from(pc) + 1, self.active);
        announce_path(observer, Path::Part, 1);
        self.number = NONE;
        self.count(1);
        self.issued[usize::from(pc)] += self.groups;
        match step {
            None => self.flow.advance(),
            Some(step) => {
                if let Flowed::Trap(cause) = self.branch(step, observer) {
                    return trapped(observer, pc, self.active, cause);
                }
            }
        }
        if last && block.ends {
            self.flow.end();
            return ControlFlow::Break(Stop::Over);
        }
        ControlFlow::Continue(())
    }

    /// Executes operations of the current block.
    #[inline(always)]
    pub(super) fn operate(&mut self, operations: Range<u32>) {
        for operation in &self.lowered.operations[operations.start as usize..operations.end as usize] {
            // SAFETY: the operations were compiled for the vector level of the engine. This processor supports that
            // level.
            unsafe { operation.handlers[self.full & 1](&mut self.lanes, operation) };
        }
    }

    /// Returns whether a flow instruction reads an ALU result that is invalid in some lane. In strict mode, a flow
    /// instruction that reads an invalid ALU result traps before it changes any state. The reference interpreter
    /// behaves in the same way.
    #[inline(always)]
    fn is_stale(&self, step: &flow::Step) -> bool {
        self.strict && step.reads_alu_result() && (self.active - *self.lanes.alu_result_valid).any()
    }

    /// Returns the reason for which the cursor stops before a flow instruction. `None` if the cursor does not stop.
    #[inline(always)]
    fn leaves(&self, step: &flow::Step) -> Option<Stop> {
        if self.is_stale(step) {
            return Some(Stop::Reference);
        }
        if self.groups == 1 {
            return None;
        }
        let want = step.want(*self.lanes.alu_result, &*self.lanes.predicate);
        let jumping = self.flow.jumping(step, want, groups(self.all, self.lowered.width)) & self.all;
        (jumping.any() && jumping != self.all).then_some(Stop::Apart(jumping))
    }

    /// Returns the number of groups in which the active lanes diverge.
    #[inline(always)]
    fn diverged(&self, decision: &Decision) -> u64 {
        if !decision.diverged() {
            return 0;
        }
        let in_group = |lanes: &Mask| (decision.wanted & *lanes).any() && (decision.unwilling & *lanes).any();
        groups(self.all, self.lowered.width).filter(in_group).count() as u64
    }

    /// Executes the flow instruction at the program counter.
    #[inline(always)]
    fn branch<O: Observer>(&mut self, step: &flow::Step, observer: &mut O) -> Flowed {
        let want = step.want(*self.lanes.alu_result, &*self.lanes.predicate);
        let in_loop = step.in_loop.as_ref().and_then(|it| self.flow.step_in_loop(it, want, observer));
        let flowed = match in_loop {
            Some(step) => Flowed::Loop(step),
            None => match self.flow.execute_observed(step, want, observer) {
                Ok(decision) => {
                    *self.divergent_branches += self.diverged(&decision);
                    Flowed::On
                }
                Err(undefined) => return Flowed::Trap(undefined.into()),
            },
        };
        let State { alu_result, alu_result_valid, .. } = &mut *self.lanes;
        after_fc(alu_result, alu_result_valid);
        flowed
    }
}

/// Splits `lanes` into groups of `width` lanes, and returns the lanes in each group. Omits groups without lanes.
fn groups(lanes: Mask, width: usize) -> impl Iterator<Item = Mask> {
    let group = move |first: usize| lanes & Mask(Mask::first(width).0 << first);
    (0..WIDEST).step_by(width).map(group).filter(|group| group.any())
}

/// Addresses of instructions for [`Observer::issues`]. The address of an instruction is the number of its slot.
static ADDRESSES: [u32; SLOTS] = {
    let mut addresses = [0; SLOTS];
    let mut slot = 0;
    while slot < SLOTS {
        addresses[slot] = slot as u32;
        slot += 1;
    }
    addresses
};

/// Reports the issue of consecutive instructions to the observer.
#[inline(always)]
fn announce_issues<O: Observer>(observer: &mut O, slots: Range<usize>, active: Mask) {
    if O::ENABLED && !slots.is_empty() {
        observer.issues(&ADDRESSES[slots], active);
    }
}

/// Reports to the observer which path executed the instructions.
#[inline(always)]
pub(super) fn announce_path<O: Observer>(observer: &mut O, path: Path, instructions: u64) {
    if O::PATHS {
        observer.path(path, instructions);
    }
}

#[cold]
fn trapped<O: Observer, C>(observer: &mut O, pc: u16, lanes: Mask, cause: Cause) -> ControlFlow<Stop, C> {
    if O::ENABLED {
        observer.event(Event::Trap { mask: lanes });
    }
    ControlFlow::Break(Stop::Trap(Trap { pc: u32::from(pc), lanes, cause }))
}
