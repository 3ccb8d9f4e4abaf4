//! The arguments and variables of a kernel in s[], and the meaning of an operand in s[].
//!
//! The form of an operand shows the meaning of the operand:
//!
//! | operand | meaning |
//! |---|---|
//! | `cvt` or `ld` of u16 s\[0x2\] to s\[0x12\] | a word of hardware or driver, at this offset |
//! | `mov` of s[], 32 bits | an argument; bits 5 and 6 of the argument's word number are the type |
//! | `mov` of s[], 16 bits | a small argument; the next instruction that reads the argument shows the type |
//! | folded into another instruction, within the arguments | an argument |
//! | all others, for example stores, locks, and operands with an address register | a variable |
//!
//! The bits of an operand may fit several addresses. If the program stores to a variable at one of these addresses, the
//! fix chooses the variable. Otherwise, it chooses an argument.
//! [`ProgramFault::Ambiguous`](super::ProgramFault::Ambiguous) reports every operand with several addresses.

use std::borrow::Cow;
use std::collections::HashSet;

use super::DriverFixes;
use super::values::{has_small_values, is_product_of_small_values, is_short_product};
use crate::arith::Arith;
use crate::code::Code;
use crate::decode::decode;
use crate::inst::{Access, Base, Chip, Dst, Guard, Half, Inst, Mem, Memory, Op, Operand, Space, Stage};
use crate::lane::convert::{Integer, Size};

/// Number of bytes at the start of s[] that the hardware and the driver write.
pub(super) const HEADER: i32 = 0x14;

/// The meaning of an operand in s[].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Meaning {
    /// A word that the hardware or the driver writes.
    Header,
    /// An argument at byte `at` of the arguments. The compiler folds the load of the argument into another instruction.
    /// `sure` means that the bits of the operand fit only this address.
    Argument { at: i32, access: Access, sure: bool },
    /// An argument that is loaded in the form of a shader's input. `number` is the argument's offset divided by the
    /// argument's size.
    Input { number: i32 },
    /// An argument that the program reads with an index. The fix does not change the address, because the compiler
    /// encodes this address correctly.
    Indexed,
    /// A variable at byte `at` after the arguments. `sure` means that the bits of the operand fit only this address.
    Variable { at: i32, access: Access, sure: bool },
}

/// The arguments and variables of a program in s[], as derived from the program's instructions.
#[derive(Debug)]
pub(super) struct SharedLayout<'a> {
    code: &'a Code,
    fixes: DriverFixes,
    /// The lowest known offset of a variable, in bytes.
    lowest: Option<i32>,
    /// Byte offsets of the words that the program stores at fixed offsets.
    stored: HashSet<i32>,
    /// Byte offsets of 32-bit arguments that are loaded in the form of a shader's input.
    loaded: HashSet<i32>,
    /// Byte offsets of the arguments that are pointers.
    pointers: HashSet<i32>,
    /// Word indices of the instructions that load an argument with an index.
    indexed: &'a [usize],
}

impl<'a> SharedLayout<'a> {
    pub(super) fn of(code: &'a Code, indexed: &'a [usize], fixes: DriverFixes) -> SharedLayout<'a> {
        let mut found = SharedLayout {
            code,
            fixes,
            indexed,
            // If the kernel has no arguments, its variables begin at 0. Otherwise, rusticl leaves a gap between the
            // arguments and the variables. The gap has as many bytes as the arguments.
            lowest: (fixes.argument_bytes == 0).then_some(0),
            stored: HashSet::new(),
            loaded: HashSet::new(),
            pointers: HashSet::new(),
        };
        // An entry for each register. If an addition of an immediate computed the present value of the register, the
        // entry is the immediate.
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

    /// Returns the offsets that lie within the arguments and fit the bits of an operand.
    fn within(&self, mem: &Mem, access: Access) -> Vec<i32> {
        let is_argument = |at: &i32| *at as u32 + access.bytes() <= self.fixes.argument_bytes;
        candidates(mem, access).into_iter().filter(is_argument).collect()
    }

    /// Returns the maximum size of the variables in bytes.
    fn variable_bytes(&self) -> u32 {
        self.fixes.shared_bytes.saturating_sub(HEADER as u32 + self.fixes.argument_bytes)
    }

    pub(super) fn meaning(&self, place: usize, inst: &Inst, mem: &Mem) -> Meaning {
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
        // The offsets of the grid are the last arguments. The compiler uses the offsets only in additions.
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

/// Returns the instructions of a program with their indices.
pub(super) fn insts(code: &Code) -> impl Iterator<Item = (usize, &Inst)> {
    code.slots().enumerate().filter_map(|(place, inst)| Some((place, inst?)))
}

/// An instruction writes a value to a register. Returns whether the value becomes an address of g[] or s[]. The search
/// follows additions and copies of the value. It covers the code from the instruction to the end of the program, and
/// then the code from the start of the program to the instruction.
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

/// Returns whether an instruction adds to a value that derives from the number of the block. From the block number, the
/// compiler computes the first work-item of the block. It then adds the offset of the grid.
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

/// Returns whether an operand is a word that the hardware or the driver writes.
fn is_header(inst: &Inst, mem: &Mem) -> bool {
    let widens =
        matches!(inst.op, Op::Arith(Arith::I2I { .. } | Arith::I2F32 { .. }) | Op::Memory(Memory::Ld));
    widens && mem.access == Access::U16 && mem.base == Base::A(0) && (2..HEADER).contains(&mem.offset)
}

/// Returns whether an instruction has the form of a load of a shader's input.
fn is_input(inst: &Inst) -> bool {
    let mem = inst.src[0].mem();
    matches!(inst.op, Op::Arith(Arith::Mov { .. }))
        && mem.is_some_and(|mem| mem.space == Space::Shared && mem.base == Base::A(0) && !mem.increment)
}

/// The instruction loads an argument in the form of a shader's input. Returns the argument's offset divided by the
/// argument's size. `srcAddr16` writes the lowest 15 bits of this quotient. Bits 5 and 6 overlap the type, and the form
/// has no field for the bits above bit 6.
fn input_number(code: &Code, place: usize) -> i32 {
    (code.words()[place] >> 9 & 0x7fff) as i32
}

/// Returns the bits that encode a type. A signed byte gets the bits of a 32-bit word, because
/// `CodeEmitterNV50::setSrcFileBits` has no case for a signed byte.
fn mode(access: Access) -> i32 {
    match access {
        Access::U16 => 1,
        Access::S16 => 2,
        Access::B32 | Access::S8 => 3,
        _ => 0,
    }
}

/// Returns the type that the compiler means for an operand that is folded into an instruction.
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

/// Returns, in ascending order, all offsets that the compiler encodes with the bits of this operand.
fn candidates(mem: &Mem, access: Access) -> Vec<i32> {
    let low = mem.offset / mem.access.bytes() as i32;
    let (meant, written) = (mode(access), mode(mem.access));
    // The compiler ORs the bits of the type with the upper bits of the offset.
    let high = (0..4).filter(|bits| bits | meant == written);
    high.map(|bits| (low + 32 * bits) * access.bytes() as i32).collect()
}

/// Returns the operands of an instruction that are in s[]. Each operand has its index among the sources.
pub(super) fn operands(inst: &Inst) -> impl Iterator<Item = (usize, Mem)> + Clone + use<> {
    let of = |(number, operand): (usize, &Operand)| Some((number, *operand.mem()?));
    let all: Vec<(usize, Mem)> = inst.src.iter().enumerate().filter_map(of).collect();
    all.into_iter().filter(|(_, mem)| mem.space == Space::Shared)
}

/// Returns whether the words encode a load of a 32-bit attribute with an address register. Only vertex programs have
/// this load. In a compute program, the compiler encodes the indexed load of an argument with these words (F5).
pub fn is_indexed_argument(words: [u32; 2], chip: Chip) -> bool {
    let Ok(inst) = decode(words, chip, Stage::Vertex) else { return false };
    let indexed = inst.src[0].mem().is_some_and(|mem| {
        matches!(mem.base, Base::A(1..)) && !mem.increment && mem.space == Space::Attribute
    });
    let loads = matches!((inst.op, inst.dst), (Op::Memory(Memory::Ld), Dst::R32(_)));
    indexed && loads && decode(words, chip, Stage::Compute).is_err()
}

/// Replaces loads of an attribute with an address register (F5) by loads of 32-bit arguments. Returns the words of the
/// program, and the indices of the replaced loads.
pub fn words_with_indexed_arguments(words: &[u32], chip: Chip) -> (Vec<u32>, Vec<usize>) {
    let mut words = words.to_vec();
    let mut places = Vec::new();
    for (pair, words) in words.chunks_exact_mut(2).enumerate() {
        if !is_indexed_argument([words[0], words[1]], chip) {
            continue;
        }
        // The new form loads from s[]. The offset of the new form is in words, and the arguments start after the
        // header.
        words[0] = (words[0] | 0x1000_0000).wrapping_add((HEADER as u32 / 4) << 9);
        words[1] = words[1] & !0x0023_c000 | 0x4000_c000;
        places.push(2 * pair);
    }
    (words, places)
}

/// Returns the program of [`words_with_indexed_arguments`], and the indices of the replaced loads.
pub(super) fn with_indexed_arguments(code: &Code) -> (Cow<'_, Code>, Vec<usize>) {
    let (words, places) = words_with_indexed_arguments(code.words(), code.chip());
    let code = match places[..] {
        [] => Cow::Borrowed(code),
        _ => Cow::Owned(Code::reachable(&words, code.base(), code.stage(), code.chip())),
    };
    (code, places)
}

/// Returns the type of the argument that the instruction at index `place` loads to `dst`. The function takes the type
/// from the first later instruction that reads the value. Returns `None` if no instruction reads the value.
pub(super) fn input_access(code: &Code, place: usize, dst: Dst) -> Option<Access> {
    let Dst::R16(Half(register)) = dst else { return Some(Access::B32) };
    // The registers that hold the value.
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
