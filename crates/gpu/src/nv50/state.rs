//! The state of an object: the words that the methods of the object have set.

use reconverge_board::errata::Errata;
use reconverge_simt::vram::Vram;

use super::methods::Object;
pub(super) use crate::unknown::Unknown;

/// The words that the methods of an object last received.
#[derive(Clone, Debug)]
pub(super) struct State {
    words: Vec<u32>,
    changes: u64,
    /// The errata of the chip that are on.
    pub(super) errata: Errata,
}

impl State {
    /// Returns the state of an object after a reset.
    pub(super) fn new(object: Object) -> State {
        let mut state = State { words: vec![0; 0x800], changes: 0, errata: Errata::default() };
        for (method, word) in object.initial() {
            state.set(*method, *word);
        }
        state
    }

    /// Returns the word that a method last received, or 0 if the method was never called.
    pub(super) fn word(&self, method: u32) -> u32 {
        self.words.get(method as usize / 4).copied().unwrap_or(0)
    }

    /// Returns the word of method `number` of an array of methods that begins at `method`.
    pub(super) fn nth(&self, method: u32, number: usize) -> u32 {
        self.word(method + 4 * number as u32)
    }

    /// Returns whether bit 0 of a method's word is set.
    pub(super) fn flag(&self, method: u32) -> bool {
        self.word(method) & 1 != 0
    }

    /// Returns the word of method `number` of an array as a float.
    pub(super) fn float(&self, method: u32, number: usize) -> f32 {
        f32::from_bits(self.nth(method, number))
    }

    /// Returns an address of 40 bits. The method `high` has the upper bits, and the next method has the lower 32 bits.
    pub(super) fn address(&self, high: u32) -> usize {
        ((u64::from(self.word(high) & 0xff) << 32) | u64::from(self.word(high + 4))) as usize
    }

    pub(super) fn set(&mut self, method: u32, word: u32) {
        if let Some(place) = self.words.get_mut(method as usize / 4) {
            *place = word;
        }
    }

    /// Sets the word of a method that affects later draws, and counts the change.
    pub(super) fn change(&mut self, method: u32, word: u32) {
        self.changes += u64::from(self.word(method) != word);
        self.set(method, word);
    }

    /// Returns a number that increases with each [change](State::change).
    pub(super) fn changes(&self) -> u64 {
        self.changes
    }
}

/// Unpacks the fields of a method's word. If the word has a set bit outside of these fields, the function reports the
/// bit as unsupported and ignores the bit.
macro_rules! fields {
    ($unknown:expr, $Word:ident, $raw:expr) => {{
        let raw: u32 = $raw;
        let bits = raw & (u32::MAX ^ $Word::OWNED);
        if bits != 0 {
            $unknown.note(format!("{}: bits {bits:#x}", $Word::INFO.name));
        }
        match $Word::unpack_lenient(raw) {
            Ok(word) => word,
            // All fields are numbers or flags, so every code is valid.
            Err(error) => unreachable!("{error}"),
        }
    }};
}
pub(super) use fields;

/// Returns the little-endian word at an address, or 0 outside of memory.
pub(super) fn load(memory: Vram<'_>, at: usize) -> u32 {
    memory.word(at).unwrap_or(0)
}
