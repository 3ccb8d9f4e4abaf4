//! Pixels that a draw may cover inside of its scissor: window rectangles and the stipple of polygons.
//!
//! Sources: EXT_window_rectangles; OpenGL 3.0, 3.6.2.

use crate::interpolate::Kind;
use crate::setup::Rectangle;

/// Rectangles of the window, and which side of them is drawn.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct WindowRectangles {
    /// The rectangles.
    pub all: Vec<Rectangle>,
    /// Whether pixels inside of a rectangle are drawn, instead of those outside of all of them.
    pub inside: bool,
}

/// The pixels that a draw may cover.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PixelMask {
    /// Window rectangles, if they are on.
    pub rectangles: Option<WindowRectangles>,
    /// The pattern of filled polygons, if there is one. Bit 31 - x % 32 of row y % 32 is for pixel (x, y).
    pub stipple: Option<[u32; 32]>,
}

impl PixelMask {
    /// Returns whether pixels of a kind of primitive may be left out.
    pub(crate) fn is_for(&self, kind: Kind) -> bool {
        self.rectangles.is_some() || self.stipple.is_some() && kind == Kind::Triangle
    }

    /// Returns whether a pixel of a kind of primitive is drawn.
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
