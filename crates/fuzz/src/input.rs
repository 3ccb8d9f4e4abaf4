//! Reads the bytes of an input.
//!
//! The input of a target that reads words begins with a head of four bytes. Each byte of the head selects something (a
//! chip, a form of the text, a mode). The words follow, least significant byte first. Missing bytes are 0, so any bytes
//! are a valid input.

/// Number of bytes before the words.
pub const HEAD: usize = 4;

/// Returns the head of an input.
pub fn head(bytes: &[u8]) -> [u8; HEAD] {
    std::array::from_fn(|at| bytes.get(at).copied().unwrap_or(0))
}

/// Returns the words from a byte on. Bytes after the last whole word are ignored.
pub fn words_from(bytes: &[u8], start: usize) -> Vec<u32> {
    let (words, _) = bytes.get(start..).unwrap_or_default().as_chunks();
    words.iter().map(|word| u32::from_le_bytes(*word)).collect()
}

/// Returns the words after the head.
pub fn words(bytes: &[u8]) -> Vec<u32> {
    words_from(bytes, HEAD)
}

/// Returns the input with a head and words.
pub fn input(head: [u8; HEAD], words: &[u32]) -> Vec<u8> {
    head.into_iter().chain(words.iter().flat_map(|word| word.to_le_bytes())).collect()
}

/// Returns the choice that a byte selects.
pub fn chosen<T: Copy>(byte: u8, choices: &[T]) -> T {
    choices[usize::from(byte) % choices.len()]
}
