//! The computations of one lane on doubles. A double is a binary64. The functions round results to nearest even, and
//! flush denormal operands and results to zero. In these functions, a double is one value. The interpreter splits this
//! value into two halves for the registers ([`Rule::DOUBLES_TAKE_THE_HIGH_HALF_FIRST`]).
//!
//! Source: MAN chapter 8. Comments state the points that this chapter leaves open.

#[cfg(doc)]
use crate::rules::Rule;

/// The NaN that an operation returns if no operand is a NaN (no source).
pub const NAN: u64 = 0x7ff8_0000_0000_0000;

const SIGN: u64 = 1 << 63;
const EXPONENT: u64 = 0x7ff0_0000_0000_0000;

/// If the number is a denormal, returns a zero with the same sign. Otherwise returns the number unchanged.
#[inline(always)]
pub fn flush(a: u64) -> u64 {
    if a & EXPONENT == 0 { a & SIGN } else { a }
}

#[inline(always)]
fn number(a: u64) -> f64 {
    f64::from_bits(flush(a))
}

#[inline(always)]
fn is_nan(a: u64) -> bool {
    a & !SIGN > EXPONENT
}

/// Converts the result of an operation to a word. If an operand is a NaN, the result is the first NaN operand, quieted.
/// Then flushes the result.
#[inline(always)]
fn result(value: f64, operands: &[u64]) -> u64 {
    match operands.iter().find(|operand| is_nan(**operand)) {
        Some(operand) => operand | 1 << 51,
        None if value.is_nan() => NAN,
        None => flush(value.to_bits()),
    }
}

/// ADD_64: returns a + b.
pub fn add_64(a: u64, b: u64) -> u64 {
    result(number(a) + number(b), &[a, b])
}

/// MUL_64: returns a * b.
pub fn mul_64(a: u64, b: u64) -> u64 {
    result(number(a) * number(b), &[a, b])
}

/// MULADD_64 and its variants _M2, _M4, _D2: returns (a * b + c) * `factor`. If `fused` is set, the function does not
/// round the product a * b. ([`Rule::SUMS_GO_LEFT_TO_RIGHT`])
pub fn muladd_64(a: u64, b: u64, c: u64, factor: f64, fused: bool) -> u64 {
    let sum =
        if fused { libm::fma(number(a), number(b), number(c)) } else { number(mul_64(a, b)) + number(c) };
    result(f64::from_bits(flush(sum.to_bits())) * factor, &[a, b, c])
}

/// FREXP_64: returns the exponent and the mantissa of a = mantissa * 2^exponent. The magnitude of the mantissa is in
/// [1/2, 1).
///
/// If `a` is a zero, the function returns exponent 0 and `a`. If `a` is an infinity or a NaN, the function returns
/// exponent -1 and a NaN (no source for this chip).
pub fn frexp_64(a: u64) -> (i32, u64) {
    let a = flush(a);
    if a & EXPONENT == EXPONENT {
        return (-1, if is_nan(a) { a | 1 << 51 } else { NAN });
    }
    if a & !SIGN == 0 {
        return (0, a);
    }
    let exponent = (a >> 52 & 0x7ff) as i32 - 1022;
    (exponent, a & !EXPONENT | 1022 << 52)
}

/// LDEXP_64: returns a * 2^`exponent`, by adding to the exponent field. (MAN p. 175)
///
/// If the exponent field of `a` is 0x7ff, returns `a` unchanged. If the field is 0, returns a zero. Otherwise the new
/// exponent field is the sum of the field and `exponent`. If the sum is 0x7ff or more, returns an infinity. If the sum
/// is 0 or less, returns a zero. Zeros and infinities have the sign of `a`.
pub fn ldexp_64(a: u64, exponent: i32) -> u64 {
    let field = (a >> 52 & 0x7ff) as i64;
    match (field, field + i64::from(exponent)) {
        (0x7ff, _) => a,
        (0, _) => a & SIGN,
        (_, 0x7ff..) => a & SIGN | EXPONENT,
        (_, ..=0) => a & SIGN,
        (_, sum) => a & !EXPONENT | (sum as u64) << 52,
    }
}

/// FRACT_64: returns a - floor(a).
pub fn fract_64(a: u64) -> u64 {
    let x = number(a);
    result(x - libm::floor(x), &[a])
}

/// FLT32_TO_FLT64: returns the same number. A denormal becomes zero.
pub fn flt32_to_flt64(a: u32) -> u64 {
    let wide = f64::from(f32::from_bits(crate::lane::flush(a)));
    if wide.is_nan() {
        // The NaN's payload moves to the bits directly below the quiet bit of the double's mantissa.
        return u64::from(a >> 31) << 63 | NAN | u64::from(a & 0x3f_ffff) << 29;
    }
    wide.to_bits()
}

/// FLT64_TO_FLT32: rounds to nearest even and flushes denormal results.
pub fn flt64_to_flt32(a: u64) -> u32 {
    if is_nan(a) {
        let sign = ((a >> 63) as u32) << 31;
        return sign | crate::lane::NAN | (a >> 29) as u32 & 0x3f_ffff;
    }
    crate::lane::flush((number(a) as f32).to_bits())
}

/// Returns a > b.
pub fn greater(a: u64, b: u64) -> bool {
    number(a) > number(b)
}

/// Returns a == b.
pub fn equal(a: u64, b: u64) -> bool {
    number(a) == number(b)
}

/// Returns a >= b.
pub fn greater_equal(a: u64, b: u64) -> bool {
    number(a) >= number(b)
}
