//! Changes to the flow state for fault injection. A change models a particle that hits a latch or a word of the stack.
//!
//! A fault never makes the two state bits of a lane invalid. If a fault makes a lane active, the lane is no longer
//! inactive-continue or inactive-break. If a fault makes a lane inactive, the lane becomes inactive-branch.

use reconverge_simt::Mask;

use super::{Entry, Flow, LoopKind, LoopRegisters, States};

/// Part of a stack entry that a fault changes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Part {
    /// The lanes that were active at the push.
    Active,
    /// For a loop, the lanes that were inactive-break before the loop.
    Breaks,
}

impl States {
    fn with_active(self, lanes: Mask) -> States {
        let States { inactive_continue, inactive_break, .. } = self;
        States {
            active: lanes,
            inactive_continue: inactive_continue - lanes,
            inactive_break: inactive_break - lanes,
        }
    }

    fn with_breaks(self, lanes: Mask) -> States {
        let States { active, inactive_continue, .. } = self;
        States { active: active - lanes, inactive_continue: inactive_continue - lanes, inactive_break: lanes }
    }
}

/// Number of bits in a loop's count. SQ_LOOP_CONST stores this count in its field COUNT.
pub const TRIP_BITS: u32 = 12;

/// Returns whether a loop counts its iterations. All loops count their iterations, except DX10 loops without a limit.
fn counts(registers: &LoopRegisters) -> bool {
    registers.kind != LoopKind::Dx10 || registers.trip != 0
}

impl Flow {
    /// Makes exactly `lanes` active.
    pub fn set_active(&mut self, lanes: Mask) {
        self.states = self.states.with_active(lanes);
    }

    /// Returns the mask `part` of a stack entry. If the entry does not have this part, the function returns `None`.
    /// `entry` is the number of the entry, counted from the outermost entry.
    pub fn entry_mask(&self, entry: usize, part: Part) -> Option<Mask> {
        match (self.stack.get(entry)?, part) {
            (Entry::Branch { active, .. }, Part::Active) => Some(*active),
            (Entry::Loop { states, .. }, Part::Active) => Some(states.active),
            (Entry::Loop { states, .. }, Part::Breaks) => Some(states.inactive_break),
            (Entry::Branch { .. }, Part::Breaks) | (Entry::Return { .. }, _) => None,
        }
    }

    /// Sets the mask that [`Flow::entry_mask`] returns. Does nothing if the entry does not have this part.
    pub fn set_entry_mask(&mut self, entry: usize, part: Part, lanes: Mask) {
        match (self.stack.entries_mut().get_mut(entry), part) {
            (Some(Entry::Branch { active, .. }), Part::Active) => *active = lanes,
            (Some(Entry::Loop { states, .. }), Part::Active) => *states = states.with_active(lanes),
            (Some(Entry::Loop { states, .. }), Part::Breaks) => *states = states.with_breaks(lanes),
            (Some(Entry::Branch { .. }), Part::Breaks) | (Some(Entry::Return { .. }) | None, _) => {}
        }
    }

    /// Returns the numbers of remaining iterations of the open loops, innermost loop first. The list omits loops that
    /// do not count their iterations.
    pub fn trips(&self) -> Vec<u32> {
        let saved = self.stack.iter().rev().filter_map(|entry| match entry {
            Entry::Loop { registers, .. } => registers.as_ref(),
            Entry::Branch { .. } | Entry::Return { .. } => None,
        });
        self.registers.iter().chain(saved).filter(|it| counts(it)).map(|it| it.trip).collect()
    }

    /// Sets the number of remaining iterations of a loop. `place` is the index of the loop in [`Flow::trips`]. Does
    /// nothing if the loop does not exist.
    pub fn set_trip(&mut self, place: usize, trip: u32) {
        let saved = self.stack.entries_mut().iter_mut().rev().filter_map(|entry| match entry {
            Entry::Loop { registers, .. } => registers.as_mut(),
            Entry::Branch { .. } | Entry::Return { .. } => None,
        });
        if let Some(registers) = self.registers.iter_mut().chain(saved).filter(|it| counts(it)).nth(place) {
            registers.trip = trip;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::flow::{Control, FlowSetup, LoopConstant};

    #[test]
    fn a_lane_is_in_one_state_after_a_change() {
        let mut flow = Flow::new(FlowSetup::new(64, Mask(0xf)));
        flow.loop_start_dx10(&Control::to(9)).unwrap();
        flow.push_(&Control::to(9)).unwrap();
        flow.set_active(Mask(0b0011));
        flow.loop_break(&Control::to(9)).unwrap();
        assert_eq!(flow.states().inactive_break & Mask(0xf), Mask(0b0011));
        flow.set_active(Mask(0b0110));
        let States { active, inactive_break, .. } = flow.states();
        assert_eq!((active, inactive_break & Mask(0xf)), (Mask(0b0110), Mask(0b0001)));
    }

    #[test]
    fn entries_of_loops_have_two_masks_and_those_of_pushes_have_one() {
        let mut flow = Flow::new(FlowSetup::new(64, Mask(0xf)));
        flow.loop_start_dx10(&Control::to(9)).unwrap();
        flow.push_(&Control::to(9)).unwrap();
        let masks = [(0, Part::Active), (0, Part::Breaks), (1, Part::Active), (1, Part::Breaks)]
            .map(|(entry, part)| flow.entry_mask(entry, part));
        assert_eq!(masks, [Some(Mask(0xf)), Some(Mask::NONE), Some(Mask(0xf)), None]);
        flow.set_entry_mask(0, Part::Breaks, Mask(1));
        assert_eq!(flow.entry_mask(0, Part::Active), Some(Mask(0xe)));
        flow.set_entry_mask(1, Part::Active, Mask(5));
        flow.pop(&Control::to(0).pop(1)).unwrap();
        assert_eq!(flow.active(), Mask(5));
        // The loop does not count iterations, so no count exists that a fault could change.
        assert!(flow.trips().is_empty());
    }

    #[test]
    fn the_counts_of_nested_loops_are_found_innermost_first() {
        let mut setup = FlowSetup::new(64, Mask(0xf));
        setup.loop_constants[..2].copy_from_slice(&[LoopConstant(7), LoopConstant(5)]);
        let mut flow = Flow::new(setup);
        flow.loop_start(&Control::to(9)).unwrap();
        flow.loop_start_no_al(&Control { cf_const: 1, ..Control::to(9) }).unwrap();
        assert_eq!(flow.trips(), [5, 7]);
        flow.set_trip(1, 3);
        assert_eq!(flow.trips(), [5, 3]);
        // `Flow::trips` also lists a count of zero and the limit of a DX10 loop.
        flow.set_trip(0, 0);
        assert_eq!(flow.trips(), [0, 3]);
        let mut flow = Flow::new(FlowSetup { dx10_loop_limit: Some(4), ..FlowSetup::new(64, Mask(0xf)) });
        flow.loop_start_dx10(&Control::to(9)).unwrap();
        assert_eq!(flow.trips(), [4]);
    }
}
