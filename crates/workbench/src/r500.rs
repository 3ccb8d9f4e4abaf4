//! Running R500 programs: a self-describing launch file, or the same from a command line.
//!
//! Without `[ctm]`, lanes are pixels: inputs arrive in temporaries and outputs are the render targets. With `[ctm]`,
//! the program runs over a domain of index pairs between typed buffers.

use std::sync::Arc;

use reconverge_isa::Program;
use reconverge_isa::word::FieldValue;
use reconverge_r500::ctm::{
    self, CondLoc, CondTest, Conditional, Dispatch, DispatchError, Domain, Format, Surface, Tiling,
};
use reconverge_r500::flow::{InhibitScope, Limits};
use reconverge_r500::inst::{Body, TARGETS};
use reconverge_r500::launch::{Hardware, Input, Launch, LaunchError, RunError, group_width};
use reconverge_r500::setup::{Setup, SetupError};
use reconverge_r500::texture::Texture;
use reconverge_r500::words::TexOp;
use reconverge_simt::Options;
use serde::Deserialize;

use crate::array::{Array, Dtype};
use crate::request::{Error, How, TextureValues, channels, choose, lanes, mode};
use crate::result::{Expected, RunResult};
use crate::values::{Files, Values};

/// A launch file for R500, and what the command line builds.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct LaunchFile {
    /// `r500`.
    pub isa: Option<String>,
    /// The program's file.
    pub program: Option<String>,
    /// The chip: decides the width of a thread where `group_width` does not.
    pub chip: Option<String>,
    /// How many lanes; taken from the first input when absent.
    pub lanes: Option<usize>,
    /// `strict` or `lenient`.
    pub mode: Option<String>,
    /// Lanes that share a program counter.
    pub group_width: Option<usize>,
    /// Instructions a thread may issue.
    pub watchdog: Option<u64>,
    /// Frames of the loop stack, instead of the number recommended for the flow-control mode.
    pub loop_stack: Option<usize>,
    /// Entries of the address stack, likewise.
    pub address_stack: Option<usize>,
    /// Highest value of a branch counter, likewise.
    pub branch_counter: Option<u8>,
    /// Which sleeping lanes keep a BREAK from jumping: `frame` (those of the loop) or `all`.
    pub inhibit_scope: Option<String>,
    /// Values in temporaries.
    #[serde(default)]
    pub input: Vec<InputValues>,
    /// Float constants.
    #[serde(default)]
    pub constant: Vec<ConstantValues>,
    /// Textures.
    #[serde(default)]
    pub texture: Vec<TextureValues>,
    /// The CTM model.
    pub ctm: Option<CtmValues>,
    /// What must come out.
    #[serde(default)]
    pub expect: Vec<Expected>,
    /// Part of the message of the trap that the program must end with, for `check`.
    pub trap: Option<String>,
}

impl LaunchFile {
    /// The files that the launch names, besides its program.
    pub fn files(&self) -> Vec<String> {
        let ctm = self.ctm.iter().flat_map(|ctm| {
            let buffers = ctm.input.iter().chain(&ctm.output);
            let conditional = ctm.conditional.iter().map(|conditional| &conditional.buffer);
            buffers.chain(conditional).filter_map(|buffer| buffer.values.as_ref())
        });
        let inputs = self.input.iter().map(|input| &input.values);
        let constants = self.constant.iter().map(|constant| &constant.values);
        let textures = self.texture.iter().map(|texture| &texture.texels);
        let expected = self.expect.iter().map(|expected| &expected.values);
        let all = inputs.chain(constants).chain(textures).chain(expected).chain(ctm);
        all.filter_map(Values::file).map(str::to_owned).collect()
    }
}

/// Values that the rasteriser wrote into a temporary.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct InputValues {
    /// The temporary.
    pub temp: u8,
    /// One to four numbers a lane, or one to four for all lanes.
    pub values: Values,
}

/// A float constant.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ConstantValues {
    /// 0 to 255.
    pub number: u8,
    /// One to four numbers.
    pub values: Values,
}

/// A run over a domain.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct CtmValues {
    /// Pairs along i, and along j.
    pub domain: Vec<u32>,
    /// First i and first j.
    #[serde(default)]
    pub origin: Vec<u32>,
    /// The program's outputs are uncached: they go to output 0 at once.
    #[serde(default)]
    pub uncached: bool,
    /// Input buffers.
    #[serde(default)]
    pub input: Vec<BufferValues>,
    /// Output buffers.
    #[serde(default)]
    pub output: Vec<BufferValues>,
    /// Conditional execution.
    pub conditional: Option<ConditionalValues>,
}

/// A typed buffer.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct BufferValues {
    /// Input 0 to 15, output 0 to 3.
    pub number: u8,
    /// `UINT16_1`, `UINT8_4`, `FLOAT32_1`, `FLOAT32_2`, `FLOAT32_4`.
    pub format: String,
    /// `LINEAR` when absent.
    pub tiling: Option<String>,
    /// Elements a row.
    pub pitch: u32,
    /// Rows; 1 when absent.
    pub height: Option<u32>,
    /// First contents; zeros when absent.
    pub values: Option<Values>,
}

/// Conditional execution.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ConditionalValues {
    /// `NEVER`, `LESS`, `LESS_EQUAL`, `EQUAL`, `GREATER_EQUAL`, `GREATER`, `NOT_EQUAL`, `ALWAYS`.
    pub test: String,
    /// `DPP` (when the program ends) or `PE` (before it is scheduled).
    pub location: String,
    /// The value compared, for `PE`.
    #[serde(default)]
    pub value: f32,
    /// The program's conditional value is written to the buffer.
    #[serde(default)]
    pub write: bool,
    /// The conditional buffer; its number is not used.
    pub buffer: BufferValues,
}

impl From<SetupError> for Error {
    fn from(error: SetupError) -> Error {
        Error::Machine(error.to_string())
    }
}

impl From<LaunchError> for Error {
    fn from(error: LaunchError) -> Error {
        Error::Machine(error.to_string())
    }
}

impl From<RunError> for Error {
    fn from(error: RunError) -> Error {
        match error {
            RunError::Launch(error) => error.into(),
            RunError::Trap(_) => Error::Trap(error.to_string()),
            RunError::Differ(difference) => Error::Differ(difference.to_string()),
        }
    }
}

impl From<DispatchError> for Error {
    fn from(error: DispatchError) -> Error {
        match error {
            DispatchError::Run(error) => error.into(),
            other => Error::Machine(other.to_string()),
        }
    }
}

/// Runs a launch.
///
/// # Errors
/// See [`enum@Error`]; [`Error::Trap`] is the program's fault, the others are the request's.
pub fn run(file: &LaunchFile, program: &Program, how: How, files: &dyn Files) -> Result<RunResult, Error> {
    let setup = Arc::new(Setup::new(program)?);
    let default = Options::default();
    let options = Options {
        mode: mode(file.mode.as_deref())?,
        engine: how.engine(),
        level: how.level,
        watchdog: file.watchdog.unwrap_or(default.watchdog),
        ..default
    };
    let hardware = hardware(file, &setup)?;
    let constants = constants(file, files)?;
    let (outputs, statistics, report) = match &file.ctm {
        Some(ctm) => run_ctm(&setup, ctm, hardware, &options, constants, files)?,
        None => run_pixels(&setup, file, hardware, &options, constants, files)?,
    };
    let mut result = RunResult { outputs, statistics, report, mismatches: Vec::new() };
    for expected in &file.expect {
        result.compare(expected, files)?;
    }
    Ok(result)
}

type Outputs = (Vec<(String, Array)>, reconverge_simt::Statistics, reconverge_simt::fidelity::Report);

fn hardware(file: &LaunchFile, setup: &Setup) -> Result<Hardware, Error> {
    let scope = match file.inhibit_scope.as_deref() {
        None => InhibitScope::default(),
        Some(name) => {
            choose("inhibit_scope", name, &[("frame", InhibitScope::Frame), ("all", InhibitScope::All)])?
        }
    };
    let recommended = Limits::recommended(setup.fc_mode);
    let limits = Limits {
        branch_counter: file.branch_counter.unwrap_or(recommended.branch_counter),
        loop_stack: file.loop_stack.unwrap_or(recommended.loop_stack),
        address_stack: file.address_stack.unwrap_or(recommended.address_stack),
    };
    let group_width = file.group_width.unwrap_or_else(|| group_width(file.chip.as_deref()));
    Ok(Hardware { group_width, limits: Some(limits), scope })
}

fn constants(file: &LaunchFile, files: &dyn Files) -> Result<Vec<(u8, [u32; 4])>, Error> {
    file.constant
        .iter()
        .map(|constant| {
            let place = format!("constant {}", constant.number);
            let array = constant.values.load_as(&place, Dtype::F32, files)?;
            if !(1..=4).contains(&array.len()) {
                return Err(Error::Count { place, found: array.len(), wanted: "1 to 4".to_owned() });
            }
            Ok((constant.number, channels(array.words())))
        })
        .collect()
}

fn run_pixels(
    setup: &Arc<Setup>,
    file: &LaunchFile,
    hardware: Hardware,
    options: &Options,
    constants: Vec<(u8, [u32; 4])>,
    files: &dyn Files,
) -> Result<Outputs, Error> {
    let loaded: Vec<(u8, Array)> = file
        .input
        .iter()
        .map(|input| {
            Ok((input.temp, input.values.load_as(&format!("input temp[{}]", input.temp), Dtype::F32, files)?))
        })
        .collect::<Result<_, Error>>()?;
    let lanes = lanes(file.lanes, loaded.iter().map(|(_, array)| array))?;
    let inputs = loaded
        .into_iter()
        .map(|(temp, array)| Ok(Input { temp, values: per_lane(temp, &array, lanes)?.into() }))
        .collect::<Result<_, Error>>()?;
    let textures = file
        .texture
        .iter()
        .map(|values| {
            let (image, sampler) = values.image(files)?;
            Ok((values.unit, Texture { image, sampler }))
        })
        .collect::<Result<Vec<_>, Error>>()?;
    let bound: Vec<u8> = textures.iter().map(|(unit, _)| *unit).collect();
    check_units(
        setup,
        &bound,
        "give it with --texture UNIT=FILE, or in a [[texture]] table of the launch file",
    )?;
    let launch = Launch { lanes, inputs, constants, textures, hardware };
    let outcome = reconverge_r500::run::run(setup, &launch, options)?;

    let mut outputs = Vec::new();
    for target in 0..TARGETS {
        if (0..4).any(|channel| outcome.outputs.color(target, channel).is_some()) {
            let words = outcome.lanes().flat_map(|lane| lane.color[target]);
            outputs.push((format!("color{target}"), Array::from_words(Dtype::F32, vec![lanes, 4], words)));
        }
    }
    if let Some(depth) = outcome.outputs.depth() {
        let words = depth.iter().copied();
        outputs.push(("depth".to_owned(), Array::from_words(Dtype::F32, vec![lanes], words)));
    }
    if outcome.outputs.any_killed() {
        let bytes = outcome.lanes().map(|lane| u8::from(lane.killed)).collect();
        outputs.push(("killed".to_owned(), Array { dtype: Dtype::U8, shape: vec![lanes], bytes }));
    }
    Ok((outputs, outcome.statistics, outcome.report))
}

/// The first fetch from a unit to which nothing is bound is an error before anything runs.
fn check_units(setup: &Setup, bound: &[u8], remedy: &'static str) -> Result<(), Error> {
    for (slot, loaded) in setup.slots() {
        if let Ok(inst) = &loaded.inst
            && let Body::Tex(tex) = &inst.body
            && !matches!(tex.inst.inst, TexOp::NOP | TexOp::TEXKILL)
            && !bound.contains(&tex.inst.tex_id)
        {
            let unit = tex.inst.tex_id;
            return Err(Error::Machine(format!(
                "the program fetches from unit {unit} (slot {slot}), to which nothing is bound: {remedy}"
            )));
        }
    }
    Ok(())
}

/// One to four numbers a lane, or one to four for all lanes.
fn per_lane(temp: u8, array: &Array, lanes: usize) -> Result<Vec<[u32; 4]>, Error> {
    let words: Vec<u32> = array.words().collect();
    let count = words.len();
    if lanes > 0 && count.is_multiple_of(lanes) && (1..=4).contains(&(count / lanes)) {
        return Ok(words.chunks(count / lanes).map(|lane| channels(lane.iter().copied())).collect());
    }
    if (1..=4).contains(&count) {
        return Ok(vec![channels(words.into_iter()); lanes]);
    }
    Err(Error::Count {
        place: format!("input temp[{temp}]"),
        found: count,
        wanted: format!("{lanes} lanes of 1 to 4, or 1 to 4 for all lanes,"),
    })
}

/// An enumerated field's value by its manual's name.
fn named<E: FieldValue>(place: &str, name: &str) -> Result<E, Error> {
    let value = E::NAMES.iter().find(|known| known.text.eq_ignore_ascii_case(name));
    value.and_then(|known| E::from_bits(known.value, E::BITS)).ok_or_else(|| Error::Name {
        place: place.to_owned(),
        found: name.to_owned(),
        help: reconverge_isa::source::suggest(
            name,
            E::NAMES.iter().map(|known| known.text).collect::<Vec<_>>(),
        ),
    })
}

// ---- CTM

/// Buffers are placed one after the other at multiples of 2 KiB. (CTM guide, base address: low 11 bits ignored)
const ALIGNMENT: usize = 2048;

fn run_ctm(
    setup: &Arc<Setup>,
    values: &CtmValues,
    hardware: Hardware,
    options: &Options,
    constants: Vec<(u8, [u32; 4])>,
    files: &dyn Files,
) -> Result<Outputs, Error> {
    let pair = |list: &[u32], default: [u32; 2], what: &str| match list {
        [] => Ok(default),
        [i] => Ok([*i, default[1]]),
        [i, j] => Ok([*i, *j]),
        more => {
            Err(Error::Count { place: format!("ctm.{what}"), found: more.len(), wanted: "1 or 2".to_owned() })
        }
    };
    let [width, height] = pair(&values.domain, [1, 1], "domain")?;
    let [i, j] = pair(&values.origin, [0, 0], "origin")?;
    let mut memory = Vec::new();
    let mut place = |what: &str, buffer: &BufferValues| place_buffer(what, buffer, &mut memory, files);
    let inputs = values
        .input
        .iter()
        .map(|buffer| Ok((buffer.number, place("ctm.input", buffer)?)))
        .collect::<Result<Vec<_>, Error>>()?;
    let mut outputs = [None; TARGETS];
    for buffer in &values.output {
        let surface = place("ctm.output", buffer)?;
        *outputs.get_mut(usize::from(buffer.number)).ok_or_else(|| Error::Name {
            place: "ctm.output.number".to_owned(),
            found: buffer.number.to_string(),
            help: "there are outputs 0 to 3".to_owned(),
        })? = Some(surface);
    }
    let conditional = match &values.conditional {
        None => None,
        Some(conditional) => Some(Conditional {
            buffer: place("ctm.conditional.buffer", &conditional.buffer)?,
            test: named::<CondTest>("ctm.conditional.test", &conditional.test)?,
            location: named::<CondLoc>("ctm.conditional.location", &conditional.location)?,
            value: conditional.value,
            write: conditional.write,
        }),
    };
    let bound: Vec<u8> = inputs.iter().map(|(number, _)| *number).collect();
    check_units(setup, &bound, "give it with --buf inN=..., or in a [[ctm.input]] table of the launch file")?;
    let dispatch = Dispatch {
        memory,
        inputs,
        outputs,
        uncached: values.uncached,
        conditional,
        constants,
        domain: Domain { i, j, width, height },
        hardware,
    };
    let outcome = ctm::run(setup, dispatch, options)?;
    let mut results = Vec::new();
    for (number, surface) in outputs.iter().enumerate() {
        if let Some(surface) = surface {
            results.push((format!("out{number}"), contents(surface, &outcome.memory)));
        }
    }
    if let Some(conditional) = conditional {
        results.push(("conditional".to_owned(), contents(&conditional.buffer, &outcome.memory)));
    }
    Ok((results, outcome.statistics, outcome.report))
}

const fn element_type(format: Format) -> Dtype {
    match format {
        Format::UINT16_1 => Dtype::U16,
        Format::UINT8_4 => Dtype::U8,
        Format::FLOAT32_1 | Format::FLOAT32_2 | Format::FLOAT32_4 => Dtype::F32,
    }
}

fn place_buffer(
    what: &str,
    buffer: &BufferValues,
    memory: &mut Vec<u8>,
    files: &dyn Files,
) -> Result<Surface, Error> {
    let place = format!("{what} {}", buffer.number);
    let format = named::<Format>(&format!("{place} format"), &buffer.format)?;
    let tiling = match &buffer.tiling {
        None => Tiling::LINEAR,
        Some(name) => named::<Tiling>(&format!("{place} tiling"), name)?,
    };
    let height = buffer.height.unwrap_or(1);
    // 13 bits each (CTM guide, set_inp_fmt), which also keeps what a file can ask for small.
    for (name, size) in [("pitch", buffer.pitch), ("height", height)] {
        if !(1..=8191).contains(&size) {
            return Err(Error::Name {
                place: format!("{place} {name}"),
                found: size.to_string(),
                help: "1 to 8191 fits here".to_owned(),
            });
        }
    }
    let bytes = buffer.pitch as usize * height as usize * format.bytes() as usize;
    memory.resize(memory.len().next_multiple_of(ALIGNMENT), 0);
    let base = memory.len();
    match &buffer.values {
        None => memory.resize(base + bytes, 0),
        Some(values) => {
            let dtype = element_type(format);
            let array = values.load_as(&place, dtype, files)?;
            if array.bytes.len() != bytes {
                let wanted =
                    format!("{} ({} x {height} elements of {format})", bytes / dtype.bytes(), buffer.pitch);
                return Err(Error::Count { place, found: array.len(), wanted });
            }
            memory.extend(array.bytes);
        }
    }
    let base = u32::try_from(base).map_err(|_| Error::Name {
        place,
        found: format!("{base} bytes of buffers before it"),
        help: "all buffers together must stay below 4 GiB".to_owned(),
    })?;
    Ok(Surface { base, pitch: buffer.pitch, height, format, tiling })
}

fn contents(surface: &Surface, memory: &[u8]) -> Array {
    let size = (surface.pitch * surface.height * surface.format.bytes()) as usize;
    let mut shape = vec![surface.height as usize, surface.pitch as usize];
    if surface.format.channels() > 1 {
        shape.push(surface.format.channels());
    }
    let start = surface.base as usize;
    Array { dtype: element_type(surface.format), shape, bytes: memory[start..start + size].to_vec() }
}
