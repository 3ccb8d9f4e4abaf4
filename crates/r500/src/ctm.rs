//! The CTM programming model: a domain of index pairs, typed linear memory, conditional and scattered outputs.
//!
//! The processor array runs the program once for each pair (i, j) of a domain. A run does not depend on any other run
//! (CTM guide pp. 3-5). The program fetches its inputs with unscaled texture instructions. At the end of the program,
//! the cached outputs are written to element (i, j) of up to four buffers. An OUT instruction writes uncached outputs
//! immediately, to any address. A conditional buffer can select the pairs for which the program runs or writes its
//! outputs.
//!
//! The available pages of the guide omit some details. This module defines the missing details. The program receives
//! (i, j) in [`INDEX_TEMP`]. The module rejects tiled layouts. [`Format`] defines how integers become floats. The guide
//! has commands that set the instruction buffer, set the constant buffer, and start the run over a domain. [`Dispatch`]
//! replaces these commands.

use std::ops::Range;
use std::sync::Arc;

use reconverge_simt::fidelity::Report;
use reconverge_simt::{
    Engine, FlowView, Machine, Mask, Observer, Options, Shares, Silent, Statistics, Step, Watch, stop,
    watched,
};
use thiserror::Error;

pub use crate::cause::AccessError;
use crate::fast::{Fast, lockstep};
use crate::group::Group;
use crate::inst::{SAMPLERS, TARGETS};
use crate::launch::{Environment, Hardware, Input, Launch, LaunchError, RunError, trapped};
use crate::memory::Bound;
pub use crate::memory::{Scatter, Surface};
use crate::outputs::{Finding, LaneOutput, Totals};
use crate::setup::Setup;
pub use crate::words::{CondLoc, CondTest, Format, FormatParam, Tiling};

/// The temporary that holds i in red and j in green when the program starts. Blue and alpha of this temporary are 0.
/// The page of the guide that names the register was not available. This module uses temporary 0, to which drivers
/// route the first texture coordinate. (r500.md Q3)
pub const INDEX_TEMP: u8 = 0;

/// A rectangle of index pairs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Domain {
    /// First index i of the rectangle.
    pub i: u32,
    /// First index j of the rectangle.
    pub j: u32,
    /// Number of pairs along i.
    pub width: u32,
    /// Number of pairs along j, which is 1 for a 1D domain.
    pub height: u32,
}

/// Exclusive upper bound of indices. A lane receives the two indices as single-precision floats. Single-precision
/// floats represent all integers up to this bound exactly.
pub const INDEX_LIMIT: u64 = 1 << 24;
/// Maximum number of pairs in a domain. This is the number of four-byte elements that 32-bit addresses can reach.
pub const MOST_PAIRS: u64 = 1 << 30;

impl Domain {
    /// Checks the bounds of the indices and of the number of pairs.
    fn check(self) -> Result<(), DispatchError> {
        let Domain { i, j, width, height } = self;
        let fits = |first: u32, count: u32| u64::from(first) + u64::from(count) <= INDEX_LIMIT;
        let few = u64::from(width) * u64::from(height) <= MOST_PAIRS;
        if fits(i, width) && fits(j, height) && few { Ok(()) } else { Err(DispatchError::Domain(self)) }
    }
}

/// The conditional operation unit. (CTM guide pp. 4-5)
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Conditional {
    /// The conditional buffer, addressed by (i, j).
    pub buffer: Surface,
    /// The test.
    pub test: CondTest,
    /// The point at which the test applies.
    pub location: CondLoc,
    /// The value of the processor execution unit. The test at [`CondLoc::PE`] compares this value with the pair's
    /// element of the conditional buffer.
    pub value: f32,
    /// Whether the dispatch writes conditional values (W_OMASK) to the conditional buffer. If so, the dispatch writes
    /// the value of each pair whose outputs are written. The guide calls this setting set_cond_out_mask. r500.md Q18
    /// infers that W_OMASK carries the conditional value.
    pub write: bool,
}

/// One run of a program over a domain.
#[derive(Clone, Debug)]
pub struct Dispatch {
    /// All memory, from address 0.
    pub memory: Vec<u8>,
    /// Input buffers, each with its number from 0 to 15.
    pub inputs: Vec<(u8, Surface)>,
    /// Output buffers c0 to c3, if bound.
    pub outputs: [Option<Surface>; TARGETS],
    /// Whether the program's outputs are uncached. Uncached outputs are written to `outputs[0]` immediately.
    pub uncached: bool,
    /// Conditional execution.
    pub conditional: Option<Conditional>,
    /// Float constants, each with its number.
    pub constants: Vec<(u8, [u32; 4])>,
    /// The index pairs.
    pub domain: Domain,
    /// The chip.
    pub hardware: Hardware,
}

/// The result of a dispatch.
#[derive(Clone, Debug, PartialEq)]
pub struct DispatchOutcome {
    /// Memory after the dispatch.
    pub memory: Vec<u8>,
    /// Execution counts, summed over all groups.
    pub statistics: Statistics,
    /// The executed operations and their accuracy.
    pub report: Report,
    /// The first finding of strict mode. Groups run in order, so this finding belongs to the first group that has a
    /// finding.
    pub finding: Option<Finding>,
}

/// The reason why a dispatch failed.
#[derive(Clone, Debug, PartialEq, Error)]
pub enum DispatchError {
    /// The program trapped, or the launch is invalid.
    #[error(transparent)]
    Run(#[from] RunError),
    /// An output or the conditional buffer could not be accessed.
    #[error("pair ({i}, {j}): {error}")]
    Access {
        /// First index.
        i: u32,
        /// Second index.
        j: u32,
        /// The access error.
        error: AccessError,
    },
    /// The domain exceeds the limits.
    #[error(
        "a domain of {} x {} pairs from ({}, {}) is too large: there are at most {MOST_PAIRS} pairs, and indices stay below \
         {INDEX_LIMIT}",
        .0.width, .0.height, .0.i, .0.j
    )]
    Domain(Domain),
    /// A program with cached outputs writes a render target to which no buffer is bound.
    #[error("the program writes output c{0}, which is not bound to a buffer")]
    NoOutput(usize),
}

/// A lane of a group: the index pair of the lane, and whether the lane runs.
#[derive(Clone, Copy, Debug)]
struct Pair {
    i: u32,
    j: u32,
    covered: bool,
}

/// A dispatch that has been checked. The memory of the dispatch is stored outside this struct.
#[derive(Clone, Debug)]
struct Plan {
    dispatch: Dispatch,
    environment: Arc<Environment>,
    inputs: [Option<Surface>; SAMPLERS],
}

/// The initial state of a group of a dispatch.
#[derive(Clone, Debug)]
struct Start {
    pairs: Vec<Pair>,
    launch: Launch,
    covered: Mask,
}

impl Plan {
    /// Checks a dispatch and returns its plan and its memory.
    fn new(mut dispatch: Dispatch) -> Result<(Plan, Vec<u8>), DispatchError> {
        let mut inputs = [None; SAMPLERS];
        for (number, surface) in &dispatch.inputs {
            let place = inputs.get_mut(usize::from(*number));
            *place.ok_or(RunError::Launch(LaunchError::TextureUnit(*number)))? = Some(*surface);
        }
        dispatch.domain.check()?;
        dispatch.hardware.check().map_err(RunError::Launch)?;
        let memory = std::mem::take(&mut dispatch.memory);
        let (constants, hardware) = (std::mem::take(&mut dispatch.constants), dispatch.hardware);
        let environment = Arc::new(Environment { constants, textures: Vec::new(), hardware });
        Ok((Plan { dispatch, environment, inputs }, memory))
    }

    fn width(&self) -> usize {
        self.dispatch.hardware.group_width
    }

    /// Returns the number of groups in the domain. A quad that lies only partly inside the domain counts as a whole
    /// quad.
    fn groups(&self) -> usize {
        let Domain { width, height, .. } = self.dispatch.domain;
        (4 * width.div_ceil(2) as usize * height.div_ceil(2) as usize).div_ceil(self.width())
    }

    /// Returns the launch of a group whose lanes have the index pairs `pairs`.
    fn launch(&self, pairs: &[Pair]) -> Launch {
        let index = |pair: &Pair| [(pair.i as f32).to_bits(), (pair.j as f32).to_bits(), 0, 0];
        let inputs = vec![Input { temp: INDEX_TEMP, values: pairs.iter().map(index).collect() }];
        Launch { environment: self.environment.clone(), lanes: pairs.len(), inputs, columns: Vec::new() }
    }

    /// Returns the initial state of a group. `memory` holds the memory after all earlier groups have run. Returns
    /// `None` if no pair of the group runs.
    fn start(&self, number: usize, memory: &[u8]) -> Result<Option<Start>, DispatchError> {
        let first = number * self.width() / 4;
        let mut pairs = quads(self.dispatch.domain, first..first + self.width() / 4);
        for pair in pairs.iter_mut().filter(|pair| pair.covered) {
            pair.covered = scheduled(self.dispatch.conditional.as_ref(), memory, pair)?;
        }
        let covered = Mask::from_fn(pairs.len(), |lane| pairs[lane.index()].covered);
        let start = |pairs: Vec<Pair>| Start { launch: self.launch(&pairs), covered, pairs };
        Ok(covered.any().then(|| start(pairs)))
    }

    fn bound(&self, memory: Vec<u8>) -> Bound {
        let Dispatch { outputs, uncached, .. } = &self.dispatch;
        Bound { memory, inputs: self.inputs, scatter_target: outputs[0], uncached: *uncached }
    }

    /// Takes the memory out of a group that has ended. Writes the cached outputs of the group's lanes to this memory.
    /// Returns the memory.
    fn retire(&self, start: &Start, group: &mut Group) -> Result<Vec<u8>, DispatchError> {
        let mut memory = group.take_memory().map(|bound| bound.memory).unwrap_or_default();
        let Dispatch { outputs, conditional, .. } = &self.dispatch;
        for lane in start.covered.lanes() {
            let output = LaneOutput::of(group, lane.index());
            if !output.killed {
                send(outputs, conditional.as_ref(), &start.pairs[lane.index()], &output, &mut memory)?;
            }
        }
        Ok(memory)
    }
}

/// Runs a program over a domain. Each group consists of quads of 2 x 2 pairs. The quads of the domain are assigned to
/// the groups row by row. The groups run in order.
///
/// # Errors
/// Returns a [`DispatchError`] if the dispatch is invalid, the program traps, or an output cannot be stored.
pub fn run(
    setup: &Arc<Setup>,
    dispatch: Dispatch,
    options: &Options,
) -> Result<DispatchOutcome, DispatchError> {
    let (plan, mut memory) = Plan::new(dispatch)?;
    let mut totals = Totals::default();
    let mut groups = Groups::new(setup, &plan.launch(&[]), options, &plan.bound(Vec::new()));
    for number in (0..plan.groups()).take_while(|_| !stop::asked()) {
        let Some(start) = plan.start(number, &memory)? else { continue };
        let (bound, first_lane) = (plan.bound(memory), number * plan.width());
        let group = groups.run(&start.launch, bound, start.covered, first_lane)?;
        totals.add_counts(group, first_lane);
        memory = plan.retire(&start, group)?;
    }
    let Totals { statistics, finding, .. } = totals;
    Ok(DispatchOutcome { memory, statistics, report: groups.finish(), finding })
}

/// A dispatch that runs one instruction at a time, group by group. A clone of this value is a snapshot. The reference
/// interpreter executes all steps.
#[derive(Clone)]
pub struct Run {
    setup: Arc<Setup>,
    plan: Arc<Plan>,
    options: Options,
    /// The number, the initial state and the current state of the running group. The current state contains the memory.
    /// `None` after the dispatch has ended.
    running: Option<(usize, Start, Group)>,
    /// The group that ended at the last step.
    ended: Option<Arc<Group>>,
    /// The memory after the last group has ended.
    memory: Vec<u8>,
    totals: Totals,
}

impl Run {
    /// Prepares a dispatch to run from its first instruction.
    ///
    /// # Errors
    /// Returns a [`DispatchError`] if the dispatch is invalid or the first group of the dispatch cannot start.
    pub fn new(setup: &Arc<Setup>, dispatch: Dispatch, options: &Options) -> Result<Run, DispatchError> {
        let (plan, memory) = Plan::new(dispatch)?;
        let (setup, plan, totals) = (setup.clone(), Arc::new(plan), Totals::default());
        let mut run = Run { setup, plan, options: *options, running: None, ended: None, memory, totals };
        run.go_on(0)?;
        Ok(run)
    }

    /// Starts the first group that has a pair to run. Considers only groups with number `from` or higher.
    fn go_on(&mut self, from: usize) -> Result<(), DispatchError> {
        for number in from..self.plan.groups() {
            if let Some(start) = self.plan.start(number, &self.memory)? {
                let lanes = Mask::first(start.launch.lanes);
                let mut group = start.launch.group(&self.setup, &self.options, 0, lanes);
                group.bind_memory(self.plan.bound(std::mem::take(&mut self.memory)), start.covered);
                self.running = Some((number, start, group));
                break;
            }
        }
        Ok(())
    }

    /// Returns the number of groups in the dispatch.
    pub fn groups(&self) -> usize {
        self.plan.groups()
    }

    /// Returns the number of lanes in a group.
    pub fn width(&self) -> usize {
        self.plan.width()
    }

    /// Returns the number and the state of the running group, or `None` after the dispatch has ended.
    pub fn group(&self) -> Option<(usize, &Group)> {
        self.running.as_ref().map(|(number, _, group)| (*number, group))
    }

    /// Returns the number and the mutable state of the running group. A debugger uses the state to change registers.
    pub fn group_mut(&mut self) -> Option<(usize, &mut Group)> {
        self.running.as_mut().map(|(number, _, group)| (*number, group))
    }

    /// Returns the group that ended at the last step. `None` if no group ended at that step.
    pub fn take_ended(&mut self) -> Option<Arc<Group>> {
        self.ended.take()
    }

    /// Returns all memory, mutably.
    pub fn memory_mut(&mut self) -> &mut [u8] {
        let bound = self.running.as_mut().and_then(|(_, _, group)| group.memory.as_deref_mut());
        bound.map_or(&mut self.memory, |bound| &mut bound.memory)
    }

    /// Returns all memory, from address 0.
    pub fn memory(&self) -> &[u8] {
        let bound = self.running.as_ref().and_then(|(_, _, group)| group.memory.as_deref());
        bound.map_or(&self.memory, |bound| &bound.memory)
    }

    /// Returns the counts so far.
    pub fn statistics(&self) -> Statistics {
        let mut statistics = self.totals.statistics;
        if let Some((_, _, group)) = &self.running {
            statistics.add(&group.statistics());
        }
        statistics
    }

    /// Returns the current results. The results are complete after the dispatch has ended.
    pub fn outcome(&self) -> DispatchOutcome {
        let Totals { statistics, report, finding } = self.totals.clone();
        DispatchOutcome { memory: self.memory().to_vec(), statistics, report, finding }
    }

    /// Executes one instruction. Does nothing after the dispatch has ended.
    ///
    /// # Errors
    /// Returns an error if the program traps. The group then stays at the instruction that trapped. Also returns an
    /// error if the output of an ended group cannot be stored.
    pub fn step(&mut self, watch: Watch<'_>) -> Result<Step, DispatchError> {
        watched!(watch, |observer| self.observed_step(observer))
    }

    fn observed_step<O: Observer>(&mut self, observer: &mut O) -> Result<Step, DispatchError> {
        let width = self.plan.width();
        let Some((number, start, group)) = &mut self.running else { return Ok(Step::Done) };
        let first_lane = *number * width;
        match group.step(observer).map_err(|trap| trapped(first_lane, trap))? {
            Step::Running => return Ok(Step::Running),
            Step::Done => {}
        }
        self.totals.add_group(group, first_lane);
        self.memory = self.plan.retire(start, group)?;
        let next = *number + 1;
        self.ended = self.running.take().map(|(_, _, group)| Arc::new(group));
        self.go_on(next)?;
        Ok(if self.running.is_some() { Step::Running } else { Step::Done })
    }
}

/// Runs groups in order, because a group may read memory that an earlier group wrote.
struct Groups<'a> {
    setup: &'a Arc<Setup>,
    options: &'a Options,
    /// The fast engine, or `None` if the reference interpreter runs the groups.
    fast: Option<Fast>,
    /// The latest group. The fast engine reuses the allocations of this group for the next group.
    group: Group,
    /// Number of runs of each block in the fast engine.
    runs: Vec<u64>,
    report: Report,
}

impl<'a> Groups<'a> {
    /// Prepares to run groups. `launch` has the environment of the dispatch, but no lanes.
    fn new(setup: &'a Arc<Setup>, launch: &Launch, options: &'a Options, bound: &Bound) -> Self {
        let fast = match options.engine() {
            Engine::Reference => None,
            _ => Some(Fast::with(setup, launch, options, Some(bound))),
        };
        let mut group = launch.group(setup, options, 0, Mask::NONE);
        if let Some(fast) = &fast {
            fast.prepare(&mut group);
        }
        let runs = vec![0; fast.as_ref().map_or(0, Fast::counts)];
        Groups { setup, options, fast, group, runs, report: Report::default() }
    }

    /// Runs a group that consists of all lanes of `launch`, until the group ends. Returns the final state of the group.
    fn run(
        &mut self,
        launch: &Launch,
        bound: Bound,
        covered: Mask,
        first_lane: usize,
    ) -> Result<&mut Group, RunError> {
        let lanes = Mask::first(launch.lanes);
        let fast = self.fast.as_ref();
        if let Some(fast) = fast.filter(|_| !self.options.engine.is_lockstep()) {
            launch.restart(&mut self.group, 0, (lanes, launch.width()), fast.written(), |_| true, None);
            self.group.bind_memory(bound, covered);
            while self.group.flow.issue().is_some() && !stop::asked() {
                let ended = fast.run(&mut self.group, &mut self.runs, stop::SLICE, &mut Silent);
                ended.map_err(|trap| trapped(first_lane, trap))?;
            }
            return Ok(&mut self.group);
        }
        let start = |bound| {
            let mut group = launch.group(self.setup, self.options, 0, lanes);
            group.bind_memory(bound, covered);
            group
        };
        if let Some(fast) = fast {
            let start = || start(bound.clone());
            let made = |extent| Fast::compiled(self.setup, launch, self.options, Some(&bound), extent);
            let mut shares = Shares::default();
            self.group = lockstep::run(fast, self.setup, first_lane, start, made, &mut shares)?;
        } else {
            self.group = start(bound);
            self.group.run(&mut Silent).map_err(|trap| trapped(first_lane, trap))?;
        }
        self.report.add(&self.group.report());
        Ok(&mut self.group)
    }

    /// Returns the operations of all groups, and the accuracy of the operations.
    fn finish(mut self) -> Report {
        if let Some(fast) = self.fast.filter(|_| !self.options.engine.is_lockstep()) {
            fast.settle(&mut self.group, &mut self.runs, 1);
            self.report.add(&self.group.report());
        }
        self.report
    }
}

/// Returns the pairs of consecutive quads of a domain. The quads are ordered row by row. The order within a quad is top
/// left, top right, bottom left, bottom right.
fn quads(domain: Domain, quads: Range<usize>) -> Vec<Pair> {
    let Domain { i, j, width, height } = domain;
    let (across, down) = (width.div_ceil(2) as usize, height.div_ceil(2) as usize);
    let quads = quads.start..quads.end.min(across * down);
    let pairs = quads.flat_map(|quad| {
        let (x, y) = ((quad % across * 2) as u32, (quad / across * 2) as u32);
        [(0, 0), (1, 0), (0, 1), (1, 1)].map(|(dx, dy)| Pair {
            i: i + x + dx,
            j: j + y + dy,
            covered: x + dx < width && y + dy < height,
        })
    });
    pairs.collect()
}

/// Returns whether the test at the processor execution unit lets a pair run. (set_cond_loc = PE)
fn scheduled(conditional: Option<&Conditional>, memory: &[u8], pair: &Pair) -> Result<bool, DispatchError> {
    match conditional {
        Some(conditional) if conditional.location == CondLoc::PE => {
            tested(conditional, memory, pair, conditional.value)
        }
        _ => Ok(true),
    }
}

fn tested(conditional: &Conditional, memory: &[u8], pair: &Pair, v: f32) -> Result<bool, DispatchError> {
    let b = conditional
        .buffer
        .load(memory, i64::from(pair.i), i64::from(pair.j))
        .map_err(|error| DispatchError::Access { i: pair.i, j: pair.j, error })?;
    Ok(conditional.test.passes(v, f32::from_bits(b[0])))
}

/// Writes a lane's cached outputs, if the test at the end of the program passes. (CTM guide p. 4)
fn send(
    outputs: &[Option<Surface>; TARGETS],
    conditional: Option<&Conditional>,
    pair: &Pair,
    output: &LaneOutput,
    memory: &mut [u8],
) -> Result<(), DispatchError> {
    let value = f32::from_bits(output.depth.unwrap_or(0));
    if let Some(conditional) = conditional
        && conditional.location == CondLoc::DPP
        && !tested(conditional, memory, pair, value)?
    {
        return Ok(());
    }
    let (i, j) = (i64::from(pair.i), i64::from(pair.j));
    let at = |error| DispatchError::Access { i: pair.i, j: pair.j, error };
    for (number, surface) in outputs.iter().enumerate() {
        match surface {
            Some(surface) if output.written[number] != 0 => {
                surface.store(memory, i, j, output.color[number]).map_err(at)?;
            }
            None if output.written[number] != 0 => return Err(DispatchError::NoOutput(number)),
            _ => {}
        }
    }
    if let Some(conditional) = conditional
        && conditional.write
        && output.depth.is_some()
    {
        conditional.buffer.store(memory, i, j, [value.to_bits(), 0, 0, 0]).map_err(at)?;
    }
    Ok(())
}
