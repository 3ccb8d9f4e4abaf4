//! EXP, LOG, SIN and COS on rows.
//!
//! The lane functions compute a double with the mathematics library and round this double to a single. This module
//! instead computes a double with a series. The double of the series is within 2^-48 of the exact value. The double of
//! the library is also within 2^-48 of the exact value. The module rounds both ends of an interval of 2^-46 around the
//! double of the series. If both ends round to the same single, the lane function also returns this single. For about
//! one lane in four million, the two ends round to different singles. For such a lane, this module calls the lane
//! function.

use std::f64::consts::{LN_2, LOG2_E, TAU};
use std::marker::PhantomData;

use reconverge_simt::mask::members;
use reconverge_simt::wide::Wide;

use super::lanes::{Body, Lanes, Operation, finish};
use crate::chip::LANES;
use crate::lane::{self, number};

/// A function of one word that a series approximates.
pub(super) trait Curve {
    /// Computes the lane function, which defines the result.
    fn lane(a: u32) -> u32;

    /// Returns the value of the series before rounding to a single.
    fn series(a: u32) -> f64;

    /// Converts the rounded value to the result.
    #[inline(always)]
    fn last(value: u32) -> u32 {
        value
    }
}

/// Returns both ends of the interval around the value of the series, each rounded to a single.
#[inline(always)]
fn ends<C: Curve>(a: u32) -> [u32; 2] {
    const WIDTH: f64 = 1.0 / (1u64 << 46) as f64;
    let value = C::series(a);
    let (low, high) = (value * (1.0 - WIDTH), value * (1.0 + WIDTH));
    [C::last(lane::rounded(low, a)), C::last(lane::rounded(high, a))]
}

/// Computes a curve for every lane. `FINISH`: whether a factor (OMOD) or CLAMP applies.
pub(super) struct Curved<C, const FINISH: bool>(PhantomData<C>);

impl<C: Curve, const FINISH: bool> Body for Curved<C, FINISH> {
    #[inline(always)]
    fn run<W: Wide>(wide: W, lanes: &mut Lanes<'_>, operation: &Operation) {
        let row = lanes.row(operation.src[0]);
        let (keep, flip) = (operation.keep[0], operation.flip[0]);
        let finished = |value: u32| if FINISH { finish(value, operation) } else { value };
        let (mut source, mut result, mut refused) = ([0; LANES], [0; LANES], [0; LANES]);
        for lane in 0..LANES {
            source[lane] = row[lane] & keep ^ flip;
        }
        for lane in 0..LANES {
            let [low, high] = ends::<C>(source[lane]);
            result[lane] = low;
            refused[lane] = if low == high { 0 } else { u32::MAX };
        }
        for lane in members(wide.signs(&refused) & lanes.set(operation.set)) {
            result[lane] = C::lane(source[lane]);
        }
        if FINISH {
            for value in &mut result {
                *value = finished(*value);
            }
        }
        lanes.write(wide, operation.dst, operation.set, &result);
    }
}

/// Returns the sum of `terms[n] * x^n`.
#[inline(always)]
fn polynomial<const N: usize>(x: f64, terms: &[f64; N]) -> f64 {
    let mut sum = terms[N - 1];
    for number in (0..N - 1).rev() {
        sum = sum * x + terms[number];
    }
    sum
}

/// The curve of EXP_IEEE.
pub(super) struct Exp;

impl Curve for Exp {
    fn lane(a: u32) -> u32 {
        lane::exp_ieee(a)
    }

    #[inline(always)]
    fn series(a: u32) -> f64 {
        /// Coefficients 1 / n!.
        const TERMS: [f64; 14] = {
            let mut terms = [1.0; 14];
            let mut number = 1;
            while number < 14 {
                terms[number] = terms[number - 1] / number as f64;
                number += 1;
            }
            terms
        };
        /// 1.5 * 2^52. The sum of this number and a small double is rounded to an integer. The lowest bits of the sum
        /// contain this integer.
        const ROUND: f64 = 6_755_399_441_055_744.0;
        // If `x` is outside these limits, the result is zero or infinite as a single. A NaN becomes the lower limit in
        // this step. `lane::rounded` later returns the result for a NaN operand.
        let x = f64::from(number(a));
        let x = if x > -200.0 { x } else { -200.0 };
        let x = if x < 200.0 { x } else { 200.0 };
        let shifted = x + ROUND;
        let rest = x - (shifted - ROUND);
        let scale = f64::from_bits((shifted.to_bits() << 52).wrapping_add(1f64.to_bits()));
        polynomial(rest * LN_2, &TERMS) * scale
    }
}

/// Computes the series of LOG_IEEE.
#[inline(always)]
fn log(a: u32) -> f64 {
    /// Coefficients 1 / (2 n + 1).
    const TERMS: [f64; 12] = {
        let mut terms = [1.0; 12];
        let mut number = 1;
        while number < 12 {
            terms[number] = 1.0 / (2 * number + 1) as f64;
            number += 1;
        }
        terms
    };
    const HALF_ROOT: u32 = std::f32::consts::FRAC_1_SQRT_2.to_bits();
    let x = number(a);
    let bits = x.to_bits();
    let exponent = (bits.wrapping_sub(HALF_ROOT) as i32) >> 23;
    // The mantissa is in the range from sqrt(1/2) to sqrt(2).
    let mantissa = f64::from(f32::from_bits(bits.wrapping_sub((exponent as u32) << 23)));
    let ratio = (mantissa - 1.0) / (mantissa + 1.0);
    let usual = f64::from(exponent) + ratio * polynomial(ratio * ratio, &TERMS) * (2.0 * LOG2_E);
    let usual = if x == f32::INFINITY { f64::INFINITY } else { usual };
    let usual = if x < 0.0 { f64::NAN } else { usual };
    if x == 0.0 { f64::NEG_INFINITY } else { usual }
}

/// The curve of LOG_IEEE.
pub(super) struct Log;

impl Curve for Log {
    fn lane(a: u32) -> u32 {
        lane::log_ieee(a)
    }

    #[inline(always)]
    fn series(a: u32) -> f64 {
        log(a)
    }
}

/// The curve of LOG_CLAMPED.
pub(super) struct LogClamped;

impl Curve for LogClamped {
    fn lane(a: u32) -> u32 {
        lane::log_clamped(a)
    }

    #[inline(always)]
    fn series(a: u32) -> f64 {
        log(a)
    }

    #[inline(always)]
    fn last(value: u32) -> u32 {
        lane::lowest(value)
    }
}

/// Returns the sine of an angle in revolutions.
#[inline(always)]
fn sine(turns: f64) -> f64 {
    /// Coefficients (-1)^n / (2 n + 1)!.
    const TERMS: [f64; 12] = {
        let mut terms = [1.0; 12];
        let mut number = 1;
        while number < 12 {
            terms[number] = -terms[number - 1] / (2 * number * (2 * number + 1)) as f64;
            number += 1;
        }
        terms
    };
    let x = TAU * lane::folded(turns);
    x * polynomial(x * x, &TERMS)
}

/// The curve of SIN, for an angle in revolutions.
pub(super) struct Sin;

impl Curve for Sin {
    fn lane(a: u32) -> u32 {
        lane::sin(a)
    }

    #[inline(always)]
    fn series(a: u32) -> f64 {
        sine(f64::from(number(a)))
    }
}

/// The curve of COS, for an angle in revolutions.
pub(super) struct Cos;

impl Curve for Cos {
    fn lane(a: u32) -> u32 {
        lane::cos(a)
    }

    #[inline(always)]
    fn series(a: u32) -> f64 {
        sine(lane::quarter_on(f64::from(number(a))))
    }
}

#[cfg(test)]
mod tests {
    use reconverge_simt::random::Random;

    use super::*;

    /// Compares a curve with its lane function. For each possible upper half of a word, the inputs contain eight words
    /// with random lower halves. The inputs also contain boundary values. If both ends of the interval round to the
    /// same single, this single must be the lane function's result. Both ends must nearly always round to the same
    /// single.
    fn compare<C: Curve>(name: &str, seed: u64) {
        let mut random = Random::new(seed);
        let mut refused = 0;
        let edges =
            [0u32, 1, 0x7f_ffff, 0x80_0000, 0x3f80_0000, 0x4300_0000, 0x42fc_0000, 0x7f80_0000, 0x7fff_ffff];
        let edges = edges.into_iter().flat_map(|edge| [edge.wrapping_sub(1), edge, edge + 1]);
        let edges: Vec<u32> = edges.flat_map(|edge| [edge, edge ^ 1 << 31]).collect();
        let words = (0..=0xffff_u32).flat_map(|upper| (0..8).map(move |_| upper << 16));
        let words: Vec<u32> = words.map(|upper| upper | random.next() & 0xffff).chain(edges).collect();
        for a in words {
            let [low, high] = ends::<C>(a);
            if low == high {
                assert_eq!(low, C::lane(a), "{name} {a:#010x}");
            } else {
                refused += 1;
            }
        }
        assert!(refused < 10, "{name} refuses {refused} words");
    }

    #[test]
    fn a_word_that_is_not_refused_gives_what_the_lane_function_gives() {
        compare::<Exp>("EXP_IEEE", 1);
        compare::<Log>("LOG_IEEE", 2);
        compare::<LogClamped>("LOG_CLAMPED", 3);
        compare::<Sin>("SIN", 4);
        compare::<Cos>("COS", 5);
    }

    /// The ends of the interval differ if the value is midway between two singles.
    #[test]
    fn a_word_between_two_singles_is_refused() {
        struct Between;
        impl Curve for Between {
            fn lane(a: u32) -> u32 {
                a
            }
            fn series(a: u32) -> f64 {
                f64::from(f32::from_bits(a)) * (1.0 + 1.0 / (1 << 24) as f64)
            }
        }
        let [low, high] = ends::<Between>(lane::ONE);
        assert_eq!((low, high), (lane::ONE, lane::ONE + 1));
    }
}
