//! Results of queries, and fences. Source: Mesa `nv50_query_hw.c`, `nv50_screen.c`.

use reconverge_raster::primitive::{Topology, assemble};
use reconverge_simt::vram::Vram;

use super::methods::{QueryGet, tesla as m};
use super::state::{State, Unknown, fields};

/// What the chip counts.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Counters {
    /// Samples that passed all tests while they were counted.
    pub(super) samples: u64,
    /// Vertices that were shaded.
    pub(super) vertices: u64,
    /// Primitives that the last program before the raster gave.
    pub(super) generated: u64,
    /// Primitives that transform feedback wrote.
    pub(super) written: u64,
}

impl Counters {
    /// COUNTER_RESET.
    pub(super) fn reset(&mut self, word: u32) {
        match word {
            0x01 => self.samples = 0,
            0x10 => self.written = 0,
            0x11 => self.generated = 0,
            _ => {}
        }
    }

    /// Counts the primitives of runs of vertices.
    pub(super) fn count_generated<T>(&mut self, topology: Topology, last: bool, runs: &[Vec<T>]) {
        let count = |run: &Vec<T>| assemble(topology, run.len(), last).len() as u64;
        self.generated += runs.iter().map(count).sum::<u64>();
    }
}

/// Bytes that a result has, at most.
pub(super) const MOST_BYTES: usize = 16;

/// Writes what a word of QUERY_GET asks for. Time is 0: results do not depend on the host's clock.
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
        (0x0 | 0x1 | 0x2 | 0x3 | 0x4 | 0xa, _) => {
            unknown.note(format!("counter {} of unit {:#x}", what.select, what.unit));
            0
        }
        (unit, select) => {
            unknown.note(format!("QUERY_GET of unit {unit:#x}, select {select}"));
            0
        }
    };
    let done = if what.short {
        memory.write(at, &sequence.to_le_bytes())
    } else if what.counter {
        memory.write(at, &value.to_le_bytes()) && memory.write(at + 8, &[0; 8])
    } else {
        // The value is there before the sequence that announces it.
        memory.write(at + 4, &(value as u32).to_le_bytes())
            && memory.write(at + 8, &[0; 8])
            && memory.write(at, &sequence.to_le_bytes())
    };
    if !done {
        unknown.note("a query outside of memory");
    }
}
