//! The operations of a group.
//!
//! In a group everything is read before anything is written. An operation that writes a row comes after those of its group
//! that read the row; where two read each other's rows, one writes an intermediate row that is copied at the end.

use super::super::bodies::{Dot4, General, Max4, Sets};
use super::super::kernels::{Shape, choose};
use super::super::lanes::{ACTIVE, Across, FALSE, Handler, Operation, Place, TRUE, handler};
use super::{Before, INTERMEDIATE, Lowering};
use crate::code::{AluClause, AluOp, Group, TRANS};
use crate::meaning::{AluCode, Meaning};
use crate::wave::PREVIOUS;
use crate::words::Op2;

/// An instruction of one slot on its way to an operation.
struct Draft {
    operation: Operation,
    /// The opcode, if the operation is its own code without modifiers.
    plain: Option<AluCode>,
    /// What it reads.
    reads: Vec<Place>,
    /// Where its result goes: a register, a row of PV or PS.
    register: Option<Place>,
    previous: Option<Place>,
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
            self.run.push((operation, None));
        }
        let mut drafts: Vec<Draft> =
            group.ops.iter().filter_map(|op| self.draft(clause, group, op, before, wanted)).collect();
        let mut copies = Vec::new();
        let mut waiting = 0;
        while !drafts.is_empty() {
            let others_read = |number: usize| {
                let row = drafts[number].operation.dst;
                drafts.iter().enumerate().any(|(other, draft)| other != number && draft.reads.contains(&row))
            };
            let free = (0..drafts.len()).find(|number| !others_read(*number));
            let mut draft = drafts.remove(free.unwrap_or(0));
            let result = draft.operation.dst;
            if free.is_none() {
                // Every row to write is still to be read: the result waits in an intermediate row.
                draft.operation.dst = self.intermediate(waiting);
                waiting += 1;
            }
            let from = draft.operation.dst;
            let goals = [free.is_none().then_some(result), draft.register.and(draft.previous)];
            for goal in goals.into_iter().flatten().filter(|goal| *goal != from) {
                copies.push(self.copy(from, goal, draft.operation.set));
            }
            self.run.push((draft.operation, draft.plain));
        }
        self.run.extend(copies.into_iter().map(|copy| (copy, None)));
    }

    /// The operation of one slot; `None` when it has no visible effect.
    fn draft(
        &mut self,
        clause: &AluClause,
        group: &Group<'_>,
        op: &AluOp,
        before: &Before,
        wanted: [bool; PREVIOUS],
    ) -> Option<Draft> {
        let slot = usize::from(op.slot);
        if matches!(op.opcode.meaning, Meaning::Nothing) {
            return None;
        }
        let register = if op.write { self.destination(op) } else { None };
        let previous = wanted[slot].then(|| self.place(self.previous + slot));
        let dst = register.or(previous);
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
        operation.dx10_clamp = self.launch.dx10_clamp;
        (operation.update_pred, operation.update_execute_mask) = (op.update_pred, op.update_execute_mask);
        operation.factor = op.omod;
        let mut reads = Vec::new();
        if let Meaning::Reduce(_) = op.opcode.meaning {
            let zero = Across { place: self.constant_place(0), keep: u32::MAX, flip: 0 };
            let mut across = [zero; 8];
            for other in group.ops.iter().filter(|other| other.slot < TRANS) {
                for (place, source) in other.read().iter().enumerate().take(2) {
                    let (row, keep, flip) = self.source(clause, source, before);
                    across[usize::from(other.slot) + 4 * place] = Across { place: row, keep, flip };
                    reads.push(row);
                }
            }
            operation.run = self.across(op)?;
            operation.number = self.lowered.tables.across.len() as u32;
            self.lowered.tables.across.push(across);
            return Some(Draft { operation, plain: None, reads, register, previous });
        }
        for (number, source) in op.read().iter().enumerate() {
            let (row, keep, flip) = self.source(clause, source, before);
            operation.src[number] = row;
            (operation.keep[number], operation.flip[number]) = (keep, flip);
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
        // A kernel has room for one factor.
        let own = if factors.contains(&1.0) { choose(op.opcode.code, shape, self.level) } else { None };
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
        Some(Draft { operation, plain, reads, register, previous })
    }

    pub(super) fn across(&self, op: &AluOp) -> Option<Handler> {
        match op.opcode.code {
            AluCode::Op2(Op2::DOT4) => Some(handler::<Dot4<false>>(self.level)),
            AluCode::Op2(Op2::DOT4_IEEE) => Some(handler::<Dot4<true>>(self.level)),
            AluCode::Op2(Op2::MAX4) => Some(handler::<Max4>(self.level)),
            AluCode::Op2(_) | AluCode::Op3(_) => None,
        }
    }

    /// An operation of this code with nothing to read and nowhere to write.
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
        let run = choose(AluCode::Op2(Op2::MOV), shape, self.level);
        let run = run.expect("a plain MOV has code of its own");
        Operation { src: [from; 3], dst: to, set, ..self.operation(run) }
    }
}
