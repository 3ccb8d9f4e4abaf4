//! The control flow of a program as a graph of instructions. All three machines use the same vocabulary.
//!
//! Each machine provides the successors of each instruction. All other code for graphs is common to the machines.

crate::choices! {
    /// Kind of edge: the reason why lanes continue at another instruction.
    #[derive(PartialOrd, Ord, Hash)]
    pub enum EdgeKind {
        /// Execution continues with the next instruction.
        Next = "next",
        /// A jump for some or all active lanes.
        Jump = "jump",
        /// A jump back to the start of a loop.
        Loop = "loop",
        /// A jump out of a loop.
        Break = "break",
        /// A jump to the end of a loop's body.
        Continue = "continue",
        /// A call of a subroutine.
        Call = "call",
        /// A return from a subroutine to the instruction after its call.
        Return = "return",
    }
}

/// An edge to an instruction at which lanes may continue.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Edge {
    /// Address of the next instruction, in the unit of the machine.
    pub to: u32,
    /// Kind of the edge.
    pub kind: EdgeKind,
}

/// An instruction in a [`Graph`].
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Node {
    /// Address of the instruction, in the unit of the machine.
    pub pc: u32,
    /// Successors of the instruction. The list is empty at the end of the program.
    pub next: Vec<Edge>,
    /// Whether two lanes of one group can leave the instruction by different edges.
    pub diverges: bool,
    /// The manual's word for the construct at which lanes reconverge: `join`, `POP`, `ENDIF`.
    pub reconverges: Option<&'static str>,
}

/// The reachable instructions of a program, in order of address.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Graph {
    /// Addresses of the first instructions of programs and subroutines.
    pub entries: Vec<u32>,
    /// The instructions.
    pub nodes: Vec<Node>,
}

impl Graph {
    /// Returns the index in `nodes` of the instruction at an address.
    pub fn number(&self, pc: u32) -> Option<usize> {
        self.nodes.binary_search_by_key(&pc, |node| node.pc).ok()
    }

    /// Returns the instruction at an address.
    pub fn node(&self, pc: u32) -> Option<&Node> {
        self.number(pc).map(|number| &self.nodes[number])
    }
}
