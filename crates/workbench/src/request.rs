//! Parts of launches that all machines share. [`Common`] has the launch file's fields for all machines.
//! [`MachineLaunch`] is the interface for the fields of one machine. This file also defines textures, inputs with
//! numbers for each lane, and the values of options.

use std::fmt::Debug;
use std::ops::Range;
use std::str::FromStr;
use std::sync::Arc;

use reconverge_isa::limits::{LANES, NoRoom, room};
use reconverge_isa::lint::Finding;
use reconverge_isa::source::suggest;
use reconverge_isa::{Image as File, Isa, Program};
use reconverge_r700::texture::{COMPARES, FILTERS, MIP_FILTERS, WRAPS};
use reconverge_simt::texture::{Compare, Filter, Image, Level, Sampler, Shape, Wrap};
use serde::Deserialize;

use crate::array::{Array, Dtype};
use crate::error::{Error, Trapped};
use crate::holds::Expectations;
use crate::result::KILLED;
use crate::session::Session;
use crate::target::Target;
use crate::values::{Files, Loaded, Values};

/// Launch fields that exist for all machines.
#[derive(Clone, Debug, Default, Deserialize)]
pub struct Common {
    /// Path of the program's file.
    pub program: Option<String>,
    /// Name of the program that runs if the file contains several programs.
    pub kernel: Option<String>,
    /// The chip. This chip replaces the chip that the program's file states.
    pub chip: Option<String>,
    /// The program type, if the program's file does not state the program type.
    pub stage: Option<String>,
    /// Number of lanes. By default, the number is the number of rows of the longest input.
    pub lanes: Option<usize>,
    /// Mode: `strict` or `lenient`.
    pub mode: Option<String>,
    /// Whether strict mode detects races (default: true).
    pub race_check: Option<bool>,
    /// Maximum number of instructions that are issued to one group.
    pub watchdog: Option<u64>,
    /// Textures.
    #[serde(default)]
    pub texture: Vec<TextureValues>,
    /// Expected results, and conditions on the counts of the run.
    #[serde(default)]
    pub expect: Expectations,
    /// If present, the program must trap, and the message of the trap must contain this text.
    pub trap: Option<String>,
    /// Three numbers for each lane. The first two numbers are the x and y coordinates of the lane's pixel. The third
    /// number is 1 if the primitive covers this pixel.
    pub pixels: Option<Values>,
    /// Two numbers for each lane. The numbers are the index of the lane's vertex, and the instance.
    pub vertices: Option<Values>,
    /// If present, the range of lanes to which the launch is reduced; see `LaunchFile::choose`.
    #[serde(skip)]
    pub piece: Option<Range<usize>>,
}

/// The common fields of a launch, together with the program, the target and the files.
#[derive(Clone, Copy)]
pub struct Request<'a> {
    /// The common fields of the launch.
    pub common: &'a Common,
    /// The file that contains the program.
    pub image: &'a File,
    /// The program.
    pub program: &'a Program,
    /// The machine and the chip. If the launch states a chip, the target has the launch's chip. Otherwise, the target
    /// has the chip of the program's file.
    pub target: &'a Target,
    /// Reads the files that the launch names.
    pub files: &'a dyn Files,
}

/// The fields of a launch that belong to one machine.
pub trait MachineLaunch: Debug + Send + Sync {
    /// Returns a session that is ready to run the launch.
    ///
    /// # Errors
    /// Returns an error if the launch is not valid for the program or the machine.
    fn prepare(&self, request: &Request<'_>) -> Result<Session, Error>;

    /// If the launch changes the program before the run, returns the changed program. Also returns the findings of
    /// `Machine::lint` for the changed program. Returns `None` if the launch runs the words unchanged.
    ///
    /// # Errors
    /// Returns an error if the launch is not valid for the program or the machine.
    fn lint(&self, _request: &Request<'_>) -> Result<Option<(Program, Vec<Finding>)>, Error> {
        Ok(None)
    }

    /// Sets a field to the value of a command-line option. `option` is the option's name without dashes.
    ///
    /// # Errors
    /// Returns [`Error::Option`] if the machine does not have the option. Returns another error if the value is
    /// malformed.
    fn set(&mut self, option: &str, value: &str) -> Result<(), Error>;

    /// Returns a change of the launch that avoids the trap of `program`, or `None` if the machine has no such change.
    fn remedy(&self, _trapped: &Trapped, _program: &Program) -> Option<String> {
        None
    }

    /// Returns a copy of these fields.
    fn copy(&self) -> Arc<dyn MachineLaunch>;
}

/// A texture with its contents and filter.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct TextureValues {
    /// Texture unit, 0 to 15. On R700, this number is the number of the resource.
    pub unit: u8,
    /// Number of the sampler, if this number differs from `unit` (R700).
    pub sampler: Option<u8>,
    /// One to three sizes: width, height and depth.
    pub size: Vec<u32>,
    /// Whether the image is a cube map of six square faces.
    #[serde(default)]
    pub cube: bool,
    /// Whether the last number of `size` is the number of layers.
    #[serde(default)]
    pub layers: bool,
    /// Number of mip levels (default: 1). Each level is half as large as the previous level.
    pub levels: Option<usize>,
    /// One to four numbers per texel, ordered by level, slice and row.
    pub texels: Values,
    /// Filter: `nearest` (default) or `linear`.
    pub filter: Option<String>,
    /// Wrap mode for all coordinates, one of [`WRAPS`].
    pub wrap: Option<String>,
    /// Whether texels are integers. Integer texels are not filtered. (R700, Tesla)
    #[serde(default)]
    pub integer: bool,
    /// Whether texels are fractions from 0 to 1. If texels are fractions, the reference value of a depth comparison is
    /// clamped to [0, 1]. (R700, Tesla)
    #[serde(default)]
    pub fractions: bool,
    /// Four letters that select the components of the result. On R700 (DST_SEL), each letter is one of `xyzw01`. The
    /// number 1 has the type of the texels. On Tesla, the letters select the components of the result of a comparison.
    /// Each letter is then one of `x01`, and x is the share of texels that pass the comparison.
    pub select: Option<String>,
}

/// A sampler that is independent of a texture.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SamplerValues {
    /// Number of the sampler. On R500, this number is the texture unit of the sampler's texture.
    pub number: u8,
    /// Wrap modes for s, t and r, each one of [`WRAPS`].
    pub wrap: Option<[String; 3]>,
    /// Magnification filter: `nearest` or `linear`.
    pub mag: Option<String>,
    /// Minification filter: `nearest` or `linear`.
    pub min: Option<String>,
    /// Filter between mip levels: `none`, `nearest` or `linear`.
    pub mip: Option<String>,
    /// The border colour, as four numbers.
    pub border: Option<Values>,
    /// Minimum level of detail.
    pub min_lod: Option<f32>,
    /// Maximum level of detail.
    pub max_lod: Option<f32>,
    /// Bias that is added to the level of detail.
    pub lod_bias: Option<f32>,
    /// Comparison, one of [`COMPARES`].
    pub compare: Option<String>,
    /// Whether coordinates are in texels. By default, coordinates are fractions of the texture.
    #[serde(default)]
    pub unnormalised: bool,
    /// Whether linear filtering at the edge of a cube face includes texels of the adjacent faces.
    #[serde(default)]
    pub seamless: bool,
    /// Maximum number of sample positions of an anisotropic filter.
    #[serde(default)]
    pub anisotropy: u8,
}

impl SamplerValues {
    /// Parses the value of an option: `NUMBER=FIELD=VALUE,FIELD=VALUE`. `wrap` takes one mode for s, t and r, or three
    /// modes separated by `/`. `border` takes four numbers separated by `/`.
    ///
    /// # Errors
    /// Returns an error if the text does not have the form `NUMBER=FIELD=VALUE`. Also returns an error if a field is
    /// unknown or a value is invalid.
    pub(crate) fn of_argument(text: &str) -> Result<SamplerValues, Error> {
        let wrong = |why: &str| Error::Machine(format!("--sampler {text}: {why}"));
        let form = || wrong("expected 0=mag=linear,wrap=repeat, with the fields of [[sampler]]");
        let (number, fields) = text.split_once('=').ok_or_else(form)?;
        let number: u8 = number.parse().map_err(|_| form())?;
        let mut table = toml::Table::from_iter([("number".to_owned(), toml::Value::from(i64::from(number)))]);
        for field in fields.split(',') {
            let (name, value) = field.split_once('=').ok_or_else(form)?;
            let one = |text: &str| text.parse().unwrap_or_else(|_| toml::Value::from(text));
            let mut parts: Vec<toml::Value> = value.split('/').map(one).collect();
            let value = match (name, parts.len()) {
                ("wrap", 1) => toml::Value::Array(vec![parts.remove(0); 3]),
                (_, 1) => parts.remove(0),
                _ => toml::Value::Array(parts),
            };
            if table.insert(name.to_owned(), value).is_some() {
                return Err(wrong(&format!("duplicate field `{name}`")));
            }
        }
        table.try_into().map_err(|error: toml::de::Error| wrong(error.to_string().trim_end()))
    }

    /// Returns the sampler, and the comparison that the sampler performs.
    ///
    /// # Errors
    /// Returns an error if a name is unknown or the border is not four numbers.
    pub(crate) fn sampler(&self, files: &dyn Files) -> Result<(Sampler, Compare), Error> {
        let place = format!("sampler {}", self.number);
        let Self { unnormalised, seamless, anisotropy, .. } = *self;
        let mut sampler = Sampler { unnormalised, seamless, anisotropy, ..Sampler::default() };
        if let Some(names) = &self.wrap {
            for (wrap, name) in sampler.wrap.iter_mut().zip(names) {
                *wrap = choose(&place, name, &WRAPS)?;
            }
        }
        sampler.mag = choose_or(Filter::default(), &place, &self.mag, &FILTERS)?;
        sampler.min = choose_or(Filter::default(), &place, &self.min, &FILTERS)?;
        sampler.mip = choose_or(sampler.mip, &place, &self.mip, &MIP_FILTERS)?;
        if let Some(border) = &self.border {
            let array = border.load_float(&place, true, files)?.array;
            let words: Vec<u32> = array.words().collect();
            let (place, found, wanted) = (place.clone(), array.len(), "4".to_owned());
            let four = words.try_into().ok().filter(|_| array.dtype.bytes() == 4);
            sampler.border = four.ok_or(Error::Count { place, found, wanted })?;
        }
        sampler.min_lod = self.min_lod.unwrap_or(sampler.min_lod);
        sampler.max_lod = self.max_lod.unwrap_or(sampler.max_lod);
        sampler.lod_bias = self.lod_bias.unwrap_or(sampler.lod_bias);
        Ok((sampler, choose_or(Compare::Never, &place, &self.compare, &COMPARES)?))
    }
}

impl TextureValues {
    /// Parses the value of an option: `UNIT=VALUES:8x8`.
    pub(crate) fn of_argument(text: &str) -> Result<TextureValues, Error> {
        let (name, rest) = assignment("texture", text)?;
        let wrong = |why: String| Error::Machine(format!("--texture {text}: {why}"));
        let unit = name.parse().map_err(|_| wrong(format!("`{name}` is not a unit; expected 0 to 15")))?;
        let (values, size) =
            rest.rsplit_once(':').ok_or_else(|| wrong("expected UNIT=VALUES:8x8".to_owned()))?;
        Ok(TextureValues::new(unit, sizes(size)?, Values::Text(values.to_owned())))
    }

    /// Creates a texture with one mip level. `size` is width and height.
    pub fn new(unit: u8, size: Vec<u32>, texels: Values) -> TextureValues {
        TextureValues {
            unit,
            sampler: None,
            size,
            cube: false,
            layers: false,
            levels: None,
            texels,
            filter: None,
            wrap: None,
            integer: false,
            fractions: false,
            select: None,
        }
    }

    /// Returns the image, and a sampler with the texture's filter and wrap mode.
    ///
    /// # Errors
    /// Returns an error if the numbers cannot be loaded or do not match the size. Also returns an error if a name is
    /// unknown, or if `isa` does not support a field.
    pub(crate) fn image(&self, isa: Isa, files: &dyn Files) -> Result<(Arc<Image>, Sampler), Error> {
        let place = format!("texture {}", self.unit);
        let typed =
            [("integer", self.integer), ("fractions", self.fractions), ("select", self.select.is_some())];
        if let Some((field, _)) = typed.iter().find(|(_, stated)| *stated && isa == Isa::R500) {
            return Err(Error::Machine(format!("{place}: `{field}` is not for {isa} programs")));
        }
        let array = self.texels.load_as(&place, Dtype::F32, files)?;
        let (shape, [width, height, depth]) = match (self.size[..].as_ref(), self.cube, self.layers) {
            ([width], false, false) => (Shape::D1, [*width, 1, 1]),
            ([width, height], false, false) => (Shape::D2, [*width, *height, 1]),
            ([width, height, depth], false, false) => (Shape::D3, [*width, *height, *depth]),
            ([width], true, false) => (Shape::Cube, [*width, *width, 6]),
            ([width, layers], false, true) => (Shape::D1Array, [*width, 1, *layers]),
            ([width, height, layers], false, true) => (Shape::D2Array, [*width, *height, *layers]),
            ([width, cubes], true, true) => (Shape::CubeArray, [*width, *width, cubes.saturating_mul(6)]),
            (other, ..) => {
                let wanted = "1 to 3 sizes (a cube: 1, with layers: 2 or 3)".to_owned();
                return Err(Error::Count { place, found: other.len(), wanted });
            }
        };
        let sizes: Vec<[u32; 3]> = (0..self.levels.unwrap_or(1).min(32))
            .map(|level| {
                let half = |size: u32| (size >> level).max(size.min(1));
                let depth = if shape == Shape::D3 { half(depth) } else { depth };
                [half(width), half(height), depth]
            })
            .collect();
        let texels = |[width, height, depth]: &[u32; 3]| {
            (u64::from(*width) * u64::from(*height)).saturating_mul(u64::from(*depth))
        };
        let count = sizes.iter().map(texels).fold(0, u64::saturating_add);
        let found = array.len();
        let each = (found as u64).checked_div(count).unwrap_or(0);
        if !(1..=4).contains(&each) || each * count != found as u64 {
            let wanted = format!("1 to 4 for each of {count} texels");
            return Err(Error::Count { place, found, wanted });
        }
        // The numbers are in memory twice, as words and as four channels per texel.
        room((4 * found as u64).saturating_add(16 * count), 1)?;
        let words: Vec<u32> = array.words().collect();
        let mut all = words.chunks(each as usize).map(|texel| channels(texel.iter().copied()));
        let levels = sizes.iter().map(|size| {
            let [width, height, depth] = *size;
            Level { width, height, depth, texels: all.by_ref().take(texels(size) as usize).collect() }
        });
        let image =
            Image::new(shape, levels.collect()).map_err(|error| Error::Texture { unit: self.unit, error })?;
        let filter = choose_or(Filter::Nearest, &place, &self.filter, &FILTERS)?;
        let wrap = choose_or(Wrap::ClampToEdge, &place, &self.wrap, &WRAPS)?;
        let sampler = Sampler { wrap: [wrap; 3], mag: filter, min: filter, ..Sampler::default() };
        Ok((Arc::new(image), sampler))
    }

    /// Converts the letters of `select` to four values. `all` is the list of legal letters, for the message.
    ///
    /// # Errors
    /// Returns an error if a letter is not legal, or if the number of letters is not four.
    pub(crate) fn selected<T>(
        &self,
        all: &str,
        component: impl Fn(char) -> Option<T>,
    ) -> Result<Option<[T; 4]>, Error> {
        let Some(letters) = &self.select else { return Ok(None) };
        let components = letters.chars().map(component).collect::<Option<Vec<T>>>();
        let four = components.and_then(|components| components.try_into().ok());
        four.map(Some).ok_or_else(|| {
            let unit = self.unit;
            Error::Machine(format!("texture {unit}: select `{letters}`: expected four letters of {all}"))
        })
    }

    /// Returns the number of the sampler that the texture defines. A texture defines a sampler if the texture states a
    /// field of a sampler, or if `alone` is set.
    pub(crate) fn own_sampler(&self, alone: bool) -> Option<u8> {
        let states = self.sampler.is_some() || self.filter.is_some() || self.wrap.is_some();
        (states || alone).then(|| self.sampler.unwrap_or(self.unit))
    }
}

/// Estimate of the size of one lane's results in bytes. A lane has four render targets and a depth. The results are in
/// memory twice, in the engine and as arrays.
const LANE_BYTES: u64 = 2 * 17 * 4;

/// Checks that enough memory is available for the results of `lanes` lanes.
///
/// # Errors
/// Returns an error if not enough memory is available.
pub(crate) fn room_for(lanes: usize) -> Result<(), NoRoom> {
    room(LANE_BYTES.saturating_mul(lanes as u64), 1)
}

/// Returns the number of lanes of a launch. If the launch states the number, returns this number. Otherwise, returns
/// the number of rows of the longest input, or 1 if the launch does not have inputs.
///
/// # Errors
/// Returns an error if the number of lanes is 0, exceeds [`LANES`], or needs more memory than is available. Also
/// returns an error if the inputs are files without rows, because the number of lanes is then unknown.
pub(crate) fn lanes<'a>(
    stated: Option<usize>,
    inputs: impl Iterator<Item = (&'a str, &'a Loaded)>,
) -> Result<usize, Error> {
    let (mut rows, mut flat) = (None, None);
    for (place, Loaded { array, flat: is_flat, .. }) in inputs {
        if array.is_empty() {
            return Err(Error::Machine(format!("{place}: expected at least one number, found none")));
        }
        match is_flat {
            true => flat = flat.or(Some((place, array.len()))),
            false => rows = rows.max(Some(array.rows())),
        }
    }
    match (stated.or(rows), flat) {
        (Some(lanes), _) if !(1..=LANES.size()).contains(&lanes) => Err(Error::Lanes(lanes)),
        (Some(lanes), _) => {
            room_for(lanes)?;
            Ok(lanes)
        }
        (None, Some((place, count))) => Err(Error::Flat { place: place.to_owned(), count }),
        (None, None) => Ok(1),
    }
}

/// Returns up to four numbers for each lane. If an array has several rows, the array has one row per lane. If an array
/// has a single row, this row applies to all lanes. If an array without rows has as many numbers as the launch has
/// lanes, each lane gets one number. Any other array without rows must have one to four numbers, and each lane gets the
/// whole array. As an exception, the numbers of a file of raw numbers are divided evenly among the lanes.
///
/// # Errors
/// Returns an error if the number of values is wrong, or if elements do not have 32 bits.
fn per_lane(place: &str, loaded: &Loaded, lanes: usize) -> Result<Vec<[u32; 4]>, Error> {
    let Loaded { array, flat, .. } = loaded;
    let count = array.len();
    let refused = |wanted: String| Err(Error::Count { place: place.to_owned(), found: count, wanted });
    // The numbers are in memory twice, as words and as four channels per lane.
    room((4 * count as u64).saturating_add(16 * lanes as u64), 1)?;
    if array.dtype.bytes() != 4 {
        return refused(format!("numbers of 32 bits instead of {}", array.dtype));
    }
    let each = count / lanes;
    let divides = count.is_multiple_of(lanes) && (1..=4).contains(&each);
    let rows = array.shape.len() > 1 && (each == 1 || array.shape.last() == Some(&each));
    let words = || array.words();
    if array.shape.len() > 1 && array.rows() == 1 && (1..=4).contains(&count) {
        return Ok(vec![channels(words()); lanes]);
    }
    if divides && (each == 1 || *flat || rows) {
        let words: Vec<u32> = words().collect();
        return Ok(words.chunks(each).map(|lane| channels(lane.iter().copied())).collect());
    }
    if (1..=4).contains(&count) {
        return Ok(vec![channels(words()); lanes]);
    }
    match divides {
        true => refused(format!(
            "{lanes} numbers (one per lane), 1 to 4 numbers for all lanes, or {lanes} rows of {each} numbers (an \
             array of shape [{lanes}, {each}], or lists [[…], …] in a launch file)"
        )),
        false => {
            refused(format!("1 to 4 numbers for each of {lanes} lanes, or 1 to 4 numbers for all lanes"))
        }
    }
}

/// Returns the number of lanes, and the inputs. Each element of `inputs` has the input's number, the input's name for
/// messages, and the input's values. If `integers` is set, integers from files are not converted to floats.
///
/// # Errors
/// Returns an error if values cannot be loaded, or if the number of values does not fit the number of lanes.
pub(crate) fn by_lane<'a, T>(
    request: &Request<'_>,
    integers: bool,
    inputs: impl Iterator<Item = (u8, String, &'a Values)>,
    input: impl Fn(u8, Vec<[u32; 4]>) -> T,
) -> Result<(usize, Vec<T>), Error> {
    let mut loaded = Vec::new();
    for (number, place, values) in inputs {
        let found = values.load_float(&place, integers, request.files)?;
        loaded.push((number, place, values, found));
    }
    let all = loaded.iter().map(|(_, place, _, loaded)| (&place[..], loaded));
    let lanes = lanes(request.common.lanes, all)?;
    for (_, place, values, loaded) in &loaded {
        if let Some(note) = either_way(place, values, &loaded.array, lanes) {
            request.files.noted(&note);
        }
    }
    let of_lanes = |(number, place, _, loaded): (u8, String, _, Loaded)| {
        Ok(input(number, per_lane(&place, &loaded, lanes)?))
    };
    Ok((lanes, loaded.into_iter().map(of_lanes).collect::<Result<_, Error>>()?))
}

/// Returns a note if an input is ambiguous. An input without rows is ambiguous if it has two to four numbers, and the
/// launch has as many lanes. In this case, the user may mean one number for each lane, or the whole input for every
/// lane.
fn either_way(place: &str, values: &Values, array: &Array, lanes: usize) -> Option<String> {
    let count = array.len();
    let listed = matches!(values, Values::Text(text) if text.contains(','));
    if !listed || array.shape.len() > 1 || count != lanes || !(2..=4).contains(&count) {
        return None;
    }
    let shown: Vec<String> = (0..count).map(|index| array.shown(index)).collect();
    Some(format!(
        "{place}: each of the {lanes} lanes has one of the {count} numbers; use ({}) to give all numbers to every lane, or \
         ({}) to state one number per lane without this note",
        shown.join(","),
        shown.join("),(")
    ))
}

/// If the program killed some lanes, returns an output with the value 1 for each killed lane.
pub(crate) fn killed(lanes: impl Iterator<Item = bool>) -> Option<(String, Array)> {
    let bytes: Vec<u8> = lanes.map(u8::from).collect();
    let shape = vec![bytes.len()];
    bytes.contains(&1).then(|| (KILLED.to_owned(), Array { dtype: Dtype::U8, shape, bytes }))
}

/// Parses the value of an option: `NAME=VALUES`.
///
/// # Errors
/// Returns an error if the text does not contain `=`.
pub(crate) fn assigned<'a>(option: &str, text: &'a str) -> Result<(&'a str, Values), Error> {
    let (name, values) = assignment(option, text)?;
    Ok((name, Values::Text(values.to_owned())))
}

/// Splits the value of an option: `NAME=VALUE`.
///
/// # Errors
/// Returns an error if the text does not contain `=`.
pub(crate) fn assignment<'a>(option: &str, text: &'a str) -> Result<(&'a str, &'a str), Error> {
    let form = || Error::Machine(format!("--{option} {text}: expected NAME=VALUE"));
    text.split_once('=').ok_or_else(form)
}

/// Parses a size such as `8x8`.
///
/// # Errors
/// Returns an error if the text does not have the form of a size.
pub(crate) fn sizes(text: &str) -> Result<Vec<u32>, Error> {
    let sizes: Option<Vec<u32>> = text.split('x').map(|size| size.parse().ok()).collect();
    sizes.ok_or_else(|| Error::Machine(format!("`{text}` is not a size; expected 64 or 8x8")))
}

/// Parses the value of an option. The value must be a number.
///
/// # Errors
/// Returns an error if the text is not a number of this type.
pub(crate) fn number<T: FromStr>(option: &str, text: &str) -> Result<T, Error> {
    text.parse().map_err(|_| Error::Machine(format!("--{option} {text}: expected a number")))
}

/// Returns up to four words as the channels r, g, b and a. Missing channels are 0.
pub(crate) fn channels(words: impl Iterator<Item = u32>) -> [u32; 4] {
    let mut value = [0; 4];
    value.iter_mut().zip(words).for_each(|(channel, word)| *channel = word);
    value
}

/// Returns the value of the choice that has this name.
///
/// # Errors
/// Returns an error if the name is not one of the choices.
pub(crate) fn choose<T: Copy>(place: &str, name: &str, choices: &[(&'static str, T)]) -> Result<T, Error> {
    let names = || choices.iter().map(|(known, _)| *known).collect::<Vec<_>>();
    let found = choices.iter().find(|(known, _)| *known == name).map(|(_, value)| *value);
    found.ok_or_else(|| Error::name(place, name, suggest(name, names())))
}

/// Returns the value of the choice that has this name. Without a name, the function returns `otherwise`.
///
/// # Errors
/// Returns an error if the name is not one of the choices.
pub(crate) fn choose_or<T: Copy>(
    otherwise: T,
    place: &str,
    name: &Option<String>,
    choices: &[(&'static str, T)],
) -> Result<T, Error> {
    name.as_deref().map_or(Ok(otherwise), |name| choose(place, name, choices))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::values::Stated;

    fn loaded(shape: &[usize], flat: bool) -> Loaded {
        let words = 0..shape.iter().product::<usize>() as u32;
        Loaded { array: Array::from_words(Dtype::F32, shape.to_vec(), words), stated: Stated::Request, flat }
    }

    #[test]
    fn numbers_without_rows_are_one_a_lane_or_the_same_for_all() {
        let of = |shape: &[usize], flat, lanes| per_lane("temp[0]", &loaded(shape, flat), lanes);
        assert_eq!(of(&[2], false, 2), Ok(vec![[0, 0, 0, 0], [1, 0, 0, 0]]));
        assert_eq!(of(&[4], false, 2), Ok(vec![[0, 1, 2, 3]; 2]));
        assert_eq!(of(&[2, 2], false, 2), Ok(vec![[0, 1, 0, 0], [2, 3, 0, 0]]));
        assert_eq!(of(&[4], true, 2), Ok(vec![[0, 1, 0, 0], [2, 3, 0, 0]]));
        assert_eq!(
            of(&[16], false, 4).unwrap_err().to_string(),
            "temp[0]: expected 4 numbers (one per lane), 1 to 4 numbers for all lanes, or 4 rows of 4 numbers (an \
             array of shape [4, 4], or lists [[…], …] in a launch file), found 16 numbers"
        );
        assert!(of(&[6], false, 4).is_err());
    }

    #[test]
    fn the_lanes_of_a_flat_file_must_be_stated() {
        let of = |stated, inputs: &[&Loaded]| lanes(stated, inputs.iter().map(|input| ("temp[0]", *input)));
        assert_eq!(of(None, &[&loaded(&[8], false), &loaded(&[64], true)]), Ok(8));
        assert_eq!(of(Some(16), &[&loaded(&[64], true)]), Ok(16));
        assert_eq!(
            of(None, &[&loaded(&[64], true)]).unwrap_err().to_string(),
            "temp[0]: the file has 64 numbers without rows, so the number of lanes is unknown; state --lanes \
             (lanes = in a launch file), for instance 64 with 1 per lane, 32 with 2 per lane, 16 with 4 per lane"
        );
        assert_eq!(of(Some(0), &[]), Err(Error::Lanes(0)));
        assert_eq!(
            of(None, &[&loaded(&[0], false)]).unwrap_err().to_string(),
            "temp[0]: expected at least one number, found none"
        );
    }
}
