//! Runs a launch on the host's threads, on two engines in lockstep, or with an observer, one group after another.

use std::sync::Arc;

use reconverge_isa::Program;
use reconverge_simt::loaded::Forms;
use reconverge_simt::workers::try_hand_out;
use reconverge_simt::{
    Engine, FlowView, Machine, Mask, Observer, Options, Silent, Statistics, Step, Trap, Watch, stepping,
    stop, watched,
};

use super::cause::Cause;
use super::fast::{Fast, lockstep};
use super::group::{Group, INPUT, OUTPUT, WIDTH};
use super::inst::INPUTS;
use super::launch::{Environment, Input, Launch, LaunchError, RunError, trapped};
use super::outputs::Outcome;
use super::setup::Setup;

/// Number of consecutive groups that a thread runs per task.
const BATCH: usize = 32;

/// A program that is loaded for an environment. Loading decodes and checks the program. The program is lowered once,
/// when an engine first needs the lowered form. A loaded program can run any number of launches. Copies share all data.
///
/// ```
/// use reconverge_isa::Program;
/// use reconverge_r500::pvs::launch::{Environment, Input};
/// use reconverge_r500::pvs::run::Loaded;
/// use reconverge_simt::Options;
///
/// // o0 = i0 * c0
/// let words = vec![0x00f0_0202, 0x00d1_0001, 0x00d1_0002, 0x0124_8001];
/// let vector = |x: f32| [x.to_bits(), 0, 0, 1f32.to_bits()];
/// let environment = Environment { constants: vec![(0, vector(2.0))] }.into();
/// let loaded = Loaded::new(&Program::from_words(words), &environment, &Options::default()).unwrap();
/// let input = Input { register: 0, values: (0..100).map(|n| vector(n as f32)).collect() };
/// let outcome = loaded.run(100, vec![input]).unwrap();
/// let position = outcome.outputs.values(0).unwrap();
/// assert_eq!(position[7], vector(14.0));
/// assert_eq!((outcome.outputs.written(0), outcome.outputs.values(1)), (0b1111, None));
/// ```
#[derive(Clone, Debug)]
pub struct Loaded {
    setup: Arc<Setup>,
    environment: Arc<Environment>,
    options: Options,
    fast: Arc<Forms<(), Fast>>,
}

impl Loaded {
    /// Loads a program.
    ///
    /// # Errors
    /// Returns an error if the program cannot be set up.
    pub fn new(
        program: &Program,
        environment: &Arc<Environment>,
        options: &Options,
    ) -> Result<Loaded, LaunchError> {
        Ok(Loaded::of(&Arc::new(Setup::new(program)?), environment, options))
    }

    /// Loads a decoded program.
    pub fn of(setup: &Arc<Setup>, environment: &Arc<Environment>, options: &Options) -> Loaded {
        let (setup, environment) = (setup.clone(), environment.clone());
        Loaded { setup, environment, options: *options, fast: Arc::default() }
    }

    /// Returns the same program for another environment. Reuses the lowered program, because the lowered program does
    /// not depend on the environment.
    pub fn with_environment(&self, environment: &Arc<Environment>) -> Loaded {
        Loaded { environment: environment.clone(), ..self.clone() }
    }

    /// Replaces the constants of the environment.
    pub fn set_constants(&mut self, constants: impl Iterator<Item = (u8, [u32; 4])>) {
        let environment = Arc::make_mut(&mut self.environment);
        environment.constants.clear();
        environment.constants.extend(constants);
    }

    /// Returns the decoded program.
    pub fn setup(&self) -> &Setup {
        &self.setup
    }

    /// Returns the environment for which the program is loaded.
    pub fn environment(&self) -> &Arc<Environment> {
        &self.environment
    }

    /// Runs `vertices` vertices with these inputs. The options select the engine.
    ///
    /// # Errors
    /// Returns an error if the launch is invalid, if a group traps, or if the results of two engines differ. If several
    /// groups trap, the error is from the group with the lowest vertex numbers.
    pub fn run(&self, vertices: usize, inputs: Vec<Input>) -> Result<Outcome, RunError> {
        let environment = self.environment.clone();
        self.run_watched(Launch { environment, vertices, inputs }, Watch::Nothing)
    }

    /// Runs a launch, one group at a time in order, and reports every event. The environment of [`Loaded::new`]
    /// replaces the environment of the launch. All events come from the reference interpreter. A lockstep run does not
    /// report events.
    ///
    /// # Errors
    /// Returns the same errors as [`Loaded::run`].
    pub fn run_watched(&self, mut launch: Launch, watch: Watch<'_>) -> Result<Outcome, RunError> {
        launch.environment = self.environment.clone();
        launch.check().map_err(RunError::Launch)?;
        match watch {
            Watch::Nothing if self.options.engine().not_compiled() == Engine::Fast => self.fast(&launch),
            watch => watched!(watch, |observer| self.observed(&launch, observer)),
        }
    }

    /// Prepares a launch to run step by step from the first instruction. The launch runs in the environment of
    /// [`Loaded::new`].
    ///
    /// # Errors
    /// Returns an error if the launch is invalid.
    pub fn running(&self, mut launch: Launch) -> Result<Run, LaunchError> {
        launch.environment = self.environment.clone();
        launch.check()?;
        let group = launch.group(&self.setup, &self.options, 0);
        let (done, outcome) = (launch.vertices == 0, Arc::new(Outcome::new(launch.vertices)));
        Ok(Run {
            loaded: self.clone(),
            launch: Arc::new(launch),
            group,
            first: 0,
            done,
            ended: None,
            outcome,
        })
    }

    fn lowered(&self) -> Arc<Fast> {
        self.fast.plain(&(), || Fast::new(&self.setup, &self.options))
    }

    fn fast(&self, launch: &Launch) -> Result<Outcome, RunError> {
        let fast = self.lowered();
        let batch = BATCH * WIDTH;
        let batches = (0..launch.vertices).step_by(batch);
        let workers = if launch.vertices <= batch { 1 } else { self.options.workers() };
        let worker = || Worker::new(&fast, &self.setup, launch, &self.options);
        let mut outcome = Outcome::new(launch.vertices);
        if workers == 1 {
            let mut worker = worker();
            worker.run(0, launch.vertices, &mut outcome, 0)?;
            worker.finish(&mut outcome);
            return Ok(outcome);
        }
        let done = try_hand_out(workers, batches, worker, |worker, first| {
            let count = batch.min(launch.vertices - first);
            let mut part = Outcome::new(count);
            worker.run(first, first + count, &mut part, first)?;
            Ok::<_, RunError>((first, part))
        })?;
        done.results.iter().for_each(|(first, part)| outcome.put_all(part, *first));
        done.workers.into_iter().for_each(|worker| worker.finish(&mut outcome));
        Ok(outcome)
    }

    /// Returns whether [`Loaded::run_vectors`] gives the same results as [`Loaded::run`]. The results are the same if
    /// the options select the fast engine.
    pub fn runs_vectors(&self) -> bool {
        self.options.engine().not_compiled() == Engine::Fast
    }

    /// Runs vertices on the fast engine, without counts. In `vertices`, replaces the first `N` input registers of each
    /// vertex by the first `N` output registers of the vertex. If a vertex does not write an output, the output is
    /// zero. The program can read only the inputs in the mask `inputs`. Bit n of the mask is input n. All other inputs
    /// are zero.
    ///
    /// # Errors
    /// If any group traps, returns an error for the trap of the group with the lowest vertex numbers.
    pub fn run_vectors<const N: usize>(
        &self,
        vertices: &mut [[[u32; 4]; N]],
        inputs: u32,
    ) -> Result<(), RunError> {
        let fast = self.lowered();
        let inputs = (0..N.min(INPUTS)).filter(move |register| inputs >> register & 1 != 0);
        let batch = BATCH * WIDTH;
        let workers = if vertices.len() <= batch { 1 } else { self.options.workers() };
        let group = || fast.group(&self.setup, &self.environment, &self.options);
        if workers == 1 {
            let mut group = group();
            run_in_place(&fast, &mut group, (0, vertices), inputs.clone())?;
            fast.keep(group, inputs);
            return Ok(());
        }
        let batches = vertices.chunks_mut(batch).enumerate();
        try_hand_out(workers, batches, group, |group, (number, vertices)| {
            run_in_place(&fast, group, (number * batch, vertices), inputs.clone())
        })?;
        Ok(())
    }

    fn observed<O: Observer>(&self, launch: &Launch, observer: &mut O) -> Result<Outcome, RunError> {
        let Loaded { setup, options, .. } = self;
        let mut outcome = Outcome::new(launch.vertices);
        let fast = options.engine().is_lockstep().then(|| self.lowered());
        for first in (0..launch.vertices).step_by(WIDTH) {
            let start = || launch.group(setup, options, first);
            let group = match &fast {
                Some(fast) => lockstep::run(fast, setup, first, start)?,
                None => {
                    let mut group = start();
                    if O::ENABLED {
                        observer.group(first / WIDTH);
                    }
                    group.run(observer).map_err(|trap| trapped(first, trap))?;
                    group
                }
            };
            outcome.put(&group, first);
        }
        Ok(outcome)
    }
}

/// The state of a host thread: the fast engine, and a group that the thread reuses.
struct Worker<'a> {
    fast: &'a Fast,
    launch: &'a Launch,
    group: Box<Group>,
}

impl<'a> Worker<'a> {
    fn new(fast: &'a Fast, setup: &Arc<Setup>, launch: &'a Launch, options: &Options) -> Worker<'a> {
        let mut group = fast.group(setup, &launch.environment, options);
        group.issued.fill(0);
        Worker { fast, launch, group }
    }

    /// Runs the vertices from `start` to `end` of the launch, and adds their results to `outcome`. The first vertex in
    /// `outcome` is vertex `base` of the launch.
    fn run(&mut self, start: usize, end: usize, outcome: &mut Outcome, base: usize) -> Result<(), RunError> {
        for first in (start..end).step_by(WIDTH) {
            self.fast.restart(&mut self.group, self.launch.lanes(first));
            self.launch.load(&mut self.group, first);
            run_to_end(self.fast, &mut self.group, first)?;
            outcome.outputs.put(&self.group, first - base);
            outcome.statistics.add(&self.group.statistics());
        }
        Ok(())
    }

    /// Extends the report of `outcome` with the operations that this worker has executed.
    fn finish(self, outcome: &mut Outcome) {
        outcome.report.add(&self.group.report());
        self.fast.keep(self.group, self.launch.inputs.iter().map(|input| input.register.into()));
    }
}

/// Runs vertices, the first of which is vertex `start` of the launch. Replaces the input registers of each vertex by
/// its output registers.
fn run_in_place<const N: usize>(
    fast: &Fast,
    group: &mut Group,
    (start, vertices): (usize, &mut [[[u32; 4]; N]]),
    inputs: impl Iterator<Item = usize> + Clone,
) -> Result<(), RunError> {
    for (number, vertices) in vertices.chunks_mut(WIDTH).enumerate() {
        fast.restart(group, Mask::first(vertices.len()));
        for register in inputs.clone() {
            let rows = &mut group.rows.rows_mut()[INPUT.start + 4 * register..][..4];
            for (lane, vectors) in vertices.iter().enumerate() {
                rows.iter_mut().zip(vectors[register]).for_each(|(row, word)| row.0[lane] = word);
            }
        }
        run_to_end(fast, group, start + number * WIDTH)?;
        for (output, written) in group.written.iter().enumerate().take(N) {
            let is_written = written.iter().any(|lanes| lanes.any());
            let rows = [0, 1, 2, 3].map(|channel| &group.rows[OUTPUT.start + 4 * output + channel]);
            for (lane, vectors) in vertices.iter_mut().enumerate() {
                vectors[output] = if is_written { rows.map(|row| row[lane]) } else { [0; 4] };
            }
        }
    }
    Ok(())
}

/// Runs a group to its end, or until a [stop] is requested. The group begins with vertex `first`.
fn run_to_end(fast: &Fast, group: &mut Group, first: usize) -> Result<(), RunError> {
    while group.flow.issue().is_some() && !stop::asked() {
        fast.run(group, stop::SLICE, &mut Silent).map_err(|trap| trapped(first, trap))?;
    }
    Ok(())
}

/// Runs all vertices of a launch. See [`Loaded::run`].
///
/// # Errors
/// Returns the same errors as [`Loaded::run`].
pub fn run(setup: &Arc<Setup>, launch: &Launch, options: &Options) -> Result<Outcome, RunError> {
    run_watched(setup, launch, options, Watch::Nothing)
}

/// Runs a launch with an observer. See [`Loaded::run_watched`].
///
/// # Errors
/// Returns the same errors as [`Loaded::run`].
pub fn run_watched(
    setup: &Arc<Setup>,
    launch: &Launch,
    options: &Options,
    watch: Watch<'_>,
) -> Result<Outcome, RunError> {
    Loaded::of(setup, &launch.environment, options).run_watched(launch.clone(), watch)
}

/// A launch that runs one instruction at a time, group by group. A clone of this value is a snapshot. The reference
/// interpreter executes all steps.
#[derive(Clone)]
pub struct Run {
    loaded: Loaded,
    launch: Arc<Launch>,
    /// The running group and its first vertex. After the launch has ended, this field holds the last group.
    group: Group,
    first: usize,
    done: bool,
    /// The group that ended at the last step.
    ended: Option<Arc<Group>>,
    outcome: Arc<Outcome>,
}

impl Run {
    /// Prepares a launch to run from its first instruction.
    ///
    /// # Errors
    /// Returns an error if the launch is invalid.
    pub fn new(setup: &Arc<Setup>, launch: Launch, options: &Options) -> Result<Run, LaunchError> {
        Loaded::of(setup, &launch.environment, options).running(launch)
    }

    /// Returns the launch.
    pub fn launch(&self) -> &Launch {
        &self.launch
    }

    /// Returns the running group, or the last group after the launch has ended.
    pub fn group(&self) -> &Group {
        &self.group
    }

    /// Returns the running group as a mutable reference. A debugger can change the group's registers.
    pub fn group_mut(&mut self) -> &mut Group {
        &mut self.group
    }

    /// Returns the group that ended at the last step. If no group ended, the function returns `None`.
    pub fn take_ended(&mut self) -> Option<Arc<Group>> {
        self.ended.take()
    }

    /// Returns the first vertex of the running group, or `None` after the launch has ended.
    pub fn first(&self) -> Option<usize> {
        (!self.done).then_some(self.first)
    }

    /// Returns the error for a trap of the running group. The error has the group's position in the launch.
    pub fn locate(&self, trap: Trap<Cause>) -> RunError {
        trapped(self.first, trap)
    }

    /// Returns the counts so far.
    pub fn statistics(&self) -> Statistics {
        let mut statistics = self.outcome.statistics;
        if !self.done {
            statistics.add(&self.group.statistics());
        }
        statistics
    }

    /// Returns the current results. The results are complete after a step has returned [`Step::Done`].
    pub fn outcome(&self) -> &Outcome {
        &self.outcome
    }

    stepping!(Cause);

    fn observed_step<O: Observer>(&mut self, observer: &mut O) -> Result<Step, Trap<Cause>> {
        if self.done || self.group.step(observer)? == Step::Running {
            return Ok(if self.done { Step::Done } else { Step::Running });
        }
        Arc::make_mut(&mut self.outcome).put(&self.group, self.first);
        let next = self.first + WIDTH;
        self.ended = Some(Arc::new(self.group.clone()));
        if next >= self.launch.vertices {
            self.done = true;
            return Ok(Step::Done);
        }
        self.first = next;
        self.group = self.launch.group(&self.loaded.setup, &self.loaded.options, next);
        Ok(Step::Running)
    }
}
