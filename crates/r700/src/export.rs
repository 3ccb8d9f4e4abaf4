//! What leaves a wavefront through control-flow instructions: exports, memory exports, emitted vertices.
//!
//! Source: MAN p. 45 and chapter 8 (CF_ALLOC_EXPORT). Where the buffers lie in memory is the host's business: scratch,
//! reduction, ring and stream-out give every lane a record of its own, the scatter buffer is one for all.

use reconverge_simt::{Event, Lane, Mask, Observer};

use crate::code::{Export, ExportKind, MemoryExport, Select};
use crate::flow::Control;
use crate::launch::{Emission, LANES, Outcome};
use crate::memory::{Private, Simd};
use crate::reference::{Cause, Wave};
use crate::rules::Rule;
use crate::words::ExportInst;

/// What one target has received.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Target {
    values: Box<[[u32; LANES]; 4]>,
    written: [Mask; 4],
}

impl Default for Target {
    fn default() -> Self {
        Target { values: Box::new([[0; LANES]; 4]), written: [Mask::NONE; 4] }
    }
}

impl Target {
    /// What each lane has written, and bit by bit which components, as far as it is one of `kept`; else 0.
    fn by_lane(&self, kept: Mask) -> ([[u32; 4]; LANES], [u8; LANES]) {
        let (mut values, mut written) = ([[0; 4]; LANES], [0; LANES]);
        for (chan, row) in self.values.iter().enumerate() {
            let lanes = self.written[chan] & kept;
            if lanes.is_empty() {
                continue;
            }
            for lane in 0..LANES {
                let wrote = lanes.0 >> lane & 1;
                values[lane][chan] = row[lane] * wrote as u32;
                written[lane] |= (wrote as u8) << chan;
            }
        }
        (values, written)
    }
}

/// The lane-private spaces.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Spaces {
    pub(crate) scratch: Private,
    pub(crate) reduction: Private,
    pub(crate) ring: Private,
    pub(crate) streams: [Private; 4],
}

/// One of the spaces that a memory instruction can reach.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Space {
    Scratch,
    Reduction,
    Ring,
    Stream(usize),
    Scatter,
}

impl Spaces {
    pub(crate) fn new(scratch_dwords: usize, record_dwords: usize) -> Spaces {
        let record = || Private::new(record_dwords);
        Spaces {
            scratch: Private::new(scratch_dwords),
            reduction: record(),
            ring: record(),
            streams: [record(), record(), record(), record()],
        }
    }

    /// Forgets everything that was written.
    pub(crate) fn clear(&mut self) {
        let Spaces { scratch, reduction, ring, streams } = self;
        for space in [scratch, reduction, ring].into_iter().chain(streams) {
            space.clear();
        }
    }

    /// The lane-private space; the scatter buffer is none.
    fn private(&self, space: Space) -> Option<&Private> {
        match space {
            Space::Scratch => Some(&self.scratch),
            Space::Reduction => Some(&self.reduction),
            Space::Ring => Some(&self.ring),
            Space::Stream(number) => Some(&self.streams[number]),
            Space::Scatter => None,
        }
    }

    fn private_mut(&mut self, space: Space) -> Option<&mut Private> {
        match space {
            Space::Scratch => Some(&mut self.scratch),
            Space::Reduction => Some(&mut self.reduction),
            Space::Ring => Some(&mut self.ring),
            Space::Stream(number) => Some(&mut self.streams[number]),
            Space::Scatter => None,
        }
    }
}

/// The space a memory export goes to.
fn space(inst: ExportInst) -> Space {
    match inst {
        ExportInst::MEM_STREAM0 => Space::Stream(0),
        ExportInst::MEM_STREAM1 => Space::Stream(1),
        ExportInst::MEM_STREAM2 => Space::Stream(2),
        ExportInst::MEM_STREAM3 => Space::Stream(3),
        ExportInst::MEM_SCRATCH => Space::Scratch,
        ExportInst::MEM_REDUCTION => Space::Reduction,
        ExportInst::MEM_RING => Space::Ring,
        ExportInst::MEM_EXPORT | ExportInst::EXPORT | ExportInst::EXPORT_DONE => Space::Scatter,
    }
}

impl Wave {
    /// The dword of a space; 0 where nothing is.
    pub(crate) fn load(&self, space: Space, lane: Lane, dword: usize) -> u32 {
        match self.spaces.private(space) {
            Some(private) => private.read(lane, dword),
            None => self.simd.scatter.get(dword).copied().unwrap_or(0),
        }
    }

    /// Stores a dword; says whether it lies in the space.
    fn store(&mut self, space: Space, lane: Lane, dword: usize, value: u32) -> bool {
        match self.spaces.private_mut(space) {
            Some(private) => private.write(lane, dword, value),
            None => match self.simd.scatter.get_mut(dword) {
                Some(place) => {
                    *place = value;
                    true
                }
                None => false,
            },
        }
    }

    /// EXPORT and EXPORT_DONE: register i of the burst goes to target ARRAY_BASE + i.
    ///
    /// Lanes that are not valid run but export nothing (MAN p. 47).
    pub(crate) fn export(&mut self, control: &Control, export: &Export) -> Result<(), Cause> {
        let lanes = self.flow.test(control)? & self.flow.valid();
        if lanes.is_empty() {
            return Ok(());
        }
        for step in 0..export.burst {
            let register = i32::from(export.gpr) + i32::from(step) + self.loop_offset(export.rel)?;
            let mut values = [[0; LANES]; 4];
            for (chan, value) in values.iter_mut().enumerate() {
                if export.select.contains(&Select::Component(chan)) {
                    *value = self.read_register(register, chan, lanes, export.rel)?;
                }
            }
            let base = export.base.wrapping_add(step.into());
            let target = self.exports.entry((export.kind, base)).or_default();
            for (chan, select) in export.select.iter().enumerate() {
                let source = match select {
                    Select::Component(component) => &values[*component],
                    Select::Zero => &[0; LANES],
                    Select::One => &[crate::lane::ONE; LANES],
                    Select::Mask => continue,
                };
                target.written[chan] |= lanes;
                for lane in lanes.lanes() {
                    target.values[chan][lane.index()] = source[lane.index()];
                }
            }
        }
        Ok(())
    }

    /// MEM_*: element i of the burst goes behind element i - 1; no element beyond ARRAY_BASE + ARRAY_SIZE is written
    /// ([`Rule::ARRAY_SIZE_IS_THE_LAST_ELEMENT`]). On R600 the same instruction can read.
    pub(crate) fn memory_export<O: Observer>(
        &mut self,
        control: &Control,
        export: &MemoryExport,
        observer: &mut O,
    ) -> Result<(), Cause> {
        let mut lanes = self.flow.test(control)?;
        let space = space(export.inst);
        // Scratch is the lane's own; everything else is an effect outside, which a killed lane has not.
        if space != Space::Scratch {
            lanes &= self.flow.valid();
        }
        if lanes.is_empty() {
            return Ok(());
        }
        let index = match export.indexed {
            true => self.read_register(export.index_gpr.into(), 0, lanes, false)?,
            false => [0; LANES],
        };
        let last = u64::from(export.size);
        self.fidelity.rules.insert(Rule::ARRAY_SIZE_IS_THE_LAST_ELEMENT);
        if export.read || export.ack {
            self.fidelity.rules.insert(Rule::TYPE_2_AND_3_BY_FAMILY);
        }
        for step in 0..export.burst {
            let register = i32::from(export.gpr) + i32::from(step) + self.loop_offset(export.rel)?;
            for chan in 0..usize::from(export.elem_dwords) {
                if export.comp_mask >> chan & 1 == 0 {
                    continue;
                }
                let mut values = [0; LANES];
                if !export.read {
                    values = self.read_register(register, chan, lanes, export.rel)?;
                }
                let mut done = Mask::NONE;
                for lane in lanes.lanes() {
                    let element = u64::from(index[lane.index()]) + u64::from(step);
                    let dword =
                        (u64::from(export.base) + element) * u64::from(export.elem_dwords) + chan as u64;
                    let inside = element <= last;
                    let dword = usize::try_from(dword).unwrap_or(usize::MAX);
                    if export.read {
                        values[lane.index()] = if inside { self.load(space, lane, dword) } else { 0 };
                        continue;
                    }
                    if !inside || !self.store(space, lane, dword, values[lane.index()]) {
                        done.set(lane, true);
                        continue;
                    }
                    if O::DATA {
                        let address = (dword as u32).wrapping_mul(4);
                        observer.event(Event::Store { lane, address, value: values[lane.index()] });
                    }
                }
                if done.any() && self.options.strict {
                    return Err(Cause::MemoryBounds { what: export.inst.name(), lanes: done });
                }
                if export.read {
                    self.write_register(register, chan, lanes, &values, export.rel, observer)?;
                }
            }
        }
        if export.ack {
            self.acknowledges += 1;
        }
        Ok(())
    }

    /// EMIT_VERTEX, EMIT_CUT_VERTEX, CUT_VERTEX.
    pub(crate) fn emit(&mut self, control: &Control, vertex: bool, cut: bool) -> Result<(), Cause> {
        let lanes = self.flow.test(control)?;
        if lanes.any() {
            self.emissions.push(Emission { first_lane: self.first_lane(), lanes, vertex, cut });
        }
        Ok(())
    }

    /// Adds what this wavefront left to the launch's outcome, and gives what the next one is to have.
    pub fn finish(mut self, outcome: &mut Outcome) -> Simd {
        let lanes = self.launch.lanes;
        self.leave_to(outcome, lanes);
        self.simd
    }

    /// What each lane has left through a target, and bit by bit through which components; 0 where it has not. Pixels of
    /// lanes that are not valid never reach the framebuffer, also when the lane was killed after its export (MAN p. 47).
    pub(crate) fn exported(&self, kind: ExportKind, base: u16) -> Option<([[u32; 4]; LANES], [u8; LANES])> {
        let kept = if kind == ExportKind::Pixel { self.flow.valid() } else { Mask(u64::MAX) };
        Some(self.exports.get(&(kind, base))?.by_lane(kept))
    }

    /// Adds what this wavefront left to the outcome of `lanes` lanes one after another, of which the wavefronts before
    /// have added theirs.
    pub(crate) fn leave_to(&mut self, outcome: &mut Outcome, lanes: usize) {
        self.leave_exports_to(outcome, lanes, |_, _| true);
        self.leave_others_to(outcome);
    }

    /// The exports of [`leave_to`](Self::leave_to), to the targets of some kinds and bases.
    pub(crate) fn leave_exports_to(
        &self,
        outcome: &mut Outcome,
        lanes: usize,
        mut to: impl FnMut(ExportKind, u16) -> bool,
    ) {
        let own = outcome.killed.len()..outcome.killed.len() + self.count;
        for &(kind, base) in self.exports.keys().filter(|(kind, base)| to(*kind, *base)) {
            let Some((values, written)) = self.exported(kind, base) else { continue };
            let exported = outcome.export_mut(kind, base, lanes);
            exported.values[own.clone()].copy_from_slice(&values[..self.count]);
            exported.written[own.clone()].copy_from_slice(&written[..self.count]);
        }
    }

    /// All but the exports of [`leave_to`](Self::leave_to).
    pub(crate) fn leave_others_to(&mut self, outcome: &mut Outcome) {
        let valid = self.flow.valid();
        let place = outcome.killed.len();
        let memory = &mut outcome.memory;
        outcome.killed.extend((0..self.count).map(|lane| !valid.has(Lane(lane as u8))));
        let keep = |records: &mut Vec<Vec<u32>>, space: &Private| {
            if records.is_empty() && space.used() == 0 {
                return;
            }
            records.resize(place, Vec::new());
            records.extend((0..self.count).map(|lane| space.lane(Lane(lane as u8))));
        };
        keep(&mut memory.scratch, &self.spaces.scratch);
        keep(&mut memory.reduction, &self.spaces.reduction);
        keep(&mut memory.ring, &self.spaces.ring);
        for (records, stream) in memory.streams.iter_mut().zip(&self.spaces.streams) {
            keep(records, stream);
        }
        outcome.emissions.append(&mut self.emissions);
        outcome.statistics.add(&self.statistics);
        outcome.fidelity.add(&self.fidelity);
        outcome.stack_needed = outcome.stack_needed.max(self.flow.stack_needed());
    }
}
