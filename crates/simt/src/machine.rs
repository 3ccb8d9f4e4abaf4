//! What a front end can do with a group of any machine: look at its flow, and step it.

use std::fmt;

use crate::mask::{Lane, Mask};
use crate::observe::Observer;

reconverge_isa::choices! {
    /// Behaviour of a machine where the documents leave it undefined.
    #[derive(Default)]
    pub enum Mode {
        /// The program traps.
        #[default]
        Strict = "strict",
        /// The machine does what its specification recommends, noted at each place.
        Lenient = "lenient",
    }
}

impl Mode {
    /// The mode of a name.
    pub fn from_name(name: &str) -> Option<Mode> {
        Mode::ALL.into_iter().find(|mode| mode.name() == name)
    }
}

/// The next instruction and its lanes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Issue {
    /// Address in the machine's own unit (R500: slots; R700: 64-bit words; Tesla: bytes).
    pub pc: u32,
    /// The lanes that take part.
    pub mask: Mask,
}

/// Why a lane is or is not running: the question a debugger asks.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Why {
    /// It takes part in the next instruction.
    Active,
    /// A branch switched it off, `depth` constructs ago (0 is the innermost).
    Branch {
        /// How many constructs have been opened since.
        depth: u32,
    },
    /// It has left a loop early.
    Break,
    /// It waits for a loop's next round.
    Continue,
    /// It waits at another address.
    Parked {
        /// Where it resumes.
        pc: u32,
    },
    /// It lies outside the primitive or domain, or has been killed.
    Uncovered,
    /// It has finished.
    Exited,
}

impl Why {
    /// The letter for it where lanes are drawn as characters.
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

/// One row of a machine's own bookkeeping, for display.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StackRow {
    /// What the row is, in the manual's word.
    pub kind: &'static str,
    /// The address it holds, if any.
    pub pc: Option<u32>,
    /// The lanes it holds, if any.
    pub mask: Option<Mask>,
    /// The count it holds, if any.
    pub count: Option<i64>,
}

/// How full one of a machine's stacks or counters is, in the unit of its manual.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Depth {
    /// What it is, in the manual's words.
    pub of: &'static str,
    /// How much of it is in use.
    pub used: u32,
    /// How much the program declares or the machine has, where that is known.
    pub room: Option<u32>,
}

/// What every flow machine can show.
pub trait FlowView {
    /// The next instruction and its lanes; `None` when the group has ended.
    fn issue(&self) -> Option<Issue>;
    /// Why a lane is or is not running.
    fn why(&self, lane: Lane) -> Why;
    /// The machine's own bookkeeping as labelled rows, innermost first.
    fn stack(&self) -> Vec<StackRow>;
    /// How full its stacks and counters are; [`Observer::depth`] names them by their places here.
    fn depths(&self) -> Vec<Depth>;
}

/// Whether a machine has more to do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Step {
    /// There is a next instruction.
    Running,
    /// The program has ended.
    Done,
}

/// The program did what the hardware forbids or leaves undefined.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Trap<Cause> {
    /// Address of the instruction, in the machine's own unit.
    pub pc: u32,
    /// The lanes concerned.
    pub lanes: Mask,
    /// What happened.
    pub cause: Cause,
}

impl<Cause: fmt::Display> fmt::Display for Trap<Cause> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "trap at {}, lanes {}: {}", self.pc, self.lanes, self.cause)
    }
}

impl<Cause: fmt::Display + fmt::Debug> std::error::Error for Trap<Cause> {}

/// A group of lanes that share a program counter, with all their state. A copy is a snapshot.
pub trait Machine: Clone {
    /// What can go wrong in a program.
    type Cause: fmt::Display + fmt::Debug + Clone + PartialEq;

    /// Executes one instruction.
    ///
    /// # Errors
    /// The program trapped; the program counter is at the instruction that did.
    fn step<O: Observer>(&mut self, observer: &mut O) -> Result<Step, Trap<Self::Cause>>;
}
