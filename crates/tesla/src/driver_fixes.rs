//! Fixes for programs of Mesa's nv50 compiler that use wrong addresses in s[]. The compiler means the address of an
//! argument or variable. The fixes replace each wrong address by this address. Fault numbers such as F2 refer to
//! docs/mesa.md.
//!
//! s[] begins with 0x14 bytes that the hardware and the driver write. The arguments of the kernel follow, and then the
//! variables of the kernel. The compiler numbers the bytes of the arguments from 0. It also numbers the bytes of the
//! variables from 0 (F2). The compiler folds some loads of arguments into other instructions. It encodes any other load
//! of an argument like a load of a shader's input. A load in this form has no access type, and the compiler divides the
//! offset by the size of the argument (F5). Source: Mesa 22.3.6 and 25.0.7, `src/nouveau/codegen`:
//! `nv50_ir_from_nir.cpp` (`Converter::visit`, which does not add `inputOffset`), `nv50_ir_lowering_nv50.cpp`
//! (`NV50LoweringPreSSA::handleRDSV`, `handleLDST`), `nv50_ir_emit_nv50.cpp` (`CodeEmitterNV50::emitLOAD`).
//!
//! Two more faults lose bits. First, in a load without a type, the field for an offset has only five bits. An
//! instruction that is not a load but has an operand in s[] has the same five-bit field. The compiler writes offsets of
//! seven bits to this field, and two of the seven bits overlap the bits of the type (`setSrc`, `srcAddr16`;
//! `TargetNV50::insnCanLoad` allows 127). Second, the compiler keeps values of 8 and 16 bits in 32-bit registers
//! (`Converter::convert` of a `nir_ssa_def`). But the compiler writes the numbers of these 32-bit registers to fields
//! for half registers (F6).
//!
//! The compiler assumes that the chip takes shift counts modulo 32 (F9, `emitShift`). The compiler also assumes that
//! conversions to 8 and 16 bits drop the upper bits. The conversions of the chip saturate (F10). The compiler encodes
//! comparisons and shifts of 64 bits as comparisons and shifts of 16 bits (F17).

mod layout;
mod values;

use self::layout::{HEADER, Meaning, SharedLayout, input_access, insts, operands, with_indexed_arguments};
use self::values::{HalfNumbers, half_numbers, is_shift, take_lower_words, take_registers, truncates};
use crate::arith::Arith;
use crate::code::Code;
use crate::inst::{Access, Dst, Inst, Op, Operand};
use crate::lane::Width;

pub use self::layout::{is_indexed_argument, words_with_indexed_arguments};

/// Properties of a launch. The fixes derive the addresses of a program from these properties.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DriverFixes {
    /// Number of bytes of the arguments. Arguments that the driver adds are not included.
    pub argument_bytes: u32,
    /// Number of bytes of s[] per block, including header, arguments and variables.
    pub shared_bytes: u32,
}

impl DriverFixes {
    /// The name of these fixes. Launch files and an option of `drm` use this name.
    pub const NAME: &str = "nv50-compute";
}

/// A fault of a program.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ProgramFault {
    /// F2: the compiler encodes the address of a variable or an argument relative to s\[0x0\].
    Offset,
    /// F5: the load of an argument has a form without a type.
    Form,
    /// F6: the number of a 32-bit register is in the field of a half register.
    Half,
    /// F10: a conversion to fewer bits saturates. The compiler assumes that the conversion drops the upper bits.
    Saturates,
    /// F9: the chip shifts by the whole count. The compiler assumes that the chip shifts by the count modulo 32.
    Shift,
    /// F17: the compiler encodes a 64-bit comparison or shift as a 16-bit comparison or shift.
    Long,
    /// The bits of an operand fit several addresses.
    Ambiguous,
}

/// Returns the program with the addresses and operations that the compiler means.
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
        match half_numbers(code, place, &inst) {
            HalfNumbers::Pairs if arguments > 0 => take_lower_words(&mut inst),
            HalfNumbers::Registers if arguments > 0 => take_registers(&mut inst),
            _ => {}
        }
        inst
    };
    code.mapped(map)
}

/// Returns the faults of a program, each with the index of the first instruction that has the fault.
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
        if fixes.argument_bytes > 0 && truncates(inst).is_some() {
            add(ProgramFault::Saturates, place);
        }
        if is_shift(inst) {
            add(ProgramFault::Shift, place);
        }
        match half_numbers(code, place, inst) {
            HalfNumbers::Pairs if fixes.argument_bytes > 0 => add(ProgramFault::Long, place),
            HalfNumbers::Registers if fixes.argument_bytes > 0 => add(ProgramFault::Half, place),
            _ => {}
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::decode::decode;
    use crate::inst::{Chip, Half, Stage};
    use crate::text::assemble;

    fn code(text: &str) -> Code {
        let words = assemble(text, Chip::Gt215, Stage::Compute).unwrap().words();
        Code::reachable(&words, 0, Stage::Compute, Chip::Gt215)
    }

    fn fixes(argument_bytes: u32) -> DriverFixes {
        DriverFixes { argument_bytes, shared_bytes: 0x200 }
    }

    /// Fixes a program, and returns the access types and offsets of the program's operands in s[].
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

    /// This code is captured from rusticl: `k(__global uint *o, uint n)`.
    #[test]
    fn arguments_lie_behind_the_words_of_hardware_and_driver() {
        let words = [0x2000_c001, 0x0420_0780];
        let inst = decode(words, Chip::Gt215, Stage::Compute).unwrap();
        let code = Code::of(&words, 0, (Stage::Compute, Chip::Gt215), &[(0, inst)]);
        assert_eq!(places(&code, 0x1c), [(Access::B32, 0x14)]);
        let faults = faults(&code, fixes(0x1c));
        assert_eq!(faults, [(ProgramFault::Offset, 0)]);
    }

    /// This code is captured from rusticl: `k(global uint *o, uchar c, short s)`. The fix takes the type of a small
    /// argument from the instruction that reads the argument. The fields for half registers hold the numbers of the
    /// registers 1 and 2.
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

    /// Code that was captured from rusticl. It loads a `char` at byte 198 of the arguments. The form of the load has no
    /// field for bit 7 of the number 198.
    #[test]
    fn numbers_of_small_arguments_have_15_bits() {
        let number = 198;
        let words = [0x1000_0005 | number << 9, 0x0020_0780, 0xf000_0001, 0xe000_0001];
        let code = Code::reachable(&words, 0, Stage::Compute, Chip::Gt215);
        assert_eq!(places(&code, 0x100), [(Access::U8, 198 + 0x14)]);
    }

    /// Code that was captured from rusticl. It loads `s.e[i & 7]`, and the argument `s` is a structure.
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

    /// This code is captured from rusticl: `a * (short)i + b` for two components, and a 32-bit product. The factors of
    /// one component are registers 1 and 5. The factors of the other component are registers 2 and 5. The compiler
    /// splits the 32-bit product into three products of halves.
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

    /// Code that was captured from rusticl. The kernel adds the offset of the grid, which is at byte 0x10 of the
    /// arguments. The kernel also has a variable at byte 0x10 of its variables.
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

    /// Code that was captured from rusticl. It computes `i < n` for `long` in registers 0 and 8, and for `ushort` in
    /// registers 2 and 4.
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

    /// `setSrc` combines bits 5 and 6 of an operand's word offset with the bits of the operand's type.
    #[test]
    fn lost_bits_of_an_offset_are_found_where_one_place_fits() {
        let code = code(
            "mov b32 $r1 u16 s[0x0]
             add b32 $r2 b32 s[0x0] $r1
             ld b32 $r3 g0[$r2]
             cvt u32 $r4 u16 b32 s[0xc]
             exit nop",
        );
        // The pointer is at byte 0 or 0x80 of the arguments, and another instruction loads the argument at byte 0x80.
        // The 16-bit argument is at 0x86 or 0xc6.
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
        // With 0x200 bytes of s[], the encoding may have lost upper bits of the offset.
        assert_eq!(names(0, 0x200), [ProgramFault::Offset, ProgramFault::Ambiguous]);
    }
}
