//! The vertex unit: every operation rounds, and its operands are already flushed.

use std::cmp::Ordering;

use reconverge_r500::pvs::lane::{self, Compare};
use reconverge_testkit::exact::{self, Real, Whole};
use reconverge_testkit::{Random, same_of_each, special_words, summand};
use rustc_apfloat::ieee::Single;
use rustc_apfloat::{Float, Round};

use crate::rules::{
    INFINITY, LARGEST, NAN, ONE, SIGN, flushed, is_infinite, is_nan, judged, near, of_numbers, words,
};

fn single(x: u32) -> Single {
    Single::from_bits(flushed(x).into())
}

fn result(value: Single) -> u32 {
    if value.is_nan() { NAN } else { flushed(value.to_bits() as u32) }
}

fn sum(a: u32, b: u32) -> u32 {
    result(single(a).add_r(single(b), Round::NearestTiesToEven).value)
}

/// Returns the product. Zero times any value is a zero with the sign of the product.
fn product(a: u32, b: u32) -> u32 {
    if flushed(a) << 1 == 0 || flushed(b) << 1 == 0 {
        return (a ^ b) & SIGN;
    }
    result(single(a).mul_r(single(b), Round::NearestTiesToEven).value)
}

fn order(a: u32, b: u32) -> Option<Ordering> {
    single(a).partial_cmp(&single(b))
}

/// Replaces an infinity by the largest finite number, as the DX forms do.
fn finite(x: u32) -> u32 {
    if is_infinite(x) { x & SIGN | LARGEST } else { x }
}

/// Returns a function of words that flushes its operand.
fn read(function: impl Fn(f32) -> f32) -> impl Fn(u32) -> u32 {
    words(move |x| function(lane::operand(x.to_bits(), false, false)))
}

#[test]
fn operands_lose_their_sign_then_take_one_then_lose_their_denormals() {
    for (abs, negate) in [(false, false), (true, false), (false, true), (true, true)] {
        same_of_each(
            "operand",
            |x| lane::operand(x, abs, negate).to_bits(),
            |x, _| {
                let x = if abs { x % SIGN } else { x };
                flushed(if negate { x.wrapping_add(SIGN) } else { x })
            },
        );
    }
    same_of_each("result", words(lane::result), |x, _| of_numbers(x, |x| x));
}

#[test]
fn whole_numbers_and_fractions_are_exact() {
    let floor = |x: u32| of_numbers(x, |x| exact::made_whole(x, Whole::Floor));
    same_of_each("VE_FLT2FIX_DX", read(lane::to_fixed), |x, _| floor(x));
    // The sum is rounded before its floor is taken.
    same_of_each("VE_FLT2FIX_DX_RND", read(lane::to_fixed_rounded), |x, _| floor(sum(x, 0x3f00_0000)));
    same_of_each("VE_FRACTION", read(lane::fraction), |x, _| {
        of_numbers(x, |x| {
            let (magnitude, exponent) = exact::fraction(x);
            if is_infinite(x) { NAN } else { exact::nearest(false, magnitude, exponent) }
        })
    });
    same_of_each(
        "A0",
        |x| lane::address(f32::from_bits(x)) as u32,
        |x, _| match exact::whole(x, Whole::Floor) {
            Some(whole) => whole.clamp(-256, 255) as u32,
            None if is_nan(x) => 0,
            None if x == INFINITY => 255,
            None => -256i32 as u32,
        },
    );
    same_of_each("saturation", read(lane::saturate), |x, _| match flushed(x) {
        nan if is_nan(nan) => 0,
        0 | SIGN.. => 0,
        ONE..SIGN => ONE,
        between => between,
    });
}

#[test]
fn reciprocals_are_cut_and_have_three_forms() {
    let reciprocal = |x: u32, found: u32| {
        of_numbers(x, |x| match x & !SIGN {
            0 => x | INFINITY,
            0x7e80_0001.. => x & SIGN,
            magnitude => {
                judged(found, found & SIGN == x & SIGN && exact::is_cut_reciprocal(magnitude, found & !SIGN))
            }
        })
    };
    let zero = |x: u32| flushed(x) << 1 == 0;
    same_of_each("ME_RECIP_IEEE", read(lane::recip_ieee), reciprocal);
    same_of_each(
        "ME_RECIP_FF",
        read(lane::recip_ff),
        |x, found| {
            if zero(x) { 0 } else { reciprocal(x, found) }
        },
    );
    same_of_each("ME_RECIP_DX", read(lane::recip_dx), |x, found| {
        if zero(x) { LARGEST } else { finite(reciprocal(x, found)) }
    });
    // The root of the absolute value.
    let root = |x: u32, found: u32| {
        of_numbers(x % SIGN, |x| match x {
            0 => INFINITY,
            INFINITY => 0,
            _ => judged(found, exact::is_reciprocal_root(x, found)),
        })
    };
    same_of_each("ME_RECIP_SQRT_IEEE", read(lane::recip_sqrt_ieee), root);
    same_of_each(
        "ME_RECIP_SQRT_FF",
        read(lane::recip_sqrt_ff),
        |x, found| if zero(x) { 0 } else { root(x, found) },
    );
    same_of_each("ME_RECIP_SQRT_DX", read(lane::recip_sqrt_dx), |x, found| finite(root(x, found)));
}

/// Returns e^x or 2^x. `function` computes the results for finite numbers.
fn exponential(x: u32, found: u32, function: fn(u32) -> Real) -> u32 {
    of_numbers(x, |x| match x {
        INFINITY => x,
        0xff80_0000 => 0,
        _ => near(found, Some(function(x)), 0),
    })
}

/// log2(|x|).
fn logarithm(x: u32, found: u32) -> u32 {
    of_numbers(x % SIGN, |x| match x {
        0 => SIGN | INFINITY,
        INFINITY => x,
        _ => near(found, exact::log2(x), 0),
    })
}

#[test]
fn exponentials_and_logarithms_are_rounded_once() {
    same_of_each("ME_EXP_BASE2_FULL_DX", read(lane::exp_base2_full), |x, found| {
        finite(exponential(x, found, exact::exp2))
    });
    same_of_each("ME_EXP_BASEE_FF", read(lane::exp_base_e), |x, found| exponential(x, found, exact::exp));
    same_of_each("ME_LOG_BASE2_IEEE", read(lane::log_base2_ieee), logarithm);
    same_of_each("ME_LOG_BASE2_FULL_DX", read(lane::log_base2_full), |x, found| finite(logarithm(x, found)));
}

#[test]
fn exponential_and_logarithm_have_parts() {
    for part in 0..4 {
        same_of_each("ME_EXP_BASE2_DX", read(|x| lane::exp_base2(x)[part]), |x, found| match part {
            0 => {
                finite(exponential(of_numbers(x, |x| exact::made_whole(x, Whole::Floor)), found, exact::exp2))
            }
            // 0 above 128.
            1 if order(x, 0x4300_0000) == Some(Ordering::Greater) => 0,
            1 => of_numbers(x, |x| {
                let (magnitude, exponent) = exact::fraction(x);
                if is_infinite(x) { NAN } else { exact::nearest(false, magnitude, exponent) }
            }),
            2 => finite(exponential(x, found, exact::exp2)),
            _ => ONE,
        });
        same_of_each("ME_LOG_BASE2_DX", read(|x| lane::log_base2(x)[part]), |x, found| {
            let magnitude = flushed(x) % SIGN;
            match part {
                0 if is_nan(x) => NAN,
                0 if magnitude == 0 => SIGN | LARGEST,
                0 if is_infinite(x) => LARGEST,
                0 => {
                    let exponent = i32::from((magnitude >> 23) as u8) - 127;
                    exact::nearest(exponent < 0, exponent.unsigned_abs().into(), 0)
                }
                1 if is_nan(x) => NAN,
                1 if magnitude == 0 || is_infinite(x) => ONE,
                1 => exact::nearest(false, exact::parts(magnitude).0.into(), -23),
                2 => finite(logarithm(x, found)),
                _ => ONE,
            }
        });
    }
}

#[test]
fn sines_are_those_of_radians_up_to_pi() {
    // The words from the first single above pi to infinity.
    let beyond = |x: u32| (0x4049_0fdb..=INFINITY).contains(&(x % SIGN));
    same_of_each("ME_SIN", read(lane::sine), |x, found| {
        of_numbers(x, |x| if beyond(x) { 0 } else { near(found, exact::sine(x), x) })
    });
    same_of_each("ME_COS", read(lane::cosine), |x, found| {
        of_numbers(x, |x| if beyond(x) { SIGN | ONE } else { near(found, exact::cosine(x), x) })
    });
}

/// Checks every pair of special words, and random pairs; all words are flushed.
fn each_pair(seed: u64, mut check: impl FnMut(u32, u32)) {
    let special: Vec<u32> = special_words().into_iter().map(flushed).collect();
    special.iter().for_each(|a| special.iter().for_each(|b| check(*a, *b)));
    println!("seed {seed:#x}");
    let mut random = Random::new(seed);
    for _ in 0..300_000 {
        let (a, b) =
            (flushed(random.next() << 12 ^ random.next()), flushed(random.next() << 12 ^ random.next()));
        check(a, b);
        check(a, random.one_of(&special));
        check(a, flushed(a ^ SIGN ^ random.below(4)));
        check(flushed(a & 0xc0ff_ffff), flushed(b & 0xbfff_ffff));
    }
}

#[test]
fn sums_products_and_choices_of_pairs() {
    use Ordering::{Equal, Greater, Less};
    each_pair(0x5eed_2450, |a, b| {
        let (x, y) = (f32::from_bits(a), f32::from_bits(b));
        let shown = || format!("{a:#010x} {b:#010x}");
        assert_eq!(lane::add(x, y).to_bits(), sum(a, b), "{}", shown());
        assert_eq!(lane::multiply(x, y).to_bits(), product(a, b), "{}", shown());
        for c in [b, product(a, b) ^ SIGN, flushed(sum(a, b))] {
            let z = f32::from_bits(c);
            assert_eq!(lane::multiply_add(x, y, z).to_bits(), sum(product(a, b), c), "{} {c:#x}", shown());
            let twice = product(0x4000_0000, product(a, b));
            assert_eq!(lane::multiply_x2_add(x, y, z).to_bits(), sum(twice, c), "{} {c:#x}", shown());
        }
        let order = order(a, b);
        let not_above = matches!(order, Some(Less | Equal));
        assert_eq!(lane::maximum(x, y).to_bits(), if not_above { b } else { a }, "{}", shown());
        let not_below = matches!(order, Some(Greater | Equal));
        assert_eq!(lane::minimum(x, y).to_bits(), if not_below { b } else { a }, "{}", shown());
        let zero = |x: u32| x << 1 == 0;
        let positive = !is_nan(a) && !zero(a) && a < SIGN;
        let holds = [Compare::Eq, Compare::Gt, Compare::Ge, Compare::Ne].map(|compare| compare.holds(x));
        assert_eq!(holds, [zero(a), positive, positive || zero(a), !zero(a)], "{}", shown());
        for (compare, holds) in [Compare::Eq, Compare::Gt, Compare::Ge, Compare::Ne].into_iter().zip(holds) {
            let value = |(holds, value): (bool, f32)| (holds, value.to_bits());
            assert_eq!(value(lane::predicate(compare, x)), (holds, if holds { 0 } else { ONE }));
            // The counter is the other operand.
            let active = zero(b) && holds;
            let counter = if active { 0 } else { sum(b, ONE) };
            assert_eq!(value(lane::push(compare, y, x)), (active, counter), "{}", shown());
        }
        assert_eq!((lane::set(true).to_bits(), lane::set(false).to_bits()), (ONE, 0));
    });
}

#[test]
fn counters_of_nested_predicates() {
    for x in special_words().into_iter().map(flushed) {
        let value = |(holds, value): (bool, f32)| (holds, value.to_bits());
        let (number, zero, one) = (f32::from_bits(x), x << 1 == 0, x == ONE);
        assert_eq!(value(lane::clear(number)), (false, LARGEST));
        assert_eq!(
            value(lane::invert(number)),
            (
                one,
                if one {
                    0
                } else if zero {
                    ONE
                } else {
                    x
                }
            ),
            "{x:#010x}"
        );
        let popped = matches!(order(x, ONE), Some(Ordering::Less | Ordering::Equal));
        assert_eq!(
            value(lane::pop(number)),
            (popped, if popped { 0 } else { sum(x, ONE | SIGN) }),
            "{x:#010x}"
        );
        assert_eq!(value(lane::restore(number)), (zero, if zero { 0 } else { x }), "{x:#010x}");
    }
}

#[test]
fn dot_products_and_clamped_products_of_four() {
    let special: Vec<u32> = special_words().into_iter().map(flushed).collect();
    let seed = 0x5eed_2451;
    println!("seed {seed:#x}");
    let mut random = Random::new(seed);
    for round in 0..400_000 {
        let mut word = || summand(&mut random, &special, round);
        let (a, b, c) = ([(); 4].map(|()| word()), [(); 4].map(|()| word()), [(); 4].map(|()| word()));
        let [x, y, z] = [a, b, c].map(|words| words.map(f32::from_bits));
        let expected = (1..4).fold(product(a[0], b[0]), |s, n| sum(s, product(a[n], b[n])));
        assert_eq!(lane::dot(x, y).to_bits(), expected, "{a:x?} . {b:x?}");
        let (first, last) = (product(a[0], b[0]), product(a[3], b[3]));
        let clamped = match (order(c[3], last), order(c[0], first)) {
            (Some(Ordering::Less), _) => c[3],
            (_, Some(Ordering::Greater | Ordering::Equal)) => c[0],
            _ => first,
        };
        assert_eq!(lane::multiply_clamp(x, y, z).to_bits(), clamped, "{a:x?} {b:x?} {c:x?}");
    }
}

/// Returns base^exponent by the table of docs/r500-vertex.md, with infinities and NaN as in C.
fn power(base: u32, exponent: u32, found: u32) -> u32 {
    let magnitude = base % SIGN;
    let (zero, negative) = (magnitude == 0, base >= SIGN);
    if zero {
        return if !is_nan(exponent) && exponent > SIGN { INFINITY } else { 0 };
    }
    if exponent << 1 == 0 {
        return ONE;
    }
    let power = match (magnitude, exponent) {
        (ONE, _) => ONE,
        _ if is_nan(base) || is_nan(exponent) => return NAN,
        (INFINITY, _) => {
            if exponent < SIGN {
                INFINITY
            } else {
                0
            }
        }
        (_, INFINITY) => {
            if magnitude > ONE {
                INFINITY
            } else {
                0
            }
        }
        (_, 0xff80_0000) => {
            if magnitude > ONE {
                0
            } else {
                INFINITY
            }
        }
        _ => near(found % SIGN, Some(exact::power(magnitude, exponent)), 0),
    };
    if negative { power | SIGN } else { power }
}

#[test]
fn powers_and_lighting_are_rounded_once() {
    each_pair(0x5eed_2452, |a, c| {
        // A base near one, whose powers are in range, and any base.
        for a in [a, a & 0x807f_ffff | 0x3f80_0000, a & 0x807f_ffff | 0x3f00_0000] {
            let (x, z) = (f32::from_bits(a), f32::from_bits(c));
            let shown = || format!("{a:#010x} ^ {c:#010x}");
            let plain = lane::power(x, z).to_bits();
            assert_eq!(plain, power(a, c, plain), "{}", shown());
            let above_one = order(a, ONE) == Some(Ordering::Greater);
            for b in [0, ONE, a, c] {
                let below = order(a, b) == Some(Ordering::Less);
                let y = f32::from_bits(b);
                assert_eq!(
                    lane::power_clamp_b(x, y, z).to_bits(),
                    if below { 0 } else { plain },
                    "{}",
                    shown()
                );
                // A NaN as a bound is neither below nor above. Only a proven a >= b clamps to 1.
                let not_below = matches!(order(a, b), Some(Ordering::Greater | Ordering::Equal));
                let clamped = if below {
                    0
                } else if above_one && not_below {
                    ONE
                } else {
                    plain
                };
                assert_eq!(lane::power_clamp_b1(x, y, z).to_bits(), clamped, "{} {b:#010x}", shown());
            }
            let not_above_zero = matches!(order(a, 0), Some(Ordering::Less | Ordering::Equal));
            let clamped = if not_above_zero {
                0
            } else if above_one {
                ONE
            } else {
                plain
            };
            assert_eq!(lane::power_clamp_01(x, z).to_bits(), clamped, "{}", shown());
            // 1, max(b, 0), b > 0 ? max(a, 0) ^ c : 0, 1 with c clamped. Maxima return their first operand for a NaN.
            let at_least = |x: u32, least: u32| match order(x, least) {
                Some(Ordering::Less | Ordering::Equal) => least,
                _ => x,
            };
            let (low, high) = (0xc300_0000, 0x4300_0000);
            let exponent = match at_least(c, low) {
                c if matches!(order(c, high), Some(Ordering::Greater | Ordering::Equal)) => high,
                c => c,
            };
            for b in [a, ONE] {
                let lit = lane::light(x, f32::from_bits(b), z).map(f32::to_bits);
                let specular = match order(b, 0) {
                    Some(Ordering::Greater) => power(at_least(a, 0), exponent, lit[2]),
                    _ => 0,
                };
                assert_eq!(lit, [ONE, at_least(b, 0), specular, ONE], "{} {b:#010x}", shown());
            }
        }
    });
}
