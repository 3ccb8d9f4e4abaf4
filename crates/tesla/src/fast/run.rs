//! Runs blocks in order, and the control flow between them.
//!
//! ```text
//!            +-- Step::Block: the next block, for the same lanes
//!            v    |
//! enter --> block -- Step::Diamond: the two sides of a branch, one after the other, up to their join --> enter
//!   ^                |
//!   +---- leave ---- Step::Exit: the flow decides
//! ```
//! A [`Cursor`] is the position of the warp; it has one method for each arrow. Anything that needs more than rows
//! and flow (loads, stores, instructions of the reference interpreter, parts of a block) happens between two chains
//! of blocks.

use std::mem::take;
use std::ops::Range;

use reconverge_jit::State;
use reconverge_simt::level::Task;
use reconverge_simt::memory::{Picked, Store};
use reconverge_simt::observe::together;
use reconverge_simt::wide::Wide;
use reconverge_simt::{Event, Level, Mask, Observer, Path, Silent, Statistics, Trap};

use super::Fast;
use super::announce::{Key, announce_issues};
use super::compiled::{Exit, Runner};
use super::lanes::{ACTIVE, Lanes};
use super::lower::{self, Block, Conditional, Diamond, Last, Lowered, NONE, Side, Test};
use super::memory::{Move, place};
use super::words::Reach;
use super::words::Transfer;
use crate::barrier::Barriers;
use crate::block::{self, Executor, Ran, SLICE};
use crate::context::{Common, Context, Turn};
use crate::flow::{
    Decision, Fault, Flow, Join, TAKEN_SIDE_RUNS_FIRST, TokenType, WARP, announce_arrival, announce_push,
};
use crate::launch::Setup;
use crate::reference::{self, Reference};
use crate::state::{Local, Parts};
use crate::trap::Cause;
use crate::turns::Warps;

impl Executor for Fast {
    fn level(&self) -> Option<Level> {
        Some(self.level)
    }

    fn cleared(&self, whole: bool) -> Option<&[u8]> {
        self.cleared.registers(whole)
    }

    fn prepare(&self, block: &mut block::Block, setup: &Setup) {
        block.warps.iter_mut().for_each(|warp| warp.add_room(&self.lowered.room));
        self.set_uniforms(block, setup);
        let counts = self.compiled.as_ref().map_or(0, |compiled| compiled.counts());
        block.common.runs = vec![0; self.lowered.blocks.len() + counts];
    }

    fn spare(&self, setup: &Setup) -> Option<Box<block::Block>> {
        let mut block = self.spare.take()?;
        // The next launch may provide other words.
        block.warps.iter_mut().for_each(|warp| warp.inputs.clear());
        self.set_uniforms(&mut block, setup);
        Some(block)
    }

    fn keep(&self, block: Box<block::Block>) {
        self.spare.keep(block);
    }

    fn run<G: Store, O: Observer>(&self, turn: &mut Turn<'_, G, O>, most: u32) -> Ran {
        // Announcements come from blocks.
        let mut runner = if O::ENABLED { None } else { self.runner() };
        if turn.common.shared.given_changed() {
            return Reference.run(turn, most);
        }
        self.level.run(Run { lowered: &self.lowered, runner: runner.as_mut(), turn, most })
    }

    fn settle(&self, common: &mut Common) {
        for (inside, runs) in self.lowered.inside.iter().zip(&mut common.runs) {
            for place in &inside.places {
                common.issued[*place] += *runs;
            }
            *runs = 0;
        }
        if let Some(compiled) = &self.compiled {
            compiled.settle(&mut common.runs[self.lowered.blocks.len()..], &mut common.issued);
        }
    }
}

impl Fast {
    /// Sets the rows of constants in c[].
    fn set_uniforms(&self, block: &mut block::Block, setup: &Setup) {
        for warp in &mut block.warps {
            let rows = warp.file_mut().with_room_mut();
            for (uniform, place) in &self.lowered.uniforms {
                rows[place.number()].0 = [uniform.word(&setup.constants); WARP];
            }
        }
    }
}

/// A warp that runs up to `most` instructions, until it ends or waits at a barrier.
struct Run<'a, 't, 'r, G, O> {
    lowered: &'a Lowered,
    runner: Option<&'a mut Runner<'r>>,
    turn: &'a mut Turn<'t, G, O>,
    most: u32,
}

impl<G: Store, O: Observer> Task for Run<'_, '_, '_, G, O> {
    type Output = Ran;

    #[inline(always)]
    fn run<W: Wide>(self, wide: W) -> Ran {
        let Run { lowered, mut runner, turn, mut most } = self;
        let mut tried = 0;
        loop {
            let joined = match run_blocks(wide, lowered, runner.as_deref_mut(), turn, &mut tried, &mut most) {
                Stop::Over => return Ran { tried, end: Ok(()) },
                Stop::Trap(trap) => return Ran { tried, end: Err(trap) },
                Stop::Reference { joined } => joined,
            };
            let end = match joined {
                None => reference::step(turn),
                Some(arrived) => reference::step_joined(turn, arrived),
            };
            tried += 1;
            if O::PATHS {
                turn.observer.path(Path::Reference, 1);
            }
            if end.is_err() || turn.common.barriers.waits_for(turn.number).is_some() {
                return Ran { tried, end };
            }
            // Operations that read the header and the parameters do not check for changes.
            if turn.common.shared.given_changed() && tried < most && !turn.warp.flow.finished() {
                let Ran { tried: then, end } = Reference.run(turn, most - tried);
                return Ran { tried: tried + then, end };
            }
        }
    }
}

/// The reason that blocks stop.
enum Stop {
    /// The instruction budget is used up, or the warp has ended.
    Over,
    /// The reference interpreter executes the instruction at the program counter. If the join of that instruction
    /// is already done, `joined` holds the lanes that were active before the join.
    Reference { joined: Option<Mask> },
    /// The program trapped.
    Trap(Trap<Cause>),
}

/// Runs blocks until another component must continue. Adds the number of instructions to `tried`, of up to `most`. Both
/// numbers are those of the last turn, if the turn has passed to another warp.
#[inline(always)]
fn run_blocks<W: Wide, G: Store, O: Observer>(
    wide: W,
    lowered: &Lowered,
    runner: Option<&mut Runner<'_>>,
    turn: &mut Turn<'_, G, O>,
    tried: &mut u32,
    most: &mut u32,
) -> Stop {
    let &mut Turn { context, ref mut common, ref mut warp, number, ref mut global, ref mut observer, warps } =
        turn;
    let Parts { flow, rows, a, c, mut local, inputs, outputs } = warp.parts();
    let Common { shared, statistics, issued, runs, barriers, .. } = &mut **common;
    assert!(runs.len() >= lowered.blocks.len(), "the block was made for this program");
    // SAFETY: all operations that run here were lowered with the layout of these tables.
    let mut lanes = unsafe {
        Lanes::new(
            rows,
            a,
            c,
            (inputs, outputs),
            shared,
            (number as u32, flow.dead().0 as u32),
            &lowered.tables,
        )
    };
    let mut memory = Memory { wide, context, local: &mut local, global: &mut **global };
    let mut cursor = Cursor {
        lowered,
        runner,
        base: context.code.base(),
        lanes: &mut lanes,
        memory: &mut memory,
        barriers: Arrivals { barriers, warp: number, waits: false },
        flow,
        statistics,
        runs,
        observer: &mut **observer,
        warps,
        most: *most,
        budget: *most - *tried,
        counted: 0,
        active: 0,
        block: NONE,
        arrived: Mask::NONE,
        announced: *most - *tried,
        chained: 0,
    };
    let stop = loop {
        match wide.call(Chain(&mut cursor)) {
            Halt::Over => break Stop::Over,
            Halt::Unknown => break Stop::Reference { joined: None },
            Halt::Fault { pc, lanes, fault } => break cursor.fault(pc, lanes, fault),
            Halt::At(place) => {
                if let Some(stop) = cursor.run_apart(wide, place, issued) {
                    break stop;
                }
            }
        }
    };
    (*most, *tried) = (cursor.most, cursor.most - cursor.budget);
    let (warps, last) = (cursor.warps, cursor.barriers.warp);
    turn.warps = warps;
    if let (true, Some(warps)) = (last != number, warps) {
        turn.number = last;
        // SAFETY: the cursor, which has referred to the warp, is not used any more.
        turn.warp = unsafe { warps.warp(last) };
    }
    stop
}

/// The barriers of the block, at which a warp arrives.
struct Arrivals<'a> {
    barriers: &'a mut Barriers,
    /// The number of the warp.
    warp: usize,
    /// Whether the warp waits for the others. Such a warp does not run an instruction before its next turn.
    waits: bool,
}

struct Memory<'a, 'l, W, G> {
    wide: W,
    context: &'a Context,
    local: &'a mut Local<'l>,
    global: &'a mut G,
}

impl<W: Wide, G: Store> Reach for Memory<'_, '_, W, G> {
    fn reading(&mut self, segment: u8, first: u32, last: u32, picked: Picked<'_>) -> Option<&[u8]> {
        let (at, count) = place(self.context, segment, first, last)?;
        self.global.reading(at, count, picked)
    }

    fn writing(&mut self, segment: u8, first: u32, last: u32, picked: Picked<'_>) -> Option<&mut [u8]> {
        let (at, count) = place(self.context, segment, first, last)?;
        self.global.writing(at, count, picked)
    }

    fn whole(&mut self, segment: u8, address: u32) -> Option<(u32, &mut [u8])> {
        let (base, limit) = self.context.segments.linear(segment)?;
        let (start, bytes) = self.global.whole(base.checked_add(address)?)?;
        // The segment may begin in the buffer, or the buffer in the segment, and either may end first.
        let before = base.saturating_sub(start) as usize;
        let first = start.saturating_sub(base);
        let most = usize::try_from(limit.checked_sub(first)?).ok()?.saturating_add(1);
        let bytes = bytes.get_mut(before..)?;
        let count = bytes.len().min(most);
        Some((first, &mut bytes[..count]))
    }

    fn constants(&self, bank: u8) -> &[u8] {
        self.context.setup.constants.bank(bank.into())
    }

    fn local(&self) -> (&[u8], u32) {
        (self.local.all(), self.local.each())
    }

    fn local_mut(&mut self, first: u32, last: u32) -> &mut [u8] {
        self.local.all_mut(first, last)
    }

    fn transfer(&mut self, lanes: &mut Lanes<'_>, transfer: &Transfer) -> bool {
        let Memory { wide, context, local, global } = self;
        wide.eight().call(Move { context, lanes, local, global: &mut **global, transfer })
    }
}

/// The position of a warp in the lowered program, and its context.
pub(super) struct Cursor<'a, 'w, 'r, O> {
    pub(super) lowered: &'a Lowered,
    /// Linked code, if any.
    runner: Option<&'a mut Runner<'r>>,
    /// Byte address of the first word.
    base: u32,
    pub(super) lanes: &'a mut Lanes<'w>,
    pub(super) memory: &'a mut dyn Reach,
    barriers: Arrivals<'a>,
    /// Inside a chain, its program counter and active lanes are those at the start of the chain.
    flow: &'a mut Flow,
    statistics: &'a mut Statistics,
    /// Number of complete runs of each block.
    pub(super) runs: &'a mut [u64],
    observer: &'a mut O,
    /// All warps of the block, if the turn may pass to another.
    warps: Option<Warps>,
    /// Number of instructions that may be attempted in this turn, and the number that remains.
    most: u32,
    budget: u32,
    /// The budget at which the instructions of the active lanes were last counted.
    counted: u32,
    /// The lanes that run.
    pub(super) active: u32,
    /// The next block.
    pub(super) block: u32,
    /// The lanes that arrived at the latest join, before it.
    arrived: Mask,
    /// For paths: the budget at the latest announcement, and the number of blocks of the chain since then.
    announced: u32,
    chained: u32,
}

/// Consecutive blocks that need only rows and flow. All of them run whole, and the budget covers each.
struct Chain<'a, 'c, 'w, 'r, O>(&'a mut Cursor<'c, 'w, 'r, O>);

impl<O: Observer> Task for Chain<'_, '_, '_, '_, O> {
    type Output = Halt;

    #[inline(always)]
    fn run<W: Wide>(self, wide: W) -> Halt {
        // The chain works on the cursor itself, not on a copy. A turn between two barriers is so short that reading
        // back values just written takes a sixth of it (scan). On the fast engine, a long chain (collatz) loses a
        // twelfth, for which compiled code has compensated.
        let cursor = self.0;
        (cursor.announced, cursor.chained) = (cursor.budget, 0);
        let halt = cursor.run_chain(wide);
        (cursor.announced, cursor.chained) = (cursor.budget, 0);
        halt
    }
}

/// The reason that a chain ends.
pub(super) enum Halt {
    /// The instruction budget is used up, or the warp has ended.
    Over,
    /// No block has an instruction at the program counter.
    Unknown,
    /// The next block cannot run in a chain.
    At(Position),
    /// The flow cannot continue. `pc` is the address of the instruction, and `lanes` the lanes that arrived at it.
    Fault { pc: u32, lanes: Mask, fault: Fault },
}

/// An instruction of a block.
pub(super) struct Position {
    pub(super) block: u32,
    /// Number of the instruction in the block.
    pub(super) first: u32,
    /// The lanes that arrived at its join, if the join is done.
    pub(super) joined: Option<Mask>,
    /// The block has been executed from this instruction on, except for the load or store at its end, which some
    /// lane cannot execute.
    pub(super) refused: bool,
}

/// The result of a join.
enum Entered {
    Block,
    /// The join sent the warp to another path.
    Away,
}

/// The step after a block.
enum Step<'a> {
    /// Another block runs, for the same lanes.
    Block(u32),
    /// The lanes diverge, and both sides run up to their join.
    Diamond { diamond: &'a Diamond, taken: u32 },
    /// The flow decides. `taken`: the lanes whose predicate holds, if the block's last instruction has one.
    Exit { taken: u32 },
}

impl Step<'_> {
    /// Returns the step to the block with this number, or an exit if it is [`NONE`].
    #[inline(always)]
    fn to(block: u32, taken: u32) -> Self {
        if block == NONE { Step::Exit { taken } } else { Step::Block(block) }
    }
}

impl<'a, O: Observer> Cursor<'a, '_, '_, O> {
    #[inline(always)]
    fn run_chain<W: Wide>(&mut self, wide: W) -> Halt {
        loop {
            match self.enter() {
                Ok(Entered::Block) => {}
                Ok(Entered::Away) => continue,
                Err(halt) => return halt,
            }
            self.counted = self.budget;
            let (block, diamond, taken) = loop {
                // SAFETY: lowering numbers only blocks that it creates.
                let mut block = unsafe { self.lowered.blocks.get_unchecked(self.block as usize) };
                let exit = match self.node() {
                    Some(node) => self.run_code(node, block),
                    None => Exit::Apart(self.block),
                };
                match exit {
                    Exit::Before(next) => {
                        self.block = next;
                        continue;
                    }
                    Exit::Halt(halt) => return halt,
                    Exit::Apart(number) => {
                        self.block = number;
                        // SAFETY: as above.
                        block = unsafe { self.lowered.blocks.get_unchecked(number as usize) };
                        let covered = block.chained <= self.budget;
                        if !covered || !self.run_block(number, block) {
                            self.count_chain(block);
                            let joined = block.join.then_some(self.arrived);
                            return Halt::At(Position { block: number, first: 0, joined, refused: covered });
                        }
                    }
                }
                match self.step(wide, block) {
                    Step::Block(next) => self.block = next,
                    Step::Diamond { diamond, taken } => break (block, Some(diamond), taken),
                    Step::Exit { taken } => break (block, None, taken),
                }
            };
            self.count_chain(block);
            if let Some(diamond) = diamond {
                self.announce_sides(diamond, taken);
                self.run_both_sides(diamond, taken);
                self.budget -= diamond.tried;
                self.announce_path(Path::Conditional);
            } else if let Err(fault) = self.leave(block, taken) {
                // Control flow does not carry a join: the lanes that arrived at it are the active ones.
                return Halt::Fault { pc: block.last_pc, lanes: Mask(self.active.into()), fault };
            }
        }
    }

    /// Finds the block at the program counter, and executes its join.
    #[inline(always)]
    fn enter(&mut self) -> Result<Entered, Halt> {
        self.arrived = self.flow.active();
        if self.budget == 0 || self.arrived.is_empty() || self.barriers.waits {
            return Err(Halt::Over);
        }
        // An address between words becomes an index beyond the end.
        let place = self.flow.pc().wrapping_sub(self.base).rotate_right(2) as usize;
        self.block = self.lowered.starts.get(place).copied().unwrap_or(NONE);
        if self.block == NONE {
            // Rare: the middle of a block, after an indirect branch or after the budget was used up.
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

    /// Executes a block for the active lanes. Returns `false` and counts nothing if some lane cannot load or store.
    #[inline(always)]
    fn run_block(&mut self, number: u32, block: &Block) -> bool {
        // SAFETY: the operations are a block's.
        unsafe { self.execute(block.start, block.end) };
        if !self.access(block) {
            return false;
        }
        self.budget -= block.size;
        // SAFETY: the number is that of the block.
        unsafe { self.count_block(number) };
        self.announce_block(number);
        if O::PATHS {
            self.chained += 1;
        }
        true
    }

    /// Returns the node of code that runs instead of the block, if any.
    #[inline(always)]
    fn node(&self) -> Option<u32> {
        match &self.runner {
            Some(runner) if !O::ENABLED => runner.node(self.block, self.budget),
            _ => None,
        }
    }

    /// Runs code instead of a block. Counts the instructions that ran before, and those of the code.
    #[inline(always)]
    fn run_code(&mut self, node: u32, block: &Block) -> Exit {
        self.count_chain(block);
        let Arrivals { barriers, warp, waits } = &mut self.barriers;
        let mut cursor = Cursor {
            lowered: self.lowered,
            runner: None,
            base: self.base,
            lanes: &mut *self.lanes,
            memory: &mut *self.memory,
            barriers: Arrivals { barriers, warp: *warp, waits: *waits },
            flow: &mut *self.flow,
            statistics: &mut *self.statistics,
            runs: &mut *self.runs,
            observer: &mut Silent,
            warps: self.warps,
            most: self.most,
            budget: self.budget,
            counted: self.budget,
            active: self.active,
            block: self.block,
            arrived: self.arrived,
            announced: self.announced,
            chained: self.chained,
        };
        let exit = match &mut self.runner {
            Some(runner) => runner.run(node, &mut cursor),
            None => Exit::Before(self.block),
        };
        (self.budget, self.counted) = (cursor.budget, cursor.budget);
        (self.active, self.block, self.arrived) = (cursor.active, cursor.block, cursor.arrived);
        (self.most, self.warps) = (cursor.most, cursor.warps);
        let Arrivals { warp: last, waits, .. } = cursor.barriers;
        self.barriers.waits = waits;
        if let (true, Some(warps)) = (last != self.barriers.warp, self.warps) {
            self.barriers.warp = last;
            // SAFETY: the other cursor, which has referred to the warp's flow, is not used any more.
            self.flow = &mut unsafe { warps.warp(last) }.flow;
        }
        self.announce_path(Path::Compiled);
        exit
    }

    /// Executes the flow after a block, and enters the next one.
    pub(super) fn continue_after(&mut self, block: &Block, taken: u32) -> Result<(), Halt> {
        if let Err(fault) = self.leave(block, taken) {
            return Err(Halt::Fault { pc: block.last_pc, lanes: Mask(self.active.into()), fault });
        }
        loop {
            match self.enter() {
                Ok(Entered::Block) => break,
                Ok(Entered::Away) => {}
                Err(Halt::Over) if self.pass_turn() => {}
                Err(halt) => return Err(halt),
            }
        }
        self.counted = self.budget;
        Ok(())
    }

    /// Passes the turn to the next warp, if this one has ended or waits. Returns `false` if the block must pass the
    /// turn, or if this warp keeps it.
    fn pass_turn(&mut self) -> bool {
        let Arrivals { barriers, warp, waits } = &mut self.barriers;
        let (Some(warps), false) = (&mut self.warps, self.budget == 0) else { return false };
        let remaining = warps.watchdog.saturating_sub(self.statistics.instructions);
        if warps.passes == 0 || remaining == 0 || self.statistics.instructions == 0 {
            return false;
        }
        if self.flow.finished() {
            barriers.finish(*warp, self.lanes.shared.races_mut());
        }
        let current_runs = !self.flow.finished() && barriers.waits_for(*warp).is_none();
        let can_run = |other: usize| match other == *warp {
            true => current_runs,
            // SAFETY: the block, which has the warps, is running.
            false => barriers.waits_for(other).is_none() && !unsafe { warps.has_ended(other) },
        };
        let Some(next) = (*warp + 1..warps.count()).chain(0..=*warp).find(|other| can_run(*other)) else {
            return false;
        };
        warps.passes -= 1;
        (*warp, *waits) = (next, false);
        // SAFETY: from here on, the cursor and its lanes refer to this warp instead of the one before.
        let Parts { flow, rows, a, c, inputs, outputs, .. } = unsafe { warps.warp(next) }.parts();
        // SAFETY: all warps of a block have rows of the same layout.
        unsafe { self.lanes.change((rows, a, c), (inputs, outputs), (next as u32, flow.dead().0 as u32)) };
        self.flow = flow;
        self.most = SLICE.min(u32::try_from(remaining).unwrap_or(u32::MAX));
        self.budget = self.most;
        self.announced = self.budget;
        true
    }

    /// Sets the counts and lanes with which code runs.
    pub(super) fn give_counts(&self, state: &mut State) {
        (state.budget, state.active) = (self.budget as i32, self.active.into());
        state.room = self.flow.room() as u32;
    }

    /// Adds the counts of code.
    pub(super) fn take_counts(&mut self, state: &mut State) {
        let tried = self.budget - state.budget as u32;
        self.statistics.instructions += u64::from(tried - take(&mut state.arrivals));
        self.statistics.lane_instructions += take(&mut state.lane_instructions);
        self.statistics.divergent_branches += take(&mut state.divergent);
        self.budget = state.budget as u32;
        self.counted = self.budget;
        if state.active != u64::from(self.active) {
            // Lanes have left nodes while others have stayed. The code has cleared them in the row of the active lanes.
            let [broke, returned] = take(&mut state.gone).map(Mask);
            self.flow.stay(Mask(state.active), broke, returned);
            self.active = state.active as u32;
            self.lanes.sets[ACTIVE] = self.active;
        }
    }

    /// Returns the step after a block that has run.
    #[inline(always)]
    fn step<W: Wide>(&mut self, wide: W, block: &Block) -> Step<'a> {
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
            // If no lane leaves, nothing is parked.
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

    /// Updates the flow after a block: executes its last instruction, if that is control flow, and its exit.
    #[inline(always)]
    fn leave(&mut self, block: &Block, taken: u32) -> Result<(), Fault> {
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
            // Once per warp, whatever lanes are active. (9.7)
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

    /// Moves the flow to the join of a diamond, for the side that runs last. Returns `false` if its branch faults.
    #[inline(always)]
    fn meet(&mut self, diamond: &Diamond, taken: u32) -> bool {
        let [_, (_, last)] = diamond.order(taken, self.active & !taken);
        self.flow.meet(diamond.join, Mask(last.into()))
    }

    /// Runs the two sides of a branch that divides the active lanes, first one, then the other. The lanes of the
    /// second side stay activated. Adds their counts to the statistics, but does not change the budget. Announces
    /// nothing.
    #[inline(always)]
    fn run_both_sides(&mut self, diamond: &Diamond, taken: u32) {
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
    /// instructions. Announces nothing.
    #[inline(always)]
    fn run_side(&mut self, side: Side) -> u32 {
        let Some(block) = self.lowered.blocks.get(side.block as usize) else { return 0 };
        // SAFETY: the block exists, and this is its number.
        unsafe { self.execute_block(side.block, block) };
        block.size
    }

    /// Announces the two sides of the branch of the block.
    #[inline(always)]
    fn announce_sides(&mut self, diamond: &Diamond, taken: u32) {
        let (lowered, key) = (self.lowered, Key::Divides.of(self.block));
        let sides = diamond.order(taken, self.active & !taken);
        together(self.observer, key, Mask(self.active.into()), Mask(sides[0].1.into()), |observer| {
            lowered.announce_sides(sides, observer);
        });
    }

    /// Runs the code after a `joinat`: a branch, its sides and their join. The flow is the same as before it.
    #[inline(always)]
    fn run_conditional<W: Wide>(&mut self, wide: W, conditional: &Conditional) {
        let Conditional { branch, guard, diamond, .. } = conditional;
        self.announce_chain(2);
        // SAFETY: lowering numbers only blocks that it creates.
        let block = unsafe { self.lowered.blocks.get_unchecked(*branch as usize) };
        self.budget -= block.size;
        // SAFETY: the block has this number.
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

    /// Announces the code after the `joinat` of the block: [`run_conditional`](Self::run_conditional).
    #[inline(always)]
    fn announce_conditional(&mut self, Conditional { branch, diamond, .. }: &Conditional, taken: u32) {
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

    /// Runs a block that a chain does not run, or a part of it. The last instruction belongs to the reference
    /// interpreter, or is a load or store that some lane cannot execute; or the budget does not cover the block; or
    /// the block is entered in its middle. The lanes are already activated.
    #[inline(always)]
    fn run_apart<W: Wide>(
        &mut self,
        wide: W,
        Position { block: number, first, joined, refused }: Position,
        issued: &mut [u64],
    ) -> Option<Stop> {
        let lowered = self.lowered;
        let (block, inside) = (&lowered.blocks[number as usize], &lowered.inside[number as usize]);
        let active = self.flow.active();
        self.active = active.0 as u32;
        let end_of = |instructions: u32| match instructions {
            0 => block.start,
            _ => inside.ends[instructions as usize - 1],
        };
        let mut ran = |cursor: &mut Self, some: Range<u32>| {
            let instructions = some.end - some.start;
            cursor.budget -= instructions;
            cursor.count(instructions);
            announce_issues(cursor.observer, inside, some.clone(), active);
            if instructions == block.size {
                cursor.runs[number as usize] += 1;
                cursor.announce_chain(block.size);
            } else {
                inside.places[some.start as usize..some.end as usize]
                    .iter()
                    .for_each(|place| issued[*place] += 1);
                cursor.announce_path(Path::Part);
            }
        };
        if block.size - first > self.budget {
            // The budget ends before the last instruction.
            let until = first + self.budget;
            // SAFETY: both are ends of instructions of the block, the first before the second.
            unsafe { self.execute(end_of(first), end_of(until)) };
            ran(self, first..until);
            self.flow.advance(self.base + 4 * inside.places[until as usize] as u32);
            return Some(Stop::Over);
        }
        let done = !refused && {
            // SAFETY: from an instruction of the block to the end of it.
            unsafe { self.execute(end_of(first), block.end) };
            self.access(block) && !matches!(block.last, Last::Reference)
        };
        ran(self, first..if done { block.size } else { block.size - 1 });
        if !done {
            self.flow.advance(block.last_pc);
            return Some(Stop::Reference { joined: joined.filter(|_| block.size == 1) });
        }
        let taken = block.last.guard().map_or(0, |guard| self.executing(wide, guard));
        self.leave(block, taken).err().map(|fault| self.fault(block.last_pc, active, fault))
    }

    /// Returns the active lanes whose predicate holds. (2.2)
    #[inline(always)]
    fn executing<W: Wide>(&self, wide: W, test: &Test) -> u32 {
        if test.always {
            return self.active;
        }
        self.active & wide.select(&test.table, self.lanes.c(test.c)) as u32
    }

    /// Executes the load or store at the end of a block, if any, and the operations on its data. Returns `false` if
    /// some lane cannot execute it.
    #[inline(always)]
    fn access(&mut self, block: &Block) -> bool {
        let Last::Memory(number) = block.last else { return true };
        let lower::Access { transfer, after } = &self.lowered.accesses[number as usize];
        // SAFETY: transfers were lowered for the level that `Fast` runs on.
        let moved = unsafe { (transfer.mover)(self.lanes, self.memory, transfer) };
        if moved {
            // SAFETY: lowering created these operations for the access.
            unsafe { self.execute(after.start, after.end) };
        }
        moved
    }

    /// Executes a block without load or store for lanes that are already activated, and counts it. Announces
    /// nothing.
    ///
    /// # Safety
    /// The block belongs to the lowered program and has this number.
    #[inline(always)]
    unsafe fn execute_block(&mut self, number: u32, block: &Block) {
        // SAFETY: the operations belong to a block, and the number is that of the block.
        unsafe {
            self.execute(block.start, block.end);
            self.count_block(number);
        }
    }

    /// Counts a block that lanes have executed as a whole.
    ///
    /// # Safety
    /// The lowered program has a block with this number.
    #[inline(always)]
    unsafe fn count_block(&mut self, number: u32) {
        // SAFETY: the number is that of a block, and `run_blocks` checks that each block has a count.
        unsafe { *self.runs.get_unchecked_mut(number as usize) += 1 };
    }

    /// Announces a block that the active lanes have executed as a whole.
    #[inline(always)]
    fn announce_block(&mut self, number: u32) {
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
    unsafe fn execute(&mut self, start: u32, end: u32) {
        // SAFETY: the caller guarantees that these operations exist.
        let operations = unsafe { self.lowered.operations.get_unchecked(start as usize..end as usize) };
        for (handler, operation) in operations {
            // SAFETY: operations were lowered for the level on which `Fast` runs.
            unsafe { handler(self.lanes, operation) };
        }
    }

    /// Counts instructions that ran for the active lanes.
    #[inline(always)]
    fn count(&mut self, instructions: u32) {
        self.statistics.instructions += u64::from(instructions);
        self.statistics.lane_instructions += u64::from(instructions * self.active.count_ones());
    }

    /// Counts the instructions that ran for the active lanes since the chain was entered. `last` is its last block.
    #[inline(always)]
    fn count_chain(&mut self, last: &Block) {
        self.count(self.counted - self.budget);
        self.announce_chain(last.size);
    }

    /// Announces the path of the blocks that ran since the latest announcement; the last one has `size` instructions.
    #[inline(always)]
    fn announce_chain(&mut self, size: u32) {
        self.announce_path(match (self.chained, size) {
            (0 | 1, 1) => Path::Single,
            (0 | 1, _) => Path::Block,
            _ => Path::Chain,
        });
    }

    /// Announces the path of the instructions that ran since the latest announcement.
    #[inline(always)]
    fn announce_path(&mut self, path: Path) {
        if O::PATHS {
            self.observer.path(path, (self.announced - self.budget).into());
            (self.announced, self.chained) = (self.budget, 0);
        }
    }

    #[cold]
    fn fault(&mut self, pc: u32, lanes: Mask, fault: Fault) -> Stop {
        if O::ENABLED {
            self.observer.event(Event::Trap { mask: lanes });
        }
        Stop::Trap(Trap { pc, lanes, cause: Cause::Flow(fault) })
    }
}

impl Diamond {
    /// Returns the sides in the order in which they run, and the lanes of each.
    #[inline(always)]
    fn order(&self, taken: u32, not: u32) -> [(Side, u32); 2] {
        let mut sides = [(self.taken, taken), (self.not, not)];
        if !TAKEN_SIDE_RUNS_FIRST {
            sides.reverse();
        }
        sides
    }
}
