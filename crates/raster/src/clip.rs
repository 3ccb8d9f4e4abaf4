//! Clipping in clip space.
//!
//! Source: OpenGL 3.0, 2.17. The left, right, upper and lower sides of the view volume do not clip primitives. Instead,
//! a guard band far outside of every surface clips primitives. The scissor removes the pixels outside of the view
//! volume. Clipping at the near plane, the far plane and the user's planes is exact.

use crate::vertex::Vertex;

/// The clipping planes, and the conditions under which primitives are dropped.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Clip {
    /// Near plane: z is at least 0 (`true`) or at least -w (`false`). If depth is clamped instead, this field is
    /// `None`.
    pub near: Option<bool>,
    /// Far plane: whether z is at most w.
    pub far: bool,
    /// Bit n: primitives are clipped where distance n of [`Vertex::distances`] is negative.
    pub distances: u8,
    /// Bit n belongs to distance n of [`Vertex::distances`]. If bit n is set, clipping drops a primitive whose distance
    /// n is negative at all vertices.
    pub culls: u8,
    /// The guard band: maximum ratio of x and y to w.
    pub band: [f32; 2],
    /// Bit n: attribute n is linear in window coordinates (OpenGL 3.0, noperspective). If clipping adds a vertex,
    /// attribute n of this vertex is also linear in window coordinates.
    pub linear: u64,
    /// Ratio of x and y to w at the sides of the view volume. If all vertices of a primitive are outside of one side,
    /// clipping drops the primitive.
    pub discard: Option<[f32; 2]>,
    /// Whether a side that clipping adds counts as an edge. The polygon modes of points and lines draw only edges.
    pub cut_edges: bool,
}

/// Minimum w. Vertices with a smaller w are clipped, so that division by w is possible.
const LEAST_W: f32 = 1e-12;

impl Clip {
    /// Returns the distance of a vertex from each plane. If a distance is negative, the vertex is outside of the plane.
    fn inside<'a>(&'a self, vertex: &'a Vertex) -> impl Iterator<Item = f64> + 'a {
        let [x, y, z, w] = vertex.position.map(f64::from);
        let [band_x, band_y] = self.band.map(f64::from);
        let near = self.near.map(|zero| if zero { z } else { z + w });
        let far = self.far.then_some(w - z);
        let sides = [w - f64::from(LEAST_W), band_x * w - x, band_x * w + x, band_y * w - y, band_y * w + y];
        let user = (0..8).filter(|plane| self.distances >> plane & 1 != 0);
        let user = user.map(|plane| f64::from(vertex.distances[plane]));
        sides.into_iter().chain(near).chain(far).chain(user)
    }

    /// Returns whether the cull distances drop a primitive.
    pub fn drops(&self, vertices: &[&Vertex]) -> bool {
        (0..8).filter(|plane| self.culls >> plane & 1 != 0).any(|plane| {
            // A NaN is not negative, so a NaN does not drop a primitive.
            vertices.iter().all(|vertex| vertex.distances[plane] < 0.)
        })
    }

    /// Returns whether some side of the view volume has all these vertices outside.
    pub(crate) fn discards<'a>(&self, vertices: impl Iterator<Item = &'a Vertex> + Clone) -> bool {
        let Some(discard) = self.discard else { return false };
        (0..2).any(|axis| {
            let beyond = |vertex: &Vertex, sign: f32| {
                sign * vertex.position[axis] > discard[axis] * vertex.position[3]
            };
            [1., -1.].into_iter().any(|sign| vertices.clone().all(|vertex| beyond(vertex, sign)))
        })
    }

    /// Returns whether a point is inside of all planes.
    pub fn holds(&self, vertex: &Vertex) -> bool {
        self.inside(vertex).all(|distance| distance >= 0.)
    }

    /// Clips a convex polygon, or a line if `polygon` has two vertices. Returns the part that is inside of all planes.
    /// This part may be empty.
    pub fn cut(&self, polygon: Vec<Vertex>) -> Vec<Vertex> {
        self.cut_with_edges(polygon, u32::MAX).0
    }

    /// Clips a polygon as [`Clip::cut`] does, and also returns which sides are edges. Bit n of `edges` is for the side
    /// from vertex n to the next vertex.
    pub(crate) fn cut_with_edges(&self, polygon: Vec<Vertex>, edges: u32) -> (Vec<Vertex>, u32) {
        // If a coordinate is not finite, the position of the primitive is unknown. So clipping drops the primitive.
        if polygon.iter().any(|vertex| vertex.position.iter().any(|x| !x.is_finite())) {
            return (Vec::new(), 0);
        }
        let planes = polygon.first().map_or(0, |vertex| self.inside(vertex).count());
        let (mut polygon, mut edges) = (polygon, edges);
        for plane in 0..planes {
            let distance = |vertex: &Vertex| {
                let distance = self.inside(vertex).nth(plane).unwrap_or(0.);
                // A NaN counts as outside.
                if distance.is_nan() { -1. } else { distance }
            };
            let distances: Vec<f64> = polygon.iter().map(distance).collect();
            if distances.iter().all(|distance| *distance >= 0.) {
                continue;
            }
            let (count, mut cut) = (polygon.len(), Vec::with_capacity(polygon.len() + 1));
            // Each plane adds at most one vertex. A polygon therefore has fewer than 32 vertices, and a `u32` has a bit
            // for each side.
            let mut left = 0;
            for at in 0..count {
                let next = (at + 1) % count;
                let (here, there) = (distances[at], distances[next]);
                let is_edge = edges >> at & 1;
                if here >= 0. {
                    left |= is_edge << cut.len();
                    cut.push(polygon[at].clone());
                }
                let closes_line = count == 2 && at == 1;
                if (here >= 0.) != (there >= 0.) && !closes_line {
                    // The code computes the intersection from the inside vertex. So if two polygons share this side,
                    // both polygons are clipped at the same position.
                    let (from, to) = if here >= 0. { (at, next) } else { (next, at) };
                    let (from_distance, to_distance) = if here >= 0. { (here, there) } else { (there, here) };
                    let along = from_distance / (from_distance - to_distance);
                    left |= if here >= 0. { self.cut_edges.into() } else { is_edge } << cut.len();
                    cut.push(Vertex::between(&polygon[from], &polygon[to], along, self.linear));
                }
            }
            (polygon, edges) = (cut, left);
            if polygon.is_empty() {
                break;
            }
        }
        (polygon, edges)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const CLIP: Clip = Clip {
        near: Some(false),
        far: true,
        distances: 0,
        culls: 0,
        band: [8., 8.],
        linear: 0,
        discard: None,
        cut_edges: true,
    };

    fn vertex(position: [f32; 4]) -> Vertex {
        Vertex { position, attributes: vec![position.map(f32::to_bits)], ..Vertex::default() }
    }

    #[test]
    fn what_is_inside_stays_as_it_is() {
        let all = vec![vertex([0., 0., 0., 1.]), vertex([2., 0., 0., 1.]), vertex([0., 2., 0., 1.])];
        assert_eq!(CLIP.cut(all.clone()), all);
    }

    #[test]
    fn a_corner_beyond_the_near_plane_becomes_an_edge() {
        let all = vec![vertex([0., 0., -2., 1.]), vertex([1., 0., 0., 1.]), vertex([0., 1., 0., 1.])];
        let cut = CLIP.cut(all);
        assert_eq!(cut.len(), 4);
        assert!(cut.iter().all(|vertex| vertex.position[2] >= -1.));
        // Attribute 0 of the test's vertices equals the position. After clipping, attribute 0 must still equal the
        // position.
        assert!(cut.iter().all(|vertex| vertex.attributes[0] == vertex.position.map(f32::to_bits)));
    }

    /// R6xx 3D registers: PA_CL_GB_HORZ_DISC_ADJ and PA_CL_GB_VERT_DISC_ADJ set four sides. The chip drops a primitive
    /// that is outside of one of these sides.
    #[test]
    fn a_primitive_outside_of_one_side_is_dropped() {
        let clip = Clip { discard: Some([1., 1.]), ..CLIP };
        let at = |x: f32, y: f32| vertex([x, y, 0., 1.]);
        let drops = |all: &[Vertex]| clip.discards(all.iter());
        assert!(drops(&[at(1.5, 0.), at(2., 0.)]) && drops(&[at(0., -1.5), at(0., -2.)]));
        assert!(!drops(&[at(0.5, 0.), at(2., 0.)]) && !drops(&[at(1.5, 0.), at(0., 1.5)]));
        assert!(!CLIP.discards([at(1.5, 0.)].iter()));
    }

    #[test]
    fn sides_keep_whether_they_are_edges() {
        // Vertex 0 is clipped away. One of the two sides at vertex 0 is not an edge.
        let all = vec![vertex([0., 0., -2., 1.]), vertex([1., 0., 0., 1.]), vertex([0., 1., 0., 1.])];
        let (cut, edges) = CLIP.cut_with_edges(all.clone(), 0b110);
        // The clipped side comes first: from the intersection to the second vertex. Two unclipped sides follow. The
        // side along the plane is the last side.
        assert_eq!((cut.len(), edges), (4, 0b1110));
        assert_eq!(CLIP.cut_with_edges(all, 0b011).1, 0b1011);
    }

    #[test]
    fn what_is_linear_in_the_window_stays_so_where_it_is_cut() {
        // In clip space, the line from w = 1 to w = 3 is clipped at its middle. In the window, the clipped end is at
        // three quarters of the line.
        let ends = [([0., 0., 1., 1.], 0f32), ([0., 0., -5., 3.], 1.)].map(|(position, value)| Vertex {
            position,
            attributes: vec![[value.to_bits(); 4]; 2],
            ..Vertex::default()
        });
        let cut = Clip { linear: 2, ..CLIP }.cut(ends.to_vec());
        let [x, y] = [0, 1].map(|attribute| f32::from_bits(cut[1].attributes[attribute][0]));
        assert_eq!((cut[1].position, x, y), ([0., 0., -2., 2.], 0.5, 0.75));
    }

    #[test]
    fn lines_are_cut_at_both_ends() {
        let cut = CLIP.cut(vec![vertex([0., 0., -2., 1.]), vertex([0., 0., 2., 1.])]);
        assert_eq!(cut.iter().map(|vertex| vertex.position[2]).collect::<Vec<_>>(), [-1., 1.]);
        assert_eq!(CLIP.cut(vec![vertex([0., 0., -3., 1.]), vertex([0., 0., -2., 1.])]), []);
    }

    #[test]
    fn user_planes_cut_and_cull() {
        let clip = Clip { distances: 1, culls: 2, ..CLIP };
        let with = |distances: [f32; 2]| Vertex {
            distances: std::array::from_fn(|at| distances.get(at).copied().unwrap_or(0.)),
            ..vertex([0., 0., 0., 1.])
        };
        assert_eq!(clip.cut(vec![with([-1., 0.]), with([-2., 0.]), with([-1., 0.])]), []);
        let (out, edge) = (with([0., -1.]), with([0., 0.]));
        assert!(clip.drops(&[&out, &out]) && !clip.drops(&[&out, &edge]));
    }

    #[test]
    fn a_position_that_is_no_number_draws_nothing() {
        let all = vec![vertex([f32::NAN; 4]), vertex([1., 0., 0., 1.]), vertex([0., 1., 0., f32::NAN])];
        assert_eq!(CLIP.cut(all), []);
        assert!(!CLIP.holds(&vertex([0., 0., 0., f32::NAN])));
    }
}
