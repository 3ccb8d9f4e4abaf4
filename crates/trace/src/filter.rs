//! Selects records of a trace.

use std::ops::RangeInclusive;

use reconverge_simt::Mask;

use crate::record::{Record, What};

/// Names of the record types in filters.
pub const EVENTS: [&str; 10] =
    ["issue", "diverge", "resume", "reconverge", "push", "pop", "jump", "trap", "write", "memory"];

/// Selects records of a trace. The default selects all records.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Filter {
    /// Range of groups.
    pub groups: Option<RangeInclusive<u32>>,
    /// Set of lanes. The filter selects a record if the record concerns at least one lane of the set.
    pub lanes: Option<Mask>,
    /// Range of instruction addresses. The address of an event is the address of the last instruction that the event's
    /// group of lanes has issued.
    pub addresses: Option<RangeInclusive<u32>>,
    /// Record types. Each record type is one of [`EVENTS`].
    pub events: Option<Vec<&'static str>>,
}

impl Filter {
    /// Returns whether the filter selects `record`. `pc` is the address of the record's instruction.
    pub fn takes(&self, record: &Record, pc: u32) -> bool {
        let lanes = |mask: Mask| self.lanes.is_none_or(|lanes| (lanes & mask).any());
        let (name, concerned) = match record.what {
            What::Ran { mask, .. } => ("issue", lanes(mask)),
            What::Diverge { taken, not } => ("diverge", lanes(taken | not)),
            What::Resume { mask } => ("resume", lanes(mask)),
            What::Reconverge { mask } => ("reconverge", lanes(mask)),
            What::Trap { mask } => ("trap", lanes(mask)),
            What::Push { .. } => ("push", true),
            What::Pop { .. } => ("pop", true),
            What::Jump { .. } => ("jump", true),
            What::Write { lane, .. } => ("write", lanes(Mask::only(lane))),
            What::Load { lane, .. } | What::Store { lane, .. } => ("memory", lanes(Mask::only(lane))),
        };
        concerned
            && self.groups.as_ref().is_none_or(|groups| groups.contains(&record.group))
            && self.addresses.as_ref().is_none_or(|addresses| addresses.contains(&pc))
            && self.events.as_ref().is_none_or(|events| events.contains(&name))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_filter_asks_for_group_lane_address_and_type() {
        let record = |group, bits| Record { step: 0, group, what: What::Reconverge { mask: Mask(bits) } };
        let all = Filter::default();
        assert!(all.takes(&record(3, 1), 8));
        let group = Filter { groups: Some(1..=2), ..Filter::default() };
        assert_eq!([group.takes(&record(2, 1), 8), group.takes(&record(3, 1), 8)], [true, false]);
        let lane = Filter { lanes: Some(Mask(0b10)), ..Filter::default() };
        assert_eq!([lane.takes(&record(0, 0b11), 8), lane.takes(&record(0, 1), 8)], [true, false]);
        let place = Filter { addresses: Some(8..=16), ..Filter::default() };
        assert_eq!([place.takes(&record(0, 1), 16), place.takes(&record(0, 1), 24)], [true, false]);
        let event = Filter { events: Some(vec!["diverge"]), ..Filter::default() };
        assert!(!event.takes(&record(0, 1), 8));
    }
}
