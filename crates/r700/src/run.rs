//! Runs a launch: all its wavefronts, at once or piece by piece.

use std::mem::take;
use std::ops::Range;
use std::sync::Arc;

use reconverge_isa::Program;
use reconverge_simt::compiling::Extent;
use reconverge_simt::{
    CodeFault, Engine, Machine, Observer, Options, Shares, Silent, Statistics, Step, Trap, Watch, limits,
    stop, watched,
};

use crate::cause::Cause;
use crate::fast::{self, Fast};
use crate::launch::{Input, Launch, LaunchError};
use crate::memory::Simd;
use crate::outcome::Outcome;
use crate::wave::{Origin, Wave};

/// Why a launch gives no outcome.
pub type RunError = reconverge_simt::RunError<LaunchError, Cause>;

/// Runs a program to its end on the engine of the options.
///
/// On the fast engine wavefronts that share nothing run on as many threads of the rayon pool as [`Options::workers`] says.
///
/// # Errors
/// The launch does not fit the machine; the trap of the first wavefront that has one; the engines differ.
pub fn run(program: &Program, launch: &Launch, options: &Options) -> Result<Outcome, RunError> {
    observed(program, launch, options, &mut Silent)
}

/// [`run`] with an observer, which is notified of the events of one wavefront after another, on one thread. They come from
/// the reference interpreter, unless the engine is [`Engine::Fast`] and the observer takes no data ([`Observer::DATA`]).
/// With [`Engine::Lockstep`] an observer of [`Observer::PATHS`] gets the fast engine's instructions by path.
///
/// # Errors
/// As [`run`].
pub fn run_observed<O: Observer>(
    program: &Program,
    launch: &Launch,
    options: &Options,
    observer: &mut O,
) -> Result<Outcome, RunError> {
    run_watched(program, launch, options, Watch::of(observer))
}

/// [`run_observed`] with an observer that is chosen at run time.
///
/// # Errors
/// As [`run`].
pub fn run_watched(
    program: &Program,
    launch: &Launch,
    options: &Options,
    watch: Watch<'_>,
) -> Result<Outcome, RunError> {
    watched!(watch, |observer| observed(program, launch, options, observer))
}

fn observed<O: Observer>(
    program: &Program,
    launch: &Launch,
    options: &Options,
    observer: &mut O,
) -> Result<Outcome, RunError> {
    launch.check().map_err(RunError::Launch)?;
    // Passes tell an observer nothing.
    let engine = if O::ENABLED { options.engine().not_compiled() } else { options.engine() };
    CodeFault::caught(|| {
        let mut running = Running::new(program, launch.clone(), &Options { engine, ..*options });
        let outcome = running.all(program, observer)?;
        Ok(running.shared_to(outcome))
    })
}

/// [`run`] for launches of any number of lanes in bounded memory: `piece` lanes at a time, rounded up to whole
/// wavefronts, at least one, at most as many as [`limits::LANES`] allows.
///
/// `inputs` gives the registers at the start of the lanes of a range, in place of [`Launch::inputs`]; `done` takes the
/// results of those lanes: exports, killed lanes, lane-private memory, emissions, and the counts of the piece. Lists of
/// both begin with the first lane of the range; an [`Emission`](crate::outcome::Emission) has its wavefront's number in
/// the whole launch. Memory that wavefronts share goes on from piece to piece.
///
/// Gives the results of the whole: scatter buffer and global registers, and the sums of counts. All of it is what [`run`]
/// gives.
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
) -> Result<Outcome, RunError> {
    Launch { lanes: 0, ..launch.clone() }.check().map_err(RunError::Launch)?;
    let piece = piece.clamp(1, limits::LANES.size()).next_multiple_of(launch.chip.wave_width.into());
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
        let outcome = running.all(program, &mut Silent)?;
        whole.add_counts(&outcome);
        done(range, outcome);
    }
    Ok(running.shared_to(whole))
}

/// A launch while it runs.
struct Running {
    origin: Origin,
    /// The lowered program, if the engine needs it.
    fast: Option<Fast>,
    /// What all wavefronts share.
    simd: Simd,
}

impl Running {
    fn new(program: &Program, mut launch: Launch, options: &Options) -> Running {
        let (scatter, global) = (take(&mut launch.scatter), take(&mut launch.global));
        let origin = Origin::new(program, launch, options);
        let fast = match options.engine() {
            Engine::Reference => None,
            Engine::Fast | Engine::Lockstep => Some(Fast::new(&origin)),
            Engine::Compiled => {
                let waves = origin.launch.lanes.div_ceil(origin.width());
                Some(Fast::compiled(&origin, Extent::worth(waves)))
            }
            Engine::LockstepCompiled => Some(Fast::compiled(&origin, Extent::Throughout)),
        };
        Running { origin, fast, simd: Simd { scatter, global, ..Simd::default() } }
    }

    /// Runs all wavefronts, each until its end or until runs are to [stop].
    fn all<O: Observer>(&mut self, program: &Program, observer: &mut O) -> Result<Outcome, RunError> {
        let Running { origin, fast, simd } = self;
        // A condition on constants alone, so that the engines are not compiled for observers that they do not serve.
        if O::DATA {
            return self.on_reference(observer);
        }
        match (origin.options.engine().not_compiled(), fast) {
            (Engine::Fast, Some(fast)) => Ok(fast::run(origin, fast, simd, observer)?),
            (Engine::Lockstep, Some(fast)) if !O::ENABLED => {
                let mut shares = Shares::default();
                let made = |extent| Fast::compiled(origin, extent);
                let outcome = fast::lockstep::run(origin, fast, simd, &program.words, made, &mut shares);
                shares.announce(observer);
                outcome
            }
            _ => self.on_reference(observer),
        }
    }

    /// [`Running::all`] on the reference interpreter.
    fn on_reference<O: Observer>(&mut self, observer: &mut O) -> Result<Outcome, RunError> {
        let Running { origin, simd, .. } = self;
        let mut outcome = Outcome { killed: Vec::with_capacity(origin.launch.lanes), ..Outcome::default() };
        for place in origin.places() {
            let mut wave = origin.wave(place, &[]);
            wave.set_simd(take(simd));
            observer.group(place / origin.width());
            while !stop::asked() {
                match wave.step(observer) {
                    Ok(Step::Running) => {}
                    Ok(Step::Done) => break,
                    Err(trap) => return Err(wave.trapped(trap).into()),
                }
            }
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

/// A launch as a machine: one instruction a step, wavefront after wavefront, or many at once with [`Run::advance`]. A copy
/// is a snapshot. Steps are the reference interpreter's.
#[derive(Clone, Debug)]
pub struct Run {
    origin: Arc<Origin>,
    /// The program lowered, from the first [`Run::advance`] on the fast engine on.
    fast: Option<Arc<Fast>>,
    /// The wavefront that runs; the last one at the end.
    wave: Wave,
    done: bool,
    /// What the wavefronts that have ended left. Shared between copies until one of them adds to it.
    outcome: Arc<Outcome>,
}

impl Run {
    /// The launch before its first instruction.
    ///
    /// # Errors
    /// A launch that does not fit.
    pub fn new(program: &Program, mut launch: Launch, options: &Options) -> Result<Run, LaunchError> {
        launch.check()?;
        let (scatter, global) = (take(&mut launch.scatter), take(&mut launch.global));
        let origin = Arc::new(Origin::new(program, launch, options));
        let mut wave = origin.wave(0, &[]);
        wave.set_simd(Simd { scatter, global, ..Simd::default() });
        let done = origin.launch.lanes == 0;
        Ok(Run { origin, fast: None, wave, done, outcome: Arc::default() })
    }

    /// The launch.
    pub fn launch(&self) -> &Launch {
        &self.origin.launch
    }

    /// The wavefront that runs; after the end, the last.
    pub fn wave(&self) -> &Wave {
        &self.wave
    }

    /// The wavefront that runs, for changing: a debugger's hand on registers and shared memory.
    pub fn wave_mut(&mut self) -> &mut Wave {
        &mut self.wave
    }

    /// The place in the launch of the first lane of the wavefront that runs; `None` after the end.
    pub fn place(&self) -> Option<usize> {
        (!self.done).then_some(self.wave.place)
    }

    /// The trap with its place in the launch.
    pub fn locate(&self, trap: Trap<Cause>) -> RunError {
        self.wave.trapped(trap).into()
    }

    /// Counts so far.
    pub fn statistics(&self) -> Statistics {
        let mut statistics = self.outcome.statistics;
        if !self.done {
            statistics.add(&self.wave.statistics());
        }
        statistics
    }

    /// What is left; complete once a step has returned [`Step::Done`].
    pub fn outcome(&self) -> Outcome {
        let mut outcome = Outcome::clone(&self.outcome);
        let Simd { scatter, global, .. } = self.wave.simd();
        (outcome.memory.scatter, outcome.memory.global) = (scatter.clone(), global.clone());
        outcome
    }

    /// Executes one instruction.
    ///
    /// # Errors
    /// The program trapped; the wavefront stays at the instruction that did.
    pub fn step<O: Observer>(&mut self, observer: &mut O) -> Result<Step, Trap<Cause>> {
        self.step_watched(Watch::of(observer))
    }

    /// [`Run::step`] with an observer that is chosen at run time.
    ///
    /// # Errors
    /// Those of [`Run::step`].
    pub fn step_watched(&mut self, watch: Watch<'_>) -> Result<Step, Trap<Cause>> {
        watched!(watch, |observer| self.observed_step(observer))
    }

    fn observed_step<O: Observer>(&mut self, observer: &mut O) -> Result<Step, Trap<Cause>> {
        if self.done || self.wave.step(observer)? == Step::Running {
            return Ok(if self.done { Step::Done } else { Step::Running });
        }
        Ok(self.next_wave())
    }

    /// Executes instructions on the engine of the options (the reference interpreter, or else the fast engine), at most
    /// `most`, fewer only at the end. The observer takes no data.
    ///
    /// # Errors
    /// The program trapped; the wavefront stays at the instruction that did.
    pub fn advance(&mut self, most: u64, watch: Watch<'_>) -> Result<Step, Trap<Cause>> {
        match watch.flow() {
            None => self.observed_advance(most, &mut Silent),
            Some(mut told) => self.observed_advance(most, &mut told),
        }
    }

    fn observed_advance<O: Observer>(&mut self, most: u64, observer: &mut O) -> Result<Step, Trap<Cause>> {
        let end = self.statistics().instructions.saturating_add(most);
        // Made by the first call, for all copies.
        let fast = self.lowered();
        while !self.done {
            let left = end.saturating_sub(self.statistics().instructions);
            if left == 0 {
                return Ok(Step::Running);
            }
            if O::ENABLED {
                observer.group(self.wave.place / self.origin.width());
            }
            match &fast {
                Some(fast) => {
                    if fast::advance(fast, &mut self.wave, left, observer)? == Step::Done {
                        self.next_wave();
                    }
                }
                None => {
                    self.observed_step(observer)?;
                }
            }
        }
        Ok(Step::Done)
    }

    /// The program lowered; `None` where the options name the reference interpreter.
    fn lowered(&mut self) -> Option<Arc<Fast>> {
        if self.origin.options.engine() == Engine::Reference {
            return None;
        }
        let Run { origin, fast, wave, .. } = self;
        let made = fast.get_or_insert_with(|| {
            let fast = Arc::new(Fast::new(origin));
            fast.prepare(wave);
            fast
        });
        Some(made.clone())
    }

    /// Replaces the program of the wavefront that runs, which must be at a control-flow instruction
    /// ([`Wave::next_words`]), and of those behind it. Words without a meaning trap when they are reached.
    pub fn set_program(&mut self, program: &Program) {
        let Origin { launch, options, .. } = &*self.origin;
        self.origin = Arc::new(Origin::new(program, Launch::clone(launch), options));
        self.wave.code = self.origin.code.clone();
        self.fast = None;
    }

    /// Whether wavefronts are known to see nothing of what those before them have done: after [`Run::advance`] on the fast
    /// engine.
    pub fn is_independent(&self) -> bool {
        self.fast.as_ref().is_some_and(|fast| !fast.shares(self.wave.simd()))
    }

    /// The wavefront has ended: adds what it left, and begins the next.
    fn next_wave(&mut self) -> Step {
        self.wave.add_to(Arc::make_mut(&mut self.outcome), self.origin.launch.lanes);
        let next = self.wave.place + self.origin.width();
        if next >= self.origin.launch.lanes {
            self.done = true;
            return Step::Done;
        }
        self.wave.restart(next);
        Step::Running
    }
}
