//! Registers that each instruction reads and writes.
//!
//! In the files `t`, `at`, `i` and `o`, a register has the number that [`Event::Write`](reconverge_simt::Event::Write)
//! uses. No two registers of these files have the same number. In the file `c`, a number is four times the number of
//! the constant plus the channel. In the file `a0`, a number is the component. `p` is the predicate bit, and `aL` is
//! the loop index.

use reconverge_simt::uses::{Read, Role, Slot, Uses, UsesAt};

use super::group::File;
use super::inst::{Inst, Mode, Operand};
use super::operations::Value;
use super::setup::Setup;
use super::words::{DstType, Select};

/// The constant file.
pub const CONST: &str = "c";
/// The address register.
pub const A0: &str = "a0";
/// The predicate bit.
pub const PREDICATE: &str = "p";
/// The loop index.
pub const AL: &str = "aL";

/// Returns the reads and writes of every instruction in a program, indexed by slot. Words without a meaning do not have
/// an entry.
pub fn uses(setup: &Setup) -> UsesAt {
    let of_slot = |(pc, slot): (u16, &super::setup::Slot)| {
        Some((u32::from(pc), of_instruction(slot.inst.as_ref().ok()?)))
    };
    UsesAt::from_sorted_store_unchecked(setup.slots().filter_map(of_slot).collect())
}

/// Returns the reads and writes of an instruction, with one entry per operation. A dual instruction has two operations.
pub fn of_instruction(inst: &Inst) -> Vec<Uses> {
    let operation = inst.operation();
    let mut all = Vec::new();
    if !matches!(operation.value, Value::Nothing) {
        let mut uses = Uses::new(inst.op.name(), operation.fidelity);
        for (operand, used) in inst.operands.iter().zip(inst.reads()) {
            reads(&mut uses, operand, used);
        }
        let dst = &inst.dst;
        address(&mut uses, dst.mode);
        for channel in (0..4).filter(|channel| dst.writes(*channel)) {
            let (file, number) = match File::of_destination(dst.file) {
                None => (A0, Some(channel as u32)),
                Some(file) => {
                    let row = file.row(i32::from(dst.register)).filter(|_| dst.mode == Mode::Absolute);
                    (file.name, row.map(|row| (row + channel) as u32))
                }
            };
            uses.writes.push(Slot { file, number });
        }
        uses.leaves = matches!(dst.file, DstType::OUT | DstType::OUT_REPL_X) && dst.mask != 0;
        if operation.sets_predicate() {
            uses.writes.push(Slot { file: PREDICATE, number: Some(0) });
        }
        uses.conditional = inst.predicate.is_some() || matches!(operation.value, Value::Write(_));
        all.push(uses);
    }
    if let Some(dual) = inst.dual.filter(|dual| !matches!(dual.op.operation().value, Value::Nothing)) {
        let mut uses = Uses::new(dual.op.name(), dual.op.operation().fidelity);
        reads(&mut uses, &dual.source, dual.scalars());
        let row = super::group::ALT_TEMPORARY.start + usize::from(dual.register) * 4 + dual.channel as usize;
        uses.writes.push(Slot { file: super::group::ALT_TEMPORARY.name, number: Some(row as u32) });
        uses.conditional = inst.predicate.is_some();
        all.push(uses);
    }
    if inst.predicate.is_some() {
        all.iter_mut().for_each(|uses| read(uses, PREDICATE, Some(0), Role::Flow));
    }
    all
}

fn read(uses: &mut Uses, file: &'static str, number: Option<u32>, role: Role) {
    let read = Read { slot: Slot { file, number }, role, quad: false };
    if !uses.reads.contains(&read) {
        uses.reads.push(read);
    }
}

/// Adds the registers that an addressing mode reads.
fn address(uses: &mut Uses, mode: Mode) {
    match mode {
        Mode::Absolute => {}
        Mode::A0(component) => read(uses, A0, Some(component as u32), Role::Address),
        Mode::Loop => read(uses, AL, Some(0), Role::Address),
    }
}

fn reads(uses: &mut Uses, operand: &Operand, used: u8) {
    if operand.needs_register(used) {
        address(uses, operand.mode);
    }
    for (_, select) in operand.select.iter().enumerate().filter(|(n, _)| used >> n & 1 == 1) {
        if *select > Select::W {
            continue;
        }
        let channel = *select as u32;
        let (file, row) = match File::of_source(operand.file) {
            None => (CONST, Some(u32::from(operand.register) * 4 + channel)),
            Some(file) => (file.name, file.row(i32::from(operand.register)).map(|row| row as u32 + channel)),
        };
        read(uses, file, row.filter(|_| operand.mode == Mode::Absolute), Role::Value);
    }
}
