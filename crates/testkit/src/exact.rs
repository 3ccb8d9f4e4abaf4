//! Functions of f32 in integer arithmetic, from which tests get expected results. The functions share no code with the
//! machines, and do not use the host's floating point.
//!
//! [`nearest`] rounds a number to an f32. [`is_reciprocal`], [`is_root`] and [`is_reciprocal_root`] use exact products
//! to decide whether a result is the number nearest to the exact value. [`exp2`], [`exp`], [`log2`], [`power`],
//! [`sine`], [`cosine`] and similar functions return a [`Real`]. A [`Real`] is a number of 64 bits with a relative
//! error below 2^-54. A function under test may compute in doubles and round once. [`Real::candidates`] returns the
//! possible results of such a computation. In nearly all cases, there is only one possible result.

use std::cell::Cell;
use std::sync::LazyLock;

/// Returns the f32 nearest to ±`magnitude` * 2^`exponent`, with ties to even and gradual underflow. If the number
/// overflows, the result is an infinity.
///
/// The magnitude must have at least 27 significant bits if it is inexact. The lowest bit of an inexact magnitude must
/// be set.
pub fn nearest(negative: bool, magnitude: u128, exponent: i32) -> u32 {
    let sign = u32::from(negative) << 31;
    if magnitude == 0 {
        return sign;
    }
    let length = 128 - magnitude.leading_zeros() as i32;
    // The exponent of the lowest bit of the result. A normal result has 24 bits, and a denormal result has fewer bits.
    let place = (exponent + length - 24).max(-149);
    let kept = match place - exponent {
        up @ ..=0 => magnitude << -up,
        down @ 1..=127 => {
            let (whole, half) = (magnitude >> down, 1 << (down - 1));
            let rest = magnitude - (whole << down);
            whole + u128::from(rest > half || (rest == half && whole % 2 == 1))
        }
        _ => 0,
    };
    let (kept, place) = if kept == 1 << 24 { (1 << 23, place + 1) } else { (kept as u32, place) };
    match (kept >> 23, place) {
        (0, _) => sign | kept,
        (_, 105..) => sign | 0x7f80_0000,
        (_, place) => sign | ((place + 150) as u32) << 23 | kept & 0x7f_ffff,
    }
}

/// Returns the significand of a finite number, and the exponent of the significand's lowest bit. The sign is ignored.
pub fn parts(x: u32) -> (u32, i32) {
    match x >> 23 & 0xff {
        0 => (x & 0x7f_ffff, -149),
        field => (x & 0x7f_ffff | 1 << 23, field as i32 - 150),
    }
}

/// Direction in which a number is rounded to an integer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Whole {
    /// Rounds toward negative infinity.
    Floor,
    /// Rounds toward positive infinity.
    Ceil,
    /// Rounds toward zero.
    Trunc,
    /// Rounds to the nearest integer, with ties to even.
    Nearest,
}

/// Rounds a finite number to an integer, and clamps the integer to the range of `i64`. Returns `None` for infinities
/// and NaN.
pub fn whole(x: u32, how: Whole) -> Option<i64> {
    let ((significand, exponent), negative) = (parts(x), x >> 31 == 1);
    if x >> 23 & 0xff == 0xff {
        return None;
    }
    let magnitude = match exponent {
        39.. => return Some(if negative { i64::MIN } else { i64::MAX }),
        0.. => i64::from(significand) << exponent,
        _ => {
            let down = (-exponent as u32).min(40);
            let (floor, rest) = (i64::from(significand) >> down, i64::from(significand) & ((1 << down) - 1));
            let up = match how {
                Whole::Trunc => false,
                Whole::Floor => negative && rest != 0,
                Whole::Ceil => !negative && rest != 0,
                Whole::Nearest => rest + (floor & 1) > 1 << (down - 1),
            };
            floor + i64::from(up)
        }
    };
    Some(if negative { -magnitude } else { magnitude })
}

/// Returns a finite or infinite number rounded to an integer, as f32. A zero result has the sign of `x`. `x` must not
/// be a NaN.
pub fn made_whole(x: u32, how: Whole) -> u32 {
    match whole(x, how) {
        Some(small @ -0x100_0000..=0x100_0000) => nearest(x >> 31 == 1, small.unsigned_abs().into(), 0),
        _ => x,
    }
}

/// Returns `x` minus its floor. `x` must be finite. The result has a magnitude and an exponent, like the arguments of
/// [`nearest`].
///
/// The result is in the range from 0 to 1. The result is exact, except for negative numbers that are very close to 0.
/// For such a negative number, the exact result rounds to the double 1, and the returned result also rounds to 1.
pub fn fraction(x: u32) -> (u128, i32) {
    let (significand, exponent) = parts(x);
    let significand = u128::from(significand);
    match exponent {
        0.. => (0, 0),
        -100..0 => {
            let one = 1u128 << -exponent;
            let rest = significand & (one - 1);
            (if x >> 31 == 1 && rest != 0 { one - rest } else { rest }, exponent)
        }
        _ if x >> 31 == 0 || significand == 0 => (significand, exponent),
        _ => ((1 << 60) - 1, -60),
    }
}

/// Returns whether `r` is the normal number nearest to a quotient. `compare` compares a midpoint with the quotient. For
/// the midpoint between `r` and the next lower number, `compare` must return "less". For the midpoint between `r` and
/// the next higher number, `compare` must return "greater".
///
/// The arguments of `compare` are the midpoint's significand of 25 bits, and the exponent of this significand's lowest
/// bit. The caller excludes ties.
fn between(r: u32, compare: impl Fn(u32, i32) -> std::cmp::Ordering) -> bool {
    let (significand, exponent) = parts(r);
    // If `r` is a power of two, the distance to the lower neighbour is half the distance to the upper neighbour.
    let (below, finer) = match significand {
        0x80_0000 => (4 * significand - 1, 2),
        _ => (2 * significand - 1, 1),
    };
    compare(below, exponent - finer).is_lt() && compare(2 * significand + 1, exponent - 1).is_gt()
}

/// Compares `product` * 2^`exponent` with 1.
fn against_one(product: u128, exponent: i32) -> std::cmp::Ordering {
    match exponent {
        ..=-128 => std::cmp::Ordering::Less,
        -127..=0 => product.cmp(&(1 << -exponent)),
        _ => std::cmp::Ordering::Greater,
    }
}

/// Returns whether `r`, a positive normal number, is the number nearest to 1 / `x`, for a positive normal x.
pub fn is_reciprocal(x: u32, r: u32) -> bool {
    let (x, place) = parts(x);
    between(r, |r, exponent| against_one(u128::from(r) * u128::from(x), exponent + place))
        || against_one(u128::from(parts(r).0) * u128::from(x), parts(r).1 + place).is_eq()
}

/// Returns whether the positive normal number `r` is 1 / `x` rounded toward zero, for a positive normal x.
pub fn is_cut_reciprocal(x: u32, r: u32) -> bool {
    let (x, place) = parts(x);
    let (significand, exponent) = parts(r);
    let against = |r: u32| against_one(u128::from(r) * u128::from(x), exponent + place);
    against(significand).is_le() && against(significand + 1).is_gt()
}

/// Returns whether `r` is the f32 nearest to the square root of `x`. Both `r` and `x` must be positive normal numbers.
pub fn is_root(x: u32, r: u32) -> bool {
    let (x, place) = parts(x);
    // Compares r² / x with 1. Both numbers are scaled to integers with the same exponent.
    between(r, |r, exponent| {
        let (square, apart) = (u128::from(r) * u128::from(r), 2 * exponent - place);
        let x = u128::from(x);
        match apart {
            ..=-100 => std::cmp::Ordering::Less,
            -99..0 => square.cmp(&(x << -apart)),
            0..=64 => (square << apart).cmp(&x),
            _ => std::cmp::Ordering::Greater,
        }
    }) || {
        let (root, exponent) = parts(r);
        let apart = place - 2 * exponent;
        (0..=64).contains(&apart) && u128::from(root) * u128::from(root) == u128::from(x) << apart
    }
}

/// Returns whether `r`, a positive normal number, is the number nearest to 1 / √`x`, for a positive normal x.
pub fn is_reciprocal_root(x: u32, r: u32) -> bool {
    let (x, place) = parts(x);
    let product = |r: u32| u128::from(r) * u128::from(r) * u128::from(x);
    between(r, |r, exponent| against_one(product(r), 2 * exponent + place))
        || against_one(product(parts(r).0), 2 * parts(r).1 + place).is_eq()
}

/// A nonzero number with a significand of 64 bits: ±`significand` * 2^`exponent`. The top bit of the significand is
/// set. The relative error is below 2^-54.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Real {
    /// Whether the number is negative.
    pub negative: bool,
    /// Significand, at least 2^63.
    pub significand: u64,
    /// Exponent of the lowest bit of the significand.
    pub exponent: i32,
}

/// The number 1.
const ONE: Real = Real { negative: false, significand: 1 << 63, exponent: -63 };

impl Real {
    /// Creates a number from the 64 leading bits of a nonzero magnitude. The other bits of the magnitude are truncated.
    fn of(negative: bool, magnitude: u128, exponent: i32) -> Real {
        let shift = magnitude.leading_zeros() as i32;
        Real { negative, significand: (magnitude << shift >> 64) as u64, exponent: exponent + 64 - shift }
    }

    fn times(self, other: Real) -> Real {
        let product = u128::from(self.significand) * u128::from(other.significand);
        Real::of(self.negative != other.negative, product, self.exponent + other.exponent)
    }

    /// Multiplies this number by 1 - 2^-51 and by 1 + 2^-51. Returns the f32 nearest to each product. A function that
    /// computes in doubles and then rounds to f32 returns one of these two results. The two results differ only if a
    /// tie lies between the two products.
    pub fn candidates(self) -> [u32; 2] {
        // `kept` contains the 24 bits of the result, and `rest` contains the 40 bits that decide the rounding. If the
        // number is neither near a tie nor near an end of the range, both products round to one result. In a run over
        // all words, this fast path saves a third of the time of R500's exponentials.
        let (kept, rest) = ((self.significand >> 40) as u32, self.significand & ((1 << 40) - 1));
        let magnitude = match self.exponent + 40 {
            106.. => 0x7f80_0000,
            ..=-176 => 0,
            place @ -149..=104 if rest.abs_diff(1 << 39) > 1 << 13 => {
                (((place + 149) as u32) << 23) + kept + (rest >> 39) as u32
            }
            _ => return self.rounded_ends(),
        };
        [u32::from(self.negative) << 31 | magnitude; 2]
    }

    /// Returns the result of [`Real::candidates`] without the fast path.
    fn rounded_ends(self) -> [u32; 2] {
        const WIDTH: u128 = 1 << 13;
        let significand = u128::from(self.significand) << 1;
        [significand - WIDTH, significand + WIDTH]
            .map(|end| nearest(self.negative, end | 1, self.exponent - 1))
    }
}

/// The first 64 fraction bits of ln(2).
const LN_2: u64 = 0xb172_17f7_d1cf_79ab;
/// log2(e) and 2 pi.
const LOG2_E: Real = Real { negative: false, significand: 0xb8aa_3b29_5c17_f0bc, exponent: -63 };
const TAU: Real = Real { negative: false, significand: 0xc90f_daa2_2168_c235, exponent: -61 };
/// log2(e) - 1 in 100 fraction bits.
const LOG2_E_FRACTION: u128 = 0x7_1547_652b_82fe_1777_d0ff_da0d;
/// The first 384 fraction bits of 2 / pi, the highest word first.
const TWO_OVER_PI: [u64; 6] = [
    0xa2f9_836e_4e44_1529,
    0xfc27_57d1_f534_ddc0,
    0xdb62_9599_3c43_9041,
    0xfe51_63ab_debb_c561,
    0xb724_6e3a_424d_d2e0,
    0x0649_2eea_09d1_921c,
];

/// 2^(2^-1), 2^(2^-2) and so on. These numbers are computed as square roots, and have 63 fraction bits.
static ROOTS: LazyLock<[u64; 16]> = LazyLock::new(|| {
    let mut root = 1u128 << 64;
    std::array::from_fn(|_| {
        root = (root << 63).isqrt();
        root as u64
    })
});

/// Returns 2^`fraction`. `fraction` has 16 fraction bits, and the result has 63 fraction bits. The result is the
/// product of one root for each bit that is set in `fraction`.
fn product_of_roots(fraction: u16) -> u64 {
    let set = ROOTS.iter().enumerate().filter(|(place, _)| fraction << place >> 15 == 1);
    set.fold(1 << 63, |product, (_, root)| ((u128::from(product) * u128::from(*root)) >> 63) as u64)
}

/// Returns 2^`power`. `power` has 64 fraction bits.
fn power_of_two(power: i128) -> Real {
    /// Two tables of products of roots. The first table covers the first eight fraction bits of the power. The second
    /// table covers the next eight fraction bits.
    static PRODUCTS: LazyLock<[[u64; 256]; 2]> =
        LazyLock::new(|| [8, 0].map(|up| std::array::from_fn(|byte| product_of_roots((byte as u16) << up))));
    let (whole, fraction) = ((power >> 64) as i32, power as u64);
    let [first, second] = &*PRODUCTS;
    let [.., byte, next] = (fraction >> 48).to_be_bytes().map(usize::from);
    let significand = ((u128::from(first[byte]) * u128::from(second[next])) >> 63) as u64;
    // The series of e^t - 1. The number t is the product of ln(2) and the lower 48 bits of the power, and is below
    // 2^-16.
    let high = |a: u64, b: u64| ((u128::from(a) * u128::from(b)) >> 64) as u64;
    let t = high(fraction & (u64::MAX >> 16), LN_2);
    let square = high(t, t);
    let series = t + square / 2 + high(square, t) / 6;
    let significand = u128::from(significand) * ((1 << 64) + u128::from(series));
    Real::of(false, significand, whole - 127)
}

/// Returns `x` * `times` as a fixed-point number with 64 fraction bits, truncated. `times` has `times_fraction`
/// fraction bits.
fn fixed(x: u32, times: u128, times_fraction: i32) -> i128 {
    let (significand, exponent) = parts(x);
    let shift = times_fraction - 64 - exponent;
    let magnitude = u128::from(significand) * times;
    let magnitude = if shift >= 0 { magnitude >> shift.min(127) } else { magnitude << -shift } as i128;
    if x >> 31 == 0 { magnitude } else { -magnitude }
}

/// An exponent with 64 fraction bits. 2 to the power of this exponent certainly overflows. 2 to the power of the
/// negated exponent certainly underflows.
const BEYOND: i128 = 1000 << 64;

/// Returns 2^`x`, for a finite x.
pub fn exp2(x: u32) -> Real {
    match x >> 23 & 0xff {
        ..=135 => power_of_two(fixed(x, 1, 0)),
        _ => power_of_two(if x >> 31 == 0 { BEYOND } else { -BEYOND }),
    }
}

/// Returns e^`x`, for a finite x.
pub fn exp(x: u32) -> Real {
    match x >> 23 & 0xff {
        ..=135 => power_of_two(fixed(x, 1 << 100 | LOG2_E_FRACTION, 100)),
        _ => power_of_two(if x >> 31 == 0 { BEYOND } else { -BEYOND }),
    }
}

/// Number of fraction bits of logarithms.
const LOG_BITS: u32 = 100;

/// Returns -ln(1 - 2^-k), or ln(1 + 2^-k) if `plus` is set. The function uses the series of the logarithm.
fn log_series(k: u32, plus: bool) -> u128 {
    (1..=LOG_BITS / k + 1).fold(0i128, |sum, n| {
        let term = ((1u128 << 120 >> (k * n).min(120)) / u128::from(n)) as i128;
        if plus && n % 2 == 0 { sum - term } else { sum + term }
    }) as u128
        >> (120 - LOG_BITS)
}

/// ln(2), and ln(1 + 2^-k) for each k, with [`LOG_BITS`] fraction bits.
static LOGARITHMS: LazyLock<(i128, [i128; 35])> = LazyLock::new(|| {
    let plus = std::array::from_fn(|k| log_series(k.max(1) as u32, true) as i128);
    (log_series(1, false) as i128, plus)
});

/// Returns the logarithm of a significand of 24 bits. The significand stands for a number from 1 up to 2. The result
/// has [`LOG_BITS`] fraction bits.
fn ln_of_significand(significand: u32) -> i128 {
    let (ln_2, constants) = &*LOGARITHMS;
    // Multiplies y by factors 1 + 2^-k until y is close to 2. The logarithms of these factors then give the logarithm
    // of the original y.
    let (mut y, mut left) = (u128::from(significand) << (LOG_BITS - 23), *ln_2);
    for k in 1..=34 {
        let more = y + (y >> k);
        if more < 2 << LOG_BITS {
            (y, left) = (more, left - constants[k]);
        }
    }
    // Computes ln(2 / y) with the series of -ln(1 - d), for d below 2^-33.
    let d = ((2u128 << LOG_BITS) - y) >> 1;
    let square = ((d >> 36) * (d >> 36)) >> (LOG_BITS - 72);
    let rest = d + square / 2 + (((square >> 20) * (d >> 40)) >> (LOG_BITS - 60)) / 3;
    left - rest as i128
}

thread_local! {
    /// Cache of the last significand and its logarithm. In a run over all words, words with equal significands are
    /// consecutive ([`same_of_each`](crate::same_of_each)).
    static LAST: Cell<(u32, i128)> = const { Cell::new((0, 0)) };
}

/// Returns ln(`x`) for a positive normal x, with [`LOG_BITS`] fraction bits.
fn ln(x: u32) -> i128 {
    let (significand, exponent) = parts(x);
    let mut last = LAST.get();
    if last.0 != significand {
        last = (significand, ln_of_significand(significand));
        LAST.set(last);
    }
    last.1 + i128::from(exponent + 23) * LOGARITHMS.0
}

/// Returns log2(`x`) for a positive normal x. For x = 1, the logarithm is 0, and the function returns `None`.
pub fn log2(x: u32) -> Option<Real> {
    let ln = ln(x);
    (x != 0x3f80_0000).then(|| Real::of(ln < 0, ln.unsigned_abs(), -(LOG_BITS as i32)).times(LOG2_E))
}

/// Returns `base`^`exponent`, for a positive normal base and a finite exponent.
pub fn power(base: u32, exponent: u32) -> Real {
    let Some(log) = log2(base) else { return ONE };
    let (significand, place) = parts(exponent);
    let magnitude = u128::from(log.significand) * u128::from(significand);
    let shift = -64 - (log.exponent + place);
    let power = match shift {
        ..=-30 if magnitude != 0 => BEYOND,
        ..0 => ((magnitude << -shift.max(-30)) as i128).min(BEYOND),
        _ => ((magnitude >> shift.min(127)) as i128).min(BEYOND),
    };
    power_of_two(if log.negative != (exponent >> 31 == 1) { -power } else { power })
}

/// Returns the fraction of `x` turns, with 128 bits.
fn fraction_of_turns(x: u32) -> u128 {
    let (significand, exponent) = parts(x);
    let fraction = match exponent + 128 {
        ..=-1 => 0,
        shift @ 0..=127 => u128::from(significand) << shift,
        _ => 0,
    };
    if x >> 31 == 0 { fraction } else { fraction.wrapping_neg() }
}

/// Converts `x` radians to turns. Returns the fraction, with 128 bits.
fn turns_of_radians(x: u32) -> u128 {
    let (significand, exponent) = parts(x);
    // The product of the significand and the bits of 2 / pi, the lowest word first. The 384 low bits of the product are
    // the fraction of significand * 2 / pi.
    let mut product = [0u64; 8];
    let mut carry = 0u128;
    for (word, of) in product.iter_mut().zip(TWO_OVER_PI.iter().rev()) {
        carry += u128::from(*of) * u128::from(significand);
        *word = carry as u64;
        carry >>= 64;
    }
    product[6] = carry as u64;
    // The product counts quarters of a turn. The product divided by 4 is the number of turns. The binary point of the
    // number of turns is at this bit.
    let point = 384 - (exponent - 2);
    let low = (point - 128) as usize;
    let [first, second, third] = std::array::from_fn(|number| u128::from(product[low / 64 + number]));
    let fraction = match low % 64 {
        0 => first | second << 64,
        shift => first >> shift | second << (64 - shift) | third << (128 - shift),
    };
    if x >> 31 == 0 { fraction } else { fraction.wrapping_neg() }
}

/// 4^n / (2 n + 1)! from n = 1 on, with 64 fraction bits.
const SINE: [u64; 12] = {
    let mut terms = [0; 12];
    // The terms have 100 fraction bits.
    let (mut term, mut number) = (1u128 << 100, 0);
    while number < 12 {
        term = term * 4 / (2 * (number as u128 + 1) * (2 * number as u128 + 3));
        terms[number] = (term >> 36) as u64;
        number += 1;
    }
    terms
};

/// Returns the sine of a fraction of a turn, or `None` if the sine is 0.
fn sine_of(turn: u128) -> Option<Real> {
    let (negative, half) = (turn >> 127 == 1, turn << 1 >> 1);
    // Folds the angle to at most a quarter turn.
    let folded = if half > 1 << 126 { (1 << 127) - half } else { half };
    if folded == 0 {
        return None;
    }
    let angle = Real::of(negative, folded, -128).times(TAU);
    // The square has 62 fraction bits. The angle is at most pi / 2.
    let square = angle.times(angle);
    let down = (-62 - square.exponent) as u32;
    let square = if down < 64 { square.significand >> down } else { 0 };
    // Computes the series 1 - a² / 6 + a⁴ / 120 and so on. a² / 4 has 64 fraction bits.
    let high = |a: u64, b: u64| ((u128::from(a) * u128::from(b)) >> 64) as u64;
    let series = SINE.iter().rev().fold(0, |sum, term| term - high(sum, square));
    let sum = (1u64 << 63) - high(series, square) / 2;
    Some(angle.times(Real::of(false, sum.into(), -63)))
}

const QUARTER: u128 = 1 << 126;

/// Returns the sine of `x` turns for a finite x, or `None` if the sine is 0.
pub fn sine_of_turns(x: u32) -> Option<Real> {
    // Below 2^-37 turns, the difference between the sine and the angle is at most 2^-70.
    match x >> 23 & 0xff {
        ..=90 => {
            let (significand, exponent) = parts(x);
            (significand != 0).then(|| Real::of(x >> 31 == 1, significand.into(), exponent).times(TAU))
        }
        _ => sine_of(fraction_of_turns(x)),
    }
}

/// Returns the cosine of `x` turns for a finite x, or `None` if the cosine is 0.
pub fn cosine_of_turns(x: u32) -> Option<Real> {
    if x >> 23 & 0xff <= 90 { Some(ONE) } else { sine_of(fraction_of_turns(x).wrapping_add(QUARTER)) }
}

/// Returns the sine of `x` radians for a finite x, or `None` for zeros.
pub fn sine(x: u32) -> Option<Real> {
    match x >> 23 & 0xff {
        ..=90 => {
            let (significand, exponent) = parts(x);
            (significand != 0).then(|| Real::of(x >> 31 == 1, significand.into(), exponent))
        }
        _ => sine_of(turns_of_radians(x)),
    }
}

/// Returns the cosine of `x` radians, for a finite x.
pub fn cosine(x: u32) -> Option<Real> {
    if x >> 23 & 0xff <= 90 { Some(ONE) } else { sine_of(turns_of_radians(x).wrapping_add(QUARTER)) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use reconverge_simt::random::Random;

    type Check = fn(u32, u32) -> bool;

    /// Returns the relative difference between a number and a double, in units of 2^-53.
    fn apart(real: Real, double: f64) -> f64 {
        let own = real.significand as f64 * 2f64.powi(real.exponent.clamp(-1000, 900));
        let own = if real.negative { -own } else { own };
        (own / double - 1.0).abs() * 2f64.powi(53)
    }

    /// A function of this file and the corresponding function of the host differ by at most a few units of the last
    /// place.
    #[test]
    fn functions_are_near_those_of_the_host() {
        let mut random = Random::new(0x5eed_2401);
        for _ in 0..200_000 {
            let x = random.next() & 0x807f_ffff | (91 + random.below(44)) << 23;
            let (bits, double) = (x & 0x7fff_ffff, f64::from(f32::from_bits(x)));
            let positive = f64::from(f32::from_bits(bits));
            let pairs = [
                (exp2(x), double.exp2()),
                (exp(x), double.exp()),
                (log2(bits | 1).unwrap(), f64::from(f32::from_bits(bits | 1)).log2()),
                (sine(x).unwrap(), double.sin()),
                (cosine(x).unwrap(), double.cos()),
            ];
            for (number, (real, host)) in pairs.into_iter().enumerate() {
                assert!(apart(real, host) < 4.0, "{number}: {x:#010x}: {real:?}, {host:e}");
            }
            let exponent = random.next() & 0x807f_ffff | (122 + random.below(6)) << 23;
            let host = positive.powf(f64::from(f32::from_bits(exponent)));
            assert!(apart(power(bits, exponent), host) < 100.0, "{bits:#010x} {exponent:#010x}");
            // For the numbers of this test, doubles represent the fraction exactly.
            let turns = double - double.floor();
            if let Some(real) = sine_of_turns(x).filter(|_| (turns - 0.5).abs() < 0.4) {
                let host = (turns * std::f64::consts::TAU).sin();
                assert!((apart(real, host) * 2f64.powi(-53) * host).abs() < 1e-15, "{x:#010x}");
            }
        }
    }

    #[test]
    fn sines_of_large_angles_are_reduced_with_enough_of_pi() {
        for (x, sine_of_it) in [(1e22f32, (1e22f32 as f64).sin()), (f32::MAX, (f32::MAX as f64).sin())] {
            assert!(apart(sine(x.to_bits()).unwrap(), sine_of_it) < 4.0, "{x:e}");
        }
    }

    #[test]
    fn a_table_of_products_gives_what_single_roots_give() {
        for fraction in 0..=u16::MAX {
            let found = power_of_two(i128::from(fraction) << 48);
            assert_eq!(found.exponent, -63);
            // The first computation truncates 16 products, and the second computation truncates 15 products.
            assert!(found.significand.abs_diff(product_of_roots(fraction)) < 32, "{fraction:#06x}");
        }
    }

    #[test]
    fn rounding_once_gives_what_rounding_both_ends_gives() {
        let mut random = Random::new(0x5eed_2405);
        for _ in 0..1_000_000 {
            let whole = 1 << 23 | random.next_u64() >> 41 | [0, 0x7f_ffff][random.below(2) as usize];
            // The lower 40 bits are near a tie, near 0, or random.
            let rest = match random.below(3) {
                0 => (1 << 39) + u64::from(random.below(1 << 15)) - (1 << 14),
                1 => u64::from(random.below(1 << 14)),
                _ => random.next_u64() >> 24,
            };
            let (significand, exponent) = (whole << 40 | rest, random.below(280) as i32 - 205);
            let real = Real { negative: random.below(2) == 1, significand, exponent };
            assert_eq!(real.candidates(), real.rounded_ends(), "{real:x?}");
        }
    }

    #[test]
    fn a_logarithm_that_is_remembered_is_that_of_its_significand() {
        let mut random = Random::new(0x5eed_2404);
        for _ in 0..10_000 {
            // The significand often equals the significand of the previous iteration, but the exponent differs.
            let significand = random.below(3) << 20;
            let x = (1 + random.below(254)) << 23 | significand;
            let exponent = i128::from(parts(x).1 + 23);
            assert_eq!(ln(x) - exponent * LOGARITHMS.0, ln_of_significand(parts(x).0), "{x:#010x}");
        }
    }

    #[test]
    fn rounding_is_the_hosts() {
        let mut random = Random::new(0x5eed_2402);
        for _ in 0..200_000 {
            let significand = random.next_u64() >> (11 + random.below(40));
            let exponent = random.below(330) as i32 - 210;
            // The product is exact, because the significand has at most 53 bits and is only scaled.
            let host = (significand as f64 * 2f64.powi(exponent)) as f32;
            assert_eq!(
                nearest(false, significand.into(), exponent),
                host.to_bits(),
                "{significand:#x} {exponent}"
            );
        }
    }

    #[test]
    fn quotients_and_roots_have_one_nearest_number() {
        let mut random = Random::new(0x5eed_2403);
        for _ in 0..100_000 {
            let x = (1 + random.below(252)) << 23 | random.next() & 0x7f_ffff;
            let host = f32::from_bits(x);
            let checks: [(Check, u32); 3] = [
                (is_reciprocal, (1.0 / host).to_bits()),
                (is_root, host.sqrt().to_bits()),
                (is_reciprocal_root, ((1.0 / f64::from(host).sqrt()) as f32).to_bits()),
            ];
            for (number, (check, result)) in checks.into_iter().enumerate() {
                let found = [result - 1, result, result + 1].map(|result| check(x, result));
                assert_eq!(found, [false, true, false], "{number}: {x:#010x} {result:#010x}");
            }
        }
    }
}
