//! The warps of one block: who runs when, and how they wait for each other.
//!
//! The order is fixed and does not depend on the number of threads: the warp with the lowest number runs until it
//! waits at a barrier, ends, or has had its [`SLICE`] of instructions; then the next one in a circle that can run.
//! Slices are there so that a warp that spins on a lock or on shared memory lets the others proceed. Graphics
//! stages use a block of one warp.

use reconverge_simt::memory::Store;
use reconverge_simt::{Event, Mask, Observer, Statistics, Step, Trap};

use crate::barrier::Barriers;
use crate::fast::{Fast, Running};
use crate::launch::Context;
use crate::reference;
use crate::spaces::Shared;
use crate::state::Warp;
use crate::trap::{Cause, LaunchTrap};

/// Instructions a warp runs before another gets its turn. Any number gives a legal order; this one is part of what
/// "deterministic" means for programs whose warps race.
pub const SLICE: u32 = 1024;

/// What the warps of a block have in common.
#[derive(Clone, Debug)]
pub struct Common {
    /// Index of the block in the grid; `[number, 0]` for graphics stages.
    pub index: [u32; 2],
    /// s[]
    pub shared: Shared,
    /// Barriers.
    pub barriers: Barriers,
    /// What has been counted. Convention: an instruction is counted when it executes, for the lanes that were
    /// active then, predicated off or not; an instruction that its join skips is not counted until it executes.
    /// Divergent branches are `bra`, `ret` and `break` on which the active lanes did not agree.
    pub statistics: Statistics,
    /// By word of the code: how often the instruction there was issued.
    pub issued: Vec<u64>,
    /// By basic block of the fast engine: how often it ran as a whole since `issued` was settled.
    pub runs: Vec<u64>,
}

impl Common {
    /// Counts an instruction, by its place in the code, for the lanes that are active.
    #[inline]
    pub fn count(&mut self, place: Option<usize>, active: Mask) {
        self.statistics.instructions += 1;
        self.statistics.lane_instructions += u64::from(active.count());
        if let Some(issued) = place.and_then(|place| self.issued.get_mut(place)) {
            *issued += 1;
        }
    }
}

/// A block that is running.
#[derive(Clone, Debug)]
pub struct Block {
    /// What its warps have in common.
    pub common: Common,
    /// Its warps by number.
    pub warps: Vec<Warp>,
    current: usize,
    slice: u32,
}

impl Block {
    /// A block about to start, whose program has `words` words.
    pub fn new(index: [u32; 2], shared: Shared, warps: Vec<Warp>, words: usize) -> Self {
        let barriers = Barriers::new(warps.len());
        let issued = vec![0; words];
        let common =
            Common { index, shared, barriers, statistics: Statistics::default(), issued, runs: Vec::new() };
        let mut block = Block { common, warps, current: 0, slice: 0 };
        block.start();
        block
    }

    /// Becomes another block of the same launch, about to start, once `start` has made of each warp by its number what
    /// it is then. s[] stays as it is.
    pub fn begin(&mut self, index: [u32; 2], start: impl FnMut(&mut Warp)) {
        let Block { common, warps, current, slice } = self;
        let Common { index: own_index, shared: _, barriers, statistics, issued, runs } = common;
        (*own_index, *statistics) = (index, Statistics::default());
        barriers.begin();
        issued.fill(0);
        runs.fill(0);
        (*current, *slice) = (0, 0);
        warps.iter_mut().for_each(start);
        self.start();
    }

    /// Gives the first turn.
    fn start(&mut self) {
        for (number, warp) in self.warps.iter().enumerate() {
            if warp.flow.finished() {
                self.common.barriers.finish(number);
            }
        }
        self.choose();
    }

    /// The warp whose turn it is; after the end, the last that ran.
    pub fn current(&self) -> &Warp {
        &self.warps[self.current]
    }

    /// Executes one instruction of the warp whose turn it is.
    ///
    /// # Errors
    /// The program trapped; the block stands at the instruction that did.
    pub fn step<G: Store, O: Observer>(
        &mut self,
        context: &Context,
        global: &mut G,
        observer: &mut O,
    ) -> Result<Step, Trap<Cause>> {
        let warp = &mut self.warps[self.current];
        if warp.flow.finished() || self.common.barriers.waits_for(self.current).is_some() {
            return self.nobody_can_run(observer);
        }
        if self.common.statistics.instructions >= context.watchdog {
            return Err(stopped(warp, Cause::Timeout(context.watchdog), observer));
        }
        reference::step(context, &mut self.common, warp, global, observer)?;
        self.slice += 1;
        self.go_on(observer)
    }

    /// After instructions of the current warp: whose turn it is now.
    fn go_on<O: Observer>(&mut self, observer: &mut O) -> Result<Step, Trap<Cause>> {
        if self.warps[self.current].flow.finished() {
            self.common.barriers.finish(self.current);
        }
        let goes_on = !self.warps[self.current].flow.finished()
            && self.common.barriers.waits_for(self.current).is_none()
            && self.slice < SLICE;
        if !goes_on && !self.choose() {
            return self.nobody_can_run(observer);
        }
        Ok(Step::Running)
    }

    /// The same with the fast engine, up to `most` instructions of the warp whose turn it is.
    ///
    /// # Errors
    /// The program trapped; the block stands at the instruction that did.
    pub fn stride<G: Store, O: Observer>(
        &mut self,
        fast: &Fast,
        context: &Context,
        global: &mut G,
        observer: &mut O,
        most: u32,
    ) -> Result<Step, Trap<Cause>> {
        let warp = &mut self.warps[self.current];
        if warp.flow.finished() || self.common.barriers.waits_for(self.current).is_some() {
            return self.nobody_can_run(observer);
        }
        let left = context.watchdog.saturating_sub(self.common.statistics.instructions);
        if left == 0 {
            return Err(stopped(warp, Cause::Timeout(context.watchdog), observer));
        }
        let most = most.min(SLICE - self.slice).min(u32::try_from(left).unwrap_or(u32::MAX));
        let common = &mut self.common;
        let mut running = Running { context, common, warp, number: self.current, global, observer };
        let (tried, result) = fast.run(&mut running, most);
        self.slice += tried;
        result?;
        self.go_on(observer)
    }

    /// Runs to the end.
    ///
    /// # Errors
    /// The program trapped.
    pub fn run<G: Store, O: Observer>(
        &mut self,
        context: &Context,
        global: &mut G,
        observer: &mut O,
    ) -> Result<(), LaunchTrap> {
        // What happens to data is announced by the reference interpreter only.
        let fast = context.fast.as_ref().filter(|_| !O::DATA);
        let end = loop {
            let step = match fast {
                Some(fast) => self.stride(fast, context, global, observer, SLICE),
                None => self.step(context, global, observer),
            };
            match step {
                Ok(Step::Running) => {}
                Ok(Step::Done) => break Ok(()),
                Err(trap) => break Err(self.locate(context, trap)),
            }
        };
        if let Some(fast) = fast {
            fast.settle(&mut self.common);
        }
        end
    }

    /// The trap with its place in the launch.
    pub fn locate(&self, context: &Context, trap: Trap<Cause>) -> LaunchTrap {
        LaunchTrap {
            block: self.common.index,
            warp: self.current().number,
            words: context.code.words_at(trap.pc),
            trap,
        }
    }

    /// Gives the turn to the next warp that can run; whether there is one.
    fn choose(&mut self) -> bool {
        let count = self.warps.len();
        let able = |warp: &usize| {
            !self.warps[*warp].flow.finished() && self.common.barriers.waits_for(*warp).is_none()
        };
        // At the start the circle begins with warp 0, later with the one after the current.
        let first = if self.common.statistics.instructions == 0 { 0 } else { self.current + 1 };
        let next = (0..count).map(|place| (first + place) % count).find(able);
        if let Some(next) = next {
            self.current = next;
            self.slice = 0;
        }
        next.is_some()
    }

    /// Either all have ended or the rest waits for ever.
    fn nobody_can_run<O: Observer>(&self, observer: &mut O) -> Result<Step, Trap<Cause>> {
        let waiting: Vec<(u32, u8)> = self
            .common
            .barriers
            .waiting()
            .map(|(warp, barrier)| (self.warps[warp].number, barrier))
            .collect();
        match self.common.barriers.waiting().next() {
            Some((first, _)) => Err(stopped(&self.warps[first], Cause::BarrierNever(waiting), observer)),
            None => Ok(Step::Done),
        }
    }
}

/// A warp that is stopped where it stands, without having executed anything.
fn stopped<O: Observer>(warp: &Warp, cause: Cause, observer: &mut O) -> Trap<Cause> {
    let lanes = warp.flow.active();
    if O::ENABLED {
        observer.event(Event::Trap { mask: lanes });
    }
    Trap { pc: warp.flow.pc(), lanes, cause }
}
