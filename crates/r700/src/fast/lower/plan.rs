//! Which groups of a clause are lowered, and which PV and PS need rows of their own.
//!
//! PV and PS are the rows of the destinations of the group before. Where there is no such row, or one of the two groups is
//! the reference interpreter's, they are written to rows of their own.

use super::super::lanes::Place;
use super::Lowering;
use crate::code::{AluClause, AluOp, Group, Operand, TRANS};
use crate::meaning::Meaning;
use crate::wave::PREVIOUS;

impl Lowering<'_> {
    /// Which groups the reference interpreter runs.
    pub(super) fn by_reference(&self, clause: &AluClause, groups: &[Group<'_>]) -> Vec<bool> {
        let mut defined = [false; PREVIOUS];
        let mut masked = false;
        let mut result = Vec::with_capacity(groups.len());
        for group in groups {
            result.push(masked || !self.can_lower(clause, group, defined));
            // What follows in the same clause traps, or is rare.
            masked |= group.deciding().is_some_and(|op| op.update_execute_mask);
            defined = [false; PREVIOUS];
            for op in group.ops.iter().filter(|op| !matches!(op.opcode.meaning, Meaning::Nothing)) {
                defined[usize::from(op.slot)] = true;
            }
        }
        result
    }

    fn can_lower(&self, clause: &AluClause, group: &Group<'_>, defined: [bool; PREVIOUS]) -> bool {
        let known = |op: &AluOp| {
            let meaning = match op.opcode.meaning {
                Meaning::Mova(_) | Meaning::MovaLoop(_) | Meaning::Cube | Meaning::Double(_) => false,
                Meaning::Nothing
                | Meaning::Float1(_)
                | Meaning::Float2(_)
                | Meaning::Float3(..)
                | Meaning::Bits1(_)
                | Meaning::Bits2(_)
                | Meaning::Bits3(_)
                | Meaning::PredSet(_)
                | Meaning::Kill(_) => true,
                Meaning::Reduce(_) => self.across(op).is_some(),
            };
            let previous = |slot: usize| defined[slot] || !self.strict;
            let operands = op.read().iter().all(|source| match source.operand {
                Operand::Previous(slot) => previous(slot.into()),
                Operand::PreviousScalar => previous(TRANS.into()),
                Operand::Gpr { gpr, chan } => {
                    !source.rel && self.launch.register_row(gpr.into(), chan.into()).is_some()
                }
                Operand::Value(_) | Operand::Kcache { .. } | Operand::ConstantFile { .. } => {
                    self.constant(clause, source).is_some()
                }
            });
            let destination = !op.dst_rel && (!op.write || self.destination(op).is_some());
            meaning && operands && destination
        };
        let mut destinations: Vec<Place> =
            group.ops.iter().filter(|op| op.writes()).filter_map(|op| self.destination(op)).collect();
        let all = destinations.len();
        destinations.sort_by_key(|place| place.number());
        destinations.dedup();
        group.ops.iter().all(known)
            && destinations.len() == all
            && group.ops.iter().filter(|op| op.sets_predicate()).count() <= 1
    }

    /// For each group, and last for the clause's start, the PV and PS that must be written to rows of their own: those that
    /// a later group reads there.
    pub(super) fn wanted(&self, groups: &[Group<'_>], by_reference: &[bool]) -> Vec<[bool; PREVIOUS]> {
        let mut wanted = vec![[false; PREVIOUS]; groups.len() + 1];
        let mut live = [false; PREVIOUS];
        for number in (0..groups.len()).rev() {
            wanted[number] = live;
            // A result replaces what was there, unless a predicate keeps it from some lanes.
            for op in groups[number].ops {
                if !matches!(op.opcode.meaning, Meaning::Nothing) && op.pred_sel.is_none() {
                    live[usize::from(op.slot)] = false;
                }
            }
            let before = number.checked_sub(1);
            for source in groups[number].ops.iter().flat_map(AluOp::read) {
                let slot = match source.operand {
                    Operand::Previous(slot) => usize::from(slot),
                    Operand::PreviousScalar => usize::from(TRANS),
                    Operand::Gpr { .. }
                    | Operand::Kcache { .. }
                    | Operand::ConstantFile { .. }
                    | Operand::Value(_) => continue,
                };
                let register = before.filter(|before| !by_reference[*before] && !by_reference[number]);
                let register = register.and_then(|before| {
                    let op = groups[before].ops.iter().find(|op| usize::from(op.slot) == slot)?;
                    let same = op.writes() && op.pred_sel.is_none();
                    same.then(|| self.destination(op)).flatten()
                });
                live[slot] |= register.is_none();
            }
        }
        wanted[groups.len()] = live;
        wanted
    }
}
