//! Tests functions of one operand against integer arithmetic.

use reconverge_r700::lane;
use reconverge_testkit::exact::{self, Real, Whole};
use reconverge_testkit::same_of_each;

use crate::rules::{INFINITY, LARGEST, ONE, SIGN, flushed, is_nan, is_zero, result_bits};

const NAN: u32 = 0x7fc0_0000;

/// Returns the expected result of a function of the flushed operand. A NaN operand is handled here, not by `function`.
fn of_numbers(x: u32, function: impl FnOnce(u32) -> u32) -> u32 {
    if is_nan(x) { result_bits(x, &[x]) } else { flushed(function(flushed(x))) }
}

/// An operation, its lane function, and its rounding mode.
type Rounding = (&'static str, fn(u32) -> u32, Whole);

#[test]
fn whole_numbers_are_exact() {
    let functions: [Rounding; 4] = [
        ("FLOOR", lane::floor, Whole::Floor),
        ("CEIL", lane::ceil, Whole::Ceil),
        ("TRUNC", lane::trunc, Whole::Trunc),
        ("RNDNE", lane::rndne, Whole::Nearest),
    ];
    for (name, function, how) in functions {
        same_of_each(name, function, |x, _| of_numbers(x, |x| exact::made_whole(x, how)));
    }
}

#[test]
fn a_fraction_is_exact_and_rounded_once() {
    same_of_each("FRACT", lane::fract, |x, _| {
        of_numbers(x, |x| {
            let (magnitude, exponent) = exact::fraction(x);
            if x << 1 == INFINITY << 1 { NAN } else { exact::nearest(false, magnitude, exponent) }
        })
    });
}

#[test]
fn integers_of_floats_are_cut_and_saturate() {
    // Infinities saturate; a NaN becomes 0.
    let integer = |x: u32, low: i64, high: i64, how: Whole| match exact::whole(flushed(x), how) {
        Some(whole) => whole.clamp(low, high),
        None if is_nan(x) => 0,
        None if x & SIGN != 0 => low,
        None => high,
    };
    let signed = |x, _| integer(x, i32::MIN.into(), i32::MAX.into(), Whole::Trunc) as u32;
    same_of_each("FLT_TO_INT", lane::flt_to_int, signed);
    let unsigned = |x, _| integer(x, 0, u32::MAX.into(), Whole::Trunc) as u32;
    same_of_each("FLT_TO_UINT", lane::flt_to_uint, unsigned);
    let address = |how| move |x, _| integer(x, -256, 255, how) as u32;
    same_of_each("MOVA", |x| lane::mova(x) as u32, address(Whole::Nearest));
    same_of_each("MOVA_FLOOR", |x| lane::mova_floor(x) as u32, address(Whole::Floor));
    same_of_each("MOVA_INT", |x| lane::mova_int(x) as u32, |x, _| (x as i32).clamp(-256, 255) as u32);
}

#[test]
fn floats_of_integers_are_the_nearest() {
    same_of_each("INT_TO_FLT", lane::int_to_flt, |x, _| {
        let negative = (x as i32) < 0;
        exact::nearest(negative, (x as i32).unsigned_abs().into(), 0)
    });
    same_of_each("UINT_TO_FLT", lane::uint_to_flt, |x, _| exact::nearest(false, x.into(), 0));
}

#[test]
fn reciprocals_of_integers_are_quotients() {
    let quotient = |x: u32| ((1u64 << 32) - 1).checked_div(x.into()).unwrap_or(u32::MAX.into()) as u32;
    same_of_each("RECIP_UINT", lane::recip_uint, |x, _| quotient(x));
    same_of_each("RECIP_INT", lane::recip_int, |x, _| match x as i32 {
        negative @ ..0 => (-i64::from(quotient(negative.unsigned_abs()))) as u32,
        _ => quotient(x),
    });
}

#[test]
fn factors_are_exact_but_for_their_ends() {
    for (factor, exponent) in [(2.0, 1), (4.0, 2), (0.5, -1), (1.0, 0)] {
        same_of_each(
            "OMOD",
            |x| lane::scale(x, factor),
            |x, _| {
                of_numbers(x, |x| {
                    let (significand, place) = exact::parts(x);
                    let scaled = exact::nearest(x & SIGN != 0, significand.into(), place + exponent);
                    if x << 1 == INFINITY << 1 { x } else { scaled }
                })
            },
        );
    }
    for dx10 in [false, true] {
        same_of_each(
            "CLAMP",
            |x| lane::clamp(x, dx10),
            |x, _| match x {
                nan if is_nan(nan) => {
                    if dx10 {
                        0
                    } else {
                        nan
                    }
                }
                // -0 and numbers below 0 become +0.
                SIGN.. | 0 => 0,
                ONE..SIGN => ONE,
                between => between,
            },
        );
    }
    same_of_each("SRC_ABS", lane::abs, |x, _| x % (1 << 31));
    same_of_each("SRC_NEG", lane::neg, |x, _| x.wrapping_add(SIGN));
    same_of_each("NOT_INT", lane::not_int, |x, _| u32::MAX - x);
    same_of_each("MOV", lane::mov, |x, _| x);
}

/// Returns a result with infinity as is, and in the clamped and the finite forms.
fn forms(x: u32) -> [u32; 3] {
    let infinite = x << 1 == INFINITY << 1;
    [x, if infinite { x & SIGN | LARGEST } else { x }, if infinite { x & SIGN } else { x }]
}

/// Returns `found` if it is right, and a different word otherwise.
fn judged(found: u32, right: bool) -> u32 {
    if right { found } else { !found }
}

#[test]
fn reciprocals_and_roots_are_the_nearest() {
    let reciprocal = |x: u32, found: u32| {
        of_numbers(x, |x| match x & !SIGN {
            0 => x | INFINITY,
            // Above 2^126 the result is a denormal.
            0x7e80_0001.. => x & SIGN,
            magnitude => {
                judged(found, found & SIGN == x & SIGN && exact::is_reciprocal(magnitude, found & !SIGN))
            }
        })
    };
    same_of_each("RECIP_IEEE", lane::recip_ieee, reciprocal);
    same_of_each("RECIP_CLAMPED", lane::recip_clamped, |x, found| forms(reciprocal(x, found))[1]);
    same_of_each("RECIP_FF", lane::recip_ff, |x, found| forms(reciprocal(x, found))[2]);
    let reciprocal_root = |x: u32, found: u32| {
        of_numbers(x, |x| match x {
            0 | SIGN => x | INFINITY,
            SIGN.. => NAN,
            INFINITY => 0,
            _ => judged(found, exact::is_reciprocal_root(x, found)),
        })
    };
    same_of_each("RECIPSQRT_IEEE", lane::recipsqrt_ieee, reciprocal_root);
    same_of_each("RECIPSQRT_CLAMPED", lane::recipsqrt_clamped, |x, found| {
        forms(reciprocal_root(x, found))[1]
    });
    same_of_each("RECIPSQRT_FF", lane::recipsqrt_ff, |x, found| forms(reciprocal_root(x, found))[2]);
    same_of_each("SQRT_IEEE", lane::sqrt_ieee, |x, found| {
        of_numbers(x, |x| match x {
            0 | SIGN | INFINITY => x,
            SIGN.. => NAN,
            _ => judged(found, exact::is_root(x, found)),
        })
    });
}

/// Returns `found` if it is a possible result of a function that is computed in doubles and rounded once.
fn near(found: u32, value: Option<Real>, zero: u32) -> u32 {
    let Some(value) = value else { return zero };
    let [low, high] = value.candidates().map(flushed);
    if found == high { high } else { low }
}

#[test]
fn exponentials_and_logarithms_are_rounded_once() {
    same_of_each("EXP_IEEE", lane::exp_ieee, |x, found| {
        of_numbers(x, |x| match x {
            INFINITY => x,
            0xff80_0000 => 0,
            _ => near(found, Some(exact::exp2(x)), 0),
        })
    });
    // The exponent changes fastest: a significand has 254 logarithms that differ by whole numbers.
    let logarithm = |x: u32, found: u32| {
        of_numbers(x, |x| match x {
            0 | SIGN => SIGN | INFINITY,
            SIGN.. => NAN,
            INFINITY => x,
            _ => near(found, exact::log2(x), 0),
        })
    };
    same_of_each("LOG_IEEE", lane::log_ieee, logarithm);
    same_of_each("LOG_CLAMPED", lane::log_clamped, |x, found| match logarithm(x, found) {
        0xff80_0000 => SIGN | LARGEST,
        other => other,
    });
}

#[test]
fn sines_are_rounded_once_and_exact_where_they_are_zero() {
    let finite = |x: u32, function: &dyn Fn(u32) -> u32| {
        of_numbers(x, |x| if x << 1 == INFINITY << 1 { NAN } else { function(x) })
    };
    same_of_each("SIN", lane::sin, |x, found| finite(x, &|x| near(found, exact::sine_of_turns(x), 0)));
    same_of_each("COS", lane::cos, |x, found| finite(x, &|x| near(found, exact::cosine_of_turns(x), 0)));
    // In radians, only a zero has a sine of zero. The sine has the sign of the zero.
    same_of_each("SIN of R600", lane::sin_radians, |x, found| finite(x, &|x| near(found, exact::sine(x), x)));
    same_of_each("COS of R600", lane::cos_radians, |x, found| {
        finite(x, &|x| near(found, exact::cosine(x), x))
    });
}

#[test]
fn predicates_of_one_counter() {
    let value = |execute: bool, x: u32| [u32::from(execute), x];
    for x in reconverge_testkit::special_words() {
        let found = |predicate: lane::Predicate| value(predicate.execute, predicate.value);
        let one = flushed(x) == ONE;
        let inverted = if one {
            0
        } else if is_zero(x) {
            ONE
        } else {
            x
        };
        assert_eq!(found(lane::pred_set_inv(x)), value(one, inverted), "{x:#010x}");
        let restored = if is_zero(x) { 0 } else { x };
        assert_eq!(found(lane::pred_set_restore(x)), value(is_zero(x), restored), "{x:#010x}");
    }
    assert_eq!((lane::pred_set_clr().execute, lane::pred_set_clr().value), (false, LARGEST));
}
