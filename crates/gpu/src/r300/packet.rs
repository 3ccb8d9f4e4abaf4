//! Packets of the command processor of R300 to R500 (PM4), with the buffers that their relocations name.
//!
//! Source: Mesa `r300_reg.h` and `r300_cs.h`; the order of relocations from captured streams. A relocation is a NOP packet
//! that completes the packet before it.

use std::ops::Range;

use crate::{Fault, Submission};

/// Opcodes of type-3 packets.
#[allow(missing_docs)]
pub(super) mod op {
    pub(crate) const NOP: u8 = 0x10;
    pub(crate) const LOAD_VBPNTR: u8 = 0x2f;
    pub(crate) const INDX_BUFFER: u8 = 0x33;
    pub(crate) const DRAW_VBUF_2: u8 = 0x34;
    pub(crate) const DRAW_IMMD_2: u8 = 0x35;
    pub(crate) const DRAW_INDX_2: u8 = 0x36;
}

/// What a packet does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    /// Type 0: writes registers from a byte address on, or the one at that address again and again.
    Registers {
        /// Byte address of the first.
        first: u32,
        /// All values go to the first.
        one: bool,
    },
    /// Type 3: a command, by its opcode.
    Command(u8),
}

/// A packet of type 0 or 3.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Packet<'a> {
    pub(super) kind: Kind,
    /// The words after the header.
    pub(super) payload: &'a [u32],
    /// The buffers of its relocations, in order: bytes of memory.
    pub(super) buffers: Vec<Range<usize>>,
    /// Place of the header among the words of the submission.
    pub(super) at: usize,
}

/// Words of an entry of the relocation list: a NOP names one by its first word.
const RELOCATION_WORDS: usize = 4;

/// The packets of a submission.
///
/// # Errors
/// A packet that ends beyond the commands, one of type 1, a relocation that is not in the list.
pub(super) fn read<'a>(submission: &Submission<'a>) -> Result<Vec<Packet<'a>>, Fault> {
    let words = submission.commands;
    let malformed = |at: usize, what: String| Fault::Malformed(format!("word {at}: {what}"));
    let (mut packets, mut at): (Vec<Packet<'a>>, usize) = (Vec::new(), 0);
    while at < words.len() {
        let header = words[at];
        let kind = match header >> 30 {
            0 => Kind::Registers { first: (header & 0x1fff) * 4, one: header >> 15 & 1 != 0 },
            2 => {
                at += 1;
                continue;
            }
            3 => Kind::Command((header >> 8) as u8),
            _ => {
                let what = format!("a packet of type 1 ({header:#010x}); 0, 2 and 3 are known");
                return Err(malformed(at, what));
            }
        };
        let count = (header >> 16 & 0x3fff) as usize + 1;
        let Some(payload) = words.get(at + 1..at + 1 + count) else {
            let left = words.len() - at - 1;
            return Err(malformed(
                at,
                format!("a packet ({header:#010x}) of {count} words, {left} are left"),
            ));
        };
        match packets.last_mut() {
            Some(before) if kind == Kind::Command(op::NOP) => {
                let entry = payload[0] as usize / RELOCATION_WORDS;
                let buffers = submission.buffers;
                let Some(buffer) = buffers.get(entry) else {
                    return Err(malformed(at, format!("relocation {entry} of a list of {}", buffers.len())));
                };
                before.buffers.push(buffer.clone());
            }
            _ if kind == Kind::Command(op::NOP) => {}
            _ => packets.push(Packet { kind, payload, buffers: Vec::new(), at }),
        }
        at += 1 + count;
    }
    Ok(packets)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of<'a>(commands: &'a [u32], buffers: &'a [Range<usize>]) -> Result<Vec<Packet<'a>>, Fault> {
        read(&Submission { commands, buffers })
    }

    /// Captured: the colour buffer's offset and pitch, each with its relocation, and a fan's first word.
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
        assert!(error(&[0x0003_0824, 1]).contains("of 4 words, 1 are left"));
        assert!(error(&[0x4000_0000]).contains("a packet of type 1"));
        assert!(error(&[0x0000_138a, 1, 0xc000_1000, 8]).contains("relocation 2 of a list of 0"));
    }
}
