//! Fetch clauses: vertex fetches, memory reads, and accesses to the local data share. [`super::texture`] contains the
//! texture instructions.
//!
//! Sources: MAN chapter 5, chapter 8 (VTX, TEX, MEM_RD words), and p. 35 for the data share. A fetch can add aL to the
//! numbers of its source and destination registers. A fetch cannot use any other index.

use reconverge_isa::FieldValue;
use reconverge_simt::races::Accessor;
use reconverge_simt::{Event, Fidelity, Lane, Mask, Observer};

use super::texture::Words;
use crate::cause::Cause;
use crate::chip::LANES;
use crate::code::{Fetch, FetchOp, Select, VertexFormat, read_space};
use crate::format::{self, Number, Swap};
use crate::memory::{DataShare, VertexBuffer, number_of};
use crate::rules::Rule;
use crate::wave::{Values, Wave};
use crate::words::{
    DsrMux, Endian, FormatComp, MemDsrDword0, MemDsrDword1, MemDswDword1, MemRdDword0, MemRdDword1,
    MemRdDword2, NumFormat, SelSrc2, SrfMode, VtxDword0, VtxDword2R700, VtxFetchType,
};

pub(crate) fn number(num_format: NumFormat, comp: FormatComp, srf: SrfMode) -> Number {
    number_of(num_format as u32, comp == FormatComp::SIGNED, srf == SrfMode::NO_ZERO)
}

pub(crate) fn swap_of(endian: Endian) -> Swap {
    match endian {
        Endian::NONE => Swap::None,
        Endian::SWAP_8IN16 => Swap::In16,
        Endian::SWAP_8IN32 => Swap::In32,
        Endian::RESERVED_OR_8IN64 => Swap::In64,
    }
}

/// Returns the components of an element of a buffer. `at` is the offset of the element in bytes. Components outside the
/// buffer are 0 or NaN.
pub(crate) fn element(
    buffer: &VertexBuffer,
    at: u64,
    layout: format::Layout,
    numbers: Number,
    swap: Swap,
) -> [u32; 4] {
    let end = at + u64::from(layout.bytes);
    if end <= buffer.bytes.len() as u64 {
        let mut bytes = [0; 16];
        let bytes = &mut bytes[..layout.bytes as usize];
        bytes.copy_from_slice(&buffer.bytes[at as usize..end as usize]);
        format::swap(bytes, swap);
        format::convert(layout, numbers, bytes)
    } else {
        let outside = if buffer.nan_outside { crate::lane::NAN } else { 0 };
        let inside = usize::try_from(at).ok().and_then(|at| buffer.bytes.get(at..)).unwrap_or(&[]);
        match inside {
            [] => [outside; 4],
            inside => {
                element_at_end(inside, layout, numbers, swap).map(|component| component.unwrap_or(outside))
            }
        }
    }
}

/// Returns the components of an element at the end of a buffer. Only the bytes `inside` of the element are in the
/// buffer. A component with a byte outside the buffer is `None`.
///
/// This behaviour is inferred from the test `gl-2.0-vertexattribpointer-size-3`, which RV770 passes. In this test, Mesa
/// fetches four shorts per vertex, but the last vertex has only three shorts at the end of the buffer.
fn element_at_end(inside: &[u8], layout: format::Layout, numbers: Number, swap: Swap) -> [Option<u32>; 4] {
    let length = layout.bytes as usize;
    let (mut bytes, mut present) = ([0; 16], [0; 16]);
    for ((byte, present), inside) in bytes[..length].iter_mut().zip(&mut present).zip(inside) {
        (*byte, *present) = (*inside, u8::MAX);
    }
    format::swap(&mut bytes[..length], swap);
    format::swap(&mut present[..length], swap);
    let values = format::convert(layout, numbers, &bytes);
    let whole = layout.whole(u128::from_le_bytes(present));
    std::array::from_fn(|component| whole[component].then_some(values[component]))
}

impl Wave {
    /// Executes one fetch instruction on `lanes`. If FETCH_WHOLE_QUAD is set, the instruction runs on all lanes of each
    /// quad that contains one of `lanes`. Later gradient instructions then have the operands of the whole quad (MAN p.
    /// 92).
    pub(super) fn fetch<O: Observer>(
        &mut self,
        fetch: &Fetch,
        lanes: Mask,
        observer: &mut O,
    ) -> Result<(), Cause> {
        let lanes = if fetch.whole_quad { self.whole_quads(lanes) } else { lanes };
        match &fetch.op {
            FetchOp::Vertex(low, format, third) => self.vertex(fetch, low, *format, third, lanes, observer),
            FetchOp::Texture(low, high, third) => {
                self.texture(fetch, &Words { low, high, third }, lanes, observer)
            }
            FetchOp::Memory(low, high, third) => self.memory_read(fetch, (low, high, third), lanes, observer),
            FetchOp::DataShareWrite(high) => self.share_write(fetch, high, lanes),
            FetchOp::DataShareRead(low, high) => self.share_read(fetch, low, high, lanes, observer),
        }
    }

    pub(super) fn source_register(&self, fetch: &Fetch) -> Result<i32, Cause> {
        Ok(i32::from(fetch.src_gpr) + self.loop_offset(fetch.src_rel)?)
    }

    /// Writes to register `gpr` the components of `values` that DST_SEL selects. `one` is the value that a component
    /// receives if DST_SEL selects the constant 1.
    pub(super) fn write_selected<O: Observer>(
        &mut self,
        gpr: i32,
        fetch: &Fetch,
        lanes: Mask,
        values: &Values,
        one: u32,
        observer: &mut O,
    ) -> Result<(), Cause> {
        for (chan, select) in fetch.select.iter().enumerate() {
            let chosen = match select {
                Select::Component(component) => values[*component],
                Select::Zero => [0; LANES],
                Select::One => [one; LANES],
                Select::Mask => continue,
            };
            self.write_register(gpr, chan, lanes, &chosen, fetch.dst_rel, observer)?;
        }
        Ok(())
    }

    /// Executes a vertex fetch. MEGA_FETCH and its count have no effect in this function. On the chip, these fields
    /// only state the number of bytes to load into the cache.
    fn vertex<O: Observer>(
        &mut self,
        fetch: &Fetch,
        low: &VtxDword0,
        format: VertexFormat,
        third: &VtxDword2R700,
        lanes: Mask,
        observer: &mut O,
    ) -> Result<(), Cause> {
        let VertexFormat { word, semantic } = format;
        let gpr = match semantic {
            None => i32::from(word.dst_gpr) + self.loop_offset(word.dst_rel)?,
            Some(semantic) => {
                let found = self.launch.environment.semantics.iter().position(|id| *id == semantic);
                // If the table of semantics does not contain the fetch's semantic, the fetch writes no register.
                let Some(place) = found else { return Ok(()) };
                place as i32 + 1
            }
        };
        let numbers = number(word.num_format_all, word.format_comp_all, word.srf_mode_all);
        self.fidelity.count("VTX", Fidelity::Specified, None);
        let base = match low.fetch_type {
            VtxFetchType::VERTEX_DATA => self.launch.environment.base_vertex,
            VtxFetchType::INSTANCE_DATA => self.launch.environment.base_instance,
            VtxFetchType::NO_INDEX_OFFSET => 0,
        };
        let index =
            self.read_register(self.source_register(fetch)?, component(low.src_sel_x), lanes, fetch.src_rel)?;
        let launch = self.launch.clone();
        let resources = launch.environment.bound(third.alt_const);
        let mut values = [[0; LANES]; 4];
        let Some(buffer) = resources.vertex_buffers.get(&low.buffer_id) else {
            if self.strict() {
                return Err(Cause::NoResource { what: "vertex buffer", id: low.buffer_id });
            }
            return self.write_selected(gpr, fetch, lanes, &values, numbers.one(), observer);
        };
        let (data_format, numbers, swap) = if word.use_const_fields {
            (buffer.format, buffer.number, buffer.swap)
        } else {
            (word.data_format as u32, numbers, swap_of(third.endian_swap))
        };
        let layout = format::layout(data_format).ok_or(Cause::Format(data_format))?;
        let stride = if third.const_buf_no_stride { 0 } else { u64::from(buffer.stride) };
        for lane in lanes.lanes() {
            let number = u64::from(index[lane.index()].wrapping_add(base));
            let at = number * stride + u64::from(third.offset);
            let element = element(buffer, at, layout, numbers, swap);
            for (value, component) in values.iter_mut().zip(element) {
                value[lane.index()] = component;
            }
            if O::DATA {
                observer.event(Event::Load { lane, address: at as u32 });
            }
        }
        self.write_selected(gpr, fetch, lanes, &values, numbers.one(), observer)
    }

    /// Executes READ_SCRATCH, READ_REDUCTION or READ_SCATTER. Elements past ARRAY_BASE + ARRAY_SIZE read as 0
    /// ([`Rule::ARRAY_SIZE_IS_THE_LAST_ELEMENT`]).
    fn memory_read<O: Observer>(
        &mut self,
        fetch: &Fetch,
        (low, high, third): (&MemRdDword0, &MemRdDword1, &MemRdDword2),
        lanes: Mask,
        observer: &mut O,
    ) -> Result<(), Cause> {
        let space = read_space(low.mem_op);
        self.fidelity.count(
            low.mem_op.name(),
            Fidelity::Specified,
            Some(Rule::ARRAY_SIZE_IS_THE_LAST_ELEMENT),
        );
        let index = match low.indexed {
            true => self.read_register(
                self.source_register(fetch)?,
                component(low.src_sel_x),
                lanes,
                fetch.src_rel,
            )?,
            false => [0; LANES],
        };
        let numbers = number(high.num_format_all, high.format_comp_all, high.srf_mode_all);
        let data_format = high.data_format as u32;
        let layout = format::layout(data_format).ok_or(Cause::Format(data_format))?;
        let elem_dwords = u64::from(low.elem_size) + 1;
        for step in 0..=low.burst_count {
            let mut values = [[0; LANES]; 4];
            for lane in lanes.lanes() {
                let element = u64::from(index[lane.index()]) + u64::from(step);
                if element > u64::from(third.array_size) {
                    continue;
                }
                let first = (u64::from(third.array_base) + element) * elem_dwords;
                let mut bytes = [0; 16];
                for (dword, place) in (first..).zip(bytes.chunks_exact_mut(4)).take(elem_dwords as usize) {
                    let dword = usize::try_from(dword).unwrap_or(usize::MAX);
                    place.copy_from_slice(&self.load(space, lane, dword).to_le_bytes());
                }
                format::swap(&mut bytes, swap_of(third.endian_swap));
                for (value, component) in values.iter_mut().zip(format::convert(layout, numbers, &bytes)) {
                    value[lane.index()] = component;
                }
                if O::DATA {
                    observer.event(Event::Load { lane, address: (first as u32).wrapping_mul(4) });
                }
            }
            let gpr = i32::from(fetch.dst_gpr) + i32::from(step) + self.loop_offset(fetch.dst_rel)?;
            self.write_selected(gpr, fetch, lanes, &values, numbers.one(), observer)?;
        }
        Ok(())
    }

    /// Executes LOCAL_DS_WRITE. The area of a thread is in bank `thread & 3` and starts at dword `(thread >> 2) *
    /// stride + index`. (MAN p. 35)
    fn share_write(&mut self, fetch: &Fetch, high: &MemDswDword1, lanes: Mask) -> Result<(), Cause> {
        self.fidelity.count("LOCAL_DS_WRITE", Fidelity::Recommended, Some(Rule::DATA_SHARE_WORDS_ARE_OURS));
        for step in 0..=high.burst_count {
            let register = self.source_register(fetch)? + i32::from(step);
            for chan in 0..4 {
                let values = self.read_register(register, chan, lanes, fetch.src_rel)?;
                for lane in lanes.lanes() {
                    let thread = self.thread(lane, high.simd_wave_rel);
                    let dword = (thread >> 2) * usize::from(high.dst_stride)
                        + usize::from(high.dst_index)
                        + 4 * usize::from(step)
                        + chan;
                    let value = values[lane.index()];
                    self.check_share(fetch.addr, lane, (thread & 3, dword), Some(value))?;
                    if !self.simd.share.write(thread & 3, dword, value) && self.strict() {
                        return Err(Cause::MemoryBounds { what: "LOCAL_DS_WRITE", lanes: Mask::only(lane) });
                    }
                }
            }
        }
        Ok(())
    }

    /// Executes LOCAL_DS_READ. The source register contains the bank and the dword of an entry. MUX_CNTL selects the
    /// part of the entry that a lane receives.
    fn share_read<O: Observer>(
        &mut self,
        fetch: &Fetch,
        low: &MemDsrDword0,
        high: &MemDsrDword1,
        lanes: Mask,
        observer: &mut O,
    ) -> Result<(), Cause> {
        self.fidelity.count("LOCAL_DS_READ", Fidelity::Recommended, Some(Rule::DATA_SHARE_WORDS_ARE_OURS));
        let register = self.source_register(fetch)?;
        let source = if high.broadcast { lanes } else { self.whole_quads(lanes) };
        let mut bank = self.read_register(register, component(low.src_sel_x), source, fetch.src_rel)?;
        let mut dword = self.read_register(register, component(low.src_sel_y), source, fetch.src_rel)?;
        // A broadcast uses the address of the lowest lane. The broadcast writes every lane of the wavefront, whether or
        // not the lane is active.
        let written = if high.broadcast { Mask::first(self.count) } else { lanes };
        if let (true, Some(first)) = (high.broadcast, lanes.lowest()) {
            bank = [bank[first.index()]; LANES];
            dword = [dword[first.index()]; LANES];
        }
        let entry = |lane: usize, chan: usize, aligned: bool| {
            let start = if aligned { dword[lane] & !3 } else { dword[lane] };
            (bank[lane] as usize, start as usize + chan)
        };
        let mut values = [[0; LANES]; 4];
        for lane in written.lanes() {
            for (chan, value) in values.iter_mut().enumerate() {
                let place = match high.mux_cntl {
                    DsrMux::NONE => entry(lane.index(), chan, true),
                    // Each of the four lanes of a quad addresses an entry. Lane k receives component k of all four
                    // entries.
                    DsrMux::FFT_PERMUTE => entry(lane.index() & !3 | chan, lane.index() & 3, true),
                    DsrMux::WORD_SELECT => entry(lane.index(), 0, false),
                };
                self.check_share(fetch.addr, lane, place, None)?;
                value[lane.index()] = match self.simd.share.read(place.0, place.1) {
                    Some(word) => word,
                    None if self.strict() => {
                        return Err(Cause::MemoryBounds { what: "LOCAL_DS_READ", lanes: Mask::only(lane) });
                    }
                    None => 0,
                };
            }
        }
        let gpr = i32::from(fetch.dst_gpr) + self.loop_offset(fetch.dst_rel)?;
        self.write_selected(gpr, fetch, written, &values, 1, observer)
    }

    /// Checks an access to a dword of the local data share for races. Does nothing if the dword does not exist or if
    /// the run does not search for races. If `value` is `None`, the access is a read. Otherwise the access is a write
    /// of `value`.
    fn check_share(
        &mut self,
        pc: u32,
        lane: Lane,
        (bank, dword): (usize, usize),
        value: Option<u32>,
    ) -> Result<(), Cause> {
        let accessor = Accessor { group: self.number(), lane: lane.0.into(), pc };
        let share = &mut self.simd.share;
        let (Some(before), Some(races)) = (share.read(bank, dword), &mut share.races) else { return Ok(()) };
        let place = (bank as u32, dword as u32);
        let address = DataShare::address(place.0, place.1);
        let checked = match value {
            Some(value) => races.store(accessor, address, 4, value == before),
            None => races.load(accessor, address, 4),
        };
        checked.map_err(|hazard| Cause::of_hazard(hazard, accessor, value.is_some(), place))
    }

    /// Returns the thread's number in its wavefront. With SIMD_WAVE_REL, returns the thread's number in its thread
    /// group. In this emulation, the thread group is the whole launch.
    fn thread(&self, lane: Lane, relative_to_group: bool) -> usize {
        lane.index() + if relative_to_group { self.first_lane() } else { 0 }
    }
}

pub(crate) fn component(select: SelSrc2) -> usize {
    select.to_bits() as usize
}
