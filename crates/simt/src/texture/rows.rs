//! The sampler over whole rows of lanes: what [`sample`] and its kin give lane by lane, bit for bit.
//!
//! A [`Plan`] is what an image and a sampler settle before any lane reads: the filter and the level where no level of
//! detail can change them, the sizes of the levels, whether the border can be met. [`Plan::read`] then works on rows: texel
//! coordinates, wrapping and weights of all lanes, one level at a time; texels lane by lane, 16 bytes each; mixing again as
//! rows. Where lanes read different levels, each level is read for all lanes, and each lane keeps its own.
//!
//! Left to the sampler lane by lane: 3D images and cubes, and lanes that lie 2^22 texels or more from the image's origin.
//! The rest of a fetch does not become slower by such lanes.
//!
//! 64 lanes, a 2D image of one level, AVX2, a shared AMD EPYC: nearest 0.3 microseconds, bilinear 0.9; lane by lane both take 7.8.

// Numbers become integers without a check of their range: each place says why they are inside.
#![allow(unsafe_code)]

use super::{
    Compare, Filter, Image, Level, MipFilter, Position, QUIET_NAN, Sampler, Shape, Wrap, filter_of, gather,
    levels_of, lod_of_gradients, lod_of_quad, nearest_level, sample, sample_bits, sample_compare,
    wrap_of_nearest,
};
use crate::level::{self, Task};
use crate::mask::members;
use crate::wide::Wide;

#[cfg(test)]
mod tests;

/// A row: a word a lane.
pub type Words<const N: usize> = [u32; N];

/// The number of lanes that are read together. Groups of all machines are multiples of it, so one compiled function serves them.
const PART: usize = 16;
/// A mask with a bit for each lane of a part.
const PART_LANES: u64 = (1 << PART) - 1;

/// What lanes read.
#[derive(Clone, Copy, Debug)]
pub enum Read<'a, const N: usize> {
    /// [`sample`]
    Floats,
    /// [`sample_bits`]
    Bits,
    /// [`sample_compare`] with the bits of each lane's reference value: the bits of the share, four times.
    Compare(Compare, &'a Words<N>),
    /// [`gather`]: the first component of the four texels.
    Gather,
}

impl<'a, const N: usize> Read<'a, N> {
    fn part(self, part: usize) -> Read<'a, PART> {
        match self {
            Read::Floats => Read::Floats,
            Read::Bits => Read::Bits,
            Read::Compare(compare, reference) => Read::Compare(compare, &reference.as_chunks().0[part]),
            Read::Gather => Read::Gather,
        }
    }
}

/// Where lanes read: [`Position`] as rows of bits.
#[derive(Clone, Copy, Debug)]
pub struct Positions<'a, const N: usize> {
    /// [`Position::coordinates`]
    pub coordinates: [&'a Words<N>; 3],
    /// [`Position::layer`]
    pub layer: &'a Words<N>,
    /// [`Position::offset`]
    pub offset: [i32; 3],
    /// [`Position::lod`]; without meaning where [`Plan::needs_lod`] says no.
    pub lod: &'a Words<N>,
}

impl<'a, const N: usize> Positions<'a, N> {
    fn part(&self, part: usize) -> Positions<'a, PART> {
        Positions {
            coordinates: self.coordinates.map(|row| &row.as_chunks().0[part]),
            layer: &self.layer.as_chunks().0[part],
            offset: self.offset,
            lod: &self.lod.as_chunks().0[part],
        }
    }

    /// Where one lane reads.
    pub fn of(&self, lane: usize) -> Position {
        Position {
            coordinates: self.coordinates.map(|row| f32::from_bits(row[lane])),
            layer: f32::from_bits(self.layer[lane]),
            offset: self.offset,
            lod: f32::from_bits(self.lod[lane]),
        }
    }
}

/// An image and a sampler, prepared for reading.
#[derive(Clone, Debug, PartialEq)]
pub struct Plan {
    sampler: Sampler,
    /// The filter and the level, where no level of detail can change them.
    fixed: Option<(Filter, usize)>,
    /// The level for integer texels, likewise.
    fixed_bits: Option<usize>,
    /// For images that are read by rows.
    grids: Vec<Grid>,
}

/// Sizes of a level that is read by rows.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Grid {
    /// Axes that are filtered and wrapped: 1 or 2.
    axes: usize,
    size: [i32; 2],
    /// From coordinates to texels.
    factor: [f32; 2],
    /// The last layer.
    last_layer: f32,
}

/// Axes of this many texels and more, and images of 2^31 texels, are read lane by lane; so are lanes this far outside.
const FAR: f32 = 4_194_304.0;
/// Offsets up to this keep far from overflow what [`FAR`] does.
const OFFSET: i32 = 1 << 16;

impl Plan {
    /// Prepares an image for a sampler.
    pub fn new(image: &Image, sampler: &Sampler) -> Plan {
        let one_level = sampler.mip == MipFilter::None || image.levels.len() == 1;
        // The extremes of the level of detail after clamping decide, if they decide alike.
        let ends = [f32::NEG_INFINITY, f32::INFINITY];
        let [first, last] = ends.map(|lod| (filter_of(sampler, lod), levels_of(image, sampler, lod)));
        let [first_bits, last_bits] = ends.map(|lod| nearest_level(image, sampler, lod));
        let steady = !sampler.lod_bias.is_nan() && sampler.lod_bias.is_finite();
        let grids =
            image.levels.iter().enumerate().map(|(number, level)| grid(image, sampler, number, level));
        Plan {
            sampler: *sampler,
            fixed: (steady && first == last && first.1.1 == 0.0).then_some((first.0, first.1.0)),
            fixed_bits: (steady && first_bits == last_bits || one_level).then_some(first_bits),
            grids: grids.collect::<Option<_>>().unwrap_or_default(),
        }
    }

    /// Whether the level of detail can change what is read.
    pub fn needs_lod<const N: usize>(&self, read: Read<'_, N>) -> bool {
        match read {
            Read::Floats | Read::Compare(..) => self.fixed.is_none(),
            Read::Bits => self.fixed_bits.is_none(),
            Read::Gather => false,
        }
    }

    /// Reads the image that the plan was made for: four components of the given lanes. Others get any value.
    pub fn read<W: Wide, const N: usize>(
        &self,
        wide: W,
        image: &Image,
        read: Read<'_, N>,
        at: &Positions<'_, N>,
        lanes: u64,
        values: &mut [Words<N>; 4],
    ) {
        let by_rows = !self.grids.is_empty() && at.offset.iter().all(|offset| offset.abs() <= OFFSET);
        let mut slow = lanes;
        if by_rows {
            slow = 0;
            for part in (0..N / PART).filter(|part| lanes >> (PART * part) & PART_LANES != 0) {
                let of_part = lanes >> (PART * part) & PART_LANES;
                let mut read_here = [[0; PART]; 4];
                let far = ReadPart {
                    plan: self,
                    image,
                    read: read.part(part),
                    at: &at.part(part),
                    lanes: of_part,
                    values: &mut read_here,
                }
                .at_level(level::Level::of(wide));
                slow |= (far & of_part) << (PART * part);
                for (row, read_here) in values.iter_mut().zip(&read_here) {
                    row.as_chunks_mut::<PART>().0[part] = *read_here;
                }
            }
        }
        for lane in members(slow) {
            let texel = self.read_lane(image, read, &at.of(lane), lane);
            (0..4).for_each(|channel| values[channel][lane] = texel[channel]);
        }
    }

    /// The plain version of [`Plan::read`]: one lane.
    pub fn read_lane<const N: usize>(
        &self,
        image: &Image,
        read: Read<'_, N>,
        at: &Position,
        lane: usize,
    ) -> [u32; 4] {
        match read {
            Read::Floats => sample(image, &self.sampler, at),
            Read::Bits => sample_bits(image, &self.sampler, at),
            Read::Compare(compare, reference) => {
                let reference = f32::from_bits(reference[lane]);
                [sample_compare(image, &self.sampler, at, compare, reference).to_bits(); 4]
            }
            Read::Gather => gather(image, &self.sampler, at).map(|texel| texel[0]),
        }
    }
}

/// Level of detail of each of the given lanes: [`lod_of_quad`] with the lane's own direction as the one that faces.
/// Coordinates and result are rows of bits.
pub fn lods_of_quads<const N: usize>(
    image: &Image,
    sampler: &Sampler,
    coordinates: [&Words<N>; 3],
    lanes: u64,
) -> Words<N> {
    if !matches!(image.shape, Shape::Cube | Shape::CubeArray) {
        return lods_of_differences(image, sampler, coordinates, lanes);
    }
    let mut lods = [0; N];
    let at = |lane: usize| coordinates.map(|row| f32::from_bits(row[lane]));
    for lane in members(lanes) {
        let quad = [0, 1, 2].map(|place| at(lane & !3 | place));
        lods[lane] = lod_of_quad(image, sampler, at(lane), quad).to_bits();
    }
    lods
}

/// Level of detail of each of the given lanes: [`lod_of_gradients`] of the differences in its quad, computed once a quad.
pub fn lods_of_differences<const N: usize>(
    image: &Image,
    sampler: &Sampler,
    coordinates: [&Words<N>; 3],
    lanes: u64,
) -> Words<N> {
    let mut lods = [0; N];
    let at = |lane: usize| coordinates.map(|row| f32::from_bits(row[lane]));
    for first in (0..N).step_by(4).filter(|first| lanes >> first & 0xf != 0) {
        let origin = at(first);
        let change = |lane: usize| {
            let other = at(lane);
            [0, 1, 2].map(|axis| other[axis] - origin[axis])
        };
        let lod = lod_of_gradients(image, sampler, change(first + 1), change(first + 2));
        lods[first..first + 4].fill(lod.to_bits());
    }
    lods
}

/// [`lod_of_gradients`] of each of the given lanes, from rows of the bits of its gradients. Lanes that have those of the
/// lane before have its level of detail.
pub fn lods_of_gradients<const N: usize>(
    image: &Image,
    sampler: &Sampler,
    [dx, dy]: [[&Words<N>; 3]; 2],
    lanes: u64,
) -> Words<N> {
    let mut lods = [0; N];
    let mut known = None;
    for lane in members(lanes) {
        let gradients = [dx, dy].map(|rows| rows.map(|row| row[lane]));
        let lod = match known {
            Some((same, lod)) if same == gradients => lod,
            _ => {
                let [dx, dy] = gradients.map(|gradient| gradient.map(f32::from_bits));
                lod_of_gradients(image, sampler, dx, dy).to_bits()
            }
        };
        known = Some((gradients, lod));
        lods[lane] = lod;
    }
    lods
}

/// `None` for levels that are not read by rows.
fn grid(image: &Image, sampler: &Sampler, number: usize, level: &Level) -> Option<Grid> {
    let Level { width, height, depth, .. } = *level;
    let (axes, layers) = match image.shape {
        Shape::D1 => (1, 1),
        Shape::D2 => (2, 1),
        Shape::D1Array => (1, depth),
        Shape::D2Array => (2, depth),
        Shape::D3 | Shape::Cube | Shape::CubeArray => return None,
    };
    let fits = [width, height, depth].iter().all(|size| *size as f32 * 4.0 < FAR);
    // Texels of a level are counted in 31 bits.
    if !fits || level.texels.len() >= 1 << 31 {
        return None;
    }
    // Unnormalised coordinates count texels of level 0. A product with a power of two is the quotient by its inverse.
    let unscaled = 1.0 / (1u64 << number.min(63)) as f32;
    let factor = [width, height].map(|size| if sampler.unnormalised { unscaled } else { size as f32 });
    Some(Grid {
        axes,
        size: [width, height].map(|size| size as i32),
        factor,
        last_layer: (layers - 1) as f32,
    })
}

/// [`Plan::read`] by rows, for a part of the lanes. It returns the lanes that [`Plan::read_lane`] must read.
struct ReadPart<'a, 'b> {
    plan: &'a Plan,
    image: &'a Image,
    read: Read<'b, PART>,
    at: &'a Positions<'b, PART>,
    lanes: u64,
    values: &'a mut [Words<PART>; 4],
}

impl ReadPart<'_, '_> {
    /// Reads the part. This function is not generic, so it is compiled in this crate and not again in each machine.
    #[inline(never)]
    fn at_level(self, level: level::Level) -> u64 {
        level.run(self)
    }
}

impl Task for ReadPart<'_, '_> {
    type Output = u64;

    #[inline(always)]
    fn run<W: Wide>(self, wide: W) -> u64 {
        let ReadPart { plan, image, read, at, lanes, values } = self;
        match read {
            Read::Floats => leveled(wide, plan, image, at, lanes, Of::Floats, &Keep, values),
            Read::Bits => leveled(wide, plan, image, at, lanes, Of::Bits, &Keep, values),
            Read::Compare(compare, reference) => {
                let mut share = [[0; PART]];
                let pass = Pass(compare, reference);
                let far = leveled(wide, plan, image, at, lanes, Of::Floats, &pass, &mut share);
                *values = [share[0]; 4];
                far
            }
            Read::Gather => {
                let (grid, level) = (&plan.grids[0], &image.levels[0]);
                let mut near = Near::new(grid, at);
                let far = near.corners(wide, &plan.sampler, grid, at);
                for (value, (x, y)) in values.iter_mut().zip([(0, 1), (1, 1), (1, 0), (0, 0)]) {
                    near.texels(&plan.sampler, level, x, y, std::array::from_mut(value));
                }
                far
            }
        }
    }
}

/// What is made of texels before they are mixed.
trait Convert<const N: usize, const C: usize> {
    fn convert(&self, texels: &mut [Words<N>; C]);
}

/// Nothing.
struct Keep;

impl<const N: usize, const C: usize> Convert<N, C> for Keep {
    #[inline(always)]
    fn convert(&self, _: &mut [Words<N>; C]) {}
}

/// 1 where the lane's reference value and the texel pass, 0 elsewhere.
struct Pass<'a, const N: usize>(Compare, &'a Words<N>);

impl<const N: usize> Convert<N, 1> for Pass<'_, N> {
    #[inline(always)]
    fn convert(&self, [texels]: &mut [Words<N>; 1]) {
        passing(self.0, self.1, texels);
    }
}

/// Which of the level rules counts.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Of {
    Floats,
    Bits,
}

/// Reads the levels that lanes choose and mixes them. Gives the lanes that are too far away.
#[inline(always)]
#[expect(clippy::too_many_arguments, reason = "the parts of one fetch, inlined")]
fn leveled<W: Wide, const N: usize, const C: usize>(
    wide: W,
    plan: &Plan,
    image: &Image,
    at: &Positions<'_, N>,
    lanes: u64,
    of: Of,
    convert: &impl Convert<N, C>,
    values: &mut [Words<N>; C],
) -> u64 {
    let fixed = match of {
        Of::Floats => plan.fixed,
        Of::Bits => plan.fixed_bits.map(|level| (Filter::Nearest, level)),
    };
    if let Some(choice) = fixed {
        return filtered(wide, plan, image, at, choice, convert, values);
    }
    // By level and filter: the lanes that read it, as the larger of their two levels and as the smaller one.
    let mut chosen = [[[0u64; 2]; 2]; LEVELS];
    let mut weights = [0.0; N];
    let mut known = None;
    for lane in members(lanes) {
        // The lanes of a quad mostly have one level of detail.
        let lod = at.lod[lane];
        let (filter, level, between) = match known {
            Some((same, choice)) if same == lod => choice,
            _ => choose(plan, image, f32::from_bits(lod), of),
        };
        known = Some((lod, (filter, level, between)));
        let filter = usize::from(filter == Filter::Linear);
        chosen[level][filter][0] |= 1 << lane;
        if between != 0.0 {
            chosen[level + 1][filter][1] |= 1 << lane;
            weights[lane] = between;
        }
    }
    let (mut found, mut others) = ([[0; N]; C], [[0; N]; C]);
    let mut far = 0;
    let mut mixes = false;
    for (level, of_level) in chosen.iter().enumerate() {
        for (filter, [larger, smaller]) in [Filter::Nearest, Filter::Linear].into_iter().zip(of_level) {
            if larger | smaller == 0 {
                continue;
            }
            far |= filtered(wide, plan, image, at, (filter, level), convert, &mut found) & (larger | smaller);
            for channel in 0..C {
                wide.merge(&mut values[channel], &found[channel], *larger);
                wide.merge(&mut others[channel], &found[channel], *smaller);
            }
            mixes |= *smaller != 0;
        }
    }
    if mixes {
        mix(&weights, values, &others);
    }
    far
}

/// Levels that an image read by rows can have, and one more: its sizes have fewer bits.
const LEVELS: usize = 24;

fn choose(plan: &Plan, image: &Image, lod: f32, of: Of) -> (Filter, usize, f32) {
    match of {
        Of::Floats => {
            let (level, between) = levels_of(image, &plan.sampler, lod);
            (filter_of(&plan.sampler, lod), level, between)
        }
        Of::Bits => (Filter::Nearest, nearest_level(image, &plan.sampler, lod), 0.0),
    }
}

/// Reads one level with one filter, for all lanes. Gives the lanes that are too far away.
#[inline(always)]
fn filtered<W: Wide, const N: usize, const C: usize>(
    wide: W,
    plan: &Plan,
    image: &Image,
    at: &Positions<'_, N>,
    (filter, number): (Filter, usize),
    convert: &impl Convert<N, C>,
    values: &mut [Words<N>; C],
) -> u64 {
    let (grid, level, sampler) = (&plan.grids[number], &image.levels[number], &plan.sampler);
    let mut near = Near::new(grid, at);
    if filter == Filter::Nearest {
        let far = near.nearest(wide, sampler, grid, at);
        near.texels(sampler, level, 0, 0, values);
        convert.convert(values);
        return far;
    }
    let far = near.corners(wide, sampler, grid, at);
    let mut other = [[0; N]; C];
    near.along_s(sampler, level, 0, convert, values, &mut other);
    if grid.axes == 2 {
        let mut above = [[0; N]; C];
        near.along_s(sampler, level, 1, convert, &mut above, &mut other);
        mix(&near.weights[1], values, &above);
    }
    far
}

/// The texels near the lanes' coordinates: by axis, the one to the lower side and the one above it.
struct Near<const N: usize> {
    /// Texels along s.
    x: [[i32; N]; 2],
    /// The first texel of the row and layer.
    y: [[i32; N]; 2],
    /// All ones where the border is.
    outside: [[Words<N>; 2]; 2],
    weights: [[f32; N]; 2],
    /// Whether some wrap mode has a border.
    border: bool,
}

impl<const N: usize> Near<N> {
    /// The lanes' layers; nothing along the axes yet.
    #[inline(always)]
    fn new(grid: &Grid, at: &Positions<'_, N>) -> Near<N> {
        let mut layers = [0; N];
        if grid.last_layer > 0.0 {
            for lane in 0..N {
                // A NaN becomes 0. Rounds to even: behind 2^23 there are no fractions.
                let layer = f32::from_bits(at.layer[lane]).max(0.0).min(grid.last_layer);
                let layer = (layer + 8_388_608.0) - 8_388_608.0;
                // SAFETY: between 0 and the last layer, which is below `FAR`.
                let layer: i32 = unsafe { layer.to_int_unchecked() };
                layers[lane] = layer * grid.size[1] * grid.size[0];
            }
        }
        Near {
            x: [[0; N]; 2],
            y: [layers; 2],
            outside: [[[0; N]; 2]; 2],
            weights: [[0.0; N]; 2],
            border: false,
        }
    }

    /// Takes the texels that coordinates fall into, as those to the lower side. Gives the lanes that are too far away.
    #[inline(always)]
    fn nearest<W: Wide>(&mut self, wide: W, sampler: &Sampler, grid: &Grid, at: &Positions<'_, N>) -> u64 {
        let mut far = 0;
        for axis in 0..grid.axes {
            let texels = texels_along(wide, at.coordinates[axis], grid.factor[axis], &mut far);
            let mut index = [0; N];
            for lane in 0..N {
                // SAFETY: `texels_along` gives numbers nearer than `FAR`.
                index[lane] = unsafe { floor(texels[lane]) } + at.offset[axis];
            }
            self.wrap(grid, axis, 0, wrap_of_nearest(sampler.wrap[axis]), index);
        }
        far
    }

    /// Takes the texels to both sides of coordinates with their weights. Gives the lanes that are too far away.
    #[inline(always)]
    fn corners<W: Wide>(&mut self, wide: W, sampler: &Sampler, grid: &Grid, at: &Positions<'_, N>) -> u64 {
        let mut far = 0;
        for axis in 0..grid.axes {
            let (wrap, offset) = (sampler.wrap[axis], at.offset[axis]);
            let mut texels = texels_along(wide, at.coordinates[axis], grid.factor[axis], &mut far);
            // These two modes stop the coordinate itself, so that the weights stop with it.
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
                for lane in 0..N {
                    let x = texels[lane];
                    let x = if x < least { least } else { x };
                    texels[lane] = if x > most { most } else { x };
                }
            }
            let (mut low, mut high) = ([0; N], [0; N]);
            for lane in 0..N {
                let shifted = texels[lane] - 0.5;
                // SAFETY: `texels_along` gives numbers nearer than `FAR`, and so are what they stop at and a half less.
                let lower = unsafe { floor(shifted) };
                self.weights[axis][lane] = shifted - lower as f32;
                low[lane] = lower + offset;
                high[lane] = lower + offset + 1;
            }
            self.wrap(grid, axis, 0, wrap, low);
            self.wrap(grid, axis, 1, wrap, high);
        }
        far
    }

    /// The first components of the texels on these sides.
    #[inline(always)]
    fn texels<const C: usize>(
        &self,
        sampler: &Sampler,
        level: &Level,
        x: usize,
        y: usize,
        values: &mut [Words<N>; C],
    ) {
        let texels = &level.texels[..];
        let (columns, rows) = (self.x[x].as_chunks::<4>().0, self.y[y].as_chunks::<4>().0);
        for chunk in 0..N / 4 {
            let (column, row) = (columns[chunk], rows[chunk]);
            // Written out, so that four texels become four parts of rows.
            let a = texels[(row[0] + column[0]) as usize];
            let b = texels[(row[1] + column[1]) as usize];
            let c = texels[(row[2] + column[2]) as usize];
            let d = texels[(row[3] + column[3]) as usize];
            for channel in 0..C {
                let part = [a[channel], b[channel], c[channel], d[channel]];
                values[channel].as_chunks_mut::<4>().0[chunk] = part;
            }
        }
        if self.border {
            for channel in 0..C {
                for lane in 0..N {
                    let outside = self.outside[0][x][lane] | self.outside[1][y][lane];
                    let value = values[channel][lane];
                    values[channel][lane] = sampler.border[channel] & outside | value & !outside;
                }
            }
        }
    }

    /// The values on this side along t, mixed along s; `other` is room.
    #[inline(always)]
    fn along_s<const C: usize>(
        &self,
        sampler: &Sampler,
        level: &Level,
        y: usize,
        convert: &impl Convert<N, C>,
        values: &mut [Words<N>; C],
        other: &mut [Words<N>; C],
    ) {
        self.texels(sampler, level, 0, y, values);
        convert.convert(values);
        self.texels(sampler, level, 1, y, other);
        convert.convert(other);
        mix(&self.weights[0], values, other);
    }

    /// Takes texel numbers along an axis for one side, wrapped: all are inside then, or marked as outside.
    #[inline(always)]
    fn wrap(&mut self, grid: &Grid, axis: usize, side: usize, wrap: Wrap, mut index: [i32; N]) {
        let size = grid.size[axis];
        let mirror = |index: i32| index ^ index >> 31;
        match wrap {
            Wrap::Repeat if size & (size - 1) == 0 => {
                index.iter_mut().for_each(|index| *index &= size - 1);
            }
            // SAFETY: an index is a texel nearer than `FAR` and an offset; a level has texels along each axis, and a quarter of
            // `FAR` at most, as `grid` has seen.
            Wrap::Repeat => index.iter_mut().for_each(|index| *index = unsafe { modulo(*index, size) }),
            Wrap::Mirror => index.iter_mut().for_each(|index| {
                // SAFETY: as above.
                let twice = unsafe { modulo(*index, 2 * size) };
                *index = twice.min(2 * size - 1 - twice);
            }),
            Wrap::ClampToEdge => index.iter_mut().for_each(|index| *index = (*index).max(0).min(size - 1)),
            Wrap::MirrorOnceToEdge => {
                index.iter_mut().for_each(|index| *index = mirror(*index).min(size - 1))
            }
            Wrap::Clamp | Wrap::ClampToBorder | Wrap::MirrorOnce | Wrap::MirrorOnceToBorder => {
                self.border = true;
                let once = matches!(wrap, Wrap::MirrorOnce | Wrap::MirrorOnceToBorder);
                let outside = &mut self.outside[axis][side];
                for lane in 0..N {
                    let at = if once { mirror(index[lane]) } else { index[lane] };
                    let inside = at.max(0).min(size - 1);
                    outside[lane] = if at == inside { 0 } else { u32::MAX };
                    index[lane] = inside;
                }
            }
        }
        if axis == 0 {
            self.x[side] = index;
        } else {
            for lane in 0..N {
                self.y[side][lane] += index[lane] * grid.size[0];
            }
        }
    }
}

/// Coordinates of an axis in texels, all nearer than [`FAR`]: 0 for a NaN, and for lanes that are farther, which are added
/// to `far`.
#[inline(always)]
fn texels_along<W: Wide, const N: usize>(
    wide: W,
    coordinates: &Words<N>,
    factor: f32,
    far: &mut u64,
) -> [f32; N] {
    let mut texels = [0.0; N];
    let mut beyond = [0; N];
    for lane in 0..N {
        let scaled = f32::from_bits(coordinates[lane]) * factor;
        let magnitude = (scaled.to_bits() & 0x7fff_ffff) as i32;
        let near = magnitude < FAR.to_bits() as i32;
        texels[lane] = if near { scaled } else { 0.0 };
        let number = magnitude <= f32::INFINITY.to_bits() as i32;
        beyond[lane] = if !near & number { u32::MAX } else { 0 };
    }
    *far |= wide.signs(&beyond);
    texels
}

/// The integer below.
///
/// # Safety
/// The number is no NaN, and its magnitude is below 2^31.
#[inline(always)]
unsafe fn floor(x: f32) -> i32 {
    // SAFETY: the number fits, as the caller says.
    let towards_zero: i32 = unsafe { x.to_int_unchecked() };
    towards_zero - i32::from(towards_zero as f32 > x)
}

/// `index` modulo `size`, not negative; they are exact as floats, and the quotient is wrong by one at most.
///
/// # Safety
/// Both have at most 23 bits, and `size` is not 0.
#[inline(always)]
unsafe fn modulo(index: i32, size: i32) -> i32 {
    // SAFETY: the quotient is no larger than the index, which has at most 23 bits.
    let quotient = unsafe { floor(index as f32 / size as f32) };
    let rest = index - quotient * size;
    let rest = if rest < 0 { rest + size } else { rest };
    if rest >= size { rest - size } else { rest }
}

/// `low` becomes low * (1 - weight) + high * weight; at weights 0 and 1 one side alone, bit for bit.
#[inline(always)]
fn mix<const N: usize, const C: usize>(weights: &[f32; N], low: &mut [Words<N>; C], high: &[Words<N>; C]) {
    for channel in 0..C {
        let (low, high) = (&mut low[channel], &high[channel]);
        for lane in 0..N {
            let weight = weights[lane];
            let mixed = f32::from_bits(low[lane]) * (1.0 - weight) + f32::from_bits(high[lane]) * weight;
            let bits = if mixed.is_nan() { QUIET_NAN } else { mixed.to_bits() };
            let bits = if weight == 0.0 { low[lane] } else { bits };
            low[lane] = if weight == 1.0 { high[lane] } else { bits };
        }
    }
}

/// 1 where the reference value and the texel pass, 0 elsewhere.
#[inline(always)]
fn passing<const N: usize>(compare: Compare, reference: &Words<N>, texels: &mut Words<N>) {
    macro_rules! with {
        ($holds:expr) => {
            for lane in 0..N {
                let passes = $holds(f32::from_bits(reference[lane]), f32::from_bits(texels[lane]));
                texels[lane] = if passes { 1f32.to_bits() } else { 0 };
            }
        };
    }
    // One loop for each comparison, without a choice inside.
    match compare {
        Compare::Never => with!(|_: f32, _: f32| false),
        Compare::Less => with!(|a: f32, b: f32| a < b),
        Compare::Equal => with!(|a: f32, b: f32| a == b),
        Compare::LessEqual => with!(|a: f32, b: f32| a <= b),
        Compare::Greater => with!(|a: f32, b: f32| a > b),
        Compare::NotEqual => with!(|a: f32, b: f32| a != b),
        Compare::GreaterEqual => with!(|a: f32, b: f32| a >= b),
        Compare::Always => with!(|_: f32, _: f32| true),
    }
}
