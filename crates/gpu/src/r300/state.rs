//! The registers of the chip, its program memories, and the buffers that its addresses are in.

use std::collections::HashMap;
use std::ops::Range;

use reconverge_r500::pvs::run::Loaded;

use super::packet::{Kind, Packet};
use super::programs::{DecodedFrom, KeptFragmentProgram};
use super::registers::{self as reg, register};
use crate::kept::Kept;
use crate::unknown::Unknown;
pub(super) use crate::unknown::fields;

/// Bytes of the register space: 13 bits of words.
const SPACE: usize = 0x8000;
/// Words of an instruction of the fragment unit, and instructions and constants that it has.
pub(super) const US_WORDS: usize = 6;
const US_SLOTS: usize = 512;
const US_CONSTANTS: usize = 256;
/// Vectors of the vertex unit's memory: code, constants, planes.
const PVS_VECTORS: usize = 2048;
/// Where constants and user planes begin in it. (R500)
pub(super) const PVS_CONSTANTS: usize = 1024;
pub(super) const PVS_PLANES: usize = 1536;

/// A memory behind a port: an index register and a data register that counts on.
#[derive(Clone, Debug)]
struct Port {
    /// The word that comes next.
    next: usize,
}

/// The registers.
#[derive(Clone, Debug)]
pub(super) struct State {
    words: Vec<u32>,
    buffers: HashMap<u32, Range<usize>>,
    us_port: Port,
    us_code: Vec<u32>,
    us_constants: Vec<u32>,
    pvs_port: Port,
    pvs: Vec<u32>,
    pub(super) unknown: Unknown,
    /// Programs that were loaded.
    pub(super) fragment_programs: Kept<DecodedFrom, KeptFragmentProgram>,
    pub(super) vertex_programs: Kept<DecodedFrom, Loaded>,
}

impl Default for State {
    fn default() -> State {
        State {
            words: vec![0; SPACE / 4],
            buffers: HashMap::new(),
            us_port: Port { next: 0 },
            us_code: vec![0; US_SLOTS * US_WORDS],
            us_constants: vec![0; US_CONSTANTS * 4],
            pvs_port: Port { next: 0 },
            pvs: vec![0; PVS_VECTORS * 4],
            unknown: Unknown::default(),
            fragment_programs: Kept::default(),
            vertex_programs: Kept::default(),
        }
    }
}

impl State {
    /// The register at a byte address; 0 if it was never written.
    pub(super) fn word(&self, address: u32) -> u32 {
        self.words.get(address as usize / 4).copied().unwrap_or(0)
    }

    /// Register `number` of those that begin at an address.
    pub(super) fn nth(&self, address: u32, number: usize) -> u32 {
        self.word(address + 4 * number as u32)
    }

    /// The register as a float.
    pub(super) fn float(&self, address: u32, number: usize) -> f32 {
        f32::from_bits(self.nth(address, number))
    }

    pub(super) fn set(&mut self, address: u32, word: u32) {
        if let Some(place) = self.words.get_mut(address as usize / 4) {
            *place = word;
        }
    }

    /// The buffer that register `number` of those at an address had a relocation to, as places in memory.
    pub(super) fn buffer(&self, address: u32, number: usize) -> Option<Range<usize>> {
        self.buffers.get(&(address + 4 * number as u32)).cloned()
    }

    /// From `offset` in that buffer to its end; `None` where there is no buffer, or the place is behind its end.
    pub(super) fn place(&self, address: u32, number: usize, offset: usize) -> Option<Range<usize>> {
        let buffer = self.buffer(address, number)?;
        let start = buffer.start + offset;
        (start <= buffer.end).then_some(start..buffer.end)
    }

    /// Instructions of the fragment unit: words of slots in order.
    pub(super) fn us_code(&self, slots: Range<usize>) -> &[u32] {
        self.us_code.get(slots.start * US_WORDS..slots.end * US_WORDS).unwrap_or(&[])
    }

    /// A constant of the fragment unit.
    pub(super) fn us_constant(&self, number: u8) -> [u32; 4] {
        let (all, _) = self.us_constants.as_chunks::<4>();
        all.get(usize::from(number)).copied().unwrap_or_default()
    }

    /// Vectors of the vertex unit's memory: their words in order.
    pub(super) fn pvs_words(&self, vectors: Range<usize>) -> &[u32] {
        self.pvs.get(vectors.start * 4..vectors.end * 4).unwrap_or(&[])
    }

    /// A vector of the vertex unit's memory.
    pub(super) fn pvs(&self, number: usize) -> [u32; 4] {
        let (all, _) = self.pvs.as_chunks::<4>();
        all.get(number).copied().unwrap_or_default()
    }

    /// Executes a packet that writes registers. `each` is handed each address with the value and its relocation, after the
    /// register has it.
    pub(super) fn write(
        &mut self,
        packet: &Packet<'_>,
        mut each: impl FnMut(&mut State, u32, u32, Option<&Range<usize>>),
    ) {
        let Kind::Registers { first, one } = packet.kind else { return };
        let mut buffers = packet.buffers.iter();
        for (number, word) in packet.payload.iter().enumerate() {
            let address = if one { first } else { first + 4 * number as u32 };
            self.set(address, *word);
            match address {
                reg::GA_US_VECTOR_INDEX => {
                    let (index, constants) = ((word & 0x1ff) as usize, word >> 16 & 1 != 0);
                    self.us_port.next = index * if constants { 4 } else { US_WORDS };
                }
                reg::GA_US_VECTOR_DATA => {
                    let constants = self.word(reg::GA_US_VECTOR_INDEX) >> 16 & 1 != 0;
                    let memory = if constants { &mut self.us_constants } else { &mut self.us_code };
                    if let Some(place) = memory.get_mut(self.us_port.next) {
                        *place = *word;
                    }
                    self.us_port.next += 1;
                }
                reg::VAP_PVS_VECTOR_INDX_REG => self.pvs_port.next = (word & 0x7ff) as usize * 4,
                reg::VAP_PVS_UPLOAD_DATA => {
                    if let Some(place) = self.pvs.get_mut(self.pvs_port.next) {
                        *place = *word;
                    }
                    self.pvs_port.next += 1;
                }
                _ => {}
            }
            match register(address) {
                Some(known) => {
                    let buffer = if known.relocated { buffers.next() } else { None };
                    if let Some(buffer) = buffer {
                        self.buffers.insert(address, buffer.clone());
                    } else if known.relocated {
                        self.buffers.remove(&address);
                    }
                    each(self, address, *word, buffer);
                }
                None => self.unknown.note(format!("register {address:#x}")),
            }
        }
    }
}
