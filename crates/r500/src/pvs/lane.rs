//! The arithmetic of one vertex. Each computation is a pure function.
//!
//! The documents describe the arithmetic of the vertex unit only as "IEEE single". The functions in this file follow
//! deterministic rules (docs/r500-vertex.md, Q16):
//!
//! * a denormal operand or result becomes a zero with the sign of the denormal;
//! * each addition and each multiplication rounds to nearest even, even inside a multiply-add or a dot product;
//! * the product of zero and any value is zero;
//! * reciprocals are rounded toward zero, and all other transcendental functions are rounded once to nearest;
//! * every NaN from arithmetic is [`NAN`].
//!
//! The functions assume that their operands are already flushed ([`operand`]).

use std::f64::consts::PI;

/// The NaN that arithmetic returns.
pub const NAN: f32 = f32::from_bits(0x7fff_ffff);

/// The range of A0. (docs/r500-vertex.md, Q12)
pub const A0_RANGE: std::ops::RangeInclusive<i32> = -256..=255;

/// Replaces a denormal by a zero with the sign of the denormal. Does not change any other value.
/// `reconverge_simt::float::flush` returns equal results. But the compiler does not vectorise the classification of
/// floats in `reconverge_simt::float::flush`. So this function uses integer operations.
#[inline(always)]
fn flush(x: f32) -> f32 {
    let bits = x.to_bits();
    f32::from_bits(if bits & 0x7f80_0000 == 0 { bits & 0x8000_0000 } else { bits })
}

/// Returns a selected channel as an operand. First takes the absolute value if `abs` is set. Then negates the value if
/// `negate` is set. Then flushes denormals. Absolute value and negation change only the sign bit.
#[inline(always)]
pub fn operand(bits: u32, abs: bool, negate: bool) -> f32 {
    let kept = if abs { bits & 0x7fff_ffff } else { bits };
    flush(f32::from_bits(kept ^ u32::from(negate) << 31))
}

/// Turns a value into a result of arithmetic: flushes denormals, and replaces every NaN by [`NAN`].
#[inline(always)]
pub fn result(x: f32) -> f32 {
    if x.is_nan() { NAN } else { flush(x) }
}

/// Computes a + b.
#[inline(always)]
pub fn add(a: f32, b: f32) -> f32 {
    result(a + b)
}

/// Computes a * b. If a or b is zero, the product is zero, even for a zero times an infinity or a NaN. The sign of the
/// product is the exclusive-or of the signs of a and b. (docs/r500-vertex.md, Q16)
#[inline(always)]
pub fn multiply(a: f32, b: f32) -> f32 {
    let sign = (a.to_bits() ^ b.to_bits()) & 0x8000_0000;
    if a == 0.0 || b == 0.0 { f32::from_bits(sign) } else { result(a * b) }
}

/// Computes a * b + c, rounded after each operation.
#[inline(always)]
pub fn multiply_add(a: f32, b: f32, c: f32) -> f32 {
    add(multiply(a, b), c)
}

/// Computes 2 * (a * b) + c.
#[inline(always)]
pub fn multiply_x2_add(a: f32, b: f32, c: f32) -> f32 {
    add(multiply(2.0, multiply(a, b)), c)
}

/// Computes ((a.x * b.x + a.y * b.y) + a.z * b.z) + a.w * b.w.
#[inline(always)]
pub fn dot(a: [f32; 4], b: [f32; 4]) -> f32 {
    // This code does not use `array::map`, because the compiler does not always vectorise `array::map`.
    let (x, y) = (multiply(a[0], b[0]), multiply(a[1], b[1]));
    let (z, w) = (multiply(a[2], b[2]), multiply(a[3], b[3]));
    add(add(add(x, y), z), w)
}

/// Computes a - floor(a). The result is a NaN for an infinity.
#[inline(always)]
pub fn fraction(a: f32) -> f32 {
    result(a - floor(a))
}

#[inline(always)]
fn floor(a: f32) -> f32 {
    // A number whose magnitude is 2^23 or more is an integer.
    let truncated = a as i32 as f32;
    let below = if truncated > a { truncated - 1.0 } else { truncated };
    if a.abs() < 8_388_608.0 { below.copysign(a) } else { a }
}

/// Computes a <= b ? b : a. (docs/r500-vertex.md, Q6)
#[inline(always)]
pub fn maximum(a: f32, b: f32) -> f32 {
    if a <= b { b } else { a }
}

/// Computes a >= b ? b : a. (docs/r500-vertex.md, Q6)
#[inline(always)]
pub fn minimum(a: f32, b: f32) -> f32 {
    if a >= b { b } else { a }
}

/// Returns 1.0 if a comparison holds, otherwise 0.0.
#[inline(always)]
pub fn set(holds: bool) -> f32 {
    if holds { 1.0 } else { 0.0 }
}

/// Computes c.w < a.w * b.w ? c.w : (c.x >= a.x * b.x ? c.x : a.x * b.x).
#[inline(always)]
pub fn multiply_clamp(a: [f32; 4], b: [f32; 4], c: [f32; 4]) -> f32 {
    let (x, w) = (multiply(a[0], b[0]), multiply(a[3], b[3]));
    if c[3] < w {
        c[3]
    } else if c[0] >= x {
        c[0]
    } else {
        x
    }
}

/// Computes floor(a) as a float. If the destination is A0, [`address`] converts this float to an integer.
#[inline(always)]
pub fn to_fixed(a: f32) -> f32 {
    result(floor(a))
}

/// Computes floor(a + 0.5).
#[inline(always)]
pub fn to_fixed_rounded(a: f32) -> f32 {
    result(floor(a + 0.5))
}

/// Returns the integer in A0 after a write of `x`. The integer is floor(x), clamped to [`A0_RANGE`]. For a NaN, the
/// integer is 0.
#[inline(always)]
pub fn address(x: f32) -> i32 {
    (floor(x) as i32).clamp(*A0_RANGE.start(), *A0_RANGE.end())
}

/// Clamps to 0..1. Returns 0 for a NaN.
#[inline(always)]
pub fn saturate(x: f32) -> f32 {
    if x > 0.0 { minimum(x, 1.0) } else { 0.0 }
}

/// A comparison with zero.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Compare {
    /// Equal.
    Eq,
    /// Greater.
    Gt,
    /// Greater or equal.
    Ge,
    /// Not equal. This comparison holds for a NaN.
    Ne,
}

impl Compare {
    /// Returns whether this comparison of `x` with zero holds.
    #[inline(always)]
    pub fn holds(self, x: f32) -> bool {
        match self {
            Compare::Eq => x == 0.0,
            Compare::Gt => x > 0.0,
            Compare::Ge => x >= 0.0,
            Compare::Ne => x != 0.0,
        }
    }
}

// ---- Math engine. The operands a, b and c are the w channels of A, B and C.

/// Rounds a double to a single, and applies [`result`] to the single.
fn rounded(x: f64) -> f32 {
    result(x as f32)
}

/// Returns the DX form of a result. An infinity becomes the largest finite number with the sign of the infinity.
/// (docs/r500-vertex.md, Q8)
fn finite(x: f32) -> f32 {
    if x.is_infinite() { f32::MAX.copysign(x) } else { x }
}

/// Returns the four channels 2^floor(a), a - floor(a), 2^a and 1. The second channel is 0 if a is above 128.
pub fn exp_base2(a: f32) -> [f32; 4] {
    let fraction = if a > 128.0 { 0.0 } else { fraction(a) };
    [exp_base2_full(floor(a)), fraction, exp_base2_full(a), 1.0]
}

/// Computes 2^a. The result is finite.
pub fn exp_base2_full(a: f32) -> f32 {
    finite(rounded(libm::exp2(f64::from(a))))
}

/// Computes e^a.
pub fn exp_base_e(a: f32) -> f32 {
    rounded(libm::exp(f64::from(a)))
}

/// Returns four channels: the exponent of |a|, the mantissa of |a| (from 1 to 2), log2(|a|), and 1.
pub fn log_base2(a: f32) -> [f32; 4] {
    let a = a.abs();
    if a == 0.0 {
        return [-f32::MAX, 1.0, -f32::MAX, 1.0];
    }
    if !a.is_finite() {
        let value = if a.is_nan() { NAN } else { f32::MAX };
        return [value, if a.is_nan() { NAN } else { 1.0 }, value, 1.0];
    }
    let exponent = (a.to_bits() >> 23) as i32 - 127;
    let mantissa = f32::from_bits(a.to_bits() & 0x007f_ffff | 0x3f80_0000);
    [exponent as f32, mantissa, log_base2_full(a), 1.0]
}

/// Computes log2(|a|). The result is finite.
pub fn log_base2_full(a: f32) -> f32 {
    finite(log_base2_ieee(a))
}

/// Computes log2(|a|). The result is -infinity for a zero. Taking the absolute value is a recommended interpretation.
/// (docs/r500-vertex.md, Q9)
pub fn log_base2_ieee(a: f32) -> f32 {
    rounded(libm::log2(f64::from(a.abs())))
}

/// Computes 1 / a. The result is 0 for a zero.
pub fn recip_ff(a: f32) -> f32 {
    if a == 0.0 { 0.0 } else { recip_ieee(a) }
}

/// Computes 1 / a. For a zero of either sign, the result is the largest finite number. (docs/r500-vertex.md, Q8)
pub fn recip_dx(a: f32) -> f32 {
    if a == 0.0 { f32::MAX } else { finite(recip_ieee(a)) }
}

/// Computes 1 / a, rounded toward zero. (docs/r500-vertex.md, Q16)
pub fn recip_ieee(a: f32) -> f32 {
    // If no single equals the true reciprocal, every single is farther from the reciprocal than the double `exact` is.
    // So a comparison of `exact` with `nearest` shows whether `nearest` was rounded away from zero.
    let exact = 1.0 / f64::from(a);
    let nearest = exact as f32;
    let beyond = f64::from(nearest).abs() > exact.abs() && nearest.is_finite();
    result(if beyond { f32::from_bits(nearest.to_bits() - 1) } else { nearest })
}

/// Computes 1 / sqrt(|a|). The result is 0 for a zero.
pub fn recip_sqrt_ff(a: f32) -> f32 {
    if a == 0.0 { 0.0 } else { recip_sqrt_ieee(a) }
}

/// Computes 1 / sqrt(|a|). The result is the largest finite number for a zero.
pub fn recip_sqrt_dx(a: f32) -> f32 {
    finite(recip_sqrt_ieee(a))
}

/// Computes 1 / sqrt(|a|). Taking the absolute value is a recommended interpretation. (docs/r500-vertex.md, Q9)
pub fn recip_sqrt_ieee(a: f32) -> f32 {
    rounded(1.0 / libm::sqrt(f64::from(a.abs())))
}

/// Computes base^exponent. The function checks three special cases in this order. If the base is 0, the result is
/// infinity for a negative exponent, and 0 for an exponent that is not negative. If the exponent is 0, the result is 1.
/// If the base is negative, the result is the negated power of the base's absolute value.
pub fn power(base: f32, exponent: f32) -> f32 {
    if base == 0.0 {
        return if exponent < 0.0 { f32::INFINITY } else { 0.0 };
    }
    if exponent == 0.0 {
        return 1.0;
    }
    let power = rounded(libm::pow(f64::from(base.abs()), f64::from(exponent)));
    if base < 0.0 && !power.is_nan() { -power } else { power }
}

/// Computes a < b ? 0 : a^c.
pub fn power_clamp_b(a: f32, b: f32, c: f32) -> f32 {
    if a < b { 0.0 } else { power(a, c) }
}

/// Computes a < b ? 0 : a > 1 ? 1 : a^c.
pub fn power_clamp_b1(a: f32, b: f32, c: f32) -> f32 {
    if a > 1.0 && a >= b { 1.0 } else { power_clamp_b(a, b, c) }
}

/// Computes a <= 0 ? 0 : a > 1 ? 1 : a^c.
pub fn power_clamp_01(a: f32, c: f32) -> f32 {
    if a <= 0.0 {
        0.0
    } else if a > 1.0 {
        1.0
    } else {
        power(a, c)
    }
}

/// Returns four channels: 1, max(b, 0), (b > 0 ? max(a, 0)^c : 0) and 1. The channels are the lighting coefficients for
/// n·h = a, n·l = b and the exponent c. The exponent is clamped to -128..128.
pub fn light(a: f32, b: f32, c: f32) -> [f32; 4] {
    let specular = if b > 0.0 { power(maximum(a, 0.0), minimum(maximum(c, -128.0), 128.0)) } else { 0.0 };
    [1.0, maximum(b, 0.0), specular, 1.0]
}

/// Returns sin(a) if a is between -pi and pi, otherwise 0.
pub fn sine(a: f32) -> f32 {
    if f64::from(a.abs()) >= PI { 0.0 } else { rounded(libm::sin(f64::from(a))) }
}

/// Returns cos(a) if a is between -pi and pi, otherwise -1.
pub fn cosine(a: f32) -> f32 {
    if f64::from(a.abs()) >= PI { -1.0 } else { rounded(libm::cos(f64::from(a))) }
}

// ---- Predicates. Each function returns the predicate and a counter. The counter of an active vertex is 0. The counter
// of a vertex is k if the innermost k levels must end before the vertex becomes active. (docs/r500-vertex.md, Q10)

/// Computes ME_PRED_SET_EQ, _GT, _GE or _NEQ: sets the predicate to the result of a comparison.
#[inline(always)]
pub fn predicate(compare: Compare, a: f32) -> (bool, f32) {
    let holds = compare.holds(a);
    (holds, set(!holds))
}

/// Computes VE_PRED_SET_EQ_PUSH, _GT_PUSH, _GE_PUSH or _NEQ_PUSH. Each of these operations opens a level. `a` is the
/// counter, and `b` is the condition.
#[inline(always)]
pub fn push(compare: Compare, a: f32, b: f32) -> (bool, f32) {
    let holds = a == 0.0 && compare.holds(b);
    (holds, if holds { 0.0 } else { add(a, 1.0) })
}

/// Computes ME_PRED_SET_CLR: clears the predicate.
pub fn clear(_: f32) -> (bool, f32) {
    (false, f32::MAX)
}

/// Computes ME_PRED_SET_INV: inverts the predicate of the innermost level. Counters above 1 do not change.
pub fn invert(a: f32) -> (bool, f32) {
    let holds = a == 1.0;
    let value = if holds {
        0.0
    } else if a == 0.0 {
        1.0
    } else {
        a
    };
    (holds, value)
}

/// Computes ME_PRED_SET_POP: closes one level.
pub fn pop(a: f32) -> (bool, f32) {
    let holds = a <= 1.0;
    (holds, if holds { 0.0 } else { add(a, -1.0) })
}

/// Computes ME_PRED_SET_RESTORE: computes the predicate from a counter.
pub fn restore(a: f32) -> (bool, f32) {
    (a == 0.0, if a == 0.0 { 0.0 } else { a })
}

#[cfg(test)]
mod tests {
    use super::*;

    const INF: f32 = f32::INFINITY;
    const MAX: f32 = f32::MAX;

    fn bits(x: f32) -> u32 {
        x.to_bits()
    }

    #[test]
    fn denormals_are_flushed_as_everywhere() {
        for bits in [0, 1, 0x007f_ffff, 0x0080_0000, 0x3f80_0000, 0x7f7f_ffff, 0x7f80_0000, 0x7fc0_0001] {
            for x in [f32::from_bits(bits), -f32::from_bits(bits)] {
                assert_eq!(flush(x).to_bits(), reconverge_simt::float::flush(x).to_bits(), "{x:e}");
            }
        }
    }

    #[test]
    fn operands_take_absolute_value_then_sign_then_flush() {
        assert_eq!(operand(bits(-2.0), true, true), -2.0);
        assert_eq!(operand(bits(-2.0), false, true), 2.0);
        assert_eq!(bits(operand(1, false, true)), 0x8000_0000);
        assert_eq!(bits(operand(0x7fc0_0001, false, true)), 0xffc0_0001);
    }

    #[test]
    fn multiply_add_rounds_twice() {
        let a = 1.0 + f32::EPSILON;
        assert_eq!(multiply_add(a, a, -1.0 - 2.0 * f32::EPSILON), 0.0);
        assert_eq!(multiply_x2_add(2.0, 3.0, 1.0), 13.0);
        assert_eq!(bits(multiply(1e-30, -1e-30)), 0x8000_0000);
    }

    /// Mesa: PIPE_CAP_LEGACY_MATH_RULES.
    #[test]
    fn zero_times_anything_is_zero() {
        for (a, b, product) in [(0.0, INF, 0.0), (-INF, 0.0, -0.0), (-0.0, f32::NAN, -0.0), (0.0, -3.0, -0.0)]
        {
            assert_eq!(bits(multiply(a, b)), bits(product), "{a} {b}");
        }
        // To choose between two values, compilers multiply each value by a factor of 0 or 1.
        assert_eq!(multiply_add(-0.0, INF, INF), INF);
        assert_eq!(bits(multiply(INF, f32::NAN)), bits(NAN));
    }

    /// Tests quotients of integers. To divide, programs multiply by a reciprocal. RV530 computes some quotients
    /// correctly. Some quotients, such as 76 / 38, are wrong on RV530. (docs/r500-vertex.md, Q16)
    #[test]
    fn reciprocals_are_rounded_toward_zero() {
        let quotient = |a: f32, b: f32| multiply(a, recip_dx(b));
        for (a, b) in [(76.0, 38.0), (76.0, 76.0), (35.0, 35.0), (-12.0, 12.0), (36.0, -6.0)] {
            assert!(quotient(a, b).abs() < (a / b).abs(), "{a} / {b}");
        }
        for (a, b) in [(64.0, -32.0), (-32.0, 32.0), (64.0, 64.0)] {
            assert_eq!(quotient(a, b), a / b);
        }
        for at in 1..100_000u32 {
            let a = f32::from_bits(0x3f80_0000 + at * 83);
            let exact = f64::from(a) * f64::from(recip_ieee(a));
            let next = f64::from(a) * f64::from(f32::from_bits(bits(recip_ieee(a)) + 1));
            assert!(exact <= 1.0 && next > 1.0, "{a:e}");
        }
        assert_eq!((bits(recip_ieee(-INF)), recip_ieee(f32::MIN_POSITIVE)), (bits(-0.0), 2f32.powi(126)));
    }

    #[test]
    fn floor_and_fraction() {
        assert_eq!([-1.5, 1.5, -0.25, 3.0].map(fraction), [0.5, 0.5, 0.75, 0.0]);
        assert_eq!([-1.5, 1.5, -3.0, 1e10, -1e10].map(to_fixed), [-2.0, 1.0, -3.0, 1e10, -1e10]);
        assert_eq!(bits(to_fixed(-0.0)), bits(-0.0));
        for nan in [fraction(INF), fraction(f32::NAN), to_fixed(f32::NAN)] {
            assert_eq!(bits(nan), bits(NAN));
        }
        assert_eq!([0.5, -0.5, -0.6, 2.49].map(to_fixed_rounded), [1.0, 0.0, -1.0, 2.0]);
    }

    /// docs/r500-vertex.md, Q12.
    #[test]
    fn a0_holds_nine_bits() {
        assert_eq!([-1.5, 254.9, 1e9, -1e9, f32::NAN].map(address), [-2, 254, 255, -256, 0]);
    }

    /// docs/r500-vertex.md, Q6.
    #[test]
    fn maximum_and_minimum_give_the_second_of_equal_operands_and_the_first_where_one_is_nan() {
        assert_eq!((bits(maximum(0.0, -0.0)), bits(minimum(-0.0, 0.0))), (bits(-0.0), bits(0.0)));
        assert!(maximum(f32::NAN, 2.0).is_nan() && minimum(f32::NAN, 2.0).is_nan());
        assert_eq!((maximum(2.0, f32::NAN), minimum(2.0, f32::NAN)), (2.0, 2.0));
        assert_eq!([f32::NAN, -1.0, 0.25, 7.0].map(saturate), [0.0, 0.0, 0.25, 1.0]);
    }

    /// For a zero, a DX form returns a finite number, an FF form returns 0, and an IEEE form returns infinity.
    #[test]
    fn reciprocals_at_the_poles() {
        assert_eq!((recip_dx(0.0), recip_dx(-0.0), recip_ff(0.0), recip_ieee(-0.0)), (MAX, MAX, 0.0, -INF));
        assert_eq!((recip_sqrt_dx(0.0), recip_sqrt_ff(0.0), recip_sqrt_ieee(0.0)), (MAX, 0.0, INF));
        assert_eq!((recip_sqrt_dx(-4.0), recip_dx(-4.0), recip_dx(INF)), (0.5, -0.25, 0.0));
        assert_eq!((log_base2_full(0.0), log_base2_ieee(0.0), log_base2_full(-8.0)), (-MAX, -INF, 3.0));
        assert_eq!((exp_base2_full(200.0), exp_base2_full(3.0), exp_base_e(200.0)), (MAX, 8.0, INF));
        // Programs compute a square root as the reciprocal of RECIP_SQRT. For 0, the result is 0.
        assert_eq!(recip_dx(recip_sqrt_dx(0.0)), 0.0);
    }

    #[test]
    fn exponential_and_logarithm_in_parts() {
        assert_eq!(exp_base2(2.5), [4.0, 0.5, exp_base2_full(2.5), 1.0]);
        assert_eq!(exp_base2(129.5)[1], 0.0);
        assert_eq!(log_base2(-12.0), [3.0, 1.5, log_base2_full(12.0), 1.0]);
        assert_eq!(log_base2(0.0), [-MAX, 1.0, -MAX, 1.0]);
    }

    #[test]
    fn powers_test_the_base_first() {
        assert_eq!((power(0.0, 0.0), power(0.0, -1.0), power(5.0, 0.0)), (0.0, INF, 1.0));
        assert_eq!((power(-2.0, 2.0), power(2.0, 10.0)), (-4.0, 1024.0));
        assert_eq!((power_clamp_b(0.5, 0.6, 2.0), power_clamp_b(3.0, 0.6, 2.0)), (0.0, 9.0));
        assert_eq!((power_clamp_b1(3.0, 0.6, 2.0), power_clamp_b1(3.0, 4.0, 2.0)), (1.0, 0.0));
        assert_eq!(
            (power_clamp_01(-1.0, 2.0), power_clamp_01(0.5, 2.0), power_clamp_01(2.0, 2.0)),
            (0.0, 0.25, 1.0)
        );
    }

    #[test]
    fn lighting_coefficients() {
        assert_eq!(light(0.5, 0.25, 2.0), [1.0, 0.25, 0.25, 1.0]);
        assert_eq!(light(0.5, -0.25, 2.0), [1.0, 0.0, 0.0, 1.0]);
        assert_eq!(light(-0.5, 1.0, 0.0), [1.0, 1.0, 0.0, 1.0]);
        assert_eq!(light(2.0, 1.0, 1e9)[2], power(2.0, 128.0));
    }

    #[test]
    fn sine_and_cosine_clamp_their_argument() {
        assert_eq!((sine(0.0), cosine(0.0), sine(100.0), cosine(-100.0)), (0.0, 1.0, 0.0, -1.0));
        assert!((sine(1.0) - 0.841_471).abs() < 1e-6 && sine(f32::NAN).is_nan());
    }

    /// A vertex whose counter is 0 is active. Mesa's code for branches relies on these formulas.
    #[test]
    fn predicate_counters() {
        assert_eq!((predicate(Compare::Eq, 0.0), predicate(Compare::Gt, 0.0)), ((true, 0.0), (false, 1.0)));
        assert_eq!((push(Compare::Ne, 0.0, 1.0), push(Compare::Ne, 0.0, 0.0)), ((true, 0.0), (false, 1.0)));
        assert_eq!((push(Compare::Ne, 1.0, 1.0), push(Compare::Ne, MAX, 1.0)), ((false, 2.0), (false, MAX)));
        assert_eq!(
            (pop(1.0), pop(2.0), pop(MAX), pop(0.0)),
            ((true, 0.0), (false, 1.0), (false, MAX), (true, 0.0))
        );
        assert_eq!((invert(1.0), invert(0.0), invert(3.0)), ((true, 0.0), (false, 1.0), (false, 3.0)));
        assert_eq!((clear(0.0), restore(0.0), restore(MAX)), ((false, MAX), (true, 0.0), (false, MAX)));
    }
}
