//! Run manifests. A manifest is a JSON file. The file names a binary, and has buffers at fixed addresses, a sequence of
//! launches, and the expected contents of the buffers.

use std::collections::BTreeMap;
use std::sync::Arc;

use reconverge_isa::limits::room;
use reconverge_isa::{Image, Isa, Program};
use reconverge_simt::{Options, Statistics};
use serde::Deserialize;

use crate::array::{Array, Dtype};
use crate::error::Error;
use crate::keys::{complaint, json_line, unknown_key};
use crate::launch::{LaunchFile, choose_program};
use crate::open::Opened;
use crate::request::Common;
use crate::result::{RunResult, bit_difference, difference};
use crate::session::Session;
use crate::tesla::launch::{BufferValues, ConstantValues, Launch, ParamValue};
use crate::trapped::look;
use crate::values::Files;

/// A run manifest.
///
/// The parser ignores fields whose names begin with `_`. These fields tell readers the origin and the purpose of the
/// manifest.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Manifest {
    /// Name of the manifest.
    pub id: String,
    /// The machine.
    pub isa: String,
    /// The chip or the architecture.
    pub arch: String,
    /// Path of the program's file. The path is relative to the parent of the folder that contains the manifest.
    pub binary: String,
    /// The launches, in order. The contents of memory persist from one launch to the next launch.
    launches: Vec<LaunchEntry>,
    /// Buffers in global memory.
    buffers: Vec<BufferEntry>,
    /// Contents of the constant banks that the program's file defines. A key is the name of a bank, such as `c1`. The
    /// value is the contents of the bank in hexadecimal.
    #[serde(default)]
    constants: BTreeMap<String, String>,
    /// Bytes that the host writes to the start of constant banks.
    #[serde(default)]
    user_constants: BTreeMap<String, String>,
    /// Expected contents of buffers.
    #[serde(default)]
    expect: Vec<ExpectEntry>,
    /// Expected number of executed instructions, summed over all threads.
    thread_instructions: Option<u64>,
    #[serde(rename = "schema", default)]
    _schema: Note,
    #[serde(rename = "what", default)]
    _what: Note,
    #[serde(rename = "features", default)]
    _features: Note,
    #[serde(rename = "happened", default)]
    _happened: Note,
    #[serde(rename = "binary_sha256", default)]
    _binary_sha256: Note,
}

/// The type of a field that the parser ignores.
type Note = Option<serde::de::IgnoredAny>;

#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
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
#[serde(deny_unknown_fields)]
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
#[serde(deny_unknown_fields)]
struct BufferEntry {
    name: String,
    address: u32,
    bytes: usize,
    init_file: Option<String>,
    init: Option<String>,
    #[serde(rename = "rule", default)]
    _rule: Note,
}

#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct ExpectEntry {
    buffer: String,
    #[serde(default)]
    offset: usize,
    bytes: usize,
    elem: String,
    file: String,
    tolerance: Tolerance,
    #[serde(rename = "rule", default)]
    _rule: Note,
}

#[derive(Clone, Copy, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Tolerance {
    #[serde(default)]
    exact: bool,
    #[serde(default)]
    abs: f64,
    #[serde(default)]
    rel: f64,
}

impl LaunchEntry {
    /// Returns the program that the launch names. If the launch does not name a program, returns the first program.
    fn program<'a>(&self, image: &'a Image) -> Result<&'a Program, Error> {
        match &self.kernel {
            None => image
                .programs
                .first()
                .ok_or_else(|| Error::Machine("no program found in the file".to_owned())),
            Some(kernel) => choose_program(image, Some(kernel)),
        }
    }
}

impl Manifest {
    /// The machine of all run manifests.
    pub const ISA: Isa = Isa::Tesla;

    /// Parses a manifest. Returns `None` if the bytes are not a manifest. If the manifest has an unknown key, the error
    /// message begins with the key's line number.
    pub fn parse(bytes: &[u8]) -> Option<Result<Manifest, String>> {
        let value: serde_json::Value = serde_json::from_slice(bytes).ok()?;
        let object = value.as_object()?;
        if !["binary", "launches", "buffers"].iter().all(|key| object.contains_key(*key)) {
            return None;
        }
        let refused = |error: serde_path_to_error::Error<serde_json::Error>| {
            let message = error.inner().to_string();
            let key = unknown_key(&message);
            let line = key.and_then(|key| json_line(std::str::from_utf8(bytes).ok()?, key));
            let line = line.map(|line| format!("line {line}: ")).unwrap_or_default();
            format!("{line}at {}: {}", error.path(), complaint(&message, &[]))
        };
        Some(serde_path_to_error::deserialize(value).map_err(refused))
    }

    /// Runs the launches with the programs of `opened`. Then compares the buffers with the expected contents of the
    /// buffers. The buffers are the outputs of the result.
    ///
    /// # Errors
    /// Returns [`Error::Trap`] if a program traps, and [`Error::Differ`] if the engines differ. All other errors are
    /// about the manifest.
    pub fn run(&self, opened: &Opened, options: &Options, files: &dyn Files) -> Result<RunResult, Error> {
        let image = &opened.image;
        let mut buffers = self.memory(files)?;
        let mut result = RunResult::default();
        for launch in &self.launches {
            let program = launch.program(image)?;
            let launch = self.launch(launch, &buffers)?;
            let left = launch.run(image, program, options, files).map_err(|error| match error {
                Error::Trap(mut trapped) => {
                    if let Ok(session) = launch.prepare(image, program, files) {
                        look(&mut trapped, opened, program, &session, options);
                    }
                    Error::Trap(trapped)
                }
                error => error,
            })?;
            result.statistics.add(&left.statistics);
            result.report.add(&left.report);
            result.shares.add(&left.shares);
            result.findings.extend(left.findings);
            for (buffer, (_, array)) in buffers.iter_mut().zip(left.outputs) {
                buffer.values = array.into();
            }
        }
        self.compare(&buffers, &mut result, files)?;
        Ok(result)
    }

    /// Returns a session for the only launch of the manifest, and the program of the launch. The session has not
    /// executed an instruction.
    ///
    /// # Errors
    /// Returns an error if the manifest has several launches. Each launch uses the memory contents from the previous
    /// launch, so the launches cannot run separately. All other errors are about the manifest.
    pub fn prepare(&self, image: &Image, files: &dyn Files) -> Result<(Session, Program), Error> {
        let [entry] = &self.launches[..] else {
            let count = self.launches.len();
            return Err(Error::Machine(format!("a manifest of {count} launches can only be run as a whole")));
        };
        let program = entry.program(image)?;
        let session = self.launch(entry, &self.memory(files)?)?.prepare(image, program, files)?;
        Ok((session, program.clone()))
    }

    /// Returns the buffers with their initial contents.
    fn memory(&self, files: &dyn Files) -> Result<Vec<BufferValues>, Error> {
        let buffers = self.buffers.iter().map(|buffer| {
            let wrong = |why: String| Error::Machine(format!("buffer {}: {why}", buffer.name));
            room(buffer.bytes as u64, 4).map_err(|why| wrong(why.to_string()))?;
            let mut bytes = match (&buffer.init_file, buffer.init.as_deref()) {
                (Some(file), _) => files.read(file).map_err(|why| wrong(format!("{file}: {why}")))?,
                (None, None | Some("zero")) => Vec::new(),
                (None, Some(other)) => return Err(wrong(format!("unknown init `{other}`: expected `zero`"))),
            };
            bytes.resize(buffer.bytes, 0);
            let (name, address) = (buffer.name.clone(), buffer.address);
            let values = Array::from_bytes(bytes).into();
            Ok(BufferValues { name, address: Some(address), segment: None, values })
        });
        buffers.collect()
    }

    /// Returns the launch that `entry` describes. `buffers` are the current contents of memory.
    fn launch(&self, entry: &LaunchEntry, buffers: &[BufferValues]) -> Result<LaunchFile, Error> {
        let mut constant = Vec::new();
        for (bank, digits) in self.constants.iter().chain(&self.user_constants) {
            let number = bank.strip_prefix('c').and_then(|digits| digits.parse().ok());
            let (bank, bytes) = number.zip(hex_bytes(digits)).ok_or_else(|| {
                Error::Machine(format!("constants {bank}: expected a bank c0 to c15 with hexadecimal bytes"))
            })?;
            constant.push(ConstantValues { bank, offset: 0, values: Array::from_bytes(bytes).into() });
        }
        let own = Launch {
            grid: entry.grid.clone(),
            block: entry.block.clone(),
            shared: Some(entry.dynamic_shared_bytes),
            // A manifest records a run that took place. So the launch does not check the block size of the run against
            // the limits of the chip.
            oversized: true,
            param: self.parameters(entry)?,
            buffer: buffers.to_vec(),
            constant,
            ..Launch::default()
        };
        let common = Common { chip: Some(self.arch.clone()), ..Common::default() };
        Ok(LaunchFile { isa: Manifest::ISA, common, machine: Arc::new(own) })
    }

    fn parameters(&self, launch: &LaunchEntry) -> Result<Vec<ParamValue>, Error> {
        let mut params = Vec::new();
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
            let value = value.ok_or_else(|| wrong("expected a value of the stated kind"))?;
            let offset = u32::try_from(param.offset).ok().filter(|_| (1..=8).contains(&param.bytes));
            let offset = offset.ok_or_else(|| wrong("expected a 32-bit offset and 1 to 8 bytes"))?;
            let bytes = value.to_le_bytes()[..param.bytes].to_vec();
            params.push(ParamValue {
                name: param.name.clone(),
                value: Some(Array::from_bytes(bytes).into()),
                offset: Some(offset),
                ..ParamValue::default()
            });
        }
        Ok(params)
    }

    fn compare(
        &self,
        memory: &[BufferValues],
        result: &mut RunResult,
        files: &dyn Files,
    ) -> Result<(), Error> {
        for (buffer, left) in self.buffers.iter().zip(memory) {
            let expect = self.expect.iter().find(|expect| expect.buffer == buffer.name);
            let dtype = expect.and_then(|expect| element(&expect.elem));
            let dtype = dtype.filter(|dtype| buffer.bytes.is_multiple_of(dtype.bytes())).unwrap_or(Dtype::U8);
            let bytes = left.values.load(&buffer.name, files)?.array.bytes;
            let shape = vec![bytes.len() / dtype.bytes()];
            result.outputs.push((buffer.name.clone(), Array { dtype, shape, bytes }));
        }
        for expect in &self.expect {
            let place = format!("expect {}", expect.buffer);
            let wrong = |why: String| Error::Machine(format!("{place}: {why}"));
            let dtype =
                element(&expect.elem).ok_or_else(|| wrong(format!("element type `{}`", expect.elem)))?;
            let found = result.outputs.iter().find(|(name, _)| *name == expect.buffer);
            let (_, found) = found.ok_or_else(|| wrong("unknown buffer".to_owned()))?;
            let end = expect.offset.saturating_add(expect.bytes);
            let found = found.bytes.get(expect.offset..end);
            let found = found
                .ok_or_else(|| {
                    wrong(format!("the expected bytes end at byte {end}, after the end of the buffer"))
                })?
                .to_vec();
            let wanted = files.read(&expect.file).map_err(|why| wrong(format!("{}: {why}", expect.file)))?;
            let wanted =
                wanted.get(..expect.bytes).ok_or_else(|| wrong(format!("{} is too short", expect.file)))?;
            // If the length of the buffer is not a multiple of the element size, the function compares bytes.
            let dtype = if found.len().is_multiple_of(dtype.bytes()) { dtype } else { Dtype::U8 };
            let array = |bytes: Vec<u8>| Array { dtype, shape: vec![bytes.len() / dtype.bytes()], bytes };
            let (wanted, found) = (array(wanted.to_vec()), array(found));
            let mismatch = if expect.tolerance.exact {
                bit_difference(&wanted, &found, expect.offset)
            } else {
                difference(&expect.buffer, &wanted, &found, expect.tolerance.abs, expect.tolerance.rel)
            };
            result.mismatches.extend(mismatch.map(|why| format!("{place}: {why}")));
        }
        let Statistics { lane_instructions, .. } = result.statistics;
        if let Some(wanted) = self.thread_instructions.filter(|wanted| *wanted != lane_instructions) {
            result
                .mismatches
                .push(format!("expected {wanted} thread instructions, found {lane_instructions}"));
        }
        Ok(())
    }
}

/// Returns the element type with this name. `s32` means `i32`.
fn element(name: &str) -> Option<Dtype> {
    Dtype::from_name(&name.replace('s', "i"))
}

fn hex_bytes(digits: &str) -> Option<Vec<u8>> {
    let digits: Vec<u8> =
        digits.chars().map(|digit| digit.to_digit(16).map(|digit| digit as u8)).collect::<Option<_>>()?;
    let (pairs, rest) = digits.as_chunks::<2>();
    rest.is_empty().then(|| pairs.iter().map(|[high, low]| high << 4 | low).collect())
}
