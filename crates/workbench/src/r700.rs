//! Running R700 and R600 programs: a self-describing launch file, or the same from a command line.

use std::sync::Arc;

use reconverge_isa::Program;
use reconverge_r700::chip::Chip;
use reconverge_r700::code::ExportKind;
use reconverge_r700::flow::LoopConstant;
use reconverge_r700::launch::{FetchProgram, Input, Launch, Stage};
use reconverge_r700::memory::VertexBuffer;
use reconverge_r700::outcome::Outcome;
use reconverge_r700::run::RunError;
use reconverge_r700::texture::{Texture, TextureSampler};
use reconverge_simt::Options;
use serde::Deserialize;

use crate::array::{Array, Dtype};
use crate::request::{Error, How, TextureValues, channels, choose, lanes, mode};
use crate::result::{Expected, RunResult};
use crate::text::chip_help;
use crate::values::{Files, Values};

/// A launch file for R700, and what the command line builds.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct LaunchFile {
    /// `r700`.
    pub isa: Option<String>,
    /// The program's file.
    pub program: Option<String>,
    /// The program of this name, where the file has several.
    pub kernel: Option<String>,
    /// The chip; RV770 when nobody says.
    pub chip: Option<String>,
    /// `pixel`, `vertex` or `geometry`, where the program's file does not tell; `pixel` otherwise.
    pub stage: Option<String>,
    /// How many lanes; taken from the first input when absent.
    pub lanes: Option<usize>,
    /// `strict` or `lenient`.
    pub mode: Option<String>,
    /// Instructions a wavefront may take.
    pub watchdog: Option<u64>,
    /// First control-flow instruction, in 64-bit words.
    pub start: Option<u32>,
    /// NUM_GPRS, instead of what the program's file tells.
    pub gprs: Option<u8>,
    /// STACK_SIZE in entries, likewise.
    pub stack: Option<u32>,
    /// NUM_CLAUSE_TEMP_GPRS.
    pub clause_temps: Option<u8>,
    /// DX10_CLAMP: CLAMP makes NaN 0; on when absent.
    pub dx10_clamp: Option<bool>,
    /// SQ_BOOL_CONST: bit n is boolean n.
    pub booleans: Option<u32>,
    /// The file of the fetch program that CALL_FS calls: words only.
    pub fetch_program: Option<FetchProgramFile>,
    /// What a vertex fetch of type VERTEX_DATA adds to its index.
    #[serde(default)]
    pub base_vertex: u32,
    /// What a vertex fetch of type INSTANCE_DATA adds to its index.
    #[serde(default)]
    pub base_instance: u32,
    /// SQ_VTX_SEMANTIC, from the first register on.
    #[serde(default)]
    pub semantics: Vec<u8>,
    /// 1 for each lane that lies inside the primitive, 0 for the others; all do when absent.
    pub covered: Option<Values>,
    /// The scatter buffer.
    pub scatter: Option<Values>,
    /// Element type of exports, as they are shown and compared: `f32` when absent, `u32`, `i32`.
    pub output_type: Option<String>,
    /// Values in registers.
    #[serde(default)]
    pub input: Vec<InputValues>,
    /// Constant buffers.
    #[serde(default)]
    pub constant: Vec<ConstantValues>,
    /// The constant file of DX9 mode.
    #[serde(default)]
    pub constant_file: Vec<ConstantFileValues>,
    /// SQ_LOOP_CONST.
    #[serde(default)]
    pub r#loop: Vec<LoopValues>,
    /// Vertex resources.
    #[serde(default)]
    pub buffer: Vec<BufferValues>,
    /// Textures: `unit` is the resource and the sampler.
    #[serde(default)]
    pub texture: Vec<TextureValues>,
    /// What must come out.
    #[serde(default)]
    pub expect: Vec<Expected>,
    /// Part of the message of the trap that the program must end with, for `check`.
    pub trap: Option<String>,
}

/// Values of a register at the start.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct InputValues {
    /// The register.
    pub gpr: u8,
    /// One to four numbers a lane, or one to four for all lanes.
    pub values: Values,
}

/// Contents of a constant buffer, which a vertex resource of the same number reads too.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ConstantValues {
    /// 0 to 15.
    pub number: u8,
    /// First dword.
    #[serde(default)]
    pub offset: usize,
    /// The numbers, four an entry.
    pub values: Values,
}

/// Entries of the constant file.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ConstantFileValues {
    /// The first entry, 0 to 255.
    pub number: usize,
    /// The numbers, four an entry.
    pub values: Values,
}

/// A loop constant.
#[derive(Clone, Copy, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct LoopValues {
    /// 0 to 31.
    pub number: usize,
    /// Rounds.
    pub count: u16,
    /// First value of aL.
    #[serde(default)]
    pub init: u16,
    /// What a round adds to aL.
    #[serde(default)]
    pub inc: i16,
}

/// A vertex resource.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct BufferValues {
    /// BUFFER_ID.
    pub number: u8,
    /// Its memory.
    pub values: Values,
    /// Bytes from one element to the next.
    pub stride: u32,
}

/// A fetch program.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct FetchProgramFile {
    /// Raw words, as `file.bin:u32` or `file.npy`.
    pub words: Values,
    /// First instruction, in 64-bit words.
    #[serde(default)]
    pub start: u32,
}

impl LaunchFile {
    /// The files that the launch names, besides its program.
    pub fn files(&self) -> Vec<String> {
        let fetch = self.fetch_program.iter().map(|fetch| &fetch.words);
        let inputs = self.input.iter().map(|input| &input.values);
        let constants = self.constant.iter().map(|constant| &constant.values);
        let file = self.constant_file.iter().map(|constant| &constant.values);
        let buffers = self.buffer.iter().map(|buffer| &buffer.values);
        let textures = self.texture.iter().map(|texture| &texture.texels);
        let expected = self.expect.iter().map(|expected| &expected.values);
        let single = self.covered.iter().chain(&self.scatter);
        let all = fetch.chain(inputs).chain(constants).chain(file).chain(buffers).chain(textures);
        all.chain(expected).chain(single).filter_map(Values::file).map(str::to_owned).collect()
    }
}

/// Runs a launch of `program`.
///
/// # Errors
/// [`Error::Trap`] is the program's fault, the others are the request's.
pub fn run(file: &LaunchFile, program: &Program, how: How, files: &dyn Files) -> Result<RunResult, Error> {
    let launch = launch(file, program, files)?;
    let mut options = Options {
        mode: mode(file.mode.as_deref())?,
        engine: how.engine(),
        level: how.level,
        ..Options::default()
    };
    options.watchdog = file.watchdog.unwrap_or(options.watchdog);
    let dtype = match file.output_type.as_deref() {
        None => Dtype::F32,
        Some(name) => {
            choose("output_type", name, &[("f32", Dtype::F32), ("u32", Dtype::U32), ("i32", Dtype::I32)])?
        }
    };
    let outcome = reconverge_r700::run::run(program, &launch, &options).map_err(|error| match error {
        RunError::Differ(difference) => Error::Differ(difference.to_string()),
        RunError::Trap(trap) => Error::Trap(trap.to_string()),
        RunError::Launch(error) => Error::Machine(error.to_string()),
    })?;
    let mut result = RunResult {
        outputs: outputs(&outcome, launch.lanes, dtype),
        statistics: outcome.statistics,
        report: outcome.fidelity.report.clone(),
        mismatches: Vec::new(),
    };
    for expected in &file.expect {
        result.compare(expected, files)?;
    }
    Ok(result)
}

fn stage(file: &LaunchFile, program: &Program) -> Result<Stage, Error> {
    use reconverge_isa::program::Stage as Any;
    let stages = [("pixel", Stage::Pixel), ("vertex", Stage::Vertex), ("geometry", Stage::Geometry)];
    let named = file.stage.as_deref().map(|name| choose("stage", name, &stages)).transpose()?;
    let told = match program.stage {
        None => None,
        Some(Any::Pixel | Any::Fragment) => Some(Stage::Pixel),
        Some(Any::Vertex | Any::GsCopy | Any::Fetch) => Some(Stage::Vertex),
        Some(Any::Geometry) => Some(Stage::Geometry),
        Some(Any::Compute) => return Err(Error::Machine("compute is no program type of r700".to_owned())),
    };
    Ok(named.or(told).unwrap_or(Stage::Pixel))
}

fn launch(file: &LaunchFile, program: &Program, files: &dyn Files) -> Result<Launch, Error> {
    let name = file.chip.as_deref().unwrap_or("RV770");
    let chip = Chip::named(name).ok_or_else(|| Error::Name {
        place: "chip".to_owned(),
        found: name.to_owned(),
        help: chip_help(reconverge_isa::Isa::R700, name),
    })?;
    let loaded: Vec<(u8, Array)> = file
        .input
        .iter()
        .map(|input| Ok((input.gpr, input.values.load_plain(&format!("input R{}", input.gpr), files)?)))
        .collect::<Result<_, Error>>()?;
    let lanes = lanes(file.lanes, loaded.iter().map(|(_, array)| array))?;
    let mut launch = Launch::new(chip, stage(file, program)?, lanes);
    let resources = ["SQ_PGM_RESOURCES_PS", "SQ_PGM_RESOURCES_VS", "SQ_PGM_RESOURCES_GS"];
    if let Some(register) = resources.into_iter().find_map(|name| program.state(name)) {
        launch.set_pgm_resources(register);
    }
    let told = program.resources.registers.and_then(|count| u8::try_from(count).ok());
    launch.num_gprs = file.gprs.or(told).unwrap_or(launch.num_gprs);
    if launch.num_gprs > 128 {
        return Err(Error::Machine(format!("gprs: {}; 0 to 128 fits here", launch.num_gprs)));
    }
    launch.stack_size = file.stack.or(program.resources.stack).or(launch.stack_size);
    launch.clause_temps =
        file.clause_temps.unwrap_or(launch.clause_temps).min(128 - launch.num_gprs.min(128));
    launch.dx10_clamp = file.dx10_clamp.unwrap_or(launch.dx10_clamp);
    launch.start = file.start.unwrap_or(program.base);
    launch.base_vertex = file.base_vertex;
    launch.base_instance = file.base_instance;
    launch.semantics.clone_from(&file.semantics);
    for (gpr, array) in loaded {
        launch.inputs.push(Input { gpr, values: per_lane(gpr, &array, lanes)? });
    }
    if let Some(covered) = &file.covered {
        let array = covered.load_as("covered", Dtype::U8, files)?;
        if array.len() != lanes {
            let wanted = format!("{lanes} (one a lane)");
            return Err(Error::Count { place: "covered".to_owned(), found: array.len(), wanted });
        }
        launch.covered = Some(array.bytes.iter().map(|lane| *lane != 0).collect());
    }
    if let Some(scatter) = &file.scatter {
        launch.scatter = words("scatter", scatter, files)?;
    }
    if let Some(fetch) = &file.fetch_program {
        let words = words("fetch_program", &fetch.words, files)?;
        launch.fetch_program = Some(FetchProgram { words, start: fetch.start });
    }
    told_resources(program, &mut launch)?;
    fill_resources(file, &mut launch, files)?;
    Ok(launch)
}

/// What the program's file says itself: loop constants, booleans, constants.
fn told_resources(program: &Program, launch: &mut Launch) -> Result<(), Error> {
    let resources = &mut launch.resources;
    resources.booleans = program.state("SQ_BOOL_CONST").unwrap_or(0);
    for (number, constant) in resources.loop_constants.iter_mut().enumerate() {
        *constant = LoopConstant(program.state(&format!("SQ_LOOP_CONST_{number}")).unwrap_or(constant.0));
    }
    for block in &program.constants {
        let place = format!("constant {}", block.bank);
        let words =
            block.bytes.as_chunks::<4>().0.iter().map(|word| u32::from_le_bytes(*word)).collect::<Vec<_>>();
        place_constants(
            &mut resources.constant_buffers,
            &place,
            block.bank as usize,
            block.offset as usize / 4,
            &words,
        )?;
    }
    Ok(())
}

fn place_constants(
    buffers: &mut [Vec<u32>; 16],
    place: &str,
    number: usize,
    offset: usize,
    words: &[u32],
) -> Result<(), Error> {
    let buffer = buffers.get_mut(number).ok_or_else(|| out_of(place, 15))?;
    // 4096 entries of four. (kcache: 12-bit addresses)
    let end = offset.saturating_add(words.len());
    if end > 4096 * 4 {
        return Err(Error::Machine(format!("{place}: it ends at dword {end}; a buffer has 16384")));
    }
    buffer.resize(buffer.len().max(end), 0);
    buffer[offset..end].copy_from_slice(words);
    Ok(())
}

fn fill_resources(file: &LaunchFile, launch: &mut Launch, files: &dyn Files) -> Result<(), Error> {
    let resources = &mut launch.resources;
    resources.booleans = file.booleans.unwrap_or(resources.booleans);
    for constant in &file.constant {
        let place = format!("constant {}", constant.number);
        let words = words(&place, &constant.values, files)?;
        let number = usize::from(constant.number);
        place_constants(&mut resources.constant_buffers, &place, number, constant.offset, &words)?;
    }
    for (number, buffer) in (0u8..).zip(&resources.constant_buffers).filter(|(_, buffer)| !buffer.is_empty())
    {
        resources.vertex_buffers.insert(number, VertexBuffer::constants(buffer));
    }
    for constant in &file.constant_file {
        let place = format!("constant_file {}", constant.number);
        let words = words(&place, &constant.values, files)?;
        for (entry, value) in words.chunks(4).enumerate() {
            let number = constant.number.saturating_add(entry);
            if number > 255 {
                return Err(out_of(&place, 255));
            }
            let file = &mut resources.constant_file;
            file.resize(file.len().max(number + 1), [0; 4]);
            file[number] = channels(value.iter().copied());
        }
    }
    for LoopValues { number, count, init, inc } in &file.r#loop {
        let place = format!("loop {number}");
        let constant = resources.loop_constants.get_mut(*number).ok_or_else(|| out_of(&place, 31))?;
        let inc = i8::try_from(*inc).ok().filter(|_| *count < 1 << 12 && *init < 1 << 12);
        let inc = inc.ok_or_else(|| {
            Error::Machine(format!("{place}: count and init have 12 bits, inc has 8 with its sign"))
        })?;
        *constant = LoopConstant(u32::from(*count) | u32::from(*init) << 12 | u32::from(inc as u8) << 24);
    }
    for buffer in &file.buffer {
        let place = format!("buffer {}", buffer.number);
        let array = buffer.values.load_plain(&place, files)?;
        if buffer.stride > 2047 {
            return Err(Error::Machine(format!(
                "{place}: a stride of {}; 0 to 2047 fits here",
                buffer.stride
            )));
        }
        let described =
            VertexBuffer { bytes: array.bytes, stride: buffer.stride, ..VertexBuffer::constants(&[]) };
        resources.vertex_buffers.insert(buffer.number, described);
    }
    for texture in &file.texture {
        let (image, sampler) = texture.image(files)?;
        resources.textures.insert(texture.unit, Texture::floats(image.as_ref().clone()));
        let sampler = TextureSampler { sampler, ..TextureSampler::default() };
        resources.samplers.insert(texture.unit, sampler);
    }
    Ok(())
}

fn out_of(place: &str, last: usize) -> Error {
    Error::Machine(format!("{place}: 0 to {last} fits here"))
}

fn words(place: &str, values: &Values, files: &dyn Files) -> Result<Vec<u32>, Error> {
    let array = values.load_plain(place, files)?;
    if array.dtype.bytes() != 4 {
        return Err(Error::Machine(format!("{place}: elements of {}; 32 bits fit here", array.dtype)));
    }
    Ok(array.words().collect())
}

/// One to four numbers a lane, or one to four for all lanes.
fn per_lane(gpr: u8, array: &Array, lanes: usize) -> Result<Arc<[[u32; 4]]>, Error> {
    let words: Vec<u32> = array.words().collect();
    let count = words.len();
    if array.dtype.bytes() == 4 {
        if lanes > 0 && count.is_multiple_of(lanes) && (1..=4).contains(&(count / lanes)) {
            return Ok(words.chunks(count / lanes).map(|lane| channels(lane.iter().copied())).collect());
        }
        if (1..=4).contains(&count) {
            return Ok(vec![channels(words.into_iter()); lanes].into());
        }
    }
    Err(Error::Count {
        place: format!("input R{gpr}"),
        found: count,
        wanted: format!("{lanes} lanes of 1 to 4, or 1 to 4 for all lanes, of 32 bits"),
    })
}

fn outputs(outcome: &Outcome, lanes: usize, dtype: Dtype) -> Vec<(String, Array)> {
    let mut outputs = Vec::new();
    for export in &outcome.exports {
        let kind = match export.kind {
            ExportKind::Pixel => "pixel",
            ExportKind::Pos => "pos",
            ExportKind::Param => "param",
        };
        let words = export.values.iter().flatten().copied();
        outputs.push((format!("{kind}{}", export.base), Array::from_words(dtype, vec![lanes, 4], words)));
    }
    if outcome.killed.contains(&true) {
        let bytes = outcome.killed.iter().map(|killed| u8::from(*killed)).collect();
        outputs.push(("killed".to_owned(), Array { dtype: Dtype::U8, shape: vec![lanes], bytes }));
    }
    let memory = &outcome.memory;
    if !memory.scatter.is_empty() {
        let words = memory.scatter.iter().copied();
        outputs.push(("scatter".to_owned(), Array::from_words(dtype, vec![memory.scatter.len()], words)));
    }
    let streams = ["stream0", "stream1", "stream2", "stream3"].into_iter().zip(&memory.streams);
    let private = [("scratch", &memory.scratch), ("reduction", &memory.reduction), ("ring", &memory.ring)];
    for (name, records) in private.into_iter().chain(streams) {
        let count = records.iter().map(Vec::len).max().unwrap_or(0);
        if count > 0 {
            let dword = |record: &Vec<u32>, number: usize| record.get(number).copied().unwrap_or(0);
            let words = records.iter().flat_map(|record| (0..count).map(move |number| dword(record, number)));
            outputs.push((name.to_owned(), Array::from_words(dtype, vec![records.len(), count], words)));
        }
    }
    outputs
}
