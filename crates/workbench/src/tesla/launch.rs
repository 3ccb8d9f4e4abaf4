//! Launches of Tesla: the fields of a launch file, and the run that they describe.
//!
//! A kernel runs over a grid of blocks with parameters, most of which are the addresses of buffers; a fragment,
//! vertex or geometry program runs over lanes with inputs.

use std::ops::Range;
use std::sync::Arc;

use reconverge_isa::program::Param;
use reconverge_isa::source::parse_number;
use reconverge_isa::{Isa, Program};
use reconverge_simt::fidelity::Report;
use reconverge_simt::memory::{Buffer, LayoutError, Memory};
use reconverge_simt::observe::Dynamic;
use reconverge_simt::{Engine, Event, FlowView, Lane, Machine, Options, Shares, Statistics, Step};
use reconverge_tesla::flow::WARP;
use reconverge_tesla::inst::{Chip, Stage};
pub use reconverge_tesla::launch::MOST_LOCAL;
use reconverge_tesla::launch::{
    self as machine, Compute, Fragment, Geometry, LaneResult, LaunchError, Setup, Varying, Vertex,
};
use reconverge_tesla::run::{Run, run, run_observed};
use reconverge_tesla::state::{Emitted, Warp};
use reconverge_tesla::trap::{Cause, Space as MemorySpace};
use serde::Deserialize;

use crate::array::{Array, Dtype};
use crate::launch::{MachineLaunch, Request};
use crate::request::{Error, assignment, killed, lanes, number};
use crate::session::{Outcome, Ready, Register, RegisterClass, Session, Space, SpaceOf, Steps, replace};
use crate::tesla::names::{ParamType, demangled, params_of_mangled};
use crate::trace::{Recorded, Sink, observed};
use crate::trapped::{self, Access, Trapped};
use crate::values::{Files, Loaded, Stated, Values};

/// The fields of a launch file that only Tesla has.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Launch {
    /// General registers, instead of what the container states.
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
    /// Runs blocks that no multiprocessor of the chip can hold, too.
    #[serde(default)]
    pub oversized: bool,
    /// Bytes of a pointer in the parameter area, where the container does not state them: 4 (when absent) or 8.
    pub pointer_bytes: Option<u32>,
    /// The parameters, in order.
    #[serde(default)]
    pub param: Vec<ParamValue>,
    /// Buffers in global memory that are no parameters.
    #[serde(default)]
    pub buffer: Vec<BufferValues>,
    /// Contents of constant banks, on top of those in the container.
    #[serde(default)]
    pub constant: Vec<ConstantValues>,
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
    /// One number, or several, one after the other.
    pub value: Option<Values>,
    /// First byte in the parameter area; behind the one before, aligned to its size, when absent.
    pub offset: Option<u32>,
}

/// A buffer in global memory.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct BufferValues {
    /// The output of this name.
    pub name: String,
    /// Where it lies, a multiple of 4.
    pub address: u32,
    /// Its contents.
    pub values: Values,
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

impl MachineLaunch for Launch {
    fn copy(&self) -> Arc<dyn MachineLaunch> {
        Arc::new(self.clone())
    }

    fn set(&mut self, option: &str, text: &str) -> Result<(), Error> {
        let wrong = |why: String| Error::Machine(format!("--{option} {text}: {why}"));
        match option {
            "grid" => self.grid = crate::request::sizes(text)?,
            "block" => self.block = crate::request::sizes(text)?,
            "shared" => self.shared = Some(number(option, text)?),
            "pointer-bytes" => self.pointer_bytes = Some(number(option, text)?),
            // Buffers and numbers are parameters in the order in which they are given.
            "buf" | "arg" => {
                let (name, values) = assignment(option, text)?;
                let (name, values) = (name.to_owned(), Some(Values::Text(values.to_owned())));
                self.param.push(match option {
                    "buf" => ParamValue { name, buffer: values, ..ParamValue::default() },
                    _ => ParamValue { name, value: values, ..ParamValue::default() },
                });
            }
            "const" => {
                let (name, values) = assignment(option, text)?;
                let form = || wrong("c1=VALUES or c1[0x10]=VALUES is the form".to_owned());
                let (bank, offset) = match name.strip_prefix('c').ok_or_else(form)?.split_once('[') {
                    None => (name[1..].parse().map_err(|_| form())?, 0),
                    Some((bank, offset)) => {
                        let offset = offset.strip_suffix(']').and_then(parse_number);
                        let offset = offset.and_then(|offset| u32::try_from(offset).ok());
                        (bank.parse().map_err(|_| form())?, offset.ok_or_else(form)?)
                    }
                };
                self.constant.push(ConstantValues { bank, offset, values: Values::Text(values.to_owned()) });
            }
            "input" => {
                let (name, values) = assignment(option, text)?;
                let word = name.strip_prefix(['v', 'a']).and_then(|digits| digits.parse().ok());
                let word = word.ok_or_else(|| {
                    wrong(format!("`{name}` is not an input; v4 fits here, which is v[0x10] and following"))
                })?;
                let values = Some(Values::Text(values.to_owned()));
                self.input.push(InputValues { word, values, ..InputValues::default() });
            }
            _ => return Err(Error::Option { option: option.to_owned(), isa: Isa::Tesla }),
        }
        Ok(())
    }

    fn prepare(&self, request: &Request<'_>) -> Result<Session, Error> {
        let stage = stage(request)?;
        refuse_what_does_not_fit(self, request.common.lanes, stage)?;
        let (launch, outputs) = match stage {
            Stage::Compute => {
                let (compute, outputs) = self.kernel(request)?;
                (machine::Launch::Compute(compute), outputs)
            }
            Stage::Fragment | Stage::Vertex | Stage::Geometry => self.graphics(request, stage)?,
        };
        Ok(Session::new(Grid { program: request.program.clone(), launch, outputs }))
    }
}

/// The program type: what the program's file states, then the launch.
fn stage(request: &Request<'_>) -> Result<Stage, Error> {
    let named = match request.common.stage.as_deref() {
        None => None,
        Some(name) => Some(Stage::from_name(name).ok_or_else(|| Error::Name {
            place: "stage".to_owned(),
            found: name.to_owned(),
            help: "compute, vertex, geometry or fragment fits here".to_owned(),
        })?),
    };
    let stated = request.program.stage.map(|stage| {
        Stage::of(stage).ok_or_else(|| Error::Machine(format!("{stage} is no program type of tesla")))
    });
    Ok(stated.transpose()?.or(named).unwrap_or(Stage::Compute))
}

/// Refuses fields that belong to the other kind of program.
fn refuse_what_does_not_fit(file: &Launch, lanes: Option<usize>, stage: Stage) -> Result<(), Error> {
    let only = |what: &str, of: &str| {
        Err(Error::Machine(format!("{what}: for {of} programs; this is a {stage} program")))
    };
    if stage == Stage::Compute {
        return match (lanes, file.input.is_empty()) {
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

impl Launch {
    fn setup(&self, request: &Request<'_>) -> Result<Setup, Error> {
        let Request { common, image, program, files } = *request;
        let chip = request.chip().and_then(Chip::from_name).unwrap_or(Chip::G80);
        let mut setup = Setup::of(program, chip).map_err(impossible)?;
        setup.code_base = program.base;
        setup.registers = self.registers.unwrap_or(setup.registers);
        setup.local_bytes = self.local_bytes.unwrap_or(setup.local_bytes);
        for block in image.constants_of(program) {
            place_constants(&mut setup, block.bank, block.offset, &block.bytes)?;
        }
        for texture in &common.texture {
            let (image, sampler) = texture.image(files)?;
            setup.textures.bind(texture.unit, image, sampler);
        }
        Ok(setup)
    }

    /// Places the launch's own constants, on top of those in the container.
    fn own_constants(&self, setup: &mut Setup, files: &dyn Files) -> Result<(), Error> {
        for constant in &self.constant {
            let what = format!("constant c{}[{:#x}]", constant.bank, constant.offset);
            let array = constant.values.load_plain(&what, files)?;
            place_constants(setup, constant.bank, constant.offset, &array.bytes)?;
        }
        Ok(())
    }
}

fn place_constants(setup: &mut Setup, bank: u32, offset: u32, bytes: &[u8]) -> Result<(), Error> {
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

/// Threads of a block, at most. (CUDA C Programming Guide 3.1, G.1)
const MOST_THREADS: u64 = 512;

/// Refuses a block that no multiprocessor of the chip can hold. (CUDA C Programming Guide 3.1, G.1 and 4.2: 8192
/// registers up to compute capability 1.1, 16384 from 1.2 on; a block gets them for an even number of warps, in steps
/// of 256 or 512.)
fn fits_the_chip(chip: Chip, block: [u32; 3], registers: Option<u32>) -> Result<(), Error> {
    let threads: u64 = block.iter().map(|side| u64::from(*side)).product();
    if threads > MOST_THREADS {
        let [x, y, z] = block;
        return Err(Error::Machine(format!(
            "block: {x} x {y} x {z} is {threads} threads; a block has at most {MOST_THREADS} on {chip} \
             (oversized = true in a launch file runs it all the same)"
        )));
    }
    let (all, step) = match chip {
        Chip::G80 | Chip::G84 => (8192, 256),
        Chip::G200 | Chip::Mcp77 | Chip::Gt215 => (16384, 512),
    };
    let warps = threads.div_ceil(WARP as u64).next_multiple_of(2);
    let Some(each) = registers else { return Ok(()) };
    let needed = (warps * WARP as u64 * u64::from(each)).next_multiple_of(step);
    match needed > all {
        true => Err(Error::Machine(format!(
            "block: {threads} threads of {each} registers need {needed}; a multiprocessor of {chip} has {all}"
        ))),
        false => Ok(()),
    }
}

/// Where the first buffer lies by default; 0 stays an address that no buffer has.
const FIRST_ADDRESS: u32 = 0x1_0000;
/// Buffers start at multiples of this, and at least as much lies between two, so that an access beyond the end of one
/// does not hit the next.
const BUFFER_GAP: u32 = 0x1000;

/// A buffer that is an output.
#[derive(Clone, Debug)]
struct Placed {
    name: String,
    address: u32,
    dtype: Dtype,
    shape: Vec<usize>,
    bytes: usize,
}

impl Placed {
    fn new(name: &str, address: u32, array: &Array) -> Placed {
        let (name, shape, bytes) = (name.to_owned(), array.shape.clone(), array.bytes.len());
        Placed { name, address, dtype: array.dtype, shape, bytes }
    }
}

impl Launch {
    /// A kernel with its memory, and the buffers that are outputs.
    fn kernel(&self, request: &Request<'_>) -> Result<(Compute, Outputs), Error> {
        let Request { image, program, files, .. } = *request;
        let setup = self.setup(request)?;
        let mut compute = Compute::of(program, setup.chip).map_err(impossible)?;
        compute.setup = setup;
        compute.grid = sizes("grid", &self.grid)?;
        compute.block = sizes("block", &self.block)?;
        compute.dynamic_shared = self.shared.unwrap_or(0);
        // Without a chip, G80 stands for any.
        let stated = request.chip().and(self.registers.or(program.resources.registers));
        if !self.oversized {
            fits_the_chip(compute.setup.chip, compute.block, stated)?;
        }
        let mut next = FIRST_ADDRESS;
        let pointer = image.module_of(program).and_then(|module| module.pointer_bytes);
        let mut placed = parameters(self, program, pointer, &mut compute, &mut next, files)?;
        if let Some(module) = image.module_of(program) {
            for (name, address) in compute.load_module(module, next).map_err(impossible)? {
                let bytes = compute.memory.at(address).map_or(0, |buffer| buffer.bytes.len());
                let dtype = if bytes.is_multiple_of(4) { Dtype::U32 } else { Dtype::U8 };
                placed.push(Placed { name, address, dtype, shape: vec![bytes / dtype.bytes()], bytes });
            }
        }
        self.own_constants(&mut compute.setup, files)?;
        Ok((compute, Outputs::Buffers(placed)))
    }
}

/// Lays out the parameter area and the buffers whose addresses are in it.
fn parameters(
    file: &Launch,
    program: &Program,
    pointer: Option<u32>,
    compute: &mut Compute,
    next: &mut u32,
    files: &dyn Files,
) -> Result<Vec<Placed>, Error> {
    let declared = declared(file, program)?;
    let types = types_of(file, program)?;
    let mut placed: Vec<Placed> = Vec::new();
    let mut area: Vec<u8> = Vec::new();
    let mut buffers = Vec::new();
    for buffer in &file.buffer {
        let what = format!("buffer {}", buffer.name);
        let array = buffer.values.load_plain(&what, files)?;
        placed.push(place(&what, &buffer.name, buffer.address, array, next, &placed, &mut buffers)?);
    }
    for (number, param) in file.param.iter().enumerate() {
        let what = format!("param {}", param.name);
        let declared = declared.get(number);
        let typed = types.as_ref().map(|types| Typed { what: &what, is: types[number] });
        let (bytes, align) = match (&param.buffer, &param.value) {
            (Some(values), None) => {
                let array = match &typed {
                    Some(typed) => typed.buffer(values, files)?,
                    None => values.load_plain(&what, files)?,
                };
                let address = param.address.unwrap_or(*next);
                let pointer = file.pointer_bytes.or(pointer).unwrap_or(4);
                let size = match declared.map_or(pointer, |declared| declared.bytes) {
                    size @ (4 | 8) => size as usize,
                    other => {
                        return Err(Error::Machine(format!(
                            "{what}: a pointer of {other} bytes; 4 or 8 fits here"
                        )));
                    }
                };
                placed.push(place(&what, &param.name, address, array, next, &placed, &mut buffers)?);
                (u64::from(address).to_le_bytes()[..size].to_vec(), size)
            }
            (None, Some(values)) => {
                let number = match &typed {
                    Some(typed) => {
                        let pointer = file.pointer_bytes.unwrap_or(4);
                        let bytes = declared.map_or(pointer, |declared| declared.bytes);
                        typed.number(values, bytes as usize, files)?
                    }
                    None => None,
                };
                match number {
                    Some(array) => sized(&what, array, declared)?,
                    None => number_bytes(&what, values, declared, files)?,
                }
            }
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

/// Lays out a buffer; `next` is where the one after it may lie.
fn place(
    what: &str,
    name: &str,
    address: u32,
    array: Array,
    next: &mut u32,
    placed: &[Placed],
    buffers: &mut Vec<Buffer>,
) -> Result<Placed, Error> {
    if placed.iter().any(|other| other.name == name) {
        return Err(Error::Machine(format!("{what}: there are two buffers of this name")));
    }
    let end = u64::from(address) + array.bytes.len() as u64 + u64::from(BUFFER_GAP);
    let end = u32::try_from(end.next_multiple_of(BUFFER_GAP.into()))
        .map_err(|_| impossible(LaunchError::Memory(LayoutError::Beyond(address))))?;
    *next = end.max(*next);
    let output = Placed::new(name, address, &array);
    buffers.push(Buffer { address, bytes: array.bytes });
    Ok(output)
}

/// The parameters that the container declares, if it does; their number must be right.
fn declared<'a>(file: &Launch, program: &'a Program) -> Result<&'a [Param], Error> {
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
    let Loaded { array, stated, .. } = values.load(what, files)?;
    if stated != Stated::Not {
        return sized(what, array, declared);
    }
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

/// The bytes of numbers whose type is decided, and their alignment.
fn sized(what: &str, array: Array, declared: Option<&Param>) -> Result<(Vec<u8>, usize), Error> {
    match declared {
        Some(declared) if array.bytes.len() != declared.bytes as usize => {
            let (found, wanted) = (array.bytes.len(), declared.bytes);
            Err(Error::Machine(format!(
                "{what}: a value of {found} bytes ({}); the kernel declares {wanted}",
                array.dtype
            )))
        }
        _ => Ok((array.bytes, array.dtype.bytes())),
    }
}

/// The types of the parameters that the kernel's mangled name states, as many as are given.
///
/// # Errors
/// The name has another number of parameters.
fn types_of(file: &Launch, program: &Program) -> Result<Option<Vec<ParamType>>, Error> {
    // Parameters that are placed by hand need not be in order.
    let by_hand = file.param.iter().any(|param| param.offset.is_some());
    let name = program.name.as_deref().filter(|_| !by_hand);
    let Some((name, types)) = name.and_then(|name| Some((name, params_of_mangled(name)?))) else {
        return Ok(None);
    };
    if types.len() == file.param.len() {
        return Ok(Some(types));
    }
    let (name, given) = (demangled(name).unwrap_or_default(), file.param.len());
    let takes =
        if types.len() == 1 { "1 parameter".to_owned() } else { format!("{} parameters", types.len()) };
    Err(Error::Machine(format!("{name} takes {takes}, and {given} given, by --buf and --arg in their order")))
}

/// A parameter whose type the kernel's name states.
struct Typed<'a> {
    what: &'a str,
    is: ParamType,
}

impl Typed<'_> {
    fn refused(&self, found: &str, remedy: &str) -> Error {
        Error::Machine(format!(
            "{}: {found}, but the kernel's name says {}: {remedy}",
            self.what,
            Spelled(self.is)
        ))
    }

    /// The contents of a buffer.
    fn buffer(&self, values: &Values, files: &dyn Files) -> Result<Array, Error> {
        let element = match self.is {
            ParamType::Pointer(Some(element)) => element,
            // `unsigned long` is a pointer's number on the host.
            ParamType::Pointer(None) | ParamType::Unknown => return Ok(values.load_plain(self.what, files)?),
            _ => return Err(self.refused("a buffer", "give a number with --arg")),
        };
        let Loaded { array, stated, flat } = values.load(self.what, files)?;
        let raw = stated == Stated::Not && flat;
        let same = array.dtype.bytes() == element.bytes() && array.dtype.is_float() == element.is_float();
        match stated {
            Stated::Not if !raw => {
                files.typed(self.what, element);
                Ok(values.load_as(self.what, element, files)?)
            }
            _ if raw || stated == Stated::Bits || same => Ok(array),
            _ => {
                let remedy = format!("give numbers of {element}, for instance with :{element} behind them");
                Err(self.refused(&format!("numbers of {}", array.dtype), &remedy))
            }
        }
    }

    /// A number, or the components of a vector; `None` where the type does not decide it. `bytes` is the size that the
    /// container declares, or that of a pointer.
    fn number(&self, values: &Values, bytes: usize, files: &dyn Files) -> Result<Option<Array>, Error> {
        let (element, count) = match self.is {
            ParamType::Scalar(element) => (element, 1),
            ParamType::Vector(element, count) => (element, count),
            ParamType::Long { signed } => match Dtype::integer(bytes, signed) {
                Some(element) => (element, 1),
                None => return Ok(None),
            },
            ParamType::Pointer(_) => match Dtype::integer(bytes, false) {
                Some(element) => (element, 1),
                None => return Ok(None),
            },
            ParamType::Unknown => return Ok(None),
        };
        let Loaded { array, stated, .. } = values.load(self.what, files)?;
        if array.len() != count {
            let found = format!("{} numbers", array.len());
            return Err(self.refused(&found, &format!("give {count}")));
        }
        let same = array.dtype.bytes() == element.bytes() && array.dtype.is_float() == element.is_float();
        match stated {
            Stated::Not => {
                let converted = array.convert(element).map_err(|error| {
                    self.refused(&error.to_string(), &format!("give numbers that {element} can hold"))
                })?;
                Ok(Some(converted))
            }
            Stated::Bits => Ok(Some(array)),
            Stated::File | Stated::Request if same => Ok(Some(array)),
            Stated::File | Stated::Request => {
                let found = format!("a number of {}", array.dtype);
                Err(self.refused(&found, &format!("leave the type out, or say :{element}")))
            }
        }
    }
}

/// A parameter's type as C++ spells it.
struct Spelled(ParamType);

impl std::fmt::Display for Spelled {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self.0 {
            ParamType::Pointer(None) => f.write_str("a pointer"),
            ParamType::Pointer(Some(element)) => write!(f, "a pointer to {element}"),
            ParamType::Scalar(element) => write!(f, "{element}"),
            ParamType::Long { signed: true } => f.write_str("long"),
            ParamType::Long { signed: false } => f.write_str("unsigned long"),
            ParamType::Vector(element, count) => write!(f, "{count} numbers of {element}"),
            ParamType::Unknown => f.write_str("a structure"),
        }
    }
}

// ---- Fragments, vertices, primitives

impl Launch {
    /// Fragments, vertices or primitives, and what is read of their lanes.
    fn graphics(&self, request: &Request<'_>, stage: Stage) -> Result<(machine::Launch, Outputs), Error> {
        let Request { common, files, .. } = *request;
        let mut setup = self.setup(request)?;
        self.own_constants(&mut setup, files)?;
        let colors = self.colors.unwrap_or(1);
        if !(1..=8).contains(&colors) {
            let (place, help) = ("colors".to_owned(), "1 to 8 fits here".to_owned());
            return Err(Error::Name { place, found: colors.to_string(), help });
        }
        let mut loaded: Vec<(u16, String, Loaded)> = Vec::new();
        let mut planes = Vec::new();
        for InputValues { word, values, plane, flat } in &self.input {
            let what = format!("input {word}");
            match (values, plane, stage) {
                (Some(values), None, _) if flat.is_none() => {
                    // The inputs of a geometry program are addresses in p[].
                    let values = match stage {
                        Stage::Geometry => {
                            let array = values.load_plain(&what, files)?;
                            Loaded { array, stated: Stated::Request, flat: false }
                        }
                        _ => values.load_float(&what, true, files)?,
                    };
                    loaded.push((*word, what, values));
                }
                (None, Some([base, dx, dy]), Stage::Fragment) => {
                    let flat = flat.unwrap_or(*base).to_bits();
                    planes.push((*word, Varying::Plane { base: *base, dx: *dx, dy: *dy, flat }));
                }
                (None, Some(_), _) => {
                    return Err(Error::Machine(format!("{what}: planes are for FP programs")));
                }
                _ => {
                    return Err(Error::Machine(format!(
                        "{what}: give either values, or a plane and what is flat"
                    )));
                }
            }
        }
        let lanes = lanes(common.lanes, loaded.iter().map(|(_, place, values)| (&place[..], values)))?;
        let mut words: Vec<(u16, Vec<u32>)> = Vec::new();
        for (word, _, values) in &loaded {
            words.extend(columns(*word, values, lanes)?);
        }
        let launch = match stage {
            Stage::Fragment => {
                let mut fragment = Fragment::new(setup, lanes);
                fragment.helpers = self.helpers;
                fragment.varyings =
                    words.into_iter().map(|(slot, values)| (slot, Varying::Lanes(values))).collect();
                fragment.varyings.extend(planes);
                machine::Launch::Fragment(fragment)
            }
            Stage::Geometry => {
                let vertices = match &self.vertices {
                    None => Vec::new(),
                    Some(values) => values.load_float("vertices", true, files)?.array.words().collect(),
                };
                machine::Launch::Geometry(Geometry {
                    setup,
                    lanes,
                    inputs: words.into_iter().collect(),
                    vertices,
                })
            }
            Stage::Vertex | Stage::Compute => {
                machine::Launch::Vertex(Vertex { setup, lanes, inputs: words.into_iter().collect() })
            }
        };
        Ok((launch, Outputs::Lanes { stage, colors: colors as usize }))
    }
}

/// The words of an input, one column a word: values a lane, or values for all lanes. A row is a lane's, and one row is for
/// all lanes; of numbers without rows, each lane has one, or all lanes have all up to four. Files without rows are
/// divided among the lanes.
fn columns(first: u16, loaded: &Loaded, lanes: usize) -> Result<Vec<(u16, Vec<u32>)>, Error> {
    let Loaded { array, flat, .. } = loaded;
    let wanted = || Error::Count {
        place: format!("input {first}"),
        found: array.len(),
        wanted: format!("{lanes} rows of 32-bit numbers, one row for all lanes, or {lanes} numbers"),
    };
    if array.dtype.bytes() != 4 {
        return Err(wanted());
    }
    let words: Vec<u32> = array.words().collect();
    let each = match array.shape[..] {
        [_] if *flat && words.len().is_multiple_of(lanes) => words.len() / lanes,
        [_] if words.len() == lanes => 1,
        [rows, ..] if array.shape.len() > 1 && rows == lanes => words.len() / lanes,
        // For all lanes alike.
        [1, _] => 0,
        [_] if words.len() <= 4 => 0,
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

// ---- Running

/// Which outputs a run has.
#[derive(Clone, Debug)]
enum Outputs {
    /// Of a kernel.
    Buffers(Vec<Placed>),
    /// Of the other programs; `colors` of a fragment program.
    Lanes { stage: Stage, colors: usize },
}

/// A grid, or lanes of another program type.
#[derive(Clone, Debug)]
pub struct Grid {
    /// The program.
    pub program: Program,
    /// The launch.
    pub launch: machine::Launch,
    outputs: Outputs,
}

fn impossible(error: LaunchError) -> Error {
    Error::Machine(error.to_string())
}

impl trapped::Cause for Cause {
    fn access(&self) -> Option<Access> {
        let Cause::Memory { space, address, bytes, .. } = self else { return None };
        let space = match space {
            MemorySpace::Shared => "s",
            MemorySpace::Local => "l",
            // All of memory, which other segments are windows of.
            MemorySpace::Global(14) => "g",
            _ => return None,
        };
        Some(Access { space, address: *address, bytes: *bytes })
    }
}

impl Ready for Grid {
    fn copy(&self) -> Box<dyn Ready> {
        Box::new(self.clone())
    }

    fn run(self: Box<Self>, options: &Options) -> Result<Box<dyn Outcome>, Error> {
        let (mut shares, Grid { program, launch, outputs }) = (Shares::default(), *self);
        let outcome = match options.engine {
            Engine::Lockstep => run_observed(launch, &program, options, &mut shares),
            Engine::Reference | Engine::Fast => run(launch, &program, options),
        };
        Ok(Box::new(GridOutcome { outcome: outcome?, outputs, shares }))
    }

    fn run_traced(
        self: Box<Self>,
        options: &Options,
        recorded: Recorded,
        sink: &mut dyn Sink,
    ) -> Result<Box<dyn Outcome>, Error> {
        let Grid { program, launch, outputs } = *self;
        let outcome =
            observed!(recorded, sink, |observer| run_observed(launch, &program, options, observer))?;
        Ok(Box::new(GridOutcome { outcome, outputs, shares: Shares::default() }))
    }

    fn start(&self, options: &Options) -> Result<Box<dyn Steps>, Error> {
        let run = Run::new(self.launch.clone(), &self.program, options).map_err(impossible)?;
        let warps = run.block().warps.len();
        let (blocks, width, lanes) = match &self.launch {
            machine::Launch::Compute(Compute { grid: [x, y], block, .. }) => {
                let threads = block.iter().product::<u32>() as usize;
                (*x as usize * *y as usize, *x as usize, threads)
            }
            machine::Launch::Fragment(Fragment { lanes, .. })
            | machine::Launch::Vertex(Vertex { lanes, .. })
            | machine::Launch::Geometry(Geometry { lanes, .. }) => (lanes.div_ceil(WARP), usize::MAX, *lanes),
        };
        let graphics = !matches!(self.launch, machine::Launch::Compute(_));
        let steps = GridSteps { grid: self.clone(), run, done: false, warps, blocks, width, lanes, graphics };
        Ok(Box::new(steps))
    }
}

/// A grid while it is stepped.
#[derive(Clone)]
struct GridSteps {
    grid: Grid,
    run: Run,
    done: bool,
    /// Warps of a block.
    warps: usize,
    blocks: usize,
    /// Blocks of a row of the grid.
    width: usize,
    /// Threads of a block; lanes of the launch, if it is no kernel's.
    lanes: usize,
    graphics: bool,
}

impl GridSteps {
    fn block(&self) -> usize {
        let [x, y] = self.run.block().common.index;
        if self.graphics { x as usize } else { y as usize * self.width + x as usize }
    }

    fn warp(&self, group: usize) -> Option<&Warp> {
        let here = self.running().contains(&group);
        here.then(|| self.run.block().warps.get(group % self.warps)).flatten()
    }
}

impl Steps for GridSteps {
    fn copy(&self) -> Box<dyn Steps> {
        Box::new(self.clone())
    }

    fn groups(&self) -> usize {
        self.blocks * self.warps
    }

    fn current(&self) -> Option<usize> {
        // A block of a graphics launch is one warp, which is numbered in the launch.
        let warp = if self.graphics { 0 } else { self.run.block().current().number as usize };
        (!self.done).then(|| self.block() * self.warps + warp)
    }

    fn running(&self) -> Range<usize> {
        match self.done {
            true => self.groups()..self.groups(),
            false => self.block() * self.warps..(self.block() + 1) * self.warps,
        }
    }

    fn view(&self, group: usize) -> Option<&dyn FlowView> {
        self.warp(group).map(|warp| &warp.flow as &dyn FlowView)
    }

    fn lanes(&self, group: usize) -> Range<usize> {
        let (block, first) = (group / self.warps, group % self.warps * WARP);
        match self.graphics {
            true => group * WARP..self.lanes.min((group + 1) * WARP),
            false => block * self.lanes + first..block * self.lanes + self.lanes.min(first + WARP),
        }
    }

    fn step(&mut self, observer: &mut dyn FnMut(Event)) -> Result<(), Error> {
        match self.run.step(&mut Dynamic(observer)) {
            Ok(step) => self.done = step == Step::Done,
            Err(trap) => return Err(Error::Trap(Box::new(Trapped::from(&self.run.locate(trap))))),
        }
        Ok(())
    }

    fn registers(&self) -> Vec<RegisterClass> {
        let count = self.grid.launch.setup().registers as usize;
        vec![
            RegisterClass { name: "$r", count, channels: "" },
            RegisterClass { name: "$a", count: 8, channels: "" },
            RegisterClass { name: "$c", count: 4, channels: "" },
        ]
    }

    fn read(&self, group: usize, Register { class, number, channel }: Register) -> Option<Vec<u32>> {
        let warp = self.warp(group)?;
        let known = self.registers().into_iter().find(|known| known.name == class)?;
        let number = u8::try_from(number).ok().filter(|_| number < known.count && channel == 0)?;
        let word = |lane: u8| match class {
            "$r" => warp.r(Lane(lane), number),
            "$a" => warp.a(Lane(lane), number).into(),
            _ => warp.c(Lane(lane), number).into(),
        };
        Some((0..self.lanes(group).len() as u8).map(word).collect())
    }

    fn spaces(&self) -> Vec<Space> {
        let constant = CONSTANTS.iter().map(|name| Space { name, of: SpaceOf::Launch });
        let own = [("g", SpaceOf::Launch), ("s", SpaceOf::Group), ("l", SpaceOf::Lane)];
        own.into_iter().map(|(name, of)| Space { name, of }).chain(constant).collect()
    }

    fn memory(&self, space: &str, group: usize, lane: Lane, address: u32, count: usize) -> Vec<u8> {
        let from = |bytes: &[u8]| {
            let rest = bytes.get(address as usize..).unwrap_or_default();
            rest[..rest.len().min(count)].to_vec()
        };
        match space {
            "g" => {
                // As many as lie in one buffer.
                let memory = self.run.memory();
                let (mut fits, mut beyond) = (0, count.saturating_add(1));
                while beyond - fits > 1 {
                    let middle = fits + (beyond - fits) / 2;
                    match memory.bytes(address, middle) {
                        Some(_) => fits = middle,
                        None => beyond = middle,
                    }
                }
                memory.bytes(address, fits).unwrap_or_default().to_vec()
            }
            "s" if self.running().contains(&group) => from(self.run.block().common.shared.bytes()),
            "l" => {
                let local = |warp: &Warp| warp.local(lane, 0, warp.local_bytes()).map(from);
                self.warp(group).and_then(local).unwrap_or_default()
            }
            bank => match CONSTANTS.iter().position(|name| *name == bank) {
                Some(bank) => from(self.run.context().constants.bank(bank)),
                None => Vec::new(),
            },
        }
    }

    fn set(&mut self, group: usize, register: Register, lane: Lane, value: u32) -> bool {
        let Register { class, number, channel } = register;
        let known = self.registers().into_iter().find(|known| known.name == class);
        let number = known.filter(|known| number < known.count && channel == 0);
        let number = number.and_then(|_| u8::try_from(register.number).ok());
        let fits = lane.index() < self.lanes(group).len() && self.running().contains(&group);
        let place = group % self.warps;
        let warp = self.run.block_mut().warps.get_mut(place).filter(|_| fits);
        let (Some(number), Some(warp)) = (number, warp) else { return false };
        match class {
            "$r" => warp.set_r(lane, number, value),
            // $a0 and $a5 on are 0. (1.4)
            "$a" => match u16::try_from(value) {
                Ok(value) if (1..=4).contains(&number) => warp.set_a(lane, number, value),
                _ => return false,
            },
            _ => match u8::try_from(value) {
                Ok(flags) if flags < 16 => warp.set_c(lane, number, flags),
                _ => return false,
            },
        }
        true
    }

    fn store(&mut self, space: &str, group: usize, lane: Lane, address: u32, bytes: &[u8]) -> bool {
        let here = self.running().contains(&group);
        let place = group % self.warps;
        match space {
            "g" => {
                let place = self.run.memory_mut().bytes_mut(address, bytes.len());
                place.map(|place| place.copy_from_slice(bytes)).is_some()
            }
            "s" => here && replace(self.run.block_mut().common.shared.bytes_mut(), address, bytes),
            "l" => {
                let warp = self.run.block_mut().warps.get_mut(place).filter(|_| here);
                let place = warp.and_then(|warp| warp.local_mut(lane, address, bytes.len() as u32));
                place.map(|place| place.copy_from_slice(bytes)).is_some()
            }
            // Constants are the launch's.
            _ => false,
        }
    }

    fn buffers(&self, space: &str, group: usize, lane: Lane) -> Vec<(String, Range<u64>)> {
        let whole = |name: &str, bytes: usize| vec![(name.to_owned(), 0..bytes as u64)];
        match (space, &self.grid.outputs) {
            ("g", Outputs::Buffers(placed)) => {
                let range = |placed: &Placed| {
                    let start = u64::from(placed.address);
                    (placed.name.clone(), start..start + placed.bytes as u64)
                };
                placed.iter().map(range).collect()
            }
            ("s", _) => whole("s[]", self.run.block().common.shared.bytes().len()),
            ("l", _) => {
                let bytes = self.warp(group).and_then(|warp| warp.local(lane, 0, warp.local_bytes()));
                whole("l[]", bytes.map_or(0, <[u8]>::len))
            }
            _ => Vec::new(),
        }
    }

    fn statistics(&self) -> Statistics {
        self.run.statistics()
    }

    fn outcome(&self) -> Box<dyn Outcome> {
        Box::new(self.grid.left(self.run.clone().outcome()))
    }
}

/// The constant banks.
const CONSTANTS: [&str; 16] =
    ["c0", "c1", "c2", "c3", "c4", "c5", "c6", "c7", "c8", "c9", "c10", "c11", "c12", "c13", "c14", "c15"];

/// What a run leaves, and which outputs it has.
pub struct GridOutcome {
    /// What it leaves.
    pub outcome: machine::Outcome,
    outputs: Outputs,
    shares: Shares,
}

impl Grid {
    /// What a run of this launch leaves, with its outputs.
    pub fn left(&self, outcome: machine::Outcome) -> GridOutcome {
        GridOutcome { outcome, outputs: self.outputs.clone(), shares: Shares::default() }
    }
}

impl Outcome for GridOutcome {
    fn statistics(&self) -> Statistics {
        self.outcome.statistics
    }

    fn report(&self) -> &Report {
        &self.outcome.report
    }

    fn shares(&self) -> Shares {
        self.shares
    }

    fn outputs(&self) -> Vec<(String, Array)> {
        match &self.outputs {
            Outputs::Buffers(placed) => placed.iter().map(|placed| contents(placed, &self.outcome)).collect(),
            Outputs::Lanes { stage, colors } => lane_outputs(&self.outcome, *stage, *colors),
        }
    }
}

fn contents(placed: &Placed, outcome: &machine::Outcome) -> (String, Array) {
    let Placed { name, address, dtype, shape, bytes } = placed.clone();
    let bytes = outcome.memory.bytes(address, bytes).unwrap_or_default().to_vec();
    (name, Array { dtype, shape, bytes })
}

fn lane_outputs(outcome: &machine::Outcome, stage: Stage, colors: usize) -> Vec<(String, Array)> {
    let (mut outputs, lanes) = (Vec::new(), outcome.lanes.len());
    let word = |words: &[u32], number: usize| words.get(number).copied().unwrap_or(0);
    match stage {
        Stage::Fragment => {
            for target in 0..colors {
                let words = outcome.lanes.iter().flat_map(|lane| {
                    (4 * target..4 * target + 4).map(|number| word(&lane.registers, number))
                });
                let array = Array::from_words(Dtype::F32, vec![lanes, 4], words);
                outputs.push((format!("color{target}"), array));
            }
            outputs.extend(killed(outcome.lanes.iter().map(|lane| lane.dead)));
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
    outputs
}
