//! The fast engine: whole rows at a time, everything that can be known beforehand settled once a launch.
//!
//! | read | for |
//! |---|---|
//! | `lower` | from groups to operations |
//! | `lanes`, `wide` | what an operation is, and how one body becomes code for each level of vector instructions |
//! | `kernels`, `bodies` | the operations |
//! | `run` | clauses one after another; what control flow does between them |
//! | [`lockstep`] | both engines side by side |
//!
//! It shares [`crate::flow`], [`crate::lane`], the [`Wave`] and launches with the reference interpreter and leaves the
//! same exports, memory, counts and traps. What it does not know it gives to the reference interpreter, one
//! instruction at a time.

// Code compiled for a processor's extensions is unsafe to call, and rows are found without a check: each place says why
// that is sound.
#![allow(unsafe_code)]

mod bodies;
mod kernels;
mod lanes;
pub mod lockstep;
mod lower;
mod run;
mod wide;

use std::sync::Arc;

use rayon::prelude::*;
use reconverge_simt::{Level, Trap};

use crate::code::{CfOp, Code, FetchOp};
use crate::launch::{Launch, Options, Outcome};
use crate::memory::Simd;
use crate::reference::{Cause, Wave};
use lower::Lowered;
use run::{Counts, Runner};

/// A program lowered for a launch.
#[derive(Clone, Debug)]
pub(crate) struct Fast {
    lowered: Lowered,
    level: Level,
}

/// What wavefronts are made of.
struct Origin {
    code: Arc<Code>,
    fetch_code: Option<Arc<Code>>,
    launch: Arc<Launch>,
    options: Options,
    fast: Fast,
}

/// Wavefronts that a thread runs before their results are put in order.
const BATCH: usize = 64;

impl Origin {
    fn new(code: Arc<Code>, fetch_code: Option<Arc<Code>>, launch: Arc<Launch>, options: &Options) -> Origin {
        let level = options.level.unwrap_or_else(Level::best);
        let lowered = lower::lower(&code, fetch_code.as_deref(), &launch, options, level);
        Origin { code, fetch_code, launch, options: *options, fast: Fast { lowered, level } }
    }

    /// The wavefront that begins with this lane, with room for the operations.
    fn wave(&self, first_lane: usize) -> Wave {
        let (code, fetch_code, launch) = (self.code.clone(), self.fetch_code.clone(), self.launch.clone());
        Wave::with_room(code, fetch_code, launch, self.options, first_lane, &self.fast.lowered.room)
    }

    /// The first lanes of all wavefronts.
    fn first_lanes(&self) -> Vec<usize> {
        (0..self.launch.lanes).step_by(self.launch.chip.wave_width.into()).collect()
    }

    /// Whether a wavefront can see what another one leaves: scatter buffer, global registers, local data share.
    fn shares(&self) -> bool {
        let share = |code: &Code| {
            code.instructions().any(|(_, cf)| match &cf.op {
                CfOp::Fetch(_, _, fetches) => fetches
                    .iter()
                    .any(|fetch| matches!(fetch.op, FetchOp::DataShareWrite(_) | FetchOp::DataShareRead(..))),
                CfOp::Control(..) | CfOp::Alu(_) | CfOp::Export(..) | CfOp::Memory(..) => false,
            })
        };
        !self.launch.scatter.is_empty()
            || !self.launch.global.is_empty()
            || share(&self.code)
            || self.fetch_code.as_deref().is_some_and(share)
    }
}

/// [`crate::launch::run`] on this engine.
pub(crate) fn run(
    code: Arc<Code>,
    fetch_code: Option<Arc<Code>>,
    launch: Arc<Launch>,
    options: &Options,
) -> Result<Outcome, Trap<Cause>> {
    let origin = Origin::new(code, fetch_code, launch, options);
    let mut outcome = Outcome { killed: Vec::with_capacity(origin.launch.lanes), ..Outcome::default() };
    let first_lanes = origin.first_lanes();
    let threads = rayon::current_num_threads();
    let counts = if threads > 1 && first_lanes.len() > BATCH && !origin.shares() {
        side_by_side(&origin, &first_lanes, threads, &mut outcome)?
    } else {
        in_order(&origin, &first_lanes, &mut outcome)?
    };
    counts.settle(&origin.fast, &mut outcome.fidelity);
    Ok(outcome)
}

/// One wavefront after another.
fn in_order(origin: &Origin, first_lanes: &[usize], outcome: &mut Outcome) -> Result<Counts, Trap<Cause>> {
    let mut simd = simd(&origin.launch);
    let mut runner = Runner::new(&origin.fast);
    for first_lane in first_lanes {
        let mut wave = origin.wave(*first_lane);
        wave.set_simd(simd);
        runner.finish(&mut wave)?;
        simd = wave.finish(outcome);
    }
    (outcome.memory.scatter, outcome.memory.global) = (simd.scatter, simd.global);
    Ok(runner.counts())
}

/// Batches of wavefronts on all threads; what they leave is put in order.
fn side_by_side(
    origin: &Origin,
    first_lanes: &[usize],
    threads: usize,
    outcome: &mut Outcome,
) -> Result<Counts, Trap<Cause>> {
    let mut counts = Runner::new(&origin.fast).counts();
    for batches in first_lanes.chunks(BATCH * threads * 4) {
        let done: Vec<_> = batches
            .par_chunks(BATCH)
            .map(|batch| {
                let mut runner = Runner::new(&origin.fast);
                let mut waves = Vec::with_capacity(batch.len());
                for first_lane in batch {
                    let mut wave = origin.wave(*first_lane);
                    let result = runner.finish(&mut wave);
                    // What a wavefront leaves does not include its registers.
                    wave.registers = Vec::new();
                    let trapped = result.is_err();
                    waves.push(result.map(|()| wave));
                    if trapped {
                        break;
                    }
                }
                (waves, runner.counts())
            })
            .collect();
        for (waves, counted) in done {
            for wave in waves {
                wave?.finish(outcome);
            }
            counts.add(&counted);
        }
    }
    Ok(counts)
}

/// What the first wavefront finds of what all share.
fn simd(launch: &Launch) -> Simd {
    Simd { scatter: launch.scatter.clone(), global: launch.global.clone(), ..Simd::default() }
}
