//! Interface between a front end and a group of any machine: steps, and views of the group's flow state.

use std::fmt;

use crate::mask::{Lane, Mask};
use crate::observe::Observer;

reconverge_isa::choices! {
    /// Behaviour of a machine in cases that the documents leave undefined.
    #[derive(Default)]
    pub enum Mode {
        /// The program traps in a case that the documents leave undefined.
        #[default]
        Strict = "strict",
        /// The machine behaves as the documents recommend. The code states the recommendation for each case that the
        /// documents leave undefined.
        Lenient = "lenient",
    }
}

impl Mode {
    /// Returns the mode with a name.
    pub fn from_name(name: &str) -> Option<Mode> {
        Mode::ALL.into_iter().find(|mode| mode.name() == name)
    }
}

/// The next instruction of a group, and its active lanes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Issue {
    /// Address in the unit of the machine (R500: slots; R700: 64-bit words; Tesla: bytes).
    pub pc: u32,
    /// The active lanes.
    pub mask: Mask,
}

/// Reason why a lane is active or inactive.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Why {
    /// The lane will execute the next instruction.
    Active,
    /// A branch deactivated the lane.
    Branch {
        /// Number of open constructs inside of this branch's construct. 0 if this branch's construct is the innermost
        /// one.
        depth: u32,
    },
    /// The lane has left a loop, and other lanes still run this loop.
    Break,
    /// The lane waits for the next iteration of a loop.
    Continue,
    /// The lane waits at another address.
    Parked {
        /// Address at which the lane resumes.
        pc: u32,
    },
    /// The lane is outside the primitive or domain, or has been killed.
    Uncovered,
    /// The lane has ended.
    Exited,
}

impl Why {
    /// Returns the letter for this reason. Some displays show a lane as one character and use this letter.
    pub const fn letter(self) -> char {
        match self {
            Why::Active => 'A',
            Why::Branch { .. } => 'b',
            Why::Break => 'k',
            Why::Continue => 'c',
            Why::Parked { .. } => 'p',
            Why::Exited => 'x',
            Why::Uncovered => 'u',
        }
    }
}

/// One row of a machine's flow state, for display.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StackRow {
    /// Kind of the row, in the manual's term.
    pub kind: &'static str,
    /// Address that the row contains, or `None`.
    pub pc: Option<u32>,
    /// Lanes that the row contains, or `None`.
    pub mask: Option<Mask>,
    /// Count that the row contains, or `None`.
    pub count: Option<i64>,
}

/// Fill level of one stack or counter of a machine. The unit is that of the machine's manual.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Depth {
    /// Name of the stack or counter, in the manual's terms.
    pub of: &'static str,
    /// Number of entries in use.
    pub used: u32,
    /// Maximum number of entries that the program declares or that the machine has. `None` if the number is not known.
    pub room: Option<u32>,
}

/// The flow state of a group, in a form that is the same for all machines.
pub trait FlowView {
    /// Returns the next instruction with the active lanes. Returns `None` if the group has ended.
    fn issue(&self) -> Option<Issue>;
    /// Returns the reason why a lane is active or inactive.
    fn why(&self, lane: Lane) -> Why;
    /// Returns the flow state as labelled rows, innermost first.
    fn stack(&self) -> Vec<StackRow>;
    /// Returns the fill levels of the stacks and counters. [`Observer::depth`] identifies a level by its index in this
    /// list.
    fn depths(&self) -> Vec<Depth>;
}

/// Whether a group continues after a step.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Step {
    /// The group has a next instruction.
    Running,
    /// The program has ended.
    Done,
}

/// A trap: the program did something that the hardware forbids or leaves undefined.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Trap<Cause> {
    /// Address of the instruction, in the unit of the machine.
    pub pc: u32,
    /// The lanes that caused the trap.
    pub lanes: Mask,
    /// Cause of the trap.
    pub cause: Cause,
}

impl<Cause: fmt::Display> fmt::Display for Trap<Cause> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "trap at {}, lanes {}: {}", self.pc, self.lanes, self.cause)
    }
}

impl<Cause: fmt::Display + fmt::Debug> std::error::Error for Trap<Cause> {}

/// A group of lanes that share a program counter, with all their state. A clone is a snapshot.
pub trait Machine: Clone {
    /// Cause of a trap.
    type Cause: fmt::Display + fmt::Debug + Clone + PartialEq;

    /// Executes one instruction.
    ///
    /// # Errors
    /// Returns the trap if the program trapped. The program counter then stays at the trapping instruction.
    fn step<O: Observer>(&mut self, observer: &mut O) -> Result<Step, Trap<Self::Cause>>;
}
