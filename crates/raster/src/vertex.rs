//! Vertices as the vertex program leaves them.

/// A vertex after its program.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Vertex {
    /// x, y, z, w in clip space.
    pub position: [f32; 4],
    /// Width and height of a point, in pixels.
    pub point_size: f32,
    /// Clip and cull distances: outside where negative.
    pub distances: [f32; 8],
    /// What is interpolated: x, y, z, w as bits.
    pub attributes: Vec<[u32; 4]>,
}

impl Vertex {
    /// The vertex a share of `along` of the way from one to another, in clip space.
    pub(crate) fn between(from: &Vertex, to: &Vertex, along: f64) -> Vertex {
        let mix = |from: f32, to: f32| (f64::from(from) + (f64::from(to) - f64::from(from)) * along) as f32;
        let bits = |from: u32, to: u32| mix(f32::from_bits(from), f32::from_bits(to)).to_bits();
        let each = |from: &[u32; 4], to: &[u32; 4]| std::array::from_fn(|at| bits(from[at], to[at]));
        Vertex {
            position: std::array::from_fn(|at| mix(from.position[at], to.position[at])),
            point_size: from.point_size,
            distances: std::array::from_fn(|at| mix(from.distances[at], to.distances[at])),
            attributes: from.attributes.iter().zip(&to.attributes).map(|(from, to)| each(from, to)).collect(),
        }
    }
}
