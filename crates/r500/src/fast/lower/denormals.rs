//! Rows in which no denormal can be, so that sums need not flush their sources.

use crate::group::ROWS;
use crate::inst::{Body, Inst, SLOTS, TEMPORARIES};
use crate::setup::Setup;
use crate::words::Omod;

/// Rows of temporaries and outputs in which no denormal can be.
///
/// All that is written there comes from arithmetic, which flushes. Inputs may bring denormals; they are gone where all
/// lanes overwrite them in the instructions before the first one of flow control.
pub(super) struct Normal {
    rows: Vec<Known>,
    /// The first slot.
    start: u16,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Known {
    /// Everywhere.
    Yes,
    /// Everywhere but from the first slot to this one.
    Behind(u16),
    No,
}

impl Normal {
    pub(super) fn new(setup: &Setup, inputs: &mut dyn Iterator<Item = usize>) -> Normal {
        let mut normal = Normal { rows: vec![Known::Yes; ROWS], start: setup.start };
        inputs.for_each(|temp| normal.rows[temp * 4..temp * 4 + 4].fill(Known::Behind(u16::MAX)));
        for slot in setup.start..SLOTS as u16 {
            let Some(Ok(inst)) = setup.slot(slot).map(|slot| slot.inst.as_ref()) else { break };
            if matches!(inst.body, Body::Fc(_)) {
                break;
            }
            for (row, flushed, always) in written_by(inst) {
                if flushed && always && normal.rows[row] == Known::Behind(u16::MAX) {
                    normal.rows[row] = Known::Behind(slot);
                }
            }
            if slot == setup.end {
                break;
            }
        }
        for (_, slot) in setup.slots() {
            let written = slot.inst.iter().flat_map(written_by);
            written.filter(|(_, flushed, _)| !flushed).for_each(|(row, ..)| normal.rows[row] = Known::No);
        }
        normal
    }

    /// Whether no denormal can be in a row when the instruction in a slot reads it.
    pub(super) fn is(&self, row: usize, slot: u16) -> bool {
        match self.rows[row] {
            Known::Yes => true,
            Known::Behind(last) => last != u16::MAX && !(self.start..=last).contains(&slot),
            Known::No => false,
        }
    }
}

/// Rows of temporaries that an instruction writes, whether denormals are flushed then, and whether all active lanes write
/// them.
pub(super) fn written_by(inst: &Inst) -> Vec<(usize, bool, bool)> {
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
            rows.extend((0..TEMPORARIES).map(|temp| (temp * 4 + channel, flushed, false)));
        } else {
            rows.push((usize::from(base) * 4 + channel, flushed, always));
        }
    }
    rows
}
