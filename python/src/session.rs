//! A launch that is executed step by step.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use numpy::PyReadonlyArray1;
use pyo3::prelude::*;
use pyo3::types::PyDict;
use reconverge_simt::{Event, Lane, Mask, Watch, Why};
use reconverge_workbench::array::{Array, Dtype};
use reconverge_workbench::session::{self, GroupState, Register, SpaceOf, Stepping, Stop, Stride};

use crate::array::to_numpy;
use crate::errors::wrong;
use crate::observe::{FromHook, Happened, HookAnswer, HookedRun, LastIssue};
use crate::prepared::Core;

/// A launch that is executed step by step.
#[pyclass(frozen, module = "reconverge._native")]
pub(crate) struct Session {
    stepping: Mutex<Stepping>,
    /// The launch to which the session and its snapshots belong.
    launch: Arc<Core>,
    /// Whether the user or a hook has changed the state.
    changed: AtomicBool,
    /// Whether a hook of the session runs at present. A hook may read and change the state, but may not step the
    /// session.
    observed: AtomicBool,
    /// The step before which a hook stopped the session, or [`NEVER`]. The next run begins with this step. The next run
    /// does not call the hooks again for the issue of this step.
    stopped: AtomicU64,
    /// Number of instructions that trapped. After a trap, the trapping instruction remains the next instruction. The
    /// machine counts this instruction each time that the session executes it.
    trapped: AtomicU64,
}

/// Value of `stopped` if no hook stopped the session.
const NEVER: u64 = u64::MAX;

/// A position in a launch. The session can be restored to this position.
#[pyclass(frozen, module = "reconverge._native")]
pub(crate) struct Snapshot {
    place: Mutex<session::Snapshot>,
    launch: Arc<Core>,
    changed: bool,
    trapped: u64,
}

/// Number of steps between two checks for signals.
const LOOK: u64 = 1 << 16;

/// The reason why a series of steps ended. No hook is called during such a series.
enum Stretch {
    /// A hook takes the issue of the next instruction.
    Before(Happened),
    /// The last instruction caused these events, which hooks take.
    After(Vec<Happened>),
    /// The series of steps is so long that signals must be checked.
    Long,
    /// The launch has ended.
    End,
}

impl Session {
    pub(crate) fn new(stepping: Stepping, launch: Arc<Core>) -> Session {
        let stepping = Mutex::new(stepping);
        Session {
            stepping,
            launch,
            changed: AtomicBool::new(false),
            observed: AtomicBool::new(false),
            stopped: AtomicU64::new(NEVER),
            trapped: AtomicU64::new(0),
        }
    }

    /// Returns the number of instructions that have completed. This number is also the step of the next instruction.
    fn place(&self, stepping: &Stepping) -> u64 {
        stepping.statistics().instructions.saturating_sub(self.trapped.load(Ordering::Relaxed))
    }

    /// Executes the next instruction of the launch. This instruction belongs to the group `current`.
    fn execute(
        &self,
        stepping: &mut Stepping,
        current: usize,
        observer: &mut dyn FnMut(usize, Event),
    ) -> Result<(), reconverge_workbench::Error> {
        let before = stepping.statistics().instructions;
        let executed = stepping.step(current, Stride::Instruction, observer);
        if executed.is_err() {
            let counted = stepping.statistics().instructions.saturating_sub(before);
            self.trapped.fetch_add(counted, Ordering::Relaxed);
        }
        executed.map(drop)
    }

    /// Executes the next instruction of the launch. With `asked`, executes instructions up to and including the next
    /// instruction of the group `asked`. With `followed`, executes instructions until the lane `followed` is active in
    /// the next instruction. Returns `false` if the launch or the group has ended.
    fn execute_of(
        &self,
        stepping: &mut Stepping,
        asked: Option<usize>,
        followed: Option<Lane>,
    ) -> Result<bool, reconverge_workbench::Error> {
        loop {
            if asked.is_some_and(|group| stepping.state(group) == GroupState::Ended) {
                return Ok(false);
            }
            let Some(current) = stepping.current() else { return Ok(false) };
            self.execute(stepping, current, &mut |_, _| {})?;
            let next = match asked {
                Some(group) if group != current => continue,
                Some(group) if stepping.state(group) != GroupState::Running => return Ok(false),
                Some(group) => group,
                None => match stepping.current() {
                    Some(next) => next,
                    None => return Ok(false),
                },
            };
            let takes_part = |lane| stepping.issue(next).is_some_and(|issue| issue.mask.has(lane));
            if followed.is_none_or(takes_part) {
                return Ok(true);
            }
        }
    }

    fn lock(&self) -> MutexGuard<'_, Stepping> {
        self.stepping.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn group(&self, stepping: &Stepping, group: usize) -> PyResult<()> {
        if group >= stepping.groups() {
            return Err(wrong(format!(
                "group {group}: the launch has {} groups, numbered from 0",
                stepping.groups()
            )));
        }
        Ok(())
    }

    fn register(&self, stepping: &Stepping, name: &str, number: usize, channel: usize) -> PyResult<Register> {
        let classes = stepping.registers();
        let known = classes.iter().find(|known| known.name == name);
        let known = known.ok_or_else(|| wrong(format!("unknown registers `{name}`")))?;
        Ok(Register { class: known.name, number, channel })
    }

    /// Returns an error if the caller is a hook of the session, because a hook may not step the session.
    fn may_step(&self) -> PyResult<()> {
        match self.observed.load(Ordering::Relaxed) {
            true => Err(wrong(
                "a hook cannot step the session that calls it, but it can read and change the state",
            )),
            false => Ok(()),
        }
    }

    /// Executes steps until a hook takes an event. If `asked` is the current step, the hooks have already received the
    /// issue of the instruction of this step.
    fn stretch(
        &self,
        watched: &HookedRun,
        asked: Option<u64>,
    ) -> Result<Stretch, reconverge_workbench::Error> {
        let mut stepping = self.lock();
        for _ in 0..LOOK {
            let Some(group) = stepping.current() else { return Ok(Stretch::End) };
            let step = self.place(&stepping);
            let issue = stepping.issue(group);
            if let Some(issue) = issue
                && asked != Some(step)
            {
                let event = Event::Issue { pc: issue.pc, mask: issue.mask };
                let before = Happened::of(event, group, step, issue.pc);
                if watched.wants(&before) {
                    return Ok(Stretch::Before(before));
                }
            }
            let mut events = Vec::new();
            let mut last = LastIssue::new(issue.map_or(0, |issue| issue.pc), step);
            self.execute(&mut stepping, group, &mut |of, event| match event {
                Event::Issue { pc, .. } => last = LastIssue::new(pc, step),
                event => {
                    let event = last.caused(&watched.names, event, of);
                    if watched.wants(&event) {
                        events.push(event);
                    }
                }
            })?;
            if !events.is_empty() {
                return Ok(Stretch::After(events));
            }
            if asked.is_some() {
                return Ok(Stretch::Long);
            }
        }
        Ok(Stretch::Long)
    }

    /// Runs the session with hooks, until the launch ends or a hook stops the session.
    fn run_watched(&self, py: Python<'_>, watched: &mut HookedRun) -> PyResult<&'static str> {
        let mut asked = Some(self.stopped.swap(NEVER, Ordering::Relaxed)).filter(|step| *step != NEVER);
        loop {
            let stretch =
                py.detach(|| self.stretch(watched, asked)).map_err(|error| self.launch.failed(error))?;
            asked = None;
            match stretch {
                Stretch::End => return Ok("end"),
                Stretch::Long => py.check_signals()?,
                Stretch::Before(event) => {
                    if watched.call(py, &event)? == HookAnswer::Stop {
                        self.stopped.store(event.step, Ordering::Relaxed);
                        return Ok("stop");
                    }
                    asked = Some(event.step);
                }
                Stretch::After(events) => {
                    for event in events {
                        if watched.call(py, &event)? == HookAnswer::Stop {
                            return Ok("stop");
                        }
                    }
                }
            }
        }
    }
}

/// Returns the lane with this number in a group.
fn lane(number: usize) -> PyResult<Lane> {
    match u8::try_from(number) {
        Ok(number) if number < 64 => Ok(Lane(number)),
        _ => Err(wrong(format!("lane {number}: expected 0 to 63"))),
    }
}

/// Returns the reason why a lane runs or waits. The parts are the letter that traces use, the name of the reason, and a
/// number. The number is the depth of a branch or the address at which a parked lane resumes.
fn in_words(why: Why) -> (char, &'static str, Option<u32>) {
    let (word, number) = match why {
        Why::Active => ("active", None),
        Why::Branch { depth } => ("branch", Some(depth)),
        Why::Break => ("break", None),
        Why::Continue => ("continue", None),
        Why::Parked { pc } => ("parked", Some(pc)),
        Why::Uncovered => ("uncovered", None),
        Why::Exited => ("exited", None),
    };
    (why.letter(), word, number)
}

/// A row of the machine's flow state. Its parts are the kind, address, lanes and count.
type Row = (&'static str, Option<u32>, Option<u64>, Option<i64>);

#[pymethods]
impl Session {
    fn groups(&self) -> usize {
        self.lock().groups()
    }

    fn current(&self) -> Option<usize> {
        self.lock().current()
    }

    fn state(&self, group: usize) -> PyResult<&'static str> {
        let stepping = self.lock();
        self.group(&stepping, group)?;
        Ok(match stepping.state(group) {
            GroupState::Waiting => "waiting",
            GroupState::Running => "running",
            GroupState::Ended => "ended",
        })
    }

    /// Returns the range of a group's lanes in the launch. The range consists of the index of the first lane, and the
    /// index after the last lane.
    fn lanes(&self, group: usize) -> PyResult<(usize, usize)> {
        let stepping = self.lock();
        self.group(&stepping, group)?;
        let lanes = stepping.lanes(group);
        Ok((lanes.start, lanes.end))
    }

    /// Returns the address of a group's next instruction, and the lanes that execute this instruction.
    fn issue(&self, group: usize) -> Option<(u32, u64)> {
        self.lock().issue(group).map(|issue| (issue.pc, issue.mask.0))
    }

    /// Returns, for each lane of a running group, the reason why the lane is active or inactive in the next
    /// instruction.
    fn why(&self, group: usize) -> Vec<(char, &'static str, Option<u32>)> {
        let stepping = self.lock();
        let lanes = stepping.lanes(group).len().min(64) as u8;
        (0..lanes).filter_map(|lane| stepping.why(group, Lane(lane)).map(in_words)).collect()
    }

    fn stack(&self, group: usize) -> Vec<Row> {
        let rows = self.lock().stack(group).into_iter();
        rows.map(|row| (row.kind, row.pc, row.mask.map(|mask| mask.0), row.count)).collect()
    }

    fn depths(&self, group: usize) -> Vec<(&'static str, u32, Option<u32>)> {
        let depths = self.lock().depths(group).into_iter();
        depths.map(|depth| (depth.of, depth.used, depth.room)).collect()
    }

    /// Returns the register classes of the machine. Each class has a name, a number of registers, and channels.
    fn registers(&self) -> Vec<(&'static str, usize, &'static str)> {
        let classes = self.lock().registers().into_iter();
        classes.map(|class| (class.name, class.count, class.channels)).collect()
    }

    /// Returns `count` registers of a group that is running or has ended, as an array of shape (registers, lanes,
    /// channels). Returns `None` if the group does not have one of these registers.
    fn read<'py>(
        &self,
        py: Python<'py>,
        group: usize,
        name: &str,
        first: usize,
        count: usize,
        channels: Vec<usize>,
    ) -> PyResult<Option<Bound<'py, PyAny>>> {
        let stepping = self.lock();
        let lanes = stepping.lanes(group).len();
        let (each, row) = (channels.len(), lanes * channels.len());
        let mut words = vec![0u32; count * row];
        for number in 0..count {
            for (column, channel) in channels.iter().enumerate() {
                let register = self.register(&stepping, name, first + number, *channel)?;
                let Some(values) = stepping.read(group, register) else { return Ok(None) };
                for (lane, value) in values.into_iter().take(lanes).enumerate() {
                    words[number * row + lane * each + column] = value;
                }
            }
        }
        let array = Array::from_words(Dtype::U32, vec![count, lanes, each], words);
        to_numpy(py, array).map(Some)
    }

    /// Changes a register in all lanes of a mask. Returns the number of lanes whose register could not be changed.
    fn write(
        &self,
        group: usize,
        name: &str,
        number: usize,
        channel: usize,
        mask: u64,
        values: PyReadonlyArray1<'_, u32>,
    ) -> PyResult<usize> {
        let mut stepping = self.lock();
        let register = self.register(&stepping, name, number, channel)?;
        let values = values.as_slice()?;
        let kept = Mask(mask).lanes().filter(|lane| {
            let value = values.get(lane.index());
            !value.is_some_and(|value| stepping.set(group, register, *lane, *value))
        });
        let kept = kept.count();
        self.changed.store(true, Ordering::Relaxed);
        Ok(kept)
    }

    /// Returns the name of each memory space and a second string: `launch` if the space exists once, `group` if each
    /// group has a separate space, `lane` if each lane has a separate space.
    fn spaces(&self) -> Vec<(&'static str, &'static str)> {
        let spaces = self.lock().spaces().into_iter();
        let of = |of| match of {
            SpaceOf::Launch => "launch",
            SpaceOf::Group => "group",
            SpaceOf::Lane => "lane",
        };
        spaces.map(|space| (space.name, of(space.of))).collect()
    }

    fn memory<'py>(
        &self,
        py: Python<'py>,
        space: &str,
        group: usize,
        lane_number: usize,
        address: u32,
        count: usize,
    ) -> PyResult<Bound<'py, PyAny>> {
        let bytes = self.lock().memory(space, group, lane(lane_number)?, address, count);
        to_numpy(py, Array { dtype: Dtype::U8, shape: vec![bytes.len()], bytes })
    }

    fn store(
        &self,
        space: &str,
        group: usize,
        lane_number: usize,
        address: u32,
        bytes: PyReadonlyArray1<'_, u8>,
    ) -> PyResult<bool> {
        let stored = self.lock().store(space, group, lane(lane_number)?, address, bytes.as_slice()?);
        self.changed.fetch_or(stored, Ordering::Relaxed);
        Ok(stored)
    }

    /// Returns the accessible parts of a memory space. Each tuple has the name of a part, the address of the first
    /// byte, and the address after the last byte.
    fn buffers(&self, space: &str, group: usize, lane_number: usize) -> PyResult<Vec<(String, u64, u64)>> {
        let buffers = self.lock().buffers(space, group, lane(lane_number)?).into_iter();
        Ok(buffers.map(|(name, range)| (name, range.start, range.end)).collect())
    }

    /// Returns the number of instructions that have completed. This number does not include an instruction that
    /// trapped.
    fn instructions(&self) -> u64 {
        self.place(&self.lock())
    }

    /// Executes `times` steps of a group. Without a group, executes `times` steps of the launch, in the launch's order
    /// of groups. With a lane, each step continues until this lane is active in the next instruction. Returns `true` if
    /// the group or the launch has not ended.
    #[pyo3(signature = (times, group=None, lane_number=None))]
    fn step(
        &self,
        py: Python<'_>,
        times: u64,
        group: Option<usize>,
        lane_number: Option<usize>,
    ) -> PyResult<bool> {
        self.may_step()?;
        let followed = lane_number.map(lane).transpose()?;
        if let Some(group) = group {
            self.group(&self.lock(), group)?;
        }
        let stepped = py.detach(|| {
            let mut stepping = self.lock();
            for _ in 0..times {
                if !self.execute_of(&mut stepping, group, followed)? {
                    return Ok(false);
                }
            }
            Ok(match group {
                Some(group) => stepping.state(group) != GroupState::Ended,
                None => stepping.current().is_some(),
            })
        });
        stepped.map_err(|error| self.launch.failed(error))
    }

    /// Runs the launch to its end, and passes events to hooks one at a time. Returns `end` or `stop`, and the number of
    /// events that each hook received. A hook for the issue of an instruction is called before the instruction runs. A
    /// hook for any other event is called after the instruction that causes the event.
    fn observe(&self, py: Python<'_>, hooks: Vec<FromHook>) -> PyResult<(&'static str, Vec<u64>)> {
        self.may_step()?;
        let mut watched = HookedRun::new(hooks, self.launch.names()?);
        self.observed.store(true, Ordering::Relaxed);
        let ended = self.run_watched(py, &mut watched);
        self.observed.store(false, Ordering::Relaxed);
        Ok((ended?, watched.counts()))
    }

    /// Returns whether the user or a hook has changed the state.
    fn changed(&self) -> bool {
        self.changed.load(Ordering::Relaxed)
    }

    /// Runs until the launch has completed `instructions` instructions.
    fn go_to(&self, py: Python<'_>, instructions: u64) -> PyResult<()> {
        self.may_step()?;
        let gone = py.detach(|| {
            let mut stepping = self.lock();
            let left = instructions.saturating_sub(self.place(&stepping));
            stepping.advance(left, Watch::Nothing)
        });
        gone.map_err(|error| self.launch.failed(error))
    }

    /// Returns a new session at the same position of the same launch.
    fn copy(&self) -> Session {
        Session {
            stepping: Mutex::new(self.lock().copy()),
            launch: self.launch.clone(),
            changed: AtomicBool::new(self.changed()),
            observed: AtomicBool::new(false),
            stopped: AtomicU64::new(self.stopped.load(Ordering::Relaxed)),
            trapped: AtomicU64::new(self.trapped.load(Ordering::Relaxed)),
        }
    }

    /// Runs until the next instruction meets all conditions. The address of the instruction must be in the list, unless
    /// the list is empty. If `group` has a value, the instruction must belong to this group. If `parted` is set, some
    /// lanes of the instruction's group must be active and some must be inactive. Returns the reason for the stop.
    #[pyo3(signature = (addresses, budget, group=None, parted=false))]
    fn run_until(
        &self,
        py: Python<'_>,
        addresses: Vec<u32>,
        budget: u64,
        group: Option<usize>,
        parted: bool,
    ) -> PyResult<&'static str> {
        self.may_step()?;
        let stopped = py.detach(|| {
            let fits = |stepping: &Stepping, current: usize| {
                let Some(issue) = stepping.issue(current) else { return false };
                let all = Mask::first(stepping.lanes(current).len());
                group.is_none_or(|group| group == current)
                    && (addresses.is_empty() || addresses.contains(&issue.pc))
                    && (!parted || issue.mask.any() && issue.mask != all)
            };
            let asked = !addresses.is_empty() || group.is_some() || parted;
            let mut stepping = self.lock();
            // Number of instructions that the launch executed before the next instruction. The next instruction may
            // trap.
            let mut before = stepping.statistics().instructions;
            let mut predicate = |stepping: &Stepping, current: usize| {
                before = stepping.statistics().instructions;
                asked && fits(stepping, current)
            };
            let stopped = stepping.run_until(budget, &mut predicate, &mut |_, _| {});
            if stopped.is_err() {
                let counted = stepping.statistics().instructions.saturating_sub(before);
                self.trapped.fetch_add(counted, Ordering::Relaxed);
            }
            stopped
        });
        Ok(match stopped.map_err(|error| self.launch.failed(error))? {
            Stop::Predicate => "there",
            Stop::Budget => "budget",
            Stop::End => "end",
        })
    }

    fn snapshot(&self) -> Snapshot {
        Snapshot {
            place: Mutex::new(self.lock().snapshot()),
            launch: self.launch.clone(),
            changed: self.changed(),
            trapped: self.trapped.load(Ordering::Relaxed),
        }
    }

    /// Restores the session to a position. The position must be a position of this launch.
    ///
    /// # Errors
    /// Fails if the position belongs to another launch.
    fn restore(&self, snapshot: &Snapshot) -> PyResult<()> {
        if !Arc::ptr_eq(&self.launch, &snapshot.launch) {
            return Err(wrong("the snapshot belongs to another session; restore it there"));
        }
        self.may_step()?;
        let place = snapshot.place.lock().unwrap_or_else(PoisonError::into_inner);
        self.lock().restore(&place);
        self.changed.store(snapshot.changed, Ordering::Relaxed);
        self.trapped.store(snapshot.trapped, Ordering::Relaxed);
        Ok(())
    }

    /// Returns the outputs so far. The outputs are complete when the launch has ended.
    fn outputs<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        let outputs = self.lock().outcome().outputs();
        let named = PyDict::new(py);
        for (name, array) in outputs {
            named.set_item(name, to_numpy(py, array)?)?;
        }
        Ok(named)
    }
}
