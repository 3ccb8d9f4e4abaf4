//! NVIDIA's Tesla chips, G80 to GT215. A chip has a FIFO and several objects. The FIFO calls methods of the objects.
//!
//! | module | contents |
//! |---|---|
//! | `fifo` | packets of commands |
//! | `methods` | every method with its fields, and methods that do not change results |
//! | `state` | words that methods have set |
//! | `vertex`, `shader`, `texture` | runs of programs, with their inputs, constants and textures |
//! | `draw`, `multisample` | translation of methods to a draw |
//! | `clear`, `query`, `feedback` | clears, results of queries, transform feedback |
//! | `twod`, `copy` | the 2D object and the copy object |
//! | `compute`, `multiprocessor`, `faults` | the compute object, performance counters, and faults of the compute driver |
//! | `surface`, `format` | layouts of surfaces, and formats of their elements |
//!
//! A program that traps ends its draw. As on the chip, later commands are still executed, including fences. An address
//! in a command is an offset in memory. Sources: Mesa's driver of these chips (`src/gallium/drivers/nouveau/nv50`), the
//! header files of the driver, and streams captured from the driver.

mod bindings;
mod clear;
mod compute;
mod copy;
mod draw;
mod faults;
mod feedback;
mod fifo;
mod format;
mod geometry;
mod methods;
mod multiprocessor;
mod multisample;
mod query;
mod shader;
mod state;
mod surface;
#[cfg(test)]
mod tests;
mod texture;
mod twod;
mod vertex;

use std::borrow::Cow;
use std::ops::Range;

use litemap::LiteMap;
use reconverge_board::errata::{Errata, Erratum};
use reconverge_raster::draw::{Coordinates, Draw, Vertices, draw_with};
use reconverge_raster::primitive::{Topology, assemble, count, list, list_of};
use reconverge_raster::vertex::Vertex;
use reconverge_simt::limits::LANES;
use reconverge_simt::vram::Vram;
use reconverge_simt::{Engine, Mode, Options};
use reconverge_tesla::flow::WARP;
use reconverge_tesla::inst::Chip;
use reconverge_tesla::launch::{self, LaneResults, Launch};

use crate::capture::{self, Watch};
use crate::observe::Captured;
use crate::{Fault, Submission, chip};
use bindings::Bindings;
pub(crate) use compute::buffer_name;
use draw::{FragmentResults, FragmentStage, Reads, Window};
use faults::Faults;
use feedback::Feedback;
use fifo::{Call, Fifo, NoHeader};
use methods::{BindTic, BindTsc, Object, ProgramCb, m2mf, tesla as m, twod as d2};
use query::Counters;
use shader::{Cache, FRAGMENT, Shader, VERTEX};
use state::{State, Unknown, fields, load};
use surface::Slices;
use twod::Upload;
use vertex::{ATTRIBUTES, Batch, Fetch};

/// Maximum number of instructions of a warp. A warp that executes more instructions counts as hung.
const WATCHDOG: u64 = 1 << 24;

/// Positions are rounded to the nearest of 256 steps per pixel. The driver advertises this number of steps.
///
/// Inferred from the test `turn-on-off`. The test draws triangles and the same triangles upside down, and compares the
/// two images. If the chip truncated positions, some pixels would differ. NV92 passes the test. RV770 truncates
/// positions and fails the test.
const COORDINATES: Coordinates = Coordinates { in_window: false, steps: Some(256) };

/// The selection that a set-up word makes. After the set-up word, the driver sends words of VB_ELEMENT_U16 or
/// VB_ELEMENT_U8. The set-up word selects elements of these words.
#[derive(Clone, Copy, Debug, Default)]
struct Setup {
    left: u32,
    skip: u32,
}

impl Setup {
    /// Returns the selection of a set-up word. `skip` is the number of elements to skip in the first word.
    fn new(word: u32, skip: u32) -> Setup {
        Setup { left: word & 0x3fff_ffff, skip }
    }
}

/// State of a draw except for vertices, constants and texels. The next draw can reuse this state if no method has
/// changed the state.
#[derive(Debug, Default)]
struct KeptDraw {
    vertex: Option<Box<VertexParts>>,
    fragment: Option<Box<FragmentParts>>,
}

/// A prepared vertex program. `made_from` has the value of [`State::changes`] and the options for which the program was
/// prepared.
#[derive(Debug)]
struct VertexParts {
    made_from: (u64, Options),
    shader: Shader,
    map: Map,
}

/// The prepared fragment program and fixed-function state of a draw. `made_from` has the properties of the draw for
/// which the program and the state were prepared.
#[derive(Debug)]
struct FragmentParts {
    made_from: (u64, Options, Topology, Window),
    reads: Reads,
    draw: Draw,
    results: FragmentResults,
    shader: Shader,
}

/// Subchannel to which the driver binds the compute object.
const COMPUTE_SUBCHANNEL: usize = 6;

/// Maximum number of words of the compute object's start-up. The driver's start-up has 177 words.
const MOST_START_UP: usize = 1024;

/// Maximum number of vertices, and maximum number of runs, in the memory that the next draw reuses.
const KEPT: usize = 1 << 12;

/// A chip of the Tesla family.
#[derive(Debug)]
pub struct Nv50 {
    chip: Chip,
    options: Options,
    fifo: Fifo,
    /// Object that is bound to each subchannel.
    objects: [Option<Object>; 8],
    tesla: State,
    twod: State,
    m2mf: State,
    compute: State,
    faults: Faults,
    /// Ranges in memory of all buffers, from the last submission.
    buffers: Vec<Range<usize>>,
    unknown: Unknown,
    bindings: Bindings,
    cache: Cache,
    current: [[u32; 4]; ATTRIBUTES],
    /// A number that increases when `current` changes.
    current_changes: u64,
    batch: Option<Box<Batch>>,
    /// Sources of attributes for the draw in progress.
    fetch: Option<Box<Fetch>>,
    /// `known_fetch` contains the sources of the last draw's vertices. `known_batch` contains the vertices. If the
    /// words of all methods are unchanged, the next draw reuses the sources. The next draw always reuses the memory of
    /// the batch.
    known_fetch: Option<Box<Fetch>>,
    known_batch: Option<Box<Batch>>,
    shaded: Vec<Vertex>,
    known: KeptDraw,
    instance: u32,
    setup_u16: Setup,
    setup_u8: Setup,
    /// Number of inline vertices after the last VERTEX_ID_BASE command.
    since_base: u32,
    upload: Upload,
    counters: Counters,
    multiprocessor: multiprocessor::MpCounters,
    feedback: Feedback,
    /// Whether the submission binds the 3D object. Only the driver's start-up code binds this object.
    starts: bool,
    /// Number of draws and launches so far.
    draws: u64,
    fault: Option<Fault>,
    watch: Watch,
}

impl Nv50 {
    /// Returns a chip in its state after a reset.
    pub fn new(chip: Chip) -> Nv50 {
        let options =
            Options { mode: Mode::Lenient, engine: Engine::Fast, watchdog: WATCHDOG, ..Options::default() };
        Nv50 {
            chip,
            options,
            fifo: Fifo::default(),
            objects: [None; 8],
            tesla: State::new(Object::Tesla),
            twod: State::new(Object::TwoD),
            m2mf: State::new(Object::M2mf),
            compute: State::new(Object::Compute),
            faults: Faults::default(),
            buffers: Vec::new(),
            unknown: Unknown::default(),
            bindings: Bindings::default(),
            cache: Cache::default(),
            current: [[0, 0, 0, 1f32.to_bits()]; ATTRIBUTES],
            current_changes: 0,
            batch: None,
            fetch: None,
            known_fetch: None,
            known_batch: None,
            shaded: Vec::new(),
            known: KeptDraw::default(),
            instance: 0,
            setup_u16: Setup::default(),
            setup_u8: Setup::default(),
            since_base: 0,
            upload: Upload::default(),
            counters: Counters::default(),
            multiprocessor: multiprocessor::MpCounters::default(),
            feedback: Feedback::default(),
            starts: false,
            draws: 0,
            fault: None,
            watch: Watch::default(),
        }
    }

    /// Returns the chip with exactly the errata `errata`. A new chip has all errata.
    #[must_use]
    pub fn with_errata(mut self, errata: Errata) -> Nv50 {
        self.tesla.errata = errata;
        self
    }

    /// Sets whether the chip handles the known faults of Mesa's compute driver. If the chip handles the faults, the
    /// faults have no effect on programs.
    #[must_use]
    pub fn with_driver_fixes(mut self, handled: bool) -> Nv50 {
        self.faults.handled = handled;
        self
    }

    /// Returns the number of draws and launches so far.
    pub fn draws(&self) -> u64 {
        self.draws
    }

    /// Executes the start-up commands of the compute object, if the chip handles faults of the driver. In the push
    /// buffer, the commands follow the start-up commands of the 3D object. However, the driver has not submitted the
    /// commands of the compute object. A zero word ends the commands.
    fn submit_start_up(&mut self, memory: Vram<'_>) -> Result<(), Fault> {
        let Some(at) = self.faults.unsent.filter(|_| self.faults.handled) else { return Ok(()) };
        let bind = 1 << 18 | (COMPUTE_SUBCHANNEL as u32) << 13;
        if load(memory, at) != bind || Object::of_handle(load(memory, at + 4)) != Some(Object::Compute) {
            return Ok(());
        }
        self.faults.unsent = None;
        let words = memory.words(at..at + 4 * MOST_START_UP);
        for (word, at) in words.into_iter().zip((at..).step_by(4)) {
            if word == 0 && self.fifo.is_between_packets() {
                break;
            }
            self.take(memory, word, at)?;
        }
        Ok(())
    }

    /// Executes a word of the commands. `at` is the address of the word.
    fn take(&mut self, memory: Vram<'_>, word: u32, at: usize) -> Result<(), Fault> {
        match self.fifo.take(word) {
            Ok(None) => {}
            Ok(Some(call)) => self.call(memory, call, word),
            Err(NoHeader(word)) => {
                self.fifo = Fifo::default();
                return Err(Fault::Malformed(format!(
                    "{word:#010x} at {at:#x} is not the header of a packet"
                )));
            }
        }
        Ok(())
    }

    fn call(&mut self, memory: Vram<'_>, call: Call, word: u32) {
        let Call { subchannel, method } = call;
        if method == 0 {
            self.objects[subchannel] = Object::of_handle(word);
            self.starts |= self.objects[subchannel] == Some(Object::Tesla);
            return;
        }
        let object = match self.objects[subchannel] {
            Some(object) => object,
            // The driver has created the compute object, but has not submitted the words that bind the object.
            None if subchannel == COMPUTE_SUBCHANNEL => {
                self.faults.name(faults::DriverFault::StartUp);
                Object::Compute
            }
            None => {
                self.unknown.note(format!("methods of subchannel {subchannel}"));
                return;
            }
        };
        match object.method(method) {
            Some(known) if known.ignored.is_some() => return,
            Some(_) => {}
            None => {
                self.unknown.note(format!("{} method {method:#06x}", object.name()));
                return;
            }
        }
        match object {
            Object::Tesla => self.tesla_method(memory, method, word),
            Object::TwoD => {
                self.twod.set(method, word);
                // Uploads and blits start when their last set-up word is written.
                match method {
                    0x085c => twod::begin(&self.twod, &mut self.upload),
                    d2::SIFC_DATA => {
                        let stored =
                            twod::data(&self.twod, &mut self.unknown, &mut self.upload, memory, word);
                        stored.iter().for_each(|range| self.cache.images.written(range));
                    }
                    0x08dc if self.draws_conditionally(memory, false) => {
                        let stored = twod::blit(&self.twod, &mut self.unknown, memory);
                        stored.iter().for_each(|range| self.cache.images.written(range));
                    }
                    _ => {}
                }
            }
            Object::Compute => self.compute_method(memory, method, word),
            Object::M2mf => {
                self.m2mf.set(method, word);
                if method == m2mf::BUF_NOTIFY {
                    let stored = copy::copy(&self.m2mf, &mut self.unknown, memory);
                    self.cache.images.written(&stored);
                }
            }
        }
    }

    fn tesla_method(&mut self, memory: Vram<'_>, method: u32, word: u32) {
        match methods::acts(method) {
            true => self.tesla.set(method, word),
            false => self.tesla.change(method, word),
        }
        match method {
            0x001c => match word {
                2 => {
                    let at = self.tesla.address(m::SEMAPHORE_ADDRESS_HIGH);
                    memory.write(at, &self.tesla.word(0x0018).to_le_bytes());
                    self.cache.images.written(&(at..at.saturating_add(4)));
                }
                // Triggers 1 and 4 wait for earlier commands. All earlier commands are already complete.
                1 | 4 => {}
                other => self.unknown.note(format!("semaphore trigger {other}")),
            },
            m::CB_DEF_SET => self.bindings.define(self.tesla.address(m::CB_DEF_ADDRESS_HIGH), word),
            m::SET_PROGRAM_CB => {
                let bound = fields!(self.unknown, ProgramCb, word);
                self.bindings.constants[usize::from(bound.program)][usize::from(bound.slot)] =
                    bound.valid.then_some(bound.buffer);
            }
            m::CB_DATA..0x0f44 => {
                let at = self.tesla.word(m::CB_ADDR);
                if let Some(stored) = self.bindings.store(memory, at, word) {
                    self.cache.images.written(&stored);
                }
                self.tesla.set(m::CB_ADDR, at.wrapping_add(0x100));
            }
            m::BIND_TSC..0x145c => {
                let stage = ((method - m::BIND_TSC) / 8) as usize;
                if method & 4 != 0 {
                    let bound = fields!(self.unknown, BindTsc, word);
                    self.bindings.samplers[stage][usize::from(bound.unit)] =
                        bound.valid.then_some(bound.id.into());
                } else {
                    let bound = fields!(self.unknown, BindTic, word);
                    if let Some(place) = self.bindings.textures[stage].get_mut(usize::from(bound.unit)) {
                        *place = bound.valid.then_some(bound.id);
                    }
                }
            }
            m::VTX_ATTR_1F..m::VERTEX_ARRAY_FETCH => self.attribute(method, word),
            m::VERTEX_ID_BASE => self.since_base = 0,
            m::VERTEX_BEGIN_GL => self.begin(word),
            m::VERTEX_END_GL => self.end(memory),
            m::VERTEX_BUFFER_COUNT => self.array(memory, word),
            m::VB_ELEMENT_U32 => self.elements(memory, &[word]),
            m::VB_ELEMENT_U16_SETUP => self.setup_u16 = Setup::new(word, word >> 31),
            m::VB_ELEMENT_U8_SETUP => self.setup_u8 = Setup::new(word, word >> 30),
            m::VB_ELEMENT_U16 => {
                let elements = [word & 0xffff, word >> 16];
                let taken = counted(&mut self.setup_u16, self.tesla.word(m::VB_ELEMENT_U16_SETUP), 2);
                self.elements(memory, elements.get(taken).unwrap_or(&[]));
            }
            m::VB_ELEMENT_U8 => {
                let elements = word.to_le_bytes().map(u32::from);
                let taken = counted(&mut self.setup_u8, self.tesla.word(m::VB_ELEMENT_U8_SETUP), 4);
                self.elements(memory, elements.get(taken).unwrap_or(&[]));
            }
            m::VERTEX_DATA => self.vertex_data(memory, word),
            m::DRAW_TFB_BYTES => {
                let (base, stride) = (self.tesla.word(m::DRAW_TFB_BASE), self.tesla.word(m::DRAW_TFB_STRIDE));
                let count = word.saturating_sub(base) / stride.max(1);
                self.array(memory, count);
            }
            m::CLEAR_BUFFERS if self.draws_conditionally(memory, true) => {
                let stored = clear::clear(&self.tesla, &mut self.unknown, memory, word);
                stored.iter().flatten().for_each(|range| self.cache.images.written(range));
            }
            m::QUERY_GET => {
                let at = self.tesla.address(m::QUERY_ADDRESS_HIGH);
                self.cache.images.written(&(at..at.saturating_add(query::MOST_BYTES)));
                let offsets = self.feedback.offsets;
                query::get(&self.tesla, &mut self.unknown, &self.counters, offsets, memory, word);
            }
            m::COUNTER_RESET => self.counters.reset(word),
            m::STRMOUT_PARAMS_LATCH => self.feedback.latch(&self.tesla),
            _ => {}
        }
    }

    /// Sets a word of an attribute's current value. The last word of attribute 0 completes a vertex.
    fn attribute(&mut self, method: u32, word: u32) {
        let (first, stride, count) = match method {
            ..m::VTX_ATTR_2F => (m::VTX_ATTR_1F, 4, 1),
            m::VTX_ATTR_2F..m::VTX_ATTR_3F => (m::VTX_ATTR_2F, 8, 2),
            m::VTX_ATTR_3F..m::VTX_ATTR_4F => (m::VTX_ATTR_3F, 16, 3),
            _ => (m::VTX_ATTR_4F, 16, 4),
        };
        let (number, component) = ((method - first) / stride, (method - first) % stride / 4);
        let value = &mut self.current[number as usize % ATTRIBUTES];
        if component == 0 {
            *value = [0, 0, 0, 1f32.to_bits()];
        }
        value[component as usize] = word;
        self.current_changes += 1;
        let (current, id) = (self.current, self.tesla.word(m::VERTEX_ID_BASE).wrapping_add(self.since_base));
        if let Some(batch) = self.batch.as_mut().filter(|_| number == 0 && component + 1 == count) {
            batch.current(&current, id);
            self.since_base += 1;
        }
    }

    fn begin(&mut self, word: u32) {
        self.instance = match (word >> 28 & 1, word >> 30 & 1) {
            (0, 0) => 0,
            (1, _) => self.instance.wrapping_add(1),
            _ => self.instance,
        };
        let mut batch = self.batch.take().or(self.known_batch.take()).unwrap_or_default();
        batch.begin(word, self.instance);
        self.batch = Some(batch);
        self.known_fetch = self.fetch.take().or(self.known_fetch.take());
    }

    fn fetch(&mut self, memory: Vram<'_>) -> Box<Fetch> {
        let changes = [self.tesla.changes(), self.current_changes];
        let known = self.known_fetch.take_if(|fetch| fetch.renew(&self.tesla, memory, changes));
        match known {
            Some(fetch) => fetch,
            None => Box::new(Fetch::new(&self.tesla, &mut self.unknown, memory, &self.current, changes)),
        }
    }

    fn vertex_data(&mut self, memory: Vram<'_>, word: u32) {
        if self.fetch.is_none() {
            self.fetch = Some(self.fetch(memory));
        }
        let id = self.tesla.word(m::VERTEX_ID_BASE).wrapping_add(self.since_base);
        if let (Some(batch), Some(fetch)) = (&mut self.batch, &self.fetch)
            && batch.data(fetch, word, id)
        {
            self.since_base += 1;
        }
    }

    fn array(&mut self, memory: Vram<'_>, count: u32) {
        let fetch = self.fetch(memory);
        let first = self.tesla.word(m::VERTEX_BUFFER_FIRST);
        let base = self.tesla.word(m::VERTEX_ID_BASE);
        let adds_first = self.tesla.word(m::VP_GP_BUILTIN_ATTR_EN) >> 12 & 1 != 0;
        let Some(batch) = &mut self.batch else { return };
        if LANES.check(count.into()).is_err() {
            self.unknown.note("draws that exceed the limit of vertices");
            return;
        }
        for number in 0..count {
            let index = first.wrapping_add(number);
            let id = base.wrapping_add(if adds_first { index } else { number });
            batch.fetched(&fetch, memory, index, id);
        }
        self.known_fetch = Some(fetch);
    }

    fn elements(&mut self, memory: Vram<'_>, elements: &[u32]) {
        let restart = self.tesla.flag(m::PRIM_RESTART_ENABLE).then(|| self.tesla.word(m::PRIM_RESTART_INDEX));
        let (base, id_base) = (self.tesla.word(m::VB_ELEMENT_BASE), self.tesla.word(m::VERTEX_ID_BASE));
        if self.fetch.is_none() {
            self.fetch = Some(self.fetch(memory));
        }
        let (Some(batch), Some(fetch)) = (&mut self.batch, &self.fetch) else { return };
        for element in elements {
            match restart {
                Some(restart) if restart == *element => batch.restart(),
                _ => batch.fetched(fetch, memory, element.wrapping_add(base), element.wrapping_add(id_base)),
            }
        }
    }

    /// Returns whether COND_MODE of the 3D object (`tesla`) or of the 2D object allows drawing.
    fn draws_conditionally(&self, memory: Vram<'_>, tesla: bool) -> bool {
        let (state, method) =
            if tesla { (&self.tesla, m::COND_ADDRESS_HIGH) } else { (&self.twod, d2::COND_ADDRESS_HIGH) };
        // In mode 0, the 3D object never draws, but the 2D object always draws.
        let mode = state.word(method + 8);
        (mode == 0 && !tesla) || compute::condition(memory, state.address(method), mode)
    }

    fn end(&mut self, memory: Vram<'_>) {
        let Some(batch) = self.batch.take() else { return };
        self.known_fetch = self.fetch.take().or(self.known_fetch.take());
        if !batch.ids.is_empty() && self.draws_conditionally(memory, true) {
            self.draw_batch(memory, &batch);
        }
        if batch.ids.len() <= KEPT && batch.runs.len() <= KEPT {
            self.known_batch = Some(batch);
        }
    }

    fn draw_batch(&mut self, memory: Vram<'_>, batch: &Batch) {
        self.draws += 1;
        let number = self.draws;
        let mut captured = self.watch.begin(number, batch.runs.iter().map(Vec::len).sum(), 1);
        let drawn = self.draw(memory, batch, &mut captured);
        if let Err(fault) = self.watch.end(number, captured, drawn) {
            self.fault.get_or_insert(fault);
        }
    }

    fn draw(
        &mut self,
        memory: Vram<'_>,
        batch: &Batch,
        captured: &mut Option<Captured>,
    ) -> Result<(), Fault> {
        let (state, unknown, watch) = (&self.tesla, &mut self.unknown, &mut self.watch);
        let number = batch.begin & 0x0fff_ffff;
        let Some(mut topology) = draw::topology(number) else {
            unknown.note(format!("primitive {number:#x}"));
            return Ok(());
        };
        if let Some(captured) = captured {
            captured.primitive = format!("{topology:?}");
        }
        let made_from = (state.changes(), self.options);
        let mut known =
            self.known.vertex.take().filter(|known| !watch.is_on() && known.made_from == made_from);
        known = known.take_if(|known| known.shader.renew(&mut self.cache.images, memory));
        let (is_new, named) = (known.is_none(), unknown.times());
        let known = match known {
            Some(known) => known,
            None => {
                let bound = (state, &self.bindings, &mut *unknown);
                let shader =
                    Shader::new(VERTEX, self.chip, bound, &mut self.cache, memory, self.options, watch)?;
                let map = Map::new(state, m::VP_RESULT_MAP_SIZE, m::VP_RESULT_MAP, 0x40);
                Box::new(VertexParts { made_from, shader, map })
            }
        };
        // If a draw uses an unsupported feature, the next draw must report the feature again. The state of such a draw
        // is therefore not reused.
        let is_known = !is_new || unknown.times() == named;
        let vertex = &known.shader;
        let launch =
            launch::Vertex { setup: vertex.setup(), lanes: batch.ids.len(), inputs: inputs(state, batch) };
        let mut recording = captured
            .as_ref()
            .map(|_| vertex.vertices(batch.ids.iter().map(|id| [*id, batch.instance]).collect()));
        let lanes = vertex.run(Launch::Vertex(launch), recording.as_mut(), None);
        capture::add(captured, recording);
        let lanes = lanes?;
        self.counters.vertices += batch.ids.len() as u64;
        self.counters.vertex_launches += batch.ids.len() as u64;
        self.counters.primitives += query::primitives(topology, &batch.runs);
        let last_provokes = state.flag(m::PROVOKING_VERTEX_LAST);
        // `slots` contains the slots of the vertices of all primitives. `runs` contains the runs of these vertices.
        let slots = known.map.slots(&lanes);
        let (slots, runs): (Slots, Cow<'_, [Vec<usize>]>) = match state.flag(m::GP_ENABLE) {
            false => (slots, Cow::from(&batch.runs)),
            true => {
                let recording = captured.as_ref().map(|_| vertex.vertices(Vec::new()).of_geometry());
                capture::add(captured, recording);
                let context = geometry::Context {
                    chip: self.chip,
                    state,
                    bindings: &self.bindings,
                    options: self.options,
                };
                let environment = (unknown, watch, &mut self.cache);
                let made = geometry::run(&context, environment, memory, topology, batch, &slots)?;
                topology = made.topology;
                self.counters.geometry_launches += made.launches;
                self.counters.geometry_primitives += query::primitives(topology, &made.runs);
                (made.slots, made.runs.into())
            }
        };
        if is_known {
            self.known.vertex = Some(known);
        }
        let state = &self.tesla;
        // The erratum [`Erratum::GeneratedCounter`]: only transform feedback increases the counter of generated
        // primitives. Two results of NV92 show this erratum. If feedback is off, piglit's `primgen-query` fails. The
        // test `generatemipmap prims_generated`, in which the counter must not count the primitives of blits, passes.
        if state.flag(m::STRMOUT_ENABLE) {
            self.cache.images.changed();
            self.feedback.write(
                state,
                &mut self.counters,
                memory,
                (topology, last_provokes),
                (&slots, &runs),
            );
        } else if !state.errata.has(Erratum::GeneratedCounter) {
            self.counters.generated += query::primitives(topology, &runs);
        }
        // If the draw has no geometry program, the chip stores the number of the primitive in a slot. Vertex programs
        // do not write to this slot.
        let number_slot = (state.word(m::SEMANTIC_PRIM_ID) & 0xff) as usize;
        let (topology, slots, runs) = match number_slot != 0 && !state.flag(m::GP_ENABLE) {
            false => (topology, slots, runs),
            true => {
                let (slots, runs) = numbered(topology, number_slot, &slots, &runs, last_provokes);
                (list_of(topology), slots, Cow::from(runs))
            }
        };
        let (layers, viewports) = (state.word(m::LAYER) >> 16 & 1 != 0, state.flag(m::GP_VIEWPORT_ID_ENABLE));
        if !layers && !viewports {
            let layer = (state.word(m::LAYER) & 0xffff) as usize;
            return match runs.is_empty() {
                true => Ok(()),
                false => {
                    self.raster(memory, (topology, Window { layer, viewport: 0 }), (&slots, &runs), captured)
                }
            };
        }
        for WindowRuns { topology, window, runs } in windows(state, topology, &slots, &runs) {
            self.raster(memory, (topology, window), (&slots, &runs), captured)?;
        }
        Ok(())
    }

    fn raster(
        &mut self,
        memory: Vram<'_>,
        (topology, window): (Topology, Window),
        (slots, runs): (&Slots, &[Vec<usize>]),
        captured: &mut Option<Captured>,
    ) -> Result<(), Fault> {
        let (state, unknown) = (&self.tesla, &mut self.unknown);
        let made_from = (state.changes(), self.options, topology, window);
        let is_on = self.watch.is_on();
        let mut known = self.known.fragment.take().filter(|known| !is_on && known.made_from == made_from);
        known = known.take_if(|known| known.shader.renew(&mut self.cache.images, memory));
        let (is_new, named) = (known.is_none(), unknown.times());
        let mut slices = Slices::new(memory.len());
        let known = match known {
            Some(known) => known,
            None => {
                if !state.flag(m::RASTERIZE_ENABLE) {
                    return Ok(());
                }
                let bound = (state, &self.bindings, &mut *unknown);
                let watch = &mut self.watch;
                let shader =
                    Shader::new(FRAGMENT, self.chip, bound, &mut self.cache, memory, self.options, watch)?;
                let reads = Reads::new((state, &mut *unknown), topology, shader.centroids());
                let draw = draw::draw((state, &mut *unknown, &mut slices), topology, &reads, window);
                let results = FragmentResults::new((state, &mut *unknown));
                Box::new(FragmentParts { made_from, reads, draw, results, shader })
            }
        };
        // If a draw uses an unsupported feature, the next draw must report the feature again. The state of such a draw
        // is therefore not reused. If `slices` is not empty, the draw stores slices at the end of memory. The end of
        // memory is restored after the draw. Therefore, the state of the draw is also not reused.
        let is_known = !is_new || unknown.times() == named && slices.is_empty();
        let FragmentParts { reads, draw, results, shader, .. } = &*known;
        reads.vertices(state, slots, &mut self.shaded);
        let recording = captured.as_mut().map(|captured| shader.fragments(results.count(), captured, draw));
        let stage = FragmentStage::new(shader, reads, *results, recording);
        slices.take(memory);
        let vertices = Vertices { all: &self.shaded, runs };
        let drawn = draw_with(draw, COORDINATES, vertices, memory, &stage);
        capture::add(captured, stage.recording.end());
        self.watch.surfaces(self.draws, draw, memory);
        let in_place = slices.is_empty();
        slices.put(memory);
        match in_place {
            true => draw.written().for_each(|range| self.cache.images.written(&range)),
            false => self.cache.images.changed(),
        }
        let counts = drawn?;
        self.counters.clip_in += counts.primitives;
        self.counters.clip_out += counts.clipped;
        self.counters.pixels += counts.passed;
        if state.flag(m::SAMPLECNT_ENABLE) {
            self.counters.samples += counts.passed;
        }
        self.shaded.truncate(KEPT);
        if is_known {
            self.known.fragment = Some(known);
        }
        Ok(())
    }
}

/// Returns separate copies of the vertices of each primitive, with the primitive's number in slot `number_slot`. All
/// triangles of one quad or polygon have the same number.
fn numbered(
    topology: Topology,
    number_slot: usize,
    slots: &Slots,
    runs: &[Vec<usize>],
    last_provokes: bool,
) -> (Slots, Vec<Vec<usize>>) {
    let mut all = Slots { words: Vec::new(), size: slots.size, count: 0 };
    let (mut vertices, mut first) = (Vec::new(), 0);
    for run in runs {
        for (number, primitive) in list(topology, run.len(), last_provokes).into_iter().enumerate() {
            let within = match topology {
                Topology::Quads | Topology::QuadStrip => number / 2,
                Topology::Polygon => 0,
                _ => number,
            };
            for vertex in primitive {
                let start = all.words.len();
                all.words.extend_from_slice(slots.of(run[vertex]));
                if let Some(word) = all.words[start..].get_mut(number_slot) {
                    *word = first + within as u32;
                }
                vertices.push(all.count);
                all.count += 1;
            }
        }
        first += count(topology, run.len()) as u32;
    }
    (all, vec![vertices])
}

/// Number of viewports of the chip.
const VIEWPORTS: u32 = 16;

/// Maximum number of layers of a colour target or depth buffer.
const LAYERS: u32 = 512;

/// Primitives that have the same layer and viewport.
#[derive(Debug, PartialEq, Eq)]
struct WindowRuns {
    topology: Topology,
    window: Window,
    runs: Vec<Vec<usize>>,
}

/// Splits runs into groups of primitives with the same layer and viewport. Two slots of each vertex contain the numbers
/// of the layer and the viewport. Primitives of one layer stay in order. Inferred: the provoking vertex determines
/// layer and viewport. OpenGL 4.1 permits this choice.
fn windows(state: &State, topology: Topology, slots: &Slots, runs: &[Vec<usize>]) -> Vec<WindowRuns> {
    let slot = |vertex: usize, method: u32, most: u32| {
        let slot = (state.word(method) & 0xff) as usize;
        slots.of(vertex).get(slot).copied().unwrap_or(0).min(most - 1) as usize
    };
    let (layers, viewports) = (state.word(m::LAYER) >> 16 & 1 != 0, state.flag(m::GP_VIEWPORT_ID_ENABLE));
    let window = |vertex: usize| Window {
        layer: match layers {
            true => slot(vertex, m::SEMANTIC_LAYER, LAYERS),
            false => (state.word(m::LAYER) & 0xffff) as usize,
        },
        viewport: if viewports { slot(vertex, m::SEMANTIC_VIEWPORT, VIEWPORTS) } else { 0 },
    };
    let last_provokes = state.flag(m::PROVOKING_VERTEX_LAST);
    let mut all: LiteMap<usize, Vec<WindowRuns>> = LiteMap::new();
    let mut add = |topology: Topology, window: Window, vertices: Vec<usize>| {
        let parts = all.entry(window.layer).or_default();
        match parts.last_mut() {
            Some(part) if (part.topology, part.window) == (topology, window) => part.runs.push(vertices),
            _ => parts.push(WindowRuns { topology, window, runs: vec![vertices] }),
        }
    };
    for run in runs {
        let first = run.first().map_or(Window::default(), |vertex| window(*vertex));
        if run.iter().all(|vertex| window(*vertex) == first) {
            add(topology, first, run.clone());
            continue;
        }
        let provoking = assemble(topology, run.len(), last_provokes).into_iter().map(|found| found.provoking);
        for (vertices, provoking) in list(topology, run.len(), last_provokes).iter().zip(provoking) {
            add(
                list_of(topology),
                window(run[provoking]),
                vertices.iter().map(|vertex| run[*vertex]).collect(),
            );
        }
    }
    all.into_iter().flat_map(|(_, parts)| parts).collect()
}

/// Returns the range of elements that the set-up word selects in `word`. `most` is the number of elements per word.
fn counted(setup: &mut Setup, word: u32, most: u32) -> Range<usize> {
    if word & 0x3fff_ffff == 0 {
        return 0..most as usize;
    }
    let first = setup.skip.min(most);
    let count = (most - first).min(setup.left);
    *setup = Setup { left: setup.left - count, skip: 0 };
    first as usize..(first + count) as usize
}

/// Returns the words of a[] of a vertex program. The first words are the enabled components of attributes. The last
/// words are the vertex id and the instance id.
fn inputs(state: &State, batch: &Batch) -> LiteMap<u16, Vec<u32>> {
    let mut inputs = LiteMap::with_capacity(ATTRIBUTES);
    let mut add = |values: Vec<u32>| {
        let next = inputs.len() as u16;
        inputs.insert(next, values);
    };
    for number in 0..ATTRIBUTES {
        let mask = state.nth(m::VP_ATTR_EN, number / 8) >> (4 * (number % 8));
        for component in (0..4).filter(|component| mask >> component & 1 != 0) {
            add(batch.attributes[number].component(component, batch.ids.len()));
        }
    }
    let builtin = state.word(m::VP_GP_BUILTIN_ATTR_EN);
    if builtin & 1 != 0 {
        add(batch.ids.clone());
    }
    if builtin & 0x10 != 0 {
        add(vec![batch.instance; batch.ids.len()]);
    }
    inputs
}

/// A result map. Each entry belongs to a slot. The entry is the number of the word of o[] that the chip stores in the
/// slot.
#[derive(Debug)]
pub(crate) struct Map {
    sources: Vec<u8>,
    /// Number of the source that means 0.0. This number plus one means 1.0.
    constants: u8,
}

impl Map {
    fn new(state: &State, size: u32, map: u32, constants: u8) -> Map {
        let count = state.word(size).min(132) as usize;
        let source = |slot: usize| (state.nth(map, slot / 4) >> (8 * (slot % 4))) as u8;
        Map { sources: (0..count).map(source).collect(), constants }
    }

    /// Returns an empty list of vertices.
    pub(crate) fn empty(&self) -> Slots {
        Slots { words: Vec::new(), size: self.sources.len(), count: 0 }
    }

    /// Adds the slots of a vertex to `slots`. `words` has the words of o[] of the vertex.
    fn add(&self, words: &[u32], slots: &mut Slots) {
        let value = |source: &u8| match *source {
            source if source == self.constants => 0,
            source if source == self.constants + 1 => 1f32.to_bits(),
            source => words.get(usize::from(source)).copied().unwrap_or(0),
        };
        slots.words.extend(self.sources.iter().map(value));
        slots.count += 1;
    }

    /// Returns the slots of all vertices, from the results of a vertex program.
    fn slots(&self, lanes: &LaneResults) -> Slots {
        let mut slots = Slots { count: lanes.len(), ..self.empty() };
        slots.words.resize(slots.count * slots.size, 0);
        for (warp, words) in slots.words.chunks_mut((WARP * slots.size).max(1)).enumerate() {
            for (slot, source) in self.sources.iter().enumerate() {
                let row = match *source {
                    source if source == self.constants => continue,
                    source if source == self.constants + 1 => [1f32.to_bits(); WARP],
                    source => lanes.output_row(warp, source.into()),
                };
                for (words, word) in words.chunks_exact_mut(slots.size).zip(row) {
                    words[slot] = word;
                }
            }
        }
        slots
    }
}

/// Words of the slots of all vertices, vertex by vertex.
#[derive(Clone, Debug)]
pub(crate) struct Slots {
    words: Vec<u32>,
    /// Number of slots of a vertex. Each slot has one word.
    size: usize,
    count: usize,
}

impl Slots {
    /// Returns the number of vertices.
    fn len(&self) -> usize {
        self.count
    }

    /// Returns the words of a vertex.
    fn of(&self, vertex: usize) -> &[u32] {
        &self.words[vertex * self.size..][..self.size]
    }
}

impl chip::SharedParts for Nv50 {
    fn submit(&mut self, _memory: Vram<'_>, submission: &Submission<'_>) -> Result<(), Fault> {
        let count = submission.commands.len();
        Err(Fault::Malformed(format!(
            "cannot execute {count} words: this chip reads its commands from memory"
        )))
    }

    fn push(
        &mut self,
        memory: Vram<'_>,
        segments: &[Range<usize>],
        buffers: &[Range<usize>],
    ) -> Result<(), Fault> {
        self.cache.images.begin();
        self.buffers.clear();
        self.buffers.extend_from_slice(buffers);
        self.submit_start_up(memory)?;
        self.starts = false;
        for segment in segments {
            if segment.end > memory.len() {
                return Err(Fault::Malformed(format!(
                    "a segment ends at {:#x}, past the end of memory",
                    segment.end
                )));
            }
            // The chip reads all words of a segment before the execution of the first word.
            for (word, at) in memory.words(segment.clone()).into_iter().zip(segment.clone().step_by(4)) {
                self.counters.time += 1;
                self.take(memory, word, at)?;
            }
        }
        if self.starts {
            self.faults.unsent = segments.last().map(|segment| segment.end);
        }
        self.fault.take().map_or(Ok(()), Err)
    }

    fn share(&mut self, parts: Option<&[Range<usize>]>) {
        self.cache.images.share(parts);
    }

    fn replaced(&mut self, part: &Range<usize>) {
        self.cache.images.replaced(part);
    }

    fn control(&mut self) -> (&mut Options, &mut Watch) {
        (&mut self.options, &mut self.watch)
    }

    fn take_remarks(&mut self) -> Vec<String> {
        self.faults.take_remarks()
    }

    fn unknown(&self) -> &Unknown {
        &self.unknown
    }

    fn draws(&self) -> u64 {
        self.draws
    }
}
