//! Groups that take turns: when a group waits at a barrier, generated code continues with the next group.
//!
//! Groups 0 to N - 1 run in cyclic order. A group runs until it arrives at a barrier at which other groups have not yet
//! arrived. Then the next group runs. So the groups that wait are always the groups right before the current group, and
//! the number of these groups is the whole state of the barrier. The machine's flow control handles all other cases.
//! With this code, the kernel `scan` is 1.7 times as fast as with barriers in the flow control (AMD EPYC).

use std::mem::{offset_of, take};

use iced_x86::{Code, MemoryOperand, Register};

use crate::asm::{Assembler, Label, at, at_base};
use crate::frame::STATE;
use crate::state::place;

/// Maximum number of groups that take turns.
pub const GROUPS: usize = 16;

/// A group that takes turns with other groups.
#[derive(Clone, Copy, Debug)]
pub struct Group {
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
pub struct Position {
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
    allowed: u32,
    /// Number of these times that remain.
    remaining: u32,
    barrier: u32,
    waiting: u32,
    /// Number of groups, or 0 if no groups take turns.
    count: u32,
    /// Offset of the current group in `groups`, in bytes.
    current: u32,
    /// Offset of the end of the last group in `groups`, in bytes.
    end: u32,
    /// The budget of a turn, in instructions.
    budget: u32,
    groups: [Bound; GROUPS],
}

/// A group in the form in which generated code reads it.
#[derive(Clone, Copy, Debug)]
#[repr(C, align(64))]
struct Bound {
    rows: [*mut u8; 3],
    active: u64,
    population: u64,
    node: u32,
    room: u32,
}

const SIZE: usize = size_of::<Bound>();

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
        groups: impl Iterator<Item = (Group, [*mut u8; 3])>,
        Position { current, barrier, waiting }: Position,
        (switches, budget): (u32, u32),
    ) {
        self.count = 0;
        for (Group { active, room, node, .. }, rows) in groups {
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
    pub(crate) fn end(&mut self) -> Option<(Position, u32)> {
        let current = self.current()?;
        self.count = 0;
        let switches = self.allowed - take(&mut self.remaining);
        Some((Position { current, barrier: self.barrier, waiting: self.waiting }, switches))
    }

    /// Returns the node and the active lanes with which a group continues that is not the current group.
    pub(crate) fn group(&self, number: usize) -> (u32, u64) {
        let Bound { node, active, .. } = self.groups[number];
        (node, active)
    }
}

macro_rules! turns {
    ($part:ident) => {
        at_base(STATE, place!(turns) + offset_of!(Turns, $part) as i32)
    };
}

/// Emits the code of barriers. ESI is the node that ends with the barrier, EDX the node after the barrier, and ECX the
/// number of the barrier. `dispatch` is the code that jumps to the node in EAX, and `flow` calls the flow control for
/// the node in ESI.
pub(crate) fn emit_barrier(asm: &mut Assembler, dispatch: Label, flow: Label) {
    use Register::{EAX, ECX, EDX, R8, R9D, RAX, RCX};
    let state = |place: i32| at_base(STATE, place);
    macro_rules! group {
        ($part:ident, $number:expr) => {
            at(
                STATE,
                RCX,
                place!(turns) + (offset_of!(Turns, groups) + offset_of!(Bound, $part) + 8 * $number) as i32,
            )
        };
        ($part:ident) => {
            group!($part, 0)
        };
    }
    let [complete, first, same] = [(); 3].map(|()| asm.label());
    let copy = |asm: &mut Assembler, to: MemoryOperand, from: MemoryOperand| {
        asm.two(Code::Mov_r64_rm64, RAX, from);
        asm.store(Code::Mov_rm64_r64, to, RAX);
    };
    // The flow control must know all lanes that have left nodes, and the group must be able to continue.
    asm.two(Code::Mov_r32_rm32, EAX, turns!(remaining));
    asm.two(Code::Test_rm32_r32, EAX, EAX);
    asm.branch(Code::Je_rel32_64, flow);
    asm.number(Code::Cmp_rm32_imm8, state(place!(budget)), 0);
    asm.branch(Code::Jle_rel32_64, flow);
    asm.two(Code::Mov_r64_rm64, R8, state(place!(active)));
    asm.two(Code::Cmp_r64_rm64, R8, state(place!(known)));
    asm.branch(Code::Jne_rel32_64, flow);
    asm.two(Code::Mov_r32_rm32, R9D, turns!(waiting));
    asm.two(Code::Test_rm32_r32, R9D, R9D);
    asm.branch(Code::Je_rel32_64, first);
    asm.two(Code::Cmp_r32_rm32, ECX, turns!(barrier));
    asm.branch(Code::Jne_rel32_64, flow);
    asm.bind(first);
    asm.store(Code::Mov_rm32_r32, turns!(barrier), ECX);
    asm.number(Code::Add_rm32_imm8, R9D, 1);
    asm.two(Code::Cmp_r32_rm32, R9D, turns!(count));
    asm.branch(Code::Je_rel32_64, complete);
    // The group waits, and the next group continues with a new budget.
    asm.store(Code::Mov_rm32_r32, turns!(waiting), R9D);
    asm.number(Code::Sub_rm32_imm8, EAX, 1);
    asm.store(Code::Mov_rm32_r32, turns!(remaining), EAX);
    asm.two(Code::Mov_r32_rm32, EAX, turns!(budget));
    asm.two(Code::Mov_r32_rm32, ECX, EAX);
    asm.two(Code::Sub_r32_rm32, ECX, state(place!(budget)));
    asm.store(Code::Add_rm64_r64, state(place!(given)), RCX);
    asm.store(Code::Mov_rm32_r32, state(place!(budget)), EAX);
    asm.two(Code::Mov_r32_rm32, ECX, turns!(current));
    asm.store(Code::Mov_rm32_r32, group!(node), EDX);
    asm.store(Code::Mov_rm64_r64, group!(active), R8);
    copy(asm, group!(population), state(place!(population)));
    asm.two(Code::Mov_r32_rm32, EAX, state(place!(room)));
    asm.store(Code::Mov_rm32_r32, group!(room), EAX);
    asm.number(Code::Add_rm32_imm8, ECX, SIZE as i32);
    asm.two(Code::Cmp_r32_rm32, ECX, turns!(end));
    asm.branch(Code::Jne_rel32_64, same);
    asm.two(Code::Xor_r32_rm32, ECX, ECX);
    asm.bind(same);
    asm.store(Code::Mov_rm32_r32, turns!(current), ECX);
    let rows = [place!(rows), place!(byte_rows), place!(half_rows)];
    for (number, place) in rows.into_iter().enumerate() {
        copy(asm, state(place), group!(rows, number));
    }
    asm.two(Code::Mov_r64_rm64, R8, group!(active));
    asm.store(Code::Mov_rm64_r64, state(place!(active)), R8);
    asm.store(Code::Mov_rm64_r64, state(place!(known)), R8);
    copy(asm, state(place!(population)), group!(population));
    asm.two(Code::Mov_r32_rm32, EAX, group!(room));
    asm.store(Code::Mov_rm32_r32, state(place!(room)), EAX);
    asm.two(Code::Mov_r32_rm32, EAX, group!(node));
    asm.branch(Code::Jmp_rel32_64, dispatch);
    // All groups have arrived, so this group continues.
    asm.bind(complete);
    asm.number(Code::Mov_rm32_imm32, turns!(waiting), 0);
    asm.two(Code::Mov_r32_rm32, EAX, EDX);
    asm.branch(Code::Jmp_rel32_64, dispatch);
}
