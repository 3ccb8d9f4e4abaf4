//! Multisampling: pixels with several samples.
//!
//! Each pixel of a surface is a rectangle of elements. The rectangle contains one element for each sample of the pixel.
//! Texture units and the 2D object access the elements as pixels of a larger surface with one sample per pixel. Source:
//! Mesa `nv50_miptree.c`, `nv50_tex.c`, `nv50_state_validate.c`.

use reconverge_raster::draw::{Multisample, SampleOrder};
use reconverge_raster::setup::{PIXEL, Rectangle};

use super::methods::{FpMultisample, MultisampleCtrl, tesla as m};
use super::state::{State, Unknown, fields};

/// Positions of two, four and eight samples, in sixteenths of a pixel relative to the centre of the pixel. Samples are
/// in the order of [`SampleOrder`].
const PLACES: [&[[i8; 2]]; 3] = [
    &[[-4, -4], [4, 4]],
    &[[-2, -6], [6, -2], [-6, 2], [2, 6]],
    &[[-7, -1], [-3, -5], [-5, 5], [-1, 3], [1, -3], [7, -7], [3, 7], [5, 1]],
];

/// Returns log2 of the number of samples per pixel.
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

/// Converts a rectangle of pixels to a rectangle of elements.
pub(super) fn elements(state: &State, pixels: Rectangle) -> Rectangle {
    let [x, y] = [[1, 1], [2, 1], [2, 2], [4, 2]][mode(state)];
    let Rectangle { x0, y0, x1, y1 } = pixels;
    Rectangle { x0: x0 * x, y0: y0 * y, x1: x1 * x, y1: y1 * y }
}

/// Returns the multisampling state. `centroids` is described in [`Multisample::at_centroid`].
pub(super) fn multisample(state: &State, unknown: &mut Unknown, centroids: u64) -> Multisample {
    if state.word(m::MULTISAMPLE_MODE) > 3 {
        unknown.note(format!("MULTISAMPLE_MODE {}", state.word(m::MULTISAMPLE_MODE)));
    }
    // MSAA_MASK has one word for each pixel of a quad. The driver sets all four words to the same value.
    let mask = state.word(m::MSAA_MASK) as u8;
    let Some(places) = mode(state).checked_sub(1).map(|at| PLACES[at]) else {
        // No source states whether the mask applies to pixels with one sample. For pixels with one sample, the driver
        // sets all bits of the mask.
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
        // If samples are shaded separately, the centroid is the position of the sample.
        at_centroid: centroids,
        at_sample: if shades_samples { centroids } else { 0 },
        position: (false, false),
        copy: None,
    }
}
