//! Wavefronts on all threads, and how what they leave comes together.
//!
//! A batch of wavefronts leaves its results in an outcome of its own, which is as big as a processor's cache and is used
//! again by the next batch. From there exports and killed lanes go to their place among all lanes at once, on the same
//! thread; the rest, which is little or rare, is put in order at the end. Nothing depends on who runs what.

use std::mem::take;
use std::ops::Range;
use std::sync::atomic::{AtomicUsize, Ordering};

use reconverge_simt::workers::hand_out;
use reconverge_simt::{Silent, Trap};

use super::Fast;
use super::run::{Counts, Runner};
use crate::code::ExportKind;
use crate::launch::{Exported, MemoryOutcome, Outcome};
use crate::reference::{Cause, Wave};
use crate::run::Origin;

/// Wavefronts that a thread runs before it hands on their results.
pub(super) const BATCH: usize = 64;

/// Wavefronts that run before all others, so that most export targets are known.
pub(super) const FIRST: usize = 4;

/// The place of a batch among all lanes.
struct Place<'a> {
    killed: &'a mut [bool],
    exports: Vec<Part<'a>>,
}

/// The batch's part of an [`Exported`].
struct Part<'a> {
    kind: ExportKind,
    base: u16,
    values: &'a mut [[u32; 4]],
    written: &'a mut [u8],
}

/// Runs the wavefronts at `places`, which follow those whose results are in `outcome`.
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
    let mut killed = take(&mut outcome.killed);
    killed.resize(total, false);
    let mut exports = take(&mut outcome.exports);
    let lanes = BATCH * origin.width();
    let mut batches: Vec<(&[usize], Place<'_>)> = places
        .chunks(BATCH)
        .zip(killed[start..].chunks_mut(lanes))
        .map(|(places, killed)| (places, Place { killed, exports: Vec::with_capacity(exports.len()) }))
        .collect();
    for Exported { kind, base, values, written } in &mut exports {
        let lists = values[start..].chunks_mut(lanes).zip(written[start..].chunks_mut(lanes));
        for ((_, place), (values, written)) in batches.iter_mut().zip(lists) {
            place.exports.push(Part { kind: *kind, base: *base, values, written });
        }
    }
    // Nobody needs to know what comes behind a trap.
    let trapped = AtomicUsize::new(usize::MAX);
    let work = |worker: &mut Worker<'_>, (number, (places, place)): (usize, (&[usize], Place<'_>))| {
        let result = worker.batch(places, lanes, || trapped.load(Ordering::Relaxed) < number);
        if result.is_err() {
            trapped.fetch_min(number, Ordering::Relaxed);
            worker.outcome = Outcome::default();
        }
        result.map(|()| worker.hand_on(place))
    };
    let done = hand_out(batches.into_iter().enumerate(), || Worker::new(origin, fast), work).results;
    (outcome.killed, outcome.exports) = (killed, exports);
    let mut counts = Runner::new(fast).counts();
    for (number, done) in done.into_iter().enumerate() {
        let (rest, counted) = done?;
        let first = start + number * lanes;
        append(outcome, rest, first..total.min(first + lanes), total);
        counts.add(&counted);
    }
    Ok(counts)
}

/// What a thread uses again for each of its batches.
struct Worker<'a> {
    fast: &'a Fast,
    runner: Runner<'a>,
    wave: Wave,
    /// What the batch has left.
    outcome: Outcome,
}

impl<'a> Worker<'a> {
    fn new(origin: &Origin, fast: &'a Fast) -> Worker<'a> {
        let wave = origin.wave(0, fast.room());
        Worker { fast, runner: Runner::new(fast), wave, outcome: Outcome::default() }
    }

    /// Runs a batch of at most `lanes` lanes, until `stop` says that nobody needs it.
    fn batch(&mut self, places: &[usize], lanes: usize, stop: impl Fn() -> bool) -> Result<(), Trap<Cause>> {
        for place in places {
            if stop() {
                break;
            }
            self.wave.restart(*place);
            self.runner.finish(&mut self.wave, &mut Silent)?;
            self.wave.leave_to(&mut self.outcome, lanes);
        }
        Ok(())
    }

    /// Puts what the batch left in its place, and gives what has none. The lists of targets stay here, zero again.
    fn hand_on(&mut self, mut place: Place<'_>) -> (Outcome, Counts) {
        let mut rest = take(&mut self.outcome);
        let killed = take(&mut rest.killed);
        place.killed[..killed.len()].copy_from_slice(&killed);
        for mut exported in take(&mut rest.exports) {
            let own = |part: &&mut Part<'_>| (part.kind, part.base) == (exported.kind, exported.base);
            let Some(Part { values, written, .. }) = place.exports.iter_mut().find(own) else {
                rest.exports.push(exported);
                continue;
            };
            let lanes = values.len();
            values.copy_from_slice(&exported.values[..lanes]);
            written.copy_from_slice(&exported.written[..lanes]);
            exported.values.fill([0; 4]);
            exported.written.fill(0);
            self.outcome.exports.push(exported);
        }
        (rest, std::mem::replace(&mut self.runner, Runner::new(self.fast)).counts())
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
