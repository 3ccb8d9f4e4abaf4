//! Tests doubles against rustc_apfloat.

use reconverge_r700::lane64;
use reconverge_testkit::Random;
use rustc_apfloat::ieee::{Double, Single};
use rustc_apfloat::{Float, FloatConvert, Round};

use crate::rules::{double, double_result, flushed, flushed_double, is_nan, single};

const EVEN: Round = Round::NearestTiesToEven;
const SIGN: u64 = 1 << 63;

fn special() -> Vec<u64> {
    let fields = [0, 1, 2, 53, 896, 897, 1021, 1022, 1023, 1024, 1075, 1076, 1150, 1151, 2045, 2046, 2047];
    let fractions = [0, 1, 1 << 28, 1 << 29, 1 << 51, (1 << 52) - 1];
    let positive = fields.into_iter().flat_map(|field| fractions.map(|fraction| field << 52 | fraction));
    positive.flat_map(|word| [word, word | SIGN]).collect()
}

fn each_pair(seed: u64, mut check: impl FnMut(u64, u64)) {
    let special = special();
    special.iter().for_each(|a| special.iter().for_each(|b| check(*a, *b)));
    println!("seed {seed:#x}");
    let mut random = Random::new(seed);
    for _ in 0..200_000 {
        let (a, b) = (random.next_u64(), random.next_u64());
        check(a, b);
        check(a, random.one_of(&special));
        check(a, a ^ SIGN ^ u64::from(random.below(4)));
        // Products and quotients near the smallest number.
        check(a & !(0x400 << 52), b & !(0x400 << 52));
    }
}

fn scaled(x: u64, factor: f64) -> Double {
    double(x).mul_r(Double::from_bits(factor.to_bits().into()), EVEN).value
}

#[test]
fn sums_products_and_their_sums_are_flushed_ieee() {
    let all = special();
    let mut third = all.iter().cycle();
    each_pair(0x5eed_2420, |a, b| {
        let sum = |a: u64, b: u64| double_result(double(a).add_r(double(b), EVEN).value, &[a, b]);
        let product = double_result(double(a).mul_r(double(b), EVEN).value, &[a, b]);
        assert_eq!(lane64::add_64(a, b), sum(a, b), "{a:#018x} + {b:#018x}");
        assert_eq!(lane64::mul_64(a, b), product, "{a:#018x} * {b:#018x}");
        for (c, factor) in
            [(*third.next().expect("no end"), 1.0), (product ^ SIGN, 4.0), (product ^ SIGN ^ 3, 0.5)]
        {
            let shown = || format!("({a:#018x} * {b:#018x} + {c:#018x}) * {factor}");
            let once = double(a).mul_add_r(double(b), double(c), EVEN).value;
            let once = if once.is_nan() { once } else { scaled(once.to_bits() as u64, factor) };
            let found = lane64::muladd_64(a, b, c, factor, true);
            assert_eq!(found, double_result(once, &[a, b, c]), "{}", shown());
            let twice = double(double(a).mul_r(double(b), EVEN).value.to_bits() as u64);
            let twice = twice.add_r(double(c), EVEN).value;
            let twice = if twice.is_nan() { twice } else { scaled(twice.to_bits() as u64, factor) };
            let found = lane64::muladd_64(a, b, c, factor, false);
            assert_eq!(found, double_result(twice, &[a, b, c]), "{}, rounded twice", shown());
        }
        let order = double(a).partial_cmp(&double(b));
        assert_eq!(lane64::equal(a, b), order.is_some_and(|order| order.is_eq()));
        assert_eq!(lane64::greater(a, b), order.is_some_and(|order| order.is_gt()));
        assert_eq!(lane64::greater_equal(a, b), order.is_some_and(|order| order.is_ge()));
    });
}

#[test]
fn fractions_parts_and_powers_of_two() {
    each_pair(0x5eed_2421, |a, b| {
        let number = double(a);
        let below = number.round_to_integral(Round::TowardNegative).value;
        let fraction = double_result(number.sub_r(below, EVEN).value, &[a]);
        assert_eq!(lane64::fract_64(a), fraction, "{a:#018x}");
        let (exponent, mantissa) = lane64::frexp_64(a);
        if !number.is_finite() {
            assert_eq!((exponent, mantissa << 1 > 0x7ff << 53), (-1, true), "{a:#018x}");
        } else if number.is_zero() {
            assert_eq!((exponent, mantissa), (0, flushed_double(a)));
        } else {
            let half = Double::from_bits(0.5f64.to_bits().into());
            let magnitude = Double::from_bits((mantissa & !SIGN).into());
            assert!(magnitude >= half && magnitude < Double::from_bits(1f64.to_bits().into()), "{a:#018x}");
            assert_eq!(
                Double::from_bits(mantissa.into()).scalbn(exponent).to_bits(),
                u128::from(a),
                "{a:#018x}"
            );
        }
        // Any exponent, and one that keeps the number in range or nearly so.
        for power in [b as i32, (b % 5000) as i32 - 2500] {
            let found = lane64::ldexp_64(a, power);
            let expected = match () {
                () if a << 1 >= 0x7ff << 53 => a,
                () if number.is_zero() => a & SIGN,
                () => flushed_double(
                    number.scalbn_r(power.clamp(-5000, 5000), Round::TowardZero).to_bits() as u64
                ),
            };
            // Past the largest number the result is infinite, whatever the direction.
            let expected = match number.is_finite()
                && !number.is_zero()
                && number.ilogb() + power.clamp(-5000, 5000) > 1023
            {
                true => a & SIGN | 0x7ff << 52,
                false => expected,
            };
            assert_eq!(found, expected, "{a:#018x} {power}");
        }
    });
}

#[test]
fn singles_and_doubles_convert() {
    each_pair(0x5eed_2422, |a, b| {
        let narrow: Single = double(a).convert_r(EVEN, &mut false).value;
        let expected = match double(a).is_nan() {
            // Sign, quiet bit, and the upper bits of the payload.
            true => (a >> 32) as u32 & 1 << 31 | 0x7fc0_0000 | (a >> 29) as u32 & 0x3f_ffff,
            false => flushed(narrow.to_bits() as u32),
        };
        assert_eq!(lane64::flt64_to_flt32(a), expected, "{a:#018x}");
        let word = b as u32;
        let wide: Double = single(word).convert(&mut false).value;
        let expected = match is_nan(word) {
            true => u64::from(word >> 31) << 63 | 0x7ff8 << 48 | u64::from(word & 0x3f_ffff) << 29,
            false => wide.to_bits() as u64,
        };
        assert_eq!(lane64::flt32_to_flt64(word), expected, "{word:#010x}");
    });
}
