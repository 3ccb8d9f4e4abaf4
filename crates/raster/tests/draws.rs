//! Whole draws: lines with a pattern, points of polygons, several threads.

use std::convert::Infallible;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use rayon::ThreadPoolBuilder;
use reconverge_raster::blend::{Blend, Equation, Factor, LogicOp};
use reconverge_raster::depth::{Compare, DepthFormat, Tests};
use reconverge_raster::draw::{
    CopiedTexels, DepthTarget, Draw, Fill, FragmentProgram, Fragments, Multisample, Points, SampleOrder,
    Shaded, Side, Stipple, Surface, Target, Vertices, Viewport, draw,
};
use reconverge_raster::format::{Format, Number};
use reconverge_raster::interpolate::{How, Input};
use reconverge_raster::mask::{PixelMask, WindowRectangles};
use reconverge_raster::primitive::Topology;
use reconverge_raster::setup::Rectangle;
use reconverge_raster::vertex::Vertex;
use reconverge_simt::random::Random;
use reconverge_simt::texture::elements::{Channel, Elements, Field, Strides};
use reconverge_simt::vram::Vram;

/// A program that returns input 0 as colour 0.
struct Passes;

impl FragmentProgram for Passes {
    type Error = Infallible;

    fn run(&self, fragments: &Fragments) -> Result<Shaded, Infallible> {
        Ok(Shaded {
            colors: vec![Some(fragments.inputs[0].each_ref().map(|column| column.to_vec()))],
            ..Shaded::default()
        })
    }
}

const WIDTH: usize = 256;
const HEIGHT: usize = 64;
const BYTES: usize = 4 * WIDTH * HEIGHT;

/// Returns the state of a draw with window coordinates, one target of four bytes, and one flat input.
fn plain(topology: Topology) -> Draw {
    let surface = Surface { start: 0, end: BYTES, pitch: WIDTH, rows: HEIGHT, order: SampleOrder::Planes };
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
        mask: None,
        front_is_clockwise: true,
        sides: [Side::default(); 2],
        points: Points { size: [1.; 2], from_vertex: false, range: [0., 64.] },
        line_width: 1.,
        rectangular_lines: false,
        stipple: None,
        inputs: vec![Input::Attribute { index: 0, how: How::Flat }],
        depth: None,
        tests: Tests::default(),
        depth_bounds: None,
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
    let Ok(_) = draw(state, vertices, Vram::new(&mut memory), &Passes);
    memory
}

/// Returns which pixels of row 4 are drawn, from column 2 on.
fn row(stipple: Stipple, topology: Topology, columns: &[f32]) -> String {
    let state = Draw { stipple: Some(stipple), ..plain(topology) };
    let vertices: Vec<Vertex> = columns.iter().map(|x| vertex(*x, 4.5, 1.)).collect();
    let memory = drawn(&state, &vertices);
    let is_drawn = |x: &usize| memory[4 * (4 * WIDTH + x)] != 0;
    (2..26).map(|x| if is_drawn(&x) { '#' } else { '.' }).collect()
}

/// OpenGL 3.0, 3.5.2: pixel n of a line has bit n / factor of the pattern, modulo 16. The pattern continues along a
/// strip.
#[test]
fn a_pattern_runs_along_lines() {
    let stipple = |factor, restarts| Stipple { pattern: 0xf0c5, factor, restarts };
    assert_eq!(row(stipple(1, true), Topology::Lines, &[2., 26.]), "#.#...##....#####.#...##");
    assert_eq!(row(stipple(2, true), Topology::Lines, &[2., 26.]), "##..##......####........");
    assert_eq!(row(stipple(1, false), Topology::LineStrip, &[2., 12., 26.]), "#.#...##....#####.#...##");
    assert_eq!(row(stipple(1, true), Topology::Lines, &[2., 12., 12., 26.]), "#.#...##..#.#...##....##");
    // The line is drawn from the other end.
    assert_eq!(row(stipple(1, true), Topology::Lines, &[26., 2.]), "##...#.#####....##...#.#");
}

/// OpenGL 3.0, 3.5.1: a line between centres of pixels contains its first pixel and not its last one, in either
/// direction.
#[test]
fn a_line_has_its_first_pixel_and_not_its_last_one() {
    let pixels = |from: [f32; 2], to: [f32; 2]| {
        let ends = [from, to].map(|[x, y]| vertex(x, y, 1.));
        let memory = drawn(&plain(Topology::Lines), &ends);
        let all = (0..HEIGHT).flat_map(|y| (0..WIDTH).map(move |x| (x, y)));
        all.filter(|(x, y)| memory[4 * (y * WIDTH + x)] != 0).collect::<Vec<_>>()
    };
    assert_eq!(pixels([2.5, 4.5], [4.5, 4.5]), [(2, 4), (3, 4)]);
    assert_eq!(pixels([4.5, 4.5], [2.5, 4.5]), [(3, 4), (4, 4)]);
    assert_eq!(pixels([2.5, 4.5], [2.5, 6.5]), [(2, 4), (2, 5)]);
    assert_eq!(pixels([2.5, 6.5], [2.5, 4.5]), [(2, 5), (2, 6)]);
}

/// Returns the red values of the pixels from (0, 0) to (10, 10).
fn drawn_pixels(state: &Draw, vertices: &[Vertex]) -> String {
    let memory = drawn(state, vertices);
    let is_drawn = |x: usize, y: usize| if memory[4 * (y * WIDTH + x)] != 0 { '#' } else { '.' };
    (0..10).map(|y| (0..10).map(|x| is_drawn(x, y)).chain([' ']).collect::<String>()).collect()
}

/// OpenGL 3.0, 3.6.4: in line mode, a quad has four lines, and none between its halves. In point mode, it has four
/// points.
#[test]
fn a_quad_has_the_edges_of_a_quad() {
    let corners = [[1.5, 1.5], [8.5, 1.5], [8.5, 8.5], [1.5, 8.5]].map(|[x, y]| vertex(x, y, 1.));
    for topology in [Topology::Quads, Topology::Polygon] {
        let mut state = plain(topology);
        state.sides.iter_mut().for_each(|side| side.fill = Fill::Lines);
        let inside: String = drawn_pixels(&state, &corners)
            .split(' ')
            .skip(2)
            .take(6)
            .map(|row| row.get(2..8).unwrap_or("").to_owned())
            .collect();
        assert_eq!(inside, ".".repeat(36), "{topology:?}");
        assert_eq!(drawn_pixels(&state, &corners).matches('#').count(), 28, "{topology:?}");
        state.sides.iter_mut().for_each(|side| side.fill = Fill::Points);
        assert_eq!(drawn_pixels(&state, &corners).matches('#').count(), 4, "{topology:?}");
    }
}

/// OpenGL 3.0, 2.6.2: if the flag of a vertex is off, the side that begins there is not drawn, and neither is its
/// point. Flags of strips are ignored.
#[test]
fn a_side_whose_flag_is_off_is_not_drawn() {
    let mut corners = [[1.5, 1.5], [8.5, 1.5], [8.5, 8.5], [1.5, 8.5]].map(|[x, y]| vertex(x, y, 1.));
    corners[1].inner_side = true;
    for (topology, lines, points) in
        [(Topology::Quads, 21, 3), (Topology::Polygon, 21, 3), (Topology::TriangleFan, 34, 4)]
    {
        let mut state = plain(topology);
        let count = |state: &Draw| drawn_pixels(state, &corners).matches('#').count();
        state.sides.iter_mut().for_each(|side| side.fill = Fill::Lines);
        assert_eq!(count(&state), lines, "{topology:?}");
        state.sides.iter_mut().for_each(|side| side.fill = Fill::Points);
        assert_eq!(count(&state), points, "{topology:?}");
    }
}

/// EXT_window_rectangles: inside of one of them, or outside of all. OpenGL 3.0, 3.6.2: the pattern only applies to
/// polygons.
#[test]
fn rectangles_and_a_pattern_leave_pixels_out() {
    let square = [[0., 0.], [10., 0.], [10., 10.], [0., 10.]].map(|[x, y]| vertex(x, y, 1.));
    let rectangle = |x: i32, y: i32| Rectangle { x0: x, y0: y, x1: x + 3, y1: y + 3 };
    let count = |topology: Topology, mask: PixelMask, corners: &[Vertex]| {
        let state = Draw { mask: Some(mask.into()), ..plain(topology) };
        drawn_pixels(&state, corners).matches('#').count()
    };
    let windows = |inside: bool| {
        let all = vec![rectangle(1, 1), rectangle(2, 2), Rectangle { x0: 0, y0: 0, x1: 0, y1: 0 }];
        PixelMask { rectangles: Some(WindowRectangles { all, inside }), stipple: None }
    };
    // Two squares of nine pixels have four in common.
    assert_eq!(count(Topology::Quads, windows(true), &square), 14);
    assert_eq!(count(Topology::Quads, windows(false), &square), 86);
    let mut rows = [0; 32];
    // Pixels 0 and 9 of row 2.
    rows[2] = 1 << 31 | 1 << 22;
    let pattern = || PixelMask { rectangles: None, stipple: Some(rows) };
    let state = Draw { mask: Some(pattern().into()), ..plain(Topology::Quads) };
    let row = drawn_pixels(&state, &square);
    assert_eq!(row.split(' ').nth(2), Some("#........#"));
    assert_eq!(row.matches('#').count(), 2);
    let line = [vertex(1.5, 4.5, 1.), vertex(5.5, 4.5, 1.)];
    assert_eq!(count(Topology::Lines, pattern(), &line), 4);
}

/// EXT_depth_bounds_test: the stored depth is compared, not that of the fragment.
#[test]
fn depth_bounds_are_those_of_the_stored_depth() {
    let surface =
        Surface { start: BYTES, end: 2 * BYTES, pitch: WIDTH, rows: HEIGHT, order: SampleOrder::Planes };
    let with = |bounds: [f32; 2]| Draw {
        depth: Some(DepthTarget { surface: surface.clone(), format: DepthFormat::Unorm24 }),
        depth_bounds: Some(bounds),
        ..plain(Topology::Quads)
    };
    let square = [[0., 0.], [10., 0.], [10., 10.], [0., 10.]].map(|[x, y]| vertex(x, y, 1.));
    // The stored depths are zeros, and those of fragments are 0.5.
    let count = |bounds: [f32; 2]| drawn_pixels(&with(bounds), &square).matches('#').count();
    assert_eq!([[0., 0.25], [0., 0.], [0.25, 0.75]].map(count), [100, 100, 0]);
}

/// EXT_provoking_vertex: the points of a polygon have the flat attributes of the polygon.
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
    let surface =
        Surface { start: BYTES, end: 2 * BYTES, pitch: WIDTH, rows: HEIGHT, order: SampleOrder::Planes };
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
    assert!(one[..BYTES].iter().any(|byte| *byte != 0));
    (0..20).for_each(|_| assert!(with(3) == one));
    // One thread merges two surfaces in the same memory.
    state.depth = None;
    state.targets.push(state.targets[0].clone());
    let with = |threads: usize| {
        let pool = ThreadPoolBuilder::new().num_threads(threads).build().unwrap();
        pool.install(|| drawn(&state, &vertices))
    };
    assert!(with(1) == with(3));
}

/// Returns input 0 unchanged, until a run contains fragments in row 0 with a certain red.
struct Fails(u32);

impl FragmentProgram for Fails {
    type Error = usize;

    fn run(&self, fragments: &Fragments) -> Result<Shaded, usize> {
        let mut lanes = 0..fragments.lanes;
        let fails = |lane: &usize| fragments.inputs[0][0][*lane] == self.0 && fragments.pixel(*lane).1 == 0;
        if let Some(lane) = lanes.find(fails) {
            // Other threads shade later pieces meanwhile.
            std::thread::sleep(Duration::from_millis(1));
            return Err(lane);
        }
        Passes.run(fragments).map_err(|never| match never {})
    }
}

#[test]
fn a_program_that_fails_leaves_the_same_memory_on_any_number_of_threads() {
    let state = plain(Topology::Triangles);
    let vertices: Vec<Vertex> = (0..12)
        .flat_map(|number| {
            let red = number as f32 / 12.;
            [vertex(0., 0., red), vertex(500., 0., red), vertex(0., 125., red)]
        })
        .collect();
    let runs = [(0..vertices.len()).collect()];
    let vertices = Vertices { all: &vertices, runs: &runs };
    for failing in 0..13 {
        let with = |threads: usize| {
            let mut memory = vec![0; BYTES];
            let program = Fails((failing as f32 / 12.).to_bits());
            let pool = ThreadPoolBuilder::new().num_threads(threads).build().unwrap();
            let drawn = pool.install(|| draw(&state, vertices, Vram::new(&mut memory), &program));
            (drawn, memory)
        };
        let one = with(1);
        assert_eq!(one.0.is_ok(), failing == 12);
        (0..20).for_each(|_| assert!(with(3) == one, "{failing}"));
    }
}

/// A program that panics on some fragments.
struct Panics;

impl FragmentProgram for Panics {
    type Error = Infallible;

    fn run(&self, fragments: &Fragments) -> Result<Shaded, Infallible> {
        assert!(fragments.inputs[0][0].iter().all(|red| *red == 0), "a defect of the program");
        Passes.run(fragments)
    }
}

#[test]
fn a_program_that_panics_ends_the_draw_on_any_number_of_threads() {
    let state = plain(Topology::Triangles);
    let vertices: Vec<Vertex> = (0..12)
        .flat_map(|number| {
            let red = f32::from(u8::from(number == 9));
            [vertex(0., 0., red), vertex(500., 0., red), vertex(0., 125., red)]
        })
        .collect();
    let runs = [(0..vertices.len()).collect()];
    for threads in [1, 2, 3] {
        let pool = ThreadPoolBuilder::new().num_threads(threads).build().unwrap();
        let vertices = Vertices { all: &vertices, runs: &runs };
        let draws = || pool.install(|| draw(&state, vertices, Vram::new(&mut vec![0; BYTES]), &Panics));
        let drawn = std::panic::catch_unwind(std::panic::AssertUnwindSafe(draws));
        assert!(drawn.is_err());
    }
}

/// A program whose colour 0 is the texel that contains x and y of input 0, or zeros outside of the level.
struct ReadsTexels {
    texels: CopiedTexels,
    /// Whether the program reports that it copies texels.
    copies: bool,
    runs: AtomicUsize,
}

impl FragmentProgram for ReadsTexels {
    type Error = Infallible;

    fn copied(&self) -> Option<CopiedTexels> {
        self.copies.then(|| self.texels.clone())
    }

    fn run(&self, fragments: &Fragments) -> Result<Shaded, Infallible> {
        self.runs.fetch_add(1, Ordering::Relaxed);
        let CopiedTexels { elements, size, factor, .. } = &self.texels;
        let mut colors = [(); 4].map(|()| vec![0; fragments.lanes]);
        for (lane, [s, t, ..]) in fragments.input(0).into_iter().enumerate() {
            let at = [(s, 0), (t, 1)].map(|(word, axis)| (f32::from_bits(word) * factor[axis]).floor());
            if at.iter().zip(size).all(|(at, size)| (0. ..*size as f32).contains(at)) {
                let texel = elements.texel(at[0] as usize, at[1] as usize, 0);
                colors.iter_mut().zip(texel).for_each(|(column, word)| column[lane] = word);
            }
        }
        Ok(Shaded { colors: vec![Some(colors)], ..Shaded::default() })
    }
}

/// Returns a level of random texels. Its channels are bytes of its elements and constants.
fn random_texels(random: &mut Random, size: [u32; 2]) -> CopiedTexels {
    let channel = |random: &mut Random| match random.below(6) {
        0 => Channel::Word(if random.once_in(2) { 0 } else { 1f32.to_bits() }),
        _ => Channel::Fraction(Field::new(8 * random.below(4) as u8, 8).unwrap()),
    };
    let own = [0, 8, 16, 24].map(|first| Channel::Fraction(Field::new(first, 8).unwrap()));
    let channels = if random.once_in(2) { own } else { [(); 4].map(|()| channel(random)) };
    let row = 4 * size[0] as usize + 4 * random.below(3) as usize;
    let strides = Strides { start: 8, element: 4, row, slice: 0 };
    let bytes = (0..8 + row * size[1] as usize).map(|_| random.next() as u8).collect();
    let elements = Elements::new(&std::sync::Arc::new(bytes), strides, channels, [size[0], size[1], 1]);
    CopiedTexels {
        elements: elements.unwrap(),
        size,
        coordinates: [(0, 0), (0, 1)],
        factor: [1.; 2],
        zeros: vec![(0, 3)],
    }
}

#[test]
fn texels_that_are_copied_are_those_that_a_program_reads() {
    let mut random = Random::new(31);
    let mut copied = 0;
    for round in 0..600 {
        let size = [1 + random.below(200), 1 + random.below(80)];
        let mut texels = random_texels(&mut random, size);
        let topology = random.one_of(&[Topology::Rectangles, Topology::Triangles, Topology::Points]);
        let mut state = plain(topology);
        state.inputs = vec![Input::Attribute { index: 0, how: How::Perspective }];
        state.targets[0].places = random.one_of(&[
            [Some(0), Some(1), Some(2), Some(3)],
            [Some(2), Some(1), Some(0), Some(3)],
            [Some(2), Some(1), Some(0), None],
        ]);
        state.targets[0].mask = if random.once_in(8) { 7 } else { 0xf };
        // Pixels are mostly whole and correspond to whole texels.
        let whole = !random.once_in(3);
        let number = |random: &mut Random, most: u32| match whole {
            true => random.below(most) as f32,
            false => random.below(most * 64) as f32 / 64.,
        };
        let [x, y] = [number(&mut random, 150), number(&mut random, 40)];
        let [s, t] = [number(&mut random, size[0]), number(&mut random, size[1])];
        // Texels are mostly inside of the level.
        let more = if random.once_in(4) { 20 } else { 0 };
        let [width, height] = [(size[0], s, 150), (size[1], t, 60)]
            .map(|(size, start, most)| 1. + number(&mut random, (size - start as u32).min(most) + more));
        let scale = if random.once_in(6) { 1.5 } else { 1. };
        let (low, high) = ([s, t], [s + width * scale, t + height * scale]);
        let turned = random.once_in(4);
        let w = if random.once_in(8) { 0.5 } else { 1. };
        let corner = |x: f32, y: f32, at: [f32; 2], w: f32| {
            let at = if turned { [at[0], high[1] - at[1] + low[1]] } else { at };
            let level = if round % 50 == 0 { 1f32 } else { 0. };
            Vertex {
                position: [x * w, y * w, 0.5, w],
                attributes: vec![[at[0], at[1], 0., level].map(f32::to_bits)],
                ..Vertex::default()
            }
        };
        state.viewport.divides = true;
        let corners = [
            corner(x, y, low, 1.),
            corner(x + width, y, [high[0], low[1]], w),
            corner(x, y + height, [low[0], high[1]], 1.),
        ];
        let mut vertices = corners.to_vec();
        if topology == Topology::Triangles {
            vertices.extend([corners[2].clone(), corners[1].clone()]);
            vertices.push(corner(x + width, y + height, high, w));
        }
        if topology == Topology::Points {
            let point = corner(x + width / 2., y + height / 2., low, 1.);
            vertices = vec![point];
            state.points = Points { size: [width, height], from_vertex: false, range: [0., 1024.] };
            let unit = |at: [f32; 2]| [at[0] / size[0] as f32, at[1] / size[1] as f32];
            state.inputs = vec![Input::Stretched { low: unit(low), high: unit(high) }];
            texels.factor = size.map(|size| size as f32);
            texels.zeros.clear();
        }
        let runs = [(0..vertices.len()).collect()];
        let vertices = Vertices { all: &vertices, runs: &runs };
        let mut results = Vec::new();
        for copies in [false, true] {
            let program = ReadsTexels { texels: texels.clone(), copies, runs: AtomicUsize::new(0) };
            let mut memory: Vec<u8> = (0..BYTES).map(|at| at as u8).collect();
            let Ok(counts) = draw(&state, vertices, Vram::new(&mut memory), &program);
            copied += usize::from(copies && program.runs.into_inner() == 0 && counts.passed > 0);
            results.push((counts, memory));
        }
        // A program with several levels would not report that it copies, because the level may differ from 0.
        if round % 50 != 0 || topology == Topology::Points {
            assert!(results[0] == results[1], "{round}: {state:?} {vertices:?}");
        }
    }
    assert!(copied > 100, "{copied} draws were copies");
}

/// [`Draw::written`] contains all bytes that change, and no row outside of the scissor. Textures in it are decoded
/// again.
#[test]
fn a_draw_writes_to_the_rows_of_its_scissor() {
    let corners = [[2., 10.], [200., 10.], [200., 50.], [2., 50.]].map(|[x, y]| vertex(x, y, 1.));
    for (order, scale) in [(SampleOrder::Planes, 1), (SampleOrder::Rectangles([1, 1]), 2)] {
        for [y0, y1] in [[0, HEIGHT as i32], [20, 23], [30, 30], [-5, 70]] {
            let mut state = plain(Topology::Quads);
            state.scissor = Rectangle { x0: 0, y0, x1: WIDTH as i32, y1 };
            let surface = &mut state.targets[0].surface;
            *surface = Surface { start: 64, end: 2 * BYTES, order, ..surface.clone() };
            let written: Vec<_> = state.written().collect();
            let row = 4 * WIDTH * scale;
            let place = |y: i32| 64 + (y.max(0) as usize * row).min(BYTES);
            let ends: Vec<_> = written.iter().map(|range| [range.start, range.end]).collect();
            assert_eq!(ends, [[place(y0), place(y1)]]);
            let memory = drawn(&state, &corners);
            assert!((0..2 * BYTES).all(|at| memory[at] == 0 || written[0].contains(&at)), "{y0} to {y1}");
        }
    }
}
