//! Geometry programs, which convert the vertices of a draw to emitted vertices.
//!
//! ```text
//! vertices --> vertex program as ES --> ring --> geometry program, a lane a primitive --> ring --> copy program as VS
//! ```
//! The sources are Mesa's `r600_shader.c` (`fetch_gs_input`, `emit_gs_ring_writes`, `generate_gs_copy_shader`) and
//! `r600_state.c` (`r600_update_gs_state`, `r600_emit_shader_stages`). In this model, a ring contains the records of
//! one draw only. Each stage receives the records of the previous stage, in order. As on the chip, addresses count
//! dwords.

use reconverge_r700::outcome::{Emission, Outcome};
use reconverge_raster::primitive::{Topology, assemble};

use super::registers as reg;
use super::shader::{EXPORT, GEOMETRY, VERTEX, input};
use super::state::State;
use super::{Machine, Shaded};
use crate::{Fault, capture};

/// Mode of the geometry stage: VGT_GS_MODE.MODE.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Mode {
    /// The draw has no geometry program. Primitives can share vertices.
    Off,
    /// The draw has no geometry program, but each vertex receives the number of the vertex's primitive. (Scenario A)
    Numbered,
    /// The draw has a geometry program. (Scenario G)
    Program,
}

impl Mode {
    /// Returns the mode that the register selects.
    pub(super) fn of(state: &mut State) -> Mode {
        match state.word(reg::VGT_GS_MODE) & 3 {
            0 => Mode::Off,
            1 => Mode::Numbered,
            2 => {
                state.unknown.note("VGT_GS_MODE.MODE 2");
                Mode::Off
            }
            _ => Mode::Program,
        }
    }
}

/// Returns the primitives that `count` vertices form. A primitive is a list of indices of vertices, in the order in
/// which a geometry program reads the vertices. Adjacent vertices are between the other vertices.
///
/// Source: OpenGL 3.2, 2.12.1. In a strip with adjacency, the chip exchanges the second and the third vertex of every
/// second triangle. Mesa (`gs_tri_strip_adj_fix`) rotates only every second triangle. The rotation converts the chip's
/// order of vertices to OpenGL's order.
pub(super) fn primitives(topology: Topology, count: usize, last_provokes: bool) -> Vec<Vec<usize>> {
    match topology {
        Topology::LinesAdjacency => {
            (3..count).step_by(4).map(|at| vec![at - 3, at - 2, at - 1, at]).collect()
        }
        Topology::LineStripAdjacency => (3..count).map(|at| vec![at - 3, at - 2, at - 1, at]).collect(),
        Topology::TrianglesAdjacency => (5..count).step_by(6).map(|at| (at - 5..=at).collect()).collect(),
        Topology::TriangleStripAdjacency => {
            let triangles = count.saturating_sub(4) / 2;
            let one = |number: usize| {
                let first = 2 * number;
                // `before` is the adjacent vertex that belongs to the previous triangle. The next triangle shares an
                // edge with this triangle. `across` is the adjacent vertex at this edge.
                let before = if number == 0 { 1 } else { first - 2 };
                let across = if number + 1 == triangles { first + 5 } else { first + 6 };
                match number % 2 {
                    0 => vec![first, before, first + 2, across, first + 4, first + 3],
                    _ => vec![first, first + 3, first + 4, across, first + 2, before],
                }
            };
            (0..triangles).map(one).collect()
        }
        other => {
            let all = assemble(other, count, last_provokes);
            all.iter().map(|one| one.vertices[..usize::from(one.count)].to_vec()).collect()
        }
    }
}

/// Returns the topology of the emitted vertices, from VGT_GS_OUT_PRIM_TYPE.
fn emitted_topology(state: &mut State) -> Topology {
    match state.word(reg::VGT_GS_OUT_PRIM_TYPE) & 0x3f {
        0 => Topology::Points,
        1 => Topology::LineStrip,
        2 => Topology::TriangleStrip,
        other => {
            state.unknown.note(format!("VGT_GS_OUT_PRIM_TYPE {other}"));
            Topology::Points
        }
    }
}

/// Returns the bytes of a ring with these records. Each record has `dwords` dwords.
fn ring<'a>(records: impl Iterator<Item = &'a [u32]>, dwords: usize) -> Vec<u8> {
    let mut bytes = Vec::new();
    for record in records {
        let word = |at: usize| record.get(at).copied().unwrap_or(0);
        bytes.extend((0..dwords).flat_map(|at| word(at).to_le_bytes()));
    }
    bytes
}

/// Returns the strips that each lane emitted. A strip is a list of vertex numbers. The vertices of each lane are
/// numbered separately. A lane emits up to `most` vertices.
fn strips(emissions: &[Emission], lanes: usize, most: usize) -> Vec<Vec<Vec<usize>>> {
    let mut found = vec![vec![Vec::new()]; lanes];
    let mut counts = vec![0; lanes];
    for emission in emissions {
        for lane in emission.lanes.lanes() {
            let lane = emission.first_lane + lane.index();
            let (Some(strips), Some(count)) = (found.get_mut(lane), counts.get_mut(lane)) else { continue };
            if emission.vertex && *count < most {
                if let Some(strip) = strips.last_mut() {
                    strip.push(*count);
                }
                *count += 1;
            }
            if emission.cut {
                strips.push(Vec::new());
            }
        }
    }
    found
}

/// Runs three programs for the vertices of a draw: the vertex program as ES, the geometry program, and the copy
/// program. `outcome` receives the results of the copy program.
///
/// # Errors
/// Returns a fault if a program is missing, traps, or exceeds the maximum number of instructions.
pub(super) fn run(
    machine: &mut Machine<'_, '_>,
    outcome: &mut Outcome,
    topology: Topology,
    vertices: Vec<[u32; 4]>,
    places: &[Vec<usize>],
    instances: usize,
) -> Result<Shaded, Fault> {
    let last = machine.context.state.word(reg::PA_SU_SC_MODE_CNTL) >> 19 & 1 != 0;
    let dwords = |state: &State, register: u32| (state.word(register) & 0x7fff) as usize;
    let export = machine.shader_of(EXPORT, &vertices)?;
    if machine.captured.is_some() {
        let mut recording = export.vertices(&[]);
        recording.refuse("shaders of the geometry stage and of the stage before it are not captured");
        capture::add(machine.captured, Some(recording));
    }
    let mut exported = Outcome::default();
    export.run(&mut exported, vertices.len(), vec![input(0, vertices)], None, None)?;
    let item = dwords(machine.context.state, reg::SQ_ESGS_RING_ITEMSIZE);

    // The registers of each lane contain the number of the lane's primitive. The registers also contain, for each
    // vertex of this primitive, the offset of the vertex in the ring.
    let (mut first, mut second) = (Vec::new(), Vec::new());
    let runs_an_instance = places.len() / instances.max(1);
    let mut number = 0;
    for (place, run) in places.iter().enumerate() {
        if runs_an_instance != 0 && place % runs_an_instance == 0 {
            number = 0;
        }
        for primitive in primitives(topology, run.len(), last) {
            let offset = |at: usize| primitive.get(at).map_or(0, |at| (run[*at] * item) as u32);
            first.push([offset(0), offset(1), number, offset(2)]);
            second.push([offset(3), offset(4), offset(5), 0]);
            number += 1;
        }
    }
    let lanes = first.len();
    let records = |outcome: &Outcome, lane: usize| {
        outcome.memory.ring.get(lane).map_or_else(Vec::new, |record| record.clone())
    };
    let all: Vec<Vec<u32>> = (0..exported.killed.len()).map(|lane| records(&exported, lane)).collect();
    let mut program = machine.shader(GEOMETRY)?;
    program.set_ring(machine.context.state, ring(all.iter().map(Vec::as_slice), item));
    program.run(outcome, lanes, vec![input(0, first), input(1, second)], None, None)?;

    let item = dwords(machine.context.state, reg::SQ_GS_VERT_ITEMSIZE);
    let most = match machine.context.state.word(reg::VGT_GS_MAX_VERT_OUT) & 0x7ff {
        // R600 chips do not have the register VGT_GS_MAX_VERT_OUT. On R600 chips, the size of a ring item determines
        // the maximum number of emitted vertices.
        0 => dwords(machine.context.state, reg::SQ_GSVS_RING_ITEMSIZE) / item.max(1),
        most => most as usize,
    };
    let (mut emitted, mut runs) = (Vec::new(), Vec::new());
    for (lane, strips) in strips(&outcome.emissions, lanes, most).into_iter().enumerate() {
        let record = records(outcome, lane);
        for strip in strips.into_iter().filter(|strip| !strip.is_empty()) {
            let mut run = Vec::new();
            for vertex in strip {
                let part = record.get(vertex * item..).unwrap_or(&[]);
                run.push(emitted.len());
                emitted.push(part[..item.min(part.len())].to_vec());
            }
            runs.push(run);
        }
    }
    let mut copy = machine.shader(VERTEX)?;
    copy.set_ring(machine.context.state, ring(emitted.iter().map(Vec::as_slice), item));
    let offsets: Vec<_> = (0..emitted.len()).map(|vertex| [(vertex * item) as u32, 0, 0, 0]).collect();
    copy.run(outcome, emitted.len(), vec![input(0, offsets)], None, None)?;
    let topology = emitted_topology(machine.context.state);
    Ok(Shaded { program: copy.into(), lanes: emitted.len(), topology, runs })
}

#[cfg(test)]
mod tests {
    use reconverge_simt::Mask;

    use super::*;

    /// The expected even triangles are from OpenGL 3.2, table 2.4. In the order of the strip, each triangle has a first
    /// vertex. An odd triangle of the result begins with this vertex.
    #[test]
    fn neighbours_lie_between_the_vertices_of_a_triangle() {
        let found = primitives(Topology::TriangleStripAdjacency, 10, true);
        assert_eq!(found, [[0, 1, 2, 6, 4, 3], [2, 5, 6, 8, 4, 0], [4, 2, 6, 9, 8, 7]]);
        assert_eq!(primitives(Topology::TriangleStripAdjacency, 6, true), [[0, 1, 2, 5, 4, 3]]);
        assert_eq!(primitives(Topology::TriangleStripAdjacency, 5, true), Vec::<Vec<usize>>::new());
        assert_eq!(primitives(Topology::LineStripAdjacency, 5, true), [[0, 1, 2, 3], [1, 2, 3, 4]]);
    }

    #[test]
    fn every_lane_has_strips_of_its_own() {
        let mask = |lanes: &[usize]| Mask::from_fn(64, |lane| lanes.contains(&lane.index()));
        let emission =
            |lanes: &[usize], vertex, cut| Emission { first_lane: 0, lanes: mask(lanes), vertex, cut };
        let all = [
            emission(&[0, 1], true, false),
            emission(&[1], true, true),
            emission(&[0, 1], true, false),
            emission(&[0, 1], true, false),
        ];
        // The second lane emits four vertices, but only three are allowed.
        assert_eq!(strips(&all, 2, 3), [vec![vec![0, 1, 2]], vec![vec![0, 1], vec![2]]]);
    }
}
