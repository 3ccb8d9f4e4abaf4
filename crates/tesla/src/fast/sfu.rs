//! The special function unit on rows: [`crate::lane::special`] without branches, and with the squarer in tables.
//!
//! The lane functions sum seventeen partial products one after another and ask what a source is before they compute;
//! here every lane computes as if it were an ordinary number, and the others are put right at the end. The results are
//! equal for every source, as the tests below see for all sources of rcp, rsqrt and lg2 in two octaves, and for every
//! sine and power of two.
//!
//! rsqrt goes over a row in steps, of which only the one that reads the tables goes lane by lane; the sums of the
//! interpolation, which have less than 51 bits, are those of doubles there. Measured (AVX2): 90 ns a warp for 210; the
//! others are no faster so.

use crate::flow::WARP;
use crate::lane::sfu_tables::{Coefficients, EX2, LG2, RCP, RSQRT, SIN};

const SIGN: u32 = 0x8000_0000;
const INFINITY: u32 = 0x7f80_0000;
const FRACTION: u32 = 0x7f_ffff;
const NAN: u32 = 0x7fff_ffff;
const SPECIAL: u32 = 0x4000_0000;
const SPECIAL_INFINITY: u32 = 0x4080_0000;

/// The squarer sums `x >> (18 - n)` over the set bits n of x, which has 17 bits. With H its upper six bits, L the six below
/// bit 8 and down to bit 2, and the nine bits from 8 on:
/// * bits 8 to 16 reach the upper nine bits, by [`UPPER`], and, from bit 11 on, L, by [`CROSS`];
/// * bits 2 to 7 reach H, by [`CROSS`]; bits 0 and 1 reach nothing.
static UPPER: [u16; 512] = {
    let mut table = [0; 512];
    let mut upper = 0;
    while upper < 512 {
        let (mut sum, mut bit) = (0, 8);
        while bit < 17 {
            if upper << 8 >> bit & 1 != 0 {
                sum += (upper << 8) >> (18 - bit);
            }
            bit += 1;
        }
        table[upper] = sum as u16;
        upper += 1;
    }
    table
};

/// By H * 64 + L: see [`UPPER`].
static CROSS: [u8; 4096] = {
    let mut table = [0; 4096];
    let mut place = 0;
    while place < 4096 {
        let (high, low) = (place >> 6, place & 63);
        let (mut sum, mut bit) = (0, 0);
        while bit < 6 {
            if low >> bit & 1 != 0 {
                sum += high >> (5 - bit);
            }
            if high >> bit & 1 != 0 {
                sum += low >> (5 - bit);
            }
            bit += 1;
        }
        table[place] = sum as u8;
        place += 1;
    }
    table
};

/// What `lane::special`'s squarer gives for x of at most 17 bits.
#[inline(always)]
fn square(x: u32) -> i64 {
    let upper = UPPER[(x >> 8 & 511) as usize];
    let cross = CROSS[(x >> 11 & 63) as usize * 64 + (x >> 2 & 63) as usize];
    i64::from((u32::from(upper) + u32::from(cross)) >> 1)
}

#[inline(always)]
fn interpolate(row: &Coefficients, scale0: u32, x: u32, squared: u32, scale2: u32) -> i64 {
    let [c0, c1, c2] = *row;
    (i64::from(c0) << scale0) + i64::from(c1) * i64::from(x) + ((i64::from(c2) * square(squared)) << scale2)
}

/// A float of an exponent field and a significand of 2^23 to 2^24, both included: zero below the range, infinity above.
#[inline(always)]
fn pack(exponent: i32, significand: u32) -> u32 {
    // The leading bit counts the exponent on, twice where all bits below have carried.
    let bits = (exponent.wrapping_sub(1) << 23).wrapping_add(significand as i32);
    let bits = if bits < 1 << 23 { 0 } else { bits as u32 };
    bits.min(INFINITY)
}

/// A float of a fixed point number, cut; `exponent` is the field of bit 63.
#[inline(always)]
fn normalised(magnitude: u64, exponent: u32) -> u32 {
    let zeros = (magnitude | 1).leading_zeros();
    let significand = ((magnitude << zeros) >> 40) as u32;
    let bits = ((exponent - zeros - 1) << 23) + significand;
    if magnitude == 0 { 0 } else { bits }
}

#[inline(always)]
pub(super) fn rcp(x: u32) -> u32 {
    let (sign, exponent, fraction) = (x & SIGN, (x >> 23 & 0xff) as i32, x & FRACTION);
    let rest = fraction & 0xffff;
    let value = interpolate(&RCP[(fraction >> 16) as usize], 13, rest, rest << 1, 0) + 0x47e7;
    let usual = pack(253 - exponent, (value >> 15) as u32);
    let magnitude = if exponent == 0 { INFINITY } else { usual };
    let magnitude = if exponent == 0xff { 0 } else { magnitude };
    if x & !SIGN > INFINITY { NAN } else { sign | magnitude }
}

type Row = [u32; WARP];

/// The sum of an integer of less than 51 bits and this number has the integer in its lowest bits.
const WHOLE: f64 = 6_755_399_441_055_744.0;

/// rsqrt of a row.
#[inline(always)]
pub(super) fn rsqrt(sources: &Row) -> Row {
    let (mut intervals, mut rests) = ([0; WARP], [0; WARP]);
    let (mut uppers, mut crosses) = ([0; WARP], [0; WARP]);
    for lane in 0..WARP {
        let rest = sources[lane] & 0x1_ffff;
        (intervals[lane], rests[lane]) = (halving(sources[lane]).1 >> 17 & 127, rest);
        uppers[lane] = rest >> 8 & 511;
        crosses[lane] = (rest >> 11 & 63) << 6 | rest >> 2 & 63;
    }
    let (mut first, mut second, mut third, mut squares) = ([0; WARP], [0; WARP], [0; WARP], [0; WARP]);
    for lane in 0..WARP {
        [first[lane], second[lane], third[lane]] = RSQRT[intervals[lane] as usize & 127];
        let upper = i32::from(UPPER[uppers[lane] as usize & 511]);
        squares[lane] = (upper + i32::from(CROSS[crosses[lane] as usize & 4095])) >> 1;
    }
    let mut results = [0; WARP];
    for lane in 0..WARP {
        // c0 * 2^14 + c1 * rest + c2 * square * 2^2, exactly.
        let linear =
            f64::from(first[lane]) * 16384.0 + f64::from(second[lane]) * f64::from(rests[lane] as i32);
        let sum = linear + f64::from(third[lane]) * f64::from(squares[lane]) * 4.0;
        let value = (sum + WHOLE).to_bits().wrapping_sub(WHOLE.to_bits()) as i64;
        results[lane] = rsqrt_of(sources[lane], value);
    }
    results
}

/// The exponent without bias, and the fraction with the exponent's lowest bit above it.
#[inline(always)]
fn halving(x: u32) -> (i32, u32) {
    let unbiased = ((x >> 23 & 0xff) as i32).wrapping_sub(127);
    (unbiased, x & FRACTION | (unbiased as u32 & 1) << 23)
}

/// rsqrt of a source for which the tables give this value.
#[inline(always)]
fn rsqrt_of(x: u32, value: i64) -> u32 {
    let (exponent, magnitude) = (x >> 23 & 0xff, x & !SIGN);
    let (unbiased, fraction) = halving(x);
    let halved = 126i32.wrapping_sub(unbiased >> 1);
    let value = value.wrapping_add(0x7fff);
    let exact = (halved.wrapping_add(1) as u32) << 23;
    let usual = if fraction == 0 { exact } else { pack(halved, (value >> 16) as u32) };
    let usual = if x == INFINITY { 0 } else { usual };
    let usual = if (x & SIGN != 0) | (magnitude > INFINITY) { NAN } else { usual };
    if exponent == 0 { x & SIGN | INFINITY } else { usual }
}

#[inline(always)]
pub(super) fn lg2(x: u32) -> u32 {
    let (exponent, fraction) = ((x >> 23 & 0xff) as i32, x & FRACTION);
    let rest = fraction & 0x1_ffff;
    let value = (interpolate(&LG2[(fraction >> 17) as usize], 12, rest, rest, 1) + 0x3345) >> 2;
    let value = if x & !SIGN == 0x3f80_0000 { 0 } else { value };
    let sum = value + (i64::from(exponent - 127) << 36);
    let negative = sum >> 63;
    let magnitude = (sum ^ negative) as u64;
    let usual = normalised(magnitude, 154);
    let usual = if magnitude == 0 { 0 } else { usual | negative as u32 & SIGN };
    let usual = if x == INFINITY { INFINITY } else { usual };
    let usual = if (x & SIGN != 0) | (x & !SIGN > INFINITY) { NAN } else { usual };
    if exponent == 0 { SIGN | INFINITY } else { usual }
}

/// Shifted by an exponent, cut at both ends of 32 bits.
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
    let usual = if exponent == 0 { 0 } else { usual };
    let beyond = if fraction == 0 { SPECIAL_INFINITY } else { SPECIAL };
    x & SIGN | if exponent == 0xff { beyond } else { usual }
}

#[inline(always)]
pub(super) fn preex2(x: u32) -> u32 {
    let (exponent, fraction) = ((x >> 23 & 0xff) as i32, x & FRACTION);
    let usual = fixed(fraction | 1 << 23, exponent - 127);
    let usual = if exponent == 0 { 0 } else { usual };
    let usual = if exponent - 127 >= 7 { SPECIAL_INFINITY } else { usual };
    x & SIGN | if x & !SIGN > INFINITY { SPECIAL } else { usual }
}

#[inline(always)]
pub(super) fn sin(x: u32) -> u32 {
    if x & SPECIAL != 0 { NAN } else { quadrant_sine(x & SIGN, x >> 23, x & FRACTION) }
}

#[inline(always)]
pub(super) fn cos(x: u32) -> u32 {
    if x & SPECIAL != 0 { NAN } else { quadrant_sine(0, (x >> 23) + 1, x & FRACTION) }
}

#[inline(always)]
fn quadrant_sine(sign: u32, quadrant: u32, fraction: u32) -> u32 {
    let fraction = if quadrant & 1 != 0 { !fraction & FRACTION } else { fraction };
    let rest = fraction & 0x1_ffff;
    let value = interpolate(&SIN[(fraction >> 17) as usize & 63], 11, rest, rest, 0);
    sign ^ (quadrant >> 1 & 1) << 31 | normalised(value as u64, 153)
}

/// Without saturation.
#[inline(always)]
pub(super) fn ex2(x: u32) -> u32 {
    let (negative, fraction) = (x & SIGN != 0, x & FRACTION);
    let (whole, below) = ((x >> 23 & 0x7f) as i32, i32::from(fraction != 0));
    let whole = if negative { -whole - below } else { whole };
    let fraction = if negative & (fraction != 0) { !fraction & FRACTION } else { fraction };
    let rest = fraction & 0x1_ffff;
    let value = interpolate(&EX2[(fraction >> 17) as usize], 13, rest, rest, 0) + 0x77e2;
    let usual = pack(127 + whole, (value >> 15) as u32);
    let infinite = if negative { 0 } else { INFINITY };
    let usual = if x & SPECIAL_INFINITY == SPECIAL_INFINITY { infinite } else { usual };
    if x & SPECIAL_INFINITY == SPECIAL { NAN } else { usual }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::lane::float::Saturate;
    use crate::lane::special;

    /// A function of a lane on rows.
    fn each(function: fn(u32) -> u32) -> impl Fn(&Row) -> Row {
        move |sources| sources.map(function)
    }

    /// Every source of a range, and the specials with both signs.
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

    #[test]
    fn every_function_gives_what_the_lane_function_gives() {
        let octaves = 0x3f80_0000..0x4080_0000;
        compare("rcp", each(rcp), special::rcp, octaves.clone());
        compare("rsqrt", rsqrt, special::rsqrt, octaves);
        compare("lg2", each(lg2), special::lg2, 0x3f00_0000..0x4080_0000);
        compare("presin", each(presin), special::presin, 0..0);
        compare("preex2", each(preex2), special::preex2, 0..0);
        compare("sin", each(sin), special::sin, 0..0x0200_0000);
        compare("cos", each(cos), special::cos, 0..0x0200_0000);
        compare("ex2", each(ex2), |x| special::ex2(x, Saturate::No), 0..0x0100_0000);
    }

    #[test]
    fn the_squarer_is_that_of_the_lane_functions() {
        for x in 0..1 << 17 {
            assert_eq!(square(x), special::square(x), "{x:#x}");
        }
    }
}
