//! A launch that is ready: run it to its end on any engine, or look at it and step it.
//!
//! A launch is divided into *groups*, the lanes that share a program counter: R500's threads, R700's wavefronts, the warps
//! of Tesla's blocks. They run in one fixed order, the one that defines results: group after group, on Tesla block after
//! block, the warps of a block in the turns of `reconverge_tesla::block`. Stepping a group follows that order: the groups
//! that run before it in the order run first. So the end of any sequence of steps leaves what [`Session::run`] leaves.
//!
//! Only the groups that run are in memory (one, on Tesla one block of warps), however many lanes the launch has, and the last
//! state of the groups that ended last: their registers, memory and flow state can be read, but not changed.

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

/// What a run leaves. Arrays are made when they are asked for.
pub trait Outcome: Send {
    /// Counts, as the machine's documentation defines them.
    fn statistics(&self) -> Statistics;

    /// What was executed, and how exact it was.
    fn report(&self) -> &Report;

    /// The fast engine's instructions by path, after a run in lockstep.
    fn shares(&self) -> Shares {
        Shares::default()
    }

    /// What strict mode objects to in how the program ended, though it left what it should.
    fn finding(&self) -> Option<String> {
        None
    }

    /// The outputs by name.
    fn outputs(&self) -> Vec<(String, Array)>;

    /// Which components of an output each lane wrote (bit 0 is x), where the machine knows it.
    fn written(&self, _output: &str) -> Option<&[u8]> {
        None
    }
}

/// A launch of one machine, ready: what [`Session`] is made of.
pub trait Ready: Any + Send + Sync {
    /// Another one, as this one is.
    fn copy(&self) -> Box<dyn Ready>;

    /// Runs the launch to its end; in order on one thread if the observer takes events.
    ///
    /// # Errors
    /// [`Error::Trap`] is the program's fault, [`Error::Differ`] is a defect of an engine, the others are the launch's.
    fn run(self: Box<Self>, options: &Options, watch: Watch<'_>) -> Result<Box<dyn Outcome>, Error>;

    /// The launch before its first instruction.
    ///
    /// # Errors
    /// A launch that does not fit the machine, or that cannot be stepped.
    fn start(&self, options: &Options) -> Result<Box<dyn Steps>, Error>;

    /// The launch of some of its lanes alone, which keep their numbers; `None` where the machine's launches have no
    /// lanes of their own, or not these.
    fn piece(&self, _lanes: Range<usize>) -> Option<Box<dyn Ready>> {
        None
    }
}

/// Registers, memory and flow state of the groups that run, and their last state of those that ended last.
pub trait Inspect {
    /// The machine's registers.
    fn registers(&self) -> Vec<RegisterClass>;

    /// Returns the name of a register by its number in [`Event::Write`].
    fn register_name(&self, number: u32) -> String {
        register_name(&self.registers(), number)
    }

    /// Returns a register of a group that runs or has ended, by lane. Returns `None` for an unknown register,
    /// before the group begins, and after its last state was discarded.
    fn read(&self, group: usize, register: Register) -> Option<Vec<u32>>;

    /// The machine's memory.
    fn spaces(&self) -> Vec<Space> {
        Vec::new()
    }

    /// Bytes of a space from an address on, as many as there are, `count` at most. A space of a group or lane is that of
    /// the one given.
    fn memory(&self, _space: &str, _group: usize, _lane: Lane, _address: u32, _count: usize) -> Vec<u8> {
        Vec::new()
    }

    /// Changes a register of one lane of a group that runs; `false` for one that is not there or only follows others.
    fn set(&mut self, group: usize, register: Register, lane: Lane, value: u32) -> bool;

    /// Changes bytes of a space from an address on; `false`, and no change, where not all of them exist or may change.
    fn store(&mut self, _space: &str, _group: usize, _lane: Lane, _address: u32, _bytes: &[u8]) -> bool {
        false
    }

    /// The parts of a space that may be accessed, with their names, where the machine knows them. A space of a group or
    /// lane is that of the one given.
    fn buffers(&self, _space: &str, _group: usize, _lane: Lane) -> Vec<(String, Range<u64>)> {
        Vec::new()
    }

    /// The words of flow state of a kind that the group that runs next has just now.
    fn words(&self, _kind: Kind) -> Vec<Word> {
        Vec::new()
    }

    /// What a word holds.
    fn word(&self, _word: &Word) -> u64 {
        0
    }

    /// Changes a word. Bits that the word does not have are ignored.
    fn set_word(&mut self, _word: &Word, _value: u64) {}
}

/// A launch of one machine while it is stepped in its fixed order. Unless a machine says otherwise, one group runs after
/// another.
pub trait Steps: Inspect + Send + Sync {
    /// Another one, as this one is: a snapshot. What has not changed since is shared.
    fn copy(&self) -> Box<dyn Steps>;

    /// Lanes of the launch, and of a group.
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

    /// The group that the next instruction is of; `None` at the end.
    fn current(&self) -> Option<usize>;

    /// The groups that are in memory: those before it have ended, those after it wait.
    fn running(&self) -> Range<usize> {
        self.current().map_or(self.groups()..self.groups(), |group| group..group + 1)
    }

    /// The flow state of a group that runs, or the last flow state of one that has ended, if it is kept.
    fn view(&self, group: usize) -> Option<&dyn FlowView>;

    /// The lanes of the launch that a group has.
    fn lanes(&self, group: usize) -> Range<usize> {
        let (lanes, width) = self.shape();
        group * width..lanes.min((group + 1) * width)
    }

    /// Executes the next instruction.
    ///
    /// # Errors
    /// The program trapped, at the instruction that stays the next.
    fn step(&mut self, observer: &mut dyn FnMut(Event)) -> Result<(), Error>;

    /// Executes instructions until `most` have executed, or the end: on the engine of the options, if the machine has one
    /// that can, else one after another.
    ///
    /// # Errors
    /// The program trapped, at the instruction that stays the next.
    fn advance(&mut self, most: u64, watch: Watch<'_>) -> Result<(), Error> {
        let end = self.statistics().instructions.saturating_add(most);
        // A step announces everything.
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

    /// The words of the program that the next instruction is in, where the program can be replaced just now.
    fn next_words(&self) -> Option<Vec<usize>> {
        None
    }

    /// Replaces the program, by one with as many words, from the next instruction on; `false` where that cannot be.
    fn set_program(&mut self, _program: &Program) -> bool {
        false
    }

    /// Whether groups are known to see nothing of what those before them have done.
    fn is_independent(&self) -> bool {
        false
    }

    /// Counts so far.
    fn statistics(&self) -> Statistics;

    /// What is left; complete at the end.
    fn outcome(&self) -> Box<dyn Outcome>;
}

/// Groups whose last state is kept.
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
    /// Adds a group that has ended, and drops the first of more than [`MOST_ENDED`].
    pub(crate) fn keep(&mut self, number: usize, state: Arc<T>) {
        let kept = Arc::make_mut(&mut self.0);
        if kept.len() == MOST_ENDED {
            kept.pop_front();
        }
        kept.push_back((number, state));
    }

    /// Returns the last state of a group.
    pub(crate) fn of(&self, number: usize) -> Option<&T> {
        self.0.iter().find(|(kept, _)| *kept == number).map(|(_, state)| &**state)
    }
}

/// Runs a launch one instruction after another and announces what is recorded.
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

/// Replaces bytes from a place on; `false`, and no change, where not all of them exist.
pub(crate) fn replace(into: &mut [u8], address: u32, bytes: &[u8]) -> bool {
    let start = address as usize;
    let place = start.checked_add(bytes.len()).and_then(|end| into.get_mut(start..end));
    place.map(|place| place.copy_from_slice(bytes)).is_some()
}

/// Registers of one kind.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct RegisterClass {
    /// The manual's name: `temp`, `R`, `$r`.
    pub name: &'static str,
    /// How many there are.
    pub count: usize,
    /// The names of the channels of each; empty for registers of one word.
    pub channels: &'static str,
    /// Number of its first register, or of that register's first channel, in [`Event::Write`]. Channels count one by one.
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

/// One register, or one channel of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Register {
    /// The class's name.
    pub class: &'static str,
    /// Its number in the class.
    pub number: usize,
    /// Its channel; 0 for registers of one word.
    pub channel: usize,
}

/// A memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Space {
    /// The manual's name.
    pub name: &'static str,
    /// What has one of its own.
    pub of: SpaceOf,
}

/// What has a memory of its own.
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

/// Where a group is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum GroupState {
    /// Before its first instruction.
    Waiting,
    /// It runs, or waits for another group that does.
    Running,
    /// At its end.
    Ended,
}

/// How far [`Stepping::step`] goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stride {
    /// One instruction of the group.
    Instruction,
    /// Instructions of the group, one at least, until the next is one that this lane takes part in.
    Lane(Lane),
}

/// Why [`Stepping::run_until`] stopped.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stop {
    /// The predicate holds.
    Predicate,
    /// The budget is used up.
    Budget,
    /// The launch has ended.
    End,
}

/// A place in a launch to come back to.
pub struct Snapshot(Box<dyn Steps>);

/// A launch that is ready.
pub struct Session(Box<dyn Ready>);

impl Session {
    /// A launch of a machine.
    pub fn new(ready: impl Ready) -> Session {
        Session(Box::new(ready))
    }

    /// Another session of this launch.
    pub fn copy(&self) -> Session {
        Session(self.0.copy())
    }

    /// The launch of some of its lanes alone, which keep their numbers; `None` where the machine's launches have no lanes
    /// of their own, or not these.
    pub fn piece(&self, lanes: Range<usize>) -> Option<Session> {
        Some(Session(self.0.piece(lanes)?))
    }

    /// The machine's own launch.
    pub fn into_ready(self) -> Box<dyn Ready> {
        self.0
    }

    /// Runs the launch to its end.
    ///
    /// # Errors
    /// [`Error::Trap`] is the program's fault, [`Error::Differ`] is a defect of an engine, the others are the launch's.
    pub fn run(self, options: &Options) -> Result<Box<dyn Outcome>, Error> {
        if !options.engine.is_lockstep() {
            return self.0.run(options, Watch::Nothing);
        }
        let mut shares = Shares::default();
        let outcome = self.0.run(options, Watch::of(&mut shares))?;
        Ok(Box::new(Compared { outcome, shares }))
    }

    /// Runs the launch to its end, in order on one thread, and hands what happens to a sink.
    ///
    /// # Errors
    /// Those of [`Session::run`].
    pub fn run_traced(
        self,
        options: &Options,
        recorded: Recorded,
        sink: &mut dyn Sink,
    ) -> Result<Box<dyn Outcome>, Error> {
        trace::recording(recorded, sink, |watch| self.0.run(options, watch))
    }

    /// The launch before its first instruction, to be looked at and stepped.
    ///
    /// # Errors
    /// A launch that does not fit the machine, or that cannot be stepped.
    pub fn start(&self, options: &Options) -> Result<Stepping, Error> {
        Ok(Stepping(self.0.start(options)?))
    }
}

/// A launch while it is stepped: all of [`Steps`], and moves.
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
    /// Where a group is.
    pub fn state(&self, group: usize) -> GroupState {
        let running = self.0.running();
        match self.0.view(group) {
            _ if group < running.start => GroupState::Ended,
            _ if group >= running.end => GroupState::Waiting,
            Some(view) if view.issue().is_some() => GroupState::Running,
            _ => GroupState::Ended,
        }
    }

    /// The next instruction of a group that runs, and its lanes.
    pub fn issue(&self, group: usize) -> Option<Issue> {
        self.view(group)?.issue()
    }

    /// Why a lane of a group that runs takes part in its next instruction, or does not.
    pub fn why(&self, group: usize, lane: Lane) -> Option<Why> {
        Some(self.view(group)?.why(lane))
    }

    /// The machine's bookkeeping of a group that runs or has ended, innermost first.
    pub fn stack(&self, group: usize) -> Vec<StackRow> {
        self.view(group).map(FlowView::stack).unwrap_or_default()
    }

    /// How full the stacks and counters of a group that runs are.
    pub fn depths(&self, group: usize) -> Vec<Depth> {
        self.view(group).map(FlowView::depths).unwrap_or_default()
    }

    /// Executes instructions until `most` have executed, or the end: on the engine of the options, if the machine has one
    /// that can, else one after another.
    ///
    /// # Errors
    /// The program trapped, at the instruction that stays the next. After [`Error::Fault`] registers and memory have any
    /// values.
    pub fn advance(&mut self, most: u64, watch: Watch<'_>) -> Result<(), Error> {
        CodeFault::caught(|| self.0.advance(most, watch))
    }

    /// Steps a group, and the groups before it in the order as far as that takes. `observer` takes the events, with their
    /// group.
    ///
    /// # Errors
    /// The program trapped, at the instruction that stays the next.
    pub fn step(
        &mut self,
        group: usize,
        stride: Stride,
        observer: &mut dyn FnMut(usize, Event),
    ) -> Result<Step, Error> {
        loop {
            // The group that is next may have lost its last active lanes to a change: the step lets it end.
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

    /// Executes instructions in the fixed order, `budget` at most, until `predicate` holds in front of one of them, the
    /// first aside: it gets the launch and the group that runs next.
    ///
    /// # Errors
    /// The program trapped, at the instruction that stays the next.
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

    /// Another one, as this one is.
    pub fn copy(&self) -> Stepping {
        Stepping(self.0.copy())
    }

    /// The place where the launch is.
    pub fn snapshot(&self) -> Snapshot {
        Snapshot(self.0.copy())
    }

    /// Goes back, or forth, to a place of this launch.
    pub fn restore(&mut self, snapshot: &Snapshot) {
        self.0 = snapshot.0.copy();
    }
}
