//! Emits the instructions of a strip and allocates its registers.
//!
//! Values stay in registers until their last use. If no register is free, the value whose next use is farthest away is
//! evicted. If that value is a row or a constant, it is later read again from memory. Other evicted values are spilled
//! to the stack.

use std::collections::{HashMap, HashSet};

use iced_x86::{Code, IcedError, Instruction, MemoryOperand, Register};

use crate::asm::{Assembler, Label, Rm, at, at_base};
use crate::called::{PerLane, PerLaneFrame};
use crate::level::Level;
use crate::state::{Site, place};
use crate::strip::{Effect, Node, One, Row, Strip, Two, Value};
use crate::vectors::Vectors;

/// Registers for five values. In order, the values are the address of the [`State`](crate::State), the address of the
/// group's rows, the number of the strip's first lane, the active lanes from the strip's first lane on, and the address
/// of the constants.
pub(crate) const STATE: Register = Register::RBX;
pub(crate) const ROWS: Register = Register::R12;
pub(crate) const LANE: Register = Register::R13;
pub(crate) const REST: Register = Register::R14;
pub(crate) const POOL: Register = Register::RBP;

/// Registers in which the strips of a group collect one bit per lane. If each strip stored its part of a word in memory
/// instead, a load of the whole word would stall.
pub(crate) const GATHERED: [Register; 4] = [Register::RSI, Register::RDI, Register::R8, Register::R9];

/// Scratch register for a few instructions, in addition to RAX, RCX and RDX.
const WORD: Register = Register::R10D;

/// Mask registers. Truth values use the registers from [`Register::K1`] on. The last two constants are scratch
/// registers for a few instructions.
const SIGNS: Register = Register::K1;
const ANY_BITS: Register = Register::K0;
const ANY_SIGNS: Register = Register::K7;

/// Offset of the data of per-lane functions in the frame, in bytes.
const PER_LANE: i32 = 0;

/// Offsets in the frame, in bytes. The frame contains four areas in this order: the data of per-lane functions, the
/// registers that are saved around a per-lane function, the caller's stack pointer, and spilled values.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Frame {
    kept: i32,
    /// Offset of three areas: the saved registers [`GATHERED`], the address of the called function, and saved truth
    /// values. A saved register and the address have eight bytes each.
    numbers: i32,
    pub(crate) caller: i32,
    values: i32,
}

impl Frame {
    pub(crate) fn of(level: Level) -> Frame {
        let kept = size_of::<PerLaneFrame>() as i32 * level.bits();
        let numbers = kept + level.registers() as i32 * level.vector();
        let caller = numbers + 2 * level.vector();
        Frame { kept, numbers, caller, values: caller + level.vector() }
    }
}

/// Pool of constants. Each constant is a vector with the same word in all lanes.
#[derive(Debug)]
pub(crate) struct Pool {
    level: Level,
    places: HashMap<u32, i32>,
    steps: Option<i32>,
    pub(crate) words: Vec<u32>,
}

impl Pool {
    pub(crate) fn new(level: Level) -> Pool {
        Pool { level, places: HashMap::new(), steps: None, words: Vec::new() }
    }

    fn push(&mut self, word: impl Fn(usize) -> u32) -> i32 {
        let place = 4 * self.words.len() as i32;
        self.words.extend((0..self.level.lanes()).map(word));
        place
    }

    pub(crate) fn place(&mut self, word: u32) -> i32 {
        if let Some(place) = self.places.get(&word) {
            return *place;
        }
        let place = self.push(|_| word);
        self.places.insert(word, place);
        place
    }

    /// Returns the offset of a vector in the pool, in bytes. The vector contains the distances of contiguous words from
    /// the first word.
    fn steps(&mut self) -> i32 {
        let place = self.steps.unwrap_or_else(|| self.push(|lane| 4 * lane as u32));
        self.steps = Some(place);
        place
    }
}

/// Code for a rare case. This code is placed after the code that usually runs. At its end, it jumps back to the usual
/// code.
#[derive(Debug)]
pub(crate) struct Cold {
    enter: Label,
    back: Label,
    does: Rare,
}

#[derive(Debug)]
enum Rare {
    /// A call of a per-lane function. `given` contains the sources and the mask, each in a register or in memory.
    /// `value` is the register that holds the value before and after the call.
    PerLane { with: PerLane, given: [Rm; 4], value: Register },
    /// A load of words, for the case that the words are not contiguous in all lanes. `steps` contains the distances of
    /// contiguous words from the first word. If several loads share the order of the words, `order` is the frame slot
    /// with this order.
    Load { to: Register, free: Register, access: Lanes, steps: Rm, order: Option<i32> },
    /// A store of words, for the case that the words are not contiguous in all lanes.
    Store { from: Register, free: Register, access: Lanes, steps: Rm },
}

/// Access to words of the window. For each lane, `address` contains the offset of the span's first word. `distance`, in
/// bytes, is added to this offset. All lanes of the mask are inside the window.
#[derive(Clone, Copy, Debug)]
struct Lanes {
    /// Offset of the field with the memory's address in the state.
    memory: i32,
    address: Register,
    distance: i32,
    mask: Register,
}

/// The points to which a strip can exit.
pub(crate) struct Exits<'a> {
    /// Target of the jump if the guard fails.
    pub(crate) guard: Option<Label>,
    /// Words that are gathered in the registers [`GATHERED`].
    pub(crate) words: &'a [u32],
    pub(crate) cold: &'a mut Vec<Cold>,
}

/// Required form of a value: its words, or only the sign bits of its words. With AVX2, both forms are words.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Form {
    Words,
    Signs,
}

/// Values in registers of one kind, vector registers or mask registers.
#[derive(Debug)]
struct Bank {
    /// Positions of the uses of each value, the last use first.
    uses: Vec<Vec<usize>>,
    registers: Vec<Option<Value>>,
    held: Vec<Option<usize>>,
    /// Stack slot of each value that was spilled.
    kept: Vec<Option<i32>>,
}

impl Bank {
    fn new(registers: usize, values: usize) -> Bank {
        Bank {
            uses: vec![Vec::new(); values],
            registers: vec![None; registers],
            held: vec![None; values],
            kept: vec![None; values],
        }
    }

    /// Adds a use. Positions are added in descending order.
    fn used(&mut self, value: Value, position: usize) {
        let uses = &mut self.uses[value.0 as usize];
        if uses.last() != Some(&position) {
            uses.push(position);
        }
    }

    fn is_used(&self, number: usize) -> bool {
        !self.uses[number].is_empty()
    }

    /// Returns the next use after a position.
    fn next_use(&self, value: Value, position: usize) -> Option<usize> {
        self.next_use_from(value, position + 1)
    }

    /// Returns the first use at a position or after it.
    fn next_use_from(&self, value: Value, position: usize) -> Option<usize> {
        self.uses[value.0 as usize].iter().rev().find(|used| **used >= position).copied()
    }

    /// Frees the registers of values without a use after the position.
    fn release(&mut self, position: usize) {
        for number in 0..self.registers.len() {
            if let Some(value) = self.registers[number]
                && self.next_use(value, position).is_none()
            {
                self.registers[number] = None;
                self.held[value.0 as usize] = None;
            }
        }
    }
}

struct Emitter<'a> {
    level: Level,
    asm: &'a mut Assembler,
    pool: &'a mut Pool,
    strip: &'a Strip,
    /// In a strip for both vectors of a group, the vector to which each node belongs. In a strip for one vector, the
    /// field is empty.
    of: &'a [u8],
    /// Number of bytes of a row.
    stride: u32,
    words: Bank,
    signs: Bank,
    /// Whether each value is computed in the form of signs.
    made_as_signs: Vec<bool>,
    frame: i32,
    /// Values of rows that are about to change. After the change, memory no longer contains these values.
    homeless: HashSet<Value>,
    /// Number of loads for each address and mask.
    loads: HashMap<(Value, Value), usize>,
    /// Frame slot of [`order`] for each address and mask.
    orders: HashMap<(Value, Value), i32>,
}

/// Emits a strip for the vector at [`LANE`], or a strip for both vectors of a group. Returns the number of bytes that
/// the strip needs in the frame.
pub(crate) fn emit(
    asm: &mut Assembler,
    pool: &mut Pool,
    vectors: &Vectors<'_>,
    stride: u32,
    mask: Row,
    exits: Exits<'_>,
) -> i32 {
    let Vectors { strip, of, guards } = vectors;
    let count = strip.nodes.len();
    let level = pool.level;
    let mut emitter = Emitter {
        level,
        asm,
        pool,
        strip,
        of,
        stride,
        words: Bank::new(level.registers(), count),
        signs: Bank::new(level.signs(), count),
        made_as_signs: vec![false; count],
        frame: Frame::of(level).values,
        homeless: HashSet::new(),
        loads: HashMap::new(),
        orders: HashMap::new(),
    };
    // The guard is checked after all nodes are computed. The effects come after the guard.
    for (number, effect) in strip.effects.iter().enumerate().rev() {
        for (value, form) in effect.demands() {
            emitter.used(value, form, count + 1 + number);
        }
    }
    let guards = || guards.iter().filter(|value| strip.is_constant(**value) != Some(0));
    for value in guards() {
        emitter.used(*value, Form::Signs, count);
    }
    emitter.demand();
    for number in (0..count).filter(|number| emitter.is_live(*number)).collect::<Vec<_>>() {
        emitter.node(number, exits.cold);
    }
    for (value, label) in guards().filter_map(|value| Some((*value, exits.guard?))) {
        let register = emitter.truth(value, count, &[]);
        let mask = emitter.home(mask, emitter.vector(value));
        match level {
            Level::Avx2 => emitter.asm.two(Code::VEX_Vtestps_ymm_ymmm256, register, mask),
            Level::Avx512 => {
                let free = emitter.allocate(Form::Words, count, &[value]);
                let free = level.register(free);
                emitter.asm.two(level.load(), free, mask);
                emitter.asm.two(Code::EVEX_Vpmovd2m_kr_zmm, ANY_BITS, free);
                emitter.asm.two(Code::VEX_Ktestw_kr_kr, register, ANY_BITS);
            }
        }
        emitter.asm.branch(Code::Jne_rel32_64, label);
    }
    emitter.release(count);
    emitter.effects(count, exits.words, exits.cold);
    emitter.frame
}

impl Effect {
    /// Returns the values that the effect needs, each with the form (words or signs) that the effect needs.
    fn demands(self) -> impl Iterator<Item = (Value, Form)> {
        let all = match self {
            Effect::Store(_, value) => [Some((value, Form::Words)), None, None],
            Effect::Gather(_, value) | Effect::Leave(_, value) => [Some((value, Form::Signs)), None, None],
            Effect::Scatter { place, lanes, value, .. } => {
                [Some((place, Form::Words)), Some((lanes, Form::Signs)), Some((value, Form::Words))]
            }
        };
        all.into_iter().flatten()
    }
}

impl Emitter<'_> {
    fn bank(&mut self, form: Form) -> &mut Bank {
        match form {
            Form::Words => &mut self.words,
            Form::Signs => &mut self.signs,
        }
    }

    fn used(&mut self, value: Value, form: Form, position: usize) {
        let form = if self.level.signs() > 0 { form } else { Form::Words };
        self.bank(form).used(value, position);
    }

    fn is_live(&self, number: usize) -> bool {
        self.words.is_used(number) || self.signs.is_used(number)
    }

    /// For each node, determines the forms of its value that other nodes and effects need, and the form in which the
    /// code computes the value. The function starts with the last node, because the form of a node determines the forms
    /// of its sources.
    fn demand(&mut self) {
        let strip = self.strip;
        let mut truths = vec![false; strip.nodes.len()];
        if self.level.signs() > 0 {
            for (number, node) in strip.nodes.iter().enumerate() {
                truths[number] = match node {
                    Node::Constant(word) => matches!(word, 0 | &u32::MAX),
                    Node::Two(op, of) if Level::logic(*op).is_some() => {
                        of.iter().all(|value| truths[value.0 as usize])
                    }
                    Node::Two(op, _) => op.compares(),
                    Node::One(One::Sar(31), _) => true,
                    _ => false,
                };
            }
        }
        for number in (0..strip.nodes.len()).rev() {
            if !self.is_live(number) {
                continue;
            }
            let node = &strip.nodes[number];
            let only_signs = self.level.signs() > 0 && !self.words.is_used(number);
            self.made_as_signs[number] = match node {
                Node::Two(op, _) if Level::logic(*op).is_some() => truths[number] || only_signs,
                Node::Two(..) | Node::One(One::Sar(31), _) => truths[number],
                Node::One(One::Shl(_), _) => only_signs,
                _ => false,
            };
            // The node needs only the signs of the sources in this range.
            let signs = match node {
                Node::Two(op, _) if Level::logic(*op).is_some() && self.made_as_signs[number] => 0..2,
                Node::One(One::Sar(31), _) if self.made_as_signs[number] => 0..1,
                Node::Select(_) => 0..1,
                Node::Load { .. } => 1..2,
                Node::PerLane { .. } => 1..3,
                _ => 0..0,
            };
            for (place, source) in Strip::sources(node).enumerate() {
                self.used(source, if signs.contains(&place) { Form::Signs } else { Form::Words }, number);
            }
            if let Node::Load { place, lanes, .. } = node {
                *self.loads.entry((*place, *lanes)).or_default() += 1;
            }
        }
    }

    /// Returns the number of the vector to which a value belongs. The vector at [`LANE`] has number 0.
    fn vector(&self, value: Value) -> i32 {
        self.of.get(value.0 as usize).copied().unwrap_or(0).into()
    }

    /// Returns the address of a vector of a row.
    fn home(&mut self, row: Row, vector: i32) -> MemoryOperand {
        let lanes = vector * self.level.lanes() as i32;
        match row {
            Row::Group(distance) => by_lane(ROWS, 4, distance as i32 + 4 * lanes),
            Row::Own(number) => by_lane(STATE, 4, place!(own) + (number * self.stride) as i32 + 4 * lanes),
            Row::Bytes(number) => self.narrow(place!(byte_rows), 1, number, lanes),
            Row::Halves(number) => self.narrow(place!(half_rows), 2, number, lanes),
        }
    }

    /// Returns the address of a row whose lanes have fewer bytes than a word. Overwrites RAX.
    fn narrow(&mut self, rows: i32, bytes: u32, number: u32, lanes: i32) -> MemoryOperand {
        self.asm.two(Code::Mov_r64_rm64, Register::RAX, at_base(STATE, rows));
        by_lane(Register::RAX, bytes, (number * bytes * self.stride / 4) as i32 + bytes as i32 * lanes)
    }

    /// Reads a row whose lanes have fewer bytes than a word.
    fn widen(&mut self, row: Row, position: usize) {
        let to = self.allocate(Form::Words, position, &[]);
        let from = self.home(row, self.vector(Value(position as u32)));
        let code = match row {
            Row::Bytes(_) => {
                self.level.of(Code::VEX_Vpmovzxbd_ymm_xmmm64, Code::EVEX_Vpmovzxbd_zmm_k1z_xmmm128)
            }
            _ => self.level.of(Code::VEX_Vpmovzxwd_ymm_xmmm128, Code::EVEX_Vpmovzxwd_zmm_k1z_ymmm256),
        };
        self.asm.two(code, self.level.register(to), from);
        self.hold(Form::Words, Value(position as u32), to);
    }

    /// Stores the low bits of words in a row whose lanes have fewer bytes than a word.
    fn narrowed(&mut self, row: Row, vector: i32, value: Value, position: usize) {
        let from = self.register(value, position, &[]);
        let home = self.home(row, vector);
        if self.level == Level::Avx512 {
            let code = match row {
                Row::Bytes(_) => Code::EVEX_Vpmovdb_xmmm128_k1z_zmm,
                _ => Code::EVEX_Vpmovdw_ymmm256_k1z_zmm,
            };
            return self.asm.store(code, home, from);
        }
        let free = self.allocate(Form::Words, position, &[value]);
        let [from, free] = [from, self.level.register(free)].map(|register| self.level.xmm(register));
        let upper = Level::Avx2.register((from as u32 - Register::XMM0 as u32) as usize);
        self.asm.push(Instruction::with3(Code::VEX_Vextracti128_xmmm128_ymm_imm8, free, upper, 1));
        self.asm.three(Code::VEX_Vpackusdw_xmm_xmm_xmmm128, free, from, free);
        match row {
            Row::Bytes(_) => {
                self.asm.three(Code::VEX_Vpackuswb_xmm_xmm_xmmm128, free, free, free);
                self.asm.store(Code::VEX_Vmovq_xmmm64_xmm, home, free);
            }
            _ => self.asm.store(Code::VEX_Vmovdqu_xmmm128_xmm, home, free),
        }
    }

    /// Returns the memory operand that currently holds the value, if any.
    fn memory(&mut self, value: Value) -> Option<MemoryOperand> {
        if let Some(place) = self.words.kept[value.0 as usize] {
            return Some(at_base(Register::RSP, place));
        }
        match self.strip.nodes[value.0 as usize] {
            Node::Row(row) if row.has_words() && !self.homeless.contains(&value) => {
                Some(self.home(row, self.vector(value)))
            }
            Node::Row(_) => None,
            node => {
                let word = self.strip.constant_word(&node)?;
                Some(at_base(POOL, self.pool.place(word)))
            }
        }
    }

    /// Returns a register for the value at a position. The registers of the locked values are not reused.
    fn allocate(&mut self, form: Form, position: usize, locked: &[Value]) -> usize {
        let bank = self.bank(form);
        if let Some(free) = bank.registers.iter().position(Option::is_none) {
            return free;
        }
        let farthest = |number: &usize| {
            let value = bank.registers[*number].unwrap_or(Value(0));
            if locked.contains(&value) {
                return None;
            }
            // If several values have the same next use, a value that also exists in memory is evicted first.
            Some(bank.next_use_from(value, position).unwrap_or(usize::MAX))
        };
        let number = (0..bank.registers.len()).max_by_key(|number| farthest(number)).unwrap_or(0);
        self.evict(form, number, position);
        number
    }

    fn evict(&mut self, form: Form, number: usize, position: usize) {
        let Some(value) = self.bank(form).registers[number].take() else { return };
        self.bank(form).held[value.0 as usize] = None;
        if self.bank(form).next_use_from(value, position).is_none() {
            return;
        }
        match form {
            Form::Words if self.memory(value).is_some() => {}
            Form::Signs if self.signs.kept[value.0 as usize].is_some() => {}
            _ => self.keep(form, value, number),
        }
    }

    /// Spills a value to the stack.
    fn keep(&mut self, form: Form, value: Value, number: usize) {
        let place = self.frame;
        self.frame += self.level.vector();
        self.bank(form).kept[value.0 as usize] = Some(place);
        let code = match form {
            Form::Words => self.level.store(),
            Form::Signs => Code::VEX_Kmovw_m16_kr,
        };
        self.asm.store(code, at_base(Register::RSP, place), self.name(form, number));
    }

    /// Returns the register with a number.
    fn name(&self, form: Form, number: usize) -> Register {
        match form {
            Form::Words => self.level.register(number),
            Form::Signs => SIGNS + number as u32,
        }
    }

    fn hold(&mut self, form: Form, value: Value, number: usize) {
        let bank = self.bank(form);
        bank.registers[number] = Some(value);
        bank.held[value.0 as usize] = Some(number);
    }

    /// Returns the register of a value. If necessary, the value is loaded from memory first.
    fn register(&mut self, value: Value, position: usize, locked: &[Value]) -> Register {
        if let Some(number) = self.words.held[value.0 as usize] {
            return self.level.register(number);
        }
        let number = self.allocate(Form::Words, position, locked);
        let register = self.level.register(number);
        if let Some(memory) = self.memory(value) {
            self.asm.two(self.level.load(), register, memory);
        } else {
            debug_assert!(false, "a value that is nowhere");
        }
        self.hold(Form::Words, value, number);
        register
    }

    /// Returns the register of a value's signs.
    fn truth(&mut self, value: Value, position: usize, locked: &[Value]) -> Register {
        if self.level.signs() == 0 {
            return self.register(value, position, locked);
        }
        if let Some(number) = self.signs.held[value.0 as usize] {
            return self.name(Form::Signs, number);
        }
        if let Some(place) = self.signs.kept[value.0 as usize] {
            let number = self.allocate(Form::Signs, position, locked);
            let register = self.name(Form::Signs, number);
            self.asm.two(Code::VEX_Kmovw_kr_km16, register, at_base(Register::RSP, place));
            self.hold(Form::Signs, value, number);
            return register;
        }
        let words = self.register(value, position, locked);
        self.take_signs(value, words, position, locked)
    }

    /// Moves the signs of a value to a mask register. The words of the value are in a register.
    fn take_signs(&mut self, value: Value, words: Register, position: usize, locked: &[Value]) -> Register {
        let number = self.allocate(Form::Signs, position, locked);
        let register = self.name(Form::Signs, number);
        self.asm.two(Code::EVEX_Vpmovd2m_kr_zmm, register, words);
        self.hold(Form::Signs, value, number);
        register
    }

    /// Returns the value as an operand of an instruction. The operand is in memory if the value is a constant, or if
    /// the value is not used after this instruction.
    fn operand(&mut self, value: Value, position: usize, locked: &[Value]) -> Rm {
        if let Some(number) = self.words.held[value.0 as usize] {
            return Rm::Register(self.level.register(number));
        }
        let constant = self.strip.constant_word(&self.strip.nodes[value.0 as usize]).is_some();
        if (constant || self.words.next_use(value, position).is_none())
            && let Some(memory) = self.memory(value)
        {
            return Rm::Memory(memory);
        }
        Rm::Register(self.register(value, position, locked))
    }

    /// Frees the registers of values without a use after the position.
    fn release(&mut self, position: usize) {
        self.words.release(position);
        self.signs.release(position);
    }

    /// Emits a node in the form of signs. If the words of the node are also needed, the function also emits the node in
    /// the form of words.
    fn make_signs(&mut self, position: usize) {
        let value = Value(position as u32);
        let node = self.strip.nodes[position];
        // The destination is allocated after the sources.
        let made = match node {
            Node::Two(Two::Xor, [a, b]) if self.strip.is_constant(b) == Some(u32::MAX) => {
                let a = self.truth(a, position, &[a]);
                Instruction::with2(Code::VEX_Knotw_kr_kr, ANY_BITS, a)
            }
            Node::Two(op, [a, b]) => match Level::logic(op) {
                Some(code) => {
                    let first = self.truth(a, position, &[a, b]);
                    let second = self.truth(b, position, &[a, b]);
                    Instruction::with3(code, ANY_BITS, first, second)
                }
                None => {
                    let first = self.register(a, position, &[a, b]);
                    let second = self.operand(b, position, &[a, b]);
                    three_operands(self.level.two(op), ANY_BITS, first, second)
                }
            },
            Node::One(One::Shl(count), a) => {
                let a = self.register(a, position, &[a]);
                let bit = at_base(POOL, self.pool.place(1 << (31 - count)));
                Instruction::with3(Code::EVEX_Vptestmd_kr_k1_zmm_zmmm512b32, ANY_BITS, a, bit)
            }
            Node::One(_, a) => {
                let a = self.truth(a, position, &[a]);
                Instruction::with2(Code::VEX_Kmovw_kr_km16, ANY_BITS, a)
            }
            _ => return debug_assert!(false, "{node:?} has words"),
        };
        self.release(position);
        let to = match self.signs.is_used(position) {
            true => {
                let number = self.allocate(Form::Signs, position, &[]);
                self.hold(Form::Signs, value, number);
                self.name(Form::Signs, number)
            }
            false => ANY_BITS,
        };
        self.asm.push(made.map(|mut made| {
            made.set_op0_register(to);
            made
        }));
        if self.words.is_used(position) {
            let number = self.allocate(Form::Words, position, &[]);
            let words = self.level.register(number);
            self.asm.two(Code::EVEX_Vpmovm2d_zmm_kr, words, to);
            self.hold(Form::Words, value, number);
        }
    }

    fn node(&mut self, position: usize, cold: &mut Vec<Cold>) {
        let value = Value(position as u32);
        if self.made_as_signs[position] {
            return self.make_signs(position);
        }
        match self.strip.nodes[position] {
            Node::Row(row) if !row.has_words() => self.widen(row, position),
            // The code does not compute these nodes. Instructions that use such a node read it from memory.
            Node::Row(_) | Node::Constant(_) | Node::Least(_) | Node::Limit(_) => {}
            Node::Two(op, [a, b]) => {
                let first = self.register(a, position, &[a, b]);
                let second = self.operand(b, position, &[a, b]);
                self.release(position);
                let to = self.allocate(Form::Words, position, &[]);
                self.asm.push(three_operands(self.level.two(op), self.level.register(to), first, second));
                self.hold(Form::Words, value, to);
            }
            Node::One(op, a) => {
                let (code, number, reads_memory) = self.level.one(op);
                let from = match reads_memory {
                    true => self.operand(a, position, &[a]),
                    false => Rm::Register(self.register(a, position, &[a])),
                };
                self.release(position);
                let to = self.allocate(Form::Words, position, &[]);
                let register = self.level.register(to);
                match (number.map(i32::from), from) {
                    (None, _) => self.asm.two(code, register, from),
                    (Some(number), Rm::Register(from)) => {
                        self.asm.push(Instruction::with3(code, register, from, number));
                    }
                    (Some(number), Rm::Memory(from)) => {
                        self.asm.push(Instruction::with3(code, register, from, number));
                    }
                }
                self.hold(Form::Words, value, to);
            }
            Node::Select([condition, other, then]) => {
                let locked = [condition, other, then];
                let condition = self.truth(condition, position, &locked);
                let other = self.register(other, position, &locked);
                let then = self.operand(then, position, &locked);
                self.release(position);
                let to = self.allocate(Form::Words, position, &[]);
                let (code, register) = (self.level.select(), self.level.register(to));
                self.asm.push(match (self.level, then) {
                    (Level::Avx2, Rm::Register(then)) => {
                        Instruction::with4(code, register, other, then, condition)
                    }
                    (Level::Avx2, Rm::Memory(then)) => {
                        Instruction::with4(code, register, other, then, condition)
                    }
                    (Level::Avx512, _) => {
                        three_operands((code, None), register, other, then).map(|mut select| {
                            select.set_op_mask(condition);
                            select
                        })
                    }
                });
                self.hold(Form::Words, value, to);
            }
            Node::Fused { minus, of: [a, b, c] } => {
                let locked = [a, b, c];
                let second = self.register(b, position, &locked);
                let third = self.operand(c, position, &locked);
                let to = self.copy(a, position, &locked);
                self.asm.three(self.level.fused(minus), self.level.register(to), second, third);
                self.release(position);
                self.hold(Form::Words, value, to);
            }
            Node::PerLane { with, value: from, test, mask, sources: [a, b, c] } => {
                let locked = [test, from, mask, a, b, c];
                let test = self.truth(test, position, &locked);
                let to = self.copy(from, position, &locked);
                // The copy keeps its register while registers for other values are allocated.
                self.hold(Form::Words, value, to);
                let locked = [value, locked[0], mask, a, b, c];
                let [a, b, c] = [a, b, c].map(|value| self.anywhere(value, position, &locked));
                let mask = match self.level {
                    Level::Avx2 => self.anywhere(mask, position, &locked),
                    Level::Avx512 => Rm::Register(self.truth(mask, position, &locked)),
                };
                let given = [a, b, c, mask];
                let code = self.level.of(Code::VEX_Vtestps_ymm_ymmm256, Code::VEX_Ktestw_kr_kr);
                self.asm.two(code, test, mask);
                let (enter, back) = (self.asm.label(), self.asm.label());
                self.asm.branch(Code::Jne_rel32_64, enter);
                self.asm.bind(back);
                cold.push(Cold {
                    enter,
                    back,
                    does: Rare::PerLane { with, given, value: self.level.register(to) },
                });
            }
            Node::Start(site) | Node::Bound(site) => {
                let part = match self.strip.nodes[position] {
                    Node::Start(_) => 0,
                    _ => SITE_BOUND,
                };
                let to = self.allocate(Form::Words, position, &[]);
                let word = at_base(STATE, site_place(site) + part);
                self.asm.two(self.level.broadcast(), self.level.register(to), word);
                self.hold(Form::Words, value, to);
            }
            Node::Word(place) => {
                let to = self.allocate(Form::Words, position, &[]);
                window(self.asm, place!(window));
                let word = at_base(Register::RAX, place as i32);
                self.asm.two(self.level.broadcast(), self.level.register(to), word);
                self.hold(Form::Words, value, to);
            }
            Node::Load { span, distance, place, lanes } => {
                let locked = [place, lanes, value];
                let access = self.access((span, distance), [place, lanes], position, &locked);
                let to = self.allocate(Form::Words, position, &locked);
                self.hold(Form::Words, value, to);
                let free = self.allocate(Form::Words, position, &locked);
                let [to, free] = [to, free].map(|number| self.level.register(number));
                let (enter, back) = (self.asm.label(), self.asm.label());
                let steps = self.steps();
                let order = self.order((place, lanes), access, [to, free]);
                match order {
                    Some(place) => {
                        let order = Rm::Memory(at_base(Register::RSP, place));
                        self.asm.number(Code::Cmp_rm8_imm8, order, ROW);
                    }
                    None => in_a_row(self.level, self.asm, access, steps, free, Among::All),
                }
                self.asm.branch(Code::Jne_rel32_64, enter);
                let (level, asm) = (self.level, &mut *self.asm);
                window(asm, access.memory);
                let row = first_word(level, asm, access);
                asm.two(level.load_anywhere(), to, row);
                asm.bind(back);
                cold.push(Cold { enter, back, does: Rare::Load { to, free, access, steps, order } });
            }
        }
        if let (true, Some(number)) = (self.signs.is_used(position), self.words.held[position]) {
            self.take_signs(value, self.level.register(number), position, &[value]);
        }
        self.release(position);
    }

    /// Returns the access to words at a distance from the base of a span.
    fn access(
        &mut self,
        (span, distance): (u32, i32),
        [place, lanes]: [Value; 2],
        position: usize,
        locked: &[Value],
    ) -> Lanes {
        let span = self.strip.spans.get(span as usize);
        let site = span.and_then(|span| span.site);
        Lanes {
            memory: site.map_or(place!(window), |site| site_place(site) + SITE_BYTES),
            address: self.register(place, position, locked),
            distance: span.map_or(0, |span| distance.wrapping_sub(span.least)),
            mask: self.truth(lanes, position, locked),
        }
    }

    /// Returns the distances of contiguous words from the first of these words.
    fn steps(&mut self) -> Rm {
        Rm::Memory(at_base(POOL, self.pool.steps()))
    }

    /// If several loads have the same address and mask, returns the frame slot with the order of their words. The first
    /// of these loads computes the order.
    fn order(
        &mut self,
        of: (Value, Value),
        Lanes { address, mask, .. }: Lanes,
        [one, other]: [Register; 2],
    ) -> Option<i32> {
        if let Some(place) = self.orders.get(&of) {
            return Some(*place);
        }
        if self.loads.get(&of).is_none_or(|count| *count < 2) {
            return None;
        }
        let place = self.frame;
        self.frame += self.level.vector();
        self.orders.insert(of, place);
        let steps = self.steps();
        let (level, asm) = (self.level, &mut *self.asm);
        let (sub, _) = level.two(Two::Sub);
        let (xor, _) = level.two(Two::Xor);
        asm.two(level.broadcast(), other, level.xmm(address));
        asm.three(sub, other, address, other);
        asm.two(level.load(), one, steps);
        all_equal(level, asm, [other, one], mask, Among::All);
        asm.push(Instruction::with1(Code::Setne_rm8, Register::AL));
        asm.three(xor, one, one, one);
        all_equal(level, asm, [other, one], mask, Among::Active);
        asm.push(Instruction::with1(Code::Setne_rm8, Register::CL));
        // The order is ROW, ONE, or a number that is neither ROW nor ONE.
        asm.two(Code::And_rm8_r8, Register::CL, Register::AL);
        asm.two(Code::Add_rm8_r8, Register::AL, Register::CL);
        asm.store(Code::Mov_rm8_r8, at_base(Register::RSP, place), Register::AL);
        Some(place)
    }

    /// Returns a register with a copy of the value. The caller may overwrite the copy. The value itself may stay in
    /// another register.
    fn copy(&mut self, value: Value, position: usize, locked: &[Value]) -> usize {
        let words = &mut self.words;
        if let (Some(number), None) = (words.held[value.0 as usize], words.next_use(value, position)) {
            let twice = locked.iter().filter(|other| **other == value).count() > 1;
            if !twice {
                words.registers[number] = None;
                words.held[value.0 as usize] = None;
                return number;
            }
        }
        let from = self.anywhere(value, position, locked);
        let number = self.allocate(Form::Words, position, locked);
        self.asm.two(self.level.load(), self.level.register(number), from);
        number
    }

    /// Returns the current location of the value, a register or memory.
    fn anywhere(&mut self, value: Value, position: usize, locked: &[Value]) -> Rm {
        if let Some(number) = self.words.held[value.0 as usize] {
            return Rm::Register(self.level.register(number));
        }
        match self.memory(value) {
            Some(memory) => Rm::Memory(memory),
            None => Rm::Register(self.register(value, position, locked)),
        }
    }

    fn effects(&mut self, start: usize, words: &[u32], cold: &mut Vec<Cold>) {
        let strip = self.strip;
        // In a strip for two vectors, every second effect belongs to the second vector.
        let two = !self.of.is_empty();
        let stored: HashSet<Row> = strip
            .effects
            .iter()
            .filter_map(|effect| match effect {
                Effect::Store(row, _) => Some(*row),
                Effect::Gather(..) | Effect::Leave(..) | Effect::Scatter { .. } => None,
            })
            .collect();
        // If a row changes while its old words are still needed, the old words are read before the change.
        for (value, form) in strip.effects.iter().flat_map(|effect| effect.demands()) {
            if let Node::Row(row) = strip.nodes[value.0 as usize]
                && stored.contains(&row)
            {
                match form {
                    Form::Words => self.register(value, start + 1, &[]),
                    Form::Signs => self.truth(value, start + 1, &[]),
                };
                self.homeless.insert(value);
            }
        }
        for (number, effect) in strip.effects.iter().enumerate() {
            let position = start + 1 + number;
            let vector = if two { number as i32 & 1 } else { 0 };
            match *effect {
                Effect::Scatter { span, distance, place, lanes, value } => {
                    let locked = [place, lanes, value];
                    let access = self.access((span, distance), [place, lanes], position, &locked);
                    let from = self.register(value, position, &locked);
                    let free = self.allocate(Form::Words, position, &locked);
                    let (level, free) = (self.level, self.level.register(free));
                    let (enter, back) = (self.asm.label(), self.asm.label());
                    let steps = self.steps();
                    in_a_row(level, self.asm, access, steps, free, Among::All);
                    self.asm.branch(Code::Jne_rel32_64, enter);
                    let asm = &mut *self.asm;
                    window(asm, access.memory);
                    let row = first_word(level, asm, access);
                    asm.store(level.store_anywhere(), row, from);
                    asm.bind(back);
                    cold.push(Cold { enter, back, does: Rare::Store { from, free, access, steps } });
                }
                Effect::Store(row, value) if !row.has_words() => self.narrowed(row, vector, value, position),
                Effect::Store(row, value) => {
                    let register = self.register(value, position, &[]);
                    let home = self.home(row, vector);
                    self.asm.store(self.level.store(), home, register);
                }
                Effect::Gather(word, value) | Effect::Leave(word, value) => {
                    let register = self.truth(value, position, &[]);
                    bits(self.level, self.asm, Register::EAX, register);
                    if let Effect::Leave(..) = effect {
                        self.asm.store(Code::Or_rm32_r32, at_base(STATE, place!(left)), Register::EAX);
                    }
                    match words.iter().zip(GATHERED).find(|(gathered, _)| **gathered == word) {
                        Some((_, to)) if two => {
                            if vector > 0 {
                                self.asm.number(
                                    Code::Shl_rm64_imm8,
                                    Register::RAX,
                                    self.level.lanes() as i32,
                                );
                            }
                            self.asm.two(Code::Or_r64_rm64, to, Register::RAX);
                        }
                        Some((_, to)) => {
                            let shift = Instruction::with3(
                                Code::VEX_Shlx_r64_rm64_r64,
                                Register::RAX,
                                Register::RAX,
                                LANE,
                            );
                            self.asm.push(shift);
                            self.asm.two(Code::Or_r64_rm64, to, Register::RAX);
                        }
                        None => {
                            self.asm.two(Code::Mov_r32_rm32, Register::ECX, Register::R13D);
                            self.asm.number(Code::Shr_rm32_imm8, Register::ECX, 3);
                            let place = place!(words) + 8 * word as i32 + vector * self.level.bits();
                            let to = at(STATE, Register::RCX, place);
                            match self.level {
                                Level::Avx2 => self.asm.store(Code::Mov_rm8_r8, to, Register::AL),
                                Level::Avx512 => self.asm.store(Code::Mov_rm16_r16, to, Register::AX),
                            }
                        }
                    }
                }
            }
            self.release(position);
        }
    }
}

/// Returns the memory operand for the part of a row that begins at the strip's first lane. The row is at a displacement
/// from a base.
fn by_lane(base: Register, bytes: u32, displacement: i32) -> MemoryOperand {
    MemoryOperand::with_base_index_scale_displ_size(base, LANE, bytes, displacement.into(), 1)
}

/// Emits the start of a loop over the vectors with active lanes.
pub(crate) fn begin_vectors(level: Level, asm: &mut Assembler, strip: Label, next: Label) {
    asm.two(Code::Xor_r32_rm32, Register::R13D, Register::R13D);
    asm.two(Code::Mov_r64_rm64, REST, at_base(STATE, place!(active)));
    asm.bind(strip);
    match level {
        Level::Avx2 => asm.two(Code::Test_rm8_r8, Register::R14L, Register::R14L),
        Level::Avx512 => asm.two(Code::Test_rm16_r16, Register::R14W, Register::R14W),
    }
    asm.branch(Code::Je_rel32_64, next);
}

/// Emits the end of the loop that [`begin_vectors`] starts.
pub(crate) fn end_vectors(level: Level, asm: &mut Assembler, strip: Label, next: Label) {
    asm.bind(next);
    asm.number(Code::Add_rm64_imm8, LANE, level.lanes() as i32);
    asm.number(Code::Shr_rm64_imm8, REST, level.lanes() as i32);
    asm.branch(Code::Jne_rel32_64, strip);
}

/// Sets RAX to an address that is stored in the state, at the offset `memory`.
fn window(asm: &mut Assembler, memory: i32) {
    asm.two(Code::Mov_r64_rm64, Register::RAX, at_base(STATE, memory));
}

/// Returns the offset of a site in the state. The constants after this function are offsets of fields in a site.
fn site_place(site: u32) -> i32 {
    place!(sites) + (site as usize * size_of::<Site>()) as i32
}
const SITE_BOUND: i32 = std::mem::offset_of!(Site, bound) as i32;
const SITE_BYTES: i32 = std::mem::offset_of!(Site, bytes) as i32;

/// Returns the memory operand of the first lane's word in the window, whose address is in RAX. Sets RCX to the offset
/// of this word.
fn first_word(level: Level, asm: &mut Assembler, access: Lanes) -> MemoryOperand {
    asm.two(level.first(), Register::ECX, level.xmm(access.address));
    at(Register::RAX, Register::RCX, access.distance)
}

/// Orders of the words of an access. `ROW` means that the words of all lanes are contiguous. `ONE` means that all lanes
/// access the same word.
const ROW: i32 = 0;
const ONE: i32 = 1;

/// Lanes that a comparison includes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Among {
    /// All lanes of the vector. The comparison also fails if one of these lanes is not in the mask.
    All,
    /// The lanes of the mask. The comparison also fails if the first lane of the vector is not in the mask.
    Active,
}

/// Sets the flags to equal if the words of the lanes are contiguous.
fn in_a_row(level: Level, asm: &mut Assembler, access: Lanes, steps: Rm, free: Register, among: Among) {
    let Lanes { address, mask, .. } = access;
    asm.two(level.broadcast(), free, level.xmm(address));
    asm.three(level.two(Two::Add).0, free, free, steps);
    all_equal(level, asm, [address, free], mask, among);
}

/// Sets the flags to equal if two values are equal in all the given lanes. Overwrites the second value.
fn all_equal(level: Level, asm: &mut Assembler, [a, b]: [Register; 2], mask: Register, among: Among) {
    match level {
        Level::Avx2 => {
            asm.three(Code::VEX_Vpcmpeqd_ymm_ymm_ymmm256, b, b, a);
            asm.three(Code::VEX_Vpand_ymm_ymm_ymmm256, b, b, mask);
            bits(level, asm, Register::ECX, b);
        }
        Level::Avx512 => {
            let equal = Instruction::with3(Code::EVEX_Vpcmpeqd_kr_k1_zmm_zmmm512b32, ANY_BITS, b, a);
            asm.masked(equal, mask);
            bits(level, asm, Register::ECX, ANY_BITS);
        }
    }
    match among {
        Among::All => asm.number(Code::Cmp_rm32_imm32, Register::ECX, level.all()),
        Among::Active => {
            bits(level, asm, Register::EDX, mask);
            asm.two(Code::Xor_r32_rm32, Register::EDX, Register::ECX);
            asm.push(Instruction::with1(Code::Not_rm32, Register::ECX));
            asm.number(Code::And_rm32_imm8, Register::ECX, 1);
            asm.two(Code::Or_r32_rm32, Register::EDX, Register::ECX);
        }
    }
}

/// Emits a move of the sign bit of each lane to a general register.
fn bits(level: Level, asm: &mut Assembler, to: Register, from: Register) {
    asm.two(level.of(Code::VEX_Vmovmskps_r32_ymm, Code::VEX_Kmovw_r32_kr), to, from);
}

/// Returns an instruction with two sources and an optional immediate. The second source may be in memory.
fn three_operands(
    (code, number): (Code, Option<u8>),
    to: Register,
    first: Register,
    second: Rm,
) -> Result<Instruction, IcedError> {
    match (number.map(i32::from), second) {
        (None, Rm::Register(second)) => Instruction::with3(code, to, first, second),
        (None, Rm::Memory(second)) => Instruction::with3(code, to, first, second),
        (Some(number), Rm::Register(second)) => Instruction::with4(code, to, first, second, number),
        (Some(number), Rm::Memory(second)) => Instruction::with4(code, to, first, second, number),
    }
}

/// Emits the code for rare cases.
pub(crate) fn emit_cold(level: Level, asm: &mut Assembler, cold: &[Cold]) {
    let shared = asm.label();
    for Cold { enter, back, does } in cold {
        asm.bind(*enter);
        match does {
            Rare::PerLane { with, given, value } => emit_rescue(level, asm, shared, *with, given, *value),
            Rare::Load { to, free, access, steps, order } => {
                emit_load(level, asm, [*to, *free], (*access, *steps, *order), *back);
            }
            Rare::Store { from, free, access, steps } => {
                emit_store(level, asm, [*from, *free], (*access, *steps), *back);
            }
        }
        asm.branch(Code::Jmp_rel32_64, *back);
    }
    if cold.iter().any(|cold| matches!(cold.does, Rare::PerLane { .. })) {
        emit_shared(level, asm, shared);
    }
}

/// Loads one word for all lanes, contiguous words for some lanes, or one word per lane. A lane of the vector that is
/// not in the mask gets zero. If one word is loaded for all lanes, such a lane may also get this word.
fn emit_load(
    level: Level,
    asm: &mut Assembler,
    [to, free]: [Register; 2],
    (access, steps, order): (Lanes, Rm, Option<i32>),
    back: Label,
) {
    let Lanes { memory, address, distance, mask } = access;
    let [some, each] = [(); 2].map(|()| asm.label());
    match order {
        Some(place) => {
            asm.number(Code::Cmp_rm8_imm8, at_base(Register::RSP, place), ONE);
        }
        None => {
            asm.two(level.broadcast(), free, level.xmm(address));
            all_equal(level, asm, [address, free], mask, Among::Active);
        }
    }
    window(asm, memory);
    asm.branch(Code::Jne_rel32_64, some);
    let word = first_word(level, asm, access);
    asm.two(level.broadcast(), to, word);
    asm.branch(Code::Jmp_rel32_64, back);
    asm.bind(some);
    in_a_row(level, asm, access, steps, free, Among::Active);
    asm.branch(Code::Jne_rel32_64, each);
    let row = first_word(level, asm, access);
    match level {
        Level::Avx2 => asm.three(Code::VEX_Vpmaskmovd_ymm_ymm_m256, to, mask, Rm::Memory(row)),
        Level::Avx512 => {
            let load = Instruction::with2(level.load_anywhere(), to, row).map(|mut load| {
                load.set_zeroing_masking(true);
                load
            });
            asm.masked(load, mask);
        }
    }
    asm.branch(Code::Jmp_rel32_64, back);
    asm.bind(each);
    asm.three(level.two(Two::Xor).0, to, to, to);
    let words = at(Register::RAX, address, distance);
    match level {
        Level::Avx2 => {
            asm.two(level.load(), free, mask);
            asm.push(Instruction::with3(Code::VEX_Vpgatherdd_ymm_vm32y_ymm, to, words, free));
        }
        Level::Avx512 => {
            // The mask is copied first, because the gather instruction clears its mask.
            asm.two(Code::VEX_Kmovw_kr_km16, ANY_SIGNS, mask);
            asm.masked(Instruction::with2(Code::EVEX_Vpgatherdd_zmm_k1_vm32z, to, words), ANY_SIGNS);
        }
    }
}

/// Stores contiguous words of some lanes, or stores the word of each lane separately.
fn emit_store(
    level: Level,
    asm: &mut Assembler,
    [from, free]: [Register; 2],
    (access, steps): (Lanes, Rm),
    back: Label,
) {
    let Lanes { memory, address, distance, mask } = access;
    let lane = asm.label();
    let (addresses, values) = (PER_LANE, PER_LANE + level.vector());
    if level == Level::Avx512 {
        let each = asm.label();
        in_a_row(level, asm, access, steps, free, Among::Active);
        asm.branch(Code::Jne_rel32_64, each);
        window(asm, memory);
        let row = first_word(level, asm, access);
        asm.masked(Instruction::with2(level.store_anywhere(), row, from), mask);
        asm.branch(Code::Jmp_rel32_64, back);
        asm.bind(each);
    }
    bits(level, asm, Register::ECX, mask);
    asm.push(Instruction::with2(Code::Test_rm32_r32, Register::ECX, Register::ECX));
    asm.branch(Code::Je_rel32_64, back);
    window(asm, memory);
    asm.store(level.store(), at_base(Register::RSP, addresses), address);
    asm.store(level.store(), at_base(Register::RSP, values), from);
    let part = |start: i32| {
        MemoryOperand::with_base_index_scale_displ_size(Register::RSP, Register::RDX, 4, start.into(), 1)
    };
    asm.bind(lane);
    asm.two(Code::Tzcnt_r32_rm32, Register::EDX, Register::ECX);
    asm.two(Code::Mov_r32_rm32, WORD, part(values));
    asm.two(Code::Mov_r32_rm32, Register::EDX, part(addresses));
    asm.store(Code::Mov_rm32_r32, at(Register::RAX, Register::RDX, distance), WORD);
    asm.two(Code::VEX_Blsr_r32_rm32, Register::ECX, Register::ECX);
    asm.branch(Code::Jne_rel32_64, lane);
}

/// Returns the address of a field of a [`PerLaneFrame`]. The lower eight lanes and the upper eight lanes each have such
/// a frame. `half` selects the frame.
fn part(half: i32, number: i32) -> MemoryOperand {
    at_base(Register::RSP, PER_LANE + size_of::<PerLaneFrame>() as i32 * half + Level::Avx2.vector() * number)
}

/// Returns the lower half of a register.
fn lower(register: Register) -> Register {
    Register::YMM0 + (register as u32 - Register::ZMM0 as u32)
}

/// Stores a register in a field of a per-lane function's frame.
fn give(level: Level, asm: &mut Assembler, number: i32, from: Register) {
    match level {
        Level::Avx2 => asm.store(level.store(), part(0, number), from),
        Level::Avx512 => {
            asm.store(Code::EVEX_Vmovups_ymmm256_k1z_ymm, part(0, number), lower(from));
            let upper = Code::EVEX_Vextractf64x4_ymmm256_k1z_zmm_imm8;
            asm.push(Instruction::with3(upper, part(1, number), from, 1));
        }
    }
}

/// Emits the call of a per-lane function.
fn emit_rescue(
    level: Level,
    asm: &mut Assembler,
    shared: Label,
    with: PerLane,
    given: &[Rm; 4],
    value: Register,
) {
    give(level, asm, 4, value);
    for (number, given) in given.iter().enumerate() {
        let from = match given {
            // The value is already in the frame, so its register is free.
            Rm::Register(signs) if number == 3 && level.signs() > 0 => {
                asm.two(Code::EVEX_Vpmovm2d_zmm_kr, value, *signs);
                value
            }
            Rm::Register(register) => *register,
            Rm::Memory(_) => {
                asm.two(level.load(), value, *given);
                value
            }
        };
        give(level, asm, number as i32, from);
    }
    asm.push(Instruction::with2(Code::Mov_r64_imm64, Register::RAX, with.address() as u64));
    asm.branch(Code::Call_rel32_64, shared);
    match level {
        Level::Avx2 => asm.two(level.load(), value, part(0, 4)),
        Level::Avx512 => {
            let lower = lower(value);
            asm.two(Code::EVEX_Vmovups_ymm_k1z_ymmm256, lower, part(0, 4));
            let both = Code::EVEX_Vinsertf64x4_zmm_k1z_zmm_ymmm256_imm8;
            asm.push(Instruction::with4(both, value, value, part(1, 4), 1));
        }
    }
}

/// Emits the common part of all calls of per-lane functions.
fn emit_shared(level: Level, asm: &mut Assembler, shared: Label) {
    let frame = Frame::of(level);
    asm.bind(shared);
    // The return address is below the frame, so offsets in the frame increase by 8.
    let place = |place: i32| at_base(Register::RSP, 8 + place);
    let vectors = || {
        (0..level.registers())
            .map(|number| (level.register(number), place(frame.kept + level.vector() * number as i32)))
    };
    let numbers = || {
        let all = GATHERED.into_iter().zip((frame.numbers..).step_by(8));
        all.map(|(register, at)| (register, place(at)))
    };
    let called = frame.numbers + 8 * GATHERED.len() as i32;
    let signs =
        || (0..level.signs()).map(|number| (SIGNS + number as u32, place(called + 8 * (number as i32 + 1))));
    for (register, place) in vectors() {
        asm.store(level.store(), place, register);
    }
    for (register, place) in signs() {
        asm.store(Code::VEX_Kmovw_m16_kr, place, register);
    }
    for (register, place) in numbers() {
        asm.store(Code::Mov_rm64_r64, place, register);
    }
    if level.bits() > 1 {
        asm.store(Code::Mov_rm64_r64, place(called), Register::RAX);
    }
    asm.two(Code::Lea_r64_m, Register::RDI, place(PER_LANE));
    asm.number(Code::Sub_rm64_imm8, Register::RSP, 8);
    leave_mode(asm, true);
    asm.push(Instruction::with1(Code::Call_rm64, Register::RAX));
    for half in 1..level.bits() {
        let per_lane = 8 + PER_LANE + size_of::<PerLaneFrame>() as i32 * half;
        asm.two(Code::Mov_r64_rm64, Register::RAX, place(8 + called));
        asm.two(Code::Lea_r64_m, Register::RDI, place(per_lane));
        asm.push(Instruction::with1(Code::Call_rm64, Register::RAX));
    }
    enter_mode(asm, true);
    asm.number(Code::Add_rm64_imm8, Register::RSP, 8);
    for (register, place) in vectors() {
        asm.two(level.load(), register, place);
    }
    for (register, place) in signs() {
        asm.two(Code::VEX_Kmovw_kr_km16, register, place);
    }
    for (register, place) in numbers() {
        asm.two(Code::Mov_r64_rm64, register, place);
    }
    asm.plain(Code::Retnq);
}

/// Registers that a function must preserve.
const SAVED: [Register; 6] =
    [Register::RBX, Register::RBP, Register::R12, Register::R13, Register::R14, Register::R15];

/// If the code depends on floating point modes, sets the modes of generated code.
pub(crate) fn enter_mode(asm: &mut Assembler, floats: bool) {
    if floats {
        asm.push(Instruction::with1(Code::VEX_Vldmxcsr_m32, at_base(STATE, place!(mode))));
    }
}

/// Restores the host's floating point modes, and clears the upper halves of vector registers.
pub(crate) fn leave_mode(asm: &mut Assembler, floats: bool) {
    asm.plain(Code::VEX_Vzeroupper);
    if floats {
        asm.push(Instruction::with1(Code::VEX_Vldmxcsr_m32, at_base(STATE, place!(host_mode))));
    }
}

/// Emits the start of a function whose argument is a state. `caller` is the offset in the frame at which the caller's
/// stack pointer is saved.
pub(crate) fn prologue(asm: &mut Assembler, frame: i32, caller: i32, floats: bool) {
    for register in SAVED {
        asm.push(Instruction::with1(Code::Push_r64, register));
    }
    asm.push(Instruction::with2(Code::Mov_r64_rm64, Register::RAX, Register::RSP));
    asm.number(Code::And_rm64_imm8, Register::RSP, -64);
    let frame = (frame.max(caller + 64) + 63) & !63;
    asm.number(Code::Sub_rm64_imm32, Register::RSP, frame);
    asm.store(Code::Mov_rm64_r64, at_base(Register::RSP, caller), Register::RAX);
    asm.push(Instruction::with2(Code::Mov_r64_rm64, STATE, Register::RDI));
    asm.two(Code::Mov_r64_rm64, ROWS, at_base(STATE, place!(rows)));
    asm.two(Code::Mov_r64_rm64, POOL, at_base(STATE, place!(pool)));
    enter_mode(asm, floats);
}

/// Emits the end of a function that returns ECX.
pub(crate) fn epilogue(asm: &mut Assembler, caller: i32, floats: bool) {
    leave_mode(asm, floats);
    asm.push(Instruction::with2(Code::Mov_r32_rm32, Register::EAX, Register::ECX));
    asm.two(Code::Mov_r64_rm64, Register::RSP, at_base(Register::RSP, caller));
    for register in SAVED.into_iter().rev() {
        asm.push(Instruction::with1(Code::Pop_r64, register));
    }
    asm.plain(Code::Retnq);
}
