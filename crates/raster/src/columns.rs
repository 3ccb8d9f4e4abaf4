//! The fragments of a triangle by columns: weights of many pixels at once, then one component of an input after the other.
//!
//! Every formula is that of [`Shape`], with everything that is the same at all pixels computed once.

use reconverge_simt::level::Task;
use reconverge_simt::wide::Wide;

use crate::interpolate::{How, Input, Shape};
use crate::setup::{PIXEL, Quad};
use crate::state::{Batch, Draw, Fragments, LaneWords, ReadColumns};

/// Quads whose weights are kept at a time.
const QUADS: usize = 64;

/// Four pixels of a quad.
type Four = [f64; 4];

/// The change of an input component over a triangle.
#[derive(Clone, Copy, Debug)]
enum Slope {
    Constant(u32),
    /// The value at the first vertex, and the differences of the others from it.
    Linear([f64; 3]),
    /// The same, with perspective-correct weights.
    Perspective([f64; 3]),
}

/// A column of the batch, and what it gets.
#[derive(Clone, Copy, Debug)]
struct Filled {
    input: usize,
    chan: usize,
    change: Slope,
}

/// All of a triangle that its pixels read.
#[derive(Debug, Default)]
pub(crate) struct Triangle {
    /// The first corner, and the others from it.
    first: [f64; 2],
    second: [f64; 2],
    third: [f64; 2],
    area: f64,
    z: [f64; 3],
    offset: f64,
    reciprocals: [f64; 3],
    /// Whether weights in space are those in the window.
    flat: bool,
    /// Whether some component has weights in space that are not those in the window.
    divides: bool,
    front: bool,
    filled: Vec<Filled>,
}

impl Triangle {
    /// Takes the place of the triangle before.
    pub(crate) fn set(&mut self, shape: &Shape<'_>, draw: &Draw, reads: &ReadColumns) {
        let [a, b, c] = [0, 1, 2].map(|at| shape.windows[at].corner.map(|at| at as f64));
        let from_first = |corner: [f64; 2]| [corner[0] - a[0], corner[1] - a[1]];
        let (second, third) = (from_first(b), from_first(c));
        self.area = second[0] * third[1] - third[0] * second[1];
        (self.first, self.second, self.third) = (a, second, third);
        self.z = [0, 1, 2].map(|at| shape.windows[at].z);
        self.offset = shape.offset;
        self.reciprocals = [0, 1, 2].map(|at| shape.windows[at].reciprocal);
        self.flat = self.reciprocals.iter().all(|reciprocal| *reciprocal == self.reciprocals[0]);
        self.front = shape.front;
        self.divides = false;
        self.filled.clear();
        for (input, kind) in draw.inputs.iter().enumerate() {
            for chan in (0..4).filter(|chan| reads.has(input, *chan)) {
                let change = self.change(shape, kind, chan);
                self.divides |= matches!(change, Slope::Perspective(_));
                self.filled.push(Filled { input, chan, change });
            }
        }
    }

    /// Whether all inputs that are read are the same at all pixels.
    pub(crate) fn is_constant(&self) -> bool {
        self.filled.iter().all(|filled| matches!(filled.change, Slope::Constant(_)))
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
        if how == How::Linear || self.flat {
            // Weights in the window are finite. A sum of zeros may be 0 or -0, which changes -0 only.
            let changes = first == 0. && first.is_sign_negative();
            if second == 0. && third == 0. && !changes && self.area != 0. {
                return Slope::Constant((first as f32).to_bits());
            }
            return Slope::Linear([first, second, third]);
        }
        Slope::Perspective([first, second, third])
    }
}

/// Adds the lanes of a triangle's quads to a batch.
pub(crate) struct Append<'a> {
    pub(crate) batch: &'a mut Batch,
    pub(crate) triangle: &'a Triangle,
    pub(crate) quads: &'a [Quad],
    pub(crate) draw: &'a Draw,
    /// Components of the position that the program reads.
    pub(crate) reads: u8,
    /// Whether inputs are made.
    pub(crate) inputs: bool,
}

/// Makes room for `lanes` more words, and returns it by quads.
#[inline(always)]
fn more(column: &mut LaneWords, lanes: usize) -> &mut [[u32; 4]] {
    let before = column.len();
    column.resize(before + lanes, 0);
    column[before..].as_chunks_mut().0
}

/// A weighted sum at the pixels of each quad, as words.
#[inline(always)]
fn weighted(to: &mut [[u32; 4]], weights: &[[Four; 2]], [first, second, third]: [f64; 3]) {
    for (to, weights) in to.iter_mut().zip(weights) {
        for lane in 0..4 {
            let sum = second * weights[0][lane] + third * weights[1][lane];
            to[lane] = ((first + sum) as f32).to_bits();
        }
    }
}

impl Task for Append<'_> {
    type Output = ();

    #[inline(always)]
    fn run<W: Wide>(self, _: W) {
        let Append { batch, triangle, quads, draw, reads, inputs } = self;
        let all = &mut batch.fragments;
        all.lanes += 4 * quads.len();
        all.front.resize(all.lanes, triangle.front);
        all.sample.resize(all.lanes, 0);
        for quad in quads {
            let covered: [u8; 4] = std::array::from_fn(|lane| quad.covered >> lane & 1);
            all.samples.extend_from_slice(&covered);
            all.covered.extend_from_slice(&covered.map(|covered| covered != 0));
            all.quads.push((quad.x, quad.y));
        }
        for quads in quads.chunks(QUADS) {
            triangle.add(all, quads, (draw, reads), inputs);
        }
    }
}

impl Triangle {
    /// Adds the columns of at most [`QUADS`] quads.
    #[inline(always)]
    fn add(&self, all: &mut Fragments, quads: &[Quad], (draw, reads): (&Draw, u8), inputs: bool) {
        let Triangle { first, second: b, third: c, area, z, reciprocals: r, .. } = *self;
        let (count, lanes) = (quads.len(), 4 * quads.len());
        // Weights of the second and third vertex, and of all three in the window.
        let mut linear = [[[0.; 4]; 2]; QUADS];
        let mut whole = [[0.; 4]; QUADS];
        for ((quad, weights), rest) in quads.iter().zip(&mut linear).zip(&mut whole) {
            let at = [quad.x, quad.y].map(|at| f64::from(at) * PIXEL as f64 + (PIXEL / 2) as f64);
            let x = [0., PIXEL as f64, 0., PIXEL as f64].map(|along| at[0] + along - first[0]);
            let y = [0., 0., PIXEL as f64, PIXEL as f64].map(|along| at[1] + along - first[1]);
            for lane in 0..4 {
                weights[0][lane] = (x[lane] * c[1] - c[0] * y[lane]) / area;
                weights[1][lane] = (b[0] * y[lane] - x[lane] * b[1]) / area;
                rest[lane] = 1. - weights[0][lane] - weights[1][lane];
            }
        }
        let (linear, whole) = (&linear[..count], &whole[..count]);
        let has_depth = draw.depth.is_some() || reads & 4 != 0;
        let depths = if has_depth { more(&mut all.positions[2], lanes) } else { &mut [] };
        for ((to, weights), rest) in depths.iter_mut().zip(linear).zip(whole) {
            for lane in 0..4 {
                let sum = z[0] * rest[lane] + z[1] * weights[0][lane] + z[2] * weights[1][lane];
                let depth = (sum + self.offset) as f32;
                to[lane] = match draw.viewport.depth {
                    Some((low, high)) => depth.max(low).min(high),
                    None => depth,
                }
                .to_bits();
            }
        }
        let reads = if inputs { reads } else { 0 };
        for axis in (0..2).filter(|axis| reads >> axis & 1 != 0) {
            let to = more(&mut all.positions[axis], lanes);
            for (to, quad) in to.iter_mut().zip(quads) {
                let at = [quad.x, quad.y][axis];
                *to = [0, 1, 2, 3].map(|lane| (at + (lane >> axis & 1)) as f32 + 0.5).map(f32::to_bits);
            }
        }
        if !inputs {
            return;
        }
        let mut space = [[[0.; 4]; 2]; QUADS];
        let has_w = reads & 8 != 0;
        if self.divides || has_w {
            let mut sums = [[0.; 4]; QUADS];
            for (((to, weights), rest), sums) in space.iter_mut().zip(linear).zip(whole).zip(&mut sums) {
                for lane in 0..4 {
                    let (second, third) = (weights[0][lane] * r[1], weights[1][lane] * r[2]);
                    let sum = 0. + rest[lane] * r[0] + second + third;
                    to[0][lane] = second / sum;
                    to[1][lane] = third / sum;
                    sums[lane] = sum;
                }
            }
            if has_w {
                let to = more(&mut all.positions[3], lanes);
                for (to, sums) in to.iter_mut().zip(&sums) {
                    *to = sums.map(|sum| ((1. / sum) as f32).to_bits());
                }
            }
        }
        for Filled { input, chan, change } in &self.filled {
            let column = &mut all.inputs[*input][*chan];
            match *change {
                Slope::Constant(word) => column.resize(column.len() + lanes, word),
                Slope::Linear(values) => weighted(more(column, lanes), linear, values),
                Slope::Perspective(values) => weighted(more(column, lanes), &space[..count], values),
            }
        }
    }
}
