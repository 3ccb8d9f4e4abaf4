//! Finds rows that cannot contain denormals. A sum that reads only such rows does not flush the sources.

use std::ops::RangeInclusive;

use crate::flow::Role;
use crate::group::ROWS;
use crate::inst::{Body, Inst, SLOTS, TEMPORARIES};
use crate::setup::Setup;
use crate::words::Omod;

/// Rows of temporaries and outputs that cannot contain a denormal.
///
/// All values that instructions write to a row of this set are results of arithmetic. Arithmetic flushes denormals. An
/// input may contain denormals. So the row of an input is in the set only if an instruction overwrites the row in all
/// lanes. This instruction must precede the first flow instruction.
pub(super) struct Normal {
    rows: Vec<Known>,
    /// Slot of the first instruction of the program.
    start: u16,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Known {
    /// The row never contains denormals.
    Yes,
    /// The row may contain denormals until the instruction in this slot has overwritten the row. Instructions from the
    /// first slot of the program up to and including this slot may read denormals from the row. Instructions in other
    /// slots cannot read denormals from the row.
    Behind(u16),
    No,
}

impl Normal {
    pub(super) fn new(setup: &Setup, inputs: &mut dyn Iterator<Item = usize>) -> Normal {
        let mut normal = Normal { rows: vec![Known::Yes; ROWS], start: setup.start };
        let al = values_of_al(setup);
        inputs.for_each(|temp| normal.rows[temp * 4..temp * 4 + 4].fill(Known::Behind(u16::MAX)));
        for slot in setup.start..SLOTS as u16 {
            let Some(Ok(inst)) = setup.slot(slot).map(|slot| slot.inst.as_ref()) else { break };
            if matches!(inst.body, Body::Fc(_)) {
                break;
            }
            for (row, flushed, always) in written_by(inst, &al) {
                if flushed && always && normal.rows[row] == Known::Behind(u16::MAX) {
                    normal.rows[row] = Known::Behind(slot);
                }
            }
            if slot == setup.end {
                break;
            }
        }
        for (_, slot) in setup.slots() {
            let written = slot.inst.iter().flat_map(|inst| written_by(inst, &al));
            written.filter(|(_, flushed, _)| !flushed).for_each(|(row, ..)| normal.rows[row] = Known::No);
        }
        normal
    }

    /// Returns whether a row cannot contain a denormal when the instruction in a slot reads the row.
    pub(super) fn is(&self, row: usize, slot: u16) -> bool {
        match self.rows[row] {
            Known::Yes => true,
            Known::Behind(last) => last != u16::MAX && !(self.start..=last).contains(&slot),
            Known::No => false,
        }
    }
}

/// Returns bounds of aL over all iterations of all LOOPs. The bounds include 0, the value of aL outside loops.
pub(super) fn values_of_al(setup: &Setup) -> RangeInclusive<i32> {
    let constants = |of: fn(Role) -> bool| {
        let instructions = setup.slots().filter_map(|(_, slot)| slot.inst.as_ref().ok());
        instructions.filter_map(move |inst| match &inst.body {
            Body::Fc(fc) if of(fc.inst.op.role()) => Some(setup.ints[usize::from(fc.addr.int_addr)]),
            Body::Fc(_) | Body::Alu(_) | Body::Tex(_) => None,
        })
    };
    let steps = constants(|role| matches!(role, Role::End { .. })).map(|constant| i32::from(constant.step));
    let [down, up] = steps.fold([0, 0], |[down, up], step| [step.min(down), step.max(up)]);
    let loops = constants(|role| matches!(role, Role::Begin { .. }));
    let [least, most] = loops.fold([0, 0], |[least, most], constant| {
        let (start, count) = (i32::from(constant.start), i32::from(constant.count));
        [least.min(start + count * down), most.max(start + count * up)]
    });
    least..=most
}

/// Returns the rows of temporaries that an instruction may write. For each row, also returns whether the instruction
/// flushes denormals, and whether the instruction always writes all active lanes. `al` is the range of aL.
pub(super) fn written_by(inst: &Inst, al: &RangeInclusive<i32>) -> Vec<(usize, bool, bool)> {
    let mut rows = Vec::new();
    for channel in (0..4).filter(|channel| inst.common.writes_temp(*channel)) {
        let always = inst.common.predicate(channel).is_none();
        let (base, rel, flushed) = match &inst.body {
            Body::Alu(alu) => {
                let (base, rel) = alu.destination(channel);
                (base, rel, alu.omod(channel) != Omod::DISABLED)
            }
            Body::Tex(tex) => (tex.addr.dst_addr, tex.addr.dst_addr_rel, false),
            Body::Fc(_) => continue,
        };
        if rel {
            let temps = al.clone().take(TEMPORARIES);
            let temps = temps.map(|al| (i32::from(base) + al).rem_euclid(TEMPORARIES as i32) as usize);
            rows.extend(temps.map(|temp| (temp * 4 + channel, flushed, false)));
        } else {
            rows.push((usize::from(base) * 4 + channel, flushed, always));
        }
    }
    rows
}
