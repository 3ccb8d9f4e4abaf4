//! Rounding, flushing and NaN, stated for each function.
//!
//! Rust does not guarantee the bit pattern of a NaN result, so every function here that can return one states its
//! bits. No function calls the platform's mathematics library.

use std::cmp::Ordering;

/// Returns a zero of the same sign for a denormal, and any other number unchanged.
#[inline]
pub fn flush(x: f32) -> f32 {
    if x.is_subnormal() { 0.0f32.copysign(x) } else { x }
}

/// Rounding of a result that is not representable. (The manuals: rn, rm, rp, rz.)
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Rounding {
    /// Rounds to the nearest number; ties to even.
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

    /// Returns the mode that rounds `-x` to minus the number to which this mode rounds `x`, for rounding a magnitude.
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
/// An overflow returns infinity, or the largest finite number if the mode does not round away from it. An infinity
/// stays; a NaN stays a NaN of unspecified bits.
#[inline(always)]
pub fn narrow(x: f64, rounding: Rounding) -> f32 {
    narrow_pair(x, 0.0, rounding)
}

/// Returns the exact value `head + tail` as a single. `head` is that value rounded to nearest.
#[inline(always)]
fn narrow_pair(head: f64, tail: f64, rounding: Rounding) -> f32 {
    // No float lies strictly between `head` and the exact value, so the directed result is this float or the next.
    let near = head as f32;
    let above = (near as f64 > head) | ((near as f64 == head) & (tail < 0.0));
    let below = ((near as f64) < head) | ((near as f64 == head) & (tail > 0.0));
    match rounding {
        // This is a single rounding only if `tail` is zero. Callers with another `tail` use other modes.
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

/// `a + b` rounded once, with gradual underflow. An exact cancellation is +0 in every mode.
///
/// A NaN result has unspecified bits.
#[inline(always)]
pub fn add(a: f32, b: f32, rounding: Rounding) -> f32 {
    if matches!(rounding, Rounding::Nearest) {
        return a + b;
    }
    // In doubles the sum of two singles cannot overflow, so the error term is exact.
    let (sum, error) = two_sum(a as f64, b as f64);
    narrow_pair(sum, error, rounding)
}

/// `a * b` rounded once, with gradual underflow. A NaN result has unspecified bits.
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
    /// binary16.
    pub const F16: Format = Format { fraction_bits: 10, exponent_bits: 5 };
    /// binary32.
    pub const F32: Format = Format { fraction_bits: 23, exponent_bits: 8 };
    /// binary64.
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
    /// An inexact magnitude has its lowest bit set, below at least two bits more than the format keeps. A magnitude
    /// of 0 returns a zero of the given sign. An overflow returns infinity, or the largest finite number if the mode
    /// does not round away from it.
    pub fn encode(self, negative: bool, magnitude: u128, exponent: i32, rounding: Rounding) -> u64 {
        let sign = self.sign(negative);
        if magnitude == 0 {
            return sign;
        }
        let top = exponent + 127 - magnitude.leading_zeros() as i32;
        // The exponent of the last place, never below that of the denormals.
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
        // With the hidden bit counted in `kept`, a carry out of the fraction runs into the exponent by itself.
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

/// Returns `a * b + c` of finite doubles, rounded once, with gradual underflow; in integers throughout.
///
/// A zero sum of zero terms of equal sign keeps the sign; any other zero sum is +0, or -0 in [`Rounding::Down`]. The
/// caller must handle infinities and NaN beforehand.
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

/// Returns the significand with the hidden bit, and the exponent of its last place.
fn parts(x: f64) -> (u64, i32) {
    let field = (x.to_bits() >> 52 & 0x7ff) as i32;
    let fraction = x.to_bits() & ((1 << 52) - 1);
    if field == 0 { (fraction, -1074) } else { (fraction | 1 << 52, field - 1075) }
}

/// Shifts a magnitude so that bit 125 is the highest set (two bits of headroom for a sum); a zero sorts below
/// everything.
fn top_aligned(magnitude: u128, exponent: i32) -> (u128, i32) {
    if magnitude == 0 {
        return (0, i32::MIN / 2);
    }
    let shift = magnitude.leading_zeros() as i32 - 2;
    (magnitude << shift, exponent - shift)
}

/// Returns the sum of two sign and magnitude numbers aligned at the top; bits shifted out stay as a set lowest bit.
///
/// Significands of up to 106 bits lose bits only if they are so far below the other that no more than one leading bit
/// can cancel.
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

/// Returns the exact sum of `terms`, times 2^`scale`, rounded once to nearest even.
///
/// The sum before the one rounding is exact if every term is a finite double that came from at most one product of
/// two singles (so that no partial sum over- or underflows a double). There are at most eight terms. A sum of only
/// zeros is -0 if every term is -0; an exact cancellation returns +0. Denormal results are not flushed. The caller
/// must handle infinite and NaN terms beforehand.
///
/// Method: Shewchuk's expansion sum, then rounding to odd on 53 bits, which makes the last rounding to 24 bits
/// correct (Boldo and Melquiond, "Emulation of FMA and correctly rounded sums", 2008).
pub fn sum_rounded(terms: &[f64], scale: i32) -> f32 {
    debug_assert!(terms.len() <= 8 && terms.iter().all(|term| term.is_finite()));
    // `parts` is a non-overlapping expansion, smallest first, whose exact sum is the sum so far.
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
    // Renormalise from the top so that `head` is the nearest double and `tail` has the sign of the rest.
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

/// Returns `head` with its last bit made odd if the exact value `head + tail` is not a double.
fn round_to_odd(head: f64, tail: f64) -> f64 {
    let bits = head.to_bits();
    if tail == 0.0 || bits & 1 == 1 {
        return head;
    }
    // Same sign: the truncated value is `head`, whose last bit becomes 1. Opposite sign: it is the next double
    // towards zero, which is odd already.
    let away = (tail > 0.0) == (head > 0.0);
    f64::from_bits(if away { bits + 1 } else { bits - 1 })
}

/// Returns the rounded sum and its exact error, which is NaN if the sum is infinite. (Knuth, The Art of Computer
/// Programming, volume 2, 4.2.2.)
#[inline(always)]
pub fn two_sum(a: f64, b: f64) -> (f64, f64) {
    let sum = a + b;
    let b_seen = sum - a;
    (sum, (a - (sum - b_seen)) + (b - b_seen))
}

/// Returns 2^`exponent`, exactly, for -1022 to 1023.
fn exp2i(exponent: i32) -> f64 {
    f64::from_bits(((1023 + exponent) as u64) << 52)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_sum_is_rounded_once() {
        // 1 + 2^-24 is halfway; the smallest extra term decides.
        let half = 2f64.powi(-24);
        assert_eq!(sum_rounded(&[1.0, half], 0), 1.0);
        assert_eq!(sum_rounded(&[1.0, half, 2f64.powi(-200)], 0), 1.0f32.next_up());
        assert_eq!(sum_rounded(&[1.0, half, -2f64.powi(-200)], 0), 1.0);
        assert_eq!(sum_rounded(&[2f64.powi(-200), half, 1.0], 0), 1.0f32.next_up());
        // Total cancellation of the large terms leaves the small one.
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
        // 2049 is a tie between 2048 and 2050, 2051 one between 2050 and 2052.
        assert_eq!(f16(2049, 0), [0x6800, 0x6800, 0x6801, 0x6800]);
        assert_eq!(f16(2051, 0), [0x6802, 0x6801, 0x6802, 0x6801]);
        assert_eq!(f16(65520, 0), [0x7c00, 0x7bff, 0x7c00, 0x7bff]);
        // Half of the smallest denormal, and slightly more.
        assert_eq!(f16(1, -25), [0, 0, 1, 0]);
        assert_eq!(f16(3, -26), [1, 0, 1, 0]);
        assert_eq!(f16(1, -200), [0, 0, 1, 0]);
        // Both values with more significant bits than doubles have.
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
            // Every other time, an addend that nearly cancels the product.
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
