//! f32 arithmetic. (6.1 to 6.3; nvhw/fp.c, hwtest/g80_fp.cc)
//!
//! Denormal sources count as zeros with the sign of the denormal. Denormal results become zeros with the sign of the
//! denormal. Every NaN that an arithmetic operation creates is [`NAN`]. The functions use the host's f32 and f64, which
//! round to nearest. The tests below contain integer models of the operations, and compare the functions of this file
//! with the models.

use reconverge_simt::float;

use super::{Compare, Flags, Rounding};

/// The only NaN that f32 arithmetic produces.
pub const NAN: u32 = 0x7fff_ffff;
const INFINITY: u32 = 0x7f80_0000;
const ONE: u32 = 0x3f80_0000;
const SIGN: u32 = 0x8000_0000;

/// The saturation modifier. The chip and its `SAT_NAN` mode select the kind of saturation. (6.2)
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Saturate {
    /// No saturation.
    No,
    /// Clamps to [0, 1]. A NaN does not change. (`SAT_NAN` is 0, or the chip does not have this mode.)
    Plain,
    /// Clamps to [0, 1]. If an operand is NaN, the result is 0. If the operation creates a NaN from other operands, the
    /// result is this NaN. (`SAT_NAN` on chip 0xa0, G200.)
    ZeroNanOperands,
    /// Clamps to [0, 1]. Every NaN becomes 0. (`SAT_NAN` on GT215 and related chips.)
    ZeroNan,
}

/// Executes the last step of every operation: canonical NaN, flush, saturation, flags.
///
/// `nan_operand` means that a source is NaN. Only [`Saturate::ZeroNanOperands`] uses this parameter.
#[inline(always)]
pub(super) fn finish(bits: u32, sat: Saturate, nan_operand: bool) -> (u32, Flags) {
    let canonical = if is_nan(bits) { NAN } else { flush(bits) };
    let result = match sat {
        Saturate::No => canonical,
        Saturate::Plain => clamp(canonical, canonical),
        Saturate::ZeroNanOperands => {
            if nan_operand {
                0
            } else {
                clamp(canonical, canonical)
            }
        }
        Saturate::ZeroNan => {
            if nan_operand {
                0
            } else {
                clamp(canonical, 0)
            }
        }
    };
    (result, flags(result))
}

/// Clamps to [0, 1]. If `x` is NaN, `x` must be [`NAN`], and the function returns `nan`. Minus zero becomes +0.
#[inline(always)]
fn clamp(x: u32, nan: u32) -> u32 {
    let positive = if x & SIGN != 0 { 0 } else { x };
    if x == NAN { nan } else { positive.min(ONE) }
}

/// Returns the flags of an f32 result. Z is set for a zero or denormal, S is set for a negative number, and both are
/// set for NaN. (6.1)
#[inline(always)]
pub fn flags(x: u32) -> Flags {
    let (nan, zero) = (is_nan(x), x & INFINITY == 0);
    Flags::of(nan | zero, nan | (!zero & (x & SIGN != 0)), false, false)
}

/// Returns whether the bits are a NaN.
#[inline(always)]
pub fn is_nan(x: u32) -> bool {
    x & !SIGN > INFINITY
}

/// Flushes a denormal to a zero of the same sign. Other values do not change.
#[inline(always)]
pub fn flush(x: u32) -> u32 {
    if x & INFINITY == 0 { x & SIGN } else { x }
}

/// Returns add: `a + b`, with modifiers already applied to the sources. (6.2)
///
/// The hardware has codes for [`Rounding::Nearest`] and [`Rounding::Zero`]. The behaviour for the other two modes is an
/// assumption. Opposite values sum to +0 in every mode.
#[inline(always)]
pub fn add(a: u32, b: u32, rounding: Rounding, sat: Saturate) -> (u32, Flags) {
    // A sum in the range of denormals is exact. A flush after the addition therefore has the same result as the
    // hardware's rounding at 24 bits.
    let sum = float::add(f32::from_bits(flush(a)), f32::from_bits(flush(b)), rounding);
    finish(sum.to_bits(), sat, is_nan(a) | is_nan(b))
}

/// Returns mul: `a * b`, with modifiers already applied to the sources. (6.2)
///
/// With `zero_wins` (the mode MUL_ZERO_WINS), the result is +0 if at least one factor is zero. The hardware has codes
/// for [`Rounding::Nearest`] and [`Rounding::Zero`]. The behaviour for the other two modes is an assumption. Chips
/// before G200 ignore the saturation bit. For these chips, the caller passes [`Saturate::No`] as `sat`.
#[inline(always)]
pub fn mul(a: u32, b: u32, rounding: Rounding, sat: Saturate, zero_wins: bool) -> (u32, Flags) {
    let nan_operand = is_nan(a) | is_nan(b);
    let (a, b) = (flush(a), flush(b));
    let product = product(a, b, rounding).to_bits();
    finish(if zero_wins & zero_factor(a, b) { 0 } else { product }, sat, nan_operand)
}

/// Returns whether one of two flushed factors is zero.
#[inline(always)]
pub(crate) fn zero_factor(a: u32, b: u32) -> bool {
    (a << 1 == 0) | (b << 1 == 0)
}

/// Returns `a * b` for flushed factors. The function rounds the product to 24 bits for every exponent, and then flushes
/// the product.
///
/// The host rounds small products at the last bit of denormals instead of at 24 bits. Just below 2^-126, the host's
/// result therefore differs from the chip's result. This function therefore also computes the product times 2^64.
/// Rounding this larger product at 24 bits shows whether the chip's result is below 2^-126.
#[inline(always)]
fn product(a: u32, b: u32, rounding: Rounding) -> f32 {
    let (a, b) = (f32::from_bits(a), f32::from_bits(b));
    let scale = f32::from_bits((127 + 64) << 23);
    let smallest = f32::from_bits((127 - 126 + 64) << 23);
    let (product, scaled) = match rounding {
        Rounding::Nearest => (a * b, a * scale * b),
        Rounding::Down | Rounding::Up | Rounding::Zero => {
            let exact = f64::from(a) * f64::from(b);
            (float::narrow(exact, rounding), float::narrow(exact * f64::from(scale), rounding))
        }
    };
    // If `a * scale` overflows, the product is large or exactly zero. `scaled` is then infinite or NaN. In this case,
    // the code below returns `product`. If `scaled` is at least `smallest`, `product` is at least 2^-126 even after the
    // host's rounding, because the host rounds small products to fewer bits than `scaled`.
    let sign = (a.to_bits() ^ b.to_bits()) & SIGN;
    if scaled.abs() < smallest { f32::from_bits(sign) } else { product }
}

/// Returns mad: `a * b + c`, where the product is **truncated** to 24 bits, and the sum is rounded to nearest. (6.2)
///
/// The operation differs from a fused operation. The operation also differs from an f32 mul followed by an f32 add,
/// because both instructions round to nearest. If a factor or `c` is zero, the product is rounded to nearest instead of
/// truncated. A sum in the range of denormals is rounded at multiples of 2^-149, and is flushed afterwards. The
/// instructions add and mul do not round such a result first. `negate` flips the product's sign. The modifiers of `c`
/// are already applied. The long form with MUL_ZERO_WINS was never compared with hardware, and is assumed to equal the
/// short form.
#[inline(always)]
pub fn mad(a: u32, b: u32, c: u32, negate: bool, sat: Saturate, zero_wins: bool) -> (u32, Flags) {
    let nan_factor = is_nan(a) | is_nan(b);
    let nan_operand = nan_factor | is_nan(c);
    let (a, b, c) = (flush(a) ^ (negate as u32) << 31, flush(b), flush(c));
    let zero = zero_wins & zero_factor(a, b);
    let addend = f32::from_bits(c);
    // The product has 48 bits, so the f64 product is exact. To truncate the product to 24 bits at any exponent, the
    // code clears the low 29 of these 53 bits. The truncation does not change infinities and NaN, because a NaN here
    // has a set bit among the upper 24 bits.
    let exact = f64::from(f32::from_bits(a)) * f64::from(f32::from_bits(b));
    let truncated = f64::from_bits(exact.to_bits() & !0x1fff_ffff);
    // Both terms have significands of 24 bits. If an f64 cannot represent the sum exactly, the exponents of the terms
    // differ so much that two roundings have the same result as one rounding (53 >= 2 * 24 + 2).
    let sum = (truncated + f64::from(addend)) as f32;
    let rounded = product(a, b, Rounding::Nearest) + addend;
    let with_zero = 0.0 + addend;
    let sum = if c << 1 == 0 { rounded } else { sum };
    finish(if zero { with_zero } else { sum }.to_bits(), sat, nan_operand)
}

/// Returns an integer for a flushed f32. Two integers have the same order as their values. The integer of -0 is below
/// the integer of +0.
#[inline(always)]
fn order(x: u32) -> i32 {
    (x ^ ((x as i32 >> 31) as u32 >> 1)) as i32
}

/// Returns min of two modified sources, where -0 is less than +0. If exactly one source is NaN, returns the source that
/// is not NaN. If both sources are NaN, returns [`NAN`]. (6.3)
#[inline(always)]
pub fn min(a: u32, b: u32) -> (u32, Flags) {
    extreme(a, b, order(flush(a)) < order(flush(b)))
}

/// Returns max of two modified sources, where -0 is less than +0. If exactly one source is NaN, returns the source that
/// is not NaN. If both sources are NaN, returns [`NAN`]. (6.3)
#[inline(always)]
pub fn max(a: u32, b: u32) -> (u32, Flags) {
    extreme(a, b, order(flush(a)) > order(flush(b)))
}

#[inline(always)]
fn extreme(a: u32, b: u32, take_a: bool) -> (u32, Flags) {
    let take_a = (take_a & !is_nan(a)) | is_nan(b);
    finish(if take_a { a } else { b }, Saturate::No, false)
}

/// Returns the result of set for two modified sources: all ones if the comparison is true, and 0 if the comparison is
/// false. Zeros of either sign are equal. (6.3)
#[inline(always)]
pub fn set(compare: Compare, a: u32, b: u32) -> (u32, Flags) {
    let (x, y) = (f32::from_bits(flush(a)), f32::from_bits(flush(b)));
    let held = compare.holds(x < y, x == y, x > y);
    ((held as u32).wrapping_neg(), Flags::truth(held))
}

/// Returns slct: `a` if `c` >= 0 (including -0 and denormals), and `b` if `c` < 0. A NaN in `c` also selects `b`. The
/// bits are copied unchanged. (6.3)
///
/// The modifiers of `c` are already applied. The flags depend on the copied bits. Z is set only for ±0. For any value
/// other than ±0, S is set if the top bit is set.
#[inline(always)]
pub fn slct(a: u32, b: u32, c: u32) -> (u32, Flags) {
    let result = if f32::from_bits(flush(c)) >= 0.0 { a } else { b };
    let zero = result << 1 == 0;
    (result, Flags::of(zero, !zero & (result & SIGN != 0), false, false))
}
