//! Running a launch: its wavefronts one after another, all at once or piece by piece.

use std::mem::take;
use std::ops::Range;
use std::sync::Arc;

use reconverge_isa::Program;
use reconverge_simt::registers::Row;
use reconverge_simt::{Engine, Machine, Observer, Silent, Step, Trap};

use crate::code::Code;
use crate::fast::{self, Fast};
use crate::launch::{Input, LANES, Launch, Options, Outcome, fetch_code};
use crate::memory::Simd;
use crate::reference::{Cause, Wave};

/// Runs a program to its end on the engine of the options.
///
/// On the fast engine wavefronts that share nothing run on the threads of the rayon pool in which this is called.
///
/// # Errors
/// The trap of the first wavefront that has one; its lanes are those of that wavefront.
pub fn run(program: &Program, launch: &Launch, options: &Options) -> Result<Outcome, Trap<Cause>> {
    run_observed(program, launch, options, &mut Silent)
}

/// [`run`] with an observer, which sees the wavefronts one after another, on one thread. One that takes data
/// ([`Observer::DATA`]) sees those of the reference interpreter, whatever the engine, and so does any one when the engine
/// is [`Engine::Lockstep`]; the fast engine tells the others the same at its own speed.
///
/// # Errors
/// As [`run`].
pub fn run_observed<O: Observer>(
    program: &Program,
    launch: &Launch,
    options: &Options,
    observer: &mut O,
) -> Result<Outcome, Trap<Cause>> {
    let mut running = Running::new(program, launch.clone(), options);
    let outcome = running.all(observer)?;
    Ok(running.shared_to(outcome))
}

/// [`run`] for launches of any number of lanes in bounded memory: `piece` lanes at a time, rounded up to whole
/// wavefronts, at least one.
///
/// `inputs` gives the registers at the start of the lanes of a range, in place of [`Launch::inputs`]; `done` takes what
/// those lanes have left: exports, killed lanes, lane-private memory, emissions, and the counts of the piece. Lists of
/// both begin with the first lane of the range; an [`Emission`](crate::launch::Emission) has its wavefront's number in
/// the whole launch. What later wavefronts can see of earlier ones goes on from piece to piece.
///
/// Gives what belongs to the whole: scatter buffer and global registers, and the sums of counts. All of it is what [`run`]
/// would give.
///
/// # Errors
/// As [`run`]; the pieces before are done then.
pub fn run_in_pieces(
    program: &Program,
    launch: &Launch,
    options: &Options,
    piece: usize,
    mut inputs: impl FnMut(Range<usize>) -> Vec<Input>,
    mut done: impl FnMut(Range<usize>, Outcome),
) -> Result<Outcome, Trap<Cause>> {
    let width = usize::from(launch.chip.wave_width);
    let piece = piece.max(1).checked_next_multiple_of(width).unwrap_or(launch.lanes.max(1));
    let mut running = Running::new(program, launch.clone(), options);
    let mut whole = Outcome::default();
    for start in (0..launch.lanes).step_by(piece) {
        let range = start..launch.lanes.min(start.saturating_add(piece));
        let covered = |covered: &Vec<bool>| covered.iter().skip(start).take(range.len()).copied().collect();
        let next = Arc::make_mut(&mut running.origin.launch);
        next.lanes = range.len();
        next.first_lane = launch.first_lane + start;
        next.covered = launch.covered.as_ref().map(covered);
        next.inputs = inputs(range.clone());
        let outcome = running.all(&mut Silent)?;
        whole.add_counts(&outcome);
        done(range, outcome);
    }
    Ok(running.shared_to(whole))
}

/// What wavefronts are made of.
pub(crate) struct Origin {
    pub(crate) code: Arc<Code>,
    pub(crate) fetch_code: Option<Arc<Code>>,
    pub(crate) launch: Arc<Launch>,
    pub(crate) options: Options,
}

impl Origin {
    /// The wavefront whose first lane is at `place`, with rows behind its registers.
    pub(crate) fn wave(&self, place: usize, room: &[Row<LANES>]) -> Wave {
        let (code, fetch_code, launch) = (self.code.clone(), self.fetch_code.clone(), self.launch.clone());
        Wave::with_room(code, fetch_code, launch, self.options, place, room)
    }

    /// Lanes of a wavefront.
    pub(crate) fn width(&self) -> usize {
        self.launch.chip.wave_width.into()
    }

    /// Where in the launch each wavefront begins.
    pub(crate) fn places(&self) -> impl ExactSizeIterator<Item = usize> {
        (0..self.launch.lanes).step_by(self.width())
    }
}

/// A launch under way.
struct Running {
    origin: Origin,
    /// The program lowered, if its engine needs that.
    fast: Option<Fast>,
    /// What all wavefronts share, as the last one has left it.
    simd: Simd,
}

impl Running {
    fn new(program: &Program, mut launch: Launch, options: &Options) -> Running {
        let (scatter, global) = (take(&mut launch.scatter), take(&mut launch.global));
        let code = Arc::new(Code::new(&program.words, launch.start, launch.code_options()));
        let fetch_code = fetch_code(&launch);
        let origin = Origin { code, fetch_code, launch: Arc::new(launch), options: *options };
        let fast = match options.engine {
            Engine::Reference => None,
            Engine::Fast | Engine::Lockstep => Some(Fast::new(&origin)),
        };
        Running { origin, fast, simd: Simd { scatter, global, ..Simd::default() } }
    }

    /// Runs all wavefronts.
    fn all<O: Observer>(&mut self, observer: &mut O) -> Result<Outcome, Trap<Cause>> {
        let Running { origin, fast, simd } = self;
        match (origin.options.engine, fast) {
            (Engine::Fast, Some(fast)) if !O::DATA => return fast::run(origin, fast, simd, observer),
            (Engine::Lockstep, Some(fast)) if !O::ENABLED => return fast::lockstep::run(origin, fast, simd),
            (Engine::Reference | Engine::Fast | Engine::Lockstep, _) => {}
        }
        let mut outcome = Outcome { killed: Vec::with_capacity(origin.launch.lanes), ..Outcome::default() };
        for place in origin.places() {
            let mut wave = origin.wave(place, &[]);
            wave.set_simd(take(simd));
            while wave.step(observer)? == Step::Running {}
            *simd = wave.finish(&mut outcome);
        }
        Ok(outcome)
    }

    /// Adds what all wavefronts shared.
    fn shared_to(self, mut outcome: Outcome) -> Outcome {
        (outcome.memory.scatter, outcome.memory.global) = (self.simd.scatter, self.simd.global);
        outcome
    }
}
