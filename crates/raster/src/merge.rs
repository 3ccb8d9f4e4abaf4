//! Tests shaded fragments one by one and stores them in memory.

use reconverge_simt::vram::Vram;

use crate::blend::{LogicOp, stored_bits};
use crate::setup::Quad;
use crate::state::{Batch, Copy, Draw, Shaded, Surface, Target};

/// Shaded lanes, and the state that merging requires.
pub(crate) struct Merge<'a> {
    pub(crate) draw: &'a Draw,
    /// Number of samples per pixel of the surfaces.
    pub(crate) samples: usize,
    pub(crate) batch: &'a Batch,
    pub(crate) shaded: &'a Shaded,
    /// Whether `shaded` has only one row of results. This row applies to all lanes.
    /// [`Kernels`](crate::kernels::Kernels) support such a row only if every step processes whole rows of lanes.
    pub(crate) uniform: bool,
}

impl Merge<'_> {
    /// Merges all lanes one by one. Returns the number of samples that passed the tests.
    pub(crate) fn lanes(&self, memory: Vram<'_>) -> u64 {
        let mut passed = 0;
        for lane in 0..self.batch.fragments.lanes {
            let killed = self.shaded.killed.get(lane).copied().unwrap_or(false);
            let covered = self.batch.fragments.is_covered(lane) && !killed;
            if covered {
                passed += self.lane(memory, lane);
            }
        }
        passed
    }

    fn color(&self, number: usize, lane: usize) -> Option<[u32; 4]> {
        let colors = self.shaded.colors.get(number)?.as_ref()?;
        Some([0, 1, 2, 3].map(|chan| colors[chan].get(lane).copied().unwrap_or(0)))
    }

    /// Tests the samples of a fragment, and stores the samples that pass. Returns the number of samples that pass.
    fn lane(&self, memory: Vram<'_>, lane: usize) -> u64 {
        let Merge { draw, samples, batch, shaded, .. } = *self;
        let (x, y) = batch.fragments.pixel(lane);
        let mut mask = batch.fragments.samples(lane);
        if let Some(copy) = draw.multisample.copy {
            self.copy(memory, copy, (x, y), mask);
            return 0;
        }
        if draw.copies_depth {
            self.copy_depth(memory, (x, y), 0, 0);
            return 0;
        }
        let alpha = || self.color(0, lane).map_or(0., |color| f32::from_bits(color[3]));
        if draw.alpha_test.is_some_and(|(compare, reference)| !compare.passes(alpha(), reference)) {
            return 0;
        }
        if let Some(masks) = &shaded.mask {
            mask &= masks[lane] as u8;
        }
        let mut passed = 0;
        for sample in (0..samples).filter(|sample| mask >> sample & 1 != 0) {
            let depth = match &shaded.depth {
                Some(depth) => f32::from_bits(depth[lane]),
                None => batch.depths(sample).get(lane).map_or(0., |depth| f32::from_bits(*depth)),
            };
            passed += u64::from(self.sample(memory, (x, y, sample), depth, lane));
        }
        passed
    }

    /// Tests one sample, and stores the sample if the sample passes. Returns whether the sample passed.
    fn sample(&self, memory: Vram<'_>, at: (i32, i32, usize), depth: f32, lane: usize) -> bool {
        if !self.test(memory, at, depth, lane) {
            return false;
        }
        self.draw.targets.iter().for_each(|target| self.store(memory, target, at, lane));
        true
    }

    /// Tests one sample against depth and stencil. Returns whether the sample passed.
    pub(crate) fn test(
        &self,
        memory: Vram<'_>,
        (x, y, sample): (i32, i32, usize),
        depth: f32,
        lane: usize,
    ) -> bool {
        let Merge { draw, batch, shaded, .. } = *self;
        let Some(target) = &draw.depth else { return true };
        let bytes = target.format.bytes();
        let place = target.surface.place(x, y, sample, bytes);
        let reference = shaded.stencil.as_ref().map(|stencil| stencil[lane] as u8);
        let front = batch.fragments.is_front(lane);
        let tested = place.and_then(|place| {
            memory.update(place, bytes, |element| {
                let holds = draw.depth_bounds.is_none_or(|bounds| target.format.is_within(element, bounds));
                holds && draw.tests.run(target.format, element, depth, front, reference)
            })
        });
        tested == Some(true)
    }

    /// Stores a sample in a target. The sample has passed the tests.
    pub(crate) fn store(
        &self,
        memory: Vram<'_>,
        target: &Target,
        (x, y, sample): (i32, i32, usize),
        lane: usize,
    ) {
        let Some(source) = self.color(target.color, lane) else { return };
        let bytes = usize::from(target.format.bytes);
        let Some(place) = target.surface.place(x, y, sample, bytes) else { return };
        memory.update(place, bytes, |element| {
            let color = match &target.blend {
                Some(blend) => {
                    let second = self.color(1, lane).unwrap_or_default().map(f32::from_bits);
                    let stored = target.color(element);
                    blend.apply(source.map(f32::from_bits), second, stored).map(stored_bits)
                }
                None => source,
            };
            target.store(element, color, self.draw.logic);
        });
    }

    fn copy(&self, memory: Vram<'_>, copy: Copy, (x, y): (i32, i32), mask: u8) {
        match copy {
            Copy::Nothing => {}
            Copy::Depth(from) => {
                for to in (0..self.samples).filter(|sample| mask >> sample & 1 != 0) {
                    self.copy_depth(memory, (x, y), from.into(), to);
                }
            }
            Copy::Resolve => {
                let [from, to] = &self.draw.targets[..] else { return };
                let bytes = usize::from(from.format.bytes);
                let (mut sum, mut element) = ([0.; 4], [0; 16]);
                for sample in 0..self.samples {
                    let place = from.surface.place(x, y, sample, bytes);
                    let element = place.and_then(|place| memory.read(place, &mut element[..bytes]));
                    let Some(element) = element else { return };
                    let color = from.color(element);
                    sum = std::array::from_fn(|chan| sum[chan] + f64::from(color[chan]));
                }
                let bytes = usize::from(to.format.bytes);
                let place = to.surface.place(x, y, 0, bytes);
                let mean = sum.map(|sum| ((sum / self.samples as f64) as f32).to_bits());
                if let Some(place) = place {
                    memory.update(place, bytes, |element| to.store(element, mean, LogicOp::COPY));
                }
            }
        }
    }

    /// Copies depth to the first target as [`Merge::copy_depth`] does, but many pixels at once. If this copy is not
    /// possible, the function copies nothing and returns `false`.
    pub(crate) fn copy_rows(&self, memory: Vram<'_>) -> bool {
        let (Some(from), Some(to)) = (&self.draw.depth, self.draw.targets.first()) else { return false };
        let (source, target, bytes) = (&from.surface, &to.surface, from.format.bytes());
        let ranges = [source.range(bytes, 1), target.range(bytes, 1)];
        let apart = ranges[0].end <= ranges[1].start || ranges[1].end <= ranges[0].start;
        let kills = self.shaded.killed.contains(&true);
        if self.uniform && kills {
            return true;
        }
        if !apart || usize::from(to.format.bytes) != bytes || kills {
            return false;
        }
        // A run of adjacent quads that are fully covered is copied at once.
        let fragments = &self.batch.fragments;
        let is_whole = |quad: &Quad| quad.covered == 0xf;
        let mut first = 0;
        for run in fragments.quads.chunk_by(|quad, next| {
            is_whole(quad) && is_whole(next) && (next.x, next.y) == (quad.x + 2, quad.y)
        }) {
            let Quad { x, y, .. } = run[0];
            let last = x + 2 * run.len() as i32 - 1;
            let range = |surface: &Surface, row: i32| {
                let start = surface.place(x, row, 0, bytes)?;
                Some(start..surface.place(last, row, 0, bytes)? + bytes)
            };
            let copies = [y, y + 1].map(|row| Some((range(source, row)?, range(target, row)?)));
            if let [Some(upper), Some(lower)] = copies
                && is_whole(&run[0])
            {
                for (from, to) in [upper, lower] {
                    memory.copy_within(from, to.start);
                }
            } else {
                for lane in (first..first + 4 * run.len()).filter(|lane| fragments.is_covered(*lane)) {
                    self.copy_depth(memory, fragments.pixel(lane), 0, 0);
                }
            }
            first += 4 * run.len();
        }
        true
    }

    fn copy_depth(&self, memory: Vram<'_>, (x, y): (i32, i32), from_sample: usize, to_sample: usize) {
        let (Some(from), Some(to)) = (&self.draw.depth, self.draw.targets.first()) else { return };
        let (bytes, target) = (from.format.bytes(), usize::from(to.format.bytes));
        let source = from.surface.place(x, y, from_sample, bytes);
        let mut copied = [0; 16];
        let read = source.and_then(|place| memory.read(place, &mut copied[..bytes]));
        let (Some(copied), Some(place)) = (read, to.surface.place(x, y, to_sample, target)) else { return };
        let count = bytes.min(target);
        memory.update(place, target, |element| element[..count].copy_from_slice(&copied[..count]));
    }
}
