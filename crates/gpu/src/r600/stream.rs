//! Stream-out: writes the vertices of a vertex program to buffers, primitive by primitive.
//!
//! The sources are Mesa's `r600_streamout.c` and `r600_shader.c` (`emit_streamout`). Sizes, strides and offsets count
//! dwords, and stream i is written to buffer i. If one buffer does not have room for a primitive, no buffer receives
//! the primitive (OpenGL 3.0, 2.15).

use reconverge_isa::sets::SortedSet;
use reconverge_r700::code::{CfOp, Code};
use reconverge_r700::outcome::Outcome;
use reconverge_r700::words::ExportInst;
use reconverge_raster::primitive::{Topology, list};
use reconverge_simt::vram::Vram;

use super::registers as reg;
use super::state::State;

/// Number of stream-out buffers.
pub(super) const BUFFERS: usize = 4;

/// Register of each buffer's size. The register after the size register contains the stride of the buffer.
const SIZES: [u32; BUFFERS] = [
    reg::VGT_STRMOUT_BUFFER_SIZE_0,
    reg::VGT_STRMOUT_BUFFER_SIZE_1,
    reg::VGT_STRMOUT_BUFFER_SIZE_2,
    reg::VGT_STRMOUT_BUFFER_SIZE_3,
];

/// Register of each buffer's base.
const BASES: [u32; BUFFERS] = [
    reg::VGT_STRMOUT_BUFFER_BASE_0,
    reg::VGT_STRMOUT_BUFFER_BASE_1,
    reg::VGT_STRMOUT_BUFFER_BASE_2,
    reg::VGT_STRMOUT_BUFFER_BASE_3,
];

/// State of the streams.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Streams {
    /// Offset of the next vertex in each buffer, in dwords.
    pub(super) offsets: [u32; BUFFERS],
    /// Number of primitives for which storage was needed.
    pub(super) needed: u64,
    /// Number of primitives that were written.
    pub(super) written: u64,
}

/// Returns, for each stream, which dwords of a vertex a program writes.
pub(super) fn dwords(code: &Code) -> [SortedSet<usize>; BUFFERS] {
    let mut found: [SortedSet<usize>; BUFFERS] = Default::default();
    for (_, cf) in code.instructions() {
        let CfOp::Memory(_, export) = &cf.op else { continue };
        let stream = match export.inst {
            ExportInst::MEM_STREAM0 => 0,
            ExportInst::MEM_STREAM1 => 1,
            ExportInst::MEM_STREAM2 => 2,
            ExportInst::MEM_STREAM3 => 3,
            _ => continue,
        };
        for step in 0..usize::from(export.burst) {
            let first = export.first_dword() as usize + step * usize::from(export.elem_dwords);
            let chans = (0..export.components()).filter(|chan| export.comp_mask >> chan & 1 != 0);
            found[stream].extend(chans.map(|chan| first + chan));
        }
    }
    found
}

impl Streams {
    /// Splits runs of vertices into primitives, and writes the vertices of each primitive. Each vertex is a lane of the
    /// outcome. The vertices of a primitive are written in the order of a list topology. In this order, the provoking
    /// vertex is the first or the last vertex.
    pub(super) fn write(
        &mut self,
        memory: Vram<'_>,
        state: &State,
        outcome: &Outcome,
        dwords: &[SortedSet<usize>; BUFFERS],
        (topology, last_provokes): (Topology, bool),
        runs: &[Vec<usize>],
    ) {
        let enabled = state.word(reg::VGT_STRMOUT_BUFFER_EN);
        let size = |buffer: usize| state.word(SIZES[buffer]);
        let stride = |buffer: usize| state.nth(SIZES[buffer], 1);
        let used: Vec<usize> =
            (0..BUFFERS).filter(|buffer| enabled >> buffer & 1 != 0 && size(*buffer) != 0).collect();
        for run in runs {
            for vertices in list(topology, run.len(), last_provokes) {
                self.needed += 1;
                let count = vertices.len() as u64;
                let fits = |buffer: &usize| {
                    let end = u64::from(self.offsets[*buffer]) + count * u64::from(stride(*buffer));
                    end <= u64::from(size(*buffer))
                };
                if used.is_empty() || !used.iter().all(fits) {
                    continue;
                }
                self.written += 1;
                for place in vertices {
                    for buffer in &used {
                        let record = outcome.memory.streams[*buffer].get(run[place]);
                        let Some(start) = state.place(BASES[*buffer], 0) else {
                            continue;
                        };
                        for dword in &dwords[*buffer] {
                            let value = record.and_then(|record| record.get(*dword)).copied().unwrap_or(0);
                            let at = start.start + 4 * (self.offsets[*buffer] as usize + dword);
                            if at + 4 <= start.end {
                                memory.write(at, &value.to_le_bytes());
                            }
                        }
                    }
                    for buffer in &used {
                        self.offsets[*buffer] = self.offsets[*buffer].wrapping_add(stride(*buffer));
                    }
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use reconverge_isa::Program;
    use reconverge_r700::chip::Chip;
    use reconverge_r700::launch::{Input, Launch, Stage};
    use reconverge_r700::run::run;
    use reconverge_simt::{Engine, Options};

    use super::*;

    /// To write only y, Mesa uses elements of one dword and subtracts one from ARRAY_BASE (`r600_shader.c`,
    /// `emit_streamout`).
    #[test]
    fn a_component_alone_goes_where_its_number_says() {
        // The word is MEM_STREAM0 WRITE 0 = R1.y, with ELEM_SIZE 0, COMP_MASK y, ARRAY_SIZE FFF and END_OF_PROGRAM.
        let words = vec![0x0000_8000, 0x9020_2fff];
        let mut launch = Launch::new(Chip::RV770, Stage::Vertex, 1);
        launch.inputs = vec![Input { gpr: 1, values: vec![[10, 11, 12, 13]].into() }];
        let code = Code::new(&words, 0, launch.environment.code_options());
        assert_eq!(dwords(&code)[0], SortedSet::from_iter([1]));
        for engine in [Engine::Reference, Engine::Fast] {
            let options = Options { engine, ..Options::default() };
            let outcome = run(&Program::from_words(words.clone()), &launch, &options).unwrap();
            assert_eq!(outcome.memory.streams[0], [[0, 11]], "{engine:?}");
        }
    }
}
