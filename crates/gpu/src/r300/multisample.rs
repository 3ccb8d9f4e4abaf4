//! Multisampling: pixels with several samples.
//!
//! A multisampled surface is never a texture. Therefore, the chip model can choose any order for the samples of the
//! surface. In this model, the samples of a pixel are contiguous. The driver allocates memory for all samples. Source:
//! Mesa `r300_emit.c`, `r300_blit.c`, `r300_reg.h`.

use reconverge_raster::draw::{Draw, Multisample, SampleOrder};
use reconverge_raster::setup::{Corner, PIXEL};

use super::registers::{self as reg, AaConfig};
use super::state::{State, fields};

/// Returns the number of samples per pixel, if multisampling is on.
pub(super) fn samples(state: &mut State) -> Option<usize> {
    let config = fields!(state, AaConfig, state.word(reg::GB_AA_CONFIG));
    config.aa_enable.then(|| [2, 3, 4, 6][usize::from(config.num_aa_subsamples & 3)])
}

/// Returns the offset of a sample from the centre of its pixel. The registers contain the distance of the sample from
/// the pixel's upper left corner, in twelfths of a pixel.
fn place(state: &State, sample: usize) -> Corner {
    let word = state.nth(reg::GB_MSPOS0, sample / 3);
    [0, 4].map(|axis| {
        let twelfths = word >> (8 * (sample % 3) + axis) & 0xf;
        (i64::from(twelfths) - 6) * PIXEL / 12
    })
}

/// If multisampling is on, sets the multisampling state of a draw and of the draw's surfaces. Returns whether
/// multisampling is on.
pub(super) fn prepare(state: &mut State, draw: &mut Draw) -> bool {
    let Some(samples) = samples(state) else { return false };
    let surfaces = draw.targets.iter_mut().map(|target| &mut target.surface);
    for surface in surfaces.chain(draw.depth.as_mut().map(|depth| &mut depth.surface)) {
        surface.order = SampleOrder::Together(samples as u8);
        surface.pitch *= samples;
    }
    let masks = state.word(reg::SC_SCREENDOOR) & 0xff_ffff;
    let mask = masks & 0x3f;
    if masks != mask * 0x4_1041 {
        state.unknown.note("SC_SCREENDOOR with masks that differ between the pixels of a quad");
    }
    draw.multisample = Multisample {
        places: (0..samples).map(|sample| place(state, sample)).collect(),
        by_sample: true,
        // SC_SCREENDOOR has six bits for each pixel of a quad. The mask of the first pixel is used for all four pixels.
        mask: mask as u8,
        ..Multisample::default()
    };
    true
}
