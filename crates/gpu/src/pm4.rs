//! Reads submissions of PM4 packets with their relocations, and holds the registers that packets write.
//!
//! A relocation is a NOP packet that belongs to the preceding packet. A packet may have several relocations. This crate
//! expects the same order of relocations as in captured streams.

use std::collections::HashMap;
use std::ops::Range;

use reconverge_simt::vram::Vram;

use crate::{Fault, Submission};

/// Opcode of a NOP packet, which contains a relocation.
pub(crate) const NOP: u8 = 0x10;

/// Number of words of an entry in the relocation list. The first word of a NOP packet is an offset in words into this
/// list.
const RELOCATION_WORDS: usize = 4;

/// A packet with its relocations. `Kind` is the chip's type for packet headers.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct RelocatedPacket<'a, Kind> {
    pub(crate) kind: Kind,
    /// The words after the header.
    pub(crate) payload: &'a [u32],
    /// For each relocation of the packet, the range in memory of the relocation's buffer.
    pub(crate) buffers: Vec<Range<usize>>,
    /// Index of the header among the words of the submission.
    pub(crate) at: usize,
}

impl<Kind> RelocatedPacket<'_, Kind> {
    /// Returns the range from an offset in the buffer of relocation `number` to the end of this buffer. `missing`
    /// begins the message for a relocation that does not exist. `beyond` begins the message for an offset past the end
    /// of the buffer.
    pub(crate) fn place(
        &self,
        number: usize,
        offset: usize,
        [missing, beyond]: [&str; 2],
    ) -> Result<Range<usize>, Fault> {
        let malformed = |what: String| Fault::Malformed(format!("word {}: {what}", self.at));
        let Some(buffer) = self.buffers.get(number) else {
            return Err(malformed(format!("{missing} has no relocation {number}")));
        };
        let start = buffer.start.saturating_add(offset);
        if start > buffer.end {
            let size = buffer.len();
            return Err(malformed(format!("{beyond}address {offset:#x} in a buffer of {size:#x} bytes")));
        }
        Ok(start..buffer.end)
    }
}

/// Returns the packets of a submission, without fillers of type 2. `kind` converts a header to the kind of the packet.
/// If the header has an unknown type, `kind` returns an error. The error lists the packet types of the chip. If a
/// packet is truncated, `cut` receives the header and the number of words of this packet. `cut` returns a description
/// of the packet.
///
/// # Errors
/// Returns a fault in three cases: a packet extends past the end of the commands, a packet has an unknown type, or a
/// relocation is not in the list.
pub(crate) fn read<'a, Kind>(
    submission: &Submission<'a>,
    kind: impl Fn(u32) -> Result<Kind, &'static str>,
    cut: impl Fn(u32, usize) -> String,
) -> Result<Vec<RelocatedPacket<'a, Kind>>, Fault> {
    let Submission { commands: words, buffers: list } = *submission;
    let malformed = |at: usize, what: String| Fault::Malformed(format!("word {at}: {what}"));
    let (mut packets, mut at): (Vec<RelocatedPacket<'a, Kind>>, usize) = (Vec::new(), 0);
    while at < words.len() {
        let header = words[at];
        if header >> 30 == 2 {
            at += 1;
            continue;
        }
        let kind = kind(header).map_err(|known| {
            let number = header >> 30;
            malformed(at, format!("a packet of type {number} ({header:#010x}); expected type {known}"))
        })?;
        let count = (header >> 16 & 0x3fff) as usize + 1;
        let Some(payload) = words.get(at + 1..at + 1 + count) else {
            let left = words.len() - at - 1;
            return Err(malformed(at, format!("{}, but the commands end after {left}", cut(header, count))));
        };
        let relocates = (header >> 30, (header >> 8) as u8) == (3, NOP);
        match packets.last_mut() {
            Some(before) if relocates => {
                let entry = payload[0] as usize / RELOCATION_WORDS;
                let Some(buffer) = list.get(entry) else {
                    return Err(malformed(
                        at,
                        format!("relocation {entry} is not in the list of {}", list.len()),
                    ));
                };
                before.buffers.push(buffer.clone());
            }
            _ if relocates => {}
            _ => packets.push(RelocatedPacket { kind, payload, buffers: Vec::new(), at }),
        }
        at += 1 + count;
    }
    Ok(packets)
}

/// Returns a fault if a buffer extends past the end of memory.
pub(crate) fn check(memory: Vram<'_>, submission: &Submission<'_>) -> Result<(), Fault> {
    let end = submission.buffers.iter().map(|buffer| buffer.end).max().unwrap_or(0);
    if end > memory.len() {
        let what = format!("a buffer ends at {end:#x}, but memory ends at {:#x}", memory.len());
        return Err(Fault::Malformed(what));
    }
    Ok(())
}

/// Registers by byte address, and the buffers to which the relocations of registers refer.
#[derive(Clone, Debug)]
pub(crate) struct RelocatedRegisters {
    words: Vec<u32>,
    pub(crate) buffers: HashMap<u32, Range<usize>>,
}

impl RelocatedRegisters {
    /// Returns `space` bytes of registers, which are all 0.
    pub(crate) fn new(space: usize) -> RelocatedRegisters {
        RelocatedRegisters { words: vec![0; space / 4], buffers: HashMap::new() }
    }

    /// Returns the register at a byte address, or 0 if the register was never written.
    pub(crate) fn word(&self, address: u32) -> u32 {
        self.words.get(address as usize / 4).copied().unwrap_or(0)
    }

    /// Returns register `number` of an array of registers that begins at `address`.
    pub(crate) fn nth(&self, address: u32, number: usize) -> u32 {
        self.word(address + 4 * number as u32)
    }

    /// Returns register `number` of an array as a float.
    pub(crate) fn float(&self, address: u32, number: usize) -> f32 {
        f32::from_bits(self.nth(address, number))
    }

    pub(crate) fn set(&mut self, address: u32, word: u32) {
        if let Some(place) = self.words.get_mut(address as usize / 4) {
            *place = word;
        }
    }

    /// Returns the range in memory of the buffer to which the relocation of a register refers. The register has the
    /// index `number` in the array of registers at `address`.
    pub(crate) fn buffer(&self, address: u32, number: usize) -> Option<Range<usize>> {
        self.buffers.get(&(address + 4 * number as u32)).cloned()
    }

    /// Returns the range from `offset` in the buffer of a register's relocation to the end of this buffer. Returns
    /// `None` if the register has no buffer, or if the offset is past the end of the buffer.
    pub(crate) fn place(&self, address: u32, number: usize, offset: usize) -> Option<Range<usize>> {
        let buffer = self.buffer(address, number)?;
        let start = buffer.start + offset;
        (start <= buffer.end).then_some(start..buffer.end)
    }
}
