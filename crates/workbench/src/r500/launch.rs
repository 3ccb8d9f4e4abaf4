//! Launches of R500: the fields of a launch file, and the sessions that run launches.
//!
//! If a launch does not have the table `[ctm]`, lanes are pixels. The inputs of the launch are initial values of
//! temporaries, and the outputs of the launch are the render targets. If a launch has the table `[ctm]`, the program
//! runs over a domain of index pairs and accesses typed buffers. [`super::vertex`] has the launches of vertex programs.

use std::ops::Range;
use std::sync::Arc;

use reconverge_isa::limits::room;
use reconverge_isa::program::Stage;
use reconverge_isa::source::suggest;
use reconverge_isa::word::FieldValue;
use reconverge_isa::{Isa, Program};
use reconverge_r500::cause::Cause;
use reconverge_r500::ctm::{
    self, CondLoc, CondTest, Conditional, Dispatch, DispatchError, DispatchOutcome, Domain, Format, Surface,
    Tiling,
};
use reconverge_r500::flow::{InhibitScope, Limits};
use reconverge_r500::group::Group;
use reconverge_r500::inst::{Body, TARGETS, TEMPORARIES};
use reconverge_r500::launch::{self as machine, Hardware, Input};
use reconverge_r500::outputs::LaneOutput;
use reconverge_r500::run::Run;
use reconverge_r500::setup::Setup;
use reconverge_r500::texture::Texture;
use reconverge_r500::words::TexOp;
use reconverge_r500::{outputs, run};
use reconverge_simt::fidelity::Report;
use reconverge_simt::observe::Dynamic;
use reconverge_simt::{Event, FlowView, Lane, Mask, Options, Statistics, Watch};
use serde::Deserialize;

use super::vertex::AttributeValues;
use crate::array::{Array, Dtype};
use crate::error::{self, Error};
use crate::faults::{Kind, Word};
use crate::request::{
    MachineLaunch, Request, SamplerValues, TextureValues, assigned, assignment, by_lane, channels, choose,
    choose_or, killed, number, sizes,
};
use crate::session::{
    EndedGroups, Inspect, Outcome, Ready, Register, RegisterClass, Session, Space, SpaceOf, Steps, replace,
    stepped,
};
use crate::trace::Recorded;
use crate::values::{Files, Values};

/// The fields of a launch file that exist only for R500.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Launch {
    /// Number of lanes that share a program counter. By default, the chip determines the number.
    pub group_width: Option<usize>,
    /// Number of frames of the loop stack. By default, the flow-control mode determines the number.
    pub loop_stack: Option<usize>,
    /// Number of entries of the address stack. By default, the flow-control mode determines the number.
    pub address_stack: Option<usize>,
    /// Maximum value of a branch counter. By default, the flow-control mode determines the value.
    pub branch_counter: Option<u8>,
    /// The lanes that can prevent the jump of a BREAK. The value `frame` means the lanes of the loop, and the value
    /// `all` means all lanes.
    pub inhibit_scope: Option<String>,
    /// Initial values of temporaries.
    #[serde(default)]
    pub input: Vec<InputValues>,
    /// Values of a vertex program's input registers.
    #[serde(default)]
    pub attribute: Vec<AttributeValues>,
    /// Float constants.
    #[serde(default)]
    pub constant: Vec<ConstantValues>,
    /// Samplers, each with the unit of its texture.
    #[serde(default)]
    pub sampler: Vec<SamplerValues>,
    /// Parameters of a launch in the CTM model.
    pub ctm: Option<CtmValues>,
}

/// Initial values of a temporary. The rasteriser writes initial values before the program starts.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct InputValues {
    /// Number of the temporary.
    pub temp: u8,
    /// One to four numbers for each lane, or one to four numbers for all lanes together.
    pub values: Values,
}

/// A float constant.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ConstantValues {
    /// Number of the constant, 0 to 255.
    pub number: u8,
    /// One to four numbers, which are the channels of the constant.
    pub values: Values,
}

/// A launch over a domain of index pairs (i, j), in the CTM model.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct CtmValues {
    /// The two sizes of the domain: the size along i, and then the size along j.
    pub domain: Vec<u32>,
    /// The first value of i and the first value of j.
    #[serde(default)]
    pub origin: Vec<u32>,
    /// Whether the program's outputs go directly to output buffer 0 instead of through the cache.
    #[serde(default)]
    pub uncached: bool,
    /// Input buffers.
    #[serde(default)]
    pub input: Vec<BufferValues>,
    /// Output buffers.
    #[serde(default)]
    pub output: Vec<BufferValues>,
    /// Parameters of conditional execution.
    pub conditional: Option<ConditionalValues>,
}

/// A typed buffer.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct BufferValues {
    /// Number of the buffer: 0 to 15 for an input, and 0 to 3 for an output.
    pub number: u8,
    /// Element format: `UINT16_1`, `UINT8_4`, `FLOAT32_1`, `FLOAT32_2` or `FLOAT32_4`.
    pub format: String,
    /// Tiling mode (default: `LINEAR`).
    pub tiling: Option<String>,
    /// Number of elements per row.
    pub pitch: u32,
    /// Number of rows (default: 1).
    pub height: Option<u32>,
    /// Initial contents (default: zeros).
    pub values: Option<Values>,
}

/// Parameters of conditional execution. The result of a comparison decides whether the program runs.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ConditionalValues {
    /// The comparison: `NEVER`, `LESS`, `LESS_EQUAL`, `EQUAL`, `GREATER_EQUAL`, `GREATER`, `NOT_EQUAL` or `ALWAYS`.
    pub test: String,
    /// When the comparison takes place. With `DPP`, the comparison takes place when the program ends. With `PE`, the
    /// comparison takes place before the program is scheduled.
    pub location: String,
    /// The value that is compared if `location` is `PE`.
    #[serde(default)]
    pub value: f32,
    /// Whether the program's conditional value is written to the buffer.
    #[serde(default)]
    pub write: bool,
    /// The conditional buffer. The field `number` of this buffer has no effect.
    pub buffer: BufferValues,
}

impl MachineLaunch for Launch {
    fn copy(&self) -> Arc<dyn MachineLaunch> {
        Arc::new(self.clone())
    }

    fn set(&mut self, option: &str, text: &str) -> Result<(), Error> {
        let wrong = |why: String| Error::Machine(format!("--{option} {text}: {why}"));
        match option {
            "group-width" => self.group_width = Some(number(option, text)?),
            "input" => {
                let (name, values) = assigned(option, text)?;
                let number = |file: &str| name.strip_prefix(file).and_then(|digits| digits.parse().ok());
                match (number("temp"), number("i")) {
                    (Some(temp), _) => self.input.push(InputValues { temp, values }),
                    (None, Some(number)) => self.attribute.push(AttributeValues { number, values }),
                    (None, None) => {
                        let fits = "expected temp0 to temp127, or i0 to i31 for a vertex program";
                        return Err(wrong(format!("`{name}` is not a register; {fits}")));
                    }
                }
            }
            "const" => {
                let (name, values) = assigned(option, text)?;
                let number = name
                    .parse()
                    .map_err(|_| wrong(format!("`{name}` is not a constant; expected 0 to 255")))?;
                self.constant.push(ConstantValues { number, values });
            }
            "sampler" => self.sampler.push(SamplerValues::of_argument(text)?),
            "domain" => self.ctm = Some(CtmValues { domain: sizes(text)?, ..CtmValues::default() }),
            "uncached" | "buf" => {
                let Some(ctm) = &mut self.ctm else {
                    return Err(Error::Machine("--buf and --uncached need --domain WIDTHxHEIGHT".to_owned()));
                };
                if option == "uncached" {
                    ctm.uncached = true;
                    return Ok(());
                }
                let form = || wrong("expected in0=VALUES:FORMAT:8x8 or out0=FORMAT:8x8".to_owned());
                let (name, spec) = assignment(option, text)?;
                let (rest, size) = spec.rsplit_once(':').ok_or_else(form)?;
                let (values, format) = match rest.rsplit_once(':') {
                    Some((values, format)) => (Some(Values::Text(values.to_owned())), format.to_owned()),
                    None => (None, rest.to_owned()),
                };
                let (list, digits) = match (name.strip_prefix("in"), name.strip_prefix("out")) {
                    (Some(digits), _) => (&mut ctm.input, digits),
                    (_, Some(digits)) => (&mut ctm.output, digits),
                    _ => return Err(form()),
                };
                let (pitch, height) = match sizes(size)?[..] {
                    [pitch] => (pitch, None),
                    [pitch, height] => (pitch, Some(height)),
                    _ => return Err(form()),
                };
                let number = digits.parse().map_err(|_| form())?;
                list.push(BufferValues { number, format, tiling: None, pitch, height, values });
            }
            _ => return Err(Error::Option { option: option.to_owned(), isa: Isa::R500 }),
        }
        Ok(())
    }

    fn prepare(&self, request: &Request<'_>) -> Result<Session, Error> {
        let stages = [("vertex", Stage::Vertex), ("fragment", Stage::Fragment), ("pixel", Stage::Pixel)];
        let stated = request.common.stage.as_deref();
        let stated = stated.map(|name| choose("stage", name, &stages)).transpose()?;
        let vertex = stated.or(request.program.stage) == Some(Stage::Vertex);
        let unfit = match vertex {
            true => (!self.input.is_empty() || self.ctm.is_some()).then_some(
                "temporaries and a domain are for fragment programs; use attributes for a vertex program",
            ),
            false => (!self.attribute.is_empty()).then_some(
                "attributes are for vertex programs; use inputs in temporaries for a fragment program",
            ),
        };
        if let Some(why) = unfit {
            return Err(Error::Machine(why.to_owned()));
        }
        if vertex {
            return super::vertex::prepare(request, &self.attribute, self.constants(request.files)?);
        }
        let setup = Setup::new(request.program).map_err(|error| Error::Machine(error.to_string()))?;
        let setup = Arc::new(setup);
        Ok(match &self.ctm {
            None => Session::new(Pixels { launch: self.pixels(&setup, request)?, setup }),
            Some(ctm) => Session::new(Pairs { dispatch: self.pairs(&setup, ctm, request)?, setup }),
        })
    }
}

impl Launch {
    fn hardware(&self, setup: &Setup, request: &Request<'_>) -> Result<Hardware, Error> {
        let scopes = [("frame", InhibitScope::Frame), ("all", InhibitScope::All)];
        let scope = choose_or(InhibitScope::default(), "inhibit_scope", &self.inhibit_scope, &scopes)?;
        let recommended = Limits::recommended(setup.fc_mode);
        let limits = Limits {
            branch_counter: self.branch_counter.unwrap_or(recommended.branch_counter),
            loop_stack: self.loop_stack.unwrap_or(recommended.loop_stack),
            address_stack: self.address_stack.unwrap_or(recommended.address_stack),
        };
        let group_width = self.group_width.unwrap_or(request.target.r500().group_width);
        Ok(Hardware { group_width, limits: Some(limits), scope })
    }

    fn constants(&self, files: &dyn Files) -> Result<Vec<(u8, [u32; 4])>, Error> {
        let load = |constant: &ConstantValues| {
            let place = format!("constant {}", constant.number);
            let array = constant.values.load_float(&place, false, files)?.array;
            if !(1..=4).contains(&array.len()) || array.dtype.bytes() != 4 {
                return Err(Error::Count { place, found: array.len(), wanted: "1 to 4".to_owned() });
            }
            Ok((constant.number, channels(array.words())))
        };
        self.constant.iter().map(load).collect()
    }

    fn pixels(&self, setup: &Setup, request: &Request<'_>) -> Result<machine::Launch, Error> {
        let Request { common, files, .. } = request;
        let inputs = self.input.iter();
        let inputs = inputs.map(|of| (of.temp, format!("input temp[{}]", of.temp), &of.values));
        let input = |temp, values: Vec<_>| Input { temp, values: values.into() };
        let (lanes, inputs) = by_lane(request, false, inputs, input)?;
        let texture = |values: &TextureValues| {
            let (image, sampler) = values.image(Isa::R500, *files)?;
            Ok((values.unit, Texture { image, sampler }))
        };
        let mut textures = common.texture.iter().map(texture).collect::<Result<Vec<_>, Error>>()?;
        for values in &self.sampler {
            let (number, (sampler, _)) = (values.number, values.sampler(*files)?);
            if values.compare.is_some() {
                return Err(Error::Machine(format!("sampler {number}: `compare` is not for r500 programs")));
            }
            let bound = textures.iter_mut().find(|(unit, _)| *unit == number);
            let (_, texture) =
                bound.ok_or_else(|| Error::Machine(format!("sampler {number}: no texture has this unit")))?;
            texture.sampler = sampler;
        }
        let bound: Vec<u8> = textures.iter().map(|(unit, _)| *unit).collect();
        let remedy = "state it with --texture UNIT=FILE, or in a [[texture]] table of the launch file";
        check_units(setup, &bound, remedy)?;
        let (constants, hardware) = (self.constants(*files)?, self.hardware(setup, request)?);
        let environment = machine::Environment { constants, textures, hardware }.into();
        Ok(machine::Launch { environment, lanes, inputs, columns: Vec::new() })
    }

    fn pairs(&self, setup: &Setup, values: &CtmValues, request: &Request<'_>) -> Result<Dispatch, Error> {
        let pair = |list: &[u32], default: [u32; 2], what: &str| match list {
            [] => Ok(default),
            [i] => Ok([*i, default[1]]),
            [i, j] => Ok([*i, *j]),
            more => {
                let (place, wanted) = (format!("ctm.{what}"), "1 or 2".to_owned());
                Err(Error::Count { place, found: more.len(), wanted })
            }
        };
        let [width, height] = pair(&values.domain, [1, 1], "domain")?;
        let [i, j] = pair(&values.origin, [0, 0], "origin")?;
        let mut memory = Vec::new();
        let mut place =
            |what: &str, buffer: &BufferValues| place_buffer(what, buffer, &mut memory, request.files);
        let input = |buffer: &BufferValues| Ok((buffer.number, place("ctm.input", buffer)?));
        let inputs = values.input.iter().map(input).collect::<Result<Vec<_>, Error>>()?;
        let mut outputs = [None; TARGETS];
        for buffer in &values.output {
            let surface = place("ctm.output", buffer)?;
            let output = outputs.get_mut(usize::from(buffer.number));
            *output.ok_or_else(|| Error::name("ctm.output.number", buffer.number, "expected 0 to 3"))? =
                Some(surface);
        }
        let conditional = |conditional: &ConditionalValues| -> Result<Conditional, Error> {
            Ok(Conditional {
                buffer: place("ctm.conditional.buffer", &conditional.buffer)?,
                test: named::<CondTest>("ctm.conditional.test", &conditional.test)?,
                location: named::<CondLoc>("ctm.conditional.location", &conditional.location)?,
                value: conditional.value,
                write: conditional.write,
            })
        };
        let conditional = values.conditional.as_ref().map(conditional).transpose()?;
        let bound: Vec<u8> = inputs.iter().map(|(number, _)| *number).collect();
        let remedy = "state it with --buf inN=..., or in a [[ctm.input]] table of the launch file";
        check_units(setup, &bound, remedy)?;
        Ok(Dispatch {
            memory,
            inputs,
            outputs,
            uncached: values.uncached,
            conditional,
            constants: self.constants(request.files)?,
            domain: Domain { i, j, width, height },
            hardware: self.hardware(setup, request)?,
        })
    }
}

/// Returns an error if the program fetches from a texture unit without a texture. The function runs before the program
/// starts.
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

/// Returns the value of an enumerated field. `name` is the manual's name of the value.
fn named<E: FieldValue>(place: &str, name: &str) -> Result<E, Error> {
    let value = E::NAMES.iter().find(|known| known.text.eq_ignore_ascii_case(name));
    let names = || E::NAMES.iter().map(|known| known.text).collect::<Vec<_>>();
    let value = value.and_then(|known| E::from_bits(known.value, E::BITS));
    value.ok_or_else(|| Error::name(place, name, suggest(name, names())))
}

// ---- Sessions

impl error::Cause for Cause {}

/// A launch whose lanes are pixels.
#[derive(Clone, Debug)]
pub struct Pixels {
    /// The program.
    pub setup: Arc<Setup>,
    /// The launch.
    pub launch: machine::Launch,
}

/// A launch whose lanes are index pairs of a domain.
#[derive(Clone, Debug)]
struct Pairs {
    setup: Arc<Setup>,
    dispatch: Dispatch,
}

impl Ready for Pixels {
    fn copy(&self) -> Box<dyn Ready> {
        Box::new(self.clone())
    }

    fn run(self: Box<Self>, options: &Options, watch: Watch<'_>) -> Result<Box<dyn Outcome>, Error> {
        let outcome = run::run_watched(&self.setup, &self.launch, options, watch)?;
        Ok(Box::new(PixelsOutcome { outcome }))
    }

    /// Numbers the lanes of the returned launch from 0. The new numbers do not change results, because no instruction
    /// reads the number of a lane.
    fn piece(&self, lanes: Range<usize>) -> Option<Box<dyn Ready>> {
        if lanes.is_empty() || lanes.end > self.launch.lanes {
            return None;
        }
        let mut launch = self.launch.clone();
        launch.lanes = lanes.len();
        for input in &mut launch.inputs {
            input.values = input.values.get(lanes.clone()).unwrap_or(&[]).into();
        }
        Some(Box::new(Pixels { setup: Arc::clone(&self.setup), launch }))
    }

    fn start(&self, options: &Options) -> Result<Box<dyn Steps>, Error> {
        let run = Run::new(&self.setup, self.launch.clone(), options);
        let run = run.map_err(|error| Error::Machine(error.to_string()))?;
        Ok(Box::new(PixelSteps(run, EndedGroups::default())))
    }
}

/// The results of a launch over pixels.
pub struct PixelsOutcome {
    /// The results in the form that the machine's crate returns.
    pub outcome: outputs::Outcome,
}

impl Outcome for PixelsOutcome {
    fn statistics(&self) -> Statistics {
        self.outcome.statistics
    }

    fn report(&self) -> &Report {
        &self.outcome.report
    }

    fn finding(&self) -> Option<String> {
        self.outcome.finding.map(|finding| finding.to_string())
    }

    fn outputs(&self) -> Vec<(String, Array)> {
        let outputs::Outcome { outputs: registers, .. } = &self.outcome;
        let (mut outputs, lanes) = (Vec::new(), registers.len());
        for target in 0..TARGETS {
            if (0..4).any(|channel| registers.color(target, channel).is_some()) {
                let words = registers.iter().flat_map(|lane| lane.color[target]);
                outputs
                    .push((format!("color{target}"), Array::from_words(Dtype::F32, vec![lanes, 4], words)));
            }
        }
        if let Some(depth) = registers.depth() {
            let words = depth.iter().copied();
            outputs.push(("depth".to_owned(), Array::from_words(Dtype::F32, vec![lanes], words)));
        }
        outputs.extend(killed(registers.iter().map(|lane| lane.killed)));
        outputs
    }
}

/// A launch over pixels that is executed step by step.
#[derive(Clone)]
struct PixelSteps(Run, EndedGroups<Group>);

impl PixelSteps {
    /// Returns a running group, or an ended group whose state is still stored.
    fn group(&self, number: usize) -> Option<&Group> {
        match self.current() == Some(number) {
            true => Some(self.0.group()),
            false => self.1.of(number),
        }
    }
}

impl Steps for PixelSteps {
    fn copy(&self) -> Box<dyn Steps> {
        Box::new(self.clone())
    }

    fn shape(&self) -> (usize, usize) {
        (self.0.launch().lanes, self.0.launch().environment.hardware.group_width)
    }

    fn current(&self) -> Option<usize> {
        self.0.first_lane().map(|lane| lane / self.shape().1)
    }

    fn view(&self, group: usize) -> Option<&dyn FlowView> {
        self.group(group).map(|group| group.flow() as &dyn FlowView)
    }

    fn step(&mut self, observer: &mut dyn FnMut(Event)) -> Result<(), Error> {
        let number = self.current();
        let step = self.0.step_watched(Watch::of(&mut Dynamic(observer)));
        if let (Some(number), Some(group)) = (number, self.0.take_ended()) {
            self.1.keep(number, group);
        }
        step.map(drop).map_err(|trap| self.0.locate(trap).into())
    }

    fn advance(&mut self, most: u64, watch: Watch<'_>) -> Result<(), Error> {
        let step = self.0.advance(most, watch);
        step.map(drop).map_err(|trap| self.0.locate(trap).into())
    }

    /// The next instruction has six words.
    fn next_words(&self) -> Option<Vec<usize>> {
        self.0.next_words().map(Iterator::collect)
    }

    fn set_program(&mut self, program: &Program) -> bool {
        self.0.set_program(program).is_ok()
    }

    /// No pixel writes memory that another pixel reads.
    fn is_independent(&self) -> bool {
        true
    }

    fn statistics(&self) -> Statistics {
        self.0.statistics()
    }

    fn outcome(&self) -> Box<dyn Outcome> {
        Box::new(PixelsOutcome { outcome: self.0.outcome() })
    }
}

/// This launch does not have memory spaces. Pixels read only textures, and no instruction changes a texture.
impl Inspect for PixelSteps {
    fn registers(&self) -> Vec<RegisterClass> {
        REGISTERS.to_vec()
    }

    fn read(&self, group: usize, register: Register) -> Option<Vec<u32>> {
        read(self.group(group)?, self.lanes(group).len(), register)
    }

    fn set(&mut self, group: usize, register: Register, lane: Lane, value: u32) -> bool {
        self.current() == Some(group)
            && lane.index() < self.lanes(group).len()
            && set(self.0.group_mut(), register, lane, value)
    }

    fn words(&self, kind: Kind) -> Vec<Word> {
        words(self.0.group(), kind)
    }

    fn word(&self, word: &Word) -> u64 {
        self::word(self.0.group(), word)
    }

    fn set_word(&mut self, word: &Word, value: u64) {
        set_word(self.0.group_mut(), word, value);
    }
}

/// The number that events use for the first color channel. Writes to the colors and to the depth do not cause events.
const FIRST_COLOR: u32 = 4 * TEMPORARIES as u32;

const REGISTERS: [RegisterClass; 3] = [
    RegisterClass { name: "temp", count: TEMPORARIES, channels: "rgba", first: 0 },
    RegisterClass { name: "color", count: TARGETS, channels: "rgba", first: FIRST_COLOR },
    RegisterClass { name: "depth", count: 1, channels: "", first: FIRST_COLOR + 4 * TARGETS as u32 },
];

/// Returns the value of a register in the first `count` lanes of a group.
fn read(group: &Group, count: usize, Register { class, number, channel }: Register) -> Option<Vec<u32>> {
    let output = |lane: usize| LaneOutput::of(group, lane);
    Some(match class {
        "temp" if number < TEMPORARIES && channel < 4 => {
            (0..count as u8).map(|lane| group.temp(number as u8, channel, Lane(lane))).collect()
        }
        "color" if number < TARGETS && channel < 4 => {
            (0..count).map(|lane| output(lane).color[number][channel]).collect()
        }
        "depth" if (number, channel) == (0, 0) => {
            (0..count).map(|lane| output(lane).depth.unwrap_or(0)).collect()
        }
        _ => return None,
    })
}

/// Sets a temporary of a lane. Returns `false` if the register is an output, because callers can change only
/// temporaries.
fn set(group: &mut Group, Register { class, number, channel }: Register, lane: Lane, value: u32) -> bool {
    class == "temp" && u8::try_from(number).is_ok_and(|number| group.set_temp(number, channel, lane, value))
}

/// Returns all words of this kind in the group's flow state.
fn words(group: &Group, kind: Kind) -> Vec<Word> {
    let (flow, lanes) = (group.flow(), group.lanes());
    match kind {
        Kind::Predicate => (0..=4).map(|channel| Word::of_lanes(kind, channel, 0, lanes)).collect(),
        Kind::ActiveMask => vec![Word::of_lanes(kind, 0, 0, lanes)],
        Kind::BranchCounter => {
            let bits = flow.counter_bits();
            flow.counting().lanes().map(|lane| Word::number(kind, 0, Some(lane), bits)).collect()
        }
        Kind::LoopCounter => {
            (0..flow.frames().len()).map(|frame| Word::number(kind, frame, None, u8::BITS)).collect()
        }
        Kind::StackEntry | Kind::Token => Vec::new(),
    }
}

/// Returns the value of a word of a group's flow state.
fn word(group: &Group, word: &Word) -> u64 {
    let flow = group.flow();
    match word.kind {
        Kind::Predicate => group.flags(word.number).0 & word.bits,
        Kind::ActiveMask => flow.active().0,
        Kind::BranchCounter => word.lane.map_or(0, |lane| flow.counter(lane).into()),
        Kind::LoopCounter => flow.frames().get(word.number).map_or(0, |frame| frame.count.into()),
        Kind::StackEntry | Kind::Token => 0,
    }
}

/// Sets a word of a group's flow state.
fn set_word(group: &mut Group, word: &Word, value: u64) {
    let value = value & word.bits;
    match (word.kind, word.lane) {
        (Kind::Predicate, _) => {
            let others = group.flags(word.number) - Mask(word.bits);
            group.set_flags(word.number, others | Mask(value));
        }
        (Kind::ActiveMask, _) => group.flow_mut().set_active(Mask(value)),
        (Kind::BranchCounter, Some(lane)) => group.flow_mut().set_counter(lane, value as u8),
        (Kind::LoopCounter, _) => group.flow_mut().set_loop_count(word.number, value as u8),
        (Kind::BranchCounter, None) | (Kind::StackEntry | Kind::Token, _) => {}
    }
}

/// The results of a launch over a domain, with the output buffers.
struct PairsOutcome {
    outcome: DispatchOutcome,
    outputs: Vec<(String, Surface)>,
}

impl Ready for Pairs {
    fn copy(&self) -> Box<dyn Ready> {
        Box::new(self.clone())
    }

    fn run(self: Box<Self>, options: &Options, watch: Watch<'_>) -> Result<Box<dyn Outcome>, Error> {
        match watch {
            Watch::Flow(listener) => stepped(&*self, options, Recorded::Flow, listener),
            Watch::Data(listener) => stepped(&*self, options, Recorded::Data, listener),
            Watch::Nothing | Watch::Paths(_) => {
                let outputs = self.outputs();
                let outcome = ctm::run(&self.setup, self.dispatch, options).map_err(refused)?;
                Ok(Box::new(PairsOutcome { outcome, outputs }))
            }
        }
    }

    fn start(&self, options: &Options) -> Result<Box<dyn Steps>, Error> {
        let run = ctm::Run::new(&self.setup, self.dispatch.clone(), options).map_err(refused)?;
        Ok(Box::new(PairSteps { run, ended: EndedGroups::default(), outputs: self.outputs() }))
    }
}

impl Pairs {
    /// Returns the output buffers with their names.
    fn outputs(&self) -> Vec<(String, Surface)> {
        let Dispatch { outputs, conditional, .. } = &self.dispatch;
        let numbered = outputs.iter().enumerate();
        let bound = numbered.filter_map(|(number, surface)| Some((format!("out{number}"), (*surface)?)));
        let conditional = conditional.map(|conditional| ("conditional".to_owned(), conditional.buffer));
        bound.chain(conditional).collect()
    }
}

fn refused(error: DispatchError) -> Error {
    match error {
        DispatchError::Run(error) => error.into(),
        other => Error::Machine(other.to_string()),
    }
}

/// A launch over a domain that is executed step by step.
#[derive(Clone)]
struct PairSteps {
    run: ctm::Run,
    ended: EndedGroups<Group>,
    outputs: Vec<(String, Surface)>,
}

impl PairSteps {
    /// Returns a running group, or an ended group whose state is still stored.
    fn group(&self, number: usize) -> Option<&Group> {
        match self.run.group() {
            Some((running, group)) if running == number => Some(group),
            _ => self.ended.of(number),
        }
    }
}

impl Steps for PairSteps {
    fn copy(&self) -> Box<dyn Steps> {
        Box::new(self.clone())
    }

    /// Lanes are the index pairs, ordered by quads. Quads at the edge of the domain contain lanes that do not run.
    fn shape(&self) -> (usize, usize) {
        (self.run.groups() * self.run.width(), self.run.width())
    }

    fn current(&self) -> Option<usize> {
        self.run.group().map(|(number, _)| number)
    }

    fn view(&self, group: usize) -> Option<&dyn FlowView> {
        self.group(group).map(|group| group.flow() as &dyn FlowView)
    }

    fn step(&mut self, observer: &mut dyn FnMut(Event)) -> Result<(), Error> {
        let number = self.current();
        let step = self.run.step(Watch::of(&mut Dynamic(observer)));
        if let (Some(number), Some(group)) = (number, self.run.take_ended()) {
            self.ended.keep(number, group);
        }
        step.map(drop).map_err(refused)
    }

    fn statistics(&self) -> Statistics {
        self.run.statistics()
    }

    fn outcome(&self) -> Box<dyn Outcome> {
        Box::new(PairsOutcome { outcome: self.run.outcome(), outputs: self.outputs.clone() })
    }
}

impl Inspect for PairSteps {
    fn registers(&self) -> Vec<RegisterClass> {
        REGISTERS.to_vec()
    }

    fn read(&self, group: usize, register: Register) -> Option<Vec<u32>> {
        read(self.group(group)?, self.run.width(), register)
    }

    fn spaces(&self) -> Vec<Space> {
        vec![Space { name: "memory", of: SpaceOf::Launch }]
    }

    fn memory(&self, space: &str, _: usize, _: Lane, address: u32, count: usize) -> Vec<u8> {
        let bytes = if space == "memory" { self.run.memory() } else { &[] };
        bytes.iter().skip(address as usize).take(count).copied().collect()
    }

    fn set(&mut self, group: usize, register: Register, lane: Lane, value: u32) -> bool {
        let fits = lane.index() < self.run.width();
        let running = self.run.group_mut().filter(|(number, _)| *number == group && fits);
        running.is_some_and(|(_, state)| set(state, register, lane, value))
    }

    fn store(&mut self, space: &str, _: usize, _: Lane, address: u32, bytes: &[u8]) -> bool {
        space == "memory" && replace(self.run.memory_mut(), address, bytes)
    }

    fn words(&self, kind: Kind) -> Vec<Word> {
        self.run.group().map_or_else(Vec::new, |(_, group)| words(group, kind))
    }

    fn word(&self, word: &Word) -> u64 {
        self.run.group().map_or(0, |(_, group)| self::word(group, word))
    }

    fn set_word(&mut self, word: &Word, value: u64) {
        if let Some((_, group)) = self.run.group_mut() {
            set_word(group, word, value);
        }
    }
}

impl Outcome for PairsOutcome {
    fn statistics(&self) -> Statistics {
        self.outcome.statistics
    }

    fn report(&self) -> &Report {
        &self.outcome.report
    }

    fn finding(&self) -> Option<String> {
        self.outcome.finding.map(|finding| finding.to_string())
    }

    fn outputs(&self) -> Vec<(String, Array)> {
        let contents =
            |(name, surface): &(String, Surface)| (name.clone(), contents(surface, &self.outcome.memory));
        self.outputs.iter().map(contents).collect()
    }
}

/// Buffers start at multiples of 2 KiB. (CTM guide, base address: low 11 bits ignored)
const ALIGNMENT: usize = 2048;
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
    // The pitch and the height have 13 bits each (CTM guide, set_inp_fmt). The check also limits the memory that a
    // launch file can request.
    for (name, size) in [("pitch", buffer.pitch), ("height", height)] {
        if !(1..=8191).contains(&size) {
            return Err(Error::name(format!("{place} {name}"), size, "expected 1 to 8191"));
        }
    }
    let bytes = buffer.pitch as usize * height as usize * format.bytes() as usize;
    // Checks that enough memory is available for four copies of the buffers. When `memory` grows, the old and the new
    // allocation exist at the same time. The contents of the buffers also exist as arrays.
    room((memory.len() + bytes) as u64, 4)?;
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
    let base = u32::try_from(base).map_err(|_| {
        let before = format!("{base} bytes of buffers before it");
        Error::name(place, before, "all buffers together must stay below 4 GiB")
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
