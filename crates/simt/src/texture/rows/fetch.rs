//! Reads texels of lanes by their indices, without a filter.

use super::super::{Image, Level, Texels};
use super::stored::{Fields, OfFractions, Stored, Wholes};
use super::{EIGHT, Grid, Plan, vectors};
use crate::level::{self, Task};
use crate::wide::{Eight, Wide, Words8};

/// The task of reading rows for [`Plan::fetch`].
pub(super) struct FetchRows<'a> {
    pub(super) plan: &'a Plan,
    pub(super) image: &'a Image,
    pub(super) numbers: [&'a [Words8]; 3],
    pub(super) offset: [i32; 3],
    pub(super) level: &'a [Words8],
    pub(super) lanes: u64,
    pub(super) values: [&'a mut [Words8]; 4],
}

impl FetchRows<'_> {
    /// Reads the rows. The comment at [`ReadRows::at_level`](super::ReadRows::at_level) explains why this function is
    /// not generic.
    #[inline(never)]
    pub(super) fn at_level(self, level: level::Level) {
        level.run(self);
    }
}

impl Task for FetchRows<'_> {
    type Output = ();

    #[inline(always)]
    fn run<W: Wide>(self, wide: W) {
        let wide = wide.eight();
        let FetchRows { plan, image, numbers, offset, level: levels, lanes, mut values } = self;
        for (vector, of_vector) in vectors(lanes) {
            let mut left = of_vector;
            while left != 0 {
                let number = levels[vector][left.trailing_zeros() as usize & (EIGHT - 1)];
                let of_lanes = wide.load(&levels[vector]);
                let same = wide.equal_ints(of_lanes, wide.ints(number as i32));
                left &= !wide.lanes(same);
                let (Some(level), Some(grid)) =
                    (image.levels.get(number as usize), plan.grids.get(number as usize))
                else {
                    continue;
                };
                let (mut inside, mut places) = (same, wide.ints(grid.first));
                for axis in 0..3 {
                    let (zero, size) = (wide.ints(0), wide.ints(grid.size[axis]));
                    // Even if the sum overflows, the resulting index is far outside the image.
                    let index = wide.load(&numbers[axis][vector]);
                    let index = wide.add_ints(index, wide.ints(offset[axis]));
                    let holds = wide.and_not(wide.greater_ints(size, index), wide.greater_ints(zero, index));
                    inside = wide.and(inside, holds);
                    let step = wide.mul_ints(wide.and(index, holds), wide.ints(grid.steps[axis]));
                    places = wide.add_ints(places, step);
                }
                let values = values.each_mut().map(|row| &mut row[vector]);
                wide.call(Fetching {
                    grid,
                    level,
                    places: wide.store(places),
                    inside: wide.lanes(inside),
                    values,
                });
            }
        }
    }
}

/// The task of reading texels of one level. The task reads only the lanes whose indices are inside the level.
struct Fetching<'a> {
    grid: &'a Grid,
    level: &'a Level,
    places: Words8,
    inside: u32,
    values: [&'a mut Words8; 4],
}

impl Task for Fetching<'_> {
    type Output = ();

    #[inline(always)]
    fn run<W: Wide>(self, wide: W) {
        let wide = wide.eight();
        let places = wide.load(&self.places);
        let texels = match (&self.level.texels, &self.grid.fractions) {
            (Texels::Words(words), _) => Stored::<4>::read(&Wholes(words), wide, places),
            (Texels::Later(words), _) => Stored::<4>::read(&Wholes(words), wide, places),
            (Texels::Elements(elements), Some(fractions)) => {
                OfFractions::new(elements, fractions).read(wide, places)
            }
            (Texels::Elements(elements), None) => Fields::new(elements).read(wide, places),
        };
        let inside = wide.mask(self.inside);
        for (value, texel) in self.values.into_iter().zip(texels) {
            *value = wide.store(wide.choose(inside, texel, wide.load(value)));
        }
    }
}
