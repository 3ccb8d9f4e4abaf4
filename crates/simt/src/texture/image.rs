//! Images: texels with their shape, in mip levels.

use std::fmt;
use std::sync::{Arc, LazyLock};

use thiserror::Error;

use super::elements::{Channel, Elements, are_bounded};

/// The shape of an image, which determines the meaning of coordinates.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Shape {
    /// One axis; coordinate s.
    D1,
    /// Two axes; coordinates s and t.
    D2,
    /// Three axes; coordinates s, t and r.
    D3,
    /// A cube; the coordinates are a direction. The image has six layers: +x -x +y -y +z -z.
    Cube,
    /// Layers with one axis. Coordinate s is on this axis, and another coordinate selects the layer.
    D1Array,
    /// Layers of two axes; coordinates s and t, and a separate coordinate for the layer.
    D2Array,
    /// Several cubes with six layers each; a direction, and a separate coordinate for the cube.
    CubeArray,
}

impl Shape {
    /// Returns the number of axes of a layer or face.
    pub(super) const fn axes(self) -> usize {
        match self {
            Shape::D1 | Shape::D1Array => 1,
            Shape::D2 | Shape::D2Array | Shape::Cube | Shape::CubeArray => 2,
            Shape::D3 => 3,
        }
    }
}

/// One mip level of an image.
#[derive(Clone, Debug)]
pub struct Level {
    /// Number of texels per row.
    pub width: u32,
    /// Number of rows per slice.
    pub height: u32,
    /// Number of slices of a 3D image, layers of an array, or faces of a cube.
    pub depth: u32,
    /// The texels.
    pub texels: Texels,
}

/// Texels of a level, sorted by slice. The texels of a slice are sorted by row, and the first row is at t = 0.
#[derive(Clone)]
pub enum Texels {
    /// Bits of red, green, blue and alpha.
    Words(Vec<[u32; 4]>),
    /// Elements. A read of an element converts the element to components.
    Elements(Elements),
    /// Bits of red, green, blue and alpha, computed by the first read.
    Later(Arc<LazyLock<Vec<[u32; 4]>, Decode>>),
}

/// A function that computes all texels of a level.
pub type Decode = Box<dyn FnOnce() -> Vec<[u32; 4]> + Send>;

impl Texels {
    /// Returns texels that `decode` computes at the first read.
    pub fn later(decode: impl FnOnce() -> Vec<[u32; 4]> + Send + 'static) -> Texels {
        Texels::Later(Arc::new(LazyLock::new(Box::new(decode))))
    }
}

impl From<Vec<[u32; 4]>> for Texels {
    fn from(words: Vec<[u32; 4]>) -> Texels {
        Texels::Words(words)
    }
}

impl FromIterator<[u32; 4]> for Texels {
    fn from_iter<T: IntoIterator<Item = [u32; 4]>>(texels: T) -> Texels {
        Texels::Words(texels.into_iter().collect())
    }
}

impl fmt::Debug for Texels {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Texels::Words(words) => f.debug_tuple("Words").field(words).finish(),
            Texels::Elements(elements) => elements.fmt(f),
            Texels::Later(_) => f.write_str("Later"),
        }
    }
}

impl Image {
    /// Returns the total size in bytes of all levels. Levels whose texels are stored as elements do not count. Texels
    /// that are decoded later do count.
    pub fn decoded_bytes(&self) -> usize {
        let bytes = |level: &Level| match level.texels {
            Texels::Elements(_) => 0,
            Texels::Words(_) | Texels::Later(_) => {
                [level.width, level.height, level.depth].map(|size| size as usize).iter().product::<usize>()
                    * 16
            }
        };
        self.levels.iter().map(bytes).sum()
    }
}

impl Level {
    /// Returns the bits of red, green, blue and alpha of a texel.
    ///
    /// # Panics
    /// Panics if the texel is outside the level.
    pub fn texel(&self, x: usize, y: usize, z: usize) -> [u32; 4] {
        let number = || (z * self.height as usize + y) * self.width as usize + x;
        match &self.texels {
            Texels::Words(words) => words[number()],
            Texels::Elements(elements) => elements.texel(x, y, z),
            Texels::Later(later) => later[number()],
        }
    }

    /// Returns the bits of red, green, blue and alpha of all texels. The texels are sorted by slice. The texels of a
    /// slice are sorted by row, and the first row is at t = 0.
    pub fn texels(&self) -> impl Iterator<Item = [u32; 4]> {
        self.rows().flat_map(|row| self.row(row))
    }

    /// Returns the coordinates y and z of all rows.
    fn rows(&self) -> impl Iterator<Item = (usize, usize)> + use<> {
        let [_, height, depth] = self.size().map(|size| size as usize);
        (0..depth).flat_map(move |z| (0..height).map(move |y| (y, z)))
    }

    /// Returns the bits of red, green, blue and alpha of the texels in a row.
    fn row(&self, (y, z): (usize, usize)) -> impl Iterator<Item = [u32; 4]> {
        (0..self.width as usize).map(move |x| self.texel(x, y, z))
    }

    /// Returns width, height and depth.
    fn size(&self) -> [u32; 3] {
        [self.width, self.height, self.depth]
    }
}

/// Compares sizes and texels. The form in which the texels are stored does not matter.
impl PartialEq for Level {
    fn eq(&self, other: &Level) -> bool {
        if self.size() != other.size() {
            return false;
        }
        let like = match (&self.texels, &other.texels) {
            (Texels::Words(own), Texels::Words(others)) => return own == others,
            (Texels::Later(own), Texels::Later(others)) if Arc::ptr_eq(own, others) => return true,
            (Texels::Elements(own), Texels::Elements(others)) if own.is_like(others) => Some((own, others)),
            _ => None,
        };
        self.rows().all(|(y, z)| {
            let width = self.width as usize;
            // If the bytes of two rows are equal, the texels of the rows are equal. If the bytes differ, the texels may
            // still be equal.
            let equal =
                like.is_some_and(|(own, others)| match (own.row(width, y, z), others.row(width, y, z)) {
                    (Some(own), Some(others)) => own == others,
                    _ => false,
                });
            equal || self.row((y, z)).eq(other.row((y, z)))
        })
    }
}

impl Eq for Level {}

/// Texels in mip levels, with a shape.
#[derive(Clone, Debug)]
pub struct Image {
    pub(super) shape: Shape,
    pub(super) levels: Vec<Level>,
    /// Whether the levels are the samples of multisampled texels.
    of_samples: bool,
    /// Result of [`Image::is_bounded`] for each level.
    bounded: Vec<bool>,
}

/// Compares shapes and levels. The form in which the texels are stored does not matter.
impl PartialEq for Image {
    fn eq(&self, other: &Image) -> bool {
        (self.shape, self.of_samples) == (other.shape, other.of_samples) && self.levels == other.levels
    }
}

impl Eq for Image {}

/// Reason why levels do not form a valid image.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
pub enum ImageError {
    /// There is no level, or a level has no texels.
    #[error("level {level} has no texels")]
    Empty {
        /// Number of the level.
        level: usize,
    },
    /// The number of texels is not width * height * depth.
    #[error("level {level}: expected {wanted} texels (width * height * depth), found {found}")]
    Texels {
        /// Number of the level.
        level: usize,
        /// Number of texels that the size requires.
        wanted: u64,
        /// Number of texels found.
        found: usize,
    },
    /// Elements extend past the end of their bytes.
    #[error("level {level}: the elements extend past the end of their bytes")]
    Beyond {
        /// Number of the level.
        level: usize,
    },
    /// The size of a level is wrong. The size must be half the size of the previous level, rounded down, but not 0. The
    /// number of layers or faces must not change from level to level. (OpenGL 3.0, "Texture Completeness")
    #[error("level {level}: expected size {wanted:?} (half the previous level), found {found:?}")]
    Chain {
        /// Number of the level.
        level: usize,
        /// Expected width, height and depth.
        wanted: [u32; 3],
        /// Width, height and depth found.
        found: [u32; 3],
    },
    /// The preceding level has a single texel, so this level must not exist.
    #[error("level {level} must not exist, because the level before it has one texel")]
    Surplus {
        /// Number of the level.
        level: usize,
    },
    /// The size is not valid for the shape. For example, a 1D image must have one row, and a cube must have six square
    /// faces.
    #[error("level {level}: a {shape:?} image cannot have the size {width} x {height} x {depth}")]
    Size {
        /// Number of the level.
        level: usize,
        /// Shape of the image.
        shape: Shape,
        /// Number of texels per row.
        width: u32,
        /// Number of rows per slice.
        height: u32,
        /// Number of slices.
        depth: u32,
    },
}

impl Image {
    /// Returns an image with these mip levels. The largest level comes first.
    ///
    /// # Errors
    /// Returns an error if the sizes or the numbers of texels do not fit together.
    pub fn new(shape: Shape, levels: Vec<Level>) -> Result<Image, ImageError> {
        Image::check(shape, &levels)?;
        for (before, pair) in levels.windows(2).enumerate() {
            let size = Level::size;
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
        Ok(Image::of_levels(shape, levels, false))
    }

    /// Returns an image with several samples per texel. Sample n is read as level n. All samples must have the same
    /// size.
    ///
    /// # Errors
    /// Returns an error if the sizes or the numbers of texels do not fit together.
    pub fn of_samples(shape: Shape, samples: Vec<Level>) -> Result<Image, ImageError> {
        Image::check(shape, &samples)?;
        let size = Level::size;
        let wanted = samples.first().map_or([0; 3], size);
        match samples.iter().position(|sample| size(sample) != wanted) {
            Some(level) => Err(ImageError::Chain { level, wanted, found: size(&samples[level]) }),
            None => Ok(Image::of_levels(shape, samples, true)),
        }
    }

    fn of_levels(shape: Shape, levels: Vec<Level>, of_samples: bool) -> Image {
        let bounded = levels.iter().map(|level| match &level.texels {
            Texels::Words(words) => are_bounded(words.as_flattened()),
            Texels::Elements(elements) => elements.channels().iter().all(Channel::is_bounded),
            Texels::Later(_) => false,
        });
        Image { shape, bounded: bounded.collect(), levels, of_samples }
    }

    /// Returns whether all components of a level are known to be [bounded](are_bounded).
    ///
    /// Consider a mean of bounded numbers with weights from 0 to 1, or a mean of two such means. The result is neither
    /// infinite nor a NaN. If one weight of a mean is 0 and the other weight is 1, the result has the bits of one
    /// number. The bits of -0 could change, but -0 does not occur: no bounded number is -0, and no product with a
    /// weight above 0 underflows.
    pub(super) fn is_bounded(&self, level: usize) -> bool {
        self.bounded[level]
    }

    /// Checks the size and the texels of each level, without comparing levels.
    fn check(shape: Shape, levels: &[Level]) -> Result<(), ImageError> {
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
            match &level.texels {
                Texels::Words(words) if wanted != words.len() as u64 => {
                    return Err(ImageError::Texels { level: number, wanted, found: words.len() });
                }
                Texels::Elements(elements) if !elements.reaches(level.size()) => {
                    return Err(ImageError::Beyond { level: number });
                }
                Texels::Words(_) | Texels::Elements(_) | Texels::Later(_) => {}
            }
        }
        Ok(())
    }

    /// Returns a cube image as a 2D array in which each cube has six layers. Returns any other image unchanged.
    ///
    /// Use this function if the program selects a face and projects directions onto this face. Programs for R700's CUBE
    /// instruction do this. Coordinates s and t then run from 0 to 1 on the layer, and are clamped to the edge of the
    /// layer.
    pub fn with_faces_as_layers(self) -> Image {
        let shape = match self.shape {
            Shape::Cube | Shape::CubeArray => Shape::D2Array,
            Shape::D1 | Shape::D2 | Shape::D3 | Shape::D1Array | Shape::D2Array => self.shape,
        };
        Image { shape, ..self }
    }

    /// Returns a 2D image with one level.
    ///
    /// # Errors
    /// Returns an error if the number of texels does not fit the size.
    pub fn flat(width: u32, height: u32, texels: Vec<[u32; 4]>) -> Result<Image, ImageError> {
        Image::new(Shape::D2, vec![Level { width, height, depth: 1, texels: texels.into() }])
    }

    /// Returns the shape of the image.
    pub fn shape(&self) -> Shape {
        self.shape
    }

    /// Returns the mip levels, the largest first.
    pub fn levels(&self) -> &[Level] {
        &self.levels
    }

    /// Returns the number of samples per texel. The number is 1 unless the image was created from samples.
    pub fn samples(&self) -> u32 {
        if self.of_samples { self.levels.len() as u32 } else { 1 }
    }

    /// Returns the texel at a position, or `None` if the position or the level is outside the image.
    pub fn texel(&self, level: usize, x: i64, y: i64, z: i64) -> Option<[u32; 4]> {
        let level = self.levels.get(level)?;
        let inside = |at: i64, size: u32| (0..i64::from(size)).contains(&at).then_some(at as usize);
        let (x, y, z) = (inside(x, level.width)?, inside(y, level.height)?, inside(z, level.depth)?);
        Some(level.texel(x, y, z))
    }
}
