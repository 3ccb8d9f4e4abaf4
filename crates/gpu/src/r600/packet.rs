//! Packets of the command processor (PM4), with the buffers to which the relocations of the packets refer.
//!
//! Source: Mesa `r600d.h` (PKT2, PKT3 and their opcodes). A relocation is a NOP packet that belongs to the preceding
//! packet. A packet may have several relocations. This crate expects the same order of relocations as in captured
//! streams.

use crate::{Fault, Submission, pm4};

/// Opcodes of type-3 packets.
#[allow(missing_docs)]
pub(super) mod op {
    pub(crate) const SET_PREDICATION: u8 = 0x20;
    pub(crate) const START_3D_CMDBUF: u8 = 0x24;
    pub(crate) const CONTEXT_CONTROL: u8 = 0x28;
    pub(crate) const INDEX_TYPE: u8 = 0x2a;
    pub(crate) const DRAW_INDEX: u8 = 0x2b;
    pub(crate) const DRAW_INDEX_AUTO: u8 = 0x2d;
    pub(crate) const DRAW_INDEX_IMMD: u8 = 0x2e;
    pub(crate) const NUM_INSTANCES: u8 = 0x2f;
    pub(crate) const STRMOUT_BUFFER_UPDATE: u8 = 0x34;
    pub(crate) const COPY_DW: u8 = 0x3b;
    pub(crate) const WAIT_REG_MEM: u8 = 0x3c;
    pub(crate) const MEM_WRITE: u8 = 0x3d;
    pub(crate) const CP_DMA: u8 = 0x41;
    pub(crate) const SURFACE_SYNC: u8 = 0x43;
    pub(crate) const EVENT_WRITE: u8 = 0x46;
    pub(crate) const EVENT_WRITE_EOP: u8 = 0x47;
    pub(crate) const SET_CONFIG_REG: u8 = 0x68;
    pub(crate) const SET_CONTEXT_REG: u8 = 0x69;
    pub(crate) const SET_ALU_CONST: u8 = 0x6a;
    pub(crate) const SET_BOOL_CONST: u8 = 0x6b;
    pub(crate) const SET_LOOP_CONST: u8 = 0x6c;
    pub(crate) const SET_RESOURCE: u8 = 0x6d;
    pub(crate) const SET_SAMPLER: u8 = 0x6e;
    pub(crate) const SET_CTL_CONST: u8 = 0x6f;
    pub(crate) const STRMOUT_BASE_UPDATE: u8 = 0x72;
    pub(crate) const SURFACE_BASE_UPDATE: u8 = 0x73;
}

/// The header of a type-3 packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Command {
    /// Opcode of the packet.
    pub(super) op: u8,
    /// Whether the packet is skipped if the predicate disables drawing.
    pub(super) predicated: bool,
}

/// A type-3 packet.
pub(super) type Packet<'a> = pm4::RelocatedPacket<'a, Command>;

/// Returns the packets of a submission.
///
/// # Errors
/// See [`pm4::read`]. This function accepts only packets of types 2 and 3. The driver sends no packets of types 0 and
/// 1.
pub(super) fn read<'a>(submission: &Submission<'a>) -> Result<Vec<Packet<'a>>, Fault> {
    let command = |header: u32| match header >> 30 {
        3 => Ok(Command { op: (header >> 8) as u8, predicated: header & 1 != 0 }),
        _ => Err("2 or 3"),
    };
    pm4::read(submission, command, |header, count| {
        format!("packet {:#04x} has {count} words of payload", (header >> 8) as u8)
    })
}

#[cfg(test)]
mod tests {
    use std::ops::Range;

    use super::*;

    fn of<'a>(commands: &'a [u32], buffers: &'a [Range<usize>]) -> Result<Vec<Packet<'a>>, Fault> {
        read(&Submission { commands, buffers })
    }

    #[test]
    fn a_relocation_completes_the_packet_before_it() {
        let buffers = [0..16, 64..128];
        let commands = [0x8000_0000, 0xc001_6900, 0x10, 7, 0xc000_1000, 4, 0xc000_2f00, 1];
        let packets = of(&commands, &buffers).unwrap();
        let [set, instances] = &packets[..] else { panic!("{packets:?}") };
        assert_eq!((set.kind.op, set.payload), (op::SET_CONTEXT_REG, &[0x10, 7][..]));
        assert_eq!((set.buffers.len(), set.buffers.first()), (1, Some(&(64..128))));
        assert_eq!((instances.kind.op, instances.payload), (op::NUM_INSTANCES, &[1][..]));
        assert!(instances.buffers.is_empty());
    }

    #[test]
    fn what_is_malformed_is_named() {
        let error = |commands: &[u32]| of(commands, &[]).unwrap_err().to_string();
        assert_eq!(
            error(&[0xc003_6900, 1, 2]),
            "malformed submission: word 0: packet 0x69 has 4 words of payload, but the commands end after 2"
        );
        assert!(error(&[0x4000_0000]).contains("a packet of type 1"));
        assert!(error(&[0xc000_2f00, 1, 0xc000_1000, 8]).contains("relocation 2 is not in the list of 0"));
    }
}
