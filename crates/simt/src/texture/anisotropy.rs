//! Anisotropic filters. A pixel covers an area of the image. The result is the mean of texels at several positions
//! along the longer side of this area.
//!
//! No document of the three machines states how many positions an anisotropic filter reads, and at which level of
//! detail. This module takes two formulas from the example in EXT_texture_filter_anisotropic. The number of positions
//! is N = min(ceil(Pmax / Pmin), maximum). The level of detail of every position is log2(Pmax / N).
//!
//! **Open question**: the positions and their weights. This module divides the longer side into N equal parts and reads
//! the middle of each part, with equal weights. In the example of the extension, the positions are closer together, at
//! i / (N + 1). Tests suggest equal parts for Tesla. Mesa's driver uses two positions to resolve the eight samples of a
//! pixel, which are arranged in rows of four. With equal parts, all samples have the same weight in the result. NV92
//! passes all tests of such resolves.

use super::{Face, Image, Position, QUIET_NAN, Sampler, Shape, squares};

/// Changes of s, t and r from a pixel to the pixel on the right, and from the same pixel to the pixel below. For a
/// cube, the coordinates on a face change. These coordinates run from 0 to 1.
pub type Gradients = [[f32; 3]; 2];

/// If the ratio of the two sides exceeds a whole number by at most this tolerance, the ratio counts as the whole
/// number. Without the tolerance, rounding errors of coordinates could cause two positions instead of one.
const TOLERANCE: f64 = 1.0 / 64.0;

/// The positions whose mean an anisotropic filter computes.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Footprint {
    /// Number of positions. The value 0 also means one position.
    count: u8,
    /// The longer side of the area that a pixel covers, as changes of the coordinates.
    pub(super) longer: [f32; 3],
    /// Binary logarithm of the number of positions, which is subtracted from the level of detail.
    pub(super) finer: f32,
}

impl Footprint {
    /// Returns the footprint of a pixel. If the longer side is zero, infinite or a NaN, the footprint has one position.
    pub fn new(image: &Image, sampler: &Sampler, gradients: Gradients) -> Footprint {
        if sampler.anisotropy <= 1 {
            return Footprint::default();
        }
        let [right, below] = squares(image, sampler, gradients);
        let [across, down] = gradients;
        let (longer, larger, smaller) =
            if right >= below { (across, right, below) } else { (down, below, right) };
        let ratio = (larger / smaller).sqrt();
        let count = match larger.is_finite() && ratio > 1.0 {
            true => (ratio - TOLERANCE).ceil().clamp(1.0, sampler.anisotropy.into()) as u8,
            false => 1,
        };
        Footprint { count, longer, finer: libm::log2f(count.into()) }
    }

    /// Returns the number of positions, at least 1.
    pub fn count(&self) -> u8 {
        self.count.max(1)
    }

    /// Returns position `number` of a pixel. `at` is the middle of the pixel, with its level of detail. If the
    /// footprint has a single position, the function returns `at`.
    pub fn place(&self, image: &Image, at: &Position, number: u8) -> Position {
        if self.count() == 1 {
            return *at;
        }
        let along = along(number, self.count().into());
        let moved = |from: [f32; 3]| [0, 1, 2].map(|axis| from[axis] + self.longer[axis] * along);
        let coordinates = match image.shape {
            // A position beyond the edge of the face stays on the plane of the face. The direction to such a position
            // points at an adjacent face.
            Shape::Cube | Shape::CubeArray => {
                let face = Face::of(at.coordinates);
                let [s, t] = face.project(at.coordinates);
                let [s, t, _] = moved([s, t, 0.0]);
                face.direction([s * 2.0 - 1.0, t * 2.0 - 1.0])
            }
            Shape::D1 | Shape::D2 | Shape::D3 | Shape::D1Array | Shape::D2Array => moved(at.coordinates),
        };
        Position { coordinates, lod: at.lod - self.finer, ..*at }
    }

    /// Calls `read` for each position, and returns the bits of the mean of the components. If there is only one
    /// position, the function returns the components of this position unchanged.
    pub fn mean(&self, image: &Image, at: &Position, read: impl Fn(&Position) -> [u32; 4]) -> [u32; 4] {
        if self.count() == 1 {
            return read(at);
        }
        let mut sum = [0.0; 4];
        for number in 0..self.count() {
            let texel = read(&self.place(image, at, number)).map(f32::from_bits);
            sum = [0, 1, 2, 3].map(|channel| sum[channel] + texel[channel]);
        }
        sum.map(|sum| self.share(sum))
    }

    /// Returns the bits of the mean of a component. `sum` is the sum of the component over all positions.
    pub(super) fn share(&self, sum: f32) -> u32 {
        let mean = sum / f32::from(self.count());
        if mean.is_nan() { QUIET_NAN } else { mean.to_bits() }
    }
}

/// Returns the offset of a position along the longer side, from -1/2 to 1/2.
#[inline(always)]
pub(super) fn along(number: u8, count: f32) -> f32 {
    (f32::from(number) + 0.5) / count - 0.5
}

#[cfg(test)]
mod tests {
    use super::super::{Filter, Level, MipFilter, lod_of_gradients, sample};
    use super::*;

    /// Returns an image whose largest level has 8 by 8 texels. Red is the number of the level, and green is the column.
    fn image() -> Image {
        let level = |number: u32| {
            let size = 8 >> number;
            let texel = |at: u32| [number as f32, (at % size) as f32, 0.0, 1.0].map(f32::to_bits);
            Level { width: size, height: size, depth: 1, texels: (0..size * size).map(texel).collect() }
        };
        Image::new(Shape::D2, (0..4).map(level).collect()).unwrap()
    }

    fn sampler(anisotropy: u8) -> Sampler {
        let filter = Filter::Linear;
        Sampler { mag: filter, min: filter, mip: MipFilter::Linear, anisotropy, ..Sampler::default() }
    }

    /// Returns gradients of `right` texels of level 0 along s, and of `below` texels along t.
    fn sides(right: f32, below: f32) -> Gradients {
        [[right / 8.0, 0.0, 0.0], [0.0, below / 8.0, 0.0]]
    }

    fn read(sampler: &Sampler, gradients: Gradients) -> [f32; 4] {
        let image = image();
        let lod = lod_of_gradients(&image, sampler, gradients[0], gradients[1]);
        let at = Position { coordinates: [0.4, 0.3, 0.0], lod, ..Position::default() };
        let footprint = Footprint::new(&image, sampler, gradients);
        footprint.mean(&image, &at, |place| sample(&image, sampler, place)).map(f32::from_bits)
    }

    #[test]
    fn a_square_is_filtered_as_without_anisotropy() {
        for size in [0.3, 1.0, 1.7, 2.0, 5.0] {
            // Coordinates have limited precision, so one of the footprint's two sides may be slightly longer.
            for below in [size, size * 1.0001] {
                assert_eq!(read(&sampler(16), sides(size, below)), read(&sampler(1), sides(size, below)));
            }
        }
    }

    /// EXT_texture_filter_anisotropic: the filter reads N = Pmax / Pmin positions on level log2(Pmax / N).
    #[test]
    fn a_side_four_times_the_other_has_four_places_two_levels_lower() {
        let gradients = sides(2.0, 8.0);
        let footprint = Footprint::new(&image(), &sampler(4), gradients);
        assert_eq!(footprint.count(), 4);
        let at = Position { coordinates: [0.5, 0.5, 0.0], lod: 3.0, ..Position::default() };
        let places = [0, 1, 2, 3].map(|number| footprint.place(&image(), &at, number));
        assert_eq!(places.map(|place| place.lod), [1.0; 4]);
        assert_eq!(places.map(|place| place.coordinates[1]), [0.125, 0.375, 0.625, 0.875]);
        assert_eq!(places.map(|place| place.coordinates[0]), [0.5; 4]);
        assert_eq!([read(&sampler(1), gradients)[0], read(&sampler(4), gradients)[0]], [3.0, 1.0]);
    }

    #[test]
    fn the_sampler_bounds_the_places() {
        let count = |most: u8, right: f32, below: f32| {
            Footprint::new(&image(), &sampler(most), sides(right, below)).count()
        };
        assert_eq!([0, 1, 2, 4, 16].map(|most| count(most, 16.0, 1.0)), [1, 1, 2, 4, 16]);
        assert_eq!([1.5, 2.0, 2.5, 3.5].map(|right| count(16, right, 1.0)), [2, 2, 3, 4]);
        // The level is log2(Pmax / N): log2(16 / 2) is 3.
        assert_eq!(read(&sampler(2), sides(16.0, 1.0))[0], 3.0);
        assert_eq!(read(&sampler(8), sides(16.0, 1.0))[0], 1.0);
    }

    #[test]
    fn sides_without_a_length_have_one_place() {
        for side in [0.0, f32::INFINITY, f32::NAN] {
            assert_eq!(Footprint::new(&image(), &sampler(16), sides(side, side)).count(), 1, "{side}");
        }
        // A line has a length, but no width.
        assert_eq!(Footprint::new(&image(), &sampler(16), sides(4.0, 0.0)).count(), 16);
    }

    /// For a direction near the edge of a face, half of the positions are on the adjacent face.
    #[test]
    fn places_of_a_cube_continue_on_the_next_face() {
        let texels = (0..6).flat_map(|face| [[(face as f32).to_bits(); 4]; 4]).collect();
        let cube = Image::new(Shape::Cube, vec![Level { width: 2, height: 2, depth: 6, texels }]).unwrap();
        let gradients = [[0.4, 0.0, 0.0], [0.0, 0.1, 0.0]];
        let sampler = Sampler { anisotropy: 16, ..Sampler::default() };
        let footprint = Footprint::new(&cube, &sampler, gradients);
        assert_eq!(footprint.count(), 4);
        // On face +z, s is 1 at the edge to face +x.
        let at = Position { coordinates: [0.999_999, 0.0, 1.0], ..Position::default() };
        let faces = [0, 1, 2, 3].map(|number| Face::of(footprint.place(&cube, &at, number).coordinates).0);
        assert_eq!(faces, [4, 4, 0, 0]);
        let mean = footprint.mean(&cube, &at, |place| sample(&cube, &sampler, place));
        assert_eq!(mean.map(f32::from_bits), [2.0; 4]);
    }

    #[test]
    fn the_mean_of_a_nan_is_the_quiet_one() {
        let footprint = Footprint::new(&image(), &sampler(2), sides(2.0, 1.0));
        let mean = footprint.mean(&image(), &Position::default(), |_| [0xffff_ffff, 0, 0, 0]);
        assert_eq!(mean, [QUIET_NAN, 0, 0, 0]);
    }
}
