//! Exports, memory exports and emitted vertices. These control-flow instructions have effects outside the wavefront.
//!
//! Source: MAN p. 45 and chapter 8 (CF_ALLOC_EXPORT). In scratch, reduction, ring and stream-out memory, each lane has
//! a separate record. All lanes share one scatter buffer.

use reconverge_simt::{Event, Mask, Observer};

use crate::cause::Cause;
use crate::chip::LANES;
use crate::code::{Export, MemoryExport, Select};
use crate::flow::Control;
use crate::memory::Space;
use crate::outcome::Emission;
use crate::rules::Rule;
use crate::wave::Wave;

impl Wave {
    /// Executes EXPORT or EXPORT_DONE. Register i of the burst goes to target ARRAY_BASE + i.
    ///
    /// Lanes that are not valid run the instruction but export nothing (MAN p. 47).
    pub(super) fn export(&mut self, control: &Control, export: &Export) -> Result<(), Cause> {
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
            let target = self.exports.get_mut(export.kind, base);
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

    /// Executes a MEM_* instruction. The elements of a burst are consecutive. Elements past ARRAY_BASE + ARRAY_SIZE are
    /// not written ([`Rule::ARRAY_SIZE_IS_THE_LAST_ELEMENT`]). On R600, a MEM_* instruction can also read memory.
    pub(super) fn memory_export<O: Observer>(
        &mut self,
        control: &Control,
        export: &MemoryExport,
        observer: &mut O,
    ) -> Result<(), Cause> {
        let mut lanes = self.flow.test(control)?;
        let space = export.space();
        // A killed lane must not change memory that other wavefronts can read. Scratch memory belongs to a single lane.
        // All other memory is visible outside the wavefront.
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
            for chan in 0..export.components() {
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
                    let dword = export.first_dword() + element * u64::from(export.elem_dwords) + chan as u64;
                    let inside = element <= last;
                    let dword = usize::try_from(dword).unwrap_or(usize::MAX);
                    if export.read {
                        values[lane.index()] = if inside { self.load(space, lane, dword) } else { 0 };
                        continue;
                    }
                    if !inside || !self.store(space, lane, dword, values[lane.index()]) {
                        done.insert(lane);
                        continue;
                    }
                    if O::DATA {
                        let address = (dword as u32).wrapping_mul(4);
                        observer.event(Event::Store { lane, address, value: values[lane.index()] });
                    }
                }
                if done.any() && self.strict() {
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

    /// Executes EMIT_VERTEX, EMIT_CUT_VERTEX or CUT_VERTEX.
    pub(super) fn emit(&mut self, control: &Control, vertex: bool, cut: bool) -> Result<(), Cause> {
        let lanes = self.flow.test(control)?;
        if lanes.any() {
            self.emissions.push(Emission { first_lane: self.first_lane(), lanes, vertex, cut });
        }
        Ok(())
    }
}
