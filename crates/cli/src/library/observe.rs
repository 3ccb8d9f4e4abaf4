//! Events of a run.

use reconverge_simt::{Lane, Mask};
use reconverge_workbench::trace::{Recorded, Sink};

/// The events that [`Launch::observe`](crate::Launch::observe) passes on.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum Observed {
    /// Issues and changes of the flow.
    #[default]
    Flow,
    /// Register writes and memory accesses as well. They come from the reference interpreter.
    Data,
}

impl From<Observed> for Recorded {
    fn from(observed: Observed) -> Recorded {
        match observed {
            Observed::Flow => Recorded::Flow,
            Observed::Data => Recorded::Data,
        }
    }
}

/// An event of a run. Addresses are in the machine's own unit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Event {
    /// An instruction is issued.
    Issue {
        /// Address of the instruction.
        pc: u32,
        /// The lanes that execute it.
        mask: Mask,
    },
    /// The lanes diverge.
    Diverge {
        /// The lanes whose path runs first.
        taken: Mask,
        /// The other active lanes.
        not: Mask,
    },
    /// Waiting lanes are active again.
    Reconverge {
        /// All active lanes.
        mask: Mask,
    },
    /// A stack or frame grows.
    Push {
        /// The manual's word for the entry.
        kind: &'static str,
    },
    /// A stack or frame shrinks.
    Pop {
        /// The manual's word for the entry.
        kind: &'static str,
    },
    /// The program counter does not continue with the next instruction.
    Jump {
        /// The next address.
        to: u32,
    },
    /// A register is written.
    Write {
        /// The lane.
        lane: Lane,
        /// Number of the register (R500, R700: four times the register, plus the channel).
        register: u32,
        /// The new bits.
        value: u32,
    },
    /// Memory is read.
    Load {
        /// The lane.
        lane: Lane,
        /// Byte address in its space.
        address: u32,
    },
    /// Memory is written.
    Store {
        /// The lane.
        lane: Lane,
        /// Byte address in its space.
        address: u32,
        /// The new bits.
        value: u32,
    },
    /// The program traps.
    Trap {
        /// The lanes concerned.
        mask: Mask,
    },
}

impl From<reconverge_simt::Event> for Event {
    fn from(event: reconverge_simt::Event) -> Event {
        use reconverge_simt::Event as Below;
        match event {
            Below::Issue { pc, mask } => Event::Issue { pc, mask },
            Below::Diverge { taken, not } => Event::Diverge { taken, not },
            Below::Reconverge { mask } => Event::Reconverge { mask },
            Below::Push { kind } => Event::Push { kind },
            Below::Pop { kind } => Event::Pop { kind },
            Below::Jump { to } => Event::Jump { to },
            Below::Write { lane, register, value } => Event::Write { lane, register, value },
            Below::Load { lane, address } => Event::Load { lane, address },
            Below::Store { lane, address, value } => Event::Store { lane, address, value },
            Below::Trap { mask } => Event::Trap { mask },
        }
    }
}

/// A function that takes events.
pub(crate) struct Taken<F>(pub(crate) F);

impl<F: FnMut(usize, Event)> Sink for Taken<F> {
    fn issues(&mut self, group: usize, addresses: &[u32], mask: Mask) {
        for pc in addresses {
            (self.0)(group, Event::Issue { pc: *pc, mask });
        }
    }

    fn event(&mut self, group: usize, event: reconverge_simt::Event) {
        (self.0)(group, event.into());
    }
}
