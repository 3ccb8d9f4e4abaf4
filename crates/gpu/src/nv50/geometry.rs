//! Geometry programs, which convert primitives to runs of vertices. `p[]` contains the words of all vertices. `a[]`
//! contains one word for each vertex of the primitive. This word is the address of the vertex's first word in `p[]`.
//! Source: Mesa `nv50_program.c`, `nv50_ir_from_tgsi.cpp`.

use std::sync::Arc;

use litemap::LiteMap;
use reconverge_board::errata::{Errata, Erratum};
use reconverge_raster::primitive::{Topology, assemble};
use reconverge_simt::Options;
use reconverge_simt::vram::Vram;
use reconverge_tesla::inst::Chip;
use reconverge_tesla::launch::{Geometry, Launch, Setup};
use reconverge_tesla::state::Emitted;

use super::bindings::Bindings;
use super::methods::tesla as m;
use super::shader::{Cache, GEOMETRY, Shader};
use super::state::{State, Unknown};
use super::vertex::Batch;
use super::{Map, Slots};
use crate::Fault;
use crate::capture::Watch;

/// State on which the run of a geometry program depends.
pub(super) struct Context<'a> {
    pub(super) chip: Chip,
    pub(super) state: &'a State,
    pub(super) bindings: &'a Bindings,
    pub(super) options: Options,
}

/// Results of a geometry program.
pub(super) struct Made {
    pub(super) topology: Topology,
    pub(super) slots: Slots,
    /// The vertices of each strip.
    pub(super) runs: Vec<Vec<usize>>,
    /// Number of runs of the program. The program runs once per primitive.
    pub(super) launches: u64,
}

/// Number of words of p[] that address registers can address.
const P_WORDS: usize = (1 << 16) / 4;

/// Index of the word of a[] that contains the number of the primitive.
const PRIMITIVE_ID: u16 = 0x18 / 4;

/// Returns the vertices of each primitive, including adjacent vertices. The vertices are in the order in which a
/// geometry program reads the vertices.
///
/// Inferred: if the first vertex is the provoking vertex, every second triangle of a strip begins with the provoking
/// vertex. In this case, NV92 fails piglit's `gl-3.2-adj-prims`. If the last vertex is the provoking vertex, NV92
/// passes this test: [`Erratum::StripAdjacency`].
fn primitives(topology: Topology, run: &[usize], last_provokes: bool, errata: Errata) -> Vec<Vec<usize>> {
    let in_order = last_provokes || !errata.has(Erratum::StripAdjacency);
    let chunks = |size: usize| run.chunks_exact(size).map(<[usize]>::to_vec).collect();
    match topology {
        Topology::LinesAdjacency => chunks(4),
        Topology::LineStripAdjacency => run.windows(4).map(<[usize]>::to_vec).collect(),
        Topology::TrianglesAdjacency => chunks(6),
        Topology::TriangleStripAdjacency => {
            // OpenGL 3.2, table 2.4.
            let count = (run.len() / 2).saturating_sub(2);
            let vertex = |at: usize| run[at.min(run.len() - 1)];
            (0..count)
                .map(|number| {
                    let at = 2 * number;
                    let (first, last) = (number == 0, number + 1 == count);
                    let before = if first { vertex(at + 1) } else { vertex(at - 2) };
                    let after = if last { vertex(at + 5) } else { vertex(at + 6) };
                    match number % 2 {
                        0 => vec![vertex(at), before, vertex(at + 2), after, vertex(at + 4), vertex(at + 3)],
                        _ if in_order => {
                            vec![vertex(at + 2), before, vertex(at), vertex(at + 3), vertex(at + 4), after]
                        }
                        _ => vec![vertex(at), vertex(at + 3), vertex(at + 4), after, vertex(at + 2), before],
                    }
                })
                .collect()
        }
        _ => assemble(topology, run.len(), last_provokes)
            .iter()
            .map(|primitive| {
                let mut vertices = primitive.vertices[..usize::from(primitive.count)].to_vec();
                if topology == Topology::TriangleStrip && vertices[0] != primitive.provoking && !last_provokes
                {
                    vertices.rotate_left(1);
                }
                vertices.into_iter().map(|at| run[at]).collect()
            })
            .collect(),
    }
}

/// Returns a launch for some primitives. Each primitive has at most `most` vertices. `first` is the number of the first
/// primitive.
fn launch(
    primitives: &[Vec<usize>],
    most: usize,
    vertices: &Slots,
    first: u32,
    setup: Arc<Setup>,
) -> Geometry {
    // p[] contains a copy of each primitive's vertices.
    let mut words = Vec::with_capacity(primitives.len() * most * vertices.size);
    for primitive in primitives {
        for number in 0..most {
            match primitive.get(number) {
                Some(vertex) => words.extend_from_slice(vertices.of(*vertex)),
                None => words.resize(words.len() + vertices.size, 0),
            }
        }
    }
    let mut inputs: LiteMap<u16, Vec<u32>> = LiteMap::new();
    for number in 0..most {
        // Address in bytes of a vertex's words in p[].
        let address = |primitive: usize| (4 * vertices.size * (primitive * most + number)) as u32;
        inputs.insert(number as u16, (0..primitives.len()).map(address).collect());
    }
    inputs.insert(PRIMITIVE_ID, (0..primitives.len() as u32).map(|number| first + number).collect());
    Geometry { setup, lanes: primitives.len(), inputs, vertices: words }
}

/// Runs the geometry program. `vertices` has the slots that the vertex program has computed.
pub(super) fn run(
    context: &Context<'_>,
    (unknown, watch, cache): (&mut Unknown, &mut Watch, &mut Cache),
    memory: Vram<'_>,
    topology: Topology,
    batch: &Batch,
    vertices: &Slots,
) -> Result<Made, Fault> {
    let Context { chip, state, bindings, options } = context;
    let out = match state.word(m::GP_OUTPUT_PRIMITIVE_TYPE) {
        1 => Topology::Points,
        2 => Topology::LineStrip,
        _ => Topology::TriangleStrip,
    };
    let last_provokes = state.flag(m::PROVOKING_VERTEX_LAST);
    let found: Vec<Vec<usize>> =
        batch.runs.iter().flat_map(|run| primitives(topology, run, last_provokes, state.errata)).collect();
    let shader = Shader::new(GEOMETRY, *chip, (state, bindings, unknown), cache, memory, *options, watch)?;
    let map = Map::new(state, m::GP_RESULT_MAP_SIZE, m::GP_RESULT_MAP, 0x80);
    let limit = state.word(m::GP_VERTEX_OUTPUT_COUNT) as usize;
    let (mut slots, mut runs) = (map.empty(), Vec::new());
    let most = found.iter().map(Vec::len).max().unwrap_or(0);
    // Address registers have 16 bits, so the vertices of a launch must fit in 64 KiB.
    let at_once = (P_WORDS / (vertices.size * most).max(1)).max(1);
    for (number, part) in found.chunks(at_once).enumerate() {
        let launch = launch(part, most, vertices, (number * at_once) as u32, shader.setup());
        let lanes = shader.run(Launch::Geometry(launch), None, None)?;
        for lane in lanes.iter() {
            let (mut strip, mut emitted) = (Vec::new(), 0);
            for event in &lane.emitted {
                match event {
                    Emitted::Vertex(words) if emitted < limit.max(1) => {
                        emitted += 1;
                        strip.push(slots.len());
                        map.add(words, &mut slots);
                    }
                    Emitted::Vertex(_) => {}
                    Emitted::Restart => runs.push(std::mem::take(&mut strip)),
                }
            }
            runs.push(strip);
        }
    }
    runs.retain(|run: &Vec<usize>| !run.is_empty());
    Ok(Made { topology: out, slots, runs, launches: found.len() as u64 })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_triangle_of_a_strip_has_its_provoking_vertex_first_or_last() {
        let run: Vec<usize> = (0..8).collect();
        let of = |topology: Topology, run: &[usize], last_provokes: bool| {
            primitives(topology, run, last_provokes, Errata::ALL)
        };
        let strip = |last_provokes: bool| of(Topology::TriangleStrip, &run[..4], last_provokes);
        assert_eq!(strip(true), [[0, 1, 2], [2, 1, 3]]);
        assert_eq!(strip(false), [[0, 1, 2], [1, 3, 2]]);
        // OpenGL 3.2, table 2.4: the vertices of the second triangle are 3, 1 and 5. The triangle also has adjacent
        // vertices.
        let adjacent = |last_provokes: bool| of(Topology::TriangleStripAdjacency, &run, last_provokes);
        assert_eq!(adjacent(true), [[0, 1, 2, 6, 4, 3], [4, 0, 2, 5, 6, 7]]);
        assert_eq!(adjacent(false), [[0, 1, 2, 6, 4, 3], [2, 5, 6, 7, 4, 0]]);
        let without = Errata::ALL.without(Erratum::StripAdjacency);
        let in_order =
            |last_provokes| primitives(Topology::TriangleStripAdjacency, &run, last_provokes, without);
        assert_eq!([true, false].map(in_order), [adjacent(true), adjacent(true)]);
    }

    /// Address registers have 16 bits, so the last vertex of a launch must be within 64 KiB. NV92 passes piglit's
    /// `texelFetch gs`, which draws more than 2,048 vertices of eight words.
    #[test]
    fn the_vertices_of_a_launch_are_where_addresses_reach() {
        let (size, count) = (8, 3000);
        let vertices = Slots { words: (0..(size * count) as u32).collect(), size, count };
        let primitives: Vec<Vec<usize>> = (0..count).map(|vertex| vec![vertex]).collect();
        let at_once = P_WORDS / size;
        let parts: Vec<&[Vec<usize>]> = primitives.chunks(at_once).collect();
        assert_eq!(parts.len(), 2);
        let second = launch(parts[1], 1, &vertices, at_once as u32, Setup::new(Chip::Gt215).into());
        assert_eq!((second.lanes, second.inputs[&PRIMITIVE_ID][0]), (count - at_once, at_once as u32));
        let last = second.inputs[&0].last().copied().unwrap_or_default();
        assert!(last < 1 << 16, "{last:#x}");
        let word = second.vertices[last as usize / 4];
        assert_eq!(word as usize, size * (count - 1));
    }
}
