//! f64 arithmetic, on G200 only. (6.5; nvhw/fp.c, hwtest/g80_fp64.cc)
//!
//! The operations of this file do not flush denormals. If a source is NaN, the result is the quiet form of the source,
//! with the sign and payload of the source. `neg` and `abs` do not change a NaN. In [`set`], this rule does not matter,
//! because the result does not depend on the sign of a NaN. If an operation creates a NaN, the new NaN is [`NAN`].

use reconverge_simt::float;

use super::{Compare, Flags, Modifiers, Rounding};

/// The NaN that f64 arithmetic produces.
pub const NAN: u64 = 0xfff8_0000_0000_0000;
const QUIET: u64 = 0x0008_0000_0000_0000;
const INFINITY: u64 = 0x7ff0_0000_0000_0000;
const SIGN: u64 = 0x8000_0000_0000_0000;

/// Returns whether the bits are a NaN.
#[inline(always)]
pub fn is_nan(x: u64) -> bool {
    x & !SIGN > INFINITY
}

fn is_infinite(x: u64) -> bool {
    x & !SIGN == INFINITY
}

fn is_zero(x: u64) -> bool {
    x & !SIGN == 0
}

/// Applies the modifiers to a number. A NaN becomes quiet instead.
#[inline(always)]
pub(super) fn modified(modifiers: Modifiers, x: u64) -> u64 {
    if is_nan(x) { x | QUIET } else { modifiers.f64(x) }
}

/// Returns the flags of an f64 result: Z for zero, S for a negative number, Z and S for NaN.
#[inline(always)]
pub fn flags(x: u64) -> Flags {
    let (nan, zero) = (is_nan(x), is_zero(x));
    Flags::of(nan | zero, nan | (!zero & (x & SIGN != 0)), false, false)
}

#[inline(always)]
fn finish(x: u64) -> (u64, Flags) {
    (x, flags(x))
}

/// Returns add: SRC1 + SRC3. If both sources are NaN, returns the second source.
#[inline(always)]
pub fn add(rounding: Rounding, neg_a: bool, neg_b: bool, a: u64, b: u64) -> (u64, Flags) {
    let one = 1.0f64.to_bits();
    let (a, b) = (
        modified(Modifiers { abs: false, neg: neg_a }, a),
        modified(Modifiers { abs: false, neg: neg_b }, b),
    );
    if is_nan(b) {
        return finish(b);
    }
    if is_nan(a) {
        return finish(a);
    }
    // If the rounding mode is to nearest, the host's addition has the same result as the chip's addition.
    match rounding {
        Rounding::Nearest if is_infinite(a) && is_infinite(b) && a != b => finish(NAN),
        Rounding::Nearest => finish((f64::from_bits(a) + f64::from_bits(b)).to_bits()),
        Rounding::Down | Rounding::Up | Rounding::Zero => finish(fused(rounding, a, one, b)),
    }
}

/// Returns mul. If both sources are NaN, returns the second source.
#[inline(always)]
pub fn mul(rounding: Rounding, neg: bool, a: u64, b: u64) -> (u64, Flags) {
    let (a, b) = (modified(Modifiers { abs: false, neg }, a), modified(Modifiers::NONE, b));
    if is_nan(b) {
        return finish(b);
    }
    if is_nan(a) {
        return finish(a);
    }
    match rounding {
        Rounding::Nearest if invalid_product(a, b) => finish(NAN),
        Rounding::Nearest => finish((f64::from_bits(a) * f64::from_bits(b)).to_bits()),
        // If the sum is rounded down, the addend +0 does not change the sign of a zero product.
        Rounding::Down => finish(fused(rounding, a, b, 0)),
        Rounding::Up | Rounding::Zero => finish(fused(rounding, a, b, SIGN)),
    }
}

/// Returns fma: SRC1 * SRC2 + SRC3, rounded once.
///
/// If several sources are NaN, returns the first of SRC2, SRC3, SRC1. An infinity times zero is [`NAN`].
#[inline(always)]
pub fn fma(rounding: Rounding, neg_a: bool, neg_c: bool, a: u64, b: u64, c: u64) -> (u64, Flags) {
    let a = modified(Modifiers { abs: false, neg: neg_a }, a);
    let b = modified(Modifiers::NONE, b);
    let c = modified(Modifiers { abs: false, neg: neg_c }, c);
    finish(match (is_nan(a), is_nan(b), is_nan(c)) {
        (_, true, _) => b,
        (_, false, true) => c,
        (true, false, false) => a,
        (false, false, false) => fused(rounding, a, b, c),
    })
}

/// Returns whether the product is infinity times zero.
fn invalid_product(a: u64, b: u64) -> bool {
    (is_infinite(a) && is_zero(b)) || (is_zero(a) && is_infinite(b))
}

/// Returns `a * b + c` for numbers that are not NaN.
fn fused(rounding: Rounding, a: u64, b: u64, c: u64) -> u64 {
    let product_sign = (a ^ b) & SIGN;
    if invalid_product(a, b) {
        return NAN;
    }
    match (is_infinite(a) || is_infinite(b), is_infinite(c)) {
        (true, true) if product_sign != c & SIGN => NAN,
        (true, _) => product_sign | INFINITY,
        (false, true) => c,
        (false, false) => {
            let [a, b, c] = [a, b, c].map(f64::from_bits);
            float::fused_multiply_add(a, b, c, rounding).to_bits()
        }
    }
}

/// Returns an integer for an f64. The integers of two values have the same order as the values. The integer of -0 is
/// below the integer of +0.
#[inline(always)]
fn order(x: u64) -> i64 {
    (x ^ ((x as i64 >> 63) as u64 >> 1)) as i64
}

/// Returns min of two sources, where -0 is less than +0. If exactly one source is NaN, returns the source that is not
/// NaN. If both sources are NaN, returns SRC2.
#[inline(always)]
pub fn min(mod_a: Modifiers, mod_b: Modifiers, a: u64, b: u64) -> (u64, Flags) {
    let (a, b) = (modified(mod_a, a), modified(mod_b, b));
    extreme(a, b, order(a) < order(b))
}

/// Returns max of two sources, where -0 is less than +0. If exactly one source is NaN, returns the source that is not
/// NaN. If both sources are NaN, returns SRC2.
#[inline(always)]
pub fn max(mod_a: Modifiers, mod_b: Modifiers, a: u64, b: u64) -> (u64, Flags) {
    let (a, b) = (modified(mod_a, a), modified(mod_b, b));
    extreme(a, b, order(a) > order(b))
}

#[inline(always)]
fn extreme(a: u64, b: u64, take_a: bool) -> (u64, Flags) {
    finish(if !is_nan(a) & (take_a | is_nan(b)) { a } else { b })
}

/// Returns the 32-bit result of set: all ones if the comparison is true, and 0 if the comparison is false. Zeros of
/// either sign are equal.
#[inline(always)]
pub fn set(compare: Compare, mod_a: Modifiers, mod_b: Modifiers, a: u64, b: u64) -> (u32, Flags) {
    let (x, y) = (f64::from_bits(mod_a.f64(a)), f64::from_bits(mod_b.f64(b)));
    let held = compare.holds(x < y, x == y, x > y);
    ((held as u32).wrapping_neg(), Flags::truth(held))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn extremes_prefer_numbers_to_nans_and_order_zeros() {
        let (one, two, other_nan) = (1f64.to_bits(), 2f64.to_bits(), NAN | 5);
        let (plus, minus) = (0f64.to_bits(), (-0f64).to_bits());
        let cases = [
            // a, b, smaller, larger
            (one, two, one, two),
            (two, one, one, two),
            (NAN, two, two, two),
            (one, NAN, one, one),
            (NAN, other_nan, other_nan, other_nan),
            (plus, minus, minus, plus),
            (minus, plus, minus, plus),
            ((-2f64).to_bits(), one, (-2f64).to_bits(), one),
        ];
        let none = Modifiers::NONE;
        for (a, b, smaller, larger) in cases {
            assert_eq!(min(none, none, a, b).0, smaller, "min {a:#x} {b:#x}");
            assert_eq!(max(none, none, a, b).0, larger, "max {a:#x} {b:#x}");
        }
    }
}
