//! Tests that random draws have the same fragments, bytes and counts by columns and pixel by pixel.

use std::convert::Infallible;
use std::slice::from_ref;
use std::sync::{Arc, Mutex, MutexGuard};

use reconverge_raster::blend::{Blend, Equation, Factor, LogicOp, Part};
use reconverge_raster::clip::Clip;
use reconverge_raster::depth::{Compare, DepthFormat, Stencil, StencilOp, Tests};
use reconverge_raster::draw::{
    self, Coordinates, DepthTarget, Draw, Fill, FragmentProgram, Fragments, LaneColumn, LaneWords,
    Multisample, Offset, Points, ReadColumns, SampleOrder, Shaded, Side, Stipple, Surface, Target, Vertices,
    Viewport, blend_range, draw_with,
};
use reconverge_raster::format::{Format, Number};
use reconverge_raster::interpolate::{How, Input};
use reconverge_raster::mask::{PixelMask, WindowRectangles};
use reconverge_raster::primitive::Topology;
use reconverge_raster::reference;
use reconverge_raster::setup::{Corner, PIXEL, Rectangle};
use reconverge_raster::vertex::Vertex;
use reconverge_simt::vram::{Fills, RowFill, Vram};

const WIDTH: usize = 72;
const HEIGHT: usize = 50;
/// Size of a surface in bytes, with room for four samples of sixteen bytes.
const SURFACE: usize = WIDTH * HEIGHT * 4 * 16;

struct Random(u64);

impl Random {
    fn bits(&mut self) -> u32 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) as u32
    }

    fn below(&mut self, most: usize) -> usize {
        self.bits() as usize % most
    }

    /// Returns true with a probability of 1 / `times`.
    fn once_in(&mut self, times: usize) -> bool {
        self.below(times) == 0
    }

    fn of<T: Copy>(&mut self, all: &[T]) -> T {
        all[self.below(all.len())]
    }

    fn float(&mut self, low: f32, high: f32) -> f32 {
        low + (high - low) * (self.bits() & 0xffff) as f32 / 65_536.
    }

    /// Returns a component of a colour, rarely an unusual one.
    fn component(&mut self) -> f32 {
        match self.below(40) {
            0 => f32::NAN,
            1 => f32::INFINITY,
            2 => -0.,
            3 => 0.,
            4 => 1.,
            5 => f32::MIN_POSITIVE / 2.,
            _ => self.float(-0.2, 1.2),
        }
    }
}

const FACTORS: [Factor; 19] = [
    Factor::Zero,
    Factor::One,
    Factor::Source,
    Factor::OneMinusSource,
    Factor::SourceAlpha,
    Factor::OneMinusSourceAlpha,
    Factor::DestinationAlpha,
    Factor::OneMinusDestinationAlpha,
    Factor::Destination,
    Factor::OneMinusDestination,
    Factor::SourceAlphaSaturate,
    Factor::Constant,
    Factor::OneMinusConstant,
    Factor::ConstantAlpha,
    Factor::OneMinusConstantAlpha,
    Factor::Second,
    Factor::OneMinusSecond,
    Factor::SecondAlpha,
    Factor::OneMinusSecondAlpha,
];
const EQUATIONS: [Equation; 5] =
    [Equation::Add, Equation::Subtract, Equation::Min, Equation::Max, Equation::ReverseSubtract];
const OPS: [StencilOp; 8] = [
    StencilOp::Keep,
    StencilOp::Zero,
    StencilOp::Replace,
    StencilOp::IncrementClamp,
    StencilOp::DecrementClamp,
    StencilOp::Invert,
    StencilOp::IncrementWrap,
    StencilOp::DecrementWrap,
];
const TOPOLOGIES: [Topology; 8] = [
    Topology::Triangles,
    Topology::Triangles,
    Topology::TriangleStrip,
    Topology::TriangleFan,
    Topology::Rectangles,
    Topology::Quads,
    Topology::Lines,
    Topology::Points,
];
const DEPTHS: [DepthFormat; 5] = [
    DepthFormat::Unorm24,
    DepthFormat::StencilUnorm24,
    DepthFormat::Float32,
    DepthFormat::Unorm16,
    DepthFormat::Float32Stencil,
];

fn formats() -> [Format; 22] {
    [
        Format::new([8; 4], Number::Unorm),
        Format::new([8; 4], Number::Unorm),
        Format::new([8; 4], Number::Unorm),
        Format::new([8; 4], Number::Unorm),
        Format::new([8, 0, 0, 0], Number::Unorm),
        Format::new([8, 8, 0, 0], Number::Unorm),
        Format::new([16, 16, 0, 0], Number::Unorm),
        Format::new([16; 4], Number::Snorm),
        Format::new([5, 5, 5, 1], Number::Unorm),
        Format::new([4; 4], Number::Unorm),
        Format::new([10, 10, 10, 2], Number::Unorm),
        Format::new([11, 11, 10, 0], Number::Float),
        Format::new([16, 0, 0, 0], Number::Float),
        Format::new([32, 32, 0, 0], Number::Float),
        Format::new([32; 4], Number::Float),
        Format::new([32, 0, 0, 0], Number::Uint),
        Format::new([16, 16, 0, 0], Number::Sint),
        Format::new([8; 4], Number::Uscaled),
        Format::new([8; 4], Number::Srgb),
        Format::new([16; 4], Number::Float),
        Format::new([5, 6, 5, 0], Number::Unorm),
        Format::new([8; 4], Number::Snorm),
    ]
}

fn blend(random: &mut Random, number: Number) -> Blend {
    let mut part = || -> Part { (random.of(&FACTORS), random.of(&EQUATIONS), random.of(&FACTORS)) };
    let (color, alpha) = (part(), part());
    let constant = [0; 4].map(|_| random.component());
    let usual = [
        (Factor::SourceAlpha, Factor::OneMinusSourceAlpha),
        (Factor::One, Factor::OneMinusSourceAlpha),
        (Factor::SourceAlpha, Factor::One),
        (Factor::One, Factor::One),
    ];
    let (color, alpha) = match random.once_in(2) {
        true => {
            let (source, destination) = random.of(&usual);
            ((source, Equation::Add, destination), (source, Equation::Add, destination))
        }
        false => (color, alpha),
    };
    Blend { color, alpha, constant, range: blend_range(number) }
}

fn surface(random: &mut Random, number: usize) -> Surface {
    // Rarely, two targets have the same memory, start at an odd offset, or have fewer rows than are drawn.
    let start =
        if random.once_in(30) { 0 } else { number * SURFACE } + if random.once_in(30) { 2 } else { 0 };
    let rows = if random.once_in(10) { HEIGHT - 13 } else { HEIGHT };
    let pitch = if random.once_in(10) { WIDTH - 17 } else { WIDTH };
    Surface { start, end: start + SURFACE - 64, pitch, rows, order: SampleOrder::Planes }
}

/// Returns the positions of a number of samples.
fn places(samples: usize) -> Vec<Corner> {
    let sixteenths = match samples {
        1 => Vec::new(),
        2 => vec![[-4, -4], [4, 4]],
        4 => vec![[-2, -6], [6, -2], [-6, 2], [2, 6]],
        _ => vec![[-7, -1], [-3, -5], [-5, 5], [-1, 3], [1, -3], [7, -7], [3, 7], [5, 1]],
    };
    sixteenths.into_iter().map(|place| place.map(|at: i64| at * PIXEL / 16)).collect()
}

fn mask(random: &mut Random) -> PixelMask {
    let mut rectangle = || {
        let (x, y) = (random.below(WIDTH) as i32, random.below(HEIGHT) as i32);
        Rectangle { x0: x, y0: y, x1: x + random.below(50) as i32, y1: y + random.below(50) as i32 }
    };
    let all = vec![rectangle(), rectangle()];
    PixelMask {
        rectangles: random.once_in(2).then(|| WindowRectangles { all, inside: random.once_in(2) }),
        stipple: random.once_in(2).then(|| [0; 32].map(|_| random.bits())),
    }
}

fn state(random: &mut Random) -> Draw {
    let samples = if random.once_in(3) { random.of(&[2, 4, 8]) } else { 1 };
    let order = samples > 1 && random.once_in(2);
    let topology = random.of(&TOPOLOGIES);
    let divides = random.once_in(2);
    let target = |random: &mut Random, number: usize| {
        let format = random.of(&formats());
        let components = format.bits.iter().filter(|width| **width != 0).count();
        let places = match random.below(4) {
            _ if components == 1 => random.of(&[[Some(0), None, None, None], [None, None, None, Some(0)]]),
            _ if components == 2 => [Some(0), None, None, Some(1)],
            _ if components == 3 => [Some(2), Some(1), Some(0), None],
            0 => [Some(2), Some(1), Some(0), Some(3)],
            1 => [Some(0), Some(1), Some(2), None],
            _ => [Some(0), Some(1), Some(2), Some(3)],
        };
        Target {
            surface: surface(random, number),
            format,
            places,
            mask: if random.once_in(3) { random.below(16) as u8 } else { 0xf },
            blend: random.once_in(2).then(|| blend(random, format.numbers[0])),
            color: random.below(3),
        }
    };
    let targets = (0..1 + random.below(2)).map(|number| target(random, number)).collect();
    let side = |random: &mut Random| Stencil {
        compare: random.of(&Compare::ALL),
        reference: random.bits() as u8,
        mask: 0x3,
        write_mask: 0x7,
        fail: random.of(&OPS),
        depth_fail: random.of(&OPS),
        pass: random.of(&OPS),
    };
    let how = |random: &mut Random| random.of(&[How::Perspective, How::Linear, How::Flat, How::Perspective]);
    let inputs = vec![
        Input::Attribute { index: 0, how: how(random) },
        Input::Attribute { index: 1, how: how(random) },
        random.of(&[
            Input::Constant([1, 2, 0x3f00_0000, 4]),
            Input::Sprite { otherwise: Some(1), top_is_one: true },
            Input::Sprite { otherwise: None, top_is_one: false },
            Input::Stretched { low: [0., 1.], high: [1., 0.] },
        ]),
    ];
    let offset = Offset { slope: 1.5, constant: 1e-4, of_float: random.once_in(2), clamp: 0. };
    let sides = [0; 2].map(|_| Side {
        culled: random.once_in(12),
        fill: if random.once_in(12) { Fill::Lines } else { Fill::Solid },
        offset: random.once_in(5).then_some(offset),
    });
    let compare = random.of(&Compare::ALL);
    let tested = random.once_in(2);
    let mut draw = Draw {
        topology,
        last_provokes: random.once_in(2),
        viewport: Viewport {
            scale: if divides { [WIDTH as f32 / 2., HEIGHT as f32 / 2., 0.5] } else { [1.; 3] },
            offset: if divides { [WIDTH as f32 / 2., HEIGHT as f32 / 2., 0.5] } else { [0.; 3] },
            depth: random.once_in(2).then_some((0.1, 0.9)),
            divides,
        },
        clip: (divides && topology != Topology::Rectangles && random.once_in(2)).then_some(Clip {
            near: Some(false),
            far: true,
            distances: 0,
            culls: 0,
            band: [4.; 2],
            linear: 0,
            discard: random.once_in(2).then_some([1.; 2]),
            cut_edges: random.once_in(2),
        }),
        scissor: Rectangle {
            x0: random.below(9) as i32,
            y0: random.below(9) as i32,
            x1: (WIDTH - random.below(9)) as i32,
            y1: (HEIGHT - random.below(9)) as i32,
        },
        mask: random.once_in(10).then(|| mask(random).into()),
        front_is_clockwise: random.once_in(2),
        sides,
        points: Points { size: [9.5, 7.], from_vertex: false, range: [0., 64.] },
        line_width: 2.5,
        rectangular_lines: random.once_in(4),
        stipple: random.once_in(4).then_some(Stipple { pattern: 0xf0c5, factor: 2, restarts: true }),
        inputs,
        depth: tested.then(|| DepthTarget { surface: surface(random, 2), format: random.of(&DEPTHS) }),
        tests: Tests {
            depth: (!random.once_in(4)).then_some(compare),
            depth_write: random.once_in(2),
            stencil: random.once_in(4).then(|| [side(random), side(random)]),
        },
        depth_bounds: random.once_in(12).then_some([0.25, 0.75]),
        alpha_test: random.once_in(6).then(|| (random.of(&Compare::ALL), 0.5)),
        targets,
        logic: if random.once_in(12) { LogicOp(random.below(16) as u8) } else { LogicOp::COPY },
        copies_depth: tested && random.once_in(8),
        multisample: match samples {
            1 => Multisample {
                copy: random.once_in(20).then_some(draw::Copy::Depth(0)),
                ..Multisample::default()
            },
            _ => Multisample {
                places: places(samples),
                by_sample: !random.once_in(3),
                mask: random.of(&[0xd, 0xff]),
                alpha_to_coverage: random.once_in(4),
                alpha_to_one: random.once_in(8),
                shades_samples: random.once_in(4),
                at_centroid: random.below(8) as u64,
                at_sample: random.below(8) as u64,
                position: (random.once_in(3), random.once_in(3)),
                copy: None,
            },
        },
    };
    if order && random.once_in(3) {
        let surfaces = draw.targets.iter_mut().map(|target| &mut target.surface);
        for surface in surfaces.chain(draw.depth.as_mut().map(|depth| &mut depth.surface)) {
            surface.order = SampleOrder::Together(samples as u8);
            surface.pitch *= samples;
        }
    } else if order {
        let size = [samples.ilog2().div_ceil(2), samples.ilog2() / 2].map(|log2| log2 as u8);
        let surfaces = draw.targets.iter_mut().map(|target| &mut target.surface);
        for surface in surfaces.chain(draw.depth.as_mut().map(|depth| &mut depth.surface)) {
            surface.order = SampleOrder::Rectangles(size);
            (surface.pitch, surface.rows) = (surface.pitch << size[0], surface.rows << size[1]);
        }
    }
    draw
}

fn vertices(random: &mut Random, draw: &Draw) -> Vec<Vertex> {
    let count = 3 + random.below(24);
    let size = random.of(&[0.1, 0.4, 1., 3.]);
    let centre = [0; 2].map(|_| random.float(-0.8, 0.8));
    let same_w = random.once_in(2);
    let constant = random.once_in(4);
    let mut vertex = || {
        let [x, y] = centre.map(|at| at + random.float(-size, size));
        let z = random.float(-1.1, 1.1);
        let w = if same_w { 1. } else { random.float(0.2, 3.) };
        let w = if !same_w && random.once_in(20) { -w } else { w };
        let position = match draw.viewport.divides {
            true => [x * w, y * w, z * w, w],
            false => [(x + 1.) * WIDTH as f32 / 2., (y + 1.) * HEIGHT as f32 / 2., z * 0.5 + 0.5, 1.],
        };
        let attribute = |random: &mut Random| [0; 4].map(|_| random.component().to_bits());
        let fixed = [0.25, 0.5, -0., 1.].map(f32::to_bits);
        let attributes = vec![attribute(random), if constant { fixed } else { attribute(random) }];
        Vertex { position, attributes, ..Vertex::default() }
    };
    (0..count).map(|_| vertex()).collect()
}

/// Joins the fragments of all batches, because there are several ways to divide them.
fn joined(batches: &[Fragments]) -> Fragments {
    let mut all = Fragments::default();
    for Fragments { lanes, inputs, positions, fronts, samples, sample, quads } in batches {
        all.inputs.resize_with(inputs.len(), Default::default);
        let columns = all.inputs.iter_mut().flatten().chain(&mut all.positions);
        let more = inputs.iter().flatten().chain(positions);
        columns.zip(more).for_each(|(column, more)| Arc::make_mut(column).extend_from_slice(more));
        all.lanes += lanes;
        all.fronts.extend(fronts);
        all.samples.extend(samples);
        all.sample.extend(sample);
        all.quads.extend(quads);
    }
    all
}

/// A program that stores its inputs as colours, and records its fragments.
#[derive(Default)]
struct Program {
    kills: bool,
    computes_depth: bool,
    masks: bool,
    /// Whether lanes that are alike may be shaded once.
    uniform: bool,
    /// Whether a uniform program reads depth and w.
    level: bool,
    /// Whether hidden lanes may be omitted.
    skips: bool,
    seen: Mutex<Vec<Fragments>>,
}

impl Program {
    fn seen(&self) -> MutexGuard<'_, Vec<Fragments>> {
        self.seen.lock().unwrap()
    }
}

impl FragmentProgram for Program {
    type Error = Infallible;

    /// A program whose lanes may be alike does not read their positions.
    fn reads(&self) -> ReadColumns {
        let position = match (self.uniform, self.level) {
            (true, true) => 0b1100,
            (true, false) => 0,
            (false, _) => 0b1111,
        };
        ReadColumns { inputs: Vec::new(), position }
    }

    fn is_uniform(&self) -> bool {
        self.uniform
    }

    fn may_skip_hidden(&self) -> bool {
        self.skips && !self.computes_depth
    }

    fn in_order(&self) -> bool {
        true
    }

    fn run(&self, fragments: &Fragments) -> Result<Shaded, Infallible> {
        // The compiler determines which NaN a sum has.
        let own = |number: usize| Some(fragments.inputs[number].clone().map(|column| plain(&column)));
        let red = &fragments.inputs[0][0];
        let column =
            |of: &dyn Fn(u32) -> u32| -> LaneWords { plain(red).iter().map(|word| of(*word)).collect() };
        // A missing column of the second colour reads as zeros.
        let mut second = own(1).unwrap_or_default();
        second[1].clear();
        let shaded = Shaded {
            colors: vec![own(0), Some(second)],
            depth: self.computes_depth.then(|| column(&|word| word & 0x7fff_ffff)),
            stencil: None,
            killed: if self.kills || self.uniform {
                // A lane that is only used for differences may have ended.
                let ends =
                    |(lane, word): (usize, &u32)| self.kills && word & 4 != 0 || !fragments.is_covered(lane);
                plain(red).iter().enumerate().map(ends).collect()
            } else {
                Vec::new()
            },
            mask: self.masks.then(|| column(&|word| word >> 3)),
        };
        self.seen().push(fragments.clone());
        Ok(shaded)
    }
}

/// Returns a column in which all NaNs are the same.
fn plain(column: &[u32]) -> LaneWords {
    column
        .iter()
        .map(|word| if f32::from_bits(*word).is_nan() { f32::NAN.to_bits() } else { *word })
        .collect()
}

/// Returns the first difference between two lists of columns.
fn difference(found: &[[LaneColumn; 4]], known: &[[LaneColumn; 4]]) -> Option<(usize, usize, u32, u32)> {
    found.iter().flatten().zip(known.iter().flatten()).enumerate().find_map(|(column, (found, known))| {
        assert_eq!(found.len(), known.len(), "column {column}");
        let mut lanes = plain(found).into_iter().zip(plain(known)).enumerate();
        lanes
            .find(|(_, (found, known))| found != known)
            .map(|(lane, (found, known))| (column, lane, found, known))
    })
}

#[test]
fn draws_by_columns_are_those_of_the_reference() {
    let rounds = 500;
    let (mut shaded_once, mut skipped) = (0, 0);
    for number in 0..rounds {
        let mut random = Random(number);
        let mut draw = state(&mut random);
        if number % 4 == 0 {
            // All lanes are alike, and rows cover the surfaces.
            let flat = |index| Input::Attribute { index, how: How::Flat };
            draw.inputs[..2].copy_from_slice(&[flat(0), flat(1)]);
            draw.multisample = Multisample::default();
            draw.tests.stencil = None;
            draw.sides = [Side::default(); 2];
            draw.topology = random.of(&[Topology::Rectangles, Topology::Triangles]);
            draw.clip = None;
            // Masks are tested pixel by pixel.
            draw.mask = None;
            for target in &mut draw.targets {
                let (format, places) = match number % 8 {
                    0 => (formats()[0], [Some(0), Some(1), Some(2), Some(3)]),
                    _ => (Format::new([32, 0, 0, 0], Number::Uint), [None, Some(0), None, None]),
                };
                (target.format, target.places) = (format, places);
                target.blend = target.blend.filter(|_| number % 8 == 0);
            }
        }
        let skips = number % 6 == 1;
        if skips {
            // Many lanes are hidden.
            draw.multisample = Multisample::default();
            draw.sides = [Side::default(); 2];
            draw.topology = Topology::Triangles;
            draw.tests = Tests {
                depth: Some(random.of(&[Compare::Less, Compare::GreaterEqual])),
                depth_write: !random.once_in(4),
                stencil: None,
            };
            let format = random.of(&DEPTHS[..4]);
            draw.depth = Some(DepthTarget { surface: surface(&mut random, 2), format });
        }
        let mut all = vertices(&mut random, &draw);
        // Depth and w are the same at all vertices.
        let level = number % 4 == 0;
        let (depth, w) = (random.below(7) as f32 / 7., 1. + random.below(9) as f32 / 3.);
        all.iter_mut().filter(|_| level).for_each(|vertex| vertex.position[2..].copy_from_slice(&[depth, w]));
        let most = if skips { 150 } else { 24 };
        let are_fewer = usize::from(compare(number, &mut random, &draw, &all, (level, skips), most));
        shaded_once += if number % 2 == 0 { are_fewer } else { 0 };
        skipped += if skips { are_fewer } else { 0 };
    }
    assert!(shaded_once > 4 && skipped > 4, "{shaded_once} and {skipped} draws");
}

/// Draws vertices in order, and in a random order with up to `most` more than two of them, by columns and with the
/// reference. Returns whether fewer lanes were shaded by columns.
fn compare(
    number: u64,
    random: &mut Random,
    draw: &Draw,
    all: &[Vertex],
    (level, skips): (bool, bool),
    most: usize,
) -> bool {
    let mut run = || (0..3 + random.below(most)).map(|_| random.below(all.len())).collect();
    let runs: Vec<Vec<usize>> = vec![(0..all.len()).collect(), run()];
    let vertices = Vertices { all, runs: &runs };
    let coordinates = Coordinates { in_window: false, steps: random.once_in(3).then_some(12) };
    let background: Vec<u8> = (0..3 * SURFACE + 8).map(|at| (at * 7 + at / 251) as u8).collect();
    let program = || Program {
        kills: number.is_multiple_of(3),
        computes_depth: number.is_multiple_of(5),
        masks: number.is_multiple_of(7),
        uniform: number.is_multiple_of(2),
        level,
        skips,
        seen: Mutex::default(),
    };
    let (mut memory, mut expected) = (background.clone(), background);
    let (found, known) = (program(), program());
    let fills = Fills::default();
    let (memory, expected) = (Vram::new(&mut memory).with_fills(&fills), Vram::new(&mut expected));
    clear(random, [memory, expected]);
    let Ok(counts) = draw_with(draw, coordinates, vertices, memory, &found);
    let Ok(right) = reference::draw_with(draw, coordinates, vertices, expected, &known);
    let [memory, expected] = [memory, expected].map(|all| all.bytes(0..all.len()));
    assert_eq!(counts, right, "draw {number}");
    // Programs that are shaded once have other batches.
    if !found.uniform && !found.skips {
        let (found, known) = (&joined(&found.seen()), &joined(&known.seen()));
        assert_eq!(difference(from_ref(&found.positions), from_ref(&known.positions)), None, "draw {number}");
        assert_eq!(difference(&found.inputs, &known.inputs), None, "draw {number}");
        let others =
            |of: &Fragments| Fragments { inputs: Vec::new(), positions: Default::default(), ..of.clone() };
        assert!(others(found) == others(known), "draw {number}: fragments differ");
    }
    let lanes = |seen: &[Fragments]| seen.iter().map(|fragments| fragments.lanes).sum::<usize>();
    let differs = memory.iter().zip(&expected).position(|(found, known)| found != known);
    assert_eq!(differs, None, "draw {number}: {draw:?}");
    lanes(&found.seen()) < lanes(&known.seen())
}

/// Returns a draw whose primitives are lines, sides of polygons, or points.
fn lined(random: &mut Random) -> (Draw, Vec<Vertex>) {
    let mut draw = state(random);
    draw.topology = random.of(&[
        Topology::Lines,
        Topology::Lines,
        Topology::LineStrip,
        Topology::LineLoop,
        Topology::LinesAdjacency,
        Topology::Triangles,
        Topology::Quads,
        Topology::Points,
    ]);
    if draw.topology == Topology::Triangles {
        draw.sides.iter_mut().for_each(|side| side.fill = Fill::Lines);
    }
    if draw.topology == Topology::Quads {
        draw.sides.iter_mut().for_each(|side| side.fill = Fill::Points);
    }
    draw.line_width = random.of(&[0., 1., 1., 1.5, 2.5, 10., 90., 3e4]);
    let factor = random.of(&[0, 1, 3]);
    let stipple = Stipple { pattern: random.bits() as u16, factor, restarts: random.once_in(2) };
    draw.stipple = random.once_in(3).then_some(stipple);
    let size = random.float(0., 90.);
    draw.points.size = random.of(&[[size; 2], [0.; 2], [size, 3.]]);
    let mut all = vertices(random, &draw);
    for at in 1..all.len() {
        let before = all[at - 1].position;
        let position = &mut all[at].position;
        match random.below(8) {
            // The line is along an axis, or has no length.
            0 => position[0] = before[0],
            1 => position[1] = before[1],
            2 => *position = before,
            3 => position[..2].iter_mut().for_each(|at| *at *= 40.),
            4 if random.once_in(3) => position[..2].iter_mut().for_each(|at| *at *= 1e5),
            _ => {}
        }
    }
    (draw, all)
}

#[test]
fn lines_by_columns_are_those_of_the_reference() {
    for number in 0..300 {
        let mut random = Random(number);
        let (draw, all) = lined(&mut random);
        compare(number, &mut random, &draw, &all, (false, number % 5 == 1), 24);
    }
}

/// Triangles of all sizes in perspective, with a component that is the same at all vertices.
#[test]
fn what_is_alike_in_perspective_is_that_of_the_reference() {
    for number in 0..150 {
        let mut random = Random(number);
        let mut draw = state(&mut random);
        draw.topology = random.of(&[Topology::Triangles, Topology::TriangleStrip, Topology::Rectangles]);
        draw.viewport.divides = true;
        (draw.viewport.scale, draw.viewport.offset) = ([36., 25., 0.5], [36., 25., 0.5]);
        (draw.clip, draw.multisample) = (None, Multisample::default());
        draw.inputs[..2].fill(Input::Attribute { index: 0, how: How::Perspective });
        let mut all = vertices(&mut random, &draw);
        let (value, spread) = (random.component(), random.of(&[1e-7, 0.01, 1., 30., 1e5]));
        for vertex in &mut all {
            let [x, y, ..] = vertex.position.map(|at| at / vertex.position[3]);
            let w = random.float(1., 1. + spread) * if random.once_in(30) { -1. } else { 1. };
            vertex.position = [x * w, y * w, 0., w];
            vertex.attributes[0] = [value, 1., random.float(0., 1.), -0.].map(f32::to_bits);
        }
        compare(number, &mut random, &draw, &all, (false, number % 5 == 1), 24);
    }
}

/// The reciprocal of w is 0 at pixel (0, 0), outside of the triangle. Weights in space and their sum are NaNs there.
#[test]
fn beside_a_triangle_in_perspective_what_is_alike_may_be_no_number() {
    let mut random = Random(1);
    let mut draw = state(&mut random);
    draw.topology = Topology::Triangles;
    draw.viewport = Viewport { scale: [1.; 3], offset: [0.; 3], depth: None, divides: true };
    (draw.clip, draw.multisample, draw.sides) = (None, Multisample::default(), [Side::default(); 2]);
    draw.scissor = Rectangle { x0: 0, y0: 0, x1: WIDTH as i32, y1: HEIGHT as i32 };
    draw.inputs[..2].fill(Input::Attribute { index: 0, how: How::Perspective });
    let vertex = |[x, y, w]: [f32; 3]| Vertex {
        position: [x * w, y * w, 0.5 * w, w],
        attributes: vec![[0.25f32, 0.5, 0., 1.].map(f32::to_bits); 2],
        ..Vertex::default()
    };
    let all = [[1.5, 0.5, 1.], [2.5, 0.5, 0.5], [1.5, 2.5, 1.]].map(vertex);
    let mut memory = vec![0; 3 * SURFACE + 8];
    let program = Program::default();
    let vertices = Vertices { all: &all, runs: &[vec![0, 1, 2]] };
    let Ok(_) = draw_with(&draw, Coordinates::default(), vertices, Vram::new(&mut memory), &program);
    assert!(f32::from_bits(program.seen()[0].inputs[0][3][0]).is_nan());
    compare(1, &mut random, &draw, &all, (false, false), 24);
}

/// Fills all surfaces. In one of the memories, the fill is outstanding.
fn clear(random: &mut Random, memories: [Vram<'_>; 2]) {
    let fill = RowFill {
        start: 0,
        words: WIDTH,
        pitch: 4 * WIDTH,
        rows: 3 * SURFACE / (4 * WIDTH),
        value: random.bits(),
        mask: random.of(&[u32::MAX, 0xff_ffff]),
    };
    assert!(memories.iter().all(|memory| memory.fill(&fill)));
    assert!(memories.iter().any(|memory| memory.has_fills()));
}

/// Returns a draw that stores the same value in every pixel, mostly without a test that drops a pixel.
fn alike(random: &mut Random) -> Draw {
    let mut draw = state(random);
    draw.inputs = vec![Input::Attribute { index: 0, how: How::Flat }; 3];
    draw.topology = random.of(&[Topology::Rectangles, Topology::Triangles]);
    draw.viewport = Viewport { scale: [1.; 3], offset: [0.; 3], depth: None, divides: false };
    draw.viewport.depth = random.once_in(2).then_some((0.1, 0.9));
    (draw.clip, draw.multisample) = (None, Multisample::default());
    draw.sides = [Side::default(); 2];
    draw.alpha_test = draw.alpha_test.filter(|_| random.once_in(2));
    (draw.mask, draw.depth_bounds) = (None, None);
    (draw.logic, draw.copies_depth) = (LogicOp::COPY, false);
    for target in &mut draw.targets {
        let (format, places) = match random.once_in(3) {
            false => (formats()[0], target.places),
            true => (Format::new([32, 0, 0, 0], Number::Uint), [None, Some(0), None, None]),
        };
        (target.format, target.places) = (format, places);
        target.blend = target.blend.filter(|_| random.once_in(5));
    }
    let format = random.of(&DEPTHS[..4]);
    draw.depth = (!random.once_in(4)).then(|| DepthTarget { surface: surface(random, 2), format });
    let compare = if random.once_in(8) { random.of(&Compare::ALL) } else { Compare::Always };
    draw.tests.depth = (!random.once_in(4)).then_some(compare);
    let mut side = || Stencil {
        compare: if random.once_in(8) { Compare::Less } else { Compare::Always },
        reference: random.bits() as u8,
        mask: 0xff,
        write_mask: random.of(&[0xff, 0x3c]),
        fail: random.of(&OPS),
        depth_fail: random.of(&OPS),
        pass: random.of(&OPS[..4]),
    };
    let sides = [side(), side()];
    draw.tests.stencil = random.once_in(2).then_some(sides);
    draw
}

/// Draws without tests, whose pixels are all alike, fill rows. Memory and counts equal those of the reference.
#[test]
fn pixels_that_are_alike_are_filled_as_in_the_reference() {
    let mut few = 0;
    for number in 0..300 {
        let mut random = Random(number);
        let draw = alike(&mut random);
        let depth = random.float(-0.2, 1.2);
        let fixed = [0; 4].map(|_| random.component().to_bits());
        let (x, y) = (random.below(30) as f32 + 0.25, random.below(20) as f32);
        let (right, below) = (x + random.float(36., 60.), y + random.float(36., 60.));
        let corners = [[x, y], [right, y], [x, below], [right, below]].into_iter();
        let vertex = |[x, y]: [f32; 2]| Vertex {
            position: [x, y, depth, 1.],
            attributes: vec![fixed],
            ..Vertex::default()
        };
        let all: Vec<Vertex> = corners.map(vertex).collect();
        let runs = match draw.topology {
            Topology::Rectangles => vec![vec![0, 1, 2]],
            _ => vec![vec![0, 1, 2, 3, 2, 1]],
        };
        let vertices = Vertices { all: &all, runs: &runs };
        let background: Vec<u8> = (0..3 * SURFACE + 8).map(|at| (at * 7 + at / 251) as u8).collect();
        let (mut memory, mut expected) = (background.clone(), background);
        let program = || Program {
            computes_depth: number % 5 == 0,
            masks: number % 7 == 0,
            uniform: true,
            ..Program::default()
        };
        let (found, known) = (program(), program());
        let fills = Fills::default();
        let (memory, expected) = (Vram::new(&mut memory).with_fills(&fills), Vram::new(&mut expected));
        clear(&mut random, [memory, expected]);
        let coordinates = Coordinates::default();
        let Ok(counts) = draw_with(&draw, coordinates, vertices, memory, &found);
        let Ok(right) = reference::draw_with(&draw, coordinates, vertices, expected, &known);
        assert_eq!(counts, right, "draw {number}: {draw:?}");
        let lanes: usize = found.seen().iter().map(|fragments| fragments.lanes).sum();
        few += usize::from((1..200).contains(&lanes));
        let [memory, expected] = [memory, expected].map(|all| all.bytes(0..all.len()));
        let differs = memory.iter().zip(&expected).position(|(found, known)| found != known);
        assert_eq!(differs, None, "draw {number}: {draw:?}");
    }
    assert!(few > 100, "{few} draws were shaded once");
}

/// A program that names the columns that it reads receives the same words there, and no others.
#[test]
fn columns_that_are_not_read_are_not_made() {
    struct Sparse(Mutex<Option<Fragments>>);
    impl FragmentProgram for Sparse {
        type Error = Infallible;
        fn reads(&self) -> ReadColumns {
            ReadColumns { inputs: vec![0b0101, 0], position: 0b1000 }
        }
        fn run(&self, fragments: &Fragments) -> Result<Shaded, Infallible> {
            *self.0.lock().unwrap() = Some(fragments.clone());
            Ok(Shaded::default())
        }
    }
    let mut random = Random(4);
    let mut draw = state(&mut random);
    draw.topology = Topology::Rectangles;
    (draw.depth, draw.multisample) = (None, Multisample::default());
    let corners = [[8., 8.], [60., 8.], [8., 60.]].into_iter();
    let all = corners
        .map(|[x, y]| Vertex {
            position: [x, y, 0.5, 1.],
            attributes: vec![[x.to_bits(); 4]; 2],
            ..Vertex::default()
        })
        .collect::<Vec<_>>();
    let vertices = Vertices { all: &all, runs: &[vec![0, 1, 2]] };
    draw.viewport = Viewport { scale: [1.; 3], offset: [0.; 3], depth: None, divides: false };
    let (sparse, whole) = (Sparse(Mutex::new(None)), Program::default());
    let mut memory = vec![0; 3 * SURFACE + 8];
    let Ok(_) = draw_with(&draw, Coordinates::default(), vertices, Vram::new(&mut memory), &sparse);
    let Ok(_) = reference::draw_with(&draw, Coordinates::default(), vertices, Vram::new(&mut memory), &whole);
    let (sparse, all) = (sparse.0.into_inner().unwrap().unwrap(), &whole.seen()[0]);
    for (chan, column) in sparse.inputs[0].iter().enumerate() {
        let expected = if chan % 2 == 0 { &all.inputs[0][chan][..] } else { &[] };
        assert_eq!(&column[..], expected);
    }
    assert!(sparse.inputs[1].iter().all(|column| column.is_empty()) && sparse.inputs[2] == all.inputs[2]);
    assert!(
        sparse.positions[..3].iter().all(|column| column.is_empty())
            && sparse.positions[3] == all.positions[3]
    );
}
