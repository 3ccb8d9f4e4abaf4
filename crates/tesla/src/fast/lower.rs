//! Lowers a program's instructions to blocks of operations, once per program.
//!
//! A [`Block`] is a sequence of instructions. Except for the last instruction, the instructions of a block cannot trap
//! and do not depend on flow control. Lowering makes all decisions that are possible before the program runs. It
//! decides which registers exist. It also decides which function each operation calls, and with which modifiers. An
//! instruction without an operation ends its block. The reference interpreter executes this instruction. So every
//! program runs.
//!
//! Each constant in c[] that the program reads at a fixed address has a row. The row gets its value when a block of
//! threads is created. So a draw that changes constants does not lower the program again.

mod arithmetic;
mod flow;
mod memory;
mod stage;
mod texture;

use std::collections::HashMap;
use std::ops::Range;

use reconverge_isa::sets::NumberSet;
use reconverge_simt::Level;
use reconverge_simt::loaded::count_lowered;
use reconverge_simt::place::Layout;
use reconverge_simt::registers::Row;
use reconverge_simt::wide::Table;

use self::arithmetic::place_of;
use super::bodies::{CONDITIONS, Predicate};
use super::lanes::{ACTIVE, Handler, PREDICATED, Tables, handler};
use super::operands::{Operation, Place};
use super::words::Transfer;
use crate::access::extended;
use crate::barrier::Count;
use crate::context::Context;
use crate::flow::WARP;
use crate::inst::{Access as Width, Arith, Base, Condition, End, Group, Guard, Inst, Mem, Op, Space};
use crate::spaces::Constants;

/// The instruction at the end of a block.
#[derive(Clone, Copy, Debug)]
pub(super) enum Last {
    /// No special instruction: the next instruction begins another block.
    Next,
    /// An instruction that the reference interpreter executes.
    Reference,
    /// A load or store, as an index into [`Lowered::accesses`].
    Memory(u32),
    /// Branches to a byte address.
    Bra { target: u32, guard: Test },
    /// Pushes a JOINAT entry with a byte address.
    Joinat { target: u32 },
    /// Pushes a BREAK entry with a byte address.
    Breakaddr { target: u32 },
    /// Calls a byte address. The call is not limited.
    Call { target: u32 },
    /// Returns from a call.
    Ret { guard: Test },
    /// Leaves a loop.
    Break { guard: Test },
    /// A barrier that the program may use.
    Bar { inc: bool, wait: bool, barrier: u8, count: Count },
    /// Marks lanes as helpers. Helpers continue without effect on memory.
    Discard { guard: Test },
}

/// A load or store, and the operations on the loaded values.
#[derive(Clone, Debug)]
pub(super) struct Access {
    pub(super) transfer: Transfer,
    /// The range of these operations in [`Lowered::operations`].
    pub(super) after: Range<u32>,
}

/// A predicate of the flags of a `$c`. The table has one entry for each value of the flags.
#[derive(Clone, Copy, Debug)]
pub(super) struct Test {
    pub(super) always: bool,
    pub(super) c: u8,
    pub(super) condition: Condition,
    pub(super) table: Table,
}

/// The meaning of an operation, from which the compiled engine generates code.
#[derive(Clone, Copy, Debug)]
pub(super) enum Template {
    /// No template. Compiled code calls the handler of the operation.
    None,
    /// Arithmetic. The operands of the operation contain the modifiers of the sources.
    Arith {
        op: Arith,
        /// Whether the operation writes a `$c`.
        flags: bool,
    },
    /// A [`Predicate`] that excludes no lanes by their position in the quad.
    Predicate(Condition),
    /// The operation [`SharedWord`](super::bodies::SharedWord).
    SharedWord,
    /// The operation [`FromA`](super::bodies::FromA).
    FromA,
    /// The operation [`ToA`](super::bodies::ToA).
    ToA,
    /// The operation [`FromInput`](super::stage::FromInput).
    FromInput,
}

impl Last {
    /// Returns the predicate, if this is a control-flow instruction with a predicate.
    pub(super) fn guard(&self) -> Option<&Test> {
        match self {
            Last::Bra { guard, .. }
            | Last::Ret { guard }
            | Last::Break { guard }
            | Last::Discard { guard } => Some(guard),
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
        let Guard { c, condition } = guard;
        Test { always: guard.is_always(), c, condition, table: CONDITIONS[usize::from(condition.code())] }
    }
}

/// Instructions that run together. The struct has only the data that every run reads. [`Inside`] has further data.
#[derive(Clone, Copy, Debug)]
#[repr(align(64))]
pub(super) struct Block {
    /// Range of the operations of the block, without the operations after a memory access.
    pub(super) start: u32,
    pub(super) end: u32,
    /// Number of instructions, including the last instruction.
    pub(super) size: u32,
    /// Equal to [`Block::size`] if the block can run in a chain of blocks. [`NONE`] if the reference interpreter
    /// executes the last instruction of the block.
    pub(super) chained: u32,
    /// Byte address after the block.
    pub(super) next: u32,
    /// Byte address of the last instruction.
    pub(super) last_pc: u32,
    /// Whether the first instruction has a join.
    pub(super) join: bool,
    /// Whether all active lanes end after the block.
    pub(super) exit: bool,
    pub(super) last: Last,
    /// `fall` is the number of the next block in the code. `jump` is the number of the target block of a branch. If
    /// such a block does not exist or begins with a join, its number is [`NONE`].
    pub(super) fall: u32,
    pub(super) jump: u32,
}

impl Block {
    /// Returns whether the block ends at a barrier at which all active lanes of a warp arrive, wait and then continue.
    pub(super) fn is_meeting(&self) -> bool {
        matches!(self.last, Last::Bar { inc: true, wait: true, .. }) && !self.exit
    }

    /// If all active lanes of all warps wait at a barrier at the end of the block, and then continue, returns the number
    /// of the barrier.
    pub(super) fn barrier_of_all(&self) -> Option<u8> {
        match self.last {
            Last::Bar { inc: true, wait: true, barrier, count: Count::All } if !self.exit => Some(barrier),
            _ => None,
        }
    }
}

/// Data for a run that executes only a part of a block's instructions.
#[derive(Clone, Debug)]
pub(super) struct Inside {
    /// For each instruction except for [`Block::last`], the index after the last operation of the instruction.
    pub(super) ends: Vec<u32>,
    /// Index of each instruction in the code.
    pub(super) places: Vec<usize>,
    /// Byte address of each instruction.
    pub(super) addresses: Vec<u32>,
}

/// A branch with two sides that lead to the same join. Each side is empty or a chain of blocks. The fast engine runs the
/// sides one after the other only if each side is a single block without a load or store.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Diamond {
    /// The byte address of the join.
    pub(super) join: u32,
    /// `taken` is the side of the lanes that take the branch. `not` is the side of all other active lanes.
    pub(super) taken: Side,
    pub(super) not: Side,
    /// Number of instructions that the warp attempts until the second side arrives at the join. The number includes the
    /// instructions of both sides. The arrival of the first side at the join counts as one instruction.
    pub(super) tried: u32,
}

/// One side of a branch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Side {
    /// The byte address at which the side begins.
    pub(super) pc: u32,
    /// The first block of this side, or [`NONE`] if the side is empty.
    pub(super) block: u32,
}

/// The code after a `joinat`. It consists of a block with a branch at its end, the two sides of the branch, and the
/// join. The join pops the JOINAT entry.
#[derive(Clone, Copy, Debug)]
pub(super) struct Conditional {
    /// The block with the branch, and the predicate of the branch.
    pub(super) branch: u32,
    pub(super) guard: Test,
    pub(super) diamond: Diamond,
    /// The block that begins with the join.
    pub(super) joins: u32,
    /// Maximum number of instructions that the warp attempts after the `joinat`, including the instruction that has the
    /// join.
    pub(super) most: u32,
}

/// The number that stands for no block.
pub(super) const NONE: u32 = u32::MAX;

/// The result of lowering.
#[derive(Clone, Debug)]
pub(super) struct Lowered {
    pub(super) operations: Vec<(Handler, Operation)>,
    /// The template of each operation.
    pub(super) templates: Vec<Template>,
    pub(super) blocks: Vec<Block>,
    /// Data for partial runs of each block.
    pub(super) inside: Vec<Inside>,
    /// For each block, the diamond of the branch at the end of the block, if any. The sides are single blocks.
    pub(super) diamonds: Vec<Option<Diamond>>,
    /// For each block with a `joinat` at its end, the conditional that begins with this `joinat`, if any. The sides are
    /// single blocks.
    pub(super) conditionals: Vec<Option<Conditional>>,
    pub(super) accesses: Vec<Access>,
    /// For every word of the code, the block that begins at the word, or [`NONE`].
    pub(super) starts: Vec<u32>,
    /// For every word of the code, the block of the instruction that starts at the word. The second element is the
    /// number of this instruction in the block.
    pub(super) entries: Vec<Option<(u32, u32)>>,
    pub(super) tables: Tables,
    /// Number of bytes of s[] per block of threads.
    pub(super) shared: u32,
    /// Whether accesses to s[] are checked for races.
    pub(super) checked: bool,
    /// The number of registers. The registers are the first rows.
    registers: usize,
    /// The room begins with [`FIXED`] rows. For each later row of the room, the word in the row, if the word depends
    /// only on the program.
    constants: Vec<Option<u32>>,
    /// The initial values of the rows after the registers (the room). The rows of constants in c[] are zeros.
    pub(super) room: Vec<Row<WARP>>,
    /// The rows of the constants in c[] that the program reads.
    pub(super) uniforms: HashMap<Uniform, Place>,
}

impl Lowered {
    /// The number of rows for the intermediate results of an instruction.
    pub(super) const TEMPORARY_ROWS: usize = FIXED - TEMPORARIES;

    /// Adds a row after all other rows.
    pub(super) fn add_row(&mut self) {
        self.tables.layout.add();
        self.room.push(Row::ZERO);
    }

    /// Returns whether a row is a register.
    pub(super) fn is_register(&self, place: Place) -> bool {
        place.number() < self.registers
    }

    /// Returns the number of the intermediate result in a row. Returns `None` for rows without an intermediate result.
    pub(super) fn temporary(&self, place: Place) -> Option<usize> {
        let number = place.number().checked_sub(self.registers + TEMPORARIES)?;
        (number < Self::TEMPORARY_ROWS).then_some(number)
    }

    /// Returns the word that a row contains in all lanes. Returns `None` unless the word depends only on the program.
    pub(super) fn constant(&self, place: Place) -> Option<u32> {
        match place.number().checked_sub(self.registers)? {
            ZERO => Some(0),
            row => *self.constants.get(row.checked_sub(FIXED)?)?,
        }
    }

    /// Returns the conditional that begins with the `joinat` at the end of a block. Each side may be a chain of blocks.
    pub(super) fn conditional_of_chains(&self, context: &Context, number: u32) -> Option<Conditional> {
        flow::conditional(context, &self.starts, &self.blocks, &self.blocks[number as usize], true)
    }

    /// Returns the blocks of a side, in order.
    pub(super) fn blocks_of(&self, side: Side) -> impl Iterator<Item = u32> {
        flow::chain(&self.blocks, side.block)
    }

    /// Returns the byte address of the first instruction of a block.
    pub(super) fn first_pc(&self, number: u32) -> u32 {
        self.inside[number as usize].addresses[0]
    }
}

/// Index in the room of a row of zeros, for reads of absent registers and operands.
const ZERO: usize = 0;
/// Index in the room of the row that receives unused results.
const SINK: usize = 1;
/// Index in the room of the row of the active lanes.
const MASK: usize = 2;
/// Index in the room of the first of four rows for intermediate results. There is one row for each source and one row
/// for the result.
const TEMPORARIES: usize = 3;
/// Number of rows in the room before the constants.
const FIXED: usize = 7;

/// The maximum number of rows of a program.
const MOST_ROWS: usize = 1 << 20;

/// The lowered form of an instruction.
enum Lowering {
    /// Operations that cannot fail.
    Straight,
    /// The end of a block.
    Last(Last),
}

/// A constant at one address of c[].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) struct Uniform {
    bank: u8,
    at: u32,
    access: Width,
}

impl Uniform {
    /// Returns the constant that an operand reads. Returns `None` unless all lanes read the same address.
    pub(super) fn of(mem: &Mem) -> Option<Uniform> {
        let Space::Const(bank) = mem.space else { return None };
        let fixed = mem.base == Base::A(0) && !mem.increment && mem.access.bytes() <= 4;
        fixed.then(|| Uniform { bank, at: place_of(mem), access: mem.access })
    }

    /// Returns the value of this constant in `constants`.
    pub(super) fn word(&self, constants: &Constants) -> u32 {
        let raw = constants.read(self.bank, self.at, self.access.bytes());
        extended(raw.into(), self.access) as u32
    }
}

/// Lowers a program. [`Setup::lowers_alike`](crate::launch::Setup) states the parts of the setup on which the result
/// depends. `inputs` lists the words of a[] or v[] that the launch provides to every warp. If `singly` is set, each
/// block has one instruction.
pub(super) fn lower(
    context: &Context,
    registers: usize,
    shared_bytes: usize,
    inputs: NumberSet,
    level: Level,
    singly: bool,
) -> Lowered {
    count_lowered();
    let slots = context.code.words().len();
    let leaders = flow::leaders(context);
    let layout = Layout::new(registers + FIXED);
    let tables = Tables {
        generals: Vec::new(),
        textures: Vec::new(),
        quads: Vec::new(),
        chip: context.setup.chip,
        modes: context.setup.modes,
        mask: layout.place(registers + MASK),
        layout,
    };
    let lowered = Lowered {
        operations: Vec::new(),
        templates: Vec::new(),
        blocks: Vec::new(),
        inside: Vec::new(),
        diamonds: Vec::new(),
        conditionals: Vec::new(),
        accesses: Vec::new(),
        starts: vec![NONE; slots],
        entries: vec![None; slots],
        tables,
        shared: shared_bytes as u32,
        checked: context.checks.is_some(),
        registers,
        constants: Vec::new(),
        room: vec![Row::ZERO; FIXED],
        uniforms: HashMap::new(),
    };
    let constant_places = HashMap::new();
    let mut lower = Lower { context, level, shared_bytes, inputs, pc: 0, constant_places, lowered };
    let mut place = 0;
    while place < slots {
        let start = lower.lowered.operations.len() as u32;
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
            let Some(inst) = context.code.slot(place) else {
                // No valid instruction starts here. If control reaches the address, the reference interpreter traps.
                place += 1;
                break;
            };
            lower.lowered.entries[place] = Some((lower.lowered.blocks.len() as u32, block.size));
            if block.size == 0 {
                lower.lowered.starts[place] = lower.lowered.blocks.len() as u32;
                block.join = inst.end == End::Join;
            }
            inside.places.push(place);
            inside.addresses.push(context.code.base() + 4 * place as u32);
            block.size += 1;
            block.last_pc = context.code.base() + 4 * place as u32;
            block.next = block.last_pc + inst.form.bytes();
            place += inst.form.words() as usize;
            let before = lower.lowered.operations.len();
            lower.pc = block.last_pc;
            match lower.instruction(inst) {
                Some(Lowering::Straight) => {
                    block.end = lower.lowered.operations.len() as u32;
                    inside.ends.push(block.end);
                    block.exit = inst.end == End::Exit;
                }
                Some(Lowering::Last(last)) => {
                    block.end = match last {
                        Last::Memory(number) => lower.lowered.accesses[number as usize].after.start,
                        _ => lower.lowered.operations.len() as u32,
                    };
                    block.last = last;
                    block.exit = inst.end == End::Exit;
                    break;
                }
                None => {
                    lower.lowered.operations.truncate(before);
                    lower.lowered.templates.truncate(before);
                    block.last = Last::Reference;
                    break;
                }
            }
            if singly || block.exit || leaders.get(place).copied().unwrap_or(true) {
                break;
            }
        }
        if !matches!(block.last, Last::Reference) {
            block.chained = block.size;
        }
        if block.size > 0 {
            lower.lowered.blocks.push(block);
            lower.lowered.inside.push(inside);
        }
    }
    let mut lowered = lower.lowered;
    flow::link(context, &lowered.starts, &mut lowered.blocks);
    let Lowered { starts, blocks, .. } = &lowered;
    (lowered.diamonds, lowered.conditionals) = blocks
        .iter()
        .map(|block| {
            let diamond = flow::diamond(context, starts, blocks, block, false);
            (diamond, flow::conditional(context, starts, blocks, block, false))
        })
        .collect();
    let constants = lowered.constants.iter().map(|value| Row([value.unwrap_or(0); WARP]));
    lowered.room.extend(constants);
    lowered
}

/// The state of lowering a program.
struct Lower<'a> {
    context: &'a Context,
    level: Level,
    shared_bytes: usize,
    inputs: NumberSet,
    /// Address of the current instruction.
    pc: u32,
    constant_places: HashMap<u32, Place>,
    lowered: Lowered,
}

impl Lower<'_> {
    fn zero(&self) -> Place {
        self.lowered.tables.layout.place(self.lowered.registers + ZERO)
    }

    fn sink(&self) -> Place {
        self.lowered.tables.layout.place(self.lowered.registers + SINK)
    }

    fn temporary(&self, number: usize) -> Place {
        self.lowered.tables.layout.place(self.lowered.registers + TEMPORARIES + number)
    }

    /// Returns the row that contains a value in all lanes. Returns `None` if the program has too many rows.
    fn constant(&mut self, value: u32) -> Option<Place> {
        if value == 0 {
            return Some(self.zero());
        }
        if let Some(place) = self.constant_places.get(&value) {
            return Some(*place);
        }
        let place = self.add_row(Some(value))?;
        self.constant_places.insert(value, place);
        Some(place)
    }

    /// Returns the row of a constant in c[], or `None` if the program has too many rows.
    fn uniform_place(&mut self, uniform: Uniform) -> Option<Place> {
        if let Some(place) = self.lowered.uniforms.get(&uniform) {
            return Some(*place);
        }
        let place = self.add_row(None)?;
        self.lowered.uniforms.insert(uniform, place);
        Some(place)
    }

    fn add_row(&mut self, value: Option<u32>) -> Option<Place> {
        if self.lowered.tables.layout.rows() >= MOST_ROWS {
            return None;
        }
        self.lowered.constants.push(value);
        Some(self.lowered.tables.layout.add())
    }

    /// Returns the row for reading a register. If the program does not have the register, the row holds zeros. (1.4)
    fn register(&self, register: u8) -> Place {
        match usize::from(register) {
            register if register < self.lowered.registers => self.lowered.tables.layout.place(register),
            _ => self.zero(),
        }
    }

    /// Returns the row for writing a register. A write to a register that the program does not have is dropped. (1.4)
    fn target(&self, register: u8) -> Place {
        match usize::from(register) {
            register if register < self.lowered.registers => self.lowered.tables.layout.place(register),
            _ => self.sink(),
        }
    }

    /// Creates an operation for a set of lanes. Each source is a row of zeros until the caller sets the source.
    fn operation(&self, dst: Place, set: usize) -> Operation {
        Operation {
            src: [self.zero(); 3],
            dst,
            set: set as u8,
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

    fn push(&mut self, handler: Handler, operation: Operation) {
        self.push_as(handler, operation, Template::None);
    }

    fn push_as(&mut self, handler: Handler, operation: Operation, template: Template) {
        self.lowered.operations.push((handler, operation));
        self.lowered.templates.push(template);
    }

    /// Lowers an instruction. Returns `None` if the reference interpreter executes the instruction.
    fn instruction(&mut self, inst: &Inst) -> Option<Lowering> {
        if let Op::Control(control) = inst.op {
            return self.control(control, inst.guard).map(Lowering::Last);
        }
        if inst.gate().is_some_and(|register| usize::from(register) >= self.lowered.registers) {
            return Some(Lowering::Straight); // The instruction has no effect. (1.4)
        }
        match &inst.op {
            Op::Idle(_) => return Some(Lowering::Straight),
            Op::Group(Group::Vote { all }) => return self.vote(*all, inst),
            Op::Arith(_) | Op::Memory(_) | Op::Group(_) | Op::Control(_) => {}
        }
        let set = self.predicate(inst);
        match &inst.op {
            Op::Arith(op) => self.arithmetic(op, inst, set),
            Op::Memory(op) => self.memory(op, inst, set),
            Op::Group(Group::Tex(tex)) => self.texture(tex, set),
            Op::Group(Group::Quadop { ops, from }) => self.quadop(inst, (*ops, *from), set),
            Op::Group(_) | Op::Idle(_) | Op::Control(_) => None,
        }
    }

    /// Returns the set of lanes that execute an instruction. Unless all active lanes execute the instruction, adds an
    /// operation that computes this set. (2.2, 3.4)
    fn predicate(&mut self, inst: &Inst) -> usize {
        if inst.guard.is_always() && inst.lanes & 15 == 15 {
            return ACTIVE;
        }
        let mut operation = self.operation(self.sink(), ACTIVE);
        operation.c = inst.guard.c;
        operation.number = inst.guard.condition.code().into();
        operation.shift[0] = inst.lanes;
        let whole = inst.lanes & 15 == 15;
        let template = if whole { Template::Predicate(inst.guard.condition) } else { Template::None };
        self.push_as(handler::<Predicate>(self.level), operation, template);
        PREDICATED
    }
}
