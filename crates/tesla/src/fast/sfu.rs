//! The special function unit on rows of lanes: [`crate::lane::special`] without branches.
//!
//! The lane functions sum seventeen partial products one by one. They classify a source before they compute the result.
//! In this file, the computation first treats every source as an ordinary number. At the end, it replaces the results
//! of special sources. For every source, the lane functions and this file have the same result. The tests below check
//! this equality for all sources of rcp and rsqrt in two octaves, and for all sources of lg2 in three octaves. The
//! tests also cover all operands of sin and cos, and all fractions of ex2.
//!
//! The sums of the interpolation have 40 bits. A word contains the lower 32 bits exactly, and an estimate provides the
//! upper bits ([`Terms::sum`]). The unit of the following times is the time of a warp's `add b32`. Measured with AVX2:
//! rcp 12, rsqrt 15, lg2 18, sin 17, ex2 13. An earlier version with 64-bit sums and a table for the squarer took 24
//! for rcp and 41 for lg2.

use reconverge_simt::wide::{Pairs, Wide};

use crate::flow::WARP;
use crate::lane::sfu_tables::{Coefficients, EX2, LG2, RCP, RSQRT, SIN};

const SIGN: u32 = 0x8000_0000;
const INFINITY: u32 = 0x7f80_0000;
const FRACTION: u32 = 0x7f_ffff;
const NAN: u32 = 0x7fff_ffff;
const SPECIAL: u32 = 0x4000_0000;
const SPECIAL_INFINITY: u32 = 0x4080_0000;

type Row = [u32; WARP];

/// The coefficients of an interval in two words. The first word is c0. The second word contains c2 in the lowest 15
/// bits, and c1 in all other bits.
type Packed = [u32; 2];

const fn packed<const N: usize>(table: &[Coefficients; N]) -> Pairs<N> {
    let mut rows = [[0; 2]; N];
    let mut interval = 0;
    while interval < N {
        let [c0, c1, c2] = table[interval];
        let words = [c0 as u32, (c1 << 15 | c2 & 0x7fff) as u32];
        let [d0, d1, d2] = unpacked(words);
        assert!(c0 == d0 && c1 == d1 && c2 == d2);
        rows[interval] = words;
        interval += 1;
    }
    Pairs::of(rows)
}

#[inline(always)]
const fn unpacked([first, second]: Packed) -> Coefficients {
    [first as i32, second as i32 >> 15, (second as i32) << 17 >> 17]
}

static RCP_ROWS: Pairs<128> = packed(&RCP);
static RSQRT_ROWS: Pairs<128> = packed(&RSQRT);
static SIN_ROWS: Pairs<64> = packed(&SIN);
static EX2_ROWS: Pairs<64> = packed(&EX2);
static LG2_ROWS: Pairs<64> = packed(&LG2);

/// Returns the squarer's results of `lane::special` for numbers of 17 bits. The squarer sums `x >> (18 - n)` over the
/// set bits n of x. Bits 0 and 1 do not affect the sum. Their terms are zero, and the shifts of all other terms drop
/// bits 0 and 1.
#[inline(always)]
fn squares<W: Wide>(wide: W, numbers: &Row) -> Row {
    let mut quarters = [0; WARP];
    for lane in 0..WARP {
        quarters[lane] = numbers[lane] >> 2;
    }
    let mut squares = wide.cut_squares(&quarters);
    for lane in 0..WARP {
        squares[lane] >>= 1;
    }
    squares
}

/// The terms of the interpolations of a row, one interpolation per lane.
struct Terms {
    coefficients: [Row; 2],
    squares: Row,
}

impl Terms {
    /// For each lane, reads the terms for the lane's interval from a table. `squared` are the inputs of the squarer,
    /// with 17 bits.
    #[inline(always)]
    fn read<W: Wide, const N: usize>(wide: W, table: &Pairs<N>, intervals: &Row, squared: &Row) -> Terms {
        Terms { coefficients: wide.pairs(table, intervals), squares: squares(wide, squared) }
    }

    /// For a lane, computes the sum of `c0 << scale0`, `c1 * x`, `(c2 * square) << scale2` and a constant. Returns two
    /// numbers: the sum without the lowest `cut` bits (8 to 16), and the lowest 32 bits of the sum. x has 17 bits.
    ///
    /// The lowest 32 bits are exact. An estimate provides the bits above these 32 bits. The estimate is the sum of the
    /// first two terms without their lowest bits. The error of the estimate is less than 2^(31 - cut). The estimate
    /// omits the product of c1 (16 bits and a sign) and the lowest 8 bits of x. The estimate also omits the third term.
    /// This term is a product of 12 and 15 bits, shifted left by up to 2 bits.
    #[inline(always)]
    fn sum(&self, lane: usize, x: u32, [scale0, scale2, cut]: [u32; 3], constant: i32) -> (i32, u32) {
        let [c0, c1, c2] = unpacked([self.coefficients[0][lane], self.coefficients[1][lane]]);
        let quadratic = c2.wrapping_mul(self.squares[lane] as i32);
        let exact = (c0 << scale0)
            .wrapping_add(c1.wrapping_mul(x as i32))
            .wrapping_add(quadratic << scale2)
            .wrapping_add(constant);
        let about = (c0 >> (cut - scale0)).wrapping_add(c1.wrapping_mul((x >> 8) as i32) >> (cut - 8));
        let beside = ((exact as u32 >> cut) as i32).wrapping_sub(about);
        (about.wrapping_add(beside << cut >> cut), exact as u32)
    }
}

// Tests for an exponent of 0 or 255 compare whole words. For tests of only the exponent field, the compiler would use
// comparisons of bytes. Packing and unpacking these bytes would take time.

/// Packs an exponent field and a significand from 2^23 to 2^24 (inclusive) as a float. Returns zero below the range of
/// normal numbers, and infinity above this range.
#[inline(always)]
fn pack(exponent: i32, significand: u32) -> u32 {
    // The leading bit of the significand adds one to the exponent. A significand of 2^24 adds two to the exponent.
    let bits = (exponent.wrapping_sub(1) << 23).wrapping_add(significand as i32);
    let bits = if bits < 1 << 23 { 0 } else { bits as u32 };
    bits.min(INFINITY)
}

/// Converts a fixed-point number that is not zero to a float by truncation. `low` contains the lowest `bits` bits of
/// the number, and `high` contains the upper bits. `exponent` is the exponent field for bit 0.
#[inline(always)]
fn normalised(high: i32, low: i32, bits: u32, exponent: u32) -> u32 {
    // A double holds the number exactly, and the shift truncates the number.
    let double = f64::from(high) * f64::from(1 << bits) + f64::from(low);
    ((double.to_bits() >> 29) as u32).wrapping_sub((1023 - exponent) << 23)
}

#[inline(always)]
pub(super) fn rcp<W: Wide>(wide: W, sources: &Row) -> Row {
    let (mut intervals, mut doubled) = ([0; WARP], [0; WARP]);
    for lane in 0..WARP {
        intervals[lane] = (sources[lane] & FRACTION) >> 16;
        doubled[lane] = (sources[lane] & 0xffff) << 1;
    }
    let terms = Terms::read(wide, &RCP_ROWS, &intervals, &doubled);
    let mut results = [0; WARP];
    for lane in 0..WARP {
        let x = sources[lane];
        let (sign, exponent) = (x & SIGN, (x >> 23 & 0xff) as i32);
        let (value, _) = terms.sum(lane, x & 0xffff, [13, 0, 15], 0x47e7);
        let usual = pack(253 - exponent, value as u32);
        let magnitude = if x & INFINITY == 0 { INFINITY } else { usual };
        let magnitude = if x & INFINITY == INFINITY { 0 } else { magnitude };
        results[lane] = if x & !SIGN > INFINITY { NAN } else { sign | magnitude };
    }
    results
}

#[inline(always)]
pub(super) fn rsqrt<W: Wide>(wide: W, sources: &Row) -> Row {
    let (mut intervals, mut rests) = ([0; WARP], [0; WARP]);
    for lane in 0..WARP {
        intervals[lane] = halving(sources[lane]).1 >> 17;
        rests[lane] = sources[lane] & 0x1_ffff;
    }
    let terms = Terms::read(wide, &RSQRT_ROWS, &intervals, &rests);
    let mut results = [0; WARP];
    for lane in 0..WARP {
        let (value, _) = terms.sum(lane, rests[lane], [14, 2, 16], 0x7fff);
        results[lane] = rsqrt_of(sources[lane], value as u32);
    }
    results
}

/// Returns the exponent without bias, and the fraction. The lowest bit of the exponent is added to the fraction as the
/// top bit.
#[inline(always)]
fn halving(x: u32) -> (i32, u32) {
    let unbiased = ((x >> 23 & 0xff) as i32).wrapping_sub(127);
    (unbiased, x & FRACTION | (unbiased as u32 & 1) << 23)
}

/// Returns rsqrt of a source. `significand` is the significand of the result, from the tables.
#[inline(always)]
fn rsqrt_of(x: u32, significand: u32) -> u32 {
    let (unbiased, fraction) = halving(x);
    let halved = 126i32.wrapping_sub(unbiased >> 1);
    let exact = (halved.wrapping_add(1) as u32) << 23;
    let usual = if fraction == 0 { exact } else { pack(halved, significand) };
    let usual = if x == INFINITY { 0 } else { usual };
    // The words of negative sources and of NaNs are larger than the word of infinity.
    let usual = if x > INFINITY { NAN } else { usual };
    if x & INFINITY == 0 { x & SIGN | INFINITY } else { usual }
}

#[inline(always)]
pub(super) fn lg2<W: Wide>(wide: W, sources: &Row) -> Row {
    let (mut intervals, mut rests) = ([0; WARP], [0; WARP]);
    for lane in 0..WARP {
        intervals[lane] = (sources[lane] & FRACTION) >> 17;
        rests[lane] = sources[lane] & 0x1_ffff;
    }
    let terms = Terms::read(wide, &LG2_ROWS, &intervals, &rests);
    let mut results = [0; WARP];
    for lane in 0..WARP {
        let x = sources[lane];
        let exponent = (x >> 23 & 0xff) as i32;
        // The sum has 36 fraction bits: 23 bits in `high`, and 13 lower bits in `exact`.
        let (high, exact) = terms.sum(lane, rests[lane], [12, 1, 15], 0x3345);
        let high = high.wrapping_add((exponent - 127) << 23);
        let negative = high >> 31;
        let (high, low) = (high ^ negative, ((exact >> 2) as i32 ^ negative) & 0x1fff);
        let usual = normalised(high, low, 13, 127 - 36) | negative as u32 & SIGN;
        let usual = if (high | low == 0) | (x == 0x3f80_0000) { 0 } else { usual };
        let usual = if x == INFINITY { INFINITY } else { usual };
        // The words of negative sources and of NaNs are larger than the word of infinity.
        let usual = if x > INFINITY { NAN } else { usual };
        results[lane] = if x & INFINITY == 0 { SIGN | INFINITY } else { usual };
    }
    results
}

/// Shifts a word left by an exponent. If the exponent is negative, shifts the word right. Bits that are shifted out are
/// lost.
#[inline(always)]
fn fixed(value: u32, exponent: i32) -> u32 {
    let up = if exponent < 32 { value << (exponent & 31) } else { 0 };
    let down = if exponent > -32 { value >> (-exponent & 31) } else { 0 };
    if exponent < 0 { down } else { up }
}

#[inline(always)]
pub(super) fn presin(x: u32) -> u32 {
    let (exponent, fraction) = ((x >> 23 & 0xff) as i32, x & FRACTION);
    let turned = (u64::from(fraction | 1 << 23) * 0xa2_f983) >> 16;
    let usual = fixed(turned as u32, exponent - 127 - 8) & 0x01ff_ffff;
    let usual = if x & INFINITY == 0 { 0 } else { usual };
    let beyond = if fraction == 0 { SPECIAL_INFINITY } else { SPECIAL };
    x & SIGN | if x & INFINITY == INFINITY { beyond } else { usual }
}

#[inline(always)]
pub(super) fn preex2(x: u32) -> u32 {
    let (exponent, fraction) = ((x >> 23 & 0xff) as i32, x & FRACTION);
    let usual = fixed(fraction | 1 << 23, exponent - 127);
    let usual = if x & INFINITY == 0 { 0 } else { usual };
    let usual = if exponent - 127 >= 7 { SPECIAL_INFINITY } else { usual };
    x & SIGN | if x & !SIGN > INFINITY { SPECIAL } else { usual }
}

#[inline(always)]
pub(super) fn sin<W: Wide>(wide: W, sources: &Row) -> Row {
    quadrant_sine(wide, sources, SIGN, 0)
}

#[inline(always)]
pub(super) fn cos<W: Wide>(wide: W, sources: &Row) -> Row {
    quadrant_sine(wide, sources, 0, 1)
}

/// Returns the sine of the source plus `further` quadrants. `sign` selects the source bits that become the sign.
#[inline(always)]
fn quadrant_sine<W: Wide>(wide: W, sources: &Row, sign: u32, further: u32) -> Row {
    let (mut intervals, mut rests) = ([0; WARP], [0; WARP]);
    for lane in 0..WARP {
        let back = (sources[lane] >> 23).wrapping_add(further) & 1;
        let fraction = (sources[lane] ^ back.wrapping_neg()) & FRACTION;
        (intervals[lane], rests[lane]) = (fraction >> 17, fraction & 0x1_ffff);
    }
    let terms = Terms::read(wide, &SIN_ROWS, &intervals, &rests);
    let mut results = [0; WARP];
    for lane in 0..WARP {
        let x = sources[lane];
        let (high, exact) = terms.sum(lane, rests[lane], [11, 0, 15], 0);
        let quadrant = (x >> 23).wrapping_add(further);
        let low = (exact & 0x7fff) as i32;
        let sine = if high | low == 0 { 0 } else { normalised(high, low, 15, 127 - 37) };
        let usual = (x & sign) ^ (quadrant >> 1 & 1) << 31 | sine;
        results[lane] = if x & SPECIAL != 0 { NAN } else { usual };
    }
    results
}

/// Computes `ex2` without saturation.
#[inline(always)]
pub(super) fn ex2<W: Wide>(wide: W, sources: &Row) -> Row {
    let (mut intervals, mut rests) = ([0; WARP], [0; WARP]);
    for lane in 0..WARP {
        let (_, fraction) = power(sources[lane]);
        (intervals[lane], rests[lane]) = (fraction >> 17, fraction & 0x1_ffff);
    }
    let terms = Terms::read(wide, &EX2_ROWS, &intervals, &rests);
    let mut results = [0; WARP];
    for lane in 0..WARP {
        let x = sources[lane];
        let (value, _) = terms.sum(lane, rests[lane], [13, 0, 15], 0x77e2);
        let usual = pack(127 + power(x).0, value as u32);
        let infinite = if x & SIGN != 0 { 0 } else { INFINITY };
        let usual = if x & SPECIAL_INFINITY == SPECIAL_INFINITY { infinite } else { usual };
        results[lane] = if x & SPECIAL_INFINITY == SPECIAL { NAN } else { usual };
    }
    results
}

/// Splits an operand that comes from [`preex2`]. Returns the next integer below the operand, and the fraction above
/// that integer.
#[inline(always)]
fn power(x: u32) -> (i32, u32) {
    let (negative, fraction) = (x & SIGN != 0, x & FRACTION);
    let (whole, below) = ((x >> 23 & 0x7f) as i32, i32::from(fraction != 0));
    let whole = if negative { -whole - below } else { whole };
    (whole, if negative & (fraction != 0) { !fraction & FRACTION } else { fraction })
}

#[cfg(test)]
mod tests {
    use reconverge_simt::level::{Level, Task};

    use super::*;
    use crate::lane::float::Saturate;
    use crate::lane::special;

    /// Creates a closure that computes a row with the code for a level.
    macro_rules! on {
        ($level:ident $name:ident) => {
            |row: &Row| {
                struct Work<'a>(&'a Row);
                impl Task for Work<'_> {
                    type Output = Row;

                    #[inline(always)]
                    fn run<W: Wide>(self, wide: W) -> Row {
                        super::$name(wide, self.0)
                    }
                }
                $level.run(Work(row))
            }
        };
    }

    /// Returns a function that applies a lane function to each lane of a row.
    fn each(function: fn(u32) -> u32) -> impl Fn(&Row) -> Row {
        move |sources| sources.map(function)
    }

    /// Compares the row function with the lane function. The sources are every number of a range, and the special
    /// values with both signs.
    fn compare(name: &str, quick: impl Fn(&Row) -> Row, plain: fn(u32) -> u32, range: std::ops::Range<u32>) {
        let edges = [0, 1, FRACTION, 1 << 23, INFINITY - 1, INFINITY, INFINITY + 1, 0x7fc0_0000, NAN];
        let mut seed = 0x2545_f491_4f6c_dd1du64;
        let random = (0..1 << 20).map(|_| {
            seed ^= seed << 13;
            seed ^= seed >> 7;
            seed ^= seed << 17;
            seed as u32
        });
        let octaves = (0..=0xff)
            .flat_map(|exponent| [0, 1, 0x40_0000, FRACTION].map(|fraction| exponent << 23 | fraction));
        let all = range.chain(edges).chain(octaves);
        let mut sources = all.flat_map(|x| [x, x | SIGN]).chain(random).peekable();
        while sources.peek().is_some() {
            let row: Row = std::array::from_fn(|_| sources.next().unwrap_or(NAN));
            let found = quick(&row);
            for (x, found) in row.into_iter().zip(found) {
                assert_eq!(found, plain(x), "{name} {x:#010x}");
            }
        }
    }

    /// One test per function, so that the tests run in parallel.
    macro_rules! gives_what_the_lane_function_gives {
        ($($name:ident: $function:ident, $plain:expr, $range:expr;)*) => { $(
            #[test]
            fn $name() {
                for level in Level::available() {
                    compare(stringify!($function), on!(level $function), $plain, $range);
                }
            }
        )* };
    }

    gives_what_the_lane_function_gives! {
        rcp_gives_what_the_lane_function_gives: rcp, special::rcp, 0x3f80_0000..0x4080_0000;
        rsqrt_gives_what_the_lane_function_gives: rsqrt, special::rsqrt, 0x3f80_0000..0x4080_0000;
        lg2_gives_what_the_lane_function_gives: lg2, special::lg2, 0x3f00_0000..0x4080_0000;
        sin_gives_what_the_lane_function_gives: sin, special::sin, 0..0x0200_0000;
        cos_gives_what_the_lane_function_gives: cos, special::cos, 0..0x0200_0000;
        ex2_gives_what_the_lane_function_gives: ex2, |x| special::ex2(x, Saturate::No), 0..0x0100_0000;
    }

    #[test]
    fn presin_and_preex2_give_what_the_lane_functions_give() {
        compare("presin", each(presin), special::presin, 0..0);
        compare("preex2", each(preex2), special::preex2, 0..0);
    }

    #[test]
    fn the_squarer_is_that_of_the_lane_functions() {
        struct Squares<'a>(&'a Row);
        impl Task for Squares<'_> {
            type Output = Row;

            #[inline(always)]
            fn run<W: Wide>(self, wide: W) -> Row {
                squares(wide, self.0)
            }
        }
        for level in Level::available() {
            for start in (0..1 << 17).step_by(WARP) {
                let row = std::array::from_fn(|lane| start + lane as u32);
                let expected = row.map(|x| special::square(x) as u32);
                assert_eq!(level.run(Squares(&row)), expected, "{start:#x}");
            }
        }
    }
}
