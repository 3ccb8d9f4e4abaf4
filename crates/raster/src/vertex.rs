//! Vertices: the results of the vertex program.

/// Results of the vertex program for one vertex.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Vertex {
    /// x, y, z, w in clip space.
    pub position: [f32; 4],
    /// Width and height of a point, in pixels.
    pub point_size: f32,
    /// Clip and cull distances. If a distance is negative, the vertex is outside of the plane of this distance.
    pub distances: [f32; 8],
    /// Whether the side of the polygon that begins at this vertex is not an edge. The polygon modes of points and lines
    /// do not draw this side. (OpenGL 3.0, 2.6.2)
    pub inner_side: bool,
    /// Attributes to be interpolated: x, y, z, w as bits.
    pub attributes: Vec<[u32; 4]>,
}

/// Returns whether bit `number` is set. Bits from 64 on are 0.
pub(crate) fn has(bits: u64, number: usize) -> bool {
    number < u64::BITS as usize && bits >> number & 1 != 0
}

impl Vertex {
    /// Returns the vertex between two other vertices in clip space. `along` is 0 at the first vertex and 1 at the
    /// second vertex. If bit n of `linear` is set, attribute n changes linearly in window coordinates. Otherwise,
    /// attribute n changes linearly in clip space.
    pub(crate) fn between(from: &Vertex, to: &Vertex, along: f64, linear: u64) -> Vertex {
        let mix = |from: f32, to: f32, along: f64| {
            (f64::from(from) + (f64::from(to) - f64::from(from)) * along) as f32
        };
        let [from_w, to_w] = [from, to].map(|vertex| f64::from(vertex.position[3]));
        let in_window = along * to_w / (from_w + (to_w - from_w) * along);
        let attribute = |number: usize| {
            let along = if has(linear, number) { in_window } else { along };
            let (from, to) = (&from.attributes[number], &to.attributes[number]);
            std::array::from_fn(|at| mix(f32::from_bits(from[at]), f32::from_bits(to[at]), along).to_bits())
        };
        Vertex {
            position: std::array::from_fn(|at| mix(from.position[at], to.position[at], along)),
            point_size: from.point_size,
            inner_side: false,
            distances: std::array::from_fn(|at| mix(from.distances[at], to.distances[at], along)),
            attributes: (0..from.attributes.len().min(to.attributes.len())).map(attribute).collect(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A Tesla program may read more attributes than the mask has bits.
    #[test]
    fn attributes_beyond_the_bits_are_in_perspective() {
        let vertex = |w: f32, value: f32| Vertex {
            position: [0., 0., 0., w],
            attributes: vec![[value.to_bits(); 4]; 70],
            ..Vertex::default()
        };
        let between = Vertex::between(&vertex(1., 0.), &vertex(3., 1.), 0.5, u64::MAX);
        let at = |number: usize| f32::from_bits(between.attributes[number][0]);
        assert_eq!([at(63), at(64), at(69)], [0.75, 0.5, 0.5]);
    }
}
