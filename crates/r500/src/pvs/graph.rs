//! The control flow of a program as a graph of its slots. The edges depend only on the descriptors.
//!
//! The end of a loop has two edges: one to the body of the loop, and one to the next slot. The end of a subroutine has
//! an edge to the slot after each call of the subroutine. A program traps at a slot without an instruction. So the
//! graph omits edges to slots without an instruction.

use litemap::LiteMap;
use reconverge_isa::graph::{Edge, EdgeKind, Graph, Node};
use reconverge_isa::sets::NumberSet;

use super::flow::Descriptor;
use super::setup::Setup;
use super::words::FlowOp;

/// Returns the control-flow graph of a program: the reachable slots, and the successors of each reachable slot.
pub fn graph(setup: &Setup) -> Graph {
    let mut nodes: LiteMap<u16, Node> = LiteMap::new();
    let mut entries = NumberSet::from_iter([u32::from(setup.first)]);
    let mut pending = vec![setup.first];
    while let Some(pc) = pending.pop() {
        if setup.slot(pc).is_none() || nodes.contains_key(&pc) {
            continue;
        }
        let next: Vec<Edge> = edges(setup, pc);
        for edge in &next {
            if edge.kind == EdgeKind::Call {
                entries.insert(edge.to);
            }
            pending.push(edge.to as u16);
        }
        nodes.insert(pc, Node { pc: u32::from(pc), next, diverges: false, reconverges: None });
    }
    Graph { entries: entries.iter().collect(), nodes: nodes.into_iter().map(|(_, node)| node).collect() }
}

fn edges(setup: &Setup, pc: u16) -> Vec<Edge> {
    let mut edges: Vec<Edge> = Vec::new();
    let mut add = |to: u16, kind| {
        if setup.slot(to).is_some() && !edges.iter().any(|edge| edge.to == u32::from(to)) {
            edges.push(Edge { to: u32::from(to), kind });
        }
    };
    let acting = setup.control.acting(pc).map(|(_, descriptor)| descriptor);
    let ends = |op: FlowOp| {
        setup.control.descriptors().iter().filter(move |known| known.op == op && known.last == pc)
    };
    let mut goes_on = true;
    for Descriptor { back, .. } in ends(FlowOp::LOOP) {
        add(*back, EdgeKind::Loop);
    }
    for Descriptor { back, .. } in ends(FlowOp::JSR) {
        add(*back, EdgeKind::Return);
        goes_on = false;
    }
    if let Some(Descriptor { op, count_or_target, back, .. }) = acting {
        match op {
            FlowOp::NO_OP => {}
            FlowOp::JUMP => add(*count_or_target, EdgeKind::Jump),
            FlowOp::LOOP => add(*back, if *back == pc + 1 { EdgeKind::Next } else { EdgeKind::Jump }),
            FlowOp::JSR => add(*count_or_target, EdgeKind::Call),
        }
        goes_on &= *op == FlowOp::NO_OP;
    }
    if goes_on && pc != setup.control.last() {
        add(pc + 1, EdgeKind::Next);
    }
    edges
}

#[cfg(test)]
mod tests {
    use super::*;
    use reconverge_isa::Program;

    #[test]
    fn a_loop_goes_back_and_on() {
        let state = [
            ("VAP_PVS_FLOW_CNTL_OPC", 2),
            ("VAP_PVS_FLOW_CNTL_ADDRS_LW_0", 0x00ff_0000),
            ("VAP_PVS_FLOW_CNTL_ADDRS_UW_0", 0x0001_0002),
        ];
        let state = state.map(|(name, value)| (name.to_owned(), value)).to_vec();
        let program = Program { words: vec![0; 4 * 4], state, ..Program::default() };
        let graph = graph(&Setup::new(&program).unwrap());
        let next: Vec<Vec<u32>> =
            graph.nodes.iter().map(|node| node.next.iter().map(|edge| edge.to).collect()).collect();
        assert_eq!(next, [vec![1], vec![2], vec![1, 3], vec![]]);
    }
}
