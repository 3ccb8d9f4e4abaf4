//! Float operations. Each function documents its rounding, its treatment of denormals and its NaN results.
//!
//! Rust does not guarantee the bit pattern of a NaN result. Each function of this module that can return a NaN
//! therefore documents the bits of the NaN. No function calls the platform's mathematics library.

use std::cmp::Ordering;

/// Returns a zero with the same sign if `x` is a denormal, otherwise `x`.
#[inline]
pub fn flush(x: f32) -> f32 {
    if x.is_subnormal() { 0.0f32.copysign(x) } else { x }
}

/// Direction in which an operation rounds a result that is not representable. The manuals call the directions rn, rm,
/// rp and rz.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Rounding {
    /// Rounds to the nearest number. A value halfway between two numbers is rounded to the even number.
    Nearest,
    /// Rounds toward minus infinity.
    Down,
    /// Rounds toward plus infinity.
    Up,
    /// Rounds toward zero.
    Zero,
}

impl Rounding {
    /// All four modes.
    pub const ALL: [Rounding; 4] = [Rounding::Nearest, Rounding::Down, Rounding::Up, Rounding::Zero];

    /// Returns the mode for rounding the magnitude of a number. The number is then rounded in the mode `self`. If the
    /// number is negative, the function exchanges [`Down`](Rounding::Down) and [`Up`](Rounding::Up).
    #[inline(always)]
    pub const fn mirrored(self, negative: bool) -> Rounding {
        match (self, negative) {
            (Rounding::Down, true) => Rounding::Up,
            (Rounding::Up, true) => Rounding::Down,
            (mode, _) => mode,
        }
    }
}

/// Converts a double to a single, rounded once, with gradual underflow.
///
/// If the result overflows, the function returns an infinity or the largest finite number, depending on the mode.
/// Infinities are returned unchanged. For a NaN, the function returns a NaN with unspecified bits.
#[inline(always)]
pub fn narrow(x: f64, rounding: Rounding) -> f32 {
    narrow_pair(x, 0.0, rounding)
}

/// Rounds the exact value `head + tail` to a single. `head` must be this exact value, rounded to the nearest double.
#[inline(always)]
fn narrow_pair(head: f64, tail: f64, rounding: Rounding) -> f32 {
    // No single lies strictly between `head` and the exact value. So in a directed mode, the result is `near` or a
    // single that is adjacent to `near`.
    let near = head as f32;
    let above = (near as f64 > head) | ((near as f64 == head) & (tail < 0.0));
    let below = ((near as f64) < head) | ((near as f64 == head) & (tail > 0.0));
    match rounding {
        // `near` is correctly rounded only if `tail` is zero. Callers with a nonzero `tail` do not use this mode.
        Rounding::Nearest => near,
        Rounding::Down if above => near.next_down(),
        Rounding::Up if below => near.next_up(),
        Rounding::Down | Rounding::Up => near,
        Rounding::Zero => {
            let beyond = ((near > 0.0) & above) | ((near < 0.0) & below);
            f32::from_bits(near.to_bits() - beyond as u32)
        }
    }
}

/// Returns `a + b`, rounded once, with gradual underflow. The sum of a number and its negative is +0 in every mode.
///
/// A NaN result has unspecified bits.
#[inline(always)]
pub fn add(a: f32, b: f32, rounding: Rounding) -> f32 {
    if matches!(rounding, Rounding::Nearest) {
        return a + b;
    }
    // As a double, the sum of two singles cannot overflow, so the error term is exact.
    let (sum, error) = two_sum(a as f64, b as f64);
    narrow_pair(sum, error, rounding)
}

/// Returns `a * b`, rounded once, with gradual underflow. A NaN result has unspecified bits.
#[inline(always)]
pub fn multiply(a: f32, b: f32, rounding: Rounding) -> f32 {
    if matches!(rounding, Rounding::Nearest) {
        return a * b;
    }
    // The product of two singles is exact as a double.
    narrow(a as f64 * b as f64, rounding)
}

/// An IEEE 754 interchange format of at most 64 bits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Format {
    fraction_bits: u32,
    exponent_bits: u32,
}

impl Format {
    /// The format binary16.
    pub const F16: Format = Format { fraction_bits: 10, exponent_bits: 5 };
    /// The format binary32.
    pub const F32: Format = Format { fraction_bits: 23, exponent_bits: 8 };
    /// The format binary64.
    pub const F64: Format = Format { fraction_bits: 52, exponent_bits: 11 };

    const fn bias(self) -> i32 {
        (1 << (self.exponent_bits - 1)) - 1
    }

    const fn infinity(self) -> u64 {
        ((1 << self.exponent_bits) - 1) << self.fraction_bits
    }

    const fn sign(self, negative: bool) -> u64 {
        (negative as u64) << (self.fraction_bits + self.exponent_bits)
    }

    /// Returns the bits of ±`magnitude` × 2^`exponent`, rounded once, with gradual underflow.
    ///
    /// If the magnitude is inexact, the caller must set the lowest bit of the magnitude. The bits above this lowest bit
    /// must then have at least two more significant bits than the format. For a magnitude of 0, the function returns a
    /// zero with the sign that `negative` states. If the result overflows, the function returns an infinity or the
    /// largest finite number, depending on the mode.
    pub fn encode(self, negative: bool, magnitude: u128, exponent: i32, rounding: Rounding) -> u64 {
        let sign = self.sign(negative);
        if magnitude == 0 {
            return sign;
        }
        let top = exponent + 127 - magnitude.leading_zeros() as i32;
        // Exponent of the last bit of the result. For a denormal, the exponent is the smallest possible exponent.
        let place = top.max(1 - self.bias()) - self.fraction_bits as i32;
        let (mut kept, inexact, to_half) = match place - exponent {
            shift @ ..=0 => (magnitude << -shift, false, Ordering::Less),
            shift @ 1..=127 => {
                let rest = magnitude & ((1 << shift) - 1);
                (magnitude >> shift, rest != 0, rest.cmp(&(1 << (shift - 1))))
            }
            128 => (0, true, magnitude.cmp(&(1 << 127))),
            _ => (0, true, Ordering::Less),
        };
        let upward = match (rounding.mirrored(negative), to_half) {
            (Rounding::Nearest, Ordering::Less) | (Rounding::Down | Rounding::Zero, _) => false,
            (Rounding::Nearest, Ordering::Equal) => kept & 1 == 1,
            (Rounding::Nearest, Ordering::Greater) => true,
            (Rounding::Up, _) => inexact,
        };
        kept += u128::from(upward);
        // `kept` includes the hidden bit, which adds 1 to the exponent field. The sum therefore uses `biased - 1`. A
        // carry out of the fraction increments the exponent.
        let biased = (place + self.fraction_bits as i32 + self.bias()) as u128;
        let code = ((biased - 1) << self.fraction_bits) + kept;
        if code < u128::from(self.infinity()) {
            return sign | code as u64;
        }
        match rounding.mirrored(negative) {
            Rounding::Nearest | Rounding::Up => sign | self.infinity(),
            Rounding::Down | Rounding::Zero => sign | (self.infinity() - 1),
        }
    }
}

/// Returns `a * b + c` for finite doubles, rounded once, with gradual underflow. The computation uses only integers.
///
/// If the product and `c` have the same sign, a zero result has the sign of `c`. Otherwise, a zero result is +0, or -0
/// in [`Rounding::Down`]. The caller must handle infinities and NaN beforehand.
pub fn fused_multiply_add(a: f64, b: f64, c: f64, rounding: Rounding) -> f64 {
    debug_assert!(a.is_finite() && b.is_finite() && c.is_finite());
    let product_negative = a.is_sign_negative() != b.is_sign_negative();
    let (a_bits, a_exponent) = parts(a);
    let (b_bits, b_exponent) = parts(b);
    let (c_bits, c_exponent) = parts(c);
    let product = top_aligned(u128::from(a_bits) * u128::from(b_bits), a_exponent + b_exponent);
    let addend = top_aligned(u128::from(c_bits), c_exponent);
    let (sign, magnitude, exponent) =
        add_magnitudes((product_negative, product.0, product.1), (c.is_sign_negative(), addend.0, addend.1));
    let zero_sign = match product_negative == c.is_sign_negative() {
        true => product_negative,
        false => matches!(rounding, Rounding::Down),
    };
    let negative = if magnitude == 0 { zero_sign } else { sign };
    f64::from_bits(Format::F64.encode(negative, magnitude, exponent, rounding))
}

/// Returns the significand with the hidden bit, and the exponent of the significand's last bit.
fn parts(x: f64) -> (u64, i32) {
    let field = (x.to_bits() >> 52 & 0x7ff) as i32;
    let fraction = x.to_bits() & ((1 << 52) - 1);
    if field == 0 { (fraction, -1074) } else { (fraction | 1 << 52, field - 1075) }
}

/// Shifts a magnitude so that its highest set bit is bit 125. The two bits above bit 125 are free for a carry of a sum.
/// A zero gets an exponent below all other exponents.
fn top_aligned(magnitude: u128, exponent: i32) -> (u128, i32) {
    if magnitude == 0 {
        return (0, i32::MIN / 2);
    }
    let shift = magnitude.leading_zeros() as i32 - 2;
    (magnitude << shift, exponent - shift)
}

/// Returns the sum of two numbers. A number is a tuple of sign, magnitude and exponent. The magnitudes must be results
/// of [`top_aligned`]. The function shifts one of the magnitudes. If this shift drops set bits, the lowest bit of the
/// sum is 1.
///
/// Suppose that both magnitudes have up to 106 significant bits. Then the sum loses bits only if one magnitude is much
/// smaller than the other. In this case, at most one leading bit can cancel.
fn add_magnitudes(a: (bool, u128, i32), b: (bool, u128, i32)) -> (bool, u128, i32) {
    let (high, low) = if (a.2, a.1) >= (b.2, b.1) { (a, b) } else { (b, a) };
    let distance = (i64::from(high.2) - i64::from(low.2)).min(127) as u32;
    let shifted = low.1 >> distance;
    let aligned = shifted | ((shifted << distance) != low.1) as u128;
    match high.0 == low.0 {
        true => (high.0, high.1 + aligned, high.2),
        false => (high.0, high.1 - aligned, high.2),
    }
}

/// Returns the exact sum of `terms`, times 2^`scale`, rounded once to the nearest single, ties to even.
///
/// Every term must be finite. Every term must be a single or the product of two singles. Partial sums then neither
/// overflow nor underflow a double, so the sum is exact before it is rounded. There are at most eight terms. If all
/// terms are -0, the sum is -0. Any other sum of zero is +0. Denormal results are not flushed. The caller must handle
/// infinite and NaN terms beforehand.
///
/// The function computes Shewchuk's expansion sum and rounds the sum to odd on 53 bits. This rounding to odd makes the
/// last rounding to 24 bits correct (Boldo and Melquiond, "Emulation of FMA and correctly rounded sums", 2008).
pub fn sum_rounded(terms: &[f64], scale: i32) -> f32 {
    debug_assert!(terms.len() <= 8 && terms.iter().all(|term| term.is_finite()));
    // The exact sum of `parts` is the sum so far. `parts` is a non-overlapping expansion, smallest part first.
    let mut parts = [0.0f64; 8];
    let mut used = 0;
    for &term in terms {
        let mut carry = term;
        let mut kept = 0;
        for index in 0..used {
            let (high, low) = two_sum(carry, parts[index]);
            if low != 0.0 {
                parts[kept] = low;
                kept += 1;
            }
            carry = high;
        }
        parts[kept] = carry;
        used = kept + 1;
    }
    // Renormalise from the largest part. After the loop, `head` is the double nearest to the sum. `tail` has the sign
    // of the difference of the sum and `head`.
    let mut head = parts[used.saturating_sub(1)];
    let mut tail = 0.0;
    for index in (0..used.saturating_sub(1)).rev() {
        let (high, low) = two_sum(head, parts[index]);
        head = high;
        if low != 0.0 {
            tail = low;
            break;
        }
    }
    if head == 0.0 {
        let all_negative =
            !terms.is_empty() && terms.iter().all(|term| *term == 0.0 && term.is_sign_negative());
        return if all_negative { -0.0 } else { 0.0 };
    }
    (round_to_odd(head, tail) * exp2i(scale)) as f32
}

/// Rounds the exact value `head + tail` to odd. If the exact value is not a double, the function returns a double whose
/// last bit is 1.
fn round_to_odd(head: f64, tail: f64) -> f64 {
    let bits = head.to_bits();
    if tail == 0.0 || bits & 1 == 1 {
        return head;
    }
    // If `tail` and `head` have the same sign, truncation of the exact value to a double gives `head`. The function
    // then sets the last bit of `head`. If the signs differ, truncation gives the double next to `head` towards zero.
    // The last bit of that double is already 1.
    let away = (tail > 0.0) == (head > 0.0);
    f64::from_bits(if away { bits + 1 } else { bits - 1 })
}

/// Returns the rounded sum and its exact error. The error is NaN if the sum is infinite. (Knuth, The Art of Computer
/// Programming, volume 2, 4.2.2.)
#[inline(always)]
pub fn two_sum(a: f64, b: f64) -> (f64, f64) {
    let sum = a + b;
    let b_seen = sum - a;
    (sum, (a - (sum - b_seen)) + (b - b_seen))
}

/// Returns 2^`exponent` exactly, for exponents from -1022 to 1023.
fn exp2i(exponent: i32) -> f64 {
    f64::from_bits(((1023 + exponent) as u64) << 52)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_sum_is_rounded_once() {
        // 1 + 2^-24 is halfway between two singles. So the sign of the smallest third term decides the direction of
        // rounding.
        let half = 2f64.powi(-24);
        assert_eq!(sum_rounded(&[1.0, half], 0), 1.0);
        assert_eq!(sum_rounded(&[1.0, half, 2f64.powi(-200)], 0), 1.0f32.next_up());
        assert_eq!(sum_rounded(&[1.0, half, -2f64.powi(-200)], 0), 1.0);
        assert_eq!(sum_rounded(&[2f64.powi(-200), half, 1.0], 0), 1.0f32.next_up());
        // The large terms cancel, and the small term remains.
        assert_eq!(sum_rounded(&[2f64.powi(200), 1.0, -2f64.powi(200)], 0), 1.0);
    }

    #[test]
    fn the_scale_acts_before_the_rounding() {
        let largest = f32::MAX as f64;
        assert_eq!(sum_rounded(&[largest, largest], -1), f32::MAX);
        assert_eq!(sum_rounded(&[largest, largest], 0), f32::INFINITY);
    }

    #[test]
    fn only_negative_zeros_sum_to_negative_zero() {
        assert_eq!(sum_rounded(&[-0.0, -0.0], 0).to_bits(), 0x8000_0000);
        assert_eq!(sum_rounded(&[-0.0, 0.0], 0).to_bits(), 0);
        assert_eq!(sum_rounded(&[1.0, -1.0], 0).to_bits(), 0);
    }

    #[test]
    fn agrees_with_fused_multiply_add() {
        let mut seed = 0x2545_f491_4f6c_dd1du64;
        let mut next = || {
            seed ^= seed << 13;
            seed ^= seed >> 7;
            seed ^= seed << 17;
            f32::from_bits(seed as u32)
        };
        for _ in 0..1_000_000 {
            let (a, b, c) = (next(), next(), next());
            if !(a.is_finite() && b.is_finite() && c.is_finite()) {
                continue;
            }
            let ours = sum_rounded(&[a as f64 * b as f64, c as f64], 0);
            assert_eq!(ours.to_bits(), libm::fmaf(a, b, c).to_bits(), "{a:?} * {b:?} + {c:?}");
        }
    }

    #[test]
    fn narrowing_takes_the_neighbour_its_mode_names() {
        let above = 1.0 + 2f64.powi(-30);
        let all = |x: f64| Rounding::ALL.map(|rounding| narrow(x, rounding));
        assert_eq!(all(above), [1.0, 1.0, 1.0f32.next_up(), 1.0]);
        assert_eq!(all(-above), [-1.0, -(1.0f32.next_up()), -1.0, -1.0]);
        assert_eq!(all(1.0), [1.0; 4]);
        assert_eq!(all(1e300), [f32::INFINITY, f32::MAX, f32::INFINITY, f32::MAX]);
        assert_eq!(all(-1e-300), [0.0, -f32::from_bits(1), 0.0, 0.0]);
        assert_eq!(all(f64::NEG_INFINITY), [f32::NEG_INFINITY; 4]);
    }

    #[test]
    fn a_directed_sum_sees_what_is_far_below_its_last_place() {
        let speck = f32::from_bits(1);
        let all = |a: f32, b: f32| Rounding::ALL.map(|rounding| add(a, b, rounding));
        assert_eq!(all(1.0, speck), [1.0, 1.0, 1.0f32.next_up(), 1.0]);
        assert_eq!(all(1.0, -speck), [1.0, 1.0f32.next_down(), 1.0, 1.0f32.next_down()]);
        assert_eq!(all(f32::MAX, f32::MAX), [f32::INFINITY, f32::MAX, f32::INFINITY, f32::MAX]);
        assert_eq!(all(1.0, -1.0).map(f32::to_bits), [0; 4]);
    }

    #[test]
    fn a_directed_product_is_exact_before_it_is_rounded() {
        let next = 1.0f32.next_up();
        let all = |a: f32, b: f32| Rounding::ALL.map(|rounding| multiply(a, b, rounding));
        let twice = next.next_up();
        assert_eq!(all(next, next), [twice, twice, twice.next_up(), twice]);
        assert_eq!(all(f32::MAX, -2.0), [f32::NEG_INFINITY, f32::NEG_INFINITY, f32::MIN, f32::MIN]);
    }

    #[test]
    fn encoding_rounds_at_the_place_of_the_format() {
        let f16 = |magnitude, exponent| {
            Rounding::ALL.map(|mode| Format::F16.encode(false, magnitude, exponent, mode))
        };
        assert_eq!(f16(1, 0), [0x3c00; 4]);
        // 2049 is a tie between 2048 and 2050, and 2051 is a tie between 2050 and 2052.
        assert_eq!(f16(2049, 0), [0x6800, 0x6800, 0x6801, 0x6800]);
        assert_eq!(f16(2051, 0), [0x6802, 0x6801, 0x6802, 0x6801]);
        assert_eq!(f16(65520, 0), [0x7c00, 0x7bff, 0x7c00, 0x7bff]);
        // The magnitudes are half of the smallest denormal, a slightly larger number, and a much smaller number.
        assert_eq!(f16(1, -25), [0, 0, 1, 0]);
        assert_eq!(f16(3, -26), [1, 0, 1, 0]);
        assert_eq!(f16(1, -200), [0, 0, 1, 0]);
        // The magnitudes are half of the smallest denormal, a slightly larger number, and a slightly smaller number.
        // These magnitudes have more bits than the significand of a double.
        assert_eq!(f16(1 << 127, -152), [0, 0, 1, 0]);
        assert_eq!(f16(1 << 127 | 1, -152), [1, 0, 1, 0]);
        assert_eq!(f16(u128::MAX, -153), [0, 0, 1, 0]);
        assert_eq!(Format::F64.encode(true, 1, 0, Rounding::Zero), (-1.0f64).to_bits());
        assert_eq!(Format::F32.encode(true, 0, 0, Rounding::Up), 0x8000_0000);
    }

    #[test]
    fn fused_multiply_add_agrees_with_the_library_to_nearest() {
        let mut seed = 0x9e37_79b9_7f4a_7c15u64;
        let mut next = || {
            seed ^= seed << 13;
            seed ^= seed >> 7;
            seed ^= seed << 17;
            seed
        };
        for round in 0..300_000 {
            let (a, b) = (f64::from_bits(next()), f64::from_bits(next()));
            // In every other iteration, the addend nearly cancels the product.
            let c = if round % 2 == 0 { f64::from_bits(next()) } else { -(a * b) };
            if !(a.is_finite() && b.is_finite() && c.is_finite()) {
                continue;
            }
            let ours = fused_multiply_add(a, b, c, Rounding::Nearest);
            assert_eq!(ours.to_bits(), libm::fma(a, b, c).to_bits(), "{a:?} * {b:?} + {c:?}");
        }
    }

    #[test]
    fn an_exact_cancellation_is_minus_zero_only_when_rounding_down() {
        let zero = |rounding| fused_multiply_add(2.0, 3.0, -6.0, rounding).to_bits();
        assert_eq!(Rounding::ALL.map(zero), [0, 1 << 63, 0, 0]);
        let minus = |rounding| fused_multiply_add(-0.0, 3.0, -0.0, rounding).to_bits();
        assert_eq!(Rounding::ALL.map(minus), [1 << 63; 4]);
    }

    #[test]
    fn flush_keeps_the_sign() {
        assert_eq!(flush(-1e-40).to_bits(), 0x8000_0000);
        assert_eq!(flush(f32::MIN_POSITIVE), f32::MIN_POSITIVE);
    }
}
