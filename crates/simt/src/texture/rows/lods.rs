//! Levels of detail for rows of lanes.
//!
//! The logarithm has the operations of `libm`'s logarithm (FreeBSD `e_log2.c`). Each operation applies to several quads
//! at once.

use super::super::{Image, Sampler};
use super::cube::Faces;
use super::{EIGHT, Words, is_cube};
use crate::level::{self, Task};
use crate::wide::{Eight, Wide};

/// Number of lanes in a part. The lanes of a part are computed together. On all machines, the number of lanes in a
/// group is a multiple of this number.
const PART: usize = 16;
/// The set of all lanes in a part, with one bit per lane.
const PART_LANES: u64 = (1 << PART) - 1;

/// Returns the level of detail of each lane in `lanes`. [`lod_of_quad`](super::super::lod_of_quad) defines the result.
/// On a cube, the direction of each lane selects the face for that lane. Coordinates and results are rows of bits.
pub fn lods_of_quads<W: Wide, const N: usize>(
    wide: W,
    image: &Image,
    sampler: &Sampler,
    coordinates: [&Words<N>; 3],
    lanes: u64,
) -> Words<N> {
    if !is_cube(image) {
        return lods_of_differences(wide, image, sampler, coordinates, lanes);
    }
    on_faces(wide, image, sampler, (coordinates, None), lanes)
}

/// Returns the level of detail on a cube for each lane in `lanes`. [`lod_of_quad`](super::super::lod_of_quad) defines
/// the result. `facing` contains the directions that select the face. `quad` contains the directions of three lanes:
/// the origin lane, the lane to the right of the origin lane, and the lane below the origin lane.
pub fn lods_on_faces<W: Wide, const N: usize>(
    wide: W,
    image: &Image,
    sampler: &Sampler,
    facing: [&Words<N>; 3],
    quad: [[&Words<N>; 3]; 3],
    lanes: u64,
) -> Words<N> {
    on_faces(wide, image, sampler, (facing, Some(quad)), lanes)
}

/// Implements [`lods_on_faces`]. If `quad` is `None`, `facing` also contains the directions of the lanes in each quad.
fn on_faces<W: Wide, const N: usize>(
    wide: W,
    image: &Image,
    sampler: &Sampler,
    (facing, quad): ([&Words<N>; 3], Option<[[&Words<N>; 3]; 3]>),
    lanes: u64,
) -> Words<N> {
    let mut lods = [0; N];
    let scales = scales(image, sampler);
    for part in (0..N / PART).filter(|part| lanes >> (PART * part) & PART_LANES != 0) {
        let quad = quad.map(|quad| quad.map(|rows| rows_of_part(rows, part)));
        let of_part = OnFaces { facing: rows_of_part(facing, part), quad, scales };
        lods.as_chunks_mut::<PART>().0[part] = of_part.at_level(level::Level::of(wide));
    }
    lods
}

/// Returns, for each row, the words of one part.
fn rows_of_part<const N: usize>(rows: [&Words<N>; 3], part: usize) -> [&Words<PART>; 3] {
    rows.map(|row| &row.as_chunks().0[part])
}

/// Returns the level of detail of each lane in `lanes`. For each quad, the function computes the differences between
/// lanes of the quad. It then evaluates [`lod_of_gradients`](super::super::lod_of_gradients) once for these
/// differences.
pub fn lods_of_differences<W: Wide, const N: usize>(
    wide: W,
    image: &Image,
    sampler: &Sampler,
    coordinates: [&Words<N>; 3],
    lanes: u64,
) -> Words<N> {
    let mut lods = [0; N];
    let scales = scales(image, sampler);
    for part in (0..N / PART).filter(|part| lanes >> (PART * part) & PART_LANES != 0) {
        let coordinates = rows_of_part(coordinates, part);
        let of_part = Differences { coordinates, scales }.at_level(level::Level::of(wide));
        lods.as_chunks_mut::<PART>().0[part] = of_part;
    }
    lods
}

/// Returns [`lod_of_gradients`](super::super::lod_of_gradients) for each of the given lanes. The gradients are rows of
/// bits.
pub fn lods_of_gradients<W: Wide, const N: usize>(
    wide: W,
    image: &Image,
    sampler: &Sampler,
    gradients: [[&Words<N>; 3]; 2],
    lanes: u64,
) -> Words<N> {
    let mut lods = [0; N];
    let scales = scales(image, sampler);
    for part in (0..N / PART).filter(|part| lanes >> (PART * part) & PART_LANES != 0) {
        let gradients = gradients.map(|rows| rows_of_part(rows, part));
        let of_part = Gradients { gradients, scales }.at_level(level::Level::of(wide));
        lods.as_chunks_mut::<PART>().0[part] = of_part;
    }
    lods
}

/// Returns the number of texels per unit of each coordinate, or `None` for axes that the image does not have.
fn scales(image: &Image, sampler: &Sampler) -> [Option<f64>; 3] {
    let level = &image.levels[0];
    let axes = image.shape.axes();
    let sizes = [level.width, level.height, level.depth].map(|size| size as f32);
    let scale = |axis: usize| if sampler.unnormalised { 1.0 } else { f64::from(sizes[axis]) };
    [0, 1, 2].map(|axis| (axis < axes).then(|| scale(axis)))
}

/// Number of quads in a part.
const QUADS: usize = PART / 4;

/// The task of [`lods_of_differences`] for one part of the lanes.
struct Differences<'a> {
    coordinates: [&'a Words<PART>; 3],
    scales: [Option<f64>; 3],
}

impl Differences<'_> {
    /// Computes the part. This function is not generic. So it is compiled in this crate, once for each level.
    #[inline(never)]
    fn at_level(self, level: level::Level) -> Words<PART> {
        level.run(self)
    }
}

impl Task for Differences<'_> {
    type Output = Words<PART>;

    #[inline(always)]
    fn run<W: Wide>(self, _: W) -> Words<PART> {
        // Squares of the lengths of the two gradients.
        let mut squares = [[0.0f64; QUADS]; 2];
        for (axis, scale) in self.scales.iter().enumerate() {
            let Some(scale) = scale else { continue };
            let quads = self.coordinates[axis].as_chunks::<4>().0;
            for (lane, squares) in [1, 2].into_iter().zip(&mut squares) {
                for quad in 0..QUADS {
                    let [origin, other] = [0, lane].map(|lane| f32::from_bits(quads[quad][lane]));
                    let texels = f64::from(other - origin) * scale;
                    squares[quad] += texels * texels;
                }
            }
        }
        let of_quads = larger_lods(&squares);
        let mut lods = [0; PART];
        for (lods, lod) in lods.as_chunks_mut::<4>().0.iter_mut().zip(of_quads) {
            *lods = [lod; 4];
        }
        lods
    }
}

/// Returns the bits of the level of detail for the longer of two gradients. `squares` are the squares of the lengths of
/// both gradients.
#[inline(always)]
fn larger_lods<const Q: usize>(squares: &[[f64; Q]; 2]) -> [u32; Q] {
    let mut larger = [0.0; Q];
    for quad in 0..Q {
        larger[quad] = squares[0][quad].max(squares[1][quad]);
    }
    let logarithms = log2(&larger);
    let mut lods = [0; Q];
    for quad in 0..Q {
        let lod = if larger[quad] == 0.0 { f32::NEG_INFINITY } else { (0.5 * logarithms[quad]) as f32 };
        lods[quad] = lod.to_bits();
    }
    lods
}

/// The task of [`lods_on_faces`] for one part of the lanes.
struct OnFaces<'a> {
    facing: [&'a Words<PART>; 3],
    /// Directions of three lanes: the origin lane, the lane to the right and the lane below. If the field is `None`,
    /// these three lanes are lanes 0, 1 and 2 of each quad, and `facing` contains their directions.
    quad: Option<[[&'a Words<PART>; 3]; 3]>,
    scales: [Option<f64>; 3],
}

impl OnFaces<'_> {
    /// Computes the part. [`Differences::at_level`] explains why this function is not generic.
    #[inline(never)]
    fn at_level(self, level: level::Level) -> Words<PART> {
        level.run(self)
    }
}

impl Task for OnFaces<'_> {
    type Output = Words<PART>;

    #[inline(always)]
    fn run<W: Wide>(self, wide: W) -> Words<PART> {
        let wide = wide.eight();
        // Coordinates s and t of three lanes: the origin lane, the lane on the right of the origin lane, and the lane
        // below the origin lane.
        let mut places = [[[0; PART]; 2]; 3];
        for half in 0..PART / EIGHT {
            let faces = Faces::of(wide, directions(wide, &self.facing, half, None));
            for (number, place) in places.iter_mut().enumerate() {
                let directions = match &self.quad {
                    Some(quad) => directions(wide, &quad[number], half, None),
                    None => directions(wide, &self.facing, half, Some(number)),
                };
                let [s, t] = faces.project(wide, directions);
                place[0].as_chunks_mut().0[half] = wide.store(wide.bits(s));
                place[1].as_chunks_mut().0[half] = wide.store(wide.bits(t));
            }
        }
        let [origin, others @ ..] = &places;
        let mut gradients = [[[0; PART]; 2]; 2];
        for (gradient, other) in gradients.iter_mut().zip(others) {
            for axis in 0..2 {
                for lane in 0..PART {
                    let [origin, other] = [origin, other].map(|rows| f32::from_bits(rows[axis][lane]));
                    gradient[axis][lane] = (other - origin).to_bits();
                }
            }
        }
        let nothing = [0; PART];
        let gradients = gradients.each_ref().map(|[s, t]| [s, t, &nothing]);
        lods_of_part(&gradients, &self.scales)
    }
}

/// Returns the directions of eight lanes of a part. If `of_quad` is a number from 0 to 3, it selects a lane of each
/// quad, and every lane of the quad gets the direction of the selected lane.
#[inline(always)]
fn directions<E: Eight>(
    wide: E,
    [x, y, z]: &[&Words<PART>; 3],
    half: usize,
    of_quad: Option<usize>,
) -> [E::Ints; 3] {
    [eight(wide, x, half, of_quad), eight(wide, y, half, of_quad), eight(wide, z, half, of_quad)]
}

/// Returns the words of eight lanes of a part. If `of_quad` is a number from 0 to 3, it selects a lane of each quad,
/// and every lane of the quad gets the word of the selected lane.
#[inline(always)]
fn eight<E: Eight>(wide: E, row: &Words<PART>, half: usize, of_quad: Option<usize>) -> E::Ints {
    let words = &row.as_chunks::<EIGHT>().0[half];
    let Some(lane) = of_quad else { return wide.load(words) };
    let [first, second] = [words[lane & 3], words[4 + (lane & 3)]];
    wide.load(&[first, first, first, first, second, second, second, second])
}

/// The task of [`lods_of_gradients`] for one part of the lanes.
struct Gradients<'a> {
    gradients: [[&'a Words<PART>; 3]; 2],
    scales: [Option<f64>; 3],
}

impl Gradients<'_> {
    /// Computes the part. [`Differences::at_level`] explains why this function is not generic.
    #[inline(never)]
    fn at_level(self, level: level::Level) -> Words<PART> {
        level.run(self)
    }
}

impl Task for Gradients<'_> {
    type Output = Words<PART>;

    #[inline(always)]
    fn run<W: Wide>(self, _: W) -> Words<PART> {
        lods_of_part(&self.gradients, &self.scales)
    }
}

/// Returns the level of detail of each lane, from its two gradients.
#[inline(always)]
fn lods_of_part(gradients: &[[&Words<PART>; 3]; 2], scales: &[Option<f64>; 3]) -> Words<PART> {
    let mut squares = [[0.0f64; PART]; 2];
    for (axis, scale) in scales.iter().enumerate() {
        let Some(scale) = scale else { continue };
        for (squares, gradient) in squares.iter_mut().zip(gradients) {
            for lane in 0..PART {
                let texels = f64::from(f32::from_bits(gradient[axis][lane])) * scale;
                squares[lane] += texels * texels;
            }
        }
    }
    // The lanes of a quad usually have the same level of detail. On a cube, this is true if all directions of the quad
    // point at the same face.
    let mut differ = 0;
    for squares in &squares {
        for quad in squares.as_chunks::<4>().0 {
            for square in quad {
                differ |= square.to_bits() ^ quad[0].to_bits();
            }
        }
    }
    if differ != 0 {
        return larger_lods(&squares);
    }
    let mut of_quads = [[0.0; QUADS]; 2];
    for (of_quads, squares) in of_quads.iter_mut().zip(&squares) {
        for (of_quad, quad) in of_quads.iter_mut().zip(squares.as_chunks::<4>().0) {
            *of_quad = quad[0];
        }
    }
    let mut lods = [0; PART];
    for (lods, lod) in lods.as_chunks_mut::<4>().0.iter_mut().zip(larger_lods(&of_quads)) {
        *lods = [lod; 4];
    }
    lods
}

/// Returns [`libm::log2`] of each number. Each number must be +infinity, a NaN, or a positive normal number. For 0, the
/// result is unspecified.
#[inline(always)]
fn log2<const Q: usize>(numbers: &[f64; Q]) -> [f64; Q] {
    const HIGH: f64 = f64::from_bits(0x3ff7_1547_6520_0000);
    const LOW: f64 = f64::from_bits(0x3de7_05fc_2eef_a200);
    const SERIES: [f64; 7] = [
        6.666_666_666_666_735e-1,
        3.999_999_999_940_942e-1,
        2.857_142_874_366_239e-1,
        2.222_219_843_214_978_4e-1,
        1.818_357_216_161_805e-1,
        1.531_383_769_920_937_3e-1,
        1.479_819_860_511_658_6e-1,
    ];
    let mut logarithms = [0.0; Q];
    for lane in 0..Q {
        let number = numbers[lane];
        // Split the number into 2^k (1 + f). The factor 1 + f is between half the square root of 2 and the square root
        // of 2.
        let high = (number.to_bits() >> 32) as u32;
        let moved = high.wrapping_add(0x3ff0_0000 - 0x3fe6_a09e);
        let exponent = (moved >> 20) as i32 - 0x3ff;
        let high = (moved & 0x000f_ffff) + 0x3fe6_a09e;
        let f = f64::from_bits(u64::from(high) << 32 | number.to_bits() & 0xffff_ffff) - 1.0;
        let half_square = 0.5 * f * f;
        let s = f / (2.0 + f);
        let z = s * s;
        let w = z * z;
        let even = w * (SERIES[1] + w * (SERIES[3] + w * SERIES[5]));
        let odd = z * (SERIES[0] + w * (SERIES[2] + w * (SERIES[4] + w * SERIES[6])));
        let rest = odd + even;
        let high = f64::from_bits((f - half_square).to_bits() & !0xffff_ffff);
        let low = f - high - half_square + s * (half_square + rest);
        let value = high * HIGH;
        let correction = (low + high) * LOW + low * HIGH;
        let exponent = f64::from(exponent);
        let sum = exponent + value;
        let logarithm = correction + ((exponent - sum) + value) + sum;
        logarithms[lane] = if number < f64::INFINITY { logarithm } else { number };
    }
    logarithms
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::random::Random;

    #[test]
    fn logarithms_have_the_bits_of_those_of_libm() {
        let mut random = Random::new(7);
        let special = [1.0, 2.0, 0.5, f64::INFINITY, f64::MIN_POSITIVE, f64::MAX, 1.0f64.next_up()];
        for round in 0..20_000 {
            let numbers: [f64; 4] = std::array::from_fn(|_| match random.below(4) {
                0 => random.one_of(&special),
                1 => {
                    1.0 + f64::from(random.next()) / f64::from(u32::MAX)
                        * if round & 1 == 0 { 1e-3 } else { -0.6 }
                }
                // These numbers are squares of singles. The computation of a level of detail also uses squares of
                // singles.
                2 => {
                    let single = f64::from(f32::from_bits(random.next() & 0x7f7f_ffff).max(1e-40));
                    single * single
                }
                _ => f64::from_bits(random.next_u64() & 0x7fef_ffff_ffff_ffff).max(f64::MIN_POSITIVE),
            });
            let expected = numbers.map(|number| libm::log2(number).to_bits());
            assert_eq!(log2(&numbers).map(f64::to_bits), expected, "{numbers:?}");
        }
        assert!(log2(&[f64::NAN])[0].is_nan());
    }
}
