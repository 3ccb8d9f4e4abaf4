//! A launch that runs step by step.

use std::ops::Range;

use reconverge_simt::{Depth, Issue, Lane, StackRow, Statistics};
use reconverge_workbench::listing::Lines;
use reconverge_workbench::result::RunResult;
use reconverge_workbench::session::{Register, RegisterClass, Snapshot, Space, Stepping, Stride};

use super::error::Error;
use super::file::{Program, TextOptions};
use super::launch::{Launch, Outcome, RunOptions};
use super::mirror::mirror;

mirror! {
    /// The reason why a lane executes or does not execute the next instruction of its group.
    #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
    #[non_exhaustive]
    pub enum Why {
        /// The lane is active: it executes the next instruction.
        Active,
        /// A branch deactivated the lane.
        Branch {
            /// Number of control-flow constructs that the group has entered after the branch.
            depth: u32,
        },
        /// The lane left a loop.
        Break,
        /// The lane waits for the next iteration of a loop.
        Continue,
        /// The lane does not run now. The lane continues later at an address of the program.
        Parked {
            /// Address at which the lane resumes.
            pc: u32,
        },
        /// The lane is outside the primitive or domain, or was killed.
        Uncovered,
        /// The lane has finished.
        Exited,
    }
    = reconverge_simt::Why
}

/// The reason why [`Session::run_until`] stopped.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Stop {
    /// The predicate returned `true`.
    Predicate,
    /// The session has executed the maximum number of instructions.
    Budget,
    /// The launch has ended.
    End,
}

/// A launch that has stopped between two instructions.
///
/// A launch consists of *groups*. The lanes of a group share a program counter. Instructions execute in one fixed
/// order, group after group. At the end, the results equal the results of [`Launch::run`](crate::Launch::run).
pub struct Session {
    stepping: Stepping,
    program: Program,
    lines: Lines,
}

impl Launch {
    /// Returns a session at the start of the launch, before the first instruction.
    ///
    /// # Errors
    /// Returns [`Error::Launch`] if the launch does not fit the program.
    pub fn session(&self, options: &RunOptions) -> Result<Session, Error> {
        let options = self.file.options(&options.options())?;
        Session::new(self.prepare()?.start(&options)?, &self.program)
    }
}

impl Session {
    pub(crate) fn new(stepping: Stepping, program: &Program) -> Result<Session, Error> {
        let lines = Lines::of(program.lines(&TextOptions::default())?);
        Ok(Session { stepping, program: program.clone(), lines })
    }

    /// Returns the program.
    pub fn program(&self) -> &Program {
        &self.program
    }

    /// Returns the number of groups.
    pub fn groups(&self) -> usize {
        self.stepping.groups()
    }

    /// Returns the group that executes the next instruction of the launch, or `None` at the end of the launch.
    pub fn current(&self) -> Option<usize> {
        self.stepping.current()
    }

    /// Returns the range of a group's lanes within the launch.
    pub fn lanes(&self, group: usize) -> Range<usize> {
        self.stepping.lanes(group)
    }

    /// Returns the next instruction of a group and the lanes that execute this instruction. Returns `None` if the group
    /// has not started or has ended.
    pub fn issue(&self, group: usize) -> Option<Issue> {
        self.stepping.issue(group)
    }

    /// Returns the text of the instruction at an address. If no instruction starts at the address, the text is empty.
    pub fn code(&self, address: u32) -> String {
        self.lines.code(address)
    }

    /// Returns the reason why a lane executes or does not execute the next instruction of its group.
    pub fn why(&self, group: usize, lane: Lane) -> Option<Why> {
        self.stepping.why(group, lane).map(Into::into)
    }

    /// Returns the stack of a group as rows, innermost entry first.
    pub fn stack(&self, group: usize) -> Vec<StackRow> {
        self.stepping.stack(group)
    }

    /// Returns the current depths of a group's stacks and counters.
    pub fn depths(&self, group: usize) -> Vec<Depth> {
        self.stepping.depths(group)
    }

    /// Returns the register classes of the machine.
    pub fn registers(&self) -> Vec<RegisterClass> {
        self.stepping.registers()
    }

    /// Returns the register with this name: `temp0.x`, `R1.w`, `$r2`.
    pub fn register(&self, name: &str) -> Option<Register> {
        self.registers().into_iter().find_map(|class| {
            let rest = name.strip_prefix(class.name)?;
            let (number, channel) = match rest.split_once('.') {
                None => (rest, 0),
                Some((number, channel)) => (number, class.channels.find(channel)?),
            };
            let number = number.parse().ok().filter(|number| *number < class.count)?;
            Some(Register { class: class.name, number, channel })
        })
    }

    /// Returns the bits of a register, one word per lane of the group. Returns `None` if the group does not have the
    /// register at this time.
    pub fn read(&self, group: usize, register: Register) -> Option<Vec<u32>> {
        self.stepping.read(group, register)
    }

    /// Changes a register of one lane.
    ///
    /// # Errors
    /// Returns [`Error::Unchangeable`] if the register does not exist in this group or cannot be changed.
    pub fn change(&mut self, group: usize, register: Register, lane: Lane, bits: u32) -> Result<(), Error> {
        match self.stepping.set(group, register, lane, bits) {
            true => Ok(()),
            false => Err(Error::Unchangeable { what: format!("{}{}", register.class, register.number) }),
        }
    }

    /// Returns the memory spaces of the launch.
    pub fn spaces(&self) -> Vec<Space> {
        self.stepping.spaces()
    }

    /// Returns up to `count` bytes of a memory space, starting at `address`. If each group or lane has a separate
    /// memory, `group` and `lane` select the memory.
    pub fn memory(&self, space: &str, group: usize, lane: Lane, address: u32, count: usize) -> Vec<u8> {
        self.stepping.memory(space, group, lane, address, count)
    }

    /// Changes bytes of a memory space, starting at an address. The function changes either all of these bytes or no
    /// byte.
    ///
    /// # Errors
    /// Returns [`Error::Unchangeable`] if the memory does not exist in this group or cannot be changed.
    pub fn store(
        &mut self,
        space: &str,
        group: usize,
        lane: Lane,
        address: u32,
        bytes: &[u8],
    ) -> Result<(), Error> {
        match self.stepping.store(space, group, lane, address, bytes) {
            true => Ok(()),
            false => Err(Error::Unchangeable { what: format!("{space} at {address:#x}") }),
        }
    }

    /// Executes the next instruction of the launch. Returns the group that executed the instruction. Returns `None` at
    /// the end of the launch.
    ///
    /// # Errors
    /// Returns [`Error::Trap`] if the instruction traps. In this case, the launch is in the state before the trapping
    /// instruction.
    pub fn step(&mut self) -> Result<Option<usize>, Error> {
        let Some(group) = self.current() else { return Ok(None) };
        self.stepping.step(group, Stride::Instruction, &mut |_, _| {})?;
        Ok(Some(group))
    }

    /// Executes instructions until `lane` is active in the next instruction of `group`. The function executes at least
    /// one instruction of `group`. Returns the group's next instruction, or `None` if the group ended.
    ///
    /// # Errors
    /// See [`Session::step`].
    pub fn step_lane(&mut self, group: usize, lane: Lane) -> Result<Option<Issue>, Error> {
        self.stepping.step(group, Stride::Lane(lane), &mut |_, _| {})?;
        Ok(self.issue(group).filter(|issue| issue.mask.has(lane)))
    }

    /// Executes up to `budget` instructions. Before each instruction except the first, calls `predicate`, and stops if
    /// `predicate` returns `true`. The arguments of `predicate` are the launch and the group of the next instruction.
    ///
    /// # Errors
    /// See [`Session::step`].
    pub fn run_until(
        &mut self,
        budget: u64,
        mut predicate: impl FnMut(&Session, usize) -> bool,
    ) -> Result<Stop, Error> {
        for executed in 0..=budget {
            let Some(group) = self.current() else { return Ok(Stop::End) };
            if executed > 0 && predicate(self, group) {
                return Ok(Stop::Predicate);
            }
            if executed < budget {
                self.step()?;
            }
        }
        Ok(Stop::Budget)
    }

    /// Returns a snapshot of the launch's state. [`Session::restore`] accepts the snapshot.
    pub fn snapshot(&self) -> Snapshot {
        self.stepping.snapshot()
    }

    /// Restores the state in `snapshot`, which is an earlier or later state of this launch.
    pub fn restore(&mut self, snapshot: &Snapshot) {
        self.stepping.restore(snapshot);
    }

    /// Returns the counts so far.
    pub fn statistics(&self) -> Statistics {
        self.stepping.statistics()
    }

    /// Returns the outputs so far. At the end of the launch, the outputs are complete.
    pub fn outcome(&self) -> Outcome {
        Outcome::of(RunResult::of(&*self.stepping.outcome()))
    }
}
