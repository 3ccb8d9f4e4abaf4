//! Results of queries, and fences. Source: Mesa `nv50_query_hw.c`, `nv50_screen.c`.

use reconverge_raster::primitive::{Topology, count};
use reconverge_simt::vram::Vram;

use super::methods::{QueryGet, tesla as m};
use super::state::{State, Unknown, fields};

/// The chip's counters, which queries read.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Counters {
    /// Number of samples that have passed all tests. Samples count only while SAMPLECNT_ENABLE is set.
    pub(super) samples: u64,
    /// Two counts: the fetched vertices, and the primitives that these vertices form.
    pub(super) vertices: u64,
    pub(super) primitives: u64,
    /// Number of runs of the vertex program. The program runs once per vertex.
    pub(super) vertex_launches: u64,
    /// Two counts: the primitives for which the geometry program ran, and the primitives that the geometry program
    /// emitted.
    pub(super) geometry_launches: u64,
    pub(super) geometry_primitives: u64,
    /// Number of primitives that clipping received (`clip_in`), and number of primitives that clipping output
    /// (`clip_out`).
    pub(super) clip_in: u64,
    pub(super) clip_out: u64,
    /// Number of pixels that fragment programs output. Inferred: the depth test and the stencil test precede the
    /// program. Therefore, the number does not include pixels that fail one of the two tests.
    pub(super) pixels: u64,
    /// Number of primitives that transform feedback received.
    pub(super) generated: u64,
    /// Number of primitives that transform feedback wrote.
    pub(super) written: u64,
    /// Time in nanoseconds, which advances by one for each word of commands. Results therefore do not depend on the
    /// host's clock.
    pub(super) time: u64,
}

impl Counters {
    /// Executes COUNTER_RESET.
    pub(super) fn reset(&mut self, word: u32) {
        match word {
            0x01 => self.samples = 0,
            0x10 => self.written = 0,
            0x11 => self.generated = 0,
            _ => {}
        }
    }
}

/// Returns the number of primitives in runs of vertices. Inferred: each quad and each polygon counts as one primitive.
pub(super) fn primitives<T>(topology: Topology, runs: &[Vec<T>]) -> u64 {
    let count = |run: &Vec<T>| count(topology, run.len()) as u64;
    runs.iter().map(count).sum()
}

/// Maximum size of a result in bytes.
pub(super) const MOST_BYTES: usize = 16;

/// Writes the result that a word of QUERY_GET requests.
pub(super) fn get(
    state: &State,
    unknown: &mut Unknown,
    counters: &Counters,
    offsets: [u32; 4],
    memory: Vram<'_>,
    word: u32,
) {
    let what = fields!(unknown, QueryGet, word);
    let at = state.address(m::QUERY_ADDRESS_HIGH);
    let sequence = state.word(m::QUERY_SEQUENCE);
    if what.mode == 1 {
        return;
    }
    let value = match (what.unit, what.select) {
        (0xf, 0) => 0,
        (0xf, 1) => counters.samples,
        (0x5, 0) => 0,
        (0x5, 5) => counters.written,
        (0x5, 6) | (0x5, 9) => counters.generated,
        (0x5, 0xd) => offsets[usize::from(what.index) & 3].into(),
        (0x1, 0) => counters.vertices,
        (0x1, 1) => counters.primitives,
        (0x2, 2) => counters.vertex_launches,
        (0x6, 3) => counters.geometry_launches,
        (0x6, 4) => counters.geometry_primitives,
        (0x4, 7) => counters.clip_in,
        (0x4, 8) => counters.clip_out,
        (0xa, 9) => counters.pixels,
        (unit, select) => {
            unknown.note(format!("QUERY_GET of unit {unit:#x}, select {select}"));
            0
        }
    };
    let done = if what.short {
        memory.write(at, &sequence.to_le_bytes())
    } else if what.counter {
        memory.write(at, &value.to_le_bytes()) && memory.write(at + 8, &counters.time.to_le_bytes())
    } else {
        // The driver waits for the sequence number and then reads the value. The value is therefore written before the
        // sequence number.
        memory.write(at + 4, &(value as u32).to_le_bytes())
            && memory.write(at + 8, &counters.time.to_le_bytes())
            && memory.write(at, &sequence.to_le_bytes())
    };
    if !done {
        unknown.note("a query outside of memory");
    }
}
