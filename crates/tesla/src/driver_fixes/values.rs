//! Values of 8, 16 and 64 bits in instructions with half-register fields. The compiler writes the numbers of full
//! registers to these fields.

use crate::arith::Arith;
use crate::code::Code;
use crate::inst::{Dst, Half, Inst, Op, Operand};
use crate::lane::convert::Size;
use crate::lane::integer::{Addition, Product};
use crate::lane::{Modifiers, Width};

/// The kind of registers that the numbers in half-register fields stand for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum HalfNumbers {
    /// Half registers. This variant also stands for an instruction that has no half-register field.
    Halves,
    /// 32-bit registers that hold values of 8 or 16 bits (F6).
    Registers,
    /// Pairs of registers that hold values of 64 bits (F17). The number of a pair is the number of its first register.
    Pairs,
}

/// Returns the kind of registers in the half-register fields of an instruction.
pub(super) fn half_numbers(code: &Code, place: usize, inst: &Inst) -> HalfNumbers {
    if is_long(code, place, inst) {
        HalfNumbers::Pairs
    } else if has_small_values(inst) || is_of_16_bits(inst) || is_product_of_small_values(code, place, inst) {
        HalfNumbers::Registers
    } else {
        HalfNumbers::Halves
    }
}

/// The compiler writes numbers of 32-bit registers to half-register fields. Replaces each of these operands by the
/// lower half of the 32-bit register.
pub(super) fn take_registers(inst: &mut Inst) {
    let lower = |half: Half| Half(half.0.wrapping_mul(2));
    for operand in &mut inst.src {
        if let Operand::R16(half) = operand {
            *operand = Operand::R16(lower(*half));
        }
    }
    if let Dst::R16(half) = inst.dst {
        inst.dst = Dst::R16(lower(half));
    }
}

/// Returns whether a product has 16-bit factors.
pub(super) fn is_short_product(inst: &Inst) -> bool {
    let Op::Arith(Arith::Mul { product } | Arith::Mad { product, .. }) = inst.op else { return false };
    matches!(product, Product::Bits16 { .. })
}

/// Returns the 32-bit destination register of a conversion that saturates, although the compiler intends the conversion
/// to drop upper bits (F10). An instruction that later reads the register uses only the lower bits of the register.
pub(super) fn truncates(inst: &Inst) -> Option<u8> {
    let Op::Arith(Arith::I2I { to, from, .. }) = inst.op else { return None };
    let Dst::R16(Half(register)) = inst.dst else { return None };
    let plain = inst.modifiers[0] == Modifiers::default() && inst.cdst.is_none();
    (from.size == Size::B32 && to.size != Size::B32 && plain).then_some(register)
}

/// Returns whether an instruction shifts 32 bits by a register (F9). NIR takes the count modulo 32, but the compiler
/// does not emit an `and` for the count.
pub(super) fn is_shift(inst: &Inst) -> bool {
    let width = match inst.op {
        Op::Arith(Arith::Shl { width, .. } | Arith::Shr { width, .. }) => width,
        _ => return false,
    };
    width == Width::B32 && !matches!(inst.src[1], Operand::Imm(_))
}

/// Returns whether the half-register fields of an instruction stand for 8-bit or 16-bit values of OpenCL C (F6). The
/// compiler computes with such values in 32 bits. If the instruction is a product, [`is_product_of_small_values`] gives
/// the answer.
pub(super) fn has_small_values(inst: &Inst) -> bool {
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

/// Returns whether an instruction is encoded as a comparison or a shift of 16 bits.
fn is_of_16_bits(inst: &Inst) -> bool {
    let Op::Arith(Arith::Set { width, .. } | Arith::Shl { width, .. } | Arith::Shr { width, .. }) = inst.op
    else {
        return false;
    };
    width == Width::B16
}

/// Returns whether the compiler means a 64-bit operation by a 16-bit instruction (F17). `emitSET` and `emitShift` have
/// no form for 64 bits. For each register pair, both functions write the number of the pair's first register to a field
/// for a half register. A real 16-bit operand comes from an instruction for which [`has_small_values`] is true. So
/// `is_long` looks for such an instruction.
fn is_long(code: &Code, place: usize, inst: &Inst) -> bool {
    let is_pair = |operand: &Operand| {
        let Operand::R16(Half(number)) = *operand else { return false };
        let mut before = (0..place).rev().filter_map(|place| code.slot(place));
        let writes = |inst: &&Inst| match inst.dst {
            Dst::R32(register) => register == number,
            Dst::R16(Half(register)) => register == number && has_small_values(inst),
            _ => false,
        };
        // The compiler writes register number 63 for a zero operand.
        (number % 2 == 0 || number == 63)
            && before.find(writes).is_none_or(|writer| !has_small_values(writer))
    };
    let [first, second, _] = &inst.src;
    is_of_16_bits(inst) && is_pair(first) && (is_pair(second) || matches!(second, Operand::Imm(_)))
}

/// Changes a 16-bit instruction that the compiler means as a 64-bit operation (F17). The new instruction operates on
/// the lower 32 bits. For 64-bit additions, the compiler also computes only the lower 32 bits. The words of a
/// comparison do not show whether the comparison is signed. So the new comparison is signed.
pub(super) fn take_lower_words(inst: &mut Inst) {
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

/// Returns whether a product multiplies 16-bit values of OpenCL C (F6), and is not a part of a 32-bit product. The
/// compiler splits a 32-bit product into products of halves. Two of these products multiply an upper half by a lower
/// half. The compiler adds these two products, shifts the sum left by 16 bits, and adds the product of the lower
/// halves. To compute the upper word of the product, the compiler adds the product of the upper halves with a carry.
pub(super) fn is_product_of_small_values(code: &Code, place: usize, inst: &Inst) -> bool {
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
