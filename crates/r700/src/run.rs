//! Runs a launch as a whole or in pieces.

use std::mem::take;
use std::ops::Range;
use std::sync::Arc;

use reconverge_isa::Program;
use reconverge_simt::loaded::Forms;
use reconverge_simt::{
    CodeFault, Engine, Machine, Observer, Options, Shares, Silent, Statistics, Step, Trap, Watch, limits,
    stepping, stop, watched,
};

use crate::cause::Cause;
use crate::code::Code;
use crate::fast::{self, Fast};
use crate::launch::{Environment, Input, Launch, LaunchError};
use crate::memory::Simd;
use crate::outcome::Outcome;
use crate::wave::{Origin, Wave};

/// Reason why a launch has no outcome.
pub type RunError = reconverge_simt::RunError<LaunchError, Cause>;

/// A program loaded for an environment. Loading decodes and checks the program. An engine lowers the program only once,
/// when the engine first needs the lowered form. A loaded program can run any number of launches. Clones share all
/// data.
#[derive(Clone, Debug)]
pub struct Loaded {
    words: Arc<[u32]>,
    /// The origin of a launch without lanes. The origin contains the program and its environment.
    origin: Origin,
    fast: Arc<Forms<(), Fast>>,
}

impl Loaded {
    /// Loads a program.
    ///
    /// # Errors
    /// Returns an error if instructions cannot address as many registers as the environment states.
    pub fn new(
        program: &Program,
        environment: &Arc<Environment>,
        options: &Options,
    ) -> Result<Loaded, LaunchError> {
        environment.check()?;
        let origin = Origin::new(program, Launch::of(environment.clone(), 0, Vec::new()), options);
        Ok(Loaded { words: program.words.as_slice().into(), origin, fast: Arc::default() })
    }

    /// Returns the same program for another environment. The function decodes the program again only if the two
    /// environments lead to different decoded code. If the environments do not [lower
    /// alike](Environment::lowers_alike), the function also lowers the program again.
    ///
    /// # Errors
    /// See [`Loaded::new`].
    pub fn with_environment(&self, environment: &Arc<Environment>) -> Result<Loaded, LaunchError> {
        if !environment.decodes_alike(self.environment()) {
            let program = Program::from_words(self.words.to_vec());
            return Loaded::new(&program, environment, &self.origin.options);
        }
        match environment.lowers_alike(self.environment()) {
            true => self.with_values(environment),
            false => Loaded { fast: Arc::default(), ..self.clone() }.with_values(environment),
        }
    }

    /// Works like [`Loaded::with_environment`], but does not compare the environments. The caller guarantees that both
    /// environments [lower alike](Environment::lowers_alike).
    ///
    /// # Errors
    /// See [`Loaded::new`].
    pub fn with_values(&self, environment: &Arc<Environment>) -> Result<Loaded, LaunchError> {
        environment.check()?;
        let launch = Arc::new(Launch::of(environment.clone(), 0, Vec::new()));
        let origin = Origin { launch, ..self.origin.clone() };
        Ok(Loaded { words: self.words.clone(), origin, fast: self.fast.clone() })
    }

    /// Returns the environment for which the program is loaded.
    pub fn environment(&self) -> &Arc<Environment> {
        &self.origin.launch.environment
    }

    /// Returns the decoded program and its fetch program.
    pub fn codes(&self) -> (&Code, Option<&Code>) {
        (&self.origin.code, self.origin.fetch_code.as_deref())
    }

    /// Runs `lanes` lanes on the engine that the options select. `inputs` are the initial registers.
    ///
    /// If the wavefronts do not share memory, the fast engine runs the wavefronts in parallel. These wavefronts run on
    /// a rayon pool with [`Options::workers`] threads.
    ///
    /// # Errors
    /// Returns an error if the launch does not fit the machine, if a wavefront traps, or if the engines' results
    /// differ. If several wavefronts trap, the error is the trap of the first wavefront that traps.
    pub fn run(&self, lanes: usize, inputs: Vec<Input>) -> Result<Outcome, RunError> {
        self.run_watched(Launch::of(self.environment().clone(), lanes, inputs), Watch::Nothing)
    }

    /// Runs a launch with an observer, in the environment of [`Loaded::new`]. The launch's own environment has no
    /// effect.
    ///
    /// One thread notifies the observer of the events of one wavefront after another. If the engine is [`Engine::Fast`]
    /// and the observer does not receive data ([`Observer::DATA`]), the fast engine reports events. Otherwise, the
    /// reference interpreter reports events. With [`Engine::Lockstep`], an observer that sets [`Observer::PATHS`]
    /// receives one count for each path of the fast engine ([`Observer::path`]). The count is the number of
    /// instructions that the fast engine executed on the path.
    ///
    /// # Errors
    /// See [`Loaded::run`].
    pub fn run_watched(&self, launch: Launch, watch: Watch<'_>) -> Result<Outcome, RunError> {
        self.run_alike(Launch { environment: self.environment().clone(), ..launch }, watch)
    }

    /// Runs a launch with an observer, in the environment of the launch. This environment and the environment of the
    /// program must [lower alike](Environment::lowers_alike). See [`Loaded::run_watched`].
    ///
    /// # Errors
    /// See [`Loaded::run`].
    pub fn run_alike(&self, launch: Launch, watch: Watch<'_>) -> Result<Outcome, RunError> {
        let mut outcome = Outcome::default();
        watched!(watch, |observer| self.observed(launch, &mut outcome, observer))?;
        Ok(outcome)
    }

    /// Runs a launch like [`Loaded::run_alike`], but without an observer. The outcome of the launch replaces the
    /// contents of `outcome`. The new contents reuse the memory of the old contents. In [`Outcome::columns`], targets
    /// of the previous outcome may come before new targets. After an error, the contents of `outcome` have no meaning.
    ///
    /// # Errors
    /// See [`Loaded::run`].
    pub fn run_in(&self, outcome: &mut Outcome, launch: Launch) -> Result<(), RunError> {
        self.observed(launch, outcome, &mut Silent)
    }

    /// Returns a launch that can run step by step. The launch runs in the environment of [`Loaded::new`]. No
    /// instruction has run yet.
    ///
    /// # Errors
    /// Returns an error if the launch does not fit the machine, for example because the launch has too many lanes.
    pub fn running(&self, launch: Launch) -> Result<Run, LaunchError> {
        launch.check()?;
        let (origin, simd) = self.start(Launch { environment: self.environment().clone(), ..launch });
        let mut wave = origin.wave(0, &[]);
        wave.set_simd(simd);
        let done = origin.launch.lanes == 0;
        Ok(Run { loaded: self.clone(), origin, fast: None, wave, done, ended: None, outcome: Arc::default() })
    }

    fn observed<O: Observer>(
        &self,
        launch: Launch,
        outcome: &mut Outcome,
        observer: &mut O,
    ) -> Result<(), RunError> {
        launch.check().map_err(RunError::Launch)?;
        let (origin, mut simd) = self.start(launch);
        CodeFault::caught(|| {
            let waves = origin.launch.lanes.div_ceil(origin.width());
            self.all(&origin, &mut simd, (waves, outcome), observer)?;
            add_shared(outcome, simd);
            Ok(())
        })
    }

    /// Returns the origin of the launch's wavefronts, and the initial state that the wavefronts share.
    fn start(&self, mut launch: Launch) -> (Origin, Simd) {
        let (scatter, global) = (take(&mut launch.scatter), take(&mut launch.global));
        let mut simd = Simd { scatter, global, ..Simd::default() };
        let origin = Origin { launch: Arc::new(launch), ..self.origin.clone() };
        if origin.options.checks_races() && origin.data_share {
            simd.share.check((origin.launch.first_lane + origin.launch.lanes).div_ceil(origin.width()));
        }
        (origin, simd)
    }

    /// Runs each wavefront until the wavefront ends, or until a [stop] of all runs is requested. `waves` is the number
    /// of wavefronts of the whole launch. The decision to compile the program depends on this number. The outcome of
    /// the launch replaces `outcome`.
    fn all<O: Observer>(
        &self,
        origin: &Origin,
        simd: &mut Simd,
        (waves, outcome): (usize, &mut Outcome),
        observer: &mut O,
    ) -> Result<(), RunError> {
        // `O::DATA` is a constant. Therefore rustc does not generate the code of the fast engine for observers of data.
        if O::DATA {
            *outcome = on_reference(origin, simd, observer)?;
            return Ok(());
        }
        // Compiled code does not emit events. So if the observer needs events, the engine does not use compiled code.
        let engine = origin.options.engine();
        let engine = if O::ENABLED { engine.not_compiled() } else { engine };
        let lower = || Fast::new(&self.origin);
        let fast = self.fast.of(&(), (engine, waves), lower, Fast::compiled);
        match (engine.not_compiled(), fast) {
            (Engine::Fast, Some(fast)) => fast::run(origin, &fast, simd, outcome, observer)?,
            (Engine::Lockstep, Some(fast)) if !O::ENABLED => {
                let mut shares = Shares::default();
                let made = |extent| fast.compiled(extent);
                let left = fast::lockstep::run(origin, &fast, simd, &self.words, made, &mut shares);
                shares.announce(observer);
                *outcome = left?;
            }
            _ => *outcome = on_reference(origin, simd, observer)?,
        }
        Ok(())
    }
}

/// Runs all wavefronts on the reference interpreter.
fn on_reference<O: Observer>(
    origin: &Origin,
    simd: &mut Simd,
    observer: &mut O,
) -> Result<Outcome, RunError> {
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

/// Adds to the outcome the memory that all wavefronts share.
fn add_shared(outcome: &mut Outcome, simd: Simd) {
    (outcome.memory.scatter, outcome.memory.global) = (simd.scatter, simd.global);
}

/// Loads a program and runs the program. See [`Loaded::run`].
///
/// # Errors
/// See [`Loaded::run`].
pub fn run(program: &Program, launch: &Launch, options: &Options) -> Result<Outcome, RunError> {
    run_watched(program, launch, options, Watch::Nothing)
}

/// Loads a program and runs the program with an observer. See [`Loaded::run_watched`].
///
/// # Errors
/// See [`Loaded::run`].
pub fn run_watched(
    program: &Program,
    launch: &Launch,
    options: &Options,
    watch: Watch<'_>,
) -> Result<Outcome, RunError> {
    let loaded = Loaded::new(program, &launch.environment, options).map_err(RunError::Launch)?;
    loaded.run_watched(launch.clone(), watch)
}

/// Runs a launch as a sequence of pieces. The pieces limit the memory that a launch with many lanes needs. Each piece
/// has `piece` lanes, rounded up to whole wavefronts. A piece has at least the lanes of one wavefront, and at most
/// [`limits::LANES`] lanes.
///
/// A piece is a range of lanes. `inputs` returns the initial registers of a piece. These registers replace
/// [`Launch::inputs`]. `done` receives the results of the piece: exports, killed lanes, memory of each lane, emissions,
/// and counts. The lists in inputs and results begin with the first lane of the piece. In an
/// [`Emission`](crate::outcome::Emission), the lane number counts from the start of the whole launch. Memory that
/// wavefronts share keeps its contents from piece to piece.
///
/// Returns the results of the whole launch: the scatter buffer, the global registers and the sums of counts. The
/// results of the whole launch and the results of the pieces together equal the result of [`run`].
///
/// # Errors
/// See [`run`]. If a piece fails, `done` has already received the results of all earlier pieces.
pub fn run_in_pieces(
    program: &Program,
    launch: &Launch,
    options: &Options,
    piece: usize,
    mut inputs: impl FnMut(Range<usize>) -> Vec<Input>,
    mut done: impl FnMut(Range<usize>, Outcome),
) -> Result<Outcome, RunError> {
    let loaded = Loaded::new(program, &launch.environment, options).map_err(RunError::Launch)?;
    let whole = Launch { covered: None, inputs: Vec::new(), ..launch.clone() };
    Launch { lanes: 0, ..whole.clone() }.check().map_err(RunError::Launch)?;
    let (mut origin, mut simd) = loaded.start(whole);
    let waves = launch.lanes.div_ceil(origin.width());
    let piece = piece.clamp(1, limits::LANES.size()).next_multiple_of(origin.width());
    let mut outcomes = Outcome::default();
    for start in (0..launch.lanes).step_by(piece) {
        let range = start..launch.lanes.min(start.saturating_add(piece));
        let covered = |covered: &Vec<bool>| covered.iter().skip(start).take(range.len()).copied().collect();
        origin.launch = Arc::new(Launch {
            first_lane: launch.first_lane + start,
            covered: launch.covered.as_ref().map(covered),
            ..Launch::of(loaded.environment().clone(), range.len(), inputs(range.clone()))
        });
        let mut outcome = Outcome::default();
        loaded.all(&origin, &mut simd, (waves, &mut outcome), &mut Silent)?;
        outcomes.add_counts(&outcome);
        done(range, outcome);
    }
    add_shared(&mut outcomes, simd);
    Ok(outcomes)
}

/// A launch that can be stepped. A step runs one instruction of the current wavefront on the reference interpreter. The
/// wavefronts run one after another. [`Run::advance`] runs many instructions in one call. A clone is a snapshot.
#[derive(Clone, Debug)]
pub struct Run {
    loaded: Loaded,
    origin: Origin,
    /// The lowered program. [`Run::advance`] sets this field when [`Run::advance`] first runs on the fast engine.
    fast: Option<Arc<Fast>>,
    /// The current wavefront. After the end of the launch, this field is the last wavefront.
    wave: Wave,
    done: bool,
    /// The wavefront that the last step ended.
    ended: Option<Arc<Wave>>,
    /// Outcome of the wavefronts that have ended. Clones of the run share this field until one clone adds results.
    outcome: Arc<Outcome>,
}

impl Run {
    /// Returns a launch that can run step by step. No instruction has run yet.
    ///
    /// # Errors
    /// Returns an error if the launch does not fit the machine, for example because the launch has too many lanes.
    pub fn new(program: &Program, launch: Launch, options: &Options) -> Result<Run, LaunchError> {
        Loaded::new(program, &launch.environment, options)?.running(launch)
    }

    /// Returns the launch.
    pub fn launch(&self) -> &Launch {
        &self.origin.launch
    }

    /// Returns the current wavefront. After the end of the launch, returns the last wavefront.
    pub fn wave(&self) -> &Wave {
        &self.wave
    }

    /// Returns the current wavefront for modification. Debuggers use this function to change registers and shared
    /// memory.
    pub fn wave_mut(&mut self) -> &mut Wave {
        &mut self.wave
    }

    /// Returns the wavefront that the last step ended. The result does not contain the memory that wavefronts share.
    /// Returns `None` if the step did not end a wavefront.
    pub fn take_ended(&mut self) -> Option<Arc<Wave>> {
        self.ended.take()
    }

    /// Returns the position of the current wavefront's first lane in the launch. After the end of the launch, the
    /// function returns `None`.
    pub fn place(&self) -> Option<usize> {
        (!self.done).then_some(self.wave.place)
    }

    /// Returns the trap as an error that states the position of the trap in the launch.
    pub fn locate(&self, trap: Trap<Cause>) -> RunError {
        self.wave.trapped(trap).into()
    }

    /// Returns the counts so far.
    pub fn statistics(&self) -> Statistics {
        let mut statistics = self.outcome.statistics;
        if !self.done {
            statistics.add(&self.wave.statistics());
        }
        statistics
    }

    /// Returns the outcome so far. The outcome is complete once a step has returned [`Step::Done`].
    pub fn outcome(&self) -> Outcome {
        let mut outcome = Outcome::clone(&self.outcome);
        let Simd { scatter, global, .. } = self.wave.simd();
        (outcome.memory.scatter, outcome.memory.global) = (scatter.clone(), global.clone());
        outcome
    }

    stepping!(Cause, groups);

    fn observed_step<O: Observer>(&mut self, observer: &mut O) -> Result<Step, Trap<Cause>> {
        if self.done || self.wave.step(observer)? == Step::Running {
            return Ok(if self.done { Step::Done } else { Step::Running });
        }
        let simd = std::mem::take(&mut self.wave.simd);
        self.ended = Some(Arc::new(self.wave.clone()));
        self.wave.simd = simd;
        Ok(self.next_wave())
    }

    fn group_number(&self) -> usize {
        self.wave.place / self.origin.width()
    }

    fn advance_group<O: Observer>(
        &mut self,
        fast: &Fast,
        most: u64,
        observer: &mut O,
    ) -> Result<(), Trap<Cause>> {
        if fast::advance(fast, &mut self.wave, most, observer)? == Step::Done {
            self.next_wave();
        }
        Ok(())
    }

    /// Returns the lowered program, or `None` if the options name the reference interpreter.
    fn lowered(&mut self) -> Option<Arc<Fast>> {
        if self.origin.options.engine() == Engine::Reference {
            return None;
        }
        let Run { loaded, fast, wave, .. } = self;
        let made = fast.get_or_insert_with(|| {
            let fast = loaded.fast.plain(&(), || Fast::new(&loaded.origin));
            fast.prepare(wave);
            fast
        });
        Some(made.clone())
    }

    /// Replaces the program of the current wavefront and of all later wavefronts. The current wavefront must be at a
    /// control-flow instruction ([`Wave::next_words`]). If a wavefront executes invalid words, the wavefront traps.
    pub fn set_program(&mut self, program: &Program) {
        let loaded = Loaded::new(program, self.loaded.environment(), &self.origin.options);
        self.loaded = loaded.expect("the environment fits");
        self.origin = Origin { launch: self.origin.launch.clone(), ..self.loaded.origin.clone() };
        self.wave.code = self.origin.code.clone();
        self.fast = None;
    }

    /// Returns whether wavefronts are known to be independent of earlier wavefronts. Before [`Run::advance`] has run on
    /// the fast engine, the result is `false`.
    pub fn is_independent(&self) -> bool {
        self.fast.is_some() && !self.origin.shares(self.wave.simd())
    }

    /// Ends the current wavefront and begins the next wavefront. Adds the results of the current wavefront to the
    /// outcome.
    fn next_wave(&mut self) -> Step {
        self.wave.add_to(Arc::make_mut(&mut self.outcome), self.origin.launch.lanes, None);
        let next = self.wave.place + self.origin.width();
        if next >= self.origin.launch.lanes {
            self.done = true;
            return Step::Done;
        }
        self.wave.restart(next);
        Step::Running
    }
}
