//! Reports registers that the program reads before their first write. For each instruction, the search computes two
//! sets of components: components that every path to the instruction writes, and components that some path writes.
//!
//! A register counts as written if an instruction may write the register. So writes under a predicate, through an
//! index, or by a fetch program count as writes. Compilers copy undefined values where paths meet, and turn branches
//! into selections. The check does not report such copies and selections. The result of a copy counts as written if the
//! source of the copy counts as written. The result of a selection counts as written if one of its sources counts as
//! written.

use litemap::LiteMap;
use reconverge_isa::graph::{Edge, EdgeKind};

use super::{Lint, UNWRITTEN, UNWRITTEN_PATH, forward};
use crate::code::{AluOp, CfOp, Code, Operand, Source, always_passes};
use crate::flow::{AluForm, Control};
use crate::graph::Ways;
use crate::uses::R;
use crate::words::{CfInst, Op2};

/// A set of register components. The set has four parts: one set of registers for each of x, y, z and w.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Components([u128; 4]);

impl Components {
    /// The empty set.
    pub const NONE: Components = Components([0; 4]);
    /// All components of every register.
    pub const ALL: Components = Components([u128::MAX; 4]);

    /// Returns these components and all components of register `gpr`.
    pub fn with(self, gpr: u8) -> Components {
        Components(self.0.map(|set| set | 1 << (gpr & 127)))
    }

    /// Adds the component with this number if `on` is set, and otherwise removes the component. The number of a
    /// component is four times the register number plus 0 to 3 for x to w.
    pub(super) fn set(&mut self, number: u32, on: bool) {
        let (set, bit) = (&mut self.0[number as usize & 3], 1 << (number >> 2 & 127));
        *set = if on { *set | bit } else { *set & !bit };
    }

    /// Returns whether the component with this number is in the set.
    pub(super) fn contains(&self, number: u32) -> bool {
        self.0[number as usize & 3] >> (number >> 2 & 127) & 1 != 0
    }

    pub(super) fn and(self, other: Components) -> Components {
        Components(std::array::from_fn(|chan| self.0[chan] & other.0[chan]))
    }

    pub(super) fn or(self, other: Components) -> Components {
        Components(std::array::from_fn(|chan| self.0[chan] | other.0[chan]))
    }
}

/// Determines the edges of a single lane. If the lane is active, an edge leads to the next instruction of the lane. If
/// the lane is inactive, an edge leads to an instruction at which the lane resumes. The edges of a lane are a subset of
/// the wavefront's edges.
struct Lanes<'a> {
    code: &'a Code,
    /// For each ELSE that is the target of a JUMP, the address at which a lane continues after the first side of the
    /// branch.
    over: LiteMap<u32, u32>,
}

impl<'a> Lanes<'a> {
    fn of(code: &'a Code, ways: &Ways) -> Lanes<'a> {
        let mut lanes = Lanes { code, over: LiteMap::new() };
        for (addr, edge) in
            ways.next.iter().flat_map(|(addr, next)| next.iter().map(move |edge| (*addr, edge)))
        {
            if let Some((CfInst::ELSE, control)) =
                lanes.control(edge.to).filter(|_| lanes.to_else(addr, edge))
            {
                lanes.over.insert(edge.to, control.addr);
            }
        }
        lanes
    }

    fn control(&self, addr: u32) -> Option<(CfInst, &'a Control)> {
        match &self.code.cf(addr).ok()?.op {
            CfOp::Control(inst, control) => Some((*inst, control)),
            _ => None,
        }
    }

    /// Returns whether lanes that fail the test of a branch follow this edge to the ELSE of the branch. Such an edge is
    /// a JUMP that pops no entry.
    fn to_else(&self, addr: u32, edge: &Edge) -> bool {
        let from = matches!(self.control(addr), Some((CfInst::JUMP, jump)) if jump.pop_count == 0);
        let to = matches!(self.control(edge.to), Some((CfInst::ELSE, flip)) if always_passes(flip));
        edge.kind == EdgeKind::Jump && from && to
    }

    /// Returns whether the instruction at `addr` is a LOOP_END whose loop ends only by LOOP_BREAK.
    fn ends_by_break(&self, addr: u32) -> bool {
        let Some((CfInst::LOOP_END, end)) = self.control(addr) else { return false };
        let start = end.addr.checked_sub(1).and_then(|start| self.control(start));
        let uncounted = matches!(start, Some((CfInst::LOOP_START_DX10, _))) && always_passes(end);
        let breaks =
            |at: u32| matches!(self.control(at), Some((CfInst::LOOP_BREAK, out)) if out.addr == addr);
        let alu = |at: u32| {
            let op = self.code.cf(at).ok().map(|cf| &cf.op);
            matches!(op, Some(CfOp::Alu(clause)) if clause.form == AluForm::ALU_BREAK)
        };
        let mut body = end.addr..addr;
        uncounted && body.clone().any(breaks) && !body.any(alu)
    }

    fn leads(&self, addr: u32, edge: &Edge) -> Option<u32> {
        // If a CALL has no condition, an active lane first runs the subroutine, and then the instruction after the
        // CALL.
        let calls = matches!(self.control(addr), Some((CfInst::CALL, call)) if always_passes(call));
        if calls && edge.kind != EdgeKind::Call {
            return None;
        }
        // If a lane is active at the start of a loop without a count, the lane does not jump over the loop. If a lane
        // is active at a PUSH, the lane does not jump over the branch.
        let enters = matches!(
            self.control(addr),
            Some((CfInst::LOOP_START_DX10 | CfInst::PUSH, enter)) if always_passes(enter)
        );
        if enters && edge.kind == EdgeKind::Jump {
            return None;
        }
        // If a loop has no count, each lane leaves the loop by a break. The lane then continues after the loop.
        if edge.kind == EdgeKind::Break && self.ends_by_break(edge.to) {
            return Some(edge.to + 1);
        }
        if edge.kind == EdgeKind::Next && self.ends_by_break(addr) {
            return None;
        }
        // In a branch with an ELSE, a lane runs one of two sides. A lane that reaches the ELSE by the JUMP runs the
        // second side. Any other lane has run the first side, and continues after the second side.
        if self.to_else(addr, edge) {
            return Some(edge.to + 1);
        }
        let mut to = edge.to;
        for _ in 0..self.over.len() {
            match self.over.get(&to) {
                Some(behind) => to = *behind,
                None => break,
            }
        }
        Some(to)
    }
}

/// Reports the first read of each component that no path has written. Also reports the first read of each component
/// that only some paths have written. The components `inputs` count as written at the start of the program.
pub(super) fn unwritten(lint: &mut Lint<'_>, code: &Code, ways: &Ways, inputs: Components) {
    let never = first_reads(lint, code, ways, inputs, Components::or);
    let some = first_reads(lint, code, ways, inputs, Components::and);
    let spelled = |number: u32| format!("R{}.{}", number / 4, char::from(b"xyzw"[number as usize & 3]));
    for (at, number) in &never {
        lint.find(&UNWRITTEN, *at, format!("{} is read before it is written", spelled(*number)));
    }
    for (at, number) in some.into_iter().filter(|(_, number)| never.iter().all(|(_, known)| known != number))
    {
        lint.find(&UNWRITTEN_PATH, at, format!("{} may be read before it is written", spelled(number)));
    }
}

/// Finds the components that the program reads before their first write. For each such component, the function returns
/// the first read. Where paths meet, `join` merges the paths' sets of written components.
fn first_reads(
    lint: &Lint<'_>,
    code: &Code,
    ways: &Ways,
    inputs: Components,
    join: fn(Components, Components) -> Components,
) -> Vec<(u32, u32)> {
    let step = |addr: u32, before: &Components| {
        let mut after = *before;
        visit(lint, code, addr, &mut after, &mut |_, _, _| {});
        after
    };
    let lanes = Lanes::of(code, ways);
    let join = |one: &Components, other: &Components| join(*one, *other);
    let written = forward(ways, lint.known.start, inputs, join, step, |addr, edge| lanes.leads(addr, edge));
    let (mut found, mut said) = (Vec::new(), Components::NONE);
    for (addr, mut before) in written {
        visit(lint, code, addr, &mut before, &mut |at, number, written| {
            if !written.contains(number) && !said.contains(number) {
                said.set(number, true);
                found.push((at, number));
            }
        });
    }
    found
}

/// Visits an instruction and the instructions of its clause. For each component that an instruction reads, the function
/// calls `read` with the address and the set of components written up to now. The function adds the components that an
/// instruction writes to `written`.
fn visit(
    lint: &Lint<'_>,
    code: &Code,
    addr: u32,
    written: &mut Components,
    read: &mut impl FnMut(u32, u32, &Components),
) {
    let Ok(cf) = code.cf(addr) else { return };
    // The host chooses the fetch program, so the fetch program may write any register.
    if let CfOp::Control(CfInst::CALL_FS, _) = &cf.op {
        *written = Components::ALL;
    }
    let mut places: Vec<(u32, &[AluOp])> = vec![(addr, &[])];
    match &cf.op {
        CfOp::Alu(clause) => places.extend(code.groups(clause).map(|group| (group.addr, group.ops))),
        CfOp::Fetch(_, _, fetches) => places.extend(fetches.iter().map(|fetch| (fetch.addr, &[][..]))),
        CfOp::Control(..) | CfOp::Export(..) | CfOp::Memory(..) => {}
    }
    for (place, ops) in places {
        let operations = lint.uses.get(&place).map_or(&[][..], Vec::as_slice);
        let passed = |at: usize| ops.get(at).map_or(&[][..], passed_on);
        // All instructions of a group read their operands before any instruction of the group writes.
        let before = *written;
        for (at, uses) in operations.iter().enumerate() {
            let computed = |number: &u32| passed(at).iter().all(|source| register(source) != Some(*number));
            let reads = uses.reads.iter().map(|read| read.slot).filter(|slot| slot.file == R);
            reads
                .filter_map(|slot| slot.number)
                .filter(computed)
                .for_each(|number| read(place + at as u32, number, &before));
        }
        for (at, uses) in operations.iter().enumerate() {
            let lacks = |source: &Source| register(source).is_some_and(|number| !before.contains(number));
            let undefined = !passed(at).is_empty() && passed(at).iter().all(lacks);
            for slot in uses.writes.iter().filter(|slot| slot.file == R) {
                match slot.number {
                    Some(_) if undefined && uses.conditional => {}
                    Some(number) => written.set(number, !undefined),
                    None => *written = Components::ALL,
                }
            }
        }
    }
}

/// For a copy or a selection, returns the operands that can become the result. For all other instructions, returns an
/// empty list.
fn passed_on(op: &AluOp) -> &[Source] {
    match op.opcode.name {
        name if name == Op2::MOV.name() => op.read(),
        name if name.starts_with("CND") => &op.read()[1..],
        _ => &[],
    }
}

/// Returns the register component that an operand names, or `None` if an index selects the register.
fn register(source: &Source) -> Option<u32> {
    match source.operand {
        Operand::Gpr { gpr, chan } if !source.rel => Some(u32::from(gpr) * 4 + u32::from(chan)),
        _ => None,
    }
}
