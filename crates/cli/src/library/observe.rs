//! Events of a run.

use reconverge_simt::{Lane, Mask};
use reconverge_workbench::trace::Sink;

use super::mirror::mirror;

mirror! {
    /// The events that [`Launch::observe`](crate::Launch::observe) passes to the observer.
    #[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
    #[non_exhaustive]
    pub enum Observed {
        /// Issues and changes of control flow.
        #[default]
        Flow,
        /// The events of [`Observed::Flow`], and also register writes and memory accesses. The reference interpreter
        /// runs the launch.
        Data,
    }
    = reconverge_workbench::trace::Recorded
}

mirror! {
    /// An event of a run. Addresses are in the machine's unit.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    #[non_exhaustive]
    pub enum Event {
        /// An instruction is issued.
        Issue {
            /// Address of the instruction.
            pc: u32,
            /// The lanes that execute the instruction.
            mask: Mask,
        },
        /// The lanes diverge.
        Diverge {
            /// The lanes whose path runs first.
            taken: Mask,
            /// The lanes that run later, on the other path.
            not: Mask,
        },
        /// Waiting lanes become active. At least one lane that was active before becomes inactive, so the lanes do not
        /// reconverge.
        Resume {
            /// All lanes that are now active.
            mask: Mask,
        },
        /// Waiting lanes become active. All lanes that were active before stay active. These lanes reconverge with the
        /// waiting lanes.
        Reconverge {
            /// All active lanes.
            mask: Mask,
        },
        /// An entry is pushed on a stack or frame.
        Push {
            /// The manual's name for the entry.
            kind: &'static str,
        },
        /// An entry is popped from a stack or frame.
        Pop {
            /// The manual's name for the entry.
            kind: &'static str,
        },
        /// The group jumps. The next instruction of the group does not directly follow the current instruction in the
        /// program.
        Jump {
            /// Address at which the lanes continue.
            to: u32,
        },
        /// A register is written.
        Write {
            /// The lane.
            lane: Lane,
            /// Number of the register. On R500 and R700, the value is `4 * number + channel`.
            register: u32,
            /// The new bits.
            value: u32,
        },
        /// Memory is read.
        Load {
            /// The lane.
            lane: Lane,
            /// Byte address in the memory space.
            address: u32,
        },
        /// Memory is written.
        Store {
            /// The lane.
            lane: Lane,
            /// Byte address in the memory space.
            address: u32,
            /// The new bits.
            value: u32,
        },
        /// The program traps.
        Trap {
            /// The affected lanes.
            mask: Mask,
        },
    }
    = reconverge_simt::Event
}

/// A sink that passes events to a function.
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
