//! Runs warps: chains of blocks, linked code that replaces blocks, and the steps between two chains.
//!
//! A chain is a sequence of blocks that run completely. Between two chains, the warp executes an instruction that only
//! the reference interpreter can execute, or a part of a block. A third possibility is a load or store that the fast
//! path cannot execute for some lane. [`Cursor`] is the position of a warp.

use std::ops::Range;

use reconverge_simt::level::Task;
use reconverge_simt::memory::{Picked, Store};
use reconverge_simt::wide::Wide;
use reconverge_simt::{Event, Identity, Level, Mask, Observer, Path, Silent, Trap};

use super::Fast;
use super::announce::announce_issues;
use super::compiled::{Exit, Runner};
use super::cursor::{Arrivals, Cursor, Entered, Halt, Position, Step};
use super::lanes::Lanes;
use super::lower::{Block, Last, Lowered, NONE};
use super::memory::{Move, place};
use super::words::Reach;
use super::words::Transfer;
use crate::block::{self, Executor, Ran};
use crate::context::{Common, Context, Turn};
use crate::flow::{Fault, WARP};
use crate::launch::Setup;
use crate::reference::{self, Reference};
use crate::state::{Local, Parts};
use crate::trap::Cause;

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
        // The next launch may provide other input words. So this code removes the input words of the previous launch.
        block.warps.iter_mut().for_each(|warp| warp.inputs.clear());
        self.set_uniforms(&mut block, setup);
        Some(block)
    }

    fn keep(&self, block: Box<block::Block>) {
        self.spare.keep(block);
    }

    fn run<G: Store, O: Observer>(&self, turn: &mut Turn<'_, G, O>, most: u32) -> Ran {
        // Only blocks report events, so linked code does not run if an observer receives events.
        let mut runner = if O::ENABLED { None } else { self.runner(turn.context, turn.global.layout()) };
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
    /// Sets the rows that hold constants of c[].
    fn set_uniforms(&self, block: &mut block::Block, setup: &Setup) {
        for warp in &mut block.warps {
            let rows = warp.file_mut().with_room_mut();
            for (uniform, place) in &self.lowered.uniforms {
                rows[place.number()].0 = [uniform.word(&setup.constants); WARP];
            }
        }
    }
}

/// The run of a warp, as a task. The warp runs for up to `most` instructions, until the warp ends or waits at a
/// barrier.
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
            // s[] begins with the header and the parameters. Operations that read these bytes do not check whether the
            // bytes have changed. After a change, the reference interpreter continues.
            if turn.common.shared.given_changed() && tried < most && !turn.warp.flow.finished() {
                let Ran { tried: then, end } = Reference.run(turn, most - tried);
                return Ran { tried: tried + then, end };
            }
        }
    }
}

/// The reason that the run of blocks stops.
enum Stop {
    /// The instruction budget is used up, or the warp has ended.
    Over,
    /// The reference interpreter must execute the instruction at the program counter. If the warp has already executed
    /// this instruction's join, `joined` contains the lanes that were active before the join.
    Reference { joined: Option<Mask> },
    /// The program trapped.
    Trap(Trap<Cause>),
}

/// Runs blocks until another component must continue. Adds the number of instructions that the warp attempts to
/// `tried`, which does not exceed `most`. After a switch to another warp, `tried` and `most` belong to the new warp.
#[inline(always)]
fn run_blocks<W: Wide, G: Store, O: Observer>(
    wide: W,
    lowered: &Lowered,
    mut runner: Option<&mut Runner<'_>>,
    turn: &mut Turn<'_, G, O>,
    tried: &mut u32,
    most: &mut u32,
) -> Stop {
    let &mut Turn { context, ref mut common, ref mut warp, number, ref mut global, ref mut observer, warps } =
        turn;
    let Parts { flow, rows, a, c, mut local, inputs, outputs } = warp.parts();
    let Common { shared, statistics, issued, runs, barriers, .. } = &mut **common;
    assert!(runs.len() >= lowered.blocks.len(), "the block was made for this program");
    // SAFETY: all operations that run on these lanes were lowered with the layout of `tables`.
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
        match wide.call(Chain { cursor: &mut cursor, runner: runner.as_deref_mut() }) {
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
        // SAFETY: the cursor, which referred to the warp, is not used after this line.
        turn.warp = unsafe { warps.warp(last) };
    }
    stop
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

    fn whole(&mut self, segment: u8, address: u32, writes: bool) -> Option<(u32, *mut [u8])> {
        let (base, limit) = self.context.segments.linear(segment)?;
        let (start, bytes) = self.global.whole(base.checked_add(address)?, writes)?;
        // The segment may begin inside the buffer, or the buffer may begin inside the segment. Either the segment or
        // the buffer may end first.
        let before = base.saturating_sub(start) as usize;
        let first = start.saturating_sub(base);
        let most = usize::try_from(limit.checked_sub(first)?).ok()?.saturating_add(1);
        let count = bytes.len().checked_sub(before)?.min(most);
        // The result has `count` bytes of the buffer, from the byte `before` on.
        let from = bytes.cast::<u8>().wrapping_add(before);
        Some((first, std::ptr::slice_from_raw_parts_mut(from, count)))
    }

    fn layout(&self) -> Option<Identity> {
        self.global.layout()
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
        let Memory { wide, context, global, .. } = self;
        wide.eight().call(Move { context, lanes, global: &mut **global, transfer })
    }
}

/// A chain of blocks, as a task. Each block runs completely, and the budget covers the whole block.
struct Chain<'a, 'c, 'w, 'r, O> {
    cursor: &'a mut Cursor<'c, 'w, O>,
    /// Linked code, if any.
    runner: Option<&'a mut Runner<'r>>,
}

impl<O: Observer> Task for Chain<'_, '_, '_, '_, O> {
    type Output = Halt;

    #[inline(always)]
    fn run<W: Wide>(self, wide: W) -> Halt {
        // The chain changes the cursor directly and makes no copy of the cursor. With a copy, a program with frequent
        // barriers (`scan`) spent a sixth of its time on reading values from the copy shortly after writing them.
        // Without a copy, a program with a long chain (`collatz`) is a twelfth slower on the fast engine. The compiled
        // engine compensates for this loss.
        let Chain { cursor, runner } = self;
        (cursor.announced, cursor.chained) = (cursor.budget, 0);
        let halt = cursor.run_chain(wide, runner);
        (cursor.announced, cursor.chained) = (cursor.budget, 0);
        halt
    }
}

impl<O: Observer> Cursor<'_, '_, O> {
    #[inline(always)]
    fn run_chain<W: Wide>(&mut self, wide: W, mut runner: Option<&mut Runner<'_>>) -> Halt {
        loop {
            match self.enter() {
                Ok(Entered::Block) => {}
                Ok(Entered::Away) => continue,
                Err(halt) => return halt,
            }
            self.counted = self.budget;
            let (block, diamond, taken) = loop {
                // SAFETY: all block numbers come from lowering, which has created the blocks.
                let mut block = unsafe { self.lowered.blocks.get_unchecked(self.block as usize) };
                let exit = match &mut runner {
                    Some(runner) if !O::ENABLED => match runner.node(self.block, self.budget) {
                        Some(node) => self.run_code(runner, node, block),
                        None => Exit::Apart(self.block),
                    },
                    _ => Exit::Apart(self.block),
                };
                match exit {
                    Exit::Before(next) => {
                        self.block = next;
                        continue;
                    }
                    Exit::Halt(halt) => return halt,
                    Exit::Apart(number) => {
                        self.block = number;
                        // SAFETY: all block numbers come from lowering, which has created the blocks.
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
                // A control-flow instruction cannot have a join. So the active lanes are exactly the lanes that arrived
                // at the instruction.
                return Halt::Fault { pc: block.last_pc, lanes: Mask(self.active.into()), fault };
            }
        }
    }

    /// Runs linked code instead of a block. Counts the instructions of the linked code, and the instructions of the
    /// chain before this code.
    #[inline(always)]
    fn run_code(&mut self, runner: &mut Runner<'_>, node: u32, block: &Block) -> Exit {
        self.count_chain(block);
        let Arrivals { barriers, warp, waits } = &mut self.barriers;
        let mut cursor = Cursor {
            lowered: self.lowered,
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
        let exit = runner.run(node, &mut cursor);
        (self.budget, self.counted) = (cursor.budget, cursor.budget);
        (self.active, self.block, self.arrived) = (cursor.active, cursor.block, cursor.arrived);
        (self.most, self.warps) = (cursor.most, cursor.warps);
        let Arrivals { warp: last, waits, .. } = cursor.barriers;
        self.barriers.waits = waits;
        if let (true, Some(warps)) = (last != self.barriers.warp, self.warps) {
            self.barriers.warp = last;
            // SAFETY: the cursor that referred to the warp's flow state is no longer used.
            self.flow = &mut unsafe { warps.warp(last) }.flow;
        }
        self.announce_path(Path::Compiled);
        exit
    }

    /// Runs a block, or a part of a block, that a chain cannot run. There are four reasons. The reference interpreter
    /// must execute the last instruction, or some lane cannot execute the load or store at the end. The budget does not
    /// cover the block. The warp enters the block in its middle. The lanes are already activated.
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
            // The budget is used up before the last instruction.
            let until = first + self.budget;
            // SAFETY: both positions are ends of instructions of the block. The second position is not before the first
            // position.
            unsafe { self.execute(end_of(first), end_of(until)) };
            ran(self, first..until);
            self.flow.advance(self.base + 4 * inside.places[until as usize] as u32);
            return Some(Stop::Over);
        }
        let done = !refused && {
            // SAFETY: the range contains the operations from an instruction of the block to the end of the block.
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

    #[cold]
    fn fault(&mut self, pc: u32, lanes: Mask, fault: Fault) -> Stop {
        if O::ENABLED {
            self.observer.event(Event::Trap { mask: lanes });
        }
        Stop::Trap(Trap { pc, lanes, cause: Cause::Flow(fault) })
    }
}
