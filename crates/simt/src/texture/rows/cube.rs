//! Reads of cubes. The code finds the face at which each direction points, and the position on that face. The results
//! equal those of [`Face`](super::super::Face).

use super::super::{Image, Shape};
use super::{EIGHT, Eights, VECTORS, vectors};
use crate::level::Task;
use crate::wide::{Eight, Wide, Words8};

const SIGN: i32 = i32::MIN;

/// The faces that eight directions point at.
pub(super) struct Faces<E: Eight> {
    /// Three masks, for x, y and z. The mask for x contains the lanes whose largest component is x. The masks for y and
    /// z are analogous.
    along: [E::Ints; 3],
    /// Mask of the lanes in which the largest component is negative.
    below: E::Ints,
}

impl<E: Eight> Faces<E> {
    /// Returns the faces that directions point at.
    #[inline(always)]
    pub(super) fn of(wide: E, [x, y, z]: [E::Ints; 3]) -> Faces<E> {
        let (ax, ay, az) = (magnitude(wide, x), magnitude(wide, y), magnitude(wide, z));
        let all = wide.ints(-1);
        let along_z = wide.and(wide.less_equal(ax, az), wide.less_equal(ay, az));
        let along_y = wide.and_not(wide.less_equal(ax, ay), along_z);
        let along_x = wide.and_not(wide.and_not(all, along_z), along_y);
        let along = [along_x, along_y, along_z];
        let largest = wide.choose(along_z, z, wide.choose(along_y, y, x));
        Faces { along, below: wide.less(wide.of_bits(largest), wide.floats(0.0)) }
    }

    /// Returns the numbers of the faces.
    #[inline(always)]
    pub(super) fn numbers(&self, wide: E) -> E::Ints {
        let [_, along_y, along_z] = self.along;
        let first = wide.or(wide.and(along_y, wide.ints(2)), wide.and(along_z, wide.ints(4)));
        // The mask of a negative component is -1, so subtracting the mask adds 1.
        wide.sub_ints(first, self.below)
    }

    /// Returns s and t of directions projected onto the faces.
    #[inline(always)]
    pub(super) fn project(&self, wide: E, [x, y, z]: [E::Ints; 3]) -> [E::Floats; 2] {
        let [along_x, along_y, along_z] = self.along;
        let turned = wide.and(self.below, wide.ints(SIGN));
        let (minus_y, minus_z) = (wide.xor(y, wide.ints(SIGN)), wide.xor(z, wide.ints(SIGN)));
        let s = wide.xor(wide.choose(along_x, minus_z, x), wide.and_not(turned, along_y));
        let t = wide.choose(along_y, wide.xor(z, turned), minus_y);
        let largest = magnitude(wide, wide.choose(along_z, z, wide.choose(along_y, y, x)));
        [on_face(wide, s, largest), on_face(wide, t, largest)]
    }
}

/// Returns the magnitudes of numbers. `magnitude` and the helpers after it are functions, because the compiler does not
/// always compile a closure for the level.
#[inline(always)]
fn magnitude<E: Eight>(wide: E, numbers: E::Ints) -> E::Floats {
    wide.of_bits(wide.and(numbers, wide.ints(!SIGN)))
}

/// Maps components along a face to positions from 0 to 1.
#[inline(always)]
fn on_face<E: Eight>(wide: E, component: E::Ints, largest: E::Floats) -> E::Floats {
    let quotient = wide.div(wide.of_bits(component), largest);
    wide.mul(wide.add(quotient, wide.floats(1.0)), wide.floats(0.5))
}

/// The positions of directions on faces, where the faces are the layers of an image with two axes.
pub(super) struct OnLayers {
    coordinates: [[Words8; VECTORS]; 2],
    layers: [Words8; VECTORS],
}

impl OnLayers {
    /// Returns a copy of the positions `at` in which coordinates and layers are replaced by the positions on the faces.
    pub(super) fn of<'a>(&'a self, at: &Eights<'a>) -> Eights<'a> {
        let [s, t] = self.coordinates.each_ref();
        Eights { coordinates: [s, t, at.coordinates[2]], layer: &self.layers, ..*at }
    }
}

/// The task of projecting the directions of lanes onto faces.
pub(super) struct Project<'a, 'b> {
    pub(super) image: &'a Image,
    pub(super) at: &'b Eights<'a>,
    pub(super) lanes: u64,
}

impl Task for Project<'_, '_> {
    type Output = OnLayers;

    #[inline(always)]
    fn run<W: Wide>(self, wide: W) -> OnLayers {
        let wide = wide.eight();
        let Project { image, at, lanes } = self;
        let mut on = OnLayers { coordinates: [[[0; EIGHT]; VECTORS]; 2], layers: [[0; EIGHT]; VECTORS] };
        let array = image.shape == Shape::CubeArray;
        let last = (image.levels[0].depth / 6 - 1) as f32;
        for (number, _) in vectors(lanes) {
            let mut direction = [wide.ints(0); 3];
            for (component, row) in direction.iter_mut().zip(at.coordinates) {
                *component = without_nans(wide, wide.of_bits(wide.load(&row[number])));
            }
            let faces = Faces::of(wide, direction);
            let places = faces.project(wide, direction);
            for (row, place) in on.coordinates.iter_mut().zip(places) {
                row[number] = wide.store(without_nans(wide, place));
            }
            let mut layer = faces.numbers(wide);
            if array {
                let element = super::near::layers(wide, &at.layer[number], last);
                layer = wide.add_ints(layer, wide.mul_ints(element, wide.ints(6)));
            }
            on.layers[number] = wide.store(wide.bits(wide.to_floats(layer)));
        }
        on
    }
}

/// Returns the bits of numbers, with 0 instead of a NaN.
#[inline(always)]
fn without_nans<E: Eight>(wide: E, numbers: E::Floats) -> E::Ints {
    wide.and(wide.equal(numbers, numbers), wide.bits(numbers))
}
