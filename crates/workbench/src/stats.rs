//! Counts by instruction, and what divergence costs: [`Profile`] collects them while a program runs.
//!
//! What counts as an instruction, a lane of one and a divergence is each machine's convention, which docs/r500.md,
//! docs/r700.md and docs/tesla.md state; the sums are those of [`reconverge_simt::Statistics`].

use std::collections::BTreeMap;

use reconverge_simt::{Event, Mask};
use serde::Serialize;

use crate::trace::Sink;

/// Counts of one instruction.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct InstructionCounts {
    /// How often it was issued to a group.
    pub executed: u64,
    /// That, summed over the lanes that took part.
    pub lanes: u64,
    /// How often it split the lanes.
    pub diverged: u64,
    /// Instructions issued for the lanes whose path runs first, until both sides run together again.
    pub taken_cost: u64,
    /// Instructions issued for the other lanes until then.
    pub not_cost: u64,
    /// How many of its divergences ended, because lanes of both sides ran together again.
    pub reconverged: u64,
    /// Instructions issued to the group between divergence and that, summed.
    pub distance: u64,
    /// The largest of them.
    pub farthest: u64,
}

/// Counts of a whole run.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
pub struct Totals {
    /// Instructions issued to a group.
    pub instructions: u64,
    /// Instructions summed over the lanes that took part.
    pub lane_instructions: u64,
    /// Decisions that split the lanes.
    pub divergent_branches: u64,
    /// Lanes that took part, of those that a group has room for: 0 to 1.
    pub simd_efficiency: f64,
    /// The most entries that a group's stack had at a time, as the machine announces pushes and pops.
    pub stack_high_water: u64,
    /// Groups that ran.
    pub groups: u64,
}

/// A divergence whose sides have not run together again.
#[derive(Clone, Copy, Debug)]
struct Open {
    pc: u32,
    taken: Mask,
    not: Mask,
    distance: u64,
}

/// What is known of a group while it runs.
#[derive(Clone, Debug, Default)]
struct Group {
    last: u32,
    /// At most one a lane: each splits a set of lanes off.
    open: Vec<Open>,
    depth: u64,
}

/// Collects the counts of a run.
#[derive(Clone, Debug)]
pub struct Profile {
    width: u32,
    /// By address.
    counts: Vec<InstructionCounts>,
    /// The groups that have not run to their end, and those that have.
    groups: BTreeMap<usize, Group>,
    totals: Totals,
}

impl Profile {
    /// No counts, for groups of `width` lanes.
    pub fn new(width: u32) -> Profile {
        Profile { width, counts: Vec::new(), groups: BTreeMap::new(), totals: Totals::default() }
    }

    /// The counts of each instruction that ran, by address.
    pub fn instructions(&self) -> impl Iterator<Item = (u32, InstructionCounts)> {
        let counts = self.counts.iter().enumerate().filter(|(_, counts)| counts.executed > 0);
        counts.map(|(pc, counts)| (pc as u32, *counts))
    }

    /// The counts of the instruction at an address.
    pub fn at(&self, pc: u32) -> InstructionCounts {
        self.counts.get(pc as usize).copied().unwrap_or_default()
    }

    /// The counts of the whole run.
    pub fn totals(&self) -> Totals {
        let places = self.totals.instructions as f64 * f64::from(self.width);
        let simd_efficiency = if places == 0.0 { 0.0 } else { self.totals.lane_instructions as f64 / places };
        Totals { simd_efficiency, groups: self.groups.len() as u64, ..self.totals }
    }

    fn count(&mut self, pc: u32) -> &mut InstructionCounts {
        let pc = pc as usize;
        if pc >= self.counts.len() {
            self.counts.resize(pc + 1, InstructionCounts::default());
        }
        &mut self.counts[pc]
    }
}

impl Sink for Profile {
    fn issues(&mut self, group: usize, addresses: &[u32], mask: Mask) {
        let Some(&last) = addresses.last() else { return };
        let issued = addresses.len() as u64;
        for pc in addresses {
            let counts = self.count(*pc);
            counts.executed += 1;
            counts.lanes += u64::from(mask.count());
        }
        self.totals.instructions += issued;
        self.totals.lane_instructions += issued * u64::from(mask.count());
        let group = self.groups.entry(group).or_default();
        group.last = last;
        let counts = &mut self.counts;
        group.open.retain_mut(|open| {
            let counts = &mut counts[open.pc as usize];
            match ((mask & open.taken).any(), (mask & open.not).any()) {
                (true, true) => {
                    counts.reconverged += 1;
                    counts.distance += open.distance;
                    counts.farthest = counts.farthest.max(open.distance);
                    return false;
                }
                (true, false) => counts.taken_cost += issued,
                (false, true) => counts.not_cost += issued,
                (false, false) => {}
            }
            open.distance += issued;
            true
        });
    }

    fn event(&mut self, group: usize, event: Event) {
        let group = self.groups.entry(group).or_default();
        match event {
            Event::Diverge { taken, not } => {
                group.open.push(Open { pc: group.last, taken, not, distance: 0 });
                let pc = group.last;
                self.totals.divergent_branches += 1;
                self.count(pc).diverged += 1;
            }
            Event::Push { .. } => {
                group.depth += 1;
                self.totals.stack_high_water = self.totals.stack_high_water.max(group.depth);
            }
            Event::Pop { .. } => group.depth = group.depth.saturating_sub(1),
            _ => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn mask(bits: u64) -> Mask {
        Mask(bits)
    }

    /// `if (lanes 0, 1) { 8, 16 } else { 24 }; 32`, the `if` at 0.
    fn profile() -> Profile {
        let mut profile = Profile::new(4);
        profile.issues(0, &[0], mask(0b1111));
        profile.event(0, Event::Push { kind: "JOINAT" });
        profile.event(0, Event::Diverge { taken: mask(0b0011), not: mask(0b1100) });
        profile.issues(0, &[8, 16], mask(0b0011));
        profile.issues(0, &[24], mask(0b1100));
        profile.event(0, Event::Pop { kind: "JOINAT" });
        profile.event(0, Event::Reconverge { mask: mask(0b1111) });
        profile.issues(0, &[32], mask(0b1111));
        profile
    }

    #[test]
    fn an_instruction_has_how_often_and_for_how_many_lanes_it_ran() {
        let counts = profile().at(8);
        assert_eq!((counts.executed, counts.lanes, counts.diverged), (1, 2, 0));
        assert_eq!(profile().instructions().map(|(pc, _)| pc).collect::<Vec<_>>(), [0, 8, 16, 24, 32]);
    }

    #[test]
    fn a_branch_has_the_cost_of_both_sides_and_the_distance_to_where_they_run_together() {
        let branch = profile().at(0);
        assert_eq!((branch.diverged, branch.taken_cost, branch.not_cost), (1, 2, 1));
        assert_eq!((branch.reconverged, branch.distance, branch.farthest), (1, 3, 3));
    }

    #[test]
    fn the_totals_are_the_sums() {
        let totals = profile().totals();
        assert_eq!((totals.instructions, totals.lane_instructions, totals.divergent_branches), (5, 14, 1));
        assert_eq!((totals.simd_efficiency, totals.stack_high_water), (0.7, 1));
    }

    #[test]
    fn sides_that_never_run_together_have_no_distance() {
        let mut profile = Profile::new(4);
        profile.issues(0, &[0], mask(0b1111));
        profile.event(0, Event::Diverge { taken: mask(0b0001), not: mask(0b1110) });
        profile.issues(0, &[8], mask(0b1110));
        let branch = profile.at(0);
        assert_eq!((branch.reconverged, branch.not_cost, branch.taken_cost), (0, 1, 0));
    }

    #[test]
    fn groups_do_not_mix() {
        let mut profile = Profile::new(4);
        profile.issues(0, &[0], mask(0b1111));
        profile.event(0, Event::Diverge { taken: mask(0b0011), not: mask(0b1100) });
        profile.issues(1, &[0], mask(0b1111));
        profile.issues(0, &[8], mask(0b0011));
        assert_eq!(profile.at(0).taken_cost, 1);
        assert_eq!(profile.at(0).reconverged, 0);
        assert_eq!(profile.totals().groups, 2);
    }
}
