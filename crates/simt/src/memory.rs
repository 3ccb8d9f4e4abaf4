//! Memory that many groups share: disjoint buffers at addresses, and a view of it for running groups in parallel
//! with the result of running them one after another.
//!
//! Groups of a grid (blocks, in CUDA's word) may write the same memory. What is guaranteed: **the result of a
//! launch is that of running its groups to their end one after another in the order of their index**, whatever
//! the number of threads. To use several processors, a machine runs some groups at a time, each against its own
//! [`Tracked`] view of the memory as it was, and commits them in order. A view records, byte by byte, what its group
//! read from the memory before writing it, and what it wrote. If a group read a byte that an earlier group has written
//! since, it saw an old value: its view is discarded and the group runs again, on the memory itself. Otherwise it saw
//! exactly what it would have seen in its turn, so that committing its bytes gives the same memory. Atomic operations
//! need no special case: they read and write. Running threads share no data, so there are no locks and no relaxed
//! atomics.

use std::collections::{BTreeMap, HashMap};
use std::hash::{BuildHasherDefault, Hasher};
use std::ops::Range;

use rayon::prelude::*;
use thiserror::Error;

/// A run of bytes at an address.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Buffer {
    /// Address of the first byte.
    pub address: u32,
    /// The bytes.
    pub bytes: Vec<u8>,
}

impl Buffer {
    /// One past its last address, which may be 2^32.
    fn end(&self) -> u64 {
        u64::from(self.address) + self.bytes.len() as u64
    }
}

/// Why buffers do not fit into one memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
pub enum LayoutError {
    /// Two buffers share bytes.
    #[error("the buffers at {first:#x} and {second:#x} overlap")]
    Overlap {
        /// Address of the lower one.
        first: u32,
        /// Address of the other.
        second: u32,
    },
    /// A buffer reaches beyond the last address.
    #[error("the buffer at {0:#x} reaches beyond 32-bit addresses")]
    Beyond(u32),
}

/// Disjoint buffers in a 32-bit address space. Bytes outside them do not exist.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Memory {
    /// By ascending address.
    buffers: Vec<Buffer>,
}

/// Something groups load from and store to. `false`: some of the bytes do not exist, and nothing has changed.
pub trait Store {
    /// Copies the bytes from `address` on.
    fn load(&mut self, address: u32, into: &mut [u8]) -> bool;
    /// Replaces the bytes from `address` on.
    fn store(&mut self, address: u32, bytes: &[u8]) -> bool;

    /// The bytes from `address` on, where all of them exist in one buffer and are to be had together: for a group that reads
    /// the picked ones with one question. The others may be what the memory was some time ago.
    #[inline(always)]
    fn reading(&mut self, _address: u32, _count: usize, _picked: Picked<'_>) -> Option<&[u8]> {
        None
    }

    /// The bytes from `address` on, as [`reading`](Self::reading) gives them, for a group that then writes exactly the
    /// picked ones. It may write the others with what they are, and may read none of them.
    #[inline(always)]
    fn writing(&mut self, _address: u32, _count: usize, _picked: Picked<'_>) -> Option<&mut [u8]> {
        None
    }

    /// The same for a group that reads the picked bytes before it writes them.
    #[inline(always)]
    fn changing(&mut self, _address: u32, _count: usize, _picked: Picked<'_>) -> Option<&mut [u8]> {
        None
    }
}

/// Which of the bytes from one address to another a group reads or writes.
#[derive(Clone, Copy, Debug)]
pub enum Picked<'a> {
    /// All of them.
    All,
    /// Of words one behind another those whose bit is set.
    Row(u32),
    /// Elements of so many bytes, at the offsets whose bit is set; all lie within the bytes.
    Each(&'a [u32], u32, u32),
}

impl Memory {
    /// Memory that consists of these buffers.
    ///
    /// # Errors
    /// Two of them overlap, or one does not fit into 32-bit addresses.
    pub fn new(mut buffers: Vec<Buffer>) -> Result<Self, LayoutError> {
        buffers.sort_by_key(|buffer| buffer.address);
        if let Some(beyond) = buffers.iter().find(|buffer| buffer.end() > 1 << 32) {
            return Err(LayoutError::Beyond(beyond.address));
        }
        match buffers.windows(2).find(|pair| pair[0].end() > u64::from(pair[1].address)) {
            Some(pair) => Err(LayoutError::Overlap { first: pair[0].address, second: pair[1].address }),
            None => Ok(Memory { buffers }),
        }
    }

    /// Adds a buffer.
    ///
    /// # Errors
    /// It overlaps one of them, or does not fit into 32-bit addresses; then nothing has changed.
    pub fn insert(&mut self, buffer: Buffer) -> Result<(), LayoutError> {
        if buffer.end() > 1 << 32 {
            return Err(LayoutError::Beyond(buffer.address));
        }
        let place = self.buffers.partition_point(|other| other.address < buffer.address);
        let overlaps = |first: &Buffer, second: &Buffer| first.end() > u64::from(second.address);
        let clash = |first: &Buffer, second: &Buffer| LayoutError::Overlap {
            first: first.address,
            second: second.address,
        };
        if let Some(before) = place
            .checked_sub(1)
            .map(|before| &self.buffers[before])
            .filter(|before| overlaps(before, &buffer))
        {
            return Err(clash(before, &buffer));
        }
        if let Some(after) = self.buffers.get(place).filter(|after| overlaps(&buffer, after)) {
            return Err(clash(&buffer, after));
        }
        self.buffers.insert(place, buffer);
        Ok(())
    }

    /// The buffers by ascending address.
    pub fn buffers(&self) -> &[Buffer] {
        &self.buffers
    }

    /// The buffer that starts at `address`.
    pub fn at(&self, address: u32) -> Option<&Buffer> {
        let index = self.buffers.binary_search_by_key(&address, |buffer| buffer.address).ok()?;
        Some(&self.buffers[index])
    }

    /// The bytes from `address` on, if all of them exist in one buffer.
    #[inline]
    pub fn bytes(&self, address: u32, count: usize) -> Option<&[u8]> {
        let (index, offset) = self.find(address)?;
        self.buffers[index].bytes.get(offset..offset + count)
    }

    /// The bytes from `address` on for writing, if all of them exist in one buffer.
    #[inline]
    pub fn bytes_mut(&mut self, address: u32, count: usize) -> Option<&mut [u8]> {
        let (index, offset) = self.find(address)?;
        self.buffers[index].bytes.get_mut(offset..offset + count)
    }

    /// Writes what groups wrote, in their order. The threads of the rayon pool in which this is called share the pieces of
    /// the memory.
    pub fn commit(&mut self, footprints: &[Footprint]) {
        let mut by_piece = BTreeMap::<u64, Vec<&[Page]>>::new();
        for footprint in footprints {
            for (piece, pages) in &footprint.pieces {
                by_piece.entry(*piece).or_default().push(&footprint.pages[pages.clone()]);
            }
        }
        let mut parts = Vec::with_capacity(by_piece.len());
        for buffer in &mut self.buffers {
            let (mut address, end) = (u64::from(buffer.address), buffer.end());
            let mut left = &mut buffer.bytes[..];
            for (piece, pages) in by_piece.range(address / PIECE..end.div_ceil(PIECE)) {
                let part = address.max(piece * PIECE)..end.min((piece + 1) * PIECE);
                left = &mut left[(part.start - address) as usize..];
                let (bytes, behind) = left.split_at_mut((part.end - part.start) as usize);
                parts.push((part.start, bytes, pages));
                (address, left) = (part.end, behind);
            }
        }
        parts.into_par_iter().for_each(|(address, bytes, pages)| {
            pages.iter().copied().flatten().for_each(|page| page.write(address, bytes));
        });
    }

    #[inline]
    fn find(&self, address: u32) -> Option<(usize, usize)> {
        let index = self.buffers.partition_point(|buffer| buffer.address <= address).checked_sub(1)?;
        Some((index, (address - self.buffers[index].address) as usize))
    }
}

impl Store for Memory {
    #[inline]
    fn load(&mut self, address: u32, into: &mut [u8]) -> bool {
        let bytes = self.bytes(address, into.len());
        bytes.is_some_and(|bytes| {
            into.copy_from_slice(bytes);
            true
        })
    }

    #[inline]
    fn store(&mut self, address: u32, bytes: &[u8]) -> bool {
        let place = self.bytes_mut(address, bytes.len());
        place.is_some_and(|place| {
            place.copy_from_slice(bytes);
            true
        })
    }

    #[inline]
    fn reading(&mut self, address: u32, count: usize, _: Picked<'_>) -> Option<&[u8]> {
        self.bytes(address, count)
    }

    #[inline]
    fn writing(&mut self, address: u32, count: usize, _: Picked<'_>) -> Option<&mut [u8]> {
        self.bytes_mut(address, count)
    }

    #[inline]
    fn changing(&mut self, address: u32, count: usize, _: Picked<'_>) -> Option<&mut [u8]> {
        self.bytes_mut(address, count)
    }
}

/// Bytes of a page.
const PAGE: usize = 256;

/// Bytes of a piece, which one thread commits: many pages, so that the cost of finding a piece is small.
const PIECE: u64 = 64 * PAGE as u64;

/// A set of bytes of a page.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct ByteSet([u64; PAGE / 64]);

impl ByteSet {
    #[inline]
    fn run(start: usize, count: usize) -> ByteSet {
        let below = |end: usize, word: usize| match end.saturating_sub(64 * word) {
            bits @ 0..64 => (1 << bits) - 1,
            _ => u64::MAX,
        };
        ByteSet(std::array::from_fn(|word| below(start + count, word) & !below(start, word)))
    }

    fn add(&mut self, other: ByteSet) {
        for (mine, theirs) in self.0.iter_mut().zip(other.0) {
            *mine |= theirs;
        }
    }

    fn is_empty(self) -> bool {
        self == ByteSet::default()
    }

    fn without(self, other: ByteSet) -> ByteSet {
        ByteSet(std::array::from_fn(|word| self.0[word] & !other.0[word]))
    }

    fn meets(self, other: ByteSet) -> bool {
        self.0.iter().zip(other.0).any(|(mine, theirs)| mine & theirs != 0)
    }

    /// Its bytes in runs, none longer than 64, or all of them.
    fn runs(self) -> impl Iterator<Item = Range<usize>> {
        let all = self.0 == [u64::MAX; PAGE / 64];
        let some = move |word: usize| {
            let mut left = self.0[word];
            std::iter::from_fn(move || {
                let start = left.trailing_zeros();
                let count = left.checked_shr(start)?.trailing_ones();
                left &= u64::MAX.checked_shl(start + count).unwrap_or(0);
                let first = 64 * word + start as usize;
                Some(first..first + count as usize)
            })
        };
        all.then_some(0..PAGE).into_iter().chain((0..PAGE / 64 * usize::from(!all)).flat_map(some))
    }
}

/// One page as a group sees it.
#[derive(Clone, Debug)]
struct Page {
    number: u32,
    /// The bytes that have been written; the others have no meaning.
    data: [u8; PAGE],
    /// The bytes that were read before they were written.
    read: ByteSet,
    written: ByteSet,
}

impl Page {
    /// Writes the bytes that have been written, as far as they are among those from `address` on.
    fn write(&self, address: u64, bytes: &mut [u8]) {
        let page = self.address();
        for run in self.written.runs() {
            let start = address.max(page + run.start as u64);
            let end = (address + bytes.len() as u64).min(page + run.end as u64);
            if start < end {
                let part = |from| (start - from) as usize..(end - from) as usize;
                bytes[part(address)].copy_from_slice(&self.data[part(page)]);
            }
        }
    }

    fn address(&self) -> u64 {
        u64::from(self.number) * PAGE as u64
    }
}

/// A cheap hash for page numbers: they come from addresses, and no result depends on the order of the map.
#[derive(Default)]
struct PageHasher(u64);

impl Hasher for PageHasher {
    fn finish(&self) -> u64 {
        self.0
    }
    fn write(&mut self, bytes: &[u8]) {
        for &byte in bytes {
            self.0 = (self.0 << 8 | u64::from(byte)).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        }
    }
    fn write_u32(&mut self, number: u32) {
        // The map takes its bucket from the low bits and a tag from the top ones: spread to both.
        self.0 = u64::from(number).wrapping_mul(0x9e37_79b9_7f4a_7c15).rotate_left(20);
    }
}

type PageMap<T> = HashMap<u32, T, BuildHasherDefault<PageHasher>>;

/// Memory as one group sees it while others run: as it was, plus what the group itself wrote.
#[derive(Clone, Debug)]
pub struct Tracked<'a> {
    memory: &'a Memory,
    pages: Vec<Page>,
    index: PageMap<usize>,
    last: usize,
    reads: bool,
}

/// What a group read and wrote, apart from the memory it ran against.
#[derive(Clone, Debug)]
pub struct Footprint {
    pages: Vec<Page>,
    /// Runs of pages in the same piece of the memory, with the piece's number.
    pieces: Vec<(u64, Range<usize>)>,
    reads: bool,
}

impl Footprint {
    /// Whether the group read anything that it had not written itself.
    pub fn reads(&self) -> bool {
        self.reads
    }

    /// How many pages the group touched.
    pub fn pages(&self) -> usize {
        self.pages.len()
    }
}

impl<'a> Tracked<'a> {
    /// A view of `memory` in which nothing has been read or written.
    pub fn new(memory: &'a Memory) -> Self {
        Self::with_capacity(memory, 0)
    }

    /// A view with room for as many pages as the group is likely to touch.
    pub fn with_capacity(memory: &'a Memory, pages: usize) -> Self {
        let index = PageMap::with_capacity_and_hasher(pages, BuildHasherDefault::default());
        Tracked { memory, pages: Vec::with_capacity(pages), index, last: 0, reads: false }
    }

    /// What the group read and wrote.
    pub fn finish(self) -> Footprint {
        // Runs are found here, while the pages are in the cache: a commit goes through hundreds of footprints.
        let mut pieces: Vec<(u64, Range<usize>)> = Vec::new();
        for (place, page) in self.pages.iter().enumerate() {
            let piece = page.address() / PIECE;
            match pieces.last_mut() {
                Some((last, pages)) if *last == piece => pages.end += 1,
                _ => pieces.push((piece, place..place + 1)),
            }
        }
        Footprint { pages: self.pages, pieces, reads: self.reads }
    }

    #[inline]
    fn page(&mut self, number: u32) -> &mut Page {
        if self.pages.get(self.last).is_none_or(|page| page.number != number) {
            self.last = match self.index.get(&number) {
                Some(&found) => found,
                None => self.open(number),
            };
        }
        &mut self.pages[self.last]
    }

    fn open(&mut self, number: u32) -> usize {
        let place = self.pages.len();
        let (read, written) = (ByteSet::default(), ByteSet::default());
        self.pages.push(Page { number, data: [0; PAGE], read, written });
        self.index.insert(number, place);
        place
    }

    /// Calls `act` with each page's part of the bytes: the page, the place in it, the place in the access.
    #[inline]
    fn split(&mut self, address: u32, count: usize, mut act: impl FnMut(&mut Page, usize, Range<usize>)) {
        let mut done = 0;
        while done < count {
            let here = address + done as u32;
            let offset = here as usize % PAGE;
            let part = (PAGE - offset).min(count - done);
            act(self.page(here / PAGE as u32), offset, done..done + part);
            done += part;
        }
    }
}

impl Store for Tracked<'_> {
    #[inline]
    fn load(&mut self, address: u32, into: &mut [u8]) -> bool {
        let Some(before) = self.memory.bytes(address, into.len()) else {
            return false;
        };
        let mut reads = false;
        self.split(address, into.len(), |page, offset, part| {
            let bytes = ByteSet::run(offset, part.len());
            let read = bytes.without(page.written);
            page.read.add(read);
            if read.is_empty() {
                into[part.clone()].copy_from_slice(&page.data[offset..offset + part.len()]);
                return;
            }
            reads = true;
            into[part.clone()].copy_from_slice(&before[part.clone()]);
            for run in bytes.without(read).runs() {
                into[part.start + run.start - offset..part.start + run.end - offset]
                    .copy_from_slice(&page.data[run]);
            }
        });
        self.reads |= reads;
        true
    }

    #[inline]
    fn store(&mut self, address: u32, bytes: &[u8]) -> bool {
        if self.memory.bytes(address, bytes.len()).is_none() {
            return false;
        }
        self.split(address, bytes.len(), |page, offset, part| {
            page.written.add(ByteSet::run(offset, part.len()));
            page.data[offset..offset + part.len()].copy_from_slice(&bytes[part.clone()]);
        });
        true
    }
}

/// What earlier groups have written since the views were made.
#[derive(Clone, Debug, Default)]
pub struct Written {
    pages: PageMap<ByteSet>,
}

impl Written {
    /// Whether a group with this footprint saw what it would have seen in its turn.
    pub fn allows(&self, footprint: &Footprint) -> bool {
        !footprint
            .pages
            .iter()
            .any(|page| self.pages.get(&page.number).is_some_and(|set| set.meets(page.read)))
    }

    /// Adds what a group wrote.
    pub fn add(&mut self, footprint: &Footprint) {
        for page in footprint.pages.iter().filter(|page| !page.written.is_empty()) {
            self.pages.entry(page.number).or_default().add(page.written);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn memory() -> Memory {
        Memory::new(vec![
            Buffer { address: 0x1000, bytes: (0..64).collect() },
            Buffer { address: 0x10f0, bytes: vec![9; 32] },
        ])
        .unwrap()
    }

    fn word(store: &mut impl Store, address: u32) -> Option<u32> {
        let mut bytes = [0; 4];
        store.load(address, &mut bytes).then(|| u32::from_le_bytes(bytes))
    }

    #[test]
    fn buffers_must_not_overlap_or_reach_beyond_the_last_address() {
        let at = |address, count| Buffer { address, bytes: vec![0; count] };
        assert_eq!(
            Memory::new(vec![at(0x20, 4), at(0x10, 0x11)]),
            Err(LayoutError::Overlap { first: 0x10, second: 0x20 })
        );
        assert_eq!(Memory::new(vec![at(u32::MAX, 2)]), Err(LayoutError::Beyond(u32::MAX)));
        assert!(Memory::new(vec![at(u32::MAX, 1), at(0, 16), at(16, 16)]).is_ok());
    }

    #[test]
    fn a_buffer_is_added_only_where_there_is_room() {
        let at = |address, count| Buffer { address, bytes: vec![0; count] };
        let mut memory = Memory::new(vec![at(0x20, 16)]).unwrap();
        let clash = Err(LayoutError::Overlap { first: 0x20, second: 0x2f });
        assert_eq!(memory.insert(at(0x2f, 1)), clash);
        assert_eq!(memory.insert(at(0x1f, 2)), Err(LayoutError::Overlap { first: 0x1f, second: 0x20 }));
        assert_eq!(memory.insert(at(0x30, 4)), Ok(()));
        assert_eq!(memory.insert(at(0x10, 16)), Ok(()));
        let places: Vec<u32> = memory.buffers().iter().map(|buffer| buffer.address).collect();
        assert_eq!(places, [0x10, 0x20, 0x30]);
    }

    #[test]
    fn an_access_must_lie_in_one_buffer() {
        let mut memory = memory();
        assert_eq!(word(&mut memory, 0x103c), Some(0x3f3e_3d3c));
        for outside in [0x103d, 0x0fff, 0x1040, 0x110d, 0xffff_ffff, 0] {
            assert_eq!(word(&mut memory, outside), None, "{outside:#x}");
            let before = memory.clone();
            assert_eq!(word(&mut Tracked::new(&before), outside), None);
            assert!(!memory.store(outside, &[1; 4]));
            assert_eq!(memory, before);
        }
    }

    #[test]
    fn a_view_sees_its_own_writes_and_the_memory_stays_as_it_was() {
        let memory = memory();
        let mut view = Tracked::new(&memory);
        assert!(view.store(0x10fe, &[1, 2, 3, 4])); // crosses a page
        assert_eq!(word(&mut view, 0x10fe), Some(0x0403_0201));
        assert_eq!(word(&mut view, 0x10fa), Some(0x0909_0909));
        assert_eq!(memory.bytes(0x10fe, 4), Some(&[9, 9, 9, 9][..]));
    }

    #[test]
    fn a_view_is_to_its_group_what_the_memory_itself_would_be() {
        // Buffers that touch, that share a page and a piece, and that reach over several pieces.
        let size = PIECE as u32;
        let places = [
            (0x80, 700),
            (0x80 + 700, 100),
            (1000, 5000),
            (size - 100, 3 * size),
            (5 * size, 9),
            (6 * size, 0),
        ];
        let buffers = places.map(|(address, count)| {
            let bytes = (0..=255).cycle().skip(address as usize % 251).take(count as usize).collect();
            Buffer { address, bytes }
        });
        let mut before = Memory::new(buffers.into()).unwrap();
        let mut state = 1u32;
        let mut random = |below: u32| {
            state = state.wrapping_mul(0x0019_660d).wrapping_add(0x3c6e_f35f);
            (state >> 8) % below
        };
        for _ in 0..20 {
            let (mut alone, mut view) = (before.clone(), Tracked::new(&before));
            for _ in 0..500 {
                let near = [0, 600, size - 200, 2 * size - 40, 5 * size - 40][random(5) as usize];
                let (address, count) = (near + random(400), random(40) as usize + 1);
                let mut bytes = [[0; 40]; 2];
                if random(4) == 0 {
                    bytes[0].fill_with(|| random(256) as u8);
                    let stored = view.store(address, &bytes[0][..count]);
                    assert_eq!(alone.store(address, &bytes[0][..count]), stored);
                    continue;
                }
                let [from_view, from_memory] = &mut bytes;
                let loaded = view.load(address, &mut from_view[..count]);
                assert_eq!(alone.load(address, &mut from_memory[..count]), loaded);
                assert_eq!(from_view, from_memory, "{count} bytes at {address:#x}");
            }
            let footprint = view.finish();
            before.commit(&[footprint]);
            assert_eq!(before, alone);
        }
    }

    #[test]
    fn commits_in_order_equal_running_in_order() {
        let mut memory = memory();
        let before = memory.clone();
        let (mut first, mut second, mut third) =
            (Tracked::new(&before), Tracked::new(&before), Tracked::new(&before));
        first.store(0x1000, &[100; 4]);
        second.store(0x1002, &[200; 4]); // overwrites part of the first, reads nothing of it
        word(&mut third, 0x1004);
        let mut written = Written::default();
        let footprints = [first, second].map(|view| {
            let footprint = view.finish();
            assert!(written.allows(&footprint));
            written.add(&footprint);
            footprint
        });
        memory.commit(&footprints);
        assert_eq!(memory.bytes(0x1000, 8), Some(&[100, 100, 200, 200, 200, 200, 6, 7][..]));
        let third = third.finish();
        assert!(third.reads() && !written.allows(&third), "it read a byte that changed");
    }

    #[test]
    fn a_run_of_bytes_has_exactly_its_bytes() {
        for start in 0..PAGE {
            for count in 0..=PAGE - start {
                let bytes: Vec<usize> = ByteSet::run(start, count).runs().flatten().collect();
                assert_eq!(bytes, (start..start + count).collect::<Vec<_>>());
            }
        }
    }

    #[test]
    fn a_commit_reaches_every_byte_of_a_set() {
        for set in
            [[0; 4], [1, 0, 0, 1 << 63], [u64::MAX; 4], [0xf0f0, !1, 0x5555_5555_5555_5555, u64::MAX >> 1]]
        {
            let bytes: Vec<usize> = ByteSet(set).runs().flatten().collect();
            let members = (0..PAGE).filter(|byte| set[byte / 64] >> (byte % 64) & 1 != 0);
            assert_eq!(bytes, members.collect::<Vec<_>>());
        }
        // Two buffers that touch, and a store to each.
        let at = |address| Buffer { address, bytes: vec![0; 4] };
        let before = Memory::new(vec![at(0x10), at(0x14)]).unwrap();
        let (mut memory, mut view) = (before.clone(), Tracked::new(&before));
        assert!(view.store(0x10, &[1, 2, 3, 4]) && view.store(0x14, &[5, 6, 7, 8]));
        memory.commit(&[view.finish()]);
        let words = [0x10, 0x14].map(|address| word(&mut memory, address));
        assert_eq!(words, [Some(0x0403_0201), Some(0x0807_0605)]);
    }

    #[test]
    fn reading_back_an_own_write_depends_on_nobody() {
        let before = memory();
        let mut memory = before.clone();
        let (mut first, mut second) = (Tracked::new(&before), Tracked::new(&before));
        first.store(0x1000, &[1; 4]);
        second.store(0x1000, &[2; 4]);
        word(&mut second, 0x1000);
        let mut written = Written::default();
        let (first, second) = (first.finish(), second.finish());
        written.add(&first);
        assert!(!second.reads() && written.allows(&second));
        memory.commit(&[first, second]);
        assert_eq!(word(&mut memory, 0x1000), Some(0x0202_0202));
    }
}
