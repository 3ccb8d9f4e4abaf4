//! The arithmetic of one lane. Each computation is a pure function.
//!
//! The documents describe R500 arithmetic as IEEE binary32 without denormals. According to CTM guide p. 41, the
//! rounding is effectively random. So this project cannot reproduce the rounding of the hardware. The functions in this
//! file follow deterministic rules with the name *profile R*:
//!
//! * if OMOD is not disabled, a denormal input or result becomes a zero with the sign of the denormal ([`flush`]);
//! * products and sums are exact; OMOD scales the exact value; the scaled value is rounded once to nearest even (an
//!   overflow returns infinity);
//! * results of transcendental functions are rounded and flushed, and OMOD scales the flushed result (CTM guide p. 42);
//! * every NaN result is [`NAN`].

use reconverge_simt::float::{flush, sum_rounded};

use crate::words::{AluResultOp, Imod, Omod, SrcpOp, Target};

/// The NaN that arithmetic returns. (CTM guide p. 29)
pub const NAN: f32 = f32::from_bits(0x7fff_ffff);

/// One term of a sum. A term is the exact product of two singles, or one single.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Term(f64);

impl Term {
    /// Returns a term for an addend. Denormals are flushed.
    pub fn value(x: f32) -> Term {
        Term(f64::from(flush(x)))
    }

    /// Returns the exact product a * b. `zero_wins` is US_CONFIG.ZERO_TIMES_ANYTHING_EQUALS_ZERO. If `zero_wins` is
    /// set, zero times infinity or NaN is zero (REG). The sign of the zero is the exclusive-or of the factors' signs
    /// (recommended in r500.md 3.5). If `zero_wins` is not set, zero times infinity or NaN is a NaN.
    pub fn product(a: f32, b: f32, zero_wins: bool) -> Term {
        let (a, b) = (flush(a), flush(b));
        if zero_wins && (a == 0.0 || b == 0.0) {
            let negative = a.is_sign_negative() != b.is_sign_negative();
            return Term(if negative { -0.0 } else { 0.0 });
        }
        Term(f64::from(a) * f64::from(b))
    }
}

/// Returns the sum of `terms`, scaled by OMOD and rounded once. The operations MAD, MDH, MDV and FRC use this function.
pub fn sum(terms: &[Term], omod: Omod) -> f32 {
    // A dot product has the most terms: four.
    let mut values = [0.0; 4];
    for (value, term) in values.iter_mut().zip(terms) {
        *value = term.0;
    }
    let values = &values[..terms.len()];
    if values.iter().all(|value| value.is_finite()) {
        return flush(sum_rounded(values, scale(omod)));
    }
    let (mut up, mut down) = (false, false);
    for value in values {
        if value.is_nan() {
            return NAN;
        }
        up |= *value == f64::INFINITY;
        down |= *value == f64::NEG_INFINITY;
    }
    match (up, down) {
        (true, true) => NAN,
        (true, false) => f32::INFINITY,
        (false, _) => f32::NEG_INFINITY,
    }
}

/// Returns the sum of the terms of DP3, DP4 or D2A.
///
/// The function is like [`sum`], with one documented deviation. The deviation applies under two conditions: the two
/// largest terms cancel exactly, and the third largest term is at least 2^25 times smaller than the largest. The result
/// is then +0. (CTM guide p. 42)
pub fn dot(terms: &[Term], omod: Omod) -> f32 {
    let mut by_size = [0.0f64; 4];
    for (value, term) in by_size.iter_mut().zip(terms) {
        *value = term.0;
    }
    by_size.sort_by(|a, b| b.abs().total_cmp(&a.abs()));
    let [first, second, third, _] = by_size;
    if first.is_finite()
        && first != 0.0
        && first == -second
        && third.abs() <= first.abs() * f64::from(1.0 / (1u32 << 25) as f32)
    {
        return 0.0;
    }
    sum(terms, omod)
}

/// Applies OMOD to a value that is already rounded. A NaN becomes [`NAN`], and a denormal becomes zero. If OMOD is
/// disabled, all bits stay unchanged. (CTM guide p. 29)
pub fn scaled(x: f32, omod: Omod) -> f32 {
    if omod == Omod::DISABLED {
        return x;
    }
    if x.is_nan() {
        return NAN;
    }
    // A double holds the product exactly, so the result is rounded only once.
    let exact = f64::from(flush(x)) * 2f64.powi(scale(omod));
    flush(exact as f32)
}

/// Returns n if OMOD multiplies by 2^n.
const fn scale(omod: Omod) -> i32 {
    match omod {
        Omod::MUL_1 | Omod::DISABLED => 0,
        Omod::MUL_2 => 1,
        Omod::MUL_4 => 2,
        Omod::MUL_8 => 3,
        Omod::DIV_2 => -1,
        Omod::DIV_4 => -2,
        Omod::DIV_8 => -3,
    }
}

/// Clamps to 0..1. Returns +0 for a NaN, because the maximum of a NaN and zero is the second operand, zero.
/// (Recommended, r500.md Q8)
pub fn clamp(x: f32) -> f32 {
    max(x, 0.0).min(1.0)
}

/// Applies an input modifier. The modifier changes only the sign bit, even of a NaN. (CTM guide p. 27)
pub fn modify(x: f32, modifier: Imod) -> f32 {
    match modifier {
        Imod::NOP => x,
        Imod::NEG => f32::from_bits(x.to_bits() ^ 0x8000_0000),
        Imod::ABS => f32::from_bits(x.to_bits() & 0x7fff_ffff),
        Imod::NAB => f32::from_bits(x.to_bits() | 0x8000_0000),
    }
}

/// Computes the presubtract of one channel, from unswizzled and unmodified sources. (CTM guide p. 26)
pub fn presubtract(op: SrcpOp, src0: f32, src1: f32) -> f32 {
    let one = Term::value(1.0);
    let negative = |x: f32| Term::value(-x);
    match op {
        SrcpOp::NEG2 => sum(&[one, Term::product(-2.0, src0, false)], Omod::MUL_1),
        SrcpOp::SUB => sum(&[Term::value(src1), negative(src0)], Omod::MUL_1),
        SrcpOp::ADD => sum(&[Term::value(src1), Term::value(src0)], Omod::MUL_1),
        SrcpOp::NEG => sum(&[one, negative(src0)], Omod::MUL_1),
    }
}

/// Computes A < B ? A : B. Returns B if either operand is a NaN, or if both are zeros. (CTM guide p. 42)
pub fn min(a: f32, b: f32) -> f32 {
    if flush(a) < flush(b) { a } else { b }
}

/// Computes A >= B ? A : B. Returns B if an operand is a NaN or if both operands are zeros. The CTM guide contradicts
/// itself for two zeros: in the opcode table (p. 28) the result is A, and in the floating-point note (p. 42) the result
/// is the second operand. This function follows the note.
pub fn max(a: f32, b: f32) -> f32 {
    let (x, y) = (flush(a), flush(b));
    if x >= y && !(x == 0.0 && y == 0.0) { a } else { b }
}

/// Computes C > 0.5 ? A : B. Returns B if C is a NaN. (CTM guide p. 28; NaN: p. 42)
pub fn cnd(a: f32, b: f32, c: f32) -> f32 {
    if c > 0.5 { a } else { b }
}

/// Computes C >= 0 ? A : B. Treats -0 and denormals as zero. (CTM guide pp. 28 and 42)
pub fn cmp(a: f32, b: f32, c: f32) -> f32 {
    if flush(c) >= 0.0 { a } else { b }
}

/// Computes A - floor(A), rounded once. For a tiny negative number, the result may be 1. For an infinity, the result is
/// a NaN. (r500.md 3.5)
pub fn frc(a: f32, omod: Omod) -> f32 {
    let a = flush(a);
    if !a.is_finite() {
        return NAN;
    }
    sum(&[Term::value(a), Term::value(-libm::floorf(a))], omod)
}

/// Computes 2 to the power of A. The recommended result is 0 for -infinity, and infinity for +infinity. (r500.md Q10)
pub fn ex2(a: f32) -> f32 {
    rounded(libm::exp2(f64::from(flush(a))))
}

/// Computes the base-two logarithm of A. The recommended result is -infinity for zeros, and a NaN for negative numbers.
/// (r500.md Q10)
pub fn ln2(a: f32) -> f32 {
    let a = flush(a);
    if a == 0.0 { f32::NEG_INFINITY } else { rounded(libm::log2(f64::from(a))) }
}

/// Computes 1 / A. The recommended result for a zero is an infinity with the sign of the zero. (r500.md Q10)
pub fn rcp(a: f32) -> f32 {
    rounded(1.0 / f64::from(flush(a)))
}

/// Computes 1 / sqrt(A). Does not take the absolute value of A first. The recommended result for a zero is an infinity
/// with the sign of the zero. The recommended result for a negative number is a NaN. (r500.md Q10)
pub fn rsq(a: f32) -> f32 {
    let a = flush(a);
    if a == 0.0 { f32::INFINITY.copysign(a) } else { rounded(1.0 / libm::sqrt(f64::from(a))) }
}

/// Computes sin(2 pi A), after reducing A modulo 1. The documents state the accuracy of the hardware only if A is
/// within about -0.5..1.
pub fn sin(a: f32) -> f32 {
    sin_of_turns(flush(a), 0)
}

/// Computes cos(2 pi A), after reducing A modulo 1.
pub fn cos(a: f32) -> f32 {
    sin_of_turns(flush(a), 1)
}

/// Computes sin(2 pi (a + quarters / 4)). The result is exact at multiples of a quarter.
fn sin_of_turns(a: f32, quarters: i64) -> f32 {
    if !a.is_finite() {
        return NAN;
    }
    // This difference is exact, even for negative numbers. With `floor` instead of `rint`, the difference would be
    // inexact for a small negative number, because the floor of a small negative number is -1.
    let turns = f64::from(a) - libm::rint(f64::from(a));
    let nearest = libm::rint(turns * 4.0);
    let angle = (turns - nearest / 4.0) * std::f64::consts::TAU;
    let value = match (nearest as i64 + quarters).rem_euclid(4) {
        0 => libm::sin(angle),
        1 => libm::cos(angle),
        2 => -libm::sin(angle),
        _ => -libm::cos(angle),
    };
    // A zero result becomes +0 in every quarter.
    rounded(value + 0.0)
}

fn rounded(x: f64) -> f32 {
    if x.is_nan() { NAN } else { flush(x as f32) }
}

/// Compares a result with zero for a predicate bit. `target` selects the comparison. (US_ALU_*_INST.TARGET of an ALU
/// instruction)
pub fn predicate(x: f32, target: Target) -> bool {
    match target {
        Target::A => compare(x, AluResultOp::EQ),
        Target::B => compare(x, AluResultOp::LT),
        Target::C => compare(x, AluResultOp::GE),
        Target::D => compare(x, AluResultOp::NE),
    }
}

/// Compares a value with zero. The comparison treats denormals as zero. For a NaN, only "not equal" is true. (r500.md
/// Q11)
pub fn compare(x: f32, op: AluResultOp) -> bool {
    let x = flush(x);
    match op {
        AluResultOp::EQ => x == 0.0,
        AluResultOp::LT => x < 0.0,
        AluResultOp::GE => x >= 0.0,
        AluResultOp::NE => x != 0.0,
    }
}

/// Returns whether a component of TEXKILL kills the lane. Only the sign bit matters, so -0 also kills the lane. (Mesa's
/// authors observed this on R500 chips; r500.md Q12)
pub fn texkill(component: f32) -> bool {
    component.is_sign_negative()
}

#[cfg(test)]
mod tests {
    use super::*;

    const INF: f32 = f32::INFINITY;

    fn mad(a: f32, b: f32, c: f32) -> f32 {
        sum(&[Term::product(a, b, false), Term::value(c)], Omod::MUL_1)
    }

    fn bits(x: f32) -> u32 {
        x.to_bits()
    }

    /// REG, US_CONFIG.
    #[test]
    fn zero_times_anything_is_zero_only_when_configured() {
        assert_eq!(bits(mad(0.0, INF, 1.0)), bits(NAN));
        for (a, b) in [(0.0, INF), (f32::NAN, 0.0), (1e-40, INF)] {
            let product = Term::product(a, b, true);
            assert_eq!(sum(&[product, Term::value(1.0)], Omod::MUL_1), 1.0, "{a} * {b}");
        }
        assert_eq!(bits(sum(&[Term::product(-0.0, INF, true)], Omod::MUL_1)), bits(-0.0));
    }

    /// CTM guide p. 41.
    #[test]
    fn only_two_negative_zeros_add_to_negative_zero() {
        assert_eq!(bits(mad(1.0, 0.0, -0.0)), 0);
        assert_eq!(bits(mad(-0.0, 0.0, -0.0)), bits(-0.0));
        assert_eq!(bits(mad(-0.0, 0.0, 3.0)), bits(3.0));
    }

    /// CTM guide p. 42 and IEEE.
    #[test]
    fn infinities_and_nans_in_sums() {
        assert_eq!(bits(mad(INF, 1.0, -INF)), bits(NAN));
        assert_eq!(mad(INF, 1.0, -1.0), INF);
        assert_eq!(bits(mad(1.0, 1.0, f32::from_bits(0xffc0_1234))), 0x7fff_ffff);
    }

    /// CTM guide p. 42.
    #[test]
    fn min_and_max_give_the_second_operand_for_nans_and_zeros() {
        for op in [min, max] {
            assert_eq!(op(f32::NAN, 2.0), 2.0);
            assert!(op(2.0, f32::NAN).is_nan());
            assert_eq!(bits(op(0.0, -0.0)), bits(-0.0));
            assert_eq!(bits(op(-0.0, 0.0)), 0);
        }
        assert_eq!(max(3.0, 3.0), 3.0);
        // The result has the bits of the denormal operand, although a denormal compares as zero.
        assert_eq!(bits(max(1e-40, -1.0)), bits(1e-40));
    }

    /// CTM guide p. 42.
    #[test]
    fn conditional_moves_take_the_second_operand_for_nan() {
        assert_eq!(cmp(1.0, 2.0, f32::NAN), 2.0);
        assert_eq!(cnd(1.0, 2.0, f32::NAN), 2.0);
        assert_eq!(cmp(1.0, 2.0, -0.0), 1.0);
        assert_eq!(cmp(1.0, 2.0, -1e-40), 1.0);
        assert_eq!(cnd(1.0, 2.0, 0.5), 2.0);
    }

    /// CTM guide p. 29.
    #[test]
    fn disabled_omod_passes_bits_and_any_other_normalises() {
        let denormal = f32::from_bits(0x8000_0001);
        assert_eq!(bits(scaled(denormal, Omod::DISABLED)), 0x8000_0001);
        assert_eq!(bits(scaled(denormal, Omod::MUL_1)), 0x8000_0000);
        assert_eq!(bits(scaled(f32::from_bits(0xff80_0001), Omod::MUL_1)), 0x7fff_ffff);
        assert_eq!(bits(scaled(f32::from_bits(0xff80_0001), Omod::DISABLED)), 0xff80_0001);
        assert_eq!(scaled(3.0, Omod::DIV_8), 0.375);
    }

    #[test]
    fn omod_scales_before_the_rounding_of_a_sum() {
        let half_of_overflow = sum(&[Term::product(f32::MAX, 2.0, false), Term::value(0.0)], Omod::DIV_2);
        assert_eq!(half_of_overflow, f32::MAX);
    }

    /// CTM guide p. 42.
    #[test]
    fn cancelled_dot_products_drop_what_is_far_smaller() {
        let terms = |small: f32| [Term::value(1024.0), Term::value(-1024.0), Term::value(small)];
        let limit = 1024.0 / (1u32 << 25) as f32;
        assert_eq!(dot(&terms(limit), Omod::MUL_1), 0.0);
        assert_eq!(dot(&terms(limit * 2.0), Omod::MUL_1), limit * 2.0);
        assert_eq!(sum(&terms(limit), Omod::MUL_1), limit);
    }

    #[test]
    fn clamp_of_nan_is_zero() {
        assert_eq!(bits(clamp(f32::NAN)), 0);
        assert_eq!((clamp(-1.0), clamp(0.25), clamp(7.0)), (0.0, 0.25, 1.0));
        assert_eq!(bits(clamp(-0.0)), 0);
    }

    /// CTM guide p. 26.
    #[test]
    fn presubtract_operations() {
        let results =
            [SrcpOp::NEG2, SrcpOp::SUB, SrcpOp::ADD, SrcpOp::NEG].map(|op| presubtract(op, 3.0, 5.0));
        assert_eq!(results, [-5.0, 2.0, 8.0, -2.0]);
    }

    #[test]
    fn sine_is_exact_at_quarters_and_periodic() {
        assert_eq!([0.0, 0.25, 0.5, 0.75, 1.0].map(sin), [0.0, 1.0, 0.0, -1.0, 0.0]);
        assert_eq!([0.0, 0.25, 0.5, 0.75, 1.0].map(cos), [1.0, 0.0, -1.0, 0.0, 1.0]);
        assert_eq!(sin(-0.25), -1.0);
        assert_eq!(sin(1.0 / 12.0), 0.5);
        assert_eq!(bits(sin(INF)), bits(NAN));
        for x in [2f32.powi(-60), 1.5e-20, f32::MIN_POSITIVE] {
            assert!(sin(x) > 6.0 * x && sin(-x) == -sin(x), "{x:e}");
        }
    }

    /// r500.md 3.5, recommended values.
    #[test]
    fn transcendentals_at_the_ends() {
        assert_eq!((ex2(f32::NEG_INFINITY), ex2(INF), ex2(3.0)), (0.0, INF, 8.0));
        assert_eq!((ln2(0.0), ln2(-0.0), ln2(INF), ln2(8.0)), (-INF, -INF, INF, 3.0));
        assert_eq!((rcp(-0.0), rcp(INF), rcp(4.0)), (-INF, 0.0, 0.25));
        assert_eq!((rsq(0.0), rsq(-0.0), rsq(INF), rsq(4.0)), (INF, -INF, 0.0, 0.5));
        for nan in [ln2(-1.0), rsq(-1.0), ex2(f32::NAN), frc(INF, Omod::MUL_1)] {
            assert_eq!(bits(nan), bits(NAN));
        }
        // A denormal result of an exponential is flushed.
        assert_eq!(bits(ex2(-127.0)), 0);
    }

    #[test]
    fn fraction_is_rounded_once() {
        assert_eq!(frc(-0.25, Omod::MUL_1), 0.75);
        assert_eq!(frc(2.5, Omod::MUL_2), 1.0);
        assert_eq!(frc(-1e-30, Omod::MUL_1), 1.0);
    }

    #[test]
    fn kill_looks_at_the_sign_bit() {
        assert!(texkill(-0.0) && texkill(-1.0) && !texkill(0.0));
    }
}
