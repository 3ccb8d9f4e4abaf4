//! Runs launches: to the end, with an observer, or step by step. A step is one instruction.
//!
//! # Order and guarantees
//!
//! A launch has the result, the traps and the counts of a sequential run. In a sequential run, the blocks (for
//! graphics, the warps) execute **one after another in the order of their index**, x before y. Each block runs to its
//! end. `block.rs` fixes the order of the warps in a block. With several threads ([`Options::jobs`]), blocks run in
//! batches. Each block accesses a view of global memory, and the engine commits the views in the order of the blocks.
//! If a block has read a byte that an earlier block of the batch changed, the engine runs the block again (see
//! [`reconverge_simt::memory`]). The engine accepts the view of a block only if a sequential run would give the block
//! the same bytes to read. The result, including atomics, is therefore the same for any number of threads. If a block
//! waits for a *later* block, the program does not end, and the watchdog stops the program. Such a program may also run
//! without an end on hardware.

use std::ops::Range;
use std::sync::Arc;

use reconverge_isa::Program;
use reconverge_simt::compiling::Extent;
use reconverge_simt::loaded::Forms;
use reconverge_simt::memory::{Buffer, LayoutError, Memory};
use reconverge_simt::vram::Vram;
use reconverge_simt::{
    CodeFault, Engine, GroupTrap, Level, Observer, Options, Shares, Silent, Statistics, Step, Trap, Watch,
    stepping, stop, watched,
};

use crate::block::{Block, Executor};
use crate::code::Code;
use crate::context::Context;
use crate::driver_fixes;
use crate::fast::{Fast, lockstep, parallel};
use crate::flow::Join;
use crate::grid::{Grid, LaunchForm, Totals, run_blocks};
use crate::inst::End;
use crate::launch::{Environment, LaneResults, Launch, LaunchError, Outcome, RunError, Setup};
use crate::reference::Reference;
use crate::spaces::Constants;
use crate::trap::Cause;

/// A program loaded for an environment. Loading decodes the reachable code. The first run with an engine lowers this
/// code. The loaded program runs any number of launches. A copy shares the code and its lowered forms.
#[derive(Clone, Debug)]
pub struct Loaded {
    environment: Environment,
    code: Arc<Code>,
    options: Options,
    fast: Arc<Forms<LaunchForm, Fast>>,
}

impl Loaded {
    /// Loads a program.
    ///
    /// # Errors
    /// The setup or the program exceeds the machine's limits.
    pub fn new(
        program: &Program,
        environment: &Environment,
        options: &Options,
    ) -> Result<Loaded, LaunchError> {
        let Environment { stage, setup } = environment;
        let code = Code::reachable(&program.words, setup.code_base, *stage, setup.chip);
        Loaded::of(&Arc::new(code), environment, options)
    }

    /// Loads a program like [`Loaded::new`], from code that is already decoded.
    ///
    /// # Errors
    /// The setup or the program exceeds the machine's limits.
    pub fn of(code: &Arc<Code>, environment: &Environment, options: &Options) -> Result<Loaded, LaunchError> {
        environment.setup.check(code.words().len())?;
        let code = with_fixes(code.clone(), &environment.setup);
        let environment = environment.clone();
        Ok(Loaded { environment, code, options: *options, fast: Arc::default() })
    }

    /// Returns the same program with another setup. The stage does not change. The code must start at the same address
    /// in both setups ([`Setup::code_base`]). If [`Setup::lowers_alike`] returns `false` for the two setups, the
    /// program is lowered again.
    ///
    /// # Errors
    /// The errors of [`Loaded::new`].
    pub fn with_setup(&self, setup: Arc<Setup>) -> Result<Loaded, LaunchError> {
        setup.check(self.code.words().len())?;
        let same = setup.lowers_alike(&self.environment.setup);
        let fast = if same { self.fast.clone() } else { Arc::default() };
        let environment = Environment { stage: self.environment.stage, setup };
        Ok(Loaded { environment, fast, ..self.clone() })
    }

    /// Returns the constants of the environment for modification. Lowering does not depend on these constants.
    pub fn constants_mut(&mut self) -> &mut Constants {
        &mut Arc::make_mut(&mut self.environment.setup).constants
    }

    /// The environment for which the program is loaded.
    pub fn environment(&self) -> &Environment {
        &self.environment
    }

    /// Executes a launch in the environment of [`Loaded::new`]. The options select the engine and the number of
    /// threads.
    ///
    /// # Errors
    /// The launch is invalid, or the program trapped. The error contains the trap of the first block that trapped, in
    /// the order of the blocks. In lockstep, a difference between the engines is also an error.
    pub fn run(&self, launch: Launch) -> Result<Outcome, RunError> {
        let (grid, mut memory) = self.grid(launch).map_err(RunError::Launch)?;
        let totals = self.totals(&grid, &mut memory)?;
        Ok(totals.outcome(grid.context(), memory))
    }

    /// Executes a launch like [`Loaded::run`], on memory that the caller owns. [`Compute::memory`] is not used, and the
    /// memory of the outcome is empty. After a trap, the memory contains the bytes stored before the trap.
    ///
    /// [`Compute::memory`]: crate::launch::Compute::memory
    ///
    /// # Errors
    /// The errors of [`Loaded::run`].
    pub fn run_on(&self, launch: Launch, memory: &mut Memory) -> Result<Outcome, RunError> {
        let (grid, _) = self.grid(launch).map_err(RunError::Launch)?;
        let totals = self.totals(&grid, memory)?;
        Ok(totals.outcome(grid.context(), Memory::default()))
    }

    /// Executes a launch like [`Loaded::run_on`], directly on ranges of a chip's memory. An offset in this memory is an
    /// address of the launch. During the launch, no other thread may use a view of the ranges. The launch may or may
    /// not see writes through other mappings.
    ///
    /// # Errors
    /// The errors of [`Loaded::run`]. Also returns an error if ranges overlap or are not in memory below 4 GiB.
    #[allow(unsafe_code)]
    pub fn run_in_place(
        &self,
        launch: Launch,
        memory: Vram<'_>,
        ranges: &[Range<usize>],
    ) -> Result<Outcome, RunError> {
        let refused = |error| RunError::Launch(LaunchError::Memory(error));
        let mut apart: Vec<&Range<usize>> = ranges.iter().collect();
        apart.sort_by_key(|range| range.start);
        let address = |range: &Range<usize>| {
            u32::try_from(range.start).map_err(|_| refused(LayoutError::Beyond(u32::MAX)))
        };
        for pair in apart.windows(2) {
            if pair[1].start < pair[0].end {
                let (first, second) = (address(pair[0])?, address(pair[1])?);
                return Err(refused(LayoutError::Overlap { first, second }));
            }
        }
        let mut buffers = Vec::with_capacity(ranges.len());
        for range in apart {
            let address = address(range)?;
            // SAFETY: no two of the buffers overlap. The buffers exist only until the end of this function. This
            // function accesses the bytes of the view only through the buffers.
            let bytes = unsafe { memory.lend(range.clone()) };
            let bytes = bytes.ok_or_else(|| refused(LayoutError::Beyond(address)))?;
            buffers.push(Buffer { address, bytes });
        }
        self.run_on(launch, &mut Memory::new(buffers).map_err(refused)?)
    }

    /// Executes a launch of a graphics stage like [`Loaded::run`], but returns only the results of the lanes.
    /// Instructions are not counted, and results of vertices and primitives do not contain registers.
    ///
    /// # Errors
    /// The errors of [`Loaded::run`].
    pub fn run_lanes(&self, launch: Launch) -> Result<LaneResults, RunError> {
        match &mut self.grid(launch) {
            // This code does not copy the grid, because a few copies of the grid take as long as a small launch.
            Ok((grid, memory)) => {
                grid.do_not_count();
                let totals = self.totals(grid, memory)?;
                grid.give_inputs_back();
                Ok(totals.lanes())
            }
            Err(error) => Err(RunError::Launch(error.clone())),
        }
    }

    fn totals(&self, grid: &Grid, memory: &mut Memory) -> Result<Totals, RunError> {
        // A small launch runs on this thread, so the number of threads is not needed.
        let is_small = grid.launch().lanes() != 0 && grid.blocks() < GRAPHICS_WARPS;
        let workers = if is_small { 1 } else { self.options.workers() };
        let engine = self.options.engine();
        CodeFault::caught(|| match (engine, self.fast(grid, engine)) {
            (Engine::Lockstep | Engine::LockstepCompiled, Some(fast)) => {
                in_lockstep(&fast, grid, memory, &self.options, &mut Silent)
            }
            (_, Some(fast)) => match fast.run_straight(grid, workers) {
                Some(totals) => Ok(totals?),
                None => on_threads(&*fast, grid, memory, (workers, self.options.always_ahead)),
            },
            (_, None) => on_threads(&Reference, grid, memory, (workers, self.options.always_ahead)),
        })
    }

    /// Executes a launch like [`Loaded::run`], but with an observer, and in order on one thread.
    ///
    /// The engine passes the number of an event's warp to [`Observer::group`]. Data events come from the reference
    /// interpreter, whatever the options are. Events for issued instructions and for control flow come from the engine
    /// that the options select. The compiled engine and lockstep do not emit events. If the options select the compiled
    /// engine or lockstep, and the observer requests events, the fast engine runs instead. In lockstep, the observer
    /// receives only paths ([`Observer::path`]).
    ///
    /// # Errors
    /// The errors of [`Loaded::run`].
    pub fn run_watched(&self, launch: Launch, watch: Watch<'_>) -> Result<Outcome, RunError> {
        watched!(watch, |observer| self.observed(launch, observer))
    }

    /// Returns a launch in its state before the first instruction, in the environment of [`Loaded::new`].
    ///
    /// # Errors
    /// The launch is invalid. A launch without lanes is a [`LaunchError::Block`].
    pub fn running(&self, launch: Launch) -> Result<Run, LaunchError> {
        let (grid, memory) = self.grid(launch)?;
        if grid.blocks() == 0 {
            return Err(LaunchError::Block([0; 3]));
        }
        let level = self.options.level();
        let fast = match self.options.engine() {
            Engine::Reference => None,
            // Each step executes one instruction, so the compiled engine compiles each instruction separately.
            Engine::Compiled | Engine::LockstepCompiled => {
                Some(Arc::new(Fast::compiled(&grid, level, Extent::Upto(1))))
            }
            Engine::Fast | Engine::Lockstep => self.fast(&grid, Engine::Fast),
        };
        let block = new_block(&grid, fast.as_deref(), 0);
        let (grid, finished) = (Arc::new(grid), Totals::default());
        Ok(Run { grid, fast, level, memory, block, number: 0, done: false, ended: None, finished })
    }

    fn grid(&self, mut launch: Launch) -> Result<(Grid, Memory), LaunchError> {
        launch.put_into(&self.environment)?;
        Grid::of(self.code.clone(), launch, &self.options)
    }

    /// Returns the form of the program for an engine, or `None` for the reference interpreter.
    fn fast(&self, grid: &Grid, engine: Engine) -> Option<Arc<Fast>> {
        let compile = |plain: &Fast, extent| plain.with_code(grid, extent);
        let lower = || Fast::of(grid, self.options.level());
        self.fast.of(&grid.form(), (engine, grid.launch().warps()), lower, compile)
    }

    fn observed<O: Observer>(&self, launch: Launch, observer: &mut O) -> Result<Outcome, RunError> {
        let (grid, mut memory) = self.grid(launch).map_err(RunError::Launch)?;
        CodeFault::caught(|| {
            // The condition is a constant. The compiler therefore omits the fast engine for observers that the fast
            // engine does not support.
            if O::DATA {
                return in_order(&Reference, &grid, memory, observer);
            }
            let engine = match self.options.engine() {
                Engine::Reference => Engine::Reference,
                // Compiled code does not emit events.
                _ if O::ENABLED => Engine::Fast,
                engine => engine,
            };
            match (engine, self.fast(&grid, engine)) {
                (Engine::Lockstep | Engine::LockstepCompiled, Some(fast)) => {
                    let totals = in_lockstep(&fast, &grid, &mut memory, &self.options, observer)?;
                    Ok(totals.outcome(grid.context(), memory))
                }
                (_, Some(fast)) => in_order(&*fast, &grid, memory, observer),
                (_, None) => in_order(&Reference, &grid, memory, observer),
            }
        })
    }
}

/// Loads a program and executes a launch, see [`Loaded::run`].
///
/// # Errors
/// The errors of [`Loaded::run`].
pub fn run(program: &Program, launch: Launch, options: &Options) -> Result<Outcome, RunError> {
    loaded(program, &launch, options)?.run(launch)
}

/// Loads a program and runs the program with an observer. See [`Loaded::run_watched`].
///
/// # Errors
/// The errors of [`Loaded::run`].
pub fn run_watched(
    program: &Program,
    launch: Launch,
    options: &Options,
    watch: Watch<'_>,
) -> Result<Outcome, RunError> {
    loaded(program, &launch, options)?.run_watched(launch, watch)
}

fn loaded(program: &Program, launch: &Launch, options: &Options) -> Result<Loaded, RunError> {
    Loaded::new(program, &launch.environment(), options).map_err(RunError::Launch)
}

/// Maximum number of warps of a graphics launch that runs on one thread.
const GRAPHICS_WARPS: usize = 64;

fn on_threads<E: Executor>(
    executor: &E,
    grid: &Grid,
    memory: &mut Memory,
    (workers, always_ahead): (usize, bool),
) -> Result<Totals, RunError> {
    let mut totals = Totals::with_room(grid, grid.blocks());
    // Running a warp of a graphics stage takes less time than giving the warp to another thread.
    let least = if grid.launch().lanes() == 0 { 1 } else { GRAPHICS_WARPS };
    if workers > 1 && grid.blocks() > least {
        parallel::run(executor, grid, memory, &mut totals, (workers, always_ahead))?;
    } else {
        run_blocks(executor, grid, 0..grid.blocks(), memory, &mut totals, &mut Silent)?;
    }
    Ok(totals)
}

fn in_order<E: Executor, O: Observer>(
    executor: &E,
    grid: &Grid,
    mut memory: Memory,
    observer: &mut O,
) -> Result<Outcome, RunError> {
    let mut totals = Totals::with_room(grid, grid.blocks());
    run_blocks(executor, grid, 0..grid.blocks(), &mut memory, &mut totals, observer)?;
    Ok(totals.outcome(grid.context(), memory))
}

fn in_lockstep<O: Observer>(
    fast: &Fast,
    grid: &Grid,
    memory: &mut Memory,
    options: &Options,
    observer: &mut O,
) -> Result<Totals, RunError> {
    let mut totals = Totals::with_room(grid, grid.blocks());
    let (views, mut shares) = (lockstep::Views::new(memory), Shares::default());
    let made = |extent| Fast::compiled(grid, options.level(), extent);
    for number in 0..grid.blocks() {
        if stop::asked() && grid.launch().lanes() == 0 {
            break;
        }
        let (mut block, footprint) = lockstep::run(grid, fast, number, memory, &views, made, &mut shares)?;
        totals.retire(grid, &block);
        totals.take_issued(&Reference, &mut block);
        memory.commit(&[footprint]);
    }
    shares.announce(observer);
    Ok(totals)
}

/// A launch that runs step by step. A step is one instruction, and [`Run::advance`] runs many instructions. Blocks run
/// one after another in the order of their index. A copy of a `Run` is a snapshot of the launch.
///
/// The fast engine executes a step if the observer does not receive data events, and the options do not select the
/// reference interpreter. The reference interpreter executes all other steps. ([`run`] compares the two engines in
/// lockstep.)
#[derive(Clone, Debug)]
pub struct Run {
    grid: Arc<Grid>,
    fast: Option<Arc<Fast>>,
    level: Level,
    memory: Memory,
    block: Block,
    number: usize,
    done: bool,
    /// The block that ended last. The last block of the launch is not stored here, because that block remains the
    /// current block.
    ended: Option<Arc<Block>>,
    finished: Totals,
}

impl Run {
    /// Returns the launch in its state before the first instruction.
    ///
    /// # Errors
    /// The launch is invalid. A launch without lanes is a [`LaunchError::Block`].
    pub fn new(program: &Program, launch: Launch, options: &Options) -> Result<Self, LaunchError> {
        Loaded::new(program, &launch.environment(), options)?.running(launch)
    }

    /// The settings that all blocks share.
    pub fn context(&self) -> &Context {
        self.grid.context()
    }

    /// Returns the current block, with its warps, shared memory and barriers.
    pub fn block(&self) -> &Block {
        &self.block
    }

    /// Returns the block that is running, so that a debugger can change registers and shared memory.
    pub fn block_mut(&mut self) -> &mut Block {
        &mut self.block
    }

    /// If the last step ended a block, returns this block. Otherwise, returns `None`. The last block of the launch is
    /// not returned here, because [`Run::block`] still returns that block.
    pub fn take_ended(&mut self) -> Option<Arc<Block>> {
        self.ended.take()
    }

    /// Returns global memory in its current state.
    pub fn memory(&self) -> &Memory {
        &self.memory
    }

    /// Returns global memory for modification.
    pub fn memory_mut(&mut self) -> &mut Memory {
        &mut self.memory
    }

    /// Replaces global memory.
    pub fn set_memory(&mut self, memory: Memory) {
        self.memory = memory;
    }

    /// Returns the trap, together with the group and the words of the instruction that trapped.
    pub fn locate(&self, trap: Trap<Cause>) -> GroupTrap<Cause> {
        self.block.locate(self.context(), trap)
    }

    /// Returns the counts so far.
    pub fn statistics(&self) -> Statistics {
        let mut statistics = self.finished.statistics;
        if !self.done {
            statistics.add(&self.block.common.statistics);
        }
        statistics
    }

    stepping!(Cause, advance);

    fn observed_advance<O: Observer>(&mut self, most: u64, observer: &mut O) -> Result<Step, Trap<Cause>> {
        let mut left = most;
        while left > 0 && !self.done {
            let (grid, memory) = (&*self.grid, &mut self.memory);
            let most = u32::try_from(left).unwrap_or(u32::MAX);
            let before = self.block.common.statistics.instructions;
            let ran = match self.fast.as_deref() {
                Some(fast) => self.block.advance(fast, grid.context(), memory, observer, most),
                None => self.block.advance(&Reference, grid.context(), memory, observer, most),
            };
            // If the `join` of an instruction switches the warp to another path, the warp does not execute the
            // instruction yet. An instruction counts only when the warp executes the instruction.
            left -= self.block.common.statistics.instructions - before;
            if ran.end? == Step::Done {
                self.next_block();
            }
        }
        Ok(if self.done { Step::Done } else { Step::Running })
    }

    /// Executes one instruction of a warp, and then the joins at which this warp arrives. A join that switches the warp
    /// to another path is not an instruction. A join that reconverges lanes decides which lanes are active in the next
    /// instruction.
    fn observed_step<O: Observer>(&mut self, observer: &mut O) -> Result<Step, Trap<Cause>> {
        let mut before = self.block.common.statistics.instructions;
        while !self.done {
            let warp = self.block.current_place();
            let step = self.attempt(observer)?;
            let issued = self.block.common.statistics.instructions > before;
            if step == Step::Done {
                let step = self.next_block();
                if issued || step == Step::Done {
                    return Ok(step);
                }
                before = self.block.common.statistics.instructions;
            } else if issued {
                return self.join_ahead(warp, observer);
            }
        }
        Ok(Step::Done)
    }

    /// Executes the joins at which a warp has arrived. A join that switches to another path uses up one instruction of
    /// the warp's slice, as in a launch that runs without steps. If the slice ends, the block switches to another warp,
    /// and this function executes no more joins.
    fn join_ahead<O: Observer>(&mut self, warp: usize, observer: &mut O) -> Result<Step, Trap<Cause>> {
        let may_run = |run: &Run| run.block.common.statistics.instructions < run.context().watchdog;
        while self.join_of(warp) == Some(Join::Away) && self.block.current_place() == warp && may_run(self) {
            if self.attempt(observer)? == Step::Done {
                return Ok(self.next_block());
            }
        }
        if self.join_of(warp) == Some(Join::Run) {
            if O::ENABLED {
                observer.group(self.block.first_group + warp);
            }
            let flow = &mut self.block.warps[warp].flow;
            let pc = flow.pc();
            let arrived = flow.active();
            flow.join_ahead(observer).map_err(|fault| Trap { pc, lanes: arrived, cause: fault.into() })?;
        }
        Ok(Step::Running)
    }

    /// Returns the effect of the join of a warp's next instruction. Returns `None` if the instruction has no join, or
    /// if the join would fault.
    fn join_of(&self, warp: usize) -> Option<Join> {
        let flow = &self.block.warps[warp].flow;
        let joins = self.context().code.at(flow.pc()).is_ok_and(|inst| inst.end == End::Join);
        if joins { flow.join_leads() } else { None }
    }

    /// Executes one instruction, or a join that switches the warp to another path.
    fn attempt<O: Observer>(&mut self, observer: &mut O) -> Result<Step, Trap<Cause>> {
        let (grid, memory) = (&*self.grid, &mut self.memory);
        // The first condition is a constant. The compiler therefore omits the fast engine for observers that the fast
        // engine does not support.
        let ran = if O::DATA {
            self.block.advance(&Reference, grid.context(), memory, observer, 1)
        } else {
            match self.fast.as_deref() {
                Some(fast) => self.block.advance(fast, grid.context(), memory, observer, 1),
                None => self.block.advance(&Reference, grid.context(), memory, observer, 1),
            }
        };
        ran.end
    }

    /// Replaces the words of the program by the same number of new words. A word that cannot be decoded causes a trap
    /// when control reaches the word.
    pub fn set_words(&mut self, words: &[u32]) {
        if let Some(fast) = &self.fast {
            fast.settle(&mut self.block.common);
        }
        let Context { code, stage, setup, .. } = self.grid.context();
        let code = Code::reachable(words, code.base(), *stage, setup.chip);
        let grid = self.grid.with_code(with_fixes(Arc::new(code), setup));
        self.block.warps.iter_mut().for_each(|warp| warp.file_mut().remove_room());
        if let Some(fast) = &mut self.fast {
            *fast = Arc::new(Fast::of(&grid, self.level));
            fast.prepare(&mut self.block, grid.launch().setup());
        }
        self.grid = Arc::new(grid);
        let code = &self.grid.context().code;
        for warp in &mut self.block.warps {
            if code.at(warp.flow.pc()).is_ok_and(|inst| inst.end != End::Join) {
                warp.flow.forget_join();
            }
        }
    }

    /// Adds the results of the block that has ended, and begins the next block.
    fn next_block(&mut self) -> Step {
        self.finished.retire(&self.grid, &self.block);
        match self.fast.as_deref() {
            Some(fast) => self.finished.take_issued(fast, &mut self.block),
            None => self.finished.take_issued(&Reference, &mut self.block),
        }
        self.number += 1;
        if self.number == self.grid.blocks() {
            self.done = true;
            return Step::Done;
        }
        let next = new_block(&self.grid, self.fast.as_deref(), self.number);
        self.ended = Some(Arc::new(std::mem::replace(&mut self.block, next)));
        Step::Running
    }

    /// Returns the results. The results are complete after a step has returned [`Step::Done`].
    pub fn outcome(self) -> Outcome {
        self.finished.outcome(self.grid.context(), self.memory)
    }
}

/// Returns the program after the fixes that the setup requests.
fn with_fixes(code: Arc<Code>, setup: &Setup) -> Arc<Code> {
    match setup.driver_fixes {
        None => code,
        Some(fixes) => Arc::new(driver_fixes::fixed(&code, fixes)),
    }
}

/// Creates a block in new memory. If `fast` is not `None`, prepares the block for the fast engine.
fn new_block(grid: &Grid, fast: Option<&Fast>, number: usize) -> Block {
    match fast {
        Some(fast) => grid.block(fast, number, None),
        None => grid.block(&Reference, number, None),
    }
}
