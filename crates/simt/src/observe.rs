//! Events, and observers that cost nothing when nobody looks.

use crate::mask::{Lane, Mask};

/// Something that happened, in the vocabulary of traces, debuggers and coverage. Addresses are in the
/// machine's own unit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Event {
    /// An instruction is about to run for these lanes.
    Issue {
        /// Its address.
        pc: u32,
        /// The lanes that take part.
        mask: Mask,
    },
    /// A decision split the lanes.
    Diverge {
        /// Those that take the path that runs first.
        taken: Mask,
        /// The others.
        not: Mask,
    },
    /// Lanes that waited run again.
    Reconverge {
        /// All that run now.
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
    /// The program counter did not go to the next instruction.
    Jump {
        /// Where it went.
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
    /// The program did what it must not.
    Trap {
        /// The lanes concerned.
        mask: Mask,
    },
}

/// Somebody who looks. Machines announce events only when `ENABLED`, so the silent one compiles to nothing.
pub trait Observer {
    /// Whether events are announced at all.
    const ENABLED: bool;
    /// Takes one event.
    fn event(&mut self, event: Event);
}

/// Nobody looks.
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

/// Any observer behind a pointer, for front ends that choose at run time.
impl<O: Observer + ?Sized> Observer for &mut O {
    const ENABLED: bool = O::ENABLED;
    #[inline]
    fn event(&mut self, event: Event) {
        (**self).event(event);
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

/// What a run counted. Warp-instructions are counted as issued, whatever the mask.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Statistics {
    /// Instructions issued to a group.
    pub instructions: u64,
    /// The same summed over the lanes that took part.
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
