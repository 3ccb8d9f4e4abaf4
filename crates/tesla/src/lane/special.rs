//! The special function unit: quadratic interpolation in tables. (8; nvhw/sfu.c, nvhw/sfu_tab.c, hwtest/g80_sfu.cc)
//!
//! The leading fraction bits of the source select an interval. Every function computes c0 + c1 x + c2 x² with the
//! coefficients of this interval. All integer operations are exact, except for the squarer, which truncates each
//! partial product (`square` below). The results come from the hardware's tables, and differ from the results of a
//! mathematics library. The modifiers of sources are already applied. These functions do not write a `$c`.

use super::float::{self, NAN, Saturate};
use super::sfu_tables::{Coefficients, EX2, LG2, RCP, RSQRT, SIN};

const SIGN: u32 = 0x8000_0000;
const INFINITY: u32 = 0x7f80_0000;
const FRACTION: u32 = 0x7f_ffff;
/// In results of presin and preex2, bit 30 marks a value that is NaN, infinite or out of range. If bit 23 is also set,
/// the value is not a NaN.
const SPECIAL: u32 = 0x4000_0000;
const SPECIAL_INFINITY: u32 = 0x4080_0000;

/// The class of a source after flushing. A number has an exponent field and a 24-bit significand.
enum Source {
    NotANumber,
    Infinity,
    Zero,
    Number { exponent: i32, significand: u32 },
}

fn unpack(x: u32) -> Source {
    match (x >> 23 & 0xff, x & FRACTION) {
        (0, _) => Source::Zero,
        (0xff, 0) => Source::Infinity,
        (0xff, _) => Source::NotANumber,
        (exponent, fraction) => Source::Number { exponent: exponent as i32, significand: fraction | 1 << 23 },
    }
}

/// Packs an exponent and a significand as a float. The exponent may be out of range. The significand is from 2^23 to
/// 2^24 (inclusive).
///
/// Returns a zero if the exponent is below the range, and an infinity if the exponent is above the range.
fn pack(sign: u32, exponent: i32, significand: u64) -> u32 {
    let (exponent, significand) =
        if significand == 1 << 24 { (exponent + 1, 1 << 23) } else { (exponent, significand) };
    match exponent {
        ..=0 => sign,
        1..=254 => sign | (exponent as u32) << 23 | significand as u32 & FRACTION,
        255.. => sign | INFINITY,
    }
}

/// Returns about x² / 2^19 for x of at most 17 bits. The result is the sum of the partial products. Each partial
/// product is truncated.
pub(crate) fn square(x: u32) -> i64 {
    let sum: u32 = (0..17).map(|bit| if x >> bit & 1 != 0 { x >> (18 - bit) } else { 0 }).sum();
    i64::from(sum >> 1)
}

/// Returns c0 2^`scale0` + c1 x + c2 x² 2^`scale2`. The input of the squarer is a separate parameter, because rcp
/// shifts this input.
fn interpolate(row: &Coefficients, scale0: u32, x: u32, squared: u32, scale2: u32) -> i64 {
    let [c0, c1, c2] = row.map(i64::from);
    (c0 << scale0) + c1 * i64::from(x) + ((c2 * square(squared)) << scale2)
}

/// Returns rcp: 1 / x.
pub fn rcp(x: u32) -> u32 {
    let sign = x & SIGN;
    match unpack(x) {
        Source::NotANumber => NAN,
        Source::Infinity => sign,
        Source::Zero => sign | INFINITY,
        Source::Number { exponent, significand } => {
            let (index, rest) = (significand >> 16 & 0x7f, significand & 0xffff);
            let value = interpolate(&RCP[index as usize], 13, rest, rest << 1, 0) + 0x47e7;
            pack(sign, 2 * 127 - exponent - 1, (value >> 15) as u64)
        }
    }
}

/// Returns rsqrt: 1 / √x. The result for ±0 is an infinity of the same sign. The result for any negative source other
/// than -0 is NaN.
pub fn rsqrt(x: u32) -> u32 {
    let negative = x & SIGN != 0;
    match unpack(x) {
        Source::NotANumber => NAN,
        Source::Zero => x & SIGN | INFINITY,
        Source::Infinity | Source::Number { .. } if negative => NAN,
        Source::Infinity => 0,
        Source::Number { exponent, significand } => {
            let unbiased = exponent - 127;
            // The index of the table includes the lowest exponent bit, because the table covers [1, 4).
            let fraction = significand & FRACTION | (unbiased as u32 & 1) << 23;
            let halved = 127 - (unbiased >> 1) - 1;
            if fraction == 0 {
                return pack(0, halved + 1, 1 << 23);
            }
            let (index, rest) = (fraction >> 17, fraction & 0x1_ffff);
            let value = interpolate(&RSQRT[index as usize], 14, rest, rest, 2) + 0x7fff;
            pack(0, halved, (value >> 16) as u64)
        }
    }
}

/// Returns lg2: the base 2 logarithm.
///
/// A negative result is complemented, not negated. So even lg2(0.5) is not exactly -1.
pub fn lg2(x: u32) -> u32 {
    let negative = x & SIGN != 0;
    match unpack(x) {
        Source::NotANumber => NAN,
        Source::Zero => SIGN | INFINITY,
        Source::Infinity | Source::Number { .. } if negative => NAN,
        Source::Infinity => INFINITY,
        Source::Number { exponent, significand } => {
            let fraction = significand & FRACTION;
            let (index, rest) = (fraction >> 17, fraction & 0x1_ffff);
            // The logarithm of the significand has 36 bits after the point. For the source 1.0, this logarithm is
            // exactly zero.
            let of_significand = match fraction {
                0 if exponent == 127 => 0,
                _ => (interpolate(&LG2[index as usize], 12, rest, rest, 1) + 0x3345) >> 2,
            };
            let sum = of_significand + (i64::from(exponent - 127) << 36);
            let (sign, magnitude) = if sum < 0 { (SIGN, !sum) } else { (0, sum) };
            if magnitude == 0 {
                return 0;
            }
            normalised(sign, magnitude as u64, 42, 127 + 6)
        }
    }
}

/// Converts a fixed-point number to a float and truncates the result. `exponent` is the exponent field for bit `top`.
fn normalised(sign: u32, magnitude: u64, top: u32, exponent: i32) -> u32 {
    if magnitude == 0 {
        return sign;
    }
    let shift = top as i32 - magnitude.ilog2() as i32;
    let aligned = if shift >= 0 { magnitude << shift } else { magnitude >> -shift };
    pack(sign, exponent - shift, aligned >> (top - 23))
}

/// Returns presin: x × 2/π reduced to four quadrants. The result is the operand of [`sin`] and [`cos`].
///
/// The result has a sign, 2 bits for the quadrant (23, 24) and 23 fraction bits. Bit 30 marks a NaN, or an infinity if
/// bit 23 is also set.
pub fn presin(x: u32) -> u32 {
    let sign = x & SIGN;
    let (exponent, significand) = match unpack(x) {
        Source::NotANumber => return sign | SPECIAL,
        Source::Infinity => return sign | SPECIAL_INFINITY,
        Source::Zero => return sign,
        Source::Number { exponent, significand } => (exponent - 127 - 8, u64::from(significand)),
    };
    // 2/π in 24 bits.
    let turned = (significand * 0xa2_f983) >> 16;
    sign | fixed(turned, exponent) & 0x01ff_ffff
}

/// Returns preex2: x in fixed point. The result is the operand of [`ex2`].
///
/// The result has a sign, 7 integer bits (23 to 29) and 23 fraction bits. Bit 30 marks a NaN, or a value out of range
/// if bit 23 is also set.
pub fn preex2(x: u32) -> u32 {
    let sign = x & SIGN;
    match unpack(x) {
        Source::NotANumber => sign | SPECIAL,
        Source::Infinity => sign | SPECIAL_INFINITY,
        Source::Zero => sign,
        Source::Number { exponent, .. } if exponent - 127 >= 7 => sign | SPECIAL_INFINITY,
        Source::Number { exponent, significand } => sign | fixed(u64::from(significand), exponent - 127),
    }
}

/// Shifts a number left by `exponent`, or right by the magnitude of `exponent` if `exponent` is negative. Bits outside
/// the 32 bits of the result are lost.
fn fixed(value: u64, exponent: i32) -> u32 {
    match exponent {
        32.. => 0,
        0..32 => (value << exponent) as u32,
        -63..0 => (value >> -exponent) as u32,
        _ => 0,
    }
}

/// Returns sin of a result of [`presin`].
pub fn sin(x: u32) -> u32 {
    if x & SPECIAL != 0 { NAN } else { quadrant_sine(x & SIGN, x >> 23, x & FRACTION) }
}

/// Returns cos of a result of [`presin`]. The function clears the sign of the source, adds one quadrant to the
/// position, and returns the sine of the result.
pub fn cos(x: u32) -> u32 {
    if x & SPECIAL != 0 { NAN } else { quadrant_sine(0, (x >> 23) + 1, x & FRACTION) }
}

/// Returns the sine of a fraction of a quadrant. Only the low two bits of `quadrant` matter.
fn quadrant_sine(sign: u32, quadrant: u32, fraction: u32) -> u32 {
    let fraction = if quadrant & 1 != 0 { !fraction & FRACTION } else { fraction };
    let sign = sign ^ (quadrant >> 1 & 1) << 31;
    let (index, rest) = (fraction >> 17, fraction & 0x1_ffff);
    let value = interpolate(&SIN[index as usize], 11, rest, rest, 0);
    normalised(sign, value as u64, 37, 127)
}

/// Returns ex2 of a result of [`preex2`]: 2 to the power of the number from which [`preex2`] was computed.
pub fn ex2(x: u32, sat: Saturate) -> u32 {
    let negative = x & SIGN != 0;
    let result = match x & SPECIAL_INFINITY {
        SPECIAL => NAN,
        SPECIAL_INFINITY if negative => 0,
        SPECIAL_INFINITY => INFINITY,
        _ => {
            let (whole, fraction) = ((x >> 23 & 0xff) as i32, x & FRACTION);
            let (whole, fraction) = match (negative, fraction) {
                (true, 0) => (-whole, 0),
                (true, _) => (-whole - 1, !fraction & FRACTION),
                (false, _) => (whole, fraction),
            };
            let (index, rest) = (fraction >> 17, fraction & 0x1_ffff);
            let value = interpolate(&EX2[index as usize], 13, rest, rest, 0) + 0x77e2;
            pack(0, 127 + whole, (value >> 15) as u64)
        }
    };
    // The unit has no NaN operand, because its source is a fixed-point word.
    float::finish(result, sat, false).0
}
