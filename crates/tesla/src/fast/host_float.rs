//! f32 sums and products of a whole row by the host's operation alone, where no lane is an exception.
//!
//! The lane functions flush denormals and make NaN canonical at every step, which costs three times the operation
//! itself and makes each step wait for the next. Most rows need none of it. What is tested here is exact: a row in
//! which some lane might differ is refused and goes through the lane functions.

use crate::flow::WARP;
use crate::lane::float;

type Row = [u32; WARP];

const INFINITY: u32 = 0x7f80_0000;
const MAGNITUDE: u32 = 0x7fff_ffff;

/// Refuses every row.
#[inline(always)]
pub(super) fn none(_src: &[Row; 3]) -> Option<(Row, [u8; WARP])> {
    None
}

/// Sums to nearest that are zero, infinite, or at least 2^-100.
///
/// A denormal operand cannot be seen in those: beside an operand of 2^-101 it is less than half of a last place, and
/// two of them sum to less than 2^-100. A zero comes from opposite operands, whose flushed values are opposite or
/// zeros of the same signs.
#[inline(always)]
pub(super) fn add([a, b, _]: &[Row; 3]) -> Option<(Row, [u8; WARP])> {
    const LEAST: u32 = (127 - 100) << 23;
    let mut sum = [0; WARP];
    for lane in 0..WARP {
        sum[lane] = (f32::from_bits(a[lane]) + f32::from_bits(b[lane])).to_bits();
    }
    let mut exceptions = 0;
    for lane in 0..WARP {
        let magnitude = sum[lane] & MAGNITUDE;
        // Below LEAST this wraps to a large number.
        let usual = (magnitude == 0) | (magnitude.wrapping_sub(LEAST) <= INFINITY - LEAST);
        exceptions |= u32::from(!usual);
    }
    (exceptions == 0).then(|| (sum, flags(&sum)))
}

/// Products to nearest of factors that are neither zero nor denormal, if they are neither themselves, nor NaN, nor
/// ±2^-126, which a product just below it may have been rounded to.
#[inline(always)]
pub(super) fn mul([a, b, _]: &[Row; 3]) -> Option<(Row, [u8; WARP])> {
    const SMALLEST: u32 = 1 << 23;
    let mut product = [0; WARP];
    for lane in 0..WARP {
        product[lane] = (f32::from_bits(a[lane]) * f32::from_bits(b[lane])).to_bits();
    }
    let mut exceptions = 0;
    for lane in 0..WARP {
        let magnitude = product[lane] & MAGNITUDE;
        let usual = (magnitude.wrapping_sub(SMALLEST + 1) < INFINITY - SMALLEST)
            & (a[lane] & INFINITY != 0)
            & (b[lane] & INFINITY != 0);
        exceptions |= u32::from(!usual);
    }
    (exceptions == 0).then(|| (product, flags(&product)))
}

/// What the lane functions say of results that are no denormals and no NaN but theirs.
#[inline(always)]
fn flags(row: &Row) -> [u8; WARP] {
    let mut flags = [0; WARP];
    for lane in 0..WARP {
        flags[lane] = float::flags(row[lane]).bits();
    }
    flags
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::lane::Rounding;
    use crate::lane::float::Saturate;

    /// Every pair of interesting values, and of many random ones: where the quick way is taken, it is right.
    #[test]
    fn a_row_that_is_not_refused_is_what_the_lane_functions_give() {
        let edges = [
            0,
            1,
            0x7f_ffff,
            0x80_0000,
            0x80_0001,
            0xff_ffff,
            0x100_0000,
            0x0d00_0000,
            0x0d7f_ffff,
            0x0d80_0000,
            0x3f80_0000,
            0x3f7f_ffff,
            0x4b80_0000,
            0x7f7f_ffff,
            0x7f80_0000,
            0x7f80_0001,
            0x7fc0_0000,
            0x7fff_ffff,
            0x1fff_ffff,
            0x2000_0000,
            0x6000_0000,
        ];
        let mut values: Vec<u32> = edges.iter().flat_map(|edge| [*edge, edge | 1 << 31]).collect();
        let mut seed = 0x2545_f491_4f6c_dd1du64;
        println!("seed {seed:#x}");
        values.extend((0..1500).map(|number| {
            seed ^= seed << 13;
            seed ^= seed >> 7;
            seed ^= seed << 17;
            // Every other one is near the smallest numbers.
            if number % 2 == 0 { seed as u32 } else { seed as u32 & 0x83ff_ffff }
        }));
        let (mut taken, mut refused) = ([0; 2], [0; 2]);
        for x in &values {
            for y in &values {
                let row = [[*x; WARP], [*y; WARP], [0; WARP]];
                let sum = float::add(*x, *y, Rounding::Nearest, Saturate::No);
                let product = float::mul(*x, *y, Rounding::Nearest, Saturate::No, false);
                for (place, (found, expected)) in
                    [(add(&row), sum), (mul(&row), product)].into_iter().enumerate()
                {
                    match found {
                        Some((result, flags)) => {
                            taken[place] += 1;
                            let found = (result[7], flags[7]);
                            assert_eq!(found, (expected.0, expected.1.bits()), "{x:08x} {y:08x}");
                        }
                        None => refused[place] += 1,
                    }
                }
            }
        }
        assert!(taken.iter().chain(&refused).all(|count| *count > 10_000), "{taken:?} {refused:?}");
    }

    #[test]
    fn one_exception_refuses_the_row() {
        let one = 1.0f32.to_bits();
        let mut row = [[one; WARP], [one; WARP], [0; WARP]];
        assert!(add(&row).is_some() && mul(&row).is_some());
        row[0][31] = 0x7fc0_0000;
        assert!(add(&row).is_none() && mul(&row).is_none());
    }
}
