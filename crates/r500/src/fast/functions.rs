//! EX2, LN2, SIN and COS on rows.
//!
//! For each function in this file, [`mod@crate::lane`] has a lane function. The lane function computes the value in
//! doubles, with a relative error below 2^-52, and rounds the value to a single. The polynomials of
//! [`reconverge_simt::curves`] compute the same value without branches.

use std::marker::PhantomData;

use reconverge_simt::curves::{self, Curve};
use reconverge_simt::wide::Wide;

use super::kernels::{clamp, scale};
use super::lanes::{Body, CHUNK, Lanes, Operation};
use crate::lane::{self, NAN};

/// Returns the result of a polynomial, with the machine's NaN.
#[inline(always)]
fn last(_source: u32, word: u32) -> u32 {
    if f32::from_bits(word).is_nan() { NAN.to_bits() } else { word }
}

/// Applies a lane function to the bits of a number.
fn of(function: fn(f32) -> f32, source: u32) -> u32 {
    function(f32::from_bits(source)).to_bits()
}

reconverge_simt::curve_types! {
    Ex2: |source| of(lane::ex2, source), exp2, last;
    Ln2: |source| of(lane::ln2, source), log2, last;
    Sin: |source| of(lane::sin, source), sin, last;
    Cos: |source| of(lane::cos, source), cos, last;
}

/// Applies a function and OMOD to a row.
pub(super) struct OfRow<F, const BLEND: bool>(PhantomData<F>);

impl<F: Curve, const BLEND: bool> Body for OfRow<F, BLEND> {
    #[inline(always)]
    fn run<W: Wide>(wide: W, lanes: &mut Lanes<'_>, operation: &Operation) {
        let channel = &operation.channels[0];
        let members = if BLEND { lanes.set(operation.set).0 } else { u64::MAX };
        for number in lanes.chunks() {
            let mut src = lanes.read(channel.src[0], number);
            for lane in 0..CHUNK {
                src[lane] ^= channel.flip[0];
            }
            let mut result = curves::row::<W, F, CHUNK>(wide, &src, members >> (number * CHUNK));
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
    use crate::fast::lanes::Words;

    struct Chunk<'a, F>(&'a Words, PhantomData<F>);

    impl<F: Curve> Task for Chunk<'_, F> {
        type Output = Words;

        #[inline(always)]
        fn run<W: Wide>(self, wide: W) -> Words {
            curves::row::<W, F, CHUNK>(wide, self.0, u64::MAX)
        }
    }

    /// Compares the fast path with the lane function for every 4099th bit pattern, for all bit patterns near an element
    /// of `centres`, and for special values.
    fn compare<F: Curve>(name: &str, centres: &[u32]) {
        let specials =
            [0u32, 1, 0x7f_ffff, 0x80_0000, 0x7f7f_ffff, 0x7f80_0000, 0x7f80_0001, 0x7fc0_0000, 0x7fff_ffff];
        let near = centres.iter().flat_map(|centre| (0..4096).map(move |n| (centre - 2048).wrapping_add(n)));
        let all = (0..u32::MAX / 4099).map(|n| n * 4099).chain(specials).chain(near);
        let all: Vec<u32> = all.flat_map(|x| [x, x ^ 1 << 31]).collect();
        for level in Level::available() {
            for src in all.as_chunks::<CHUNK>().0 {
                let found = level.run(Chunk::<F>(src, PhantomData));
                for lane in 0..CHUNK {
                    let expected = F::lane(src[lane]);
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

    /// Checks that the polynomials report few results as possibly wrong. If a function has many such results, the
    /// function is correct but slow.
    #[test]
    fn few_lanes_are_in_doubt() {
        fn doubts<F: Curve>() -> usize {
            let near = |n: u32| F::near::<reconverge_simt::wide::Baseline>(0x3c00_0000 + n * 669);
            (0..100_000u32).filter(|n| near(*n).doubt != 0).count()
        }
        let counts = [doubts::<Ex2>(), doubts::<Ln2>(), doubts::<Sin>(), doubts::<Cos>()];
        assert!(counts.iter().all(|count| *count < 20), "{counts:?}");
    }
}
