//! A launch that is ready: run it to its end on any engine, or inspect and step it.
//!
//! A launch is divided into *groups*, the lanes that share a program counter: R500's threads, R700's wavefronts, the
//! warps of Tesla's blocks. Groups run in a fixed order, which defines the results. On R500 and R700, they run one
//! after another. On Tesla, blocks run one after another, and the warps of a block alternate as
//! `reconverge_tesla::block` defines. Stepping a group keeps this order: the groups before it in the order run first.
//! So any sequence of steps that reaches the end leaves the results of [`Session::run`].
//!
//! Only the groups that run are in memory (one group, or one block of warps on Tesla), however many lanes the launch
//! has. The last states of the groups that ended last are kept: their registers, memory and flow state can be read,
//! but not changed.

use std::any::Any;
use std::collections::VecDeque;
use std::ops::{Deref, DerefMut, Range};
use std::sync::Arc;

use reconverge_isa::Program;
use reconverge_simt::fidelity::Report;
use reconverge_simt::{
    CodeFault, Depth, Event, FlowView, Issue, Lane, Observer as _, Options, Shares, StackRow, Statistics,
    Step, Watch, Why, watch,
};
use serde::Serialize;

use crate::array::Array;
use crate::error::Error;
use crate::faults::{Kind, Word};
use crate::trace::{self, Recorded, Sink};

/// The results of a run. Arrays are created on request.
pub trait Outcome: Send {
    /// Returns the counts, as the machine's documentation defines them.
    fn statistics(&self) -> Statistics;

    /// Returns a report of the executed instructions and of how exact they were.
    fn report(&self) -> &Report;

    /// Returns the fast engine's instructions by path, after a run in lockstep.
    fn shares(&self) -> Shares {
        Shares::default()
    }

    /// Returns the strict-mode finding about how the program ended, if its results are right but its end is not.
    fn finding(&self) -> Option<String> {
        None
    }

    /// Returns the outputs by name.
    fn outputs(&self) -> Vec<(String, Array)>;

    /// Returns, for each lane, the components of an output that it wrote (bit 0 is x), if the machine records them.
    fn written(&self, _output: &str) -> Option<&[u8]> {
        None
    }
}

/// A launch of one machine that is ready to run. [`Session`] wraps it.
pub trait Ready: Any + Send + Sync {
    /// Returns a copy.
    fn copy(&self) -> Box<dyn Ready>;

    /// Runs the launch to its end. If the observer takes events, the run is in order on one thread.
    ///
    /// # Errors
    /// Returns [`Error::Trap`] if the program traps and [`Error::Differ`] if an engine has a defect. Other errors
    /// concern the launch.
    fn run(self: Box<Self>, options: &Options, watch: Watch<'_>) -> Result<Box<dyn Outcome>, Error>;

    /// Returns the launch before its first instruction.
    ///
    /// # Errors
    /// Returns an error if the launch does not fit the machine or cannot be stepped.
    fn start(&self, options: &Options) -> Result<Box<dyn Steps>, Error>;

    /// Returns a launch of some of its lanes alone, which keep their numbers. Returns `None` if launches of the
    /// machine do not have independent lanes, or if `lanes` cannot run alone.
    fn piece(&self, _lanes: Range<usize>) -> Option<Box<dyn Ready>> {
        None
    }
}

/// Registers, memory and flow state of the groups that run, and their last state of those that ended last.
pub trait Inspect {
    /// Returns the machine's registers.
    fn registers(&self) -> Vec<RegisterClass>;

    /// Returns the name of a register by its number in [`Event::Write`].
    fn register_name(&self, number: u32) -> String {
        register_name(&self.registers(), number)
    }

    /// Returns a register of a group that runs or has ended, by lane. Returns `None` for an unknown register,
    /// before the group begins, and after its last state was discarded.
    fn read(&self, group: usize, register: Register) -> Option<Vec<u32>>;

    /// Returns the machine's memory spaces.
    fn spaces(&self) -> Vec<Space> {
        Vec::new()
    }

    /// Returns up to `count` bytes of a space from `address`, fewer if the space ends before. `group` and `lane`
    /// select the memory of a space that each group or lane has.
    fn memory(&self, _space: &str, _group: usize, _lane: Lane, _address: u32, _count: usize) -> Vec<u8> {
        Vec::new()
    }

    /// Changes a register of one lane of a group that runs. Returns `false` if the register does not exist or is
    /// derived from others.
    fn set(&mut self, group: usize, register: Register, lane: Lane, value: u32) -> bool;

    /// Changes bytes of a space from `address`. Returns `false`, without a change, if one of the bytes does not exist
    /// or is read-only.
    fn store(&mut self, _space: &str, _group: usize, _lane: Lane, _address: u32, _bytes: &[u8]) -> bool {
        false
    }

    /// Returns the accessible parts of a space with their names, if the machine has this information. `group` and
    /// `lane` select the memory of a space that each group or lane has.
    fn buffers(&self, _space: &str, _group: usize, _lane: Lane) -> Vec<(String, Range<u64>)> {
        Vec::new()
    }

    /// Returns the current flow state words of a kind, for the group that runs next.
    fn words(&self, _kind: Kind) -> Vec<Word> {
        Vec::new()
    }

    /// Returns the value of a word.
    fn word(&self, _word: &Word) -> u64 {
        0
    }

    /// Changes the value of a word. Bits that the word does not have are ignored.
    fn set_word(&mut self, _word: &Word, _value: u64) {}
}

/// A launch of one machine while it is stepped in its fixed order. By default, one group runs after another.
pub trait Steps: Inspect + Send + Sync {
    /// Returns a copy, which serves as a snapshot. The copies share unchanged state.
    fn copy(&self) -> Box<dyn Steps>;

    /// Returns the number of lanes of the launch, and of a group.
    fn shape(&self) -> (usize, usize);

    /// Returns the number of groups of the launch.
    fn groups(&self) -> usize {
        let (lanes, width) = self.shape();
        lanes.div_ceil(width)
    }

    /// Returns the number of groups of a block, if groups are parts of blocks.
    fn groups_per_block(&self) -> Option<usize> {
        None
    }

    /// Returns the group of the next instruction, or `None` at the end.
    fn current(&self) -> Option<usize>;

    /// Returns the groups that are in memory. The groups before them have ended, and the groups after them wait.
    fn running(&self) -> Range<usize> {
        self.current().map_or(self.groups()..self.groups(), |group| group..group + 1)
    }

    /// Returns the flow state of a group that runs, or the last flow state of a group that has ended, if it is kept.
    fn view(&self, group: usize) -> Option<&dyn FlowView>;

    /// Returns the lanes of the launch that belong to a group.
    fn lanes(&self, group: usize) -> Range<usize> {
        let (lanes, width) = self.shape();
        group * width..lanes.min((group + 1) * width)
    }

    /// Executes the next instruction.
    ///
    /// # Errors
    /// Returns an error if the program traps. The instruction that trapped remains the next one.
    fn step(&mut self, observer: &mut dyn FnMut(Event)) -> Result<(), Error>;

    /// Executes up to `most` instructions, or fewer if the launch ends. Uses the engine of the options if the machine
    /// supports it here, otherwise steps one instruction at a time.
    ///
    /// # Errors
    /// Returns an error if the program traps. The instruction that trapped remains the next one.
    fn advance(&mut self, most: u64, watch: Watch<'_>) -> Result<(), Error> {
        let end = self.statistics().instructions.saturating_add(most);
        // A step emits all events.
        let takes_data = matches!(watch, Watch::Data(_));
        let mut told = watch.flow();
        while self.statistics().instructions < end
            && let Some(group) = self.current()
        {
            match &mut told {
                None => self.step(&mut |_| ())?,
                Some(told) => {
                    told.group(group);
                    self.step(&mut |event| match event {
                        Event::Write { .. } | Event::Load { .. } | Event::Store { .. } if !takes_data => {}
                        other => told.event(other),
                    })?;
                }
            }
        }
        Ok(())
    }

    /// Returns the indices of the program words of the next instruction, if the program can be replaced now.
    fn next_words(&self) -> Option<Vec<usize>> {
        None
    }

    /// Replaces the program from the next instruction on. The new program has the same number of words. Returns
    /// `false` if the program cannot be replaced.
    fn set_program(&mut self, _program: &Program) -> bool {
        false
    }

    /// Returns `true` only if no group depends on the effects of the groups before it.
    fn is_independent(&self) -> bool {
        false
    }

    /// Returns the counts so far.
    fn statistics(&self) -> Statistics;

    /// Returns the results so far. They are complete at the end.
    fn outcome(&self) -> Box<dyn Outcome>;
}

/// Maximum number of groups whose last state is kept.
const MOST_ENDED: usize = 256;

/// The last states of the groups (Tesla: blocks) that ended last, by number. Copies share them.
#[derive(Clone)]
pub(crate) struct EndedGroups<T>(Arc<VecDeque<(usize, Arc<T>)>>);

impl<T> Default for EndedGroups<T> {
    fn default() -> EndedGroups<T> {
        EndedGroups(Arc::default())
    }
}

impl<T> EndedGroups<T> {
    /// Adds a group that has ended. If more than [`MOST_ENDED`] groups are kept, drops the oldest one.
    pub(crate) fn keep(&mut self, number: usize, state: Arc<T>) {
        let kept = Arc::make_mut(&mut self.0);
        if kept.len() == MOST_ENDED {
            kept.pop_front();
        }
        kept.push_back((number, state));
    }

    /// Returns the last state of a group, if it is kept.
    pub(crate) fn of(&self, number: usize) -> Option<&T> {
        self.0.iter().find(|(kept, _)| *kept == number).map(|(_, state)| &**state)
    }
}

/// Runs a launch one instruction at a time and emits the recorded events.
pub(crate) fn stepped(
    ready: &dyn Ready,
    options: &Options,
    recorded: Recorded,
    listener: &mut dyn watch::Listener,
) -> Result<Box<dyn Outcome>, Error> {
    let mut steps = ready.start(options)?;
    while let Some(group) = steps.current() {
        listener.group(group);
        steps.step(&mut |event| match event {
            Event::Write { .. } | Event::Load { .. } | Event::Store { .. } if recorded == Recorded::Flow => {}
            other => listener.event(other),
        })?;
        if listener.wants_depths()
            && let Some(view) = steps.view(group)
        {
            for (number, depth) in view.depths().into_iter().enumerate() {
                listener.depth(number, depth.used);
            }
        }
    }
    Ok(steps.outcome())
}

/// The result of a run in lockstep.
struct Compared {
    outcome: Box<dyn Outcome>,
    shares: Shares,
}

impl Outcome for Compared {
    fn statistics(&self) -> Statistics {
        self.outcome.statistics()
    }

    fn report(&self) -> &Report {
        self.outcome.report()
    }

    fn shares(&self) -> Shares {
        self.shares
    }

    fn finding(&self) -> Option<String> {
        self.outcome.finding()
    }

    fn outputs(&self) -> Vec<(String, Array)> {
        self.outcome.outputs()
    }

    fn written(&self, output: &str) -> Option<&[u8]> {
        self.outcome.written(output)
    }
}

/// Replaces bytes from `address`. Returns `false`, without a change, if one of the bytes does not exist.
pub(crate) fn replace(into: &mut [u8], address: u32, bytes: &[u8]) -> bool {
    let start = address as usize;
    let place = start.checked_add(bytes.len()).and_then(|end| into.get_mut(start..end));
    place.map(|place| place.copy_from_slice(bytes)).is_some()
}

/// A class of registers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct RegisterClass {
    /// The manual's name: `temp`, `R`, `$r`.
    pub name: &'static str,
    /// Number of registers.
    pub count: usize,
    /// Names of the channels of a register; empty for registers of one word.
    pub channels: &'static str,
    /// Number of the first register, or of its first channel, in [`Event::Write`]. Each channel has its own number.
    pub first: u32,
}

impl RegisterClass {
    /// Returns the name of a register by its number in [`Event::Write`], with its channel if it has channels: `$r3`,
    /// `R1.x`, `temp0.r`. Returns `None` if the class does not have the number.
    pub fn register_name(&self, number: u32) -> Option<String> {
        let width = self.channels.len().max(1);
        let place = usize::try_from(number.checked_sub(self.first)?).ok()?;
        let (register, channel) = (place / width, place % width);
        let channel =
            self.channels.get(channel..=channel).map_or(String::new(), |channel| format!(".{channel}"));
        (register < self.count).then(|| format!("{}{register}{channel}", self.name))
    }
}

/// Returns the name of a register by its number in [`Event::Write`], or `register N` if no class has the number.
pub fn register_name(classes: &[RegisterClass], number: u32) -> String {
    let name = classes.iter().find_map(|class| class.register_name(number));
    name.unwrap_or_else(|| format!("register {number}"))
}

/// A register, or one channel of a register.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Register {
    /// Name of the class.
    pub class: &'static str,
    /// Number of the register in the class.
    pub number: usize,
    /// Index of the channel; 0 for registers of one word.
    pub channel: usize,
}

/// A memory space.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Space {
    /// The manual's name.
    pub name: &'static str,
    /// The owner of one instance of this space.
    pub of: SpaceOf,
}

/// The owner of one instance of a memory space.
///
/// Exhaustive: a launch consists of groups, and a group of lanes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SpaceOf {
    /// The launch.
    Launch,
    /// The group (Tesla: the block).
    Group,
    /// The lane.
    Lane,
}

/// The progress of a group.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum GroupState {
    /// The group has not executed an instruction.
    Waiting,
    /// The group runs, or waits for another group that runs.
    Running,
    /// The group has ended.
    Ended,
}

/// The distance that [`Stepping::step`] covers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stride {
    /// One instruction of the group.
    Instruction,
    /// Instructions of the group until this lane is active in the next one; at least one instruction.
    Lane(Lane),
}

/// The reason why [`Stepping::run_until`] stopped.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stop {
    /// The predicate holds.
    Predicate,
    /// The budget is used up.
    Budget,
    /// The launch has ended.
    End,
}

/// A saved state of a launch.
pub struct Snapshot(Box<dyn Steps>);

/// A launch that is ready.
pub struct Session(Box<dyn Ready>);

impl Session {
    /// Creates a session from a launch of a machine.
    pub fn new(ready: impl Ready) -> Session {
        Session(Box::new(ready))
    }

    /// Returns another session of this launch.
    pub fn copy(&self) -> Session {
        Session(self.0.copy())
    }

    /// Returns a launch of some of its lanes alone, which keep their numbers. Returns `None` if launches of the
    /// machine do not have independent lanes, or if `lanes` cannot run alone.
    pub fn piece(&self, lanes: Range<usize>) -> Option<Session> {
        Some(Session(self.0.piece(lanes)?))
    }

    /// Returns the machine's own launch.
    pub fn into_ready(self) -> Box<dyn Ready> {
        self.0
    }

    /// Runs the launch to its end.
    ///
    /// # Errors
    /// Returns [`Error::Trap`] if the program traps and [`Error::Differ`] if an engine has a defect. Other errors
    /// concern the launch.
    pub fn run(self, options: &Options) -> Result<Box<dyn Outcome>, Error> {
        if !options.engine.is_lockstep() {
            return self.0.run(options, Watch::Nothing);
        }
        let mut shares = Shares::default();
        let outcome = self.0.run(options, Watch::of(&mut shares))?;
        Ok(Box::new(Compared { outcome, shares }))
    }

    /// Runs the launch to its end, in order on one thread, and passes the events to a sink.
    ///
    /// # Errors
    /// Returns the errors of [`Session::run`].
    pub fn run_traced(
        self,
        options: &Options,
        recorded: Recorded,
        sink: &mut dyn Sink,
    ) -> Result<Box<dyn Outcome>, Error> {
        trace::recording(recorded, sink, |watch| self.0.run(options, watch))
    }

    /// Returns the launch before its first instruction, to inspect and step it.
    ///
    /// # Errors
    /// Returns an error if the launch does not fit the machine or cannot be stepped.
    pub fn start(&self, options: &Options) -> Result<Stepping, Error> {
        Ok(Stepping(self.0.start(options)?))
    }
}

/// A launch while it is stepped: all methods of [`Steps`], and movements.
pub struct Stepping(Box<dyn Steps>);

impl Deref for Stepping {
    type Target = dyn Steps;

    fn deref(&self) -> &Self::Target {
        &*self.0
    }
}

impl DerefMut for Stepping {
    fn deref_mut(&mut self) -> &mut Self::Target {
        &mut *self.0
    }
}

impl Stepping {
    /// Returns the progress of a group.
    pub fn state(&self, group: usize) -> GroupState {
        let running = self.0.running();
        match self.0.view(group) {
            _ if group < running.start => GroupState::Ended,
            _ if group >= running.end => GroupState::Waiting,
            Some(view) if view.issue().is_some() => GroupState::Running,
            _ => GroupState::Ended,
        }
    }

    /// Returns the next instruction of a group that runs, and its lanes.
    pub fn issue(&self, group: usize) -> Option<Issue> {
        self.view(group)?.issue()
    }

    /// Returns why a lane of a group that runs is active or inactive in the group's next instruction.
    pub fn why(&self, group: usize, lane: Lane) -> Option<Why> {
        Some(self.view(group)?.why(lane))
    }

    /// Returns the stack rows of a group that runs or has ended, innermost first.
    pub fn stack(&self, group: usize) -> Vec<StackRow> {
        self.view(group).map(FlowView::stack).unwrap_or_default()
    }

    /// Returns the depths of the stacks and counters of a group that runs.
    pub fn depths(&self, group: usize) -> Vec<Depth> {
        self.view(group).map(FlowView::depths).unwrap_or_default()
    }

    /// Executes up to `most` instructions, or fewer if the launch ends. Uses the engine of the options if the machine
    /// supports it here, otherwise steps one instruction at a time.
    ///
    /// # Errors
    /// Returns an error if the program traps. The instruction that trapped remains the next one. After
    /// [`Error::Fault`], the values of registers and memory are arbitrary.
    pub fn advance(&mut self, most: u64, watch: Watch<'_>) -> Result<(), Error> {
        CodeFault::caught(|| self.0.advance(most, watch))
    }

    /// Steps a group. The groups before it in the order run first, as far as necessary. `observer` receives the events
    /// with their groups.
    ///
    /// # Errors
    /// Returns an error if the program traps. The instruction that trapped remains the next one.
    pub fn step(
        &mut self,
        group: usize,
        stride: Stride,
        observer: &mut dyn FnMut(usize, Event),
    ) -> Result<Step, Error> {
        loop {
            // A change may have left the next group without active lanes. The step then ends the group.
            let more = |current: &usize| *current == group || self.state(group) != GroupState::Ended;
            let Some(current) = self.current().filter(more) else { return Ok(Step::Done) };
            self.0.step(&mut |event| observer(current, event))?;
            if current != group {
                continue;
            }
            let issue = self.issue(group).filter(|_| self.state(group) == GroupState::Running);
            match (issue, stride) {
                (None, _) => return Ok(Step::Done),
                (Some(_), Stride::Instruction) => return Ok(Step::Running),
                (Some(issue), Stride::Lane(lane)) if issue.mask.has(lane) => return Ok(Step::Running),
                (Some(_), Stride::Lane(_)) => {}
            }
        }
    }

    /// Executes up to `budget` instructions in the fixed order, until `predicate` holds before one of them other than
    /// the first. `predicate` receives the launch and the group that runs next.
    ///
    /// # Errors
    /// Returns an error if the program traps. The instruction that trapped remains the next one.
    pub fn run_until(
        &mut self,
        budget: u64,
        predicate: &mut dyn FnMut(&Stepping, usize) -> bool,
        observer: &mut dyn FnMut(usize, Event),
    ) -> Result<Stop, Error> {
        for executed in 0..=budget {
            let Some(current) = self.current() else { return Ok(Stop::End) };
            if executed > 0 && predicate(self, current) {
                return Ok(Stop::Predicate);
            }
            if executed < budget {
                self.0.step(&mut |event| observer(current, event))?;
            }
        }
        Ok(Stop::Budget)
    }

    /// Returns a copy.
    pub fn copy(&self) -> Stepping {
        Stepping(self.0.copy())
    }

    /// Returns the current state of the launch.
    pub fn snapshot(&self) -> Snapshot {
        Snapshot(self.0.copy())
    }

    /// Restores a state of this launch, earlier or later.
    pub fn restore(&mut self, snapshot: &Snapshot) {
        self.0 = snapshot.0.copy();
    }
}
