//! The sampler over whole rows of lanes. For each lane, its results and the results of [`sample`] and its variants are
//! equal, bit for bit.
//!
//! A [`Plan`] holds the properties of an image and a sampler that do not depend on a lane. These properties are the
//! sizes of the levels, and whether a lane can read the border. If the level of detail cannot change the filter and the
//! level, the plan also contains the filter and the level. [`Plan::read`] processes vectors of eight lanes. It
//! processes one level after another. For each level, [`Plan::read`] first computes texel coordinates, wrapping and
//! weights (`near.rs`). [`Plan::read`] then reads and converts the texels (`stored.rs`), and mixes the converted
//! texels. If lanes select different levels, each level is read for all eight lanes. Each lane then keeps the result of
//! its selected level. For a cube, `cube.rs` first projects the directions onto the faces. The faces are then read as
//! layers. [`Plan::read_flat`] is a faster function for the most frequent reads. [`Plan::fetch`] reads texels by their
//! indices. `lods.rs` computes levels of detail.
//!
//! [`Plan::read_along`] in `along.rs` reads the positions of anisotropic filters.
//!
//! The per-lane sampler still reads two kinds of lanes. The coordinates of the first kind are 2^22 texels or more away
//! from the image's origin. Lanes of the second kind are at the edges of the faces of a seamless cube. All other lanes
//! of the fetch are read as rows.

use super::{
    Compare, Filter, Image, Level, MipFilter, Position, QUIET_NAN, Sampler, Shape, Texels, Wrap, filter_of,
    gather, levels_of, nearest_level, sample, sample_bits, sample_compare,
};
use crate::level::{self, Task};
use crate::mask::members;
use crate::wide::{Eight, Wide, Words8};

mod along;
mod cube;
mod fetch;
mod flat;
mod lods;
mod near;
mod stored;
#[cfg(test)]
mod tests;

use cube::Project;
use fetch::FetchRows;
use flat::Flat;
pub use flat::FlatRows;
pub use lods::{lods_of_differences, lods_of_gradients, lods_of_quads, lods_on_faces};
use near::{Along, Near, reads_border};
use stored::{Fields, Fractions, OfFractions, Stored, Wholes};

/// A row, with one word per lane.
pub type Words<const N: usize> = [u32; N];

/// Number of lanes in a vector. On all machines, the number of lanes in a group is a multiple of this number.
const EIGHT: usize = 8;
/// The set of all lanes in a vector, with one bit per lane.
const EIGHT_LANES: u64 = (1 << EIGHT) - 1;
/// Maximum number of vectors in a group.
const VECTORS: usize = u64::BITS as usize / EIGHT;

/// Kind of result that lanes read.
#[derive(Clone, Copy, Debug)]
pub enum Read<'a, const N: usize> {
    /// The result of [`sample`].
    Floats,
    /// The result of [`sample_bits`].
    Bits,
    /// The bits of the result of [`sample_compare`], in all four components. The row contains the bits of each lane's
    /// reference value.
    Compare(Compare, &'a Words<N>),
    /// [`gather`]: the first component of the four texels.
    Gather,
}

/// The positions that lanes read. Each field of [`Position`] is a row of bits.
#[derive(Clone, Copy, Debug)]
pub struct Positions<'a, const N: usize> {
    /// [`Position::coordinates`] of each lane.
    pub coordinates: [&'a Words<N>; 3],
    /// [`Position::layer`] of each lane.
    pub layer: &'a Words<N>,
    /// [`Position::offset`], which is the same for all lanes.
    pub offset: [i32; 3],
    /// [`Position::lod`] of each lane. The level of detail is ignored if [`Plan::needs_lod`] returns `false`.
    pub lod: &'a Words<N>,
}

impl<const N: usize> Positions<'_, N> {
    /// Returns the position of one lane.
    pub fn of(&self, lane: usize) -> Position {
        Position {
            coordinates: self.coordinates.map(|row| f32::from_bits(row[lane])),
            layer: f32::from_bits(self.layer[lane]),
            offset: self.offset,
            lod: f32::from_bits(self.lod[lane]),
        }
    }
}

/// Texels that lanes read by their indices.
#[derive(Clone, Copy, Debug)]
pub struct Texel<'a, const N: usize> {
    /// Indices along each axis, as signed integers.
    pub numbers: [&'a Words<N>; 3],
    /// Offset that is added to the indices.
    pub offset: [i32; 3],
    /// Mip level of each lane.
    pub level: &'a Words<N>,
}

impl<const N: usize> Texel<'_, N> {
    /// Returns the texel that [`Plan::fetch`] reads for one lane.
    pub fn of(&self, image: &Image, lane: usize) -> [u32; 4] {
        let [x, y, z] =
            [0, 1, 2].map(|axis| i64::from(self.numbers[axis][lane] as i32) + i64::from(self.offset[axis]));
        image.texel(self.level[lane] as usize, x, y, z).unwrap_or_default()
    }
}

/// An image and a sampler, prepared for reads of rows.
#[derive(Clone, Debug, PartialEq)]
pub struct Plan {
    /// The sampler. For a cube, the wrap modes of this sampler clamp coordinates to the edges of the faces.
    sampler: Sampler,
    /// The filter and the level for float texels. The field is `None` if the level of detail can change the filter or
    /// the level.
    fixed: Option<(Filter, usize)>,
    /// The level for integer texels, or `None` if the level of detail can change this level.
    fixed_bits: Option<usize>,
    /// Grid of each level. Empty if the image must be read lane by lane.
    grids: Vec<Grid>,
    /// The fast read of float texels, or `None` if the image and the sampler do not allow the fast read.
    flat: Option<Flat>,
}

/// Size of a level that is read as rows, and the positions of the level's texels in memory.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Grid {
    /// Number of axes that are filtered and wrapped, 1 to 3.
    axes: usize,
    /// Width and height in texels, and number of slices, layers or faces.
    size: [i32; 3],
    /// Factor that converts coordinates to texels, for each axis.
    factor: [f32; 3],
    /// Number of the last layer. The faces of cubes are layers.
    last_layer: f32,
    /// Offset of the first texel in bytes.
    first: i32,
    /// Three distances in bytes: from a texel to the next texel of its row, from a row to the next row, and from a
    /// layer to the next layer.
    steps: [i32; 3],
    /// The fast conversion of elements that consist of fractions.
    fractions: Option<Fractions>,
}

/// Distance from the origin, in texels. Lanes at this distance or farther are read one by one. Large images are an
/// exception: all their lanes are read one by one. An image is large if a level has at least a quarter of this number
/// of texels along an axis, or extends over 2^31 bytes or more.
const FAR: f32 = 4_194_304.0;
/// Size in bytes of a texel that is stored as four words.
const TEXEL: usize = size_of::<[u32; 4]>();
/// Maximum size of an offset for reads of rows. If a coordinate is within [`FAR`], the sum of an offset and the
/// coordinate does not overflow.
const OFFSET: i32 = 1 << 16;

impl Plan {
    /// Returns a plan for an image and a sampler.
    pub fn new(image: &Image, sampler: &Sampler) -> Plan {
        let one_level = sampler.mip == MipFilter::None || image.levels.len() == 1;
        // If the smallest and the largest level of detail select the same filter and level, every level of detail
        // between the smallest and the largest makes the same selection.
        let ends = [f32::NEG_INFINITY, f32::INFINITY];
        let [first, last] = ends.map(|lod| (filter_of(sampler, lod), levels_of(image, sampler, lod)));
        let [first_bits, last_bits] = ends.map(|lod| nearest_level(image, sampler, lod));
        let steady = !sampler.lod_bias.is_nan() && sampler.lod_bias.is_finite();
        let sampler = match is_cube(image) {
            true => Sampler { wrap: [Wrap::ClampToEdge; 3], unnormalised: false, ..*sampler },
            false => Sampler { seamless: false, ..*sampler },
        };
        let grids =
            image.levels.iter().enumerate().map(|(number, level)| grid(image, &sampler, number, level));
        let grids: Vec<Grid> = grids.collect::<Option<_>>().unwrap_or_default();
        let fixed = (steady && first == last && first.1.1 == 0.0).then_some((first.0, first.1.0));
        Plan {
            sampler,
            fixed,
            fixed_bits: (steady && first_bits == last_bits || one_level).then_some(first_bits),
            flat: fixed.and_then(|choice| Flat::new(image, &sampler, choice, &grids)),
            grids,
        }
    }

    /// Returns the level if all lanes read one float texel each, from the same level. Returns `None` if the level of
    /// detail can change the level, or if lanes may read several texels.
    pub fn nearest_level(&self) -> Option<usize> {
        let single =
            self.fixed.filter(|(filter, _)| *filter == Filter::Nearest && self.sampler.anisotropy <= 1);
        single.map(|(_, level)| level)
    }

    /// Returns whether the level of detail can change the result of a read.
    pub fn needs_lod<const N: usize>(&self, read: Read<'_, N>) -> bool {
        match read {
            Read::Floats | Read::Compare(..) => self.fixed.is_none(),
            Read::Bits => self.fixed_bits.is_none(),
            Read::Gather => false,
        }
    }

    /// Reads four components for the given lanes. `image` must be the image of the plan. The results of other lanes are
    /// unspecified.
    pub fn read<W: Wide, const N: usize>(
        &self,
        wide: W,
        image: &Image,
        read: Read<'_, N>,
        at: &Positions<'_, N>,
        lanes: u64,
        values: &mut [Words<N>; 4],
    ) {
        // With an offset, any lane may cross an edge between faces of a seamless cube.
        let within_faces = !self.sampler.seamless || at.offset == [0; 3];
        let near = at.offset.iter().all(|offset| offset.abs() <= OFFSET);
        let by_rows = !self.grids.is_empty() && within_faces && near;
        let mut slow = lanes;
        if by_rows {
            let rows = ReadRows {
                plan: self,
                image,
                read: match read {
                    Read::Floats => Reading::Floats,
                    Read::Bits => Reading::Bits,
                    Read::Compare(compare, reference) => Reading::Compare(compare, eights(reference)),
                    Read::Gather => Reading::Gather,
                },
                at: Eights {
                    coordinates: at.coordinates.map(eights),
                    layer: eights(at.layer),
                    offset: at.offset,
                    lod: eights(at.lod),
                },
                lanes,
                values: values.each_mut().map(|row| row.as_chunks_mut::<EIGHT>().0),
            };
            slow = rows.at_level(level::Level::of(wide)) & lanes;
        }
        for lane in members(slow) {
            let texel = self.read_lane(image, read, &at.of(lane), lane);
            (0..4).for_each(|channel| values[channel][lane] = texel[channel]);
        }
    }

    /// Reads texels by their indices. `image` must be the image of the plan. For indices outside the image, the result
    /// is 0.
    pub fn fetch<W: Wide, const N: usize>(
        &self,
        wide: W,
        image: &Image,
        at: &Texel<'_, N>,
        lanes: u64,
        values: &mut [Words<N>; 4],
    ) {
        if self.grids.is_empty() || at.offset.iter().any(|offset| offset.abs() > OFFSET) {
            for lane in members(lanes) {
                let texel = at.of(image, lane);
                (0..4).for_each(|channel| values[channel][lane] = texel[channel]);
            }
            return;
        }
        let rows = FetchRows {
            plan: self,
            image,
            numbers: at.numbers.map(eights),
            offset: at.offset,
            level: eights(at.level),
            lanes,
            values: values.each_mut().map(|row| row.as_chunks_mut::<EIGHT>().0),
        };
        rows.at_level(level::Level::of(wide));
    }

    /// Returns the result of [`Plan::read`] for one lane, with the per-lane sampler.
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

/// Returns a row as vectors of eight lanes.
fn eights<const N: usize>(row: &Words<N>) -> &[Words8] {
    row.as_chunks().0
}

/// Returns whether the coordinates of an image are directions.
fn is_cube(image: &Image) -> bool {
    matches!(image.shape, Shape::Cube | Shape::CubeArray)
}

/// Returns the grid of a level, or `None` if the level cannot be read as rows.
fn grid(image: &Image, sampler: &Sampler, number: usize, level: &Level) -> Option<Grid> {
    let Level { width, height, depth, .. } = *level;
    let axes = image.shape.axes();
    let layers = if image.shape == Shape::D3 { 1 } else { depth };
    if [width, height, depth].iter().any(|size| *size as f32 * 4.0 >= FAR) {
        return None;
    }
    let (first, steps, fractions) = match &level.texels {
        Texels::Words(_) | Texels::Later(_) => {
            let row = (width as usize).checked_mul(TEXEL)?;
            (0, [TEXEL, row, row.checked_mul(height as usize)?], None)
        }
        Texels::Elements(elements) => {
            let strides = elements.strides();
            let steps = [strides.element, strides.row, strides.slice];
            (strides.start, steps, Fractions::new(elements.channels()))
        }
    };
    // Positions of texels must fit into 31 bits.
    let sizes = [width, height, depth].map(|size| size as usize);
    let last =
        sizes.iter().zip(steps).try_fold(first, |at, (size, step)| size.checked_mul(step)?.checked_add(at));
    last.filter(|last| i32::try_from(*last).is_ok())?;
    // Unnormalised coordinates count texels of level 0. Instead of dividing these coordinates by a power of two, the
    // code multiplies them by the inverse of the power. The result is the same.
    let unscaled = 1.0 / (1u64 << number.min(63)) as f32;
    let factor = [width, height, depth].map(|size| if sampler.unnormalised { unscaled } else { size as f32 });
    Some(Grid {
        axes,
        size: [width, height, depth].map(|size| size as i32),
        factor,
        last_layer: (layers - 1) as f32,
        first: first as i32,
        steps: steps.map(|step| step as i32),
        fractions,
    })
}

/// [`Read`], with the reference values as vectors.
#[derive(Clone, Copy)]
enum Reading<'a> {
    Floats,
    Bits,
    Compare(Compare, &'a [Words8]),
    Gather,
}

/// [`Positions`], with the rows as vectors.
#[derive(Clone, Copy)]
struct Eights<'a> {
    coordinates: [&'a [Words8]; 3],
    layer: &'a [Words8],
    offset: [i32; 3],
    lod: &'a [Words8],
}

/// The task that reads rows for [`Plan::read`]. The task returns the set of lanes that [`Plan::read_lane`] must read.
struct ReadRows<'a> {
    plan: &'a Plan,
    image: &'a Image,
    read: Reading<'a>,
    at: Eights<'a>,
    lanes: u64,
    values: [&'a mut [Words8]; 4],
}

/// Returns the vectors that contain at least one of the lanes. For each of these vectors, the result has the number of
/// the vector and the set of those lanes that are in the vector.
fn vectors(lanes: u64) -> impl Iterator<Item = (usize, u32)> {
    let of = move |number: usize| (lanes >> (EIGHT * number) & EIGHT_LANES) as u32;
    (0..VECTORS).map(move |number| (number, of(number))).filter(|(_, lanes)| *lanes != 0)
}

impl ReadRows<'_> {
    /// Reads the rows. This function is not generic. So it is compiled once in this crate, and not again in the crate
    /// of each machine.
    #[inline(never)]
    fn at_level(self, level: level::Level) -> u64 {
        level.run(self)
    }
}

impl Task for ReadRows<'_> {
    type Output = u64;

    #[inline(always)]
    fn run<W: Wide>(self, wide: W) -> u64 {
        let wide = wide.eight();
        let ReadRows { plan, image, read, mut at, lanes, values } = self;
        let on_layers;
        if is_cube(image) {
            on_layers = wide.call(Project { image, at: &at, lanes });
            at = on_layers.of(&at);
        }
        match read {
            Reading::Floats => leveled(wide, (plan, image), &at, lanes, Of::Floats, Keep, values),
            Reading::Bits => leveled(wide, (plan, image), &at, lanes, Of::Bits, Keep, values),
            Reading::Compare(compare, reference) => {
                let [first, others @ ..] = values;
                let pass = Pass(compare, reference);
                let far = leveled(wide, (plan, image), &at, lanes, Of::Floats, pass, [&mut *first]);
                others.into_iter().for_each(|row| row.copy_from_slice(first));
                far
            }
            Reading::Gather => {
                let level = OneLevel::new((plan, image), (Filter::Linear, 0), at, lanes, Keep, [&mut []]);
                wide.call(Gathering(level, values))
            }
        }
    }
}

/// Converts texels before the texels are mixed.
trait Convert<const C: usize>: Copy {
    /// Whether all results are finite and not negative, for any texels.
    const TAME: bool;

    /// Converts the texels of the vector with this number.
    fn convert<E: Eight>(self, wide: E, number: usize, texels: [E::Ints; C]) -> [E::Ints; C];
}

/// The conversion that leaves texels unchanged.
#[derive(Clone, Copy)]
struct Keep;

impl<const C: usize> Convert<C> for Keep {
    const TAME: bool = false;

    #[inline(always)]
    fn convert<E: Eight>(self, _: E, _: usize, texels: [E::Ints; C]) -> [E::Ints; C] {
        texels
    }
}

/// The conversion that compares each lane's reference value with the texel. The result is 1 if the comparison is true,
/// otherwise 0.
#[derive(Clone, Copy)]
struct Pass<'a>(Compare, &'a [Words8]);

impl Convert<1> for Pass<'_> {
    const TAME: bool = true;

    #[inline(always)]
    fn convert<E: Eight>(self, wide: E, number: usize, [texels]: [E::Ints; 1]) -> [E::Ints; 1] {
        let (a, b) = (wide.of_bits(wide.load(&self.1[number])), wide.of_bits(texels));
        let all = wide.ints(-1);
        let passes = match self.0 {
            Compare::Never => wide.ints(0),
            Compare::Less => wide.less(a, b),
            Compare::Equal => wide.equal(a, b),
            Compare::LessEqual => wide.less_equal(a, b),
            Compare::Greater => wide.less(b, a),
            Compare::NotEqual => wide.and_not(all, wide.equal(a, b)),
            Compare::GreaterEqual => wide.less_equal(b, a),
            Compare::Always => all,
        };
        [wide.and(passes, wide.ints(1f32.to_bits() as i32))]
    }
}

/// The kind of texels, which determines how a lane chooses the level.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Of {
    Floats,
    Bits,
}

/// The levels and filters that eight lanes choose.
struct Choices<E: Eight> {
    /// The level that each lane reads. If a lane reads two levels, the word is the larger level.
    levels: E::Ints,
    /// Mask of the lanes that use linear filtering.
    linear: E::Ints,
    /// If the lane reads two levels, the weight of the smaller level. If the lane reads only one level, the weight is
    /// 0.
    weights: E::Floats,
}

impl<E: Eight> Choices<E> {
    /// Computes [`filter_of`] and [`levels_of`] for all lanes, or [`nearest_level`] for [`Of::Bits`].
    #[inline(always)]
    fn new(wide: E, plan: &Plan, levels: usize, lods: &Words8, of: Of) -> Choices<E> {
        let sampler = &plan.sampler;
        // An image that is read as rows has few levels, so a single represents the number exactly.
        let (last, zero) = ((levels - 1) as f32, wide.floats(0.0));
        let lod = wide.add(wide.of_bits(wide.load(lods)), wide.floats(sampler.lod_bias));
        // Replace a NaN by 0.
        let lod = wide.of_bits(wide.and(wide.equal(lod, lod), wide.bits(lod)));
        // As in `clamped_lod`, a limit that is a NaN has no effect.
        let at_least = wide.max(wide.floats(sampler.min_lod), lod);
        let lod = wide.min(wide.floats(sampler.max_lod), at_least);
        let mask = |filter: Filter| wide.ints(if filter == Filter::Linear { -1 } else { 0 });
        let linear = match of {
            Of::Bits => wide.ints(0),
            Of::Floats => wide.choose(wide.less(zero, lod), mask(sampler.min), mask(sampler.mag)),
        };
        let limited = |lod, most: f32| wide.min(wide.max(lod, zero), wide.floats(most));
        let (levels, weights) = match (sampler.mip, of) {
            (MipFilter::None, _) => (wide.ints(0), zero),
            (MipFilter::Linear, Of::Floats) => {
                // Two levels are not mixed if the level of detail is at or beyond the last level, or below 0.
                let level = limited(lod, last);
                let larger = wide.to_ints(level);
                (larger, wide.sub(level, wide.to_floats(larger)))
            }
            (MipFilter::Nearest, _) | (MipFilter::Linear, Of::Bits) => {
                let above = limited(wide.add(lod, wide.floats(0.5)), last + 1.0);
                let whole = wide.to_ints(above);
                // Compute the ceiling minus 1. If the number is whole, the mask `exact` is all ones, which is -1.
                let exact = wide.equal(wide.to_floats(whole), above);
                (wide.max_ints(wide.add_ints(whole, exact), wide.ints(0)), zero)
            }
        };
        Choices { levels, linear, weights }
    }
}

/// Each lane selects levels. Reads texels of the selected levels and mixes these texels. Returns the lanes that are too
/// far away from the origin to be read as rows.
#[inline(always)]
fn leveled<E: Eight, V: Convert<C>, const C: usize>(
    wide: E,
    (plan, image): (&Plan, &Image),
    at: &Eights<'_>,
    lanes: u64,
    of: Of,
    convert: V,
    values: [&mut [Words8]; C],
) -> u64 {
    let fixed = match of {
        Of::Floats => plan.fixed,
        Of::Bits => plan.fixed_bits.map(|level| (Filter::Nearest, level)),
    };
    if let Some(choice) = fixed {
        return wide.call(OneLevel::new((plan, image), choice, *at, lanes, convert, values)).0;
    }
    // The arrays have only as many elements as the group requires, because clearing fewer elements takes less time.
    match at.lod.len() {
        0..=2 => by_choice::<E, V, C, 2>(wide, (plan, image), at, lanes, of, convert, values),
        3..=4 => by_choice::<E, V, C, 4>(wide, (plan, image), at, lanes, of, convert, values),
        _ => by_choice::<E, V, C, VECTORS>(wide, (plan, image), at, lanes, of, convert, values),
    }
}

/// Implements [`leveled`] for a group of up to `M` vectors. Each lane selects its level.
#[inline(always)]
fn by_choice<E: Eight, V: Convert<C>, const C: usize, const M: usize>(
    wide: E,
    (plan, image): (&Plan, &Image),
    at: &Eights<'_>,
    lanes: u64,
    of: Of,
    convert: V,
    mut values: [&mut [Words8]; C],
) -> u64 {
    let mut all = [Chosen::NONE; M];
    let (mut first, mut same, mut mixed) = (None, true, 0);
    for (number, of_vector) in vectors(lanes) {
        let choices = Choices::new(wide, plan, image.levels.len(), &at.lod[number], of);
        let chosen = &mut all[number];
        (chosen.levels, chosen.linear) = (wide.store(choices.levels), wide.lanes(choices.linear));
        chosen.weights = wide.store(wide.bits(choices.weights));
        chosen.mixed = !wide.lanes(wide.equal(choices.weights, wide.floats(0.0))) & of_vector;
        mixed |= u64::from(chosen.mixed) << (EIGHT * number);
        let (filter, level) = *first.get_or_insert_with(|| chosen.of(of_vector.trailing_zeros() as usize));
        let other_level = !wide.lanes(wide.equal_ints(choices.levels, wide.ints(level as i32)));
        let other_filter = chosen.linear ^ if filter == Filter::Linear { u32::MAX } else { 0 };
        same &= (other_level | other_filter) & of_vector == 0;
    }
    let Some(choice) = first else { return 0 };
    let mut others = [[[0; EIGHT]; M]; C];
    if same {
        // The common case: all lanes read the same levels.
        let rows = values.each_mut().map(|row| &mut **row);
        let (mut far, mut tame) = wide.call(OneLevel::new((plan, image), choice, *at, lanes, convert, rows));
        if mixed != 0 {
            let (second, rows) = ((choice.0, choice.1 + 1), others.each_mut().map(|row| &mut row[..]));
            let (beyond, is_tame) =
                wide.call(OneLevel::new((plan, image), second, *at, mixed, convert, rows));
            (far, tame) = (far | beyond & mixed, tame & is_tame);
            wide.call(Mixing { tame, chosen: &all, lanes: mixed, values, others: &others });
        }
        return far;
    }
    // For each level and each filter, two sets of lanes. For the lanes of the first set, the level is the larger of the
    // two levels that the lane reads. For the lanes of the second set, the level is the smaller of the two levels.
    let mut readers = [[[0u64; 2]; 2]; LEVELS];
    for lane in members(lanes) {
        let chosen = &all[lane / EIGHT];
        let (filter, level) = chosen.of(lane % EIGHT);
        let filter = usize::from(filter == Filter::Linear);
        readers[level][filter][0] |= 1 << lane;
        if mixed >> lane & 1 != 0 {
            readers[level + 1][filter][1] |= 1 << lane;
        }
    }
    let mut far = 0;
    for (level, of_level) in readers.iter().enumerate() {
        for (filter, [larger, smaller]) in [Filter::Nearest, Filter::Linear].into_iter().zip(of_level) {
            let reading = larger | smaller;
            if reading == 0 {
                continue;
            }
            let mut found = [[[0; EIGHT]; M]; C];
            let rows = found.each_mut().map(|row| &mut row[..]);
            let one_level = OneLevel::new((plan, image), (filter, level), *at, reading, convert, rows);
            far |= wide.call(one_level).0 & reading;
            for (number, _) in vectors(reading) {
                let [larger, smaller] =
                    [*larger, *smaller].map(|lanes| wide.mask((lanes >> (EIGHT * number)) as u32));
                for channel in 0..C {
                    let found = wide.load(&found[channel][number]);
                    let (value, other) = (&mut values[channel][number], &mut others[channel][number]);
                    *value = wide.store(wide.choose(larger, found, wide.load(value)));
                    *other = wide.store(wide.choose(smaller, found, wide.load(other)));
                }
            }
        }
    }
    if mixed != 0 {
        wide.call(Mixing { tame: false, chosen: &all, lanes: mixed, values, others: &others });
    }
    far
}

/// The levels and filters that eight lanes have chosen.
#[derive(Clone, Copy)]
struct Chosen {
    /// The level that each lane reads. If a lane reads two levels, the word is the larger level.
    levels: Words8,
    /// Set of the lanes that use linear filtering.
    linear: u32,
    /// For each lane, the bits of the weight of the smaller of its two levels.
    weights: Words8,
    /// Set of the lanes whose weight is not 0.
    mixed: u32,
}

impl Chosen {
    const NONE: Chosen = Chosen { levels: [0; EIGHT], linear: 0, weights: [0; EIGHT], mixed: 0 };

    /// Returns the filter that a lane selects, and the larger of the two levels that the lane reads.
    #[inline(always)]
    fn of(&self, lane: usize) -> (Filter, usize) {
        let filter = if self.linear >> lane & 1 != 0 { Filter::Linear } else { Filter::Nearest };
        (filter, self.levels[lane % EIGHT] as usize)
    }
}

/// The task of mixing the values of two levels.
struct Mixing<'a, const C: usize, const M: usize> {
    tame: bool,
    chosen: &'a [Chosen; M],
    lanes: u64,
    values: [&'a mut [Words8]; C],
    others: &'a [[Words8; M]; C],
}

impl<const C: usize, const M: usize> Task for Mixing<'_, C, M> {
    type Output = ();

    #[inline(always)]
    fn run<W: Wide>(self, wide: W) {
        let wide = wide.eight();
        let Mixing { tame, chosen, lanes, values, others } = self;
        for (values, others) in values.into_iter().zip(others) {
            for (number, _) in vectors(lanes) {
                let weights = wide.of_bits(wide.load(&chosen[number].weights));
                let [low, high] = [wide.load(&values[number]), wide.load(&others[number])];
                let [mixed] = mix(wide, tame, weights, [low], [high]);
                values[number] = wide.store(mixed);
            }
        }
    }
}

/// Size of an array with one element per level. An image that is read as rows has fewer levels than this number,
/// because the image's sizes have fewer bits.
const LEVELS: usize = 24;

/// The task of reading one level with one filter. The task covers all vectors that contain some of the lanes. It
/// returns the lanes that are too far away from the origin to be read as rows. It also returns whether all values are
/// finite and not negative.
struct OneLevel<'a, 'b, V, const C: usize> {
    grid: &'a Grid,
    level: &'a Level,
    sampler: &'a Sampler,
    filter: Filter,
    at: Eights<'a>,
    lanes: u64,
    convert: V,
    values: [&'b mut [Words8]; C],
}

impl<'a, 'b, V: Convert<C>, const C: usize> OneLevel<'a, 'b, V, C> {
    #[inline(always)]
    fn new(
        (plan, image): (&'a Plan, &'a Image),
        (filter, number): (Filter, usize),
        at: Eights<'a>,
        lanes: u64,
        convert: V,
        values: [&'b mut [Words8]; C],
    ) -> OneLevel<'a, 'b, V, C> {
        let (grid, level, sampler) = (&plan.grids[number], &image.levels[number], &plan.sampler);
        OneLevel { grid, level, sampler, filter, at, lanes, convert, values }
    }

    /// Returns whether all values are finite and not negative.
    #[inline(always)]
    fn is_tame<S: Stored<C>>(&self) -> bool {
        V::TAME || S::TAME && !reads_border(self.sampler, self.grid)
    }

    /// Runs `work` on the texels of the level in their stored form.
    #[inline(always)]
    fn with_stored<E: Eight>(self, wide: E, work: impl WithStored<V, C>) -> (u64, bool) {
        match (&self.level.texels, &self.grid.fractions) {
            (Texels::Words(words), _) => work.run(wide, Wholes(words), self),
            (Texels::Later(words), _) => work.run(wide, Wholes(words), self),
            (Texels::Elements(elements), Some(fractions)) => {
                work.run(wide, OfFractions::new(elements, fractions), self)
            }
            (Texels::Elements(elements), None) => work.run(wide, Fields::new(elements), self),
        }
    }
}

/// A task that processes the texels of a level, for any form in which the texels are stored.
trait WithStored<V, const C: usize> {
    fn run<E: Eight, S: Stored<C>>(self, wide: E, stored: S, level: OneLevel<'_, '_, V, C>) -> (u64, bool);
}

impl<V: Convert<C>, const C: usize> Task for OneLevel<'_, '_, V, C> {
    type Output = (u64, bool);

    #[inline(always)]
    fn run<W: Wide>(self, wide: W) -> (u64, bool) {
        match self.filter {
            Filter::Nearest => self.with_stored(wide.eight(), NearestOf),
            Filter::Linear if self.grid.axes == 3 => self.with_stored(wide.eight(), VolumeOf),
            Filter::Linear => self.with_stored(wide.eight(), LinearOf),
        }
    }
}

/// The work of nearest filtering.
struct NearestOf;

impl<V: Convert<C>, const C: usize> WithStored<V, C> for NearestOf {
    #[inline(always)]
    fn run<E: Eight, S: Stored<C>>(self, wide: E, stored: S, level: OneLevel<'_, '_, V, C>) -> (u64, bool) {
        let tame = level.is_tame::<S>();
        let OneLevel { grid, sampler, at, lanes, convert, mut values, .. } = level;
        let mut far = 0;
        for (number, _) in vectors(lanes) {
            let near = Near::nearest(wide, sampler, grid, &at, number);
            far |= u64::from(near.far) << (EIGHT * number);
            let texels = near.bordered(wide, sampler, 0, stored.read(wide, near.place(0)));
            store(wide, &mut values, number, convert.convert(wide, number, texels));
        }
        (far, tame)
    }
}

/// The work of linear filtering along one or two axes.
struct LinearOf;

impl<V: Convert<C>, const C: usize> WithStored<V, C> for LinearOf {
    #[inline(always)]
    fn run<E: Eight, S: Stored<C>>(self, wide: E, stored: S, level: OneLevel<'_, '_, V, C>) -> (u64, bool) {
        let tame = level.is_tame::<S>();
        let OneLevel { grid, sampler, at, lanes, convert, mut values, .. } = level;
        let mut far = 0;
        for (number, _) in vectors(lanes) {
            let near = Near::corners(wide, sampler, grid, &at, number);
            far |= u64::from(near.far) << (EIGHT * number);
            if sampler.seamless {
                far |= u64::from(at_edges(wide, grid, &at, number)) << (EIGHT * number);
            }
            let texels = if grid.axes == 1 {
                let pair = stored.read_two(wide, [near.place(0), near.place(1)]);
                along_s(wide, &near, sampler, 0, convert, number, tame, pair)
            } else {
                along_s_and_t(wide, &near, sampler, &stored, convert, number, tame)
            };
            store(wide, &mut values, number, texels);
        }
        (far, tame)
    }
}

/// Returns the lanes of a vector that mix texels of several faces of a cube. The sampler reads these lanes one by one.
#[inline(always)]
fn at_edges<E: Eight>(wide: E, grid: &Grid, at: &Eights<'_>, number: usize) -> u32 {
    let mut outside = wide.ints(0);
    for axis in 0..2 {
        let texels = wide.of_bits(wide.load(&at.coordinates[axis][number]));
        let texels = wide.mul(texels, wide.floats(grid.factor[axis]));
        let beyond = wide.less(wide.floats(grid.size[axis] as f32 - 0.75), texels);
        outside = wide.or(outside, wide.or(beyond, wide.less(texels, wide.floats(0.75))));
    }
    wide.lanes(outside)
}

/// The work of linear filtering along three axes.
struct VolumeOf;

impl<V: Convert<C>, const C: usize> WithStored<V, C> for VolumeOf {
    #[inline(always)]
    fn run<E: Eight, S: Stored<C>>(self, wide: E, stored: S, level: OneLevel<'_, '_, V, C>) -> (u64, bool) {
        let tame = level.is_tame::<S>();
        let OneLevel { grid, sampler, at, lanes, convert, mut values, .. } = level;
        let mut far = 0;
        for (number, _) in vectors(lanes) {
            let first = Near::corners(wide, sampler, grid, &at, number);
            let mut beyond = first.far;
            let slices = Along::new(wide, sampler, grid, &at, (2, number), &mut beyond);
            far |= u64::from(beyond) << (EIGHT * number);
            let near = first.on_slice(wide, &slices, 0);
            let low = along_s_and_t(wide, &near, sampler, &stored, convert, number, tame);
            let near = first.on_slice(wide, &slices, 1);
            let high = along_s_and_t(wide, &near, sampler, &stored, convert, number, tame);
            store(wide, &mut values, number, mix(wide, tame, slices.weight, low, high));
        }
        (far, tame)
    }
}

/// Reads four texels per lane, converts the texels, and mixes the texels along s, then along t.
#[inline(always)]
fn along_s_and_t<E: Eight, V: Convert<C>, S: Stored<C>, const C: usize>(
    wide: E,
    near: &Near<E>,
    sampler: &Sampler,
    stored: &S,
    convert: V,
    number: usize,
    tame: bool,
) -> [E::Ints; C] {
    let places = [near.place(0), near.place(1), near.place(2), near.place(3)];
    let [a, b, c, d] = stored.read_four(wide, places);
    let low = along_s(wide, near, sampler, 0, convert, number, tame, [a, b]);
    let high = along_s(wide, near, sampler, 1, convert, number, tame, [c, d]);
    mix(wide, tame, near.weights[1], low, high)
}

/// Converts two texels that are neighbours along s, and mixes the two texels. This code is in a function, because the
/// compiler does not always compile a closure for the level.
#[inline(always)]
#[expect(clippy::too_many_arguments, reason = "a part of `LinearOf`, inlined")]
fn along_s<E: Eight, V: Convert<C>, const C: usize>(
    wide: E,
    near: &Near<E>,
    sampler: &Sampler,
    row: usize,
    convert: V,
    number: usize,
    tame: bool,
    [low, high]: [[E::Ints; C]; 2],
) -> [E::Ints; C] {
    let low = convert.convert(wide, number, near.bordered(wide, sampler, 2 * row, low));
    let high = convert.convert(wide, number, near.bordered(wide, sampler, 2 * row + 1, high));
    mix(wide, tame, near.weights[0], low, high)
}

/// The work of a gather. A gather returns the first components of the four texels of linear filtering, and does not mix
/// them.
struct GatherOf<'a>([&'a mut [Words8]; 4]);

impl WithStored<Keep, 1> for GatherOf<'_> {
    #[inline(always)]
    fn run<E: Eight, S: Stored<1>>(
        self,
        wide: E,
        stored: S,
        level: OneLevel<'_, '_, Keep, 1>,
    ) -> (u64, bool) {
        let OneLevel { grid, sampler, at, lanes, .. } = level;
        let GatherOf(mut values) = self;
        let mut far = 0;
        for (number, _) in vectors(lanes) {
            let near = Near::corners(wide, sampler, grid, &at, number);
            far |= u64::from(near.far) << (EIGHT * number);
            // The order of the results is (0, 1), (1, 1), (1, 0), (0, 0).
            for (values, corner) in values.iter_mut().zip([2, 3, 1, 0]) {
                let [texel] = near.bordered(wide, sampler, corner, stored.read(wide, near.place(corner)));
                values[number] = wide.store(texel);
            }
        }
        (far, false)
    }
}

/// The task of running [`GatherOf`] on a level.
struct Gathering<'a>(OneLevel<'a, 'a, Keep, 1>, [&'a mut [Words8]; 4]);

impl Task for Gathering<'_> {
    type Output = u64;

    #[inline(always)]
    fn run<W: Wide>(self, wide: W) -> u64 {
        let Gathering(level, values) = self;
        level.with_stored(wide.eight(), GatherOf(values)).0
    }
}

#[inline(always)]
fn store<E: Eight, const C: usize>(
    wide: E,
    rows: &mut [&mut [Words8]; C],
    number: usize,
    texels: [E::Ints; C],
) {
    for (row, texel) in rows.iter_mut().zip(texels) {
        row[number] = wide.store(texel);
    }
}

/// Returns low * (1 - weight) + high * weight. For weight 0, the result has exactly the bits of `low`. For weight 1,
/// the result has exactly the bits of `high`.
///
/// `tame` means that all numbers are finite and not negative. If `tame` is set, the sum for weights 0 and 1 is exact
/// without a correction, and the sum is never a NaN.
#[inline(always)]
fn mix<E: Eight, const C: usize>(
    wide: E,
    tame: bool,
    weights: E::Floats,
    low: [E::Ints; C],
    high: [E::Ints; C],
) -> [E::Ints; C] {
    let mut mixed = wide.mean(weights, low, high);
    if !tame {
        for channel in 0..C {
            let sum = wide.of_bits(mixed[channel]);
            let bits = wide.choose(wide.equal(sum, sum), mixed[channel], wide.ints(QUIET_NAN as i32));
            let bits = wide.choose(wide.equal(weights, wide.floats(0.0)), low[channel], bits);
            mixed[channel] = wide.choose(wide.equal(weights, wide.floats(1.0)), high[channel], bits);
        }
    }
    mixed
}
