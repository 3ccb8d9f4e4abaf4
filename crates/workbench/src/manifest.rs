//! Run manifests: JSON that names a binary, buffers at fixed addresses, launches one after the other, and the bytes
//! that must be left.

use std::collections::BTreeMap;

use reconverge_isa::{Image, Program};
use reconverge_simt::Options;
use reconverge_simt::Statistics;
use reconverge_simt::memory::{Buffer, Memory};
use reconverge_tesla::inst::Chip;
use reconverge_tesla::launch::{Compute, Launch, LaunchError};
use serde::Deserialize;

use crate::array::{Array, Dtype};
use crate::request::{Error, How, mode};
use crate::result::{RunResult, difference};
use crate::tesla::{chip, finished, impossible};
use crate::values::Files;

/// A run manifest.
#[derive(Clone, Debug, Deserialize)]
pub struct Manifest {
    /// Its name.
    pub id: String,
    /// The machine.
    pub isa: String,
    /// The chip or architecture.
    pub arch: String,
    /// The program's file, relative to the folder above the manifest's.
    pub binary: String,
    /// In order; memory stays from one to the next.
    launches: Vec<LaunchEntry>,
    /// Global memory.
    buffers: Vec<BufferEntry>,
    /// Contents of constant banks (`c1`: hexadecimal bytes) that came with the program.
    #[serde(default)]
    constants: BTreeMap<String, String>,
    /// Contents that the host places at the start of a bank.
    #[serde(default)]
    user_constants: BTreeMap<String, String>,
    /// What must be left.
    #[serde(default)]
    expect: Vec<ExpectEntry>,
    /// Instructions executed, summed over threads.
    thread_instructions: Option<u64>,
}

#[derive(Clone, Debug, Deserialize)]
struct LaunchEntry {
    kernel: Option<String>,
    grid: Vec<u32>,
    block: Vec<u32>,
    #[serde(default)]
    dynamic_shared_bytes: u32,
    #[serde(default)]
    params: Vec<ParamEntry>,
}

#[derive(Clone, Debug, Deserialize)]
struct ParamEntry {
    name: String,
    kind: ParamKind,
    offset: usize,
    bytes: usize,
    buffer: Option<String>,
    value: Option<serde_json::Number>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
enum ParamKind {
    Buffer,
    U32,
    S32,
    F32,
    U64,
    S64,
    F64,
}

#[derive(Clone, Debug, Deserialize)]
struct BufferEntry {
    name: String,
    address: u32,
    bytes: usize,
    init_file: Option<String>,
    init: Option<String>,
}

#[derive(Clone, Debug, Deserialize)]
struct ExpectEntry {
    buffer: String,
    #[serde(default)]
    offset: usize,
    bytes: usize,
    elem: String,
    file: String,
    tolerance: Tolerance,
}

#[derive(Clone, Copy, Debug, Deserialize)]
struct Tolerance {
    #[serde(default)]
    exact: bool,
    #[serde(default)]
    abs: f64,
    #[serde(default)]
    rel: f64,
}

/// Bytes of a buffer in a manifest, at most: 1 GiB.
const BUFFER_LIMIT: usize = 1 << 30;

impl Manifest {
    /// The manifest in these bytes; `None` when they are something else.
    pub fn parse(bytes: &[u8]) -> Option<Result<Manifest, String>> {
        let value: serde_json::Value = serde_json::from_slice(bytes).ok()?;
        let object = value.as_object()?;
        if !["binary", "launches", "buffers"].iter().all(|key| object.contains_key(*key)) {
            return None;
        }
        Some(serde_json::from_value(value).map_err(|error| error.to_string()))
    }

    /// The files with the contents of buffers, relative to the manifest.
    pub fn files(&self) -> impl Iterator<Item = &str> {
        let inits = self.buffers.iter().filter_map(|buffer| buffer.init_file.as_deref());
        inits.chain(self.expect.iter().map(|expect| expect.file.as_str()))
    }

    /// Runs the launches on the programs of `image` and compares what they leave. The outputs are the buffers.
    ///
    /// # Errors
    /// [`Error::Trap`] is the program's fault, the others are the manifest's.
    pub fn run(
        &self,
        image: &Image,
        mode_name: Option<&str>,
        how: How,
        files: &dyn Files,
    ) -> Result<RunResult, Error> {
        let (mode, engine, level) = (mode(mode_name)?, how.engine(), how.level);
        let options = Options { mode, engine, level, ..Options::default() };
        let chip = chip(Some(&self.arch))?;
        let mut memory = self.memory(files)?;
        let mut result = RunResult::default();
        for launch in &self.launches {
            let program = self.program(image, launch)?;
            let compute = self.compute(launch, image, program, chip, memory)?;
            let outcome = finished(reconverge_tesla::run::run(Launch::Compute(compute), program, &options))?;
            result.statistics.add(&outcome.statistics);
            result.report.add(&outcome.report);
            memory = outcome.memory;
        }
        self.compare(&memory, &mut result, files)?;
        Ok(result)
    }

    fn program<'a>(&self, image: &'a Image, launch: &LaunchEntry) -> Result<&'a Program, Error> {
        let found = match &launch.kernel {
            None => image.programs.first(),
            Some(name) => image.programs.iter().find(|program| program.name.as_deref() == Some(name)),
        };
        found.ok_or_else(|| Error::Name {
            place: "kernel".to_owned(),
            found: launch.kernel.clone().unwrap_or_default(),
            help: {
                let names: Vec<&str> =
                    image.programs.iter().filter_map(|program| program.name.as_deref()).collect();
                format!("the file has {}", names.join(", "))
            },
        })
    }

    fn memory(&self, files: &dyn Files) -> Result<Memory, Error> {
        let buffers = self.buffers.iter().map(|buffer| {
            let wrong = |why: String| Error::Machine(format!("buffer {}: {why}", buffer.name));
            if buffer.bytes > BUFFER_LIMIT {
                return Err(wrong(format!("{} bytes; at most {BUFFER_LIMIT} fit", buffer.bytes)));
            }
            let mut bytes = match (&buffer.init_file, buffer.init.as_deref()) {
                (Some(file), _) => files.read(file).map_err(|why| wrong(format!("{file}: {why}")))?,
                (None, None | Some("zero")) => Vec::new(),
                (None, Some(other)) => return Err(wrong(format!("init `{other}`; only `zero` is known"))),
            };
            bytes.resize(buffer.bytes, 0);
            Ok(Buffer { address: buffer.address, bytes })
        });
        let buffers = buffers.collect::<Result<_, Error>>()?;
        Memory::new(buffers).map_err(|error| impossible(LaunchError::Memory(error)))
    }

    fn compute(
        &self,
        launch: &LaunchEntry,
        image: &Image,
        program: &Program,
        chip: Chip,
        memory: Memory,
    ) -> Result<Compute, Error> {
        let mut compute = Compute::of(program, chip).map_err(impossible)?;
        let constants = &mut compute.setup.constants;
        for block in image.constants_of(program) {
            if !constants.place(block.bank as usize, block.offset as usize, &block.bytes) {
                return Err(impossible(LaunchError::Constants { bank: block.bank, offset: block.offset }));
            }
        }
        for (bank, digits) in self.constants.iter().chain(&self.user_constants) {
            let number = bank.strip_prefix('c').and_then(|digits| digits.parse().ok());
            let placed =
                number.zip(hex_bytes(digits)).is_some_and(|(bank, bytes)| constants.place(bank, 0, &bytes));
            if !placed {
                return Err(Error::Machine(format!(
                    "constants {bank}: not a bank c0 to c15 with hexadecimal bytes"
                )));
            }
        }
        let side = |sizes: &[u32], axis: usize| sizes.get(axis).copied().unwrap_or(1);
        compute.grid = [0, 1].map(|axis| side(&launch.grid, axis));
        compute.block = [0, 1, 2].map(|axis| side(&launch.block, axis));
        compute.dynamic_shared = launch.dynamic_shared_bytes;
        compute.params = self.parameters(launch)?;
        compute.memory = memory;
        Ok(compute)
    }

    fn parameters(&self, launch: &LaunchEntry) -> Result<Vec<u8>, Error> {
        let mut area = Vec::new();
        for param in &launch.params {
            let wrong = |why: &str| Error::Machine(format!("parameter {}: {why}", param.name));
            let number = param.value.as_ref();
            let integer =
                || number.and_then(|number| number.as_u64().or(number.as_i64().map(|value| value as u64)));
            let float = || number.and_then(serde_json::Number::as_f64);
            let value = match param.kind {
                ParamKind::Buffer => {
                    let name = param.buffer.as_deref();
                    let buffer = self.buffers.iter().find(|buffer| Some(buffer.name.as_str()) == name);
                    buffer.map(|buffer| u64::from(buffer.address))
                }
                ParamKind::F32 => float().map(|value| u64::from((value as f32).to_bits())),
                ParamKind::F64 => float().map(f64::to_bits),
                ParamKind::U32 | ParamKind::S32 | ParamKind::U64 | ParamKind::S64 => integer(),
            };
            let value = value.ok_or_else(|| wrong("it has no value of its kind"))?;
            let end = param.offset.saturating_add(param.bytes);
            if !(1..=8).contains(&param.bytes) || end > reconverge_tesla::launch::MOST_SHARED as usize {
                return Err(wrong("it does not lie in the parameter area"));
            }
            area.resize(area.len().max(end), 0);
            area[param.offset..end].copy_from_slice(&value.to_le_bytes()[..param.bytes]);
        }
        Ok(area)
    }

    fn compare(&self, memory: &Memory, result: &mut RunResult, files: &dyn Files) -> Result<(), Error> {
        for buffer in &self.buffers {
            let elem = self
                .expect
                .iter()
                .find(|expect| expect.buffer == buffer.name)
                .map(|expect| expect.elem.as_str());
            let dtype = elem.and_then(element).filter(|dtype| buffer.bytes.is_multiple_of(dtype.bytes()));
            let dtype = dtype.unwrap_or(Dtype::U8);
            let bytes = memory.bytes(buffer.address, buffer.bytes).unwrap_or_default().to_vec();
            let shape = vec![bytes.len() / dtype.bytes()];
            result.outputs.push((buffer.name.clone(), Array { dtype, shape, bytes }));
        }
        for expect in &self.expect {
            let place = format!("expect {}", expect.buffer);
            let wrong = |why: String| Error::Machine(format!("{place}: {why}"));
            let dtype =
                element(&expect.elem).ok_or_else(|| wrong(format!("element type `{}`", expect.elem)))?;
            let buffer = self.buffers.iter().find(|buffer| buffer.name == expect.buffer);
            let buffer = buffer.ok_or_else(|| wrong("there is no such buffer".to_owned()))?;
            let end = expect.offset.saturating_add(expect.bytes);
            if end > buffer.bytes {
                return Err(wrong(format!("it ends at byte {end} of {}", buffer.bytes)));
            }
            let found =
                memory.bytes(buffer.address, buffer.bytes).unwrap_or_default()[expect.offset..end].to_vec();
            let wanted = files.read(&expect.file).map_err(|why| wrong(format!("{}: {why}", expect.file)))?;
            let wanted =
                wanted.get(..expect.bytes).ok_or_else(|| wrong(format!("{} is too short", expect.file)))?;
            let mismatch = if expect.tolerance.exact {
                let differ = found.iter().zip(wanted).position(|(found, wanted)| found != wanted);
                differ.map(|at| {
                    format!("byte {} is {:#04x}, expected {:#04x}", expect.offset + at, found[at], wanted[at])
                })
            } else {
                let array = |bytes: Vec<u8>| Array { dtype, shape: vec![bytes.len() / dtype.bytes()], bytes };
                difference(&array(wanted.to_vec()), &array(found), expect.tolerance.abs, expect.tolerance.rel)
            };
            result.mismatches.extend(mismatch.map(|why| format!("{place}: {why}")));
        }
        let Statistics { lane_instructions, .. } = result.statistics;
        if let Some(wanted) = self.thread_instructions.filter(|wanted| *wanted != lane_instructions) {
            result.mismatches.push(format!("{lane_instructions} thread instructions, expected {wanted}"));
        }
        Ok(())
    }
}

/// The element type of this name; `s32` as well as `i32`.
fn element(name: &str) -> Option<Dtype> {
    Dtype::from_name(&name.replace('s', "i"))
}

fn hex_bytes(digits: &str) -> Option<Vec<u8>> {
    let digits: Vec<u8> =
        digits.chars().map(|digit| digit.to_digit(16).map(|digit| digit as u8)).collect::<Option<_>>()?;
    let (pairs, rest) = digits.as_chunks::<2>();
    rest.is_empty().then(|| pairs.iter().map(|[high, low]| high << 4 | low).collect())
}
