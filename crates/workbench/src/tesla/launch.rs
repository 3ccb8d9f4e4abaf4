//! Launches of Tesla: the fields of a launch file, and the sessions that run launches.
//!
//! A kernel runs over a grid of blocks. Most parameters of a kernel are the addresses of buffers. A fragment, vertex or
//! geometry program runs over lanes with inputs.

mod grid;
mod kernel;

use std::sync::Arc;

use reconverge_isa::lint::Finding;
use reconverge_isa::source::parse_number;
use reconverge_isa::{Isa, Program};
use reconverge_tesla::driver_fixes::words_with_indexed_arguments;
use reconverge_tesla::inst::Stage;
pub use reconverge_tesla::launch::MOST_LOCAL;
use reconverge_tesla::launch::{self as machine, Fragment, Geometry, LaunchError, Setup, Varying, Vertex};
use reconverge_tesla::lint::lint_fixed;
use reconverge_tesla::texture::{Component, Texture, TextureSampler};
use serde::Deserialize;

use crate::array::Dtype;
use crate::error::{Error, Trapped};
use crate::request::{MachineLaunch, Request, SamplerValues, assigned, lanes, number};
use crate::session::Session;
use crate::values::{Files, Loaded, Stated, Values};
use grid::{Outputs, impossible};

pub use grid::{Grid, GridOutcome};

/// The fields of a launch file that exist only for Tesla.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Launch {
    /// Number of general registers per thread. If this field is absent, the launch uses the number that the container
    /// states.
    pub registers: Option<u32>,
    /// Bytes of l[] per thread. If this field is absent, the launch uses the number that the container states.
    pub local_bytes: Option<u32>,
    /// Number of blocks in x and y (default: 1).
    #[serde(default)]
    pub grid: Vec<u32>,
    /// Number of threads of a block in x, y and z (default: 1).
    #[serde(default)]
    pub block: Vec<u32>,
    /// Bytes of dynamic shared memory per block.
    pub shared: Option<u32>,
    /// Bytes of shared memory per block, including the parameters. If this field is absent, the launch uses the number
    /// that the container states.
    pub shared_bytes: Option<u32>,
    /// Number of barriers per block. If this field is absent, the launch uses the number that the container states.
    pub barriers: Option<u32>,
    /// The number of the grid (default: 0). Programs read this number from `s[0x0]`.
    #[serde(default)]
    pub grid_id: u16,
    /// The driver that generated the program: `nv50-compute`. The launch fixes the errors that this driver is known to
    /// make in generated programs.
    pub driver_fixes: Option<String>,
    /// Whether the launch runs even if its blocks do not fit into a multiprocessor of the chip.
    #[serde(default)]
    pub oversized: bool,
    /// Size of a pointer in the parameter area in bytes: 4 (default) or 8. The field applies if the container does not
    /// state this size.
    pub pointer_bytes: Option<u32>,
    /// The kernel's parameters, in order.
    #[serde(default)]
    pub param: Vec<ParamValue>,
    /// Buffers in global memory that are not parameters.
    #[serde(default)]
    pub buffer: Vec<BufferValues>,
    /// Segments of global memory, in addition to the segments that buffers state.
    #[serde(default)]
    pub segment: Vec<SegmentValues>,
    /// Contents of constant banks. These contents replace the contents that the container states.
    #[serde(default)]
    pub constant: Vec<ConstantValues>,
    /// Inputs of a fragment, vertex or geometry program.
    #[serde(default)]
    pub input: Vec<InputValues>,
    /// Whether missing lanes in the last quad of a fragment program run as helper lanes. Helper lanes are needed for
    /// derivatives.
    #[serde(default)]
    pub helpers: bool,
    /// Number of colours that a fragment program returns. The number is 1 to 8 (default: 1). Each colour is in four
    /// registers. The first colour starts at $r0.
    pub colors: Option<u32>,
    /// Number of registers that a fragment program returns, starting at $r0: 0 to 128. This field is an alternative to
    /// `colors`. Registers that do not form a whole colour become the output `others`.
    pub results: Option<u32>,
    /// Lanes of a fragment program that the primitive covers (default: all lanes). Lanes that the primitive does not
    /// cover serve only to compute derivatives.
    pub covered: Option<Values>,
    /// Whether multiplication of 0 by any value results in 0.
    #[serde(default)]
    pub mul_zero_wins: bool,
    /// Samplers. If this list is empty, each texture also defines a sampler. If this list is not empty, only a texture
    /// that states a filter or a wrap mode defines a sampler.
    #[serde(default)]
    pub sampler: Vec<SamplerValues>,
    /// Contents of p[] for a geometry program, as words.
    pub vertices: Option<Values>,
}

/// A parameter of a kernel. The parameter is a number, or the address of a buffer.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ParamValue {
    /// Name of the parameter. If the parameter is a buffer, the output with the buffer's contents has the same name.
    pub name: String,
    /// Initial contents of the buffer, if the parameter is a buffer.
    pub buffer: Option<Values>,
    /// Address of the buffer, a multiple of 4 (default: a free address).
    pub address: Option<u32>,
    /// Segment of g[] that maps the buffer, 0 to 15. By default, the segment g14 maps all of memory, including the
    /// buffer.
    pub segment: Option<u8>,
    /// One number, or several consecutive numbers, if the parameter is not a buffer.
    pub value: Option<Values>,
    /// Offset of the first byte in the parameter area. By default, the parameter follows the previous parameter,
    /// aligned to the size of the parameter.
    pub offset: Option<u32>,
}

/// A buffer in global memory.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct BufferValues {
    /// Name of the buffer, which is also the name of the output.
    pub name: String,
    /// Address of the buffer, a multiple of 4 (default: a free address).
    pub address: Option<u32>,
    /// Segment of g[] that maps the buffer, 0 to 15.
    pub segment: Option<u8>,
    /// Initial contents of the buffer.
    pub values: Values,
}

/// A segment of global memory.
#[derive(Clone, Copy, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SegmentValues {
    /// Number of the segment, 0 to 15.
    pub number: u8,
    /// Address of the first byte.
    #[serde(default)]
    pub base: u32,
    /// Maximum offset in the segment. If the segment is tiled, this field has two halves. The upper half is the number
    /// of the last row. The lower half is the offset of the last byte in a row.
    pub limit: u32,
    /// If the segment is tiled, the number of bytes between the starts of two consecutive rows of tiles.
    pub pitch: Option<u32>,
    /// Number of rows in a tile. The number is a power of two up to 128.
    pub tile_rows: Option<u32>,
    /// Whether the machine ignores an access beyond the limit instead of trapping. An ignored load returns zeros.
    #[serde(default)]
    pub lenient: bool,
}

/// Contents of a constant bank.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ConstantValues {
    /// Number of the bank, 0 to 15.
    pub bank: u32,
    /// Offset of the first byte.
    #[serde(default)]
    pub offset: u32,
    /// The contents from `offset` on.
    pub values: Values,
}

/// An input of a fragment, vertex or geometry program.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct InputValues {
    /// Number of the first word. Word n is `v[4n]` or `a[4n]`.
    pub word: u16,
    /// One or more numbers for each lane, or one list of numbers for all lanes. The numbers are stored in consecutive
    /// words.
    pub values: Option<Values>,
    /// A plane, as an alternative to `values` in a fragment program. The three numbers of a plane are the value at (0,
    /// 0), the change with x, and the change with y. For a perspective attribute, the plane describes attribute / w,
    /// and the plane of word 0 describes 1 / w.
    pub plane: Option<[f32; 3]>,
    /// The result of flat interpolation for an input with a plane. This result is the value at the provoking vertex.
    pub flat: Option<f32>,
}

impl MachineLaunch for Launch {
    fn copy(&self) -> Arc<dyn MachineLaunch> {
        Arc::new(self.clone())
    }

    fn remedy(&self, trapped: &Trapped, program: &Program) -> Option<String> {
        kernel::parameter_without_value(self, program, trapped.unwritten?)
    }

    fn lint(&self, request: &Request<'_>) -> Result<Option<(Program, Vec<Finding>)>, Error> {
        let fixes = self.driver_fixes.as_ref().map(|_| self.kernel(request)).transpose()?;
        let fixes = fixes.and_then(|(compute, _)| compute.setup.driver_fixes);
        let Some(fixes) = fixes else { return Ok(None) };
        let (target, mut program) = (request.target, request.program.clone());
        (program.words, _) = words_with_indexed_arguments(&program.words, target.tesla());
        let found = lint_fixed(&program, target.tesla(), fixes);
        Ok(Some((program, found)))
    }

    fn set(&mut self, option: &str, text: &str) -> Result<(), Error> {
        let wrong = |why: String| Error::Machine(format!("--{option} {text}: {why}"));
        match option {
            "grid" => self.grid = crate::request::sizes(text)?,
            "block" => self.block = crate::request::sizes(text)?,
            "shared" => self.shared = Some(number(option, text)?),
            "pointer-bytes" => self.pointer_bytes = Some(number(option, text)?),
            // The kernel's parameters have the order in which these options occur.
            "buf" | "arg" => {
                let (name, values) = assigned(option, text)?;
                let (name, values) = (name.to_owned(), Some(values));
                self.param.push(match option {
                    "buf" => ParamValue { name, buffer: values, ..ParamValue::default() },
                    _ => ParamValue { name, value: values, ..ParamValue::default() },
                });
            }
            "segment" => {
                let (name, values) = assigned(option, text)?;
                let number =
                    name.strip_prefix('g').unwrap_or(name).parse().ok().filter(|number| *number < 16);
                let number: u8 = number
                    .ok_or_else(|| wrong("expected 0=VALUES to 15=VALUES, for g0[] to g15[]".to_owned()))?;
                let name = format!("g{number}");
                self.buffer.push(BufferValues { name, address: None, segment: Some(number), values });
            }
            "sampler" => self.sampler.push(SamplerValues::of_argument(text)?),
            "const" => {
                let (name, values) = assigned(option, text)?;
                let form = || wrong("expected c1=VALUES or c1[0x10]=VALUES".to_owned());
                let (bank, offset) = match name.strip_prefix('c').ok_or_else(form)?.split_once('[') {
                    None => (name[1..].parse().map_err(|_| form())?, 0),
                    Some((bank, offset)) => {
                        let offset = offset.strip_suffix(']').and_then(parse_number);
                        let offset = offset.and_then(|offset| u32::try_from(offset).ok());
                        (bank.parse().map_err(|_| form())?, offset.ok_or_else(form)?)
                    }
                };
                self.constant.push(ConstantValues { bank, offset, values });
            }
            "input" => {
                let (name, values) = assigned(option, text)?;
                let word = name.strip_prefix(['v', 'a']).and_then(|digits| digits.parse().ok());
                let word = word.ok_or_else(|| {
                    wrong(format!(
                        "`{name}` is not an input; expected for instance v4 for v[0x10] and later words"
                    ))
                })?;
                self.input.push(InputValues { word, values: Some(values), ..InputValues::default() });
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

/// Returns the type of the program. If the program's file states the type, returns this type. Otherwise, returns the
/// type that the launch states. If the launch does not state a type either, the program is a kernel.
fn stage(request: &Request<'_>) -> Result<Stage, Error> {
    let named = request.common.stage.as_deref().map(|name| {
        let help = "expected compute, vertex, geometry or fragment";
        Stage::from_name(name).ok_or_else(|| Error::name("stage", name, help))
    });
    let named = named.transpose()?;
    let stated = request.program.stage.map(|stage| {
        Stage::of(stage).ok_or_else(|| Error::Machine(format!("{stage} is not a program type of tesla")))
    });
    Ok(stated.transpose()?.or(named).unwrap_or(Stage::Compute))
}

/// Returns an error if the launch has fields that do not apply to programs of this kind. Some fields of a launch apply
/// only to kernels. Some fields of a launch apply only to graphics programs.
fn refuse_what_does_not_fit(file: &Launch, lanes: Option<usize>, stage: Stage) -> Result<(), Error> {
    let of_graphics = [("lanes", lanes.is_some()), ("input", !file.input.is_empty())];
    let of_kernels = [
        ("grid", !file.grid.is_empty()),
        ("block", !file.block.is_empty()),
        ("param", !file.param.is_empty()),
    ];
    let (fields, of) = match stage {
        Stage::Compute => (&of_graphics[..], "VP, GP and FP"),
        Stage::Fragment | Stage::Vertex | Stage::Geometry => (&of_kernels[..], "CP"),
    };
    fields.iter().filter(|(_, stated)| *stated).try_for_each(|(what, _)| {
        Err(Error::Machine(format!("{what}: for {of} programs; this is a {stage} program")))
    })
}

impl Launch {
    fn setup(&self, request: &Request<'_>) -> Result<Setup, Error> {
        let Request { common, image, program, target, files } = *request;
        let mut setup = Setup::of(program, target.tesla()).map_err(impossible)?;
        setup.code_base = program.base;
        setup.registers = self.registers.unwrap_or(setup.registers);
        setup.local_bytes = self.local_bytes.unwrap_or(setup.local_bytes);
        for block in image.constants_of(program) {
            place_constants(&mut setup, block.bank, block.offset, &block.bytes)?;
        }
        setup.modes.mul_zero_wins = self.mul_zero_wins;
        for values in &common.texture {
            let (image, sampler) = values.image(Isa::Tesla, files)?;
            let mut texture = Texture::new(image, values.integer);
            texture.compared.clamps = values.fractions;
            if let Some(components) = values.selected("x01", compared)? {
                texture.compared.components = components;
            }
            setup.textures.textures.insert(values.unit, texture);
            if let Some(number) = values.own_sampler(self.sampler.is_empty()) {
                setup.textures.samplers.insert(number, TextureSampler { sampler, compare: None });
            }
        }
        for values in &self.sampler {
            let (sampler, compare) = values.sampler(files)?;
            let compare = values.compare.as_ref().map(|_| compare);
            setup.textures.samplers.insert(values.number, TextureSampler { sampler, compare });
        }
        Ok(setup)
    }

    /// Stores the constants that the launch states. These constants replace the constants that the container states.
    fn own_constants(&self, setup: &mut Setup, files: &dyn Files) -> Result<(), Error> {
        for constant in &self.constant {
            let what = format!("constant c{}[{:#x}]", constant.bank, constant.offset);
            let array = constant.values.load_plain(&what, files)?;
            place_constants(setup, constant.bank, constant.offset, &array.bytes)?;
        }
        Ok(())
    }
}

/// Returns the component of a comparison result that a letter of `select` names.
fn compared(letter: char) -> Option<Component> {
    match letter {
        'x' => Some(Component::Share),
        '0' => Some(Component::Zero),
        '1' => Some(Component::One),
        _ => None,
    }
}

fn place_constants(setup: &mut Setup, bank: u32, offset: u32, bytes: &[u8]) -> Result<(), Error> {
    let fits = setup.constants.place(bank as usize, offset as usize, bytes);
    if fits { Ok(()) } else { Err(impossible(LaunchError::Constants { bank, offset })) }
}

/// Returns a list of `N` sizes. If `list` is shorter, the missing sizes are 1.
fn sizes<const N: usize>(what: &str, list: &[u32]) -> Result<[u32; N], Error> {
    if list.len() > N {
        let (place, wanted) = (what.to_owned(), format!("1 to {N}"));
        return Err(Error::Count { place, found: list.len(), wanted });
    }
    let mut sizes = [1; N];
    sizes[..list.len()].copy_from_slice(list);
    Ok(sizes)
}

// ---- Fragments, vertices, primitives

impl Launch {
    /// Returns a launch of fragments, vertices or primitives, and a description of its outputs.
    fn graphics(&self, request: &Request<'_>, stage: Stage) -> Result<(machine::Launch, Outputs), Error> {
        let Request { common, files, .. } = *request;
        let mut setup = self.setup(request)?;
        self.own_constants(&mut setup, files)?;
        let results = self.results()?;
        let mut loaded: Vec<(u16, String, Loaded)> = Vec::new();
        let mut planes = Vec::new();
        for InputValues { word, values, plane, flat } in &self.input {
            let what = format!("input {word}");
            match (values, plane, stage) {
                (Some(values), None, _) if flat.is_none() => {
                    // The inputs of a geometry program are integers, because these inputs are addresses in p[].
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
                    let text = format!("{what}: expected either `values`, or `plane` with or without `flat`");
                    return Err(Error::Machine(text));
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
                fragment.kept = Some(results);
                fragment.helpers = self.helpers;
                if let Some(values) = &self.covered {
                    let array = values.load_as("covered", Dtype::U8, files)?;
                    if array.len() != lanes {
                        let (place, found) = ("covered".to_owned(), array.len());
                        return Err(Error::Count {
                            place,
                            found,
                            wanted: format!("{lanes} numbers (one per lane)"),
                        });
                    }
                    fragment.covered = array.bytes.iter().map(|byte| *byte != 0).collect();
                }
                for (slot, values) in words {
                    fragment.varyings.insert(slot, Varying::Lanes(values.into()));
                }
                for (slot, plane) in planes {
                    fragment.varyings.insert(slot, plane);
                }
                machine::Launch::Fragment(fragment)
            }
            Stage::Geometry => {
                let vertices = match &self.vertices {
                    None => Vec::new(),
                    Some(values) => values.load_float("vertices", true, files)?.array.words().collect(),
                };
                machine::Launch::Geometry(Geometry {
                    setup: setup.into(),
                    lanes,
                    inputs: words.into_iter().collect(),
                    vertices,
                })
            }
            Stage::Vertex | Stage::Compute => machine::Launch::Vertex(Vertex {
                setup: setup.into(),
                lanes,
                inputs: words.into_iter().collect(),
            }),
        };
        Ok((launch, Outputs::Lanes { stage, results }))
    }

    /// Returns the number of registers that a fragment program returns.
    fn results(&self) -> Result<usize, Error> {
        let out = |place: &str, found: u32, help: &str| Err(Error::name(place, found, help));
        match (self.colors, self.results) {
            (Some(_), Some(results)) => out("results", results, "expected one of colors and results"),
            (None, Some(results @ 0..=128)) => Ok(results as usize),
            (None, Some(results)) => out("results", results, "expected 0 to 128"),
            (None, None) => Ok(4),
            (Some(colors @ 1..=8), None) => Ok(4 * colors as usize),
            (Some(colors), None) => out("colors", colors, "expected 1 to 8"),
        }
    }
}

/// Returns the words of an input. Each element of the result has the number of a word, and the values of this word in
/// all lanes. If an array has several rows, the array has one row per lane. If an array has a single row, this row
/// applies to all lanes. If an array without rows has one number per lane of the launch, each lane gets one number. Any
/// other array without rows has up to four numbers, and each lane gets all numbers of the array. As an exception, the
/// numbers of a file of raw numbers are divided evenly among the lanes.
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
        // All lanes have the same words.
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
