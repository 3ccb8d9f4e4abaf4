//! The CTM programming model: a domain of index pairs, typed linear memory, conditional and scattered outputs.
//!
//! The processor array runs the program once for each pair (i, j) of a domain, as if each ran alone (CTM guide
//! pp. 3-5). Inputs are fetched with unscaled texture instructions, cached outputs go to (i, j) of up to four
//! buffers when the program ends, uncached outputs go anywhere at once, and a conditional buffer may decide
//! which pairs run or write.
//!
//! What the guide's available pages leave out, and what replaces it here: where (i, j) arrives
//! ([`INDEX_TEMP`]), tiled layouts (refused), how integers become floats ([`Format`]), the commands that set
//! instruction and constant buffers and start a domain (here: [`Dispatch`]).

use std::sync::Arc;

use reconverge_simt::fidelity::Report;
use reconverge_simt::{Engine, Mask, Options, Shares, Silent, Statistics};
use thiserror::Error;

pub use crate::cause::AccessError;
use crate::fast::{Fast, lockstep};
use crate::group::Group;
use crate::inst::{SAMPLERS, TARGETS};
use crate::launch::{Hardware, Input, Launch, LaunchError, RunError, trapped};
use crate::memory::Bound;
pub use crate::memory::{Scatter, Surface};
use crate::outputs::{Finding, LaneOutput, Totals};
use crate::setup::Setup;
pub use crate::words::{CondLoc, CondTest, Format, FormatParam, Tiling};

/// The temporary that holds i in red and j in green at the start; blue and alpha are 0. The page that says where
/// was not available; temporary 0 is where a driver routes the first coordinate. (r500.md Q3)
pub const INDEX_TEMP: u8 = 0;

/// A rectangle of index pairs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Domain {
    /// First i.
    pub i: u32,
    /// First j.
    pub j: u32,
    /// Pairs along i.
    pub width: u32,
    /// Pairs along j; 1 for a 1D domain.
    pub height: u32,
}

/// Indices are below this: a lane is handed its pair as two singles, which hold all integers up to here exactly.
pub const INDEX_LIMIT: u64 = 1 << 24;
/// Most pairs of a domain: the elements of four bytes that 32-bit addresses reach.
pub const MOST_PAIRS: u64 = 1 << 30;

impl Domain {
    /// Checks that indices and the number of pairs stay in bounds.
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
    /// Where it applies.
    pub location: CondLoc,
    /// The processor execution unit's value, for [`CondLoc::PE`].
    pub value: f32,
    /// Writes the program's conditional value (W_OMASK) to the buffer where the outputs are written.
    /// (set_cond_out_mask; that W_OMASK carries it is inferred, r500.md Q18)
    pub write: bool,
}

/// One run over a domain.
#[derive(Clone, Debug)]
pub struct Dispatch {
    /// All memory, from address 0.
    pub memory: Vec<u8>,
    /// Input buffers by number, 0 to 15.
    pub inputs: Vec<(u8, Surface)>,
    /// Output buffers c0 to c3.
    pub outputs: [Option<Surface>; TARGETS],
    /// The program's outputs are uncached: they go to `outputs[0]` at once.
    pub uncached: bool,
    /// Conditional execution.
    pub conditional: Option<Conditional>,
    /// Float constants.
    pub constants: Vec<(u8, [u32; 4])>,
    /// The index pairs.
    pub domain: Domain,
    /// The chip.
    pub hardware: Hardware,
}

/// What a dispatch leaves.
#[derive(Clone, Debug, PartialEq)]
pub struct DispatchOutcome {
    /// Memory afterwards.
    pub memory: Vec<u8>,
    /// Counts over all groups.
    pub statistics: Statistics,
    /// What was executed, and how exact it was.
    pub report: Report,
    /// What strict mode objects to although nothing traps, of the first group that has such.
    pub finding: Option<Finding>,
}

/// Why a dispatch gave no outcome.
#[derive(Clone, Debug, PartialEq, Error)]
pub enum DispatchError {
    /// The program trapped or the launch does not fit.
    #[error(transparent)]
    Run(#[from] RunError),
    /// An output or the conditional buffer could not be accessed.
    #[error("pair ({i}, {j}): {error}")]
    Access {
        /// First index.
        i: u32,
        /// Second index.
        j: u32,
        /// What is wrong.
        error: AccessError,
    },
    /// The domain is larger than any that can run.
    #[error(
        "a domain of {} x {} pairs from ({}, {}) is too large: there are at most {MOST_PAIRS} pairs, and indices stay below \
         {INDEX_LIMIT}",
        .0.width, .0.height, .0.i, .0.j
    )]
    Domain(Domain),
    /// A program with cached outputs writes a target that has no buffer.
    #[error("the program writes output c{0}, which is not bound to a buffer")]
    NoOutput(usize),
}

/// One lane of a group: its pair, and whether it belongs to the domain.
#[derive(Clone, Copy)]
struct Pair {
    i: u32,
    j: u32,
    covered: bool,
}

/// Runs a program over a domain: quads of 2 x 2 pairs, row by row, groups one after the other.
///
/// # Errors
/// See [`DispatchError`].
pub fn run(
    setup: &Arc<Setup>,
    dispatch: Dispatch,
    options: &Options,
) -> Result<DispatchOutcome, DispatchError> {
    let mut inputs = [None; SAMPLERS];
    for (number, surface) in &dispatch.inputs {
        *inputs.get_mut(usize::from(*number)).ok_or(RunError::Launch(LaunchError::TextureUnit(*number)))? =
            Some(*surface);
    }
    let (mut memory, mut totals) = (dispatch.memory, Totals::default());
    dispatch.domain.check()?;
    let width = dispatch.hardware.group_width;
    let launch_of = |pairs: &[Pair]| Launch {
        lanes: pairs.len(),
        inputs: vec![Input {
            temp: INDEX_TEMP,
            values: pairs
                .iter()
                .map(|pair| [(pair.i as f32).to_bits(), (pair.j as f32).to_bits(), 0, 0])
                .collect(),
        }],
        constants: dispatch.constants.clone(),
        textures: Vec::new(),
        hardware: dispatch.hardware,
    };
    launch_of(&[]).check().map_err(RunError::Launch)?;
    let mut groups = Groups::new(setup, &launch_of(&[]), options, dispatch.uncached);
    let scatter_target = dispatch.outputs[0];
    let mut rest = quads(dispatch.domain);
    for first_lane in (0..).step_by(width) {
        let mut pairs: Vec<Pair> = rest.by_ref().take(width).collect();
        if pairs.is_empty() {
            break;
        }
        for pair in pairs.iter_mut().filter(|pair| pair.covered) {
            pair.covered = scheduled(dispatch.conditional.as_ref(), &memory, pair)?;
        }
        let covered = Mask::from_fn(pairs.len(), |lane| pairs[lane.index()].covered);
        if covered.is_empty() {
            continue;
        }
        let bound = Bound {
            memory: std::mem::take(&mut memory),
            inputs,
            scatter_target,
            uncached: dispatch.uncached,
        };
        let group = groups.run(&launch_of(&pairs), bound, covered, first_lane)?;
        memory = group.take_memory().map(|bound| bound.memory).unwrap_or_default();
        totals.add_counts(group, first_lane);
        for lane in covered.lanes() {
            let output = LaneOutput::of(group, lane.index());
            if !output.killed {
                send(
                    &dispatch.outputs,
                    dispatch.conditional.as_ref(),
                    &pairs[lane.index()],
                    &output,
                    &mut memory,
                )?;
            }
        }
    }
    let Totals { statistics, finding, .. } = totals;
    Ok(DispatchOutcome { memory, statistics, report: groups.finish(), finding })
}

/// Groups one after another: what a later one reads may be what an earlier one wrote.
struct Groups<'a> {
    setup: &'a Arc<Setup>,
    options: &'a Options,
    fast: Fast,
    /// The latest; the fast engine uses it again and again.
    group: Group,
    /// The fast engine's counts by block.
    runs: Vec<u64>,
    report: Report,
}

impl<'a> Groups<'a> {
    /// The launch is one of the dispatch's, without lanes.
    fn new(setup: &'a Arc<Setup>, launch: &Launch, options: &'a Options, uncached: bool) -> Self {
        let fast = Fast::with(setup, launch, options, uncached);
        let mut group = launch.group(setup, options, 0, Mask::NONE);
        fast.prepare(&mut group);
        let runs = vec![0; fast.blocks()];
        Groups { setup, options, fast, group, runs, report: Report::default() }
    }

    /// Runs a group to its end: all lanes of `launch`. Gives it as it ended.
    fn run(
        &mut self,
        launch: &Launch,
        bound: Bound,
        covered: Mask,
        first_lane: usize,
    ) -> Result<&mut Group, RunError> {
        let lanes = Mask::first(launch.lanes);
        if self.options.engine == Engine::Fast {
            launch.restart(&mut self.group, 0, lanes, self.fast.written());
            self.group.bind_memory(bound, covered);
            let ended = self.fast.run(&mut self.group, &mut self.runs, u64::MAX, &mut Silent);
            ended.map_err(|trap| trapped(first_lane, trap))?;
            return Ok(&mut self.group);
        }
        let start = |bound| {
            let mut group = launch.group(self.setup, self.options, 0, lanes);
            group.bind_memory(bound, covered);
            group
        };
        if self.options.engine == Engine::Lockstep {
            let start = || start(bound.clone());
            self.group = lockstep::run(&self.fast, self.setup, first_lane, start, &mut Shares::default())?;
        } else {
            self.group = start(bound);
            self.group.run(&mut Silent).map_err(|trap| trapped(first_lane, trap))?;
        }
        self.report.add(&self.group.report());
        Ok(&mut self.group)
    }

    /// What was executed by all groups.
    fn finish(mut self) -> Report {
        if self.options.engine == Engine::Fast {
            self.fast.settle(&mut self.group, &mut self.runs);
            self.report.add(&self.group.report());
        }
        self.report
    }
}

/// The pairs of a domain in quads: top left, top right, bottom left, bottom right. Made one by one, so that the size of the
/// domain costs no memory.
fn quads(domain: Domain) -> impl Iterator<Item = Pair> {
    let Domain { i, j, width, height } = domain;
    (0..height).step_by(2).flat_map(move |y| {
        (0..width).step_by(2).flat_map(move |x| {
            [(0, 0), (1, 0), (0, 1), (1, 1)].map(|(dx, dy)| Pair {
                i: i + x + dx,
                j: j + y + dy,
                covered: x + dx < width && y + dy < height,
            })
        })
    })
}

/// Whether a pair runs at all: the test at the processor execution unit. (set_cond_loc = PE)
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

/// Sends a lane's cached outputs, if the test at the end of the program passes. (CTM guide p. 4)
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
