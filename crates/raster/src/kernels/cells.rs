//! Accesses the elements of a surface by rows of lanes.

use std::sync::atomic::{AtomicU32, Ordering::Relaxed};

use reconverge_simt::vram::{self, Vram};

use super::{Group, LANES, Live, Words};
use crate::setup::Quad;
use crate::state::{SampleOrder, Surface};

/// The elements of one sample of a surface. Each row of the surface starts at a word boundary.
#[derive(Debug)]
pub(super) struct Cells<'a> {
    words: &'a [AtomicU32],
    /// Size of an element in bytes: 1, 2, 4, 8 or 16.
    pub(super) bytes: usize,
    /// Number of elements from one row to the next.
    pitch: usize,
    /// Total number of elements in memory.
    count: usize,
    rows: usize,
    /// Column and row of the element of pixel (0, 0).
    first: [usize; 2],
    /// Number of elements from one pixel to the next along each axis.
    scale: [usize; 2],
}

/// Indices of the elements of a group's lanes. A value of this type is on the stack and exists only during one step.
#[derive(Debug)]
#[allow(clippy::large_enum_variant)]
pub(super) enum Places {
    /// Two contiguous rows. The numbers are the indices of the first element of each row.
    Rows(usize, usize),
    /// Quads that are completely inside of the surface. The fields are the index of each quad's first element, the
    /// number of quads, and the number of elements from one row to the next.
    Quads([usize; LANES / 4], usize, usize),
    /// The index of the element of each lane.
    Each([usize; LANES]),
}

impl<'a> Cells<'a> {
    /// Returns the elements of a sample. Returns `None` if rows do not start at word boundaries, or if the size of an
    /// element is not supported.
    pub(super) fn new(surface: &Surface, sample: usize, bytes: usize, memory: Vram<'a>) -> Option<Cells<'a>> {
        let Surface { pitch, rows, order, .. } = *surface;
        let plane = if order == SampleOrder::Planes { sample } else { 0 };
        let start = plane.checked_mul(rows)?.checked_mul(pitch)?.checked_mul(bytes)?;
        let start = surface.start.checked_add(start)?;
        let by_words = matches!(bytes, 1 | 2 | 4 | 8 | 16) && pitch.checked_mul(bytes)?.is_multiple_of(4);
        let length = surface.end.min(memory.len()).checked_sub(start).filter(|_| by_words)?;
        // `Batches::merge` has stored the outstanding fills of the rows that the merged batch overlaps.
        let words = memory.as_stored().units(start, length / 4 * 4)?;
        let (first, scale) = (order.offset(sample), order.scale());
        Some(Cells { words, bytes, pitch, count: length / 4 * 4 / bytes, rows, first, scale })
    }

    /// Returns the index of a pixel's element, if the pixel is inside of the surface.
    #[inline(always)]
    fn place(&self, x: i32, y: i32) -> Option<usize> {
        let (Ok(x), Ok(y)) = (usize::try_from(x), usize::try_from(y)) else { return None };
        let (x, y) = (x * self.scale[0] + self.first[0], y * self.scale[1] + self.first[1]);
        let place = y * self.pitch + x;
        (x < self.pitch && y < self.rows && place < self.count).then_some(place)
    }

    /// Returns the indices of a group's elements, and those lanes of `live` that are inside of the surface. If the
    /// function must check the lanes one by one, it stores the lanes inside of the surface in `room`.
    #[inline(always)]
    pub(super) fn places<'l>(
        &self,
        group: &Group<'_>,
        live: &'l Live,
        room: &'l mut Option<Live>,
    ) -> (Places, &'l Live) {
        if let ([1, 1], [Some(upper), Some(_)]) = (self.scale, group.ends.map(|(x, y)| self.place(x, y))) {
            if group.is_row && (upper * self.bytes).is_multiple_of(4) {
                return (Places::Rows(upper, upper + self.pitch), live);
            }
            let mut firsts = [0; LANES / 4];
            for (first, quad) in firsts.iter_mut().zip(group.quads) {
                *first = quad.y as usize * self.pitch + quad.x as usize;
            }
            return (Places::Quads(firsts, group.quads.len(), self.pitch), live);
        }
        let live = room.insert(*live);
        let mut places = [0; LANES];
        for (number, &Quad { x, y, .. }) in group.quads.iter().enumerate() {
            let lanes = 4 * number..4 * number + 4;
            for (lane, at) in lanes.zip([(x, y), (x + 1, y), (x, y + 1), (x + 1, y + 1)]) {
                match self.place(at.0, at.1) {
                    Some(place) => places[lane] = place,
                    None => live.fail(lane),
                }
            }
        }
        (Places::Each(places), live)
    }

    /// Returns the words of both rows of a group. Each element is one word.
    #[inline(always)]
    fn halves(&self, upper: usize, lower: usize) -> Option<[&'a [AtomicU32; LANES / 2]; 2]> {
        Some([self.words.get(upper..)?.first_chunk()?, self.words.get(lower..)?.first_chunk()?])
    }

    /// Returns the words of both rows of a quad. Each element is one word.
    #[inline(always)]
    fn quad(&self, first: usize) -> Option<[&'a [AtomicU32; 2]; 2]> {
        Some([self.words.get(first..)?.first_chunk()?, self.words.get(first + self.pitch..)?.first_chunk()?])
    }

    /// Returns the elements of live lanes. Each element is a word. The words of other lanes are undefined.
    #[inline(always)]
    pub(super) fn load(&self, places: &Places, live: &Live) -> Words {
        let mut words = [0; LANES];
        let places = match places {
            Places::Each(places) => places,
            Places::Quads(firsts, count, _) => {
                for (words, first) in words.as_chunks_mut().0.iter_mut().zip(&firsts[..*count]) {
                    if let Some([upper, lower]) = self.quad(*first) {
                        *words = [&upper[0], &upper[1], &lower[0], &lower[1]]
                            .map(|word| u32::from_le(word.load(Relaxed)));
                    }
                }
                return words;
            }
            Places::Rows(upper, lower) => {
                let Some(halves) = self.halves(*upper, *lower) else { return words };
                let [upper, lower] = halves.map(|half| {
                    let mut words = [0; LANES / 2];
                    vram::load(half, &mut words);
                    words
                });
                for at in 0..LANES / 2 {
                    let lane = at / 2 * 4 + at % 2;
                    words[lane] = u32::from_le(upper[at]);
                    words[lane + 2] = u32::from_le(lower[at]);
                }
                return words;
            }
        };
        for lane in 0..LANES {
            if live.has(lane) {
                words[lane] = self.words.get(places[lane]).map_or(0, |word| u32::from_le(word.load(Relaxed)));
            }
        }
        words
    }

    /// Stores the elements of live lanes. Each element is a word. For [`Places::Rows`], the function also stores the
    /// words of lanes that are not live. These words are unchanged. Such a store needs no branch per lane, so it is
    /// faster. While the function stores, no other thread writes to these rows.
    #[inline(always)]
    pub(super) fn store(&self, places: &Places, live: &Live, words: &Words) {
        let places = match places {
            Places::Each(places) => places,
            Places::Quads(firsts, count, _) => {
                let lanes = words.as_chunks::<4>().0.iter().zip(live.words.as_chunks().0);
                for ((words, live), first) in lanes.zip(&firsts[..*count]) {
                    let Some([upper, lower]) = self.quad(*first) else { continue };
                    let cells = [&upper[0], &upper[1], &lower[0], &lower[1]];
                    if *live == [u32::MAX; 4] {
                        (0..4).for_each(|at| cells[at].store(words[at].to_le(), Relaxed));
                        continue;
                    }
                    for at in (0..4).filter(|at| live[*at] != 0) {
                        cells[at].store(words[at].to_le(), Relaxed);
                    }
                }
                return;
            }
            Places::Rows(upper, lower) => {
                let Some(halves) = self.halves(*upper, *lower) else { return };
                for (half, row) in [0, 2].into_iter().zip(halves) {
                    let mut stored = [0; LANES / 2];
                    if !live.all {
                        vram::load(row, &mut stored);
                    }
                    for at in 0..LANES / 2 {
                        let lane = at / 2 * 4 + at % 2 + half;
                        let is_live = live.words[lane].to_le();
                        stored[at] = words[lane].to_le() & is_live | stored[at] & !is_live;
                    }
                    vram::store(row, &stored);
                }
                return;
            }
        };
        for lane in 0..LANES {
            if live.has(lane)
                && let Some(word) = self.words.get(places[lane])
            {
                word.store(words[lane].to_le(), Relaxed);
            }
        }
    }

    /// Returns the elements of live lanes. An element has two or four bytes.
    #[inline(always)]
    pub(super) fn load_word(&self, places: &Places, live: &Live) -> Words {
        match self.bytes {
            2 => self.load_parts::<2>(places, live),
            _ => self.load(places, live),
        }
    }

    /// Returns `count` words, starting at word `first`.
    #[inline(always)]
    fn half_row(&self, first: usize, count: usize) -> Option<&'a [AtomicU32]> {
        self.words.get(first..)?.get(..count)
    }

    /// Returns `COUNT` words, starting at an element.
    #[inline(always)]
    fn part<const COUNT: usize>(&self, element: usize) -> Option<&'a [AtomicU32; COUNT]> {
        self.words.get(element * self.bytes / 4..)?.first_chunk()
    }

    /// Returns the elements of live lanes in `words`. An element has `N` words.
    #[inline(always)]
    pub(super) fn load_many<const N: usize>(&self, places: &Places, live: &Live, words: &mut [Words; N]) {
        match places {
            Places::Rows(upper, lower) => {
                for (half, first) in [(0, *upper), (2, *lower)] {
                    let Some(row) = self.half_row(first * N, N * LANES / 2) else { return };
                    let mut stored = [0; MOST_IN_A_ROW];
                    let stored = &mut stored[..N * LANES / 2];
                    vram::load(row, stored);
                    for (at, element) in stored.as_chunks::<N>().0.iter().enumerate() {
                        for (words, word) in words.iter_mut().zip(element) {
                            words[at / 2 * 4 + at % 2 + half] = u32::from_le(*word);
                        }
                    }
                }
            }
            _ => {
                for lane in (0..LANES).filter(|lane| live.has(*lane)) {
                    let Some(element) = self.part::<N>(places.of(lane)) else { continue };
                    for (words, word) in words.iter_mut().zip(element) {
                        words[lane] = u32::from_le(word.load(Relaxed));
                    }
                }
            }
        }
    }

    /// Stores the elements of live lanes. An element has `N` words.
    #[inline(always)]
    pub(super) fn store_many<const N: usize>(&self, places: &Places, live: &Live, words: &[Words; N]) {
        match places {
            Places::Rows(upper, lower) => {
                for (half, first) in [(0, *upper), (2, *lower)] {
                    let Some(row) = self.half_row(first * N, N * LANES / 2) else { return };
                    let mut stored = [0; MOST_IN_A_ROW];
                    let stored = &mut stored[..N * LANES / 2];
                    if !live.all {
                        vram::load(row, stored);
                    }
                    for (at, element) in stored.as_chunks_mut::<N>().0.iter_mut().enumerate() {
                        let lane = at / 2 * 4 + at % 2 + half;
                        let is_live = live.words[lane].to_le();
                        for (words, word) in words.iter().zip(element) {
                            *word = words[lane].to_le() & is_live | *word & !is_live;
                        }
                    }
                    vram::store(row, stored);
                }
            }
            _ => {
                for lane in (0..LANES).filter(|lane| live.has(*lane)) {
                    let Some(element) = self.part::<N>(places.of(lane)) else { continue };
                    for (words, word) in words.iter().zip(element) {
                        word.store(words[lane].to_le(), Relaxed);
                    }
                }
            }
        }
    }

    /// Returns the elements of live lanes. An element has `BYTES` bytes: one or two.
    #[inline(always)]
    pub(super) fn load_parts<const BYTES: usize>(&self, places: &Places, live: &Live) -> Words {
        let mut words = [0; LANES];
        let (in_word, mask) = (4 / BYTES, u32::MAX >> (32 - 8 * BYTES));
        match places {
            Places::Rows(upper, lower) => {
                for (half, first) in [(0, *upper), (2, *lower)] {
                    let Some(row) = self.half_row(first / in_word, LANES / 2 / in_word) else { return words };
                    let mut stored = [0; LANES / 4];
                    vram::load(row, &mut stored[..row.len()]);
                    for at in 0..LANES / 2 {
                        let word = u32::from_le(stored[at / in_word]) >> (at % in_word * 8 * BYTES);
                        words[at / 2 * 4 + at % 2 + half] = word & mask;
                    }
                }
            }
            _ => {
                for lane in (0..LANES).filter(|lane| live.has(*lane)) {
                    let place = places.of(lane);
                    let Some(word) = self.words.get(place / in_word) else { continue };
                    let first = place % in_word * 8 * BYTES;
                    words[lane] = u32::from_le(word.load(Relaxed)) >> first & mask;
                }
            }
        }
        words
    }

    /// Stores the elements of live lanes. An element has `BYTES` bytes: one or two. Other threads may store to the
    /// remaining bytes of the word at the same time. A store of an element preserves these bytes.
    #[inline(always)]
    pub(super) fn store_parts<const BYTES: usize>(&self, places: &Places, live: &Live, words: &Words) {
        let (in_word, mask) = (4 / BYTES, u32::MAX >> (32 - 8 * BYTES));
        match places {
            Places::Rows(upper, lower) if live.all => {
                for (half, first) in [(0, *upper), (2, *lower)] {
                    let Some(row) = self.half_row(first / in_word, LANES / 2 / in_word) else { return };
                    let mut stored = [0; LANES / 4];
                    for at in 0..LANES / 2 {
                        let word = words[at / 2 * 4 + at % 2 + half] & mask;
                        stored[at / in_word] |= word << (at % in_word * 8 * BYTES);
                    }
                    stored.iter_mut().for_each(|word| *word = word.to_le());
                    vram::store(row, &stored[..row.len()]);
                }
            }
            _ => {
                for lane in (0..LANES).filter(|lane| live.has(*lane)) {
                    let place = places.of(lane);
                    let Some(word) = self.words.get(place / in_word) else { continue };
                    let first = place % in_word * 8 * BYTES;
                    let (bits, others) = (words[lane] << first, !(mask << first));
                    let _ = word.fetch_update(Relaxed, Relaxed, |old| {
                        Some((u32::from_le(old) & others | bits & !others).to_le())
                    });
                }
            }
        }
    }
}

/// Maximum number of words in one row of a group. The row then has 32 elements of 16 bytes.
const MOST_IN_A_ROW: usize = LANES / 2 * 4;

impl Places {
    /// Returns the index of a lane's element.
    #[inline(always)]
    fn of(&self, lane: usize) -> usize {
        match self {
            Places::Each(places) => places[lane],
            Places::Quads(firsts, _, pitch) => firsts[lane / 4] + (lane >> 1 & 1) * pitch + lane % 2,
            Places::Rows(upper, lower) => {
                let first = if lane & 2 == 0 { *upper } else { *lower };
                first + lane / 4 * 2 + lane % 2
            }
        }
    }
}
