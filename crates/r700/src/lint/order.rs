//! Three checks of the order of instructions. Between certain instructions, every path must contain a barrier, a wait
//! for an acknowledge, or the last export of a type.

use super::{BARRIER, Components, EXPORT_DONE, Lint, SCRATCH_WAIT, forward};
use crate::chip::Family;
use crate::code::{CfOp, Code, ExportKind, FetchOp};
use crate::graph::Ways;
use crate::uses::R;
use crate::words::{CfInst, ExportInst, MemOp};

pub(super) fn order(lint: &mut Lint<'_>, code: &Code, ways: &Ways) {
    barriers(lint, code, ways);
    // In a program with subroutines, the lint does not check exports. A RETURN has edges to the instructions after all
    // calls of its subroutine. So an export before one call would also seem to come before all other calls.
    if ways.entries.len() == 1 {
        exports(lint, code, ways);
    }
    if lint.chip.family == Family::R700 {
        waits(lint, code, ways);
    }
}

/// Registers that clauses have written since the last barrier. The first set contains registers that fetch clauses have
/// written. The second set contains registers that clauses of any kind have written.
type Pending = [Components; 2];

fn barriers(lint: &mut Lint<'_>, code: &Code, ways: &Ways) {
    let join = |one: &Pending, other: &Pending| [one[0].or(other[0]), one[1].or(other[1])];
    let barrier = |addr: u32| lint.words.get(2 * addr as usize + 1).is_some_and(|word| word >> 31 != 0);
    let numbers = |addr: u32, op: &CfOp, write: bool| -> Vec<u32> {
        let all = Lint::uses_of(&lint.uses, code, addr, op).into_iter();
        let slots = all.flat_map(|(_, uses)| {
            let reads = uses.reads.iter().map(|read| read.slot).filter(move |_| !write);
            reads.chain(uses.writes.iter().copied().filter(move |_| write))
        });
        slots.filter(|slot| slot.file == R).filter_map(|slot| slot.number).collect()
    };
    let none = [Components::NONE; 2];
    let step = |addr: u32, before: &Pending| {
        let mut after = if barrier(addr) { none } else { *before };
        let Ok(cf) = code.cf(addr) else { return after };
        let fetched = matches!(cf.op, CfOp::Fetch(..));
        if fetched || matches!(cf.op, CfOp::Alu(_)) {
            for number in numbers(addr, &cf.op, true) {
                // If an ALU clause overwrites the result of a fetch, the ALU clause must wait for the fetch. So later
                // readers need not wait for the fetch. If the ALU clause does not wait, the check reports the ALU
                // clause.
                after[0].set(number, fetched);
                after[1].set(number, true);
            }
        }
        after
    };
    let before = forward(ways, lint.known.start, none, join, step, |_, edge| Some(edge.to));
    let mut found = Vec::new();
    for (addr, cf) in code.instructions().filter(|(addr, _)| !barrier(*addr)) {
        let Some([fetched, any]) = before.get(&addr) else { continue };
        let pending = if matches!(cf.op, CfOp::Export(..) | CfOp::Memory(..)) { any } else { fetched };
        let read = numbers(addr, &cf.op, false).into_iter().find(|number| pending.contains(*number));
        found.extend(read.map(|number| (addr, number)));
    }
    for (addr, number) in found {
        let chan = char::from(b"xyzw"[number as usize % 4]);
        lint.find(
            &BARRIER,
            addr,
            format!("an earlier clause writes R{}.{chan}, and BARRIER is not set", number / 4),
        );
    }
}

/// State of the exports of one type before an instruction. The state is a set of three bits: no export, last export
/// without EXPORT_DONE, or last export with EXPORT_DONE. If the paths to the instruction differ, several bits are set.
const NOTHING: u8 = 1;
const EXPORTED: u8 = 2;
const DONE: u8 = 4;

fn exports(lint: &mut Lint<'_>, code: &Code, ways: &Ways) {
    for kind in [ExportKind::Pixel, ExportKind::Pos, ExportKind::Param] {
        let own = |addr: u32| match code.cf(addr).ok().map(|cf| &cf.op) {
            Some(CfOp::Export(_, export)) if export.kind == kind => Some(export.done),
            _ => None,
        };
        let step = |addr: u32, before: &u8| match own(addr) {
            Some(true) => DONE,
            Some(false) => EXPORTED,
            None => *before,
        };
        let before =
            forward(ways, lint.known.start, NOTHING, |one, other| one | other, step, |_, edge| Some(edge.to));
        for (addr, before) in &before {
            let ends = code.cf(*addr).is_ok_and(|cf| cf.end_of_program);
            if own(*addr).is_some() && before & DONE != 0 {
                lint.find(&EXPORT_DONE, *addr, format!("an EXPORT_DONE of {} comes before", name(kind)));
            }
            if ends && step(*addr, before) & EXPORTED != 0 {
                lint.find(
                    &EXPORT_DONE,
                    *addr,
                    format!("the last export of {} is not an EXPORT_DONE", name(kind)),
                );
            }
        }
    }
}

fn name(kind: ExportKind) -> &'static str {
    match kind {
        ExportKind::Pixel => "PIXEL",
        ExportKind::Pos => "POS",
        ExportKind::Param => "PARAM",
    }
}

/// Reports each read of memory that the program has written. If the program waits for the write before the read, the
/// check does not report the read. The state has two bits for each memory space. The lower bit is for writes with an
/// acknowledge. The higher bit is four positions above the lower bit and is for writes without an acknowledge.
fn waits(lint: &mut Lint<'_>, code: &Code, ways: &Ways) {
    let written = |inst: ExportInst| match inst {
        ExportInst::MEM_SCRATCH => 1,
        ExportInst::MEM_REDUCTION => 2,
        ExportInst::MEM_EXPORT => 4,
        _ => 0,
    };
    let step = |addr: u32, before: &u8| match code.cf(addr).ok().map(|cf| &cf.op) {
        Some(CfOp::Memory(_, memory)) => {
            before | if memory.ack { written(memory.inst) } else { written(memory.inst) << 4 }
        }
        Some(CfOp::Control(CfInst::WAIT_ACK, control)) if control.addr == 0 => before & 0xf0,
        _ => *before,
    };
    let before = forward(ways, lint.known.start, 0, |one, other| one | other, step, |_, edge| Some(edge.to));
    for (addr, cf) in code.instructions() {
        let (CfOp::Fetch(_, _, fetches), Some(before)) = (&cf.op, before.get(&addr)) else { continue };
        for fetch in fetches {
            let FetchOp::Memory(low, ..) = &fetch.op else { continue };
            let (bit, name) = match low.mem_op {
                MemOp::RD_REDUC => (2, "the reduction buffer"),
                MemOp::RD_SCATTER => (4, "the scatter buffer"),
                _ => (1, "scratch memory"),
            };
            if before & bit != 0 {
                lint.find(&SCRATCH_WAIT, fetch.addr, format!("writes to {name} may be outstanding"));
            } else if before & bit << 4 != 0 {
                lint.find(
                    &SCRATCH_WAIT,
                    fetch.addr,
                    format!("writes to {name} do not request an acknowledge"),
                );
            }
        }
    }
}
