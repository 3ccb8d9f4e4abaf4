//! Merging: from shaded fragments to memory.
//!
//! Pixels do not depend on each other, only fragments of one pixel do. Bands of rows are merged at once, each by a thread. If
//! surfaces share memory, there is one band.

use std::ops::Range;

use rayon::prelude::*;
use reconverge_simt::pool;
use reconverge_simt::vram::Vram;

use crate::blend::LogicOp;
use crate::kernels::Kernels;
use crate::state::{Batch, Copy, Draw, Shaded, Surface, Target};

/// Lanes of a batch from which on several threads merge it.
const MANY: usize = 1 << 11;

/// Shaded lanes, and what becomes of them.
pub(crate) struct Merge<'a> {
    pub(crate) draw: &'a Draw,
    /// Samples a pixel of the surfaces.
    pub(crate) samples: usize,
    pub(crate) batch: &'a Batch,
    pub(crate) shaded: &'a Shaded,
    /// Whether `shaded` is one row for all lanes. Kernels that are complete know what to do with it.
    pub(crate) uniform: bool,
    /// What merges many lanes at once, where it can.
    pub(crate) kernels: Option<&'a Kernels<'a>>,
}

impl Merge<'_> {
    /// Merges all lanes, and gives how many samples passed the tests.
    pub(crate) fn run(&self, memory: Vram<'_>) -> u64 {
        let threads = pool::threads();
        // What is copied between surfaces is of other samples, too.
        let copies = self.draw.copies_depth || self.draw.multisample.copy.is_some();
        if self.batch.fragments.lanes >= MANY
            && threads > 1
            && !copies
            && let Some(bands) = self.bands(memory.len(), threads)
        {
            return pool::install(|| bands.into_par_iter().map(|rows| self.rows(&rows, memory)).sum());
        }
        self.rows(&(i32::MIN..i32::MAX), memory)
    }

    /// Merges the lanes of some rows.
    fn rows(&self, rows: &Range<i32>, memory: Vram<'_>) -> u64 {
        match self.kernels {
            Some(kernels) => kernels.run(self, rows, memory),
            None => self.band(rows, memory),
        }
    }

    /// Returns bands of rows, or `None` if surfaces share memory or extend past its `bytes`.
    fn bands(&self, bytes: usize, count: usize) -> Option<Vec<Range<i32>>> {
        let rows = self.batch.fragments.quads.iter().map(|(_, y)| *y);
        let (low, high) = (rows.clone().min()?.max(0), rows.max()? + 2);
        // Whole quads.
        let rows_of =
            |band: usize| low + ((i64::from(high - low) * band as i64) / count as i64) as i32 / 2 * 2;
        let depth = self.draw.depth.as_ref().map(|depth| (&depth.surface, depth.format.bytes()));
        let targets = self.draw.targets.iter();
        let targets = targets.map(|target| (&target.surface, usize::from(target.format.bytes)));
        let surfaces: Vec<(&Surface, usize)> = depth.into_iter().chain(targets).collect();
        let mut ranges = Vec::new();
        for (surface, bytes) in &surfaces {
            for (sample, band) in
                (0..self.samples).flat_map(|sample| (0..count).map(move |band| (sample, band)))
            {
                let row = |row: i32| {
                    let row = (row.max(0) as usize).min(surface.rows);
                    surface.start + (sample * surface.rows + row) * surface.pitch * bytes
                };
                let range = row(rows_of(band))..row(rows_of(band + 1)).min(surface.end);
                if range.start < range.end {
                    ranges.push(range);
                }
            }
        }
        ranges.sort_by_key(|range| range.start);
        let apart = ranges.windows(2).all(|pair| pair[0].end <= pair[1].start);
        let fit = ranges.last().is_none_or(|last| last.end <= bytes);
        (apart && fit).then(|| (0..count).map(|band| rows_of(band)..rows_of(band + 1)).collect())
    }

    /// Merges the lanes of some rows one by one.
    fn band(&self, rows: &Range<i32>, memory: Vram<'_>) -> u64 {
        let mut passed = 0;
        for lane in 0..self.batch.fragments.lanes {
            let killed = self.shaded.killed.get(lane).copied().unwrap_or(false);
            let covered = self.batch.fragments.covered[lane] && !killed;
            if covered && rows.contains(&self.batch.fragments.pixel(lane).1) {
                passed += self.lane(memory, lane);
            }
        }
        passed
    }

    fn color(&self, number: usize, lane: usize) -> Option<[u32; 4]> {
        let colors = self.shaded.colors.get(number)?.as_ref()?;
        Some([0, 1, 2, 3].map(|chan| colors[chan].get(lane).copied().unwrap_or(0)))
    }

    /// Tests the samples of a fragment and stores them; gives how many passed.
    fn lane(&self, memory: Vram<'_>, lane: usize) -> u64 {
        let Merge { draw, samples, batch, shaded, .. } = *self;
        let (x, y) = batch.fragments.pixel(lane);
        let mut mask = batch.fragments.samples[lane];
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
        if draw.multisample.alpha_to_coverage {
            // So many samples as alpha says, the first ones: no source says which.
            let count = libm::rintf(alpha().clamp(0., 1.) * samples as f32) as u32;
            mask &= ((1u32 << count) - 1) as u8;
        }
        if let Some(masks) = &shaded.mask {
            mask &= masks[lane] as u8;
        }
        let mut passed = 0;
        for sample in (0..samples).filter(|sample| mask >> sample & 1 != 0) {
            let depth = match &shaded.depth {
                Some(depth) => f32::from_bits(depth[lane]),
                None if samples > 1 => batch.depths[lane * samples + sample],
                None => batch.fragments.positions[2].get(lane).map_or(0., |depth| f32::from_bits(*depth)),
            };
            passed += u64::from(self.sample(memory, (x, y, sample), depth, lane));
        }
        passed
    }

    /// Tests a sample and stores it; whether it passed.
    fn sample(&self, memory: Vram<'_>, at: (i32, i32, usize), depth: f32, lane: usize) -> bool {
        if !self.test(memory, at, depth, lane) {
            return false;
        }
        self.draw.targets.iter().for_each(|target| self.store(memory, target, at, lane));
        true
    }

    /// Tests a sample; whether it passed.
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
        let front = batch.fragments.front[lane];
        let tested = place.and_then(|place| {
            memory.update(place, bytes, |element| {
                draw.tests.run(target.format, element, depth, front, reference)
            })
        });
        tested == Some(true)
    }

    /// Stores a sample that passed the tests in a target.
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
                    blend.apply(source.map(f32::from_bits), second, stored).map(f32::to_bits)
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
