//! R500 chips: the command processor, and the units that the command processor controls.
//!
//! | module | contents |
//! |---|---|
//! | `packet` | packets of a submission, with their relocations |
//! | `registers` | every register with its fields, and registers that do not change results |
//! | `state` | the registers, and the memories of the two program units |
//! | `vertex` | conversion of arrays to vectors, and of vectors to vertices |
//! | `program` | vertex programs |
//! | `draw`, `multisample` | translation of registers to a draw, and of interpolated values to temporaries |
//! | `shader`, `texture`, `format` | fragment programs, with their constants and textures |
//!
//! The sources are Mesa's driver of these chips (`src/gallium/drivers/r300`, mainly `r300_reg.h`), AMD's R5xx 3D
//! register reference, and streams captured from the driver.
//!
//! With `RADEON_DEBUG=notcl`, the driver shades vertices on the host's processor. These vertices bypass the vertex
//! unit.

mod copied;
mod draw;
mod format;
mod multisample;
mod packet;
mod program;
mod programs;
mod registers;
mod shader;
mod state;
mod texture;
mod vertex;

use std::mem::take;
use std::ops::Range;

use reconverge_board::errata::Errata;
use reconverge_r500::chip::Chip;
use reconverge_raster::draw as raster;
use reconverge_raster::primitive::Topology;
use reconverge_raster::vertex::Vertex;
use reconverge_simt::vram::Vram;
use reconverge_simt::{Engine, Mode, Options};

use crate::capture::{self, FragmentRecording, Watch};
use crate::numbers::Numbers;
use crate::observe::Captured;
use crate::unknown::Unknown;
use crate::{Fault, Submission, chip, pm4};
use draw::{PixelProgram, Prepared};
use packet::{Kind, Packet, op};
use program::VertexProgram;
use registers::{self as reg, VfCntl};
use shader::Shader;
use state::{State, fields};
use texture::Images;
use vertex::{Layout, Stream, Vectors};

/// Maximum number of instructions of a group. A group that executes more instructions counts as hung.
const WATCHDOG: u64 = 1 << 24;

/// Maximum number of vertices in the memory that the next draw reuses.
const SHADED: usize = 1 << 12;

/// Values of PRIM_WALK: the source of a draw's vertices.
mod walk {
    pub(super) const INDICES: u8 = 1;
    pub(super) const LIST: u8 = 2;
    pub(super) const EMBEDDED: u8 = 3;
}

/// A vertex array. The fields are the number of words per vertex, the distance in bytes between vertices, and the range
/// of the array in memory.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Array {
    size: usize,
    stride: usize,
    place: Range<usize>,
}

/// An R500 chip.
#[derive(Debug)]
pub struct R300 {
    chip: Chip,
    options: Options,
    state: State,
    images: Images,
    arrays: Vec<Array>,
    /// Control word of a draw that waits for indices. The next INDX_BUFFER packet contains these indices.
    waiting: Option<u32>,
    /// Number of pixels that have passed the tests since the last write to ZB_ZPASS_DATA.
    passed: u64,
    draws: u64,
    watch: Watch,
    /// The vertex stream of the last draw, and the value of [`State::changes`] for which the stream was created.
    stream: Option<(u64, Stream)>,
    /// State of the last draw, which the next draw may reuse.
    known: KeptDraw,
    /// Vertices of the last draw. The next draw reuses the memory of these vertices.
    shaded: Vec<Vertex>,
}

/// State of a draw except for vertices, constants and texels. The next draw can reuse this state if no register has
/// changed. A part is `None` until a draw needs the part.
#[derive(Debug, Default)]
struct KeptDraw {
    /// The remaining fields were computed for this value of [`State::changes`], these options and this topology.
    made_from: Option<(u64, Options, Topology)>,
    layout: Option<Layout>,
    vertex: Option<VertexProgram>,
    prepared: Option<Box<Prepared>>,
    shader: Option<Box<Shader>>,
}

impl R300 {
    /// Returns a chip in its state after a reset.
    pub fn new(chip: Chip) -> R300 {
        let options =
            Options { mode: Mode::Lenient, engine: Engine::Fast, watchdog: WATCHDOG, ..Options::default() };
        R300 {
            chip,
            options,
            state: State::default(),
            images: Images::default(),
            arrays: Vec::new(),
            waiting: None,
            passed: 0,
            draws: 0,
            watch: Watch::default(),
            stream: None,
            known: KeptDraw::default(),
            shaded: Vec::new(),
        }
    }

    /// Returns the chip with exactly the errata `errata`. A new chip has all errata.
    #[must_use]
    pub fn with_errata(mut self, errata: Errata) -> R300 {
        self.state.errata = errata;
        self
    }

    /// Returns the number of draws so far.
    pub fn draws(&self) -> u64 {
        self.draws
    }

    fn execute(&mut self, memory: Vram<'_>, packet: &Packet<'_>) -> Result<(), Fault> {
        let code = match packet.kind {
            Kind::Registers { .. } => {
                let (passed, images) = (&mut self.passed, &mut self.images);
                self.state.write(packet, |state, address, word, buffer| match address {
                    reg::ZB_ZPASS_DATA => *passed = word.into(),
                    reg::ZB_ZPASS_ADDR => {
                        images.changed();
                        store_count(state, memory, *passed, word, buffer);
                    }
                    _ => {}
                });
                return Ok(());
            }
            Kind::Command(code) => code,
        };
        let word = packet.payload[0];
        match code {
            op::LOAD_VBPNTR => self.load_arrays(packet)?,
            op::DRAW_IMMD_2 => self.draw_embedded(memory, word, &packet.payload[1..])?,
            op::DRAW_VBUF_2 => {
                let control = self.control(word, walk::LIST);
                let indices: Vec<u32> = (0..self.count(&control)).collect();
                self.draw_arrays(memory, &control, &indices)?;
            }
            op::DRAW_INDX_2 if packet.payload.len() == 1 => self.waiting = Some(word),
            op::DRAW_INDX_2 => self.draw_indexed(memory, word, &packet.payload[1..])?,
            op::INDX_BUFFER => {
                let place = address(packet, 0, packet.payload.get(1).copied().unwrap_or(0))?;
                let count = packet.payload.get(2).copied().unwrap_or(0) as usize;
                let end = place.end.min(place.start.saturating_add(count.saturating_mul(4)));
                let words = memory.words(place.start..end);
                if let Some(word) = self.waiting.take() {
                    self.draw_indexed(memory, word, &words)?;
                }
            }
            other => self.state.unknown.note(format!("packet {other:#04x}")),
        }
        Ok(())
    }

    /// Executes 3D_LOAD_VBPNTR. Every two arrays have three words in the packet. The first word contains the sizes and
    /// the strides of both arrays, in words. The second and the third word contain the offsets of the two arrays, in
    /// bytes.
    fn load_arrays(&mut self, packet: &Packet<'_>) -> Result<(), Fault> {
        let payload = packet.payload;
        let count = (payload[0] & 0x1f) as usize;
        self.arrays.clear();
        for number in 0..count {
            let (pair, second) = (1 + number / 2 * 3, number % 2);
            let (Some(sizes), Some(offset)) = (payload.get(pair), payload.get(pair + 1 + second)) else {
                let at = packet.at;
                return Err(Fault::Malformed(format!(
                    "word {at}: 3D_LOAD_VBPNTR ends before array {number}"
                )));
            };
            let sizes = sizes >> (16 * second);
            let (size, stride) = ((sizes & 0x7f) as usize, (sizes >> 8 & 0x7f) as usize);
            self.arrays.push(Array { size, stride: stride * 4, place: address(packet, number, *offset)? });
        }
        Ok(())
    }

    fn control(&mut self, word: u32, walk: u8) -> VfCntl {
        let control = fields!(self.state, VfCntl, word);
        if control.prim_walk != walk {
            self.state.unknown.note(format!(
                "VAP_VF_CNTL.PRIM_WALK {} in a packet that requires {walk}",
                control.prim_walk
            ));
        }
        control
    }

    /// Returns the number of vertices of a draw.
    fn count(&self, control: &VfCntl) -> u32 {
        match control.use_alt_num_verts {
            true => self.state.word(reg::VAP_ALT_NUM_VERTICES) & 0xff_ffff,
            false => control.num_vertices.into(),
        }
    }

    /// Draws vertices whose words are in the packet.
    fn draw_embedded(&mut self, memory: Vram<'_>, word: u32, words: &[u32]) -> Result<(), Fault> {
        let control = self.control(word, walk::EMBEDDED);
        let size = (self.state.word(reg::VAP_VTX_SIZE) & 0x7f).max(1) as usize;
        let stream = self.stream();
        let count = self.count(&control) as usize;
        let vectors: Vec<Vectors> =
            words.chunks(size).take(count).map(|vertex| stream.vectors(vertex)).collect();
        let places: Vec<usize> = (0..vectors.len()).collect();
        let numbers = (0..vectors.len() as u32).collect();
        let targets = stream.targets();
        self.keep(stream);
        self.draw(memory, &control, Vertices { vectors, targets, numbers, places })
    }

    /// Returns the vertex stream, which converts the words of a vertex to vectors.
    fn stream(&mut self) -> Stream {
        let changes = self.state.changes();
        match self.stream.take() {
            Some((made_from, stream)) if made_from == changes => stream,
            _ => Stream::new(&mut self.state),
        }
    }

    /// Stores a stream for the next draw.
    fn keep(&mut self, stream: Stream) {
        // If a draw uses an unsupported feature, the next draw must report the feature again. The stream of such a draw
        // is therefore not reused.
        if stream.is_known() {
            self.stream = Some((self.state.changes(), stream));
        }
    }

    /// Draws vertices by their indices. `words` contains one or two indices per word.
    fn draw_indexed(&mut self, memory: Vram<'_>, word: u32, words: &[u32]) -> Result<(), Fault> {
        let control = self.control(word, walk::INDICES);
        let count = self.count(&control) as usize;
        let (low, high) =
            (self.state.word(reg::VAP_VF_MIN_VTX_INDX), self.state.word(reg::VAP_VF_MAX_VTX_INDX));
        let (low, high) = (low & 0xff_ffff, high & 0xff_ffff);
        // The chip adds the offset to the index, keeps 24 bits of the sum, and clamps the result. RV515 and RV530 pass
        // `arb_draw_elements_base_vertex-negative-index`. The indices of this test are negative, but the sum of each
        // index and the offset is not negative.
        let bias = self.state.word(reg::VAP_INDEX_OFFSET);
        let placed = |index: u32| (index.wrapping_add(bias) & 0xff_ffff).clamp(low, high.max(low));
        let indices: Vec<u32> = match control.index_size {
            true => words.iter().take(count).map(|word| placed(*word)).collect(),
            false => {
                let halves = words.iter().flat_map(|word| [word & 0xffff, word >> 16]);
                halves.take(count).map(placed).collect()
            }
        };
        self.draw_arrays(memory, &control, &indices)
    }

    /// Draws the vertices with these indices in the arrays.
    fn draw_arrays(&mut self, memory: Vram<'_>, control: &VfCntl, indices: &[u32]) -> Result<(), Fault> {
        let stream = self.stream();
        let (mut vectors, mut numbers, mut places) =
            (Vec::new(), Vec::new(), Vec::with_capacity(indices.len()));
        let (mut known, mut words) = (Numbers::new(indices.iter().copied()), Vec::new());
        for index in indices {
            let place = known.of(*index);
            if place == numbers.len() {
                words.clear();
                for array in &self.arrays {
                    let first =
                        array.place.start.saturating_add((*index as usize).saturating_mul(array.stride));
                    for number in 0..array.size {
                        words.push(load(memory, first.saturating_add(4 * number), array.place.end));
                    }
                }
                vectors.push(stream.vectors(&words));
                numbers.push(*index);
            }
            places.push(place);
        }
        let targets = stream.targets();
        self.keep(stream);
        self.draw(memory, control, Vertices { vectors, targets, numbers, places })
    }

    fn draw(&mut self, memory: Vram<'_>, control: &VfCntl, vertices: Vertices) -> Result<(), Fault> {
        self.draws += 1;
        let number = self.draws;
        let mut captured = self.watch.begin(number, vertices.places.len(), 1);
        let drawn = self.draw_now(memory, control, vertices, &mut captured);
        self.watch.end(number, captured, drawn)
    }

    fn draw_now(
        &mut self,
        memory: Vram<'_>,
        control: &VfCntl,
        mut vertices: Vertices,
        captured: &mut Option<Captured>,
    ) -> Result<(), Fault> {
        let Some(topology) = draw::topology(&mut self.state, control.prim_type) else { return Ok(()) };
        if let Some(captured) = captured {
            captured.primitive = format!("{topology:?}");
        }
        let made_from = Some((self.state.changes(), self.options, topology));
        let mut known = take(&mut self.known);
        let is_new = self.watch.is_on() || known.made_from != made_from;
        let mut named = None;
        if is_new {
            known = KeptDraw { made_from, ..KeptDraw::default() };
            named = Some(self.state.unknown.times());
        }
        let layout = *known.layout.get_or_insert_with(|| Layout::new(&mut self.state));
        if !layout.bypasses() {
            self.shade(&mut known.vertex, &mut vertices, captured)?;
        }
        let state = &mut self.state;
        layout.vertices(state, &vertices.vectors, &mut self.shaded);
        let corners = raster::Vertices { all: &self.shaded, runs: &[vertices.places] };
        let prepared = match known.prepared.take() {
            Some(prepared) => prepared,
            None => draw::prepare(state, topology, &layout)?.into(),
        };
        let images = &mut self.images;
        let mut at_hand = known.shader.take();
        let at_hand = at_hand.take_if(|shader| shader.renew(state, images, memory));
        let shader = match at_hand {
            Some(shader) => shader,
            None => {
                named.get_or_insert_with(|| state.unknown.times());
                Shader::new(self.chip, (state, images), memory, self.options, &mut self.watch)?.into()
            }
        };
        let Prepared { draw, coordinates, routes, outputs } = &*prepared;
        let recording = captured.as_mut().map(|captured| shader.fragments(captured, draw));
        let inputs = draw.inputs.len();
        let recording = FragmentRecording::new(recording);
        let program = PixelProgram { shader: &shader, routes, outputs, inputs, recording };
        let drawn = raster::draw_with(draw, *coordinates, corners, memory, &program);
        capture::add(captured, program.recording.end());
        self.watch.surfaces(self.draws, draw, memory);
        draw.written().for_each(|range| self.images.written(&range));
        self.passed += drawn?.passed;
        if self.shaded.len() > SHADED {
            self.shaded = Vec::new();
        }
        // If a draw uses an unsupported feature, the next draw must report the feature again. The state of such a draw
        // is therefore not reused.
        if !self.watch.is_on() && named.is_none_or(|before| before == self.state.unknown.times()) {
            self.known = KeptDraw { prepared: Some(prepared), shader: Some(shader), ..known };
        }
        Ok(())
    }

    /// Runs the vertex program on vertices. If `known` is `None`, creates the program from the registers.
    fn shade(
        &mut self,
        known: &mut Option<VertexProgram>,
        vertices: &mut Vertices,
        captured: &mut Option<Captured>,
    ) -> Result<(), Fault> {
        let program = match known {
            Some(program) => {
                program.take_constants(&self.state);
                program
            }
            None => {
                let made = VertexProgram::new(self.chip, &mut self.state, self.options, &mut self.watch)?;
                known.insert(made)
            }
        };
        let mut recording = captured.as_ref().map(|_| program.vertices(&vertices.numbers));
        let shaded = program.run(&mut vertices.vectors, vertices.targets, &mut recording);
        capture::add(captured, recording);
        shaded
    }
}

/// The vertices of a draw.
struct Vertices {
    /// Input vectors of each vertex. The vertex program replaces the input vectors by the program's outputs.
    vectors: Vec<Vectors>,
    /// Mask of the input vectors that the stream writes; bit n is vector n.
    targets: u32,
    /// Index of each vertex.
    numbers: Vec<u32>,
    /// Numbers of the vertices that form primitives, in order.
    places: Vec<usize>,
}

/// Executes a write to ZB_ZPASS_ADDR: stores the counter of the selected pipe in memory. In this model, the first pipe
/// counts all pixels.
fn store_count(state: &mut State, memory: Vram<'_>, passed: u64, offset: u32, buffer: Option<&Range<usize>>) {
    let Some(buffer) = buffer else {
        state.unknown.note("ZB_ZPASS_ADDR without a relocation");
        return;
    };
    let selected = [reg::SU_REG_DEST, reg::FG_ZBREG_DEST].map(|address| state.word(address));
    let first = selected == [0; 2] || selected.iter().any(|word| word & 1 != 0);
    let value = if first { passed as u32 } else { 0 };
    let start = buffer.start.saturating_add(offset as usize);
    if start.saturating_add(4) <= buffer.end {
        memory.write(start, &value.to_le_bytes());
    }
}

/// Returns a range in the buffer to which relocation `number` of a packet refers. The range starts at `offset` and ends
/// at the end of the buffer.
fn address(packet: &Packet<'_>, number: usize, offset: u32) -> Result<Range<usize>, Fault> {
    packet.place(number, offset as usize, ["a packet", ""])
}

/// Returns the word at an offset, or 0 if the word extends past `end`.
fn load(memory: Vram<'_>, at: usize, end: usize) -> u32 {
    if at.saturating_add(4) > end { 0 } else { memory.word(at).unwrap_or(0) }
}

impl chip::SharedParts for R300 {
    fn submit(&mut self, memory: Vram<'_>, submission: &Submission<'_>) -> Result<(), Fault> {
        pm4::check(memory, submission)?;
        self.waiting = None;
        self.images.begin();
        for packet in packet::read(submission)? {
            self.execute(memory, &packet)?;
        }
        Ok(())
    }

    fn share(&mut self, parts: Option<&[Range<usize>]>) {
        self.images.share(parts);
    }

    fn replaced(&mut self, part: &Range<usize>) {
        self.images.replaced(part);
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
