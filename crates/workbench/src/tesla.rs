//! Running Tesla programs: a self-describing launch file, or the same from a command line.
//!
//! A kernel runs over a grid of blocks with parameters, most of which are the addresses of buffers; a fragment,
//! vertex or geometry program runs over lanes with inputs.

use reconverge_isa::program::Param;
use reconverge_isa::{Image, Program};
use reconverge_simt::Options;
use reconverge_simt::memory::{Buffer, LayoutError, Memory};
use reconverge_tesla::inst::{Chip, Stage};
use reconverge_tesla::launch::{
    Compute, Fragment, Geometry, LaneResult, Launch, LaunchError, Outcome, RunError, Setup, Varying, Vertex,
};
use reconverge_tesla::state::Emitted;
use serde::Deserialize;

use crate::array::{Array, Dtype};
use crate::request::{Error, How, TextureValues, lanes, mode};
use crate::result::{Expected, RunResult};
use crate::text::chip_help;
use crate::values::{Files, Values};

/// A launch file for Tesla, and what the command line builds.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct LaunchFile {
    /// `tesla`.
    pub isa: Option<String>,
    /// The program's file.
    pub program: Option<String>,
    /// The program of this name, where the file has several.
    pub kernel: Option<String>,
    /// The chip; G80 when nobody says.
    pub chip: Option<String>,
    /// `compute`, `vertex`, `geometry` or `fragment`, where the program's file does not tell.
    pub stage: Option<String>,
    /// `strict` or `lenient`.
    pub mode: Option<String>,
    /// Instructions a block may issue.
    pub watchdog: Option<u64>,
    /// General registers, instead of what the container tells.
    pub registers: Option<u32>,
    /// Bytes of l[] a thread, likewise.
    pub local_bytes: Option<u32>,
    /// Blocks in x and y; 1 when absent.
    #[serde(default)]
    pub grid: Vec<u32>,
    /// Threads of a block in x, y and z; 1 when absent.
    #[serde(default)]
    pub block: Vec<u32>,
    /// Bytes of dynamic shared memory.
    pub shared: Option<u32>,
    /// Bytes of a pointer in the parameter area, where the container does not tell: 4 (when absent) or 8.
    pub pointer_bytes: Option<u32>,
    /// The parameters, in order.
    #[serde(default)]
    pub param: Vec<ParamValue>,
    /// Contents of constant banks, on top of those in the container.
    #[serde(default)]
    pub constant: Vec<ConstantValues>,
    /// Lanes of a fragment, vertex or geometry program; taken from the first input when absent.
    pub lanes: Option<usize>,
    /// Their inputs.
    #[serde(default)]
    pub input: Vec<InputValues>,
    /// Whether the lanes that a fragment program's last quad lacks run as helpers, for derivatives.
    #[serde(default)]
    pub helpers: bool,
    /// Colours that a fragment program gives, four registers each from $r0 on: 1 to 8, 1 when absent.
    pub colors: Option<u32>,
    /// p[] of a geometry program, by word.
    pub vertices: Option<Values>,
    /// Textures.
    #[serde(default)]
    pub texture: Vec<TextureValues>,
    /// What must come out.
    #[serde(default)]
    pub expect: Vec<Expected>,
    /// Part of the message of the trap that the program must end with, for `check`.
    pub trap: Option<String>,
}

/// A parameter of a kernel: a number, or a buffer whose address is passed.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ParamValue {
    /// Its name; a buffer is an output under this name.
    pub name: String,
    /// A buffer with these contents.
    pub buffer: Option<Values>,
    /// Where the buffer lies, a multiple of 4; chosen when absent.
    pub address: Option<u32>,
    /// One number, or several that stand one after the other.
    pub value: Option<Values>,
    /// First byte in the parameter area; behind the one before, aligned to its size, when absent.
    pub offset: Option<u32>,
}

/// Contents of a constant bank.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ConstantValues {
    /// 0 to 15.
    pub bank: u32,
    /// First byte.
    #[serde(default)]
    pub offset: u32,
    /// The numbers.
    pub values: Values,
}

/// Inputs of a fragment, vertex or geometry program.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct InputValues {
    /// The first word: word n is `v[4n]` or `a[4n]`.
    pub word: u16,
    /// One or more numbers a lane, which fill this word and the following ones; or so many for all lanes.
    pub values: Option<Values>,
    /// Instead, of a fragment program: value at (0, 0), change with x, change with y. Of a perspective attribute the
    /// plane is that of attribute / w, and word 0 that of 1 / w.
    pub plane: Option<[f32; 3]>,
    /// With a plane, what flat interpolation gives: the word of the provoking vertex.
    pub flat: Option<f32>,
}

impl LaunchFile {
    /// The files that the launch names, besides its program.
    pub fn files(&self) -> Vec<String> {
        let params = self.param.iter().flat_map(|param| param.buffer.iter().chain(&param.value));
        let constants = self.constant.iter().map(|constant| &constant.values);
        let inputs = self.input.iter().filter_map(|input| input.values.as_ref());
        let textures = self.texture.iter().map(|texture| &texture.texels);
        let expected = self.expect.iter().map(|expected| &expected.values);
        let all = params.chain(constants).chain(inputs).chain(textures).chain(&self.vertices).chain(expected);
        all.filter_map(Values::file).map(str::to_owned).collect()
    }
}

/// The chip of a name; G80 when there is none.
///
/// # Errors
/// A name of no chip.
pub(crate) fn chip(name: Option<&str>) -> Result<Chip, Error> {
    let Some(name) = name else { return Ok(Chip::G80) };
    Chip::from_name(name).ok_or_else(|| Error::Name {
        place: "chip".to_owned(),
        found: name.to_owned(),
        help: chip_help(reconverge_isa::Isa::Tesla, name),
    })
}

/// The result of a run of the machine, or why there is none.
pub(crate) fn finished(result: Result<Outcome, RunError>) -> Result<Outcome, Error> {
    result.map_err(|error| match error {
        RunError::Launch(error) => impossible(error),
        RunError::Trap(trap) => Error::Trap(trap.to_string()),
        RunError::Differ(difference) => Error::Differ(difference.to_string()),
    })
}

pub(crate) fn impossible(error: LaunchError) -> Error {
    Error::Machine(error.to_string())
}

/// Runs a launch of `program`, which stands in `image`.
///
/// # Errors
/// [`Error::Trap`] is the program's fault, the others are the request's.
pub fn run(
    file: &LaunchFile,
    image: &Image,
    program: &Program,
    how: How,
    files: &dyn Files,
) -> Result<RunResult, Error> {
    let chip = chip(file.chip.as_deref().or(image.chip.as_deref()))?;
    let stage = stage(file, program)?;
    let options = Options {
        mode: mode(file.mode.as_deref())?,
        watchdog: file.watchdog.unwrap_or(Options::default().watchdog),
        engine: how.engine(),
        level: how.level,
        ..Options::default()
    };
    refuse_what_does_not_fit(file, stage)?;
    let mut result = match stage {
        Stage::Compute => run_kernel(file, image, program, chip, &options, files)?,
        Stage::Fragment | Stage::Vertex | Stage::Geometry => {
            run_graphics(file, image, program, chip, stage, &options, files)?
        }
    };
    for expected in &file.expect {
        result.compare(expected, files)?;
    }
    Ok(result)
}

fn stage(file: &LaunchFile, program: &Program) -> Result<Stage, Error> {
    let named = match file.stage.as_deref() {
        None => None,
        Some(name) => Some(Stage::from_name(name).ok_or_else(|| Error::Name {
            place: "stage".to_owned(),
            found: name.to_owned(),
            help: "compute, vertex, geometry or fragment fits here".to_owned(),
        })?),
    };
    let told = program.stage.map(|stage| {
        Stage::of(stage).ok_or_else(|| Error::Machine(format!("{stage} is no program type of tesla")))
    });
    Ok(told.transpose()?.or(named).unwrap_or(Stage::Compute))
}

/// What is said about the other kind of program is a mistake, not something to pass over.
fn refuse_what_does_not_fit(file: &LaunchFile, stage: Stage) -> Result<(), Error> {
    let only = |what: &str, of: &str| {
        Err(Error::Machine(format!("{what}: for {of} programs; this is a {stage} program")))
    };
    if stage == Stage::Compute {
        return match (file.lanes, file.input.is_empty()) {
            (Some(_), _) => only("lanes", "VP, GP and FP"),
            (None, false) => only("input", "VP, GP and FP"),
            (None, true) => Ok(()),
        };
    }
    match (file.grid.is_empty(), file.block.is_empty(), file.param.is_empty()) {
        (false, _, _) => only("grid", "CP"),
        (_, false, _) => only("block", "CP"),
        (_, _, false) => only("param", "CP"),
        (true, true, true) => Ok(()),
    }
}

fn setup(
    file: &LaunchFile,
    image: &Image,
    program: &Program,
    chip: Chip,
    files: &dyn Files,
) -> Result<Setup, Error> {
    let mut setup = Setup::of(program, chip).map_err(impossible)?;
    setup.code_base = program.base;
    setup.registers = file.registers.unwrap_or(setup.registers);
    setup.local_bytes = file.local_bytes.unwrap_or(setup.local_bytes);
    for block in image.constants_of(program) {
        place(&mut setup, block.bank, block.offset, &block.bytes)?;
    }
    for constant in &file.constant {
        let what = format!("constant c{}[{:#x}]", constant.bank, constant.offset);
        let array = constant.values.load_plain(&what, files)?;
        place(&mut setup, constant.bank, constant.offset, &array.bytes)?;
    }
    for texture in &file.texture {
        let (image, sampler) = texture.image(files)?;
        setup.textures.bind(texture.unit, image, sampler);
    }
    Ok(setup)
}

fn place(setup: &mut Setup, bank: u32, offset: u32, bytes: &[u8]) -> Result<(), Error> {
    let fits = setup.constants.place(bank as usize, offset as usize, bytes);
    if fits { Ok(()) } else { Err(impossible(LaunchError::Constants { bank, offset })) }
}

/// One to `N` sizes; missing ones are 1.
fn sizes<const N: usize>(what: &str, list: &[u32]) -> Result<[u32; N], Error> {
    if list.len() > N {
        let (place, wanted) = (what.to_owned(), format!("1 to {N}"));
        return Err(Error::Count { place, found: list.len(), wanted });
    }
    let mut sizes = [1; N];
    sizes[..list.len()].copy_from_slice(list);
    Ok(sizes)
}

// ---- Kernels

/// Where the first buffer lies, unless somebody says; 0 stays an address that no buffer has.
const FIRST_ADDRESS: u32 = 0x1_0000;
/// Buffers start at multiples of this, and at least as much lies between two, so that an access beyond the end of one
/// does not hit the next.
const BUFFER_GAP: u32 = 0x1000;

/// A buffer that is a parameter.
struct Placed {
    name: String,
    address: u32,
    dtype: Dtype,
    shape: Vec<usize>,
    bytes: usize,
}

fn run_kernel(
    file: &LaunchFile,
    image: &Image,
    program: &Program,
    chip: Chip,
    options: &Options,
    files: &dyn Files,
) -> Result<RunResult, Error> {
    let mut compute = Compute::of(program, chip).map_err(impossible)?;
    compute.setup = setup(file, image, program, chip, files)?;
    compute.grid = sizes("grid", &file.grid)?;
    compute.block = sizes("block", &file.block)?;
    compute.dynamic_shared = file.shared.unwrap_or(0);
    let mut next = FIRST_ADDRESS;
    let placed = parameters(file, program, &mut compute, &mut next, files)?;
    let mut globals = Vec::new();
    if let Some(module) = image.module_of(program) {
        globals = compute.load_module(module, next).map_err(impossible)?;
    }
    let launch = Launch::Compute(compute);
    let outcome = finished(reconverge_tesla::run::run(launch, program, options))?;
    let missing = |name: &str| Error::Machine(format!("buffer {name} is gone"));
    let mut outputs = Vec::new();
    for Placed { name, address, dtype, shape, bytes } in placed {
        let found = outcome.memory.bytes(address, bytes).ok_or_else(|| missing(&name))?;
        outputs.push((name, Array { dtype, shape, bytes: found.to_vec() }));
    }
    for (name, address) in globals {
        let buffer = outcome.memory.at(address).ok_or_else(|| missing(&name))?;
        let dtype = if buffer.bytes.len().is_multiple_of(4) { Dtype::U32 } else { Dtype::U8 };
        let shape = vec![buffer.bytes.len() / dtype.bytes()];
        outputs.push((name, Array { dtype, shape, bytes: buffer.bytes.clone() }));
    }
    let (statistics, report) = (outcome.statistics, outcome.report);
    Ok(RunResult { outputs, statistics, report, mismatches: Vec::new() })
}

/// Lays out the parameter area and the buffers whose addresses stand in it.
fn parameters(
    file: &LaunchFile,
    program: &Program,
    compute: &mut Compute,
    next: &mut u32,
    files: &dyn Files,
) -> Result<Vec<Placed>, Error> {
    let declared = declared(file, program)?;
    let mut placed: Vec<Placed> = Vec::new();
    let mut area: Vec<u8> = Vec::new();
    let mut buffers = Vec::new();
    for (number, param) in file.param.iter().enumerate() {
        let what = format!("param {}", param.name);
        let declared = declared.get(number);
        let (bytes, align) = match (&param.buffer, &param.value) {
            (Some(values), None) => {
                let array = values.load_plain(&what, files)?;
                let address = param.address.unwrap_or(*next);
                if placed.iter().any(|other| other.name == param.name) {
                    return Err(Error::Machine(format!("{what}: there are two buffers of this name")));
                }
                let end = u64::from(address) + array.bytes.len() as u64 + u64::from(BUFFER_GAP);
                let end = u32::try_from(end.next_multiple_of(BUFFER_GAP.into()))
                    .map_err(|_| impossible(LaunchError::Memory(LayoutError::Beyond(address))))?;
                *next = end.max(*next);
                let size = match declared.map_or(file.pointer_bytes.unwrap_or(4), |declared| declared.bytes) {
                    size @ (4 | 8) => size as usize,
                    other => {
                        return Err(Error::Machine(format!(
                            "{what}: a pointer of {other} bytes; 4 or 8 fits here"
                        )));
                    }
                };
                placed.push(Placed {
                    name: param.name.clone(),
                    address,
                    dtype: array.dtype,
                    shape: array.shape,
                    bytes: array.bytes.len(),
                });
                buffers.push(Buffer { address, bytes: array.bytes });
                (u64::from(address).to_le_bytes()[..size].to_vec(), size)
            }
            (None, Some(values)) => number_bytes(&what, values, declared, files)?,
            _ => {
                let text = format!("{what}: give either a buffer or a value");
                return Err(Error::Machine(text));
            }
        };
        let offset = match (declared, param.offset) {
            (Some(declared), None) => declared.offset as usize,
            (_, Some(offset)) => offset as usize,
            (None, None) => area.len().next_multiple_of(align),
        };
        // s[] has 16 KiB; what cannot fit is refused before anything of its size is made.
        if offset + bytes.len() > reconverge_tesla::launch::MOST_SHARED as usize {
            return Err(impossible(LaunchError::SharedBytes((offset + bytes.len()) as u64)));
        }
        area.resize(area.len().max(offset + bytes.len()), 0);
        area[offset..offset + bytes.len()].copy_from_slice(&bytes);
    }
    compute.memory = Memory::new(buffers).map_err(|error| impossible(LaunchError::Memory(error)))?;
    compute.params = area;
    Ok(placed)
}

/// The parameters that the container declares, if it does; their number must be right.
fn declared<'a>(file: &LaunchFile, program: &'a Program) -> Result<&'a [Param], Error> {
    let declared = &program.params[..];
    let placed_by_hand = file.param.iter().any(|param| param.offset.is_some());
    if declared.is_empty() || placed_by_hand || declared.len() == file.param.len() {
        return Ok(if placed_by_hand { &[] } else { declared });
    }
    let list: Vec<String> = declared
        .iter()
        .map(|param| {
            let name = param.name.as_deref().map(|name| format!("{name}: ")).unwrap_or_default();
            format!("{name}{} bytes at {:#x}", param.bytes, param.offset)
        })
        .collect();
    let kernel = program.name.as_deref().unwrap_or("the kernel");
    let takes = match declared.len() {
        1 => "1 parameter".to_owned(),
        count => format!("{count} parameters"),
    };
    let given = match file.param.len() {
        1 => "1 parameter was".to_owned(),
        count => format!("{count} parameters were"),
    };
    let list = list.join(", ");
    Err(Error::Machine(format!(
        "{kernel} takes {takes} ({list}), and {given} given, by --buf and --arg in their order"
    )))
}

/// The bytes of a number or of several, and their alignment. A number without a stated type takes the size that the
/// container declares.
fn number_bytes(
    what: &str,
    values: &Values,
    declared: Option<&Param>,
    files: &dyn Files,
) -> Result<(Vec<u8>, usize), Error> {
    let array = values.load_plain(what, files)?;
    let Some(declared) = declared else { return Ok((array.bytes, array.dtype.bytes())) };
    if array.bytes.len() == declared.bytes as usize {
        return Ok((array.bytes, array.dtype.bytes()));
    }
    let fitting = match (declared.bytes, array.dtype.is_float()) {
        (8, true) => &[Dtype::F64][..],
        (1, false) => &[Dtype::U8, Dtype::I8],
        (2, false) => &[Dtype::U16, Dtype::I16],
        (4, false) => &[Dtype::U32, Dtype::I32],
        (8, false) => &[Dtype::U64, Dtype::I64],
        _ => &[],
    };
    let fitting = if array.len() == 1 { fitting } else { &[] };
    // Again from the source: what 32 bits cannot hold may fit the declared size.
    let found = fitting.iter().find_map(|dtype| values.load_as(what, *dtype, files).ok());
    let array = found.ok_or_else(|| {
        let (found, wanted) = (array.bytes.len(), declared.bytes);
        Error::Machine(format!("{what}: a value of {found} bytes; the kernel declares {wanted}"))
    })?;
    Ok((array.bytes, declared.bytes as usize))
}

// ---- Fragments, vertices, primitives

fn run_graphics(
    file: &LaunchFile,
    image: &Image,
    program: &Program,
    chip: Chip,
    stage: Stage,
    options: &Options,
    files: &dyn Files,
) -> Result<RunResult, Error> {
    let setup = setup(file, image, program, chip, files)?;
    if !(1..=8).contains(&file.colors.unwrap_or(1)) {
        let found = file.colors.unwrap_or(1).to_string();
        return Err(Error::Name { place: "colors".to_owned(), found, help: "1 to 8 fits here".to_owned() });
    }
    let mut loaded: Vec<(u16, Array)> = Vec::new();
    let mut planes = Vec::new();
    for InputValues { word, values, plane, flat } in &file.input {
        let what = format!("input {word}");
        match (values, plane, stage) {
            (Some(values), None, _) if flat.is_none() => {
                loaded.push((*word, values.load_plain(&what, files)?))
            }
            (None, Some([base, dx, dy]), Stage::Fragment) => {
                let flat = flat.unwrap_or(*base).to_bits();
                planes.push((*word, Varying::Plane { base: *base, dx: *dx, dy: *dy, flat }));
            }
            (None, Some(_), _) => return Err(Error::Machine(format!("{what}: planes are for FP programs"))),
            _ => {
                return Err(Error::Machine(format!(
                    "{what}: give either values, or a plane and what is flat"
                )));
            }
        }
    }
    let lanes = lanes(file.lanes, loaded.iter().map(|(_, array)| array))?;
    let mut words: Vec<(u16, Vec<u32>)> = Vec::new();
    for (word, array) in &loaded {
        words.extend(columns(*word, array, lanes)?);
    }
    let launch = match stage {
        Stage::Fragment => {
            let mut fragment = Fragment::new(setup, lanes);
            fragment.varyings =
                words.into_iter().map(|(slot, values)| (slot, Varying::Lanes(values))).collect();
            fragment.varyings.extend(planes);
            Launch::Fragment(fragment)
        }
        Stage::Geometry => {
            let vertices = match &file.vertices {
                None => Vec::new(),
                Some(values) => values.load_plain("vertices", files)?.words().collect(),
            };
            Launch::Geometry(Geometry { setup, lanes, inputs: words.into_iter().collect(), vertices })
        }
        Stage::Vertex | Stage::Compute => {
            Launch::Vertex(Vertex { setup, lanes, inputs: words.into_iter().collect() })
        }
    };
    let outcome = finished(reconverge_tesla::run::run(launch, program, options))?;
    let mut outputs = Vec::new();
    let word = |words: &[u32], number: usize| words.get(number).copied().unwrap_or(0);
    match stage {
        Stage::Fragment => {
            for target in 0..file.colors.unwrap_or(1) as usize {
                let words = outcome.lanes.iter().flat_map(|lane| {
                    (4 * target..4 * target + 4).map(|number| word(&lane.registers, number))
                });
                let array = Array::from_words(Dtype::F32, vec![lanes, 4], words);
                outputs.push((format!("color{target}"), array));
            }
            if outcome.lanes.iter().any(|lane| lane.dead) {
                let bytes = outcome.lanes.iter().map(|lane| u8::from(lane.dead)).collect();
                outputs.push(("killed".to_owned(), Array { dtype: Dtype::U8, shape: vec![lanes], bytes }));
            }
        }
        Stage::Vertex | Stage::Compute => {
            let count = outcome.lanes.iter().map(|lane| lane.outputs.len()).max().unwrap_or(0);
            let words =
                outcome.lanes.iter().flat_map(|lane| (0..count).map(|number| word(&lane.outputs, number)));
            outputs.push(("outputs".to_owned(), Array::from_words(Dtype::F32, vec![lanes, count], words)));
        }
        Stage::Geometry => {
            let vertices = |lane: &LaneResult| {
                let vertex = |emitted: &Emitted| match emitted {
                    Emitted::Vertex(words) => Some(words.clone()),
                    Emitted::Restart => None,
                };
                lane.emitted.iter().filter_map(vertex).collect::<Vec<_>>()
            };
            let each: Vec<Vec<Vec<u32>>> = outcome.lanes.iter().map(vertices).collect();
            let all = || each.iter().flatten();
            let count = all().map(Vec::len).max().unwrap_or(0);
            let words = all().flat_map(|vertex| (0..count).map(|number| word(vertex, number)));
            outputs.push((
                "emitted".to_owned(),
                Array::from_words(Dtype::F32, vec![all().count(), count], words),
            ));
            let per_lane = each.iter().map(|vertices| vertices.len() as u32);
            outputs
                .push(("emitted_per_lane".to_owned(), Array::from_words(Dtype::U32, vec![lanes], per_lane)));
        }
    }
    let (statistics, report) = (outcome.statistics, outcome.report);
    Ok(RunResult { outputs, statistics, report, mismatches: Vec::new() })
}

/// The words of an input, one column a word: values a lane, or values for all lanes.
fn columns(first: u16, array: &Array, lanes: usize) -> Result<Vec<(u16, Vec<u32>)>, Error> {
    let wanted = || Error::Count {
        place: format!("input {first}"),
        found: array.len(),
        wanted: format!("numbers of 32 bits, as many for each of {lanes} lanes,"),
    };
    if array.dtype.bytes() != 4 {
        return Err(wanted());
    }
    let words: Vec<u32> = array.words().collect();
    let each = match array.shape[..] {
        [_] if words.len() == lanes => 1,
        [rows, ..] if rows == lanes && lanes > 0 => words.len() / lanes,
        // The same for all lanes.
        [_] => 0,
        _ => return Err(wanted()),
    };
    let columns = if each == 0 { words.len() } else { each };
    (0..columns)
        .map(|column| {
            let number =
                u16::try_from(column).ok().and_then(|column| first.checked_add(column)).ok_or_else(wanted)?;
            let values = (0..lanes).map(|lane| words[each * lane + column]).collect();
            Ok((number, values))
        })
        .collect()
}
