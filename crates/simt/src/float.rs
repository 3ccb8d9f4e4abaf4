//! Rounding, flushing and NaN, stated for each function.
//!
//! Rust does not promise the bit pattern of a NaN result, so every function here that can make one says which.
//! Nothing here calls the platform's mathematics library.

/// A zero of the same sign for a denormal, anything else unchanged.
#[inline]
pub fn flush(x: f32) -> f32 {
    if x.is_subnormal() { 0.0f32.copysign(x) } else { x }
}

/// The exact sum of `terms`, times 2^`scale`, rounded once to nearest even.
///
/// Exact before the one rounding as long as every term is a finite double that came from at most one product of
/// two singles (so that no partial sum over- or underflows a double). At most eight terms. The sum of nothing
/// but zeros is -0 only when every term is -0; an exact cancellation gives +0. Denormal results are not flushed.
/// An infinite or NaN term is the caller's to sort out beforehand.
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

/// `head` with its last bit made odd when the exact value `head + tail` is not a double.
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

/// The rounded sum and its exact error. (Knuth, The Art of Computer Programming, volume 2, 4.2.2.)
fn two_sum(a: f64, b: f64) -> (f64, f64) {
    let sum = a + b;
    let b_seen = sum - a;
    (sum, (a - (sum - b_seen)) + (b - b_seen))
}

/// 2^`exponent`, exactly, for -1022 to 1023.
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
    fn flush_keeps_the_sign() {
        assert_eq!(flush(-1e-40).to_bits(), 0x8000_0000);
        assert_eq!(flush(f32::MIN_POSITIVE), f32::MIN_POSITIVE);
    }
}
