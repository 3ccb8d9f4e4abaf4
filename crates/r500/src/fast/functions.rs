//! EX2, LN2, SIN and COS on rows.
//!
//! For each function in this file, [`mod@crate::lane`] has a lane function. The lane function computes the value in
//! doubles, with a relative error below 2^-52, and rounds the value to a single. The polynomials in this file compute
//! the same value without branches, with a relative error below [`SLACK`]. If both ends of the error interval round to
//! the same single, this single equals the result of the lane function. If the ends of the interval of a lane round to
//! different singles, the engine calls the lane function for this lane.

use std::f64::consts::{LN_2, TAU};
use std::marker::PhantomData;

use reconverge_simt::wide::Wide;

use super::kernels::{clamp, flushed, scale};
use super::lanes::{Body, CHUNK, Lanes, Operation, Words};
use crate::lane::{self, NAN};

/// Upper bound of the relative error on the fast path. The polynomials and their rounding have an error below 2^-46.
const SLACK: f64 = 1.0 / (1u64 << 44) as f64;

/// A number that rounds a double below 2^51 to the nearest integer, ties to even. To round a double, the code adds this
/// number to the double and then subtracts this number. The lowest bits of the sum hold the integer.
const TO_INTEGER: f64 = 1.5 * (1u64 << 52) as f64;

/// A function of one operand that is computed for each lane.
pub(super) trait Function {
    /// Returns the result of the lane function.
    fn of(x: f32) -> f32;

    /// Returns an approximation of the function for `x`, which must not be a denormal. Returns a NaN if and only if the
    /// lane function returns a NaN.
    fn near<W: Wide>(x: u32) -> f64;
}

/// Returns a * b + c, rounded either once or twice.
#[inline(always)]
fn multiply_add<W: Wide>(a: f64, b: f64, c: f64) -> f64 {
    if W::FUSED { a.mul_add(b, c) } else { a * b + c }
}

/// Evaluates a polynomial. The coefficient of the highest power comes first.
#[inline(always)]
fn polynomial<W: Wide, const N: usize>(coefficients: &[f64; N], x: f64) -> f64 {
    let mut value = coefficients[0];
    for coefficient in &coefficients[1..] {
        value = multiply_add::<W>(value, x, *coefficient);
    }
    value
}

/// ln(2)^n / n!, for n from 12 down to 0: coefficients of the power series of 2^x.
const POWERS: [f64; 13] = {
    let mut coefficients = [1.0; 13];
    let (mut n, mut value) = (1, 1.0);
    while n < 13 {
        value *= LN_2 / n as f64;
        coefficients[12 - n] = value;
        n += 1;
    }
    coefficients
};

/// 2 / ((2 n + 1) ln 2), for n from 9 down to 0: coefficients of the series of the binary logarithm of m, in powers of
/// (m - 1) / (m + 1).
const LOGARITHM: [f64; 10] = {
    let mut coefficients = [0.0; 10];
    let mut n = 0;
    while n < 10 {
        coefficients[9 - n] = 2.0 / ((2 * n + 1) as f64 * LN_2);
        n += 1;
    }
    coefficients
};

/// Returns (-1)^n / (2 n + odd)!, for n from N - 1 down to 0. If `odd` is 1, these numbers are the coefficients of the
/// series of sin(x) / x. If `odd` is 0, these numbers are the coefficients of the series of cos(x).
const fn series<const N: usize>(odd: usize) -> [f64; N] {
    let mut coefficients = [1.0; N];
    let (mut n, mut value) = (1, 1.0);
    while n < N {
        value /= -(((2 * n + odd) * (2 * n + odd - 1)) as f64);
        coefficients[N - 1 - n] = value;
        n += 1;
    }
    coefficients
}

const SINE: [f64; 8] = series(1);
const COSINE: [f64; 9] = series(0);

/// [`lane::ex2`]
pub(super) struct Ex2;

impl Function for Ex2 {
    fn of(x: f32) -> f32 {
        lane::ex2(x)
    }

    #[inline(always)]
    fn near<W: Wide>(x: u32) -> f64 {
        // If `x` is outside these bounds, the result is zero or infinite.
        let x = f64::from(f32::from_bits(x));
        let x = if x < -200.0 { -200.0 } else { x };
        let x = if x > 200.0 { 200.0 } else { x };
        let shifted = x + TO_INTEGER;
        let value = polynomial::<W, 13>(&POWERS, x - (shifted - TO_INTEGER));
        let scaled = f64::from_bits(value.to_bits().wrapping_add(shifted.to_bits() << 52));
        if x.is_nan() { f64::NAN } else { scaled }
    }
}

/// [`lane::ln2`]
pub(super) struct Ln2;

impl Function for Ln2 {
    fn of(x: f32) -> f32 {
        lane::ln2(x)
    }

    #[inline(always)]
    fn near<W: Wide>(x: u32) -> f64 {
        /// The bits of the square root of 1/2.
        const LEAST: u32 = 0x3f35_04f3;
        let exponent = (x.wrapping_sub(LEAST) as i32) >> 23;
        let fraction = f64::from(f32::from_bits(x.wrapping_sub((exponent << 23) as u32)));
        let s = (fraction - 1.0) / (fraction + 1.0);
        let value = multiply_add::<W>(polynomial::<W, 10>(&LOGARITHM, s * s), s, f64::from(exponent));
        let x = f32::from_bits(x);
        let value = if x == f32::INFINITY { f64::INFINITY } else { value };
        let value = if x > 0.0 { value } else { f64::NAN };
        if x == 0.0 { f64::NEG_INFINITY } else { value }
    }
}

/// Computes sin(2 pi (x + QUARTERS / 4)). As in the lane function, the argument is first reduced to less than a full
/// turn. The reduced argument is then split into the nearest quarter turn and a remaining angle.
pub(super) struct Turns<const QUARTERS: u64>;

/// [`lane::sin`]
pub(super) type Sin = Turns<0>;

/// [`lane::cos`]
pub(super) type Cos = Turns<1>;

impl<const QUARTERS: u64> Function for Turns<QUARTERS> {
    fn of(x: f32) -> f32 {
        if QUARTERS == 0 { lane::sin(x) } else { lane::cos(x) }
    }

    #[inline(always)]
    fn near<W: Wide>(x: u32) -> f64 {
        let x = f64::from(f32::from_bits(x));
        let turns = x - x.round_ties_even();
        let shifted = turns * 4.0 + TO_INTEGER;
        let angle = (turns - (shifted - TO_INTEGER) / 4.0) * TAU;
        let square = angle * angle;
        let sine = angle * polynomial::<W, 8>(&SINE, square);
        let cosine = polynomial::<W, 9>(&COSINE, square);
        let quarter = shifted.to_bits().wrapping_add(QUARTERS);
        let value = if quarter & 1 != 0 { cosine } else { sine };
        f64::from_bits(value.to_bits() ^ (quarter & 2) << 62) + 0.0
    }
}

/// Returns the results of the lane function for a chunk of lanes. Results of lanes outside `members` may be wrong.
#[inline(always)]
fn chunk<W: Wide, F: Function>(_: W, src: &Words, members: u32) -> Words {
    let (mut result, mut refused) = ([0; CHUNK], [0; CHUNK]);
    let mut any = 0;
    for lane in 0..CHUNK {
        let near = F::near::<W>(flushed(src[lane]));
        let slack = near * SLACK;
        // If the approximation is an infinity, one end of the interval is a NaN, so both comparisons fail. The lane is
        // not recomputed, because the result of the lane is already right.
        let (low, high) = ((near - slack) as f32, (near + slack) as f32);
        let value = near as f32;
        refused[lane] = u32::from((low < high) | (low > high));
        any |= refused[lane];
        result[lane] = if value.is_nan() { NAN.to_bits() } else { flushed(value.to_bits()) };
    }
    if any != 0 {
        one_by_one::<F>(src, members, &refused, &mut result);
    }
    result
}

#[cold]
#[inline(never)]
fn one_by_one<F: Function>(src: &Words, members: u32, refused: &Words, result: &mut Words) {
    for lane in 0..CHUNK {
        if refused[lane] != 0 && members >> lane & 1 != 0 {
            result[lane] = F::of(f32::from_bits(src[lane])).to_bits();
        }
    }
}

/// Applies a function and OMOD to a row.
pub(super) struct OfRow<F, const BLEND: bool>(PhantomData<F>);

impl<F: Function, const BLEND: bool> Body for OfRow<F, BLEND> {
    #[inline(always)]
    fn run<W: Wide>(wide: W, lanes: &mut Lanes<'_>, operation: &Operation) {
        let channel = &operation.channels[0];
        let members = if BLEND { lanes.set(operation.set).0 } else { u64::MAX };
        for number in lanes.chunks() {
            let mut src = lanes.read(channel.src[0], number);
            for lane in 0..CHUNK {
                src[lane] ^= channel.flip[0];
            }
            let mut result = chunk::<W, F>(wide, &src, (members >> (number * CHUNK)) as u32);
            scale(&mut result, operation.omod, operation.scale);
            if operation.clamp {
                clamp(&mut result);
            }
            if BLEND {
                lanes.blend(wide, channel.dst, number, operation.set, result);
            } else {
                lanes.write(channel.dst, number, result);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use reconverge_simt::level::{Level, Task};

    use super::*;

    struct Chunk<'a, F>(&'a Words, PhantomData<F>);

    impl<F: Function> Task for Chunk<'_, F> {
        type Output = Words;

        #[inline(always)]
        fn run<W: Wide>(self, wide: W) -> Words {
            chunk::<W, F>(wide, self.0, u32::MAX)
        }
    }

    /// Compares the fast path with the lane function for every 4099th bit pattern, for all bit patterns near those in
    /// `centres`, and for special values.
    fn compare<F: Function>(name: &str, centres: &[u32]) {
        let specials =
            [0u32, 1, 0x7f_ffff, 0x80_0000, 0x7f7f_ffff, 0x7f80_0000, 0x7f80_0001, 0x7fc0_0000, 0x7fff_ffff];
        let near = centres.iter().flat_map(|centre| (0..4096).map(move |n| (centre - 2048).wrapping_add(n)));
        let all = (0..u32::MAX / 4099).map(|n| n * 4099).chain(specials).chain(near);
        let all: Vec<u32> = all.flat_map(|x| [x, x ^ 1 << 31]).collect();
        for level in Level::available() {
            for src in all.as_chunks::<CHUNK>().0 {
                let found = level.run(Chunk::<F>(src, PhantomData));
                for lane in 0..CHUNK {
                    let expected = F::of(f32::from_bits(src[lane])).to_bits();
                    let level = level.name();
                    assert_eq!(found[lane], expected, "{name} {:#010x} on {level}", src[lane]);
                }
            }
        }
    }

    #[test]
    fn every_function_gives_what_the_lane_function_gives() {
        let near =
            [1.0f32, 0.5, 0.25, 0.75, 0.125, 2.0, 8.0, 127.0, 128.0, 126.0, 149.0, 1e-20].map(f32::to_bits);
        compare::<Ex2>("ex2", &near);
        compare::<Ln2>("ln2", &near);
        compare::<Sin>("sin", &near);
        compare::<Cos>("cos", &near);
    }

    /// Checks that the fast path rejects few lanes. A function that rejects many lanes has correct results, but is
    /// slow.
    #[test]
    fn few_lanes_are_refused() {
        fn refused<F: Function>() -> usize {
            let off = |x: u32| {
                let near = F::near::<reconverge_simt::wide::Baseline>(x);
                ((near * (1.0 - SLACK)) as f32) < ((near * (1.0 + SLACK)) as f32)
            };
            (0..100_000u32).filter(|n| off(0x3c00_0000 + n * 669)).count()
        }
        let counts = [refused::<Ex2>(), refused::<Ln2>(), refused::<Sin>(), refused::<Cos>()];
        assert!(counts.iter().all(|count| *count < 10), "{counts:?}");
    }
}
