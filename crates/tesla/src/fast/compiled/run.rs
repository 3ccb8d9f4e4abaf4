//! Entry and exit of linked code, and the flow between nodes.

// This module calls compiled code, and compiled code calls back into this module. A comment at each unsafe operation
// states its assumptions.
#![allow(unsafe_code)]

use reconverge_jit::{
    Arrived, FLUSH, GROUPS, Held, Left, Linked, LinkedMachine, Meeting, NO_NODE, Peer, State,
};
use reconverge_simt::{Identity, Silent};

use super::{Access, Call, Compiled, LocalSites, Own, PLACES};
use crate::block::SLICE;
use crate::fast::cursor::{Cursor, Halt, Position};
use crate::fast::lanes::{ACTIVE, Lanes};
use crate::fast::lower::Last;
use crate::fast::words::{Kind, Reach, Transfer};
use crate::flow::WARP;
use crate::inst::{Base, Space};
use crate::state::Parts;

/// A program as linked code, and the state for running the code.
pub(in crate::fast) struct Runner<'a> {
    compiled: &'a Compiled,
    held: Held,
    waiting: Waiting,
    /// Number of bytes, from the start of each lane's l[], to which compiled code stores without a call.
    stored: u32,
}

/// The node and the active lanes of each warp that waits, or has waited, at a barrier at the end of a node.
type Waiting = [Option<(u32, u32)>; GROUPS];

/// Position of the warp after compiled code has returned.
pub(in crate::fast) enum Exit {
    /// The warp is before this block, for which compiled code may exist.
    Before(u32),
    /// The warp is before this block, which the fast engine must run.
    Apart(u32),
    /// The chain of blocks ends.
    Halt(Halt),
}

/// Data that the functions `call` and `flow` use.
pub(in crate::fast) struct Work<'c, 'a, 'w> {
    linked: &'c Linked<Tesla>,
    cursor: &'c mut Cursor<'a, 'w, Silent>,
    /// The reason why the flow has ended the run.
    exit: Option<Exit>,
    waiting: &'c mut Waiting,
    local: LocalSites,
    stored: &'c mut u32,
    /// Whether some warp has executed a barrier, so that `waiting` may have entries.
    has_waited: bool,
}

/// The compiled engine of this machine.
#[derive(Debug)]
pub(in crate::fast) struct Tesla;

impl LinkedMachine for Tesla {
    type Call = Call;
    type Own = Own;
    type Context<'c, 'a, 'w>
        = Work<'c, 'a, 'w>
    where
        'a: 'c,
        'w: 'a;

    const MODE: u32 = FLUSH;
    const JOINS: bool = true;
    const HOLDS: bool = false;
    const HEXADECIMAL: bool = true;

    fn call(call: &Call, state: &mut State, work: &mut Work<'_, '_, '_>) -> bool {
        let Work { cursor, local, stored, .. } = work;
        cursor.follow(state);
        let Cursor { lowered, lanes, memory, .. } = &mut **cursor;
        let execute = |lanes: &mut Lanes<'_>, start: u32, end: u32| {
            for (handler, operation) in &lowered.operations[start as usize..end as usize] {
                // SAFETY: lowering created the operations for the level of the engine.
                unsafe { handler(lanes, operation) };
            }
        };
        // After the last call of the function `flow`, lanes may have left nodes. So this code updates the active lanes.
        lanes.sets[ACTIVE] = state.active as u32;
        execute(lanes, call.operations.start, call.operations.end);
        let Access { number: Some(number), site } = call.access else { return true };
        let access = &lowered.accesses[number as usize];
        // A load may overwrite the register that contains its address. So this code reads the address before the load.
        let address = site.and_then(|site| Some((site, first_address(lanes, &access.transfer)?)));
        // SAFETY: lowering created the transfer for the level of the engine.
        let done = unsafe { (access.transfer.mover)(lanes, *memory, &access.transfer) };
        if done {
            // A store may have changed the layout.
            state.follow_layout(memory.layout());
            if let (Some((_, address)), Space::Local) = (address, access.transfer.mem.space) {
                if let Kind::Store { .. } = access.transfer.kind {
                    let end = address.saturating_add(16).checked_next_power_of_two();
                    **stored = end.map_or(u32::MAX, |end| end.max(**stored)).min(memory.local().1);
                }
                set_local(state, *memory, *local, **stored);
            } else if let Some((site, address)) = address
                && let Some((start, bytes)) = site_memory(*memory, &access.transfer, address)
            {
                // SAFETY: until the layout of the memory changes, the threads of the launch may access these bytes of
                // g[] at any time, and only stores need to write them. After a change, the site has no memory. The
                // bytes of c[] do not change during a launch, and code only loads them.
                unsafe { state.set_site(site, start, bytes) };
            }
            execute(lanes, access.after.start, access.after.end);
        }
        done
    }

    fn flow(linked: &Linked<Tesla>, own: &Own, state: &mut State, work: &mut Work<'_, '_, '_>) -> u32 {
        let cursor = &mut *work.cursor;
        cursor.follow(state);
        cursor.take_counts(state);
        let (ends, taken) = match state.leave {
            0 => match cursor.lowered.blocks[own.ends as usize].last.guard() {
                Some(guard) if guard.always => (own.ends, state.active),
                _ => (own.ends, state.taken()),
            },
            // All lanes have left the node. In the row of the active lanes, compiled code has cleared the bits of these
            // lanes.
            piece => {
                cursor.lanes.sets[ACTIVE] = 0;
                (own.leaves[piece as usize - 1], state.active)
            }
        };
        let warp = cursor.lanes.warp;
        let block = &cursor.lowered.blocks[ends as usize];
        cursor.block = ends;
        if let Last::Bar { .. } = block.last {
            work.has_waited = true;
            work.end_turns(state);
        }
        let meets = linked.starting_at(block.fall).filter(|_| state.leave == 0 && block.is_meeting());
        let (entered, node) = match meets {
            Some(node) => match work.cursor.wait_at_barrier(block, node, work.waiting) {
                Some(node) => (Ok(()), Some(node)),
                None => (work.cursor.enter_next(), None),
            },
            None => match work.cursor.continue_after(block, taken as u32) {
                Err(Halt::Over) => {
                    work.end_turns(state);
                    (work.cursor.enter_next(), None)
                }
                entered => (entered, None),
            },
        };
        if let Err(halt) = entered {
            work.exit = Some(Exit::Halt(halt));
            return NO_NODE;
        }
        let cursor = &mut *work.cursor;
        cursor.give_counts(state);
        if cursor.lanes.warp != warp {
            linked.rebind(state, cursor.lanes.memory());
        }
        if let Some(waiting) = work.waiting.get_mut(cursor.lanes.warp as usize) {
            *waiting = None;
        }
        if node.is_some() {
            work.begin_turns(state);
        }
        let block = work.cursor.block;
        node.or_else(|| linked.starting_at(block)).unwrap_or_else(|| {
            work.exit = Some(Exit::Before(block));
            NO_NODE
        })
    }
}

impl Work<'_, '_, '_> {
    /// Lets the warps of the block take turns in compiled code, if all warps except the current warp wait, or have
    /// waited, at barriers for all warps.
    fn begin_turns(&mut self, state: &mut State) {
        let Work { linked, cursor, waiting, .. } = self;
        let Some(warps) = cursor.warps else { return };
        let (count, current) = (warps.count(), cursor.lanes.warp as usize);
        let have_waited = |warp: usize| warp == current || waiting.get(warp).is_some_and(Option::is_some);
        if !(0..count).all(have_waited) || cursor.lanes.shared.races_mut().is_some() {
            return;
        }
        let barriers = &cursor.barriers.barriers;
        let barrier = barriers.waits_for((current + count - 1) % count);
        let number = barrier.unwrap_or(0);
        let waits = barriers.value(number);
        // No turn may use up the remaining instructions of the launch.
        let issued = cursor.statistics.instructions + u64::from(cursor.budget);
        let turns = (warps.watchdog.saturating_sub(issued) / u64::from(SLICE)).saturating_sub(1);
        let switches = u32::try_from(turns).unwrap_or(u32::MAX).min(warps.passes);
        if waits as usize >= count || switches == 0 || !barriers.only(number, before(current, waits, count)) {
            return;
        }
        let groups = (0..count).map(|warp| {
            if warp == current {
                let (rows, room) = (cursor.lanes.memory(), state.room);
                return Peer { rows, active: state.active, room, node: 0 };
            }
            // SAFETY: the block that owns the warps is running, and only the current warp is borrowed elsewhere.
            let Parts { flow, rows, a, c, .. } = unsafe { warps.warp(warp) }.parts();
            let (node, active) = waiting[warp].unwrap_or_default();
            let rows = [bytes(rows), bytes(c), bytes(a)];
            Peer { rows, active: active.into(), room: flow.room() as u32, node }
        });
        let groups: Vec<Peer> = groups.collect();
        let position = Meeting { current, barrier: number.into(), waiting: waits };
        linked.take_turns(state, groups.into_iter(), position, (switches, SLICE));
    }

    /// If the warps of the block take turns in compiled code, ends these turns. Stores the positions of all warps in
    /// the block.
    fn end_turns(&mut self, state: &mut State) {
        let Work { linked, cursor, waiting, .. } = self;
        cursor.follow(state);
        let Some((Meeting { current, barrier, waiting: waits }, switches)) = state.end_turns() else {
            return;
        };
        let Some(warps) = &mut cursor.warps else { return };
        warps.passes -= switches;
        // The current warp may have an entry from before the turns. The warp has since left this position.
        waiting[current] = None;
        for warp in (0..warps.count()).filter(|warp| *warp != current) {
            let (node, active) = state.turn(warp);
            waiting[warp] = Some((node, active as u32));
            let pc = cursor.lowered.first_pc(linked.own(node).block);
            // SAFETY: the block that owns the warps is running, and only the current warp is borrowed elsewhere.
            unsafe { warps.warp(warp) }.flow.advance(pc);
        }
        cursor.barriers.barriers.set_only(barrier as u8, before(current, waits, warps.count()));
    }
}

/// Returns the `waits` warps before the current warp, in cyclic order.
fn before(current: usize, waits: u32, count: usize) -> impl Iterator<Item = usize> {
    (1..=waits as usize).map(move |distance| (current + count - distance) % count)
}

/// Returns the address that the first lane accesses.
fn first_address(lanes: &Lanes<'_>, transfer: &Transfer) -> Option<u32> {
    let first = lanes.set(transfer.set).trailing_zeros() as usize;
    let offset = transfer.mem.offset;
    match (transfer.base, transfer.mem.base) {
        (Some(place), _) => Some(lanes.row_of(place).get(first)?.wrapping_add(offset as u32)),
        (None, Base::A(register)) => Some(lanes.a(register).get(first)?.wrapping_add(offset as u16).into()),
        (None, Base::R(_)) => None,
    }
}

/// Sets the memory of the sites of l[] to the l[] of the current warp. Compiled code may load all bytes, and may store
/// to the first `stored` bytes of each lane.
fn set_local(state: &mut State, memory: &mut dyn Reach, local: LocalSites, stored: u32) {
    if let Some(site) = local.loads {
        let bytes = std::ptr::from_ref(memory.local().0).cast_mut();
        // SAFETY: the bytes belong to the warp that compiled code runs, and code only loads from this site.
        unsafe { state.set_site(site, 0, bytes) };
    }
    if let Some(site) = local.stores {
        let bytes = match stored {
            0 => [].as_mut_slice(),
            _ => memory.local_mut(0, stored - 1),
        };
        let first = stored as usize * WARP;
        let bytes = std::ptr::slice_from_raw_parts_mut(bytes.as_mut_ptr(), bytes.len().min(first));
        // SAFETY: the bytes belong to the warp that compiled code runs, and code may write them.
        unsafe { state.set_site(site, 0, bytes) };
    }
}

/// Returns the memory that contains an address of a transfer, and the address of the first byte of this memory.
fn site_memory(memory: &mut dyn Reach, transfer: &Transfer, address: u32) -> Option<(u32, *mut [u8])> {
    match transfer.mem.space {
        Space::Global(segment) => memory.whole(segment, address, matches!(transfer.kind, Kind::Store { .. })),
        Space::Const(bank) => Some((0, std::ptr::from_ref(memory.constants(bank)).cast_mut())),
        _ => None,
    }
}

impl Lanes<'_> {
    /// Returns the rows, the flags of all `$c`, and `$a1` to `$a4`.
    fn memory(&mut self) -> [*mut [u8]; 3] {
        [self.rows.bytes(), bytes(self.c), bytes(self.a)]
    }
}

/// Returns the bytes of a value.
fn bytes<T: ?Sized>(of: &mut T) -> *mut [u8] {
    let size = size_of_val(of);
    std::ptr::slice_from_raw_parts_mut((&raw mut *of).cast(), size)
}

impl<'a> Runner<'a> {
    /// Returns a runner of a program for a launch. `layout` is the identity of the memory's layout. `None` means that
    /// the layout has no identity.
    pub(in crate::fast) fn new(compiled: &'a Compiled, launch: Identity, layout: Option<Identity>) -> Self {
        let mut held = Held::take();
        held.state().keep_sites(layout.map(|layout| [compiled.identity, launch, layout]));
        *held.state().own_mut(PLACES) = std::array::from_fn::<u32, WARP, _>(|lane| 4 * lane as u32);
        Runner { compiled, held, waiting: [None; GROUPS], stored: 0 }
    }

    /// Returns the node that begins at a block, if the node may run now.
    #[inline(always)]
    pub(in crate::fast) fn node(&self, block: u32, budget: u32) -> Option<u32> {
        let number = self.compiled.linked.starting_at(block)?;
        (self.compiled.linked.budget(number) <= budget).then_some(number)
    }

    /// Runs code from a node for the active lanes.
    #[inline(never)]
    pub(in crate::fast) fn run(&mut self, node: u32, cursor: &mut Cursor<'_, '_, Silent>) -> Exit {
        let Runner { compiled, held, waiting, stored } = self;
        let state = held.state();
        // Since the last run of code, the fast engine or the reference interpreter may have executed a store.
        state.follow_layout(cursor.memory.layout());
        cursor.give_counts(state);
        let rows = cursor.lanes.memory();
        state.set_window(cursor.lanes.shared.bytes_mut());
        // If a program has l[], compiled code does not switch to another warp. So the sites of l[] are valid until this
        // function returns.
        set_local(state, cursor.memory, compiled.local, *stored);
        let counts: *mut [u64] = &raw mut cursor.runs[cursor.lowered.blocks.len()..];
        let lowered = cursor.lowered;
        let (linked, local) = (&compiled.linked, compiled.local);
        let mut work = Work { linked, cursor, exit: None, waiting, local, stored, has_waited: false };
        // SAFETY: while code runs, only the code accesses the counts of parts.
        let counts = unsafe { &mut *counts };
        let arrived = Arrived { node, rows, counts };
        // SAFETY: nodes exist only if the processor has the level. The nodes were traced for the layout of these rows.
        // The row of the active lanes is one of these rows. The nodes were also traced for a window that has the size
        // of s[].
        let left =
            unsafe { compiled.linked.run(arrived, |own| lowered.first_pc(own.block), state, &mut work) };
        work.cursor.follow(state);
        if left != Left::Ended {
            work.cursor.take_counts(state);
        }
        work.end_turns(state);
        let Work { exit, waiting, has_waited, .. } = work;
        if has_waited {
            *waiting = [None; GROUPS];
        }
        let halt = |node: u32| {
            let &Own { block, first, .. } = compiled.linked.own(node);
            Exit::Halt(Halt::At(Position { block, first, joined: None, refused: false }))
        };
        if let Left::Ended = left {
            return exit.unwrap_or_else(|| unreachable!("the flow has ended the run"));
        }
        match left {
            Left::Budget(node) => match compiled.linked.own(node) {
                Own { block, first: 0, .. } => Exit::Before(*block),
                _ => halt(node),
            },
            // If the node is at the start of its block, the fast engine continues at the start of the block, before the
            // block's join, if any. The fast engine may halt at this block. The report of the halt then includes the
            // lanes that have arrived at the join.
            Left::Refused(node) | Left::Stopped(node) => match compiled.linked.own(node) {
                Own { block, first: 0, .. } => Exit::Apart(*block),
                _ => halt(node),
            },
            Left::Outside(block) => Exit::Before(block),
            Left::Ended => unreachable!("handled above"),
        }
    }
}
