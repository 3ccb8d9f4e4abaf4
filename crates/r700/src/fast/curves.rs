//! EXP, LOG, SIN, COS and RECIPSQRT on rows.
//!
//! The lane functions compute a double with the mathematics library and round this double to a single. This module
//! instead uses the polynomials of [`reconverge_simt::curves`].

use std::marker::PhantomData;

use reconverge_simt::curves::{self, Curve};
use reconverge_simt::wide::Wide;

use super::lanes::{Body, Lanes, Operation, finish};
use crate::chip::LANES;
use crate::lane;

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
        let mut result = curves::row::<W, C, LANES>(wide, &source, lanes.set(operation.set));
        if FINISH {
            for value in &mut result {
                *value = finish(*value, operation);
            }
        }
        lanes.write(wide, operation.dst, operation.set, &result);
    }
}

/// Returns the result for a source. For any source that is a number, the NaN of a polynomial is `lane::NAN`.
#[inline(always)]
fn last(source: u32, word: u32) -> u32 {
    if f32::from_bits(source).is_nan() { lane::quiet(source) } else { word }
}

reconverge_simt::curve_types! {
    Exp: lane::exp_ieee, exp2, last;
    Log: lane::log_ieee, log2, last;
    LogClamped: lane::log_clamped, log2, |source, word| last(source, lane::lowest(word));
    Sin: lane::sin, sin, last;
    Cos: lane::cos, cos, last;
    RecipSqrt: lane::recipsqrt_ieee, rsqrt, last;
}

#[cfg(test)]
mod tests {
    use reconverge_simt::curves::near_row;
    use reconverge_simt::level::{Level, Task};
    use reconverge_simt::mask::members;
    use reconverge_simt::random::Random;

    use super::*;

    struct NearRow<'a, C>(&'a [u32; LANES], PhantomData<C>);

    impl<C: Curve> Task for NearRow<'_, C> {
        type Output = ([u32; LANES], u64);

        #[inline(always)]
        fn run<W: Wide>(self, wide: W) -> Self::Output {
            near_row::<W, C, LANES>(wide, self.0)
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
