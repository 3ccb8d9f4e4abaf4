//! Computes f32 sums and products of a whole row with only the host's operation. Returns `None` for a row with an
//! exception.
//!
//! The lane functions flush denormals and canonicalize NaN at every step. Flushing and canonicalizing take three times
//! as long as the operation, and each step then waits for the previous step. Most rows do not need this work. The tests
//! for exceptions are conservative. If a lane's result might differ from the result of the lane function, the function
//! in this file returns `None`. The lane functions then compute the row.
//!
//! For each lane, the sign bit of a difference of magnitudes shows whether the lane is an exception. OR combines the
//! sign bits of all lanes. An earlier version tested boolean values. Tests of boolean values took as long as the
//! operation itself (a row of `mad` took 20 ns instead of 13 ns).

use reconverge_simt::wide::Wide;

use crate::flow::WARP;
use crate::lane::float;

type Row = [u32; WARP];

const INFINITY: u32 = 0x7f80_0000;
const MAGNITUDE: u32 = 0x7fff_ffff;
/// The bits of 2^-126, the smallest normal f32.
const SMALLEST: u32 = 1 << 23;
/// The bits of 2^-100 as an f32.
const LEAST: u32 = (127 - 100) << 23;

/// Returns sums rounded to nearest. If a sum is neither zero nor infinite and its magnitude is below 2^-100, or if a
/// sum is a NaN, returns `None`.
///
/// A sum of at least 2^-100 does not change if a denormal operand is flushed. Two denormals sum to less than 2^-100, so
/// the other operand is at least 2^-101. The denormal is less than half of a unit in the last place of 2^-101. If the
/// sum is zero, the operands are opposite numbers. Flushed operands are still opposite numbers, or are zeros with the
/// same signs as the operands.
#[inline(always)]
pub(super) fn add<W: Wide>(_: W, [a, b, _]: &[Row; 3]) -> Option<(Row, [u8; WARP])> {
    let mut sum = [0; WARP];
    for lane in 0..WARP {
        sum[lane] = (f32::from_bits(a[lane]) + f32::from_bits(b[lane])).to_bits();
    }
    let mut exceptions = 0;
    for lane in 0..WARP {
        let magnitude = sum[lane] & MAGNITUDE;
        // If the magnitude is zero, all bits of `above_one` are ones. A zero is not an exception.
        let above_one = magnitude.wrapping_sub(1);
        exceptions |= above_one.wrapping_sub(LEAST - 1) & !above_one | INFINITY.wrapping_sub(magnitude);
    }
    (exceptions >> 31 == 0).then(|| (sum, flags(&sum)))
}

/// Returns products rounded to nearest. Returns `None` if a factor is zero or denormal, or if a product is zero,
/// denormal, NaN or ±2^-126. The caller then uses [`rare_mul`]. A product of ±2^-126 may have been rounded from a
/// smaller magnitude. The lane functions flush this smaller magnitude to zero.
#[inline(always)]
pub(super) fn mul<W: Wide>(_: W, [a, b, _]: &[Row; 3]) -> Option<(Row, [u8; WARP])> {
    let mut product = [0; WARP];
    for lane in 0..WARP {
        product[lane] = (f32::from_bits(a[lane]) * f32::from_bits(b[lane])).to_bits();
    }
    let mut exceptions = 0;
    for lane in 0..WARP {
        let magnitude = product[lane] & MAGNITUDE;
        let factor = (a[lane] & MAGNITUDE).min(b[lane] & MAGNITUDE);
        exceptions |= magnitude.wrapping_sub(SMALLEST + 1)
            | INFINITY.wrapping_sub(magnitude)
            | factor.wrapping_sub(SMALLEST);
    }
    (exceptions >> 31 == 0).then(|| (product, flags(&product)))
}

/// Returns products rounded to nearest. Denormal sources and denormal results become zeros. Returns `None` if a product
/// is ±2^-126. If rounding to nearest returns a magnitude below 2^-126, the product is a denormal in every rounding
/// mode.
#[inline(always)]
pub(super) fn rare_mul<W: Wide>(_: W, [a, b, _]: &[Row; 3]) -> Option<(Row, [u8; WARP])> {
    let mut product = [0; WARP];
    let mut exceptions = 0;
    for lane in 0..WARP {
        let (a, b) = (float::flush(a[lane]), float::flush(b[lane]));
        let bits = (f32::from_bits(a) * f32::from_bits(b)).to_bits();
        exceptions |= u32::from(bits & MAGNITUDE == SMALLEST);
        product[lane] = if float::is_nan(bits) { float::NAN } else { float::flush(bits) };
    }
    (exceptions == 0).then(|| (product, flags(&product)))
}

/// Computes [`rare_mul`] in the mode MUL_ZERO_WINS.
#[inline(always)]
pub(super) fn zero_mul<W: Wide>(wide: W, src: &[Row; 3]) -> Option<(Row, [u8; WARP])> {
    let (mut product, _) = rare_mul(wide, src)?;
    for lane in 0..WARP {
        if float::zero_factor(float::flush(src[0][lane]), float::flush(src[1][lane])) {
            product[lane] = 0;
        }
    }
    Some((product, flags(&product)))
}

/// For each lane, truncates a product to 24 bits and returns the sum of this product and an addend. Returns `None` if a
/// source is zero, denormal or NaN, if the product is below 2^-100 or not finite, or if the sum is not finite. The
/// caller then uses [`rare_mad`]. The sum is not a denormal. If the addend is below 2^-101, the sum is at least 2^-101.
/// If the addend is larger, the product and the addend are multiples of 2^-124. The sum is then also a multiple of
/// 2^-124.
///
/// This function truncates the product without computing in doubles. A fused multiply-add returns the remainder of the
/// rounded product. The sign of the remainder shows whether rounding to nearest went away from zero. If so, the rounded
/// product is one unit too large. The remainder is exact if the product is at least 2^-100.
#[inline(always)]
pub(super) fn mad<W: Wide>(_: W, [a, b, c]: &[Row; 3]) -> Option<(Row, [u8; WARP])> {
    if !W::FUSED {
        return None;
    }
    let mut sum = [0; WARP];
    let mut exceptions = 0;
    for lane in 0..WARP {
        let [product, cut] = cut_product(a[lane], b[lane]);
        let bits = (f32::from_bits(cut) + f32::from_bits(c[lane])).to_bits();
        let source = (a[lane] & MAGNITUDE).min(b[lane] & MAGNITUDE).min(c[lane] & MAGNITUDE);
        let product = product & MAGNITUDE;
        exceptions |= source.wrapping_sub(SMALLEST)
            | product.wrapping_sub(LEAST)
            | (INFINITY - 1).wrapping_sub(product.max(bits & MAGNITUDE));
        sum[lane] = bits;
    }
    (exceptions >> 31 == 0).then(|| (sum, flags(&sum)))
}

/// Computes [`mad`] for sources that may be zeros or denormals.
#[inline(always)]
pub(super) fn rare_mad<W: Wide>(wide: W, src: &[Row; 3]) -> Option<(Row, [u8; WARP])> {
    any_mad::<W, false>(wide, src)
}

/// Computes [`rare_mad`] in the mode MUL_ZERO_WINS.
#[inline(always)]
pub(super) fn zero_mad<W: Wide>(wide: W, src: &[Row; 3]) -> Option<(Row, [u8; WARP])> {
    any_mad::<W, true>(wide, src)
}

/// Computes [`rare_mad`], or [`zero_mad`] if `ZERO_WINS` is set.
#[inline(always)]
fn any_mad<W: Wide, const ZERO_WINS: bool>(_: W, [a, b, c]: &[Row; 3]) -> Option<(Row, [u8; WARP])> {
    if !W::FUSED {
        return None;
    }
    let mut sum = [0; WARP];
    let mut exceptions = 0;
    for lane in 0..WARP {
        let [a, b, c] = [float::flush(a[lane]), float::flush(b[lane]), float::flush(c[lane])];
        let [product, cut] = cut_product(a, b);
        // The product is not truncated if the addend is zero.
        let term = if c << 1 == 0 { product } else { cut };
        let zero = float::zero_factor(a, b);
        let term = if ZERO_WINS & zero { 0 } else { term };
        let bits = (f32::from_bits(term) + f32::from_bits(c)).to_bits();
        let magnitude = product & MAGNITUDE;
        let exact = zero & (ZERO_WINS | (magnitude == 0));
        let usual = exact | (magnitude.wrapping_sub(LEAST) < INFINITY - LEAST);
        exceptions |= u32::from(!(usual & (c & MAGNITUDE <= INFINITY)));
        sum[lane] = bits;
    }
    (exceptions == 0).then(|| (sum, flags(&sum)))
}

/// Returns a product rounded to nearest, and the product truncated to 24 bits.
#[inline(always)]
fn cut_product(a: u32, b: u32) -> [u32; 2] {
    let (a, b) = (f32::from_bits(a), f32::from_bits(b));
    let product = a * b;
    let rest = a.mul_add(b, -product);
    // If the product was rounded away from zero, the remainder and the product have opposite signs.
    let away = f32::from_bits(rest.to_bits() ^ product.to_bits() & !MAGNITUDE) < 0.0;
    [product.to_bits(), product.to_bits().wrapping_sub(u32::from(away))]
}

/// Returns flags for results. The lane functions set the same flags. The results must not contain denormals or
/// non-canonical NaNs.
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
    use reconverge_simt::level::{Level, Task};

    use super::*;
    use crate::lane::Rounding;
    use crate::lane::float::Saturate;

    type Found = Option<(Row, [u8; WARP])>;

    /// Computes a row with the fast paths of add, mul, mad, [`rare_mul`], [`rare_mad`], [`zero_mul`] and [`zero_mad`].
    struct All<'a>(&'a [Row; 3]);

    impl Task for All<'_> {
        type Output = [Found; 7];

        #[inline(always)]
        fn run<W: Wide>(self, wide: W) -> [Found; 7] {
            [
                add(wide, self.0),
                mul(wide, self.0),
                mad(wide, self.0),
                rare_mul(wide, self.0),
                rare_mad(wide, self.0),
                zero_mul(wide, self.0),
                zero_mad(wide, self.0),
            ]
        }
    }

    /// Tests every pair of interesting values and many pairs of random values. If a fast path returns a result, the
    /// result must be right.
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
            // Every second value is near the smallest normal numbers.
            if number % 2 == 0 { seed as u32 } else { seed as u32 & 0x83ff_ffff }
        }));
        let (mut taken, mut refused) = ([0; 7], [0; 7]);
        let level = Level::best();
        for (number, x) in values.iter().enumerate() {
            for (step, y) in values.iter().enumerate() {
                // In every third step, the addend `z` nearly cancels the product.
                let near = (f32::from_bits(*x) * f32::from_bits(*y)).to_bits() ^ 1 << 31;
                let z = if step % 3 == 0 { near } else { values[(7 * number + step) % values.len()] };
                let row = [[*x; WARP], [*y; WARP], [z; WARP]];
                let sum = float::add(*x, *y, Rounding::Nearest, Saturate::No);
                let product = float::mul(*x, *y, Rounding::Nearest, Saturate::No, false);
                let both = float::mad(*x, *y, z, false, Saturate::No, false);
                let zero_product = float::mul(*x, *y, Rounding::Nearest, Saturate::No, true);
                let zero_both = float::mad(*x, *y, z, false, Saturate::No, true);
                let all = [sum, product, both, product, both, zero_product, zero_both];
                let found = level.run(All(&row)).into_iter().zip(all);
                for (place, (found, expected)) in found.enumerate() {
                    match found {
                        Some((result, flags)) => {
                            taken[place] += 1;
                            let found = (result[7], flags[7]);
                            assert_eq!(
                                found,
                                (expected.0, expected.1.bits()),
                                "{place} {x:08x} {y:08x} {z:08x}"
                            );
                        }
                        None => refused[place] += 1,
                    }
                }
            }
        }
        assert!(
            taken.iter().all(|count| *count > 100_000 || level == Level::BASELINE),
            "{taken:?} {refused:?}"
        );
        assert!(refused.iter().all(|count| *count > 0), "{taken:?} {refused:?}");
    }

    #[test]
    fn one_exception_refuses_the_row() {
        let one = 1.0f32.to_bits();
        let mut row = [[one; WARP], [one; WARP], [0; WARP]];
        assert!(Level::best().run(All(&row))[0].is_some());
        row[0][31] = 0x7fc0_0000;
        assert!(Level::best().run(All(&row))[0].is_none());
    }
}
