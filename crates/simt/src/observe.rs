//! Events, and observers that cost nothing when they are off.

use crate::mask::{Lane, Mask};

reconverge_isa::choices! {
    /// Path by which the fast engine ran an instruction.
    #[derive(Hash)]
    pub enum Path {
        /// Code that was compiled for the program.
        Compiled = "compiled",
        /// Chain: blocks that follow each other with the same lanes, without a check of the flow state between them.
        Chain = "chain",
        /// Conditional that runs as a whole: the branch, its sides and their join.
        Conditional = "conditional",
        /// Fused ALU clause.
        Clause = "clause",
        /// Block of several instructions, entered from the flow state, or clause that is not fused.
        Block = "block",
        /// Part of a block: entered in its middle, or cut off by the instruction budget.
        Part = "part of a block",
        /// Single instruction.
        Single = "single",
        /// Reference interpreter, to which the fast engine leaves the instruction.
        Reference = "reference interpreter",
        /// Path that the engine did not announce.
        Other = "other",
    }
}

/// An event in the vocabulary of traces, debuggers and coverage. Addresses are in the machine's own unit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Event {
    /// An instruction is about to run for these lanes.
    Issue {
        /// Address of the instruction.
        pc: u32,
        /// The active lanes.
        mask: Mask,
    },
    /// A decision split the lanes.
    Diverge {
        /// The lanes whose path runs first.
        taken: Mask,
        /// The other lanes.
        not: Mask,
    },
    /// Lanes that waited run, and those that ran wait or have ended. No lanes meet.
    Resume {
        /// All lanes that are now active.
        mask: Mask,
    },
    /// Lanes that waited run again together with lanes that ran.
    Reconverge {
        /// All lanes that are now active.
        mask: Mask,
    },
    /// A stack or frame grew.
    Push {
        /// The manual's word for what was pushed.
        kind: &'static str,
    },
    /// A stack or frame shrank.
    Pop {
        /// The manual's word for what was popped.
        kind: &'static str,
    },
    /// The program counter did not advance to the next instruction.
    Jump {
        /// Address of the next instruction.
        to: u32,
    },
    /// A register was written.
    Write {
        /// The lane.
        lane: Lane,
        /// Register number, in the machine's own numbering (R500, R700: register times four plus channel).
        register: u32,
        /// The new bits.
        value: u32,
    },
    /// Memory was read.
    Load {
        /// The lane.
        lane: Lane,
        /// Byte address in its space.
        address: u32,
    },
    /// Memory was written.
    Store {
        /// The lane.
        lane: Lane,
        /// Byte address in its space.
        address: u32,
        /// The new bits.
        value: u32,
    },
    /// The program trapped.
    Trap {
        /// The lanes concerned.
        mask: Mask,
    },
}

impl Event {
    /// Returns the event of a group whose active lanes change from `before` to `after`: [`Event::Reconverge`] if all lanes
    /// that ran continue with others, [`Event::Resume`] if others run instead. Returns `None` if no lane has been added.
    #[inline]
    pub fn of_active(before: Mask, after: Mask) -> Option<Event> {
        if (after - before).is_empty() {
            return None;
        }
        let meets = before.any() && (before - after).is_empty();
        Some(if meets { Event::Reconverge { mask: after } } else { Event::Resume { mask: after } })
    }
}

/// The lanes of a group that ran last, for machines whose groups may run with no active lane.
///
/// Only observed steps update the value. The state of a group does not depend on it, so all values are equal.
#[derive(Clone, Copy, Debug, Default)]
pub struct LastActive(Mask);

impl PartialEq for LastActive {
    fn eq(&self, _: &LastActive) -> bool {
        true
    }
}

impl Eq for LastActive {}

impl LastActive {
    /// Returns the event of a step that changes the active lanes, if there is one. The lanes that stay active are
    /// compared with `after`. If none stays active, those that ran before the step are compared, or else those that
    /// ran last.
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

/// Receives events. Machines announce them only when `ENABLED`, so that the silent observer compiles to nothing.
pub trait Observer {
    /// Whether events are announced at all.
    const ENABLED: bool;
    /// Whether events include writes to registers and accesses to memory. Issues, divergence and stack changes alone
    /// cost little.
    const DATA: bool = Self::ENABLED;
    /// Whether the fast engine announces the path by which it runs instructions, with [`Observer::path`].
    const PATHS: bool = false;
    /// Receives one event.
    fn event(&mut self, event: Event);
    /// Receives the number of the group in the launch to which the following events belong. Runs of a launch call it,
    /// only if [`Observer::ENABLED`]. Code that steps a single group does not.
    #[inline(always)]
    fn group(&mut self, _number: usize) {}
    /// Receives the issues of instructions that follow each other with the same lanes, by their addresses.
    fn issues(&mut self, addresses: &[u32], mask: Mask) {
        for pc in addresses {
            self.event(Event::Issue { pc: *pc, mask });
        }
    }
    /// Repeats the events of a key: [`together`]. Returns `false` if the observer has not recorded them.
    #[inline(always)]
    fn again(&mut self, _key: u32, _active: Mask, _first: Mask) -> bool {
        false
    }
    /// Records the events since [`Observer::again`] under a key.
    #[inline(always)]
    fn learn(&mut self, _key: u32, _active: Mask, _first: Mask) {}
    /// Returns whether the observer uses [`Observer::depth`].
    #[inline(always)]
    fn wants_depths(&self) -> bool {
        false
    }
    /// Receives the fill level of a stack or counter of the group, by its index in
    /// [`FlowView::depths`](crate::FlowView::depths). Called after steps that may have increased it, and only if
    /// [`Observer::wants_depths`].
    #[inline(always)]
    fn depth(&mut self, _number: usize, _used: u32) {}
    /// Receives the number of instructions that the fast engine has run by a path. Called only if
    /// [`Observer::PATHS`].
    #[inline(always)]
    fn path(&mut self, _path: Path, _instructions: u64) {}
}

/// The methods of an [`Observer`] that call those of another one, except for [`Observer::path`].
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

/// Announces a sequence of events that recurs each time a program reaches an address. An observer may have recorded
/// the sequence under its key; the events are then not generated again.
///
/// `active` are the lanes that arrive. If they diverge, `first` are the lanes that run first, a proper subset of
/// them; otherwise `first` is empty. With the same key the events are always the same, in the same order: issues,
/// pushes, pops, jumps, at most one divergence, resumes and reconvergences, with masks that are `active`, `first`, or
/// `active` without `first`. A key is a small number that the engine chooses. It stands for the same events during
/// the lifetime of the observer.
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

/// Ignores every event.
#[derive(Clone, Copy, Debug, Default)]
pub struct Silent;

impl Observer for Silent {
    const ENABLED: bool = false;
    #[inline(always)]
    fn event(&mut self, _: Event) {}
}

/// Keeps every event.
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

/// Keeps issues, divergence and stack changes in compact form: instructions that follow each other with the same
/// lanes are counted.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct FlowTrace {
    /// The steps, in order.
    pub steps: Vec<FlowStep>,
}

/// An entry of a [`FlowTrace`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FlowStep {
    /// Consecutive instructions.
    Ran {
        /// Address of the first.
        pc: u32,
        /// Address of the last.
        last: u32,
        /// Number of instructions.
        count: u32,
        /// The active lanes.
        mask: Mask,
    },
    /// Another event.
    Event(Event),
}

impl Observer for FlowTrace {
    const ENABLED: bool = true;
    const DATA: bool = false;

    // The variant is a constant at each call.
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

/// A reference to an observer is an observer.
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

/// An observer chosen at run time, without a type parameter.
pub struct Dynamic<'a>(pub &'a mut dyn FnMut(Event));

impl Observer for Dynamic<'_> {
    const ENABLED: bool = true;
    fn event(&mut self, event: Event) {
        (self.0)(event);
    }
}

/// Counts of a run. Each issue of an instruction to a group counts once, whatever the mask.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Statistics {
    /// Instructions issued to a group.
    pub instructions: u64,
    /// Instructions summed over their active lanes.
    pub lane_instructions: u64,
    /// Flow decisions on which the active lanes did not agree.
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
