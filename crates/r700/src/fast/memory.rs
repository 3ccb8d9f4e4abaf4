//! Runs vertex fetches, memory reads, accesses to the local data share, exports and memory exports on whole rows.
//!
//! If an access is out of bounds, the functions change nothing, and the reference interpreter runs the instruction.

use reconverge_simt::Mask;
use reconverge_simt::mask::members;
use reconverge_simt::wide::{Wide, spread};

use super::fetch::Targets;
use super::lanes::Place;
use super::lower::{Chosen, Conversion, Exported, Exports, Fetching, MemoryReads, Stores, Vertex};
use super::runner::Runner;
use crate::chip::LANES;
use crate::format::{convert_rows, swap_rows, swaps_all};
use crate::memory::{BANK_DWORDS, VertexBuffer};
use crate::reference::fetch::element;
use crate::wave::{Lanes, Values, Wave};
use crate::words::{DsrMux, MemDsrDword1, MemDswDword1};

impl Runner<'_> {
    // The methods that run instructions of fetch clauses.

    /// Runs a vertex fetch. For elements outside the buffer, the function returns the same data as the reference
    /// interpreter.
    #[inline(always)]
    pub(super) fn vertex<W: Wide>(
        &mut self,
        wide: W,
        wave: &Wave,
        fetching: &Fetching,
        vertex: &Vertex,
        lanes: Mask,
    ) -> bool {
        let (Some([index, ..]), Some(dst)) =
            (self.places(wave, &fetching.src[0]), self.targets(wave, &fetching.dst[0]))
        else {
            return false;
        };
        let launch = &*wave.launch;
        let resources = launch.environment.bound(vertex.bound.alternate);
        let buffer = &resources.vertex_buffers[&vertex.bound.id];
        let mut values = [[0; LANES]; 4];
        fetch_rows(vertex, buffer, self.lanes.row(index), lanes.0, wanted(&dst), &mut values);
        self.write_chosen(wide, &dst, &values, lanes);
        true
    }

    /// Runs READ_SCRATCH, READ_REDUCTION or READ_SCATTER.
    #[inline(always)]
    pub(super) fn memory_read<W: Wide>(
        &mut self,
        wide: W,
        wave: &Wave,
        fetching: &Fetching,
        reads: &MemoryReads,
        lanes: Mask,
    ) -> bool {
        let mut index = [0; LANES];
        if reads.indexed {
            let Some([place, ..]) = self.places(wave, &fetching.src[0]) else { return false };
            index = *self.lanes.row(place);
        }
        let mut targets = [[None; 4]; 16];
        for (targets, dst) in targets.iter_mut().zip(&fetching.dst) {
            let Some(found) = self.targets(wave, dst) else { return false };
            *targets = found;
        }
        let private = wave.spaces.private(reads.space);
        let same = same(&index, lanes);
        for (step, dst) in (0u64..).zip(&targets[..fetching.dst.len()]) {
            let mut words = [[0; LANES]; 4];
            let mut inside = [0; LANES];
            let first = |element: u64| (reads.base + element) as usize * reads.elem_dwords;
            match (same.map(|index| u64::from(index) + step), private) {
                (Some(element), _) if element > reads.last => {}
                (Some(element), Some(private)) => {
                    for (dword, row) in (first(element)..).zip(&mut words[..reads.elem_dwords]) {
                        *row = private.row(dword).copied().unwrap_or([0; LANES]);
                    }
                    inside = [u32::MAX; LANES];
                }
                _ => {
                    for lane in members(lanes.0) {
                        let element = u64::from(index[lane]) + step;
                        if element > reads.last {
                            continue;
                        }
                        inside[lane] = u32::MAX;
                        for (dword, row) in (first(element)..).zip(&mut words[..reads.elem_dwords]) {
                            row[lane] = match private {
                                Some(private) => private.row(dword).map_or(0, |row| row[lane]),
                                None => wave.simd.scatter.get(dword).copied().unwrap_or(0),
                            };
                        }
                    }
                }
            }
            let Conversion { layout, numbers, swap } = reads.conversion;
            let mut values = [[0; LANES]; 4];
            swap_rows(&mut words, swap);
            convert_rows(layout, numbers, &words, wanted(dst), &mut values);
            // If an element is after the last element of the array, every component reads as 0.
            for row in &mut values {
                (0..LANES).for_each(|lane| row[lane] &= inside[lane]);
            }
            self.write_chosen(wide, dst, &values, lanes);
        }
        true
    }

    /// Runs LOCAL_DS_WRITE.
    #[inline(always)]
    pub(super) fn share_write(
        &mut self,
        wave: &mut Wave,
        fetching: &Fetching,
        high: &MemDswDword1,
        lanes: Mask,
    ) -> bool {
        let first_thread = if high.simd_wave_rel { wave.first_lane() } else { 0 };
        let stride = usize::from(high.dst_stride);
        let place = |lane: usize, step: usize| {
            let thread = first_thread + lane;
            (thread & 3, (thread >> 2) * stride + usize::from(high.dst_index) + 4 * step)
        };
        let highest = 63 - lanes.0.leading_zeros().min(63) as usize;
        // A thread with a higher number has a higher dword address, so the highest active lane has the highest address.
        if place(highest, fetching.src.len() - 1).1 + 3 >= BANK_DWORDS {
            return false;
        }
        let mut places = [[Place::FIRST; 4]; 16];
        for (places, registers) in places.iter_mut().zip(&fetching.src) {
            let Some(found) = self.places(wave, registers) else { return false };
            *places = found;
        }
        // If the run searches for races, the reference interpreter runs the instruction.
        if wave.simd.share.races.is_some() {
            return false;
        }
        let words = wave.simd.share.words_mut();
        for (step, places) in places[..fetching.src.len()].iter().enumerate() {
            let rows = places.map(|place| self.lanes.row(place));
            // The areas of threads may overlap. If several threads write a dword, the dword contains the value of the
            // last write.
            for (chan, row) in rows.into_iter().enumerate() {
                for lane in members(lanes.0) {
                    let (bank, dword) = place(lane, step);
                    words[bank * BANK_DWORDS + dword + chan] = row[lane];
                }
            }
        }
        true
    }

    /// Runs LOCAL_DS_READ.
    #[inline(always)]
    pub(super) fn share_read<W: Wide>(
        &mut self,
        wide: W,
        wave: &Wave,
        fetching: &Fetching,
        high: &MemDsrDword1,
        lanes: Mask,
    ) -> bool {
        let (Some([bank, dword, ..]), Some(dst)) =
            (self.places(wave, &fetching.src[0]), self.targets(wave, &fetching.dst[0]))
        else {
            return false;
        };
        if wave.simd.share.races.is_some() {
            return false;
        }
        let (mut bank, mut dword) = (*self.lanes.row(bank), *self.lanes.row(dword));
        // A broadcast uses the address of the lowest lane. The broadcast writes every lane of the wavefront, whether or
        // not the lane is active.
        let written = if high.broadcast { Mask::first(wave.count) } else { lanes };
        if let (true, Some(first)) = (high.broadcast, lanes.lowest()) {
            (bank, dword) = ([bank[first.index()]; LANES], [dword[first.index()]; LANES]);
        }
        let permutes = high.mux_cntl == DsrMux::FFT_PERMUTE;
        let aligned = if high.mux_cntl == DsrMux::WORD_SELECT { u32::MAX } else { !3 };
        // A permutation reads the entries at the addresses of all four lanes of a quad.
        let reached = if permutes { wave.whole_quads(written) } else { written };
        let reached = spread::<LANES>(reached.0);
        let mut starts = [0; LANES];
        let mut outside = 0;
        for lane in 0..LANES {
            // Entries have four dwords and start at multiples of four. Therefore an entry is inside the bank if the
            // first dword of the entry is inside the bank.
            let beyond = (bank[lane] >= 4) | (dword[lane] >= BANK_DWORDS as u32);
            outside |= if beyond { reached[lane] } else { 0 };
            let start = (bank[lane] & 3) * BANK_DWORDS as u32 + (dword[lane] & aligned) % BANK_DWORDS as u32;
            starts[lane] = start & reached[lane];
        }
        if outside != 0 {
            return false;
        }
        let mut values = [[0; LANES]; 4];
        if let Some(words) = wave.simd.share.words() {
            let word = |place: u32| words[place as usize % words.len()];
            match high.mux_cntl {
                DsrMux::NONE => {
                    for lane in 0..LANES {
                        (0..4).for_each(|chan| values[chan][lane] = word(starts[lane] + chan as u32));
                    }
                }
                DsrMux::FFT_PERMUTE => {
                    for lane in 0..LANES {
                        let component = lane as u32 & 3;
                        (0..4).for_each(|chan| {
                            values[chan][lane] = word(starts[lane & !3 | chan] + component);
                        });
                    }
                }
                DsrMux::WORD_SELECT => {
                    for lane in 0..LANES {
                        values[0][lane] = word(starts[lane]);
                    }
                    let [first, others @ ..] = &mut values;
                    others.fill(*first);
                }
            }
        }
        self.write_chosen(wide, &dst, &values, written);
        true
    }

    // The methods that run exports. A method returns `false` or `None` if the reference interpreter must run the
    // instruction.

    /// Runs EXPORT or EXPORT_DONE.
    #[inline(always)]
    pub(super) fn export<W: Wide>(&mut self, wide: W, wave: &mut Wave, exports: &Exports) -> bool {
        let Ok(lanes) = wave.flow.test(&exports.control) else { return false };
        let lanes = lanes & wave.flow.valid();
        if lanes.is_empty() {
            return true;
        }
        let all = || exports.steps.iter().flatten().flatten();
        let there = |exported: &Exported| match exported {
            Exported::Row(register) => register.place(wave, &self.lowered.layout).is_some(),
            Exported::Word(_) => true,
        };
        if !all().all(there) {
            return false;
        }
        for (step, exported) in (0u16..).zip(&exports.steps) {
            let mut places = [None; 4];
            for (place, exported) in places.iter_mut().zip(exported) {
                if let Some(Exported::Row(register)) = exported {
                    *place = register.place(wave, &self.lowered.layout);
                }
            }
            let target = wave.exports.get_mut(exports.kind, exports.base.wrapping_add(step));
            for (chan, (place, exported)) in places.iter().zip(exported).enumerate() {
                let values = &mut target.values[chan];
                match (place, exported) {
                    (Some(place), _) => wide.write(values, self.lanes.row(*place), lanes.0),
                    (None, Some(Exported::Word(word))) => wide.write(values, &[*word; LANES], lanes.0),
                    (None, _) => continue,
                }
                target.written[chan] |= lanes;
            }
        }
        true
    }

    /// Runs a MEM_* instruction. Returns [`None`] if the reference interpreter must run the instruction. Otherwise
    /// returns whether some lane stored data.
    #[inline(always)]
    pub(super) fn store<W: Wide>(&mut self, wide: W, wave: &mut Wave, stores: &Stores) -> Option<bool> {
        let mut lanes = wave.flow.test(&stores.control).ok()?;
        if stores.space != crate::memory::Space::Scratch {
            lanes &= wave.flow.valid();
        }
        if lanes.is_empty() {
            return Some(false);
        }
        let index = stores.index.map_or([0; LANES], |place| *self.lanes.row(place));
        let members_of = spread::<LANES>(lanes.0);
        let most = (0..LANES).fold(0, |most, lane| most.max(index[lane] & members_of[lane]));
        let steps = stores.steps.len() as u64;
        let limit = match wave.spaces.private(stores.space) {
            Some(private) => private.limit(),
            None => wave.simd.scatter.len(),
        } as u64;
        let highest = u64::from(most) + steps - 1;
        let components = stores.steps[0].iter().rposition(Option::is_some).map_or(0, |chan| chan as u64 + 1);
        let end = stores.first + highest * stores.elem_dwords as u64 + components;
        if highest > stores.last || end > limit {
            return None;
        }
        let mut places = [[None; 4]; 16];
        for (places, registers) in places.iter_mut().zip(&stores.steps) {
            for (place, register) in places.iter_mut().zip(registers) {
                if let Some(register) = register {
                    *place = Some(register.place(wave, &self.lowered.layout)?);
                }
            }
        }
        let same = same(&index, lanes);
        for (step, places) in (0u64..).zip(&places[..stores.steps.len()]) {
            for (chan, place) in places.iter().enumerate() {
                let Some(place) = place else { continue };
                let row = self.lanes.row(*place);
                let dword = |index: u32| {
                    stores.first as usize + (u64::from(index) + step) as usize * stores.elem_dwords + chan
                };
                match (wave.spaces.private_mut(stores.space), same) {
                    (Some(private), Some(index)) => {
                        if let Some(to) = private.row_mut(dword(index)) {
                            wide.write(to, row, lanes.0);
                        }
                    }
                    (Some(private), None) => {
                        for lane in members(lanes.0) {
                            if let Some(to) = private.row_mut(dword(index[lane])) {
                                to[lane] = row[lane];
                            }
                        }
                    }
                    (None, _) => {
                        for lane in members(lanes.0) {
                            wave.simd.scatter[dword(index[lane])] = row[lane];
                        }
                    }
                }
            }
        }
        if stores.ack {
            wave.acknowledges += 1;
        }
        Some(true)
    }
}

/// Returns the word of a row if the row has the same word in all lanes of `lanes`. Otherwise, the function returns
/// `None`.
#[inline(always)]
fn same(row: &Lanes, lanes: Mask) -> Option<u32> {
    let first = row[lanes.lowest()?.index()];
    let members_of = spread::<LANES>(lanes.0);
    let differing = (0..LANES).fold(0, |differing, lane| differing | (row[lane] ^ first) & members_of[lane]);
    (differing == 0).then_some(first)
}

/// For each component, returns whether some destination receives the component.
#[inline(always)]
fn wanted(dst: &Targets) -> [bool; 4] {
    let mut wanted = [false; 4];
    for (_, chosen) in dst.iter().flatten() {
        if let Chosen::Component(component) = chosen {
            wanted[*component] = true;
        }
    }
    wanted
}

/// Fetches the elements that `index` selects from a vertex buffer.
#[inline(always)]
fn fetch_rows(
    vertex: &Vertex,
    buffer: &VertexBuffer,
    index: &Lanes,
    lanes: u64,
    wanted: [bool; 4],
    values: &mut Values,
) {
    let Vertex { base, stride, offset, conversion: Conversion { layout, numbers, swap }, .. } = *vertex;
    let members_of = spread::<LANES>(lanes);
    // A lane that fetches no element still loads element 0. Element 0 is inside the buffer if the highest element is
    // inside the buffer.
    let mut elements = [0; LANES];
    let mut most = 0;
    for lane in 0..LANES {
        elements[lane] = index[lane].wrapping_add(base) & members_of[lane];
        most = most.max(elements[lane]);
    }
    let size = layout.bytes as usize;
    if most as usize * stride + offset + size > buffer.bytes.len() || !swaps_all(layout.bytes, swap) {
        for lane in members(lanes) {
            let at = (elements[lane] as usize * stride + offset) as u64;
            let element = element(buffer, at, layout, numbers, swap);
            (0..4).for_each(|chan| values[chan][lane] = element[chan]);
        }
        return;
    }
    let bytes = &buffer.bytes[offset..];
    let mut words = [[0; LANES]; 4];
    let first = elements[0];
    let in_row = (0..LANES).fold(0, |other, lane| other | (elements[lane] ^ first.wrapping_add(lane as u32)));
    // A draw with few vertices has few lanes, so the loop omits the lanes after the highest fetching lane.
    let elements = &elements[..LANES - lanes.leading_zeros() as usize];
    match size {
        1 => gather::<1>(bytes, elements, stride, &mut words),
        2 => gather::<2>(bytes, elements, stride, &mut words),
        3 => gather::<3>(bytes, elements, stride, &mut words),
        4 if stride == 4 && in_row == 0 => {
            let run = &bytes[first as usize * 4..][..4 * LANES];
            for (word, bytes) in words[0].iter_mut().zip(run.as_chunks().0) {
                *word = u32::from_le_bytes(*bytes);
            }
        }
        4 => gather::<4>(bytes, elements, stride, &mut words),
        6 => gather::<6>(bytes, elements, stride, &mut words),
        8 => gather::<8>(bytes, elements, stride, &mut words),
        12 => gather::<12>(bytes, elements, stride, &mut words),
        _ => gather::<16>(bytes, elements, stride, &mut words),
    }
    swap_rows(&mut words, swap);
    convert_rows(layout, numbers, &words, wanted, values);
}

/// Loads the `SIZE` bytes of each lane's element as words.
#[inline(always)]
fn gather<const SIZE: usize>(bytes: &[u8], elements: &[u32], stride: usize, words: &mut Values) {
    for (lane, index) in elements.iter().enumerate().take(LANES) {
        let at = *index as usize * stride;
        let mut element = [0; 16];
        element[..SIZE].copy_from_slice(&bytes[at..at + SIZE]);
        for word in 0..SIZE.div_ceil(4) {
            words[word][lane] = u32::from_le_bytes(element.as_chunks().0[word]);
        }
    }
}
