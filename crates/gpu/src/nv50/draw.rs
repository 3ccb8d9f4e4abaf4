//! Translates the words of methods to a [`Draw`]. A [`Draw`] has the state of the fixed-function units, and the inputs
//! and the results of programs.

use std::sync::Arc;

use reconverge_board::errata::Erratum;
use reconverge_isa::sets::SortedSet;
use reconverge_raster::blend::{Blend, Equation, Factor, LogicOp, Part};
use reconverge_raster::clip::Clip;
use reconverge_raster::depth::{Compare, Stencil, StencilOp, Tests};
use reconverge_raster::draw::{
    DepthTarget, Draw, Fill, FragmentProgram, Fragments, Multisample, Offset, Points, ReadColumns,
    SampleOrder, Shaded, Side, Stipple, Surface, Target, Viewport, blend_range,
};
use reconverge_raster::format::Number;
use reconverge_raster::interpolate::{How, Input};
use reconverge_raster::mask::{PixelMask, WindowRectangles};
use reconverge_raster::primitive::{Topology, list_of};
use reconverge_raster::setup::Rectangle;
use reconverge_raster::vertex::Vertex;
use reconverge_tesla::launch::{Fragment, LaneResults, Launch, SAMPLE_ID, Varying};

use super::Slots;
use super::format;
use super::methods::{
    ArrayMode, FpControl, FpMultisample, Interpolants, RtControl, SemanticColor, tesla as m,
};
use super::multisample::{multisample, order};
use super::shader::{FACING, Shader};
use super::state::{State, Unknown, fields};
use super::surface::{Layout, Slices, TileMode};
use crate::Fault;
use crate::capture::{FragmentRecording, Recording};

/// The bits of 1.0.
const ONE: u32 = 1f32.to_bits();

/// The guard band. The chip clips a primitive if the absolute value of x or y exceeds this multiple of w. With this
/// limit, window coordinates stay within 2^22 for a viewport of 8192 pixels.
const BAND: f32 = 256.;

/// The range of point sizes that the driver advertises.
const POINT_SIZES: [f32; 2] = [1., 64.];

/// The polygon mode in which polygons are drawn as points.
const POINTS: u32 = 0x1b00;

/// Returns the topology that a number selects in VERTEX_BEGIN_GL, or `None` if the number is unassigned.
pub(super) fn topology(number: u32) -> Option<Topology> {
    Some(match number {
        0x0 => Topology::Points,
        0x1 => Topology::Lines,
        0x2 => Topology::LineLoop,
        0x3 => Topology::LineStrip,
        0x4 => Topology::Triangles,
        0x5 => Topology::TriangleStrip,
        0x6 => Topology::TriangleFan,
        0x7 => Topology::Quads,
        0x8 => Topology::QuadStrip,
        0x9 => Topology::Polygon,
        0xa => Topology::LinesAdjacency,
        0xb => Topology::LineStripAdjacency,
        0xc => Topology::TrianglesAdjacency,
        0xd => Topology::TriangleStripAdjacency,
        _ => return None,
    })
}

/// Returns the comparison function that has this number in OpenGL.
fn compare(word: u32) -> Compare {
    Compare::ALL[(word & 7) as usize]
}

/// Returns the rectangle of pixels to which a draw with this viewport is restricted.
fn scissor(state: &State, viewport: usize) -> Rectangle {
    let from_size = |horiz: u32, vert: u32| {
        let (x, w) = ((horiz & 0xffff) as i32, (horiz >> 16) as i32);
        let (y, h) = ((vert & 0xffff) as i32, (vert >> 16) as i32);
        Rectangle { x0: x, y0: y, x1: x + w, y1: y + h }
    };
    let screen = from_size(state.word(m::SCREEN_SCISSOR_HORIZ), state.nth(m::SCREEN_SCISSOR_HORIZ, 1));
    let word = |number: usize| state.nth(m::SCISSOR_ENABLE, 4 * viewport + number);
    match word(0) & 1 {
        0 => screen,
        _ => screen.and(from_ends(word(1), word(2))),
    }
}

/// Returns the rectangle that two words describe. `horiz` has the first column and the column after the last column.
/// `vert` has the first row and the row after the last row.
fn from_ends(horiz: u32, vert: u32) -> Rectangle {
    let low = |word: u32| (word & 0xffff) as i32;
    let high = |word: u32| (word >> 16) as i32;
    Rectangle { x0: low(horiz), y0: low(vert), x1: high(horiz), y1: high(vert) }
}

/// Number of window rectangles.
const WINDOW_RECTANGLES: usize = 8;

/// Returns the mask of pixels that results from the window rectangles and the polygon stipple, or `None` if both are
/// off.
fn mask(state: &State) -> Option<Box<PixelMask>> {
    let rectangle = |number: usize| {
        from_ends(state.nth(m::CLIP_RECT_HORIZ, 2 * number), state.nth(m::CLIP_RECT_HORIZ, 2 * number + 1))
    };
    let rectangles = state.flag(m::CLIP_RECTS_EN).then(|| WindowRectangles {
        all: (0..WINDOW_RECTANGLES).map(rectangle).collect(),
        inside: !state.flag(m::CLIP_RECTS_MODE),
    });
    // The driver swaps the bytes in each row of OpenGL's pattern. As a result, the pixels of a row are in the order of
    // the bytes in memory.
    let stipple = state
        .flag(m::POLYGON_STIPPLE_ENABLE)
        .then(|| std::array::from_fn(|row| state.nth(m::POLYGON_STIPPLE_PATTERN, row).swap_bytes()));
    (rectangles.is_some() || stipple.is_some()).then(|| PixelMask { rectangles, stipple }.into())
}

/// Returns the line stipple, or `None` if the line stipple is off. The pattern restarts at each line of a list. (OpenGL
/// 3.0, 3.5.2)
fn stipple(state: &State, topology: Topology) -> Option<Stipple> {
    let word = state.word(m::LINE_STIPPLE);
    state.flag(m::LINE_STIPPLE_ENABLE).then(|| Stipple {
        pattern: (word >> 8) as u16,
        factor: (word & 0xff) as u16 + 1,
        restarts: matches!(topology, Topology::Lines | Topology::LinesAdjacency),
    })
}

/// Returns the rectangle of pixels that a clear affects.
pub(super) fn clear_rectangle(state: &State) -> Rectangle {
    let pair = |method: u32| (state.word(method), state.word(method + 4));
    let of = |(x, y): (u32, u32)| Rectangle {
        x0: (x & 0xffff) as i32,
        y0: (y & 0xffff) as i32,
        x1: ((x & 0xffff) + (x >> 16)) as i32,
        y1: ((y & 0xffff) + (y >> 16)) as i32,
    };
    let screen = of(pair(m::SCREEN_SCISSOR_HORIZ));
    match state.word(m::CLEAR_FLAGS) & 0x10 {
        0 => screen,
        _ => screen.and(of(pair(m::VIEWPORT_HORIZ))),
    }
}

/// Returns a layer of a target as a surface that is stored row by row. If the tiles of the target have several slices,
/// `slices` provides memory for the rows. Returns `None` if memory does not have room for the rows.
fn rows(
    (unknown, slices): (&mut Unknown, &mut Slices),
    start: usize,
    layout: Layout,
    (rows, bytes, layer): (usize, usize, usize),
    (stride, mode): (usize, ArrayMode),
    order: SampleOrder,
) -> Option<Surface> {
    let (start, z) = match mode.has_depth {
        false => (start.saturating_add(layer.saturating_mul(stride)), 0),
        true => (start, layer),
    };
    let start = match layout.has_rows() {
        true => start.saturating_add(layout.place(0, 0, z)),
        false => {
            let place = slices.rows(layout, start, z);
            if place.is_none() {
                unknown.note("a target whose tiles have several slices, without room in memory for its rows");
            }
            place?
        }
    };
    let pitch = layout.pitch() / bytes;
    let end = start.saturating_add(layout.pitch().saturating_mul(rows));
    Some(Surface { start, end, pitch, rows, order })
}

/// Returns the surface and the format of a colour target, or `None` if the target does not exist.
pub(super) fn color_surface(
    (state, unknown, slices): (&State, &mut Unknown, &mut Slices),
    number: usize,
    layer: usize,
) -> Option<(Surface, format::Color)> {
    let at = m::RT_ADDRESS_HIGH + 0x20 * number as u32;
    let code = state.word(at + 8);
    if code == 0 {
        return None;
    }
    let Some(color) = format::color(code) else {
        unknown.note(format!("RT_FORMAT {code:#x}"));
        return None;
    };
    let bytes = usize::from(color.format.bytes);
    let (horiz, vert) = (state.nth(m::RT_HORIZ, 2 * number), state.nth(m::RT_HORIZ, 2 * number + 1) as usize);
    let layout = match horiz >> 31 {
        0 => Layout::tiled(TileMode::new(state.word(at + 12)), horiz as usize * bytes, vert),
        _ => Layout::Linear { pitch: (horiz & 0x7fff_ffff) as usize },
    };
    let mode = fields!(unknown, ArrayMode, state.word(m::RT_ARRAY_MODE));
    let stride = (state.word(at + 16) as usize) << 2;
    let surface = rows(
        (unknown, slices),
        state.address(at),
        layout,
        (vert, bytes, layer),
        (stride, mode),
        order(state),
    )?;
    Some((surface, color))
}

/// Returns the depth buffer, or `None` if the draw has no depth buffer.
pub(super) fn zeta(
    (state, unknown, slices): (&State, &mut Unknown, &mut Slices),
    layer: usize,
) -> Option<DepthTarget> {
    let code = state.nth(m::ZETA_ADDRESS_HIGH, 2);
    if !state.flag(m::ZETA_ENABLE) || code == 0 {
        return None;
    }
    let Some(format) = format::zeta(code) else {
        unknown.note(format!("ZETA_FORMAT {code:#x}"));
        return None;
    };
    let (width, height) = (state.word(m::ZETA_HORIZ) as usize, state.nth(m::ZETA_HORIZ, 1) as usize);
    let mode = TileMode::new(state.nth(m::ZETA_ADDRESS_HIGH, 3));
    let layout = Layout::tiled(mode, width * format.bytes(), height);
    let array = fields!(unknown, ArrayMode, state.nth(m::ZETA_HORIZ, 2));
    let stride = (state.nth(m::ZETA_ADDRESS_HIGH, 4) as usize) << 2;
    let start = state.address(m::ZETA_ADDRESS_HIGH);
    let surface = rows(
        (unknown, slices),
        start,
        layout,
        (height, format.bytes(), layer),
        (stride, array),
        order(state),
    )?;
    Some(DepthTarget { surface, format })
}

/// Layer and viewport of a primitive.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Window {
    /// Layer of the targets to which the primitive is drawn.
    pub(super) layer: usize,
    /// Number of the viewport, which also selects a scissor.
    pub(super) viewport: usize,
}

/// Returns the state of a draw. All primitives of the draw have the same layer and the same viewport.
pub(super) fn draw(
    (state, unknown, slices): (&State, &mut Unknown, &mut Slices),
    topology: Topology,
    reads: &Reads,
    Window { layer, viewport: number }: Window,
) -> Draw {
    let transforms = state.flag(m::VIEWPORT_TRANSFORM_EN);
    let three = |first: usize, without: f32| {
        std::array::from_fn(|at| {
            if transforms { state.float(m::VIEWPORT_SCALE_X, 8 * number + first + at) } else { without }
        })
    };
    let [near, far] = [2, 3].map(|at| state.float(m::VIEWPORT_HORIZ, 4 * number + at));
    let viewport = Viewport {
        scale: three(0, 1.),
        offset: three(3, 0.),
        depth: Some((near.min(far), near.max(far))),
        divides: transforms,
    };
    let volume = state.word(m::VIEW_VOLUME_CLIP_CTRL);
    let distances = state.word(m::CLIP_DISTANCE_ENABLE) as u8;
    let culls = (0..8)
        .filter(|plane| state.word(m::CLIP_DISTANCE_MODE) >> (4 * plane) & 1 != 0)
        .fold(0, |all, plane| all | 1 << plane);
    let linear = reads.inputs.iter().enumerate().fold(0, |linear, (number, input)| match input {
        Input::Attribute { how: How::Linear, .. } if number < 64 => linear | 1 << number,
        _ => linear,
    });
    let clip = (transforms && volume & 1 == 0).then(|| Clip {
        near: (volume >> 3 & 1 == 0).then(|| state.flag(m::DEPTH_CLIP_NEGATIVE_Z)),
        far: volume >> 4 & 1 == 0,
        distances: distances & !culls,
        culls: distances & culls,
        band: [BAND; 2],
        linear,
        discard: None,
        cut_edges: true,
    });
    let alpha_test = state
        .flag(m::ALPHA_TEST_ENABLE)
        .then(|| (compare(state.word(m::ALPHA_TEST_FUNC)), state.float(m::ALPHA_TEST_REF, 0)));
    let logic = match state.flag(m::LOGIC_OP_ENABLE) {
        // OpenGL's number of a logic operation is a truth table. [`LogicOp`] has the bits of this table in reverse
        // order.
        true => LogicOp(((state.word(m::LOGIC_OP) & 0xf) as u8).reverse_bits() >> 4),
        false => LogicOp::COPY,
    };
    let sized = state.flag(m::SEMANTIC_PTSZ);
    Draw {
        topology,
        last_provokes: state.flag(m::PROVOKING_VERTEX_LAST),
        viewport,
        clip,
        scissor: scissor(state, number),
        mask: mask(state),
        front_is_clockwise: state.word(m::FRONT_FACE) == 0x900,
        sides: sides(state),
        points: Points { size: [state.float(m::POINT_SIZE, 0); 2], from_vertex: sized, range: POINT_SIZES },
        line_width: state.float(m::LINE_WIDTH, 0),
        rectangular_lines: false,
        inputs: reads.inputs.clone(),
        depth: zeta((state, unknown, slices), layer),
        tests: tests(state),
        depth_bounds: state
            .flag(m::DEPTH_BOUNDS_EN)
            .then(|| [0, 1].map(|at| state.float(m::DEPTH_BOUNDS, at))),
        alpha_test,
        targets: targets((state, unknown, slices), layer, logic),
        logic,
        copies_depth: false,
        stipple: stipple(state, topology),
        multisample: Multisample { position: reads.position, ..multisample(state, unknown, reads.centroids) },
    }
}

fn sides(state: &State) -> [Side; 2] {
    let offset = |kind: usize| state.nth(m::POLYGON_OFFSET_POINT_ENABLE, kind) & 1 != 0;
    let format = state.nth(m::ZETA_ADDRESS_HIGH, 2);
    // The driver multiplies OpenGL's `units` of the polygon offset by two before the driver writes
    // POLYGON_OFFSET_UNITS. OpenGL's smallest resolvable difference is therefore two steps of a 24-bit depth. NV92
    // passes piglit's `gl-1.4-polygon-offset`, which measures the difference.
    let units = f64::from(state.float(m::POLYGON_OFFSET_UNITS, 0));
    let (step, of_float) = match format {
        0x13 => (libm::exp2(-16.), false),
        0x0a | 0x19 => (1., true),
        _ => (libm::exp2(-24.), false),
    };
    let amount = Offset {
        slope: f64::from(state.float(m::POLYGON_OFFSET_FACTOR, 0)),
        constant: units * step,
        of_float,
        clamp: f64::from(state.float(m::POLYGON_OFFSET_CLAMP, 0)),
    };
    let culled = |side: u32| {
        state.flag(m::CULL_FACE_ENABLE)
            && matches!(state.word(m::CULL_FACE), face if face == side || face == 0x408)
    };
    let side = |mode: u32, face: u32| {
        let (fill, kind) = match state.word(mode) {
            POINTS => (Fill::Points, 0),
            0x1b01 => (Fill::Lines, 1),
            _ => (Fill::Solid, 2),
        };
        Side { culled: culled(face), fill, offset: offset(kind).then_some(amount) }
    };
    [side(m::POLYGON_MODE_FRONT, 0x404), side(m::POLYGON_MODE_BACK, 0x405)]
}

fn tests(state: &State) -> Tests {
    let operation = |word: u32| match word {
        0x0000 => StencilOp::Zero,
        0x1e01 => StencilOp::Replace,
        0x1e02 => StencilOp::IncrementClamp,
        0x1e03 => StencilOp::DecrementClamp,
        0x150a => StencilOp::Invert,
        0x8507 => StencilOp::IncrementWrap,
        0x8508 => StencilOp::DecrementWrap,
        _ => StencilOp::Keep,
    };
    let side = |operations: u32, [reference, write_mask, mask]: [u32; 3]| Stencil {
        fail: operation(state.nth(operations, 0)),
        depth_fail: operation(state.nth(operations, 1)),
        pass: operation(state.nth(operations, 2)),
        compare: compare(state.nth(operations, 3)),
        reference: reference as u8,
        mask: mask as u8,
        write_mask: write_mask as u8,
    };
    let front = side(m::STENCIL_ENABLE + 4, [5, 6, 7].map(|at| state.nth(m::STENCIL_ENABLE, at)));
    let back = match state.flag(m::STENCIL_TWO_SIDE_ENABLE) {
        true => side(
            m::STENCIL_TWO_SIDE_ENABLE + 4,
            [m::STENCIL_BACK_FUNC_REF, m::STENCIL_BACK_MASK, m::STENCIL_BACK_FUNC_MASK]
                .map(|at| state.word(at)),
        ),
        false => front,
    };
    Tests {
        depth: state.flag(m::DEPTH_TEST_ENABLE).then(|| compare(state.word(m::DEPTH_TEST_FUNC))),
        depth_write: state.flag(m::DEPTH_WRITE_ENABLE),
        stencil: state.flag(m::STENCIL_ENABLE).then_some([front, back]),
    }
}

fn targets(
    (state, unknown, slices): (&State, &mut Unknown, &mut Slices),
    layer: usize,
    logic: LogicOp,
) -> Vec<Target> {
    let control = fields!(unknown, RtControl, state.word(m::RT_CONTROL));
    let multiple = state.flag(m::FP_CONTROL);
    let mut found = Vec::new();
    for output in 0..usize::from(control.count).min(8) {
        let number = (control.map >> (3 * output) & 7) as usize;
        let entry = if state.flag(m::COLOR_MASK_COMMON) { 0 } else { number };
        let word = state.nth(m::COLOR_MASK, entry);
        let mask = (0..4).fold(0, |mask, chan| mask | ((word >> (4 * chan) & 1) as u8) << chan);
        if mask == 0 {
            continue;
        }
        let Some((surface, color)) = color_surface((state, unknown, slices), number, layer) else { continue };
        let entry = if state.flag(m::BLEND_ENABLE_COMMON) { 0 } else { number };
        let blends = state.nth(m::BLEND_ENABLE, entry) & 1 != 0 && logic == LogicOp::COPY;
        let blends = blends && format::blends(&color.format, state.errata);
        let blend = blends.then(|| blend((state, unknown), number, color.format.numbers[0]));
        let color_number = if multiple { output } else { 0 };
        found.push(Target {
            surface,
            format: color.format,
            places: color.places,
            mask,
            blend,
            color: color_number,
        });
    }
    found
}

fn blend((state, unknown): (&State, &mut Unknown), number: usize, kind: Number) -> Blend {
    let words: [u32; 6] = match state.flag(m::BLEND_INDEPENDENT) {
        true => std::array::from_fn(|at| {
            state.word(m::IBLEND_SEPARATE_ALPHA + 0x20 * number as u32 + 4 + 4 * at as u32)
        }),
        false => [
            state.nth(m::BLEND_EQUATION_RGB, 0),
            state.nth(m::BLEND_EQUATION_RGB, 1),
            state.nth(m::BLEND_EQUATION_RGB, 2),
            state.nth(m::BLEND_EQUATION_RGB, 3),
            state.word(m::BLEND_FUNC_SRC_ALPHA),
            state.word(m::BLEND_FUNC_DST_ALPHA),
        ],
    };
    let mut factor = |word: u32| match word {
        0x4000 => Factor::Zero,
        0x4001 => Factor::One,
        0x4300 => Factor::Source,
        0x4301 => Factor::OneMinusSource,
        0x4302 => Factor::SourceAlpha,
        0x4303 => Factor::OneMinusSourceAlpha,
        0x4304 => Factor::DestinationAlpha,
        0x4305 => Factor::OneMinusDestinationAlpha,
        0x4306 => Factor::Destination,
        0x4307 => Factor::OneMinusDestination,
        0x4308 => Factor::SourceAlphaSaturate,
        0xc001 => Factor::Constant,
        0xc002 => Factor::OneMinusConstant,
        0xc003 => Factor::ConstantAlpha,
        0xc004 => Factor::OneMinusConstantAlpha,
        0xc900 => Factor::Second,
        0xc901 => Factor::OneMinusSecond,
        0xc902 => Factor::SecondAlpha,
        0xc903 => Factor::OneMinusSecondAlpha,
        other => {
            unknown.note(format!("blend factor {other:#x}"));
            Factor::One
        }
    };
    let equation = |word: u32| match word {
        0x8007 => Equation::Min,
        0x8008 => Equation::Max,
        0x800a => Equation::Subtract,
        0x800b => Equation::ReverseSubtract,
        _ => Equation::Add,
    };
    let color: Part = (factor(words[1]), equation(words[0]), factor(words[2]));
    let alpha: Part = (factor(words[4]), equation(words[3]), factor(words[5]));
    let constant = [0, 1, 2, 3].map(|at| state.float(m::BLEND_COLOR, at));
    Blend { color, alpha, constant, range: blend_range(kind) }
}

/// The source of a word of v[] that a fragment program reads.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Word {
    /// Index of the draw's input, and the component.
    input: usize,
    chan: usize,
    /// Input and component for a polygon whose back is visible. `None` if the front and the back have the same input
    /// and component.
    back: Option<(usize, usize)>,
    /// Whether the value is divided by w at each pixel. The program then multiplies the quotient by w.
    divides: bool,
}

/// The inputs of a fragment program, and the slots of vertices from which the inputs are interpolated.
#[derive(Clone, Debug)]
pub(super) struct Reads {
    /// Interpolated vectors. Input `n` is interpolated from attribute `n` of the vertices.
    pub(super) inputs: Vec<Input>,
    /// Each input has an entry with two values. The first value is the four slots that form the attribute. The second
    /// value states whether the four slots are divided by w of the vertex.
    slots: Vec<([usize; 4], bool)>,
    words: Vec<Word>,
    umask: u8,
    /// Bit n: input n is read at the centroid of the covered samples.
    centroids: u64,
    /// The first value states whether the position is read at the centroid. The second value states whether the
    /// position is read at the sample.
    position: (bool, bool),
}

impl Reads {
    /// Returns the inputs that the words of the methods in `state` select. `centroids` has the words of v[] that the
    /// program reads at the centroid.
    pub(super) fn new(
        (state, unknown): (&State, &mut Unknown),
        topology: Topology,
        centroids: &SortedSet<u16>,
    ) -> Reads {
        let control = fields!(unknown, Interpolants, state.word(m::FP_INTERPOLANT_CTRL));
        let colors = fields!(unknown, SemanticColor, state.word(m::SEMANTIC_COLOR));
        let flat_colors = state.word(m::SHADE_MODEL) == 0x1d00;
        let two_sided = state.flag(m::VERTEX_TWO_SIDE_ENABLE);
        let points = topology == Topology::Points;
        let modes = [m::POLYGON_MODE_FRONT, m::POLYGON_MODE_BACK].map(|mode| state.word(mode));
        // Either side of a polygon may be drawn as points.
        let may_be_points = points || list_of(topology) == Topology::Triangles && modes.contains(&POINTS);
        let sprites = may_be_points && state.flag(m::POINT_SPRITE_ENABLE);
        let several = state.word(m::MULTISAMPLE_MODE) != 0;
        let at_centroid =
            |word: usize| several && u16::try_from(word).is_ok_and(|word| centroids.contains(&word));
        // v[] begins with the words of the position.
        let first_word = control.umask.count_ones() as usize;
        let position = (0..first_word).any(at_centroid);
        let mut reads = Reads {
            inputs: Vec::new(),
            slots: Vec::new(),
            words: Vec::new(),
            umask: control.umask,
            centroids: 0,
            position: (position, position),
        };
        for number in 0..usize::from(control.count) {
            let slot = usize::from(control.offset) + number;
            let first = usize::from(colors.ffc0);
            let color = slot.checked_sub(first).filter(|place| *place < usize::from(colors.count));
            let linear = state.nth(m::NOPERSPECTIVE_BITMAP, (slot / 32).min(3)) >> (slot % 32) & 1 != 0;
            let by_program = number >= usize::from(control.count_nonflat);
            let how = match () {
                () if by_program => How::Flat,
                () if flat_colors && color.is_some() => How::Flat,
                () if linear => How::Linear,
                () => How::Perspective,
            };
            // Inferred: if a colour is flat, the program reads the plane equation's value at the provoking vertex. This
            // value is the colour divided by w of the provoking vertex. The program multiplies this value by w at the
            // position of the pixel. NV92 fails all tests of flat colours in which w changes within a primitive:
            // [`Erratum::FlatColours`].
            let flat_color = how == How::Flat && !by_program && !linear;
            let divided = flat_color && state.errata.has(Erratum::FlatColours);
            // At the centroid, the program reads the quotient of the value and w. This quotient is linear in the
            // window. The program multiplies this quotient by w at the pixel's centre.
            let centroid = how != How::Flat && at_centroid(first_word + number);
            let (how, divided) = match how {
                How::Perspective if centroid => (How::Linear, true),
                how => (how, divided),
            };
            let replaced = if sprites {
                state.nth(m::POINT_COORD_REPLACE_MAP, (slot / 8).min(7)) >> (4 * (slot % 8)) & 0xf
            } else {
                0
            };
            let (input, chan) = match replaced {
                1..=4 => (reads.sprite(state, (!points).then_some((slot, divided))), replaced as usize - 1),
                _ => (reads.input(slot / 4, how, divided, centroid), slot % 4),
            };
            // Inferred: if the program declares an input as flat and SHADE_MODEL is smooth, the input always has the
            // front colour. Eight tests of piglit declare a gl_Back*Color as flat. NV92 fails these tests if
            // SHADE_MODEL is smooth, and passes the tests if SHADE_MODEL is flat: [`Erratum::FlatBack`].
            let is_front = by_program && !flat_colors && state.errata.has(Erratum::FlatBack);
            let two_sided = two_sided && !is_front;
            let back = color.filter(|_| two_sided && replaced == 0).map(|place| {
                let slot = usize::from(colors.bfc0) + place;
                (reads.input(slot / 4, how, divided, centroid), slot % 4)
            });
            let divides = how == How::Perspective || flat_color && !divided;
            reads.words.push(Word { input, chan, back, divides });
        }
        reads
    }

    fn input(&mut self, quad: usize, how: How, divided: bool, centroid: bool) -> usize {
        let bit = |index: usize| 1u64.checked_shl(index as u32).unwrap_or(0);
        let of_quad = ([0, 1, 2, 3].map(|at| 4 * quad + at), divided);
        let known = self.inputs.iter().zip(&self.slots).enumerate().position(|(index, (input, slots))| {
            *slots == of_quad
                && matches!(input, Input::Attribute { how: known, .. } if *known == how)
                && (self.centroids & bit(index) != 0) == centroid
        });
        known.unwrap_or_else(|| {
            let index = self.inputs.len();
            self.inputs.push(Input::Attribute { index, how });
            self.slots.push(of_quad);
            self.centroids |= if centroid { bit(index) } else { 0 };
            index
        })
    }

    /// Returns the input with the coordinates of a point. If the primitive is not a point, each component of the input
    /// has the value of the slot `otherwise`.
    fn sprite(&mut self, state: &State, otherwise: Option<(usize, bool)>) -> usize {
        let of_slot = otherwise.map_or(([0; 4], false), |(slot, divided)| ([slot; 4], divided));
        let known = self
            .inputs
            .iter()
            .zip(&self.slots)
            .position(|(input, slots)| matches!(input, Input::Sprite { .. }) && *slots == of_slot);
        known.unwrap_or_else(|| {
            // If bit 4 is 0, the coordinate t is 0 at the bottom of the point and 1 at the top of the point.
            let top_is_one = state.word(m::POINT_SPRITE_CTRL) & 0x10 == 0;
            let index = self.inputs.len();
            self.inputs.push(Input::Sprite { otherwise: otherwise.map(|_| index), top_is_one });
            self.slots.push(of_slot);
            index
        })
    }

    /// Fills `all` with the vertices whose slots are in `slots`. Each slot of a vertex has one output word of the
    /// vertex. The slots have the order of the result map.
    pub(super) fn vertices(&self, state: &State, slots: &Slots, all: &mut Vec<Vertex>) {
        let first = (state.word(m::SEMANTIC_CLIP) & 0xff) as usize;
        let size = (state.word(m::SEMANTIC_PTSZ) >> 4 & 0xff) as usize;
        let colors = state.word(m::SEMANTIC_COLOR);
        let count = if colors >> 24 & 1 != 0 { (colors >> 16 & 0xff) as usize } else { 0 };
        let is_clamped = |number: usize| {
            let firsts = [colors & 0xff, colors >> 8 & 0xff].map(|first| first as usize);
            firsts.iter().any(|first| (*first..*first + count).contains(&number))
        };
        all.resize_with(slots.len(), Vertex::default);
        for (number, vertex) in all.iter_mut().enumerate() {
            let words = slots.of(number);
            let slot = |number: usize| words.get(number).copied().unwrap_or(0);
            let float = |number: usize| f32::from_bits(slot(number));
            let value = |number: usize| match count != 0 && is_clamped(number) {
                true => float(number).clamp(0., 1.).to_bits(),
                false => slot(number),
            };
            let w = float(3);
            let attribute = |&(slots, divided): &([usize; 4], bool)| {
                slots.map(|slot| match divided {
                    true => (f32::from_bits(value(slot)) / w).to_bits(),
                    false => value(slot),
                })
            };
            vertex.position = [0, 1, 2, 3].map(float);
            vertex.point_size = float(size);
            // CLIP_DISTANCE_ENABLE selects which of these distances clip or cull the primitive.
            vertex.distances = std::array::from_fn(|plane| float(first + plane));
            vertex.attributes.clear();
            vertex.attributes.extend(self.slots.iter().map(attribute));
        }
    }
}

/// State that determines the outputs of a fragment program.
#[derive(Clone, Copy, Debug)]
pub(super) struct FragmentResults {
    control: FpControl,
    count: usize,
    /// Whether the program outputs a sample mask.
    sample_mask: bool,
    /// Whether the program's sample mask is used.
    masks_samples: bool,
    /// Whether each colour is clamped to [0, 1].
    clamps: [bool; 8],
}

impl FragmentResults {
    /// Returns the number of registers that contain results.
    pub(super) fn count(&self) -> usize {
        self.count
    }

    pub(super) fn new((state, unknown): (&State, &mut Unknown)) -> FragmentResults {
        let clamp = state.word(m::FRAG_COLOR_CLAMP_EN);
        let clamps = std::array::from_fn(|number| {
            let code = state.word(m::RT_ADDRESS_HIGH + 0x20 * number as u32 + 8);
            // The clamp flag of a target matters only for floats and SNORM. A UNORM target clamps colours even if the
            // flag is not set. A target of integers never clamps colours. NV92 passes piglit's
            // `gl_rgba8_snorm-drawpixels`.
            let clamps = format::color(code)
                .is_some_and(|color| matches!(color.format.numbers[0], Number::Float | Number::Snorm));
            clamp >> (4 * number) & 1 != 0 && clamps
        });
        let program = fields!(unknown, FpMultisample, state.word(m::FP_MULTISAMPLE));
        FragmentResults {
            control: fields!(unknown, FpControl, state.word(m::FP_CONTROL)),
            count: state.word(m::FP_RESULT_COUNT).min(128) as usize,
            sample_mask: program.export_sample_mask,
            // Inferred from OpenGL, which uses the sample mask of a program only if multisampling is on. The driver
            // uses the same program with and without multisampling.
            masks_samples: program.export_sample_mask && state.flag(m::MULTISAMPLE_ENABLE),
            clamps,
        }
    }
}

/// The fragment stage of a draw, which implements [`FragmentProgram`].
pub(super) struct FragmentStage<'a> {
    shader: &'a Shader,
    reads: &'a Reads,
    results: FragmentResults,
    pub(super) recording: FragmentRecording,
}

impl<'a> FragmentStage<'a> {
    pub(super) fn new(
        shader: &'a Shader,
        reads: &'a Reads,
        results: FragmentResults,
        recording: Option<Recording>,
    ) -> FragmentStage<'a> {
        FragmentStage { shader, reads, results, recording: FragmentRecording::new(recording) }
    }
}

impl FragmentProgram for FragmentStage<'_> {
    type Error = Fault;

    fn reads(&self) -> ReadColumns {
        let words = &self.reads.words;
        let mut reads = ReadColumns { inputs: vec![0; self.reads.inputs.len()], position: self.reads.umask };
        for word in words {
            for (input, chan) in word.back.into_iter().chain([(word.input, word.chan)]) {
                reads.inputs[input] |= 1 << chan;
            }
        }
        if words.iter().any(|word| word.divides) {
            reads.position |= 8;
        }
        reads
    }

    fn may_skip_hidden(&self) -> bool {
        // In a captured draw, all lanes run.
        !self.recording.is_on() && !self.results.control.exports_z
    }

    fn is_uniform(&self) -> bool {
        // A captured launch contains all lanes.
        !self.recording.is_on() && self.shader.is_plain()
    }

    fn in_order(&self) -> bool {
        self.recording.is_on()
    }

    fn run(&self, fragments: &Fragments) -> Result<Shaded, Fault> {
        let lanes = fragments.lanes;
        let w = &fragments.positions[3];
        // `reciprocals` is `None` if every w is 1.
        let divided = w.iter().fold(0, |differs, w| differs | (w ^ ONE)) != 0;
        let reciprocals: Option<Vec<f32>> =
            divided.then(|| w.iter().map(|w| 1. / f32::from_bits(*w)).collect());
        let mut launch = Fragment::new(self.shader.setup(), lanes);
        launch.helpers = true;
        // All lanes of a quad run, even lanes that are not covered. A captured launch records the coverage.
        let needs_coverage = self.shader.sees_coverage() || self.recording.is_on();
        if needs_coverage && !fragments.quads.iter().all(|quad| quad.covered & 15 == 15) {
            launch.covered = vec![false; lanes];
            for (lanes, quad) in launch.covered.as_chunks_mut().0.iter_mut().zip(&fragments.quads) {
                *lanes = [0, 1, 2, 3].map(|lane| quad.covered >> lane & 1 != 0);
            }
        }
        let FragmentResults { control, count, sample_mask, masks_samples, clamps } = self.results;
        launch.kept = Some(count);
        // If v[] begins with w, and every w is 1, the word of w is omitted. A captured launch contains all inputs.
        let ones = self.reads.umask == 8 && reciprocals.is_none() && !self.recording.is_on();
        let mut next = u16::from(ones);
        let mut add = |values: Arc<Vec<u32>>| {
            launch.varyings.insert(next, Varying::Lanes(values));
            next += 1;
        };
        for component in (0..4).filter(|component| !ones && self.reads.umask >> component & 1 != 0) {
            add(match (component, &reciprocals) {
                (3, Some(reciprocals)) => {
                    Arc::new(reciprocals.iter().map(|reciprocal| reciprocal.to_bits()).collect())
                }
                // If every w is 1, 1/w need not be computed.
                _ => fragments.positions[component].clone(),
            });
        }
        for word in &self.reads.words {
            let mut values = fragments.inputs[word.input][word.chan].clone();
            if let Some((input, chan)) = word.back {
                let backs = &fragments.inputs[input][chan];
                for (lane, (value, back)) in Arc::make_mut(&mut values).iter_mut().zip(&**backs).enumerate() {
                    *value = if fragments.is_front(lane) { *value } else { *back };
                }
            }
            if let (true, Some(reciprocals)) = (word.divides, &reciprocals) {
                let divided = |(value, reciprocal): (&u32, &f32)| match *reciprocal == 1. {
                    true => *value,
                    false => (f32::from_bits(*value) * reciprocal).to_bits(),
                };
                values = Arc::new(values.iter().zip(reciprocals).map(divided).collect());
            }
            add(values);
        }
        // A captured launch contains all inputs.
        if self.shader.reads_facing() || self.recording.is_on() {
            let mut facing = vec![0; lanes];
            for (lanes, front) in facing.as_chunks_mut().0.iter_mut().zip(&fragments.fronts) {
                *lanes = [if *front { u32::MAX } else { 0 }; 4];
            }
            launch.varyings.insert(FACING, Varying::Lanes(facing.into()));
        }
        if self.shader.reads_sample() && !fragments.sample.is_empty() {
            let samples: Vec<u32> = fragments.sample.iter().map(|sample| u32::from(*sample)).collect();
            launch.varyings.insert(SAMPLE_ID, Varying::Lanes(samples.into()));
        }
        let launch = Launch::Fragment(launch);
        let mut left = self.shader.run(launch, self.recording.lock().as_deref_mut(), Some(fragments))?;
        let others = usize::from(control.exports_z) + usize::from(sample_mask);
        let colors = count.saturating_sub(others).div_ceil(4).min(8);
        let last = count.saturating_sub(1);
        let depth = control.exports_z.then(|| left.column(last));
        // The register before the depth contains the mask of samples.
        let mask = masks_samples.then(|| left.column(count.saturating_sub(others)));
        let killed = left.dead();
        let color = |number: usize| {
            Some([0, 1, 2, 3].map(|chan| {
                let mut column = left.take_column(4 * number + chan);
                if clamps[number] {
                    let clamped = |value: &mut u32| *value = f32::from_bits(*value).clamp(0., 1.).to_bits();
                    column.iter_mut().for_each(clamped);
                }
                column
            }))
        };
        Ok(Shaded { colors: (0..colors).map(color).collect(), depth, stencil: None, killed, mask })
    }

    fn merged(&self, shaded: Shaded) {
        shaded
            .colors
            .into_iter()
            .flatten()
            .flatten()
            .chain(shaded.depth)
            .chain(shaded.mask)
            .for_each(LaneResults::give_back);
    }
}

#[cfg(test)]
mod tests {
    use reconverge_board::errata::Errata;

    use super::super::methods::Object;
    use super::*;

    /// Returns the first word of v[] after the position. This word is a colour. Also returns whether the value of the
    /// word is divided by w of the vertex.
    fn color(methods: &[(u32, u32)], errata: Errata) -> (Word, bool) {
        let mut state = State::new(Object::Tesla);
        // A colour with one word. The front colour is in slot 4, and the back colour is in slot 8.
        state.set(m::SEMANTIC_COLOR, 4 | 8 << 8 | 4 << 16);
        methods.iter().for_each(|(method, word)| state.set(*method, *word));
        state.errata = errata;
        let reads = Reads::new((&state, &mut Unknown::default()), Topology::Triangles, &SortedSet::default());
        (reads.words[0], reads.slots[reads.words[0].input].1)
    }

    const FLAT: (u32, u32) = (m::SHADE_MODEL, 0x1d00);
    const SMOOTH: (u32, u32) = (m::SHADE_MODEL, 0x1d01);

    /// NV92 fails piglit's `interpolation-none-gl_FrontColor-flat-*`. The test programs multiply the colour by w.
    #[test]
    fn a_flat_colour_is_divided_by_w_of_the_vertex_or_of_the_pixel() {
        let methods = [FLAT, (m::FP_INTERPOLANT_CTRL, 0x0804_0404)];
        let divided = |errata: Errata| {
            let (word, by_vertex) = color(&methods, errata);
            (by_vertex, word.divides)
        };
        assert_eq!(divided(Errata::ALL), (true, false));
        assert_eq!(divided(Errata::ALL.without(Erratum::FlatColours)), (false, true));
    }

    /// NV92 fails piglit's `interpolation-flat-gl_BackColor-smooth-*`. NV92 passes the same tests with a flat
    /// SHADE_MODEL.
    #[test]
    fn a_flat_input_of_a_program_has_a_back_only_without_the_erratum() {
        let has_back = |model: (u32, u32), errata: Errata| {
            let methods = [model, (m::VERTEX_TWO_SIDE_ENABLE, 1), (m::FP_INTERPOLANT_CTRL, 0x0800_0404)];
            color(&methods, errata).0.back.is_some()
        };
        assert!(!has_back(SMOOTH, Errata::ALL) && has_back(FLAT, Errata::ALL));
        assert!(has_back(SMOOTH, Errata::ALL.without(Erratum::FlatBack)));
    }
}
