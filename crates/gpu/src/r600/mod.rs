//! The R600 and R700 families: the command processor, and the units that the command processor controls.
//!
//! | module | contents |
//! |---|---|
//! | `packet` | packets of a submission, with their relocations |
//! | `registers` | every register with its fields, and registers that do not change results |
//! | `state` | the registers of a context |
//! | `draw` | translation of registers to a draw |
//! | `program`, `shader`, `texture`, `format` | programs, with their constants and textures |
//! | `geometry` | geometry programs, between vertices and primitives |
//! | `stream` | stream-out of vertex programs |
//!
//! The sources are Mesa's driver of these chips (`src/gallium/drivers/r600`, mainly `r600d.h`) and streams captured
//! from the driver.

mod copied;
mod draw;
mod format;
mod geometry;
mod packet;
mod program;
mod registers;
mod shader;
mod state;
mod stream;
mod texture;

use std::mem::take;
use std::ops::Range;

use reconverge_board::errata::Errata;
use reconverge_r700::chip::Chip;
use reconverge_r700::outcome::Outcome;
use reconverge_raster::draw::{Counts, Draw, Vertices};
use reconverge_raster::primitive::{self, Topology};
use reconverge_raster::vertex::Vertex;
use reconverge_simt::limits::LANES;
use reconverge_simt::vram::Vram;
use reconverge_simt::{Engine, Mode, Options};

use crate::capture::{self, Watch};
use crate::numbers::Numbers;
use crate::observe::Captured;
use crate::unknown::Unknown;
use crate::{Fault, Submission, chip, pm4};
use draw::{PixelControl, PixelProgram, PixelRooms, VertexLayout};
use packet::{Packet, op};
use program::Largest;
use registers as reg;
use shader::{Context, PIXEL, Shader, Unit, VERTEX};
use state::State;
use stream::Streams;

/// Number of render backends, each of which stores one value for each occlusion query.
pub const BACKENDS: usize = 4;

/// Bit that marks the value of a query as valid.
const VALID: u64 = 1 << 63;

/// Maximum number of instructions of a wavefront. A wavefront that executes more instructions counts as hung.
const WATCHDOG: u64 = 1 << 24;

/// Event types of EVENT_WRITE.
mod event {
    pub(super) const ZPASS_DONE: u32 = 0x15;
    pub(super) const PIPELINESTAT_START: u32 = 0x19;
    pub(super) const PIPELINESTAT_STOP: u32 = 0x1a;
    pub(super) const SAMPLE_PIPELINESTAT: u32 = 0x1e;
    pub(super) const SO_VGTSTREAMOUT_FLUSH: u32 = 0x1f;
    pub(super) const SAMPLE_STREAMOUTSTATS: u32 = 0x20;
}

/// Counters of pipeline statistics.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Statistics {
    vertices: u64,
    primitives: u64,
    vertex_lanes: u64,
    geometry_lanes: u64,
    geometry_primitives: u64,
    clipper_in: u64,
    clipper_out: u64,
    /// Number of samples that passed all tests. Pipeline statistics report this number as the number of shaded pixels.
    pixels: u64,
}

impl Statistics {
    /// Returns the values that SAMPLE_PIPELINESTAT stores, in order. (Mesa `r600_query.c`,
    /// PIPE_QUERY_PIPELINE_STATISTICS)
    fn words(&self) -> [u64; 8] {
        [
            self.pixels,
            self.clipper_out,
            self.clipper_in,
            self.vertex_lanes,
            self.geometry_lanes,
            self.geometry_primitives,
            self.primitives,
            self.vertices,
        ]
    }
}

/// A chip of these families.
#[derive(Debug)]
pub struct R600 {
    chip: Chip,
    options: Options,
    state: State,
    /// Whether indices have 32 bits instead of 16.
    wide_indices: bool,
    instances: u32,
    /// Whether predicated packets are skipped.
    skips: bool,
    /// Sum of the query results that the predicate depends on.
    predicate: u64,
    /// Number of samples that have passed the tests. Samples count only while counting is on.
    passed: u64,
    streams: Streams,
    statistics: Statistics,
    /// Whether pipeline statistics and the statistics of stream-out are counted.
    counts_statistics: bool,
    /// Number of command words so far. This number serves as the time, so that results do not depend on the host's
    /// clock.
    time: u64,
    draws: u64,
    watch: Watch,
    /// State of the last draw, which the next draw may reuse.
    known: KeptDraw,
    /// Memory of the last draw, which the next draw reuses.
    memory: Option<Box<DrawMemory>>,
    indices: Vec<u32>,
    pixel_rooms: PixelRooms,
}

/// Memory of a draw, which the next draw reuses. Allocations would take a tenth of the time of a small draw.
#[derive(Debug, Default)]
struct DrawMemory {
    /// `values` contains the initial value of each vertex's first register. `runs` contains the runs of vertices.
    values: Vec<[u32; 4]>,
    runs: Vec<Vec<usize>>,
    /// `outcome` contains the results of the vertex program. `vertices` contains the vertices that result from
    /// `outcome`.
    outcome: Outcome,
    vertices: Vec<Vertex>,
}

/// Maximum number of vertices in the memory that the next draw reuses.
const SHADED: usize = 1 << 16;

/// State of a draw except for constants, vertices and texels. The next draw can reuse this state if no register has
/// changed. A part is `None` until a draw needs the part.
#[derive(Debug, Default)]
struct KeptDraw {
    /// The remaining fields were computed for this value of [`State::changes`] and these options.
    made_from: Option<(u64, Options)>,
    layout: Option<VertexLayout>,
    vertex: Option<Box<Shader>>,
    pixel: Option<(Box<Shader>, PixelControl)>,
    /// The state of a draw, for a topology, a viewport and a layer.
    draw: Option<((Topology, usize, u32), Box<Draw>)>,
}

impl R600 {
    /// Returns a chip in its state after a reset.
    pub fn new(chip: Chip) -> R600 {
        let options =
            Options { mode: Mode::Lenient, engine: Engine::Fast, watchdog: WATCHDOG, ..Options::default() };
        R600 {
            chip,
            options,
            state: State::default(),
            wide_indices: false,
            instances: 1,
            skips: false,
            predicate: 0,
            passed: 0,
            streams: Streams::default(),
            statistics: Statistics::default(),
            counts_statistics: true,
            time: 0,
            draws: 0,
            watch: Watch::default(),
            known: KeptDraw::default(),
            memory: None,
            indices: Vec::new(),
            pixel_rooms: PixelRooms::default(),
        }
    }

    /// Returns the chip with exactly the errata `errata`. A new chip has all errata.
    #[must_use]
    pub fn with_errata(mut self, errata: Errata) -> R600 {
        self.state.errata = errata;
        self
    }

    /// Returns the number of draws so far.
    pub fn draws(&self) -> u64 {
        self.draws
    }

    fn execute(&mut self, memory: Vram<'_>, packet: &Packet<'_>) -> Result<(), Fault> {
        self.time += 1 + packet.payload.len() as u64;
        if packet.kind.predicated && self.skips || self.state.set_packet(packet) {
            return Ok(());
        }
        let payload = packet.payload;
        let word = |number: usize| payload.get(number).copied().unwrap_or(0);
        match packet.kind.op {
            op::CONTEXT_CONTROL
            | op::START_3D_CMDBUF
            | op::SURFACE_SYNC
            | op::SURFACE_BASE_UPDATE
            | op::STRMOUT_BASE_UPDATE => {}
            // All earlier packets are complete, so no wait is needed.
            op::WAIT_REG_MEM => {}
            op::INDEX_TYPE => self.wide_indices = word(0) & 1 != 0,
            op::NUM_INSTANCES => self.instances = word(0),
            op::DRAW_INDEX_AUTO => {
                let mut count = word(0);
                if word(1) >> 6 & 1 != 0 {
                    // Draws the vertices that stream-out has written. The registers have the offset, the filled size
                    // and the stride, in dwords.
                    let of = |number| self.state.nth(reg::VGT_STRMOUT_DRAW_OPAQUE_OFFSET, number);
                    count = of(1).saturating_sub(of(0)) / of(2).max(1);
                }
                if self.fits(count as usize) {
                    let mut indices = take(&mut self.indices);
                    indices.clear();
                    indices.extend(0..count);
                    self.draw(memory, &indices)?;
                    if indices.len() <= SHADED {
                        self.indices = indices;
                    }
                }
            }
            op::DRAW_INDEX => {
                let place = address(packet, 0, word(0), word(1) & 0xff)?;
                let size = if self.wide_indices { 4 } else { 2 };
                let count = (word(2) as usize).min(place.len() / size);
                let range = place.start..place.start + count * size;
                let indices: Vec<u32> = match self.wide_indices {
                    true => memory.words(range),
                    false => {
                        let halves = memory.bytes(range);
                        halves.chunks_exact(2).map(|b| u16::from_le_bytes([b[0], b[1]]).into()).collect()
                    }
                };
                self.draw(memory, &indices)?;
            }
            op::DRAW_INDEX_IMMD => {
                let words = payload.get(2..).unwrap_or(&[]);
                let indices: Vec<u32> = match self.wide_indices {
                    true => words.to_vec(),
                    false => words.iter().flat_map(|word| [word & 0xffff, word >> 16]).collect(),
                };
                let count = (word(0) as usize).min(indices.len());
                self.draw(memory, &indices[..count])?;
            }
            op::CP_DMA => {
                let source = address(packet, 0, word(0), word(1) & 0xff)?;
                let target = address(packet, 1, word(2), word(3) & 0xff)?;
                let count = ((word(4) & 0x1f_ffff) as usize).min(source.len()).min(target.len());
                self.state.images.written(&(target.start..target.start + count));
                memory.copy_within(source.start..source.start + count, target.start);
            }
            op::MEM_WRITE => {
                let place = address(packet, 0, word(0), word(1) & 0xff)?;
                let value = u64::from(word(2)) | u64::from(word(3)) << 32;
                let bytes = if word(1) >> 18 & 1 != 0 { 4 } else { 8 };
                self.store(memory, &place, &value.to_le_bytes()[..bytes]);
            }
            op::EVENT_WRITE => self.event(memory, packet)?,
            op::EVENT_WRITE_EOP => {
                let place = address(packet, 0, word(1), word(2) & 0xffff)?;
                let value = (u64::from(word(3)) | u64::from(word(4)) << 32).to_le_bytes();
                match word(2) >> 29 {
                    1 => self.store(memory, &place, &value[..4]),
                    2 => self.store(memory, &place, &value),
                    3 => self.store(memory, &place, &self.time.to_le_bytes()),
                    _ => {}
                }
            }
            op::SET_PREDICATION => self.set_predication(memory, packet)?,
            op::STRMOUT_BUFFER_UPDATE => self.update_stream(memory, packet)?,
            op::COPY_DW => {
                let value = match word(0) & 1 {
                    0 => self.state.word(word(1) << 2),
                    _ => load(memory, &address(packet, 0, word(1), word(2) & 0xff)?),
                };
                match word(0) >> 1 & 1 {
                    0 => self.state.set(word(3) << 2, value),
                    _ => {
                        let number = (word(0) & 1) as usize;
                        self.store(
                            memory,
                            &address(packet, number, word(3), word(4) & 0xff)?,
                            &value.to_le_bytes(),
                        );
                    }
                }
            }
            other => self.state.unknown.note(format!("packet {other:#04x}")),
        }
        Ok(())
    }

    fn event(&mut self, memory: Vram<'_>, packet: &Packet<'_>) -> Result<(), Fault> {
        let kind = packet.payload[0] & 0x3f;
        let place = || match packet.payload {
            [_, low, high, ..] => address(packet, 0, *low, high & 0xff),
            _ => {
                Err(Fault::Malformed(format!("word {}: EVENT_WRITE {kind:#x} without an address", packet.at)))
            }
        };
        match kind {
            event::ZPASS_DONE => {
                let place = place()?;
                for backend in 0..BACKENDS {
                    let value = if backend == 0 { self.passed | VALID } else { VALID };
                    let at = place.start + 16 * backend;
                    self.store(memory, &(at..place.end.max(at)), &value.to_le_bytes());
                }
            }
            event::SAMPLE_STREAMOUTSTATS => {
                let place = place()?;
                // The driver interprets the first value as the number of primitives that need storage. The driver
                // interprets the second value as the number of primitives that were written.
                for (word, count) in [self.streams.needed, self.streams.written].into_iter().enumerate() {
                    let at = place.start + 8 * word;
                    self.store(memory, &(at..place.end.max(at)), &(count | VALID).to_le_bytes());
                }
            }
            event::SAMPLE_PIPELINESTAT => {
                let place = place()?;
                for (word, count) in self.statistics.words().into_iter().enumerate() {
                    let at = place.start + 8 * word;
                    self.store(memory, &(at..place.end.max(at)), &(count | VALID).to_le_bytes());
                }
            }
            event::PIPELINESTAT_START => self.counts_statistics = true,
            event::PIPELINESTAT_STOP => self.counts_statistics = false,
            event::SO_VGTSTREAMOUT_FLUSH => self.state.set(reg::CP_STRMOUT_CNTL, 1),
            // Other events flush caches.
            _ => {}
        }
        Ok(())
    }

    /// Stores bytes at the start of a range. Does nothing if the range is too short for the bytes.
    fn store(&mut self, memory: Vram<'_>, place: &Range<usize>, bytes: &[u8]) {
        if bytes.len() <= place.len() {
            memory.write(place.start, bytes);
            self.state.images.written(&(place.start..place.start + bytes.len()));
        }
    }

    /// Executes STRMOUT_BUFFER_UPDATE. The packet may store the offset of a stream-out buffer in memory. The packet may
    /// then set the offset to a value from the packet or from memory.
    fn update_stream(&mut self, memory: Vram<'_>, packet: &Packet<'_>) -> Result<(), Fault> {
        let word = |number: usize| packet.payload.get(number).copied().unwrap_or(0);
        let buffer = (word(0) >> 8 & 3) as usize;
        if word(0) & 1 != 0 {
            let place = address(packet, 0, word(1), word(2) & 0xff)?;
            self.store(memory, &place, &self.streams.offsets[buffer].to_le_bytes());
        }
        match word(0) >> 1 & 3 {
            0 => self.streams.offsets[buffer] = word(3),
            2 => {
                let number = (word(0) & 1) as usize;
                self.streams.offsets[buffer] =
                    load(memory, &address(packet, number, word(3), word(4) & 0xff)?);
            }
            // The offset is unchanged.
            _ => {}
        }
        Ok(())
    }

    /// Executes SET_PREDICATION: determines from the results of a query whether predicated packets are skipped.
    fn set_predication(&mut self, memory: Vram<'_>, packet: &Packet<'_>) -> Result<(), Fault> {
        let control = packet.payload.get(1).copied().unwrap_or(0);
        let kind = control >> 16 & 7;
        if kind == 0 {
            self.skips = false;
            return Ok(());
        }
        let place = address(packet, 0, packet.payload[0], control & 0xff)?;
        let value = |at: usize| {
            let mut bytes = [0; 8];
            memory.read(at, &mut bytes)?;
            Some(u64::from_le_bytes(bytes))
        };
        if control >> 31 == 0 {
            self.predicate = 0;
        }
        if kind == 1 {
            for backend in 0..BACKENDS {
                let at = place.start + 16 * backend;
                let (begin, end) = (value(at).unwrap_or(0), value(at + 8).unwrap_or(0));
                if begin & VALID != 0 && end & VALID != 0 {
                    self.predicate += end.wrapping_sub(begin);
                }
            }
        } else {
            self.state.unknown.note(format!("SET_PREDICATION of kind {kind}"));
        }
        let draw_visible = control >> 8 & 1 != 0;
        self.skips = (self.predicate != 0) != draw_visible;
        Ok(())
    }

    /// Returns whether a draw of `vertices` vertices is within the limit of a launch. If the draw exceeds the limit,
    /// the function reports the draw and returns `false`. The caller must then skip the draw.
    fn fits(&mut self, vertices: usize) -> bool {
        let fits = LANES.check((vertices as u64).saturating_mul(self.instances.max(1).into())).is_ok();
        if !fits {
            self.state.unknown.note("draws that exceed the limit of vertices");
        }
        fits
    }

    fn draw(&mut self, memory: Vram<'_>, indices: &[u32]) -> Result<(), Fault> {
        if !self.fits(indices.len()) {
            return Ok(());
        }
        self.draws += 1;
        let number = self.draws;
        let mut captured = self.watch.begin(number, indices.len(), self.instances.max(1));
        let drawn = self.draw_now(memory, indices, &mut captured);
        self.watch.end(number, captured, drawn)
    }

    fn draw_now(
        &mut self,
        memory: Vram<'_>,
        indices: &[u32],
        captured: &mut Option<Captured>,
    ) -> Result<(), Fault> {
        let state = &mut self.state;
        let Some(topology) = draw::topology(state) else { return Ok(()) };
        let made_from = Some((state.changes(), self.options));
        let mut known = take(&mut self.known);
        if self.watch.is_on() || known.made_from != made_from {
            known = KeptDraw { made_from, ..KeptDraw::default() };
        }
        let named = state.unknown.times();
        let layout = *known.layout.get_or_insert_with(|| VertexLayout::new(state));
        let instances = self.instances.max(1);
        let mut kept = self.memory.take().unwrap_or_default();
        lanes(state, indices, instances, &mut kept.values, &mut kept.runs);
        let mode = geometry::Mode::of(state);
        let mut statistics = self.statistics;
        let made = primitives(topology, &kept.runs);
        statistics.vertices += kept.runs.iter().map(|run| run.len() as u64).sum::<u64>();
        statistics.primitives += made;
        statistics.vertex_lanes += kept.values.len() as u64;
        let (chip, options, watch) = (self.chip, self.options, &mut self.watch);
        let context = Context { chip, options, state, memory, watch };
        let mut machine = Machine { context, captured, known: known.vertex.take() };
        if let Some(captured) = machine.captured {
            captured.primitive = format!("{topology:?}");
        }
        let DrawMemory { values, runs, outcome, vertices } = &mut *kept;
        let shaded = match mode {
            geometry::Mode::Off => machine.vertices(outcome, topology, values, take(runs))?,
            geometry::Mode::Numbered => {
                let (values, runs, topology) =
                    numbered(machine.context.state, topology, values, runs, instances as usize);
                machine.vertices(outcome, topology, &values, runs)?
            }
            geometry::Mode::Program => {
                geometry::run(&mut machine, outcome, topology, values.clone(), runs, instances as usize)?
            }
        };
        let Shaded { program, lanes, topology, runs } = shaded;
        let state = &mut self.state;
        if mode == geometry::Mode::Program {
            statistics.geometry_lanes += made;
            statistics.geometry_primitives += primitives(topology, &runs);
        }
        if state.word(reg::VGT_STRMOUT_EN) & 1 != 0 {
            let last = state.word(reg::PA_SU_SC_MODE_CNTL) >> 19 & 1 != 0;
            let dwords = stream::dwords(program.code());
            let Streams { needed, written, .. } = self.streams;
            self.streams.write(memory, state, outcome, &dwords, (topology, last), &runs);
            if !self.counts_statistics {
                self.streams = Streams { needed, written, ..self.streams };
            }
            state.images.changed();
        }
        let counted = state.word(reg::DB_RENDER_CONTROL) >> 11 & 1 == 0;
        layout.vertices(state, outcome, lanes, vertices);
        for part in layout.parts(state, outcome, topology, runs) {
            let chosen = (part.topology, part.viewport, part.layer);
            let draw = match known.draw.take_if(|(of, _)| *of == chosen) {
                Some((_, draw)) => draw,
                None => match draw::draw(&mut self.state, &part, &layout) {
                    Some(draw) => draw.into(),
                    None => break,
                },
            };
            let vertices = Vertices { all: &kept.vertices, runs: &part.runs };
            let counts = self.raster(memory, &draw, vertices, &mut known.pixel, captured)?;
            known.draw = Some((chosen, draw));
            if counted {
                self.passed += counts.passed;
            }
            statistics.clipper_in += counts.primitives;
            statistics.clipper_out += counts.clipped;
            statistics.pixels += counts.passed;
            kept.runs = part.runs;
        }
        if self.counts_statistics {
            self.statistics = statistics;
        }
        if kept.vertices.len() <= SHADED {
            self.memory = Some(kept);
        }
        // If a draw uses an unsupported feature, the next draw must report the feature again. The state of such a draw
        // is therefore not reused.
        if !self.watch.is_on() && self.state.unknown.times() == named {
            let is_whole = mode != geometry::Mode::Program;
            self.known = KeptDraw { vertex: is_whole.then_some(program), ..known };
        }
        Ok(())
    }

    fn raster(
        &mut self,
        memory: Vram<'_>,
        draw: &Draw,
        vertices: Vertices<'_>,
        known: &mut Option<(Box<Shader>, PixelControl)>,
        captured: &mut Option<Captured>,
    ) -> Result<Counts, Fault> {
        let (chip, options) = (self.chip, self.options);
        let (state, watch) = (&mut self.state, &mut self.watch);
        let mut context = Context { chip, options, state, memory, watch };
        let at_hand = known.take().filter(|_| !context.watch.is_on());
        let at_hand = at_hand
            .and_then(|(mut shader, control)| shader.renew(&mut context, None).then_some((shader, control)));
        let (pixel, control) = match at_hand {
            Some(found) => found,
            None => {
                let shader = Box::new(Shader::new(PIXEL, &mut context, None)?);
                (shader, PixelControl::new(&mut self.state))
            }
        };
        let recording = pixel.fragments(captured.as_mut(), draw);
        let program = PixelProgram::new(&pixel, control, recording, &self.pixel_rooms);
        let counts = reconverge_raster::draw::draw(draw, vertices, memory, &program);
        capture::add(captured, program.recording.end());
        self.watch.surfaces(self.draws, draw, memory);
        draw.written().for_each(|range| self.state.images.written(&range));
        let counts = counts?;
        *known = Some((pixel, control));
        Ok(counts)
    }
}

/// Returns the number of primitives that runs of vertices form.
fn primitives(topology: Topology, runs: &[Vec<usize>]) -> u64 {
    runs.iter().map(|run| primitive::count(topology, run.len()) as u64).sum()
}

/// Runs the vertex and geometry programs of a draw.
struct Machine<'a, 'm> {
    context: Context<'a, 'm>,
    captured: &'a mut Option<Captured>,
    /// The vertex program of the previous draw, if no register has changed.
    known: Option<Box<Shader>>,
}

/// Properties of the vertices that the vertex and geometry programs computed. The outcome has the values of these
/// vertices.
struct Shaded {
    /// The last program, which computed the outcome.
    program: Box<Shader>,
    /// Number of vertices.
    lanes: usize,
    topology: Topology,
    /// Runs of vertices. Each vertex is stored as the number of the lane that computed the vertex.
    runs: Vec<Vec<usize>>,
}

impl Machine<'_, '_> {
    /// Creates the program of a stage.
    fn shader(&mut self, unit: Unit) -> Result<Shader, Fault> {
        Shader::new(unit, &mut self.context, None)
    }

    /// Creates the program of a stage. `vertices` contains the first register of each vertex.
    fn shader_of(&mut self, unit: Unit, vertices: &[[u32; 4]]) -> Result<Shader, Fault> {
        let numbers = self.largest(vertices);
        Shader::new(unit, &mut self.context, Some(numbers))
    }

    /// Returns the vertex program. `vertices` contains the first register of each vertex. Reuses the `known` program if
    /// possible.
    fn vertex_shader(&mut self, vertices: &[[u32; 4]]) -> Result<Box<Shader>, Fault> {
        let numbers = self.largest(vertices);
        if let Some(mut shader) = self.known.take()
            && shader.renew(&mut self.context, Some(numbers))
        {
            return Ok(shader);
        }
        Ok(Shader::new(VERTEX, &mut self.context, Some(numbers))?.into())
    }

    /// Returns the largest index and the largest instance of vertices. The index is the first component of a vertex's
    /// first register, and the instance is the last component.
    fn largest(&self, vertices: &[[u32; 4]]) -> Largest {
        let first_instance = self.context.state.first_instance();
        let mut numbers = Largest { index: 0, instance: 0, first_instance };
        for [index, _, _, instance] in vertices {
            numbers.index = numbers.index.max(*index);
            numbers.instance = numbers.instance.max(*instance);
        }
        numbers
    }

    /// Runs the vertex program of a draw without a geometry program. `outcome` receives the results.
    fn vertices(
        &mut self,
        outcome: &mut Outcome,
        topology: Topology,
        values: &[[u32; 4]],
        runs: Vec<Vec<usize>>,
    ) -> Result<Shaded, Fault> {
        let program = self.vertex_shader(values)?;
        let lanes = values.len();
        let mut recording = self.captured.as_ref().map(|_| program.vertices(values));
        let ended = program.run(outcome, lanes, vec![shader::input(0, values)], recording.as_mut(), None);
        capture::add(self.captured, recording);
        ended?;
        Ok(Shaded { program, lanes, topology, runs })
    }
}

/// Returns separate copies of the vertices of each primitive, with the primitive's number in the third component. Also
/// returns the runs of the copied vertices, and the list topology of these runs.
fn numbered(
    state: &State,
    topology: Topology,
    values: &[[u32; 4]],
    runs: &[Vec<usize>],
    instances: usize,
) -> (Vec<[u32; 4]>, Vec<Vec<usize>>, Topology) {
    let last = state.word(reg::PA_SU_SC_MODE_CNTL) >> 19 & 1 != 0;
    let (mut found, mut places) = (Vec::new(), Vec::new());
    let runs_an_instance = runs.len() / instances.max(1);
    let mut number = 0;
    for (place, run) in runs.iter().enumerate() {
        if runs_an_instance != 0 && place % runs_an_instance == 0 {
            number = 0;
        }
        // The triangles of a quad have the same number. The triangles of a polygon also have the same number.
        let list = primitive::list(topology, run.len(), last);
        let halves = match topology {
            Topology::Quads | Topology::QuadStrip => 2,
            Topology::Polygon => list.len().max(1),
            _ => 1,
        };
        let mut numbers = Vec::new();
        for (at, corner) in
            list.iter().enumerate().flat_map(|(at, corners)| corners.iter().map(move |c| (at, c)))
        {
            let [index, _, _, instance] = values[run[*corner]];
            numbers.push(found.len());
            found.push([index, 0, number + (at / halves) as u32, instance]);
        }
        number += list.len().div_ceil(halves) as u32;
        places.push(numbers);
    }
    (found, places, primitive::list_of(topology))
}

/// Splits indices at the restart index.
fn runs<'a>(state: &State, indices: &'a [u32]) -> impl Iterator<Item = &'a [u32]> + Clone + use<'a> {
    let restarts = state.word(reg::VGT_MULTI_PRIM_IB_RESET_EN) & 1 != 0;
    let restart = restarts.then(|| state.word(reg::VGT_MULTI_PRIM_IB_RESET_INDX));
    indices.split(move |index| Some(*index) == restart)
}

/// Collects the vertices to shade. A vertex that occurs several times is collected once. `values` receives the value of
/// the first register of each vertex. The first component of this value is the index, and the last component is the
/// instance. `places` receives the vertices of each run of each instance, as indices into `values`.
fn lanes(
    state: &State,
    indices: &[u32],
    instances: u32,
    values: &mut Vec<[u32; 4]>,
    places: &mut Vec<Vec<usize>>,
) {
    let (low, high) = (state.word(reg::VGT_MIN_VTX_INDX), state.word(reg::VGT_MAX_VTX_INDX));
    let offset = state.word(reg::VGT_INDX_OFFSET);
    let moved = |index: &u32| (*index).clamp(low, high.max(low)).wrapping_add(offset);
    let runs = runs(state, indices);
    let all = runs.clone().flatten().map(moved);
    // If indices are strictly ascending, each index occurs only once.
    let ascend = all.clone().is_sorted_by(|one, next| one < next);
    let mut count = 0;
    values.clear();
    for instance in 0..instances {
        let first = values.len();
        let mut numbers = (!ascend).then(|| Numbers::new(all.clone()));
        for run in runs.clone() {
            let place = |index: &u32| {
                let index = moved(index);
                let place = numbers.as_mut().map_or(values.len(), |numbers| first + numbers.of(index));
                if place == values.len() {
                    values.push([index, 0, 0, instance]);
                }
                place
            };
            if count == places.len() {
                places.push(Vec::new());
            }
            places[count].clear();
            places[count].extend(run.iter().map(place));
            count += 1;
        }
    }
    places.truncate(count);
}

/// Returns a range in the buffer to which relocation `number` of a packet refers. The range starts at the address in
/// the packet and ends at the end of the buffer.
fn address(packet: &Packet<'_>, number: usize, low: u32, high: u32) -> Result<Range<usize>, Fault> {
    let offset = usize::try_from(u64::from(low) | u64::from(high) << 32).unwrap_or(usize::MAX);
    let named = format!("packet {:#04x}", packet.kind.op);
    packet.place(number, offset, [&named, &format!("{named}: ")])
}

/// Returns the word at the start of a range, or 0 if the range is shorter than a word.
fn load(memory: Vram<'_>, place: &Range<usize>) -> u32 {
    if place.len() < 4 { 0 } else { memory.word(place.start).unwrap_or(0) }
}

impl chip::SharedParts for R600 {
    fn submit(&mut self, memory: Vram<'_>, submission: &Submission<'_>) -> Result<(), Fault> {
        pm4::check(memory, submission)?;
        self.state.images.begin();
        for packet in packet::read(submission)? {
            self.execute(memory, &packet)?;
        }
        Ok(())
    }

    fn share(&mut self, parts: Option<&[Range<usize>]>) {
        self.state.images.share(parts);
    }

    fn replaced(&mut self, part: &Range<usize>) {
        self.state.images.replaced(part);
    }

    fn control(&mut self) -> (&mut Options, &mut Watch) {
        (&mut self.options, &mut self.watch)
    }

    fn unknown(&self) -> &Unknown {
        &self.state.unknown
    }

    fn draws(&self) -> u64 {
        self.draws
    }
}
