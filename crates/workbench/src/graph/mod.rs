//! The control flow graph of a program, as a [`Drawing`] of basic blocks and edges. A drawing can be written as DOT or
//! SVG.
//!
//! [`Passages`] observes a run of the program, and counts the lanes that take each edge.

mod dot;
mod svg;

use std::collections::{HashMap, VecDeque};

use litemap::LiteMap;
use reconverge_isa::Program;
use reconverge_isa::graph::{EdgeKind, Graph, Node};
use reconverge_simt::{Event, Mask};

use crate::listing::Style;
use crate::stats::{InstructionCounts, Profile};
use crate::target::{Target, TargetError};
use crate::trace::Sink;

/// A graph of basic blocks with the texts to display.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Drawing {
    /// Title of the drawing.
    pub title: String,
    /// The blocks, in order of address.
    pub blocks: Vec<Block>,
    /// Edges between the blocks.
    pub edges: Vec<Way>,
}

/// A basic block.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Block {
    /// Address of the first instruction, in the notation of listings.
    pub name: String,
    /// Whether a program or a subroutine starts at this block.
    pub entry: bool,
    /// The instructions of the block. A block without instructions is a jump target outside the program.
    pub rows: Vec<Row>,
    /// The counts of the block's first instruction. Only `diverged` is the sum over all instructions of the block.
    pub counts: Option<InstructionCounts>,
    /// Number of times that a waiting lane passed the block without executing the block.
    pub waiting: u64,
}

/// An instruction.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Row {
    /// Address of the instruction.
    pub address: String,
    /// Text of the instruction.
    pub text: String,
    /// Whether lanes may diverge at the instruction.
    pub diverges: bool,
    /// The manual's name of the flow construct that ends at the instruction. `None` if lanes do not reconverge at the
    /// instruction.
    pub reconverges: Option<&'static str>,
}

/// An edge from the end of one block to the start of a block.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Way {
    /// Index of the source block.
    pub from: usize,
    /// Index of the target block.
    pub to: usize,
    /// Kind of the edge, for example a jump or a call.
    pub kind: EdgeKind,
    /// Number of lanes that took the edge. A lane takes the edge if the lane executes the last instruction of block
    /// `from` and directly afterwards the first instruction of block `to`. For a lane that waits, the function finds
    /// the shortest path from the last instruction before the wait to the first instruction after the wait. The lane
    /// takes each edge of this path. So the sum over all edges into a block is the number of lanes that execute or pass
    /// the block.
    pub lanes: Option<u64>,
}

impl Block {
    /// Returns the heading of the block, which precedes its instructions.
    fn heading(&self) -> String {
        let entry = if self.entry { ", entry" } else { "" };
        let nowhere = if self.rows.is_empty() { ", no instruction" } else { "" };
        format!("{}{entry}{nowhere}", self.name)
    }

    /// Returns the counts of the block as text.
    fn counted(&self) -> Option<String> {
        let InstructionCounts { executed, lanes, diverged, .. } = self.counts?;
        let waiting = if self.waiting > 0 { format!(", waiting {}", self.waiting) } else { String::new() };
        Some(format!("executed {executed}, lanes {lanes}{waiting}, diverged {diverged}"))
    }

    /// Returns whether lanes may diverge in the block.
    fn diverges(&self) -> bool {
        self.rows.iter().any(|row| row.diverges)
    }

    /// Returns whether lanes reconverge in the block.
    fn reconverges(&self) -> bool {
        self.rows.iter().any(|row| row.reconverges.is_some())
    }

    /// Returns all lines of text to display in the block.
    fn lines(&self) -> Vec<String> {
        let width = self.rows.iter().map(|row| row.address.len()).max().unwrap_or_default();
        let rows =
            self.rows.iter().map(|row| format!("{:>width$}  {}{}", row.address, row.text, row.marks()));
        std::iter::once(self.heading()).chain(self.counted()).chain(rows).collect()
    }
}

impl Row {
    /// Returns the marks for divergence and reconvergence at this instruction.
    fn marks(&self) -> String {
        let reconverges = self.reconverges.map(|word| format!("  <{word}: lanes reconverge>"));
        let diverges = self.diverges.then(|| "  <lanes may diverge>".to_owned());
        reconverges.into_iter().chain(diverges).collect()
    }
}

impl Way {
    /// Returns the label of the edge. The label has the edge's kind and number of lanes.
    fn label(&self) -> String {
        match self.lanes {
            None => self.kind.name().to_owned(),
            Some(1) => format!("{}: 1 lane", self.kind.name()),
            Some(lanes) => format!("{}: {lanes} lanes", self.kind.name()),
        }
    }
}

impl Drawing {
    /// Returns the control flow graph of a program, with counts if a run was observed.
    ///
    /// # Errors
    /// Returns an error if the program cannot be loaded.
    pub fn of(
        title: &str,
        target: &Target,
        program: &Program,
        counts: Option<&Passages>,
    ) -> Result<Drawing, TargetError> {
        let machine = target.machine();
        let graph = machine.graph(target, program)?;
        let lines = machine.disassemble(target, program, Style::default())?.lines(&program.words);
        let mut texts: LiteMap<u32, String> = LiteMap::new();
        for line in &lines {
            line.address.map(|address| texts.insert(address, line.code()));
        }
        let text = |pc: u32| texts.get(&pc).cloned().unwrap_or_default();
        Ok(Drawing::new(title, &graph, &text, &|pc| target.isa.spelled(pc), counts))
    }

    /// Creates a drawing. `text` returns the text of the instruction at an address, and `spelled` formats an address.
    fn new(
        title: &str,
        graph: &Graph,
        text: &dyn Fn(u32) -> String,
        spelled: &dyn Fn(u32) -> String,
        counts: Option<&Passages>,
    ) -> Drawing {
        let parts = parts(graph);
        let taken = counts.map(|counts| counts.over(graph));
        let row = |node: &Node| Row {
            address: spelled(node.pc),
            text: text(node.pc),
            diverges: node.diverges,
            reconverges: node.reconverges,
        };
        let mut blocks: Vec<Block> = parts
            .iter()
            .map(|nodes| Block {
                name: spelled(nodes[0].pc),
                entry: graph.entries.contains(&nodes[0].pc),
                rows: nodes.iter().map(row).collect(),
                counts: counts.map(|counts| counts.of_block(nodes)),
                waiting: taken.as_ref().map_or(0, |taken| taken.waiting_at(nodes[0].pc)),
            })
            .collect();
        let mut numbers: HashMap<u32, usize> =
            parts.iter().enumerate().map(|(number, nodes)| (nodes[0].pc, number)).collect();
        for entry in graph.entries.iter().filter(|entry| graph.node(**entry).is_none()) {
            numbers.insert(*entry, blocks.len());
            blocks.push(Block { name: spelled(*entry), entry: true, ..Block::default() });
        }
        let mut edges = Vec::new();
        for (from, nodes) in parts.iter().enumerate() {
            let Some(last) = nodes.last() else { continue };
            for (place, edge) in last.next.iter().enumerate() {
                let to = *numbers.entry(edge.to).or_insert_with(|| {
                    blocks.push(Block { name: spelled(edge.to), ..Block::default() });
                    blocks.len() - 1
                });
                // If several edges have one source and one target in common, the first edge gets all lanes that went
                // from the source to the target.
                let first = last.next[..place].iter().all(|before| before.to != edge.to);
                let lanes = taken.as_ref().map(|taken| if first { taken.lanes(last.pc, edge.to) } else { 0 });
                edges.push(Way { from, to, kind: edge.kind, lanes });
            }
        }
        Drawing { title: title.to_owned(), blocks, edges }
    }

    /// Returns the jump targets outside the program, in the notation of listings.
    pub fn nowhere(&self) -> impl Iterator<Item = &str> {
        self.blocks.iter().filter(|block| block.rows.is_empty()).map(|block| block.name.as_str())
    }

    /// Returns the drawing in the DOT language of Graphviz.
    pub fn dot(&self) -> String {
        dot::dot(self)
    }

    /// Returns the drawing as SVG.
    pub fn svg(&self) -> String {
        svg::svg(self)
    }
}

/// Splits the instructions of a graph into basic blocks. Control enters a block only at the block's first instruction.
/// Control leaves the block only at the block's last instruction.
fn parts(graph: &Graph) -> Vec<&[Node]> {
    let mut arrivals: HashMap<u32, usize> = HashMap::new();
    for edge in graph.nodes.iter().flat_map(|node| &node.next) {
        *arrivals.entry(edge.to).or_default() += 1;
    }
    let goes_on = |before: &Node, node: &Node| {
        let only = |edge: &reconverge_isa::graph::Edge| edge.to == node.pc && edge.kind == EdgeKind::Next;
        matches!(&before.next[..], [edge] if only(edge))
            && arrivals.get(&node.pc) == Some(&1)
            && !graph.entries.contains(&node.pc)
    };
    graph.nodes.chunk_by(goes_on).collect()
}

/// Counts of a run. Each instruction has a count. Each pair of instructions that a lane executed consecutively also has
/// a count.
#[derive(Clone, Debug)]
pub struct Passages {
    /// The counts per instruction.
    pub profile: Profile,
    ways: HashMap<(u32, u32), u64>,
    /// For each group, the address of the last instruction that each lane executed.
    last: HashMap<usize, Vec<Option<u32>>>,
}

impl Passages {
    /// Creates empty counts for groups of `width` lanes.
    pub fn new(width: u32) -> Passages {
        Passages { profile: Profile::new(width), ways: HashMap::new(), last: HashMap::new() }
    }

    /// Returns the number of lanes that executed the instruction at `to` directly after the instruction at `from`.
    pub fn lanes(&self, from: u32, to: u32) -> u64 {
        self.ways.get(&(from, to)).copied().unwrap_or_default()
    }

    /// Returns every pair of instructions that a lane executed consecutively. Each pair has the number of lanes that
    /// executed the pair.
    pub fn ways(&self) -> impl Iterator<Item = ((u32, u32), u64)> {
        self.ways.iter().map(|(way, lanes)| (*way, *lanes))
    }

    /// Attributes the counted lanes to the edges of a graph. If no edge connects the two instructions of a pair, the
    /// lane waited between the two instructions. The function then counts the lane on each edge of the shortest path
    /// between these instructions.
    fn over(&self, graph: &Graph) -> Taken {
        let mut taken = Taken::default();
        for ((from, to), lanes) in self.ways() {
            let path = shortest(graph, from, to);
            for pair in path.windows(2) {
                *taken.ways.entry((pair[0], pair[1])).or_default() += lanes;
            }
            for pc in path.iter().take(path.len().saturating_sub(1)).skip(1) {
                *taken.waiting.entry(*pc).or_default() += lanes;
            }
        }
        taken
    }

    fn of_block(&self, nodes: &[Node]) -> InstructionCounts {
        let diverged = nodes.iter().map(|node| self.profile.at(node.pc).diverged).sum();
        InstructionCounts { diverged, ..self.profile.at(nodes[0].pc) }
    }
}

/// Number of lanes on each edge between two instructions, and number of waiting lanes that passed each instruction.
#[derive(Clone, Debug, Default)]
struct Taken {
    ways: HashMap<(u32, u32), u64>,
    waiting: HashMap<u32, u64>,
}

impl Taken {
    fn lanes(&self, from: u32, to: u32) -> u64 {
        self.ways.get(&(from, to)).copied().unwrap_or_default()
    }

    fn waiting_at(&self, pc: u32) -> u64 {
        self.waiting.get(&pc).copied().unwrap_or_default()
    }
}

/// Returns the instructions on the shortest path from instruction `from` to instruction `to`, including both ends.
/// Returns an empty list if no path exists.
fn shortest(graph: &Graph, from: u32, to: u32) -> Vec<u32> {
    let mut before: HashMap<u32, u32> = HashMap::new();
    let mut queue = VecDeque::from([from]);
    while let Some(pc) = queue.pop_front() {
        for edge in graph.node(pc).iter().flat_map(|node| &node.next) {
            if before.contains_key(&edge.to) {
                continue;
            }
            before.insert(edge.to, pc);
            if edge.to == to {
                let mut path = vec![to];
                let mut at = pc;
                while at != from {
                    path.push(at);
                    at = before[&at];
                }
                path.push(from);
                path.reverse();
                return path;
            }
            queue.push_back(edge.to);
        }
    }
    Vec::new()
}

impl Sink for Passages {
    fn issues(&mut self, group: usize, addresses: &[u32], mask: Mask) {
        self.profile.issues(group, addresses, mask);
        let (Some(&first), Some(&end)) = (addresses.first(), addresses.last()) else { return };
        if mask.any() {
            let last = self.last.entry(group).or_insert_with(|| vec![None; 64]);
            for lane in mask.lanes() {
                if let Some(before) = last[lane.index()].replace(end) {
                    *self.ways.entry((before, first)).or_default() += 1;
                }
            }
            for pair in addresses.windows(2) {
                *self.ways.entry((pair[0], pair[1])).or_default() += u64::from(mask.count());
            }
        }
    }

    fn event(&mut self, group: usize, event: Event) {
        self.profile.event(group, event);
    }
}

#[cfg(test)]
mod tests;
