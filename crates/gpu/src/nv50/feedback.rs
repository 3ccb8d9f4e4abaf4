//! Transform feedback: slots of the vertices of whole primitives, into buffers. Source: Mesa `nv50_program.c`
//! (`nv50_program_create_strmout_state`) and `nv50_shader_state.c`.

use reconverge_raster::primitive::{Topology, assemble};

use super::methods::tesla as m;
use super::query::Counters;
use super::state::{State, store};

/// How many buffers there are.
pub(super) const BUFFERS: usize = 4;

/// Where feedback goes on.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Feedback {
    /// By buffer: bytes that are written.
    pub(super) offsets: [u32; BUFFERS],
    /// Primitives since STRMOUT_PARAMS_LATCH.
    primitives: u32,
}

impl Feedback {
    /// STRMOUT_PARAMS_LATCH: feedback begins where the methods say.
    pub(super) fn latch(&mut self, state: &State) {
        self.offsets = std::array::from_fn(|buffer| state.nth(m::STRMOUT_OFFSET, buffer));
        self.primitives = 0;
    }

    /// Writes the primitives of runs of vertices, each the words of its slots.
    pub(super) fn write(
        &mut self,
        state: &State,
        counters: &mut Counters,
        memory: &mut [u8],
        (topology, last_provokes): (Topology, bool),
        runs: &[Vec<Vec<u32>>],
    ) {
        let control = state.word(m::STRMOUT_BUFFERS_CTRL);
        let by_offset = control >> 1 & 1 != 0;
        let interleaved = control & 1 == 0 && control >> 4 & 0xf <= 1;
        let at = |buffer: usize| m::STRMOUT_ADDRESS_HIGH + 0x10 * buffer as u32;
        let words = |buffer: usize| state.word(at(buffer) + 8);
        let count = if interleaved { 1 } else { (control >> 4 & 0xf) as usize };
        let count = count.clamp(1, BUFFERS);
        let stride = |buffer: usize| match control >> 8 & 0xfff {
            stride if interleaved && stride != 0 => stride,
            _ => 4 * words(buffer),
        };
        // Where each buffer's words begin among all positions.
        let mut first = [0; BUFFERS + 1];
        for buffer in 0..BUFFERS {
            first[buffer + 1] = first[buffer] + words(buffer).next_multiple_of(4);
        }
        let source = |slot: usize| (state.nth(m::STRMOUT_MAP, slot / 4) >> (8 * (slot % 4))) as u8;
        let mut written = Vec::new();
        for slot in (0..128).filter(|slot| source(*slot) & 0x80 != 0) {
            let position = u32::from(source(slot) & 0x7f);
            let buffer = (0..count).rev().find(|buffer| position >= first[*buffer]).unwrap_or(0);
            written.push((slot, buffer, 4 * (position - first[buffer])));
        }
        let limit = state.word(m::STRMOUT_PRIMITIVE_LIMIT);
        for run in runs {
            for primitive in assemble(topology, run.len(), last_provokes) {
                counters.generated += 1;
                let vertices = &primitive.vertices[..usize::from(primitive.count)];
                let fits = |buffer: usize| {
                    let end =
                        u64::from(self.offsets[buffer]) + vertices.len() as u64 * u64::from(stride(buffer));
                    end <= u64::from(state.word(at(buffer) + 12))
                };
                let room = match by_offset {
                    true => (0..count).all(fits),
                    false => self.primitives < limit,
                };
                if !room {
                    continue;
                }
                counters.written += 1;
                self.primitives += 1;
                for vertex in vertices {
                    for (slot, buffer, offset) in &written {
                        let value = run[*vertex].get(*slot).copied().unwrap_or(0);
                        let place = state.address(at(*buffer)) + (self.offsets[*buffer] + offset) as usize;
                        store(memory, place, &value.to_le_bytes());
                    }
                    for buffer in 0..count {
                        self.offsets[buffer] = self.offsets[buffer].wrapping_add(stride(buffer));
                    }
                }
            }
        }
    }
}
