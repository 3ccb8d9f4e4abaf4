//! Conversions (`cvt`) between integers of 8, 16 and 32 bits, f16 and f32. (6.4; nvhw/fp.c, hwtest/g80_fp.cc,
//! g80_int.cc)
//!
//! Conversions with a 64-bit source or result are in [`super::convert64`].

use reconverge_simt::float::{self as host, Format};

use super::float::{self, Saturate};
use super::integer::plain;
use super::{Flags, Modifiers, Rounding, Width};

/// An integer type of a conversion.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Integer {
    /// Size of the type.
    pub size: Size,
    /// Whether the type is signed (two's complement).
    pub signed: bool,
}

/// The sizes of [`Integer`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Size {
    /// A byte: the low 8 bits of the source register, whatever the width of the register.
    B8,
    /// 16 bits.
    B16,
    /// 32 bits.
    B32,
}

impl Size {
    #[inline(always)]
    pub(crate) const fn bits(self) -> u32 {
        match self {
            Size::B8 => 8,
            Size::B16 => 16,
            Size::B32 => 32,
        }
    }
}

impl Integer {
    /// Returns the sign of a source after the modifiers, and the magnitude of the source. The modifiers do not change
    /// the magnitude.
    #[inline(always)]
    fn source(self, x: u32, modifiers: Modifiers) -> (bool, u32) {
        let (negative, magnitude) = self.magnitude(x);
        (modifiers.sign(negative), magnitude)
    }

    /// Returns the sign and the magnitude of a source before the modifiers.
    #[inline(always)]
    fn magnitude(self, x: u32) -> (bool, u32) {
        let room = 32 - self.size.bits();
        let value = if self.signed { (x << room) as i32 >> room } else { (x << room >> room) as i32 };
        let negative = self.signed & (value < 0);
        (negative, if negative { value.unsigned_abs() } else { value as u32 })
    }

    /// Returns the number with this sign and magnitude, clamped to the type and extended to 32 bits. A negative number
    /// becomes 0 if the type is unsigned.
    #[inline(always)]
    fn clamp(self, negative: bool, magnitude: u32) -> u32 {
        let limit = 1u32 << (self.size.bits() - 1);
        match self.signed {
            true if negative => magnitude.min(limit).wrapping_neg(),
            true => magnitude.min(limit - 1),
            false if negative => 0,
            false => magnitude.min(limit - 1 + limit),
        }
    }
}

/// Executes cvt from integer to integer, saturating. A byte result is extended to `register`, the width of the
/// destination register.
///
/// For 16-bit and 32-bit results, `register` is the width of the result.
#[inline(always)]
pub fn i2i(to: Integer, register: Width, from: Integer, modifiers: Modifiers, x: u32) -> (u32, Flags) {
    let (negative, magnitude) = from.source(x, modifiers);
    plain(register, to.clamp(negative, magnitude)).of_lane()
}

/// Executes cvt from integer to f32. Zero with `neg` is -0.
#[inline(always)]
pub fn i2f(rounding: Rounding, sat: Saturate, from: Integer, modifiers: Modifiers, x: u32) -> (u32, Flags) {
    let (negative, magnitude) = from.source(x, modifiers);
    float::finish(from_magnitude(rounding, negative, magnitude), sat, false)
}

/// Returns the number with this sign and magnitude as an f32.
#[inline(always)]
fn from_magnitude(rounding: Rounding, negative: bool, magnitude: u32) -> u32 {
    let rounded = match rounding.mirrored(negative) {
        Rounding::Nearest => magnitude as f32,
        directed => host::narrow(f64::from(magnitude), directed),
    };
    rounded.to_bits() | (negative as u32) << 31
}

/// Executes cvt from integer to f16 with the defects of the hardware. Before the conversion, the hardware loses some
/// top bits of the magnitude.
///
/// The number of lost bits depends on the leading zeros in the low half of the magnitude. If bits 5 to 29 of the
/// magnitude are all ones, some rounding modes treat the magnitude as 0. One such mode is rounding to nearest. The
/// other is the mode that rounds numbers of this sign away from zero. This behaviour was measured. Only numbers beyond
/// the f16 range are affected.
pub fn i2f16(rounding: Rounding, sat: Saturate, from: Integer, modifiers: Modifiers, x: u32) -> (u32, Flags) {
    const ALL_ONES: u32 = 0x3fff_ffe0;
    let (negative_before, mut magnitude) = from.magnitude(x);
    let negative = modifiers.sign(negative_before);
    let upward = matches!(rounding.mirrored(negative), Rounding::Nearest | Rounding::Up);
    if upward && magnitude & ALL_ONES == ALL_ONES {
        magnitude = 0;
    }
    let low = magnitude.wrapping_sub(u32::from(negative_before)) as u16;
    let lost = 2 + low.leading_zeros().min(5);
    let kept = magnitude << lost >> lost;
    let (single, _) = float::finish(from_magnitude(rounding, negative, kept), sat, false);
    finish_f16(narrow_f16(single, rounding, rounding))
}

/// The width of a floating-point source or result.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum FloatSize {
    /// binary16, in the low half of the value.
    F16,
    /// binary32.
    F32,
}

impl FloatSize {
    /// Returns a source as an f32, with its modifiers applied. Denormals are not yet flushed.
    #[inline(always)]
    fn widen(self, modifiers: Modifiers, x: u32) -> u32 {
        modifiers.f32(match self {
            FloatSize::F16 => widen_f16(x),
            FloatSize::F32 => x,
        })
    }
}

/// Executes cvt from f16 or f32 to an integer of 16 or 32 bits. The conversion saturates. The result for NaN is 0. The
/// flags C and O are 0.
///
/// This conversion has no byte destinations, so [`Width`] contains all valid widths.
#[inline(always)]
pub fn f2i(
    to: Width,
    signed: bool,
    rounding: Rounding,
    from: FloatSize,
    modifiers: Modifiers,
    x: u32,
) -> (u32, Flags) {
    let whole = round_to_integral(rounding, float::flush(from.widen(modifiers, x)));
    let (negative, magnitude) = (whole >> 31 != 0, whole_magnitude(whole));
    let limit = to.limit();
    let result = match signed {
        true if negative => magnitude.min(limit).wrapping_neg(),
        true => magnitude.min(limit - 1),
        false if negative => 0,
        false => magnitude.min(to.mask()),
    };
    plain(to, result).of_lane()
}

/// Returns the magnitude of an f32 that is a whole number, clamped to 2^32 - 1. Returns 0 for a NaN.
///
/// The result equals `f32::abs(x) as u32`, but LLVM compiles that expression lane by lane. That expression takes 28 ns
/// for 32 lanes, but the shifts below take 14 ns (rustc 1.95, AVX2, an AMD EPYC, 2026-11-21).
#[inline(always)]
fn whole_magnitude(x: u32) -> u32 {
    let (exponent, significand) = ((x >> 23 & 0xff) as i32, x & 0x7f_ffff | 1 << 23);
    // The last place of the significand is worth 2^(exponent - 150). The right shift loses only zeros, because the
    // number is whole.
    let right = significand >> (150 - exponent).clamp(0, 31);
    let left = significand << (exponent - 150).clamp(0, 8);
    let shifted = if exponent > 150 { left } else { right };
    let magnitude = if exponent > 158 { u32::MAX } else { shifted };
    if float::is_nan(x) { 0 } else { magnitude }
}

/// Rounds an f32 to a whole number. The sign does not change, not even the sign of a zero. Infinities and NaN do not
/// change.
#[inline(always)]
pub fn round_to_integral(rounding: Rounding, x: u32) -> u32 {
    const WHOLE: f32 = 8_388_608.0; // 2^23: from here on, every f32 is a whole number
    let sign = x & 0x8000_0000;
    let magnitude = f32::from_bits(x ^ sign);
    // The last bit of the sum has the value 1, so the addition rounds the sum to a whole number.
    let near = (magnitude + WHOLE) - WHOLE;
    let whole = match rounding.mirrored(sign != 0) {
        Rounding::Nearest => near,
        Rounding::Down | Rounding::Zero => {
            if near > magnitude {
                near - 1.0
            } else {
                near
            }
        }
        Rounding::Up => {
            if near < magnitude {
                near + 1.0
            } else {
                near
            }
        }
    };
    sign | if magnitude < WHOLE { whole } else { magnitude }.to_bits()
}

/// Executes cvt from f16 or f32 to f32. `integral` is the rounding mode if the conversion rounds to a whole number.
#[inline(always)]
pub fn f2f32(
    integral: Option<Rounding>,
    sat: Saturate,
    from: FloatSize,
    modifiers: Modifiers,
    x: u32,
) -> (u32, Flags) {
    let single = to_single(integral, sat, from, modifiers, x);
    (single, float::flags(single))
}

/// Executes cvt from f16 or f32 to f16. If `integral` is set, the source is first rounded to a whole number in the mode
/// `rounding`.
///
/// Afterwards, the conversion truncates the fraction toward zero, and `rounding` only selects the result of an
/// overflow. A conversion from f16 to f16 is exact, and uses `rounding` only for the rounding to a whole number.
#[inline(always)]
pub fn f2f16(
    integral: bool,
    rounding: Rounding,
    sat: Saturate,
    from: FloatSize,
    modifiers: Modifiers,
    x: u32,
) -> (u32, Flags) {
    let single = to_single(integral.then_some(rounding), sat, from, modifiers, x);
    finish_f16(narrow_f16(single, if integral { Rounding::Zero } else { rounding }, rounding))
}

/// Returns a source as an f32. The function first widens the source, applies the source's modifiers, makes a NaN
/// canonical, and saturates the value. If requested, the function then rounds the value to a whole number.
#[inline(always)]
fn to_single(
    integral: Option<Rounding>,
    sat: Saturate,
    from: FloatSize,
    modifiers: Modifiers,
    x: u32,
) -> u32 {
    let source = from.widen(modifiers, x);
    let (single, _) = float::finish(source, sat, float::is_nan(source));
    match integral {
        Some(rounding) => round_to_integral(rounding, single),
        None => single,
    }
}

/// Returns an f16 (the low half) as an f32. The conversion is exact, except that a NaN becomes [`float::NAN`].
#[inline(always)]
pub fn widen_f16(x: u32) -> u32 {
    let sign = (x & 0x8000) << 16;
    let (exponent, fraction) = (x >> 10 & 0x1f, x & 0x3ff);
    // The value of a denormal is its fraction times 2^-24. In f32, this value is a normal number.
    let denormal = (fraction as f32 * f32::from_bits((127 - 24) << 23)).to_bits();
    match exponent {
        0 => sign | denormal,
        31 if fraction != 0 => float::NAN,
        31 => sign | 0x7f80_0000,
        _ => sign | (exponent + 127 - 15) << 23 | fraction << 13,
    }
}

/// Returns a flushed f32 as an f16. In every mode, a magnitude below 2^-33 becomes zero. Results may be denormal.
///
/// If the number overflows, the rounding mode `overflow` selects infinity or the largest finite number.
fn narrow_f16(x: u32, rounding: Rounding, overflow: Rounding) -> u32 {
    /// The largest exponent field whose fraction is ignored.
    const TOO_SMALL: u32 = 0x5d;
    let (sign, exponent, fraction) = (x >> 31, x >> 23 & 0xff, x & 0x7f_ffff);
    let negative = sign != 0;
    if float::is_nan(x) {
        return 0x7fff;
    }
    if exponent == 0xff {
        return sign << 15 | 0x7c00;
    }
    if exponent <= TOO_SMALL {
        return sign << 15;
    }
    let magnitude = u128::from(fraction | 1 << 23);
    // A magnitude of 2^16 or more is an overflow, whatever the rounding.
    let rounding = if exponent >= 127 + 16 { overflow } else { rounding };
    Format::F16.encode(negative, magnitude, exponent as i32 - 150, rounding) as u32
}

/// The flags of an f16 result depend on the value of the f16.
fn finish_f16(x: u32) -> (u32, Flags) {
    (x, float::flags(widen_f16(x)))
}
