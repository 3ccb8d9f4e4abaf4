//! Groups that take turns: when a group waits at a barrier, generated code continues with the next group.
//!
//! Groups 0 to N - 1 run in cyclic order. A group runs until it arrives at a barrier at which other groups have not yet
//! arrived. Then the next group runs. So the groups that wait are always the groups right before the current group, and
//! the number of these groups is the whole state of the barrier. The machine's flow control handles all other cases.
//! With this code, the kernel `scan` is 1.7 times as fast as with barriers in the flow control (AMD EPYC).

use std::mem::take;

/// Maximum number of groups that take turns.
pub const GROUPS: usize = 16;

/// A group that takes turns with other groups.
#[derive(Clone, Copy, Debug)]
pub struct Peer {
    /// The rows of the group, as in [`Arrived`](crate::Arrived).
    pub rows: [*mut [u8]; 3],
    /// The active lanes.
    pub active: u64,
    /// Number of entries that the group's stack has room for.
    pub room: u32,
    /// The node at which the group continues. The node of the current group has no meaning.
    pub node: u32,
}

/// The position of all groups that take turns.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Meeting {
    /// The group that runs.
    pub current: usize,
    /// The barrier at which groups wait.
    pub barrier: u32,
    /// Number of groups that wait. These are the groups right before the current group, in cyclic order.
    pub waiting: u32,
}

/// The state of groups that take turns.
#[derive(Clone, Copy, Debug)]
#[repr(C)]
pub(crate) struct Turns {
    /// Number of times that generated code may switch to another group.
    pub(crate) allowed: u32,
    /// Number of these times that remain.
    pub(crate) remaining: u32,
    pub(crate) barrier: u32,
    pub(crate) waiting: u32,
    /// Number of groups, or 0 if no groups take turns.
    pub(crate) count: u32,
    /// Offset of the current group in `groups`, in bytes.
    pub(crate) current: u32,
    /// Offset of the end of the last group in `groups`, in bytes.
    pub(crate) end: u32,
    /// The budget of a turn, in instructions.
    pub(crate) budget: u32,
    pub(crate) groups: [Bound; GROUPS],
}

/// A group in the form in which generated code reads it.
#[derive(Clone, Copy, Debug)]
#[repr(C, align(64))]
pub(crate) struct Bound {
    pub(crate) rows: [*mut u8; 3],
    pub(crate) active: u64,
    pub(crate) population: u64,
    pub(crate) node: u32,
    pub(crate) room: u32,
}

/// Size of a [`Bound`] in bytes.
pub(crate) const SIZE: usize = size_of::<Bound>();

impl Turns {
    pub(crate) const NONE: Turns = Turns {
        allowed: 0,
        remaining: 0,
        barrier: 0,
        waiting: 0,
        count: 0,
        current: 0,
        end: 0,
        budget: 0,
        groups: [Bound { rows: [std::ptr::null_mut(); 3], active: 0, population: 0, node: 0, room: 0 };
            GROUPS],
    };

    /// Lets groups take turns. Generated code may switch `switches` times, and each turn has a budget in instructions.
    ///
    /// # Panics
    /// Panics if there are more than [`GROUPS`] groups.
    pub(crate) fn begin(
        &mut self,
        groups: impl Iterator<Item = (Peer, [*mut u8; 3])>,
        Meeting { current, barrier, waiting }: Meeting,
        (switches, budget): (u32, u32),
    ) {
        self.count = 0;
        for (Peer { active, room, node, .. }, rows) in groups {
            let population = active.count_ones().into();
            self.groups[self.count as usize] = Bound { rows, active, population, node, room };
            self.count += 1;
        }
        (self.allowed, self.remaining, self.budget) = (switches, switches, budget);
        (self.barrier, self.waiting) = (barrier, waiting);
        (self.current, self.end) = ((current * SIZE) as u32, self.count * SIZE as u32);
    }

    /// Returns the current group, if groups take turns.
    #[inline(always)]
    pub(crate) fn current(&self) -> Option<usize> {
        (self.count > 0).then_some(self.current as usize / SIZE)
    }

    /// Ends the turns. Returns the position of the groups and the number of switches that generated code has made.
    pub(crate) fn end(&mut self) -> Option<(Meeting, u32)> {
        let current = self.current()?;
        self.count = 0;
        let switches = self.allowed - take(&mut self.remaining);
        Some((Meeting { current, barrier: self.barrier, waiting: self.waiting }, switches))
    }

    /// Returns the node and the active lanes with which a group continues that is not the current group.
    pub(crate) fn group(&self, number: usize) -> (u32, u64) {
        let Bound { node, active, .. } = self.groups[number];
        (node, active)
    }
}
