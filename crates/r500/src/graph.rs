//! The control flow of a program as a graph of its slots.
//!
//! A group has one program counter. An edge is a possible transition of the program counter. If a lane does not follow
//! a transition, the lane waits until the program counter reaches the lane's next instruction. The edges do not depend
//! on the constants of the launch, because constants may change. A LOOP may be entered or skipped, and a static branch
//! may jump or stay. A return has edges to the slots after the calls of its subroutine.
//!
//! A group traps at a slot without an instruction. So the graph omits edges to slots without an instruction.

use litemap::LiteMap;
use reconverge_isa::graph::{Edge, EdgeKind, Graph, Node};
use reconverge_isa::sets::NumberSet;

use crate::flow::{self, Role, jumps};
use crate::inst::{Body, Fc, Inst};
use crate::setup::Setup;
use crate::words::{AOp, BOp, CmnInst, FcInst, PredSel};

/// The possible successors of an FC instruction.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Ways {
    /// Whether the next slot is a successor.
    pub stays: bool,
    /// Whether the jump target is a successor.
    pub jumps: bool,
}

/// The possible votes of active lanes at an FC instruction.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Wishes {
    /// Whether lanes can vote to jump.
    pub(crate) jump: bool,
    /// Whether lanes can vote to stay.
    pub(crate) stay: bool,
    /// Whether lanes of one group can vote differently. Lanes can vote differently if the vote depends on the ALU
    /// result or on a predicate.
    pub(crate) differ: bool,
}

/// Returns whether all lanes vote to jump. The vote of the instruction must depend only on a boolean constant.
pub(crate) fn wants(common: &CmnInst, fc: &FcInst, boolean: bool) -> bool {
    jumps(fc.jump_func, false, common.rgb_pred_sel == PredSel::NONE, boolean)
}

pub(crate) fn wishes(common: &CmnInst, fc: &FcInst) -> Wishes {
    // If the instruction does not select a predicate, the predicate is treated as true.
    let predicates: &[bool] = if common.rgb_pred_sel == PredSel::NONE { &[true] } else { &[false, true] };
    let mut all = Wishes { jump: false, stay: false, differ: false };
    for boolean in [false, true] {
        let (mut jump, mut stay) = (false, false);
        for (alu, predicate) in
            [false, true].iter().flat_map(|alu| predicates.iter().map(move |it| (*alu, *it)))
        {
            let wants = jumps(fc.jump_func, alu, predicate, boolean);
            (jump, stay) = (jump | wants, stay | !wants);
        }
        all = Wishes { jump: all.jump | jump, stay: all.stay | stay, differ: all.differ | (jump && stay) };
    }
    all
}

/// Returns the possible successors of an FC instruction, for any lanes and constants.
///
/// Without votes, an instruction with JUMP_ALL jumps, and an instruction with JUMP_ANY does not jump. So both outcomes
/// are possible if the votes are not constant. (CTM guide p. 37)
pub fn ways(common: &CmnInst, fc: &FcInst) -> Ways {
    let wishes = wishes(common, fc);
    let voted = match fc.jump_any {
        true => Ways { stays: true, jumps: wishes.jump || fc.b_else },
        false => Ways { stays: wishes.stay, jumps: true },
    };
    match fc.op.role() {
        Role::Jump => voted,
        // If the iteration count is 0, the instruction jumps.
        Role::Begin { .. } => Ways { jumps: true, ..voted },
        // At the end of the last iteration, the group stays. At a BREAK, the group stays if lanes of the loop inhibit
        // the jump.
        Role::End { .. } | Role::Break { .. } | Role::Continue => Ways { stays: true, ..voted },
    }
}

/// Returns the absolute slot of the jump target of an FC instruction.
pub fn target(setup: &Setup, fc: &Fc) -> u16 {
    flow::target(&fc.addr, setup.offset)
}

/// Returns the name of the operation or construct that lets lanes reconverge at an FC instruction. Assumes that the
/// program is structured. If lanes cannot reconverge at the instruction, returns `None`. If the instruction is neither
/// a loop operation nor a known construct, returns the operation on the branch counters.
fn reconverges(fc: &FcInst, ways: Ways) -> Option<&'static str> {
    // The function assumes that exactly one branch is open. An operation on the branch counters closes the branch if no
    // branch remains open after the operation.
    let closes = |taken: bool, op: BOp| taken && fc.levels_after(op, 1).is_none_or(|left| left == 0);
    match fc.op.role() {
        // At the end of a loop, lanes that wait after a CONTINUE resume. After the last iteration, lanes that a BREAK
        // has switched off also resume.
        Role::End { .. } => Some(fc.op.name()),
        // When the last lanes leave the loop, the group pops the frame. The lanes that left the loop earlier resume.
        Role::Break { .. } if ways.jumps => Some(fc.op.name()),
        // A BREAK or CONTINUE jumps only if no branch has switched off a lane of the loop. So a jumping BREAK or
        // CONTINUE decrements only counters of lanes outside the loop.
        Role::Break { .. } | Role::Continue => None,
        Role::Jump | Role::Begin { .. } if closes(ways.stays, fc.b_op0) => {
            Some(if fc.a_op == AOp::POP { "RETURN" } else { "ENDIF" })
        }
        Role::Jump | Role::Begin { .. } if closes(ways.jumps, fc.b_op1) => match fc.a_op {
            AOp::POP => Some("RETURN"),
            // An else jumps only if the B_ELSE does not activate any lane. After the B_ELSE, the DECR of the jump
            // activates the lanes that the B_ELSE has switched off. So the else does not change which lanes are active.
            _ if fc.b_else && fc.b_pop_cnt == 1 && !fc.ignore_uncovered => None,
            _ if fc.b_else => Some("ELSE"),
            _ => Some("DECR"),
        },
        Role::Jump | Role::Begin { .. } => None,
    }
}

/// The slots of the main program or of a subroutine. Paths from the first slot reach all these slots. Paths continue
/// after calls and end at returns.
struct Routine {
    /// First slot of the subroutine. `None` stands for the main program, which runs with an empty address stack.
    entry: Option<u16>,
    reached: NumberSet,
    returns: NumberSet,
}

/// Returns the main program and its subroutines. Also returns the slots after the calls of each subroutine, indexed by
/// the first slot of the subroutine.
fn routines(setup: &Setup) -> (Vec<Routine>, LiteMap<u16, NumberSet>) {
    let mut routines = Vec::new();
    let mut behind_calls: LiteMap<u16, NumberSet> = LiteMap::new();
    let mut pending = vec![None];
    while let Some(entry) = pending.pop() {
        let (mut reached, mut returns) = (NumberSet::new(), NumberSet::new());
        let mut to_visit = vec![entry.unwrap_or(setup.start)];
        while let Some(pc) = to_visit.pop() {
            let Some(Ok(inst)) = setup.slot(pc).filter(|_| reached.insert(pc.into())).map(|slot| &slot.inst)
            else {
                continue;
            };
            for Way { to, kind } in ways_on(setup, pc, inst) {
                match kind {
                    EdgeKind::Call => {
                        let known = behind_calls.contains_key(&to);
                        behind_calls.entry(to).or_default().insert(u32::from(pc) + 1);
                        pending.extend((!known).then_some(Some(to)));
                        to_visit.push(pc + 1);
                    }
                    EdgeKind::Return if entry.is_some() => {
                        returns.insert(pc.into());
                    }
                    _ => to_visit.push(to),
                }
            }
        }
        routines.push(Routine { entry, reached, returns });
    }
    (routines, behind_calls)
}

/// Returns the control-flow graph of a program. The nodes of the graph are the instructions that paths from the start
/// reach, in the order of their slots.
pub fn graph(setup: &Setup) -> Graph {
    let (routines, behind_calls) = routines(setup);
    let mut nodes: LiteMap<u32, Node> = LiteMap::new();
    for Routine { entry, reached, .. } in &routines {
        for pc in reached {
            nodes.entry(pc).or_insert_with(|| node(setup, pc as u16, entry.is_none()));
        }
    }
    let exists = |pc: u32| setup.slot(pc as u16).is_some();
    for Routine { entry, returns, .. } in &routines {
        let sites = entry.and_then(|entry| behind_calls.get(&entry)).into_iter().flatten();
        for to in sites.filter(|to| exists(*to)) {
            for from in returns {
                nodes[&from].next.push(Edge { to, kind: EdgeKind::Return });
            }
        }
    }
    let mut nodes: Vec<Node> = nodes.into_iter().map(|(_, node)| node).collect();
    for node in &mut nodes {
        node.next.sort_by_key(|edge| (edge.kind, edge.to));
        node.next.dedup();
    }
    let mut entries = vec![u32::from(setup.start)];
    let called = behind_calls.keys().filter(|entry| **entry != setup.start).map(|pc| u32::from(*pc));
    entries.extend(called.filter(|pc| exists(*pc)));
    Graph { entries, nodes }
}

/// A successor of an instruction. JUMP_ADDR is a successor of a return, because lenient mode jumps to JUMP_ADDR if the
/// address stack is empty.
struct Way {
    to: u16,
    kind: EdgeKind,
}

fn ways_on(setup: &Setup, pc: u16, inst: &Inst) -> Vec<Way> {
    if pc == setup.end {
        return Vec::new();
    }
    let Body::Fc(fc) = &inst.body else { return vec![Way { to: pc + 1, kind: EdgeKind::Next }] };
    let Ways { stays, jumps } = ways(&inst.common, &fc.inst);
    let kind = match (fc.inst.a_op, fc.inst.op.role()) {
        (AOp::PUSH, _) => EdgeKind::Call,
        (AOp::POP, _) => EdgeKind::Return,
        (AOp::NONE, Role::Jump | Role::Begin { .. }) => EdgeKind::Jump,
        (AOp::NONE, Role::End { .. }) => EdgeKind::Loop,
        (AOp::NONE, Role::Break { .. }) => EdgeKind::Break,
        (AOp::NONE, Role::Continue) => EdgeKind::Continue,
    };
    let next = stays.then_some(Way { to: pc + 1, kind: EdgeKind::Next });
    let jump = jumps.then(|| Way { to: target(setup, fc), kind });
    next.into_iter().chain(jump).collect()
}

/// Returns the node of an instruction. The node of a return does not have edges to the callers. `without_caller` states
/// that the program reaches the instruction without a call.
fn node(setup: &Setup, pc: u16, without_caller: bool) -> Node {
    let mut node = Node { pc: u32::from(pc), ..Node::default() };
    let Some(Ok(inst)) = setup.slot(pc).map(|slot| &slot.inst) else { return node };
    if let Body::Fc(fc) = &inst.body {
        node.diverges = wishes(&inst.common, &fc.inst).differ;
        node.reconverges = reconverges(&fc.inst, ways(&inst.common, &fc.inst));
    }
    let exists = |way: &Way| setup.slot(way.to).is_some();
    let edge = |Way { to, kind }: Way| match kind {
        EdgeKind::Return if without_caller => Some(Edge { to: u32::from(to), kind: EdgeKind::Jump }),
        EdgeKind::Return => None,
        kind => Some(Edge { to: u32::from(to), kind }),
    };
    node.next = ways_on(setup, pc, inst).into_iter().filter(exists).filter_map(edge).collect();
    node
}
