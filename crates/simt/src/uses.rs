//! Descriptions of the registers and memory that an instruction reads and writes. Analyses use these descriptions to
//! follow values through a program.

use std::fmt;

use litemap::LiteMap;

use crate::fidelity::Fidelity;

/// A register, a flag register or an address register, which has one value per lane.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Slot {
    /// Name of the register file in the manual: `$r`, `$c`, `R`, `AR`.
    pub file: &'static str,
    /// Number of the register in the file, counted as in [`Event::Write`](crate::Event::Write). `None` if an index
    /// selects the register at run time.
    pub number: Option<u32>,
}

/// Purpose for which a value is read.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Role {
    /// Operand of a computation.
    Value,
    /// Value that determines the path of lanes, or whether lanes are active.
    Flow,
    /// Value that is the address of a word of memory, of a texel or of a register.
    Address,
    /// Value that is an output of the program. The value is exported, or is stored to memory that the host reads.
    Output,
}

/// A read of a slot by an instruction.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Read {
    /// The slot that is read.
    pub slot: Slot,
    /// Purpose of the read.
    pub role: Role,
    /// Whether a lane also reads the values of the other three lanes in its quad. Derivatives and texture coordinates
    /// are examples.
    pub quad: bool,
}

/// A memory. A load can only return values that were stored to the same memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Space {
    /// Name of the memory in the manual: `g[]`, `s[]`, `LDS`, `scratch`.
    pub name: &'static str,
    /// Number of the memory, if several memories have the same name.
    pub number: Option<u32>,
    /// Whether each lane has a separate memory of this kind.
    pub private: bool,
}

impl Space {
    /// Returns a memory that lanes share. The name of each memory is unique.
    pub const fn shared(name: &'static str) -> Space {
        Space { name, number: None, private: false }
    }

    /// Returns a memory that is private to each lane. The name of each memory is unique.
    pub const fn private(name: &'static str) -> Space {
        Space { name, number: None, private: true }
    }
}

/// Writes the name with the number: `s[]`, `c0[]`, `g14[]`, `texture 2`.
impl fmt::Display for Space {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match (self.number, self.name.strip_suffix("[]")) {
            (None, _) => f.write_str(self.name),
            (Some(number), Some(name)) => write!(f, "{name}{number}[]"),
            (Some(number), None) => write!(f, "{} {number}", self.name),
        }
    }
}

/// For the address of each instruction of a program, the uses of the instruction's operations.
pub type UsesAt = LiteMap<u32, Vec<Uses>>;

/// The reads and writes of one operation. If an instruction issues several operations at the same time, each operation
/// has one value of this type. The instruction reads the sources of all these operations before it writes any result.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Uses {
    /// Name of the operation in the report of a run.
    pub operation: &'static str,
    /// Fidelity of the result.
    pub fidelity: Fidelity,
    /// Slots that the operation reads.
    pub reads: Vec<Read>,
    /// Slots that the operation writes.
    pub writes: Vec<Slot>,
    /// Whether the operation has a predicate or a condition. In that case, some active lanes may keep the old value of
    /// the result register.
    pub conditional: bool,
    /// Whether the result is an output of the program, in a register that no instruction reads.
    pub leaves: bool,
    /// Whether killing a lane cancels the effect of this operation outside the program. The program may kill the lane
    /// after the operation. An example is the export of a pixel.
    pub dropped_if_killed: bool,
    /// Whether all active lanes get the same result. The operation computes this result from the operands of all active
    /// lanes. An example is a vote.
    pub together: bool,
    /// Memory from which the operation loads.
    pub loads: Option<Space>,
    /// The memory that each load accesses, in the order of the loads. This list is for operations that make several
    /// loads per lane.
    pub operands: Vec<Space>,
    /// Memory to which the operation stores.
    pub stores: Option<Space>,
    /// Whether the store is narrower than a word. A narrow store does not change the other bytes of the word.
    pub narrow: bool,
}

impl Uses {
    /// Returns an operation that does not read or write anything.
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
