//! Events and observers. Observers cost nothing when they are disabled.

use crate::mask::{Lane, Mask};

reconverge_isa::choices! {
    /// Path by which the fast engine executes an instruction.
    #[derive(Hash)]
    pub enum Path {
        /// Host code that was compiled for the program.
        Compiled = "compiled",
        /// Chain: consecutive blocks that run with the same lanes. The engine does not check the flow state between
        /// these blocks.
        Chain = "chain",
        /// Conditional that runs as a unit. It consists of a branch, the two sides of the branch, and their join.
        Conditional = "conditional",
        /// Fused ALU clause. The clause runs as one operation.
        Clause = "clause",
        /// Block of several instructions that runs after a check of the flow state, or a clause that is not fused.
        Block = "block",
        /// Part of a block. Either the group entered the block after the block's first instruction, or the instruction
        /// budget ended inside the block.
        Part = "part of a block",
        /// Single instruction.
        Single = "single",
        /// Reference interpreter, for instructions that the fast engine does not handle.
        Reference = "reference interpreter",
        /// Instructions for which the engine did not announce a path.
        Other = "other",
    }
}

/// An event, in the terms of traces, debuggers and coverage. Addresses are in the machine's own unit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Event {
    /// An instruction is about to be executed for these lanes.
    Issue {
        /// Address of the instruction.
        pc: u32,
        /// The active lanes.
        mask: Mask,
    },
    /// A flow decision split the active lanes.
    Diverge {
        /// The lanes whose path runs first.
        taken: Mask,
        /// The lanes that run later.
        not: Mask,
    },
    /// Lanes that waited run again. All lanes that were active until now wait or have ended, so no lanes reconverge.
    Resume {
        /// All lanes that are now active.
        mask: Mask,
    },
    /// Waiting lanes run again, together with all lanes that ran before.
    Reconverge {
        /// All lanes that are now active.
        mask: Mask,
    },
    /// A stack or frame grew.
    Push {
        /// The manual's term for the entry that was pushed.
        kind: &'static str,
    },
    /// A stack or frame shrank.
    Pop {
        /// The manual's term for the entry that was popped.
        kind: &'static str,
    },
    /// The group jumps. The next instruction that the group issues is not at the following address.
    Jump {
        /// Address of the next instruction.
        to: u32,
    },
    /// A register was written.
    Write {
        /// Lane whose register was written.
        lane: Lane,
        /// Register number, in the numbering of the machine. On R500 and R700, the number is the register times four
        /// plus the channel.
        register: u32,
        /// The new bits of the register.
        value: u32,
    },
    /// Memory was read.
    Load {
        /// Lane that read.
        lane: Lane,
        /// Byte address in the memory space.
        address: u32,
    },
    /// Memory was written.
    Store {
        /// Lane that wrote.
        lane: Lane,
        /// Byte address in the memory space.
        address: u32,
        /// The new bits.
        value: u32,
    },
    /// The program trapped.
    Trap {
        /// The lanes that caused the trap.
        mask: Mask,
    },
}

impl Event {
    /// Returns the event for a group whose active lanes change from `before` to `after`. The event is
    /// [`Event::Reconverge`] if all lanes of `before` continue together with lanes outside of `before`. The event is
    /// [`Event::Resume`] if lanes outside of `before` run and some lanes of `before` do not continue. Returns `None` if
    /// `after` has no lane that is not in `before`.
    #[inline]
    pub fn of_active(before: Mask, after: Mask) -> Option<Event> {
        if (after - before).is_empty() {
            return None;
        }
        let meets = before.any() && (before - after).is_empty();
        Some(if meets { Event::Reconverge { mask: after } } else { Event::Resume { mask: after } })
    }
}

/// The active lanes of the latest step with at least one active lane. A machine uses this type if its groups may issue
/// instructions without active lanes.
///
/// Only observed steps update the value. The state of a group does not depend on the value. All values therefore
/// compare as equal.
#[derive(Clone, Copy, Debug, Default)]
pub struct LastActive(Mask);

impl PartialEq for LastActive {
    fn eq(&self, _: &LastActive) -> bool {
        true
    }
}

impl Eq for LastActive {}

impl LastActive {
    /// Returns the event of a step that changes the active lanes from `before` to `after`. Returns `None` if the change
    /// has no event. If some lanes stay active, `after` is compared with these lanes. If no lane stays active, `after`
    /// is compared with `before`. If `before` is empty, `after` is compared with the lanes of the latest step that had
    /// active lanes.
    #[inline]
    pub fn changed(&mut self, before: Mask, after: Mask) -> Option<Event> {
        if before.any() {
            self.0 = before;
        }
        if after.is_empty() {
            return None;
        }
        let stay = before & after;
        let ran = if stay.any() { stay } else { self.0 };
        self.0 = after;
        Event::of_active(ran, after)
    }
}

/// Receives events. Machines announce events only if `ENABLED` is set. So the observer [`Silent`] compiles to nothing.
pub trait Observer {
    /// Whether the machine announces any events to the observer.
    const ENABLED: bool;
    /// Whether events include writes to registers and accesses to memory. If `DATA` is not set, the observer costs
    /// little time.
    const DATA: bool = Self::ENABLED;
    /// Whether the fast engine announces, with [`Observer::path`], the path by which it runs instructions.
    const PATHS: bool = false;
    /// Receives one event.
    fn event(&mut self, event: Event);
    /// Receives the number of a group in the launch. The following events belong to this group. Runs of a launch call
    /// this function if [`Observer::ENABLED`] is set. Code that steps a single group does not call this function.
    #[inline(always)]
    fn group(&mut self, _number: usize) {}
    /// Receives addresses of instructions. The group issues these instructions one after another with the same active
    /// lanes.
    fn issues(&mut self, addresses: &[u32], mask: Mask) {
        for pc in addresses {
            self.event(Event::Issue { pc: *pc, mask });
        }
    }
    /// Repeats the events that the observer has recorded under a key (see [`together`]). Returns `false` if the
    /// observer has not recorded any events under this key.
    #[inline(always)]
    fn again(&mut self, _key: u32, _active: Mask, _first: Mask) -> bool {
        false
    }
    /// Records the events since the call of [`Observer::again`] under a key.
    #[inline(always)]
    fn learn(&mut self, _key: u32, _active: Mask, _first: Mask) {}
    /// Returns whether the observer uses [`Observer::depth`].
    #[inline(always)]
    fn wants_depths(&self) -> bool {
        false
    }
    /// Receives the fill level of a stack or counter of the group. `_number` is the index of this stack or counter in
    /// [`FlowView::depths`](crate::FlowView::depths). If [`Observer::wants_depths`] returns `true`, machines call this
    /// function after each step that may have increased the level.
    #[inline(always)]
    fn depth(&mut self, _number: usize, _used: u32) {}
    /// Receives the number of instructions that the fast engine has executed by one path. The engine calls this
    /// function only if [`Observer::PATHS`] is set.
    #[inline(always)]
    fn path(&mut self, _path: Path, _instructions: u64) {}
}

/// Defines the methods of an [`Observer`] that call the same methods of another observer. The macro does not define
/// [`Observer::path`].
macro_rules! hand_on {
    ($self:ident, $of:ident, $to:expr) => {
        #[inline]
        fn event(&mut $self, event: Event) {
            $of::event($to, event);
        }
        #[inline]
        fn group(&mut $self, number: usize) {
            $of::group($to, number);
        }
        #[inline]
        fn issues(&mut $self, addresses: &[u32], mask: Mask) {
            $of::issues($to, addresses, mask);
        }
        #[inline]
        fn again(&mut $self, key: u32, active: Mask, first: Mask) -> bool {
            $of::again($to, key, active, first)
        }
        #[inline]
        fn learn(&mut $self, key: u32, active: Mask, first: Mask) {
            $of::learn($to, key, active, first);
        }
        #[inline]
        fn wants_depths(&$self) -> bool {
            $of::wants_depths($to)
        }
        #[inline]
        fn depth(&mut $self, number: usize, used: u32) {
            $of::depth($to, number, used);
        }
    };
}
pub(crate) use hand_on;

/// Announces a sequence of events that recurs whenever a program reaches an address. If the observer has already
/// recorded the sequence under a key, the engine does not generate the events again.
///
/// `active` are the lanes that reach the address. If these lanes diverge, `first` are the lanes that run first. `first`
/// is then a proper subset of `active`. If the lanes do not diverge, `first` is empty. The events for a key are always
/// the same, in the same order. A sequence consists of issues, pushes, pops, jumps, at most one divergence, resumes and
/// reconvergences. The mask in each of these events is `active`, `first`, or `active` without `first`. A key is a small
/// number that the engine chooses. As long as the observer exists, a key identifies the same events.
#[inline(always)]
pub fn together<O: Observer>(
    observer: &mut O,
    key: u32,
    active: Mask,
    first: Mask,
    events: impl FnOnce(&mut O),
) {
    if O::ENABLED && !observer.again(key, active, first) {
        events(observer);
        observer.learn(key, active, first);
    }
}

/// An observer that ignores every event.
#[derive(Clone, Copy, Debug, Default)]
pub struct Silent;

impl Observer for Silent {
    const ENABLED: bool = false;
    #[inline(always)]
    fn event(&mut self, _: Event) {}
}

/// An observer that records every event.
#[derive(Clone, Debug, Default)]
pub struct Recorder {
    /// The events so far.
    pub events: Vec<Event>,
}

impl Observer for Recorder {
    const ENABLED: bool = true;
    fn event(&mut self, event: Event) {
        self.events.push(event);
    }
}

/// An observer that records issues, divergence and stack changes in compact form. Consecutive instructions with the
/// same active lanes become one entry. The entry contains the number of these instructions.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct FlowTrace {
    /// The recorded entries, in order.
    pub steps: Vec<FlowStep>,
}

/// An entry of a [`FlowTrace`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FlowStep {
    /// Consecutive instructions at ascending addresses.
    Ran {
        /// Address of the first instruction.
        pc: u32,
        /// Address of the last instruction.
        last: u32,
        /// Number of instructions.
        count: u32,
        /// The active lanes.
        mask: Mask,
    },
    /// Any event that is not the issue of an instruction.
    Event(Event),
}

impl Observer for FlowTrace {
    const ENABLED: bool = true;
    const DATA: bool = false;

    // The function is always inlined, because the variant of the event is a constant at each call.
    #[inline(always)]
    fn event(&mut self, event: Event) {
        match event {
            Event::Issue { pc, mask } => self.issues(&[pc], mask),
            Event::Write { .. } | Event::Load { .. } | Event::Store { .. } => {}
            other => self.steps.push(FlowStep::Event(other)),
        }
    }

    #[inline(always)]
    fn issues(&mut self, addresses: &[u32], lanes: Mask) {
        let (Some(&pc), Some(&end)) = (addresses.first(), addresses.last()) else { return };
        let more = addresses.len() as u32;
        match self.steps.last_mut() {
            Some(FlowStep::Ran { last, count, mask, .. }) if *mask == lanes && pc > *last => {
                (*last, *count) = (end, *count + more);
            }
            _ => self.steps.push(FlowStep::Ran { pc, last: end, count: more, mask: lanes }),
        }
    }
}

/// A mutable reference to an observer is also an observer.
impl<O: Observer + ?Sized> Observer for &mut O {
    const ENABLED: bool = O::ENABLED;
    const DATA: bool = O::DATA;
    const PATHS: bool = O::PATHS;
    hand_on!(self, O, *self);
    #[inline]
    fn path(&mut self, path: Path, instructions: u64) {
        (**self).path(path, instructions);
    }
}

/// An observer that passes events to a closure. It serves code that has no type parameter for the observer.
pub struct Dynamic<'a>(pub &'a mut dyn FnMut(Event));

impl Observer for Dynamic<'_> {
    const ENABLED: bool = true;
    fn event(&mut self, event: Event) {
        (self.0)(event);
    }
}

/// Counts of a run. Each issue of an instruction to a group counts once, no matter how many lanes are active.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Statistics {
    /// Number of instructions issued to groups.
    pub instructions: u64,
    /// Number of instructions, each multiplied by its number of active lanes.
    pub lane_instructions: u64,
    /// Number of flow decisions that split the active lanes.
    pub divergent_branches: u64,
}

impl Statistics {
    /// Adds the counts of another run.
    pub fn add(&mut self, other: &Statistics) {
        self.instructions += other.instructions;
        self.lane_instructions += other.lane_instructions;
        self.divergent_branches += other.divergent_branches;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lanes_reconverge_if_those_that_ran_continue_with_others() {
        let event = |before, after| Event::of_active(Mask(before), Mask(after));
        assert_eq!(event(0b0011, 0b1111), Some(Event::Reconverge { mask: Mask(0b1111) }));
        assert_eq!(event(0b0011, 0b1100), Some(Event::Resume { mask: Mask(0b1100) }));
        assert_eq!(event(0b0011, 0b0110), Some(Event::Resume { mask: Mask(0b0110) }));
        assert_eq!(event(0, 0b0110), Some(Event::Resume { mask: Mask(0b0110) }));
    }

    #[test]
    fn no_event_tells_of_lanes_that_stay_or_leave() {
        let event = |before, after| Event::of_active(Mask(before), Mask(after));
        assert_eq!([event(0b11, 0b11), event(0b11, 0b01), event(0b11, 0), event(0, 0)], [None; 4]);
    }

    #[test]
    fn lanes_that_run_after_none_did_are_compared_with_those_that_ran_last() {
        let mut last = LastActive::default();
        assert_eq!(last.changed(Mask(0b0011), Mask::NONE), None);
        assert_eq!(last.changed(Mask::NONE, Mask::NONE), None);
        assert_eq!(last.changed(Mask::NONE, Mask(0b1111)), Some(Event::Reconverge { mask: Mask(0b1111) }));
        assert_eq!(last.changed(Mask(0b1111), Mask::NONE), None);
        assert_eq!(last.changed(Mask::NONE, Mask(0b1111)), None, "the same lanes");
        assert_eq!(last.changed(Mask(0b0110), Mask(0b1100)), Some(Event::Reconverge { mask: Mask(0b1100) }));
    }

    #[test]
    fn a_flow_trace_keeps_runs_of_instructions_and_what_happened_between() {
        let mut trace = FlowTrace::default();
        trace.issues(&[0, 8], Mask::first(4));
        trace.event(Event::Issue { pc: 16, mask: Mask::first(4) });
        trace.event(Event::Write { lane: Lane(0), register: 1, value: 2 });
        trace.event(Event::Jump { to: 0 });
        trace.event(Event::Issue { pc: 0, mask: Mask::first(4) });
        trace.event(Event::Issue { pc: 8, mask: Mask::first(2) });
        let ran = |pc, last, count, lanes| FlowStep::Ran { pc, last, count, mask: Mask::first(lanes) };
        assert_eq!(
            trace.steps,
            [ran(0, 16, 3, 4), FlowStep::Event(Event::Jump { to: 0 }), ran(0, 0, 1, 4), ran(8, 8, 1, 2)]
        );
    }
}
