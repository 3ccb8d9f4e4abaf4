//! The debugger behind every front end: a launch that is stepped forward and backward, with stops and questions.
//!
//! [`Debugger`] moves, [`command`] reads and answers lines of text, [`stop`] says where to stop. The terminal, scripts and
//! the debug adapter all stand on these. Backward is forward from a snapshot: the launch is deterministic, so that replay
//! gives the state of any step again.
//!
//! `code.rs` has instructions and addresses as text. [`formula`] evaluates `$r3@5 + 1`, [`log`] writes such values into texts, [`source`] has lines and labels of the user's
//! file, [`flow`] changes masks, stacks and counters by hand, [`table`] lists lanes by registers.

mod code;
pub mod command;
pub mod dap;
pub mod flow;
pub mod formula;
pub mod log;
mod names;
pub mod source;
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
use crate::target::Target;
use formula::Here;
use source::UserSource;
use stop::{Stops, Why as Reason};

/// Instructions between two snapshots.
const INTERVAL: u64 = 2048;

/// Snapshots that are kept; the interval doubles when there are more.
const MOST_SNAPSHOTS: usize = 256;

/// Texts of log stops that are kept until they are taken.
const MOST_LOGS: usize = 10_000;

/// Instructions between two looks at [`Debugger::interrupt`].
const BETWEEN_QUESTIONS: u64 = 1024;

/// What machines call the rows of their stacks that hold return addresses.
const CALLS: [&str; 4] = ["return address", "CALL", "CALLLIM", "RETURN"];

/// Where a movement ended, and why.
#[derive(Clone, Debug, PartialEq)]
pub enum Halt {
    /// It went as far as it should.
    There,
    /// A stop was reached: its number, and what it saw.
    Stop(Reason),
    /// The launch has ended.
    End,
    /// The beginning of the launch was reached, going backward.
    Start,
    /// The program trapped, at the instruction that is next.
    Trap(String),
    /// As many instructions as allowed were executed.
    Budget,
    /// [`Debugger::interrupt`] asked for it.
    Interrupted,
}

/// A change by hand. It belongs to its place in the launch: going back before that and forward again meets it again.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Change {
    /// Of a register.
    Register {
        /// The group, which runs.
        group: usize,
        /// The register.
        register: Register,
        /// The lane.
        lane: Lane,
        /// Its new bits.
        value: u32,
    },
    /// Of memory.
    Memory {
        /// The space.
        space: &'static str,
        /// The group, for spaces of a group or lane.
        group: usize,
        /// The lane, for spaces of a lane.
        lane: Lane,
        /// The first byte.
        address: u32,
        /// The new bytes.
        bytes: Vec<u8>,
    },
    /// A change of flow state of the group that runs next.
    Flow {
        /// The group.
        group: usize,
        /// The word of its flow state.
        word: Word,
        /// The new value of the word.
        value: u64,
    },
}

/// A launch that is debugged.
pub struct Debugger {
    stepping: Stepping,
    /// Instructions executed so far.
    position: u64,
    snapshots: Vec<(u64, Snapshot)>,
    interval: u64,
    /// The program's instructions by address, with the labels of the user's own source.
    lines: Vec<Line>,
    /// The listing's own labels, with their addresses.
    listed: Vec<(String, u32)>,
    /// The memory that instructions access, by address.
    accessed: LiteMap<u32, Accessed>,
    machine: &'static dyn Machine,
    /// The user's own source of the program.
    source: Option<UserSource>,
    /// The address of the last instruction of each group that has ended.
    ended_at: BTreeMap<usize, u32>,
    /// Texts of log stops since [`Debugger::take_logs`].
    logs: Vec<String>,
    /// Stops, by number.
    pub stops: Stops,
    /// The group that questions are about.
    group: usize,
    /// The lane that questions are about.
    lane: Lane,
    trap: Option<String>,
    /// The events of the last instruction, with their groups.
    events: Vec<(usize, Event)>,
    /// What watched places held before the last instruction, by the number of the stop; and its group.
    before: Vec<(usize, Vec<u32>)>,
    last: usize,
    /// Changes by hand, with the number of instructions before each.
    changes: Vec<(u64, Change)>,
    /// The state that `mark` has remembered.
    marked: Option<u64>,
    /// Whether a movement should end where it is; asked now and then on the way.
    pub interrupt: Option<Box<dyn FnMut() -> bool + Send>>,
}

impl Debugger {
    /// A launch before its first instruction.
    ///
    /// # Errors
    /// A launch that cannot be stepped, or a program without a listing.
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

    /// Returns the memory that the instruction at an address accesses.
    pub fn accessed(&self, pc: u32) -> Option<&Accessed> {
        self.accessed.get(&pc)
    }

    /// Returns the debugger with the user's own source of the program.
    pub fn with_source(self, source: Option<UserSource>) -> Debugger {
        let lines = match &source {
            Some(source) => code::relabelled(self.lines, source),
            None => self.lines,
        };
        Debugger { source, lines, ..self }
    }

    /// Returns the user's own source of the program, if it is known.
    pub fn source(&self) -> Option<&UserSource> {
        self.source.as_ref()
    }

    /// Returns the machine.
    pub fn isa(&self) -> Isa {
        self.machine.isa()
    }

    /// Whether the machine's registers are floats.
    fn has_float_registers(&self) -> bool {
        self.machine.isa() == Isa::R500
    }

    /// Returns the register of a name: `$r5`, `R1.x`.
    fn register(&self, word: &str) -> Result<Register, String> {
        names::register(&self.stepping.registers(), word)
    }

    /// Returns the state of a group, for formulas.
    fn here(&self, group: usize) -> Here<'_> {
        Here { stepping: &self.stepping, step: self.position, group }
    }

    /// Returns the texts that log stops have written since the last call.
    pub fn take_logs(&mut self) -> Vec<String> {
        std::mem::take(&mut self.logs)
    }

    /// Returns where the group that questions are about is: the address of its next instruction, or of its last one if it
    /// has ended.
    pub fn place(&self) -> Option<u32> {
        self.place_of(self.group)
    }

    /// Returns where a group is, as [`Debugger::place`] does.
    fn place_of(&self, group: usize) -> Option<u32> {
        match self.stepping.state(group) {
            GroupState::Running => self.stepping.issue(group).map(|issue| issue.pc),
            GroupState::Ended => self.ended_at.get(&group).copied(),
            GroupState::Waiting => None,
        }
    }

    /// The launch as it is now.
    pub fn stepping(&self) -> &Stepping {
        &self.stepping
    }

    /// Instructions executed so far.
    pub fn position(&self) -> u64 {
        self.position
    }

    /// The program's instructions by address.
    pub fn lines(&self) -> &[Line] {
        &self.lines
    }

    /// The group that questions are about.
    pub fn group(&self) -> usize {
        self.group
    }

    /// The lane that questions are about.
    pub fn lane(&self) -> Lane {
        self.lane
    }

    /// The trap that ended the launch.
    pub fn trap(&self) -> Option<&str> {
        self.trap.as_deref()
    }

    /// What the last instruction did to the flow and to data, with its group.
    pub fn events(&self) -> &[(usize, Event)] {
        &self.events
    }

    /// Turns questions to another group; `false` if the launch has no such group.
    pub fn choose_group(&mut self, group: usize) -> bool {
        let exists = group < self.stepping.groups();
        if exists {
            self.group = group;
        }
        exists
    }

    /// Turns questions to another lane; `false` if a group has no such lane.
    pub fn choose_lane(&mut self, lane: Lane) -> bool {
        let exists = lane.index() < self.width();
        if exists {
            self.lane = lane;
        }
        exists
    }

    /// The lanes that a group has room for.
    pub fn width(&self) -> usize {
        self.stepping.lanes(0).len().max(self.stepping.lanes(self.group).len())
    }

    /// The next instruction of the group that questions are about, and its lanes.
    pub fn issue(&self) -> Option<Issue> {
        match self.stepping.state(self.group) {
            GroupState::Running => self.stepping.issue(self.group),
            GroupState::Waiting | GroupState::Ended => None,
        }
    }

    /// The line of the instruction at an address.
    pub fn line(&self, address: u32) -> Option<&Line> {
        let at = self.lines.binary_search_by_key(&Some(address), |line| line.address).ok()?;
        self.lines.get(at)
    }

    /// Returns the address of the instruction that a word names: an address, a label of the source or the listing, `:LINE`
    /// or `FILE:LINE` of the source. A line without an instruction means the next one that has one.
    ///
    /// # Errors
    /// The word names no instruction.
    pub fn named_place(&self, word: &str) -> Result<u32, String> {
        if let Some((file, line)) = word.rsplit_once(':')
            && let Ok(line) = line.parse::<usize>()
        {
            let source = self.source.as_ref();
            let source = source.ok_or_else(|| format!("`{word}`: the program's source is not known"))?;
            if !file.is_empty() && !source.is_at(file) {
                return Err(format!("`{file}` is not the program's source, {}", source.path().display()));
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
        Err(format!("`{word}` is neither an instruction's address nor a label nor a line (`:20`){meant}"))
    }

    /// States that no instruction starts at an address, and that the number may be that of a line.
    fn no_instruction(&self, word: &str, address: u32) -> String {
        let line = address as usize;
        let source = self.source.as_ref().filter(|source| (1..=source.lines().len()).contains(&line));
        let line = source.map(|source| format!("; line {word} of {} is `:{word}`", source.name()));
        format!("`{word}` is not the address of an instruction{}", line.unwrap_or_default())
    }

    /// Returns the place of an address in the user's own source, `collatz.s:20`.
    pub fn source_place(&self, address: u32) -> Option<String> {
        let source = self.source.as_ref()?;
        Some(format!("{}:{}", source.name(), source.line_of(address)?))
    }

    /// An address as the machine's manual spells it.
    pub fn spelled(&self, address: u32) -> String {
        self.machine.isa().spelled(address)
    }

    /// A number that is equal for equal states: of all groups that run, registers, flow and stacks; memory; outputs so far.
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

    /// A group and lane for each memory of a kind.
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

    /// All bytes of a memory: of its buffers where it has some.
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

    /// Every register of the machine with its name: `R1.x`, `$r5`.
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

    /// Executes the next instruction in the fixed order; `None` if there is one more after it.
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

    /// Lets the group that runs next end if a change by hand has left it without active lanes. No instruction does, so that
    /// this does not count as a step.
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

    /// Stays at an instruction that trapped, and says what it was, in the words of the user's own source.
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

    /// Keeps a snapshot where one is due.
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

    /// Executes instructions until `there` holds in front of one, a stop is reached, or `budget` is used up. At least one.
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

    /// The first stop that is reached here.
    fn reached(&mut self) -> Option<Reason> {
        let (mut stops, mut logs) = (std::mem::take(&mut self.stops), std::mem::take(&mut self.logs));
        let reason = stops.reached(self, &mut logs);
        logs.truncate(MOST_LOGS);
        (self.stops, self.logs) = (stops, logs);
        reason
    }

    /// Turns questions to the group that runs; after the end, to the last that ran.
    fn follow_current(&mut self) {
        self.group = self.stepping.current().unwrap_or(self.last);
    }

    /// Executes instructions of the group that questions are about, and of those before it in the order.
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

    /// Executes instructions of the group until the next is one that a lane takes part in.
    pub fn follow(&mut self, lane: Lane, budget: u64) -> Halt {
        self.run_group(budget, |debugger| debugger.takes_part(lane))
    }

    /// Executes instructions until the next is one of the group that questions are about and `there` holds, or the group
    /// has ended.
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

    /// Executes the next instruction of the group, and what it calls.
    pub fn over(&mut self, budget: u64) -> Halt {
        let (group, Some(issue)) = (self.group, self.issue()) else { return self.step(1, budget) };
        let depth = self.calls(group);
        let lanes = issue.mask;
        self.run_group(budget, |debugger| {
            debugger.calls(group) <= depth && debugger.issue().is_some_and(|issue| (issue.mask & lanes).any())
        })
    }

    /// Executes instructions of the group until its stack has fewer entries.
    pub fn out(&mut self, budget: u64) -> Halt {
        let group = self.group;
        let depth = self.stepping.stack(group).len();
        self.run_group(budget, |debugger| debugger.stepping.stack(group).len() < depth)
    }

    /// Executes instructions until the group is in front of the one at an address.
    pub fn until(&mut self, address: u32, budget: u64) -> Halt {
        self.run_group(budget, |debugger| debugger.issue().is_some_and(|issue| issue.pc == address))
    }

    /// Return addresses on the stack of a group.
    fn calls(&self, group: usize) -> usize {
        self.stepping.stack(group).iter().filter(|row| CALLS.contains(&row.kind)).count()
    }

    // ---- Changes by hand

    /// Changes a register or memory here; `false` where that is not there or cannot be changed. Changes that were made later
    /// in the launch are forgotten, and so is a trap.
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

    /// Makes the changes of this place, coming by again.
    fn change_again(&mut self) {
        let changes = std::mem::take(&mut self.changes);
        let now = self.position;
        for (_, change) in changes.iter().filter(|(at, _)| *at == now) {
            self.apply(change);
        }
        self.changes = changes;
    }

    // ---- Backward

    /// Goes to the state in front of an instruction by its number in the run.
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

    /// Goes back to the last place before this one at which `there` holds, or at which a stop was reached.
    pub fn back_until(&mut self, there: &mut dyn FnMut(&Debugger) -> bool) -> Halt {
        // Log stops wrote their texts when the launch came by.
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

    /// Goes back by instructions of the group that questions are about.
    pub fn back(&mut self, count: u64) -> Halt {
        let group = self.group;
        for _ in 0..count {
            // A stop on the way back would hide the instruction before.
            let stops = std::mem::take(&mut self.stops);
            let halt = self.back_until(&mut |debugger| debugger.stepping.current() == Some(group));
            self.stops = stops;
            if halt != Halt::There {
                return halt;
            }
        }
        Halt::There
    }

    /// Why a lane of the group runs or does not, in a few words: `parked at 0x48: branch`.
    pub fn why_short(&self, lane: Lane) -> String {
        self.reason(lane).0
    }

    /// States why a lane of the group runs or does not run.
    pub fn why(&self, lane: Lane) -> String {
        self.reason(lane).1
    }

    /// Returns the reason why a lane of the group runs or does not run: in a few words, and as a sentence.
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
                "active, but not covered or discarded: it helps its quad, and its results go nowhere",
            ),
            None | Some(Why::Uncovered) => both("not covered", "not covered: no work for it, or discarded"),
            Some(Why::Active) => both("active", "active: it takes part in the next instruction"),
            Some(Why::Branch { depth: 0 }) => both("off: branch", "switched off by the innermost branch"),
            Some(Why::Branch { depth }) => {
                let more = match depth {
                    1 => "switched off by the branch around the innermost construct".to_owned(),
                    _ => format!("switched off by the branch {depth} constructs out"),
                };
                (format!("off: branch {depth} out"), more)
            }
            Some(Why::Break) => both("off: left the loop", "it has left the loop, and waits for its end"),
            Some(Why::Continue) => both("off: next round", "it waits for the loop's next round"),
            Some(Why::Parked { pc }) => {
                let (few, more) = match self.holder(lane, pc) {
                    Some(row) => {
                        (format!(": {}", row.kind.to_lowercase()), format!(" ({} on the stack)", row.kind))
                    }
                    None => both("", ""),
                };
                let (short, long) = (self.named(pc), self.placed(pc));
                (format!("parked at {short}{few}"), format!("parked: it goes on at {long}{more}"))
            }
            Some(Why::Exited) => both("exited", "exited"),
        }
    }

    /// Whether a lane of the group takes part in its next instruction.
    fn takes_part(&self, lane: Lane) -> bool {
        self.stepping.issue(self.group).is_some_and(|issue| issue.mask.has(lane))
    }

    /// The innermost row of the group's stack that holds a lane for an address.
    fn holder(&self, lane: Lane, pc: u32) -> Option<StackRow> {
        let rows = self.stepping.stack(self.group);
        rows.into_iter().find(|row| row.pc == Some(pc) && row.mask.is_some_and(|mask| mask.has(lane)))
    }
}
