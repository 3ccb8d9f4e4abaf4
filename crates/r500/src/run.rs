//! Runs a launch as a whole, step by step, or with an observer.

use std::ops::Range;
use std::sync::Arc;

use reconverge_isa::Program;
use reconverge_simt::loaded::Forms;
use reconverge_simt::{
    CodeFault, Engine, FlowView, Machine, Mask, Observer, Options, Silent, Statistics, Step, Trap, Watch,
    stepping, watched,
};

use crate::cause::Cause;
use crate::fast::{Fast, parallel};
use crate::group::{Group, OUTPUTS};
use crate::inst::WORDS;
use crate::launch::{Environment, Input, Launch, LaunchError, RunError, trapped};
use crate::outputs::{Outcome, Outputs, Totals};
use crate::setup::{Setup, SetupError};

/// A program that is loaded for an environment. Loading decodes and checks the program. The program is lowered once,
/// when an engine first needs the lowered form. A loaded program can run any number of launches. Copies share all data.
#[derive(Clone, Debug)]
pub struct Loaded {
    setup: Arc<Setup>,
    environment: Arc<Environment>,
    options: Options,
    /// Whether any float constant is a denormal.
    denormals: bool,
    /// Lowered forms. The key of a form consists of the set of temporaries that inputs write, and the value of
    /// [`Loaded::denormals`].
    fast: Arc<Forms<(u128, bool), Fast>>,
}

impl Loaded {
    /// Loads a program.
    ///
    /// # Errors
    /// Returns an error if the program cannot be set up, or if the environment is invalid.
    pub fn new(
        program: &Program,
        environment: &Arc<Environment>,
        options: &Options,
    ) -> Result<Loaded, LaunchError> {
        Loaded::of(&Arc::new(Setup::new(program)?), environment, options)
    }

    /// Loads a decoded program.
    ///
    /// # Errors
    /// Returns an error if the environment is invalid.
    pub fn of(
        setup: &Arc<Setup>,
        environment: &Arc<Environment>,
        options: &Options,
    ) -> Result<Loaded, LaunchError> {
        environment.check()?;
        let (setup, environment) = (setup.clone(), environment.clone());
        let denormals = environment.has_denormals(&setup);
        Ok(Loaded { setup, environment, options: *options, denormals, fast: Arc::default() })
    }

    /// Returns the same program for another environment. If the two environments [lower
    /// alike](Environment::lowers_alike) and agree on whether constants are denormal, the function does not lower the
    /// program again.
    ///
    /// # Errors
    /// Returns an error if the environment is invalid.
    pub fn with_environment(&self, environment: &Arc<Environment>) -> Result<Loaded, LaunchError> {
        let loaded = Loaded::of(&self.setup, environment, &self.options)?;
        let same = environment.lowers_alike(&self.environment);
        let fast = if same { self.fast.clone() } else { loaded.fast };
        Ok(Loaded { fast, ..loaded })
    }

    /// Replaces the float constants of the environment.
    pub fn set_constants(&mut self, constants: impl Iterator<Item = (u8, [u32; 4])>) {
        let environment = Arc::make_mut(&mut self.environment);
        environment.constants.clear();
        environment.constants.extend(constants);
        self.denormals = environment.has_denormals(&self.setup);
    }

    /// Returns the decoded program.
    pub fn setup(&self) -> &Setup {
        &self.setup
    }

    /// Returns the environment for which the program is loaded.
    pub fn environment(&self) -> &Arc<Environment> {
        &self.environment
    }

    /// Runs `lanes` lanes with these inputs. The options select the engine. Groups do not affect each other. So a
    /// caller may split a launch into several runs of whole groups. The results do not change.
    ///
    /// # Errors
    /// Returns an error if the launch is invalid, if a group traps, or if the results of two engines differ. If several
    /// groups trap, the error is from the group with the lowest lane numbers.
    pub fn run(&self, lanes: usize, inputs: Vec<Input>) -> Result<Outcome, RunError> {
        let environment = self.environment.clone();
        self.run_watched(Launch { environment, lanes, inputs, columns: Vec::new() }, Watch::Nothing)
    }

    /// Runs a launch, one group at a time in order, and reports every event. The environment of [`Loaded::new`]
    /// replaces the environment of the launch. Data events always come from the reference interpreter. Flow events come
    /// from the selected engine. A lockstep run reports only the paths of the fast engine.
    ///
    /// # Errors
    /// Returns the same errors as [`Loaded::run`].
    pub fn run_watched(&self, launch: Launch, watch: Watch<'_>) -> Result<Outcome, RunError> {
        watched!(watch, |observer| self.observed(launch, observer))
    }

    /// Runs a launch like [`Loaded::run_watched`], but returns only the outputs, and does not count instructions or
    /// operations. For a small launch, counting takes a large part of the time.
    ///
    /// # Errors
    /// Returns the same errors as [`Loaded::run`].
    pub fn run_for_outputs(&self, mut launch: Launch) -> Result<Outputs, RunError> {
        let Loaded { setup, options, .. } = self;
        let engine = options.engine();
        if engine.not_compiled() != Engine::Fast {
            return Ok(self.run_watched(launch, Watch::Nothing)?.outputs);
        }
        launch.environment = self.environment.clone();
        launch.check().map_err(RunError::Launch)?;
        match self.lowered(&launch, engine) {
            Some(fast) => {
                let run = || parallel::run(&fast, setup, &launch, options, false);
                Ok(CodeFault::caught(run)?.outputs)
            }
            None => Ok(self.on_reference(&launch, &mut Silent)?.outputs),
        }
    }

    /// Returns the lowered program for a launch, or `None` if the reference interpreter runs the launch.
    fn lowered(&self, launch: &Launch, engine: Engine) -> Option<Arc<Fast>> {
        let lower = || Fast::lowered(&self.setup, launch, &self.options, None, false);
        self.fast.of(&(launch.temps(), self.denormals), (engine, launch.groups()), lower, Fast::with_code)
    }

    /// Prepares a launch to run step by step from the first instruction. The launch runs in the environment of
    /// [`Loaded::new`].
    ///
    /// # Errors
    /// Returns an error if the launch is invalid.
    pub fn running(&self, mut launch: Launch) -> Result<Run, LaunchError> {
        launch.environment = self.environment.clone();
        launch.check()?;
        Ok(Run {
            loaded: self.clone(),
            fast: None,
            group: launch.group(&self.setup, &self.options, 0, Run::lanes_of(&launch, 0)),
            first_lane: 0,
            touched: false,
            done: launch.lanes == 0,
            totals: Totals::default(),
            ended: None,
            outputs: Arc::new(Outputs::new(launch.lanes, 0..OUTPUTS)),
            launch: Arc::new(launch),
        })
    }

    fn observed<O: Observer>(&self, mut launch: Launch, observer: &mut O) -> Result<Outcome, RunError> {
        let Loaded { setup, options, .. } = self;
        launch.environment = self.environment.clone();
        launch.check().map_err(RunError::Launch)?;
        // The condition is a compile-time constant. If the condition is false, the compiler does not instantiate the
        // fast engine for this type of observer.
        if O::DATA {
            return self.on_reference(&launch, observer);
        }
        // Compiled code does not emit events.
        let engine = if O::ENABLED { options.engine().not_compiled() } else { options.engine() };
        match (engine.not_compiled(), self.lowered(&launch, engine)) {
            (Engine::Fast, Some(fast)) => CodeFault::caught(|| match O::ENABLED || O::PATHS {
                true => parallel::run_in_order(&fast, setup, &launch, options, observer),
                false => parallel::run(&fast, setup, &launch, options, true),
            }),
            (Engine::Lockstep, Some(fast)) if !O::ENABLED => {
                CodeFault::caught(|| parallel::run_in_lockstep(&fast, setup, &launch, options, observer))
            }
            _ => self.on_reference(&launch, observer),
        }
    }

    /// Runs the groups of a launch one after another on the reference interpreter.
    fn on_reference<O: Observer>(&self, launch: &Launch, observer: &mut O) -> Result<Outcome, RunError> {
        let mut outputs = Outputs::new(launch.lanes, 0..OUTPUTS);
        let mut totals = Totals::default();
        for first_lane in (0..launch.lanes).step_by(launch.width()) {
            let lanes = Run::lanes_of(launch, first_lane);
            let mut group = launch.group(&self.setup, &self.options, first_lane, lanes);
            observer.group(first_lane / launch.width());
            group.run(observer).map_err(|trap| trapped(first_lane, trap))?;
            totals.add_group(&group, first_lane);
            outputs.put(&group, first_lane, lanes.count() as usize);
        }
        Ok(totals.with(outputs))
    }
}

/// Runs all lanes of a launch. See [`Loaded::run`].
///
/// # Errors
/// Returns the same errors as [`Loaded::run`].
pub fn run(setup: &Arc<Setup>, launch: &Launch, options: &Options) -> Result<Outcome, RunError> {
    run_watched(setup, launch, options, Watch::Nothing)
}

/// Loads a program and runs a launch of the program with an observer. See [`Loaded::run_watched`].
///
/// # Errors
/// Returns the same errors as [`Loaded::run`].
pub fn run_watched(
    setup: &Arc<Setup>,
    launch: &Launch,
    options: &Options,
    watch: Watch<'_>,
) -> Result<Outcome, RunError> {
    let loaded = Loaded::of(setup, &launch.environment, options).map_err(RunError::Launch)?;
    loaded.run_watched(launch.clone(), watch)
}

/// A launch that runs one instruction at a time, group by group. [`Run::advance`] runs many instructions at once. A
/// clone of this value is a snapshot. The reference interpreter executes single steps.
#[derive(Clone)]
pub struct Run {
    loaded: Loaded,
    launch: Arc<Launch>,
    /// The lowered program. `None` until [`Run::advance`] first runs on the fast engine.
    fast: Option<Arc<Fast>>,
    /// The running group and its first lane. After the launch has ended, this field holds the last group.
    group: Group,
    first_lane: usize,
    /// Whether a caller may have changed the running group. If this field is set, the next group does not reuse the
    /// memory of this group.
    touched: bool,
    done: bool,
    totals: Totals,
    /// The group that ended at the last step.
    ended: Option<Arc<Group>>,
    /// The outputs of the groups that have ended. Copies of a run share this field until one copy adds outputs.
    outputs: Arc<Outputs>,
}

impl Run {
    /// Prepares a launch to run from its first instruction.
    ///
    /// # Errors
    /// Returns an error if the launch is invalid.
    pub fn new(setup: &Arc<Setup>, launch: Launch, options: &Options) -> Result<Run, LaunchError> {
        Loaded::of(setup, &launch.environment, options)?.running(launch)
    }

    fn lanes_of(launch: &Launch, first_lane: usize) -> Mask {
        Mask::first(launch.width().min(launch.lanes - first_lane))
    }

    /// Returns the launch.
    pub fn launch(&self) -> &Launch {
        &self.launch
    }

    /// Returns the running group, or the last group after the launch has ended.
    pub fn group(&self) -> &Group {
        &self.group
    }

    /// Returns the running group, mutably, so that debuggers and fault injection can change the group.
    pub fn group_mut(&mut self) -> &mut Group {
        self.touched = true;
        &mut self.group
    }

    /// Returns the group that ended at the last step. If no group ended, the function returns `None`.
    pub fn take_ended(&mut self) -> Option<Arc<Group>> {
        self.ended.take()
    }

    /// Returns the first lane of the running group, or `None` after the launch has ended.
    pub fn first_lane(&self) -> Option<usize> {
        (!self.done).then_some(self.first_lane)
    }

    /// Returns the error for a trap of the running group. The error has the group's position in the launch.
    pub fn locate(&self, trap: Trap<Cause>) -> RunError {
        trapped(self.first_lane, trap)
    }

    /// Returns the counts so far.
    pub fn statistics(&self) -> Statistics {
        let mut statistics = self.totals.statistics;
        if !self.done {
            statistics.add(&self.group.statistics());
        }
        statistics
    }

    /// Returns the current results. The results are complete after a step has returned [`Step::Done`].
    pub fn outcome(&self) -> Outcome {
        self.totals.clone().with(Outputs::clone(&self.outputs))
    }

    stepping!(Cause, groups);

    fn observed_step<O: Observer>(&mut self, observer: &mut O) -> Result<Step, Trap<Cause>> {
        if self.done || self.group.step(observer)? == Step::Running {
            return Ok(if self.done { Step::Done } else { Step::Running });
        }
        self.ended = Some(Arc::new(self.group.clone()));
        Ok(self.next_group())
    }

    fn group_number(&self) -> usize {
        self.first_lane / self.launch.width()
    }

    fn advance_group<O: Observer>(
        &mut self,
        fast: &Fast,
        most: u64,
        observer: &mut O,
    ) -> Result<(), Trap<Cause>> {
        let mut runs = vec![0; fast.counts()];
        let ended = fast.run(&mut self.group, &mut runs, most, observer);
        fast.settle(&mut self.group, &mut runs, 1);
        ended?;
        if self.group.flow.issue().is_none() {
            self.next_group();
        }
        Ok(())
    }

    /// Returns the lowered program, or `None` if the options select the reference interpreter.
    fn lowered(&mut self) -> Option<Arc<Fast>> {
        let Run {
            loaded: Loaded { setup, options, denormals, fast: forms, .. }, launch, fast, group, ..
        } = self;
        if options.engine() == Engine::Reference {
            return None;
        }
        let made = fast.get_or_insert_with(|| {
            let lower = || Fast::lowered(setup, launch, options, None, false);
            let fast = forms.plain(&(launch.temps(), *denormals), lower);
            fast.prepare(group);
            fast
        });
        Some(made.clone())
    }

    /// Returns the range of the next instruction's words in the program. Returns `None` if the launch has ended, or if
    /// the slot is not loaded.
    pub fn next_words(&self) -> Option<Range<usize>> {
        let pc = self.group.flow.issue().filter(|_| !self.done)?.pc as u16;
        let place = self.loaded.setup.slots().position(|(slot, _)| slot == pc)?;
        Some(place * WORDS..(place + 1) * WORDS)
    }

    /// Replaces the program for the current group and all later groups. An instruction without a meaning traps when a
    /// group reaches the instruction. The issue counts include the instructions of the old program and of the new
    /// program.
    ///
    /// # Errors
    /// Returns an error if the words are not a program.
    pub fn set_program(&mut self, program: &Program) -> Result<(), SetupError> {
        let Loaded { environment, options, .. } = &self.loaded;
        let loaded = Loaded::of(&Arc::new(Setup::new(program)?), environment, options);
        self.loaded = loaded.expect("the environment fits");
        self.group.setup = self.loaded.setup.clone();
        self.group.rows.remove_room();
        (self.fast, self.touched) = (None, true);
        Ok(())
    }

    /// Adds the results of the current group and starts the next group. The current group must have ended.
    fn next_group(&mut self) -> Step {
        let lanes = Run::lanes_of(&self.launch, self.first_lane);
        self.totals.add_group(&self.group, self.first_lane);
        let outputs = Arc::make_mut(&mut self.outputs);
        outputs.put(&self.group, self.first_lane, lanes.count() as usize);
        let next = self.first_lane + self.launch.width();
        if next >= self.launch.lanes {
            self.done = true;
            return Step::Done;
        }
        self.first_lane = next;
        let lanes = Run::lanes_of(&self.launch, next);
        match &self.fast {
            Some(fast) if !self.touched => {
                let width = self.launch.width();
                self.launch.restart(&mut self.group, next, (lanes, width), fast.written(), |_| true, None);
                self.group.issued.fill(0);
            }
            fast => {
                self.group = self.launch.group(&self.loaded.setup, &self.loaded.options, next, lanes);
                fast.iter().for_each(|fast| fast.prepare(&mut self.group));
                self.touched = false;
            }
        }
        Step::Running
    }
}
