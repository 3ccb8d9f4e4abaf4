//! From instructions to blocks of operations, once a program.
//!
//! A [`Block`] is a run of instructions that neither depend on flow control nor can trap, and one instruction at its
//! end that may. Everything that is known before the program runs is decided here: which registers there are, the
//! contents of constants, which function with which modifiers. An instruction without an operation ends its block
//! and is executed by the reference interpreter, so that every program runs.

mod texture;

use std::collections::HashMap;
use std::ops::Range;

use reconverge_simt::place::Layout;
use reconverge_simt::registers::Row;
use reconverge_simt::wide::Table;
use reconverge_simt::{Level, Mode};

use super::bodies::{CONDITIONS, FromA, FromC, General, Predicate, SharedWord, ToA, ToC, Vote};
use super::kernels::{self, Shape};
use super::lanes::{ACTIVE, GeneralOperands, Handler, Operation, PREDICATED, Place, Tables, handler};
use super::memory::{Kind, Transfer};
use super::texture::{Quad, Tex};
use crate::access::extended;
use crate::barrier::Count;
use crate::context::Context;
use crate::flow::WARP;
use crate::inst::{
    Arith, Base, Control, Dst, End, Group, Guard, Inst, Mem, Memory, Op, Operand, Space, Special,
};
use crate::lane::Width;
use crate::spaces::aligned;

/// The instruction at the end of a block.
#[derive(Clone, Copy, Debug)]
pub(super) enum Last {
    /// None: the next one begins another block.
    Next,
    /// Executed by the reference interpreter.
    Reference,
    /// A load or store, by number.
    Memory(u32),
    /// To a byte address.
    Bra { target: u32, guard: Test },
    /// Pushes a byte address.
    Joinat { target: u32 },
    /// Pushes a byte address.
    Breakaddr { target: u32 },
    /// To a byte address, without limit.
    Call { target: u32 },
    /// Back.
    Ret { guard: Test },
    /// Out of a loop.
    Break { guard: Test },
    /// A barrier that there is.
    Bar { inc: bool, wait: bool, barrier: u8, count: Count },
}

/// A load or store, then operations with what was loaded.
#[derive(Clone, Debug)]
pub(super) struct Access {
    pub(super) transfer: Transfer,
    /// Of the operations of the program.
    pub(super) after: Range<u32>,
}

/// A predicate, ready to be looked up.
#[derive(Clone, Copy, Debug)]
pub(super) struct Test {
    pub(super) always: bool,
    pub(super) c: u8,
    pub(super) table: Table,
}

impl Last {
    /// The predicate of control flow that has one.
    pub(super) fn guard(&self) -> Option<&Test> {
        match self {
            Last::Bra { guard, .. } | Last::Ret { guard } | Last::Break { guard } => Some(guard),
            Last::Next
            | Last::Reference
            | Last::Memory(_)
            | Last::Joinat { .. }
            | Last::Breakaddr { .. }
            | Last::Call { .. }
            | Last::Bar { .. } => None,
        }
    }
}

impl Test {
    fn of(guard: Guard) -> Self {
        Test { always: guard.is_always(), c: guard.c, table: CONDITIONS[usize::from(guard.condition.code())] }
    }
}

/// Instructions that run together: what every run reads.
#[derive(Clone, Copy, Debug)]
#[repr(align(64))]
pub(super) struct Block {
    /// Its operations, those of a memory access's second part aside.
    pub(super) start: u32,
    pub(super) end: u32,
    /// Instructions, the last one included.
    pub(super) size: u32,
    /// [`Block::size`] where the block can run in a chain; [`NONE`] where its last instruction needs more than rows and
    /// flow.
    pub(super) chained: u32,
    /// Byte address of what follows.
    pub(super) next: u32,
    /// Byte address of the last instruction.
    pub(super) last_pc: u32,
    /// The first instruction joins.
    pub(super) join: bool,
    /// All active lanes end behind it.
    pub(super) exit: bool,
    pub(super) last: Last,
    /// The block that follows, and the one that a branch goes to, if it has no join; else [`NONE`].
    pub(super) fall: u32,
    pub(super) jump: u32,
}

/// What a block needs when only some of its instructions run.
#[derive(Clone, Debug)]
pub(super) struct Inside {
    /// For each instruction but [`Block::last`], where its operations end.
    pub(super) ends: Vec<u32>,
    /// For each instruction its place in the code.
    pub(super) places: Vec<usize>,
    /// And its address.
    pub(super) addresses: Vec<u32>,
}

/// Where the two sides of a branch come to the same join, each with nothing but ordinary instructions on its way.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Diamond {
    /// The byte address of the join.
    pub(super) join: u32,
    /// The side of those that take the branch, and that of the others.
    pub(super) taken: Side,
    pub(super) not: Side,
    /// Instructions that are tried until the second side arrives: those of both, and the first side's arrival.
    pub(super) tried: u32,
}

/// One side of a branch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Side {
    /// The byte address at which it begins.
    pub(super) pc: u32,
    /// The block on its way; [`NONE`] where there is none.
    pub(super) block: u32,
}

/// What follows a `joinat`: a block with a branch at its end, two sides that meet, the join that takes the entry.
#[derive(Clone, Copy, Debug)]
pub(super) struct Conditional {
    /// The block with the branch, and its predicate.
    pub(super) branch: u32,
    pub(super) guard: Test,
    pub(super) diamond: Diamond,
    /// The block that begins with the join.
    pub(super) joins: u32,
    /// Instructions that are tried behind the `joinat` at most, that which carries the join among them.
    pub(super) most: u32,
}

/// No block begins there.
pub(super) const NONE: u32 = u32::MAX;

/// What lowering gives.
#[derive(Clone, Debug)]
pub(super) struct Lowered {
    pub(super) operations: Vec<(Handler, Operation)>,
    pub(super) blocks: Vec<Block>,
    /// By block.
    pub(super) inside: Vec<Inside>,
    /// By block: where the two sides of the branch at its end meet.
    pub(super) diamonds: Vec<Option<Diamond>>,
    /// By block: what the `joinat` at its end begins.
    pub(super) conditionals: Vec<Option<Conditional>>,
    pub(super) accesses: Vec<Access>,
    /// For every word of the code, the block that begins there, or [`NONE`].
    pub(super) starts: Vec<u32>,
    /// For every word of the code, its block and the number of its instruction in that block.
    pub(super) entries: Vec<Option<(u32, u32)>>,
    pub(super) tables: Tables,
    /// The rows behind the registers, before the first instruction.
    pub(super) room: Vec<Row<WARP>>,
}

/// Row of the room: zeros, which absent registers and operands read.
const ZERO: usize = 0;
/// Row of the room: receives unused results.
const SINK: usize = 1;
/// First row of the room for the words of the two sets of lanes.
const SETS: usize = 2;
/// First of four rows of the room: one for each source, one for an intermediate result.
const TEMPORARIES: usize = 4;
/// Rows of the room before the constants.
const FIXED: usize = 8;

/// The most rows of a program.
const MOST_ROWS: usize = 1 << 20;

/// What an instruction becomes.
enum Lowering {
    /// Operations that cannot fail.
    Straight,
    /// The end of a block.
    Last(Last),
}

pub(super) fn lower(context: &Context, registers: usize, shared_bytes: usize, level: Level) -> Lowered {
    let mut lower = Lower {
        context,
        level,
        registers,
        shared_bytes,
        operations: Vec::new(),
        accesses: Vec::new(),
        generals: Vec::new(),
        textures: Vec::new(),
        quads: Vec::new(),
        constants: Vec::new(),
        constant_places: HashMap::new(),
        layout: Layout::new(registers + FIXED),
    };
    let slots = context.code.slots();
    let leaders = leaders(context);
    let mut entries = vec![None; slots.len()];
    let mut starts = vec![NONE; slots.len()];
    let mut blocks: Vec<Block> = Vec::new();
    let mut insides = Vec::new();
    let mut place = 0;
    while place < slots.len() {
        let start = lower.operations.len() as u32;
        let mut block = Block {
            start,
            end: start,
            size: 0,
            chained: NONE,
            next: 0,
            last_pc: 0,
            join: false,
            exit: false,
            last: Last::Next,
            fall: NONE,
            jump: NONE,
        };
        let mut inside = Inside { ends: Vec::new(), places: Vec::new(), addresses: Vec::new() };
        loop {
            let Some(Ok(inst)) = slots.get(place) else {
                // The reference interpreter handles this address and traps.
                place += 1;
                break;
            };
            entries[place] = Some((blocks.len() as u32, block.size));
            if block.size == 0 {
                starts[place] = blocks.len() as u32;
                block.join = inst.end == End::Join;
            }
            inside.places.push(place);
            inside.addresses.push(context.code.base() + 4 * place as u32);
            block.size += 1;
            block.last_pc = context.code.base() + 4 * place as u32;
            block.next = block.last_pc + inst.form.bytes();
            place += inst.form.words() as usize;
            let before = lower.operations.len();
            match lower.instruction(inst) {
                Some(Lowering::Straight) => {
                    block.end = lower.operations.len() as u32;
                    inside.ends.push(block.end);
                    block.exit = inst.end == End::Exit;
                }
                Some(Lowering::Last(last)) => {
                    block.end = match last {
                        Last::Memory(number) => lower.accesses[number as usize].after.start,
                        _ => lower.operations.len() as u32,
                    };
                    block.last = last;
                    block.exit = inst.end == End::Exit;
                    break;
                }
                None => {
                    lower.operations.truncate(before);
                    block.last = Last::Reference;
                    break;
                }
            }
            if block.exit || leaders.get(place).copied().unwrap_or(true) {
                break;
            }
        }
        if !matches!(block.last, Last::Reference) {
            block.chained = block.size;
        }
        if block.size > 0 {
            blocks.push(block);
            insides.push(inside);
        }
    }
    link(context, &starts, &mut blocks);
    let diamonds: Vec<_> = blocks.iter().map(|block| diamond(context, &starts, &blocks, block)).collect();
    let conditionals =
        blocks.iter().map(|block| conditional(context, &starts, &blocks, &diamonds, block)).collect();
    let mut room = vec![Row::ZERO; FIXED];
    room.extend(lower.constants.iter().map(|value| Row([*value; WARP])));
    let tables = Tables {
        generals: lower.generals,
        textures: lower.textures,
        quads: lower.quads,
        chip: context.chip,
        modes: context.modes,
        sets: [ACTIVE, PREDICATED].map(|number| lower.layout.place(registers + SETS + number)),
        layout: lower.layout,
    };
    Lowered {
        operations: lower.operations,
        blocks,
        inside: insides,
        diamonds,
        conditionals,
        accesses: lower.accesses,
        starts,
        entries,
        tables,
        room,
    }
}

/// Gives blocks the numbers of their neighbours. Between `quadon` and `quadpop` control flow is a fault, which only the
/// stack shows: the blocks of programs with them have no neighbours.
fn link(context: &Context, starts: &[u32], blocks: &mut [Block]) {
    let quads = |inst: &Inst| matches!(inst.op, Op::Control(Control::Quadon | Control::Quadpop));
    if context.code.slots().iter().flatten().any(quads) {
        return;
    }
    for number in 0..blocks.len() {
        let neighbour = |pc: u32| {
            let block = context.code.place(pc).map_or(NONE, |place| starts[place]);
            if blocks.get(block as usize).is_some_and(|block| !block.join) { block } else { NONE }
        };
        let Block { next, last, exit, .. } = blocks[number];
        let jump = match last {
            Last::Bra { target, .. } => neighbour(target),
            _ => NONE,
        };
        (blocks[number].fall, blocks[number].jump) =
            if exit { (NONE, NONE) } else { (neighbour(next), jump) };
    }
}

/// Where the sides of the branch at the end of a block meet.
fn diamond(context: &Context, starts: &[u32], blocks: &[Block], block: &Block) -> Option<Diamond> {
    let Last::Bra { target, .. } = block.last else { return None };
    if block.fall == NONE && block.jump == NONE {
        return None;
    }
    // The side that begins at an address, and the join that it comes to.
    let side = |pc: u32, block: u32| {
        let place = context.code.place(pc)?;
        let first = blocks.get(starts[place] as usize)?;
        if first.join {
            return Some((Side { pc, block: NONE }, pc));
        }
        let at = match first.last {
            Last::Next => first.next,
            Last::Bra { target, guard } if guard.always => target,
            _ => return None,
        };
        let joins = |place: usize| blocks.get(starts[place] as usize).is_some_and(|block| block.join);
        (block != NONE && !first.exit && joins(context.code.place(at)?)).then_some((Side { pc, block }, at))
    };
    let ((taken, at), (not, other)) = (side(target, block.jump)?, side(block.next, block.fall)?);
    let size = |side: Side| blocks.get(side.block as usize).map_or(0, |block| block.size);
    (at == other).then_some(Diamond { join: at, taken, not, tried: size(taken) + size(not) + 1 })
}

/// What the `joinat` at the end of a block begins.
fn conditional(
    context: &Context,
    starts: &[u32],
    blocks: &[Block],
    diamonds: &[Option<Diamond>],
    block: &Block,
) -> Option<Conditional> {
    let Last::Joinat { .. } = block.last else { return None };
    let Last::Bra { guard, .. } = blocks.get(block.fall as usize)?.last else { return None };
    // The join takes the entry whatever its address is.
    let diamond = diamonds[block.fall as usize]?;
    let joins = starts[context.code.place(diamond.join)?];
    let most = blocks[block.fall as usize].size + diamond.tried + 1;
    Some(Conditional { branch: block.fall, guard, diamond, joins, most })
}

/// By word: whether a block begins there whatever precedes it. Jumps elsewhere enter a block in its middle.
fn leaders(context: &Context) -> Vec<bool> {
    let slots = context.code.slots();
    let mut leaders = vec![false; slots.len()];
    for (place, inst) in slots.iter().enumerate() {
        let Ok(inst) = inst else { continue };
        leaders[place] |= inst.end == End::Join;
        let Op::Control(control) = inst.op else { continue };
        if let Some(target) = control.target().and_then(|target| context.code.place(target)) {
            leaders[target] = true;
        }
    }
    leaders
}

struct Lower<'a> {
    context: &'a Context,
    level: Level,
    registers: usize,
    shared_bytes: usize,
    operations: Vec<(Handler, Operation)>,
    accesses: Vec<Access>,
    generals: Vec<GeneralOperands>,
    textures: Vec<Tex>,
    quads: Vec<Quad>,
    constants: Vec<u32>,
    constant_places: HashMap<u32, Place>,
    layout: Layout<WARP>,
}

impl Lower<'_> {
    fn zero(&self) -> Place {
        self.layout.place(self.registers + ZERO)
    }

    fn sink(&self) -> Place {
        self.layout.place(self.registers + SINK)
    }

    fn temporary(&self, number: usize) -> Place {
        self.layout.place(self.registers + TEMPORARIES + number)
    }

    /// A row of a value; `None` when there are too many to number.
    fn constant(&mut self, value: u32) -> Option<Place> {
        if value == 0 {
            return Some(self.zero());
        }
        if let Some(place) = self.constant_places.get(&value) {
            return Some(*place);
        }
        if self.layout.rows() >= MOST_ROWS {
            return None;
        }
        let place = self.layout.add();
        self.constants.push(value);
        self.constant_places.insert(value, place);
        Some(place)
    }

    /// A register for reading: those beyond the count read 0. (1.4)
    fn register(&self, register: u8) -> Place {
        match usize::from(register) {
            register if register < self.registers => self.layout.place(register),
            _ => self.zero(),
        }
    }

    /// A register for writing: those beyond the count swallow writes. (1.4)
    fn target(&self, register: u8) -> Place {
        match usize::from(register) {
            register if register < self.registers => self.layout.place(register),
            _ => self.sink(),
        }
    }

    /// An operation for a set of lanes that reads zeros.
    fn operation(&self, dst: Place, set: usize) -> Operation {
        Operation {
            src: [self.zero(); 3],
            dst,
            set: self.layout.place(self.registers + SETS + set),
            set_number: set as u8,
            c: 0,
            cdst: 0,
            shift: [0; 3],
            narrow: [false; 3],
            dst_shift: 0,
            dst_narrow: false,
            number: 0,
            keep: [u32::MAX; 3],
            flip: [0; 3],
        }
    }

    fn access(&mut self, transfer: Transfer, after: Range<usize>) -> Last {
        self.accesses.push(Access { transfer, after: after.start as u32..after.end as u32 });
        Last::Memory(self.accesses.len() as u32 - 1)
    }

    fn push(&mut self, handler: Handler, operation: Operation) {
        self.operations.push((handler, operation));
    }

    /// `None`: the reference interpreter executes it.
    fn instruction(&mut self, inst: &Inst) -> Option<Lowering> {
        if let Op::Control(control) = inst.op {
            return self.control(control, inst.guard).map(Lowering::Last);
        }
        if inst.gate().is_some_and(|register| usize::from(register) >= self.registers) {
            return Some(Lowering::Straight); // It vanishes. (1.4)
        }
        match &inst.op {
            Op::Idle(_) => Some(Lowering::Straight),
            Op::Arith(op) => {
                let set = self.predicate(inst);
                self.arithmetic(op, inst, set)
            }
            Op::Memory(Memory::Ld) => {
                let set = self.predicate(inst);
                self.load(inst, set)
            }
            Op::Memory(Memory::St) => {
                let set = self.predicate(inst);
                self.store(inst, set).map(Lowering::Last)
            }
            Op::Memory(Memory::Atom { atomic, signed } | Memory::Red { atomic, signed }) => {
                let set = self.predicate(inst);
                self.atomic(Kind::Atomic { atomic: *atomic, signed: *signed }, inst, set).map(Lowering::Last)
            }
            Op::Group(Group::Vote { all }) => self.vote(*all, inst),
            Op::Group(Group::Tex(tex)) => {
                let set = self.predicate(inst);
                self.texture(tex, set)
            }
            Op::Group(Group::Quadop { ops, from }) => {
                let set = self.predicate(inst);
                self.quadop(inst, (*ops, *from), set)
            }
            Op::Memory(_) | Op::Group(_) | Op::Control(_) => None,
        }
    }

    /// Control flow that the engine has a way for.
    fn control(&self, control: Control, guard: Guard) -> Option<Last> {
        let guard = Test::of(guard);
        Some(match control {
            Control::Bra { target } => Last::Bra { target, guard },
            Control::Joinat { target } => Last::Joinat { target },
            Control::Breakaddr { target } => Last::Breakaddr { target },
            Control::Call { target, lim: false } => Last::Call { target },
            Control::Ret => Last::Ret { guard },
            Control::Break => Last::Break { guard },
            Control::Bar { inc, wait, barrier, count } if self.context.has_barrier(barrier) => {
                Last::Bar { inc, wait, barrier, count: count.into() }
            }
            _ => return None,
        })
    }

    /// Which set of lanes executes; an operation that finds it out where that is not all active ones. (2.2, 3.4)
    fn predicate(&mut self, inst: &Inst) -> usize {
        if inst.guard.is_always() && inst.lanes & 15 == 15 {
            return ACTIVE;
        }
        let mut operation = self.operation(self.sink(), ACTIVE);
        operation.c = inst.guard.c;
        operation.number = inst.guard.condition.code().into();
        operation.shift[0] = inst.lanes;
        self.push(handler::<Predicate>(self.level), operation);
        PREDICATED
    }

    fn arithmetic(&mut self, op: &Arith, inst: &Inst, set: usize) -> Option<Lowering> {
        let mut operation = self.operation(self.sink(), set);
        operation.c = inst.guard.c;
        let mut high = [self.zero(); 3];
        let transfer = self.sources(inst, &mut operation, &mut high, set)?;
        let after = self.operations.len();
        self.result(op, inst, operation, high, set)?;
        Some(match transfer {
            None => Lowering::Straight,
            Some(transfer) => Lowering::Last(self.access(transfer, after..self.operations.len())),
        })
    }

    /// Puts the sources' places into the operation. Gives the load of the one source that differs between lanes.
    fn sources(
        &mut self,
        inst: &Inst,
        operation: &mut Operation,
        high: &mut [Place; 3],
        set: usize,
    ) -> Option<Option<Transfer>> {
        let mut transfer = None;
        for number in 0..3 {
            match inst.src[number] {
                Operand::Mem(mem) if !self.is_uniform(&mem) => {
                    if transfer.is_some() {
                        return None;
                    }
                    let place = self.temporary(number);
                    transfer = Some(self.transfer(&mem, [place; 4], set)?);
                    operation.src[number] = place;
                    if mem.access.bytes() > 4 {
                        return None;
                    }
                }
                operand => self.source(operand, number, operation, high)?,
            }
        }
        Some(transfer)
    }

    /// A source that no lane can fail to read.
    fn source(
        &mut self,
        operand: Operand,
        number: usize,
        operation: &mut Operation,
        high: &mut [Place; 3],
    ) -> Option<()> {
        let (low, upper) = match operand {
            Operand::None => (self.zero(), self.zero()),
            Operand::R32(register) => (self.register(register), self.zero()),
            Operand::R16(half) => {
                operation.shift[number] = if half.is_high() { 16 } else { 0 };
                operation.narrow[number] = true;
                (self.register(half.register()), self.zero())
            }
            Operand::R64(register) => (self.register(register), self.register(register.wrapping_add(1))),
            Operand::R128(_) => return None,
            Operand::Imm(value) => (self.constant(value)?, self.zero()),
            Operand::A(register) => {
                if register > 4 && self.context.mode == Mode::Strict {
                    return None; // A trap.
                }
                let mut fetch = self.operation(self.temporary(number), ACTIVE);
                fetch.number = register.into();
                self.push(handler::<FromA>(self.level), fetch);
                (fetch.dst, self.zero())
            }
            Operand::C(register) => {
                let mut fetch = self.operation(self.temporary(number), ACTIVE);
                fetch.c = register;
                self.push(handler::<FromC>(self.level), fetch);
                (fetch.dst, self.zero())
            }
            Operand::Special(special) => match special {
                Special::Physid | Special::Clock => return None,
                Special::Vstride => (self.constant(0x20)?, self.zero()),
                Special::Sr2 | Special::Pm(_) | Special::Sampleid | Special::Unknown(_) => {
                    (self.zero(), self.zero())
                }
            },
            Operand::Mem(mem) => (self.uniform(&mem, number)?, self.zero()),
        };
        operation.src[number] = low;
        high[number] = upper;
        Some(())
    }

    /// Whether the operand is one word for all lanes, known to be there.
    fn is_uniform(&self, mem: &Mem) -> bool {
        let bytes = mem.access.bytes();
        let fixed = mem.base == Base::A(0) && !mem.increment && bytes <= 4;
        match mem.space {
            Space::Const(_) => fixed,
            Space::Shared => fixed && (place_of(mem) + bytes) as usize <= self.shared_bytes,
            Space::Local
            | Space::Global(_)
            | Space::Attribute
            | Space::Primitive
            | Space::Varying
            | Space::Output => false,
        }
    }

    /// The row of an operand that is one word for all lanes.
    fn uniform(&mut self, mem: &Mem, number: usize) -> Option<Place> {
        let (at, bytes) = (place_of(mem), mem.access.bytes());
        if let Space::Const(bank) = mem.space {
            let raw = self.context.constants.read(bank, at, bytes);
            return self.constant(extended(raw.into(), mem.access) as u32);
        }
        let mut fetch = self.operation(self.temporary(number), ACTIVE);
        fetch.number = at;
        fetch.shift[0] = bytes as u8;
        fetch.narrow[0] = mem.access.is_signed();
        self.push(handler::<SharedWord>(self.level), fetch);
        Some(fetch.dst)
    }

    /// The operations of an arithmetic instruction whose sources are in their rows.
    fn result(
        &mut self,
        op: &Arith,
        inst: &Inst,
        mut operation: Operation,
        src_high: [Place; 3],
        set: usize,
    ) -> Option<()> {
        let mut dst_high = self.sink();
        let on_the_way = self.temporary(3);
        let mut then: Option<(Handler, Operation)> = None;
        match inst.dst {
            Dst::None | Dst::Discard => {}
            Dst::R32(register) => operation.dst = self.target(register),
            Dst::R16(half) => {
                operation.dst = self.target(half.register());
                operation.dst_shift = if half.is_high() { 16 } else { 0 };
                operation.dst_narrow = true;
            }
            Dst::R64(register) => {
                operation.dst = self.target(register);
                dst_high = self.target(register.saturating_add(1));
            }
            Dst::A(register) => {
                operation.dst = on_the_way;
                let mut write = self.operation(on_the_way, set);
                (write.src[0], write.number) = (on_the_way, register.into());
                then = Some((handler::<ToA>(self.level), write));
            }
            Dst::C(register) => {
                operation.dst = on_the_way;
                let mut write = self.operation(on_the_way, set);
                (write.src[0], write.cdst) = (on_the_way, register);
                then = Some((handler::<ToC>(self.level), write));
            }
            Dst::R128(_) | Dst::Out32(_) | Dst::Out16(_) => return None,
        }
        if let Some(cdst) = inst.cdst {
            operation.cdst = cdst;
            if then.is_some() {
                return None; // The order of the two writes would matter.
            }
        }
        let code = self.own_code(op, inst, &mut operation);
        match code {
            Some(code) => self.push(code, operation),
            None => {
                operation.number = u32::try_from(self.generals.len()).ok()?;
                self.generals.push(GeneralOperands {
                    op: *op,
                    modifiers: inst.modifiers,
                    writes_flags: inst.cdst.is_some(),
                    src_high,
                    dst_high,
                });
                let code = match inst.cdst {
                    Some(_) => handler::<General<true>>(self.level),
                    None => handler::<General<false>>(self.level),
                };
                self.push(code, operation);
            }
        }
        self.operations.extend(then);
        Some(())
    }

    /// Code made for this operation and its modifiers, and the modifiers in the form it takes them.
    fn own_code(&mut self, op: &Arith, inst: &Inst, operation: &mut Operation) -> Option<Handler> {
        if matches!(inst.dst, Dst::R64(_)) {
            return None;
        }
        let mut changed = *operation;
        let [a, b, c] = inst.modifiers;
        let mut modify = |number: usize, abs: bool, neg: bool| {
            changed.keep[number] = if abs { 0x7fff_ffff } else { u32::MAX };
            changed.flip[number] = if neg { 0x8000_0000 } else { 0 };
        };
        // The operation whose code is used: moves to other files are moves.
        let mut own = *op;
        match *op {
            Arith::FAdd { .. } | Arith::FMul { .. } | Arith::FMin | Arith::FMax | Arith::FSet { .. } => {
                modify(0, a.abs, a.neg);
                modify(1, b.abs, b.neg);
            }
            Arith::F2I { .. }
            | Arith::F2F32 { .. }
            | Arith::Rcp
            | Arith::Rsqrt
            | Arith::Lg2
            | Arith::PreSin
            | Arith::PreEx2
            | Arith::Sin
            | Arith::Cos
            | Arith::Ex2 { .. } => modify(0, a.abs, a.neg),
            // The sign of the product is that of a factor.
            Arith::FMad { .. } => {
                modify(0, false, a.neg);
                modify(2, c.abs, c.neg);
            }
            Arith::Slct => modify(2, c.abs, c.neg),
            Arith::Logic { not1, not2, .. } => {
                changed.flip[0] = if not1 { u32::MAX } else { 0 };
                changed.flip[1] = if not2 { u32::MAX } else { 0 };
            }
            // These take integers, whose modifiers are no bit operations.
            Arith::I2I { .. } | Arith::I2F32 { .. } if a.abs || a.neg => return None,
            Arith::MovFromC | Arith::MovToC | Arith::MovFromA | Arith::MovFromSpecial => {
                own = Arith::Mov { width: Width::B32 }
            }
            Arith::ShlA => {
                let Operand::Imm(count) = inst.src[1] else { return None };
                changed.src[1] = self.constant(count & 15)?;
                own = Arith::Shl { width: Width::B32 };
            }
            Arith::AddA => {
                own = Arith::Add {
                    addition: crate::lane::integer::Addition::Add,
                    width: Width::B32,
                    sat: false,
                };
            }
            _ => {}
        }
        let shape = Shape {
            dst: changed.dst != self.sink() || inst.cdst.is_none(),
            flags: inst.cdst.is_some(),
            halves: changed.narrow != [false; 3] || changed.dst_narrow,
            modified: changed.keep != [u32::MAX; 3] || changed.flip != [0; 3],
        };
        let code = kernels::choose(&own, shape, self.context.modes, self.level)?;
        *operation = changed;
        Some(code)
    }

    fn load(&mut self, inst: &Inst, set: usize) -> Option<Lowering> {
        let Operand::Mem(mem) = inst.src[0] else { return None };
        if self.is_uniform(&mem) {
            // A move; a load has no flags to write.
            let inst = Inst { cdst: None, ..*inst };
            return self.arithmetic(&Arith::Mov { width: Width::B32 }, &inst, set);
        }
        let rows = match inst.dst {
            Dst::R32(register) | Dst::R64(register) | Dst::R128(register) => {
                [0, 1, 2, 3].map(|step| self.target(register.saturating_add(step)))
            }
            _ => return None,
        };
        // Registers beyond those that the destination names are not written.
        let named = match inst.dst {
            Dst::R64(_) => 2,
            Dst::R128(_) => 4,
            _ => 1,
        };
        let moved = mem.access.bytes().div_ceil(4);
        if moved != named {
            return None;
        }
        let transfer = self.transfer(&mem, rows, set)?;
        let end = self.operations.len();
        Some(Lowering::Last(self.access(transfer, end..end)))
    }

    fn store(&mut self, inst: &Inst, set: usize) -> Option<Last> {
        let Operand::Mem(mem) = inst.src[0] else { return None };
        let (rows, shift) = match inst.src[1] {
            Operand::R32(register) | Operand::R64(register) | Operand::R128(register) => {
                let row = |step: u8| match inst.src[1] {
                    Operand::R64(_) => register.wrapping_add(step),
                    _ => register.saturating_add(step),
                };
                ([0, 1, 2, 3].map(|step| self.register(row(step))), 0)
            }
            Operand::R16(half) => ([self.register(half.register()); 4], if half.is_high() { 16 } else { 0 }),
            _ => return None,
        };
        let given = match inst.src[1] {
            Operand::R64(_) => 8,
            Operand::R128(_) => 16,
            Operand::R16(_) => 2,
            _ => 4,
        };
        if mem.access.bytes() > given {
            return None;
        }
        let mut transfer = self.transfer(&mem, rows, set)?;
        transfer.kind = Kind::Store { shift };
        let end = self.operations.len();
        Some(self.access(transfer, end..end))
    }

    /// An atomic operation on a word of g[], or a reduction.
    fn atomic(&mut self, kind: Kind, inst: &Inst, set: usize) -> Option<Last> {
        let Operand::Mem(mem) = inst.src[0] else { return None };
        let dst = match inst.dst {
            Dst::R32(register) => self.target(register),
            Dst::None | Dst::Discard => self.sink(),
            _ => return None,
        };
        if mem.access.bytes() != 4 || !matches!(mem.space, Space::Global(_)) || inst.cdst.is_some() {
            return None;
        }
        let mut operation = self.operation(dst, set);
        for number in [1, 2] {
            match inst.src[number] {
                operand @ (Operand::None | Operand::R32(_) | Operand::Imm(_)) => {
                    self.source(operand, number, &mut operation, &mut [self.zero(); 3])?;
                }
                _ => return None,
            }
        }
        let [_, src2, src3] = operation.src;
        let mut transfer = self.transfer(&mem, [dst, src2, src3, self.zero()], set)?;
        transfer.kind = kind;
        let end = self.operations.len();
        Some(self.access(transfer, end..end))
    }

    /// The predicate is data; every active lane gets the answer. (6.10)
    fn vote(&mut self, all: bool, inst: &Inst) -> Option<Lowering> {
        let set = self.predicate(inst);
        let mut ask = self.operation(self.temporary(0), set);
        ask.number = all.into();
        self.push(handler::<Vote>(self.level), ask);
        let mut operation = self.operation(self.sink(), ACTIVE);
        operation.src[0] = ask.dst;
        self.result(&Arith::Mov { width: Width::B32 }, inst, operation, [self.zero(); 3], ACTIVE)?;
        Some(Lowering::Straight)
    }

    /// Memory that each lane addresses itself, in the spaces that have fast ways.
    fn transfer(&mut self, mem: &Mem, rows: [Place; 4], set: usize) -> Option<Transfer> {
        match mem.space {
            Space::Const(_) | Space::Shared => {
                if mem.access.bytes() > 4 {
                    return None;
                }
            }
            Space::Local | Space::Global(_) => {}
            Space::Attribute | Space::Primitive | Space::Varying | Space::Output => return None,
        }
        if mem.increment || matches!(mem.base, Base::A(5..)) {
            return None;
        }
        let base = match mem.base {
            Base::R(register) => Some(self.register(register)),
            Base::A(_) => None,
        };
        Some(Transfer { kind: Kind::Load, mem: *mem, base, rows, set })
    }
}

/// The byte address of an operand that is not indexed.
fn place_of(mem: &Mem) -> u32 {
    aligned(u32::from(mem.offset as u16), mem.access.bytes())
}
