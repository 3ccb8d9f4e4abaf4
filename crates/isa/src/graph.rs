//! The control flow of a program as a graph of instructions, in the vocabulary that the three machines share.
//!
//! A machine says for each instruction where lanes may go on; the rest is the same for all.

crate::choices! {
    /// Kind of edge: the reason why lanes continue at another instruction.
    #[derive(PartialOrd, Ord, Hash)]
    pub enum EdgeKind {
        /// Execution continues with the next instruction.
        Next = "next",
        /// A jump that all lanes take, or some of them.
        Jump = "jump",
        /// Jump back to the start of a loop.
        Loop = "loop",
        /// Jump out of a loop.
        Break = "break",
        /// Jump to the end of a loop's body.
        Continue = "continue",
        /// Call of a subroutine.
        Call = "call",
        /// Return from a subroutine to the instruction after its call.
        Return = "return",
    }
}

/// Where lanes may go on behind an instruction.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Edge {
    /// Address of the instruction that they go to, in the machine's own unit.
    pub to: u32,
    /// Why.
    pub kind: EdgeKind,
}

/// An instruction in a [`Graph`].
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Node {
    /// Its address, in the machine's own unit.
    pub pc: u32,
    /// Where lanes may go on; none where the program ends.
    pub next: Vec<Edge>,
    /// Whether lanes of one group may leave it by different edges.
    pub diverges: bool,
    /// The manual's word for what brings lanes together here: `join`, `POP`, `ENDIF`.
    pub reconverges: Option<&'static str>,
}

/// The instructions of a program that may be reached, in order of address.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Graph {
    /// Where programs and subroutines start.
    pub entries: Vec<u32>,
    /// The instructions.
    pub nodes: Vec<Node>,
}

impl Graph {
    /// The place among the nodes of the instruction at an address.
    pub fn number(&self, pc: u32) -> Option<usize> {
        self.nodes.binary_search_by_key(&pc, |node| node.pc).ok()
    }

    /// The instruction at an address.
    pub fn node(&self, pc: u32) -> Option<&Node> {
        self.number(pc).map(|number| &self.nodes[number])
    }
}
