//! A launch that is stepped.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use numpy::{IntoPyArray, PyReadonlyArray1};
use pyo3::prelude::*;
use pyo3::types::PyDict;
use reconverge_simt::{Lane, Mask, Statistics, Step, Why};
use reconverge_workbench::session::{self, GroupState, Register, SpaceOf, Stepping, Stop, Stride};

use crate::array::to_numpy;
use crate::errors::{run, wrong};

/// A launch while it is stepped.
#[pyclass(frozen, module = "reconverge._native")]
pub(crate) struct Session {
    stepping: Mutex<Stepping>,
    /// The launch that snapshots belong to.
    launch: Arc<()>,
}

/// A place in a launch to come back to.
#[pyclass(frozen, module = "reconverge._native")]
pub(crate) struct Snapshot {
    place: Mutex<session::Snapshot>,
    launch: Arc<()>,
}

impl Session {
    pub(crate) fn new(stepping: Stepping) -> Session {
        Session { stepping: Mutex::new(stepping), launch: Arc::new(()) }
    }

    fn lock(&self) -> MutexGuard<'_, Stepping> {
        self.stepping.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn group(&self, stepping: &Stepping, group: usize) -> PyResult<()> {
        if group >= stepping.groups() {
            return Err(wrong(format!(
                "group {group}: the launch has {} groups, from 0 on",
                stepping.groups()
            )));
        }
        Ok(())
    }

    fn register(&self, stepping: &Stepping, name: &str, number: usize, channel: usize) -> PyResult<Register> {
        let classes = stepping.registers();
        let known = classes.iter().find(|known| known.name == name);
        let known = known.ok_or_else(|| wrong(format!("no registers are called {name}")))?;
        Ok(Register { class: known.name, number, channel })
    }
}

/// The lane number in a group.
fn lane(number: usize) -> PyResult<Lane> {
    match u8::try_from(number) {
        Ok(number) if number < 64 => Ok(Lane(number)),
        _ => Err(wrong(format!("lane {number}: a group has at most 64, from 0 on"))),
    }
}

/// Why a lane runs or does not: the letter of traces, the word, and its depth or address.
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

/// A row of the machine's bookkeeping: what it is, its address, lanes and count.
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

    /// The first lane of a group in the launch, and one past the last.
    fn lanes(&self, group: usize) -> PyResult<(usize, usize)> {
        let stepping = self.lock();
        self.group(&stepping, group)?;
        let lanes = stepping.lanes(group);
        Ok((lanes.start, lanes.end))
    }

    /// The next instruction of a group, and its lanes.
    fn issue(&self, group: usize) -> Option<(u32, u64)> {
        self.lock().issue(group).map(|issue| (issue.pc, issue.mask.0))
    }

    /// Why each lane of a group that runs takes part in its next instruction, or does not.
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

    /// The classes of registers: name, how many, channels.
    fn registers(&self) -> Vec<(&'static str, usize, &'static str)> {
        let classes = self.lock().registers().into_iter();
        classes.map(|class| (class.name, class.count, class.channels)).collect()
    }

    /// A register of a group that runs, by lane; `None` where there is none.
    fn read<'py>(
        &self,
        py: Python<'py>,
        group: usize,
        name: &str,
        number: usize,
        channel: usize,
    ) -> PyResult<Option<Bound<'py, PyAny>>> {
        let stepping = self.lock();
        let register = self.register(&stepping, name, number, channel)?;
        Ok(stepping.read(group, register).map(|values| values.into_pyarray(py).into_any()))
    }

    /// Changes a register in the lanes of a mask; gives how many lanes of it could not be changed.
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
        Ok(kept.count())
    }

    /// The memories: name, and what has one of its own.
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
        Ok(bytes.into_pyarray(py).into_any())
    }

    fn store(
        &self,
        space: &str,
        group: usize,
        lane_number: usize,
        address: u32,
        bytes: PyReadonlyArray1<'_, u8>,
    ) -> PyResult<bool> {
        Ok(self.lock().store(space, group, lane(lane_number)?, address, bytes.as_slice()?))
    }

    /// The parts of a space that may be accessed: name, first byte, one past the last.
    fn buffers(&self, space: &str, group: usize, lane_number: usize) -> PyResult<Vec<(String, u64, u64)>> {
        let buffers = self.lock().buffers(space, group, lane(lane_number)?).into_iter();
        Ok(buffers.map(|(name, range)| (name, range.start, range.end)).collect())
    }

    /// Group instructions, lane instructions, divergent branches so far.
    fn statistics(&self) -> (u64, u64, u64) {
        let Statistics { instructions, lane_instructions, divergent_branches } = self.lock().statistics();
        (instructions, lane_instructions, divergent_branches)
    }

    /// Steps a group so many times, or until the next is one that a lane takes part in; gives whether it has ended.
    #[pyo3(signature = (group, times=1, lane_number=None))]
    fn step(&self, py: Python<'_>, group: usize, times: u64, lane_number: Option<usize>) -> PyResult<bool> {
        let stride = match lane_number {
            None => Stride::Instruction,
            Some(number) => Stride::Lane(lane(number)?),
        };
        self.group(&self.lock(), group)?;
        let stepped = py.detach(|| {
            let mut stepping = self.lock();
            for _ in 0..times {
                if stepping.step(group, stride, &mut |_, _| {})? == Step::Done {
                    return Ok(true);
                }
            }
            Ok(false)
        });
        stepped.map_err(run)
    }

    /// Goes on until the next instruction is at one of these addresses (any address where there are none), of this group,
    /// and, if asked for, with a part of its lanes only; gives why it stopped.
    #[pyo3(signature = (addresses, budget, group=None, parted=false))]
    fn run_until(
        &self,
        py: Python<'_>,
        addresses: Vec<u32>,
        budget: u64,
        group: Option<usize>,
        parted: bool,
    ) -> PyResult<&'static str> {
        let stopped = py.detach(|| {
            let fits = |stepping: &Stepping, current: usize| {
                let Some(issue) = stepping.issue(current) else { return false };
                let all = Mask::first(stepping.lanes(current).len());
                group.is_none_or(|group| group == current)
                    && (addresses.is_empty() || addresses.contains(&issue.pc))
                    && (!parted || issue.mask.any() && issue.mask != all)
            };
            let asked = !addresses.is_empty() || group.is_some() || parted;
            let mut predicate = |stepping: &Stepping, current: usize| asked && fits(stepping, current);
            self.lock().run_until(budget, &mut predicate, &mut |_, _| {})
        });
        Ok(match stopped.map_err(run)? {
            Stop::Predicate => "there",
            Stop::Budget => "budget",
            Stop::End => "end",
        })
    }

    fn snapshot(&self) -> Snapshot {
        Snapshot { place: Mutex::new(self.lock().snapshot()), launch: self.launch.clone() }
    }

    /// Goes to a place of this launch.
    ///
    /// # Errors
    /// The place is of another launch.
    fn restore(&self, snapshot: &Snapshot) -> PyResult<()> {
        if !Arc::ptr_eq(&self.launch, &snapshot.launch) {
            return Err(wrong("this snapshot is of another session: restore it there"));
        }
        let place = snapshot.place.lock().unwrap_or_else(PoisonError::into_inner);
        self.lock().restore(&place);
        Ok(())
    }

    /// What is left so far; complete at the end.
    fn outputs<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        let outputs = self.lock().outcome().outputs();
        let named = PyDict::new(py);
        for (name, array) in outputs {
            named.set_item(name, to_numpy(py, array)?)?;
        }
        Ok(named)
    }
}
