//! Pixels of several samples.
//!
//! Each pixel of a surface is a rectangle of elements, one for each sample. For a texture unit and the 2D object, it
//! is a larger surface whose pixels have one sample. Source: Mesa `nv50_miptree.c`, `nv50_tex.c`,
//! `nv50_state_validate.c`.

use reconverge_raster::draw::{Multisample, SampleOrder};
use reconverge_raster::setup::{PIXEL, Rectangle};

use super::methods::{FpMultisample, MultisampleCtrl, tesla as m};
use super::state::{State, Unknown, fields};

/// Positions of two, four and eight samples relative to the centre of a pixel, in sixteenths, in the order of
/// [`SampleOrder`].
const PLACES: [&[[i8; 2]]; 3] = [
    &[[-4, -4], [4, 4]],
    &[[-2, -6], [6, -2], [-6, 2], [2, 6]],
    &[[-7, -1], [-3, -5], [-5, 5], [-1, 3], [1, -3], [7, -7], [3, 7], [5, 1]],
];

/// Returns log2 of the number of samples of a pixel.
fn mode(state: &State) -> usize {
    match state.word(m::MULTISAMPLE_MODE) {
        mode @ 0..=3 => mode as usize,
        _ => 0,
    }
}

/// Returns the order of samples in surfaces.
pub(super) fn order(state: &State) -> SampleOrder {
    SampleOrder::Rectangles([[0, 0], [1, 0], [1, 1], [2, 1]][mode(state)])
}

/// Converts a rectangle of pixels to one of elements.
pub(super) fn elements(state: &State, pixels: Rectangle) -> Rectangle {
    let [x, y] = [[1, 1], [2, 1], [2, 2], [4, 2]][mode(state)];
    let Rectangle { x0, y0, x1, y1 } = pixels;
    Rectangle { x0: x0 * x, y0: y0 * y, x1: x1 * x, y1: y1 * y }
}

/// Returns the samples of a pixel, and their use. `centroids`: see [`Multisample::at_centroid`].
pub(super) fn multisample(state: &State, unknown: &mut Unknown, centroids: u64) -> Multisample {
    if state.word(m::MULTISAMPLE_MODE) > 3 {
        unknown.note(format!("MULTISAMPLE_MODE {}", state.word(m::MULTISAMPLE_MODE)));
    }
    // One word for each pixel of a quad, all the same.
    let mask = state.word(m::MSAA_MASK) as u8;
    let Some(places) = mode(state).checked_sub(1).map(|at| PLACES[at]) else {
        // Unknown: whether the mask is used for pixels of one sample. The driver sets all bits for those.
        return Multisample::default();
    };
    if (1..4).any(|pixel| state.nth(m::MSAA_MASK, pixel) as u8 != mask) {
        unknown.note("masks of samples that differ between the pixels of a quad");
    }
    let control = fields!(unknown, MultisampleCtrl, state.word(m::MULTISAMPLE_CTRL));
    let program = fields!(unknown, FpMultisample, state.word(m::FP_MULTISAMPLE));
    let by_sample = state.flag(m::MULTISAMPLE_ENABLE);
    let shades_samples = by_sample && program.force_per_sample;
    Multisample {
        places: places.iter().map(|place| place.map(|at| i64::from(at) * PIXEL / 16)).collect(),
        by_sample,
        mask,
        alpha_to_coverage: control.alpha_to_coverage,
        alpha_to_one: control.alpha_to_one,
        shades_samples,
        // The centroid of a sample is its position.
        at_centroid: centroids,
        at_sample: if shades_samples { centroids } else { 0 },
        position: (false, false),
        copy: None,
    }
}
