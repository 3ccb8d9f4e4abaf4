//! The warps of one block: the order in which warps run, and how warps wait for each other.
//!
//! The order is fixed and does not depend on the number of threads. The warp with the lowest number runs until it waits
//! at a barrier, ends, or has run [`SLICE`] instructions. The block then selects the next warp that can run, in cyclic
//! order of the numbers. A warp may spin on a lock or on shared memory. Because of the slices, this warp does not stop
//! the other warps. Graphics stages use a block of one warp.

// An engine can switch from warp to warp within one call. A comment in `Block` states why such a switch is sound.
#![allow(unsafe_code)]

use std::collections::BTreeMap;

use reconverge_simt::memory::Store;
use reconverge_simt::{Event, GroupId, GroupTrap, Level, Observer, Silent, Step, Trap, stop};

use crate::context::{Common, Context, Turn};
use crate::launch::Setup;
use crate::state::Warp;
use crate::trap::{Access, Cause, SharedAccess};
use crate::turns::Warps;

/// Number of instructions that a warp runs before the block switches to another warp. Any number produces a legal
/// order. If the warps of a program race, the results of the program depend on this number.
pub const SLICE: u32 = 1024;

/// Maximum number of switches to another warp before an engine must return to the block. After this number of switches,
/// the block checks whether the run must stop.
const PASSES: u32 = 1024;

/// Maximum number of instructions that run during the search for a write that races with a read. The reading warp does
/// not run during the search.
const LOOK_AHEAD: u64 = 1 << 20;

/// An engine that is ready to execute one program, warp by warp.
pub trait Executor: Sync {
    /// Returns the level of the vector instructions that set up warps. `None` means that scalar code sets up warps lane
    /// by lane.
    fn level(&self) -> Option<Level> {
        None
    }

    /// Returns the general registers that the start of a warp sets to zero, or `None` for all registers. `_whole` means
    /// that all lanes of the warp run.
    fn cleared(&self, _whole: bool) -> Option<&[u8]> {
        None
    }

    /// Adds the data of the engine to a new block. The block belongs to a launch with this setup.
    fn prepare(&self, _block: &mut Block, _setup: &Setup) {}

    /// Takes a block of a graphics stage that [`Executor::keep`] has stored. Prepares the block for a launch with this
    /// setup, and returns the block.
    fn spare(&self, _setup: &Setup) -> Option<Box<Block>> {
        None
    }

    /// Stores a block of a graphics stage for a later launch.
    fn keep(&self, _block: Box<Block>) {}

    /// Runs a warp for at least one and up to `most` instructions. Stops early if the warp ends or waits at a barrier.
    fn run<G: Store, O: Observer>(&self, turn: &mut Turn<'_, G, O>, most: u32) -> Ran;

    /// The data of the engine contains counts of issued instructions. Adds these counts to [`Common::issued`].
    fn settle(&self, _common: &mut Common) {}
}

/// The result of running a warp for some instructions.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Ran<End = ()> {
    /// Number of instructions that the warp has attempted. An instruction that traps is included. If the `join` of an
    /// instruction switches the warp to another path, the instruction does not execute, but is also included.
    pub tried: u32,
    /// Result of the last instruction.
    pub end: Result<End, Trap<Cause>>,
}

/// A block that is running.
#[derive(Clone, Debug)]
pub struct Block {
    /// The state that the warps share.
    pub common: Common,
    /// The warps by number.
    pub warps: Vec<Warp>,
    /// Number of the block's first warp among all warps of the launch.
    pub first_group: usize,
    current: usize,
    slice: u32,
    /// Indices of warps that do not run. The search for a race parks warps in its copy of the block.
    parked: Vec<usize>,
}

impl Block {
    /// Creates a block that is about to start.
    pub fn new(common: Common, warps: Vec<Warp>) -> Self {
        let mut block = Block { common, warps, first_group: 0, current: 0, slice: 0, parked: Vec::new() };
        block.start();
        block
    }

    /// Changes this block to the start of another block: the block at `index` of the same launch. To set up the warps,
    /// calls `start` for each warp in order of the numbers. s[] keeps its contents.
    pub fn begin(&mut self, index: [u32; 2], start: impl FnMut(&mut Warp)) {
        self.common.begin(index);
        (self.current, self.slice) = (0, 0);
        self.warps.iter_mut().for_each(start);
        self.start();
    }

    /// Selects the first warp to run.
    fn start(&mut self) {
        for (number, warp) in self.warps.iter().enumerate() {
            if warp.flow.finished() {
                self.common.barriers.finish(number, self.common.shared.races_mut());
            }
        }
        self.choose();
    }

    /// Returns the current warp, which is the warp that runs next. After the end of the block, the current warp is the
    /// warp that ran last.
    pub fn current(&self) -> &Warp {
        &self.warps[self.current]
    }

    /// Returns the index of the current warp in [`Block::warps`].
    pub(crate) fn current_place(&self) -> usize {
        self.current
    }

    /// Returns the current warp for changes, for example for fault injection. If the caller has changed the warp's flow
    /// state, the caller must call [`Block::yield_turn`].
    pub fn current_mut(&mut self) -> &mut Warp {
        &mut self.warps[self.current]
    }

    /// If the caller has ended the current warp by a change, selects another warp to run next.
    pub fn yield_turn(&mut self) {
        self.pass_turn();
    }

    /// Returns the id of the current warp for messages.
    pub fn group(&self) -> GroupId {
        GroupId::Warp { block: self.common.index, warp: self.current().number }
    }

    /// Runs the current warp for at least one and up to `most` instructions. Attempts no instruction if the block has
    /// ended, the watchdog stops the block, or every warp waits.
    #[inline]
    pub fn advance<E: Executor, G: Store, O: Observer>(
        &mut self,
        executor: &E,
        context: &Context,
        global: &mut G,
        observer: &mut O,
        most: u32,
    ) -> Ran<Step> {
        self.advance_by(executor, context, global, observer, most, 0)
    }

    /// Runs the current warp like [`Block::advance`], but the engine may switch to another warp up to `passes` times.
    #[inline]
    fn advance_by<E: Executor, G: Store, O: Observer>(
        &mut self,
        executor: &E,
        context: &Context,
        global: &mut G,
        observer: &mut O,
        most: u32,
        passes: u32,
    ) -> Ran<Step> {
        let mut ran = self.turn(executor, context, global, observer, most, passes);
        if let Err(Trap { cause: Cause::Unwritten { .. }, .. }) = &ran.end {
            ran.end = ran.end.map_err(|trap| self.explained(executor, context, global, trap));
        }
        ran
    }

    /// Runs the current warp like [`Block::advance`], but does not look for a race with the other warps. The engine may
    /// switch to another warp up to `passes` times.
    fn turn<E: Executor, G: Store, O: Observer>(
        &mut self,
        executor: &E,
        context: &Context,
        global: &mut G,
        observer: &mut O,
        most: u32,
        passes: u32,
    ) -> Ran<Step> {
        if !self.can_run(self.current) {
            return Ran { tried: 0, end: self.end(observer) };
        }
        if O::ENABLED {
            observer.group(self.first_group + self.current);
        }
        let Block { common, warps, current, slice, parked, .. } = self;
        let remaining = context.watchdog.saturating_sub(common.statistics.instructions);
        if remaining == 0 {
            let warp = &warps[*current];
            return Ran { tried: 0, end: Err(stopped(warp, Cause::Timeout(context.watchdog), observer)) };
        }
        let most = most.min(SLICE - *slice).min(u32::try_from(remaining).unwrap_or(u32::MAX));
        let passes = if O::ENABLED || O::PATHS || !parked.is_empty() { 0 } else { passes };
        let all = Warps::new(warps, context.watchdog, passes);
        // SAFETY: `all` refers to the warps of this block. No other reference to the warps is in use.
        let warp = unsafe { all.warp(*current) };
        let warps = (passes > 0 && warp.local_bytes() == 0).then_some(all);
        let mut turn = Turn { context, common, warp, number: *current, global, observer, warps };
        let Ran { tried, end } = executor.run(&mut turn, most);
        *current = turn.number;
        if turn.warps.is_some_and(|warps| warps.passes != passes) {
            *slice = 0;
        }
        *slice += tried;
        if let Err(trap) = end {
            return Ran { tried, end: Err(trap) };
        }
        if self.pass_turn() {
            return Ran { tried, end: Ok(Step::Running) };
        }
        Ran { tried, end: self.end(observer) }
    }

    /// Returns the trap for a read of bytes of s[] that no warp has written. The trap reports a race if another warp
    /// would write these bytes later without a barrier after the read. To find the write, this function continues with
    /// a copy of the block.
    #[cold]
    fn explained<E: Executor>(
        &self,
        executor: &E,
        context: &Context,
        global: &mut dyn Store,
        trap: Trap<Cause>,
    ) -> Trap<Cause> {
        let (Cause::Unwritten { address, bytes }, Some(lane)) = (&trap.cause, trap.lanes.lowest()) else {
            return trap;
        };
        let reader = SharedAccess {
            access: Access::Read,
            pc: trap.pc,
            warp: self.current as u32,
            lane: lane.0.into(),
        };
        let mut block = self.clone();
        block.common.shared.read_by(reader, *address, *bytes);
        let mut global = Overlay { under: global, written: BTreeMap::new() };
        let end = self.common.statistics.instructions + LOOK_AHEAD;
        block.parked.push(self.current);
        if !block.choose() {
            return trap;
        }
        while block.common.statistics.instructions < end && !stop::asked() {
            match block.turn(executor, context, &mut global, &mut Silent, SLICE, 0).end {
                Ok(Step::Running) => {}
                Err(Trap { cause: Cause::Race { address, accesses }, .. }) if accesses[0] == reader => {
                    let [reader, writer] = *accesses;
                    let accesses = Box::new([writer, reader]);
                    return Trap { cause: Cause::Race { address, accesses }, ..trap };
                }
                // All warps have ended, except for the warps in `parked`.
                Ok(Step::Done) => break,
                Err(_) if block.can_run(block.current) => {
                    block.parked.push(block.current);
                    if !block.choose() {
                        break;
                    }
                }
                Err(_) => break,
            }
        }
        trap
    }

    /// Runs the block to its end, or until a request to [stop] all runs.
    ///
    /// # Errors
    /// The program trapped.
    pub fn run<E: Executor, G: Store, O: Observer>(
        &mut self,
        executor: &E,
        context: &Context,
        global: &mut G,
        observer: &mut O,
    ) -> Result<(), GroupTrap<Cause>> {
        self.run_while(executor, context, global, observer, |_| true).map(|_| ())
    }

    /// Runs the block until its end, until a request to [stop] all runs, or until `go_on` returns `false`. From time to
    /// time, this function calls `go_on` with the number of instructions issued so far.
    ///
    /// # Errors
    /// The program trapped.
    pub fn run_while<E: Executor, G: Store, O: Observer>(
        &mut self,
        executor: &E,
        context: &Context,
        global: &mut G,
        observer: &mut O,
        mut go_on: impl FnMut(u64) -> bool,
    ) -> Result<Step, GroupTrap<Cause>> {
        loop {
            match self.advance_by(executor, context, global, observer, SLICE, PASSES).end {
                Ok(Step::Running) if !stop::asked() && go_on(self.common.statistics.instructions) => {}
                Ok(step) => break Ok(step),
                Err(trap) => break Err(self.locate(context, trap)),
            }
        }
    }

    /// Returns the trap, together with the group and the words of the instruction that trapped.
    pub fn locate(&self, context: &Context, trap: Trap<Cause>) -> GroupTrap<Cause> {
        GroupTrap { group: self.group(), words: Some(context.code.words_at(trap.pc)), trap }
    }

    /// Returns whether a warp has not ended and does not wait at a barrier.
    #[inline]
    fn can_run(&self, warp: usize) -> bool {
        !self.warps[warp].flow.finished()
            && self.common.barriers.waits_for(warp).is_none()
            && (self.parked.is_empty() || !self.parked.contains(&warp))
    }

    /// Selects the next warp if the current warp cannot run or has used up its slice. Returns whether a warp can run.
    fn pass_turn(&mut self) -> bool {
        if self.warps[self.current].flow.finished() {
            self.common.barriers.finish(self.current, self.common.shared.races_mut());
        }
        let keeps_turn = self.can_run(self.current) && self.slice < SLICE;
        keeps_turn || self.choose()
    }

    /// Selects the next warp that can run. Returns whether such a warp exists.
    fn choose(&mut self) -> bool {
        let count = self.warps.len();
        // At the start of the block, the search begins with warp 0. Later, the search begins with the warp after the
        // current warp.
        let first = if self.common.statistics.instructions == 0 { 0 } else { self.current + 1 };
        // For speed, the search is a single loop. Two loops, one for each range of warps, would take as long as all
        // other work of a switch at a barrier.
        let mut next = first;
        for _ in 0..count {
            next = if next < count { next } else { 0 };
            if self.can_run(next) {
                (self.current, self.slice) = (next, 0);
                return true;
            }
            next += 1;
        }
        false
    }

    /// Returns the result of a block in which no warp can run. Either all warps have ended, or the remaining warps wait
    /// forever and the block traps.
    #[cold]
    fn end<O: Observer>(&self, observer: &mut O) -> Result<Step, Trap<Cause>> {
        let waiting = || self.common.barriers.waiting();
        let Some((first, _)) = waiting().next() else { return Ok(Step::Done) };
        let all = waiting().map(|(warp, barrier)| (self.warps[warp].number, barrier)).collect();
        Err(stopped(&self.warps[first], Cause::BarrierNever(all), observer))
    }
}

/// Returns the trap of a warp. The warp stopped before it executed its next instruction.
fn stopped<O: Observer>(warp: &Warp, cause: Cause, observer: &mut O) -> Trap<Cause> {
    let lanes = warp.flow.active();
    if O::ENABLED {
        observer.event(Event::Trap { mask: lanes });
    }
    Trap { pc: warp.flow.pc(), lanes, cause }
}

/// Global memory with two parts. Stores go to the part `written`, and do not change the part `under`.
struct Overlay<'a> {
    under: &'a mut dyn Store,
    written: BTreeMap<u32, u8>,
}

impl Store for Overlay<'_> {
    fn load(&mut self, address: u32, into: &mut [u8]) -> bool {
        let exists = self.under.load(address, into);
        if exists && !into.is_empty() {
            let last = address + (into.len() as u32 - 1);
            self.written.range(address..=last).for_each(|(at, byte)| into[(at - address) as usize] = *byte);
        }
        exists
    }

    fn store(&mut self, address: u32, bytes: &[u8]) -> bool {
        let exists = self.under.load(address, &mut vec![0; bytes.len()]);
        if exists {
            self.written.extend((address..).zip(bytes.iter().copied()));
        }
        exists
    }
}
