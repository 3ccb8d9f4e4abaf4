//! Wavefronts on all threads, and how what they leave comes together.
//!
//! A wavefront leaves its exports at their place among all lanes, if their target is one that the first wavefronts have
//! shown. The rest, which is little or rare, a batch leaves in an outcome of its own, and these are put in order at the
//! end. Nothing depends on who runs what.

use std::mem::{MaybeUninit, take};
use std::ops::Range;
use std::sync::atomic::{AtomicUsize, Ordering};

use reconverge_simt::workers::hand_out;
use reconverge_simt::{Silent, Trap};

use super::Fast;
use super::run::{Counts, Runner};
use crate::code::ExportKind;
use crate::launch::{Exported, LANES, MemoryOutcome, Outcome};
use crate::reference::{Cause, Wave};
use crate::run::Origin;

/// Wavefronts that a thread takes at a time.
pub(super) const BATCH: usize = 16;

/// Wavefronts that run before all others, so that most export targets are known.
pub(super) const FIRST: usize = 4;

/// The place of a batch among all lanes.
struct Place<'a> {
    killed: &'a mut [bool],
    exports: Vec<Part<'a>>,
}

/// The batch's part of an [`Exported`], of which nobody has written anything before.
struct Part<'a> {
    kind: ExportKind,
    base: u16,
    values: &'a mut [MaybeUninit<[u32; 4]>],
    written: &'a mut [MaybeUninit<u8>],
}

impl Part<'_> {
    /// Takes what the wavefront at `lanes` of the batch has left: writes each of these lanes.
    fn take(&mut self, wave: &Wave, lanes: Range<usize>) {
        let nothing = ([[0; 4]; LANES], [0; LANES]);
        let (values, written) = wave.exported(self.kind, self.base).unwrap_or(nothing);
        self.values[lanes.clone()].write_copy_of_slice(&values[..lanes.len()]);
        self.written[lanes.clone()].write_copy_of_slice(&written[..lanes.len()]);
    }
}

/// Runs the wavefronts at `places`: all that follow those whose results are in `outcome`, which has no more lanes.
///
/// # Errors
/// The first trap in the order of lanes.
pub(super) fn run(
    origin: &Origin,
    fast: &Fast,
    places: &[usize],
    outcome: &mut Outcome,
) -> Result<Counts, Trap<Cause>> {
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
    let lanes = BATCH * origin.width();
    let mut batches: Vec<(&[usize], Place<'_>)> = places
        .chunks(BATCH)
        .zip(killed[start..].chunks_mut(lanes))
        .map(|(places, killed)| (places, Place { killed, exports: Vec::with_capacity(exports.len()) }))
        .collect();
    for Exported { kind, base, values, written } in &mut exports {
        let values = values.spare_capacity_mut()[..total - start].chunks_mut(lanes);
        let lists = values.zip(written.spare_capacity_mut()[..total - start].chunks_mut(lanes));
        for ((_, place), (values, written)) in batches.iter_mut().zip(lists) {
            place.exports.push(Part { kind: *kind, base: *base, values, written });
        }
    }
    // Nobody needs to know what comes behind a trap.
    let trapped = AtomicUsize::new(usize::MAX);
    let work = |worker: &mut Worker<'_>, (number, (places, place)): (usize, (&[usize], Place<'_>))| {
        let result = worker.batch(places, place, || trapped.load(Ordering::Relaxed) < number);
        if result.is_err() {
            trapped.fetch_min(number, Ordering::Relaxed);
        }
        result
    };
    let done = hand_out(
        rayon::current_num_threads(),
        batches.into_iter().enumerate(),
        || Worker::new(origin, fast),
        work,
    );
    let rests = done.results.into_iter().collect::<Result<Vec<_>, _>>()?;
    for Exported { values, written, .. } in &mut exports {
        // SAFETY: no batch trapped, so that none has stopped before its end, and `Part::take` has written each lane of
        // each wavefront from `start` on, of which there are enough for all lanes; there is room for them.
        unsafe {
            values.set_len(total);
            written.set_len(total);
        }
    }
    (outcome.killed, outcome.exports) = (killed, exports);
    for (first, rest) in (start..).step_by(lanes).zip(rests) {
        append(outcome, rest, first..total.min(first + lanes), total);
    }
    let mut counts = Runner::new(fast).counts();
    done.workers.into_iter().for_each(|worker| counts.add(&worker.runner.counts()));
    Ok(counts)
}

/// What a thread uses again for each of its batches.
struct Worker<'a> {
    runner: Runner<'a>,
    wave: Wave,
}

impl<'a> Worker<'a> {
    fn new(origin: &Origin, fast: &'a Fast) -> Worker<'a> {
        Worker { runner: Runner::new(fast), wave: origin.wave(0, fast.room()) }
    }

    /// Runs a batch, until `stop` says that nobody needs it: that one before has trapped. Gives what has no place.
    fn batch(
        &mut self,
        starts: &[usize],
        mut place: Place<'_>,
        stop: impl Fn() -> bool,
    ) -> Result<Outcome, Trap<Cause>> {
        let Place { killed, exports } = &mut place;
        let mut rest = Outcome::default();
        for start in starts {
            if stop() {
                break;
            }
            self.wave.restart(*start);
            self.runner.finish(&mut self.wave, &mut Silent)?;
            let own = rest.killed.len()..rest.killed.len() + self.wave.count;
            exports.iter_mut().for_each(|part| part.take(&self.wave, own.clone()));
            let others = |kind, base| !exports.iter().any(|part| (part.kind, part.base) == (kind, base));
            self.wave.leave_exports_to(&mut rest, killed.len(), others);
            self.wave.leave_others_to(&mut rest);
        }
        let ended = take(&mut rest.killed);
        killed[..ended.len()].copy_from_slice(&ended);
        Ok(rest)
    }
}

/// Adds what a batch of these lanes, of `total`, left besides what is in its place.
fn append(outcome: &mut Outcome, mut rest: Outcome, lanes: Range<usize>, total: usize) {
    outcome.add_counts(&rest);
    for exported in &rest.exports {
        let whole = outcome.export_mut(exported.kind, exported.base, total);
        whole.values[lanes.clone()].copy_from_slice(&exported.values[..lanes.len()]);
        whole.written[lanes.clone()].copy_from_slice(&exported.written[..lanes.len()]);
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
