//! The words of a group's flow state, for fault injection: the words that currently exist, and their values.
//!
//! [`Inspect::words`] lists each [`Word`], and [`Inspect::word`] reads it. A word has up to 64 bits, given by
//! [`Word::bits`]. Masks have one bit per lane, and counters are numbers.
//!
//! [`Inspect::words`]: crate::session::Inspect::words
//! [`Inspect::word`]: crate::session::Inspect::word

use std::fmt;

use reconverge_isa::Isa;
use reconverge_simt::{Lane, Mask};

reconverge_isa::choices! {
    /// A kind of flow state.
    #[derive(PartialOrd, Ord, Hash)]
    pub enum Kind {
        /// Predicate bits: the four per lane and the ALU result of R500, those inside an ALU clause of R700, `$c` of Tesla.
        Predicate = "predicate",
        /// The active lanes of the next instruction.
        ActiveMask = "active-mask",
        /// A mask of an entry of the stack of PUSH and of loops.
        StackEntry = "stack-entry",
        /// The branch counter of a lane that is switched off.
        BranchCounter = "branch-counter",
        /// Lanes or address of an entry of the token stack.
        Token = "token",
        /// Number of iterations that an open loop has left.
        LoopCounter = "loop-counter",
    }
}

impl Kind {
    /// Returns the machines that have this kind of state.
    pub const fn machines(self) -> &'static [Isa] {
        match self {
            Kind::Predicate | Kind::ActiveMask => &Isa::ALL,
            Kind::StackEntry => &[Isa::R700],
            Kind::BranchCounter => &[Isa::R500],
            Kind::Token => &[Isa::Tesla],
            Kind::LoopCounter => &[Isa::R500, Isa::R700],
        }
    }
}

/// A word of flow state of the group that runs next.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Word {
    /// The kind of state.
    pub kind: Kind,
    /// Number within the kind: a channel, a stack entry (counted from the outermost), or a loop.
    pub number: usize,
    /// The part of the entry: 0 is its mask, 1 its address or other mask. [`Word::TYPE`] is not in the lists of words.
    pub part: u8,
    /// The lane, if each lane has such a word.
    pub lane: Option<Lane>,
    /// The bits that exist.
    pub bits: u64,
}

impl Word {
    /// The part of a token stack entry that is its type, as a number from 1. A debugger can set it.
    pub const TYPE: u8 = 2;

    /// Returns a word with one bit for each of some lanes.
    pub(crate) fn of_lanes(kind: Kind, number: usize, part: u8, lanes: Mask) -> Word {
        Word { kind, number, part, lane: None, bits: lanes.0 }
    }

    /// Returns a word that is a number of `bits` bits.
    pub(crate) fn number(kind: Kind, number: usize, lane: Option<Lane>, bits: u32) -> Word {
        Word { kind, number, part: 0, lane, bits: (1 << bits) - 1 }
    }

    /// Returns whether the bits of the word are lanes.
    pub fn is_mask(&self) -> bool {
        match self.kind {
            Kind::ActiveMask | Kind::StackEntry => true,
            Kind::Predicate => self.lane.is_none(),
            Kind::Token => self.part == 0,
            Kind::BranchCounter | Kind::LoopCounter => false,
        }
    }
}

impl fmt::Display for Word {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Word { kind, number, part, .. } = self;
        match (kind, part) {
            (Kind::Predicate, _) => write!(f, "predicate {number}"),
            (Kind::ActiveMask, _) => f.write_str("active"),
            (Kind::StackEntry, 0) => write!(f, "entry {number} active"),
            (Kind::StackEntry, _) => write!(f, "entry {number} break"),
            (Kind::BranchCounter, _) => f.write_str("counter"),
            (Kind::Token, 0) => write!(f, "token {number} mask"),
            (Kind::Token, &Word::TYPE) => write!(f, "token {number} type"),
            (Kind::Token, _) => write!(f, "token {number} address"),
            (Kind::LoopCounter, _) => write!(f, "loop {number}"),
        }
    }
}
