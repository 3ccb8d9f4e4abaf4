//! Primitive assembly: forms points, lines and triangles from a list of indices.
//!
//! Source: OpenGL 3.0, 2.6.1. Table 2.12 of OpenGL 3.0 and EXT_provoking_vertex define the provoking vertices.

/// Topology: how vertices form primitives.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Topology {
    /// Each vertex is a point.
    Points,
    /// Every two vertices form a line.
    Lines,
    /// Each vertex and the previous vertex form a line.
    LineStrip,
    /// [`Topology::LineStrip`], with a line from the last vertex to the first vertex.
    LineLoop,
    /// Every three vertices form a triangle.
    Triangles,
    /// Each vertex and the two previous vertices form a triangle.
    TriangleStrip,
    /// Each vertex, the previous vertex and the first vertex form a triangle.
    TriangleFan,
    /// Every four vertices form two triangles.
    Quads,
    /// Every two vertices and the two previous vertices form two triangles.
    QuadStrip,
    /// A [`Topology::TriangleFan`] whose provoking vertex is always the first vertex.
    Polygon,
    /// Every three vertices form a rectangle along the axes. The fourth corner is the second corner plus the third
    /// corner minus the first corner.
    Rectangles,
    /// [`Topology::Lines`], with an adjacent vertex before and after each line.
    LinesAdjacency,
    /// [`Topology::LineStrip`], with one adjacent vertex at each end.
    LineStripAdjacency,
    /// [`Topology::Triangles`], with an adjacent vertex after each vertex.
    TrianglesAdjacency,
    /// [`Topology::TriangleStrip`], with adjacent vertices between the vertices.
    TriangleStripAdjacency,
}

/// A primitive. Each vertex is identified by its position in the list of indices.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Primitive {
    /// A point has one position, a line has two, and a triangle or rectangle has three. Unused elements are 0. The
    /// order determines which side of a triangle is visible.
    pub vertices: [usize; 3],
    /// Number of vertices.
    pub count: u8,
    /// Position of the vertex whose flat attributes are used.
    pub provoking: usize,
    /// Bit n is for the side from vertex n to the next vertex. The bit is set if the side is an edge of the polygon
    /// that contains the primitive. A side between two triangles of a quad or of a polygon is not an edge. The polygon
    /// modes of points and lines do not draw such a side. (OpenGL 3.0, 2.6.2)
    pub edges: u8,
}

/// [`Primitive::edges`] of a primitive that is not a part of a polygon.
const ALL_EDGES: u8 = 0b111;

/// Returns the primitives of `count` consecutive indices without a restart, in order. The vertices of an incomplete
/// primitive are dropped.
pub fn assemble(topology: Topology, count: usize, last_provokes: bool) -> Vec<Primitive> {
    let mut found = Vec::new();
    assemble_into(topology, count, last_provokes, &mut found);
    found
}

/// Returns the number of primitives that `count` consecutive indices form. Each quad or polygon counts as one
/// primitive.
pub fn count(topology: Topology, count: usize) -> usize {
    match topology {
        Topology::Points => count,
        Topology::Lines => count / 2,
        Topology::LineLoop if count > 1 => count,
        Topology::LineStrip | Topology::LineLoop => count.saturating_sub(1),
        Topology::Triangles | Topology::Rectangles => count / 3,
        Topology::TriangleStrip | Topology::TriangleFan => count.saturating_sub(2),
        Topology::Polygon => usize::from(count > 2),
        Topology::Quads | Topology::LinesAdjacency => count / 4,
        Topology::QuadStrip => (count / 2).saturating_sub(1),
        Topology::LineStripAdjacency => count.saturating_sub(3),
        Topology::TrianglesAdjacency => count / 6,
        Topology::TriangleStripAdjacency => (count / 2).saturating_sub(2),
    }
}

/// Stores the result of [`assemble`] in `found`. The old contents of `found` are dropped.
pub(crate) fn assemble_into(
    topology: Topology,
    count: usize,
    last_provokes: bool,
    found: &mut Vec<Primitive>,
) {
    found.clear();
    let mut part = |vertices: &[usize], provoking: usize, edges: u8| {
        let mut all = [0; 3];
        all[..vertices.len()].copy_from_slice(vertices);
        found.push(Primitive { vertices: all, count: vertices.len() as u8, provoking, edges });
    };
    let mut add = |vertices: &[usize], provoking: usize| part(vertices, provoking, ALL_EDGES);
    let pick = |first: usize, last: usize| if last_provokes { last } else { first };
    match topology {
        Topology::Points => (0..count).for_each(|at| add(&[at], at)),
        Topology::Lines => (1..count).step_by(2).for_each(|at| add(&[at - 1, at], pick(at - 1, at))),
        Topology::LineStrip | Topology::LineLoop => {
            (1..count).for_each(|at| add(&[at - 1, at], pick(at - 1, at)));
            if topology == Topology::LineLoop && count > 1 {
                add(&[count - 1, 0], pick(count - 1, 0));
            }
        }
        Topology::Triangles | Topology::Rectangles => {
            (2..count).step_by(3).for_each(|at| add(&[at - 2, at - 1, at], pick(at - 2, at)));
        }
        Topology::TriangleStrip => {
            for at in 2..count {
                // Every second triangle is reversed. So all triangles of the strip have the same orientation.
                let vertices = if at % 2 == 0 { [at - 2, at - 1, at] } else { [at - 1, at - 2, at] };
                add(&vertices, pick(at - 2, at));
            }
        }
        Topology::TriangleFan => (2..count).for_each(|at| add(&[0, at - 1, at], pick(at - 1, at))),
        Topology::Polygon => {
            for at in 2..count {
                let (is_first, is_last) = (at == 2, at + 1 == count);
                part(&[0, at - 1, at], 0, u8::from(is_first) | 0b010 | u8::from(is_last) << 2);
            }
        }
        Topology::Quads => {
            for at in (3..count).step_by(4) {
                let provoking = pick(at - 3, at);
                part(&[at - 3, at - 2, at], provoking, 0b101);
                part(&[at - 2, at - 1, at], provoking, 0b011);
            }
        }
        Topology::QuadStrip => {
            for at in (3..count).step_by(2) {
                let provoking = pick(at - 3, at);
                part(&[at - 3, at - 2, at], provoking, 0b011);
                part(&[at - 3, at, at - 1], provoking, 0b110);
            }
        }
        Topology::LinesAdjacency => {
            (3..count).step_by(4).for_each(|at| add(&[at - 2, at - 1], pick(at - 2, at - 1)));
        }
        Topology::LineStripAdjacency => {
            (3..count).for_each(|at| add(&[at - 2, at - 1], pick(at - 2, at - 1)));
        }
        Topology::TrianglesAdjacency => {
            (5..count).step_by(6).for_each(|at| add(&[at - 5, at - 3, at - 1], pick(at - 5, at - 1)));
        }
        Topology::TriangleStripAdjacency => {
            for (number, at) in (5..count).step_by(2).enumerate() {
                let (first, second, third) = (at - 5, at - 3, at - 1);
                let vertices = if number % 2 == 0 { [first, second, third] } else { [second, first, third] };
                add(&vertices, pick(first, third));
            }
        }
    }
}

/// A topology forms primitives of one kind: points, lines, triangles or rectangles. Returns the list topology for this
/// kind, without adjacency.
pub fn list_of(topology: Topology) -> Topology {
    match topology {
        Topology::Points => Topology::Points,
        Topology::Lines
        | Topology::LineStrip
        | Topology::LineLoop
        | Topology::LinesAdjacency
        | Topology::LineStripAdjacency => Topology::Lines,
        Topology::Rectangles => Topology::Rectangles,
        Topology::Triangles
        | Topology::TriangleStrip
        | Topology::TriangleFan
        | Topology::Quads
        | Topology::QuadStrip
        | Topology::Polygon
        | Topology::TrianglesAdjacency
        | Topology::TriangleStripAdjacency => Topology::Triangles,
    }
}

/// Returns the vertices of each primitive that `count` indices form. The vertices of a primitive are in the order of
/// the list topology that [`list_of`] returns. The provoking vertex is at the position that the list topology uses.
///
/// If the provoking vertex is not a corner of the primitive, as in the first half of a quad, the function does not
/// change the order of the vertices.
pub fn list(topology: Topology, count: usize, last_provokes: bool) -> Vec<Vec<usize>> {
    let all = assemble(topology, count, last_provokes).into_iter();
    all.map(|primitive| {
        let mut corners = primitive.vertices[..usize::from(primitive.count)].to_vec();
        let place = corners.iter().position(|corner| *corner == primitive.provoking);
        // Rotating the corners of a triangle does not change its orientation. The provoking vertex of a line is already
        // at the right position.
        if let (Some(place), 3, true) = (place, corners.len(), topology != Topology::Rectangles) {
            corners.rotate_left(if last_provokes { place + 1 } else { place } % 3);
        }
        corners
    })
    .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn vertices(topology: Topology, count: usize) -> Vec<Vec<usize>> {
        let all = assemble(topology, count, true);
        all.iter().map(|primitive| primitive.vertices[..usize::from(primitive.count)].to_vec()).collect()
    }

    /// OpenGL 3.0, 2.6.1.
    #[test]
    fn vertices_make_the_primitives_of_the_specification() {
        assert_eq!(vertices(Topology::Lines, 5), [[0, 1], [2, 3]]);
        assert_eq!(vertices(Topology::LineLoop, 3), [[0, 1], [1, 2], [2, 0]]);
        assert_eq!(vertices(Topology::LineLoop, 1), Vec::<Vec<usize>>::new());
        assert_eq!(vertices(Topology::Triangles, 7), [[0, 1, 2], [3, 4, 5]]);
        assert_eq!(vertices(Topology::TriangleStrip, 5), [[0, 1, 2], [2, 1, 3], [2, 3, 4]]);
        assert_eq!(vertices(Topology::TriangleFan, 4), [[0, 1, 2], [0, 2, 3]]);
        assert_eq!(vertices(Topology::Quads, 7), [[0, 1, 3], [1, 2, 3]]);
        assert_eq!(vertices(Topology::QuadStrip, 6), [[0, 1, 3], [0, 3, 2], [2, 3, 5], [2, 5, 4]]);
        assert_eq!(vertices(Topology::TrianglesAdjacency, 6), [[0, 2, 4]]);
        assert_eq!(vertices(Topology::TriangleStripAdjacency, 8), [[0, 2, 4], [4, 2, 6]]);
    }

    /// The expected vertices are from OpenGL 3.0, table 2.12. For draws whose first vertex provokes, the expected
    /// vertices are from EXT_provoking_vertex.
    #[test]
    fn the_provoking_vertex_is_that_of_the_specification() {
        let provoking =
            |topology, last| assemble(topology, 6, last).iter().map(|one| one.provoking).collect::<Vec<_>>();
        assert_eq!(provoking(Topology::TriangleStrip, true), [2, 3, 4, 5]);
        assert_eq!(provoking(Topology::TriangleStrip, false), [0, 1, 2, 3]);
        assert_eq!(provoking(Topology::TriangleFan, true), [2, 3, 4, 5]);
        assert_eq!(provoking(Topology::TriangleFan, false), [1, 2, 3, 4]);
        assert_eq!(provoking(Topology::Polygon, true), [0; 4]);
        assert_eq!(provoking(Topology::QuadStrip, true), [3, 3, 5, 5]);
        assert_eq!(provoking(Topology::LineLoop, false), [0, 1, 2, 3, 4, 5]);
    }

    #[test]
    fn as_many_primitives_are_counted_as_are_assembled() {
        const TOPOLOGIES: [Topology; 12] = [
            Topology::Points,
            Topology::Lines,
            Topology::LineStrip,
            Topology::LineLoop,
            Topology::Triangles,
            Topology::TriangleStrip,
            Topology::TriangleFan,
            Topology::Rectangles,
            Topology::LinesAdjacency,
            Topology::LineStripAdjacency,
            Topology::TrianglesAdjacency,
            Topology::TriangleStripAdjacency,
        ];
        for (topology, vertices) in
            TOPOLOGIES.into_iter().flat_map(|of| (0..20).map(move |count| (of, count)))
        {
            let assembled = assemble(topology, vertices, true).len();
            assert_eq!(count(topology, vertices), assembled, "{vertices} vertices of {topology:?}");
        }
        for vertices in 0..20 {
            let half = |topology| assemble(topology, vertices, true).len() / 2;
            assert_eq!(count(Topology::Quads, vertices), half(Topology::Quads));
            assert_eq!(count(Topology::QuadStrip, vertices), half(Topology::QuadStrip));
        }
        assert_eq!([2, 3, 9].map(|vertices| count(Topology::Polygon, vertices)), [0, 1, 1]);
    }

    /// OpenGL 3.0, 2.6.1 and 2.6.2: a quad has four edges, and a polygon has one edge per vertex.
    #[test]
    fn each_edge_of_a_polygon_is_an_edge_of_one_part() {
        let edges = |topology, count| {
            let mut found = Vec::new();
            for primitive in assemble(topology, count, true) {
                let sides = (0..3).filter(|side| primitive.edges >> side & 1 != 0);
                found
                    .extend(sides.map(|side| (primitive.vertices[side], primitive.vertices[(side + 1) % 3])));
            }
            found.sort_unstable();
            found
        };
        assert_eq!(edges(Topology::Quads, 4), [(0, 1), (1, 2), (2, 3), (3, 0)]);
        assert_eq!(edges(Topology::QuadStrip, 4), [(0, 1), (1, 3), (2, 0), (3, 2)]);
        assert_eq!(edges(Topology::Polygon, 5), [(0, 1), (1, 2), (2, 3), (3, 4), (4, 0)]);
        assert_eq!(edges(Topology::Polygon, 3), [(0, 1), (1, 2), (2, 0)]);
        assert_eq!(edges(Topology::TriangleFan, 4).len(), 6);
    }

    #[test]
    fn a_list_of_a_topology_makes_the_same_primitives() {
        for topology in [Topology::TriangleStrip, Topology::TriangleFan, Topology::LineLoop] {
            for last in [false, true] {
                let corners: Vec<usize> = list(topology, 8, last).concat();
                let again = assemble(list_of(topology), corners.len(), last);
                let before = assemble(topology, 8, last);
                assert_eq!(again.len(), before.len());
                for (again, before) in again.iter().zip(&before) {
                    let mut turned = before.vertices;
                    let count = usize::from(before.count);
                    let found: Vec<usize> =
                        again.vertices[..count].iter().map(|place| corners[*place]).collect();
                    let same = (0..count).any(|_| {
                        turned[..count].rotate_left(1);
                        turned[..count] == found
                    });
                    assert!(same, "{topology:?}: {found:?} for {before:?}");
                    assert_eq!(corners[again.provoking], before.provoking, "{topology:?}");
                }
            }
        }
    }

    #[test]
    fn too_few_vertices_make_nothing() {
        for count in 0..2 {
            assert_eq!(assemble(Topology::TriangleStrip, count, true), []);
            assert_eq!(assemble(Topology::Lines, count, true), []);
        }
    }
}
