//! Fills primitives whose pixels all have the same value and pass all tests.
//!
//! Drivers draw such primitives to clear surfaces.

use reconverge_simt::vram::{RowFill, Vram};

use crate::setup::Rectangle;
use crate::state::Surface;

/// Size of a surface element in bytes.
const ELEMENT: usize = 4;

/// A surface whose elements are single words, and the value that a draw stores in each pixel.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Constant {
    pub(crate) surface: Surface,
    pub(crate) value: u32,
    /// Bits of the element that are written.
    pub(crate) mask: u32,
}

impl Constant {
    /// Returns whether all pixels of a rectangle are in the surface's memory.
    fn has(&self, pixels: Rectangle, memory: Vram<'_>) -> bool {
        let Surface { start, end, pitch, rows, .. } = self.surface;
        let (Ok(right), Ok(below)) = (usize::try_from(pixels.x1), usize::try_from(pixels.y1)) else {
            return false;
        };
        let last = below.saturating_sub(1).saturating_mul(pitch).saturating_add(right);
        let bytes = start.saturating_add(last.saturating_mul(ELEMENT));
        pixels.x0 >= 0 && pixels.y0 >= 0 && right <= pitch && below <= rows && bytes <= end.min(memory.len())
    }

    fn fill(&self, Rectangle { x0, y0, x1, y1 }: Rectangle, memory: Vram<'_>) {
        let Surface { start, pitch, .. } = self.surface;
        memory.fill(&RowFill {
            start: start + (y0 as usize * pitch + x0 as usize) * ELEMENT,
            words: (x1 - x0) as usize,
            pitch: pitch * ELEMENT,
            rows: (y1 - y0) as usize,
            value: self.value,
            mask: self.mask,
        });
    }
}

/// Fills rectangles in all surfaces, and returns the number of pixels in the rectangles. Returns `None`, and stores
/// nothing, if a pixel is outside of a surface.
pub(crate) fn fill(constants: &[Constant], pixels: &[Rectangle], memory: Vram<'_>) -> Option<u64> {
    let all = |constant: &Constant| pixels.iter().all(|pixels| constant.has(*pixels, memory));
    constants.iter().all(all).then_some(())?;
    for constant in constants.iter().filter(|constant| constant.mask != 0) {
        pixels.iter().for_each(|pixels| constant.fill(*pixels, memory));
    }
    Some(count(pixels))
}

/// Returns the number of pixels in disjoint rectangles.
pub(crate) fn count(pixels: &[Rectangle]) -> u64 {
    pixels.iter().map(|pixels| (pixels.x1 - pixels.x0) as u64 * (pixels.y1 - pixels.y0) as u64).sum()
}
