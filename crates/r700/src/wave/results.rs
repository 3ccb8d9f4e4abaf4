//! Adds the results of an ended wavefront to the outcome of the launch.

use reconverge_simt::registers::from_rows;
use reconverge_simt::{Lane, Level, Mask};

use super::Wave;
use crate::chip::LANES;
use crate::code::ExportKind;
use crate::memory::{Private, Simd};
use crate::outcome::{MemoryOutcome, Outcome};

/// The words of each set of lanes of a quad, one word per lane. If a lane is in the set, all bits of the word are set.
/// Otherwise, the lane's word is 0. The index is the set as a bit mask.
const QUADS: [[u32; 4]; 16] = {
    let mut all = [[0; 4]; 16];
    let mut set = 0;
    while set < 16 {
        let mut lane = 0;
        while lane < 4 {
            all[set][lane] = if set >> lane & 1 != 0 { u32::MAX } else { 0 };
            lane += 1;
        }
        set += 1;
    }
    all
};

/// Values that one export target has received.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Target {
    pub(crate) values: Box<[[u32; LANES]; 4]>,
    pub(crate) written: [Mask; 4],
}

impl Default for Target {
    fn default() -> Self {
        Target { values: Box::new([[0; LANES]; 4]), written: [Mask::NONE; 4] }
    }
}

/// Export targets, sorted by kind and base. The list reuses the memory of an earlier wavefront's targets.
#[derive(Clone, Debug, Default)]
pub(crate) struct Targets {
    targets: Vec<((ExportKind, u16), Target)>,
    spare: Vec<Target>,
}

impl PartialEq for Targets {
    fn eq(&self, other: &Targets) -> bool {
        self.targets == other.targets
    }
}

impl Targets {
    /// Returns the target of this kind and base. If the target does not exist, adds a target with zeros.
    pub(crate) fn get_mut(&mut self, kind: ExportKind, base: u16) -> &mut Target {
        let place = self.targets.binary_search_by_key(&(kind, base), |(key, _)| *key);
        let place = place.unwrap_or_else(|place| {
            let mut target = self.spare.pop().unwrap_or_default();
            target.written = [Mask::NONE; 4];
            *target.values = [[0; LANES]; 4];
            self.targets.insert(place, ((kind, base), target));
            place
        });
        &mut self.targets[place].1
    }

    fn get(&self, kind: ExportKind, base: u16) -> Option<&Target> {
        self.iter().find(|(key, _)| *key == (kind, base)).map(|(_, target)| target)
    }

    fn iter(&self) -> impl Iterator<Item = ((ExportKind, u16), &Target)> {
        self.targets.iter().map(|(key, target)| (*key, target))
    }

    /// Removes all targets, and keeps the memory of the targets for reuse.
    pub(crate) fn clear(&mut self) {
        self.spare.extend(self.targets.drain(..).map(|(_, target)| target));
    }
}

impl Target {
    /// Stores component `chan` of the lanes `lanes` in a column. All other lanes of the column receive zero.
    fn put(&self, chan: usize, lanes: Mask, column: &mut [u32]) {
        let values = &self.values[chan][..column.len()];
        if lanes == Mask::first(column.len()) {
            column.copy_from_slice(values);
            return;
        }
        let (quads, rest) = column.as_chunks_mut();
        for (number, (words, values)) in quads.iter_mut().zip(values.as_chunks::<4>().0).enumerate() {
            let masks = QUADS[(lanes.0 >> (4 * number)) as usize % 16];
            *words = [0, 1, 2, 3].map(|lane| values[lane] & masks[lane]);
        }
        let first = 4 * quads.len();
        for (lane, word) in rest.iter_mut().enumerate().map(|(at, word)| (first + at, word)) {
            *word = if lanes.has(Lane(lane as u8)) { values[lane] } else { 0 };
        }
    }

    /// For each lane in `kept`, returns the lane's values, and a bit mask of the components that the lane has written.
    /// For lanes outside of `kept`, the values and the mask are 0.
    fn by_lane(&self, kept: Mask, level: Option<Level>) -> ([[u32; 4]; LANES], [u8; LANES]) {
        let (mut values, mut written) = ([[0; 4]; LANES], [0; LANES]);
        self.put_by_lane(kept, (&mut values, &mut written), level);
        (values, written)
    }

    /// For each lane in `kept`, stores the lane's values, and a bit mask of the components that the lane has written.
    /// Before the call, both lists must contain only zeros.
    fn put_by_lane(&self, kept: Mask, (values, written): (&mut [[u32; 4]], &mut [u8]), level: Option<Level>) {
        let lanes = self.written.map(|lanes| lanes & kept);
        // The row of a component that no lane has written contains zeros.
        let all = Mask::first(values.len());
        if self.written == lanes && lanes.iter().all(|lanes| *lanes == all || !lanes.any()) {
            from_rows(level, self.values.each_ref(), values);
            written.fill((0..4).map(|chan| u8::from(lanes[chan] == all) << chan).sum());
            return;
        }
        for ((chan, row), lanes) in self.values.iter().enumerate().zip(lanes) {
            for lane in lanes.lanes() {
                values[lane.index()][chan] = row[lane.index()];
                written[lane.index()] |= 1 << chan;
            }
        }
    }
}

impl Wave {
    /// Adds the results of this wavefront to the launch's outcome. Returns the shared state with which the next
    /// wavefront starts.
    pub fn finish(mut self, outcome: &mut Outcome) -> Simd {
        let lanes = self.launch.lanes;
        self.add_to(outcome, lanes, None);
        self.simd
    }

    /// For each lane, returns the values that the lane has exported to a target, and a bit mask of the exported
    /// components. If a lane has exported nothing, its values and its mask are 0. Pixels of lanes that are not valid do
    /// not reach the framebuffer. This rule also applies to a lane that was killed after its export (MAN p. 47).
    pub(crate) fn exported(
        &self,
        kind: ExportKind,
        base: u16,
        level: Level,
    ) -> Option<([[u32; 4]; LANES], [u8; LANES])> {
        Some(self.exports.get(kind, base)?.by_lane(self.kept(kind), Some(level)))
    }

    /// Returns the lanes that can export to targets of this kind. Exports of other lanes have no effect.
    fn kept(&self, kind: ExportKind) -> Mask {
        if kind == ExportKind::Pixel { self.flow.valid() } else { Mask(u64::MAX) }
    }

    /// Adds the results of this wavefront to an outcome of `lanes` lanes. The outcome already contains the results of
    /// earlier wavefronts. Uses code compiled for `level`. If `level` is `None`, uses code that runs on every
    /// processor.
    pub(crate) fn add_to(&mut self, outcome: &mut Outcome, lanes: usize, level: Option<Level>) {
        self.add_exports_to(outcome, lanes, level, |_, _| true);
        self.add_others_to(outcome);
    }

    /// Adds the exports to the targets for which `to` returns `true`.
    pub(crate) fn add_exports_to(
        &self,
        outcome: &mut Outcome,
        lanes: usize,
        level: Option<Level>,
        mut to: impl FnMut(ExportKind, u16) -> bool,
    ) {
        let own = outcome.killed.len()..outcome.killed.len() + self.count;
        if self.launch.by_column {
            for ((kind, base), target) in self.exports.iter() {
                let columns = outcome.columns_mut(kind, base, lanes);
                let written = self.kept(kind);
                for (chan, column) in columns.components.iter_mut().enumerate() {
                    let lanes = target.written[chan] & written & Mask::first(self.count);
                    columns.written |= lanes.any();
                    target.put(chan, lanes, &mut column[own.clone()]);
                }
            }
            return;
        }
        for ((kind, base), target) in self.exports.iter().filter(|((kind, base), _)| to(*kind, *base)) {
            let exported = outcome.export_mut(kind, base, lanes);
            let place = (&mut exported.values[own.clone()], &mut exported.written[own.clone()]);
            target.put_by_lane(self.kept(kind) & Mask::first(self.count), place, level);
        }
    }

    /// Adds the results of this wavefront to the outcome, except the exports.
    pub(crate) fn add_others_to(&mut self, outcome: &mut Outcome) {
        let valid = self.flow.valid();
        let place = outcome.killed.len();
        let memory = &mut outcome.memory;
        match valid == Mask::first(self.count) {
            true => outcome.killed.resize(place + self.count, false),
            false => {
                let quads = (0..self.count.div_ceil(4)).map(|quad| (valid.0 >> (4 * quad)) as usize % 16);
                outcome.killed.extend(quads.flat_map(|quad| QUADS[quad].map(|mask| mask == 0)));
                outcome.killed.truncate(place + self.count);
            }
        }
        let keep = |records: &mut Vec<Vec<u32>>, space: &Private| {
            records.resize(place, Vec::new());
            records.extend((0..self.count).map(|lane| space.lane(Lane(lane as u8))));
        };
        let MemoryOutcome { scratch, reduction, ring, streams, scatter: _, global: _ } = memory;
        let spaces = &self.spaces;
        let own = [(scratch, &spaces.scratch), (reduction, &spaces.reduction), (ring, &spaces.ring)];
        for (records, space) in own.into_iter().chain(streams.iter_mut().zip(&spaces.streams)) {
            if !records.is_empty() || space.used() != 0 {
                keep(records, space);
            }
        }
        outcome.emissions.append(&mut self.emissions);
        outcome.statistics.add(&self.statistics);
        if self.launch.reports {
            outcome.fidelity.add(&self.fidelity);
        }
        outcome.stack_needed = outcome.stack_needed.max(self.flow.stack_needed());
        outcome.finding = outcome.finding.or(self.flow.open().filter(|_| self.strict()));
    }
}
