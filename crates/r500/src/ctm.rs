//! The CTM programming model: a domain of index pairs, typed linear memory, conditional and scattered outputs.
//!
//! The processor array runs the program once for each pair (i, j) of a domain, as if each ran alone (CTM guide
//! pp. 3-5). Inputs are fetched with unscaled texture instructions, cached outputs go to (i, j) of up to four
//! buffers when the program ends, uncached outputs go anywhere at once, and a conditional buffer may decide
//! which pairs run or write.
//!
//! What the guide's available pages leave out, and what stands here instead: where (i, j) arrives
//! ([`INDEX_TEMP`]), tiled layouts (refused), how integers become floats ([`Format`]), the commands that set
//! instruction and constant buffers and start a domain (here: [`Dispatch`]).

use std::sync::Arc;

use reconverge_isa::{names, word};
use reconverge_simt::fidelity::Report;
use reconverge_simt::{Engine, Mask, Silent, Statistics};
use thiserror::Error;

use crate::fast::{Fast, lockstep};
use crate::inst::{SAMPLERS, TARGETS};
use crate::launch::{Finding, Input, Launch, Options, RunError, Setup};
use crate::outputs::LaneOutput;
use crate::reference::Group;
use crate::words::{Target, TexOp};

names! {
    /// How elements are laid out. (CTM guide, format parameter)
    pub enum Tiling(2) {
        LINEAR = 0,
        /// The layout is not documented in the available pages; refused.
        TILED = 1,
        /// Inputs only: one fetch gives four neighbours of a single-channel buffer.
        LINEAR_INP_2X2 = 2,
        /// The layout is not documented in the available pages; refused.
        TILED_INP_2X2 = 3,
    }

    /// Type of an element; 5 to 7 are reserved. Integers read as value / maximum, absent channels as 0
    /// (recommended, r500.md Q21).
    pub enum Format(3) { UINT16_1 = 0, UINT8_4 = 1, FLOAT32_1 = 2, FLOAT32_2 = 3, FLOAT32_4 = 4 }

    /// Conditional test: v, the conditional value, against b, the buffer's. (set_cond_test)
    pub enum CondTest(3) {
        NEVER = 0, LESS = 1, LESS_EQUAL = 2, EQUAL = 3, GREATER_EQUAL = 4, GREATER = 5, NOT_EQUAL = 6, ALWAYS = 7,
    }

    /// Where the test applies. (set_cond_loc)
    pub enum CondLoc(1) {
        /// When a program ends: its outputs are sent or not.
        DPP = 0,
        /// Before a pair is scheduled: it runs or not.
        PE = 1,
    }
}

word! {
    /// The format parameter of set_inp_fmt, set_out_fmt and set_cond_out_fmt. (CTM guide p. 6)
    pub struct FormatParam(u32) = "FORMAT" {
        /// Pitch divided by four.
        pitch4: u16 [12:2],
        tiling: Tiling [17:16],
        format: Format [26:24],
    }
}

/// The temporary that holds i in red and j in green at the start; blue and alpha are 0. The page that says where
/// was not available; temporary 0 is where a driver routes the first coordinate. (r500.md Q3)
pub const INDEX_TEMP: u8 = 0;

impl Format {
    /// Bytes of an element.
    pub const fn bytes(self) -> u32 {
        match self {
            Format::UINT16_1 => 2,
            Format::UINT8_4 | Format::FLOAT32_1 => 4,
            Format::FLOAT32_2 => 8,
            Format::FLOAT32_4 => 16,
        }
    }

    /// Channels of an element.
    pub const fn channels(self) -> usize {
        match self {
            Format::UINT16_1 | Format::FLOAT32_1 => 1,
            Format::FLOAT32_2 => 2,
            Format::UINT8_4 | Format::FLOAT32_4 => 4,
        }
    }
}

impl CondTest {
    /// Whether v passes against b. Comparisons with a NaN fail, except "not equal".
    pub fn passes(self, v: f32, b: f32) -> bool {
        match self {
            CondTest::NEVER => false,
            CondTest::LESS => v < b,
            CondTest::LESS_EQUAL => v <= b,
            CondTest::EQUAL => v == b,
            CondTest::GREATER_EQUAL => v >= b,
            CondTest::GREATER => v > b,
            CondTest::NOT_EQUAL => v != b,
            CondTest::ALWAYS => true,
        }
    }
}

/// A typed 1D or 2D buffer in memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Surface {
    /// First byte, a multiple of 2048 on hardware.
    pub base: u32,
    /// Elements from one row to the next.
    pub pitch: u32,
    /// Rows.
    pub height: u32,
    /// Type of an element.
    pub format: Format,
    /// Layout.
    pub tiling: Tiling,
}

/// A memory access that the model does not allow, or that the documents do not describe.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum AccessError {
    /// Tiled layouts.
    #[error("tiling {0} is not documented in the available pages of the CTM guide: use LINEAR")]
    Tiled(Tiling),
    /// Outside the surface.
    #[error("element ({x}, {y}) lies outside the buffer of {width} x {height} elements")]
    Outside {
        /// Column.
        x: i64,
        /// Row.
        y: i64,
        /// Elements a row.
        width: u32,
        /// Rows.
        height: u32,
    },
    /// Inside the surface but outside memory.
    #[error("byte address {address:#x} lies outside the memory of {size:#x} bytes")]
    OutsideMemory {
        /// The address.
        address: u64,
        /// Bytes there are.
        size: usize,
    },
    /// A fetch other than a plain unscaled one.
    #[error("{0} on a CTM input: inputs are addressed by unscaled index pairs with LD (CTM guide p. 4)")]
    Fetch(&'static str),
    /// 2 x 2 fetches need one channel.
    #[error("INP_2X2 is undefined for {0}: it has several channels (CTM guide p. 6)")]
    Neighbours(Format),
    /// A scatter into elements that are not one 32-bit value.
    #[error("an uncached output writes one 32-bit value: format {0} has no documented meaning for it")]
    ScatterFormat(Format),
    /// An uncached OUT while no buffer is bound.
    #[error("an uncached output is written but output 0 is not bound to a buffer")]
    NoScatterTarget,
    /// An uncached output writes all four channels or none. (Strict; CTM guide p. 31)
    #[error("an uncached OUT needs all of RGB_OMASK and ALPHA_OMASK, or none")]
    PartialScatter,
    /// The alpha channel of an uncached output must be 0. (Strict; CTM guide p. 31)
    #[error("the alpha channel of an uncached OUT must be 0")]
    ScatterAlpha,
    /// RNDR_TGT_UMRT_SAME_IDX with different positions. (Strict; CTM guide p. 31)
    #[error("an uncached OUT with one index for all lanes was given different ones")]
    IndexDiffers,
}

/// A variant of an uncached output. (CTM guide p. 31; numbers in the order of its list, r500.md Q19)
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Scatter {
    /// All lanes write to the same index.
    pub same_index: bool,
    /// The texture semaphore is acquired.
    pub acquire: bool,
}

impl Scatter {
    /// The variant that the RGB unit's TARGET selects.
    pub const fn from_target(target: Target) -> Scatter {
        match target {
            Target::A => Scatter { same_index: true, acquire: false },
            Target::B => Scatter { same_index: true, acquire: true },
            Target::C => Scatter { same_index: false, acquire: false },
            Target::D => Scatter { same_index: false, acquire: true },
        }
    }
}

impl Surface {
    /// Byte address of an element: base + (y * pitch + x) * size. (Recommended: the guide's formula is a figure)
    ///
    /// # Errors
    /// Tiled layouts, and positions outside.
    pub fn address(&self, x: i64, y: i64) -> Result<u64, AccessError> {
        if matches!(self.tiling, Tiling::TILED | Tiling::TILED_INP_2X2) {
            return Err(AccessError::Tiled(self.tiling));
        }
        if !(0..i64::from(self.pitch)).contains(&x) || !(0..i64::from(self.height)).contains(&y) {
            return Err(AccessError::Outside { x, y, width: self.pitch, height: self.height });
        }
        let element = y as u64 * u64::from(self.pitch) + x as u64;
        Ok(u64::from(self.base) + element * u64::from(self.format.bytes()))
    }

    /// Bits of the four channels of an element.
    ///
    /// # Errors
    /// See [`AccessError`].
    pub fn load(&self, memory: &[u8], x: i64, y: i64) -> Result<[u32; 4], AccessError> {
        let address = self.address(x, y)?;
        let bytes = self.format.bytes() as usize;
        let element = usize::try_from(address)
            .ok()
            .and_then(|start| memory.get(start..start.checked_add(bytes)?))
            .ok_or(AccessError::OutsideMemory { address, size: memory.len() })?;
        let mut value = [0u32; 4];
        match self.format {
            Format::UINT16_1 => {
                value[0] = (f32::from(u16::from_le_bytes([element[0], element[1]])) / 65535.0).to_bits();
            }
            Format::UINT8_4 => {
                for (channel, byte) in value.iter_mut().zip(element) {
                    *channel = (f32::from(*byte) / 255.0).to_bits();
                }
            }
            Format::FLOAT32_1 | Format::FLOAT32_2 | Format::FLOAT32_4 => {
                for (channel, word) in value.iter_mut().zip(element.as_chunks::<4>().0) {
                    *channel = u32::from_le_bytes(*word);
                }
            }
        }
        Ok(value)
    }

    /// Writes the channels that the format has. Integer formats clamp to 0..1 and round to nearest.
    ///
    /// # Errors
    /// See [`AccessError`].
    pub fn store(&self, memory: &mut [u8], x: i64, y: i64, value: [u32; 4]) -> Result<(), AccessError> {
        let unorm = |bits: u32, max: f32| (crate::lane::clamp(f32::from_bits(bits)) * max).round_ties_even();
        let mut bytes = [0u8; 16];
        match self.format {
            Format::UINT16_1 => {
                bytes[..2].copy_from_slice(&(unorm(value[0], 65535.0) as u16).to_le_bytes());
            }
            Format::UINT8_4 => {
                for (byte, bits) in bytes.iter_mut().zip(value) {
                    *byte = unorm(bits, 255.0) as u8;
                }
            }
            Format::FLOAT32_1 | Format::FLOAT32_2 | Format::FLOAT32_4 => {
                for (word, bits) in bytes.as_chunks_mut::<4>().0.iter_mut().zip(value) {
                    *word = bits.to_le_bytes();
                }
            }
        }
        self.write(memory, x, y, &bytes[..self.format.bytes() as usize]).map(|_| ())
    }

    fn write(&self, memory: &mut [u8], x: i64, y: i64, bytes: &[u8]) -> Result<u64, AccessError> {
        let address = self.address(x, y)?;
        let size = memory.len();
        usize::try_from(address)
            .ok()
            .and_then(|start| memory.get_mut(start..start.checked_add(bytes.len())?))
            .ok_or(AccessError::OutsideMemory { address, size })?
            .copy_from_slice(bytes);
        Ok(address)
    }
}

/// What a thread sees of memory.
#[derive(Clone, Debug)]
pub(crate) struct Bound {
    pub(crate) memory: Vec<u8>,
    pub(crate) inputs: [Option<Surface>; SAMPLERS],
    pub(crate) scatter_target: Option<Surface>,
    pub(crate) uncached: bool,
}

impl Bound {
    pub(crate) fn has_input(&self, unit: u8) -> bool {
        self.inputs[usize::from(unit)].is_some()
    }

    /// A plain fetch at unscaled coordinates; index = floor(coordinate). (Recommended, r500.md Q13)
    pub(crate) fn fetch(
        &self,
        unit: u8,
        position: [f32; 4],
        op: TexOp,
        unscaled: bool,
    ) -> Result<[u32; 4], AccessError> {
        if op != TexOp::LD {
            return Err(AccessError::Fetch(op.name()));
        }
        if !unscaled {
            return Err(AccessError::Fetch("a scaled LD"));
        }
        let Some(surface) = &self.inputs[usize::from(unit)] else { return Ok([0; 4]) };
        let (x, y) = (index(position[0]), index(position[1]));
        if surface.tiling != Tiling::LINEAR_INP_2X2 {
            return surface.load(&self.memory, x, y);
        }
        if surface.format.channels() != 1 {
            return Err(AccessError::Neighbours(surface.format));
        }
        // CTM guide p. 6: the requested element comes back in the last channel.
        let mut value = [0; 4];
        for (channel, (dx, dy)) in value.iter_mut().zip([(1, 0), (0, 1), (1, 1), (0, 0)]) {
            *channel = surface.load(&self.memory, x + dx, y + dy)?[0];
        }
        Ok(value)
    }

    /// Writes one 32-bit value to output 0. Gives the byte address.
    pub(crate) fn scatter(&mut self, at: (f32, f32), bits: u32) -> Result<u32, AccessError> {
        let surface = self.scatter_target.ok_or(AccessError::NoScatterTarget)?;
        match surface.format {
            Format::FLOAT32_1 | Format::UINT8_4 => {}
            Format::UINT16_1 | Format::FLOAT32_2 | Format::FLOAT32_4 => {
                return Err(AccessError::ScatterFormat(surface.format));
            }
        }
        let address = surface.write(&mut self.memory, index(at.0), index(at.1), &bits.to_le_bytes())?;
        Ok(address as u32)
    }
}

/// The element that a coordinate names; NaN names none.
fn index(coordinate: f32) -> i64 {
    if coordinate.is_nan() { -1 } else { f64::from(coordinate).floor() as i64 }
}

/// A rectangle of index pairs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Domain {
    /// First i.
    pub i: u32,
    /// First j.
    pub j: u32,
    /// Pairs along i.
    pub width: u32,
    /// Pairs along j; 1 for a 1D domain.
    pub height: u32,
}

/// Indices are below this: a lane is handed its pair as two singles, which hold all integers up to here exactly.
pub const INDEX_LIMIT: u64 = 1 << 24;
/// Most pairs of a domain: the elements of four bytes that 32-bit addresses reach.
pub const MOST_PAIRS: u64 = 1 << 30;

impl Domain {
    /// Checks that indices and the number of pairs stay in bounds.
    fn check(self) -> Result<(), DispatchError> {
        let Domain { i, j, width, height } = self;
        let fits = |first: u32, count: u32| u64::from(first) + u64::from(count) <= INDEX_LIMIT;
        let few = u64::from(width) * u64::from(height) <= MOST_PAIRS;
        if fits(i, width) && fits(j, height) && few { Ok(()) } else { Err(DispatchError::Domain(self)) }
    }
}

/// The conditional operation unit. (CTM guide pp. 4-5)
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Conditional {
    /// The conditional buffer, addressed by (i, j).
    pub buffer: Surface,
    /// The test.
    pub test: CondTest,
    /// Where it applies.
    pub location: CondLoc,
    /// The processor execution unit's value, for [`CondLoc::PE`].
    pub value: f32,
    /// Writes the program's conditional value (W_OMASK) to the buffer where the outputs are written.
    /// (set_cond_out_mask; that W_OMASK carries it is inferred, r500.md Q18)
    pub write: bool,
}

/// One run over a domain.
#[derive(Clone, Debug)]
pub struct Dispatch {
    /// All memory, from address 0.
    pub memory: Vec<u8>,
    /// Input buffers by number, 0 to 15.
    pub inputs: Vec<(u8, Surface)>,
    /// Output buffers c0 to c3.
    pub outputs: [Option<Surface>; TARGETS],
    /// The program's outputs are uncached: they go to `outputs[0]` at once.
    pub uncached: bool,
    /// Conditional execution.
    pub conditional: Option<Conditional>,
    /// Float constants.
    pub constants: Vec<(u8, [u32; 4])>,
    /// The index pairs.
    pub domain: Domain,
    /// How to run.
    pub options: Options,
}

/// What a dispatch leaves.
#[derive(Clone, Debug, PartialEq)]
pub struct DispatchOutcome {
    /// Memory afterwards.
    pub memory: Vec<u8>,
    /// Counts over all threads.
    pub statistics: Statistics,
    /// What was executed, and how exact it was.
    pub report: Report,
    /// What strict mode objects to although nothing traps, of the first group that has such.
    pub finding: Option<Finding>,
}

/// Why a dispatch gave no outcome.
#[derive(Clone, Debug, PartialEq, Error)]
pub enum DispatchError {
    /// The program trapped or the launch does not fit.
    #[error(transparent)]
    Run(#[from] RunError),
    /// An output or the conditional buffer could not be accessed.
    #[error("pair ({i}, {j}): {error}")]
    Access {
        /// First index.
        i: u32,
        /// Second index.
        j: u32,
        /// What is wrong.
        error: AccessError,
    },
    /// The domain is larger than any that can run.
    #[error(
        "a domain of {} x {} pairs from ({}, {}) is too large: there are at most {MOST_PAIRS} pairs, and indices stay below \
         {INDEX_LIMIT}",
        .0.width, .0.height, .0.i, .0.j
    )]
    Domain(Domain),
    /// A program with cached outputs writes a target that has no buffer.
    #[error("the program writes output c{0}, which is not bound to a buffer")]
    NoOutput(usize),
}

/// One lane of a thread: its pair, and whether it belongs to the domain.
#[derive(Clone, Copy)]
struct Pair {
    i: u32,
    j: u32,
    covered: bool,
}

/// Runs a program over a domain: quads of 2 x 2 pairs, row by row, threads one after the other.
///
/// # Errors
/// See [`DispatchError`].
pub fn run(setup: &Arc<Setup>, dispatch: Dispatch) -> Result<DispatchOutcome, DispatchError> {
    let mut inputs = [None; SAMPLERS];
    for (number, surface) in &dispatch.inputs {
        *inputs
            .get_mut(usize::from(*number))
            .ok_or(RunError::Launch(crate::launch::LaunchError::TextureUnit(*number)))? = Some(*surface);
    }
    let mut outcome = DispatchOutcome {
        memory: dispatch.memory,
        statistics: Statistics::default(),
        report: Report::default(),
        finding: None,
    };
    dispatch.domain.check()?;
    let width = dispatch.options.group_width;
    let launch_of = |pairs: &[Pair]| Launch {
        lanes: pairs.len(),
        inputs: vec![Input {
            temp: INDEX_TEMP,
            values: pairs
                .iter()
                .map(|pair| [(pair.i as f32).to_bits(), (pair.j as f32).to_bits(), 0, 0])
                .collect(),
        }],
        constants: dispatch.constants.clone(),
        textures: Vec::new(),
        options: dispatch.options,
    };
    launch_of(&[]).check().map_err(RunError::from)?;
    let mut threads = Threads::new(setup, &launch_of(&[]), dispatch.uncached);
    let scatter_target = dispatch.outputs[0];
    let mut rest = quads(dispatch.domain);
    for first_lane in (0..).step_by(width) {
        let mut pairs: Vec<Pair> = rest.by_ref().take(width).collect();
        if pairs.is_empty() {
            break;
        }
        for pair in pairs.iter_mut().filter(|pair| pair.covered) {
            pair.covered = scheduled(dispatch.conditional.as_ref(), &outcome.memory, pair)?;
        }
        let covered = Mask::from_fn(pairs.len(), |lane| pairs[lane.index()].covered);
        if covered.is_empty() {
            continue;
        }
        let memory = std::mem::take(&mut outcome.memory);
        let bound = Bound { memory, inputs, scatter_target, uncached: dispatch.uncached };
        let group = threads.run(&launch_of(&pairs), bound, covered, first_lane)?;
        outcome.memory = group.take_ctm().map(|bound| bound.memory).unwrap_or_default();
        outcome.statistics.add(&group.statistics());
        outcome.finding = outcome.finding.or(Finding::of(group, first_lane));
        for lane in covered.lanes() {
            let output = group.output(lane.index());
            if !output.killed {
                send(
                    &dispatch.outputs,
                    dispatch.conditional.as_ref(),
                    &pairs[lane.index()],
                    &output,
                    &mut outcome.memory,
                )?;
            }
        }
    }
    outcome.report = threads.finish();
    Ok(outcome)
}

/// Threads one after another: what a later one reads may be what an earlier one wrote.
struct Threads<'a> {
    setup: &'a Arc<Setup>,
    engine: Engine,
    fast: Fast,
    /// The latest; the fast engine uses it again and again.
    group: Group,
    /// The fast engine's counts by block.
    runs: Vec<u64>,
    report: Report,
}

impl<'a> Threads<'a> {
    /// The launch is one of the dispatch's, without lanes.
    fn new(setup: &'a Arc<Setup>, launch: &Launch, uncached: bool) -> Self {
        let fast = Fast::with(setup, launch, uncached);
        let mut group = Group::new(setup, launch, 0, Mask::NONE);
        fast.prepare(&mut group);
        let runs = vec![0; fast.blocks()];
        Threads { setup, engine: launch.options.engine, fast, group, runs, report: Report::default() }
    }

    /// Runs a thread to its end: all lanes of `launch`. Gives it as it ended.
    fn run(
        &mut self,
        launch: &Launch,
        bound: Bound,
        covered: Mask,
        first_lane: usize,
    ) -> Result<&mut Group, RunError> {
        let lanes = Mask::first(launch.lanes);
        let trapped = |trap| RunError::Trap { first_lane, trap };
        if self.engine == Engine::Fast {
            self.group.restart(launch, 0, lanes, self.fast.written());
            self.group.bind_ctm(bound, covered);
            self.fast.run(&mut self.group, &mut self.runs, u64::MAX, &mut Silent).map_err(trapped)?;
            return Ok(&mut self.group);
        }
        self.group = Group::new(self.setup, launch, 0, lanes);
        self.group.bind_ctm(bound, covered);
        if self.engine == Engine::Lockstep {
            let mut twin = self.group.clone();
            self.fast.prepare(&mut twin);
            let ended = lockstep::run(&self.fast, self.group.clone(), twin);
            self.group = ended.map_err(|failure| failure.of_thread(first_lane))?;
        } else {
            self.group.run(&mut Silent).map_err(trapped)?;
        }
        self.report.add(&self.group.report());
        Ok(&mut self.group)
    }

    /// What was executed by all threads.
    fn finish(mut self) -> Report {
        if self.engine == Engine::Fast {
            self.fast.settle(&mut self.group, &mut self.runs);
            self.report.add(&self.group.report());
        }
        self.report
    }
}

/// The pairs of a domain in quads: top left, top right, bottom left, bottom right. Made one by one, so that the size of the
/// domain costs no memory.
fn quads(domain: Domain) -> impl Iterator<Item = Pair> {
    let Domain { i, j, width, height } = domain;
    (0..height).step_by(2).flat_map(move |y| {
        (0..width).step_by(2).flat_map(move |x| {
            [(0, 0), (1, 0), (0, 1), (1, 1)].map(|(dx, dy)| Pair {
                i: i + x + dx,
                j: j + y + dy,
                covered: x + dx < width && y + dy < height,
            })
        })
    })
}

/// Whether a pair runs at all: the test at the processor execution unit. (set_cond_loc = PE)
fn scheduled(conditional: Option<&Conditional>, memory: &[u8], pair: &Pair) -> Result<bool, DispatchError> {
    match conditional {
        Some(conditional) if conditional.location == CondLoc::PE => {
            tested(conditional, memory, pair, conditional.value)
        }
        _ => Ok(true),
    }
}

fn tested(conditional: &Conditional, memory: &[u8], pair: &Pair, v: f32) -> Result<bool, DispatchError> {
    let b = conditional
        .buffer
        .load(memory, i64::from(pair.i), i64::from(pair.j))
        .map_err(|error| DispatchError::Access { i: pair.i, j: pair.j, error })?;
    Ok(conditional.test.passes(v, f32::from_bits(b[0])))
}

/// Sends a lane's cached outputs, if the test at the end of the program passes. (CTM guide p. 4)
fn send(
    outputs: &[Option<Surface>; TARGETS],
    conditional: Option<&Conditional>,
    pair: &Pair,
    output: &LaneOutput,
    memory: &mut [u8],
) -> Result<(), DispatchError> {
    let value = f32::from_bits(output.depth.unwrap_or(0));
    if let Some(conditional) = conditional
        && conditional.location == CondLoc::DPP
        && !tested(conditional, memory, pair, value)?
    {
        return Ok(());
    }
    let (i, j) = (i64::from(pair.i), i64::from(pair.j));
    let at = |error| DispatchError::Access { i: pair.i, j: pair.j, error };
    for (number, surface) in outputs.iter().enumerate() {
        match surface {
            Some(surface) if output.written[number] != 0 => {
                surface.store(memory, i, j, output.color[number]).map_err(at)?;
            }
            None if output.written[number] != 0 => return Err(DispatchError::NoOutput(number)),
            _ => {}
        }
    }
    if let Some(conditional) = conditional
        && conditional.write
        && output.depth.is_some()
    {
        conditional.buffer.store(memory, i, j, [value.to_bits(), 0, 0, 0]).map_err(at)?;
    }
    Ok(())
}
