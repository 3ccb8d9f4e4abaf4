//! Emits the instructions of a strip and allocates its registers.
//!
//! Values stay in registers until their last use. If no register is free, the value whose next use is farthest away is
//! evicted. The code later reads an evicted row or constant again from memory. The code spills any other evicted value
//! to the stack.

use std::collections::{HashMap, HashSet};

use iced_x86::{Code, IcedError, Instruction, MemoryOperand, Register};

use crate::accesses::{
    Among, Lanes, ROW, SITE_BOUND, SITE_BYTES, all_equal, bits, first_word, in_a_row, site_place, window,
};
use crate::asm::{Assembler, Label, Rm, at, at_base};
use crate::cold::{Cold, Rare};
use crate::frame::{ANY_BITS, Frame, GATHERED, LANE, POOL, ROWS, SIGNS, STATE};
use crate::level::Level;
use crate::pool::Pool;
use crate::state::place;
use crate::strip::{Effect, Node, One, Row, Strip, Two, Value};
use crate::vectors::Vectors;

/// The points to which a strip can exit.
pub(crate) struct Exits<'a> {
    /// Target of the jump if the guard fails.
    pub(crate) guard: Option<Label>,
    /// Words that are gathered in the registers [`GATHERED`].
    pub(crate) words: &'a [u32],
    pub(crate) cold: &'a mut Vec<Cold>,
}

/// The form in which code needs a value: the words of the value, or only the sign bits of the words. With AVX2, both
/// forms are words.
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

    /// Returns the first use of a value that is not before a position.
    fn next_use_from(&self, value: Value, position: usize) -> Option<usize> {
        let uses = &self.uses[value.0 as usize];
        uses[..uses.partition_point(|used| *used >= position)].last().copied()
    }

    /// Frees the registers of all values that no instruction after `position` uses.
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
    /// The vector of each node, for a strip that computes both vectors of a group. For a strip that computes one
    /// vector, the field is empty.
    of: &'a [u8],
    /// Number of bytes of a row.
    stride: u32,
    words: Bank,
    signs: Bank,
    /// Whether each value is computed in the form of signs.
    made_as_signs: Vec<bool>,
    frame: i32,
    /// Old values of rows that this strip overwrites. The code never reads these values from the rows again, because
    /// the rows contain new values.
    homeless: HashSet<Value>,
    /// Number of loads for each address and mask.
    loads: HashMap<(Value, Value), usize>,
    /// For each address and mask, the frame slot that [`Emitter::order`] returns.
    orders: HashMap<(Value, Value), i32>,
}

/// Emits a strip. The strip computes either the vector at [`LANE`] or both vectors of a group. Returns the number of
/// bytes that the strip needs in the frame.
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
    // A constant guard is one value for both vectors. So the vector of a guard is not the vector of its value.
    let guards = || (0..).zip(guards).filter(|(_, value)| strip.is_constant(**value) != Some(0));
    for (_, value) in guards() {
        emitter.used(*value, Form::Signs, count);
    }
    emitter.demand();
    for number in (0..count).filter(|number| emitter.is_live(*number)).collect::<Vec<_>>() {
        emitter.node(number, exits.cold);
    }
    for (vector, value, label) in guards().filter_map(|(vector, value)| Some((vector, *value, exits.guard?)))
    {
        let register = emitter.truth(value, count, &[]);
        let mask = emitter.home(mask, vector);
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
    /// Returns the values that the effect needs, and the form (words or signs) in which the effect needs each value.
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

    /// For each node, determines the forms in which nodes and effects need the value of the node. Also determines the
    /// form in which the code computes the value. The function starts with the last node, because the form of a node
    /// determines the forms of the node's sources.
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

    /// Stores the low bits of words in a row whose lanes have 8 or 16 bits.
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
            // If several values have equal next uses, a value that also exists in memory is evicted first.
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

    /// Returns the value as an operand of an instruction. If no register contains the value, and the value is a
    /// constant or has no later use, the operand can be in memory.
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

    /// Frees the registers of all values that no instruction after `position` uses.
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
            // The code does not compute these nodes. Instructions read the values of these nodes from memory.
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
                // The copy keeps its register during the following allocations of registers.
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
            zeros: span.is_some_and(|span| !span.exits),
        }
    }

    /// Returns an operand in memory. The operand contains the offset of each lane's word from the first word in the
    /// case that all words are contiguous.
    fn steps(&mut self) -> Rm {
        Rm::Memory(at_base(POOL, self.pool.steps()))
    }

    /// If several loads have one common address and mask, returns the frame slot with the order of the loaded words.
    /// The first of the loads computes the order.
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

    /// Returns a register with a copy of the value. The caller may overwrite the copy. The value may also stay in
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
        // If a row changes and a later instruction needs the old words, the code reads the old words before the change.
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
