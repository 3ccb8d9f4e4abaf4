//! Packets of the command processor of R300 to R500 (PM4). A packet includes the buffers to which the relocations of
//! the packet refer.
//!
//! Source: Mesa `r300_reg.h` and `r300_cs.h`. A relocation is a NOP packet that belongs to the preceding packet. A
//! packet may have several relocations. This crate expects the same order of relocations as in captured streams.

use crate::{Fault, Submission, pm4};

/// Opcodes of type-3 packets.
#[allow(missing_docs)]
pub(super) mod op {
    pub(crate) const LOAD_VBPNTR: u8 = 0x2f;
    pub(crate) const INDX_BUFFER: u8 = 0x33;
    pub(crate) const DRAW_VBUF_2: u8 = 0x34;
    pub(crate) const DRAW_IMMD_2: u8 = 0x35;
    pub(crate) const DRAW_INDX_2: u8 = 0x36;
}

/// Kind of a packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    /// Type 0. The packet writes the words to contiguous registers, or all words to the same register.
    Registers {
        /// Byte address of the first register.
        first: u32,
        /// Whether all words are written to the first register.
        one: bool,
    },
    /// Type 3: the command with this opcode.
    Command(u8),
}

/// A packet of type 0 or 3.
pub(super) type Packet<'a> = pm4::RelocatedPacket<'a, Kind>;

/// Returns the packets of a submission.
///
/// # Errors
/// See [`pm4::read`]. Also returns a fault for a packet of type 1.
pub(super) fn read<'a>(submission: &Submission<'a>) -> Result<Vec<Packet<'a>>, Fault> {
    let kind = |header: u32| match header >> 30 {
        0 => Ok(Kind::Registers { first: (header & 0x1fff) * 4, one: header >> 15 & 1 != 0 }),
        3 => Ok(Kind::Command((header >> 8) as u8)),
        _ => Err("0, 2 or 3"),
    };
    pm4::read(submission, kind, |header, count| format!("a packet ({header:#010x}) of {count} words"))
}

#[cfg(test)]
mod tests {
    use std::ops::Range;

    use super::*;

    fn of<'a>(commands: &'a [u32], buffers: &'a [Range<usize>]) -> Result<Vec<Packet<'a>>, Fault> {
        read(&Submission { commands, buffers })
    }

    /// Captured words: the offset and the pitch of the colour buffer with their relocations, and the first word of a
    /// triangle fan.
    #[test]
    fn a_relocation_completes_the_packet_before_it() {
        let buffers = [0..16, 64..128];
        let commands = [
            0x0000_138a,
            0,
            0xc000_1000,
            4,
            0x0000_138e,
            0x00c3_0100,
            0xc000_1000,
            0,
            0xc000_3500,
            0x0004_0036,
        ];
        let packets = of(&commands, &buffers).unwrap();
        let [offset, pitch, draw] = &packets[..] else { panic!("{packets:?}") };
        assert_eq!(offset.kind, Kind::Registers { first: 0x4e28, one: false });
        assert_eq!((offset.buffers.first(), pitch.buffers.first()), (Some(&(64..128)), Some(&(0..16))));
        assert_eq!((draw.kind, draw.payload), (Kind::Command(op::DRAW_IMMD_2), &[0x0004_0036][..]));
    }

    #[test]
    fn what_is_malformed_is_named() {
        let error = |commands: &[u32]| of(commands, &[]).unwrap_err().to_string();
        assert!(error(&[0x0003_0824, 1]).contains("of 4 words, but the commands end after 1"));
        assert!(error(&[0x4000_0000]).contains("a packet of type 1"));
        assert!(error(&[0x0000_138a, 1, 0xc000_1000, 8]).contains("relocation 2 is not in the list of 0"));
    }
}
