//! Launches of kernels. A kernel has a parameter area, and buffers whose addresses are parameters.

use litemap::LiteMap;
use reconverge_isa::Program;
use reconverge_isa::program::Param;
use reconverge_isa::source::closest;
use reconverge_simt::memory::{Buffer, LayoutError, Memory};
use reconverge_tesla::barrier::BARRIERS;
use reconverge_tesla::driver_fixes::DriverFixes;
use reconverge_tesla::flow::WARP;
use reconverge_tesla::inst::Chip;
use reconverge_tesla::launch::{Compute, LaunchError, MOST_SHARED, PARAMETERS};
use reconverge_tesla::spaces::{Segment, Segments, Tiling};

use super::grid::{Outputs, Placed, impossible};
use super::{Launch, ParamValue, SegmentValues, sizes};
use crate::array::{Array, Dtype};
use crate::error::{Error, counted};
use crate::request::Request;
use crate::tesla::names::{ParamType, demangled, params_of_mangled};
use crate::values::{Files, Loaded, Stated, Values};

/// Maximum number of threads per block. (CUDA C Programming Guide 3.1, G.1)
const MOST_THREADS: u64 = 512;

/// Returns an error if a block does not fit into a multiprocessor of the chip. A multiprocessor has 8192 registers up
/// to compute capability 1.1, and 16384 registers from 1.2 on. A block allocates registers for an even number of warps,
/// in units of 256 or 512 registers. (CUDA C Programming Guide 3.1, G.1 and 4.2)
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

/// Default address of the first buffer. No buffer has address 0.
const FIRST_ADDRESS: u32 = 0x1_0000;
/// Alignment of buffers, and minimum gap between two buffers. Because of the gap, an access just beyond the end of a
/// buffer does not access the next buffer.
const BUFFER_GAP: u32 = 0x1000;

impl Placed {
    fn new(name: &str, address: u32, array: &Array) -> Placed {
        let (name, shape, bytes) = (name.to_owned(), array.shape.clone(), array.bytes.len());
        Placed { name, address, dtype: array.dtype, shape, bytes }
    }
}

impl Launch {
    /// Returns the launch of a kernel, and the buffers that are outputs. The launch contains the initial memory.
    pub(super) fn kernel(&self, request: &Request<'_>) -> Result<(Compute, Outputs), Error> {
        let Request { image, program, target, files, .. } = *request;
        let setup = self.setup(request)?;
        let mut compute = Compute::of(program, setup.chip).map_err(impossible)?;
        compute.setup = setup.into();
        compute.grid = sizes("grid", &self.grid)?;
        compute.block = sizes("block", &self.block)?;
        compute.dynamic_shared = self.shared.unwrap_or(0);
        let most = |name, value, most| match value {
            Some(value) if value > most => Err(Error::name(name, value, format!("expected 0 to {most}"))),
            value => Ok(value),
        };
        compute.shared_bytes = most("shared_bytes", self.shared_bytes, MOST_SHARED)?.or(compute.shared_bytes);
        compute.barriers = most("barriers", self.barriers, BARRIERS as u32)?.or(compute.barriers);
        compute.grid_id = self.grid_id;
        // If neither the file nor the launch states a chip, the chip is the default G80. In this case, the number of
        // registers is not checked against the limit of the chip.
        let stated = target.chip.as_ref().and(self.registers.or(program.resources.registers));
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
        self.own_constants(compute.setup_mut(), files)?;
        if let Some(name) = &self.driver_fixes {
            if name != DriverFixes::NAME {
                return Err(Error::name("driver_fixes", name, format!("expected {}", DriverFixes::NAME)));
            }
            // The first word of the parameters belongs to the driver.
            let argument_bytes = compute.params.len().saturating_sub(4) as u32;
            let shared_bytes = compute.shared_bytes.unwrap_or(0).saturating_add(compute.dynamic_shared);
            compute.setup_mut().driver_fixes = Some(DriverFixes { argument_bytes, shared_bytes });
        }
        Ok((compute, Outputs::Buffers(placed)))
    }
}

/// Lays out the parameter area, and the buffers whose addresses are parameters.
fn parameters(
    file: &Launch,
    program: &Program,
    pointer: Option<u32>,
    compute: &mut Compute,
    next: &mut u32,
    files: &dyn Files,
) -> Result<Vec<Placed>, Error> {
    let given = assigned(file, program)?;
    let types = types_of(file, program)?;
    let mut placed: Vec<Placed> = Vec::new();
    let mut area: Vec<u8> = Vec::new();
    let mut buffers = Vec::new();
    for stated in &file.segment {
        let what = format!("segment {}", stated.number);
        bind(&what, stated.number, segment(&what, stated)?, &mut compute.segments)?;
    }
    for buffer in &file.buffer {
        let what = format!("buffer {}", buffer.name);
        let array = buffer.values.load_plain(&what, files)?;
        let address = buffer.address.unwrap_or(*next);
        let output = place(&what, &buffer.name, address, array, next, &placed, &mut buffers)?;
        assign(&what, buffer.segment, &output, &mut compute.segments)?;
        placed.push(output);
    }
    for (number, (param, declared)) in given.into_iter().enumerate() {
        let what = format!("param {}", param.name);
        let typed = types.as_ref().map(|types| Typed { what: &what, is: types[number] });
        if param.segment.is_some() && param.buffer.is_none() {
            return Err(Error::Machine(format!(
                "{what}: a segment needs a buffer; state the buffer, or omit the segment"
            )));
        }
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
                            "{what}: expected a pointer of 4 or 8 bytes, found {other} bytes"
                        )));
                    }
                };
                let output = place(&what, &param.name, address, array, next, &placed, &mut buffers)?;
                assign(&what, param.segment, &output, &mut compute.segments)?;
                placed.push(output);
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
        // The space s[] has 16 KiB. The check must precede the allocation of memory for the parameter.
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

/// Maps a buffer in the segment that the launch states for this buffer.
fn assign(what: &str, segment: Option<u8>, placed: &Placed, segments: &mut Segments) -> Result<(), Error> {
    let Some(number) = segment else { return Ok(()) };
    let Some(limit) = placed.bytes.checked_sub(1) else {
        return Err(Error::Machine(format!("{what}: expected a segment of at least one byte")));
    };
    bind(what, number, Segment::linear(placed.address, limit as u32), segments)
}

/// Sets a segment. Returns an error if this segment is already set.
fn bind(what: &str, number: u8, segment: Segment, segments: &mut Segments) -> Result<(), Error> {
    let Some(place) = segments.0.get_mut(usize::from(number)) else {
        return Err(Error::name(what, number, "expected 0 to 15"));
    };
    let is_default = number == 14 && *place == Some(Segment::ALL);
    if place.is_some() && !is_default {
        return Err(Error::Machine(format!("{what}: g{number} is bound twice")));
    }
    *place = Some(segment);
    Ok(())
}

/// Returns the segment that a launch describes.
fn segment(what: &str, stated: &SegmentValues) -> Result<Segment, Error> {
    let SegmentValues { base, limit, pitch, tile_rows, lenient, .. } = *stated;
    let tiling = match (pitch, tile_rows) {
        (None, None) => None,
        (Some(pitch), Some(rows)) if rows.is_power_of_two() && rows <= 128 => {
            Some(Tiling { pitch, rows: rows.ilog2() as u8 })
        }
        (Some(_), Some(rows)) => {
            let message = format!("{what}: tile_rows: expected a power of two up to 128, found {rows}");
            return Err(Error::Machine(message));
        }
        _ => return Err(Error::Machine(format!("{what}: a tiled segment has both pitch and tile_rows"))),
    };
    Ok(Segment { base, limit, tiling, lenient })
}

/// Adds a buffer at an address. Sets `next` to the first address that later buffers can have.
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
        return Err(Error::Machine(format!("{what}: duplicate buffer name")));
    }
    let end = u64::from(address) + array.bytes.len() as u64 + u64::from(BUFFER_GAP);
    let end = u32::try_from(end.next_multiple_of(BUFFER_GAP.into()))
        .map_err(|_| impossible(LaunchError::Memory(LayoutError::Beyond(address))))?;
    *next = end.max(*next);
    let output = Placed::new(name, address, &array);
    buffers.push(Buffer::new(address, array.bytes));
    Ok(output)
}

/// Returns the parameters of a launch in the order of their declarations. Each entry has a parameter, and the
/// declaration of this parameter in the program.
///
/// If a parameter has the name of a declaration, the parameter belongs to this declaration. All other parameters
/// belong, in order, to the remaining declarations. If the launch states the offset of a parameter, the function
/// ignores all declarations.
///
/// # Errors
/// Returns an error if a name is not declared, or if a declared parameter has no value or two values. Also returns an
/// error if the launch and the program have different numbers of parameters.
fn assigned<'a>(
    file: &'a Launch,
    program: &'a Program,
) -> Result<Vec<(&'a ParamValue, Option<&'a Param>)>, Error> {
    let declared = &program.params[..];
    let placed_by_hand = file.param.iter().any(|param| param.offset.is_some());
    if declared.is_empty() || placed_by_hand {
        return Ok(file.param.iter().map(|param| (param, None)).collect());
    }
    let named = declared.iter().filter_map(|param| param.name.as_deref());
    let names: Vec<&str> = named.collect();
    if names.is_empty() {
        if declared.len() != file.param.len() {
            return Err(wrong_count(file, program));
        }
        return Ok(file.param.iter().zip(declared.iter().map(Some)).collect());
    }
    let mut unnamed: Vec<&ParamValue> = Vec::new();
    let mut by_name: LiteMap<&str, &ParamValue> = LiteMap::new();
    for param in &file.param {
        if !names.contains(&&*param.name) {
            unnamed.push(param);
        } else if by_name.insert(&param.name, param).is_some() {
            return Err(Error::Machine(format!("param {}: expected one value, found two", param.name)));
        }
    }
    let room = declared.len() - names.len();
    if let Some(param) = unnamed.get(room) {
        return Err(Error::Machine(unknown_param(&param.name, &names)));
    }
    let mut unnamed = unnamed.into_iter();
    let value = |one: &'a Param| {
        let value = match one.name.as_deref() {
            Some(name) => by_name.get(&name).copied(),
            None => unnamed.next(),
        };
        value.map(|value| (value, Some(one))).ok_or_else(|| Error::Machine(without_value(one)))
    };
    declared.iter().map(value).collect()
}

/// Returns the message that the program does not have the parameter `found`.
fn unknown_param(found: &str, names: &[&str]) -> String {
    let meant = closest(found, names.iter().copied());
    let meant = meant.map(|meant| format!("; did you mean `{meant}`?")).unwrap_or_default();
    format!("unknown parameter `{found}`: the parameters are {}{meant}", names.join(", "))
}

/// Returns the message that a parameter does not have a value.
fn without_value(param: &Param) -> String {
    let place = format!("s[{:#x}]", PARAMETERS + param.offset);
    match &param.name {
        Some(name) => format!(
            "{place}, parameter {name}, has no value: add --buf {name}=VALUES for a buffer or --arg {name}=VALUE for a number \
             ([[param]] in a launch file)"
        ),
        None => format!("{place}, a parameter of {} bytes without a name, has no value", param.bytes),
    }
}

/// A program without declared parameters may read a word of shared memory that was never written. This word may be a
/// parameter that the launch does not state. Returns a message about this possibility if the word is not far beyond the
/// parameters of the launch.
pub(super) fn parameter_without_value(file: &Launch, program: &Program, address: u32) -> Option<String> {
    let undeclared = program.params.is_empty() && file.param.iter().all(|param| param.offset.is_none());
    // A word at a higher offset is probably not a parameter. The program probably uses this word as shared memory.
    let is_next =
        (PARAMETERS..PARAMETERS + 4 * (file.param.len() as u32 + MOST_UNDECLARED)).contains(&address);
    (undeclared && is_next).then(|| {
        let given = match file.param.len() {
            0 => "none".to_owned(),
            count => counted(count as u64, "value"),
        };
        format!(
            "s[{address:#x}] is a parameter without a value, unless the program writes it: parameters begin at \
             s[{PARAMETERS:#x}], and the launch gives {given}; add --buf NAME=VALUES for a buffer or --arg \
             NAME=VALUE for a number ([[param]] in a launch file), in the order of the parameters"
        )
    })
}

/// The maximum distance, in words, between the end of the launch's parameters and a word that may still be a parameter.
/// This maximum applies to programs that do not declare parameters.
const MOST_UNDECLARED: u32 = 16;

/// Returns the error that the launch and the container have different numbers of parameters. The caller uses this error
/// if the container has no names of parameters.
fn wrong_count(file: &Launch, program: &Program) -> Error {
    let declared = &program.params[..];
    let list: Vec<String> = declared
        .iter()
        .map(|param| format!("{} bytes at s[{:#x}]", param.bytes, PARAMETERS + param.offset))
        .collect();
    let kernel = program.name.as_deref().unwrap_or("the kernel");
    let takes = counted(declared.len() as u64, "parameter");
    let given = counted(file.param.len() as u64, "parameter");
    let list = list.join(", ");
    Error::Machine(format!(
        "{kernel}: expected {takes} ({list}), found {given}; the order of --buf and --arg is the order of the \
         parameters"
    ))
}

/// Returns the bytes and the alignment of one or more numbers. If a number has no stated type, the function converts
/// the number to a type of the size that the container declares.
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
    let bytes = declared.bytes as usize;
    let fitting = match array.dtype.is_float() {
        true => [Some(Dtype::F64).filter(|_| bytes == 8), None],
        false => [Dtype::unsigned(bytes), Dtype::signed(bytes)],
    };
    // The size of the number may differ from the declared size. The function loads the number again, because a type of
    // the declared size may be able to represent the number.
    let fitting = fitting.into_iter().flatten().filter(|_| array.len() == 1);
    let found = fitting.filter_map(|dtype| values.load_as(what, dtype, files).ok()).next();
    let array = found.ok_or_else(|| {
        let (found, wanted) = (array.bytes.len(), declared.bytes);
        Error::Machine(format!("{what}: expected {wanted} bytes as the kernel declares, found {found}"))
    })?;
    Ok((array.bytes, declared.bytes as usize))
}

/// Returns the bytes and the alignment of numbers with a stated type, and checks the declared size.
fn sized(what: &str, array: Array, declared: Option<&Param>) -> Result<(Vec<u8>, usize), Error> {
    match declared {
        Some(declared) if array.bytes.len() != declared.bytes as usize => {
            let (found, wanted) = (array.bytes.len(), declared.bytes);
            Err(Error::Machine(format!(
                "{what}: expected {wanted} bytes as the kernel declares, found {found} ({})",
                array.dtype
            )))
        }
        _ => Ok((array.bytes, array.dtype.bytes())),
    }
}

/// Returns the types of the parameters. Only a mangled kernel name states these types. For other names, the result is
/// `None`.
///
/// # Errors
/// Returns an error if the number of parameters in the launch differs from the number in the kernel's name.
fn types_of(file: &Launch, program: &Program) -> Result<Option<Vec<ParamType>>, Error> {
    // Parameters with stated offsets may be in any order. So the function cannot assign the types in the kernel's name
    // to these parameters.
    let by_hand = file.param.iter().any(|param| param.offset.is_some());
    let name = program.name.as_deref().filter(|_| !by_hand);
    let Some((name, types)) = name.and_then(|name| Some((name, params_of_mangled(name)?))) else {
        return Ok(None);
    };
    if types.len() == file.param.len() {
        return Ok(Some(types));
    }
    let (name, given) = (demangled(name).unwrap_or_default(), file.param.len());
    let takes = counted(types.len() as u64, "parameter");
    let given = counted(given as u64, "parameter");
    Err(Error::Machine(format!(
        "{name}: expected {takes}, found {given}; the order of --buf and --arg is the order of the parameters"
    )))
}

/// A parameter whose type the kernel's name states.
struct Typed<'a> {
    what: &'a str,
    is: ParamType,
}

impl Typed<'_> {
    fn refused(&self, found: &str, remedy: &str) -> Error {
        Error::Machine(format!(
            "{}: found {found}, but the kernel's name states {}; {remedy}",
            self.what,
            self.spelled()
        ))
    }

    /// Returns the type in C++ notation.
    fn spelled(&self) -> String {
        match self.is {
            ParamType::Pointer(None) => "a pointer".to_owned(),
            ParamType::Pointer(Some(element)) => format!("a pointer to {element}"),
            ParamType::Vector(element, count) => format!("{count} numbers of {element}"),
            ParamType::Unknown => "a structure".to_owned(),
            scalar => scalar.to_string(),
        }
    }

    /// Returns the contents of a buffer. The contents have the element type that the kernel's name states.
    fn buffer(&self, values: &Values, files: &dyn Files) -> Result<Array, Error> {
        let element = match self.is {
            ParamType::Pointer(Some(element)) => element,
            // The kernel's name does not state an element type.
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
                let remedy = format!("give numbers of {element}, for instance with the suffix :{element}");
                Err(self.refused(&format!("numbers of {}", array.dtype), &remedy))
            }
        }
    }

    /// Returns a number, or the components of a vector. Returns `None` if the kernel's name does not state the type of
    /// the parameter. `bytes` is the size that the container declares, or the size of a pointer.
    fn number(&self, values: &Values, bytes: usize, files: &dyn Files) -> Result<Option<Array>, Error> {
        let (element, count) = match self.is {
            ParamType::Scalar(element) => (Some(element), 1),
            ParamType::Vector(element, count) => (Some(element), count),
            ParamType::Long { signed: true } => (Dtype::signed(bytes), 1),
            ParamType::Long { signed: false } | ParamType::Pointer(_) => (Dtype::unsigned(bytes), 1),
            ParamType::Unknown => (None, 1),
        };
        let Some(element) = element else { return Ok(None) };
        let Loaded { array, stated, .. } = values.load(self.what, files)?;
        if array.len() != count {
            let found = format!("{} numbers", array.len());
            return Err(self.refused(&found, &format!("give {count}")));
        }
        let same = array.dtype.bytes() == element.bytes() && array.dtype.is_float() == element.is_float();
        match stated {
            Stated::Not => array.convert(element).map(Some).map_err(|error| {
                self.refused(&error.to_string(), &format!("give numbers that {element} can hold"))
            }),
            Stated::Bits => Ok(Some(array)),
            Stated::File | Stated::Request if same => Ok(Some(array)),
            Stated::File | Stated::Request => {
                let found = format!("a number of {}", array.dtype);
                Err(self.refused(&found, &format!("omit the type, or use :{element}")))
            }
        }
    }
}
