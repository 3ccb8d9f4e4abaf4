//! Sessions of Tesla launches. This file runs launches, steps launches, and creates the results of launches.

use std::ops::Range;
use std::sync::Arc;

use reconverge_isa::Program;
use reconverge_simt::fidelity::Report;
use reconverge_simt::observe::Dynamic;
use reconverge_simt::{Event, FlowView, Lane, Mask, Options, Statistics, Step, Trap, Watch};
use reconverge_tesla::block::Block;
use reconverge_tesla::flow::{ADDRESS_BITS, Token, TokenType, WARP};
use reconverge_tesla::inst::Stage;
use reconverge_tesla::launch::{
    self as machine, Compute, Fragment, Geometry, LaneResult, LaunchError, Varying, Vertex,
};
use reconverge_tesla::run::{Run, run, run_watched};
use reconverge_tesla::state::{CONDITION_REGISTERS, Emitted, REGISTER_A, REGISTER_C, Warp};
use reconverge_tesla::trap::{Cause, Space as MemorySpace};

use crate::array::{Array, Dtype};
use crate::error::{self, Access, Error, Trapped};
use crate::faults::{Kind, Word};
use crate::request::killed;
use crate::session::{
    EndedGroups, Inspect, Outcome, Ready, Register, RegisterClass, Space, SpaceOf, Steps, replace,
};

/// A buffer in global memory, which is also an output.
#[derive(Clone, Debug)]
pub(super) struct Placed {
    pub(super) name: String,
    pub(super) address: u32,
    pub(super) dtype: Dtype,
    pub(super) shape: Vec<usize>,
    pub(super) bytes: usize,
}

/// The kind of outputs of a launch.
#[derive(Clone, Debug)]
pub(super) enum Outputs {
    /// The buffers of a kernel.
    Buffers(Vec<Placed>),
    /// The outputs of the lanes of a graphics program. `results` is the number of registers that a fragment program
    /// returns.
    Lanes { stage: Stage, results: usize },
}

/// A launch of a kernel over a grid, or of a graphics program over lanes.
#[derive(Clone, Debug)]
pub struct Grid {
    /// The program.
    pub program: Program,
    /// The launch.
    pub launch: machine::Launch,
    pub(super) outputs: Outputs,
}

pub(super) fn impossible(error: LaunchError) -> Error {
    Error::Machine(error.to_string())
}

impl error::Cause for Cause {
    fn unwritten(&self) -> Option<u32> {
        match self {
            Cause::Unwritten { address, .. } => Some(*address),
            _ => None,
        }
    }

    fn other(&self) -> Option<u32> {
        match self {
            Cause::Race { accesses, .. } => Some(accesses[0].pc),
            _ => None,
        }
    }

    fn access(&self) -> Option<Access> {
        let Cause::Memory { space, address, bytes, .. } = self else { return None };
        let space = match space {
            MemorySpace::Shared => "s",
            MemorySpace::Local => "l",
            // Segment 14 covers all of memory. Each other segment covers a part of memory. So an address in another
            // segment is not an address of the memory space `g`.
            MemorySpace::Global(14) => "g",
            _ => return None,
        };
        Some(Access { space, address: *address, bytes: *bytes })
    }
}

impl Ready for Grid {
    fn copy(&self) -> Box<dyn Ready> {
        Box::new(self.clone())
    }

    fn run(self: Box<Self>, options: &Options, watch: Watch<'_>) -> Result<Box<dyn Outcome>, Error> {
        let Grid { program, launch, outputs } = *self;
        let outcome = match watch {
            Watch::Nothing => run(&program, launch, options)?,
            watch => run_watched(&program, launch, options, watch)?,
        };
        Ok(Box::new(GridOutcome { outcome, outputs }))
    }

    /// Numbers the lanes of the returned launch from 0.
    fn piece(&self, lanes: Range<usize>) -> Option<Box<dyn Ready>> {
        fn part<T: Clone>(values: &mut Vec<T>, lanes: &Range<usize>) {
            *values = values.get(lanes.clone()).unwrap_or(&[]).to_vec();
        }
        let mut grid = self.clone();
        let all = match &mut grid.launch {
            machine::Launch::Compute(_) => return None,
            machine::Launch::Fragment(fragment) => {
                fragment.varyings.iter_mut().for_each(|(_, varying)| match varying {
                    Varying::Lanes(values) => part(Arc::make_mut(values), &lanes),
                    Varying::Plane { .. } => {}
                });
                part(&mut fragment.covered, &lanes);
                // The launch may not state the centre of a fragment. In this case, the position of the fragment depends
                // on the fragment's number. In the returned launch, the fragment would have a different number.
                let numbered = fragment.centres.len() < lanes.end
                    && fragment.varyings.values().any(|varying| matches!(varying, Varying::Plane { .. }));
                if numbered {
                    return None;
                }
                part(&mut fragment.centres, &lanes);
                part(&mut fragment.centroids, &lanes);
                &mut fragment.lanes
            }
            machine::Launch::Vertex(vertex) => {
                vertex.inputs.iter_mut().for_each(|(_, values)| part(values, &lanes));
                &mut vertex.lanes
            }
            machine::Launch::Geometry(geometry) => {
                geometry.inputs.iter_mut().for_each(|(_, values)| part(values, &lanes));
                &mut geometry.lanes
            }
        };
        if lanes.is_empty() || lanes.end > *all {
            return None;
        }
        *all = lanes.len();
        Some(Box::new(grid))
    }

    fn start(&self, options: &Options) -> Result<Box<dyn Steps>, Error> {
        let run = Run::new(&self.program, self.launch.clone(), options).map_err(impossible)?;
        let warps = run.block().warps.len();
        let (blocks, width, lanes) = match &self.launch {
            machine::Launch::Compute(Compute { grid: [x, y], block, .. }) => {
                let threads = block.iter().product::<u32>() as usize;
                (*x as usize * *y as usize, *x as usize, threads)
            }
            machine::Launch::Fragment(Fragment { lanes, .. })
            | machine::Launch::Vertex(Vertex { lanes, .. })
            | machine::Launch::Geometry(Geometry { lanes, .. }) => (lanes.div_ceil(WARP), usize::MAX, *lanes),
        };
        let graphics = !matches!(self.launch, machine::Launch::Compute(_));
        let grid = Arc::new(self.clone());
        let ended = EndedGroups::default();
        let steps = GridSteps { grid, run, ended, done: false, warps, blocks, width, lanes, graphics };
        Ok(Box::new(steps))
    }
}

/// A launch that is executed step by step.
#[derive(Clone)]
struct GridSteps {
    /// The launch. The launch holds the initial memory, which can be large. So copies of `GridSteps` share one launch.
    grid: Arc<Grid>,
    run: Run,
    /// The final states of blocks that have ended. The last block of the launch is not in this list, but remains in
    /// `run`.
    ended: EndedGroups<Block>,
    done: bool,
    /// Number of warps per block.
    warps: usize,
    blocks: usize,
    /// Number of blocks in the grid's x direction.
    width: usize,
    /// Number of threads per block. In a graphics launch, number of lanes of the launch.
    lanes: usize,
    graphics: bool,
}

impl GridSteps {
    /// Returns the number of the running block. If the launch has ended, returns the number of the last block.
    fn block(&self) -> usize {
        self.number_of(self.run.block())
    }

    fn number_of(&self, block: &Block) -> usize {
        let [x, y] = block.common.index;
        if self.graphics { x as usize } else { y as usize * self.width + x as usize }
    }

    /// Returns the block of a group. The group must be running, or must have ended with its state still stored.
    fn block_of(&self, group: usize) -> Option<&Block> {
        let number = group / self.warps;
        match number == self.block() {
            true => Some(self.run.block()),
            false => self.ended.of(number),
        }
    }

    fn warp(&self, group: usize) -> Option<&Warp> {
        self.block_of(group)?.warps.get(group % self.warps)
    }

    /// If the last step ended a block, stores the block's final state.
    fn keep_ended(&mut self) {
        if let Some(block) = self.run.take_ended() {
            self.ended.keep(self.number_of(&block), block);
        }
    }

    fn warp_mut(&mut self, group: usize) -> Option<&mut Warp> {
        let here = self.running().contains(&group);
        self.run.block_mut().warps.get_mut(group % self.warps).filter(|_| here)
    }

    /// Returns the number of a register within its class. Returns `None` if warps do not have the register.
    fn number(&self, Register { class, number, channel }: Register) -> Option<u8> {
        let known = self.registers().into_iter().find(|known| known.name == class)?;
        u8::try_from(number).ok().filter(|_| number < known.count && channel == 0)
    }

    /// Updates the state after a step. If the step trapped, converts the trap to an error.
    fn stepped(&mut self, step: Result<Step, Trap<Cause>>) -> Result<(), Error> {
        self.keep_ended();
        let step = step.map_err(|trap| Error::Trap(Box::new(Trapped::from(&self.run.locate(trap)))))?;
        self.done = step == Step::Done;
        Ok(())
    }
}

impl Inspect for GridSteps {
    fn registers(&self) -> Vec<RegisterClass> {
        let count = self.grid.launch.setup().registers as usize;
        vec![
            RegisterClass { name: "$r", count, channels: "", first: 0 },
            RegisterClass { name: "$a", count: 8, channels: "", first: REGISTER_A },
            RegisterClass { name: "$c", count: 4, channels: "", first: REGISTER_C },
        ]
    }

    fn read(&self, group: usize, register: Register) -> Option<Vec<u32>> {
        let (warp, number) = (self.warp(group)?, self.number(register)?);
        let word = |lane: u8| match register.class {
            "$r" => warp.r(Lane(lane), number),
            "$a" => warp.a(Lane(lane), number).into(),
            _ => warp.c(Lane(lane), number).into(),
        };
        Some((0..self.lanes(group).len() as u8).map(word).collect())
    }

    fn spaces(&self) -> Vec<Space> {
        let constant = CONSTANTS.iter().map(|name| Space { name, of: SpaceOf::Launch });
        let own = [("g", SpaceOf::Launch), ("s", SpaceOf::Group), ("l", SpaceOf::Lane)];
        own.into_iter().map(|(name, of)| Space { name, of }).chain(constant).collect()
    }

    fn memory(&self, space: &str, group: usize, lane: Lane, address: u32, count: usize) -> Vec<u8> {
        let part = |bytes: &[u8], start: u32| {
            let rest = bytes.get(start as usize..).unwrap_or_default();
            rest[..rest.len().min(count)].to_vec()
        };
        let from = |bytes: &[u8]| part(bytes, address);
        match space {
            "g" => {
                // A read does not extend beyond the end of the buffer that contains the address.
                let buffer = self.run.memory().buffers().iter().rfind(|buffer| buffer.address <= address);
                buffer.map_or(Vec::new(), |buffer| part(&buffer.bytes, address - buffer.address))
            }
            "s" => self.block_of(group).map_or(Vec::new(), |block| from(block.common.shared.bytes())),
            "l" => {
                let local = |warp: &Warp| {
                    let mut bytes = vec![0; warp.local_bytes() as usize];
                    warp.read_local(lane, 0, &mut bytes).map(|()| from(&bytes))
                };
                self.warp(group).and_then(local).unwrap_or_default()
            }
            bank => match CONSTANTS.iter().position(|name| *name == bank) {
                Some(bank) => from(self.run.context().setup.constants.bank(bank)),
                None => Vec::new(),
            },
        }
    }

    fn set(&mut self, group: usize, register: Register, lane: Lane, value: u32) -> bool {
        let Some(number) = self.number(register) else { return false };
        let fits = lane.index() < self.lanes(group).len();
        let Some(warp) = self.warp_mut(group).filter(|_| fits) else { return false };
        match register.class {
            "$r" => warp.set_r(lane, number, value),
            // $a0 and all registers from $a5 on are always 0. (1.4)
            "$a" => match u16::try_from(value) {
                Ok(value) if (1..=4).contains(&number) => warp.set_a(lane, number, value),
                _ => return false,
            },
            _ => match u8::try_from(value) {
                Ok(flags) if flags < 16 => warp.set_c(lane, number, flags),
                _ => return false,
            },
        }
        true
    }

    fn store(&mut self, space: &str, group: usize, lane: Lane, address: u32, bytes: &[u8]) -> bool {
        match space {
            "g" => {
                let place = self.run.memory_mut().bytes_mut(address, bytes.len());
                place.map(|place| place.copy_from_slice(bytes)).is_some()
            }
            "s" if self.running().contains(&group) => {
                let shared = &mut self.run.block_mut().common.shared;
                shared.written_from_outside(address as usize..(address as usize).saturating_add(bytes.len()));
                replace(shared.bytes_mut(), address, bytes)
            }
            "l" => self.warp_mut(group).and_then(|warp| warp.write_local(lane, address, bytes)).is_some(),
            // The remaining spaces are constant banks. All blocks share the constants, so the constants cannot be
            // changed.
            _ => false,
        }
    }

    fn buffers(&self, space: &str, group: usize, _lane: Lane) -> Vec<(String, Range<u64>)> {
        let whole = |name: &str, bytes: usize| vec![(name.to_owned(), 0..bytes as u64)];
        match (space, &self.grid.outputs) {
            ("g", Outputs::Buffers(placed)) => {
                let range = |placed: &Placed| {
                    let start = u64::from(placed.address);
                    (placed.name.clone(), start..start + placed.bytes as u64)
                };
                placed.iter().map(range).collect()
            }
            ("s", _) => {
                let block = self.block_of(group);
                whole("s[]", block.map_or(0, |block| block.common.shared.bytes().len()))
            }
            ("l", _) => whole("l[]", self.warp(group).map_or(0, |warp| warp.local_bytes() as usize)),
            _ => Vec::new(),
        }
    }

    fn words(&self, kind: Kind) -> Vec<Word> {
        let flow = &self.run.block().current().flow;
        let lanes = flow.launched();
        match kind {
            Kind::Predicate => {
                let registers = 0..CONDITION_REGISTERS;
                let of = |number| lanes.lanes().map(move |lane| Word::number(kind, number, Some(lane), 4));
                registers.flat_map(of).collect()
            }
            Kind::ActiveMask => vec![Word::of_lanes(kind, 0, 0, lanes)],
            Kind::Token => {
                let parts = |(number, token): (usize, &Token)| {
                    // A QUADON token has a mask but no address.
                    let address = Word::of_lanes(kind, number, 1, Mask(ADDRESS_BITS.into()));
                    let address = (token.token != TokenType::Quadon).then_some(address);
                    std::iter::once(Word::of_lanes(kind, number, 0, lanes)).chain(address)
                };
                flow.tokens().iter().enumerate().flat_map(parts).collect()
            }
            Kind::StackEntry | Kind::BranchCounter | Kind::LoopCounter => Vec::new(),
        }
    }

    fn word(&self, word: &Word) -> u64 {
        let warp = self.run.block().current();
        let token = warp.flow.tokens().get(word.number);
        let held = match (word.kind, word.lane, token) {
            (Kind::Predicate, Some(lane), _) => warp.c(lane, word.number as u8).into(),
            (Kind::ActiveMask, ..) => warp.flow.active().0,
            (Kind::Token, _, Some(token)) if word.part == 0 => token.mask.0,
            (Kind::Token, _, Some(token)) if word.part == Word::TYPE => token.token as u64 + 1,
            (Kind::Token, _, Some(token)) => token.pc.into(),
            (Kind::Predicate | Kind::Token, ..) => 0,
            (Kind::StackEntry | Kind::BranchCounter | Kind::LoopCounter, ..) => 0,
        };
        held & word.bits
    }

    fn set_word(&mut self, word: &Word, value: u64) {
        let block = self.run.block_mut();
        let warp = block.current_mut();
        let value = value & word.bits;
        match (word.kind, word.lane) {
            (Kind::Predicate, Some(lane)) => warp.set_c(lane, word.number as u8, value as u8),
            (Kind::ActiveMask, _) => {
                warp.flow.set_active(Mask(value));
                block.yield_turn();
            }
            (Kind::Token, _) if word.part == 0 => warp.flow.set_token_mask(word.number, Mask(value)),
            (Kind::Token, _) if word.part == Word::TYPE => {
                let token = TokenType::ALL.into_iter().find(|token| *token as u64 + 1 == value);
                if let Some(token) = token {
                    warp.flow.set_token_type(word.number, token);
                }
            }
            (Kind::Token, _) => warp.flow.set_token_pc(word.number, value as u32),
            (Kind::Predicate, None) => {}
            (Kind::StackEntry | Kind::BranchCounter | Kind::LoopCounter, _) => {}
        }
    }
}

impl Steps for GridSteps {
    fn copy(&self) -> Box<dyn Steps> {
        Box::new(self.clone())
    }

    fn shape(&self) -> (usize, usize) {
        (if self.graphics { self.lanes } else { self.blocks * self.lanes }, WARP)
    }

    fn groups(&self) -> usize {
        self.blocks * self.warps
    }

    fn groups_per_block(&self) -> Option<usize> {
        (!self.graphics).then_some(self.warps)
    }

    fn current(&self) -> Option<usize> {
        // In a graphics launch, each block consists of one warp, which has the number 0 in the block. `number` is then
        // the warp's number in the launch.
        let warp = if self.graphics { 0 } else { self.run.block().current().number as usize };
        (!self.done).then(|| self.block() * self.warps + warp)
    }

    fn running(&self) -> Range<usize> {
        match self.done {
            true => self.groups()..self.groups(),
            false => self.block() * self.warps..(self.block() + 1) * self.warps,
        }
    }

    fn view(&self, group: usize) -> Option<&dyn FlowView> {
        self.warp(group).map(|warp| &warp.flow as &dyn FlowView)
    }

    fn lanes(&self, group: usize) -> Range<usize> {
        let (block, first) = (group / self.warps, group % self.warps * WARP);
        match self.graphics {
            true => group * WARP..self.lanes.min((group + 1) * WARP),
            false => block * self.lanes + first..block * self.lanes + self.lanes.min(first + WARP),
        }
    }

    fn step(&mut self, observer: &mut dyn FnMut(Event)) -> Result<(), Error> {
        let step = self.run.step_watched(Watch::of(&mut Dynamic(observer)));
        self.stepped(step)
    }

    fn advance(&mut self, most: u64, watch: Watch<'_>) -> Result<(), Error> {
        let step = self.run.advance(most, watch);
        self.stepped(step)
    }

    fn next_words(&self) -> Option<Vec<usize>> {
        let (code, pc) = (&self.run.context().code, self.run.block().current().flow.pc());
        let words = code.at(pc).ok().filter(|_| !self.done)?.form.words() as usize;
        let first = code.place(pc)?;
        Some((first..first + words).collect())
    }

    fn set_program(&mut self, program: &Program) -> bool {
        let same = program.words.len() == self.grid.program.words.len();
        if same {
            self.run.set_words(&program.words);
        }
        same
    }

    fn statistics(&self) -> Statistics {
        self.run.statistics()
    }

    fn outcome(&self) -> Box<dyn Outcome> {
        Box::new(self.grid.left(self.run.clone().outcome()))
    }
}

/// Names of the constant banks.
const CONSTANTS: [&str; 16] =
    ["c0", "c1", "c2", "c3", "c4", "c5", "c6", "c7", "c8", "c9", "c10", "c11", "c12", "c13", "c14", "c15"];

/// The results of a run, with the outputs.
pub struct GridOutcome {
    /// The results in the form that the machine's crate returns.
    pub outcome: machine::Outcome,
    pub(super) outputs: Outputs,
}

impl Grid {
    /// Adds the description of the outputs to the results of a run of this launch.
    pub fn left(&self, outcome: machine::Outcome) -> GridOutcome {
        GridOutcome { outcome, outputs: self.outputs.clone() }
    }
}

impl Outcome for GridOutcome {
    fn statistics(&self) -> Statistics {
        self.outcome.statistics
    }

    fn report(&self) -> &Report {
        &self.outcome.report
    }

    fn outputs(&self) -> Vec<(String, Array)> {
        match &self.outputs {
            Outputs::Buffers(placed) => placed.iter().map(|placed| contents(placed, &self.outcome)).collect(),
            Outputs::Lanes { stage, results } => lane_outputs(&self.outcome, *stage, *results),
        }
    }
}

fn contents(placed: &Placed, outcome: &machine::Outcome) -> (String, Array) {
    let Placed { name, address, dtype, shape, bytes } = placed.clone();
    let bytes = outcome.memory.bytes(address, bytes).unwrap_or_default().to_vec();
    (name, Array { dtype, shape, bytes })
}

fn lane_outputs(outcome: &machine::Outcome, stage: Stage, results: usize) -> Vec<(String, Array)> {
    let (mut outputs, lanes) = (Vec::new(), outcome.lanes.len());
    let word = |words: &[u32], number: usize| words.get(number).copied().unwrap_or(0);
    match stage {
        Stage::Fragment => {
            let of = |numbers: Range<usize>| {
                let one = |lane| {
                    numbers.clone().map(move |number| outcome.lanes.register(lane, number).unwrap_or(0))
                };
                Array::from_words(Dtype::F32, vec![lanes, numbers.len()], (0..lanes).flat_map(one))
            };
            let colors = results / 4;
            outputs.extend((0..colors).map(|color| (format!("color{color}"), of(4 * color..4 * color + 4))));
            if results > 4 * colors {
                outputs.push(("others".to_owned(), of(4 * colors..results)));
            }
            outputs.extend(killed(outcome.lanes.iter().map(|lane| lane.dead)));
        }
        Stage::Vertex | Stage::Compute => {
            let count = outcome.lanes.iter().map(|lane| lane.outputs.len()).max().unwrap_or(0);
            let of = |lane: LaneResult| (0..count).map(move |number| word(&lane.outputs, number));
            let words = outcome.lanes.iter().flat_map(of);
            outputs.push(("outputs".to_owned(), Array::from_words(Dtype::F32, vec![lanes, count], words)));
        }
        Stage::Geometry => {
            let vertices = |lane: LaneResult| {
                let vertex = |emitted: Emitted| match emitted {
                    Emitted::Vertex(words) => Some(words),
                    Emitted::Restart => None,
                };
                lane.emitted.into_iter().filter_map(vertex).collect::<Vec<_>>()
            };
            let each: Vec<Vec<Vec<u32>>> = outcome.lanes.iter().map(vertices).collect();
            let all = || each.iter().flatten();
            let count = all().map(Vec::len).max().unwrap_or(0);
            let words = all().flat_map(|vertex| (0..count).map(|number| word(vertex, number)));
            let emitted = Array::from_words(Dtype::F32, vec![all().count(), count], words);
            outputs.push(("emitted".to_owned(), emitted));
            let per_lane = each.iter().map(|vertices| vertices.len() as u32);
            let per_lane = Array::from_words(Dtype::U32, vec![lanes], per_lane);
            outputs.push(("emitted_per_lane".to_owned(), per_lane));
        }
    }
    outputs
}
