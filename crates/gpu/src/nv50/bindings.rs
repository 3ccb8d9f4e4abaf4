//! Stages of the pipeline, and the constants, textures and samplers that are bound to the stages.

use std::ops::Range;

use reconverge_simt::vram::Vram;
use reconverge_tesla::inst::Stage;

/// A stage of the pipeline, and the methods that select the stage's program.
#[derive(Clone, Copy, Debug)]
pub(super) struct Unit {
    pub(super) stage: Stage,
    pub(super) name: &'static str,
    pub(super) window: u32,
    pub(super) start: u32,
    pub(super) registers: u32,
    /// Number of the stage in SET_PROGRAM_CB.
    pub(super) program: usize,
    /// Number of the stage in BIND_TIC and BIND_TSC.
    pub(super) textures: usize,
}

/// The bindings that the methods have set. Each call of a method sets one binding.
#[derive(Clone, Debug)]
pub(super) struct Bindings {
    /// CB_DEF_SET: address and size in bytes of each constant buffer, indexed by buffer number.
    pub(super) buffers: Vec<(usize, usize)>,
    /// SET_PROGRAM_CB: number of a constant buffer, indexed by program and slot.
    pub(super) constants: [[Option<u8>; 16]; 16],
    /// BIND_TIC: number of a texture entry, indexed by stage and texture number.
    pub(super) textures: [Vec<Option<u32>>; 3],
    /// BIND_TSC: number of a sampler entry, indexed by stage and sampler number.
    pub(super) samplers: [[Option<u32>; 16]; 3],
}

impl Default for Bindings {
    fn default() -> Bindings {
        Bindings {
            buffers: vec![(0, 0); 128],
            constants: [[None; 16]; 16],
            textures: std::array::from_fn(|_| vec![None; 256]),
            samplers: [[None; 16]; 3],
        }
    }
}

impl Bindings {
    /// Executes CB_DEF_SET: defines a constant buffer at `start`.
    pub(super) fn define(&mut self, start: usize, word: u32) {
        let size = match word & 0xffff {
            0 => 0x1_0000,
            size => size as usize,
        };
        self.buffers[(word >> 16 & 0x7f) as usize] = (start, size);
    }

    /// Executes CB_DATA: stores a word at the position of CB_ADDR. Returns the range of the stored word, or `None` if
    /// the position is outside of the buffer.
    pub(super) fn store(&self, memory: Vram<'_>, address: u32, word: u32) -> Option<Range<usize>> {
        let (start, size) = self.buffers[(address & 0x7f) as usize];
        let offset = (address >> 8) as usize * 4;
        if offset >= size {
            return None;
        }
        let at = start.saturating_add(offset);
        memory.write(at, &word.to_le_bytes());
        Some(at..at.saturating_add(4))
    }
}
