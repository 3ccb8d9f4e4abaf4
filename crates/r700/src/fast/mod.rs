//! The fast engine: whole rows at a time, everything that can be known beforehand settled once a launch.
//!
//! | read | for |
//! |---|---|
//! | `lower` | from groups to operations |
//! | `lanes`, `wide` | what an operation is, and how one body becomes code for each level of vector instructions |
//! | `kernels`, `bodies` | the operations |
//! | `run` | clauses one after another; what control flow does between them |
//! | `batches` | wavefronts on all threads, and how what they leave comes together |
//! | [`lockstep`] | both engines side by side |
//!
//! It shares [`crate::flow`], [`crate::lane`], the [`Wave`](crate::reference::Wave) and launches with the reference interpreter and leaves the
//! same exports, memory, counts and traps. What it does not know it gives to the reference interpreter, one
//! instruction at a time.

// Code compiled for a processor's extensions is unsafe to call, and rows are found without a check: each place says why
// that is sound.
#![allow(unsafe_code)]

mod batches;
mod bodies;
mod kernels;
mod lanes;
pub mod lockstep;
mod lower;
mod run;
mod wide;

use std::mem::take;

use reconverge_simt::registers::Row;
use reconverge_simt::{Level, Observer, Trap};

use crate::code::{CfOp, Code, FetchOp};
use crate::launch::{LANES, Outcome};
use crate::memory::Simd;
use crate::reference::Cause;
use crate::run::Origin;
use lower::Lowered;
use run::{Counts, Runner};

/// A program lowered for a launch, or for all pieces of one.
#[derive(Clone, Debug)]
pub(crate) struct Fast {
    lowered: Lowered,
    level: Level,
    /// Whether some fetch program reaches the local data share.
    data_share: bool,
}

impl Fast {
    pub(crate) fn new(origin: &Origin) -> Fast {
        let Origin { code, fetch_code, launch, options } = origin;
        let level = options.level.unwrap_or_else(Level::best);
        let lowered = lower::lower(code, fetch_code.as_deref(), launch, options, level);
        let data_share = [Some(&**code), fetch_code.as_deref()].into_iter().flatten().any(data_share);
        Fast { lowered, level, data_share }
    }

    /// The rows that operations want behind a wavefront's registers.
    fn room(&self) -> &[Row<LANES>] {
        &self.lowered.room
    }

    /// Whether a wavefront can see what another one leaves: scatter buffer, global registers, local data share.
    fn shares(&self, simd: &Simd) -> bool {
        self.data_share || !simd.scatter.is_empty() || !simd.global.is_empty()
    }
}

/// Whether a program reaches the local data share.
fn data_share(code: &Code) -> bool {
    code.instructions().any(|(_, cf)| match &cf.op {
        CfOp::Fetch(_, _, fetches) => fetches
            .iter()
            .any(|fetch| matches!(fetch.op, FetchOp::DataShareWrite(_) | FetchOp::DataShareRead(..))),
        CfOp::Control(..) | CfOp::Alu(_) | CfOp::Export(..) | CfOp::Memory(..) => false,
    })
}

/// [`crate::launch::run_observed`] on this engine. An observer is told who runs and what becomes of masks and stack; it
/// sees the wavefronts in order.
pub(crate) fn run<O: Observer>(
    origin: &Origin,
    fast: &Fast,
    simd: &mut Simd,
    observer: &mut O,
) -> Result<Outcome, Trap<Cause>> {
    let mut outcome = Outcome { killed: Vec::with_capacity(origin.launch.lanes), ..Outcome::default() };
    let places: Vec<usize> = origin.places().collect();
    let together = places.len() > batches::BATCH && rayon::current_num_threads() > 1;
    let counts = if together && !O::ENABLED && !fast.shares(simd) {
        // The first few wavefronts show which export targets there are.
        let (first, others) = places.split_at(batches::FIRST);
        let lanes = others[0];
        let mut counts = in_order(origin, fast, simd, first, lanes, &mut outcome, observer)?;
        counts.add(&batches::run(origin, fast, others, &mut outcome)?);
        counts
    } else {
        in_order(origin, fast, simd, &places, origin.launch.lanes, &mut outcome, observer)?
    };
    counts.settle(fast, &mut outcome.fidelity);
    Ok(outcome)
}

/// One wavefront after another, from the launch's first on, which together have `lanes` lanes.
fn in_order<O: Observer>(
    origin: &Origin,
    fast: &Fast,
    simd: &mut Simd,
    places: &[usize],
    lanes: usize,
    outcome: &mut Outcome,
    observer: &mut O,
) -> Result<Counts, Trap<Cause>> {
    let mut runner = Runner::new(fast);
    let mut wave = origin.wave(0, fast.room());
    wave.set_simd(take(simd));
    for place in places {
        wave.restart(*place);
        runner.finish(&mut wave, observer)?;
        wave.leave_to(outcome, lanes);
    }
    *simd = take(&mut wave.simd);
    Ok(runner.counts())
}
