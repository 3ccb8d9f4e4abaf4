//! Enters linked code, exits from linked code, and executes the flow instructions of linked code.

// Generated code is unsafe to call. Generated code also calls functions in this file. A comment at each use of `unsafe`
// states why the use is sound.
#![allow(unsafe_code)]

use std::mem::take;
use std::ops::{ControlFlow, Range};
use std::ptr::slice_from_raw_parts_mut;

use reconverge_jit::{Arrived, FLUSH_OPERANDS, Held, Left, Linked, LinkedMachine, NO_NODE, State};
use reconverge_simt::Mask;

use super::{Compiled, Loop, Own};
use crate::fast::cursor::{Cursor, Stop};
use crate::fast::lower::{Last, Lowered};

/// A program as linked code, and the state in which the code runs.
pub(in crate::fast) struct Runner<'a> {
    compiled: &'a Compiled,
    held: Held,
}

/// Position of the group after compiled code has exited.
pub(in crate::fast) enum Exit {
    /// The program counter of the group states the position.
    Here,
    /// The group is at the start of this block. The fast engine has to run this block, because compiled code cannot run
    /// the block.
    Apart(u32),
    /// The flow has stopped.
    Stop(Stop),
}

/// Data for flow control, and for the functions that compiled code calls.
pub(in crate::fast) struct Work<'c, 'a> {
    cursor: &'c mut Cursor<'a>,
    /// Number of iterations that compiled code may start, and the number that each iteration adds to aL.
    given: (u32, i8),
    /// The position of the group, if flow control has stopped compiled code.
    exit: Option<Exit>,
}

/// The compiled engine of this machine.
#[derive(Debug)]
pub(in crate::fast) struct R500;

impl LinkedMachine for R500 {
    type Call = Range<u32>;
    type Own = Own;
    type Context<'c, 'a, 'w>
        = Work<'c, 'a>
    where
        'a: 'c,
        'w: 'a;

    const MODE: u32 = FLUSH_OPERANDS;
    const JOINS: bool = false;
    const HOLDS: bool = false;
    const HEXADECIMAL: bool = false;

    fn call(call: &Range<u32>, state: &mut State, Work { cursor, .. }: &mut Work<'_, '_>) -> bool {
        cursor.choose_active(Mask(state.active));
        cursor.operate(call.clone());
        true
    }

    fn flow(linked: &Linked<R500>, own: &Own, state: &mut State, work: &mut Work<'_, '_>) -> u32 {
        let lowered = work.cursor.lowered;
        let (ends, taken) = match take(&mut state.leave) {
            0 => {
                work.take_counts(state, pc_behind(lowered, own.ends));
                (own.ends, own.is_counted.then(|| Mask(state.taken())))
            }
            piece => {
                let (ends, jump) = own.leaves[piece as usize - 1];
                if jump {
                    // Some lanes may have left the loop at an earlier BREAK of the node. For flow control, all these
                    // lanes leave the loop at this BREAK.
                    state.active |= take(&mut state.gone[0]);
                }
                work.take_counts(state, pc_behind(lowered, ends));
                // Compiled code has cleared the row of active lanes.
                work.cursor.forget_active();
                (ends, Some(if jump { Mask(state.active) } else { Mask::NONE }))
            }
        };
        let cursor = &mut *work.cursor;
        work.exit = Some(match cursor.continue_after(ends, taken) {
            ControlFlow::Break(stop) => Exit::Stop(stop),
            ControlFlow::Continue(()) => match node(linked, cursor) {
                Some(node) => {
                    work.give_counts(linked, state, node);
                    return node;
                }
                None => Exit::Here,
            },
        });
        NO_NODE
    }
}

impl Work<'_, '_> {
    /// Prepares a run of compiled code from a node: sets the budget, the active lanes and the number of loop
    /// iterations.
    fn give_counts(&mut self, linked: &Linked<R500>, state: &mut State, node: u32) {
        self.cursor.give_counts(state);
        (state.body, self.given) = (NO_NODE, (0, 0));
        if let Some(Loop { head, al, step }) = linked.own(node).in_loop
            && let (Some(body), Some(rounds)) = (linked.starting_at(head), self.cursor.rounds(al))
        {
            (state.body, self.given) = (body, (rounds, step));
        }
        state.rounds = self.given.0;
    }

    /// Adds the counts of compiled code to the counts of the cursor. The group is now at `pc`.
    fn take_counts(&mut self, state: &mut State, pc: u16) {
        let (rounds, step) = self.given;
        self.cursor.take_counts(state, pc, (rounds - state.rounds, step));
    }
}

impl Own {
    /// Returns the slot at which the node begins.
    fn pc(&self, lowered: &Lowered) -> u16 {
        lowered.blocks[self.block as usize].first + self.first
    }
}

/// Returns the slot of a block's flow instruction. If the block has no flow instruction, returns the slot after the
/// block.
fn pc_behind(lowered: &Lowered, block: u32) -> u16 {
    let block = &lowered.blocks[block as usize];
    block.first + block.size - u16::from(matches!(block.last, Last::Flow(_)))
}

/// Returns the node to run instead of the cursor's block. Returns `None` if no node begins at the block, or if the code
/// of the node cannot run now.
#[inline(always)]
fn node(linked: &Linked<R500>, cursor: &Cursor<'_>) -> Option<u32> {
    let node = linked.starting_at(cursor.number)?;
    cursor.allows(linked.budget(node), linked.needs(node)).then_some(node)
}

impl<'a> Runner<'a> {
    pub(in crate::fast) fn new(compiled: &'a Compiled) -> Self {
        Runner { compiled, held: Held::take() }
    }

    /// Returns the node to run instead of the cursor's block. Returns `None` if no node begins at the block, or if the
    /// code of the node cannot run now.
    #[inline(always)]
    pub(in crate::fast) fn node(&self, cursor: &Cursor<'_>) -> Option<u32> {
        node(&self.compiled.linked, cursor)
    }

    /// Runs compiled code for the active lanes, starting at a node.
    #[inline(never)]
    pub(in crate::fast) fn run(&mut self, node: u32, cursor: &mut Cursor<'a>) -> Exit {
        let Runner { compiled, held } = self;
        let (linked, lowered, state) = (&compiled.linked, cursor.lowered, held.state());
        let none: *mut [u8] = slice_from_raw_parts_mut(std::ptr::null_mut(), 0);
        let rows = [cursor.lanes.row_bytes(), none, none];
        let counts: *mut [u64] = &raw mut cursor.runs[lowered.blocks.len()..];
        let mut work = Work { cursor, given: (0, 0), exit: None };
        work.give_counts(linked, state, node);
        // SAFETY: while compiled code runs, no other code accesses the run counts of parts.
        let arrived = Arrived { node, rows, counts: unsafe { &mut *counts } };
        // SAFETY: nodes exist only if the processor supports the vector level of the nodes' code. The nodes were traced
        // for the layout of the group's rows. These rows include the row of active lanes.
        let left = unsafe { linked.run(arrived, |own| own.pc(lowered).into(), state, &mut work) };
        let (pc, exit) = match left {
            Left::Ended => return work.exit.unwrap_or_else(|| unreachable!("the flow has ended the run")),
            Left::Refused(node) if linked.own(node).first == 0 => {
                let own = linked.own(node);
                (own.pc(lowered), Exit::Apart(own.block))
            }
            Left::Budget(node) | Left::Refused(node) | Left::Stopped(node) => {
                (linked.own(node).pc(lowered), Exit::Here)
            }
            Left::Outside(block) => (lowered.blocks[block as usize].first, Exit::Here),
        };
        work.take_counts(state, pc);
        exit
    }
}
