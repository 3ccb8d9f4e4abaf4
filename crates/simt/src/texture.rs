//! The texture sampler of all three machines.
//!
//! An [`Image`] contains texels. A [`Sampler`] describes how to read texels. The function [`sample`] reads texels. The
//! machine determines the level of detail from neighbouring lanes of a quad, from explicit derivatives or from a
//! register. For this purpose, the machine uses the arithmetic of [`lod_of_quad`], [`lod_of_gradients`] and [`Face`].
//!
//! The documents of the three machines name the modes, but do not state the arithmetic of the modes. This module
//! evaluates the formulas of the OpenGL specification (version 3.0, 3.9.5 to 3.9.9) in binary32. Nearest filtering at
//! texel centres is exact. All other results are a recommended interpretation. The hardware uses weights of few bits.
//! Tesla's weights have 8 bits of fraction (CUDA programming guide, "Linear Filtering"). No document states how the
//! hardware rounds the weights, so this module uses binary32 weights. [`anisotropy`] contains the filters that read
//! several positions.
//!
//! Linear filtering computes low * (1 - weight) + high * weight and rounds each operation. First, linear filtering
//! mixes texels along s. It then mixes the results along t, along r, and finally between levels. A texel whose weight
//! is 0 is not read. Texels that are not mixed keep their bits. If mixing produces a NaN, the result is [`QUIET_NAN`]
//! on every host. If a coordinate or a level of detail is a NaN, the NaN counts as 0.

pub mod anisotropy;
pub mod elements;
mod image;
pub mod rows;
#[cfg(test)]
mod tests;

use anisotropy::Gradients;
pub use image::{Decode, Image, ImageError, Level, Shape, Texels};

/// The NaN that filtering returns if mixing produces any NaN.
pub const QUIET_NAN: u32 = 0x7fc0_0000;

/// Treatment of a coordinate that is outside the image.
///
/// | here                 | R300 to R500 (TX_FILTER0)      | R600 and R700 (SQ_TEX_CLAMP) | Tesla (TSC)              |
/// |----------------------|--------------------------------|------------------------------|--------------------------|
/// | `Repeat`             | REPEAT                         | WRAP                         | WRAP                     |
/// | `Mirror`             | REPEAT, MIRRORED               | MIRROR                       | MIRROR                   |
/// | `ClampToEdge`        | CLAMP_TO_EDGE                  | CLAMP_LAST_TEXEL             | CLAMP_TO_EDGE            |
/// | `Clamp`              | CLAMP                          | CLAMP_HALF_BORDER            | CLAMP_OGL                |
/// | `ClampToBorder`      | CLAMP_TO_BORDER                | CLAMP_BORDER                 | BORDER                   |
/// | `MirrorOnceToEdge`   | CLAMP_TO_EDGE, MIRRORED        | MIRROR_ONCE_LAST_TEXEL       | MIRROR_ONCE_CLAMP_TO_EDGE |
/// | `MirrorOnce`         | CLAMP, MIRRORED                | MIRROR_ONCE_HALF_BORDER      | MIRROR_ONCE_CLAMP_OGL    |
/// | `MirrorOnceToBorder` | CLAMP_TO_BORDER, MIRRORED      | MIRROR_ONCE_BORDER           | MIRROR_ONCE_BORDER       |
///
/// Mesa's headers for the three machines use these names. OpenGL defines the meaning of the modes (3.0, "Texture
/// Minification"). EXT_texture_mirror_clamp defines the mirrored modes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Wrap {
    /// The image repeats.
    #[default]
    Repeat,
    /// The image repeats. Every other repetition is mirrored.
    Mirror,
    /// Outside the image, the texel at the edge is read.
    ClampToEdge,
    /// Coordinates are clamped to the edge of the image. For any coordinate outside the image, nearest filtering reads
    /// the texel at the edge. Linear filtering mixes half of the border colour with half of the texel at the edge.
    /// (OpenGL CLAMP)
    Clamp,
    /// Outside the image, the border colour is read.
    ClampToBorder,
    /// The image is mirrored once around 0. Outside both copies, the texel at the edge is read.
    MirrorOnceToEdge,
    /// The image is mirrored once around 0. Outside both copies, coordinates are treated as in [`Wrap::Clamp`]. At 0,
    /// linear filtering mixes the image with its mirror image, not with the border colour.
    MirrorOnce,
    /// The image is mirrored once around 0. Outside both copies, the border colour is read.
    MirrorOnceToBorder,
}

/// Method for combining the texels near a coordinate.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Filter {
    /// The texel that contains the coordinate.
    #[default]
    Nearest,
    /// The texels next to the coordinate are mixed, weighted by distance along each axis.
    Linear,
}

/// Method for selecting mip levels.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum MipFilter {
    /// The lane always reads level 0.
    #[default]
    None,
    /// The lane reads the nearest level.
    Nearest,
    /// The lane reads the two nearest levels and mixes their values by weight.
    Linear,
}

/// Comparison of a reference value with a depth texel.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(missing_docs)]
pub enum Compare {
    Never,
    Less,
    Equal,
    LessEqual,
    Greater,
    NotEqual,
    GreaterEqual,
    Always,
}

impl Compare {
    /// All comparisons. R600 and Tesla number the comparisons in this order.
    pub const ALL: [Compare; 8] = [
        Compare::Never,
        Compare::Less,
        Compare::Equal,
        Compare::LessEqual,
        Compare::Greater,
        Compare::NotEqual,
        Compare::GreaterEqual,
        Compare::Always,
    ];

    /// Returns the result of comparing `reference` with `texel`. If at least one of the two is a NaN, only the
    /// comparisons "not equal" and "always" are true.
    pub fn passes(self, reference: f32, texel: f32) -> bool {
        match self {
            Compare::Never => false,
            Compare::Less => reference < texel,
            Compare::Equal => reference == texel,
            Compare::LessEqual => reference <= texel,
            Compare::Greater => reference > texel,
            Compare::NotEqual => reference != texel,
            Compare::GreaterEqual => reference >= texel,
            Compare::Always => true,
        }
    }
}

/// State that determines how an image is read.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Sampler {
    /// Wrap modes for s, t and r. Cubes do not use these modes: coordinates on a face are clamped to the edge of the
    /// face.
    pub wrap: [Wrap; 3],
    /// Filter for a level of detail of at most 0, at which a texel covers more than a pixel.
    pub mag: Filter,
    /// Filter for a level of detail above 0, at which a texel covers less than a pixel.
    pub min: Filter,
    /// Filter between mip levels.
    pub mip: MipFilter,
    /// Bits of the border colour.
    pub border: [u32; 4],
    /// Lower limit of the level of detail.
    pub min_lod: f32,
    /// Upper limit of the level of detail.
    pub max_lod: f32,
    /// Bias that is added to the level of detail before the limits are applied.
    pub lod_bias: f32,
    /// Whether coordinates count texels instead of running from 0 to 1.
    pub unnormalised: bool,
    /// Whether linear filtering at the edges of a cube's faces mixes texels of several faces (OpenGL 3.2, 3.8.8).
    pub seamless: bool,
    /// Maximum number of positions of an anisotropic filter. The values 0 and 1 disable the filter. The functions
    /// [`sample`], [`sample_compare`] and [`gather`] read only one position. [`Footprint`](anisotropy::Footprint)
    /// computes the positions of the filter.
    pub anisotropy: u8,
}

impl Default for Sampler {
    /// Returns a sampler with nearest filtering, repeating coordinates and an unlimited level of detail.
    fn default() -> Sampler {
        Sampler {
            wrap: [Wrap::Repeat; 3],
            mag: Filter::Nearest,
            min: Filter::Nearest,
            mip: MipFilter::None,
            border: [0; 4],
            min_lod: -1000.0,
            max_lod: 1000.0,
            lod_bias: 0.0,
            unnormalised: false,
            seamless: false,
            anisotropy: 0,
        }
    }
}

/// A position at which an image is read.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Position {
    /// The coordinates s, t and r. For cubes, the components of a direction.
    pub coordinates: [f32; 3],
    /// Number of the layer of an array. The number is rounded to nearest even and clamped to the existing layers.
    pub layer: f32,
    /// Texel offset, which is added to the position in texels.
    pub offset: [i32; 3],
    /// Level of detail, before the bias is added and the limits are applied.
    pub lod: f32,
}

/// Reads an image of floats. Returns the bits of four channels.
pub fn sample(image: &Image, sampler: &Sampler, at: &Position) -> [u32; 4] {
    filtered(image, sampler, at, |texel| texel.map(f32::from_bits)).map(f32::to_bits)
}

/// Reads a depth image. Compares each texel, and returns the weighted fraction of texels that pass the comparison, from
/// 0 to 1. The weights are those of the filter.
pub fn sample_compare(
    image: &Image,
    sampler: &Sampler,
    at: &Position,
    compare: Compare,
    reference: f32,
) -> f32 {
    let passes = |texel: [u32; 4]| {
        let share = if compare.passes(reference, f32::from_bits(texel[0])) { 1.0 } else { 0.0 };
        [share; 4]
    };
    filtered(image, sampler, at, passes)[0]
}

/// Returns the four texels of linear filtering in 2D without mixing the texels. The texels have the order of the gather
/// instructions: (0, 1), (1, 1), (1, 0), (0, 0). These pairs are offsets from the lower corner in texels.
pub fn gather(image: &Image, sampler: &Sampler, at: &Position) -> [[u32; 4]; 4] {
    let (level, place) = (&image.levels[0], resolve(image, sampler, at, 0));
    let [x, y] = [0, 1].map(|axis| place.neighbours(axis, at.offset[axis]).0);
    [(0, 1), (1, 1), (1, 0), (0, 0)]
        .map(|(dx, dy)| fetch(level, sampler, &place, [x + dx, y + dy, 0], |texel| texel))
}

/// Returns the weights that [`sample`] uses. The first three results are the weights of the upper texel along x, y and
/// z. If two levels are mixed, these three weights are for the larger level, and the fourth result is the weight of the
/// smaller level. If nothing is mixed along an axis or between levels, the corresponding weight is 0.
pub fn weights(image: &Image, sampler: &Sampler, at: &Position) -> [f32; 4] {
    let (number, between) = levels_of(image, sampler, at.lod);
    let filter = filter_of(sampler, at.lod);
    let place = resolve(image, sampler, at, number);
    let along = |axis: usize| match filter == Filter::Linear && axis < place.axes {
        true => place.neighbours(axis, at.offset[axis]).1,
        false => 0.0,
    };
    [along(0), along(1), along(2), between]
}

/// Reads an image of integers. Returns the bits of one texel. The filter of the sampler is ignored.
pub fn sample_bits(image: &Image, sampler: &Sampler, at: &Position) -> [u32; 4] {
    let number = nearest_level(image, sampler, at.lod);
    let place = resolve(image, sampler, at, number);
    nearest(&image.levels[number], sampler, place, at.offset, |texel| texel)
}

/// Returns the level of detail for two gradients. The result is log2 of the length of the longer gradient, in texels of
/// level 0. (OpenGL 3.9.8, equation 3.21)
///
/// `dx` and `dy` are changes of s, t and r. `dx` is the change from a pixel to the pixel on its right, and `dy` is the
/// change to the pixel below. For cubes, `dx` and `dy` are the changes of the coordinates on the face. Axes that the
/// image does not have are ignored. If both gradients are zero, the result is minus infinity. If only one gradient
/// contains a NaN, the result depends only on the gradient without a NaN. If both gradients contain a NaN, the result
/// is a NaN.
pub fn lod_of_gradients(image: &Image, sampler: &Sampler, dx: [f32; 3], dy: [f32; 3]) -> f32 {
    let [right, below] = squares(image, sampler, [dx, dy]);
    let larger = right.max(below);
    if larger == 0.0 { f32::NEG_INFINITY } else { (0.5 * libm::log2(larger)) as f32 }
}

/// Returns the squares of the lengths of two gradients, in texels of level 0.
fn squares(image: &Image, sampler: &Sampler, gradients: Gradients) -> [f64; 2] {
    let Level { width, height, depth, .. } = image.levels[0];
    let sizes = match sampler.unnormalised {
        true => [1.0; 3],
        false => [width, height, depth].map(|size| size as f32),
    };
    gradients.map(|gradient| {
        let scaled = gradient.iter().zip(sizes).take(image.shape.axes());
        scaled.map(|(change, size)| f64::from(*change) * f64::from(size)).map(|texels| texels * texels).sum()
    })
}

/// Returns the level of detail of a quad. The function passes the differences of the coordinates between lanes of the
/// quad to [`lod_of_gradients`].
///
/// `quad` contains the coordinates of three lanes: the origin lane, the lane to the right of the origin lane, and the
/// lane below the origin lane. For a cube, these coordinates are three directions. The function projects the directions
/// onto one face. `facing`, the direction of the lane that reads, points at this face.
pub fn lod_of_quad(image: &Image, sampler: &Sampler, facing: [f32; 3], quad: [[f32; 3]; 3]) -> f32 {
    let [dx, dy] = gradients_of_quad(image, facing, quad);
    lod_of_gradients(image, sampler, dx, dy)
}

/// Returns the changes of the coordinates from which [`lod_of_quad`] computes the level of detail.
pub fn gradients_of_quad(image: &Image, facing: [f32; 3], quad: [[f32; 3]; 3]) -> Gradients {
    let [origin, right, below] = match image.shape {
        Shape::Cube | Shape::CubeArray => quad.map(|direction| {
            let [s, t] = Face::of(facing).project(direction);
            [s, t, 0.0]
        }),
        Shape::D1 | Shape::D2 | Shape::D3 | Shape::D1Array | Shape::D2Array => quad,
    };
    let change = |other: [f32; 3]| [0, 1, 2].map(|axis| other[axis] - origin[axis]);
    [change(right), change(below)]
}

/// A face of a cube. The face defines coordinates on its plane (OpenGL 3.9.6, table 3.19).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Face(
    /// Number of the face. The faces 0 to 5 are +x, -x, +y, -y, +z and -z.
    pub u8,
);

impl Face {
    /// Returns the face that a direction points at. If components have the same magnitude, z takes precedence over y,
    /// and y over x. -0 does not count as negative. (Neither OpenGL nor the description of R700's CUBE instruction
    /// defines the face for components of the same magnitude.)
    pub fn of([x, y, z]: [f32; 3]) -> Face {
        let (ax, ay, az) = (x.abs(), y.abs(), z.abs());
        let (axis, negative) = if az >= ax && az >= ay {
            (4, z < 0.0)
        } else if ay >= ax {
            (2, y < 0.0)
        } else {
            (0, x < 0.0)
        };
        Face(axis + u8::from(negative))
    }

    /// Returns the coordinates s and t, from 0 to 1, of a direction projected onto this face. The coordinates are NaN
    /// if all components of the direction are zero.
    pub fn project(self, [x, y, z]: [f32; 3]) -> [f32; 2] {
        let (sc, tc, ma) = match self.0 {
            0 => (-z, -y, x),
            1 => (z, -y, x),
            2 => (x, z, y),
            3 => (x, -z, y),
            4 => (x, -y, z),
            _ => (-x, -y, z),
        };
        let ma = ma.abs();
        [(sc / ma + 1.0) * 0.5, (tc / ma + 1.0) * 0.5]
    }

    /// Returns the direction to a position on the plane of this face. Positions between the edges of the face run from
    /// -1 to 1.
    pub fn direction(self, [s, t]: [f32; 2]) -> [f32; 3] {
        match self.0 {
            0 => [1.0, -t, -s],
            1 => [-1.0, -t, s],
            2 => [s, 1.0, t],
            3 => [s, -1.0, -t],
            4 => [s, -t, 1.0],
            _ => [-s, -t, -1.0],
        }
    }
}

/// A position on one level. A position consists of coordinates in texels, and of the slice of an array or the face of a
/// cube.
struct LevelPosition {
    texels: [f32; 3],
    /// Number of texels along each axis.
    size: [f32; 3],
    wrap: [Wrap; 3],
    /// Number of axes that are filtered and wrapped.
    axes: usize,
    slice: Option<i64>,
}

impl LevelPosition {
    /// A coordinate on an axis has a lower and an upper neighbouring texel. Returns the index of the lower texel and
    /// the weight of the upper texel. The coordinate is moved by `offset`.
    fn neighbours(&self, axis: usize, offset: i32) -> (i64, f32) {
        let (texels, size, moved) = (self.texels[axis], self.size[axis], offset as f32);
        // The modes `Clamp` and `MirrorOnce` clamp the coordinate before texels are selected. So `Clamp` and
        // `MirrorOnce` also change the weights.
        let texels = match self.wrap[axis] {
            Wrap::Clamp => texels.clamp(-moved, size - moved),
            Wrap::MirrorOnce => texels.clamp(-size - moved, size - moved),
            Wrap::Repeat
            | Wrap::Mirror
            | Wrap::ClampToEdge
            | Wrap::ClampToBorder
            | Wrap::MirrorOnceToEdge
            | Wrap::MirrorOnceToBorder => texels,
        };
        let (texel, weight) = split(texels);
        (texel + i64::from(offset), weight)
    }
}

fn resolve(image: &Image, sampler: &Sampler, at: &Position, level: usize) -> LevelPosition {
    let Level { width, height, depth, .. } = image.levels[level];
    let clean = at.coordinates.map(|x| if x.is_nan() { 0.0 } else { x });
    let size = [width, height, depth].map(|size| size as f32);
    // Unnormalised coordinates count texels of level 0.
    let scale = |axis: usize, x: f32| match sampler.unnormalised {
        true => x / (1u64 << level.min(63)) as f32,
        false => x * size[axis],
    };
    let layers = |of: u32| libm::rintf(at.layer).clamp(0.0, of as f32 - 1.0) as i64;
    let edge = [Wrap::ClampToEdge; 3];
    let cube = |element: i64| {
        let face = Face::of(clean);
        let [s, t] = face.project(clean).map(|x| if x.is_nan() { 0.0 } else { x });
        (
            LevelPosition { texels: [s * size[0], t * size[1], 0.0], size, wrap: edge, axes: 2, slice: None },
            element * 6 + i64::from(face.0),
        )
    };
    let scaled = [scale(0, clean[0]), scale(1, clean[1]), scale(2, clean[2])];
    let plain =
        |axes, slice| LevelPosition { texels: scaled, size, wrap: sampler.wrap, axes, slice: Some(slice) };
    match image.shape {
        Shape::D1 => plain(1, 0),
        Shape::D2 => plain(2, 0),
        Shape::D3 => LevelPosition { texels: scaled, size, wrap: sampler.wrap, axes: 3, slice: None },
        Shape::D1Array => plain(1, layers(depth)),
        Shape::D2Array => plain(2, layers(depth)),
        Shape::Cube => {
            let (place, slice) = cube(0);
            LevelPosition { slice: Some(slice), ..place }
        }
        Shape::CubeArray => {
            let (place, slice) = cube(layers(depth / 6));
            LevelPosition { slice: Some(slice), ..place }
        }
    }
}

fn filtered(
    image: &Image,
    sampler: &Sampler,
    at: &Position,
    value: impl Fn([u32; 4]) -> [f32; 4] + Copy,
) -> [f32; 4] {
    let filter = filter_of(sampler, at.lod);
    let level = |number| filter_level(image, sampler, at, number, filter, value);
    let (number, between) = levels_of(image, sampler, at.lod);
    mix(between, || level(number), || level(number + 1))
}

fn filter_of(sampler: &Sampler, lod: f32) -> Filter {
    if clamped_lod(sampler, lod) > 0.0 { sampler.min } else { sampler.mag }
}

/// Returns the larger level to read, and the weight of the next smaller level. The weight is less than 1. The weight is
/// 0 if only one level is read.
fn levels_of(image: &Image, sampler: &Sampler, lod: f32) -> (usize, f32) {
    let clamped = clamped_lod(sampler, lod);
    let last = image.levels.len() - 1;
    if sampler.mip != MipFilter::Linear || clamped <= 0.0 {
        return (nearest_level(image, sampler, lod), 0.0);
    }
    let below = clamped as usize;
    if below >= last { (last, 0.0) } else { (below, clamped - libm::floorf(clamped)) }
}

/// Returns the level that is read for a level of detail. If one level is read, the result is the number of this level.
/// If two levels are mixed, the result is between the numbers of the two levels.
///
/// The result is the first value that OpenGL's `textureQueryLod` returns.
pub fn accessed_level(image: &Image, sampler: &Sampler, lod: f32) -> f32 {
    let last = (image.levels.len() - 1) as f32;
    match sampler.mip {
        MipFilter::None => 0.0,
        MipFilter::Nearest => nearest_level(image, sampler, lod) as f32,
        MipFilter::Linear => clamped_lod(sampler, lod).clamp(0.0, last),
    }
}

fn clamped_lod(sampler: &Sampler, lod: f32) -> f32 {
    let lod = lod + sampler.lod_bias;
    let lod = if lod.is_nan() { 0.0 } else { lod };
    lod.max(sampler.min_lod).min(sampler.max_lod)
}

fn nearest_level(image: &Image, sampler: &Sampler, lod: f32) -> usize {
    match sampler.mip {
        MipFilter::None => 0,
        // The level is ceil(lod + 1/2) - 1 (OpenGL 3.9.8). If two levels are equally near, the level with more texels
        // is read.
        MipFilter::Nearest | MipFilter::Linear => {
            let level = libm::ceilf(clamped_lod(sampler, lod) + 0.5) - 1.0;
            (level.max(0.0) as usize).min(image.levels.len() - 1)
        }
    }
}

fn filter_level(
    image: &Image,
    sampler: &Sampler,
    at: &Position,
    number: usize,
    filter: Filter,
    value: impl Fn([u32; 4]) -> [f32; 4] + Copy,
) -> [f32; 4] {
    let level = &image.levels[number];
    let place = resolve(image, sampler, at, number);
    if filter == Filter::Nearest {
        return nearest(level, sampler, place, at.offset, value);
    }
    let seamless = sampler.seamless && matches!(image.shape, Shape::Cube | Shape::CubeArray);
    let get = |texel: [i64; 3]| match place.slice.filter(|_| seamless) {
        Some(slice) => on_faces(level, slice as usize, [texel[0], texel[1]], value),
        None => fetch(level, sampler, &place, texel, value),
    };
    // An axis that is not filtered gets weight 0.
    let [(x, a), (y, b), (z, c)] = [0, 1, 2].map(|axis| match axis < place.axes {
        true => place.neighbours(axis, at.offset[axis]),
        false => (0, 0.0),
    });
    let row = |y, z| mix(a, || get([x, y, z]), || get([x + 1, y, z]));
    let plane = |z| mix(b, || row(y, z), || row(y + 1, z));
    mix(c, || plane(z), || plane(z + 1))
}

/// Returns the texel at a position on a face of a cube. A position outside the face selects a texel of the adjacent
/// face. A position that is outside the face along both axes is at a corner of the cube. No texel exists at this
/// corner. The function then returns the mean of the three texels around the corner.
fn on_faces(
    level: &Level,
    slice: usize,
    [x, y]: [i64; 2],
    value: impl Fn([u32; 4]) -> [f32; 4] + Copy,
) -> [f32; 4] {
    let size = i64::from(level.width);
    let inside = [x, y].map(|at| (0..size).contains(&at));
    let [near_x, near_y] = [x, y].map(|at| at.clamp(0, size - 1));
    match inside {
        [true, true] => value(level.texel(x as usize, y as usize, slice)),
        [false, false] => {
            let around = [[near_x, y], [x, near_y], [near_x, near_y]];
            let around = around.map(|at| on_faces(level, slice, at, value));
            std::array::from_fn(|channel| around.iter().map(|texel| texel[channel]).sum::<f32>() / 3.0)
        }
        _ => {
            // Extend the plane of this face by one texel beyond the edge. Compute the direction to the middle of this
            // additional texel.
            let place = [x, y].map(|at| (2 * at.clamp(-1, size) + 1 - size) as f32 / size as f32);
            let direction = Face((slice % 6) as u8).direction(place);
            let face = Face::of(direction);
            // The adjacent face has `size` texels along an axis. The direction to the middle of texel n of the extended
            // plane points at the position (n + 1) / (size + 1) of the adjacent face.
            let index = |at: f32| (libm::rintf(at * (size + 1) as f32) as i64 - 1).clamp(0, size - 1);
            let [x, y] = face.project(direction).map(index);
            value(level.texel(x as usize, y as usize, slice - slice % 6 + usize::from(face.0)))
        }
    }
}

/// Returns the texel that contains the coordinates, moved by `offset`.
fn nearest<T>(
    level: &Level,
    sampler: &Sampler,
    place: LevelPosition,
    offset: [i32; 3],
    value: impl Fn([u32; 4]) -> T,
) -> T {
    let wrap = place.wrap.map(wrap_of_nearest);
    let texel = [0, 1, 2].map(|axis| floor(place.texels[axis]) + i64::from(offset[axis]));
    fetch(level, sampler, &LevelPosition { wrap, ..place }, texel, value)
}

/// Returns the wrap mode for nearest filtering. Some modes clamp the coordinate to the edge of the image. For these
/// modes, the function returns a mode that reads the texel at the edge.
fn wrap_of_nearest(wrap: Wrap) -> Wrap {
    match wrap {
        Wrap::Clamp => Wrap::ClampToEdge,
        Wrap::MirrorOnce => Wrap::MirrorOnceToEdge,
        Wrap::Repeat
        | Wrap::Mirror
        | Wrap::ClampToEdge
        | Wrap::ClampToBorder
        | Wrap::MirrorOnceToEdge
        | Wrap::MirrorOnceToBorder => wrap,
    }
}

/// A coordinate has a lower and an upper neighbouring texel. Returns the index of the lower texel and the weight of the
/// upper texel.
fn split(texels: f32) -> (i64, f32) {
    let shifted = texels - 0.5;
    let lower = libm::floorf(shifted);
    let weight = shifted - lower;
    (floor(shifted), if weight.is_finite() { weight } else { 0.0 })
}

/// Returns the largest integer that is not above `x`. The function limits the result to a range that extends far
/// outside any image. Later sums then do not overflow.
fn floor(x: f32) -> i64 {
    libm::floorf(x).clamp(-1e12, 1e12) as i64
}

/// Returns low * (1 - weight) + high * weight. For weight 0, the result has exactly the bits of `low`. For weight 1,
/// the result has exactly the bits of `high`. So an infinity or a NaN of weight 0 has no effect.
fn mix(weight: f32, low: impl Fn() -> [f32; 4], high: impl Fn() -> [f32; 4]) -> [f32; 4] {
    if weight == 0.0 {
        return low();
    }
    if weight == 1.0 {
        return high();
    }
    let (low, high) = (low(), high());
    std::array::from_fn(|channel| {
        let mixed = low[channel] * (1.0 - weight) + high[channel] * weight;
        if mixed.is_nan() { f32::from_bits(QUIET_NAN) } else { mixed }
    })
}

fn fetch<T>(
    level: &Level,
    sampler: &Sampler,
    place: &LevelPosition,
    texel: [i64; 3],
    value: impl Fn([u32; 4]) -> T,
) -> T {
    let size = [level.width, level.height, level.depth].map(i64::from);
    let mut at = [0; 3];
    for axis in 0..place.axes {
        match wrapped(place.wrap[axis], texel[axis], size[axis]) {
            Some(index) => at[axis] = index as usize,
            None => return value(sampler.border),
        }
    }
    if let Some(slice) = place.slice {
        at[2] = slice as usize;
    }
    value(level.texel(at[0], at[1], at[2]))
}

/// Returns the texel that `index` refers to on an axis of `size` texels, or `None` for the border. (OpenGL 3.9.7)
fn wrapped(wrap: Wrap, index: i64, size: i64) -> Option<i64> {
    let mirror = |index: i64| if index < 0 { -1 - index } else { index };
    let inside = |index: i64| (0..size).contains(&index).then_some(index);
    match wrap {
        Wrap::Repeat => Some(index.rem_euclid(size)),
        Wrap::Mirror => {
            let index = index.rem_euclid(2 * size);
            Some(if index < size { index } else { 2 * size - 1 - index })
        }
        Wrap::ClampToEdge => Some(index.clamp(0, size - 1)),
        // For the mode `Clamp`, `LevelPosition::neighbours` has already clamped the coordinate. So the index is at most
        // one texel outside the image.
        Wrap::Clamp | Wrap::ClampToBorder => inside(index),
        Wrap::MirrorOnceToEdge => Some(mirror(index).min(size - 1)),
        Wrap::MirrorOnce | Wrap::MirrorOnceToBorder => inside(mirror(index)),
    }
}
