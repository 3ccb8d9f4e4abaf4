//! What happens in a run, handed to a Python function in batches of columns.

use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};

use pyo3::prelude::*;
use pyo3::types::PyDict;
use reconverge_simt::{Event, Mask, Options};
use reconverge_workbench::Error;
use reconverge_workbench::Session;
use reconverge_workbench::trace::{Recorded, Sink};

use crate::array::column;
use crate::errors;

/// The kinds of events by their numbers, as `reconverge/trace.py` names them.
const ISSUE: u8 = 0;
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
/// Writes to registers and accesses to memory, which come from the reference interpreter.
const DATA: u16 = 1 << WRITE | 1 << LOAD | 1 << STORE;

/// How a run that is observed ended before its end.
pub(crate) enum Ended {
    /// The launch cannot run, or the program trapped.
    Run(Error),
    /// The function raised an exception, or the user interrupted the run.
    Raised(PyErr),
}

impl Ended {
    /// The exception; `looked` adds what is seen at a trap.
    pub(crate) fn raised(self, looked: impl FnOnce(Error) -> Error) -> PyErr {
        match self {
            Ended::Run(error) => errors::run(looked(error)),
            Ended::Raised(error) => error,
        }
    }
}

/// What unwinds a run that is to end: a sink has no other way. Nothing is reported.
struct Stopped;

/// Events as columns.
#[derive(Default)]
struct Columns {
    step: Vec<u64>,
    group: Vec<u32>,
    kind: Vec<u8>,
    pc: Vec<u32>,
    /// The lanes of an issue, a resume, a reconvergence or a trap; those of a divergence that run first.
    mask: Vec<u64>,
    /// The other lanes of a divergence, the address of a jump or of an access, the number of a register.
    other: Vec<u64>,
    lane: Vec<u8>,
    value: Vec<u32>,
}

struct Batches<'a> {
    function: &'a Py<PyAny>,
    kinds: u16,
    batch: usize,
    left: u64,
    steps: u64,
    /// By group: the address and the step of its last instruction.
    last: Vec<(u32, u64)>,
    columns: Columns,
    failed: Option<PyErr>,
    /// Whether the bound on events is reached.
    full: bool,
}

impl Batches<'_> {
    fn push(
        &mut self,
        group: usize,
        kind: u8,
        (pc, step): (u32, u64),
        [mask, other]: [u64; 2],
        lane: u8,
        value: u32,
    ) {
        if self.kinds >> kind & 1 == 0 {
            return;
        }
        if self.left == 0 {
            self.full = true;
            self.hand_over();
            resume_unwind(Box::new(Stopped));
        }
        self.left -= 1;
        let columns = &mut self.columns;
        columns.step.push(step);
        columns.group.push(group as u32);
        columns.kind.push(kind);
        columns.pc.push(pc);
        columns.mask.push(mask);
        columns.other.push(other);
        columns.lane.push(lane);
        columns.value.push(value);
        if self.columns.kind.len() >= self.batch {
            self.hand_over();
            if self.failed.is_some() {
                resume_unwind(Box::new(Stopped));
            }
        }
    }

    /// Calls the function with what has been collected.
    fn hand_over(&mut self) {
        let columns = std::mem::take(&mut self.columns);
        let called = Python::attach(|py| {
            py.check_signals()?;
            if columns.kind.is_empty() {
                return Ok(());
            }
            let named = PyDict::new(py);
            named.set_item("step", column(py, columns.step))?;
            named.set_item("group", column(py, columns.group))?;
            named.set_item("kind", column(py, columns.kind))?;
            named.set_item("pc", column(py, columns.pc))?;
            named.set_item("mask", column(py, columns.mask))?;
            named.set_item("other", column(py, columns.other))?;
            named.set_item("lane", column(py, columns.lane))?;
            named.set_item("value", column(py, columns.value))?;
            self.function.call1(py, (named,)).map(drop)
        });
        if let Err(error) = called {
            self.failed = Some(error);
        }
    }
}

impl Sink for Batches<'_> {
    fn issues(&mut self, group: usize, addresses: &[u32], mask: Mask) {
        self.last.resize(self.last.len().max(group + 1), (0, 0));
        for pc in addresses {
            let last = (*pc, self.steps);
            self.push(group, ISSUE, last, [mask.0, 0], 0, 0);
            self.steps += 1;
            self.last[group] = last;
        }
    }

    fn event(&mut self, group: usize, event: Event) {
        let last = self.last.get(group).copied().unwrap_or((0, self.steps));
        let (kind, masks, lane, value) = match event {
            Event::Issue { pc, mask } => return self.issues(group, &[pc], mask),
            Event::Diverge { taken, not } => (DIVERGE, [taken.0, not.0], 0, 0),
            Event::Resume { mask } => (RESUME, [mask.0, 0], 0, 0),
            Event::Reconverge { mask } => (RECONVERGE, [mask.0, 0], 0, 0),
            Event::Push { .. } => (PUSH, [0, 0], 0, 0),
            Event::Pop { .. } => (POP, [0, 0], 0, 0),
            Event::Jump { to } => (JUMP, [0, to.into()], 0, 0),
            Event::Write { lane, register, value } => {
                (WRITE, [Mask::only(lane).0, register.into()], lane.0, value)
            }
            Event::Load { lane, address } => (LOAD, [Mask::only(lane).0, address.into()], lane.0, 0),
            Event::Store { lane, address, value } => {
                (STORE, [Mask::only(lane).0, address.into()], lane.0, value)
            }
            Event::Trap { mask } => (TRAP, [mask.0, 0], 0, 0),
        };
        self.push(group, kind, last, masks, lane, value);
    }
}

/// Runs a launch and hands what happens to a function; gives whether the run came to its end within the bound.
///
/// # Errors
/// See [`Ended`].
pub(crate) fn observe(
    py: Python<'_>,
    session: Session,
    options: &Options,
    function: &Py<PyAny>,
    kinds: u16,
    batch: usize,
    limit: Option<u64>,
) -> Result<bool, Ended> {
    let recorded = if kinds & DATA == 0 { Recorded::Flow } else { Recorded::Data };
    let mut batches = Batches {
        function,
        kinds,
        batch: batch.max(1),
        left: limit.unwrap_or(u64::MAX),
        steps: 0,
        last: Vec::new(),
        columns: Columns::default(),
        failed: None,
        full: false,
    };
    let ran = py.detach(|| {
        let run = AssertUnwindSafe(|| session.run_traced(options, recorded, &mut batches).map(drop));
        let ran = match catch_unwind(run) {
            Ok(ran) => ran,
            Err(payload) if payload.is::<Stopped>() => return Ok(()),
            Err(payload) => resume_unwind(payload),
        };
        batches.hand_over();
        ran
    });
    match (batches.failed, ran) {
        (Some(error), _) => Err(Ended::Raised(error)),
        (None, Err(error)) => Err(Ended::Run(error)),
        (None, Ok(())) => Ok(!batches.full),
    }
}
