//! Launches of R700 and R600. This file has the fields of a launch file, and the sessions that run launches.

use std::ops::Range;
use std::sync::Arc;

use reconverge_isa::program::Stage as Any;
use reconverge_isa::{Isa, Program};
use reconverge_r700::cause::Cause;
use reconverge_r700::code::{AluOp, CfOp, Code, CodeOptions, Operand};
use reconverge_r700::flow::{Entry, LoopConstant, Part, TRIP_BITS};
use reconverge_r700::launch::{self as machine, FetchProgram, Input, Resources, Stage};
use reconverge_r700::memory::VertexBuffer;
use reconverge_r700::outcome;
use reconverge_r700::run::{Run, run_watched};
use reconverge_r700::texture::{Component, Texture, TextureSampler};
use reconverge_r700::wave::Wave;
use reconverge_simt::fidelity::Report;
use reconverge_simt::observe::Dynamic;
use reconverge_simt::{Event, FlowView, Lane, Mask, Mode, Options, Statistics, Watch};
use serde::Deserialize;

use crate::array::{Array, Dtype};
use crate::error::{self, Error};
use crate::faults::{Kind, Word};
use crate::request::{
    MachineLaunch, Request, SamplerValues, TextureValues, assigned, assignment, by_lane, channels, choose,
    choose_or, killed, number,
};
use crate::session::{
    EndedGroups, Inspect, Outcome, Ready, Register, RegisterClass, Session, Space, SpaceOf, Steps,
};
use crate::values::{Files, Values};

/// The fields of a launch file that exist only for R700.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Launch {
    /// Address of the first control-flow instruction, in 64-bit words.
    pub start: Option<u32>,
    /// NUM_GPRS: number of registers per lane. By default, the program's file states this number.
    pub gprs: Option<u8>,
    /// STACK_SIZE: number of stack entries. By default, the program's file states this number.
    pub stack: Option<u32>,
    /// NUM_CLAUSE_TEMP_GPRS: number of clause temporaries.
    pub clause_temps: Option<u8>,
    /// DX10_CLAMP: whether CLAMP converts NaN to 0 (default: true).
    pub dx10_clamp: Option<bool>,
    /// ALU_INST_PREFER_VECTOR (default: true).
    pub prefer_vector: Option<bool>,
    /// Whether a vertex fetch can read a constant buffer (default: true). If the field is true, and the fetched vertex
    /// resource does not exist, the fetch reads the constant buffer with the resource's number.
    pub constants_are_buffers: Option<bool>,
    /// SQ_BOOL_CONST: bit n is boolean constant n.
    pub booleans: Option<u32>,
    /// The fetch program that CALL_FS calls.
    pub fetch_program: Option<FetchProgramFile>,
    /// Offset that is added to the index of a vertex fetch of type VERTEX_DATA.
    #[serde(default)]
    pub base_vertex: u32,
    /// Offset that is added to the index of a vertex fetch of type INSTANCE_DATA.
    #[serde(default)]
    pub base_instance: u32,
    /// SQ_VTX_SEMANTIC registers, starting with register 0.
    #[serde(default)]
    pub semantics: Vec<u8>,
    /// One value per lane: 1 for a lane inside the primitive, and 0 for a lane outside the primitive (default: all
    /// lanes are inside).
    pub covered: Option<Values>,
    /// Initial contents of the scatter buffer.
    pub scatter: Option<Values>,
    /// Element type in which exports are shown and compared: `f32` (default), `u32` or `i32`.
    pub output_type: Option<String>,
    /// Initial values of registers.
    #[serde(default)]
    pub input: Vec<InputValues>,
    /// Contents of constant buffers.
    #[serde(default)]
    pub constant: Vec<ConstantValues>,
    /// Entries of the constant file, for DX9 mode.
    #[serde(default)]
    pub constant_file: Vec<ConstantFileValues>,
    /// Loop constants (SQ_LOOP_CONST).
    #[serde(default)]
    pub r#loop: Vec<LoopValues>,
    /// Vertex resources.
    #[serde(default)]
    pub buffer: Vec<BufferValues>,
    /// Samplers. If this list is empty, each texture also defines a sampler. If the list is not empty, a texture
    /// defines a sampler only if the texture sets a sampler field.
    #[serde(default)]
    pub sampler: Vec<SamplerValues>,
}

/// Initial values of a register.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct InputValues {
    /// Number of the register.
    pub gpr: u8,
    /// One to four numbers for each lane, or one to four numbers for all lanes together.
    pub values: Values,
}

/// Contents of a constant buffer. A vertex fetch can also read this buffer if the fetched resource has the number of
/// the buffer.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ConstantValues {
    /// Number of the buffer, 0 to 15.
    pub number: u8,
    /// Offset of the first number, in dwords.
    #[serde(default)]
    pub offset: usize,
    /// The numbers, four per entry.
    pub values: Values,
}

/// Entries of the constant file.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ConstantFileValues {
    /// Index of the first entry, 0 to 255.
    pub number: usize,
    /// The numbers, four per entry.
    pub values: Values,
}

/// A loop constant.
#[derive(Clone, Copy, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct LoopValues {
    /// Number of the constant, 0 to 31.
    pub number: usize,
    /// Number of iterations.
    pub count: u16,
    /// Initial value of aL.
    #[serde(default)]
    pub init: u16,
    /// Value that is added to aL in each iteration.
    #[serde(default)]
    pub inc: i16,
}

/// A vertex resource.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct BufferValues {
    /// Number of the resource (BUFFER_ID).
    pub number: u8,
    /// Contents of the buffer.
    pub values: Values,
    /// Number of bytes from one element to the next.
    pub stride: Option<u32>,
    /// Word 2 of the resource (SQ_VTX_CONSTANT_WORD2), as an alternative to `stride`. Word 2 also states the format for
    /// fetches with USE_CONST_FIELDS.
    pub word2: Option<u32>,
}

impl BufferValues {
    /// Creates a resource from its contents and stride.
    pub fn new(number: u8, values: Values, stride: u32) -> BufferValues {
        BufferValues { number, values, stride: Some(stride), word2: None }
    }
}

/// A fetch program, which CALL_FS calls.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct FetchProgramFile {
    /// File of raw words, as `file.bin:u32` or `file.npy`.
    pub words: Values,
    /// Address of the first instruction, in 64-bit words.
    #[serde(default)]
    pub start: u32,
}

impl MachineLaunch for Launch {
    fn copy(&self) -> Arc<dyn MachineLaunch> {
        Arc::new(self.clone())
    }

    fn set(&mut self, option: &str, text: &str) -> Result<(), Error> {
        let wrong = |why: String| Error::Machine(format!("--{option} {text}: {why}"));
        match option {
            "output-type" => self.output_type = Some(text.to_owned()),
            "input" => {
                let (name, values) = assigned(option, text)?;
                let gpr = name.strip_prefix(['R', 'r']).and_then(|digits| digits.parse().ok());
                let gpr = gpr
                    .filter(|gpr| *gpr < 128)
                    .ok_or_else(|| wrong(format!("`{name}` is not a register; expected R0 to R127")))?;
                self.input.push(InputValues { gpr, values });
            }
            "const" => {
                let (name, values) = assigned(option, text)?;
                let fits =
                    "expected a constant buffer, 0 to 15, or an entry of the constant file, C0 to C255";
                let unknown = || wrong(format!("`{name}` does not name constants; {fits}"));
                if let Some(entry) = name.strip_prefix('C') {
                    let number = entry.parse().ok().filter(|number| *number < 256).ok_or_else(unknown)?;
                    self.constant_file.push(ConstantFileValues { number, values });
                } else {
                    let number = name.strip_prefix("KC").unwrap_or(name).parse();
                    let number = number.ok().filter(|number| *number < 16).ok_or_else(unknown)?;
                    self.constant.push(ConstantValues { number, offset: 0, values });
                }
            }
            "start" => self.start = Some(number(option, text)?),
            "sampler" => self.sampler.push(SamplerValues::of_argument(text)?),
            "loop" => {
                let form = || wrong("expected 0=COUNT, 0=COUNT,INIT or 0=COUNT,INIT,INC".to_owned());
                let (name, spec) = assignment(option, text)?;
                let parts: Vec<&str> = spec.split(',').collect();
                let part = |index: usize| {
                    parts.get(index).map(|part| part.parse::<u16>().map_err(|_| form())).transpose()
                };
                if parts.len() > 3 {
                    return Err(form());
                }
                self.r#loop.push(LoopValues {
                    number: name.parse().ok().filter(|number| *number < 32).ok_or_else(form)?,
                    count: part(0)?.ok_or_else(form)?,
                    init: part(1)?.unwrap_or_default(),
                    inc: parts
                        .get(2)
                        .map(|part| part.parse().map_err(|_| form()))
                        .transpose()?
                        .unwrap_or_default(),
                });
            }
            "buf" => {
                let form = || wrong("expected 160=VALUES:16, where 16 is the bytes per element".to_owned());
                let (name, spec) = assignment(option, text)?;
                let (values, stride) = spec.rsplit_once(':').ok_or_else(form)?;
                let (number, stride) =
                    (name.parse().map_err(|_| form())?, stride.parse().map_err(|_| form())?);
                self.buffer.push(BufferValues::new(number, Values::Text(values.to_owned()), stride));
            }
            _ => return Err(Error::Option { option: option.to_owned(), isa: Isa::R700 }),
        }
        Ok(())
    }

    fn prepare(&self, request: &Request<'_>) -> Result<Session, Error> {
        let types = [("f32", Dtype::F32), ("u32", Dtype::U32), ("i32", Dtype::I32)];
        let output_type = choose_or(Dtype::F32, "output_type", &self.output_type, &types)?;
        let launch = self.launch(request)?;
        Ok(Session::new(Waves { program: request.program.clone(), launch, output_type }))
    }
}

impl Launch {
    fn launch(&self, request: &Request<'_>) -> Result<machine::Launch, Error> {
        let Request { common, program, files, .. } = *request;
        let chip = request.target.r700();
        let inputs = self.input.iter().map(|of| (of.gpr, format!("input R{}", of.gpr), &of.values));
        let input = |gpr, values: Vec<_>| Input { gpr, values: values.into() };
        let (lanes, inputs) = by_lane(request, true, inputs, input)?;
        let mut launch = machine::Launch::new(chip, stage(request)?, lanes);
        let environment = launch.environment_mut();
        let resources = ["SQ_PGM_RESOURCES_PS", "SQ_PGM_RESOURCES_VS", "SQ_PGM_RESOURCES_GS"];
        if let Some(register) = resources.into_iter().find_map(|name| program.state(name)) {
            environment.set_pgm_resources(register);
        }
        let stated = program.resources.registers.and_then(|count| u8::try_from(count).ok());
        environment.num_gprs = self.gprs.or(stated).unwrap_or(environment.num_gprs);
        if environment.num_gprs > 128 {
            return Err(Error::Machine(format!("gprs: {}; expected 0 to 128", environment.num_gprs)));
        }
        environment.stack_size = self.stack.or(program.resources.stack).or(environment.stack_size);
        let clause_temps = self.clause_temps.unwrap_or(environment.clause_temps);
        environment.clause_temps = clause_temps.min(128 - environment.num_gprs);
        environment.prefer_vector = self.prefer_vector.unwrap_or(environment.prefer_vector);
        environment.dx10_clamp = self.dx10_clamp.unwrap_or(environment.dx10_clamp);
        environment.start = self.start.unwrap_or(program.base);
        environment.base_vertex = self.base_vertex;
        environment.base_instance = self.base_instance;
        environment.semantics.clone_from(&self.semantics);
        if let Some(fetch) = &self.fetch_program {
            let words = words("fetch_program", &fetch.words, files)?;
            environment.fetch_program = Some(FetchProgram { words: words.into(), start: fetch.start });
        }
        stated_resources(program, &mut environment.resources)?;
        fill_resources(self, &common.texture, &mut environment.resources, files)?;
        launch.inputs = inputs;
        if let Some(covered) = &self.covered {
            let array = covered.load_as("covered", Dtype::U8, files)?;
            if array.len() != lanes {
                let wanted = format!("{lanes} numbers (one per lane)");
                return Err(Error::Count { place: "covered".to_owned(), found: array.len(), wanted });
            }
            launch.covered = Some(array.bytes.iter().map(|lane| *lane != 0).collect());
        }
        if let Some(scatter) = &self.scatter {
            launch.scatter = words("scatter", scatter, files)?;
        }
        Ok(launch)
    }
}

/// Returns the stage of the program. If the launch states a stage, returns this stage. Otherwise, returns the stage
/// that the program's file states. If the file does not state a stage, returns the pixel stage.
fn stage(request: &Request<'_>) -> Result<Stage, Error> {
    let stages = [("pixel", Stage::Pixel), ("vertex", Stage::Vertex), ("geometry", Stage::Geometry)];
    if let Some(name) = &request.common.stage {
        return choose("stage", name, &stages);
    }
    match request.program.stage {
        None | Some(Any::Pixel | Any::Fragment) => Ok(Stage::Pixel),
        Some(Any::Vertex | Any::GsCopy | Any::Fetch) => Ok(Stage::Vertex),
        Some(Any::Geometry) => Ok(Stage::Geometry),
        Some(Any::Compute) => Err(Error::Machine("compute is not a program type of r700".to_owned())),
    }
}

/// The bank number that a program's constants use for the constant file C[n]. Banks 0 to 15 are the constant buffers.
pub(super) const CONSTANT_FILE: u32 = 16;

/// Copies the constants that the program's file states to `resources`. The copied constants are loop constants,
/// booleans and the constants of the file's constant banks.
fn stated_resources(program: &Program, resources: &mut Resources) -> Result<(), Error> {
    resources.booleans = program.state("SQ_BOOL_CONST").unwrap_or(0);
    for (number, constant) in resources.loop_constants.iter_mut().enumerate() {
        *constant = LoopConstant(program.state(&format!("SQ_LOOP_CONST_{number}")).unwrap_or(constant.0));
    }
    for block in &program.constants {
        let place = format!("constant {}", block.bank);
        let words =
            block.bytes.as_chunks::<4>().0.iter().map(|word| u32::from_le_bytes(*word)).collect::<Vec<_>>();
        if block.bank == CONSTANT_FILE {
            let first = block.offset as usize / 4;
            for (place, word) in (first..).zip(words) {
                let file = &mut resources.constant_file;
                if place / 4 > 255 {
                    return Err(out_of("constant_file", 255));
                }
                file.resize(file.len().max(place / 4 + 1), [0; 4]);
                file[place / 4][place % 4] = word;
            }
            continue;
        }
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
    // A constant buffer has 4096 entries of four dwords. (kcache: 12-bit addresses)
    let end = offset.saturating_add(words.len());
    if end > 4096 * 4 {
        return Err(Error::Machine(format!(
            "{place}: expected an end at dword 16384 or before, found dword {end}"
        )));
    }
    buffer.resize(buffer.len().max(end), 0);
    buffer[offset..end].copy_from_slice(words);
    Ok(())
}

fn fill_resources(
    file: &Launch,
    textures: &[TextureValues],
    resources: &mut Resources,
    files: &dyn Files,
) -> Result<(), Error> {
    resources.booleans = file.booleans.unwrap_or(resources.booleans);
    for constant in &file.constant {
        let place = format!("constant {}", constant.number);
        let words = floats(&place, &constant.values, files)?;
        let number = usize::from(constant.number);
        place_constants(&mut resources.constant_buffers, &place, number, constant.offset, &words)?;
    }
    let are_buffers = file.constants_are_buffers.unwrap_or(true);
    let filled =
        (0u8..).zip(&resources.constant_buffers).filter(|(_, buffer)| are_buffers && !buffer.is_empty());
    for (number, buffer) in filled {
        // The last entry of a constant buffer may be incomplete. The missing words of this entry become zeros.
        let mut entries = buffer.clone();
        entries.resize(buffer.len().next_multiple_of(4), 0);
        resources.vertex_buffers.insert(number, VertexBuffer::constants(&entries));
    }
    for constant in &file.constant_file {
        let place = format!("constant_file {}", constant.number);
        let words = floats(&place, &constant.values, files)?;
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
            Error::Machine(format!(
                "{place}: expected count and init from 0 to 4095, and inc from -128 to 127"
            ))
        })?;
        *constant = LoopConstant(u32::from(*count) | u32::from(*init) << 12 | u32::from(inc as u8) << 24);
    }
    for buffer in &file.buffer {
        let place = format!("buffer {}", buffer.number);
        let array = buffer.values.load_plain(&place, files)?;
        let described = match (buffer.stride, buffer.word2) {
            (Some(stride @ 0..=2047), None) => {
                VertexBuffer { bytes: array.bytes.into(), stride, ..VertexBuffer::constants(&[]) }
            }
            (Some(stride), None) => {
                return Err(Error::Machine(format!("{place}: stride: expected 0 to 2047, found {stride}")));
            }
            (None, Some(word2)) => {
                let last = u32::try_from(array.bytes.len()).unwrap_or(u32::MAX).wrapping_sub(1);
                VertexBuffer::from_resource([0, last, word2, 0, 0, 0, 0], array.bytes)
            }
            _ => return Err(Error::Machine(format!("{place}: expected either stride or word2"))),
        };
        resources.vertex_buffers.insert(buffer.number, described);
    }
    for texture in textures {
        let (image, sampler) = texture.image(Isa::R700, files)?;
        let (integer, fractions) = (texture.integer, texture.fractions);
        let select = texture.selected("xyzw01", |letter| Component::of_letter(letter, integer))?;
        let select = select.unwrap_or(Component::ALL);
        resources
            .textures
            .insert(texture.unit, Texture { integer, fractions, select, ..Texture::floats(image) });
        if let Some(number) = texture.own_sampler(file.sampler.is_empty()) {
            resources.samplers.insert(number, TextureSampler { sampler, ..TextureSampler::default() });
        }
    }
    for values in &file.sampler {
        let (sampler, compare) = values.sampler(files)?;
        resources.samplers.insert(values.number, TextureSampler { sampler, compare });
    }
    Ok(())
}

fn out_of(place: &str, last: usize) -> Error {
    Error::Machine(format!("{place}: expected 0 to {last}"))
}

/// Returns constants as words. The constants are floats unless the launch states another type.
fn floats(place: &str, values: &Values, files: &dyn Files) -> Result<Vec<u32>, Error> {
    all_words(place, &values.load_float(place, true, files)?.array)
}

fn words(place: &str, values: &Values, files: &dyn Files) -> Result<Vec<u32>, Error> {
    all_words(place, &values.load_plain(place, files)?)
}

fn all_words(place: &str, array: &Array) -> Result<Vec<u32>, Error> {
    if array.dtype.bytes() != 4 {
        return Err(Error::Machine(format!("{place}: expected 32-bit elements, found {}", array.dtype)));
    }
    Ok(array.words().collect())
}

// ---- Sessions

impl error::Cause for Cause {
    fn other(&self) -> Option<u32> {
        match self {
            Cause::Race { accesses, .. } => Some(accesses[0].pc),
            _ => None,
        }
    }
}

/// A launch whose lanes run in wavefronts.
#[derive(Clone, Debug)]
pub struct Waves {
    /// The program.
    pub program: Program,
    /// The launch.
    pub launch: machine::Launch,
    /// Element type in which exports are shown and compared.
    output_type: Dtype,
}

impl Waves {
    /// In strict mode, returns an error if the program reads the constant file, but neither the source nor the launch
    /// sets values in this file.
    fn has_constants(&self, options: &Options) -> Result<(), Error> {
        let environment = &self.launch.environment;
        if options.mode != Mode::Strict || !environment.resources.constant_file.is_empty() {
            return Ok(());
        }
        let mut decoding = CodeOptions::new(environment.chip);
        decoding.prefer_vector = environment.prefer_vector;
        let code = Code::new(&self.program.words, environment.start, decoding);
        let read = code.instructions().find_map(|(_, cf)| {
            let CfOp::Alu(clause) = &cf.op else { return None };
            code.groups(clause).flat_map(|group| group.ops).flat_map(AluOp::read).find_map(|source| {
                match source.operand {
                    Operand::ConstantFile { index, .. } => Some(index),
                    _ => None,
                }
            })
        });
        match read {
            None => Ok(()),
            Some(index) => Err(Error::Machine(format!(
                "the program reads C[{index}] of the constant file, but nothing sets this file: add `.const file 0 …` \
                 to the source or [[constant_file]] to the launch file; with --mode lenient, the value is 0"
            ))),
        }
    }
}

impl Ready for Waves {
    fn copy(&self) -> Box<dyn Ready> {
        Box::new(self.clone())
    }

    fn run(self: Box<Self>, options: &Options, watch: Watch<'_>) -> Result<Box<dyn Outcome>, Error> {
        self.has_constants(options)?;
        Ok(Box::new(self.left(run_watched(&self.program, &self.launch, options, watch)?)))
    }

    fn piece(&self, lanes: Range<usize>) -> Option<Box<dyn Ready>> {
        if lanes.is_empty() || lanes.end > self.launch.lanes {
            return None;
        }
        let mut launch = self.launch.clone();
        launch.first_lane += lanes.start;
        launch.lanes = lanes.len();
        for input in &mut launch.inputs {
            let rows = input.values.get(lanes.start..input.values.len().min(lanes.end)).unwrap_or(&[]);
            input.values = rows.into();
        }
        if let Some(covered) = &mut launch.covered {
            *covered = covered[lanes].to_vec();
        }
        Some(Box::new(Waves { program: self.program.clone(), launch, output_type: self.output_type }))
    }

    fn start(&self, options: &Options) -> Result<Box<dyn Steps>, Error> {
        self.has_constants(options)?;
        let run = Run::new(&self.program, self.launch.clone(), options);
        let run = run.map_err(|error| Error::Machine(error.to_string()))?;
        Ok(Box::new(WaveSteps { run, ended: EndedGroups::default(), output_type: self.output_type }))
    }
}

/// Returns the part of a stack entry to which a word of flow state refers.
fn part(word: &Word) -> Part {
    if word.part == 0 { Part::Active } else { Part::Breaks }
}

/// A launch that is executed step by step.
#[derive(Clone)]
struct WaveSteps {
    run: Run,
    ended: EndedGroups<Wave>,
    output_type: Dtype,
}

impl WaveSteps {
    /// Returns a running wavefront, or an ended wavefront whose state is still stored.
    fn wave(&self, group: usize) -> Option<&Wave> {
        match self.current() == Some(group) {
            true => Some(self.run.wave()),
            false => self.ended.of(group),
        }
    }

    /// Returns the hardware number of a register. Returns `None` if the launch does not have the register.
    fn number(&self, Register { class, number, channel }: Register) -> Option<u8> {
        let known = self.registers().into_iter().find(|known| known.name == class)?;
        // The clause temporaries (class T) have the highest register numbers.
        let first = if class == "T" { 128 - known.count } else { 0 };
        u8::try_from(first + number).ok().filter(|_| number < known.count && channel < 4)
    }
}

impl Steps for WaveSteps {
    fn copy(&self) -> Box<dyn Steps> {
        Box::new(self.clone())
    }

    fn shape(&self) -> (usize, usize) {
        (self.run.launch().lanes, self.run.launch().environment.chip.wave_width.into())
    }

    fn current(&self) -> Option<usize> {
        self.run.place().map(|lane| lane / self.shape().1)
    }

    fn view(&self, group: usize) -> Option<&dyn FlowView> {
        self.wave(group).map(|wave| wave as &dyn FlowView)
    }

    fn step(&mut self, observer: &mut dyn FnMut(Event)) -> Result<(), Error> {
        let group = self.current();
        let step = self.run.step_watched(Watch::of(&mut Dynamic(observer)));
        if let (Some(group), Some(wave)) = (group, self.run.take_ended()) {
            self.ended.keep(group, wave);
        }
        step.map(drop).map_err(|trap| self.run.locate(trap).into())
    }

    fn advance(&mut self, most: u64, watch: Watch<'_>) -> Result<(), Error> {
        let step = self.run.advance(most, watch);
        step.map(drop).map_err(|trap| self.run.locate(trap).into())
    }

    fn next_words(&self) -> Option<Vec<usize>> {
        self.run.place().and_then(|_| self.run.wave().next_words())
    }

    fn set_program(&mut self, program: &Program) -> bool {
        self.run.set_program(program);
        true
    }

    fn is_independent(&self) -> bool {
        self.run.is_independent()
    }

    fn statistics(&self) -> Statistics {
        self.run.statistics()
    }

    fn outcome(&self) -> Box<dyn Outcome> {
        Box::new(WavesOutcome { outcome: self.run.outcome(), output_type: self.output_type })
    }
}

impl Inspect for WaveSteps {
    fn registers(&self) -> Vec<RegisterClass> {
        let machine::Environment { num_gprs, clause_temps, .. } = &*self.run.launch().environment;
        let (registers, temps) = (usize::from(*num_gprs), usize::from(*clause_temps));
        vec![
            RegisterClass { name: "R", count: registers, channels: "xyzw", first: 0 },
            RegisterClass { name: "T", count: temps, channels: "xyzw", first: 4 * (128 - temps as u32) },
        ]
    }

    fn read(&self, group: usize, register: Register) -> Option<Vec<u32>> {
        let wave = self.wave(group)?;
        let (register, channel) = (self.number(register)?, register.channel);
        let lanes = 0..self.lanes(group).len() as u8;
        lanes.map(|lane| wave.register(register, channel, Lane(lane))).collect()
    }

    fn spaces(&self) -> Vec<Space> {
        let space = |name| Space { name, of: SpaceOf::Launch };
        vec![space("scatter"), space("global")]
    }

    /// Addresses are byte addresses. The bytes of the global registers are in the order of the registers. Within one
    /// register, the bytes are ordered by component, and then by lane.
    fn memory(&self, space: &str, _: usize, _: Lane, address: u32, count: usize) -> Vec<u8> {
        let simd = self.run.wave().simd();
        let words: &[u32] = match space {
            "scatter" => &simd.scatter,
            "global" => simd.global.as_flattened().as_flattened(),
            _ => &[],
        };
        let (word, byte) = (address as usize / 4, address as usize % 4);
        let bytes = words.get(word..).unwrap_or_default().iter().flat_map(|word| word.to_le_bytes());
        bytes.skip(byte).take(count).collect()
    }

    fn set(&mut self, group: usize, register: Register, lane: Lane, value: u32) -> bool {
        let Some(number) = self.number(register).filter(|_| self.current() == Some(group)) else {
            return false;
        };
        lane.index() < self.lanes(group).len()
            && self.run.wave_mut().set_register(number, register.channel, lane, value)
    }

    fn store(&mut self, space: &str, _: usize, _: Lane, address: u32, bytes: &[u8]) -> bool {
        let simd = self.run.wave_mut().simd_mut();
        let words: &mut [u32] = match space {
            "scatter" => &mut simd.scatter,
            "global" => simd.global.as_flattened_mut().as_flattened_mut(),
            _ => return false,
        };
        let places = address as usize..(address as usize).saturating_add(bytes.len());
        if places.end > 4 * words.len() {
            return false;
        }
        for (place, byte) in places.zip(bytes) {
            let mut word = words[place / 4].to_le_bytes();
            word[place % 4] = *byte;
            words[place / 4] = u32::from_le_bytes(word);
        }
        true
    }

    fn words(&self, kind: Kind) -> Vec<Word> {
        let (wave, lanes) = (self.run.wave(), self.run.wave().lanes());
        match kind {
            Kind::Predicate => {
                let there = wave.predicate().is_some();
                there.then(|| Word::of_lanes(kind, 0, 0, lanes)).into_iter().collect()
            }
            Kind::ActiveMask => vec![Word::of_lanes(kind, 0, 0, lanes)],
            Kind::StackEntry => {
                let parts = |(number, entry): (usize, &Entry)| {
                    let parts = match entry {
                        Entry::Branch { .. } => 0..1,
                        Entry::Loop { .. } => 0..2,
                        Entry::Return { .. } => 0..0,
                    };
                    parts.map(move |part| Word::of_lanes(kind, number, part, lanes))
                };
                wave.flow().entries().iter().enumerate().flat_map(parts).collect()
            }
            Kind::LoopCounter => {
                let trips = wave.flow().trips().len();
                (0..trips).map(|place| Word::number(kind, place, None, TRIP_BITS)).collect()
            }
            Kind::BranchCounter | Kind::Token => Vec::new(),
        }
    }

    fn word(&self, word: &Word) -> u64 {
        let (wave, flow) = (self.run.wave(), self.run.wave().flow());
        let held = match word.kind {
            Kind::Predicate => wave.predicate().map_or(0, |lanes| lanes.0),
            Kind::ActiveMask => flow.active().0,
            Kind::StackEntry => flow.entry_mask(word.number, part(word)).map_or(0, |lanes| lanes.0),
            Kind::LoopCounter => flow.trips().get(word.number).copied().unwrap_or(0).into(),
            Kind::BranchCounter | Kind::Token => 0,
        };
        held & word.bits
    }

    fn set_word(&mut self, word: &Word, value: u64) {
        let wave = self.run.wave_mut();
        // The mask may have bits for lanes that the wavefront does not have. These bits remain unchanged.
        let value = value & word.bits;
        let with = |held: Mask| (held - Mask(word.bits)) | Mask(value);
        match word.kind {
            Kind::Predicate => {
                if let Some(held) = wave.predicate() {
                    wave.set_predicate(with(held));
                }
            }
            Kind::ActiveMask => {
                let active = with(wave.flow().active());
                wave.flow_mut().set_active(active);
            }
            Kind::StackEntry => {
                if let Some(held) = wave.flow().entry_mask(word.number, part(word)) {
                    wave.flow_mut().set_entry_mask(word.number, part(word), with(held));
                }
            }
            Kind::LoopCounter => wave.flow_mut().set_trip(word.number, value as u32),
            Kind::BranchCounter | Kind::Token => {}
        }
    }
}

/// Results of a launch, with the element type in which exports are shown.
pub struct WavesOutcome {
    /// The results in the form that the machine's crate returns.
    pub outcome: outcome::Outcome,
    output_type: Dtype,
}

impl Waves {
    /// Adds the element type of the exports to the results of a run of this launch.
    pub fn left(&self, outcome: outcome::Outcome) -> WavesOutcome {
        WavesOutcome { outcome, output_type: self.output_type }
    }
}

impl Outcome for WavesOutcome {
    fn statistics(&self) -> Statistics {
        self.outcome.statistics
    }

    fn report(&self) -> &Report {
        &self.outcome.fidelity.report
    }

    fn finding(&self) -> Option<String> {
        self.outcome.finding.map(|finding| finding.to_string())
    }

    fn outputs(&self) -> Vec<(String, Array)> {
        outputs(&self.outcome, self.output_type)
    }

    fn written(&self, output: &str) -> Option<&[u8]> {
        let export = self.outcome.exports.iter().find(|export| export.name() == output)?;
        Some(&export.written)
    }
}

fn outputs(outcome: &outcome::Outcome, dtype: Dtype) -> Vec<(String, Array)> {
    let (mut outputs, lanes) = (Vec::new(), outcome.killed.len());
    for export in &outcome.exports {
        let words = export.values.iter().flatten().copied();
        outputs.push((export.name(), Array::from_words(dtype, vec![lanes, 4], words)));
    }
    outputs.extend(killed(outcome.killed.iter().copied()));
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
