//! A view of the memory for one of several groups that run at the same time ([`Tracked`]). A [`Footprint`] records the
//! group's accesses for the commit.
//!
//! A buffer is divided into *chunks* of 256 bytes or more. A view accesses the bytes of each chunk in one of two ways:
//!
//! * **If no store of the group has reached the chunk**, loads read the memory directly. For each chunk that a load
//!   reads, the view only sets a bit. If a launch only reads a buffer, these bits are the only cost. Compiled code may
//!   also read all bytes of a buffer without these bits ([`Store::whole`]). The view then counts all chunks of the
//!   buffer as read. The first store of the group to such a buffer ends these direct reads.
//! * **If a store has reached the chunk**, the chunk is *paged*: loads and stores use the [`Shadow`] of the view. The
//!   shadow has as many bytes as the buffer. On the first access, the operating system provides zeroed memory for the
//!   shadow. A *page* has 256 bytes. Before the first use of a page of the shadow, the view copies the page from the
//!   buffer. A page has two bits per word. The first bit is set if the group read the word before writing it. The
//!   second bit is set if the group wrote the word. A page with stores of less than a word also has one bit per byte.
//!   If lanes access contiguous words, the view sets the bits of all these words by two shifts. For other accesses, the
//!   view sets the bits lane by lane.
//!
//! Two elements have the same distance in the shadow as in the memory. So the same code accesses the bytes of the
//! shadow and the bytes of the memory.
//!
//! A [`Footprint`] records the accesses of one group. The verdict is [`Verdict::Stale`] if the group read words from
//! pages and an earlier group has since written these words. The verdict is [`Verdict::Unknown`] if the group read a
//! *chunk* directly and an earlier group has since written to this chunk. In both cases, the group runs again. After an
//! unknown verdict, the [`Plan`] also makes the chunk paged for all later groups. If a second chunk of the same buffer
//! then causes an unknown verdict, the plan makes the whole buffer paged. Later verdicts are then exact.

use std::collections::{BTreeMap, HashMap};
use std::hash::{BuildHasherDefault, Hasher};
use std::mem::take;
use std::ops::Range;
use std::sync::Mutex;

use rayon::prelude::*;
use reconverge_guarded::{Guarded, Placement};

use super::{Buffer, Memory, Picked, Store};
use crate::mask::members;
use crate::{Identity, pool};

/// Size of a page in bytes.
const PAGE: usize = 256;

/// Minimum size, in bytes, of a large shadow.
const LARGE: usize = 1 << 18;

/// Size of a word in bytes. A set of words of a page has one bit per word.
const WORD: usize = 4;

/// Number of pages in a piece. Each piece is committed by one thread. A piece has many pages, so that the cost of
/// finding pieces is small.
const PIECE: usize = 64;

/// Maximum number of chunks of a buffer. A limit is necessary because an access that spans the whole buffer scans the
/// bits of all chunks.
const CHUNKS: usize = 512;

/// Position of a buffer's pages among the pages of all buffers. An offset in a buffer is relative to the start of the
/// buffer's first page. The address of this page is a multiple of [`PAGE`].
#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct Layout {
    address: u32,
    /// Size of the buffer in bytes.
    len: usize,
    /// Number of bytes of the first page that precede the buffer.
    lead: usize,
    /// Number of the buffer's first page, a multiple of [`PIECE`].
    first_page: usize,
    /// Binary logarithm of the size of a chunk in bytes.
    shift: u32,
}

impl Layout {
    /// Returns the layouts of all buffers.
    fn of(memory: &Memory) -> Vec<Layout> {
        let mut first_page = 0;
        let layout = |Buffer { address, bytes }: &Buffer| {
            let lead = *address as usize % PAGE;
            let shift = (lead + bytes.len()).div_ceil(CHUNKS).max(PAGE).next_power_of_two().ilog2();
            let layout = Layout { address: *address, len: bytes.len(), lead, first_page, shift };
            first_page += layout.pages().next_multiple_of(PIECE);
            layout
        };
        memory.buffers().iter().map(layout).collect()
    }

    fn pages(&self) -> usize {
        (self.lead + self.len).div_ceil(PAGE)
    }

    /// Returns the number of 64-bit words that a set of the buffer's chunks occupies.
    fn chunk_words(&self) -> usize {
        ((self.lead + self.len) >> self.shift) / 64 + 1
    }
}

/// Returns a word in which the bits from `first` to `last`, both inclusive, are set.
#[inline(always)]
fn between(first: usize, last: usize) -> u64 {
    u64::MAX << (first & 63) & u64::MAX >> (63 - (last & 63))
}

/// The bits `first` to `last` of a set are spread over words. Calls `act` for each of these words. The arguments of
/// `act` are the word, and a mask of those bits that are in the word.
#[inline(always)]
fn words_of(set: &mut [u64], first: usize, last: usize, mut act: impl FnMut(&mut u64, u64)) {
    let (low, high) = (first / 64, last / 64);
    if low == high {
        return act(&mut set[low], between(first, last));
    }
    act(&mut set[low], between(first, 63));
    set[low + 1..high].iter_mut().for_each(|word| act(word, u64::MAX));
    act(&mut set[high], between(0, last));
}

#[inline(always)]
fn insert(set: &mut [u64], first: usize, last: usize) {
    words_of(set, first, last, |word, bits| *word |= bits);
}

#[inline(always)]
fn has_any(set: &mut [u64], first: usize, last: usize) -> bool {
    let mut found = 0;
    words_of(set, first, last, |word, bits| found |= *word & bits);
    found != 0
}

#[inline(always)]
fn has_all(set: &mut [u64], first: usize, last: usize) -> bool {
    let mut missing = 0;
    words_of(set, first, last, |word, bits| missing |= !*word & bits);
    missing == 0
}

/// Returns the ranges of contiguous set bits.
fn runs(mut bits: u64) -> impl Iterator<Item = Range<usize>> {
    std::iter::from_fn(move || {
        let start = bits.trailing_zeros();
        let count = bits.checked_shr(start)?.trailing_ones();
        bits &= u64::MAX.checked_shl(start + count).unwrap_or(0);
        Some(start as usize..(start + count) as usize)
    })
}

/// A buffer in the form in which a group sees the buffer.
#[derive(Clone, Debug, Default)]
struct Area {
    layout: Layout,
    /// The paged chunks, as a set of bits.
    paged: Vec<u64>,
    /// The chunks that the group has read directly from the memory, as a set of bits.
    read: Vec<u64>,
    /// Whether the group may read all bytes of the buffer directly.
    whole: bool,
    /// Bytes of the pages. If the buffer has no page, this field and the fields after it are empty.
    bytes: Guarded<u8>,
    /// Set of the pages that have been copied from the memory, one bit per page.
    open: Vec<u64>,
    /// Two sets of words per page. The first set has the words that the group read before writing them. The second set
    /// has the words that the group wrote.
    marks: Guarded<[u64; 2]>,
    /// The bits of each page, one bit per byte. A bit is set if the group wrote the byte, but did not write the whole
    /// word of the byte. The field is empty until the first such write.
    partial: Vec<[u64; PAGE / 64]>,
}

impl Area {
    fn new(layout: &Layout) -> Area {
        let none = vec![0; layout.chunk_words()];
        Area { layout: layout.clone(), paged: none.clone(), read: none, ..Area::default() }
    }

    /// Opens the pages that contain the picked bytes of a range. Marks the picked bytes as read or written. Returns the
    /// bytes of the whole range. `at` is the offset of the range. The function appends the numbers of the newly opened
    /// pages to `opened`.
    #[inline(always)]
    fn bytes<const READ: bool, const WRITE: bool>(
        &mut self,
        from: &[u8],
        opened: &mut Vec<u32>,
        at: usize,
        count: usize,
        picked: Picked<'_>,
    ) -> &mut [u8] {
        if self.bytes.is_empty() {
            self.make_room();
        }
        let (first, last) = (at / PAGE, (at + count - 1) / PAGE);
        let near = last - first < 4 * 64;
        if !near || !has_all(&mut self.open, first, last) {
            match picked {
                Picked::Each(offsets, bits, size) => {
                    for lane in members(bits.into()) {
                        let at = at + offsets[lane] as usize;
                        self.open(from, opened, at / PAGE, (at + size as usize - 1) / PAGE);
                    }
                }
                Picked::All | Picked::Row(_) => self.open(from, opened, first, last),
            }
        }
        let aligned = at.is_multiple_of(WORD);
        match picked {
            Picked::Row(bits) if aligned => self.mark_words::<READ, WRITE>(at, bits.into()),
            Picked::Row(bits) => {
                for lane in members(bits.into()) {
                    self.mark_bytes::<READ, WRITE>(at + WORD * lane, WORD);
                }
            }
            Picked::All if aligned && matches!(count, 4 | 8 | 16) => {
                self.mark_words::<READ, WRITE>(at, (1 << (count / WORD)) - 1);
            }
            Picked::All => self.mark_bytes::<READ, WRITE>(at, count),
            Picked::Each(offsets, bits, size @ (4 | 8 | 16)) => {
                let words = (1 << (size as usize / WORD)) - 1;
                for lane in members(bits.into()) {
                    let at = at + offsets[lane] as usize;
                    match at.is_multiple_of(WORD) {
                        true => self.mark_words::<READ, WRITE>(at, words),
                        false => self.mark_bytes::<READ, WRITE>(at, size as usize),
                    }
                }
            }
            Picked::Each(offsets, bits, size) => {
                for lane in members(bits.into()) {
                    self.mark_bytes::<READ, WRITE>(at + offsets[lane] as usize, size as usize);
                }
            }
        }
        &mut self.bytes[at..at + count]
    }

    #[cold]
    fn make_room(&mut self) {
        let pages = self.layout.pages();
        // A group touches few pages of a large shadow, so the system provides these pages on demand. On the heap, the
        // allocator would often reuse memory and clear the whole shadow: 0.2 ms for 4 MB, or 1.6 ms for new memory.
        let placement = if pages * PAGE < LARGE { Placement::Heap } else { Placement::AtEnd };
        self.bytes = Guarded::new(pages * PAGE, placement);
        self.open = vec![0; pages / 64 + 1];
        self.marks = Guarded::new(pages, placement);
    }

    /// Copies the pages from `first` to `last` from the buffer. Skips pages that have already been copied.
    #[inline(never)]
    fn open(&mut self, from: &[u8], opened: &mut Vec<u32>, first: usize, last: usize) {
        for page in first..=last {
            if self.open[page / 64] >> (page % 64) & 1 != 0 {
                continue;
            }
            self.open[page / 64] |= 1 << (page % 64);
            opened.push((self.layout.first_page + page) as u32);
            let lead = self.layout.lead;
            let start = (page * PAGE).max(lead);
            let end = ((page + 1) * PAGE).min(lead + from.len());
            self.bytes[start..end].copy_from_slice(&from[start - lead..end - lead]);
        }
    }

    /// Marks words as read or written. `at` is a multiple of [`WORD`]. Bit n of `words` represents word n, counted from
    /// `at`. There are at most as many words as in a page.
    #[inline(always)]
    fn mark_words<const READ: bool, const WRITE: bool>(&mut self, at: usize, words: u64) {
        let (page, word) = (at / PAGE, at / WORD % 64);
        self.mark::<READ, WRITE>(page, words << word);
        let rest = words.checked_shr(64 - word as u32).unwrap_or(0);
        if rest != 0 {
            self.mark::<READ, WRITE>(page + 1, rest);
        }
    }

    #[inline(always)]
    fn mark<const READ: bool, const WRITE: bool>(&mut self, page: usize, words: u64) {
        let [read, written] = &mut self.marks[page];
        if READ {
            *read |= words & !*written;
        }
        if WRITE {
            *written |= words;
        }
    }

    /// Marks any bytes as read or written. If a load reads only a part of a word, the function marks the whole word.
    #[inline(never)]
    fn mark_bytes<const READ: bool, const WRITE: bool>(&mut self, at: usize, count: usize) {
        let end = at + count;
        let mut at = at;
        while at < end {
            let (page, offset) = (at / PAGE, at % PAGE);
            let part = offset..(PAGE).min(offset + end - at);
            at += part.len();
            if READ {
                self.mark::<true, false>(page, between(part.start / WORD, (part.end - 1) / WORD));
            }
            if WRITE {
                let whole = part.start.div_ceil(WORD)..part.end / WORD;
                if !whole.is_empty() {
                    self.mark::<false, true>(page, between(whole.start, whole.end - 1));
                }
                if !part.start.is_multiple_of(WORD) || !part.end.is_multiple_of(WORD) {
                    if self.partial.is_empty() {
                        self.partial = vec![[0; PAGE / 64]; self.marks.len()];
                    }
                    insert(&mut self.partial[page], part.start, part.end - 1);
                }
            }
        }
    }

    /// Marks the chunks that contain the picked bytes as paged. `at` is the offset of the first byte of the range.
    #[inline(always)]
    fn page(&mut self, at: usize, count: usize, picked: Picked<'_>) {
        let shift = self.layout.shift;
        let (first, last) = (at >> shift, (at + count - 1) >> shift);
        if has_all(&mut self.paged, first, last) {
            return;
        }
        match picked {
            Picked::Each(offsets, bits, size) => {
                for lane in members(bits.into()) {
                    let at = at + offsets[lane] as usize;
                    insert(&mut self.paged, at >> shift, (at + size as usize - 1) >> shift);
                }
            }
            Picked::All | Picked::Row(_) => insert(&mut self.paged, first, last),
        }
    }
}

/// The allocation of a view. A later view can reuse the allocation.
#[derive(Clone, Debug, Default)]
pub struct Shadow {
    areas: Vec<Area>,
    /// Numbers of the open pages of all areas.
    opened: Vec<u32>,
}

/// Shadows of earlier launches, for later launches. The first access to a new shadow of 4 MB takes about 0.2 ms.
static KEPT: Mutex<Vec<Shadow>> = Mutex::new(Vec::new());

/// Maximum number of bytes of all shadows in [`KEPT`].
const KEPT_BYTES: usize = 64 << 20;

impl Shadow {
    /// Returns a shadow of an earlier launch. If no launch has kept a shadow, returns an empty shadow.
    pub fn kept() -> Shadow {
        KEPT.try_lock().ok().and_then(|mut kept| kept.pop()).unwrap_or_default()
    }

    /// Keeps the shadow for a later launch, unless the kept shadows would become too large.
    pub fn keep(self) {
        let size = |shadow: &Shadow| shadow.areas.iter().map(|area| area.bytes.len()).sum::<usize>();
        // If a thread held the lock during a fork, no thread of the child process ever releases the lock. So this
        // function does not wait.
        if let Ok(mut kept) = KEPT.try_lock()
            && kept.iter().map(size).sum::<usize>() + size(&self) <= KEPT_BYTES
        {
            kept.push(self);
        }
    }
}

/// Memory as a group sees it while other groups run. The memory has its contents from the start of the group, changed
/// only by the stores of this group.
#[derive(Clone, Debug)]
pub struct Tracked<'a> {
    memory: &'a Memory,
    shadow: Shadow,
    /// Index of the buffer of the latest access.
    last: usize,
    /// Identity of the buffers that the group may read directly.
    layout: Identity,
}

impl<'a> Tracked<'a> {
    /// Returns a view of `memory` in which nothing has been read or written.
    pub fn new(memory: &'a Memory) -> Self {
        Self::with(memory, &Plan::new(memory), Shadow::default())
    }

    /// Returns a view that uses the allocation of an earlier view. If this allocation is not for the buffers of
    /// `memory`, the view gets a new allocation.
    pub fn with(memory: &'a Memory, plan: &Plan, mut shadow: Shadow) -> Self {
        if !shadow.areas.iter().map(|area| &area.layout).eq(&plan.layouts) {
            shadow.areas = plan.layouts.iter().map(Area::new).collect();
        }
        for (area, paged) in shadow.areas.iter_mut().zip(&plan.paged) {
            area.paged.copy_from_slice(paged);
            area.read.fill(0);
            area.whole = false;
        }
        Tracked { memory, shadow, last: 0, layout: Identity::new() }
    }

    /// Returns the accesses of the view's group, and the allocation for another view.
    pub fn finish(mut self) -> (Footprint, Shadow) {
        let Shadow { areas, opened } = &mut self.shadow;
        let mut footprint = Footprint { pages: Vec::with_capacity(opened.len()), ..Footprint::default() };
        footprint.read = areas.iter().flat_map(|area| &area.read).copied().collect();
        footprint.wrote = vec![0; footprint.read.len()];
        let (mut which, mut chunks) = (usize::MAX, 0);
        for number in opened.drain(..) {
            let number = number as usize;
            let holds = |area: &Area| {
                let first = area.layout.first_page;
                (first..first + area.layout.pages()).contains(&number)
            };
            if !areas.get(which).is_some_and(holds) {
                which = areas.iter().position(holds).expect("an area has the page");
                chunks = 64 * areas[..which].iter().map(|area| area.read.len()).sum::<usize>();
            }
            let area = &mut areas[which];
            let page = number - area.layout.first_page;
            area.open[page / 64] &= !(1 << (page % 64));
            let [read, written] = take(&mut area.marks[page]);
            let partial = area.partial.get_mut(page).map(take).unwrap_or_default();
            if read != 0 {
                footprint.words.push((number as u32, read));
            }
            if written == 0 && partial == [0; PAGE / 64] {
                continue;
            }
            let chunk = chunks + ((page * PAGE) >> area.layout.shift);
            footprint.wrote[chunk / 64] |= 1 << (chunk % 64);
            let mut data = [0; PAGE];
            data.copy_from_slice(&area.bytes[page * PAGE..][..PAGE]);
            footprint.add(Page { number: number as u32, written, partial, data });
        }
        (footprint, self.shadow)
    }

    /// Returns the index of the buffer that contains all `count` bytes, and the offset of the first of these bytes in
    /// that buffer.
    #[inline(always)]
    fn find(&mut self, address: u32, count: usize) -> Option<(usize, usize)> {
        let inside = |area: &Area| {
            let offset = address.wrapping_sub(area.layout.address) as usize;
            (offset < area.layout.len && count <= area.layout.len - offset).then_some(offset)
        };
        match self.shadow.areas.get(self.last).and_then(inside) {
            Some(offset) => Some((self.last, offset)),
            None => {
                let after = self.shadow.areas.partition_point(|area| area.layout.address <= address);
                self.last = after.checked_sub(1)?;
                inside(&self.shadow.areas[self.last]).map(|offset| (self.last, offset))
            }
        }
    }

    #[inline(always)]
    fn written<const READ: bool>(
        &mut self,
        address: u32,
        count: usize,
        picked: Picked<'_>,
    ) -> Option<&mut [u8]> {
        let (which, offset) = self.find(address, count)?;
        let from = &self.memory.buffers[which].bytes;
        let Shadow { areas, opened } = &mut self.shadow;
        let area = &mut areas[which];
        let at = area.layout.lead + offset;
        area.page(at, count, picked);
        if take(&mut area.whole) {
            self.layout = Identity::new();
        }
        Some(area.bytes::<READ, true>(from, opened, at, count, picked))
    }
}

impl Store for Tracked<'_> {
    #[inline]
    fn load(&mut self, address: u32, into: &mut [u8]) -> bool {
        if into.is_empty() {
            return self.memory.bytes(address, 0).is_some();
        }
        self.reading(address, into.len(), Picked::All).map(|bytes| into.copy_from_slice(bytes)).is_some()
    }

    #[inline]
    fn store(&mut self, address: u32, bytes: &[u8]) -> bool {
        if bytes.is_empty() {
            return self.memory.bytes(address, 0).is_some();
        }
        self.writing(address, bytes.len(), Picked::All).map(|place| place.copy_from_slice(bytes)).is_some()
    }

    #[inline]
    fn reading(&mut self, address: u32, count: usize, picked: Picked<'_>) -> Option<&[u8]> {
        let (which, offset) = self.find(address, count)?;
        let from = &self.memory.buffers[which].bytes;
        let Shadow { areas, opened } = &mut self.shadow;
        let area = &mut areas[which];
        let at = area.layout.lead + offset;
        let (first, last) = (at >> area.layout.shift, (at + count - 1) >> area.layout.shift);
        if !has_any(&mut area.paged, first, last) {
            insert(&mut area.read, first, last);
            return Some(&from[offset..offset + count]);
        }
        Some(area.bytes::<true, false>(from, opened, at, count, picked))
    }

    fn whole(&mut self, address: u32, writes: bool) -> Option<(u32, *mut [u8])> {
        let (which, _) = self.find(address, 1).filter(|_| !writes)?;
        let area = &mut self.shadow.areas[which];
        let last = (area.layout.lead + area.layout.len - 1) >> area.layout.shift;
        if has_any(&mut area.paged, 0, last) {
            return None;
        }
        insert(&mut area.read, 0, last);
        area.whole = true;
        let bytes: *const [u8] = &raw const *self.memory.buffers[which].bytes;
        Some((area.layout.address, bytes.cast_mut()))
    }

    #[inline]
    fn layout(&self) -> Option<Identity> {
        Some(self.layout)
    }

    #[inline]
    fn writing(&mut self, address: u32, count: usize, picked: Picked<'_>) -> Option<&mut [u8]> {
        self.written::<false>(address, count, picked)
    }

    #[inline]
    fn changing(&mut self, address: u32, count: usize, picked: Picked<'_>) -> Option<&mut [u8]> {
        self.written::<true>(address, count, picked)
    }
}

/// A page that a group has written to.
#[derive(Clone, Debug)]
struct Page {
    number: u32,
    /// The words that were written as a whole, one bit per word.
    written: u64,
    /// One bit per byte. A set bit states that the group wrote the byte, but not the whole word of the byte.
    partial: [u64; PAGE / 64],
    data: [u8; PAGE],
}

impl Page {
    /// Writes the stores of the page to a part of the memory. `start` is the offset of that part in the page's buffer.
    fn write(&self, layout: &Layout, start: usize, bytes: &mut [u8]) {
        let page = (self.number as usize - layout.first_page) * PAGE;
        let mut copy = |run: Range<usize>| {
            bytes[page + run.start - start..page + run.end - start].copy_from_slice(&self.data[run]);
        };
        runs(self.written).for_each(|run| copy(WORD * run.start..WORD * run.end));
        for (number, bits) in self.partial.iter().enumerate() {
            runs(*bits).for_each(|run| copy(64 * number + run.start..64 * number + run.end));
        }
    }

    /// Returns the words that were written as a whole or in part.
    fn words(&self) -> u64 {
        let bytes =
            self.partial.iter().enumerate().flat_map(|(number, bits)| {
                members(*bits).map(move |byte| 1 << ((64 * number + byte) / WORD))
            });
        bytes.fold(self.written, |words, word: u64| words | word)
    }
}

/// The recorded accesses of a group. The record has no reference to the memory on which the group ran.
#[derive(Clone, Debug, Default)]
pub struct Footprint {
    pages: Vec<Page>,
    /// Ranges of `pages`, each with the number of a piece of the memory. All pages of a range belong to this piece.
    pieces: Vec<(usize, Range<usize>)>,
    /// The words that were read in pages, by page number.
    words: Vec<(u32, u64)>,
    /// The chunks that the group read directly from the memory. All buffers share this set.
    read: Vec<u64>,
    /// The chunks that the group wrote to. All buffers share this set.
    wrote: Vec<u64>,
}

impl Footprint {
    /// Returns the number of pages that the group has written to.
    pub fn pages(&self) -> usize {
        self.pages.len()
    }

    /// Adds a page to the footprint. A commit needs the ranges `pieces` of hundreds of footprints. The ranges are
    /// computed here and not in the commit, because here the page is still in the processor's cache.
    fn add(&mut self, page: Page) {
        let (piece, place) = (page.number as usize / PIECE, self.pages.len());
        match self.pieces.last_mut() {
            Some((last, pages)) if *last == piece => pages.end += 1,
            _ => self.pieces.push((piece, place..place + 1)),
        }
        self.pages.push(page);
    }
}

impl Memory {
    /// Writes the stores of groups to the memory, in the order of the groups. Different threads write different pieces
    /// of the memory. The threads belong to the pool of [`pool::install`].
    pub fn commit(&mut self, footprints: &[Footprint]) {
        let mut by_piece = BTreeMap::<usize, Vec<&[Page]>>::new();
        for footprint in footprints {
            for (piece, pages) in &footprint.pieces {
                by_piece.entry(*piece).or_default().push(&footprint.pages[pages.clone()]);
            }
        }
        let layouts = Layout::of(self);
        let mut parts = Vec::with_capacity(by_piece.len());
        for (layout, buffer) in layouts.iter().zip(&mut self.buffers) {
            let first = layout.first_page / PIECE;
            let (mut place, end) = (layout.lead, layout.lead + layout.len);
            let mut left = &mut buffer.bytes[..];
            for (piece, pages) in by_piece.range(first..first + layout.pages().div_ceil(PIECE)) {
                let piece = (piece - first) * PIECE * PAGE;
                let part = piece.max(place)..end.min(piece + PIECE * PAGE);
                left = &mut left[part.start - place..];
                let (bytes, behind) = left.split_at_mut(part.len());
                parts.push((layout, part.start, bytes, pages));
                (place, left) = (part.end, behind);
            }
        }
        let write = |(layout, start, bytes, pages): (&Layout, usize, &mut [u8], &Vec<&[Page]>)| {
            pages.iter().copied().flatten().for_each(|page| page.write(layout, start, bytes));
        };
        // Most commits are small. For a small commit, starting a second thread takes more time than the thread saves.
        match parts.len() {
            0 | 1 => parts.into_iter().for_each(write),
            _ if pool::threads() == 1 => parts.into_iter().for_each(write),
            _ => pool::install(|| parts.into_par_iter().for_each(write)),
        }
    }
}

/// A cheap hash for page numbers. The hash may be weak, because no result depends on the order of the map.
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
        // The map uses the low bits of the hash for the bucket, and the high bits for a tag. In the rotated product,
        // the low bits and the high bits are well distributed.
        self.0 = u64::from(number).wrapping_mul(0x9e37_79b9_7f4a_7c15).rotate_left(20);
    }
}

/// Whether a group read the same values as in launch order.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// The group read the same values as in launch order.
    Right,
    /// An earlier group wrote to a chunk that this group read. So this group may have read other values than in launch
    /// order.
    Unknown,
    /// The group read a word, and an earlier group has since written at least a part of this word.
    Stale,
}

/// Stores of earlier groups. The views of later groups do not contain these stores.
#[derive(Clone, Debug, Default)]
pub struct Written {
    pages: HashMap<u32, u64, BuildHasherDefault<PageHasher>>,
    chunks: Vec<u64>,
    /// Whether only the chunks are recorded, without their pages. The chunks are sufficient if no group has read from
    /// pages.
    coarse: bool,
}

impl Written {
    /// Returns an empty record. Later, only the footprints in `footprints` may be compared with this record.
    pub fn before<'f>(footprints: impl IntoIterator<Item = &'f Footprint>) -> Written {
        let coarse = footprints.into_iter().all(|footprint| footprint.words.is_empty());
        Written { coarse, ..Written::default() }
    }

    /// Returns whether a group read the same values as in launch order. `footprint` is the footprint of this group.
    pub fn judge(&self, footprint: &Footprint) -> Verdict {
        let stale = |(page, words): &(u32, u64)| self.pages.get(page).is_some_and(|set| set & words != 0);
        if footprint.words.iter().any(stale) {
            return Verdict::Stale;
        }
        let meets = self.chunks.iter().zip(&footprint.read).any(|(wrote, read)| wrote & read != 0);
        if meets { Verdict::Unknown } else { Verdict::Right }
    }

    /// Adds the stores of a group to the record.
    pub fn add(&mut self, footprint: &Footprint) {
        self.chunks.resize(footprint.wrote.len(), 0);
        self.chunks.iter_mut().zip(&footprint.wrote).for_each(|(all, wrote)| *all |= wrote);
        if !self.coarse {
            for page in &footprint.pages {
                *self.pages.entry(page.number).or_default() |= page.words();
            }
        }
    }
}

/// Chunks that some groups read and other groups write. For all later groups of a launch, these chunks are paged.
#[derive(Clone, Debug)]
pub struct Plan {
    layouts: Vec<Layout>,
    /// Paged chunks of each buffer.
    paged: Vec<Vec<u64>>,
    /// For each buffer, whether a read conflicted with a write.
    clashed: Vec<bool>,
}

impl Plan {
    /// Returns a plan without paged chunks, for the start of a launch.
    pub fn new(memory: &Memory) -> Plan {
        let layouts = Layout::of(memory);
        let paged = layouts.iter().map(|layout| vec![0; layout.chunk_words()]).collect();
        Plan { clashed: vec![false; layouts.len()], layouts, paged }
    }

    /// Updates the plan after the verdict on this footprint was [`Verdict::Unknown`]. `written` are the stores of earlier
    /// groups.
    pub fn learn(&mut self, written: &Written, footprint: &Footprint) {
        let mut clashes = written.chunks.iter().zip(&footprint.read).map(|(wrote, read)| wrote & read);
        for (paged, clashed) in self.paged.iter_mut().zip(&mut self.clashed) {
            let mut clash = false;
            for (paged, new) in paged.iter_mut().zip(&mut clashes) {
                clash |= new & !*paged != 0;
                *paged |= new;
            }
            if clash && std::mem::replace(clashed, true) {
                paged.fill(u64::MAX);
            }
        }
    }
}
