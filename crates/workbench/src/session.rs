//! Sessions. A session is a launch that can run to the end on any engine. A session can also be inspected and executed
//! step by step.
//!
//! A launch is divided into *groups*. A group consists of the lanes that share a program counter. A group is a thread
//! on R500, a wavefront on R700, and a warp on Tesla. Groups run in a fixed order, and this order determines the
//! results. On R500 and R700, the groups run one after another. On Tesla, blocks run one after another.
//! `reconverge_tesla::block` defines how the warps of a block alternate. If a caller steps a group, the session first
//! runs all groups that precede this group in the order. So steps do not change the order. Any sequence of steps to the
//! end has the same results as [`Session::run`].
//!
//! A launch that is executed step by step keeps the state of the running groups. The running groups are a single group,
//! or the warps of one block on Tesla. The launch also keeps the final states of a limited number of groups that ended
//! most recently. Callers can read the registers, memory and flow state of ended groups, but cannot change ended
//! groups.

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

/// The results of a run. Arrays are created only when a caller requests the arrays.
pub trait Outcome: Send {
    /// Returns the counts that the machine's documentation defines.
    fn statistics(&self) -> Statistics;

    /// Returns a report of the executed instructions and their exactness.
    fn report(&self) -> &Report;

    /// For each execution path of the fast engine, returns the number of instructions that ran on this path. The
    /// numbers are present only after a run in lockstep.
    fn shares(&self) -> Shares {
        Shares::default()
    }

    /// Returns the problem that strict mode finds in the state at the program's end. Returns `None` if strict mode does
    /// not find a problem. The results are valid even if strict mode finds a problem.
    fn finding(&self) -> Option<String> {
        None
    }

    /// Returns the outputs with their names.
    fn outputs(&self) -> Vec<(String, Array)>;

    /// Returns a mask for each lane. The mask states which components of an output the lane wrote. Bit 0 is x. Returns
    /// `None` if the machine does not record the written components.
    fn written(&self, _output: &str) -> Option<&[u8]> {
        None
    }
}

/// A launch of one machine that is ready to run. [`Session`] wraps this launch.
pub trait Ready: Any + Send + Sync {
    /// Returns a copy of the launch.
    fn copy(&self) -> Box<dyn Ready>;

    /// Runs the launch to its end. If `watch` receives events, the groups run one after another on one thread.
    ///
    /// # Errors
    /// Returns [`Error::Trap`] if the program traps, and [`Error::Differ`] if the engines differ. All other errors are
    /// about the launch.
    fn run(self: Box<Self>, options: &Options, watch: Watch<'_>) -> Result<Box<dyn Outcome>, Error>;

    /// Returns the launch in the state before the first instruction.
    ///
    /// # Errors
    /// Returns an error if the launch is not valid for the machine or cannot be stepped.
    fn start(&self, options: &Options) -> Result<Box<dyn Steps>, Error>;

    /// Returns a launch that has only the lanes in `lanes`. Each of these lanes must compute the results that the lane
    /// computes in the whole launch. Returns `None` if the lanes of a launch depend on each other on this machine, or
    /// if `lanes` cannot run without other lanes.
    fn piece(&self, _lanes: Range<usize>) -> Option<Box<dyn Ready>> {
        None
    }
}

/// Access to the registers, memory and flow state of running groups. Callers can also read the final states of groups
/// that ended recently.
pub trait Inspect {
    /// Returns the register classes of the machine.
    fn registers(&self) -> Vec<RegisterClass>;

    /// Returns the name of the register that has this number in [`Event::Write`].
    fn register_name(&self, number: u32) -> String {
        register_name(&self.registers(), number)
    }

    /// Returns the value of a register in each lane of a group. The group must be running or have ended. Returns `None`
    /// for an unknown register and for a group that has not started. Also returns `None` for an ended group if its
    /// state was discarded.
    fn read(&self, group: usize, register: Register) -> Option<Vec<u32>>;

    /// Returns the machine's memory spaces.
    fn spaces(&self) -> Vec<Space> {
        Vec::new()
    }

    /// Returns up to `count` bytes of a memory space, starting at `address`. The result is shorter if the space ends
    /// earlier. If each group or lane has a separate memory, `group` and `lane` select the memory.
    fn memory(&self, _space: &str, _group: usize, _lane: Lane, _address: u32, _count: usize) -> Vec<u8> {
        Vec::new()
    }

    /// Sets a register of one lane of a running group. Returns `false` if the register does not exist or cannot be
    /// changed.
    fn set(&mut self, group: usize, register: Register, lane: Lane, value: u32) -> bool;

    /// Writes bytes to a memory space, starting at `address`. If one of the addressed bytes does not exist or is
    /// read-only, the method returns `false` and writes nothing.
    fn store(&mut self, _space: &str, _group: usize, _lane: Lane, _address: u32, _bytes: &[u8]) -> bool {
        false
    }

    /// Returns the accessible parts of a memory space with their names and address ranges, if the parts are known. If
    /// each group or lane has a separate memory, `group` and `lane` select the memory.
    fn buffers(&self, _space: &str, _group: usize, _lane: Lane) -> Vec<(String, Range<u64>)> {
        Vec::new()
    }

    /// Returns the words of flow state of one kind. The words belong to the group that runs next.
    fn words(&self, _kind: Kind) -> Vec<Word> {
        Vec::new()
    }

    /// Returns the value of a flow state word.
    fn word(&self, _word: &Word) -> u64 {
        0
    }

    /// Sets the value of a flow state word. The method ignores bits of the value that the word does not have.
    fn set_word(&mut self, _word: &Word, _value: u64) {}
}

/// A launch of one machine that is executed step by step. The default methods assume that groups run one after another.
pub trait Steps: Inspect + Send + Sync {
    /// Returns a copy of the launch. The copy can serve as a snapshot. The copy and the original share the parts of the
    /// state that do not change.
    fn copy(&self) -> Box<dyn Steps>;

    /// Returns the number of lanes of the launch, and the number of lanes of a group.
    fn shape(&self) -> (usize, usize);

    /// Returns the number of groups of the launch.
    fn groups(&self) -> usize {
        let (lanes, width) = self.shape();
        lanes.div_ceil(width)
    }

    /// Returns the number of groups per block, if the machine has blocks.
    fn groups_per_block(&self) -> Option<usize> {
        None
    }

    /// Returns the group that executes the next instruction, or `None` if the launch has ended.
    fn current(&self) -> Option<usize>;

    /// Returns the running groups. All groups with lower numbers have ended, and all groups with higher numbers wait.
    fn running(&self) -> Range<usize> {
        self.current().map_or(self.groups()..self.groups(), |group| group..group + 1)
    }

    /// Returns the flow state of a running group. If the group ended recently, returns the group's final flow state.
    fn view(&self, group: usize) -> Option<&dyn FlowView>;

    /// Returns the numbers that a group's lanes have in the launch.
    fn lanes(&self, group: usize) -> Range<usize> {
        let (lanes, width) = self.shape();
        group * width..lanes.min((group + 1) * width)
    }

    /// Executes the next instruction of the launch.
    ///
    /// # Errors
    /// Returns an error if the program traps. After this error, the launch is in the state before the trapping
    /// instruction.
    fn step(&mut self, observer: &mut dyn FnMut(Event)) -> Result<(), Error>;

    /// Executes up to `most` instructions, or fewer if the launch ends. If the engine that the options state can
    /// continue a launch, the method uses this engine. Otherwise, the method steps one instruction at a time.
    ///
    /// # Errors
    /// Returns an error if the program traps. After this error, the launch is in the state before the trapping
    /// instruction.
    fn advance(&mut self, most: u64, watch: Watch<'_>) -> Result<(), Error> {
        let end = self.statistics().instructions.saturating_add(most);
        // A step emits events of all kinds. This method passes only the events that `watch` accepts.
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

    /// Returns the positions of the next instruction's words. A position is an index of `Program::words`. Returns
    /// `None` if [`Steps::set_program`] cannot exchange the program at present.
    fn next_words(&self) -> Option<Vec<usize>> {
        None
    }

    /// Exchanges the program. The next instruction that the launch executes is an instruction of the new program. The
    /// new program and the old program must have equal numbers of words. Returns `false` if the program cannot be
    /// exchanged.
    fn set_program(&mut self, _program: &Program) -> bool {
        false
    }

    /// Returns `true` if groups certainly do not depend on the effects of earlier groups.
    fn is_independent(&self) -> bool {
        false
    }

    /// Returns the counts of the instructions executed so far.
    fn statistics(&self) -> Statistics;

    /// Returns the results so far. The results are complete when the launch has ended.
    fn outcome(&self) -> Box<dyn Outcome>;
}

/// Maximum number of ended groups whose final states are stored.
const MOST_ENDED: usize = 256;

/// The final states of the groups that ended most recently, with the numbers of the groups. On Tesla, an entry is the
/// state of a block. Copies of this value share the states.
#[derive(Clone)]
pub(crate) struct EndedGroups<T>(Arc<VecDeque<(usize, Arc<T>)>>);

impl<T> Default for EndedGroups<T> {
    fn default() -> EndedGroups<T> {
        EndedGroups(Arc::default())
    }
}

impl<T> EndedGroups<T> {
    /// Adds the final state of a group. If [`MOST_ENDED`] states are already stored, drops the oldest state.
    pub(crate) fn keep(&mut self, number: usize, state: Arc<T>) {
        let kept = Arc::make_mut(&mut self.0);
        if kept.len() == MOST_ENDED {
            kept.pop_front();
        }
        kept.push_back((number, state));
    }

    /// Returns the final state of a group, if this state is still stored.
    pub(crate) fn of(&self, number: usize) -> Option<&T> {
        self.0.iter().find(|(kept, _)| *kept == number).map(|(_, state)| &**state)
    }
}

/// Runs a launch one instruction at a time. Passes the events that `recorded` selects to `listener`.
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

/// Replaces bytes, starting at `address`. If one of the bytes does not exist, returns `false` and changes nothing.
pub(crate) fn replace(into: &mut [u8], address: u32, bytes: &[u8]) -> bool {
    let start = address as usize;
    let place = start.checked_add(bytes.len()).and_then(|end| into.get_mut(start..end));
    place.map(|place| place.copy_from_slice(bytes)).is_some()
}

/// A class of registers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct RegisterClass {
    /// The manual's name for the class: `temp`, `R`, `$r`.
    pub name: &'static str,
    /// Number of registers in the class.
    pub count: usize,
    /// Names of the channels. The text is empty if a register is a single word.
    pub channels: &'static str,
    /// The number that [`Event::Write`] uses for the first register of the class. If registers have channels, each
    /// channel has a number, and `first` is the number of the first channel.
    pub first: u32,
}

impl RegisterClass {
    /// Returns the name of the register or channel that has this number in [`Event::Write`]. Examples of names are
    /// `$r3`, `R1.x` and `temp0.r`. Returns `None` if the number belongs to another class.
    pub fn register_name(&self, number: u32) -> Option<String> {
        let width = self.channels.len().max(1);
        let place = usize::try_from(number.checked_sub(self.first)?).ok()?;
        let (register, channel) = (place / width, place % width);
        let channel =
            self.channels.get(channel..=channel).map_or(String::new(), |channel| format!(".{channel}"));
        (register < self.count).then(|| format!("{}{register}{channel}", self.name))
    }
}

/// Returns the name of the register that has this number in [`Event::Write`]. Returns `register N` if the number
/// belongs to no class.
pub fn register_name(classes: &[RegisterClass], number: u32) -> String {
    let name = classes.iter().find_map(|class| class.register_name(number));
    name.unwrap_or_else(|| format!("register {number}"))
}

/// A register, or one channel of a register.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Register {
    /// Name of the register class.
    pub class: &'static str,
    /// Number of the register in the class.
    pub number: usize,
    /// Index of the channel. The index is 0 if a register is a single word.
    pub channel: usize,
}

/// A memory space.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Space {
    /// The manual's name for the memory space.
    pub name: &'static str,
    /// Whether the memory belongs to the launch, to a group or to a lane.
    pub of: SpaceOf,
}

/// The unit that owns an instance of a memory space.
///
/// This enum is exhaustive. No other unit can own memory, because a launch consists only of groups, and a group
/// consists only of lanes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SpaceOf {
    /// The launch has one memory. All lanes share this memory.
    Launch,
    /// Each group has a separate memory. As an exception, all warps of a Tesla block share one memory.
    Group,
    /// Each lane has a separate memory.
    Lane,
}

/// The progress of a group.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum GroupState {
    /// The group has not started. Earlier groups must end first.
    Waiting,
    /// The group has started. On Tesla, a warp of the current block has this state until the warp ends, even if the
    /// warp has not executed an instruction.
    Running,
    /// The group has ended.
    Ended,
}

/// The extent to which [`Stepping::step`] executes a group.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stride {
    /// One instruction.
    Instruction,
    /// The group executes at least one instruction. If this lane is inactive in the next instruction, the step
    /// continues until an instruction for which this lane is active.
    Lane(Lane),
}

/// The reason why [`Stepping::run_until`] stopped.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stop {
    /// The predicate returned `true`.
    Predicate,
    /// The maximum number of instructions was executed.
    Budget,
    /// The launch has ended.
    End,
}

/// A saved state of a launch.
pub struct Snapshot(Box<dyn Steps>);

/// A launch that is ready to run.
pub struct Session(Box<dyn Ready>);

impl Session {
    /// Creates a session from a launch of a machine.
    pub fn new(ready: impl Ready) -> Session {
        Session(Box::new(ready))
    }

    /// Returns another session with the same launch.
    pub fn copy(&self) -> Session {
        Session(self.0.copy())
    }

    /// Returns a session that runs only the lanes in `lanes`. Each of these lanes computes the results that the lane
    /// computes in the whole launch. Returns `None` if the lanes of a launch depend on each other on this machine, or
    /// if `lanes` cannot run without other lanes.
    pub fn piece(&self, lanes: Range<usize>) -> Option<Session> {
        Some(Session(self.0.piece(lanes)?))
    }

    /// Returns the launch that the session contains.
    pub fn into_ready(self) -> Box<dyn Ready> {
        self.0
    }

    /// Runs the launch to its end.
    ///
    /// # Errors
    /// Returns [`Error::Trap`] if the program traps, and [`Error::Differ`] if the engines differ. All other errors are
    /// about the launch.
    pub fn run(self, options: &Options) -> Result<Box<dyn Outcome>, Error> {
        if !options.engine.is_lockstep() {
            return self.0.run(options, Watch::Nothing);
        }
        let mut shares = Shares::default();
        let outcome = self.0.run(options, Watch::of(&mut shares))?;
        Ok(Box::new(Compared { outcome, shares }))
    }

    /// Runs the launch to its end, and passes the events to a sink. The groups run one after another on one thread.
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

    /// Returns the launch in the state before the first instruction. Callers can inspect this launch, and can execute
    /// the launch step by step.
    ///
    /// # Errors
    /// Returns an error if the launch is not valid for the machine or cannot be stepped.
    pub fn start(&self, options: &Options) -> Result<Stepping, Error> {
        Ok(Stepping(self.0.start(options)?))
    }
}

/// A launch that is executed step by step. `Stepping` has the methods of [`Steps`], and methods that execute a group or
/// follow a lane.
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

    /// Returns the next instruction of a running group, with its active lanes.
    pub fn issue(&self, group: usize) -> Option<Issue> {
        self.view(group)?.issue()
    }

    /// Returns the reason why a lane of a running group is active or inactive in the group's next instruction.
    pub fn why(&self, group: usize, lane: Lane) -> Option<Why> {
        Some(self.view(group)?.why(lane))
    }

    /// Returns the stack rows of a group that is running or has ended, starting with the innermost row.
    pub fn stack(&self, group: usize) -> Vec<StackRow> {
        self.view(group).map(FlowView::stack).unwrap_or_default()
    }

    /// Returns the depths of the stacks and counters of a running group.
    pub fn depths(&self, group: usize) -> Vec<Depth> {
        self.view(group).map(FlowView::depths).unwrap_or_default()
    }

    /// Executes up to `most` instructions, or fewer if the launch ends. If the engine that the options state can
    /// continue a launch, the method uses this engine. Otherwise, the method steps one instruction at a time.
    ///
    /// # Errors
    /// Returns an error if the program traps. After a trap, the launch is in the state before the trapping instruction.
    /// After [`Error::Fault`], registers and memory have arbitrary values.
    pub fn advance(&mut self, most: u64, watch: Watch<'_>) -> Result<(), Error> {
        CodeFault::caught(|| self.0.advance(most, watch))
    }

    /// Executes instructions of a group. If other groups precede this group in the order, the method first executes the
    /// instructions of these groups. `observer` receives each event with the number of the event's group.
    ///
    /// # Errors
    /// Returns an error if the program traps. After this error, the launch is in the state before the trapping
    /// instruction.
    pub fn step(
        &mut self,
        group: usize,
        stride: Stride,
        observer: &mut dyn FnMut(usize, Event),
    ) -> Result<Step, Error> {
        loop {
            // A caller can change the state so that the group has no active lanes. In this case, one more step of the
            // group ends the group.
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

    /// Executes up to `budget` instructions in the fixed order of the groups. Stops as soon as `predicate` returns
    /// `true` after an instruction. `predicate` receives the launch and the group that runs next.
    ///
    /// # Errors
    /// Returns an error if the program traps. After this error, the launch is in the state before the trapping
    /// instruction.
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

    /// Returns a copy of the launch in its current state.
    pub fn copy(&self) -> Stepping {
        Stepping(self.0.copy())
    }

    /// Saves the current state of the launch.
    pub fn snapshot(&self) -> Snapshot {
        Snapshot(self.0.copy())
    }

    /// Restores a saved state of this launch. The saved state may be earlier or later than the current state.
    pub fn restore(&mut self, snapshot: &Snapshot) {
        self.0 = snapshot.0.copy();
    }
}
