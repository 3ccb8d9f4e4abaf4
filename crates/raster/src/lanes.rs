//! Fragments pixel by pixel: every kind of primitive and state.

use std::sync::Arc;

use crate::interpolate::Shape;
use crate::setup::{PIXEL, Quad};
use crate::state::{Batch, Draw};
use crate::vertex::has;

/// Four pixels, the samples that are covered of each, and the sample that is shaded.
pub(crate) type Work = (Quad, [u8; 4], usize);

/// Lanes of a primitive's pixels.
pub(crate) struct Lanes<'a> {
    pub(crate) draw: &'a Draw,
    pub(crate) samples: usize,
    pub(crate) shape: &'a Shape<'a>,
    /// Size of a point in pixels.
    pub(crate) size: [f64; 2],
}

impl Lanes<'_> {
    /// Adds four lanes to a batch.
    pub(crate) fn quad(&self, batch: &mut Batch, (quad, masks, sample): &Work) {
        let (masks, sample) = (*masks, *sample);
        let Lanes { shape, size, .. } = *self;
        let Batch { fragments, depths, .. } = batch;
        let (draw, multisample) = (self.draw, &self.draw.multisample);
        let steps = i64::from(multisample.steps.max(1));
        let place = |sample: usize| {
            let place = multisample.places.get(sample).copied().unwrap_or_default();
            place.map(|at| (i64::from(at) * PIXEL).div_euclid(steps))
        };
        let all = (u32::MAX >> (32 - self.samples)) as u8;
        let at_sample = multisample.at_sample != 0 || multisample.position.1;
        let at_centroid = multisample.at_centroid != 0 || multisample.position.0;
        // The columns of the quad.
        let (mut values, mut positions) = (vec![[[0; 4]; 4]; draw.inputs.len()], [[0; 4]; 4]);
        for (lane, mask) in masks.into_iter().enumerate() {
            let (x, y) = quad.pixel(lane);
            let centre = shape.weights(x, y, [0, 0]);
            let by_sample = multisample.shades_samples && at_sample;
            let by_sample = if by_sample { shape.weights(x, y, place(sample)) } else { centre };
            // The centre where all of the pixel is covered, else the first sample that is.
            let partly = at_centroid && multisample.by_sample && mask != all && mask != 0;
            let inside =
                if partly { shape.weights(x, y, place(mask.trailing_zeros() as usize)) } else { centre };
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
            let clamp = |depth: f32| match draw.viewport.depth {
                Some((low, high)) => depth.max(low).min(high),
                None => depth,
            };
            let (weights, from) = match multisample.position {
                (_, true) if multisample.shades_samples => (&by_sample, place(sample)),
                (true, _) if partly => (&inside, place(mask.trailing_zeros() as usize)),
                _ => (&centre, [0, 0]),
            };
            let depth = clamp(shape.depth(weights) as f32);
            let [px, py] =
                [(x, from[0]), (y, from[1])].map(|(at, from)| at as f32 + 0.5 + from as f32 / PIXEL as f32);
            let position = [px, py, depth, weights.w as f32].map(f32::to_bits);
            positions.iter_mut().zip(position).for_each(|(column, word)| column[lane] = word);
            if multisample.shades_samples {
                fragments.sample.push(sample as u8);
            }
            if self.samples > 1 {
                fragments.samples.push(mask);
                let depth = |sample: usize| match multisample.by_sample {
                    true => clamp(shape.depth(&shape.weights(x, y, place(sample))) as f32),
                    false => depth,
                };
                depths.extend((0..self.samples).map(depth));
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
