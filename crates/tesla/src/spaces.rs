//! The memory spaces that warps share: c0..c15[], s[], g0..g15[]. (1.7)
//!
//! `state.rs` has l[], which belongs to one lane, and the stage's inputs and outputs a[], v[] and o[]. `context.rs` has
//! p[]. All data is little endian.

use std::ops::Range;

use reconverge_simt::guarded::{Guarded, Placement};
use reconverge_simt::races::{Accessor, Races};

use crate::code::SharedChecks;
use crate::trap::SharedAccess;

/// Number of banks of c[], and of segments of g[].
pub const BANKS: usize = 16;

/// The constant banks of a stage.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Constants {
    banks: [Vec<u8>; BANKS],
}

impl Constants {
    /// Creates empty banks.
    pub fn new() -> Self {
        Constants::default()
    }

    /// Writes `bytes` at `offset` of a bank. The bank grows as needed, and this function fills any gap with zeros.
    /// Returns `false` if the bank does not exist or would exceed 64 KiB.
    pub fn place(&mut self, bank: usize, offset: usize, bytes: &[u8]) -> bool {
        let Some(bank) = self.banks.get_mut(bank) else { return false };
        let Some(end) = offset.checked_add(bytes.len()).filter(|&end| end <= BANK_BYTES) else {
            return false;
        };
        if bank.len() < end {
            bank.resize(end, 0);
        }
        bank[offset..end].copy_from_slice(bytes);
        true
    }

    /// Returns the bytes of a bank. The result is empty if no bytes were written to the bank.
    pub fn bank(&self, bank: usize) -> &[u8] {
        self.banks.get(bank).map_or(&[], Vec::as_slice)
    }

    /// Returns `count` bytes (1, 2 or 4) at `address` as a little-endian number.
    ///
    /// **Open** (1.7): bytes past the end of the bank's contents read 0.
    #[inline]
    pub fn read(&self, bank: u8, address: u32, count: u32) -> u32 {
        let bank = &self.banks[usize::from(bank) % BANKS];
        let byte = |index: u32| {
            bank.get((address + index) as usize).map_or(0, |&byte| u32::from(byte) << (8 * index))
        };
        (0..count).map(byte).sum()
    }
}

/// Maximum size of a bank, 64 KiB.
const BANK_BYTES: usize = 0x1_0000;

/// The shared memory of a block, with its locks.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Shared {
    bytes: Guarded<u8>,
    /// For each word, 1 plus the number of the thread that has the lock of the word. The entry of a free lock is 0.
    /// The list ends with the last word that was ever locked.
    locks: Vec<u32>,
    /// The record of accesses, if the search for races is enabled.
    races: Option<Box<Races>>,
}

/// Returns a shared memory of size zero.
impl Default for Shared {
    fn default() -> Self {
        Shared::new(0)
    }
}

impl Shared {
    /// Creates s[] of `bytes` bytes, all zero. (**Open** 1.6: bytes that the launch does not set are undefined.)
    pub fn new(bytes: usize) -> Self {
        Shared { bytes: Guarded::new(bytes, Placement::addressed()), locks: Vec::new(), races: None }
    }

    /// Resets s[] to the state after [`Shared::new`], in the same allocation. `checks` configures the search for races
    /// between `warps` warps.
    pub fn begin(&mut self, bytes: usize, warps: usize, checks: Option<SharedChecks>) {
        self.bytes.reset(bytes);
        self.locks.clear();
        match checks {
            Some(SharedChecks { given, stored, narrow }) => {
                let races = self.races.get_or_insert_default();
                races.begin(warps as u32, bytes, given, narrow, stored);
            }
            None => self.races = None,
        }
    }

    /// Returns the record of accesses, if the search for races is enabled.
    #[inline(always)]
    pub(crate) fn races_mut(&mut self) -> Option<&mut Races> {
        self.races.as_deref_mut()
    }

    /// Returns whether the program has changed the header or the parameters. Always `false` unless the search for
    /// races is enabled.
    #[inline(always)]
    pub(crate) fn given_changed(&self) -> bool {
        self.races.as_deref().is_some_and(Races::given_changed)
    }

    /// Records that a lane reads bytes. The read is not checked for races. Does nothing unless the search for races is
    /// enabled.
    pub(crate) fn read_by(&mut self, reader: SharedAccess, address: u32, bytes: u32) {
        let SharedAccess { pc, warp: group, lane, .. } = reader;
        let accessor = Accessor { group, lane, pc };
        self.races.iter_mut().for_each(|races| races.note_load(accessor, address, bytes));
    }

    /// Records that bytes were written, but not by the program.
    pub fn written_from_outside(&mut self, bytes: Range<usize>) {
        self.races.iter_mut().for_each(|races| races.preset(bytes.clone()));
    }

    /// Returns all bytes.
    pub fn bytes(&self) -> &[u8] {
        &self.bytes
    }

    /// Returns all bytes, for writing.
    pub fn bytes_mut(&mut self) -> &mut [u8] {
        &mut self.bytes
    }

    /// Writes `bytes` at `offset`. Bytes past the end are dropped.
    pub fn place(&mut self, offset: usize, bytes: &[u8]) {
        let end = self.bytes.len().min(offset + bytes.len());
        self.written_from_outside(offset..end);
        if let Some(place) = self.bytes.get_mut(offset..end) {
            let count = place.len();
            place.copy_from_slice(&bytes[..count]);
        }
    }

    /// Returns `count` bytes (1, 2 or 4) at `address` as a little-endian number. Returns `None` if the bytes extend
    /// past the end of s[].
    #[inline]
    pub fn read(&self, address: u32, count: u32) -> Option<u32> {
        let bytes = self.bytes.get(address as usize..(address + count) as usize)?;
        Some(bytes.iter().rev().fold(0, |word, &byte| word << 8 | u32::from(byte)))
    }

    /// Stores the low `count` bytes of `value` at `address`. Returns `None` if the bytes at `address` extend past the
    /// end of s[].
    #[inline]
    pub fn write(&mut self, address: u32, count: u32, value: u32) -> Option<()> {
        let place = self.bytes.get_mut(address as usize..(address + count) as usize)?;
        place.copy_from_slice(&value.to_le_bytes()[..count as usize]);
        Some(())
    }

    /// Executes `ld lock`: takes the lock of the word at `address` for `thread`. Returns whether the lock was free.
    ///
    /// **Open** (section 4): hardware hashes words onto a finite set of locks. This machine has a separate lock for
    /// every word. So an attempt to take a lock fails less often than on hardware. If a thread already holds the lock,
    /// another attempt of that thread fails.
    pub fn lock(&mut self, address: u32, thread: u32) -> bool {
        let word = address as usize / 4;
        if self.locks.len() <= word {
            self.locks.resize(word + 1, 0);
        }
        let free = self.locks[word] == 0;
        if free {
            self.locks[word] = thread + 1;
        }
        free
    }

    /// Executes `st unlock`: releases the lock of the word at `address`, whichever thread holds the lock. (**Open**: in
    /// the documents, only the holder releases a lock.)
    pub fn unlock(&mut self, address: u32) {
        if let Some(holder) = self.locks.get_mut(address as usize / 4) {
            *holder = 0;
        }
    }

    /// Returns the locked words by address, with the thread that holds the lock of each word.
    pub fn locks(&self) -> impl Iterator<Item = (u32, u32)> + '_ {
        let held = |(word, holder): (usize, &u32)| Some((4 * word as u32, holder.checked_sub(1)?));
        self.locks.iter().enumerate().filter_map(held)
    }
}

/// The location of a segment of g[] in memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Segment {
    /// Memory address of byte 0 of the segment.
    pub base: u32,
    /// The largest offset in the segment. In a tiled segment, bits 31..16 are the number of the last row, and bits
    /// 15..0 are the offset of the last byte in a row.
    pub limit: u32,
    /// The layout of the segment's rows, if the segment is tiled.
    pub tiling: Option<Tiling>,
    /// Whether an access beyond the limit reads zeros and stores nothing. Otherwise the access traps.
    pub lenient: bool,
}

impl Segment {
    /// Returns a linear segment.
    pub const fn linear(base: u32, limit: u32) -> Segment {
        Segment { base, limit, tiling: None, lenient: false }
    }

    /// A segment that is the whole 32-bit space.
    pub const ALL: Segment = Segment::linear(0, u32::MAX);
}

/// The layout of a tiled segment. A tile has rows of 64 bytes. Tiles that are side by side form a row of tiles. In
/// memory, each row of tiles comes after the previous row of tiles. In an offset, bits 31..16 are the number of a row,
/// and bits 15..0 are the offset of a byte in this row.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Tiling {
    /// Number of bytes from one row of tiles to the next.
    pub pitch: u32,
    /// The binary logarithm of the number of rows in a tile, 0 to 7.
    pub rows: u8,
}

impl Tiling {
    /// Returns the distance in bytes from the start of the segment to the byte at an offset.
    #[inline]
    pub fn place(self, offset: u32) -> Option<u32> {
        let (x, y, rows) = (offset & 0xffff, offset >> 16, u32::from(self.rows & 7));
        let tile = (y >> rows).checked_mul(self.pitch)?.checked_add((x >> 6) << (6 + rows))?;
        tile.checked_add(((y & ((1 << rows) - 1)) << 6) + (x & 63))
    }
}

/// The segments g0..g15[].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Segments(pub [Option<Segment>; BANKS]);

impl Default for Segments {
    /// Returns the segments of CUDA: g14[] is the whole 32-bit window, and all other segments are unbound. (1.7)
    fn default() -> Self {
        let mut segments = [None; BANKS];
        segments[14] = Some(Segment::ALL);
        Segments(segments)
    }
}

impl Segments {
    /// Returns the memory address of an access of `count` bytes (1 to 16) at `offset` of a segment. Returns `None`
    /// unless all bytes are inside the segment.
    #[inline]
    pub fn address(&self, segment: u8, offset: u32, count: u32) -> Option<u32> {
        let Segment { base, limit, tiling, .. } = self.0[usize::from(segment) % BANKS]?;
        let last = offset.checked_add(count - 1)?;
        let offset = match tiling {
            None if last <= limit => offset,
            // The address of an access is a multiple of the access's size. The access therefore does not extend past
            // the 64 bytes of a row in a tile.
            Some(tiling) if last & 0xffff <= limit & 0xffff && last >> 16 <= limit >> 16 => {
                tiling.place(offset)?
            }
            _ => return None,
        };
        base.checked_add(offset)
    }

    /// Returns whether an access outside the segment reads zeros and stores nothing.
    #[cold]
    pub fn is_lenient(&self, segment: u8) -> bool {
        self.0[usize::from(segment) % BANKS].is_some_and(|segment| segment.lenient)
    }

    /// Returns the memory address of a segment and the last offset in the segment. Returns `None` if the bytes of the
    /// segment are not contiguous in memory.
    pub fn linear(&self, segment: u8) -> Option<(u32, u32)> {
        let segment = self.0[usize::from(segment) % BANKS]?;
        segment.tiling.is_none().then_some((segment.base, segment.limit))
    }

    /// Returns the memory address of a segment's bytes from `first` to `last`. Returns `None` if these bytes are not
    /// contiguous in memory.
    #[inline]
    pub fn row(&self, segment: u8, first: u32, last: u32) -> Option<u32> {
        let segment = self.0[usize::from(segment) % BANKS]?;
        if segment.tiling.is_some() || last > segment.limit {
            return None;
        }
        segment.base.checked_add(first)
    }
}

/// Aligns an address to the access size. **Open** (13.18): the low bits of an unaligned address are ignored.
#[inline]
pub fn aligned(address: u32, count: u32) -> u32 {
    address & !(count - 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn constants_beyond_what_was_placed_read_zero() {
        let mut constants = Constants::new();
        assert!(constants.place(1, 4, &[1, 2, 3]));
        assert_eq!(constants.read(1, 4, 4), 0x0003_0201);
        assert_eq!(
            (constants.read(1, 6, 2), constants.read(1, 0x1_0000, 4), constants.read(0, 0, 4)),
            (3, 0, 0)
        );
        assert!(!constants.place(16, 0, &[1]) && !constants.place(0, 0xffff, &[1, 2]));
    }

    #[test]
    fn shared_memory_ends() {
        let mut shared = Shared::new(8);
        assert_eq!(shared.write(4, 4, 0x0403_0201), Some(()));
        assert_eq!((shared.read(5, 2), shared.read(7, 1), shared.read(6, 4)), (Some(0x302), Some(4), None));
        assert_eq!(shared.write(8, 1, 0), None);
    }

    #[test]
    fn a_locked_word_is_not_given_twice() {
        let mut shared = Shared::new(8);
        assert!(shared.lock(4, 1) && shared.lock(0, 2));
        assert!(!shared.lock(4, 2) && !shared.lock(4, 1));
        shared.unlock(4);
        assert!(shared.lock(4, 2));
        assert_eq!(shared.locks().collect::<Vec<_>>(), [(0, 2), (4, 2)]);
    }

    #[test]
    fn only_what_lies_in_a_segment_has_an_address() {
        let mut segments = Segments::default();
        segments.0[0] = Some(Segment::linear(0x100, 0xff));
        assert_eq!(segments.address(14, u32::MAX, 1), Some(u32::MAX));
        assert_eq!(segments.address(14, u32::MAX, 2), None);
        assert_eq!(segments.address(0, 0xfc, 4), Some(0x1fc));
        assert_eq!(segments.address(0, 0xfd, 4), None);
        assert_eq!(segments.address(1, 0, 4), None);
        assert_eq!((segments.row(0, 4, 0xff), segments.row(0, 4, 0x100)), (Some(0x104), None));
    }

    /// The layout of this image was captured from Mesa: an image with depth, 11 x 7 texels, pitch 64, tiles of 8 rows.
    #[test]
    fn an_offset_of_a_tiled_segment_has_a_row_and_a_byte() {
        let mut segments = Segments::default();
        let tiling = Some(Tiling { pitch: 0x400, rows: 3 });
        segments.0[1] = Some(Segment { base: 0x1000, limit: 0x000f_007f, tiling, lenient: false });
        for (x, y, expected) in [
            (0, 0, Some(0x1000)),
            (60, 0, Some(0x103c)),
            (64, 0, Some(0x1200)),
            (4, 7, Some(0x11c4)),
            (4, 8, Some(0x1404)),
            (124, 15, Some(0x17fc)),
            (128, 0, None),
            (0, 16, None),
        ] {
            assert_eq!(segments.address(1, y << 16 | x, 4), expected, "byte {x} of row {y}");
        }
        assert_eq!(segments.row(1, 0, 3), None);
    }
}
