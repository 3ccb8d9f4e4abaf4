//! Bands of rows. Pixels do not depend on each other, only fragments of one pixel do, so that each thread merges a band. If
//! surfaces share memory, there is one band.

use std::ops::Range;

use rayon::prelude::*;
use reconverge_simt::pool;
use reconverge_simt::vram::Vram;

use crate::kernels::Kernels;
use crate::merge::Merge;
use crate::setup::Quad;
use crate::state::Surface;

/// Lanes of a batch from which on several threads merge it.
const MANY: usize = 1 << 11;

/// Merges all lanes, and gives how many samples passed the tests.
pub(crate) fn run(merge: &Merge<'_>, kernels: Option<&Kernels<'_>>, memory: Vram<'_>) -> u64 {
    let rows = |rows: &Range<i32>| match kernels {
        Some(kernels) => kernels.run(merge, rows, memory),
        None => merge.band(rows, memory),
    };
    if memory.has_fills() {
        settle(merge, memory);
    }
    // What is copied between surfaces is of other samples, too.
    let copies = merge.draw.copies_depth || merge.draw.multisample.copy.is_some();
    let threads = if merge.batch.fragments.lanes >= MANY { pool::threads() } else { 1 };
    if threads > 1
        && !copies
        && let Some(bands) = bands(merge, memory.len(), threads)
    {
        return pool::install(|| bands.into_par_iter().map(|band| rows(&band)).sum());
    }
    rows(&(i32::MIN..i32::MAX))
}

/// The surfaces of a draw, and the bytes of their elements.
fn surfaces<'a>(merge: &Merge<'a>) -> impl Iterator<Item = (&'a Surface, usize)> {
    let depth = merge.draw.depth.iter().map(|depth| (&depth.surface, depth.format.bytes()));
    let targets = merge.draw.targets.iter();
    depth.chain(targets.map(|target| (&target.surface, usize::from(target.format.bytes))))
}

/// Settles fills of the rows that the lanes reach, before several threads read and write them.
fn settle(merge: &Merge<'_>, memory: Vram<'_>) {
    for (surface, bytes) in surfaces(merge) {
        match merge.samples {
            1 => settle_rows(surface, bytes, &merge.batch.fragments.quads, memory),
            _ => memory.settle(surface.start..surface.end),
        }
    }
}

/// Settles fills of the rows of a surface that quads reach, if pixels have one sample.
pub(crate) fn settle_rows(surface: &Surface, bytes: usize, quads: &[Quad], memory: Vram<'_>) {
    let rows = quads.iter().map(|quad| quad.y.max(0) as usize);
    let (Some(low), Some(high)) = (rows.clone().min(), rows.max()) else { return };
    let row = |row: usize| surface.start.saturating_add((row * surface.pitch).saturating_mul(bytes));
    memory.settle(row(low)..row(high + 2));
}

/// Returns bands of rows, or `None` if surfaces share memory or extend past its `bytes`.
fn bands(merge: &Merge<'_>, bytes: usize, count: usize) -> Option<Vec<Range<i32>>> {
    let rows = merge.batch.fragments.quads.iter().map(|quad| quad.y);
    let (low, high) = (rows.clone().min()?.max(0), rows.max()? + 2);
    // Whole quads.
    let rows_of = |band: usize| low + ((i64::from(high - low) * band as i64) / count as i64) as i32 / 2 * 2;
    let mut ranges = Vec::new();
    for (surface, bytes) in surfaces(merge) {
        for (sample, band) in (0..merge.samples).flat_map(|sample| (0..count).map(move |band| (sample, band)))
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
