//! The compute object, which launches compute programs over grids of blocks.
//!
//! The compute object shares constant buffers, textures and samplers with the 3D object. A compute program uses the
//! code window and the bindings of fragment programs. A launch reads and writes the buffers directly in memory. If a
//! segment of g[] extends past a buffer, a program still cannot access the bytes outside of the buffer. Sources: Mesa
//! `nv50_compute.c`, `nv50_compute.xml.h`, and streams captured from the driver.

use std::ops::Range;

use reconverge_simt::memory::{Buffer, Memory};
use reconverge_simt::vram::Vram;
use reconverge_simt::{Options, RunError};
use reconverge_tesla::driver_fixes;
use reconverge_tesla::launch::{Compute, Launch, Setup};
use reconverge_tesla::spaces::{Segment, Segments, Tiling};

use super::Nv50;
use super::faults::{self, Signature};
use super::methods::{
    BindTic, BindTsc, BlockAlloc, ComputeCb, GlobalMode, MpPmControl, compute as c, tesla as m,
};
use super::shader::{self, COMPUTE, Cache, WINDOW};
use super::state::{State, Unknown, fields, load};
use super::texture;
use crate::Fault;
use crate::observe::{Captured, Lanes, Launched, Machine, Output, Rows};

/// Maximum number of instructions that a warp of a compute program executes. A warp that executes more instructions
/// counts as hung. A host from the year 2023 executes this number of instructions in about one second. The limit for
/// draws is lower, because a draw must end sooner than a computation.
const WATCHDOG: u64 = 1 << 28;

/// `SEGMENT` contains the offsets in bytes of the five words of a GLOBAL entry. `SEGMENT_STEP` is the distance in bytes
/// between entries.
const SEGMENT: [u32; 5] = [0, 4, 8, 12, 16];
const SEGMENT_STEP: u32 = 0x20;

/// Number of the segment that covers all of memory.
const FLAT: usize = 15;

/// Numbers of two constant buffers. UNIFORMS contains the program's uniforms, which are c0[] of compute programs.
/// AUXILIARY contains the driver's own constants, which are c15[].
const UNIFORMS: usize = 0x7e;
const AUXILIARY: usize = 0x7f;
const BUFFER_BYTES: usize = 0x1_0000;

/// Offset in c15[] of the first image description. Each segment of g[] has one image description.
const DESCRIPTION: usize = 0x3c4;
/// Size of an image description in bytes.
const DESCRIPTION_BYTES: usize = 0x30;

/// Description of an image. The driver writes the description for programs. The description contains the size of the
/// image, the number of rows per layer, and log2 of the size of a tile. (`nv50_set_surface_info`)
struct Description([u32; 12]);

impl Description {
    /// Returns whether a tile of the image has several slices.
    fn is_deep(&self) -> bool {
        self.0[10] != 0
    }

    /// Returns the number of rows of all layers together, for an image without depth.
    fn rows(&self) -> u32 {
        let [_, height, layers, _, of_a_layer, ..] = self.0;
        if of_a_layer == 0 { height } else { of_a_layer.saturating_mul(layers) }
    }
}

impl Nv50 {
    /// Executes a method of the compute object.
    pub(super) fn compute_method(&mut self, memory: Vram<'_>, method: u32, word: u32) {
        self.compute.set(method, word);
        self.define_uniforms();
        match method {
            c::CB_DEF_SET => self.bindings.define(self.compute.address(c::CB_DEF_ADDRESS_HIGH), word),
            c::SET_PROGRAM_CB => {
                let bound = fields!(self.unknown, ComputeCb, word);
                self.bindings.constants[COMPUTE.program][usize::from(bound.slot)] =
                    (bound.valid != 0).then_some(bound.buffer);
                self.known.fragment = None;
            }
            c::CB_DATA..0x027c => {
                let at = self.compute.word(c::CB_ADDR);
                if let Some(stored) = self.bindings.store(memory, at, word) {
                    self.cache.images.written(&stored);
                }
                self.compute.set(c::CB_ADDR, at.wrapping_add(0x100));
            }
            c::BIND_TSC => {
                let bound = fields!(self.unknown, BindTsc, word);
                self.bindings.samplers[COMPUTE.textures][usize::from(bound.unit)] =
                    bound.valid.then_some(bound.id.into());
                self.known.fragment = None;
            }
            c::BIND_TIC => {
                let bound = fields!(self.unknown, BindTic, word);
                let units = &mut self.bindings.textures[COMPUTE.textures];
                if let Some(place) = units.get_mut(usize::from(bound.unit)) {
                    *place = bound.valid.then_some(bound.id);
                }
                self.known.fragment = None;
            }
            c::MP_PM_SET..c::MP_PM_CONTROL => {
                self.multiprocessor.set((method - c::MP_PM_SET) as usize / 4, word);
            }
            c::MP_PM_CONTROL..0x02f0 => {
                let control = fields!(self.unknown, MpPmControl, word);
                self.multiprocessor.control(
                    (method - c::MP_PM_CONTROL) as usize / 4,
                    control,
                    &mut self.unknown,
                );
            }
            c::CODE_CB_FLUSH => self.faults.flushed = true,
            c::QUERY_GET => self.query(memory, word),
            c::LAUNCH if self.compute_runs(memory) => self.launch(memory),
            _ => {}
        }
    }

    /// Defines the buffer of uniforms if no method has defined this buffer. The driver's start-up commands define the
    /// buffer of uniforms. In some cases, the driver does not submit the start-up commands
    /// (`nv50_screen_compute_setup`). The driver stores all constant buffers in one block of memory. Therefore, the
    /// function can derive the position of this buffer from the position of the auxiliary buffer.
    fn define_uniforms(&mut self) {
        let (start, _) = self.bindings.buffers[AUXILIARY];
        if let ((0, 0), Some(before)) = (self.bindings.buffers[UNIFORMS], start.checked_sub(BUFFER_BYTES)) {
            self.bindings.buffers[UNIFORMS] = (before, BUFFER_BYTES);
        }
    }

    /// Returns whether COND_MODE allows launches.
    fn compute_runs(&self, memory: Vram<'_>) -> bool {
        let at = self.compute.address(c::COND_ADDRESS_HIGH);
        condition(memory, at, self.compute.word(c::COND_MODE))
    }

    /// Writes the sequence number of a query. All commands before the query are already complete.
    fn query(&mut self, memory: Vram<'_>, word: u32) {
        let at = self.compute.address(c::QUERY_ADDRESS_HIGH);
        let sequence = self.compute.word(c::QUERY_SEQUENCE).to_le_bytes();
        let is_short = word >> 15 & 1 != 0;
        let time = self.counters.time.to_le_bytes();
        let done = memory.write(at, &sequence)
            && (is_short || memory.write(at + 4, &[0; 4]) && memory.write(at + 8, &time));
        if !done {
            self.unknown.note("a query outside of memory");
        }
        self.cache.images.written(&(at..at.saturating_add(super::query::MOST_BYTES)));
    }

    fn launch(&mut self, memory: Vram<'_>) {
        let dimensions = self.compute.word(c::GRIDDIM);
        let grid = [dimensions & 0xffff, dimensions >> 16];
        // A grid has no blocks if one side of the grid is zero.
        if grid.contains(&0) {
            return;
        }
        self.draws += 1;
        let number = self.draws;
        let mut captured = self.watch.begin(number, (grid[0] * grid[1]) as usize, 1);
        let run = self.run_grid(memory, grid, &mut captured).map_err(|fault| match fault {
            Fault::Trap(what) => Fault::Trap(format!("launch {number}: {what}")),
            other => other,
        });
        if let Err(fault) = self.watch.handed_over(captured, run) {
            self.fault.get_or_insert(fault);
        }
    }

    fn run_grid(
        &mut self,
        memory: Vram<'_>,
        grid: [u32; 2],
        captured: &mut Option<Captured>,
    ) -> Result<(), Fault> {
        let start = self.compute.word(c::CP_START_ID) & (WINDOW - 8);
        let window = match self.compute.address(c::CP_ADDRESS_HIGH) {
            0 => self.tesla.address(m::FP_ADDRESS_HIGH),
            own => own,
        };
        let options = self.compute_options();
        let block = self.compute.word(c::BLOCKDIM_XY);
        let block = [block & 0xffff, block >> 16, self.compute.word(c::BLOCKDIM_Z)];
        let params = user_params(&self.compute);
        let mapped = |number: &u32| self.compute.word(c::GLOBAL + SEGMENT_STEP * number + 12) != 0;
        let signature = Signature {
            parameters: params.len(),
            block,
            registers: self.compute.word(c::CP_REG_ALLOC_TEMP),
            shared_bytes: self.compute.word(c::SHARED_SIZE),
            segments: (0..16).filter(mapped).fold(0, |bits, number| bits | 1 << number),
        };
        self.faults.before_launch(memory, window.saturating_add(start as usize), &signature);
        let Cache { programs, images } = &mut self.cache;
        let program = shader::program(
            programs,
            (COMPUTE, self.chip),
            (window, start),
            memory,
            options,
            &mut self.watch,
        );
        self.faults.launched(&program.words, signature);
        // The first parameter word belongs to the driver. The arguments of the kernel follow the first word.
        let fixes = driver_fixes::DriverFixes {
            argument_bytes: params.len().saturating_sub(4) as u32,
            shared_bytes: self.compute.word(c::SHARED_SIZE),
        };
        self.faults.look_at(program.code(), fixes);
        let mut setup = Setup::new(self.chip);
        setup.registers = self.compute.word(c::CP_REG_ALLOC_TEMP).clamp(4, 128);
        // Each thread gets only as much local memory as the program uses. The full size would need much memory in a
        // launch with many threads. Only the program reads l[].
        setup.local_bytes = program.local_bytes;
        setup.code_base = start;
        setup.driver_fixes = self.faults.handled.then_some(fixes);
        setup.counters = self.multiprocessor.values();
        let bound = (&self.tesla, &self.bindings, &mut self.unknown);
        texture::bind(&mut setup.textures, (COMPUTE, self.chip), &program.reads, bound, images, memory);
        let bare = setup.clone();
        program.place_constants(&mut setup, &self.bindings, COMPUTE, memory, self.watch.is_on());
        let name = format!("{} of {} words", COMPUTE.name, program.words.len());
        let fault = |what: String| Fault::Trap(format!("{name}: {what}"));
        let loaded = program.loaded(setup, &bare, &options).map_err(|error| fault(error.to_string()))?;
        let described = self.bindings.constants[COMPUTE.program][15];
        let (described, _) = described.map_or((0, 0), |buffer| self.bindings.buffers[usize::from(buffer)]);
        let description = |number: usize| {
            let entry = described + DESCRIPTION + DESCRIPTION_BYTES * number;
            Description(std::array::from_fn(
                |word| if described == 0 { 0 } else { load(memory, entry + 4 * word) },
            ))
        };
        let mut segments = segments(&self.compute, &mut self.unknown, &description);
        let [reached, written] = program.segments;
        self.faults.limit_rows(&mut segments, reached, |number| description(number).rows());
        self.faults.map_first_segment(&mut segments, reached, params.len());
        let compute = Compute {
            setup: loaded.environment().setup.clone(),
            grid,
            block,
            shared_bytes: Some(self.compute.word(c::SHARED_SIZE)),
            dynamic_shared: 0,
            grid_id: self.compute.word(c::GRIDID) as u16,
            params,
            barriers: Some(
                fields!(self.unknown, BlockAlloc, self.compute.word(c::BLOCK_ALLOC)).barriers.into(),
            ),
            segments,
            memory: Memory::default(),
        };
        let ranges = ranges(&segments, reached, &self.buffers);
        let content = || -> Vec<Buffer> {
            ranges.iter().map(|range| Buffer::new(range.start as u32, memory.bytes(range.clone()))).collect()
        };
        let mut launched = captured.as_mut().map(|captured| {
            captured.primitive = "Blocks".to_owned();
            let compute = Compute { memory: Memory::new(content()).unwrap_or_default(), ..compute.clone() };
            let program = shader::chip_program(COMPUTE, self.chip, start, &program.words);
            Launched {
                stage: "compute",
                program,
                lanes: Lanes::Threads((grid[0] * grid[1]) as usize * block.iter().product::<u32>() as usize),
                machine: Machine::TeslaCompute(Box::new(compute)),
                options,
                outputs: Vec::new(),
                integers: false,
                too_large: None,
            }
        });
        let result = loaded.run_in_place(Launch::Compute(compute), memory, &ranges);
        let mut stored = Segments([None; 16]);
        (0..16).filter(|number| written >> number & 1 != 0).for_each(|n| stored.0[n] = segments.0[n]);
        for range in self::ranges(&stored, written, &self.buffers) {
            self.cache.images.written(&range);
        }
        if let (Some(launched), Ok(_)) = (&mut launched, &result) {
            launched.outputs = content().into_iter().map(output).collect();
        }
        if let (Some(captured), Some(launched)) = (captured, launched) {
            captured.launches.push(launched);
        }
        if let Ok(outcome) = &result {
            self.multiprocessor.count(&outcome.statistics, grid);
            if outcome.dropped {
                self.faults.name(faults::DriverFault::Beyond);
            }
        }
        result.map(|_| ()).map_err(|error| match error {
            RunError::Trap(trap) => fault(trap.to_string()),
            other => fault(other.to_string()),
        })
    }

    /// Returns the options with which compute programs run.
    fn compute_options(&self) -> Options {
        Options { watchdog: WATCHDOG, ..self.options }
    }
}

/// Returns the result of the condition that `mode`, a value of COND_MODE, selects. `at` is the address of the query
/// results that the condition reads.
pub(super) fn condition(memory: Vram<'_>, at: usize, mode: u32) -> bool {
    let long = |at: usize| u64::from(load(memory, at)) | u64::from(load(memory, at + 4)) << 32;
    match mode {
        0 => false,
        2 => load(memory, at + 4) != 0,
        3 => long(at) == long(at + 16),
        4 => long(at) != long(at + 16),
        _ => true,
    }
}

/// Returns the bytes of USER_PARAM, which programs read at s\[0x10\] and above.
fn user_params(state: &State) -> Vec<u8> {
    let count = (state.word(c::USER_PARAM_COUNT) >> 8 & 0xff).min(64) as usize;
    (0..count).flat_map(|number| state.nth(c::USER_PARAM, number).to_le_bytes()).collect()
}

/// Returns the segments of g[] that the GLOBAL entries describe.
///
/// If the tiles of a surface have one slice, this crate stores the surface row by row (see `surface`). GLOBAL does not
/// contain the number of slices per tile, because programs compute the addresses of slices. This function therefore
/// reads the number from the driver's description of the image.
fn segments(state: &State, unknown: &mut Unknown, description: &dyn Fn(usize) -> Description) -> Segments {
    let mut segments = Segments([None; 16]);
    for (number, segment) in segments.0.iter_mut().enumerate() {
        let entry = c::GLOBAL + SEGMENT_STEP * number as u32;
        let [_, _, pitch, limit, mode] = SEGMENT.map(|word| state.word(entry + word));
        let address = state.address(entry);
        let mode = fields!(unknown, GlobalMode, mode);
        if (address, limit) == (0, 0) {
            continue;
        }
        let Ok(base) = u32::try_from(address) else {
            unknown.note(format!("g{number}[] beyond 32-bit addresses"));
            continue;
        };
        let rows = (2 + mode.tile_rows).min(7);
        let tiling = match (mode.linear, !mode.linear && description(number).is_deep()) {
            (true, _) => None,
            (false, true) => Some(Tiling { pitch, rows }),
            (false, false) => Some(Tiling { pitch: pitch >> rows, rows: 0 }),
        };
        // OpenGL requires that a program reads zeros past the end of a buffer or an image. The driver relies on the
        // chip to return these zeros.
        *segment = Some(Segment { base, limit, tiling, lenient: number != FLAT });
    }
    segments
}

/// Returns the ranges of memory that are both in a buffer and in a segment. `reached` is the bit set of these segments.
/// The ranges are disjoint and in ascending order.
fn ranges(segments: &Segments, reached: u16, buffers: &[Range<usize>]) -> Vec<Range<usize>> {
    let reached = (0..16).filter(|number| reached >> number & 1 != 0).filter_map(|n| segments.0[n]);
    let mut all = Vec::new();
    for Segment { base, limit, tiling, .. } in reached {
        let bytes = match tiling {
            None => limit as usize + 1,
            Some(Tiling { pitch, rows }) => ((limit >> 16 >> rows) as usize + 1) * pitch as usize,
        };
        let (start, end) = (base as usize, (base as usize + bytes).min(1 << 32));
        let parts = buffers.iter().map(|buffer| buffer.start.max(start)..buffer.end.min(end));
        all.extend(parts.filter(|part| !part.is_empty()));
    }
    all.sort_by_key(|part| part.start);
    let mut apart: Vec<Range<usize>> = Vec::with_capacity(all.len());
    for part in all {
        match apart.last_mut() {
            Some(last) if part.start < last.end => last.end = last.end.max(part.end),
            _ => apart.push(part),
        }
    }
    apart
}

/// Returns the name of a buffer in launch files, and the contents of the buffer after a launch.
fn output(buffer: Buffer) -> (String, Output) {
    let words = buffer.bytes.as_chunks().0.iter().map(|word| u32::from_le_bytes(*word)).collect();
    (buffer_name(buffer.address), Output::Words(Rows { width: 1, words }))
}

/// Returns the name that launch files use for the buffer at an address.
pub(crate) fn buffer_name(address: u32) -> String {
    format!("buffer-{address:08x}")
}
