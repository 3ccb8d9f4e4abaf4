//! What is true before the first instruction, and what is left after the last.
//!
//! A launch is described by [`Compute`], [`Fragment`], [`Vertex`] or [`Geometry`], each with a [`Setup`] of what
//! all stages have. [`run`] executes it with the reference interpreter; [`Run`] is the same launch as a
//! [`Machine`], one instruction a step, for debuggers and traces. See
//! tesla.md 1.3 (warps), tesla.md 1.6 (start) and tesla.md 11.4 (launching).
//!
//! # Order, and what is guaranteed
//! The result of a launch, its traps and its counts are those of running the blocks (graphics: the warps) **one
//! after another in the order of their index**, x before y, each to its end in the order that `block.rs` fixes.
//! With [`Options::parallel`], blocks run on the threads of the rayon pool of the caller in batches against views
//! of global memory that are committed in order, and a block that has seen a byte which an earlier one of its
//! batch changed is run again (see [`reconverge_simt::memory`]): the result is the same for any number of threads,
//! atomics included, because a block's view is only accepted when it equals what the block would have seen in its
//! turn. A program in which a block waits for a *later* block therefore never ends, and is stopped by the
//! watchdog; hardware gives no such guarantee either.

use std::collections::BTreeMap;
use std::sync::Arc;

use reconverge_isa::Program;
use reconverge_isa::program::{Module, Place};
use reconverge_simt::fidelity::Report;
use reconverge_simt::memory::{Buffer, LayoutError, Memory};
use reconverge_simt::registers::Row;
use reconverge_simt::{
    Engine, FlowView, Issue, Lane, Level, Machine, Mask, Mode, Observer, StackRow, Statistics, Step, Trap,
    Why,
};
use thiserror::Error;

use crate::block::Block;
use crate::code::Code;
use crate::fast::Fast;
use crate::fast::lockstep::Difference;
use crate::flow::{Flow, Limits, WARP, whole_quads};
use crate::grid::Totals;
pub use crate::grid::{run, run_observed};
use crate::inst::{Chip, Stage};
use crate::lane::interpolate::{Interpolant, Position, interp};
use crate::meaning::Modes;
use crate::spaces::{Constants, Segments, Shared};
pub use crate::state::LaneResult;
use crate::state::{Input, MOST_REGISTERS, Warp};
use crate::texture::Textures;
use crate::trap::{Cause, LaunchTrap};

/// Registers of a program whose container does not say: all that compilers use; $r124 to $r127 are then absent,
/// read zero and swallow writes, as compiled code expects. (1.4)
pub const REGISTERS_WHEN_UNTOLD: u32 = 124;

/// The largest s[] of a block, and what a program gets whose container does not say. (1.6)
pub const MOST_SHARED: u32 = 0x4000;

/// Where parameters start in s[]. (1.6)
pub const PARAMETERS: u32 = 0x10;

/// The largest l[] of a thread. (1.6)
pub const MOST_LOCAL: u32 = 0x1_0000;

/// Threads of a block that this machine runs at most: 64 · 1024 · 65536 would be expressible; the limit keeps a
/// hostile launch from taking all memory. Hardware allows 512 (CUDA); larger blocks run here all the same.
pub const MOST_THREADS: u32 = 1 << 16;

/// How to run, whatever the launch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Options {
    /// Undefined behaviour traps, or does what is recommended.
    pub mode: Mode,
    /// Instructions a block may issue before it is stopped with a timeout.
    pub watchdog: u64,
    /// Whether to use the threads of the rayon pool in which [`run`] is called. The result does not depend on it.
    pub parallel: bool,
    /// Which engine executes. The result does not depend on it.
    pub engine: Engine,
    /// The vector instructions that the fast engine uses; `None` is the best that the processor has. The result does
    /// not depend on it.
    pub level: Option<Level>,
}

impl Default for Options {
    fn default() -> Self {
        Options { mode: Mode::Strict, watchdog: 1 << 28, parallel: true, engine: Engine::Fast, level: None }
    }
}

/// What every stage has.
#[derive(Clone, Debug)]
pub struct Setup {
    /// The chip, which decides what can be decoded and a few results.
    pub chip: Chip,
    /// General registers a thread; those beyond read zero.
    pub registers: u32,
    /// Bytes of l[] a thread: 0, or rounded up to a power of two from 0x10 on. (1.6)
    pub local_bytes: u32,
    /// Address of the first word of the code in the code window; branch targets are absolute. (11.4)
    pub code_base: u32,
    /// c0..c15[]
    pub constants: Constants,
    /// Textures and samplers.
    pub textures: Textures,
    /// Of the token stack.
    pub limits: Limits,
    /// Mode bits that change f32 results.
    pub modes: Modes,
}

impl Setup {
    /// A setup for `chip` with nothing bound, [`REGISTERS_WHEN_UNTOLD`] and code at address 0.
    pub fn new(chip: Chip) -> Self {
        Setup {
            chip,
            registers: REGISTERS_WHEN_UNTOLD,
            local_bytes: 0,
            code_base: 0,
            constants: Constants::new(),
            textures: Textures::default(),
            limits: Limits::default(),
            modes: Modes::default(),
        }
    }

    /// What the container of `program` tells: registers, local memory, constants.
    ///
    /// # Errors
    /// A constant block lies outside the sixteen banks of 64 KiB.
    pub fn of(program: &Program, chip: Chip) -> Result<Self, LaunchError> {
        let mut setup = Setup::new(chip);
        setup.registers = program.resources.registers.unwrap_or(REGISTERS_WHEN_UNTOLD);
        setup.local_bytes = program.resources.local_bytes.unwrap_or(0);
        for block in &program.constants {
            if !setup.constants.place(block.bank as usize, block.offset as usize, &block.bytes) {
                return Err(LaunchError::Constants { bank: block.bank, offset: block.offset });
            }
        }
        Ok(setup)
    }

    fn local_size(&self) -> Result<u32, LaunchError> {
        match self.local_bytes {
            0 => Ok(0),
            bytes if bytes <= MOST_LOCAL => Ok(bytes.next_power_of_two().max(0x10)),
            bytes => Err(LaunchError::LocalBytes(bytes)),
        }
    }
}

/// A grid of blocks of a compute program.
#[derive(Clone, Debug)]
pub struct Compute {
    /// What every stage has.
    pub setup: Setup,
    /// Blocks in x and y, at least 1 and at most 0xffff each.
    pub grid: [u32; 2],
    /// Threads of a block in x, y and z.
    pub block: [u32; 3],
    /// s[] of a block without the dynamic part, header and parameters included; `None` when nobody said, which
    /// gives all there is.
    pub shared_bytes: Option<u32>,
    /// Further bytes of s[], behind the others.
    pub dynamic_shared: u32,
    /// The parameter area, which goes to s\[0x10\] on.
    pub params: Vec<u8>,
    /// Barriers allocated; `None` when nobody said, which allows all.
    pub barriers: Option<u32>,
    /// Where g0..g15[] lie in the memory.
    pub segments: Segments,
    /// Global memory.
    pub memory: Memory,
}

impl Compute {
    /// One block of one thread without parameters or memory, with what the container of `program` tells.
    ///
    /// # Errors
    /// See [`Setup::of`].
    pub fn of(program: &Program, chip: Chip) -> Result<Self, LaunchError> {
        Ok(Compute {
            setup: Setup::of(program, chip)?,
            grid: [1, 1],
            block: [1, 1, 1],
            shared_bytes: program.resources.shared_bytes,
            dynamic_shared: 0,
            params: Vec::new(),
            barriers: program.resources.barriers,
            segments: Segments::default(),
            memory: Memory::default(),
        })
    }

    /// Loads what the programs of a module share: constants, and variables in global memory. (11.1, 11.4)
    ///
    /// Global variables become buffers from `address` on, 256 bytes apart at least, in the module's order; their
    /// addresses go to the constant slots that wait for them (c14\[\], as a rule). Gives the variables' names and
    /// addresses.
    ///
    /// # Errors
    /// A constant or slot lies outside the banks, or the buffers do not fit beside those of [`Compute::memory`].
    pub fn load_module(&mut self, module: &Module, address: u32) -> Result<Vec<(String, u32)>, LaunchError> {
        let constants = &mut self.setup.constants;
        for block in &module.constants {
            if !constants.place(block.bank as usize, block.offset as usize, &block.bytes) {
                return Err(LaunchError::Constants { bank: block.bank, offset: block.offset });
            }
        }
        let mut placed = Vec::new();
        let mut next = u64::from(address);
        for variable in &module.variables {
            let Place::Global { slots, init } = &variable.place else { continue };
            let here = u32::try_from(next).map_err(|_| LaunchError::Memory(LayoutError::Beyond(u32::MAX)))?;
            let mut bytes = init.clone();
            bytes.resize(variable.bytes as usize, 0);
            next += (bytes.len() as u64).next_multiple_of(256).max(256);
            self.memory.insert(Buffer { address: here, bytes }).map_err(LaunchError::Memory)?;
            for slot in slots {
                let value = here.wrapping_add(slot.addend);
                if !constants.place(slot.bank as usize, slot.offset as usize, &value.to_le_bytes()) {
                    return Err(LaunchError::Constants { bank: slot.bank, offset: slot.offset });
                }
            }
            placed.push((variable.name.clone(), here));
        }
        Ok(placed)
    }
}

/// One interpolant word of a fragment program.
#[derive(Clone, Debug, PartialEq)]
pub enum Varying {
    /// By fragment: the word that interpolation gives, wherever it looks and flat as well. For a perspective
    /// attribute that is the attribute divided by w; the program multiplies by w itself. (6.7)
    Lanes(Vec<u32>),
    /// A plane, evaluated at the fragment's position; of a perspective attribute, the plane of attribute / w.
    Plane {
        /// Value at position (0, 0).
        base: f32,
        /// Change with x.
        dx: f32,
        /// Change with y.
        dy: f32,
        /// What flat interpolation gives: the provoking vertex' word.
        flat: u32,
    },
}

/// Fragments of a fragment program. Lanes 4q to 4q+3 are the quad q: upper left, upper right, lower left, lower
/// right.
#[derive(Clone, Debug)]
pub struct Fragment {
    /// What every stage has.
    pub setup: Setup,
    /// How many fragments there are. Their last quad is filled with helper lanes when `helpers` says so.
    pub lanes: usize,
    /// Whether lanes of a quad beyond `lanes`, or uncovered ones, run as helpers for derivatives.
    pub helpers: bool,
    /// By fragment: whether it is covered; empty means all are. An uncovered one runs only as a helper.
    pub covered: Vec<bool>,
    /// By fragment: the position of its centre; missing ones are laid out as a row of quads from (0.5, 0.5).
    pub centres: Vec<[f32; 2]>,
    /// By fragment: the centroid of its covered samples; missing ones are the centre.
    pub centroids: Vec<[f32; 2]>,
    /// Interpolants by slot: slot n is v\[4n\]. Slot 0 is 1/w, and 1.0 when not given.
    pub varyings: BTreeMap<u16, Varying>,
}

impl Fragment {
    /// `lanes` covered fragments without inputs.
    pub fn new(setup: Setup, lanes: usize) -> Self {
        Fragment {
            setup,
            lanes,
            helpers: false,
            covered: Vec::new(),
            centres: Vec::new(),
            centroids: Vec::new(),
            varyings: BTreeMap::new(),
        }
    }
}

/// Vertices of a vertex program.
#[derive(Clone, Debug)]
pub struct Vertex {
    /// What every stage has.
    pub setup: Setup,
    /// How many vertices there are.
    pub lanes: usize,
    /// a[] by word number (byte address / 4): one word a vertex.
    pub inputs: BTreeMap<u16, Vec<u32>>,
}

/// Primitives of a geometry program.
#[derive(Clone, Debug)]
pub struct Geometry {
    /// What every stage has.
    pub setup: Setup,
    /// How many primitives there are.
    pub lanes: usize,
    /// a[] by word number: one word a primitive; for each input vertex the p[] address of its attributes.
    pub inputs: BTreeMap<u16, Vec<u32>>,
    /// p[] by word.
    pub vertices: Vec<u32>,
}

/// Any launch.
#[derive(Clone, Debug)]
pub enum Launch {
    /// A grid of a compute program.
    Compute(Compute),
    /// Fragments.
    Fragment(Fragment),
    /// Vertices.
    Vertex(Vertex),
    /// Primitives.
    Geometry(Geometry),
}

impl Launch {
    /// What every stage has.
    pub fn setup(&self) -> &Setup {
        match self {
            Launch::Compute(launch) => &launch.setup,
            Launch::Fragment(launch) => &launch.setup,
            Launch::Vertex(launch) => &launch.setup,
            Launch::Geometry(launch) => &launch.setup,
        }
    }

    /// The program type.
    pub fn stage(&self) -> Stage {
        match self {
            Launch::Compute(_) => Stage::Compute,
            Launch::Fragment(_) => Stage::Fragment,
            Launch::Vertex(_) => Stage::Vertex,
            Launch::Geometry(_) => Stage::Geometry,
        }
    }
}

/// A launch that cannot be.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum LaunchError {
    /// A grid size outside 1 to 0xffff.
    #[error("grid {0:?}: each side is 1 to 65535")]
    Grid([u32; 2]),
    /// A block without threads, or with too many.
    #[error("block {0:?}: 1 to 65535 threads a side, at most 64 in z, at most {MOST_THREADS} in all")]
    Block([u32; 3]),
    /// More shared memory than there is.
    #[error("{0} bytes of shared memory: at most {MOST_SHARED}")]
    SharedBytes(u64),
    /// More local memory than there is.
    #[error("{0} bytes of local memory a thread: at most {MOST_LOCAL}")]
    LocalBytes(u32),
    /// More registers than there are.
    #[error("{0} registers: at most {MOST_REGISTERS}")]
    Registers(u32),
    /// Constants outside the banks.
    #[error("constants at c{bank}[{offset:#x}]: there are sixteen banks of 64 KiB")]
    Constants {
        /// The bank.
        bank: u32,
        /// The first byte.
        offset: u32,
    },
    /// Global memory that cannot be laid out so.
    #[error(transparent)]
    Memory(LayoutError),
    /// An input with fewer words than there are lanes.
    #[error("input {slot} has {given} words for {lanes} lanes")]
    InputTooShort {
        /// Slot or word number.
        slot: u16,
        /// Words given.
        given: usize,
        /// Lanes of the launch.
        lanes: usize,
    },
    /// A code base that is not a multiple of 8, or code beyond 24-bit addresses.
    #[error("code of {words} words at {base:#x}: it must start at a multiple of 8 and end within 24 bits")]
    CodeBase {
        /// Address of the first word.
        base: u32,
        /// Words of the code.
        words: usize,
    },
}

/// Why there is no result.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum RunError {
    /// The launch cannot be.
    #[error(transparent)]
    Launch(#[from] LaunchError),
    /// The program trapped.
    #[error("{0}")]
    Trap(LaunchTrap),
    /// The engines that ran in lockstep differ.
    #[error(transparent)]
    Differ(Box<Difference>),
}

/// What is left after the last instruction.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Outcome {
    /// Global memory, for compute.
    pub memory: Memory,
    /// By lane, for the other stages.
    pub lanes: Vec<LaneResult>,
    /// What was counted; the convention is at [`crate::block::Common::statistics`].
    pub statistics: Statistics,
    /// What was executed, and how exact it was.
    pub report: Report,
}

/// What all blocks of a launch share and none changes.
#[derive(Clone, Debug)]
pub struct Context {
    /// The decoded program.
    pub code: Code,
    /// The program type.
    pub stage: Stage,
    /// The chip.
    pub chip: Chip,
    /// Mode bits that change f32 results.
    pub modes: Modes,
    /// c0..c15[]
    pub constants: Constants,
    /// Where g0..g15[] lie.
    pub segments: Segments,
    /// Textures and samplers.
    pub textures: Textures,
    /// Barriers allocated, if anybody said.
    pub barriers: Option<u32>,
    /// p[] by word.
    pub vertices: Vec<u32>,
    /// What undefined behaviour does.
    pub mode: Mode,
    /// Instructions a block may issue.
    pub watchdog: u64,
    /// The program lowered for the fast engine, when that executes.
    pub fast: Option<Fast>,
    launch: Launch,
    local_bytes: u32,
}

impl Context {
    pub(crate) fn new(
        mut launch: Launch,
        program: &Program,
        options: &Options,
    ) -> Result<(Self, Memory), LaunchError> {
        let (setup, stage) = (launch.setup(), launch.stage());
        if setup.registers as usize > MOST_REGISTERS {
            return Err(LaunchError::Registers(setup.registers));
        }
        check_lanes(&launch)?;
        let end = u64::from(setup.code_base) + 4 * program.words.len() as u64;
        if !setup.code_base.is_multiple_of(8) || end > 1 << 24 {
            return Err(LaunchError::CodeBase { base: setup.code_base, words: program.words.len() });
        }
        let local_bytes = setup.local_size()?;
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
        let setup = launch.setup();
        let (registers, shared_bytes) = (setup.registers as usize, shared_bytes(&launch));
        let mut context = Context {
            code: Code::new(&program.words, setup.code_base, stage, setup.chip),
            stage,
            chip: setup.chip,
            modes: setup.modes,
            constants: setup.constants.clone(),
            segments,
            textures: setup.textures.clone(),
            barriers,
            vertices,
            mode: options.mode,
            watchdog: options.watchdog,
            fast: None,
            local_bytes,
            launch,
        };
        context.fast = match options.engine {
            Engine::Reference => None,
            Engine::Fast | Engine::Lockstep => {
                let level = options.level.unwrap_or_else(Level::best);
                Some(Fast::new(&context, registers, shared_bytes, level))
            }
        };
        Ok((context, memory))
    }

    /// How many blocks there are; graphics: how many warps.
    pub fn blocks(&self) -> usize {
        match &self.launch {
            Launch::Compute(compute) => compute.grid[0] as usize * compute.grid[1] as usize,
            Launch::Fragment(Fragment { lanes, .. })
            | Launch::Vertex(Vertex { lanes, .. })
            | Launch::Geometry(Geometry { lanes, .. }) => lanes.div_ceil(WARP),
        }
    }

    /// Block `number` before its first instruction.
    pub fn block(&self, number: usize) -> Block {
        self.block_in(number, None)
    }

    /// The same in the memory of a block of this launch that has ended.
    pub(crate) fn block_in(&self, number: usize, spare: Option<Block>) -> Block {
        match &self.launch {
            Launch::Compute(compute) => self.compute_block(compute, number, spare),
            Launch::Fragment(fragment) => self.graphics_block(number, self.fragment_warp(fragment, number)),
            Launch::Vertex(Vertex { lanes, inputs, .. })
            | Launch::Geometry(Geometry { lanes, inputs, .. }) => {
                let first = number * WARP;
                let mut warp = self.warp(number as u32, Mask::first(lanes - first));
                for (&word, values) in inputs {
                    set_input(
                        &mut warp,
                        word,
                        Input::same(row(|lane| values.get(first + lane).copied().unwrap_or(0))),
                    );
                }
                self.graphics_block(number, warp)
            }
        }
    }

    fn flow(&self, launched: Mask) -> Flow {
        let setup = self.launch.setup();
        Flow::new(setup.code_base, launched, setup.limits, self.mode)
    }

    fn warp(&self, number: u32, launched: Mask) -> Warp {
        let registers = self.launch.setup().registers as usize;
        Warp::new(self.flow(launched), number, registers, self.local_bytes)
    }

    fn graphics_block(&self, number: usize, warp: Warp) -> Block {
        self.finish_block([number as u32, 0], Shared::default(), vec![warp])
    }

    /// The block with what its engine needs.
    fn finish_block(&self, index: [u32; 2], shared: Shared, mut warps: Vec<Warp>) -> Block {
        if let Some(fast) = &self.fast {
            warps.iter_mut().for_each(|warp| fast.prepare(warp));
        }
        let mut block = Block::new(index, shared, warps, self.code.slots().len());
        block.common.runs = vec![0; self.fast.as_ref().map_or(0, Fast::blocks)];
        block
    }

    /// 1.3 (threads to lanes) and 1.6 (s[] header, `$r0`).
    fn compute_block(&self, compute: &Compute, number: usize, spare: Option<Block>) -> Block {
        let [x, y, z] = compute.block;
        let index = [number as u32 % compute.grid[0], number as u32 / compute.grid[0]];
        let threads = x * y * z;
        let mut block = spare.unwrap_or_else(|| {
            let warps = (0..threads.div_ceil(WARP as u32)).map(|number| self.warp(number, Mask::NONE));
            self.finish_block(index, Shared::default(), warps.collect())
        });
        let shared = &mut block.common.shared;
        shared.begin(shared_size(compute) as usize);
        for (place, value) in
            [x, y, z, compute.grid[0], compute.grid[1], index[0], index[1]].into_iter().enumerate()
        {
            shared.place(2 + 2 * place, &(value as u16).to_le_bytes());
        }
        shared.place(PARAMETERS as usize, &compute.params);
        // The position in the block, counted on from thread to thread.
        let mut thread = [0; 3];
        block.begin(index, |warp| {
            let launched = Mask::first((threads - warp.number * WARP as u32) as usize);
            warp.begin(compute.setup.code_base, launched);
            let row = warp.file_mut().row_mut(0).into_iter().flat_map(|row| &mut row.0);
            for position in row.take(launched.count() as usize) {
                let [tx, ty, tz] = &mut thread;
                *position = *tx | *ty << 16 | *tz << 26;
                *tx += 1;
                if *tx == x {
                    (*tx, *ty) = (0, *ty + 1);
                }
                if *ty == y {
                    (*ty, *tz) = (0, *tz + 1);
                }
            }
        });
        block
    }

    fn fragment_warp(&self, fragment: &Fragment, number: usize) -> Warp {
        let first = number * WARP;
        let given = Mask::first(fragment.lanes - first);
        let covered = Mask::from_fn(WARP, |lane| {
            given.has(lane) && fragment.covered.get(first + lane.index()).copied().unwrap_or(true)
        });
        let launched = if fragment.helpers { whole_quads(covered) } else { covered };
        let mut warp = self.warp(number as u32, launched);
        warp.flow.mark_helpers(launched - covered);
        let centre =
            |lane: usize| fragment.centres.get(first + lane).copied().unwrap_or(default_centre(first + lane));
        let centroid = |lane: usize| fragment.centroids.get(first + lane).copied().unwrap_or(centre(lane));
        set_input(&mut warp, 0, Input::same(row(|_| 1.0f32.to_bits())));
        for (&slot, varying) in &fragment.varyings {
            let input = match varying {
                Varying::Lanes(values) => {
                    Input::same(row(|lane| values.get(first + lane).copied().unwrap_or(0)))
                }
                &Varying::Plane { base, dx, dy, flat } => {
                    let of = Interpolant { base, dx, dy, flat };
                    let at = |position| row(|lane| interp(of, position, centre(lane), centroid(lane), None));
                    Input {
                        centre: at(Position::Centre),
                        centroid: at(Position::Centroid),
                        flat: at(Position::Flat),
                    }
                }
            };
            set_input(&mut warp, slot, input);
        }
        warp
    }

    /// What the lanes of a finished graphics block leave.
    pub(crate) fn results(&self, block: &Block) -> Vec<LaneResult> {
        let lanes = match &self.launch {
            Launch::Compute(_) => return Vec::new(),
            Launch::Fragment(Fragment { lanes, .. })
            | Launch::Vertex(Vertex { lanes, .. })
            | Launch::Geometry(Geometry { lanes, .. }) => *lanes,
        };
        let warp = block.current();
        let first = block.common.index[0] as usize * WARP;
        (0..WARP.min(lanes - first)).map(|lane| warp.result(Lane(lane as u8))).collect()
    }
}

/// Bytes of s[]: header, parameters, static and dynamic variables, in steps of 0x40. (1.6)
fn shared_size(compute: &Compute) -> u64 {
    let least = u64::from(PARAMETERS) + compute.params.len() as u64;
    match compute.shared_bytes {
        Some(bytes) => {
            (u64::from(bytes).max(least) + u64::from(compute.dynamic_shared)).next_multiple_of(0x40)
        }
        None => u64::from(MOST_SHARED).max(least),
    }
}

/// Bytes of s[] of a block; graphics stages have none.
fn shared_bytes(launch: &Launch) -> usize {
    match launch {
        Launch::Compute(compute) => shared_size(compute) as usize,
        Launch::Fragment(_) | Launch::Vertex(_) | Launch::Geometry(_) => 0,
    }
}

fn check_lanes(launch: &Launch) -> Result<(), LaunchError> {
    let short = |slot: u16, given: usize, lanes: usize| match given < lanes {
        true => Err(LaunchError::InputTooShort { slot, given, lanes }),
        false => Ok(()),
    };
    match launch {
        Launch::Compute(compute) => {
            let side = |size: &u32| (1..=0xffff).contains(size);
            if !compute.grid.iter().all(side) {
                return Err(LaunchError::Grid(compute.grid));
            }
            let [x, y, z] = compute.block.map(u64::from);
            // `$r0` has 16 bits for x, 10 for y, 6 for z.
            let fits = compute.block.iter().all(side) && y <= 1 << 10 && z <= 1 << 6;
            if !fits || x * y * z > u64::from(MOST_THREADS) {
                return Err(LaunchError::Block(compute.block));
            }
            match shared_size(compute) {
                size if size > u64::from(MOST_SHARED) => Err(LaunchError::SharedBytes(size)),
                _ => Ok(()),
            }
        }
        Launch::Fragment(fragment) => {
            fragment.varyings.iter().try_for_each(|(&slot, varying)| match varying {
                Varying::Lanes(values) => short(slot, values.len(), fragment.lanes),
                Varying::Plane { .. } => Ok(()),
            })
        }
        Launch::Vertex(Vertex { lanes, inputs, .. }) | Launch::Geometry(Geometry { lanes, inputs, .. }) => {
            inputs.iter().try_for_each(|(&word, values)| short(word, values.len(), *lanes))
        }
    }
}

fn row(value: impl FnMut(usize) -> u32) -> Row<WARP> {
    Row(std::array::from_fn(value))
}

fn set_input(warp: &mut Warp, word: u16, input: Input) {
    let word = usize::from(word);
    if warp.inputs.len() <= word {
        warp.inputs.resize(word + 1, None);
    }
    warp.inputs[word] = Some(input);
}

/// A row of quads: quad q covers x = 2q and 2q+1, y = 0 and 1.
fn default_centre(lane: usize) -> [f32; 2] {
    [(lane / 4 * 2 + lane % 2) as f32 + 0.5, (lane / 2 % 2) as f32 + 0.5]
}

/// A launch as a machine: one instruction a step, in the guaranteed order. A copy is a snapshot.
///
/// Steps that nobody observes are the fast engine's unless the options name the reference interpreter; the others are
/// always the reference interpreter's. ([`run`] compares the two in lockstep.)
#[derive(Clone, Debug)]
pub struct Run {
    context: Arc<Context>,
    memory: Memory,
    block: Block,
    number: usize,
    done: bool,
    finished: Totals,
}

impl Run {
    /// The launch before its first instruction.
    ///
    /// # Errors
    /// The launch cannot be. A launch without lanes is a [`LaunchError::Block`].
    pub fn new(launch: Launch, program: &Program, options: &Options) -> Result<Self, LaunchError> {
        let (context, memory) = Context::new(launch, program, options)?;
        if context.blocks() == 0 {
            return Err(LaunchError::Block([0; 3]));
        }
        let block = context.block(0);
        Ok(Run {
            context: Arc::new(context),
            memory,
            block,
            number: 0,
            done: false,
            finished: Totals::default(),
        })
    }

    /// What all blocks share.
    pub fn context(&self) -> &Context {
        &self.context
    }

    /// The block that is running, with its warps, shared memory and barriers.
    pub fn block(&self) -> &Block {
        &self.block
    }

    /// The same for changing: a debugger's hand on registers and shared memory.
    pub fn block_mut(&mut self) -> &mut Block {
        &mut self.block
    }

    /// Global memory as it is now.
    pub fn memory(&self) -> &Memory {
        &self.memory
    }

    /// Replaces global memory.
    pub fn set_memory(&mut self, memory: Memory) {
        self.memory = memory;
    }

    /// The trap with its place in the launch.
    pub fn locate(&self, trap: Trap<Cause>) -> LaunchTrap {
        self.block.locate(&self.context, trap)
    }

    /// What has been counted so far.
    pub fn statistics(&self) -> Statistics {
        let mut statistics = self.finished.statistics;
        if !self.done {
            statistics.add(&self.block.common.statistics);
        }
        statistics
    }

    /// What is left; complete once a step has said [`Step::Done`].
    pub fn outcome(self) -> Outcome {
        self.finished.outcome(&self.context, self.memory)
    }
}

impl FlowView for Run {
    fn issue(&self) -> Option<Issue> {
        self.block.current().flow.issue()
    }
    fn why(&self, lane: Lane) -> Why {
        self.block.current().flow.why(lane)
    }
    fn stack(&self) -> Vec<StackRow> {
        self.block.current().flow.stack()
    }
}

impl Machine for Run {
    type Cause = Cause;

    fn step<O: Observer>(&mut self, observer: &mut O) -> Result<Step, Trap<Cause>> {
        if self.done {
            return Ok(Step::Done);
        }
        let step = match self.context.fast.as_ref().filter(|_| !O::DATA) {
            Some(fast) => self.block.stride(fast, &self.context, &mut self.memory, observer, 1)?,
            None => self.block.step(&self.context, &mut self.memory, observer)?,
        };
        if step == Step::Running {
            return Ok(Step::Running);
        }
        if let Some(fast) = &self.context.fast {
            fast.settle(&mut self.block.common);
        }
        self.finished.retire(&self.context, &self.block);
        self.number += 1;
        if self.number == self.context.blocks() {
            self.done = true;
            return Ok(Step::Done);
        }
        self.block = self.context.block(self.number);
        Ok(Step::Running)
    }
}
