//! Whole draws: lines with a pattern, points of polygons, several threads.

use std::convert::Infallible;

use rayon::ThreadPoolBuilder;
use reconverge_raster::blend::{Blend, Equation, Factor, LogicOp};
use reconverge_raster::depth::{Compare, DepthFormat, Tests};
use reconverge_raster::draw::{
    DepthTarget, Draw, Fill, FragmentProgram, Fragments, Multisample, Points, Shaded, Side, Stipple, Surface,
    Target, Vertices, Viewport, draw,
};
use reconverge_raster::format::{Format, Number};
use reconverge_raster::interpolate::{How, Input};
use reconverge_raster::primitive::Topology;
use reconverge_raster::setup::Rectangle;
use reconverge_raster::vertex::Vertex;
use reconverge_simt::vram::Vram;

/// Colour 0 is input 0.
struct Passes;

impl FragmentProgram for Passes {
    type Error = Infallible;

    fn run(&mut self, fragments: &Fragments) -> Result<Shaded, Infallible> {
        Ok(Shaded {
            colors: vec![Some(fragments.inputs[0].each_ref().map(|column| column.to_vec()))],
            ..Shaded::default()
        })
    }
}

const WIDTH: usize = 256;
const HEIGHT: usize = 64;
const BYTES: usize = 4 * WIDTH * HEIGHT;

/// Window coordinates, one target of four bytes, one flat input.
fn plain(topology: Topology) -> Draw {
    let surface = Surface { start: 0, end: BYTES, pitch: WIDTH, rows: HEIGHT };
    let target = Target {
        surface,
        format: Format::new([8; 4], Number::Unorm),
        places: [Some(0), Some(1), Some(2), Some(3)],
        mask: 0xf,
        blend: None,
        color: 0,
    };
    Draw {
        topology,
        last_provokes: true,
        viewport: Viewport { scale: [1.; 3], offset: [0.; 3], depth: None, divides: false },
        clip: None,
        scissor: Rectangle { x0: 0, y0: 0, x1: WIDTH as i32, y1: HEIGHT as i32 },
        front_is_clockwise: true,
        sides: [Side::default(); 2],
        points: Points { size: [1.; 2], from_vertex: false, range: [0., 64.] },
        line_width: 1.,
        stipple: None,
        inputs: vec![Input::Attribute { index: 0, how: How::Flat }],
        depth: None,
        tests: Tests::default(),
        alpha_test: None,
        targets: vec![target],
        logic: LogicOp::COPY,
        copies_depth: false,
        multisample: Multisample::default(),
    }
}

fn vertex(x: f32, y: f32, red: f32) -> Vertex {
    let color = [red, 0.25, 0.5, 0.5].map(f32::to_bits);
    Vertex { position: [x, y, 0.5, 1.], attributes: vec![color], ..Vertex::default() }
}

fn drawn(state: &Draw, vertices: &[Vertex]) -> Vec<u8> {
    let mut memory = vec![0; 2 * BYTES];
    let runs = [(0..vertices.len()).collect()];
    let vertices = Vertices { all: vertices, runs: &runs };
    let Ok(_) = draw(state, vertices, Vram::new(&mut memory), &mut Passes);
    memory
}

/// The pixels of row 4 from column 2 on that are drawn.
fn row(stipple: Stipple, topology: Topology, columns: &[f32]) -> String {
    let state = Draw { stipple: Some(stipple), ..plain(topology) };
    let vertices: Vec<Vertex> = columns.iter().map(|x| vertex(*x, 4.5, 1.)).collect();
    let memory = drawn(&state, &vertices);
    let is_drawn = |x: &usize| memory[4 * (4 * WIDTH + x)] != 0;
    (2..26).map(|x| if is_drawn(&x) { '#' } else { '.' }).collect()
}

/// OpenGL 3.0, 3.5.2: pixel n of a line has bit n / factor of the pattern, modulo 16; bits go on along a strip.
#[test]
fn a_pattern_runs_along_lines() {
    let stipple = |factor, restarts| Stipple { pattern: 0xf0c5, factor, restarts };
    assert_eq!(row(stipple(1, true), Topology::Lines, &[2., 26.]), "#.#...##....#####.#...##");
    assert_eq!(row(stipple(2, true), Topology::Lines, &[2., 26.]), "##..##......####........");
    assert_eq!(row(stipple(1, false), Topology::LineStrip, &[2., 12., 26.]), "#.#...##....#####.#...##");
    assert_eq!(row(stipple(1, true), Topology::Lines, &[2., 12., 12., 26.]), "#.#...##..#.#...##....##");
    // From the other end.
    assert_eq!(row(stipple(1, true), Topology::Lines, &[26., 2.]), "##...#.#####....##...#.#");
}

/// EXT_provoking_vertex: the points of a polygon have its flat attributes.
#[test]
fn points_of_a_polygon_have_the_attributes_of_its_provoking_vertex() {
    let mut state = plain(Topology::Triangles);
    state.sides.iter_mut().for_each(|side| side.fill = Fill::Points);
    let corners = [vertex(3.5, 3.5, 0.), vertex(9.5, 3.5, 0.), vertex(3.5, 9.5, 1.)];
    let memory = drawn(&state, &corners);
    assert_eq!([(3, 3), (9, 3), (3, 9)].map(|(x, y)| memory[4 * (y * WIDTH + x)]), [255; 3]);
}

#[test]
fn results_do_not_depend_on_the_number_of_threads() {
    let over = (Factor::SourceAlpha, Equation::Add, Factor::OneMinusSourceAlpha);
    let blend = Blend { color: over, alpha: over, constant: [0.; 4], range: Some((0., 1.)) };
    let mut state = plain(Topology::Triangles);
    state.targets[0].blend = Some(blend);
    let surface = Surface { start: BYTES, end: 2 * BYTES, pitch: WIDTH, rows: HEIGHT };
    state.depth = Some(DepthTarget { surface, format: DepthFormat::Unorm24 });
    state.tests = Tests { depth: Some(Compare::GreaterEqual), depth_write: true, stencil: None };
    let mut vertices = Vec::new();
    for number in 0..6 {
        let red = number as f32 / 6.;
        vertices.extend([vertex(red * 40., 0., red), vertex(255., 60., red), vertex(0., 63., red)]);
    }
    let with = |threads: usize| {
        let pool = ThreadPoolBuilder::new().num_threads(threads).build().unwrap();
        pool.install(|| drawn(&state, &vertices))
    };
    let one = with(1);
    assert!(one[..BYTES].iter().any(|byte| *byte != 0) && one == with(3));
    // Two surfaces in one place are merged by one thread.
    state.depth = None;
    state.targets.push(state.targets[0].clone());
    let with = |threads: usize| {
        let pool = ThreadPoolBuilder::new().num_threads(threads).build().unwrap();
        pool.install(|| drawn(&state, &vertices))
    };
    assert!(with(1) == with(3));
}
