//! Computes the inputs of fragments pixel by pixel, for every kind of primitive and state.

use std::sync::Arc;

use crate::interpolate::{Shape, Weights};
use crate::setup::{Corner, PIXEL, Quad};
use crate::state::{Batch, Draw};
use crate::vertex::has;

/// A quad, the covered samples of each pixel of the quad, and the sample to be shaded.
pub(crate) type Work = (Quad, [u8; 4], usize);

/// Adds the lanes of a primitive's pixels to batches.
pub(crate) struct Lanes<'a> {
    pub(crate) draw: &'a Draw,
    pub(crate) samples: usize,
    pub(crate) shape: &'a Shape<'a>,
    /// Size of a point in pixels.
    pub(crate) size: [f64; 2],
}

impl Lanes<'_> {
    /// Clamps a depth to the range of the viewport.
    fn clamped(&self, depth: f64) -> f32 {
        match self.draw.viewport.depth {
            Some((low, high)) => (depth as f32).max(low).min(high),
            None => depth as f32,
        }
    }

    /// Returns the position of a point in a pixel. `from` is the offset of the point from the centre of the pixel.
    /// `weights` are the weights at the point.
    pub(crate) fn position(&self, (x, y): (i32, i32), from: Corner, weights: &Weights) -> [u32; 4] {
        let [x, y] =
            [(x, from[0]), (y, from[1])].map(|(at, from)| at as f32 + 0.5 + from as f32 / PIXEL as f32);
        [x, y, self.clamped(self.shape.depth(weights)), weights.w as f32].map(f32::to_bits)
    }

    /// Adds the four lanes of a quad to a batch.
    pub(crate) fn quad(&self, batch: &mut Batch, (quad, masks, sample): &Work) {
        let (masks, sample) = (*masks, *sample);
        let Lanes { shape, size, .. } = *self;
        let Batch { fragments, depths, .. } = batch;
        let (draw, multisample) = (self.draw, &self.draw.multisample);
        let place = |sample: usize| multisample.place(sample);
        let at_sample = multisample.at_sample != 0 || multisample.position.1;
        let at_centroid = multisample.at_centroid != 0 || multisample.position.0;
        // Inputs and positions of the four lanes, by columns.
        let (mut values, mut positions) = (vec![[[0; 4]; 4]; draw.inputs.len()], [[0; 4]; 4]);
        for (lane, mask) in masks.into_iter().enumerate() {
            let (x, y) = quad.pixel(lane);
            let centre = shape.weights(x, y, [0, 0]);
            let by_sample = multisample.shades_samples && at_sample;
            let by_sample = if by_sample { shape.weights(x, y, place(sample)) } else { centre };
            let centroid = multisample.centroid(mask, self.samples).filter(|_| at_centroid);
            let inside = centroid.map_or(centre, |sample| shape.weights(x, y, place(sample)));
            for (number, (input, values)) in draw.inputs.iter().zip(&mut values).enumerate() {
                let weights = match (has(multisample.at_sample, number), has(multisample.at_centroid, number))
                {
                    (true, _) => &by_sample,
                    (_, true) => &inside,
                    _ => &centre,
                };
                let value = shape.value(input, weights, size);
                values.iter_mut().zip(value).for_each(|(column, word)| column[lane] = word);
            }
            let (weights, from) = match multisample.position {
                (_, true) if multisample.shades_samples => (&by_sample, place(sample)),
                (true, _) => (&inside, centroid.map_or([0, 0], place)),
                _ => (&centre, [0, 0]),
            };
            let position = self.position((x, y), from, weights);
            positions.iter_mut().zip(position).for_each(|(column, word)| column[lane] = word);
            if multisample.shades_samples {
                fragments.sample.push(sample as u8);
            }
            if self.samples > 1 {
                fragments.samples.push(mask);
            }
            for (sample, depths) in depths.iter_mut().enumerate() {
                let depth = shape.depth(&shape.weights(x, y, place(sample)));
                depths.push(self.clamped(depth).to_bits());
            }
        }
        let columns = fragments.inputs.iter_mut().flatten().chain(&mut fragments.positions);
        for (column, words) in columns.zip(values.iter().flatten().chain(&positions)) {
            Arc::make_mut(column).extend_from_slice(words);
        }
        fragments.lanes += 4;
        let covered = (0..4).fold(0, |covered, lane| covered | u8::from(masks[lane] != 0) << lane);
        fragments.quads.push(Quad { covered, ..*quad });
        fragments.fronts.push(shape.front);
    }
}
