//! Runs straight-line fragment and vertex programs. For each warp of a launch, the engine executes the operations of
//! the program in order, without control flow.
//!
//! All lanes of a straight-line program execute all instructions of the program. The number of executed instructions is
//! therefore known before the program runs. The engine copies inputs from columns or planes to rows, and results from
//! rows to columns. If an instruction reads only constants, the engine executes the instruction once for all warps. In
//! a measurement, a full-screen quad with a colour ramp took half the time of the ordinary path (GT215, an AMD EPYC,
//! AVX2). Fragment warps in which only part of a quad runs take the ordinary path.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;

use reconverge_simt::level::Task;
use reconverge_simt::memory::Memory;
use reconverge_simt::registers::Row;
use reconverge_simt::wide::Wide;
use reconverge_simt::workers::try_hand_out;
use reconverge_simt::{GroupTrap, Mask, Silent, stop};

use super::Fast;
use super::lanes::{ACTIVE, Handler, Lanes};
use super::lower::{Last, Lowered, NONE, Template, Test};
use super::operands::{Operation, Place};
use super::stage::position;
use crate::block::{Block, Executor};
use crate::context::{Common, Context};
use crate::flow::WARP;
use crate::grid::{Grid, Totals};
use crate::inputs::Positions;
use crate::inst::{Group, Inst, Op, Operand, Space, Stage};
use crate::lane::interpolate::{Interpolant, Position};
use crate::launch::{Fragment, Launch, Varying};
use crate::results::room_for_outputs;
use crate::state::Parts;
use crate::trap::Cause;
use crate::uses::{self, Accesses, accesses};

/// A straight-line program, as steps for each warp.
#[derive(Clone, Debug)]
pub(super) struct Straight {
    /// Steps that run once for all warps, and the steps that run for each warp afterwards.
    first: Vec<WarpStep>,
    each: Vec<WarpStep>,
    /// Number of rows that [`WarpStep::Keep`] writes, and the index of the first such row. These rows come after the
    /// rows of the lowered program.
    kept: usize,
    first_kept: usize,
    /// Registers that each warp sets to zero at its start, because the warp may read such a register or return the
    /// register as a result.
    zeroed: Vec<Place>,
    /// Registers that the steps of a warp write, in ascending order. Registers outside this list have the same values
    /// in all warps.
    written: Vec<usize>,
    /// Number of words of o[], up to the last word that a warp writes.
    outputs: usize,
    /// Whether the program writes `$a` or `$c`.
    writes_flags: bool,
    /// The indices of the instructions in the code.
    places: Vec<usize>,
}

#[derive(Clone, Copy, Debug)]
enum WarpStep {
    /// Sets a row to input word `word`. If the word is an interpolant, the word is evaluated at `position`.
    Input {
        word: u16,
        position: Position,
        to: Place,
    },
    Operation(Handler, Operation),
    /// Marks lanes as dead if their predicate holds. Dead lanes continue as helpers for their quads.
    Discard(Test),
    /// Copies a register, which is the same for all warps, to a row. Later, [`WarpStep::Restore`] copies the row back
    /// to the register.
    Keep {
        number: usize,
        register: u8,
    },
    Restore {
        number: usize,
        register: u8,
    },
}

/// The registers that instructions have written so far.
#[derive(Default)]
struct RegisterHistory {
    /// For each register that the program writes, the number of instructions that write this register.
    writers: BTreeMap<u8, u32>,
    /// `whole`: registers that all lanes have written. `fixed`: registers whose values are the same in all warps.
    whole: BTreeSet<u8>,
    fixed: BTreeSet<u8>,
    zeroed: BTreeSet<u8>,
    /// By register, the number of the row that keeps the value of the register. Later, a step restores the register
    /// from the row. The value is the same for all warps.
    away: BTreeMap<u8, usize>,
}

impl Straight {
    /// Returns the straight-line form of a program. Returns `None` if some lane may not run the whole program to its
    /// end. `ones` means that the launch does not provide 1/w. The value of 1/w is then 1.
    pub(super) fn of(lowered: &Lowered, context: &Context, ones: bool) -> Option<Straight> {
        if !matches!(context.stage, Stage::Fragment | Stage::Vertex) {
            return None;
        }
        let mut found = Vec::new();
        let mut number = *lowered.starts.first()?;
        loop {
            let block = lowered.blocks.get(number as usize).filter(|_| number != NONE)?;
            let discards = match block.last {
                _ if block.join => return None,
                Last::Next => None,
                Last::Discard { guard } => Some(guard),
                _ => return None,
            };
            let inside = &lowered.inside[number as usize];
            let mut start = block.start;
            for (place, end) in inside.places.iter().zip(&inside.ends) {
                found.push((*place, context.code.slot(*place)?, start as usize..*end as usize, None));
                start = *end;
            }
            // `places` includes the last instruction of the block, and `ends` does not.
            if let (Some(guard), Some(place)) = (discards, inside.places.last()) {
                found.push((*place, context.code.slot(*place)?, 0..0, Some(guard)));
            }
            if block.exit {
                break;
            }
            number = block.fall;
        }
        // The last warp of a vertex launch may have a part of a quad. The registers of the missing lanes are zeros, but in
        // a straight-line program, these lanes may have other values.
        let reads_quad = |inst: &Inst| match &inst.op {
            Op::Group(Group::Tex(tex)) => tex.deriv,
            op => matches!(op, Op::Group(Group::Quadop { .. })),
        };
        if context.stage == Stage::Vertex && found.iter().any(|(_, inst, ..)| reads_quad(inst)) {
            return None;
        }
        let (mut known, mut writes_flags, mut outputs) = (RegisterHistory::default(), false, 0);
        for (_, inst, ..) in found.iter().filter(|(.., operations, _)| !operations.is_empty()) {
            for place in accesses(inst, context.stage).writes {
                match place {
                    uses::Place::R(register) => *known.writers.entry(register).or_default() += 1,
                    uses::Place::Half(half) => *known.writers.entry(half / 2).or_default() += 1,
                    uses::Place::A(_) | uses::Place::C(_) => writes_flags = true,
                    uses::Place::O(word) => outputs = outputs.max(usize::from(word) + 1),
                    uses::Place::IndexedO => return None,
                }
            }
        }
        let mut straight = Straight {
            first: Vec::new(),
            each: Vec::new(),
            kept: 0,
            first_kept: lowered.tables.layout.rows(),
            zeroed: Vec::new(),
            written: Vec::new(),
            outputs,
            writes_flags,
            places: found.iter().map(|(place, ..)| *place).collect(),
        };
        for (_, inst, operations, discard) in found {
            if let Some(guard) = discard {
                straight.each.push(WarpStep::Discard(guard));
            }
            if operations.is_empty() {
                continue;
            }
            let of = accesses(inst, context.stage);
            let steps: Vec<WarpStep> =
                operations.map(|number| WarpStep::of(lowered, number)).collect::<Option<_>>()?;
            if known.take(inst, &of, ones) {
                straight.first.extend(steps);
                for (register, _) in of.writes.iter().filter_map(register) {
                    let is_there = u32::from(register) < context.setup.registers;
                    if is_there && known.writers.get(&register) != Some(&1) {
                        straight.first.push(WarpStep::Keep { number: straight.kept, register });
                        known.away.insert(register, straight.kept);
                        straight.kept += 1;
                    }
                }
            } else {
                for (register, _) in of.reads.iter().filter_map(|(place, ..)| register(place)) {
                    straight.restore(&mut known, register);
                }
                for (register, is_all) in of.writes.iter().filter_map(register) {
                    if !is_all || of.conditional {
                        straight.restore(&mut known, register);
                    }
                    known.away.remove(&register);
                }
                straight.each.extend(steps);
            }
        }
        while let Some((register, _)) = known.away.first_key_value() {
            let register = *register;
            straight.restore(&mut known, register);
        }
        let is_there = |register: &usize| *register < context.setup.registers as usize;
        let place = |register: usize| lowered.tables.layout.place(register);
        let is_fixed = |(register, writers): &(&u8, &u32)| **writers == 1 && known.fixed.contains(*register);
        let written = known.writers.iter().filter(|writer| !is_fixed(writer));
        straight.written = written.map(|(register, _)| usize::from(*register)).filter(is_there).collect();
        straight.zeroed = known.zeroed.iter().copied().map(usize::from).filter(is_there).map(place).collect();
        Some(straight)
    }

    /// For each register with the same value in all warps, appends `warps` copies of the value to the column of the
    /// register.
    fn fill(&self, lanes: &Lanes<'_>, results: &mut [Vec<u32>], warps: usize) {
        for (register, column) in results.iter_mut().enumerate() {
            if self.written.binary_search(&register).is_err() {
                let word = lanes.row_of(lanes.tables.layout.place(register))[0];
                column.resize(column.len() + warps * WARP, word);
            }
        }
    }

    /// Returns the number of rows that [`WarpStep::Keep`] writes.
    pub(super) fn kept(&self) -> usize {
        self.kept
    }

    /// If a row keeps the value of `register`, adds a step that copies the row to the register.
    fn restore(&mut self, known: &mut RegisterHistory, register: u8) {
        if let Some(number) = known.away.remove(&register) {
            self.each.push(WarpStep::Restore { number, register });
        }
    }

    /// Returns the sources of the inputs of all warps, in the order of the steps. Returns `None` if a compute or
    /// geometry launch needs inputs.
    fn sources<'a>(&self, launch: &'a Launch) -> Option<Vec<InputSource<'a>>> {
        let inputs = self.each.iter().filter_map(|step| match step {
            WarpStep::Input { word, position, .. } => Some((word, *position)),
            WarpStep::Operation(..)
            | WarpStep::Discard(_)
            | WarpStep::Keep { .. }
            | WarpStep::Restore { .. } => None,
        });
        let source = |(word, position)| match launch {
            Launch::Fragment(fragment) => Some(match fragment.varyings.get(word) {
                Some(Varying::Lanes(values)) => InputSource::Column(values),
                Some(&Varying::Plane { base, dx, dy, flat }) => {
                    let of = Interpolant { base, dx, dy, flat };
                    match position {
                        Position::Centre => InputSource::Plane { of, place: 0 },
                        Position::Centroid => InputSource::Plane { of, place: 1 },
                        Position::Flat => InputSource::Word(flat),
                    }
                }
                None => InputSource::Word(absent(*word)),
            }),
            Launch::Vertex(vertex) => {
                Some(InputSource::Column(vertex.inputs.get(word).map_or(&[][..], Vec::as_slice)))
            }
            Launch::Compute(_) | Launch::Geometry(_) => None,
        };
        inputs.map(source).collect()
    }
}

/// The source of an input word for the lanes of a launch.
#[derive(Clone, Copy, Debug)]
enum InputSource<'a> {
    /// One word for each lane. Lanes after the last word read 0.
    Column(&'a [u32]),
    /// The same word for all lanes.
    Word(u32),
    /// A plane, evaluated at the centres (`place` 0) or at the centroids (`place` 1) of the pixels.
    Plane { of: Interpolant, place: usize },
}

/// Returns the value of a word of v[] that a fragment launch does not provide. The value is 1 for 1/w, and 0 for any
/// other word.
fn absent(word: u16) -> u32 {
    if word == 0 { 1f32.to_bits() } else { 0 }
}

/// Returns the register of a location, and whether the location is the whole register.
fn register(place: &uses::Place) -> Option<(u8, bool)> {
    match *place {
        uses::Place::R(register) => Some((register, true)),
        uses::Place::Half(half) => Some((half / 2, false)),
        uses::Place::A(_) | uses::Place::C(_) | uses::Place::O(_) | uses::Place::IndexedO => None,
    }
}

impl RegisterHistory {
    /// Records the next instruction. Returns whether the result of the instruction is the same for all warps. Such an
    /// instruction can run once for all warps.
    fn take(&mut self, inst: &Inst, of: &Accesses, ones: bool) -> bool {
        let is_written = |register: &u8| self.writers.contains_key(register);
        for (register, _) in of.reads.iter().filter_map(|(place, ..)| register(place)) {
            if !self.whole.contains(&register) && is_written(&register) {
                self.zeroed.insert(register);
            }
        }
        // If a warp may read a register before this instruction writes the register, each warp must run this
        // instruction separately.
        let is_whole = |place: &uses::Place| match register(place) {
            Some((number, true)) => self.writers.get(&number) != Some(&1) || !self.zeroed.contains(&number),
            _ => false,
        };
        let is_same = |place: &uses::Place| {
            register(place).is_some_and(|(number, _)| self.fixed.contains(&number) || !is_written(&number))
        };
        let constant = |place: &crate::inst::Mem| match place.space {
            Space::Const(_) => true,
            Space::Varying => ones && place.offset == 0,
            _ => false,
        };
        let is_plain = matches!(inst.op, Op::Arith(_) | Op::Memory(_)) && !of.conditional;
        let is_fixed = is_plain
            && !inst.src.iter().any(|operand| matches!(operand, Operand::Special(_)))
            && of.writes.iter().all(is_whole)
            && of.reads.iter().all(|(place, ..)| is_same(place))
            && of.memory.iter().all(|(place, written)| !written && constant(place));
        for (number, all) in of.writes.iter().filter_map(register) {
            if all && !of.conditional {
                self.whole.insert(number);
            } else if !self.whole.contains(&number) {
                self.zeroed.insert(number);
            }
            match is_fixed {
                true => self.fixed.insert(number),
                false => self.fixed.remove(&number),
            };
        }
        is_fixed
    }
}

impl WarpStep {
    /// Returns the step for an operation. If the operation reads an input in only some lanes, returns `None`.
    fn of(lowered: &Lowered, number: usize) -> Option<WarpStep> {
        let (handler, operation) = lowered.operations[number];
        Some(match lowered.templates[number] {
            Template::FromInput if usize::from(operation.set) == ACTIVE => {
                let (word, position) = (u16::try_from(operation.number).ok()?, position(operation.c));
                WarpStep::Input { word, position, to: operation.dst }
            }
            Template::FromInput => return None,
            _ => WarpStep::Operation(handler, operation),
        })
    }
}

/// Runs warps whose lanes are whole quads or vertices. The compiler compiles this task for each level of vector
/// instructions.
struct Warps<'a> {
    fast: &'a Fast,
    straight: &'a Straight,
    grid: &'a Grid,
    block: &'a mut Block,
    sources: &'a [InputSource<'a>],
    numbers: Range<usize>,
    totals: &'a mut Totals,
}

impl Task for Warps<'_> {
    /// The number of warps that have run. The next warp, if any, must take the ordinary path.
    type Output = usize;

    #[inline(always)]
    fn run<W: Wide>(self, wide: W) -> usize {
        let Warps { fast, straight, grid, block, sources, numbers, totals } = self;
        // The fragment launch, if the program reads planes.
        let fragment: Option<&Fragment> = match grid.launch() {
            Launch::Fragment(fragment) => Some(fragment),
            Launch::Compute(_) | Launch::Vertex(_) | Launch::Geometry(_) => None,
        };
        let planes = |source: &InputSource<'_>| matches!(source, InputSource::Plane { .. });
        let fragment = fragment.filter(|_| sources.iter().any(planes));
        let Block { warps, common: Common { shared, .. }, .. } = block;
        let Parts { rows, a, c, .. } = warps[0].parts();
        let (mut outputs, tables) = (Vec::new(), &fast.lowered.tables);
        // SAFETY: the operations of a straight-line program are operations of the lowered program, and `tables` are the
        // tables of the lowered program.
        let mut lanes = unsafe { Lanes::new(rows, a, c, (&[], &mut outputs), shared, (0, 0), tables) };
        lanes.activate(u32::MAX);
        let place = |register: &u8| tables.layout.place(usize::from(*register));
        let kept = |number: &usize| tables.layout.place(straight.first_kept + number);
        for step in &straight.first {
            match step {
                WarpStep::Input { word, to, .. } => lanes.row_mut(*to).0 = [absent(*word); WARP],
                // SAFETY: operations were lowered for the level on which `Fast` runs.
                WarpStep::Operation(handler, operation) => unsafe { handler(&mut lanes, operation) },
                WarpStep::Keep { number, register } => {
                    lanes.row_mut(kept(number)).0 = lanes.row(place(register));
                }
                WarpStep::Discard(_) | WarpStep::Restore { .. } => {}
            }
        }
        // `ran` counts the warps that have run, and their lanes. If no step of a warp writes a register, this loop
        // fills the column of the register later. `behind` counts the warps whose values are still missing in the
        // columns of such registers.
        let (mut ran, mut behind) = ([0, 0], 0);
        for number in numbers {
            let lanes_that_run = grid.straight_lanes(number).filter(|_| !stop::asked());
            let Some((launched, dead)) = lanes_that_run else { break };
            lanes.activate(launched.0 as u32);
            lanes.dead = dead.0 as u32;
            *lanes.outputs = room_for_outputs(straight.outputs);
            for place in &straight.zeroed {
                *lanes.row_mut(*place) = Row::ZERO;
            }
            if straight.writes_flags {
                (*lanes.a, *lanes.c) = Default::default();
            }
            let positions = fragment.map(|fragment| Positions::of(fragment, number * WARP));
            let mut sources = sources.iter();
            for step in &straight.each {
                match step {
                    WarpStep::Input { word, to, .. } => {
                        let row = lanes.row_mut(*to);
                        match (sources.next(), &positions) {
                            (Some(InputSource::Column(column)), _) => {
                                let column = column.get(number * WARP..).unwrap_or_default();
                                match column.first_chunk() {
                                    Some(words) => row.0 = *words,
                                    None => {
                                        row.0[..column.len()].copy_from_slice(column);
                                        row.0[column.len()..].fill(0);
                                    }
                                }
                            }
                            (Some(InputSource::Plane { of, place }), Some(positions)) => {
                                *row = positions[*place].interpolated(*of);
                            }
                            (Some(InputSource::Word(same)), _) => row.0 = [*same; WARP],
                            _ => row.0 = [absent(*word); WARP],
                        }
                    }
                    // SAFETY: operations were lowered for the level on which `Fast` runs.
                    WarpStep::Operation(handler, operation) => unsafe { handler(&mut lanes, operation) },
                    WarpStep::Discard(test) => {
                        let killed = match test.always {
                            true => u64::MAX,
                            false => wide.select(&test.table, lanes.c(test.c)),
                        };
                        lanes.dead |= (launched & Mask(killed)).0 as u32;
                    }
                    WarpStep::Restore { number, register } => {
                        lanes.row_mut(place(register)).0 = lanes.row(kept(number));
                    }
                    WarpStep::Keep { .. } => {}
                }
            }
            let results = totals.columns(grid);
            if launched == Mask::first(WARP) {
                for register in &straight.written {
                    let Some(column) = results.get_mut(*register) else { break };
                    column.extend_from_slice(lanes.row_of(tables.layout.place(*register)));
                }
                behind += 1;
            } else {
                straight.fill(&lanes, results, std::mem::take(&mut behind));
                let members = lanes.members(ACTIVE as u8);
                for (register, column) in results.iter_mut().enumerate() {
                    // The results of lanes that do not run are zeros.
                    let mut row = lanes.row(tables.layout.place(register));
                    row.iter_mut().zip(&members).for_each(|(word, member)| *word &= member);
                    column.extend_from_slice(&row);
                }
            }
            let dead = Mask(lanes.dead.into());
            totals.add_whole(grid, number, dead, std::mem::take(lanes.outputs));
            ran = [ran[0] + 1, ran[1] + launched.count() as usize];
        }
        straight.fill(&lanes, totals.columns(grid), behind);
        totals.count_whole(ran, &straight.places);
        ran[0]
    }
}

impl Fast {
    /// Runs a launch of a straight-line program on `workers` threads. Returns `None` if the launch must take the
    /// ordinary path. Results and counts equal the results and counts of an ordinary run.
    pub(crate) fn run_straight(
        &self,
        grid: &Grid,
        workers: usize,
    ) -> Option<Result<Totals, GroupTrap<Cause>>> {
        let ones = matches!(grid.launch(), Launch::Fragment(fragment) if !fragment.varyings.contains_key(&0));
        let straight = self.straight[usize::from(ones)].as_deref()?;
        let sources = straight.sources(grid.launch())?;
        if straight.places.len() as u64 > grid.context().watchdog || self.is_compiled() {
            return None;
        }
        let warps = grid.blocks();
        if workers == 1 || warps < MANY {
            return Some(self.part(straight, grid, &sources, 0..warps));
        }
        let parts = (0..warps).step_by(PART).map(|first| first..warps.min(first + PART));
        let done = try_hand_out(workers, parts, || (), |(), part| self.part(straight, grid, &sources, part));
        Some(done.map(|done| {
            let mut totals = Totals::with_room(grid, warps);
            done.results.into_iter().for_each(|part| totals.add(part));
            totals
        }))
    }

    /// Runs a range of warps.
    fn part(
        &self,
        straight: &Straight,
        grid: &Grid,
        sources: &[InputSource<'_>],
        numbers: Range<usize>,
    ) -> Result<Totals, GroupTrap<Cause>> {
        let mut totals = Totals::with_room(grid, numbers.len());
        let mut spare = self.spare(grid.launch().setup());
        let mut rest = numbers;
        while !rest.is_empty() {
            if stop::asked() || grid.straight_lanes(rest.start).is_none() {
                let block = grid.begin(self, rest.start, &mut spare);
                // The program does not access memory.
                if !stop::asked() {
                    block.run(self, grid.context(), &mut Memory::default(), &mut Silent)?;
                }
                totals.retire(grid, block);
                rest.start += 1;
                continue;
            }
            // The program uses only the registers of the block, so this function does not set up a spare block again. A
            // second setup would take longer than a short program.
            let block = match &mut spare {
                Some(block) => block,
                None => grid.begin(self, rest.start, &mut spare),
            };
            let (fast, numbers, totals) = (self, rest.clone(), &mut totals);
            rest.start += self.level.run(Warps { fast, straight, grid, block, sources, numbers, totals });
        }
        spare.into_iter().for_each(|mut block| {
            totals.take_issued(self, &mut block);
            self.keep(block);
        });
        Ok(totals)
    }
}

/// Minimum number of warps for a run on several threads.
const MANY: usize = 64;
/// Number of warps in one part of a run on several threads.
const PART: usize = 16;
