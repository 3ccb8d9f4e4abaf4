//! EXP, LOG, SIN, COS and RECIPSQRT on rows.
//!
//! The lane functions compute a double with the mathematics library and round this double to a single. This module
//! instead uses the polynomials of [`reconverge_simt::curves`]. If the result of a polynomial may be wrong, this module
//! calls the lane function.

use std::marker::PhantomData;

use reconverge_simt::curves::{self, Near};
use reconverge_simt::mask::members;
use reconverge_simt::wide::Wide;

use super::lanes::{Body, Lanes, Operation, finish};
use crate::chip::LANES;
use crate::lane;

/// A function of one word that a polynomial approximates.
pub(super) trait Curve {
    /// Computes the lane function, which defines the result.
    fn lane(a: u32) -> u32;

    /// Computes the polynomial.
    fn near<W: Wide>(a: u32) -> Near;

    /// Converts the rounded value to the result.
    #[inline(always)]
    fn last(value: u32) -> u32 {
        value
    }
}

/// Returns the two ends of the interval around the value of the series. The function rounds each end to a single.
#[inline(always)]
fn near_row<W: Wide, C: Curve>(wide: W, source: &[u32; LANES]) -> ([u32; LANES], u64) {
    let (mut result, mut doubts) = ([0; LANES], [0; LANES]);
    for lane in 0..LANES {
        let Near { word, doubt } = C::near::<W>(source[lane]);
        // For any other source, the NaN of a polynomial is `lane::NAN`.
        let nan = f32::from_bits(source[lane]).is_nan();
        result[lane] = if nan { lane::quiet(source[lane]) } else { C::last(word) };
        doubts[lane] = doubt;
    }
    (result, wide.signs(&doubts))
}

/// Computes the lane function for some lanes.
#[cold]
#[inline(never)]
fn lane_by_lane<C: Curve>(set: u64, source: &[u32; LANES], result: &mut [u32; LANES]) {
    for lane in members(set) {
        result[lane] = C::lane(source[lane]);
    }
}

/// Computes a curve for every lane. `FINISH`: whether a factor (OMOD) or CLAMP applies.
pub(super) struct Curved<C, const FINISH: bool>(PhantomData<C>);

impl<C: Curve, const FINISH: bool> Body for Curved<C, FINISH> {
    #[inline(always)]
    fn run<W: Wide>(wide: W, lanes: &mut Lanes<'_>, operation: &Operation) {
        let row = lanes.row(operation.src[0]);
        let (keep, flip) = (operation.keep[0], operation.flip[0]);
        let mut source = [0; LANES];
        for lane in 0..LANES {
            source[lane] = row[lane] & keep ^ flip;
        }
        let (mut result, doubts) = near_row::<W, C>(wide, &source);
        let doubts = doubts & lanes.set(operation.set);
        if doubts != 0 {
            lane_by_lane::<C>(doubts, &source, &mut result);
        }
        if FINISH {
            for value in &mut result {
                *value = finish(*value, operation);
            }
        }
        lanes.write(wide, operation.dst, operation.set, &result);
    }
}

/// The curve of EXP_IEEE.
pub(super) struct Exp;

impl Curve for Exp {
    fn lane(a: u32) -> u32 {
        lane::exp_ieee(a)
    }

    #[inline(always)]
    fn near<W: Wide>(a: u32) -> Near {
        curves::exp2::<W>(a)
    }
}

/// The curve of LOG_IEEE.
pub(super) struct Log;

impl Curve for Log {
    fn lane(a: u32) -> u32 {
        lane::log_ieee(a)
    }

    #[inline(always)]
    fn near<W: Wide>(a: u32) -> Near {
        curves::log2::<W>(a)
    }
}

/// The curve of LOG_CLAMPED.
pub(super) struct LogClamped;

impl Curve for LogClamped {
    fn lane(a: u32) -> u32 {
        lane::log_clamped(a)
    }

    #[inline(always)]
    fn near<W: Wide>(a: u32) -> Near {
        curves::log2::<W>(a)
    }

    #[inline(always)]
    fn last(value: u32) -> u32 {
        lane::lowest(value)
    }
}

/// The curve of SIN, for an angle in revolutions.
pub(super) struct Sin;

impl Curve for Sin {
    fn lane(a: u32) -> u32 {
        lane::sin(a)
    }

    #[inline(always)]
    fn near<W: Wide>(a: u32) -> Near {
        curves::sin::<W>(a)
    }
}

/// The curve of COS, for an angle in revolutions.
pub(super) struct Cos;

impl Curve for Cos {
    fn lane(a: u32) -> u32 {
        lane::cos(a)
    }

    #[inline(always)]
    fn near<W: Wide>(a: u32) -> Near {
        curves::cos::<W>(a)
    }
}

/// The curve of RECIPSQRT_IEEE.
pub(super) struct RecipSqrt;

impl Curve for RecipSqrt {
    fn lane(a: u32) -> u32 {
        lane::recipsqrt_ieee(a)
    }

    #[inline(always)]
    fn near<W: Wide>(a: u32) -> Near {
        curves::rsqrt::<W>(a)
    }
}

#[cfg(test)]
mod tests {
    use reconverge_simt::level::{Level, Task};
    use reconverge_simt::random::Random;

    use super::*;

    struct NearRow<'a, C>(&'a [u32; LANES], PhantomData<C>);

    impl<C: Curve> Task for NearRow<'_, C> {
        type Output = ([u32; LANES], u64);

        #[inline(always)]
        fn run<W: Wide>(self, wide: W) -> Self::Output {
            near_row::<W, C>(wide, self.0)
        }
    }

    /// Compares a curve with its lane function, at every level. For each possible upper half of a word, the inputs
    /// contain eight words with random lower halves. The inputs also contain boundary values. A result that the curve
    /// does not report as possibly wrong must be the lane function's result. The curve may report only few results.
    fn compare<C: Curve>(name: &str, seed: u64) {
        let edges =
            [0u32, 1, 0x7f_ffff, 0x80_0000, 0x3f80_0000, 0x4300_0000, 0x42fc_0000, 0x7f80_0000, 0x7fff_ffff];
        let edges = edges.into_iter().flat_map(|edge| [edge.wrapping_sub(1), edge, edge + 1]);
        let edges: Vec<u32> = edges.flat_map(|edge| [edge, edge ^ 1 << 31]).collect();
        let words = (0..=0xffff_u32).flat_map(|upper| (0..8).map(move |_| upper << 16));
        for level in Level::available() {
            let mut random = Random::new(seed);
            let words = words.clone().map(|upper| upper | random.next() & 0xffff).chain(edges.clone());
            let words: Vec<u32> = words.collect();
            let mut doubtful = 0;
            for chunk in words.chunks(LANES) {
                let row = std::array::from_fn(|lane| chunk.get(lane).copied().unwrap_or(0));
                let (result, doubts) = level.run(NearRow::<C>(&row, PhantomData));
                for lane in members(!doubts) {
                    assert_eq!(
                        result[lane],
                        C::lane(row[lane]),
                        "{name} {:#010x} on {}",
                        row[lane],
                        level.name()
                    );
                }
                doubtful += doubts.count_ones();
            }
            assert!(doubtful < 60, "{name}: {doubtful} words in doubt");
        }
    }

    #[test]
    fn a_word_that_is_not_in_doubt_gives_what_the_lane_function_gives() {
        compare::<Exp>("EXP_IEEE", 1);
        compare::<Log>("LOG_IEEE", 2);
        compare::<LogClamped>("LOG_CLAMPED", 3);
        compare::<Sin>("SIN", 4);
        compare::<Cos>("COS", 5);
        compare::<RecipSqrt>("RECIPSQRT_IEEE", 6);
    }
}
