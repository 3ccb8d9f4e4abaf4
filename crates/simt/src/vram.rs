//! Memory of a chip. A program may map and access this memory while the chip uses it.
//!
//! ```text
//! bytes   |head|word|word|word|...|word|tail|     words are aligned; head and tail have up to three bytes
//! ```
//!
//! Accesses are relaxed atomic operations, so that a concurrent write is not a data race. Every byte belongs to one
//! *unit*: an aligned word, or a single byte in the head or in the tail. An access always covers whole units. The
//! reason is that Rust does not define concurrent atomic accesses of different sizes. A write to a part of a word
//! preserves the remaining bytes of the word, even if another thread or the program writes to the remaining bytes at
//! the same time.
//!
//! Ranges of many words are copied as vectors, at the speed of `memcpy` ([`copy`]). A fill of many rows need not be
//! stored immediately ([`Fills`]).

// This module requires unsafe code for two reasons. It accesses bytes as atomics. It copies bytes as vectors.
// `Vram::new`, `Vram::from_raw` and `copy` state why their unsafe code is sound.
#![allow(unsafe_code)]

mod fills;

use std::ops::Range;
use std::ptr::NonNull;
use std::sync::atomic::{AtomicU8, AtomicU32, Ordering::Relaxed};

pub use self::fills::{Fills, RowFill};
use crate::memory::Bytes;

/// Size of a word in bytes.
const WORD: usize = size_of::<u32>();

/// Maximum size of an element of a surface in bytes.
const ELEMENT: usize = 16;

/// Size of a block in bytes, for work that is done block by block.
const BLOCK: usize = 4096;

/// A view of memory. Other code may access this memory at the same time. All copies of a view refer to the same memory,
/// even in other threads.
///
/// If any part of an access is outside the memory, the access has no effect.
#[derive(Clone, Copy)]
pub struct Vram<'a> {
    head: &'a [AtomicU8],
    words: &'a [AtomicU32],
    tail: &'a [AtomicU8],
    /// Fills that have not been stored yet.
    fills: Option<&'a Fills>,
}

impl<'a> Vram<'a> {
    /// Returns a view of bytes. The bytes stay borrowed as long as the view is in use.
    pub fn new(bytes: &'a mut [u8]) -> Vram<'a> {
        // SAFETY: the bytes are valid for `'a`. They are borrowed mutably, so no other code accesses the bytes.
        unsafe { Vram::from_raw(bytes.as_mut_ptr(), bytes.len()) }
    }

    /// Returns a view of the `length` bytes that begin at `start`.
    ///
    /// # Safety
    /// During `'a`, the bytes must be valid for reads and writes. Only this view, its copies, and other views with the
    /// same start and length may refer to the bytes. Accesses through another mapping of the same pages are allowed at
    /// any time.
    pub unsafe fn from_raw(start: *mut u8, length: usize) -> Vram<'a> {
        // SAFETY: an atomic has the layout of its integer, and may change while it is borrowed. Every value is valid
        // for both sizes of atomics. The caller guarantees that the range is valid, and that all other accesses to the
        // range are allowed.
        let (head, words, tail) =
            unsafe { std::slice::from_raw_parts(start.cast::<AtomicU8>(), length).align_to::<AtomicU32>() };
        Vram { head, words, tail, fills: None }
    }

    /// Returns a range of this memory as bytes of a buffer. A launch then works on the bytes of the range without a
    /// copy. Returns `None` if the range is not in memory.
    ///
    /// # Safety
    /// The returned bytes must be dropped before `'a` ends. Until the drop, the caller must not lend another range that
    /// overlaps this range, and must not access the range through a copy of the view.
    pub unsafe fn lend(self, range: Range<usize>) -> Option<Bytes> {
        let length = range.end.checked_sub(range.start)?;
        self.place(range.start, length)?;
        self.settle(range.clone());
        // Head, words and tail are contiguous in memory. The memory therefore starts at the first of these parts that
        // is not empty.
        let start = match self.head.first() {
            Some(unit) => unit.as_ptr(),
            None => self.words.as_ptr().cast_mut().cast::<u8>(),
        };
        let start = NonNull::new(start.wrapping_add(range.start))?;
        // SAFETY: the range is in memory, which is valid during `'a`. The caller guarantees that no code accesses the
        // range except through the returned bytes.
        Some(unsafe { Bytes::borrowed(start, length) })
    }

    /// Returns the size of the memory in bytes.
    pub fn len(self) -> usize {
        self.head.len() + self.words.len() * WORD + self.tail.len()
    }

    /// Returns whether the memory has no bytes.
    pub fn is_empty(self) -> bool {
        self.len() == 0
    }

    /// Fills a slice with the bytes from `at` on and returns the slice. Returns `None` if the memory ends before the
    /// slice is full.
    #[inline]
    pub fn read(self, at: usize, into: &mut [u8]) -> Option<&mut [u8]> {
        let Some(units) = self.units(at, into.len()) else { return self.read_parts(at, into) };
        load_words(units, into.as_chunks_mut::<WORD>().0);
        Some(into)
    }

    /// Implements [`Vram::read`] for ranges that do not consist of whole words.
    fn read_parts(self, at: usize, into: &mut [u8]) -> Option<&mut [u8]> {
        self.settle(at..at.saturating_add(into.len()));
        if let Some((unit, first)) = self.inside(at, into.len()) {
            into.copy_from_slice(&unit.load(Relaxed).to_ne_bytes()[first..][..into.len()]);
            return Some(into);
        }
        let place = self.place(at, into.len())?;
        let (head, rest) = into.split_at_mut(place.head.len());
        let (words, tail) = rest.split_at_mut(place.words.len());
        load_bytes(&self.head[place.head], head);
        load_bytes(&self.tail[place.tail], tail);
        let (first, skipped) = (place.words.start / WORD, place.words.start % WORD);
        let (part, words) = words.split_at_mut(partial(skipped, words.len()));
        let mut units = self.words[first..].iter();
        if !part.is_empty()
            && let Some(unit) = units.next()
        {
            part.copy_from_slice(&unit.load(Relaxed).to_ne_bytes()[skipped..][..part.len()]);
        }
        let (whole, part) = words.as_chunks_mut::<WORD>();
        let (units, rest) = units.as_slice().split_at(whole.len());
        load_words(units, whole);
        if let (false, Some(unit)) = (part.is_empty(), rest.first()) {
            part.copy_from_slice(&unit.load(Relaxed).to_ne_bytes()[..part.len()]);
        }
        Some(into)
    }

    /// Stores bytes from `at` on. Returns whether the range is in memory.
    #[inline]
    pub fn write(self, at: usize, bytes: &[u8]) -> bool {
        let Some(units) = self.units(at, bytes.len()) else { return self.write_parts(at, bytes) };
        store_words(units, bytes.as_chunks::<WORD>().0);
        true
    }

    /// Implements [`Vram::write`] for ranges that do not consist of whole words.
    fn write_parts(self, at: usize, bytes: &[u8]) -> bool {
        self.settle(at..at.saturating_add(bytes.len()));
        if let Some((unit, first)) = self.inside(at, bytes.len()) {
            store_part(unit, first, bytes);
            return true;
        }
        let Some(place) = self.place(at, bytes.len()) else { return false };
        let (head, rest) = bytes.split_at(place.head.len());
        let (words, tail) = rest.split_at(place.words.len());
        store_bytes(&self.head[place.head], head);
        store_bytes(&self.tail[place.tail], tail);
        let (first, skipped) = (place.words.start / WORD, place.words.start % WORD);
        let (part, words) = words.split_at(partial(skipped, words.len()));
        let mut units = self.words[first..].iter();
        if !part.is_empty()
            && let Some(unit) = units.next()
        {
            store_part(unit, skipped, part);
        }
        let (whole, part) = words.as_chunks::<WORD>();
        let (units, rest) = units.as_slice().split_at(whole.len());
        store_words(units, whole);
        if let (false, Some(unit)) = (part.is_empty(), rest.first()) {
            store_part(unit, 0, part);
        }
        true
    }

    /// Returns the little-endian word at an offset, or `None` if the word is not in memory.
    #[inline]
    pub fn word(self, at: usize) -> Option<u32> {
        self.array(at).map(u32::from_le_bytes)
    }

    /// Returns `N` bytes from `at` on, or `None` if the bytes are not in memory.
    #[inline]
    fn array<const N: usize>(self, at: usize) -> Option<[u8; N]> {
        let mut bytes = [0; N];
        self.read(at, &mut bytes)?;
        Some(bytes)
    }

    /// Returns a copy of a range. The result is empty if the range is not in memory.
    pub fn bytes(self, range: Range<usize>) -> Vec<u8> {
        self.bytes_before(range, 0)
    }

    /// Returns a copy of a range, followed by a number of zeros. If the range is not in memory, the result has only the
    /// zeros.
    pub fn bytes_before(self, range: Range<usize>, zeros: usize) -> Vec<u8> {
        let inside = range.start <= range.end && range.end <= self.len();
        let count = if inside { range.len() } else { 0 };
        let mut bytes = Vec::with_capacity(count + zeros);
        if let Some(units) = self.units(range.start, count / WORD * WORD) {
            // SAFETY: the list has capacity for all units. The new length counts only bytes that `copy` has written.
            unsafe {
                let done = copy(units.as_ptr().cast(), bytes.as_mut_ptr(), units.len());
                bytes.set_len(done * WORD);
            }
        }
        let done = bytes.len();
        bytes.resize(count + zeros, 0);
        self.read(range.start + done, &mut bytes[done..count]);
        bytes
    }

    /// Returns the little-endian words of a range. An incomplete word at the end is omitted. The result is empty if the
    /// range is not in memory.
    pub fn words(self, range: Range<usize>) -> Vec<u32> {
        if let Some(units) = self.units(range.start, range.end.saturating_sub(range.start)) {
            let mut words: Vec<u32> = Vec::with_capacity(units.len());
            // SAFETY: the list has capacity for all units. The new length counts only words that `copy` has written.
            unsafe {
                let done = copy(units.as_ptr().cast(), words.as_mut_ptr().cast(), units.len());
                words.set_len(done);
            }
            words.extend(units[words.len()..].iter().map(|unit| unit.load(Relaxed)));
            words.iter_mut().for_each(|word| *word = u32::from_le(*word));
            return words;
        }
        let bytes = self.bytes(range);
        bytes.as_chunks::<WORD>().0.iter().map(|word| u32::from_le_bytes(*word)).collect()
    }

    /// Returns whether the bytes from `at` on are in memory and equal to `bytes`.
    pub fn holds(self, at: usize, bytes: &[u8]) -> bool {
        let mut buffer = [0; BLOCK];
        self.place(at, bytes.len()).is_some()
            && bytes.chunks(BLOCK).enumerate().all(|(number, block)| {
                let found = self.read(at + number * BLOCK, &mut buffer[..block.len()]);
                found.is_some_and(|found| found == block)
            })
    }

    /// Returns whether the little-endian words from `at` on are in memory and equal to `words`.
    pub fn holds_words(self, at: usize, words: &[u32]) -> bool {
        match self.units(at, size_of_val(words)) {
            Some(units) => {
                units.iter().zip(words).all(|(unit, word)| u32::from_le(unit.load(Relaxed)) == *word)
            }
            None => words.iter().zip((at..).step_by(WORD)).all(|(word, at)| self.word(at) == Some(*word)),
        }
    }

    /// Calls `change` with a copy of the element at offset `at`, and returns the result of `change`. The element has up
    /// to 16 bytes. Stores the element only if `change` has modified the copy. Returns `None` if the element is not in
    /// memory. The update as a whole is not atomic.
    #[inline]
    pub fn update<T>(self, at: usize, bytes: usize, change: impl FnOnce(&mut [u8]) -> T) -> Option<T> {
        match bytes {
            2 => self.update_array::<2, T>(at, change),
            4 => self.update_array::<4, T>(at, change),
            8 => self.update_array::<8, T>(at, change),
            16 => self.update_array::<16, T>(at, change),
            _ => {
                let (mut before, mut element) = ([0; ELEMENT], [0; ELEMENT]);
                let (before, element) = (&mut before[..bytes], &mut element[..bytes]);
                self.read(at, before)?;
                element.copy_from_slice(before);
                let result = change(element);
                if element != before {
                    self.write(at, element);
                }
                Some(result)
            }
        }
    }

    /// Implements [`Vram::update`] for a constant size. With a constant size, an update of a word takes 7 ns. With a
    /// variable size, the update takes 22 ns (rustc 1.95, `-O`, an AMD EPYC).
    #[inline]
    fn update_array<const N: usize, T>(self, at: usize, change: impl FnOnce(&mut [u8]) -> T) -> Option<T> {
        let before = self.array::<N>(at)?;
        let mut element = before;
        let result = change(&mut element);
        if element != before {
            self.write(at, &element);
        }
        Some(result)
    }

    /// Copies a range to another offset, as [`slice::copy_within`] does. The ranges may overlap.
    pub fn copy_within(self, source: Range<usize>, target: usize) {
        let count = source.len();
        if self.place(source.start, count).is_none() || self.place(target, count).is_none() {
            return;
        }
        let done = self.copy_apart(source.start, target, count);
        let (source, target, count) = (source.start + done..source.end, target + done, count - done);
        let mut buffer = [0; BLOCK];
        let mut copy = |at: usize| {
            let length = BLOCK.min(count - at);
            if let Some(block) = self.read(source.start + at, &mut buffer[..length]) {
                self.write(target + at, block);
            }
        };
        let blocks = (0..count).step_by(BLOCK);
        // In this order, each block is read before a copy of another block overwrites it.
        match target <= source.start {
            true => blocks.for_each(&mut copy),
            false => blocks.rev().for_each(&mut copy),
        }
    }

    /// Copies words from the start of a range directly to another range. Copies nothing if the ranges overlap or do not
    /// start at words. Returns the number of bytes copied.
    fn copy_apart(self, source: usize, target: usize, count: usize) -> usize {
        let [from, to] = [source, target].map(|at| self.units(at, count / WORD * WORD));
        let (Some(from), Some(to)) = (from, to) else { return 0 };
        if source.abs_diff(target) < count {
            return 0;
        }
        // SAFETY: both ranges consist of whole words in memory. Other threads access these words only as atomics.
        unsafe { copy(from.as_ptr().cast(), to.as_ptr().cast_mut().cast(), from.len()) * WORD }
    }

    /// Returns the words of a range. Returns `None` if the range is not in memory or does not consist of whole words. A
    /// caller that later stores to a byte of a returned word must store all four bytes of the word.
    #[inline]
    pub fn units(self, at: usize, length: usize) -> Option<&'a [AtomicU32]> {
        let start = at
            .checked_sub(self.head.len())
            .filter(|start| start.is_multiple_of(WORD) && length.is_multiple_of(WORD))?;
        let units = self.words.get(start / WORD..)?.get(..length / WORD)?;
        self.settle(at..at + length);
        Some(units)
    }

    /// Returns the word that contains a range, and the position of the range in that word. Returns `None` if the range
    /// is not within one word.
    #[inline]
    fn inside(self, at: usize, length: usize) -> Option<(&'a AtomicU32, usize)> {
        let start =
            at.checked_sub(self.head.len()).filter(|start| (start % WORD).saturating_add(length) <= WORD)?;
        Some((self.words.get(start / WORD)?, start % WORD))
    }

    /// Returns the bytes that a range covers in the head, in the words and in the tail. Returns `None` if the range is
    /// not in memory.
    #[inline]
    fn place(self, at: usize, length: usize) -> Option<Covered> {
        let end = at.checked_add(length).filter(|end| *end <= self.len())?;
        let part = |start: usize, length: usize| {
            let inside = |at: usize| at.saturating_sub(start).min(length);
            inside(at)..inside(end)
        };
        let (head, words) = (self.head.len(), self.words.len() * WORD);
        Some(Covered {
            head: part(0, head),
            words: part(head, words),
            tail: part(head + words, self.tail.len()),
        })
    }
}

/// The bytes that a range covers in each part of the memory, counted from the start of that part.
struct Covered {
    head: Range<usize>,
    words: Range<usize>,
    tail: Range<usize>,
}

/// Suppose that `skipped` bytes of a word precede a range of `length` bytes. Returns how many bytes of the range are in
/// this word. Returns 0 if `skipped` is 0.
#[inline]
fn partial(skipped: usize, length: usize) -> usize {
    if skipped == 0 { 0 } else { (WORD - skipped).min(length) }
}

/// Loads words in the host's byte order. The number of words is the length of the shorter list.
#[inline]
pub fn load(from: &[AtomicU32], to: &mut [u32]) {
    let count = from.len().min(to.len());
    // SAFETY: both lists have at least `count` words. `to` is borrowed mutably.
    let done = unsafe { copy(from.as_ptr().cast(), to.as_mut_ptr().cast(), count) };
    to[done..].iter_mut().zip(&from[done..]).for_each(|(to, from)| *to = from.load(Relaxed));
}

/// Stores words in the host's byte order. The number of words is the length of the shorter list.
#[inline]
pub fn store(to: &[AtomicU32], from: &[u32]) {
    let count = from.len().min(to.len());
    // SAFETY: both lists have at least `count` words. A shared reference is sufficient to write atomics.
    let done = unsafe { copy(from.as_ptr().cast(), to.as_ptr().cast_mut().cast(), count) };
    from[done..].iter().zip(&to[done..]).for_each(|(from, to)| to.store(*from, Relaxed));
}

/// Loads words as [`load`] does, but returns each word as an array of bytes.
#[inline]
fn load_words(from: &[AtomicU32], to: &mut [[u8; WORD]]) {
    let count = from.len().min(to.len());
    // SAFETY: both lists have at least `count` words. `to` is borrowed mutably.
    let done = unsafe { copy(from.as_ptr().cast(), to.as_mut_ptr().cast(), count) };
    to[done..].iter_mut().zip(&from[done..]).for_each(|(to, from)| *to = from.load(Relaxed).to_ne_bytes());
}

/// Stores words as [`store`] does, but takes each word as an array of bytes.
#[inline]
fn store_words(to: &[AtomicU32], from: &[[u8; WORD]]) {
    let count = from.len().min(to.len());
    // SAFETY: both lists have at least `count` words. A shared reference is sufficient to write atomics.
    let done = unsafe { copy(from.as_ptr().cast(), to.as_ptr().cast_mut().cast(), count) };
    from[done..].iter().zip(&to[done..]).for_each(|(from, to)| to.store(u32::from_ne_bytes(*from), Relaxed));
}

/// Copies most of `count` words to another range, or none if `count` is small. The ranges must not overlap. Returns the
/// number of words copied.
///
/// rustc 1.95 does not vectorize relaxed accesses. A loop over words copies up to 4 bytes per cycle. This function
/// copies 16 bytes per cycle.
///
/// # Safety
/// The `count` words at `from` must be valid for reads, and the `count` words at `to` for writes. Other threads may
/// access both ranges at the same time, by atomic accesses to aligned words or through other mappings.
#[cfg(all(target_arch = "x86_64", not(miri)))]
#[inline]
unsafe fn copy(from: *const u8, to: *mut u8, count: usize) -> usize {
    /// Number of bytes that one iteration copies.
    const PIECE: usize = 64;
    /// Minimum number of words for a copy as vectors.
    const MANY: usize = 32;
    if count < MANY {
        return 0;
    }
    let bytes = count * WORD / PIECE * PIECE;
    // SAFETY: for each word, the assembly code has the effect of a relaxed access. The order of these accesses is not
    // defined. An aligned word is within one cache line, so the processor accesses the whole word at once. All accessed
    // bytes are inside the two ranges.
    unsafe {
        std::arch::asm!(
            "2:",
            "movdqu {a}, [{from} + {at}]",
            "movdqu {b}, [{from} + {at} + 16]",
            "movdqu {c}, [{from} + {at} + 32]",
            "movdqu {d}, [{from} + {at} + 48]",
            "movdqu [{to} + {at}], {a}",
            "movdqu [{to} + {at} + 16], {b}",
            "movdqu [{to} + {at} + 32], {c}",
            "movdqu [{to} + {at} + 48], {d}",
            "add {at}, 64",
            "cmp {at}, {end}",
            "jb 2b",
            a = out(xmm_reg) _,
            b = out(xmm_reg) _,
            c = out(xmm_reg) _,
            d = out(xmm_reg) _,
            at = inout(reg) 0_usize => _,
            from = in(reg) from,
            to = in(reg) to,
            end = in(reg) bytes,
            options(nostack),
        );
    }
    bytes / WORD
}

/// Copies nothing and returns 0. The caller then copies the words one by one. Processors other than x86-64 use this
/// version. Miri also uses this version, because Miri then checks the code that copies word by word.
///
/// # Safety
/// This version of the function has no requirements.
#[cfg(not(all(target_arch = "x86_64", not(miri))))]
#[inline]
unsafe fn copy(_: *const u8, _: *mut u8, _: usize) -> usize {
    0
}

#[inline]
fn load_bytes(from: &[AtomicU8], to: &mut [u8]) {
    to.iter_mut().zip(from).for_each(|(to, from)| *to = from.load(Relaxed));
}

#[inline]
fn store_bytes(to: &[AtomicU8], from: &[u8]) {
    to.iter().zip(from).for_each(|(to, from)| to.store(*from, Relaxed));
}

/// Replaces some bytes of a word, from byte `first` on.
fn store_part(unit: &AtomicU32, first: usize, bytes: &[u8]) {
    let replaced = |word: u32| {
        let mut word = word.to_ne_bytes();
        word[first..][..bytes.len()].copy_from_slice(bytes);
        u32::from_ne_bytes(word)
    };
    let mut word = unit.load(Relaxed);
    while let Err(found) = unit.compare_exchange_weak(word, replaced(word), Relaxed, Relaxed) {
        word = found;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Calls `check` with views of all alignments and lengths up to 24 bytes, and with the bytes of each view.
    fn with_all(check: impl Fn(Vram<'_>, &[u8])) {
        for (start, length) in (0..8).flat_map(|start| (0..24).map(move |length| (start, length))) {
            let mut all = [0_u64; 4].map(u64::to_ne_bytes).concat();
            all.iter_mut().zip(1..).for_each(|(byte, number)| *byte = number);
            let expected = all[start..][..length].to_vec();
            check(Vram::new(&mut all[start..][..length]), &expected);
        }
    }

    #[test]
    fn every_range_reads_as_of_a_slice() {
        with_all(|vram, bytes| {
            assert_eq!((vram.len(), vram.is_empty()), (bytes.len(), bytes.is_empty()));
            for (start, end) in (0..26).flat_map(|start| (0..26).map(move |end| (start, end))) {
                let expected = bytes.get(start..end);
                assert_eq!(vram.bytes(start..end), expected.unwrap_or(&[]));
                let words = expected.unwrap_or(&[]).as_chunks::<4>().0.iter();
                assert_eq!(vram.words(start..end), words.map(|b| u32::from_le_bytes(*b)).collect::<Vec<_>>());
                let Some(length) = end.checked_sub(start) else { continue };
                assert_eq!(vram.read(start, &mut vec![0; length]).map(|read| &*read), expected);
                assert_eq!(vram.holds(start, expected.unwrap_or(&[9; 26][..length])), expected.is_some());
            }
            let word = |at: usize| Some(u32::from_le_bytes(bytes.get(at..at + 4)?.try_into().ok()?));
            (0..26).for_each(|at| assert_eq!(vram.word(at), word(at)));
        });
    }

    #[test]
    fn every_range_is_written_and_nothing_else() {
        for (at, length) in (0..26).flat_map(|at| (0..26).map(move |length| (at, length))) {
            with_all(|vram, bytes| {
                let (new, mut expected) = (vec![0xaa; length], bytes.to_vec());
                let target = expected.get_mut(at..at + length);
                let fits = target.map(|target| target.copy_from_slice(&new)).is_some();
                assert_eq!(vram.write(at, &new), fits);
                assert_eq!(vram.bytes(0..bytes.len()), expected);
                assert_eq!(vram.holds(0, bytes), *bytes == *expected);
            });
        }
    }

    #[test]
    fn ranges_of_many_words_are_those_of_a_slice() {
        let mut bytes: Vec<u8> = (0..4 * BLOCK).map(|at| (at % 249) as u8).collect();
        for (start, length) in
            [0, 1, 3, 4, 8, 60].into_iter().flat_map(|start| (120..420).map(move |n| (start, n)))
        {
            let expected = bytes[start..][..length].to_vec();
            let vram = Vram::new(&mut bytes);
            assert_eq!(vram.bytes(start..start + length), expected);
            assert_eq!(vram.bytes_before(start..start + length, 5), [&expected[..], &[0; 5]].concat());
            let words = expected.as_chunks().0.iter().map(|word| u32::from_le_bytes(*word));
            assert_eq!(vram.words(start..start + length), words.collect::<Vec<_>>());
            assert_eq!(vram.read(start, &mut vec![0; length]), Some(&mut expected.clone()[..]));
            let mut other = expected.clone();
            other[length - 1] ^= 1;
            assert_eq!([vram.holds(start, &expected), vram.holds(start, &other)], [true, false]);
            let (before, new) = (vram.bytes(0..1024), vec![0xaa; length]);
            assert!(vram.write(start, &new));
            let written = [&before[..start], &new, &before[start + length..]].concat();
            assert_eq!(vram.bytes(0..1024), written);
            vram.write(0, &before);
        }
    }

    #[test]
    fn an_offset_near_the_maximum_is_not_in_memory() {
        let mut bytes = [0; 8];
        let vram = Vram::new(&mut bytes);
        assert_eq!((vram.word(usize::MAX), vram.write(usize::MAX - 1, &[1; 4])), (None, false));
        vram.copy_within(0..4, usize::MAX);
        vram.copy_within(usize::MAX - 4..usize::MAX, 0);
        assert_eq!((vram.update(usize::MAX, 2, |_| ()), bytes), (None, [0; 8]));
    }

    #[test]
    fn copies_that_overlap_are_those_of_a_slice() {
        let bytes: Vec<u8> = (0..5 * BLOCK).map(|at| (at % 251) as u8).collect();
        for (source, target) in [(3, 5), (5, 3), (0, BLOCK + 1), (BLOCK, 0), (7, 7)] {
            for count in [0, 1, BLOCK - 1, BLOCK, 2 * BLOCK + 3] {
                let (mut found, mut expected) = (bytes.clone(), bytes.clone());
                Vram::new(&mut found).copy_within(source..source + count, target);
                expected.copy_within(source..source + count, target);
                assert!(found == expected, "{count} bytes from {source} to {target}");
            }
        }
    }

    #[test]
    fn threads_that_share_words_keep_each_other_s_bytes() {
        let mut bytes = [0; 64];
        let vram = Vram::new(&mut bytes);
        std::thread::scope(|scope| {
            for thread in 0..4_u8 {
                scope.spawn(move || {
                    for (round, at) in (0..100_u8).flat_map(|round| (0..64).map(move |at| (round, at))) {
                        if at % 4 == usize::from(thread) {
                            let count = |byte: &mut [u8]| byte[0] = byte[0].max(round) + 1;
                            assert_eq!(vram.update(at, 1, count), Some(()));
                        }
                    }
                });
            }
        });
        assert_eq!(bytes, [100; 64]);
    }
}
