//! Programs of Mesa's nv50 compiler that address s[] wrongly, and the same programs with the addresses that are meant.
//!
//! s[] begins with 0x14 bytes that the hardware and the driver write; arguments of a kernel follow, then variables. The compiler
//! counts arguments and variables from 0 on, each by themselves (F2), and gives loads of arguments that it does not fold into
//! another instruction the form of a shader's inputs: without the type of the access, and with the offset divided by its size
//! (F5). Source: Mesa 22.3.6 and 25.0.7, `src/nouveau/codegen`: `nv50_ir_from_nir.cpp` (`Converter::visit`, which does not add
//! `inputOffset`), `nv50_ir_lowering_nv50.cpp` (`NV50LoweringPreSSA::handleRDSV`, `handleLDST`), `nv50_ir_emit_nv50.cpp`
//! (`CodeEmitterNV50::emitLOAD`).
//!
//! Two more faults lose bits. A load without a type, and an operand in s[] of another instruction, have five bits for an offset; the
//! compiler writes seven, of which two fall on the bits of the type (`setSrc`, `srcAddr16`; `TargetNV50::insnCanLoad` allows 127).
//! Values of 8 and 16 bits live in registers of 32 bits (`Converter::convert` of a `nir_ssa_def`), but their numbers are written
//! where the instruction has the number of a half register (F6). Counts of shifts are meant modulo 32 (F9, `emitShift`).
//! Conversions to 8 and 16 bits are meant to drop bits, and the chip saturates (F10). Comparisons and shifts of 64 bits are written as
//! those of 16 bits (F17).
//!
//! The form of an operand shows its meaning:
//!
//! | operand | means |
//! |---|---|
//! | `cvt` or `ld` of u16 s\[0x2\] to s\[0x12\] | a word of hardware or driver, at this offset |
//! | `mov` of s[], 32 bits | an argument; the type is bits 5 and 6 of the number of its word |
//! | `mov` of s[], 16 bits | a small argument; what reads it next has the type |
//! | folded into another instruction, within the arguments | an argument |
//! | all others, stores, locks, and with an address register | a variable |
//!
//! Where several places have the same bits, one within the arguments is taken unless the program stores to one at a fixed
//! offset, and [`ProgramFault::Ambiguous`] says so.

use std::borrow::Cow;
use std::collections::HashSet;

use crate::arith::Arith;
use crate::code::Code;
use crate::decode::decode;
use crate::inst::{Access, Base, Chip, Dst, Guard, Half, Inst, Mem, Memory, Op, Operand, Space, Stage};
use crate::lane::convert::{Integer, Size};
use crate::lane::integer::{Addition, Product};
use crate::lane::{Modifiers, Width};

/// Bytes that hardware and driver write.
const HEADER: i32 = 0x14;

/// The parts of a launch on which the addresses of a program depend.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DriverFixes {
    /// Bytes of the arguments, without those that the driver itself adds.
    pub argument_bytes: u32,
    /// Bytes of s[] of a block, with everything in it.
    pub shared_bytes: u32,
}

impl DriverFixes {
    /// The name of these fixes in launch files, and of the option of `drm`.
    pub const NAME: &str = "nv50-compute";
}

/// A fault of a program.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ProgramFault {
    /// F2: a variable or an argument is addressed from s\[0x0\] on.
    Offset,
    /// F5: an argument is loaded in a form without a type.
    Form,
    /// F6: the number of a 32-bit register is in the field of a half register.
    Half,
    /// F10: a conversion to fewer bits is meant without saturation.
    Saturates,
    /// F9: a count of a shift is meant modulo 32.
    Shift,
    /// F17: a comparison or a shift of 64 bits is written as one of 16.
    Long,
    /// An operand may mean several places.
    Ambiguous,
}

/// The meaning of an operand in s[].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Meaning {
    /// A word of hardware or driver.
    Header,
    /// An argument at a byte, folded.
    Argument { at: i32, access: Access, sure: bool },
    /// The argument with this number, in units of its size, in the form of a shader's input.
    Input { number: i32 },
    /// An argument with an index, which is at the place that is meant.
    Indexed,
    /// A variable at a byte after the base.
    Variable { at: i32, access: Access, sure: bool },
}

/// The arguments and variables of a program in s[], as far as its instructions show them.
#[derive(Debug)]
struct SharedLayout<'a> {
    code: &'a Code,
    fixes: DriverFixes,
    /// The lowest offset of a variable that shows, if one does.
    lowest: Option<i32>,
    /// Words that are stored at fixed offsets.
    stored: HashSet<i32>,
    /// Arguments of 32 bits that are loaded in the form of a shader's input, by their bytes.
    loaded: HashSet<i32>,
    /// Arguments that are pointers.
    pointers: HashSet<i32>,
    /// Places of loads of arguments with an index.
    indexed: &'a [usize],
}

impl<'a> SharedLayout<'a> {
    fn of(code: &'a Code, indexed: &'a [usize], fixes: DriverFixes) -> SharedLayout<'a> {
        let mut found = SharedLayout {
            code,
            fixes,
            indexed,
            // Without arguments, variables begin at 0; rusticl leaves as many bytes before them as they have.
            lowest: (fixes.argument_bytes == 0).then_some(0),
            stored: HashSet::new(),
            loaded: HashSet::new(),
            pointers: HashSet::new(),
        };
        // For each register, the number that the last instruction before has added for it.
        let mut added: [Option<i32>; 256] = [None; 256];
        for (place, inst) in insts(code) {
            let offset = match (inst.op, inst.src) {
                (Op::Arith(Arith::ShlA), [Operand::R32(register), ..]) => added[usize::from(register)],
                (Op::Memory(_), [Operand::Mem(mem), ..])
                    if mem.space == Space::Shared && mem.base == Base::A(0) && !is_header(inst, &mem) =>
                {
                    if matches!(inst.op, Op::Memory(Memory::St)) {
                        found.stored.insert(mem.offset & !3);
                    }
                    Some(mem.offset)
                }
                _ => None,
            };
            found.lowest = found.lowest.into_iter().chain(offset).min();
            let Dst::R32(register) = inst.dst else { continue };
            added[usize::from(register)] = match (inst.op, inst.src) {
                (Op::Arith(Arith::Add { .. }), [Operand::R32(_), Operand::Imm(number), _]) => {
                    Some(number as i32)
                }
                _ => None,
            };
            let Some(mem) = inst.src[0].mem().filter(|mem| mem.space == Space::Shared) else { continue };
            if is_input(inst) {
                found.loaded.insert(4 * input_number(code, place));
            }
            if !becomes_address(code, place, register) {
                continue;
            }
            if is_input(inst) {
                found.pointers.insert(4 * input_number(code, place));
            } else if let [at] = found.within(mem, Access::B32)[..] {
                found.pointers.insert(at);
            }
        }
        found
    }

    /// Returns the places within the arguments that an operand may mean.
    fn within(&self, mem: &Mem, access: Access) -> Vec<i32> {
        let is_argument = |at: &i32| *at as u32 + access.bytes() <= self.fixes.argument_bytes;
        candidates(mem, access).into_iter().filter(is_argument).collect()
    }

    /// Bytes of variables, at most.
    fn variable_bytes(&self) -> u32 {
        self.fixes.shared_bytes.saturating_sub(HEADER as u32 + self.fixes.argument_bytes)
    }

    fn meaning(&self, place: usize, inst: &Inst, mem: &Mem) -> Meaning {
        if is_header(inst, mem) {
            return Meaning::Header;
        }
        if self.indexed.contains(&place) {
            return Meaning::Indexed;
        }
        if is_input(inst) {
            return Meaning::Input { number: input_number(self.code, place) };
        }
        let access = folded_access(inst, mem);
        if mem.base != Base::A(0) || mem.increment || matches!(inst.op, Op::Memory(_)) {
            let at = mem.offset / mem.access.bytes() as i32 * access.bytes() as i32;
            return Meaning::Variable { at, access, sure: true };
        }
        let mut within = self.within(mem, access);
        let is_variable = |at: &i32| {
            self.lowest.is_some_and(|lowest| *at >= lowest)
                && *at as u32 + access.bytes() <= self.variable_bytes()
        };
        let mut beyond = candidates(mem, access);
        beyond.retain(is_variable);
        let adds = matches!(inst.op, Op::Arith(Arith::Add { .. }));
        let is_address = adds && matches!(inst.dst, Dst::R32(to) if becomes_address(self.code, place, to));
        // The offsets of the grid are the last arguments, and are only added.
        let is_offset =
            |at: &i32| adds && *at + 12 >= self.fixes.argument_bytes as i32 && !self.loaded.contains(at);
        if is_address && !within.is_empty() {
            beyond.clear();
        } else if within.iter().any(is_offset)
            && (adds_to_block(self.code, place, inst) || !beyond.iter().any(|at| self.stored.contains(at)))
        {
            within.retain(is_offset);
            beyond.clear();
        } else if !matches!(inst.op, Op::Arith(Arith::Set { .. })) {
            within.retain(|at| !self.pointers.contains(at) && !self.pointers.contains(&(at & !3)));
        }
        let sure = within.len() + beyond.len() == 1;
        let unread = within.iter().find(|at| !self.loaded.contains(&(**at & !3)));
        let stored = beyond.iter().find(|at| self.stored.contains(&(**at & !3)));
        match (stored, unread.or(within.first())) {
            (None, Some(at)) => Meaning::Argument { at: *at, access, sure },
            (at, _) => {
                let at = *at.or(beyond.first()).unwrap_or(&mem.offset);
                Meaning::Variable { at, access, sure }
            }
        }
    }
}

/// The instructions of a program with their places.
fn insts(code: &Code) -> impl Iterator<Item = (usize, &Inst)> {
    code.slots().enumerate().filter_map(|(place, inst)| Some((place, inst?)))
}

/// Whether the number that an instruction has in a register becomes an address of g[] or s[]: additions and copies are followed, through the
/// program and once from its begin on.
fn becomes_address(code: &Code, place: usize, register: u8) -> bool {
    let mut holders = vec![register];
    let words = code.words().len();
    for inst in (place + 1..words).chain(0..place).filter_map(|place| code.slot(place)) {
        let holds = |operand: &Operand| matches!(operand, Operand::R32(number) if holders.contains(number));
        let addresses = |operand: &Operand| {
            operand.mem().is_some_and(|mem| matches!(mem.base, Base::R(number) if holders.contains(&number)))
        };
        let is_local = matches!(inst.op, Op::Arith(Arith::ShlA)) && holds(&inst.src[0]);
        if is_local || inst.src.iter().any(addresses) {
            return true;
        }
        let Dst::R32(to) = inst.dst else { continue };
        let passes = matches!(inst.op, Op::Arith(Arith::Add { .. } | Arith::Mov { .. }));
        match (passes && inst.src.iter().any(holds), inst.guard == Guard::ALWAYS) {
            (true, _) => holders.push(to),
            (false, true) => holders.retain(|holder| *holder != to),
            (false, false) => {}
        }
        if holders.is_empty() {
            return false;
        }
    }
    false
}

/// Whether an instruction adds to the first work-item of a block, which comes from the number of the block: the offset of the grid is
/// added to it.
fn adds_to_block(code: &Code, place: usize, inst: &Inst) -> bool {
    let mut holders: HashSet<u8> = HashSet::new();
    let holds = |holders: &HashSet<u8>, operand: &Operand| match operand {
        Operand::R32(number) => holders.contains(number),
        Operand::R16(Half(number)) => holders.contains(&(number / 2)),
        _ => false,
    };
    for before in (0..place).filter_map(|place| code.slot(place)) {
        let Dst::R32(to) = before.dst else { continue };
        let is_block = |mem: &Mem| is_header(before, mem) && mem.offset >= 0xc;
        let counts = matches!(
            before.op,
            Op::Arith(Arith::Add { .. } | Arith::Mul { .. } | Arith::Mad { .. } | Arith::Shl { .. })
        );
        let mut shared = operands(before).map(|(_, mem)| mem);
        let passes = counts && shared.clone().next().is_none();
        if shared.any(|mem| is_block(&mem)) || passes && before.src.iter().any(|src| holds(&holders, src)) {
            holders.insert(to);
        } else if before.guard == Guard::ALWAYS {
            holders.remove(&to);
        }
    }
    inst.src.iter().any(|src| holds(&holders, src))
}

/// Whether an operand is a word of hardware or driver.
fn is_header(inst: &Inst, mem: &Mem) -> bool {
    let widens =
        matches!(inst.op, Op::Arith(Arith::I2I { .. } | Arith::I2F32 { .. }) | Op::Memory(Memory::Ld));
    widens && mem.access == Access::U16 && mem.base == Base::A(0) && (2..HEADER).contains(&mem.offset)
}

/// Whether an instruction has the form of a load of a shader's input.
fn is_input(inst: &Inst) -> bool {
    let mem = inst.src[0].mem();
    matches!(inst.op, Op::Arith(Arith::Mov { .. }))
        && mem.is_some_and(|mem| mem.space == Space::Shared && mem.base == Base::A(0) && !mem.increment)
}

/// Returns the number of an argument that an instruction loads in the form of a shader's input. `srcAddr16` writes 15 bits of it, of which bits
/// 5 and 6 are at the place of the type, and the next ones where the form has none.
fn input_number(code: &Code, place: usize) -> i32 {
    (code.words()[place] >> 9 & 0x7fff) as i32
}

/// The bits that a type has. A signed byte has the bits of a 32-bit word, because `CodeEmitterNV50::setSrcFileBits` has no case
/// for it.
fn mode(access: Access) -> i32 {
    match access {
        Access::U16 => 1,
        Access::S16 => 2,
        Access::B32 | Access::S8 => 3,
        _ => 0,
    }
}

/// The type that the compiler means for an operand that is folded into an instruction.
fn folded_access(inst: &Inst, mem: &Mem) -> Access {
    match inst.op {
        Op::Arith(Arith::I2I { from, .. } | Arith::I2F32 { from, .. }) => match from {
            Integer { size: Size::B8, signed: false } => Access::U8,
            Integer { size: Size::B8, signed: true } => Access::S8,
            Integer { size: Size::B16, signed: false } => Access::U16,
            Integer { size: Size::B16, signed: true } => Access::S16,
            Integer { size: Size::B32, .. } => Access::B32,
        },
        Op::Arith(Arith::Mul { .. } | Arith::Mad { .. }) if mem.access == Access::B32 => {
            if is_short_product(inst) { Access::U16 } else { Access::B32 }
        }
        _ => mem.access,
    }
}

/// Offsets, in ascending order, that the compiler writes as the bits of this operand.
fn candidates(mem: &Mem, access: Access) -> Vec<i32> {
    let low = mem.offset / mem.access.bytes() as i32;
    let (meant, written) = (mode(access), mode(mem.access));
    // The compiler combines the type's bits with those of the offset.
    let high = (0..4).filter(|bits| bits | meant == written);
    high.map(|bits| (low + 32 * bits) * access.bytes() as i32).collect()
}

/// Whether a product is one of 16-bit numbers.
fn is_short_product(inst: &Inst) -> bool {
    let Op::Arith(Arith::Mul { product } | Arith::Mad { product, .. }) = inst.op else { return false };
    matches!(product, Product::Bits16 { .. })
}

/// The operands in s[] of an instruction, by their numbers.
fn operands(inst: &Inst) -> impl Iterator<Item = (usize, Mem)> + Clone + use<> {
    let of = |(number, operand): (usize, &Operand)| Some((number, *operand.mem()?));
    let all: Vec<(usize, Mem)> = inst.src.iter().enumerate().filter_map(of).collect();
    all.into_iter().filter(|(_, mem)| mem.space == Space::Shared)
}

/// Returns the program with the addresses that are meant.
pub fn fixed(code: &Code, fixes: DriverFixes) -> Code {
    let arguments = fixes.argument_bytes;
    let (code, indexed) = &with_indexed_arguments(code);
    let places = SharedLayout::of(code, indexed, fixes);
    let map = |place: usize, inst: &Inst| {
        let mut inst = *inst;
        for (number, mut mem) in operands(&inst) {
            match places.meaning(place, &inst, &mem) {
                Meaning::Header | Meaning::Indexed => continue,
                Meaning::Argument { at, access, .. } => (mem.offset, mem.access) = (at + HEADER, access),
                Meaning::Variable { at, access, .. } => {
                    (mem.offset, mem.access) = (at + HEADER + arguments as i32, access);
                }
                Meaning::Input { number } => {
                    mem.access = input_access(code, place, inst.dst).unwrap_or(Access::U8);
                    mem.offset = number * mem.access.bytes() as i32 + HEADER;
                }
            }
            inst.src[number] = Operand::Mem(mem);
        }
        if let (true, Op::Arith(Arith::Shl { wrap, .. } | Arith::Shr { wrap, .. })) =
            (is_shift(&inst), &mut inst.op)
        {
            *wrap = true;
        }
        if arguments > 0
            && let Some(register) = truncates(&inst)
        {
            inst.op = Op::Arith(Arith::Mov { width: Width::B32 });
            inst.dst = Dst::R32(register);
        }
        let long = arguments > 0 && is_long(code, place, &inst);
        if long {
            take_lower_words(&mut inst);
        }
        if arguments > 0
            && !long
            && (has_small_values(&inst)
                || is_of_16_bits(&inst)
                || is_product_of_small_values(code, place, &inst))
        {
            let whole = |half: Half| Half(half.0.wrapping_mul(2));
            for operand in &mut inst.src {
                if let Operand::R16(half) = operand {
                    *operand = Operand::R16(whole(*half));
                }
            }
            if let Dst::R16(half) = inst.dst {
                inst.dst = Dst::R16(whole(half));
            }
        }
        inst
    };
    code.mapped(map)
}

/// Returns whether words are a load of a 32-bit attribute with an address register. Only vertex programs have it; in a compute program, the
/// compiler means an argument with an index (F5).
pub fn is_indexed_argument(words: [u32; 2], chip: Chip) -> bool {
    let Ok(inst) = decode(words, chip, Stage::Vertex) else { return false };
    let indexed = inst.src[0].mem().is_some_and(|mem| {
        matches!(mem.base, Base::A(1..)) && !mem.increment && mem.space == Space::Attribute
    });
    let loads = matches!((inst.op, inst.dst), (Op::Memory(Memory::Ld), Dst::R32(_)));
    indexed && loads && decode(words, chip, Stage::Compute).is_err()
}

/// Returns the program with loads of 32-bit arguments where the compiler writes loads of an attribute with an address register (F5), and
/// their places.
fn with_indexed_arguments(code: &Code) -> (Cow<'_, Code>, Vec<usize>) {
    let mut words = code.words().to_vec();
    let mut places = Vec::new();
    for (pair, words) in words.chunks_exact_mut(2).enumerate() {
        if !is_indexed_argument([words[0], words[1]], code.chip()) {
            continue;
        }
        // The form of s[], whose offset counts words as well, from the header on.
        words[0] = (words[0] | 0x1000_0000).wrapping_add((HEADER as u32 / 4) << 9);
        words[1] = words[1] & !0x0023_c000 | 0x4000_c000;
        places.push(2 * pair);
    }
    let code = match places[..] {
        [] => Cow::Borrowed(code),
        _ => Cow::Owned(Code::reachable(&words, code.base(), code.stage(), code.chip())),
    };
    (code, places)
}

/// The register of 32 bits for a number that is meant without its upper bits (F10): what reads it takes the lower ones. The chip's
/// conversion saturates.
fn truncates(inst: &Inst) -> Option<u8> {
    let Op::Arith(Arith::I2I { to, from, .. }) = inst.op else { return None };
    let Dst::R16(Half(register)) = inst.dst else { return None };
    let plain = inst.modifiers[0] == Modifiers::default() && inst.cdst.is_none();
    (from.size == Size::B32 && to.size != Size::B32 && plain).then_some(register)
}

/// Whether an instruction shifts 32 bits by a register (F9): NIR takes the count modulo 32, and the compiler emits no `and` for it.
fn is_shift(inst: &Inst) -> bool {
    let width = match inst.op {
        Op::Arith(Arith::Shl { width, .. } | Arith::Shr { width, .. }) => width,
        _ => return false,
    };
    width == Width::B32 && !matches!(inst.src[1], Operand::Imm(_))
}

/// Whether an instruction has values of 8 or 16 bits of OpenCL C as its half registers (F6). The compiler computes with them in 32 bits, and
/// makes products of them ([`is_product_of_small_values`]).
fn has_small_values(inst: &Inst) -> bool {
    let halves = matches!(inst.dst, Dst::R16(_)) || inst.src.iter().any(|src| matches!(src, Operand::R16(_)));
    let small = matches!(
        inst.op,
        Op::Memory(_)
            | Op::Arith(
                Arith::Mov { width: Width::B16 }
                    | Arith::I2I { .. }
                    | Arith::I2F32 { .. }
                    | Arith::F2I { .. }
                    | Arith::F2F32 { .. }
                    | Arith::F2F16 { .. }
            )
    );
    halves && small
}

/// Whether an instruction compares or shifts integers of 16 bits, as its words say.
fn is_of_16_bits(inst: &Inst) -> bool {
    let (Op::Arith(Arith::Set { width, .. })
    | Op::Arith(Arith::Shl { width, .. })
    | Op::Arith(Arith::Shr { width, .. })) = inst.op
    else {
        return false;
    };
    width == Width::B16
}

/// Whether an instruction of 16 bits is meant for 64 (F17): `emitSET` and `emitShift` have no other form, and write the numbers of the
/// first registers of two pairs. Values of 16 bits come from instructions that [`has_small_values`] names.
fn is_long(code: &Code, place: usize, inst: &Inst) -> bool {
    let is_pair = |operand: &Operand| {
        let Operand::R16(Half(number)) = *operand else { return false };
        let mut before = (0..place).rev().filter_map(|place| code.slot(place));
        let writes = |inst: &&Inst| match inst.dst {
            Dst::R32(register) => register == number,
            Dst::R16(Half(register)) => register == number && has_small_values(inst),
            _ => false,
        };
        // The compiler writes 63 for a zero.
        (number % 2 == 0 || number == 63)
            && before.find(writes).is_none_or(|writer| !has_small_values(writer))
    };
    let [first, second, _] = &inst.src;
    is_of_16_bits(inst) && is_pair(first) && (is_pair(second) || matches!(second, Operand::Imm(_)))
}

/// Makes an instruction that is meant for 64 bits one of the lower 32. The compiler adds these alone. Its comparisons do not show
/// whether they are signed; they are taken as signed.
fn take_lower_words(inst: &mut Inst) {
    for operand in &mut inst.src {
        if let Operand::R16(Half(register)) = *operand {
            *operand = Operand::R32(register);
        }
    }
    if let Dst::R16(Half(register)) = inst.dst {
        inst.dst = Dst::R32(register);
    }
    match &mut inst.op {
        Op::Arith(Arith::Set { width, signed, .. }) => (*width, *signed) = (Width::B32, true),
        Op::Arith(Arith::Shl { width, .. } | Arith::Shr { width, .. }) => *width = Width::B32,
        _ => {}
    }
}

/// Whether a product is one of values of 16 bits of OpenCL C (F6), and not a part of a product of 32 bits. The compiler splits the latter:
/// it shifts the sum of the products with an upper half by 16, and adds the product of the lower halves. For the upper word, it adds
/// the product of the upper halves with a carry.
fn is_product_of_small_values(code: &Code, place: usize, inst: &Inst) -> bool {
    let by_16 = |inst: &Inst| {
        matches!(inst.op, Op::Arith(Arith::Shl { .. } | Arith::Shr { .. }))
            && matches!(inst.src[1], Operand::Imm(16))
    };
    let Dst::R32(mut sum) = inst.dst else { return false };
    if !is_short_product(inst) || !inst.src.iter().any(|src| matches!(src, Operand::R16(_))) {
        return false;
    }
    let before = (0..place).rev().filter_map(|place| code.slot(place));
    let after = (place + 1..code.words().len()).filter_map(|place| code.slot(place));
    if let Op::Arith(Arith::Mad { addition, .. }) = inst.op {
        let shifted = match inst.src[2] {
            Operand::R32(addend) => {
                before.into_iter().find(|inst| inst.dst == Dst::R32(addend)).is_some_and(by_16)
            }
            _ => false,
        };
        if shifted || addition == Addition::Addc {
            return false;
        }
    }
    for next in after {
        if next.src.contains(&Operand::R32(sum)) {
            match next.dst {
                _ if by_16(next) => return false,
                Dst::R32(register) if is_short_product(next) => sum = register,
                _ => return true,
            }
        } else if next.dst == Dst::R32(sum) {
            return true;
        }
    }
    true
}

/// The type of an argument that is loaded to `dst` at a place: what the next instruction takes it for. `None` if none reads it.
fn input_access(code: &Code, place: usize, dst: Dst) -> Option<Access> {
    let Dst::R16(Half(register)) = dst else { return Some(Access::B32) };
    // The registers that have the value.
    let mut holders = vec![register];
    for (place, inst) in (place + 1..code.words().len()).filter_map(|place| Some((place, code.slot(place)?)))
    {
        let reads = |src: &Operand| match src {
            Operand::R16(Half(number)) | Operand::R32(number) => holders.contains(number),
            _ => false,
        };
        let written = match inst.dst {
            Dst::R16(Half(number)) if has_small_values(inst) => Some(number),
            Dst::R32(number) => Some(number),
            _ => None,
        };
        let bytes = |size: Size| if size == Size::B8 { Access::U8 } else { Access::U16 };
        match inst.op {
            Op::Arith(Arith::I2I { from, .. } | Arith::I2F32 { from, .. }) if reads(&inst.src[0]) => {
                return Some(bytes(from.size));
            }
            Op::Memory(Memory::St) if inst.src[1..].iter().any(reads) => {
                let byte = inst.src[0].mem().is_some_and(|mem| mem.access.bytes() == 1);
                return Some(if byte { Access::U8 } else { Access::U16 });
            }
            Op::Arith(Arith::Mov { .. }) if reads(&inst.src[0]) => {
                holders.extend(written);
                continue;
            }
            Op::Arith(Arith::F2F32 { .. } | Arith::F2I { .. }) if reads(&inst.src[0]) => {
                return Some(Access::U16);
            }
            Op::Arith(Arith::Mul { .. } | Arith::Mad { .. })
                if inst.src[..2].iter().any(reads) && is_product_of_small_values(code, place, inst) =>
            {
                return Some(Access::U16);
            }
            _ => {}
        }
        holders.retain(|holder| Some(*holder) != written);
        if holders.is_empty() {
            break;
        }
    }
    None
}

/// Returns the faults of a program, each with the place of the first instruction that has it.
pub fn faults(code: &Code, fixes: DriverFixes) -> Vec<(ProgramFault, usize)> {
    let mut found: Vec<(ProgramFault, usize)> = Vec::new();
    let mut add = |fault: ProgramFault, place: usize| {
        if !found.iter().any(|(known, _)| *known == fault) {
            found.push((fault, place));
        }
    };
    let (code, indexed) = &with_indexed_arguments(code);
    if let [first, ..] = indexed[..] {
        add(ProgramFault::Form, first);
    }
    let places = SharedLayout::of(code, indexed, fixes);
    for (place, inst) in insts(code) {
        for (_, mem) in operands(inst) {
            match places.meaning(place, inst, &mem) {
                Meaning::Header | Meaning::Indexed => {}
                Meaning::Input { .. } => {
                    add(ProgramFault::Form, place);
                    if input_access(code, place, inst.dst).is_none() {
                        add(ProgramFault::Ambiguous, place);
                    }
                }
                Meaning::Argument { sure, .. } | Meaning::Variable { sure, .. } => {
                    add(ProgramFault::Offset, place);
                    if !sure {
                        add(ProgramFault::Ambiguous, place);
                    }
                }
            }
        }
        if fixes.argument_bytes > 0 && is_long(code, place, inst) {
            add(ProgramFault::Long, place);
        }
        if fixes.argument_bytes > 0 && truncates(inst).is_some() {
            add(ProgramFault::Saturates, place);
        }
        if is_shift(inst) {
            add(ProgramFault::Shift, place);
        }
        if fixes.argument_bytes > 0
            && (has_small_values(inst) || is_product_of_small_values(code, place, inst))
        {
            add(ProgramFault::Half, place);
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::text::assemble;

    fn code(text: &str) -> Code {
        let words = assemble(text, Chip::Gt215, Stage::Compute).unwrap().words();
        Code::reachable(&words, 0, Stage::Compute, Chip::Gt215)
    }

    fn fixes(argument_bytes: u32) -> DriverFixes {
        DriverFixes { argument_bytes, shared_bytes: 0x200 }
    }

    /// Returns the operands in s[] of a program after the fix.
    fn places(code: &Code, argument_bytes: u32) -> Vec<(Access, i32)> {
        let fixed = fixed(code, fixes(argument_bytes));
        let mut all = Vec::new();
        let mut place = 0;
        while let Some(inst) = fixed.slot(place) {
            all.extend(operands(inst).map(|(_, mem)| (mem.access, mem.offset)));
            place += inst.form.words() as usize;
        }
        all
    }

    /// Captured from rusticl: `k(__global uint *o, uint n)`.
    #[test]
    fn arguments_lie_behind_the_words_of_hardware_and_driver() {
        let words = [0x2000_c001, 0x0420_0780];
        let inst = decode(words, Chip::Gt215, Stage::Compute).unwrap();
        let code = Code::of(&words, 0, (Stage::Compute, Chip::Gt215), &[(0, inst)]);
        assert_eq!(places(&code, 0x1c), [(Access::B32, 0x14)]);
        let faults = faults(&code, fixes(0x1c));
        assert_eq!(faults, [(ProgramFault::Offset, 0)]);
    }

    /// Captured from rusticl: `k(global uint *o, uchar c, short s)`. What reads a small argument has its type, and the numbers of
    /// the half registers are those of registers: 1 and 2.
    #[test]
    fn loads_in_the_form_of_inputs_get_their_type() {
        let code = code(
            "mov b16 $r0h u8 s[0x4]
             mov b16 $r1l u8 s[0x3]
             mov b32 $r3 u16 s[0x2]
             cvt u32 $r1 u8 $r1
             cvt s32 $r2 s16 $r1l
             exit nop",
        );
        let all = [(Access::U8, 0x18), (Access::U16, 0x1a), (Access::B32, 4 * 33 + 0x14)];
        assert_eq!(places(&code, 0x100), all);
        let names: Vec<ProgramFault> =
            faults(&code, fixes(0x100)).into_iter().map(|(fault, _)| fault).collect();
        assert_eq!(names, [ProgramFault::Form, ProgramFault::Half]);
        let fixed = fixed(&code, fixes(0x100));
        let halves = fixed.slots().flatten().filter_map(|inst| match (inst.dst, inst.src[0]) {
            (Dst::R16(half), _) | (_, Operand::R16(half)) => Some(half.0),
            _ => None,
        });
        assert_eq!(halves.collect::<Vec<_>>(), [2, 4, 4]);
    }

    /// Captured from rusticl: a `char` at byte 198 of the arguments, of which bit 7 is where the form has none.
    #[test]
    fn numbers_of_small_arguments_have_15_bits() {
        let number = 198;
        let words = [0x1000_0005 | number << 9, 0x0020_0780, 0xf000_0001, 0xe000_0001];
        let code = Code::reachable(&words, 0, Stage::Compute, Chip::Gt215);
        assert_eq!(places(&code, 0x100), [(Access::U8, 198 + 0x14)]);
    }

    /// Captured from rusticl: `s.e[i & 7]` of an argument that is a structure.
    #[test]
    fn arguments_with_an_index_are_loaded_from_shared_memory() {
        let words = [0x0400_0009, 0x0423_c780, 0xf000_0001, 0xe000_0001];
        let code = Code::reachable(&words, 0, Stage::Compute, Chip::Gt215);
        assert!(code.slot(0).is_none());
        let names: Vec<_> = faults(&code, fixes(0x100)).into_iter().map(|(fault, _)| fault).collect();
        assert_eq!(names, [ProgramFault::Form]);
        let fixed = fixed(&code, fixes(0x100));
        let meant = assemble("ld $r2 b32 s[$a1+0x14]", Chip::Gt215, Stage::Compute).unwrap().words();
        let meant = decode([meant[0], meant[1]], Chip::Gt215, Stage::Compute).unwrap();
        let load = fixed.slot(0).unwrap();
        assert_eq!((load.op, load.dst, load.src), (meant.op, meant.dst, meant.src));
    }

    /// Captured from rusticl: `a * (short)i + b` of two components, whose factors are registers 1 and 5, 2 and 5; and a product of
    /// 32 bits, which is split into three of halves.
    #[test]
    fn a_product_alone_is_one_of_small_values() {
        let code = code(
            "mov b16 $r0h u8 s[0x2]
             mov b16 $r1l u8 s[0x3]
             short mul $r7 u16 $r6l u16 $r5h
             short add $r7 (mul u16 $r6h $r5l) $r7
             shl b32 $r7 $r7 0x10
             add $r5 (mul u16 $r6l $r5l) $r7
             cvt u16 $r2h u32 $r5
             short add $r3 (mul u16 $r0h $r2h) $r3
             short add $r4 (mul u16 $r1l $r2h) $r4
             exit nop",
        );
        assert_eq!(places(&code, 0x40), [(Access::U16, 0x14 + 4), (Access::U16, 0x14 + 6)]);
        let fixed = fixed(&code, fixes(0x40));
        let factors = |inst: &Inst| match inst.src {
            [Operand::R16(a), Operand::R16(b), _] => Some([a.0, b.0]),
            _ => None,
        };
        let found: Vec<_> = fixed.slots().flatten().filter_map(factors).collect();
        assert_eq!(found, [[12, 11], [13, 10], [12, 10], [2, 10], [4, 10]]);
    }

    /// Captured from rusticl: the offset of the grid, at byte 0x10 of the arguments, and a variable of the same offset.
    #[test]
    fn the_offset_of_the_grid_is_added_to_the_first_item_of_a_block() {
        let code = code(
            "st b32 s[0x10] $r1
             cvt u32 $r1 u16 u16 s[0x2]
             cvt u32 $r2 u16 u16 s[0xc]
             mul $r1 u16 $r2l u16 $r1l
             add b32 $r1 $r1 $r0
             add b32 $r1 b32 s[0x10] $r1
             add b32 $r4 b32 s[0x10] $r3
             exit nop",
        );
        let header = [(Access::U16, 2), (Access::U16, 0xc)];
        let variable = (Access::B32, 0x10 + 0x1c + 0x14);
        let all = [variable, header[0], header[1], (Access::B32, 0x24), variable];
        assert_eq!(places(&code, 0x1c), all);
    }

    /// Captured from rusticl: `i < n` of `long` in registers 0 and 8, and of `ushort` in registers 2 and 4.
    #[test]
    fn comparisons_of_64_bits_take_the_lower_words() {
        let code = code(
            "mov b32 $r8 b32 s[0x0]
             add b32 $r0 $r0 $r8
             set $c0 # ge u16 $r0l $r4l
             ld u16 $r2 g0[$r1]
             mov b16 $r1l u8 s[0x2]
             mov b16 $r2l u8 s[0x3]
             set $r3l l u16 $r1l $r2l
             exit nop",
        );
        let fixed = fixed(&code, fixes(0x40));
        let sets = fixed.slots().flatten().filter(|inst| matches!(inst.op, Op::Arith(Arith::Set { .. })));
        let [long, small] = sets.map(|inst| (inst.op, inst.src[0], inst.src[1])).collect::<Vec<_>>()[..]
        else {
            panic!("two comparisons");
        };
        assert_eq!((long.1, long.2), (Operand::R32(0), Operand::R32(8)));
        assert!(matches!(long.0, Op::Arith(Arith::Set { width: Width::B32, signed: true, .. })));
        assert_eq!((small.1, small.2), (Operand::R16(Half(4)), Operand::R16(Half(8))));
        assert!(faults(&code, fixes(0x40)).iter().any(|(fault, _)| *fault == ProgramFault::Long));
    }

    /// `setSrc` combines bits 5 and 6 of the number of a word with those of its type.
    #[test]
    fn lost_bits_of_an_offset_are_found_where_one_place_fits() {
        let code = code(
            "mov b32 $r1 u16 s[0x0]
             add b32 $r2 b32 s[0x0] $r1
             ld b32 $r3 g0[$r2]
             cvt u32 $r4 u16 b32 s[0xc]
             exit nop",
        );
        // The pointer is at 0 or 0x80, and the latter is loaded elsewhere; the 16 bits at 0x86 or 0xc6.
        let all = [(Access::B32, 0x94), (Access::B32, 0x14), (Access::U16, 0x86 + 0x14)];
        assert_eq!(places(&code, 0x88), all);
        assert!(faults(&code, fixes(0x88)).iter().any(|(fault, _)| *fault == ProgramFault::Ambiguous));
    }

    #[test]
    fn counts_of_shifts_are_modulo_32_and_conversions_drop_bits() {
        let code = code("shl b32 $r1 $r2 $r3\ncvt u8 $r1l u32 $r4\nshl b32 $r1 $r2 0x2\nexit nop");
        let fixed = fixed(&code, fixes(8));
        let [shift, copy, constant] = [0, 2, 4].map(|place| fixed.slot(place).unwrap().op);
        assert!(matches!(shift, Op::Arith(Arith::Shl { wrap: true, .. })));
        assert!(matches!(copy, Op::Arith(Arith::Mov { .. })));
        assert!(matches!(constant, Op::Arith(Arith::Shl { wrap: false, .. })));
    }

    #[test]
    fn variables_lie_behind_the_arguments_and_header_words_stay() {
        let code = code(
            "cvt u32 $r1 u16 u16 s[0xc]
             ld $r2 b32 s[$a1+0x40]
             ld lock $c0 $r3 b32 s[0x0]
             st unlock b32 s[0x0] $r3
             exit nop",
        );
        let all = [
            (Access::U16, 0xc),
            (Access::B32, 0x40 + 0x14 + 8),
            (Access::B32, 0x14 + 8),
            (Access::B32, 0x14 + 8),
        ];
        assert_eq!(places(&code, 8), all);
        assert_eq!(faults(&code, fixes(8)), [(ProgramFault::Offset, 2)]);
    }

    #[test]
    fn a_place_that_is_stored_to_and_folded_is_ambiguous() {
        let code = code("st b32 s[0x4] $r1\nadd b32 $r0 b32 s[0x4] $r0\nexit nop");
        let names = |argument_bytes, shared_bytes| -> Vec<ProgramFault> {
            let fixes = DriverFixes { argument_bytes, shared_bytes };
            faults(&code, fixes).into_iter().map(|(fault, _)| fault).collect()
        };
        assert_eq!(names(8, 0x40), [ProgramFault::Offset, ProgramFault::Ambiguous]);
        assert_eq!(names(0, 0x40), [ProgramFault::Offset]);
        // Bits of a larger offset may be lost.
        assert_eq!(names(0, 0x200), [ProgramFault::Offset, ProgramFault::Ambiguous]);
    }
}
