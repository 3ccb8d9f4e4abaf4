//! Lowers the operations of a group.
//!
//! A group reads all operands before it writes any result. Therefore, if operation A reads a row that operation B of
//! the same group writes, A must come before B. If A also writes a row that B reads, the lowering gives one of the two
//! operations an intermediate row. At the end of the group, a copy moves the result from the intermediate row to the
//! destination.

use super::super::bodies::{CubeSlot, Dot4, General, Max4, Sets};
use super::super::indexed::{Check, WriteByLoop, WriteByRow};
use super::super::kernels::{Shape, choose};
use super::super::lanes::{ACTIVE, Across, FALSE, Handler, Operation, Place, TRUE, handler};
use super::plan::indexes_register;
use super::{Before, INTERMEDIATE, Lowering, Made, Template};
use crate::code::{AluClause, AluOp, Group, Operand, Source, TRANS};
use crate::meaning::{AluCode, Meaning};
use crate::wave::PREVIOUS;
use crate::words::Op2;

/// Template of an operation that copies a row: a MOV.
const COPY: Template = Template::Code(AluCode::Op2(Op2::MOV));

/// An instruction that is being lowered to an operation.
struct Draft {
    made: Made,
    /// Rows that the instruction reads.
    reads: Vec<Place>,
    /// Rows that receive a copy of the result in the destination: the row of a register, or the row of PV or PS.
    others: Vec<Place>,
}

impl Lowering<'_> {
    pub(super) fn group(
        &mut self,
        clause: &AluClause,
        group: &Group<'_>,
        before: &Before,
        wanted: [bool; PREVIOUS],
    ) {
        if group.ops.iter().any(|op| op.pred_sel.is_some()) {
            let operation = self.operation(handler::<Sets>(self.level));
            self.push(operation, Template::Sets);
        }
        self.used = 0;
        // Indexed registers must exist even if the instruction has no visible effect.
        for op in group.ops {
            for source in op.read().iter().filter(|source| indexes_register(source)) {
                let Operand::Gpr { gpr, .. } = source.operand else { continue };
                let index = self.index_row(op, before);
                self.checks.push(Check { index, register: gpr });
            }
            if op.dst_rel {
                let index = self.index_row(op, before);
                self.checks.push(Check { index, register: op.dst_gpr });
            }
        }
        let mut drafts: Vec<Draft> = Vec::new();
        let mut copies = Vec::new();
        let seen = |op: &AluOp| op.dst_rel;
        for (number, op) in group.ops.iter().enumerate() {
            // If a later instruction of the group writes an indexed register, the lowering first copies the current
            // instruction's operands. The indexed write does not change the copies.
            let held = group.ops[number + 1..].iter().any(seen);
            let Some(mut draft) = self.draft(clause, group, op, before, wanted, held) else { continue };
            if !op.dst_rel {
                drafts.push(draft);
                continue;
            }
            // An indexed write happens immediately. Instructions in later slots of the group read the new value
            // (Rule::INDEXED_WRITES_ARE_SEEN_IN_THE_GROUP).
            let result = self.temporary();
            draft.made.operation.dst = result;
            let set = draft.made.operation.set;
            self.push(draft.made.operation, draft.made.template);
            let write = self.indexed_write(op, before, result, set);
            self.push(write, Template::None);
            for other in draft.others {
                copies.push(self.copy(result, other, set));
            }
        }
        let mut waiting = 0;
        while !drafts.is_empty() {
            let others_read = |number: usize| {
                let row = drafts[number].made.operation.dst;
                drafts.iter().enumerate().any(|(other, draft)| other != number && draft.reads.contains(&row))
            };
            let free = (0..drafts.len()).find(|number| !others_read(*number));
            let mut draft = drafts.remove(free.unwrap_or(0));
            let result = draft.made.operation.dst;
            if free.is_none() {
                // For each remaining instruction, some other remaining instruction reads the destination. So no
                // instruction can be the first. The first remaining instruction writes to an intermediate row.
                draft.made.operation.dst = self.intermediate(waiting);
                waiting += 1;
            }
            let Operation { dst: from, set, .. } = draft.made.operation;
            let goals = free.is_none().then_some(result).into_iter().chain(draft.others);
            for goal in goals.filter(|goal| *goal != from) {
                copies.push(self.copy(from, goal, set));
            }
            self.run.push(draft.made);
        }
        copies.into_iter().for_each(|copy| self.push(copy, COPY));
    }

    /// Adds an operation to the run that the lowering is building.
    pub(super) fn push(&mut self, operation: Operation, template: Template) {
        self.run.push(Made { operation, template, plain: None, group: self.lowered.groups.len() as u32 });
    }

    /// Returns the operation for the instruction of one slot. If the instruction has no visible effect, the function
    /// returns `None`.
    fn draft(
        &mut self,
        clause: &AluClause,
        group: &Group<'_>,
        op: &AluOp,
        before: &Before,
        wanted: [bool; PREVIOUS],
        held: bool,
    ) -> Option<Draft> {
        let slot = usize::from(op.slot);
        if matches!(op.opcode.meaning, Meaning::Nothing) {
            return None;
        }
        let address = matches!(op.opcode.meaning, Meaning::Mova(_)).then(|| self.address(op.dst_chan.into()));
        let register = if op.write && !op.dst_rel { self.destination(op) } else { None };
        let previous = wanted[slot].then(|| self.place(self.previous + slot));
        let mut goals = [address, register, previous].into_iter().flatten();
        let dst = if op.dst_rel { Some(self.intermediate(INTERMEDIATE - 1)) } else { goals.next() };
        let others: Vec<Place> = goals.collect();
        if let Some(address) =
            address.filter(|_| op.pred_sel.is_some() && !before.address[usize::from(op.dst_chan)])
        {
            // Lanes that the predicate disables do not write AR. The clause has not written AR before, so the AR of
            // these lanes is 0.
            let zero = self.constant_place(0);
            let operation = self.copy(zero, address, ACTIVE);
            self.push(operation, COPY);
        }
        if dst.is_none() && !op.sets_predicate() && !matches!(op.opcode.meaning, Meaning::Kill(_)) {
            return None;
        }
        let mut operation = self.operation(handler::<General>(self.level));
        operation.dst = dst.unwrap_or(self.intermediate(INTERMEDIATE - 1));
        operation.set = match op.pred_sel {
            None => ACTIVE,
            Some(true) => TRUE,
            Some(false) => FALSE,
        };
        operation.clamp = op.clamp;
        operation.dx10_clamp = self.environment.dx10_clamp;
        (operation.update_pred, operation.update_execute_mask) = (op.update_pred, op.update_execute_mask);
        operation.factor = op.omod;
        let mut reads = Vec::new();
        if let Meaning::Reduce(_) | Meaning::Cube = op.opcode.meaning {
            let zero = Across { place: self.constant_place(0), keep: u32::MAX, flip: 0 };
            let mut across = [zero; 8];
            for other in group.ops.iter().filter(|other| other.slot < TRANS) {
                for (place, source) in other.read().iter().enumerate().take(2) {
                    let (row, keep, flip) = self.held_source(clause, other, source, before, held);
                    across[usize::from(other.slot) + 4 * place] = Across { place: row, keep, flip };
                    reads.push(row);
                }
            }
            let modified = across.iter().any(|source| source.keep != u32::MAX || source.flip != 0);
            operation.run = self.across(op, modified)?;
            operation.number = self.lowered.tables.across.len() as u32;
            self.lowered.tables.across.push(across);
            let template = match op.opcode.code {
                AluCode::Op2(Op2::DOT4) => Template::Dot4 { ieee: false },
                AluCode::Op2(Op2::DOT4_IEEE) => Template::Dot4 { ieee: true },
                AluCode::Op2(_) | AluCode::Op3(_) => Template::None,
            };
            return Some(Draft {
                made: Made { operation, template, plain: None, group: self.lowered.groups.len() as u32 },
                reads,
                others,
            });
        }
        for (number, source) in op.read().iter().enumerate() {
            let (row, keep, flip) = self.held_source(clause, op, source, before, held);
            // If the opcode has fewer than three sources, the code repeats the last source for each missing source.
            for number in number..3 {
                operation.src[number] = row;
                (operation.keep[number], operation.flip[number]) = (keep, flip);
            }
            reads.push(row);
        }
        let factor = match op.opcode.meaning {
            Meaning::Float3(_, factor) => factor,
            _ => 1.0,
        };
        let factors = [op.omod, factor];
        let shape = Shape {
            modified: op.read().iter().any(|source| source.abs || source.neg),
            finish: factors != [1.0; 2] || op.clamp,
            write: dst.is_some(),
        };
        // A kernel can multiply by only one factor: the factor of OMOD, or the factor of the opcode.
        let own = if factors.contains(&1.0) {
            choose(op.opcode.code, shape, self.environment.chip.family, self.level)
        } else {
            None
        };
        match own {
            Some(run) => {
                operation.run = run;
                operation.factor = if factor == 1.0 { op.omod } else { factor };
            }
            None => {
                operation.number = self.lowered.tables.generals.len() as u32;
                self.lowered.tables.generals.push((op.opcode.meaning, factor));
            }
        }
        let plain = own.filter(|_| !shape.modified && !shape.finish).map(|_| op.opcode.code);
        let template = own.map_or(Template::None, |_| Template::Code(op.opcode.code));
        Some(Draft {
            made: Made { operation, template, plain, group: self.lowered.groups.len() as u32 },
            reads,
            others,
        })
    }

    /// Returns the row of an operand from [`Lowering::source`]. If `held` is set and the operand is a register, an
    /// operation first copies the register to this row. Indexed writes of the group do not change the copied value.
    fn held_source(
        &mut self,
        clause: &AluClause,
        op: &AluOp,
        source: &Source,
        before: &Before,
        held: bool,
    ) -> (Place, u32, u32) {
        let (row, keep, flip) = self.source(clause, op, source, before);
        if !held || source.rel || !matches!(source.operand, Operand::Gpr { .. }) {
            return (row, keep, flip);
        }
        let copy = self.temporary();
        let operation = self.copy(row, copy, ACTIVE);
        self.push(operation, COPY);
        (copy, keep, flip)
    }

    /// Returns the operation that writes a result to the register that an index selects.
    fn indexed_write(&mut self, op: &AluOp, before: &Before, result: Place, set: u8) -> Operation {
        let row = self.index_row(op, before);
        let run = match row {
            Some(_) => handler::<WriteByRow>(self.level),
            None => handler::<WriteByLoop>(self.level),
        };
        let number = u32::from(op.dst_gpr) << 2 | u32::from(op.dst_chan);
        Operation { src: [result, row.unwrap_or(result), result], set, number, ..self.operation(run) }
    }

    /// Returns the kernel of an operation over the four vector slots. `modified`: whether some operand has abs or neg.
    pub(super) fn across(&self, op: &AluOp, modified: bool) -> Option<Handler> {
        let level = self.level;
        Some(match (op.opcode.code, modified) {
            (AluCode::Op2(Op2::CUBE), _) => match op.slot {
                0 => handler::<CubeSlot<0>>(level),
                1 => handler::<CubeSlot<1>>(level),
                2 => handler::<CubeSlot<2>>(level),
                _ => handler::<CubeSlot<3>>(level),
            },
            (AluCode::Op2(Op2::DOT4), false) => handler::<Dot4<false, false>>(level),
            (AluCode::Op2(Op2::DOT4), true) => handler::<Dot4<false, true>>(level),
            (AluCode::Op2(Op2::DOT4_IEEE), false) => handler::<Dot4<true, false>>(level),
            (AluCode::Op2(Op2::DOT4_IEEE), true) => handler::<Dot4<true, true>>(level),
            (AluCode::Op2(Op2::MAX4), _) => handler::<Max4>(level),
            (AluCode::Op2(_) | AluCode::Op3(_), _) => return None,
        })
    }

    /// Returns an operation with this kernel. The operation has no sources. Its destination is a row that no operation
    /// reads.
    pub(super) fn operation(&self, run: Handler) -> Operation {
        let nowhere = self.intermediate(INTERMEDIATE - 1);
        Operation {
            run,
            src: [nowhere; 3],
            dst: nowhere,
            keep: [u32::MAX; 3],
            flip: [0; 3],
            factor: 1.0,
            clamp: false,
            dx10_clamp: false,
            set: ACTIVE,
            update_pred: false,
            update_execute_mask: false,
            number: 0,
        }
    }

    fn copy(&self, from: Place, to: Place, set: u8) -> Operation {
        let shape = Shape { modified: false, finish: false, write: true };
        let run = choose(AluCode::Op2(Op2::MOV), shape, self.environment.chip.family, self.level);
        let run = run.expect("a plain MOV has code of its own");
        Operation { src: [from; 3], dst: to, set, ..self.operation(run) }
    }
}
