//! Runs a launch: group after group, in pieces, or observed.

use std::ops::Range;
use std::sync::Arc;

use reconverge_isa::Program;
use reconverge_simt::{
    CodeFault, Engine, FlowView, Machine, Mask, Observer, Options, Silent, Statistics, Step, Trap, Watch,
    watched,
};

use crate::cause::Cause;
use crate::fast::{Fast, parallel};
use crate::group::{Group, OUTPUTS};
use crate::inst::WORDS;
use crate::launch::{Input, Launch, LaunchError, RunError, trapped};
use crate::outputs::{Finding, Outcome, Outputs, Totals};
use crate::setup::{Setup, SetupError};

/// Runs every lane of a launch.
///
/// # Errors
/// A launch that does not fit, the first trap in the order of the groups, or a difference of the engines.
pub fn run(setup: &Arc<Setup>, launch: &Launch, options: &Options) -> Result<Outcome, RunError> {
    launch.check().map_err(RunError::Launch)?;
    CodeFault::caught(|| match options.engine().not_compiled() {
        Engine::Reference => observed(setup, launch, options, &mut Silent),
        Engine::Lockstep => parallel::run_in_lockstep(setup, launch, options, &mut Silent),
        _ => parallel::run(setup, launch, options),
    })
}

/// Runs a launch of any number of lanes in the memory that a piece of it needs.
///
/// `inputs` gives what the rasteriser wrote for a range of lanes, those of the next piece; `launch.inputs` is not looked
/// at. The piece is run as by [`run`], and `outcome` is handed what it left, with its range. A piece has `piece` lanes,
/// rounded up to whole groups, and at least one; the last has the rest. No group sees anything of another, so that
/// the pieces are together what one run would give.
///
/// # Errors
/// Those of [`run`], of the first piece that has one: lanes are counted from the first of the launch. Pieces before it
/// have been handed on.
///
/// ```
/// use std::sync::Arc;
///
/// use reconverge_r500::launch::{Input, Launch};
/// use reconverge_r500::run::run_in_pieces;
/// use reconverge_r500::setup::Setup;
/// use reconverge_r500::text::assemble;
/// use reconverge_simt::Options;
///
/// let source = "OUT out[A].r = MAX*off src0.rgb, src0.rgb : src0=temp[0]\n";
/// let setup = Arc::new(Setup::new(&assemble(source).unwrap().program).unwrap());
/// let launch = Launch { lanes: 1 << 12, ..Launch::default() };
/// let (mut sum, mut pieces) = (0.0, 0);
/// let totals = run_in_pieces(
///     &setup,
///     &launch,
///     &Options::default(),
///     1 << 10,
///     |lanes| {
///         let values = lanes.map(|lane| [(lane as f32).to_bits(), 0, 0, 0]).collect();
///         vec![Input { temp: 0, values }]
///     },
///     |_, outcome| {
///         sum += outcome.lanes().map(|lane| f32::from_bits(lane.color[0][0])).sum::<f32>();
///         pieces += 1;
///     },
/// );
/// assert_eq!((sum, pieces), (4095.0 * 2048.0, 4));
/// assert_eq!(totals.unwrap().statistics.lane_instructions, 1 << 12);
/// ```
pub fn run_in_pieces(
    setup: &Arc<Setup>,
    launch: &Launch,
    options: &Options,
    piece: usize,
    mut inputs: impl FnMut(Range<usize>) -> Vec<Input>,
    mut outcome: impl FnMut(Range<usize>, Outcome),
) -> Result<Totals, RunError> {
    launch.without_lanes().check().map_err(RunError::Launch)?;
    let piece = piece.clamp(1, launch.lanes.max(1)).next_multiple_of(launch.hardware.group_width);
    let mut totals = Totals::default();
    for start in (0..launch.lanes).step_by(piece) {
        let range = start..launch.lanes.min(start.saturating_add(piece));
        let launch = Launch { lanes: range.len(), inputs: inputs(range.clone()), ..launch.without_lanes() };
        let left = run(setup, &launch, options).map_err(|error| error.behind(start))?;
        let behind = |finding: Finding| Finding { first_lane: start + finding.first_lane, ..finding };
        totals.add(&Totals {
            statistics: left.statistics,
            report: left.report.clone(),
            finding: left.finding.map(behind),
        });
        outcome(range, left);
    }
    Ok(totals)
}

/// Runs a launch group after group, announcing every event. Data events come from the reference interpreter, whatever the
/// options say; flow events from either engine. Lockstep announces no event, but the paths of the fast engine.
///
/// # Errors
/// Those of [`run`].
pub fn run_observed<O: Observer>(
    setup: &Arc<Setup>,
    launch: &Launch,
    options: &Options,
    observer: &mut O,
) -> Result<Outcome, RunError> {
    run_watched(setup, launch, options, Watch::of(observer))
}

/// [`run_observed`] with an observer that is chosen at run time.
///
/// # Errors
/// Those of [`run`].
pub fn run_watched(
    setup: &Arc<Setup>,
    launch: &Launch,
    options: &Options,
    watch: Watch<'_>,
) -> Result<Outcome, RunError> {
    watched!(watch, |observer| observed(setup, launch, options, observer))
}

fn observed<O: Observer>(
    setup: &Arc<Setup>,
    launch: &Launch,
    options: &Options,
    observer: &mut O,
) -> Result<Outcome, RunError> {
    launch.check().map_err(RunError::Launch)?;
    // A condition on a constant alone, so that the engines are not compiled for observers that they do not serve.
    if O::DATA {
        return on_reference(setup, launch, options, observer);
    }
    match options.engine().not_compiled() {
        Engine::Fast => {
            // Passes tell an observer nothing.
            let engine = if O::ENABLED { Engine::Fast } else { options.engine() };
            let options = Options { engine, ..*options };
            CodeFault::caught(|| parallel::run_in_order(setup, launch, &options, observer))
        }
        Engine::Lockstep if !O::ENABLED => {
            CodeFault::caught(|| parallel::run_in_lockstep(setup, launch, options, observer))
        }
        _ => on_reference(setup, launch, options, observer),
    }
}

/// Runs a launch group after group on the reference interpreter.
fn on_reference<O: Observer>(
    setup: &Arc<Setup>,
    launch: &Launch,
    options: &Options,
    observer: &mut O,
) -> Result<Outcome, RunError> {
    let mut outputs = Outputs::new(launch.lanes, 0..OUTPUTS);
    let (mut totals, mut all) = (Totals::default(), outputs.all());
    for first_lane in (0..launch.lanes).step_by(launch.hardware.group_width) {
        let lanes = launch.hardware.group_width.min(launch.lanes - first_lane);
        let mut group = launch.group(setup, options, first_lane, Mask::first(lanes));
        observer.group(first_lane / launch.hardware.group_width);
        group.run(observer).map_err(|trap| trapped(first_lane, trap))?;
        totals.add_group(&group, first_lane);
        all.put(&group, first_lane, lanes);
    }
    Ok(totals.with(outputs))
}

/// A launch as a machine: one instruction a step, group after group, or many at once with [`Run::advance`]. A copy is a
/// snapshot. Steps are the reference interpreter's.
#[derive(Clone)]
pub struct Run {
    setup: Arc<Setup>,
    launch: Arc<Launch>,
    options: Options,
    /// The program lowered, from the first [`Run::advance`] on the fast engine on.
    fast: Option<Arc<Fast>>,
    /// The group that runs, and its first lane; the last one at the end.
    group: Group,
    first_lane: usize,
    /// Whether the group has been changed from outside, so that no other can be made of it.
    touched: bool,
    done: bool,
    totals: Totals,
    /// What the groups that have ended left. Shared between copies until one of them adds to it.
    outputs: Arc<Outputs>,
}

impl Run {
    /// The launch before its first instruction.
    ///
    /// # Errors
    /// A launch that does not fit.
    pub fn new(setup: &Arc<Setup>, launch: Launch, options: &Options) -> Result<Run, LaunchError> {
        launch.check()?;
        let group = launch.group(setup, options, 0, Run::lanes_of(&launch, 0));
        let outputs = Arc::new(Outputs::new(launch.lanes, 0..OUTPUTS));
        let (setup, done, launch) = (setup.clone(), launch.lanes == 0, Arc::new(launch));
        let totals = Totals::default();
        let (fast, touched) = (None, false);
        Ok(Run {
            setup,
            launch,
            options: *options,
            fast,
            group,
            first_lane: 0,
            touched,
            done,
            totals,
            outputs,
        })
    }

    fn lanes_of(launch: &Launch, first_lane: usize) -> Mask {
        Mask::first(launch.hardware.group_width.min(launch.lanes - first_lane))
    }

    /// The launch.
    pub fn launch(&self) -> &Launch {
        &self.launch
    }

    /// The group that runs; after the end, the last.
    pub fn group(&self) -> &Group {
        &self.group
    }

    /// The group that runs, for changing: a debugger's hand on registers, fault injection.
    pub fn group_mut(&mut self) -> &mut Group {
        self.touched = true;
        &mut self.group
    }

    /// The first lane of the group that runs; `None` after the end.
    pub fn first_lane(&self) -> Option<usize> {
        (!self.done).then_some(self.first_lane)
    }

    /// The trap with its place in the launch.
    pub fn locate(&self, trap: Trap<Cause>) -> RunError {
        trapped(self.first_lane, trap)
    }

    /// Counts so far.
    pub fn statistics(&self) -> Statistics {
        let mut statistics = self.totals.statistics;
        if !self.done {
            statistics.add(&self.group.statistics());
        }
        statistics
    }

    /// What is left; complete once a step has returned [`Step::Done`].
    pub fn outcome(&self) -> Outcome {
        self.totals.clone().with(Outputs::clone(&self.outputs))
    }

    /// Executes one instruction.
    ///
    /// # Errors
    /// The program trapped; the group stays at the instruction that did.
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
        if self.done || self.group.step(observer)? == Step::Running {
            return Ok(if self.done { Step::Done } else { Step::Running });
        }
        Ok(self.next_group())
    }

    /// Executes instructions on the engine of the options (the reference interpreter, or else the fast engine), at most
    /// `most`, fewer only at the end. The observer takes no data.
    ///
    /// # Errors
    /// The program trapped; the group stays at the instruction that did.
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
                observer.group(self.first_lane / self.launch.hardware.group_width);
            }
            match &fast {
                Some(fast) => {
                    let mut runs = vec![0; fast.blocks()];
                    let ended = fast.run(&mut self.group, &mut runs, left, observer);
                    fast.settle(&mut self.group, &mut runs);
                    ended?;
                    if self.group.issue().is_none() {
                        self.next_group();
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
        if self.options.engine() == Engine::Reference {
            return None;
        }
        let Run { setup, launch, options, fast, group, .. } = self;
        let made = fast.get_or_insert_with(|| {
            let options = Options { engine: Engine::Fast, ..*options };
            let fast = Arc::new(Fast::new(setup, launch, &options));
            fast.prepare(group);
            fast
        });
        Some(made.clone())
    }

    /// The words of the program that the next instruction has, by number; `None` at the end, and where no instruction was
    /// loaded.
    pub fn next_words(&self) -> Option<Range<usize>> {
        let pc = self.group.issue().filter(|_| !self.done)?.pc as u16;
        let place = self.setup.slots().position(|(slot, _)| slot == pc)?;
        Some(place * WORDS..(place + 1) * WORDS)
    }

    /// Replaces the program of the group that runs and of those behind it. Instructions without a meaning trap when they
    /// are reached. Counts by instruction are those of both programs.
    ///
    /// # Errors
    /// The words are no program.
    pub fn set_program(&mut self, program: &Program) -> Result<(), SetupError> {
        self.setup = Arc::new(Setup::new(program)?);
        self.group.setup = self.setup.clone();
        self.group.rows.remove_room();
        (self.fast, self.touched) = (None, true);
        Ok(())
    }

    /// The group has ended: adds what it left, and begins the next.
    fn next_group(&mut self) -> Step {
        let lanes = Run::lanes_of(&self.launch, self.first_lane);
        self.totals.add_group(&self.group, self.first_lane);
        let outputs = Arc::make_mut(&mut self.outputs);
        outputs.all().put(&self.group, self.first_lane, lanes.count() as usize);
        let next = self.first_lane + self.launch.hardware.group_width;
        if next >= self.launch.lanes {
            self.done = true;
            return Step::Done;
        }
        self.first_lane = next;
        let lanes = Run::lanes_of(&self.launch, next);
        match &self.fast {
            Some(fast) if !self.touched => {
                self.launch.restart(&mut self.group, next, lanes, fast.written());
                self.group.issued.fill(0);
            }
            fast => {
                self.group = self.launch.group(&self.setup, &self.options, next, lanes);
                fast.iter().for_each(|fast| fast.prepare(&mut self.group));
                self.touched = false;
            }
        }
        Step::Running
    }
}
