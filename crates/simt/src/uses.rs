//! What an instruction reads and writes, as data: what follows values through a program needs no more.

use std::fmt;

use litemap::LiteMap;

use crate::fidelity::Fidelity;

/// A place that holds a value of each lane: a register, flags, an address register.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Slot {
    /// The manual's name of the file: `$r`, `$c`, `R`, `AR`.
    pub file: &'static str,
    /// Its number there, as [`Event::Write`](crate::Event::Write) counts registers; `None` where an index chooses it at
    /// run time.
    pub number: Option<u32>,
}

/// What a value is read for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Role {
    /// To compute with.
    Value,
    /// To decide which lanes go on where, or which take part.
    Flow,
    /// To choose a word of memory, a texel or a register.
    Address,
    /// To leave the program: an export, a store to memory that the host reads.
    Output,
}

/// A place that an instruction reads.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Read {
    /// The place.
    pub slot: Slot,
    /// What for.
    pub role: Role,
    /// Whether the values of the other lanes of its quad are read as well: derivatives, texture coordinates.
    pub quad: bool,
}

/// Memory that loads and stores of a program may share: what was stored comes back.
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
    /// Memory that is the only one of its name, and that lanes share.
    pub const fn shared(name: &'static str) -> Space {
        Space { name, number: None, private: false }
    }

    /// Memory that is the only one of its name, of which each lane has its own.
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

/// What one operation reads and writes. An instruction that issues several side by side has several, and all of them
/// read before any writes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Uses {
    /// The operation's name, as reports of a run have it.
    pub operation: &'static str,
    /// How exact its result is.
    pub fidelity: Fidelity,
    /// What it reads.
    pub reads: Vec<Read>,
    /// What it writes.
    pub writes: Vec<Slot>,
    /// Whether lanes that take part may keep what they had: a predicate, a condition.
    pub conditional: bool,
    /// Whether what it computes leaves the program by a register that no instruction reads: an output.
    pub leaves: bool,
    /// Whether of a lane that is killed, by then or later, nothing leaves by it: a pixel's export.
    pub dropped_if_killed: bool,
    /// Whether all lanes that take part get one result, made of what each of them reads: a vote.
    pub together: bool,
    /// Memory that it reads.
    pub loads: Option<Space>,
    /// The memory of each of a lane's loads, in their order, if it reads more than one.
    pub operands: Vec<Space>,
    /// Memory that it writes.
    pub stores: Option<Space>,
    /// Whether what it stores is less than a word: the rest of the word stays.
    pub narrow: bool,
}

impl Uses {
    /// An operation that reads and writes nothing.
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
