//! The blocks of a launch. This file computes the state of each block before its first instruction, and the results of
//! all blocks.

use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use reconverge_isa::Program;
use reconverge_isa::sets::NumberSet;
use reconverge_simt::memory::Memory;
use reconverge_simt::registers::Row;
use reconverge_simt::{GroupTrap, Identity, Mask, Mode, Observer, Options, Statistics, stop};

use crate::block::{Block, Executor};
use crate::code::{Code, SharedChecks};
use crate::context::{Common, Context};
use crate::fidelity;
use crate::flow::{Flow, WARP, whole_quads};
use crate::inputs::Fragments;
use crate::launch::{Compute, Fragment, Geometry, Launch, LaunchError, Outcome, PARAMETERS, Vertex};
use crate::results::LaneResults;
use crate::spaces::Segments;
use crate::state::{MOST_REGISTERS, Warp};
use crate::trap::Cause;

/// The parts of a launch on which lowering depends, except for the environment of the launch. The first part is the
/// number of bytes of s[], with the parameters of the race checks. The second part is the words of a[] or v[] that
/// every lane has, if lowering depends on these words. The third part is the number of barriers, and the last part is
/// p[] (if any). p[] is an option, so that a comparison of two launches without p[] does not need a function call.
pub(crate) type LaunchForm = ((usize, Option<SharedChecks>), NumberSet, Option<u32>, Option<Vec<u32>>);

/// A valid launch with its decoded program. The launch numbers its blocks.
#[derive(Clone, Debug)]
pub struct Grid {
    context: Context,
    launch: Launch,
    local_bytes: u32,
    /// `$r0` at the start of each warp of a block. The list is empty for graphics stages.
    threads: Vec<Row<WARP>>,
    /// Whether the counts of instructions are disabled.
    uncounted: bool,
}

impl Grid {
    /// Checks a launch and decodes its program. Returns global memory separately.
    ///
    /// # Errors
    /// The launch is invalid.
    pub fn new(launch: Launch, program: &Program, options: &Options) -> Result<(Self, Memory), LaunchError> {
        launch.check(program.words.len())?;
        let code = Code::new(&program.words, launch.setup().code_base, launch.stage(), launch.setup().chip);
        Grid::of(Arc::new(code), launch, options)
    }

    /// Creates the grid like [`Grid::new`], for a program that is already decoded.
    pub(crate) fn of(
        code: Arc<Code>,
        mut launch: Launch,
        options: &Options,
    ) -> Result<(Self, Memory), LaunchError> {
        launch.check(code.words().len())?;
        let (segments, barriers, vertices, memory) = match &mut launch {
            Launch::Compute(compute) => {
                (compute.segments, compute.barriers, Vec::new(), std::mem::take(&mut compute.memory))
            }
            Launch::Geometry(geometry) => {
                (Segments::default(), None, std::mem::take(&mut geometry.vertices), Memory::default())
            }
            Launch::Fragment(_) | Launch::Vertex(_) => {
                (Segments::default(), None, Vec::new(), Memory::default())
            }
        };
        let (setup, stage) = (launch.setup(), launch.stage());
        let checks =
            launch.given_bytes().filter(|_| options.checks_races()).and_then(|given| code.checks(given));
        let context = Context {
            identity: Identity::new(),
            code,
            stage,
            setup: setup.clone(),
            segments,
            barriers,
            vertices,
            mode: options.mode,
            checks,
            watchdog: options.watchdog,
            dropped: Arc::default(),
        };
        let local_bytes = setup.local_size()?;
        let threads = match &launch {
            Launch::Compute(compute) => threads(compute.block),
            Launch::Fragment(_) | Launch::Vertex(_) | Launch::Geometry(_) => Vec::new(),
        };
        Ok((Grid { context, launch, local_bytes, threads, uncounted: false }, memory))
    }

    /// The settings that all blocks share.
    pub fn context(&self) -> &Context {
        &self.context
    }

    /// The launch, without the parts that were moved into the context or the memory.
    pub fn launch(&self) -> &Launch {
        &self.launch
    }

    /// Disables the counts of instructions.
    pub(crate) fn do_not_count(&mut self) {
        self.uncounted = true;
    }

    /// Passes the columns of a[] to [`LaneResults::give_back`] after a vertex launch. Later launches then reuse the
    /// memory of the columns.
    pub(crate) fn give_inputs_back(&mut self) {
        if let Launch::Vertex(vertex) = &mut self.launch {
            let columns = std::mem::take(&mut vertex.inputs).into_tuple_vec();
            columns.into_iter().for_each(|(_, column)| LaneResults::give_back(column));
        }
    }

    /// Returns the same launch with another program. Both programs have the same number of words.
    pub(crate) fn with_code(&self, code: Arc<Code>) -> Grid {
        let checks = self.context.checks.and_then(|checks| code.checks(checks.given));
        Grid { context: Context { code, checks, ..self.context.clone() }, ..self.clone() }
    }

    /// Returns the parts of a launch on which lowering depends, except for the environment of the launch.
    pub(crate) fn form(&self) -> LaunchForm {
        let Context { barriers, vertices, mode, checks, .. } = &self.context;
        let vertices = (!vertices.is_empty()).then(|| vertices.clone());
        // In lenient mode, a word that a launch does not provide reads zero.
        let inputs = if *mode == Mode::Lenient { NumberSet::new() } else { self.launch.inputs() };
        ((self.launch.shared_bytes(), *checks), inputs, *barriers, vertices)
    }

    /// Returns the number of blocks of a compute launch, or the number of warps of a graphics launch.
    pub fn blocks(&self) -> usize {
        self.launch.blocks()
    }

    /// Returns block `number` in its state before the first instruction. The block is prepared for an engine. `spare`
    /// is a block of this launch that has ended. The new block reuses the memory of `spare`.
    pub fn block<E: Executor>(&self, executor: &E, number: usize, spare: Option<Block>) -> Block {
        let mut spare = spare.map(Box::new);
        self.begin(executor, number, &mut spare);
        *spare.expect("a block that was begun")
    }

    /// Creates block `number` like [`Grid::block`], and places the block in `spare`.
    pub(crate) fn begin<'a, E: Executor>(
        &self,
        executor: &E,
        number: usize,
        spare: &'a mut Option<Box<Block>>,
    ) -> &'a mut Block {
        let block = match &self.launch {
            Launch::Compute(compute) => self.compute_block(executor, compute, number, spare),
            Launch::Fragment(fragment) => self.fragment_block(executor, fragment, number, spare),
            Launch::Vertex(Vertex { lanes, inputs, .. })
            | Launch::Geometry(Geometry { lanes, inputs, .. }) => {
                let first = number * WARP;
                self.graphics_block(executor, number, spare, Mask::first(lanes - first), |warp| {
                    for (&word, values) in inputs {
                        warp.set_input_words(word, values.get(first..).unwrap_or_default());
                    }
                })
            }
        };
        block.first_group = number * block.warps.len();
        block
    }

    fn warp(&self, number: u32, launched: Mask) -> Warp {
        let setup = self.launch.setup();
        let flow = Flow::new(setup.code_base, launched, setup.limits, self.context.mode);
        Warp::new(flow, number, setup.registers as usize, self.local_bytes)
    }

    fn new_block<E: Executor>(&self, executor: &E, index: [u32; 2], warps: Vec<Warp>) -> Block {
        let common = Common::new(index, warps.len(), self.context.code.words().len());
        let mut block = Block::new(common, warps);
        executor.prepare(&mut block, self.launch.setup());
        block
    }

    /// Creates a block of a compute launch. See tesla.md 1.3 (threads to lanes) and tesla.md 1.6 (s[] header, `$r0`).
    fn compute_block<'a, E: Executor>(
        &self,
        executor: &E,
        compute: &Compute,
        number: usize,
        spare: &'a mut Option<Box<Block>>,
    ) -> &'a mut Block {
        let [x, y, z] = compute.block;
        let index = [number as u32 % compute.grid[0], number as u32 / compute.grid[0]];
        let threads = x * y * z;
        let block = spare.get_or_insert_with(|| {
            let warps = (0..threads.div_ceil(WARP as u32)).map(|number| self.warp(number, Mask::NONE));
            Box::new(self.new_block(executor, index, warps.collect()))
        });
        let shared = &mut block.common.shared;
        shared.begin(self.launch.shared_bytes(), threads.div_ceil(WARP as u32) as usize, self.context.checks);
        for (place, value) in
            [x, y, z, compute.grid[0], compute.grid[1], index[0], index[1]].into_iter().enumerate()
        {
            shared.place(2 + 2 * place, &(value as u16).to_le_bytes());
        }
        shared.place(0, &compute.grid_id.to_le_bytes());
        shared.place(PARAMETERS as usize, &compute.params);
        block.begin(index, |warp| {
            let launched = Mask::first((threads - warp.number * WARP as u32) as usize);
            warp.begin(compute.setup.code_base, launched, executor.cleared(launched == Mask::first(WARP)));
            let threads = &self.threads[warp.number as usize];
            warp.file_mut().row_mut(0).into_iter().for_each(|row| row.clone_from(threads));
        });
        block
    }

    /// Creates a block with one warp. The lanes in `launched` run. `give` sets the inputs of the warp.
    fn graphics_block<'a, E: Executor>(
        &self,
        executor: &E,
        number: usize,
        spare: &'a mut Option<Box<Block>>,
        launched: Mask,
        give: impl FnOnce(&mut Warp),
    ) -> &'a mut Block {
        let index = [number as u32, 0];
        let block = spare.get_or_insert_with(|| {
            Box::new(self.new_block(executor, index, vec![self.warp(number as u32, launched)]))
        });
        let mut give = Some(give);
        block.begin(index, |warp| {
            let cleared = executor.cleared(launched == Mask::first(WARP));
            warp.begin(self.launch.setup().code_base, launched, cleared);
            warp.number = number as u32;
            give.take().into_iter().for_each(|give| give(warp));
        });
        block
    }

    fn fragment_block<'a, E: Executor>(
        &self,
        executor: &E,
        fragment: &Fragment,
        number: usize,
        spare: &'a mut Option<Box<Block>>,
    ) -> &'a mut Block {
        let first = number * WARP;
        let covered = covered(fragment, number);
        let launched = if fragment.helpers { whole_quads(covered) } else { covered };
        self.graphics_block(executor, number, spare, launched, |warp| {
            warp.flow.mark_helpers(launched - covered);
            Fragments { fragment, first, warp }.set_inputs(executor.level());
        })
    }

    /// If the lanes of a warp are vertices or whole quads, returns two sets. The first set has the lanes that run, and
    /// the second set has the lanes that are dead from the start. For any other warp, returns `None`, because lanes of
    /// an incomplete quad read neighbour lanes that do not run.
    #[inline]
    pub(crate) fn straight_lanes(&self, number: usize) -> Option<(Mask, Mask)> {
        let all = Mask::first(WARP);
        let (launched, live) = match &self.launch {
            Launch::Fragment(fragment) => {
                let covered = covered(fragment, number);
                (if fragment.helpers { whole_quads(covered) } else { covered }, covered)
            }
            Launch::Vertex(_) => {
                let lanes = Mask::first(self.lanes_of(number));
                return Some((lanes, all - lanes));
            }
            Launch::Compute(_) | Launch::Geometry(_) => return None,
        };
        (launched.any() && whole_quads(launched) == launched).then_some((launched, all - live))
    }

    /// Returns the number of lanes of the launch that are in graphics block `number`.
    fn lanes_of(&self, number: usize) -> usize {
        self.launch.lanes().saturating_sub(number * WARP).min(WARP)
    }

    /// Returns the number of registers that the results contain.
    fn kept(&self) -> usize {
        let declared = (self.launch.setup().registers as usize).min(MOST_REGISTERS);
        self.wanted().unwrap_or(declared).min(declared)
    }

    /// Returns the number of registers that the results of the launch need. `None` stands for all registers. If counts
    /// are disabled, the results of a vertex or geometry launch contain no registers.
    fn wanted(&self) -> Option<usize> {
        match &self.launch {
            Launch::Vertex(_) | Launch::Geometry(_) if self.uncounted => Some(0),
            launch => launch.kept(),
        }
    }
}

/// Returns `$r0` at the start of each warp of a block of this size. `$r0` contains the position of the thread: x from
/// bit 0 on, y from bit 16 on, and z from bit 26 on. In lanes after the last thread, `$r0` is 0. (1.3)
fn threads([x, y, z]: [u32; 3]) -> Vec<Row<WARP>> {
    let mut rows = vec![Row::ZERO; (x * y * z).div_ceil(WARP as u32) as usize];
    // The position of the next thread in the block.
    let [mut tx, mut ty, mut tz] = [0; 3];
    for position in rows.iter_mut().flat_map(|row| &mut row.0).take((x * y * z) as usize) {
        *position = tx | ty << 16 | tz << 26;
        tx += 1;
        if tx == x {
            (tx, ty) = (0, ty + 1);
        }
        if ty == y {
            (ty, tz) = (0, tz + 1);
        }
    }
    rows
}

/// Returns the lanes of a fragment warp whose fragments are covered.
fn covered(fragment: &Fragment, number: usize) -> Mask {
    let first = number * WARP;
    let given = Mask::first((fragment.lanes - first).min(WARP));
    let known = fragment.covered.get(first..).unwrap_or_default();
    let known = &known[..known.len().min(WARP)];
    if known.iter().fold(true, |all, covered| all & covered) {
        return given;
    }
    let (eights, others) = known.as_chunks();
    let mut bits = !Mask::first(known.len()).0;
    for (place, eight) in eights.iter().enumerate() {
        // Each byte is 0 or 1. The multiplication moves each byte to one bit of the uppermost byte of the product.
        let product = u64::from_le_bytes(eight.map(u8::from)).wrapping_mul(0x0102_0408_1020_4080);
        bits |= product >> 56 << (8 * place);
    }
    for (lane, covered) in (8 * eights.len()..).zip(others) {
        bits |= u64::from(*covered) << lane;
    }
    Mask(bits) & given
}

/// The results of blocks that have ended, except for memory.
#[derive(Clone, Debug, Default)]
pub(crate) struct Totals {
    pub(crate) statistics: Statistics,
    /// For each word of the code, how often the blocks have issued the instruction at that word.
    issued: Vec<u64>,
    lanes: LaneResults,
    /// Whether the counts of instructions are disabled.
    uncounted: bool,
}

impl Totals {
    /// Creates empty totals, with room for the results of `blocks` blocks.
    pub(crate) fn with_room(grid: &Grid, blocks: usize) -> Self {
        let mut totals = Totals { uncounted: grid.uncounted, ..Totals::default() };
        if grid.launch.lanes() != 0 {
            totals.lanes.reserve(blocks, grid.kept());
        }
        totals
    }

    /// Adds the results of a block that has ended, except for the block's counts of issued instructions.
    /// [`Totals::take_issued`] adds the counts of issued instructions later.
    pub(crate) fn retire(&mut self, grid: &Grid, block: &Block) {
        if !self.uncounted {
            self.statistics.add(&block.common.statistics);
        }
        if let count @ 1.. = grid.lanes_of(block.common.index[0] as usize) {
            self.lanes.add(block.current(), count, grid.wanted());
        }
    }

    /// Returns the columns of the registers in the results. The caller appends the values of a warp, and then calls
    /// [`Totals::add_whole`].
    pub(crate) fn columns(&mut self, grid: &Grid) -> &mut [Vec<u32>] {
        self.lanes.columns_mut(grid.kept())
    }

    /// Adds the dead lanes and the o[] of a warp that has ended. The caller has already added the registers of the warp
    /// to the columns.
    #[inline]
    pub(crate) fn add_whole(&mut self, grid: &Grid, number: usize, dead: Mask, outputs: Vec<Row<WARP>>) {
        self.lanes.add_outputs(grid.lanes_of(number), dead, outputs);
    }

    /// Counts the instructions at these indices of the code. Each instruction counts as executed once by each of
    /// `warps` warps. These warps have `lanes` active lanes in total.
    pub(crate) fn count_whole(&mut self, [warps, lanes]: [usize; 2], places: &[usize]) {
        if self.uncounted {
            return;
        }
        let (warps, lanes, instructions) = (warps as u64, lanes as u64, places.len() as u64);
        let lane_instructions = lanes * instructions;
        let instructions = warps * instructions;
        self.statistics.add(&Statistics { instructions, lane_instructions, divergent_branches: 0 });
        let issued = places.iter().max().map_or(0, |last| last + 1);
        self.issued.resize(self.issued.len().max(issued), 0);
        places.iter().for_each(|place| self.issued[*place] += warps);
    }

    /// Adds the issue counts in `block` to the totals, and resets the issue counts in `block`. The issue counts in
    /// `block` include earlier blocks that used the same memory.
    pub(crate) fn take_issued<E: Executor>(&mut self, executor: &E, block: &mut Block) {
        match self.uncounted {
            true => block.common.runs.fill(0),
            false => {
                executor.settle(&mut block.common);
                self.count(&block.common.issued);
            }
        }
        block.common.issued.fill(0);
    }

    /// Adds the totals of later blocks.
    pub(crate) fn add(&mut self, other: Totals) {
        self.statistics.add(&other.statistics);
        self.count(&other.issued);
        self.lanes.append(other.lanes);
    }

    fn count(&mut self, issued: &[u64]) {
        self.issued.resize(self.issued.len().max(issued.len()), 0);
        self.issued.iter_mut().zip(issued).for_each(|(total, times)| *total += times);
    }

    /// Returns the results of the lanes.
    pub(crate) fn lanes(self) -> LaneResults {
        self.lanes
    }

    /// Returns the results of the launch.
    pub(crate) fn outcome(self, context: &Context, memory: Memory) -> Outcome {
        let Totals { statistics, issued, lanes, .. } = self;
        let dropped = context.dropped.load(Ordering::Relaxed);
        let mut outcome = Outcome { memory, lanes, statistics, dropped, ..Outcome::default() };
        for (pc, times) in (context.code.base()..).step_by(4).zip(issued).filter(|(_, times)| *times > 0) {
            if let Ok(inst) = context.code.at(pc) {
                let (name, grade) = fidelity::of(&inst.op);
                outcome.report.count(name, grade, times);
            }
        }
        outcome
    }
}

/// Runs some blocks in order.
pub(crate) fn run_blocks<E: Executor, O: Observer>(
    executor: &E,
    grid: &Grid,
    blocks: Range<usize>,
    memory: &mut Memory,
    totals: &mut Totals,
    observer: &mut O,
) -> Result<(), GroupTrap<Cause>> {
    let is_graphics = grid.launch.lanes() != 0;
    let mut spare = if is_graphics { executor.spare(grid.launch.setup()) } else { None };
    for number in blocks {
        // After a request to stop all runs, a compute launch ends here. A graphics launch continues, because the launch
        // needs results for all lanes, including lanes that do not run.
        if stop::asked() && grid.launch.lanes() == 0 {
            break;
        }
        let block = grid.begin(executor, number, &mut spare);
        if !stop::asked() {
            block.run(executor, grid.context(), memory, observer)?;
        }
        totals.retire(grid, block);
    }
    spare.iter_mut().for_each(|block| totals.take_issued(executor, block));
    if is_graphics {
        spare.into_iter().for_each(|block| executor.keep(block));
    }
    Ok(())
}
