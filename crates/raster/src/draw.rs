//! Executes a draw: the stages from vertices to stored values.
//!
//! ```text
//! vertices --> assemble --> clip --> viewport --> fill --> interpolate --> fragment program --> tests --> blend --> memory
//! ```
//! Fragments are shaded in batches of whole quads. The fragments are merged in the order of their primitives.

use std::cell::Cell;
use std::convert::Infallible;
use std::mem::take;
use std::ops::Deref;
use std::sync::Arc;

use rayon::ScopeFifo;
use reconverge_simt::level::Level;
use reconverge_simt::pool;
use reconverge_simt::vram::Vram;

use crate::batches::{BatchRoom, Batches, Piece, Queue};
use crate::columns::{Append, InputSet, Slopes};
use crate::copy::ByteRows;
use crate::fills;
use crate::format::Number;
use crate::interpolate::{Kind, Shape, Window};
use crate::kernels::{Kernels, LANES as ROW};
use crate::lanes::{Lanes, Work};
use crate::primitive::{Primitive, Topology, assemble_into};
use crate::setup::{Corner, PIXEL, Quad, Rectangle, area, bounded, fill_samples, snap};
use crate::shading::{Shading, Stopped};
use crate::span::{self, Strip};
use crate::state::Batch;
use crate::vertex::Vertex;

pub use crate::state::*;

/// Number of lanes that a thread shades together. Batches of this size are large enough for several threads, and the
/// inputs of a batch fit in the host's caches. With batches of 2^14 lanes, columns would be too large: the C library
/// would map and unmap memory for each column.
const BATCH: usize = 1 << 12;

/// Number of batches that the drawing thread shades alone. Waking other threads takes about as long as shading these
/// batches.
const ALONE: usize = 4;

/// If a primitive may have at least this number of pixels, the code splits the primitive into parts.
const LARGE: u64 = 1 << 15;
/// Minimum number of quads in a part of a primitive. The last part may have fewer quads.
const PART: i32 = 1 << 11;

/// If a draw has at least this number of vertices, other threads may help. The size of the primitives does not matter.
const MANY: usize = 1 << 10;

/// Suppose that all lanes of a primitive have the same result. If the primitive has at least this number of pixels, the
/// code shades only one lane.
const UNIFORM: u64 = 1 << 10;

/// Rules by which a chip converts the positions of vertices to window coordinates.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Coordinates {
    /// Whether positions are already divided by w. If so, a position contains 1/w instead of w. The scale and the
    /// offset of the viewport are not yet applied to x, y and z.
    pub in_window: bool,
    /// Number of steps per pixel. The code rounds window coordinates to the nearest step, and then converts the rounded
    /// coordinates to fixed-point numbers. If the code does not round coordinates to steps, this field is `None`.
    pub steps: Option<u16>,
}

/// The vertices of a draw, and the runs of vertex indices that form primitives. Each vertex occurs once.
#[derive(Clone, Copy, Debug)]
pub struct Vertices<'a> {
    /// The vertices.
    pub all: &'a [Vertex],
    /// Runs of indices in `all`. A primitive restart begins a new run.
    pub runs: &'a [Vec<usize>],
}

/// Draws runs of vertices in order.
///
/// # Errors
/// Returns the error with which the fragment program stopped. Results that were merged before the error stay in memory.
pub fn draw<P: FragmentProgram>(
    draw: &Draw,
    vertices: Vertices<'_>,
    memory: Vram<'_>,
    program: &P,
) -> Result<Counts, P::Error> {
    draw_with(draw, Coordinates::default(), vertices, memory, program)
}

/// Draws as [`draw()`] does, with a chip's rules for coordinates.
///
/// # Errors
/// Returns the error with which the fragment program stopped. Results that were merged before the error stay in memory.
pub fn draw_with<P: FragmentProgram>(
    draw: &Draw,
    coordinates: Coordinates,
    vertices: Vertices<'_>,
    memory: Vram<'_>,
    program: &P,
) -> Result<Counts, P::Error> {
    // If this processor has no vector level, every stage works pixel by pixel.
    run(draw, coordinates, vertices, memory, program, Level::any().then(Level::best))
}

/// Draws like [`draw_with`]. If the draw and the primitive allow vector instructions, the function uses vector
/// instructions of `level` on columns of lanes.
pub(crate) fn run<P: FragmentProgram>(
    draw: &Draw,
    coordinates: Coordinates,
    vertices: Vertices<'_>,
    memory: Vram<'_>,
    program: &P,
    level: Option<Level>,
) -> Result<Counts, P::Error> {
    let drawn = drawn(draw, coordinates, vertices, memory, program, level);
    drawn.map_err(|Stopped(error)| *error.downcast().expect("the error of the program"))
}

/// Draws as [`run`] does, for a fragment program of any type.
fn drawn(
    draw: &Draw,
    coordinates: Coordinates,
    vertices: Vertices<'_>,
    memory: Vram<'_>,
    program: &dyn Shading,
    level: Option<Level>,
) -> Result<Counts, Stopped> {
    let samples = draw.multisample.places.len().max(1);
    let places = if draw.multisample.by_sample { &draw.multisample.places[..] } else { &[[0, 0]] };
    let multisample = &draw.multisample;
    let one_sample =
        samples == 1 && !multisample.by_sample && !multisample.shades_samples && multisample.mask & 1 != 0;
    let kernels = level.and_then(|level| Kernels::choose(draw, samples, memory, level));
    let kernels = kernels.as_ref();
    // Kernels support several samples per pixel. Copying texels directly and skipping hidden pixels require one sample
    // per pixel.
    let plain = kernels.filter(|_| one_sample);
    let copied = plain.and_then(|kernels| kernels.copied(program.copied()?, draw));
    let may_skip_hidden = plain.is_some_and(Kernels::hides) && program.may_skip_hidden();
    let reads = program.reads();
    // A depth test reads the depth column in addition to the columns that the program reads.
    let tested = kernels.map_or(draw.depth.is_some(), Kernels::reads_depth);
    let batches = Batches {
        draw,
        memory,
        program,
        kernels,
        samples,
        reads: reads.position | u8::from(tested) << 2,
        may_skip_hidden,
        queue: Queue::default(),
    };
    let mut room = ROOM.take().unwrap_or_default();
    room.places.clear();
    room.places.extend(vertices.all.iter().map(|vertex| place(draw, coordinates, vertex)));
    let may_be_large = may_be_large(draw, &room.places);
    let draws = |scope: Option<&_>| {
        let mut pipeline = Pipeline {
            draw,
            coordinates,
            memory,
            reads,
            is_uniform: program.is_uniform() && kernels.is_some_and(Kernels::is_complete),
            batches: &batches,
            helpers: scope,
            batch_room: BatchRoom::take(draw),
            room,
            counts: Counts::default(),
            flushed: 0,
            samples,
            places,
            stippled: 0,
            level,
            by_columns: level.filter(|_| one_sample),
            copied,
        };
        let drawn = pipeline.draw(vertices);
        let Pipeline { batch_room, room, counts, .. } = pipeline;
        batch_room.keep();
        ROOM.set(Some(room));
        drawn.map(|()| counts)
    };
    match may_be_large && !program.in_order() {
        true => pool::with_helpers(draws),
        false => draws(None),
    }
}

/// A vertex of the draw with its window position.
#[derive(Clone, Copy)]
struct Placed<'a> {
    vertex: &'a Vertex,
    at: VertexPlace,
}

/// The window position of a vertex.
#[derive(Clone, Copy)]
struct VertexPlace {
    window: Window,
    /// Whether the vertex is inside of all clipping planes.
    inside: bool,
    /// Whether the vertex needs no clipping. If no planes exist, the field is set. If the vertex has a finite position
    /// inside of all planes, the field is also set.
    whole: bool,
}

impl Deref for Placed<'_> {
    type Target = VertexPlace;

    fn deref(&self) -> &VertexPlace {
        &self.at
    }
}

/// Computes the window position of a vertex.
fn place(draw: &Draw, coordinates: Coordinates, vertex: &Vertex) -> VertexPlace {
    let inside = draw.clip.is_none_or(|clip| clip.holds(vertex));
    let finite = || vertex.position.iter().all(|value| value.is_finite());
    let whole = draw.clip.is_none() || inside && finite();
    VertexPlace { window: window(draw, coordinates, vertex), inside, whole }
}

fn window(draw: &Draw, coordinates: Coordinates, vertex: &Vertex) -> Window {
    let Viewport { scale, offset, divides, .. } = draw.viewport;
    let [x, y, z, w] = vertex.position.map(f64::from);
    let Coordinates { in_window, steps } = coordinates;
    let reciprocal = match divides {
        _ if in_window => w,
        true => 1. / w,
        false => 1.,
    };
    let factor = if in_window { 1. } else { reciprocal };
    let place = |value: f64, axis: usize| {
        // The chips compute this product in single precision.
        let divided = (value * factor) as f32;
        f64::from(divided * scale[axis] + offset[axis])
    };
    let corner = |value: f64, axis: usize| match steps.map(f64::from) {
        Some(steps) => snap(libm::rint(place(value, axis) * steps) / steps),
        None => snap(place(value, axis)),
    };
    Window { corner: [corner(x, 0), corner(y, 1)], z: place(z, 2), reciprocal }
}

/// Returns whether the draw may have enough pixels for other threads to save time.
fn may_be_large(draw: &Draw, places: &[VertexPlace]) -> bool {
    if places.len() >= MANY {
        return true;
    }
    let Rectangle { x0, y0, x1, y1 } = draw.scissor;
    let extent = |axis: usize, most: i32| {
        let all = places.iter().map(|place| place.window.corner[axis]);
        let (low, high) = (all.clone().min().unwrap_or(0), all.max().unwrap_or(0));
        (high.saturating_sub(low) / PIXEL).clamp(0, i64::from(most.max(0))) as u64
    };
    extent(0, x1.saturating_sub(x0)) * extent(1, y1.saturating_sub(y0)) * places.len() as u64 >= LARGE
}

/// Returns which sides of a primitive are edges. Bit n is for the side from vertex n to the next vertex.
///
/// Edge flags of vertices apply only to separate triangles, quads and polygons. (OpenGL 3.0, 2.6.2)
fn sides(topology: Topology, primitive: &Primitive, corners: &[Placed<'_>]) -> u32 {
    let inner = match topology {
        Topology::Triangles | Topology::Quads | Topology::Polygon => {
            let flags =
                corners.iter().enumerate().map(|(at, corner)| u32::from(corner.vertex.inner_side) << at);
            flags.fold(0, |all, flag| all | flag)
        }
        _ => 0,
    };
    u32::from(primitive.edges) & !inner
}

fn vertices_of<'a>(placed: &[Placed<'a>]) -> Vec<&'a Vertex> {
    placed.iter().map(|placed| placed.vertex).collect()
}

/// Memory that a thread reuses for its draws. In a small draw, allocations would take much of the time.
#[derive(Default)]
struct Room {
    /// Data of the primitive that is filled by columns.
    slopes: Option<Box<Slopes>>,
    /// The quads of the primitive that is filled by columns.
    quads: Vec<Quad>,
    /// Window positions of all vertices of the draw.
    places: Vec<VertexPlace>,
    /// The primitives of a run.
    primitives: Vec<Primitive>,
}

thread_local! {
    /// The memory that the thread's last draw used.
    static ROOM: Cell<Option<Box<Room>>> = const { Cell::new(None) };
}

struct Pipeline<'a, 'scope> {
    draw: &'a Draw,
    coordinates: Coordinates,
    memory: Vram<'a>,
    batches: &'scope Batches<'scope>,
    /// The scope for jobs on other threads. If other threads must not help, the field is `None`.
    helpers: Option<&'a ScopeFifo<'scope>>,
    reads: ReadColumns,
    /// Whether lanes with equal inputs have equal results, and kernels can merge all lanes by rows.
    is_uniform: bool,
    /// Memory with the batch of lanes that are not shaded yet.
    batch_room: Box<BatchRoom>,
    room: Box<Room>,
    counts: Counts,
    /// Number of batches that were shaded or queued.
    flushed: usize,
    /// Number of samples per pixel of the surfaces.
    samples: usize,
    /// Offsets from the pixel's centre at which coverage is sampled.
    places: &'a [Corner],
    /// Number of pixels of the stipple pattern that earlier lines have used.
    stippled: i64,
    /// Vector level for coverage and for columns of lanes. If `None`, every stage works pixel by pixel.
    level: Option<Level>,
    /// Vector level for filling primitives by columns, if pixels have one sample.
    by_columns: Option<Level>,
    /// The copy of bytes that replaces shading. When a primitive cannot be copied, this field becomes `None`.
    copied: Option<ByteRows>,
}

impl<'scope> Pipeline<'_, 'scope> {
    fn draw(&mut self, vertices: Vertices<'_>) -> Result<(), Stopped> {
        let (places, mut primitives) = (take(&mut self.room.places), take(&mut self.room.primitives));
        let drawn = self.runs(vertices, &places, &mut primitives);
        (self.room.places, self.room.primitives) = (places, primitives);
        drawn
    }

    /// Draws the primitives that runs of vertices form. `places` contains the window positions of the vertices.
    /// `primitives` is memory for the primitives of a run.
    fn runs(
        &mut self,
        vertices: Vertices<'_>,
        places: &[VertexPlace],
        primitives: &mut Vec<Primitive>,
    ) -> Result<(), Stopped> {
        let placed = |place: usize| Placed { vertex: &vertices.all[place], at: places[place] };
        for run in vertices.runs {
            self.stippled = 0;
            assemble_into(self.draw.topology, run.len(), self.draw.last_provokes, primitives);
            for primitive in &*primitives {
                self.counts.primitives += 1;
                self.primitive(|number| placed(run[number]), primitive)?;
            }
        }
        self.finish()
    }

    /// Draws a primitive of a run. `vertex` returns the vertex at a position in the run.
    fn primitive<'v>(
        &mut self,
        vertex: impl Fn(usize) -> Placed<'v>,
        primitive: &Primitive,
    ) -> Result<(), Stopped> {
        let draw = self.draw;
        let places = &primitive.vertices[..usize::from(primitive.count)];
        let provoking = vertex(primitive.provoking).vertex;
        let mut all = [vertex(places[0]); 3];
        all.iter_mut().zip(places).for_each(|(corner, place)| *corner = vertex(*place));
        let corners = &all[..places.len()];
        let culls = draw.clip.is_some_and(|clip| clip.culls != 0);
        if culls && draw.clip.is_some_and(|clip| clip.drops(&vertices_of(corners))) {
            return Ok(());
        }
        if draw.clip.is_some_and(|clip| clip.discards(corners.iter().map(|corner| corner.vertex))) {
            return Ok(());
        }
        if draw.topology == Topology::Rectangles {
            self.counts.clipped += 1;
            return self.rectangle(all, provoking);
        }
        if let [point] = corners {
            self.counts.clipped += u64::from(point.inside);
            return if point.inside { self.point(point, provoking, true, 0.) } else { Ok(()) };
        }
        let sides = sides(draw.topology, primitive, corners);
        // Most primitives need no clipping.
        let (cut, edges) = match &draw.clip {
            Some(clip) if corners.iter().any(|corner| !corner.whole) => {
                let all = corners.iter().map(|corner| corner.vertex.clone()).collect();
                clip.cut_with_edges(all, sides)
            }
            _ => (Vec::new(), sides),
        };
        let placed: Vec<Placed<'_>> =
            cut.iter().map(|vertex| Placed { vertex, at: place(draw, self.coordinates, vertex) }).collect();
        let polygon = match corners.iter().all(|corner| corner.whole) {
            true => corners,
            false => &placed,
        };
        if polygon.len() < 2 {
            return Ok(());
        }
        self.counts.clipped += 1;
        if primitive.count == 2 {
            if draw.stipple.is_some_and(|stipple| stipple.restarts) {
                self.stippled = 0;
            }
            return self.line([&polygon[0], &polygon[1]], provoking, true, 0.);
        }
        self.polygon(polygon, edges, provoking)
    }

    /// Draws a rectangle from three corners, without clipping. The fourth corner is the second corner plus the third
    /// corner minus the first corner.
    fn rectangle(&mut self, corners: [Placed<'_>; 3], provoking: &Vertex) -> Result<(), Stopped> {
        let windows = corners.map(|corner| corner.window);
        let [a, b, c] = windows.map(|window| window.corner);
        let fourth = [b[0] + c[0] - a[0], b[1] + c[1] - a[1]];
        let shape = Shape {
            kind: Kind::Triangle,
            vertices: corners.map(|corner| corner.vertex),
            windows,
            provoking,
            front: true,
            offset: 0.,
        };
        if area([a, b, c]) == 0 {
            return Ok(());
        }
        self.fill(&shape, &[a, b, fourth, c], [0.; 2], None)
    }

    /// Draws a convex polygon. If bit n of `edges` is set, the line mode draws the side from corner n to the next
    /// corner. The point mode draws corner n if bit n is set.
    fn polygon(&mut self, polygon: &[Placed<'_>], edges: u32, provoking: &Vertex) -> Result<(), Stopped> {
        let window = |at: usize| polygon[at].window;
        let areas =
            (2..polygon.len()).map(|at| area([window(0).corner, window(at - 1).corner, window(at).corner]));
        let doubled: i64 = areas.sum();
        if doubled == 0 {
            return Ok(());
        }
        let front = (doubled > 0) == self.draw.front_is_clockwise;
        let side = self.draw.sides[usize::from(!front)];
        if side.culled {
            return Ok(());
        }
        let offset = side.offset.map_or(0., |offset| {
            let windows: Vec<Window> = polygon.iter().map(|corner| corner.window).collect();
            offset_of(&offset, &windows)
        });
        let mut drawn = (0..polygon.len()).filter(|at| edges >> at & 1 != 0);
        match side.fill {
            Fill::Points => drawn.try_for_each(|at| self.point(&polygon[at], provoking, front, offset)),
            Fill::Lines => drawn.try_for_each(|at| {
                self.stippled = if at == 0 { 0 } else { self.stippled };
                self.line([&polygon[at], &polygon[(at + 1) % polygon.len()]], provoking, front, offset)
            }),
            Fill::Solid => (2..polygon.len()).try_for_each(|at| {
                let corners = [0, at - 1, at].map(|at| polygon[at]);
                let shape = Shape {
                    kind: Kind::Triangle,
                    vertices: corners.map(|corner| corner.vertex),
                    windows: corners.map(|corner| corner.window),
                    provoking,
                    front,
                    offset,
                };
                self.fill(&shape, &corners.map(|corner| corner.window.corner), [0.; 2], None)
            }),
        }
    }

    fn line(
        &mut self,
        ends: [&Placed<'_>; 2],
        provoking: &Vertex,
        front: bool,
        offset: f64,
    ) -> Result<(), Stopped> {
        let windows = ends.map(|end| end.window);
        let [a, b] = windows.map(|window| window.corner);
        let (dx, dy) = (b[0] - a[0], b[1] - a[1]);
        let half = (f64::from(self.draw.line_width) * PIXEL as f64 / 2.).max(PIXEL as f64 / 2.);
        let along_x = dx.abs() >= dy.abs();
        let is_rectangle = self.draw.rectangular_lines || self.draw.multisample.by_sample;
        let aside = match (is_rectangle, along_x) {
            // The ends of a multisampled line are at right angles to the line. (OpenGL 3.0, 3.5.4)
            (true, _) => {
                let length = libm::hypot(dx as f64, dy as f64).max(1.);
                [-(dy as f64) * half / length, dx as f64 * half / length].map(|at| bounded(libm::rint(at)))
            }
            // The line is not a rectangle. So its width is measured along one axis: the axis in which the line changes
            // less.
            (false, true) => [0, bounded(half)],
            (false, false) => [bounded(half), 0],
        };
        // In OpenGL 3.0, 3.5.1, the first pixel of a line is drawn and the last pixel is not drawn, whatever the
        // direction of the line is. A pixel includes the lower end of its column or row, and does not include the upper
        // end. So the code moves a line that runs towards lower coordinates by the smallest step towards higher
        // coordinates.
        let axis = usize::from(!along_x);
        let step = i64::from(!self.draw.multisample.by_sample && b[axis] < a[axis]);
        let moved = |at: Corner| if along_x { [at[0] + step, at[1]] } else { [at[0], at[1] + step] };
        let (first, last) = (moved(a), moved(b));
        let corners = [
            [first[0] - aside[0], first[1] - aside[1]],
            [last[0] - aside[0], last[1] - aside[1]],
            [last[0] + aside[0], last[1] + aside[1]],
            [first[0] + aside[0], first[1] + aside[1]],
        ];
        let shape = Shape {
            kind: Kind::Line,
            vertices: [ends[0], ends[1], ends[1]].map(|end| end.vertex),
            windows: [windows[0], windows[1], windows[1]],
            provoking,
            front,
            offset,
        };
        let Some(stipple) = self.draw.stipple else {
            return self.fill(&shape, &corners, [0.; 2], None);
        };
        let dash = Dash { stipple, axis, from: a[axis], behind: self.stippled };
        let centres = |at: i64| (at + PIXEL / 2 - 1).div_euclid(PIXEL);
        self.stippled += (centres(last[axis]) - centres(first[axis])).abs();
        self.fill(&shape, &corners, [0.; 2], Some(&dash))
    }

    fn point(
        &mut self,
        Placed { vertex, at }: &Placed<'_>,
        provoking: &Vertex,
        front: bool,
        offset: f64,
    ) -> Result<(), Stopped> {
        let Points { size, from_vertex, range } = self.draw.points;
        let size = match from_vertex {
            true => [vertex.point_size.max(range[0]).min(range[1]); 2],
            false => size,
        };
        let window = at.window;
        let half = size.map(|size| bounded(f64::from(size) * PIXEL as f64 / 2.));
        let [x, y] = window.corner;
        let corners = [
            [x - half[0], y - half[1]],
            [x + half[0], y - half[1]],
            [x + half[0], y + half[1]],
            [x - half[0], y + half[1]],
        ];
        let (vertices, windows) = ([*vertex; 3], [window; 3]);
        let shape = Shape { kind: Kind::Point, vertices, windows, provoking, front, offset };
        self.fill(&shape, &corners, size.map(f64::from), None)
    }

    fn fill<const N: usize>(
        &mut self,
        shape: &Shape<'_>,
        corners: &[Corner; N],
        size: [f64; 2],
        dash: Option<&Dash>,
    ) -> Result<(), Stopped> {
        let mask = self.draw.mask.as_deref().filter(|mask| mask.is_for(shape.kind));
        let draws = |pixel: (i32, i32)| {
            dash.is_none_or(|dash| dash.draws(pixel)) && mask.is_none_or(|mask| mask.draws(shape.kind, pixel))
        };
        let draws = (dash.is_some() || mask.is_some()).then_some(&draws as PixelTest<'_>);
        match (self.by_columns, shape.kind) {
            (Some(level), kind) if kind == Kind::Line || draws.is_some() => {
                return self.pixels_by_columns(level, shape, (corners, size), draws);
            }
            (Some(level), _) => return self.fill_by_columns(level, shape, corners, size),
            (None, _) => {}
        }
        let mut quads = Vec::new();
        let push = |quad, masks| quads.push((quad, masks));
        match self.level {
            Some(_) => span::samples(corners, self.draw.scissor, self.places, push),
            None => fill_samples(corners, self.draw.scissor, self.places, push),
        }
        for (quad, masks) in &mut quads {
            for (lane, mask) in masks.iter_mut().enumerate() {
                if *mask != 0 && !self.draw.multisample.by_sample {
                    *mask = !0;
                }
                *mask &= self.draw.multisample.mask & (u32::MAX >> (32 - self.samples)) as u8;
                if draws.is_some_and(|draws| !draws(quad.pixel(lane))) {
                    *mask = 0;
                }
            }
        }
        let of_sample = |sample: Option<usize>| {
            let bit = sample.map_or(!0, |sample| 1 << sample);
            let quads = quads.iter().map(move |(quad, masks)| (*quad, masks.map(|mask| mask & bit)));
            let covered = quads.filter(|(_, masks)| *masks != [0; 4]);
            covered.map(move |(quad, masks)| (quad, masks, sample.unwrap_or(0)))
        };
        let work: Vec<Work> = match self.draw.multisample.shades_samples {
            true => (0..self.samples).flat_map(|sample| of_sample(Some(sample))).collect(),
            false => of_sample(None).collect(),
        };
        if work.is_empty() {
            return Ok(());
        }
        let lanes = Lanes { draw: self.draw, samples: self.samples, shape, size };
        // `append_samples` stores masks of samples. If pixels have one sample, batches have no masks of samples. So the
        // code does not call `append_samples`.
        let level = self.level.filter(|_| self.samples > 1);
        let mut slopes = self.room.slopes.take().unwrap_or_default();
        if level.is_some() {
            slopes.set(shape, size, self.draw, &self.reads);
        }
        let tested = self.batches.reads & 4 != 0;
        for part in work.chunks(BATCH / 4) {
            match level {
                Some(level) => {
                    self.batches.append_samples(level, &slopes, &lanes, part, tested, &mut self.batch_room)
                }
                None => {
                    self.batch_room.batch.starts.push(self.batch_room.batch.fragments.lanes);
                    part.iter().for_each(|quad| lanes.quad(&mut self.batch_room.batch, quad));
                }
            }
            if self.batch_room.batch.fragments.lanes >= BATCH {
                self.flush()?;
            }
        }
        self.room.slopes = Some(slopes);
        Ok(())
    }

    /// Fills the pixels of a primitive by columns. [`Pipeline::fill`] gives the same result. This function is for
    /// lines, and for primitives whose pixels must pass the test `draws`.
    fn pixels_by_columns<const N: usize>(
        &mut self,
        level: Level,
        shape: &Shape<'_>,
        (corners, size): (&[Corner; N], [f64; 2]),
        draws: Option<PixelTest<'_>>,
    ) -> Result<(), Stopped> {
        let mut quads = take(&mut self.room.quads);
        quads.clear();
        let Ok(()) = span::strips(corners, self.draw.scissor, |strip| {
            quads.extend(strip.quads());
            Ok::<(), Infallible>(())
        });
        if let Some(draws) = draws {
            quads.retain_mut(|quad| {
                let drawn = (0..4).filter(|lane| draws(quad.pixel(*lane)));
                quad.covered &= drawn.fold(0, |drawn, lane| drawn | 1 << lane);
                quad.covered != 0
            });
        }
        let mut slopes = self.room.slopes.take().unwrap_or_default();
        if !quads.is_empty() {
            slopes.set(shape, size, self.draw, &self.reads);
        }
        let mut done = Ok(());
        for part in quads.chunks(BATCH / 4) {
            self.append(level, &slopes, part, true);
            if self.batch_room.batch.fragments.lanes >= BATCH {
                done = self.flush();
            }
            if done.is_err() {
                break;
            }
        }
        (self.room.slopes, self.room.quads) = (Some(slopes), quads);
        done
    }

    /// Fills the pixels of a triangle, rectangle or point by columns. [`Pipeline::fill`] gives the same result.
    fn fill_by_columns<const N: usize>(
        &mut self,
        level: Level,
        shape: &Shape<'_>,
        corners: &[Corner; N],
        size: [f64; 2],
    ) -> Result<(), Stopped> {
        let mut slopes = self.room.slopes.take().unwrap_or_default();
        let mut found = take(&mut self.room.quads);
        let scissor = self.draw.scissor;
        if self.copied.is_some() {
            slopes.set(shape, size, self.draw, &self.reads);
            let mut strips = Vec::new();
            let Ok(()) = span::strips(corners, scissor, |strip| {
                strips.push(strip);
                Ok::<(), Infallible>(())
            });
            if self.copy(level, &slopes, &strips)? {
                (self.room.slopes, self.room.quads) = (Some(slopes), found);
                return Ok(());
            }
        }
        let (mut is_first, mut uniform) = (true, None);
        if self.is_uniform && span::most_pixels(corners) >= UNIFORM {
            slopes.set(shape, size, self.draw, &self.reads);
            is_first = false;
            let pixels = span::rectangles(corners, scissor);
            if fills::count(&pixels) >= UNIFORM && slopes.is_constant(self.reads.position) {
                let shaded = self.shade_once(level, &slopes, pixels[0])?;
                if let Some(passed) = self.filled(&shaded, &slopes, &pixels) {
                    self.counts.passed += passed;
                    (self.room.slopes, self.room.quads) = (Some(slopes), found);
                    return Ok(());
                }
                uniform = Some(shaded);
            }
        }
        if uniform.is_none() && self.batches.kernels.is_some() && span::most_pixels(corners) >= LARGE {
            slopes.set(shape, size, self.draw, &self.reads);
            self.room.quads = found;
            return self.parts(level, *slopes, corners);
        }
        let done = span::quads(corners, scissor, &mut found, |quads| {
            if take(&mut is_first) {
                slopes.set(shape, size, self.draw, &self.reads);
            }
            self.append(level, &slopes, quads, uniform.is_none());
            match &uniform {
                Some(shaded) => {
                    self.counts.passed += self.batches.merge(&self.batch_room.batch, shaded, true);
                    self.batch_room.batch.clear();
                }
                None if self.batch_room.batch.fragments.lanes >= BATCH => self.flush()?,
                None => {}
            }
            Ok(())
        });
        (self.room.slopes, self.room.quads) = (Some(slopes), found);
        done
    }

    /// Copies texels to the pixels of strips, and returns `true`. If some pixel is not the copy of one texel, the
    /// function returns `false`. In this case, the code shades this primitive and all later primitives of the draw.
    fn copy(&mut self, level: Level, slopes: &Slopes, strips: &[Strip]) -> Result<bool, Stopped> {
        let Some(copied) = self.copied.take() else { return Ok(false) };
        if !copied.reads().all(|(input, chan)| slopes.is_affine(input, chan)) {
            return Ok(false);
        }
        self.finish()?;
        let draw = self.draw;
        let inputs = |quads: &[Quad]| {
            let mut ends = Batch::new(draw);
            level.run(Append {
                batch: &mut ends,
                weights: &mut self.batch_room.weights,
                slopes,
                quads,
                draw,
                reads: 0,
                inputs: InputSet::All,
                place: [0; 2],
                quads_too: true,
            });
            ends.fragments.inputs
        };
        let Some(passed) = copied.copy(strips, inputs, self.memory) else { return Ok(false) };
        self.counts.passed += passed;
        self.copied = Some(copied);
        Ok(true)
    }

    /// Adds the quads of a primitive to the batch.
    fn append(&mut self, level: Level, slopes: &Slopes, quads: &[Quad], inputs: bool) {
        self.batches.append(level, slopes, quads, inputs, &mut self.batch_room);
    }

    /// Fills the pixels of a primitive, and returns the number of pixels. All lanes of the primitive have the results
    /// `shaded`. The function returns `None` in three cases: stored values may differ, a test may drop a lane, or a
    /// pixel is outside of a surface.
    fn filled(&self, shaded: &Shaded, slopes: &Slopes, pixels: &[Rectangle]) -> Option<u64> {
        let constants = self.batches.kernels?.constants(self.draw, shaded, slopes.level(self.draw))?;
        fills::fill(&constants, pixels, self.memory)
    }

    /// Shades one row of a primitive. All lanes of the primitive have the same result. In the returned row, each lane
    /// has the result of the first lane.
    fn shade_once(&mut self, level: Level, slopes: &Slopes, pixels: Rectangle) -> Result<Shaded, Stopped> {
        self.finish()?;
        let (first, y) = (pixels.x0 & !1, pixels.y0 & !1);
        // A program may end a lane that is not covered before the lane has a result. So all lanes are marked as
        // covered.
        let quads = [const { Quad { x: 0, y: 0, covered: 0xf } }; ROW / 4];
        let beside = (first..).step_by(2).zip(quads).map(|(x, quad)| Quad { x, y, ..quad });
        self.append(level, slopes, &beside.collect::<Vec<_>>(), true);
        let shaded = self.batches.shade(&self.batch_room.batch.fragments);
        self.batch_room.batch.clear();
        let shaded = shaded?;
        let row = |column: &LaneWords| column.first().map_or(Vec::new(), |word| vec![*word; ROW]);
        let colors = shaded.colors.iter();
        Ok(Shaded {
            colors: colors.map(|color| Some(color.as_ref()?.each_ref().map(row))).collect(),
            depth: shaded.depth.as_ref().map(row),
            stencil: shaded.stencil.as_ref().map(row),
            killed: shaded.killed.first().map_or(Vec::new(), |killed| vec![*killed; ROW]),
            mask: shaded.mask.as_ref().map(row),
        })
    }

    /// Shades and merges the lanes of the batch, possibly on other threads.
    fn flush(&mut self) -> Result<(), Stopped> {
        let batch = &mut self.batch_room.batch;
        if batch.fragments.lanes == 0 {
            return Ok(());
        }
        self.flushed += 1;
        if let Some(scope) = self.helpers.filter(|_| self.flushed > ALONE) {
            return self.batches.give(&mut self.batch_room, scope);
        }
        self.counts.passed += pool::on_one_thread(|| self.batches.run(batch))?;
        batch.clear();
        Ok(())
    }

    /// Shades and merges all remaining lanes.
    fn finish(&mut self) -> Result<(), Stopped> {
        self.flush()?;
        if self.flushed > ALONE {
            self.counts.passed += self.batches.finish(&mut self.batch_room)?;
        }
        Ok(())
    }

    /// Shades and merges a large primitive in parts. A part has whole rows of quads, and several threads can process
    /// the parts.
    fn parts<const N: usize>(
        &mut self,
        level: Level,
        slopes: Slopes,
        corners: &[Corner; N],
    ) -> Result<(), Stopped> {
        self.flush()?;
        self.batches.begin_set();
        let slopes = Arc::new(slopes);
        let (mut part, mut quads) = (Vec::new(), 0);
        span::strips(corners, self.draw.scissor, |strip| {
            let ends_row = part.last().is_some_and(|last: &Strip| last.first.y != strip.first.y);
            if quads >= PART && ends_row {
                self.part(level, &slopes, take(&mut part))?;
                quads = 0;
            }
            quads += strip.count;
            part.push(strip);
            Ok(())
        })?;
        if part.is_empty() { Ok(()) } else { self.part(level, &slopes, part) }
    }

    fn part(&mut self, level: Level, slopes: &Arc<Slopes>, strips: Vec<Strip>) -> Result<(), Stopped> {
        let room = &mut *self.batch_room;
        if let Some(scope) = self.helpers {
            // Later batches must wait for this part. With this value of `flushed`, later batches are queued.
            self.flushed = self.flushed.max(ALONE + 1);
            return self.batches.add(Piece::Part(level, slopes.clone(), strips), room, scope);
        }
        self.batches.append_strips(level, slopes, &strips, room);
        self.flush()
    }
}

/// A function that returns whether a pixel is drawn.
type PixelTest<'a> = &'a dyn Fn((i32, i32)) -> bool;

/// A stipple pattern along a line.
struct Dash {
    stipple: Stipple,
    /// The axis along which the line changes more.
    axis: usize,
    /// Start of the line on `axis`, fixed-point.
    from: i64,
    /// Number of pixels of the pattern that earlier lines have used.
    behind: i64,
}

impl Dash {
    fn draws(&self, pixel: (i32, i32)) -> bool {
        let at = i64::from([pixel.0, pixel.1][self.axis]) * PIXEL + PIXEL / 2;
        self.stipple.draws(self.behind + (at - self.from).abs() / PIXEL)
    }
}

/// Returns the polygon offset, which is added to depth.
fn offset_of(offset: &Offset, windows: &[Window]) -> f64 {
    let [a, b, c] = [0, 1, 2].map(|at| windows[at]);
    let pixels =
        |from: &Window, to: &Window, axis: usize| (to.corner[axis] - from.corner[axis]) as f64 / PIXEL as f64;
    let (x1, y1, z1) = (pixels(&a, &b, 0), pixels(&a, &b, 1), b.z - a.z);
    let (x2, y2, z2) = (pixels(&a, &c, 0), pixels(&a, &c, 1), c.z - a.z);
    let doubled = x1 * y2 - x2 * y1;
    let slope = match doubled {
        0. => 0.,
        _ => {
            let (along_x, along_y) = ((z1 * y2 - z2 * y1) / doubled, (x1 * z2 - x2 * z1) / doubled);
            along_x.abs().max(along_y.abs())
        }
    };
    let step = match offset.of_float {
        true => {
            let largest = windows.iter().map(|window| window.z.abs()).fold(0., f64::max);
            libm::exp2(libm::floor(libm::log2(largest.max(1e-38))) - 23.)
        }
        false => 1.,
    };
    let sum = offset.slope * slope + offset.constant * step;
    match offset.clamp {
        clamp if clamp > 0. => sum.min(clamp),
        clamp if clamp < 0. => sum.max(clamp),
        _ => sum,
    }
}

/// Returns the range to which blending clamps colours. Only fixed-point targets have a range. For other targets, the
/// result is `None`.
pub fn blend_range(number: Number) -> Option<(f32, f32)> {
    match number {
        Number::Unorm | Number::Srgb => Some((0., 1.)),
        Number::Snorm => Some((-1., 1.)),
        Number::Uscaled | Number::Sscaled | Number::Uint | Number::Sint | Number::Float => None,
    }
}
