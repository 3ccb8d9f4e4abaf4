//! Computes coverage by rows. In each row, a convex polygon covers one span of pixels. The edges determine both ends of
//! a span.
//!
//! This module produces the same quads in the same order as [`fill_samples`](crate::setup::fill_samples).

use crate::setup::{Corner, Edge, Ends, PIXEL, Quad, Rectangle, edges};

/// If a polygon has at most this number of columns and at most this number of rows, each of its pixels is tested. For
/// larger polygons, following the edges takes less time than testing each pixel, although each edge starts with two
/// divisions.
const NARROW: i32 = 12;

/// Maximum number of quads that are passed to a function in one call.
pub(crate) const MOST: usize = 1 << 12;

/// The span of a row without pixels.
const NOTHING: Ends = (i32::MAX, i32::MIN);

/// An edge that is neither horizontal nor vertical. Also contains the value of the edge function in the next row.
#[derive(Clone, Copy, Debug, Default)]
struct Slant {
    /// Whether the pixels to the right of the edge are inside. If not, the pixels to the left of the edge are inside.
    is_left: bool,
    /// Magnitude of the difference of the edge function between two adjacent columns.
    step: i64,
    /// Value at column 0 divided by `step`, rounded down.
    whole: i64,
    /// Remainder of this division.
    rest: i64,
    /// Change of `whole` from one row to the next.
    wholes: i64,
    /// Change of `rest` from one row to the next.
    rests: i64,
}

impl Slant {
    fn new(edge: &Edge, y: i32) -> Slant {
        let [step, down] = edge.step;
        let (is_left, step) = (step > 0, step.abs());
        let by_step = |value: i64| (value.div_euclid(step), value.rem_euclid(step));
        let ((whole, rest), (wholes, rests)) = (by_step(edge.at(0, y)), by_step(down));
        Slant { is_left, step, whole, rest, wholes, rests }
    }

    /// Returns the part of a span that is inside of the edge, and advances to the next row.
    #[inline(always)]
    fn cut(&mut self, (low, high): (i64, i64)) -> (i64, i64) {
        let ends = match self.is_left {
            true => (low.max(-self.whole), high),
            false => (low, high.min(self.whole + 1)),
        };
        (self.whole, self.rest) = (self.whole + self.wholes, self.rest + self.rests);
        let carries = self.rest >= self.step;
        self.whole += i64::from(carries);
        self.rest -= if carries { self.step } else { 0 };
        ends
    }
}

/// The spans of a convex polygon, row by row.
struct Spans<const N: usize> {
    columns: Ends,
    rows: Ends,
    /// The next row.
    y: i32,
    /// The edges that are neither horizontal nor vertical, in the first `count` elements.
    slants: [Slant; N],
    count: usize,
}

impl<const N: usize> Spans<N> {
    /// Returns the spans of a polygon within a range of columns and a range of rows. The polygon has these edges.
    #[inline(always)]
    fn new((edges, mut columns, mut rows): ([Edge; N], Ends, Ends)) -> Spans<N> {
        let (mut slants, mut count) = ([Slant::default(); N], 0);
        for edge in &edges {
            match edge.step {
                [0, down] => rows = inside(rows, edge.at(0, 0), down),
                [along, 0] => columns = inside(columns, edge.at(0, 0), along),
                _ => {}
            }
        }
        for edge in edges.iter().filter(|edge| !edge.step.contains(&0)) {
            slants[count] = Slant::new(edge, rows.0);
            count += 1;
        }
        Spans { columns, rows, y: rows.0, slants, count }
    }

    /// Returns the span of the next row. The first number is the first column of the span. The second number is the
    /// column after the last column of the span.
    #[inline(always)]
    fn next(&mut self) -> Ends {
        self.y += 1;
        let (x0, x1) = self.columns;
        let all = (i64::from(x0), i64::from(x1));
        let (low, high) = self.slants[..self.count].iter_mut().fold(all, |ends, slant| slant.cut(ends));
        if low < high { (low as i32, high as i32) } else { NOTHING }
    }

    /// Returns the spans of row `y` and of the row below. The caller may skip only rows in which the polygon has no
    /// pixels.
    #[inline(always)]
    fn pair(&mut self, y: i32) -> [Ends; 2] {
        let upper = self.at(y);
        [upper, self.at(y + 1)]
    }

    /// Returns the span of row `y`. If `y` is not the next row of the polygon, the span is empty.
    #[inline(always)]
    fn at(&mut self, y: i32) -> Ends {
        if y == self.y && y < self.rows.1 { self.next() } else { NOTHING }
    }
}

/// Tests each pixel of row `y` in the columns from `x0` to `x1`. Returns the columns that are inside of all edges.
#[inline(always)]
fn search(edges: &[Edge], y: i32, (x0, x1): Ends) -> Ends {
    let inside = |x: &i32| edges.iter().all(|edge| edge.at(*x, y) >= 0);
    let Some(low) = (x0..x1).find(inside) else { return NOTHING };
    let high = (low + 1..x1).find(|x| !inside(x));
    (low, high.unwrap_or(x1))
}

/// Returns the part of a range of rows or columns in which a value is not negative. `at_zero` is the value at row or
/// column 0. `step` is the change of the value from one row or column to the next.
fn inside((low, high): Ends, at_zero: i64, step: i64) -> Ends {
    let bound = |at: i64| at.clamp(i64::from(low), i64::from(high).max(low.into())) as i32;
    match step {
        0 if at_zero < 0 => (low, low),
        0 => (low, high),
        1.. => (bound(-at_zero.div_euclid(step)), high),
        _ => (low, bound(at_zero.div_euclid(-step) + 1)),
    }
}

/// Returns whether a span contains a column.
#[inline(always)]
fn has(x: i32, (low, high): Ends) -> bool {
    low <= x && x < high
}

/// Returns, for each row of quads that overlaps a range of rows of pixels, the first row of pixels.
fn pairs((y0, y1): Ends) -> impl Iterator<Item = i32> {
    (if y0 < y1 { y0 & !1 } else { y1 }..y1).step_by(2)
}

/// Adjacent quads in the same row of quads. All quads of a strip have the same coverage.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Strip {
    /// The first quad.
    pub(crate) first: Quad,
    /// Number of quads.
    pub(crate) count: i32,
}

impl Strip {
    /// Returns all quads.
    pub(crate) fn quads(self) -> impl Iterator<Item = Quad> {
        (0..self.count).map(move |at| Quad { x: self.first.x + 2 * at, ..self.first })
    }

    /// Returns the last quad.
    pub(crate) fn last(&self) -> Quad {
        Quad { x: self.first.x + 2 * (self.count - 1), ..self.first }
    }
}

/// Calls `each` for the quads that have a pixel inside of both a convex polygon and a rectangle. `each` receives the
/// quads row by row. Adjacent quads form one strip if they are fully covered. Any other quad forms a strip alone.
///
/// # Errors
/// Returns the error of `each`. After an error, `each` is not called again.
pub(crate) fn strips<const N: usize, E>(
    corners: &[Corner; N],
    within: Rectangle,
    each: impl FnMut(Strip) -> Result<(), E>,
) -> Result<(), E> {
    let Some((edges, columns, rows)) = edges(corners, within, [0, 0]) else { return Ok(()) };
    if columns.1 - columns.0 <= NARROW && rows.1 - rows.0 <= NARROW {
        let row = |y: i32| if (rows.0..rows.1).contains(&y) { search(&edges, y, columns) } else { NOTHING };
        return strips_of(rows, |y| [row(y), row(y + 1)], each);
    }
    let mut spans = Spans::new((edges, columns, rows));
    strips_of(spans.rows, |y| spans.pair(y), each)
}

/// Calls `each` as [`strips`] does. `spans` returns the spans of a row and of the row below.
#[inline(always)]
fn strips_of<E>(
    rows: Ends,
    mut spans: impl FnMut(i32) -> [Ends; 2],
    mut each: impl FnMut(Strip) -> Result<(), E>,
) -> Result<(), E> {
    for y in pairs(rows) {
        let [(low, high), (lower, higher)] = spans(y);
        let mut x = low.min(lower) & !1;
        let end = high.max(higher);
        // Quads between these columns are fully covered.
        let whole = (low.max(lower), high.min(higher));
        while x < end {
            let (mut covered, mut count) = (0xf, 1);
            if x >= whole.0 && x + 2 <= whole.1 {
                count = (whole.1 - x) / 2;
            } else {
                let (upper, under) = ((low, high), (lower, higher));
                let has = |x: i32, ends: Ends| u8::from(has(x, ends));
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

/// Calls `each` for the same quads and samples as [`fill_samples`](crate::setup::fill_samples).
pub(crate) fn samples<const N: usize>(
    corners: &[Corner; N],
    within: Rectangle,
    places: &[Corner],
    mut each: impl FnMut(Quad, [u8; 4]),
) {
    let all = places.iter().filter_map(|place| edges(corners, within, *place));
    let mut all: Vec<Spans<N>> = all.map(Spans::new).collect();
    let low = all.iter().map(|spans| spans.rows.0).min().unwrap_or(0);
    let high = all.iter().map(|spans| spans.rows.1).max().unwrap_or(0);
    let every = (0..all.len()).fold(0, |mask, sample| mask | 1 << sample);
    let mut ends: Vec<[Ends; 2]> = Vec::with_capacity(all.len());
    for y in pairs((low, high)) {
        ends.clear();
        ends.extend(all.iter_mut().map(|spans| spans.pair(y)));
        let both = || ends.iter().flatten();
        let first = both().map(|ends| ends.0).min().unwrap_or(0) & !1;
        let end = both().map(|ends| ends.1).max().unwrap_or(0);
        // All samples of quads between these columns are covered.
        let whole_from = both().map(|ends| ends.0).max().unwrap_or(0);
        let whole_to = both().map(|ends| ends.1).min().unwrap_or(0);
        for x in (first..end).step_by(2) {
            let masks = match x >= whole_from && x + 2 <= whole_to {
                true => [every; 4],
                false => [(x, 0), (x + 1, 0), (x, 1), (x + 1, 1)].map(|(x, row)| {
                    let of = |mask, (sample, ends): (usize, &[Ends; 2])| {
                        if has(x, ends[row]) { mask | 1 << sample } else { mask }
                    };
                    ends.iter().enumerate().fold(0, of)
                }),
            };
            let covered = (0..4).fold(0, |covered, lane| covered | u8::from(masks[lane] != 0) << lane);
            if covered != 0 {
                each(Quad { x, y, covered }, masks);
            }
        }
    }
}

/// Returns an upper bound for the number of pixels in a polygon.
pub(crate) fn most_pixels(corners: &[Corner]) -> u64 {
    let extent = |axis: usize| {
        let places = corners.iter().map(|corner| corner[axis]);
        let (low, high) = (places.clone().min().unwrap_or(0), places.max().unwrap_or(0));
        (high - low) as u64 / PIXEL as u64 + 1
    };
    extent(0).saturating_mul(extent(1))
}

/// Returns the pixels that are inside of both a convex polygon and a rectangle. The result is a list of rectangles in
/// the order of rows.
pub(crate) fn rectangles<const N: usize>(corners: &[Corner; N], within: Rectangle) -> Vec<Rectangle> {
    let mut found: Vec<Rectangle> = Vec::new();
    let Some(edges) = edges(corners, within, [0, 0]) else { return found };
    let mut spans = Spans::new(edges);
    for y in spans.rows.0..spans.rows.1 {
        let (x0, x1) = spans.next();
        match found.last_mut() {
            Some(last) if (last.x0, last.x1, last.y1) == (x0, x1, y) => last.y1 = y + 1,
            _ if x0 < x1 => found.push(Rectangle { x0, y0: y, x1, y1: y + 1 }),
            _ => {}
        }
    }
    found
}

/// Passes the quads of [`strips`] to `each`, up to [`MOST`] quads per call.
///
/// # Errors
/// Returns the error of `each`. After an error, `each` is not called again.
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
    use crate::setup::{fill, fill_samples};

    /// Random polygons of all sizes. Corners have coarse positions, so that pixel centres are on edges.
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
            // Lines of several widths.
            let aside = [1, 128, 300, 5_000][number / 4 % 4];
            for aside in [[0, aside], [aside, 0], [aside, -aside / 3]] {
                let [from, to] = [a, b].map(|end| [end[0] - aside[0], end[1] - aside[1]]);
                let back = [b, a].map(|end| [end[0] + aside[0], end[1] + aside[1]]);
                same(&[from, to, back[0], back[1]], within);
                same(&[from, [to[0], from[1]], [to[0], back[0][1]], [from[0], back[0][1]]], within);
            }
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
        let places = [[0, 0], [-96, 31], [-300, 7], [127, -128]];
        let (mut sampled, mut known) = (Vec::new(), Vec::new());
        samples(corners, within, &places, |quad, masks| sampled.push((quad, masks)));
        fill_samples(corners, within, &places, |quad, masks| known.push((quad, masks)));
        assert_eq!(sampled, known, "{corners:?}");
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
