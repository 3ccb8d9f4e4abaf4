//! Computes the fragments of a primitive by columns. The first step computes the weights of the vertices at many
//! pixels. The next steps each compute one input component at all these pixels.
//!
//! This module uses the formulas of [`Shape`]. A value that is equal at all pixels is computed once.

use std::iter::repeat_n;
use std::sync::Arc;

use reconverge_simt::level::Task;
use reconverge_simt::wide::Wide;

use crate::interpolate::{How, Input, Kind, Shape, Window};
use crate::primitive::Topology;
use crate::setup::{Corner, PIXEL, Quad};
use crate::state::{Batch, Draw, Fragments, LaneColumn, ReadColumns};
use crate::vertex::has;

/// Number of quads whose weights are stored at a time.
const QUADS: usize = 128;
/// Number of pixels of [`QUADS`] quads.
const PIXELS: usize = 4 * QUADS;

/// One number per pixel.
type PerPixel = [f64; PIXELS];

/// Divides whole numbers by a constant whole number without a division instruction.
///
/// The code multiplies the numerator by the reciprocal of the divisor, and corrects this estimate with the exact
/// remainder. The result equals the double that a division returns. Before rounding, the difference between the
/// corrected estimate and the exact quotient is less than 2^-52 units in the last place. If numerator and divisor are
/// below [`Quotient::LIMIT`], the exact quotient is either a double or at least 2^-51 units in the last place from the
/// middle between two doubles. The corrected estimate and the exact quotient therefore round to the same double. The
/// code adds the remainder with the sign of the divisor. So a zero has the sign that a division returns. The
/// computation of a pixel with this method takes 0.5 ns less than a computation with two divisions (an AMD EPYC, AVX2).
#[derive(Clone, Copy, Debug)]
struct Quotient {
    /// A mask for the sign bit of the numerator. If the divisor is positive, the computation of the remainder changes
    /// the numerator's sign with this mask. If the divisor is negative, the mask is 0.
    flips: u64,
    divisor: f64,
    reciprocal: f64,
}

impl Quotient {
    /// Upper limit of the magnitudes of numerator and divisor.
    const LIMIT: f64 = (1_u64 << 50) as f64;

    /// Prepares divisions by `divisor`. Returns `None` if the divisor is 0, not a whole number, or not below the limit.
    fn by(divisor: f64) -> Option<Quotient> {
        let fits = divisor != 0. && divisor.abs() < Self::LIMIT && libm::trunc(divisor) == divisor;
        let flips = if divisor > 0. { 1 << 63 } else { 0 };
        fits.then(|| Quotient { flips, divisor, reciprocal: 1. / divisor })
    }

    /// Returns the quotient of `number`, which must be a whole number below the limit.
    #[inline(always)]
    fn of(self, number: f64) -> f64 {
        let near = number * self.reciprocal;
        let minus_rest = self.divisor.abs().mul_add(near, f64::from_bits(number.to_bits() ^ self.flips));
        minus_rest.mul_add(-self.reciprocal.abs(), near)
    }
}

/// The change of an input component over a primitive.
#[derive(Clone, Copy, Debug)]
enum Slope {
    Constant(u32),
    /// The value is equal at all vertices. The value is also equal at all pixels, because the perspective-correct
    /// weights of the pixels are finite.
    Alike(u32),
    /// The first number is the value at the first vertex. The other numbers are the values at the second and third
    /// vertex, each minus the first number.
    Linear([f64; 3]),
    /// The same numbers as in `Linear`, for perspective-correct weights.
    Perspective([f64; 3]),
    /// The value changes along one axis of a point.
    Along(Along),
}

/// The change of a component along one axis of a point.
#[derive(Clone, Copy, Debug)]
struct Along {
    axis: usize,
    centre: f64,
    size: f64,
    /// Whether the component falls from 1 at the left or upper edge to 0 at the opposite edge. Otherwise, the component
    /// rises from 0 to 1.
    falls: bool,
    /// The value at the left or upper edge, and the value at the opposite edge. If the two values are 0 and 1, this
    /// field is `None`.
    stretched: Option<[f64; 2]>,
}

impl Along {
    #[inline(always)]
    fn at(&self, place: f64) -> u32 {
        let along = 0.5 + (place - self.centre) / self.size;
        let value = match self.stretched {
            None if self.falls => 1. - along,
            None => along,
            Some([low, high]) => low + (high - low) * along,
        };
        (value as f32).to_bits()
    }
}

/// A column of the batch, and the change of the column's values over the primitive.
#[derive(Clone, Copy, Debug)]
struct Filled {
    input: usize,
    chan: usize,
    change: Slope,
}

/// The data of a primitive from which the values of the primitive's pixels are computed.
#[derive(Debug, Default)]
pub(crate) struct Slopes {
    /// The first corner.
    first: [f64; 2],
    /// The second corner, relative to the first corner.
    second: [f64; 2],
    /// The third corner, relative to the first corner.
    third: [f64; 2],
    /// The divisor of linear weights. For a triangle, the divisor is twice the area. For a line, the divisor is the
    /// square of the length.
    divisor: f64,
    is_line: bool,
    /// Upper bound of the distance of a line's pixels from the line.
    aside: f64,
    z: [f64; 3],
    offset: f64,
    reciprocals: [f64; 3],
    /// Whether perspective-correct weights equal linear weights, because w is equal at all vertices.
    flat: bool,
    /// Whether the primitive is a line, or has an area of many pixels.
    is_wide: bool,
    /// Whether the primitive is a rectangle. The fourth corner of a rectangle is not a vertex.
    is_rectangle: bool,
    /// Whether a component has perspective-correct weights that differ from the linear weights.
    divides: bool,
    front: bool,
    /// Depth, or `None` if the depth may differ between pixels.
    depth: Option<f64>,
    /// Clip-space w, or `None` if w may differ between pixels.
    w: Option<f64>,
    filled: Vec<Filled>,
}

impl Slopes {
    /// Replaces the data by the data of another primitive. `size` is the size of a point in pixels.
    pub(crate) fn set(&mut self, shape: &Shape<'_>, size: [f64; 2], draw: &Draw, reads: &ReadColumns) {
        let [a, b, c] = [0, 1, 2].map(|at| shape.windows[at].corner.map(|at| at as f64));
        let from_first = |corner: [f64; 2]| [corner[0] - a[0], corner[1] - a[1]];
        let (second, third) = (from_first(b), from_first(c));
        self.is_line = shape.kind == Kind::Line;
        self.divisor = match self.is_line {
            true => second[0] * second[0] + second[1] * second[1],
            false => second[0] * third[1] - third[0] * second[1],
        };
        if self.is_line && self.divisor == 0. {
            self.divisor = 1.;
        }
        self.aside = if self.is_line { f64::from(draw.line_width) * PIXEL as f64 } else { 0. };
        (self.first, self.second, self.third) = (a, second, third);
        self.z = [0, 1, 2].map(|at| shape.windows[at].z);
        self.offset = shape.offset;
        self.reciprocals = [0, 1, 2].map(|at| shape.windows[at].reciprocal);
        self.flat = self.reciprocals.iter().all(|reciprocal| *reciprocal == self.reciprocals[0]);
        self.is_rectangle = draw.topology == Topology::Rectangles;
        self.front = shape.front;
        let Window { z, reciprocal, .. } = shape.windows[0];
        let is_point = shape.kind == Kind::Point;
        // Suppose that a single-precision value is equal at all vertices. Then the weighted sum of the value in doubles
        // rounds to the same value. Near a thin triangle, the weights are large, so the sum may round to another value.
        // For a line, the sum always rounds to the same value, because the weights of a line are at most 1.
        const WIDE: f64 = (256 * PIXEL * PIXEL) as f64;
        self.is_wide = self.is_line || self.divisor.abs() >= WIDE;
        let is_tame = |of: &Slopes| of.is_wide || of.is_near() && of.steepness() < 256.;
        let level = shape.offset == 0. && self.z == [z; 3] && z.is_finite() && is_tame(self);
        self.depth = (is_point || level).then_some(z + shape.offset);
        // At a pixel, w is the reciprocal of a sum. The terms of the sum are the linear weights, each multiplied by 1/w
        // of its vertex. If w is equal at all vertices, the sums at two pixels differ only in the last bits. The last
        // bits do not affect w in single precision.
        let near = |change: f64| (1. / (reciprocal * change)) as f32;
        const MARGIN: f64 = 1. / (1 << 30) as f64;
        let steady = self.flat && near(1. - MARGIN).to_bits() == near(1. + MARGIN).to_bits() && is_tame(self);
        self.w = (is_point || steady).then_some(1. / reciprocal);
        self.divides = false;
        self.filled.clear();
        for (input, kind) in draw.inputs.iter().enumerate() {
            for chan in (0..4).filter(|chan| reads.has(input, *chan)) {
                let change = match shape.kind {
                    Kind::Point => on_point(shape, size, kind, chan),
                    _ => self.change(shape, kind, chan),
                };
                self.divides |= matches!(change, Slope::Perspective(_));
                self.filled.push(Filled { input, chan, change });
            }
        }
    }

    /// Returns whether a component of an input changes by a constant amount from pixel to pixel, except for rounding.
    pub(crate) fn is_affine(&self, input: usize, chan: usize) -> bool {
        let exact = !self.is_line && self.divisor != 0. && self.is_near();
        let of = self.filled.iter().find(|filled| (filled.input, filled.chan) == (input, chan));
        of.is_some_and(|of| match of.change {
            Slope::Constant(_) | Slope::Along(_) => true,
            Slope::Linear(_) => exact,
            Slope::Alike(_) | Slope::Perspective(_) => false,
        })
    }

    /// Returns whether perspective-correct weights are certainly finite. The divisor of these weights is a sum. The
    /// terms of the sum are the linear weights, each multiplied by 1/w of its vertex. If the sum is not near 0, the
    /// weights are finite. Inside of a triangle, the sum is between the smallest and the largest 1/w of the vertices.
    /// At a neighbouring pixel outside of the triangle, the sum may be outside of this range. The distance from the
    /// range is then at most the change of the sum from one pixel to the next.
    fn is_finite_in_space(&self) -> bool {
        let count = if self.is_line { 2 } else { 3 };
        let all = &self.reciprocals[..count];
        if self.is_rectangle
            || !self.is_near()
            || !all.iter().all(|reciprocal| (1e-30..1e30).contains(reciprocal))
        {
            return false;
        }
        let least = all.iter().copied().fold(f64::INFINITY, f64::min);
        let most = all.iter().copied().fold(f64::NEG_INFINITY, f64::max);
        let weight = self.steepness();
        self.is_line || weight < (1 << 16) as f64 && weight * (most - least) * 2. < least
    }

    /// Returns an upper bound for the difference between the linear weights of adjacent pixels.
    fn steepness(&self) -> f64 {
        let extent: f64 = self.second.iter().chain(&self.third).map(|at| at.abs()).sum();
        extent * PIXEL as f64 / self.divisor.abs()
    }

    /// Returns whether every product of a corner's coordinate and a pixel's coordinate is a whole number below 2^49.
    /// The function ignores pixels far from the primitive. Sums of such products are exact as doubles.
    fn is_near(&self) -> bool {
        const NEAR: f64 = (1 << 23) as f64;
        let is_near = |corner: &[f64; 2]| corner.iter().all(|at| at.abs() < NEAR);
        [self.first, self.second, self.third, [self.aside; 2]].iter().all(is_near)
    }

    /// Returns the depth that the tests use, or `None` if this depth differs between pixels. Also returns whether the
    /// front side of the primitive is visible.
    pub(crate) fn level(&self, draw: &Draw) -> (Option<f32>, bool) {
        (self.depth.map(|depth| clamped(draw, depth)), self.front)
    }

    /// Returns whether certain values are the same at all pixels. These values are the inputs that the program reads,
    /// and the components of the position in the mask `position`.
    pub(crate) fn is_constant(&self, position: u8) -> bool {
        let inputs = self.filled.iter().all(|filled| matches!(filled.change, Slope::Constant(_)));
        let (z, w) = (self.depth.is_some(), self.w.is_some());
        inputs && position & 3 == 0 && (z || position & 4 == 0) && (w || position & 8 == 0)
    }

    fn change(&self, shape: &Shape<'_>, input: &Input, chan: usize) -> Slope {
        let one = 1f32.to_bits();
        let (index, how) = match *input {
            Input::Attribute { index, how } => (index, how),
            Input::Constant(value) => return Slope::Constant(value[chan]),
            Input::Sprite { otherwise: None, .. } => return Slope::Constant(0),
            Input::Sprite { otherwise: Some(index), .. } => (index, How::Perspective),
            Input::Stretched { .. } => return Slope::Constant([0, 0, 0, one][chan]),
        };
        if how == How::Flat {
            return Slope::Constant(shape.provoking.attributes[index][chan]);
        }
        let values =
            [0, 1, 2].map(|at| f64::from(f32::from_bits(shape.vertices[at].attributes[index][chan])));
        let [first, second, third] = [values[0], values[1] - values[0], values[2] - values[0]];
        // If all differences are 0, their weighted sum is 0 or -0. The addition of this sum to the first value changes
        // the first value only if the first value is -0.
        let changes = first == 0. && first.is_sign_negative();
        if how == How::Linear || self.flat {
            // Linear weights are finite if the divisor is not 0.
            if second == 0. && third == 0. && !changes && self.divisor != 0. {
                return Slope::Constant((first as f32).to_bits());
            }
            return Slope::Linear([first, second, third]);
        }
        // For a small primitive, the weighted sums take less time than the proof that all sums are equal.
        if second == 0. && third == 0. && !changes && self.is_wide && self.is_finite_in_space() {
            return Slope::Alike((first as f32).to_bits());
        }
        Slope::Perspective([first, second, third])
    }
}

/// Returns the change of an input component over a point.
fn on_point(shape: &Shape<'_>, size: [f64; 2], input: &Input, chan: usize) -> Slope {
    let along = |axis: usize| Along {
        axis,
        centre: shape.windows[0].corner[axis] as f64,
        size: size[axis].max(1e-6) * PIXEL as f64,
        falls: false,
        stretched: None,
    };
    match *input {
        Input::Sprite { top_is_one, .. } if chan < 2 => {
            Slope::Along(Along { falls: top_is_one && chan == 1, ..along(chan) })
        }
        Input::Stretched { low, high } if chan < 2 => {
            let stretched = Some([low[chan], high[chan]].map(f64::from));
            Slope::Along(Along { stretched, ..along(chan) })
        }
        // The value is equal at all pixels of the point.
        _ => {
            let weights = shape.weights(0, 0, [0, 0]);
            Slope::Constant(shape.value(input, &weights, size)[chan])
        }
    }
}

/// Weights of the vertices at the pixels of up to [`QUADS`] quads. The arrays still contain weights of earlier quads.
/// Each element is overwritten before the element is read.
#[derive(Debug)]
pub(crate) struct Weights {
    /// Linear weights of the second and third vertex.
    linear: [PerPixel; 2],
    /// Perspective-correct weights of the second and third vertex.
    space: [PerPixel; 2],
    /// Linear weight of the first vertex.
    first: PerPixel,
    /// A sum over the vertices. Each term is the linear weight of a vertex times 1/w of the vertex.
    sums: PerPixel,
}

impl Default for Weights {
    fn default() -> Weights {
        let zeros = [0.; PIXELS];
        Weights { linear: [zeros; 2], space: [zeros; 2], first: zeros, sums: zeros }
    }
}

/// A set of a program's inputs. Bit n is for input n.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum InputSet {
    None,
    All,
    /// Inputs whose bit is set.
    With(u64),
    /// Inputs whose bit is not set.
    Without(u64),
}

impl InputSet {
    #[inline(always)]
    fn has(self, input: usize) -> bool {
        match self {
            InputSet::None => false,
            InputSet::All => true,
            InputSet::With(bits) => has(bits, input),
            InputSet::Without(bits) => !has(bits, input),
        }
    }
}

/// Adds the lanes of a primitive's quads to a batch.
pub(crate) struct Append<'a> {
    pub(crate) batch: &'a mut Batch,
    pub(crate) weights: &'a mut Weights,
    pub(crate) slopes: &'a Slopes,
    pub(crate) quads: &'a [Quad],
    pub(crate) draw: &'a Draw,
    /// Mask of the position's components that are computed.
    pub(crate) reads: u8,
    /// The program's inputs that are computed.
    pub(crate) inputs: InputSet,
    /// Position and inputs are computed at this offset from the centre of each pixel.
    pub(crate) place: Corner,
    /// Whether the quads are added to the batch in addition to the lanes of the quads. If not, the batch already
    /// contains the quads.
    pub(crate) quads_too: bool,
}

/// Clamps a depth to the range of the viewport.
#[inline(always)]
fn clamped(draw: &Draw, depth: f64) -> f32 {
    match draw.viewport.depth {
        Some((low, high)) => (depth as f32).max(low).min(high),
        None => depth as f32,
    }
}

/// Divides weights by `divisor`. If `quotient` is not `None`, uses `quotient` instead of a division.
#[inline(always)]
fn divide<'a>(weights: impl Iterator<Item = &'a mut f64>, divisor: f64, quotient: Option<Quotient>) {
    match quotient {
        Some(quotient) => weights.for_each(|weight| *weight = quotient.of(*weight)),
        None => weights.for_each(|weight| *weight /= divisor),
    }
}

/// Adds one word per pixel to a column.
#[inline(always)]
fn add(column: &mut LaneColumn, words: impl Iterator<Item = u32>) {
    Arc::make_mut(column).extend(words);
}

/// Adds four words per quad to a column.
#[inline(always)]
fn add_quads(column: &mut LaneColumn, quads: &[Quad], words: impl Fn(&Quad) -> [u32; 4]) {
    add(column, quads.iter().flat_map(words));
}

/// Adds a weighted sum for each of the first `lanes` pixels to a column.
#[inline(always)]
fn add_sums(
    column: &mut LaneColumn,
    weights: &[PerPixel; 2],
    lanes: usize,
    is_line: bool,
    [first, second, third]: [f64; 3],
) {
    if is_line {
        let sum = |weight: &f64| ((first + second * weight) as f32).to_bits();
        return add(column, weights[0][..lanes].iter().map(sum));
    }
    let sum = |(a, b): (&f64, &f64)| ((first + (second * a + third * b)) as f32).to_bits();
    add(column, weights[0][..lanes].iter().zip(&weights[1][..lanes]).map(sum));
}

impl Task for Append<'_> {
    type Output = ();

    #[inline(always)]
    fn run<W: Wide>(self, wide: W) {
        let Append { batch, weights, slopes, quads, draw, reads, inputs, place, quads_too } = self;
        let all = &mut batch.fragments;
        if quads_too {
            all.lanes += 4 * quads.len();
            all.quads.extend_from_slice(quads);
            all.fronts.resize(all.quads.len(), slopes.front);
        }
        for quads in quads.chunks(QUADS) {
            slopes.add(wide, all, weights, quads, (draw, reads), (inputs, place));
        }
    }
}

impl Slopes {
    /// Adds the columns of at most [`QUADS`] quads.
    #[inline(always)]
    fn add<W: Wide>(
        &self,
        _: W,
        all: &mut Fragments,
        weights: &mut Weights,
        quads: &[Quad],
        (draw, reads): (&Draw, u8),
        (inputs, place): (InputSet, Corner),
    ) {
        let Slopes { first, second: b, third: c, divisor, z, reciprocals: r, .. } = *self;
        let lanes = 4 * quads.len();
        let (has_w, has_depth) = (reads & 8 != 0, reads & 4 != 0);
        let centre = place.map(|place| (PIXEL / 2 + place) as f64);
        let has_inputs = inputs != InputSet::None;
        let depth = self.depth.filter(|_| has_depth).map(|depth| (2, clamped(draw, depth)));
        let w = self.w.filter(|_| has_w).map(|w| (3, w as f32));
        for (axis, value) in depth.into_iter().chain(w) {
            add(&mut all.positions[axis], repeat_n(value.to_bits(), lanes));
        }
        let (has_w, has_depth) = (has_w && w.is_none(), has_depth && depth.is_none());
        let has_space = has_inputs && self.divides || has_w;
        let Weights { linear, space, first: of_first, sums } = weights;
        let [second, third] = linear.each_mut().map(|weights| &mut weights[..lanes]);
        let (of_first, sums) = (&mut of_first[..lanes], &mut sums[..lanes]);
        if has_depth || has_space || has_inputs && self.is_weighted() {
            // Positions of a quad's four pixels relative to the first corner.
            let places = |quad: &Quad| {
                let at = [quad.x, quad.y].map(|at| f64::from(at) * PIXEL as f64);
                let at = [at[0] + centre[0], at[1] + centre[1]];
                let x = [0., PIXEL as f64, 0., PIXEL as f64].map(|along| at[0] + along - first[0]);
                let y = [0., 0., PIXEL as f64, PIXEL as f64].map(|along| at[1] + along - first[1]);
                (x, y)
            };
            let quotient = Quotient::by(divisor).filter(|_| W::FUSED && self.is_near());
            if self.is_line {
                for (quad, second) in quads.iter().zip(second.as_chunks_mut().0) {
                    let (x, y) = places(quad);
                    *second = [0, 1, 2, 3].map(|lane| x[lane] * b[0] + y[lane] * b[1]);
                }
                divide(second.iter_mut(), divisor, quotient);
                second.iter_mut().for_each(|weight| *weight = weight.clamp(0., 1.));
            } else {
                let fours = second.as_chunks_mut().0.iter_mut().zip(third.as_chunks_mut().0);
                for (quad, (second, third)) in quads.iter().zip(fours) {
                    let (x, y) = places(quad);
                    *second = [0, 1, 2, 3].map(|lane| x[lane] * c[1] - c[0] * y[lane]);
                    *third = [0, 1, 2, 3].map(|lane| b[0] * y[lane] - x[lane] * b[1]);
                }
                divide(second.iter_mut().chain(&mut *third), divisor, quotient);
            }
        }
        if self.is_line {
            of_first.iter_mut().zip(&*second).for_each(|(of_first, second)| *of_first = 1. - second);
        } else if has_depth || has_space {
            for ((of_first, second), third) in of_first.iter_mut().zip(&*second).zip(&*third) {
                *of_first = 1. - second - third;
            }
        }
        if has_depth {
            let weights = of_first.iter().zip(&*second).zip(&*third);
            let depth = |((first, second), third): ((&f64, &f64), &f64)| {
                let sum = z[0] * first + z[1] * second;
                let sum = if self.is_line { sum } else { sum + z[2] * third };
                clamped(draw, sum + self.offset).to_bits()
            };
            add(&mut all.positions[2], weights.map(depth));
        }
        for axis in (0..2).filter(|axis| reads >> axis & 1 != 0) {
            let centre = centre[axis] as f32 / PIXEL as f32;
            add_quads(&mut all.positions[axis], quads, |quad| {
                let at = [quad.x, quad.y][axis];
                [0, 1, 2, 3].map(|lane| (at + (lane >> axis & 1)) as f32 + centre).map(f32::to_bits)
            });
        }
        if !has_inputs && !has_w {
            return;
        }
        if has_space && self.is_line {
            for lane in 0..lanes {
                let second = second[lane] * r[1];
                let sum = 0. + of_first[lane] * r[0] + second;
                (space[0][lane], sums[lane]) = (second / sum, sum);
            }
        } else if has_space {
            for lane in 0..lanes {
                let (second, third) = (second[lane] * r[1], third[lane] * r[2]);
                let sum = 0. + of_first[lane] * r[0] + second + third;
                (space[0][lane], space[1][lane]) = (second / sum, third / sum);
                sums[lane] = sum;
            }
        }
        if has_w {
            add(&mut all.positions[3], sums.iter().map(|sum| ((1. / sum) as f32).to_bits()));
        }
        for Filled { input, chan, change } in self.filled.iter().filter(|filled| inputs.has(filled.input)) {
            let column = &mut all.inputs[*input][*chan];
            match *change {
                Slope::Constant(word) | Slope::Alike(word) => add(column, repeat_n(word, lanes)),
                Slope::Linear(values) => add_sums(column, linear, lanes, self.is_line, values),
                Slope::Perspective(values) => add_sums(column, space, lanes, self.is_line, values),
                Slope::Along(along) => add_quads(column, quads, |quad| {
                    let first = [quad.x, quad.y][along.axis];
                    let place = |at: i32| f64::from(at) * PIXEL as f64 + centre[along.axis];
                    [0, 1, 2, 3].map(|lane| along.at(place(first + (lane >> along.axis & 1))))
                }),
            }
        }
    }

    /// Returns whether an input depends on the weights of vertices.
    fn is_weighted(&self) -> bool {
        self.filled.iter().any(|filled| matches!(filled.change, Slope::Linear(_) | Slope::Perspective(_)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The numerators have three kinds: random numbers of all magnitudes, numbers near multiples of the divisor, and
    /// numbers whose quotient is near the middle between two doubles.
    #[test]
    fn quotients_are_those_of_a_division() {
        let mut random = 7_u64;
        let mut next = || {
            random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            let number = (random >> 14) as i64 >> (random >> 3 & 0x3f).min(49);
            if random >> 9 & 1 == 0 { number as f64 } else { -(number as f64) }
        };
        for _ in 0..400_000 {
            let divisor = next();
            let Some(quotient) = Quotient::by(divisor) else { continue };
            let number = next();
            let multiple = libm::trunc(number / divisor) * divisor;
            let half = libm::trunc(divisor / 2.);
            for number in [number, multiple, multiple + 1., multiple - 1., multiple + half, 0., -0., divisor]
            {
                if number.abs() < Quotient::LIMIT {
                    let (found, expected) = (quotient.of(number), number / divisor);
                    assert_eq!(found.to_bits(), expected.to_bits(), "{number} / {divisor}");
                }
            }
        }
    }

    #[test]
    fn only_whole_numbers_below_the_limit_are_divisors() {
        for divisor in [0., -0., 0.5, Quotient::LIMIT, f64::INFINITY, f64::NAN] {
            assert!(Quotient::by(divisor).is_none(), "{divisor}");
        }
    }
}
