//! Submissions of the chips that read PM4 packets: the packets with their relocations, and the registers that they write.
//!
//! The order of relocations follows captured streams. A relocation is a NOP packet that completes the packet before it.

use std::collections::HashMap;
use std::ops::Range;

use reconverge_simt::vram::Vram;

use crate::{Fault, Submission};

/// Opcode of the packet that contains a relocation.
pub(crate) const NOP: u8 = 0x10;

/// Words of an entry of the relocation list. The first word of a NOP is the offset of an entry.
const RELOCATION_WORDS: usize = 4;

/// A packet of a kind that its chip has.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct RelocatedPacket<'a, Kind> {
    pub(crate) kind: Kind,
    /// The words after the header.
    pub(crate) payload: &'a [u32],
    /// Ranges in memory of the buffers of its relocations, in order.
    pub(crate) buffers: Vec<Range<usize>>,
    /// Index of the header among the words of the submission.
    pub(crate) at: usize,
}

impl<Kind> RelocatedPacket<'_, Kind> {
    /// Returns the range from an offset in the buffer of relocation `number` to the end of that buffer. `missing` and
    /// `beyond` begin the messages about a relocation and about an offset that do not exist.
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

/// Returns the packets of a submission, without fillers of type 2. `kind` reads a header, or returns the types that
/// the chip has. `cut` describes a packet from its header and the number of its words.
///
/// # Errors
/// A packet extends past the end of the commands or has another type, or a relocation is not in the list.
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
            malformed(at, format!("a packet of type {number} ({header:#010x}); {known} are known"))
        })?;
        let count = (header >> 16 & 0x3fff) as usize + 1;
        let Some(payload) = words.get(at + 1..at + 1 + count) else {
            let left = words.len() - at - 1;
            return Err(malformed(at, format!("{}, {left} are left", cut(header, count))));
        };
        let relocates = (header >> 30, (header >> 8) as u8) == (3, NOP);
        match packets.last_mut() {
            Some(before) if relocates => {
                let entry = payload[0] as usize / RELOCATION_WORDS;
                let Some(buffer) = list.get(entry) else {
                    return Err(malformed(at, format!("relocation {entry} of a list of {}", list.len())));
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

/// Rejects a submission with a buffer past the end of memory.
pub(crate) fn check(memory: Vram<'_>, submission: &Submission<'_>) -> Result<(), Fault> {
    let end = submission.buffers.iter().map(|buffer| buffer.end).max().unwrap_or(0);
    if end > memory.len() {
        let what = format!("a buffer ends at {end:#x}, memory at {:#x}", memory.len());
        return Err(Fault::Malformed(what));
    }
    Ok(())
}

/// Registers by byte address, with the buffers that contain their addresses.
#[derive(Clone, Debug)]
pub(crate) struct RelocatedRegisters {
    words: Vec<u32>,
    pub(crate) buffers: HashMap<u32, Range<usize>>,
}

impl RelocatedRegisters {
    /// Returns the registers of a space of `space` bytes, all 0.
    pub(crate) fn new(space: usize) -> RelocatedRegisters {
        RelocatedRegisters { words: vec![0; space / 4], buffers: HashMap::new() }
    }

    /// Returns the register at a byte address; 0 if it was never written.
    pub(crate) fn word(&self, address: u32) -> u32 {
        self.words.get(address as usize / 4).copied().unwrap_or(0)
    }

    /// Returns register `number` of those that begin at an address.
    pub(crate) fn nth(&self, address: u32, number: usize) -> u32 {
        self.word(address + 4 * number as u32)
    }

    /// Returns the register as a float.
    pub(crate) fn float(&self, address: u32, number: usize) -> f32 {
        f32::from_bits(self.nth(address, number))
    }

    pub(crate) fn set(&mut self, address: u32, word: u32) {
        if let Some(place) = self.words.get_mut(address as usize / 4) {
            *place = word;
        }
    }

    /// Returns the range in memory of the buffer to which register `number` of those at an address had a relocation.
    pub(crate) fn buffer(&self, address: u32, number: usize) -> Option<Range<usize>> {
        self.buffers.get(&(address + 4 * number as u32)).cloned()
    }

    /// Returns the range from `offset` in that buffer to its end; `None` if there is no buffer, or if the offset is
    /// past its end.
    pub(crate) fn place(&self, address: u32, number: usize, offset: usize) -> Option<Range<usize>> {
        let buffer = self.buffer(address, number)?;
        let start = buffer.start + offset;
        (start <= buffer.end).then_some(start..buffer.end)
    }
}
