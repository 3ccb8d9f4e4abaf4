//! Distributes the lanes of a draw over several threads. Each pixel receives its fragments in the order of their
//! primitives.
//!
//! ```text
//! waiting: 5 6 7      taken: 2 (shaded) 3 (being shaded) 4 (being shaded)      done: 0 1
//! ```
//! The work is split into pieces. Threads take the pieces in order. A piece is a batch of lanes, or a part of a large
//! primitive. A thread first shades its piece. The thread then merges its piece as soon as two conditions are true: all
//! earlier pieces are shaded, and the earlier pieces that may contain the same pixels are merged. Parts of one
//! primitive have no pixel in common. The results in memory therefore do not depend on the number of threads. If a
//! program stops with an error, no later piece is merged.
//!
//! The depth test may remove a hidden lane before the lane is shaded. As on a chip, this removal depends on which
//! pieces are already merged. The removal does not change memory, because the results of a hidden lane are never
//! stored.

use std::cell::Cell;
use std::collections::VecDeque;
use std::mem::{forget, replace, take};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::{hint, thread};

use rayon::ScopeFifo;
use reconverge_simt::level::Level;
use reconverge_simt::pool;
use reconverge_simt::vram::Vram;

use crate::columns::{Append, InputSet, Slopes, Weights};
use crate::kernels::Kernels;
use crate::lanes::{Lanes, Work};
use crate::merge::Merge;
use crate::setup::{Corner, Quad};
use crate::shading::{Shading, Stopped};
use crate::span::Strip;
use crate::state::{Batch, Draw, Fragments, LaneColumn, LaneWords, Shaded, Surface, samples_of_alpha};
use crate::vertex::has;

/// Maximum number of unmerged pieces per thread.
const EACH: usize = 4;

/// A waiting thread checks a condition repeatedly. During the first `LOOKS` checks, the thread spins. During the next
/// `YIELDS` checks, the thread yields to other threads. After these checks, the thread sleeps. Spinning comes first,
/// because waking a thread takes longer than shading a small piece.
const LOOKS: u32 = 200;
const YIELDS: u32 = 100;

/// If a primitive adds at least this number of quads to a batch, the code may remove hidden quads before shading.
const FEW: usize = 16;

/// Memory for batches of lanes. A thread keeps this memory for later draws. In a small draw, allocations would take
/// much of the time.
#[derive(Default)]
pub(crate) struct BatchRoom {
    pub(crate) batch: Batch,
    pub(crate) weights: Weights,
    quads: Vec<Quad>,
    /// Quads with their depths.
    sight: Batch,
    /// The quads of `sight` that are not hidden.
    seen: Vec<Quad>,
}

thread_local! {
    /// The memory that the thread's last draw or piece used.
    static ROOM: Cell<Option<Box<BatchRoom>>> = const { Cell::new(None) };
}

impl BatchRoom {
    /// Takes the memory of this thread for a draw.
    pub(crate) fn take(draw: &Draw) -> Box<BatchRoom> {
        let mut room = ROOM.take().unwrap_or_default();
        room.batch.start(draw);
        room
    }

    /// Stores the memory for later draws of this thread.
    pub(crate) fn keep(self: Box<BatchRoom>) {
        ROOM.set(Some(self));
    }
}

/// The state that all threads of a draw share.
pub(crate) struct Batches<'a> {
    pub(crate) draw: &'a Draw,
    pub(crate) memory: Vram<'a>,
    pub(crate) program: &'a dyn Shading,
    /// The kernels that merge rows of lanes, or `None` if the draw has no kernels.
    pub(crate) kernels: Option<&'a Kernels<'a>>,
    /// Number of samples per pixel of the surfaces.
    pub(crate) samples: usize,
    /// Mask of the components of the position to compute. The mask contains the components that the program reads. If a
    /// test reads depth, the mask also contains depth.
    pub(crate) reads: u8,
    /// Whether lanes that fail the depth test need not be shaded.
    pub(crate) may_skip_hidden: bool,
    pub(crate) queue: Queue,
}

/// The pieces of a draw, which all threads share.
#[derive(Default)]
pub(crate) struct Queue {
    /// Whether most lanes of the last merged piece were hidden.
    hides_most: AtomicBool,
    line: Mutex<Pieces>,
    /// Copies of [`Pieces::shaded`] and [`Pieces::merged`].
    shaded: AtomicUsize,
    merged: AtomicUsize,
    /// If a thread sleeps, each change of `shaded` or `merged` notifies this variable.
    changed: Condvar,
}

/// Work for one thread.
pub(crate) enum Piece {
    /// Lanes of any primitives. Other pieces may contain the pixels of these lanes.
    Batch(Batch),
    /// Rows of a large primitive.
    Part(Level, Arc<Slopes>, Vec<Strip>),
}

/// The pieces of a draw that are not merged yet, and the number of merged pieces.
#[derive(Default)]
struct Pieces {
    /// Pieces that no thread has taken. The number is the number of earlier pieces that must be merged before the
    /// piece.
    waiting: VecDeque<(Piece, usize)>,
    /// Progress of the pieces that threads have taken. The first entry belongs to the first piece that is not merged.
    taken: VecDeque<Progress>,
    /// Number of pieces before the first piece that is not shaded.
    shaded: usize,
    /// Number of pieces before the first piece that is not merged.
    merged: usize,
    /// Number of pieces that were added before the current set of pieces. The pieces of a set have no pixel in common.
    before: usize,
    /// Number of sleeping threads.
    sleepers: usize,
    /// Number of running jobs. A job shades pieces until no piece is waiting.
    helpers: usize,
    /// Number of samples that passed the tests.
    passed: u64,
    /// Whether merging has stopped.
    has_stopped: bool,
    /// The program error that stopped merging. If no error stopped merging, the field is `None`.
    stopped: Option<Stopped>,
    /// Empty batches whose memory is reused.
    spare: Vec<Batch>,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Progress {
    BeingShaded,
    Shaded,
    Merged,
}

impl Pieces {
    /// Returns the number of pieces that are not merged.
    fn outstanding(&self) -> usize {
        self.waiting.len() + self.taken.len()
    }

    /// Records the progress of the piece with this number.
    fn note(&mut self, number: usize, progress: Progress) {
        self.taken[number - self.merged] = progress;
        while self.taken.pop_front_if(|first| *first == Progress::Merged).is_some() {
            self.merged += 1;
        }
        let after = self.taken.iter().take_while(|progress| **progress != Progress::BeingShaded);
        self.shaded = self.merged + after.count();
    }

    /// Discards all pieces that no thread has taken. After this call, no thread merges a piece.
    fn stop(&mut self, why: Option<Stopped>) {
        self.waiting.clear();
        self.has_stopped = true;
        self.stopped = self.stopped.take().or(why);
    }
}

impl Batches<'_> {
    /// Adds the quads of a primitive to a batch. `inputs` states whether the program's inputs are computed.
    pub(crate) fn append(
        &self,
        level: Level,
        slopes: &Slopes,
        quads: &[Quad],
        inputs: bool,
        room: &mut BatchRoom,
    ) {
        let Batches { draw, reads, memory, .. } = *self;
        let BatchRoom { batch, weights, sight, seen, .. } = room;
        let mut quads = quads;
        if let (Some(kernels), Some(depth)) = (self.kernels, &draw.depth)
            && inputs
            && quads.len() >= FEW
            && self.queue.hides_most.load(Ordering::Relaxed)
        {
            // Removes hidden quads.
            sight.start(draw);
            level.run(Append {
                batch: sight,
                weights,
                slopes,
                quads,
                draw,
                reads: 4,
                inputs: InputSet::None,
                place: [0; 2],
                quads_too: true,
            });
            if memory.has_fills() {
                settle_rows(&depth.surface, depth.format.bytes(), quads, memory);
            }
            seen.clear();
            kernels.see(&sight.fragments, seen);
            batch.skipped += 4 * (quads.len() - seen.len()) as u64;
            quads = seen;
        }
        batch.starts.push(batch.fragments.lanes);
        let (reads, inputs) = if inputs { (reads, InputSet::All) } else { (reads & 4, InputSet::None) };
        let place = [0; 2];
        level.run(Append { batch, weights, slopes, quads, draw, reads, inputs, place, quads_too: true });
    }

    /// Adds quads of a primitive whose pixels have several samples. `tested` states whether the depths of the samples
    /// are computed.
    pub(crate) fn append_samples(
        &self,
        level: Level,
        slopes: &Slopes,
        of: &Lanes<'_>,
        work: &[Work],
        tested: bool,
        room: &mut BatchRoom,
    ) {
        let Batches { draw, samples, reads, .. } = *self;
        let (multisample, shape) = (&draw.multisample, of.shape);
        let BatchRoom { batch, weights, sight, quads, .. } = room;
        let first = batch.fragments.lanes;
        batch.starts.push(first);
        // If samples are shaded separately, each iteration adds the quads of one sample.
        let at_sample = if multisample.shades_samples { multisample.at_sample } else { 0 };
        let position_at_sample = multisample.shades_samples && multisample.position.1;
        for run in work.chunk_by(|(.., one), (.., other)| one == other) {
            let (_, _, sample) = run[0];
            quads.clear();
            quads.extend(run.iter().map(|(quad, masks, _)| {
                let covered = (0..4).fold(0, |covered, lane| covered | u8::from(masks[lane] != 0) << lane);
                Quad { covered, ..*quad }
            }));
            let there = multisample.place(sample);
            let (centre, moved) = if position_at_sample { (0, reads) } else { (reads, 0) };
            let mut add = |reads: u8, inputs: InputSet, place: Corner, quads_too: bool| {
                let batch = &mut *batch;
                let append = Append { batch, weights, slopes, quads, draw, reads, inputs, place, quads_too };
                level.run(append);
            };
            add(centre, InputSet::Without(at_sample), [0; 2], true);
            if moved != 0 || at_sample != 0 {
                add(moved, InputSet::With(at_sample), there, false);
            }
            if multisample.shades_samples {
                batch.fragments.sample.resize(batch.fragments.lanes, sample as u8);
            }
            batch.fragments.samples.extend(run.iter().flat_map(|(_, masks, _)| masks));
            for (sample, depths) in batch.depths.iter_mut().enumerate().filter(|_| tested) {
                sight.start(draw);
                let (inputs, place) = (InputSet::None, multisample.place(sample));
                let batch = &mut *sight;
                level.run(Append {
                    batch,
                    weights,
                    slopes,
                    quads,
                    draw,
                    reads: 4,
                    inputs,
                    place,
                    quads_too: false,
                });
                depths.extend_from_slice(&sight.fragments.positions[2]);
            }
        }
        // Replaces the inputs and the position of partially covered pixels by the inputs and the position at the
        // centroid.
        let at_centroid = multisample.at_centroid & !multisample.at_sample;
        let position_at_centroid = multisample.position.0 && !position_at_sample;
        if at_centroid == 0 && !position_at_centroid {
            return;
        }
        let all = &mut batch.fragments;
        for (number, (quad, masks, _)) in work.iter().enumerate() {
            for (lane, mask) in masks.iter().enumerate() {
                let Some(sample) = multisample.centroid(*mask, samples) else { continue };
                let (x, y) = quad.pixel(lane);
                let place = multisample.place(sample);
                let weights = shape.weights(x, y, place);
                let lane = first + 4 * number + lane;
                let set = |columns: &mut [LaneColumn; 4], words: [u32; 4]| {
                    for (column, word) in columns.iter_mut().zip(words) {
                        if let Some(value) = Arc::make_mut(column).get_mut(lane) {
                            *value = word;
                        }
                    }
                };
                if position_at_centroid {
                    set(&mut all.positions, of.position((x, y), place, &weights));
                }
                for (number, (input, columns)) in draw.inputs.iter().zip(&mut all.inputs).enumerate() {
                    if has(at_centroid, number) {
                        set(columns, shape.value(input, &weights, of.size));
                    }
                }
            }
        }
    }

    /// Adds the quads of strips to a batch.
    pub(crate) fn append_strips(
        &self,
        level: Level,
        slopes: &Slopes,
        strips: &[Strip],
        room: &mut BatchRoom,
    ) {
        let mut quads = take(&mut room.quads);
        quads.clear();
        strips.iter().for_each(|strip| quads.extend(strip.quads()));
        self.append(level, slopes, &quads, true, room);
        room.quads = quads;
    }

    /// Shades and merges a batch on this thread. All earlier pieces must be merged. Returns the number of samples that
    /// passed.
    pub(crate) fn run(&self, batch: &Batch) -> Result<u64, Stopped> {
        let shaded = self.shade(&batch.fragments)?;
        let passed = self.merge(batch, &shaded, false);
        self.program.merged(shaded);
        Ok(passed)
    }

    /// Shades fragments. If alpha to coverage is on, the mask of samples includes the result of alpha to coverage.
    pub(crate) fn shade(&self, fragments: &Fragments) -> Result<Shaded, Stopped> {
        let mut shaded = self.program.run(fragments)?;
        let multisample = &self.draw.multisample;
        if multisample.alpha_to_coverage {
            let alpha = shaded.colors.first().and_then(|color| Some(&color.as_ref()?[3]));
            let mask = |lane: usize| {
                let alpha = alpha.and_then(|alpha| alpha.get(lane)).copied();
                samples_of_alpha(alpha.map_or(0., f32::from_bits), self.samples)
            };
            let mut masks: LaneWords = (0..fragments.lanes).map(mask).collect();
            if let Some(others) = &shaded.mask {
                masks.iter_mut().zip(others).for_each(|(mask, other)| *mask &= other);
            }
            shaded.mask = Some(masks);
        }
        if multisample.alpha_to_one {
            for color in shaded.colors.iter_mut().flatten() {
                color[3].clear();
                color[3].resize(fragments.lanes, 1f32.to_bits());
            }
        }
        Ok(shaded)
    }

    /// Merges a batch. If `uniform` is set, `shaded` contains one row of results, which applies to all lanes. Returns
    /// the number of samples that passed.
    pub(crate) fn merge(&self, batch: &Batch, shaded: &Shaded, uniform: bool) -> u64 {
        let Batches { draw, samples, memory, .. } = *self;
        if memory.has_fills() {
            self.settle(&batch.fragments.quads);
        }
        let merge = Merge { draw, samples, batch, shaded, uniform };
        let passed = match self.kernels {
            Some(kernels) => kernels.run(&merge, memory),
            None => merge.lanes(memory),
        };
        let lanes = batch.skipped + batch.fragments.lanes as u64;
        self.queue.hides_most.store(self.may_skip_hidden && 2 * passed < lanes, Ordering::Relaxed);
        passed
    }

    /// Finds the surface rows that these quads overlap. Writes outstanding fills to these rows.
    fn settle(&self, quads: &[Quad]) {
        let Batches { draw, samples, memory, .. } = *self;
        let depth = draw.depth.iter().map(|depth| (&depth.surface, depth.format.bytes()));
        let targets = draw.targets.iter();
        let targets = targets.map(|target| (&target.surface, usize::from(target.format.bytes)));
        for (surface, bytes) in depth.chain(targets) {
            match samples {
                1 if surface.order.scale() == [1, 1] => settle_rows(surface, bytes, quads, memory),
                _ => memory.settle(surface.range(bytes, samples)),
            }
        }
    }

    /// Adds the batch of `room` to the queue of pieces, which the threads of `scope` process. `room` receives an empty
    /// batch.
    ///
    /// # Errors
    /// Returns an error if the program has stopped.
    pub(crate) fn give<'scope>(
        &'scope self,
        room: &mut BatchRoom,
        scope: &ScopeFifo<'scope>,
    ) -> Result<(), Stopped> {
        let spare = self.line().spare.pop();
        let next = spare.unwrap_or_else(|| Batch::new(self.draw));
        let piece = Piece::Batch(replace(&mut room.batch, next));
        self.begin_set();
        self.add(piece, room, scope)
    }

    /// Begins a set of pieces that have no pixel in common.
    pub(crate) fn begin_set(&self) {
        let mut line = self.line();
        line.before = line.merged + line.outstanding();
    }

    /// Adds a piece of the current set to the queue, which the threads of `scope` process. If too many pieces are
    /// unmerged, this thread also shades pieces, with the memory of `room`. The batch of `room` must be empty.
    ///
    /// # Errors
    /// Returns an error if the program has stopped.
    pub(crate) fn add<'scope>(
        &'scope self,
        piece: Piece,
        room: &mut BatchRoom,
        scope: &ScopeFifo<'scope>,
    ) -> Result<(), Stopped> {
        let threads = pool::threads();
        let mut line = self.line();
        let before = line.before;
        line.waiting.push_back((piece, before));
        if line.helpers + 1 < threads {
            line.helpers += 1;
            scope.spawn_fifo(|_| self.help());
        }
        self.work_until(line, EACH * threads, room)
    }

    /// Waits until all pieces are merged. Returns the number of samples that passed. Uses the memory of `room`, whose
    /// batch must be empty.
    ///
    /// # Errors
    /// Returns an error if the program has stopped.
    pub(crate) fn finish(&self, room: &mut BatchRoom) -> Result<u64, Stopped> {
        self.work_until(self.line(), 0, room)?;
        // At the end of the scope, this thread sleeps until all helpers have ended. Most helpers end soon, so spinning
        // at this point usually avoids the sleep.
        for _ in 0..LOOKS {
            if self.line().helpers == 0 {
                break;
            }
            hint::spin_loop();
        }
        Ok(take(&mut self.line().passed))
    }

    /// Shades pieces until at most `most` pieces are unmerged.
    fn work_until<'l>(
        &'l self,
        mut line: MutexGuard<'l, Pieces>,
        most: usize,
        room: &mut BatchRoom,
    ) -> Result<(), Stopped> {
        while line.outstanding() > most && !line.has_stopped {
            if line.waiting.is_empty() {
                // No piece is waiting: other threads have taken all remaining pieces.
                let last = line.merged;
                drop(line);
                line = self.wait_until(|_, merged| merged > last);
            } else {
                line = self.work(line, room);
            }
        }
        match line.has_stopped {
            // If no error is stored, a thread has panicked. In this case, the scope also panics at its end.
            true => Err(line.stopped.take().unwrap_or_else(|| Stopped(Box::new(())))),
            false => Ok(()),
        }
    }

    /// Shades and merges pieces until no piece is waiting.
    fn help(&self) {
        let mut room = BatchRoom::take(self.draw);
        let mut line = self.line();
        while !line.waiting.is_empty() {
            line = self.work(line, &mut room);
        }
        line.helpers -= 1;
        room.keep();
    }

    /// Shades and merges the first waiting piece.
    fn work<'l>(&'l self, mut line: MutexGuard<'l, Pieces>, room: &mut BatchRoom) -> MutexGuard<'l, Pieces> {
        let Some((piece, before)) = line.waiting.pop_front() else { return line };
        let number = line.merged + line.taken.len();
        line.taken.push_back(Progress::BeingShaded);
        drop(line);
        let panics = StopsAfterPanic(self);
        let (mut own, batch) = match piece {
            Piece::Batch(batch) => (Some(batch), &mut room.batch),
            Piece::Part(level, slopes, strips) => {
                self.append_strips(level, &slopes, &strips, room);
                (None, &mut room.batch)
            }
        };
        let batch = own.as_mut().unwrap_or(batch);
        let shaded = pool::on_one_thread(|| self.shade(&batch.fragments));
        let mut line = match shaded {
            Ok(shaded) => {
                drop(self.note(self.line(), number, Progress::Shaded));
                let mut line = self.wait_until(|shaded, merged| shaded >= number && merged >= before);
                if !line.has_stopped {
                    drop(line);
                    let passed = self.merge(batch, &shaded, false);
                    self.program.merged(shaded);
                    line = self.line();
                    line.passed += passed;
                }
                line
            }
            Err(stopped) => {
                let mut line = self.wait_until(|_, merged| merged >= number);
                line.stop(Some(stopped));
                line
            }
        };
        batch.clear();
        line.spare.extend(own);
        forget(panics);
        self.note(line, number, Progress::Merged)
    }

    /// Records the progress of a piece, and notifies waiting threads.
    fn note<'l>(
        &self,
        mut line: MutexGuard<'l, Pieces>,
        number: usize,
        progress: Progress,
    ) -> MutexGuard<'l, Pieces> {
        line.note(number, progress);
        self.queue.shaded.store(line.shaded, Ordering::Relaxed);
        self.queue.merged.store(line.merged, Ordering::Relaxed);
        self.wake(&line);
        line
    }

    /// Wakes all sleeping threads.
    fn wake(&self, line: &Pieces) {
        // A notification is a system call even if no thread sleeps.
        if line.sleepers > 0 {
            self.queue.changed.notify_all();
        }
    }

    /// Waits until a condition on [`Pieces::shaded`] and [`Pieces::merged`] holds, or until the draw has stopped.
    fn wait_until(&self, holds: impl Fn(usize, usize) -> bool) -> MutexGuard<'_, Pieces> {
        for look in 0..LOOKS + YIELDS {
            if holds(self.queue.shaded.load(Ordering::Relaxed), self.queue.merged.load(Ordering::Relaxed)) {
                break;
            }
            if look < LOOKS { hint::spin_loop() } else { thread::yield_now() }
        }
        let mut line = self.line();
        while !line.has_stopped && !holds(line.shaded, line.merged) {
            line.sleepers += 1;
            line = self.queue.changed.wait(line).unwrap_or_else(PoisonError::into_inner);
            line.sleepers -= 1;
        }
        line
    }

    fn line(&self) -> MutexGuard<'_, Pieces> {
        self.queue.line.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A guard. When a guard is dropped, the guard stops the draw. So if a thread panics in a piece, other threads do not
/// wait for this piece.
struct StopsAfterPanic<'a>(&'a Batches<'a>);

impl Drop for StopsAfterPanic<'_> {
    fn drop(&mut self) {
        let mut line = self.0.line();
        line.stop(None);
        self.0.wake(&line);
    }
}

/// Finds the surface rows that these quads overlap. Writes outstanding fills to these rows. Pixels of the surface have
/// one sample.
fn settle_rows(surface: &Surface, bytes: usize, quads: &[Quad], memory: Vram<'_>) {
    let rows = quads.iter().map(|quad| quad.y.max(0) as usize);
    let (Some(low), Some(high)) = (rows.clone().min(), rows.max()) else { return };
    let row = |row: usize| surface.start.saturating_add((row * surface.pitch).saturating_mul(bytes));
    memory.settle(row(low)..row(high + 2));
}
