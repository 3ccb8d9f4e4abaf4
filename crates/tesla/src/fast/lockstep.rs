//! Both engines side by side: after every instruction everything that it may have changed is compared.
//!
//! Two copies of a block run against two copies of the memory, one instruction at a time. Compared are who is next and
//! for which lanes, the registers of the warp that ran, the bytes that were written to g[], s[] and l[], the counts,
//! and traps; at the end of the block all of both. The first difference is the result.

use std::collections::BTreeMap;
use std::fmt;

use reconverge_simt::engine::Views;
use reconverge_simt::memory::{Memory, Store};
use reconverge_simt::{FlowView, Issue, Lane, Silent, Statistics, Step, Trap};
use thiserror::Error;

use super::Fast;
use crate::block::Block;
use crate::flow::WARP;
use crate::inst::{Dst, Inst, Op};
use crate::launch::Context;
use crate::state::{ADDRESS_REGISTERS, CONDITION_REGISTERS, Warp};
use crate::trap::{Cause, LaunchTrap};

/// What the engines disagree about.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Differs {
    /// How the instruction ended.
    Step(Box<Views<Result<Step, Trap<Cause>>>>),
    /// Which warp is next.
    Warp(Views<u32>),
    /// Where that one stands.
    Issue(Views<Option<Issue>>),
    /// The token stack and lane states of the warp that ran.
    Flow(Box<Views<Warp>>),
    /// A general register.
    Register {
        /// Its number.
        register: usize,
        /// The lane.
        lane: Lane,
        /// Its bits.
        value: Views<u32>,
    },
    /// An address register.
    Address {
        /// Its number.
        register: u8,
        /// The lane.
        lane: Lane,
        /// Its bits.
        value: Views<u16>,
    },
    /// A condition register.
    Condition {
        /// Its number.
        register: u8,
        /// The lane.
        lane: Lane,
        /// Its flags.
        value: Views<u8>,
    },
    /// The bytes of g[] that the instruction wrote, by address.
    Global(Box<Views<BTreeMap<u32, u8>>>),
    /// s[], l[], inputs, outputs or locks.
    Rest,
    /// What was counted.
    Statistics(Views<Statistics>),
    /// How often each word was issued.
    Issued,
}

/// The first difference between the engines: a defect of one of them, not of the program.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub struct Difference {
    /// Index of the block in the grid; `[warp, 0]` for graphics stages.
    pub block: [u32; 2],
    /// The warp that ran.
    pub warp: u32,
    /// Its instruction.
    pub at: Option<Issue>,
    /// The words there.
    pub words: [u32; 2],
    /// What differs.
    pub what: Differs,
}

impl fmt::Display for Difference {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Difference { block: [x, y], warp, at, words: [low, high], what } = self;
        write!(f, "the engines differ in block ({x}, {y}), warp {warp}")?;
        if let Some(Issue { pc, mask }) = at {
            write!(f, ", at {pc:#x} ({low:08x} {high:08x}) for lanes {mask}")?;
        }
        write!(f, ": ")?;
        match what {
            Differs::Register { register, lane, value: Views { reference, fast } } => {
                write!(f, "$r{register} of lane {} is {reference:#x}, fast {fast:#x}", lane.0)
            }
            Differs::Address { register, lane, value: Views { reference, fast } } => {
                write!(f, "$a{register} of lane {} is {reference:#x}, fast {fast:#x}", lane.0)
            }
            Differs::Condition { register, lane, value: Views { reference, fast } } => {
                write!(f, "$c{register} of lane {} is {reference:#x}, fast {fast:#x}", lane.0)
            }
            Differs::Flow(views) => {
                write!(f, "the flow is {:?}, fast {:?}", views.reference.flow, views.fast.flow)
            }
            other => write!(f, "{other:?}"),
        }
    }
}

/// Why a block did not end in lockstep.
#[derive(Clone, Debug)]
pub(crate) enum Failure {
    /// Both trapped, in the same way.
    Trap(LaunchTrap),
    /// They differ.
    Differ(Box<Difference>),
}

/// Runs a block to its end with both engines. Both memories hold what their engine left.
pub(crate) fn run(
    context: &Context,
    fast: &Fast,
    mut block: Block,
    memory: &mut Memory,
    twin_memory: &mut Memory,
) -> Result<Block, Failure> {
    let mut twin = block.clone();
    loop {
        let warp = block.current().number;
        let place = block.warps.iter().position(|other| other.number == warp).unwrap_or(0);
        let at = block.current().flow.issue();
        let words = at.map_or([0; 2], |at| context.code.words_at(at.pc));
        let more = at.and_then(|at| context.code.at(at.pc).ok()).is_none_or(changes_more);
        let mut global = Logged { memory, written: BTreeMap::new() };
        let reference = block.step(context, &mut global, &mut Silent);
        let global = global.written;
        let mut twin_global = Logged { memory: twin_memory, written: BTreeMap::new() };
        let found = twin.stride(fast, context, &mut twin_global, &mut Silent, 1);
        let twin_global = twin_global.written;

        let differ = |what| Err::<Block, _>(differ_in(&block, warp, at, words, what));
        if reference != found {
            return differ(Differs::Step(Box::new(Views { reference, fast: found })));
        }
        if let Some(what) = compare_warps(&block.warps[place], &twin.warps[place]) {
            return differ(what);
        }
        if global != twin_global {
            return differ(Differs::Global(Box::new(Views { reference: global, fast: twin_global })));
        }
        let (a, b) = (block.current(), twin.current());
        if a.number != b.number {
            return differ(Differs::Warp(Views { reference: a.number, fast: b.number }));
        }
        if a.flow.issue() != b.flow.issue() {
            return differ(Differs::Issue(Views { reference: a.flow.issue(), fast: b.flow.issue() }));
        }
        let (a, b) = (block.common.statistics, twin.common.statistics);
        if a != b {
            return differ(Differs::Statistics(Views { reference: a, fast: b }));
        }
        let over = reference != Ok(Step::Running);
        let same = |whole: bool| {
            block.common.shared == twin.common.shared
                && block.common.barriers == twin.common.barriers
                && match whole {
                    true => block.warps == twin.warps,
                    false => block.warps[place] == twin.warps[place],
                }
        };
        if (over || more) && !same(over) {
            return differ(Differs::Rest);
        }
        if over {
            fast.settle(&mut twin.common);
            if block.common.issued != twin.common.issued {
                return differ(Differs::Issued);
            }
        }
        match reference {
            Ok(Step::Running) => {}
            Ok(Step::Done) => return Ok(block),
            Err(trap) => return Err(Failure::Trap(block.locate(context, trap))),
        }
    }
}

fn differ_in(block: &Block, warp: u32, at: Option<Issue>, words: [u32; 2], what: Differs) -> Failure {
    Failure::Differ(Box::new(Difference { block: block.common.index, warp, at, words, what }))
}

/// Whether an instruction may change more than registers and g[], which are compared always.
fn changes_more(inst: &Inst) -> bool {
    let to_outputs = matches!(inst.dst, Dst::Out32(_) | Dst::Out16(_));
    to_outputs || matches!(inst.op, Op::St | Op::StUnlock | Op::LdLock | Op::Emit { .. } | Op::Bar { .. })
}

fn compare_warps(reference: &Warp, fast: &Warp) -> Option<Differs> {
    let lanes = || (0..WARP as u8).map(Lane);
    for (register, (a, b)) in reference.file().rows().iter().zip(fast.file().rows()).enumerate() {
        if let Some(lane) =
            (a != b).then(|| lanes().find(|lane| a.0[lane.index()] != b.0[lane.index()])).flatten()
        {
            let value = Views { reference: a.0[lane.index()], fast: b.0[lane.index()] };
            return Some(Differs::Register { register, lane, value });
        }
    }
    for register in 0..CONDITION_REGISTERS as u8 {
        let (a, b) = (reference.c_row(register), fast.c_row(register));
        if let Some(lane) = lanes().find(|lane| a[lane.index()] != b[lane.index()]) {
            let value = Views { reference: a[lane.index()], fast: b[lane.index()] };
            return Some(Differs::Condition { register, lane, value });
        }
    }
    for register in 1..=ADDRESS_REGISTERS as u8 {
        if let Some(lane) = lanes().find(|lane| reference.a(*lane, register) != fast.a(*lane, register)) {
            let value = Views { reference: reference.a(lane, register), fast: fast.a(lane, register) };
            return Some(Differs::Address { register, lane, value });
        }
    }
    (reference.flow != fast.flow)
        .then(|| Differs::Flow(Box::new(Views { reference: reference.clone(), fast: fast.clone() })))
}

/// Memory that remembers what an instruction wrote.
struct Logged<'a> {
    memory: &'a mut Memory,
    written: BTreeMap<u32, u8>,
}

impl Store for Logged<'_> {
    fn load(&mut self, address: u32, into: &mut [u8]) -> bool {
        self.memory.load(address, into)
    }

    fn store(&mut self, address: u32, bytes: &[u8]) -> bool {
        let stored = self.memory.store(address, bytes);
        if stored {
            self.written.extend((address..).zip(bytes.iter().copied()));
        }
        stored
    }
}
