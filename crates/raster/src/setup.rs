//! Setup: computes the pixels that a primitive in window coordinates covers, in quads.
//!
//! Window coordinates are fixed-point numbers with [`SUBPIXEL_BITS`] bits of fraction. y points downward, in the order
//! of rows. A pixel belongs to a triangle if the pixel's centre is inside of the triangle or on one of its left or top
//! edges. OpenGL 3.0, 3.6.1, does not define which triangle a pixel on an edge belongs to. The rule of left and top
//! edges is from the documents of the chips.

/// Bits of fraction of a window coordinate.
pub const SUBPIXEL_BITS: u32 = 8;

/// Size of a pixel in fixed-point units.
pub const PIXEL: i64 = 1 << SUBPIXEL_BITS;

/// The pixels with x0 <= x < x1 and y0 <= y < y1.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Rectangle {
    /// Left, inclusive.
    pub x0: i32,
    /// Top, inclusive.
    pub y0: i32,
    /// Right, exclusive.
    pub x1: i32,
    /// Bottom, exclusive.
    pub y1: i32,
}

impl Rectangle {
    /// Returns the intersection of two rectangles.
    pub fn and(self, other: Rectangle) -> Rectangle {
        Rectangle {
            x0: self.x0.max(other.x0),
            y0: self.y0.max(other.y0),
            x1: self.x1.min(other.x1),
            y1: self.y1.min(other.y1),
        }
    }

    /// Returns whether the rectangle contains no pixel.
    pub fn is_empty(self) -> bool {
        self.x0 >= self.x1 || self.y0 >= self.y1
    }
}

/// A corner in window coordinates, fixed-point.
pub type Corner = [i64; 2];

/// Maximum magnitude of a corner's coordinates: 2^20 pixels, far outside of every surface and every guard band. An
/// unclipped corner may be further away, so the code clamps the coordinates of corners to this magnitude. A product of
/// two distances between corners then fits in 63 bits, as does the sum of these products for a polygon.
const FURTHEST: i64 = PIXEL << 20;

/// Rounds a window coordinate down to a fixed-point number, and clamps the result to the maximum magnitude. A NaN
/// becomes 0.
pub fn snap(coordinate: f64) -> i64 {
    bounded(libm::floor(coordinate * PIXEL as f64))
}

/// Converts a fixed-point length or coordinate to an integer, and clamps the result to the maximum magnitude.
pub(crate) fn bounded(fixed: f64) -> i64 {
    (fixed as i64).clamp(-FURTHEST, FURTHEST)
}

/// Four pixels: (x, y), (x + 1, y), (x, y + 1) and (x + 1, y + 1), with even x and y.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Quad {
    /// Column of the first pixel.
    pub x: i32,
    /// Row of the first pixel.
    pub y: i32,
    /// Mask of covered pixels. Bit 0 is the first pixel.
    pub covered: u8,
}

impl Quad {
    /// Returns the pixel of a lane.
    pub fn pixel(&self, lane: usize) -> (i32, i32) {
        (self.x + (lane & 1) as i32, self.y + (lane >> 1) as i32)
    }
}

/// Returns twice the signed area of a triangle. The result is positive if the corners run clockwise on the screen.
pub fn area(corners: [Corner; 3]) -> i64 {
    let [a, b, c] = corners;
    (b[0] - a[0]) * (c[1] - a[1]) - (c[0] - a[0]) * (b[1] - a[1])
}

/// An edge function of a convex polygon whose corners run clockwise. The value of the function is not negative at
/// points inside of the edge.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Edge {
    /// Difference of the value between adjacent columns, and between adjacent rows.
    pub(crate) step: [i64; 2],
    /// Value at pixel (0, 0). If points on the edge are outside, the value is reduced by 1.
    start: i64,
}

impl Edge {
    fn new(from: Corner, to: Corner) -> Edge {
        let (dx, dy) = (to[0] - from[0], to[1] - from[1]);
        let owns = dy < 0 || dy == 0 && dx > 0;
        let centre = PIXEL / 2;
        let start = dx * (centre - from[1]) - dy * (centre - from[0]);
        Edge { step: [-dy * PIXEL, dx * PIXEL], start: start - i64::from(!owns) }
    }

    pub(crate) fn at(&self, x: i32, y: i32) -> i64 {
        self.start + self.step[0] * i64::from(x) + self.step[1] * i64::from(y)
    }
}

/// A range of columns or rows. The first number is the first column or row. The second number is the column or row
/// after the last one.
pub(crate) type Ends = (i32, i32);

/// Returns the edges of a convex polygon, and the columns and rows of the rectangle that the polygon may cover. The
/// edges are evaluated at the offset (x, y) from pixel centres. Returns `None` if the polygon has no area.
pub(crate) fn edges<const N: usize>(
    corners: &[Corner; N],
    within: Rectangle,
    [x, y]: Corner,
) -> Option<([Edge; N], Ends, Ends)> {
    let doubled: i64 = (2..N).map(|at| area([corners[0], corners[at - 1], corners[at]])).sum();
    if doubled == 0 {
        return None;
    }
    let order = |at: usize| {
        let [from_x, from_y] = if doubled > 0 { corners[at % N] } else { corners[N - 1 - at % N] };
        [from_x - x, from_y - y]
    };
    let edges = std::array::from_fn(|at| Edge::new(order(at), order(at + 1)));
    let range = |axis: usize, least: i32, end: i32| {
        let low = corners.iter().map(|corner| corner[axis]).min().unwrap_or(0) >> SUBPIXEL_BITS;
        let high = (corners.iter().map(|corner| corner[axis]).max().unwrap_or(0) >> SUBPIXEL_BITS) + 1;
        let to_column = |at: i64| at.clamp(i64::from(least), i64::from(end).max(least.into())) as i32;
        (to_column(low), to_column(high))
    };
    Some((edges, range(0, within.x0, within.x1), range(1, within.y0, within.y1)))
}

/// Calls `each` for each quad that has a pixel inside of both a convex polygon and a rectangle. `each` receives the
/// quads row by row. The corners may be in clockwise or anticlockwise order. A polygon without an area covers nothing.
pub fn fill<const N: usize>(corners: &[Corner; N], within: Rectangle, mut each: impl FnMut(Quad)) {
    fill_samples(corners, within, &[[0, 0]], |quad, _| each(quad));
}

/// Calls `each` as [`fill`] does, for pixels with several samples. `samples` has the fixed-point offsets of the samples
/// from the pixel's centre. A pixel is covered if at least one of its samples is covered. For each pixel, `each` also
/// receives a mask of covered samples. Bit n of this mask is for sample n.
pub fn fill_samples<const N: usize>(
    corners: &[Corner; N],
    within: Rectangle,
    samples: &[Corner],
    mut each: impl FnMut(Quad, [u8; 4]),
) {
    let all: Vec<_> = samples.iter().filter_map(|place| edges(corners, within, *place)).collect();
    let Some(&(_, (x0, x1), (y0, y1))) = all.first() else { return };
    for y in ((y0 & !1)..y1).step_by(2) {
        for x in ((x0 & !1)..x1).step_by(2) {
            let mut covered = 0;
            let mut masks = [0; 4];
            for lane in 0..4 {
                let (x, y) = (x + (lane & 1), y + (lane >> 1));
                if x < x0 || x >= x1 || y < y0 || y >= y1 {
                    continue;
                }
                for (sample, (edges, ..)) in all.iter().enumerate() {
                    if edges.iter().all(|edge| edge.at(x, y) >= 0) {
                        masks[lane as usize] |= 1 << sample;
                        covered |= 1 << lane;
                    }
                }
            }
            if covered != 0 {
                each(Quad { x, y, covered }, masks);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const WINDOW: Rectangle = Rectangle { x0: 0, y0: 0, x1: 8, y1: 6 };

    fn at(x: f64, y: f64) -> Corner {
        [snap(x), snap(y)]
    }

    fn pixels<const N: usize>(corners: &[Corner; N]) -> Vec<(i32, i32)> {
        let mut found = Vec::new();
        fill(corners, WINDOW, |quad| {
            let lanes = (0..4).filter(|lane| quad.covered >> lane & 1 != 0);
            found.extend(lanes.map(|lane| quad.pixel(lane)));
        });
        found.sort_unstable();
        found
    }

    #[test]
    fn triangles_that_share_edges_cover_each_pixel_once() {
        let mut random = 7u32;
        let mut next = |most: u32| {
            random = random.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
            f64::from((random >> 8) % most)
        };
        for _ in 0..2_000 {
            // Four triangles around a point inside of the window. Corners have coarse positions, so that pixel centres
            // are on edges.
            let centre = at(next(17) / 2., next(13) / 2.);
            let rim = [at(0., 0.), at(8., 0.), at(8., 6.), at(0., 6.)];
            let mut all = Vec::new();
            for side in 0..4 {
                all.extend(pixels(&[centre, rim[side], rim[(side + 1) % 4]]));
            }
            all.sort_unstable();
            let expected: Vec<_> = (0..8).flat_map(|x| (0..6).map(move |y| (x, y))).collect();
            assert_eq!(all, expected);
        }
    }

    /// The left half of a pixel covers the samples at -6/16 and -2/16 of a pixel from the centre.
    #[test]
    fn each_sample_is_covered_by_itself() {
        let sixteenth = PIXEL / 16;
        let samples = [[-2, -2], [2, 2], [-6, 6], [6, -6]].map(|place| place.map(|at: i64| at * sixteenth));
        let half = [at(0., 0.), at(1.5, 0.), at(1.5, 1.), at(0., 1.)];
        let mut all = Vec::new();
        fill_samples(&half, WINDOW, &samples, |quad, masks| all.push((quad.covered, masks)));
        assert_eq!(all, [(0b11, [0b1111, 0b0101, 0, 0])]);
    }

    #[test]
    fn left_and_top_edges_belong_to_the_triangle() {
        let square = [at(1.5, 1.5), at(3.5, 1.5), at(3.5, 3.5), at(1.5, 3.5)];
        assert_eq!(pixels(&square), [(1, 1), (1, 2), (2, 1), (2, 2)]);
        let other_way = [square[3], square[2], square[1], square[0]];
        assert_eq!(pixels(&other_way), pixels(&square));
    }

    #[test]
    fn nothing_is_covered_outside_of_the_rectangle_or_without_an_area() {
        let huge = [at(-1000., -1000.), at(3000., -1000.), at(-1000., 3000.)];
        assert_eq!(pixels(&huge).len(), 48);
        assert_eq!(pixels(&[at(1., 1.), at(5., 5.), at(3., 3.)]), []);
        let empty = Rectangle { x0: 4, y0: 4, x1: 2, y1: 2 };
        fill(&huge, empty, |quad| panic!("{quad:?}"));
    }

    /// Vertices that are not clipped may have any position.
    #[test]
    fn corners_as_far_away_as_numbers_go_cover_what_is_between_them() {
        for far in [1e7, f64::MAX, f64::INFINITY] {
            let all = [at(-far, -far), at(far, -far), at(far, far), at(-far, far)];
            assert_eq!(pixels(&all).len(), 48, "{far}");
            // The fourth corner of a rectangle may have coordinates that are three times as large as the coordinates of
            // the other corners.
            let [[x, y], ..] = all;
            assert_eq!(pixels(&[[x, y], [-3 * x, y], [-3 * x, -3 * y], [x, -3 * y]]).len(), 48, "{far}");
        }
        assert_eq!(at(f64::NAN, -1.), [0, -PIXEL]);
    }

    #[test]
    fn the_area_tells_the_direction() {
        assert!(area([at(0., 0.), at(1., 0.), at(0., 1.)]) > 0);
        assert!(area([at(0., 0.), at(0., 1.), at(1., 0.)]) < 0);
    }
}
