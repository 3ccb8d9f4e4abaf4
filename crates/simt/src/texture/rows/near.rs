//! The texels near the coordinates of eight lanes. Each texel has a position after wrapping, and each upper texel has a
//! weight.

use super::super::{Sampler, Wrap, wrap_of_nearest};
use super::{Eights, FAR, Grid};
use crate::wide::{Eight, Words8};

/// The texels near coordinates. Along each axis, side 0 is the lower texel and side 1 is the upper texel. The texel on
/// side x along s and on side y along t has the number x + 2 y.
pub(super) struct Near<E: Eight> {
    /// Set of the lanes that cannot be read as rows. Such a lane has a coordinate that is not nearer to the origin than
    /// [`FAR`].
    pub(super) far: u32,
    places: [E::Ints; 4],
    /// For each axis and side, a mask of the lanes whose texel is outside the image.
    outside: [[E::Ints; 2]; 2],
    /// Weights of the upper texels, by axis.
    pub(super) weights: [E::Floats; 2],
    /// Whether a wrap mode can read the border.
    border: bool,
}

/// The texels along one axis, on both sides of the coordinates.
pub(super) struct Along<E: Eight> {
    /// For each side, the part of the texel's position that depends on this axis.
    places: [E::Ints; 2],
    outside: [E::Ints; 2],
    /// Weight of the upper texel.
    pub(super) weight: E::Floats,
    /// Whether the wrap mode can read the border.
    border: bool,
}

/// Returns whether a wrap mode can read the border.
#[inline(always)]
fn has_border(wrap: Wrap) -> bool {
    match wrap {
        Wrap::Clamp | Wrap::ClampToBorder | Wrap::MirrorOnce | Wrap::MirrorOnceToBorder => true,
        Wrap::Repeat | Wrap::Mirror | Wrap::ClampToEdge | Wrap::MirrorOnceToEdge => false,
    }
}

impl<E: Eight> Near<E> {
    /// Returns the texels that contain the coordinates of vector `number`. All four texels of a lane are the same.
    #[inline(always)]
    pub(super) fn nearest(
        wide: E,
        sampler: &Sampler,
        grid: &Grid,
        at: &Eights<'_>,
        number: usize,
    ) -> Near<E> {
        let zero = wide.ints(0);
        let (mut far, mut border) = (0, false);
        let (mut place, mut outside) = (first(wide, grid, &at.layer[number]), zero);
        for axis in 0..grid.axes {
            let texels = texels_along(wide, &at.coordinates[axis][number], grid.factor[axis], &mut far);
            let index = wide.to_ints(wide.floor(texels));
            let index = wide.add_ints(index, wide.ints(at.offset[axis]));
            let wrap = wrap_of_nearest(sampler.wrap[axis]);
            let (index, beyond) = wrapped(wide, wrap, grid.size[axis], index);
            border |= has_border(wrap);
            outside = wide.or(outside, beyond);
            place = wide.add_ints(place, wide.mul_ints(index, wide.ints(grid.steps[axis])));
        }
        let weights = [wide.floats(0.0); 2];
        Near { far, places: [place; 4], outside: [[outside; 2]; 2], weights, border }
    }

    /// For each coordinate of vector `number`, returns the texels on both sides along s. If the image has the axis t,
    /// the function also returns the texels on both sides along t.
    #[inline(always)]
    pub(super) fn corners(
        wide: E,
        sampler: &Sampler,
        grid: &Grid,
        at: &Eights<'_>,
        number: usize,
    ) -> Near<E> {
        let (mut far, mut border) = (0, false);
        let place = first(wide, grid, &at.layer[number]);
        let mut along = [Along::<E>::none(wide), Along::<E>::none(wide)];
        for (axis, along) in along.iter_mut().enumerate().take(grid.axes) {
            *along = Along::new(wide, sampler, grid, at, (axis, number), &mut far);
            border |= along.border;
        }
        let [s, t] = along;
        // The code repeats these sums without a closure, because the compiler does not always compile a closure for the
        // level.
        let [lower, upper] = [wide.add_ints(t.places[0], place), wide.add_ints(t.places[1], place)];
        let places = [
            wide.add_ints(s.places[0], lower),
            wide.add_ints(s.places[1], lower),
            wide.add_ints(s.places[0], upper),
            wide.add_ints(s.places[1], upper),
        ];
        let outside = [s.outside, t.outside];
        Near { far, places, outside, weights: [s.weight, t.weight], border }
    }

    /// A coordinate of a 3D image is between two slices. Returns the texels on one of the two slices. `side` selects
    /// the slice. `self` contains the texels on the first slice of the image.
    #[inline(always)]
    pub(super) fn on_slice(&self, wide: E, slices: &Along<E>, side: usize) -> Near<E> {
        let (mut places, [mut s, t]) = (self.places, self.outside);
        for place in &mut places {
            *place = wide.add_ints(*place, slices.places[side]);
        }
        for outside in &mut s {
            *outside = wide.or(*outside, slices.outside[side]);
        }
        Near { places, outside: [s, t], border: self.border | slices.border, ..*self }
    }

    /// Returns, for each lane, the position of the texel with the number `corner`.
    #[inline(always)]
    pub(super) fn place(&self, corner: usize) -> E::Ints {
        self.places[corner]
    }

    /// Returns the components of a texel. A lane whose texel is outside the image gets the border colour.
    #[inline(always)]
    pub(super) fn bordered<const C: usize>(
        &self,
        wide: E,
        sampler: &Sampler,
        corner: usize,
        mut texels: [E::Ints; C],
    ) -> [E::Ints; C] {
        if self.border {
            let outside = wide.or(self.outside[0][corner & 1], self.outside[1][corner >> 1]);
            for (texel, border) in texels.iter_mut().zip(sampler.border) {
                *texel = wide.choose(outside, wide.ints(border as i32), *texel);
            }
        }
        texels
    }
}

impl<E: Eight> Along<E> {
    /// Returns the result for an axis that the image does not have. Both sides of a coordinate have the same texel.
    #[inline(always)]
    fn none(wide: E) -> Along<E> {
        let sides = [wide.ints(0); 2];
        Along { places: sides, outside: sides, weight: wide.floats(0.0), border: false }
    }

    /// For each coordinate of a vector, returns the texels on both sides along an axis. The function adds lanes that
    /// are too far away to the set `far`.
    #[inline(always)]
    pub(super) fn new(
        wide: E,
        sampler: &Sampler,
        grid: &Grid,
        at: &Eights<'_>,
        (axis, number): (usize, usize),
        far: &mut u32,
    ) -> Along<E> {
        let (wrap, offset) = (sampler.wrap[axis], at.offset[axis]);
        let mut texels = texels_along(wide, &at.coordinates[axis][number], grid.factor[axis], far);
        // The modes `Clamp` and `MirrorOnce` clamp the coordinate before texels are selected. So `Clamp` and
        // `MirrorOnce` also change the weights.
        let (size, moved) = (grid.size[axis] as f32, offset as f32);
        let stops = match wrap {
            Wrap::Clamp => Some([-moved, size - moved]),
            Wrap::MirrorOnce => Some([-size - moved, size - moved]),
            Wrap::Repeat
            | Wrap::Mirror
            | Wrap::ClampToEdge
            | Wrap::ClampToBorder
            | Wrap::MirrorOnceToEdge
            | Wrap::MirrorOnceToBorder => None,
        };
        if let Some([least, most]) = stops {
            texels = wide.min(wide.max(texels, wide.floats(least)), wide.floats(most));
        }
        let shifted = wide.sub(texels, wide.floats(0.5));
        let lower = wide.floor(shifted);
        let low = wide.add_ints(wide.to_ints(lower), wide.ints(offset));
        let mut along = Along::none(wide);
        (along.weight, along.border) = (wide.sub(shifted, lower), has_border(wrap));
        for (side, index) in [low, wide.add_ints(low, wide.ints(1))].into_iter().enumerate() {
            let (index, beyond) = wrapped(wide, wrap, grid.size[axis], index);
            along.places[side] = wide.mul_ints(index, wide.ints(grid.steps[axis]));
            along.outside[side] = beyond;
        }
        along
    }
}

/// Returns whether lanes that read a level may read the border.
pub(super) fn reads_border(sampler: &Sampler, grid: &Grid) -> bool {
    sampler.wrap[..grid.axes].iter().any(|wrap| has_border(*wrap))
}

/// Returns the position of the first texel of each lane's layer.
#[inline(always)]
fn first<E: Eight>(wide: E, grid: &Grid, layers: &Words8) -> E::Ints {
    let first = wide.ints(grid.first);
    if grid.last_layer <= 0.0 {
        return first;
    }
    let layer = self::layers(wide, layers, grid.last_layer);
    wide.add_ints(first, wide.mul_ints(layer, wide.ints(grid.steps[2])))
}

/// Returns the numbers of layers, rounded to nearest even and clamped. For a NaN, the number is 0.
#[inline(always)]
pub(super) fn layers<E: Eight>(wide: E, layers: &Words8, last: f32) -> E::Ints {
    let layer = wide.max(wide.of_bits(wide.load(layers)), wide.floats(0.0));
    let layer = wide.min(layer, wide.floats(last));
    // Singles of 2^23 or more have no fraction, so adding and subtracting 2^23 rounds to a whole number.
    let whole = wide.floats(8_388_608.0);
    wide.to_ints(wide.sub(wide.add(layer, whole), whole))
}

/// Returns the coordinates along an axis in texels. All results are nearer to the origin than [`FAR`]. The function
/// replaces a NaN by 0. It also replaces a coordinate that is farther away by 0, and adds the lane of this coordinate
/// to `far`.
#[inline(always)]
fn texels_along<E: Eight>(wide: E, coordinates: &Words8, factor: f32, far: &mut u32) -> E::Floats {
    let scaled = wide.bits(wide.mul(wide.of_bits(wide.load(coordinates)), wide.floats(factor)));
    let magnitude = wide.and(scaled, wide.ints(0x7fff_ffff));
    let near = wide.greater_ints(wide.ints(FAR.to_bits() as i32), magnitude);
    if wide.lanes(near) == 0xff {
        return wide.of_bits(scaled);
    }
    let number = wide.greater_ints(wide.ints(f32::INFINITY.to_bits() as i32 + 1), magnitude);
    *far |= wide.lanes(wide.and_not(number, near));
    wide.of_bits(wide.and(scaled, near))
}

/// Wraps the indices of texels along an axis, so that all are inside the image. Returns the wrapped indices, and the
/// mask of the lanes that read the border.
///
/// An index is the sum of an offset and a coordinate. The coordinate is nearer than [`FAR`]. A level has less than a
/// quarter of [`FAR`] texels along an axis. So no sum overflows, and singles represent all these numbers exactly.
#[inline(always)]
fn wrapped<E: Eight>(wide: E, wrap: Wrap, size: i32, index: E::Ints) -> (E::Ints, E::Ints) {
    let (zero, last) = (wide.ints(0), wide.ints(size - 1));
    let clamped = |index: E::Ints| wide.min_ints(wide.max_ints(index, zero), last);
    let mirror = |index: E::Ints| wide.xor(index, wide.sar(index, 31));
    let bordered = |index: E::Ints| {
        let inside = clamped(index);
        (inside, wide.xor(wide.equal_ints(inside, index), wide.ints(-1)))
    };
    match wrap {
        Wrap::Repeat if size & (size - 1) == 0 => (wide.and(index, last), zero),
        Wrap::Repeat => (modulo(wide, index, size), zero),
        Wrap::Mirror => {
            let twice = modulo(wide, index, 2 * size);
            (wide.min_ints(twice, wide.sub_ints(wide.ints(2 * size - 1), twice)), zero)
        }
        Wrap::ClampToEdge => (clamped(index), zero),
        Wrap::MirrorOnceToEdge => (wide.min_ints(mirror(index), last), zero),
        Wrap::Clamp | Wrap::ClampToBorder => bordered(index),
        Wrap::MirrorOnce | Wrap::MirrorOnceToBorder => bordered(mirror(index)),
    }
}

/// Returns `index` modulo `size` as a number that is not negative. The quotient of singles may be wrong by one. The
/// code corrects this error.
#[inline(always)]
fn modulo<E: Eight>(wide: E, index: E::Ints, size: i32) -> E::Ints {
    let (zero, size_of_all) = (wide.ints(0), wide.ints(size));
    let quotient = wide.floor(wide.div(wide.to_floats(index), wide.floats(size as f32)));
    let rest = wide.sub_ints(index, wide.mul_ints(wide.to_ints(quotient), size_of_all));
    let rest = wide.add_ints(rest, wide.and(wide.greater_ints(zero, rest), size_of_all));
    let above = wide.greater_ints(rest, wide.ints(size - 1));
    wide.sub_ints(rest, wide.and(above, size_of_all))
}
