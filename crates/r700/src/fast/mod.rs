//! The fast engine. An operation of this engine computes a whole row of lanes. The engine makes a decision only once if
//! the decision cannot change within a launch.
//!
//! | module | purpose |
//! |---|---|
//! | `lower` | lowers clauses and their groups to operations |
//! | `lanes` | the operations, and the rows and lanes that operations read and write |
//! | `kernels`, `curves`, `bodies` | the operations |
//! | `nodes` | emits the computations of compiled code |
//! | `indexed` | operands and destinations that are indexed by AR or aL |
//! | `runner` | runs clauses in order, and runs the control flow between clauses |
//! | `straight` | runs programs without control flow |
//! | `read` | finds the registers whose initial values matter |
//! | `fetch` | runs fetch clauses |
//! | `memory` | runs memory accesses and exports |
//! | `compiled` | compiles a program to linked host code, and runs this code |
//! | `run` | runs wavefronts, in compiled code if possible |
//! | `parallel` | distributes wavefronts to threads |
//! | `lockstep` | runs each wavefront on both engines and compares the results |
//!
//! The engine shares [`crate::flow`], [`crate::lane`], the [`Wave`] and launches with the reference interpreter. The
//! two engines produce the same exports, memory, counts and traps. The reference interpreter runs the instructions that
//! the fast engine does not implement.

// This module has three kinds of unsafe code: calls of code that was compiled for an instruction set level, unchecked
// accesses to rows, and functions that write results in place. Each unsafe block states why the block is sound.
#![allow(unsafe_code)]

mod bodies;
mod compiled;
mod counts;
mod curves;
mod fetch;
mod indexed;
mod kernels;
mod lanes;
pub(crate) mod lockstep;
mod lower;
mod memory;
mod nodes;
mod parallel;
mod read;
mod run;
mod runner;
mod straight;

use std::mem::take;
use std::sync::Arc;

use reconverge_simt::compiling::Extent;
use reconverge_simt::loaded::Spare;
use reconverge_simt::registers::Row;
use reconverge_simt::{GroupTrap, Level, Observer, Step, Trap, stop};

use crate::cause::Cause;
use crate::chip::LANES;
use crate::launch::{Environment, Launch};
use crate::memory::Simd;
use crate::outcome::Outcome;
use crate::wave::{Origin, PREVIOUS, ReadRows, Starts, Wave};
use compiled::Compiled;
use counts::Counts;
use lower::Lowered;
use read::read_at_start;
use runner::Runner;
use straight::Straight;

/// A program lowered for an environment.
#[derive(Clone, Debug)]
pub(crate) struct Fast {
    lowered: Arc<Lowered>,
    straight: Option<Arc<Straight>>,
    /// The registers whose initial values the program may read.
    read: Arc<ReadRows>,
    level: Level,
    compiled: Option<Arc<Compiled>>,
    /// An ended wavefront, and the counts of the wavefront. A later launch reuses the wavefront and the counts. The
    /// wavefront has a reference to `idle` instead of a reference to its launch.
    spare: Spare<(Box<Wave>, Counts)>,
    /// A launch without lanes.
    idle: Arc<Launch>,
}

impl Fast {
    pub(crate) fn new(origin: &Origin) -> Fast {
        let Origin { code, fetch_code, launch, options, .. } = origin;
        let lowered = Arc::new(lower::lower(code, fetch_code.as_deref(), &launch.environment, options));
        let straight = Straight::of(&lowered).map(Arc::new);
        let Environment { chip, stage, .. } = *launch.environment;
        let idle = Launch::new(chip, stage, 0).into();
        let read = read_at_start(&lowered, (code, fetch_code.as_ref()), &launch.environment).into();
        Fast {
            lowered,
            straight,
            read,
            level: options.level(),
            compiled: None,
            spare: Spare::default(),
            idle,
        }
    }

    /// Returns the same program with compiled code. `extent` selects the parts of the program that are compiled. If the
    /// host has no AVX2 or cannot provide memory for code, returns the program unchanged.
    pub(crate) fn compiled(&self, extent: Extent) -> Fast {
        self.clone().with_passes(extent)
    }

    /// Returns a wavefront of a launch, and empty counts. The wavefront has the rows that operations need. The caller
    /// must [restart](Wave::restart) the wavefront.
    fn wave(&self, origin: &Origin) -> (Box<Wave>, Counts) {
        let (mut wave, counts) = match self.spare.take() {
            Some((mut wave, counts)) => {
                wave.begin(origin);
                (wave, counts.again())
            }
            None => (Box::new(origin.wave(0, &self.lowered.room)), Counts::new(self)),
        };
        self.set_uniforms(&mut wave);
        (wave, counts)
    }

    /// Stores an ended wavefront and the counts of its launch. A later launch reuses the wavefront and the counts.
    fn keep(&self, mut wave: Box<Wave>, counts: Counts) {
        // The wavefront no longer refers to its launch, because the launch's inputs may be large.
        wave.launch = self.idle.clone();
        self.spare.keep((wave, counts));
    }

    /// Returns the program as straight-line code. The function returns `None` if the program is not straight-line code,
    /// or if this launch cannot run straight-line code. Usually, compiled code is faster than the straight-line path.
    /// If the results have one list per component ([`Launch::by_column`]), compiled code is slower. The control flow of
    /// compiled code then takes most of the time.
    fn straight(&self, origin: &Origin) -> Option<&Straight> {
        let fits = origin.launch.by_column || self.compiled.is_none();
        self.straight.as_deref().filter(|straight| fits && straight.fits(origin))
    }

    /// Keeps the rows of a wavefront that are registers, PV and PS. Replaces all rows after these rows by the rows that
    /// operations need.
    pub(crate) fn prepare(&self, wave: &mut Wave) {
        wave.registers.truncate(wave.launch.environment.register_rows() + PREVIOUS);
        wave.registers.extend_from_slice(&self.lowered.room);
        self.set_uniforms(wave);
    }

    /// Writes the values of the environment's constants to the rows of these constants.
    fn set_uniforms(&self, wave: &mut Wave) {
        let Wave { registers, launch, .. } = wave;
        for (uniform, place) in &self.lowered.uniforms {
            registers[place.number()] = Row([uniform.word(&launch.environment); LANES]);
        }
    }
}

/// Runs a launch on this engine. The outcome of the launch replaces `outcome`. The observer gets events about issued
/// instructions, changes of the masks, and changes of the stack. All events of one wavefront come before all events of
/// the next wavefront.
pub(crate) fn run<O: Observer>(
    origin: &Origin,
    fast: &Fast,
    simd: &mut Simd,
    outcome: &mut Outcome,
    observer: &mut O,
) -> Result<(), GroupTrap<Cause>> {
    outcome.begin(origin.launch.lanes);
    let together = origin.places().len() > parallel::BATCH && origin.options.workers() > 1;
    let reports = origin.launch.reports;
    if together && !O::ENABLED && !origin.shares(simd) {
        // The first wavefronts run before all other wavefronts. The exports of the first wavefronts show which export
        // targets exist.
        let others: Vec<usize> = origin.places().skip(parallel::FIRST).collect();
        let (wave, mut counts) = in_order(origin, fast, simd, others[0], outcome, observer)?;
        fast.keep(wave, Counts::new(fast));
        counts.add(&parallel::run(origin, fast, &others, outcome)?);
        if reports {
            counts.settle(fast, &mut outcome.fidelity);
        }
    } else {
        let (wave, mut counts) = in_order(origin, fast, simd, origin.launch.lanes, outcome, observer)?;
        if reports {
            counts.settle(fast, &mut outcome.fidelity);
        }
        fast.keep(wave, counts);
    }
    Ok(())
}

/// Runs up to `most` instructions of a wavefront. The caller must have [prepared](Fast::prepare) the wavefront.
pub(crate) fn advance<O: Observer>(
    fast: &Fast,
    wave: &mut Wave,
    most: u64,
    observer: &mut O,
) -> Result<Step, Trap<Cause>> {
    let launch = wave.launch.clone();
    let mut runner = Runner::new(fast, &launch.environment, Counts::new(fast));
    let end = runner.run(fast, wave, most, observer);
    runner.counts.settle(fast, &mut wave.fidelity);
    end
}

/// Runs the wavefronts of the first `lanes` lanes of the launch, in order. Returns the last wavefront.
fn in_order<O: Observer>(
    origin: &Origin,
    fast: &Fast,
    simd: &mut Simd,
    lanes: usize,
    outcome: &mut Outcome,
    observer: &mut O,
) -> Result<(Box<Wave>, Counts), GroupTrap<Cause>> {
    let (mut wave, counts) = fast.wave(origin);
    let mut runner = Runner::new(fast, &origin.launch.environment, counts);
    wave.set_simd(take(simd));
    let straight = fast.straight(origin).filter(|_| !O::ENABLED);
    let starts = Starts::of(&origin.launch, Some(&fast.read));
    for place in origin.places().take_while(|place| *place < lanes) {
        if let Some(straight) = straight
            && !stop::asked()
            && runner.run_straight(straight, &starts, (&mut wave, place), (outcome, lanes))
        {
            continue;
        }
        wave.restart_with(place, &starts, Some(fast.level));
        if O::ENABLED {
            observer.group(place / origin.width());
        }
        runner.run_whole(fast, &mut wave, observer).map_err(|trap| wave.trapped(trap))?;
        wave.add_to(outcome, lanes, Some(fast.level));
    }
    outcome.drop_unused();
    *simd = take(&mut wave.simd);
    Ok((wave, runner.counts))
}
