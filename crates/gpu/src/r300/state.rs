//! The state of the chip: the registers, the memories of the program units, and the buffers to which relocations refer.

use std::ops::{Deref, DerefMut, Range};

use reconverge_board::errata::Errata;
use reconverge_r500::pvs::run::Loaded;

use super::packet::{Kind, Packet};
use super::programs::{DecodedFrom, KeptFragmentProgram};
use super::registers::{self as reg, register};
use crate::kept::Kept;
use crate::pm4::RelocatedRegisters;
use crate::unknown::Unknown;
pub(super) use crate::unknown::fields;

/// Size of the register space in bytes. A packet addresses words with 13 bits.
const SPACE: usize = 0x8000;
/// Number of words per instruction of the fragment unit, and numbers of instructions and constants that the fragment
/// unit stores.
pub(super) const US_WORDS: usize = 6;
const US_SLOTS: usize = 512;
const US_CONSTANTS: usize = 256;
/// Number of vectors in the vertex unit's memory, which contains code, constants and planes.
const PVS_VECTORS: usize = 2048;
/// Indices of the first constant and of the first user plane in the vertex unit's memory. (R500)
pub(super) const PVS_CONSTANTS: usize = 1024;
pub(super) const PVS_PLANES: usize = 1536;

/// A port through which registers write to a memory. A write to one register sets the index. A write to another
/// register stores a word and advances the index.
#[derive(Clone, Debug)]
struct Port {
    /// Index of the next word in the memory.
    next: usize,
}

/// The state that packets set.
#[derive(Clone, Debug)]
pub(super) struct State {
    registers: RelocatedRegisters,
    us_port: Port,
    us_code: Vec<u32>,
    us_constants: Vec<u32>,
    pvs_port: Port,
    pvs: Vec<u32>,
    pub(super) unknown: Unknown,
    /// The errata of the chip that are on.
    pub(super) errata: Errata,
    /// Number of changes to state on which draws depend. The number does not include changes of constants, changes of
    /// planes, and changes of registers that each draw reads again.
    changes: u64,
    /// Caches of programs from earlier draws.
    pub(super) fragment_programs: Kept<DecodedFrom, KeptFragmentProgram>,
    pub(super) vertex_programs: Kept<DecodedFrom, Loaded>,
}

impl Default for State {
    fn default() -> State {
        State {
            registers: RelocatedRegisters::new(SPACE),
            us_port: Port { next: 0 },
            us_code: vec![0; US_SLOTS * US_WORDS],
            us_constants: vec![0; US_CONSTANTS * 4],
            pvs_port: Port { next: 0 },
            pvs: vec![0; PVS_VECTORS * 4],
            unknown: Unknown::default(),
            errata: Errata::default(),
            changes: 0,
            fragment_programs: Kept::default(),
            vertex_programs: Kept::default(),
        }
    }
}

impl Deref for State {
    type Target = RelocatedRegisters;

    fn deref(&self) -> &RelocatedRegisters {
        &self.registers
    }
}

impl DerefMut for State {
    fn deref_mut(&mut self) -> &mut RelocatedRegisters {
        &mut self.registers
    }
}

/// Registers whose changes [`State::changes`] does not count. The list has two kinds of registers. Registers of the
/// first kind are read again at each draw. Registers of the second kind are ports. A write to a port stores a word in a
/// memory.
const READ_ANEW: [u32; 10] = [
    reg::GA_US_VECTOR_INDEX,
    reg::GA_US_VECTOR_DATA,
    reg::VAP_PVS_VECTOR_INDX_REG,
    reg::VAP_PVS_UPLOAD_DATA,
    reg::VAP_ALT_NUM_VERTICES,
    reg::VAP_INDEX_OFFSET,
    reg::VAP_VF_MAX_VTX_INDX,
    reg::VAP_VF_MIN_VTX_INDX,
    reg::ZB_ZPASS_DATA,
    reg::ZB_ZPASS_ADDR,
];

/// Mask of PVS_CONST_BASE_OFFSET in VAP_PVS_CONST_CNTL. The driver stores the constants of each draw after the
/// constants of the previous draw. Therefore, the driver changes this offset at each draw.
pub(super) const CONST_BASE: u32 = 0xff;

/// Stores words in a memory, up to the end of the memory. Returns whether the call changes a word before `end`.
fn put(memory: &mut [u32], start: usize, words: &[u32], end: usize) -> bool {
    let room = memory.get_mut(start..).unwrap_or_default();
    let count = room.len().min(words.len());
    let looked_at = end.saturating_sub(start).min(count);
    let changes = room[..looked_at] != words[..looked_at];
    room[..count].copy_from_slice(&words[..count]);
    changes
}

impl State {
    /// Returns a number that increases with each change to state on which draws depend. Changes of constants, planes,
    /// vertices and texels do not increase the number.
    pub(super) fn changes(&self) -> u64 {
        self.changes
    }

    /// Stores words in the fragment unit's memory of instructions or of constants.
    fn put_us(&mut self, words: &[u32]) {
        let constants = self.word(reg::GA_US_VECTOR_INDEX) >> 16 & 1 != 0;
        let (memory, end) = match constants {
            true => (&mut self.us_constants, 0),
            false => (&mut self.us_code, US_SLOTS * US_WORDS),
        };
        self.changes += u64::from(put(memory, self.us_port.next, words, end));
        self.us_port.next += words.len();
    }

    /// Stores words in the memory of the vertex unit.
    fn put_pvs(&mut self, words: &[u32]) {
        let changes = put(&mut self.pvs, self.pvs_port.next, words, 4 * PVS_CONSTANTS);
        self.changes += u64::from(changes);
        self.pvs_port.next += words.len();
    }

    /// Returns the words of the fragment unit's instructions in these slots.
    pub(super) fn us_code(&self, slots: Range<usize>) -> &[u32] {
        self.us_code.get(slots.start * US_WORDS..slots.end * US_WORDS).unwrap_or(&[])
    }

    /// Returns a constant of the fragment unit.
    pub(super) fn us_constant(&self, number: u8) -> [u32; 4] {
        let (all, _) = self.us_constants.as_chunks::<4>();
        all.get(usize::from(number)).copied().unwrap_or_default()
    }

    /// Returns the words of these vectors in the vertex unit's memory.
    pub(super) fn pvs_words(&self, vectors: Range<usize>) -> &[u32] {
        self.pvs.get(vectors.start * 4..vectors.end * 4).unwrap_or(&[])
    }

    /// Returns a vector from the vertex unit's memory.
    pub(super) fn pvs(&self, number: usize) -> [u32; 4] {
        let (all, _) = self.pvs.as_chunks::<4>();
        all.get(number).copied().unwrap_or_default()
    }

    /// Executes a packet that writes registers. After each write to a register, the function calls `each`. The
    /// arguments of `each` are the address of the register, the value, and the buffer of the register's relocation.
    pub(super) fn write(
        &mut self,
        packet: &Packet<'_>,
        mut each: impl FnMut(&mut State, u32, u32, Option<&Range<usize>>),
    ) {
        let Kind::Registers { first, one } = packet.kind else { return };
        if let (true, Some(last)) = (one, packet.payload.last()) {
            match first {
                reg::GA_US_VECTOR_DATA => self.put_us(packet.payload),
                reg::VAP_PVS_UPLOAD_DATA => self.put_pvs(packet.payload),
                _ => {}
            }
            if [reg::GA_US_VECTOR_DATA, reg::VAP_PVS_UPLOAD_DATA].contains(&first) {
                self.set(first, *last);
                return;
            }
        }
        let mut buffers = packet.buffers.iter();
        for (number, word) in packet.payload.iter().enumerate() {
            let address = if one { first } else { first + 4 * number as u32 };
            let changed = self.word(address) ^ *word;
            self.set(address, *word);
            match address {
                reg::GA_US_VECTOR_INDEX => {
                    let (index, constants) = ((word & 0x1ff) as usize, word >> 16 & 1 != 0);
                    self.us_port.next = index * if constants { 4 } else { US_WORDS };
                }
                reg::GA_US_VECTOR_DATA => self.put_us(&[*word]),
                reg::VAP_PVS_VECTOR_INDX_REG => self.pvs_port.next = (word & 0x7ff) as usize * 4,
                reg::VAP_PVS_UPLOAD_DATA => self.put_pvs(&[*word]),
                _ => {}
            }
            match register(address) {
                Some(known) => {
                    let mut changes = match address {
                        reg::VAP_PVS_CONST_CNTL => changed & !CONST_BASE != 0,
                        _ => changed != 0 && known.ignored.is_none() && !READ_ANEW.contains(&address),
                    };
                    let buffer = if known.relocated { buffers.next() } else { None };
                    if let Some(buffer) = buffer {
                        changes |= self.buffers.insert(address, buffer.clone()).as_ref() != Some(buffer);
                    } else if known.relocated {
                        changes |= self.buffers.remove(&address).is_some();
                    }
                    self.changes += u64::from(changes);
                    each(self, address, *word, buffer);
                }
                None => self.unknown.note(format!("register {address:#x}")),
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Between draws, the driver writes constants. The driver also writes registers, with the values that the registers
    /// already have.
    #[test]
    fn what_draws_depend_on_changes_only_by_other_values() {
        let mut state = State::default();
        let buffers = [0..64, 64..128];
        let mut changes = |first: u32, one: bool, payload: &[u32], buffers: &[Range<usize>]| {
            let before = state.changes();
            let kind = Kind::Registers { first, one };
            state.write(&Packet { kind, payload, buffers: buffers.to_vec(), at: 0 }, |_, _, _, _| {});
            state.changes() != before
        };
        assert!(changes(reg::SU_CULL_MODE, false, &[1], &[]));
        assert!(!changes(reg::SU_CULL_MODE, false, &[1], &[]));
        assert!(changes(reg::RB3D_COLOROFFSET0, false, &[0], &buffers[..1]));
        assert!(!changes(reg::RB3D_COLOROFFSET0, false, &[0], &buffers[..1]));
        assert!(changes(reg::RB3D_COLOROFFSET0, false, &[0], &buffers[1..]), "another buffer");
        assert!(changes(reg::RB3D_COLOROFFSET0, false, &[0], &[]), "no buffer");
        // If the offset of the constants changes, the number of changes stays the same. If the number of constants
        // changes, the number of changes increases.
        assert!(!changes(reg::VAP_PVS_CONST_CNTL, false, &[4], &[]));
        assert!(changes(reg::VAP_PVS_CONST_CNTL, false, &[4 | 3 << 16], &[]));
        for (port, data, constants, code) in [
            (reg::GA_US_VECTOR_INDEX, reg::GA_US_VECTOR_DATA, 1 << 16, 0),
            (reg::VAP_PVS_VECTOR_INDX_REG, reg::VAP_PVS_UPLOAD_DATA, PVS_CONSTANTS as u32, 0),
        ] {
            for one in [true, false] {
                let value = 7 + u32::from(one);
                assert!(!changes(port, false, &[constants], &[]));
                assert!(!changes(data, one, &[value], &[]), "constants");
                assert!(!changes(port, false, &[code], &[]));
                assert!(changes(data, one, &[value], &[]), "code");
                assert!(!changes(port, false, &[code], &[]));
                assert!(!changes(data, one, &[value], &[]), "the same code");
            }
        }
        assert_eq!((state.us_constant(0)[0], state.pvs(PVS_CONSTANTS)[0], state.pvs(0)[0]), (7, 7, 7));
        assert_eq!(state.word(reg::VAP_PVS_UPLOAD_DATA), 7);
    }

    /// A port stores consecutive words, and drops the words past the end of the memory.
    #[test]
    fn a_port_counts_on_to_the_end_of_its_memory() {
        let mut state = State::default();
        let mut write = |first: u32, one: bool, payload: &[u32]| {
            let kind = Kind::Registers { first, one };
            state.write(&Packet { kind, payload, buffers: Vec::new(), at: 0 }, |_, _, _, _| {});
        };
        write(reg::VAP_PVS_VECTOR_INDX_REG, false, &[PVS_VECTORS as u32 - 1]);
        write(reg::VAP_PVS_UPLOAD_DATA, true, &[1, 2]);
        write(reg::VAP_PVS_UPLOAD_DATA, true, &[3, 4, 5]);
        write(reg::VAP_PVS_UPLOAD_DATA, true, &[6]);
        assert_eq!(state.pvs(PVS_VECTORS - 1), [1, 2, 3, 4]);
    }
}
