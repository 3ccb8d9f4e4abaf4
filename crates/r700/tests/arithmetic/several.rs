//! Tests functions of two or more operands against rustc_apfloat and 128-bit integers.

use std::cmp::Ordering;

use reconverge_r700::lane;
use reconverge_testkit::{Random, special_words, summand};
use rustc_apfloat::{Float, Round};

use crate::rules::{LARGEST, ONE, SIGN, flushed, is_nan, is_zero, result, single};

const RANDOM: usize = 300_000;

/// Checks every pair of special words, and random pairs, including pairs that cancel or nearly cancel.
fn each_pair(seed: u64, mut check: impl FnMut(u32, u32)) {
    let special = special_words();
    special.iter().for_each(|a| special.iter().for_each(|b| check(*a, *b)));
    println!("seed {seed:#x}");
    let mut random = Random::new(seed);
    for _ in 0..RANDOM {
        let (a, b) = (random.next() << 12 ^ random.next(), random.next() << 12 ^ random.next());
        check(a, b);
        check(a, random.one_of(&special));
        check(a, a ^ SIGN ^ random.below(4));
        check(a & 0xc0ff_ffff, b & 0xbfff_ffff);
    }
}

/// Whether a comparison holds, and the functions that compute it: as a truth value, as a float, as an integer.
type Comparison = (bool, fn(u32, u32) -> bool, Function, Function);

/// An operation, its lane function, and the exact value.
type Integer = (&'static str, Function, i128);

type Function = fn(u32, u32) -> u32;

fn sum(a: u32, b: u32) -> u32 {
    result(single(a).add_r(single(b), Round::NearestTiesToEven).value, &[a, b])
}

fn product(a: u32, b: u32) -> u32 {
    result(single(a).mul_r(single(b), Round::NearestTiesToEven).value, &[a, b])
}

/// Zero times anything is +0.
fn legacy_product(a: u32, b: u32) -> u32 {
    if is_zero(a) || is_zero(b) { 0 } else { product(a, b) }
}

fn order(a: u32, b: u32) -> Option<Ordering> {
    single(a).partial_cmp(&single(b))
}

#[test]
fn sums_and_products_are_flushed_ieee() {
    each_pair(0x5eed_2410, |a, b| {
        assert_eq!(lane::add(a, b), sum(a, b), "{a:#010x} + {b:#010x}");
        assert_eq!(lane::mul_ieee(a, b), product(a, b), "{a:#010x} * {b:#010x}");
        assert_eq!(lane::mul(a, b), legacy_product(a, b), "{a:#010x} * {b:#010x}, legacy");
    });
}

#[test]
fn choices_and_comparisons_follow_the_order_of_numbers() {
    use Ordering::{Equal, Greater, Less};
    each_pair(0x5eed_2411, |a, b| {
        let order = order(a, b);
        let shown = || format!("{a:#010x} {b:#010x}");
        let greater_equal = matches!(order, Some(Greater | Equal));
        assert_eq!(lane::max(a, b), if greater_equal { a } else { b }, "{}", shown());
        assert_eq!(lane::min(a, b), if order == Some(Less) { a } else { b }, "{}", shown());
        // If one operand is a NaN, the result is the other. If both are, the result is src0.
        let number = match (is_nan(a), is_nan(b)) {
            (_, true) => Some(a),
            (true, false) => Some(b),
            (false, false) => None,
        };
        let larger = number.unwrap_or(if greater_equal { a } else { b });
        assert_eq!(lane::max_dx10(a, b), larger, "{}", shown());
        let smaller = number.unwrap_or(if order == Some(Less) { a } else { b });
        assert_eq!(lane::min_dx10(a, b), smaller, "{}", shown());
        let comparisons: [Comparison; 4] = [
            (order == Some(Equal), lane::equal, lane::sete, lane::sete_dx10),
            (order == Some(Greater), lane::greater, lane::setgt, lane::setgt_dx10),
            (greater_equal, lane::greater_equal, lane::setge, lane::setge_dx10),
            (order != Some(Equal), lane::not_equal, lane::setne, lane::setne_dx10),
        ];
        for (number, (holds, plain, float, integer)) in comparisons.into_iter().enumerate() {
            let expected = (holds, if holds { ONE } else { 0 }, if holds { u32::MAX } else { 0 });
            assert_eq!((plain(a, b), float(a, b), integer(a, b)), expected, "{number}: {}", shown());
        }
        for c in [0, 7, SIGN, b] {
            let above = |holds: bool| if holds { b } else { c };
            assert_eq!(lane::cnde(a, b, c), above(is_zero(a)), "{}", shown());
            let positive = !is_nan(a) && !is_zero(a) && a < SIGN;
            assert_eq!(lane::cndgt(a, b, c), above(positive), "{}", shown());
            assert_eq!(lane::cndge(a, b, c), above(positive || is_zero(a)), "{}", shown());
        }
    });
}

#[test]
fn integers_are_those_of_128_bits() {
    let signed = |x: u32| i128::from(x as i32);
    let unsigned = |x: u32| i128::from(x);
    each_pair(0x5eed_2412, |a, b| {
        let (s, t, u, v) = (signed(a), signed(b), unsigned(a), unsigned(b));
        let places = 1i128 << (v % 32);
        let mask = |holds: bool| if holds { -1i128 } else { 0 };
        let expected: [Integer; 22] = [
            ("AND", lane::and_int, u & v),
            ("OR", lane::or_int, u | v),
            ("XOR", lane::xor_int, (u | v) - (u & v)),
            ("ADD", lane::add_int, u + v),
            ("SUB", lane::sub_int, u - v),
            ("MAX_INT", lane::max_int, s.max(t)),
            ("MIN_INT", lane::min_int, s.min(t)),
            ("MAX_UINT", lane::max_uint, u.max(v)),
            ("MIN_UINT", lane::min_uint, u.min(v)),
            ("ASHR", lane::ashr_int, s.div_euclid(places)),
            ("LSHR", lane::lshr_int, u / places),
            ("LSHL", lane::lshl_int, u * places),
            ("MULLO_INT", lane::mullo_int, s * t),
            ("MULHI_INT", lane::mulhi_int, (s * t).div_euclid(1 << 32)),
            ("MULLO_UINT", lane::mullo_uint, u * v),
            ("MULHI_UINT", lane::mulhi_uint, u * v / (1 << 32)),
            ("SETE_INT", lane::sete_int, mask(s == t)),
            ("SETGT_INT", lane::setgt_int, mask(s > t)),
            ("SETGE_INT", lane::setge_int, mask(s >= t)),
            ("SETNE_INT", lane::setne_int, mask(s != t)),
            ("SETGT_UINT", lane::setgt_uint, mask(u > v)),
            ("SETGE_UINT", lane::setge_uint, mask(u >= v)),
        ];
        for (name, function, value) in expected {
            assert_eq!(function(a, b), value as u32, "{name} {a:#010x} {b:#010x}");
        }
        assert_eq!(lane::cnde_int(a, b, !b), if s == 0 { b } else { !b });
        assert_eq!(lane::cndgt_int(a, b, !b), if s > 0 { b } else { !b });
        assert_eq!(lane::cndge_int(a, b, !b), if s >= 0 { b } else { !b });
    });
}

#[test]
fn sums_of_products_round_twice() {
    let thirds = special_words();
    let mut third = thirds.iter().cycle();
    let mut next = move || *third.next().expect("it never ends");
    each_pair(0x5eed_2413, |a, b| {
        // A random third operand, and two that cancel the product.
        for c in [next(), product(a, b) ^ SIGN, legacy_product(a, b) ^ SIGN ^ 1] {
            let shown = || format!("{a:#010x} * {b:#010x} + {c:#010x}");
            assert_eq!(lane::muladd(a, b, c), sum(legacy_product(a, b), c), "{}", shown());
            assert_eq!(lane::muladd_ieee(a, b, c), sum(product(a, b), c), "{}", shown());
            // -FLT_MAX unless src1 is above -FLT_MAX and src2 above 0.
            let lowest = SIGN | LARGEST;
            let ordinary =
                order(b, lowest) == Some(Ordering::Greater) && order(c, 0) == Some(Ordering::Greater);
            let lit = if ordinary { legacy_product(a, b) } else { lowest };
            assert_eq!(lane::mul_lit(a, b, c), lit, "{}", shown());
        }
    });
}

#[test]
fn dot_products_add_from_the_left() {
    let special = special_words();
    let seed = 0x5eed_2414;
    println!("seed {seed:#x}");
    let mut random = Random::new(seed);
    for round in 0..400_000 {
        let mut word = || summand(&mut random, &special, round);
        let (a, b) = ([(); 4].map(|()| word()), [(); 4].map(|()| word()));
        let fold = |product: fn(u32, u32) -> u32| {
            (1..4).fold(product(a[0], b[0]), |s, n| sum(s, product(a[n], b[n])))
        };
        assert_eq!(lane::dot4(a, b), fold(legacy_product), "{a:x?} . {b:x?}");
        assert_eq!(lane::dot4_ieee(a, b), fold(product), "{a:x?} . {b:x?}, IEEE");
        let largest = a[1..].iter().fold(a[0], |m, x| match order(m, *x) {
            Some(Ordering::Greater | Ordering::Equal) => m,
            _ => *x,
        });
        assert_eq!(lane::max4(a), largest, "{a:x?}");
    }
}

#[test]
fn counters_of_nested_predicates_add_and_subtract() {
    each_pair(0x5eed_2415, |a, b| {
        for condition in [false, true] {
            let execute = is_zero(a) && condition;
            let found = lane::pred_set_push(a, condition);
            assert_eq!(found.execute, execute);
            assert_eq!(found.value, if execute { 0 } else { sum(a, ONE) }, "{a:#010x}");
            assert_eq!(lane::pred_set(condition).execute, condition);
            assert_eq!(lane::pred_set(condition).value, if condition { 0 } else { ONE });
        }
        let execute = matches!(order(a, b), Some(Ordering::Less | Ordering::Equal));
        let found = lane::pred_set_pop(a, b);
        assert_eq!(found.execute, execute, "{a:#010x} {b:#010x}");
        assert_eq!(found.value, if execute { 0 } else { sum(a, b ^ SIGN) }, "{a:#010x} {b:#010x}");
    });
}

/// The table of faces: the axis of the largest magnitude; for equal magnitudes z before y before x; S and T as Direct3D
/// maps them. (docs/r700.md, D16)
#[test]
fn cube_selects_a_face_and_its_coordinates() {
    let values =
        [0, SIGN, 1, 0x3f00_0000, 0xbf00_0000, ONE, ONE | SIGN, 0x4000_0000, 0x7f80_0000, 0x7fc0_0000];
    for (x, y, z) in values.iter().flat_map(|x| values.iter().flat_map(|y| values.map(|z| (*x, *y, z)))) {
        if [x, y, z].iter().any(|v| is_nan(*v)) {
            // No source says which face a NaN selects.
            continue;
        }
        let size = |v: u32| flushed(v) & !SIGN;
        let (minus, low) = (|v: u32| flushed(v) ^ SIGN, |v: u32| flushed(v) > SIGN);
        let (major, face, s, t) = match () {
            () if size(z) >= size(x).max(size(y)) => {
                if low(z) {
                    (z, 5.0f32, minus(x), minus(y))
                } else {
                    (z, 4.0, flushed(x), minus(y))
                }
            }
            () if size(y) >= size(x) => {
                if low(y) {
                    (y, 3.0, flushed(x), minus(z))
                } else {
                    (y, 2.0, flushed(x), flushed(z))
                }
            }
            () if low(x) => (x, 1.0, flushed(z), minus(y)),
            () => (x, 0.0, minus(z), minus(y)),
        };
        let twice = product(major, 0x4000_0000);
        let found = lane::cube([z, z, x, y], [y, x, z, z]);
        assert_eq!(found, [t, s, twice, face.to_bits()], "{x:#010x} {y:#010x} {z:#010x}");
    }
}
