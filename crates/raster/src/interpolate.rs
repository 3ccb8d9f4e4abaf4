//! Interpolation: computes the inputs of a fragment program from the vertices of a primitive.
//!
//! Source: OpenGL 3.0, 3.4.1, 3.5.1 and 3.6.1, equations 3.5 to 3.8. Weights are doubles. If a value is the same at all
//! vertices of a primitive, every pixel of the primitive gets exactly this value.

use crate::setup::{Corner, PIXEL};
use crate::vertex::Vertex;

/// Source of a fragment program's input.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Input {
    /// An attribute of the vertices.
    Attribute {
        /// Index in [`Vertex::attributes`].
        index: usize,
        /// Interpolation mode.
        how: How,
    },
    /// The same value in all fragments.
    Constant([u32; 4]),
    /// For points, the vector (s, t, 0, 1) with the coordinates of the point sprite. For other primitives, the
    /// attribute `otherwise`.
    Sprite {
        /// Index of the attribute that lines and triangles read. `None` for zeros.
        otherwise: Option<usize>,
        /// Whether t is 1 at the top of the point. If not, t is 0 at the top.
        top_is_one: bool,
    },
    /// The vector (s, t, 0, 1) for points. In a point, s and t change from `low` to `high`. For other primitives, the
    /// vector is (0, 0, 0, 1).
    Stretched {
        /// s at the left edge and t at the top edge.
        low: [f32; 2],
        /// Contains s at the right edge, and t at the bottom edge.
        high: [f32; 2],
    },
}

/// Interpolation mode of an attribute.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum How {
    /// Perspective-correct: linear in clip space.
    Perspective,
    /// Linear in window coordinates.
    Linear,
    /// Value of the provoking vertex.
    Flat,
}

/// A primitive in window coordinates.
#[derive(Debug)]
pub(crate) struct Shape<'a> {
    pub(crate) kind: Kind,
    /// The vertices. For a point or a line, the last vertex is repeated.
    pub(crate) vertices: [&'a Vertex; 3],
    /// Window coordinates and 1/w of the vertices.
    pub(crate) windows: [Window; 3],
    pub(crate) provoking: &'a Vertex,
    pub(crate) front: bool,
    /// Polygon offset of the depth.
    pub(crate) offset: f64,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    Point,
    Line,
    Triangle,
}

/// Window coordinates of a vertex.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Window {
    /// x and y, fixed-point.
    pub(crate) corner: [i64; 2],
    /// Depth before the clamp to the depth range.
    pub(crate) z: f64,
    /// 1/w.
    pub(crate) reciprocal: f64,
}

/// The weights of a primitive's vertices at a position in a pixel.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Weights {
    /// Weights that are linear in window coordinates.
    linear: [f64; 3],
    /// Perspective-correct weights.
    perspective: [f64; 3],
    /// Clip-space w.
    pub(crate) w: f64,
    /// For a point, the position in the window, fixed-point. Zeros for other primitives.
    sprite: [f64; 2],
}

impl Kind {
    /// Returns the number of vertices of a primitive.
    fn vertices(self) -> usize {
        match self {
            Kind::Point => 1,
            Kind::Line => 2,
            Kind::Triangle => 3,
        }
    }
}

impl Shape<'_> {
    /// Returns the weights at the offset `place` from the centre of a pixel.
    pub(crate) fn weights(&self, x: i32, y: i32, place: Corner) -> Weights {
        let at = [x, y].map(|at| i64::from(at) * PIXEL + PIXEL / 2);
        let at = [0, 1].map(|axis| (at[axis] + place[axis]) as f64);
        let corner = |number: usize| self.windows[number].corner.map(|at| at as f64);
        let mut sprite = [0.; 2];
        let linear = match self.kind {
            Kind::Point => {
                sprite = at;
                [1., 0., 0.]
            }
            Kind::Line => {
                let (a, b) = (corner(0), corner(1));
                let (dx, dy) = (b[0] - a[0], b[1] - a[1]);
                let squared = dx * dx + dy * dy;
                let along =
                    ((at[0] - a[0]) * dx + (at[1] - a[1]) * dy) / if squared == 0. { 1. } else { squared };
                let along = along.clamp(0., 1.);
                [1. - along, along, 0.]
            }
            Kind::Triangle => {
                let (a, b, c) = (corner(0), corner(1), corner(2));
                let cross = |o: [f64; 2], p: [f64; 2], q: [f64; 2]| {
                    (p[0] - o[0]) * (q[1] - o[1]) - (q[0] - o[0]) * (p[1] - o[1])
                };
                let area = cross(a, b, c);
                let (second, third) = (cross(a, at, c) / area, cross(a, b, at) / area);
                [1. - second - third, second, third]
            }
        };
        let mut perspective = [0.; 3];
        let mut sum = 0.;
        let windows = &self.windows[..self.kind.vertices()];
        for (number, window) in windows.iter().enumerate() {
            perspective[number] = linear[number] * window.reciprocal;
            sum += perspective[number];
        }
        if windows.iter().all(|window| window.reciprocal == windows[0].reciprocal) {
            perspective = linear;
        } else {
            perspective = perspective.map(|weight| weight / sum);
        }
        Weights { linear, perspective, w: 1. / sum, sprite }
    }

    /// Returns the depth for these weights, with the polygon offset.
    pub(crate) fn depth(&self, weights: &Weights) -> f64 {
        let windows = self.windows[..self.kind.vertices()].iter();
        let sum: f64 = windows.zip(weights.linear).map(|(window, weight)| window.z * weight).sum();
        sum + self.offset
    }

    /// Returns the value of an input for these weights. `size` is the size of a point in pixels.
    pub(crate) fn value(&self, input: &Input, weights: &Weights, size: [f64; 2]) -> [u32; 4] {
        let attribute = |index: usize, how: How| {
            let weights = match how {
                How::Flat => return self.provoking.attributes[index],
                How::Perspective => weights.perspective,
                How::Linear => weights.linear,
            };
            std::array::from_fn(|chan| {
                let value = |vertex: &Vertex| f64::from(f32::from_bits(vertex.attributes[index][chan]));
                let first = value(self.vertices[0]);
                let parts = self.vertices[..self.kind.vertices()].iter().zip(weights).skip(1);
                // The sum consists of weighted differences from the first value. If all values are equal, all
                // differences are 0, so the result is exact.
                let sum: f64 = parts.map(|(vertex, weight)| (value(vertex) - first) * weight).sum();
                ((first + sum) as f32).to_bits()
            })
        };
        // Position relative to the point: 0 at the left and top edges of the point, 1 at its right and bottom edges.
        let along = || {
            let centre = self.windows[0].corner.map(|at| at as f64);
            [0, 1].map(|axis| {
                0.5 + (weights.sprite[axis] - centre[axis]) / (size[axis].max(1e-6) * PIXEL as f64)
            })
        };
        match *input {
            Input::Attribute { index, how } => attribute(index, how),
            Input::Constant(value) => value,
            Input::Sprite { otherwise, .. } if self.kind != Kind::Point => {
                otherwise.map_or([0; 4], |index| attribute(index, How::Perspective))
            }
            Input::Sprite { top_is_one, .. } => {
                let [s, t] = along();
                let t = if top_is_one { 1. - t } else { t };
                [(s as f32).to_bits(), (t as f32).to_bits(), 0, 1f32.to_bits()]
            }
            Input::Stretched { .. } if self.kind != Kind::Point => [0, 0, 0, 1f32.to_bits()],
            Input::Stretched { low, high } => {
                let along = along();
                let [s, t] = [0, 1].map(|axis| {
                    let (low, high) = (f64::from(low[axis]), f64::from(high[axis]));
                    ((low + (high - low) * along[axis]) as f32).to_bits()
                });
                [s, t, 0, 1f32.to_bits()]
            }
        }
    }
}
