//! Classifies Tesla instructions and their memory accesses for counting.

use litemap::LiteMap;
use reconverge_isa::Program;
use reconverge_tesla::code::Code;
use reconverge_tesla::inst::{Chip, Group, Inst, Mem, Memory, Op, Operand, Space, Stage};

use crate::stats::banks::BankedAccess;
use crate::stats::memory::{Access, Coalescing};
use crate::stats::{Class, Conventions};
use crate::target::TargetError;

pub(super) fn conventions(chip: Chip, stage: Stage, program: &Program) -> Result<Conventions, TargetError> {
    let code = Code::new(&program.words, program.base, stage, chip);
    let slots = || (code.base()..).step_by(4).zip(code.slots());
    let instructions = || slots().filter_map(|(pc, slot)| Some((pc, slot?)));
    Ok(Conventions {
        classes: LiteMap::from_sorted_store_unchecked(
            instructions().map(|(pc, inst)| (pc, class(&inst.op))).collect(),
        ),
        accesses: LiteMap::from_sorted_store_unchecked(
            instructions().filter_map(|(pc, inst)| Some((pc, access(inst)?))).collect(),
        ),
        banked: LiteMap::from_sorted_store_unchecked(
            instructions().filter_map(|(pc, inst)| Some((pc, banked(inst)?))).collect(),
        ),
        coalescing: Ok(if chip.has_sm12() { Coalescing::BySegment } else { Coalescing::InSequence }),
    })
}

fn class(op: &Op) -> Class {
    match op {
        Op::Arith(_) | Op::Group(Group::Quadop { .. } | Group::Vote { .. }) => Class::Alu,
        Op::Memory(Memory::Interp { .. }) => Class::Interpolation,
        Op::Memory(_) => Class::Memory,
        Op::Group(Group::Tex(_)) => Class::Texture,
        Op::Group(Group::Emit { .. }) => Class::Output,
        Op::Control(_) => Class::Flow,
        Op::Idle(_) => Class::Other,
    }
}

/// Returns how an instruction accesses g[]. Returns `None` if the instruction is not a load or store. The guide does
/// not define coalescing for atomic operations.
fn access(inst: &Inst) -> Option<Access> {
    let store = match inst.op {
        Op::Memory(Memory::Ld) => false,
        Op::Memory(Memory::St) => true,
        _ => return None,
    };
    match &inst.src[0] {
        Operand::Mem(mem) if matches!(mem.space, Space::Global(_)) => {
            Some(Access { store, bytes: mem.access.bytes() })
        }
        _ => None,
    }
}

/// Returns how an instruction accesses s[]. Two kinds of instructions access s[]. Stores write to s[], and other
/// instructions load an operand from s[]. An instruction has at most one operand in s[]. Returns `None` for all other
/// instructions.
fn banked(inst: &Inst) -> Option<BankedAccess> {
    let store = matches!(inst.op, Op::Memory(Memory::St | Memory::StUnlock));
    let operands = inst.src.iter().enumerate().filter_map(|(place, operand)| match operand {
        Operand::Mem(mem) => Some((place, mem)),
        _ => None,
    });
    // The first operand of a store is the destination of the store. So the store does not load this operand.
    let loads = operands.clone().filter(|(place, _)| !(store && *place == 0));
    let is_shared = |mem: &Mem| mem.space == Space::Shared;
    if store && let Some((_, mem)) = operands.clone().find(|(place, mem)| *place == 0 && is_shared(mem)) {
        return Some(BankedAccess { store: true, bytes: mem.access.bytes(), which: 0 });
    }
    let found = loads.enumerate().find(|(_, (_, mem))| is_shared(mem));
    found.map(|(which, (_, mem))| BankedAccess {
        store: false,
        bytes: mem.access.bytes(),
        which: which as u8,
    })
}
