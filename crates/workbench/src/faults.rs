//! The words of a group's flow state. Fault injection and the debugger read and change these words.
//!
//! [`Inspect::words`] lists the words of flow state that exist at present, and [`Inspect::word`] reads a word. A word
//! has up to 64 bits. [`Word::bits`] states which bits the word has. A mask has one bit per lane, and a counter is a
//! number.
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
        /// Predicate bits. R500 has four predicate bits per lane and the ALU result. R700 has predicate bits inside an
        /// ALU clause. On Tesla, the predicate bits are the bits of the registers `$c`.
        Predicate = "predicate",
        /// The active lanes of the next instruction.
        ActiveMask = "active-mask",
        /// A mask in an entry of R700's stack. PUSH instructions and loops add entries to the stack.
        StackEntry = "stack-entry",
        /// The branch counter of a lane that a branch has disabled.
        BranchCounter = "branch-counter",
        /// The mask, address or type of an entry on Tesla's token stack.
        Token = "token",
        /// Number of remaining iterations of an open loop.
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
    /// The position of the word among the words of this kind. The position is a channel number, a stack entry (counted
    /// from the outermost entry), or a loop number.
    pub number: usize,
    /// Part of a stack entry. 0 is the mask of the entry. 1 is the address or the second mask of the entry.
    /// [`Word::TYPE`] is the type of the entry. Lists of words do not include the type.
    pub part: u8,
    /// The lane, if each lane has a separate word.
    pub lane: Option<Lane>,
    /// Mask of the bits that the word has.
    pub bits: u64,
}

impl Word {
    /// The value of [`Word::part`] for the type of a token stack entry. Types are numbered from 1. The debugger can set
    /// the type, but fault injection cannot.
    pub const TYPE: u8 = 2;

    /// Returns a word that is a mask, with one bit for each lane in `lanes`.
    pub(crate) fn of_lanes(kind: Kind, number: usize, part: u8, lanes: Mask) -> Word {
        Word { kind, number, part, lane: None, bits: lanes.0 }
    }

    /// Returns a word that is a number of `bits` bits.
    pub(crate) fn number(kind: Kind, number: usize, lane: Option<Lane>, bits: u32) -> Word {
        Word { kind, number, part: 0, lane, bits: (1 << bits) - 1 }
    }

    /// Returns whether the word is a mask of lanes.
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
