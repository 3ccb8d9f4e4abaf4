//! Lowers instructions that access memory. Fetch clauses contain three kinds of such instructions: vertex fetches,
//! memory reads, and accesses to the local data share. This file also lowers exports and memory exports.
//!
//! The reference interpreter runs some accesses: accesses to unbound buffers, accesses in a format without a layout,
//! and accesses to registers that do not exist. The reference interpreter also runs memory exports that read memory.

use reconverge_simt::Fidelity;

use super::super::lanes::Place;
use super::fetch::{Bound, Conversion, FetchWork, Fetching, MemoryReads, Register, Vertex};
use super::{Lowering, Work};
use crate::code::{Export, ExportKind, Fetch, MemoryExport, Select, VertexFormat, read_space};
use crate::flow::Control;
use crate::format;
use crate::lane;
use crate::memory::Space;
use crate::reference::fetch::{component, number, swap_of};
use crate::rules::Rule;
use crate::words::{
    MemDsrDword0, MemDsrDword1, MemDswDword1, MemRdDword0, MemRdDword1, MemRdDword2, VtxDword0,
    VtxDword2R700, VtxFetchType,
};

/// Source of an exported component.
#[derive(Clone, Copy, Debug)]
pub(in crate::fast) enum Exported {
    Row(Register),
    Word(u32),
}

/// EXPORT or EXPORT_DONE.
#[derive(Clone, Debug)]
pub(in crate::fast) struct Exports {
    pub(in crate::fast) control: Control,
    pub(in crate::fast) kind: ExportKind,
    pub(in crate::fast) base: u16,
    /// Exported components, for each register of the burst.
    pub(in crate::fast) steps: Vec<[Option<Exported>; 4]>,
}

/// A memory export: one of the MEM_* instructions.
#[derive(Clone, Debug)]
pub(in crate::fast) struct Stores {
    pub(in crate::fast) control: Control,
    pub(in crate::fast) space: Space,
    pub(in crate::fast) index: Option<Place>,
    /// The dword of element 0.
    pub(in crate::fast) first: u64,
    /// ARRAY_SIZE: index of the last element.
    pub(in crate::fast) last: u64,
    pub(in crate::fast) elem_dwords: usize,
    /// For each register of the burst, the components that the instruction writes.
    pub(in crate::fast) steps: Vec<[Option<Register>; 4]>,
    pub(in crate::fast) ack: bool,
}

impl Lowering<'_> {
    pub(super) fn vertex(
        &mut self,
        fetch: &Fetch,
        low: &VtxDword0,
        format: VertexFormat,
        third: &VtxDword2R700,
    ) -> Option<Fetching> {
        let whole_quad = fetch.whole_quad;
        let VertexFormat { word, semantic } = format;
        let gpr = match semantic {
            None => word.dst_gpr,
            Some(semantic) => {
                let found = self.environment.semantics.iter().position(|id| *id == semantic);
                let Some(place) = found else {
                    let (work, exactness) = (FetchWork::Nothing, Fidelity::Specified);
                    let (src, dst, rules) = (Vec::new(), Vec::new(), Vec::new());
                    return Some(Fetching { whole_quad, src, dst, work, name: None, exactness, rules });
                };
                u8::try_from(place + 1).ok()?
            }
        };
        let numbers = number(word.num_format_all, word.format_comp_all, word.srf_mode_all);
        let bound = Bound { alternate: third.alt_const, id: low.buffer_id };
        let buffer = self.resources(bound).vertex_buffers.get(&bound.id)?;
        let (data_format, numbers, swap) = if word.use_const_fields {
            (buffer.format, buffer.number, buffer.swap)
        } else {
            (word.data_format as u32, numbers, swap_of(third.endian_swap))
        };
        let stride = if third.const_buf_no_stride { 0 } else { buffer.stride as usize };
        let vertex = Vertex {
            bound,
            base: match low.fetch_type {
                VtxFetchType::VERTEX_DATA => self.environment.base_vertex,
                VtxFetchType::INSTANCE_DATA => self.environment.base_instance,
                VtxFetchType::NO_INDEX_OFFSET => 0,
            },
            stride,
            offset: usize::from(third.offset),
            conversion: Conversion { layout: format::layout(data_format)?, numbers, swap },
            outside: if buffer.nan_outside { lane::NAN } else { 0 },
        };
        let index = self.register(fetch.src_gpr.into(), component(low.src_sel_x), fetch.src_rel)?;
        Some(Fetching {
            whole_quad,
            src: vec![[index; 4]],
            dst: vec![self.destinations(fetch, gpr, numbers.one())?],
            work: FetchWork::Vertex(vertex),
            name: Some("VTX"),
            exactness: Fidelity::Specified,
            rules: Vec::new(),
        })
    }

    pub(super) fn memory_read(
        &mut self,
        fetch: &Fetch,
        low: &MemRdDword0,
        high: &MemRdDword1,
        third: &MemRdDword2,
    ) -> Option<Fetching> {
        let numbers = number(high.num_format_all, high.format_comp_all, high.srf_mode_all);
        let reads = MemoryReads {
            space: read_space(low.mem_op),
            indexed: low.indexed,
            base: third.array_base.into(),
            last: third.array_size.into(),
            elem_dwords: usize::from(low.elem_size) + 1,
            conversion: Conversion {
                layout: format::layout(high.data_format as u32)?,
                numbers,
                swap: swap_of(third.endian_swap),
            },
        };
        let src = match low.indexed {
            true => vec![[self.register(fetch.src_gpr.into(), component(low.src_sel_x), fetch.src_rel)?; 4]],
            false => Vec::new(),
        };
        let registers = (0..=low.burst_count).map(|step| fetch.dst_gpr.checked_add(step));
        let dst =
            registers.map(|gpr| self.destinations(fetch, gpr?, numbers.one())).collect::<Option<_>>()?;
        Some(Fetching {
            whole_quad: fetch.whole_quad,
            src,
            dst,
            work: FetchWork::Read(reads),
            name: Some(low.mem_op.name()),
            exactness: Fidelity::Specified,
            rules: vec![Rule::ARRAY_SIZE_IS_THE_LAST_ELEMENT],
        })
    }

    pub(super) fn share_write(&mut self, fetch: &Fetch, high: &MemDswDword1) -> Option<Fetching> {
        let steps = (0..=high.burst_count).map(|step| self.registers(fetch.src_gpr, step, fetch.src_rel));
        Some(Fetching {
            whole_quad: fetch.whole_quad,
            src: steps.collect::<Option<_>>()?,
            dst: Vec::new(),
            work: FetchWork::ShareWrite(*high),
            name: Some("LOCAL_DS_WRITE"),
            exactness: Fidelity::Recommended,
            rules: vec![Rule::DATA_SHARE_WORDS_ARE_OURS],
        })
    }

    pub(super) fn share_read(
        &mut self,
        fetch: &Fetch,
        low: &MemDsrDword0,
        high: &MemDsrDword1,
    ) -> Option<Fetching> {
        let row = |chan| self.register(fetch.src_gpr.into(), chan, fetch.src_rel);
        let [bank, dword] = [row(component(low.src_sel_x))?, row(component(low.src_sel_y))?];
        Some(Fetching {
            whole_quad: fetch.whole_quad,
            src: vec![[bank, dword, bank, dword]],
            dst: vec![self.destinations(fetch, fetch.dst_gpr, 1)?],
            work: FetchWork::ShareRead(*high),
            name: Some("LOCAL_DS_READ"),
            exactness: Fidelity::Recommended,
            rules: vec![Rule::DATA_SHARE_WORDS_ARE_OURS],
        })
    }

    /// Returns the components of register `step` of a burst that starts at register `first`.
    fn registers(&self, first: u8, step: u8, relative: bool) -> Option<[Register; 4]> {
        let gpr = i32::from(first.checked_add(step)?);
        let row = |chan| self.register(gpr, chan, relative);
        Some([row(0)?, row(1)?, row(2)?, row(3)?])
    }

    pub(super) fn exports(&self, control: &Control, export: &Export) -> Option<Work> {
        // An export can compute its register number from aL but use no component of the register. At such an export,
        // the fast engine would not notice that aL does not exist. So the reference interpreter runs the export.
        if export.rel && !export.select.iter().any(|select| matches!(select, Select::Component(_))) {
            return None;
        }
        let step = |step| {
            let gpr = i32::from(export.gpr) + i32::from(step);
            let mut places = [None; 4];
            for (place, select) in places.iter_mut().zip(export.select) {
                *place = match select {
                    Select::Component(chan) => Some(Exported::Row(self.register(gpr, chan, export.rel)?)),
                    Select::Zero => Some(Exported::Word(0)),
                    Select::One => Some(Exported::Word(lane::ONE)),
                    Select::Mask => None,
                };
            }
            Some(places)
        };
        let steps = (0..export.burst).map(step).collect::<Option<_>>()?;
        Some(Work::Export(Exports { control: *control, kind: export.kind, base: export.base, steps }))
    }

    /// Lowers a memory export. Also returns the disputed rules on which the result of the export depends.
    pub(super) fn stores(&self, control: &Control, export: &MemoryExport) -> Option<(Work, Vec<Rule>)> {
        if export.read {
            return None;
        }
        let index = match export.indexed {
            true => Some(self.place(self.environment.register_row(export.index_gpr.into(), 0)?)),
            false => None,
        };
        let elem_dwords = usize::from(export.elem_dwords);
        let components = export.components();
        // An export can compute its register number from aL but write no component. At such an export, the fast engine
        // would not notice that aL does not exist (see `exports`).
        if export.rel && export.comp_mask & ((1 << components) - 1) == 0 {
            return None;
        }
        let step = |step| {
            let gpr = i32::from(export.gpr) + i32::from(step);
            let mut places = [None; 4];
            for (chan, place) in places.iter_mut().enumerate().take(components) {
                if export.comp_mask >> chan & 1 != 0 {
                    *place = Some(self.register(gpr, chan, export.rel)?);
                }
            }
            Some(places)
        };
        let stores = Stores {
            control: *control,
            space: export.space(),
            index,
            first: export.first_dword(),
            last: export.size.into(),
            elem_dwords,
            steps: (0..export.burst).map(step).collect::<Option<_>>()?,
            ack: export.ack,
        };
        let mut rules = vec![Rule::ARRAY_SIZE_IS_THE_LAST_ELEMENT];
        rules.extend(export.ack.then_some(Rule::TYPE_2_AND_3_BY_FAMILY));
        Some((Work::Memory(stores), rules))
    }
}
