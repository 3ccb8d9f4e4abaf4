//! What launches of all machines have in common: errors, textures, names to choose from.

use std::sync::Arc;

use reconverge_simt::texture::{Filter, Image, ImageError, Level, Sampler, Shape, Wrap};
use reconverge_simt::{Engine, Level as SimdLevel, Mode};
use serde::Deserialize;
use thiserror::Error;

use crate::array::{Array, Dtype};
use crate::values::{Files, Values, ValuesError};

/// Why a launch gave no result.
#[derive(Clone, Debug, PartialEq, Error)]
pub enum Error {
    /// Numbers that cannot be had.
    #[error(transparent)]
    Values(#[from] ValuesError),
    /// The program or the launch does not fit the machine.
    #[error("{0}")]
    Machine(String),
    /// A texture that cannot be.
    #[error("texture {unit}: {error}")]
    Texture {
        /// The unit.
        unit: u8,
        /// What is wrong.
        error: ImageError,
    },
    /// A number of values that fits nothing.
    #[error("{place}: {found} numbers where {wanted} would fit")]
    Count {
        /// What they are for.
        place: String,
        /// Numbers there are.
        found: usize,
        /// What would fit.
        wanted: String,
    },
    /// More lanes than a launch may have.
    #[error("lanes: {0} lanes; 0 to {MOST_LANES} fits here")]
    Lanes(usize),
    /// A name that is not one of a list.
    #[error("{place}: unknown value `{found}`: {help}")]
    Name {
        /// Where it stands.
        place: String,
        /// What stands there.
        found: String,
        /// What would fit.
        help: String,
    },
    /// The engines that were to run in lockstep disagree: a mistake of this program, not of the one that runs.
    #[error("{0}")]
    Differ(String),
    /// The program did what is forbidden or undefined.
    #[error("{0}")]
    Trap(String),
}

/// How to run, besides what a launch says itself.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct How {
    /// Which engine runs; the fast one when absent. Results do not depend on it.
    pub engine: Option<Engine>,
    /// What the fast engine computes with; the most that the processor has when absent. Results do not depend on it.
    pub level: Option<SimdLevel>,
}

impl How {
    /// The engine that runs.
    pub fn engine(self) -> Engine {
        self.engine.unwrap_or(Engine::Fast)
    }
}

impl From<Engine> for How {
    fn from(engine: Engine) -> How {
        How { engine: Some(engine), level: None }
    }
}

/// A texture of one level.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct TextureValues {
    /// 0 to 15.
    pub unit: u8,
    /// Width; width and height; or width, height and depth.
    pub size: Vec<u32>,
    /// Six square faces.
    #[serde(default)]
    pub cube: bool,
    /// One to four numbers a texel, row by row.
    pub texels: Values,
    /// `nearest` or `linear`.
    pub filter: Option<String>,
    /// `repeat`, `mirror`, `clamp_to_edge`, `clamp_to_border`.
    pub wrap: Option<String>,
}

impl TextureValues {
    /// The image, and a sampler for all three coordinates alike.
    ///
    /// # Errors
    /// Numbers that cannot be had or do not fit the size, and names that are unknown.
    pub(crate) fn image(&self, files: &dyn Files) -> Result<(Arc<Image>, Sampler), Error> {
        let place = format!("texture {}", self.unit);
        let array = self.texels.load_as(&place, Dtype::F32, files)?;
        let (shape, [width, height, depth]) = match (self.size[..].as_ref(), self.cube) {
            ([width], false) => (Shape::D1, [*width, 1, 1]),
            ([width, height], false) => (Shape::D2, [*width, *height, 1]),
            ([width, height, depth], false) => (Shape::D3, [*width, *height, *depth]),
            ([width], true) => (Shape::Cube, [*width, *width, 6]),
            (other, _) => {
                let wanted = "1 to 3 sizes (1 for a cube)".to_owned();
                return Err(Error::Count { place, found: other.len(), wanted });
            }
        };
        let count = u64::from(width) * u64::from(height) * u64::from(depth);
        let found = array.len();
        let each = (found as u64).checked_div(count).unwrap_or(0);
        if !(1..=4).contains(&each) || each * count != found as u64 {
            let wanted = format!("{count} texels of 1 to 4");
            return Err(Error::Count { place, found, wanted });
        }
        let words: Vec<u32> = array.words().collect();
        let texels = words.chunks(each as usize).map(|texel| channels(texel.iter().copied())).collect();
        let image = Image::new(shape, vec![Level { width, height, depth, texels }])
            .map_err(|error| Error::Texture { unit: self.unit, error })?;
        let filter = match self.filter.as_deref() {
            None => Filter::Nearest,
            Some(name) => choose(&place, name, &[("nearest", Filter::Nearest), ("linear", Filter::Linear)])?,
        };
        let wraps = [
            ("repeat", Wrap::Repeat),
            ("mirror", Wrap::Mirror),
            ("clamp_to_edge", Wrap::ClampToEdge),
            ("clamp_to_border", Wrap::ClampToBorder),
        ];
        let wrap = match self.wrap.as_deref() {
            None => Wrap::ClampToEdge,
            Some(name) => choose(&place, name, &wraps)?,
        };
        let sampler = Sampler { wrap: [wrap; 3], mag: filter, min: filter, ..Sampler::default() };
        Ok((Arc::new(image), sampler))
    }
}

/// Lanes of a launch, at most: a row of quads of 4096 x 4096 pixels. It keeps a hostile launch from taking all memory.
pub const MOST_LANES: usize = 1 << 24;

/// How many lanes a launch has: those stated, or as many as the longest input has rows, or 1.
///
/// # Errors
/// More than [`MOST_LANES`].
pub(crate) fn lanes<'a>(
    stated: Option<usize>,
    inputs: impl Iterator<Item = &'a Array>,
) -> Result<usize, Error> {
    let from_inputs = || inputs.map(|array| array.shape.first().copied().unwrap_or(1)).max();
    match stated.or_else(from_inputs).unwrap_or(1) {
        lanes if lanes > MOST_LANES => Err(Error::Lanes(lanes)),
        lanes => Ok(lanes),
    }
}

/// `strict` when nothing is said.
///
/// # Errors
/// Another name.
pub(crate) fn mode(name: Option<&str>) -> Result<Mode, Error> {
    match name {
        None => Ok(Mode::Strict),
        Some(name) => choose("mode", name, &[("strict", Mode::Strict), ("lenient", Mode::Lenient)]),
    }
}

/// Up to four words as r, g, b, a; the rest 0.
pub(crate) fn channels(words: impl Iterator<Item = u32>) -> [u32; 4] {
    let mut value = [0; 4];
    value.iter_mut().zip(words).for_each(|(channel, word)| *channel = word);
    value
}

/// The value of a name.
///
/// # Errors
/// A name that is none of the choices.
pub(crate) fn choose<T: Copy>(place: &str, name: &str, choices: &[(&'static str, T)]) -> Result<T, Error> {
    choices.iter().find(|(known, _)| *known == name).map(|(_, value)| *value).ok_or_else(|| Error::Name {
        place: place.to_owned(),
        found: name.to_owned(),
        help: reconverge_isa::source::suggest(
            name,
            choices.iter().map(|(known, _)| *known).collect::<Vec<_>>(),
        ),
    })
}
