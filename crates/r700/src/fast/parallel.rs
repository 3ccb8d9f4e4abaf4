//! Distributes wavefronts to the threads of the host in batches, and merges the results of the batches.
//!
//! A target of an earlier wavefront's export has a list. The list has an entry for every lane of the launch. Threads
//! write later exports to this target directly to the list. All other results are small or rare. Each batch collects
//! its other results in a separate outcome. At the end, the engine adds the outcomes of the batches to the outcome of
//! the launch, in the order of the batches. Therefore the results do not depend on the assignment of batches to
//! threads.

use std::mem::{MaybeUninit, take};
use std::ops::Range;

use reconverge_simt::workers::try_hand_out;
use reconverge_simt::{GroupTrap, Level, Silent, stop};

use super::Fast;
use super::counts::Counts;
use super::runner::Runner;
use super::straight::Straight;
use crate::cause::Cause;
use crate::chip::LANES;
use crate::code::ExportKind;
use crate::outcome::{Exported, MemoryOutcome, Outcome};
use crate::wave::{Origin, Starts, Wave};

/// Number of wavefronts in a batch.
pub(super) const BATCH: usize = 16;

/// Number of wavefronts that run first, before the threads start. The exports of these wavefronts create most export
/// targets.
pub(super) const FIRST: usize = 4;

/// Outputs of a batch, as slices of the lists for all lanes.
struct BatchOutputs<'a> {
    killed: &'a mut [bool],
    exports: Vec<Part<'a>>,
}

/// The part of an [`Exported`] that belongs to a batch. This part is not yet initialised.
struct Part<'a> {
    kind: ExportKind,
    base: u16,
    values: &'a mut [MaybeUninit<[u32; 4]>],
    written: &'a mut [MaybeUninit<u8>],
}

impl Part<'_> {
    /// Writes the exports of a wavefront. `lanes` are the positions of the wavefront's lanes in the batch. Initialises
    /// the entries of all these lanes.
    fn take(&mut self, wave: &Wave, lanes: Range<usize>, level: Level) {
        let nothing = ([[0; 4]; LANES], [0; LANES]);
        let (values, written) = wave.exported(self.kind, self.base, level).unwrap_or(nothing);
        self.values[lanes.clone()].write_copy_of_slice(&values[..lanes.len()]);
        self.written[lanes.clone()].write_copy_of_slice(&written[..lanes.len()]);
    }

    /// Copies the exports of the lanes `lanes` from an outcome to the batch. Initialises the entries of these lanes in
    /// the batch.
    fn take_from(&mut self, outcome: &Outcome, lanes: Range<usize>) {
        let (values, written) = (&mut self.values[lanes.clone()], &mut self.written[lanes.clone()]);
        match outcome.export(self.kind, self.base) {
            Some(exported) => {
                values.write_copy_of_slice(&exported.values[lanes.clone()]);
                written.write_copy_of_slice(&exported.written[lanes]);
            }
            None => {
                values.fill(MaybeUninit::new([0; 4]));
                written.fill(MaybeUninit::new(0));
            }
        }
    }
}

/// Runs the wavefronts at `places`. `places` must list all wavefronts of the launch whose results are not yet in
/// `outcome`.
///
/// # Errors
/// If wavefronts trap, returns the trap of the wavefront with the lowest lanes.
pub(super) fn run(
    origin: &Origin,
    fast: &Fast,
    places: &[usize],
    outcome: &mut Outcome,
) -> Result<Counts, GroupTrap<Cause>> {
    let total = origin.launch.lanes;
    let start = outcome.killed.len();
    assert_eq!(places.len(), (total - start).div_ceil(origin.width()), "these are all the others");
    let mut killed = take(&mut outcome.killed);
    killed.resize(total, false);
    let mut exports = take(&mut outcome.exports);
    for Exported { values, written, .. } in &mut exports {
        assert_eq!((values.len(), written.len()), (start, start), "no lane has a place yet");
        values.reserve_exact(total - start);
        written.reserve_exact(total - start);
    }
    for column in outcome.columns.iter_mut().flat_map(|columns| &mut columns.components) {
        column.resize(total, 0);
    }
    let lanes = BATCH * origin.width();
    let mut batches: Vec<(&[usize], BatchOutputs<'_>)> = places
        .chunks(BATCH)
        .zip(killed[start..].chunks_mut(lanes))
        .map(|(places, killed)| (places, BatchOutputs { killed, exports: Vec::with_capacity(exports.len()) }))
        .collect();
    for Exported { kind, base, values, written } in &mut exports {
        let values = values.spare_capacity_mut()[..total - start].chunks_mut(lanes);
        let lists = values.zip(written.spare_capacity_mut()[..total - start].chunks_mut(lanes));
        for ((_, place), (values, written)) in batches.iter_mut().zip(lists) {
            place.exports.push(Part { kind: *kind, base: *base, values, written });
        }
    }
    let done = try_hand_out(
        origin.options.workers(),
        batches.into_iter(),
        || Worker::new(origin, fast),
        |worker, (places, place)| worker.batch(places, place),
    )?;
    for Exported { values, written, .. } in &mut exports {
        // SAFETY: no batch trapped, so every batch has ended or stopped. `Part::take` or `Part::take_from` has written
        // the entry of every lane from `start` to the last lane of the launch. The lists have memory for these entries.
        unsafe {
            values.set_len(total);
            written.set_len(total);
        }
    }
    (outcome.killed, outcome.exports) = (killed, exports);
    for (first, rest) in (start..).step_by(lanes).zip(done.results) {
        append(outcome, rest, first..total.min(first + lanes), total);
    }
    let mut counts = Counts::new(fast);
    done.workers.iter().for_each(|worker| counts.add(worker.runner.counts()));
    Ok(counts)
}

/// State of a host thread. The thread reuses this state for all its batches.
struct Worker<'a> {
    fast: &'a Fast,
    runner: Runner<'a>,
    wave: Box<Wave>,
    straight: Option<&'a Straight>,
    starts: Starts<'a>,
}

impl<'a> Worker<'a> {
    fn new(origin: &'a Origin, fast: &'a Fast) -> Worker<'a> {
        let (wave, counts) = fast.wave(origin);
        let runner = Runner::new(fast, &origin.launch.environment, counts);
        let starts = Starts::of(&origin.launch, Some(&fast.read));
        Worker { fast, runner, wave, straight: fast.straight(origin), starts }
    }

    /// Runs a batch. Returns the results that are not stored in a slice of `place`.
    fn batch(&mut self, starts: &[usize], mut place: BatchOutputs<'_>) -> Result<Outcome, GroupTrap<Cause>> {
        let BatchOutputs { killed, exports } = &mut place;
        let level = self.fast.level;
        let mut rest = Outcome::default();
        for start in starts {
            let first = rest.killed.len();
            if let Some(straight) = self.straight
                && !stop::asked()
                && self.runner.run_straight(
                    straight,
                    &self.starts,
                    (&mut self.wave, *start),
                    (&mut rest, killed.len()),
                )
            {
                let own = first..rest.killed.len();
                exports.iter_mut().for_each(|part| part.take_from(&rest, own.clone()));
                continue;
            }
            self.wave.restart_with(*start, &self.starts, Some(level));
            let end = self.runner.run_whole(self.fast, &mut self.wave, &mut Silent);
            end.map_err(|trap| self.wave.trapped(trap))?;
            let own = first..first + self.wave.count;
            exports.iter_mut().for_each(|part| part.take(&self.wave, own.clone(), level));
            let others = |kind, base| !exports.iter().any(|part| (part.kind, part.base) == (kind, base));
            self.wave.add_exports_to(&mut rest, killed.len(), Some(level), others);
            self.wave.add_others_to(&mut rest);
        }
        rest.exports.retain(|of| !exports.iter().any(|part| (part.kind, part.base) == (of.kind, of.base)));
        let ended = take(&mut rest.killed);
        killed[..ended.len()].copy_from_slice(&ended);
        Ok(rest)
    }
}

/// Adds the results `rest` of a batch to `outcome`. `rest` contains only the results that are not in the slices of the
/// batch. `lanes` are the lanes of the batch. The launch has `total` lanes.
fn append(outcome: &mut Outcome, mut rest: Outcome, lanes: Range<usize>, total: usize) {
    outcome.add_counts(&rest);
    for exported in &rest.exports {
        let whole = outcome.export_mut(exported.kind, exported.base, total);
        whole.values[lanes.clone()].copy_from_slice(&exported.values[..lanes.len()]);
        whole.written[lanes.clone()].copy_from_slice(&exported.written[..lanes.len()]);
    }
    for columns in &rest.columns {
        let whole = outcome.columns_mut(columns.kind, columns.base, total);
        whole.written |= columns.written;
        for (whole, column) in whole.components.iter_mut().zip(&columns.components) {
            whole[lanes.clone()].copy_from_slice(&column[..lanes.len()]);
        }
    }
    outcome.emissions.append(&mut rest.emissions);
    let MemoryOutcome { scratch, reduction, ring, streams, scatter: _, global: _ } = &mut outcome.memory;
    let whole = [scratch, reduction, ring].into_iter().chain(streams);
    let MemoryOutcome { scratch, reduction, ring, streams, scatter: _, global: _ } = &mut rest.memory;
    let batch = [scratch, reduction, ring].into_iter().chain(streams);
    for (whole, batch) in whole.zip(batch) {
        if !whole.is_empty() || !batch.is_empty() {
            whole.resize(lanes.start, Vec::new());
            whole.append(batch);
            whole.resize(lanes.end, Vec::new());
        }
    }
}
