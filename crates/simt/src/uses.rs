//! Reads and writes of an instruction, as data for analyses that follow values through a program.

use std::fmt;

use litemap::LiteMap;

use crate::fidelity::Fidelity;

/// A register, flag or address register that holds one value per lane.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Slot {
    /// The manual's name of the file: `$r`, `$c`, `R`, `AR`.
    pub file: &'static str,
    /// Number of the register in the file, as [`Event::Write`](crate::Event::Write) counts registers; `None` if an
    /// index selects it at run time.
    pub number: Option<u32>,
}

/// Purpose of a read.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Role {
    /// Operand of a computation.
    Value,
    /// Value that determines the path of lanes, or whether they are active.
    Flow,
    /// Address of a word of memory, a texel or a register.
    Address,
    /// Value that leaves the program: an export, or a store to memory that the host reads.
    Output,
}

/// A slot that an instruction reads.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Read {
    /// The place.
    pub slot: Slot,
    /// Purpose of the read.
    pub role: Role,
    /// Whether the values of the other lanes of its quad are read as well: derivatives, texture coordinates.
    pub quad: bool,
}

/// Memory that loads and stores of a program may share: a load can return a stored value.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Space {
    /// The manual's name: `g[]`, `s[]`, `LDS`, `scratch`.
    pub name: &'static str,
    /// Number of the memory, if several have the name.
    pub number: Option<u32>,
    /// Whether each lane has its own.
    pub private: bool,
}

impl Space {
    /// Returns the only memory of its name, which lanes share.
    pub const fn shared(name: &'static str) -> Space {
        Space { name, number: None, private: false }
    }

    /// Returns the only memory of its name, which is private to each lane.
    pub const fn private(name: &'static str) -> Space {
        Space { name, number: None, private: true }
    }
}

/// The name with its number: `s[]`, `c0[]`, `g14[]`, `texture 2`.
impl fmt::Display for Space {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match (self.number, self.name.strip_suffix("[]")) {
            (None, _) => f.write_str(self.name),
            (Some(number), Some(name)) => write!(f, "{name}{number}[]"),
            (Some(number), None) => write!(f, "{} {number}", self.name),
        }
    }
}

/// The operations of the instructions of a program, by address.
pub type UsesAt = LiteMap<u32, Vec<Uses>>;

/// Reads and writes of one operation. An instruction that issues several operations at the same time has several; all
/// of them read before any writes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Uses {
    /// Name of the operation, as in reports of a run.
    pub operation: &'static str,
    /// Fidelity of the result.
    pub fidelity: Fidelity,
    /// Slots that the operation reads.
    pub reads: Vec<Read>,
    /// Slots that the operation writes.
    pub writes: Vec<Slot>,
    /// Whether active lanes may keep their old value: a predicate, a condition.
    pub conditional: bool,
    /// Whether the result leaves the program in a register that no instruction reads: an output.
    pub leaves: bool,
    /// Whether the operation has no effect outside the program for a lane that is killed, before or after it: a
    /// pixel's export.
    pub dropped_if_killed: bool,
    /// Whether all active lanes get one result, computed from the operands of each of them: a vote.
    pub together: bool,
    /// Memory that the operation loads from.
    pub loads: Option<Space>,
    /// Memory of each load of a lane, in order, if the operation has more than one.
    pub operands: Vec<Space>,
    /// Memory that the operation stores to.
    pub stores: Option<Space>,
    /// Whether the store is narrower than a word, so the rest of the word stays.
    pub narrow: bool,
}

impl Uses {
    /// Returns an operation without reads and writes.
    pub fn new(operation: &'static str, fidelity: Fidelity) -> Uses {
        Uses {
            operation,
            fidelity,
            reads: Vec::new(),
            writes: Vec::new(),
            conditional: false,
            leaves: false,
            dropped_if_killed: false,
            together: false,
            loads: None,
            operands: Vec::new(),
            stores: None,
            narrow: false,
        }
    }
}
