//! The debugger that all front ends use. The debugger runs a launch forward and backward in steps. Front ends can set
//! stops and query the state.
//!
//! [`Debugger`] runs the launch, [`command`] executes command lines, and [`stop`] decides when the launch stops. The
//! terminal, scripts and the debug adapter use these modules. To go backward, the debugger restores an earlier snapshot
//! and runs forward from the snapshot. A launch is deterministic, so this run reproduces the state of any step after
//! the snapshot.
//!
//! `code.rs` formats instructions and addresses. [`formula`] evaluates formulas such as `$r3@5 + 1`. [`log`] replaces
//! the formulas in a text by the values of the formulas. [`flow`] applies manual changes to masks, stacks and counters.
//! [`table`] prints lanes and registers as a table. [`UserSource`] has the lines and labels of the user's source.

mod code;
pub mod command;
pub mod dap;
pub mod flow;
pub mod formula;
pub mod log;
mod names;
pub mod stop;
pub mod table;

use std::collections::BTreeMap;
use std::hash::{DefaultHasher, Hash, Hasher};

use litemap::LiteMap;
use reconverge_isa::source::closest;
use reconverge_isa::{Isa, Program};
use reconverge_simt::{Event, Issue, Lane, Options, StackRow, Why};

pub use names::{shown, shown_in};

use crate::error::Error;
use crate::faults::Word;
use crate::listing::{Line, Style, addressed};
use crate::machine::Machine;
use crate::naming::{Accessed, accessed};
use crate::session::{GroupState, Register, Session, Snapshot, SpaceOf, Stepping, Stride};
use crate::source::UserSource;
use crate::target::Target;
use formula::Here;
use stop::{Stops, Why as Reason};

/// Number of instructions between two snapshots.
const INTERVAL: u64 = 2048;

/// Maximum number of snapshots. When the debugger exceeds this maximum, the debugger drops every second snapshot and
/// doubles the interval between snapshots.
const MOST_SNAPSHOTS: usize = 256;

/// Maximum number of texts from log stops that are stored until [`Debugger::take_logs`] is called.
const MOST_LOGS: usize = 10_000;

/// Number of instructions between two calls of [`Debugger::interrupt`].
const BETWEEN_QUESTIONS: u64 = 1024;

/// The machines' names for stack rows that hold return addresses.
const CALLS: [&str; 4] = ["return address", "CALL", "CALLLIM", "RETURN"];

/// The reason why a movement ended.
#[derive(Clone, Debug, PartialEq)]
pub enum Halt {
    /// The movement reached its target.
    There,
    /// A stop was reached.
    Stop(Reason),
    /// The launch has ended.
    End,
    /// A backward movement reached the start of the launch.
    Start,
    /// The instruction of the current step trapped.
    Trap(String),
    /// The movement executed its maximum number of instructions.
    Budget,
    /// [`Debugger::interrupt`] returned `true`.
    Interrupted,
}

/// A manual change of state. The debugger stores the change with the step at which the user made the change. If the
/// debugger goes back before this step and later reaches this step again, the debugger repeats the change.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Change {
    /// A change of a register.
    Register {
        /// The group, which must be running.
        group: usize,
        /// The register.
        register: Register,
        /// The lane.
        lane: Lane,
        /// The new bits of the register.
        value: u32,
    },
    /// A change of memory.
    Memory {
        /// The memory space.
        space: &'static str,
        /// The group, if each group or lane has a separate memory.
        group: usize,
        /// The lane, if each lane has a separate memory.
        lane: Lane,
        /// Address of the first byte.
        address: u32,
        /// The new bytes.
        bytes: Vec<u8>,
    },
    /// A change of flow state. The group must be the group that runs next.
    Flow {
        /// The group.
        group: usize,
        /// The changed part of the flow state.
        word: Word,
        /// The new value.
        value: u64,
    },
}

/// A launch that is being debugged.
pub struct Debugger {
    stepping: Stepping,
    /// Number of instructions executed so far.
    position: u64,
    snapshots: Vec<(u64, Snapshot)>,
    interval: u64,
    /// The listing, ordered by address, with the labels of the user's source.
    lines: Vec<Line>,
    /// The listing's original labels with their addresses.
    listed: Vec<(String, u32)>,
    /// Names of the memory that each instruction accesses, indexed by address.
    accessed: LiteMap<u32, Accessed>,
    machine: &'static dyn Machine,
    /// The user's source of the program, if the source is known.
    source: Option<UserSource>,
    /// For each group that has ended, the address of its last instruction.
    ended_at: BTreeMap<usize, u32>,
    /// Texts of log stops since the last call of [`Debugger::take_logs`].
    logs: Vec<String>,
    /// The stops that are set.
    pub stops: Stops,
    /// The selected group, to which queries refer.
    group: usize,
    /// The selected lane, to which queries refer.
    lane: Lane,
    trap: Option<String>,
    /// The events of the most recently executed instruction. Each event has the number of its group.
    events: Vec<(usize, Event)>,
    /// Values that the watched registers and memory ranges had before the most recently executed instruction. Each
    /// entry has the number of the stop that watches the values.
    before: Vec<(usize, Vec<u32>)>,
    last: usize,
    /// Manual changes, each with its step.
    changes: Vec<(u64, Change)>,
    /// The digest of the state that `mark` has stored.
    marked: Option<u64>,
    /// The debugger calls this function at regular intervals during a movement. If the function returns `true`, the
    /// movement ends early.
    pub interrupt: Option<Box<dyn FnMut() -> bool + Send>>,
}

impl Debugger {
    /// Creates a debugger for a launch. At first, the launch is in its state before the first instruction.
    ///
    /// # Errors
    /// Returns an error if the launch cannot be stepped, or if the program does not have a listing.
    pub fn new(
        session: &Session,
        target: &Target,
        program: &Program,
        options: &Options,
    ) -> Result<Debugger, Error> {
        let machine = target.machine();
        let style = Style { structure: true, ..Style::default() };
        let listing = machine.disassemble(target, program, style);
        let listing = listing.map_err(|error| Error::Machine(error.to_string()))?;
        let lines = addressed(listing.lines(&program.words));
        let listed = lines.iter().filter_map(|line| Some((line.label.clone()?, line.address?))).collect();
        let stepping = session.start(options)?;
        let accessed = accessed(target, program).map_err(|error| Error::Machine(error.to_string()))?;
        let mut debugger = Debugger {
            snapshots: Vec::new(),
            stepping,
            position: 0,
            interval: INTERVAL,
            lines,
            listed,
            accessed,
            machine,
            source: None,
            ended_at: BTreeMap::new(),
            logs: Vec::new(),
            stops: Stops::default(),
            group: 0,
            lane: Lane(0),
            trap: None,
            events: Vec::new(),
            before: Vec::new(),
            last: 0,
            changes: Vec::new(),
            marked: None,
            interrupt: None,
        };
        debugger.snapshots.push((0, debugger.stepping.snapshot()));
        debugger.group = debugger.stepping.current().unwrap_or(0);
        Ok(debugger)
    }

    /// Returns the names of the memory that the instruction at an address accesses.
    pub fn accessed(&self, pc: u32) -> Option<&Accessed> {
        self.accessed.get(&pc)
    }

    /// Sets the program's source, and replaces the listing's labels by the labels of the source.
    pub fn with_source(self, source: Option<UserSource>) -> Debugger {
        let lines = match &source {
            Some(source) => code::relabelled(self.lines, source),
            None => self.lines,
        };
        Debugger { source, lines, ..self }
    }

    /// Returns the program's source, if the source is known.
    pub fn source(&self) -> Option<&UserSource> {
        self.source.as_ref()
    }

    /// Returns the machine.
    pub fn isa(&self) -> Isa {
        self.machine.isa()
    }

    /// Returns whether the machine's registers are floats.
    fn has_float_registers(&self) -> bool {
        self.machine.isa() == Isa::R500
    }

    /// Returns the register with this name: `$r5`, `R1.x`.
    fn register(&self, word: &str) -> Result<Register, String> {
        names::register(&self.stepping.registers(), word)
    }

    /// Returns the state of a group for the evaluation of formulas.
    fn here(&self, group: usize) -> Here<'_> {
        Here { stepping: &self.stepping, step: self.position, group }
    }

    /// Returns the texts of log stops since the last call of this method.
    pub fn take_logs(&mut self) -> Vec<String> {
        std::mem::take(&mut self.logs)
    }

    /// Returns the address of the selected group's next instruction. If the group has ended, returns the address of the
    /// last instruction that the group executed.
    pub fn place(&self) -> Option<u32> {
        self.place_of(self.group)
    }

    /// Returns the address of a group's next instruction. If the group has ended, returns the address of the last
    /// instruction that the group executed.
    fn place_of(&self, group: usize) -> Option<u32> {
        match self.stepping.state(group) {
            GroupState::Running => self.stepping.issue(group).map(|issue| issue.pc),
            GroupState::Ended => self.ended_at.get(&group).copied(),
            GroupState::Waiting => None,
        }
    }

    /// Returns the launch in its current state.
    pub fn stepping(&self) -> &Stepping {
        &self.stepping
    }

    /// Returns the number of instructions executed so far.
    pub fn position(&self) -> u64 {
        self.position
    }

    /// Returns the listing, ordered by address.
    pub fn lines(&self) -> &[Line] {
        &self.lines
    }

    /// Returns the selected group.
    pub fn group(&self) -> usize {
        self.group
    }

    /// Returns the selected lane.
    pub fn lane(&self) -> Lane {
        self.lane
    }

    /// Returns the trap that ended the launch. Returns `None` if no trap ended the launch.
    pub fn trap(&self) -> Option<&str> {
        self.trap.as_deref()
    }

    /// Returns the events of the most recently executed instruction. Each event has the number of its group.
    pub fn events(&self) -> &[(usize, Event)] {
        &self.events
    }

    /// Selects another group. Returns `false` if the launch does not have this group.
    pub fn choose_group(&mut self, group: usize) -> bool {
        let exists = group < self.stepping.groups();
        if exists {
            self.group = group;
        }
        exists
    }

    /// Selects another lane. Returns `false` if a group does not have this lane.
    pub fn choose_lane(&mut self, lane: Lane) -> bool {
        let exists = lane.index() < self.width();
        if exists {
            self.lane = lane;
        }
        exists
    }

    /// Returns the maximum number of lanes per group.
    pub fn width(&self) -> usize {
        self.stepping.lanes(0).len().max(self.stepping.lanes(self.group).len())
    }

    /// Returns the next instruction of the selected group, and the lanes that execute this instruction.
    pub fn issue(&self) -> Option<Issue> {
        match self.stepping.state(self.group) {
            GroupState::Running => self.stepping.issue(self.group),
            GroupState::Waiting | GroupState::Ended => None,
        }
    }

    /// Returns the line of the listing for the instruction at an address.
    pub fn line(&self, address: u32) -> Option<&Line> {
        let at = self.lines.binary_search_by_key(&Some(address), |line| line.address).ok()?;
        self.lines.get(at)
    }

    /// Returns the address of the instruction that a word names. The word is an address, a label of the source or the
    /// listing, or a source line. A source line has the form `:LINE` or `FILE:LINE`. If the source line does not
    /// contain an instruction, the function uses the next line that contains an instruction.
    ///
    /// # Errors
    /// Returns an error if the word does not name an instruction.
    pub fn named_place(&self, word: &str) -> Result<u32, String> {
        if let Some((file, line)) = word.rsplit_once(':')
            && let Ok(line) = line.parse::<usize>()
        {
            let source = self.source.as_ref();
            let source = source.ok_or_else(|| format!("`{word}`: the source of the program is unknown"))?;
            if !file.is_empty() && !source.is_at(file) {
                return Err(format!(
                    "`{file}` is not the source of this program; the source is {}",
                    source.path().display()
                ));
            }
            let found = source.instruction_at(line).filter(|_| line > 0);
            let lines = source.lines().len();
            return found.map(|(address, _)| address).ok_or_else(|| {
                format!(
                    "{} has no instruction at or after line {line}: its last line is {lines}",
                    source.name()
                )
            });
        }
        let listed =
            |name: &str| self.listed.iter().find(|(label, _)| label == name).map(|(_, address)| *address);
        let of_source = self.source.as_ref().and_then(|source| source.labelled(word));
        if let Some(address) = of_source.or_else(|| listed(word.strip_prefix('@').unwrap_or(word))) {
            return Ok(address);
        }
        if let Some(address) = names::number(word) {
            return match self.line(address) {
                Some(_) => Ok(address),
                None => Err(self.no_instruction(word, address)),
            };
        }
        let labels = self.source.iter().flat_map(UserSource::labels);
        let labels = labels.chain(self.lines.iter().filter_map(|line| line.label.as_deref()));
        let meant =
            closest(word, labels).map(|meant| format!(", did you mean `{meant}`?")).unwrap_or_default();
        Err(format!(
            "expected the address of an instruction, a label or a line (`:20`), found `{word}`{meant}"
        ))
    }

    /// Returns the message that no instruction starts at an address. If the number could be a line number, the message
    /// also suggests `:LINE`.
    fn no_instruction(&self, word: &str, address: u32) -> String {
        let line = address as usize;
        let source = self.source.as_ref().filter(|source| (1..=source.lines().len()).contains(&line));
        let line = source.map(|source| format!("; line {word} of {} is `:{word}`", source.name()));
        format!("`{word}` is not the address of an instruction{}", line.unwrap_or_default())
    }

    /// Returns the file and line of an address in the user's source, for example `collatz.s:20`.
    pub fn source_place(&self, address: u32) -> Option<String> {
        let source = self.source.as_ref()?;
        Some(format!("{}:{}", source.name(), source.line_of(address)?))
    }

    /// Returns an address in the notation of the machine's manual.
    pub fn spelled(&self, address: u32) -> String {
        self.machine.isa().spelled(address)
    }

    /// Returns a hash of the current state. The hash covers the step, the memory, and the outputs that the launch has
    /// already written. The hash also covers the registers, flow state and stacks of all running groups.
    pub fn digest(&self) -> u64 {
        let mut hasher = DefaultHasher::new();
        self.position.hash(&mut hasher);
        for group in 0..self.stepping.groups() {
            let Some(view) = self.stepping.view(group) else { continue };
            if let Some(issue) = view.issue() {
                (issue.pc, issue.mask.0).hash(&mut hasher);
            }
            for lane in 0..self.width() {
                format!("{:?}", view.why(Lane(lane as u8))).hash(&mut hasher);
            }
            for row in view.stack() {
                (row.kind, row.pc, row.mask.map(|mask| mask.0), row.count).hash(&mut hasher);
            }
            for (_, register) in self.register_names() {
                self.stepping.read(group, register).hash(&mut hasher);
            }
        }
        for space in self.stepping.spaces() {
            for (group, lane) in self.owners(space.of) {
                self.contents(space.name, group, lane).hash(&mut hasher);
            }
        }
        for (name, array) in self.stepping.outcome().outputs() {
            (name, array.bytes).hash(&mut hasher);
        }
        hasher.finish()
    }

    /// Returns the group and the lane of each instance of a memory space. The result does not contain the instances of
    /// groups that have ended or have not started.
    fn owners(&self, of: SpaceOf) -> Vec<(usize, Lane)> {
        let running = |group: &usize| self.stepping.state(*group) == GroupState::Running;
        let groups = (0..self.stepping.groups()).filter(running);
        match of {
            SpaceOf::Launch => vec![(self.group, Lane(0))],
            SpaceOf::Group => groups.map(|group| (group, Lane(0))).collect(),
            SpaceOf::Lane => {
                let lanes = |group| (0..self.stepping.lanes(group).len()).map(move |lane| (group, lane));
                groups.flat_map(lanes).map(|(group, lane)| (group, Lane(lane as u8))).collect()
            }
        }
    }

    /// Returns all bytes of a memory space. If the space consists of buffers, returns the bytes of the buffers.
    fn contents(&self, space: &str, group: usize, lane: Lane) -> Vec<u8> {
        let buffers = self.stepping.buffers(space, group, lane);
        let read = |address: u64, count: usize| {
            self.stepping.memory(space, group, lane, u32::try_from(address).unwrap_or(u32::MAX), count)
        };
        match &buffers[..] {
            [] => read(0, usize::MAX),
            some => some.iter().flat_map(|(_, at)| read(at.start, (at.end - at.start) as usize)).collect(),
        }
    }

    /// Returns all registers of the machine. Each register has its name: `R1.x`, `$r5`.
    pub fn register_names(&self) -> Vec<(String, Register)> {
        let mut names = Vec::new();
        for class in self.stepping.registers() {
            for number in 0..class.count {
                for channel in 0..class.channels.len().max(1) {
                    let register = Register { class: class.name, number, channel };
                    names.push((names::register_name(&[class], register), register));
                }
            }
        }
        names
    }

    // ---- Forward

    /// Executes the next instruction of the launch. This instruction belongs to the group that runs next. Returns
    /// `None` if the launch can continue.
    fn execute(&mut self) -> Option<Halt> {
        if let Some(trap) = &self.trap {
            return Some(Halt::Trap(trap.clone()));
        }
        if let Some(halt) = self.settle() {
            return Some(halt);
        }
        let Some(group) = self.stepping.current() else { return Some(Halt::End) };
        if self.position.is_multiple_of(BETWEEN_QUESTIONS)
            && self.interrupt.as_mut().is_some_and(|interrupt| interrupt())
        {
            return Some(Halt::Interrupted);
        }
        self.last = group;
        self.before = self.stops.watched(&self.stepping, group);
        let address = self.stepping.issue(group).map(|issue| issue.pc);
        self.events.clear();
        let events = &mut self.events;
        let mut observer = |group, event| events.push((group, event));
        if let Err(error) = self.stepping.step(group, Stride::Instruction, &mut observer) {
            return Some(self.trapped(error));
        }
        if let Some(address) = address.filter(|_| self.stepping.state(group) == GroupState::Ended) {
            self.ended_at.insert(group, address);
        }
        self.position += 1;
        self.keep();
        self.change_again();
        None
    }

    /// After a manual change, the group that runs next may have no active lanes. In this case, this function ends the
    /// group. No instruction runs, so the step number does not change.
    fn settle(&mut self) -> Option<Halt> {
        while let Some(group) = self.stepping.current().filter(|group| self.stepping.issue(*group).is_none())
        {
            if let Err(error) = self.stepping.step(group, Stride::Instruction, &mut |_, _| ()) {
                return Some(self.trapped(error));
            }
            if self.stepping.current() == Some(group) && self.stepping.issue(group).is_none() {
                return Some(Halt::End);
            }
            self.last = group;
        }
        None
    }

    /// Stores a trap, and returns the trap's message with the instruction and the line of the user's source. The
    /// debugger stays at the step before the trapping instruction.
    fn trapped(&mut self, error: Error) -> Halt {
        let text = match error {
            Error::Trap(mut trapped) => {
                trapped.instruction = Some(self.instruction(trapped.pc)).filter(|text| !text.is_empty());
                trapped.line = self.source.as_ref().and_then(|source| source.line_of(trapped.pc));
                trapped.sentence(&self.source.as_ref().map(UserSource::name).unwrap_or_default())
            }
            other => other.to_string(),
        };
        self.trap = Some(text.clone());
        Halt::Trap(text)
    }

    /// Takes a snapshot if the launch has executed enough instructions since the last snapshot.
    fn keep(&mut self) {
        let last = self.snapshots.last().map_or(0, |(position, _)| *position);
        if self.position < last + self.interval {
            return;
        }
        self.snapshots.push((self.position, self.stepping.snapshot()));
        if self.snapshots.len() > MOST_SNAPSHOTS {
            self.interval *= 2;
            let mut number = 0;
            self.snapshots.retain(|_| {
                number += 1;
                number % 2 == 1
            });
        }
    }

    /// Executes at least one instruction. Then continues until `there` returns `true`, until a stop is reached, or
    /// until `budget` instructions have run.
    pub fn run(&mut self, budget: u64, there: &mut dyn FnMut(&Debugger) -> bool) -> Halt {
        for _ in 0..budget {
            if let Some(halt) = self.execute() {
                self.follow_current();
                return halt;
            }
            if let Some(reason) = self.reached() {
                self.follow_current();
                return Halt::Stop(reason);
            }
            if there(self) {
                return Halt::There;
            }
            if self.stepping.current().is_none() {
                self.follow_current();
                return Halt::End;
            }
        }
        Halt::Budget
    }

    /// Returns the first stop that is reached in the current state. Also stores the texts of the log stops that are
    /// reached.
    fn reached(&mut self) -> Option<Reason> {
        let (mut stops, mut logs) = (std::mem::take(&mut self.stops), std::mem::take(&mut self.logs));
        let reason = stops.reached(self, &mut logs);
        logs.truncate(MOST_LOGS);
        (self.stops, self.logs) = (stops, logs);
        reason
    }

    /// Selects the group that runs next. If the launch has ended, selects the group of the last instruction.
    fn follow_current(&mut self) {
        self.group = self.stepping.current().unwrap_or(self.last);
    }

    /// Executes `count` instructions of the selected group. If a second group runs before the selected group, the
    /// debugger also executes the instructions of the second group.
    pub fn step(&mut self, count: u64, budget: u64) -> Halt {
        let group = self.group;
        for _ in 0..count {
            let mut rest = budget;
            loop {
                if self.stepping.state(group) == GroupState::Ended {
                    return self.settle().unwrap_or(Halt::End);
                }
                let runs = self.stepping.current() == Some(group);
                match self.run(1, &mut |_| true) {
                    Halt::There if runs => break,
                    Halt::There => {}
                    other => return other,
                }
                rest -= 1;
                if rest == 0 {
                    return Halt::Budget;
                }
            }
        }
        self.group = group;
        Halt::There
    }

    /// Executes instructions of the selected group until `lane` is active in the group's next instruction.
    pub fn follow(&mut self, lane: Lane, budget: u64) -> Halt {
        self.run_group(budget, |debugger| debugger.takes_part(lane))
    }

    /// Executes instructions until the selected group runs next and `there` returns `true`. Also stops when the
    /// selected group has ended.
    fn run_group(&mut self, budget: u64, there: impl Fn(&Debugger) -> bool) -> Halt {
        let group = self.group;
        let ended = |debugger: &Debugger| debugger.stepping.state(group) == GroupState::Ended;
        let halt = self.run(budget, &mut |debugger| {
            debugger.stepping.current() == Some(group) && there(debugger) || ended(debugger)
        });
        if halt != Halt::There || !ended(self) {
            return halt;
        }
        self.group = group;
        Halt::End
    }

    /// Executes the next instruction of the selected group. If the instruction is a call, also executes the callee.
    pub fn over(&mut self, budget: u64) -> Halt {
        let (group, Some(issue)) = (self.group, self.issue()) else { return self.step(1, budget) };
        let depth = self.calls(group);
        let lanes = issue.mask;
        self.run_group(budget, |debugger| {
            debugger.calls(group) <= depth && debugger.issue().is_some_and(|issue| (issue.mask & lanes).any())
        })
    }

    /// Executes instructions of the selected group until the group's stack has fewer entries than at the start of this
    /// call.
    pub fn out(&mut self, budget: u64) -> Halt {
        let group = self.group;
        let depth = self.stepping.stack(group).len();
        self.run_group(budget, |debugger| debugger.stepping.stack(group).len() < depth)
    }

    /// Executes instructions until the selected group's next instruction is the instruction at an address.
    pub fn until(&mut self, address: u32, budget: u64) -> Halt {
        self.run_group(budget, |debugger| debugger.issue().is_some_and(|issue| issue.pc == address))
    }

    /// Returns the number of return addresses on the stack of a group.
    fn calls(&self, group: usize) -> usize {
        self.stepping.stack(group).iter().filter(|row| CALLS.contains(&row.kind)).count()
    }

    // ---- Manual changes

    /// Applies a manual change at the current step. Returns `false` if the register, memory or flow state does not
    /// exist or cannot be changed. Discards a stored trap and all manual changes that were made at later steps.
    pub fn change(&mut self, change: Change) -> bool {
        let changed = self.apply(&change);
        if changed {
            let now = self.position;
            self.snapshots.retain(|(at, _)| *at <= now);
            self.changes.retain(|(at, _)| *at <= now);
            self.stops.forget_after(now);
            self.changes.push((now, change));
            self.trap = None;
        }
        changed
    }

    fn apply(&mut self, change: &Change) -> bool {
        match change {
            Change::Register { group, register, lane, value } => {
                self.stepping.set(*group, *register, *lane, *value)
            }
            Change::Flow { group, word, value } => {
                let here = self.stepping.current() == Some(*group);
                let address = self.stepping.issue(*group).map(|issue| issue.pc);
                if here {
                    self.stepping.set_word(word, *value);
                }
                if let Some(address) = address.filter(|_| self.stepping.state(*group) == GroupState::Ended) {
                    self.ended_at.insert(*group, address);
                }
                here
            }
            Change::Memory { space, group, lane, address, bytes } => {
                self.stepping.store(space, *group, *lane, *address, bytes)
            }
        }
    }

    /// Repeats the manual changes of the current step. The repetition is necessary when the launch reaches a step
    /// again.
    fn change_again(&mut self) {
        let changes = std::mem::take(&mut self.changes);
        let now = self.position;
        for (_, change) in changes.iter().filter(|(at, _)| *at == now) {
            self.apply(change);
        }
        self.changes = changes;
    }

    // ---- Backward

    /// Goes forward or backward to a step. The debugger stops before the instruction of this step runs.
    pub fn go_to(&mut self, position: u64) -> Halt {
        let from = self.snapshots.partition_point(|(at, _)| *at <= position).saturating_sub(1);
        if position < self.position {
            self.restore(from);
        }
        while self.position < position {
            if let Some(halt) = self.execute() {
                return halt;
            }
        }
        Halt::There
    }

    fn restore(&mut self, number: usize) {
        let (position, snapshot) = &self.snapshots[number];
        self.stepping.restore(snapshot);
        self.position = *position;
        self.trap = None;
        self.events.clear();
        self.before.clear();
        self.change_again();
    }

    /// Goes back to the most recent earlier step at which `there` returns `true` or a stop is reached.
    pub fn back_until(&mut self, there: &mut dyn FnMut(&Debugger) -> bool) -> Halt {
        // The replayed steps would produce the texts of log stops a second time. So the debugger drops the texts that
        // the replayed steps produce.
        let logs = std::mem::take(&mut self.logs);
        let halt = self.found_back(there);
        self.logs = logs;
        halt
    }

    fn found_back(&mut self, there: &mut dyn FnMut(&Debugger) -> bool) -> Halt {
        let now = self.position;
        let group = self.group;
        let before = self.snapshots.partition_point(|(at, _)| *at < now);
        let mut end = now;
        for number in (0..before).rev() {
            self.restore(number);
            let start = self.position;
            let mut found = None;
            while self.position < end {
                if there(self) {
                    found = Some((self.position, Halt::There));
                } else if self.position > start
                    && let Some(reason) = self.reached()
                {
                    found = Some((self.position, Halt::Stop(reason)));
                }
                match self.execute() {
                    Some(Halt::Interrupted) => {
                        let interrupt = self.interrupt.take();
                        self.go_to(now);
                        self.interrupt = interrupt;
                        return Halt::Interrupted;
                    }
                    Some(_) => break,
                    None => {}
                }
            }
            if let Some((position, halt)) = found {
                self.go_to(position);
                match halt {
                    Halt::Stop(_) => self.follow_current(),
                    _ => self.group = group,
                }
                return halt;
            }
            end = start;
        }
        self.go_to(0);
        self.follow_current();
        Halt::Start
    }

    /// Goes back by `count` instructions of the selected group.
    pub fn back(&mut self, count: u64) -> Halt {
        let group = self.group;
        for _ in 0..count {
            // The debugger disables stops here. Otherwise, a stop could end the movement before the launch reaches the
            // target of the backward movement.
            let stops = std::mem::take(&mut self.stops);
            let halt = self.back_until(&mut |debugger| debugger.stepping.current() == Some(group));
            self.stops = stops;
            if halt != Halt::There {
                return halt;
            }
        }
        Halt::There
    }

    /// Returns a short reason why a lane of the group runs or does not run, for example `parked at 0x48: branch`.
    pub fn why_short(&self, lane: Lane) -> String {
        self.reason(lane).0
    }

    /// Returns a sentence that states why a lane of the group runs or does not run.
    pub fn why(&self, lane: Lane) -> String {
        self.reason(lane).1
    }

    /// Returns the reason why a lane of the group runs or does not run. The first text states the reason in a few
    /// words. The second text states the reason in a sentence.
    fn reason(&self, lane: Lane) -> (String, String) {
        let both = |few: &str, more: &str| (few.to_owned(), more.to_owned());
        match self.stepping.state(self.group) {
            GroupState::Waiting => return both("not started", "its group waits for the groups before it"),
            GroupState::Ended => return both("ended", "its group has ended"),
            GroupState::Running => {}
        }
        match self.stepping.why(self.group, lane) {
            Some(Why::Uncovered) if self.takes_part(lane) => both(
                "active, not covered",
                "active only as a helper of its quad: it is not covered, or it was discarded, and its results are \
                 dropped",
            ),
            None | Some(Why::Uncovered) => {
                both("not covered", "not covered: it has no work, or it was discarded")
            }
            Some(Why::Active) => both("active", "active: it executes the next instruction"),
            Some(Why::Branch { depth: 0 }) => both("off: branch", "switched off by the innermost branch"),
            Some(Why::Branch { depth }) => {
                let more = match depth {
                    1 => "switched off by the branch that encloses the innermost construct".to_owned(),
                    _ => format!("switched off by the branch that encloses the {depth} innermost constructs"),
                };
                (format!("off: branch {depth} out"), more)
            }
            Some(Why::Break) => both("off: left the loop", "it has left the loop, and waits for its end"),
            Some(Why::Continue) => both("off: next iteration", "it waits for the loop's next iteration"),
            Some(Why::Parked { pc }) => {
                let (few, more) = match self.holder(lane, pc) {
                    Some(row) => {
                        (format!(": {}", row.kind.to_lowercase()), format!(" ({} on the stack)", row.kind))
                    }
                    None => both("", ""),
                };
                let (short, long) = (self.named(pc), self.placed(pc));
                (format!("parked at {short}{few}"), format!("parked: it continues at {long}{more}"))
            }
            Some(Why::Exited) => both("exited", "exited"),
        }
    }

    /// Returns whether a lane is active in the group's next instruction.
    fn takes_part(&self, lane: Lane) -> bool {
        self.stepping.issue(self.group).is_some_and(|issue| issue.mask.has(lane))
    }

    /// Returns the innermost row of the group's stack that contains `lane` and has the address `pc`. The lanes of this
    /// row continue at `pc`.
    fn holder(&self, lane: Lane, pc: u32) -> Option<StackRow> {
        let rows = self.stepping.stack(self.group);
        rows.into_iter().find(|row| row.pc == Some(pc) && row.mask.is_some_and(|mask| mask.has(lane)))
    }
}
