//! Powers of two, logarithms, inverse roots and sines as polynomials, for loops over lanes that the compiler vectorizes.
//!
//! A machine defines each of these functions as a double of the mathematics library that is rounded to a single. The
//! polynomials compute a double with a relative error below 2^-40, in far less time. If a double that differs by this
//! error may round to another single, the polynomial's result may be wrong. Each function reports such results in
//! [`Near::doubt`]. One result in 32,768 is reported. [`row`] computes such a lane with the library.
//!
//! The polynomials have the smallest maximum of the relative error that is possible for their degree. Remez' algorithm
//! computed their coefficients, and this maximum is stated next to them. The rounding errors of the doubles are below
//! 2^-49, and the error of the library is below 2^-52.

use crate::mask::members;
use crate::wide::Wide;

/// A function of a machine that a polynomial of this module approximates.
pub trait Curve {
    /// Computes the function for one lane. This result defines the function.
    fn lane(source: u32) -> u32;

    /// Computes the polynomial.
    fn near<W: Wide>(source: u32) -> Near;

    /// Returns the result for a source. `word` is the result of the polynomial.
    fn last(source: u32, word: u32) -> u32;
}

/// Defines curves. A line has the name of a curve, the function for one lane, the polynomial, and [`Curve::last`].
#[macro_export]
macro_rules! curve_types {
    ($($Name:ident: $lane:expr, $near:ident, $last:expr;)*) => { $(
        #[doc = concat!("The function `", stringify!($Name), "`, with the polynomial `", stringify!($near), "`.")]
        pub(super) struct $Name;

        impl $crate::curves::Curve for $Name {
            fn lane(source: u32) -> u32 {
                $lane(source)
            }

            #[inline(always)]
            fn near<W: $crate::wide::Wide>(source: u32) -> $crate::curves::Near {
                $crate::curves::$near::<W>(source)
            }

            #[inline(always)]
            fn last(source: u32, word: u32) -> u32 {
                $last(source, word)
            }
        }
    )* };
}

/// Computes a curve for a row. Results of lanes outside `lanes` may be wrong.
#[inline(always)]
pub fn row<W: Wide, C: Curve, const N: usize>(wide: W, sources: &[u32; N], lanes: u64) -> [u32; N] {
    let (mut results, doubts) = near_row::<W, C, N>(wide, sources);
    let doubts = doubts & lanes;
    if doubts != 0 {
        lane_by_lane::<C, N>(doubts, sources, &mut results);
    }
    results
}

/// Computes the polynomial of a curve for a row. Returns the results, and the lanes whose result may be wrong.
#[inline(always)]
pub fn near_row<W: Wide, C: Curve, const N: usize>(wide: W, sources: &[u32; N]) -> ([u32; N], u64) {
    let (mut results, mut doubts) = ([0; N], [0; N]);
    for lane in 0..N {
        let Near { word, doubt } = C::near::<W>(sources[lane]);
        results[lane] = C::last(sources[lane], word);
        doubts[lane] = doubt;
    }
    (results, wide.signs(&doubts))
}

#[cold]
#[inline(never)]
fn lane_by_lane<C: Curve, const N: usize>(lanes: u64, sources: &[u32; N], results: &mut [u32; N]) {
    for lane in members(lanes) {
        results[lane] = C::lane(sources[lane]);
    }
}

/// A result of this module.
#[derive(Clone, Copy, Debug)]
pub struct Near {
    /// The bits of the result as a single. Any NaN is [`f32::NAN`]. A denormal result is +0.
    pub word: u32,
    /// All ones if the result may be wrong, or 0.
    pub doubt: u32,
}

/// Rounds a double to a single. A single does not have the lowest 29 bits of the double. The result may be wrong if the
/// distance of these bits from 2^28 is less than 2^13. 2^28 is the middle between two singles. A relative error of
/// 2^-40 is at most 2^13 units in the last place of a double.
#[inline(always)]
fn rounded(value: f64) -> Near {
    let distance = (value.to_bits() as u32).wrapping_sub((1 << 28) - (1 << 13));
    Near { word: (value as f32).to_bits(), doubt: if distance & 0x1fff_c000 == 0 { u32::MAX } else { 0 } }
}

/// Returns a * b + c, rounded either once or twice.
#[inline(always)]
fn multiply_add<W: Wide>(a: f64, b: f64, c: f64) -> f64 {
    if W::FUSED { a.mul_add(b, c) } else { a * b + c }
}

/// Returns the sum of `terms[n] * x^n`. Sums the even and the odd powers separately, so that the processor computes both
/// sums at the same time.
#[inline(always)]
fn polynomial<W: Wide, const N: usize>(x: f64, terms: &[f64; N]) -> f64 {
    let square = x * x;
    let mut sums = [terms[N - 2 + N % 2], terms[N - 1 - N % 2]];
    for number in (0..N - 2).rev() {
        sums[number % 2] = multiply_add::<W>(sums[number % 2], square, terms[number]);
    }
    multiply_add::<W>(sums[1], x, sums[0])
}

/// Returns 2^x. A result below the smallest normal number is 0.
#[inline(always)]
pub fn exp2<W: Wide>(x: u32) -> Near {
    /// 2^x for x from -1/2 to 1/2, with an error of 2^-40.2.
    const TERMS: [f64; 9] = [
        0.9999999999997623,
        0.6931471805465141,
        0.2402265069888037,
        0.05550410939341712,
        0.00961812854286238,
        0.001333345206224759,
        0.00015403851748732763,
        1.530973742223391e-5,
        1.3175858113990268e-6,
    ];
    /// 1.5 * 2^23. The sum of this number and a small single is rounded to an integer. The lowest bits of the sum
    /// contain this integer.
    const ROUND: f32 = 12_582_912.0;
    let x = f32::from_bits(x);
    // 2^-127 becomes 0 and 2^128 becomes infinity when the exponent is added below.
    let near = if x < -126.0 { -127.0 } else { x };
    let near = if near > 128.0 { 128.0 } else { near };
    let shifted = near + ROUND;
    // The difference has at most the bits of x, so it is exact.
    let Near { word, doubt } = rounded(polynomial::<W, 9>(f64::from(near - (shifted - ROUND)), &TERMS));
    let word = word.wrapping_add(shifted.to_bits() << 23);
    Near { word: if x.is_nan() { f32::NAN.to_bits() } else { word }, doubt }
}

/// Returns log2(x). The result is -infinity for zeros and denormals, and a NaN for other negative numbers.
#[inline(always)]
pub fn log2<W: Wide>(x: u32) -> Near {
    /// log2(m) / s for s = (m - 1) / (m + 1) and m from sqrt(1/2) to sqrt(2), in powers of s^2, with an error of 2^-45.
    const TERMS: [f64; 6] = [
        2.88539008177785,
        0.9617966941133075,
        0.5770779423765138,
        0.41220925108578826,
        0.31990575366608887,
        0.2828993034484426,
    ];
    const HALF_ROOT: u32 = std::f32::consts::FRAC_1_SQRT_2.to_bits();
    const INFINITY: u32 = f32::INFINITY.to_bits();
    let exponent = (x.wrapping_sub(HALF_ROOT) as i32) >> 23;
    let mantissa = f32::from_bits(x.wrapping_sub((exponent as u32) << 23));
    // A quotient of singles and one step of Newton's method take less time than a quotient of doubles. The error of the
    // quotient is below 2^-23, so the error of the ratio is below 2^-46.
    let inverse = f64::from(1.0 / (mantissa + 1.0));
    let below = f64::from(mantissa - 1.0);
    let ratio = below * inverse;
    let ratio = multiply_add::<W>(ratio, multiply_add::<W>(-inverse, below + 2.0, 1.0), ratio);
    let sum = polynomial::<W, 6>(ratio * ratio, &TERMS);
    let Near { word, doubt } = rounded(multiply_add::<W>(sum, ratio, f64::from(exponent)));
    let word = if x > INFINITY { f32::NAN.to_bits() } else { word };
    let word = if x == INFINITY { INFINITY } else { word };
    Near { word: if x & INFINITY == 0 { f32::NEG_INFINITY.to_bits() } else { word }, doubt }
}

/// Returns 1 / sqrt(x). The result is an infinity for zeros and denormals, with the same sign, and a NaN for other
/// negative numbers.
#[inline(always)]
pub fn rsqrt<W: Wide>(x: u32) -> Near {
    const INFINITY: u32 = f32::INFINITY.to_bits();
    let number = f32::from_bits(x);
    // A root and a quotient of singles and one step of Newton's method take less time than those of doubles. The error
    // of the quotient is below 2^-23, so the error of the result is below 2^-44.
    let near = f64::from(1.0 / number.sqrt());
    let rest = multiply_add::<W>(-f64::from(number), near * near, 1.0);
    let Near { word, doubt } = rounded(multiply_add::<W>(0.5 * near, rest, near));
    let word = if x > INFINITY { f32::NAN.to_bits() } else { word };
    let word = if x == INFINITY { 0 } else { word };
    Near { word: if x & INFINITY == 0 { x & 1 << 31 | INFINITY } else { word }, doubt }
}

/// Returns the sine of an angle from -1/4 to 1/4 revolutions.
#[inline(always)]
fn sine<W: Wide>(turns: f64) -> Near {
    /// sin(2 pi x) / x, in powers of x^2, with an error of 2^-43.9.
    const TERMS: [f64; 7] = [
        6.2831853071791945,
        -41.34170223981849,
        81.60524913341779,
        -76.70584649412801,
        42.058102841594035,
        -15.081031717302336,
        3.663464722297789,
    ];
    let Near { word, doubt } = rounded(turns * polynomial::<W, 7>(turns * turns, &TERMS));
    Near { word: if turns.is_nan() { f32::NAN.to_bits() } else { word }, doubt }
}

/// Returns the sine of an angle in revolutions. A denormal angle counts as zero. The sine of an infinity is a NaN.
#[inline(always)]
pub fn sin<W: Wide>(x: u32) -> Near {
    let x = f32::from_bits(if x & f32::INFINITY.to_bits() == 0 { 0 } else { x });
    // All differences are exact.
    let nearest = x - x.round_ties_even();
    let mirrored = 0.5f32.copysign(nearest) - nearest;
    sine::<W>(f64::from(if nearest.abs() > 0.25 { mirrored } else { nearest }))
}

/// Returns the cosine of an angle in revolutions. The cosine of an infinity is a NaN.
#[inline(always)]
pub fn cos<W: Wide>(x: u32) -> Near {
    let x = f32::from_bits(x);
    sine::<W>(0.25 - f64::from((x - x.round_ties_even()).abs()))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The lowest 29 bits of a double determine whether the result may be wrong.
    #[test]
    fn a_double_between_two_singles_is_in_doubt() {
        let doubt = |bits: u64| rounded(f64::from_bits(1f64.to_bits() + bits)).doubt != 0;
        let middle = 1 << 28;
        for (bits, expected) in [(0, false), (middle, true), (3 * middle, true), (2 * middle, false)] {
            assert_eq!(doubt(bits), expected, "{bits:#x}");
        }
        assert_eq!(
            [middle - 8193, middle - 8192, middle + 8191, middle + 8192].map(doubt),
            [false, true, true, false]
        );
    }
}
