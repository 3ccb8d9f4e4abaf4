//! The registers of the chip, the resources, and the buffers to which relocations refer.

use std::ops::{Deref, DerefMut, Range};

use litemap::LiteMap;
use reconverge_board::errata::Errata;

use super::packet::{Packet, op};
use super::program::{KeptProgram, ProgramKey, Reached};
use super::registers::{self as reg, Register, register};
use super::texture::{Images, Resource};
use crate::kept::Kept;
use crate::pm4::RelocatedRegisters;
use crate::unknown::Unknown;
pub(super) use crate::unknown::fields;

/// Number of words of a resource, and of a sampler.
const RESOURCE_WORDS: u32 = 7;
const SAMPLER_WORDS: u32 = 3;

/// Byte addresses to which the packets that set registers add their offsets.
const CONFIG: u32 = 0x8000;
const CONTEXT: u32 = 0x28000;
const ALU_CONST: u32 = 0x30000;
const RESOURCE: u32 = 0x38000;
const SAMPLER: u32 = 0x3c000;
const CTL_CONST: u32 = 0x3cff0;
const LOOP_CONST: u32 = 0x3e200;
const BOOL_CONST: u32 = 0x3e380;

/// Size of the register space in bytes. A packet contains an offset of up to 16 bits, which counts words. The address
/// of a register is the offset plus one of the constants above. BOOL_CONST is the largest of these constants.
const SPACE: u32 = BOOL_CONST + 4 * 0x1_0000;

/// The state that packets set, and the caches of programs and images.
#[derive(Clone, Debug)]
pub(super) struct State {
    registers: RelocatedRegisters,
    resources: LiteMap<u32, Resource>,
    pub(super) unknown: Unknown,
    /// The errata of the chip that are on.
    pub(super) errata: Errata,
    pub(super) images: Images,
    pub(super) reached: Reached,
    /// See [`State::changes`].
    changes: u64,
    /// Cache of programs from earlier draws.
    pub(super) programs: Kept<ProgramKey, KeptProgram>,
}

impl Default for State {
    fn default() -> State {
        State {
            registers: RelocatedRegisters::new(SPACE as usize),
            resources: LiteMap::new(),
            unknown: Unknown::default(),
            errata: Errata::default(),
            images: Images::default(),
            reached: Reached::default(),
            changes: 0,
            programs: Kept::default(),
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

/// Registers that each draw reads again. [`State::changes`] does not count changes of these registers. The registers
/// contain the addresses and sizes of constant buffers.
const READ_ANEW: [u32; 6] = [
    reg::ALU_CONST_BUFFER_SIZE_PS_0,
    reg::ALU_CONST_BUFFER_SIZE_VS_0,
    reg::ALU_CONST_BUFFER_SIZE_GS_0,
    reg::ALU_CONST_CACHE_PS_0,
    reg::ALU_CONST_CACHE_VS_0,
    reg::ALU_CONST_CACHE_GS_0,
];

/// Number of constant buffers per stage.
const CONSTANT_BUFFERS: u32 = 16;

fn is_read_anew(address: u32) -> bool {
    READ_ANEW.iter().any(|first| (*first..first + 4 * CONSTANT_BUFFERS).contains(&address))
}

impl State {
    /// Returns a number that increases with each change of a register or a buffer on which draws depend. Changes of
    /// constant buffers do not increase the number.
    pub(super) fn changes(&self) -> u64 {
        self.changes
    }

    /// Sets a register to a word.
    pub(super) fn set(&mut self, address: u32, word: u32) {
        let changes = self.word(address) != word && !is_read_anew(address);
        self.changes += u64::from(changes);
        self.registers.set(address, word);
    }

    /// Sets the buffer to which the relocation of a register refers.
    fn set_buffer(&mut self, address: u32, buffer: Option<&Range<usize>>) {
        let changes = self.buffers.get(&address) != buffer && !is_read_anew(address);
        self.changes += u64::from(changes);
        match buffer {
            Some(buffer) => self.buffers.insert(address, buffer.clone()),
            None => self.buffers.remove(&address),
        };
    }

    /// Returns the range in memory from the address in a register to the end of the register's buffer. The register has
    /// the index `number` in the array of registers at `address`. The register's value counts units of 256 bytes.
    /// Returns `None` in two cases: no relocation followed the write of the register, or the address is past the end of
    /// the buffer.
    pub(super) fn place(&self, address: u32, number: usize) -> Option<Range<usize>> {
        self.registers.place(address, number, self.nth(address, number) as usize * 256)
    }

    pub(super) fn resource(&self, number: u32) -> Option<&Resource> {
        self.resources.get(&number)
    }

    /// Returns the words of a sampler.
    pub(super) fn sampler(&self, number: u32) -> [u32; 3] {
        [0, 1, 2].map(|word| self.nth(SAMPLER, (number * SAMPLER_WORDS + word) as usize))
    }

    /// Returns a loop constant (SQ_LOOP_CONST).
    pub(super) fn loop_constant(&self, number: usize) -> u32 {
        self.nth(LOOP_CONST, number)
    }

    /// Returns the number of the first instance (SQ_VTX_START_INST_LOC).
    pub(super) fn first_instance(&self) -> u32 {
        self.word(CTL_CONST + 4)
    }

    /// Returns the name of a register for messages.
    fn name(known: &Register, address: u32) -> String {
        match (address - known.address) / 4 {
            0 => known.name.to_owned(),
            number => format!("{} + {number}", known.name),
        }
    }

    /// Executes a packet that sets registers. Returns `false` if the packet is of another kind.
    pub(super) fn set_packet(&mut self, packet: &Packet<'_>) -> bool {
        let base = match packet.kind.op {
            op::SET_CONFIG_REG => CONFIG,
            op::SET_CONTEXT_REG => CONTEXT,
            op::SET_ALU_CONST => ALU_CONST,
            op::SET_BOOL_CONST => BOOL_CONST,
            op::SET_LOOP_CONST => LOOP_CONST,
            op::SET_RESOURCE => RESOURCE,
            op::SET_SAMPLER => SAMPLER,
            op::SET_CTL_CONST => CTL_CONST,
            _ => return false,
        };
        let (first, values) = (packet.payload[0] & 0xffff, &packet.payload[1..]);
        if packet.kind.op == op::SET_RESOURCE {
            self.set_resource(first / RESOURCE_WORDS, values, &packet.buffers);
            return true;
        }
        let mut buffers = packet.buffers.iter();
        for (address, word) in (base + 4 * first..).step_by(4).zip(values) {
            self.set(address, *word);
            if packet.kind.op != op::SET_CONFIG_REG && packet.kind.op != op::SET_CONTEXT_REG {
                continue;
            }
            match register(address) {
                Some(known) if known.relocated => {
                    let buffer = buffers.next();
                    self.set_buffer(address, buffer);
                    if buffer.is_none() && *word != 0 {
                        self.unknown.note(format!("{} without a relocation", State::name(known, address)));
                    }
                }
                Some(_) => {}
                None => self.unknown.note(format!("register {address:#x}")),
            }
        }
        true
    }

    fn set_resource(&mut self, number: u32, values: &[u32], buffers: &[Range<usize>]) {
        let mut words = [0; 7];
        for (word, value) in words.iter_mut().zip(values) {
            *word = *value;
        }
        match self.resources.get_mut(&number) {
            Some(known) => {
                known.words = words;
                buffers.clone_into(&mut known.buffers);
            }
            None => {
                self.resources.insert(number, Resource { words, buffers: buffers.to_vec() });
            }
        }
    }
}
