//! Conversions (`cvt`) with a 64-bit source or result, on G200 only. (6.5; nvhw/fp.c, hwtest/g80_fp64.cc)
//!
//! Sources are passed as 64-bit values. A 32-bit source is the low half of such a value. The saturation bit has no
//! effect on these conversions.

use reconverge_simt::float::Format;

use super::double::{self, modified};
use super::{Flags, Modifiers, Rounding, float};

/// An integer of 32 or 64 bits.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Integer {
    /// Whether the type has 64 bits rather than 32.
    pub wide: bool,
    /// Whether the type is signed (two's complement).
    pub signed: bool,
}

impl Integer {
    /// Returns the sign of a source after the modifiers, and the magnitude of the source.
    fn source(self, modifiers: Modifiers, x: u64) -> (bool, u64) {
        let (negative, magnitude) = match (self.wide, self.signed) {
            (true, true) => ((x as i64) < 0, (x as i64).unsigned_abs()),
            (true, false) => (false, x),
            (false, true) => ((x as i32) < 0, u64::from((x as i32).unsigned_abs())),
            (false, false) => (false, x & 0xffff_ffff),
        };
        (modifiers.sign(negative), magnitude)
    }

    /// Returns the rounded bits of an integer in `format`. If the source is signed, this function first applies the
    /// sign and then rounds. If the source is unsigned, `rounding` applies to the magnitude.
    fn convert(self, format: Format, rounding: Rounding, modifiers: Modifiers, x: u64) -> u64 {
        let (negative, magnitude) = self.source(modifiers, x);
        let rounding = if self.signed { rounding } else { rounding.mirrored(negative) };
        format.encode(negative, u128::from(magnitude), 0, rounding)
    }
}

/// Executes cvt from integer to f64.
pub fn i2f64(rounding: Rounding, from: Integer, modifiers: Modifiers, x: u64) -> (u64, Flags) {
    let result = from.convert(Format::F64, rounding, modifiers, x);
    (result, double::flags(result))
}

/// Executes cvt from integer to f32. The instruction set has this conversion only for 64-bit integers.
pub fn i2f32(rounding: Rounding, from: Integer, modifiers: Modifiers, x: u64) -> (u32, Flags) {
    let result = from.convert(Format::F32, rounding, modifiers, x) as u32;
    (result, float::flags(result))
}

/// Executes cvt from f64 to an integer, saturating. For a NaN, only the top bit of the result is set, and the flag O is
/// set.
///
/// O means that the value was clamped. Two results of the model are not confirmed on hardware. A magnitude of exactly
/// 2^32 - 1 sets O for every destination. A clamp to 2^64 - 1 does not set O.
pub fn f64_to_i(to: Integer, rounding: Rounding, modifiers: Modifiers, x: u64) -> (u64, Flags) {
    if double::is_nan(x) {
        return not_a_number(to);
    }
    let x = modifiers.f64(x);
    let field = (x >> 52 & 0x7ff) as i32;
    let fraction = x & ((1 << 52) - 1);
    let significand = if field == 0 { fraction } else { fraction | 1 << 52 };
    to_integer(to, rounding, x >> 63 != 0, significand, field.max(1) - 1075)
}

/// Executes cvt from f32 to an integer, like [`f64_to_i`]. The instruction set has this conversion only for 64-bit
/// integers. Denormals are not flushed here.
pub fn f32_to_i(to: Integer, rounding: Rounding, modifiers: Modifiers, x: u32) -> (u64, Flags) {
    if float::is_nan(x) {
        return not_a_number(to);
    }
    let x = modifiers.f32(x);
    let field = (x >> 23 & 0xff) as i32;
    let fraction = x & ((1 << 23) - 1);
    let significand = if field == 0 { fraction } else { fraction | 1 << 23 };
    // The code reads the exponent field of an infinity as 2^128. The clamped result is the same as for an infinity.
    to_integer(to, rounding, x >> 31 != 0, u64::from(significand), field.max(1) - 150)
}

fn not_a_number(to: Integer) -> (u64, Flags) {
    (if to.wide { 1 << 63 } else { 1 << 31 }, Flags::of(false, true, false, true))
}

fn to_integer(
    to: Integer,
    rounding: Rounding,
    negative: bool,
    significand: u64,
    exponent: i32,
) -> (u64, Flags) {
    let magnitude = whole(significand, exponent, rounding.mirrored(negative));
    let (bits, mask) = if to.wide { (64, u64::MAX) } else { (32, 0xffff_ffff) };
    let half = 1u128 << (bits - 1);
    let (result, overflow) = match (to.signed, negative) {
        (true, true) => (magnitude.min(half).wrapping_neg() as u64 & mask, magnitude > half),
        (true, false) => (magnitude.min(half - 1) as u64, magnitude >= half),
        (false, true) => (0, magnitude != 0),
        (false, false) => (magnitude.min(u128::from(mask)) as u64, !to.wide && magnitude > u128::from(mask)),
    };
    let overflow = overflow || magnitude == 0xffff_ffff;
    (result, Flags::of(result == 0, result >> (bits - 1) != 0, false, overflow))
}

/// Returns `significand` × 2^`exponent`, rounded to a whole number. If the number has more than 64 bits, the result is
/// at least 2^64.
fn whole(significand: u64, exponent: i32, rounding: Rounding) -> u128 {
    let value = u128::from(significand);
    match exponent {
        // If the exponent is 64 or more, the number has more than 64 bits, because the significand has a hidden bit.
        64.. => 1 << 64,
        0..64 => value << exponent,
        -64..0 => {
            let shift = -exponent as u32;
            let (kept, rest, half) = (value >> shift, value & ((1 << shift) - 1), 1u128 << (shift - 1));
            let upward = match rounding {
                Rounding::Nearest => rest > half || (rest == half && kept & 1 == 1),
                Rounding::Up => rest != 0,
                Rounding::Down | Rounding::Zero => false,
            };
            kept + u128::from(upward)
        }
        // Less than one half.
        _ => u128::from(significand != 0 && matches!(rounding, Rounding::Up)),
    }
}

/// Executes cvt from f64 to f32. Denormal results are kept. Unlike in f32 arithmetic, the flags treat denormals as
/// non-zero. A NaN keeps its sign and the upper bits of its payload.
pub fn f64_to_f32(rounding: Rounding, modifiers: Modifiers, x: u64) -> (u32, Flags) {
    let x = modified(modifiers, x);
    let sign = (x >> 32) as u32 & 0x8000_0000;
    let result = if double::is_nan(x) {
        sign | 0x7fc0_0000 | (x >> 29) as u32 & 0x003f_ffff
    } else if x & !(1 << 63) == f64::INFINITY.to_bits() {
        sign | 0x7f80_0000
    } else {
        let field = (x >> 52 & 0x7ff) as i32;
        let fraction = x & ((1 << 52) - 1);
        let significand = if field == 0 { fraction } else { fraction | 1 << 52 };
        Format::F32.encode(sign != 0, u128::from(significand), field.max(1) - 1075, rounding) as u32
    };
    let (nan, zero) = (double::is_nan(x), result << 1 == 0);
    (result, Flags::of(nan | zero, nan | (!zero & (sign != 0)), false, false))
}

/// Executes cvt from f32 to f64. This conversion is exact. A NaN keeps its sign and payload and becomes quiet.
pub fn f32_to_f64(modifiers: Modifiers, x: u32) -> (u64, Flags) {
    let result = if float::is_nan(x) {
        let sign = u64::from(x >> 31) << 63;
        sign | 0x7ff8_0000_0000_0000 | u64::from(x & 0x7f_ffff) << 29
    } else {
        f64::from(f32::from_bits(modifiers.f32(x))).to_bits()
    };
    (result, double::flags(result))
}

/// Executes cvt from f64 to f64. `integral` is the rounding mode if the conversion rounds to a whole number. Rounding
/// keeps the sign of a zero.
pub fn f64_to_f64(integral: Option<Rounding>, modifiers: Modifiers, x: u64) -> (u64, Flags) {
    const WHOLE: i32 = 1075; // from this exponent field on, every f64 is a whole number or not finite
    let x = modified(modifiers, x);
    let (sign, field) = (x & 1 << 63, (x >> 52 & 0x7ff) as i32);
    let result = match integral {
        Some(rounding) if field < WHOLE => {
            let fraction = x & ((1 << 52) - 1);
            let significand = if field == 0 { fraction } else { fraction | 1 << 52 };
            let integer = whole(significand, field.max(1) - 1075, rounding.mirrored(sign != 0));
            sign | (integer as f64).to_bits()
        }
        Some(_) | None => x,
    };
    (result, double::flags(result))
}
