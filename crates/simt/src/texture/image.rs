//! Images: texels with their shape, in mip levels.

use std::fmt;
use std::sync::{Arc, LazyLock};

use thiserror::Error;

use super::elements::{Channel, Elements, are_bounded};

/// Meaning of an image's coordinates.
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
    /// s; the layer is a separate coordinate.
    D1Array,
    /// s, t; the layer is a separate coordinate.
    D2Array,
    /// A direction; six layers per element.
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

/// One mip level.
#[derive(Clone, Debug)]
pub struct Level {
    /// Texels per row.
    pub width: u32,
    /// Rows.
    pub height: u32,
    /// Slices of a 3D image, layers of an array, faces of a cube.
    pub depth: u32,
    /// The texels.
    pub texels: Texels,
}

/// Texels of a level, row by row from t = 0, slice by slice.
#[derive(Clone)]
pub enum Texels {
    /// Bits of r, g, b, a.
    Words(Vec<[u32; 4]>),
    /// Elements that are converted when they are read.
    Elements(Elements),
    /// Bits of r, g, b, a, which the first read computes.
    Later(Arc<LazyLock<Vec<[u32; 4]>, Decode>>),
}

/// Computes all texels of a level.
pub type Decode = Box<dyn FnOnce() -> Vec<[u32; 4]> + Send>;

impl Texels {
    /// Returns texels that the first read computes.
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
    /// Returns the number of bytes of the texels that are not elements, once all are decoded.
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
    /// Returns bits of r, g, b, a of a texel.
    ///
    /// # Panics
    /// The texel is outside of the level.
    pub fn texel(&self, x: usize, y: usize, z: usize) -> [u32; 4] {
        let number = || (z * self.height as usize + y) * self.width as usize + x;
        match &self.texels {
            Texels::Words(words) => words[number()],
            Texels::Elements(elements) => elements.texel(x, y, z),
            Texels::Later(later) => later[number()],
        }
    }

    /// Returns bits of r, g, b, a of all texels, row by row from t = 0, slice by slice.
    pub fn texels(&self) -> impl Iterator<Item = [u32; 4]> {
        self.rows().flat_map(|row| self.row(row))
    }

    /// Returns y and z of all rows.
    fn rows(&self) -> impl Iterator<Item = (usize, usize)> + use<> {
        let [_, height, depth] = self.size().map(|size| size as usize);
        (0..depth).flat_map(move |z| (0..height).map(move |y| (y, z)))
    }

    /// Returns bits of r, g, b, a of the texels of a row.
    fn row(&self, (y, z): (usize, usize)) -> impl Iterator<Item = [u32; 4]> {
        (0..self.width as usize).map(move |x| self.texel(x, y, z))
    }

    /// Returns width, height and depth.
    fn size(&self) -> [u32; 3] {
        [self.width, self.height, self.depth]
    }
}

/// Levels are equal if their sizes and texels are, whatever form the texels have.
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
            // Rows of equal bytes are equal. Rows of different bytes may still be equal.
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

/// Texels with their shape.
#[derive(Clone, Debug)]
pub struct Image {
    pub(super) shape: Shape,
    pub(super) levels: Vec<Level>,
    /// Whether the levels are samples.
    of_samples: bool,
    /// [`Image::is_bounded`], by level.
    bounded: Vec<bool>,
}

/// Images are equal if their shapes and levels are, whatever form the texels have.
impl PartialEq for Image {
    fn eq(&self, other: &Image) -> bool {
        (self.shape, self.of_samples) == (other.shape, other.of_samples) && self.levels == other.levels
    }
}

impl Eq for Image {}

/// Reason why an image is not valid.
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
        /// Texels found.
        found: usize,
    },
    /// Elements extend past the end of their bytes.
    #[error("level {level} is larger than the bytes of its elements")]
    Beyond {
        /// The level.
        level: usize,
    },
    /// A level is not half as large as the one before, rounded down but at least 1; layers and faces stay.
    /// (OpenGL 3.0, "Texture Completeness")
    #[error("level {level} is {found:?} where {wanted:?} follows the level before")]
    Chain {
        /// The level.
        level: usize,
        /// Expected width, height and depth.
        wanted: [u32; 3],
        /// Width, height and depth found.
        found: [u32; 3],
    },
    /// The level before has one texel, so it cannot be halved.
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
        /// Texels per row.
        width: u32,
        /// Rows.
        height: u32,
        /// Slices.
        depth: u32,
    },
}

impl Image {
    /// Returns an image of these levels, the largest first.
    ///
    /// # Errors
    /// The sizes and texels do not fit together.
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

    /// Returns an image with several samples per texel. Sample n is read as level n, and all samples have the same
    /// size.
    ///
    /// # Errors
    /// The sizes and texels do not fit together.
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

    /// Returns whether all components of a level are known to be [bounded](are_bounded) singles.
    ///
    /// A mean of such numbers with weights from 0 to 1, and a mean of two such means, is neither infinite nor a NaN.
    /// With a weight of 0 or 1 it is one of them, bit for bit: only -0 could turn into 0, but no product of a weight
    /// above 0 underflows.
    pub(super) fn is_bounded(&self, level: usize) -> bool {
        self.bounded[level]
    }

    /// Checks each level by itself.
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

    /// Returns the faces of a cube as the layers of a 2D array, six per element; any other image unchanged.
    ///
    /// This is for a program that has projected the direction itself and names the face, as after the CUBE
    /// instruction of R700: s and t run from 0 to 1 on the layer, and clamp to its edge.
    pub fn with_faces_as_layers(self) -> Image {
        let shape = match self.shape {
            Shape::Cube | Shape::CubeArray => Shape::D2Array,
            Shape::D1 | Shape::D2 | Shape::D3 | Shape::D1Array | Shape::D2Array => self.shape,
        };
        Image { shape, ..self }
    }

    /// Returns a 2D image of one level.
    ///
    /// # Errors
    /// The sizes and texels do not fit together.
    pub fn flat(width: u32, height: u32, texels: Vec<[u32; 4]>) -> Result<Image, ImageError> {
        Image::new(Shape::D2, vec![Level { width, height, depth: 1, texels: texels.into() }])
    }

    /// Returns the meaning of the coordinates.
    pub fn shape(&self) -> Shape {
        self.shape
    }

    /// Returns the mip levels, the largest first.
    pub fn levels(&self) -> &[Level] {
        &self.levels
    }

    /// Returns the number of samples of a texel: 1 unless the image was created from samples.
    pub fn samples(&self) -> u32 {
        if self.of_samples { self.levels.len() as u32 } else { 1 }
    }

    /// Returns a texel by position; `None` if the position or the level is outside the image.
    pub fn texel(&self, level: usize, x: i64, y: i64, z: i64) -> Option<[u32; 4]> {
        let level = self.levels.get(level)?;
        let inside = |at: i64, size: u32| (0..i64::from(size)).contains(&at).then_some(at as usize);
        let (x, y, z) = (inside(x, level.width)?, inside(y, level.height)?, inside(z, level.depth)?);
        Some(level.texel(x, y, z))
    }
}
