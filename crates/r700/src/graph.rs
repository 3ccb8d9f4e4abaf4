//! Control-flow graph of a program. [`Graph`] has the instructions of the program. [`Way`] is an edge out of a
//! control-flow instruction with the effects of the edge on the stack. The computation of the stack size and the
//! legality checks use these edges.
//!
//! All lanes of a wavefront share one program counter. Therefore an edge is a path of the whole wavefront, whatever the
//! conditions and constants are. Lanes diverge at groups that update the execute mask. After such a group, a
//! control-flow instruction decides whether the wavefront skips code that no lane runs. (MAN sections 3.4 to 3.6, pp.
//! 47 to 54, 120)

use litemap::LiteMap;
use reconverge_isa::graph::{Edge, EdgeKind, Graph, Node};
use reconverge_isa::sets::NumberSet;

use crate::code::{AluClause, Cf, CfOp, Code, always_passes};
use crate::flow::{AluForm, Condition, Control, Cost};
use crate::words::CfInst;

/// One edge out of a control-flow instruction.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Way {
    /// Address of the control-flow instruction to which the edge leads. `None` for a RETURN, which leads to the
    /// instruction after the call.
    pub(crate) to: Option<u32>,
    pub(crate) kind: EdgeKind,
    /// Effects of the edge on the stack, in order.
    pub(crate) effects: Vec<Effect>,
}

/// Effect of an instruction on the stack.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Effect {
    /// Adds an entry for a branch or a loop.
    Push(Cost),
    /// Removes this number of branch entries.
    Pop(u8),
    /// Removes the branch entries above the innermost loop of the subroutine.
    Unwind,
    /// Requires a loop of the subroutine anywhere on the stack.
    InLoop,
    /// Requires a loop on top of the stack.
    LoopOnTop,
    /// Removes the loop on top of the stack.
    EndLoop,
    /// Adds the entry of a call with this CALL_COUNT.
    Call(u8),
    /// Removes the call on top of the stack.
    Return,
}

impl Way {
    fn new(to: u32, kind: EdgeKind, effects: impl Into<Vec<Effect>>) -> Way {
        Way { to: Some(to), kind, effects: effects.into() }
    }
}

/// Returns the edges out of the control-flow instruction at `addr`. The list is empty if the program ends at this
/// instruction.
pub(crate) fn ways(cf: &Cf, addr: u32) -> Vec<Way> {
    // An instruction with END_OF_PROGRAM changes the stack before the program ends.
    if cf.end_of_program {
        return Vec::new();
    }
    effects(cf, addr)
}

/// Returns the edges of an instruction without regard to END_OF_PROGRAM. [`ways`] returns the same edges for an
/// instruction without END_OF_PROGRAM. The edge to the next instruction, if any, comes first.
pub(crate) fn effects(cf: &Cf, addr: u32) -> Vec<Way> {
    let next = |effects: &[Effect]| Way::new(addr + 1, EdgeKind::Next, effects);
    match &cf.op {
        CfOp::Alu(clause) => {
            let effect = match clause.form {
                AluForm::ALU_PUSH_BEFORE => Some(Effect::Push(push(clause.whole_quad_mode))),
                AluForm::ALU_POP_AFTER => Some(Effect::Pop(1)),
                AluForm::ALU_POP2_AFTER => Some(Effect::Pop(2)),
                AluForm::ALU_CONTINUE | AluForm::ALU_BREAK => Some(Effect::InLoop),
                AluForm::ALU | AluForm::ALU_ELSE_AFTER => None,
            };
            vec![next(effect.as_slice())]
        }
        CfOp::Fetch(..) | CfOp::Export(..) | CfOp::Memory(..) => vec![next(&[])],
        CfOp::Control(inst, control) => {
            let Row { mut ways, unpassed, .. } = row(*inst, control, addr);
            if let (Condition::False, Some(kind)) = (&control.cond, unpassed) {
                ways.retain(|way| way.kind == kind);
            }
            ways
        }
    }
}

/// A control-flow instruction in the graph.
struct Row {
    /// The outgoing edges.
    ways: Vec<Way>,
    /// The kind of the only edge that remains if the condition is FALSE. With the condition FALSE, no lane can pass. If
    /// the field is `None`, all edges remain.
    unpassed: Option<EdgeKind>,
    /// Whether the instruction can make inactive lanes active.
    wakes: bool,
}

impl Row {
    fn unpassed(self, kind: EdgeKind) -> Row {
        Row { unpassed: Some(kind), ..self }
    }

    fn wakes(self, wakes: bool) -> Row {
        Row { wakes, ..self }
    }
}

fn row(inst: CfInst, control: &Control, addr: u32) -> Row {
    let of = |ways: Vec<Way>| Row { ways, unpassed: None, wakes: false };
    let next = |effects: &[Effect]| Way::new(addr + 1, EdgeKind::Next, effects);
    let to = |kind: EdgeKind, effects: &[Effect]| Way::new(control.addr, kind, effects);
    let jump = |effects: &[Effect]| to(EdgeKind::Jump, effects);
    let pop = Effect::Pop(control.pop_count);
    let push = Effect::Push(push(control.whole_quad_mode));
    let pops = control.pop_count > 0;
    let pops_or_quads = pops || control.whole_quad_mode;
    match inst {
        CfInst::JUMP => of(vec![next(&[]), jump(&[pop])]).unpassed(EdgeKind::Jump).wakes(pops),
        CfInst::ELSE => of(vec![next(&[]), jump(&[pop])]).wakes(true),
        CfInst::PUSH => of(vec![next(&[push]), jump(&[pop])]).unpassed(EdgeKind::Jump).wakes(pops_or_quads),
        CfInst::POP_PUSH => {
            of(vec![next(&[pop, push]), jump(&[pop])]).unpassed(EdgeKind::Jump).wakes(pops_or_quads)
        }
        CfInst::PUSH_ELSE => of(vec![next(&[push]), jump(&[push])]),
        CfInst::POP_PUSH_ELSE => of(vec![next(&[pop, push]), jump(&[pop, push])]).wakes(pops),
        CfInst::POP => of(vec![next(&[pop])]).wakes(pops_or_quads),
        CfInst::POP_JUMP => of(vec![next(&[pop]), jump(&[pop])]).unpassed(EdgeKind::Jump).wakes(pops),
        CfInst::LOOP_START | CfInst::LOOP_START_NO_AL | CfInst::LOOP_START_DX10 => {
            let ways = vec![next(&[Effect::Push(Cost::Loop)]), jump(&[pop])];
            of(ways).unpassed(EdgeKind::Jump).wakes(pops_or_quads)
        }
        CfInst::LOOP_END => {
            let ways = vec![next(&[Effect::EndLoop]), to(EdgeKind::Loop, &[Effect::LoopOnTop])];
            of(ways).unpassed(EdgeKind::Next).wakes(true)
        }
        CfInst::LOOP_BREAK => of(vec![next(&[Effect::InLoop]), to(EdgeKind::Break, &[Effect::Unwind])]),
        CfInst::LOOP_CONTINUE => of(vec![next(&[Effect::InLoop]), to(EdgeKind::Continue, &[Effect::Unwind])]),
        CfInst::CALL => {
            let ways = vec![next(&[]), to(EdgeKind::Call, &[Effect::Call(control.call_count)])];
            of(ways).unpassed(EdgeKind::Next)
        }
        // The graph does not contain the fetch program. So this edge has two effects: the effect of the call and the
        // effect of the return.
        CfInst::CALL_FS => of(vec![next(&[Effect::Call(control.call_count), Effect::Return])]),
        CfInst::RETURN => {
            let back = Way { to: None, kind: EdgeKind::Return, effects: vec![Effect::Return] };
            of(if always_passes(control) { vec![back] } else { vec![next(&[]), back] })
        }
        CfInst::KILL => of(vec![next(&[]), jump(&[])]),
        CfInst::NOP
        | CfInst::TEX
        | CfInst::VTX
        | CfInst::VTX_TC
        | CfInst::EMIT_VERTEX
        | CfInst::EMIT_CUT_VERTEX
        | CfInst::CUT_VERTEX
        | CfInst::END_PROGRAM
        | CfInst::WAIT_ACK
        | CfInst::TEX_ACK
        | CfInst::VTX_ACK
        | CfInst::VTX_TC_ACK => of(vec![next(&[])]),
    }
}

fn push(whole_quad_mode: bool) -> Cost {
    if whole_quad_mode { Cost::WholeQuadPush } else { Cost::Push }
}

/// The control-flow instructions of a program with their outgoing edges. The edges of a RETURN lead to the instructions
/// after the matching calls.
#[derive(Clone, Debug, Default)]
pub(crate) struct Ways {
    /// Start addresses of the program and of its subroutines.
    pub(crate) entries: Vec<u32>,
    /// Outgoing edges of each reachable control-flow instruction, by address. If the program ends at an instruction, or
    /// if the words of the instruction are invalid, the list of the instruction is empty.
    pub(crate) next: LiteMap<u32, Vec<Edge>>,
}

impl Ways {
    /// Returns the control-flow instructions and edges of a program that begins at `start`.
    ///
    /// If a RETURN is reachable from the start of a subroutine, the RETURN has edges to all instructions that follow a
    /// call of the subroutine.
    pub(crate) fn of(code: &Code, start: u32) -> Ways {
        let (mut reached, mut found, mut calls) = (NumberSet::new(), Vec::new(), Vec::new());
        let mut open = vec![start];
        while let Some(addr) = open.pop() {
            if !reached.insert(addr) {
                continue;
            }
            let ways = code.cf(addr).map(|cf| self::ways(cf, addr)).unwrap_or_default();
            let edges: Vec<Edge> =
                ways.iter().filter_map(|way| Some(Edge { to: way.to?, kind: way.kind })).collect();
            open.extend(edges.iter().map(|edge| edge.to));
            for call in edges.iter().filter(|edge| edge.kind == EdgeKind::Call) {
                calls.push((call.to, addr + 1));
            }
            found.push((addr, edges));
        }
        let mut ways = Ways { entries: vec![start], next: reached.map(|_| Vec::new()) };
        for (addr, edges) in found {
            ways.next[&addr] = edges;
        }
        let called: NumberSet = calls.iter().map(|(entry, _)| *entry).collect();
        let mut callers = called.map(|_| Vec::new());
        for (entry, behind) in calls {
            callers[&entry].push(behind);
        }
        for (entry, behind) in &callers {
            if *entry != start {
                ways.entries.push(*entry);
            }
            for addr in &ways.within(*entry) {
                let returns = code
                    .cf(addr)
                    .is_ok_and(|cf| matches!(cf.op, CfOp::Control(CfInst::RETURN, _)) && !cf.end_of_program);
                for to in behind.iter().filter(|_| returns) {
                    add(&mut ways.next[&addr], *to, EdgeKind::Return);
                }
            }
        }
        ways
    }

    /// Returns the addresses in the subroutine of `entry` that control flow can reach from `entry`.
    pub(crate) fn within(&self, entry: u32) -> NumberSet {
        let mut found = NumberSet::new();
        let mut open = vec![entry];
        while let Some(addr) = open.pop() {
            if self.next.contains_key(&addr) && found.insert(addr) {
                let stays = |edge: &&Edge| !matches!(edge.kind, EdgeKind::Call | EdgeKind::Return);
                open.extend(self.next[&addr].iter().filter(stays).map(|edge| edge.to));
            }
        }
        found
    }
}

fn add(edges: &mut Vec<Edge>, to: u32, kind: EdgeKind) {
    let edge = Edge { to, kind };
    if !edges.contains(&edge) {
        edges.push(edge);
    }
}

/// Returns the graph of a program that begins at `start`.
///
/// The nodes are the control-flow instructions, and the ALU groups or fetches of each clause. The nodes of a clause
/// come directly after the control-flow instruction that starts the clause. If no lane runs the clause, the wavefront
/// jumps over the clause. The graph does not contain the fetch program that CALL_FS calls. An edge to an address
/// without a valid instruction leads to a node without edges.
pub fn graph(code: &Code, start: u32) -> Graph {
    let ways = Ways::of(code, start);
    let places = |addr: &u32| code.cf(*addr).map_or(vec![*addr], |cf| code.places(*addr, &cf.op));
    let all: NumberSet = ways.next.keys().flat_map(places).collect();
    let mut nodes = Nodes(all.map(|pc| Node { pc, ..Node::default() }));
    for (addr, next) in &ways.next {
        match code.cf(*addr).map(|cf| &cf.op) {
            Ok(CfOp::Alu(clause)) => nodes.alu(code, *addr, clause, next),
            Ok(CfOp::Fetch(_, _, fetches)) => {
                let places: Vec<u32> = fetches.iter().map(|fetch| fetch.addr).collect();
                nodes.clause(*addr, &places, next);
            }
            Ok(CfOp::Control(inst, control)) => {
                let node = nodes.at(*addr, next);
                let wakes = row(*inst, control, *addr).wakes;
                node.reconverges = wakes.then_some(inst.name()).or(node.reconverges);
            }
            Ok(CfOp::Export(..) | CfOp::Memory(..)) | Err(_) => {
                nodes.at(*addr, next);
            }
        }
    }
    Graph { entries: ways.entries, nodes: nodes.0.into_iter().map(|(_, node)| node).collect() }
}

struct Nodes(LiteMap<u32, Node>);

impl Nodes {
    /// Adds edges to the node at an address, and returns the node.
    fn at(&mut self, pc: u32, next: &[Edge]) -> &mut Node {
        let node = &mut self.0[&pc];
        next.iter().for_each(|edge| add(&mut node.next, edge.to, edge.kind));
        node
    }

    /// Adds a clause whose instructions have the addresses `places`.
    fn clause(&mut self, addr: u32, places: &[u32], next: &[Edge]) {
        let edge = |kind: EdgeKind| move |to: &u32| Edge { to: *to, kind };
        let over = next.iter().map(|edge| edge.to).collect::<Vec<_>>();
        let into: Vec<Edge> = places
            .first()
            .map(edge(EdgeKind::Next))
            .into_iter()
            .chain(over.iter().map(edge(EdgeKind::Jump)))
            .collect();
        self.at(addr, &into);
        for (number, place) in places.iter().enumerate() {
            match places.get(number + 1) {
                Some(then) => self.at(*place, &[edge(EdgeKind::Next)(then)]),
                None => self.at(*place, next),
            };
        }
    }

    /// Adds a clause of groups. After a group that updates the execute mask, the wavefront may have no active lane. In
    /// this case, the wavefront may jump over the later groups of the clause.
    fn alu(&mut self, code: &Code, addr: u32, clause: &AluClause, next: &[Edge]) {
        let places: Vec<u32> = code.groups(clause).map(|group| group.addr).collect();
        self.clause(addr, &places, next);
        let wakes = match clause.form {
            AluForm::ALU_POP_AFTER | AluForm::ALU_POP2_AFTER | AluForm::ALU_ELSE_AFTER => {
                Some(clause.form.name())
            }
            AluForm::ALU | AluForm::ALU_PUSH_BEFORE | AluForm::ALU_CONTINUE | AluForm::ALU_BREAK => None,
        };
        let word = self.at(addr, &[]);
        word.reconverges = wakes.or(word.reconverges);
        for (number, group) in code.groups(clause).enumerate() {
            let updates = group.ops.iter().any(|op| op.update_execute_mask);
            let last = number + 1 == places.len();
            let node = self.at(group.addr, &[]);
            node.diverges |= updates;
            if last || updates {
                node.reconverges = wakes.or(node.reconverges);
            }
            for edge in next.iter().filter(|_| updates && !last) {
                add(&mut node.next, edge.to, EdgeKind::Jump);
            }
        }
    }
}
