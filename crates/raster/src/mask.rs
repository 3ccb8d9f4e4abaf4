//! Masks of the pixels inside of the scissor that a draw may cover: window rectangles and polygon stipple.
//!
//! Sources: EXT_window_rectangles; OpenGL 3.0, 3.6.2.

use crate::interpolate::Kind;
use crate::setup::Rectangle;

/// Window rectangles, and whether pixels inside or outside of the rectangles are drawn.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct WindowRectangles {
    /// The rectangles.
    pub all: Vec<Rectangle>,
    /// Whether the draw keeps the pixels inside of at least one rectangle. If not, the draw keeps the pixels outside of
    /// all rectangles.
    pub inside: bool,
}

/// The pixels that a draw may cover.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PixelMask {
    /// Window rectangles, or `None` if window rectangles are off.
    pub rectangles: Option<WindowRectangles>,
    /// The stipple pattern of filled polygons, if the stipple is on. Bit 31 - x % 32 of row y % 32 is for pixel (x, y).
    pub stipple: Option<[u32; 32]>,
}

impl PixelMask {
    /// Returns whether the mask may remove pixels of this kind of primitive.
    pub(crate) fn is_for(&self, kind: Kind) -> bool {
        self.rectangles.is_some() || self.stipple.is_some() && kind == Kind::Triangle
    }

    /// Returns whether the mask keeps a pixel of this kind of primitive.
    pub(crate) fn draws(&self, kind: Kind, (x, y): (i32, i32)) -> bool {
        let by_rectangles = self.rectangles.as_ref().is_none_or(|rectangles| {
            let has = |of: &Rectangle| of.x0 <= x && x < of.x1 && of.y0 <= y && y < of.y1;
            rectangles.all.iter().any(has) == rectangles.inside
        });
        let by_stipple = self.stipple.filter(|_| kind == Kind::Triangle).is_none_or(|rows| {
            let row = rows[y.rem_euclid(32) as usize];
            row >> (31 - x.rem_euclid(32)) & 1 != 0
        });
        by_rectangles && by_stipple
    }
}
