//! Transform feedback: writes the vertices of complete primitives to buffers. The sources are Mesa's `nv50_program.c`
//! (`nv50_program_create_strmout_state`) and `nv50_shader_state.c`.

use reconverge_raster::primitive::{Topology, list};
use reconverge_simt::vram::Vram;

use super::Slots;
use super::methods::tesla as m;
use super::query::Counters;
use super::state::State;

/// Number of feedback buffers.
pub(super) const BUFFERS: usize = 4;

/// State of transform feedback.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Feedback {
    /// For each buffer, the offset in bytes at which the next vertex is written.
    pub(super) offsets: [u32; BUFFERS],
    /// Number of primitives that feedback has written since STRMOUT_PARAMS_LATCH.
    primitives: u32,
}

impl Feedback {
    /// Executes STRMOUT_PARAMS_LATCH: starts feedback at the offsets that the methods have set.
    pub(super) fn latch(&mut self, state: &State) {
        self.offsets = std::array::from_fn(|buffer| state.nth(m::STRMOUT_OFFSET, buffer));
        self.primitives = 0;
    }

    /// Splits runs of vertices into primitives, and writes the slots of the vertices of each primitive. The function
    /// writes the vertices of a primitive in the order of a list topology. In a list topology, the provoking vertex is
    /// the first or the last vertex of a primitive.
    pub(super) fn write(
        &mut self,
        state: &State,
        counters: &mut Counters,
        memory: Vram<'_>,
        (topology, last_provokes): (Topology, bool),
        (slots, runs): (&Slots, &[Vec<usize>]),
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
        // STRMOUT_MAP numbers the words of all buffers consecutively. `first` has the number of each buffer's first
        // word.
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
            for vertices in list(topology, run.len(), last_provokes) {
                counters.generated += 1;
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
                        let value = slots.of(run[vertex]).get(*slot).copied().unwrap_or(0);
                        let place = state.address(at(*buffer)) + (self.offsets[*buffer] + offset) as usize;
                        memory.write(place, &value.to_le_bytes());
                    }
                    for buffer in 0..count {
                        self.offsets[buffer] = self.offsets[buffer].wrapping_add(stride(buffer));
                    }
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::methods::Object;
    use super::*;

    /// The expected order follows from EXT_transform_feedback. An application may draw the written vertices as a list.
    /// In the draw of the list, each primitive has the same flat colour as in the original draw.
    #[test]
    fn a_strip_is_written_with_the_vertex_that_provokes_in_its_place() {
        const BUFFER: usize = 0x1000;
        let written = |last_provokes: bool| {
            let (mut state, mut memory) = (State::new(Object::Tesla), vec![0; 0x2000]);
            // Feedback writes one word of each vertex, slot 0, to one buffer.
            state.set(m::STRMOUT_BUFFERS_CTRL, 0x10 | 2 | 4 << 8);
            state.set(m::STRMOUT_ADDRESS_HIGH + 4, BUFFER as u32);
            state.set(m::STRMOUT_ADDRESS_HIGH + 8, 1);
            state.set(m::STRMOUT_ADDRESS_HIGH + 12, 0x1000);
            state.set(m::STRMOUT_MAP, 0x80);
            let slots = Slots { words: (0..5).collect(), size: 1, count: 5 };
            let runs = [(0..5).collect()];
            let (mut feedback, mut counters) = (Feedback::default(), Counters::default());
            let how = (Topology::TriangleStrip, last_provokes);
            feedback.write(&state, &mut counters, Vram::new(&mut memory), how, (&slots, &runs));
            (0..9).map(|at| memory[BUFFER + 4 * at]).collect::<Vec<u8>>()
        };
        assert_eq!(written(true), [0, 1, 2, 2, 1, 3, 2, 3, 4]);
        assert_eq!(written(false), [0, 1, 2, 1, 3, 2, 2, 3, 4]);
    }
}
