//! Selects the groups of a clause that the lowering converts. Also determines the groups that need separate rows for PV
//! and PS.
//!
//! Usually, a group reads PV and PS from the destination rows of the previous group. If the previous group has no
//! destination rows with the values of PV and PS, PV and PS need separate rows. PV and PS also need separate rows if
//! the reference interpreter can run one of the two groups.

use super::super::lanes::Place;
use super::Lowering;
use crate::code::{AluClause, AluOp, Group, Operand, Source, TRANS};
use crate::meaning::Meaning;
use crate::wave::PREVIOUS;
use crate::words::{IndexModeR700, KcacheMode};

/// Returns whether aL is added to the position of a window of constants.
pub(super) fn by_loop(clause: &AluClause, set: u8) -> bool {
    clause.kcache[usize::from(set)].mode == KcacheMode::LOCK_LOOP_INDEX
}

/// Returns whether an operand is a register that an index selects.
pub(super) fn indexes_register(source: &Source) -> bool {
    source.rel && matches!(source.operand, Operand::Gpr { .. })
}

/// How a group is executed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Way {
    /// The fast engine runs the operations of the group.
    Lowered,
    /// If the indexed registers exist, the fast engine runs the group's operations. If an indexed register does not
    /// exist, the reference interpreter runs the group.
    Checked,
    /// The reference interpreter runs the group.
    Reference,
}

/// An index that selects a register or constant for an operand or a destination.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Index {
    /// A component of AR.
    Address(usize),
    /// The loop index aL.
    Loop,
}

/// Returns the index that an INDEX_MODE names, or `None` for global registers.
pub(super) fn index(mode: IndexModeR700) -> Option<Index> {
    match mode.address() {
        _ if mode.is_global() => None,
        Some(chan) => Some(Index::Address(chan)),
        None => Some(Index::Loop),
    }
}

/// Returns, for each component of AR, whether a group writes this component.
pub(super) fn addresses(group: &Group<'_>) -> [bool; 4] {
    let mut written = [false; 4];
    let writes = |op: &&AluOp| matches!(op.opcode.meaning, Meaning::Mova(_) | Meaning::MovaLoop(_));
    for op in group.ops.iter().filter(writes) {
        written[usize::from(op.dst_chan)] = true;
    }
    written
}

impl Lowering<'_> {
    /// Returns how each group runs.
    pub(super) fn ways(&self, clause: &AluClause, groups: &[Group<'_>]) -> Vec<Way> {
        let mut defined = [false; PREVIOUS];
        let mut address = [false; 4];
        let mut masked = false;
        let mut result = Vec::with_capacity(groups.len());
        for group in groups {
            let indexes = |op: &AluOp| op.dst_rel || op.read().iter().any(indexes_register);
            result.push(if masked || !self.can_lower(clause, group, defined, address) {
                Way::Reference
            } else if group.ops.iter().any(indexes) {
                Way::Checked
            } else {
                Way::Lowered
            });
            // Rarely, a clause contains a group after an update of the execute mask. In strict mode, such a group
            // traps.
            masked |= group.deciding().is_some_and(|op| op.update_execute_mask);
            defined = [false; PREVIOUS];
            for op in group.ops.iter().filter(|op| !matches!(op.opcode.meaning, Meaning::Nothing)) {
                defined[usize::from(op.slot)] = true;
            }
            for (defined, written) in address.iter_mut().zip(addresses(group)) {
                *defined |= written;
            }
        }
        result
    }

    fn can_lower(
        &self,
        clause: &AluClause,
        group: &Group<'_>,
        defined: [bool; PREVIOUS],
        address: [bool; 4],
    ) -> bool {
        let known = |op: &AluOp| {
            let meaning = match op.opcode.meaning {
                meaning if meaning.is_result_only() => true,
                Meaning::Nothing | Meaning::PredSet(_) | Meaning::Kill(_) | Meaning::Mova(_) => true,
                // The lowering skips operations over several slots that have both an indexed operand and a predicate.
                // If the predicate disables a slot in a lane, this slot does not read its indexed operand. The other
                // slots still use the operand.
                Meaning::Reduce(_) | Meaning::Cube
                    if op.pred_sel.is_some() && op.read().iter().any(indexes_register) =>
                {
                    false
                }
                Meaning::Reduce(_) | Meaning::Cube => self.across(op, false).is_some(),
                _ => false,
            };
            let previous = |slot: usize| defined[slot] || !self.strict;
            let index = || match index(op.index_mode) {
                Some(Index::Address(chan)) => address[chan] || !self.strict,
                Some(Index::Loop) => true,
                None => false,
            };
            let operands = op.read().iter().all(|source| match source.operand {
                Operand::Previous(slot) => previous(slot.into()),
                Operand::PreviousScalar => previous(TRANS.into()),
                Operand::Gpr { .. } if source.rel => index(),
                Operand::Gpr { gpr, chan } => {
                    self.environment.register_row(gpr.into(), chan.into()).is_some()
                }
                Operand::ConstantFile { .. } if source.rel => index(),
                Operand::Kcache { set, index, .. } if by_loop(clause, set) => index < 32,
                Operand::Value(_) | Operand::Kcache { .. } | Operand::ConstantFile { .. } => {
                    self.constant(clause, source).is_some()
                }
            });
            let destination = if op.dst_rel {
                // The lowering moves an indexed write before the operations of later slots. If the instruction had
                // another effect, this effect would also come before the effects of later slots. That order would be
                // wrong.
                op.opcode.meaning.is_result_only() && op.write && index()
            } else {
                !op.write || self.destination(op).is_some()
            };
            meaning && operands && destination
        };
        let direct = group.ops.iter().filter(|op| op.writes() && !op.dst_rel);
        let mut destinations: Vec<Place> = direct.filter_map(|op| self.destination(op)).collect();
        let all = destinations.len();
        destinations.sort_by_key(|place| place.number());
        destinations.dedup();
        group.ops.iter().all(known)
            && destinations.len() == all
            && group.ops.iter().filter(|op| op.sets_predicate()).count() <= 1
    }

    /// Returns, for each group, whether the group must write PV and PS to separate rows. A group that reads PV and PS
    /// from the separate rows requires such a write by an earlier group. The last entry of the result belongs to no
    /// group. The last entry states whether the separate rows must have valid values at the start of the clause.
    pub(super) fn wanted(&self, groups: &[Group<'_>], ways: &[Way]) -> Vec<[bool; PREVIOUS]> {
        let mut wanted = vec![[false; PREVIOUS]; groups.len() + 1];
        let mut live = [false; PREVIOUS];
        for number in (0..groups.len()).rev() {
            wanted[number] = live;
            // A result replaces the previous value of PV or PS in all lanes, unless a predicate disables some of the
            // lanes.
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
                let lowered = |number: usize| ways[number] == Way::Lowered;
                let register = before.filter(|before| lowered(*before) && lowered(number));
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
