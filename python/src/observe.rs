//! Calls Python functions with the events of a run. A call passes a batch of columns, or one event.
//!
//! This module filters the events of each hook, by kind, address, group, register and space. If no hook takes an event,
//! the event does not cause a call of Python.

use std::collections::HashMap;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::sync::Arc;

use pyo3::prelude::*;
use pyo3::types::{PyDict, PyString};
use reconverge_simt::{Event, Mask, Options};
use reconverge_workbench::Error;
use reconverge_workbench::Session;
use reconverge_workbench::naming::Accessed;
use reconverge_workbench::session::{RegisterClass, register_name};
use reconverge_workbench::trace::{Recorded, Sink};

use crate::array::column;
use crate::errors;

/// The names of the kinds of events. The names and their order are the same as in `reconverge/trace.py`.
const KINDS: [&str; 11] =
    ["issue", "diverge", "reconverge", "push", "pop", "jump", "write", "load", "store", "trap", "resume"];
pub(crate) const ISSUE: u8 = 0;
const DIVERGE: u8 = 1;
const RECONVERGE: u8 = 2;
const PUSH: u8 = 3;
const POP: u8 = 4;
const JUMP: u8 = 5;
const WRITE: u8 = 6;
const LOAD: u8 = 7;
const STORE: u8 = 8;
const TRAP: u8 = 9;
const RESUME: u8 = 10;
/// The kinds of events that only the reference interpreter sends. These events are writes to registers and accesses to
/// memory.
const DATA: u16 = 1 << WRITE | 1 << LOAD | 1 << STORE;

/// Number of events between two checks for signals. This number applies if hooks receive one event at a time.
const LOOK: u64 = 1 << 10;

/// Names of registers and memories in the events of a launch.
#[derive(Debug)]
pub(crate) struct EventNames {
    classes: Vec<RegisterClass>,
    /// Names of memories. The first memory has the number 1 in events.
    spaces: Vec<String>,
    /// For the instruction at each address, the numbers of the memories that the instruction accesses. The list has the
    /// numbers of the memories of loads: one number for all loads, or one number for each load of a lane. The second
    /// part of the tuple is the number of the memory to which the instruction stores.
    accessed: HashMap<u32, (Vec<u8>, u8)>,
}

impl EventNames {
    pub(crate) fn new(
        classes: Vec<RegisterClass>,
        accessed: impl IntoIterator<Item = (u32, Accessed)>,
    ) -> EventNames {
        let mut names = EventNames { classes, spaces: Vec::new(), accessed: HashMap::new() };
        for (pc, Accessed { loads, stores }) in accessed {
            let loads: Vec<u8> = loads.iter().map(|space| names.numbered(space)).collect();
            let stores = stores.map_or(0, |space| names.numbered(&space));
            if stores != 0 || !loads.is_empty() {
                names.accessed.insert(pc, (loads, stores));
            }
        }
        names
    }

    /// Returns the number of a memory. If the memory does not have a number yet, adds the memory.
    fn numbered(&mut self, space: &str) -> u8 {
        let known = self.spaces.iter().position(|known| known == space);
        let place = known.unwrap_or_else(|| {
            self.spaces.push(space.to_owned());
            self.spaces.len() - 1
        });
        (place + 1) as u8
    }

    /// Returns the names of the memories, in the order of their numbers. The first memory has the number 1.
    pub(crate) fn spaces(&self) -> &[String] {
        &self.spaces
    }

    /// Returns the registers that may occur in write events, with the numbers that the events use.
    pub(crate) fn registers(&self) -> Vec<(u32, String)> {
        let numbers = self.classes.iter().flat_map(|class| {
            let width = class.channels.len().max(1) as u32;
            class.first..class.first + width * class.count as u32
        });
        numbers.map(|number| (number, register_name(&self.classes, number))).collect()
    }

    /// Returns the number of the memory that the instruction at an address accesses.
    fn space(&self, event: &Event, pc: u32, loads: &mut [u8; 64]) -> u8 {
        match event {
            Event::Load { lane, .. } => {
                let Some((spaces, _)) = self.accessed.get(&pc) else { return 0 };
                match &spaces[..] {
                    [only] => *only,
                    several => {
                        let number = &mut loads[lane.index()];
                        let space = several.get(usize::from(*number)).copied().unwrap_or(0);
                        *number = number.saturating_add(1);
                        space
                    }
                }
            }
            Event::Store { .. } => self.accessed.get(&pc).map_or(0, |(_, stores)| *stores),
            _ => 0,
        }
    }
}

/// The last instruction of a group. The fields are the instruction's address, the instruction's step, and the number of
/// loads by each lane.
#[derive(Clone, Copy, Debug)]
pub(crate) struct LastIssue {
    pc: u32,
    step: u64,
    loads: [u8; 64],
}

impl LastIssue {
    pub(crate) const fn new(pc: u32, step: u64) -> LastIssue {
        LastIssue { pc, step, loads: [0; 64] }
    }

    /// Returns an event that this instruction caused, with the step and the address of the instruction.
    pub(crate) fn caused(&mut self, names: &EventNames, event: Event, group: usize) -> Happened {
        let space = names.space(&event, self.pc, &mut self.loads);
        Happened { space, ..Happened::of(event, group, self.step, self.pc) }
    }
}

/// An event with its step, group and address.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Happened {
    /// The step of the instruction that caused the event, from 0.
    pub(crate) step: u64,
    pub(crate) group: u32,
    pub(crate) kind: u8,
    pub(crate) pc: u32,
    /// The lanes of an issue, a reconvergence or a trap. For a divergence, the lanes that run first.
    pub(crate) mask: u64,
    /// For a divergence, the lanes that do not run first. For a jump or an access, the address. For a write, the number
    /// of the register.
    pub(crate) other: u64,
    pub(crate) lane: u8,
    pub(crate) value: u32,
    /// The number of the memory that a load or store accesses. The number is 0 if the memory is not known.
    pub(crate) space: u8,
}

impl Happened {
    /// Returns an event with the step and the address of the instruction that caused the event.
    pub(crate) fn of(event: Event, group: usize, step: u64, pc: u32) -> Happened {
        let (kind, mask, other, lane, value) = match event {
            Event::Issue { mask, .. } => (ISSUE, mask.0, 0, 0, 0),
            Event::Diverge { taken, not } => (DIVERGE, taken.0, not.0, 0, 0),
            Event::Resume { mask } => (RESUME, mask.0, 0, 0, 0),
            Event::Reconverge { mask } => (RECONVERGE, mask.0, 0, 0, 0),
            Event::Push { .. } => (PUSH, 0, 0, 0, 0),
            Event::Pop { .. } => (POP, 0, 0, 0, 0),
            Event::Jump { to } => (JUMP, 0, to.into(), 0, 0),
            Event::Write { lane, register, value } => {
                (WRITE, Mask::only(lane).0, register.into(), lane.0, value)
            }
            Event::Load { lane, address } => (LOAD, Mask::only(lane).0, address.into(), lane.0, 0),
            Event::Store { lane, address, value } => {
                (STORE, Mask::only(lane).0, address.into(), lane.0, value)
            }
            Event::Trap { mask } => (TRAP, mask.0, 0, 0, 0),
        };
        Happened { step, group: group as u32, kind, pc, mask, other, lane, value, space: 0 }
    }
}

/// The source from which the names of an event's register and memory come.
#[derive(Clone)]
enum EventNaming {
    /// The names with their numbers, for an event that belongs to a launch.
    Numbered(Arc<EventNames>),
    /// The name of the event's register and the name of the event's memory. A name is `None` if the event does not have
    /// a register or a memory.
    Named(Option<String>, Option<String>),
}

/// One event of a run.
#[derive(Clone)]
#[pyclass(frozen, eq, hash, module = "reconverge._native", name = "Event")]
pub(crate) struct OneEvent {
    happened: Happened,
    written: EventNaming,
}

impl PartialEq for OneEvent {
    fn eq(&self, other: &OneEvent) -> bool {
        // The comparison does not include the numbers of memories, because these numbers are specific to a launch.
        Happened { space: 0, ..self.happened } == Happened { space: 0, ..other.happened }
            && self.space() == other.space()
            && self.register() == other.register()
    }
}

impl std::hash::Hash for OneEvent {
    fn hash<H: std::hash::Hasher>(&self, state: &mut H) {
        Happened { space: 0, ..self.happened }.hash(state);
    }
}

/// An event as plain Python values.
type EventState = (u64, u32, &'static str, u32, u64, u64, u8, u32, Option<String>, Option<String>);

#[pymethods]
impl OneEvent {
    #[new]
    #[pyo3(signature = (step, group, kind, pc, mask, other, lane, value, register=None, space=None))]
    #[expect(clippy::too_many_arguments, reason = "the fields of an event")]
    fn new(
        step: u64,
        group: u32,
        kind: &str,
        pc: u32,
        mask: u64,
        other: u64,
        lane: u8,
        value: u32,
        register: Option<String>,
        space: Option<String>,
    ) -> PyResult<OneEvent> {
        let known = KINDS.iter().position(|known| *known == kind);
        let kind = known.ok_or_else(|| errors::wrong(format!("unknown kind of event `{kind}`")))? as u8;
        let happened = Happened { step, group, kind, pc, mask, other, lane, value, space: 0 };
        Ok(OneEvent { happened, written: EventNaming::Named(register, space) })
    }

    #[getter]
    fn step(&self) -> u64 {
        self.happened.step
    }

    #[getter]
    fn group(&self) -> u32 {
        self.happened.group
    }

    #[getter]
    fn kind(&self) -> &'static str {
        KINDS[usize::from(self.happened.kind)]
    }

    #[getter]
    fn pc(&self) -> u32 {
        self.happened.pc
    }

    #[getter]
    fn mask(&self) -> u64 {
        self.happened.mask
    }

    #[getter]
    fn other(&self) -> u64 {
        self.happened.other
    }

    #[getter]
    fn lane(&self) -> u8 {
        self.happened.lane
    }

    #[getter]
    fn value(&self) -> u32 {
        self.happened.value
    }

    /// Returns the name of the register that a write changes.
    #[getter]
    fn register(&self) -> Option<String> {
        match &self.written {
            EventNaming::Numbered(names) if self.happened.kind == WRITE => {
                Some(register_name(&names.classes, self.happened.other as u32))
            }
            EventNaming::Numbered(_) => None,
            EventNaming::Named(register, _) => register.clone(),
        }
    }

    /// Returns the name of the memory that a load or a store accesses.
    #[getter]
    fn space(&self) -> Option<String> {
        match &self.written {
            EventNaming::Numbered(names) => {
                let place = usize::from(self.happened.space).checked_sub(1)?;
                names.spaces.get(place).cloned()
            }
            EventNaming::Named(_, space) => space.clone(),
        }
    }

    fn __repr__(&self) -> String {
        let Happened { step, group, pc, mask, other, lane, value, kind, .. } = self.happened;
        let start = format!("<Event {}: step {step}, group {group}, pc {pc:#x}", self.kind());
        match kind {
            DIVERGE => format!("{start}, lanes {mask:#x} run first, {other:#x} wait>"),
            JUMP => format!("{start}, to {other:#x}>"),
            PUSH | POP => format!("{start}>"),
            WRITE => {
                format!("{start}, lane {lane}: {} = {value:#x}>", self.register().unwrap_or_default())
            }
            LOAD | STORE => {
                let written = if kind == STORE { format!(" = {value:#x}") } else { String::new() };
                format!("{start}, lane {lane}: {} {other:#x}{written}>", self.space().unwrap_or_default())
            }
            _ => format!("{start}, lanes {mask:#x}>"),
        }
    }

    fn __reduce__<'py>(&self, py: Python<'py>) -> (Bound<'py, PyAny>, EventState) {
        let Happened { step, group, pc, mask, other, lane, value, .. } = self.happened;
        let state = (step, group, self.kind(), pc, mask, other, lane, value, self.register(), self.space());
        (py.get_type::<OneEvent>().into_any(), state)
    }
}

/// A hook, as the Python package passes the hook to this module. The parts are the function, a bit for each kind of
/// event, ranges of addresses (first, last), a list of groups, a list of registers, and a list of memories.
#[derive(FromPyObject)]
pub(crate) struct FromHook(
    Py<PyAny>,
    u16,
    Option<Vec<(u32, u32)>>,
    Option<Vec<u32>>,
    Option<Vec<u32>>,
    Option<Vec<u8>>,
);

/// A hook, the filter of the hook, and the events that the next call of the hook will pass.
struct Hook {
    function: Py<PyAny>,
    kinds: u16,
    ranges: Option<Vec<(u32, u32)>>,
    groups: Option<Vec<u32>>,
    registers: Option<Vec<u32>>,
    spaces: Option<Vec<u8>>,
    events: u64,
    columns: Columns,
}

impl Hook {
    fn takes(&self, event: &Happened) -> bool {
        self.kinds >> event.kind & 1 != 0
            && self
                .ranges
                .as_ref()
                .is_none_or(|ranges| ranges.iter().any(|(first, last)| (*first..=*last).contains(&event.pc)))
            && self.groups.as_ref().is_none_or(|groups| groups.contains(&event.group))
            && self.registers.as_ref().is_none_or(|registers| registers.contains(&(event.other as u32)))
            && self.spaces.as_ref().is_none_or(|spaces| spaces.contains(&event.space))
    }
}

/// The hooks of a run.
pub(crate) struct HookedRun {
    hooks: Vec<Hook>,
    /// The kinds of events that at least one hook takes.
    kinds: u16,
    pub(crate) names: Arc<EventNames>,
}

/// The effect of a hook's return value on the run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum HookAnswer {
    /// The run continues.
    GoOn,
    /// The hook stops the run.
    Stop,
}

impl HookedRun {
    pub(crate) fn new(hooks: Vec<FromHook>, names: Arc<EventNames>) -> HookedRun {
        let hook = |FromHook(function, kinds, ranges, groups, registers, spaces)| Hook {
            function,
            kinds,
            ranges,
            groups,
            registers,
            spaces,
            events: 0,
            columns: Columns::default(),
        };
        let hooks: Vec<Hook> = hooks.into_iter().map(hook).collect();
        let kinds = hooks.iter().fold(0, |kinds, hook| kinds | hook.kinds);
        HookedRun { hooks, kinds, names }
    }

    /// Returns whether a hook takes this event.
    pub(crate) fn wants(&self, event: &Happened) -> bool {
        self.kinds >> event.kind & 1 != 0 && self.hooks.iter().any(|hook| hook.takes(event))
    }

    /// Returns the number of events that each hook received.
    pub(crate) fn counts(&self) -> Vec<u64> {
        self.hooks.iter().map(|hook| hook.events).collect()
    }

    /// Calls the hooks that take an event.
    pub(crate) fn call(&mut self, py: Python<'_>, event: &Happened) -> PyResult<HookAnswer> {
        let mut made: Option<Bound<'_, OneEvent>> = None;
        let mut answer = HookAnswer::GoOn;
        for hook in self.hooks.iter_mut().filter(|hook| hook.takes(event)) {
            hook.events += 1;
            let made = match &made {
                Some(made) => made,
                None => {
                    let one =
                        OneEvent { happened: *event, written: EventNaming::Numbered(self.names.clone()) };
                    made.insert(Bound::new(py, one)?)
                }
            };
            if answered(py, hook.function.bind(py).call1((made,)))? == HookAnswer::Stop {
                answer = HookAnswer::Stop;
            }
        }
        Ok(answer)
    }
}

/// Converts the result of a hook to its effect on the run. The result `"stop"` and the exception `StopRun` stop the
/// run.
fn answered(py: Python<'_>, returned: PyResult<Bound<'_, PyAny>>) -> PyResult<HookAnswer> {
    let returned = match returned {
        Ok(returned) => returned,
        Err(error) => {
            let stops = py.import("reconverge.errors")?.getattr("StopRun")?;
            return if error.is_instance(py, &stops) { Ok(HookAnswer::Stop) } else { Err(error) };
        }
    };
    if returned.is_none() {
        return Ok(HookAnswer::GoOn);
    }
    match returned.cast::<PyString>() {
        Ok(text) if text == "stop" => Ok(HookAnswer::Stop),
        Ok(text) => Err(errors::hook(format!("a hook returned `{text}`: expected \"stop\" or None"))),
        Err(_) => Ok(HookAnswer::GoOn),
    }
}

/// The reason why a run with hooks ended early.
pub(crate) enum HooksEnded {
    /// The launch cannot run, or the program trapped.
    Run(Error),
    /// A hook raised an exception, or the user interrupted the run.
    Raised(PyErr),
}

impl HooksEnded {
    /// Returns the exception for this reason. If the program trapped, `failed` adds the state at the trap.
    pub(crate) fn raised(self, failed: impl FnOnce(Error) -> PyErr) -> PyErr {
        match self {
            HooksEnded::Run(error) => failed(error),
            HooksEnded::Raised(error) => error,
        }
    }
}

/// The payload of the unwinding that ends a run early. Unwinding is necessary because a sink cannot end a run in
/// another way. The unwinding does not print a message.
struct Stopped;

/// Collected events as columns.
#[derive(Default)]
struct Columns {
    step: Vec<u64>,
    group: Vec<u32>,
    kind: Vec<u8>,
    pc: Vec<u32>,
    mask: Vec<u64>,
    other: Vec<u64>,
    lane: Vec<u8>,
    value: Vec<u32>,
    /// For each access, the number of the accessed memory.
    space: Vec<u8>,
}

impl Columns {
    fn push(&mut self, event: &Happened) {
        self.step.push(event.step);
        self.group.push(event.group);
        self.kind.push(event.kind);
        self.pc.push(event.pc);
        self.mask.push(event.mask);
        self.other.push(event.other);
        self.lane.push(event.lane);
        self.value.push(event.value);
        self.space.push(event.space);
    }

    fn into_dict(self, py: Python<'_>) -> PyResult<Bound<'_, PyDict>> {
        let named = PyDict::new(py);
        named.set_item("step", column(py, self.step)?)?;
        named.set_item("group", column(py, self.group)?)?;
        named.set_item("kind", column(py, self.kind)?)?;
        named.set_item("pc", column(py, self.pc)?)?;
        named.set_item("mask", column(py, self.mask)?)?;
        named.set_item("other", column(py, self.other)?)?;
        named.set_item("lane", column(py, self.lane)?)?;
        named.set_item("value", column(py, self.value)?)?;
        named.set_item("space", column(py, self.space)?)?;
        Ok(named)
    }
}

/// The reason why a run ended early.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Cut {
    /// The run reached the maximum number of events.
    Limit,
    /// A hook stopped the run.
    Hook,
}

struct Batches {
    watched: HookedRun,
    batch: u64,
    /// Number of events that are in the next batch so far.
    waiting: u64,
    left: u64,
    steps: u64,
    /// The last instruction of each group.
    last: Vec<LastIssue>,
    failed: Option<PyErr>,
    cut: Option<Cut>,
}

impl Batches {
    fn push(&mut self, event: Happened) {
        if !self.watched.wants(&event) {
            return;
        }
        if self.left == 0 {
            self.cut = Some(Cut::Limit);
            self.hand_over();
            resume_unwind(Box::new(Stopped));
        }
        self.left -= 1;
        self.waiting += 1;
        if self.batch == 1 {
            self.hand_on(&event);
        } else {
            for hook in self.watched.hooks.iter_mut().filter(|hook| hook.takes(&event)) {
                hook.events += 1;
                hook.columns.push(&event);
            }
            if self.waiting >= self.batch {
                self.hand_over();
            }
        }
        if self.failed.is_some() || self.cut.is_some() {
            resume_unwind(Box::new(Stopped));
        }
    }

    /// Calls the hooks with one event.
    fn hand_on(&mut self, event: &Happened) {
        let look = self.waiting.is_multiple_of(LOOK);
        let called = Python::attach(|py| {
            if look {
                py.check_signals()?;
            }
            self.watched.call(py, event)
        });
        self.take(called);
    }

    /// Calls each hook with its collected events.
    fn hand_over(&mut self) {
        self.waiting = 0;
        let hooks = &mut self.watched.hooks;
        let called = Python::attach(|py| {
            py.check_signals()?;
            let mut answer = HookAnswer::GoOn;
            for hook in hooks.iter_mut().filter(|hook| !hook.columns.kind.is_empty()) {
                let columns = std::mem::take(&mut hook.columns).into_dict(py)?;
                if answered(py, hook.function.bind(py).call1((columns,)))? == HookAnswer::Stop {
                    answer = HookAnswer::Stop;
                }
            }
            Ok(answer)
        });
        self.take(called);
    }

    fn take(&mut self, called: PyResult<HookAnswer>) {
        match called {
            Ok(HookAnswer::GoOn) => {}
            Ok(HookAnswer::Stop) => self.cut = self.cut.or(Some(Cut::Hook)),
            Err(error) => self.failed = Some(error),
        }
    }
}

impl Sink for Batches {
    fn issues(&mut self, group: usize, addresses: &[u32], mask: Mask) {
        if self.last.len() <= group {
            self.last.resize(group + 1, LastIssue::new(0, 0));
        }
        if self.watched.kinds >> ISSUE & 1 == 0 {
            self.steps += addresses.len() as u64;
        } else {
            for pc in addresses {
                let step = self.steps;
                // The step counter increases before the hooks are called. If a hook stops the run, the call unwinds,
                // and the code after the call does not run.
                self.steps += 1;
                self.push(Happened::of(Event::Issue { pc: *pc, mask }, group, step, *pc));
            }
        }
        if let Some(pc) = addresses.last() {
            self.last[group] = LastIssue::new(*pc, self.steps.saturating_sub(1));
        }
    }

    fn event(&mut self, group: usize, event: Event) {
        if let Event::Issue { pc, mask } = event {
            return self.issues(group, &[pc], mask);
        }
        let step = self.steps.saturating_sub(1);
        let happened = match self.last.get_mut(group) {
            Some(last) => last.caused(&self.watched.names, event, group),
            None => Happened::of(event, group, step, 0),
        };
        self.push(happened);
    }
}

/// Runs a launch with hooks. Returns the reason why the run ended (`end`, `limit` or `stop`), and for each hook the
/// number of events that it received.
///
/// # Errors
/// See [`HooksEnded`].
pub(crate) fn observe(
    py: Python<'_>,
    session: Session,
    options: &Options,
    watched: HookedRun,
    batch: usize,
    limit: Option<u64>,
) -> Result<(&'static str, Vec<u64>), HooksEnded> {
    let recorded = if watched.kinds & DATA == 0 { Recorded::Flow } else { Recorded::Data };
    let mut batches = Batches {
        watched,
        batch: batch.max(1) as u64,
        waiting: 0,
        left: limit.unwrap_or(u64::MAX),
        steps: 0,
        last: Vec::new(),
        failed: None,
        cut: None,
    };
    let ran = py.detach(|| {
        let run = AssertUnwindSafe(|| session.run_traced(options, recorded, &mut batches).map(drop));
        let ran = match catch_unwind(run) {
            Ok(ran) => ran,
            Err(payload) if payload.is::<Stopped>() => Ok(()),
            Err(payload) => resume_unwind(payload),
        };
        if batches.failed.is_none() {
            batches.hand_over();
        }
        ran
    });
    if let Some(error) = batches.failed {
        return Err(HooksEnded::Raised(error));
    }
    ran.map_err(HooksEnded::Run)?;
    let ended = match batches.cut {
        None => "end",
        Some(Cut::Limit) => "limit",
        Some(Cut::Hook) => "stop",
    };
    Ok((ended, batches.watched.counts()))
}

/// Returns the names of the kinds of events, in the order of their numbers.
#[pyfunction]
pub(crate) fn event_kinds() -> Vec<&'static str> {
    KINDS.to_vec()
}
