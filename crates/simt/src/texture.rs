//! One texture sampler for all three machines.
//!
//! An [`Image`] holds texels, a [`Sampler`] describes how to read them, [`sample`] reads. The machine determines the level
//! of detail (from a quad's neighbours, explicit derivatives or a register) with the arithmetic of [`lod_of_quad`],
//! [`lod_of_gradients`] and [`Face`].
//!
//! The documents of the three machines name the modes but not their arithmetic. The formulas are those of the
//! OpenGL specification (version 3.0, 3.9.5 to 3.9.9), evaluated in binary32: nearest filtering at texel centres is
//! exact, everything else is a recommended reading. The hardware weighs with few bits: 8 of fraction on Tesla (CUDA
//! programming guide, "Linear Filtering"). No document states the rounding, so the weights here are binary32.
//!
//! Linear filtering computes low * (1 - weight) + high * weight, each operation rounded, along s, then t, then r,
//! then between levels; a side of weight 0 is not read. What stays unmixed keeps its bits; a NaN that mixing makes
//! is [`QUIET_NAN`], on every host. A NaN coordinate reads as 0, a NaN level of detail too.

use thiserror::Error;

/// The NaN that filtering gives, whatever NaN or infinities went in.
pub const QUIET_NAN: u32 = 0x7fc0_0000;

/// What the coordinates of an image mean.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Shape {
    /// s.
    D1,
    /// s, t.
    D2,
    /// s, t, r.
    D3,
    /// A direction; six layers, +x -x +y -y +z -z.
    Cube,
    /// s; the layer is chosen apart.
    D1Array,
    /// s, t; the layer is chosen apart.
    D2Array,
    /// A direction; six layers an element.
    CubeArray,
}

/// One mip level.
#[derive(Clone, Debug, PartialEq)]
pub struct Level {
    /// Texels a row.
    pub width: u32,
    /// Rows.
    pub height: u32,
    /// Slices of a 3D image, layers of an array, faces of a cube.
    pub depth: u32,
    /// Bits of r, g, b, a; row by row from t = 0, slice by slice.
    pub texels: Vec<[u32; 4]>,
}

/// Texels with their shape.
#[derive(Clone, Debug, PartialEq)]
pub struct Image {
    shape: Shape,
    levels: Vec<Level>,
}

/// An image that cannot be.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
pub enum ImageError {
    /// There is no level, or one without texels.
    #[error("level {level} has no texels")]
    Empty {
        /// The level.
        level: usize,
    },
    /// The number of texels is not width * height * depth.
    #[error("level {level} has {found} texels where its size needs {wanted}")]
    Texels {
        /// The level.
        level: usize,
        /// Texels needed.
        wanted: u64,
        /// Texels there.
        found: usize,
    },
    /// A level is not half as large as the one before, rounded down but at least 1; layers and faces stay.
    /// (OpenGL 3.0, "Texture Completeness")
    #[error("level {level} is {found:?} where {wanted:?} follows the level before")]
    Chain {
        /// The level.
        level: usize,
        /// Width, height and depth that would be right.
        wanted: [u32; 3],
        /// Width, height and depth found.
        found: [u32; 3],
    },
    /// The level before has nothing left to halve.
    #[error("level {level} follows a level that cannot be halved")]
    Surplus {
        /// The level.
        level: usize,
    },
    /// The size does not fit the shape: a 1D image has one row, a cube six square faces.
    #[error("level {level} is {width} x {height} x {depth}, which no {shape:?} image can be")]
    Size {
        /// The level.
        level: usize,
        /// The shape.
        shape: Shape,
        /// Texels a row.
        width: u32,
        /// Rows.
        height: u32,
        /// Slices.
        depth: u32,
    },
}

impl Image {
    /// An image of these levels, the largest first.
    ///
    /// # Errors
    /// Sizes and texels that do not fit together.
    pub fn new(shape: Shape, levels: Vec<Level>) -> Result<Image, ImageError> {
        if levels.is_empty() {
            return Err(ImageError::Empty { level: 0 });
        }
        for (number, level) in levels.iter().enumerate() {
            let Level { width, height, depth, .. } = *level;
            let wanted = (u64::from(width) * u64::from(height)).saturating_mul(u64::from(depth));
            if wanted == 0 {
                return Err(ImageError::Empty { level: number });
            }
            let fits = match shape {
                Shape::D1 => height == 1 && depth == 1,
                Shape::D2 => depth == 1,
                Shape::D3 | Shape::D2Array => true,
                Shape::D1Array => height == 1,
                Shape::Cube => width == height && depth == 6,
                Shape::CubeArray => width == height && depth.is_multiple_of(6),
            };
            if !fits {
                return Err(ImageError::Size { level: number, shape, width, height, depth });
            }
            if wanted != level.texels.len() as u64 {
                return Err(ImageError::Texels { level: number, wanted, found: level.texels.len() });
            }
        }
        for (before, pair) in levels.windows(2).enumerate() {
            let size = |level: &Level| [level.width, level.height, level.depth];
            let halves = if shape == Shape::D3 { [true; 3] } else { [true, true, false] };
            let half = |axis: usize, size: u32| if halves[axis] { (size / 2).max(1) } else { size };
            let (above, found) = (size(&pair[0]), size(&pair[1]));
            let wanted = [0, 1, 2].map(|axis| half(axis, above[axis]));
            if wanted == above {
                return Err(ImageError::Surplus { level: before + 1 });
            }
            if wanted != found {
                return Err(ImageError::Chain { level: before + 1, wanted, found });
            }
        }
        Ok(Image { shape, levels })
    }

    /// The faces of a cube as the layers of a 2D array, six an element; any other image unchanged.
    ///
    /// For a program that has projected the direction itself and names the face, as after the CUBE instruction of
    /// R700: s and t run from 0 to 1 on the layer, and clamp to its edge.
    pub fn with_faces_as_layers(self) -> Image {
        let shape = match self.shape {
            Shape::Cube | Shape::CubeArray => Shape::D2Array,
            Shape::D1 | Shape::D2 | Shape::D3 | Shape::D1Array | Shape::D2Array => self.shape,
        };
        Image { shape, ..self }
    }

    /// A 2D image of one level.
    ///
    /// # Errors
    /// Sizes and texels that do not fit together.
    pub fn flat(width: u32, height: u32, texels: Vec<[u32; 4]>) -> Result<Image, ImageError> {
        Image::new(Shape::D2, vec![Level { width, height, depth: 1, texels }])
    }

    /// What the coordinates mean.
    pub fn shape(&self) -> Shape {
        self.shape
    }

    /// The mip levels, the largest first.
    pub fn levels(&self) -> &[Level] {
        &self.levels
    }

    /// A texel by position; `None` outside. A level beyond the last is outside too.
    pub fn texel(&self, level: usize, x: i64, y: i64, z: i64) -> Option<[u32; 4]> {
        let level = self.levels.get(level)?;
        let inside = |at: i64, size: u32| (0..i64::from(size)).contains(&at).then_some(at as usize);
        let (x, y, z) = (inside(x, level.width)?, inside(y, level.height)?, inside(z, level.depth)?);
        Some(level.texels[(z * level.height as usize + y) * level.width as usize + x])
    }
}

/// What a coordinate outside the image means.
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
/// The names are those of Mesa's headers for the three; the meaning is OpenGL's (3.0, "Texture Minification"; the
/// mirrored ones EXT_texture_mirror_clamp).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Wrap {
    /// The image repeats.
    #[default]
    Repeat,
    /// It repeats, every other time mirrored.
    Mirror,
    /// The outermost texel continues.
    ClampToEdge,
    /// Coordinates stop at the image's edge: however far outside, linear filtering mixes half of the border in,
    /// nearest filtering reads the outermost texel. (OpenGL CLAMP)
    Clamp,
    /// The border colour.
    ClampToBorder,
    /// Mirrored once around 0, then the outermost texel.
    MirrorOnceToEdge,
    /// Mirrored once around 0, then as [`Wrap::Clamp`]. At 0 the image meets its mirror image.
    MirrorOnce,
    /// Mirrored once around 0, then the border colour.
    MirrorOnceToBorder,
}

/// How texels near a coordinate are put together.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Filter {
    /// The texel that the coordinate falls into.
    #[default]
    Nearest,
    /// Weighted by distance along each axis.
    Linear,
}

/// How mip levels are chosen.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum MipFilter {
    /// Level 0 only.
    #[default]
    None,
    /// The nearest level.
    Nearest,
    /// Two levels weighted.
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
    /// `reference` op `texel`; with a NaN only "not equal" and "always" hold.
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

/// How an image is read.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Sampler {
    /// For s, t, r. Cubes clamp to the edge of their face whatever this says.
    pub wrap: [Wrap; 3],
    /// When a texel covers more than a pixel (level of detail at most 0).
    pub mag: Filter,
    /// When it covers less.
    pub min: Filter,
    /// Between mip levels.
    pub mip: MipFilter,
    /// Bits of the border colour.
    pub border: [u32; 4],
    /// Smallest level of detail.
    pub min_lod: f32,
    /// Largest level of detail.
    pub max_lod: f32,
    /// Added to the level of detail before clamping.
    pub lod_bias: f32,
    /// Coordinates count texels instead of running from 0 to 1.
    pub unnormalised: bool,
}

impl Default for Sampler {
    /// Nearest, repeating, any level of detail.
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
        }
    }
}

/// Where to read.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Position {
    /// s, t, r; a direction for cubes.
    pub coordinates: [f32; 3],
    /// Element of an array, rounded to nearest even and clamped.
    pub layer: f32,
    /// Added to the texel position after scaling. (Texel offsets)
    pub offset: [i32; 3],
    /// Level of detail, before bias and clamping.
    pub lod: f32,
}

/// Reads an image of floats: four channels, as bits.
pub fn sample(image: &Image, sampler: &Sampler, at: &Position) -> [u32; 4] {
    filtered(image, sampler, at, |texel| texel.map(f32::from_bits)).map(f32::to_bits)
}

/// Reads a depth image: the share of the texels (weighted as the filter says) that pass, 0 to 1.
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

/// The four texels that linear filtering would mix in 2D, unmixed: (0, 1), (1, 1), (1, 0), (0, 0) in texel steps
/// from the lower corner, as the gather instructions number them.
pub fn gather(image: &Image, sampler: &Sampler, at: &Position) -> [[u32; 4]; 4] {
    let (level, place) = (&image.levels[0], resolve(image, sampler, at, 0));
    let [x, y] = [0, 1].map(|axis| place.neighbours(axis, at.offset[axis]).0);
    [(0, 1), (1, 1), (1, 0), (0, 0)]
        .map(|(dx, dy)| fetch(level, sampler, &place, [x + dx, y + dy, 0], |texel| texel))
}

/// The weights with which [`sample`] mixes: along x, y and z that of the texel to the upper side, on the larger of the
/// two levels, then that of the smaller level; 0 where nothing is mixed.
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

/// The bits of one texel, without filtering whatever the sampler says; for integer images.
pub fn sample_bits(image: &Image, sampler: &Sampler, at: &Position) -> [u32; 4] {
    let number = nearest_level(image, sampler, at.lod);
    let place = resolve(image, sampler, at, number);
    nearest(&image.levels[number], sampler, place, at.offset, |texel| texel)
}

/// log2 of the larger of two gradient lengths, in texels of level 0. (OpenGL 3.9.8, equation 3.21)
///
/// `dx` and `dy` are the changes of s, t, r from a pixel to the next; for cubes of the coordinates on the face. Axes
/// that the image does not have do not count, whatever their gradients. Zero gradients give minus infinity, a NaN in
/// one of them leaves the other, in both NaN.
pub fn lod_of_gradients(image: &Image, sampler: &Sampler, dx: [f32; 3], dy: [f32; 3]) -> f32 {
    let Level { width, height, depth, .. } = image.levels[0];
    let sizes = match sampler.unnormalised {
        true => [1.0; 3],
        false => [width, height, depth].map(|size| size as f32),
    };
    let axes = match image.shape {
        Shape::D1 | Shape::D1Array => 1,
        Shape::D2 | Shape::D2Array | Shape::Cube | Shape::CubeArray => 2,
        Shape::D3 => 3,
    };
    let square = |gradient: [f32; 3]| -> f64 {
        let scaled = gradient.iter().zip(sizes).take(axes);
        scaled.map(|(change, size)| f64::from(*change) * f64::from(size)).map(|texels| texels * texels).sum()
    };
    let larger = square(dx).max(square(dy));
    if larger == 0.0 { f32::NEG_INFINITY } else { (0.5 * libm::log2(larger)) as f32 }
}

/// Level of detail of a quad: [`lod_of_gradients`] of the changes from one lane to its neighbours.
///
/// `quad` are the coordinates of the lane that is the origin, of the one to its right and of the one below. On a
/// cube all three are projected onto the face that `facing` points at, the direction of the lane that reads.
pub fn lod_of_quad(image: &Image, sampler: &Sampler, facing: [f32; 3], quad: [[f32; 3]; 3]) -> f32 {
    let [origin, right, below] = match image.shape {
        Shape::Cube | Shape::CubeArray => quad.map(|direction| {
            let [s, t] = Face::of(facing).project(direction);
            [s, t, 0.0]
        }),
        Shape::D1 | Shape::D2 | Shape::D3 | Shape::D1Array | Shape::D2Array => quad,
    };
    let change = |other: [f32; 3]| [0, 1, 2].map(|axis| other[axis] - origin[axis]);
    lod_of_gradients(image, sampler, change(right), change(below))
}

/// A face of a cube, and coordinates on it. (OpenGL 3.9.6, table 3.19)
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Face(
    /// 0 to 5: +x, -x, +y, -y, +z, -z.
    pub u8,
);

impl Face {
    /// The face that a direction points at. With equal components z wins over y, and y over x; -0 is not below 0.
    /// (OpenGL leaves it open; so does the CUBE instruction of R700.)
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

    /// s and t, 0 to 1, of a direction projected onto this face; NaN for the direction that is all zeros.
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
}

/// A position on one level: coordinates in texels, and the slice that an array or cube fixes.
struct Place {
    texels: [f32; 3],
    /// Texels along each axis.
    size: [f32; 3],
    wrap: [Wrap; 3],
    /// Axes that are filtered and wrapped.
    axes: usize,
    slice: Option<i64>,
}

impl Place {
    /// Texel to the lower side of an axis' coordinate, moved by `offset`, and the weight of the one above it.
    fn neighbours(&self, axis: usize, offset: i32) -> (i64, f32) {
        let (texels, size, moved) = (self.texels[axis], self.size[axis], offset as f32);
        // These two modes stop the coordinate itself, so that the weights stop with it.
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

fn resolve(image: &Image, sampler: &Sampler, at: &Position, level: usize) -> Place {
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
            Place { texels: [s * size[0], t * size[1], 0.0], size, wrap: edge, axes: 2, slice: None },
            element * 6 + i64::from(face.0),
        )
    };
    let scaled = [scale(0, clean[0]), scale(1, clean[1]), scale(2, clean[2])];
    let plain = |axes, slice| Place { texels: scaled, size, wrap: sampler.wrap, axes, slice: Some(slice) };
    match image.shape {
        Shape::D1 => plain(1, 0),
        Shape::D2 => plain(2, 0),
        Shape::D3 => Place { texels: scaled, size, wrap: sampler.wrap, axes: 3, slice: None },
        Shape::D1Array => plain(1, layers(depth)),
        Shape::D2Array => plain(2, layers(depth)),
        Shape::Cube => {
            let (place, slice) = cube(0);
            Place { slice: Some(slice), ..place }
        }
        Shape::CubeArray => {
            let (place, slice) = cube(layers(depth / 6));
            Place { slice: Some(slice), ..place }
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

/// The level to read, and the weight of the next smaller one, below 1; 0 where there is none.
fn levels_of(image: &Image, sampler: &Sampler, lod: f32) -> (usize, f32) {
    let clamped = clamped_lod(sampler, lod);
    let last = image.levels.len() - 1;
    if sampler.mip != MipFilter::Linear || clamped <= 0.0 {
        return (nearest_level(image, sampler, lod), 0.0);
    }
    let below = clamped as usize;
    if below >= last { (last, 0.0) } else { (below, clamped - libm::floorf(clamped)) }
}

/// Which level a level of detail reads: a whole number, or one between two levels where they are mixed.
///
/// The first value of OpenGL's `textureQueryLod`.
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
        // ceil(lod + 1/2) - 1: halfway goes to the larger level. (OpenGL 3.9.8)
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
    let get = |texel: [i64; 3]| fetch(level, sampler, &place, texel, value);
    // An axis that is not filtered has weight 0.
    let [(x, a), (y, b), (z, c)] = [0, 1, 2].map(|axis| match axis < place.axes {
        true => place.neighbours(axis, at.offset[axis]),
        false => (0, 0.0),
    });
    let row = |y, z| mix(a, || get([x, y, z]), || get([x + 1, y, z]));
    let plane = |z| mix(b, || row(y, z), || row(y + 1, z));
    mix(c, || plane(z), || plane(z + 1))
}

/// The texel that the coordinates fall into, moved by `offset`.
fn nearest<T>(
    level: &Level,
    sampler: &Sampler,
    place: Place,
    offset: [i32; 3],
    value: impl Fn([u32; 4]) -> T,
) -> T {
    // A coordinate that stops at the edge of the image falls into its last texel.
    let wrap = place.wrap.map(|wrap| match wrap {
        Wrap::Clamp => Wrap::ClampToEdge,
        Wrap::MirrorOnce => Wrap::MirrorOnceToEdge,
        Wrap::Repeat
        | Wrap::Mirror
        | Wrap::ClampToEdge
        | Wrap::ClampToBorder
        | Wrap::MirrorOnceToEdge
        | Wrap::MirrorOnceToBorder => wrap,
    });
    let texel = [0, 1, 2].map(|axis| floor(place.texels[axis]) + i64::from(offset[axis]));
    fetch(level, sampler, &Place { wrap, ..place }, texel, value)
}

/// Texel to the lower side of a coordinate, and the weight of the one to the upper side.
fn split(texels: f32) -> (i64, f32) {
    let shifted = texels - 0.5;
    let lower = libm::floorf(shifted);
    let weight = shifted - lower;
    (floor(shifted), if weight.is_finite() { weight } else { 0.0 })
}

/// The integer below, far beyond any image but far from overflow.
fn floor(x: f32) -> i64 {
    libm::floorf(x).clamp(-1e12, 1e12) as i64
}

/// low * (1 - weight) + high * weight; at weights 0 and 1 one side alone, bit for bit, so that an infinity or NaN
/// that does not count spoils nothing.
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
    place: &Place,
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
    value(level.texels[(at[2] * level.height as usize + at[1]) * level.width as usize + at[0]])
}

/// The texel that `index` means on an axis of `size` texels; `None` for the border. (OpenGL 3.9.7)
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
        // A coordinate that stops at the edge reaches the border by half a texel: `Place::neighbours`.
        Wrap::Clamp | Wrap::ClampToBorder => inside(index),
        Wrap::MirrorOnceToEdge => Some(mirror(index).min(size - 1)),
        Wrap::MirrorOnce | Wrap::MirrorOnceToBorder => inside(mirror(index)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn bits(x: f32) -> [u32; 4] {
        [x.to_bits(); 4]
    }

    /// Texel n holds n.
    fn ramp(shape: Shape, width: u32, height: u32, depth: u32) -> Image {
        let texels = (0..width * height * depth).map(|n| bits(n as f32)).collect();
        Image::new(shape, vec![Level { width, height, depth, texels }]).unwrap()
    }

    fn at(coordinates: [f32; 3]) -> Position {
        Position { coordinates, ..Position::default() }
    }

    fn read(image: &Image, sampler: &Sampler, coordinates: [f32; 3]) -> f32 {
        f32::from_bits(sample(image, sampler, &at(coordinates))[0])
    }

    fn wrap(wrap: Wrap) -> Sampler {
        Sampler { wrap: [wrap; 3], border: bits(-9.0), ..Sampler::default() }
    }

    #[test]
    fn sizes_must_fit_shape_and_texels() {
        let level = |width, height, depth, count| Level { width, height, depth, texels: vec![[0; 4]; count] };
        assert!(Image::new(Shape::D2, vec![level(2, 2, 1, 4)]).is_ok());
        assert!(matches!(Image::new(Shape::D2, vec![level(2, 2, 1, 3)]), Err(ImageError::Texels { .. })));
        assert!(matches!(Image::new(Shape::D1, vec![level(2, 2, 1, 4)]), Err(ImageError::Size { .. })));
        assert!(matches!(Image::new(Shape::Cube, vec![level(2, 2, 5, 20)]), Err(ImageError::Size { .. })));
        assert!(matches!(Image::new(Shape::D2, vec![level(0, 2, 1, 0)]), Err(ImageError::Empty { .. })));
        assert!(matches!(Image::new(Shape::D2, vec![]), Err(ImageError::Empty { .. })));
        let huge = level(u32::MAX, u32::MAX, u32::MAX / 8, 0);
        assert!(Image::new(Shape::D3, vec![huge]).is_err());
    }

    #[test]
    fn weights_are_those_that_sample_mixes_with() {
        let level = |width, value: f32| Level {
            width,
            height: 1,
            depth: 1,
            texels: vec![bits(value); width as usize],
        };
        let image = Image::new(Shape::D2, vec![level(4, 0.0), level(2, 8.0), level(1, 16.0)]).unwrap();
        let linear = Sampler {
            mag: Filter::Linear,
            min: Filter::Linear,
            mip: MipFilter::Linear,
            ..Sampler::default()
        };
        let at = |lod| Position { coordinates: [0.4375, 0.5, 0.9], lod, ..Position::default() };
        // Texel coordinate 1.75 of the first level, 0.875 of the second.
        assert_eq!(weights(&image, &linear, &at(0.0)), [0.25, 0.0, 0.0, 0.0]);
        assert_eq!(weights(&image, &linear, &at(1.25)), [0.375, 0.0, 0.0, 0.25]);
        assert_eq!(weights(&image, &linear, &at(9.0))[3], 0.0, "nothing is behind the last level");
        assert_eq!(f32::from_bits(sample(&image, &linear, &at(1.25))[0]), 8.0 + 0.25 * 8.0);
        assert_eq!(weights(&image, &Sampler::default(), &at(1.25)), [0.0; 4], "nearest mixes nothing");
    }

    #[test]
    fn nearest_hits_every_texel_centre() {
        let image = ramp(Shape::D2, 8, 4, 1);
        for y in 0..4 {
            for x in 0..8 {
                let centre = [(x as f32 + 0.5) / 8.0, (y as f32 + 0.5) / 4.0, 0.0];
                assert_eq!(read(&image, &wrap(Wrap::Repeat), centre), (y * 8 + x) as f32);
            }
        }
    }

    #[test]
    fn wrap_modes_at_nearest() {
        let image = ramp(Shape::D1, 4, 1, 1);
        let row = |mode| {
            [-5, -4, -1, 0, 3, 4, 7, 8].map(|x| read(&image, &wrap(mode), [(x as f32 + 0.5) / 4.0, 0.0, 0.0]))
        };
        assert_eq!(row(Wrap::Repeat), [3.0, 0.0, 3.0, 0.0, 3.0, 0.0, 3.0, 0.0]);
        assert_eq!(row(Wrap::Mirror), [3.0, 3.0, 0.0, 0.0, 3.0, 3.0, 0.0, 0.0]);
        assert_eq!(row(Wrap::ClampToEdge), [0.0, 0.0, 0.0, 0.0, 3.0, 3.0, 3.0, 3.0]);
        assert_eq!(row(Wrap::ClampToBorder), [-9.0, -9.0, -9.0, 0.0, 3.0, -9.0, -9.0, -9.0]);
        assert_eq!(row(Wrap::MirrorOnceToEdge), [3.0, 3.0, 0.0, 0.0, 3.0, 3.0, 3.0, 3.0]);
        assert_eq!(row(Wrap::MirrorOnceToBorder), [-9.0, 3.0, 0.0, 0.0, 3.0, -9.0, -9.0, -9.0]);
    }

    #[test]
    fn linear_filtering_mixes_neighbours() {
        let image = ramp(Shape::D2, 2, 2, 1);
        let linear = Sampler { mag: Filter::Linear, ..wrap(Wrap::ClampToEdge) };
        assert_eq!(read(&image, &linear, [0.5, 0.5, 0.0]), 1.5);
        assert_eq!(read(&image, &linear, [0.25, 0.25, 0.0]), 0.0);
        assert_eq!(read(&image, &linear, [0.375, 0.25, 0.0]), 0.25);
        assert_eq!(read(&image, &linear, [0.0, 0.0, 0.0]), 0.0);
        let border = Sampler { mag: Filter::Linear, ..wrap(Wrap::ClampToBorder) };
        assert_eq!(read(&image, &border, [0.0, 0.25, 0.0]), -4.5, "half border, half texel 0");
    }

    #[test]
    fn linear_filtering_in_three_dimensions() {
        let image = ramp(Shape::D3, 2, 2, 2);
        let linear = Sampler { mag: Filter::Linear, ..wrap(Wrap::ClampToEdge) };
        assert_eq!(read(&image, &linear, [0.5, 0.5, 0.5]), 3.5);
        assert_eq!(read(&image, &linear, [0.25, 0.25, 0.5]), 2.0);
    }

    #[test]
    fn unnormalised_coordinates_count_texels() {
        let image = ramp(Shape::D2, 5, 3, 1);
        let sampler = Sampler { unnormalised: true, ..wrap(Wrap::ClampToEdge) };
        assert_eq!(read(&image, &sampler, [3.5, 2.5, 0.0]), 13.0);
        assert_eq!(read(&image, &sampler, [99.0, 0.0, 0.0]), 4.0);
    }

    #[test]
    fn layers_are_rounded_and_clamped() {
        let image = ramp(Shape::D2Array, 1, 1, 3);
        for (layer, found) in [(-5.0, 0.0), (0.4, 0.0), (1.5, 2.0), (9.0, 2.0), (f32::NAN, 0.0)] {
            let position = Position { layer, ..Position::default() };
            assert_eq!(f32::from_bits(sample(&image, &Sampler::default(), &position)[0]), found, "{layer}");
        }
    }

    /// OpenGL 3.0, table 3.19.
    #[test]
    fn cube_directions_choose_their_face() {
        let image = ramp(Shape::Cube, 1, 1, 6);
        let directions = [
            [1.0, 0.1, 0.1],
            [-1.0, 0.1, 0.1],
            [0.1, 1.0, 0.1],
            [0.1, -1.0, 0.1],
            [0.1, 0.1, 1.0],
            [0.1, 0.1, -1.0],
        ];
        for (face, direction) in directions.into_iter().enumerate() {
            assert_eq!(read(&image, &Sampler::default(), direction), face as f32);
        }
        assert_eq!(Face(0).project([2.0, 1.0, -1.0]), [0.75, 0.25]);
        assert_eq!(Face(3).project([1.0, -2.0, 1.0]), [0.75, 0.25]);
    }

    #[test]
    fn the_accessed_level_is_clamped_and_whole_unless_levels_are_mixed() {
        let level = |size: u32| Level {
            width: size,
            height: size,
            depth: 1,
            texels: vec![bits(0.0); (size * size) as usize],
        };
        let image = Image::new(Shape::D2, vec![level(4), level(2), level(1)]).unwrap();
        let read = |mip, lod| accessed_level(&image, &Sampler { mip, ..Sampler::default() }, lod);
        assert_eq!([-1.0, 0.75, 9.0].map(|lod| read(MipFilter::Linear, lod)), [0.0, 0.75, 2.0]);
        assert_eq!([-1.0, 0.75, 9.0].map(|lod| read(MipFilter::Nearest, lod)), [0.0, 1.0, 2.0]);
        assert_eq!(read(MipFilter::None, 2.0), 0.0);
    }

    #[test]
    fn mip_levels_follow_the_level_of_detail() {
        let level = |size: u32, value: f32| Level {
            width: size,
            height: size,
            depth: 1,
            texels: vec![bits(value); (size * size) as usize],
        };
        let image = Image::new(Shape::D2, vec![level(4, 0.0), level(2, 10.0), level(1, 20.0)]).unwrap();
        let value = |mip, lod| {
            let sampler = Sampler { mip, ..Sampler::default() };
            f32::from_bits(sample(&image, &sampler, &Position { lod, ..at([0.5; 3]) })[0])
        };
        assert_eq!(value(MipFilter::None, 2.0), 0.0);
        assert_eq!(
            [-1.0, 0.5, 0.51, 1.5, 9.0].map(|lod| value(MipFilter::Nearest, lod)),
            [0.0, 0.0, 10.0, 10.0, 20.0]
        );
        assert_eq!([-1.0, 0.5, 1.25, 9.0].map(|lod| value(MipFilter::Linear, lod)), [0.0, 5.0, 12.5, 20.0]);
        let biased = Sampler { mip: MipFilter::Nearest, lod_bias: 1.0, max_lod: 1.0, ..Sampler::default() };
        assert_eq!(f32::from_bits(sample(&image, &biased, &Position { lod: 5.0, ..at([0.5; 3]) })[0]), 10.0);
    }

    #[test]
    fn the_level_of_detail_is_the_log_of_the_longer_gradient() {
        let image = ramp(Shape::D2, 8, 4, 1);
        let lod = |dx, dy| lod_of_gradients(&image, &Sampler::default(), dx, dy);
        assert_eq!(lod([0.25, 0.0, 0.0], [0.0, 0.25, 0.0]), 1.0);
        assert_eq!(lod([0.125, 0.0, 0.0], [0.0, 1.0, 0.0]), 2.0);
        assert_eq!(lod([0.0; 3], [0.0; 3]), f32::NEG_INFINITY);
    }

    #[test]
    fn comparisons_are_filtered_after_the_test() {
        let image = ramp(Shape::D1, 2, 1, 1);
        let linear = Sampler { mag: Filter::Linear, ..wrap(Wrap::ClampToEdge) };
        let share = sample_compare(&image, &linear, &at([0.625, 0.0, 0.0]), Compare::Less, 0.5);
        assert_eq!(share, 0.75);
        assert!(!Compare::Less.passes(f32::NAN, 1.0) && Compare::NotEqual.passes(f32::NAN, 1.0));
    }

    #[test]
    fn gather_gives_the_four_neighbours() {
        let image = ramp(Shape::D2, 2, 2, 1);
        let texels = gather(&image, &wrap(Wrap::ClampToEdge), &at([0.5, 0.5, 0.0]));
        assert_eq!(texels.map(|texel| f32::from_bits(texel[0])), [2.0, 3.0, 1.0, 0.0]);
    }

    #[test]
    fn an_infinite_neighbour_of_weight_zero_does_not_count() {
        let texels = vec![bits(1.0), bits(f32::INFINITY)];
        let image = Image::flat(2, 1, texels).unwrap();
        let linear = Sampler { mag: Filter::Linear, ..wrap(Wrap::ClampToEdge) };
        assert_eq!(read(&image, &linear, [0.25, 0.5, 0.0]), 1.0);
    }

    #[test]
    fn levels_halve_down_to_one() {
        let level = |width: u32, height: u32, depth: u32| {
            let texels = vec![[0; 4]; (width * height * depth) as usize];
            Level { width, height, depth, texels }
        };
        assert!(Image::new(Shape::D2, vec![level(5, 2, 1), level(2, 1, 1), level(1, 1, 1)]).is_ok());
        assert!(Image::new(Shape::D3, vec![level(4, 4, 4), level(2, 2, 2)]).is_ok());
        assert!(Image::new(Shape::D2Array, vec![level(4, 4, 3), level(2, 2, 3)]).is_ok());
        let broken = [
            (Shape::D2, vec![level(4, 4, 1), level(4, 4, 1)], 1),
            (Shape::D3, vec![level(4, 4, 4), level(2, 2, 4)], 1),
            (Shape::D2Array, vec![level(4, 4, 3), level(2, 2, 1)], 1),
        ];
        for (shape, levels, at) in broken {
            let error = Image::new(shape, levels).unwrap_err();
            assert!(matches!(error, ImageError::Chain { level, .. } if level == at), "{error}");
        }
        let surplus = Image::new(Shape::D2, vec![level(2, 1, 1), level(1, 1, 1), level(1, 1, 1)]);
        assert_eq!(surplus, Err(ImageError::Surplus { level: 2 }));
    }

    #[test]
    fn clamp_never_reads_the_border_at_nearest() {
        let image = ramp(Shape::D1, 4, 1, 1);
        let row = |mode| [-2.0, -0.1, 0.1, 0.9, 1.0, 3.0].map(|s| read(&image, &wrap(mode), [s, 0.0, 0.0]));
        assert_eq!(row(Wrap::Clamp), [0.0, 0.0, 0.0, 3.0, 3.0, 3.0]);
        assert_eq!(row(Wrap::MirrorOnce), [3.0, 0.0, 0.0, 3.0, 3.0, 3.0]);
    }

    #[test]
    fn clamp_mixes_half_of_the_border_however_far_outside() {
        let image = ramp(Shape::D1, 4, 1, 1);
        let row = |mode| {
            let sampler = Sampler { mag: Filter::Linear, ..wrap(mode) };
            [-7.0, 0.0, 0.25, 1.0, 1.125, 7.0, f32::INFINITY].map(|s| read(&image, &sampler, [s, 0.0, 0.0]))
        };
        // Half of -9 and half of 0, or of 3.
        assert_eq!(row(Wrap::Clamp), [-4.5, -4.5, 0.5, -3.0, -3.0, -3.0, -3.0]);
        // At 0 the image meets its mirror image, not the border.
        assert_eq!(row(Wrap::MirrorOnce), [-3.0, 0.0, 0.5, -3.0, -3.0, -3.0, -3.0]);
        assert_eq!(row(Wrap::ClampToBorder), [-9.0, -4.5, 0.5, -3.0, -9.0, -9.0, -9.0]);
    }

    #[test]
    fn linear_wrap_modes_at_the_seam() {
        let image = ramp(Shape::D1, 4, 1, 1);
        let at_zero_and_one = |mode| {
            let sampler = Sampler { mag: Filter::Linear, ..wrap(mode) };
            [0.0, 1.0].map(|s| read(&image, &sampler, [s, 0.0, 0.0]))
        };
        assert_eq!(at_zero_and_one(Wrap::Repeat), [1.5, 1.5]);
        assert_eq!(at_zero_and_one(Wrap::Mirror), [0.0, 3.0]);
        assert_eq!(at_zero_and_one(Wrap::ClampToEdge), [0.0, 3.0]);
        assert_eq!(at_zero_and_one(Wrap::MirrorOnceToEdge), [0.0, 3.0]);
        assert_eq!(at_zero_and_one(Wrap::MirrorOnceToBorder), [0.0, -3.0]);
    }

    #[test]
    fn offsets_move_by_whole_texels_before_wrapping() {
        let image = ramp(Shape::D1, 4, 1, 1);
        let read = |mode, offset: i32| {
            let position = Position { offset: [offset, 0, 0], ..at([0.125, 0.0, 0.0]) };
            f32::from_bits(sample(&image, &wrap(mode), &position)[0])
        };
        assert_eq!([-1, 1, 5].map(|offset| read(Wrap::Repeat, offset)), [3.0, 1.0, 1.0]);
        assert_eq!([-1, 1, 5].map(|offset| read(Wrap::ClampToEdge, offset)), [0.0, 1.0, 3.0]);
        let linear = Sampler { mag: Filter::Linear, ..wrap(Wrap::Clamp) };
        let far = Position { offset: [7, 0, 0], ..at([0.125, 0.0, 0.0]) };
        assert_eq!(f32::from_bits(sample(&image, &linear, &far)[0]), -3.0, "half of 3, half of the border");
    }

    #[test]
    fn a_level_mixed_with_itself_is_unchanged() {
        let level = |size: u32, value: u32| Level {
            width: size,
            height: 1,
            depth: 1,
            texels: vec![[value; 4]; size as usize],
        };
        // 0.1 * 0.7 + 0.1 * 0.3 is not 0.1 in binary32; -0 * 1 + 1 * 0 is +0.
        let (tenth, minus_zero) = (0.1f32.to_bits(), (-0.0f32).to_bits());
        let image = Image::new(Shape::D1, vec![level(4, 0), level(2, minus_zero), level(1, tenth)]).unwrap();
        let sampler = Sampler { mip: MipFilter::Linear, max_lod: f32::INFINITY, ..Sampler::default() };
        let read = |lod| sample(&image, &sampler, &Position { lod, ..at([0.5; 3]) })[0];
        assert_eq!(read(1.0), minus_zero);
        for lod in [2.0, 2.3, 9.7, f32::INFINITY] {
            assert_eq!(read(lod), tenth, "{lod}");
        }
    }

    #[test]
    fn a_texel_of_weight_zero_does_not_count_on_either_side() {
        // 2^-25 below the centre of texel 1: its weight rounds to 1.
        let texels = vec![bits(f32::INFINITY), bits(1.0)];
        let image = Image::flat(2, 1, texels).unwrap();
        let linear = Sampler { mag: Filter::Linear, unnormalised: true, ..wrap(Wrap::Repeat) };
        let just_below_the_first_centre = 0.5f32.next_down();
        let texels = vec![bits(1.0), bits(f32::INFINITY)];
        let turned = Image::flat(2, 1, texels).unwrap();
        assert_eq!(read(&turned, &linear, [just_below_the_first_centre, 0.5, 0.0]), 1.0);
        assert_eq!(read(&image, &linear, [1.5, 0.5, 0.0]), 1.0);
    }

    #[test]
    fn a_nan_that_filtering_makes_is_the_quiet_one() {
        let texels = vec![[0xffc1_2345; 4], [0x7f80_0001; 4]];
        let image = Image::flat(2, 1, texels).unwrap();
        let linear = Sampler { mag: Filter::Linear, ..wrap(Wrap::ClampToEdge) };
        assert_eq!(sample(&image, &linear, &at([0.5, 0.5, 0.0])), [0x7fc0_0000; 4]);
        // Nearest filtering gives the bits of the texel.
        let nearest = wrap(Wrap::ClampToEdge);
        assert_eq!(sample(&image, &nearest, &at([0.25, 0.5, 0.0])), [0xffc1_2345; 4]);
        assert_eq!(sample(&image, &nearest, &at([0.75, 0.5, 0.0])), [0x7f80_0001; 4]);
    }

    #[test]
    fn an_axis_that_the_image_does_not_have_has_no_say_in_the_level_of_detail() {
        let image = ramp(Shape::D2, 8, 4, 1);
        let (normal, unscaled) = (Sampler::default(), Sampler { unnormalised: true, ..Sampler::default() });
        for stray in [100.0, f32::INFINITY, f32::NAN] {
            assert_eq!(lod_of_gradients(&image, &normal, [0.25, 0.0, stray], [0.0, 0.25, stray]), 1.0);
            assert_eq!(lod_of_gradients(&image, &unscaled, [2.0, 0.0, stray], [0.0, 1.0, stray]), 1.0);
        }
        let volume = ramp(Shape::D3, 2, 2, 2);
        assert_eq!(lod_of_gradients(&volume, &unscaled, [0.0, 0.0, 4.0], [0.0; 3]), 2.0);
    }

    #[test]
    fn a_quad_gives_the_level_of_detail_of_its_differences() {
        let image = ramp(Shape::D2, 8, 8, 1);
        let quad = [[0.5, 0.5, 0.0], [0.75, 0.5, 0.0], [0.5, 0.625, 0.0]];
        assert_eq!(lod_of_quad(&image, &Sampler::default(), quad[0], quad), 1.0);
    }

    #[test]
    fn on_a_cube_the_level_of_detail_is_that_on_the_face() {
        let image = ramp(Shape::Cube, 8, 8, 6);
        // A quarter of the face to the right: 0.5 of the -1..1 that a face spans; the direction's length does not matter.
        let quad = [[0.0, 0.0, 1.0], [1.0, 0.0, 2.0], [0.0, 0.0, 4.0]];
        assert_eq!(lod_of_quad(&image, &Sampler::default(), quad[0], quad), 1.0);
    }

    /// OpenGL 3.0, table 3.19: each face seen from inside, its corners by s and t.
    #[test]
    fn each_face_has_its_own_axes() {
        // Direction of the face, of growing s, of growing t.
        let faces: [[[f32; 3]; 3]; 6] = [
            [[1.0, 0.0, 0.0], [0.0, 0.0, -1.0], [0.0, -1.0, 0.0]],
            [[-1.0, 0.0, 0.0], [0.0, 0.0, 1.0], [0.0, -1.0, 0.0]],
            [[0.0, 1.0, 0.0], [1.0, 0.0, 0.0], [0.0, 0.0, 1.0]],
            [[0.0, -1.0, 0.0], [1.0, 0.0, 0.0], [0.0, 0.0, -1.0]],
            [[0.0, 0.0, 1.0], [1.0, 0.0, 0.0], [0.0, -1.0, 0.0]],
            [[0.0, 0.0, -1.0], [-1.0, 0.0, 0.0], [0.0, -1.0, 0.0]],
        ];
        let image = ramp(Shape::Cube, 4, 4, 6);
        for (number, [out, along_s, along_t]) in faces.into_iter().enumerate() {
            for y in 0..4 {
                for x in 0..4 {
                    let (s, t) = (x as f32 / 2.0 - 0.75, y as f32 / 2.0 - 0.75);
                    let direction = [0, 1, 2].map(|i| 3.0 * (out[i] + s * along_s[i] + t * along_t[i]));
                    assert_eq!(Face::of(direction), Face(number as u8));
                    let texel = (number as u32 * 16 + y * 4 + x) as f32;
                    assert_eq!(read(&image, &Sampler::default(), direction), texel, "{direction:?}");
                }
            }
        }
    }

    #[test]
    fn on_the_edges_of_a_cube_z_wins_over_y_over_x() {
        assert_eq!(Face::of([1.0, 1.0, 1.0]), Face(4));
        assert_eq!(Face::of([-1.0, 1.0, -1.0]), Face(5));
        assert_eq!(Face::of([1.0, -1.0, 0.5]), Face(3));
        assert_eq!(Face::of([0.0, 0.0, -0.0]), Face(4), "as the CUBE instruction of R700: -0 is not below 0");
        let image = ramp(Shape::Cube, 2, 2, 6);
        assert_eq!(read(&image, &Sampler::default(), [0.0, 0.0, 0.0]), 16.0, "the first texel of +z");
        assert_eq!(read(&image, &Sampler::default(), [1.0, -1.0, 1.0]), 19.0, "the far corner of +z");
    }

    #[test]
    fn faces_as_layers_keep_their_texels() {
        let cube = ramp(Shape::Cube, 2, 2, 6);
        let layers = cube.clone().with_faces_as_layers();
        assert_eq!((layers.shape(), layers.levels()), (Shape::D2Array, cube.levels()));
        let position = Position { layer: 3.0, ..at([0.75, 0.25, 0.0]) };
        assert_eq!(f32::from_bits(sample(&layers, &Sampler::default(), &position)[0]), 13.0);
        let flat = ramp(Shape::D2, 2, 2, 1);
        assert_eq!(flat.clone().with_faces_as_layers(), flat);
    }

    #[test]
    fn nearest_always_gives_a_texel_or_the_border() {
        let mut seed = 0x9e37_79b9_7f4a_7c15u64;
        let mut next = || {
            seed ^= seed << 13;
            seed ^= seed >> 7;
            seed ^= seed << 17;
            f32::from_bits(seed as u32)
        };
        let modes = [
            Wrap::Repeat,
            Wrap::Mirror,
            Wrap::ClampToEdge,
            Wrap::Clamp,
            Wrap::ClampToBorder,
            Wrap::MirrorOnceToEdge,
            Wrap::MirrorOnce,
            Wrap::MirrorOnceToBorder,
        ];
        let images = [
            ramp(Shape::D1, 5, 1, 1),
            ramp(Shape::D2, 3, 5, 1),
            ramp(Shape::D3, 3, 4, 2),
            ramp(Shape::Cube, 2, 2, 6),
            ramp(Shape::CubeArray, 2, 2, 12),
        ];
        for round in 0..100_000 {
            let image = &images[round % images.len()];
            let position = Position {
                coordinates: [next(), next(), next()],
                layer: next(),
                offset: [next(), next(), next()].map(|bits| bits.to_bits() as i32),
                lod: next(),
            };
            // 5 images, 8 modes: no common factor, so every pair comes up.
            let mut sampler = wrap(modes[round % modes.len()]);
            sampler.unnormalised = round % 3 == 0;
            let value = f32::from_bits(sample(image, &sampler, &position)[0]);
            let known = value == -9.0 || (value >= 0.0 && (value as usize) < image.levels[0].texels.len());
            assert!(known && value.fract() == 0.0, "{value} at {position:?}");
            // Linear filtering of any bit pattern must not panic.
            sampler.mag = Filter::Linear;
            sampler.mip = MipFilter::Linear;
            sample(image, &sampler, &position);
            sample_bits(image, &sampler, &position);
            sample_compare(image, &sampler, &position, Compare::Less, next());
            gather(image, &sampler, &position);
            let mut direction = || [next(), next(), next()];
            let quad = [direction(), direction(), direction()];
            lod_of_quad(image, &sampler, quad[0], quad);
        }
    }
}
