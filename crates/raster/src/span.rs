//! Coverage by rows: the pixels of a convex polygon in a row are one span, whose ends its edges give.
//!
//! The quads are those of [`fill`](crate::setup::fill), in the same order.

use crate::setup::{Corner, Edge, PIXEL, Quad, Rectangle, edges};

/// Columns up to which a row is searched pixel by pixel: a division takes as long as some pixels.
const NARROW: i32 = 12;

/// Quads that are handed over together.
pub(crate) const MOST: usize = 1 << 12;

/// A row without pixels.
const NOTHING: (i32, i32) = (i32::MAX, i32::MIN);

/// The columns of a row that all edges have on their inside, from the first to behind the last.
#[inline]
fn span(edges: &[Edge], y: i32, (x0, x1): (i32, i32)) -> (i32, i32) {
    if x1 - x0 <= NARROW {
        let inside = |x: &i32| edges.iter().all(|edge| edge.at(*x, y) >= 0);
        let Some(low) = (x0..x1).find(inside) else { return NOTHING };
        let high = (low + 1..x1).find(|x| !inside(x));
        return (low, high.unwrap_or(x1));
    }
    let (mut low, mut high) = (i64::from(x0), i64::from(x1));
    for edge in edges {
        let [step, _] = edge.step;
        let value = edge.at(0, y);
        match step {
            0 if value < 0 => return NOTHING,
            0 => {}
            1.. => low = low.max(-value.div_euclid(step)),
            _ => high = high.min(value.div_euclid(-step) + 1),
        }
    }
    if low < high { (low as i32, high as i32) } else { NOTHING }
}

/// Quads side by side of which the same pixels are covered.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Strip {
    /// The first quad.
    pub(crate) first: Quad,
    /// Number of quads.
    pub(crate) count: i32,
}

impl Strip {
    /// The last quad.
    pub(crate) fn last(&self) -> Quad {
        Quad { x: self.first.x + 2 * (self.count - 1), ..self.first }
    }
}

/// Calls `each` for the quads with pixels inside of a convex polygon and of a rectangle, row by row: a strip for those that are
/// covered as a whole, one for each other quad.
///
/// # Errors
/// The error of `each`, which is not called again.
pub(crate) fn strips<const N: usize, E>(
    corners: &[Corner; N],
    within: Rectangle,
    mut each: impl FnMut(Strip) -> Result<(), E>,
) -> Result<(), E> {
    let Some((edges, (x0, x1), (y0, y1))) = edges(corners, within, [0, 0]) else { return Ok(()) };
    for y in ((y0 & !1)..y1).step_by(2) {
        let row = |y: i32| if (y0..y1).contains(&y) { span(&edges, y, (x0, x1)) } else { NOTHING };
        let [(low, high), (lower, higher)] = [row(y), row(y + 1)];
        let mut x = low.min(lower) & !1;
        let end = high.max(higher);
        // Quads between are covered as a whole.
        let whole = (low.max(lower), high.min(higher));
        while x < end {
            let (mut covered, mut count) = (0xf, 1);
            if x >= whole.0 && x + 2 <= whole.1 {
                count = (whole.1 - x) / 2;
            } else {
                let has = |x: i32, (low, high): (i32, i32)| u8::from(low <= x && x < high);
                let (upper, under) = ((low, high), (lower, higher));
                covered =
                    has(x, upper) | has(x + 1, upper) << 1 | has(x, under) << 2 | has(x + 1, under) << 3;
            }
            if covered != 0 {
                each(Strip { first: Quad { x, y, covered }, count })?;
            }
            x += 2 * count;
        }
    }
    Ok(())
}

/// Returns the number of pixels that a polygon has at most.
pub(crate) fn most_pixels(corners: &[Corner]) -> u64 {
    let extent = |axis: usize| {
        let places = corners.iter().map(|corner| corner[axis]);
        let (low, high) = (places.clone().min().unwrap_or(0), places.max().unwrap_or(0));
        (high - low) as u64 / PIXEL as u64 + 1
    };
    extent(0).saturating_mul(extent(1))
}

/// Returns the pixels inside of a convex polygon and of a rectangle as rectangles, from the first row to the last one.
pub(crate) fn rectangles<const N: usize>(corners: &[Corner; N], within: Rectangle) -> Vec<Rectangle> {
    let mut found: Vec<Rectangle> = Vec::new();
    let Some((edges, columns, (y0, y1))) = edges(corners, within, [0, 0]) else { return found };
    for y in y0..y1 {
        let (x0, x1) = span(&edges, y, columns);
        match found.last_mut() {
            Some(last) if (last.x0, last.x1, last.y1) == (x0, x1, y) => last.y1 = y + 1,
            _ if x0 < x1 => found.push(Rectangle { x0, y0: y, x1, y1: y + 1 }),
            _ => {}
        }
    }
    found
}

/// Hands over the quads of [`strips`], [`MOST`] at a time.
///
/// # Errors
/// The error of `each`, which is not called again.
pub(crate) fn quads<const N: usize, E>(
    corners: &[Corner; N],
    within: Rectangle,
    found: &mut Vec<Quad>,
    mut each: impl FnMut(&[Quad]) -> Result<(), E>,
) -> Result<(), E> {
    found.clear();
    strips(corners, within, |Strip { first, count }| {
        let mut done = 0;
        while done < count {
            let next = count.min(done + (MOST - found.len()) as i32);
            found.extend((done..next).map(|at| Quad { x: first.x + 2 * at, ..first }));
            done = next;
            if found.len() >= MOST {
                each(found)?;
                found.clear();
            }
        }
        Ok(())
    })?;
    if found.is_empty() { Ok(()) } else { each(found) }
}

#[cfg(test)]
mod tests {
    use std::convert::Infallible;

    use super::*;
    use crate::setup::fill;

    /// Random polygons of all sizes, with corners at coarse places, so that centres lie on edges.
    #[test]
    fn the_quads_are_those_that_each_pixel_by_itself_gives() {
        let mut random = 11u32;
        let mut next = |most: u32| {
            random = random.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
            i64::from((random >> 8) % most)
        };
        let within = Rectangle { x0: 3, y0: 1, x1: 90, y1: 77 };
        for number in 0..3_000 {
            let size = [4, 20, 100, 3_000][number % 4];
            let step = if number % 3 == 0 { PIXEL / 2 } else { 1 };
            let mut at = || [0; 2].map(|_| (next(size as u32 * 512) - size * 100) / step * step);
            let (a, b, c) = (at(), at(), at());
            let fourth = [b[0] + c[0] - a[0], b[1] + c[1] - a[1]];
            same(&[a, b, c], within);
            same(&[a, b, fourth, c], within);
        }
    }

    fn same<const N: usize>(corners: &[Corner; N], within: Rectangle) {
        let (mut expected, mut found) = (Vec::new(), Vec::new());
        fill(corners, within, |quad| expected.push(quad));
        let Ok(()) = quads(corners, within, &mut Vec::new(), |quads| {
            found.extend_from_slice(quads);
            Ok::<(), Infallible>(())
        });
        assert_eq!(found, expected, "{corners:?}");
        let of_quad = |quad: &Quad| {
            let quad = *quad;
            (0..4).filter(move |lane| quad.covered >> lane & 1 != 0).map(move |lane| quad.pixel(lane))
        };
        let mut expected: Vec<(i32, i32)> = expected.iter().flat_map(of_quad).collect();
        let in_rectangle = |of: &Rectangle| {
            let columns = of.x0..of.x1;
            (of.y0..of.y1).flat_map(move |y| columns.clone().map(move |x| (x, y)))
        };
        let mut pixels: Vec<(i32, i32)> = rectangles(corners, within).iter().flat_map(in_rectangle).collect();
        expected.sort_unstable();
        pixels.sort_unstable();
        assert_eq!(pixels, expected, "{corners:?}");
    }

    #[test]
    fn quads_come_in_lists_of_a_bounded_length() {
        let far = 1_000 * PIXEL;
        let within = Rectangle { x0: 0, y0: 0, x1: 301, y1: 203 };
        let mut lengths = Vec::new();
        let Ok(()) =
            quads(&[[-far, -far], [3 * far, -far], [-far, 3 * far]], within, &mut Vec::new(), |quads| {
                lengths.push(quads.len());
                Ok::<(), Infallible>(())
            });
        assert_eq!(lengths, [MOST, MOST, MOST, 151 * 102 - 3 * MOST]);
    }
}
