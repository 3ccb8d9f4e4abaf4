//! Images: texels with their shape, in mip levels.

use thiserror::Error;

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
#[derive(Clone, Debug, PartialEq, Eq)]
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
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Image {
    pub(super) shape: Shape,
    pub(super) levels: Vec<Level>,
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
        Image::check(shape, &levels)?;
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

    /// An image of several samples a texel: sample n is read as level n, and all are of one size.
    ///
    /// # Errors
    /// Sizes and texels that do not fit together.
    pub fn of_samples(shape: Shape, samples: Vec<Level>) -> Result<Image, ImageError> {
        Image::check(shape, &samples)?;
        let size = |level: &Level| [level.width, level.height, level.depth];
        let wanted = samples.first().map_or([0; 3], size);
        match samples.iter().position(|sample| size(sample) != wanted) {
            Some(level) => Err(ImageError::Chain { level, wanted, found: size(&samples[level]) }),
            None => Ok(Image { shape, levels: samples }),
        }
    }

    /// Each level by itself.
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
            if wanted != level.texels.len() as u64 {
                return Err(ImageError::Texels { level: number, wanted, found: level.texels.len() });
            }
        }
        Ok(())
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
