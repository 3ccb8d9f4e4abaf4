//! Packets of the FIFO. A packet consists of a header, and of the words for the methods of an object.
//!
//! ```text
//! incrementing          n << 18 | subchannel << 13 | method                 n words, to method, method + 4, ...
//! non-incrementing      40000000h | n << 18 | subchannel << 13 | method     n words, all to method
//! long                  00030000h | subchannel << 13 | method, n            the same, n in a word of its own
//! ```
//! The header and the words of a packet may be in different segments. Source: Mesa `nv50_winsys.h` and captured
//! streams. The FIFO rejects the headers of jumps, calls and returns, because the driver never sends these headers.

/// Destination of a word: a method of an object.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Call {
    /// Subchannel of the object.
    pub(super) subchannel: usize,
    /// Byte address of the method.
    pub(super) method: u32,
}

/// State within a packet. A packet may continue in the next segment or in the next submission.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Fifo {
    packet: Option<Packet>,
    /// Header of a long packet. The word after the header is the number of words of the packet.
    long: Option<u32>,
}

#[derive(Clone, Copy, Debug)]
struct Packet {
    call: Call,
    left: u32,
    increments: bool,
}

/// A word that is not a valid header.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct NoHeader(pub(super) u32);

impl Fifo {
    /// Reads the next word. Returns the destination of the word, or `None` if the word is part of a header.
    ///
    /// # Errors
    /// Returns an error if the word should be a header but is not a valid header.
    pub(super) fn take(&mut self, word: u32) -> Result<Option<Call>, NoHeader> {
        if let Some(packet) = &mut self.packet {
            let call = packet.call;
            packet.left -= 1;
            if packet.increments {
                packet.call.method = (call.method + 4) & 0x1ffc;
            }
            if packet.left == 0 {
                self.packet = None;
            }
            return Ok(Some(call));
        }
        let call = |header: u32| Call { subchannel: (header >> 13 & 7) as usize, method: header & 0x1ffc };
        if let Some(header) = self.long.take() {
            self.begin(call(header), word, false);
            return Ok(None);
        }
        match word & 0xe003_0003 {
            0 => self.begin(call(word), word >> 18 & 0x7ff, true),
            0x4000_0000 => self.begin(call(word), word >> 18 & 0x7ff, false),
            0x0003_0000 => self.long = Some(word),
            _ => return Err(NoHeader(word)),
        }
        Ok(None)
    }

    /// Returns whether the next word is a header.
    pub(super) fn is_between_packets(&self) -> bool {
        self.packet.is_none() && self.long.is_none()
    }

    fn begin(&mut self, call: Call, left: u32, increments: bool) {
        self.packet = (left > 0).then_some(Packet { call, left, increments });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn methods(words: &[u32]) -> Vec<(usize, u32, u32)> {
        let mut fifo = Fifo::default();
        let calls = words.iter().filter_map(|word| {
            let call = fifo.take(*word).unwrap()?;
            Some((call.subchannel, call.method, *word))
        });
        calls.collect()
    }

    /// The test uses three captured packets. The packets contain words for RT_HORIZ and RT_VERT, words for CB_DATA, and
    /// U16 elements of an index buffer.
    #[test]
    fn words_go_to_the_methods_that_their_packet_names() {
        assert_eq!(methods(&[0x0008_7240, 0xfa, 0xfb]), [(3, 0x1240, 0xfa), (3, 0x1244, 0xfb)]);
        assert_eq!(methods(&[0x4008_6f04, 7, 8]), [(3, 0xf04, 7), (3, 0xf04, 8)]);
        assert_eq!(methods(&[0x0003_75f0, 2, 5, 6, 0]), [(3, 0x15f0, 5), (3, 0x15f0, 6)]);
        assert_eq!(methods(&[0, 0x0000_75e0, 0x0004_75e0, 0]), [(3, 0x15e0, 0)]);
    }

    #[test]
    fn a_word_that_begins_no_packet_is_an_error() {
        for word in [0x2000_0000, 0x8000_0000, 0x0001_0000, 2] {
            assert_eq!(Fifo::default().take(word), Err(NoHeader(word)));
        }
    }
}
