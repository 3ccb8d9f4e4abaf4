//! Entry and exit of linked code, and its flow.

// Code is called and calls back; each use states its assumptions.
#![allow(unsafe_code)]

use std::ops::{ControlFlow, Range};
use std::ptr::slice_from_raw_parts_mut;

use reconverge_jit::{Arrived, FLUSH_OPERANDS, Held, Left, Linked, LinkedMachine, NO_NODE, State};
use reconverge_simt::Mask;

use super::{Behind, Compiled, Own};
use crate::fast::lower::{Last, Lowered};
use crate::fast::run::{Cursor, Stop};

/// A program as linked code, and a state to run it with.
pub(in crate::fast) struct Runner<'a> {
    compiled: &'a Compiled,
    held: Held,
}

/// Position of the group after code.
pub(in crate::fast) enum Exit {
    /// The group is at its program counter.
    Here,
    /// The group is before this block, which runs without code.
    Apart(u32),
    /// The flow has stopped.
    Stop(Stop),
}

/// Data that calls and flow use.
pub(in crate::fast) struct Work<'c, 'a> {
    cursor: &'c mut Cursor<'a>,
    /// The reason why the flow has ended the run.
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

    /// Two vectors of sixteen lanes hide less latency than four of eight: newton gains 7 %, mandel loses 7 % (an AMD EPYC).
    const LEVEL: reconverge_jit::Level = reconverge_jit::Level::Avx2;
    const MODE: u32 = FLUSH_OPERANDS;
    const HEXADECIMAL: bool = false;

    fn call(call: &Range<u32>, state: &mut State, Work { cursor, .. }: &mut Work<'_, '_>) -> bool {
        cursor.choose_active(Mask(state.active));
        cursor.operate(call.clone());
        true
    }

    fn flow(linked: &Linked<R500>, own: &Own, state: &mut State, work: &mut Work<'_, '_>) -> u32 {
        let cursor = &mut *work.cursor;
        cursor.take_counts(state, own.pc_behind(cursor.lowered));
        if own.behind == Behind::Break {
            // Code has cleared the row.
            cursor.forget_active();
        }
        let taken = (own.behind != Behind::Operations).then(|| Mask(state.taken()));
        work.exit = Some(match cursor.continue_after(own.ends, taken) {
            ControlFlow::Break(stop) => Exit::Stop(stop),
            ControlFlow::Continue(()) => match cursor.node(linked) {
                Some(node) => {
                    cursor.give_counts(state);
                    return node;
                }
                None => Exit::Here,
            },
        });
        NO_NODE
    }
}

impl Own {
    /// Returns the slot at which the node begins.
    fn pc(&self, lowered: &Lowered) -> u16 {
        lowered.blocks[self.block as usize].first + self.first
    }

    /// Returns the slot of the flow instruction behind the node, or else of the next instruction.
    fn pc_behind(&self, lowered: &Lowered) -> u16 {
        let block = &lowered.blocks[self.ends as usize];
        block.first + block.size - u16::from(matches!(block.last, Last::Flow(_)))
    }
}

impl<'a> Runner<'a> {
    pub(in crate::fast) fn new(compiled: &'a Compiled) -> Self {
        Runner { compiled, held: Held::take() }
    }

    /// Returns the program's code.
    #[inline(always)]
    pub(in crate::fast) fn linked(&self) -> &'a Linked<R500> {
        &self.compiled.linked
    }

    /// Runs code from a node for the active lanes.
    #[inline(never)]
    pub(in crate::fast) fn run(&mut self, node: u32, cursor: &mut Cursor<'a>) -> Exit {
        let Runner { compiled, held } = self;
        let (linked, lowered, state) = (&compiled.linked, cursor.lowered, held.state());
        cursor.give_counts(state);
        let none: *mut [u8] = slice_from_raw_parts_mut(std::ptr::null_mut(), 0);
        let rows = [cursor.lanes.row_bytes(), none, none];
        let counts: *mut [u64] = &raw mut cursor.runs[lowered.blocks.len()..];
        let mut work = Work { cursor, exit: None };
        // SAFETY: nothing else accesses the counts of parts while code runs.
        let arrived = Arrived { node, rows, counts: unsafe { &mut *counts } };
        // SAFETY: nodes exist only if the processor has the level; they were traced for the layout of these rows, which
        // contain the mask.
        let left = unsafe { linked.run(arrived, |own| own.pc(lowered).into(), state, &mut work) };
        let Work { cursor, exit } = work;
        let mut leave = |pc: u16| {
            cursor.take_counts(state, pc);
            Exit::Here
        };
        match left {
            Left::Ended => exit.unwrap_or_else(|| unreachable!("the flow has ended the run")),
            Left::Budget(node) | Left::Stopped(node) => leave(linked.own(node).pc(lowered)),
            Left::Refused(node) => {
                let own = linked.own(node);
                match (leave(own.pc(lowered)), own.first) {
                    (_, 0) => Exit::Apart(own.block),
                    (exit, _) => exit,
                }
            }
            Left::Outside(block) => leave(lowered.blocks[block as usize].first),
        }
    }
}
