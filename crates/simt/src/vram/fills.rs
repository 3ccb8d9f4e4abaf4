//! Outstanding fills. Every reader must see the fill value in the rows of an outstanding fill, although the value has
//! not been stored yet.
//!
//! A driver clears whole surfaces, often several times before a reader accesses them. A fill is stored when an access
//! reaches the filled rows, or when the owner of the view calls [`Vram::settle`]. If a later fill covers rows of an
//! outstanding fill, the earlier fill of these rows is never stored.

use std::ops::Range;
use std::sync::atomic::{AtomicU32, AtomicUsize, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

use super::{Vram, WORD, load, store};

/// Rows of words to fill with a value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RowFill {
    /// Offset of the first word in bytes.
    pub start: usize,
    /// Number of words in a row.
    pub words: usize,
    /// Number of bytes from the start of a row to the start of the next row. The number must be at least the size of a
    /// row.
    pub pitch: usize,
    /// Number of rows.
    pub rows: usize,
    /// The value, a little-endian word.
    pub value: u32,
    /// Bits of each word that the fill replaces by the bits of the value. Bits outside of the mask are unchanged.
    pub mask: u32,
}

/// Maximum size, in words, of a fill that is stored immediately. A larger fill stays outstanding.
const FEW: usize = 1 << 12;

/// Maximum number of outstanding fills.
const MOST: usize = 64;

/// Number of words that one call stores.
const PIECE: usize = 256;

impl RowFill {
    /// Returns the offset after the last word. Returns `None` if the offset overflows or rows overlap.
    fn end(&self) -> Option<usize> {
        let row = self.words.checked_mul(WORD).filter(|row| self.rows <= 1 || *row <= self.pitch)?;
        let before = self.rows.saturating_sub(1).checked_mul(self.pitch)?;
        self.start.checked_add(before)?.checked_add(row)
    }

    /// Returns the rows of the fill that an access to a range may reach.
    fn rows_in(&self, range: &Range<usize>) -> Range<usize> {
        let pitch = self.pitch.max(1);
        let first = range.start.saturating_sub(self.start) / pitch;
        let end = range.end.saturating_sub(self.start).div_ceil(pitch).min(self.rows);
        first.min(end)..end
    }

    /// Returns a fill of only the rows `rows` of this fill.
    fn part(&self, rows: Range<usize>) -> RowFill {
        RowFill { start: self.start + rows.start * self.pitch, rows: rows.len(), ..*self }
    }

    /// Returns two fills. The first has the rows of this fill before `rows`. The second has the rows of this fill after
    /// `rows`. A fill without rows is omitted.
    fn others(&self, rows: &Range<usize>) -> impl Iterator<Item = RowFill> {
        let parts = [0..rows.start, rows.end..self.rows];
        let fill = *self;
        parts.into_iter().filter(|part| !part.is_empty()).map(move |part| fill.part(part))
    }

    /// Returns the range from the first word to the last word. All words of the fill must be in memory.
    fn range(&self) -> Range<usize> {
        self.start..self.end().unwrap_or(self.start)
    }

    /// Returns whether both fills have the same pitch and their rows begin and end in the same columns.
    fn has_columns_of(&self, other: &RowFill) -> bool {
        let apart = self.start.abs_diff(other.start);
        self.words == other.words && self.pitch == other.pitch && apart.is_multiple_of(self.pitch.max(1))
    }

    /// Stores the value in all rows of the fill.
    fn store(&self, memory: Vram<'_>) {
        let (value, mask) = ((self.value & self.mask).to_le(), self.mask.to_le());
        let mut piece = [value; PIECE];
        for row in 0..self.rows {
            let words = memory.units(self.start + row * self.pitch, self.words * WORD).unwrap_or_default();
            for words in words.chunks(PIECE) {
                let piece = &mut piece[..words.len()];
                if mask != u32::MAX {
                    load(words, piece);
                    piece.iter_mut().for_each(|word| *word = *word & !mask | value);
                }
                store(words, piece);
            }
        }
    }
}

/// The outstanding fills of a view of memory. An outstanding fill has not been stored yet.
#[derive(Debug, Default)]
pub struct Fills {
    /// Start of a range that contains all fills, or 0 if no fill is outstanding.
    start: AtomicUsize,
    /// End of the range that contains all fills, or 0 if no fill is outstanding.
    end: AtomicUsize,
    /// Number of calls of [`Fills::pause`] after the last fill was added.
    pauses: AtomicU32,
    /// The fills, in no particular order. No two fills contain the same row.
    list: Mutex<Vec<RowFill>>,
}

impl Fills {
    /// Returns whether a fill is outstanding.
    #[inline]
    pub(super) fn has_any(&self) -> bool {
        self.end.load(Ordering::Acquire) != 0
    }

    /// Returns whether a range may contain rows of a fill.
    #[inline]
    pub(super) fn may_reach(&self, range: &Range<usize>) -> bool {
        range.start < self.end.load(Ordering::Acquire) && self.start.load(Ordering::Relaxed) < range.end
    }

    /// Records the end of a submission. Returns the number of submissions that have ended after the last fill was
    /// added.
    pub fn pause(&self) -> u32 {
        self.pauses.fetch_add(1, Ordering::Relaxed) + 1
    }

    /// Drops all fills. The dropped fills are never stored.
    pub fn forget(&self) {
        self.replace(&mut self.list(), Vec::new());
    }

    fn list(&self) -> MutexGuard<'_, Vec<RowFill>> {
        self.list.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Replaces the list of fills, and updates the range that contains all fills.
    fn replace(&self, list: &mut Vec<RowFill>, new: Vec<RowFill>) {
        *list = new;
        let start = list.iter().map(|fill| fill.start).min().unwrap_or(0);
        let end = list.iter().map(|fill| fill.range().end).max().unwrap_or(0);
        self.start.store(start, Ordering::Relaxed);
        self.end.store(end, Ordering::Release);
    }

    /// Stores the rows of fills that an access to a range may reach. `memory` is the view without outstanding fills.
    #[cold]
    pub(super) fn settle(&self, memory: Vram<'_>, range: &Range<usize>) {
        let mut list = self.list();
        if list.iter().all(|fill| fill.rows_in(range).is_empty()) {
            return;
        }
        let mut kept = Vec::with_capacity(list.len() + 1);
        for fill in list.drain(..) {
            let rows = fill.rows_in(range);
            if !rows.is_empty() {
                fill.part(rows.clone()).store(memory);
            }
            kept.extend(fill.others(&rows));
        }
        self.replace(&mut list, kept);
    }

    /// Adds a fill. Drops the rows of earlier fills that this fill covers. The fill must be in memory. `memory` is the
    /// view without outstanding fills.
    pub(super) fn add(&self, memory: Vram<'_>, fill: RowFill) {
        let covered = fill.start..fill.start.saturating_add(fill.rows.saturating_mul(fill.pitch));
        let mut list = self.list();
        let mut kept = Vec::with_capacity(list.len() + 2);
        for old in list.drain(..) {
            let (reached, own) = (old.range(), fill.range());
            if reached.end <= own.start || own.end <= reached.start {
                kept.push(old);
            } else if old.has_columns_of(&fill) {
                let rows = old.rows_in(&covered);
                if old.mask & !fill.mask != 0 && !rows.is_empty() {
                    old.part(rows.clone()).store(memory);
                }
                kept.extend(old.others(&rows));
            } else {
                old.store(memory);
            }
        }
        kept.push(fill);
        if kept.len() > MOST {
            kept.drain(..).for_each(|fill| fill.store(memory));
        }
        self.pauses.store(0, Ordering::Relaxed);
        self.replace(&mut list, kept);
    }
}

impl<'a> Vram<'a> {
    /// Returns a view with outstanding fills. The returned view and its copies do not store a large [fill](Vram::fill)
    /// immediately. A large fill is stored when an access through one of these views reaches the filled rows. The owner
    /// of the view must call [`Vram::settle`] at the end.
    pub fn with_fills(self, fills: &'a Fills) -> Vram<'a> {
        Vram { fills: Some(fills), ..self }
    }

    /// Returns a view of the stored bytes, without the outstanding fills. Before an access to a range through the
    /// returned view, the caller must [settle](Vram::settle) the range.
    pub fn as_stored(self) -> Vram<'a> {
        Vram { fills: None, ..self }
    }

    /// Returns whether this view was created by [`Vram::with_fills`].
    pub fn may_have_fills(self) -> bool {
        self.fills.is_some()
    }

    /// Returns whether fills are outstanding.
    #[inline]
    pub fn has_fills(self) -> bool {
        self.fills.is_some_and(Fills::has_any)
    }

    /// Stores the outstanding fills in a range. The function may also store fills outside the range.
    #[inline]
    pub fn settle(self, range: Range<usize>) {
        if let Some(fills) = self.fills.filter(|fills| fills.may_reach(&range)) {
            fills.settle(self.as_stored(), &range);
        }
    }

    /// Fills rows. Returns `false` and has no effect in three cases. The words are not aligned. Some words are not in
    /// memory. Rows overlap.
    pub fn fill(self, fill: &RowFill) -> bool {
        let Some(end) = fill.end() else { return false };
        let aligned = fill.rows <= 1 || fill.pitch.is_multiple_of(WORD);
        if !aligned || self.as_stored().units(fill.start, end - fill.start).is_none() {
            return false;
        }
        match self.fills {
            Some(fills) if fill.words.saturating_mul(fill.rows) > FEW => fills.add(self.as_stored(), *fill),
            _ => {
                self.settle(fill.range());
                fill.store(self.as_stored());
            }
        }
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    struct Random(u32);

    impl Random {
        fn below(&mut self, most: usize) -> usize {
            self.0 = self.0.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
            (self.0 >> 8) as usize % most
        }
    }

    fn random_fill(random: &mut Random) -> RowFill {
        // The test uses only few combinations of columns and pitch. So two fills often have the same columns.
        let (words, pitch) = [(64, 256), (64, 256), (50, 256), (64, 512), (128, 512)][random.below(5)];
        let mask = [u32::MAX, u32::MAX, 0xff_ffff, 0xffff_ff00][random.below(4)];
        let start = random.below(150) * 256 + [0, 0, 0, 4][random.below(4)];
        let rows = [0, 1, 100, 150, 200][random.below(5)];
        RowFill { start, words, pitch, rows, value: (random.below(1 << 24) as u32).wrapping_mul(257), mask }
    }

    /// Applies identical random fills and accesses to two memories, and compares the results. The first memory may have
    /// outstanding fills. The second memory stores each fill at once.
    #[test]
    fn outstanding_fills_read_as_if_they_were_stored() {
        let mut random = Random(5);
        for _ in 0..300 {
            let (mut found, mut expected) = (vec![7_u8; 1 << 17], vec![7_u8; 1 << 17]);
            let fills = Fills::default();
            let (found, expected) = (Vram::new(&mut found).with_fills(&fills), Vram::new(&mut expected));
            let mut deferred = false;
            for _ in 0..40 {
                let fill = random_fill(&mut random);
                assert_eq!(found.fill(&fill), expected.fill(&fill), "{fill:?}");
                deferred |= found.has_fills();
                let (at, length) = (random.below((1 << 17) - 300), random.below(300));
                match random.below(8) {
                    0 => assert_eq!(found.bytes(at..at + length), expected.bytes(at..at + length)),
                    1 => assert_eq!(found.words(at..at + length), expected.words(at..at + length)),
                    2 => assert_eq!(found.word(at), expected.word(at)),
                    3 => {
                        let known = expected.bytes(at..at + length);
                        assert!(found.holds(at, &known));
                        assert!(found.holds_words(at / 4 * 4, &expected.words(at / 4 * 4..at + length)));
                    }
                    4 => {
                        let bytes = vec![random.below(256) as u8; length];
                        assert_eq!(found.write(at, &bytes), expected.write(at, &bytes));
                    }
                    5 => [found, expected].iter().for_each(|all| {
                        all.update(at, 4, |bytes| bytes[0] ^= 1);
                        all.copy_within(at..at + length, at / 2);
                    }),
                    _ => {}
                }
            }
            assert!(deferred);
            found.settle(0..found.len());
            assert!(!found.has_fills());
            assert!(found.as_stored().bytes(0..1 << 17) == expected.bytes(0..1 << 17));
        }
    }

    #[test]
    fn a_fill_that_a_later_one_covers_is_not_stored() {
        let mut bytes = vec![0; 1 << 16];
        let fills = Fills::default();
        let memory = Vram::new(&mut bytes).with_fills(&fills);
        let first = RowFill { start: 0, words: 128, pitch: 512, rows: 128, value: 1, mask: u32::MAX };
        assert!(memory.fill(&first) && memory.fill(&RowFill { value: 2, ..first }));
        assert_eq!((fills.list().len(), memory.as_stored().word(0)), (1, Some(0)));
        // A read of a row in the middle leaves two parts of the fill outstanding.
        assert_eq!((memory.word(512 * 50), fills.list().len()), (Some(2), 2));
        assert_eq!(
            (memory.as_stored().word(512 * 50), memory.as_stored().word(512 * 51)),
            (Some(2), Some(0))
        );
    }

    #[test]
    fn fills_outside_of_memory_have_no_effect() {
        let mut bytes = vec![0; 1 << 16];
        let fills = Fills::default();
        let memory = Vram::new(&mut bytes).with_fills(&fills);
        let whole = RowFill { start: 0, words: 128, pitch: 512, rows: 128, value: 1, mask: u32::MAX };
        for fill in [
            RowFill { rows: 129, ..whole },
            RowFill { start: 2, rows: 64, ..whole },
            RowFill { pitch: 508, ..whole },
            RowFill { pitch: 513, rows: 64, ..whole },
            RowFill { rows: usize::MAX, ..whole },
            RowFill { start: usize::MAX - 3, ..whole },
            RowFill { words: usize::MAX, ..whole },
        ] {
            assert!(!memory.fill(&fill), "{fill:?}");
        }
        assert!(!memory.has_fills() && memory.bytes(0..1 << 16).iter().all(|byte| *byte == 0));
    }
}
