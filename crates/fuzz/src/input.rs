//! How targets read their bytes.
//!
//! Targets of words begin with a head of four bytes, each of which chooses something (a chip, a form of the text, a mode);
//! words follow, least significant byte first. Bytes that are not there are 0, so that any bytes are an input.

/// Bytes in front of the words.
pub const HEAD: usize = 4;

/// The head of an input.
pub fn head(bytes: &[u8]) -> [u8; HEAD] {
    std::array::from_fn(|at| bytes.get(at).copied().unwrap_or(0))
}

/// The words from a byte on; what is left behind the last whole one is not read.
pub fn words_from(bytes: &[u8], start: usize) -> Vec<u32> {
    let (words, _) = bytes.get(start..).unwrap_or_default().as_chunks();
    words.iter().map(|word| u32::from_le_bytes(*word)).collect()
}

/// The words behind the head.
pub fn words(bytes: &[u8]) -> Vec<u32> {
    words_from(bytes, HEAD)
}

/// The input of a head and words.
pub fn input(head: [u8; HEAD], words: &[u32]) -> Vec<u8> {
    head.into_iter().chain(words.iter().flat_map(|word| word.to_le_bytes())).collect()
}

/// One of the choices, by a byte.
pub fn chosen<T: Copy>(byte: u8, choices: &[T]) -> T {
    choices[usize::from(byte) % choices.len()]
}
