//! The list of [`Arith`] operations with their functions in [`crate::lane`]. All engines share this list.
//!
//! The functions take operand values and return a result and flags. The functions do not access other state. Values
//! have 64 bits. A narrower value is zero-extended. The bits of an f32 or f64 represent the number.

use reconverge_simt::word::Word;

use crate::inst::{Arith, Chip};
use crate::lane::convert::{Integer, Size};
use crate::lane::float::Saturate;
use crate::lane::integer::Flagged;
use crate::lane::{Flags, Modifiers, convert, convert64, double, float, integer, special};

/// Mode bits of the machine that affect f32 results. A driver can set mode bits. If no driver sets a mode bit, the bit
/// is 0. (6.1)
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Modes {
    /// The product of 0 and any factor is +0.
    pub mul_zero_wins: bool,
    /// Saturation converts a NaN to 0. Only some chips have this mode bit.
    pub sat_nan: bool,
    /// Derivatives outside fragment programs are +infinity instead of 0.
    pub nonfp_deriv: bool,
}

impl Modes {
    /// No mode bit is set.
    pub const NONE: Modes = Modes { mul_zero_wins: false, sat_nan: false, nonfp_deriv: false };

    /// Only [`Modes::mul_zero_wins`].
    pub const MUL_ZERO_WINS: Modes = Modes { mul_zero_wins: true, ..Modes::NONE };

    /// Returns the meaning of a saturation bit on `chip`. (6.2)
    #[inline(always)]
    pub const fn saturate(self, chip: Chip, sat: bool) -> Saturate {
        match (sat, self.sat_nan, chip) {
            (false, _, _) => Saturate::No,
            (true, true, Chip::G200) => Saturate::ZeroNanOperands,
            (true, true, Chip::Gt215) => Saturate::ZeroNan,
            (true, _, _) => Saturate::Plain,
        }
    }
}

/// The operands of one lane's operation.
#[derive(Clone, Copy, Debug)]
pub struct Operands {
    /// The values of the sources.
    pub src: [u64; 3],
    /// abs and neg of the sources.
    pub modifiers: [Modifiers; 3],
    /// The flags from which `addc` takes its carry.
    pub carry: Flags,
    /// Whether the instruction writes flags. The function [`negated`] uses this field.
    pub writes_flags: bool,
}

/// **Open**: returns the result of `cvt neg s32 s32` and `cvt abs s32 s32` for -2^31. The negation of -2^31 is not an
/// s32.
///
/// The hardware model saturates the result to 2^31 - 1. The results in the arithmetic test vectors also saturate. Each
/// of these vectors writes a flag register. Mesa's compiler negates integers with a form of this instruction that does
/// not write flags. Compiled shaders are expected to wrap to -2^31, as the shading language defines. The test vectors
/// and the compiled shaders agree if only the form that writes flags saturates. This function therefore saturates only
/// in this form. To find out whether the form without flags saturates, test `cvt neg s32 $r0 s32 $r0` with 0x80000000
/// on a card.
fn negated(
    to: Integer,
    from: Integer,
    modifiers: Modifiers,
    x: u32,
    writes_flags: bool,
    saturated: (u32, Flags),
) -> (u32, Flags) {
    let s32 = Integer { size: Size::B32, signed: true };
    let negates = modifiers.abs != modifiers.neg;
    let wraps = to == s32 && from == s32 && negates && x == 0x8000_0000 && !writes_flags;
    if wraps { (x, Flags::S) } else { saturated }
}

/// Returns the result and the flags of an operation on integers. `carry` is 0 or 1. Returns `None` for other operations.
#[inline(always)]
pub(crate) fn integers<W: Word>(op: &Arith, [a, b, c]: [W; 3], carry: W) -> Option<Flagged<W>> {
    let count = |wrap: bool| if wrap { b & b.same(31) } else { b };
    Some(match *op {
        Arith::Add { addition, width, sat } => integer::add(addition, width, sat, a, b, carry),
        Arith::Mul { product } => integer::mul(product, a, b),
        Arith::Mad { product, addition, sat } => integer::mad(product, addition, sat, [a, b, c], carry),
        Arith::Sad { width, signed } => integer::sad(width, signed, a, b, c),
        Arith::Min { width, signed } => integer::min(width, signed, a, b),
        Arith::Max { width, signed } => integer::max(width, signed, a, b),
        Arith::Set { compare, width, signed } => integer::set(compare, width, signed, a, b),
        Arith::Logic { logic, width, not1, not2 } => integer::logic(logic, width, not1, not2, a, b),
        Arith::Shl { width, wrap } => integer::shl(width, a, count(wrap)),
        Arith::Shr { width, signed, wrap } => integer::shr(width, signed, a, count(wrap)),
        _ => return None,
    })
}

/// Returns the result and the flags of an arithmetic operation.
#[inline]
pub fn value(op: &Arith, operands: &Operands, chip: Chip, modes: Modes) -> (u64, Flags) {
    value_of_known(op, operands, chip, modes)
}

/// Computes [`value`]. The compiler inlines this function into the caller. The operation must be known at compile time.
#[inline(always)]
pub(crate) fn value_of_known(op: &Arith, operands: &Operands, chip: Chip, modes: Modes) -> (u64, Flags) {
    let [x, y, z] = operands.src;
    let (a, b, c) = (x as u32, y as u32, z as u32);
    let [mod_a, mod_b, mod_c] = operands.modifiers;
    let (fa, fb, fc) = (mod_a.f32(a), mod_b.f32(b), mod_c.f32(c));
    let carry = operands.carry;
    let sat = |sat: bool| modes.saturate(chip, sat);
    let word = |(word, flags): (u32, Flags)| (u64::from(word), flags);
    let bare = |word: u32| (u64::from(word), Flags::NONE);
    match *op {
        Arith::Mov { .. } => bare(a),
        Arith::MovFromC | Arith::MovFromA | Arith::MovFromSpecial | Arith::MovToC => bare(a),
        // Section 4: the result is the low 16 bits of the shifted 32-bit value.
        Arith::ShlA => bare(a << (b & 15) & 0xffff),
        Arith::AddA => bare(a.wrapping_add(b) & 0xffff),

        Arith::Add { .. }
        | Arith::Mul { .. }
        | Arith::Mad { .. }
        | Arith::Sad { .. }
        | Arith::Min { .. }
        | Arith::Max { .. }
        | Arith::Set { .. }
        | Arith::Logic { .. }
        | Arith::Shl { .. }
        | Arith::Shr { .. } => match integers(op, [a, b, c], carry.carry().into()) {
            Some(result) => word(result.of_lane()),
            None => unreachable!("the function has all operations on integers"),
        },

        Arith::FAdd { rounding, sat: saturate } => word(float::add(fa, fb, rounding, sat(saturate))),
        Arith::FMul { rounding, sat: saturate } => {
            word(float::mul(fa, fb, rounding, sat(saturate), modes.mul_zero_wins))
        }
        Arith::FMad { sat: saturate } => {
            word(float::mad(a, b, fc, mod_a.neg, sat(saturate), modes.mul_zero_wins))
        }
        Arith::FMin => word(float::min(fa, fb)),
        Arith::FMax => word(float::max(fa, fb)),
        Arith::FSet { compare } => word(float::set(compare, fa, fb)),
        Arith::Slct => word(float::slct(a, b, fc)),

        Arith::I2I { to, register, from } => {
            let saturated = convert::i2i(to, register, from, mod_a, a);
            word(negated(to, from, mod_a, a, operands.writes_flags, saturated))
        }
        Arith::I2F32 { from, rounding, sat: saturate } => {
            word(convert::i2f(rounding, sat(saturate), from, mod_a, a))
        }
        Arith::I2F16 { from, rounding, sat: saturate } => {
            word(convert::i2f16(rounding, sat(saturate), from, mod_a, a))
        }
        Arith::F2I { to, signed, rounding, from } => word(convert::f2i(to, signed, rounding, from, mod_a, a)),
        Arith::F2F32 { integral, sat: saturate, from } => {
            word(convert::f2f32(integral, sat(saturate), from, mod_a, a))
        }
        Arith::F2F16 { integral, rounding, sat: saturate, from } => {
            word(convert::f2f16(integral, rounding, sat(saturate), from, mod_a, a))
        }
        Arith::I2F64 { from, rounding } => convert64::i2f64(rounding, from, mod_a, x),
        Arith::I64ToF32 { from, rounding } => word(convert64::i2f32(rounding, from, mod_a, x)),
        Arith::F64ToI { to, rounding } => convert64::f64_to_i(to, rounding, mod_a, x),
        Arith::F32ToI64 { to, rounding } => convert64::f32_to_i(to, rounding, mod_a, a),
        Arith::F64ToF32 { rounding } => word(convert64::f64_to_f32(rounding, mod_a, x)),
        Arith::F32ToF64 => convert64::f32_to_f64(mod_a, a),
        Arith::F64ToF64 { integral } => convert64::f64_to_f64(integral, mod_a, x),

        Arith::DAdd { rounding } => double::add(rounding, mod_a.neg, mod_b.neg, x, y),
        Arith::DMul { rounding } => double::mul(rounding, mod_a.neg, x, y),
        Arith::DFma { rounding } => double::fma(rounding, mod_a.neg, mod_c.neg, x, y, z),
        Arith::DMin => double::min(mod_a, mod_b, x, y),
        Arith::DMax => double::max(mod_a, mod_b, x, y),
        Arith::DSet { compare } => word(double::set(compare, mod_a, mod_b, x, y)),

        Arith::Rcp => bare(special::rcp(fa)),
        Arith::Rsqrt => bare(special::rsqrt(fa)),
        Arith::Lg2 => bare(special::lg2(fa)),
        Arith::Sin => bare(special::sin(fa)),
        Arith::Cos => bare(special::cos(fa)),
        Arith::Ex2 { sat: saturate } => bare(special::ex2(fa, sat(saturate))),
        Arith::PreSin => bare(special::presin(fa)),
        Arith::PreEx2 => bare(special::preex2(fa)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn negation(x: u32, writes_flags: bool) -> u32 {
        let s32 = Integer { size: Size::B32, signed: true };
        let op = Arith::I2I { to: s32, register: crate::lane::Width::B32, from: s32 };
        let modifiers = [Modifiers::NEG, Modifiers::NONE, Modifiers::NONE];
        let operands = Operands { src: [x.into(), 0, 0], modifiers, carry: Flags::NONE, writes_flags };
        value(&op, &operands, Chip::G80, Modes::default()).0 as u32
    }

    #[test]
    fn negation_saturates_where_flags_are_written_and_wraps_elsewhere() {
        assert_eq!(negation(0x8000_0000, true), 0x7fff_ffff);
        assert_eq!(negation(0x8000_0000, false), 0x8000_0000);
        assert_eq!(negation(5, true), negation(5, false));
    }

    #[test]
    fn saturation_of_nan_depends_on_mode_and_chip() {
        let sat_nan = Modes { sat_nan: true, ..Modes::default() };
        assert_eq!(Modes::default().saturate(Chip::Gt215, true), Saturate::Plain);
        assert_eq!(sat_nan.saturate(Chip::G200, true), Saturate::ZeroNanOperands);
        assert_eq!(sat_nan.saturate(Chip::Gt215, true), Saturate::ZeroNan);
        assert_eq!(sat_nan.saturate(Chip::Mcp77, true), Saturate::Plain);
        assert_eq!(sat_nan.saturate(Chip::Gt215, false), Saturate::No);
    }
}
