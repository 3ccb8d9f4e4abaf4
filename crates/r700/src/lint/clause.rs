//! Checks the order of instructions within a clause. The checks cover fetches. The checks also cover results, addresses
//! and predicates that a later group uses.

use super::{ADDRESS, FETCH_HAZARD, INDEXED_WRITE, Lint, PRED_SEL, PREDICATE, PREVIOUS};
use crate::chip::Chip;
use crate::code::{AluClause, AluOp, Code, Fetch, Group, Operand, TRANS};
use crate::meaning::Meaning;
use crate::uses::{CLAUSE_TEMPORARIES, R};

/// Returns the component of AR that an instruction uses as an index.
fn address(op: &AluOp) -> Option<usize> {
    let operand = |operand: &Operand| matches!(operand, Operand::Gpr { .. } | Operand::ConstantFile { .. });
    let indexed =
        op.dst_rel && op.writes() || op.read().iter().any(|source| source.rel && operand(&source.operand));
    op.index_mode.address().filter(|_| indexed)
}

/// Returns whether an instruction writes a register that an index selects. Returns `false` for a global register.
fn written_by_index(op: &&AluOp) -> bool {
    op.dst_rel && op.writes() && !op.index_mode.is_global()
}

impl Lint<'_> {
    /// Checks the groups of a clause in order.
    pub(super) fn sequence(&mut self, code: &Code, clause: &AluClause) {
        let mut results = [false; 5];
        let mut addresses = [false; 4];
        let mut predicate = false;
        let mut before: Option<Group<'_>> = None;
        for group in code.groups(clause) {
            for (op, addr) in group.ops.iter().zip(group.addr..) {
                for source in op.read() {
                    let slot = match source.operand {
                        Operand::Previous(chan) => usize::from(chan & 3),
                        Operand::PreviousScalar => usize::from(TRANS),
                        _ => continue,
                    };
                    if !results[slot] {
                        let name = ["PV.x", "PV.y", "PV.z", "PV.w", "PS"][slot];
                        self.find(
                            &PREVIOUS,
                            addr,
                            format!("{name} is read, but the previous group does not write {name}"),
                        );
                    }
                }
                // If an instruction of the same group writes AR, the rule `mova-use` reports the group.
                let mova = |op: &AluOp| matches!(op.opcode.meaning, Meaning::Mova(_));
                if let Some(chan) =
                    address(op).filter(|chan| !addresses[*chan] && !group.ops.iter().any(mova))
                {
                    let name = ["x", "y", "z", "w"][chan];
                    self.find(&ADDRESS, addr, format!("AR.{name} is not written in this clause"));
                }
                if op.pred_sel.is_some() && !predicate {
                    self.find(&PREDICATE, addr, "nothing has set the predicate in this clause");
                }
            }
            if group.ops.windows(2).any(|pair| pair[0].pred_sel != pair[1].pred_sel) {
                self.find(&PRED_SEL, group.addr, "the group has several");
            }
            if let Some(before) = before {
                self.indexed_write(before, group);
            }
            results = [false; 5];
            for op in group.ops {
                results[usize::from(op.slot)] |= !matches!(op.opcode.meaning, Meaning::Nothing);
                addresses[usize::from(op.dst_chan & 3)] |=
                    matches!(op.opcode.meaning, Meaning::Mova(_) | Meaning::MovaLoop(_));
                predicate |= op.update_pred;
            }
            before = Some(group);
        }
    }

    /// Checks reads of registers that the previous group has written through an index. Mesa states that such a read is
    /// a hazard on RV770. Mesa does not state such a hazard for RV670, RS780, RS880 and the other R700 chips.
    fn indexed_write(&mut self, before: Group<'_>, group: Group<'_>) {
        if !(self.chip.indexes_by_loop || self.chip == Chip::RV770) {
            return;
        }
        for (op, addr) in group.ops.iter().zip(group.addr..) {
            let reads = |written: &AluOp| {
                op.read().iter().any(|source| match source.operand {
                    Operand::Gpr { gpr, chan } => {
                        // The words do not show where an indexed array ends. So an indexed write can change the
                        // register that the instruction names, or any register with a higher number. On RV770, the
                        // check covers only the named register, because LLVM emits reads of higher registers for this
                        // chip.
                        let behind = gpr > written.dst_gpr && u32::from(gpr) < CLAUSE_TEMPORARIES;
                        let in_array = gpr == written.dst_gpr || behind && self.chip.indexes_by_loop;
                        chan == written.dst_chan && (source.rel || in_array)
                    }
                    _ => false,
                })
            };
            if let Some(written) = before.ops.iter().filter(written_by_index).find(|written| reads(written)) {
                let message = format!("the previous group writes R[{}+index]", written.dst_gpr);
                self.find(&INDEXED_WRITE, addr, message);
            }
        }
    }

    /// Checks the fetches of a clause in order.
    pub(super) fn fetches(&mut self, fetches: &[Fetch]) {
        let mut written: Vec<u32> = Vec::new();
        let mut found = Vec::new();
        for fetch in fetches {
            for uses in self.uses.get(&fetch.addr).into_iter().flatten() {
                let mut reads = uses.reads.iter().map(|read| read.slot).filter(|slot| slot.file == R);
                let read = reads.find_map(|slot| slot.number.filter(|number| written.contains(number)));
                found.extend(read.map(|number| (fetch.addr, number)));
                let writes = uses.writes.iter().filter(|slot| slot.file == R);
                written.extend(writes.filter_map(|slot| slot.number));
            }
        }
        for (addr, number) in found {
            let (register, chan) = (number / 4, char::from(b"xyzw"[number as usize & 3]));
            self.find(
                &FETCH_HAZARD,
                addr,
                format!("an earlier fetch of the clause writes R{register}.{chan}"),
            );
        }
    }
}
