//! From a slice to instructions: which value is in which register, and when.
//!
//! Values live in registers until their last use. Where none is free, the value that is needed last goes: rows and
//! constants are read again, others are kept on the stack.

use std::collections::{HashMap, HashSet};

use iced_x86::{Code, Instruction, MemoryOperand, Register};

use crate::asm::{Assembler, Label, Rm, at, at_base};
use crate::slice::{Effect, Function, LANES, Node, Row, Slice, Value};
use crate::state::place;

/// The [`State`](crate::State), the group's rows, the place of the slice in a row in bytes, its number, and the constants.
pub(crate) const STATE: Register = Register::RBX;
pub(crate) const ROWS: Register = Register::R12;
pub(crate) const PLACE: Register = Register::R13;
pub(crate) const NUMBER: Register = Register::R14;
pub(crate) const POOL: Register = Register::RBP;
/// Eight times the number of the slice.
pub(crate) const SHIFT: Register = Register::R11;

/// Registers in which bits of lanes are gathered. Storing a word in parts would stall the load of the whole word.
pub(crate) const GATHERED: [Register; 4] = [Register::RSI, Register::RDI, Register::R8, Register::R9];

/// Free for a few instructions, besides RAX, RCX and RDX.
const WORD: Register = Register::R10D;

/// Bytes of a vector.
const VECTOR: i32 = 4 * LANES as i32;

/// Bytes of the frame: what a rescuer sees, the registers that are kept around it, the caller's frame, then values.
pub(crate) const RESCUE: i32 = 0;
pub(crate) const KEPT: i32 = 5 * VECTOR;
const KEPT_NUMBERS: i32 = KEPT + 16 * VECTOR;
pub(crate) const CALLER: i32 = KEPT_NUMBERS + 2 * VECTOR;
const SPILLED: i32 = CALLER + VECTOR;

/// Words that are the same in all lanes, by value.
#[derive(Debug, Default)]
pub(crate) struct Pool {
    places: HashMap<u32, i32>,
    pub(crate) words: Vec<[u32; LANES]>,
}

impl Pool {
    pub(crate) fn place(&mut self, word: u32) -> i32 {
        *self.places.entry(word).or_insert_with(|| {
            self.words.push([word; LANES]);
            VECTOR * (self.words.len() as i32 - 1)
        })
    }

    /// How far the words of a row in memory lie behind the first.
    fn steps(&mut self) -> i32 {
        let steps = std::array::from_fn(|lane| 4 * lane as u32);
        let place = self.words.iter().position(|words| *words == steps).unwrap_or_else(|| {
            self.words.push(steps);
            self.words.len() - 1
        });
        VECTOR * place as i32
    }

    /// Words that are read one by one.
    pub(crate) fn table(&mut self, words: [u32; 4]) -> i32 {
        self.words.push([words[0], words[1], words[2], words[3], 0, 0, 0, 0]);
        VECTOR * (self.words.len() as i32 - 1)
    }
}

/// What is behind the code that usually runs, and comes back to it.
#[derive(Debug)]
pub(crate) struct Cold {
    enter: Label,
    back: Label,
    does: Rare,
}

#[derive(Debug)]
enum Rare {
    /// A call of a rescuer. Sources and mask, where they are; the register of the value, before and after.
    Rescue { with: Function, given: [Rm; 4], value: Register },
    /// A load of words that do not lie in a row; with the place of their order in the frame, where that is known.
    Load { to: Register, free: Register, access: Lanes, order: Option<i32> },
    /// A store of such words.
    Store { from: Register, access: Lanes },
}

/// Which words of the window, and for which lanes.
#[derive(Clone, Copy, Debug)]
struct Lanes {
    address: Register,
    distance: i32,
    mask: Register,
}

/// Where code goes on elsewhere.
pub(crate) struct Exits<'a> {
    /// Where the slice is given up.
    pub(crate) doubt: Option<Label>,
    /// Words that are gathered in the registers [`GATHERED`].
    pub(crate) words: &'a [u32],
    pub(crate) cold: &'a mut Vec<Cold>,
}

struct Emitter<'a> {
    asm: &'a mut Assembler,
    pool: &'a mut Pool,
    slice: &'a Slice,
    /// Bytes of a row.
    stride: u32,
    /// By value, where it is used, last first.
    uses: Vec<Vec<usize>>,
    registers: [Option<Value>; 16],
    held: Vec<Option<usize>>,
    /// By value, the place on the stack.
    kept: Vec<Option<i32>>,
    frame: i32,
    /// Values whose rows are about to change.
    homeless: HashSet<Value>,
    /// By address and mask, how many loads there are.
    loads: HashMap<(Value, Value), usize>,
    /// By address and mask, the place in the frame of [`order`].
    orders: HashMap<(Value, Value), i32>,
}

/// Emits a slice. Gives the bytes of the frame that it needs.
pub(crate) fn emit(
    asm: &mut Assembler,
    pool: &mut Pool,
    slice: &Slice,
    stride: u32,
    mask: Row,
    exits: Exits<'_>,
) -> i32 {
    let count = slice.nodes.len();
    let mut live = vec![false; count];
    let mut uses = vec![Vec::new(); count];
    // Behind the nodes come the check of the doubt, then the effects.
    for (number, effect) in slice.effects.iter().enumerate().rev() {
        for value in effect.values() {
            live[value.0 as usize] = true;
            if uses[value.0 as usize].last() != Some(&(count + 1 + number)) {
                uses[value.0 as usize].push(count + 1 + number);
            }
        }
    }
    let doubt = slice.doubt.filter(|value| slice.is_constant(*value) != Some(0));
    if let Some(value) = doubt {
        live[value.0 as usize] = true;
        uses[value.0 as usize].push(count);
    }
    for number in (0..count).rev() {
        if live[number] {
            for source in Slice::sources(&slice.nodes[number]) {
                live[source.0 as usize] = true;
                if uses[source.0 as usize].last() != Some(&number) {
                    uses[source.0 as usize].push(number);
                }
            }
        }
    }
    let mut loads = HashMap::new();
    for (number, node) in slice.nodes.iter().enumerate() {
        if let (true, Node::Load { address, mask, .. }) = (live[number], node) {
            *loads.entry((*address, *mask)).or_default() += 1;
        }
    }
    let mut emitter = Emitter {
        asm,
        pool,
        slice,
        stride,
        uses,
        registers: [None; 16],
        held: vec![None; count],
        kept: vec![None; count],
        frame: SPILLED,
        homeless: HashSet::new(),
        loads,
        orders: HashMap::new(),
    };
    for number in (0..count).filter(|number| live[*number]) {
        emitter.node(number, exits.cold);
    }
    if let (Some(value), Some(label)) = (doubt, exits.doubt) {
        let register = emitter.register(value, count, &[]);
        let mask = emitter.home(mask);
        emitter.asm.two(Code::VEX_Vtestps_ymm_ymmm256, register, Rm::Memory(mask));
        emitter.asm.branch(Code::Jne_rel32_64, label);
        emitter.release(count);
    }
    emitter.effects(count, exits.words, exits.cold);
    emitter.frame
}

impl Emitter<'_> {
    /// Where a row is.
    fn home(&self, row: Row) -> MemoryOperand {
        match row {
            Row::Group(distance) => at(ROWS, PLACE, distance as i32),
            Row::Own(number) => at(STATE, PLACE, place::OWN + (number * self.stride) as i32),
        }
    }

    /// Where the value can be read from memory now.
    fn memory(&mut self, value: Value) -> Option<MemoryOperand> {
        if let Some(place) = self.kept[value.0 as usize] {
            return Some(at_base(Register::RSP, place));
        }
        match self.slice.nodes[value.0 as usize] {
            Node::Row(row) if !self.homeless.contains(&value) => Some(self.home(row)),
            Node::Constant(word) => Some(at_base(POOL, self.pool.place(word))),
            _ => None,
        }
    }

    /// The next use behind a position.
    fn next_use(&self, value: Value, position: usize) -> Option<usize> {
        self.uses[value.0 as usize].iter().rev().find(|used| **used > position).copied()
    }

    /// The next use at a position or behind it.
    fn next_use_from(&self, value: Value, position: usize) -> Option<usize> {
        self.uses[value.0 as usize].iter().rev().find(|used| **used >= position).copied()
    }

    /// A register for the value of a position. Those of the locked values stay.
    fn allocate(&mut self, position: usize, locked: &[Value]) -> usize {
        if let Some(free) = self.registers.iter().position(Option::is_none) {
            return free;
        }
        let farthest = |number: &usize| {
            let value = self.registers[*number].unwrap_or(Value(0));
            if locked.contains(&value) {
                return None;
            }
            // A value that memory has as well goes first among equals.
            Some(self.next_use_from(value, position).unwrap_or(usize::MAX))
        };
        let number = (0..16).max_by_key(|number| farthest(number)).unwrap_or(0);
        self.evict(number, position);
        number
    }

    fn evict(&mut self, number: usize, position: usize) {
        let Some(value) = self.registers[number].take() else { return };
        self.held[value.0 as usize] = None;
        if self.next_use_from(value, position).is_some() && self.memory(value).is_none() {
            self.keep(value, ymm(number));
        }
    }

    /// Keeps a value on the stack.
    fn keep(&mut self, value: Value, register: Register) {
        let place = self.frame;
        self.frame += VECTOR;
        self.kept[value.0 as usize] = Some(place);
        self.asm.store(Code::VEX_Vmovaps_ymmm256_ymm, at_base(Register::RSP, place), register);
    }

    fn hold(&mut self, value: Value, number: usize) {
        self.registers[number] = Some(value);
        self.held[value.0 as usize] = Some(number);
    }

    /// The register of a value, which is read from memory if it must be.
    fn register(&mut self, value: Value, position: usize, locked: &[Value]) -> Register {
        if let Some(number) = self.held[value.0 as usize] {
            return ymm(number);
        }
        let number = self.allocate(position, locked);
        if let Some(memory) = self.memory(value) {
            self.asm.two(Code::VEX_Vmovaps_ymm_ymmm256, ymm(number), Rm::Memory(memory));
        } else {
            debug_assert!(false, "a value that is nowhere");
        }
        self.hold(value, number);
        ymm(number)
    }

    /// The value where an instruction can read it: memory, if this is its last use or it is a constant.
    fn operand(&mut self, value: Value, position: usize, locked: &[Value]) -> Rm {
        if let Some(number) = self.held[value.0 as usize] {
            return Rm::Register(ymm(number));
        }
        let constant = matches!(self.slice.nodes[value.0 as usize], Node::Constant(_));
        if (constant || self.next_use(value, position).is_none())
            && let Some(memory) = self.memory(value)
        {
            return Rm::Memory(memory);
        }
        Rm::Register(self.register(value, position, locked))
    }

    /// Frees the registers of values that nothing behind the position uses.
    fn release(&mut self, position: usize) {
        for number in 0..16 {
            if let Some(value) = self.registers[number]
                && self.next_use(value, position).is_none()
            {
                self.registers[number] = None;
                self.held[value.0 as usize] = None;
            }
        }
    }

    fn node(&mut self, position: usize, cold: &mut Vec<Cold>) {
        let value = Value(position as u32);
        let immediate = |number: u8| i32::from(number);
        match self.slice.nodes[position] {
            // Read where they are needed.
            Node::Row(_) | Node::Constant(_) => {}
            Node::Two(op, [a, b]) => {
                let first = self.register(a, position, &[a, b]);
                let second = self.operand(b, position, &[a, b]);
                self.release(position);
                let to = self.allocate(position, &[]);
                let (code, number) = op.code();
                match (number, second) {
                    (None, _) => self.asm.three(code, ymm(to), first, second),
                    (Some(number), Rm::Register(second)) => {
                        self.asm.push(Instruction::with4(code, ymm(to), first, second, immediate(number)));
                    }
                    (Some(number), Rm::Memory(second)) => {
                        self.asm.push(Instruction::with4(code, ymm(to), first, second, immediate(number)));
                    }
                }
                self.hold(value, to);
            }
            Node::One(op, a) => {
                let (code, number, reads_memory) = op.code();
                let from = match reads_memory {
                    true => self.operand(a, position, &[a]),
                    false => Rm::Register(self.register(a, position, &[a])),
                };
                self.release(position);
                let to = self.allocate(position, &[]);
                match (number, from) {
                    (None, _) => self.asm.two(code, ymm(to), from),
                    (Some(number), Rm::Register(from)) => {
                        self.asm.push(Instruction::with3(code, ymm(to), from, immediate(number)));
                    }
                    (Some(number), Rm::Memory(from)) => {
                        self.asm.push(Instruction::with3(code, ymm(to), from, immediate(number)));
                    }
                }
                self.hold(value, to);
            }
            Node::Select([condition, other, then]) => {
                let locked = [condition, other, then];
                let condition = self.register(condition, position, &locked);
                let other = self.register(other, position, &locked);
                let then = self.operand(then, position, &locked);
                self.release(position);
                let to = self.allocate(position, &[]);
                let code = Code::VEX_Vblendvps_ymm_ymm_ymmm256_ymm;
                self.asm.push(match then {
                    Rm::Register(then) => Instruction::with4(code, ymm(to), other, then, condition),
                    Rm::Memory(then) => Instruction::with4(code, ymm(to), other, then, condition),
                });
                self.hold(value, to);
            }
            Node::Fused { minus, of: [a, b, c] } => {
                let locked = [a, b, c];
                let second = self.register(b, position, &locked);
                let third = self.operand(c, position, &locked);
                let to = self.copy(a, position, &locked);
                let code = match minus {
                    true => Code::VEX_Vfmsub213ps_ymm_ymm_ymmm256,
                    false => Code::VEX_Vfmadd213ps_ymm_ymm_ymmm256,
                };
                self.asm.three(code, ymm(to), second, third);
                self.release(position);
                self.hold(value, to);
            }
            Node::Rescue { with, value: from, test, mask, sources: [a, b, c] } => {
                let locked = [test, from, mask, a, b, c];
                let test = self.register(test, position, &locked);
                let to = self.copy(from, position, &locked);
                // The copy stays where it is while the others are looked for.
                self.hold(value, to);
                let locked = [value, locked[0], mask, a, b, c];
                let given = [a, b, c, mask].map(|value| self.anywhere(value, position, &locked));
                self.asm.two(Code::VEX_Vtestps_ymm_ymmm256, test, given[3]);
                let (enter, back) = (self.asm.label(), self.asm.label());
                self.asm.branch(Code::Jne_rel32_64, enter);
                self.asm.bind(back);
                cold.push(Cold { enter, back, does: Rare::Rescue { with, given, value: ymm(to) } });
            }
            Node::Word(place) => {
                let to = self.allocate(position, &[]);
                self.asm.two(Code::Mov_r64_rm64, Register::RAX, Rm::Memory(at_base(STATE, place::WINDOW)));
                let word = at_base(Register::RAX, place as i32);
                self.asm.two(Code::VEX_Vpbroadcastd_ymm_xmmm32, ymm(to), Rm::Memory(word));
                self.hold(value, to);
            }
            Node::Load { address, distance, mask } => {
                let mask_value = mask;
                let locked = [address, mask, value];
                let access = Lanes {
                    address: self.register(address, position, &locked),
                    distance,
                    mask: self.register(mask, position, &locked),
                };
                let to = self.allocate(position, &locked);
                self.hold(value, to);
                let (to, free) = (ymm(to), ymm(self.allocate(position, &locked)));
                let (enter, back) = (self.asm.label(), self.asm.label());
                let order = self.order((address, mask_value), access, [to, free]);
                match order {
                    Some(place) => {
                        let order = Rm::Memory(at_base(Register::RSP, place));
                        self.asm.number(Code::Cmp_rm8_imm8, order, ROW);
                    }
                    None => in_a_row(self.asm, self.pool, access, free),
                }
                self.asm.branch(Code::Jne_rel32_64, enter);
                let asm = &mut *self.asm;
                asm.two(Code::Mov_r64_rm64, Register::RAX, Rm::Memory(at_base(STATE, place::WINDOW)));
                asm.two(Code::VEX_Vmovd_rm32_xmm, Register::ECX, Rm::Register(xmm(access.address)));
                let row = at(Register::RAX, Register::RCX, distance);
                asm.two(Code::VEX_Vmovups_ymm_ymmm256, to, Rm::Memory(row));
                asm.bind(back);
                cold.push(Cold { enter, back, does: Rare::Load { to, free, access, order } });
            }
        }
        self.release(position);
    }

    /// The place in the frame of how the words of several loads lie, which the first of them finds out.
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
        self.frame += VECTOR;
        self.orders.insert(of, place);
        let steps = at_base(POOL, self.pool.steps());
        let asm = &mut *self.asm;
        asm.two(Code::VEX_Vpbroadcastd_ymm_xmmm32, other, Rm::Register(xmm(address)));
        asm.three(Code::VEX_Vpsubd_ymm_ymm_ymmm256, other, address, Rm::Register(other));
        asm.two(Code::VEX_Vmovaps_ymm_ymmm256, one, Rm::Memory(steps));
        all_equal(asm, other, one, mask);
        asm.push(Instruction::with1(Code::Setne_rm8, Register::AL));
        asm.three(Code::VEX_Vpxor_ymm_ymm_ymmm256, one, one, Rm::Register(one));
        all_equal(asm, other, one, mask);
        asm.push(Instruction::with1(Code::Setne_rm8, Register::CL));
        // ROW, ONE, or another number.
        asm.three_of(Code::And_rm8_r8, Register::CL, Register::AL);
        asm.three_of(Code::Add_rm8_r8, Register::AL, Register::CL);
        asm.store(Code::Mov_rm8_r8, at_base(Register::RSP, place), Register::AL);
        Some(place)
    }

    /// A register of its own with the value, which may stay in another.
    fn copy(&mut self, value: Value, position: usize, locked: &[Value]) -> usize {
        if let (Some(number), None) = (self.held[value.0 as usize], self.next_use(value, position)) {
            let twice = locked.iter().filter(|other| **other == value).count() > 1;
            if !twice {
                self.registers[number] = None;
                self.held[value.0 as usize] = None;
                return number;
            }
        }
        let from = self.anywhere(value, position, locked);
        let number = self.allocate(position, locked);
        self.asm.two(Code::VEX_Vmovaps_ymm_ymmm256, ymm(number), from);
        number
    }

    /// The value where it is: in a register or in memory.
    fn anywhere(&mut self, value: Value, position: usize, locked: &[Value]) -> Rm {
        if let Some(number) = self.held[value.0 as usize] {
            return Rm::Register(ymm(number));
        }
        match self.memory(value) {
            Some(memory) => Rm::Memory(memory),
            None => Rm::Register(self.register(value, position, locked)),
        }
    }

    fn effects(&mut self, start: usize, words: &[u32], cold: &mut Vec<Cold>) {
        let slice = self.slice;
        let stored: HashSet<Row> = slice
            .effects
            .iter()
            .filter_map(|effect| match effect {
                Effect::Store(row, _) => Some(*row),
                Effect::Gather(..) | Effect::Leave(..) | Effect::Scatter { .. } => None,
            })
            .collect();
        // Rows that are to be written while their old words are still needed are read first.
        for value in slice.effects.iter().flat_map(|effect| effect.values()) {
            if let Node::Row(row) = slice.nodes[value.0 as usize]
                && stored.contains(&row)
            {
                self.register(value, start + 1, &[]);
                self.homeless.insert(value);
            }
        }
        for (number, effect) in slice.effects.iter().enumerate() {
            let position = start + 1 + number;
            match *effect {
                Effect::Scatter { address, distance, mask, value } => {
                    let locked = [address, mask, value];
                    let access = Lanes {
                        address: self.register(address, position, &locked),
                        distance,
                        mask: self.register(mask, position, &locked),
                    };
                    let from = self.register(value, position, &locked);
                    let free = ymm(self.allocate(position, &locked));
                    let (enter, back) = (self.asm.label(), self.asm.label());
                    in_a_row(self.asm, self.pool, access, free);
                    self.asm.branch(Code::Jne_rel32_64, enter);
                    let asm = &mut *self.asm;
                    asm.two(Code::Mov_r64_rm64, Register::RAX, Rm::Memory(at_base(STATE, place::WINDOW)));
                    asm.two(Code::VEX_Vmovd_rm32_xmm, Register::ECX, Rm::Register(xmm(access.address)));
                    let row = at(Register::RAX, Register::RCX, distance);
                    asm.store(Code::VEX_Vmovups_ymmm256_ymm, row, from);
                    asm.bind(back);
                    cold.push(Cold { enter, back, does: Rare::Store { from, access } });
                }
                Effect::Store(row, value) => {
                    let register = self.register(value, position, &[]);
                    let home = self.home(row);
                    self.asm.store(Code::VEX_Vmovaps_ymmm256_ymm, home, register);
                }
                Effect::Gather(word, value) | Effect::Leave(word, value) => {
                    let register = self.register(value, position, &[]);
                    self.asm.two(Code::VEX_Vmovmskps_r32_ymm, Register::EAX, Rm::Register(register));
                    if let Effect::Leave(..) = effect {
                        self.asm.store(Code::Or_rm32_r32, at_base(STATE, place::LEFT), Register::EAX);
                    }
                    match words.iter().zip(GATHERED).find(|(gathered, _)| **gathered == word) {
                        Some((_, to)) => {
                            let shift = Instruction::with3(
                                Code::VEX_Shlx_r64_rm64_r64,
                                Register::RAX,
                                Register::RAX,
                                SHIFT,
                            );
                            self.asm.push(shift);
                            self.asm.two(Code::Or_r64_rm64, to, Rm::Register(Register::RAX));
                        }
                        None => {
                            let to = at(STATE, NUMBER, place::WORDS + 8 * word as i32);
                            self.asm.store(Code::Mov_rm8_r8, to, Register::AL);
                        }
                    }
                }
            }
            self.release(position);
        }
    }
}

/// Words of all lanes that lie in a row, or one word for all lanes.
const ROW: i32 = 0;
const ONE: i32 = 1;

/// Sets the flags: equal, if all lanes are in the mask and their words lie in a row.
fn in_a_row(asm: &mut Assembler, pool: &mut Pool, access: Lanes, free: Register) {
    let Lanes { address, mask, .. } = access;
    asm.two(Code::VEX_Vpbroadcastd_ymm_xmmm32, free, Rm::Register(xmm(address)));
    let steps = Rm::Memory(at_base(POOL, pool.steps()));
    asm.three(Code::VEX_Vpaddd_ymm_ymm_ymmm256, free, free, steps);
    all_equal(asm, address, free, mask);
}

/// Sets the flags: equal, if the two are the same in all lanes, and all are in the mask.
fn all_equal(asm: &mut Assembler, a: Register, b: Register, mask: Register) {
    asm.three(Code::VEX_Vpcmpeqd_ymm_ymm_ymmm256, b, b, Rm::Register(a));
    asm.three(Code::VEX_Vpand_ymm_ymm_ymmm256, b, b, Rm::Register(mask));
    asm.two(Code::VEX_Vmovmskps_r32_ymm, Register::ECX, Rm::Register(b));
    asm.number(Code::Cmp_rm32_imm32, Rm::Register(Register::ECX), 0xff);
}

/// Emits what is rare.
pub(crate) fn emit_cold(asm: &mut Assembler, cold: &[Cold]) {
    let shared = asm.label();
    for Cold { enter, back, does } in cold {
        asm.bind(*enter);
        match does {
            Rare::Rescue { with, given, value } => emit_rescue(asm, shared, *with, given, *value),
            Rare::Load { to, free, access, order } => emit_load(asm, [*to, *free], *access, *order, *back),
            Rare::Store { from, access } => emit_store(asm, *from, *access, *back),
        }
        asm.branch(Code::Jmp_rel32_64, *back);
    }
    if cold.iter().any(|cold| matches!(cold.does, Rare::Rescue { .. })) {
        emit_shared(asm, shared);
    }
}

/// One word for all lanes; else each lane its own.
fn emit_load(asm: &mut Assembler, [to, free]: [Register; 2], access: Lanes, order: Option<i32>, back: Label) {
    let Lanes { address, distance, mask } = access;
    let each = asm.label();
    match order {
        Some(place) => {
            asm.number(Code::Cmp_rm8_imm8, Rm::Memory(at_base(Register::RSP, place)), ONE);
        }
        None => {
            asm.two(Code::VEX_Vpbroadcastd_ymm_xmmm32, free, Rm::Register(xmm(address)));
            all_equal(asm, address, free, mask);
        }
    }
    asm.two(Code::Mov_r64_rm64, Register::RAX, Rm::Memory(at_base(STATE, place::WINDOW)));
    asm.branch(Code::Jne_rel32_64, each);
    asm.two(Code::VEX_Vmovd_rm32_xmm, Register::ECX, Rm::Register(xmm(address)));
    let word = at(Register::RAX, Register::RCX, distance);
    asm.two(Code::VEX_Vpbroadcastd_ymm_xmmm32, to, Rm::Memory(word));
    asm.branch(Code::Jmp_rel32_64, back);
    asm.bind(each);
    asm.three(Code::VEX_Vpxor_ymm_ymm_ymmm256, to, to, Rm::Register(to));
    asm.two(Code::VEX_Vmovaps_ymm_ymmm256, free, Rm::Register(mask));
    let words = at(Register::RAX, address, distance);
    asm.push(Instruction::with3(Code::VEX_Vpgatherdd_ymm_vm32y_ymm, to, words, free));
}

/// One lane after another.
fn emit_store(asm: &mut Assembler, from: Register, access: Lanes, back: Label) {
    let Lanes { address, distance, mask } = access;
    let lane = asm.label();
    let (addresses, values) = (RESCUE, RESCUE + VECTOR);
    asm.two(Code::VEX_Vmovmskps_r32_ymm, Register::ECX, Rm::Register(mask));
    asm.push(Instruction::with2(Code::Test_rm32_r32, Register::ECX, Register::ECX));
    asm.branch(Code::Je_rel32_64, back);
    asm.two(Code::Mov_r64_rm64, Register::RAX, Rm::Memory(at_base(STATE, place::WINDOW)));
    asm.store(Code::VEX_Vmovaps_ymmm256_ymm, at_base(Register::RSP, addresses), address);
    asm.store(Code::VEX_Vmovaps_ymmm256_ymm, at_base(Register::RSP, values), from);
    let part = |start: i32| {
        MemoryOperand::with_base_index_scale_displ_size(Register::RSP, Register::RDX, 4, start.into(), 1)
    };
    asm.bind(lane);
    asm.three_of(Code::Tzcnt_r32_rm32, Register::EDX, Register::ECX);
    asm.two(Code::Mov_r32_rm32, WORD, Rm::Memory(part(values)));
    asm.two(Code::Mov_r32_rm32, Register::EDX, Rm::Memory(part(addresses)));
    asm.store(Code::Mov_rm32_r32, at(Register::RAX, Register::RDX, distance), WORD);
    asm.three_of(Code::VEX_Blsr_r32_rm32, Register::ECX, Register::ECX);
    asm.branch(Code::Jne_rel32_64, lane);
}

/// The call of a rescuer.
fn emit_rescue(asm: &mut Assembler, shared: Label, with: Function, given: &[Rm; 4], value: Register) {
    let part = |number: i32| at_base(Register::RSP, RESCUE + VECTOR * number);
    asm.store(Code::VEX_Vmovaps_ymmm256_ymm, part(4), value);
    for (number, given) in given.iter().enumerate() {
        let from = match given {
            Rm::Register(register) => *register,
            // The value is in the frame already: its register is free.
            Rm::Memory(_) => {
                asm.two(Code::VEX_Vmovaps_ymm_ymmm256, value, *given);
                value
            }
        };
        asm.store(Code::VEX_Vmovaps_ymmm256_ymm, part(number as i32), from);
    }
    asm.push(Instruction::with2(Code::Mov_r64_imm64, Register::RAX, with.0 as u64));
    asm.branch(Code::Call_rel32_64, shared);
    asm.two(Code::VEX_Vmovaps_ymm_ymmm256, value, Rm::Memory(part(4)));
}

/// What the calls of rescuers share.
fn emit_shared(asm: &mut Assembler, shared: Label) {
    asm.bind(shared);
    // The return address lies below the frame.
    let kept = |number: usize| at_base(Register::RSP, 8 + KEPT + VECTOR * number as i32);
    for number in 0..16 {
        asm.store(Code::VEX_Vmovaps_ymmm256_ymm, kept(number), ymm(number));
    }
    let numbers = || GATHERED.into_iter().chain([SHIFT]).zip((8 + KEPT_NUMBERS..).step_by(8));
    for (register, place) in numbers() {
        asm.store(Code::Mov_rm64_r64, at_base(Register::RSP, place), register);
    }
    asm.two(Code::Lea_r64_m, Register::RDI, Rm::Memory(at_base(Register::RSP, 8 + RESCUE)));
    asm.number(Code::Sub_rm64_imm8, Rm::Register(Register::RSP), 8);
    leave_mode(asm, true);
    asm.push(Instruction::with1(Code::Call_rm64, Register::RAX));
    enter_mode(asm, true);
    asm.number(Code::Add_rm64_imm8, Rm::Register(Register::RSP), 8);
    for number in 0..16 {
        asm.two(Code::VEX_Vmovaps_ymm_ymmm256, ymm(number), Rm::Memory(kept(number)));
    }
    for (register, place) in numbers() {
        asm.two(Code::Mov_r64_rm64, register, Rm::Memory(at_base(Register::RSP, place)));
    }
    asm.plain(Code::Retnq);
}

/// The code's floating point modes, where they are asked.
pub(crate) fn enter_mode(asm: &mut Assembler, floats: bool) {
    if floats {
        asm.push(Instruction::with1(Code::VEX_Vldmxcsr_m32, at_base(STATE, place::MODE)));
    }
}

/// The host's, and no upper halves of registers in use.
pub(crate) fn leave_mode(asm: &mut Assembler, floats: bool) {
    asm.plain(Code::VEX_Vzeroupper);
    if floats {
        asm.push(Instruction::with1(Code::VEX_Vldmxcsr_m32, at_base(STATE, place::HOST_MODE)));
    }
}

/// The lower half of a register.
fn xmm(ymm: Register) -> Register {
    Register::XMM0 + (ymm as u32 - Register::YMM0 as u32)
}

fn ymm(number: usize) -> Register {
    Register::YMM0 + number as u32
}
